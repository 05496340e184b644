# SPDX-License-Identifier: BSD-3-Clause
"""Emitted convolutions by Winograd's method on the Python backend, in any order of axes, and when it is chosen."""

import random
from functools import partial
from typing import Any

import effort
import numpy as np
import pytest
from convolutions import assert_same, at_most, graph_of, square_windows
from tracejit.kernels.winograd import TAPS, filter_of, points_of, seen_of, sums_of

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
    ("BCS", "UCS", "BUS"),
    ("BSC", "SCU", "BSU"),
)


def names(program: Program) -> set[str]:
    return {kernel.name.rpartition("_")[0] for kernel in program.kernels}


@pytest.mark.parametrize("taps", TAPS)
def test_matrices_compute_a_convolution(taps: int) -> None:
    rng = np.random.default_rng(0)
    counts = points_of(taps, False), points_of(taps)
    x, w = rng.standard_normal(counts), rng.standard_normal((taps, taps))
    seen, filters, sums = (
        [np.array(matrix(count)) for count in counts]
        for matrix in (seen_of, partial(filter_of, taps), partial(sums_of, taps))
    )
    products = (seen[0] @ x @ seen[1].T) * (filters[0] @ w @ filters[1].T)
    found = sums[0] @ products @ sums[1].T
    down, across = (count + 1 - taps for count in counts)
    want = sum(x[i : i + down, j : j + across] * w[i, j] for i in range(taps) for j in range(taps))
    np.testing.assert_allclose(found, want, atol=1e-12)
    for matrix in (*seen, *sums):
        np.testing.assert_array_equal(matrix.astype(np.float32), matrix)  # exact


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(effort.sweep(12, 200)))
def test_random_convolutions(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors of any width, one block or many, of one image or of several, and launches in many parts."""
    rnd = random.Random(seed)
    monkeypatch.setattr(winograd, "FEWEST_CHANNELS", 2)
    monkeypatch.setattr(winograd, "FEWEST_OF_LINES", 2)
    monkeypatch.setattr(winograd, "FEWEST_SCATTERED", 4)
    monkeypatch.setattr(winograd, "MOST_TILES", rnd.choice((9, 16, 64)))
    monkeypatch.setattr(winograd, "ENOUGH_TILES", rnd.choice((1, 6, 32)))
    monkeypatch.setattr(windows, "PATCH_BYTES", rnd.choice((1 << 16, windows.PATCH_BYTES)))
    monkeypatch.setattr(convolve.cost, "LEAST_SPLIT_NS", 0.0)
    monkeypatch.setattr(convolve.cost, "PART_NS", rnd.choice((5.0, 1e6)))
    channels, filters = (2, 5, 16, 19), (2, 7, 16, 20, 33)
    labels = LABELS[seed % len(LABELS)]
    unpadded = seed % 4 == 3 and "SS" in labels[0]  # which takes tiles of cotangents
    operands = at_most(
        16_000, lambda: square_windows(rnd, channels, filters, labels, (3, 5, 8, 13), unpadded)
    )
    graph, arrays = graph_of(operands, "float32", seed)
    with target.written_for((16, 32, 64)[seed % 3]):
        program = build(graph)
    assert {"winograd", "winograd_weights", "winograd_filters", "winograd_sums"} <= names(program)
    assert not unpadded or "winograd_scattered" in names(program)
    assert_same(graph, arrays, PythonExecutable(program)(arrays), operands)


def forward(
    batch: int = 2, channels: int = 16, filters: int = 16, extent: int = 9, taps: int = 3, axes: int = 2,
    **others: object,
) -> Program:  # fmt: skip
    """Return the program of a convolution and its gradients, with other params or another dtype."""
    dtype = np.dtype(str(others.pop("dtype", "float32")))
    sizes = {"B": batch, "C": channels, "U": filters}
    labels = ("BC" + "S" * axes, "UC" + "S" * axes, "BU" + "S" * axes)
    b = Builder(Graph())
    x, w, y = (
        b.input(Aval(tuple([sizes.get(label, s) for label in own]), None, dtype))
        for own, s in zip(labels, (extent, taps, extent), strict=True)
    )
    ones = (1,) * axes
    params = {"labels": labels, "strides": ones, "before": ones, "dilation": ones, "groups": 1, **others}
    b.graph.outputs = [
        b.convolution(x, w, size=(extent,) * axes, **params),
        b.convolution_input(y, w, size=(extent,) * axes, **params),
        b.convolution_weights(x, y, size=(taps,) * axes, **params),
    ]
    return build(b.graph)


def test_it_is_chosen_where_it_saves_time() -> None:
    assert {"winograd", "winograd_weights"} <= names(forward())
    others: tuple[dict[str, object], ...] = (
        {"channels": 15, "filters": 15}, {"dtype": "float64"}, {"strides": (1, 2)}, {"dilation": (17, 1)},
    )  # fmt: skip
    for other in others:
        assert not names(forward(**other)) & {"winograd", "winograd_weights"}, other  # type: ignore[arg-type]
    line: dict[str, object] = {"axes": 1, "channels": 24, "filters": 24}
    assert {"winograd", "winograd_weights"} <= names(forward(**line))  # type: ignore[arg-type]
    assert "winograd" not in names(forward(**{**line, "filters": 23}))  # type: ignore[arg-type]
    assert "winograd" in names(forward(dilation=(2, 2)))
    # Of many filters the sums of a gradient would be read and written by each block.
    assert {"winograd", "filters"} <= names(forward(channels=256, filters=256))
    assert "winograd" not in names(forward(channels=512, filters=512))


def test_tiles_of_cotangents_are_fewer() -> None:
    """The gradient by the input of windows of 5 takes those, if they reach over the border by more than half."""
    for before, other in (((0, 0), 0), ((1, 0), 0), ((2, 0), 1), ((2, 2), 1), ((-1, 0), 1), ((4, 4), 1)):
        found = [name.startswith("winograd_scattered") for name in names(forward(taps=5, before=before))]
        assert any(found) != bool(other), before
    assert "winograd_scattered" not in names(forward(before=(0, 0)))
    assert "winograd_scattered" not in names(forward(taps=5, before=(0, 0), channels=33))
    assert "winograd_scattered" not in names(forward(taps=5, before=(0, 0), dilation=(2, 2)))


@pytest.mark.parametrize(
    ("channels", "filters", "others"),
    [
        (16, 16, {}), (16, 20, {}), (40, 64, {}), (40, 64, {"axes": 1}), (32, 24, {"axes": 1, "dilation": (4,)}),
        (16, 50, {"taps": 5, "before": (0, 0)}),
    ],
)  # fmt: skip
def test_new_sizes_need_no_new_kernels(channels: int, filters: int, others: dict[str, Any]) -> None:
    known = {kernel.name for kernel in forward(2, channels, filters, 8, **others).kernels}
    for batch, extent in ((1, 8), (7, 8), (2, 3), (3, 21), (64, 32), (1, 100)):
        assert {
            kernel.name for kernel in forward(batch, channels, filters, extent, **others).kernels
        } <= known


def test_blocks() -> None:
    """Small images share blocks; images of several planes are cut into blocks of some planes."""
    taps, size, whole, room = (1, 3, 3), (1, 7, 7), (1, 8, 8), windows.PATCH_BYTES // 4
    ones = (1, 1, 1)
    assert winograd.block_of(16, 16, taps, ones, size, room) == whole
    assert winograd.images_together(16, 16, taps, size, whole) == winograd.ENOUGH_TILES // 4
    assert winograd.images_together(16, 16, taps, (1, 9, 9), whole) == 1
    assert winograd.block_of(16, 16, taps, ones, size, 36 * 16 - 1) is None
    assert winograd.block_of(16, 16, (3, 3, 3), ones, (10, 7, 7), room) == (10, 8, 8)
    assert winograd.block_of(16, 16, (3, 3, 3), ones, (10, 16, 16), room) == (4, 16, 16)
    assert winograd.images_together(16, 16, (3, 3, 3), (1, 7, 7), whole) == 1
    assert winograd.block_of(16, 16, (1, 5, 5), ones, (1, 8, 8), room) == (1, 8, 8)


def test_blocks_of_taps_apart() -> None:
    """A block has whole units of tiles, four windows by as many elements as taps are apart along each axis."""
    room = windows.PATCH_BYTES // 4
    assert winograd.block_of(16, 16, (1, 3, 3), (1, 2, 3), (1, 7, 13), room) == (1, 8, 24)
    assert winograd.block_of(32, 32, (1, 1, 3), (1, 1, 2), (1, 1, 1000), room) == (1, 1, 256)
    assert winograd.block_of(32, 32, (1, 1, 3), (1, 1, 1), (1, 5, 9), room) == (1, 5, 12)
    assert winograd.block_of(32, 32, (1, 1, 3), (1, 1, 16), (1, 1, 10), 96 * 32 - 1) is None


def test_blocks_of_a_result_to_which_tiles_are_added() -> None:
    room = windows.PATCH_BYTES // 4
    assert winograd.scattered_block_of(50, 20, (1, 5, 5), (1, 12, 12), room) == (1, 12, 12)
    _, high, wide = winograd.scattered_block_of(50, 20, (1, 5, 5), (1, 100, 7), room)
    assert wide == 7 and 40 < high <= 100
    _, high, wide = winograd.scattered_block_of(50, 20, (1, 5, 5), (1, 100, 1000), room)
    assert (high + 12) * (wide + 16) * 32 <= room and min(high, wide) > 20
    assert winograd.scattered_together(50, 20, (1, 5, 5), (1, 8, 8), True) == winograd.ENOUGH_TILES // 8
    assert winograd.scattered_together(50, 20, (1, 5, 5), (1, 8, 8), False) == 1


@pytest.mark.parametrize("channels", [16, 128, 300, 400])
@pytest.mark.parametrize("high", [2, 4, 64])
def test_a_line_of_scattered_tiles_has_room(channels: int, high: int) -> None:
    """Of many channels few tiles have room in scratch memory, and a line of tiles is computed as one."""
    taps, room = (1, 5, 5), windows.PATCH_BYTES // 4
    most = winograd.most_tiles(channels, 32, taps)
    for inside in (5, 20, 64, 96, 1000):
        *_, wide = winograd.scattered_block_of(channels, 32, taps, (1, high + 4, inside + 4), room)
        for start in range(0, inside + 4, wide):
            first = max(0, (start - 4) // 4)
            assert min(-(-inside // 4), -(-(start + wide) // 4)) - first <= most
    assert not winograd.scatters(1415, 32, taps, (0, 4, 4), (1, 1, 1))
