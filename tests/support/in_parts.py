# SPDX-License-Identifier: BSD-3-Clause
"""Random graphs in parts, compared with their evaluation."""

import random
from collections.abc import Sequence

import numpy as np
from graphs import assert_same, random_case, strided

from tracejit import pipeline
from tracejit.describe.program import describe
from tracejit.ir import evaluate
from tracejit.program import Program, Row
from tracejit.runtime.python import PythonExecutable


def reordered(program: Program, rnd: random.Random) -> Program:
    """Return the program with the parts of each section in another order, mixed as several threads may mix them."""
    rows: list[Row] = []
    at = 0
    while at < len(program.rows):
        first = program.rows[at]
        starts = range(at, at + first.parts * first.length, first.length)
        queues = [list(program.rows[start : start + first.length]) for start in starts]
        at += first.parts * first.length
        alone = rnd.random() < 0.3
        while queues:
            queue = rnd.choice(queues)
            rows += [queue.pop(0) for _ in range(len(queue) if alone else 1)]
            queues = [each for each in queues if each]
    return program._replace(rows=rows)


def check(seed: int, dtypes: Sequence[str], steps: int, in_strides: bool) -> int:
    """Compare a random graph in parts with its evaluation; return the number of launches that were in parts."""
    rnd = random.Random(seed)
    maker = random_case(rnd, steps, dtypes)
    if maker is None:
        return 0
    arrays, layouts = maker.arrays, ()
    if in_strides:
        arrays, layouts = (
            zip(*[strided(rnd, a) for a in maker.arrays], strict=True) if maker.arrays else ((), ())
        )
    stages = pipeline.stages(maker.graph, layouts)
    program = stages.program
    description = describe(stages)
    assert {row.number for row in description.rows} == set(range(len(program.rows)))
    with np.errstate(all="ignore"):
        want = evaluate(maker.graph, maker.arrays)
        assert_same(maker, PythonExecutable(reordered(program, rnd))(arrays), want)
    return sum(row.parts > 1 and row.part == 0 for row in program.rows)
