# SPDX-License-Identifier: BSD-3-Clause
"""Extrema and their first places by one launch: NumPy's, for rows in steps and in pieces; and where there are two."""

import numpy as np
import pytest

from tracejit.aval import Aval
from tracejit.ir import Builder, Graph
from tracejit.ops.op import Layout
from tracejit.passes import cost
from tracejit.pipeline import build
from tracejit.program import Program
from tracejit.runtime.python import PythonExecutable


def program_of(
    op: str, shape: tuple[int, ...], layout: Layout | None = None, dtype: str = "float32"
) -> Program:
    b = Builder(Graph())
    operand = b.input(Aval(shape, None, np.dtype(dtype)))
    last = len(shape) - 1
    place = getattr(b, op)(operand, axis=last, keepdims=False)
    extremum = getattr(b, op.removeprefix("arg"))(operand, axes=(last,), keepdims=False)
    b.graph.outputs = [place, extremum]
    return build(b.graph, [layout])


def names(program: Program) -> list[str]:
    return [row.kernel.name.rpartition("_")[0] for row in program.rows]


def check(program: Program, op: str, x: np.ndarray) -> None:
    """Compare with NumPy where elements are equal, are infinite, are NaN."""
    rng = np.random.default_rng(0)
    for pattern in (rng.standard_normal(x.shape), rng.integers(0, 3, x.shape), np.full(x.shape, -np.inf)):
        for nans in (0, 0, 1, 3):
            x[...] = pattern
            x[(*[rng.integers(0, n, nans) for n in x.shape],)] = np.nan
            place, extremum = PythonExecutable(program)([x])
            np.testing.assert_array_equal(place, getattr(np, op)(x, axis=-1))
            np.testing.assert_array_equal(extremum, getattr(np, op.removeprefix("arg"))(x, axis=-1))


@pytest.mark.parametrize("op", ["argmax", "argmin"])
@pytest.mark.parametrize("step", [1, 2, -1, -2])
@pytest.mark.parametrize("columns", [64, 65, 127, 2049, 4100])
def test_rows_in_steps(columns: int, step: int, op: str) -> None:
    memory = np.zeros((2, columns * abs(step)), np.float32)
    x = memory[:, ::step]
    program = program_of(op, x.shape, Layout(0, x.shape, (columns * abs(step), step)))
    by = "" if step == 1 else f"_by_{step}".replace("-", "minus_")
    assert names(program) == [f"first_{op.removeprefix('arg')}{by}"]
    check(program, op, x)


@pytest.mark.parametrize("op", ["argmax", "argmin"])
def test_a_long_row_is_cut_into_pieces(op: str) -> None:
    x = np.zeros((1, 800_003), np.float32)
    program = program_of(op, x.shape)
    assert names(program) == [f"first_{op.removeprefix('arg')}"] * 4 + ["first_of_pieces"]
    assert [row.arguments[:2] for row in program.rows[:4]] == [(0, 2), (2, 4), (4, 6), (6, 8)]


@pytest.mark.parametrize(
    ("shape", "dtype", "layout"),
    [
        ((9, 10), "float32", None),
        ((9, 70), "int32", None),
        ((9, 70), "float32", Layout(0, (9, 70), (210, 3))),
        ((9, 70), "float32", Layout(0, (9, 70), (1, 9))),
    ],
)
def test_short_rows_integers_and_wide_steps_are_searched(
    shape: tuple[int, ...], dtype: str, layout: Layout | None
) -> None:
    assert "first_place" in names(program_of("argmax", shape, layout, dtype))


def test_an_extremum_that_is_computed_of_results_is_searched() -> None:
    b = Builder(Graph())
    x = b.input(Aval((9, 70), None, np.dtype(np.float32)))
    b.graph.outputs = [b.argmax(b.mul(x, x), axis=1, keepdims=False)]
    program = build(b.graph)
    assert names(program)[-1] == "first_place"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("columns", [64, 72, 300, 511, 512, 513, 700])
def test_pieces_have_as_much_as_the_kernel_takes_at_once(
    columns: int, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pieces of short rows, which a lower threshold would cut, began with elements before the array."""
    monkeypatch.setattr(cost, "LEAST_SPLIT_NS", 0.0)
    x = np.zeros((2, columns), dtype)
    program = program_of("argmax", x.shape, dtype=dtype)
    assert ("first_of_pieces" in names(program)) == (columns >= 512)
    check(program, "argmax", x)
