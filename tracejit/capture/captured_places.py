# SPDX-License-Identifier: BSD-3-Clause
"""The places of numbers and ndarrays that a function reads besides its arguments, and that can become inputs."""

import types
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from tracejit.aval import NUMBERS, is_int64
from tracejit.capture.observed import Observed, Slot
from tracejit.capture.slots import AttributeSlot, ClosureSlot, GlobalSlot, ItemSlot, LengthSlot
from tracejit.capture.snapshot import Snapshot
from tracejit.capture.values import MAPPINGS, SEQUENCES, differs, is_hashed_by_python
from tracejit.record.monitor import is_user_class
from tracejit.record.state import CapturedPlace


def captured_place(observed: Observed, slot: Slot) -> CapturedPlace | None:
    """Return the place of a slot that holds numbers or an ndarray which can become inputs; None for any other."""
    value = slot.value
    is_of_array = type(value) is np.ndarray
    if not is_of_array and (not has_numbers(value) or isinstance(observed.value, tuple)):
        return None  # the numbers of a tuple are exchanged all at once, in the place of the tuple
    owner = _owner(observed, type(slot))
    return None if owner is None else CapturedPlace(owner, type(slot), slot.name, is_of_array)


def is_captured_number(value: Any) -> bool:
    """Return whether a value is a number that can become an input."""
    return type(value) in NUMBERS and (type(value) is not int or is_int64(value))


def has_numbers(value: Any) -> bool:
    """Return whether a value is such a number, or a tuple of few elements with one, as ``self.state = (x, n)`` puts."""
    return is_captured_number(value) or is_tuple_with_numbers(value)


def is_tuple_of_numbers(value: Any) -> bool:
    """Return whether a value is a tuple of such numbers only, as ``self.state = (x, v)`` puts one."""
    return type(value) is tuple and 0 < len(value) <= _MOST_NUMBERS and all(map(is_captured_number, value))


def is_tuple_with_numbers(value: Any) -> bool:
    """Return whether a value is a tuple, or a named tuple, that has such numbers, itself or in tuples within."""
    if not is_plain_tuple(value) or len(value) > _MOST_NUMBERS:
        return False
    return any(map(is_captured_number, value)) or any(map(is_tuple_with_numbers, value))


def is_plain_tuple(value: Any) -> bool:
    """Return whether a value is a tuple, or a named tuple, that nothing but its elements tells from another one."""
    return isinstance(value, tuple) and not hasattr(value, "__dict__")


_MOST_NUMBERS = 64


def places_of_arrays(snapshot: Snapshot) -> dict[int, list[CapturedPlace]]:
    """Return the places that hold ndarrays, by the ids of these."""
    found: dict[int, list[CapturedPlace]] = {}
    for observed in snapshot.objects.values():
        for slot in observed.slots.values():
            place = captured_place(observed, slot) if type(slot.value) is np.ndarray else None
            if place is not None:
                found.setdefault(id(slot.value), []).append(place)
        elements = enumerate(observed.held or ()) if isinstance(observed.value, tuple) else items(observed)
        for key, part in elements:
            if type(part) is np.ndarray:
                place = CapturedPlace(type(observed.value), ItemSlot, key, True)
                found.setdefault(id(part), []).append(place)
    return found


def places_of_numbers(observed: Observed) -> dict[Any, CapturedPlace]:
    """Return the places of the numbers in a container of few elements that was read as a whole, by their keys."""
    held = [*items(observed)]
    kind = type(observed.value)
    if kind not in (*MAPPINGS, *SEQUENCES) or len(held) > _MOST_NUMBERS:
        return {}
    return {
        key: CapturedPlace(kind, ItemSlot, key)
        for key, part in held
        if has_numbers(part) and is_hashed_by_python(key)
    }


def changed_places(observed: Observed) -> list[CapturedPlace]:
    """Return those of these places that hold other numbers now; all of them where elements have moved."""
    value, places = observed.value, places_of_numbers(observed)
    if type(value) in SEQUENCES and len(value) != len(observed.held or ()):
        return []
    now = dict(value if type(value) in MAPPINGS else enumerate(value)) if places else {}
    before = dict(items(observed))
    changed = [
        place
        for key, place in places.items()
        if key in now
        and now[key] is not before[key]
        and (isinstance(before[key], tuple) or differs(now[key], before[key]))
    ]
    were = {*map(id, before.values())}
    have_moved = type(value) in SEQUENCES and any(id(now[place.name]) in were for place in changed)
    return [*places.values()] if have_moved else changed


def items(observed: Observed) -> Iterable[tuple[Any, Any]]:
    """Return the keys and elements of a list, a deque or a dict that was read as a whole."""
    held = observed.held or ()
    if type(observed.value) in MAPPINGS:
        return zip(held[::2], held[1::2], strict=True)
    return enumerate(held) if type(observed.value) in SEQUENCES else ()


def note_again(snapshot: Snapshot, exchanged: Mapping[int, Any]) -> None:
    """Have all notes of a snapshot name what places held before something else was put there.

    Args:
        snapshot: the notes, some of which were taken since.
        exchanged: what was there, by the ids of what was put there.
    """
    for observed in snapshot.objects.values() if exchanged else ():
        observed.held = _with_originals(observed.held, exchanged)
        for slot in observed.slots.values():
            slot.value = exchanged.get(id(slot.value), slot.value)
            if type(slot.value) is tuple:  # a dict is the user's own
                slot.value = _with_originals(slot.value, exchanged)
        if id(observed.value) in snapshot.contents:
            contents = snapshot.contents[id(observed.value)]
            snapshot.contents[id(observed.value)] = _with_originals(contents, exchanged)


def _with_originals(noted: Any, exchanged: Mapping[int, Any]) -> Any:
    """Return a tuple or a dict that was noted with the parts that were there before."""
    if type(noted) is tuple and any(id(part) in exchanged for part in noted):
        return tuple([exchanged.get(id(part), part) for part in noted])
    if type(noted) is dict and any(id(part) in exchanged for part in noted.values()):
        return {key: exchanged.get(id(part), part) for key, part in noted.items()}
    return noted


def _owner(observed: Observed, kind: type[Slot]) -> Any:
    """Return what tells the objects apart whose slots of one name are one place; None where nothing is exchanged."""
    owner = observed.value
    if kind is GlobalSlot:
        return owner.get("__name__", "")
    if kind is ClosureSlot:
        return getattr(owner, "__code__", None)
    if kind is LengthSlot:
        return type(owner)
    if kind is ItemSlot:
        return (
            type(owner)
            if type(owner) in MAPPINGS or type(owner) in SEQUENCES or isinstance(owner, tuple)
            else None
        )
    if kind is not AttributeSlot:
        return None
    if isinstance(owner, types.ModuleType):
        return owner.__name__
    if type(owner) is types.SimpleNamespace:
        return type(owner)
    return owner if isinstance(owner, type) else type(owner) if is_user_class(type(owner)) else None
