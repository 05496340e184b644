# SPDX-License-Identifier: BSD-3-Clause
"""Emission of the gradient of a convolution by its filters.

Note [filters]
The elements that a block of windows spans are brought into the near cache as in Note [windows] in convolution.py. A row
of a tile is a filter, whose cotangents are read number by number, whatever order they have; its columns are the last
taps and the channels, which lie side by side in the patch; k runs over the windows of the block. The tile is then added
to memory: filters of a group (taps0, taps1, runs, filters, run). Each part of the launch that takes some of the images
has such memory of its own. A part may instead take some filters of all images.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np

from tracejit.codegen.names import SUFFIXES
from tracejit.codegen.target import vector_bytes
from tracejit.codegen.templates.convolution import GEOMETRY, block, bring_in, near, patch_of, sizes
from tracejit.codegen.templates.kernel_text import TILE_ROWS, header, indent, kernel_of
from tracejit.passes.loops.launches import KernelLaunch
from tracejit.program import Kernel

FILTERS_ARGUMENTS = (*GEOMETRY, "y_image", "y0", "y1", "y2", "y_filter", "images", "by_filters")


def filters(dtype: np.dtype, numbers: Sequence[int]) -> Kernel:
    """Return the kernel of the gradient by filters (Note [filters]) for numbers of its launch.

    Its arguments are FILTERS_ARGUMENTS, then pointers to x, y and the result. There are three kernels for runs of at
    most one vector, less than two, and more.
    """
    given = dict(zip(FILTERS_ARGUMENTS, numbers, strict=True))
    lanes = vector_bytes() // dtype.itemsize
    run = given["run"]
    wide = lanes if run <= lanes else 2 * lanes
    x_near = near(given["channels"], given["x_channel"], given["x2"])
    return _filters(dtype, TILE_ROWS[vector_bytes()], wide, run >= 2 * lanes, x_near)


@cache
def _filters(dtype: np.dtype, height: int, wide: int, whole: bool, x_near: str) -> Kernel:
    suffix = SUFFIXES[dtype]
    lines = [
        *header(FILTERS_ARGUMENTS, suffix, ("x", "y")),
        *patch_of(dtype),
        *sizes(),
        "begin = 0",
        "end = filters",
        "if by_filters:",
        "    begin = first",
        "    end = last",
        "    first = 0",
        "    last = images * count",
        "for i in range(groups * taps0 * taps1 * runs):",
        "    for p in range((i * filters + begin) * run, (i * filters + end) * run):",
        f"        out[p] = {suffix}(0)",
        "for item in range(first, last):",
        *indent(1, block()),
        "    for g in range(groups):",
        *indent(2, bring_in(dtype, x_near)),
        "        base = image * y_image + start0 * y0 + start1 * y1 + start2 * y2 + g * filters * y_filter",
        "        at = g * taps0 * taps1 * runs * filters * run",
        "        for k0 in range(taps0):",
        "            for k1 in range(taps1):",
        "                for k2 in range(runs):",
        "                    tap = k0 * dilation0 * plane + k1 * dilation1 * line + k2 * dilation2 * channels",
        *indent(5, _tiles(suffix, height, wide, whole)),
        "                    at += filters * run",
    ]
    return kernel_of(lines, "filters")


def _tiles(suffix: str, height: int, wide: int, whole: bool) -> list[str]:
    """Return the lines that add what the windows of the patch give to the filters of some taps."""
    kind = f"{suffix}x{wide}"
    rows = [f"for u in range(begin, end, {height}):", f"    rows = rows_{height}(u, end)"]
    if not whole:
        load = f"load_first_{kind}(patch, at_x, run)"
        return [*rows, "    j = 0", *indent(1, _tile(kind, load, "0, run"))]
    lanes = wide // 2
    half = f"{suffix}x{lanes}"
    return [
        f"rest = run % {wide}",
        f"if rest > {lanes}:",
        "    rest = 0",
        *rows,
        f"    for j_next in range(0, run - rest, {wide}):",
        f"        j = min(j_next, run - {wide})",
        *indent(2, _tile(kind, f"load_{kind}(patch, at_x)", f"j_next - j, {wide}")),
        "    if rest:  # at most one vector",
        "        j = run - rest",
        *indent(2, _tile(half, f"load_first_{half}(patch, at_x, rest)", "0, rest", "narrow")),
    ]


def _tile(kind: str, load: str, used: str, tile: str = "tile") -> list[str]:
    """Return the lines that sum a tile, a variable of the given name, which has one type in a kernel."""
    place = "out, at + j, rows, run"
    return [
        f"{tile} = zero_{kind}(rows)",
        "for t0 in range(high0):",
        "    for t1 in range(high1):",
        "        at_x = tap + t0 * stride0 * plane + t1 * stride1 * line + j",
        "        at_y = base + t0 * y0 + t1 * y1",
        "        for t2 in range(high2):",
        f"            {tile} = add_outer_{kind}({tile}, y, at_y, rows, y_filter, {load})",
        "            at_x += stride2 * channels",
        "            at_y += y2",
        f"{tile} = add_tiles_{kind}({tile}, load_tile_{kind}({place}, {used}))",
        f"store_tile_{kind}({place}, {tile}, {used})",
    ]


def kernel(launch: KernelLaunch) -> Kernel:
    """Return the kernel of a launch of "filters"."""
    return filters(launch.pointers[-1].dtype, launch.numbers)
