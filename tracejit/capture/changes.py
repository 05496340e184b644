# SPDX-License-Identifier: BSD-3-Clause
"""The assignments of a run to attributes, items and names of objects that were there before it.

Note [stores]
The user's code says self.u = self.u + x. The recording reads the old array as an input; the new one is an output of the
trace, which a replay stores at the same place. For that, each object is looked at when it is first observed, before the
call can have changed it, and again when the function has returned. What is new at a place that a replay can find is
taken out again. So until the recording has ended, all objects are as they were before the call: that is what its guards
say, and how the objects remain if an error is raised. Then the new values are put there, in a recording as in a replay.

An assignment of what is there already (``self.best = self.u`` for the second time) changes nothing. So a place that
holds an array which the recording also found elsewhere counts as read: a replay is right only where both are still the
same. If the user's code assigns to the place, the array is stored again, so that the recording is the same as the one
of the first time. A number at a place that the code can assign to counts as read too, if it is what it was: either it
was assigned, or another run would leave whatever is there. The same holds for the elements of a container.
"""

import collections
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tracejit.array import dlarray
from tracejit.capture.contents import are_same, by_key, kind_of_slots, parts_of
from tracejit.capture.growth import GrowthSlot, Held, appended
from tracejit.capture.increments import increment_of, is_seen
from tracejit.capture.named import ObservedInstance
from tracejit.capture.objects import CHANGING
from tracejit.capture.observed import Contents, Observed, Slot
from tracejit.capture.places import put
from tracejit.capture.slots import (
    AttributeSlot,
    ClosureSlot,
    ExtentSlot,
    GlobalSlot,
    HasItemSlot,
    ItemSlot,
    presence_of,
)
from tracejit.capture.snapshot import Snapshot
from tracejit.capture.values import MAPPINGS, MISSING, SEQUENCES, SETS, UNKNOWN, is_atom
from tracejit.record import patches
from tracejit.record.side_effects import MEMORIES
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.text import shown

_NO_CALLS: Mapping[int, Sequence[str]] = {}
_ARRAYS = frozenset({dlarray, np.ndarray})
_OF_ELEMENTS = (*SEQUENCES, *SETS, *MEMORIES)


class Assignment(NamedTuple):
    """A new value at a place.

    owner       the object
    kind        of the slot
    name        of the slot
    place       as the user's code writes it
    where       the file and line that was looked at
    before      what was there, or MISSING
    after       what is there
    is_read     whether the function read what was there
    is_moved    whether the key is behind others now that it was before, as it is once it was deleted
    """

    owner: Any
    kind: type[Slot]
    name: Any
    place: str
    where: tuple[str, int]
    before: Any
    after: Any
    is_read: bool
    is_moved: bool = False

    def undo(self) -> None:
        """Put back what was there."""
        put(self.owner, self.kind, self.name, self.before)


class Changes(NamedTuple):
    """The changes of a run in objects that a replay can find.

    assignments  new values at places
    resized      containers that got or lost elements, and memory that was written, where nothing compares them
    reachable    ids of the objects
    orders       dicts that got or lost keys, and the keys that they had in their order
    unrepeated   containers that got or lost elements which no replay puts there, with their names, and whether they are
                 read
    """

    assignments: list[Assignment]
    resized: list[Observed]
    reachable: set[int]
    orders: list[tuple[dict[Any, Any], list[Any]]]
    unrepeated: list[tuple[Observed, str, bool]]


def changes(snapshot: Snapshot, called: Mapping[int, Sequence[str]] = _NO_CALLS) -> Changes:
    """Return what a run has changed.

    Args:
        snapshot: what was observed.
        called: the methods that were called of containers and change them, for each call, by the ids of these.
    """
    return _Search(snapshot, called).run()


class _Search:
    """The search for what a run has changed in the objects that a replay can find."""

    def __init__(self, snapshot: Snapshot, called: Mapping[int, Sequence[str]]) -> None:
        self._snapshot = snapshot
        self._called = called
        self._found = Changes([], [], set(), [], [])
        self._owners: dict[int, Observed] = {}  # instances that were looked at, by the ids of their dicts
        # Slots that hold arrays which other places lead to, too, with the names of their owners.
        self._same: list[tuple[Observed, type[Slot], Any, str]] = []

    def run(self) -> Changes:
        """Return what has changed."""
        snapshot, found = self._snapshot, self._found
        for observed, name in _reachable(snapshot):
            found.reachable.add(id(observed.value))
            self._note_stored(observed)
            before, now = snapshot.contents.get(id(observed.value)), observed.contents()
            if before is None or now is None:
                self._slots(observed, name)
                is_large = type(observed.value) in CHANGING  # too large to be looked at again
                if is_large and self._is_written(observed):
                    found.resized.append(observed)
            else:
                self._contents(observed, name, before, now)
        for observed, kind, key, name in self._same:
            known = observed.slots.get((kind, key))
            if known is not None and not known.is_read:  # the user's code assigns to it
                found.assignments.append(_change(observed, known, name, known.value, known.value, False))
            slot = snapshot.slot(observed, kind, key)
            if slot is not None and not slot.is_read:
                slot.is_late = True
                snapshot.read(observed, kind, key)
        return found

    def _note_stored(self, observed: Observed) -> None:
        """Note the slots to which the code can assign where no path leads, as in ``for p in parts: p.on = True``."""
        value, snapshot = observed.value, self._snapshot
        is_class = isinstance(value, type)
        held: Any = vars(value) if is_class else snapshot.contents.get(id(value), ())
        kind = AttributeSlot if is_class else kind_of_slots(observed)
        for key in snapshot.stored:
            if key in held if type(held) is not tuple else type(key) is int and key < len(held):
                snapshot.assign(observed, kind, key)

    def _slots(self, observed: Observed, name: str) -> None:
        """Find the assignments to the slots of an object whose contents were not kept."""
        for slot in [*observed.slots.values()]:
            is_item = type(slot) is ItemSlot and type(observed.value) in CHANGING
            if is_item or type(slot) in (GlobalSlot, ClosureSlot) or _is_attribute(observed, slot):
                value = slot.look(observed, slot.name)
                if self._is_deleted(observed, slot, value):
                    self._found.assignments.append(_change(observed, slot, name, slot.value, MISSING, False))
                elif value is slot.value and _is_elsewhere(self._snapshot, value):
                    self._same.append((observed, type(slot), slot.name, name))
                elif (
                    (slot.has_changed(observed) or slot.is_replaced)
                    and value is not UNKNOWN
                    and value is not MISSING
                    and not self._is_still_inherited(observed, slot)
                ):
                    after = self._settled(observed, slot, value)
                    before = MISSING if self._is_inherited(observed, slot) else slot.value
                    self._found.assignments.append(_change(observed, slot, name, before, after, slot.decides))
                else:
                    self._note_unchanged(observed, slot)

    def _is_deleted(self, observed: Observed, slot: Slot, value: Any) -> bool:
        """Return whether the run has deleted what was in a slot; a class can then have the value of one above."""
        owner = observed.value
        if isinstance(owner, type):
            return (id(owner), slot.name) in self._snapshot.owned and slot.name not in vars(owner)
        return value is MISSING and slot.value is not MISSING and slot.value is not UNKNOWN

    def _contents(self, observed: Observed, name: str, was: Contents, is_now: Contents) -> None:
        """Find what has changed in an object of whose contents there is a copy."""
        snapshot, kind = self._snapshot, type(observed.value)
        is_same = are_same(was, is_now) and not any(slot.is_replaced for slot in observed.slots.values())
        has_items = kind not in SETS and kind not in MEMORIES
        if kind in MAPPINGS and any(slot.is_deleted and slot.is_assigned for slot in observed.slots.values()):
            # A key that comes back goes behind the others, those that are added outside, too.
            snapshot.read(observed, ExtentSlot, "")
        if is_same and _ARRAYS.isdisjoint(map(type, parts_of(was))):  # fast, for large containers
            for slot in [*observed.slots.values()] if has_items else ():
                if type(slot) in (AttributeSlot, ItemSlot) and slot.value is not MISSING:
                    self._note_unchanged(observed, slot)
        else:
            before, now = by_key(was), by_key(is_now)
            space = observed.value if kind in MAPPINGS else getattr(observed.value, "__dict__", None)
            if space is not observed.value:
                self._owners[id(space)] = observed
            if type(was) is dict and space is not None and has_items and [*before] != [*now]:
                self._found.orders.append((space, [*before]))
            if not _is_resized(observed, before, now):
                if has_items:
                    self._items(observed, name, before, now)
            elif observed.held is None or self._is_left(observed):
                self._resized(observed, name, was, is_now)
            else:  # the recording is refused: it changes what it reads
                self._found.unrepeated.append((observed, name, True))
        if is_same and self._is_written(observed):  # it holds what is written, which it may not in a replay
            snapshot.hold(observed.value)

    def _is_left(self, observed: Observed) -> bool:
        """Return whether a container that was read as a whole has another one in its place by now."""
        value, objects = observed.value, [*self._snapshot.objects.values()]
        if any(value is part for other in objects for part in other.held or ()):
            return False
        slots = [(other, slot) for other in objects for slot in other.slots.values() if slot.value is value]
        return bool(slots) and all(slot.look(other, slot.name) is not value for other, slot in slots)

    def _resized(self, observed: Observed, name: str, was: Contents, is_now: Contents) -> None:
        """Note what was appended to a container, or that it was changed in another way."""
        container, snapshot = observed.value, self._snapshot
        # Elements may have been assigned to that were appended in this run, and are old ones in the next; of a number
        # that names an old one it would show.
        new = range(len(was), len(is_now))
        is_loose = id(container) in snapshot.changing or any(
            type(key) is int and (key < 0 or key in new) for key in snapshot.stored
        )
        is_loose |= any(slot.is_assigned or slot.additions for slot in observed.slots.values())
        methods = [*self._called.get(id(container), ()), *(["extend"] if self._is_extended(observed) else ())]
        values = None if is_loose else appended(observed, was, is_now, methods)
        if values is None:  # it is refused, as if it read the elements: no replay could repeat this
            observed.held = tuple(was["bytes"] if type(was) is dict else was)
            self._found.unrepeated.append((observed, name, False))
            return
        slot = GrowthSlot("", Held(was), observed.where)
        self._found.assignments.append(_change(observed, slot, name, slot.value, values, is_read=False))

    def _is_written(self, observed: Observed) -> bool:
        """Return whether code that ran can have put something into a container."""
        is_changing = id(observed.value) in self._snapshot.changing or self._is_extended(observed)
        return is_changing or id(observed.value) in self._called

    def _is_extended(self, observed: Observed) -> bool:
        return id(observed.value) in self._snapshot.extended

    def _items(self, observed: Observed, name: str, before: dict[Any, Any], now: dict[Any, Any]) -> None:
        """Find the assignments to items, or to attributes of an instance."""
        kind = kind_of_slots(observed)
        for slot in [*observed.slots.values()]:
            value = now.get(slot.name, MISSING) if type(slot) is kind else MISSING
            is_same = value is not MISSING and before.get(slot.name, MISSING) is value
            if is_same and not _is_elsewhere(self._snapshot, value):
                self._note_unchanged(observed, slot)
        for key in [*before] if now.keys() != before.keys() or observed.held is None else ():
            if key not in now:
                slot = observed.slots.get((kind, key)) or kind(key, MISSING, observed.where)
                self._note_deleted(observed, kind, key)
                self._found.assignments.append(_change(observed, slot, name, before[key], MISSING, False))
        assigned = []
        moved = _moved(before, now) if kind is AttributeSlot or type(observed.value) in MAPPINGS else ()
        for key, value in now.items():
            if key in moved:
                slot = observed.slots.get((kind, key)) or kind(key, MISSING, observed.where)
                was = before[key]
                is_read = value is not was and _is_read(observed, slot, key)
                change = _change(observed, slot, name, was, value, is_read)
                self._found.assignments.append(change._replace(is_moved=True))
            elif before.get(key, MISSING) is value and not _is_replaced(observed, kind, key):
                if type(value) in _ARRAYS and _is_elsewhere(self._snapshot, value):
                    self._same.append((observed, kind, key, name))
            elif not getattr(type(value), "evaluates_itself", False) and not self._is_told(observed, key):
                assigned.append(key)
                slot = self._slot_of(observed, kind, key, len(now)) or kind(key, MISSING, observed.where)
                after = self._settled(observed, slot, value)
                is_read = _is_read(observed, slot, key)
                self._found.assignments.append(
                    _change(observed, slot, name, before.get(key, MISSING), after, is_read)
                )

        if (
            len(assigned) > 1 and type(observed.value) in MAPPINGS
        ):  # they tell no order of those that were there
            for key in before.keys() & assigned:
                self._snapshot.read(observed, HasItemSlot, key)

    def _is_told(self, observed: Observed, key: Any) -> bool:
        """Return whether another object tells of an assignment: an instance, or its dict of attributes.

        The one tells by whose name the code assigns; where both names do so, the place is read, and the instance tells.
        """
        owner = self._owners.get(id(observed.value))  # looked at before the dict
        if owner is not None:
            slot = observed.slots.get((ItemSlot, key))
            is_read = observed.held is not None or (slot is not None and slot.is_read)
            return not is_read and (
                not _is_target(observed, ItemSlot, key) or _is_target(owner, AttributeSlot, key)
            )
        space = self._snapshot.objects.get(id(getattr(observed.value, "__dict__", None)))
        if space is None or not _is_target(space, ItemSlot, key):
            return False
        if _is_target(observed, AttributeSlot, key):
            self._snapshot.read(observed, AttributeSlot, key)
            return False
        return space.held is None

    def _note_deleted(self, observed: Observed, kind: type[Slot], key: Any) -> None:
        """Note that a replay has to find again what the run has deleted."""
        presence = presence_of(observed, kind, key)
        if (presence, key) in observed.slots or kind is AttributeSlot:
            self._snapshot.read(observed, presence, key)
        else:  # by a method, or a key that no path tells
            self._snapshot.read(observed, ExtentSlot, "")

    def _slot_of(self, observed: Observed, kind: type[Slot], key: Any, length: int) -> Slot | None:
        """Return the slot through which the code assigns an item or an attribute, or None if no path tells.

        What else a container holds then decides what goes where (a[:] = b, or d.clear() and what follows): its extent
        is compared.
        """
        slot = observed.slots.get((kind, key))
        if type(observed.value) in MAPPINGS:
            is_called = id(observed.value) in self._called
            is_loose = is_called and any("clear" in code.co_names for code in self._snapshot.ran)
        elif type(observed.value) in SEQUENCES:
            from_end = observed.slots.get((kind, key - length))  # a[-1]
            slots = [known for known in (slot, from_end) if known and (known.is_assigned or known.additions)]
            is_loose = len(slots) != 1 or id(observed.value) in self._snapshot.changing
            if not is_loose:
                slot = slots[0]
        else:
            is_loose = False
        if is_loose:
            self._snapshot.read(observed, ExtentSlot, "")
        return slot

    def _settled(self, observed: Observed, slot: Slot, value: Any) -> Any:
        """Return what a replay puts into a slot that has changed; note that it was read if that decides about it."""
        if slot.is_read or not slot.additions:
            return value
        increment = increment_of(slot, value)
        if self._has_changed_above(observed, slot):
            increment = None  # where it is inherited from
        if increment is not None:
            slot.is_counted = True
            return increment
        self._snapshot.where = slot.where
        before = self._snapshot.read(observed, type(slot), slot.name)
        if type(before) is tuple:
            self._snapshot.read_whole(before)
        return value

    def _is_inherited(self, observed: Observed, slot: Slot) -> bool:
        """Return whether an instance or a class had a slot's value from a class above."""
        value = observed.value
        if isinstance(value, type):
            return (id(value), slot.name) not in self._snapshot.owned
        return isinstance(observed, ObservedInstance) and slot.name not in self._snapshot.contents.get(
            id(value), (slot.name,)
        )

    def _is_still_inherited(self, observed: Observed, slot: Slot) -> bool:
        """Return whether a class has a slot's value from a class above, or from its metaclass, as it had before."""
        value = observed.value
        is_of_class = type(slot) is AttributeSlot and isinstance(value, type)
        return is_of_class and slot.name not in vars(value) and self._is_inherited(observed, slot)

    def _has_changed_above(self, observed: Observed, slot: Slot) -> bool:
        """Return whether the run has changed an attribute in the class, too, from which the object had inherited it."""
        if type(slot) is not AttributeSlot or not self._is_inherited(observed, slot):
            return False
        value = observed.value
        for base in value.__mro__[1:] if isinstance(value, type) else type(value).__mro__:
            above = self._snapshot.objects.get(id(base))
            known = above and above.slots.get((AttributeSlot, slot.name))
            if above and known and known.value is slot.value and known.has_changed(above):
                return True
        return False

    def _note_unchanged(self, observed: Observed, slot: Slot) -> None:
        """Note that a slot was read which the code assigns to, and which still holds what it held."""
        if slot.additions and type(slot.value) is set:  # an operator added what is in it
            self._snapshot.hold(self._snapshot.read(observed, type(slot), slot.name))
        is_plain = is_atom(slot.value) or (type(slot.value) is tuple and all(map(is_atom, slot.value)))
        is_plain |= id(slot.value) in self._snapshot.objects  # another path led to it
        is_assigned = slot.is_assigned or not all(
            is_seen(slot.value, *addition) for addition in slot.additions
        )
        if is_plain and is_assigned and not slot.is_read:
            slot.is_late = True
            self._snapshot.read(observed, type(slot), slot.name)


def _is_target(observed: Observed, kind: type[Slot], key: Any) -> bool:
    """Return whether the code assigns to a slot by its name."""
    slot = observed.slots.get((kind, key))
    return slot is not None and (slot.is_assigned or bool(slot.additions))


def _is_resized(observed: Observed, before: dict[Any, Any], now: dict[Any, Any]) -> bool:
    """Return whether an object got or lost elements in a way that no assignment to a place repeats."""
    kind = type(observed.value)
    if kind in SETS:
        return {*map(id, before.values())} != {*map(id, now.values())}
    if kind in MEMORIES:
        return before != now
    if not isinstance(observed.value, _OF_ELEMENTS):  # items and attributes are assigned and deleted
        return False
    if kind is collections.deque and observed.held is None:  # a full one drops elements
        moved = [key for key, value in now.items() if before.get(key) is not value]
        return len(before) != len(now) or any((ItemSlot, key) not in observed.slots for key in moved)
    return len(before) != len(now)


def _moved(before: dict[Any, Any], now: dict[Any, Any]) -> set[Any]:
    """Return the keys of a dict that it had in another order: they were deleted, and came back behind the others."""
    common = [key for key in now if key in before]
    if common == [key for key in before if key in now]:
        return set()
    numbers = {key: number for number, key in enumerate(before)}
    stayed = -1
    for at, key in enumerate(common):
        if numbers[key] < stayed:
            return {*common[at:]}
        stayed = numbers[key]
    return set()


def _is_read(observed: Observed, slot: Slot, key: Any) -> bool:
    """Return whether a recording is right for what was at a key only, and not for any number.

    Args:
        observed: the container.
        slot: by which the code assigns; that of the last element may be named from the end.
        key: as the contents have it.
    """
    known = observed.slots.get((type(slot), key), slot)
    return slot.decides or (observed.held is not None and slot.number is None and known.number is None)


def _is_replaced(observed: Observed, kind: type[Slot], key: Any) -> bool:
    slot = observed.slots.get((kind, key))
    return slot is not None and slot.is_replaced


def _is_elsewhere(snapshot: Snapshot, value: Any) -> bool:
    """Return whether a value is an array that another place has led to, too.

    So it may have been assigned to a place where it was already. That it is there in a replay has to be checked.
    """
    return (type(value) is dlarray or type(value) is np.ndarray) and id(value) in snapshot.objects


def _change(observed: Observed, slot: Slot, name: str, before: Any, after: Any, is_read: bool) -> Assignment:
    if isinstance(after, patches.Patched):  # which stands for a function while something is recorded
        after = patches.original(after)
        put(observed.value, type(slot), slot.name, after)
    return Assignment(
        observed.value, type(slot), slot.name, slot.path(name), slot.where, before, after, is_read
    )


def _is_attribute(observed: Observed, slot: Slot) -> bool:
    return type(slot) is AttributeSlot and observed.has_attributes


def _reachable(snapshot: Snapshot) -> Iterator[tuple[Observed, str]]:
    """Return the observed objects that a replay reaches from the roots by what was read, with their names."""
    waiting = collections.deque(snapshot.roots.items())
    reached = set(snapshot.roots)
    while waiting:
        ident, name = waiting.popleft()
        observed = snapshot.objects[ident]
        yield observed, name
        parts = [(slot.value, slot.path(name)) for slot in observed.slots.values() if slot.is_read]
        held = observed.held or ()
        is_mapping = type(observed.value) in MAPPINGS
        keys = held[::2] if is_mapping else range(len(held))
        values = held[1::2] if is_mapping else held
        parts += [(part, f"{name}[{shown(key)}]") for key, part in zip(keys, values, strict=True)]
        for part, path in parts:
            if id(part) in snapshot.objects and id(part) not in reached:
                reached.add(id(part))
                waiting.append((id(part), path))
