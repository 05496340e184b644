# SPDX-License-Identifier: BSD-3-Clause
"""Parts of nests that fold long rows into one: some columns of all rows, which need no memory of their own."""

import numpy as np
import pytest

from tracejit.aval import Aval
from tracejit.ir import Builder, Graph
from tracejit.pipeline import build
from tracejit.program import Program
from tracejit.runtime.python import PythonExecutable


def program_of(op: str, shape: tuple[int, ...]) -> Program:
    b = Builder(Graph())
    b.graph.outputs = [
        getattr(b, op)(b.input(Aval(shape, None, np.dtype(np.float32))), axes=(0,), keepdims=False)
    ]
    return build(b.graph)


@pytest.mark.parametrize("op", ["sum", "max", "prod"])
def test_long_rows_are_cut_along_columns(op: str) -> None:
    shape = (200, 4200)
    program = program_of(op, shape)
    assert len(program.kernels) == 1 and program.arena_bytes == 0
    assert [{*row.arguments[:2]} for row in program.rows] == [{200, 2112}, {200, 2088}]


def test_long_rows_in_parts_give_numpys_result() -> None:
    x = np.random.default_rng(0).standard_normal((3, 300_000)).astype(np.float32)
    program = program_of("max", x.shape)
    assert len(program.rows) == 32
    (found,) = PythonExecutable(program)([x])
    np.testing.assert_array_equal(found, x.max(0))


def test_many_rows_are_summed_in_parts() -> None:
    """Each part sums some rows, so that errors stay those of few additions."""
    program = program_of("sum", (2000, 4200))
    assert program.arena_bytes > 0
    assert program_of("max", (2000, 4200)).arena_bytes == 0
