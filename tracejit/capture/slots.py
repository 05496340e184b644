# SPDX-License-Identifier: BSD-3-Clause
"""The places in an object that hold a value, one class for each way to read one.

A slot knows what it holds now, how generated source reads it, how the user's code writes it, and whether its value has
changed.
"""

import builtins
from typing import Any

from tracejit.capture.observed import Observed, Slot, Source
from tracejit.capture.values import MISSING, elements, held_by, is_atom, item, plain, same_elements

DEFAULTS = "defaults"
# Attributes that lead on to what the same name of the user's stands for.
_SAME_NAME = frozenset({"__code__", "__func__", "_function", "__wrapped__", "fget", "func"})


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


class GlobalSlot(ItemSlot):
    """A global name, in the dict of its module."""

    __slots__ = ()

    @staticmethod
    def look(owner: Observed, name: Any) -> Any:
        return owner.value.get(name, MISSING)

    def path(self, owner: str) -> str:
        return f"global {self.name}"

    def absence(self, owner: str, source: Source) -> tuple[str, str] | None:
        absence = super().absence(owner, source)
        return ("Python's own", absence[1]) if absence and hasattr(builtins, self.name) else absence


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
        return owner.attribute(name)

    def expression(self, owner: str, source: Source) -> str:
        return f"{owner}.{self.name}"

    def presence(self, owner: str, source: Source) -> str:
        return f"hasattr({owner}, {self.name!r})"

    def path(self, owner: str) -> str:
        if self.name in ("__defaults__", "__kwdefaults__"):
            return f"{DEFAULTS} of {owner}" if owner else DEFAULTS
        if self.name == "__self__":
            return "self"
        if self.name in _SAME_NAME:
            return owner
        return f"{owner}.{self.name}" if owner else str(self.name)


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
    """Elements that are read into a new object at each access, so that it is compared by its elements."""

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
