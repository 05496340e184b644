# SPDX-License-Identifier: BSD-3-Clause
"""roll: elements that move along axes, and enter again at the other end."""

from itertools import product
from typing import Any

from tracejit.array import apply, as_array, dlarray
from tracejit.errors import DimsError
from tracejit.functions.axes import normalize_axes, normalize_axis
from tracejit.functions.movement import apart, ravel, relabel, reshaped, sliced
from tracejit.util.arguments import as_numbers, integers
from tracejit.util.text import brief


def roll(x: Any, shift: Any, axis: Any = None) -> dlarray:
    """Return `x` with the elements moved along axes; what leaves at the end enters at the beginning.

    Args:
        x: dlarray of any format, ndarray, number or list.
        shift: by how many places, or a tuple with one number for each axis.
        axis: the axis by number or label, or a tuple of them; None moves along all elements in C order.

    Raises:
        DimsError: if `shift` and `axis` have different lengths.

    Examples:
        >>> import tracejit as tj
        >>> tj.extractdata(tj.roll([1.0, 2.0, 3.0], 1))
        array([3., 1., 2.])
    """
    array = as_array(x, "roll")
    shifts = integers("roll", "shift", shift)
    axis = as_numbers(axis)
    if axis is None:
        flat = _rolled(ravel(array), sum(shifts), 0)
        return apart(reshaped(flat, array._data.shape, array._format), array)
    if isinstance(axis, (tuple, list)):
        axes = tuple(normalize_axis("roll", array, each) for each in axis)
    else:
        axes = normalize_axes("roll", array, axis)
    if len(shifts) != len(axes) and 1 not in (len(shifts), len(axes)):
        raise DimsError(
            f"roll: shift={brief(shift)} and axis={brief(axis)} have different lengths; give one shift, or "
            "one for each axis."
        )
    total = dict.fromkeys(axes, 0)
    for number in range(max(len(shifts), len(axes)) if shifts and axes else 0):
        total[axes[number % len(axes)]] += shifts[number % len(shifts)]
    moving = {
        each: by % extent for each, by in total.items() if (extent := array._data.shape[each]) and by % extent
    }
    result, left = array, list(moving.items())
    while len(left) > 1:
        result, left = _rolled_together(result, dict(left[:_TOGETHER])), left[_TOGETHER:]
    for each, by in left:
        result = _rolled(result, by, each)
    return apart(result, array)


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
