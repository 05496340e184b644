# SPDX-License-Identifier: BSD-3-Clause
"""roll: elements that move along axes, and enter again at the other end."""

from itertools import product
from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.aval import INT64
from tracejit.errors import DimsError
from tracejit.functions import elementwise
from tracejit.functions.axes import normalize_axes, normalize_axis
from tracejit.functions.movement import apart, ravel, relabel, reshaped, sliced
from tracejit.record import recorder
from tracejit.util.arguments import as_index, as_numbers, integers
from tracejit.util.text import brief


def roll(x: Any, shift: Any, axis: Any = None) -> dlarray:
    """Return `x` with the elements moved along axes; what leaves at the end enters at the beginning.

    Args:
        x: dlarray of any format, ndarray, number or list.
        shift: by how many places, or a tuple with one number for each axis; of numbers that vary, and traced integers,
            the elements are taken at places that a replay computes.
        axis: the axis by number or label, or a tuple of them; None moves along all elements in C order.

    Raises:
        DimsError: if `shift` and `axis` have different lengths.

    Examples:
        >>> import tracejit as tj
        >>> tj.extractdata(tj.roll([1.0, 2.0, 3.0], 1))
        array([3., 1., 2.])
    """
    array = as_array(x, "roll")
    axis = as_numbers(axis)
    if axis is None:
        flat = ravel(array)
        varying = _varying(shift)
        shifts = integers("roll", "shift", shift) if varying is None else varying
        moved = _rolled(flat, sum(shifts), 0) if varying is None else _taken(flat, {0: varying})
        return apart(reshaped(moved, array._data.shape, array._format), array)
    if isinstance(axis, (tuple, list)):
        axes = tuple(normalize_axis("roll", array, each) for each in axis)
    else:
        axes = normalize_axes("roll", array, axis)
    varying = _varying(shift)
    shifts = integers("roll", "shift", shift) if varying is None else varying
    if len(shifts) != len(axes) and 1 not in (len(shifts), len(axes)):
        raise DimsError(
            f"roll: shift={brief(shift)} and axis={brief(axis)} have different lengths; give one shift, or "
            "one for each axis."
        )
    of_axis: dict[int, list[Any]] = {each: [] for each in axes}
    for number in range(max(len(shifts), len(axes)) if shifts and axes else 0):
        of_axis[axes[number % len(axes)]].append(shifts[number % len(shifts)])
    if varying is not None:
        return apart(_taken(array, of_axis), array)
    total = {each: sum(parts) for each, parts in of_axis.items()}
    moving = {
        each: by % extent for each, by in total.items() if (extent := array._data.shape[each]) and by % extent
    }
    result, left = array, list(moving.items())
    while len(left) > 1:
        result, left = _rolled_together(result, dict(left[:_TOGETHER])), left[_TOGETHER:]
    for each, by in left:
        result = _rolled(result, by, each)
    return apart(result, array)


_DTYPES = frozenset(
    map(np.dtype, ("i1", "i2", "i4", "i8", "u1", "u2", "u4"))
)  # that 64 bits hold with a sign


def _varying(shift: Any) -> list[Any] | None:
    """Return shifts of which one varies from replay to replay, int64 arrays without axes or integers; else None."""
    if recorder.is_array(shift):
        if not recorder.steers(shift) or shift.ndim > 1 or shift.dtype not in _DTYPES:
            return None
        whole = elementwise.cast(shift, INT64)
        return [whole] if not whole.ndim else [as_array(whole[place]) for place in range(whole.size)]
    entries = shift if isinstance(shift, (tuple, list)) else [shift]
    found = [_entry(entry) for entry in entries]
    return found if any(map(recorder.is_array, found)) and None not in map(_integer, found) else None


def _entry(shift: Any) -> Any:
    """Return a shift as an array if it varies, and is an integer; anything else as it is."""
    array = shift._array if recorder.is_number(shift) and shift._kind is not bool else shift
    is_of_replays = recorder.is_array(array) and recorder.steers(array) and not array.ndim
    return elementwise.cast(array, INT64) if is_of_replays and array.dtype in _DTYPES else shift


def _integer(shift: Any) -> Any:
    """Return a shift that is an integer, or an array that stands for one; None for any other."""
    return shift if recorder.is_array(shift) else as_index(shift)


def _taken(array: dlarray, of_axis: dict[int, list[Any]]) -> dlarray:
    """Return an array rolled by shifts that vary: along each axis its elements are taken at computed places."""
    for axis, shifts in of_axis.items():
        extent = array._data.shape[axis]
        if not extent:
            continue
        places: Any = as_array(np.arange(extent))
        for shift in shifts:  # which is large, or the sum is
            by = apply("mod", shift, extent) if recorder.is_array(shift) else as_index(shift) % extent
            places = apply("sub", places, by)
        array = apply("take", array, apply("mod", places, extent), axis=axis)
    return array


_TOGETHER = 3  # axes that are rolled at once, which cuts an array into 8 parts


def _rolled_together(array: dlarray, shifts: dict[int, int]) -> dlarray:
    """Return an array rolled along several axes, put together of parts once."""
    shape = array._data.shape
    parts, places = [], []
    for wraps in product(*[(False, True)] * len(shifts)):
        keys, start, stop = {}, [0] * len(shape), list(shape)
        for (axis, shift), is_wrapped in zip(shifts.items(), wraps, strict=True):
            cut = shape[axis] - shift
            keys[axis] = slice(cut, None) if is_wrapped else slice(0, cut)
            start[axis], stop[axis] = (0, shift) if is_wrapped else (shift, shape[axis])
        parts.append(relabel(sliced(array, keys), None))
        places.append((tuple(start), tuple(stop), (1,) * len(shape)))
    return relabel(apply("assemble", *parts, shape=shape, places=tuple(places)), array._format)


def _rolled(array: dlarray, shift: int, axis: int) -> dlarray:
    extent = array._data.shape[axis]
    shift = shift % extent if extent else 0
    if not shift:
        return array
    cut = extent - shift
    parts = sliced(array, {axis: slice(cut, None)}), sliced(array, {axis: slice(0, cut)})
    return apply("concatenate", *parts, axis=axis)
