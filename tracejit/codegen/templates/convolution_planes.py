# SPDX-License-Identifier: BSD-3-Clause
"""Emission of channelwise convolutions, and of their gradient by filters, where channels come first.

Note [planes]
A plane is one channel of one image, which has one filter. Lanes are neighbouring windows of a line: at a tap they see
neighbouring elements of x, which are read in place; elements outside of the line are loaded as 0. Taps of the last axis
are written out. The gradient by the filter keeps a vector of sums for each tap of a plane, and adds up their lanes at
the end of the plane. No lane is loaded from lines outside of the image.
"""

from collections.abc import Iterator

from tracejit.codegen.templates.tile_text import lanes_of, written
from tracejit.passes.loops.launches import KernelLaunch
from tracejit.program import Kernel

PLANES_ARGUMENTS = (
    "first", "last", "channels", "taps0", "taps1", "taps2", "size0", "size1", "size2", "stride0", "stride1", "stride2",
    "before0", "before1", "before2", "dilation0", "dilation1", "dilation2", "extent0", "extent1", "extent2", "x_image",
    "x0", "x1", "x2", "x_channel", "out_image", "out0", "out1", "out2", "out_channel",
)  # fmt: skip

_FORWARD = """
for item in range(first, last):
    image = item // channels
    c = item - image * channels
    for t0 in range(size0):
        begin0 = t0 * stride0 - before0
        low0 = max(0, (dilation0 - 1 - begin0) // dilation0)
        top0 = min(taps0, (extent0 - 1 - begin0) // dilation0 + 1)
        for t1 in range(size1):
            i1 = t1 * stride1 - before1
            start = image * x_image + c * x_channel + begin0 * x0 + i1 * x1
            to = image * out_image + c * out_channel + t0 * out0 + t1 * out1
            for t2 in range(0, size2, LANES):
                begin = t2 - before2
                total = Vx(START)
                for k0 in range(low0, top0):
                    at = start + k0 * dilation0 * x0 + begin
                    at_w = k0 * w0 + c
                    ADD
                store_first_X(out, to + t2, total, min(LANES, size2 - t2))
"""

_TAP = """
    seen = load_between_X(x, at + ROW * dilation1 * x1 + SKIPPED, -begin - SKIPPED, extent2 - begin - SKIPPED, T(0))
    total = fma_X(seen, Vx(w[at_w + ROW * w1 + TAP * w2]), total)
"""

_WEIGHTS = """
for p in range(taps0 * DOWN * ACROSS * channels):
    out[p] = T(0)
for item in range(first, last):
    image = item // channels
    c = item - image * channels
    for k0 in range(taps0):
        ZEROS
        for t0 in range(size0):
            i0 = t0 * stride0 - before0 + k0 * dilation0
            rows = size1 if 0 <= i0 and i0 < extent0 else 0
            for t1 in range(rows):
                i1 = t1 * stride1 - before1
                for t2 in range(0, size2, LANES):
                    few = size2 - t2
                    begin = t2 - before2
                    start = image * x_image + c * x_channel + i0 * x0 + i1 * x1 + begin
                    at_y = image * out_image + c * out_channel + t0 * out0 + t1 * out1 + t2
                    ct = load_between_X(y, at_y, 0, few, T(0))
                    ADD
        to = k0 * DOWN * ACROSS * channels + c
        TOTALS
"""

_ROW = """
if 0 <= i1 + ROW * dilation1 and i1 + ROW * dilation1 < extent1:
"""

_ADD = """
    seen = load_between_X(x, start + ROW * dilation1 * x1 + SKIPPED, -begin - SKIPPED, extent2 - begin - SKIPPED, T(0))
    sum_ROW_TAP = fma_X(ct, seen, sum_ROW_TAP)
"""


def _filled(text: str, tap: int, row: int = 0) -> str:
    text = text.replace("SKIPPED", f"{tap} * dilation2").replace("TAP", str(tap))
    return text.replace("ROW", str(row)).strip("\n")


def _every(text: str, down: int, across: int) -> str:
    return "\n".join(_filled(text, tap, row) for row in range(down) for tap in range(across))


def _rows(text: str, down: int, across: int) -> str:
    """Return the lines for each tap, of rows that lie in the image."""
    rows = [
        [_filled(_ROW, 0, row), *[_filled(text, tap, row) for tap in range(across)]] for row in range(down)
    ]
    return "\n".join("\n".join(lines) for lines in rows)


def _totals(down: int, across: int) -> Iterator[str]:
    for row in range(down):
        for tap in range(across):
            at = f"to + {row * across + tap} * channels"
            yield f"out[{at}] = out[{at}] + total_sum(sum_{row}_{tap}, LANES)"


def kernel(launch: KernelLaunch) -> Kernel:
    """Return the kernel of a launch of "planes" or "plane_sums"."""
    dtype = launch.pointers[-1].dtype
    *_, down, across = launch.numbers[3:6]
    names: dict[str, int | str] = {"Vx": f"f{8 * dtype.itemsize}x{lanes_of(dtype)}"}
    if launch.name == "planes":
        biased = len(launch.pointers) > 3
        names["START"] = "bias[c]" if biased else "0"
        lines = {"ADD": _rows(_TAP, down, across)}
        pointers = "x w bias" if biased else "x w"
        numbers = (*PLANES_ARGUMENTS, "w0", "w1", "w2")
        return written("planes", _FORWARD, dtype, numbers, pointers, "out", names, lines)
    lines = {
        "ZEROS": _every("sum_ROW_TAP = Vx(0)", down, across),
        "ADD": _rows(_ADD, down, across),
        "TOTALS": "\n".join(_totals(down, across)),
    }
    names |= {"DOWN": down, "ACROSS": across}
    return written("plane_sums", _WEIGHTS, dtype, PLANES_ARGUMENTS, "x y", "out", names, lines)
