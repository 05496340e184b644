# SPDX-License-Identifier: BSD-3-Clause
"""Emission of the gradient of a convolution by its filters, if these have few channels and taps.

Note [dots of windows]
In the kernel of Note [filters] in convolution_weights.py, lanes are the taps of the last axis and the channels: 5 of 16
lanes for the first layer of LeNet. Here lanes are windows, and are added up at the end. What the windows of a block see
is laid out as in Note [windows laid out] in convolution_laid_out.py. Their cotangents are laid out likewise, one filter
after the other, unless they lie that way already. A tile is some filters by some taps. Its sums are a vector, which is
added to scratch memory; at the end the sums of all tiles are written to memory (group, filter, taps, channel); each
part of the launch has memory of its own.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np

from tracejit.codegen.names import SUFFIXES
from tracejit.codegen.target import vector_bytes
from tracejit.codegen.templates.convolution import GEOMETRY, patch_of
from tracejit.codegen.templates.convolution_laid_out import (
    BLOCKS,
    bring_in,
    columns_of,
    each_block,
    gathered,
    lanes_near,
    tables,
)
from tracejit.codegen.templates.kernel_text import header, indent, kernel_of
from tracejit.passes.loops.launches import KernelLaunch
from tracejit.passes.loops.windows import COTANGENT_BYTES, DOTTED_SUMS, LAID_OUT_TAPS
from tracejit.program import Kernel

DOTS_ARGUMENTS = (*GEOMETRY, "y_image", "y0", "y1", "y2", "y_filter")

_TILES = {
    16: (4, 4),
    8: (4, 2),
    4: (2, 2),
    2: (2, 1),
}  # filters and taps of a tile, by lanes: as many sums as lanes


def dots(dtype: np.dtype, numbers: Sequence[int]) -> Kernel:
    """Return the kernel of the gradient by filters whose lanes are windows (Note [dots of windows]).

    Its arguments are DOTS_ARGUMENTS, then pointers to x, y and the result. Windows move by one element along the last
    two axes.
    """
    given = dict(zip(DOTS_ARGUMENTS, numbers, strict=True))
    nears = lanes_near(given["x_channel"], given["x2"]), lanes_near(given["y_filter"], given["y2"])
    return _dots(dtype, vector_bytes() // dtype.itemsize, nears)


@cache
def _dots(dtype: np.dtype, lanes: int, nears: tuple[str, str]) -> Kernel:
    suffix = SUFFIXES[dtype]
    kind = f"{suffix}x{lanes}"
    x_near, y_near = nears
    height, across = _TILES[lanes]
    lines = [
        *header(DOTS_ARGUMENTS, suffix, ("x", "y")),
        *patch_of(dtype),
        f"cotangents = scratch_{suffix}({COTANGENT_BYTES // dtype.itemsize})",
        f"sums = scratch_{suffix}({DOTTED_SUMS})",
        f"seen_at = scratch_i64({LAID_OUT_TAPS})",
        *columns_of(lanes),
        *BLOCKS,
        "each = taps1 * taps2 * channels",
        f"across = (each + {across - 1}) // {across} * {lanes}",
        f"down = (filters + {height - 1}) // {height}",
        "for i in range(groups * down * taps0 * across):",
        f"    sums[i] = {suffix}(0)",
        *each_block(tables(("seen_at",), lanes), bring_in(kind, lanes, x_near)),
        *indent(2, _cotangents(kind, lanes, y_near)),
        f"        for u in range(0, filters, {height}):",
        f"            rows = rows_{height}(u, filters)",
        "            for k0 in range(low0, top0):",
        "                end = (k0 + 1) * each",
        f"                at = ((g * down + u // {height}) * taps0 + k0) * across",
        f"                for k in range(k0 * each, end, {across}):",
        *indent(5, _tile(kind, lanes, height, across)),
        "at = 0",
        "for gu in range(groups * filters):",
        "    g = gu // filters",
        "    u = gu - g * filters",
        "    for k0 in range(taps0):",
        f"        base = ((g * down + u // {height}) * taps0 + k0) * across + u % {height} * {across}",
        "        for k in range(each):",
        f"            out[at] = sums[base + k // {across} * {lanes} + k % {across}]",
        "            at += 1",
    ]
    return kernel_of(lines, "window_dots")


def _cotangents(kind: str, lanes: int, near: str) -> list[str]:
    """Return the lines that copy the cotangents of a block into scratch memory, one filter after the other.

    They are read where they are if they have that order in memory.
    """
    lines = [
        "given = y",
        "source = image * y_image + start0 * y0 + start1 * y1 + start2 * y2 + g * filters * y_filter",
        "base = source",
        "apart = y_filter",
    ]
    copy = [
        "given = cotangents",
        "base = 0",
        "apart = windows",
        "for t1 in range(high1):",
        f"    for q in range(0, high2, {lanes}):",
        f"        few = min({lanes}, high2 - q)",
        "        at_y = source + t1 * y1 + q * y2",
        "        to = t1 * high2 + q",
        *indent(2, _COPIES[near](kind, lanes)),
    ]
    return [*lines, "if y2 != 1 or (high1 > 1 and y1 != high2):", *indent(1, copy)]


def _copy_lines(kind: str, lanes: int) -> list[str]:
    return [
        "for u in range(filters):",
        f"    line = load_tile_{kind}(y, at_y + u * y_filter, rows_1(0, 1), 0, 0, few)",
        f"    store_tile_{kind}(cotangents, to + u * windows, rows_1(0, 1), 0, line, 0, few)",
    ]


def _copy_turned(kind: str, lanes: int) -> list[str]:
    gather, rows = gathered(kind, lanes, "y", "at_y + u", "y2")
    return [
        f"left = filters - filters % {lanes}",
        f"for u in range(0, left, {lanes}):",
        f"    corner = load_tile_{kind}(y, at_y + u, rows_{lanes}(0, few), y2, 0, {lanes})",
        f"    store_tile_{kind}(cotangents, to + u * windows, rows_{lanes}(0, {lanes}), windows, "
        f"transpose_{kind}(corner), 0, few)",
        "for u in range(left, filters):",
        *indent(1, gather),
        f"    store_tile_{kind}(cotangents, to + u * windows, {rows}, 0, lane, 0, few)",
    ]


def _copy_any(kind: str, lanes: int) -> list[str]:
    return [
        "for u in range(filters):",
        "    for t in range(few):",
        "        cotangents[to + u * windows + t] = y[at_y + u * y_filter + t * y2]",
    ]


_COPIES = {"s": _copy_lines, "c": _copy_turned, "": _copy_any}


def _tile(kind: str, lanes: int, height: int, across: int) -> list[str]:
    """Return the lines that add what the windows of a block give to the filters from u and the taps from k on."""
    return [
        f"columns = listed_{across}(seen_at, k, end)",
        f"tile = zero_{kind}(rows_{height * across}(0, {height * across}))",
        f"for i in range(0, windows, {lanes}):",
        f"    tile = add_dots_{kind}(tile, given, base + i, rows, apart, patch, i, columns, 1, "
        f"min({lanes}, windows - i))",
        f"total = add_tiles_{kind}(sum_lanes_{kind}(tile), load_tile_{kind}(sums, at, rows_1(0, 1), 0, 0, {lanes}))",
        f"store_tile_{kind}(sums, at, rows_1(0, 1), 0, total, 0, {lanes})",
        f"at += {lanes}",
    ]


def kernel(launch: KernelLaunch) -> Kernel:
    """Return the kernel of a launch of "window_dots"."""
    return dots(launch.pointers[-1].dtype, launch.numbers)
