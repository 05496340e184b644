# SPDX-License-Identifier: BSD-3-Clause
"""Observed objects that are called: functions, bound methods, partials, functions with a cache."""

import functools
import gc
import itertools
import sys
import types
from collections.abc import Iterable
from typing import Any

import numpy as np

from tracejit.capture import bytecode, library
from tracejit.capture.generators import LOOKING_AT_STATES, state_of
from tracejit.capture.named import ObservedNames
from tracejit.capture.observed import Notes, Observed
from tracejit.capture.reads import Constant
from tracejit.capture.slots import AttributeSlot, CallSlot, ClosureSlot, DrawsSlot, RegistrySlot
from tracejit.capture.values import (
    DATA,
    MISSING,
    MOST_INSIDE,
    UNKNOWN,
    arrays_inside,
    cached_results,
    is_closed,
    is_container,
    static,
)
from tracejit.record import monitor

PARTS: dict[type, tuple[str, ...]] = {
    types.MethodType: ("__func__", "__self__"),
    functools.partial: ("func", "args", "keywords"),
    property: ("fget",),
    functools.cached_property: ("func",),
}
"""Attributes that lead to the parts of a composite, which another object may have under the same names."""
_READABLE = frozenset({
    "__code__", "__defaults__", "__kwdefaults__", "_function", "_backward", "__wrapped__",
    *itertools.chain(*PARTS.values()),
})  # fmt: skip
_CACHED = type(functools.lru_cache(len))
_DISPATCHER: Any = getattr(functools.singledispatch(len), "__code__", None)


class ObservedCode(Observed):
    """Something that calls functions, which its attributes lead to."""

    is_code = True
    has_attributes = True

    __slots__ = ()

    def attribute(self, name: str) -> Any:
        own = getattr(self.value, "__dict__", None)
        if own is not None and name in own:
            return own[name]
        if name in _READABLE:
            return getattr(self.value, name, MISSING)
        return UNKNOWN if own is None or hasattr(type(self.value), name) else MISSING


def _is_of_module(function: types.FunctionType) -> bool:
    """Return whether the global names of a function are those of a module that is imported."""
    names = function.__globals__
    module = sys.modules.get(names.get("__name__", ""))
    return module is not None and getattr(module, "__dict__", None) is names


class ObservedFunction(ObservedNames):
    """A function written in Python."""

    is_code = True

    __slots__ = ()

    def attribute(self, name: str) -> Any:
        own = self.value.__dict__
        if name in own:
            return own[name]
        if isinstance(static(types.FunctionType, name), DATA):
            return getattr(self.value, name, MISSING)
        return UNKNOWN if hasattr(types.FunctionType, name) else MISSING

    def own_names(self, is_dynamic: bool) -> Iterable[str]:
        if not is_dynamic or self.is_of_library:
            return ()
        return [*self.value.__dict__, "__defaults__", "__kwdefaults__"]

    @property
    def is_of_library(self) -> bool:
        """True for a function of Python or NumPy."""
        return monitor.is_library(self.value.__code__.co_filename)

    def note_contents(self, snapshot: Notes) -> None:
        if not self.is_of_library:
            super().note_contents(snapshot)

    def note(self, snapshot: Notes) -> None:
        function = self.value
        snapshot.when_run(function.__code__, lambda: self._note_run(snapshot))
        snapshot.read(self, AttributeSlot, "__code__")
        if not _is_of_module(function):  # the same code may run with other global names (exec)
            snapshot.read_namespace(self)
        if self.is_of_library:
            snapshot.generators.note(function, snapshot.where)
            if library.reads_attributes(function):
                snapshot.read_dynamically()
        if self.is_of_library and hasattr(function, "__wrapped__"):
            snapshot.read(self, AttributeSlot, "__wrapped__")
        if function.__code__ is _DISPATCHER:
            snapshot.hold(snapshot.read(self, RegistrySlot, ""))

    def note_defaults(self, snapshot: Notes) -> None:
        """Note the defaults of a function that could not be called, because it lacks others."""
        if not self.is_of_library:
            for name in ("__defaults__", "__kwdefaults__"):
                value = snapshot.read(self, AttributeSlot, name)
                if value is not None:
                    snapshot.hold(value)

    def _note_run(self, snapshot: Notes) -> None:
        """Note its defaults and what it reads of enclosing functions, once it runs."""
        function = self.value
        for name in ("__defaults__", "__kwdefaults__"):
            if getattr(function, name):  # a parameter without a default is given by the caller
                snapshot.hold(snapshot.read(self, AttributeSlot, name))
        free = bytecode.reads_of(function.__code__).free
        for number, name in enumerate(function.__code__.co_freevars):
            used = free[name]
            (snapshot.assign if used.is_assigned else snapshot.slot)(self, ClosureSlot, (number, name))
            if used.is_read:
                snapshot.read(self, ClosureSlot, (number, name))
            for written, operand in used.additions:
                added = operand.value if isinstance(operand, Constant) else UNKNOWN
                snapshot.update(self, ClosureSlot, (number, name), (written, added))


class ObservedComposite(ObservedCode):
    """A bound method, a partial or a property."""

    __slots__ = ()

    def note(self, snapshot: Notes) -> None:
        for name in PARTS[type(self.value)]:
            part = snapshot.read(self, AttributeSlot, name)
            if is_container(part):
                snapshot.hold(part)
            elif not is_closed(part) and part is not UNKNOWN:
                snapshot.observe(part).note_used(snapshot)
        snapshot.generators.note(self.value, snapshot.where)
        if (
            getattr(self.value, "__name__", "") in LOOKING_AT_STATES
            and state_of(self.value.__self__) is not None
        ):
            snapshot.read(snapshot.observe(self.value.__self__), DrawsSlot, "")

    def note_contents(self, snapshot: Notes) -> None:
        for slot in [*self.slots.values()]:
            snapshot.read_whole(slot.value)


class ObservedAccelerated(ObservedCode):
    """A function that evaluates itself, or has a backward function, with the user's functions inside."""

    is_fixed = True

    __slots__ = ()

    def note(self, snapshot: Notes) -> None:
        for name in getattr(type(self.value), "traced_functions", ("_function",)):
            snapshot.read(self, AttributeSlot, name)


class ObservedWrapper(ObservedCode):
    """A callable around a function, above all functools.lru_cache.

    Attributes:
        memory: the dict in which a function with a cache remembers results.
        inside: arrays that it holds where no name leads to, kept until the recording ends.
    """

    __slots__ = ("_misses", "inside", "is_fixed", "memory")

    def __init__(self, value: Any, where: tuple[str, int]) -> None:
        super().__init__(value, where)
        self.is_fixed = False  # until it turns out to have a cache
        self.memory: dict[Any, Any] | None = None
        self.inside: list[Any] = []
        self._misses = 0

    def note(self, snapshot: Notes) -> None:
        snapshot.read(self, AttributeSlot, "__wrapped__")
        if type(self.value) is _CACHED:
            own = self.value.__dict__
            parts = gc.get_referents(self.value)
            self.memory = next((part for part in parts if type(part) is dict and part is not own), None)
            self.is_fixed = self.memory is not None
            self._misses = self.value.cache_info().misses
            snapshot.caches.append(self)
            self.note_results(snapshot)
        self.inside = arrays_inside(self.value)

    def note_computed(self, snapshot: Notes, name: str) -> None:
        if name == "cache_info" and self.memory is not None:
            snapshot.read(self, CallSlot, name)

    def note_results(self, snapshot: Notes) -> None:
        """Note the results that the cache remembers, but not the elements of large tables."""
        for _, _, result in self.remembered():
            is_array = type(result) is np.ndarray
            if is_array or not is_container(result) or len(result) <= MOST_INSIDE:
                snapshot.read_whole(result)
            else:
                snapshot.observe(result)

    @property
    def has_run(self) -> bool:
        """True if the function that a cache is around has run since it was first observed."""
        return self.memory is not None and self.value.cache_info().misses != self._misses

    def remembered(self) -> list[tuple[Any, Any, Any]]:
        """Return the latest results that the cache remembers: keys, the cache's entries, results."""
        return cached_results(self.value, self.memory or {})
