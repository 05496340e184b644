# SPDX-License-Identifier: BSD-3-Clause
"""Launches in parts: results do not depend on the order of parts, nor on threads."""

import itertools
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
from effort import sweep
from in_parts import check

from tracejit.aval import Aval
from tracejit.ir import Builder, Graph, evaluate
from tracejit.passes import cost
from tracejit.passes.loops import parts
from tracejit.passes.loops.nest import Access
from tracejit.pipeline import build
from tracejit.program import Program
from tracejit.runtime import cpu
from tracejit.runtime.cpu import CpuExecutable
from tracejit.runtime.python import PythonExecutable
from tracejit.runtime.thread_pool import Pool


@pytest.mark.parametrize("in_strides", [False, True])
@pytest.mark.usefixtures("always_in_parts")
def test_parts_in_any_order(in_strides: bool) -> None:
    cut = sum(check(seed, ("float64", "float32", "int64"), 20, in_strides) for seed in range(sweep(12, 60)))
    assert cut > sweep(30, 200)


@pytest.mark.parametrize("in_strides", [False, True])
@pytest.mark.usefixtures("always_in_bands")
def test_bands_in_any_order(in_strides: bool) -> None:
    cut = sum(check(seed, ("float64", "float32", "int64"), 20, in_strides) for seed in range(sweep(12, 60)))
    assert cut > sweep(3, 25)


@pytest.mark.parametrize("lies", ["transposed", "broadcast", "cut out"])
@pytest.mark.parametrize("cut", ["always_in_parts", "always_in_bands"])
def test_a_sum_is_added_to_an_array_of_another_layout(
    lies: str, cut: str, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue(cut)
    b = Builder(Graph())
    x = b.input(Aval((64, 6, 5), None, np.dtype(np.float64)))
    if lies == "transposed":
        z = b.transpose(b.input(Aval((5, 6), None, x.dtype)), axes=(1, 0))
    elif lies == "broadcast":
        z = b.broadcast_to(b.input(Aval((5,), None, x.dtype)), shape=(6, 5))
    else:
        z = b.slice(b.input(Aval((6, 9), None, x.dtype)), starts=(0, 2), stops=(6, 7), steps=(1, 1))
    y = b.tanh(b.tanh(x))
    b.graph.outputs = [y, b.sum_add(y, z, axes=(0,), keepdims=False)]
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(value.shape) for value in b.graph.inputs]
    results, want = PythonExecutable(build(b.graph))(arrays), evaluate(b.graph, arrays)
    for got, expected in zip(results, want, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12)


def reduction(x: np.ndarray) -> Program:
    """Return a program of elementwise work with a sum over rows, columns and everything, in several parts."""
    graph = Graph()
    b = Builder(graph)
    value = b.input(Aval(x.shape, None, x.dtype))
    y = b.mul(b.tanh(value), value)
    total = b.sum(y, axes=(0, 1), keepdims=False)
    graph.outputs = [
        y,
        b.sum(y, axes=(0,), keepdims=False),
        b.exp(b.mul(total, 1e-6)),
        b.max(y, axes=(1,), keepdims=False),
    ]
    program = build(graph)
    assert any(row.parts > 4 for row in program.rows)
    return program


@pytest.fixture
def four_threads() -> Iterator[Pool]:
    pool = Pool(4)
    yield pool
    pool.stop()


@pytest.fixture
def matrix(rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal((300, 257))


def run_on(pool: Pool | None, program: Program, monkeypatch: pytest.MonkeyPatch) -> CpuExecutable:
    monkeypatch.setattr(cpu, "pool", lambda code: pool)
    return CpuExecutable(program)


def test_same_bits_on_one_thread_and_on_many(
    matrix: np.ndarray, four_threads: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = reduction(matrix)
    serial, parallel = (run_on(pool, program, monkeypatch) for pool in (None, four_threads))
    want = [part.tobytes() for part in serial([matrix])]
    for repeat in range(200):
        if repeat % 50 == 49:
            time.sleep(0.02)  # the workers fall asleep, and are woken
        assert [part.tobytes() for part in parallel([matrix])] == want
    y = np.tanh(matrix) * matrix
    for result, expected in zip(
        serial([matrix]), (y, y.sum(0), np.exp(y.sum() * 1e-6), y.max(1)), strict=True
    ):
        np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-13)


def test_concurrent_callers(matrix: np.ndarray, four_threads: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    call = run_on(four_threads, reduction(matrix), monkeypatch)
    inputs = [matrix + i for i in range(6)]
    want = [[part.tobytes() for part in call([x])] for x in inputs]
    wrong = []

    def caller(i: int) -> None:
        wrong.extend(i for _ in range(100) if [part.tobytes() for part in call([inputs[i]])] != want[i])

    callers = [threading.Thread(target=caller, args=(i,)) for i in range(len(inputs))]
    for thread in callers:
        thread.start()
    for thread in callers:
        thread.join()
    assert not wrong


def test_denormals_count_as_zero_in_workers_too(four_threads: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.full((300, 257), 1e-310)
    graph = Graph()
    b = Builder(graph)
    value = b.input(Aval(x.shape, None, x.dtype))
    graph.outputs = [b.add(value, value), b.tanh(value)]
    program = build(graph)
    assert program.rows[0].parts > 1
    for _ in range(50):
        assert not run_on(four_threads, program, monkeypatch)([x])[0].any()


def test_bounds_cover_an_extent() -> None:
    for extent, count, unit in [(10, 3, 1), (131, 4, 16), (1000, 7, 64), (64, 2, 64), (5, 5, 1)]:
        ranges = parts.bounds(extent, count, unit)
        assert len(ranges) == count
        assert ranges[0][0] == 0 and ranges[-1][1] == extent
        assert all(a[1] == b[0] and b[0] % unit == 0 for a, b in itertools.pairwise(ranges))


def test_accumulation_in_place_runs_as_a_whole() -> None:
    graph = Graph()
    b = Builder(graph)
    memory, root = (b.input(Aval(shape, None, np.dtype(np.float32))) for shape in ((800, 10, 100), (10, 100)))
    node = b.sum(memory, axes=(0,), keepdims=False).node
    assert node is not None
    start = Access(root, 0, (), root.dtype)
    assert parts.combine(node, memory, root, start).ns > cost.LEAST_SPLIT_NS
    assert parts.split_nest(parts.combine(node, memory, root, start), set()) is None
    assert parts.split_nest(parts.combine(node, memory, root, None), set()) is not None
