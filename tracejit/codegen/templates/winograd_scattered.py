# SPDX-License-Identifier: BSD-3-Clause
"""Emission of convolutions by Winograd's method whose tiles are those of the input.

Note [scattered tiles]
The gradient by the input of windows of 5 by 5 without padding is a convolution of cotangents with 4 zeros around them:
of 8 by 8 cotangents, 12 by 12 elements in 18 tiles. As the adjoint of the forward steps it has the 8 tiles of the
cotangents: a tile becomes 48 values, these are multiplied by those of the filters, and the products become 6 by 8
elements, which are added to the result where it is (Note [products at points] in winograd.py has the other way).

A block is a part of the result. Tiles that add to it are summed in scratch memory (`patch`), some lines of them at a
time; what lies around the block is dropped, since the block beside it computes those tiles too. In the names of
arguments, x is the input, whose channels are summed over, and out the result, whose channels are filters.
"""

from functools import cache

from tracejit.codegen.templates.convolution import GEOMETRY, near
from tracejit.codegen.templates.tile_text import lanes_of, written
from tracejit.codegen.templates.winograd import COTANGENTS
from tracejit.codegen.templates.winograd_steps import DTYPE, Form, names_of, sizes_of, steps_of
from tracejit.passes.loops.launches import KernelLaunch
from tracejit.passes.loops.winograd import has_few_points, panel_of
from tracejit.program import Kernel

ARGUMENTS = (
    *GEOMETRY[:-5], "y_image", "y0", "y1", "y2", "y_filter", "w_group", "out_image", "out0", "out1", "out2",
    "out_filter", "images", "together", "most",
)  # fmt: skip

_SCATTER = """
PATCH
near = scratch_T(NEAR)
half = scratch_T(POINTS1 * POINTS * LANES)
result = scratch_T(RESULT)
SIZES
COUNTS
wide = (filters + LANES - 1) // LANES * LANES
for item in range(first, last):
    BLOCK
    begin = image * together
    end = min(begin + together, images)
    SEEN
    for g in range(groups):
        for above in range(top, max(bottom, top + 1), step):
            high = min(above + step, bottom) - above
            each = high * across
            tiles = (end - begin) * each
            apart = tiles * deep + LANES
            apart_products = tiles * broad + LANES
            products = VALUES * apart
            high1 = high * SIDE1
            high2 = across * SIDE
            real1 = extent1 - above * SIDE1
            real2 = extent2 - left * SIDE
            for image in range(begin, end):
                skipped = (image - begin) * each
                base = image * y_image + plane0 * y0 + above * SIDE1 * y1 + left * SIDE * y2 + g * channels * y_filter
                for f in range(0, channels, LANES):
                    several = min(LANES, channels - f)
                    BRING_COTANGENTS
                    to_tile = skipped * deep + f
                    TILES_OF_COTANGENTS
            MULTIPLY
            for image in range(begin, end):
                skipped = (image - begin) * each
                if above == top:
                    for p in range(0, lines * line, LANES):
                        store_tile_V(patch, p, rows_1(0, 1), 0, zero_V(rows_1(0, 1)), 0, LANES)
                ADD
                if above + step >= bottom:
                    base = image * out_image + start0 * out0 + start1 * out1 + start2 * out2 + g * filters * out_filter
                    STORE
"""

# The tiles that add to a block, in lines from `top` to `bottom` and from `left` to `right`; `skip` elements of what
# they span lie before the block.
_SEEN = """
plane0 = start0 - before0
seen1 = start1 + taps1 - 1 - before1
seen2 = start2 + taps2 - 1 - before2
top = max(0, (seen1 - POINTS1 + SIDE1) // SIDE1)
left = max(0, (seen2 - POINTS + SIDE) // SIDE)
bottom = max(top, min((extent1 + SIDE1 - 1) // SIDE1, (seen1 + high1 + SIDE1 - 1) // SIDE1))
across = max(0, min((extent2 + SIDE - 1) // SIDE, (seen2 + high2 + SIDE - 1) // SIDE) - left)
if plane0 < 0 or plane0 >= extent0:
    bottom = top
step = max(1, most // max(1, across))
skip1 = seen1 - top * SIDE1
skip2 = seen2 - left * SIDE
lines = max((bottom - top) * SIDE1 + POINTS1 - SIDE1, skip1 + high1)
line = max(across * SIDE + POINTS - SIDE, skip2 + high2) * wide
out_high1 = high1
out_high2 = high2
"""

_ADD = """
for t in range(each):
    at = ((above - top + t // across) * SIDE1) * line + t % across * SIDE * wide
    for f in range(0, filters, LANES):
        from_ = products + (skipped + t) * broad + f
        for j in range(POINTS):
            at_value = from_ + j * apart_products
            values = load_tile_V(near, at_value, rows_POINTS1(0, POINTS1), POINTS * apart_products, 0, LANES)
            values = winograd_seen_adjoint_BEFORE_V(values)
            store_tile_V(half, j * LANES, rows_POINTS1(0, POINTS1), POINTS * LANES, values, 0, LANES)
        for i in range(POINTS1):
            to = at + i * line + f
            values = load_tile_V(half, i * POINTS * LANES, rows_POINTS(0, POINTS), LANES, 0, LANES)
            values = winograd_seen_adjoint_LAST_V(values)
            values = add_tiles_V(values, load_tile_V(patch, to, rows_POINTS(0, POINTS), wide, 0, LANES))
            store_tile_V(patch, to, rows_POINTS(0, POINTS), wide, values, 0, LANES)
"""

_STORES = {
    "c": """
for t1 in range(out_high1):
    for t2 in range(out_high2):
        at = (skip1 + t1) * line + (skip2 + t2) * wide
        for f in range(0, filters, LANES):
            piece = load_tile_V(patch, at + f, rows_1(0, 1), 0, 0, LANES)
            to = base + t1 * out1 + t2 * out2 + f
            store_tile_V(out, to, rows_1(0, 1), 0, piece, 0, min(LANES, filters - f))
""",
    "s": """
for f in range(0, filters, LANES):
    several = min(LANES, filters - f)
    for t1 in range(out_high1):
        for t2 in range(0, out_high2, LANES):
            few = min(LANES, out_high2 - t2)
            at = (skip1 + t1) * line + (skip2 + t2) * wide + f
            corner = load_tile_V(patch, at, rows_LANES(0, few), wide, 0, LANES)
            to = base + t1 * out1 + t2 + f * out_filter
            store_tile_V(out, to, rows_LANES(0, several), out_filter, transpose_V(corner), 0, few)
""",
}


@cache
def _scattered(lanes: int, form: Form, panel: int, nears: tuple[str, str]) -> Kernel:
    snippets = {
        "SEEN": _SEEN,
        "BRING_COTANGENTS": COTANGENTS[nears[0]],
        "ADD": _ADD,
        "STORE": _STORES[nears[1]],
        **steps_of(form),
    }
    names = names_of(form) | sizes_of(form, lanes, panel) | {"TO_ROW": "deep", "TO_VALUE": "apart"}
    return written("winograd_scattered", _SCATTER, DTYPE, ARGUMENTS, "y w", "out", names, snippets)


def kernel(launch: KernelLaunch) -> Kernel:
    """Return the kernel of a launch of "winograd_scattered"."""
    given = dict(zip(ARGUMENTS, launch.numbers, strict=True))
    nears = (
        near(given["channels"], given["y_filter"], given["y2"]),
        near(given["filters"], given["out_filter"], given["out2"]),
    )
    form = Form((given["taps1"], given["taps2"]), few=has_few_points(given["channels"]))
    return _scattered(lanes_of(DTYPE), form, panel_of(given["filters"]), nears)
