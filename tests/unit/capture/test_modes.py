# SPDX-License-Identifier: BSD-3-Clause
"""Modes: texts, truths, members, functions and objects that code reads, and replaces by others; each has a trace."""

import enum
import random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from effort import sweep

import tracejit as tj


class Phase(enum.Enum):
    START, RUN, STOP = range(3)


class Level(enum.IntEnum):
    LOW, MIDDLE, HIGH = range(3)


class Gear:
    def __init__(self, ratio: float) -> None:
        self.ratio = ratio


def half(x: Any) -> Any:
    return x * 0.5


def double(x: Any) -> Any:
    return x * 2.0


GEARS = Gear(0.5), Gear(1.0), Gear(2.0)
# The values of a mode, and an expression of one of them, P.
DOMAINS: dict[str, tuple[tuple[Any, ...], str]] = {
    "truths": ((False, True, True), "x if P else -x"),
    "texts": (("idle", "run", "stop"), "x * len(P)"),
    "none": ((None, "a", "bc"), "x if P is None else x * len(P)"),
    "members": ((Phase.START, Phase.RUN, Phase.STOP), "x * (1 + P.value)"),
    "levels": ((Level.LOW, Level.MIDDLE, Level.HIGH), "x + P"),
    "ufuncs": ((np.sin, np.cos, np.tanh), "P(x)"),
    "functions": ((np.sum, np.max, np.mean), "x * P(x)"),
    "own": ((half, double, np.negative), "P(x)"),
    "types": ((int, float, complex), "x * len(P.__name__)"),
    "objects": (GEARS, "x * P.ratio"),
    "tuples": ((("a", "b"), ("b", "a"), ("c",)), "x * len(P[0]) + len(P)"),
}
PLACES = ("o.m", "o.d['k']", "o.inner.m", "o.l[1]", "m")
STEPS = (
    "P = B if P is A else A", "if P is A: P = B", "if P == C: P = A", "P = A if x[0] > 0.5 else B", "P = C",
    "P, Q = Q, P", "if Q is P: P = C", "Q = P", "Q = A if P is not A else C", "P = NEXT[P]", "P = (A, B, C)[n]",
    "if x.sum() > 1.0: P = NEXT[P]", "del P; P = B", "y = y + EXPR; P = NEXT[P]", "o.old = P; P = A",
    "P = B if P in (A, C) else C",
)  # fmt: skip


def world(values: tuple[Any, ...]) -> SimpleNamespace:
    inner = SimpleNamespace(m=values[1])
    return SimpleNamespace(
        m=values[0], d={"k": values[1]}, inner=inner, l=[values[0], values[2]], old=values[0]
    )


def state(o: SimpleNamespace, names: dict[str, Any], values: tuple[Any, ...]) -> list[int]:
    held = [o.m, o.d["k"], o.inner.m, *o.l, names["m"], o.old]
    return [next(i for i, value in enumerate(values) if value is one) for one in held]


def follow(
    body: list[str], values: tuple[Any, ...], calls: list[tuple[list[float], int, Any]], accelerated: Any
) -> tuple[list[Any], Any]:
    """Return results and modes after each call, and the function."""
    o = world(values)
    names = {"o": o, "np": np, "m": values[0], "A": values[0], "B": values[1], "C": values[2]}
    names["NEXT"] = dict(zip(values, (*values[1:], values[0]), strict=True))
    text = "def function(x, n):\n    global m\n    y = 0.0 * x\n" + "".join(f"    {line}\n" for line in body)
    exec(f"{text}    return y\n", names)
    function = accelerated(names["function"])
    found = []
    for x, n, outside in calls:
        if outside is not None:
            exec(f"{outside[0]} = value", names | {"value": values[outside[1]], "o": o})
        result = function(np.array(x), n)
        found.append((np.asarray(result).tolist(), state(o, names, values)))
    return found, function


def body_of(draw: random.Random, expression: str) -> list[str]:
    lines: list[str] = []
    for _ in range(draw.randint(1, 4)):
        p, q = draw.sample(PLACES, 2)
        step = draw.choice(STEPS).replace("EXPR", expression)
        parts = [part.strip() for part in step.split(";")] if not step.startswith("if") else [step]
        if p in ("m", "o.l[1]") and parts[0] == "del P":
            parts = parts[1:]
        lines += [part.replace("P", p).replace("Q", q) for part in parts]
    shown = draw.choice(PLACES)
    return [*lines, f"y = y + {expression.replace('P', shown)}"]


def same(got: list[Any], want: list[Any]) -> bool:
    return all(
        modes == others and np.allclose(result, other, rtol=1e-12)
        for (result, modes), (other, others) in zip(got, want, strict=True)
    )


@pytest.mark.sampled
@pytest.mark.filterwarnings("ignore::tracejit.NotAcceleratedWarning", "ignore::tracejit.LostChangeWarning")
@pytest.mark.parametrize("seed", range(sweep(10, 400)))
@pytest.mark.parametrize("domain", DOMAINS)
def test_drawn_programs_leave_the_modes_of_the_plain_function(domain: str, seed: int) -> None:
    values, expression = DOMAINS[domain]
    draw = random.Random(f"{domain} {seed}")
    body = body_of(draw, expression)
    calls = []
    for _ in range(14):
        outside = (draw.choice(PLACES), draw.randrange(3)) if draw.random() < 0.15 else None
        calls.append(([draw.random(), draw.random()], draw.randrange(3), outside))
    want, _ = follow(body, values, calls, lambda fun: fun)
    got, _ = follow(body, values, calls, tj.dlaccelerate(max_variants=30))
    assert same(got, want), body


@pytest.mark.parametrize("domain", DOMAINS)
def test_each_mode_has_a_trace(domain: str) -> None:
    values, expression = DOMAINS[domain]
    body = [f"y = y + {expression.replace('P', 'o.m')}", "o.m = NEXT[o.m]"]
    calls = [([0.1 * i, 0.7], 0, None) for i in range(12)]
    want, _ = follow(body, values, calls, lambda fun: fun)
    got, function = follow(body, values, calls, tj.dlaccelerate(audit=False))
    assert same(got, want)
    kinds = len(set(values))
    assert function.stats.traces == 2 * kinds
    assert function.stats.hits == 12 - 2 * kinds


def test_a_text_that_grows_runs_uncompiled() -> None:
    o = SimpleNamespace(text="")

    @tj.dlaccelerate(max_variants=3)
    def scaled(x: Any) -> Any:
        o.text += "."
        return x * len(o.text)

    with pytest.warns(tj.NotAcceleratedWarning, match=r"o\.text, which it reads, changes from call to call"):
        found = [scaled(np.ones(1)).item() for _ in range(8)]
    assert found == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    assert o.text == "." * 8
