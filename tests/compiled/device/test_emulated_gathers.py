# SPDX-License-Identifier: BSD-3-Clause
"""Reads and writes at computed indices on a device: a thread for each element, in PTX that an emulator runs."""

from typing import Any

import numpy as np
import pytest
from bits import same_bits
from llvm_texts import NEEDS_LLVM_22
from on_device import CAPABILITY, EmulatedProgram

from tracejit.aval import Aval
from tracejit.codegen.device import sizes
from tracejit.compile.device_target import ptx_of
from tracejit.errors import BoundsError
from tracejit.ir import Builder, Graph, evaluate
from tracejit.ops import OPS
from tracejit.pipeline import build_for_device

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


@pytest.mark.parametrize("dtype", ["float64", "int8", "uint16", "int64", "uint64", "bool", "complex64"])
@pytest.mark.parametrize("name", NAMES)
def test_dtypes(name: str, dtype: str) -> None:
    if dtype == "bool" and "add" in name:
        pytest.skip("bool cannot hold sums")
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
