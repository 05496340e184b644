# SPDX-License-Identifier: BSD-3-Clause
"""Compiled convolutions by Winograd's method: values, gradients, and their error beside that of sums in order."""

import random

import effort
import numpy as np
import pytest
from convolutions import Operands, assert_same, graph_of, square_windows

from tracejit.ir import evaluate
from tracejit.passes.loops import winograd
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
    graph, arrays = graph_of(operands, "float32", 0)
    if rectified:
        arrays = [np.maximum(array, 0) if i != 1 else array for i, array in enumerate(arrays)]
    exact = evaluate(graph_of(operands, "float64", 0)[0], [array.astype(np.float64) for array in arrays])

    def errors() -> list[float]:
        found = CpuExecutable(build(graph))(arrays)
        return [float(np.sqrt(np.mean((a - b) ** 2))) for a, b in zip(found, exact, strict=True)]

    ours = errors()
    monkeypatch.setattr(winograd, "suits", lambda *sizes: False)
    direct = errors()
    assert all(0.5 < a / b < 5 for a, b in zip(ours, direct, strict=True)), (ours, direct)
