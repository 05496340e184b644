# SPDX-License-Identifier: BSD-3-Clause
"""The places of ndarrays that a function writes, which hold an array of the recording until the function has ended.

Note [exchanged arrays]
``self.q[i] = value`` and ``self.w -= step`` write into an ndarray, and plain NumPy reads it before and after. What it
reads would be a constant, which a replay does not compute again. Therefore, before the code of a function runs that
writes an ndarray, the places that lead to it (attributes, items, globals) get a dlarray around its memory: all that the
code does with it is recorded then. When the function has ended they hold the ndarray again.

This is done only where nothing can have the ndarray itself: no code that ran before has looked at its places, and the
code itself does with it what dlarrays do. It is not passed to functions that are not watched, which may be in C.
Other ndarrays that are written stay what they are (record/ndarrays.py).
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from tracejit.array import dlarray
from tracejit.aval import SUPPORTED_DTYPES
from tracejit.capture.changes import look, put
from tracejit.capture.objects import ObservedArray
from tracejit.capture.observed import Observed
from tracejit.capture.slots import AttributeSlot, ClosureSlot, GlobalSlot, ItemSlot
from tracejit.capture.snapshot import Snapshot
from tracejit.capture.values import MAPPINGS
from tracejit.record import ndarrays
from tracejit.util.named_tuples import NamedTuple

_KINDS = (AttributeSlot, ClosureSlot, GlobalSlot)
_WITH_ITEMS = (list, *MAPPINGS)


class Exchanged(NamedTuple):
    """A place that holds something else for the time of a recording.

    owner    the object that has it
    kind     of the slot
    name     of the slot
    before   what the place held
    through  what it holds
    """

    owner: Any
    kind: Any
    name: Any
    before: Any
    through: Any

    def put(self) -> None:
        """Put there what it is to hold."""
        put(self.owner, self.kind, self.name, self.through)

    def put_back(self) -> bool:
        """Put back what was there, unless the function has put something else there; return whether it was put back."""
        is_there = look(self.owner, self.kind, self.name) is self.through
        if is_there:
            put(self.owner, self.kind, self.name, self.before)
        return is_there


class Exchanges:
    """The exchanged arrays of a recording."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._arrays: list[tuple[ObservedArray, Any]] = []
        self._places: list[Exchanged] = []

    def started(self, new: Iterable[Observed]) -> None:
        """Exchange what the code of a function writes that begins to run.

        Args:
            new: what its paths lead to, and nobody has looked at before.
        """
        for observed in new:
            if isinstance(observed, ObservedArray) and _is_possible(observed):
                through = ndarrays.watched(observed.value)
                if through is not None:
                    observed.is_exchanged = True
                    self._arrays.append((observed, through))
        for observed, through in self._arrays:
            self._exchange(observed, through)

    def _exchange(self, array: ObservedArray, through: Any) -> None:
        """Put an array in all places of an ndarray, unless it is somewhere else, too."""
        places = []
        for observed in [*self._snapshot.objects.values()]:
            owner = observed.value
            if any(
                part is array.value for part in (*(observed.held or ()), *getattr(observed, "inside", ()))
            ):
                array.is_exchanged = False
            for slot in [*observed.slots.values()]:
                kind = type(slot)
                if slot.value is not array.value:
                    continue
                if not (kind in _KINDS or (kind is ItemSlot and type(owner) in _WITH_ITEMS)):
                    array.is_exchanged = False
                elif look(owner, kind, slot.name) is array.value:
                    places.append(Exchanged(owner, kind, slot.name, array.value, through))
        for place in places if array.is_exchanged else ():
            place.put()
            self._places.append(place)

    def end(self) -> None:
        """Put all arrays back."""
        while self._places:
            self._places.pop().put_back()


def _is_possible(observed: ObservedArray) -> bool:
    """Return whether an array is written by the code that begins to run, which does what dlarrays can do."""
    array = observed.value
    return (
        bool(observed.written)
        and not observed.passed
        and not observed.is_variable
        and type(array) is np.ndarray
        and array.dtype in SUPPORTED_DTYPES
        and array.flags.writeable
        and all(hasattr(dlarray, name) for name in observed.names)
    )
