# SPDX-License-Identifier: BSD-3-Clause
"""The expressions by which a call path finds arrays and containers in the arguments of a call."""

from collections import OrderedDict
from typing import Any

from tracejit import containers, tree
from tracejit.call.signature import ArrayPart, Key, NumberPart
from tracejit.record.argument_containers import walk


def argument_places(key: Key) -> list[str]:
    """Return for each input among the arguments the expression by which a call path takes it from `given`.

    It is empty for a number that varies, and for what no expression leads to.
    """
    parts = iter(key.parts)
    places: list[str] = []

    def leaf(place: str) -> None:
        part = next(parts)
        if isinstance(part, (ArrayPart, NumberPart)):
            places.append(place if isinstance(part, ArrayPart) else "")

    tree.walk(key.structure, key.orders, "given", leaf, _places_in)
    return places


def container_places(key: Key) -> list[str]:
    """Return the expressions for the containers that a function can change, as argument_places() does for arrays."""
    return walk(key.structure, key.orders, "given", _places_in)


def _places_in(place: str, kind: type, names: Any, length: int) -> list[str]:
    """Return the expressions of the children of a container."""
    if not place or kind is type(None):
        return [""] * length
    if kind is dict or kind is OrderedDict:
        return [f"{place}[{name!r}]" if type(name) in (str, int) else "" for name in names]
    if isinstance(names, containers.Outline):
        return [place + step if step else "" for step in names.expressions()]
    if issubclass(kind, tree.TreeNode):
        return [f"{place}._leaves[{i}]" for i in range(length)]
    if names is None or issubclass(kind, tuple):
        return [f"{place}[{i}]" for i in range(length)]
    return [f"{place}.{name}" for name in names]
