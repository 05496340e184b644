# SPDX-License-Identifier: BSD-3-Clause
"""Inspection of values without running the user's code: atoms, containers, attributes, and comparisons of them."""

import abc
import collections
import contextvars
import enum
import gc
import itertools
import operator
import types
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from tracejit.array import dlarray
from tracejit.record.monitor import is_user_class
from tracejit.record.side_effects import MEMORIES


class _Mark:
    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


MISSING = _Mark("nothing")  # what a slot holds that does not exist
UNKNOWN = _Mark("computed")  # the value of a property or of __getattr__, whose code is watched instead

ATOMS = frozenset({
    type(None), bool, int, float, complex, str, bytes, type(Ellipsis), type(NotImplemented), range, slice,
})  # fmt: skip
MAPPINGS = frozenset({dict, collections.OrderedDict, collections.defaultdict, collections.Counter})
SETS = frozenset({set, frozenset})
SEQUENCES = (list, collections.deque)
CONTAINERS = frozenset({tuple, *SEQUENCES}) | MAPPINGS | SETS
DATA = (types.MemberDescriptorType, types.GetSetDescriptorType)  # of attributes that classes in C keep
MOST_INSIDE = 1_000  # objects that are searched for arrays in something that is not watched
_NOT_INSIDE = (type, types.ModuleType, types.FunctionType, types.CodeType, types.FrameType)
# Entries that Python puts into a class when they are first asked for.
_OF_ANNOTATIONS = frozenset({"__annotations__", "__annotations_cache__", "__annotate_func__"})
# A property that gives what the object holds under the same name.
_COEFFICIENTS = np.poly1d.__dict__["coeffs"]
_MOST_REMEMBERED = 64  # results of a cached function that are compared: the latest


def data_of(array: Any) -> np.ndarray:
    """Return the data of a dlarray or an ndarray."""
    return array._data if type(array) is dlarray else array


def is_atom(value: Any) -> bool:
    """Return whether a value is described by its type and value and holds nothing that changes."""
    kind = type(value)
    if kind in ATOMS or value is MISSING:
        return True
    return isinstance(value, (np.generic, np.dtype, enum.Enum)) and not isinstance(
        value, (np.object_, np.void)
    )


def is_hashed_by_python(key: Any) -> bool:
    """Return whether no code of a user runs when a key of a dict is looked for."""
    if type(key) is tuple:
        return all(map(is_hashed_by_python, key))
    return is_atom(key) or static(type(key), "__hash__") is object.__hash__


def is_member(value: Any) -> bool:
    """Return whether a value is a member of a user's enumeration, which can have attributes that change."""
    return isinstance(value, enum.Enum) and is_user_class(type(value))


def is_closed(value: Any) -> bool:
    """Return whether a value is an atom without attributes that change."""
    return type(value) in ATOMS or (is_atom(value) and not is_member(value))


def is_container(value: Any) -> bool:
    """Return whether a value is a builtin container, a named tuple or an ndarray of objects."""
    kind = type(value)
    if kind is np.ndarray:
        return bool(value.dtype == object)
    return kind in CONTAINERS or (
        isinstance(value, tuple) and hasattr(kind, "_fields") and not is_atom(value)
    )


def differs(value: Any, expected: Any) -> bool:
    """Return whether two atoms differ in type or value; NaN equals NaN, and 0.0 differs from -0.0."""
    if value is expected:
        return False
    if type(value) is not type(expected):
        return True
    if isinstance(expected, (float, complex, np.inexact)):
        return repr(value) != repr(expected)
    if type(expected) in (range, slice):
        return any(
            differs(getattr(value, name), getattr(expected, name)) for name in ("start", "stop", "step")
        )
    if isinstance(expected, np.dtype) and value.metadata != expected.metadata:
        return True
    return bool(value != expected)


def elements(container: Any) -> Iterator[Any]:
    """Return the elements of a container in its order; keys and values of a mapping."""
    if type(container) in MAPPINGS:
        return itertools.chain.from_iterable(container.items())
    return iter(container.flat if type(container) is np.ndarray else container)


def values_in(container: Any) -> list[Any]:
    """Return the values in a container."""
    return [*container.values()] if type(container) in MAPPINGS else [*elements(container)]


def same_elements(first: tuple[Any, ...], second: tuple[Any, ...]) -> bool:
    """Return whether two containers hold the same objects, or equal atoms."""
    if len(first) != len(second):
        return False
    return all(map(operator.is_, first, second)) or all(
        a is b or (is_atom(a) and not differs(b, a)) for a, b in zip(first, second, strict=True)
    )


def user_classes(kind: type) -> list[type]:
    """Return a class and those that it derives from, as far as they are written in Python code that is watched."""
    return [base for base in kind.__mro__ if is_user_class(base)] if is_user_class(kind) else []


def is_written_in_place(value: Any) -> bool:
    """Return whether ``+=`` computes with what is in a value, and not only with the name or attribute that holds it."""
    kind = type(value)
    is_memory = kind is dlarray or issubclass(kind, np.ndarray) or kind in MEMORIES
    return is_memory or kind in MAPPINGS or kind in SEQUENCES or is_user_class(kind)


def static(kind: type, name: str) -> Any:
    """Return an attribute of a class as its dict has it, or MISSING."""
    for base in kind.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return MISSING


def special_names(kind: type) -> tuple[str, ...]:
    """Return the names in a class of the user's that Python looks for, as an operator does, or that it has itself."""
    above = [base for base in kind.__mro__[1:] if not is_user_class(base)]
    return tuple([
        name for name in vars(kind) if _is_special(name) or any(name in base.__dict__ for base in above)
    ])  # fmt: skip


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__") and name not in _OF_ANNOTATIONS


def instance_attribute(value: Any, name: str) -> Any:
    """Return an attribute of an object, MISSING, or UNKNOWN where Python code would compute it."""
    raw = static(type(value), name)
    if isinstance(raw, (types.MemberDescriptorType, types.GetSetDescriptorType)):
        return getattr(value, name, MISSING)
    if raw is not MISSING and raw is not _COEFFICIENTS and hasattr(type(raw), "__set__"):
        return UNKNOWN
    own = getattr(value, "__dict__", {})
    if name in own:
        return own[name]
    if raw is MISSING:
        return UNKNOWN if hasattr(type(value), "__getattr__") else MISSING
    return UNKNOWN if hasattr(type(raw), "__get__") else raw


def class_data(value: Any) -> dict[str, Any]:
    """Return the arrays and atoms that an object has by its class, until it gets attributes of its own."""
    own, kinds = own_attributes(value), reversed(type(value).__mro__)
    entries = {name: raw for kind in kinds for name, raw in vars(kind).items()}
    return {
        name: raw
        for name, raw in entries.items()
        if name not in own and not name.startswith("__") and (type(raw) is np.ndarray or is_atom(raw))
    }


def own_attributes(value: Any) -> dict[str, Any]:
    """Return the attributes that an object has itself, also those in slots of its classes."""
    attributes = getattr(value, "__dict__", None)
    own = dict(attributes) if type(attributes) is dict else {}  # list[int] answers with those of the class
    for kind in type(value).__mro__:
        for name, raw in vars(kind).items() if "__slots__" in vars(kind) else ():
            if type(raw) is types.MemberDescriptorType and hasattr(value, name):
                own[name] = getattr(value, name)
    return own


def item(value: Any, key: Any) -> Any:
    """Return an item of a container, MISSING, or UNKNOWN where it is not plain indexing."""
    kind = type(value)
    try:
        if kind in MAPPINGS:
            return dict.get(value, key, MISSING)
        if is_container(value):
            is_one = isinstance(key, int) and getattr(value, "ndim", 1) == 1
            return value[key] if is_one else UNKNOWN
    except (IndexError, TypeError):
        return MISSING
    return UNKNOWN


def held_by(holder: Any) -> Any:
    """Return the value of a context variable, the object of a weak reference or the dict of a view of one."""
    if isinstance(holder, weakref.ref):
        return holder()
    if type(holder) is types.CellType:
        try:
            return holder.cell_contents
        except ValueError:
            return MISSING
    if type(holder) is not contextvars.ContextVar:
        return gc.get_referents(holder)[0]
    try:
        return holder.get()
    except LookupError:
        return MISSING


def registered(kind: Any) -> Any:
    """Return weak references to the classes that are registered with an abstract one."""
    return abc._get_dump(kind)[0]  # type: ignore[attr-defined]


def plain(value: Any, base: Any) -> Any:
    """Return an object of a class derived from a builtin one as an object of the builtin class."""
    if base is dict:
        return dict.copy(value)
    if base in (list, set, frozenset, collections.deque):
        return base(base.__iter__(value))
    return base.__getnewargs__(value)[0]


def cached_results(cached: Any, memory: dict[Any, Any]) -> list[tuple[Any, Any, Any]]:
    """Return the latest results of functools.lru_cache: keys, the entries of its dict for them, and the results."""
    keys = [*memory][-_MOST_REMEMBERED:]
    entries = [memory.get(key, MISSING) for key in keys]
    results = entries
    if type(next(iter(entries), None)).__name__ == "_lru_list_elem":
        # A bounded cache keeps a linked list: the cache refers to each key and then to its result.
        parts = gc.get_referents(cached)
        following = {id(part): behind for part, behind in itertools.pairwise(parts)}
        results = [following.get(id(key), MISSING) for key in keys]
    return [*zip(keys, entries, results, strict=True)]


def arrays_inside(value: Any) -> list[Any]:
    """Return the arrays held by something that Python code does not look into: a queue, an iterator."""
    arrays: list[Any] = []
    waiting = collections.deque([value])
    seen = {id(value)}
    while waiting and len(seen) < MOST_INSIDE:
        for part in gc.get_referents(waiting.popleft()):
            kind = type(part)  # a weak proxy may tell the class of nothing
            if issubclass(kind, (np.ndarray, dlarray)):
                arrays.append(part)
            elif id(part) not in seen and kind not in ATOMS and not issubclass(kind, _NOT_INSIDE):
                seen.add(id(part))
                waiting.append(part)
    return arrays
