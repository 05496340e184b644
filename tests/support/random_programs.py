# SPDX-License-Identifier: BSD-3-Clause
"""Random programs with branches, captured state that changes, numbers and random numbers: accelerated as uncompiled.

Each is called twice in the same way, accelerated and plain, while what it reads changes between calls. There are two
kinds: programs written as text, which read names of all kinds (globals, closures, attributes, containers) and call
other functions; and programs of steps, which return containers and numbers and draw from a generator of their own.
"""

import random
import warnings

import numpy as np

import tracejit as tj
from tracejit import dlaccelerate, dlarray, dlgradient

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


def change_names(rng, names, world):
    """Change something that a program of text may read."""
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


class OfText:
    """A program that is written as text."""

    def __init__(self, seed, accelerate):
        self.rng = random.Random(seed)
        self.names = {"np": np, "tj": tj, "__name__": f"program_{seed}"}
        self.text = source_of(seed)
        exec(compile(self.text, f"<program {seed}>", "exec"), self.names)
        self.world = self.names["world"](accelerate)
        self.fun = self.world[0]
        self.inputs = [np.array([self.rng.uniform(-2, 2) for _ in range(3)]) for _ in range(3)]

    def change(self):
        if self.rng.random() < 0.3:
            change_names(self.rng, self.names, self.world)

    def arguments(self):
        return self.rng.choice(self.inputs), self.rng.choice([1.0, 1.0, 1.0, 1.5, 2.5])

    def drawn(self):
        return tj.rng()


class State:
    """What a program reads around its arguments."""

    def __init__(self):
        self.scale = 1.0
        self.weights = np.array([0.5, -1.0, 2.0])
        self.flag = True


def program_of_steps(rnd):
    """Return a function of (x, rate) as a list of steps, the state that it reads, its generator, and the steps."""
    state = State()
    generator = tj.Generator(rnd.randrange(1000))
    steps = [rnd.choice("abcdefghijklmn") for _ in range(rnd.randint(2, 6))]

    def program(x, rate):
        y = x
        extra = []
        for step in steps:
            if step == "a":
                y = y * 2 if y.sum() > 0 else y - 1
            elif step == "b":
                y = y * state.weights
            elif step == "c":
                y = y + state.scale
            elif step == "d":
                y = y * rate
            elif step == "e":
                y = y + tj.rand(3, generator=generator)
            elif step == "f":
                y = y[y > 0].sum() + y
            elif step == "g":
                y = y if state.flag else -y
            elif step == "h":
                y = y + int(y[0]) % 2
            elif step == "i":
                y = dlgradient((y * y * x).sum(), x) if y.sum() < 50 else y * 0.01
            elif step == "j":
                y = np.tanh(y)
            elif step == "k":
                extra.append(rate + 1)
            elif step == "l":
                y = y * (0.5 if rate > 0.3 else 1.5)
            elif step == "m":
                for _ in range(3):
                    y = y * 0.5 if abs(y).max() > 1 else y + 0.1
            else:
                extra.append(tj.nonzero(y > 0)[0])
        return y, extra

    return program, state, generator, "".join(steps)


def change_state(rnd, state):
    """Change something that a program of steps reads, now and then."""
    what = rnd.randrange(24)
    if what == 0:
        state.scale = rnd.choice([1.0, 2.0])
    elif what == 1:
        state.weights[rnd.randrange(3)] = rnd.choice([-1.0, 0.25, 3.0])
    elif what == 2:
        state.weights = np.array([rnd.choice([1.0, -2.0]) for _ in range(3)])
    elif what == 3:
        state.flag = not state.flag


class OfSteps:
    """A program that is a list of steps."""

    def __init__(self, seed, accelerate):
        self.rng = rng = random.Random(seed)
        program, self.state, self.generator, self.text = program_of_steps(rng)
        self.fun = accelerate(program)
        self.rates = [rng.choice([0.25, 0.5, 0.75, 1.25]) for _ in range(rng.randint(1, 4))]
        self.inputs = [np.array([rng.choice([-2.0, -0.5, 0.5, 1.5]) for _ in range(3)]) for _ in range(3)]

    def change(self):
        change_state(self.rng, self.state)

    def arguments(self):
        return self.rng.choice(self.inputs), self.rng.choice(self.rates)

    def drawn(self):
        return self.generator.state


def run(kind, seed, enabled):
    """Return what the calls of a program give, its text, its warnings and how many calls were replays."""
    program = kind(seed, lambda fun: dlaccelerate(fun, enabled=enabled))
    found = []
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="ignore"), tj.rng(seed):
        warnings.simplefilter("always")
        for _ in range(CALLS):
            program.change()
            given = program.arguments()
            try:
                result = program.fun(*given)
            except Exception as error:  # then the plain function raises the same
                result = type(error).__name__
            found.append((result, program.drawn()))
    return found, program.text, [str(warning.message) for warning in caught], program.fun.stats.hits


def differs(found, expected):
    """Return how a result differs from the expected one, None if it does not."""
    (have, have_tree), (want, want_tree) = tj.tree.flatten(found), tj.tree.flatten(expected)
    if have_tree != want_tree:
        return f"{have_tree}, expected {want_tree}"
    for a, b in zip(have, want, strict=True):
        if type(a) is not type(b):
            return f"{a!r}, expected {b!r}"
        if isinstance(a, dlarray):
            if a.format != b.format:
                return f"{a!r}, expected {b!r}"
            a, b = a._data, b._data
        if isinstance(a, str):
            same = a == b
        else:
            a, b = np.asarray(a), np.asarray(b)
            same = a.shape == b.shape and a.dtype == b.dtype
            same = same and np.allclose(a, b, rtol=1e-9, atol=1e-10, equal_nan=True)
        if not same:
            return f"{a!r}, expected {b!r}"
    return None


def check(kind, seeds):
    """Compare programs of a kind, accelerated and plain; at least a tenth of the calls are replays."""
    wrong, hits = [], 0
    for seed in seeds:
        found, text, told, replayed = run(kind, seed, True)
        expected, _, _, _ = run(kind, seed, False)
        hits += replayed
        assert len(told) == len(set(told)), f"a warning twice in program {seed}: {told}"
        # Nothing is random or counts that no trace sees: two recordings never differ without a reason.
        differences = [text for text in told if "two recordings differ" in text or "no longer what" in text]
        assert not differences, f"program {seed}: {differences}\n{text}"
        for call, ((have, state), (want, expected_state)) in enumerate(zip(found, expected, strict=True)):
            difference = differs(have, want) or (
                None if state == expected_state else f"the generator is at {state}, expected {expected_state}"
            )
            if difference is not None:
                wrong.append((seed, call, difference, text))
                break
    print(f"{len(seeds)} programs, {100 * hits / (len(seeds) * CALLS):.1f} % of the calls were replays")
    assert not wrong, (
        f"{len(wrong)} programs differ; program {wrong[0][0]}, call {wrong[0][1]}: {wrong[0][2]}\n{wrong[0][3]}"
    )
    assert hits > len(seeds) * CALLS / 10
