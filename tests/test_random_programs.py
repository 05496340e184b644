# SPDX-License-Identifier: BSD-3-Clause
"""Random programs with branches, captured state that changes and random numbers: accelerated as uncompiled.

TRACEJIT_PROGRAMS=2000 runs so many programs, TRACEJIT_PROGRAMS_FROM=500 begins with that one.
"""

import os
import random
import warnings

import numpy as np
import pytest
from interpreted import interpreted

import tracejit as tj
from tracejit import config, dlaccelerate, replay

PROGRAMS = int(os.environ.get("TRACEJIT_PROGRAMS", "60"))
FIRST = int(os.environ.get("TRACEJIT_PROGRAMS_FROM", "0"))
CALLS = 20

NUMBERS = ["RATE", "rate", "self.rate", "self.scale", "self.shared", "TABLE['rate']", "n", "LIST[0]"]
ARRAYS = ["WEIGHTS", "weights", "self.weights", "TABLE['weights']", "LIST[1]", "np.arange(3.0)"]
MODULE = """
RATE, STEPS, WEIGHTS = 2.0, 2, np.ones(3)
TABLE, LIST = {{"rate": 0.5, "weights": np.ones(3)}}, [1.5, np.ones(3), 1.0]

def helper(x):
    return x + RATE

class Model:
    shared = 1.5
    def __init__(self):
        self.rate, self.steps, self.weights = 0.5, 1, np.ones(3)
    @property
    def scale(self):
        return self.rate * 2
    def forward(self, x):
        return np.tanh(x * self.weights) + self.scale

def world(accelerate):
    rate, steps, weights = 0.5, 1, np.ones(3)
    self = Model()

    def inner(x):
        return x * weights - rate

    @accelerate
    def fun(v, n):
        w = v
{body}
        return v, w, v.sum() * {number}

    def set_rate(value):
        nonlocal rate
        rate = value

    def set_steps(value):
        nonlocal steps
        steps = value

    def set_weights(value):
        nonlocal weights
        weights = value

    return fun, self, set_rate, set_steps, set_weights, lambda: weights
"""


class Writer:
    """Writes the body of a random program."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.lines: list[str] = []

    def value(self) -> str:
        return self.rng.choice([self.rng.choice(NUMBERS), self.rng.choice(ARRAYS), "w", "0.5", "v"])

    def condition(self) -> str:
        number = self.rng.choice(NUMBERS)
        return self.rng.choice(
            [
                f"v.sum() > {number}",
                "v[0] < w[1]",
                f"{number} > 1",
                "(v > 0).any()",
                f"abs(v[1]) > {number} and w[0] > 0",
                "tj.rand() > 0.5",
                f"float(np.sum({self.rng.choice(ARRAYS)})) > 3",
                "n > 1.2",
                f"{self.rng.choice(ARRAYS)}[0] > 1",
            ]
        )

    def statement(self, indent: str, depth: int) -> None:
        pick = self.rng.randrange(17 if depth < 2 else 13)
        name = self.rng.choice("vvw")
        simple = [
            f"{name} = np.tanh({name}) {self.rng.choice('+-*')} {self.value()}",
            f"{name} = v {self.rng.choice('+-*')} {self.value()}",
            f"{name} = {self.rng.choice(['helper', 'inner', 'self.forward'])}({name})",
            f"{name} = {name} * {self.value()} + {self.value()}",
            f"{name} = v * tj.rand(3) + w",
            f"{name} = tj.dropout({name}, 0.5)",
            f"{name} = {name} + tj.randn() * {self.rng.choice(NUMBERS)}",
            f"{name} = {name} * float(np.sum({self.rng.choice(ARRAYS)}))",
            f"{name} = {name} - {name}[{name} > 0].sum()",
            f"{name} = tj.dlgradient((np.tanh({name}) ** 2 * {self.value()}).sum(), {name})",
            f"{name} = np.maximum({name}, {self.value()})",
            f"{name} = {name} + {self.rng.choice(ARRAYS)}[int(abs({self.rng.choice(NUMBERS)})) % 3]",
            f"{name} = {name} * tj.randi(3, 3)",
        ]
        if pick < 13:
            self.lines.append(indent + simple[pick])
        elif pick == 13:
            steps = self.rng.choice(["STEPS", "steps", "self.steps", "int(abs(v[0])) % 3"])
            self.lines.append(f"{indent}for i in range({steps}):")
            self.block(indent + "    ", depth + 1)
        else:
            self.lines.append(f"{indent}if {self.condition()}:")
            self.block(indent + "    ", depth + 1)
            if self.rng.random() < 0.6:
                self.lines.append(f"{indent}else:")
                self.block(indent + "    ", depth + 1)

    def block(self, indent: str, depth: int) -> None:
        for _ in range(self.rng.randint(1, 3 if depth else 6)):
            self.statement(indent, depth)


def source_of(seed: int) -> str:
    """Return the text of a random program."""
    writer = Writer(random.Random(seed))
    writer.block("        ", 0)
    return MODULE.format(body="\n".join(writer.lines), number=writer.rng.choice(NUMBERS))


def change(rng, names, world):
    """Change something that the program may read."""
    _, model, set_rate, set_steps, set_weights, weights = world
    number, steps = rng.choice([0.5, 2.0, -1.0]), rng.randrange(3)
    array = np.array([rng.choice([0.5, 1.0, -2.0]) for _ in range(3)])
    everything = [
        lambda: names.update(RATE=number),
        lambda: names.update(STEPS=steps),
        lambda: names.update(WEIGHTS=array),
        lambda: names["WEIGHTS"].__setitem__(slice(None), array),
        lambda: names["WEIGHTS"].__setitem__(0, number),
        lambda: set_rate(number),
        lambda: set_steps(steps),
        lambda: set_weights(array),
        lambda: weights().__setitem__(slice(None), array),
        lambda: setattr(model, "rate", number),
        lambda: setattr(model, "steps", steps),
        lambda: setattr(model, "weights", array),
        lambda: model.weights.__setitem__(1, number),
        lambda: setattr(type(model), "shared", number),
        lambda: names["TABLE"].update(rate=number),
        lambda: names["TABLE"].update(weights=array),
        lambda: names["TABLE"]["weights"].__setitem__(2, number),
        lambda: names["LIST"].__setitem__(0, number),
        lambda: names["LIST"].__setitem__(1, array),
        lambda: names["LIST"][1].__setitem__(slice(None), array),
        lambda: names.update(helper=rng.choice([lambda x: x * 2, lambda x: x - number])),
    ]
    rng.choice(everything)()


def run(seed, enabled):
    """Return what the calls of a program give, its warnings and how many calls were replays."""
    names = {"np": np, "tj": tj, "__name__": f"program_{seed}"}
    exec(compile(source_of(seed), f"<program {seed}>", "exec"), names)
    rng = random.Random(seed)
    world = names["world"](lambda fun: dlaccelerate(fun, enabled=enabled))
    fun = world[0]
    inputs = [np.array([rng.uniform(-2, 2) for _ in range(3)]) for _ in range(3)]
    found = []
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="ignore"), tj.rng(seed):
        warnings.simplefilter("always")
        for _ in range(CALLS):
            if rng.random() < 0.3:
                change(rng, names, world)
            given = rng.choice(inputs), rng.choice([1.0, 1.0, 1.0, 1.5, 2.5])
            try:
                result = [np.array(part) for part in fun(*given)]
            except Exception as error:  # then the plain function raises the same
                result = [type(error).__name__]
            found.append((result, tj.rng()))
    return found, [str(warning.message) for warning in caught], fun.stats.hits


@pytest.fixture(autouse=True)
def python_backend(monkeypatch):
    monkeypatch.setattr(config.settings, "backend", "python")
    monkeypatch.setattr(replay, "executable", interpreted)


def test_accelerated_as_uncompiled():
    wrong, hits = [], 0
    for seed in range(FIRST, FIRST + PROGRAMS):
        found, told, replayed = run(seed, True)
        expected, _, _ = run(seed, False)
        hits += replayed
        assert len(told) == len(set(told)), f"a warning twice in program {seed}: {told}"
        # Nothing is random or counts that no trace sees: two recordings never differ without a reason.
        differences = [text for text in told if "two recordings differ" in text or "no longer what" in text]
        assert not differences, f"program {seed}: {differences}\n{source_of(seed)}"
        for call, ((have, state), (want, expected_state)) in enumerate(zip(found, expected, strict=True)):
            same = state == expected_state and len(have) == len(want)
            same = same and all(
                a == b if isinstance(b, str) else np.allclose(a, b, rtol=1e-8, atol=1e-10, equal_nan=True)
                for a, b in zip(have, want, strict=True)
            )
            if not same:
                wrong.append((seed, call, have, want))
                break
    print(f"{PROGRAMS} programs, {100 * hits / (PROGRAMS * CALLS):.1f} % of the calls were replays")
    assert not wrong, f"{wrong}\n{source_of(wrong[0][0])}"
    assert hits > PROGRAMS * CALLS / 10
