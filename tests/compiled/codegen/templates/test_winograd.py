# SPDX-License-Identifier: BSD-3-Clause
"""Compiled convolutions by Winograd's method: values, gradients, and their error beside that of sums in order."""

import random
from typing import Any

import effort
import numpy as np
import pytest
from convolutions import Operands, assert_same, graph_of, square_windows, windows_by_two

import tracejit as tj
from tracejit import config
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


def image_with_outliers() -> tuple[np.ndarray, np.ndarray]:
    """Return an image with a huge number, a NaN and an infinity, and filters."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, 32, 20, 20)).astype(np.float32)
    x[0, 2, 5, 5], x[0, 3, 0, 0], x[0, 4, 15, 15] = 1e8, np.nan, np.inf
    return x, (rng.standard_normal((32, 32, 3, 3)) / 10).astype(np.float32)


@pytest.mark.parametrize("how", ["option", "setting", "set later"])
def test_the_highest_precision_keeps_outliers_to_their_windows(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, weights = image_with_outliers()

    def convolved(x: Any, weights: Any) -> Any:
        return tj.dlconv(x, weights, data_format="BCSS", padding="same", weights_format="UCSS")

    if how == "setting":
        monkeypatch.setattr(config.settings, "precision", "highest")
    accelerated = tj.dlaccelerate(
        convolved, confirm=0, **({"precision": "highest"} if how == "option" else {})
    )
    if how == "set later":
        accelerated(x, weights)
        assert np.isnan(np.asarray(accelerated(x, weights))).sum() > np.isnan(convolved(x, weights)).sum()
        accelerated.precision = "highest"
    found = [np.asarray(accelerated(x, weights)) for _ in range(2)][1]
    assert accelerated.stats.hits and "def winograd" not in accelerated.source()
    np.testing.assert_allclose(found, convolved(x, weights), rtol=1e-4, atol=1e-4)


def test_the_highest_precision_holds_for_gradients_inside_an_evaluation() -> None:
    x, weights = image_with_outliers()
    x = np.nan_to_num(x, posinf=1.0)
    ct = np.ones((1, 32, 20, 20), np.float32)
    ct[0, 0, 9, 9] = 1e8

    def gradients(convolved: Any, x: Any, weights: Any) -> Any:
        return tj.dlgradient((convolved(x, weights) * ct).sum(), x, weights)

    def convolved(x: Any, weights: Any) -> Any:
        return tj.dlconv(x, weights, data_format="BCSS", padding="same", weights_format="UCSS")

    accelerated = tj.dlaccelerate(convolved, confirm=0, precision="highest")
    for _ in range(2):
        found = tj.dlfeval(gradients, accelerated, tj.dlarray(x), tj.dlarray(weights))
    for have, want in zip(found, tj.dlfeval(gradients, convolved, x, weights), strict=True):
        far = np.abs(np.asarray(want)) < 1e3  # elements that the huge cotangent does not reach
        np.testing.assert_allclose(np.asarray(have)[far], np.asarray(want)[far], rtol=1e-3, atol=1e-3)
    assert accelerated.stats.programs == 2
