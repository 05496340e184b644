# SPDX-License-Identifier: BSD-3-Clause
"""The differences between the arguments of a call and those of the exported traces, in words."""

from collections.abc import Callable, Sequence

from tracejit import tree
from tracejit.call.signature import Key, NumberPart, part_fits

_SHOWN = 5  # arguments


def mismatch(call: Key, exported: Sequence[Key], names_of: Callable[[Key], list[str]]) -> str:
    """Return how the key of a call differs from the nearest exported key.

    Args:
        call: the key that no trace fits.
        exported: the keys of the traces.
        names_of: gives the names of the leaves of a key.
    """
    candidates = [key for key in exported if key.structure == call.structure]
    if not candidates:
        return _structure_mismatch(call, exported, names_of)
    # Of equally near keys, one in which numbers vary.
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
        return "the keys of a dict are in a different order from the exported one."
    names = names_of(call)
    differences = [f"{names[i]} is {call.parts[i]}, expected {key.parts[i]}" for i in places[:_SHOWN]]
    return f"{'; '.join(differences)}{'; ...' if len(places) > _SHOWN else ''}."


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
