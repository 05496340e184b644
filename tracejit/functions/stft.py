# SPDX-License-Identifier: BSD-3-Clause
"""Transforms of segments: stft, the frequencies of a signal over time, and istft, its inverse."""

from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.aval import complex_dtype, part_dtype
from tracejit.errors import DimsError, DTypeError
from tracejit.functions import elementwise, movement
from tracejit.functions.axes import normalize_axis
from tracejit.functions.formats import describe, describe_sizes, in_dtype, labelled
from tracejit.functions.halves import in_single
from tracejit.util.arguments import as_index, check_room, check_sizes, flag, integer
from tracejit.util.named_tuples import NamedTuple

_LENGTH = 128  # of the window that is used where none is given
_NOTHING = 1e-10  # a sum of squares of windows so small counts as 0, as in SciPy


class _Segments(NamedTuple):
    """The segments of a signal.

    window      the weights of a segment
    hop         how many steps the next segment begins later
    length      of a transform, at least that of the window
    """

    window: dlarray
    hop: int
    length: int

    def places(self, count: int) -> np.ndarray:
        """Return the steps of each segment."""
        return self.hop * np.arange(count)[:, None] + np.arange(self.window.size)


@in_single
def stft(
    x: Any,
    window: Any = _LENGTH,
    *,
    overlap_length: Any = None,
    fft_length: Any = None,
    axis: Any = None,
    data_format: str | None = None,
) -> dlarray:
    """Return the short-time Fourier transform of a signal: the transforms of its segments, weighted by a window.

    Args:
        x: signals along the axis T of a labelled array, or along `axis`; at least as long as the window.
        window: weights, a vector, by which one can differentiate; or the length of a periodic Hann window.
        overlap_length: how many steps neighbouring segments share, less than the window has; by default three quarters.
        fft_length: the length of a transform, by default that of the window; the rest of a longer one is zeros, after
            the segment.
        axis: the axis of time, by number or label; by default T, or the last axis of an array without labels.
        data_format: labels of an unformatted `x`.

    Returns:
        complex dlarray, in which two axes take the place of the axis of time: frequencies (labelled S) and segments
        (with the label of time). For real signals it has the frequencies 0 to fft_length // 2, for complex ones all.
        Nothing is added before or after the signal: there are (steps - overlap_length) // hop segments, with
        hop = length of the window - overlap_length, and steps that fill no segment are left out.

    Raises:
        DimsError: if there is no such axis, or the window, the overlap, and the length of transforms do not fit.
        ArgumentError: if a length is no integer.

    y[f, k] = sum over t of window[t] x[t + k hop] exp(-2 pi i f t / fft_length).

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> wave = np.cos(np.pi / 2 * np.arange(32))
        >>> y = tj.stft(wave, 8, overlap_length=4)
        >>> y.shape, np.abs(y[:, 0]).round(12).tolist()
        ((5, 7), [0.0, 1.0, 2.0, 1.0, 0.0])
    """
    array, has_labels = labelled("stft", x, data_format)
    axis, format = _time("stft", array, axis), array._format
    array = movement.relabel(array, None)
    kind = array.dtype if array.dtype.kind in "fc" else np.dtype(np.float64)
    array = in_dtype(array, kind)
    segments = _segments("stft", window, overlap_length, fft_length, array)
    steps, count = array.shape[axis], segments.window.size
    if steps < count:
        raise DimsError(
            f"stft: x of {describe(array)} has {steps} steps along axis {axis}, fewer than the {count} of the window; "
            "use a shorter window, or pad the signal."
        )
    number = (steps - count) // segments.hop + 1
    shape = (*array.shape[:axis], number, segments.length, *array.shape[axis + 1 :])
    check_room("stft", check_sizes("stft", "the result", shape), array.dtype)
    parts = apply("take", array, segments.places(number), axis=axis)
    beside = (1,) * (array.ndim - axis - 1)
    parts = parts * movement.reshape(segments.window, (count, *beside))
    parts = _with_size(parts, axis + 1, segments.length)
    if parts.dtype.kind == "c":
        found = apply("fft", parts, axis=axis + 1, inverse=False)
    else:
        found = apply("rfft", parts, axis=axis + 1)
    found = movement.swapaxes(found, axis, axis + 1)
    if not has_labels or format is None:
        return found
    return movement.relabel(found, f"{format[:axis]}S{format[axis:]}")


@in_single
def istft(
    y: Any,
    window: Any = _LENGTH,
    *,
    overlap_length: Any = None,
    fft_length: Any = None,
    one_sided: bool = True,
    axis: Any = None,
    data_format: str | None = None,
) -> dlarray:
    """Return the signal that has a short-time Fourier transform, or comes closest to it.

    Args:
        y: transforms as `stft` returns them: along the axis of segments, T of a labelled array, and the axis before it,
            of frequencies.
        window: weights, or the length of a periodic Hann window, as for `stft`.
        overlap_length: as for `stft`.
        fft_length: as for `stft`.
        one_sided: whether `y` has the frequencies 0 to fft_length // 2 alone, and the signal is real.
        axis: the axis of segments, by number or label; by default T, or the last axis of an array without labels.
        data_format: labels of an unformatted `y`.

    Returns:
        dlarray with an axis of time, of hop (segments - 1) + length of the window steps, in place of both axes; real if
        `one_sided`. It is 0 where all windows are.

    Raises:
        DimsError: if there are no such axes, their sizes do not fit, or the window and the overlap do not.
        ArgumentError: if a length is no integer.

    x[t] = sum over k of window[t - k hop] s_k[t - k hop] / sum over k of window[t - k hop]^2, s_k the inverse
    transforms: the signal whose transform differs from y by the smallest sum of squares (D. Griffin and J. Lim, Signal
    estimation from modified short-time Fourier transform, 1984).

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> wave = np.sin(np.arange(32.0))
        >>> y = tj.stft(wave, 8, overlap_length=4)
        >>> bool(np.allclose(tj.istft(y, 8, overlap_length=4)[1:], wave[1:]))
        True
    """
    array, has_labels = labelled("istft", y, data_format, "y")
    axis, format = _time("istft", array, axis), array._format
    if not axis or (format is not None and format[axis - 1] != "S"):
        raise DimsError(
            f"istft: y of {describe(array)} has no axis of frequencies before axis {axis}, that of segments; "
            "pass what stft returns, or move the axes (np.moveaxis)."
        )
    array = movement.swapaxes(movement.relabel(array, None), axis - 1, axis)
    segments = _segments("istft", window, overlap_length, fft_length, array)
    wanted = segments.length // 2 + 1 if flag("istft", "one_sided", one_sided) else segments.length
    number, found = array.shape[axis - 1], array.shape[axis]
    if found != wanted or not number:
        raise DimsError(
            f"istft: y has {found} frequencies in {number} segments, expected {wanted} in one segment or more, for "
            f"fft_length={segments.length} and one_sided={bool(one_sided)}; pass the lengths that stft had."
        )
    if one_sided:
        parts = apply("irfft", array, axis=axis, n=segments.length, power=1.0)
    else:
        parts = apply("fft", array, axis=axis, inverse=True, power=1.0)
    weights = segments.window
    count, beside = weights.size, (1,) * (array.ndim - axis - 1)
    parts = movement.sliced(parts, {axis: slice(0, count)})
    squares = weights * weights
    parts = parts * movement.reshape(weights, (count, *beside))
    steps, places = segments.hop * (number - 1) + count, segments.places(number)
    shape = (*array.shape[: axis - 1], steps, *array.shape[axis + 1 :])
    total = apply("scatter_add", as_array(np.zeros(shape, parts.dtype)), places, parts, axis=axis - 1)
    spread = movement.broadcast_to(squares, (number, count))
    norm = apply("scatter_add", as_array(np.zeros(steps, squares.dtype)), places, spread, axis=0)
    norm = elementwise.where(norm > _NOTHING, norm, norm.dtype.type(1))
    signal = total / movement.reshape(norm, (steps, *beside))
    if not has_labels or format is None:
        return signal
    return movement.relabel(signal, format[: axis - 1] + format[axis:])


def _time(function: str, array: dlarray, axis: Any) -> int:
    """Return the number of the axis of time."""
    if axis is None:
        if not array.ndim:
            raise DimsError(f"{function}: an array without axes is no signal; pass a vector.")
        axis = -1 if array._format is None else "T"
    return normalize_axis(function, array, axis)


def _segments(function: str, window: Any, overlap: Any, length: Any, signal: dlarray) -> _Segments:
    """Return how a signal is cut, with a window in the precision of the signal."""
    size = None if isinstance(window, bool) else as_index(window)
    weights = as_array(window, function, "window") if size is None else _hann(function, size)
    weights = movement.relabel(weights, None)
    if weights.ndim != 1 or not weights.size:
        raise DimsError(
            f"{function}: window has size {describe_sizes(weights)}, expected a vector of weights, or a length above 0."
        )
    if weights.dtype.kind == "c":
        raise DTypeError(
            f"{function}: window has dtype {weights.dtype}, expected real weights; pass window.real."
        )
    weights = in_dtype(weights, part_dtype(complex_dtype(signal.dtype)))
    count = weights.size
    shared = count * 3 // 4 if overlap is None else integer(function, "overlap_length", overlap)
    whole = count if length is None else integer(function, "fft_length", length)
    if not 0 <= shared < count:
        raise DimsError(
            f"{function}: overlap_length is {shared}, expected 0 to {count - 1}: less than the window has."
        )
    if whole < count:
        raise DimsError(
            f"{function}: fft_length is {whole}, expected {count} or more, the length of the window."
        )
    return _Segments(weights, count - shared, whole)


def _hann(function: str, count: int) -> dlarray:
    """Return a Hann window whose period is its length."""
    check_room(function, check_sizes(function, "window", (count,)), np.dtype(np.float64))
    angles = 2 * np.pi * np.arange(count) / max(count, 1)
    return as_array(0.5 - 0.5 * np.cos(angles))


def _with_size(x: dlarray, axis: int, n: int) -> dlarray:
    widths = tuple([(0, n - x.shape[axis] if i == axis else 0) for i in range(x.ndim)])
    return apply("pad", x, widths=widths, value=0) if any(map(any, widths)) else x
