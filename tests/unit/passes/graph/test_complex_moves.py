# SPDX-License-Identifier: BSD-3-Clause
"""Complex numbers that are only moved are moved whole."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tracejit.aval import Aval
from tracejit.ir import Builder, Graph, Value, evaluate, verify
from tracejit.ops.op import Layout
from tracejit.passes.graph.complex_moves import complex_moves
from tracejit.pipeline import build
from tracejit.runtime.python import PythonExecutable

Make = Callable[[Any, Value, Value], Value]
INT64 = np.dtype(np.int64)


def graph_of(make: Make, dtype: str, shape: tuple[int, ...] = (4, 3)) -> Graph:
    graph = Graph()
    b = Builder(graph)
    graph.outputs = [make(b, *[b.input(Aval(shape, None, np.dtype(dtype))) for _ in range(2)])]
    return graph


def operands(shape: tuple[int, ...], dtype: str, step: int = 1) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    wide = (*shape[:-1], abs(step) * shape[-1])
    return [(rng.normal(size=wide) - 1j * rng.normal(size=wide)).astype(dtype)[..., ::step] for _ in range(2)]


def layouts(arrays: list[np.ndarray]) -> list[Layout | None]:
    return [
        None if array.flags.c_contiguous
        else Layout(0, array.shape, tuple(stride // array.itemsize for stride in array.strides))
        for array in arrays
    ]  # fmt: skip


MOVES: dict[str, Make] = {
    "nothing": lambda b, x, y: x,
    "reshape": lambda b, x, y: b.reshape(x, shape=(6, 2)),
    "transpose": lambda b, x, y: b.transpose(x, axes=(1, 0)),
    "broadcast": lambda b, x, y: b.broadcast_to(x, shape=(2, 4, 3)),
    "slice": lambda b, x, y: b.slice(x, starts=(3, 0), stops=(-1, 3), steps=(-1, 2)),
    "set": lambda b, x, y: b.setslice(x, b.slice(y, starts=(1, 0), stops=(2, 3), steps=(1, 1)), starts=(0, 0),
                                      stops=(4, 3), steps=(2, 1)),
    "joined": lambda b, x, y: b.concatenate(x, y, axis=1),
    "assembled": lambda b, x, y: b.assemble(x, y, shape=(5, 7), places=(((0, 0), (4, 3), (1, 1)),
                                                                        ((1, 3), (5, 6), (1, 1)))),
    "padded": lambda b, x, y: b.pad(x, widths=((1, 0), (2, 1)), value=0.0),
    "padded with equal parts": lambda b, x, y: b.pad(x, widths=((1, 0), (2, 1)), value=2 + 2j),
    "taken": lambda b, x, y: b.take(x, b.constant(np.array([2, 0, 2, -1])), axis=1),
    "chosen": lambda b, x, y: b.where(b.constant(np.arange(12).reshape(4, 3) % 2 == 0), x, y),
    "chosen once": lambda b, x, y: b.where(b.constant(np.True_), x, y),
    "beside a number": lambda b, x, y: b.where(b.constant(np.arange(3) > 1), x, b.constant(np.asarray(3j, x.dtype))),
    "cast to the same": lambda b, x, y: b.cast(b.transpose(x, axes=(1, 0)), dtype=x.dtype),
}  # fmt: skip


@pytest.mark.parametrize("name", MOVES)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("step", [1, 2, -1])
def test_moves_are_those_of_numpy(name: str, dtype: str, step: int) -> None:
    graph = graph_of(MOVES[name], dtype)
    arrays = operands((4, 3), dtype, step)
    moved, _ = complex_moves(graph, layouts(arrays))
    verify(moved)
    assert moved is not graph
    assert all(value.dtype.kind != "c" for node in moved.nodes for value in node.outputs)
    program = build(graph, layouts(arrays))
    assert [aval.dtype for aval in (*program.inputs, *program.outputs)] == [np.dtype(dtype)] * 3
    (result,) = PythonExecutable(program)(arrays)
    np.testing.assert_array_equal(result, evaluate(graph, arrays)[0])


def test_integers_of_64_bits_move_as_one() -> None:
    graph = graph_of(MOVES["slice"], "complex64")
    program = build(graph)
    assert {
        pointer.dtype for row in program.rows for pointer in row.arguments if hasattr(pointer, "dtype")
    } == {INT64}


COMPUTED: dict[str, Make] = {
    "a sum": lambda b, x, y: b.add(x, b.transpose(b.transpose(y, axes=(1, 0)), axes=(1, 0))),
    "parts": lambda b, x, y: b.real(x),
    "another dtype": lambda b, x, y: b.cast(x, dtype=np.dtype(np.complex64)),
    "unequal parts": lambda b, x, y: b.pad(x, widths=((1, 0), (2, 1)), value=2.0),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_what_is_computed_has_parts(name: str) -> None:
    graph = graph_of(COMPUTED[name], "complex128")
    assert complex_moves(graph, [None, None]) == (graph, [None, None])
    arrays = operands((4, 3), "complex128")
    (result,) = PythonExecutable(build(graph))(arrays)
    np.testing.assert_array_equal(result, evaluate(graph, arrays)[0])


def test_a_part_that_is_seen_beside_one_that_is_computed_is_stored_by_its_loop() -> None:
    turned = graph_of(lambda b, x, y: b.conj(b.transpose(x, axes=(1, 0))), "complex128")
    assert build(turned).launches == 1
    graph = graph_of(lambda b, x, y: b.conj(x), "complex128")
    program = build(graph)
    assert program.launches == 1
    x = np.array([[complex(a, b) for a in (0.0, -0.0, np.nan, np.inf)] for b in (0.0, -0.0, -np.inf)]).T
    (result,) = PythonExecutable(program)([np.ascontiguousarray(x), x])
    for part in ("real", "imag"):
        found, want = getattr(result, part), getattr(np.conj(x), part)
        np.testing.assert_array_equal(found, want)
        np.testing.assert_array_equal(np.signbit(found)[~np.isnan(want)], np.signbit(want)[~np.isnan(want)])
