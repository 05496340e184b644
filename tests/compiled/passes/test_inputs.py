# SPDX-License-Identifier: BSD-3-Clause
"""Compiled programs that write new contents into their inputs."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from effort import sweep
from written_inputs import check_written

from tracejit import pipeline
from tracejit.aval import Aval
from tracejit.errors import CodegenError
from tracejit.ir import Builder, Graph, Value, evaluate
from tracejit.program import Program, Writes
from tracejit.runtime.cpu import CpuExecutable

F32 = np.dtype(np.float32)


def compiled(program: Program, layouts: Sequence[Any], arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    outputs = CpuExecutable(program, layouts)(arrays)
    program.check(np.zeros((), np.int64), outputs)
    return outputs


def test_random_graphs_that_write_inputs() -> None:
    for seed in range(sweep(8, 300)):
        check_written(seed, 4 + seed % 10, ("float64", "float32", "int64")[: 2 + seed % 2], compiled)


def exchanged(b: Builder, x: Value, y: Value, z: Value) -> list[Value]:
    """Values that are stored in another array than the one that they were loaded from."""
    return [b.add(y, z), b.sub(x, z), b.mul(x, y)]


def by_rows(b: Builder, x: Value, y: Value, z: Value) -> list[Value]:
    e = b.exp(b.sub(x, b.max(x, axes=(1,), keepdims=True)))
    total = b.sum(e, axes=(1,), keepdims=True)
    return [b.div(e, total), b.sub(y, b.div(b.sum(y, axes=(1,), keepdims=True), 7.0)), b.mul(z, total)]


def products(b: Builder, x: Value, y: Value, z: Value) -> list[Value]:
    return [b.sub(x, b.matmul(x, y)), b.tanh(b.add(y, b.matmul(x, y))), b.matmul(z, z)]


@pytest.mark.parametrize("shape", [(1000,), (7,), (300, 300)])
def test_elements_are_loaded_before_they_are_overwritten(shape: tuple[int, ...]) -> None:
    check(exchanged, shape)


@pytest.mark.parametrize("shape", [(500, 3), (500, 10), (40, 300)])
def test_rows_are_loaded_before_they_are_overwritten(shape: tuple[int, ...]) -> None:
    check(by_rows, shape)


@pytest.mark.parametrize("size", [16, 64, 300])
def test_factors_of_products_are_read_before_they_are_overwritten(size: int) -> None:
    check(products, (size, size), 1e-3)


def check(make: Any, shape: tuple[int, ...], tolerance: float = 1e-5) -> None:
    graph = Graph()
    b = Builder(graph)
    graph.outputs = make(b, *[b.input(Aval(shape, None, F32)) for _ in range(3)])
    run = CpuExecutable(pipeline.build(graph, (), Writes({0: 0, 1: 1, 2: 2})))
    arrays = [np.random.default_rng(i).uniform(-1, 1, shape).astype(F32) for i in range(3)]
    for _ in range(2):
        want = evaluate(graph, arrays)
        assert run(arrays) == []
        for have, expected in zip(arrays, want, strict=True):
            np.testing.assert_allclose(have, expected, rtol=tolerance, atol=tolerance)
        for array in arrays:
            array /= np.abs(array).max()


def test_arrays_that_share_memory_are_refused() -> None:
    graph = Graph()
    b = Builder(graph)
    graph.outputs = exchanged(b, *[b.input(Aval((4,), None, F32)) for _ in range(3)])
    run = CpuExecutable(pipeline.build(graph, (), Writes({0: 0, 1: 1})))
    memory = np.ones(20, F32)
    x, y, z = memory[:4], memory[4:8], memory[8:12]
    for _ in range(2):
        run([x, y, z])
        for given in ([x, x, z], [x, memory[3:7], z], [x, y, x], [x, y, memory[7:11]]):
            kept = memory.copy()
            with pytest.raises(CodegenError, match="shares memory with another input"):
                run(given)
            assert (memory == kept).all()
    x.flags.writeable = False
    with pytest.raises(CodegenError, match="input 0 of a program is"):
        run([x, y, z])
