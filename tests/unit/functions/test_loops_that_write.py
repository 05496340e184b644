# SPDX-License-Identifier: BSD-3-Clause
"""Steps and branches that make arrays of their own and write into them: kept, whether a call makes them or not."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from loops import agree, array, loops_of

import tracejit as tj


def copied(x: Any) -> Any:
    y = np.copy(x)
    y[0] = 5
    return y


def with_a_written_view(x: Any) -> Any:
    y = x.copy()
    part = y[1:]
    part += 1.5
    return y


def filled(x: Any) -> Any:
    y = np.zeros(3)
    for i in range(3):
        y[i] = x[i] * i
    y[-1] += y[0]
    return y


def in_a_loop_inside(x: Any) -> Any:
    def step(c: Any, part: Any) -> Any:
        y = np.copy(x)
        y[1:] = c[:-1]
        c[0] = part
        return c + y, y

    last, _ = tj.dlscan(step, x, x * 2.0)
    return np.tanh(last)


def in_a_map(x: Any) -> Any:
    def one(a: Any) -> Any:
        y = np.zeros(2)
        y[0] = a
        y[1:] += 0.5
        return y.sum()

    return tj.dlmap(one, over=0)(x)


WRITERS = [copied, with_a_written_view, filled, in_a_loop_inside, in_a_map]


@pytest.mark.parametrize("writer", WRITERS)
def test_a_branch_writes_arrays_of_its_own(writer: Callable[[Any], Any]) -> None:
    """Also one that the call which records it does not choose."""

    def fun(x: Any) -> Any:
        y = tj.dlcond(x.sum() > 0, lambda: writer(x), lambda: x * 2.0)
        return y, tj.dlgradient((y**2).sum(), x)

    x = array(3)
    for first in (abs(x), -abs(x)):
        accelerated = agree(fun, first, calls=[(-first,)], loops=None)
        assert accelerated.stats.programs == 1


@pytest.mark.parametrize("writer", WRITERS)
def test_a_loop_writes_arrays_of_its_own(writer: Callable[[Any], Any]) -> None:
    accelerated = agree(lambda x: tj.dlscan(lambda c, _: (writer(c), c), x, length=6), array(3), loops=None)
    assert "    for step0 in range(6):" in accelerated.source()
    calls = [(array(3), tj.dlarray(steps)) for steps in (3.0, 0.0, 5.0)]
    fun = lambda x, steps: tj.dlwhile(lambda c: c[1] < steps, lambda c: (writer(c[0]), c[1] + 1.0), (x, 0.0))
    accelerated = agree(fun, array(3), tj.dlarray(1.0), calls=calls, loops=None)
    assert accelerated.stats.programs == 1


STEPS: dict[str, Callable[[Any], Any]] = {
    "array": lambda c: c + np.array([1.0, 2.0, 3.0]),
    "list": lambda c: c * [1.0, 2.0, 0.5],
    "places": lambda c: c[[2, 0, 1]],
    "linspace": lambda c: c + np.linspace(0, 1, 3),
    "dlarray": lambda c: c + tj.dlarray([1.0, 2.0, 3.0]),
    "append": lambda c: np.append(c, 0.5)[1:],
    "stack": lambda c: np.stack([c[0], 1.0, c[2]]),
    "interp": lambda c: np.interp(c, [0, 1, 2], [1, 2, 3]),
}


@pytest.mark.parametrize("name", STEPS)
def test_what_each_step_makes_anew_is_a_constant(name: str) -> None:
    step = STEPS[name]
    agree(lambda x: tj.dlscan(lambda c, _: (step(c), c[0]), x, length=5)[0], array(3))


def test_equal_arrays_that_stay_are_not_taken_for_one() -> None:
    """A step that reads another array each time is made step by step, also while their elements are equal."""
    weights = [np.ones(3), np.ones(3), np.zeros(3), np.full(3, 2.0)]

    def fun(x: Any) -> Any:
        left = iter(weights)
        return tj.dlscan(lambda c, _: (c * next(left) + 1.0, None), x, length=4)[0]

    accelerated = agree(fun, array(3), loops=0)
    weights[1][:] = 7.0
    weights[2] = np.full(3, 3.0)
    assert accelerated(array(3)).tolist() == tj.dlfeval(fun, array(3)).tolist()
    assert loops_of(accelerated) == []
