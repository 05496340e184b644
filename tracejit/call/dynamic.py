# SPDX-License-Identifier: BSD-3-Clause
"""Which number arguments vary: one that takes a third value becomes an input of the trace.

Keys that differ in numbers only are a family. A number that has taken two values selects a trace by its value; with
the third one the key says "a float that varies" in its place. If a recording then turns out to need the
number itself (an index, math.sqrt), it is needed, and selects by its value from then on.
"""

from collections.abc import Container, Mapping
from typing import Any, NamedTuple

import numpy as np

from tracejit.array import dlarray
from tracejit.call.signature import Call, Key, NumberPart, ValuePart
from tracejit.ir import Where

_VALUES = 3  # that make a number vary
_MOST_FAMILIES = 1000
_KINDS = (int, float)
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1  # of int64


class Needed(NamedTuple):
    """What needs a number itself."""

    what: str
    where: Where


class _Family:
    def __init__(self) -> None:
        self.values: dict[int, set[Any]] = {}  # by the number of the leaf
        self.varying: set[int] = set()
        self.needed: dict[int, Needed] = {}
        self.hits_before: int | None = None  # hits of the function when the first number was needed


class DynamicNumbers:
    """The families of a function's keys."""

    def __init__(self) -> None:
        self._families: dict[Key, _Family] = {}

    def clear(self) -> None:
        """Forget all values."""
        self._families.clear()

    def rekeyed(self, call: Call, entries: Container[Key]) -> Call:
        """Return a call whose numbers that vary are arrays, unless its key is among `entries` as it is."""
        places = [
            i for i, part in enumerate(call.key.parts) if type(part) is ValuePart and part.kind in _KINDS
        ]
        if not places:
            return call
        is_known = call.key in entries
        name = _name(call.key)
        family = self._families.get(name)
        if family is None:
            if len(self._families) >= _MOST_FAMILIES:
                del self._families[next(iter(self._families))]
            family = self._families[name] = _Family()
        for i in places:
            known = family.values.setdefault(i, set())
            known.add(call.key.parts[i])
            if len(known) >= _VALUES and i not in family.needed and not is_known:
                family.varying.add(i)
        if is_known or not family.varying:
            return call
        return _with_arrays(call, family.varying)

    def need(self, call: Call, needed: Mapping[int, tuple[str, Where]]) -> None:
        """Note that numbers of a call select a trace by their values."""
        family = self._families.get(_name(call.key))
        if family is not None:
            for place, found in needed.items():
                family.varying.discard(place)
                family.needed[place] = Needed(*found)

    def needed_in(self, key: Key) -> Mapping[int, Needed]:
        """Return what needs numbers of a key themselves, by the number of the leaf."""
        family = self._families.get(_name(key))
        return {} if family is None else family.needed

    def churning(self, call: Call, most: int, hits: int) -> tuple[int, Needed] | None:
        """Return a number that is needed and has taken more than `most` values, of which few were ever replayed."""
        family = self._families.get(_name(call.key))
        if family is None or not family.needed:
            return None
        if family.hits_before is None:
            family.hits_before = hits
        for place, found in family.needed.items():
            count = len(family.values[place])
            if count > most and hits - family.hits_before < count:
                return place, found
        return None


def _name(key: Key) -> Key:
    parts = [
        NumberPart(part.kind) if type(part) is ValuePart and part.kind in _KINDS else part
        for part in key.parts
    ]
    return key._replace(parts=tuple(parts))


def _with_arrays(call: Call, varying: set[int]) -> Call:
    parts: list[Any] = []
    arrays: list[dlarray] = []
    for i, (part, leaf) in enumerate(zip(call.key.parts, call.leaves, strict=True)):
        if i in varying and isinstance(part, ValuePart) and (part.kind is float or _LEAST <= leaf <= _MOST):
            parts.append(NumberPart(part.kind))
            arrays.append(dlarray._wrap(np.asarray(leaf), None, None))
            continue
        parts.append(part)
        if type(leaf) is dlarray:
            arrays.append(leaf)
    return call._replace(key=call.key._replace(parts=tuple(parts)), arrays=arrays)
