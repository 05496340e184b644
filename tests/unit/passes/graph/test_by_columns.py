# SPDX-License-Identifier: BSD-3-Clause
"""What is computed of arrays by columns alone is computed and returned by columns."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tracejit.aval import Aval
from tracejit.ir import Builder, Graph, Value, evaluate, verify
from tracejit.ops.op import Layout
from tracejit.passes.graph.by_columns import by_columns
from tracejit.pipeline import build, stages
from tracejit.runtime.python import PythonExecutable

Make = Callable[[Any, Value, Value, Value], Value]


def graph_of(make: Make, shape: tuple[int, ...] = (4, 3), dtype: str = "float64") -> Graph:
    """Return the graph of two arrays of a shape, and a row of them."""
    graph = Graph()
    b = Builder(graph)
    kind = np.dtype(dtype)
    x, y = [b.input(Aval(shape, None, kind)) for _ in range(2)]
    graph.outputs = [make(b, x, y, b.input(Aval(shape[-1:], None, kind)))]
    return graph


def operands(graph: Graph, order: str = "F") -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    drawn = [rng.integers(1, 9, value.shape).astype(value.dtype) for value in graph.inputs]
    return [np.asarray(array, order=order) for array in drawn]  # type: ignore[call-overload]


def layouts(arrays: list[np.ndarray]) -> list[Layout | None]:
    return [
        None if array.flags.c_contiguous
        else Layout(0, array.shape, tuple(stride // array.itemsize for stride in array.strides))
        for array in arrays
    ]  # fmt: skip


def cut(b: Any, x: Value) -> Value:
    value: Value = b.slice(x, starts=(3, 0), stops=(0, 3), steps=(-1, 2))
    return value


TURNED: dict[str, Make] = {
    "elementwise": lambda b, x, y, p: b.add(b.mul(x, y), 2.0),
    "a row": lambda b, x, y, p: b.add(x, p),
    "a column": lambda b, x, y, p: b.mul(x, b.sum(y, axes=(1,), keepdims=True)),
    "repeated": lambda b, x, y, p: b.add(b.broadcast_to(p, shape=(4, 3)), x),
    "a constant": lambda b, x, y, p: b.add(x, b.constant(np.arange(12.0).reshape(4, 3))),
    "a slice": lambda b, x, y, p: b.neg(cut(b, x)),
    "set": lambda b, x, y, p: b.setslice(x, b.slice(p, starts=(0,), stops=(2,), steps=(1,)), starts=(1, 0),
                                         stops=(3, 3), steps=(1, 2)),
    "joined": lambda b, x, y, p: b.concatenate(x, y, axis=1),
    "joined below": lambda b, x, y, p: b.concatenate(x, y, axis=0),
    "padded": lambda b, x, y, p: b.pad(x, widths=((1, 0), (2, 3)), value=7.0),
    "assembled": lambda b, x, y, p: b.assemble(x, y, shape=(5, 7), places=(((0, 0), (4, 3), (1, 1)),
                                                                          ((1, 3), (5, 6), (1, 1)))),
    "another axis": lambda b, x, y, p: b.add(b.reshape(x, shape=(4, 1, 3)), y),
    "sums so far": lambda b, x, y, p: b.cumsum(x, axis=1, reverse=False),
    "a sum": lambda b, x, y, p: b.sum(x, axes=(0, 1), keepdims=False),
    "sums": lambda b, x, y, p: b.max(x, axes=(0,), keepdims=False),
    "taken": lambda b, x, y, p: b.take(x, b.constant(np.array([2, 0, 2])), axis=1),
}  # fmt: skip


@pytest.mark.parametrize("name", TURNED)
def test_results_are_equal_and_lie_by_columns(name: str) -> None:
    graph = graph_of(TURNED[name])
    arrays = operands(graph)
    laid = layouts(arrays)
    turned, numbers = by_columns(graph, laid)
    verify(turned)
    assert turned is not graph
    program = build(graph, laid)
    (result,) = PythonExecutable(program)(arrays)
    (want,) = evaluate(graph, arrays)
    np.testing.assert_array_equal(result, want)
    assert result.dtype == want.dtype
    assert numbers == ((0,) if want.ndim > 1 else ())
    assert result.flags.f_contiguous


KEPT: dict[str, Make] = {
    "turned": lambda b, x, y, p: b.exp(b.transpose(x, axes=(1, 0))),
    "turned and copied": lambda b, x, y, p: b.transpose(x, axes=(1, 0)),
    "turned later": lambda b, x, y, p: b.transpose(b.exp(x), axes=(1, 0)),
    "a product": lambda b, x, y, p: b.matmul(x, b.transpose(y, axes=(1, 0))),
    "other axes": lambda b, x, y, p: b.neg(b.reshape(x, shape=(2, 6))),
    "stacked": lambda b, x, y, p: b.concatenate(
        b.reshape(x, shape=(1, 4, 3)), b.reshape(y, shape=(1, 4, 3)), axis=0
    ),
    "in order": lambda b, x, y, p: b.sort(x, axis=1),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_cannot_be_done_to_reversed_axes_is_left(name: str) -> None:
    graph = graph_of(KEPT[name])
    assert by_columns(graph, layouts(operands(graph))) == (graph, ())


def test_arrays_by_rows_among_them_are_left() -> None:
    graph = graph_of(TURNED["elementwise"])
    (x, y, p), (z, *_) = operands(graph), operands(graph, "C")
    for arrays in ([x, z, p], [z, y, p], [z, z, p], [np.broadcast_to(p, (4, 3)), y, p]):
        assert by_columns(graph, layouts(arrays)) == (graph, ())


def test_arrays_by_rows_that_are_turned_lie_by_columns() -> None:
    graph = graph_of(lambda b, x, y, p: b.exp(b.transpose(x, axes=(1, 0))))
    arrays = operands(graph, "C")
    program = build(graph)
    assert program.by_columns == (0,)
    (result,) = PythonExecutable(program)(arrays)
    np.testing.assert_array_equal(result, evaluate(graph, arrays)[0])
    assert result.flags.f_contiguous


def test_nodes_that_nothing_needs_do_not_matter() -> None:
    def make(b: Any, x: Value, y: Value, p: Value) -> Value:
        b.matmul(x, b.transpose(y, axes=(1, 0)))
        return TURNED["elementwise"](b, x, y, p)

    graph = graph_of(make)
    assert by_columns(graph, layouts(operands(graph)))[1] == (0,)


@pytest.mark.parametrize("shape", [(4, 1), (1, 3), (0, 3), (2, 3, 4), (2, 1, 4)])
def test_axes_of_few_elements(shape: tuple[int, ...]) -> None:
    graph = graph_of(TURNED["a row"], shape)
    arrays = operands(graph)
    laid = layouts(arrays)
    program = build(graph, laid)
    np.testing.assert_array_equal(PythonExecutable(program)(arrays)[0], evaluate(graph, arrays)[0])


def test_complex_numbers() -> None:
    graph = graph_of(lambda b, x, y, p: b.add(b.mul(x, y), p), dtype="complex128")
    arrays = [array * (1 + 2j) for array in operands(graph)]
    program = build(graph, layouts(arrays))
    assert program.by_columns == (0,)
    (result,) = PythonExecutable(program)(arrays)
    np.testing.assert_array_equal(result, evaluate(graph, arrays)[0])


def test_a_loop_runs_along_memory() -> None:
    graph = graph_of(TURNED["elementwise"], (40, 30))
    arrays = operands(graph)
    (launch,) = stages(graph, layouts(arrays)).plan.launches
    assert all(access.strides[-1] == 1 for access in (*launch.nest.reads, *launch.nest.writes))  # type: ignore[union-attr]
