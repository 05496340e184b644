# SPDX-License-Identifier: BSD-3-Clause
"""Emission of convolutions: kernels that bring a block of an image into the near cache, and multiply tiles of windows.

Note [windows]
A block is some windows of one image. The elements that they span, for one group of channels, are copied to scratch
memory (`patch`), channels last, with the zeros around the image. There, consecutive taps of a window along the last
axis lie without gaps, channel by channel. So a convolution is the product of Note [register tile] in gemm.py with
further loops over the other taps: a row of the tile is a window, its columns are filters, and k runs over the last taps
and the channels. No window is copied. Sizes and strides are arguments, whatever the order of the axes. Only the code
that fills the patch and stores tiles is emitted for the axis whose elements are neighbours in memory: channels ("c"),
windows of the last spatial axis ("s"), or neither ("").
"""

from collections.abc import Sequence
from functools import cache

import numpy as np

from tracejit.codegen.names import SUFFIXES
from tracejit.codegen.target import vector_bytes
from tracejit.codegen.templates.kernel_text import TILE_ROWS, Finish, header, indent, kernel_of
from tracejit.passes.loops.launches import KernelLaunch
from tracejit.passes.loops.windows import PATCH_BYTES, WINDOWS
from tracejit.program import Kernel

GEOMETRY = (
    "first", "last", "groups", "channels", "filters", "taps0", "taps1", "taps2", "size0", "size1", "size2", "stride0",
    "stride1", "stride2", "before0", "before1", "before2", "dilation0", "dilation1", "dilation2", "extent0", "extent1",
    "extent2", "block0", "block1", "block2", "runs", "run", "x_image", "x0", "x1", "x2", "x_channel",
)  # fmt: skip
WINDOWS_ARGUMENTS = (
    *GEOMETRY, "w_group", "w0", "w1", "w2", "w_channel", "out_image", "out0", "out1", "out2", "out_filter",
)  # fmt: skip

_TABLES = ("places", "outs", "planes", "lows0", "tops0", "lows1", "tops1")


def windows(
    dtype: np.dtype, numbers: Sequence[int], channelwise: bool, biased: bool, finish: Finish | None = None
) -> Kernel:
    """Return the kernel of a convolution (Note [windows]) for numbers of its launch.

    Its arguments are WINDOWS_ARGUMENTS, then pointers to x, w, a bias of each filter if it is `biased`, and out.
    Filters are neighbours in w. There are three kernels for filters of a group of at most one vector, less than two,
    and more; and as many for filters that have one channel each, where lanes are channels and nothing is summed over
    them.
    """
    given = dict(zip(WINDOWS_ARGUMENTS, numbers, strict=True))
    filters = given["filters"]
    x_near = near(given["channels"], given["x_channel"], given["x2"])
    out_near = near(filters, given["out_filter"], given["out2"])
    lanes = vector_bytes() // dtype.itemsize
    wide = tile_width(filters, lanes)
    return _windows(
        dtype, TILE_ROWS[vector_bytes()], wide, filters >= 2 * lanes, (x_near, out_near), channelwise, biased,
        finish,
    )  # fmt: skip


def tile_width(filters: int, lanes: int) -> int:
    """Return of how many filters a tile is."""
    return lanes if filters <= lanes else 2 * lanes


def near(channels: int, channel: int, step: int) -> str:
    """Return the axis whose elements are neighbours: "c" channels, "s" the last spatial axis, "" neither."""
    if channel == 1 or channels == 1:
        return "c"
    return "s" if step == 1 else ""


@cache
def _windows(
    dtype: np.dtype,
    height: int,
    wide: int,
    whole: bool,
    nears: tuple[str, str],
    channelwise: bool,
    biased: bool,
    finish: Finish | None,
) -> Kernel:
    x_near, out_near = nears
    suffix = SUFFIXES[dtype]
    lines = [
        *header(WINDOWS_ARGUMENTS, suffix, ("x", "w", "bias") if biased else ("x", "w"), finish),
        *patch_of(dtype),
        *[f"{table} = scratch_i64({WINDOWS})" for table in _TABLES],
        *([] if out_near == "c" else [f"result = scratch_{suffix}({WINDOWS * wide})"]),
        *([] if out_near else [f"square = scratch_{suffix}({(vector_bytes() // dtype.itemsize) ** 2})"]),
        *sizes(),
        "for item in range(first, last):",
        *indent(1, block()),
        "    if count > 1 or item == first:",
        *indent(2, _tables()),
        "    for g in range(groups):",
        *indent(2, bring_in(dtype, x_near)),
        "        base = image * out_image + start0 * out0 + start1 * out1 + start2 * out2 + g * filters * out_filter",
        *indent(2, _tiles(suffix, height, wide, whole, out_near, channelwise, biased, finish)),
    ]
    stem = "channelwise" if channelwise else "windows"
    return kernel_of(lines, stem if finish is None else f"{stem}_{finish.stem}")


def patch_of(dtype: np.dtype, size: int = PATCH_BYTES) -> list[str]:
    """Return the line that makes the patch, of `size` bytes."""
    return [f"patch = scratch_{SUFFIXES[dtype]}({size // dtype.itemsize})"]


def sizes() -> list[str]:
    """Return the lines that compute the sizes of blocks and patches."""
    return [
        "count1 = (size1 + block1 - 1) // block1",
        "count2 = (size2 + block2 - 1) // block2",
        "count = (size0 + block0 - 1) // block0 * count1 * count2",
        "span0 = (taps0 - 1) * dilation0 + 1",
        "span1 = (taps1 - 1) * dilation1 + 1",
        "span2 = (taps2 - 1) * dilation2 + 1",
        "line = ((block2 - 1) * stride2 + span2) * channels",
        "plane = ((block1 - 1) * stride1 + span1) * line",
    ]


def block() -> list[str]:
    """Return the lines that find the windows of a block."""
    return [
        "image = item // count",
        "number = item - image * count",
        "start0 = number // (count1 * count2) * block0",
        "start1 = number // count2 % count1 * block1",
        "start2 = number % count2 * block2",
        "high0 = min(block0, size0 - start0)",
        "high1 = min(block1, size1 - start1)",
        "high2 = min(block2, size2 - start2)",
        "windows = high0 * high1 * high2",
    ]


def _tables() -> list[str]:
    """Return the lines that list, for each window, its places in the patch and in the result from the first window on,
    and which of its taps along the first two axes lie in the image."""
    return [
        "i = 0",
        "for t0 in range(high0):",
        *indent(1, _taps_inside(0)),
        "    for t1 in range(high1):",
        *indent(2, _taps_inside(1)),
        "        for t2 in range(high2):",
        "            places[i] = t0 * stride0 * plane + t1 * stride1 * line + t2 * stride2 * channels",
        "            outs[i] = t0 * out0 + t1 * out1 + t2 * out2",
        "            planes[i] = t0",
        "            lows0[i] = low0",
        "            tops0[i] = top0",
        "            lows1[i] = low1",
        "            tops1[i] = top1",
        "            i += 1",
    ]


def _taps_inside(axis: int) -> list[str]:
    return [
        f"begin = (start{axis} + t{axis}) * stride{axis} - before{axis}",
        f"low{axis} = max(0, (dilation{axis} - 1 - begin) // dilation{axis})",
        f"top{axis} = min(taps{axis}, (extent{axis} - 1 - begin) // dilation{axis} + 1)",
    ]


def bring_in(dtype: np.dtype, near: str) -> list[str]:
    """Return the lines that bring the elements of a block into the patch."""
    return [
        "for h0 in range((high0 - 1) * stride0 + span0):",
        "    i0 = start0 * stride0 - before0 + h0",
        "    for h1 in range((high1 - 1) * stride1 + span1):",
        "        i1 = start1 * stride1 - before1 + h1",
        "        i2 = start2 * stride2 - before2",
        "        width = (high2 - 1) * stride2 + span2",
        "        low = min(width, max(0, -i2))",
        "        high = max(low, min(width, extent2 - i2))",
        "        if min(i0, i1) < 0 or i0 >= extent0 or i1 >= extent1:",
        "            low = width",
        "            high = width",
        "        to = h0 * plane + h1 * line",
        *indent(2, _zeros(dtype, "to", "low * channels")),
        *indent(2, _zeros(dtype, "to + high * channels", "(width - high) * channels")),
        "        to += low * channels",
        "        source = image * x_image + g * channels * x_channel + i0 * x0 + i1 * x1 + (i2 + low) * x2",
        "        width = high - low",
        *indent(2, COPIES[near](dtype, "x", "patch")),
    ]


def _zeros(dtype: np.dtype, at: str, count: str) -> list[str]:
    """Return the lines that write zeros to the patch. In vectors: LLVM would make much of a loop over numbers."""
    lanes = vector_bytes() // dtype.itemsize
    kind = f"{SUFFIXES[dtype]}x{lanes}"
    return [
        f"for p in range(0, {count}, {lanes}):",
        f"    few = min({lanes}, {count} - p)",
        f"    store_tile_{kind}(patch, {at} + p, rows_1(0, 1), 0, zero_{kind}(rows_1(0, 1)), 0, few)",
    ]


def _copy_channels(dtype: np.dtype, x: str, target: str) -> list[str]:
    lanes = vector_bytes() // dtype.itemsize
    kind = f"{SUFFIXES[dtype]}x{lanes}"
    return [
        "size = channels",
        f"if {x}2 == channels:  # all that is near lies without gaps",
        "    size = width * channels",
        "    width = min(width, 1)",
        "for t in range(width):",
        f"    for p in range(0, size, {lanes}):",
        f"        few = min({lanes}, size - p)",
        f"        piece = load_tile_{kind}({x}, source + t * {x}2 + p, rows_1(0, 1), 0, 0, few)",
        f"        store_tile_{kind}({target}, to + t * channels + p, rows_1(0, 1), 0, piece, 0, few)",
    ]


def _copy_turned(dtype: np.dtype, x: str, target: str) -> list[str]:
    lanes = vector_bytes() // dtype.itemsize
    kind = f"{SUFFIXES[dtype]}x{lanes}"
    return [
        f"for c in range(0, channels, {lanes}):",
        f"    several = min({lanes}, channels - c)",
        f"    for t in range(0, width, {lanes}):",
        f"        few = min({lanes}, width - t)",
        f"        near_rows = rows_{lanes}(0, several)",
        f"        corner = load_tile_{kind}({x}, source + c * {x}_channel + t, near_rows, {x}_channel, 0, few)",
        f"        store_tile_{kind}({target}, to + t * channels + c, rows_{lanes}(0, few), channels, "
        f"transpose_{kind}(corner), 0, several)",
    ]


def _copy_any(dtype: np.dtype, x: str, target: str) -> list[str]:
    return [
        "for c in range(channels):",
        "    for t in range(width):",
        f"        {target}[to + t * channels + c] = {x}[source + t * {x}2 + c * {x}_channel]",
    ]


COPIES = {"c": _copy_channels, "s": _copy_turned, "": _copy_any}


def _sums(kind: str, wide: int, whole: bool, channelwise: bool) -> list[str]:
    """Return the lines that add a run of taps to a tile, or all taps along the last axis."""
    if channelwise:
        return [
            "at_x += j",
            "for k2 in range(taps2):",
            "    at_w = k0 * w0 + k1 * w1 + k2 * w2 + j",
            f"    tile = add_dots_{kind}(tile, patch, at_x, rows, 1, w, at_w, rows_1(0, 1), 0, "
            f"{wide if whole else 'filters'})",
            "    at_x += dilation2 * channels",
        ]
    load = f"load_{kind}(w, at_w)" if whole else f"load_first_{kind}(w, at_w, filters)"
    return [
        "for k2 in range(runs):",
        "    at_w = g * w_group + k0 * w0 + k1 * w1 + k2 * w2 + j",
        "    for p in range(run):",
        f"        tile = add_outer_{kind}(tile, patch, at_x, rows, 1, {load})",
        "        at_x += 1",
        "        at_w += w_channel",
        "    at_x += (dilation2 - 1) * channels",
    ]


def _tiles(
    suffix: str, height: int, wide: int, whole: bool, out_near: str, channelwise: bool, biased: bool,
    finish: Finish | None,
) -> list[str]:  # fmt: skip
    """Return the lines that multiply the windows in the patch by filters."""
    kind = f"{suffix}x{wide}"
    sums = [
        f"rows = listed_{height}(places, i, windows)",
        f"tile = filled_{kind}(rows, start)" if biased else f"tile = zero_{kind}(rows)",
        *_inside(height),
        "for k0 in range(low0, top0):",
        "    for k1 in range(low1, top1):",
        "        at_x = k0 * dilation0 * plane + k1 * dilation1 * line",
        *indent(2, _sums(kind, wide, whole, channelwise)),
        *([] if finish is None else finish.lines(height)),
    ]
    start = f"start = load_{kind}(bias, g * filters + j)"
    if not whole:
        start = f"start = load_first_{kind}(bias, g * filters, filters)"
    used = f"j_next - j, {wide}" if whole else "0, filters"
    if out_near == "c":
        sums += [
            f"rows = listed_{height}(outs, i, windows)",
            f"store_tile_{kind}(out, base + j, rows, 1, tile, {used})",
        ]
        after = []
    else:
        sums.append(f"store_tile_{kind}(result, 0, rows_{height}(i, windows), {wide}, tile, 0, {wide})")
        after = (_store_turned if out_near == "s" else _store_any)(suffix, wide)
    return [
        f"for j_next in range(0, filters, {wide}):",
        f"    j = min(j_next, filters - {wide})" if whole else "    j = 0",
        *([f"    {start}"] if biased else []),
        f"    for i in range(0, windows, {height}):",
        *indent(2, sums),
        *indent(1, after),
    ]


def _inside(height: int) -> list[str]:
    """Return the lines that find the taps of a tile's windows that do not lie outside of the image for all of them."""
    return [
        f"end = min(i + {height}, windows) - 1",
        "low0 = lows0[end]",
        "top0 = tops0[i]",
        "low1 = lows1[end]",
        "top1 = tops1[i]",
        "if planes[i] != planes[end]:  # windows of two planes may lie anywhere in them",
        "    low1 = 0",
        "    top1 = taps1",
    ]


def _store_turned(suffix: str, wide: int) -> list[str]:
    lanes = vector_bytes() // (4 if suffix == "f32" else 8)
    kind = f"{suffix}x{lanes}"
    return [
        "lines = high1",
        "width = high2",
        "if out1 == high2:  # rows of windows follow each other",
        "    lines = 1",
        "    width = high1 * high2",
        "for t0 in range(high0):",
        "    for t1 in range(lines):",
        "        begin = base + t0 * out0 + t1 * out1",
        f"        from_ = (t0 * high1 * high2 + t1 * width) * {wide}",
        f"        for q in range(0, min({wide}, filters), {lanes}):",
        f"            several = min({lanes}, filters - q)",
        f"            for t in range(0, width, {lanes}):",
        f"                few = min({lanes}, width - t)",
        f"                done = load_tile_{kind}(result, from_ + t * {wide} + q, rows_{lanes}(0, few), {wide}, 0, "
        f"several)",
        f"                store_tile_{kind}(out, begin + (j + q) * out_filter + t, rows_{lanes}(0, several), "
        f"out_filter, transpose_{kind}(done), 0, few)",
    ]


def _store_any(suffix: str, wide: int) -> list[str]:
    lanes = vector_bytes() // (4 if suffix == "f32" else 8)
    kind = f"{suffix}x{lanes}"
    return [
        f"for q in range(0, min({wide}, filters), {lanes}):",
        f"    several = min({lanes}, filters - q)",
        f"    for i in range(0, windows, {lanes}):",
        f"        few = min({lanes}, windows - i)",
        f"        done = load_tile_{kind}(result, i * {wide} + q, rows_{lanes}(0, few), {wide}, 0, several)",
        f"        store_tile_{kind}(square, 0, rows_{lanes}(0, {lanes}), {lanes}, transpose_{kind}(done), 0, {lanes})",
        "        for u in range(several):",
        "            at = base + (j + q + u) * out_filter",
        "            for t in range(few):",
        f"                out[at + outs[i + t]] = square[u * {lanes} + t]",
    ]


def kernel(launch: KernelLaunch, finish: Finish | None = None) -> Kernel:
    """Return the kernel of a launch of "windows" or "channelwise"."""
    is_channelwise, is_biased = launch.name == "channelwise", len(launch.pointers) > 3
    return windows(launch.pointers[-1].dtype, launch.numbers, is_channelwise, is_biased, finish)
