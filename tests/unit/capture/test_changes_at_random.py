# SPDX-License-Identifier: BSD-3-Clause
"""Programs drawn at random: two functions that change what is outside and read it, and changes between their calls."""

import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from changing_programs import MODULE, REPLAYED, TOLD, frozen

import tracejit as tj

# Of several statements each is one of these. After an error everything outside is as it was, unlike in plain Python.
_SIMPLE = [
    body
    for body in (*REPLAYED, *TOLD)
    if not body.startswith(("global", "nonlocal", "for ", "if ", "del "))
    and "^" not in body
    and "<<" not in body
]
_READS = (
    "x = x * o.n", "x = x + o.a.sum()", "x = x * d.get('n', 1)", "x = x + g", "x = x * (2 if o.flag else 1)",
    "x = x + o.t", "x = x + len(o.h)", "x = x * Box.count", "x = x + c", "x = x + len(o.s)", "x = x * o.big[1]",
)  # fmt: skip
_OUTSIDE = (
    "o.n = 3", "o.n = 2.5", "o.a[:] = 1", "o.big[:] = 1", "o.flag = not o.flag", "d['n'] = 2", "o.k = 5",
    "o.dt = 0.25", "Box.count = 9", "o.t = 7.5", "o.h.clear()", "o.l[:1] = [-1]", "o.s.clear()", "d.pop('new', None)",
    "slotted.n = 0",
)  # fmt: skip
_SECOND = """
    @accelerated
    def second(x, k=1):
        SECOND
        return x * 3

    return (program, second), outside, lambda text: exec(text, globals())
"""
_PROGRAMS = MODULE[: MODULE.index("    def reset")] + _SECOND


def run(
    bodies: tuple[str, str], calls: list[tuple[int, int, str]], accelerated: Callable[[Any], Any]
) -> tuple[list[Any], Any]:
    """Return the results and what was outside after each call, and the functions."""
    names: dict[str, Any] = {"collections": __import__("collections")}
    exec(_PROGRAMS.replace("BODY", bodies[0]).replace("SECOND", bodies[1]), names)
    functions, outside, change = names["make"](accelerated)
    found = []
    for number, (which, k, text) in enumerate(calls):
        change(text)
        try:
            result = frozen(functions[which](np.full(2, float(number % 5)), k))
        except (IndexError, KeyError) as error:
            result = type(error)
        found.append((result, frozen(outside())))
    return found, functions


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(32))
def test_random_programs(seed: int) -> None:
    draw = random.Random(seed)
    bodies = (
        "; ".join(draw.sample(_SIMPLE, draw.choice([1, 2, 2, 3]))),
        "; ".join(draw.sample([*_SIMPLE, *_READS * 4], draw.choice([1, 2]))),
    )
    changes = ("pass", *_OUTSIDE)
    weights = [40, *[2] * len(_OUTSIDE)]
    calls = [
        (int(draw.random() < 0.3), int(draw.random() < 0.75), draw.choices(changes, weights)[0])
        for _ in range(24)
    ]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found, _ = run(bodies, calls, tj.dlaccelerate(audit=False))
    if any(issubclass(warning.category, tj.LostChangeWarning) for warning in told):
        return
    assert found == run(bodies, calls, lambda fun: fun)[0], bodies
