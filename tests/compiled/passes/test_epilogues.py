# SPDX-License-Identifier: BSD-3-Clause
"""A product and the only loop that reads its result are one launch, wherever launches are cut."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from pools import check_same_bits
from races import check_races

from tracejit import pipeline
from tracejit.aval import Aval
from tracejit.codegen.epilogue import emit_product
from tracejit.codegen.memo import Emissions
from tracejit.codegen.templates import gemm
from tracejit.ir import Builder, Graph, Value, evaluate
from tracejit.passes import cost
from tracejit.passes.loops.launches import KernelLaunch, Launch, NestLaunch, Section
from tracejit.passes.schedule import epilogues
from tracejit.runtime.cpu import CpuExecutable
from tracejit.runtime.python import PythonExecutable

Steps = Callable[..., Sequence[Value]]


def graph_of(steps: Steps, *shapes: tuple[int, ...], dtype: str = "float32") -> Graph:
    b = Builder(Graph())
    b.graph.outputs = list(steps(b, *[b.input(Aval(shape, None, np.dtype(dtype))) for shape in shapes]))
    return b.graph


def notes(graph: Graph) -> list[str]:
    return [row.note for row in pipeline.build(graph).rows if row.part == 0]


def arrays_of(graph: Graph) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.uniform(-1, 1, v.shape).astype(v.dtype) for v in graph.inputs]


def agree(results: Sequence[np.ndarray], graph: Graph, arrays: list[np.ndarray]) -> None:
    """Check results against NumPy, with an error of a few roundings for each step of a sum."""
    for got, want in zip(results, evaluate(graph, arrays), strict=True):
        bound = 200 * np.finfo(want.dtype).eps
        np.testing.assert_allclose(got, want, rtol=bound, atol=bound * max(1.0, np.abs(want).max(initial=0)))


def layer(b: Builder, x: Value, w: Value, bias: Value) -> list[Value]:
    return [b.tanh(b.add(b.matmul(x, w), bias))]


def adjoint(b: Builder, x: Value, w: Value, h: Value) -> list[Value]:
    """Return the mask of a relu's adjoint, and the gradient of its bias."""
    ct = b.where(b.less_equal(h, 0.0), 0.0, b.matmul(x, w))
    return [ct, b.sum(ct, axes=(0,), keepdims=False)]


def scaled(b: Builder, x: Value, w: Value, scale: Value) -> list[Value]:
    """Return rows times a number for each."""
    return [b.mul(b.matmul(x, w), scale)]


def descent(b: Builder, x: Value, ct: Value, w: Value) -> list[Value]:
    """Return a weight minus a part of its gradient, whose left factor lies by columns."""
    return [b.sub(w, b.mul(b.matmul(b.transpose(x, axes=(1, 0)), ct), 0.1))]


STEPS: dict[Steps, Callable[[int, int, int], list[tuple[int, ...]]]] = {
    layer: lambda m, n, k: [(m, k), (k, n), (n,)],
    adjoint: lambda m, n, k: [(m, k), (k, n), (m, n)],
    scaled: lambda m, n, k: [(m, k), (k, n), (m, 1)],
    descent: lambda m, n, k: [(k, m), (k, n), (m, n)],
}
SIZES = (
    (9, 64, 1),
    (16, 65, 7),
    (17, 96, 3),
    (33, 100, 20),
    (40, 128, 10),
    (23, 256, 2),
    (12, 70, 16),
)  # m, n, k


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("steps", STEPS)
def test_results_and_one_launch(steps: Steps, dtype: str) -> None:
    for m, n, k in SIZES:
        graph = graph_of(steps, *STEPS[steps](m, n, k), dtype=dtype)
        (note,) = notes(graph)
        assert note.startswith("matmul, ")
        arrays = arrays_of(graph)
        agree(CpuExecutable(pipeline.build(graph))(arrays), graph, arrays)


@pytest.mark.parametrize("width", [16, 32, 64])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("steps", STEPS)
def test_results_without_numba_and_with_other_vectors(
    steps: Steps, dtype: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gemm, "vector_bytes", lambda: width)
    for m, n, k in ((9, 64, 2), (14, 75, 3)):
        graph = graph_of(steps, *STEPS[steps](m, n, k), dtype=dtype)
        arrays = arrays_of(graph)
        agree(PythonExecutable(pipeline.build(graph))(arrays), graph, arrays)
        agree(CpuExecutable(pipeline.build(graph))(arrays), graph, arrays)


def test_sizes_share_a_kernel() -> None:
    kernels = {
        kernel.name
        for m, n, k in SIZES
        for kernel in pipeline.build(graph_of(layer, (m, k), (k, n), (n,))).kernels
    }
    assert len(kernels) == 1
    assert kernels.pop().startswith("product_add_tanh_")


def also_read(b: Builder, x: Value, w: Value, bias: Value) -> list[Value]:
    z = b.matmul(x, w)
    return [b.tanh(b.add(z, bias)), b.cumsum(z, axis=0, reverse=False)]


def output(b: Builder, x: Value, w: Value, bias: Value) -> list[Value]:
    z = b.matmul(x, w)
    return [b.tanh(b.add(z, bias)), z]


def softmax(b: Builder, x: Value, w: Value, bias: Value) -> list[Value]:
    e = b.exp(b.add(b.matmul(x, w), bias))
    return [b.div(e, b.sum(e, axes=(1,), keepdims=True))]


def turned(b: Builder, x: Value, w: Value, bias: Value) -> list[Value]:
    return [b.tanh(b.transpose(b.matmul(x, w), axes=(1, 0)))]


def of_some_rows(b: Builder, x: Value, w: Value, bias: Value) -> list[Value]:
    z = b.slice(b.matmul(x, w), starts=(1, 0), stops=(16, 64), steps=(1, 1))
    return [b.tanh(b.add(z, bias))]


def summed(b: Builder, x: Value, w: Value, bias: Value) -> list[Value]:
    return [b.sum(b.tanh(b.matmul(x, w)), axes=(0, 1), keepdims=False)]


@pytest.mark.parametrize("steps", [also_read, output, softmax, turned, of_some_rows, summed])
def test_loops_that_stay_apart_from_products(steps: Steps) -> None:
    graph = graph_of(steps, (16, 8), (8, 64), (64,))
    assert "matmul" in notes(graph)
    arrays = arrays_of(graph)
    agree(CpuExecutable(pipeline.build(graph))(arrays), graph, arrays)


def test_sizes_that_stay_apart() -> None:
    for m, n, joined in ((16, 64, True), (8, 64, False), (16, 63, False), (16, 512, True), (16, 513, False)):
        graph = graph_of(layer, (m, 8), (8, n), (n,))
        assert ("matmul" not in notes(graph)) is joined
    batch = graph_of(lambda b, x, w: [b.tanh(b.matmul(x, w))], (3, 16, 8), (3, 8, 64))
    assert notes(batch) == ["matmul", "tanh"]


def test_a_sum_that_products_add_to_stays_apart() -> None:
    def steps(b: Builder, x: Value, w: Value, bias: Value) -> list[Value]:
        return [b.tanh(b.add(b.matmul(x, w), b.matmul(b.tanh(x), w)))]

    graph = graph_of(steps, (16, 8), (8, 64), (64,))
    assert notes(graph) == ["matmul", "tanh", "matmul_add", "tanh"]


def test_launches_between_the_two_go_first() -> None:
    def steps(b: Builder, x: Value, w: Value, bias: Value) -> list[Value]:
        z = b.matmul(x, w)
        total = b.cumsum(bias, axis=0, reverse=False)
        return [b.tanh(b.add(z, total))]

    graph = graph_of(steps, (16, 8), (8, 64), (64,))
    assert notes(graph) == ["cumsum", "matmul, add, tanh"]
    arrays = arrays_of(graph)
    agree(CpuExecutable(pipeline.build(graph))(arrays), graph, arrays)


def test_a_product_does_not_wait_until_a_factor_is_overwritten() -> None:
    plan = pipeline.stages(graph_of(layer, (16, 8), (8, 64), (64,))).plan
    (joined,) = plan.launches
    assert isinstance(joined, KernelLaunch) and joined.epilogue is not None
    product, loop = joined._replace(epilogue=None), NestLaunch(joined.epilogue.nest)
    (other,) = pipeline.stages(graph_of(lambda b, x: [b.tanh(x)], (16, 8))).plan.launches
    assert isinstance(other, NestLaunch)
    write = other.nest.writes[0]
    places = [place for place in plan.places if place is not product.pointers[-1].root]
    for factor, number in ((product.pointers[0], 3), (product.pointers[1], 3), (write, 2)):
        over = NestLaunch(other.nest._replace(writes=[write._replace(root=factor.root)]))
        assert len(epilogues.join_epilogues([product, over, loop], places)) == number


def layers(b: Builder, x: Value, *weights: Value) -> list[Value]:
    for w in weights:
        x = b.tanh(b.matmul(x, w))
    return [x, b.sum(x, axes=(0,), keepdims=False)]


def parts_of(launch: Launch) -> list[tuple[int, int]]:
    """Return the sizes of the products and of their epilogues in each task of a section."""
    assert isinstance(launch, Section)
    sizes = []
    for task in launch.tasks:
        for each in task:
            assert isinstance(each, KernelLaunch) and each.epilogue is not None
            assert each.epilogue.nest.extents == each.numbers[1:3]
            sizes.append(each.epilogue.nest.extents)
    return sizes


def test_bands_become_one_launch_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "LEAST_SECTION_NS", 0.0)
    plan = pipeline.stages(graph_of(layers, (64, 64), (64, 64), (64, 64))).plan
    assert parts_of(plan.launches[0]) == [(16, 64)] * 2 * 4
    assert check_races(plan) == 4
    for rows in (33, 50, 100):
        graph = graph_of(layers, (rows, 64), (64, 64), (64, 64))
        check_races(pipeline.stages(graph).plan)
        arrays = arrays_of(graph)
        agree(CpuExecutable(pipeline.build(graph))(arrays), graph, arrays)


def test_the_same_bits_on_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = graph_of(layers, (256, 64), *[(64, 64)] * 6)
    program = pipeline.build(graph)
    assert program.rows[0].note == "matmul, tanh" and program.rows[0].parts > 1
    check_same_bits(program, arrays_of(graph), 20, monkeypatch)


def test_the_checker_detects_an_epilogue_over_rows_of_another_band(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "LEAST_SECTION_NS", 0.0)
    plan = pipeline.stages(graph_of(layers, (64, 64), (64, 64), (64, 64))).plan
    section = plan.launches[0]
    assert isinstance(section, Section)
    first = section.tasks[1][0]
    assert isinstance(first, KernelLaunch) and first.epilogue is not None
    nest, product_read = first.epilogue
    early = nest._replace(writes=[nest.writes[0].moved(-64), *nest.writes[1:]])
    section.tasks[1][0] = first._replace(epilogue=epilogues.Epilogue(early, product_read))
    with pytest.raises(AssertionError, match="task 1 touches what task 0 writes of"):
        check_races(plan)


def test_equal_products_are_emitted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "LEAST_SECTION_NS", 0.0)
    plan = pipeline.stages(graph_of(layers, (64, 64), (64, 64), (64, 64), (64, 64))).plan
    section = plan.launches[0]
    assert isinstance(section, Section)
    emissions = Emissions()
    for launch in [each for task in section.tasks for each in task]:
        assert isinstance(launch, KernelLaunch)
        got, want = emissions.emit(launch), emit_product(launch)
        assert got.kernel == want.kernel
        assert got.arguments == want.arguments
    assert len(emissions._emitted) == 2  # the last layer is summed too


def test_the_operations_of_a_launch() -> None:
    (row,) = pipeline.build(graph_of(adjoint, (40, 10), (10, 128), (40, 128))).rows
    assert row.note == "matmul, less_equal, where, sum"
    assert row.kernel.name.startswith("product_less_equal_where_sum_")
    assert "block = scratch_f32(" in row.kernel.text
