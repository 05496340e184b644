# SPDX-License-Identifier: BSD-3-Clause
"""The places of ndarrays that vary, which hold an array of the recording until the function has ended.

Note [exchanged arrays]
``self.q[i] = value`` and ``self.w -= step`` write into an ndarray, and plain NumPy reads it before and after. What it
reads would be a constant, which a replay does not compute again. Therefore, before the code of a function runs that
writes an ndarray, the places that lead to it (attributes, items, globals) get a dlarray around its memory: all that the
code does with it is recorded then. So do the places of which earlier recordings have found that what is there varies
(``for w in self.parts: w -= step``, a table that is set between calls), for the code does not say so. When the function
has ended they hold the ndarray again.

This is done only where nothing can have the ndarray itself: no code that ran before has looked at its places, it lies
nowhere else, and the code itself does with it what dlarrays do. It is not passed to functions that are not watched,
which may be in C: for what varies, a recording looks at all calls before the places are exchanged in the next one.
Tuples cannot be changed, so others with these arrays take their places. An ndarray that is a part of another one, which
the function reads too, becomes a part of its array. Other ndarrays that are written stay what they are
(record/ndarrays.py).
"""

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tracejit.array import dlarray
from tracejit.aval import SUPPORTED_DTYPES
from tracejit.capture.captured_places import is_plain_tuple, items, note_again, places_of_arrays
from tracejit.capture.objects import ObservedArray
from tracejit.capture.observed import Observed, Slot
from tracejit.capture.places import look, put
from tracejit.capture.slots import AttributeSlot, ClosureSlot, GlobalSlot, ItemSlot
from tracejit.capture.snapshot import Snapshot
from tracejit.capture.takers import arrays_in, takes_dlarrays
from tracejit.capture.values import MAPPINGS, MISSING, SEQUENCES, is_container, values_in
from tracejit.record import made_arrays, ndarrays, references
from tracejit.record.monitor import is_user_class
from tracejit.record.state import NO_EXCHANGE, CapturedPlace, Exchange
from tracejit.util.named_tuples import NamedTuple

_KINDS = (AttributeSlot, ClosureSlot, GlobalSlot)
_WITH_ITEMS = (*SEQUENCES, *MAPPINGS)
_WRITING = frozenset({"put", "flat"})  # attributes by which traced values can be written


class Exchanged(NamedTuple):
    """A place that holds something else for the time of a recording.

    owner    the object that has it
    kind     of the slot
    name     of the slot
    before   what the place held
    through  what it holds
    """

    owner: Any
    kind: Any
    name: Any
    before: Any
    through: Any

    def put(self) -> None:
        """Put there what it is to hold."""
        put(self.owner, self.kind, self.name, self.through)

    def put_back(self, has_moved: bool = True) -> bool:
        """Put back what was there, unless the function has put something else there; return whether it was put back.

        Args:
            has_moved: whether elements of a list or a deque may have moved; one that has is put back at its new place.
        """
        name = self.name if type(self.owner) not in SEQUENCES else self._place_in_sequence(has_moved)
        is_there = name is not None and look(self.owner, self.kind, name) is self.through
        if is_there:
            put(self.owner, self.kind, name, self.before)
        return is_there

    def _place_in_sequence(self, has_moved: bool) -> int | None:
        """Return the place of an element of a list or a deque, which may have moved."""
        elements: Sequence[Any] = self.owner
        if 0 <= self.name < len(elements) and elements[self.name] is self.through:
            return self.name  # type: ignore[no-any-return]
        if not has_moved:
            return None
        return next((place for place, element in enumerate(elements) if element is self.through), None)


class Exchanges:
    """The exchanged arrays of a recording.

    Args:
        snapshot: what was observed.
        exchange: says which ndarrays are exchanged besides those that are written.
        tuples: what places hold instead of tuples whose numbers vary, by the ids of these.

    Attributes:
        given: the places of ndarrays at places that are tried and that functions got which may take no dlarray.
    """

    def __init__(self, snapshot: Snapshot, exchange: Exchange, tuples: Mapping[int, Any]) -> None:
        self._snapshot = snapshot
        self._wanted = exchange
        self._arrays: list[tuple[ObservedArray, Any]] = []
        self._places: list[Exchanged] = []
        self._through: dict[int, Any] = {}  # by the id of what it stands for
        self._tuples: dict[
            int, tuple[Any, Any]
        ] = {}  # those among them, by their ids, and what they stand for
        self._with_numbers = tuples
        self._tried: list[np.ndarray] = []
        self._slots = 0  # that were met
        self.given: set[CapturedPlace] = set()

    @property
    def has_places(self) -> bool:
        """True if a place holds an array of the recording."""
        return bool(self._places)

    def started(self, new: Sequence[Observed]) -> None:
        """Exchange what the code of a function writes that begins to run, and what varies.

        Args:
            new: what its paths lead to, and nobody has looked at before.
        """
        if not self._wanted.of_arrays:
            return
        if any(map(references.asks, self._snapshot.ran)):
            self._stop()
            return
        arrays = [observed for observed in new if isinstance(observed, ObservedArray)]
        tried, wanted = self._wanted.tried, self._wanted.places
        places = places_of_arrays(self._snapshot) if arrays and (tried or wanted) else {}
        entered = []
        for observed in arrays:
            at = places.get(id(observed.value), ())
            if any(place in tried for place in at):
                self._tried.append(observed.value)
            elif _is_possible(observed) and (_is_written(observed) or any(place in wanted for place in at)):
                through = None if made_arrays.is_made(observed.value) else ndarrays.watched(observed.value)
                if through is not None:
                    observed.is_exchanged = True
                    self._arrays.append((observed, through))
                    entered.append(observed)
        slots = sum([len(observed.slots) for observed in self._snapshot.objects.values()])
        if self._arrays and (new or slots != self._slots):
            self._exchange()
        self._slots = slots
        left = self._left() if entered else ()
        for observed in entered:
            observed.is_exchanged = observed.is_exchanged and id(observed.value) not in left

    def _stop(self) -> None:
        """Put all arrays back, and exchange none any more."""
        self.given.update(self._wanted.tried)
        self._wanted = NO_EXCHANGE
        for array, _ in self._arrays:
            array.is_exchanged = False
        self.end()

    def called(self, function: Any, arguments: Sequence[Any] | None) -> None:
        """Note a call before it happens, which may hand on an ndarray that is to be exchanged."""
        if self._tried and arguments is not None and takes_dlarrays(function, arguments):
            return
        parts = None if arguments is None else arrays_in(arguments)
        given = [
            array
            for array in self._tried
            if parts is None or any(np.may_share_memory(array, part) for part in parts)
        ]
        places = places_of_arrays(self._snapshot) if given else {}
        self.given.update(place for array in given for place in places.get(id(array), ()))

    def _exchange(self) -> None:
        """Put the arrays in all places of their ndarrays, unless these are somewhere else, too."""
        objects = [*self._snapshot.objects.values()]
        elsewhere = {id(part) for observed in objects for part in _out_of_reach(observed)}
        for array, through in self._arrays:
            array.is_exchanged = array.is_exchanged and id(array.value) not in elsewhere
            if array.is_exchanged:
                self._through[id(array.value)] = through
        for owner, kind, name, value in _places(objects):
            self._put(owner, kind, name, value)

    def _left(self) -> set[int]:
        """Return the ids of ndarrays that a place holds itself, although an array stands for them."""
        places = [
            place for place in _places(self._snapshot.objects.values()) if id(place[3]) in self._through
        ]
        held = [(id(value), look(owner, kind, name)) for owner, kind, name, value in places]
        return {ident for ident, part in held if part is not self._through[ident]}

    def _put(self, owner: Any, kind: Any, name: Any, value: Any) -> None:
        """Put what stands for a value in its place, unless the function has put something else there."""
        value = self._with_numbers.get(id(value), value)
        through = self._stand_in(value)
        if through is value:
            return
        holds = look(owner, kind, name)
        _, stands_for = self._tuples.get(id(holds), (None, None))
        if holds is value or (holds is not through and stands_for is value):
            place = Exchanged(owner, kind, name, value, through)
            place.put()
            self._places.append(place)

    def _stand_in(self, value: Any) -> Any:
        """Return what stands for an ndarray, or for a tuple with such arrays; other values for themselves."""
        if not is_plain_tuple(value):
            return self._through.get(id(value), value) if type(value) is np.ndarray else value
        parts = [self._stand_in(part) for part in value]
        known = self._through.get(id(value), value)
        if all(map(operator.is_, known, parts)):
            return known
        through = self._through[id(value)] = tuple.__new__(type(value), parts)
        self._tuples[id(through)] = through, value
        return through

    def end(self) -> None:
        """Put all arrays back, and have the notes name them."""
        exchanged = {id(place.through): place.before for place in self._places}
        while self._places:
            self._places.pop().put_back()
        note_again(self._snapshot, exchanged)


def _places(objects: Iterable[Observed]) -> Iterator[tuple[Any, Any, Any, Any]]:
    """Return the owners, the kinds and the names of places where values can be exchanged, and the values."""
    for observed in objects:
        owner = observed.value
        for slot in [*observed.slots.values()]:
            if _is_exchangeable(observed, type(slot)) and not _is_gone(owner, slot):
                yield holder_of(owner, slot), type(slot), slot.name, slot.value
        for key, part in items(observed):
            if type(owner) in MAPPINGS or key < len(owner):
                yield owner, ItemSlot, key, part


def holder_of(owner: Any, slot: Slot) -> Any:
    """Return the object itself that holds what is in a slot: the owner, or the class that it has the attribute of."""
    if type(slot) is AttributeSlot and look(owner, AttributeSlot, slot.name) is MISSING:
        kind = owner if isinstance(owner, type) else type(owner)
        classes = kind.__mro__ if is_user_class(kind) else ()
        return next((base for base in classes if slot.name in vars(base)), owner)
    return owner


def _is_gone(owner: Any, slot: Slot) -> bool:
    """Return whether a list has become too short for a slot of it."""
    return type(owner) in SEQUENCES and type(slot.name) is int and not -len(owner) <= slot.name < len(owner)


def _is_exchangeable(observed: Observed, kind: Any) -> bool:
    """Return whether something else can be put into the slots of a kind, which is not so for those of a tuple."""
    return not isinstance(observed.value, tuple) and (
        kind in _KINDS or (kind is ItemSlot and type(observed.value) in _WITH_ITEMS)
    )


def _out_of_reach(observed: Observed) -> Iterator[Any]:
    """Return what an object holds where nothing can be exchanged, with the elements of containers.

    These may be copies of what a class derived from a container has.
    """
    seen: set[int] = set()
    pending = [*getattr(observed, "inside", ())]
    if not is_plain_tuple(observed.value):
        kinds = [*observed.slots.values()]
        pending += [slot.value for slot in kinds if not _is_exchangeable(observed, type(slot))]
        if type(observed.value) not in _WITH_ITEMS:
            pending += observed.held or ()
    while pending:
        part = pending.pop()
        yield part
        if is_container(part) and id(part) not in seen:
            seen.add(id(part))
            pending += values_in(part)


def _is_written(array: ObservedArray) -> bool:
    """Return whether the code that begins to run writes an ndarray."""
    return bool(array.written) or not _WRITING.isdisjoint(array.names)


def _is_possible(observed: ObservedArray) -> bool:
    """Return whether the code that begins to run does with an ndarray what dlarrays can do."""
    array = observed.value
    return (
        not observed.is_given
        and not observed.is_variable
        and type(array) is np.ndarray
        and array.dtype in SUPPORTED_DTYPES
        and array.flags.writeable
        and all(hasattr(dlarray, name) for name in observed.names)
    )
