# SPDX-License-Identifier: BSD-3-Clause
"""The steps of Winograd's method as text, for tiles of two axes and of one (Note [products at points] in winograd.py).

Each step multiplies by a matrix along the axis before the last, and then along the last one; the values in between are
in `half`. A tile of one axis has the second half only: 6 values instead of 36. Windows whose taps are d elements apart
(dilation) have tiles of elements d apart: a unit of 4 d windows holds d tiles.
"""

from math import prod

import numpy as np

from tracejit.codegen.names import SUFFIXES
from tracejit.codegen.templates.convolution import block, patch_of, sizes
from tracejit.codegen.templates.tile_text import lanes_of
from tracejit.passes.loops import winograd_phases
from tracejit.passes.loops.windows import PATCH_BYTES
from tracejit.passes.loops.winograd import MOST_TILES, VALUES_BYTES, points_along, sides_of, values_of
from tracejit.util.named_tuples import NamedTuple

DTYPE = np.dtype(np.float32)
"""The only dtype that the method is for."""


class Form(NamedTuple):
    """The windows that kernels of tiles are written for.

    taps        of windows of a tile along the last two axes
    few         whether tiles have as many points along the last axis as along the other
    phases      "seen" where windows move by 2, "made" where a result is made in phases (Note [phases at points]), or ""
    """

    taps: tuple[int, int]
    phases: str = ""
    few: bool = False

    @property
    def sides(self) -> tuple[int, int]:
        """The windows of a tile along the last two axes."""
        return sides_of(self.taps, self.few)

    @property
    def patch_bytes(self) -> int:
        """The bytes of what a block spans."""
        return winograd_phases.PATCH_BYTES if self.phases else PATCH_BYTES

    @property
    def phase_count(self) -> int:
        """The number of phases."""
        return 4 if self.phases else 1


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
apart = SEEN_TILES * deep + LANES
apart_products = tiles * PARTS * broad + LANES
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
for phase in range(PHASES):
    for plane0 in range(high0 + taps0 - 1):
        seen = (phase * tiles + skipped + plane0 * each) * deep
        for t in range(each):
            PLACE
            at = plane0 * plane + (SEEN_STRIDE * down + PHASE1) * line + (SEEN_STRIDE * right + PHASE2) * channels
            for c in range(0, channels, LANES):
                SEE_TILE
            seen += deep
"""

_SEE_TILE = {
    True: """
for j in range(POINTS):
    values = load_tile_V(patch, at + j * APART2 * channels + c, rows_POINTS1(0, POINTS1), APART1 * line, 0, LANES)
    store_tile_V(half, j * LANES, rows_POINTS1(0, POINTS1), POINTS * LANES, winograd_seen_BEFORE_V(values), 0, LANES)
for i in range(POINTS1):
    values = load_tile_V(half, i * POINTS * LANES, rows_POINTS(0, POINTS), LANES, 0, LANES)
    values = winograd_seen_LAST_V(values)
    store_tile_V(near, i * POINTS * apart + seen + c, rows_POINTS(0, POINTS), apart, values, 0, LANES)
""",
    False: """
values = winograd_seen_LAST_V(load_tile_V(patch, at + c, rows_POINTS(0, POINTS), dilation2 * channels, 0, LANES))
store_tile_V(near, seen + c, rows_POINTS(0, POINTS), apart, values, 0, LANES)
""",
}

_MULTIPLY = """
for value in range(VALUES):
    for part in range(PARTS):
        OTHER_THAN_ZERO
        for f in range(0, broad, WIDE):
            start_w = g * w_group + ((part * VALUES + value) * broad + f // PANEL * PANEL) * channels + f % PANEL
            for i in range(0, tiles, HIGH):
                rows = rows_HIGH(i, tiles)
                tile = zero_W(rows)
                for k0 in SUMMED:
                    at_w = start_w + k0 * VALUES * broad * channels
                    at_x = value * apart + SEEN_PLANE * deep
                    for k in range(channels):
                        tile = add_outer_W(tile, near, at_x + k, rows, deep, load_W(w, at_w + k * PANEL))
                to = products + value * apart_products + part * broad + f
                store_tile_W(near, to, rows, PARTS * broad, tile, 0, WIDE)
"""

# The phases whose filters are not all zero at a value (Note [phases at points]).
_OTHER_THAN_ZERO = {
    "": "",
    "seen": """
beyond = 2 if halves and value >= VALUES - POINTS else 4
every = 2 if halves and value % POINTS == POINTS - 1 else 1
""",
    "made": """
beyond = 1
if halves and (value >= VALUES - POINTS and part >= 2 or value % POINTS == POINTS - 1 and part % 2 == 1):
    beyond = 0
""",
}

# Where a phase begins in what a tile sees, and the place of its values. A result begins with the second phase if it is
# `odd`; then windows of the other one are one further on, and there are four `shifts`.
_PHASE1 = {"": "0", "seen": "phase // 2", "made": "odd1 * (phase // 2)"}
_PHASE2 = {"": "0", "seen": "phase % 2", "made": "odd2 * (phase % 2)"}
_SEEN_PLANE = {"": "k0 * each", "seen": "k0 * tiles", "made": "part % shifts * tiles"}
_SUMMED = {"": "range(taps0)", "seen": "range(0, beyond, every)", "made": "range(beyond)"}

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
    tile = winograd_sums_LAST_V(PRODUCTS)
    tile = add_tiles_V(tile, filled_V(rows_SIDE(0, SIDE), start))
    FINISH
"""

_BEFORE_RESULTS = {
    True: """
for j in range(POINTS):
    values = load_tile_V(near, at + j * apart_products, rows_POINTS1(0, POINTS1), POINTS * apart_products, 0, LANES)
    store_tile_V(half, j * LANES, rows_SIDE1(0, SIDE1), POINTS * LANES, winograd_sums_BEFORE_V(values), 0, LANES)
""",
    False: "",
}

_PRODUCTS = {
    True: "load_tile_V(half, i * POINTS * LANES, rows_POINTS(0, POINTS), LANES, 0, LANES)",
    False: "load_tile_V(near, at, rows_POINTS(0, POINTS), apart_products, 0, LANES)",
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
    few_rows = load_tile_V(result, at + j * dilation2 * LANES, rows_SIDE1(0, SIDE1), apart_lines, 0, LANES)
    values = winograd_sums_adjoint_BEFORE_V(few_rows)
    store_tile_V(half, j * LANES, rows_POINTS1(0, POINTS1), SIDE * LANES, values, 0, LANES)
for i in range(POINTS1):
    few_rows = load_tile_V(half, i * SIDE * LANES, rows_SIDE(0, SIDE), LANES, 0, LANES)
    values = winograd_sums_adjoint_LAST_V(few_rows)
    store_tile_V(near, to_tile + i * POINTS * TO_VALUE, rows_POINTS(0, POINTS), TO_VALUE, values, 0, LANES)
""",
    False: """
few_rows = load_tile_V(result, at, rows_SIDE(0, SIDE), dilation2 * LANES, 0, LANES)
values = winograd_sums_adjoint_LAST_V(few_rows)
store_tile_V(near, to_tile, rows_POINTS(0, POINTS), TO_VALUE, values, 0, LANES)
""",
}

# The taps of a phase, those beyond the filter as zeros.
_TAKEN = """
for i in range(TAPS):
    for j in range(TAPS):
        k1 = i * STRIDE + k0 // 2
        k2 = j * STRIDE + k0 % 2
        lanes = few if k1 < taps1 and k2 < taps2 else 0
        tap = load_tile_V(w, at + k1 * w1 + k2 * w2, rows_1(0, 1), 0, 0, lanes)
        store_tile_V(taken, (i * TAPS + j) * LANES, rows_1(0, 1), 0, tap, 0, LANES)
"""

_FILTER = {
    True: """
for j in range(TAPS):
    tile = LOAD_TAPS
    store_tile_V(half, j * LANES, rows_POINTS1(0, POINTS1), TAPS * LANES, winograd_filter_BEFORE_V(tile), 0, LANES)
for i in range(POINTS1):
    tile = load_tile_V(half, i * TAPS * LANES, rows_TAPS(0, TAPS), LANES, 0, LANES)
    values = winograd_filter_LAST_V(tile)
    store_tile_V(out, to + i * POINTS * apart, rows_POINTS(0, POINTS), apart, values, 0, LANES)
""",
    False: """
tile = load_tile_V(w, at, rows_TAPS(0, TAPS), w2, 0, few)
values = winograd_filter_LAST_V(tile)
store_tile_V(out, to, rows_POINTS(0, POINTS), apart, values, 0, LANES)
""",
}

_FILTER_SUMS = {
    True: """
for j in range(POINTS):
    values = load_tile_V(x, at + j * apart, rows_POINTS1(0, POINTS1), POINTS * apart, 0, LANES)
    tile = winograd_filter_adjoint_BEFORE_V(values)
    store_tile_V(half, j * LANES, rows_TAPS(0, TAPS), POINTS * LANES, tile, 0, LANES)
for i in range(TAPS):
    values = load_tile_V(half, i * POINTS * LANES, rows_POINTS(0, POINTS), LANES, 0, LANES)
    tile = winograd_filter_adjoint_LAST_V(values)
    STORE_TAPS
""",
    False: """
tile = winograd_filter_adjoint_LAST_V(load_tile_V(x, at, rows_POINTS(0, POINTS), apart, 0, LANES))
store_tile_V(out, to, rows_TAPS(0, TAPS), channels * filters, tile, 0, few)
""",
}


_LOAD_TAPS = {
    False: "load_tile_V(w, at + j * w2, rows_TAPS(0, TAPS), w1, 0, few)",
    True: "load_tile_V(taken, j * LANES, rows_TAPS(0, TAPS), TAPS * LANES, 0, LANES)",
}
_STORE_TAPS = {
    False: """
store_tile_V(out, to + i * TAPS * channels * filters, rows_TAPS(0, TAPS), channels * filters, tile, 0, few)
""",
    True: """
k1 = i * STRIDE + k0 // 2
lanes = few if k1 < taps1 else 0
at_tap = to + (k1 * taps2 + k0 % 2) * channels * filters
beyond = (taps2 - k0 % 2 + 1) // STRIDE
store_tile_V(out, at_tap, rows_TAPS(0, beyond), STRIDE * channels * filters, tile, 0, lanes)
""",
}


def summed(form: Form) -> str:
    """Return over what products of a value are summed: planes, or phases."""
    return _SUMMED[form.phases]


def steps_of(form: Form) -> dict[str, str]:
    """Return the steps by the names that stand for them."""
    two, parted = form.taps[0] > 1, bool(form.phases)
    return {
        "PATCH": "\n".join(patch_of(DTYPE, form.patch_bytes)),
        "SIZES": "\n".join(sizes()),
        "BLOCK": "\n".join(block()),
        "COUNTS": _COUNTS,
        "TILES": _TILES,
        "SEE": _SEE,
        "SEE_TILE": _SEE_TILE[two],
        "MULTIPLY": _MULTIPLY.replace("SUMMED", summed(form)),
        "OTHER_THAN_ZERO": _OTHER_THAN_ZERO[form.phases],
        "RESULTS": _RESULTS.replace("PRODUCTS", _PRODUCTS[two]),
        "BEFORE_RESULTS": _BEFORE_RESULTS[two],
        "TILES_OF_COTANGENTS": _TILES_OF_COTANGENTS,
        "COTANGENTS_OF_TILE": _COTANGENTS_OF_TILE[two],
        "SCRATCH": "taken = scratch_T(TAPS * TAPS * LANES)" if parted else "",
        "TAKEN": _TAKEN if parted else "",
        "FILTER": _FILTER[two].replace("LOAD_TAPS", _LOAD_TAPS[parted]),
        "FILTER_SUMS": _FILTER_SUMS[two],
        "STORE_TAPS": _STORE_TAPS[parted],
        "PLACE": _PLACE,
    }


def names_of(form: Form) -> dict[str, int | str]:
    """Return what names in capitals stand for."""
    transforms = ("winograd_sums", "winograd_filter", "winograd_sums_adjoint", "winograd_filter_adjoint")
    of_elements = ("winograd_seen", "winograd_seen_adjoint")
    taps1, taps2 = form.taps
    kind = f"{SUFFIXES[DTYPE]}x{lanes_of(DTYPE)}"
    points1, points2 = points_along((taps2, taps2), form.few)
    side1, side2 = form.sides
    seen = form.phases == "seen"
    by_phases: dict[str, int | str] = {"": 1, "seen": 4, "made": "shifts"}
    phases = by_phases[form.phases]
    return {
        "TAPS": taps2, "SIDE": side2, "SIDE1": side1, "VALUES": values_of((1, taps1, taps2), form.few),
        "POINTS": points2, "POINTS1": points1,
        "PHASES": phases, "PARTS": 4 if form.phases == "made" else 1, "ALL_PHASES": form.phase_count,
        "STRIDE": 2 if form.phases else 1, "SEEN_STRIDE": 2 if seen else 1,
        "APART1": 2 if seen else "dilation1", "APART2": 2 if seen else "dilation2",
        "PHASE1": _PHASE1[form.phases], "PHASE2": _PHASE2[form.phases], "SEEN_PLANE": _SEEN_PLANE[form.phases],
        "SEEN_TILES": f"({phases} * tiles)" if form.phases else "(tiles + (taps0 - 1) * each)",
        **{
            f"{name}_{axis}_V": f"{name}_{number}_{kind}"
            for axis, points in (("BEFORE", points1), ("LAST", points2))
            for names, number in ((of_elements, f"{points}"), (transforms, f"{taps2}_{points}"))
            for name in names
        },
    }  # fmt: skip


def sizes_of(form: Form, lanes: int, panel: int) -> dict[str, int | str]:
    """Return the elements of scratch memory, and of panels of filters, by the names that stand for them."""
    windows = prod(form.sides)
    size = winograd_phases.VALUES_BYTES if form.phases else VALUES_BYTES
    parts = 4 if form.phases == "made" else 1
    wide = min(panel, 2 * lanes)
    return {
        "NEAR": size // DTYPE.itemsize,
        "RESULT": MOST_TILES * windows * lanes * parts,
        "PANEL": panel,
        "WIDE": wide,
        "W": f"{SUFFIXES[DTYPE]}x{wide}",
    }
