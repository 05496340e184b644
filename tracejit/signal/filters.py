# SPDX-License-Identifier: BSD-3-Clause
"""Filters of signals along an axis: recursive ones, polynomials, trends, the analytic signal, resampling."""

from typing import Any

import numpy as np

from tracejit.array import as_array, dlarray
from tracejit.aval import complex_dtype
from tracejit.errors import ArgumentError, ArgumentValueError, DimsError
from tracejit.functions import joining, movement, reductions
from tracejit.functions.axes import normalize_axis
from tracejit.functions.formats import in_dtype
from tracejit.functions.numpy_api import in_python
from tracejit.functions.numpy_api.host_filters import recursive
from tracejit.record.demands import demand
from tracejit.signal.convolutions import convolve, correlate
from tracejit.util.arguments import integer, is_option
from tracejit.util.text import brief


def _signal(name: str, x: Any, argument: str = "x") -> dlarray:
    array = as_array(x, f"signal.{name}", argument)
    return array if array.dtype.kind in "fc" else in_dtype(array, np.dtype(np.float64))


def _last(name: str, x: dlarray, axis: Any) -> tuple[dlarray, int]:
    """Return an array without labels with an axis moved to the end, and the number of the axis."""
    place = normalize_axis(f"signal.{name}", x, axis)
    return movement.moveaxis(movement.relabel(x, None), place, -1), place


def _back(x: dlarray, place: int, like: dlarray) -> dlarray:
    return movement.relabel(movement.moveaxis(x, -1, place), like._format)


def _coefficients(name: str, argument: str, x: Any) -> dlarray:
    array = movement.relabel(movement.atleast_1d(_signal(name, x, argument)), None)
    if array.ndim != 1 or not array.size:
        raise DimsError(
            f"signal.{name}: {argument} has shape {array.shape}, expected a vector of coefficients."
        )
    return array


def lfilter(b: Any, a: Any, x: Any, axis: Any = -1) -> dlarray:
    """Return a signal filtered by a rational function: a[0] y[t] = b[0] x[t] + b[1] x[t-1] + ... - a[1] y[t-1] - ...

    Args:
        b: coefficients of the numerator, a vector.
        a: coefficients of the denominator, a vector whose first element is not 0.
        x: signals, dlarray of any format, ndarray or list; 0 before their beginning.
        axis: the axis of time, by number or label.

    Returns:
        dlarray of the sizes and labels of `x`.

    Raises:
        DimsError: if coefficients are no vector.

    SciPy's own routine runs, in programs as a call of Python; there are derivatives by the signal and all coefficients.

    Examples:
        >>> import tracejit as tj
        >>> tj.signal.lfilter([1.0], [1.0, -0.5], [1.0, 0.0, 0.0]).tolist()
        [1.0, 0.5, 0.25]
    """
    above, below = _coefficients("lfilter", "b", b), _coefficients("lfilter", "a", a)
    given = _signal("lfilter", x)
    lines, place = _last("lfilter", given, axis)
    dtype = np.result_type(above.dtype, below.dtype, lines.dtype)
    n = max(above.size, below.size)
    first = below[:1]
    rows = [
        in_dtype(joining.concatenate([part / first, np.zeros(n - part.size, part.dtype)], 0), dtype)
        for part in (above, below)
    ]
    found = in_python.call("signal.lfilter", recursive, (*rows, in_dtype(lines, dtype)), {})
    return _back(found, place, given)


def sosfilt(sos: Any, x: Any, axis: Any = -1) -> dlarray:
    """Return a signal filtered by sections of second order, one after the other.

    Args:
        sos: coefficients, (sections, 6): three of the numerator and three of the denominator of each section.
        x: signals, dlarray of any format, ndarray or list; 0 before their beginning.
        axis: the axis of time, by number or label.

    Returns:
        dlarray of the sizes and labels of `x`.

    Raises:
        DimsError: for coefficients of another size.
        ArgumentError: if the first coefficient of a denominator is not 1; that it is, is guarded in a trace.

    Examples:
        >>> import tracejit as tj
        >>> tj.signal.sosfilt([[1.0, 0.0, 0.0, 1.0, -0.5, 0.0]], [1.0, 0.0, 0.0]).tolist()
        [1.0, 0.5, 0.25]
    """
    sections = movement.relabel(_signal("sosfilt", sos, "sos"), None)
    if sections.ndim != 2 or sections.shape[1] != 6:
        raise DimsError(f"signal.sosfilt: sos has shape {sections.shape}, expected (sections, 6).")

    def fail() -> None:
        raise ArgumentValueError(
            "signal.sosfilt: sos[:, 3] must be 1 in each section; divide the coefficients by it (sos / sos[:, 3:4])."
        )

    demand(reductions.all(sections[:, 3] == 1), "signal.sosfilt", fail)
    found = _signal("sosfilt", x)
    for number in range(sections.shape[0]):
        row = sections[number]
        found = lfilter(row[:3], row[3:], found, axis)
    return found


def detrend(data: Any, axis: Any = -1, type: Any = "linear") -> dlarray:
    """Return signals minus their least-squares line, or minus their mean.

    Args:
        data: dlarray of any format, ndarray or list.
        axis: the axis of time, by number or label.
        type: "linear" or "constant".

    Returns:
        dlarray of the sizes and labels of `data`.

    Raises:
        ArgumentError: for another type.

    Examples:
        >>> import tracejit as tj
        >>> tj.signal.detrend([1.0, 2.0, 6.0], type="constant").tolist()
        [-2.0, -1.0, 3.0]
    """
    if not is_option(type, ("linear", "constant")):
        raise ArgumentError(f"signal.detrend: type must be 'linear' or 'constant', not {brief(type)}.")
    given = _signal("detrend", data)
    lines, place = _last("detrend", given, axis)
    centred = lines - reductions.mean(lines, -1, True)
    if type == "linear" and lines.shape[-1] > 1:
        n = lines.shape[-1]
        times = np.asarray(np.arange(n) - (n - 1) / 2, np.zeros((), lines.dtype).real.dtype)
        slope = reductions.sum(centred * times, -1, True) / float((times.astype(float) ** 2).sum())
        centred = centred - slope * times
    return _back(centred, place, given)


def hilbert(x: Any, N: Any = None, axis: Any = -1) -> dlarray:  # noqa: N803 (SciPy's name)
    """Return analytic signals, whose imaginary part is the Hilbert transform.

    Args:
        x: real signals: dlarray of any format, ndarray or list.
        N: the number of elements that are transformed, cut off or filled with zeros; None for all.
        axis: the axis of time, by number or label.

    Returns:
        dlarray of complex numbers with the labels of `x`.

    Raises:
        ArgumentError: for complex signals, or if N is not positive.

    Examples:
        >>> import tracejit as tj
        >>> tj.signal.hilbert([1.0, 0.0, -1.0, 0.0]).imag.round(12).tolist()
        [0.0, 1.0, 0.0, -1.0]
    """
    given = _signal("hilbert", x)
    if given.dtype.kind == "c":
        raise ArgumentError("signal.hilbert: x is complex, expected real signals.")
    lines, place = _last("hilbert", given, axis)
    n = lines.shape[-1] if N is None else integer("signal.hilbert", "N", N)
    if n <= 0:
        raise ArgumentError(f"signal.hilbert: N is {n}, expected a positive number of elements.")
    transformed: Any = np.fft.fft(lines, n)
    factors = np.zeros(n, lines.dtype)
    factors[0] = 1.0
    factors[1 : (n + 1) // 2] = 2.0
    if n % 2 == 0:
        factors[n // 2] = 1.0
    found: Any = np.fft.ifft(transformed * factors)
    return _back(in_dtype(found, complex_dtype(lines.dtype)), place, given)


def resample(x: Any, num: Any, axis: Any = 0) -> dlarray:
    """Return signals with a new number of samples, by their Fourier transform, as if they were periodic.

    Args:
        x: real signals: dlarray of any format, ndarray or list.
        num: the number of samples.
        axis: the axis of time, by number or label.

    Returns:
        dlarray with the labels of `x`.

    Raises:
        ArgumentError: for complex signals, or if `num` is not positive.

    Examples:
        >>> import tracejit as tj
        >>> tj.signal.resample([1.0, 0.0, -1.0, 0.0], 2).round(12).tolist()
        [1.0, -1.0]
    """
    given = _signal("resample", x)
    if given.dtype.kind == "c":
        raise ArgumentError("signal.resample: x is complex, expected real signals.")
    lines, place = _last("resample", given, axis)
    count, n = integer("signal.resample", "num", num), lines.shape[-1]
    if count <= 0:
        raise ArgumentError(f"signal.resample: num is {count}, expected a positive number of samples.")
    transformed: Any = np.fft.rfft(lines)
    kept = min(count, n)
    part = transformed[..., : kept // 2 + 1]
    if kept % 2 == 0 and count != n:
        # The frequency in the middle stands for two where it is one of several.
        factors = np.ones(kept // 2 + 1, lines.dtype)
        factors[-1] = 2.0 if count < n else 0.5
        part = part * factors
    found: Any = np.fft.irfft(part, count)
    return _back(in_dtype(found * (count / n), lines.dtype), place, given)


def _padded(x: dlarray, sizes: tuple[int, ...], boundary: str, value: Any) -> dlarray:
    pads = [(size - 1, size - 1) for size in sizes]
    if boundary == "fill":
        found: Any = np.pad(x, pads, constant_values=value)
    else:
        found = np.pad(x, pads, "wrap" if boundary == "wrap" else "symmetric")
    return found  # type: ignore[no-any-return]


def _two_axes(name: str, in1: Any, in2: Any, mode: Any, boundary: Any, fillvalue: Any) -> dlarray:
    if not is_option(boundary, ("fill", "wrap", "symm")):
        raise ArgumentError(
            f"signal.{name}: boundary must be 'fill', 'wrap' or 'symm', not {brief(boundary)}."
        )
    x, y = (as_array(z, f"signal.{name}", key) for z, key in ((in1, "in1"), (in2, "in2")))
    if x.ndim != 2 or y.ndim != 2:
        raise DimsError(f"signal.{name}: in1 has {x.ndim} axes and in2 {y.ndim}, expected 2 of both.")
    function = convolve if name == "convolve2d" else correlate
    # correlate() has another middle for sizes that are even.
    plain = boundary == "fill" and fillvalue == 0 and not (name == "correlate2d" and mode == "same")
    if plain or not is_option(mode, ("full", "same")):
        return function(x, y, mode)
    m, n = y.shape
    whole = function(_padded(movement.relabel(x, None), (m, n), boundary, fillvalue), y, "valid")
    if mode == "same":
        starts = ((m - 1) // 2, (n - 1) // 2) if name == "convolve2d" else (m // 2, n // 2)
        whole = whole[tuple(slice(s, s + size) for s, size in zip(starts, x.shape, strict=True))]
    return movement.relabel(whole, x._format)


def convolve2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0) -> dlarray:
    """Return the convolution of two matrices.

    Args:
        in1: dlarray of any format, ndarray or list, of two axes.
        in2: the other operand.
        mode: "full", "same" or "valid", as in `convolve`.
        boundary: "fill" for a number beyond the ends of `in1`, "wrap" for its other end, "symm" for its mirror image.
        fillvalue: that number.

    Returns:
        dlarray in the common dtype, with the labels of `in1`.

    Raises:
        DimsError: unless both have two axes.
        ArgumentError: for another mode or boundary.

    Examples:
        >>> import tracejit as tj
        >>> tj.signal.convolve2d([[1.0, 2.0]], [[1.0, 1.0]], boundary="wrap", mode="same").tolist()
        [[3.0, 3.0]]
    """
    return _two_axes("convolve2d", in1, in2, mode, boundary, fillvalue)


def correlate2d(
    in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0
) -> dlarray:
    """Return the cross-correlation of two matrices.

    Args:
        in1: dlarray of any format, ndarray or list, of two axes.
        in2: the other operand.
        mode: "full", "same" or "valid", as in `correlate`.
        boundary: as in `convolve2d`.
        fillvalue: the number beyond the ends.

    Returns:
        dlarray in the common dtype, with the labels of `in1`.

    Raises:
        DimsError: unless both have two axes.
        ArgumentError: for another mode or boundary.

    Examples:
        >>> import tracejit as tj
        >>> tj.signal.correlate2d([[1.0, 2.0]], [[1.0, 1.0]], mode="valid").tolist()
        [[3.0]]
    """
    return _two_axes("correlate2d", in1, in2, mode, boundary, fillvalue)
