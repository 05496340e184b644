# SPDX-License-Identifier: BSD-3-Clause
"""Rearrangement under NumPy's names: more ways to join, split, turn, insert and delete.

Labels: an axis that stays keeps its label; what makes one vector of all elements has none.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.errors import ArgumentValueError, AxisError, BoundsError, KeyTypeError
from tracejit.functions import elementwise, joining, movement, padding, reductions
from tracejit.functions.axes import normalize_axis
from tracejit.functions.formats import in_dtype
from tracejit.functions.numpy_api.flattening import flattened, line
from tracejit.functions.refusals import refuse
from tracejit.record import recorder
from tracejit.record.conversion import ndarray_of
from tracejit.util.arguments import callable_, integer, integers, is_option
from tracejit.util.text import brief


def _arrays(name: str, arrays: Any) -> list[dlarray]:
    if recorder.is_array(arrays):
        return [arrays[i] for i in range(len(arrays))]
    return [as_array(x, name) for x in arrays]


def column_stack(tup: Any) -> dlarray:
    """Return vectors as the columns of a matrix, and matrices side by side."""
    parts = [x if x.ndim > 1 else movement.reshape(x, (-1, 1)) for x in _arrays("np.column_stack", tup)]
    return joining.concatenate(parts, 1)


def dstack(tup: Any) -> dlarray:
    """Return arrays joined along a third axis."""
    return joining.concatenate([movement.atleast_3d(x) for x in _arrays("np.dstack", tup)], 2)


def _splitter(name: str, axis_of: Callable[[dlarray], int], least: int) -> Callable[..., list[dlarray]]:
    def function(ary: Any, indices_or_sections: Any) -> list[dlarray]:
        array = as_array(ary, name)
        if array.ndim < least:
            refuse(name, f"ary has {array.ndim} axes, expected {least} or more", ArgumentValueError)
        return joining.split(array, indices_or_sections, axis_of(array))

    return function


def unstack(x: Any, *, axis: Any = 0) -> tuple[dlarray, ...]:
    """Return the parts of an array along an axis, without that axis."""
    array = as_array(x, "np.unstack")
    number = normalize_axis("np.unstack", array, axis)
    return tuple(array[(slice(None),) * number + (i,)] for i in range(array.shape[number]))


def block(arrays: Any) -> dlarray:
    """Return an array joined of nested lists of blocks: innermost along the last axis, and so on outwards."""
    levels = _depth(arrays)
    ndim = max(levels, _rank(arrays))
    return _blocks(arrays, levels, ndim) if levels else as_array(arrays, "np.block").copy()


def _depth(nested: Any) -> int:
    if not isinstance(nested, list):
        return 0
    depths = {_depth(part) for part in nested}
    if len(depths) != 1:
        refuse(
            "np.block",
            "arrays must be nested equally deep everywhere, and no list may be empty",
            ArgumentValueError,
        )
    return 1 + depths.pop()


def _rank(nested: Any) -> int:
    """Return the largest number of axes of a block."""
    return max(map(_rank, nested)) if isinstance(nested, list) else as_array(nested, "np.block").ndim


def _blocks(nested: Any, level: int, ndim: int) -> dlarray:
    if isinstance(nested, list):
        return joining.concatenate([_blocks(part, level - 1, ndim) for part in nested], ndim - level)
    array = as_array(nested, "np.block")
    if array.ndim == ndim:
        return array
    return movement.reshape(array, (1,) * (ndim - array.ndim) + array.shape)


def append(arr: Any, values: Any, axis: Any = None) -> dlarray:
    """Return values joined to the end of an array, along an axis or as one vector."""
    parts = [as_array(arr, "np.append"), as_array(values, "np.append")]
    if axis is None:
        return joining.concatenate([movement.ravel(x) for x in parts])
    return joining.concatenate(parts, axis)


def _places(name: str, obj: Any, n: int, is_whole: bool = False) -> tuple[np.ndarray, bool]:
    """Return places along an axis of n elements as numbers that are not negative, and whether it is one place alone.

    `is_whole`: a mask needs as many elements as the axis.
    """
    if isinstance(obj, slice):
        return np.arange(*obj.indices(n), dtype=np.int64), False
    found = ndarray_of(recorder.need_value(obj, name) if recorder.is_array(obj) else obj)
    if found.dtype == bool and found.ndim == 1:
        if found.size > n + (not is_whole) or (is_whole and found.size < n):
            refuse(name, f"the mask has {found.size} elements for an axis of {n}", ArgumentValueError)
        return np.flatnonzero(found), False
    if not found.size:
        found = found.astype(np.int64)
    if found.dtype.kind not in "iu" or found.ndim > 1:
        refuse(name, "obj must be an integer, a slice, or a vector of integers or bools", KeyTypeError)
    return found, found.ndim == 0


def delete(arr: Any, obj: Any, axis: Any = None) -> dlarray:
    """Return an array without some places along an axis."""
    array, number = line("np.delete", arr, axis)
    n = array.shape[number]
    places, _ = _places("np.delete", obj, n, is_whole=True)
    if np.any((places < -n) | (places >= n)):
        refuse("np.delete", f"a place is out of range for an axis of {n} elements", BoundsError)
    kept = np.ones(n, bool)
    kept[places] = False
    return apply("take", array, as_array(np.flatnonzero(kept)), axis=number)


def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> dlarray:
    """Return an array with values inserted before some places along an axis."""
    array, number = line("np.insert", arr, axis)
    n = array.shape[number]
    places, single = _places("np.insert", obj, n)
    if np.any((places < -n) | (places > n)):
        refuse("np.insert", f"a place is out of range for an axis of {n} elements", BoundsError)
    places = np.where(places < 0, places + n, places)
    given = in_dtype(movement.relabel(as_array(values, "np.insert", "values"), None), array.dtype)
    rest = (*array.shape[:number], *array.shape[number + 1 :])
    if places.size == 1:
        given = movement.reshape(given, (1,) * (array.ndim - given.ndim) + given.shape)
        if single:
            given = movement.moveaxis(given, 0, number)
        count = given.shape[number]
        given = movement.expanded(given, (*rest[:number], count, *rest[number:]))
        parts = [movement.sliced(array, {number: slice(None, int(places.item()))}), given,
                 movement.sliced(array, {number: slice(int(places.item()), None)})]  # fmt: skip
        return joining.concatenate([movement.relabel(part, array._format) for part in parts], number)
    given = movement.expanded(given, (*rest[:number], places.size, *rest[number:]))
    order = np.argsort(places, kind="stable")
    final = np.empty(places.size, np.int64)
    final[order] = places[order] + np.arange(places.size)
    source = np.full(n + places.size, -1)
    source[final] = n + np.arange(places.size)
    source[source < 0] = np.arange(n)
    both = joining.concatenate([array, movement.relabel(given, array._format)], number)
    return apply("take", both, as_array(source), axis=number)


def resize(a: Any, new_shape: Any) -> dlarray:
    """Return an array of another size that repeats the elements in C order."""
    shape = integers("np.resize", "new_shape", new_shape)
    if any(extent < 0 for extent in shape):
        refuse("np.resize", f"new_shape is {shape}, whose sizes must not be negative", ArgumentValueError)
    flat = flattened("np.resize", a)
    size = int(np.prod(shape, dtype=np.int64))
    if not flat.size:
        return as_array(np.zeros(shape, flat.dtype))
    if size <= flat.size:
        return movement.reshape(flat[:size], shape).copy()
    return movement.reshape(padding.tile(flat, -(-size // flat.size))[:size], shape)


def rot90(m: Any, k: Any = 1, axes: Any = (0, 1)) -> dlarray:
    """Return an array turned by k right angles in the plane of two axes, from the first to the second."""
    array = as_array(m, "np.rot90")
    pair = integers("np.rot90", "axes", tuple(axes))
    numbers = [normalize_axis("np.rot90", array, axis) for axis in pair]
    if len(numbers) != 2 or numbers[0] == numbers[1]:
        refuse("np.rot90", f"axes is {pair}, expected two different axes", ArgumentValueError)
    first, second = numbers
    turns = integer("np.rot90", "k", k) % 4
    if turns == 0:
        return array[...]  # type: ignore[no-any-return]
    if turns == 2:
        return movement.flip(movement.flip(array, first), second)
    if turns == 1:
        return movement.swapaxes(movement.flip(array, second), first, second)
    return movement.flip(movement.swapaxes(array, first, second), second)


def fliplr(m: Any) -> dlarray:
    """Return an array with its second axis reversed."""
    return movement.flip(m, 1)


def flipud(m: Any) -> dlarray:
    """Return an array with its first axis reversed."""
    return movement.flip(m, 0)


def rollaxis(a: Any, axis: Any, start: Any = 0) -> dlarray:
    """Return an array with an axis moved before another one."""
    array = as_array(a, "np.rollaxis")
    n = array.ndim
    number = normalize_axis("np.rollaxis", array, axis)
    place = integer("np.rollaxis", "start", start)
    place = place + n if place < 0 else place
    if not 0 <= place <= n:
        refuse("np.rollaxis", f"start is {start}, expected a place from {-n} to {n}", AxisError)
    place = place - 1 if number < place else place
    return movement.moveaxis(array, number, place) if place != number else array[...]


def matrix_transpose(x: Any) -> dlarray:
    """Return an array with its last two axes exchanged."""
    return movement.swapaxes(x, -1, -2)


def apply_along_axis(func1d: Any, axis: Any, arr: Any, *args: Any, **kwargs: Any) -> dlarray:
    """Return the results of a function of each row along an axis, which lie where the row lay."""
    array = movement.relabel(as_array(arr, "np.apply_along_axis"), None)
    callable_("np.apply_along_axis", "func1d", func1d)
    number = normalize_axis("np.apply_along_axis", array, axis)
    rows = movement.moveaxis(array, number, -1)
    lead = rows.shape[:-1]
    rows = movement.reshape(rows, (math.prod(lead), rows.shape[-1]))
    if not len(rows):
        refuse("np.apply_along_axis", "arr has no rows, so that the size of a result is not known")
    parts = [as_array(func1d(rows[i], *args, **kwargs), "np.apply_along_axis") for i in range(len(rows))]
    result = movement.reshape(joining.stack(parts), lead + parts[0].shape)
    if not parts[0].ndim:
        return result
    own = tuple(range(len(lead), result.ndim))
    return movement.moveaxis(result, own, tuple(range(number, number + len(own))))


def apply_over_axes(func: Any, a: Any, axes: Any) -> dlarray:
    """Return the result of a function of an array and an axis, applied for one axis after the other."""
    value = as_array(a, "np.apply_over_axes")
    callable_("np.apply_over_axes", "func", func)
    n = value.ndim
    for axis in integers("np.apply_over_axes", "axes", axes):
        number = axis + n if axis < 0 else axis
        result = as_array(func(value, number), "np.apply_over_axes")
        value = result if result.ndim == value.ndim else movement.expand_dims(result, number)
    return value


def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: Any = "C") -> dlarray:
    """Return numbers of elements in C order (or order="F") from their indices along each axis."""
    name = "np.ravel_multi_index"
    shape = integers(name, "dims", dims)
    parts = _arrays(name, multi_index)
    if len(parts) != len(shape) or not is_option(order, ("C", "F")):
        refuse(
            name,
            f"there are {len(parts)} indices for {len(shape)} axes, and order is {brief(order)} ('C' or 'F')",
            ArgumentValueError,
        )
    for part in parts:
        if part.dtype.kind not in "iub":
            refuse(name, f"an index has dtype {part.dtype}, expected integers; round and cast it")
    if 0 in shape and any(part.size for part in parts):
        refuse(name, f"dims is {shape}, and an array of no elements has no places", ArgumentValueError)
    modes = (mode,) * len(shape) if isinstance(mode, str) else tuple(mode)
    for how in modes:
        if not is_option(how, ("raise", "wrap", "clip")):
            refuse(name, f"mode must be 'raise', 'wrap' or 'clip', not {brief(how)}", ArgumentValueError)
    total: Any = None
    pairs: Sequence[Any] = list(zip(parts, shape, modes, strict=True))
    for part, extent, how in pairs if order == "C" else pairs[::-1]:
        place = _in_axis(name, part, extent, how)
        total = place if total is None else total * extent + place
    return total  # type: ignore[no-any-return]


def _in_axis(name: str, place: dlarray, extent: int, mode: str) -> dlarray:
    place = in_dtype(place, np.dtype(np.int64))
    if mode == "wrap":
        return place % extent
    if mode == "clip":
        return elementwise.clip(place, 0, extent - 1)
    outside = reductions.any((place < 0) | (place >= extent))
    if bool(recorder.need_value(outside, name)):
        refuse(name, f"an index is out of range for an axis of {extent} elements", ArgumentValueError)
    return place


def unravel_index(indices: Any, shape: Any, order: Any = "C") -> tuple[dlarray, ...]:
    """Return the indices along each axis of elements that are given by their numbers in C order (or order="F")."""
    name = "np.unravel_index"
    sizes = integers(name, "shape", shape)
    places = as_array(indices, name)
    if not is_option(order, ("C", "F")) or places.dtype.kind not in "iub":
        refuse(name, f"indices must be integers, and order 'C' or 'F', not {brief(order)}")
    places = _in_axis(name, places, int(np.prod(sizes, dtype=np.int64)), "raise")
    results = []
    for extent in reversed(sizes) if order == "C" else sizes:
        results.append(places % extent)
        places = places // extent
    return tuple(results[::-1] if order == "C" else results)


FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.column_stack: column_stack,
    np.dstack: dstack,
    np.hsplit: _splitter("np.hsplit", lambda x: 1 if x.ndim > 1 else 0, 1),
    np.vsplit: _splitter("np.vsplit", lambda x: 0, 2),
    np.dsplit: _splitter("np.dsplit", lambda x: 2, 3),
    np.unstack: unstack,
    np.block: block,
    np.append: append,
    np.delete: delete,
    np.insert: insert,
    np.resize: resize,
    np.rot90: rot90,
    np.fliplr: fliplr,
    np.flipud: flipud,
    np.rollaxis: rollaxis,
    np.matrix_transpose: matrix_transpose,
    np.apply_along_axis: apply_along_axis,
    np.apply_over_axes: apply_over_axes,
    np.ravel_multi_index: ravel_multi_index,
    np.unravel_index: unravel_index,
}
