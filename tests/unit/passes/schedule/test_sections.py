# SPDX-License-Identifier: BSD-3-Clause
"""Sections: launches that are cut at the same rows, deferred, summed by bands, or run as a whole."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from launches import launches_of, name, shape

from tracejit import pipeline
from tracejit.aval import Aval
from tracejit.codegen.memo import Emissions
from tracejit.codegen.row_sums import emit_nest
from tracejit.ir import Builder, Graph, Value, evaluate
from tracejit.passes import cost
from tracejit.passes.loops import bands
from tracejit.passes.loops.launches import NestLaunch, Section
from tracejit.passes.schedule import epilogues
from tracejit.program import Program
from tracejit.runtime.python import PythonExecutable

F32 = np.dtype(np.float32)
Steps = Callable[..., Sequence[Value]]


def graph_of(steps: Steps, *shapes: tuple[int, ...]) -> Graph:
    b = Builder(Graph())
    b.graph.outputs = list(steps(b, *[b.input(Aval(shape, None, F32)) for shape in shapes]))
    return b.graph


def layers(count: int) -> Steps:
    """Return tanh(x @ w) several times, and its sum over rows."""

    def steps(b: Builder, x: Value, *weights: Value) -> list[Value]:
        for w in weights:
            x = b.tanh(b.matmul(x, w))
        return [x, b.sum(x, axes=(0,), keepdims=False)]

    assert count
    return steps


def gradients(b: Builder, x: Value, *weights: Value) -> list[Value]:
    """Return a step of gradient descent on layers, with a hand-written adjoint."""
    rows = [x]
    for w in weights:
        rows.append(b.tanh(b.matmul(rows[-1], w)))
    ct, gradients = rows[-1], []
    for h, below, w in zip(reversed(rows[1:]), reversed(rows[:-1]), reversed(weights), strict=True):
        ct = b.mul(ct, b.sub(1.0, b.mul(h, h)))
        gradients.append(b.matmul(b.transpose(below, axes=(1, 0)), ct))
        ct = b.matmul(ct, b.transpose(w, axes=(1, 0)))
    return gradients


def in_time(steps: int) -> Steps:
    """Return a recurrent loop with the gradient of its weight, which every step adds to."""

    def function(b: Builder, x: Value, w: Value) -> list[Value]:
        rows = [x]
        for _ in range(steps):
            rows.append(b.tanh(b.matmul(rows[-1], w)))
        ct, total, bias = rows[-1], None, None
        for h, below in zip(reversed(rows[1:]), reversed(rows[:-1]), strict=True):
            ct = b.mul(ct, b.sub(1.0, b.mul(h, h)))
            part = b.matmul(b.transpose(below, axes=(1, 0)), ct)
            summed = b.sum(ct, axes=(0,), keepdims=False)
            total = part if total is None else b.add(total, part)
            bias = summed if bias is None else b.add(bias, summed)
            ct = b.matmul(ct, b.transpose(w, axes=(1, 0)))
        assert total is not None and bias is not None
        return [total, bias]

    return function


def agrees(graph: Graph, seed: int = 0) -> Program:
    rng = np.random.default_rng(seed)
    arrays = [rng.uniform(-0.1, 0.1, v.shape).astype(F32) for v in graph.inputs]
    program = pipeline.build(graph)
    for result, want in zip(PythonExecutable(program)(arrays), evaluate(graph, arrays), strict=True):
        np.testing.assert_allclose(result, want, rtol=1e-5, atol=1e-5)
    return program


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make sections of any duration."""
    monkeypatch.setattr(cost, "LEAST_SECTION_NS", 0.0)


WEIGHTS = ((64, 64),) * 4


@pytest.mark.slow
@pytest.mark.usefixtures("short")
def test_rows_go_through_all_layers_in_one_section() -> None:
    graph = graph_of(layers(4), (64, 64), *WEIGHTS)
    assert shape(graph) == [
        "4: product tanh, product tanh, product tanh, product tanh sum",
        "sum",  # of the sums of bands
    ]
    program = agrees(graph)
    assert (program.launches, len(program.rows)) == (5, 4 * 4 + 1)
    assert program.launch_of_row == [*range(4)] * 4 + [4]
    assert program.places == [*range(4)] * 4 + [0]


def test_little_work_is_not_cut() -> None:
    assert shape(graph_of(layers(4), (64, 64), *WEIGHTS)) == ["product tanh"] * 3 + ["product tanh sum"]


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize(
    ("rows", "count"), [(15, 0), (16, 2), (31, 2), (32, 2), (64, 4), (96, 4), (128, 8), (1024, 8)]
)
def test_bands_have_sixteen_rows_or_more(rows: int, count: int) -> None:
    launches = launches_of(graph_of(layers(2), (rows, 64), (64, 64), (64, 64)))
    assert [len(each.tasks) for each in launches if isinstance(each, Section)] == [count] * bool(count)


@pytest.mark.slow
@pytest.mark.usefixtures("short")
def test_gradients_of_weights_wait_and_run_as_a_whole() -> None:
    graph = graph_of(gradients, (64, 64), *WEIGHTS)
    first, second = [each for each in launches_of(graph) if isinstance(each, Section)]
    assert [name(each).partition(" ")[0] for each in first.tasks[0]].count("product") == 4
    assert [name(each) for each in first.tasks[0]].count("panels") == 3  # times a weight that lies by columns
    rows = [[each.numbers[1] for each in task if name(each) == "product"] for task in second.tasks]  # type: ignore[union-attr]
    assert sorted(map(sum, rows)) == [64] * 4  # each of them in one band
    agrees(graph)


@pytest.mark.usefixtures("short")
def test_sums_over_time_are_summed_by_each_band() -> None:
    graph = graph_of(in_time(6), (32, 16), (16, 16))
    texts = shape(graph)
    (section,) = [text for text in texts if text.startswith("2: ")]
    assert section.count("product") == 6 + 5 + 6  # forward, adjoint by the rows, adjoint by the weight
    assert section.count("sum") == 6
    # The sums of bands are combined once: six launches add to each sum.
    assert [text for text in texts if text != section] == ["transpose", "matmul", "sum_add"]
    agrees(graph)


@pytest.mark.usefixtures("short")
def test_other_sums_of_products_wait() -> None:
    texts = shape(graph_of(in_time(6), (32, 64), (64, 64)))
    assert [text.partition(": ")[0] for text in texts] == ["transpose", "2", "sum_add", "4"]
    assert texts[-1] == "4: " + ", ".join(["product"] * 6)


@pytest.mark.slow
@pytest.mark.usefixtures("short")
def test_a_section_goes_on_with_sums_written_in_place_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "MOST_SECTION_BYTES", 1 << 13)
    graph = graph_of(in_time(12), (32, 16), (16, 16))
    assert sum(isinstance(each, Section) for each in launches_of(graph)) > 3
    agrees(graph)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("steps", [layers(3), gradients])
@pytest.mark.parametrize("rows", [33, 50, 100])
def test_numbers_of_rows_that_bands_do_not_divide(steps: Steps, rows: int) -> None:
    agrees(graph_of(steps, (rows, 20), (20, 20), (20, 20), (20, 20)))


@pytest.mark.usefixtures("short")
def test_a_launch_that_reads_across_rows_ends_a_section() -> None:
    def steps(b: Builder, x: Value, w: Value) -> list[Value]:
        y = b.tanh(b.matmul(x, w))
        z = b.cumsum(y, axis=0, reverse=False)
        return [b.tanh(b.matmul(z, w))]

    graph = graph_of(steps, (64, 64), (64, 64))
    assert shape(graph) == ["4: product tanh", "cumsum", "4: product tanh"]
    agrees(graph)


@pytest.mark.usefixtures("short")
def test_a_slice_of_other_rows_does_not_join() -> None:
    def steps(b: Builder, x: Value, w: Value) -> list[Value]:
        y = b.tanh(b.matmul(x, w))
        above = b.slice(y, starts=(1, 0), stops=(33, 64), steps=(1, 1))
        return [b.tanh(b.matmul(above, w))]

    graph = graph_of(steps, (64, 64), (64, 64))
    assert shape(graph)[0].endswith("product tanh")
    assert len(shape(graph)) == 2
    agrees(graph)


def test_nests_with_the_same_text_are_emitted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epilogues, "LONGEST_BYTES", 0)
    launches = launches_of(graph_of(layers(3), (64, 64), *WEIGHTS[:3]))
    emissions = Emissions()
    for launch in [each for each in launches if isinstance(each, NestLaunch)]:
        got, want = emissions.emit(launch), emit_nest(launch.nest)
        assert got.kernel == want.kernel
        # The arguments of these nests are sizes and strides, which are numbers, and addresses.
        assert all(a is b or a == b for a, b in zip(got.arguments, want.arguments, strict=True))
    assert len(emissions._emitted) == 2


def test_a_section_keeps_its_bands_small(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = graph_of(layers(20), (128, 64), *(((64, 64),) * 20))
    for most, count in ((1 << 21, 1), (1 << 18, 4)):
        monkeypatch.setattr(cost, "MOST_SECTION_BYTES", most)
        assert sum(isinstance(each, Section) for each in launches_of(graph)) == count
    assert bands.MOST_BANDS == 8
