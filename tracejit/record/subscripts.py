# SPDX-License-Identifier: BSD-3-Clause
"""Indexing of NumPy's own arrays by values that vary, and writes of traced values into them; NumPy asks neither.

Note [subscripts]
A function reads ``X[i : i + 32]`` of a captured ndarray X, where i varies from call to call. NumPy takes the true
number i, so its result would be a constant of the trace. Therefore, while a function is recorded for replays,
``ndarray[key]`` asks here first, and a key with numbers that vary, or with traced integers or masks, is recorded. So is
what is read of an ndarray that the recording writes. ``ndarray[key] = value`` asks here in every evaluation, and a
traced value is written by the recording (Note [writes into ndarrays] in ndarrays.py).

``array.flat[key] = value``, ``array.fill(value)``, ``array.put(places, values)`` and ``array.dot(x)`` ask in the same
way.

Where the methods of NumPy's classes cannot be exchanged (exchanged_methods.py), such an index needs the number.
"""

import dis
import os
import sys
import types
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from tracejit.record import made_arrays, monitor, recorder
from tracejit.record.current import thread
from tracejit.record.exchanged_methods import ExchangedMethod, ExchangedMethods
from tracejit.record.references import OF_VARIABLE, UNKNOWN, references_to
from tracejit.record.stack import code_of, is_writing
from tracejit.record.views import is_scalar
from tracejit.util.uninterrupted import surely

_AUGMENTED = bytes(
    [dis.opmap["COPY"], 2, dis.opmap["COPY"], 2]
)  # before an index whose element is assigned again

# References to an array that takes an element: an operand, and a variable here.
_OF_ASSIGNMENT = 1 + OF_VARIABLE

_answers: dict[str, Callable[..., Any]] = {}


def answer(
    getitem: Callable[[np.ndarray, Any, bool], Any],
    setitem: Callable[[np.ndarray, Any, Any, int], bool],
    writing: Callable[[str, np.ndarray, Any, int], bool],
    reading: Callable[[str, np.ndarray, Any, Any], Any],
) -> None:
    """Let functions answer for ndarrays; called once.

    Args:
        getitem: ``ndarray[key]`` for keys that vary, and of arrays that are written, which is told; it may return
            NotImplemented.
        setitem: ``ndarray[key] = value`` for values that are traced, which is told how many references to the ndarray
            there are besides; it returns whether it did that.
        writing: other ways to write, by name, with their arguments: "flat", "fill" and "put"; likewise.
        reading: methods of ndarrays that take arrays, by name, with traced arguments; it may return NotImplemented.
    """
    _answers.update(getitem=getitem, setitem=setitem, writing=writing, reading=reading)


def _getitem(array: np.ndarray, key: Any) -> Any:
    current = thread.recorder
    if current is None or type(array) is not np.ndarray:
        return _READS.original(array, key)
    if not current.accelerating:
        return _read(array, key)
    frame = sys._getframe(1)
    is_written = _is_written(array, current) or _is_assigned_again(array, frame, current)
    if (is_written or _varies(key)) and _is_user(frame):
        with monitor.paused():  # a library expects what NumPy gives
            result = _answers["getitem"](array, key, is_written)
        if result is not NotImplemented:
            return result
    current.state.selected(frame.f_code, frame.f_lasti)
    return _READS.original(array, key)


def _read(array: np.ndarray, key: Any) -> Any:
    """Return what NumPy selects; a copy where the key has an array without axes, which NumPy took for an integer."""
    found = _READS.original(array, key)
    if type(found) is np.ndarray and type(key) is not int:
        for entry in key if type(key) is tuple else (key,):
            if recorder.is_array(entry) and not entry._data.ndim and not is_scalar(entry):
                return found.copy()
    return found


def _setitem(array: np.ndarray, key: Any, value: Any) -> None:
    current = thread.recorder
    if (
        current is not None
        and type(array) is np.ndarray
        and ((is_written := _is_written(array, current)) or _is_traced(value) or _varies(key))
        and _is_user(sys._getframe(1))
    ):
        with monitor.paused():
            is_known = is_written or made_arrays.stays(array) or not is_writing(sys._getframe(1), array)
            references = UNKNOWN if is_known else references_to(array) - _OF_ASSIGNMENT
            if _answers["setitem"](array, key, value, references):
                return
    if current is not None and current.accelerating:
        current.state.stored(array)
    _WRITES.original(array, key, value)


def _set_in_flat(iterator: Any, key: Any, value: Any) -> None:
    if thread.recorder is not None and (_is_traced(value) or _varies(key)) and _is_user(sys._getframe(1)):
        with monitor.paused():
            is_used = references_to(iterator) > _OF_ASSIGNMENT  # again, by a variable
            is_used |= not is_writing(sys._getframe(1), iterator)
            array = iterator.base
            references = (
                UNKNOWN if is_used else references_to(array) - OF_VARIABLE - 1
            )  # that of the iterator
            if _answers["writing"]("flat", array, (key, value), references):
                return
    _FLAT_WRITES.original(iterator, key, value)


def _fill(array: np.ndarray, value: Any) -> None:
    if not _is_written_by("fill", array, (value,), sys._getframe(1)):
        _FILLS.original(array, value)


def _put(array: np.ndarray, indices: Any, values: Any, mode: Any = "raise") -> None:
    if not _is_written_by("put", array, (indices, values, mode), sys._getframe(1)):
        _PUTS.original(array, indices, values, mode)


def _is_written_by(name: str, array: np.ndarray, arguments: Any, frame: types.FrameType) -> bool:
    """Return whether a method of an ndarray has written traced values among its arguments."""
    if thread.recorder is None or type(array) is not np.ndarray or not any(map(_is_traced, arguments)):
        return False
    if not _is_user(frame):
        return False
    with monitor.paused():
        references = references_to(array) - 2 * OF_VARIABLE  # the second is that of the method
        return bool(_answers["writing"](name, array, arguments, references))


def _reading(name: str, original: Any) -> Callable[..., Any]:
    """Return what stands for a method of ndarrays that takes arrays."""

    @wraps(original)
    def method(array: np.ndarray, *args: Any, **options: Any) -> Any:
        if thread.recorder is not None and type(array) is np.ndarray:
            given = (*args, *options.values())
            if any(_is_traced(x) or _is_captured(x) for x in given) and _is_user(sys._getframe(1)):
                with monitor.paused():
                    result = _answers["reading"](name, array, args, options)
                if result is not NotImplemented:
                    return result
        return original(array, *args, **options)

    return method


def _is_user(frame: types.FrameType) -> bool:
    return not monitor.is_library(frame.f_code.co_filename)


def _is_written(array: np.ndarray, current: Any) -> bool:
    """Return whether the recording writes elements of an ndarray."""
    memories = current.memories
    return any(id(memory) in memories.ndarrays for _, memory in memories.changed.near(array))


def _is_assigned_again(array: np.ndarray, frame: types.FrameType, current: Any) -> bool:
    """Return whether the element is read for an assignment to it (``self.q[i] += x``) of a captured array."""
    code, at = code_of(frame.f_code), frame.f_lasti
    return code[at - 4 : at] == _AUGMENTED and current.state.holder(array) is not None


def _is_traced(value: Any) -> bool:
    """Return whether a value is traced, or a list with such a value in it."""
    if recorder.is_array(value):
        return value._value is not None
    if type(value) in (list, tuple):
        return any(map(_is_traced, value))
    return recorder.is_number(value)


def _is_captured(value: Any) -> bool:
    return recorder.is_array(value) and recorder.is_captured(value)


def _varies(key: Any) -> bool:
    for entry in key if type(key) is tuple else (key,):
        if type(entry) is slice:
            if (
                recorder.is_number(entry.start)
                or recorder.is_number(entry.stop)
                or recorder.is_number(entry.step)
            ):
                return True
        elif _is_varying_place(entry):
            return True
    return False


def _is_varying_place(entry: Any) -> bool:
    """Return whether an index is an integer that varies, a traced or captured array of places or truths, or a list."""
    if type(entry) is list:
        return any(map(_is_varying_place, entry))
    if recorder.is_number(entry):
        return True
    if not recorder.is_array(entry) or entry._data.dtype.kind not in "iub":
        return False
    return recorder.steers(entry) or recorder.is_captured(entry)


_READS = ExchangedMethod(np.ndarray, "__getitem__", 1, _getitem)  # mp_subscript
_WRITES = ExchangedMethod(np.ndarray, "__setitem__", 2, _setitem)  # mp_ass_subscript
_FLAT_WRITES = ExchangedMethod(np.flatiter, "__setitem__", 2, _set_in_flat)
_FILLS = ExchangedMethod(np.ndarray, "fill", None, _fill)
_PUTS = ExchangedMethod(np.ndarray, "put", None, _put)
_WITH_ARRAYS = [
    ExchangedMethod(np.ndarray, name, None, _reading(name, vars(np.ndarray)[name]))
    for name in ("choose", "clip", "compress", "dot", "repeat", "searchsorted", "take")
]
_METHODS = ExchangedMethods([_READS, _WRITES, _FLAT_WRITES, _FILLS, _PUTS, *_WITH_ARRAYS])


class Subscripts:
    """A block in which ``ndarray[key]`` and ``ndarray[key] = value`` ask tracejit first (Note [subscripts]).

    Args:
        owner: the recorder.
    """

    def __init__(self, owner: Any) -> None:
        self._owner = owner

    def __enter__(self) -> None:
        self._owner.endings.append(self._end)
        if is_possible():
            _METHODS.begin(id(self))

    def __exit__(self, *exc: object) -> None:
        surely(self._end)

    def _end(self) -> None:
        if is_possible():
            _METHODS.end(id(self))


def is_possible() -> bool:
    """Return whether the class of ndarrays has the structure that is expected."""
    return _METHODS.is_possible


def _in_child() -> None:
    """Restore the class in a forked child, which does not have the threads that recorded."""
    if thread.recorder is None:
        _METHODS.end_all()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
