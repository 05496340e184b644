# SPDX-License-Identifier: BSD-3-Clause
"""Parsed keys: the steps that stand for NumPy's key of an array, shared by ``x[key]`` and assignments.

A key becomes at most one slice, one take at a single (combined) index, and reshapes around them
(Note [what a key becomes]). Integer indices may be traced. Boolean masks are turned into integer indices,
which needs their values, except in ``x[mask] = value``, which is a selection.
"""

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.aval import INT64, describe_shape
from tracejit.errors import ArgumentError, BoundsError, DimsError, KeyTypeError, TraceError
from tracejit.functions import windows
from tracejit.functions.movement import bounds, relabel
from tracejit.functions.reductions import count_nonzero
from tracejit.record import recorder
from tracejit.record.conversion import joined, ndarray_of
from tracejit.record.selections import SIZE_OF_SELECTION
from tracejit.util.arguments import as_index
from tracejit.util.devices import on_host
from tracejit.util.text import brief

_SLICE, _INT, _NEW, _PLACES, _MASK, _GAP, _FLAG = range(7)  # the kinds of entries of a key


class ParsedKey:
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
# A single boolean is an index array, of one place or none, of an axis of size 1 that the first reshape adds.
# NumPy puts the axes of index arrays (integers count as such beside arrays) where they were if they are next
# to each other in the key, else first; slices, None and ... between them separate them. setitem does the same
# steps on the way in and their inverses on the way out, with put for take and setslice for slice.


def varies(key: Any) -> bool:
    """Return whether numbers that vary are in a key that is no index array."""
    current = recorder.thread.recorder
    return current is not None and bool(current.varying) and windows.names_part(key)


def parsed_key(function: str, array: Any, key: Any) -> ParsedKey:
    """Parse a key."""
    parsed = parsed_basic_key(function, array, key)
    return parse_key(function, array._data.shape, array._format, key) if parsed is None else parsed


def parsed_basic_key(function: str, array: Any, key: Any) -> ParsedKey | None:
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
def _parse_basic(
    function: str, shape: tuple[int, ...], format: str | None, parts: tuple[Any, ...]
) -> ParsedKey:
    key = tuple(slice(*part) if type(part) is tuple else part for part in parts)
    return parse_key(function, shape, format, key)


def parse_key(function: str, shape: tuple[int, ...], format: str | None, key: Any) -> ParsedKey:
    """Parse a key."""
    entries = _entries(function, shape, format, key)
    parsed = ParsedKey()
    starts, stops, steps = [], [], []
    kept: list[int | None] = []  # axes of x that the slice keeps, None for one that a single boolean adds
    places: list[tuple[int, Any]] = []  # (position in kept, index array)
    result: list[int] = []  # sizes, first without those of the axes of index arrays
    labels: list[str] = []
    group: int | None = None  # the place in `result` of the axes of index arrays
    apart = closed = False
    any_places = any(kind in (_PLACES, _FLAG) for kind, _ in entries)
    axis = 0
    for kind, entry in entries:
        if kind in (_NEW, _GAP):
            if kind == _NEW:
                result.append(1)
                labels.append("U")
            closed = group is not None
            continue
        if kind == _FLAG:
            apart = apart or closed
            group = len(result) if group is None else group
            places.append((len(kept), entry))
            kept.append(None)
            continue
        extent = shape[axis]
        if kind == _SLICE:
            start, stop, step = _bounds(function, entry, extent)
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
    parsed.sliced_shape = tuple([1 if i is None else len(range(starts[i], stops[i], steps[i])) for i in kept])
    parsed.order = None
    if any_places:
        _plan_take(function, parsed, places, apart)
        index_shape = parsed.index._data.shape
        at = 0 if apart else group
        result[at:at] = index_shape
        of = kept[places[0][0]] if len(places) == 1 and len(index_shape) == 1 else None
        labels[at:at] = "U" * len(index_shape) if not format or of is None else format[of]
    parsed.result, parsed.selects_element = tuple(result), not result and _is_integers(key)
    parsed.result_format = "".join(labels) if format and labels else None
    return parsed


def _bounds(function: str, entry: slice, extent: int) -> tuple[int, int, int]:
    try:
        return bounds(entry, extent)
    except Exception as error:
        raise ArgumentError(f"{function}: {brief(entry)} is not an index of an axis: {error}.") from None


def _is_integers(key: Any) -> bool:
    """Return whether a key for one element has no ellipsis, which would make a view of it."""
    return not any(entry is Ellipsis for entry in (key if isinstance(key, tuple) else (key,)))


def _plan_take(function: str, parsed: ParsedKey, places: list[tuple[int, Any]], first: bool) -> None:
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
    entry = (
        entry.needed("a truth as an index")
        if recorder.is_number(entry) and entry._kind is bool
        else _joined(entry)
    )
    if not recorder.is_array(entry):
        if not isinstance(entry, (np.ndarray, np.generic, list, tuple, range, bool)):
            number = as_index(entry)
            if number is None:
                raise _no_index(function, entry)
            return (_INT, number)
        is_integer = isinstance(entry, np.generic)  # of an array without axes NumPy gives a copy
        try:
            entry = ndarray_of(entry)
        except TraceError:
            raise
        except Exception:
            raise _no_index(function, entry) from None
        if not entry.size and entry.dtype == np.float64:
            entry = entry.astype(INT64)  # an empty list
        if is_integer and entry.dtype.kind in "iu":
            return (_INT, int(entry))
        entry = as_array(entry, function)
    kind = entry._data.dtype.kind
    if kind in "iu":
        return (_PLACES, relabel(entry, None))
    if kind == "b":
        return (_MASK, entry)
    raise KeyTypeError(
        f"{function}: an index array has dtype {entry._data.dtype}, expected integers or booleans. "
        "Round and cast it (index.astype(np.int64))."
    )


def _joined(entry: Any) -> Any:
    """Return an entry of a key, as an array where it is a list that holds traced ones."""
    found = joined(entry) if recorder.recorder() is not None else None
    return entry if found is None else found


def _no_index(function: str, entry: Any) -> KeyTypeError:
    return KeyTypeError(
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
        if kind == _MASK and not entry._data.ndim:
            count = int(recorder.need_value(entry, "the size of a selection by a boolean"))
            checked.append((_FLAG, as_array(np.zeros(count, INT64))))
            continue
        if kind == _MASK:
            check_mask(function, shape, format, entry, axis)
            places = true_places(entry, SIZE_OF_SELECTION)
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


def check_mask(function: str, shape: tuple[int, ...], format: str | None, mask: Any, axis: int) -> None:
    """Check that a mask has the sizes of the axes from `axis` on; a size may also be 0, as NumPy has it.

    Raises:
        BoundsError: if it has others.
    """
    have, ndim = mask._data.shape, mask._data.ndim
    extents = shape[axis : axis + ndim]
    if len(extents) != ndim or any(
        size not in (0, extent) for size, extent in zip(have, extents, strict=True)
    ):
        raise BoundsError(
            f"{function}: a mask of {describe_shape(have, mask._format)} does not fit x "
            f"({describe_shape(shape, format)}) from axis {axis} on; it must have the "
            "sizes of the axes that it selects from."
        )


def only_mask(key: Any) -> Any:
    """Return the mask of a key that is one mask, with or without an ellipsis after it, or None."""
    if isinstance(key, tuple):
        if not (len(key) == 1 or (len(key) == 2 and key[1] is Ellipsis)):
            return None
        key = key[0]
    key = _joined(key)
    if not recorder.is_array(key):
        if not isinstance(key, (np.ndarray, np.bool_, list, bool)):
            return None
        try:
            key = ndarray_of(key)
        except Exception:  # no mask; parse_key says what is wrong with it
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
    known = [on_host(index._data) for index in indices]
    for places, extent in zip(known, extents, strict=True):
        outside = (places < -extent) | (places >= extent)
        if outside.any():
            raise BoundsError(
                f"{function}: index {places[outside][0]} is out of range for an axis of size {extent}; "
                f"valid indices are {-extent} to {extent - 1}."
            )
    if recorder.recorder() is None:
        total: Any = 0
        for index, places, extent in zip(indices, known, extents, strict=True):
            recorder.check_open(index)
            places = places.astype(INT64, copy=False)
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


def index_array(function: str, indices: Any) -> dlarray:
    array = as_array(indices, function)
    if not array._data.size and isinstance(indices, list):
        return as_array(array._data.astype(INT64))  # NumPy makes an empty list floating-point
    return array


def true_places(array: Any, what: str) -> list[Any]:
    """Return the places where an array is not zero, one array for each axis; `what` names their number."""
    if not recorder.steers(array) or not array._data.ndim:
        return [as_array(places) for places in np.nonzero(recorder.need_value(array, what))]
    if array._data.dtype.kind == "c":
        array = array != 0
    count = int(recorder.need_value(count_nonzero(array), what))
    place = apply("true_places", relabel(array, None), count=count)
    places = []
    for extent in reversed(array._data.shape[1:]):
        places.append(apply("mod", place, extent))
        place = apply("floordiv", place, extent)
    return [place, *reversed(places)]
