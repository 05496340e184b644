# SPDX-License-Identifier: BSD-3-Clause
"""The walk from the roots of a snapshot to everything that a recording read, as guards and their lines."""

import enum
import types
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import count
from operator import is_
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tracejit.array import dlarray
from tracejit.call import signature
from tracejit.capture.array_guards import ArrayGuards, distance, memory_of, seen_by_numpy
from tracejit.capture.callables import ObservedWrapper
from tracejit.capture.captured_numbers import NumbersOfTuple
from tracejit.capture.captured_places import captured_place, changed_places, places_of_numbers
from tracejit.capture.generators import state_of
from tracejit.capture.guards import GuardList, Site
from tracejit.capture.library import has_state_still
from tracejit.capture.located import compare_located
from tracejit.capture.named import ObservedMember
from tracejit.capture.objects import ForeignArray, ObservedArray
from tracejit.capture.observed import Observed, Slot
from tracejit.capture.slots import DEFAULTS, ItemSlot
from tracejit.capture.snapshot import Snapshot
from tracejit.capture.values import (
    MAPPINGS,
    MISSING,
    SETS,
    differs,
    elements,
    held_by,
    is_atom,
    is_hashed_by_python,
    plain,
    registered,
    same_elements,
    special_names,
    static,
)
from tracejit.record import patches, recorder
from tracejit.record.state import CapturedPlace
from tracejit.util import text

_NO_MEMORY = frozenset({types.CodeType, types.BuiltinFunctionType, type, np.ufunc})
_SHOWN = 60  # characters of a value


class GuardWriter:
    """The walk from the roots of a snapshot along the slots that were read, which adds a guard for each.

    Long because each form of what a slot can hold has a method, of some lines.

    Args:
        snapshot: what was observed.
        guards: to add to.
        arrays: guards of arrays.
        located: objects that a replay stores to, and others that it stores.
        acts: whether the function has effects that a replay does not repeat.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        guards: GuardList,
        arrays: ArrayGuards,
        located: Sequence[Any] = (),
        acts: bool = False,
    ) -> None:
        self._snapshot = snapshot
        self._guards = guards
        self._arrays = arrays
        self._located = located
        self._acts = acts
        self._variables = (f"v{i}" for i in count())
        self._reached: dict[
            int, tuple[str, str]
        ] = {}  # by id of an object: its variable and its name in words
        self._tuples: dict[int, Sequence[CapturedPlace]] = {}  # by id of a tuple: the places that lead to it
        self._queue: deque[Observed] = deque()
        self._late: deque[tuple[Observed, Slot]] = deque()
        self._walked: set[int] = set()  # ids of what is observed
        self._written: set[int] = set()  # ids of slots

    def write(self) -> None:
        """Walk from the roots along the slots that were read."""
        for ident, name in self._snapshot.roots.items():
            observed = self._snapshot.objects[ident]
            self._reached[ident] = (self._guards.constant(observed.value), name)
            self._queue.append(observed)
        self._walk()
        while self._late:
            self._read_slot(*self._late.popleft())
            self._walk()
        for owner, slot, kind in self._snapshot.inherited:
            if slot.is_read and id(owner.value) not in self._reached:  # an instance that the call made
                self._snapshot.read(kind, type(slot), slot.name)
                self._queue.append(kind)
                self._walk()
        self._identities()
        compare_located(self._located, self._guards, self._snapshot, self._reached)
        self._arrays.fresh(self._reached)
        self._arrays.related()
        self._arrays.loose()

    def variable_of(self, value: Any) -> str | None:
        """Return the variable of an object in the generated functions, or None if they do not reach it."""
        return self._reached.get(id(value), (None, ""))[0]

    def _walk(self) -> None:
        while self._queue:
            self._slots(self._queue.popleft())

    def _identities(self) -> None:
        """Compare that objects are still apart which ``is`` told from each other."""
        for first, second, where in self._snapshot.apart:
            if id(first) in self._reached and id(second) in self._reached:
                (one, name), (other, of_other) = self._reached[id(first)], self._reached[id(second)]
                site = Site("", "", name or "the function", where)
                self._guards.add(site, f"another object than {of_other}", f"{one} is {other}")

    def _slots(self, observed: Observed) -> None:
        owner, name = self._reached[id(observed.value)]
        is_again = id(observed) in self._walked
        self._walked.add(id(observed))
        for slot in observed.slots.values():
            if slot.is_read and id(slot) not in self._written:
                self._written.add(id(slot))
                if slot.is_late:
                    self._late.append((observed, slot))
                else:
                    self._read_slot(observed, slot)
            elif slot.is_counted:
                self._counted(owner, slot.path(name), slot)
        if is_again:
            return
        if isinstance(observed, ObservedWrapper) and observed.memory is not None:
            self._remembered(observed, name)
        if observed.held is not None:
            if not same_elements(observed.held, tuple(elements(observed.value))):
                self._guards.note_change(name, observed.where)
                self._guards.changed_places += changed_places(observed)
            self._contents(observed, observed.held, Site(owner, "", name, observed.where))

    def _read_slot(self, observed: Observed, slot: Slot) -> None:
        owner, name = self._reached[id(observed.value)]
        path = slot.path(name)
        place = captured_place(observed, slot)
        if slot.has_changed(observed) and not _is_traced(slot.look(observed, slot.name)):
            self._guards.note_change(path, slot.where, slot.value)
            if place is not None:
                self._guards.changed_places.append(place)
            replaced = self._snapshot.objects.get(id(slot.value))
            if replaced is not None:  # a list in the place of another one
                self._guards.changed_places += places_of_numbers(replaced).values()
        if slot.number is None:
            self._slot(owner, path, slot, place, self._tuples.get(id(observed.value), ()))
        elif isinstance(slot.number, NumbersOfTuple) and slot.number.entries is None:
            self._tuple(owner, path, slot)
        else:
            self._number(owner, path, slot)

    def _number(self, owner: str, name: str, slot: Slot) -> None:
        """Fetch a number that varies, or a tuple of them (Note [captured numbers]), of the type that it had."""
        variable = next(self._variables)
        binding = f"{variable} = {slot.expression(owner, self._guards.literal)}"
        if isinstance(slot.number, NumbersOfTuple):
            assert slot.number.entries is not None
            kinds = tuple(map(type, slot.value))
            condition = f"type({variable}) is not tuple or (*map(type, {variable}),) != {self._guards.constant(kinds)}"
            places = [(f"{variable}[{place}]", f"{name}[{place}]") for place in range(len(kinds))]
            entries, shown = slot.number.entries, f"a tuple of {text.count(len(kinds), 'number')}"
        else:
            kinds = (type(slot.value),)
            condition = f"type({variable}) is not {self._guards.constant(kinds[0])}"
            places, entries, shown = [(variable, name)], [slot.number], f"a number ({kinds[0].__name__})"
        for kind, (part, _) in zip(kinds, places, strict=True):
            if kind is int:
                condition += f" or not {-(1 << 63)} <= {part} < {1 << 63}"
        self._guards.add(Site(variable, binding, name, slot.where), shown, condition)
        for entry, (part, path) in zip(entries, places, strict=True):
            self._arrays.inputs.fetch(entry, path, f"number({part})")

    def _tuple(self, owner: str, name: str, slot: Slot) -> None:
        """Compare that a slot holds a tuple of the class and length that it held, whose slots have its numbers."""
        value, variable = slot.value, next(self._variables)
        site = Site(
            variable, f"{variable} = {slot.expression(owner, self._guards.literal)}", name, slot.where
        )
        if id(value) in self._reached:  # another path led to it
            self._value(site, value)
            return
        self._reached[id(value)] = variable, name
        kind = self._guards.constant(type(value))
        condition = f"type({variable}) is not {kind} or len({variable}) != {len(value)}"
        self._guards.add(site, f"a {type(value).__name__} of {text.count(len(value), 'element')}", condition)
        self._queue.append(self._snapshot.observe(value))

    def _counted(self, owner: str, name: str, slot: Slot) -> None:
        """Compare that a slot to which a replay adds a number still holds one of the same type."""
        kind = type(slot.value).__name__
        variable = next(self._variables)
        binding = f"{variable} = {slot.expression(owner, self._guards.literal)}"
        site = Site(variable, binding, name, slot.where)
        self._guards.add(site, f"a number ({kind})", f"type({variable}) is not {kind}")

    def _slot(
        self,
        owner: str,
        name: str,
        slot: Slot,
        place: CapturedPlace | None,
        of_tuple: Sequence[CapturedPlace],
    ) -> None:
        """Compare what a slot holds; `place` is its own, `of_tuple` are those of the tuple that it is one of."""
        absence = slot.absence(owner, self._guards.literal)
        if absence is not None:
            self._guards.add(Site("", "", name, slot.where), *absence)
        else:
            variable = next(self._variables)
            binding = f"{variable} = {slot.expression(owner, self._guards.literal)}"
            places = of_tuple if place is None else (place,)
            self._value(Site(variable, binding, name, slot.where), slot.value, places)

    def _value(self, site: Site, value: Any, places: Sequence[CapturedPlace] = ()) -> None:
        """Compare what a slot holds with what it held; `places` are those of a number."""
        variable = site.variable
        if is_atom(value):
            expected = self._guards.constant(value)
            condition = f"{variable} is not {expected}"
            # None, a truth value and a member of an enumeration are one object each.
            if value is not None and not isinstance(value, (bool, enum.Enum)):
                condition += f" and differs({variable}, {expected})"
            self._guards.add(site, _shown(value), condition, is_told=True, places=places)
            self._members_of_enumerations((value,), site.name)
            return
        if (type(value) is tuple or type(value) is frozenset) and all(is_atom(part) for part in value):
            expected = self._guards.constant(value)
            same = f"type({variable}) is {type(value).__name__} and same({variable}, {expected})"
            self._members_of_enumerations(value, site.name)
            condition = f"{variable} is not {expected} and not ({same})"
            is_told = not site.name.startswith(DEFAULTS)
            self._guards.add(site, _shown(value), condition, is_told=is_told, places=places)
            return
        reached = None if patches.is_patched(value) else self._reached.get(id(value))
        if reached is not None:
            first, name = reached
            is_root = id(value) in self._snapshot.roots
            shown = name if is_root else f"the same as {name or 'the function'}"
            is_told = not is_root and bool(name and site.name)  # the function of a method has no name
            self._guards.add(site, shown, f"{variable} is not {first}", is_told=is_told)
            return
        self._reached[id(value)] = (variable, site.name)
        if isinstance(value, tuple):
            self._tuples[id(value)] = places
        observed = self._snapshot.observe(value)
        if isinstance(observed, ObservedArray):
            self._arrays.array(site, observed)
        elif isinstance(observed, ForeignArray):
            self._arrays.foreign(site, value)
        else:
            self._object(site, observed)
            self._queue.append(observed)

    def _object(self, site: Site, observed: Observed) -> None:
        value = observed.value
        if observed.is_fixed and not self._snapshot.generators.draws_again(value):
            shown, is_told = _shown(value), observed.is_told
            if type(value) is types.CodeType:
                shown, is_told = f"the code at {value.co_filename}:{value.co_firstlineno}", False
            expected = self._guards.constant(value)
            condition = f"{site.variable} is not {expected}"
            if patches.is_patched(value):  # a thread that records replaces the name while this one replays
                condition += f" and original({site.variable}) is not {expected}"
            self._guards.add(site, shown, condition, is_told=is_told)
            if observed.is_whole and type(value) is types.GeneratorType:
                self._guards.note_change(site.name, site.where)  # by what is taken out of it
        else:
            condition = f"type({site.variable}) is not {self._guards.constant(type(value))}"
            self._guards.add(site, f"a {type(value).__name__}", condition)
        if observed.is_loose and observed.may_share_memory and type(value) not in _NO_MEMORY:
            self._arrays.buffer(site, value)

    def _remembered(self, observed: ObservedWrapper, name: str) -> None:
        """Compare what a function with a cache remembers, and what is read of it."""
        if (self._located or self._acts) and observed.has_run:  # without it a call may do less
            self._guards.note_change(f"what {name} remembers", observed.where)
        remembered = observed.remembered() if observed.memory else []
        keys, entries, results = zip(*remembered, strict=True) if remembered else ((), (), ())
        arguments = ", ".join(map(self._guards.constant, (observed, observed.memory, keys, entries, results)))
        site = Site("", "", f"what {name} remembers", observed.where)
        self._guards.add(
            site, text.count(len(results), "result"), f"not remembers({arguments})", is_told=True
        )
        for result in results:
            if not is_atom(result):
                variable = next(self._variables)
                self._value(
                    site._replace(variable=variable, before=f"{variable} = {self._guards.constant(result)}"),
                    result,
                )

    def _contents(self, observed: Observed, held: tuple[Any, ...], site: Site) -> None:
        """Compare what a container holds."""
        value, owner = observed.value, site.variable
        numbers = {
            slot.name
            for slot in observed.slots.values()
            if type(slot) is ItemSlot and slot.number is not None
        }
        if not numbers and all(is_atom(part) for part in held):
            self._members_of_enumerations(held, site.name)
            condition = f"not same({owner}, {self._guards.constant(held)})"
            places = places_of_numbers(observed)
            self._guards.add(site, _shown(value), condition, is_told=True, places=[*places.values()])
            return
        if type(value) in SETS:
            self._members(site, held, owner)
            return
        parts, names = held, [f"{site.name}[{i}]" for i in range(len(held))]
        keys: Sequence[Any] = range(len(held))
        condition = f"len({owner}) != {len(held)}"
        source = owner
        if type(value) is np.ndarray:
            condition = f"{owner}.shape != {value.shape} or {owner}.dtype != object"
            source = f"{owner}.flat"
        if type(value) in MAPPINGS:
            keys, parts = held[::2], held[1::2]
            names = [f"{site.name}[{text.shown(key)}]" for key in keys]
            condition = f"[*{owner}] != {self._guards.constant([*keys])}"
            if any(type(key) is not str for key in keys):
                self._members(site, keys, owner)
            source = f"{owner}.values()"
        variables = [next(self._variables) for _ in parts]
        self._guards.add(
            site, f"{len(parts)} elements", condition, after=f"{', '.join(variables)}, = {source}"
        )
        known = places_of_numbers(observed)
        for variable, part, name, key in zip(variables, parts, names, keys, strict=True):
            hashed = key if is_hashed_by_python(key) else MISSING
            if hashed not in numbers:  # those that vary have guards of their own
                found = [known[hashed]] if hashed in known else self._tuples.get(id(value), ())
                self._value(Site(variable, "", name, site.where), part, found)

    def _members_of_enumerations(self, values: Iterable[Any], name: str) -> None:
        """Go on to the attributes of members of enumerations, which are atoms."""
        for value in values:
            member = self._snapshot.objects.get(id(value))
            if isinstance(member, ObservedMember) and id(value) not in self._reached:
                self._reached[id(value)] = (self._guards.constant(value), name)
                self._queue.append(member)

    def _members(self, site: Site, members: tuple[Any, ...], owner: str) -> None:
        """Compare the elements of a set, or the keys of a dict: atoms by value, others by identity."""
        condition = f"not same_members({owner}, {self._guards.constant(members)})"
        self._guards.add(site._replace(before=""), f"{len(members)} elements", condition)
        for member in members:
            if not is_atom(member) and id(member) not in self._reached:
                self._reached[id(member)] = (self._guards.constant(member), f"an element of {site.name}")
                self._queue.append(self._snapshot.observe(member))


def _shown(value: Any) -> str:
    if getattr(type(value), "evaluates_itself", False):
        return f"accelerated {getattr(value, '__name__', 'function')}"
    shown = " ".join(text.shown(value).split())
    return shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 3]}..."


def _is_traced(value: Any) -> bool:
    """Return whether a value is an array of a trace, which cannot be read once the trace has ended."""
    return type(value) is dlarray and value._value is not None


def _same_atoms(value: Any, held: Any) -> bool:
    return same_elements(tuple(held), tuple(elements(value)))


def _same_members(value: Any, members: tuple[Any, ...]) -> bool:
    return same_elements(members, tuple(value))


def _remembers(
    cached: ObservedWrapper, memory: dict[Any, Any], keys: Sequence[Any], entries: Sequence[Any], results: Sequence[Any]
) -> bool:  # fmt: skip
    """Return whether a function with a cache still remembers the results of some calls."""
    if not all(map(is_, map(memory.get, keys), entries)):
        return False
    most = cached.value.cache_parameters()["maxsize"]
    if most is None or len(memory) < most:
        return True
    # A full cache uses the links of its list again.
    now = {id(key): result for key, _, result in cached.remembered()}
    return all(now.get(id(key), MISSING) is result for key, result in zip(keys, results, strict=True))


def _view(
    memory: Any, shape: tuple[int, ...], dtype: np.dtype, offset: int, strides: tuple[int, ...]
) -> np.ndarray:
    """Return a view of an array or of other memory; `offset` counts from the lowest of its bytes."""
    if isinstance(memory, np.ndarray) and not memory.flags.c_contiguous:
        memory = _between_ends(memory)
    return np.ndarray(shape, dtype, memory, offset, strides)


def _between_ends(array: np.ndarray) -> np.ndarray:
    """Return all bytes between the ends of an array, with those of the gaps between its elements."""
    low = array[tuple([slice(None, None, -1 if stride < 0 else 1) for stride in array.strides])]
    last = sum(stride * (size - 1) for stride, size in zip(low.strides, low.shape, strict=True))
    first = as_strided(low, (1,), (low.itemsize,)).view(np.uint8)
    return as_strided(first, (last + low.itemsize,), (1,))


def _is_set(function: Any, number: int) -> bool:
    try:
        function.__closure__[number].cell_contents  # noqa: B018 - raises where nothing is in it
    except ValueError:
        return False
    return True


NAMES: dict[str, Any] = {
    "dlarray": dlarray, "ndarray": np.ndarray, "differs": differs, "same": _same_atoms, "same_members": _same_members,
    "view": _view,
    "part_of": signature.array_part, "packed": signature.packed, "is_packed": signature.is_packed,
    "is_set": _is_set, "seen": seen_by_numpy,
    "check_open": recorder.check_open, "is_open": recorder.is_open, "memory": memory_of,
    "static": static, "held_by": held_by, "state_of": state_of, "has_state_still": has_state_still,
    "plain": plain, "remembers": _remembers, "registered": registered, "special_names": special_names,
    "original": patches.original, "apart": distance, "number": np.asarray,
}  # fmt: skip
"""The names that the tests of guards refer to, besides constants."""
