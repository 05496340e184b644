# SPDX-License-Identifier: BSD-3-Clause
"""Operands that are seldom given, which random programs found: NumPy's sizes, dtypes and numbers, in replays too."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj

X = np.array([[1.75, -2.5, 0.0], [3.5, 4.0, -1.25]])
Z = X + 1j * np.array([[0.0, 1.0, 0.0], [2.0, 0.0, 0.0]])

N = np.array([127, -128, 100, 7], np.int8)
M = np.arange(12.0).reshape(3, 4)
HEIGHTS = np.array([1 + 1j, 2, 3j])

CASES = {
    "lcm that does not fit": (lambda n: np.lcm(n, np.int8(2)), N),
    "lcm of the smallest number": (lambda n: np.lcm(n, n[::-1]), N),
    "choose by numbers that are bytes": (lambda n: np.choose(n > 0, [n, 1]), N),
    "rfft2 twice along an axis": (lambda x: np.fft.rfft2(x, axes=(0, 0)).real.round(9) + 0.0, M),
    "fftn twice along an axis, of sizes": (lambda x: np.fft.fftn(x, (-1, 3), axes=(0, 0)).real.round(9) + 0.0, M),
    "irfftn of all elements": (lambda x: np.fft.irfftn(x, s=(4, -1), axes=(0, 1)).round(9) + 0.0, M),
    "irfftn": (lambda x: np.fft.irfftn(x).round(9) + 0.0, M),
    "interp of complex heights": (lambda z: np.interp([-1.0, 0.5, 1.5, 9.0], [0, 1, 2], z), HEIGHTS),
    "interp of complex heights, outside": (lambda z: np.interp([-1.0, 0.5, 9.0], [0, 1, 2], z, 1j, -2.0), HEIGHTS),
    "interp of complex heights, periodic": (lambda z: np.interp([-1.0, 0.5, 9.0], [0, 1, 2], z, period=2.5), HEIGHTS),
    **{
        f"cond by {order}": (lambda x, order=order: np.linalg.cond(x, order).round(9), np.array([[1, 2], [3.0, 5]]))
        for order in (-1, 1, "nuc", "fro", np.inf, -np.inf)
    },
    **{
        f"mean as {np.dtype(dtype).name} of {array.dtype.name}, axis {axis}": (
            lambda x, dtype=dtype, axis=axis: np.mean(x, axis=axis, dtype=dtype),
            array,
        )
        for dtype in (np.int64, np.int8, np.uint8, bool)
        for array in (abs(X), X > 0, np.array([[100, 100, 90]], np.int8))
        for axis in (None, -1)
    },
    "mean as int32 of no elements": (lambda x: np.mean(x, axis=0, dtype=np.int32), np.zeros((2, 0))),
    **{
        f"emath.{name} of {np.dtype(dtype).name}": (lambda x, name=name: getattr(np.emath, name)(x), np.ones(3, dtype))
        for name in ("sqrt", "log", "log2", "log10", "arccos", "arcsin")
        for dtype in (bool, np.int8, np.uint8, np.int16)
    },
    "emath.logn of uint8": (lambda x: np.emath.logn(2, x), np.array([2, 4, 16], np.uint8)),
    "select of numbers of Python": (lambda x: np.select([x > 1, x > 0], [x, 1j], 2.5), X.astype(np.float32)),
    "select of numbers of Python that wrap": (lambda n: np.select([n > 0, n < 0], [n, 300], 300), N),
    "condition of zeros": (lambda x: np.linalg.cond(x), np.array([[[0.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 2.0]]])),
    "bits of no columns": (lambda n: np.packbits(n, axis=0), np.zeros((3, 0), int)),
    "roots and reciprocals of complex numbers by the operator": (
        lambda z: (z**0.5, z**-1),
        np.array([-4.0, -np.inf, np.inf, 0.25, 0.0, 2j]),
    ),
    "choose by bools": (lambda x: np.choose(x > 0, [x, -1.0]), X),
    "choose by bools, clipped": (lambda x: np.choose(x > 0, [x, -1.0, 7.0], mode="clip"), X),
    "choose by bools, wrapped": (lambda x: np.choose(x > 0, [x], mode="wrap"), X),
    "nonzero of complex numbers": (np.nonzero, Z),
    "flatnonzero of complex numbers": (np.flatnonzero, Z),
    "argwhere of complex numbers": (np.argwhere, Z),
    **{
        f"conj of {np.dtype(dtype).name}": (lambda x: x.conj(), X.astype(dtype))
        for dtype in (bool, np.int8, np.float32, complex)
    },
    **{
        f"{name} of {sizes}, axis {axis}": (
            lambda x, name=name, axis=axis: getattr(np, name)(x, axis=axis),
            np.zeros(sizes, dtype),
        )
        for name, dtype in (("argmax", np.uint32), ("argmin", bool), ("argmax", np.float64))
        for sizes, axis in (((2, 0), 0), ((2, 3, 0), 1), ((3, 2, 0), 0), ((0, 3), 1), ((0, 3, 0), 1))
    },
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_as_numpy(name: str) -> None:
    function, array = CASES[name]
    with np.errstate(all="ignore"):
        expected = leaves(function(array))
        ways: list[Callable[..., Any]] = [lambda x: function(tj.dlarray(x)), *[tj.dlaccelerate(function)] * 4]
        for run in ways:
            found = leaves(run(array))
            assert len(found) == len(expected)
            for have, want in zip(found, expected, strict=True):
                assert have.dtype == want.dtype
                np.testing.assert_array_equal(have, want)


def leaves(result: Any) -> list[np.ndarray]:
    return [np.asarray(part) for part in tj.tree.flatten(result)[0]]


REFUSED = {
    "a mask that is shorter than the axis": (lambda x: np.delete(x, [True, False], axis=1), X),
    "a number of Python that the choices cannot hold": (
        lambda n: np.select([n > 0, n > 9], [n, 300]),
        abs(N).astype(np.uint8),
    ),
    "bits of floats": (np.packbits, X),
    "bits of complex numbers": (lambda x: np.packbits(x, axis=0), Z),
    "a kind of sort that is none": (lambda x: np.sort(x, kind="bubble"), X),
    "a kind of argsort that is none": (lambda x: np.argsort(x, kind="timsort"), X),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_as_by_numpy(name: str) -> None:
    function, array = REFUSED[name]
    with pytest.raises((TypeError, ValueError)):
        function(array)
    with pytest.raises(tj.ArgumentError, match=r"^np\.(delete|select|packbits|sort|argsort): "):
        function(tj.dlarray(array))
