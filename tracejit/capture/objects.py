# SPDX-License-Identifier: BSD-3-Clause
"""The objects that a recording observes, one class for each kind.

A kind says what is noted when such an object is first observed, what is noted when all of it is read, which attributes
can be read without running the user's code, and whether a replay may meet another object of the same class.
"""

import collections
import contextvars
import dataclasses
import functools
import gc
import itertools
import operator
import os
import types
import weakref
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tracejit.array import dlarray
from tracejit.capture import bytecode
from tracejit.capture.bytecode import READ
from tracejit.capture.observed import Notes, Observed
from tracejit.capture.slots import (
    AttributeSlot,
    BuiltinSlot,
    ClosureSlot,
    HeldSlot,
    OwnSlot,
    RegistrySlot,
)
from tracejit.capture.values import (
    MISSING,
    MOST_INSIDE,
    UNKNOWN,
    arrays_inside,
    cached_results,
    data_of,
    instance_attribute,
    is_atom,
    is_container,
    is_library_module,
    is_member,
    is_user_class,
    static,
    values_in,
)
from tracejit.record import monitor

TOLD_BY_SHAPE = frozenset(
    {"shape", "ndim", "size", "dtype", "itemsize", "nbytes", "strides", "flags", "format"}
)
_VIEWS = frozenset({"T", "reshape", "transpose", "swapaxes", "squeeze", "view", "ravel"})
_CONTENT_LIMIT = 1 << 16  # bytes of an array that are compared at each call

# Attributes that lead to the parts of a composite, which another object may have under the same names.
_PARTS: dict[type, tuple[str, ...]] = {
    types.MethodType: ("__func__", "__self__"),
    functools.partial: ("func", "args", "keywords"),
    property: ("fget",),
}
_READABLE = frozenset({
    "__code__", "__defaults__", "__kwdefaults__", "_function", "__wrapped__",
    *itertools.chain(*_PARTS.values()),
})  # fmt: skip
_HOLDERS = frozenset({
    contextvars.ContextVar, weakref.ref, weakref.KeyedRef, types.MappingProxyType,
    type({}.keys()), type({}.values()), type({}.items()),
})  # fmt: skip

# The attributes that hold the elements of classes of the standard library, whose code is not watched.
_INNER: tuple[tuple[Any, str], ...] = (
    (collections.UserDict, "data"), (collections.UserList, "data"), (collections.ChainMap, "maps"),
    (type(os.environ), "_data"), (weakref.WeakValueDictionary, "data"), (weakref.WeakKeyDictionary, "data"),
)  # fmt: skip
_BASES = (dict, list, tuple, set, frozenset, str, bytes, float, int, complex)  # of user classes
_GETTERS = (operator.attrgetter, operator.methodcaller)
_CACHED = type(functools.lru_cache(len))
_DISPATCHER: Any = getattr(functools.singledispatch(len), "__code__", None)


class ObservedAtom(Observed):
    """A value without attributes that change."""

    __slots__ = ()


class ObservedNamespace(Observed):
    """The globals of a module, or sys.modules."""

    __slots__ = ()


class ObservedArray(Observed):
    """A dlarray or an ndarray of numbers.

    Attributes:
        data: what a dlarray held when it was observed, and `tape` its Value.
        content: the bytes of an array whose elements plain NumPy can read.
        computed: places where plain NumPy reads its elements, unless an operation of the trace does there.
        passed: places where it is an argument of a function that is not watched.
        is_indexed: whether something that is no constant selects elements; the result may enter the trace as a view.
        is_computed_with: whether plain NumPy reads its elements, whatever else does.
    """

    __slots__ = ("computed", "content", "data", "is_computed_with", "is_indexed", "passed", "tape")

    def __init__(self, value: Any, where: tuple[str, int]) -> None:
        super().__init__(value, where)
        self.data = data_of(value)
        self.tape = value._value if type(value) is dlarray else None
        self.content: bytes | None = None
        self.computed: list[Any] = []
        self.passed: list[Any] = []
        self.is_indexed = False
        self.is_computed_with = False

    @property
    def is_large(self) -> bool:
        """True if the array is too large to be compared at each call."""
        return data_of(self.value).nbytes > _CONTENT_LIMIT

    def keep_content(self, where: tuple[str, int]) -> None:
        """Keep the elements, which plain NumPy can read."""
        if self.content is None:
            self.where = where
            self.content = b"" if self.is_large else self.value.tobytes()

    def follow(self, steps: Sequence[tuple[str, Any]], where: tuple[str, int]) -> None:
        """Note that attributes and items of the array are read."""
        kind, name = steps[0]
        if (kind == "attr" and name in TOLD_BY_SHAPE) or type(self.value) is not np.ndarray:
            return
        self.is_loose = True
        self.keep_content(where)
        items = [index for step, index in itertools.takewhile(lambda step: step[0] == "item", steps)]
        indexed = sum(len(index) if type(index) is tuple else 1 for index in items)
        if (kind == "attr" and name not in _VIEWS) or (items and indexed >= self.value.ndim):
            self.is_computed_with = True

    def note_contents(self, snapshot: Notes) -> None:
        if type(self.value) is np.ndarray:
            self.keep_content(snapshot.where)


class ForeignArray(Observed):
    """An array of another library, which gives NumPy its memory through DLPack."""

    __slots__ = ()

    def note_contents(self, snapshot: Notes) -> None:
        self.where = snapshot.where


class ObservedContainer(Observed):
    """A builtin container, a named tuple or an ndarray of objects."""

    __slots__ = ()

    def note_contents(self, snapshot: Notes) -> None:
        self.hold(snapshot)
        for part in values_in(self.value):
            snapshot.read_whole(part)


class ObservedCode(Observed):
    """Something that calls functions, which its attributes lead to."""

    is_code = True

    __slots__ = ()

    def attribute(self, name: str) -> Any:
        return getattr(self.value, name, MISSING) if name in _READABLE else UNKNOWN


class ObservedFunction(ObservedCode):
    """A function written in Python."""

    __slots__ = ()

    def note(self, snapshot: Notes) -> None:
        function = self.value
        snapshot.when_run(function.__code__, lambda: self._note_run(snapshot))
        snapshot.read(self, AttributeSlot, "__code__")
        if monitor.is_library(function.__code__.co_filename) and hasattr(function, "__wrapped__"):
            snapshot.read(self, AttributeSlot, "__wrapped__")
        if function.__code__ is _DISPATCHER:
            snapshot.hold(snapshot.read(self, RegistrySlot, ""))

    def _note_run(self, snapshot: Notes) -> None:
        """Note its defaults and what it reads of enclosing functions, once it runs."""
        function = self.value
        for name in ("__defaults__", "__kwdefaults__"):
            if getattr(function, name):  # a parameter without a default is given by the caller
                snapshot.hold(snapshot.read(self, AttributeSlot, name))
        free = bytecode.reads_of(function.__code__).free
        for number, name in enumerate(function.__code__.co_freevars):
            if free.get(name, READ) == READ:
                snapshot.read(self, ClosureSlot, (number, name))
            else:
                snapshot.slot(self, ClosureSlot, (number, name))


class ObservedComposite(ObservedCode):
    """A bound method, a partial or a property."""

    __slots__ = ()

    def note(self, snapshot: Notes) -> None:
        for name in _PARTS[type(self.value)]:
            part = snapshot.read(self, AttributeSlot, name)
            if is_container(part):
                snapshot.hold(part)
        snapshot.generators.note(self.value, snapshot.where)

    def note_contents(self, snapshot: Notes) -> None:
        for slot in [*self.slots.values()]:
            snapshot.read_whole(slot.value)


class ObservedHolder(Observed):
    """A context variable, a weak reference or a view of a dict."""

    is_fixed = True

    __slots__ = ()

    def note(self, snapshot: Notes) -> None:
        snapshot.read_whole(snapshot.read(self, HeldSlot, ""))

    def note_contents(self, snapshot: Notes) -> None:
        for slot in [*self.slots.values()]:
            snapshot.read_whole(slot.value)


class ObservedAccelerated(ObservedCode):
    """A function that evaluates itself, with the user's function inside."""

    is_fixed = True

    __slots__ = ()

    def note(self, snapshot: Notes) -> None:
        snapshot.read(self, AttributeSlot, "_function")


class ObservedWrapper(ObservedCode):
    """A callable around a function, above all functools.lru_cache.

    Attributes:
        memory: the dict in which a function with a cache remembers results.
        inside: arrays that it holds where no name leads to, kept until the recording ends.
    """

    __slots__ = ("inside", "is_fixed", "memory")

    def __init__(self, value: Any, where: tuple[str, int]) -> None:
        super().__init__(value, where)
        self.is_fixed = False  # until it turns out to have a cache
        self.memory: dict[Any, Any] | None = None
        self.inside: list[Any] = []

    def note(self, snapshot: Notes) -> None:
        snapshot.read(self, AttributeSlot, "__wrapped__")
        if type(self.value) is _CACHED:
            own = self.value.__dict__
            parts = gc.get_referents(self.value)
            self.memory = next((part for part in parts if type(part) is dict and part is not own), None)
            self.is_fixed = self.memory is not None
            snapshot.caches.append(self)
            self.note_results(snapshot)
        self.inside = arrays_inside(self.value)

    def note_results(self, snapshot: Notes) -> None:
        """Note the results that the cache remembers, but not the elements of large tables."""
        for _, _, result in self.remembered():
            is_array = type(result) is np.ndarray
            if is_array or not is_container(result) or len(result) <= MOST_INSIDE:
                snapshot.read_whole(result)
            else:
                snapshot.observe(result)

    def remembered(self) -> list[tuple[Any, Any, Any]]:
        """Return the latest results that the cache remembers: keys, the cache's entries, results."""
        return cached_results(self.value, self.memory or {})


class ObservedOpaque(Observed):
    """An object of a class in C, or of a library, that nothing is known of.

    Attributes:
        inside: arrays that it holds where no name leads to, kept until the recording ends.
    """

    is_fixed = True
    is_told = True
    may_share_memory = True

    __slots__ = ("inside",)

    def __init__(self, value: Any, where: tuple[str, int]) -> None:
        super().__init__(value, where)
        self.inside: list[Any] = []

    def note(self, snapshot: Notes) -> None:
        if type(self.value) in _GETTERS:
            names = [name for name in self.value.__reduce__()[1] if isinstance(name, str)]
            snapshot.add_names({part for name in names for part in name.split(".")})
        snapshot.generators.note(self.value, snapshot.where)
        self.inside = arrays_inside(self.value)


class ObservedNames(Observed):
    """An object whose attributes are read by the names that the code which runs has."""

    __slots__ = ()

    def note_contents(self, snapshot: Notes) -> None:
        snapshot.read_names(self)

    def own_names(self, is_dynamic: bool) -> Iterable[str]:
        """Return attributes that are read although no code that runs has their names."""
        return ()


class ObservedMember(ObservedNames):
    """A member of a user's enumeration."""

    __slots__ = ()

    def attribute(self, name: str) -> Any:
        return instance_attribute(self.value, name)

    def note(self, snapshot: Notes) -> None:
        snapshot.watch_class(type(self.value))


class ObservedModule(ObservedNames):
    """A module."""

    is_code = True
    is_fixed = True

    __slots__ = ()

    def attribute(self, name: str) -> Any:
        if is_library_module(self.value):
            return UNKNOWN
        attribute = vars(self.value).get(name, MISSING)
        return UNKNOWN if attribute is MISSING and "__getattr__" in vars(self.value) else attribute

    def note_contents(self, snapshot: Notes) -> None:
        if not is_library_module(self.value):
            snapshot.read_names(self)


class ObservedClass(ObservedNames):
    """A class written in Python."""

    is_code = True

    __slots__ = ()

    def attribute(self, name: str) -> Any:
        raw = static(self.value, name)
        if raw is MISSING:
            return UNKNOWN
        if isinstance(raw, (staticmethod, classmethod)):
            return getattr(self.value, name)
        if isinstance(raw, types.FunctionType) or not hasattr(type(raw), "__get__"):
            return raw
        return raw if isinstance(raw, property) or hasattr(raw, "_function") else UNKNOWN

    def note(self, snapshot: Notes) -> None:
        snapshot.watch_class(self.value)


class ObservedInstance(ObservedNames):
    """An instance of a class with attributes. One of a library class is fixed: what its code reads is not known.

    Attributes:
        inside: arrays that an instance of a library class holds where no name leads to.
    """

    __slots__ = ("inside", "is_fixed", "is_told", "may_share_memory")

    def __init__(self, value: Any, where: tuple[str, int]) -> None:
        super().__init__(value, where)
        self.is_fixed = self.is_told = not is_user_class(type(value))
        # A class written in Python has no buffer, unless it derives from one that has.
        self.may_share_memory = type(value).__base__ is not object
        self.inside: list[Any] = []

    def attribute(self, name: str) -> Any:
        return instance_attribute(self.value, name)

    def note(self, snapshot: Notes) -> None:
        snapshot.watch_class(type(self.value))
        if self.may_share_memory:
            self._note_inner(snapshot)
        if self.is_fixed:
            snapshot.generators.note(self.value, snapshot.where)
            self.inside = arrays_inside(self.value)

    def _note_inner(self, snapshot: Notes) -> None:
        """Note the elements that code of the standard library keeps in it."""
        for kind, name in _INNER:
            if issubclass(type(self.value), kind):
                snapshot.read_whole(snapshot.read(self, AttributeSlot, name))
                return
        base = next((base for base in _BASES if issubclass(type(self.value), base)), None)
        if base is not None:
            snapshot.read_whole(snapshot.read(self, BuiltinSlot, base))

    def own_names(self, is_dynamic: bool) -> Iterable[str]:
        names: set[str] = set()
        if dataclasses.is_dataclass(self.value):
            names.update(field.name for field in dataclasses.fields(self.value))
        if is_dynamic:
            names.update(getattr(self.value, "__dict__", ()))
        return names

    def note_computed(self, snapshot: Notes, name: str) -> None:
        """Note how an attribute is found that is a method of the class, or computed."""
        own = snapshot.slot(self, OwnSlot, name)
        if own is not None:
            own.is_read = True
        raw = static(type(self.value), name)
        raw = raw.dispatcher if type(raw) is functools.singledispatchmethod else raw
        is_descriptor = is_user_class(type(raw)) and hasattr(type(raw), "__get__")
        if is_descriptor or type(raw) is _CACHED or getattr(raw, "__code__", None) is _DISPATCHER:
            snapshot.add_root(raw)


def kind_of(value: Any) -> type[Observed]:
    """Return the class that observes a value."""
    kind = type(value)
    if is_atom(value):
        return ObservedMember if is_member(value) else ObservedAtom
    if kind is dlarray or isinstance(value, np.ndarray):
        if kind is np.ndarray and value.dtype == object:
            return ObservedContainer
        return ObservedArray if kind is dlarray or kind is np.ndarray else ObservedOpaque
    if hasattr(kind, "__dlpack__"):
        return ForeignArray
    if is_container(value):
        return ObservedContainer
    if kind is types.FunctionType:
        return ObservedFunction
    if kind is types.ModuleType:
        return ObservedModule
    if isinstance(value, type):
        return ObservedClass if is_user_class(value) else ObservedOpaque
    if kind in _PARTS:
        return ObservedComposite
    if kind in _HOLDERS:
        return ObservedHolder
    if getattr(kind, "evaluates_itself", False):
        return ObservedAccelerated
    if is_user_class(kind):
        return ObservedInstance
    if hasattr(value, "__wrapped__"):
        return ObservedWrapper
    return ObservedInstance if hasattr(value, "__dict__") and not callable(value) else ObservedOpaque
