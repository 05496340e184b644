# SPDX-License-Identifier: BSD-3-Clause
"""Compiled convolutions by Winograd's method: values, gradients, and their error beside that of sums in order."""

import random

import effort
import numpy as np
import pytest
from convolutions import Operands, assert_same, graph_of, square_windows, windows_by_two

from tracejit.ir import evaluate
from tracejit.passes.loops import winograd, winograd_phases
from tracejit.pipeline import build
from tracejit.runtime.cpu import CpuExecutable

LABELS = {
    "channels first": ("BCSS", "UCSS", "BUSS"),
    "channels last": ("BSSC", "SSCU", "BSSU"),
    "images last": ("SSCB", "SSCU", "SSUB"),
    "planes": ("BSSSC", "SSSCU", "BSSSU"),
    "lines, channels first": ("BCS", "UCS", "BUS"),
    "lines, channels last": ("BSC", "SCU", "BSU"),
}


@pytest.mark.parametrize("order", LABELS)
def test_random_convolutions(order: str) -> None:
    rnd = random.Random(order)
    for seed in range(effort.sweep(4, 60, sample=2)):
        operands = square_windows(rnd, (16, 29, 64), (16, 30, 64), LABELS[order], unpadded=seed % 2 == 1)
        graph, arrays = graph_of(operands, "float32", seed)
        assert_same(graph, arrays, CpuExecutable(build(graph))(arrays), operands)


@pytest.mark.parametrize("order", [order for order, labels in LABELS.items() if labels[0].count("S") == 2])
def test_random_convolutions_that_move_by_two(order: str) -> None:
    rnd = random.Random(order)
    for seed in range(effort.sweep(4, 60, sample=2)):
        operands = windows_by_two(rnd, (16, 29, 64), (16, 30, 64), LABELS[order], 3 + seed % 2)
        graph, arrays = graph_of(operands, "float32", seed)
        assert_same(graph, arrays, CpuExecutable(build(graph))(arrays), operands)


@pytest.mark.parametrize("before", [0, 1], ids=["unpadded", "padded"])
@pytest.mark.parametrize("axes", [1, 2])
@pytest.mark.parametrize("taps", [3, 5])
@pytest.mark.parametrize("rectified", [False, True])
def test_the_error_is_below_five_times_that_of_sums_in_order(
    rectified: bool, taps: int, axes: int, before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Filters of windows of 5 without padding are so few that tiles of cotangents are taken."""
    ones, extent = (1,) * axes, (20, 400)[axes == 1]
    labels = ("BC" + "S" * axes, "UC" + "S" * axes, "BU" + "S" * axes)
    params = {
        "labels": labels,
        "strides": ones,
        "before": (before * (taps // 2),) * axes,
        "dilation": ones,
        "groups": 1,
    }
    channels, windows = (64, extent) if before else (32, extent + 1 - taps)
    sizes = (extent,) * axes, (taps,) * axes, (windows,) * axes
    shapes = (4, channels, *sizes[0]), (64, channels, *sizes[1]), (4, 64, *sizes[2])
    operands = Operands(shapes, sizes, params)
    assert_small_errors(operands, rectified, monkeypatch)


@pytest.mark.parametrize("taps", [2, 3, 4])
@pytest.mark.parametrize("rectified", [False, True])
def test_the_error_of_windows_of_two_and_of_phases(
    rectified: bool, taps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows of 2 move by one; of those that move by two each phase has 2 taps, or one."""
    stride, windows = (1, 21) if taps == 2 else (2, 10)
    params = {
        "labels": ("BCSS", "UCSS", "BUSS"),
        "strides": (stride,) * 2,
        "before": (1, 1),
        "dilation": (1, 1),
    }
    shapes = (4, 64, 20, 20), (128, 64, taps, taps), (4, 128, windows, windows)
    operands = Operands(shapes, ((20, 20), (taps, taps), (windows, windows)), {**params, "groups": 1})
    assert_small_errors(operands, rectified, monkeypatch)


def assert_small_errors(operands: Operands, rectified: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare the errors of a convolution and its gradients with those of direct kernels."""
    graph, arrays = graph_of(operands, "float32", 0)
    if rectified:
        arrays = [np.maximum(array, 0) if i != 1 else array for i, array in enumerate(arrays)]
    exact = evaluate(graph_of(operands, "float64", 0)[0], [array.astype(np.float64) for array in arrays])

    def errors() -> list[float]:
        found = CpuExecutable(build(graph))(arrays)
        return [float(np.sqrt(np.mean((a - b) ** 2))) for a, b in zip(found, exact, strict=True)]

    ours = errors()
    for module in (winograd, winograd_phases):
        monkeypatch.setattr(module, "suits", lambda *sizes: False)
    direct = errors()
    assert all(0.5 < a / b < 5 for a, b in zip(ours, direct, strict=True)), (ours, direct)
