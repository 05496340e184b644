# SPDX-License-Identifier: BSD-3-Clause
"""Functions that the user has compiled with Numba, called with traced arrays: their Python code is recorded."""

import threading
from typing import Any

import numba
import numpy as np
import pytest

import tracejit as tj
from tracejit.record.numba_functions import NumbaFunction


@numba.njit
def first(x):
    return x[0] * 2


@numba.njit
def fill(a, out):
    for i in range(out.size):
        out[i] = a * i


@numba.njit
def weighted(x):
    total = 0.0
    for i in range(x.size):
        total += first(x[i:]) * x[i]
    return total


@numba.njit
def of_integers(n):
    return first(np.arange(float(n)) + 1)


@numba.vectorize
def ramp(a, b):
    return a * b if a > 0 else 0.1 * b


class Holder:
    """An object with such functions."""

    def __init__(self) -> None:
        self.first = first
        self.table = {"weighted": weighted}


HOLDER = Holder()


def filled(x: Any) -> Any:
    out = np.zeros(3)
    fill(x[1], out)
    return out


FUNCTIONS = {
    "a function": lambda x: first(x) * x,
    "that writes": filled,
    "that calls another": weighted,
    "an attribute": lambda x: HOLDER.first(x) + 0,
    "a dict": lambda x: HOLDER.table["weighted"](x) + 0,
    "without traced arrays": lambda x: of_integers(3) * first(np.ones(2)) * x,
    "both": lambda x: of_integers(4) * weighted(x),
    "elements": lambda x: ramp(x, 2.0) + ramp(x, x),
}

HELD = ("an attribute", "a dict")  # which only recordings for replays look into


@pytest.mark.parametrize("name", FUNCTIONS)
def test_they_give_the_same(name: str) -> None:
    function = FUNCTIONS[name]
    accelerated = tj.dlaccelerate(function)
    for call in range(6):
        x = np.arange(1.0, 4.0) + call
        expected = function(x)
        if name not in HELD:
            np.testing.assert_allclose(np.asarray(tj.dlfeval(function, x)), expected, rtol=1e-14)
        np.testing.assert_allclose(np.asarray(accelerated(x)), expected, rtol=1e-14)
    assert accelerated.stats.hits >= 3


def test_they_have_derivatives() -> None:
    x = np.array([0.5, -1.0, 2.0])
    slope = tj.dlaccelerate(lambda x: tj.dlgradient(weighted(x), x))
    for _ in range(4):
        np.testing.assert_allclose(slope(x), 4 * x, rtol=1e-14)


def test_they_are_what_they_were_afterwards() -> None:
    for function in FUNCTIONS.values():
        tj.dlaccelerate(function)(np.ones(3))
    held = [first, fill, weighted, ramp, HOLDER.first, HOLDER.table["weighted"]]
    assert not any(isinstance(function, NumbaFunction) for function in held)
    assert type(first).__name__ == "CPUDispatcher" and HOLDER.first is first


def test_names_of_no_module_are_what_they_were_afterwards() -> None:
    function = numba.njit(lambda x: x + 1.0)
    names = {"function": function}
    exec("def step(x): return function(x)", names)
    assert tj.dlfeval(names["step"], np.ones(2)).tolist() == [2.0, 2.0]
    assert names["function"] is function


def test_numba_compiles_meanwhile() -> None:
    """It may read names that stand for replacements while something is recorded, in this thread and in others."""
    late, ones = numba.njit(lambda x: first(x) + 1), np.ones(2)

    def program(x: Any) -> Any:
        thread = threading.Thread(target=lambda: late(np.ones(2, np.float32)))
        thread.start()
        thread.join()
        return first(x), late(ones)

    one, two = tj.dlfeval(program, np.ones(3))
    assert float(one) == 2.0 and two == 3.0 and late(np.ones(3, np.float32)) == 3.0
