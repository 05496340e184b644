# SPDX-License-Identifier: BSD-3-Clause
"""Keys in words: the names of arguments, and the reasons why no trace was found for a key."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.aval import NUMBERS
from tracejit.call.signature import Key, NumberPart, ValuePart, differences
from tracejit.ir import Where
from tracejit.record.argument_containers import walk
from tracejit.record.recorder import describe_location
from tracejit.util.text import differing_first, shown

_MOST_ARGUMENTS = 12  # described one by one


def leaf_names(function: Callable[..., Any], structure: Any) -> list[str]:
    """Return the name of each leaf of ``(args, kwargs)``, in terms of the function's parameters."""
    parameters = _parameters(function)
    return [_in_words(path, parameters) for path in tree.paths(tree.TreeDef(structure, [], 0), "")]


def dict_names(function: Callable[..., Any], structure: Any) -> list[tuple[str, tuple[Any, ...]]]:
    """Return the name of each dict in ``(args, kwargs)``, in the order of a key's orders, and its sorted keys."""
    parameters = _parameters(function)
    return [(_in_words(path, parameters), keys) for path, keys in tree.dicts(structure, "")]


def container_names(function: Callable[..., Any], structure: Any) -> list[str]:
    """Return the name of each container in ``(args, kwargs)`` that a function can change."""
    parameters = _parameters(function)
    places = walk(
        structure, None, "", lambda path, kind, names, _: [path + step for step in tree.steps(kind, names, _)]
    )
    return [_in_words(path, parameters) for path in places]


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []


def _in_words(path: str, parameters: Sequence[inspect.Parameter]) -> str:
    """Return a place in ``(args, kwargs)`` in terms of parameters."""
    if path == "[1]":
        return "the keyword arguments"
    kind, _, rest = path[1:].partition("]")
    position, _, deeper = rest[1:].partition("]")
    if kind == "1":
        return position.strip("'") + deeper
    at = int(position)
    if at < len(parameters) and parameters[at].kind is not inspect.Parameter.VAR_POSITIONAL:
        return parameters[at].name + deeper
    return f"argument {at + 1}{deeper}"


def describe(function: Callable[..., Any], key: Key, cached: Iterable[Key] = ()) -> str:
    """Return the arguments of a key in words; if there are many, those in which it differs from `cached` keys first."""
    names = leaf_names(function, key.structure)
    parts = [f"{name}: {part}" for name, part in zip(names, key.parts, strict=True)]
    if len(parts) > _MOST_ARGUMENTS:
        order = differing_first([key.parts, *[k.parts for k in cached if k.structure == key.structure]])
        more = len(parts) - _MOST_ARGUMENTS + 1
        parts = [*[parts[i] for i in order[: _MOST_ARGUMENTS - 1]], f"and {more} more"]
    return ", ".join(parts) or "no arguments"


def who_needs(name: str, what: str, where: Where) -> str:
    """Return in words what code needs an argument as a Python number."""
    return f"{what} at {describe_location(where)} needs {name} as a Python number"


def why_missed(
    function: Callable[..., Any], key: Key, cached: Sequence[Key], needed: Mapping[int, tuple[str, Where]]
) -> str:
    """Return why no trace was found for a key.

    Args:
        function: what was called.
        key: of the call.
        cached: the keys of the traces in the cache, oldest first.
        needed: the code that needs arguments as Python numbers, by the number of the leaf.
    """
    if not cached:
        return "because there was none yet."
    compared = [(old, differences(old, key)) for old in reversed(cached)]
    alike = [(old, places) for old, places in compared if places]
    reordered = [old for old, places in compared if places == []]
    if reordered:
        return f"because {_order_in_words(function, reordered[0], key)}: a function that iterates over it sees that."
    if not alike:
        latest, treedef = (tree.TreeDef(k.structure, [], 0) for k in (cached[-1], key))
        place = tree.difference(latest, treedef, "(args, kwargs)")
        return f"because the arguments have a different structure: compared with the latest trace, {place}."
    old, places = min(alike, key=lambda pair: len(pair[1]))
    names = leaf_names(function, key.structure)
    reasons = [_in_words_of_change(names[i], str(old.parts[i]), str(key.parts[i])) for i in places]
    notes = ""
    if all(_is_number(part) for k in (old, key) for part in map(k.parts.__getitem__, places)):
        kinds = {getattr(k.parts[i], "kind", None) for k in (old, key) for i in places}
        asked = [who_needs(names[i], *needed[i]) for i in places if i in needed]
        if asked:
            notes += f" Each value has a trace of its own, because {' and '.join(asked)}."
        if any(old.parts[i].kind is not key.parts[i].kind for i in places):  # type: ignore[union-attr]
            notes += f" Each type has a trace of its own: pass one type, such as float({names[places[0]]})."
        elif not kinds <= NUMBERS:
            notes += (
                " A NumPy number of this type that changes from call to call costs a trace each time: pass a Python "
                f"number, such as float({names[places[0]]})."
            )
        elif len(asked) < len(places):
            notes += (
                " A number that takes a third value becomes an input of the trace, unless it is needed as a Python "
                "number."
            )
    return f"because, compared with the nearest trace, {'; '.join(reasons)}.{notes}"


def _order_in_words(function: Callable[..., Any], old: Key, key: Key) -> str:
    """Return the dicts whose keys, or their order, have changed; the keys have the same structure."""
    changes = []
    orders = zip(dict_names(function, key.structure), old.orders, key.orders, strict=True)
    for (name, keys), before, now in orders:
        if before != now:
            texts = [f"[{', '.join(map(shown, order or keys))}]" for order in (now, before)]
            changes.append(f"{name} has the keys {texts[0]}, had {texts[1]}")
    return "; ".join(changes)


def _in_words_of_change(name: str, before: str, now: str) -> str:
    return f"{name} was {before}, is {now}" if before != now else f"{name} has other attributes than before"


def who_needs_what_varies(
    function: Callable[..., Any], key: Key, needed: Mapping[int, tuple[str, Where]]
) -> str:
    """Return in words what code needs numbers that vary as Python numbers."""
    names = leaf_names(function, key.structure)
    varying = [i for i, part in enumerate(key.parts) if type(part) is NumberPart]
    return " and ".join([who_needs(names[i], *needed[i]) for i in varying if i in needed])


def _is_number(part: Any) -> bool:
    return (
        type(part) is ValuePart and part.kind is not bool and issubclass(part.kind, (int, float, np.number))
    )
