# SPDX-License-Identifier: BSD-3-Clause
"""Arrays whose elements take turns in another one are stored by one launch; others are copied one by one."""

from typing import Any

import numpy as np
import pytest

from tracejit.aval import Aval
from tracejit.ir import Builder, Graph
from tracejit.pipeline import build
from tracejit.runtime.python import PythonExecutable

ROWS, COLUMNS = 4, 6


def joined(b: Any, arrays: Any, axis: int) -> Any:
    shape = (*arrays[0].shape, 1)
    return b.concatenate(*[b.reshape(x, shape=shape) for x in arrays], axis=axis)


@pytest.mark.parametrize(
    ("dtype", "count", "interleaves"),
    [("float32", 2, True), ("float64", 3, True), ("uint8", 3, True), ("bool", 2, True), ("int64", 4, False),
     ("float16", 2, True)],
)  # fmt: skip
def test_stacks_along_the_last_axis(dtype: str, count: int, interleaves: bool) -> None:
    b = Builder(Graph())
    inputs = [b.input(Aval((ROWS, COLUMNS), None, np.dtype(dtype))) for _ in range(count)]
    b.graph.outputs = [joined(b, inputs, 2)]
    program = build(b.graph)
    kernels = {row.kernel.name.rpartition("_")[0] for row in program.rows}
    assert (kernels == {f"interleaved_{count}"}) == interleaves
    rng = np.random.default_rng(0)
    arrays = [(rng.random((ROWS, COLUMNS)) * 3).astype(dtype) for _ in range(count)]
    (found,) = PythonExecutable(program)(arrays)
    np.testing.assert_array_equal(found, np.stack(arrays, axis=-1))


@pytest.mark.parametrize("axis", [0, 1])
def test_other_axes_are_copied(axis: int) -> None:
    b = Builder(Graph())
    inputs = [b.input(Aval((ROWS, COLUMNS), None, np.dtype("float64"))) for _ in range(2)]
    b.graph.outputs = [b.concatenate(*inputs, axis=axis)]
    program = build(b.graph)
    assert not any("interleaved" in row.kernel.name for row in program.rows)
    arrays = [np.random.default_rng(seed).random((ROWS, COLUMNS)) for seed in (0, 1)]
    (found,) = PythonExecutable(program)(arrays)
    np.testing.assert_array_equal(found, np.concatenate(arrays, axis=axis))


def test_parts_of_complex_numbers() -> None:
    b = Builder(Graph())
    parts = [b.input(Aval((5,), None, np.dtype("float64"))) for _ in range(2)]
    b.graph.outputs = [b.complex_of(*parts)]
    program = build(b.graph)
    assert [row.kernel.name.rpartition("_")[0] for row in program.rows] == ["interleaved_2"]
    x, y = np.arange(5.0), -np.arange(5.0)
    (found,) = PythonExecutable(program)([x, y])
    np.testing.assert_array_equal(found, x + 1j * y)


def test_a_transposed_operand_is_copied() -> None:
    b = Builder(Graph())
    x, y = (b.input(Aval((ROWS, ROWS), None, np.dtype("float64"))) for _ in range(2))
    b.graph.outputs = [joined(b, [b.transpose(x, axes=(1, 0)), y], 2)]
    program = build(b.graph)
    arrays = [np.random.default_rng(seed).random((ROWS, ROWS)) for seed in (0, 1)]
    (found,) = PythonExecutable(program)(arrays)
    np.testing.assert_array_equal(found, np.stack([arrays[0].T, arrays[1]], axis=-1))
