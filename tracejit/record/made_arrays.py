# SPDX-License-Identifier: BSD-3-Clause
"""Ndarrays that NumPy makes in a function under evaluation, and that traced values are written into.

Note [made arrays]
``t = w.copy(); t[0] = x[0]`` writes a traced value into an ndarray, which holds numbers only; what plain NumPy reads of
it afterwards (``np.sin(t)``) would have no derivative, and be a constant. So where the write begins, an array that is
private to the recording (Note [writes] in memory.py) takes the place of the ndarray, with its elements as they are: in
the local variables of the user's frames, among the operands that wait on their stacks, and in lists, dicts and objects
that lie there; tuples and iterators that have it are made again. Views of the ndarray that lie there become views of
the array. All that the code does from then on is recorded.

This is done only if nothing else refers to the ndarray, to its views, and to what holds them. So the references to all
of these are counted: each has to be one of the places that were found, one that the operation under way takes, or a
note of the recording. An ndarray that a function outside can reach, or that code in C holds, stays what it is
(ndarrays.py).
"""

import sys
import weakref
from collections.abc import Collection, Mapping
from types import FrameType
from typing import Any

import numpy as np

from tracejit.aval import SUPPORTED_DTYPES
from tracejit.record import memory, recorder, references, stack
from tracejit.record.variables import UserPlaces
from tracejit.util.frames import in_place_frame, is_internal

_Parts = dict[int, np.ndarray]
_COUNTING = 2  # references to an object in a table while they are counted: that of the table, and an argument


def replaced(array: np.ndarray, count: int) -> Any:
    """Return the array that has taken the place of an ndarray, or None if that has to stay.

    Args:
        array: the ndarray.
        count: of the references to it, besides those of the operation under way.
    """
    current = recorder.thread.recorder
    if current is None or not current.replaces or not stack.is_readable():
        return None
    if not _is_replaceable(array) or current.written(array) is not None:
        return None
    found = None if count < 0 else _replaced(array, count, current)  # references.UNKNOWN, for instance
    if found is None:
        owner = array if array.base is None else array.base
        current.staying[id(owner)] = weakref.ref(owner)
    return found


def stays(array: np.ndarray) -> bool:
    """Return whether an ndarray was to be replaced in the evaluation before, and had to stay."""
    owner = array if array.base is None else array.base
    found = recorder.thread.recorder.staying.get(id(owner))
    return found is not None and found() is owner


def _replaced(array: np.ndarray, count: int, current: Any) -> Any:
    """Do what replaced() does with an ndarray that is possible."""
    frames = [*references.frames(current.frame)]
    is_step = current.memories.begun is not None
    if current.backwards or current.assumed or current.maps or is_step:
        found = _replaced_in(_innermost(frames), array, count, current)
        if found is not None or not is_step or current.backwards or current.assumed or current.maps:
            return found
        current.rewritten.add(id(array))  # a state of the loop, which is recorded step by step
    return _replaced_in(frames, array, count, current)


def _innermost(frames: list[FrameType]) -> list[FrameType]:
    """Return the frames of a step, a branch or a mapped function, given those of the evaluation around it, too."""
    is_users = [not is_internal(frame.f_code.co_filename) for frame in frames]
    first = is_users.index(True) if True in is_users else 0
    stop = is_users.index(False, first) if False in is_users[first:] else len(frames)
    return frames[:stop]


def _replaced_in(frames: list[FrameType], array: np.ndarray, count: int, current: Any) -> Any:
    """Return the array that has taken the place of an ndarray in some frames, which only they can reach; or None."""
    frames = [frame for frame in frames if not is_internal(frame.f_code.co_filename)]
    places = UserPlaces(frames, array if array.base is None else array.base)
    if not places.is_known:
        return None
    parts = _parts(array, [*places.take_arrays(), *current.noted_arrays()])
    held = places.held
    held.update(map(id, current.noted_arrays()))
    held.update([id(value) for frame in frames for value in references.snapshot(frame).values()])
    held.update([id(part.base) for part in parts.values() if part.base is not None])
    extra = {id(array): sys.getrefcount(array) - _COUNTING - count}
    holders = places.holders_of(parts)
    if holders or _has_others(held, parts, parts, extra):
        held.update(current.state.noted_objects())
        if _has_others(held, parts, parts, extra) or _has_others(held, places.holders, holders, {}):
            return None
    taking = _taking(array, parts, current)
    if taking is None:
        return None
    places.put(taking)
    current.has_replaced = True
    for frame in frames:
        references.snapshot(frame)  # which held ndarrays
    return taking[id(array)]


def replaced_in_place(array: np.ndarray) -> Any:
    """Return what replaced() does, of an ndarray if the user's code is at the statement ``array += x``."""
    frame = in_place_frame()
    if frame is None or not stack.is_writing(frame, array):
        return None
    return replaced_in_operation(array)


def replaced_in_operation(array: np.ndarray, taken: int | None = None) -> Any:
    """Return what replaced() does, of an ndarray in the statement ``u += x``, or the call, that the user's code is at.

    Args:
        array: the ndarray.
        taken: how many references a call takes for each time that the ndarray is an argument; None of the statement.
    """
    count = references.besides_operation(array, taken)
    return replaced(array, count)


def is_made(array: np.ndarray) -> bool:
    """Return whether the function has made an ndarray; then an array of the recording has taken its place."""
    count = references.references_to(array) - references.OF_VARIABLE
    return replaced(array, count) is not None


def _is_replaceable(array: np.ndarray) -> bool:
    owner = array if array.base is None else array.base
    return (
        type(array) is type(owner) is np.ndarray
        and owner.base is None
        and array.dtype == owner.dtype
        and array.dtype in SUPPORTED_DTYPES
        and array.flags.writeable
    )


def _parts(array: np.ndarray, others: list[np.ndarray]) -> _Parts:
    """Return an ndarray, the one whose memory it shows, and those of others that show it, too, by their ids."""
    owner = array if array.base is None else array.base
    return {id(part): part for part in (owner, array, *others) if part is owner or part.base is owner}


def _has_others(
    held: Mapping[int, int], table: Mapping[int, Any], idents: Collection[int], extra: Mapping[int, int]
) -> bool:
    """Return whether something else refers to objects than what is known.

    Args:
        held: how many references to objects are known, by the ids of these.
        table: that holds the objects, by their ids, and nothing else does while references are counted.
        idents: the ids of those that matter.
        extra: other references to objects that are no others, by the ids.
    """
    return any(
        sys.getrefcount(table[ident]) - _COUNTING - extra.get(ident, 0) != held.get(ident, 0)
        for ident in idents
    )


def _taking(array: np.ndarray, parts: _Parts, current: Any) -> dict[int, Any] | None:
    """Return what takes the places of the parts, by their ids; None if it cannot show one of them."""
    owner = array if array.base is None else array.base
    elements = owner.copy("K")
    # An array without axes, not a number: is_scalar in views.py.
    root = recorder.wrap(elements if elements.ndim else elements[...])
    current.memories.private(root, is_ndarray=True)
    taking = {ident: memory.part(root, owner, part) for ident, part in parts.items()}
    return None if any(part is None for part in taking.values()) else taking
