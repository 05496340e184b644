# SPDX-License-Identifier: BSD-3-Clause
"""Writes of traced values into ndarrays that the function did not get as arguments: attributes, globals, NumPy's own.

Note [writes into ndarrays]
``self.w -= rate * g`` writes into an ndarray, which holds numbers only. So the recording takes a dlarray around its
memory, and the write makes a new value of that, as any write does (Note [writes] in memory.py). But plain NumPy may
read the memory before the function has ended. Therefore the new elements are shown there at once; the old ones are put
back when the recording ends, because its guards say what was there before the call, and come again with its commit.

Where nothing is recorded for replays, NumPy writes the elements at once, and what was there is kept until the function
has ended, in case that it fails.

What plain NumPy reads of such an array is a number that a replay would not compute again, so the captured state refuses
a recording whose code may read it (capture/array_guards.py), and a derivative that would go through it is an error
(PlainNumber). What plain NumPy writes there in between (``self.w.sort()``) is found by comparing the memory with
what was shown; the elements are constants then, and the recording is right for its own call only.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.aval import SUPPORTED_DTYPES
from tracejit.record import derived, made_arrays, memory, recorder, views
from tracejit.record.plain_numbers import note_write
from tracejit.record.selections import SelectionValue
from tracejit.util.devices import is_same_memory, may_share_memory, on_host
from tracejit.util.frames import written_in_place

_MADE = (
    "a traced value is written into an ndarray that the function makes",
    "what NumPy reads of it afterwards would be a constant. Make it by np.zeros, np.ones, np.empty, np.full or "
    "np.array, called by name, or compute a new array (y = y * x)",
)


def is_to_replace(array: np.ndarray, *values: Any) -> bool:
    """Return whether an ndarray that the function makes is to be replaced where values, or places, are written.

    For replays it is wherever anything traced is: NumPy would need the value of a number that varies, and its array
    would be a constant.
    """
    if made_arrays.stays(array):
        return False
    is_replayed = recorder.thread.recorder.accelerating
    return any(map(_is_traced, values)) if is_replayed else not _is_of_numpy(values)


def _is_traced(value: Any) -> bool:
    """Return whether a value, or a place, is traced, or has something traced in it."""
    if type(value) is slice:
        return any(map(_is_traced, (value.start, value.stop, value.step)))
    if type(value) in (list, tuple):
        return any(map(_is_traced, value))
    return value._value is not None if recorder.is_array(value) else recorder.is_number(value)


def target(array: np.ndarray, *values: Any) -> Any:
    """Return the array through which the recording writes values into an ndarray, or None if it does not.

    Mapped functions and backward functions do not, nor steps and branches that this call does not make. What is
    computed of ndarrays and numbers alone is NumPy's in an ndarray that no path leads to (derived.py).
    """
    current = recorder.thread.recorder
    if current is None or current.maps or current.backwards or current.assumed:
        return None
    memories = current.memories
    if memories.begun is not None:
        return None
    written = current.written(array)
    if written is not None:
        return written
    if current.accelerating:
        holder = current.state.holder(array)
        if holder is None:
            if _is_of_numpy(values):
                return None
            reason, remedy = _MADE
            current.refuse(reason, recorder.user_location(), remedy)
    elif _is_of_numpy(values):
        return None
    else:
        holder = array.base if type(array.base) is np.ndarray else array
    return _through(array, holder)


def write_at_once(array: np.ndarray, key: Any, value: Any) -> bool:
    """Have NumPy write a traced array into an ndarray, where nothing is recorded for replays; return whether it did.

    Args:
        array: the ndarray.
        key: selects the elements, by numbers and arrays of NumPy.
        value: the array.
    """
    current = recorder.thread.recorder
    if (
        current is None
        or current.accelerating
        or current.maps
        or type(value._value) is SelectionValue
        or current.written(array) is not None
    ):
        return False
    if not derived.is_computed_of_ndarrays(value):
        note_write(current, value._value, value._data, _name())
    current.memories.undo.append((array, key, array[key].copy()))
    array[key] = on_host(value._data)
    return True


def _name() -> str:
    name = written_in_place()
    return "an ndarray" if name is None else f"the ndarray {name}"


def _is_by_numpy(array: Any, new: Any) -> bool:
    """Return whether NumPy writes a view itself: it shows a part of an ndarray that varying numbers name.

    A part of an ndarray that a path leads to is written by the recording, as that ndarray is.
    """
    current = recorder.thread.recorder
    if memory.is_ndarray(array) and derived.is_of_ndarray(array, current):
        return True  # settled before
    root = derived.named_part_of(array)
    if root is None:
        return False
    through = target(root._data, new)
    if through is None:
        derived.settle(array, "a write into an ndarray")
        return True
    current.memories.follow(root, through)
    return False


views.write_parts_with(_is_by_numpy)


def part_of_captured(array: np.ndarray) -> Any:
    """Return what an ndarray that a path leads to, or a view of one, is for the recording; None of another one."""
    current = recorder.thread.recorder
    written = current.written(array)
    if written is not None:
        return written
    holder = current.state.holder(array)
    return None if holder is None else _through(array, holder)


def _through(array: np.ndarray, holder: np.ndarray | None) -> Any:
    """Return the array through which an ndarray is written: a view of that of its holder, if it has one."""
    if holder is not None and holder is not array:
        whole = around(holder)
        part = None if whole is None else memory.part(whole, holder, array)
        if part is not None:
            return part
    return around(array)


def watched(array: np.ndarray) -> Any:
    """Return a dlarray to take the place of an ndarray that a path leads to, or None if it has to stay.

    What plain NumPy writes into the memory by other names is found from now on.
    """
    current = recorder.thread.recorder
    if any(may_share_memory(array, data) for _, data in current.memories.sources):
        return None
    holder = current.state.holder(array)
    whole = current.memories.watched.get(id(holder))
    if whole is None:
        if current.written(holder) is not None:
            current.state.shows(holder)  # so that a replay is told when it shares memory no longer
            return None
        whole = around(holder)
        if whole is None:
            return None
        views.watch(whole, current)
        current.memories.watched[id(holder)] = whole
    found = memory.part(whole, holder, array)
    if found is not None:
        current.memories.stands_for[id(found)] = array
    return found


def _is_of_numpy(values: Sequence[Any]) -> bool:
    """Return whether nobody differentiates values: NumPy's code would have ndarrays and numbers."""
    for value in values:
        if type(value) in (list, tuple):
            if not _is_of_numpy(value):
                return False
        elif recorder.is_array(value) and not (value._value is None or derived.is_of_numpy(value)):
            return False
    return True


def around(array: np.ndarray) -> Any:
    """Return a dlarray around the memory of an ndarray, through which that is written; None if it needs a copy.

    An array with fields is none: its fields are views, which are written by themselves.
    """
    if array.dtype not in SUPPORTED_DTYPES:
        return None
    current = recorder.thread.recorder
    result = recorder.as_array(array)
    if not is_same_memory(result._data, array):  # elements in foreign byte order
        return None
    current.state.shows(array)
    current.through[id(result._data)] = _name()
    if not array.ndim:  # an array, not a number (is_scalar in views.py)
        root, result = result, recorder.wrap(result._data)
        current.memories.link(result, root, None, {})
    return result


def memory_of(array: Any) -> np.ndarray | None:
    """Return the ndarray that an array stands for while the recording writes it, for code that takes ndarrays only.

    What that code computes is right for this call only, because a replay would not compute it again.
    """
    current = recorder.thread.recorder
    if current is None or not current.memories.ndarrays:
        return None
    holder = holder_of(array, current)
    if holder is None or id(holder) not in current.memories.ndarrays:
        return None
    if _is_unchanged(array, current):
        current.state.taken(holder)
        return _shown(array, holder)
    current.refuse(
        "an ndarray that the function writes is read by NumPy",
        recorder.user_location(),
        "make it a dlarray before the first call (self.y = tj.dlarray(self.y)), and use functions that take dlarrays",
    )
    return _shown(array, holder)


def _is_unchanged(array: Any, current: Any) -> bool:
    """Return whether the ndarray that an array stands for has what it had before the call."""
    root = memory.root_of(array)
    return root._value is current.memories.written[id(root)].input


def holder_of(array: Any, current: Any) -> np.ndarray | None:
    """Return the ndarray that an array, or what it is a view of, stands for in the recording; None if there is none."""
    root = memory.root_of(array)
    change = current.memories.written.get(id(root))
    data: np.ndarray = root._data if change is None else change.data
    return data if id(data) in current.through else None


def _shown(array: Any, holder: np.ndarray) -> np.ndarray:
    """Return the view of an ndarray that an array stands for."""
    if type(array._view) is not tuple:
        return holder
    base, op, params = array._view
    data = _shown(base, holder)
    return data if op is None else op.numpy(data, **params)
