# SPDX-License-Identifier: BSD-3-Clause
"""Reading and writing at the places of objects, without running the user's code."""

import collections
import types
from contextlib import suppress
from typing import Any

from tracejit.capture.growth import ElementsSlot, GrowthSlot, Held, append
from tracejit.capture.observed import Slot
from tracejit.capture.slots import AttributeSlot, ClosureSlot, GlobalSlot, ItemSlot
from tracejit.capture.values import MAPPINGS, MISSING, static
from tracejit.record.argument_containers import put_contents


def look(owner: Any, kind: type[Slot], name: Any) -> Any:
    """Return what put() would replace, or MISSING."""
    if kind is ClosureSlot:
        try:
            return owner.__closure__[name[0]].cell_contents
        except ValueError:
            return MISSING
    if kind is GrowthSlot:
        return Held(owner)
    if kind is not AttributeSlot:
        return owner.get(name, MISSING) if isinstance(owner, dict) else owner[name]
    own = getattr(owner, "__dict__", {})
    if name in own or isinstance(owner, type):
        return own.get(name, MISSING)
    is_slot = type(static(type(owner), name)) is types.MemberDescriptorType
    return getattr(owner, name, MISSING) if is_slot else MISSING


def present(owner: Any, kind: type[Slot], name: Any) -> Any:
    """Return the value at a place, where the user's code finds it: an instance may have that of its class."""
    if kind is AttributeSlot:
        return getattr(owner, name)
    return owner[name] if kind is ItemSlot else look(owner, kind, name)


def put(owner: Any, kind: type[Slot], name: Any, value: Any) -> None:
    """Put a value where a slot of an object is, without running the user's code; MISSING empties it."""
    if kind is ClosureSlot:
        cell = owner.__closure__[name[0]]
        if value is MISSING:
            del cell.cell_contents
        else:
            cell.cell_contents = value
    elif kind is AttributeSlot:
        put_attribute(owner, name, value)
    elif kind is GrowthSlot:
        append(owner, value)
    elif kind is ElementsSlot:
        put_contents(owner, value)
    elif value is MISSING:
        owner.pop(name, None)
    elif type(owner) is collections.OrderedDict:  # which keeps its order itself
        collections.OrderedDict.__setitem__(owner, name, value)
    elif type(owner) in MAPPINGS:
        dict.__setitem__(owner, name, value)
    else:
        owner[name] = value


def put_attribute(owner: Any, name: str, value: Any) -> None:
    """Set an attribute, or delete it if the value is MISSING, without running the user's code."""
    if isinstance(owner, types.ModuleType):
        put(vars(owner), GlobalSlot, name, value)
        return
    if value is MISSING:
        with suppress(AttributeError):  # another path led to the same place
            _written_in_c(owner, "__delattr__")(owner, name)
        return
    kind: Any = type(owner)
    if kind.__setattr__ is OF_OBJECTS:
        OF_OBJECTS(owner, name, value)
    else:  # a class, or an object with attributes of its own kind, or with a method of the user's
        _written_in_c(owner, "__setattr__")(owner, name, value)


OF_OBJECTS: Any = object.__setattr__
"""The method that sets attributes of objects which have none of their own."""


def _written_in_c(owner: Any, method: str) -> Any:
    """Return a method of an object that is not the user's: object has it, or type, or threading.local."""
    found = (vars(kind).get(method) for kind in type(owner).__mro__)
    return next(each for each in found if type(each) is types.WrapperDescriptorType)


def reorder(space: dict[Any, Any], keys: list[Any]) -> None:
    """Put the given keys of a dict in this order, before all others."""
    keys = [key for key in keys if key in space]
    if [*space][: len(keys)] != keys:
        first = {*keys}
        items = [(key, space[key]) for key in [*keys, *[key for key in space if key not in first]]]
        for key, value in items:
            put(space, ItemSlot, key, MISSING)
            put(space, ItemSlot, key, value)
