# SPDX-License-Identifier: BSD-3-Clause
"""The passes keep the results of a graph, and the emitted program computes them."""

import random
from collections.abc import Callable

import numpy as np
import pytest
from effort import sweep
from graphs import Maker, assert_same, max_of, random_case, strided
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from races import touches

from tracejit.autodiff import gradient
from tracejit.aval import Aval
from tracejit.ir import Builder, Graph, Value, evaluate, verify
from tracejit.ops.op import Layout
from tracejit.passes.fusion.chop import chop
from tracejit.passes.fusion.fuse import Fused, Loop, fuse
from tracejit.passes.fusion.regroup import regroup
from tracejit.passes.graph.simplify import simplify
from tracejit.passes.graph.split import split
from tracejit.passes.graph.sums import accumulate
from tracejit.passes.loops import pieces
from tracejit.passes.loops.launches import Section
from tracejit.passes.loops.select import select
from tracejit.passes.schedule.epilogues import join_epilogues
from tracejit.passes.schedule.memory import ArenaAllocator, Plan, place
from tracejit.passes.schedule.sections import schedule
from tracejit.pipeline import build
from tracejit.program import ALIGNMENT, Program
from tracejit.runtime.python import PythonExecutable

ALL = ("float64", "float32", "int64", "int32", "uint8", "int8")
F64 = np.dtype(np.float64)

fuzz = settings(
    max_examples=sweep(10, 60),
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow, HealthCheck.data_too_large],
)
seeds = st.integers(0, 10**9)


def case(seed: int, steps: int, dtypes: tuple[str, ...] = ALL) -> tuple[Maker, random.Random]:
    rnd = random.Random(seed)
    maker = random_case(rnd, steps, dtypes)
    assume(maker is not None)
    assert maker is not None
    return maker, rnd


@fuzz
@given(seeds)
def test_simplify_keeps_results(seed: int) -> None:
    maker, _ = case(seed, 15)
    simplified = simplify(maker.graph)
    verify(maker.graph)
    verify(simplified)
    assert len(simplified.nodes) <= len(maker.graph.nodes)
    assert_same(maker, evaluate(simplified, maker.arrays), evaluate(maker.graph, maker.arrays))


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


@fuzz
@given(seeds, st.booleans())
def test_a_split_graph_gives_the_same_values_and_cotangents(seed: int, save: bool) -> None:
    rnd = random.Random(seed)
    maker = random_case(rnd, 15, ("float64",), stops=True)
    assume(maker is not None)
    assert maker is not None
    check_split(maker, save)


def check_split(maker: Maker, save: bool) -> None:
    graph, arrays = maker.graph, maker.arrays
    parts = split(graph, save)
    verify(parts.forward)
    verify(parts.adjoint)
    outputs = list(graph.outputs)
    forward_values = evaluate(parts.forward, arrays)
    assert_same(maker, forward_values[: len(outputs)], evaluate(graph, arrays))
    assert set(range(len(outputs), len(forward_values))) <= set(parts.saved)
    assert save or not parts.saved
    floats = [v for v in outputs if v.dtype.kind == "f"]
    assert parts.by_output == [v in floats for v in outputs]
    cts = [np.linspace(0.5, 1.5, v.aval.size).reshape(v.shape) for v in floats]
    results = evaluate(parts.adjoint, [*arrays, *(forward_values[i] for i in parts.saved), *cts])
    # The same by the adjoint of the whole graph; an output that occurs twice has two cotangents.
    b = Builder(graph)
    expected = gradient(b, floats, [b.constant(ct) for ct in cts], graph.inputs)
    values = [value for value in expected if value is not None]
    assert [at is None for at in parts.by_input] == [value is None for value in expected]
    graph.outputs = values
    eps = 1e-5 if any(v.dtype == np.float32 for node in graph.nodes for v in node.outputs) else 1e-11
    scale = eps * max_of(graph, arrays)
    for have, want in zip(results, evaluate(graph, arrays), strict=True):
        np.testing.assert_allclose(have, want, rtol=0, atol=scale, err_msg=str(graph))


def test_a_split_keeps_stop_gradient() -> None:
    graph = graph_of(lambda b, x: b.mul(x, b.stop_gradient(b.exp(x))), np.ones(3))
    parts = split(graph)
    (result,) = evaluate(parts.adjoint, [np.ones(3), *evaluate(parts.forward, [np.ones(3)])[1:], np.ones(3)])
    np.testing.assert_allclose(result, np.e)
    # The parts keep it, because they may be differentiated again; programs do not.
    names = [node.op.name for part in (parts.forward, parts.adjoint) for node in simplify(part).nodes]
    assert "stop_gradient" not in names


def test_simplifying_twice_changes_nothing() -> None:
    maker = random_case(random.Random(3), 25)
    assert maker is not None
    once = simplify(maker.graph)
    assert str(simplify(once)) == str(once)


def run(make: Callable[..., Value | list[Value]], *arrays: np.ndarray) -> tuple[Program, list[np.ndarray]]:
    """Build the graph that `make(b, *inputs)` returns, check its results and return them with the program."""
    graph = graph_of(make, *arrays)
    program = build(graph)
    results = PythonExecutable(program)(arrays)
    for have, want in zip(results, evaluate(graph, arrays), strict=True):
        assert have.dtype == want.dtype
        np.testing.assert_allclose(have, want, rtol=1e-13, atol=1e-13)
    return program, results


def graph_of(make: Callable[..., Value | list[Value]], *arrays: np.ndarray) -> Graph:
    graph = Graph()
    b = Builder(graph)
    result = make(b, *[b.input(Aval(a.shape, None, a.dtype)) for a in arrays])
    graph.outputs = result if isinstance(result, list) else [result]
    return graph


def grouped(graph: Graph) -> tuple[Graph, Fused]:
    simplified = simplify(graph)
    fused = fuse(simplified)
    regroup(simplified, fused)
    return simplified, fused


def plan_of(graph: Graph) -> Plan:
    simplified, fused = grouped(graph)
    selection = select(simplified, fused)
    launches = schedule(selection.launches, selection.external)
    return place(join_epilogues(launches, selection.external), simplified, selection)


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape)


def softmax(b: Builder, x: Value, axis: int) -> Value:
    e = b.exp(b.sub(x, b.max(x, axes=(axis,), keepdims=True)))
    return b.div(e, b.sum(e, axes=(axis,), keepdims=True))


def test_a_softmax_of_rows_is_one_loop() -> None:
    program, _ = run(lambda b, x: softmax(b, x, 1), normal(4, 5))
    assert len(program.rows) == 1


def test_values_of_a_row_share_the_memory_of_one_row() -> None:
    program, _ = run(lambda b, x: softmax(b, x, 1), normal(40, 8))
    assert program.arena_bytes == 8 * 8


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


def test_dead_code_and_equal_code_are_removed() -> None:
    def wasteful(b: Builder, x: Value) -> Value:
        b.exp(x)
        return b.mul(b.add(b.tanh(x), 1.0), b.add(b.tanh(x), 1.0))

    names = [node.op.name for node in simplify(graph_of(wasteful, normal(3))).nodes]
    assert names == ["tanh", "add", "square"]


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (lambda b, x: b.mul(x, 1.0), []),
        (lambda b, x: b.add(b.mul(x, x), b.square(x)), ["square", "add"]),
        (lambda b, x: b.sub(x, 0.0), []),
        (lambda b, x: b.add(x, 0.0), ["add"]),  # -0.0 + 0 is 0
        (lambda b, x: b.sub(x, -0.0), ["sub"]),
        (lambda b, x: b.mul(x, 0.0), ["mul"]),  # NaN, infinities and -0.0 stay
        (lambda b, x: b.sub(x, x), ["sub"]),
        (lambda b, x: b.div(x, 1.0), []),
        (lambda b, x: b.neg(b.neg(x)), []),
        (lambda b, x: b.pow(x, 2.0), ["square"]),
        (lambda b, x: b.pow(x, 3.0), ["square", "mul"]),
        (lambda b, x: b.pow(x, 0.5), ["pow"]),  # sqrt(-inf) is NaN, (-inf) ** 0.5 is inf
        (lambda b, x: b.transpose(b.transpose(x, axes=(1, 0)), axes=(1, 0)), []),
        (lambda b, x: b.reshape(b.reshape(x, shape=(6,)), shape=(2, 3)), []),
        (lambda b, x: b.cast(x, dtype=F64), []),
        (lambda b, x: b.cast(b.cast(x, dtype=np.dtype(np.float32)), dtype=F64), ["cast", "cast"]),
        (lambda b, x: b.stop_gradient(x), []),
        (lambda b, x: b.max(b.reshape(x, shape=(2, 1, 3)), axes=(1,), keepdims=False), []),
        (lambda b, x: b.where(True, x, 0.0), []),
        (lambda b, x: b.add(x, b.exp(b.constant(np.zeros(3)))), ["add"]),
    ],
)
def test_rewrites(make: Callable[..., Value], names: list[str]) -> None:
    graph = graph_of(make, normal(2, 3))
    simplified = simplify(graph)
    assert [node.op.name for node in simplified.nodes] == names
    special = np.array([[0.0, -0.0, np.inf], [-np.inf, np.nan, 1.5]])
    for have, want in zip(evaluate(simplified, [special]), evaluate(graph, [special]), strict=True):
        np.testing.assert_array_equal(have, want)
        np.testing.assert_array_equal(np.signbit(have), np.signbit(want))


def test_paddings_by_zeros_of_different_signs_stay_apart() -> None:
    def both(b: Builder, x: Value) -> list[Value]:
        return [b.pad(x, widths=((1, 0),), value=0.0), b.pad(x, widths=((1, 0),), value=-0.0)]

    _, (plus, minus) = run(both, normal(2))
    assert not np.signbit(plus[0])
    assert np.signbit(minus[0])


def test_large_constants_are_kept_once_and_not_broadcast() -> None:
    table = np.arange(100.0)

    def twice(b: Builder, x: Value) -> Value:
        return b.add(b.mul(x, b.constant(table)), b.constant(table))

    program, _ = run(twice, normal(100))
    assert len(program.constants) == 1
    wide = simplify(
        graph_of(lambda b, x: b.add(x, b.broadcast_to(b.constant(np.zeros(())), shape=(100,))), table)
    )
    assert [constant.shape for constant in wide.constants] == [()]


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
    for seed in range(sweep(6, 20)):
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


def test_living_values_do_not_share_memory() -> None:
    # Every byte of the arena belongs to at most one value from its first to its last launch.
    for seed in range(sweep(8, 30)):
        maker = random_case(random.Random(seed), 30, ("float64", "float32"))
        assert maker is not None
        planned = plan_of(maker.graph)
        life: dict[Value, list[int]] = {}
        for number, launch in enumerate(planned.launches):
            for root in launch.touched:
                if planned.places[root].kind == "arena":
                    life.setdefault(root, [number, number])[1] = number
        owners = np.full((len(planned.launches), planned.arena_bytes), -1)
        for number, (root, (first, last)) in enumerate(life.items()):
            offset = planned.places[root].offset
            assert offset % ALIGNMENT == 0
            block = owners[first : last + 1, offset : offset + root.aval.size * root.dtype.itemsize]
            assert block.shape[1] == root.aval.size * root.dtype.itemsize
            assert (block == -1).all()
            block[...] = number


def test_a_loop_never_reads_what_it_writes() -> None:
    # Written memory is declared disjoint from all other memory of a kernel (Note [aliasing] in kernels/).
    for seed in range(sweep(8, 40)):
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


def test_memory_of_dead_values_is_used_again() -> None:
    def chain(b: Builder, x: Value) -> Value:
        for _ in range(20):
            x = b.matmul(x, x)
        return x

    program = build(graph_of(chain, normal(8, 8)))
    assert program.arena_bytes == 2 * 8 * 8 * 8


def names(graph: Graph) -> list[str]:
    return [node.op.name for node in graph.nodes]


def products(b: Builder, count: int, rows: int = 3, columns: int = 4) -> list[Value]:
    """Return products of new inputs."""
    float64 = np.dtype(np.float64)
    return [
        b.matmul(b.input(Aval((rows, k), None, float64)), b.input(Aval((k, columns), None, float64)))
        for k in range(2, 2 + count)
    ]


def check_accumulated(graph: Graph, expected: list[str]) -> Program:
    arrays = [normal(*v.shape) for v in graph.inputs]
    before = evaluate(graph, arrays)
    program = build(graph)
    changed = simplify(graph)
    accumulate(changed)
    verify(changed)
    assert sorted(names(changed)) == sorted(expected)
    for outputs in (evaluate(changed, arrays), PythonExecutable(program)(arrays)):
        for have, want in zip(outputs, before, strict=True):
            np.testing.assert_allclose(have, want, rtol=1e-13, atol=1e-13)
    return program


def test_a_sum_of_products_is_a_chain_in_the_memory_of_the_result() -> None:
    graph = Graph()
    b = Builder(graph)
    first, second, third, fourth = products(b, 4)
    graph.outputs = [b.add(b.add(first, second), b.add(third, fourth))]
    program = check_accumulated(graph, ["matmul", "matmul_add", "matmul_add", "matmul_add"])
    assert program.arena_bytes == 0
    assert len({row.kernel for row in program.rows}) == 1
    places = {row.arguments[-1] for row in program.rows}
    assert {place.place.kind for place in places} == {"output"}
    assert len(places) == 1


def test_other_terms_are_added_to_a_chain_of_products() -> None:
    graph = Graph()
    b = Builder(graph)
    first, second = products(b, 2)
    x, y = (b.input(Aval((3, 4), None, np.dtype(np.float64))) for _ in range(2))
    graph.outputs = [b.add(b.add(x, first), b.add(y, second))]
    check_accumulated(graph, ["matmul", "matmul_add", "add", "add"])


def test_products_and_sums_that_are_read_elsewhere_stay() -> None:
    graph = Graph()
    b = Builder(graph)
    first, second, third = products(b, 3)
    graph.outputs = [b.add(first, second), first]
    check_accumulated(graph, ["matmul", "matmul", "add"])
    graph.outputs = [b.add(first, b.add(second, third)), b.exp(third)]
    check_accumulated(graph, ["matmul", "matmul", "matmul_add", "add", "exp"])
    both = b.add(first, second)
    graph.outputs = [b.add(both, third), both]
    check_accumulated(graph, ["matmul", "matmul", "matmul_add", "add"])
    graph.outputs = [b.add(first, first)]
    check_accumulated(graph, ["matmul", "add"])
    row = b.matmul(*[b.input(Aval(shape, None, np.dtype(np.float64))) for shape in ((1, 2), (2, 4))])
    graph.outputs = [b.add(first, row)]
    check_accumulated(graph, ["matmul", "matmul", "add"])


def test_a_sum_that_is_read_elsewhere_is_not_overwritten() -> None:
    graph = Graph()
    b = Builder(graph)
    x, y, z = (b.input(Aval(shape, None, np.dtype(np.float64))) for shape in ((3, 2), (2, 4), (3, 4)))
    product = b.matmul(x, y)
    graph.outputs = [
        b.matmul_add(x, y, product),
        product,
        b.matmul_add(x, y, z),
        b.matmul_add(x, y, b.exp(z)),
    ]
    check_accumulated(graph, ["matmul", "matmul_add", "matmul_add", "exp", "matmul_add"])


def parts_of(b: Builder, x: Value, *bounds: tuple[int, int]) -> list[Value]:
    """Return the adjoints of slices of rows: the slices amid zeros."""
    zeros = b.broadcast_to(b.constant(np.zeros((), x.dtype)), shape=x.shape)
    slices = []
    for start, stop in bounds:
        place = {"starts": (start, 0), "stops": (stop, x.shape[1]), "steps": (1, 1)}
        slices.append(b.setslice(zeros, b.exp(b.slice(x, **place)), **place))
    return slices


def total(b: Builder, values: list[Value]) -> Value:
    result = values[0]
    for value in values[1:]:
        result = b.add(result, value)
    return result


def test_disjoint_slices_amid_zeros_become_one_array() -> None:
    graph = graph_of(lambda b, x: total(b, parts_of(b, x, (4, 6), (0, 2), (2, 4))), normal(6, 3))
    program = check_accumulated(graph, ["slice", "exp"] * 3 + ["assemble"])
    assert [row.note.partition(",")[0] for row in program.rows] == ["exp"]  # it writes the slices; no zeros
    gaps = graph_of(lambda b, x: total(b, [x, *parts_of(b, x, (4, 6), (0, 2))]), normal(6, 3))
    check_accumulated(gaps, ["slice", "exp"] * 2 + ["assemble", "add"])


def test_slices_that_overlap_make_several_arrays_of_disjoint_ones() -> None:
    pairs = [(i, i + 2) for i in range(9)]
    graph = graph_of(lambda b, x: total(b, parts_of(b, x, *pairs)), normal(10, 3))
    check_accumulated(graph, ["slice", "exp"] * 9 + ["assemble", "assemble", "add"])
    graph = graph_of(lambda b, x: total(b, parts_of(b, x, (0, 5), (4, 6))), normal(10, 3))
    kept = ["broadcast_to", "slice", "exp", "setslice", "slice", "exp", "setslice", "add"]
    check_accumulated(graph, kept)


def test_a_slice_amid_zeros_may_be_added_twice() -> None:
    def make(b: Builder, x: Value) -> Value:
        first, second = parts_of(b, x, (0, 2), (2, 4))
        return total(b, [first, second, first])

    check_accumulated(graph_of(make, normal(6, 3)), ["slice", "exp", "slice", "exp", "add", "assemble"])


def test_slices_at_the_same_places_are_added_before_they_are_assembled() -> None:
    def make(b: Builder, x: Value) -> Value:
        first, second = parts_of(b, x, (0, 2)) + parts_of(b, b.neg(x), (0, 2))
        return b.add(first, second)

    check_accumulated(
        graph_of(make, normal(6, 3)), ["neg", "slice", "exp", "slice", "exp", "add", "assemble"]
    )


def test_sums_may_share_slices_amid_zeros() -> None:
    def make(b: Builder, x: Value) -> list[Value]:
        first, second, third = parts_of(b, x, (0, 2), (2, 4), (4, 6))
        shared = b.add(first, second)
        return [b.add(shared, third), b.add(shared, x)]

    graph = graph_of(make, normal(6, 3))
    check_accumulated(graph, ["slice", "exp"] * 3 + ["assemble", "assemble", "add"])


def test_slices_amid_zeros_may_broadcast() -> None:
    def make(b: Builder, x: Value) -> Value:
        zeros = b.broadcast_to(b.constant(np.zeros(())), shape=(4, 6))
        rows = [{"starts": (r, 0), "stops": (r + 2, 6), "steps": (1, 1)} for r in (0, 2)]
        return b.add(*[b.setslice(zeros, x, **place) for place in rows])

    check_accumulated(graph_of(make, normal(6)), ["broadcast_to", "broadcast_to", "assemble"])


def test_the_gradient_of_many_slices_takes_linear_time_and_memory() -> None:
    def work(count: int) -> tuple[int, int]:
        def loss(b: Builder, x: Value) -> list[Value]:
            h = b.slice(x, starts=(0, 0), stops=(1, 3), steps=(1, 1))
            for row in range(1, count):
                place = {"starts": (row, 0), "stops": (row + 1, 3), "steps": (1, 1)}
                h = b.tanh(b.add(h, b.slice(x, **place)))
            return [v for v in gradient(b, [h], [b.constant(np.ones((1, 3)))], [x]) if v is not None]

        program = build(graph_of(loss, normal(count, 3)))
        written = sum(
            np.prod([n for n in row.arguments[:2] if isinstance(n, int)])
            for row in program.rows
            if row.note in ("copy", "fill")
        )
        return program.arena_bytes, written

    (small, few), (large, many) = work(100), work(200)
    assert large <= 2.1 * small
    assert many == 2 * few


def test_integer_products_are_added_afterwards() -> None:
    graph = Graph()
    b = Builder(graph)
    x, y = (b.input(Aval((2, 2), None, np.dtype(np.int32))) for _ in range(2))
    graph.outputs = [b.add(b.matmul(x, y), b.matmul(y, x))]
    accumulate(graph)
    assert names(graph) == ["matmul", "matmul", "add"]


def test_gradients_of_unrolled_steps_take_the_memory_of_one() -> None:
    def arena(steps: int) -> int:
        def loss(b: Builder, w: Value, h: Value) -> list[Value]:
            first = w
            for _ in range(steps):
                h = b.tanh(b.matmul(h, w))
            gradients = gradient(b, [h], [b.constant(np.ones((2, 8)))], [first])
            return [v for v in gradients if v is not None]

        return build(graph_of(loss, normal(8, 8), normal(2, 8))).arena_bytes

    state = 2 * 8 * 8
    assert (
        arena(20) - arena(10) == 10 * state
    )  # the states, which the adjoint reads; no gradient of each step


def sums(b: Builder, count: int, axes: tuple[int, ...], shape: tuple[int, ...] = (3, 4)) -> list[Value]:
    """Return sums over axes of functions of new inputs."""
    inputs = [b.input(Aval(shape, None, np.dtype(np.float64))) for _ in range(count)]
    return [b.sum(b.tanh(x), axes=axes, keepdims=False) for x in inputs]


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1), ()])
def test_a_sum_of_sums_is_a_chain(axes: tuple[int, ...]) -> None:
    graph = Graph()
    b = Builder(graph)
    first, second, third = sums(b, 3, axes)
    graph.outputs = [b.add(first, b.add(second, third)), b.exp(third)]
    check_accumulated(graph, names_of(axes))


def names_of(axes: tuple[int, ...]) -> list[str]:
    if not axes:  # sums over no axes are simplified away
        return ["tanh", "tanh", "tanh", "add", "add", "exp"]
    return ["tanh", "sum", "tanh", "tanh", "sum", "sum_add", "add", "exp"]


def test_sums_and_products_have_a_chain_each() -> None:
    graph = Graph()
    b = Builder(graph)
    rows = sums(b, 3, (0,), (5, 3, 4))
    factors = products(b, 2)
    z = b.input(Aval((3, 4), None, np.dtype(np.float64)))
    graph.outputs = [b.add(b.add(b.add(rows[0], factors[0]), b.add(rows[1], z)), b.add(factors[1], rows[2]))]
    check_accumulated(
        graph, ["tanh", "sum", "tanh", "tanh", "matmul", "matmul_add", "sum_add", "sum_add", "add", "add"]
    )


def recurrent(steps: int) -> Graph:
    """Return the loss and the gradients of a recurrent network with biases, whose every step has a loss."""

    def loss(b: Builder, w: Value, bias: Value, h: Value, *inputs: Value) -> list[Value]:
        total = b.constant(np.zeros(()))
        for x in inputs:
            h = b.tanh(b.add(b.add(b.matmul(h, w), x), bias))
            total = b.add(total, b.sum(b.square(h), axes=(0, 1), keepdims=False))
        gradients = gradient(b, [total], [b.constant(np.ones(()))], [w, bias])
        return [total, *(v for v in gradients if v is not None)]

    return graph_of(loss, normal(8, 8), normal(8), normal(2, 8), *(normal(2, 8) for _ in range(steps)))


def test_many_lengths_share_the_kernels_of_two() -> None:
    def kernels(steps: int) -> set[str]:
        return {kernel.name for kernel in build(recurrent(steps)).kernels}

    of_two = kernels(30) | kernels(90)
    assert set().union(*map(kernels, sweep((3, 4, 5, 8, 17), (*range(3, 40), 100)))) <= of_two
    assert len(of_two) == 7


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


@fuzz
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 500)), max_size=60))
def test_arena_hands_out_disjoint_ranges(requests: list[tuple[bool, int]]) -> None:
    arena = ArenaAllocator()
    live: list[tuple[int, int]] = []
    for give, number in requests:
        if give and live:
            arena.give(*live.pop(number % len(live)))
            continue
        offset = arena.take(number)
        assert offset % ALIGNMENT == 0
        assert offset + number <= arena.size_bytes
        assert all(offset + max(number, 1) <= o or o + max(n, 1) <= offset for o, n in live)
        live.append((offset, number))
    peak = arena.size_bytes
    for piece in live:
        arena.give(*piece)
    if peak:
        assert arena.take(peak) == 0  # all free ranges have been joined
        assert arena.size_bytes == peak


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
