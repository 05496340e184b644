# SPDX-License-Identifier: BSD-3-Clause
"""NumPy's answers at the edges: an axis of a number, triangles of a vector, empty arrays, methods that write."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj

S, V, A, NONE = np.array(3.0), np.array([3.0, 1.0, 2.0]), np.arange(6.0).reshape(2, 3), np.zeros((2, 0))
UFUNCS = (
    "sum",
    "prod",
    "max",
    "min",
    "any",
    "all",
    "argmax",
    "argmin",
    "cumsum",
    "ptp",
    "count_nonzero",
    "argsort",
    "cumprod",
    "nansum",
    "nanprod",
    "nanmax",
    "nanmin",
    "nancumprod",
    "cumulative_sum",
    "cumulative_prod",
)


def along(name: str, axis: int) -> Callable[..., Any]:
    return lambda x: getattr(np, name)(x, axis=axis)


def into(name: str, axis: int) -> Callable[..., Any]:
    return lambda x, out: getattr(x, name)(axis=axis, out=out)


CALLS: list[tuple[Callable[..., Any], np.ndarray]] = [
    *[(along(name, axis), S) for name in UFUNCS for axis in (0, -1)],
    (lambda x: x.sum(axis=0), S),
    (np.cumulative_sum, S),
    *[(lambda x, axis=axis: np.repeat(x, 3, axis=axis), S) for axis in (0, -1)],
    *[(lambda x, axis=axis: np.take(x, [0, 0], axis=axis), S) for axis in (0, -1)],
    (lambda x: x.take(0, axis=0), S),
    (np.add.reduce, S),
    (lambda x: np.maximum.reduce(x, axis=0), S),
    (lambda x: np.argsort(x, axis=None), S),
    *[(lambda x, k=k: np.tril(x, k), V) for k in (-1, 0, 2)],
    *[(lambda x, k=k: np.triu(x, k), V) for k in (-1, 0, 2)],
    (lambda x: np.compress([True, False, True, False, False], x), V),
    (lambda x: np.compress([0, 1, 0], x, axis=0), A),
    (lambda x: np.partition(x, 0), NONE),
    (lambda x: np.argpartition(x, 2), NONE),
]  # fmt: skip


@pytest.mark.parametrize(("call", "x"), CALLS)
def test_as_numpy_has_it(call: Callable[..., Any], x: np.ndarray) -> None:
    want = np.asarray(call(x))
    accelerated = tj.dlaccelerate(call)
    for found in (call(tj.dlarray(x)), *[accelerated(tj.dlarray(x)) for _ in range(3)]):
        assert (found.shape, found.dtype, found.tolist()) == (want.shape, want.dtype, want.tolist())


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.sum(x, axis=1),
        lambda x: np.sum(x, axis=(0,)),
        lambda x: np.mean(x, axis=0),
        lambda x: np.sort(x, axis=0),
        lambda x: np.argsort(x, axis=1),
        lambda x: np.compress([0, 0, 0, 1], x.reshape(1)),
    ],
)
def test_what_numpy_refuses(call: Callable[..., Any]) -> None:
    for x in (S, tj.dlarray(S)):
        with pytest.raises((ValueError, IndexError)):
            call(x)


def test_the_gradient_of_a_triangle_of_a_vector() -> None:
    slope = tj.dlfeval(lambda x: tj.dlgradient((np.tril(x) ** 2).sum(), x), tj.dlarray(V))
    assert slope.tolist() == (2 * V * np.array([3, 2, 1])).tolist()


WRITTEN = [
    *[(into(name, 0), np.zeros(3)) for name in ("sum", "prod", "mean", "max", "min", "var", "std")],
    *[(into(name, 0), np.zeros(3, bool)) for name in ("any", "all")],
    *[(into(name, 1), np.zeros(2, np.int64)) for name in ("argmax", "argmin")],
    *[(into(name, 1), np.zeros((2, 3))) for name in ("cumsum", "cumprod")],
    (lambda x, out: x.clip(1, 3, out=out), np.zeros((2, 3))),
    (lambda x, out: x.mean(axis=1, keepdims=True, out=out), np.zeros((2, 1))),
    (lambda x, out: (out.put([0, 5], x[1, :2]), out)[1], np.zeros((2, 3))),
    (lambda x, out: (out.put([7, -1], [8.0, 9.0], mode="wrap"), out)[1], np.zeros((2, 3))),
    (lambda x, out: (out.__setitem__(..., -x), out.partition(1), out.sort(0), out)[-1], np.zeros((2, 3))),
]  # fmt: skip


@pytest.mark.parametrize(("call", "out"), WRITTEN)
def test_methods_that_write(call: Callable[..., Any], out: np.ndarray) -> None:
    want = out.copy()
    assert call(A, want) is want
    accelerated = tj.dlaccelerate(call)
    for fun in (call, *[accelerated] * 3):
        written = tj.dlarray(out.copy())
        fun(tj.dlarray(A), written)
        assert written.tolist() == want.tolist()
    assert accelerated.stats.hits == 1
