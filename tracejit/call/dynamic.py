# SPDX-License-Identifier: BSD-3-Clause
"""Number arguments that vary: one that takes a third value becomes an input of the trace.

Keys that differ in numbers only are a family. A number that has taken two values selects a trace by its value; with
the third one the key says "a float that varies" in its place. NumPy's numbers vary too, each type by itself, because
their promotion follows different rules. If a recording then needs the value as a Python number (an index, math.sqrt),
the number selects a trace by its value from then on. Complex numbers always do; their values are counted only to tell
the user of many.
"""

from collections.abc import Container, Mapping
from typing import Any

import numpy as np

from tracejit.array import dlarray
from tracejit.aval import NUMBERS
from tracejit.call.signature import Call, Key, NumberPart, ValuePart, is_int64
from tracejit.ir import Where
from tracejit.util.named_tuples import NamedTuple

_VALUES = 3  # that make a number vary
_CONSTANTS = frozenset({complex, np.complex64, np.complex128})  # numbers that select a trace by their values
_COUNTED = NUMBERS | _CONSTANTS
_MOST_FAMILIES = 1000


class Needed(NamedTuple):
    """The code that needs an argument as a Python number."""

    what: str
    where: Where


class _Family:
    """Keys that differ in numbers only; numbers go by the number of their leaf."""

    def __init__(self) -> None:
        self.values: dict[int, set[Any]] = {}
        self.varying: set[int] = set()
        self.needed: dict[int, Needed] = {}
        self.constants: set[int] = set()
        self.hits_before: int | None = None  # hits of the function when the first number was needed


class DynamicNumbers:
    """The families of a function's keys, and which of their numbers vary."""

    def __init__(self) -> None:
        self._families: dict[Key, _Family] = {}

    def clear(self) -> None:
        """Forget all values."""
        self._families.clear()

    def rekeyed(self, call: Call, entries: Container[Key]) -> Call:
        """Return a call in which the numbers that vary are arrays, unless its key is among `entries` already."""
        places = {
            i: part
            for i, part in enumerate(call.key.parts)
            if type(part) is ValuePart and part.kind in _COUNTED
        }
        if not places:
            return call
        is_known = call.key in entries
        family_key = _family_key(call.key)
        family = self._families.get(family_key)
        if family is None:
            if len(self._families) >= _MOST_FAMILIES:
                del self._families[next(iter(self._families))]
            family = self._families[family_key] = _Family()
        for i, part in places.items():
            values = family.values.setdefault(i, set())
            values.add(part)
            if part.kind in _CONSTANTS:
                family.constants.add(i)
            elif len(values) >= _VALUES and i not in family.needed and not is_known:
                family.varying.add(i)
        if is_known or not family.varying:
            return call
        return _with_arrays(call, family.varying)

    def need(self, call: Call, needed: Mapping[int, tuple[str, Where]]) -> None:
        """Note that numbers of a call select a trace by their values from now on."""
        family = self._families.get(_family_key(call.key))
        if family is not None:
            for place, code in needed.items():
                family.varying.discard(place)
                family.needed[place] = Needed(*code)

    def needed_in(self, key: Key) -> Mapping[int, Needed]:
        """Return the code that needs arguments of a key as Python numbers, by the number of the leaf."""
        family = self._families.get(_family_key(key))
        return {} if family is None else family.needed

    def churning(self, call: Call, most: int, hits: int) -> tuple[int, Needed | None] | None:
        """Return a number that retraces on nearly every value, and what needs it; nothing needs one that is complex.

        It selects a trace by its value, and has taken more than `most` values.
        """
        family = self._families.get(_family_key(call.key))
        if family is None or not (family.needed or family.constants):
            return None
        if family.hits_before is None:
            family.hits_before = hits
        for place in (*family.needed, *family.constants):
            count = len(family.values[place])
            if count > most and hits - family.hits_before < count:
                return place, family.needed.get(place)
        return None


def _family_key(key: Key) -> Key:
    """Return a key with each number replaced by its type."""
    parts = [
        NumberPart(part.kind) if type(part) is ValuePart and part.kind in _COUNTED else part
        for part in key.parts
    ]
    return key._replace(parts=tuple(parts))


def _with_arrays(call: Call, varying: set[int]) -> Call:
    parts: list[Any] = []
    arrays: list[dlarray] = []
    for i, (part, leaf) in enumerate(zip(call.key.parts, call.leaves, strict=True)):
        if i in varying and isinstance(part, ValuePart) and (part.kind is not int or is_int64(leaf)):
            parts.append(NumberPart(part.kind))
            arrays.append(dlarray._wrap(np.asarray(leaf), None, None))
            continue
        parts.append(part)
        if type(leaf) is dlarray:
            arrays.append(leaf)
    return call._replace(key=call.key._replace(parts=tuple(parts)), arrays=arrays)
