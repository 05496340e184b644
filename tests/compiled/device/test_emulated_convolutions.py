# SPDX-License-Identifier: BSD-3-Clause
"""Convolutions on a device: random ones, their tiles and parts, in PTX that an emulator runs."""

import random

import numpy as np
import pytest
from convolutions import Operands, assert_same, graph_of, operands_of, shape_of
from effort import by_turns, sweep
from llvm_texts import NEEDS_LLVM_22
from on_device import CAPABILITY, EmulatedProgram, ptx_of
from ptx_emulator import PtxError

from tracejit.codegen.device import convolution as kernels
from tracejit.codegen.device import convolution_tiles
from tracejit.codegen.device.product_tiles import Tile
from tracejit.ir import Graph
from tracejit.passes.loops import convolution_parts
from tracejit.pipeline import build_for_device

pytestmark = [
    pytest.mark.slow,
    NEEDS_LLVM_22,
]
ORDERS = {
    "any": None,
    "channels first": ("BCSS", "UCSS", "BUSS"),
    "channels last": ("BSSC", "SSCU", "BSSU"),
    "images last": ("SSCB", "SSCU", "SSUB"),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("busy", "full"), [(0, 2), (kernels.BUSY_THREADS, 2), (0, 0)]
)  # by threads, and by blocks
def test_random_convolutions(order: str, busy: int, full: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "BUSY_THREADS", busy)
    monkeypatch.setattr(convolution_parts, "_FULL", full)
    rnd = random.Random(order)
    first = [*ORDERS].index(order) + bool(busy)  # each order has both dtypes, of one way to share work each
    for seed in range(first, first + sweep(1, 200)):
        operands = operands_of(rnd, (1, 3, 5), (1, 2, 4, 7), ORDERS[order])
        # Blocks compute float32 alone.
        graph, arrays = graph_of(operands, ("float32", "float64")[seed % 2 if full else 0], seed)
        assert_same(graph, arrays, EmulatedProgram(build_for_device(graph))(arrays), operands)


def convolution(
    batch: int, image: int, channels: int, filters: int, labels: tuple[str, str, str]
) -> tuple[Graph, list[np.ndarray], Operands]:
    """Return the graph of a convolution of windows of 3 x 3 and its gradients, and arrays for it."""
    axes, taps = (image, image), (3, 3)
    shapes = (
        shape_of(labels[0], axes, B=batch, C=channels),
        shape_of(labels[1], taps, U=filters, C=channels),
        shape_of(labels[2], axes, B=batch, U=filters),
    )
    params = {"labels": labels, "strides": (1, 1), "before": (1, 1), "dilation": (1, 1), "groups": 1}
    operands = Operands(shapes, (axes, taps, axes), params)
    return *graph_of(operands, "float32", 1), operands


@pytest.mark.parametrize("labels", [own for own in ORDERS.values() if own])
def test_sums_of_many_positions_have_parts(
    labels: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(convolution_parts, "GROUPS", 200)
    monkeypatch.setattr(convolution_parts, "_FULL", 2)
    graph, arrays, operands = convolution(7, 20, 2, 5, labels)
    program = build_for_device(graph)
    sizes = [row.arguments for row in program.rows if row.kernel.name.startswith("convolution_weights")]
    assert len(sizes) == 1
    assert len(program.rows) == 4  # the parts of a gradient are added up by one more launch
    assert_same(graph, arrays, EmulatedProgram(program)(arrays), operands)


@pytest.mark.parametrize(
    ("sizes", "busy"), by_turns([(9, 35), (33, 8), (2, 9), (5, 3)], [kernels.BUSY_THREADS, 0])
)
def test_threads_take_tiles(sizes: tuple[int, int], busy: int, monkeypatch: pytest.MonkeyPatch) -> None:
    channels, filters = sizes
    monkeypatch.setattr(kernels, "BUSY_THREADS", busy)
    monkeypatch.setattr(convolution_parts, "_FULL", 2)
    graph, arrays, operands = convolution(2, 5, channels, filters, ORDERS["channels first"] or ("", "", ""))
    assert_same(graph, arrays, EmulatedProgram(build_for_device(graph))(arrays), operands)


@pytest.mark.parametrize(
    ("tile", "order"),
    [*zip(convolution_tiles.TILES, ("channels first", "channels last", "images last"), strict=True)],
    ids=lambda value: value if isinstance(value, str) else f"{value.rows}x{value.columns}",
)
def test_blocks_take_tiles(tile: Tile, order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convolution_parts, "_FULL", 0)
    monkeypatch.setattr(convolution_parts, "BLOCK_TILES", ((tile.rows, tile.columns),))
    monkeypatch.setattr(convolution_tiles, "TILES", (tile,))
    monkeypatch.setattr(convolution_parts, "POSITIONS", 1)
    graph, arrays, operands = convolution(2, 5, 3, tile.rows + 1, ORDERS[order] or ("", "", ""))
    program = build_for_device(graph)
    assert [row.grid.threads for row in program.rows if row.grid][:3] == [tile.threads] * 3
    assert len(program.rows) == 4  # the parts of a gradient are added up by one more launch
    assert_same(graph, arrays, EmulatedProgram(program)(arrays), operands)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("piece = index(16 - piece)", "piece = index(piece)"),
        ("is_there = at + me < inner_count", "is_there = at + me <= inner_count"),
        ("position = index(min(number, positions - 1))", "position = index(min(number, positions - 2))"),
        ("        barrier()\n        now", "        now"),
        ("(element_1 >= 0) & ", ""),
        ("step = index(step + 8)", "step = index(step + 16)"),
    ],
)
def test_planted_faults_are_found(old: str, new: str) -> None:
    graph, arrays, operands = convolution(1, 9, 3, 30, ORDERS["channels first"] or ("", "", ""))
    graph.outputs = graph.outputs[:1]
    program = build_for_device(graph)
    (row,) = program.rows
    assert old in row.kernel.text
    assert_same(graph, arrays, EmulatedProgram(program)(arrays), operands)
    faulty = row._replace(kernel=row.kernel._replace(text=row.kernel.text.replace(old, new)))
    with pytest.raises((PtxError, AssertionError)):
        assert_same(graph, arrays, EmulatedProgram(program._replace(rows=[faulty]))(arrays), operands)


def test_other_images_have_the_same_kernels() -> None:
    def names(batch: int, image: int) -> set[str]:
        graph, _, _ = convolution(batch, image, 8, 16, ORDERS["channels first"] or ("", "", ""))
        return {row.kernel.name for row in build_for_device(graph).rows}

    assert names(2, 8) == names(3, 9)


@pytest.mark.parametrize(("busy", "full"), [(0, 2), (kernels.BUSY_THREADS, 2), (0, 0)])
def test_threads_have_no_memory_of_their_own(busy: int, full: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "BUSY_THREADS", busy)
    monkeypatch.setattr(convolution_parts, "_FULL", full)
    for order in ("channels first", "images last"):
        graph, _, _ = convolution(8, 8, 8, 32, ORDERS[order] or ("", "", ""))
        for row in build_for_device(graph).rows:
            assert row.grid is not None and row.grid.threads > 1
            text = ptx_of(row.kernel, CAPABILITY)
            assert ".local" not in text and "f64" not in text.partition("{")[2]
