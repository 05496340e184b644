# SPDX-License-Identifier: BSD-3-Clause
"""Emission of convolutions by Winograd's method (kernels/winograd.py), and of their gradient by filters.

Note [products at points]
A tile is 4 by 4 windows of 3 by 3 taps, or 2 by 2 windows of 5 by 5. For windows along one axis it has 6 elements and
values instead of 6 by 6 (winograd_steps.py). A block of windows of an image, or of several small images, is padded to
whole tiles and copied to scratch memory as in Note [windows] in convolution.py. The 6 by 6 elements that a tile sees
become 36 values (`near`, one matrix of tiles by channels for each value). Each matrix is multiplied by that of the
filters, which an earlier kernel has made: panels as wide as a tile of registers, channel by channel. The 36 products of
a tile become its results. Taps of a third axis are planes, whose products are summed; the next plane sees elements
further on. Blocks are so small that everything stays in the second cache. Between matrices lies one vector more than
they have elements, because lines whose distance is a power of two would share a few places of the first cache.

The gradient by the filters goes the same way back: what a tile sees becomes 36 values as before, cotangents become 36,
and their products are summed over tiles, blocks and images. At the end, a kernel makes filters of the sums.
"""

from functools import cache

from tracejit.codegen.target import vector_bytes
from tracejit.codegen.templates.convolution import GEOMETRY, bring_in, near
from tracejit.codegen.templates.kernel_text import Finish, tile_rows
from tracejit.codegen.templates.tile_text import lanes_of, written
from tracejit.codegen.templates.winograd_steps import DTYPE, Form, names_of, sizes_of, steps_of, summed
from tracejit.passes.loops.launches import KernelLaunch
from tracejit.passes.loops.winograd import has_few_points, panel_of
from tracejit.program import Kernel

WINOGRAD_ARGUMENTS = (
    *GEOMETRY, "w_group", "out_image", "out0", "out1", "out2", "out_filter", "images", "together",
    "biased", "halves",
)  # fmt: skip
WEIGHTS_ARGUMENTS = (*GEOMETRY, "y_image", "y0", "y1", "y2", "y_filter", "images", "together", "halves")
SUMS_ARGUMENTS = ("first", "last", "planes", "phases", "taps1", "taps2", "channels", "filters")
FILTERS_ARGUMENTS = (*SUMS_ARGUMENTS, "w_group", "w0", "w1", "w2", "w_channel")

_STORE_CHANNELS = """
for t in range(each):
    for f in range(0, filters, LANES):
        few = min(LANES, filters - f)
        RESULTS
            to = base + (down + i * dilation1) * out1 + right * out2 + f
            store_tile_V(out, to, rows_across, dilation2 * out2, tile, 0, few)
"""

_STORE_TURNED = """
for f in range(0, filters, LANES):
    several = min(LANES, filters - f)
    for t in range(each):
        RESULTS
            to = ((down + i * dilation1) * real2 + right) * LANES
            store_tile_V(result, to, rows_across, dilation2 * LANES, tile, 0, LANES)
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
for p in range(0, groups * taps0 * PHASES * VALUES * channels * broad, WIDE):
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
for value in range(VALUES):
    OTHER_THAN_ZERO
    for k0 in SUMMED:
        for f in range(0, broad, WIDE):
            for c in range(0, channels, HIGH):
                rows = rows_HIGH(c, channels)
                tile = zero_W(rows)
                at = products + value * apart_products + f
                at_x = value * apart + SEEN_PLANE * deep
                for _ in range(tiles):
                    tile = add_outer_W(tile, near, at_x, rows, 1, load_W(near, at))
                    at_x += deep
                    at += broad
                to = ((g * taps0 * PHASES + k0) * VALUES + value) * channels * broad + f
                tile = add_tiles_W(tile, load_tile_W(out, to, rows, broad, 0, WIDE))
                store_tile_W(out, to, rows, broad, tile, 0, WIDE)
"""

_FILTERS = """
COUNTS
half = scratch_T(POINTS1 * TAPS * LANES)
SCRATCH
apart = broad * channels
for item in range(first, last):
    g = item // (planes * phases * channels)
    k0 = item // channels % (planes * phases)
    c = item % channels
    for f in range(0, broad, LANES):
        few = max(0, min(LANES, filters - f))
        at = g * w_group + k0 // phases * w0 + c * w_channel + f
        to = (item // channels * VALUES * broad + f // PANEL * PANEL) * channels + c * PANEL + f % PANEL
        TAKEN
        FILTER
"""

_SUMS = """
COUNTS
half = scratch_T(POINTS * TAPS * LANES)
apart = channels * broad
for item in range(first, last):
    c = item % channels
    k0 = item // channels % phases
    for f in range(0, filters, LANES):
        few = min(LANES, filters - f)
        at = (item // channels * VALUES * channels + c) * broad + f
        to = (item // (channels * phases) * taps1 * taps2 * channels + c) * filters + f
        FILTER_SUMS
"""

_BLOCKS = """
PATCH
near = scratch_T(NEAR)
half = scratch_T(POINTS1 * POINTS * LANES)
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


@cache
def _filters(lanes: int, name: str, form: Form, panel: int) -> Kernel:
    """Return the kernel that makes values of filters, or filters of sums of products."""
    names, steps = names_of(form) | {"PANEL": panel}, steps_of(form)
    if name == "winograd_filters":
        return written(name, _FILTERS, DTYPE, FILTERS_ARGUMENTS, "w", "out", names, steps)
    return written(name, _SUMS, DTYPE, SUMS_ARGUMENTS, "x", "out", names, steps)


@cache
def _blocks(
    lanes: int,
    form: Form,
    panel: int,
    nears: tuple[str, str],
    weights: bool,
    high: int,
    finish: Finish | None,
) -> Kernel:
    """Return the kernel of a convolution, or of its gradient by filters, for what is near in x and in y.

    A tile of registers has `high` rows.
    """
    x_near, y_near = nears
    snippets = {
        "WORK": _ADD.replace("SUMMED", summed(form)) if weights else _FORWARD,
        "STORE": _STORE_CHANNELS if y_near == "c" else _STORE_TURNED,
        "SPREAD": _SPREAD if weights else "",
        "BRING_COTANGENTS": COTANGENTS[y_near],
        "CLEAR": _CLEAR if weights else "",
        "BRING_IN": "\n".join(bring_in(DTYPE, x_near)),
        **steps_of(form),
        "BEFORE_FINISH": "" if finish is None else "\n".join(finish.outer),
        "FINISH": "" if finish is None else "\n".join(finish.rows(form.sides[1])),
    }
    names = names_of(form) | sizes_of(form, lanes, panel)
    names |= {"TO_ROW": "broad", "TO_VALUE": "apart_products", "HIGH": high}
    if weights:
        return written("winograd_weights", _BLOCKS, DTYPE, WEIGHTS_ARGUMENTS, "x y", "out", names, snippets)
    stem = "winograd" if finish is None else f"winograd_{finish.stem}"
    return written(stem, _BLOCKS, DTYPE, WINOGRAD_ARGUMENTS, "x w bias", "out", names, snippets, finish)


def kernel(launch: KernelLaunch, finish: Finish | None = None) -> Kernel:
    """Return the kernel of a launch of "winograd", "winograd_weights", "winograd_filters" or "winograd_sums"."""
    lanes = lanes_of(DTYPE)
    if launch.name in ("winograd_filters", "winograd_sums"):
        phases, taps1, taps2, channels, filters = launch.numbers[3:8]
        few = has_few_points(channels, launch.name == "winograd_sums")
        form = Form((2, 2), "seen") if phases > 1 else Form((taps1, taps2), few=few)
        return _filters(lanes, launch.name, form, panel_of(filters))
    weights = launch.name == "winograd_weights"
    given = dict(zip(WEIGHTS_ARGUMENTS if weights else WINOGRAD_ARGUMENTS, launch.numbers, strict=True))
    own, last = (given["y_filter"], given["y2"]) if weights else (given["out_filter"], given["out2"])
    nears = near(given["channels"], given["x_channel"], given["x2"]), near(given["filters"], own, last)
    form = (
        Form((2, 2), "seen")
        if given["stride1"] > 1
        else Form((given["taps1"], given["taps2"]), few=has_few_points(given["channels"], weights))
    )
    high = _rows_of(given["channels"]) if weights else tile_rows()
    return _blocks(lanes, form, panel_of(given["filters"]), nears, weights, high, finish)


def _rows_of(channels: int) -> int:
    """Return the rows of a tile of registers whose rows are channels: those that compute fewest channels twice.

    20 channels are 2 tiles of 10, and with 8 rows 3 tiles; 20 vectors of sums leave 12 of the registers of AVX-512.
    """
    rows = tile_rows()
    heights = (rows, 10) if vector_bytes() == 64 else (rows,)
    return min(heights, key=lambda height: (-(-channels // height) * height, height))
