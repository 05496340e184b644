# SPDX-License-Identifier: BSD-3-Clause
"""Values that are read only through slices are computed slice by slice, in the loops that read them."""

import random
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import graphs
import numpy as np
import pytest
from effort import sweep
from graphs import Maker, assert_same, random_case
from launched import agrees, graph_of, graph_of_gated_unit

from tracejit import pipeline
from tracejit.ir import Builder, Graph, Node, Value, evaluate, verify
from tracejit.ops import Kind
from tracejit.passes.graph import slices
from tracejit.passes.graph.simplify import simplify
from tracejit.passes.graph.slices import through_slices
from tracejit.passes.schedule import epilogues
from tracejit.runtime.python import PythonExecutable

Make = Callable[..., Value | Sequence[Value]]


def columns(b: Builder, x: Value, *edges: int) -> list[Value]:
    """Return the slices of columns between edges."""
    return [
        b.slice(x, starts=(0, start), stops=(x.shape[0], stop), steps=(1, 1))
        for start, stop in pairwise(edges)
    ]


def ops(graph: Graph) -> list[str]:
    return [node.op.name for node in graph.nodes]


def rewritten(make: Make, *shapes: tuple[int, ...]) -> list[str]:
    """Return the operations of a graph of slices after the pass, which must not change its results."""
    graph = graph_of(make, *shapes)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(v.shape).astype(np.float32) for v in graph.inputs]
    want = evaluate(graph, arrays)
    through_slices(graph)
    verify(graph)
    for result, expected in zip(evaluate(graph, arrays), want, strict=True):
        np.testing.assert_array_equal(result, expected)
    return ops(graph)


def gates(b: Builder, x: Value, w: Value, bias: Value) -> Value:
    left, right = columns(b, b.add(b.matmul(x, w), bias), 0, 32, 64)
    return b.mul(b.tanh(left), right)


def test_an_operation_is_applied_to_slices_of_its_operands() -> None:
    shapes = (8, 16), (16, 64), (64,)
    both = ["slice", "slice", "add"]
    assert rewritten(gates, *shapes) == ["matmul", *both, *both, "tanh", "mul"]
    assert agrees(graph_of(gates, *shapes)) == ["product", "add add tanh mul"]


def test_a_chain_moves_as_one() -> None:
    def make(b: Builder, x: Value, w: Value, bias: Value) -> Value:
        left, right = columns(b, b.tanh(b.add(b.matmul(x, w), bias)), 0, 32, 64)
        return b.mul(left, right)

    both = ["slice", "slice", "add", "tanh"]
    assert rewritten(make, (8, 16), (16, 64), (64,)) == ["matmul", *both, *both, "mul"]


def test_a_long_chain_moves_in_part() -> None:
    def make(b: Builder, x: Value) -> Value:
        for _ in range(slices.DEEPEST + 2):
            x = b.neg(x)
        left, right = columns(b, x, 0, 32, 64)
        return b.mul(left, right)

    moved = ["slice", *["neg"] * slices.DEEPEST]
    assert rewritten(make, (8, 64)) == ["neg", "neg", *moved, *moved, "mul"]


def test_broadcast_operands_are_sliced_along_their_own_axes() -> None:
    def make(b: Builder, x: Value, row: Value, column: Value, number: Value) -> Value:
        whole = b.where(b.less(x, row), b.add(column, number), x)
        places = {"starts": (7, 1), "stops": (-1, 60), "steps": (-2, 3)}
        return b.neg(b.slice(whole, **places))

    names = rewritten(make, (8, 64), (1, 64), (8, 1), ())
    # The sum of a column is a loop over a different number of elements.
    assert names == ["add", "slice", "slice", "less", "slice", "slice", "where", "neg"]


def test_a_slice_of_a_whole_operand_is_removed() -> None:
    def make(b: Builder, x: Value, row: Value) -> Value:
        top, bottom = (
            b.slice(b.add(x, row), starts=(at, 0), stops=(at + 4, 64), steps=(1, 1)) for at in (0, 4)
        )
        return b.mul(b.neg(top), b.exp(bottom))

    assert rewritten(make, (8, 64), (64,)).count("slice") == 2


def read_otherwise(b: Builder, x: Value) -> Sequence[Value]:
    y = b.neg(x)
    left, right = columns(b, y, 0, 32, 64)
    return b.mul(left, right), b.sum(y, axes=(0,), keepdims=False)


def a_result(b: Builder, x: Value) -> Sequence[Value]:
    y = b.neg(x)
    return b.mul(*columns(b, y, 0, 32, 64)), y


def a_result_of_slices(b: Builder, x: Value) -> Sequence[Value]:
    left, right = columns(b, b.neg(x), 0, 32, 64)
    return b.mul(left, right), left


def overlapping(b: Builder, x: Value) -> Value:
    y = b.neg(x)
    return b.mul(*columns(b, y, 0, 40), columns(b, y, 24, 64)[0])


def many(b: Builder, x: Value) -> Value:
    total, *others = columns(b, b.neg(x), *range(0, 4 * (slices.MOST_SLICES + 2), 4))
    for other in others:
        total = b.mul(total, other)
    return total


def of_a_product(b: Builder, x: Value) -> Value:
    left, right = columns(b, b.neg(x), 0, 32, 64)
    return b.matmul(left, b.transpose(right, axes=(1, 0)))


def sliced_again(b: Builder, x: Value) -> Value:
    return b.exp(columns(b, columns(b, b.neg(x), 0, 40)[0], 8, 40)[0])


def joined(b: Builder, x: Value) -> Value:
    return b.concatenate(*columns(b, b.neg(x), 0, 32, 64)[::-1], axis=1)


def repeated(b: Builder, x: Value) -> Value:
    row = b.slice(b.neg(x), starts=(0, 0), stops=(1, 64), steps=(1, 1))
    return b.mul(row, x)


def seen_repeated(b: Builder, x: Value) -> Value:
    row = b.slice(b.neg(x), starts=(0, 0), stops=(1, 64), steps=(1, 1))
    return b.neg(b.broadcast_to(row, shape=(8, 64)))


def added_to(b: Builder, x: Value) -> Value:
    row = b.reshape(b.slice(b.neg(x), starts=(0, 0), stops=(1, 64), steps=(1, 1)), shape=(64,))
    return b.sum_add(x, row, axes=(0,), keepdims=False)


def short_and_dear(b: Builder, x: Value) -> Value:
    return b.mul(*columns(b, b.exp(x), 0, 20, 40))


def every_other(b: Builder, x: Value) -> Value:
    return b.neg(b.slice(b.exp(x), starts=(0, 0), stops=(8, 64), steps=(1, 2)))


def more_to_store(b: Builder, x: Value) -> Value:
    first, last = b.max(x, axes=(1,), keepdims=True), b.max(x, axes=(0,), keepdims=True)
    return b.mul(*columns(b, b.mul(first, last), 0, 32, 64))


def dear_operands(b: Builder, x: Value) -> Value:
    return b.mul(*columns(b, b.mul(b.exp(x), b.tanh(x)), 0, 20, 40))


def empty(b: Builder, x: Value) -> Value:
    return b.exp(columns(b, b.neg(x), 3, 3)[0])


@pytest.mark.parametrize(
    "make",
    [
        read_otherwise, a_result, a_result_of_slices, overlapping, many, of_a_product, sliced_again, joined, repeated,
        seen_repeated, added_to, short_and_dear, every_other, more_to_store, dear_operands, empty,
    ],
)  # fmt: skip
def test_other_operations_stay_where_they_are(make: Make) -> None:
    shape = (8, 64)
    assert rewritten(make, shape) == ops(graph_of(make, shape))


@pytest.mark.slow
def test_a_gated_unit_adds_its_biases_where_it_uses_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epilogues, "LONGEST_BYTES", 0)  # otherwise the products would add them
    units = [graph_of_gated_unit(steps, 24) for steps in (3, 6)]
    launches = [pipeline.build(graph).launches for graph in units]
    agrees(units[0])
    monkeypatch.setattr(pipeline, "through_slices", lambda graph: None)
    apart = [pipeline.build(graph).launches for graph in units]
    assert apart[1] - apart[0] - (launches[1] - launches[0]) == 2 * 3


class Slicer(Maker):
    """Makes random graphs with many values that are read through slices."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.steps += [self.parts] * 8

    def parts(self) -> Value | None:
        x = self.pick(lambda v: v.ndim > 0 and v.node is not None and v.node.op.kind is Kind.ELEMENTWISE)
        if x is None or x.dtype.kind != "f":
            return None
        axis = self.rnd.randrange(x.ndim)
        middle = self.rnd.randint(0, x.shape[axis])
        for start, stop in ((0, middle), (middle, x.shape[axis])):
            starts, stops = [0] * x.ndim, list(x.shape)
            starts[axis], stops[axis] = start, stop
            part = self.b.slice(x, starts=tuple(starts), stops=tuple(stops), steps=(1,) * x.ndim)
            result = self.derived(self.b.neg(part), x)
        self.values.remove(x)
        return result


def test_slices_of_random_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "Maker", Slicer)
    monkeypatch.setattr(slices, "makes_vectors", lambda row: True)
    moved: list[Node] = []
    move = slices._Mover.move
    monkeypatch.setattr(slices._Mover, "move", lambda self, node: (moved.append(node), move(self, node)))
    for seed in range(sweep(20, 150, sample=6)):
        maker = random_case(random.Random(seed), 25, ("float64", "float32", "int64"))
        if maker is None:
            continue
        simplified = simplify(maker.graph)
        through_slices(simplified)
        verify(simplified)
        with np.errstate(all="ignore"):
            want = evaluate(maker.graph, maker.arrays)
            assert_same(maker, evaluate(simplified, maker.arrays), want)
            assert_same(maker, PythonExecutable(pipeline.build(maker.graph))(maker.arrays), want)
    assert len(moved) > sweep(10, 100, sample=1)
