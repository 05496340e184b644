# SPDX-License-Identifier: BSD-3-Clause
"""Ops that can share a loop do; steps run after the steps that they read."""

import random

import numpy as np
import pytest
from effort import sweep
from graphs import random_case
from small_graphs import graph_of, grouped, normal, run, softmax

from tracejit.aval import Aval
from tracejit.ir import Builder, Graph, Value, evaluate
from tracejit.passes.fusion.chop import chop
from tracejit.passes.fusion.fuse import Loop
from tracejit.pipeline import build
from tracejit.runtime.python import PythonExecutable

F64 = np.dtype(np.float64)


def test_a_softmax_of_rows_is_one_loop() -> None:
    program, _ = run(lambda b, x: softmax(b, x, 1), normal(4, 5))
    assert len(program.rows) == 1


def test_a_softmax_of_columns_computes_the_same() -> None:
    _, (columns,) = run(lambda b, x: softmax(b, x, 0), normal(4, 5))
    _, (rows,) = run(lambda b, x: softmax(b, x, 1), np.ascontiguousarray(normal(4, 5).T))
    np.testing.assert_allclose(columns.T, rows, rtol=1e-15)


def test_a_normalisation_of_rows_is_one_loop() -> None:
    def norm(b: Builder, x: Value, scale: Value) -> Value:
        mean = b.div(b.sum(x, axes=(1,), keepdims=True), 5.0)
        centred = b.sub(x, mean)
        variance = b.div(b.sum(b.square(centred), axes=(1,), keepdims=True), 5.0)
        return b.mul(b.div(centred, b.sqrt(b.add(variance, 1e-5))), scale)

    program, _ = run(norm, normal(4, 5), normal(5))
    assert len(program.rows) == 1


def test_a_loss_over_rows_is_one_loop() -> None:
    def loss(b: Builder, x: Value) -> Value:
        shifted = b.sub(x, b.max(x, axes=(1,), keepdims=True))
        rows = b.log(b.sum(b.exp(shifted), axes=(1,), keepdims=False))
        return b.sum(rows, axes=(0,), keepdims=False)

    program, _ = run(loss, normal(4, 5))
    assert len(program.rows) == 1


def test_sums_over_leading_axes_accumulate_beside_the_values() -> None:
    def both(b: Builder, x: Value) -> list[Value]:
        y = b.tanh(x)
        return [
            y,
            b.sum(y, axes=(0,), keepdims=False),
            b.max(y, axes=(0, 1), keepdims=True),
            b.sum(y, axes=(2,), keepdims=False),
        ]

    program, _ = run(both, normal(2, 3, 4))
    assert len(program.rows) == 1


def test_a_sum_joins_a_deeper_sum_of_the_same_array() -> None:
    def sums(b: Builder, x: Value, ct: Value) -> list[Value]:
        mean = b.mul(b.sum(x, axes=(0,), keepdims=True), 0.25)
        spread = b.sum(b.mul(ct, b.sub(x, mean)), axes=(0,), keepdims=False)
        return [b.sum(ct, axes=(0,), keepdims=False), spread]

    program, _ = run(sums, normal(4, 5), normal(4, 5))
    assert [row.note for row in program.rows] == ["sum", "mul", "sub, mul, sum, sum"]


def test_a_sum_of_rows_joins_a_loop_that_folds_them() -> None:
    def sums(b: Builder, x: Value, ct: Value) -> list[Value]:
        total = b.sum(b.mul(ct, x), axes=(1, 2), keepdims=True)
        return [
            b.sum(ct, axes=(0,), keepdims=False),
            b.sum(ct, axes=(0, 2), keepdims=False),
            b.mul(ct, total),
        ]

    program, _ = run(sums, normal(4, 5, 6), normal(4, 5, 6))
    assert len(program.rows) == 1
    program, _ = run(lambda b, x, ct: sums(b, x, ct)[::-1], normal(4, 5, 6), normal(4, 5, 6))
    assert len(program.rows) == 1


def test_a_sum_that_is_needed_before_stays_where_it_is() -> None:
    def sums(b: Builder, x: Value, ct: Value) -> list[Value]:
        total = b.sum(ct, axes=(0,), keepdims=True)
        mean = b.mul(b.sum(x, axes=(0,), keepdims=True), total)
        return [b.sum(b.mul(ct, b.sub(x, mean)), axes=(0,), keepdims=False)]

    program, _ = run(sums, normal(4, 5), normal(4, 5))
    assert [row.note.count("sum") for row in program.rows] == [1, 1, 0, 1]


def test_cheap_values_are_computed_again_beside_few_numbers_more() -> None:
    """Deviations from numbers for each column, read by a sum and, later, by a loop that does not read the image."""

    def parts(b: Builder, x: Value, shift: Value, ct: Value) -> list[Value]:
        moved = b.sub(x, shift)
        total = b.sum(b.square(moved), axes=(0,), keepdims=True)
        return [b.mul(ct, b.add(moved, total))]

    program, _ = run(parts, normal(100, 6), normal(6), normal(100, 6))
    assert program.arena_bytes < 100 * 6 * 8  # no room for the deviations


def test_the_innermost_loop_is_along_the_elements_that_are_many() -> None:
    """Numbers for each channel, which lie side by side, beside images with the channels first."""
    vectors = [normal(6, 1), normal(6, 1) + 1, normal(6, 1) + 2]
    program, _ = run(lambda b, x, m, s, o: b.add(b.mul(b.sub(x, m), s), o), normal(3, 6, 50), *vectors)
    (row,) = program.rows
    assert row.arguments[:3] == (3, 6, 50)


def test_a_broadcast_value_may_be_summed_along_its_own_axis() -> None:
    def tile(b: Builder, x: Value) -> list[Value]:
        y = b.exp(x)
        wide = b.broadcast_to(y, shape=(2, 3))
        return [y, b.sum(wide, axes=(1,), keepdims=False), b.sum(wide, axes=(0,), keepdims=False)]

    _, (_, totals, _) = run(tile, normal(3))
    assert totals.shape == (2,)
    assert totals[0] == totals[1]


def test_a_row_value_broadcast_over_columns_may_be_summed_over_rows() -> None:
    def tile(b: Builder, x: Value) -> list[Value]:
        rows = b.sum(x, axes=(1,), keepdims=True)
        return [b.sum(b.broadcast_to(rows, shape=(3, 4)), axes=(0,), keepdims=False), b.mul(x, rows)]

    run(tile, normal(3, 4))


def test_a_total_may_be_broadcast_and_summed_again() -> None:
    def again(b: Builder, x: Value) -> Value:
        for _ in range(3):
            x = b.sum(b.broadcast_to(b.mul(x, x), shape=(3,)), axes=(0,), keepdims=False)
        return x

    _, (result,) = run(again, np.asarray(0.5))
    assert result == 3.0**7 * 0.5**8


def test_values_that_all_readers_compute_again_leave_no_loop_behind() -> None:
    def cheap(b: Builder, x: Value, y: Value) -> list[Value]:
        padded = b.pad(x, widths=((1, 1),), value=1.0)
        doubled = b.cast(y, dtype=F64)
        return [b.where(b.greater(doubled, 0.0), padded, doubled), b.sub(doubled, padded)]

    run(cheap, normal(3), normal(5).astype(np.float32))


def test_loops_that_reduce_rows_of_different_lengths_stay_apart() -> None:
    graph = Graph()
    b = Builder(graph)
    x, y = (b.input(Aval((4, 2, 4), None, np.dtype(np.float64))) for _ in range(2))
    z = b.tanh(x)
    over_all = b.max(x, axes=(0, 1, 2), keepdims=True)
    over_rows = b.max(z, axes=(2,), keepdims=True)
    # The first operand's loop has no rows yet; the rows of the other two differ.
    chosen = b.where(b.greater(y, 0.0), over_all, z)
    graph.outputs = [chosen, b.sub(z, over_rows)]
    arrays = list(np.random.default_rng(0).standard_normal((2, 4, 2, 4)))
    for have, want in zip(PythonExecutable(build(graph))(arrays), evaluate(graph, arrays), strict=True):
        np.testing.assert_allclose(have, want)


def test_a_product_comes_before_the_readers_of_its_slices() -> None:
    graph = Graph()
    b = Builder(graph)
    x = b.input(Aval((2, 2), None, np.dtype(np.float64)))
    product = b.matmul(x, x)
    part = b.slice(product, starts=(0, 1), stops=(2, 2), steps=(1, 1))
    early = b.exp(part)
    late = b.matmul(early, b.reshape(early, shape=(1, 2)))
    graph.outputs = [early, b.sub(late, product)]
    (x_data,) = np.random.default_rng(0).standard_normal((1, 2, 2))
    for have, want in zip(PythonExecutable(build(graph))([x_data]), evaluate(graph, [x_data]), strict=True):
        np.testing.assert_allclose(have, want)


@pytest.mark.slow
def test_the_number_of_loops_grows_linearly_with_a_chain() -> None:
    def chain(b: Builder, x: Value) -> Value:
        for _ in range(length):
            x = b.mul(b.tanh(x), 0.5)
        return x

    counts = {}
    for length in (40, 400, 1600):
        _, fused = grouped(graph_of(chain, normal(3)))
        assert [type(step) for step in fused.steps] == [Loop]
        chop(fused)
        assert all(isinstance(step, Loop) and len(step.nodes) <= 96 for step in fused.steps)
        counts[length] = len(fused.steps)
    assert counts == {40: 1, 400: 9, 1600: 34}


def test_steps_run_after_what_they_read() -> None:
    for seed in range(sweep(6, 20, sample=2)):
        maker = random_case(random.Random(seed), 25)
        assert maker is not None
        _, fused = grouped(maker.graph)
        position = {id(step): i for i, step in enumerate(fused.steps)}
        for step in fused.steps:
            for node in step.nodes if isinstance(step, Loop) else [step.node]:
                for value in node.inputs:
                    home = fused.home.get(fused.view(value)[0])
                    if home is not None and home is not step:
                        assert position[id(home)] < position[id(step)]


def test_products_of_inputs_run_next_to_their_readers() -> None:
    def unrolled(b: Builder, x: Value, w: Value, h: Value) -> Value:
        for step in range(10):
            part = b.slice(x, starts=(2 * step, 0), stops=(2 * step + 2, 8), steps=(1, 1))
            h = b.tanh(b.add(b.matmul(part, w), b.matmul(h, w)))
        return h

    program = build(graph_of(unrolled, normal(20, 8), normal(8, 8), normal(2, 8)))
    assert program.arena_bytes == 2 * 2 * 8 * 8  # a product and a state


def test_delayed_products_run_before_readers_of_their_slices() -> None:
    def make(b: Builder, x: Value, y: Value) -> Value:
        product = b.matmul(x, y)
        row = b.slice(product, starts=(1, 0), stops=(2, 3), steps=(1, 1))
        largest = b.max(row, axes=(0, 1), keepdims=False)
        for _ in range(3):
            y = b.tanh(b.matmul(y, y))
        return b.add(b.matmul(product, y), b.mul(largest, 2.0))

    run(make, normal(3, 3), normal(3, 3))
