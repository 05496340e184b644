# SPDX-License-Identifier: BSD-3-Clause
"""NumPy's discrete Fourier transforms, ``np.fft``, on dlarrays.

Labels: a transformed axis keeps its label. float32 gives complex64, as in NumPy 2; integers give complex128.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.errors import ArgumentValueError
from tracejit.functions import movement, rolling
from tracejit.functions.axes import normalize_axis
from tracejit.functions.linear import conjugated
from tracejit.functions.refusals import refuse
from tracejit.util.arguments import integer, integers, is_option
from tracejit.util.text import brief

_SWAPPED = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def _cut(name: str, array: dlarray, n: int, axis: int) -> dlarray:
    """Return an array cut, or padded with zeros, to n elements along an axis."""
    extent = array.shape[axis]
    if n < 1:
        refuse(name, f"n must be positive, not {n}", ArgumentValueError)
    if n < extent:
        return movement.sliced(array, {axis: slice(0, n)})
    if n == extent:
        return array
    return apply(
        "pad", array, widths=tuple([(0, n - extent if i == axis else 0) for i in range(array.ndim)]), value=0
    )


def _operand(name: str, a: Any, n: Any, axis: Any, norm: Any) -> tuple[dlarray, int | None, int]:
    """Return an array, the number of elements to transform, and the axis."""
    array = as_array(a, name)
    if norm is not None and not is_option(norm, ("backward", "ortho", "forward")):
        refuse(name, f"norm must be 'backward', 'ortho' or 'forward', not {brief(norm)}", ArgumentValueError)
    if not array.ndim:
        refuse(name, "a has no axis to transform; pass an array with one")
    return array, None if n is None else integer(name, "n", n), normalize_axis(name, array, axis)


def _power(norm: Any, inverse: bool) -> float:
    """Return the power of the number of elements that `norm` divides by."""
    if norm == "ortho":
        return 0.5
    return float(inverse == (norm != "forward"))


def fft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> dlarray:
    """Return sums of a e**(-2 pi i k t / n) along an axis."""
    return _whole("np.fft.fft", a, n, axis, norm, False)


def ifft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> dlarray:
    """Return means of a e**(2 pi i k t / n) along an axis."""
    return _whole("np.fft.ifft", a, n, axis, norm, True)


def _whole(name: str, a: Any, n: Any, axis: Any, norm: Any, inverse: bool) -> dlarray:
    array, count, number = _operand(name, a, n, axis, norm)
    count = array.shape[number] if count is None else count
    array = _cut(name, array, count, number)
    return apply("fft", array, axis=number, inverse=inverse, power=_power(norm, inverse))


def rfft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> dlarray:
    """Return the first n // 2 + 1 elements of the transform of real numbers, which tell the others."""
    return _rfft("np.fft.rfft", a, n, axis, norm)


def _rfft(name: str, a: Any, n: Any, axis: Any, norm: Any) -> dlarray:
    array, count, number = _operand(name, a, n, axis, norm)
    count = array.shape[number] if count is None else count
    if array.dtype.kind == "c":
        refuse(name, f"a is {array.dtype}, expected real numbers; use np.fft.fft, or pass a.real")
    array = _cut(name, array, count, number)
    return apply("rfft", array, axis=number, power=_power(norm, False))


def irfft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> dlarray:
    """Return the n real numbers whose transform begins with a; 2 (m - 1) where n is not given."""
    return _irfft("np.fft.irfft", a, n, axis, norm)


def _irfft(name: str, a: Any, n: Any, axis: Any, norm: Any) -> dlarray:
    array, count, number = _operand(name, a, n, axis, norm)
    count = 2 * (array.shape[number] - 1) if count is None else count
    if count < 1:
        refuse(name, f"n must be positive, not {count}", ArgumentValueError)
    array = _cut(name, array, count // 2 + 1, number)
    return apply("irfft", array, axis=number, n=count, power=_power(norm, True))


def hfft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> dlarray:
    """Return the real transform of n numbers; `a` are the first ones, and the others are their conjugates."""
    _operand("np.fft.hfft", a, n, axis, norm)
    return _irfft("np.fft.hfft", conjugated(as_array(a, "np.fft.hfft")), n, axis, _SWAPPED[norm])


def ihfft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> dlarray:
    """Return the first n // 2 + 1 numbers whose transform, with their conjugates, is a."""
    _operand("np.fft.ihfft", a, n, axis, norm)
    return conjugated(_rfft("np.fft.ihfft", a, n, axis, _SWAPPED[norm]))


def _axes(
    name: str, array: dlarray, s: Any, axes: Any, to_real: bool = False
) -> tuple[tuple[int | None, ...], tuple[int, ...]]:
    """Return the numbers of elements and the axes of a transform along several.

    An axis that is given twice has the number of elements that it has now, as in NumPy, unless a different one is
    given. None stands for the last axis of a transform `to_real` numbers without a size.
    """
    sizes: Sequence[int]
    if s is None:
        sizes = [-1] * (array.ndim if axes is None else len(integers(name, "axes", axes)))
    else:
        sizes = integers(name, "s", s)
    given = range(-len(sizes), 0) if axes is None else integers(name, "axes", axes)
    if len(sizes) != len(given):
        refuse(
            name,
            f"s and axes have {len(sizes)} and {len(given)} elements, expected one size for each axis",
            ArgumentValueError,
        )
    numbers = tuple([normalize_axis(name, array, axis) for axis in given])
    known: list[int | None] = [array.shape[i] if n == -1 else n for n, i in zip(sizes, numbers, strict=True)]
    if to_real and s is None and known:
        known[-1] = None
    return tuple(known), numbers


def _several(name: str, inverse: bool, default: Any) -> Callable[..., dlarray]:
    def transform(a: Any, s: Any = None, axes: Any = default, norm: Any = None, out: Any = None) -> dlarray:
        array = as_array(a, name)
        for n, axis in reversed(list(zip(*_axes(name, array, s, axes), strict=True))):
            array = _whole(name, array, n, axis, norm, inverse)
        return array

    transform.__name__ = name.rpartition(".")[2]
    transform.__doc__ = f"Return the {'inverse ' if inverse else ''}transform along several axes."
    return transform


def _several_real(name: str, default: Any) -> Callable[..., dlarray]:
    def transform(a: Any, s: Any = None, axes: Any = default, norm: Any = None, out: Any = None) -> dlarray:
        array = as_array(a, name)
        pairs = list(zip(*_axes(name, array, s, axes), strict=True))
        if not pairs:
            refuse(name, "there is no axis to transform; pass one or more")
        array = _rfft(name, array, *pairs[-1], norm)
        for n, axis in reversed(pairs[:-1]):
            array = _whole(name, array, n, axis, norm, False)
        return array

    transform.__name__ = name.rpartition(".")[2]
    transform.__doc__ = (
        "Return the transform of real numbers along several axes, of the last one n // 2 + 1 elements."
    )
    return transform


def _several_to_real(name: str, default: Any) -> Callable[..., dlarray]:
    def transform(a: Any, s: Any = None, axes: Any = default, norm: Any = None, out: Any = None) -> dlarray:
        array = as_array(a, name)
        pairs = list(zip(*_axes(name, array, s, axes, to_real=True), strict=True))
        if not pairs:
            refuse(name, "there is no axis to transform; pass one or more")
        for n, axis in pairs[:-1]:
            array = _whole(name, array, n, axis, norm, True)
        return _irfft(name, array, *pairs[-1], norm)

    transform.__name__ = name.rpartition(".")[2]
    transform.__doc__ = "Return the real numbers of which rfftn gives the transform."
    return transform


def _shift(name: str, sign: int) -> Callable[..., dlarray]:
    def shift(x: Any, axes: Any = None) -> dlarray:
        array = as_array(x, name)
        given = range(array.ndim) if axes is None else integers(name, "axes", axes)
        numbers = [normalize_axis(name, array, axis) for axis in given]
        shifts = [sign * (array.shape[axis] // 2) for axis in numbers]
        return rolling.roll(array, tuple(shifts), tuple(numbers)) if numbers else array

    shift.__name__ = name.rpartition(".")[2]
    shift.__doc__ = "Return the array with the element of frequency 0 in the middle, or back at the start."
    return shift


FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.fft.fft: fft,
    np.fft.ifft: ifft,
    np.fft.rfft: rfft,
    np.fft.irfft: irfft,
    np.fft.hfft: hfft,
    np.fft.ihfft: ihfft,
    np.fft.fft2: _several("np.fft.fft2", False, (-2, -1)),
    np.fft.ifft2: _several("np.fft.ifft2", True, (-2, -1)),
    np.fft.rfft2: _several_real("np.fft.rfft2", (-2, -1)),
    np.fft.irfft2: _several_to_real("np.fft.irfft2", (-2, -1)),
    np.fft.fftn: _several("np.fft.fftn", False, None),
    np.fft.ifftn: _several("np.fft.ifftn", True, None),
    np.fft.rfftn: _several_real("np.fft.rfftn", None),
    np.fft.irfftn: _several_to_real("np.fft.irfftn", None),
    np.fft.fftshift: _shift("np.fft.fftshift", 1),
    np.fft.ifftshift: _shift("np.fft.ifftshift", -1),
}
