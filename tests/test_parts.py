# SPDX-License-Identifier: BSD-3-Clause
"""Launches in parts: results do not depend on the order of parts, nor on threads."""

import random
from collections.abc import Sequence

import numpy as np
import pytest
from graphs import assert_same, random_case, strided

from tracejit.backend.python import PythonExecutable
from tracejit.ir import evaluate
from tracejit.passes import parts, products
from tracejit.pipeline import build
from tracejit.program import Program


@pytest.fixture
def always_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut every launch, however short, into as many parts as its rows allow, up to 3."""
    monkeypatch.setattr(parts, "PART_NS", 1e-9)
    monkeypatch.setattr(parts, "MOST_PARTS", 3)
    monkeypatch.setattr(parts, "LEAST_FOLDED", 1)
    monkeypatch.setattr(products, "ROWS", 1)


def reordered(program: Program, rnd: random.Random) -> Program:
    """Return the program with the parts of each launch in another order."""
    rows = []
    at = 0
    while at < len(program.rows):
        group = program.rows[at : at + program.rows[at].parts]
        at += len(group)
        rows += rnd.sample(group, len(group))
    return program._replace(rows=rows)


def check(seed: int, dtypes: Sequence[str], steps: int, in_strides: bool) -> int:
    """Compare a random graph in parts with its evaluation; return the number of launches that were in parts."""
    rnd = random.Random(seed)
    maker = random_case(rnd, steps, dtypes)
    if maker is None:
        return 0
    arrays, layouts = maker.arrays, ()
    if in_strides:
        arrays, layouts = zip(*[strided(rnd, a) for a in maker.arrays], strict=True) if maker.arrays else ((), ())
    program = build(maker.graph, layouts)
    with np.errstate(all="ignore"):
        want = evaluate(maker.graph, maker.arrays)
        assert_same(maker, PythonExecutable(reordered(program, rnd))(arrays), want)
    return sum(row.parts > 1 and row.part == 0 for row in program.rows)


@pytest.mark.parametrize("in_strides", [False, True])
@pytest.mark.usefixtures("always_in_parts")
def test_parts_in_any_order(in_strides: bool) -> None:
    cut = sum(check(seed, ("float64", "float32", "int64"), 20, in_strides) for seed in range(60))
    assert cut > 200
