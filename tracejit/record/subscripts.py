# SPDX-License-Identifier: BSD-3-Clause
"""Indexing of NumPy's own arrays by values that vary; NumPy does not ask the index.

Note [subscripts]
A function reads ``X[i : i + 32]`` of a captured ndarray X, where i varies from call to call. NumPy takes the true
number i, so its result would be a constant of the trace. Therefore, while a function is recorded for replays,
``ndarray[key]`` asks here first, and a key with numbers that vary, or with traced integers, is recorded.

The class of ndarrays is written in C, and its attributes cannot be set. So the function for ``ndarray[key]`` in the
structure of the class is exchanged for the one that Python gives a class whose ``__getitem__`` is written in Python,
and ``__getitem__`` in its dict for the function here. Where the structure is not as expected (another Python than
CPython, one without a global lock) nothing is exchanged, and such an index needs the number.
"""

import ctypes
import gc
import os
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tracejit.record import monitor, recorder
from tracejit.util.locks import new_lock

_WORD = ctypes.sizeof(ctypes.c_void_p)
_MAPPING = 14 * _WORD  # tp_as_mapping in a PyTypeObject
_SUBSCRIPT = _WORD  # mp_subscript in PyMappingMethods
_WRAPPED = 6 * _WORD  # d_wrapped in a PyWrapperDescrObject
_Word = ctypes.c_size_t

_original = np.ndarray.__getitem__
_instead: list[Callable[[np.ndarray, Any], Any]] = []
_lock = new_lock()
_open: set[int] = set()


def answer(getitem: Callable[[np.ndarray, Any], Any]) -> None:
    """Let a function answer ``ndarray[key]`` for keys that vary, or return NotImplemented; it is called once."""
    _instead[:] = [getitem]


def _getitem(array: np.ndarray, key: Any) -> Any:
    current = recorder.thread.recorder
    if current is None or not current.accelerating or type(array) is not np.ndarray:
        return _original(array, key)
    frame = sys._getframe(1)
    if _varies(key) and not monitor.is_library(frame.f_code.co_filename):  # which expects what NumPy gives
        with monitor.paused():
            result = _instead[0](array, key)
        if result is not NotImplemented:
            return result
    current.state.selected(frame.f_code, frame.f_lasti)
    return _original(array, key)


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


class Subscripts:
    """A block in which ``ndarray[key]`` asks tracejit first (Note [subscripts])."""

    def __enter__(self) -> None:
        if is_possible():
            with _lock:
                _open.add(id(self))
                _exchange(_getitem, _slot_of_python())

    def __exit__(self, *exc: object) -> None:
        if is_possible():
            _end(id(self))


def _end(block: int) -> None:
    with _lock:
        _open.discard(block)
        if not _open:
            _exchange(_original, _slot_of_numpy())


def _exchange(getitem: Any, slot: int) -> None:
    """Set what ``ndarray[key]`` calls, for Python's code and for C's."""
    names = gc.get_referents(np.ndarray.__dict__)[0]
    if names["__getitem__"] is getitem and _slot(np.ndarray).value == slot:
        return
    names["__getitem__"] = getitem
    _slot_of_ndarray().value = slot
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(np.ndarray))


def _slot(kind: type) -> Any:
    """Return the place in memory of the function for ``array[key]`` of a class."""
    return _Word.from_address(_Word.from_address(id(kind) + _MAPPING).value + _SUBSCRIPT)


@cache
def _slot_of_ndarray() -> Any:
    return _slot(np.ndarray)


@cache
def _slot_of_python() -> int:
    kind = type("_Indexed", (np.ndarray,), {"__getitem__": _getitem})
    return int(_slot(kind).value)


@cache
def _slot_of_numpy() -> int:
    return int(_Word.from_address(id(_original) + _WRAPPED).value)


@cache
def is_possible() -> bool:
    """Return whether the class of ndarrays has the structure that is expected."""
    has_lock = getattr(sys, "_is_gil_enabled", None)
    if sys.implementation.name != "cpython" or sys.version_info >= (3, 14) or (has_lock and not has_lock()):
        return False
    if type(_original).__name__ != "wrapper_descriptor":
        return False
    names = gc.get_referents(np.ndarray.__dict__)
    is_dict = len(names) == 1 and type(names[0]) is dict and names[0].get("__getitem__") is _original
    return is_dict and bool(_slot(np.ndarray).value == _slot_of_numpy() != 0)


def _in_child() -> None:
    """Restore the class in a forked child, which does not have the threads that recorded."""
    if recorder.thread.recorder is None:
        for block in [*_open]:
            _end(block)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
