# SPDX-License-Identifier: BSD-3-Clause
"""The classes that recorded arrays and numbers are instances of: those of NumPy's, where the user's code asks."""

import functools
import json
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from accelerated import dlaccelerate

import tracejit as tj


@functools.singledispatch
def kind(x: Any) -> str:
    return "other"


@kind.register
def _(x: np.ndarray) -> str:
    return "array"


@kind.register(float)
def _(x: float) -> str:
    return "number"


CLASSES = (
    np.ndarray, float, int, bool, complex, np.float64, np.float32, np.int64, np.bool_, np.complex128, np.generic,
    numbers.Number, numbers.Real, (int, float), (list, tuple, np.ndarray), dict,
)  # fmt: skip
HOLDER = type("Holder", (), {"w": np.ones(3), "v": np.float64(2.0)})()


def answers(x: Any, k: Any) -> list[Any]:
    things = [
        x, x + 1, x.T, x > 0, x[x > 0], x[0], x[0] > 0, x[0, ...], x.sum(), x.mean() * 2, x @ x, x.astype(int)[0],
        (x * 1j)[0], x.astype(np.float32)[0], HOLDER.w, HOLDER.w * x, HOLDER.v * x[0], np.zeros(3), np.zeros(3)[0],
        np.zeros(3).sum() * x[0], k, k * x, k * x[0], x.dtype, len(x), x.shape,
    ]  # fmt: skip
    return [[isinstance(thing, one) for one in CLASSES] + [kind(thing)] for thing in things]


@pytest.mark.parametrize("given", [np.array, tj.dlarray], ids=["ndarray", "dlarray"])
@pytest.mark.parametrize("run", [dlaccelerate, lambda function: functools.partial(tj.dlfeval, function)])
def test_instances(run: Callable[..., Any], given: Callable[..., Any]) -> None:
    want, function = answers(np.array([1.0, 2.0, 3.0]), 2.0), run(answers)
    for k in (2.0, 3.0, 4.0):
        assert function(given([1.0, 2.0, 3.0]), k) == want


class Kinds:
    """A method that is registered for dlarrays."""

    @functools.singledispatchmethod
    def own(self, x: Any) -> str:
        return "other"

    @own.register(tj.dlarray)
    def _(self, x: Any) -> str:
        return "dlarray"


own: Any = functools.singledispatch(lambda x: "other")
own.register(tj.dlarray)(lambda x: "dlarray")
own.register(list)(lambda x: "list")
both: Any = functools.singledispatch(lambda x: "other")
both.register(tj.dlarray)(lambda x: "dlarray")
both.register(np.ndarray)(lambda x: "ndarray")
both.register(float)(lambda x: "float")


@pytest.mark.parametrize("run", [dlaccelerate, lambda function: functools.partial(tj.dlfeval, function)])
def test_single_dispatch_for_dlarrays(run: Callable[..., Any]) -> None:
    """A function that is registered for dlarrays takes them in a recording, too, unless one for NumPy's class does."""
    function = run(lambda x: [own(x), own(x[0]), own([x]), Kinds().own(x), both(x), both(x[0]), both(1)])
    want = ["dlarray", "dlarray", "list", "dlarray", "ndarray", "float", "other"]
    assert [function(tj.dlarray([1.0 * n, 2.0])) for n in range(3)] == [want] * 3


def test_the_branch_for_arrays_is_taken() -> None:
    def doubled(x: Any) -> Any:
        if not isinstance(x, np.ndarray):
            raise TypeError("x must be an ndarray")
        return sum(value * 2 if isinstance(value, float) else 0.0 for value in x)

    function, x = dlaccelerate(doubled), np.array([1.0, 2.0])
    assert [float(function(x * n)) for n in (1, 2, 3)] == [6.0, 12.0, 18.0]
    assert isinstance(function(x), tj.dlarray)


def test_outside_of_recordings_and_for_libraries_a_dlarray_is_none() -> None:
    assert not isinstance(tj.dlarray([1.0]), np.ndarray)
    with pytest.raises(TypeError, match="not JSON serializable"):
        dlaccelerate(lambda x: json.dumps(x.sum()))(np.ones(2))
