# SPDX-License-Identifier: BSD-3-Clause
"""Emitted convolutions on the Python backend, in any order of axes, and what is compiled for new sizes."""

import random

import effort
import numpy as np
import pytest
from convolutions import Operands, assert_same, graph_of, operands_of

from tracejit.aval import Aval
from tracejit.codegen import target
from tracejit.ir import Builder, Graph
from tracejit.passes.loops import convolve, windows
from tracejit.pipeline import build
from tracejit.program import Program
from tracejit.runtime.python import PythonExecutable


@pytest.mark.parametrize("seed", range(effort.sweep(12, 400)))
def test_random_convolutions(seed: int) -> None:
    operands = operands_of(random.Random(seed), (1, 2, 3, 5), (1, 3, 5, 9))
    graph, arrays = graph_of(operands, "float32", seed)
    with target.written_for(16):  # vectors of 4: all kinds of tiles with few filters
        program = build(graph)
    assert_same(graph, arrays, PythonExecutable(program)(arrays), operands)


@pytest.mark.parametrize("seed", range(effort.sweep(3, 40)))
def test_blocks_and_parts(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A patch with room for a few windows, and launches in many parts."""
    monkeypatch.setattr(windows, "PATCH_BYTES", 1 << 10)
    monkeypatch.setattr(convolve.cost, "LEAST_SPLIT_NS", 0.0)
    monkeypatch.setattr(convolve.cost, "PART_NS", 5.0)
    monkeypatch.setattr(convolve, "MOST_SUMS", (1 << 20, 0, 300)[seed % 3])
    operands = operands_of(random.Random(seed), (1, 2, 5), (3, 20))
    graph, arrays = graph_of(operands, "float64", seed)
    program = build(graph)
    assert_same(graph, arrays, PythonExecutable(program)(arrays), operands)


@pytest.mark.parametrize("vector_bytes", (16, 32, 64))
@pytest.mark.parametrize("seed", range(effort.sweep(4, 100)))
def test_laid_out(seed: int, vector_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanes are windows: all tiles of filters, any order of axes, and blocks of some lines or of a part of one."""
    rnd = random.Random(seed)
    operands = operands_of(rnd, (1, 2, 5, 9), (1, 2, 3, 7, 11, 13, 20), strides=(1,))
    dtype = ("float32", "float64")[seed % 2]
    graph, arrays = graph_of(operands, dtype, seed)
    monkeypatch.setattr(windows, "LAID_OUT_WINDOWS", rnd.choice((2, 5, 16, 1024)))
    monkeypatch.setattr(convolve.cost, "LEAST_SPLIT_NS", 0.0)
    monkeypatch.setattr(convolve.cost, "PART_NS", rnd.choice((5.0, 1e6)))
    with target.written_for(vector_bytes):
        program = build(graph)
    assert names(program) & {"laid_out", "channelwise", "planes"}
    assert_same(graph, arrays, PythonExecutable(program)(arrays), operands)


@pytest.mark.parametrize("fill", (0.0, 2.0))
def test_lanes_are_windows_where_that_fills_them(fill: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 20 filters, not of 64, unless the result lies by channels and they fill more than two thirds."""
    monkeypatch.setattr(windows.winograd, "suits", lambda *sizes: False)
    chosen = {
        (labels, filters): "laid_out" in names(forward(labels, 32, filters))
        for labels in (("BCSS", "UCSS", "BUSS"), ("BSSC", "SSCU", "BSSU"))
        for filters in (20, 24, 64)
    }
    assert [*chosen.values()] == [True, True, False, True, False, False]
    monkeypatch.setattr(windows, "FILLED_TURNED", fill)
    assert ("laid_out" in names(forward(("BSSC", "SSCU", "BSSU"), 32, 64))) == (fill > 1)


@pytest.mark.parametrize("seed", range(effort.sweep(4, 100)))
def test_dots_of_windows(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gradient by filters of one channel: cotangents in any order of axes, in place or copied, and many parts."""
    rnd = random.Random(seed)
    operands = operands_of(rnd, (1,), (2, 3, 7, 20), strides=(1,))
    graph, arrays = graph_of(operands, ("float64", "float32")[seed % 2], seed)
    monkeypatch.setattr(windows, "FILLED_TURNED_TAPS", 2.0)
    monkeypatch.setattr(windows, "LAID_OUT_WINDOWS", rnd.choice((3, 1024)))
    monkeypatch.setattr(convolve.cost, "LEAST_SPLIT_NS", 0.0)
    monkeypatch.setattr(convolve.cost, "PART_NS", rnd.choice((5.0, 1e6)))
    with target.written_for((16, 32, 64)[seed % 3]):
        program = build(graph)
    assert names(program) & {"window_dots", "channels", "plane_sums"}
    assert_same(graph, arrays, PythonExecutable(program)(arrays), operands)


def forward(
    labels: tuple[str, str, str], channels: int, filters: int, extent: int = 9, batch: int = 2
) -> Program:
    """Return the program of a convolution of 3 by 3 taps."""
    sizes = {"B": batch, "C": channels, "U": filters}
    x, w = ([sizes.get(label, s) for label in own] for own, s in zip(labels[:2], (extent, 3), strict=True))
    b = Builder(Graph())
    inputs = [b.input(Aval(tuple(shape), None, np.dtype(np.float32))) for shape in (x, w)]
    params = {"labels": labels, "strides": (1, 1), "before": (1, 1), "dilation": (1, 1), "groups": 1}
    b.graph.outputs = [b.convolution(*inputs, size=(extent, extent), **params)]
    return build(b.graph)


def test_what_no_patch_has_room_for_is_computed_by_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "PATCH_BYTES", 8)
    params = {"labels": ("BCS", "UCS", "BUS"), "strides": (1,), "before": (0,), "dilation": (1,), "groups": 1}
    operands = Operands(((1, 3, 5), (2, 3, 2), (1, 2, 4)), ((5,), (2,), (4,)), params)
    graph, arrays = graph_of(operands, "float64", 0)
    program = build(graph)
    assert names(program) == {"convolution", "convolution_input", "convolution_weights"}
    assert_same(graph, arrays, PythonExecutable(program)(arrays), operands)


def names(program: Program) -> set[str]:
    return {kernel.name.rpartition("_")[0] for kernel in program.kernels}


def of_size(batch: int, extent: int, filters: int = 64, channels: int = 16) -> Program:
    labels = ("BCSS", "UCSS", "BUSS")
    params = {"labels": labels, "strides": (1, 1), "before": (1, 1), "dilation": (1, 1), "groups": 1}
    shapes = ((batch, channels, extent, extent), (filters, channels, 3, 3), (batch, filters, extent, extent))
    graph, _ = graph_of(Operands(shapes, ((extent, extent), (3, 3), (extent, extent)), params), "float32", 0)
    return build(graph)


@pytest.mark.parametrize(("channels", "filters"), ((1, 20), (16, 20), (16, 40), (16, 64)))
def test_new_sizes_need_no_new_kernels(channels: int, filters: int) -> None:
    first = of_size(2, 8, filters, channels)
    assert ("window_dots" in names(first)) == (channels == 1)
    known = {kernel.name for kernel in first.kernels}
    for batch, extent in ((1, 8), (7, 8), (2, 9), (3, 21), (64, 32), (1, 100)):
        assert {kernel.name for kernel in of_size(batch, extent, filters, channels).kernels} <= known


def test_parts_depend_on_sizes_only(monkeypatch: pytest.MonkeyPatch) -> None:
    program = of_size(16, 32)
    assert any(row.parts > 1 for row in program.rows)
    monkeypatch.setenv("TRACEJIT_THREADS", "1")
    assert of_size(16, 32).rows == program.rows


def test_no_window_and_no_image_is_copied() -> None:
    """The memory of a program is that of transformed filters, not of the windows of a batch or of a padded image."""
    labels = ("BSSC", "SSCU", "BSSU")
    params = {"labels": labels, "strides": (1, 1), "before": (1, 1), "dilation": (1, 1), "groups": 1}
    b = Builder(Graph())
    x, w = (b.input(Aval(s, None, np.dtype(np.float32))) for s in ((8, 32, 32, 16), (3, 3, 16, 32)))
    b.graph.outputs = [b.convolution(x, w, size=(32, 32), **params)]
    assert build(b.graph).arena_bytes == 36 * 16 * 32 * 4


def test_a_transposed_convolution_runs_in_phases() -> None:
    labels = ("BCS", "UCS", "BUS")
    b = Builder(Graph())
    y, w = (b.input(Aval(s, None, np.dtype(np.float32))) for s in ((2, 4, 8), (4, 3, 4)))
    params = {"labels": labels, "strides": (2,), "before": (1,), "dilation": (1,), "groups": 1}
    b.graph.outputs = [b.convolution_input(y, w, size=(16,), **params)]
    program = build(b.graph)
    assert [row.kernel.name.rpartition("_")[0] for row in program.rows].count("laid_out") == 2
    assert all(phase.taps for phase in convolve._phases(16, 4, 2, 1, 1))
    assert [len(phase.taps) for phase in convolve._phases(5, 1, 2, 0, 1)] == [1, 0]
    assert [len(phase.taps) for phase in convolve._phases(9, 3, 2, 0, 2)] == [3, 0]
