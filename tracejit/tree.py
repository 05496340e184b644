# SPDX-License-Identifier: BSD-3-Clause
"""Trees: containers flattened into leaves, and unflattened again.

Dicts, lists, tuples, named tuples, instances of dataclasses and of classes of the package attrs, and networks
(TreeNode) are containers, and so is what a function takes apart (containers.py). None is a container without leaves,
and everything else is a leaf.

Long because its functions are public, with docstrings and examples.
"""

import dataclasses
import functools
import numbers
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from tracejit import containers
from tracejit.containers import Fixed, Outline, Registered, Way
from tracejit.errors import ArgumentError
from tracejit.util.arguments import callable_, listed, text
from tracejit.util.distinct import keys_of
from tracejit.util.text import brief, count, shown

T = TypeVar("T")

LEAF = "leaf"

# A structure is LEAF or (type, names, structures of the children). Names are the sorted keys of a dict,
# the fields of a dataclass, what is fixed of a node, an outline, or None. Tuples of tuples compare and hash at the
# speed of C.
Structure = Any


class TreeNode:
    """A container that keeps its children in one tuple, and all else in one object: a network, a table of its arrays.

    The executor takes such a container apart by two words, and the key of a call has one object for it, however many
    arrays it holds. Its two slots are the first of the instance; derived classes add none.
    """

    __slots__ = ("_fixed", "_leaves")

    _fixed: Any
    _leaves: tuple[Any, ...]

    def parameters(self) -> "TreeNode":
        """Return the node of what gradients are taken by and updates change."""
        return self

    def with_parameters(self, parameters: "TreeNode") -> "TreeNode":
        """Return the node in which these stand for its parameters."""
        return parameters

    def rates(self) -> Sequence[float] | None:
        """Return the factor of the learning rate for each leaf of the parameters, or None if all are 1."""
        return None

    def __reduce__(self) -> Any:
        return rebuild_node, (type(self), self._fixed, self._leaves)


class TreeDef:
    """The shape of a tree. Trees whose dicts differ in the order of their keys have equal treedefs.

    Args:
        structure: the nested tuples that make treedefs equal.
        orders: for each dict, in the order of fold() and walk(), its keys in the user's order, or None if they are
            sorted strings.
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
        leaves = iter(["*"] * self.size)
        return f"TreeDef({fold(self.structure, self.orders, leaves.__next__, _shown)!r})"

    def __reduce__(self) -> Any:
        return _treedef, (self.structure, self.orders, self.size)


class _Shown(str):
    """A text that repr() gives as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _shown(kind: type, names: Any, children: list[Any]) -> Any:
    """Return a container for the repr of a treedef; a text for one that a user's function would make."""
    if isinstance(names, Outline) and isinstance(names.way, Registered):
        return _Shown(f"{kind.__name__}({', '.join(map(repr, children))})")
    return _rebuilt(kind, names, children)


def _treedef(structure: Structure, orders: list[Any], size: int) -> TreeDef:
    """Return the treedef of a pickle, whose strings are objects of its own."""
    return TreeDef(_with_leaves(structure), orders, size)


def _with_leaves(structure: Structure) -> Structure:
    """Return a structure with the object LEAF in the places of strings that equal it."""
    if structure == LEAF:
        return LEAF
    kind, names, children = structure
    return kind, names, tuple([_with_leaves(child) for child in children])


_NONE = (type(None), None, ())
_DICTS = (dict, OrderedDict)
_MOST_LEVELS = (
    4  # a container that takes this part of Python's recursion limit is nested too deeply, whoever calls
)


def flatten(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None, function: str = "flatten"
) -> tuple[list[Any], TreeDef]:
    """Return the leaves of `tree`, dicts in the order of their sorted keys, and its treedef.

    Args:
        tree: any nesting of containers.
        is_leaf: containers for which it is true are leaves.
        function: name of the function on whose behalf errors are raised.

    Raises:
        ArgumentError: if a container holds itself.
        RecursionError: if the caller is near Python's recursion limit.
    """
    if is_leaf is not None:
        callable_(function, "is_leaf", is_leaf)
    leaves: list[Any] = []
    orders: list[Any] = []
    try:
        structure = _flatten(tree, leaves, orders, is_leaf)
    except RecursionError as error:
        if _levels(error) * _MOST_LEVELS < sys.getrecursionlimit():
            raise
        raise ArgumentError(
            f"{function}: a container holds itself, or is nested deeper than Python's recursion limit allows; pass "
            "containers that end in arrays and numbers."
        ) from None
    return leaves, TreeDef(structure, orders, len(leaves))


def leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """Return the leaves of `tree`, in the order of flatten().

    Args:
        tree: any nesting of containers.
        is_leaf: containers for which it is true are leaves.

    Raises:
        ArgumentError: if a container holds itself.

    Examples:
        >>> import tracejit as tj
        >>> tj.tree.leaves({"w": [1.0, 2.0], "b": 3.0})
        [3.0, 1.0, 2.0]
    """
    return flatten(tree, is_leaf, "leaves")[0]


def _levels(error: RecursionError) -> int:
    """Return how many containers in one another were being flattened when an error was raised."""
    levels, at = 0, error.__traceback__
    while at is not None:
        levels += at.tb_frame.f_code is _flatten.__code__
        at = at.tb_next
    return levels


def _flatten(tree: Any, leaves: list[Any], orders: list[Any], is_leaf: Any) -> Structure:
    kind = type(tree)
    names = _names_of(kind)
    if names is LEAF or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return LEAF
    children: Any
    if names is _NODE:
        names, children = tree._fixed, tree._leaves
    elif isinstance(names, Way):
        taken = names.take(tree)
        if taken is None:
            leaves.append(tree)
            return LEAF
        names, children = taken
    elif names is not None:
        children = [getattr(tree, name) for name in names]
    elif kind in _DICTS:
        order = tuple(tree)
        names = _sorted(order)
        keys = keys_of(order)
        orders.append(None if keys is order and names == order else keys)
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
    """Return the names of the children of a type; LEAF for no container.

    Where its instances tell, they are None, _NODE, or the way to take them apart.
    """
    way = containers.way_of(kind)
    if isinstance(way, Registered):
        return way
    if kind in (list, tuple, type(None), *_DICTS):
        return None
    if issubclass(kind, TreeNode):
        return _NODE
    if issubclass(kind, tuple) and hasattr(kind, "_fields") and hasattr(kind, "_make"):
        return tuple(kind._fields)
    if dataclasses.is_dataclass(kind):
        names = tuple(field.name for field in dataclasses.fields(kind))
        # One whose field is computed cannot be made of its fields.
        return LEAF if any(_is_computed(getattr(kind, name, None)) for name in names) else names
    if "__attrs_attrs__" in vars(kind):
        return tuple(field.name for field in vars(kind)["__attrs_attrs__"])
    return LEAF if way is None else way


def fields_of(kind: type) -> tuple[str, ...] | None:
    """Return the fields of a class whose instances are containers that have some, and can change; None for others."""
    names = _names_of(kind)
    return names if type(names) is tuple and not issubclass(kind, tuple) else None


def way_of(kind: type) -> Way | None:
    """Return the way to take containers of a class apart; None for those of other classes, and what is none."""
    names = _names_of(kind)
    return names if isinstance(names, Way) else None


def _names_of(kind: type) -> Any:
    names = _names.get(kind, _UNKNOWN)
    if names is _UNKNOWN:
        names = _names[kind] = _fields(kind)
    return names


def _is_computed(attribute: Any) -> bool:
    """Return whether an attribute of a class is a property that cannot be set."""
    return isinstance(attribute, property) and attribute.fset is None


_UNKNOWN = object()
_NODE = object()
_names: dict[type, Any] = {}  # what _fields returned


def fold(
    structure: Structure,
    orders: Iterable[Any] | None,
    leaf: Callable[[], T],
    container: Callable[[type, Any, list[T]], T],
) -> T:
    """Return what `container` makes of a structure, from the leaves to the root.

    Args:
        structure: of a treedef.
        orders: of the same treedef, or None to take the keys of all dicts as sorted.
        leaf: returns the result for the next leaf.
        container: returns the result for a container, given its type, the names of its children and their results,
            both in the order of the user. The names of a list or a tuple are None.
    """
    return _folded(structure, None if orders is None else iter(orders), leaf, container)


# A function within fold() that calls itself would be a cycle, which keeps the leaves until the collector runs.
def _folded(
    structure: Structure,
    orders: Iterator[Any] | None,
    leaf: Callable[[], T],
    container: Callable[[type, Any, list[T]], T],
) -> T:
    if structure is LEAF:
        return leaf()
    kind, names, children = structure
    order = None
    if orders is not None and kind in _DICTS:
        order = next(orders)  # before those of the children, as in the walk
    results = [_folded(child, orders, leaf, container) for child in children]
    if order is None:
        return container(kind, names, results)
    of_name = dict(zip(names, results, strict=True))
    return container(kind, order, [of_name[name] for name in order])


def walk(
    structure: Structure,
    orders: Iterable[Any] | None,
    root: T,
    leaf: Callable[[T], None],
    container: Callable[[T, type, Any, int], Sequence[T]],
) -> None:
    """Visit a structure from the root to the leaves, in the order of the leaves.

    Args:
        structure: of a treedef.
        orders: of the same treedef, or None to take the keys of all dicts as sorted.
        root: the place of the root.
        leaf: takes the place of a leaf.
        container: takes the place of a container, its type, the names of its children as fold() gives them and their
            number; returns the places of the children in this order.
    """
    _walk(structure, None if orders is None else iter(orders), root, leaf, container)


def _walk(
    structure: Structure,
    orders: Iterator[Any] | None,
    place: T,
    leaf: Callable[[T], None],
    container: Callable[[T, type, Any, int], Sequence[T]],
) -> None:
    if structure is LEAF:
        leaf(place)
        return
    kind, names, children = structure
    order = next(orders) if orders is not None and kind in _DICTS else None
    places = container(place, kind, names if order is None else order, len(children))
    if order is not None:
        of_name = dict(zip(order, places, strict=True))
        places = [of_name[name] for name in names]
    for child, child_place in zip(children, places, strict=True):
        _walk(child, orders, child_place, leaf, container)


def unflatten(treedef: TreeDef, leaves: Sequence[Any]) -> Any:
    """Return the tree of `treedef` with the given leaves; dicts have the key order of the tree it came from.

    A dataclass is made without calling its ``__init__``: its fields are set, whatever they hold.

    Raises:
        ArgumentError: if the treedef has a different number of leaves.
    """
    if type(treedef) is not TreeDef:
        raise ArgumentError(f"unflatten: treedef must be what flatten returned, not {brief(treedef)}.")
    if type(leaves) is not list:
        leaves = listed("unflatten", "leaves", leaves)
    if len(leaves) != treedef.size:
        raise ArgumentError(f"unflatten: the tree has {treedef.size} leaves, but {len(leaves)} were given.")
    return fold(treedef.structure, treedef.orders, iter(leaves).__next__, _rebuilt)


def _rebuilt(kind: type, names: Any, children: list[Any]) -> Any:
    if kind is list:
        return children
    if kind is tuple:
        return tuple(children)
    if kind in _DICTS:
        return kind(zip(names, children, strict=True))
    if kind is type(None):
        return None
    return maker(kind, names)(tuple(children))


def maker(kind: Any, names: Any) -> Callable[[tuple[Any, ...]], Any]:
    """Return the function that makes containers of a class with certain names of a tuple of their children.

    It is not for dicts, lists, tuples and None.
    """
    if isinstance(names, Outline):
        return names.make
    if issubclass(kind, tuple):
        return kind._make  # type: ignore[no-any-return]
    return functools.partial(rebuild_node if issubclass(kind, TreeNode) else rebuild_dataclass, kind, names)


def rebuild_dataclass(kind: type, names: Sequence[str], values: Sequence[Any]) -> Any:
    """Return an instance of a dataclass with the given values of its fields, without calling ``__init__``."""
    instance: Any = object.__new__(kind)
    for name, value in zip(names, values, strict=True):
        object.__setattr__(instance, name, value)  # a frozen dataclass refuses the ordinary way
    return instance


def register(
    kind: Any, flatten: Callable[[Any], Any] | None = None, unflatten: Callable[[Any, Any], Any] | None = None
) -> Any:
    """Make the instances of a class containers, whose arrays functions are given and differentiate by.

    Not needed for dataclasses, classes of attrs, and classes derived from dict, list, tuple, deque and SimpleNamespace,
    which are containers unless they hold more than their items. A function gets a new instance, which `unflatten`
    makes. It may not change it, but can return a changed one.

    Args:
        kind: the class.
        flatten: takes an instance apart, into a tuple of arrays, numbers and containers, and all else as one hashable
            value: ``(children, data)``. None for the method ``tree_flatten`` of the class.
        unflatten: makes an instance of such parts, ``unflatten(data, children)``. It also gets other objects than
            arrays as children. None for the class method ``tree_unflatten``.

    Returns:
        The class, so that this is a decorator of classes that have both methods.

    Raises:
        ArgumentError: if the class is a container already, or has no such methods.

    Examples:
        >>> import tracejit as tj
        >>> class Line:
        ...     def __init__(self, slope, shift):
        ...         self.slope, self.shift = slope, shift
        >>> _ = tj.tree.register(Line, lambda x: ((x.slope, x.shift), None), lambda _, parts: Line(*parts))
        >>> tj.tree.leaves([Line(1.0, 2.0), 3.0])
        [1.0, 2.0, 3.0]
    """
    if not isinstance(kind, type):
        raise ArgumentError(f"register: kind must be a class, not {brief(kind)}.")
    if _names_of(kind) is not LEAF:
        raise ArgumentError(
            f"register: instances of {kind.__name__} are containers already; leave the call out."
        )
    methods = []
    for name, given in (("flatten", flatten), ("unflatten", unflatten)):
        method = getattr(kind, f"tree_{name}", None) if given is None else given
        if method is None:
            raise ArgumentError(
                f"register: {kind.__name__} has no method tree_{name}; pass {name}=, or write that method."
            )
        methods.append(callable_("register", name, method))
    _names[kind] = containers.register_way(Registered(kind, *methods))
    return kind


def rebuild_node(kind: type, fixed: Fixed, children: tuple[Any, ...]) -> Any:
    """Return a node of a class with what is fixed of it and its children."""
    node: Any = object.__new__(kind)
    node._fixed = fixed
    node._leaves = children
    return node


def parameters(tree: Any, function: str) -> tuple[Any, Callable[[Any], Any]]:
    """Return a tree with the parameters of each node in its place, and a function that puts such trees back.

    A tree without nodes is its own. `function` is the name on whose behalf errors are raised.
    """
    parts, treedef = flatten(tree, is_leaf=lambda part: isinstance(part, TreeNode), function=function)
    nodes = {number: part for number, part in enumerate(parts) if isinstance(part, TreeNode)}
    if not nodes:
        return tree, lambda updated: updated

    def put_back(updated: Any) -> Any:
        others, _ = flatten(updated, is_leaf=lambda part: isinstance(part, TreeNode))
        for number, node in nodes.items():
            others[number] = node.with_parameters(others[number])
        return unflatten(treedef, others)

    for number, node in nodes.items():
        parts[number] = node.parameters()
    return unflatten(treedef, parts), put_back


def map(fun: Callable[..., Any], *trees: Any) -> Any:
    """Return the tree of ``fun(leaf, ...)`` over the leaves of trees of one structure.

    Raises:
        ArgumentError: if the trees differ in structure, naming the first place.
    """
    callable_("map", "fun", fun)
    if not trees:
        raise ArgumentError("map: there is no tree; pass map(fun, tree).")
    leaves, treedef = flatten(trees[0], function="map")
    columns = [leaves]
    for number, tree in enumerate(trees[1:], 2):
        others, other = flatten(tree, function="map")
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
    if type(treedef) is not TreeDef:
        raise ArgumentError(f"paths: treedef must be what flatten returned, not {brief(treedef)}.")
    text("paths", "root", root)
    names: list[str] = []

    def container(path: str, kind: type, keys: Any, length: int) -> list[str]:
        return [path + step for step in steps(kind, keys, length)]

    walk(treedef.structure, None, root, names.append, container)
    return names


def dicts(structure: Structure, root: str) -> list[tuple[str, tuple[Any, ...]]]:
    """Return the place of each dict as Python would write it, in the order of a treedef's orders, and its sorted keys.

    >>> dicts(flatten([1, {"w": 2, "b": 3}])[1].structure, "params")
    [('params[1]', ('b', 'w'))]
    """
    places: list[tuple[str, tuple[Any, ...]]] = []

    def container(path: str, kind: type, keys: Any, length: int) -> list[str]:
        if kind in _DICTS:
            places.append((path, keys))
        return [path + step for step in steps(kind, keys, length)]

    walk(structure, None, root, lambda path: None, container)
    return places


def steps(kind: type, names: Any, count: int) -> Sequence[str]:
    """Return what Python would write after a container for each of its children."""
    if isinstance(names, Fixed):
        return names.places(kind)
    if names is None:
        return [f"[{i}]" for i in range(count)]
    if kind in _DICTS:
        return [f"[{shown(key)}]" for key in names]
    return [f".{name}" for name in names]


def difference(
    first: TreeDef, second: TreeDef, root: str, one: str = "one", other: str = "the other"
) -> str | None:
    """Return where and how two treedefs first differ, or None; `one` and `other` name them in the text."""
    place = _first_difference(first.structure, second.structure, "")
    if place is None:
        return None
    path, a, b = place
    if a is LEAF or b is LEAF or a[0] is not b[0]:
        return f"{root}{path} is {_kind(a)} in {one} and {_kind(b)} in {other}"
    if a[1] != b[1]:
        has, of_one = _keys(a)
        return f"{root}{path} {has} {of_one} in {one} and {_keys(b)[1]} in {other}"
    return f"{root}{path} has {len(a[2])} elements in {one} and {len(b[2])} in {other}"


def difference_of_trees(one: Any, other: Any, name: str, other_name: str) -> str | None:
    """Return where and how the structures of two trees first differ, or None; the text begins with the second.

    >>> difference_of_trees({"w": [1.0]}, {"w": 2.0}, "params", "vel")
    "vel['w'] is a number, params['w'] is a list"
    """
    flat = [(name, *flatten(one)), (other_name, *flatten(other))]
    place = _first_difference(flat[0][2].structure, flat[1][2].structure, "")
    if place is None:
        return None
    path, *parts = place
    texts = []
    for (root, leaves, treedef), part in zip(flat, parts, strict=True):
        if part is LEAF:
            text = f"is {_sort(leaves[paths(treedef, root).index(root + path)])}"
        elif LEAF in parts or parts[0][0] is not parts[1][0]:
            text = f"is {_kind(part)}"
        elif parts[0][1] != parts[1][1]:
            text = " ".join(_keys(part))
        else:
            text = f"has {count(len(part[2]), 'element')}"
        texts.append(f"{root}{path} {text}")
    return f"{texts[1]}, {texts[0]}"


def _first_difference(a: Structure, b: Structure, path: str) -> tuple[str, Structure, Structure] | None:
    """Return the path of the first place where two structures differ, and the structures there."""
    if a == b:
        return None
    if a is LEAF or b is LEAF or a[:2] != b[:2] or len(a[2]) != len(b[2]):
        return path, a, b
    names = steps(a[0], a[1], len(a[2]))
    places = (_first_difference(x, y, path + step) for x, y, step in zip(a[2], b[2], names, strict=True))
    return next(place for place in places if place is not None)


def _sort(leaf: Any) -> str:
    """Return in words what a leaf is."""
    if isinstance(leaf, numbers.Number) and not isinstance(leaf, bool):
        return "a number"
    return "an array" if hasattr(type(leaf), "__dlpack__") else f"a {type(leaf).__name__}"


def _keys(structure: Structure) -> tuple[str, str]:
    """Return a verb and the names of a container, in words."""
    names = structure[1]
    if isinstance(names, Fixed):
        return "is", names.title
    return "has the keys", f"[{', '.join(map(shown, names))}]"


def _kind(structure: Structure) -> str:
    if structure is LEAF:
        return "a single value"
    return "None" if structure is _NONE else f"a {structure[0].__name__}"
