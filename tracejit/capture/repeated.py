# SPDX-License-Identifier: BSD-3-Clause
"""Changes that replays repeat by themselves, because they call the same functions of Python as the recording."""

from typing import Any

from tracejit.capture.contents import are_same, by_key, kind_of_slots
from tracejit.capture.observed import Contents, Observed, Slot
from tracejit.capture.slots import AttributeSlot, ClosureSlot, GlobalSlot, holder_of
from tracejit.capture.snapshot import Snapshot
from tracejit.capture.values import MISSING, is_atom

Held = dict[int, Contents]  # by the ids of objects; by kind and name of a slot where there are no contents


def held_now(snapshot: Snapshot) -> Held:
    """Return what the observed objects hold now."""
    return {ident: _held(observed) for ident, observed in snapshot.objects.items()}


def leave_out(snapshot: Snapshot, before: Held) -> None:
    """Take what has changed since held_now() for something that was there when the recording began."""
    for ident, then in before.items():
        observed = snapshot.objects[ident]
        now = _held(observed)
        if are_same(then, now):
            continue
        was = _by_place(observed, then)
        for place, value in _by_place(observed, now).items():
            if value is not was.get(place, MISSING):
                _leave_out(snapshot, observed, place, was.get(place, MISSING), value)


def _leave_out(
    snapshot: Snapshot, observed: Observed, place: tuple[type[Slot], Any], before: Any, value: Any
) -> None:
    slot = observed.slots.get(place)
    kept, name = snapshot.contents.get(id(observed.value)), place[1]
    held = by_key(() if kept is None else kept)
    first = getattr(slot, "value", MISSING) if kept is None else held.get(name, MISSING)
    if first is not before:
        snapshot.unseen = snapshot.unseen or ("what replays change in two ways", observed.where)
    elif slot is None or not slot.is_read:  # otherwise it changes what it reads
        if slot is not None:
            slot.value = value
        holder = holder_of(observed, *place)
        if holder is not None:
            snapshot.firsts[id(holder[0]), holder[1]] = holder[0], value
        held[name] = value
        if type(kept) is tuple:
            snapshot.contents[id(observed.value)] = tuple(held.values())


def _held(observed: Observed) -> Contents:
    """Return the contents of an object, or what its slots hold if there are none."""
    contents = observed.contents()
    if contents is not None:
        return contents
    held = {
        key: slot.look(observed, slot.name)
        for key, slot in observed.slots.items()
        if key[0] in (GlobalSlot, ClosureSlot, AttributeSlot)
    }
    return {key: value for key, value in held.items() if key[0] is not AttributeSlot or is_atom(value)}


def _by_place(observed: Observed, held: Contents) -> dict[Any, Any]:
    """Return what an object holds by kind and name of a slot."""
    if type(held) is dict and observed.contents() is None:
        return held
    kind = kind_of_slots(observed)
    return {(kind, name): value for name, value in by_key(held).items()}
