# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of which threads take elements, columns, rows or matrices, in PTX that an emulator runs."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from bits import same_bits
from llvm_texts import NEEDS_LLVM_22
from on_device import CAPABILITY, EmulatedProgram, program_of, ptx_of

import tracejit as tj
from tracejit.aval import Aval
from tracejit.codegen.device import sizes
from tracejit.errors import BoundsError
from tracejit.ir import Builder, Graph, evaluate
from tracejit.ops import OPS
from tracejit.pipeline import build_for_device
from tracejit.program import Program

pytestmark = NEEDS_LLVM_22
WRITES = ("put", "scatter_add", "add_along_axis")
NAMES = ("take", "take_along_axis", *WRITES)
SHAPES = [((9,), 0), ((5, 7), 0), ((5, 7), 1), ((3, 4, 5), 1), ((33, 1), 0), ((1, 40), 1)]


def graph_of(
    name: str, shape: tuple[int, ...], axis: int, dtype: str = "float32", count: int = 11
) -> tuple[Graph, list[np.ndarray]]:
    """Return the graph of an op whose indices repeat, and its arrays."""
    rng = np.random.default_rng(0)
    x = (rng.standard_normal(shape) * 3).astype(dtype)
    taken = (*shape[:axis], count, *shape[axis + 1 :])
    places = rng.integers(-shape[axis], shape[axis], taken if "along" in name else (count,))
    arrays = [x, places]
    if name in WRITES:
        arrays.append((rng.standard_normal(taken) * 3).astype(dtype))
    graph = Graph()
    b = Builder(graph)
    values = [b.input(Aval(array.shape, None, array.dtype)) for array in arrays]
    result: Any = b.apply(OPS[name], values, {"axis": axis})
    graph.outputs = [result]
    return graph, arrays


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("name", NAMES)
def test_results_are_those_of_numpy_to_the_bit(name: str, shape: tuple[int, ...], axis: int) -> None:
    """Sums have one order, and of several numbers that are put in one place the last stays."""
    graph, arrays = graph_of(name, shape, axis)
    program = build_for_device(graph)
    (row,) = [row for row in program.rows if row.kernel.name.startswith(name)]
    assert row.grid is not None and row.grid.threads == 128
    assert ".local" not in ptx_of(row.kernel, CAPABILITY)
    (found,), (want,) = EmulatedProgram(program)(arrays), evaluate(graph, arrays)
    assert same_bits(found, want)


DTYPES = ("float64", "int8", "uint16", "int64", "uint64", "bool", "complex64")


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        (name, dtype) for name in NAMES for dtype in DTYPES if dtype != "bool" or "add" not in name
    ],  # bools have no sums
)
def test_dtypes(name: str, dtype: str) -> None:
    graph, arrays = graph_of(name, (5, 3), 0, dtype)
    if dtype in ("uint16", "uint64"):
        arrays = [np.abs(array.view(dtype.lstrip("u"))).astype(dtype) if array.dtype == dtype else array
                  for array in arrays]  # fmt: skip
    (found,), (want,) = EmulatedProgram(build_for_device(graph))(arrays), evaluate(graph, arrays)
    assert same_bits(found, want)


@pytest.mark.parametrize("place", [-6, 5, 1 << 40])
@pytest.mark.parametrize("name", NAMES)
def test_an_index_out_of_range_is_found(name: str, place: int) -> None:
    graph, arrays = graph_of(name, (5, 3), 0)
    arrays[1].reshape(-1)[4] = place
    with pytest.raises(BoundsError):
        EmulatedProgram(build_for_device(graph))(arrays)


@pytest.mark.parametrize("shape", [(0, 3), (5, 0)])
@pytest.mark.parametrize("name", ["take", "put", "scatter_add"])
def test_an_index_is_checked_where_there_are_no_elements(name: str, shape: tuple[int, ...]) -> None:
    arrays = [np.ones(shape, np.float32), np.array([0, 7])]
    if name in WRITES:
        arrays.append(np.ones((2, shape[1]), np.float32))
    graph = Graph()
    b = Builder(graph)
    result: Any = b.apply(OPS[name], [b.input(Aval(x.shape, None, x.dtype)) for x in arrays], {"axis": 0})
    graph.outputs = [result]
    with pytest.raises(BoundsError):
        EmulatedProgram(build_for_device(graph))(arrays)


@pytest.mark.parametrize("name", NAMES)
def test_indices_of_64_bits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "MOST_ELEMENTS", -1)
    graph, arrays = graph_of(name, (3, 4, 5), 1)
    program = build_for_device(graph)
    assert all("index64(" in row.kernel.text for row in program.rows)
    (found,), (want,) = EmulatedProgram(program)(arrays), evaluate(graph, arrays)
    assert same_bits(found, want)


@pytest.mark.parametrize("dtype", ["int64", "uint64", "int32", "uint32", "uint8"])
def test_shifts_by_more_places_than_there_are(dtype: str) -> None:
    """A GPU's shift reads 32 bits of the number of places."""
    info = np.iinfo(dtype)
    places = [0, 1, 31, 32, 63, 64, 1 << 32, (1 << 33) + 5, (1 << 63) - 1, -1, -(1 << 32), -(1 << 63)]
    y = np.array([n for n in {*places, info.min, info.max} if info.min <= n <= info.max], dtype)
    for value in (5, info.min, info.max):
        run(lambda x, y: (x << y, x >> y), np.full_like(y, value), y)


ROWS = [(5, 7), (3, 33), (4, 1), (1, 40), (70, 3)]


def special(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Return numbers many of which are equal, with NaN, infinity and both zeros among those of floating point."""
    x = np.random.default_rng(1).integers(-3, 4, shape).astype(dtype)
    if x.dtype.kind == "f" and x.size > 8:
        x.reshape(-1)[:8] = [np.nan, 0.0, -0.0, np.inf, -np.inf, np.nan, 2.0, -0.0]
    return x


def run(function: Callable[..., tuple[Any, ...]], *arrays: np.ndarray) -> Program:
    """Run a function's program, and compare its results to the bit."""
    program, _ = program_of(function, arrays)
    want = tj.tree.flatten(tj.dlfeval(function, *map(tj.dlarray, arrays)))[0]
    for have, wanted in zip(EmulatedProgram(program)(arrays), want, strict=True):
        assert same_bits(have, np.asarray(wanted))
    return program


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "bool"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", ROWS)
def test_sorts(shape: tuple[int, ...], axis: int, dtype: str) -> None:
    """Equal elements, such as both zeros, keep their order."""
    x = special(shape, dtype)
    program, _ = program_of(lambda x: (np.sort(x, axis=axis), np.argsort(x, axis=axis, stable=True)), [x])
    ordered, places = EmulatedProgram(program)([x])
    want = np.argsort(x, axis=axis, stable=True)
    assert same_bits(places, want)
    assert same_bits(ordered, np.take_along_axis(x, want, axis))
    assert all(row.grid is not None and row.grid.threads == 128 for row in program.rows)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", ROWS)
def test_scans(shape: tuple[int, ...], axis: int) -> None:
    """A column has one thread, which adds up as NumPy does: in order."""
    x = np.random.default_rng(0).standard_normal(shape)
    program = run(lambda x: (np.cumsum(x, axis=axis), np.cumprod(x, axis=axis)), x)
    assert all(row.grid is not None and row.grid.threads == 128 for row in program.rows)
    run(lambda x: (tj.dlgradient((np.cumsum(x, axis=axis) * x).sum(), x),), np.rint(4 * x))


def test_rows_and_matrices_have_a_thread_each() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((6, 4, 4)) + 4 * np.eye(4), rng.standard_normal((6, 4, 2))
    spd = a @ a.transpose(0, 2, 1)

    def solved(a: Any, b: Any, spd: Any) -> tuple[Any, ...]:
        # What is read begins inside larger arrays.
        return (
            np.linalg.solve(a[1:], b[1:]), np.linalg.solve(a[2:], b[2:, :, 0, None]), np.linalg.det(a[1:4]),
            np.linalg.cholesky(spd[2:]), np.maximum.accumulate(b[1:], axis=1),
            np.searchsorted(np.sort(b[0, :, 0]), b[1:]),
        )  # fmt: skip

    program, want = program_of(solved, [a, b, spd])
    for have, wanted in zip(EmulatedProgram(program)([a, b, spd]), want, strict=True):
        np.testing.assert_allclose(have, np.asarray(wanted), rtol=1e-10, atol=1e-12)
    grids = {row.kernel.name.rpartition("_")[0]: row.grid for row in program.rows}
    for name in ("lu", "lu_solve", "lu_solve_vector", "lu_logdet", "cholesky", "cummax", "searchsorted"):
        assert grids[name] == (1, 128), name


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_each_matrix_of_many_has_a_thread_for_its_vectors(dtype: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((5, 4, 3)).astype(dtype)
    square = (x.transpose(0, 2, 1) @ x).astype(dtype)

    def decomposed(x: Any, square: Any) -> tuple[Any, ...]:
        w, v = np.linalg.eigh(square[1:])
        u, s, vh = np.linalg.svd(x[2:], full_matrices=False)
        return (w, (v * w[:, None, :]) @ np.swapaxes(v, -1, -2), s, (u * s[:, None, :]) @ vh)

    program, want = program_of(decomposed, [x, square])
    tolerance = 1e-4 if dtype == "float32" else 1e-10
    for have, wanted in zip(EmulatedProgram(program)([x, square]), want, strict=True):
        np.testing.assert_allclose(have, np.asarray(wanted), rtol=tolerance, atol=tolerance)
    grids = {row.kernel.name.rpartition("_")[0]: row.grid for row in program.rows}
    assert all(grids[name] == (1, 128) for name in ("eigh", "svd_columns", "svd"))
