# SPDX-License-Identifier: BSD-3-Clause
"""Convolutions of arrays, by sums of products or by Fourier transforms.

Note [parts of a convolution]. The full convolution of n and m elements has n + m - 1. "same" and "valid" are parts of
it, so each mode is a first place and a size along each axis. The direct method computes that part alone.
"""

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.aval import complex_dtype, part_dtype
from tracejit.errors import ArgumentError, DimsError
from tracejit.functions import elementwise, linear, movement
from tracejit.functions.axes import normalize_axes
from tracejit.functions.formats import in_dtype
from tracejit.util.arguments import is_option
from tracejit.util.text import brief

_MODES = ("full", "same", "valid")
_SHORT = 16  # elements: the products with a shorter operand are added one by one, which fuses
_SPATIAL = 3  # axes of a convolution that has a kernel of its own

_Sizes = tuple[int, ...]
_Method = Callable[[dlarray, dlarray, _Sizes, _Sizes, _Sizes], dlarray]


def convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> dlarray:
    """Return the convolution of two arrays: y[t] = sum over s of in1[t - s] in2[s].

    Args:
        in1: dlarray of any format, ndarray or list.
        in2: the other operand, with as many axes.
        mode: "full"; "same" for the middle part, of the size of `in1`; "valid" for the elements that are sums of as
            many products as the smaller operand has elements.
        method: "direct" for sums of products, "fft" for Fourier transforms, "auto" for transforms of floating-point
            operands of more than 16 elements.

    Returns:
        dlarray in the common dtype, with the labels of `in1`. Transforms of integers are rounded, exact up to 2**53.

    Raises:
        DimsError: for operands with different numbers of axes; for "valid", unless one of them is at least as large
            along every axis.
        ArgumentError: for another mode or method.

    The adjoint is a correlation with the other operand.

    Examples:
        >>> import tracejit as tj
        >>> tj.signal.convolve([1, 2, 3], [1, -1]).tolist()
        [1, 1, 1, -3]
    """
    return _chosen("signal.convolve", in1, in2, mode, method, lambda x: x)


def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> dlarray:
    """Return the cross-correlation of two arrays: sums of products of `in1` and the conjugate of `in2`, shifted.

    Args:
        in1: dlarray of any format, ndarray or list.
        in2: the other operand, with as many axes.
        mode: as in `convolve`.
        method: as in `convolve`.

    Returns:
        dlarray in the common dtype, with the labels of `in1`. Element k of a vector is the sum over t of
        in1[t] conj(in2[t - k + n - 1]), n the size of `in2`.

    Raises:
        DimsError: for operands with different numbers of axes; for "valid", unless one of them is at least as large
            along every axis.
        ArgumentError: for another mode or method.

    Examples:
        >>> import tracejit as tj
        >>> tj.signal.correlate([1, 2, 3], [0, 1], mode="same").tolist()
        [1, 2, 3]
    """
    return _chosen("signal.correlate", in1, in2, mode, method, _turned)


def fftconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> dlarray:
    """Return the convolution of two arrays by Fourier transforms, along some axes.

    Args:
        in1: dlarray of any format, ndarray or list.
        in2: the other operand, with as many axes; along axes that are not convolved sizes are equal or 1.
        mode: as in `convolve`.
        axes: the axes, by number or label; None for all.

    Returns:
        dlarray of floating-point numbers, with the labels of `in1`.

    Raises:
        DimsError: for operands whose sizes do not fit, or if they have no such axes.
        ArgumentError: for another mode.

    Examples:
        >>> import tracejit as tj
        >>> tj.signal.fftconvolve([[1.0, 2.0], [3.0, 4.0]], [[1.0, 1.0]], axes=1).round(12).tolist()
        [[1.0, 3.0, 2.0], [3.0, 7.0, 4.0]]
    """
    return _along("signal.fftconvolve", in1, in2, mode, axes, _by_transforms)


def oaconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> dlarray:
    """Return the convolution of two arrays by Fourier transforms of parts, the overlap-add method.

    It is faster than `fftconvolve` where one operand is much larger.

    Args:
        in1: dlarray of any format, ndarray or list.
        in2: the other operand, with as many axes; along axes that are not convolved sizes are equal or 1.
        mode: as in `convolve`.
        axes: the axes, by number or label; None for all.

    Returns:
        dlarray of floating-point numbers, with the labels of `in1`.

    Raises:
        DimsError: for operands whose sizes do not fit, or if they have no such axes.
        ArgumentError: for another mode.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> tj.signal.oaconvolve(np.arange(6.0), [1.0, -1.0], mode="valid").round(12).tolist()
        [1.0, 1.0, 1.0, 1.0, 1.0]
    """
    return _along("signal.oaconvolve", in1, in2, mode, axes, _by_parts)


def _turned(x: dlarray) -> dlarray:
    """Return the conjugate of an array with its axes reversed."""
    return movement.flip(linear.conjugated(x)) if x.ndim else linear.conjugated(x)


def _operands(function: str, in1: Any, in2: Any, mode: Any) -> tuple[dlarray, dlarray, str | None]:
    first, second = as_array(in1, function, "in1"), as_array(in2, function, "in2")
    if first.ndim != second.ndim:
        raise DimsError(
            f"{function}: in1 has {first.ndim} axes and in2 {second.ndim}, expected as many; reshape one of them."
        )
    if not is_option(mode, _MODES):
        raise ArgumentError(f"{function}: mode must be 'full', 'same' or 'valid', not {brief(mode)}.")
    return movement.relabel(first, None), movement.relabel(second, None), first._format


def _chosen(
    function: str, in1: Any, in2: Any, mode: Any, method: Any, turned: Callable[[dlarray], dlarray]
) -> dlarray:
    first, second, format = _operands(function, in1, in2, mode)
    if not is_option(method, ("auto", "direct", "fft")):
        raise ArgumentError(f"{function}: method must be 'auto', 'direct' or 'fft', not {brief(method)}.")
    dtype = np.result_type(first.dtype, second.dtype)
    second = turned(second)
    if method == "auto":
        is_large = min(first.size, second.size) > _SHORT and dtype.kind in "fc"
        method = "fft" if is_large else "direct"
    if method == "direct":
        found = _part(
            function, in_dtype(first, dtype), in_dtype(second, dtype), mode, range(first.ndim), _direct
        )
    else:
        found = _part(function, _floating(first), _floating(second), mode, range(first.ndim), _by_transforms)
    if dtype.kind in "biu" and found.dtype != dtype:
        found = elementwise.rint(found)
    return movement.relabel(in_dtype(found, dtype), format)


def _along(function: str, in1: Any, in2: Any, mode: Any, axes: Any, method: _Method) -> dlarray:
    first, second, format = _operands(function, in1, in2, mode)
    numbers = normalize_axes(function, movement.relabel(first, format), axes)
    beside = [i for i in range(first.ndim) if i not in numbers]
    if any(first.shape[i] != second.shape[i] and 1 not in (first.shape[i], second.shape[i]) for i in beside):
        raise DimsError(
            f"{function}: in1 has size {first.shape} and in2 {second.shape}, expected equal sizes, or 1, along axes "
            f"that are not convolved: {tuple(beside)}."
        )
    return movement.relabel(
        _part(function, _floating(first), _floating(second), mode, numbers, method), format
    )


def _floating(x: dlarray) -> dlarray:
    wanted = complex_dtype(x.dtype)
    return in_dtype(x, wanted if x.dtype.kind == "c" else part_dtype(wanted))


def _part(function: str, x: dlarray, v: dlarray, mode: str, axes: Sequence[int], method: _Method) -> dlarray:
    """Return the part of a convolution that a mode names: Note [parts of a convolution]."""
    sizes = [(x.shape[axis], v.shape[axis]) for axis in axes]
    if mode == "valid" and any(n < m for n, m in sizes):
        if any(n > m for n, m in sizes):
            raise DimsError(
                f"{function}: in1 has size {x.shape} and in2 {v.shape}, expected for mode='valid' that one of them is "
                "at least as large along every axis."
            )
        x, v, sizes = v, x, [(m, n) for n, m in sizes]
    common = np.broadcast_shapes(
        *[tuple(1 if i in axes else n for i, n in enumerate(y.shape)) for y in (x, v)]
    )
    starts, counts = [0] * x.ndim, list(common)
    for axis, (n, m) in zip(axes, sizes, strict=True):
        starts[axis] = {"full": 0, "same": (m - 1) // 2, "valid": m - 1}[mode]
        counts[axis] = {"full": n + m - 1, "same": n, "valid": n - m + 1}[mode]
    if not x.size or not v.size:
        shape = [0 if i in axes and 0 in (x.shape[i], v.shape[i]) else n for i, n in enumerate(counts)]
        return as_array(np.zeros(shape, np.result_type(x.dtype, v.dtype)))
    if all(1 in pair for pair in sizes):
        return _cut(x * v, starts, counts)
    return method(x, v, tuple(axes), tuple(starts), tuple(counts))


def _cut(x: dlarray, starts: Sequence[int], counts: Sequence[int]) -> dlarray:
    parts = enumerate(zip(starts, counts, x.shape, strict=True))
    slices = {axis: slice(start, start + n) for axis, (start, n, size) in parts if (start, n) != (0, size)}
    return movement.sliced(x, slices) if slices else x


def _direct(x: dlarray, v: dlarray, axes: _Sizes, starts: _Sizes, counts: _Sizes) -> dlarray:
    """Return part of a convolution along all axes by sums of products, in the dtype of both."""
    if v.size > x.size:
        x, v = v, x
    reach = [(start - m + 1, count + m - 1) for m, start, count in zip(v.shape, starts, counts, strict=True)]
    x = _cut(x, [max(0, first) for first, _ in reach], [
        min(n, first + size) - max(0, first) for n, (first, size) in zip(x.shape, reach, strict=True)
    ])  # fmt: skip
    widths = [
        (max(0, -first), size - max(0, -first) - n) for n, (first, size) in zip(x.shape, reach, strict=True)
    ]
    x = _bordered(x, widths)
    if v.size <= _SHORT:
        total: Any = None
        for place in product(*map(range, v.shape)):
            term = v[place] * _cut(x, [m - 1 - s for m, s in zip(v.shape, place, strict=True)], counts)
            total = term if total is None else total + term
        return total  # type: ignore[no-any-return]
    v = movement.flip(v)
    if x.dtype.kind == "f" and x.dtype.itemsize > 2 and x.ndim <= _SPATIAL:
        ones, spatial = (1,) * x.ndim, "S" * x.ndim
        found = apply(
            "convolution", movement.reshape(x, (1, 1, *x.shape)), movement.reshape(v, (1, 1, *v.shape)),
            labels=("BC" + spatial, "UC" + spatial, "BU" + spatial), size=counts, strides=ones,
            before=(0,) * x.ndim, dilation=ones, groups=1,
        )  # fmt: skip
        return movement.reshape(found, counts)
    for axis, (count, m) in enumerate(zip(counts, v.shape, strict=True)):
        windows = np.arange(count)[:, None] + np.arange(m)
        x = apply("take", x, windows, axis=2 * axis)
    x = movement.transpose(x, (*range(0, x.ndim, 2), *range(1, x.ndim, 2)))
    products = linear.matmul(movement.reshape(x, (math.prod(counts), v.size)), movement.ravel(v))
    return movement.reshape(products, counts)


def _bordered(x: dlarray, widths: Sequence[tuple[int, int]]) -> dlarray:
    return apply("pad", x, widths=tuple(widths), value=0) if any(map(any, widths)) else x


def _fast(n: int) -> int:
    """Return the smallest number from n on that has no prime factor above 5.

    >>> [_fast(n) for n in (1, 7, 11, 13, 1001)]
    [1, 8, 12, 15, 1024]
    """
    found = 1 << (n - 1).bit_length()
    five = 1
    while five < found:
        three = five
        while three < found:
            found = min(found, three << max(0, (-(-n // three) - 1).bit_length()))
            three *= 3
        five *= 5
    return found


def _by_transforms(x: dlarray, v: dlarray, axes: _Sizes, starts: _Sizes, counts: _Sizes) -> dlarray:
    """Return part of a convolution as the transform of a product of transforms.

    The transforms are as long as the part needs: what is added to it from beyond the end of a circle falls beside it.
    """
    axes = tuple([axis for axis in axes if x.shape[axis] > 1 and v.shape[axis] > 1])
    lengths = []
    for axis in axes:
        n, m, start, count = x.shape[axis], v.shape[axis], starts[axis], counts[axis]
        lengths.append(_fast(max(n, m, n + m - 1 - start, start + count)))
    dtype = np.result_type(x.dtype, v.dtype)
    return _cut(_circular(in_dtype(x, dtype), in_dtype(v, dtype), axes, lengths), starts, counts)


def _circular(x: dlarray, v: dlarray, axes: Sequence[int], lengths: Sequence[int]) -> dlarray:
    """Return a convolution on circles of some lengths along axes, at least the sizes of both operands."""
    is_real = x.dtype.kind == "f"
    spectra = []
    for y in (x, v):
        widths = [(0, 0)] * y.ndim
        for axis, n in zip(axes, lengths, strict=True):
            widths[axis] = (0, n - y.shape[axis])
        y = _bordered(y, widths)
        *others, last = axes
        y = apply("rfft", y, axis=last) if is_real else apply("fft", y, axis=last, inverse=False)
        for axis in others:
            y = apply("fft", y, axis=axis, inverse=False)
        spectra.append(y)
    found = spectra[0] * spectra[1]
    for axis in others:
        found = apply("fft", found, axis=axis, inverse=True, power=1.0)
    if is_real:
        return apply("irfft", found, axis=last, n=lengths[-1], power=1.0)
    return apply("fft", found, axis=last, inverse=True, power=1.0)


def _by_parts(x: dlarray, v: dlarray, axes: _Sizes, starts: _Sizes, counts: _Sizes) -> dlarray:
    """Return part of a convolution, whose longer operand along each axis is cut into parts.

    The convolution of a part of s elements and the whole shorter operand of m elements overlaps the next one by m - 1.
    """
    axes = tuple([axis for axis in axes if x.shape[axis] > 1 and v.shape[axis] > 1])
    dtype = np.result_type(x.dtype, v.dtype)
    pair = [in_dtype(x, dtype), in_dtype(v, dtype)]
    lengths: list[int] = []
    steps: list[int] = []
    for axis in reversed(axes):
        sizes = [y.shape[axis] for y in pair]
        n, m = max(sizes), min(sizes)
        length = _best_length(n, m)
        step = length - m + 1
        parts = -(-n // step)
        longer = sizes.index(n)
        for i, y in enumerate(pair):
            widths = [(0, 0)] * y.ndim
            widths[axis] = (0, parts * step - n if i == longer else 0)
            y = _bordered(y, widths)
            count = parts if i == longer else 1
            pair[i] = movement.reshape(
                y, (*y.shape[:axis], count, y.shape[axis] // count, *y.shape[axis + 1 :])
            )
        lengths.insert(0, length)
        steps.insert(0, step)
    # Each of the axes has an axis of parts before it now.
    found = _circular(pair[0], pair[1], [axis + i + 1 for i, axis in enumerate(axes)], lengths)
    for axis, step in zip(axes, steps, strict=True):
        found = _overlapped(found, axis, step)
    return _cut(found, starts, counts)


def _best_length(n: int, m: int) -> int:
    """Return the length of transforms with which a convolution of n and m <= n elements takes the fewest operations."""
    whole = _fast(n + m - 1)
    powers = [1 << k for k in range((2 * m - 1).bit_length(), whole.bit_length())]
    return min([whole, *powers], key=lambda length: -(-n // (length - m + 1)) * length * math.log2(length))


def _overlapped(x: dlarray, axis: int, step: int) -> dlarray:
    """Return the sum of parts, numbered along an axis, whose elements begin `step` places after one another's."""
    parts, length = x.shape[axis : axis + 2]
    before, after = x.shape[:axis], x.shape[axis + 2 :]
    if parts == 1:
        return movement.squeeze(x, axis)
    heads = movement.sliced(x, {axis + 1: slice(0, step)})
    tails = movement.sliced(x, {axis + 1: slice(step, length)})
    widths = [(0, 0)] * x.ndim
    widths[axis + 1] = (0, 2 * step - length)
    tails = _bordered(tails, widths)
    total: Any = None
    for y, border in ((heads, (0, step)), (tails, (step, 0))):
        flat = movement.reshape(y, (*before, parts * step, *after))
        widths = [(0, 0)] * flat.ndim
        widths[axis] = border
        flat = _bordered(flat, widths)
        total = flat if total is None else total + flat
    return total  # type: ignore[no-any-return]
