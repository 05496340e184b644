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
}
FIRST = LABELS["channels first"]


@pytest.mark.parametrize("order", LABELS)
def test_random_convolutions(order: str) -> None:
    rnd = random.Random(order)
    for seed in range(effort.sweep(4, 60, sample=2)):
        operands = square_windows(rnd, (16, 19, 64), (16, 20, 64), LABELS[order], unpadded=seed % 2 == 1)
        graph, arrays = graph_of(operands, "float32", seed)
        assert_same(graph, arrays, CpuExecutable(build(graph))(arrays), operands)


@pytest.mark.parametrize("taps", [3, 5])
@pytest.mark.parametrize("rectified", [False, True])
def test_the_error_is_below_five_times_that_of_sums_in_order(
    rectified: bool, taps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (taps // 2,) * 2
    params = {"labels": FIRST, "strides": (1, 1), "before": before, "dilation": (1, 1), "groups": 1}
    shapes = ((4, 64, 20, 20), (64, 64, taps, taps), (4, 64, 20, 20))
    operands = Operands(shapes, ((20, 20), (taps, taps), (20, 20)), params)
    graph, arrays = graph_of(operands, "float32", 0)
    if rectified:
        arrays = [np.maximum(array, 0) if array.shape == shapes[0] else array for array in arrays]
    exact = evaluate(graph_of(operands, "float64", 0)[0], [array.astype(np.float64) for array in arrays])

    def errors() -> list[float]:
        found = CpuExecutable(build(graph))(arrays)
        return [float(np.sqrt(np.mean((a - b) ** 2))) for a, b in zip(found, exact, strict=True)]

    ours = errors()
    monkeypatch.setattr(winograd, "suits", lambda *sizes: False)
    direct = errors()
    assert all(0.5 < a / b < 5 for a, b in zip(ours, direct, strict=True)), (ours, direct)
