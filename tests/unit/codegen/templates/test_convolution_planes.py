# SPDX-License-Identifier: BSD-3-Clause
"""Emitted channelwise convolutions of channels first on the Python backend, plane by plane, and what is compiled."""

import random

import effort
import pytest
from convolutions import Operands, assert_same, channelwise_of, graph_of

from tracejit.codegen import target
from tracejit.passes.loops import convolve
from tracejit.pipeline import build
from tracejit.program import Program
from tracejit.runtime.python import PythonExecutable


def names(program: Program) -> set[str]:
    return {kernel.name.rpartition("_")[0] for kernel in program.kernels}


@pytest.mark.parametrize("seed", range(effort.sweep(10, 200)))
def test_random_convolutions(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rnd = random.Random(seed)
    monkeypatch.setattr(convolve.cost, "LEAST_SPLIT_NS", 0.0)
    monkeypatch.setattr(convolve.cost, "PART_NS", rnd.choice((5.0, 1e6)))
    operands = channelwise_of(rnd)
    graph, arrays = graph_of(operands, ("float32", "float64")[seed % 2], seed)
    with target.written_for((16, 32, 64)[seed % 3]):
        program = build(graph)
    assert {"planes", "plane_sums"} <= names(program)
    assert_same(graph, arrays, PythonExecutable(program)(arrays), operands)


def of_size(
    batch: int, channels: int, extent: int, taps: int = 3, stride: int = 1, order: str = "first"
) -> Program:
    windows = (extent - 1) // stride + 1
    labels = ("BCSS", "UCSS", "BUSS") if order == "first" else ("BSSC", "SSCU", "BSSU")
    shapes = (
        ((batch, channels, extent, extent), (channels, 1, taps, taps), (batch, channels, windows, windows))
        if order == "first"
        else (
            (batch, extent, extent, channels),
            (taps, taps, 1, channels),
            (batch, windows, windows, channels),
        )
    )
    params = {
        "labels": labels, "strides": (stride, stride), "before": (taps // 2,) * 2, "dilation": (1, 1),
        "groups": channels,
    }  # fmt: skip
    sizes = ((extent, extent), (taps, taps), (windows, windows))
    return build(graph_of(Operands(shapes, sizes, params), "float32", 0)[0])


def test_they_are_chosen_where_lines_are_neighbours() -> None:
    assert {"planes", "plane_sums"} <= names(of_size(2, 4, 9))
    for other in (of_size(2, 4, 9, order="last"), of_size(2, 4, 9, stride=2), of_size(2, 4, 9, taps=7)):
        assert "plane_sums" not in names(other)


@pytest.mark.slow
def test_new_sizes_need_no_new_kernels() -> None:
    known = {kernel.name for kernel in of_size(2, 4, 9).kernels}
    for sizes in ((1, 4, 9), (9, 5, 9), (2, 33, 40), (64, 64, 32)):
        assert {kernel.name for kernel in of_size(*sizes).kernels} <= known
