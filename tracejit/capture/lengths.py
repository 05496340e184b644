# SPDX-License-Identifier: BSD-3-Clause
"""The lengths of lists and deques that vary: ``len(self.memory) < 32``.

Note [lengths that vary]
``len()`` reads nothing of a list but its length, which is a guard like any number, until it turns out to vary (Note
[captured numbers]). Then it is an input. There is no place that could hold a Number instead, because a list keeps its
length itself. So the name ``len`` stands for another function while the function is recorded, in the modules whose code
asks for the length of a list. For threads that record nothing it is Python's.

So it does where code asks for the length of an object whose class says it by a method in Python (``return min(self.n,
self.capacity)``): Python's len() would insist on a true number, and the length is the number that the method returns.
"""

import os
import sys
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from tracejit.capture.growth import APPENDING
from tracejit.capture.slots import STAND_INS, STANDING, LengthSlot
from tracejit.capture.values import MISSING, static
from tracejit.record import monitor, recorder
from tracejit.record.state import CapturedPlace
from tracejit.util.locks import new_lock
from tracejit.util.named_tuples import NamedTuple


class KnownLength(NamedTuple):
    """The length of a list or a deque when the recording began.

    container   the list or the deque
    number      a Number
    size        the length
    """

    container: Any
    number: Any
    size: int


class Lengths:
    """The lengths of a recording that are inputs of its trace.

    Args:
        varying: the places of numbers that vary.
        methods: returns the names of the methods that were called of a container and may change it, given its id; None
            if the code can change it in another way.
    """

    def __init__(
        self, varying: Collection[CapturedPlace], methods: Callable[[int], Sequence[str] | None]
    ) -> None:
        self._vary = any(place.kind is LengthSlot for place in varying)
        self._methods = methods
        self._known: dict[int, KnownLength] = {}
        self._scopes: list[dict[str, Any]] = []

    def met(self, container: Any, number: Any, size: int) -> None:
        """Note a length that varies."""
        self._known[id(container)] = KnownLength(container, number, size)

    def asked(self, scope: dict[str, Any], is_of_user: bool) -> bool:
        """Return whether ``len`` is Python's in a module; have it give lengths that vary to the code there.

        Args:
            scope: the names of the module.
            is_of_user: whether it is asked for the length of an object that the user's code says.
        """
        if scope.get("len", len) not in (len, _length):
            return False
        if (self._vary or is_of_user) and all(scope is not other for other in self._scopes):
            self._scopes.append(scope)
            _put(scope)
        return True

    def end(self) -> None:
        """Have ``len`` mean Python's own again."""
        while self._scopes:
            _put_back(self._scopes.pop())
        self._known.clear()

    def length(self, x: Any) -> Any:
        """Return the length of x: a Number if it varies."""
        known = self._known.get(id(x))
        if known is not None:
            with monitor.paused():
                return self._of(known)
        method = static(type(x), "__len__")
        if monitor.is_user_class(type(x)) and callable(method):
            return _said(type(x).__len__(x))
        return len(x)

    def _of(self, known: KnownLength) -> Any:
        """Return a length as a Number, with the elements that the function has added."""
        container, number, size = known
        methods = self._methods(id(container))
        if methods == () and len(container) == size:
            return number
        is_growing = methods is not None and APPENDING.issuperset(methods) and len(container) >= size
        if is_growing and getattr(container, "maxlen", None) is None:  # a deque may be full
            return number + (len(container) - size)
        number.needed("len() of a list that the function changes", drops=False)
        return len(container)


class _Sized:
    """An object of a length that a method has returned.

    Args:
        length: what it has returned.
    """

    def __init__(self, length: Any) -> None:
        self._length = length

    def __len__(self) -> Any:
        return self._length


def _said(length: Any) -> Any:
    """Return what len() makes of the length that a method of the user's has returned, or raise its error.

    A number that varies stays one; that it is not negative is a guard.
    """
    if type(length) is int and 0 <= length <= sys.maxsize:
        return length
    if not recorder.is_number(length):
        return len(_Sized(length))
    with monitor.paused():
        whole: Any = length if length._kind is int else length.item() if length._kind in _INTEGERS else None
        is_usual = whole is not None and recorder.is_number(whole) and bool(whole >= 0)
        return whole if is_usual else len(_Sized(length.needed("len()", drops=False)))


_INTEGERS = frozenset({np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32})


def _length(x: Any, /) -> Any:
    """Return the length of x, as the recording of this thread knows it."""
    current = recorder.thread.recorder
    lengths = None if current is None else getattr(current.state, "lengths", None)
    return len(x) if lengths is None else lengths.length(x)


STAND_INS["len"] = _length

# By the id of a namespace: itself, what it had, and how many recordings have exchanged the name.
_exchanged: dict[int, list[Any]] = {}
_lock = new_lock()


def _put(scope: dict[str, Any]) -> None:
    with _lock:
        entry = _exchanged.setdefault(id(scope), [scope, scope.get("len", MISSING), 0])
        entry[-1] += 1
        # Which stays there: another thread that has just read the name looks for it later.
        STANDING[id(scope), "len"] = _length, entry[1]
        scope["len"] = _length


def _put_back(scope: dict[str, Any]) -> None:
    with _lock:
        entry = _exchanged.get(id(scope))
        if entry is None:
            return
        entry[-1] -= 1
        if not entry[-1]:
            _restore(entry)


def _restore(entry: list[Any]) -> None:
    """Put back what a namespace had, unless somebody else has put something there."""
    scope, before, _ = _exchanged.pop(id(entry[0]))
    if scope.get("len") is _length:
        if before is MISSING:
            del scope["len"]
        else:
            scope["len"] = before


def _in_child() -> None:
    """Put everything back in a forked child, which does not have the threads that recorded."""
    if recorder.thread.recorder is None:
        for entry in [*_exchanged.values()]:
            _restore(entry)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
