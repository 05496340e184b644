# SPDX-License-Identifier: BSD-3-Clause
"""Extrema in vectors, and their first places: NumPy's, with NaN, for every rest of rows and columns."""

from typing import Any

import numpy as np
import pytest

from tracejit.aval import Aval
from tracejit.codegen.target import written_for
from tracejit.ir import Builder, Graph
from tracejit.pipeline import build
from tracejit.program import Program
from tracejit.runtime.python import PythonExecutable


def program_of(op: str, shape: tuple[int, ...], dtype: str, **params: Any) -> Program:
    b = Builder(Graph())
    operand = b.input(Aval(shape, None, np.dtype(dtype)))
    b.graph.outputs = [getattr(b, op)(operand, keepdims=False, **params)]
    with written_for(64):
        return build(b.graph)


@pytest.mark.parametrize("op", ["max", "min", "argmax", "argmin"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((64,), 0),
        ((3, 65), 1),
        ((2, 200), 1),
        ((2, 3, 127), 2),
        ((4, 3), 0),
        ((2, 7, 17), 1),
        ((2, 9, 64), 1),
    ],
)
def test_extrema(shape: tuple[int, ...], axis: int, dtype: str, op: str) -> None:
    rng = np.random.default_rng(0)
    params = {"axis": axis} if op.startswith("arg") else {"axes": (axis,)}
    program = program_of(op, shape, dtype, **params)
    name = "first_" if op.startswith("arg") and axis == len(shape) - 1 else "extremum_"
    assert program.rows[0].kernel.name.startswith(name)
    for pattern in (rng.standard_normal(shape), rng.integers(0, 3, shape)):
        for nans in (0, 1, 3):
            x = pattern.astype(dtype)
            x.flat[rng.integers(0, x.size, nans)] = np.nan
            (found,) = PythonExecutable(program)([x])
            np.testing.assert_array_equal(found, getattr(np, op)(x, axis=axis))


@pytest.mark.parametrize(
    ("shape", "axis", "dtype"), [((9, 10), 1, "float32"), ((9, 70), 1, "int32"), ((9, 65), 0, "float64")]
)
def test_short_rows_integers_and_many_columns_stay_loops(
    shape: tuple[int, ...], axis: int, dtype: str
) -> None:
    program = program_of("max", shape, dtype, axes=(axis,))
    assert not any(row.kernel.name.startswith("extremum_") for row in program.rows)
