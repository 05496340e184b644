# SPDX-License-Identifier: BSD-3-Clause
"""Classes in C whose calls are answered while something is recorded: np.float32(x), np.nditer(x).

Note [calls of classes]
np.float64(x) uses no protocol: it takes the number of x, and the trace is lost. The name cannot be replaced, as the
names of functions can (patches.py): ``x.dtype.type is np.float64``, ``isinstance(y, np.float64)`` and a class that
inherits from it need the class itself. So the class stays, and in its structure the function that makes its instances
is exchanged for the one that Python gives a class whose ``__new__`` is written in Python. That ``__new__`` lies in the
dict of the class from the first recording on, where only this function looks for it. Calls without traced operands
reach NumPy's own function by its address.

Where the structure is not as expected (another Python than CPython, one without a global lock), nothing is exchanged.
"""

import ctypes
import gc
import os
import sys
from collections.abc import Callable
from typing import Any

from tracejit.record import monitor
from tracejit.record.current import thread
from tracejit.util.locks import new_lock

_WORD = ctypes.sizeof(ctypes.c_void_p)
_Word = ctypes.c_size_t
_New = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.py_object, ctypes.py_object)
# In a PyTypeObject: tp_new, and tp_vectorcall, which makes instances without it.
_OFFSET_OF_NEW, _OFFSET_OF_CALL = 39 * _WORD, 50 * _WORD


class _Constructor:
    """A class, with the function that makes its instances, and that for recordings."""

    __slots__ = ("_call", "_calls", "_numpys", "_place", "_pythons")

    def __init__(self, owner: type, pythons: int) -> None:
        self._place = _place(owner)
        self._call = _place(owner, _OFFSET_OF_CALL)
        self._numpys, self._calls = self._place.value, self._call.value
        self._pythons = pythons

    def put(self, is_open: bool) -> None:
        """Exchange the function, or restore it."""
        self._place.value = self._pythons if is_open else self._numpys
        self._call.value = 0 if is_open else self._calls


_waiting: list[tuple[type, Callable[..., Any]]] = []
_ready: list[_Constructor] = []
_open: set[int] = set()
_lock = new_lock()


def replace(owner: type, instead: Callable[..., Any]) -> None:
    """Have calls of a class of NumPy answered while something is recorded.

    Args:
        owner: the class.
        instead: is called with a function that makes NumPy's instance, and the arguments, in a thread that records.
    """
    _waiting.append((owner, instead))
    with _lock:
        if _open:  # its module was imported by what is recorded
            known = len(_ready)
            _prepare()
            for constructor in _ready[known:]:
                constructor.put(True)


def _place(owner: type, offset: int = _OFFSET_OF_NEW) -> Any:
    """Return the place in memory of the function that makes instances of a class."""
    return _Word.from_address(id(owner) + offset)


class _Written:
    """A class whose instances a function in Python makes."""

    def __new__(cls) -> Any:
        return object.__new__(cls)


def is_possible() -> bool:
    """Return whether classes have the structure that is expected."""
    has_lock = getattr(sys, "_is_gil_enabled", None)
    if sys.implementation.name != "cpython" or sys.version_info >= (3, 14) or (has_lock and not has_lock()):
        return False
    plain = type("_Plain", (), {})
    calls = [bool(_place(kind, _OFFSET_OF_CALL).value) for kind in (plain, list, tuple, _Written)]
    return bool(_place(plain).value == _place(object).value != _place(_Written).value) and calls == [
        False, True, True, False,
    ]  # fmt: skip


def _prepare() -> None:
    """Make the classes ready to be exchanged, before the first recording."""
    possible = is_possible()
    for owner, instead in _waiting:
        names = gc.get_referents(owner.__dict__)
        if not possible or len(names) != 1 or type(names[0]) is not dict:
            continue
        made = _Constructor(owner, _place(_Written).value)
        names[0]["__new__"] = staticmethod(_new(_New(_place(owner).value), owner, instead))
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(owner))
        _ready.append(made)
    _waiting.clear()


def _new(make: Any, owner: type, instead: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function ``__new__`` of a class, which `make` made instances of so far."""

    def new(cls: type, *args: Any, **kwargs: Any) -> Any:
        if thread.recorder is None or cls is not owner:
            return make(cls, args, kwargs)
        with monitor.paused():
            return instead(lambda *given, **named: make(cls, given, named), *args, **kwargs)

    return new


def begin(recording: object) -> None:
    """Have the classes answer while a recording is open."""
    with _lock:
        if _waiting:
            _prepare()
        if not _open:
            for constructor in _ready:
                constructor.put(True)
        _open.add(id(recording))


def end(recording: object) -> None:
    """Restore the classes, if this was the last recording that was open; may be called twice."""
    _end(id(recording))


def _end(recording: int) -> None:
    with _lock:
        _open.discard(recording)
        if not _open:
            for constructor in _ready:
                constructor.put(False)


def _in_child() -> None:
    """Restore the classes in a forked child, which does not have the threads that recorded."""
    if thread.recorder is None:
        for recording in [*_open]:
            _end(recording)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
