# SPDX-License-Identifier: BSD-3-Clause
"""The places by which a user's functions reach an ndarray: variables, operands, and what lies in these."""

import gc
import itertools
import operator
from collections import Counter
from collections.abc import Collection
from functools import lru_cache
from types import FrameType
from typing import Any

import numpy as np

from tracejit.record import stack
from tracejit.record.monitor import is_user_class
from tracejit.util.named_tuples import NamedTuple

_MOST_ITEMS = 2000  # of lists, dicts and objects that are looked at
_OF_SEQUENCE = type(iter(np.empty(0)))
_ITERATORS = frozenset({_OF_SEQUENCE, type(iter([])), enumerate, zip})
_MUTABLE = frozenset({list, dict})


class _Item(NamedTuple):
    """A place among the elements of a list, a tuple or a dict, among the attributes of an object, or in an iterator.

    holder  the id of that
    key     of the place; None in a tuple and in an iterator
    held    the id of what it holds
    """

    holder: int
    key: Any
    held: int


class UserPlaces:
    """The places by which some frames reach an ndarray and its views: their own, and those in what lies there.

    Args:
        frames: of functions.
        owner: the ndarray, which owns its memory.

    Attributes:
        is_known: whether the places of all frames are known.
        holders: lists, tuples, dicts, objects and iterators that lie there, by their ids.
    """

    def __init__(self, frames: Collection[FrameType], owner: np.ndarray) -> None:
        self.is_known = True
        self._owner = id(owner)  # references to the arrays are counted
        self._in_frames: dict[int, stack.FramePlace] = {}  # by address: functions share variables
        for frame in frames:
            places = stack.places_in(frame)
            self.is_known = self.is_known and places is not None
            self._in_frames.update((place.address, place) for place in places or ())
        self._items: list[_Item] = []
        self.holders: dict[int, Any] = {}
        pending = [place.value for place in self._in_frames.values()]
        self._arrays = [value for value in pending if type(value) is np.ndarray]
        while pending and len(self._items) < _MOST_ITEMS:
            pending += self._look_into(pending.pop())

    def _look_into(self, holder: Any) -> list[Any]:
        """Add the places in a list, an object or the like, and return what they hold."""
        kind: Any = type(holder)
        if not _is_holder(kind) or id(holder) in self.holders:
            return []
        parts = [(key, part) for key, part in _parts_of(holder) if self._matters(part)]
        self.holders[id(holder)] = holder
        self._items += [_Item(id(holder), key, id(part)) for key, part in parts]
        self._arrays += [part for _, part in parts if type(part) is np.ndarray]
        return [part for _, part in parts]

    def _matters(self, part: Any) -> bool:
        """Return whether something is the ndarray, a view of it, or may hold one."""
        kind: Any = type(part)
        if kind is np.ndarray:
            return id(part) == self._owner or id(part.base) == self._owner
        return _is_holder(kind)

    def take_arrays(self) -> list[np.ndarray]:
        """Return ndarrays that the places hold, and refer to them no longer."""
        arrays, self._arrays = self._arrays, []
        return arrays

    @property
    def held(self) -> Counter[int]:
        """The ids of what the places hold."""
        in_frames = [place.held for place in self._in_frames.values()]
        return Counter([*in_frames, *[item.held for item in self._items]])

    def holders_of(self, idents: Collection[int]) -> set[int]:
        """Return the ids of all holders of objects of some ids, and of the holders of these."""
        found: set[int] = set()
        new = {*idents}
        while new:
            new = {item.holder for item in self._items if item.held in new} - found
            found |= new
        return found

    def put(self, taking: dict[int, Any]) -> None:
        """Put something else, by the ids of what places hold, there; `taking` gets the tuples and iterators of it."""
        for place in self._in_frames.values():
            value = _going_on(place.value, taking)
            if value is not place.value:
                place.put(value)
        for item in self._items:
            within = _within(self.holders[item.holder])
            if within is not None:
                value = _going_on(within[item.key], taking)
                if value is not within[item.key]:
                    within[item.key] = value


@lru_cache(maxsize=1024)
def _is_holder(kind: Any) -> bool:
    """Return whether objects of a class are looked into."""
    return kind in _MUTABLE or kind in _ITERATORS or issubclass(kind, tuple) or is_user_class(kind)


def _within(holder: Any) -> Any:
    """Return a list or a dict itself, and the dict of the attributes of an object; None of a tuple or an iterator."""
    if type(holder) in _MUTABLE:
        return holder
    if type(holder) in _ITERATORS or isinstance(holder, (tuple, type)):
        return None
    attributes = getattr(holder, "__dict__", None)
    return attributes if type(attributes) is dict else None


def _parts_of(holder: Any) -> list[tuple[Any, Any]]:
    """Return the keys of the places in a list, an object or the like, and what they hold; none of what is large."""
    if _is_tuple(holder):
        return [(None, part) for part in holder] if len(holder) <= _MOST_ITEMS else []
    if type(holder) in _ITERATORS:  # some keep their last result, a tuple
        kept = gc.get_referents(holder)
        return [(None, part) for one in kept for part in (one if type(one) is tuple else (one,))]
    within = _within(holder)
    if within is None or len(within) > _MOST_ITEMS:
        return []
    return [*within.items()] if type(within) is dict else [*enumerate(within)]


def _is_tuple(value: Any) -> bool:
    """Return whether a value is a tuple, or a named tuple, that nothing but its elements tells from another one."""
    return isinstance(value, tuple) and not hasattr(value, "__dict__")


def _going_on(value: Any, taking: dict[int, Any]) -> Any:
    """Return what takes the place of an ndarray, or a tuple or an iterator with that; other values themselves."""
    if id(value) not in taking and (_is_tuple(value) or type(value) in _ITERATORS):
        through = _made_again(value, taking)
        if through is value:
            return value
        taking[id(value)] = through
    return taking.get(id(value), value)


def _made_again(value: Any, taking: dict[int, Any]) -> Any:
    """Return a tuple or an iterator with what takes the places of its parts; itself if nothing does."""
    if _is_tuple(value):
        parts = [_going_on(part, taking) for part in value]
        return value if all(map(operator.is_, parts, value)) else tuple.__new__(type(value), parts)
    _, arguments, *state = value.__reduce__()
    if type(value) is _OF_SEQUENCE:
        through = taking.get(id(arguments[0])) if arguments else None
        return value if through is None else itertools.islice(through, int(state[0]), None)
    parts = [_going_on(part, taking) for part in arguments]
    if all(map(operator.is_, parts, arguments)) or type(value) not in (enumerate, zip):
        return value
    return enumerate(*parts) if type(value) is enumerate else zip(*parts, strict=bool(state and state[0]))
