# SPDX-License-Identifier: BSD-3-Clause
"""Functions among the arguments: accelerated ones and those with a backward function do what plain ones do."""

import functools

import numpy as np
import pytest

import tracejit as tj

X = np.array([1.0, 2.0])
rate = 2.0


def scaled(x):
    return rate * x


@tj.custom_gradient
def doubled(x):
    return 2 * x, ()


@doubled.backward
def _(residuals, ct):
    return 10 * ct


class Model:
    """An object with state."""

    def __init__(self):
        self.u = np.zeros(2)

    def step(self, x):
        self.u = 0.5 * self.u + rate * x
        return self.u * 1.0


class Accelerated(Model):
    """The same, with an accelerated method."""

    step = tj.dlaccelerate(Model.step)


def closure(factor):
    return lambda x: factor * x


# name: (what makes the plain function, what makes that which is passed)
FUNCTIONS = {
    "a function": (lambda: scaled, lambda: tj.dlaccelerate(scaled)),
    "a closure": (lambda: closure(3.0), lambda: tj.dlaccelerate(closure(3.0))),
    "a method": (lambda: Model().step, lambda: Accelerated().step),
    "an accelerated bound method": (lambda: Model().step, lambda: tj.dlaccelerate(Model().step)),
    "a partial": (lambda: scaled, lambda: functools.partial(tj.dlaccelerate(scaled))),
    "a backward function": (lambda: lambda x: 2 * x, lambda: doubled),
}
CALLS = {
    "alone": (lambda fn, x: fn(x) + 1, lambda fn: fn),
    "in a list": (lambda fn, x: sum(f(x) for f in fn), lambda fn: [fn, fn]),
    "in a dict": (lambda fn, x: fn["f"](x) * 2, lambda fn: {"f": fn}),
    "asked for": (lambda fn, x: fn(x) if callable(fn) else x, lambda fn: fn),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_the_plain_function_gives(name, call, monkeypatch):
    (make, make_given), (plain, holding) = FUNCTIONS[name], CALLS[call]
    expected, given = holding(make()), holding(make_given())
    accelerated = tj.dlaccelerate(plain)
    for new in (2.0, 3.0, 4.0):
        monkeypatch.setitem(globals(), "rate", new)
        for n in range(4):
            assert accelerated(given, X + n).tolist() == plain(expected, X + n).tolist()
    assert accelerated.stats.hits >= 3 and accelerated.stats.uncompiled == 0


def test_gradients_of_what_is_passed():
    gradient = tj.dlaccelerate(lambda fn, x: tj.dlgradient(fn(x).sum(), x))
    for _ in range(3):
        assert gradient(tj.dlaccelerate(lambda x: x**2), X).tolist() == [2.0, 4.0]
        assert gradient(doubled, X).tolist() == [10.0, 10.0]


def test_each_function_has_a_trace():
    apply = tj.dlaccelerate(lambda fn, x: fn(x))
    functions = [tj.dlaccelerate(closure(n)) for n in (1.0, 2.0)]
    for _ in range(4):
        assert [apply(fn, X).tolist() for fn in functions] == [[1.0, 2.0], [2.0, 4.0]]
    assert (apply.stats.keys, apply.stats.hits) == (2, 4)
    assert "fn: <accelerated closure.<locals>.<lambda>>" in str(apply.explain())
