# SPDX-License-Identifier: BSD-3-Clause
"""Emission of largest or smallest elements of rows together with their first places.

See Note [first extrema] in passes/loops/first_extrema.py.
"""

from tracejit.codegen.templates.tile_text import lanes_of, written
from tracejit.passes.loops.launches import KernelLaunch
from tracejit.program import Kernel

_TOGETHER = 4  # accumulators
_BLOCK = 2048  # elements, which stay in the nearest cache
_NUMBERS = ("first", "last", "n", "pieces", "apart")

# A row, or a piece of it, block by block. The last vectors of a block that is short begin in the one before. NaN wins,
# and ends the row; until then a comparison does for numbers.
_TEXT = """
for chunk in range(first, last):
    row = chunk // pieces
    piece = chunk - row * pieces
    start = row * apart
    block = n * piece // pieces
    end = n * (piece + 1) // pieces
    best = x[start + block * STEP]
    place = block
    is_new = True
    while block < end:
        stop = min(block + BLOCK, end)
        final = stop - GROUP
        a = load_by_X(x, start + final * STEP)
        b = load_by_X(x, start + (final + LANES) * STEP)
        c = load_by_X(x, start + (final + 2 * LANES) * STEP)
        d = load_by_X(x, start + (final + 3 * LANES) * STEP)
        unordered = (a != a) | (b != b) | (c != c) | (d != d)
        for i in range(block, final, GROUP):
            e = load_by_X(x, start + i * STEP)
            f = load_by_X(x, start + (i + LANES) * STEP)
            g = load_by_X(x, start + (i + 2 * LANES) * STEP)
            h = load_by_X(x, start + (i + 3 * LANES) * STEP)
            unordered = unordered | (e != e) | (f != f) | (g != g) | (h != h)
            a = where(a BEYOND e, a, e)
            b = where(b BEYOND f, b, f)
            c = where(c BEYOND g, c, g)
            d = where(d BEYOND h, d, h)
        a = where(a BEYOND b, a, b)
        c = where(c BEYOND d, c, d)
        found = FURTHEST(where(a BEYOND c, a, c))
        if count_X(unordered) > 0:
            i = block
            group = load_by_G(x, start + min(i, final) * STEP)
            while i < final and count_G(group != group) < 1:
                i += GROUP
                group = load_by_G(x, start + min(i, final) * STEP)
            place = min(i, final) + first_G(group != group)
            best = x[start + place * STEP]
            stop = end
        elif found BEYOND best or is_new:
            best = found
            i = block
            while i < final and count_G(load_by_G(x, start + i * STEP) == best) < 1:
                i += GROUP
            i = min(i, final)
            place = i + first_G(load_by_G(x, start + i * STEP) == best)
        is_new = False
        block = stop
    value[chunk] = best
    out[chunk] = place
"""

_STEPS = {"": "1", "_by_2": "2", "_by_minus_1": "minus_1", "_by_minus_2": "minus_2"}


def kernel(launch: KernelLaunch) -> Kernel:
    """Return the kernel of a launch."""
    _, fold, by = launch.name.split("_", 2) if launch.name.count("_") > 1 else (*launch.name.split("_"), "")
    step = _STEPS[f"_{by}" if by else ""]
    dtype = launch.pointers[0].dtype
    group = _TOGETHER * lanes_of(dtype)
    sizes: dict[str, int | str] = {
        "BLOCK": _BLOCK, "GROUP": group, "G": f"x{group}", "STEP": step.replace("minus_", "-"),
        "BEYOND": {"max": ">", "min": "<"}[fold], "FURTHEST": {"max": "largest", "min": "smallest"}[fold],
    }  # fmt: skip
    text = _TEXT.replace("load_by", f"load_by_{step}")
    return written(launch.name, text, dtype, _NUMBERS, "x", "value out:i64", sizes)
