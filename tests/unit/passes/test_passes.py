# SPDX-License-Identifier: BSD-3-Clause
"""The compiler as a whole keeps the results of a graph."""

import random

import numpy as np
import pytest
from effort import sweep
from graphs import assert_same, random_case, strided
from hypothesis import given
from races import touches
from small_graphs import case, fuzz, graph_of, normal, plan_of, run, seeds, softmax

from tracejit.aval import Aval
from tracejit.ir import Builder, Graph, Value, evaluate
from tracejit.ops.op import Layout
from tracejit.passes.loops import pieces
from tracejit.passes.loops.launches import Section
from tracejit.pipeline import build
from tracejit.runtime.python import PythonExecutable

F64 = np.dtype(np.float64)


@fuzz
@given(seeds)
def test_emitted_code_computes_the_graph(seed: int) -> None:
    maker, _ = case(seed, 15)
    before = [array.copy() for array in maker.arrays]
    results = PythonExecutable(build(maker.graph))(maker.arrays)
    assert_same(maker, results, evaluate(maker.graph, maker.arrays))
    for array, copy in zip(maker.arrays, before, strict=True):
        np.testing.assert_array_equal(array, copy)


@fuzz
@given(seeds)
def test_inputs_of_any_layout(seed: int) -> None:
    maker, rnd = case(seed, 10)
    views = [strided(rnd, array) for array in maker.arrays]
    program = build(maker.graph, [layout for _, layout in views])
    results = PythonExecutable(program)([view for view, _ in views])
    assert_same(maker, results, evaluate(maker.graph, maker.arrays))


@fuzz
@given(seeds)
def test_long_graphs_with_adjoints(seed: int) -> None:
    maker, _ = case(seed, 25, ("float64",))
    results = PythonExecutable(build(maker.graph))(maker.arrays)
    assert_same(maker, results, evaluate(maker.graph, maker.arrays))
    for i, array in enumerate(results):
        others = [*maker.arrays, *results[:i]]
        assert not any(np.shares_memory(array, other) for other in others)


def test_values_of_a_row_share_the_memory_of_one_row() -> None:
    program, _ = run(lambda b, x: softmax(b, x, 1), normal(40, 8))
    assert program.arena_bytes == 8 * 8


def test_a_loop_may_have_many_passes() -> None:
    def deep(b: Builder, x: Value) -> Value:
        for _ in range(4):
            x = b.sub(b.tanh(x), b.sum(b.tanh(x), axes=(1,), keepdims=True))
        return x

    program, _ = run(deep, normal(3, 4))
    assert len(program.rows) == 1


def test_a_total_may_be_used_at_every_element() -> None:
    def share(b: Builder, x: Value) -> Value:
        y = b.exp(x)
        return b.div(y, b.sum(y, axes=(0, 1), keepdims=False))

    _, (result,) = run(share, normal(3, 4))
    np.testing.assert_allclose(result.sum(), 1.0, rtol=1e-14)


@pytest.mark.parametrize(("m", "k", "n"), [(2, 0, 3), (0, 2, 3), (2, 3, 0), (0, 0, 0)])
def test_empty_slices_are_multiplied(m: int, k: int, n: int) -> None:
    def product(b: Builder, x: Value, y: Value) -> Value:
        x = b.slice(x, starts=(0, 0), stops=(m, 2 * k), steps=(1, 2))
        y = b.slice(b.transpose(y, axes=(1, 0)), starts=(0, 0), stops=(k, n), steps=(1, 1))
        return b.matmul(x, y)

    _, (result,) = run(product, normal(4, 6), normal(4, 4))
    assert result.shape == (m, n)


def test_an_empty_slice_backwards_reads_nothing() -> None:
    def empty(b: Builder, x: Value) -> Value:
        wide = b.broadcast_to(x, shape=(3, 2, 3))
        part = b.slice(wide, starts=(0, 1, 0), stops=(3, -1, 0), steps=(2, -1, 1))
        return b.add(part, part)

    run(empty, normal(1, 2, 1))


def test_an_output_may_be_an_input_a_view_a_constant_or_twice_the_same() -> None:
    def outputs(b: Builder, x: Value) -> list[Value]:
        y = b.tanh(x)
        view = b.transpose(y, axes=(1, 0))
        part = b.slice(y, starts=(0, 2), stops=(2, -1), steps=(1, -1))
        constant = b.constant(np.arange(3.0))
        return [x, y, y, view, part, constant, b.reshape(y, shape=(6,)), b.transpose(x, axes=(1, 0))]

    x = normal(2, 3)
    _, results = run(outputs, x)
    arrays = [x, *results]
    for i, array in enumerate(arrays):
        assert not any(np.shares_memory(array, other) for other in arrays[:i])


def test_a_graph_without_nodes_or_outputs() -> None:
    assert run(lambda b, x: [], normal(2))[1] == []
    assert run(lambda b, x: [x], normal(2))[1][0].shape == (2,)


def test_a_loop_never_reads_what_it_writes() -> None:
    # Written memory is declared disjoint from all other memory of a kernel (Note [aliasing] in kernels/).
    for seed in range(sweep(8, 40, sample=3)):
        maker = random_case(random.Random(seed), 30, ("float64", "float32"))
        assert maker is not None
        for launch in plan_of(maker.graph).launches:
            assert not isinstance(launch, Section)
            assert not set(launch.reads) & set(launch.writes)
            assert len(launch.writes) <= pieces.MOST_WRITES
            written: dict[Value, set[int]] = {}
            for touch in [each for each in touches(launch) if each.is_written]:
                elements = set(touch.elements.tolist())
                assert written.setdefault(touch.root, set()).isdisjoint(elements)
                written[touch.root] |= elements


def test_layouts_of_broadcast_and_reversed_inputs() -> None:
    graph = graph_of(lambda b, x, y: b.matmul(b.add(x, y), y), normal(3, 3), normal(3, 3))
    x = np.broadcast_to(np.arange(3.0), (3, 3))
    y = normal(3, 3)[::-1, ::-1]
    layouts = [Layout(0, a.shape, tuple(s // 8 for s in a.strides)) for a in (x, y)]
    (result,) = PythonExecutable(build(graph, layouts))([x, y])
    np.testing.assert_allclose(result, (x + y) @ y, rtol=1e-14)


def test_a_short_inner_loop_has_its_extent_in_the_text() -> None:
    def text(inner: int) -> str:
        b = Builder(Graph())
        x, y = (
            b.input(Aval((30, 5, inner), None, np.dtype(np.float32))),
            b.input(Aval((30, 5, 1), None, np.dtype(np.float32))),
        )
        b.graph.outputs = [b.sum(b.mul(x, y), axes=(0,), keepdims=False)]
        (row, *_) = build(b.graph).rows
        return row.kernel.text

    assert "n2 = 4\n" in text(4) and "p0_1 = 4\n" in text(4) and "p1_1 = 1\n" in text(4)
    assert text(4) != text(3)
    assert "n2 = args[" in text(9) and text(9) == text(20)
