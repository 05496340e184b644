# SPDX-License-Identifier: BSD-3-Clause
"""Sums of products, of sums and of slices take one array."""

import numpy as np
import pytest
from effort import sweep
from small_graphs import graph_of, names, normal

from tracejit.autodiff import gradient
from tracejit.aval import Aval
from tracejit.ir import Builder, Graph, Value, evaluate, verify
from tracejit.passes.graph.simplify import simplify
from tracejit.passes.graph.sums import accumulate
from tracejit.pipeline import build
from tracejit.program import Program
from tracejit.runtime.python import PythonExecutable


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


@pytest.mark.slow
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


@pytest.mark.slow
def test_many_lengths_share_the_kernels_of_two() -> None:
    def kernels(steps: int) -> set[str]:
        return {kernel.name for kernel in build(recurrent(steps)).kernels}

    of_two = kernels(30) | kernels(90)
    assert set().union(*map(kernels, sweep((3, 4, 5, 8, 17), (*range(3, 40), 100)))) <= of_two
    assert len(of_two) == 7


def joined(steps: int, squared: bool) -> Graph:
    """Return steps that multiply all but the first element by other elements, and their gradients."""

    def loss(b: Builder, x: Value, y: Value) -> list[Value]:
        def part(value: Value, start: int, stop: int) -> Value:
            return b.slice(value, starts=(start,), stops=(stop,), steps=(1,))

        h = x
        for _ in range(steps):
            h = b.concatenate(part(h, 0, 1), b.mul(part(h, 1, 1000), part(y, 0, 999)), axis=0)
        total = b.sum(b.square(h) if squared else h, axes=(0,), keepdims=False)
        return [total, *(v for v in gradient(b, [total], [b.constant(np.ones(()))], [x, y]) if v is not None)]

    return graph_of(loss, normal(1000), normal(1000))


@pytest.mark.slow
def test_the_gradient_of_joined_slices_takes_as_many_kernels_for_any_number_of_steps() -> None:
    programs = {steps: build(joined(steps, squared=True)) for steps in (10, 20, 50, 100, 200)}
    assert {steps: len(program.kernels) for steps, program in programs.items()} == dict.fromkeys(programs, 8)
    launches = {steps: len(program.rows) for steps, program in programs.items()}
    assert [launches[steps] - launches[steps // 2] for steps in (20, 100, 200)] == [40, 200, 400]
    memory = {steps: program.arena_bytes for steps, program in programs.items()}
    assert memory[200] - memory[100] <= 2.1 * (memory[100] - memory[50])
    names = [{kernel.name for kernel in programs[steps].kernels} for steps in (50, 100, 200)]
    assert names[0] == names[1] == names[2]


@pytest.mark.slow
def test_a_linear_loss_adds_its_terms_at_once_in_pieces() -> None:
    """The adjoint does not wait for the values, so that all terms of a sum are added by the same few launches."""
    kernels = [len(build(joined(steps, squared=False)).kernels) for steps in (10, 20, 50, 100, 200, 400, 800)]
    assert kernels == [8, 8, 8, 9, 10, 11, 10]
