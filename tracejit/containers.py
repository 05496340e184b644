# SPDX-License-Identifier: BSD-3-Clause
"""Containers that a function takes apart: those of classes derived from Python's, and of classes that users register.

Such a container has the structure (class, Outline, structures of the children). The outline stands for all of the
container that is no child: the keys of a dict, the factory of a defaultdict, the attributes of a namespace. There is
one outline for all containers that are alike, so that outlines compare by identity.
"""

import enum
import operator
import types
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from tracejit.errors import ArgumentError
from tracejit.util.distinct import Detail, Same, keys_of
from tracejit.util.locks import new_lock
from tracejit.util.text import brief, count, shown

_CREATED_BY_PYTHON = 1 << 9  # Py_TPFLAGS_HEAPTYPE


class Fixed:
    """The part of a node that is no leaf: one object for all nodes that are alike, which compares by identity."""

    __slots__ = ()

    @property
    def title(self) -> str:
        """The nodes in words, for messages."""
        raise NotImplementedError

    def places(self, kind: type) -> Sequence[str]:
        """Return the place of each child in a node of a class as Python would write it, such as ".w"."""
        raise NotImplementedError


class Outline(Fixed):
    """The part of a container that is no child.

    Args:
        way: of the class of the container.
        data: what its way makes a container of, besides the children.
        steps: the place of each child as Python would write it.
        title: the container in words.
    """

    __slots__ = ("__weakref__", "data", "steps", "title", "way")

    title: str

    def __init__(self, way: "Way", data: Any, steps: tuple[str, ...], title: str) -> None:
        self.way = way
        self.data = data
        self.steps = steps
        self.title = title

    def places(self, kind: type) -> Sequence[str]:
        """Return the place of each child."""
        return self.steps

    def expressions(self) -> Sequence[str]:
        """Return what leads from a container to each child in generated code; "" where nothing does."""
        return self.way.expressions(self.data, len(self.steps))

    def make(self, children: Sequence[Any]) -> Any:
        """Return a container of other children."""
        return self.way.make(self, children)

    def __reduce__(self) -> Any:
        return _outline, (self.way.kind, self.data, len(self.steps))


class Way:
    """The way in which containers of one class are taken apart and put together.

    Args:
        kind: the class.
        base: the class of Python's that it is, or is derived from.
    """

    can_change = True

    def __init__(self, kind: type, base: Any) -> None:
        self.kind = kind
        self.base = base
        self._outlines: weakref.WeakValueDictionary[Hashable, Outline] = weakref.WeakValueDictionary()
        self._lock = new_lock()
        self._latest: Outline | None = None

    def take(self, container: Any) -> tuple[Outline, Sequence[Any]] | None:
        """Return the outline of a container and its children; None if it has more than they tell."""
        own = getattr(container, "__dict__", None)
        if own and own is not container:
            return None
        data, children = self.apart(container, own is container)
        return self.outline(data, len(children)), children

    def outline(self, data: Any, length: int) -> Outline:
        """Return the outline of containers with the same data and as many children."""
        latest = self._latest
        if latest is not None and len(latest.steps) == length and self.is_same(latest.data, data):
            return latest
        key = (self.key(data), length)
        found = self._outlines.get(key)
        if found is None:
            with self._lock:
                found = self._outlines.get(key)
                if found is None:
                    found = Outline(self, data, self.steps(data, length), self.title(data, length))
                    self._outlines[key] = found
        self._latest = found
        return found

    def is_same(self, data: Any, other: Any) -> bool:
        """Return whether data are certainly the same as others; False where it takes long to tell."""
        return data is other

    def key(self, data: Any) -> Hashable:
        """Return what distinguishes data from other data that may be equal to it."""
        token: Hashable = Detail(data).token
        return token

    def apart(self, container: Any, is_own: bool) -> tuple[Any, Sequence[Any]]:
        """Return the data of an outline, and the children; `is_own` says whether items are attributes, too."""
        raise NotImplementedError

    def make(self, outline: Outline, children: Sequence[Any]) -> Any:
        """Return a container."""
        raise NotImplementedError

    def steps(self, data: Any, length: int) -> tuple[str, ...]:
        """Return the place of each child as Python would write it."""
        return tuple([f"[{i}]" for i in range(length)])

    def _is_read_by_base(self) -> bool:
        kind: Any = self.kind
        return kind.__getitem__ is self.base.__getitem__

    def expressions(self, data: Any, length: int) -> Sequence[str]:
        """Return what Outline.expressions() does."""
        return self.steps(data, length) if self._is_read_by_base() else [""] * length

    def title(self, data: Any, length: int) -> str:
        """Return a container in words, for messages."""
        return f"a {self.kind.__name__} of {count(length, 'element')}"

    def contents(self, container: Any) -> Any:
        """Return what a container holds: a list, or a dict."""
        raise NotImplementedError

    def put(self, container: Any, name: Any, value: Any) -> None:
        """Put a value into the place of a container that has a name in its contents."""
        raise NotImplementedError

    def put_contents(self, container: Any, contents: Any) -> None:
        """Put contents into a container."""
        raise NotImplementedError


class _Items(Way):
    """The way of dicts of derived classes. Its data are the keys, the factory of missing items, and `is_own`."""

    def is_same(self, data: Any, other: Any) -> bool:
        keys, factory, is_own = data
        others, other_factory, is_other_own = other
        is_alike = factory is other_factory and is_own is is_other_own and len(keys) == len(others)
        return is_alike and all(map(operator.is_, keys, others))

    def key(self, data: Any) -> Hashable:
        keys, factory, is_own = data
        return keys_of(keys), Same(factory), is_own

    def apart(self, container: Any, is_own: bool) -> tuple[Any, Sequence[Any]]:
        keys = tuple(self.base.__iter__(container))
        factory = container.default_factory if self.base is defaultdict else None
        return (keys, factory, is_own), tuple(self.base.values(container))

    def make(self, outline: Outline, children: Sequence[Any]) -> Any:
        keys, factory, is_own = outline.data
        made = self.base.__new__(self.kind)
        if factory is not None:
            made.default_factory = factory
        for key, child in zip(keys, children, strict=True):
            self.base.__setitem__(made, key, child)
        if is_own:
            object.__setattr__(made, "__dict__", made)
        return made

    def steps(self, data: Any, length: int) -> tuple[str, ...]:
        return tuple([f"[{shown(key)}]" for key in data[0]])

    def expressions(self, data: Any, length: int) -> Sequence[str]:
        is_read_by_base = self._is_read_by_base()
        is_known = [is_read_by_base and type(key) in (str, int) for key in data[0]]
        return [f"[{key!r}]" if known else "" for key, known in zip(data[0], is_known, strict=True)]

    def title(self, data: Any, length: int) -> str:
        return f"a {self.kind.__name__} with the keys [{', '.join(map(shown, data[0]))}]"

    def contents(self, container: Any) -> Any:
        keys = tuple(self.base.__iter__(container))
        return dict(zip(keys, self.base.values(container), strict=True))

    def put(self, container: Any, name: Any, value: Any) -> None:
        self.base.__setitem__(container, name, value)

    def put_contents(self, container: Any, contents: Any) -> None:
        self.base.clear(container)
        for key, part in contents.items():
            self.base.__setitem__(container, key, part)


class _Elements(Way):
    """The way of lists of derived classes and of deques. Its data is the greatest length."""

    def is_same(self, data: Any, other: Any) -> bool:
        return bool(data == other)

    def key(self, data: Any) -> Hashable:
        return data  # type: ignore[no-any-return]

    def apart(self, container: Any, is_own: bool) -> tuple[Any, Sequence[Any]]:
        return (container.maxlen if self.base is deque else None), tuple(self.base.__iter__(container))

    def make(self, outline: Outline, children: Sequence[Any]) -> Any:
        made = self.base.__new__(self.kind)
        if self.base is deque:
            deque.__init__(made, children, outline.data)
        else:
            list.extend(made, children)
        return made

    def contents(self, container: Any) -> Any:
        return [*self.base.__iter__(container)]

    def put(self, container: Any, name: Any, value: Any) -> None:
        self.base.__setitem__(container, name, value)

    def put_contents(self, container: Any, contents: Any) -> None:
        self.base.clear(container)
        self.base.extend(container, contents)


class _Tuples(Way):
    """The way of tuples of derived classes."""

    can_change = False

    def apart(self, container: Any, is_own: bool) -> tuple[Any, Sequence[Any]]:
        return None, tuple(tuple.__iter__(container))

    def make(self, outline: Outline, children: Sequence[Any]) -> Any:
        return tuple.__new__(self.kind, children)


class _Namespaces(Way):
    """The way of namespaces. Its data are the names of the attributes."""

    def is_same(self, data: Any, other: Any) -> bool:
        return len(data) == len(other) and all(map(operator.is_, data, other))

    def key(self, data: Any) -> Hashable:
        return data  # type: ignore[no-any-return]

    def take(self, container: Any) -> tuple[Outline, Sequence[Any]] | None:
        own = vars(container)
        names = tuple(own)
        if not all(map(_is_name, names)):
            return None
        return self.outline(names, len(names)), tuple(own.values())

    def make(self, outline: Outline, children: Sequence[Any]) -> Any:
        made = self.base.__new__(self.kind)
        vars(made).update(zip(outline.data, children, strict=True))
        return made

    def steps(self, data: Any, length: int) -> tuple[str, ...]:
        return tuple([f".{name}" for name in data])

    def expressions(self, data: Any, length: int) -> Sequence[str]:
        return self.steps(data, length)

    def title(self, data: Any, length: int) -> str:
        return f"a {self.kind.__name__} with the attributes [{', '.join(data)}]"

    def contents(self, container: Any) -> Any:
        return dict(vars(container))

    def put(self, container: Any, name: Any, value: Any) -> None:
        vars(container)[name] = value

    def put_contents(self, container: Any, contents: Any) -> None:
        vars(container).clear()
        vars(container).update(contents)


class Registered(Way):
    """The way of a class that a user has registered, with functions that take containers apart and make them."""

    def __init__(
        self, kind: type, flatten: Callable[[Any], Any], unflatten: Callable[[Any, Any], Any]
    ) -> None:
        super().__init__(kind, object)
        self._flatten = flatten
        self._unflatten = unflatten

    def take(self, container: Any) -> tuple[Outline, Sequence[Any]]:
        data, children = self.apart(container, False)
        return self.outline(data, len(children)), children

    def apart(self, container: Any, is_own: bool) -> tuple[Any, Sequence[Any]]:
        found = self._flatten(container)
        try:
            children, data = found
            children = tuple(children)
            hash(data)
        except (TypeError, ValueError):
            raise ArgumentError(
                f"register: the flatten function of {self.kind.__name__} returned {brief(found)}, expected a tuple "
                "(children, data): a tuple of the arrays and containers in it, and all else, which is hashable."
            ) from None
        return data, children

    def make(self, outline: Outline, children: Sequence[Any]) -> Any:
        return self._unflatten(outline.data, tuple(children))

    def expressions(self, data: Any, length: int) -> Sequence[str]:
        return [""] * length

    def contents(self, container: Any) -> Any:
        """Return the outline and the children of a container, which no replay can put into it."""
        outline, children = self.take(container)
        return [outline, *children]


def _is_name(name: Any) -> bool:
    return type(name) is str and name.isidentifier()


_WAYS: dict[Any, type[Way]] = {
    OrderedDict: _Items,
    defaultdict: _Items,
    dict: _Items,
    list: _Elements,
    deque: _Elements,
    tuple: _Tuples,
    types.SimpleNamespace: _Namespaces,
}
_EXACT = (dict, OrderedDict, list, tuple)  # which need no way: trees know them
_ways: dict[type, Way | None] = {}


def way_of(kind: type) -> Way | None:
    """Return the way of a class; None if its instances are no containers that a function takes apart."""
    if kind not in _ways:
        _ways[kind] = _found(kind)
    return _ways[kind]


def _found(kind: type) -> Way | None:
    if kind in _EXACT or issubclass(kind, enum.Enum):
        return None
    base = next((base for base in kind.__mro__ if base in _WAYS), None)
    if base is None:
        return None
    for derived in kind.__mro__[: kind.__mro__.index(base)]:
        is_of_python = derived.__flags__ & _CREATED_BY_PYTHON
        if not is_of_python or any(
            isinstance(part, types.MemberDescriptorType) for part in vars(derived).values()
        ):
            return None  # its instances have more than the base and attributes
    return _WAYS[base](kind, base)


def register_way(way: Registered) -> Registered:
    """Take the instances of a class for containers from now on; return the way."""
    _ways[way.kind] = way
    return way


def _outline(kind: type, data: Any, length: int) -> Outline:
    """Return the outline of a pickle."""
    way = way_of(kind)
    if way is None:
        raise ArgumentError(
            f"unpickling: {kind.__name__} is no class of containers in this process; call tj.tree.register first."
        )
    return way.outline(data, length)
