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
of the first time.
"""

import collections
import types
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from tracejit.array import dlarray
from tracejit.capture.callables import ObservedFunction
from tracejit.capture.named import ObservedClass, ObservedInstance, ObservedMember, ObservedModule
from tracejit.capture.observed import Observed, Slot
from tracejit.capture.slots import AttributeSlot, ClosureSlot, GlobalSlot, ItemSlot
from tracejit.capture.snapshot import Snapshot
from tracejit.capture.values import MAPPINGS, MISSING, UNKNOWN, is_atom, static
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.text import shown

_WITH_ATTRIBUTES = (ObservedClass, ObservedModule, ObservedMember, ObservedFunction)
_SEQUENCES = (list, collections.deque)


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
    """

    owner: Any
    kind: type[Slot]
    name: Any
    place: str
    where: tuple[str, int]
    before: Any
    after: Any
    is_read: bool

    def undo(self) -> None:
        """Put back what was there."""
        put(self.owner, self.kind, self.name, self.before)


class Changes(NamedTuple):
    """The changes of a run in objects that a replay can find.

    assignments  new values at places
    resized      lists that have another length than before and are not compared, and what is new in each
    reachable    ids of the objects
    """

    assignments: list[Assignment]
    resized: list[tuple[Observed, list[Any]]]
    reachable: set[int]


def changes(snapshot: Snapshot) -> Changes:
    """Return what a run has changed."""
    assignments: list[Assignment] = []
    resized: list[tuple[Observed, list[Any]]] = []
    reachable: set[int] = set()
    same: list[tuple[Observed, type[Slot], Any, str]] = []
    for observed, name in _reachable(snapshot):
        reachable.add(id(observed.value))
        before, now = snapshot.contents.get(id(observed.value)), observed.contents()
        if before is not None and now is not None:
            is_list = isinstance(observed.value, _SEQUENCES)
            kind: type[Slot] = AttributeSlot if isinstance(observed, ObservedInstance) else ItemSlot
            if is_list and len(before) != len(now):
                if observed.held is None:  # otherwise the recording is refused: it changes what it reads
                    held = {*map(id, before.values())}
                    resized.append((observed, [value for value in now.values() if id(value) not in held]))
                continue
            for key, value in now.items():
                if before.get(key, MISSING) is value:
                    if _is_elsewhere(snapshot, value):
                        same.append((observed, kind, key, name))
                elif not getattr(type(value), "evaluates_itself", False):
                    slot = observed.slots.get((kind, key)) or kind(key, MISSING, observed.where)
                    _note_update(snapshot, observed, slot, value)
                    is_read = slot.is_read or observed.held is not None
                    assignments.append(
                        _change(observed, slot, name, before.get(key, MISSING), value, is_read)
                    )
            continue
        for slot in observed.slots.values():
            if type(slot) in (GlobalSlot, ClosureSlot) or _is_attribute(observed, slot):
                value = slot.look(observed, slot.name)
                if value is slot.value and _is_elsewhere(snapshot, value):
                    same.append((observed, type(slot), slot.name, name))
                elif slot.has_changed(observed) and value is not UNKNOWN and value is not MISSING:
                    _note_update(snapshot, observed, slot, value)
                    assignments.append(
                        _change(observed, slot, name, _own_value(observed, slot), value, slot.is_read)
                    )
    for observed, kind, key, name in same:
        known = observed.slots.get((kind, key))
        if known is not None and not known.is_read:  # the user's code assigns to it
            assignments.append(_change(observed, known, name, known.value, known.value, False))
        found = snapshot.slot(observed, kind, key)
        if found is not None and not found.is_read:
            found.is_late = True
            snapshot.read(observed, kind, key)
    return Changes(assignments, resized, reachable)


def _note_update(snapshot: Snapshot, observed: Observed, slot: Slot, value: Any) -> None:
    """Note that a slot was read for an assignment to it, if a replay may repeat that.

    A number or a text (``self.count += 1``) is assigned while recording only, so that what was there does not matter.
    """
    is_plain = is_atom(value) or (type(value) is tuple and all(map(is_atom, value)))
    if slot.is_updated and not slot.is_read and not is_plain:
        snapshot.where = slot.where
        before = snapshot.read(observed, type(slot), slot.name)
        if type(before) is tuple:
            snapshot.read_whole(before)


def _is_elsewhere(snapshot: Snapshot, value: Any) -> bool:
    """Return whether a value is an array that another place has led to, too.

    So it may have been assigned to a place where it was already. That it is there in a replay has to be checked.
    """
    return (type(value) is dlarray or type(value) is np.ndarray) and id(value) in snapshot.objects


def _change(observed: Observed, slot: Slot, name: str, before: Any, after: Any, is_read: bool) -> Assignment:
    return Assignment(
        observed.value, type(slot), slot.name, slot.path(name), slot.where, before, after, is_read
    )


def _is_attribute(observed: Observed, slot: Slot) -> bool:
    return type(slot) is AttributeSlot and isinstance(observed, _WITH_ATTRIBUTES)


def _own_value(observed: Observed, slot: Slot) -> Any:
    """Return what an object had itself in a slot; a class can have inherited it."""
    bases = observed.value.__mro__[1:] if isinstance(observed.value, type) else ()
    inherited = any(vars(base).get(slot.name, MISSING) is slot.value for base in bases)
    return MISSING if inherited else slot.value


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


def look(owner: Any, kind: type[Slot], name: Any) -> Any:
    """Return what put() would replace, or MISSING."""
    if kind is ClosureSlot:
        try:
            return owner.__closure__[name[0]].cell_contents
        except ValueError:
            return MISSING
    if kind is not AttributeSlot:
        return owner.get(name, MISSING) if isinstance(owner, dict) else owner[name]
    own = getattr(owner, "__dict__", {})
    if name in own or isinstance(owner, type):
        return own.get(name, MISSING)
    is_slot = type(static(type(owner), name)) is types.MemberDescriptorType
    return getattr(owner, name, MISSING) if is_slot else MISSING


def put(owner: Any, kind: type[Slot], name: Any, value: Any) -> None:
    """Put a value where a slot of an object is, without running the user's code; MISSING empties it."""
    if kind is ClosureSlot:
        cell = owner.__closure__[name[0]]
        if value is MISSING:
            del cell.cell_contents
        else:
            cell.cell_contents = value
    elif kind is AttributeSlot:
        _put_attribute(owner, name, value)
    elif value is MISSING:
        owner.pop(name, None)
    elif type(owner) in MAPPINGS:
        dict.__setitem__(owner, name, value)
    else:
        owner[name] = value


def _put_attribute(owner: Any, name: str, value: Any) -> None:
    if isinstance(owner, types.ModuleType):
        put(vars(owner), GlobalSlot, name, value)
        return
    kind: Any = type if isinstance(owner, type) else object
    if value is not MISSING:
        kind.__setattr__(owner, name, value)
        return
    with suppress(AttributeError):  # another path led to the same place
        kind.__delattr__(owner, name)
