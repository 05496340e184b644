# SPDX-License-Identifier: BSD-3-Clause
"""Values that Python code can tell apart, although they may compare equal: 1 and True, 0.0 and -0.0, Decimal("1.0").

A value is described by a token, which is hashable. Values with equal tokens differ in nothing but their identity.
"""

import enum
import sys
import types
import weakref
from typing import Any

import numpy as np

from tracejit.util.text import module_of

_EQUAL = frozenset({int, bool, str, bytes, type(None)})  # equal values of one of these types are the same
_INEXACT = (float, complex, np.inexact)
_SEQUENCES = frozenset({tuple, list, set, frozenset})
_BY_IDENTITY = (
    type, types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType, types.EllipsisType,
    types.NotImplementedType, np.ufunc, np.ndarray,
)  # fmt: skip
_BASES: tuple[Any, ...] = (
    str,
    int,
    bytes,
    float,
    tuple,
    frozenset,
    list,
    dict,
    set,
)  # of classes that add attributes
_CREATED_BY_PYTHON = 1 << 9  # Py_TPFLAGS_HEAPTYPE: the class may come from a class statement
_MOST = 20_000  # values that are looked at


class Same:
    """A value that is equal to itself only."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return type(other) is Same and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


class Detail:
    """The description of a value that distinguishes it from those that are equal to it.

    Attributes:
        value: the value.
        token: the description, by which details compare.
        is_whole: whether all of the value was looked at.
    """

    __slots__ = ("_left", "_seen", "is_whole", "token", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self.is_whole = True
        self._left = _MOST
        self._seen: dict[int, int] = {}  # numbers of the objects around the one that is looked at
        self.token = self._token(value)

    def __eq__(self, other: object) -> bool:
        return type(other) is Detail and self.token == other.token

    def __hash__(self) -> int:
        return hash(self.token)

    def _token(self, value: Any) -> Any:
        kind = type(value)
        if kind in _EQUAL:
            return (kind, value)
        self._left -= 1
        if self._left < 0:
            self.is_whole = False
            return None
        if id(value) in self._seen:
            return ("around", self._seen[id(value)])
        self._seen[id(value)] = len(self._seen)
        try:
            return (kind, *self._parts(kind, value))
        finally:
            del self._seen[id(value)]

    def _parts(self, kind: type, value: Any) -> tuple[Any, ...]:
        if kind in (float, complex) or (isinstance(value, _INEXACT) and isinstance(value, np.generic)):
            return (repr(value),)
        if kind in _SEQUENCES:
            return tuple([self._token(part) for part in value])
        if kind is dict:
            return tuple([self._token(part) for pair in value.items() for part in pair])
        if kind is range or kind is slice:
            return tuple([self._token(getattr(value, name)) for name in ("start", "stop", "step")])
        if isinstance(value, np.dtype):
            return (value, repr(value.metadata))
        if isinstance(value, _BY_IDENTITY) or hasattr(kind, "__dlpack__"):
            return (Same(value),)
        if isinstance(value, weakref.ref):
            return (self._token(value()),)
        if isinstance(value, enum.Enum):
            return (Same(value), *self._attributes(value))
        if not _is_of_python(kind):
            return (*self._base(value), *self._attributes(value))
        hashed_by: Any = kind.__hash__
        by_identity: tuple[Any, ...] = (None, object.__hash__)
        return (_Text(value), Same(value) if hashed_by in by_identity else value)

    def _base(self, value: Any) -> tuple[Any, ...]:
        """Return the token of what an object of a derived class is besides its attributes."""
        for base in _BASES:
            if isinstance(value, base):
                return (self._token(_as(base, value)),)
        return ()

    def _attributes(self, value: Any) -> tuple[Any, ...]:
        kind = type(value)
        names = [
            name
            for base in kind.__mro__
            for name, raw in vars(base).items()
            if type(raw) is types.MemberDescriptorType
        ]
        slots = [(name, getattr(value, name)) for name in names if hasattr(value, name)]
        own = [
            (name, part)
            for name, part in getattr(value, "__dict__", {}).items()
            if not _is_of_enum(value, name)
        ]
        return tuple([(name, self._token(part)) for name, part in (*slots, *own)])


class _Text(str):
    """The text of a value, as repr() gives it, or its type where that fails."""

    __slots__ = ()

    def __new__(cls, value: Any) -> "_Text":
        try:
            return super().__new__(cls, repr(value))
        except Exception:
            return super().__new__(cls, type(value).__name__)


def _as(base: Any, value: Any) -> Any:
    """Return an object of a derived class as one of the builtin class."""
    if base is dict:
        return dict.copy(value)
    if base in _SEQUENCES:
        return base(base.__iter__(value))
    return base.__getnewargs__(value)[0]


def _is_of_enum(value: Any, name: str) -> bool:
    return isinstance(value, enum.Enum) and name in ("_value_", "_name_", "__objclass__", "_sort_order_")


def _is_of_python(kind: type) -> bool:
    """Return whether a class comes with Python, so that repr() tells all of an object, or is written in C."""
    name = module_of(kind).partition(".")[0]
    is_made = bool(kind.__flags__ & _CREATED_BY_PYTHON)
    return not is_made or (name in sys.stdlib_module_names and name != "builtins")


class Keys(tuple[Any, ...]):
    """The keys of a dict in their order, where some are not strings; equal if Python code cannot tell them apart.

    Attributes:
        detail: their description when this was made, where type and value do not tell them apart.
    """

    detail: Detail | None

    def __new__(cls, order: tuple[Any, ...]) -> "Keys":
        """Return the keys; attributes of them can change later."""
        keys = super().__new__(cls, order)
        keys.detail = None if {*map(type, order)} <= _EQUAL else Detail(order)
        return keys

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, tuple) or [*map(type, self)] != [*map(type, other)]:
            return False
        if self.detail is None:
            return tuple.__eq__(self, other)
        return self.detail == (other.detail if isinstance(other, Keys) else Detail(other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(tuple(map(type, self)))


def keys_of(order: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the keys of a dict as a tuple that tells them from keys which are merely equal."""
    return order if {*map(type, order)} <= {str} else Keys(order)
