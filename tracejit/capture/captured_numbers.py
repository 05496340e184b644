# SPDX-License-Identifier: BSD-3-Clause
"""The places of numbers that vary, which hold an input of the trace until the function has ended.

Note [captured numbers]
A counter (``self.step += 1``), a rate that decays, the time of a simulation: a number that code reads at a place
(an attribute, an item, a global, a variable of an enclosing function) is a constant of the trace and a guard, until it
turns out to vary: because the function itself changes it, or because it has a third value. From then on the place holds
a Number (record/number.py) while the function is recorded, so that all that the code computes of it is recorded, and a
replay reads the number of the day at that place. What the function puts there is stored like an array.

A tuple of numbers (``x, v = self.state; self.state = (x + v, v)``) varies as a whole: the place holds a tuple of
Numbers then. So does a tuple, or a named tuple, that has numbers beside other things, such as the state of an
optimiser (``self.state = (m, v, n + 1)``): one with the same other elements takes its place. In a list or a dict that
is read as a whole (``np.array(self.state)``), each number that varies is exchanged before.

The place gets the Number when it is first looked at, which is before the code that can read it runs. When the function
has ended it holds the number again, unless the function has put something else there.
"""

from collections.abc import Container, Mapping, Sequence
from typing import Any

import numpy as np

from tracejit.array import dlarray
from tracejit.aval import Aval
from tracejit.capture.arrays import SeenArray
from tracejit.capture.captured_places import (
    captured_place,
    is_captured_number,
    is_tuple_of_numbers,
    is_tuple_with_numbers,
    note_again,
)
from tracejit.capture.exchanges import Exchanged
from tracejit.capture.growth import is_appended
from tracejit.capture.lengths import Lengths
from tracejit.capture.observed import Observed, Slot
from tracejit.capture.places import look
from tracejit.capture.slots import AttributeSlot, ItemSlot, LengthSlot
from tracejit.capture.snapshot import Snapshot
from tracejit.record import recorder
from tracejit.record.number import Number
from tracejit.record.state import CapturedPlace
from tracejit.util.named_tuples import NamedTuple


class NumbersOfTuple:
    """The numbers of a place that holds a tuple, as they entered the recording.

    Args:
        entries: the numbers of a tuple of nothing else. None for a mixed tuple, whose numbers stand in the slots of its
            elements.

    Attributes:
        is_replaced: whether the function has put something else at the place.
    """

    __slots__ = ("entries", "is_replaced")

    def __init__(self, entries: Sequence[SeenArray] | None) -> None:
        self.entries = entries
        self.is_replaced = False


class _Mixed(NamedTuple):
    """The numbers of a tuple that has other elements, too.

    tuple    which the place held
    parts    the elements of what takes its place
    entries  the inputs for its numbers, and what stands for tuples within, by place
    """

    tuple: tuple[Any, ...]
    parts: list[Any]
    entries: dict[int, SeenArray | NumbersOfTuple]


class CapturedNumbers:
    """The numbers of a recording that are inputs of its trace.

    Args:
        state: of the recording.
        varying: the places of numbers that vary.
        seen: what entered the recording, to which the numbers are added.
        lengths: the numbers of elements among them.
    """

    def __init__(
        self, state: Any, varying: Container[CapturedPlace], seen: list[SeenArray], lengths: Lengths
    ) -> None:
        self._state = state
        self._varying = varying
        self._seen = seen
        self._lengths = lengths
        self._places: list[Exchanged] = []
        self._entries: dict[int, SeenArray | NumbersOfTuple] = {}  # by the id of the Number, or of the tuple
        self._mixed: dict[int, _Mixed] = {}  # by the id of the tuple
        self.tuples: dict[int, Any] = {}
        """The tuples that take the places of others with numbers and more, by the ids of these."""

    @property
    def has_places(self) -> bool:
        """True if a place holds a Number."""
        return bool(self._places)

    def met(self, snapshot: Snapshot | None, observed: Observed, slot: Slot) -> None:
        """Put a Number into a slot that is looked at for the first time, if its number varies."""
        current = recorder.thread.recorder
        if current is None or current.state is not self._state:
            return
        if isinstance(observed.value, tuple):
            self._met_in_tuple(observed, slot)
            return
        place = captured_place(observed, slot)
        if place is None or place not in self._varying or type(slot.value) is np.ndarray:
            return
        owner, kind, name, before = observed.value, type(slot), slot.name, slot.value
        if kind is LengthSlot:
            number, slot.number = self._entered(before, current)
            self._lengths.met(owner, number, before)
            slot.is_read = True
            return
        holds = look(owner, kind, name)
        if id(holds) in self._entries:  # another path led to the same place
            slot.number = self._entries[id(holds)]
        elif holds is before:
            through: Any
            if isinstance(before, tuple) and not is_tuple_of_numbers(before):
                if snapshot is None:
                    return
                through = self._stand_in(snapshot, before, current)
                slot.number = NumbersOfTuple(None)
                self.tuples[id(before)] = through
            elif type(before) is tuple:
                pairs = [self._entered(number, current) for number in before]
                through = tuple([number for number, _ in pairs])
                slot.number = NumbersOfTuple([entry for _, entry in pairs])
            else:
                through, slot.number = self._entered(before, current)
            self._entries[id(through)] = slot.number
            exchanged = Exchanged(owner, kind, name, before, through)
            exchanged.put()
            self._places.append(exchanged)
        slot.is_read = slot.is_read or slot.number is not None

    def _stand_in(self, snapshot: Snapshot, before: Any, current: Any) -> Any:
        """Return what takes the place of a tuple with other elements; the slots of the tuple have its numbers."""
        mixed = self._mixed.get(id(before))
        if mixed is None:
            mixed = self._mixed[id(before)] = _Mixed(before, [*before], {})
            for place, part in enumerate(before):
                if is_captured_number(part):
                    mixed.parts[place], mixed.entries[place] = self._entered(part, current)
                elif is_tuple_with_numbers(part):
                    mixed.parts[place] = self._stand_in(snapshot, part, current)
                    mixed.entries[place] = NumbersOfTuple(None)
            observed = snapshot.observe(before)
            for place in mixed.entries:
                snapshot.slot(observed, ItemSlot, place)
            for slot in observed.slots.values():
                self._met_in_tuple(observed, slot)
        through = tuple.__new__(type(before), mixed.parts)
        snapshot.standing[id(through)] = before
        return through

    def _met_in_tuple(self, observed: Observed, slot: Slot) -> None:
        """Have a slot of a tuple with numbers stand for the input, by whatever name the code reads the element."""
        mixed = self._mixed.get(id(observed.value))
        place = None if mixed is None else _place_in(observed.value, slot)
        if mixed is not None and place in mixed.entries:
            slot.number, slot.is_read = mixed.entries[place], True

    def _entered(self, number: Any, current: Any) -> tuple[Number, SeenArray]:
        """Return a Number, which is an input of the trace, in place of a number."""
        data = np.asarray(number)
        value = current.builder.input(Aval((), None, data.dtype), data)
        entry = SeenArray(data, value, data, is_number=True)
        self._seen.append(entry)
        return Number(number, dlarray._wrap(data, None, value), None), entry

    def end(self, snapshot: Snapshot, methods: Mapping[int, Sequence[str]]) -> None:
        """Put all numbers back, and exchange none any more.

        Args:
            snapshot: what was observed. What it noted of a container as a whole has the numbers from now on, too: its
                guards compare them.
            methods: the methods that were called of containers and change them, by the ids of these.
        """
        self._state = None
        numbers = {id(exchanged.through): exchanged.before for exchanged in self._places}
        while self._places:
            exchanged = self._places.pop()
            found = self._entries[id(exchanged.through)]
            observed = snapshot.objects.get(id(exchanged.owner))
            has_moved = observed is not None and is_appended(observed, methods.get(id(exchanged.owner), ()))
            is_replaced = not exchanged.put_back(has_moved)
            found.is_replaced = is_replaced
        self._entries.clear()
        self._mixed.clear()
        self.tuples.clear()
        snapshot.standing.clear()
        note_again(snapshot, numbers)


def _place_in(owner: Any, slot: Slot) -> int | None:
    """Return the number of the element of a tuple that a slot is of; None for any other."""
    if type(slot) is AttributeSlot:
        fields = getattr(type(owner), "_fields", ())
        return fields.index(slot.name) if slot.name in fields else None
    is_item = type(slot) is ItemSlot and type(slot.name) is int and -len(owner) <= slot.name < len(owner)
    return slot.name % len(owner) if is_item else None
