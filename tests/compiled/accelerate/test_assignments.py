# SPDX-License-Identifier: BSD-3-Clause
"""Assignments to attributes, items and names by compiled programs, whose call paths store what they compute."""

import numpy as np
import pytest
from assigning_programs import CASES, follow, generated

import tracejit as tj


@pytest.mark.parametrize("name", [*CASES])
def test_compiled(name):
    follow(CASES[name], calls=12, most=9 if name == "best" else 5)


@pytest.mark.parametrize("statement", ["read and assigned", "swapped", "in a branch", "in a tuple", "a view"])
@pytest.mark.parametrize("place", ["attribute", "item of an attribute", "global"])
def test_generated(place, statement):
    follow(generated(place, statement, "array"), calls=12, most=6)


def test_arrays_that_are_replaced_are_filled_again():
    """An array that somebody keeps is not."""

    class Simulation:
        def __init__(self):
            self.u = tj.dlarray(np.zeros(1000))

        @tj.dlaccelerate
        def step(self, x):
            self.u = self.u + x
            return self.u[0]

    simulation, kept, memory = Simulation(), [], set()
    for n in range(1, 41):
        assert simulation.step(np.ones(1000)).item() == n
        if n % 10 == 0:
            kept.append((n, simulation.u))
        memory.add(np.asarray(simulation.u).ctypes.data)
    assert all(array.tolist() == [n] * 1000 for n, array in kept)
    assert len(memory) <= 12
    assert simulation.step.stats.hits >= 36
