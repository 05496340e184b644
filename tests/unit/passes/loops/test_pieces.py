# SPDX-License-Identifier: BSD-3-Clause
"""Loops and products write straight into assembled arrays where that costs nothing."""

import random
from collections.abc import Sequence
from typing import Any

import graphs
import in_parts
import numpy as np
import pytest
from effort import sweep
from graphs import Maker, random_case
from launched import F32, Make, agrees, graph_of, graph_of_gated_unit, singles
from races import check_races

from tracejit import pipeline
from tracejit.aval import Aval
from tracejit.ir import Builder, Graph, Value
from tracejit.passes.fusion.fuse import Loop
from tracejit.passes.loops import contract, multiplier, pieces, select
from tracejit.passes.loops.launches import NestLaunch
from tracejit.passes.loops.nest import Nest
from tracejit.passes.loops.pieces import Destination
from tracejit.passes.loops.products import Matrices, Product
from tracejit.passes.schedule import epilogues


def test_loops_write_where_their_values_belong() -> None:
    def make(b: Builder, x: Value, y: Value) -> Value:
        return b.concatenate(b.tanh(x), b.exp(y), axis=1)

    graph = graph_of(make, (4, 64), (4, 96))
    assert agrees(graph) == ["tanh", "exp"]
    (tanh, exp) = (each.nest.writes for each in singles(graph) if isinstance(each, NestLaunch))
    assert [(a.offset, a.strides) for a in (*tanh, *exp)] == [(0, (160, 1)), (64, (160, 1))]
    assert pipeline.build(graph).arena_bytes == 0


def test_a_value_is_written_to_each_of_its_places_and_kept_for_other_readers() -> None:
    def make(b: Builder, x: Value, y: Value) -> list[Value]:
        z = b.tanh(x)
        return [b.concatenate(z, y, z, axis=1), b.concatenate(z, y, axis=0), b.matmul(z, y)]

    graph = graph_of(make, (64, 64), (64, 64))
    assert sorted(agrees(graph)) == ["copy", "copy", "product", "tanh"]
    (loop,) = [each for each in singles(graph) if isinstance(each, NestLaunch) and each.nodes]
    assert [a.offset for a in loop.nest.writes] == [0, 0, 128, 0]
    assert [a.strides for a in loop.nest.writes] == [(64, 1), (192, 1), (192, 1), (64, 1)]


def test_stacked_values_are_written_in_place() -> None:
    def make(b: Builder, x: Value, w: Value) -> Value:
        rows = []
        for _ in range(4):
            x = b.tanh(b.matmul(x, w))
            rows.append(b.reshape(x, shape=(16, 1, 16)))
        return b.concatenate(*rows, axis=1)

    assert agrees(graph_of(make, (16, 16), (16, 16))) == ["product", "tanh"] * 4


def test_loops_write_the_gradient_of_slices_that_cover_an_array() -> None:
    def make(b: Builder, x: Value, w: Value) -> Value:
        gates = b.matmul(x, w)
        parts = [b.slice(gates, starts=(0, at), stops=(16, at + 32), steps=(1, 1)) for at in (0, 32, 64)]
        zeros = b.broadcast_to(b.constant(np.zeros((), F32)), shape=(16, 96))
        whole = zeros
        for at, part in zip((0, 32, 64), parts, strict=True):
            places = {"starts": (0, at), "stops": (16, at + 32), "steps": (1, 1)}
            amid = b.setslice(zeros, b.tanh(part), **places)
            whole = amid if whole is zeros else b.add(whole, amid)
        return b.matmul(whole, b.transpose(w, axes=(1, 0)))

    assert agrees(graph_of(make, (16, 16), (16, 96))) == ["product", "tanh tanh tanh", "transpose", "product"]


def sums(b: Builder, x: Value) -> Value:
    return b.concatenate(b.sum(x, axes=(0,), keepdims=True), x, axis=0)


def overlapping(b: Builder, x: Value) -> Value:
    return b.setslice(x, b.tanh(x), starts=(0, 0), stops=(8, 64), steps=(1, 1))


def transposed(b: Builder, x: Value) -> Value:
    y = b.tanh(x)
    return b.concatenate(b.transpose(y, axes=(1, 0)), b.transpose(x, axes=(1, 0)), axis=1)


def backwards(b: Builder, x: Value) -> Value:
    places = (((7, 0), (-1, 64), (-1, 1)), ((8, 0), (16, 64), (1, 1)))
    return b.assemble(b.tanh(x), x, shape=(16, 64), places=places)


def every_other(b: Builder, x: Value) -> Value:
    places = (((0, 0), (8, 128), (1, 2)), ((0, 1), (8, 128), (1, 2)))
    return b.assemble(b.tanh(x), x, shape=(8, 128), places=places)


def repeated(b: Builder, x: Value) -> Value:
    row = b.tanh(b.slice(x, starts=(0, 0), stops=(1, 64), steps=(1, 1)))
    return b.concatenate(b.broadcast_to(row, shape=(8, 64)), x, axis=1)


def a_slice(b: Builder, x: Value) -> Value:
    return b.concatenate(b.slice(b.tanh(x), starts=(0, 0), stops=(8, 60), steps=(1, 1)), x, axis=1)


@pytest.mark.parametrize("make", [sums, overlapping, transposed, backwards, every_other, repeated, a_slice])
def test_other_pieces_are_copied(make: Make) -> None:
    assert agrees(graph_of(make, (8, 64))).count("copy") == 2


def test_pieces_of_another_dtype_are_copied() -> None:
    b = Builder(Graph())
    x = b.input(Aval((8, 64), None, F32))
    node = b.concatenate(x, b.cast(b.tanh(x), dtype=np.dtype(np.float64)), axis=1).node
    b.graph.outputs = [node.output]
    assert [value.dtype for value in node.inputs] == [np.float64, np.float64]
    assert agrees(b.graph) == ["tanh cast cast"]


def short_rows(b: Builder, x: Value) -> Value:
    return b.concatenate(b.tanh(x), x, axis=1)


def cheap(b: Builder, x: Value) -> Value:
    return b.concatenate(b.mul(x, 2.0), x, axis=1)


def with_bias(b: Builder, x: Value, bias: Value) -> Value:
    return b.concatenate(b.tanh(b.add(x, bias)), x, axis=1)


def blocks(b: Builder, x: Value) -> Value:
    return b.concatenate(b.tanh(x), x, axis=1)


def below_a_taller_one(b: Builder, x: Value, y: Value) -> Value:
    return b.concatenate(y, b.tanh(x), axis=0)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("make", "shapes", "copies"),
    [
        (short_rows, ((100, 20),), 2),  # 2000 neighbouring elements, or 20
        (short_rows, ((100, 100),), 1),  # rows that are long enough
        (short_rows, ((100, 32),), 1),  # rows that are vectors
        (cheap, ((100, 20),), 1),
        (with_bias, ((100, 20), (20,)), 3),  # several rows at a time, with a repeated bias
        (with_bias, ((100, 64), (64,)), 1),
        (with_bias, ((200, 7), (7,)), 3),
        (with_bias, ((20, 20), (20,)), 1),  # too few elements for that
        (blocks, ((2, 100, 64),), 2),  # 200 rows, or 2
        (blocks, ((8, 100, 64),), 1),
        (below_a_taller_one, ((8, 64), (9, 64)), 1),
        (below_a_taller_one, ((8, 64), (8, 64)), 1),
        (below_a_taller_one, ((8, 64), (16, 64)), 1),
    ],
)
def test_loops_keep_memory_of_their_own_where_the_destination_would_slow_them_down(
    make: Make, shapes: Sequence[tuple[int, ...]], copies: int
) -> None:
    assert agrees(graph_of(make, *shapes)).count("copy") == copies


def beside(b: Builder, x: Value, *weights: Value) -> Value:
    return b.concatenate(*[b.matmul(x, w) for w in weights], axis=x.ndim - 1)


def below(b: Builder, x: Value, *weights: Value) -> Value:
    return b.concatenate(*[b.matmul(x, w) for w in weights], axis=0)


def used_twice(b: Builder, x: Value, w: Value) -> Value:
    y = b.matmul(x, w)
    return b.concatenate(y, y, axis=1)


def a_result_too(b: Builder, x: Value, w: Value) -> list[Value]:
    y = b.matmul(x, w)
    return [b.concatenate(y, y, axis=1), y]


def seen_twice(b: Builder, x: Value, w: Value) -> Value:
    y = b.reshape(b.matmul(x, w), shape=(1, x.shape[0], w.shape[1]))
    return b.concatenate(y, y, axis=1)


def a_result_seen_otherwise(b: Builder, x: Value, w: Value) -> list[Value]:
    y = b.reshape(b.matmul(x, w), shape=(1, x.shape[0], w.shape[1]))
    return [y, b.concatenate(y, b.reshape(x, shape=(1, *x.shape)), axis=2)]


def in_blocks(b: Builder, x: Value, w: Value, v: Value) -> Value:
    """Products of all rows of a batch, whose matrices would lie apart."""
    return b.concatenate(b.matmul(x, w), b.matmul(x, v), axis=1)


@pytest.mark.parametrize(
    ("make", "shapes", "copies"),
    [
        (used_twice, ((32, 16), (16, 64)), 2),
        (a_result_too, ((32, 16), (16, 64)), 2),
        (seen_twice, ((32, 16), (16, 64)), 2),
        (a_result_seen_otherwise, ((32, 16), (16, 64)), 2),
        (beside, ((32, 16), (16, 1), (16, 64)), 1),
        (beside, ((8, 1000), (1000, 8), (1000, 64)), 2),  # bands would sum up parts of the depth
        (beside, ((64, 64), (64, 2), (64, 64)), 1),  # the kernel for two columns writes dense rows
        (in_blocks, ((4, 32, 16), (16, 64), (16, 64)), 2),
        (below, ((32, 16), (16, 64), (16, 64)), 0),
    ],
)
def test_results_of_other_products_are_copied(
    make: Make, shapes: Sequence[tuple[int, ...]], copies: int
) -> None:
    assert agrees(graph_of(make, *shapes)).count("copy") == copies


def test_rows_below_more_rows_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(b: Builder, x: Value, y: Value, w: Value) -> Value:
        return b.concatenate(b.matmul(x, w), b.matmul(y, w), axis=0)

    assert agrees(graph_of(make, (33, 16), (32, 16), (16, 64))) == [
        "product",
        "product",
    ]  # the epilogue of the product
    monkeypatch.setattr(epilogues, "LONGEST_BYTES", 0)
    assert agrees(graph_of(make, (33, 16), (32, 16), (16, 64))).count("copy") == 1


def test_results_of_blas_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiplier, "BLAS_FROM", 0)
    graph = graph_of(beside, (32, 16), (16, 64), (16, 64))
    assert agrees(graph) == ["gemm", "gemm", "copy", "copy"]


@pytest.mark.slow
@pytest.mark.parametrize("width", sweep([24], [24, 64]))
def test_a_gated_unit_copies_nothing(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    units = [graph_of_gated_unit(steps, width) for steps in (3, 6)]
    launches = [pipeline.build(graph).launches for graph in units]
    assert not any("copy" in agrees(graph) for graph in units)
    monkeypatch.setattr(select, "nest_in_place", lambda *args: None)
    copied = [pipeline.build(graph).launches for graph in units]
    # Two arrays of three pieces in each step.
    assert copied[1] - copied[0] - (launches[1] - launches[0]) == 6 * 3


class Joiner(Maker):
    """Makes random graphs with many assembled arrays."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.steps += [self.concatenate] * 5 + [self.sum_of_slices] * 4 + [self.stack] * 4 + [self.unary] * 3
        self.steps += [self.products] * 6

    def stack(self) -> Value | None:
        x = self.pick(lambda v: v.ndim < 4)
        if x is None:
            return None
        like = x.shape
        rows = [x, *[self.pick(lambda v: v.shape == like) or x for _ in range(self.rnd.randint(1, 3))]]
        axis = self.rnd.randint(0, x.ndim)
        apart = [self.b.reshape(row, shape=(*like[:axis], 1, *like[axis:])) for row in rows]
        return self.derived(self.b.concatenate(*apart, axis=axis), *rows)

    def products(self) -> Value | None:
        x = self.pick(lambda v: v.ndim in (2, 3) and v.dtype.kind == "f" and 0 not in v.shape)
        if x is None:
            return None
        lead = x.shape[:1] if x.ndim == 3 and self.rnd.random() < 0.3 else ()
        like, columns = str(x.dtype), self.rnd.randint(1, 4)
        operands = [
            self.b.matmul(x, self.input((*lead, x.shape[-1], columns), like))
            for _ in range(self.rnd.randint(1, 3))
        ]
        if self.rnd.random() < 0.2:
            self.derived(operands[0], x)
        return self.derived(self.b.concatenate(*operands, axis=self.rnd.randrange(x.ndim)), x)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Make graphs of pieces; count the pieces that loops and products write."""
    written: list[int] = []

    def nest_in_place(
        nest: Nest, loop: Loop, destinations: Sequence[Destination], kept: list[Value]
    ) -> Nest | None:
        placed = pieces.nest_in_place(nest, loop, destinations, kept)
        written.append(0 if placed is None else len(destinations))
        return placed

    def result_in_place(product: Product, destination: Destination, kernel: str) -> Matrices | None:
        placed = pieces.result_in_place(product, destination, kernel)
        written.append(placed is not None)
        return placed

    monkeypatch.setattr(select, "nest_in_place", nest_in_place)
    monkeypatch.setattr(contract, "result_in_place", result_in_place)
    monkeypatch.setattr(graphs, "Maker", Joiner)
    return written


@pytest.mark.parametrize("wherever", [False, True], ids=["if-it-pays", "wherever-it-can"])
@pytest.mark.parametrize("cut", ["always_in_parts", "always_in_bands"])
def test_pieces_of_random_graphs(
    cut: str,
    wherever: bool,
    counted: list[int],
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    request.getfixturevalue(cut)
    if wherever:
        monkeypatch.setattr(pieces, "_runs_alike", lambda *args: True)
    for seed in range(sweep(6, 50, sample=2)):
        in_parts.check(seed, ("float64", "float32", "int64"), 30, bool(seed % 2))
        maker = random_case(random.Random(seed), 30)
        if maker is not None:
            check_races(pipeline.stages(maker.graph).plan)
    assert sum(counted) > sweep(15, 150, sample=0)
