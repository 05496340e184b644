# SPDX-License-Identifier: BSD-3-Clause
"""Results of loops, branches and functions of functions share no elements: writes mean the same however they run."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj


def twice(z: Any) -> tuple[Any, Any]:
    return z, z


@tj.custom_gradient
def itself(x: Any) -> Any:
    return x, None


@itself.backward
def _(residuals: Any, dy: Any) -> Any:
    return dy


def cond_operand(x: Any) -> Any:
    y = tj.dlcond(x.sum() > 0, lambda a: a, lambda a: -a, x)
    y[0] = 9
    return x * 1, y


def cond_closure(x: Any) -> Any:
    y = tj.dlcond(x.sum() > 0, lambda: x, lambda: -x)
    x[-1] = 77
    return x * 1, y


def cond_pair(x: Any) -> Any:
    p, q = tj.dlcond(x.sum() > 0, lambda a: twice(a * 1), lambda a: twice(a * 2), x)
    q[0] = 9
    return p * 1, q


def checkpoint(x: Any) -> Any:
    y = tj.dlcheckpoint(lambda a: a[1:])(x)
    y[0] = 9
    return x * 1, y


def checkpoint_pair(x: Any) -> Any:
    p, q = tj.dlcheckpoint(lambda a: twice(a * 1))(x)
    q[0] = 9
    return p * 1, q


def scan_outer(x: Any) -> Any:
    y = tj.dlscan(lambda c, _: (x, None), x * 2, None, length=3)[0]
    y[0] = 9
    return x * 1, y


def scan_pair(x: Any) -> Any:
    (p, q), _ = tj.dlscan(lambda s, _: (twice(s[0] + 1), None), (x, x), None, length=4)
    q[0] = 9
    return p * 1, q


def short_scan(x: Any) -> Any:
    (p, q), _ = tj.dlscan(lambda s, _: (twice(s[0] + 1), None), (x, x), None, length=1)
    q[0] = 9
    return p * 1, q


def while_pair(x: Any) -> Any:
    p, q = tj.dlwhile(lambda s: s[0].sum() < 20, lambda s: twice(s[0] + 1), (x, x))
    q[0] = 9
    return p * 1, q


def custom(x: Any) -> Any:
    y = itself(x)
    x[0] = 9
    return y * 1, y, x


def custom_result(x: Any) -> Any:
    y = itself(x)
    y[0] = 9
    return x * 1, y


def mapped(x: Any) -> Any:
    p, q = tj.dlmap(lambda r: twice(r * 2), over=0)(x)
    q[0] = 9
    return p * 1, q


FUNCTIONS = [
    cond_operand, cond_closure, cond_pair, checkpoint, checkpoint_pair, scan_outer, scan_pair, short_scan, while_pair,
    custom, custom_result, mapped,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_a_write_changes_one_result(function: Callable[..., Any]) -> None:
    def of(run: Callable[..., Any]) -> list[Any]:
        x = tj.dlarray(np.array([1.0, 2.0]))
        return [*(np.asarray(result).tolist() for result in run(x)), np.asarray(x).tolist()]

    accelerated = tj.dlaccelerate(function)
    plain = of(function)
    assert of(lambda x: tj.dlfeval(function, x)) == plain
    for _ in range(4):
        assert of(accelerated) == plain
    assert plain[0] != plain[1] or function in (custom, cond_closure)


CONSTRUCTS = {
    "dlcheckpoint": lambda n: tj.dlcheckpoint(lambda a: a)(n),
    "dlcond": lambda n: tj.dlcond(True, lambda a: a, lambda a: -a, n),
    "dlmap": lambda n: tj.dlmap(lambda a: a, over=0)(n),
    "dlscan": lambda n: tj.dlscan(lambda c, _: (n, None), n * 1, None, length=4)[0],
    "dlwhile": lambda n: tj.dlwhile(lambda a: a.sum() < 0, lambda a: -a, n),
    "custom_gradient": itself,
    "dlaccelerate": lambda n: tj.dlaccelerate(lambda a: a)(n),
}


@pytest.mark.whole("each shares memory in its own way")
@pytest.mark.parametrize("view", [lambda n: n, lambda n: n[::-1]], ids=["whole", "view"])
@pytest.mark.parametrize("name", CONSTRUCTS)
@pytest.mark.filterwarnings(
    "ignore::tracejit.TraceJitWarning"
)  # runs uncompiled, for it changes what it reads
def test_a_result_is_apart_from_an_ndarray(name: str, view: Callable[..., Any]) -> None:
    """Functions that return an ndarray of the state: NumPy writes it later, unseen."""
    state = np.array([1.0, 2.0, 3.0])

    def function(x: Any) -> Any:
        result = CONSTRUCTS[name](view(state))
        state[...] = 7.0
        return np.asarray(tj.extractdata(result)).tolist() if tj.isdlarray(result) else result.tolist()

    for run in (function, lambda x: tj.dlfeval(function, x), *[tj.dlaccelerate(function)] * 4):
        state[...] = [1.0, 2.0, 3.0]
        assert run(np.ones(1)) == view(np.array([1.0, 2.0, 3.0])).tolist()
