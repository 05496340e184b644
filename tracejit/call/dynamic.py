# SPDX-License-Identifier: BSD-3-Clause
"""Number arguments that vary: one that takes a third value becomes an input of the trace.

Keys that differ in numbers only are a family. A number that has taken two values selects a trace by its value; with
the third one the key says "a float that varies" in its place. NumPy's numbers vary too, each type by itself, because
their promotion follows different rules. A number that varies in one family does so at once in another that differs in
sizes of arrays only, such as that of the last mini-batch. If a recording then needs the value as a Python number (an
index, float(n)), the number selects a trace by its value from then on; where it is only kept, it is tried again each
time that its values have doubled. Complex numbers always do; their values are counted only to tell the user of
many.
"""

from collections.abc import Container, Mapping
from typing import Any

import numpy as np

from tracejit.array import dlarray
from tracejit.aval import NUMBERS, is_int64
from tracejit.call.signature import ArrayPart, Call, Key, NumberPart, ValuePart
from tracejit.ir import Where
from tracejit.record.number import OUTLIVES
from tracejit.util.named_tuples import NamedTuple

VALUES = 3  # that make a number vary
_CONSTANTS = frozenset({complex, np.complex64, np.complex128})  # numbers that select a trace by their values
_COUNTED = NUMBERS | _CONSTANTS
_MOST_FAMILIES = 1000


class Needed(NamedTuple):
    """The code that needs an argument as a Python number."""

    what: str
    where: Where


class _Family:
    """Keys that differ in numbers only; numbers go by the number of their leaf.

    Args:
        varying_somewhere: numbers that vary in a family like this one, for arrays of some size.
    """

    def __init__(self, varying_somewhere: set[int]) -> None:
        self.varying_somewhere = varying_somewhere
        self.values: dict[int, set[Any]] = {}
        self.varying: set[int] = set()
        self.needed: dict[int, Needed] = {}
        self.tried_at: dict[int, int] = {}  # numbers of values of those that were needed, and are tried again
        self.constants: set[int] = set()
        self.hits_before: int | None = None  # hits of the function when the first number was needed

    def is_tried_again(self, place: int) -> bool:
        """Return whether a number that was needed may vary once more.

        What keeps it may be a window that was not full yet (``self.w.append(v)`` of a short deque).
        """
        count = len(self.values[place])
        if self.needed[place].what != OUTLIVES or count < 2 * self.tried_at[place]:
            return False
        self.tried_at[place] = count
        del self.needed[place]
        return True


class DynamicNumbers:
    """The families of a function's keys, and which of their numbers vary."""

    def __init__(self) -> None:
        self._families: dict[Key, _Family] = {}
        self._varying: dict[Key, set[int]] = {}  # of families that differ in sizes

    def clear(self) -> None:
        """Forget all values."""
        self._families.clear()
        self._varying.clear()

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
            family = self._new_family(family_key)
        for i, part in places.items():
            values = family.values.setdefault(i, set())
            values.add(part)
            if part.kind in _CONSTANTS:
                family.constants.add(i)
            elif is_known or (i in family.needed and not family.is_tried_again(i)):
                continue
            elif len(values) >= VALUES:
                family.varying.add(i)
                family.varying_somewhere.add(i)
            elif i in family.varying_somewhere:
                family.varying.add(i)
        if is_known or not family.varying:
            return call
        return _with_arrays(call, family.varying)

    def _new_family(self, key: Key) -> _Family:
        for known in (self._families, self._varying):
            if len(known) >= _MOST_FAMILIES:
                del known[next(iter(known))]
        varying = self._varying.setdefault(_of_any_size(key), set())
        family = self._families[key] = _Family(varying)
        return family

    def need(self, call: Call, needed: Mapping[int, tuple[str, Where]]) -> None:
        """Note that numbers of a call select a trace by their values from now on."""
        family = self._families.get(_family_key(call.key))
        if family is not None:
            for place, code in needed.items():
                family.varying.discard(place)
                family.varying_somewhere.discard(place)
                family.needed[place] = Needed(*code)
                family.tried_at.setdefault(place, len(family.values.get(place, ())))

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


def _of_any_size(family_key: Key) -> Key:
    """Return the key of a family with each array replaced by its labels, its number of axes and its dtype."""
    parts = [
        ArrayPart((0,) * len(part.shape), part.format, part.dtype, None) if type(part) is ArrayPart else part
        for part in family_key.parts
    ]
    return family_key._replace(parts=tuple(parts))


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
