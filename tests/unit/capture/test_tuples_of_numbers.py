# SPDX-License-Identifier: BSD-3-Clause
"""State that is a tuple of numbers: ``x, v = self.state; self.state = (x + v, v + a)``."""

import math
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tracejit as tj

# Bodies of a function of an object o, a number a and an array x.
PROGRAMS = {
    "a step": "p, v = o.state; o.state = (p + 0.1 * v, v + a); return p",
    "items": "o.state = (o.state[0] + o.state[1], o.state[1] * a); return o.state[0] * x",
    "of arrays": "p, v = o.state; o.state = (p + x[0], v - x.sum()); return np.array(o.state)",
    "a branch": "p, v = o.state\nif p > 1.0: p = -0.5\no.state = (p + 0.3, v + a); return p",
    "a reset": "p, v = o.state; o.state = (p + v, v + a)\nif p > 0.5: o.state = (0.0, 0.25)\nreturn p * x",
    "integers": "i, t = o.count; o.count = (i + 1, t + 0.5); return x * i + t",
    "NumPy's numbers": "p, q = o.numpys; o.numpys = (p * np.float64(0.5), np.float64(q + a)); return p + q",
    "math": "p, v = o.state; o.state = (math.cos(p), math.hypot(p, v)); return v",
    "as it is": "return sum(o.state) * x, len(o.state), o.state",
    "two names": "o.other = o.state; p, v = o.state; o.state = (p + a, v); return o.other[0] * x",
    "in a dict": "p, v = o.d['s']; o.d['s'] = (p + v, v + a); return p * x",
    "in a loop": "for _ in range(3):\n  p, v = o.state; o.state = (p + 0.1 * v, v - 0.1 * p)\nreturn o.state[1] * x",
    "a method": "o.move(a); return o.state[0] * x",
    "swapped": "p, v = o.state; o.state = (v, p); return p * x",
}


class Model:
    """An object with such state."""

    def __init__(self) -> None:
        self.state = (-0.5, 0.25)
        self.count = (0, 1.0)
        self.numpys = (np.float64(2.0), np.float64(0.5))
        self.other = (0.0,)
        self.d = {"s": (1.0, 0.5)}

    def move(self, a: float) -> None:
        p, v = self.state
        v += a
        p += v
        self.state = (p, v)


def function_of(body: str, o: Any) -> Any:
    names = {"o": o, "np": np, "math": math}
    exec("def function(a, x):\n" + "".join(f"    {line}\n" for line in body.split("\n")), names)
    return names["function"]


def check_same(have: Any, want: Any) -> None:
    if isinstance(want, tuple):
        assert type(have) is type(want)
        for mine, theirs in zip(have, want, strict=True):
            check_same(mine, theirs)
    else:
        np.testing.assert_allclose(np.asarray(have), np.asarray(want), rtol=1e-12)
        assert np.asarray(have).dtype == np.asarray(want).dtype


@pytest.mark.parametrize("body", PROGRAMS.values(), ids=PROGRAMS)
@pytest.mark.parametrize("is_changed_outside", [False, True])
def test_replays_read_and_store_it(body: str, is_changed_outside: bool) -> None:
    have, want = Model(), Model()
    plain, accelerated = function_of(body, want), tj.dlaccelerate(function_of(body, have))
    for call in range(24):
        a, x = 0.01 * call, np.array([1.0 + call, 2.0])
        if is_changed_outside and call % 5 == 4:
            for o in (have, want):
                o.state, o.d["s"], o.count = (0.1 * call, -0.2), (0.3, 0.1 * call), (call, 0.5)
        check_same(accelerated(a, x), plain(a, x.copy()))
        for name in ("state", "count", "numpys", "other"):
            mine, theirs = getattr(have, name), getattr(want, name)
            check_same(mine, theirs)
            is_of_arrays = any(type(part) is tj.dlarray for part in mine)
            assert is_of_arrays or [*map(type, mine)] == [*map(type, theirs)]
        check_same(have.d["s"], want.d["s"])
    assert accelerated.stats.hits >= 6 and not accelerated.stats.uncompiled


def test_another_length_or_kind_is_recorded_again() -> None:
    o = SimpleNamespace(state=(1.0, 2.0))
    total = tj.dlaccelerate(lambda x: x * sum(o.state))
    for state in (
        (1.0, 2.0),
        (2.0, 3.0),
        (3.0, 1.5),
        (4.0, 1.0),
        (5.0, 2.0),
        (1.0, 2.0, 3.0),
        (1, 2.0),
        ("a",),
    ):
        o.state = state
        if state == ("a",):
            with pytest.raises(TypeError):
                total(np.ones(2))
        else:
            assert total(np.ones(2)).tolist() == [sum(state)] * 2


def test_an_environment_of_reinforcement_learning() -> None:
    class Cart:
        def __init__(self) -> None:
            self.state = (0.0, 0.1, 0.02, -0.1)

        def step(self, force: float) -> tuple[Any, float, bool]:
            x, speed, angle, turn = self.state
            push = (force + 0.05 * turn**2 * math.sin(angle)) / 1.1
            change = (9.8 * math.sin(angle) - math.cos(angle) * push) / (
                0.5 * (4 / 3 - 0.1 * math.cos(angle) ** 2 / 1.1)
            )
            gain = push - 0.05 * change * math.cos(angle) / 1.1
            self.state = (x + 0.02 * speed, speed + 0.02 * gain, angle + 0.02 * turn, turn + 0.02 * change)
            return np.array(self.state, dtype=np.float32), 1.0, abs(self.state[0]) > 2.4

    have, want = Cart(), Cart()
    step = tj.dlaccelerate(lambda force: have.step(force))
    for call in range(40):
        force = 10.0 if call % 3 else -10.0
        found, expected = step(force), want.step(force)
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-5)
        assert found[1:] == expected[1:]
        np.testing.assert_allclose(have.state, want.state, rtol=1e-12)
    assert step.stats.hits >= 25 and not step.stats.uncompiled


def test_a_number_beside_an_array_in_a_tuple() -> None:
    o = SimpleNamespace(state=(0, 0.0))

    @tj.dlaccelerate
    def function(x: Any) -> Any:
        o.state = (o.state[0] + 1, o.state[1] + x.sum())
        return x * o.state[1]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in range(12):
            total = call * (call + 1.0)
            assert function(np.full(2, float(call))).tolist() == [call * total] * 2
    assert o.state[0] == 12 and "cannot be looked at" not in function.explain()
