# SPDX-License-Identifier: BSD-3-Clause
"""The steps of Winograd's method as text, for tiles of two axes and of one (Note [products at points] in winograd.py).

Each step multiplies by a matrix along the axis before the last, and then along the last one; what lies between is in
`half`. A tile of one axis has the second half alone: 6 values instead of 36. Windows whose taps are some elements
apart (dilation) have tiles of elements as far apart: a unit of 4 times as many windows holds as many tiles.
"""

import numpy as np

from tracejit.codegen.names import SUFFIXES
from tracejit.codegen.templates.tile_text import lanes_of
from tracejit.passes.loops.winograd import MOST_TILES, VALUES_BYTES, side_of, values_of

DTYPE = np.dtype(np.float32)
"""The only dtype that the method is for."""

_COUNTS = """
deep = (channels + LANES - 1) // LANES * LANES
broad = (filters + PANEL - 1) // PANEL * PANEL
"""

_TILES = """
real1 = high1
real2 = high2
across = (high2 + SIDE * dilation2 - 1) // (SIDE * dilation2) * dilation2
high1 = (high1 + SIDE1 * dilation1 - 1) // (SIDE1 * dilation1) * dilation1
each = high1 * across
high1 = high1 * SIDE1
high2 = across * SIDE
begin = image * together
end = min(begin + together, images)
tiles = (end - begin) * high0 * each
apart = (tiles + (taps0 - 1) * each) * deep + LANES
apart_products = tiles * broad + LANES
products = VALUES * apart
"""

# The first window of a tile; divisions take long.
_PLACE = """
down = t // across
right = t - down * across
if dilation1 * dilation2 > 1:
    down = down // dilation1 * dilation1 * (SIDE1 - 1) + down
    right = right // dilation2 * dilation2 * (SIDE - 1) + right
else:
    down *= SIDE1
    right *= SIDE
"""

_SEE = """
for plane0 in range(high0 + taps0 - 1):
    seen = (skipped + plane0 * each) * deep
    for t in range(each):
        PLACE
        at = plane0 * plane + down * line + right * channels
        for c in range(0, channels, LANES):
            SEE_TILE
        seen += deep
"""

_SEE_TILE = {
    True: """
for j in range(6):
    six = load_tile_V(patch, at + j * dilation2 * channels + c, rows_6(0, 6), dilation1 * line, 0, LANES)
    store_tile_V(half, j * LANES, rows_6(0, 6), 6 * LANES, winograd_seen_V(six), 0, LANES)
for i in range(6):
    six = load_tile_V(half, i * 6 * LANES, rows_6(0, 6), LANES, 0, LANES)
    store_tile_V(near, i * 6 * apart + seen + c, rows_6(0, 6), apart, winograd_seen_V(six), 0, LANES)
""",
    False: """
six = winograd_seen_V(load_tile_V(patch, at + c, rows_6(0, 6), dilation2 * channels, 0, LANES))
store_tile_V(near, seen + c, rows_6(0, 6), apart, six, 0, LANES)
""",
}

_MULTIPLY = """
for value in range(VALUES):
    for f in range(0, broad, WIDE):
        start_w = g * w_group + (value * broad + f // PANEL * PANEL) * channels + f % PANEL
        for i in range(0, tiles, HIGH):
            rows = rows_HIGH(i, tiles)
            tile = zero_W(rows)
            for k0 in range(taps0):
                at_w = start_w + k0 * VALUES * broad * channels
                at_x = value * apart + k0 * each * deep
                for k in range(channels):
                    tile = add_outer_W(tile, near, at_x + k, rows, deep, load_W(w, at_w + k * PANEL))
            store_tile_W(near, products + value * apart_products + f, rows, broad, tile, 0, WIDE)
"""

# Windows that a tile has beyond the block are not stored. A launch without a bias has the same kernel: it takes 0.7 s
# to compile.
_RESULTS = """
start = load_first_V(bias, g * filters + f, biased * min(LANES, filters - f))
at = products + (skipped + t0 * each + t) * broad + f
PLACE
rows_down = min(SIDE1, (real1 - down + dilation1 - 1) // dilation1) if right < real2 else 0
rows_across = rows_SIDE(0, min(SIDE, (real2 - right + dilation2 - 1) // dilation2))
BEFORE_RESULTS
BEFORE_FINISH
for i in range(rows_down):
    tile = winograd_sums_TAPS_V(PRODUCTS)
    tile = add_tiles_V(tile, filled_V(rows_SIDE(0, SIDE), start))
    FINISH
"""

_BEFORE_RESULTS = {
    True: """
for j in range(6):
    six = load_tile_V(near, at + j * apart_products, rows_6(0, 6), 6 * apart_products, 0, LANES)
    store_tile_V(half, j * LANES, rows_SIDE(0, SIDE), 6 * LANES, winograd_sums_TAPS_V(six), 0, LANES)
""",
    False: "",
}

_PRODUCTS = {
    True: "load_tile_V(half, i * 6 * LANES, rows_6(0, 6), LANES, 0, LANES)",
    False: "load_tile_V(near, at, rows_6(0, 6), apart_products, 0, LANES)",
}

_TILES_OF_COTANGENTS = """
for t in range(each):
    PLACE
    at = (down * high2 + right) * LANES
    COTANGENTS_OF_TILE
    to_tile += TO_ROW
"""

_COTANGENTS_OF_TILE = {
    True: """
apart_lines = dilation1 * high2 * LANES
for j in range(SIDE):
    few_rows = load_tile_V(result, at + j * dilation2 * LANES, rows_SIDE(0, SIDE), apart_lines, 0, LANES)
    six = winograd_sums_adjoint_TAPS_V(few_rows)
    store_tile_V(half, j * LANES, rows_6(0, 6), SIDE * LANES, six, 0, LANES)
for i in range(6):
    few_rows = load_tile_V(half, i * SIDE * LANES, rows_SIDE(0, SIDE), LANES, 0, LANES)
    six = winograd_sums_adjoint_TAPS_V(few_rows)
    store_tile_V(near, to_tile + i * 6 * TO_VALUE, rows_6(0, 6), TO_VALUE, six, 0, LANES)
""",
    False: """
few_rows = load_tile_V(result, at, rows_SIDE(0, SIDE), dilation2 * LANES, 0, LANES)
six = winograd_sums_adjoint_TAPS_V(few_rows)
store_tile_V(near, to_tile, rows_6(0, 6), TO_VALUE, six, 0, LANES)
""",
}

_FILTER = {
    True: """
for j in range(TAPS):
    tile = load_tile_V(w, at + j * w2, rows_TAPS(0, TAPS), w1, 0, few)
    store_tile_V(half, j * LANES, rows_6(0, 6), TAPS * LANES, winograd_filter_TAPS_V(tile), 0, LANES)
for i in range(6):
    tile = load_tile_V(half, i * TAPS * LANES, rows_TAPS(0, TAPS), LANES, 0, LANES)
    six = winograd_filter_TAPS_V(tile)
    store_tile_V(out, to + i * 6 * apart, rows_6(0, 6), apart, six, 0, LANES)
""",
    False: """
tile = load_tile_V(w, at, rows_TAPS(0, TAPS), w2, 0, few)
six = winograd_filter_TAPS_V(tile)
store_tile_V(out, to, rows_6(0, 6), apart, six, 0, LANES)
""",
}

_FILTER_SUMS = {
    True: """
for j in range(6):
    six = load_tile_V(x, at + j * apart, rows_6(0, 6), 6 * apart, 0, LANES)
    tile = winograd_filter_adjoint_TAPS_V(six)
    store_tile_V(half, j * LANES, rows_TAPS(0, TAPS), 6 * LANES, tile, 0, LANES)
for i in range(TAPS):
    six = load_tile_V(half, i * 6 * LANES, rows_6(0, 6), LANES, 0, LANES)
    tile = winograd_filter_adjoint_TAPS_V(six)
    store_tile_V(out, to + i * TAPS * channels * filters, rows_TAPS(0, TAPS), channels * filters, tile, 0, few)
""",
    False: """
tile = winograd_filter_adjoint_TAPS_V(load_tile_V(x, at, rows_6(0, 6), apart, 0, LANES))
store_tile_V(out, to, rows_TAPS(0, TAPS), channels * filters, tile, 0, few)
""",
}


def steps_of(taps1: int) -> dict[str, str]:
    """Return the steps by the names that stand for them, for windows of some taps along the axis before the last."""
    two = taps1 > 1
    return {
        "COUNTS": _COUNTS,
        "TILES": _TILES,
        "SEE": _SEE,
        "SEE_TILE": _SEE_TILE[two],
        "MULTIPLY": _MULTIPLY,
        "RESULTS": _RESULTS.replace("PRODUCTS", _PRODUCTS[two]),
        "BEFORE_RESULTS": _BEFORE_RESULTS[two],
        "TILES_OF_COTANGENTS": _TILES_OF_COTANGENTS,
        "COTANGENTS_OF_TILE": _COTANGENTS_OF_TILE[two],
        "FILTER": _FILTER[two],
        "FILTER_SUMS": _FILTER_SUMS[two],
        "PLACE": _PLACE,
    }


def names_of(taps1: int, taps2: int) -> dict[str, int | str]:
    """Return what names in capitals stand for, for windows of some taps along the last two axes."""
    transforms = ("winograd_sums", "winograd_filter", "winograd_sums_adjoint", "winograd_filter_adjoint")
    return {
        "TAPS": taps2, "SIDE": side_of(taps2), "SIDE1": side_of(taps1), "VALUES": values_of((1, taps1, taps2)),
        **{f"{name}_TAPS_V": f"{name}_{taps2}_{SUFFIXES[DTYPE]}x{lanes_of(DTYPE)}" for name in transforms},
    }  # fmt: skip


def scratch_of(taps: tuple[int, int], lanes: int) -> dict[str, int | str]:
    """Return the elements of scratch memory by the names that stand for them."""
    windows = side_of(taps[0]) * side_of(taps[1])
    return {"NEAR": VALUES_BYTES // DTYPE.itemsize, "RESULT": MOST_TILES * windows * lanes}
