# SPDX-License-Identifier: BSD-3-Clause
"""Random functions with branches, state that changes between calls, numbers and random numbers: as uncompiled.

TRACEJIT_PROGRAMS=2000 runs as many; a few run with the suite.
"""

import os
import random
import warnings

import numpy as np
import pytest

import tracejit as tj
from tracejit import config, dlaccelerate, dlarray, dlfeval, dlgradient

PROGRAMS = int(os.environ.get("TRACEJIT_PROGRAMS", "60"))
CALLS = 20


class State:
    """What a program reads around its arguments."""

    def __init__(self):
        self.scale = 1.0
        self.weights = np.array([0.5, -1.0, 2.0])
        self.flag = True


def make(rnd):
    """Return a function of (x, rate) as a list of steps, and the state that it reads."""
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


def change(rnd, state):
    """Change something that the program reads, now and then."""
    what = rnd.randrange(24)
    if what == 0:
        state.scale = rnd.choice([1.0, 2.0])
    elif what == 1:
        state.weights[rnd.randrange(3)] = rnd.choice([-1.0, 0.25, 3.0])
    elif what == 2:
        state.weights = np.array([rnd.choice([1.0, -2.0]) for _ in range(3)])
    elif what == 3:
        state.flag = not state.flag


def compared(found, expected, note):
    (have, have_tree), (want, want_tree) = tj.tree.flatten(found), tj.tree.flatten(expected)
    assert have_tree == want_tree, note
    for a, b in zip(have, want, strict=True):
        assert type(a) is type(b), note
        if isinstance(a, dlarray):
            a, b = a._data, b._data
            assert a.shape == b.shape and a.dtype == b.dtype, note
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9, err_msg=note)


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_as_uncompiled(seed, monkeypatch):
    monkeypatch.setattr(config.settings, "backend", "python")
    rnd = random.Random(seed)
    program, state, generator, steps = make(rnd)
    accelerated = dlaccelerate(program)
    rates = [rnd.choice([0.25, 0.5, 0.75, 1.25]) for _ in range(rnd.randint(1, 4))]
    inputs = [np.array([rnd.choice([-2.0, -0.5, 0.5, 1.5]) for _ in range(3)]) for _ in range(3)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tj.TraceJitWarning)
        for call in range(CALLS):
            change(rnd, state)
            x, rate = rnd.choice(inputs), rnd.choice(rates)
            before = generator.state
            expected = dlfeval(program, x, rate)
            after = generator.state
            generator.state = before
            compared(accelerated(x, rate), expected, f"steps {steps}, call {call}")
            assert generator.state == after
