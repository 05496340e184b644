# SPDX-License-Identifier: BSD-3-Clause
"""Emission of convolutions of 3 by 3 taps by Winograd's method (kernels/winograd.py), and of their gradient by filters.

Note [products at points]
A tile is 4 by 4 windows of 3 by 3 taps, or 2 by 2 of 5 by 5. A block of windows of an image, or of several small
images, is padded to whole tiles and brought into scratch memory as in Note [windows] in convolution.py. The 6 by 6
elements that a tile sees become 36 values (`near`, one matrix of tiles by channels for each value). Each matrix is
multiplied by that of the filters, which a kernel before has made: panels as wide as a tile of registers, channel by
channel. The 36 products of a tile become its results. Taps of the axis before are planes, whose products are summed:
what the next plane sees is further on. Blocks are so small that all of it stays in the second cache. Matrices are a
vector more apart than they have elements, because lines whose distance is a power of two would share a few places of
the first cache.

The gradient by the filters goes the same way back: what a tile sees becomes 36 values as before, cotangents become 36,
and their products are summed over tiles, blocks and images. At the end, a kernel makes filters of the sums.
"""

from functools import cache

import numpy as np

from tracejit.codegen.names import SUFFIXES
from tracejit.codegen.templates.convolution import GEOMETRY, block, bring_in, near, patch_of, sizes
from tracejit.codegen.templates.kernel_text import Finish
from tracejit.codegen.templates.tile_text import lanes_of, written
from tracejit.passes.loops.launches import KernelLaunch
from tracejit.passes.loops.winograd import MOST_TILES, VALUES_BYTES, panel_of, side_of
from tracejit.program import Kernel

WINOGRAD_ARGUMENTS = (
    *GEOMETRY, "w_group", "out_image", "out0", "out1", "out2", "out_filter", "images", "together",
    "biased",
)  # fmt: skip
WEIGHTS_ARGUMENTS = (*GEOMETRY, "y_image", "y0", "y1", "y2", "y_filter", "images", "together")
SUMS_ARGUMENTS = ("first", "last", "planes", "taps", "channels", "filters")
FILTERS_ARGUMENTS = (*SUMS_ARGUMENTS, "w_group", "w0", "w1", "w2", "w_channel")

COUNTS = """
deep = (channels + LANES - 1) // LANES * LANES
broad = (filters + PANEL - 1) // PANEL * PANEL
"""

_TILES = """
real1 = high1
real2 = high2
across = (high2 + SIDE - 1) // SIDE
each = (high1 + SIDE - 1) // SIDE * across
high1 = (high1 + SIDE - 1) // SIDE * SIDE
high2 = across * SIDE
begin = image * together
end = min(begin + together, images)
tiles = (end - begin) * high0 * each
apart = (tiles + (taps0 - 1) * each) * deep + LANES
apart_products = tiles * broad + LANES
products = 36 * apart
"""

_SEE = """
for plane0 in range(high0 + taps0 - 1):
    seen = (skipped + plane0 * each) * deep
    for t in range(each):
        at = plane0 * plane + t // across * SIDE * line + t % across * SIDE * channels
        for c in range(0, channels, LANES):
            for j in range(6):
                six = load_tile_V(patch, at + j * channels + c, rows_6(0, 6), line, 0, LANES)
                store_tile_V(half, j * LANES, rows_6(0, 6), 6 * LANES, winograd_seen_V(six), 0, LANES)
            for i in range(6):
                six = load_tile_V(half, i * 6 * LANES, rows_6(0, 6), LANES, 0, LANES)
                store_tile_V(near, i * 6 * apart + seen + c, rows_6(0, 6), apart, winograd_seen_V(six), 0, LANES)
        seen += deep
"""

MULTIPLY = """
for value in range(36):
    for f in range(0, broad, WIDE):
        start_w = g * w_group + (value * broad + f // PANEL * PANEL) * channels + f % PANEL
        for i in range(0, tiles, HIGH):
            rows = rows_HIGH(i, tiles)
            tile = zero_W(rows)
            for k0 in range(taps0):
                at_w = start_w + k0 * 36 * broad * channels
                at_x = value * apart + k0 * each * deep
                for k in range(channels):
                    tile = add_outer_W(tile, near, at_x + k, rows, deep, load_W(w, at_w + k * PANEL))
            store_tile_W(near, products + value * apart_products + f, rows, broad, tile, 0, WIDE)
"""

# A launch without a bias has the same kernel: it takes 0.7 s to compile.
_RESULTS = """
start = load_first_V(bias, g * filters + f, biased * min(LANES, filters - f))
at = products + (skipped + t0 * each + t) * broad + f
for j in range(6):
    six = load_tile_V(near, at + j * apart_products, rows_6(0, 6), 6 * apart_products, 0, LANES)
    store_tile_V(half, j * LANES, rows_SIDE(0, SIDE), 6 * LANES, winograd_sums_TAPS_V(six), 0, LANES)
down = t // across * SIDE
right = t % across * SIDE
rows_across = rows_SIDE(0, min(SIDE, real2 - right))
BEFORE_FINISH
for i in range(min(SIDE, real1 - down)):
    tile = winograd_sums_TAPS_V(load_tile_V(half, i * 6 * LANES, rows_6(0, 6), LANES, 0, LANES))
    tile = add_tiles_V(tile, filled_V(rows_SIDE(0, SIDE), start))
    FINISH
"""

_STORE_CHANNELS = """
for t in range(each):
    for f in range(0, filters, LANES):
        few = min(LANES, filters - f)
        RESULTS
            store_tile_V(out, base + (down + i) * out1 + right * out2 + f, rows_across, out2, tile, 0, few)
"""

_STORE_TURNED = """
for f in range(0, filters, LANES):
    several = min(LANES, filters - f)
    for t in range(each):
        RESULTS
            store_tile_V(result, ((down + i) * real2 + right) * LANES, rows_across, LANES, tile, 0, LANES)
    lines = real1
    width = real2
    if out1 == real2:
        lines = 1
        width = real1 * real2
    for t1 in range(lines):
        for t in range(0, width, LANES):
            few = min(LANES, width - t)
            done = load_tile_V(result, (t1 * width + t) * LANES, rows_LANES(0, few), LANES, 0, LANES)
            to = base + t1 * out1 + f * out_filter + t
            store_tile_V(out, to, rows_LANES(0, several), out_filter, transpose_V(done), 0, few)
"""

_CLEAR = """
for p in range(0, groups * taps0 * 36 * channels * broad, WIDE):
    store_tile_W(out, p, rows_1(0, 1), 0, zero_W(rows_1(0, 1)), 0, WIDE)
"""

_SPREAD = """
for t0 in range(high0):
    base = image * y_image + (start0 + t0) * y0 + start1 * y1 + start2 * y2 + g * filters * y_filter
    for f in range(0, filters, LANES):
        several = min(LANES, filters - f)
        BRING_COTANGENTS
        to_tile = products + (skipped + t0 * each) * broad + f
        TILES_OF_COTANGENTS
"""

TILES_OF_COTANGENTS = """
for t in range(each):
    at = (t // across * SIDE * high2 + t % across * SIDE) * LANES
    for j in range(SIDE):
        few_rows = load_tile_V(result, at + j * LANES, rows_SIDE(0, SIDE), high2 * LANES, 0, LANES)
        six = winograd_sums_adjoint_TAPS_V(few_rows)
        store_tile_V(half, j * LANES, rows_6(0, 6), SIDE * LANES, six, 0, LANES)
    for i in range(6):
        few_rows = load_tile_V(half, i * SIDE * LANES, rows_SIDE(0, SIDE), LANES, 0, LANES)
        six = winograd_sums_adjoint_TAPS_V(few_rows)
        store_tile_V(near, to_tile + i * 6 * TO_VALUE, rows_6(0, 6), TO_VALUE, six, 0, LANES)
    to_tile += TO_ROW
"""

# Windows beyond the image, which fill up tiles, have cotangents of 0.
COTANGENTS = {
    "c": """
for t1 in range(high1):
    for t2 in range(high2):
        few = several if t1 < real1 and t2 < real2 else 0
        piece = load_tile_V(y, base + t1 * y1 + t2 * y2 + f, rows_1(0, 1), 0, 0, few)
        store_tile_V(result, (t1 * high2 + t2) * LANES, rows_1(0, 1), 0, piece, 0, LANES)
""",
    "s": """
for t1 in range(high1):
    for t2 in range(0, high2, LANES):
        few = min(LANES, real2 - t2) if t1 < real1 else 0
        corner = load_tile_V(y, base + t1 * y1 + t2 + f * y_filter, rows_LANES(0, several), y_filter, 0, few)
        to = (t1 * high2 + t2) * LANES
        store_tile_V(result, to, rows_LANES(0, min(LANES, high2 - t2)), LANES, transpose_V(corner), 0, LANES)
""",
}

_ADD = """
for k0 in range(taps0):
    for value in range(36):
        for f in range(0, broad, WIDE):
            for c in range(0, channels, HIGH):
                rows = rows_HIGH(c, channels)
                tile = zero_W(rows)
                at = products + value * apart_products + f
                at_x = value * apart + k0 * each * deep
                for t in range(tiles):
                    tile = add_outer_W(tile, near, at_x + t * deep, rows, 1, load_W(near, at + t * broad))
                to = ((g * taps0 + k0) * 36 + value) * channels * broad + f
                tile = add_tiles_W(tile, load_tile_W(out, to, rows, broad, 0, WIDE))
                store_tile_W(out, to, rows, broad, tile, 0, WIDE)
"""

_FILTERS = """
COUNTS
half = scratch_T(6 * TAPS * LANES)
for item in range(first, last):
    g = item // (planes * channels)
    k0 = item // channels % planes
    c = item % channels
    for f in range(0, broad, LANES):
        few = max(0, min(LANES, filters - f))
        at = g * w_group + k0 * w0 + c * w_channel + f
        for j in range(TAPS):
            tile = load_tile_V(w, at + j * w2, rows_TAPS(0, TAPS), w1, 0, few)
            store_tile_V(half, j * LANES, rows_6(0, 6), TAPS * LANES, winograd_filter_TAPS_V(tile), 0, LANES)
        to = (item // channels * 36 * broad + f // PANEL * PANEL) * channels + c * PANEL + f % PANEL
        for i in range(6):
            tile = load_tile_V(half, i * TAPS * LANES, rows_TAPS(0, TAPS), LANES, 0, LANES)
            six = winograd_filter_TAPS_V(tile)
            store_tile_V(out, to + i * 6 * broad * channels, rows_6(0, 6), broad * channels, six, 0, LANES)
"""

_SUMS = """
COUNTS
half = scratch_T(6 * TAPS * LANES)
apart = channels * broad
for item in range(first, last):
    c = item % channels
    for f in range(0, filters, LANES):
        few = min(LANES, filters - f)
        at = (item // channels * 36 * channels + c) * broad + f
        for j in range(6):
            six = load_tile_V(x, at + j * apart, rows_6(0, 6), 6 * apart, 0, LANES)
            tile = winograd_filter_adjoint_TAPS_V(six)
            store_tile_V(half, j * LANES, rows_TAPS(0, TAPS), 6 * LANES, tile, 0, LANES)
        for i in range(TAPS):
            six = load_tile_V(half, i * 6 * LANES, rows_6(0, 6), LANES, 0, LANES)
            tile = winograd_filter_adjoint_TAPS_V(six)
            to = ((item // channels * TAPS + i) * TAPS * channels + c) * filters + f
            store_tile_V(out, to, rows_TAPS(0, TAPS), channels * filters, tile, 0, few)
"""

_BLOCKS = """
PATCH
near = scratch_T(VALUES)
half = scratch_T(36 * LANES)
result = scratch_T(RESULT)
SIZES
COUNTS
CLEAR
for item in range(first, last):
    BLOCK
    TILES
    for g in range(groups):
        for image in range(begin, end):
            skipped = (image - begin) * high0 * each
            BRING_IN
            SEE
            SPREAD
        WORK
"""

_FORWARD = """
MULTIPLY
for image in range(begin, end):
    skipped = (image - begin) * high0 * each
    for t0 in range(high0):
        base = image * out_image + (start0 + t0) * out0 + start1 * out1 + start2 * out2 + g * filters * out_filter
        STORE
"""

DTYPE = np.dtype(np.float32)


@cache
def _filters(lanes: int, name: str, taps: int, panel: int) -> Kernel:
    """Return the kernel that makes values of filters, or filters of sums of products."""
    names, snippets = names_of(taps) | {"PANEL": panel}, {"COUNTS": COUNTS}
    if name == "winograd_filters":
        return written(name, _FILTERS, DTYPE, FILTERS_ARGUMENTS, "w", "out", names, snippets)
    return written(name, _SUMS, DTYPE, SUMS_ARGUMENTS, "x", "out", names, snippets)


def names_of(taps: int) -> dict[str, int | str]:
    """Return what names in capitals stand for."""
    transforms = ("winograd_sums", "winograd_filter", "winograd_sums_adjoint", "winograd_filter_adjoint")
    return {
        "TAPS": taps, "SIDE": side_of(taps),
        **{f"{name}_TAPS_V": f"{name}_{taps}_{SUFFIXES[DTYPE]}x{lanes_of(DTYPE)}" for name in transforms},
    }  # fmt: skip


@cache
def _blocks(
    lanes: int, taps: int, panel: int, nears: tuple[str, str], weights: bool, finish: Finish | None
) -> Kernel:
    """Return the kernel of a convolution, or of its gradient by filters, for what is near in x and in y."""
    x_near, y_near = nears
    snippets = {
        "WORK": _ADD if weights else _FORWARD,
        "MULTIPLY": MULTIPLY,
        "STORE": _STORE_CHANNELS if y_near == "c" else _STORE_TURNED,
        "RESULTS": _RESULTS,
        "BEFORE_FINISH": "" if finish is None else "\n".join(finish.outer),
        "FINISH": "" if finish is None else "\n".join(finish.rows(side_of(taps))),
        "SPREAD": _SPREAD if weights else "",
        "BRING_COTANGENTS": COTANGENTS[y_near],
        "TILES_OF_COTANGENTS": TILES_OF_COTANGENTS,
        "PATCH": "\n".join(patch_of(DTYPE)),
        "SIZES": "\n".join(sizes()),
        "COUNTS": COUNTS,
        "CLEAR": _CLEAR if weights else "",
        "BLOCK": "\n".join(block()),
        "TILES": _TILES,
        "BRING_IN": "\n".join(bring_in(DTYPE, x_near)),
        "SEE": _SEE,
    }
    wide = min(panel, 2 * lanes)
    names = names_of(taps) | {
        "PANEL": panel, "WIDE": wide, "W": f"{SUFFIXES[DTYPE]}x{wide}",
        "VALUES": VALUES_BYTES // DTYPE.itemsize, "RESULT": MOST_TILES * side_of(taps) ** 2 * lanes,
        "TO_ROW": "broad", "TO_VALUE": "apart_products",
    }  # fmt: skip
    if weights:
        return written("winograd_weights", _BLOCKS, DTYPE, WEIGHTS_ARGUMENTS, "x y", "out", names, snippets)
    stem = "winograd" if finish is None else f"winograd_{finish.stem}"
    return written(stem, _BLOCKS, DTYPE, WINOGRAD_ARGUMENTS, "x w bias", "out", names, snippets, finish)


def kernel(launch: KernelLaunch, finish: Finish | None = None) -> Kernel:
    """Return the kernel of a launch of "winograd", "winograd_weights", "winograd_filters" or "winograd_sums"."""
    lanes = lanes_of(DTYPE)
    if launch.name in ("winograd_filters", "winograd_sums"):
        return _filters(lanes, launch.name, launch.numbers[3], panel_of(launch.numbers[5]))
    weights = launch.name == "winograd_weights"
    given = dict(zip(WEIGHTS_ARGUMENTS if weights else WINOGRAD_ARGUMENTS, launch.numbers, strict=True))
    own, last = (given["y_filter"], given["y2"]) if weights else (given["out_filter"], given["out2"])
    nears = near(given["channels"], given["x_channel"], given["x2"]), near(given["filters"], own, last)
    return _blocks(lanes, given["taps2"], panel_of(given["filters"]), nears, weights, finish)
