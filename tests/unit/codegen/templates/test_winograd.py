# SPDX-License-Identifier: BSD-3-Clause
"""Emitted convolutions by Winograd's method on the Python backend, in any order of axes, and when it is chosen."""

import random

import effort
import numpy as np
import pytest
from convolutions import assert_same, graph_of, square_windows
from tracejit.kernels.winograd import SEEN, TAPS, filter_of, sums_of

from tracejit.aval import Aval
from tracejit.codegen import target
from tracejit.ir import Builder, Graph
from tracejit.passes.loops import convolve, windows, winograd
from tracejit.pipeline import build
from tracejit.program import Program
from tracejit.runtime.python import PythonExecutable

LABELS = (
    ("BCSS", "UCSS", "BUSS"),
    ("BSSC", "SSCU", "BSSU"),
    ("SSCB", "SSCU", "SSUB"),
    ("BSSC", "UCSS", "BUSS"),
    ("CBSS", "SUSC", "BSSU"),
    ("BCSSS", "UCSSS", "BUSSS"),
    ("BSSSC", "SSSCU", "BSSSU"),
)


def names(program: Program) -> set[str]:
    return {kernel.name.rpartition("_")[0] for kernel in program.kernels}


@pytest.mark.parametrize("taps", TAPS)
def test_matrices_compute_a_convolution(taps: int) -> None:
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((6, 6)), rng.standard_normal((taps, taps))
    seen, filters, sums = map(np.array, (SEEN, filter_of(taps), sums_of(taps)))
    found = sums @ ((seen @ x @ seen.T) * (filters @ w @ filters.T)) @ sums.T
    side = 7 - taps
    want = sum(x[i : i + side, j : j + side] * w[i, j] for i in range(taps) for j in range(taps))
    np.testing.assert_allclose(found, want, atol=1e-13)
    for matrix in (SEEN, sums_of(taps)):
        np.testing.assert_array_equal(np.array(matrix, np.float32), matrix)  # exact


@pytest.mark.parametrize("seed", range(effort.sweep(10, 200)))
def test_random_convolutions(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors of any width, one block or many, of one image or of several, and launches in many parts."""
    rnd = random.Random(seed)
    monkeypatch.setattr(winograd, "FEWEST_CHANNELS", 2)
    monkeypatch.setattr(winograd, "MOST_TILES", rnd.choice((4, 9, 64)))
    monkeypatch.setattr(winograd, "ENOUGH_TILES", rnd.choice((1, 6, 32)))
    monkeypatch.setattr(windows, "PATCH_BYTES", rnd.choice((1 << 16, windows.PATCH_BYTES)))
    monkeypatch.setattr(convolve.cost, "LEAST_SPLIT_NS", 0.0)
    monkeypatch.setattr(convolve.cost, "PART_NS", rnd.choice((5.0, 1e6)))
    channels, filters = (2, 5, 16, 19), (2, 7, 16, 20, 33)
    unpadded = seed % 4 == 3  # which takes tiles of cotangents
    operands = square_windows(rnd, channels, filters, LABELS[seed % len(LABELS)], (3, 5, 8, 18), unpadded)
    graph, arrays = graph_of(operands, "float32", seed)
    with target.written_for((16, 32, 64)[seed % 3]):
        program = build(graph)
    assert {"winograd", "winograd_weights", "winograd_filters", "winograd_sums"} <= names(program)
    assert not unpadded or "winograd_scattered" in names(program)
    assert_same(graph, arrays, PythonExecutable(program)(arrays), operands)


def forward(
    batch: int = 2, channels: int = 16, filters: int = 16, extent: int = 9, **others: object
) -> Program:
    """Return the program of a convolution with 3 by 3 taps and its gradients, with other params or another dtype."""
    dtype = np.dtype(str(others.pop("dtype", "float32")))
    sizes = {"B": batch, "C": channels, "U": filters}
    labels = ("BCSS", "UCSS", "BUSS")
    b = Builder(Graph())
    x, w, y = (
        b.input(Aval(tuple([sizes.get(label, s) for label in own]), None, dtype))
        for own, s in zip(labels, (extent, 3, extent), strict=True)
    )
    params = {
        "labels": labels,
        "strides": (1, 1),
        "before": (1, 1),
        "dilation": (1, 1),
        "groups": 1,
        **others,
    }
    b.graph.outputs = [
        b.convolution(x, w, size=(extent, extent), **params),
        b.convolution_input(y, w, size=(extent, extent), **params),
        b.convolution_weights(x, y, size=(3, 3), **params),
    ]
    return build(b.graph)


def test_it_is_chosen_where_it_saves_time() -> None:
    assert {"winograd", "winograd_weights"} <= names(forward())
    others: tuple[dict[str, object], ...] = (
        {"channels": 15, "filters": 15}, {"dtype": "float64"}, {"strides": (1, 2)}, {"dilation": (2, 1)},
    )  # fmt: skip
    for other in others:
        assert not names(forward(**other)) & {"winograd", "winograd_weights"}, other  # type: ignore[arg-type]
    # Of many filters the sums of a gradient would be read and written by each block.
    assert {"winograd", "filters"} <= names(forward(channels=256, filters=256))
    assert "winograd" not in names(forward(channels=512, filters=512))


@pytest.mark.parametrize(("channels", "filters"), ((16, 16), (16, 20), (40, 64)))
def test_new_sizes_need_no_new_kernels(channels: int, filters: int) -> None:
    known = {kernel.name for kernel in forward(2, channels, filters, 8).kernels}
    for batch, extent in ((1, 8), (7, 8), (2, 3), (3, 21), (64, 32), (1, 100)):
        assert {kernel.name for kernel in forward(batch, channels, filters, extent).kernels} <= known


def test_blocks() -> None:
    """Small images share blocks; images of several planes are cut into blocks of some planes."""
    taps, size, whole, room = (1, 3, 3), (1, 7, 7), (1, 8, 8), windows.PATCH_BYTES // 4
    assert winograd.block_of(16, 16, taps, size, room) == whole
    assert winograd.images_together(16, 16, taps, size, whole) == winograd.ENOUGH_TILES // 4
    assert winograd.images_together(16, 16, taps, (1, 9, 9), whole) == 1
    assert winograd.block_of(16, 16, taps, size, 36 * 16 - 1) is None
    assert winograd.block_of(16, 16, (3, 3, 3), (10, 7, 7), room) == (10, 8, 8)
    assert winograd.block_of(16, 16, (3, 3, 3), (10, 16, 16), room) == (4, 16, 16)
    assert winograd.images_together(16, 16, (3, 3, 3), (1, 7, 7), whole) == 1
    assert winograd.block_of(16, 16, (1, 5, 5), (1, 8, 8), room) == (1, 8, 8)
