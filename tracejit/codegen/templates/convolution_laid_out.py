# SPDX-License-Identifier: BSD-3-Clause
"""Emission of convolutions with few filters, or with a number of filters that leaves lanes unused.

Note [windows laid out]
The kernels of Note [windows] in convolution.py have filters in lanes: 20 filters fill 20 of 32. Here lanes are windows,
and a row of a tile is a filter. The elements that the windows of a block see are laid out in scratch memory: a sheet
for each tap along the last axis and each channel, with a line for each line of x that the block spans, and in the line
an element for each window. If windows move by one element, then through a tap of the axis before they see the same
lines, further on. So all windows of a block lie without gaps in each sheet, whatever the length of a line, and only
taps of the last axis are copies. k runs over the taps and the channels; each step loads some vectors of windows, and
one number for each filter.

Lines are written by masked stores, because a vector that goes beyond its line would spoil lines that are written
already. Lines of x that follow each other, and are as long as those of windows, are treated as one line: for images 8
elements wide, a vector holds two lines. Which of its elements a tap sees depends on their columns, which a table lists.
If an image is one block, the zeros around it are written for the first image, and stay. Lanes beyond the last window of
a block compute with whatever lies there, and are not stored. A tile of 12 filters has two vectors, one of few filters
four, so that there are enough sums that do not wait for each other.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np

from tracejit.codegen.names import SUFFIXES
from tracejit.codegen.target import vector_bytes
from tracejit.codegen.templates.convolution import WINDOWS_ARGUMENTS, block, patch_of
from tracejit.codegen.templates.kernel_text import Finish, header, indent, kernel_of
from tracejit.passes.loops.launches import KernelLaunch
from tracejit.passes.loops.windows import LAID_OUT_TAPS, LAID_OUT_WINDOWS
from tracejit.program import Kernel

_TABLES = ("seen_at", "filter_at")
_GATHERED = (4, 8, 16)  # lanes for which kernels/intrinsics/lanes.py gathers
_TILE_VECTORS = {64: 24, 32: 12, 16: 12}  # vectors of a tile, at most, by bytes of a vector
_MOST_ACROSS = 4  # of them side by side
_IS_ONE = f"high2 == extent2 and seen * high2 <= {LAID_OUT_WINDOWS}"


def laid_out(dtype: np.dtype, numbers: Sequence[int], biased: bool, finish: Finish | None = None) -> Kernel:
    """Return the kernel of a convolution whose lanes are windows (Note [windows laid out]) for numbers of its launch.

    Its arguments are WINDOWS_ARGUMENTS, then pointers to x, w, a bias of each filter if it is `biased`, and out.
    Filters are neighbours in w, and windows move by one element along the last two axes. There is a kernel for each
    height of a tile. With a `finish`, its operands come before out, and its constants after it.
    """
    given = dict(zip(WINDOWS_ARGUMENTS, numbers, strict=True))
    lanes = vector_bytes() // dtype.itemsize
    nears = lanes_near(given["x_channel"], given["x2"]), lanes_near(given["out_filter"], given["out2"])
    return _laid_out(dtype, lanes, tile_height(given["filters"], lanes), nears, biased, finish)


def tile_height(filters: int, lanes: int) -> int:
    """Return of how many filters a tile is, so that the last tile computes as few as possible again."""
    most = min(_TILE_VECTORS[vector_bytes()] // 2, lanes)
    return -(-filters // -(-filters // most))


def tile_width(height: int, lanes: int) -> int:
    """Return of how many windows a tile is that has as many filters as its height."""
    across = min(_MOST_ACROSS, _TILE_VECTORS[vector_bytes()] // height)
    return lanes << across.bit_length() - 1


def lanes_near(channel: int, step: int) -> str:
    """Return the axis whose elements are neighbours: "s" the last spatial axis, "c" channels, "" neither."""
    if step == 1:
        return "s"
    return "c" if channel == 1 else ""


@cache
def _laid_out(
    dtype: np.dtype, lanes: int, height: int, nears: tuple[str, str], biased: bool, finish: Finish | None
) -> Kernel:
    suffix = SUFFIXES[dtype]
    kind = f"{suffix}x{lanes}"
    x_near, out_near = nears
    width = tile_width(height, lanes)
    lines = [
        *header(WINDOWS_ARGUMENTS, suffix, ("x", "w", "bias") if biased else ("x", "w"), finish),
        *patch_of(dtype),
        *([] if out_near == "s" else [f"outs = scratch_i64({LAID_OUT_WINDOWS})"]),
        *([f"square = scratch_{suffix}({height * width})"] if out_near != "s" else []),
        *(_ones(suffix, width) if biased else []),
        *[f"{table} = scratch_i64({LAID_OUT_TAPS})" for table in _TABLES],
        *columns_of(lanes),
        *BLOCKS,
        "each = taps2 * channels",
        f"rows = rows_{height}(0, {height})",
        *each_block(tables(_TABLES, lanes, out_near != "s"), bring_in(kind, lanes, x_near)),
        f"        for i in range(0, windows, {width}):",
        f"            end = min(i + {width}, windows)",
        *indent(3, _taps_inside()),
        f"            for j_next in range(0, filters, {height}):",
        f"                j = min(j_next, filters - {height})",
        *indent(4, _tile(suffix, lanes, height, width, out_near, biased, finish)),
    ]
    return kernel_of(lines, "laid_out" if finish is None else f"laid_out_{finish.stem}")


FRESH = "if count > 1 or item == first"
"""The condition under which a block has not the places of the block before: it is the first, or one of several."""

BLOCKS = (
    "count1 = (size1 + block1 - 1) // block1",
    "count2 = (size2 + block2 - 1) // block2",
    "count = size0 * count1 * count2",
)
"""The lines that count the blocks of an image."""


def each_block(tables: list[str], bring_in: list[str]) -> list[str]:
    """Return the lines that begin the loops over blocks and groups, and lay out what the windows of a block see.

    Args:
        tables: lines that list places, which are those of the block before if an image has one block.
        bring_in: lines that lay out one plane of x.
    """
    return [
        "for item in range(first, last):",
        *indent(1, block()),
        "    seen = high1 + (taps1 - 1) * dilation1",
        "    plane = seen * high2",
        "    sheet = taps0 * plane",
        f"    {FRESH}:",
        *indent(2, tables),
        "    begin0 = start0 * stride0 - before0",
        "    low0 = max(0, (dilation0 - 1 - begin0) // dilation0)",
        "    top0 = min(taps0, (extent0 - 1 - begin0) // dilation0 + 1)",
        "    for g in range(groups):",
        "        for k0 in range(low0, top0):",
        *indent(3, bring_in),
    ]


def _ones(suffix: str, width: int) -> list[str]:
    return [
        f"ones = scratch_{suffix}({width})",
        f"for p in range({width}):",
        f"    ones[p] = {suffix}(1)",
    ]


def columns_of(lanes: int) -> list[str]:
    """Return the line that makes the list of columns."""
    return [f"column_of = scratch_i32({LAID_OUT_WINDOWS + 2 * lanes})"]


def tables(names: Sequence[str], lanes: int, with_outs: bool = False) -> list[str]:
    """Return the lines that list where taps and channels lie: "seen_at" in the sheets, "filter_at" in a filter; where
    windows lie in the result; and the columns of lanes, from the first on, and where lines follow each other."""
    outs = [
        "i = 0",
        "for t1 in range(high1):",
        "    for t2 in range(high2):",
        "        outs[i] = t1 * out1 + t2 * out2",
        "        i += 1",
    ]
    places = {
        "seen_at": "(k2 * channels + c) * sheet + k0 * plane + k1 * dilation1 * high2",
        "filter_at": "k0 * w0 + k1 * w1 + k2 * w2 + c * w_channel",
    }
    return [
        "k = 0",
        "for k0 in range(taps0):",
        "    for k1 in range(taps1):",
        "        for k2 in range(taps2):",
        "            for c in range(channels):",
        *[f"                {name}[k] = {places[name]}" for name in names],
        "                k += 1",
        *(outs if with_outs else []),
        f"for i in range({lanes}):",
        "    column_of[i] = i32(i)",
        "t2 = 0",
        f"for i in range({lanes}, 2 * {lanes} + min({LAID_OUT_WINDOWS}, seen * high2)):",
        "    column_of[i] = i32(t2)",
        "    t2 += 1",
        "    if t2 == high2:",
        "        t2 = 0",
    ]


def bring_in(kind: str, lanes: int, near: str) -> list[str]:
    """Return the lines that lay out what a block sees of one plane of x."""
    return [
        "begin1 = start1 - before1",
        "begin2 = start2 - before2",
        "first1 = min(seen, max(0, -begin1))",
        "last1 = max(first1, min(seen, extent1 - begin1))",
        "source = image * x_image + g * channels * x_channel + (begin0 + k0 * dilation0) * x0 + begin1 * x1",
        "stop = begin2 + (taps2 - 1) * dilation2 + high2",
        *_COPIES[near](kind, lanes),
    ]


def _zeros(kind: str, lanes: int, first: str, last: str) -> list[str]:
    """Return the lines that write zeros to some lines of all sheets, where they do not stay from the image before."""
    return [
        f"{FRESH}:",
        f"    size = ({last} - {first}) * high2",
        f"    at = k0 * plane + {first} * high2",
        "    for k in range(taps2 * channels):",
        f"        for t in range(0, size, {lanes}):",
        f"            store_tile_{kind}(patch, at + t, rows_1(0, 1), 0, zero_{kind}(rows_1(0, 1)), 0, "
        f"min({lanes}, size - t))",
        "        at += sheet",
    ]


def _copy_lines(kind: str, lanes: int) -> list[str]:
    """Return the lines that copy lines whose elements are neighbours; elements outside of x become 0."""
    return [
        *_zeros(kind, lanes, "0", "first1"),
        *_zeros(kind, lanes, "last1", "seen"),
        "lines = last1 - first1",
        "long = high2",
        f"is_one = x1 == extent2 and {_IS_ONE}",
        "if is_one:",
        "    long = lines * high2",
        "    lines = min(lines, 1)",
        "for k2 in range(taps2):",
        "    i2 = begin2 + k2 * dilation2",
        "    for c in range(channels):",
        "        at_x = source + c * x_channel + first1 * x1 + i2",
        "        at = (k2 * channels + c) * sheet + k0 * plane + first1 * high2",
        "        for h1 in range(lines):",
        f"            for t in range(0, long, {lanes}):",
        f"                few = min({lanes}, long - t)",
        *indent(4, _place(lanes, "t")),
        f"                tile = load_where_{kind}(x, at_x + t, rows_1(0, 1), 0, column_of, place, -i2 - begun, "
        "extent2 - i2 - begun, few)",
        f"                store_tile_{kind}(patch, at + t, rows_1(0, 1), 0, tile, 0, few)",
        "            at_x += x1",
        "            at += high2",
    ]


def _place(lanes: int, first: str) -> list[str]:
    """Return the lines that find the columns of lanes from an element on, of a line or of all lines as one."""
    return [
        "place = 0",
        f"begun = {first}",
        "if is_one:",
        f"    place = {lanes} + {first}",
        "    begun = 0",
    ]


def _copy_turned(kind: str, lanes: int) -> list[str]:
    """Return the lines that turn lines whose channels are neighbours, and store each for all taps.

    Squares of channels are transposed in registers; elements of a channel that is left over are gathered.
    """
    gather, rows = gathered(kind, lanes, "x", "at_x + c", "x2")
    return [
        "if begin2 < 0 or stop > extent2 or last1 - first1 < seen:",
        *indent(1, _zeros(kind, lanes, "0", "seen")),
        "lines = last1 - first1",
        "first2 = max(0, begin2)",
        "last2 = min(extent2, stop)",
        f"is_one = x1 == extent2 * x2 and {_IS_ONE}",
        "if is_one:",
        "    first2 = 0",
        "    last2 = lines * high2",
        "    lines = min(lines, 1)",
        f"left = channels - channels % {lanes}",
        "for h1 in range(first1, first1 + lines):",
        f"    for q in range(first2, last2, {lanes}):",
        f"        few = min({lanes}, last2 - q)",
        *indent(2, _place(lanes, "q")),
        "        at_x = source + h1 * x1 + q * x2",
        "        to = k0 * plane + h1 * high2 + q - begin2",
        f"        for c in range(0, left, {lanes}):",
        f"            corner = load_tile_{kind}(x, at_x + c, rows_{lanes}(0, few), x2, 0, {lanes})",
        f"            turned = transpose_{kind}(corner)",
        *indent(3, _taps_of(kind, f"rows_{lanes}(0, {lanes})", "turned")),
        "        for c in range(left, channels):",
        *indent(3, gather),
        *indent(3, _taps_of(kind, rows, "lane")),
    ]


def gathered(kind: str, lanes: int, x: str, at: str, step: str) -> tuple[list[str], str]:
    """Return the lines that bring `few` elements of x, from `at` on, into the tile `lane`, and the rows of the tile."""
    if lanes in _GATHERED:
        return [f"lane = (gather_x{lanes}({x}, {at}, {step}, few),)"], "rows_1(0, 1)"
    load = f"load_tile_{kind}({x}, {at}, rows_{lanes}(0, few), {step}, 0, 1)"
    return [f"lane = transpose_{kind}({load})"], f"rows_{lanes}(0, 1)"


def _taps_of(kind: str, rows: str, tile: str) -> list[str]:
    """Return the lines that store elements of channels from c on, from element q of a line on, for all taps."""
    return [
        "at = to + c * sheet",
        "i2 = begin2 - begun",
        "for k2 in range(taps2):",
        f"    store_where_{kind}(patch, at, {rows}, sheet, {tile}, column_of, place, i2, i2 + high2, few)",
        "    at += channels * sheet - dilation2",
        "    i2 += dilation2",
    ]


def _copy_any(kind: str, lanes: int) -> list[str]:
    return [
        *_zeros(kind, lanes, "0", "seen"),
        "for k2 in range(taps2):",
        "    i2 = begin2 + k2 * dilation2",
        "    for c in range(channels):",
        "        for h1 in range(first1, last1):",
        "            at = (k2 * channels + c) * sheet + k0 * plane + h1 * high2",
        "            at_x = source + c * x_channel + h1 * x1 + i2 * x2",
        "            for t in range(max(0, -i2), min(high2, extent2 - i2)):",
        "                patch[at + t] = x[at_x + t * x2]",
    ]


_COPIES = {"s": _copy_lines, "c": _copy_turned, "": _copy_any}


def _taps_inside() -> list[str]:
    """Return the lines that find the taps of the windows from i on that do not lie outside of x for all of them."""
    return [
        "begin1 = start1 - before1 + (end - 1) // high2",
        "low1 = max(0, (dilation1 - 1 - begin1) // dilation1)",
        "begin1 = start1 - before1 + i // high2",
        "top1 = min(taps1, (extent1 - 1 - begin1) // dilation1 + 1)",
    ]


def _tile(
    suffix: str, lanes: int, height: int, width: int, out_near: str, biased: bool, finish: Finish | None
) -> list[str]:
    """Return the lines that compute a tile of filters from j on and windows from i on."""
    kind = f"{suffix}x{width}"
    zero = f"zero_{kind}(rows)"
    if biased:
        zero = f"add_outer_{kind}({zero}, bias, g * filters + j, rows, 1, load_{kind}(ones, 0))"
    return [
        f"tile = {zero}",
        "first_w = g * w_group + j",
        "for k0 in range(low0, top0):",
        "    for k in range((k0 * taps1 + low1) * each, (k0 * taps1 + top1) * each):",
        f"        vector = load_{kind}(patch, seen_at[k] + i)",
        f"        tile = add_outer_{kind}(tile, w, first_w + filter_at[k], rows, 1, vector)",
        "base = image * out_image + start0 * out0 + start1 * out1 + start2 * out2 + (g * filters + j) * out_filter",
        *([] if finish is None else finish.lines(height)),
        *_STORES[out_near](suffix, lanes, height, width),
    ]


def _store_lines(suffix: str, lanes: int, height: int, width: int) -> list[str]:
    """Return the lines that store a tile where windows of the last axis are neighbours: line by line."""
    return [
        "long = high2",
        "if out1 == high2:  # lines of windows follow each other",
        "    long = windows",
        "for t in range(i // long, (end - 1) // long + 1):",
        f"    store_tile_{suffix}x{width}(out, base + t * out1 + i - t * long, rows, out_filter, tile, "
        f"max(0, t * long - i), min(end, (t + 1) * long) - i)",
    ]


def _store_turned(suffix: str, lanes: int, height: int, width: int) -> list[str]:
    kind = f"{suffix}x{lanes}"
    return [
        f"store_tile_{suffix}x{width}(square, 0, rows, {width}, tile, 0, {width})",
        f"for v in range(0, end - i, {lanes}):",
        f"    part = turn_{kind}(load_tile_{kind}(square, v, rows, {width}, 0, {lanes}))",
        f"    store_tile_{kind}(out, base, listed_{lanes}(outs, i + v, windows), 1, part, 0, {height})",
    ]


def _store_any(suffix: str, lanes: int, height: int, width: int) -> list[str]:
    return [
        f"store_tile_{suffix}x{width}(square, 0, rows, {width}, tile, 0, {width})",
        f"for u in range({height}):",
        "    at = base + u * out_filter",
        "    for t in range(end - i):",
        f"        out[at + outs[i + t]] = square[u * {width} + t]",
    ]


_STORES = {"s": _store_lines, "c": _store_turned, "": _store_any}


def kernel(launch: KernelLaunch, finish: Finish | None = None) -> Kernel:
    """Return the kernel of a launch of "laid_out"."""
    return laid_out(launch.pointers[-1].dtype, launch.numbers, len(launch.pointers) > 3, finish)
