# SPDX-License-Identifier: BSD-3-Clause
"""The containers among the arguments of a function: it gets copies, and the caller's get what it puts into these.

Note [containers of arguments]
Arrays are others inside a function than in the call, so dicts, lists and dataclasses that hold them are, too. When the
function has ended, each copy is compared with what it held, object by object. What is new is put into the caller's
container (``params["w"] = params["w"] - rate * g``, ``history.append(loss)``, ``state.step += 1``), as the function
would have done itself, and what the function left alone stays the caller's own object. The contents of a container are
a dict or a list of the same keys, or a dict of the fields of a dataclass, with KEPT in the places of what stays.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from tracejit import tree

_DICTS = (dict, OrderedDict)


class _Staying:
    """The sign for a part of a container that stays."""

    def __repr__(self) -> str:
        return "what it held"

    def __reduce__(self) -> str:
        return "KEPT"


KEPT: Final = _Staying()


def is_changeable(kind: type) -> bool:
    """Return whether a function can put something into containers of a type."""
    return kind is list or kind in _DICTS or (hasattr(kind, "__dataclass_fields__") and not _is_frozen(kind))


def _is_frozen(kind: Any) -> bool:
    return bool(kind.__dataclass_params__.frozen)


def walk(
    structure: Any, orders: Any, root: Any, children: Callable[[Any, type, Any, int], Sequence[Any]]
) -> list[Any]:
    """Return the places of the containers that can change, from the root to the leaves.

    Args:
        structure, orders: of a treedef.
        root: the place of the root.
        children: returns the places of the children of a container, as tree.walk() asks for them.
    """
    found: list[Any] = []

    def container(place: Any, kind: type, names: Any, length: int) -> Sequence[Any]:
        if is_changeable(kind):
            found.append(place)
        return children(place, kind, names, length)

    tree.walk(structure, orders, root, lambda place: None, container)
    return found


def containers_of(treedef: tree.TreeDef, arguments: Any) -> list[Any]:
    """Return the containers in arguments that a function can change."""
    return walk(treedef.structure, treedef.orders, arguments, _children)


def _children(container: Any, kind: type, names: Any, length: int) -> Sequence[Any]:
    if kind is type(None):
        return ()
    if kind in _DICTS:
        return [container[name] for name in names]
    if issubclass(kind, tree.TreeNode):
        return [*container._leaves]
    if names is None or issubclass(kind, tuple):
        return [*container]
    return [getattr(container, name) for name in names]


class ContainerCopies:
    """The copies of the containers in arguments that a function gets.

    Args:
        treedef: of the arguments.
        arguments: as the caller gave them.
        copy: those that the function gets. A container that is there twice becomes one.

    Attributes:
        arguments: those that the function gets.
        originals: the caller's containers.
        are_apart: whether no container is there twice.
    """

    def __init__(self, treedef: tree.TreeDef, arguments: Any, copy: Any) -> None:
        originals, copies = containers_of(treedef, arguments), containers_of(treedef, copy)
        self.arguments = copy
        self.are_apart = len({*map(id, originals)}) == len(originals)
        if not self.are_apart:
            first: dict[int, Any] = {}
            again = {
                id(mine): first.setdefault(id(theirs), mine)
                for theirs, mine in zip(originals, copies, strict=True)
            }
            self.arguments = _shared(copy, again)
            copies = [again[id(mine)] for mine in copies]
        self.originals = originals
        self._copies = copies
        self._before = [held_in(mine) for mine in copies]
        self._numbers = {id(mine): number for number, mine in reversed([*enumerate(copies)])}

    def number_of(self, value: Any) -> int | None:
        """Return the number of a container among those that the function got; None of anything else."""
        return self._numbers.get(id(value))

    def original(self, value: Any) -> Any:
        """Return the caller's container in place of its copy, and anything else as it is."""
        number = self._numbers.get(id(value))
        return value if number is None else self.originals[number]

    def changes(self) -> Iterator[tuple[int, Any]]:
        """Return the numbers of the containers that the function has changed, and their contents."""
        for number, (copy, before) in enumerate(zip(self._copies, self._before, strict=True)):
            now = held_in(copy)
            if self._numbers[id(copy)] == number and not _are_same(before, now):
                yield number, _contents(before, now)

    def put_back(self, value_of: Callable[[Any], Any]) -> Callable[[], None]:
        """Return a function that puts into the caller's containers what the function has put into their copies.

        Args:
            value_of: returns what stands for a leaf outside of the function.
        """
        puts = []
        for number, contents in self.changes():
            leaves, treedef = tree.flatten(contents, is_leaf=lambda part: id(part) in self._numbers)
            made = [
                leaf if leaf is KEPT else self.original(leaf) if id(leaf) in self._numbers else value_of(leaf)
                for leaf in leaves
            ]
            puts.append((self.originals[number], tree.unflatten(treedef, made)))
        return lambda: put_all(puts)


def put_all(puts: Sequence[tuple[Any, Any]]) -> None:
    """Put contents into containers."""
    for container, contents in puts:
        put(container, contents)


def put(container: Any, contents: Any) -> None:
    """Put contents into a container."""
    if type(container) is list:
        container[:] = [container[at] if part is KEPT else part for at, part in enumerate(contents)]
        return
    if type(container) not in _DICTS:
        for name, part in contents.items():
            if part is not KEPT:
                setattr(container, name, part)
        return
    for key in [key for key in container if key not in contents]:
        del container[key]
    parts = {key: container[key] if part is KEPT else part for key, part in contents.items()}
    if [*container] != [*parts][: len(container)]:
        container.clear()
    container.update(parts)


def held_in(container: Any) -> Any:
    """Return what a container holds: a list, or a dict of its items or fields."""
    if type(container) is list:
        return [*container]
    if type(container) in _DICTS:
        return dict(container)
    names = type(container).__dataclass_fields__
    return {name: getattr(container, name) for name in names if hasattr(container, name)}


def _are_same(before: Any, now: Any) -> bool:
    if len(before) != len(now):
        return False
    if type(now) is dict:
        return [*map(id, before)] == [*map(id, now)] and all(now[key] is before[key] for key in now)
    return all(map(lambda one, other: one is other, before, now))


def _contents(before: Any, now: Any) -> Any:
    """Return what a container holds, with the sign for each part that it held before at the same key."""
    if type(now) is dict:
        return {key: KEPT if key in before and before[key] is part else part for key, part in now.items()}
    return [KEPT if at < len(before) and before[at] is part else part for at, part in enumerate(now)]


def _shared(part: Any, again: dict[int, Any]) -> Any:
    """Return a part of the arguments in which one copy stands for a container that is there several times."""
    known = again.get(id(part), part)
    if known is not part:
        return known
    if type(part) is list:
        part[:] = [_shared(child, again) for child in part]
    elif type(part) in _DICTS:
        part.update({key: _shared(child, again) for key, child in part.items()})
    elif type(part) is tuple:
        return tuple([_shared(child, again) for child in part])
    elif isinstance(part, tuple) and hasattr(part, "_make"):
        return part._make([_shared(child, again) for child in part])
    elif is_changeable(type(part)):
        for name, child in held_in(part).items():
            object.__setattr__(part, name, _shared(child, again))
    return part
