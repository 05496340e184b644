# SPDX-License-Identifier: BSD-3-Clause
"""Transforms of lines by the ufuncs that np.fft calls, whose inner loops take lines anywhere in memory."""

import importlib
from collections.abc import Sequence
from functools import cache
from math import prod

import numpy as np

from tracejit.aval import Aval, complex_dtype, part_dtype
from tracejit.errors import ArgumentError
from tracejit.ops.op import KernelCall, Kind, Op, RangeCut, Sample

FOURIER_UFUNCS = ("fft", "ifft", "irfft", "rfft_n_even", "rfft_n_odd")
"""The ufuncs of np.fft: an operand, the factor of the sums, and the result."""


@cache
def fourier_ufunc(name: str) -> np.ufunc:
    """Return NumPy's ufunc of transforms of a name, which np.fft calls.

    Raises:
        ArgumentError: if the NumPy that is installed has none.
    """
    try:
        ufunc = getattr(importlib.import_module("numpy.fft._pocketfft_umath"), name, None)
    except ImportError:
        ufunc = None
    if name in FOURIER_UFUNCS and isinstance(ufunc, np.ufunc) and (ufunc.nin, ufunc.nout) == (2, 1):
        return ufunc
    raise ArgumentError(
        f"numpy.fft.{name}: the NumPy that is installed has no such function; install another version."
    )


def has_ufunc(name: str) -> bool:
    """Return whether the NumPy that is installed has a ufunc of transforms."""
    try:
        fourier_ufunc(name)
    except ArgumentError:
        return False
    return True


def _infer(x: Aval, factor: Aval, *, ufunc: str, axis: int, n: int) -> Aval:
    count = n // 2 + 1 if ufunc.startswith("rfft") else n
    dtype = part_dtype(complex_dtype(x.dtype)) if ufunc == "irfft" else complex_dtype(x.dtype)
    return Aval((*x.shape[:axis], count, *x.shape[axis + 1 :]), x.format, dtype)


def _numpy(x: np.ndarray, factor: np.ndarray, *, ufunc: str, axis: int, n: int) -> np.ndarray:
    aval = _infer(Aval(x.shape, None, x.dtype), Aval((1,), None, factor.dtype), ufunc=ufunc, axis=axis, n=n)
    out = np.empty(aval.shape, aval.dtype)
    fourier_ufunc(ufunc)(x, factor[0], out=out, axes=[(axis,), (), (axis,)])
    return out


def _loop(*avals: Aval, ufunc: str, axis: int, n: int) -> str:
    """Return the name of the loop of operands."""
    x, factor = avals
    results = _infer(x, factor, ufunc=ufunc, axis=axis, n=n).dtype.char
    return f"numpy.fft.{ufunc}/{x.dtype.char}{factor.dtype.char}->{results}"


_TOGETHER = 32  # lines of a part of the work that is not small beside the roots
_MOST_PARTS = 16
_LANES = 4  # lines that a loop takes at once, at most


def _bundle(lines: int) -> int:
    """Return how many lines are never shared by two calls: each call computes the roots of its size anew."""
    if lines < 4 * _LANES:
        return max(1, lines)
    wanted = min(-(-lines // 2), max(_TOGETHER, lines // _MOST_PARTS))
    return -(-wanted // _LANES) * _LANES


def _numbers(out: Aval, x: Aval, factor: Aval, *, ufunc: str, axis: int, n: int) -> Sequence[int]:
    """Return bundles of lines, lines of each, lines, those of a group, and sizes and places.

    The places are the bytes between groups, lines and elements of the operand, and then of the result.
    """
    outer, inner = prod(x.shape[:axis]), prod(x.shape[axis + 1 :])
    places = []
    for aval in (x, out):
        size, count = aval.dtype.itemsize, aval.shape[axis]
        if inner == 1:
            places += [0, count * size, size]
        else:
            places += [count * inner * size, size, inner * size]
    lines = outer if inner == 1 else inner
    total = outer * inner
    bundle = _bundle(lines)
    return (0, -(-total // bundle), bundle, total, max(1, lines), x.shape[axis], out.shape[axis], *places)


def _ns(numbers: Sequence[int]) -> float:
    """Return about how long all lines take."""
    n = max(numbers[5:7])
    return numbers[3] * (100.0 + n * n.bit_length())


OPS = (
    Op(name="lines_by_numpy", doc="transforms of the lines along an axis by a ufunc of np.fft, times a factor; no "
       "derivative", kind=Kind.KERNEL, takes_complex=True, infer=_infer, numpy=_numpy, vjp=None, analytic=False,
       emit=KernelCall("fourier_loop_fft", _numbers, routine=_loop,
                       variant=lambda *avals, ufunc, axis, n: f"fourier_loop_{ufunc}",
                       cut=RangeCut(_ns, lambda numbers: numbers[1])),
       samples=(Sample(((2, 4), (1,)), {"ufunc": "rfft_n_even", "axis": 1, "n": 4}, dtypes=("float64", "float64")),)),
)  # fmt: skip
