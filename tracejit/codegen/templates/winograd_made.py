# SPDX-License-Identifier: BSD-3-Clause
"""Emission of convolutions by Winograd's method whose results are made in phases, by windows that move by two.

See Note [phases at points] in passes/loops/winograd_phases.py. A block is some windows of a phase, and as many of the
others. In scratch memory (`result`) the results of all phases lie beside each other, for a vector of filters at a time.
In the names of arguments, x is what comes in, the cotangents of a convolution, and out the result.
"""

from functools import cache

from tracejit.codegen.templates.convolution import GEOMETRY, bring_in, near
from tracejit.codegen.templates.tile_text import lanes_of, written
from tracejit.codegen.templates.winograd_steps import DTYPE, Form, names_of, sizes_of, steps_of
from tracejit.passes.loops.launches import KernelLaunch
from tracejit.passes.loops.winograd import panel_of
from tracejit.program import Kernel

ARGUMENTS = (
    *GEOMETRY, "w_group", "out_image", "out0", "out1", "out2", "out_filter", "result1", "result2", "odd1", "odd2",
    "images", "together", "halves",
)  # fmt: skip

_MADE = """
PATCH
near = scratch_T(NEAR)
half = scratch_T(POINTS * POINTS * LANES)
result = scratch_T(RESULT)
SIZES
COUNTS
shifts = 4 if odd1 + odd2 > 0 else 1
for item in range(first, last):
    BLOCK
    TILES
    made1 = min(result1 - 2 * start1, 2 * real1)
    made2 = min(result2 - 2 * start2, 2 * real2)
    wide = 2 * high2
    for g in range(groups):
        for image in range(begin, end):
            skipped = (image - begin) * high0 * each
            BRING_IN
            SEE
        MULTIPLY
        for image in range(begin, end):
            skipped = (image - begin) * high0 * each
            for t0 in range(high0):
                base = image * out_image + (start0 + t0) * out0 + g * filters * out_filter
                base += 2 * start1 * out1 + 2 * start2 * out2
                for f in range(0, filters, LANES):
                    several = min(LANES, filters - f)
                    for t in range(each):
                        PLACE
                        PHASES_OF_TILE
                    STORE
"""

_PHASES_OF_TILE = """
for part in range(PARTS):
    at = products + ((skipped + t0 * each + t) * PARTS + part) * broad + f
    BEFORE_RESULTS
    first1 = 2 * down + (part // 2 if odd1 else 1 - part // 2)
    first2 = 2 * right + (part % 2 if odd2 else 1 - part % 2)
    for i in range(SIDE1):
        tile = winograd_sums_LAST_V(load_tile_V(half, i * POINTS * LANES, rows_POINTS(0, POINTS), LANES, 0, LANES))
        STORE_ROW
        first1 += 2
"""

# Rows that a tile has beyond the result are not stored.
_STORE_ROW = {
    "c": """
rows_across = rows_SIDE(0, max(1, min(SIDE, (made2 - first2 + 1) // 2)))
inside = several if first1 < made1 and first2 < made2 else 0
store_tile_V(out, base + first1 * out1 + first2 * out2 + f, rows_across, 2 * out2, tile, 0, inside)
""",
    "s": """
store_tile_V(result, (first1 * wide + first2) * LANES, rows_SIDE(0, SIDE), 2 * LANES, tile, 0, LANES)
""",
}

_STORES = {
    "c": "",
    "s": """
lines = made1
width = made2
if out1 == wide:
    lines = 1
    width = made1 * made2
for t1 in range(lines):
    for t2 in range(0, width, LANES):
        few = min(LANES, width - t2)
        corner = load_tile_V(result, (t1 * wide + t2) * LANES, rows_LANES(0, few), LANES, 0, LANES)
        to = base + t1 * out1 + t2 + f * out_filter
        store_tile_V(out, to, rows_LANES(0, several), out_filter, transpose_V(corner), 0, few)
""",
}


@cache
def _made(lanes: int, panel: int, nears: tuple[str, str]) -> Kernel:
    form = Form((2, 2), "made")
    snippets = {
        "BRING_IN": "\n".join(bring_in(DTYPE, nears[0])),
        "PHASES_OF_TILE": _PHASES_OF_TILE,
        "STORE_ROW": _STORE_ROW[nears[1]],
        "STORE": _STORES[nears[1]],
        **steps_of(form),
    }
    names = names_of(form) | sizes_of(form, lanes, panel)
    return written("winograd_made", _MADE, DTYPE, ARGUMENTS, "x w", "out", names, snippets)


def kernel(launch: KernelLaunch) -> Kernel:
    """Return the kernel of a launch of "winograd_made"."""
    given = dict(zip(ARGUMENTS, launch.numbers, strict=True))
    nears = (
        near(given["channels"], given["x_channel"], given["x2"]),
        near(given["filters"], given["out_filter"], given["out2"]),
    )
    return _made(lanes_of(DTYPE), panel_of(given["filters"]), nears)
