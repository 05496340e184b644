# SPDX-License-Identifier: BSD-3-Clause
"""The lengths of lists and deques that vary: ``len(self.memory) < 32``.

Note [lengths that vary]
``len()`` reads nothing of a list but its length, which is a guard like any number, until it turns out to vary (Note
[captured numbers]). Then it is an input. There is no place that could hold a Number instead, because a list keeps its
length itself. So the name ``len`` stands for another function while the function is recorded, in the modules whose code
asks for the length of a list.
"""

from collections.abc import Callable, Collection
from typing import Any

from tracejit.capture.exchanges import Exchanged
from tracejit.capture.slots import GlobalSlot, LengthSlot
from tracejit.capture.values import MISSING, static
from tracejit.record import monitor, recorder
from tracejit.record.state import CapturedPlace
from tracejit.util.named_tuples import NamedTuple


class _Length(NamedTuple):
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
        state: of the recording.
        varying: the places of numbers that vary.
        has_changed: returns whether the code has called a method of a container that may change it, given its id.
    """

    def __init__(
        self, state: Any, varying: Collection[CapturedPlace], has_changed: Callable[[int], bool]
    ) -> None:
        self._state = state
        self._vary = any(place.kind is LengthSlot for place in varying)
        self._has_changed = has_changed
        self._known: dict[int, _Length] = {}
        self._exchanged: list[Exchanged] = []

    def met(self, container: Any, number: Any, size: int) -> None:
        """Note a length that varies."""
        self._known[id(container)] = _Length(container, number, size)

    def asked(self, scope: dict[str, Any]) -> None:
        """Have ``len`` give lengths that vary to the code of a module, which asks for some."""
        if self._vary and "len" not in scope:
            exchanged = Exchanged(scope, GlobalSlot, "len", MISSING, self._length)
            exchanged.put()
            self._exchanged.append(exchanged)

    def end(self) -> None:
        """Have ``len`` mean Python's own again."""
        while self._exchanged:
            self._exchanged.pop().put_back()
        self._known.clear()

    def _length(self, x: Any, /) -> Any:
        """Return the length of x: a Number if it varies."""
        current = recorder.thread.recorder
        if current is None or current.state is not self._state:
            return len(x)
        known = self._known.get(id(x))
        if known is not None:
            with monitor.paused():
                return self._of(known)
        method = static(type(x), "__len__")
        if monitor.is_user_class(type(x)) and callable(method):
            length = type(x).__len__(x)
            if recorder.is_number(length):  # of a list that the object holds
                return length
        return len(x)

    def _of(self, known: _Length) -> Any:
        """Return a length as a Number, with the elements that the function has added."""
        container, number, size = known
        if not self._has_changed(id(container)) and len(container) == size:
            return number
        if getattr(container, "maxlen", None) is None:
            return number + (len(container) - size)
        number.needed("len() of a deque that the function changes", drops=False)  # it may be full
        return len(container)
