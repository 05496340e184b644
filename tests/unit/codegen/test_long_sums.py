# SPDX-License-Identifier: BSD-3-Clause
"""Sums over several loops: totals of float64 take the sums of innermost loops, for all sizes of these loops."""

from collections.abc import Callable

import numpy as np
import pytest
from small_graphs import graph_of

from tracejit.codegen import long_sums
from tracejit.ir import Builder, Value, evaluate
from tracejit.pipeline import build
from tracejit.program import Program
from tracejit.runtime.python import PythonExecutable

SHAPES = [
    (600, 3), (257, 2), (1, 3), (600, 1), (1, 1), (600, 1, 3), (1, 600, 3), (600, 3, 1), (30, 20, 3), (3, 300, 2),
    (300, 2, 3), (3, 2, 50, 2), (2, 1, 40, 3), (40, 9, 3), (40, 10, 20), (0, 3), (5, 0, 3), (5, 3, 0),
]  # fmt: skip


@pytest.fixture(params=[7, 4096])
def _rows_at_a_time(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_sums, "_ROWS", request.param)
    monkeypatch.setattr(long_sums, "_DENSE", 2 * request.param)
    monkeypatch.setattr(long_sums, "_LONG", request.param)


def all_together(b: Builder, x: Value) -> list[Value]:
    """Return the sum, that of squares of differences from it, and whether any element along an axis is not 0."""
    axes = tuple(range(x.ndim))
    total = b.sum(x, axes=axes, keepdims=False)
    squares = b.sum(b.square(b.sub(x, total)), axes=axes, keepdims=False)
    return [total, squares, b.any(x, axes=(max(0, x.ndim - 2),), keepdims=False)]


def of_rows(b: Builder, x: Value) -> list[Value]:
    """Return two sums of the elements of each outermost row, and whether any element along an axis is not 0."""
    axes = tuple(range(1, x.ndim))
    found = [b.sum(part, axes=axes, keepdims=False) for part in (x, b.square(x))]
    return [*found, b.any(x, axes=(x.ndim - 2,), keepdims=False)]


def check(make: Callable[..., list[Value]], x: np.ndarray) -> Program:
    graph = graph_of(make, x)
    program = build(graph)
    for have, want in zip(PythonExecutable(program)([x]), evaluate(graph, [x]), strict=True):
        assert have.dtype == want.dtype
        np.testing.assert_array_equal(have, want)
    return program


def has_totals(program: Program) -> bool:
    return any("_total = fold_sum_f64(" in kernel.text for kernel in program.kernels)


@pytest.mark.usefixtures("_rows_at_a_time")
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("make", [all_together, of_rows])
@pytest.mark.parametrize("shape", SHAPES)
def test_loops_add_all_elements(shape: tuple[int, ...], make: Callable[..., list[Value]], dtype: str) -> None:
    x = np.random.default_rng(0).integers(-1, 2, shape).astype(dtype)
    check(make, x)
    wider = np.zeros((*shape[:-1], shape[-1] + 2), dtype)
    wider[..., : shape[-1]] = x

    def of_view(b: Builder, y: Value) -> list[Value]:
        starts, stops = (0,) * y.ndim, (*y.shape[:-1], y.shape[-1] - 2)
        return make(b, b.slice(y, starts=starts, stops=stops, steps=(1,) * y.ndim))

    check(of_view, wider)


@pytest.mark.usefixtures("_rows_at_a_time")
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("shape", [(600,), (6, 7), (8,), (7,), (1,), (0,)])
def test_a_loop_adds_all_elements(shape: tuple[int, ...], dtype: str) -> None:
    def of_everything(b: Builder, x: Value) -> list[Value]:
        axes = tuple(range(x.ndim))
        total = b.sum(x, axes=axes, keepdims=False)
        squares = b.square(b.sub(x, total))
        found = [total, squares, b.sum(squares, axes=axes, keepdims=False)]
        return [*found, b.max(b.square(x), axes=axes, keepdims=False)] if x.aval.size else found

    x = np.random.default_rng(0).integers(-1, 2, shape).astype(dtype)
    assert has_totals(check(of_everything, x)) == (dtype == "float32" and x.size != 1)

    def of_every_other(b: Builder, y: Value) -> list[Value]:
        starts, steps = (*(0,) * (y.ndim - 1), 1), (*(1,) * (y.ndim - 1), 2)
        return of_everything(b, b.slice(y, starts=starts, stops=y.aval.shape, steps=steps))

    check(of_every_other, np.repeat(x, 2, axis=-1))


def test_totals_are_where_many_elements_are() -> None:
    x = np.random.default_rng(0).integers(-1, 2, (600, 3))
    assert has_totals(check(all_together, x.astype(np.float32)))
    assert has_totals(check(all_together, x.astype(np.float64)))
    assert not has_totals(check(all_together, x))

    def of_squares(b: Builder, x: Value) -> list[Value]:
        return [b.sum(b.square(x), axes=(x.ndim - 1,), keepdims=False)]

    for shape in ((2, 70_000), (3,)):  # of long rows; of everything, so that one kernel serves all sizes
        assert has_totals(check(of_squares, np.ones(shape, np.float32)))
        assert not has_totals(check(of_squares, np.ones(shape)))
    assert not has_totals(check(of_squares, np.ones((200, 600), np.float32)))


@pytest.mark.parametrize(("size", "expected"), [(50, False), (51, True)])
def test_sums_of_dear_functions_have_totals_where_they_are_long(
    size: int, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_sums, "_LONG_DEAR", 50)

    def of_exp(b: Builder, x: Value) -> list[Value]:
        return [b.sum(b.exp(x), axes=(0,), keepdims=False)]

    assert has_totals(build(graph_of(of_exp, np.zeros(size, np.float32)))) == expected


@pytest.mark.parametrize("sizes", [(0, 3), (1, 1), (1, 300), (300, 1), (2, 0), (300, 4)])
def test_one_text_serves_all_sizes(sizes: tuple[int, int]) -> None:
    def squares(b: Builder, x: Value, c: Value) -> list[Value]:
        return [b.sum(b.square(b.sub(x, c)), axes=(0, 1), keepdims=False)]

    x, c = np.arange(90_000.0).reshape(300, 300) % 7, np.arange(300.0) % 5
    program = build(graph_of(squares, x, c))
    (row,) = program.rows
    assert has_totals(program)
    assert row.arguments[:2] == (300, 300)
    other = program._replace(rows=[row._replace(arguments=(*sizes, *row.arguments[2:]))])
    rows, columns = sizes
    want = ((x[:rows, :columns] - c[:columns]) ** 2).sum()
    assert PythonExecutable(other)([x, c])[0] == want


@pytest.mark.parametrize("shape", [(600,), (600, 3), (1, 600, 3), (30, 20, 3), (3, 200, 3), (40, 5, 3)])
@pytest.mark.parametrize("make", [all_together, of_rows])
def test_a_large_sum_takes_small_numbers(
    shape: tuple[int, ...], make: Callable[..., list[Value]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One number of float32 that added all elements would not change any more after the first."""
    monkeypatch.setattr(long_sums, "_ROWS", 7)
    monkeypatch.setattr(long_sums, "_DENSE", 7)
    monkeypatch.setattr(long_sums, "_LONG", 7)
    x = np.ones(shape if make is all_together else (2, *shape), np.float32)
    x[..., :1].flat[0] = 2**24
    total = PythonExecutable(build(graph_of(make, x)))([x])[0]
    assert float(total.flat[0]) - 2**24 >= np.prod(shape) - 3 * 7


@pytest.mark.parametrize("special", [np.inf, -np.inf, np.nan])
def test_sums_that_are_no_finite_numbers(special: float) -> None:
    x = np.ones((600, 3), np.float32)
    x[[17, 400], 1] = special
    for of_second in (special, -special):
        x[400, 1] = of_second
        total = PythonExecutable(build(graph_of(all_together, x)))([x])[0]
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(total, x.sum())


def test_sums_that_are_too_large_are_infinite() -> None:
    x = np.full((600, 3), 3e38, np.float32)
    assert PythonExecutable(build(graph_of(all_together, x)))([x])[0] == np.inf
