# SPDX-License-Identifier: BSD-3-Clause
"""Indexing of NumPy's own arrays by values that vary, and writes of traced values into them; NumPy asks neither.

Note [subscripts]
A function reads ``X[i : i + 32]`` of a captured ndarray X, where i varies from call to call. NumPy takes the true
number i, so its result would be a constant of the trace. Therefore, while a function is recorded for replays,
``ndarray[key]`` asks here first, and a key with numbers that vary, or with traced integers, is recorded. So is what is
read of an ndarray that the recording writes. ``ndarray[key] = value`` asks here in every evaluation, and a traced value
is written by the recording (Note [writes into ndarrays] in ndarrays.py).

The class of ndarrays is written in C, and its attributes cannot be set. So the function for ``ndarray[key]`` in the
structure of the class is exchanged for the one that Python gives a class whose ``__getitem__`` is written in Python,
and ``__getitem__`` in its dict for the function here; ``__setitem__`` likewise. Where the structure is not as expected
(another Python than CPython, one without a global lock) nothing is exchanged, and such an index needs the number.
"""

import ctypes
import dis
import gc
import os
import sys
import types
from collections.abc import Callable
from functools import cache, cached_property
from typing import Any

import numpy as np

from tracejit.record import monitor, recorder
from tracejit.record.stack import code_of
from tracejit.record.views import is_scalar
from tracejit.util.locks import new_lock
from tracejit.util.uninterrupted import surely

_WORD = ctypes.sizeof(ctypes.c_void_p)
_MAPPING = 14 * _WORD  # tp_as_mapping in a PyTypeObject
_WRAPPED = 6 * _WORD  # d_wrapped in a PyWrapperDescrObject
_Word = ctypes.c_size_t
_AUGMENTED = bytes(
    [dis.opmap["COPY"], 2, dis.opmap["COPY"], 2]
)  # before an index whose element is assigned again

_lock = new_lock()
_answers: dict[str, Callable[..., Any]] = {}


def answer(
    getitem: Callable[[np.ndarray, Any, bool], Any], setitem: Callable[[np.ndarray, Any, Any], bool]
) -> None:
    """Let functions answer for ndarrays; called once.

    Args:
        getitem: ``ndarray[key]`` for keys that vary, and of arrays that are written, which is told; it may return
            NotImplemented.
        setitem: ``ndarray[key] = value`` for values that are traced; it returns whether it did that.
    """
    _answers.update(getitem=getitem, setitem=setitem)


def _getitem(array: np.ndarray, key: Any) -> Any:
    current = recorder.thread.recorder
    if current is None or type(array) is not np.ndarray:
        return _READS.original(array, key)
    if not current.accelerating:
        return _read(array, key)
    frame = sys._getframe(1)
    is_written = _is_written(array, current) or _is_assigned_again(array, frame, current)
    if (is_written or _varies(key)) and not monitor.is_library(frame.f_code.co_filename):
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
    current = recorder.thread.recorder
    if (
        current is not None
        and type(array) is np.ndarray
        and (_is_traced(value) or _varies(key) or _is_written(array, current))
        and not monitor.is_library(sys._getframe(1).f_code.co_filename)
    ):
        with monitor.paused():
            if _answers["setitem"](array, key, value):
                return
    if current is not None and current.accelerating:
        current.state.stored(array)
    _WRITES.original(array, key, value)


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


def _varies(key: Any) -> bool:
    for entry in key if type(key) is tuple else (key,):
        if type(entry) is slice:
            if (
                recorder.is_number(entry.start)
                or recorder.is_number(entry.stop)
                or recorder.is_number(entry.step)
            ):
                return True
        elif recorder.is_number(entry) or (
            recorder.is_array(entry) and entry._data.dtype.kind in "iu" and recorder.steers(entry)
        ):
            return True
    return False


class _Slot:
    """The function that the class of ndarrays has for one method of the two, and blocks in which it is exchanged.

    Args:
        method: the name of the method.
        place: of the function in PyMappingMethods, in words.
        instead: the function that is called in a block.
    """

    def __init__(self, method: str, place: int, instead: Callable[..., Any]) -> None:
        self._method = method
        self._place = place * _WORD
        self._instead = instead
        self.original: Any = vars(np.ndarray)[method]
        self._open: set[int] = set()

    def begin(self, block: int) -> None:
        with _lock:
            self._open.add(block)
            self._exchange(self._instead, self._of_python)

    def end(self, block: int) -> None:
        with _lock:
            self._open.discard(block)
            if not self._open:
                self._exchange(self.original, self._of_numpy)

    def end_all(self) -> None:
        for block in [*self._open]:
            self.end(block)

    def _exchange(self, function: Any, word: int) -> None:
        """Set what is called, for Python's code and for C's."""
        names = gc.get_referents(np.ndarray.__dict__)[0]
        if names[self._method] is function and self._of_ndarray.value == word:
            return
        names[self._method] = function
        self._of_ndarray.value = word
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(np.ndarray))

    def _of(self, kind: type) -> Any:
        """Return the place in memory of the function of a class."""
        return _Word.from_address(_Word.from_address(id(kind) + _MAPPING).value + self._place)

    @cached_property
    def _of_ndarray(self) -> Any:
        return self._of(np.ndarray)

    @cached_property
    def _of_python(self) -> int:
        kind = type("_Indexed", (np.ndarray,), {self._method: self._instead})
        return int(self._of(kind).value)

    @cached_property
    def _of_numpy(self) -> int:
        return int(_Word.from_address(id(self.original) + _WRAPPED).value)

    @cached_property
    def is_expected(self) -> bool:
        """True if the class has the structure that is expected; to be asked before anything is exchanged."""
        if type(self.original).__name__ != "wrapper_descriptor":
            return False
        names = gc.get_referents(np.ndarray.__dict__)
        is_dict = len(names) == 1 and type(names[0]) is dict and names[0].get(self._method) is self.original
        return is_dict and bool(self._of(np.ndarray).value == self._of_numpy != 0)


_READS = _Slot("__getitem__", 1, _getitem)  # mp_subscript
_WRITES = _Slot("__setitem__", 2, _setitem)  # mp_ass_subscript


class Subscripts:
    """A block in which ``ndarray[key]`` and ``ndarray[key] = value`` ask tracejit first (Note [subscripts]).

    Args:
        owner: the recorder.
    """

    def __init__(self, owner: Any) -> None:
        self._owner = owner

    def __enter__(self) -> None:
        self._owner.endings.append(self._end)
        for slot in (_READS, _WRITES) if is_possible() else ():
            slot.begin(id(self))

    def __exit__(self, *exc: object) -> None:
        surely(self._end)

    def _end(self) -> None:
        for slot in (_READS, _WRITES) if is_possible() else ():
            slot.end(id(self))


@cache
def is_possible() -> bool:
    """Return whether the class of ndarrays has the structure that is expected."""
    has_lock = getattr(sys, "_is_gil_enabled", None)
    if sys.implementation.name != "cpython" or sys.version_info >= (3, 14) or (has_lock and not has_lock()):
        return False
    return _READS.is_expected and _WRITES.is_expected


def _in_child() -> None:
    """Restore the class in a forked child, which does not have the threads that recorded."""
    if recorder.thread.recorder is None:
        for slot in (_READS, _WRITES):
            slot.end_all()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
