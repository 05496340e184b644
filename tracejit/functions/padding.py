# SPDX-License-Identifier: BSD-3-Clause
"""Borders and repetitions: functions whose results have more elements than their array; labels stay with their axes."""

import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.aval import describe_shape
from tracejit.errors import ArgumentError, DimsError, DTypeError
from tracejit.functions.axes import axis_of_a_number, normalize_axes, normalize_axis
from tracejit.functions.movement import apart, expanded, ravel, reshaped
from tracejit.record import recorder
from tracejit.record.conversion import ndarray_of
from tracejit.record.guards import Decides
from tracejit.util.arguments import as_numbers, check_room, check_sizes, integers, is_option
from tracejit.util.text import brief

_PAD_MODES = ("constant", "edge", "reflect", "symmetric", "wrap")


def pad(x: Any, pad_width: Any, mode: str = "constant", constant_values: Any = 0) -> dlarray:
    """Return `x` with a border around it.

    Args:
        x: dlarray of any format, ndarray, number or list.
        pad_width: how much before and after each axis: one number, one pair (before, after), a pair for each
            axis, or a dict from axes (by number or label) to numbers or pairs.
        mode: "constant"; or values of x, as in NumPy: "edge", "reflect", "symmetric", "wrap".
        constant_values: the value of a constant border, in the forms of `pad_width` but dict.

    Returns:
        dlarray of the format and dtype of `x`.

    Raises:
        DimsError: if `pad_width` does not fit the axes or is negative, or `mode` needs values of an empty axis.
        ArgumentError: for another mode, or if the widths or values are no numbers.

    Adjoint: the interior of ct; of the other modes, every use of an element adds to its ct.

    Examples:
        >>> import tracejit as tj
        >>> tj.extractdata(tj.pad([1.0, 2.0], (1, 2)))
        array([0., 1., 2., 0., 0.])
    """
    array = as_array(x, "pad")
    if not is_option(mode, _PAD_MODES):
        raise ArgumentError(f"pad: mode={brief(mode)} is not supported; use one of {', '.join(_PAD_MODES)}.")
    shape, format = array._data.shape, array._format
    widths, grown = widths_of(array, pad_width)
    if mode == "constant":
        with np.errstate(all="ignore"):
            values = pairs_of("constant_values", constant_values, len(shape)).astype(array._data.dtype)
        return apart(_constant_border(array, widths, values), array)
    check_room("pad", grown, array._data.dtype)
    for axis, (before, after) in enumerate(widths.tolist()):
        if before or after:
            if not shape[axis]:
                raise DimsError(
                    f"pad: axis {axis} of x ({describe_shape(shape, format)}) is empty, so mode={mode!r} has "
                    'no value to repeat; use mode="constant".'
                )
            places: Any = np.pad(np.arange(shape[axis]), (before, after), mode)  # type: ignore[call-overload]
            array = apply("take", array, places, axis=axis)
    return array.copy() if not widths.any() else array


def widths_of(array: dlarray, pad_width: Any) -> tuple[np.ndarray, tuple[int, ...]]:
    """Return the widths of the borders of an array, a pair for each axis, and the sizes that it has with them."""
    shape, format = array._data.shape, array._format
    if isinstance(pad_width, Mapping):
        pairs: Any = [(0, 0)] * len(shape)
        for name, pair in pad_width.items():
            for axis in normalize_axes("pad", array, name):
                pairs[axis] = pairs_of("pad_width", pair, 1)[0]
        pad_width = np.reshape(pairs, (len(shape), 2)) if shape else 0
    widths = pairs_of("pad_width", as_numbers(pad_width), len(shape))
    if widths.size and (widths.dtype.kind not in "iu" or widths.min() < 0):
        raise DimsError(
            f"pad: pad_width={brief(pad_width)} for x of {describe_shape(shape, format)} must be made of "
            "integers >= 0."
        )
    grown = tuple(map(sum, zip(shape, *widths.T.tolist(), strict=True))) if shape else ()
    check_sizes("pad", "pad_width", grown)
    return widths, grown


def pairs_of(argument: str, value: Any, ndim: int) -> np.ndarray:
    """Return a (before, after) pair for each of `ndim` axes from the forms that NumPy's pad takes."""
    try:
        if recorder.is_array(value):
            raise ValueError
        pairs = ndarray_of(value)
        if pairs.dtype.kind not in "biuf":
            raise ValueError
        return np.broadcast_to(pairs, (ndim, 2)) if ndim else np.zeros((0, 2), np.int64)
    except Exception:
        raise ArgumentError(
            f"pad: {argument} must be a number, a pair (before, after) or one pair for each of the {ndim} "
            f"axes of x, not {brief(value)}."
        ) from None


def _constant_border(array: dlarray, widths: np.ndarray, values: np.ndarray) -> dlarray:
    if not widths.any():
        return array
    pairs = tuple((before, after) for before, after in widths.tolist())
    first = values.flat[0]
    if (values == first).all():
        return apply("pad", array, widths=pairs, value=first.item())
    for axis in range(len(pairs)):
        for side in (0, 1):
            part = [(0, 0)] * len(pairs)
            part[axis] = (pairs[axis][0], 0) if side == 0 else (0, pairs[axis][1])
            if any(part[axis]):
                array = apply("pad", array, widths=tuple(part), value=values[axis, side].item())
    return array


def repeat(x: Any, repeats: Any, axis: Any = None) -> dlarray:
    """Return `x` with each element repeated along an axis.

    Args:
        x: dlarray of any format, ndarray, number or list.
        repeats: how often: a number, or one for each place of the axis. Of traced ones the sum is a guard.
        axis: the axis, by number or label; None repeats the elements in C order along one axis.

    Returns:
        dlarray of the format and dtype of `x` (unformatted for axis=None).

    Raises:
        DimsError: if `repeats` is negative or does not fit the axis.

    Adjoint: ct summed over the repeats.

    Examples:
        >>> import tracejit as tj
        >>> tj.extractdata(tj.repeat([1.0, 2.0], 2))
        array([1., 1., 2., 2.])
    """
    array = as_array(x, "repeat")
    if axis is None:
        array, axis = ravel(array), 0
    array = axis_of_a_number(array, axis)
    axis = normalize_axis("repeat", array, axis)
    shape, format = array._data.shape, array._format
    if recorder.is_array(repeats) and repeats._value is not None and repeats._data.ndim == 1:
        return apply("take", array, _repeated_places(repeats, shape[axis]), axis=axis)
    counts = integers("repeat", "repeats", repeats)
    if len(counts) not in (1, shape[axis]) or min(counts, default=0) < 0:
        raise DimsError(
            f"repeat: repeats={brief(repeats)} must be one number >= 0, or one for each of the {shape[axis]} "
            f"places of axis {axis} of x ({describe_shape(shape, format)})."
        )
    if len(counts) != 1:
        grown = (*shape[:axis], sum(counts), *shape[axis + 1 :])
        check_room("repeat", check_sizes("repeat", "repeats", grown), array._data.dtype)
        places = np.repeat(np.arange(shape[axis]), counts)
        return apply("take", array, places, axis=axis)
    before, after = shape[: axis + 1], shape[axis + 1 :]
    copies = expanded(reshaped(array, (*before, 1, *after), None), (*before, counts[0], *after))
    return apart(reshaped(copies, (*shape[:axis], shape[axis] * counts[0], *after), format), array, "C")


def _repeated_places(counts: dlarray, size: int) -> Any:
    """Return each place as often as traced numbers say; that none is negative, and their sum, are guards."""
    if counts._data.dtype.kind not in "iu":
        raise DTypeError(f"repeat: repeats has dtype {counts._data.dtype}, expected integers.")
    if counts.size != size:
        raise DimsError(f"repeat: repeats has {counts.size} numbers, expected one for each of {size} places.")
    if bool(recorder.need_value((counts < 0).any(), "np.repeat", Decides.TRUTH)):
        raise DimsError("repeat: repeats has negative numbers, expected numbers >= 0.")
    total = int(recorder.need_value(counts.sum(), "np.repeat", Decides.WHOLE))
    ends = apply("cumsum", apply("cast", counts, dtype=np.dtype(np.int64)), axis=0, reverse=False)
    return apply("searchsorted", ends, as_array(np.arange(total)), right=True)


def tile(x: Any, reps: Any) -> dlarray:
    """Return `x` repeated as a whole along each axis.

    Args:
        x: dlarray of any format, ndarray, number or list.
        reps: how often along each axis, aligned from the last; missing axes of `x` are added in front
            (labelled U if it is formatted).

    Raises:
        DimsError: if a number is negative.

    Adjoint: ct summed over the repeats.

    Examples:
        >>> import tracejit as tj
        >>> tj.extractdata(tj.tile([1.0, 2.0], 2))
        array([1., 2., 1., 2.])
    """
    array = as_array(x, "tile")
    counts = integers("tile", "reps", reps)
    if min(counts, default=0) < 0:
        raise DimsError(f"tile: reps={brief(reps)} must be made of integers >= 0.")
    shape, format = array._data.shape, array._format
    ndim = max(len(counts), len(shape))
    extra = ndim - len(shape)
    counts = (1,) * (ndim - len(counts)) + counts
    sizes = (1,) * extra + shape
    labels = None if format is None else "U" * extra + format
    if all(count == 1 for count in counts):
        return apart(reshaped(array, sizes, labels), array)
    total = check_sizes("tile", "reps", tuple(map(operator.mul, counts, sizes)))
    # Only axes that are repeated need one more, so that arrays of many axes stay within NumPy's limit.
    pairs = [(count, size) if count != 1 else (size,) for count, size in zip(counts, sizes, strict=True)]
    single = tuple(extent for pair in pairs for extent in (pair if len(pair) == 1 else (1, pair[1])))
    copies = expanded(reshaped(array, single, None), tuple(extent for pair in pairs for extent in pair))
    return apart(reshaped(copies, total, labels), array)
