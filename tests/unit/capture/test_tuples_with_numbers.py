# SPDX-License-Identifier: BSD-3-Clause
"""State that is a tuple, or a named tuple, of numbers beside arrays and other things: ``o.t = (w, n + 1)``."""

import random
import warnings
from collections import deque, namedtuple
from typing import Any, NamedTuple

import numpy as np
import pytest

import tracejit as tj

State = namedtuple("State", "w n rate")


class Typed(NamedTuple):
    """A named tuple with a default and a property."""

    w: Any
    n: int
    rate: float = 0.1

    @property
    def scaled(self) -> Any:
        return self.w * self.n


# Lines of functions of an object o and an array x, which add to an array acc.
LINES = (
    "w, n = o.t; o.t = (w + x * 0.5, n + 1)", "o.t = (o.t[0] * 0.9, o.t[-1] + 2)", "o.t = o.t[:1] + (o.t[1] * 2,)",
    "a, *b = o.nested; o.nested = (a + b[0][0], *b)", "o.tag = (o.tag[0], o.tag[1] + 1)",
    "o.nested = (o.nested[0], (o.nested[1][0] + 1, o.nested[1][1] + x), *o.nested[2:])",
    "o.state = o.state._replace(n=o.state.n + 1)", "acc = acc + o.state.w * o.state.rate",
    "acc = acc + o.t[0] * o.t[1]",
    "o.state = State(o.state.w + x / (1 + abs(o.state.n)), o.state.n, o.state.rate * 0.5)", "o.t = moved(o.t)",
    "o.state = State(*o.state[:2], 0.1)", "o.state = State(**{**o.state._asdict(), 'n': 3})", "acc = acc + o.u[0]",
    "o.typed = Typed(o.typed.w * 0.9 + x, o.typed.n + 1)", "acc = acc + o.typed.scaled", "o.t, o.u = o.u, o.t",
    "o.d['k'] = (o.d['k'][0] + x, o.d['k'][1] + 1)", "o.l[0] = (o.l[0][0] + 1, o.l[0][1] * 0.5)", "o.u = o.t",
    "for part in o.t: acc = acc + part", "acc = acc + sum(o.numbers)", "o.numbers = (o.numbers[1], o.numbers[0] + 1)",
    "if o.t[1] > 3: acc = acc * 2", "acc = helper(o.t, acc)", "acc = spread(*o.t, acc)", "o.nested[0][0] += 1.0",
    "o.q.append((o.q[-1][0] + x, o.q[-1][1] + 1)); o.q.popleft()", "acc = acc + o.q[0][0] * o.q[0][1]",
    "o.recent.append((x * 2, float(x.sum()))); acc = acc + sum(w * n for w, n in o.recent)",
    "acc = acc + o.l[0][0]", "acc = acc + o.d['k'][1]", "acc = acc * (len(o.nested) + o.u[1])",
    "t = o.nested; acc = acc + t[1][0] if t[3] is None else acc * t[1][0]", "z, y, v = o.state; acc = acc + y * v",
    "o.nested = (*o.nested[:2], 'b' if o.nested[1][0] > 4 else 'a', None)", "w = o.nested[0]; w *= 0.5",
    "acc = acc + (o.tag[1] if o.tag[0] == 'run' else 0)", "m, k = o.u; o.u = (m * 0.5 + x, k + 0.5)",
    "o.pairs = [(w * 0.5 + x, n + 1) for w, n in o.pairs]", "for w, n in o.pairs: acc = acc + w * n",
    "for i, (w, n) in enumerate(o.pairs): o.pairs[i] = (w + x, n + 1)", "ws, ns = zip(*o.pairs); acc = acc + sum(ws)",
    "o.d = {k: (w * 0.5 + x, n + 1) for k, (w, n) in o.d.items()}", "acc = acc + sum(n for _, n in o.pairs)",
    "o.pairs[0], o.pairs[1] = o.pairs[1], o.pairs[0]", "o.held = ({'w': o.held[0]['w'] + x}, o.held[1] + 1)",
    "h, n = o.held; h['w'] = h['w'] + x; o.held = (h, n + 1)", "acc = acc + o.held[0]['w'] * o.held[1]",
    "o.state = o.state._replace(w=o.state.w * 0.5)", "o.numbers = tuple(v * 0.5 for v in o.numbers)",
)  # fmt: skip
OUTSIDE = (
    "o.t = (o.t[0], 7)", "o.state = o.state._replace(n=8, rate=0.25)", "o.u = (np.asarray(o.u[0]) * 2, o.u[1] + 1)",
    "o.d['k'] = (np.ones(2), 4)", "o.numbers = (5, 0.125)", "o.tag = ('stop', 3)", "o.tag = ('run', 3)",
    "o.t = (o.t[0], 2.5)",
)  # fmt: skip


class Model:
    """An object with such state."""

    def __init__(self) -> None:
        self.t: Any = (np.zeros(2), 0)
        self.u: Any = (np.ones(2), 1.5)
        self.state = State(np.zeros(2), 0, 0.1)
        self.typed = Typed(np.ones(2), 0)
        self.nested = (np.ones(2), (1, np.zeros(2)), "a", None)
        self.d = {"k": (np.zeros(2), 0)}
        self.l = [(0, np.ones(2)), 3]
        self.pairs = [(np.zeros(2), 0), (np.ones(2), 1)]
        self.held = ({"w": np.ones(2)}, 0)
        self.numbers = (1, 2.0)
        self.q = deque([(np.zeros(2), 0), (np.ones(2), 1)])
        self.tag = ("run", 0)
        self.recent = deque([(np.zeros(2), 0.0)] * 3, maxlen=3)


def helper(t: Any, acc: Any) -> Any:
    w, n = t
    return acc + w * n


def spread(w: Any, n: Any, acc: Any) -> Any:
    return acc + w * n


def moved(t: Any) -> Any:
    return (t[0] + 1.0, t[1] + 1)


def function_of(lines: list[str], result: str) -> Any:
    names = {
        "State": State, "Typed": Typed, "helper": helper, "spread": spread, "moved": moved, "np": np,
    }  # fmt: skip
    body = "".join(f"    {line}\n" for line in ("acc = x * 1.0", *lines, f"return {result}"))
    exec(f"def step(o, x):\n{body}", names)
    return names["step"]


def parts(value: Any) -> list[Any]:
    """Return what a value holds, with the names of the classes of containers."""
    if isinstance(value, (tuple, list, deque)):
        return [type(value).__name__, *[part for each in value for part in parts(each)]]
    if isinstance(value, dict):
        return [part for key in value for part in [key, *parts(value[key])]]
    return [value]


def check_same(have: Any, want: Any) -> None:
    for mine, theirs in zip(parts(have), parts(want), strict=True):
        if isinstance(theirs, (np.ndarray, np.generic)):
            np.testing.assert_allclose(np.asarray(mine), theirs, rtol=1e-9, atol=1e-9)
        else:
            assert type(mine) is type(theirs)
            assert mine == (pytest.approx(theirs) if type(theirs) is float else theirs)


def check(lines: list[str], result: str, outside: list[str], calls: int = 10) -> Any:
    """Compare calls with those of plain Python, with changes from outside in between."""
    plain, mine, theirs = function_of(lines, result), Model(), Model()
    step = tj.dlaccelerate(plain)
    for number in range(calls):
        x = np.array([0.5, -1.0]) * (number % 4)
        check_same(step(mine, x), plain(theirs, x))
        check_same(vars(mine), vars(theirs))
        if number < len(outside):
            for o in (mine, theirs):
                exec(outside[number], {"o": o, "np": np})
    return step


@pytest.mark.sampled
@pytest.mark.parametrize("line", LINES)
def test_a_line_is_replayed(line: str) -> None:
    step = check([line, "acc = acc + o.t[0] * o.t[1] + o.state.n"], "acc", [], 16)
    assert step.stats.hits >= 4 and step.stats.uncompiled == 0


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(150))
def test_programs_at_random(seed: int) -> None:
    draw = random.Random(seed)
    lines = draw.sample(LINES, draw.randrange(1, 6))
    result = draw.choice(["acc", "acc, o.t[1]", "acc, o.u", "acc, o.state", "acc, o.nested[1]"])
    outside = [draw.choice([*OUTSIDE, *["pass"] * len(OUTSIDE)]) for _ in range(draw.choice([0, 8]))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tj.NotAcceleratedWarning)  # of numbers that change too often outside
        check(lines, result, outside)


def test_one_trace_for_all_numbers() -> None:
    """An optimiser that keeps its state in a tuple, as in functional code."""

    @tj.dlaccelerate
    def adam(o: Any, x: Any) -> Any:
        m, v, n = o.t
        loss = ((o.w * x - 1.0) ** 2).sum()
        slope = tj.dlgradient(loss, o.w)
        n = n + 1
        m, v = 0.9 * m + 0.1 * slope, 0.99 * v + 0.01 * slope**2
        o.w = o.w - 0.1 * (m / (1 - 0.9**n)) / (np.sqrt(v / (1 - 0.99**n)) + 1e-8)
        o.t = (m, v, n)
        return loss

    o = Model()
    o.w, o.t = tj.dlarray(np.ones(2)), (np.zeros(2), np.zeros(2), 0)
    losses = [adam(o, np.array([0.5, 2.0])).item() for _ in range(60)]
    assert o.t[2] == 60 and type(o.t[2]) is int and losses[-1] < 0.01 * losses[0]
    assert adam.stats.uncompiled == 0 and adam.stats.hits >= 50


def test_tuples_that_change_places() -> None:
    """In silence, ndarrays of one tuple were put in the place of another with which it had changed places."""

    def inner(t: Any) -> Any:
        t[0][0] += 1.0
        return (t[0] + 1.0,)

    def plain(o: Any, x: Any) -> Any:
        o.t[0][1] += x[0]
        o.u[0][1] *= 0.5
        o.t, o.u = o.u, o.t
        o.t = inner(o.t)
        return x + o.u[0]

    step = tj.dlaccelerate(plain)
    mine, theirs = Model(), Model()
    for o in (mine, theirs):
        o.t, o.u = o.t[:1], o.u[:1]
    for number in range(8):
        x = np.full(2, float(number))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tj.NotAcceleratedWarning)
            check_same(step(mine, x), plain(theirs, x))
        check_same((mine.t, mine.u), (theirs.t, theirs.u))
