# SPDX-License-Identifier: BSD-3-Clause
"""Selections by keys with a traced mask, and assignments to them, without their sizes (Note [selections]).

The note stands in record/selections.py.
"""

from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.aval import SUPPORTED_DTYPES
from tracejit.errors import TraceJitError
from tracejit.functions import indexing
from tracejit.functions.index_keys import true_places
from tracejit.functions.selecting import has_any, is_parameter, is_traced, may_select, over, select, selection
from tracejit.record import ndarrays, recorder, selections, subscripts, views
from tracejit.record.arithmetic import sources_of
from tracejit.record.number import Number
from tracejit.record.selections import of

_MOST_OF_STATE = 1 << 16  # elements that a mask selects from: to compute with all takes some 20 us


def selects(key: Any) -> bool:
    """Return whether a key may be a selection: its first entry is a mask, or places that a mask selects."""
    first = key[0] if type(key) is tuple and key else key
    return type(first) is dlarray and (first._data.dtype == bool or of(first) is not None)


def getitem(array: dlarray, key: Any) -> dlarray | None:
    """Return ``array[key]`` without the size of a selection; None where that is not possible, or there is none."""
    if not selects(key):
        whole = of(array)
        is_first = whole is not None and type(key) is int and not key and array._data.ndim == 1
        return views.number(first_of(array)) if whole and is_first and has_any(whole.mask) else None
    parsed = _key(array, key, (int, slice, type(None)))
    if parsed is None:
        return _one_of_each_row(array, key)
    place, others = parsed
    part = of(array)
    if part is not None:
        return select(array, place) if place._data.dtype == bool and not others else None
    ndim = place._data.ndim
    if others:
        array = indexing.getitem(array, (*(slice(None),) * ndim, *others))
    if place._data.dtype == bool:
        return select(array, place)
    chosen = of(place)
    assert chosen is not None
    if not may_select(array) or not array._data.ndim or not has_any(chosen.mask):
        return None
    return selection(indexing.getitem(array, chosen.whole), chosen.mask)


def _one_of_each_row(array: dlarray, key: Any) -> dlarray | None:
    """Return ``array[mask, places]``, where the mask selects the places, too; None for any other key.

    So code takes the logarithms of the probabilities of classes, ``logp[mask, classes[mask]]``.
    """
    mask, place = key if type(key) is tuple and len(key) == 2 else (None, None)
    if type(mask) is not dlarray or type(place) is not dlarray or mask._data.dtype != bool:
        return None
    part, value = of(place), mask._value
    if part is None or value is None or of(array) is not None or not may_select(array) or not is_traced(mask):
        return None
    if mask._data.ndim != 1 or array._data.ndim < 2 or mask._data.shape != array._data.shape[:1]:
        return None
    if place._data.dtype.kind not in "iu" or place._data.ndim != 1 or part.axis is not None:
        return None
    # Places that are not selected need be none of the array, and are replaced where others are selected.
    if not selections.same(part.mask.array._value, value) or not has_any(part.mask):
        return None
    return select(indexing.getitem(array, (np.arange(mask._data.size), part.whole)), mask)


def _getitem_of_ndarray(array: np.ndarray, key: Any, is_written: bool) -> Any:
    """Return ``array[key]`` of an ndarray by a key that varies, or of one that is written, if it can be recorded."""
    if array.dtype not in SUPPORTED_DTYPES or (array.size > _MOST_OF_STATE and _has_mask(key)):
        return NotImplemented
    captured = ndarrays.part_of_captured(array) if is_written else None
    try:
        known = as_array(array, "getitem") if captured is None else captured
        selection = getitem(known, key)
        result = indexing.getitem(known, key) if selection is None else selection
    except TraceJitError:  # NumPy may do it with the numbers, or raises an error of its own
        return NotImplemented
    numbers = [entry for entry in (key if type(key) is tuple else (key,)) if recorder.is_number(entry)]
    if result._data.ndim or not numbers or array.dtype.kind == "b":
        return result
    return Number(result._data[()], result, sources_of(numbers))


def _has_mask(key: Any) -> bool:
    entries = key if type(key) is tuple else (key,)
    return any(type(entry) is dlarray and entry._data.dtype == bool for entry in entries)


def _key(
    array: dlarray, key: Any, kinds: tuple[type, ...] = (int, slice)
) -> tuple[dlarray, tuple[Any, ...]] | None:
    """Return a mask or places, and the entries of a key behind; None for a key that is not followed.

    Places that are those of a mask itself, of an array that has its axes, are that mask.

    Args:
        array: to which the key belongs.
        key: whose first entry is a mask, or places.
        kinds: of the entries behind, beside an ellipsis.
    """
    entries = key if type(key) is tuple else (key,)
    first = entries[0]
    part = of(first)
    count, place = 1, first
    if part is not None and part.axis is not None:
        ndim = part.mask.array._data.ndim
        parts = [of(entry) if type(entry) is dlarray else None for entry in entries[:ndim]]
        axes = [other.axis for other in parts if other is not None and other.mask is part.mask]
        if axes == [*range(ndim)] and array._data.shape[:ndim] == part.mask.array._data.shape:
            count, place = ndim, part.mask.array
    others = entries[count:]
    if not all(type(entry) in kinds or entry is Ellipsis for entry in others):
        return None
    return place, others


def first_of(array: dlarray) -> dlarray:
    """Return the first element of a selection of one axis, which has one."""
    part = of(array)
    assert part is not None
    flat = apply("reshape", part.whole, shape=(part.mask.array._data.size,))
    return apply("take", flat, part.mask.first, axis=0)


def assign(array: dlarray, key: Any, value: Any) -> bool:
    """Assign to ``array[key]``; return False where that needs the size of a selection, or there is none."""
    if not selects(key):
        return False
    if of(array) is not None:
        return _assign_within(array, key, value)
    parsed = _key(array, key)
    if parsed is None or array._format is not None or parsed[0]._data.dtype != bool:
        return False
    mask, others = parsed
    ndim = mask._data.ndim
    if not is_traced(mask) or mask._data.shape != array._data.shape[:ndim]:
        return False
    basic = (*(slice(None),) * ndim, *others)
    target = indexing.getitem(array, basic) if others else array
    given = indexing.as_value(target, value)
    if of(given) is not None:
        chosen = _assigned(target, mask, given)
    elif given._data.ndim <= target._data.ndim - ndim:
        chosen = indexing.setitem(target, mask, given)
    else:
        return False
    if chosen is None:
        return False
    views.store(array, indexing.setitem(array, basic, chosen) if others else chosen)
    return True


def _assign_within(array: dlarray, mask: Any, value: Any) -> bool:
    """Assign to what a mask, which was computed from a selection, selects from the selection."""
    part, of_mask = of(array), of(mask) if type(mask) is dlarray else None
    if part is None or of_mask is None or of_mask.mask is not part.mask or mask._data.dtype != bool:
        return False
    if array._data.ndim != 1 or type(array._view) is tuple:
        return False
    given = indexing.as_value(array, value)
    both = apply("bitwise_and", of_mask.whole, part.mask.array)
    of_given = of(given)
    if (
        of_given is not None
        and both._value is not None
        and not selections.same(of_given.mask.array._value, both._value)
    ):
        return False
    if of_given is None and given._data.ndim:
        return False
    # Not `both`: the elements that are not selected are still those of the first one, where that is written, too.
    written = given if of_given is None else of_given.whole
    chosen = apply("where", of_mask.whole, written, part.whole)
    is_mixed = part.is_mixed or is_parameter(given) or (of_given is not None and of_given.is_mixed)
    selections.become(array, selection(chosen, part.mask, is_mixed=is_mixed))
    return True


def _assigned(array: dlarray, mask: dlarray, value: dlarray) -> dlarray | None:
    """Return an array in which the elements of a mask are those of a selection; None where that needs its size."""
    part = of(value)
    assert part is not None and mask._value is not None
    if not selections.same(part.mask.array._value, mask._value):
        return None
    ndim = part.mask.array._data.ndim
    rest = array._data.shape[ndim:]
    given = part.whole._data.shape[ndim:]
    if len(given) != len(rest) or any(size not in (1, all_) for size, all_ in zip(given, rest, strict=True)):
        return None
    whole = part.whole
    if whole._data.dtype != array._data.dtype:
        whole = apply("cast", whole, dtype=array._data.dtype)
    return apply("where", over(part.mask, rest), whole, array)


selections.gather_with(indexing.getitem, true_places)
subscripts.answer(
    _getitem_of_ndarray, indexing.setitem_of_ndarray, indexing.written_otherwise, indexing.read_otherwise
)
