# SPDX-License-Identifier: BSD-3-Clause
"""The places in an object that hold a value, one class for each way to read one.

A slot knows what it holds now, how generated source reads it, how the user's code writes it, and whether its value has
changed.

Long because there are twenty kinds of reads, with a class of a few lines for each.
"""

import builtins
import keyword
import types
from typing import Any

import numpy as np

from tracejit.capture import library
from tracejit.capture.generators import state_of
from tracejit.capture.observed import Observed, Slot, Source
from tracejit.capture.values import (
    MAPPINGS,
    MISSING,
    UNKNOWN,
    elements,
    held_by,
    is_atom,
    item,
    plain,
    registered,
    same_elements,
    special_names,
    static,
)
from tracejit.record import patches
from tracejit.util.text import shown

DEFAULTS = "defaults"
BUILTINS = dict(vars(builtins))
"""The values of Python's own names when tracejit was imported."""
# Entries of classes that can be accessed without running the user's code.
_PLAIN = (
    types.FunctionType, property, staticmethod, classmethod, types.WrapperDescriptorType, types.MethodDescriptorType,
    types.BuiltinFunctionType, types.MemberDescriptorType, types.GetSetDescriptorType, types.ClassMethodDescriptorType,
)  # fmt: skip
# Attributes that lead on to what the same name of the user's stands for.
_SAME_NAME = frozenset({"__code__", "__func__", "_function", "__wrapped__", "fget", "func"})

_LATE = frozenset({"ma", "polynomial", "random"})  # modules that NumPy imports when they are first asked for

_OF_CALLABLES = frozenset(
    {"args", "keywords"}
)  # attributes of a function that are called by their names alone


def _attribute(owner: str, name: str) -> str:
    """Return the expression for an attribute; setattr and vars take names that code cannot spell, such as "0.w"."""
    is_spelled = name.isidentifier() and name.isascii() and not keyword.iskeyword(name)
    return f"{owner}.{name}" if is_spelled else f"getattr({owner}, {name!r})"


class ItemSlot(Slot):
    """An item of a container by a constant key."""

    __slots__ = ()

    @staticmethod
    def look(owner: Observed, name: Any) -> Any:
        return item(owner.value, name)

    def expression(self, owner: str, source: Source) -> str:
        return f"{owner}[{source(self.name)}]"

    def presence(self, owner: str, source: Source) -> str:
        return f"{source(self.name)} in {owner}"

    def path(self, owner: str) -> str:
        return f"{owner}[{self.name!r}]"


STANDING: dict[tuple[int, str], tuple[Any, Any]] = {}
"""The functions that stand for global names in recordings, and what was there, by the id of the dict and the name."""
STAND_INS: dict[str, Any] = {}
"""These functions, by the name."""


class GlobalSlot(ItemSlot):
    """A global name, in the dict of its module."""

    __slots__ = ()

    @staticmethod
    def look(owner: Observed, name: Any) -> Any:
        value = patches.original(owner.value.get(name, MISSING))
        standing = STANDING.get((id(owner.value), name))  # of another thread, too
        return standing[1] if standing is not None and value is standing[0] else value

    def path(self, owner: str) -> str:
        return f"global {self.name}"

    def absence(self, owner: str, source: Source) -> tuple[str, str] | None:
        if self.value is not MISSING:
            return None
        here, own = self.presence(owner, source), vars(builtins).get(self.name, MISSING)
        if self.name in STAND_INS:  # of another thread, which records
            here = f"({here} and {owner}.get({self.name!r}) is not {source(STAND_INS[self.name])})"
        if self.name in BUILTINS:  # where the name is looked up faster than an item
            return "Python's own", f"{here} or {self.name} is not {source(own)}"
        if own is MISSING:
            return "not there", f"{here} or {self.name!r} in {source(vars(builtins))}"
        return "that of builtins", here


class LibrarySlot(GlobalSlot):
    """A name in the dict of a module of Python or NumPy, whose code is taken to stay as it is, but not the names."""

    __slots__ = ()

    @staticmethod
    def look(owner: Observed, name: Any) -> Any:
        value = GlobalSlot.look(owner, name)
        if value is MISSING and owner.value is vars(np) and name in _LATE:
            return getattr(np, name)
        return UNKNOWN if value is MISSING and "__getattr__" in owner.value else value

    def path(self, owner: str) -> str:
        return f"{owner}.{self.name}"

    def absence(self, owner: str, source: Source) -> tuple[str, str] | None:
        return ("not there", self.presence(owner, source)) if self.value is MISSING else None


class ModuleSlot(ItemSlot):
    """A module that a function imports, in sys.modules."""

    __slots__ = ()

    @staticmethod
    def look(owner: Observed, name: Any) -> Any:
        return owner.value.get(name, MISSING)

    def path(self, owner: str) -> str:
        return f"module {self.name}"


class AttributeSlot(Slot):
    """An attribute."""

    __slots__ = ()

    @staticmethod
    def look(owner: Observed, name: Any) -> Any:
        return patches.original(owner.attribute(name))

    def expression(self, owner: str, source: Source) -> str:
        return _attribute(owner, self.name)

    def presence(self, owner: str, source: Source) -> str:
        return f"hasattr({owner}, {self.name!r})"

    def path(self, owner: str) -> str:
        if self.name in ("__defaults__", "__kwdefaults__"):
            return f"{DEFAULTS} of {owner}" if owner else DEFAULTS
        if self.name == "__self__":
            return "self"
        if self.name in _SAME_NAME:
            return owner
        if not owner and self.name not in _OF_CALLABLES:
            return f"attribute {self.name}"
        return f"{owner}.{self.name}" if owner else str(self.name)


class LeavesSlot(AttributeSlot):
    """The arrays of a network or of a table."""

    __slots__ = ()

    @staticmethod
    def look(owner: Observed, name: Any) -> Any:
        return getattr(owner.value, name)

    def path(self, owner: str) -> str:
        return owner


class FixedSlot(LeavesSlot):
    """The fixed part of a network or of a table: its layers and names."""

    __slots__ = ()

    def path(self, owner: str) -> str:
        return f"the structure of {owner or 'a network'}"


class OwnSlot(AttributeSlot):
    """An attribute of an instance that may hide the method of its class: only its presence is compared."""

    __slots__ = ()

    @staticmethod
    def look(owner: Observed, name: Any) -> Any:
        return True if name in getattr(owner.value, "__dict__", ()) else MISSING

    def absence(self, owner: str, source: Source) -> tuple[str, str] | None:
        is_missing = self.value is MISSING
        condition = f"({self.name!r} in {owner}.__dict__) is {is_missing}"
        return "of its class" if is_missing else "its own", condition


class PresenceSlot(AttributeSlot):
    """The presence of an attribute, whatever its value."""

    __slots__ = ()

    @staticmethod
    def look(owner: Observed, name: Any) -> Any:
        value = owner.attribute(name)
        return value if value is MISSING or value is UNKNOWN else True

    def absence(self, owner: str, source: Source) -> tuple[str, str] | None:
        is_missing = self.value is MISSING
        return "not there" if is_missing else "there", f"({self.presence(owner, source)}) is {is_missing}"


class HasItemSlot(ItemSlot):
    """The presence of a key, whatever its value."""

    __slots__ = ()

    @staticmethod
    def look(owner: Observed, name: Any) -> Any:
        return True if name in owner.value else MISSING

    def absence(self, owner: str, source: Source) -> tuple[str, str] | None:
        is_missing = self.value is MISSING
        return "not there" if is_missing else "there", f"({self.presence(owner, source)}) is {is_missing}"


class NamesSlot(Slot):
    """The names of the attributes that an object has itself."""

    __slots__ = ()

    @staticmethod
    def look(owner: Observed, name: Any) -> Any:
        return tuple(getattr(owner.value, "__dict__", ()))

    def has_changed(self, owner: Observed) -> bool:
        return bool(self.look(owner, self.name) != self.value)

    def absence(self, owner: str, source: Source) -> tuple[str, str] | None:
        names = ", ".join(map(str, self.value)) or "none"
        return names, f"(*{owner}.__dict__,) != {source(self.value)}"

    def path(self, owner: str) -> str:
        return f"names of {owner or 'the function'}"


class SpecialsSlot(Slot):
    """The special methods that a class has itself, which operators and functions of Python find without their names.

    A name that is added changes the number of names, which is compared fast, in the dict that a class keeps. Methods
    that run are read by themselves.
    """

    __slots__ = ("names",)

    def __init__(self, name: Any, value: Any, where: tuple[str, int]) -> None:
        self.names, special = value
        super().__init__(name, special, where)

    @staticmethod
    def look(owner: Observed, name: Any) -> Any:
        return vars(owner.value), special_names(owner.value)

    def has_changed(self, owner: Observed) -> bool:
        return bool(special_names(owner.value) != self.value)

    def absence(self, owner: str, source: Source) -> tuple[str, str] | None:
        is_resized = f"len({source(self.names)}) != {len(self.names)}"
        return "as they were", f"{is_resized} and special_names({owner}) != {source(self.value)}"

    def path(self, owner: str) -> str:
        return f"special methods of {owner}"


class ClassSlot(Slot):
    """An attribute of a class as its dict has it, which accessing it would not give."""

    __slots__ = ()

    @staticmethod
    def look(owner: Observed, name: Any) -> Any:
        return static(owner.value, name)

    def expression(self, owner: str, source: Source) -> str:
        return f"static({owner}, {self.name!r})"

    def presence(self, owner: str, source: Source) -> str:
        return f"static({owner}, {self.name!r}) is not {source(MISSING)}"

    def path(self, owner: str) -> str:
        return f"{owner}.{self.name}"


class CallSlot(Slot):
    """The items that a method without arguments gives, which changes nothing."""

    __slots__ = ()

    @staticmethod
    def look(owner: Observed, name: Any) -> Any:
        return tuple(getattr(owner.value, name)())

    def has_changed(self, owner: Observed) -> bool:
        return bool(self.look(owner, self.name) != self.value)

    def absence(self, owner: str, source: Source) -> tuple[str, str] | None:
        return shown(self.value), f"(*{owner}.{self.name}(),) != {source(self.value)}"

    def path(self, owner: str) -> str:
        return f"{owner}.{self.name}()"


class ExtentSlot(Slot):
    """The keys of a dict, or the number of elements of a list, which an assignment in a replay has to find again."""

    __slots__ = ()

    @staticmethod
    def look(owner: Observed, name: Any) -> Any:
        return tuple(owner.value) if type(owner.value) in MAPPINGS else len(owner.value)

    def has_changed(self, owner: Observed) -> bool:
        return bool(self.look(owner, self.name) != self.value)

    def absence(self, owner: str, source: Source) -> tuple[str, str] | None:
        if type(self.value) is int:
            return f"{self.value} elements", f"len({owner}) != {self.value}"
        return f"{len(self.value)} keys", f"(*{owner},) != {source(self.value)}"

    def path(self, owner: str) -> str:
        return owner


class LengthSlot(Slot):
    """The number of elements of a list or a deque, which code asks for."""

    __slots__ = ()

    @staticmethod
    def look(owner: Observed, name: Any) -> Any:
        return len(owner.value)

    def expression(self, owner: str, source: Source) -> str:
        return f"len({owner})"

    def path(self, owner: str) -> str:
        return f"len({owner})"


class TruthSlot(Slot):
    """The truth of a list or a deque: whether it has elements."""

    __slots__ = ()

    @staticmethod
    def look(owner: Observed, name: Any) -> Any:
        return bool(owner.value)

    def absence(self, owner: str, source: Source) -> tuple[str, str] | None:
        return ("not empty", f"not {owner}") if self.value else ("empty", owner)

    def path(self, owner: str) -> str:
        return owner


class StateSlot(Slot):
    """The state of an object of the standard library."""

    __slots__ = ()

    @staticmethod
    def look(owner: Observed, name: Any) -> Any:
        return library.state_of(owner.value)

    def has_changed(self, owner: Observed) -> bool:
        return not library.has_state_still(owner.value, self.value)

    def absence(self, owner: str, source: Source) -> tuple[str, str] | None:
        return "as it was", f"not has_state_still({owner}, {source(self.value)})"

    def path(self, owner: str) -> str:
        return f"the state of {owner}"


class DrawsSlot(Slot):
    """The state of a generator of random numbers, where the function looks at it."""

    __slots__ = ()

    @staticmethod
    def look(owner: Observed, name: Any) -> Any:
        return state_of(owner.value)

    def absence(self, owner: str, source: Source) -> tuple[str, str] | None:
        return "as it was", f"state_of({owner}) != {source(self.value)}"

    def path(self, owner: str) -> str:
        return f"the state of {owner}"


class MroSlot(Slot):
    """The classes that a class derives from, in the order in which attributes are looked for."""

    __slots__ = ()

    @staticmethod
    def look(owner: Observed, name: Any) -> Any:
        return owner.value.__mro__

    def has_changed(self, owner: Observed) -> bool:
        return self.look(owner, self.name) is not self.value

    def absence(self, owner: str, source: Source) -> tuple[str, str] | None:
        names = ", ".join(kind.__name__ for kind in self.value)
        return names, f"{owner}.__mro__ is not {source(self.value)}"

    def path(self, owner: str) -> str:
        return f"order of the bases of {owner}"


class RegisteredSlot(Slot):
    """The classes that are registered with an abstract one."""

    __slots__ = ()

    @staticmethod
    def look(owner: Observed, name: Any) -> Any:
        return registered(owner.value)

    def has_changed(self, owner: Observed) -> bool:
        return bool(self.look(owner, self.name) != self.value)

    def absence(self, owner: str, source: Source) -> tuple[str, str] | None:
        return "as it was", f"registered({owner}) != {source(self.value)}"

    def path(self, owner: str) -> str:
        return f"what is registered with {owner}"


class SuperSlot(Slot):
    """An attribute of ``super()`` of a class; its name is the class after which it is looked for, and its name."""

    __slots__ = ()

    @staticmethod
    def look(owner: Observed, name: Any) -> Any:
        after, attribute = name
        bases = owner.value.__mro__
        if after not in bases:
            return UNKNOWN
        for base in bases[bases.index(after) + 1 :]:
            if attribute in base.__dict__:
                raw = base.__dict__[attribute]
                is_plain = isinstance(raw, _PLAIN) or not hasattr(type(raw), "__get__")
                return getattr(super(after, owner.value), attribute) if is_plain else UNKNOWN
        return MISSING

    def expression(self, owner: str, source: Source) -> str:
        return _attribute(f"super({source(self.name[0])}, {owner})", self.name[1])

    def presence(self, owner: str, source: Source) -> str:
        return f"hasattr(super({source(self.name[0])}, {owner}), {self.name[1]!r})"

    def path(self, owner: str) -> str:
        return f"{self.name[1]} of super() in {self.name[0].__name__}"


class ClosureSlot(Slot):
    """A variable of an enclosing function; its name is its number and its name in the source."""

    __slots__ = ()

    @staticmethod
    def look(owner: Observed, name: Any) -> Any:
        try:
            return owner.value.__closure__[name[0]].cell_contents
        except (ValueError, TypeError, IndexError):
            return MISSING

    def expression(self, owner: str, source: Source) -> str:
        return f"{owner}.__closure__[{self.name[0]}].cell_contents"

    def presence(self, owner: str, source: Source) -> str:
        return f"is_set({owner}, {self.name[0]})"

    def path(self, owner: str) -> str:
        return f"closure {self.name[1]}"


def presence_of(owner: Observed, kind: type[Slot], name: Any) -> type[Slot]:
    """Return the kind of slot that says whether there is something to delete at a place."""
    if kind is AttributeSlot:
        is_slot = type(static(type(owner.value), name)) is types.MemberDescriptorType
        return PresenceSlot if is_slot else OwnSlot
    return HasItemSlot if kind is ItemSlot else kind


def holder_of(owner: Observed, kind: type[Slot], name: Any) -> tuple[Any, str] | None:
    """Return the cell or the namespace that holds the value of a slot, which other objects have too, and the name."""
    if kind is ClosureSlot:
        cells = owner.value.__closure__ or ()
        return (cells[name[0]], "") if name[0] < len(cells) else None
    if kind is GlobalSlot:
        return owner.value, name
    if kind is AttributeSlot and isinstance(owner.value, types.ModuleType):
        return vars(owner.value), name
    return None


class HeldSlot(Slot):
    """The value of a context variable, the object of a weak reference, the dict of a view of one."""

    __slots__ = ()

    @staticmethod
    def look(owner: Observed, name: Any) -> Any:
        return held_by(owner.value)

    def expression(self, owner: str, source: Source) -> str:
        return f"held_by({owner})"

    def absence(self, owner: str, source: Source) -> tuple[str, str] | None:
        return None

    def path(self, owner: str) -> str:
        return f"what {owner} holds"


class _CopySlot(Slot):
    """Elements that each access reads into a new object, which is therefore compared by its elements."""

    __slots__ = ()

    def path(self, owner: str) -> str:
        return f"what {owner} holds"

    def has_changed(self, owner: Observed) -> bool:
        now = self.look(owner, self.name)
        if is_atom(now):
            return super().has_changed(owner)
        return not same_elements(tuple(elements(self.value)), tuple(elements(now)))


class BuiltinSlot(_CopySlot):
    """The value of an object whose class derives from a builtin one, which is the name of the slot."""

    __slots__ = ()

    @staticmethod
    def look(owner: Observed, name: Any) -> Any:
        return plain(owner.value, name)

    def expression(self, owner: str, source: Source) -> str:
        return f"plain({owner}, {source(self.name)})"


class RegistrySlot(_CopySlot):
    """The functions among which functools.singledispatch chooses."""

    __slots__ = ()

    @staticmethod
    def look(owner: Observed, name: Any) -> Any:
        return tuple(owner.value.registry.values())

    def expression(self, owner: str, source: Source) -> str:
        return f"tuple({owner}.registry.values())"


SLOTS: dict[str, type[Slot]] = {
    "attr": AttributeSlot, "item": ItemSlot, "global": GlobalSlot, "module": ModuleSlot,
}  # fmt: skip
"""By the kinds of steps of an access path."""
