# SPDX-License-Identifier: BSD-3-Clause
"""The differences between the arguments of a call and those of the exported traces, in words."""

from collections.abc import Callable, Sequence
from typing import Any

from tracejit import tree
from tracejit.call.signature import Key, NumberPart, part_fits
from tracejit.util.text import shown

_SHOWN = 5  # arguments


def mismatch(
    call: Key,
    exported: Sequence[Key],
    names_of: Callable[[Key], list[str]],
    dicts_of: Callable[[Key], list[tuple[str, tuple[Any, ...]]]],
) -> str:
    """Return how the key of a call differs from the nearest exported key.

    Args:
        call: the key that no trace fits.
        exported: the keys of the traces.
        names_of: gives the names of the leaves of a key.
        dicts_of: gives the names of its dicts, and their sorted keys.
    """
    candidates = [key for key in exported if key.structure == call.structure]
    if not candidates:
        return _structure_mismatch(call, exported, names_of)
    # Among equally near keys, one in which numbers vary.
    candidates.sort(key=lambda key: -sum(type(part) is NumberPart for part in key.parts))
    misfits = [
        [
            i
            for i, (part, given) in enumerate(zip(key.parts, call.parts, strict=True))
            if not part_fits(part, given)
        ]
        for key in candidates
    ]
    places, key = min(zip(misfits, candidates, strict=True), key=lambda pair: len(pair[0]))
    if not places:
        return _order_mismatch(call, key, dicts_of(call))
    names = names_of(call)
    differences = [
        f"{names[i]} is {call.parts[i]}, expected {_expected(key.parts[i])}" for i in places[:_SHOWN]
    ]
    return f"{'; '.join(differences)}{'; ...' if len(places) > _SHOWN else ''}."


def _expected(part: Any) -> str:
    if type(part) is NumberPart:
        return f"{part.words} (any value)"
    return str(part)


def _order_mismatch(call: Key, exported: Key, dicts: Sequence[tuple[str, tuple[Any, ...]]]) -> str:
    """Return the first dict whose keys have a different order, and both orders."""
    orders = zip(dicts, call.orders, exported.orders, strict=True)
    name, given, expected = next(
        (name, given or keys, expected or keys)
        for (name, keys), given, expected in orders
        if given != expected
    )
    return f"{name} has the keys in the order {_keys(given)}, expected {_keys(expected)}."


def _keys(keys: Sequence[Any]) -> str:
    return f"[{', '.join(map(shown, keys))}]"


def _structure_mismatch(call: Key, exported: Sequence[Key], names_of: Callable[[Key], list[str]]) -> str:
    given = set(names_of(call))
    expected = min((set(names_of(key)) for key in exported), key=lambda names: len(names ^ given))
    sentences = [
        f"{what}: {', '.join([*sorted(names)[:_SHOWN], *['...'] * (len(names) > _SHOWN)])}."
        for what, names in (("Missing", expected - given), ("Not expected", given - expected))
        if names
    ]
    if sentences:
        return f"the arguments have a different structure from the exported ones. {' '.join(sentences)}"
    place = tree.difference(
        tree.TreeDef(exported[0].structure, [], 0), tree.TreeDef(call.structure, [], 0), "(args, kwargs)",
        "what was exported", "this call",
    )  # fmt: skip
    return f"the arguments have a different structure from the exported ones: {place}."
