# SPDX-License-Identifier: BSD-3-Clause
"""Calls in words: the names of arguments, and why a call was a hit or a miss."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.signature import Key, ValuePart, differences

_MOST_ARGUMENTS = 12  # described one by one


def leaf_names(function: Callable[..., Any], structure: Any) -> list[str]:
    """Return the name of each leaf of ``(args, kwargs)``, in terms of the function's parameters."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names = []
    for path in tree.paths(tree.TreeDef(structure, [], 0), ""):
        kind, _, rest = path[1:].partition("]")
        position, _, deeper = rest[1:].partition("]")
        if kind == "1":
            names.append(position.strip("'") + deeper)
            continue
        at = int(position)
        if at < len(parameters) and parameters[at].kind is not inspect.Parameter.VAR_POSITIONAL:
            names.append(parameters[at].name + deeper)
        else:
            names.append(f"argument {at + 1}{deeper}")
    return names


def describe(function: Callable[..., Any], key: Key) -> str:
    """Return the arguments of a key in words."""
    names = leaf_names(function, key.structure)
    parts = [f"{name}: {part}" for name, part in zip(names, key.parts, strict=True)]
    if len(parts) > _MOST_ARGUMENTS:
        more = len(parts) - _MOST_ARGUMENTS + 1
        parts = [*parts[: _MOST_ARGUMENTS - 1], f"and {more} more"]
    return ", ".join(parts) or "no arguments"


def why_missed(function: Callable[..., Any], key: Key, known: Sequence[Key]) -> str:
    """Return why no trace was found for `key`, given the keys of the traces that there were, oldest first."""
    if not known:
        return "because there was none yet."
    compared = [(old, differences(old, key)) for old in reversed(known)]
    alike = [(old, places) for old, places in compared if places]
    if any(places == [] for _, places in compared):
        return "because the keys of a dict have another order, which a function that runs over it would see."
    if not alike:
        mine, latest = (tree.TreeDef(k.structure, [], 0) for k in (key, known[-1]))
        place = tree.difference(latest, mine, "(args, kwargs)")
        return f"because the containers are others: compared with the latest trace, {place}."
    old, places = min(alike, key=lambda pair: len(pair[1]))
    names = leaf_names(function, key.structure)
    reasons = [f"{names[i]} was {old.parts[i]}, is {key.parts[i]}" for i in places]
    note = ""
    if all(_is_number(part) for k in (old, key) for part in map(k.parts.__getitem__, places)):
        plain = all(getattr(k.parts[i], "kind", None) in (int, float) for k in (old, key) for i in places)
        note = (
            " A number that takes a third value becomes an input of the trace."
            if plain
            else " A number that changes from call to call costs a trace each time: pass it as a dlarray."
        )
    return f"because, compared with the trace that is nearest, {'; '.join(reasons)}.{note}"


def _is_number(part: Any) -> bool:
    return (
        type(part) is ValuePart and part.kind is not bool and issubclass(part.kind, (int, float, np.number))
    )
