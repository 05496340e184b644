# SPDX-License-Identifier: BSD-3-Clause
"""The places of numbers that vary, which hold an input of the trace until the function has ended.

Note [captured numbers]
A counter (``self.step += 1``), a rate that decays, the time of a simulation: a number that code reads at a place
(an attribute, an item, a global, a variable of an enclosing function) is a constant of the trace and a guard, until it
turns out to vary: because the function itself changes it, or because it has a third value. From then on the place holds
a Number (record/number.py) while the function is recorded, so that all that the code computes of it is recorded, and a
replay reads the number of the day at that place. What the function puts there is stored like an array.

The place gets the Number when it is first looked at, which is before the code that can read it runs. When the function
has ended it holds the number again, unless the function has put something else there.
"""

import types
from collections.abc import Container, Mapping
from typing import Any

import numpy as np

from tracejit.array import dlarray
from tracejit.aval import NUMBERS, Aval
from tracejit.call.signature import is_int64
from tracejit.capture.arrays import SeenArray
from tracejit.capture.changes import look
from tracejit.capture.exchanges import Exchanged
from tracejit.capture.observed import Observed, Slot
from tracejit.capture.slots import AttributeSlot, ClosureSlot, GlobalSlot, ItemSlot
from tracejit.capture.snapshot import Snapshot
from tracejit.capture.values import MAPPINGS, is_user_class
from tracejit.record import recorder
from tracejit.record.number import Number
from tracejit.record.state import NumberPlace


def number_place(observed: Observed, slot: Slot) -> NumberPlace | None:
    """Return the place of a slot that holds a number which can become an input; None for any other slot."""
    value = slot.value
    if type(value) not in NUMBERS or (type(value) is int and not is_int64(value)):
        return None
    owner = _owner(observed, type(slot))
    return None if owner is None else NumberPlace(owner, type(slot), slot.name)


def _owner(observed: Observed, kind: type[Slot]) -> Any:
    """Return what tells the objects apart whose slots of one name are one place; None where no number is exchanged."""
    owner = observed.value
    if kind is GlobalSlot:
        return owner.get("__name__", "")
    if kind is ClosureSlot:
        return getattr(owner, "__code__", None)
    if kind is ItemSlot:
        return type(owner) if type(owner) in MAPPINGS or type(owner) is list else None
    if kind is not AttributeSlot:
        return None
    if isinstance(owner, types.ModuleType):
        return owner.__name__
    if type(owner) is types.SimpleNamespace:
        return type(owner)
    return owner if isinstance(owner, type) else type(owner) if is_user_class(type(owner)) else None


def _with_numbers(noted: Any, numbers: Mapping[int, Any]) -> Any:
    """Return a tuple or a dict that was noted with other parts, given by the ids of those that they replace."""
    if type(noted) is tuple and any(id(part) in numbers for part in noted):
        return tuple([numbers.get(id(part), part) for part in noted])
    if type(noted) is dict and any(id(part) in numbers for part in noted.values()):
        return {key: numbers.get(id(part), part) for key, part in noted.items()}
    return noted


class CapturedNumbers:
    """The numbers of a recording that are inputs of its trace.

    Args:
        state: of the recording.
        varying: the places of numbers that vary.
        seen: what entered the recording, to which the numbers are added.
    """

    def __init__(self, state: Any, varying: Container[NumberPlace], seen: list[SeenArray]) -> None:
        self._state = state
        self._varying = varying
        self._seen = seen
        self._places: list[Exchanged] = []
        self._entries: dict[int, SeenArray] = {}  # by the id of the Number

    def met(self, observed: Observed, slot: Slot) -> None:
        """Put a Number into a slot that is looked at for the first time, if its number varies."""
        current = recorder.thread.recorder
        if current is None or current.state is not self._state:
            return
        place = number_place(observed, slot)
        if place is None or place not in self._varying:
            return
        owner, kind, name, number = observed.value, type(slot), slot.name, slot.value
        holds = look(owner, kind, name)
        if id(holds) in self._entries:  # another path led to the same place
            slot.number = self._entries[id(holds)]
        elif holds is number:
            data = np.asarray(number)
            value = current.builder.input(Aval((), None, data.dtype), data)
            through = Number(number, dlarray._wrap(data, None, value), None)
            entry = SeenArray(data, value, data, is_number=True)
            self._seen.append(entry)
            self._entries[id(through)] = slot.number = entry
            exchanged = Exchanged(owner, kind, name, number, through)
            exchanged.put()
            self._places.append(exchanged)
        slot.is_read = slot.is_read or slot.number is not None

    def end(self, snapshot: Snapshot) -> None:
        """Put all numbers back, and exchange none any more.

        Args:
            snapshot: what was observed. What it noted of a container as a whole has the numbers from now on, too: its
                guards compare them.
        """
        self._state = None
        numbers = {id(exchanged.through): exchanged.before for exchanged in self._places}
        while self._places:
            exchanged = self._places.pop()
            self._entries[id(exchanged.through)].is_replaced = not exchanged.put_back()
        self._entries.clear()
        for observed in snapshot.objects.values() if numbers else ():
            observed.held = _with_numbers(observed.held, numbers)
            for slot in observed.slots.values():
                slot.value = _with_numbers(numbers.get(id(slot.value), slot.value), numbers)
            if id(observed.value) in snapshot.contents:
                contents = snapshot.contents[id(observed.value)]
                snapshot.contents[id(observed.value)] = _with_numbers(contents, numbers)
