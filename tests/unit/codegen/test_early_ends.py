# SPDX-License-Identifier: BSD-3-Clause
"""Loops that end before the last element: NumPy's results for every rest of blocks, and no further blocks."""

import numpy as np
import pytest

from tracejit.aval import Aval
from tracejit.ir import Builder, Graph
from tracejit.pipeline import build
from tracejit.program import Program
from tracejit.runtime.python import PythonExecutable


def program_of(op: str, shape: tuple[int, ...], dtype: str, axes: tuple[int, ...]) -> Program:
    b = Builder(Graph())
    operand = b.input(Aval(shape, None, np.dtype(dtype)))
    b.graph.outputs = [getattr(b, op)(operand, axes=axes, keepdims=False)]
    return build(b.graph)


@pytest.mark.parametrize("op", ["any", "all"])
@pytest.mark.parametrize("columns", [1, 255, 256, 257, 700])
@pytest.mark.parametrize("axes", [(1,), (0, 1)])
def test_one_element_decides(op: str, columns: int, axes: tuple[int, ...]) -> None:
    program = program_of(op, (2, columns), "bool", axes)
    usual = op == "all"
    for place in sorted({0, columns // 2, min(255, columns - 1), columns - 1}):
        x = np.full((2, columns), usual)
        x[1, place] = not usual
        (found,) = PythonExecutable(program)([x])
        np.testing.assert_array_equal(found, getattr(np, op)(x, axis=axes))
    (found,) = PythonExecutable(program)([np.full((2, columns), usual)])
    np.testing.assert_array_equal(found, np.full(found.shape, usual))


@pytest.mark.parametrize("op", ["any", "all"])
def test_blocks_end_with_a_test(op: str) -> None:
    (row,) = program_of(op, (3, 300), "float32", (1,)).rows
    assert "break" in row.kernel.text


def test_columns_have_no_blocks() -> None:
    (row,) = program_of("any", (300, 3), "bool", (0,)).rows
    assert "break" not in row.kernel.text
