# SPDX-License-Identifier: BSD-3-Clause
"""Indexing with NumPy's keys, assignment as a function that returns a new array, and take.

A key becomes at most one slice, one take at a single (combined) index, and reshapes around them
(Note [what a key becomes]). Integer indices may be traced. Boolean masks are turned into integer indices,
which needs their values, except in ``x[mask] = value``, which is a selection.
"""

from contextlib import suppress
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.aval import INT64, SUPPORTED_DTYPES, describe_shape
from tracejit.errors import ArgumentError, BoundsError, DimsError, DTypeError, TraceError, TraceJitError
from tracejit.functions import windows
from tracejit.functions.axes import normalize_axis
from tracejit.functions.movement import bounds, expanded, permuted, ravel, relabel, reshaped, slice_of
from tracejit.functions.reductions import count_nonzero
from tracejit.ops.movement import index_of
from tracejit.record import recorder, subscripts, views
from tracejit.record.conversion import ndarray_of, too_large
from tracejit.record.number import Number
from tracejit.util.arguments import as_index
from tracejit.util.text import brief

_SLICE, _INT, _NEW, _PLACES, _MASK, _GAP = range(6)  # the kinds of entries of a key


class _Key:
    """A key parsed for an array: see Note [what a key becomes]."""

    __slots__ = (
        "front",
        "index",
        "merged_shape",
        "order",
        "result",
        "result_format",
        "selects_element",
        "sliced_shape",
        "starts",
        "steps",
        "stops",
        "taken_shape",
    )  # fmt: skip

    starts: tuple[int, ...]
    stops: tuple[int, ...]
    steps: tuple[int, ...]
    sliced_shape: tuple[int, ...]  # of the slice, without the axes of integers
    order: tuple[int, ...] | None  # of the axes before the take; None: no take
    front: int  # the axis of the take
    index: Any  # the index array of the take
    merged_shape: tuple[int, ...]  # with the axes that are taken from merged
    taken_shape: tuple[int, ...]  # after the take
    result: tuple[int, ...]
    result_format: str | None
    selects_element: bool  # as a number, which is no view


# Note [what a key becomes]
# x[2, ::2, [0, 1], None, [[3], [4]]] with x of (5, 6, 7, 8):
#   slice      (1, 3, 7, 8)   integers are slices of one place
#   reshape    (3, 7, 8)      without the axes of integers
#   transpose                 only if the axes that are indexed by arrays are apart, or must come first
#   reshape    (3, 56)        the indexed axes merged into one
#   take       (3, 2, 2)      at i * 8 + j, the indices broadcast together
#   reshape                   new axes
# NumPy puts the axes of index arrays (integers count as such beside arrays) where they were if they are next
# to each other in the key, else first; slices, None and ... between them separate them. setitem does the same
# steps on the way in and their inverses on the way out, with put for take and setslice for slice.


def getitem(x: Any, key: Any) -> dlarray:
    """Return ``x[key]``.

    Args:
        x: dlarray of any format, ndarray or list.
        key: what NumPy takes: integers, slices, Ellipsis, None, integer arrays and boolean masks (arrays,
            dlarrays or lists), or a tuple of them. Integer dlarrays may be traced.

    Returns:
        dlarray of the dtype of `x`. An integer drops its axis with its label; slices, a mask of one axis
        and a single 1-D index array keep the label; new axes are labelled U.

    Raises:
        BoundsError: (an IndexError) for a place that `x` does not have, or too many indices.
        DimsError: if index arrays do not broadcast together.
        ArgumentError: for a key of another kind.

    Adjoint: ct set into zeros; of repeated places, added up.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> x = tj.dlarray(np.arange(12.0).reshape(3, 4), "CB")
        >>> x[1].shape, x[:, [0, 0]].shape, x[x > 9].shape
        ((4,), (3, 2), (2,))
    """
    array = as_array(x, "getitem")
    parsed = _parsed_basic("getitem", array, key)
    if parsed is None:
        if _varies(key):
            return windows.getitem(array, key, getitem, setitem)
        parsed = _parse("getitem", array._data.shape, array._format, key)
    region = slice_of(array, parsed.starts, parsed.stops, parsed.steps)
    if parsed.order is not None:
        region = apply("take", _merged(region, parsed), parsed.index, axis=parsed.front)
    result = reshaped(region, parsed.result, parsed.result_format)
    if result._data.ndim:
        return result
    if parsed.selects_element:
        return views.element(result, array)  # type: ignore[no-any-return]
    return views.without_axes(result) if views.is_scalar(result) else result


def _getitem_of_ndarray(array: np.ndarray, key: Any) -> Any:
    """Return ``array[key]`` of an ndarray by a key that varies, if its elements can be recorded."""
    if array.dtype not in SUPPORTED_DTYPES:
        return NotImplemented
    try:
        result = getitem(as_array(array, "getitem"), key)
    except TraceJitError:  # NumPy may do it with the numbers, or raises an error of its own
        return NotImplemented
    numbers = [entry for entry in (key if type(key) is tuple else (key,)) if recorder.is_number(entry)]
    if result._data.ndim or not numbers or array.dtype.kind == "b":
        return result
    return Number(result._data[()], result, frozenset().union(*[number._sources for number in numbers]))


subscripts.answer(_getitem_of_ndarray)


def setitem(x: Any, key: Any, value: Any, *, add: bool = False) -> dlarray:
    """Return a copy of `x` in which ``x[key]`` is `value`; `x` itself does not change.

    Args:
        x: dlarray of any format, ndarray or list.
        key: as in getitem. Where the key is one mask and the value fits every place, nothing depends on the
            number of places, and the mask may be traced.
        value: dlarray, ndarray, number or list that broadcasts to ``x[key]``; it is cast to the dtype of `x`.
            Its labels, if it and `x` have any, must be those of ``x[key]``.
        add: adds the value to what is there, to a place that occurs twice twice, instead of replacing it.

    Returns:
        dlarray of the sizes, format and dtype of `x`.

    Raises:
        BoundsError, ArgumentError: as getitem.
        DimsError: if `value` does not broadcast to ``x[key]`` or has other labels.
        ArgumentError: also if an integer `value` does not fit the dtype of `x`.

    Adjoint: for x, ct with the places zeroed; for the value, ct at the places, 0 for what was overwritten.

    Examples:
        >>> import tracejit as tj
        >>> x = tj.dlarray([1.0, 2.0, 3.0])
        >>> x[1:] = 0
        >>> tj.extractdata(x)
        array([1., 0., 0.])
    """
    array = as_array(x, "setitem")
    if _varies(key):
        return windows.setitem(array, key, value, setitem)
    given = _as_value(array, value)
    mask = _only_mask(key)
    if mask is not None:
        rest = array._data.shape[mask._data.ndim :]
        if given._data.size == 1 and given._data.ndim > len(rest):
            given = reshaped(given, (), None)
        if given._data.ndim <= len(rest):
            _check_mask("setitem", array._data.shape, array._format, mask, 0)
            mask = reshaped(mask, (*mask._data.shape, *(1,) * len(rest)), None)
            given = _fitted(array, given, rest, None)
            if add:
                given = apply("add", relabel(array, None), given)
            chosen = apply("where", mask, given, relabel(array, None))
            return relabel(chosen, array._format)
    parsed = _parsed("setitem", array, key)
    given = _fitted(array, given, parsed.result, parsed.result_format)
    steps = {"starts": parsed.starts, "stops": parsed.stops, "steps": parsed.steps}
    whole = tuple(map(len, map(range, parsed.starts, parsed.stops, parsed.steps)))
    if parsed.order is not None:
        if given._data.ndim:
            given = reshaped(given, parsed.taken_shape, None)
        region = _merged(slice_of(array, **steps), parsed)
        if add:
            given = expanded(given, parsed.taken_shape)
        region = apply("scatter_add" if add else "put", region, parsed.index, given, axis=parsed.front)
        region = reshaped(region, tuple(parsed.sliced_shape[axis] for axis in parsed.order), None)
        given = permuted(region, tuple(parsed.order.index(axis) for axis in range(len(parsed.order))))
        if parsed.sliced_shape == array._data.shape and all(step == 1 for step in parsed.steps):
            return relabel(given, array._format)
    if given._data.ndim:
        given = reshaped(given, whole, None)
    if add and parsed.order is None:
        given = apply("add", relabel(slice_of(array, **steps), None), given)
    return apply("setslice", array, given, **steps)


def assign(array: dlarray, key: Any, value: Any) -> None:
    """Write a value into the elements of an array that a key names, as ``array[key] = value`` does.

    Args:
        array: the array to write.
        key, value: as in setitem.

    Raises:
        BoundsError, ArgumentError, DimsError: as setitem.
        ArgumentError: also for a number, which NumPy calls a scalar.
        WriteError: if the array is read-only.
    """
    if views.is_scalar(array):
        raise ArgumentError(
            f"setitem: x of {recorder.describe(array)} is a number that an operation gave, and a number is not "
            "written, as NumPy's scalars are not; assign a new one (x = 0.0)."
        )
    if not views.is_in_memory(array) or not views.is_constant(value):
        if not _is_own_part(array, key, value):
            views.store(array, setitem(array, key, value))
        return
    views.check_writeable(array)
    is_plain = _only_mask(key) is None and not _varies(key)
    parsed = _parsed("setitem", array, key) if is_plain else None
    if parsed is None or parsed.order is not None:
        if recorder.recorder() is not None:  # a constant stays one
            key = tuple(map(_as_constant, key)) if isinstance(key, tuple) else _as_constant(key)
            value = _as_constant(_as_value(array, value)) if type(value) in (int, float, bool) else value
        views.store(array, setitem(array, key, value))
        return
    given = _fitted(array, _as_value(array, value), parsed.result, parsed.result_format)
    if given._value is not None:
        views.store(array, setitem(array, key, value))
        return
    whole = tuple(map(len, map(range, parsed.starts, parsed.stops, parsed.steps)))
    data = given._data.reshape(whole) if given._data.ndim else given._data
    array._data[index_of(parsed.starts, parsed.stops, parsed.steps)] = data


def _as_constant(x: Any) -> Any:
    """Return an untraced number, or integers in a list or a range, as an array that is private to the recording."""
    if isinstance(x, list) and x and all(type(part) in (int, bool) for part in x):
        x = as_array(np.asarray(x))
    elif isinstance(x, range) and len(x):
        x = as_array(np.asarray(x, INT64))
    elif type(x) is not dlarray or x._value is not None or x._data.ndim or x._view is not None:
        return x
    recorder.recorder().memories.private(x, is_ndarray=True)  # type: ignore[union-attr]
    return x


def _is_own_part(array: dlarray, key: Any, value: Any) -> bool:
    """Return whether a value is the very part of the array that a key names: Python assigns it after x[key] += y."""
    if type(value) is not dlarray or type(value._view) is not tuple:
        return False
    if _varies(key):
        base, op, _ = value._view
        return base is array and type(op) is windows.Part and op.has(key)
    steps = []
    while value is not array:
        if type(value._view) is not tuple:
            return False
        value, op, params = value._view
        if op is not None:
            steps.append((op.name, params))
    entries = key if isinstance(key, tuple) else (key,)
    if not all(type(entry) in (int, slice) or entry is None or entry is Ellipsis for entry in entries):
        return False
    parsed = _parsed("setitem", array, key)
    expected: list[tuple[str, Any]] = [
        ("reshape", {"shape": parsed.result}),
        ("slice", {"starts": parsed.starts, "stops": parsed.stops, "steps": parsed.steps}),
    ]
    lengths = tuple(map(len, map(range, parsed.starts, parsed.stops, parsed.steps)))
    if parsed.result == lengths:
        del expected[0]
    if lengths == array._data.shape and all(step == 1 for step in parsed.steps):
        del expected[-1]
    return steps == expected


def _varies(key: Any) -> bool:
    """Return whether numbers that vary are in a key that is no index array."""
    current = recorder.thread.recorder
    return current is not None and bool(current.varying) and windows.names_part(key)


def _parsed(function: str, array: Any, key: Any) -> _Key:
    """Parse a key."""
    parsed = _parsed_basic(function, array, key)
    return _parse(function, array._data.shape, array._format, key) if parsed is None else parsed


def _parsed_basic(function: str, array: Any, key: Any) -> _Key | None:
    """Parse a key that is made only of integers, slices, None and ..., once for equal ones; None for another key."""
    parts: list[Any] = []
    for entry in key if isinstance(key, tuple) else (key,):
        if type(entry) is slice:
            # Slices cannot be hashed; only integers are let through, since 1 and True would be one key.
            start, stop, step = entry.start, entry.stop, entry.step
            if (
                (start is not None and type(start) is not int)
                or (stop is not None and type(stop) is not int)
                or (step is not None and type(step) is not int)
            ):
                return None
            parts.append((start, stop, step))
        elif type(entry) is int or entry is None or entry is Ellipsis:
            parts.append(entry)
        else:
            return None
    return _parse_basic(function, array._data.shape, array._format, tuple(parts))


@lru_cache(maxsize=4096)
def _parse_basic(function: str, shape: tuple[int, ...], format: str | None, parts: tuple[Any, ...]) -> _Key:
    key = tuple(slice(*part) if type(part) is tuple else part for part in parts)
    return _parse(function, shape, format, key)


def _parse(function: str, shape: tuple[int, ...], format: str | None, key: Any) -> _Key:
    """Parse a key."""
    entries = _entries(function, shape, format, key)
    parsed = _Key()
    starts, stops, steps = [], [], []
    kept: list[int] = []  # axes of x that the slice keeps
    places: list[tuple[int, Any]] = []  # (position in kept, index array)
    result: list[int] = []  # sizes, first without those of the axes of index arrays
    labels: list[str] = []
    group: int | None = None  # the place in `result` of the axes of index arrays
    apart = closed = False
    any_places = any(kind == _PLACES for kind, _ in entries)
    axis = 0
    for kind, entry in entries:
        if kind in (_NEW, _GAP):
            if kind == _NEW:
                result.append(1)
                labels.append("U")
            closed = group is not None
            continue
        extent = shape[axis]
        if kind == _SLICE:
            try:
                start, stop, step = bounds(entry, extent)
            except Exception as error:
                raise ArgumentError(
                    f"{function}: {brief(entry)} is not an index of an axis: {error}."
                ) from None
            result.append(len(range(start, stop, step)))
            labels.append(format[axis] if format else "U")
            kept.append(axis)
            closed = group is not None
        else:
            if any_places:
                apart = apart or closed
                group = len(result) if group is None else group
            if kind == _INT:
                start, stop, step = entry, entry + 1, 1
            else:
                start, stop, step = 0, extent, 1
                places.append((len(kept), entry))
                kept.append(axis)
        starts.append(start)
        stops.append(stop)
        steps.append(step)
        axis += 1
    parsed.starts, parsed.stops, parsed.steps = tuple(starts), tuple(stops), tuple(steps)
    parsed.sliced_shape = tuple(len(range(starts[i], stops[i], steps[i])) for i in kept)
    parsed.order = None
    if any_places:
        _plan_take(function, parsed, places, apart)
        index_shape = parsed.index._data.shape
        at = 0 if apart else group
        result[at:at] = index_shape
        if format and len(places) == 1 and len(index_shape) == 1:
            labels[at:at] = format[kept[places[0][0]]]
        else:
            labels[at:at] = "U" * len(index_shape)
    parsed.result, parsed.selects_element = tuple(result), not result and _is_integers(key)
    parsed.result_format = "".join(labels) if format and labels else None
    return parsed


def _is_integers(key: Any) -> bool:
    """Return whether a key for one element has no ellipsis, which would make a view of it."""
    return not any(entry is Ellipsis for entry in (key if isinstance(key, tuple) else (key,)))


def _plan_take(function: str, parsed: _Key, places: list[tuple[int, Any]], first: bool) -> None:
    """Complete a key with the take: index arrays at positions of the sliced array, whose axes come `first` or stay."""
    sizes = parsed.sliced_shape
    positions = [position for position, _ in places]
    others = [position for position in range(len(sizes)) if position not in positions]
    before = 0 if first else positions[0]
    parsed.order = (*others[:before], *positions, *others[before:])
    parsed.front = before
    extents = [sizes[position] for position in positions]
    parsed.index = _combined(function, [index for _, index in places], extents)
    lead = tuple(sizes[position] for position in others[:before])
    trail = tuple(sizes[position] for position in others[before:])
    parsed.merged_shape = (*lead, prod(extents), *trail)
    parsed.taken_shape = (*lead, *parsed.index._data.shape, *trail)


def _entries(function: str, shape: tuple[int, ...], format: str | None, key: Any) -> list[tuple[int, Any]]:
    """Return what each entry of a key is, with one slice, integer or index array for each axis of `shape`."""
    entries: list[tuple[int, Any]] = []
    whole: tuple[int, Any] = (_SLICE, slice(None))
    used = 0
    ellipsis: int | None = None
    for entry in key if isinstance(key, tuple) else (key,):
        if type(entry) is int:
            entries.append((_INT, entry))
        elif type(entry) is slice:
            entries.append((_SLICE, entry))
        elif entry is None:
            entries.append((_NEW, None))
            continue
        elif entry is Ellipsis:
            if ellipsis is not None:
                raise BoundsError(
                    f"{function}: the key has two ellipses (...); one stands for all axes left out."
                )
            ellipsis = len(entries)
            continue
        else:
            kind, meant = _array_entry(function, entry)
            entries.append((kind, meant))
            if kind == _MASK:
                used += meant._data.ndim
                continue
        used += 1
    missing = len(shape) - used
    if missing < 0:
        raise BoundsError(
            f"{function}: the key indexes {used} axes, but x "
            f"({describe_shape(shape, format)}) has {len(shape)}; leave out "
            "indices, or add axes with None."
        )
    if ellipsis is not None:
        # An ellipsis keeps the arrays on its sides apart even where it stands for no axis.
        entries[ellipsis:ellipsis] = [whole] * missing or [(_GAP, None)]
    else:
        entries += [whole] * missing
    return _checked_entries(function, shape, format, entries)


def _array_entry(function: str, entry: Any) -> tuple[int, Any]:
    """Return an entry that is no slice, None or Ellipsis as an integer, an index array or a mask."""
    if recorder.is_number(entry) and windows.is_place(entry):
        return (_PLACES, entry._array)  # beside index arrays an integer is one
    if not recorder.is_array(entry):
        if not isinstance(entry, (np.ndarray, np.generic, list, tuple, range, bool)):
            number = as_index(entry)
            if number is None:
                raise _no_index(function, entry)
            return (_INT, number)
        try:
            entry = ndarray_of(entry)
        except TraceError:
            raise
        except Exception:
            raise _no_index(function, entry) from None
        if not entry.size and entry.dtype == np.float64:
            entry = entry.astype(INT64)  # an empty list
        if entry.ndim == 0 and entry.dtype.kind in "iu":
            return (_INT, int(entry))
        entry = as_array(entry, function)
    kind = entry._data.dtype.kind
    if kind in "iu":
        return (_PLACES, relabel(entry, None))
    if kind == "b":
        if entry._data.ndim == 0:
            raise ArgumentError(
                f"{function}: a single boolean is not an index; use where(condition, a, b), or a mask "
                "of the size of x."
            )
        return (_MASK, entry)
    raise DTypeError(
        f"{function}: an index array has dtype {entry._data.dtype}, expected integers or booleans. "
        "Round and cast it (index.astype(np.int64))."
    )


def _no_index(function: str, entry: Any) -> ArgumentError:
    return ArgumentError(
        f"{function}: {brief(entry)} is not an index; use integers, slices, ..., None, integer arrays or boolean masks."
    )


def _checked_entries(
    function: str, shape: tuple[int, ...], format: str | None, entries: list[tuple[int, Any]]
) -> list[tuple[int, Any]]:
    """Return entries with integers in range and counted from the start, and masks as index arrays."""
    checked: list[tuple[int, Any]] = []
    axis = 0
    for kind, entry in entries:
        if kind in (_NEW, _GAP):
            checked.append((kind, entry))
            continue
        if kind == _MASK:
            _check_mask(function, shape, format, entry, axis)
            places = _true_places(entry, "the size of a selection by a mask")
            checked += [(_PLACES, index) for index in places]
            axis += len(places)
            continue
        if kind == _INT:
            extent = shape[axis]
            if not -extent <= entry < extent:
                legal = f"valid indices are {-extent} to {extent - 1}" if extent else "the axis is empty"
                raise BoundsError(
                    f"{function}: index {brief(entry)} is out of range for axis {axis} of x "
                    f"({describe_shape(shape, format)}); {legal}."
                )
            checked.append((kind, entry % extent))
        else:
            checked.append((kind, entry))
        axis += 1
    return checked


def _check_mask(function: str, shape: tuple[int, ...], format: str | None, mask: Any, axis: int) -> None:
    have, ndim = mask._data.shape, mask._data.ndim
    if shape[axis : axis + ndim] != have:
        raise BoundsError(
            f"{function}: a mask of {describe_shape(have, mask._format)} does not fit x "
            f"({describe_shape(shape, format)}) from axis {axis} on; it must have the "
            "sizes of the axes that it selects from."
        )


def _only_mask(key: Any) -> Any:
    """Return the mask of a key that is one mask, with or without an ellipsis after it, or None."""
    if isinstance(key, tuple):
        if not (len(key) == 1 or (len(key) == 2 and key[1] is Ellipsis)):
            return None
        key = key[0]
    if not recorder.is_array(key):
        if not isinstance(key, (np.ndarray, np.bool_, list, bool)):
            return None
        try:
            key = ndarray_of(key)
        except Exception:  # no mask; _parse says what is wrong with it
            return None
        if key.dtype != bool:
            return None
        key = as_array(key)
    return relabel(key, None) if key._data.dtype == bool else None


def _combined(function: str, indices: list[dlarray], extents: list[int]) -> dlarray:
    """Return one index into axes merged in C order that does what `indices` of each of them do together."""
    if len(indices) == 1:
        return indices[0]
    try:
        np.broadcast_shapes(*[index._data.shape for index in indices])
    except ValueError:
        sizes = " and ".join(describe_shape(index._data.shape, None) for index in indices)
        raise DimsError(
            f"{function}: index arrays of sizes {sizes} do not broadcast together; their sizes, aligned "
            "from the last, must be equal or 1. Index one axis after the other, or reshape them."
        ) from None
    for index, extent in zip(indices, extents, strict=True):
        outside = (index._data < -extent) | (index._data >= extent)
        if outside.any():
            raise BoundsError(
                f"{function}: index {index._data[outside][0]} is out of range for an axis of size {extent}; "
                f"valid indices are {-extent} to {extent - 1}."
            )
    if recorder.recorder() is None:
        total: Any = 0
        for index, extent in zip(indices, extents, strict=True):
            recorder.check_open(index)
            places = index._data.astype(INT64, copy=False)
            total = total * extent + np.where(places < 0, places + extent, places)
        return as_array(total)
    # A replay sees other indices: one out of range must not name a place in another row, so all of the result
    # of such a one is sent out of range.
    flat: dlarray | None = None
    inside: dlarray | None = None
    for index, extent in zip(indices, extents, strict=True):
        place = index if index._data.dtype == INT64 else apply("cast", index, dtype=INT64)
        fits = apply("logical_and", apply("less_equal", -extent, place), apply("less", place, extent))
        place = apply("where", apply("less", place, 0), apply("add", place, extent), place)
        flat = place if flat is None else apply("add", apply("mul", flat, extent), place)
        inside = fits if inside is None else apply("logical_and", inside, fits)
    return apply("where", inside, flat, prod(extents))


def _merged(region: dlarray, parsed: _Key) -> dlarray:
    """Return a slice of x with the axes that are indexed by arrays next to each other and merged into one."""
    assert parsed.order is not None
    region = permuted(reshaped(region, parsed.sliced_shape, None), parsed.order)
    return reshaped(region, parsed.merged_shape, None)


def _as_value(array: dlarray, value: Any, function: str = "setitem", argument: str = "value") -> dlarray:
    """Return a value to assign in the dtype of `array`."""
    dtype = array._data.dtype
    if recorder.is_number(value) and value.fits(dtype):
        value = value._array
    elif isinstance(value, (int, float)):
        if isinstance(value, int) and dtype.kind in "iu":
            info = np.iinfo(dtype)
            if not info.min <= value <= info.max:
                raise ArgumentError(
                    f"{function}: the {argument} {brief(value)} does not fit x of type {dtype} "
                    f"({info.min} to {info.max}); cast x first."
                )
        try:
            with np.errstate(all="ignore"):
                return as_array(np.asarray(value).astype(dtype))
        except OverflowError:
            raise too_large(value, function, argument) from None
    given = as_array(value, function, argument)
    return given if given._data.dtype == dtype else apply("cast", given, dtype=dtype)


def _fitted(array: dlarray, given: dlarray, shape: tuple[int, ...], format: str | None) -> dlarray:
    """Return a value broadcast to the `shape` of what is assigned (or a scalar), without labels."""
    have, labels = given._data.shape, given._format
    if (
        format
        and labels
        and any(
            "U" not in pair and pair[0] != pair[1]
            for pair in zip(reversed(format), reversed(labels), strict=False)
        )
    ):
        raise DimsError(
            f"setitem: the value is {describe_shape(have, labels)}, but the assigned part of x is "
            f"{describe_shape(shape, format)}; labels must agree. Permute the value, or use stripdims."
        )
    if not have:
        return relabel(given, None)
    extra = len(have) - len(shape)
    if extra > 0 and have[:extra] == (1,) * extra:
        have = have[extra:]
    aligned = shape[len(shape) - len(have) :]
    if len(have) > len(shape) or any(a not in (1, b) for a, b in zip(have, aligned, strict=True)):
        raise DimsError(
            f"setitem: a value of size {describe_shape(given._data.shape, labels)} does not broadcast to "
            f"the {describe_shape(shape, format)} places of x "
            f"({describe_shape(array._data.shape, array._format)}) that are assigned; aligned from the "
            "last axis, each size must be 1 or equal."
        )
    return expanded(reshaped(given, have, None), shape)


def take(x: Any, indices: Any, axis: Any = None) -> dlarray:
    """Return the elements of `x` at integer places along an axis.

    Args:
        x: dlarray of any format, ndarray or list.
        indices: integers of any sizes (dlarray, traced or not, ndarray, list); negative: from the end.
        axis: the axis, by number or label; None takes from all elements in C order.

    Returns:
        dlarray with the sizes of `indices` in place of the axis; 1-D indices keep its label, others give U.

    Raises:
        BoundsError: (an IndexError) for a place out of range.
        DTypeError: if `indices` are not integers.
        DimsError: if there is no such axis.

    Adjoint: ct added to zeros at the places.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> tj.take(np.arange(12.0).reshape(3, 4), [0, 0, 2], axis=0).shape
        (3, 4)
    """
    array = as_array(x, "take")
    index = relabel(_indices("take", indices), None)
    if axis is None:
        array, axis = ravel(array), 0
    return apply("take", array, index, axis=normalize_axis("take", array, axis))


def take_along_axis(x: Any, indices: Any, axis: Any = -1) -> dlarray:
    """Return, for each of `indices`, the element of `x` at that place along an axis.

    Args:
        x: dlarray of any format, ndarray or list.
        indices: integers with as many axes as `x`; other axes broadcast (``argmax(x, axis, keepdims=True)``).
        axis: the axis, by number or label; None takes from all elements in C order at 1-D indices.

    Returns:
        dlarray of the format and dtype of `x`.

    Raises:
        BoundsError: (an IndexError) for a place out of range.
        DTypeError: if `indices` are not integers.
        DimsError: if the sizes do not broadcast or there is no such axis.

    Adjoint: ct added to zeros at the places.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> tj.extractdata(tj.take_along_axis(np.array([[1.0, 2.0], [3.0, 4.0]]), [[1], [0]], 1))
        array([[2.],
               [3.]])
    """
    array = as_array(x, "take_along_axis")
    index = relabel(_indices("take_along_axis", indices), None)
    if axis is None:
        array, axis = ravel(array), 0
    axis = normalize_axis("take_along_axis", array, axis)
    have, wanted = array._data.shape, index._data.shape
    if len(have) == len(wanted):
        pairs = [(a, b) if i != axis else (1, 1) for i, (a, b) in enumerate(zip(have, wanted, strict=True))]
        if all(a == b or 1 in (a, b) for a, b in pairs):
            common = [b if a == 1 else a for a, b in pairs]
            array = expanded(array, (*common[:axis], have[axis], *common[axis + 1 :]))
            index = expanded(index, (*common[:axis], wanted[axis], *common[axis + 1 :]))
    return apply("take_along_axis", array, index, axis=axis)


def scatter_add(x: Any, indices: Any, values: Any, axis: Any = 0) -> dlarray:
    """Return `x` with `values` added at the given places along an axis; values at equal places add up.

    Args:
        x: dlarray of any format, ndarray or list.
        indices: integers of any size, from -n to n - 1 for an axis of size n.
        values: what is added, of the size of ``take(x, indices, axis)`` or one that broadcasts to it.
        axis: the axis, by number or label.

    Returns:
        dlarray of the size, format and dtype of `x`; `x` itself is not changed.

    Raises:
        BoundsError: (an IndexError) for a place out of range.
        DTypeError: if `indices` are not integers, or `x` is bool.
        DimsError: if `values` do not broadcast or there is no such axis.

    Adjoint: ct for `x`, take(ct, indices) for `values`.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> tj.scatter_add(np.zeros(4), [0, 2, 2], [1.0, 10.0, 100.0]).tolist()
        [1.0, 0.0, 110.0, 0.0]
    """
    array = as_array(x, "scatter_add")
    index = relabel(_indices("scatter_add", indices), None)
    axis = normalize_axis("scatter_add", array, axis)
    have = array._data.shape
    shape = have[:axis] + index._data.shape + have[axis + 1 :]
    given = relabel(_as_value(array, values, "scatter_add", "values"), None)
    if given._data.shape != shape:
        with suppress(DimsError):  # the op names the sizes
            given = expanded(given, shape)
    return apply("scatter_add", array, index, given, axis=axis)


def _indices(function: str, indices: Any) -> dlarray:
    array = as_array(indices, function)
    if not array._data.size and isinstance(indices, list):
        return as_array(array._data.astype(INT64))  # NumPy makes an empty list floating-point
    return array


def nonzero(x: Any) -> tuple[dlarray, ...]:
    """Return the places where `x` is not zero: one array of int64 for each axis.

    Args:
        x: dlarray of any format, ndarray or list. The number of places is a size, which a recorded function may depend
            on: a different number is recorded again.

    Returns:
        Tuple of unformatted 1-D dlarrays, a constant for dlgradient.

    Examples:
        >>> import tracejit as tj
        >>> [tj.extractdata(places) for places in tj.nonzero([0.0, 3.0, 4.0])]
        [array([1, 2])]
    """
    array = as_array(x, "nonzero")
    if not array._data.ndim:
        raise DimsError("nonzero: x is a scalar, which has no places; pass atleast_1d(x), or use x != 0.")
    return tuple(_true_places(array, "the number of places of nonzero"))


def _true_places(array: Any, what: str) -> list[Any]:
    """Return the places where an array is not zero, one array for each axis; `what` names their number."""
    if not recorder.steers(array) or not array._data.ndim:
        return [as_array(places) for places in np.nonzero(recorder.need_value(array, what))]
    count = int(recorder.need_value(count_nonzero(array), what))
    place = apply("true_places", relabel(array, None), count=count)
    places = []
    for extent in reversed(array._data.shape[1:]):
        places.append(apply("mod", place, extent))
        place = apply("floordiv", place, extent)
    return [place, *reversed(places)]
