# SPDX-License-Identifier: BSD-3-Clause
"""Order statistics: median, quantile and percentile, also without NaN.

They are means of neighbours in the sorted array, so a cotangent goes to the elements from which the statistic is made.
Labels: a reduced axis takes its label with it; the axis of several quantiles comes first, labelled U.
"""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.aval import FLOAT64, INT64
from tracejit.errors import ArgumentValueError, BoundsError
from tracejit.functions import elementwise, movement, reductions
from tracejit.functions.axes import axes_as_given
from tracejit.functions.elementwise import where
from tracejit.functions.formats import in_dtype
from tracejit.functions.numpy_api.ordering import in_order, places_in_order
from tracejit.functions.refusals import refuse
from tracejit.ops.reduce import reduced_format, reduced_shape
from tracejit.record import recorder
from tracejit.record.guards import Decides
from tracejit.util.arguments import flag, is_option
from tracejit.util.text import brief

_SHIFTS = {  # alpha and beta of the continuous methods (R. J. Hyndman, Y. Fan, The American Statistician 50, 1996)
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "median_unbiased": (1 / 3.0, 1 / 3.0),
    "normal_unbiased": (3 / 8.0, 3 / 8.0),
}
_DISCRETE = ("lower", "higher", "nearest", "inverted_cdf", "closest_observation")
_METHODS = (
    "linear", "lower", "higher", "nearest", "midpoint", "inverted_cdf", "averaged_inverted_cdf", "closest_observation",
    *_SHIFTS,
)  # fmt: skip


def _rows(name: str, a: Any, axis: Any) -> tuple[dlarray, tuple[int, ...], dlarray]:
    """Return an array with the axes to reduce as the last one, those axes, and the array itself."""
    array = as_array(a, name)
    axes = axes_as_given(name, array, axis)  # weights may have these axes alone, in this order
    kept = tuple(i for i in range(array.ndim) if i not in axes)
    moved = movement.permuted(movement.relabel(array, None), kept + axes)
    shape = (*(array.shape[i] for i in kept), prod(array.shape[i] for i in axes))
    return movement.reshaped(moved, shape, None), axes, array


def _shaped(result: dlarray, array: dlarray, axes: tuple[int, ...], keepdims: bool, lead: int = 0) -> dlarray:
    """Return a result in the size and with the labels of a reduction; `lead` axes come before them."""
    shape = (*result.shape[:lead], *reduced_shape(array.shape, axes, keepdims))
    format = reduced_format(array._format, axes, keepdims)
    if lead and format is not None:
        format = "U" * lead + format
    return movement.reshaped(result, shape, format)


def _spoiled(rows: dlarray, result: dlarray, lead: int = 0) -> dlarray:
    """Return a result with NaN where a row, which is sorted, ends with NaN."""
    if rows.dtype.kind not in "fc" or not rows.shape[-1]:
        return result
    last = rows[..., -1]
    return where(elementwise.isnan(last), np.nan, result)


def median(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, keepdims: Any = False
) -> dlarray:
    """Return the middle of the sorted elements over axes, the mean of two of them for an even number."""
    rows, axes, array = _rows("np.median", a, axis)
    rows = rows if as_array(a).dtype.kind in "fc" else in_dtype(rows, FLOAT64)
    rows = in_order(rows, rows.ndim - 1)
    n = rows.shape[-1]
    if not n:
        result = reductions.mean(rows, -1)
    elif n % 2:
        result = rows[..., n // 2]
    else:
        result = (rows[..., n // 2 - 1] + rows[..., n // 2]) / 2.0
    return _shaped(_spoiled(rows, result), array, axes, flag("np.median", "keepdims", keepdims))


def _virtual_places(n: Any, q: Any, method: str) -> Any:
    """Return where in a sorted row of n elements the quantiles lie, as numbers with a fraction."""
    if method in _SHIFTS:
        alpha, beta = _SHIFTS[method]
        return n * q + (alpha + q * (1 - alpha - beta)) - 1
    if method in ("inverted_cdf", "averaged_inverted_cdf"):
        return n * q - 1
    if method == "closest_observation":
        return n * q - 1 - 0.5
    return (n - 1) * q


def _neighbours(places: dlarray, n: Any, method: str) -> tuple[dlarray, dlarray, Any]:
    """Return the two elements that a quantile lies between, and the weight of the second; None: the first alone."""
    below = elementwise.floor(places)
    gamma = places - below
    last = n - 1
    if method == "linear" or method in _SHIFTS:
        weight: Any = gamma
    elif method == "averaged_inverted_cdf":
        weight = in_dtype(where(gamma == 0, 0.5, 1.0), places.dtype)
    elif method == "midpoint":
        below = 0.5 * (below + elementwise.ceil(places))
        weight = in_dtype(where(below % 1 == 0, 0.0, 0.5), places.dtype)
        below = elementwise.floor(below)
    else:
        if method == "lower":
            chosen = below
        elif method == "higher":
            chosen = elementwise.ceil(places)
        elif method == "nearest":
            chosen = elementwise.rint(places)
        elif method == "inverted_cdf":
            chosen = where(gamma == 0, below, below + 1)
        else:
            chosen = where((gamma == 0) & (below % 2 == 1), below, below + 1)
        chosen = elementwise.maximum(elementwise.minimum(chosen, last), 0)
        return chosen, chosen, None
    upper = below + 1
    # Beyond the ends the nearest element counts alone.
    outside = places >= last
    low = where(outside, last, where(places < 0, 0, below))
    high = where(outside, last, where(places < 0, 0, upper))
    return low, high, weight


def _lerp(a: dlarray, b: dlarray, t: dlarray) -> dlarray:
    """Return a + (b - a) t, from the nearer end."""
    gap = b - a
    return where(t >= 0.5, b - gap * (1 - t), a + gap * t)


_EMPTY = "the reduced axes are empty, so there is no quantile; reduce axes that hold elements"


def _quantile(
    name: str,
    a: Any,
    q: Any,
    axis: Any,
    method: Any,
    keepdims: Any,
    weights: Any,
    scale: float,
    without_nan: bool,
) -> dlarray:
    if not is_option(method, _METHODS):
        known = ", ".join(map(repr, _METHODS))
        refuse(name, f"method must be one of {known}, not {brief(method)}", ArgumentValueError)
    rows, axes, array = _rows(name, a, axis)
    if rows.dtype.kind == "c":
        refuse(name, f"a is {rows.dtype}, expected real numbers; pass a.real, a.imag or abs(a)")
    given = movement.relabel(as_array(q, name, "q"), None)
    is_whole = given.dtype.kind in "iu" and scale == 1 and method == "linear"
    if rows.dtype == bool and not (is_whole or method in _DISCRETE):
        refuse(
            name,
            f"bools have no differences, which method={brief(method)} needs; cast a (x.astype(np.int64))",
        )
    if type(q) in (int, float, bool) and rows.dtype.kind == "f":
        given = in_dtype(given, rows.dtype)
    elif given.dtype.kind != "f" or (scale != 1 and rows.dtype.kind != "f"):
        given = in_dtype(given, FLOAT64)
    given = given / given.dtype.type(scale) if scale != 1 else given
    _check_range(name, q, given, scale)
    q_shape = given.shape
    points = movement.reshape(given, (-1, *(1,) * (rows.ndim - 1)))
    if weights is not None:
        return _weighted(name, rows, points, q_shape, array, axes, method, keepdims, weights, without_nan)
    ordered = in_order(rows, rows.ndim - 1)
    n: Any = rows.shape[-1]
    if without_nan and rows.dtype.kind == "f":
        n = in_dtype(reductions.sum(~elementwise.isnan(rows), -1), points.dtype)
    if not rows.shape[-1]:
        if without_nan:
            nothing = np.full(
                (points.size, *rows.shape[:-1]), np.nan, np.result_type(points.dtype, rows.dtype)
            )
            return _led(as_array(nothing), q_shape, array, axes, flag(name, "keepdims", keepdims))
        refuse(name, _EMPTY, BoundsError)
    places = _virtual_places(n, points, method)
    low, high, weight = _neighbours(places, n, method)
    first = _at(ordered, low)
    weight = None if is_whole else weight
    result = first if weight is None else _lerp(first, _at(ordered, high), weight)
    if without_nan:
        result = where(n == 0, np.nan, result) if n is not rows.shape[-1] else result
    else:
        result = _spoiled(ordered, result)
    return _led(result, q_shape, array, axes, flag(name, "keepdims", keepdims))


def _check_range(name: str, q: Any, given: dlarray, scale: float) -> None:
    """Refuse quantiles beyond the ends; that those of an array lie between them is guarded."""
    inside: Any
    if recorder.is_array(q) or recorder.is_number(q):
        inside = recorder.need_value(reductions.all((given >= 0) & (given <= 1)), name, Decides.TRUTH)
    else:
        inside = np.all((given._data >= 0) & (given._data <= 1))
    if not bool(inside):
        refuse(name, f"q must lie between 0 and {scale:g}", ArgumentValueError)


def _led(
    result: dlarray, q_shape: tuple[int, ...], array: dlarray, axes: tuple[int, ...], keepdims: bool
) -> dlarray:
    result = movement.reshape(result, (*q_shape, *result.shape[1:]))
    return _shaped(result, array, axes, keepdims, len(q_shape))


def _at(ordered: dlarray, places: dlarray) -> dlarray:
    """Return the elements of sorted rows at whole numbers (q, ...), which broadcast with the rows."""
    index = in_dtype(elementwise.stop_gradient(places), INT64)
    index = movement.expanded(index, (index.shape[0], *ordered.shape[:-1]))
    index = elementwise.maximum(index, 0)
    last = movement.moveaxis(index, 0, -1)
    return movement.moveaxis(apply("take_along_axis", ordered, last, axis=ordered.ndim - 1), -1, 0)


def _weighted(
    name: str, rows: dlarray, points: dlarray, q_shape: tuple[int, ...], array: dlarray, axes: tuple[int, ...],
    method: str, keepdims: Any, weights: Any, without_nan: bool,
) -> dlarray:  # fmt: skip
    """Return quantiles of weighted elements by the inverse of the distribution function."""
    if method != "inverted_cdf" or without_nan:
        refuse(name, "weights are supported with method='inverted_cdf' and without NaN only")
    given = movement.relabel(as_array(weights, name, "weights"), None)
    if given.shape == array.shape:
        given = _rows(name, given, axes)[0]
    elif given.shape == tuple(array.shape[i] for i in axes):
        given = movement.expanded(movement.ravel(given), rows.shape)
    else:
        refuse(
            name, f"weights have size {given.shape}, expected that of a, {array.shape}", ArgumentValueError
        )
    last = rows.ndim - 1
    order = places_in_order(rows, last)
    ordered = apply("take_along_axis", rows, order, axis=last)
    heavy = apply("take_along_axis", in_dtype(given, FLOAT64), order, axis=last)
    cdf = reductions.cumsum(heavy, last)
    cdf = cdf / cdf[..., -1:]
    cdf = in_dtype(cdf, points.dtype)  # as in NumPy: 0.4 of float32 lies above 0.4 of float64
    if bool(recorder.need_value(reductions.any(elementwise.isnan(cdf[..., -1])), name, Decides.TRUTH)):
        refuse(name, "weights hold NaN or infinities, or are all zero")
    cdf = where(cdf == 0, -1, cdf)
    before = cdf < movement.expand_dims(points, -1)
    places = elementwise.minimum(reductions.sum(before, -1), rows.shape[-1] - 1)
    result = _spoiled(ordered, _at(ordered, in_dtype(places, FLOAT64)))
    return _led(result, q_shape, array, axes, flag(name, "keepdims", keepdims))


def _function(name: str, scale: float, without_nan: bool) -> Callable[..., dlarray]:
    def quantile(
        a: Any,
        q: Any,
        axis: Any = None,
        out: Any = None,
        overwrite_input: Any = False,
        method: Any = "linear",
        keepdims: Any = False,
        *,
        weights: Any = None,
    ) -> dlarray:
        return _quantile(name, a, q, axis, method, keepdims, weights, scale, without_nan)

    return quantile


def nanmedian(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, keepdims: Any = False
) -> dlarray:
    """Return the middle of the sorted elements over axes without NaN; NaN of NaNs only."""
    rows, axes, array = _rows("np.nanmedian", a, axis)
    if rows.dtype.kind not in "fc":
        return median(a, axis, keepdims=keepdims)
    rows = in_order(rows, rows.ndim - 1)
    count = reductions.sum(~elementwise.isnan(rows), -1)
    upper = elementwise.floor_divide(count, 2)
    lower = elementwise.floor_divide(count - 1, 2)
    if rows.shape[-1]:
        first, second = (_at(rows, movement.expand_dims(place, 0))[0] for place in (lower, upper))
        result = where(lower == upper, first, (first + second) / 2.0)
        result = where(count == 0, np.nan, result)
    else:
        result = reductions.mean(rows, -1)
    return _shaped(result, array, axes, flag("np.nanmedian", "keepdims", keepdims))


FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.median: median,
    np.nanmedian: nanmedian,
    np.quantile: _function("np.quantile", 1, False),
    np.percentile: _function("np.percentile", 100, False),
    np.nanquantile: _function("np.nanquantile", 1, True),
    np.nanpercentile: _function("np.nanpercentile", 100, True),
}
