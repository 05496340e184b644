# SPDX-License-Identifier: BSD-3-Clause
"""Accelerated methods are bound as methods are; lines with "type: ignore" are mistakes that have to be found."""

from typing import assert_type

import tracejit as tj
from tracejit import AcceleratedFunction, dlarray


class Solver:
    """A solver with a state."""

    def __init__(self, u: dlarray) -> None:
        self.u = u

    @tj.dlaccelerate
    def step(self, dt: float, *, steps: int = 1) -> dlarray:
        """Return the next state."""
        self.u = self.u + dt * steps
        return self.u

    @tj.dlaccelerate(cache_size=5)
    def energy(self) -> tuple[dlarray, dlarray]:
        """Return the energy, and its gradient."""
        found = (self.u * self.u).sum()
        return found, tj.dlgradient(found, self.u)

    @staticmethod
    @tj.dlaccelerate
    def scaled(u: dlarray, by: float) -> dlarray:
        """Return an array times a number."""
        return u * by

    @classmethod
    @tj.dlaccelerate
    def zeros(cls, n: int) -> dlarray:
        """Return zeros."""
        return tj.zeros(n)


class Faster(Solver):
    """A solver with another step."""

    @tj.dlaccelerate
    def twice(self, dt: float) -> dlarray:
        """Return the state after two steps."""
        self.step(dt)
        return self.step(dt, steps=1)


def results(solver: Solver, faster: Faster, x: dlarray) -> None:
    """Check what calls return."""
    assert_type(solver.step(0.1), dlarray)
    assert_type(solver.step(0.1, steps=3), dlarray)
    assert_type(solver.energy(), tuple[dlarray, dlarray])
    assert_type(faster.step(dt=0.1), dlarray)
    assert_type(faster.twice(0.1), dlarray)
    assert_type(Solver.step(solver, 0.1), dlarray)
    assert_type(Solver.scaled(x, by=2.0), dlarray)
    assert_type(Solver.zeros(3), dlarray)
    assert_type(solver.energy, AcceleratedFunction[[], tuple[dlarray, dlarray]])
    assert_type(solver.step.hit_rate, float)
    assert_type(Solver.step.stats.kernels, int)
    solver.step.clear_cache()


def mistakes(solver: Solver, x: dlarray) -> None:
    """Make each mistake that the types are there for."""
    solver.step()  # type: ignore[call-arg]
    solver.step(0.1, 3)  # type: ignore[call-arg]
    solver.step("long")  # type: ignore[arg-type]
    solver.energy(x)  # type: ignore[call-arg]
    state: float = Solver.step(solver, 0.1)  # type: ignore[assignment]
    number: float = solver.step(0.1)  # type: ignore[assignment]
    print(number, state)
