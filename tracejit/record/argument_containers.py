# SPDX-License-Identifier: BSD-3-Clause
"""The containers among the arguments of a function: it gets copies, and the caller's get what it puts into these.

Note [containers of arguments]
Inside a function other arrays stand for those of the call. So it gets copies of the dicts, lists and dataclasses that
hold them. When the function has ended, each copy is compared with what it held, object by object. What is new is put
into the caller's container (``params["w"] = params["w"] - rate * g``, ``history.append(loss)``, ``state.step += 1``),
as the function would have done itself, and what the function left alone stays the caller's own object. The contents of
a container are a dict or a list of the same keys, or a dict of the fields of a dataclass, with KEPT in the places of
what stays.

A container that the function has changed and returns is the caller's own in the result (``return params``).
"""

import operator
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from tracejit import containers, tree
from tracejit.errors import WriteError
from tracejit.util.named_tuples import NamedTuple

_DICTS = (dict, OrderedDict)


class _Staying:
    """The sign for a part of a container that stays."""

    def __repr__(self) -> str:
        return "what it held"

    def __reduce__(self) -> str:
        return "KEPT"


KEPT: Final = _Staying()
GONE: Final = object()  # of a field that the function has deleted


class ContainerChange(NamedTuple):
    """A change of a container among the arguments of a function.

    number    of the container
    name      the key, the index or the field that has another value; None where others went, or moved
    value     the value, or all contents with KEPT in the places of what stays
    is_whole  whether it is the contents
    """

    number: int
    name: Any
    value: Any
    is_whole: bool


class PassedContainer:
    """A stand-in for a container among the arguments in a result."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        return type(other) is PassedContainer and other.number == self.number

    def __hash__(self) -> int:
        return hash(self.number)

    def __repr__(self) -> str:
        return f"argument container {self.number}"


def is_changeable(kind: type) -> bool:
    """Return whether a function can put something into containers of a type."""
    if kind is list or kind in _DICTS or tree.fields_of(kind) is not None:
        return True
    way = tree.way_of(kind)
    return way is not None and way.can_change


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
    """Return the containers in arguments that a function can change, in the order of walk()."""
    found: list[Any] = []
    if treedef.structure is not tree.LEAF:
        _collect(treedef.structure, arguments, found)
    return found


def _collect(structure: Any, part: Any, found: list[Any]) -> None:
    kind, names, children = structure
    if is_changeable(kind):
        found.append(part)
    for number, child in enumerate(children):
        if child is not tree.LEAF:  # most are
            if kind in _DICTS:
                inner = part[names[number]]
            elif isinstance(names, containers.Outline):
                inner = _taken(part)[number]
            elif issubclass(kind, tree.TreeNode):
                inner = part._leaves[number]
            elif names is None or issubclass(kind, tuple):
                inner = part[number]
            else:
                inner = getattr(part, names[number])
            _collect(child, inner, found)


def places_of(treedef: tree.TreeDef) -> list[str]:
    """Return the place of each container in ``(args, kwargs)`` that a function can change."""

    def children(path: str, kind: type, names: Any, length: int) -> list[str]:
        if not path:
            return ["args", "kwargs"]
        return [path + step for step in tree.steps(kind, names, length)]

    return walk(treedef.structure, None, "", children)


class ContainerCopies:
    """The copies of the containers in arguments that a function gets.

    Args:
        treedef: of the arguments.
        arguments: as the caller gave them.
        copy: those that the function gets.

    Attributes:
        originals: the caller's containers.
        extra: an attribute of a dataclass that is no field, by which no trace can be told; None if there is none.
    """

    def __init__(self, treedef: tree.TreeDef, arguments: Any, copy: Any) -> None:
        self.originals = containers_of(treedef, arguments)
        self._copies = containers_of(treedef, copy)
        self._found: list[ContainerChange] | None = None
        self.extra: str | None = None
        for theirs, mine in zip(self.originals, self._copies, strict=True):
            for name in _more(theirs):
                self.extra = f"{type(theirs).__name__}.{name}"
                vars(mine)[name] = vars(theirs)[name]
        self._before = [_held_before(mine) for mine in self._copies]
        self._numbers = {id(mine): number for number, mine in enumerate(self._copies)}

    def check(self, function: str, names: Callable[[], Sequence[str]]) -> None:
        """Check that the function has put nothing into a container that the arguments hold twice, or that users make.

        Args:
            function: its name.
            names: returns the names of the containers.

        Raises:
            WriteError: if it has; the other copy, or the caller's, would not show it.
        """
        for changed in {change.number: None for change in self.changes()}:
            kind = type(self.originals[changed])
            if isinstance(tree.way_of(kind), containers.Registered):
                raise WriteError(
                    f"{function}: the function changes {names()[changed]}, a {kind.__name__}, whose class was "
                    "registered by tj.tree.register, and which the caller would not see changed. Return a new one "
                    "from the function."
                )
        idents = [*map(id, self.originals)] if self.changes() else []
        if len({*idents}) == len(idents):
            return
        for number in {change.number: None for change in self.changes()}:
            first, *more = [other for other, ident in enumerate(idents) if ident == idents[number]]
            if more:
                one, two = names()[first], names()[more[0]]
                name = type(self.originals[number]).__name__
                raise WriteError(
                    f"{function}: {one} and {two} are the same {name}, and the function puts something into one of "
                    f"them, which the other one would not show. Pass a copy of it as {two}, or pass it once."
                )

    def number_of(self, value: Any) -> int | None:
        """Return the number of a container that the function got, or None for any other value."""
        return self._numbers.get(id(value))

    def changes(self) -> list[ContainerChange]:
        """Return what the function has changed; it has ended."""
        if self._found is None:
            self._found = []
            for number, (copy, before) in enumerate(zip(self._copies, self._before, strict=True)):
                now = None if before is None else held_in(copy)
                if before is not None and not _are_same(before, now):
                    self._found += _changes(number, before, now, _has_fields(copy))
        return self._found

    def with_passed(self, result: Any, passed: Callable[[int], Any]) -> Any:
        """Return a result with something else in place of each container that the function has changed."""
        changed = self._changed()
        if not changed:
            return result
        leaves, treedef = tree.flatten(result, is_leaf=lambda part: self._numbers.get(id(part)) in changed)
        numbers = [self._numbers.get(id(leaf)) for leaf in leaves]
        return tree.unflatten(
            treedef,
            [
                leaf if number is None else passed(number)
                for leaf, number in zip(leaves, numbers, strict=True)
            ],
        )

    def _changed(self) -> set[int]:
        """Return the numbers of the containers that the function has changed, or containers in them."""
        changed = {change.number for change in self.changes()}
        if not changed:
            return changed
        for number, copy in reversed([*enumerate(self._copies)]):  # from the leaves to the root
            held = held_in(copy)
            parts = held.values() if type(held) is dict else held
            if any(self._numbers.get(id(part)) in changed for part in parts):
                changed.add(number)
        return changed

    def put_back(self, value_of: Callable[[Any], Any]) -> Callable[[], None]:
        """Return a function that puts into the caller's containers what the function has put into their copies.

        Args:
            value_of: returns what stands for a leaf outside of the function.
        """
        puts = []
        for change in self.changes():
            leaves, treedef = tree.flatten(change.value, is_leaf=lambda part: id(part) in self._numbers)
            made = [
                leaf if leaf is KEPT
                else self.originals[self._numbers[id(leaf)]] if id(leaf) in self._numbers
                else value_of(leaf)
                for leaf in leaves
            ]  # fmt: skip
            puts.append((self.originals[change.number], change, tree.unflatten(treedef, made)))

        def put_all() -> None:
            for container, change, value in puts:
                put(container, change, value)

        return put_all


def put(container: Any, change: ContainerChange, value: Any) -> None:
    """Put a value into a container, or all of its contents."""
    if change.is_whole:
        put_contents(container, value)
    elif type(container) is list or type(container) in _DICTS:
        container[change.name] = value
    elif (way := tree.way_of(type(container))) is not None:
        way.put(container, change.name, value)
    elif value is GONE:
        object.__delattr__(container, change.name)
    else:  # of a frozen dataclass, too, if the function has managed it
        object.__setattr__(container, change.name, value)


def put_contents(container: Any, contents: Any) -> None:
    """Put contents into a list, a dict, or what a function takes apart."""
    way = tree.way_of(type(container))
    if way is not None:
        held = way.contents(container)
        named = contents.items() if type(contents) is dict else enumerate(contents)
        parts = {name: held[name] if part is KEPT else part for name, part in named}
        way.put_contents(container, parts if type(contents) is dict else [*parts.values()])
        return
    if type(container) is list:
        container[:] = [container[at] if part is KEPT else part for at, part in enumerate(contents)]
        return
    for key in [key for key in container if key not in contents]:
        del container[key]
    parts = {key: container[key] if part is KEPT else part for key, part in contents.items()}
    if [*container] != [*parts][: len(container)]:
        container.clear()
    container.update(parts)


def held_in(container: Any) -> Any:
    """Return what a container holds: a list, or a dict of its items or fields."""
    kind = type(container)
    if kind is list:
        return [*container]
    if kind in _DICTS:
        return dict(container)
    way = tree.way_of(kind)
    if way is not None:
        return way.contents(container)
    own = getattr(container, "__dict__", None)
    if own is not None:
        return dict(own)
    names = tree.fields_of(kind) or ()
    return {name: getattr(container, name) for name in names if hasattr(container, name)}


def _held_before(container: Any) -> Any:
    """Return what a copy holds; None for one whose class gives other objects each time, so that no change shows."""
    held = held_in(container)
    is_steady = not isinstance(tree.way_of(type(container)), containers.Registered) or _are_same(
        held, held_in(container)
    )
    return held if is_steady else None


def _taken(container: Any) -> Sequence[Any]:
    """Return the children of a container that a function takes apart."""
    taken = tree.way_of(type(container)).take(container)  # type: ignore[union-attr]
    assert taken is not None
    return taken[1]


def _has_fields(container: Any) -> bool:
    """Return whether what a container holds are fields, which can be deleted one by one."""
    return tree.way_of(type(container)) is None and tree.fields_of(type(container)) is not None


def _more(container: Any) -> Any:
    """Return the names of the attributes of a container that are no fields."""
    is_of_fields = _has_fields(container) and hasattr(container, "__dict__")
    return vars(container).keys() - set(tree.fields_of(type(container)) or ()) if is_of_fields else ()


def _are_same(before: Any, now: Any) -> bool:
    if len(before) != len(now) or not all(map(operator.is_, before, now)):  # keys, or elements
        return False
    return type(now) is not dict or all(map(operator.is_, before.values(), now.values()))


def _changes(number: int, before: Any, now: Any, is_fields: bool) -> Iterator[ContainerChange]:
    """Return the changes of a container, or of the fields of a dataclass, given what it held and what it holds."""
    is_dict = type(now) is dict
    stays = [*now][: len(before)] == [*before] if is_dict else len(now) == len(before)
    known: Any = before if is_dict else dict(enumerate(before))
    parts = [*(now.items() if is_dict else enumerate(now))]
    if is_fields or stays:
        for name in before if is_fields else ():
            if name not in now:
                yield ContainerChange(number, name, GONE, False)
        for name, part in parts:
            if name not in known or known[name] is not part:
                yield ContainerChange(number, name, part, False)
        return
    kept = [KEPT if name in known and known[name] is part else part for name, part in parts]
    yield ContainerChange(number, None, dict(zip(now, kept, strict=True)) if is_dict else kept, True)
