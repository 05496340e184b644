# SPDX-License-Identifier: BSD-3-Clause
"""Containers taken apart into leaves and put together again.

Dicts, lists, tuples, named tuples and dataclass instances are containers, None is a container without
leaves, and everything else is a leaf. Only these exact types are: a subclass of dict is a leaf.
"""

import dataclasses
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from tracejit.errors import ArgumentError
from tracejit.util.text import shown

LEAF = "leaf"

# A structure is LEAF or (type, names, structures of the children). Names are the sorted keys of a dict,
# the fields of a dataclass, or None. Tuples of tuples compare and hash at the speed of C.
Structure = Any


class TreeDef:
    """The shape of a tree. Trees whose dicts differ in the order of their keys have equal treedefs.

    Args:
        structure: the nested tuples that make treedefs equal.
        orders: for each dict, in the order of the walk, its keys as the user ordered them, or None if sorted.
        size: number of leaves.
    """

    __slots__ = ("orders", "size", "structure")

    def __init__(self, structure: Structure, orders: list[Any], size: int) -> None:
        self.structure = structure
        self.orders = orders
        self.size = size

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeDef) and self.structure == other.structure

    def __hash__(self) -> int:
        return hash(self.structure)

    def __repr__(self) -> str:
        return f"TreeDef({unflatten(self, ['*'] * self.size)!r})"


_NONE = (type(None), None, ())
_DICTS = (dict, OrderedDict)


def flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], TreeDef]:
    """Return the leaves of `tree`, dicts in the order of their sorted keys, and its treedef.

    Args:
        tree: any nesting of containers.
        is_leaf: containers for which it is true are leaves.
    """
    leaves: list[Any] = []
    orders: list[Any] = []
    return leaves, TreeDef(_flatten(tree, leaves, orders, is_leaf), orders, len(leaves))


def _flatten(tree: Any, leaves: list[Any], orders: list[Any], is_leaf: Any) -> Structure:
    kind = type(tree)
    names = _names.get(kind, _UNKNOWN)
    if names is _UNKNOWN:
        names = _names[kind] = _fields(kind)
    if names is LEAF or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return LEAF
    children: Any
    if names is not None:
        children = [getattr(tree, name) for name in names]
    elif kind in _DICTS:
        given = tuple(tree)
        names = _sorted(given)
        orders.append(None if names == given else given)
        children = [tree[key] for key in names]
    elif tree is None:
        return _NONE
    else:
        children = tree
    structures = []
    for child in children:
        if is_leaf is None and _names.get(type(child)) is LEAF:  # most children, without a call
            leaves.append(child)
            structures.append(LEAF)
        else:
            structures.append(_flatten(child, leaves, orders, is_leaf))
    return (kind, names, tuple(structures))


def _sorted(keys: tuple[Any, ...]) -> tuple[Any, ...]:
    try:
        return tuple(sorted(keys))
    except TypeError:  # keys of several types
        return tuple(sorted(keys, key=lambda key: (type(key).__qualname__, shown(key))))


def _fields(kind: type) -> Any:
    """Return the names of the children of a type; None where its instances tell, LEAF for no container."""
    if kind in (list, tuple, type(None), *_DICTS):
        return None
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return tuple(kind._fields)
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    return LEAF


_UNKNOWN = object()
_names: dict[type, Any] = {}  # what _fields returned


def unflatten(treedef: TreeDef, leaves: Sequence[Any]) -> Any:
    """Return the tree of `treedef` with other leaves; dicts have the key order of the tree it came from.

    A dataclass is made without calling its ``__init__``: its fields are set, whatever they hold.

    Raises:
        ArgumentError: if the number of leaves is another.
    """
    if len(leaves) != treedef.size:
        raise ArgumentError(f"unflatten: the tree has {treedef.size} leaves, but {len(leaves)} were given.")
    return _unflatten(treedef.structure, iter(leaves), iter(treedef.orders))


def _unflatten(structure: Structure, leaves: Any, orders: Any) -> Any:
    if structure is LEAF:
        return next(leaves)
    kind, names, children = structure
    if kind in _DICTS:
        order = next(orders)  # before those of the children, as in the walk
        items = kind(zip(names, [_unflatten(child, leaves, orders) for child in children], strict=True))
        return items if order is None else kind((key, items[key]) for key in order)
    parts = [_unflatten(child, leaves, orders) for child in children]
    if kind is list:
        return parts
    if kind is tuple:
        return tuple(parts)
    if names is None:
        return None
    if issubclass(kind, tuple):
        return kind._make(parts)
    instance = object.__new__(kind)
    for name, part in zip(names, parts, strict=True):
        object.__setattr__(instance, name, part)  # a frozen dataclass refuses the ordinary way
    return instance


def map(fun: Callable[..., Any], *trees: Any) -> Any:
    """Return the tree of ``fun(leaf, ...)`` over the leaves of trees of one structure.

    Raises:
        ArgumentError: if the trees differ in structure, naming the first place.
    """
    leaves, treedef = flatten(trees[0])
    columns = [leaves]
    for number, tree in enumerate(trees[1:], 2):
        others, other = flatten(tree)
        if other != treedef:
            raise ArgumentError(
                f"map: tree {number} differs from the first: {difference(treedef, other, 'tree')}. "
                "All trees must have the same containers and keys."
            )
        columns.append(others)
    return unflatten(treedef, [fun(*parts) for parts in zip(*columns, strict=True)])


def paths(treedef: TreeDef, root: str) -> list[str]:
    """Return the place of each leaf as Python would write it.

    >>> paths(flatten({"w": [1, 2], "b": 3})[1], "params")
    ["params['b']", "params['w'][0]", "params['w'][1]"]
    """
    found: list[str] = []

    def walk(structure: Structure, path: str) -> None:
        if structure is LEAF:
            found.append(path)
            return
        for step, child in zip(_steps(structure), structure[2], strict=True):
            walk(child, path + step)

    walk(treedef.structure, root)
    return found


def _steps(structure: Structure) -> list[str]:
    kind, names, children = structure
    if names is None:
        return [f"[{i}]" for i in range(len(children))]
    if kind in _DICTS:
        return [f"[{shown(key)}]" for key in names]
    return [f".{name}" for name in names]


def difference(
    first: TreeDef, second: TreeDef, root: str, one: str = "one", other: str = "the other"
) -> str | None:
    """Return where and how two treedefs first differ, or None if they are equal; `one` and `other` name them."""

    def walk(a: Structure, b: Structure, path: str) -> str | None:
        if a == b:
            return None
        if a is LEAF or b is LEAF or a[0] is not b[0]:
            return f"{path} is {_kind(a)} in {one} and {_kind(b)} in {other}"
        if a[1] != b[1]:
            return f"{path} has the keys {_keys(a)} in {one} and {_keys(b)} in {other}"
        if len(a[2]) != len(b[2]):
            return f"{path} has {len(a[2])} elements in {one} and {len(b[2])} in {other}"
        places = (walk(x, y, path + step) for x, y, step in zip(a[2], b[2], _steps(a), strict=True))
        return next(place for place in places if place is not None)

    return walk(first.structure, second.structure, root)


def _keys(structure: Structure) -> str:
    return f"[{', '.join(map(shown, structure[1]))}]"


def _kind(structure: Structure) -> str:
    if structure is LEAF:
        return "a leaf"
    return "None" if structure is _NONE else f"a {structure[0].__name__}"
