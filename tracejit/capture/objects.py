# SPDX-License-Identifier: BSD-3-Clause
"""Things and cells: what kinds of objects there are, and what a place in one holds, without running the user's code.

A thing is an object that is known by identity; a cell is a place in it that holds a value: a global name, an
attribute, an item, a variable of an enclosing function.
"""

import builtins
import collections
import contextvars
import enum
import functools
import gc
import itertools
import operator
import sys
import types
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from tracejit.array import dlarray
from tracejit.record import monitor


class _Mark:
    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


MISSING = _Mark("nothing")  # what a cell holds that is not there
UNKNOWN = _Mark("computed")  # the value of a property, which runs code that is watched

ATOMS = frozenset({
    type(None), bool, int, float, complex, str, bytes, type(Ellipsis), type(NotImplemented), range, slice,
})  # fmt: skip
SEQUENCES = frozenset({list, tuple, collections.deque})
MAPPINGS = frozenset({dict, collections.OrderedDict, collections.defaultdict, collections.Counter})
SETS = frozenset({set, frozenset})
_CONTAINERS = SEQUENCES | MAPPINGS | SETS
_MOST_REMEMBERED = 64  # results of a cached function that are compared: the latest
_CONTENT_LIMIT = 1 << 16  # bytes of an array that are compared at each call
_HOLDERS = frozenset({
    contextvars.ContextVar, weakref.ref, weakref.KeyedRef, types.MappingProxyType,
    type({}.keys()), type({}.values()), type({}.items()),
})  # fmt: skip

# Attributes of things whose names are read in another way than those of instances.
PARTS: dict[type, tuple[str, ...]] = {
    types.MethodType: ("__func__", "__self__"),
    functools.partial: ("func", "args", "keywords"),
    property: ("fget",),
}


class Cell:
    """A place in a thing, and what it held when it was first met."""

    __slots__ = ("is_read", "kind", "name", "value", "where")

    def __init__(self, kind: str, name: Any, value: Any, where: tuple[str, int]) -> None:
        self.kind = kind
        self.name = name
        self.value = value
        self.is_read = False
        self.where = where


class Thing:
    """An object, its cells, and for a container that is read as a whole what it held; for an array its bytes.

    `tape` is the Value of a dlarray when it was met, and `data` what it held. `memory` is the dict in which a function
    with a cache (functools.lru_cache) remembers results.
    """

    __slots__ = (
        "cells", "computed", "content", "data", "held", "inside", "is_computed_with", "is_indexed", "is_loose",
        "is_whole", "kind", "memory", "meta", "passed", "tape", "value", "where",
    )  # fmt: skip

    def __init__(self, value: Any, kind: str) -> None:
        self.value = value
        self.kind = kind
        self.cells: dict[tuple[str, Any], Cell] = {}
        self.held: tuple[Any, ...] | None = None
        self.content: bytes | None = None  # of an ndarray whose elements plain NumPy can read
        self.meta = False  # whether its size or dtype was asked for
        self.is_indexed = (
            False  # whether something that is no constant selects of it; a view may enter the trace
        )
        self.is_computed_with = False  # whether plain NumPy did read it, whoever else did
        self.computed: list[Any] = []  # places where plain NumPy did, if no operation of the trace did
        self.passed: list[Any] = []  # places where it is an argument of what is not watched
        self.inside: list[Any] = []  # arrays that what is not watched, such as a queue, can give away; kept
        self.is_loose = (
            False  # whether the elements of an ndarray can get elsewhere in ways that are not followed
        )
        self.is_whole = False
        self.memory: dict[Any, Any] | None = None
        self.where = ("", 0)
        self.data = data_of(value) if kind == "array" else None
        self.tape = value._value if type(value) is dlarray else None

    @property
    def is_large(self) -> bool:
        """Whether an array is too large to be compared at each call."""
        return self.kind == "array" and data_of(self.value).nbytes > _CONTENT_LIMIT


def data_of(array: Any) -> np.ndarray:
    """Return the data of a dlarray or an ndarray."""
    return array._data if type(array) is dlarray else array


def is_atom(value: Any) -> bool:
    """Return whether a value is known by its type and value and holds nothing that changes."""
    kind = type(value)
    if kind in ATOMS or value is MISSING:
        return True
    return isinstance(value, (np.generic, np.dtype, enum.Enum)) and not isinstance(value, np.object_)


def is_member(value: Any) -> bool:
    """Return whether a value is a member of an enumeration of the user's, which can have attributes that change."""
    return isinstance(value, enum.Enum) and is_user_class(type(value))


def is_closed(value: Any) -> bool:
    """Return whether a value is an atom of which nothing can be read that changes."""
    return type(value) in ATOMS or (is_atom(value) and not is_member(value))


def differs(value: Any, known: Any) -> bool:
    """Return whether an atom is another than `known`, in type or value; NaN equals NaN, and 0.0 not -0.0."""
    if value is known:
        return False
    if type(value) is not type(known):
        return True
    if isinstance(known, (float, complex, np.inexact)):
        return repr(value) != repr(known)
    return bool(value != known)


def kind_of(value: Any) -> str:
    """Return how a value is looked into."""
    kind = type(value)
    if is_atom(value):
        return "member" if is_member(value) else "atom"
    if kind is dlarray or isinstance(value, np.ndarray):
        if kind is np.ndarray and value.dtype == object:
            return "container"
        return "array" if kind is dlarray or kind is np.ndarray else "opaque"
    if hasattr(kind, "__dlpack__"):
        return "foreign"
    if kind in _CONTAINERS or (isinstance(value, tuple) and hasattr(kind, "_fields")):
        return "container"
    if kind is types.FunctionType:
        return "function"
    if kind is types.ModuleType:
        return "module"
    if isinstance(value, type):
        return "class" if is_user_class(value) else "opaque"
    if kind in PARTS:
        return "parts"
    if kind in _HOLDERS:
        return "holder"
    if getattr(kind, "evaluates_itself", False):
        return "accelerated"
    if is_user_class(kind):
        return "object"
    if hasattr(value, "__wrapped__"):
        return "wrapper"
    return "object" if hasattr(value, "__dict__") and not callable(value) else "opaque"


def is_user_class(kind: type) -> bool:
    """Return whether a class is of Python code that is watched."""
    module = sys.modules.get(kind.__module__)
    made_by_python = bool(kind.__flags__ & 1 << 9)
    return made_by_python and (module is None or not is_library_module(module))


def elements(container: Any) -> Iterator[Any]:
    """Return what a container holds, in its order; keys and values of a mapping."""
    if type(container) in MAPPINGS:
        return itertools.chain.from_iterable(container.items())
    return iter(container.flat if type(container) is np.ndarray else container)


def values_in(container: Any) -> list[Any]:
    """Return the values in a container."""
    return [*container.values()] if type(container) in MAPPINGS else [*elements(container)]


def is_library_module(module: types.ModuleType) -> bool:
    """Return whether a module is NumPy's, tracejit's or Python's own."""
    file = getattr(module, "__file__", None)
    if file is None:  # of C, or made by a program: __main__, a notebook
        return module.__name__ in sys.builtin_module_names
    return monitor.is_library(file)


def static(kind: type, name: str) -> Any:
    for base in kind.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return MISSING


def look(thing: Thing, kind: str, name: Any) -> Any:
    """Return what a cell holds now, without running any code of the user's."""
    value = thing.value
    if kind == "global":
        return value.get(name, MISSING)
    if kind == "module":
        return value.get(name, MISSING)
    if kind == "closure":
        try:
            return value.__closure__[name[0]].cell_contents
        except (ValueError, TypeError, IndexError):
            return MISSING
    if kind == "item":
        return _item(value, name)
    if kind == "held":
        return held_by(value)
    if kind == "base":
        return plain(value, name)
    if kind == "registry":
        return tuple(value.registry.values())
    if kind == "own":
        return True if name in getattr(value, "__dict__", ()) else MISSING
    if thing.kind in ("object", "member"):
        return _attribute(value, name)
    if thing.kind == "module":
        if is_library_module(value):
            return UNKNOWN
        found = vars(value).get(name, MISSING)
        return UNKNOWN if found is MISSING and "__getattr__" in vars(value) else found
    if thing.kind == "class":
        raw = static(value, name)
        if raw is MISSING:
            return UNKNOWN
        if isinstance(raw, (staticmethod, classmethod)):
            return getattr(value, name)
        if isinstance(raw, types.FunctionType) or not hasattr(type(raw), "__get__"):
            return raw
        return raw if isinstance(raw, property) or hasattr(raw, "_function") else UNKNOWN
    if thing.kind in ("function", "parts", "accelerated", "wrapper"):
        return getattr(value, name, MISSING) if name in _READABLE else UNKNOWN
    return UNKNOWN


_READABLE = frozenset({
    "__code__", "__defaults__", "__kwdefaults__", "_function", "__wrapped__", *itertools.chain(*PARTS.values()),
})  # fmt: skip


def _item(value: Any, name: Any) -> Any:
    kind = type(value)
    try:
        if kind in MAPPINGS:
            return dict.get(value, name, MISSING)
        if kind in SEQUENCES or kind_of(value) == "container":
            is_one = isinstance(name, int) and getattr(value, "ndim", 1) == 1
            return value[name] if is_one else UNKNOWN
    except (IndexError, TypeError):
        return MISSING
    return UNKNOWN


def _attribute(value: Any, name: str) -> Any:
    raw = static(type(value), name)
    if isinstance(raw, (types.MemberDescriptorType, types.GetSetDescriptorType)):
        return getattr(value, name, MISSING)
    if raw is not MISSING and hasattr(type(raw), "__set__"):
        return UNKNOWN
    own = getattr(value, "__dict__", {})
    if name in own:
        return own[name]
    if raw is MISSING:
        return UNKNOWN if hasattr(type(value), "__getattr__") else MISSING
    return UNKNOWN if hasattr(type(raw), "__get__") else raw


def held_by(holder: Any) -> Any:
    """Return what a context variable holds, or a weak reference, or the dict that is looked at, or MISSING."""
    if isinstance(holder, weakref.ref):
        return holder()
    if type(holder) is not contextvars.ContextVar:
        return gc.get_referents(holder)[0]
    try:
        return holder.get()
    except LookupError:
        return MISSING


def plain(value: Any, base: Any) -> Any:
    """Return an object of a class that was derived from one of Python's as one of that."""
    if base is dict:
        return dict.copy(value)
    if base in (list, set, frozenset):
        return base(base.__iter__(value))
    return base.__getnewargs__(value)[0]


def remembered(thing: Thing) -> list[tuple[Any, Any, Any]]:
    """Return the latest results of a function with a cache: their keys, what the cache has for them, and themselves."""
    memory = thing.memory or {}
    keys = [*memory][-_MOST_REMEMBERED:]
    entries = [memory.get(key, MISSING) for key in keys]
    results = entries
    if (
        type(next(iter(entries), None)).__name__ == "_lru_list_elem"
    ):  # of a bounded cache, which has the links itself
        parts = gc.get_referents(thing.value)
        after = {id(part): behind for part, behind in itertools.pairwise(parts)}
        results = [after.get(id(key), MISSING) for key in keys]
    return [*zip(keys, entries, results, strict=True)]


def changed(thing: Thing, cell: Cell) -> bool:
    """Return whether a cell holds something else than when it was met."""
    now = look(thing, cell.kind, cell.name)
    if cell.kind in ("registry", "base") and not is_atom(now):
        return not same_elements(tuple(elements(cell.value)), tuple(elements(now)))
    if now is cell.value:
        return False
    if is_atom(cell.value) or is_atom(now):
        return differs(now, cell.value)
    if type(now) is types.MethodType and type(cell.value) is types.MethodType:  # made anew at each look
        return now.__func__ is not cell.value.__func__
    return True


def same_elements(held: tuple[Any, ...], now: tuple[Any, ...]) -> bool:
    """Return whether a container holds what it held: the same objects, or equal atoms."""
    if len(held) != len(now):
        return False
    return all(map(operator.is_, held, now)) or all(
        a is b or (is_atom(a) and not differs(b, a)) for a, b in zip(held, now, strict=True)
    )


def is_builtin(name: str) -> bool:
    """Return whether a name is one of Python's own."""
    return hasattr(builtins, name)
