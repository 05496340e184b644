# SPDX-License-Identifier: BSD-3-Clause
"""Reductions with NumPy's further arguments (dtype=, initial=, where=), those that leave NaN out, and averages.

Elements that a mask leaves out are replaced by the number that changes nothing (0 in a sum), so that they have the
derivative 0. Labels: as in all reductions, a reduced axis takes its label with it.
"""

from collections.abc import Callable
from functools import partial
from math import prod as product
from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.aval import FLOAT32, FLOAT64, is_half, is_inexact, part_dtype, wanted_dtype
from tracejit.errors import ArgumentError, ArgumentValueError, RangeError
from tracejit.functions import elementwise, movement, reductions
from tracejit.functions.axes import axes_as_given, normalize_axes
from tracejit.functions.formats import in_asked_dtype, in_dtype
from tracejit.functions.refusals import refuse
from tracejit.record import recorder
from tracejit.record.guards import Decides
from tracejit.util.arguments import flag, real
from tracejit.util.text import brief

_NOT_GIVEN = np._NoValue
Reduction = Callable[..., dlarray]


def truths(mask: Any, name: str) -> dlarray:
    """Return a mask as an array of bools."""
    array = as_array(mask, name, "where")
    return array if array.dtype == bool else elementwise.not_equal(array, 0)


def _is_given(x: Any) -> bool:
    return x is not _NOT_GIVEN and x is not None


def start_of(name: str, initial: Any, dtype: np.dtype) -> dlarray:
    """Return an initial value in the dtype of a reduction.

    Raises:
        RangeError: if a number does not fit integers of that dtype.
    """
    if type(initial) in (int, float) and dtype.kind in "iu":
        limits = np.iinfo(dtype)
        if not limits.min - 1 < initial < limits.max + 1:  # NaN neither
            raise RangeError(
                f"{name}: initial={brief(initial)} does not fit {dtype} ({limits.min} to {limits.max}); pass dtype=, "
                "or cast the array first."
            )
    return in_dtype(as_array(initial, name, "initial"), dtype)


def _spread(array: dlarray, mask: Any, name: str) -> tuple[dlarray, dlarray]:
    """Return an array and its mask, broadcast against each other."""
    chosen = truths(mask, name)
    shape = np.broadcast_shapes(array.shape, chosen.shape)
    return movement.expanded(array, shape), movement.expanded(movement.relabel(chosen, None), shape)


def _folded(
    name: str, op: str, combine: str, neutral: Any, a: Any, axis: Any, keepdims: Any, initial: Any, where: Any
) -> dlarray:
    """Return a reduction of what a mask leaves, combined with an initial value."""
    array = as_array(a, name)
    if where is not True:
        array, chosen = _spread(array, where, name)
        array = elementwise.where(chosen, array, array.dtype.type(neutral(array.dtype)))
    axes = normalize_axes(name, array, axis)
    result = apply(op, array, axes=axes, keepdims=flag(name, "keepdims", keepdims))
    if _is_given(initial):
        first = start_of(name, initial, result.dtype)
        result = apply(combine, first, result)
    return result


def _accumulated(
    name: str, op: str, neutral: int, a: Any, axis: Any, dtype: Any, keepdims: Any, initial: Any, where: Any
) -> dlarray:
    array = as_array(a, name)
    combine = "add" if op == "sum" else "mul"
    if dtype is None:
        return _folded(name, op, combine, lambda _: neutral, array, axis, keepdims, initial, where)
    wanted = wanted_dtype(name, dtype)
    result = _folded(
        name, op, combine, lambda _: neutral, in_asked_dtype(array, wanted), axis, keepdims, initial, where
    )
    return in_dtype(result, wanted)


def sum(
    a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True
) -> dlarray:
    """Return the sum over axes of what `where` leaves, plus `initial`."""
    return _accumulated("np.sum", "sum", 0, a, axis, dtype, keepdims, initial, where)


def prod(
    a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True
) -> dlarray:
    """Return the product over axes of what `where` leaves, times `initial`."""
    return _accumulated("np.prod", "prod", 1, a, axis, dtype, keepdims, initial, where)


def _extremum(
    op: str, a: Any, axis: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True
) -> dlarray:
    """Return the extremum over axes of what `where` leaves, and of `initial`."""
    name = f"np.{op}"
    array = as_array(a, name)
    if where is not True and not _is_given(initial):
        refuse(
            name,
            "the extremum of no elements is not defined, so where= needs initial=; pass both",
            ArgumentValueError,
        )
    if not _is_given(initial):
        return _folded(name, op, f"{op}imum", None, array, axis, keepdims, None, True)
    axes = normalize_axes(name, array, axis)
    first = start_of(name, initial, array.dtype)
    if not product(array.shape[i] for i in axes):
        kept = reductions.sum(array, axes, keepdims)  # of no elements: its size and format
        value = movement.broadcast_to(first, kept.shape)
        return movement.relabel(value, kept._format)
    return _folded(name, op, f"{op}imum", lambda _: initial, array, axis, keepdims, initial, where)


amax: Reduction = partial(_extremum, "max")
amin: Reduction = partial(_extremum, "min")


def all(a: Any, axis: Any = None, keepdims: Any = False, *, where: Any = True) -> dlarray:
    """Return whether all elements that `where` leaves are true."""
    return _folded("np.all", "all", "logical_and", lambda _: 1, a, axis, keepdims, None, where)


def any(a: Any, axis: Any = None, keepdims: Any = False, *, where: Any = True) -> dlarray:
    """Return whether any element that `where` leaves is true."""
    return _folded("np.any", "any", "logical_or", lambda _: 0, a, axis, keepdims, None, where)


def _count(array: dlarray, mask: Any, axes: tuple[int, ...], keepdims: bool, name: str) -> Any:
    """Return how many elements a mask leaves: a number, or for each place of the result."""
    if mask is True:
        return product(array.shape[axis] for axis in axes)
    _, chosen = _spread(array, mask, name)
    return apply("sum", chosen, axes=axes, keepdims=keepdims)


def _wide(dtype: np.dtype) -> np.dtype:
    """Return the dtype in which to compute with many numbers: float32 for those of 16 bits, which are rounded once."""
    return FLOAT32 if is_half(dtype) else dtype


def mean(a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False, *, where: Any = True) -> dlarray:
    """Return the mean over axes of what `where` leaves."""
    array = as_array(a, "np.mean")
    usual = array.dtype if is_inexact(array.dtype) else FLOAT64
    wanted = usual if dtype is None else wanted_dtype("np.mean", dtype)
    array = in_asked_dtype(in_asked_dtype(array, wanted), _wide(wanted))
    keepdims = flag("np.mean", "keepdims", keepdims)
    if where is not True:
        array, where = _spread(array, where, "np.mean")
    axes = normalize_axes("np.mean", array, axis)
    count = _count(array, where, axes, keepdims, "np.mean")
    total = sum(array, axes, array.dtype, keepdims, None, where)
    # NumPy adds in the type of integers, and cuts the quotient off.
    return in_asked_dtype(total / count, wanted)


def root(square: dlarray) -> dlarray:
    """Return the root of a sum of squares, with the derivative 0 at 0."""
    zero = square == 0
    return elementwise.where(zero, 0, elementwise.sqrt(elementwise.where(zero, 1, square)))


def _variance(
    name: str,
    a: Any,
    axis: Any,
    dtype: Any,
    ddof: Any,
    keepdims: Any,
    where: Any,
    mean_: Any,
    correction: Any,
) -> dlarray:
    array = as_array(a, name)
    wanted = array.dtype if dtype is None else wanted_dtype(name, dtype)
    if dtype is not None and not is_inexact(wanted):
        refuse(name, f"dtype={wanted} would cut off the mean and the deviations from it; cast the result")
    if _is_given(correction) and ddof != 0:
        refuse(name, "ddof and correction mean the same; pass one of them", ArgumentValueError)
    wanted = wanted if is_inexact(wanted) else FLOAT64
    array = in_dtype(in_dtype(array, wanted), _wide(wanted))
    keepdims = flag(name, "keepdims", keepdims)
    ddof = real(name, "ddof", ddof if not _is_given(correction) else correction)
    if where is not True:
        array, where = _spread(array, where, name)
    axes = normalize_axes(name, array, axis)
    middle = mean_ if _is_given(mean_) else mean(array, axes, None, True, where=where)
    if where is not True:  # NaN that is left out must not reach the derivative of the square
        array = elementwise.where(where, array, elementwise.stop_gradient(middle))
    squares = reductions.square_magnitude(array - middle)
    count = _count(array, where, axes, keepdims, name)
    divisor = elementwise.maximum(count - ddof, 0) if recorder.is_array(count) else max(count - ddof, 0)
    result_dtype = part_dtype(wanted) if dtype is None else wanted
    return in_dtype(sum(squares, axes, None, keepdims, None, where) / divisor, result_dtype)


# Reductions that leave NaN out


def _numbers(a: Any, name: str, where: Any = True) -> tuple[dlarray, Any]:
    """Return an array and the mask of what is neither NaN nor left out."""
    array = as_array(a, name)
    if array.dtype.kind not in "fc":
        return array, where
    known = ~elementwise.isnan(array)
    return array, known if where is True else known & truths(where, name)


def nansum(
    a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True
) -> dlarray:
    """Return the sum over axes without NaN."""
    array, known = _numbers(a, "np.nansum", where)
    return sum(array, axis, dtype, keepdims, initial, known)


def nanprod(
    a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True
) -> dlarray:
    """Return the product over axes without NaN."""
    array, known = _numbers(a, "np.nanprod", where)
    return prod(array, axis, dtype, keepdims, initial, known)


def _nan_extremum(
    op: str, a: Any, axis: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True
) -> dlarray:
    """Return the extremum over axes without NaN; NaN of NaNs only."""
    name = f"np.nan{op}"
    array, known = _numbers(a, name)
    if known is True or _is_given(initial) or where is not True:
        array = array if known is True else elementwise.where(known, array, _neutral(op))
        return _extremum(op, array, axis, keepdims, initial, where)
    found = _extremum(op, elementwise.where(known, array, _neutral(op)), axis, keepdims)
    return elementwise.where(any(known, axis, keepdims), found, np.nan)


def _neutral(op: str) -> float:
    return -np.inf if op == "max" else np.inf


nanmax: Reduction = partial(_nan_extremum, "max")
nanmin: Reduction = partial(_nan_extremum, "min")


def _nan_place(op: str, a: Any, axis: Any = None, keepdims: Any = False) -> dlarray:
    """Return the place of an extremum along an axis without NaN."""
    name = f"np.nan{op}"
    array, known = _numbers(a, name)
    if known is not True:
        nothing = elementwise.logical_not(any(known, axis))
        nowhere = any(nothing) if nothing.ndim else nothing
        if bool(recorder.need_value(nowhere, name, Decides.TRUTH)):
            refuse(
                name,
                "a row holds NaN only, so it has no extremum; replace NaN first (np.nan_to_num)",
                ArgumentValueError,
            )
        array = elementwise.where(known, array, -np.inf if op == "argmax" else np.inf)
        # Where a row holds only infinities, those that were there come first.
        best = (reductions.max if op == "argmax" else reductions.min)(array, axis, True)
        return reductions.argmax((array == best) & known, axis, keepdims)
    return (reductions.argmax if op == "argmax" else reductions.argmin)(array, axis, keepdims)


nanargmax: Reduction = partial(_nan_place, "argmax")
nanargmin: Reduction = partial(_nan_place, "argmin")


def _check_inexact(name: str, array: dlarray, dtype: Any) -> None:
    """Refuse to average floating-point numbers in a dtype of integers, as NumPy does where NaN is left out."""
    if dtype is not None and is_inexact(array.dtype) and not is_inexact(wanted_dtype(name, dtype)):
        refuse(name, f"dtype={brief(dtype)} cannot hold averages of {array.dtype}; cast the result")


def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False, *, where: Any = True
) -> dlarray:
    """Return the mean over axes without NaN; NaN of NaNs only."""
    array, known = _numbers(a, "np.nanmean", where)
    _check_inexact("np.nanmean", array, dtype)
    axis = None if not array.ndim and type(axis) is int and axis in (0, -1) else axis
    return mean(array, axis, dtype, keepdims, where=known)


def _deviation(
    name: str,
    of_numbers: bool,
    is_root: bool,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: Any = None,
) -> dlarray:
    """Return the variance over axes of what `where` leaves, or its root; `of_numbers`: without NaN.

    Around `mean` if that is given; NaN of numbers where no degree of freedom is left.
    """
    array, known = _numbers(a, name, where) if of_numbers else (as_array(a, name), where)
    found = _variance(name, array, axis, dtype, ddof, keepdims, known, mean, correction)
    if of_numbers and known is not True:
        _, known = _spread(array, known, name)
        left = sum(known, axis, None, keepdims) - (correction if _is_given(correction) else ddof)
        found = elementwise.where(left > 0, found, np.nan)
    return root(found) if is_root else found


var: Reduction = partial(_deviation, "np.var", False, False)
std: Reduction = partial(_deviation, "np.std", False, True)
nanvar: Reduction = partial(_deviation, "np.nanvar", True, False)
nanstd: Reduction = partial(_deviation, "np.nanstd", True, True)


# Averages


class _ZeroWeightsError(ArgumentError, ZeroDivisionError):
    """Weights sum to zero: NumPy's error, and ours."""


def average(
    a: Any, axis: Any = None, weights: Any = None, returned: Any = False, *, keepdims: Any = False
) -> Any:
    """Return the average over axes, weighted if `weights` are given, and their sum if `returned`."""
    array = as_array(a, "np.average")
    axes = axes_as_given("np.average", array, axis)
    if weights is None:
        result = reductions.mean(array, axes, keepdims)
        count = product(array.shape[i] for i in axes)
        scale = elementwise.where(True, result.dtype.type(count), elementwise.stop_gradient(result))
        return (result, scale) if returned else result
    given = as_array(weights, "np.average", "weights")
    if given.shape != array.shape:
        if axis is None or given.shape != tuple(array.shape[i] for i in axes):
            refuse(
                "np.average",
                f"weights have size {given.shape}, expected that of a, {array.shape}, or of its axes {axis}",
                ArgumentValueError,
            )
        given = movement.permuted(movement.relabel(given, None), tuple(int(i) for i in np.argsort(axes)))
        shape = tuple(extent if i in axes else 1 for i, extent in enumerate(array.shape))
        given = movement.expanded(movement.reshape(given, shape), array.shape)
    dtypes = (array.dtype, given.dtype, *((FLOAT64,) if array.dtype.kind not in "fc" else ()))
    dtype = np.result_type(*dtypes)
    array, given = (in_dtype(in_dtype(part, dtype), _wide(dtype)) for part in (array, given))
    scale = sum(given, axes, None, keepdims)
    if bool(recorder.need_value(any(scale == 0), "np.average", Decides.TRUTH)):
        refuse(
            "np.average",
            "weights sum to zero, so that there is no average; add to them, or leave such rows out",
            _ZeroWeightsError,
        )
    result = in_dtype(sum(array * given, axes, None, keepdims) / scale, dtype)
    scale = in_dtype(scale, dtype)
    return (result, scale) if returned else result


FULL_FORMS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.sum: sum,
    np.prod: prod,
    np.max: amax,
    np.min: amin,
    np.all: all,
    np.any: any,
    np.mean: mean,
    np.var: var,
    np.std: std,
}
"""Functions for arguments that their namesakes in the toolbox do not take."""

FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.nansum: nansum,
    np.nanprod: nanprod,
    np.nanmax: nanmax,
    np.nanmin: nanmin,
    np.nanargmax: nanargmax,
    np.nanargmin: nanargmin,
    np.nanmean: nanmean,
    np.nanvar: nanvar,
    np.nanstd: nanstd,
    np.average: average,
    np.amax: amax,
    np.amin: amin,
}
