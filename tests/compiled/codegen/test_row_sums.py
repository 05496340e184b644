# SPDX-License-Identifier: BSD-3-Clause
"""Sums of the rows of a matrix, which stay in registers for some rows."""

from unittest import mock

import numpy as np
import pytest
from small_graphs import graph_of

from tracejit.codegen import row_sums
from tracejit.ir import Builder, Graph, Value, evaluate
from tracejit.pipeline import build
from tracejit.program import Program
from tracejit.runtime.cpu import CpuExecutable
from tracejit.runtime.python import PythonExecutable


def operands(dtype: str, *shape: int) -> list[np.ndarray]:
    """Return arrays of whole numbers, of which sums are exact."""
    rng = np.random.default_rng(0)
    return [rng.integers(-9, 9, size).astype(dtype) for size in (shape, shape, shape[-1:], (*shape[:-1], 1))]


def graph(arrays: list[np.ndarray]) -> Graph:
    """Return a graph of three sums and a result, of an array and a number for each element, column and row."""

    def make(b: Builder, x: Value, y: Value, column: Value, row: Value) -> list[Value]:
        axes = tuple(range(x.ndim - 2, x.ndim - 1))
        moved = b.mul(b.add(x, column), row)
        parts = [moved, b.square(moved), b.mul(moved, y)]
        return [moved, *[b.sum(part, axes=axes, keepdims=False) for part in parts]]

    return graph_of(make, *arrays)


def in_registers(program: Program) -> bool:
    return any("for row in range(" in kernel.text for kernel in program.kernels)


@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(2, 9), (16, 64), (17, 70), (40, 130), (2, 5, 33)])
def test_sums_of_rows_are_exact(shape: tuple[int, ...], dtype: str, vector_bytes: int) -> None:
    arrays = operands(dtype, *shape)
    with mock.patch.object(row_sums, "vector_bytes", lambda: vector_bytes):
        program = build(graph(arrays))
    assert in_registers(program)
    for have, want in zip(PythonExecutable(program)(arrays), evaluate(graph(arrays), arrays), strict=True):
        np.testing.assert_array_equal(have, want)


@pytest.mark.parametrize(("shape", "dtype"), [((37, 150), "float32"), ((3, 21, 70), "float64")])
def test_compiled_sums_of_rows_are_exact(shape: tuple[int, ...], dtype: str) -> None:
    arrays = operands(dtype, *shape)
    program = build(graph(arrays))
    assert in_registers(program)
    for have, want in zip(CpuExecutable(program)(arrays), evaluate(graph(arrays), arrays), strict=True):
        np.testing.assert_array_equal(have, want)


def test_another_number_of_rows_has_the_same_kernels() -> None:
    few, many = (build(graph(operands("float32", rows, 70))) for rows in (20, 43))
    assert few.kernels == many.kernels


@pytest.mark.parametrize("results", [1, 2])
def test_a_nest_that_stores_as_much_as_it_sums_keeps_the_order_of_memory(results: int) -> None:
    def make(b: Builder, x: Value, y: Value) -> list[Value]:
        product = b.mul(x, y)
        stored = [product, b.add(x, y)][:results]
        return [*stored, b.sum(product, axes=(0,), keepdims=False)]

    assert not in_registers(build(graph_of(make, *operands("float32", 20, 70)[:2])))


@pytest.mark.parametrize("name", ["max", "min"])
def test_extrema_of_rows_stay_in_memory(name: str) -> None:
    def make(b: Builder, x: Value) -> list[Value]:
        return [getattr(b, name)(x, axes=(0,), keepdims=False)]

    assert not in_registers(build(graph_of(make, *operands("float32", 20, 70)[:1])))


def test_booleans_are_not_loaded_as_vectors() -> None:
    def make(b: Builder, x: Value, y: Value) -> list[Value]:
        return [b.sum(b.where(y, x, 0.0), axes=(0,), keepdims=False)]

    x, y, *_ = operands("float32", 20, 70)
    arrays = [x, y > 0]
    program = build(graph_of(make, *arrays))
    assert not in_registers(program)
    np.testing.assert_array_equal(CpuExecutable(program)(arrays)[0], np.where(y > 0, x, 0).sum(0))


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64"])
@pytest.mark.parametrize("columns", [9, 70, 130])
def test_integers_beside_numbers(columns: int, dtype: str) -> None:
    """Integers have no functions of whole vectors, only of their first elements."""

    def make(b: Builder, x: Value, wanted: Value, rows: Value) -> list[Value]:
        return [b.sum(b.where(b.equal(wanted, rows), x, 0.0), axes=(0,), keepdims=False)]

    x = operands("float32" if dtype != "int64" else "float64", 20, columns)[0]
    arrays = [x, (np.arange(columns) % 20).astype(dtype), np.arange(20).astype(dtype)[:, None]]
    program = build(graph_of(make, *arrays))
    assert in_registers(program)
    want = np.where(arrays[1] == arrays[2], x, 0).sum(0)
    for executable in (PythonExecutable(program), CpuExecutable(program)):
        np.testing.assert_array_equal(executable(arrays)[0], want)
