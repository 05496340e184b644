# SPDX-License-Identifier: BSD-3-Clause
"""Convolutions that move by two by Winograd's method, and their gradients, on the Python backend."""

import random

import effort
import pytest
from convolutions import assert_same, at_most, graph_of, windows_by_two

from tracejit.codegen import target
from tracejit.passes.loops import convolve, winograd, winograd_phases
from tracejit.pipeline import build
from tracejit.program import Program
from tracejit.runtime.python import PythonExecutable

LABELS = (
    ("BCSS", "UCSS", "BUSS"),
    ("BSSC", "SSCU", "BSSU"),
    ("SSCB", "SSCU", "SSUB"),
    ("BSSC", "UCSS", "BUSS"),
    ("CBSS", "SUSC", "BSSU"),
)
BY_POINTS = {"winograd", "winograd_made", "winograd_weights", "winograd_filters", "winograd_sums"}


def names(program: Program) -> set[str]:
    return {kernel.name.rpartition("_")[0] for kernel in program.kernels}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(effort.sweep(10, 200)))
def test_random_convolutions(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors of any width, results that begin with either phase, one block or many, of one image or of several."""
    rnd = random.Random(seed)
    every = dict.fromkeys(winograd_phases._WORTH, (1, 1 << 14))
    monkeypatch.setattr(winograd_phases, "_WORTH", every)
    monkeypatch.setattr(winograd_phases, "FEWEST_CHANNELS", 2)
    monkeypatch.setattr(winograd, "MOST_TILES", rnd.choice((9, 64)))
    monkeypatch.setattr(winograd_phases, "ENOUGH_TILES", rnd.choice((1, 6, 32)))
    monkeypatch.setattr(winograd_phases, "PATCH_BYTES", rnd.choice((1 << 15, winograd_phases.PATCH_BYTES)))
    monkeypatch.setattr(convolve.cost, "LEAST_SPLIT_NS", 0.0)
    monkeypatch.setattr(convolve.cost, "PART_NS", rnd.choice((5.0, 1e6)))
    channels, filters, labels = (2, 5, 16, 19), (2, 7, 16, 20, 33), LABELS[seed % len(LABELS)]
    operands = at_most(12_000, lambda: windows_by_two(rnd, channels, filters, labels))
    graph, arrays = graph_of(operands, "float32", seed)
    with target.written_for((16, 32, 64)[seed % 3]):
        program = build(graph)
    assert names(program) >= BY_POINTS
    assert_same(graph, arrays, PythonExecutable(program)(arrays), operands)


def chosen(
    channels: int, filters: int, taps: int, last: bool = False, dtype: str = "float32", batch: int = 2,
    extent: int = 8,
) -> set[str]:  # fmt: skip
    """Return the kernels of a convolution and its gradients, with channels first or last."""
    rnd = random.Random(0)
    operands = windows_by_two(rnd, (channels,), (filters,), LABELS[last], taps, batch, (extent,))
    return names(build(graph_of(operands, dtype, 0)[0]))


def test_they_are_chosen_where_they_save_time() -> None:
    assert chosen(16, 16, 4) >= BY_POINTS
    assert chosen(64, 128, 3) >= BY_POINTS
    assert not chosen(15, 64, 4) & BY_POINTS
    assert chosen(32, 64, 3) & BY_POINTS == {"winograd", "winograd_made", "winograd_filters"}
    assert chosen(32, 64, 3, last=True) & BY_POINTS == {"winograd", "winograd_filters"}
    assert chosen(16, 16, 3) & BY_POINTS == {"winograd_made", "winograd_filters"}
    assert chosen(128, 128, 4) & BY_POINTS == {"winograd", "winograd_made", "winograd_filters"}
    assert not chosen(16, 16, 4, dtype="float64") & BY_POINTS
    for channels, taps in ((256, 4), (128, 3), (32, 2), (32, 5)):
        assert not chosen(channels, channels, taps) & BY_POINTS


@pytest.mark.slow
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(("channels", "filters", "taps"), [(16, 24, 4), (64, 128, 3), (32, 64, 3)])
def test_new_sizes_need_no_new_kernels(channels: int, filters: int, taps: int, last: bool) -> None:
    known = chosen(channels, filters, taps, last, batch=2, extent=8)
    for batch, extent in ((1, 8), (7, 8), (2, 3), (3, 21), (64, 32), (1, 100)):
        assert chosen(channels, filters, taps, last, batch=batch, extent=extent) <= known


def test_blocks() -> None:
    """Small images share blocks; large ones are cut into blocks of whole tiles."""
    room = winograd_phases.PATCH_BYTES // 4
    assert winograd_phases.block_of(64, 128, "seen", (1, 16, 16), room) == (1, 16, 16)
    assert winograd_phases.images_together(64, 128, "seen", (1, 16, 16), (1, 16, 16)) == 2
    assert winograd_phases.block_of(128, 64, "made", (1, 7, 8), room) == (1, 8, 8)
    assert winograd_phases.images_together(128, 64, "made", (1, 7, 8), (1, 8, 8)) == 6
    assert winograd_phases.images_together(128, 64, "made", (1, 9, 8), (1, 8, 8)) == 1
    assert winograd_phases.block_of(64, 64, "seen", (1, 100, 100), room) == (1, 4, 100)
    assert winograd_phases.block_of(64, 64, "seen", (1, 9, 9), 99 * 64) is None
