# SPDX-License-Identifier: BSD-3-Clause
"""Programs of the kinds that people differentiate: replays beside NumPy and SciPy, gradients beside differences."""

from typing import Any

import numpy as np
import pytest
from effort import sweep

import tracejit as tj
from benchmarks.nested import leaves
from benchmarks.programs import PROGRAMS
from benchmarks.programs.ours import Ours
from benchmarks.programs.plain import Plain
from benchmarks.programs.program import Program

pytestmark = pytest.mark.slow
LOSSES = [program for program in PROGRAMS.values() if program.loss]


LOOPS = [program for program in LOSSES if program.loops]
CASES = [
    *[(program, False) for program in LOSSES],
    *[(program, True) for program in sweep(LOOPS[1::2], LOOPS)],
]


@pytest.mark.filterwarnings("ignore:.*each step of a loop is recorded by itself")
@pytest.mark.parametrize(
    ("program", "unroll"),
    CASES,
    ids=[f"{program.name}, unrolled" if unroll else program.name for program, unroll in CASES],
)
def test_a_program(program: Program, unroll: bool) -> None:
    rng = np.random.default_rng(3)
    x, *rest = program.data(rng)
    step = tj.dlaccelerate(lambda *arguments: program.run(Ours(unroll), *arguments))
    for _ in range(4):
        value, slopes = step(x, *rest)
    assert step.stats.hits > 0, step.explain()
    loss: Any = program.loss
    np.testing.assert_allclose(float(value), loss(Plain(), x, *rest), rtol=1e-9)
    directions = tj.tree.map(lambda part: rng.normal(size=part.shape), x)
    parts = zip(leaves(slopes).values(), leaves(directions).values(), strict=True)
    found = sum((tj.extractdata(slope) * direction).sum() for slope, direction in parts)

    def at(h: float) -> Any:
        return loss(Plain(), tj.tree.map(lambda part, by: part + h * by, x, directions), *rest)

    h = 1e-5
    want = (8 * (at(h) - at(-h)) - at(2 * h) + at(-2 * h)) / (12 * h)
    np.testing.assert_allclose(found, want, rtol=1e-6)
