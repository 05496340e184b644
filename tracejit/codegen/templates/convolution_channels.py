# SPDX-License-Identifier: BSD-3-Clause
"""Emission of the gradient of a channelwise convolution by its filters.

Note [channelwise filters]
Where each filter has one channel, lanes are channels. The elements that a block of windows spans are brought into the
near cache as in Note [windows] in convolution.py, and the cotangents beside them, channels last too. A row of a tile is
a tap; each step takes the cotangents of one window, and what each tap of it sees. The tile is added to memory (taps,
channels); each part of the launch has memory of its own.
"""

from collections.abc import Sequence
from functools import cache
from math import prod

import numpy as np

from tracejit.codegen.names import SUFFIXES
from tracejit.codegen.target import vector_bytes
from tracejit.codegen.templates.convolution import COPIES, GEOMETRY, block, bring_in, near, patch_of, sizes
from tracejit.codegen.templates.kernel_text import header, indent, kernel_of
from tracejit.passes.loops.launches import KernelLaunch
from tracejit.passes.loops.windows import COTANGENT_BYTES, WINDOWS
from tracejit.program import Kernel

CHANNELS_ARGUMENTS = (*GEOMETRY, "y_image", "y0", "y1", "y2", "y_channel")

_NINES = 9  # taps of a tile, where they are a multiple of that: 3 by 3
_EIGHTS = 8  # otherwise


def channels(dtype: np.dtype, numbers: Sequence[int]) -> Kernel:
    """Return the kernel of the gradient by filters of one channel (Note [channelwise filters]).

    Its arguments are CHANNELS_ARGUMENTS, then pointers to x, y and the result.
    """
    given = dict(zip(CHANNELS_ARGUMENTS, numbers, strict=True))
    lanes = vector_bytes() // dtype.itemsize
    count = given["channels"]
    wide = lanes if count <= lanes else 2 * lanes
    nears = near(count, given["x_channel"], given["x2"]), near(count, given["y_channel"], given["y2"])
    taps = prod(given[f"taps{axis}"] for axis in range(3))
    height = _EIGHTS if taps % _NINES else _NINES
    return _channels(dtype, height, wide, count >= 2 * lanes, nears)


@cache
def _channels(dtype: np.dtype, height: int, wide: int, whole: bool, nears: tuple[str, str]) -> Kernel:
    suffix = SUFFIXES[dtype]
    kind = f"{suffix}x{wide}"
    used = f"j_next - j, {wide}" if whole else "0, channels"
    width = str(wide) if whole else "channels"
    lines = [
        *header(CHANNELS_ARGUMENTS, suffix, ("x", "y")),
        *patch_of(dtype),
        f"cotangents = scratch_{suffix}({COTANGENT_BYTES // dtype.itemsize})",
        f"places = scratch_i64({WINDOWS})",
        f"taps = scratch_i64({WINDOWS})",
        *sizes(),
        "g = 0",
        "number_of_taps = 0",
        "for k0 in range(taps0):",
        "    for k1 in range(taps1):",
        "        for k2 in range(taps2):",
        "            taps[number_of_taps] = k0 * dilation0 * plane + k1 * dilation1 * line + k2 * dilation2 * channels",
        "            number_of_taps += 1",
        "for i in range(number_of_taps * channels):",
        f"    out[i] = {suffix}(0)",
        "for item in range(first, last):",
        *indent(1, block()),
        *indent(1, bring_in(dtype, nears[0])),
        *indent(1, _cotangents(dtype, nears[1])),
        f"    for j_next in range(0, channels, {wide}):",
        f"        j = min(j_next, channels - {wide})" if whole else "        j = 0",
        f"        for k in range(0, number_of_taps, {height}):",
        f"            rows = listed_{height}(taps, k, number_of_taps)",
        f"            tile = zero_{kind}(rows)",
        "            for i in range(windows):",
        f"                tile = add_dots_{kind}(tile, patch, places[i] + j, rows, 1, cotangents, i * channels + j, "
        f"rows_1(0, 1), 0, {width})",
        f"            rows = rows_{height}(k, number_of_taps)",
        f"            tile = add_tiles_{kind}(tile, load_tile_{kind}(out, j, rows, channels, {used}))",
        f"            store_tile_{kind}(out, j, rows, channels, tile, {used})",
    ]
    return kernel_of(lines, "channels")


def _cotangents(dtype: np.dtype, near: str) -> list[str]:
    """Return the lines that bring the cotangents of a block near, and list the places of its windows in the patch."""
    return [
        "i = 0",
        "for t0 in range(high0):",
        "    for t1 in range(high1):",
        "        to = i * channels",
        "        source = image * y_image + (start0 + t0) * y0 + (start1 + t1) * y1 + start2 * y2",
        "        width = high2",
        *indent(2, COPIES[near](dtype, "y", "cotangents")),
        "        for t2 in range(high2):",
        "            places[i] = t0 * stride0 * plane + t1 * stride1 * line + t2 * stride2 * channels",
        "            i += 1",
    ]


def kernel(launch: KernelLaunch) -> Kernel:
    """Return the kernel of a launch of "channels"."""
    return channels(launch.pointers[-1].dtype, launch.numbers)
