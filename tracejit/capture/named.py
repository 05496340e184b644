# SPDX-License-Identifier: BSD-3-Clause
"""Observed objects whose attributes have names: instances, classes, modules, members of enumerations."""

import collections
import dataclasses
import enum
import os
import types
import weakref
from collections.abc import Iterable
from typing import Any

import numpy as np

from tracejit.capture import library
from tracejit.capture.observed import Contents, Notes, Observed
from tracejit.capture.slots import (
    AttributeSlot,
    BuiltinSlot,
    CallSlot,
    ClassSlot,
    NamesSlot,
    OwnSlot,
    StateSlot,
)
from tracejit.capture.values import (
    DATA,
    MISSING,
    UNKNOWN,
    arrays_inside,
    class_data,
    instance_attribute,
    own_attributes,
    static,
)
from tracejit.record.monitor import is_library_module, is_user_class

# The attributes that hold the elements of classes of the standard library, whose code is not watched.
_INNER: tuple[tuple[Any, str], ...] = (
    (collections.UserDict, "data"), (collections.UserList, "data"), (collections.ChainMap, "maps"),
    (type(os.environ), "_data"), (weakref.WeakValueDictionary, "data"), (weakref.WeakKeyDictionary, "data"),
)  # fmt: skip
_OF_MEMBERS = {"value": "_value_", "name": "_name_"}  # properties of members of enumerations
FIELD: Any = type(vars(collections.namedtuple("_Fields", "field"))["field"])
"""The class of what computes a field of a named tuple."""
# Of classes of users.
_BASES = (dict, list, tuple, set, frozenset, collections.deque, str, bytes, float, int, complex)
# Entries of classes whose code is watched when it runs, or that read nothing.
_FOUND_BY_CODE = (
    types.FunctionType, staticmethod, classmethod, types.WrapperDescriptorType, types.MethodDescriptorType,
    types.DynamicClassAttribute, *DATA,
)  # fmt: skip


def note_state(observed: Observed, snapshot: Notes, is_asked: bool) -> None:
    """Note the state of an object of the standard library.

    Args:
        observed: the object.
        snapshot: in which it is noted.
        is_asked: whether a method that can tell of the state is called.
    """
    kind = type(observed.value)
    note_attributes(observed, snapshot)
    for name in library.inner_of(kind):
        if name == library.EVERY:
            snapshot.read(observed, NamesSlot, "")
            for own in vars(observed.value):
                snapshot.read_whole(snapshot.read(observed, AttributeSlot, own))
        else:
            snapshot.read_whole(snapshot.read(observed, AttributeSlot, name))
    if library.has_state(kind, is_asked):
        snapshot.read(observed, StateSlot, "")


def note_attributes(observed: Observed, snapshot: Notes) -> None:
    """Note the attributes of an object of a library, which its code may read, unless it is known what that reads.

    Among them are those that stand for all objects of its class until it gets one of its own. Functions and classes
    are taken to stay as they are, like the rest of the library's code.
    """
    kind = type(observed.value)
    is_known = library.inner_of(kind) or library.has_state(kind, is_asked=True)
    if library.has_code_in(kind) and not is_known and not library.is_code(observed.value):
        attributes = {**own_attributes(observed.value), **class_data(observed.value)}
        for name, value in attributes.items():
            if not library.is_code(value):
                snapshot.read_whole(snapshot.read(observed, AttributeSlot, name))


def note_descriptor(observed: Observed, snapshot: Notes, name: str) -> Any:
    """Note what the class of an object has that computes an attribute, and return it; its code tells of a function."""
    raw = static(type(observed.value), name)
    if raw is not MISSING and not isinstance(raw, _FOUND_BY_CODE):
        root = snapshot.root_of(type(observed.value))
        snapshot.read(root, ClassSlot if root.attribute(name) is UNKNOWN else AttributeSlot, name)
    return raw


class ObservedNames(Observed):
    """An object whose attributes are read by the names that the code which runs has."""

    has_attributes = True

    __slots__ = ()

    def note_contents(self, snapshot: Notes) -> None:
        snapshot.read_names(self)
        snapshot.read_specials(type(self.value))
        note_state(self, snapshot, is_asked=False)

    def note_state(self, snapshot: Notes) -> None:
        note_state(self, snapshot, is_asked=True)

    def note_names(self, snapshot: Notes) -> None:
        """Note the attributes that it has itself, and its class."""
        if hasattr(self.value, "__dict__"):
            snapshot.read(self, NamesSlot, "")
        for base in type(self.value).__mro__:
            if is_user_class(base):
                snapshot.read(snapshot.root_of(base), NamesSlot, "")

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

    def note_computed(self, snapshot: Notes, name: str) -> None:
        if name in _OF_MEMBERS:
            snapshot.read_whole(snapshot.read(self, AttributeSlot, _OF_MEMBERS[name]))


class ObservedSubarray(ObservedNames):
    """An array of a class derived from NumPy's.

    Attributes:
        inside: arrays that it holds where no name leads to.
    """

    is_fixed = True
    is_told = True
    may_share_memory = True

    __slots__ = ("inside",)

    def __init__(self, value: Any, where: tuple[str, int]) -> None:
        super().__init__(value, where)
        self.inside: list[Any] = []

    def attribute(self, name: str) -> Any:
        is_of_numpy = hasattr(np.ndarray, name) and name != "__dict__"
        return UNKNOWN if is_of_numpy else instance_attribute(self.value, name)

    def note(self, snapshot: Notes) -> None:
        snapshot.watch_class(type(self.value))
        self.inside = arrays_inside(self.value)
        if isinstance(self.value, np.ma.MaskedArray):
            for name in ("_mask", "_fill_value"):
                snapshot.read_whole(snapshot.read(self, AttributeSlot, name))

    def own_names(self, is_dynamic: bool) -> Iterable[str]:
        return [*getattr(self.value, "__dict__", ())] if is_dynamic else ()


class ObservedModule(ObservedNames):
    """A module."""

    is_code = True
    is_fixed = True

    __slots__ = ()

    @property
    def is_of_library(self) -> bool:
        """True for a module of Python or NumPy, but not of tracejit, whose names are taken to stay as they are."""
        return is_library_module(self.value) and self.value.__name__.partition(".")[0] != "tracejit"

    def attribute(self, name: str) -> Any:
        if is_library_module(self.value):
            return UNKNOWN
        if name == "__dict__":
            return vars(self.value)
        attribute = vars(self.value).get(name, MISSING)
        return UNKNOWN if attribute is MISSING and "__getattr__" in vars(self.value) else attribute

    def note_contents(self, snapshot: Notes) -> None:
        if not is_library_module(self.value):
            snapshot.read_names(self)

    def note_computed(self, snapshot: Notes, name: str) -> None:
        if "__getattr__" in vars(self.value) and not is_library_module(self.value):
            snapshot.read(self, AttributeSlot, "__getattr__")
            snapshot.read(self, OwnSlot, name)

    def own_names(self, is_dynamic: bool) -> Iterable[str]:
        if not is_dynamic or is_library_module(self.value):
            return ()
        values = vars(self.value).items()
        return {
            name
            for name, value in values
            if not name.startswith("__") and type(value) is not types.ModuleType
        }


class ObservedClass(ObservedNames):
    """A class written in Python."""

    is_code = True

    __slots__ = ()

    def attribute(self, name: str) -> Any:
        kind = type(self.value)
        of_metaclass = static(kind, name)
        if hasattr(type(of_metaclass), "__set__"):  # the metaclass comes first
            is_data = isinstance(of_metaclass, DATA) and name not in ("__dict__", "__abstractmethods__")
            return getattr(self.value, name, MISSING) if is_data else UNKNOWN
        raw = static(self.value, name)
        if raw is MISSING:
            if of_metaclass is MISSING:
                return UNKNOWN if hasattr(kind, "__getattr__") else MISSING
            return UNKNOWN if hasattr(type(of_metaclass), "__get__") else of_metaclass
        if isinstance(raw, (staticmethod, classmethod)):
            return getattr(self.value, name)
        if isinstance(raw, types.FunctionType) or not hasattr(type(raw), "__get__"):
            return raw
        gives_itself = isinstance(raw, (property, FIELD)) or hasattr(raw, "_function")
        return raw if gives_itself else UNKNOWN

    def note(self, snapshot: Notes) -> None:
        snapshot.watch_class(self.value)
        snapshot.watch_class(type(self.value))
        snapshot.read_specials(type(self.value))

    def note_computed(self, snapshot: Notes, name: str) -> None:
        raw = static(self.value, name)
        if name == "__subclasses__":
            snapshot.read(self, CallSlot, name)
        elif name == "__dict__":
            snapshot.read_names(self)
            self.note_names(snapshot)
            snapshot.read_named(self, self.own_names(True))
        elif name == "__members__":
            self.note_contents(snapshot)
        elif raw is MISSING:
            raw = static(type(self.value), name)
            if raw is MISSING:  # the metaclass computes it as long as the class lacks it
                snapshot.read(self, ClassSlot, name)
            elif not isinstance(raw, _FOUND_BY_CODE):
                snapshot.read(snapshot.root_of(type(self.value)), ClassSlot, name)
        else:
            snapshot.read(self, ClassSlot, name)

    def note_contents(self, snapshot: Notes) -> None:
        super().note_contents(snapshot)
        if issubclass(self.value, enum.Enum):
            snapshot.read_whole(snapshot.read(self, AttributeSlot, "_member_map_"))

    def own_names(self, is_dynamic: bool) -> Iterable[str]:
        if not is_dynamic:
            return ()
        kinds = [kind for kind in self.value.__mro__ if is_user_class(kind)]
        return {name for kind in kinds for name in vars(kind) if not name.startswith("__")}


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

    def contents(self) -> Contents | None:
        return own_attributes(self.value)

    def note(self, snapshot: Notes) -> None:
        snapshot.watch_class(type(self.value))
        if self.may_share_memory:
            self._note_inner(snapshot)
        snapshot.generators.note(self.value, snapshot.where)
        if self.is_fixed and type(self.value) is not types.SimpleNamespace:  # which has attributes only
            self.inside = arrays_inside(self.value)

    def _note_inner(self, snapshot: Notes) -> None:
        """Note the elements that code of the standard library keeps in it."""
        for kind, name in _INNER:
            if issubclass(type(self.value), kind):
                snapshot.read_whole(snapshot.read(self, AttributeSlot, name))
                return
        base = next((base for base in _BASES if issubclass(type(self.value), base)), None)
        if base is not None:
            snapshot.read_specials(type(self.value))
            elements = snapshot.read(self, BuiltinSlot, base)
            snapshot.observe(elements).is_copy = True
            snapshot.read_whole(elements)

    def note_used(self, snapshot: Notes) -> None:
        note_attributes(self, snapshot)

    def own_names(self, is_dynamic: bool) -> Iterable[str]:
        names: set[str] = set()
        if dataclasses.is_dataclass(self.value):
            names.update(field.name for field in dataclasses.fields(self.value))
        if is_dynamic:
            names.update(getattr(self.value, "__dict__", ()))
            for kind in type(self.value).__mro__:
                if is_user_class(kind):
                    names.update(name for name, raw in vars(kind).items() if not _is_code(raw))
        return names

    def note_computed(self, snapshot: Notes, name: str) -> None:
        """Note how an attribute is found that is a method of the class, or computed."""
        own = snapshot.slot(self, OwnSlot, name) if hasattr(self.value, "__dict__") else None
        if own is not None:
            own.is_read = True
        raw = note_descriptor(self, snapshot, name)
        if not is_user_class(type(self.value)):
            return
        if raw is MISSING:  # __getattr__ computes it as long as the class lacks it
            snapshot.read(snapshot.root_of(type(self.value)), ClassSlot, name)
            return
        is_of_python = isinstance(raw, (types.WrapperDescriptorType, types.MethodDescriptorType))
        if is_of_python or (isinstance(raw, property) and type(raw.fget) is not types.FunctionType):
            snapshot.read_whole(self.value)  # by what is not written in Python


class ObservedPart(ObservedInstance):
    """An object that the programs of what calls it hold, as a function with a backward function of its own."""

    __slots__ = ()

    def __init__(self, value: Any, where: tuple[str, int]) -> None:
        super().__init__(value, where)
        self.is_fixed = self.is_told = True


class ObservedSource(ObservedInstance):
    """A generator of random numbers of this package's: replays move its state on, which is nothing that is read."""

    __slots__ = ()

    def attribute(self, name: str) -> Any:
        return UNKNOWN if name in type(self.value).moved_by_replays else super().attribute(name)

    def own_names(self, is_dynamic: bool) -> Iterable[str]:
        return [
            name for name in super().own_names(is_dynamic) if name not in type(self.value).moved_by_replays
        ]


def _is_code(raw: Any) -> bool:
    """Return whether an entry of a class is part of its code, or of how Python keeps it."""
    return hasattr(type(raw), "__get__") and not isinstance(raw, types.MemberDescriptorType)
