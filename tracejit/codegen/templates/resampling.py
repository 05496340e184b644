# SPDX-License-Identifier: BSD-3-Clause
"""Emission of weighted sums along two axes of images, as in resizing and its adjoint.

Note [lines of planes]
A line of the result is made of some lines of the image. Their weighted sum, for all columns and channels, goes into
scratch memory, and the sums along the line are read from there. Where channels come last, lanes are channels. Where
they come first, lanes are neighbouring places of the result, and their elements at a tap are picked out of two vectors
of the line. They are gathered instead if their places span more, or where vectors have another size. If the taps are
few, the text depends on them.
"""

from textwrap import indent

from tracejit.codegen.names import SUFFIXES
from tracejit.codegen.target import vector_bytes
from tracejit.codegen.templates.tile_text import lanes_of, written
from tracejit.ops.resampling import LINE
from tracejit.passes.loops.launches import KernelLaunch
from tracejit.program import Kernel

NUMBERS = ("first", "last", "n", "w", "inner", "m", "columns", "taps", "column_taps")
_POINTERS = (
    "x starts:i32 weights column_starts:i32 column_weights "
    "back_starts:i32 back_weights back_column_starts:i32 back_column_weights"
)

_WRITTEN_OUT = ((1, 1), (2, 2), (4, 4))  # taps of rows and of columns; there are loops over others
_MOST_VECTORS = 4  # that are added at a time
_MOST_LINES = 8  # that are summed before they are read: loads would wait for stores that are under way
_PICKED_FROM = 32  # elements of a line, in two vectors
_SLACK = 32  # elements behind a line, which are read and not used

_TEXT = """
lines = scratch_T(ROOM)
width = w * inner
gap = (width + LANES - 1) // LANES * LANES
several = max(1, min(MOST_LINES, LINE // gap))
for start in range(first, last, several):
    stop = min(last, start + several)
    for row in range(start, stop):
        j = row % m
        source = (row // m * n + starts[j]) * width
        line = (row - start) * gap
        for i in range(0, width, LONG):
            few = min(LONG, width - i)
            sums = Tl(0)
            ADD_LINES
            store_first_L(lines, line + i, sums, few)
    for row in range(start, stop):
        line = (row - start) * gap
        out = row * columns * inner
        SUMS
"""

_OF_PLACES = """
for column in range(0, columns, LANES):
    few = min(LANES, columns - column)
    begin = column_starts[column]
    places = load_first_X(column_starts, column, few) - begin
    SUM
    store_first_X(y, out + column, total, few)
"""

_PICKED = """
if column_starts[column + few - 1] - begin < PICKED_FROM:
    total = V(T(0))
    ADD_PICKED
else:
    GATHERED
"""

_GATHERED = """
inside = inside_X(few)
total = V(T(0))
ADD_GATHERED
"""

_OF_CHANNELS = """
for column in range(columns):
    begin = column_starts[column] * inner
    for c in range(0, inner, SEVERAL):
        few = min(SEVERAL, inner - c)
        total = Ty(0)
        ADD_CHANNELS
        store_first_Y(y, out + column * inner + c, total, few)
"""

# A neighbour whose weight is 0 takes no part: 0 times infinity is NaN.
_LINE = """\
if weights[TAP * m + j] != 0:
    sums = sums + weights[TAP * m + j] * load_first_L(x, source + TAP * width + i, few)"""
_PLACE = """\
factors = load_first_X(column_weights, TAP * columns + column, few)
total = total + where(factors != V(T(0)), factors * TAKEN, V(T(0)))"""
_CHANNEL = """\
if column_weights[TAP * columns + column] != 0:
    total = (total
        + column_weights[TAP * columns + column] * load_first_Y(lines, line + begin + TAP * inner + c, few))"""


def _added(line: str, taps: int, count: str) -> str:
    """Return the lines that add all taps to a total, as a loop if `taps` is 0."""
    if taps == 0:
        return f"for tap in range({count}):\n{indent(line.replace('TAP', 'tap'), '    ')}"
    return "\n".join([line.replace("TAP", str(tap)) for tap in range(taps)])


def kernel(launch: KernelLaunch) -> Kernel:
    """Return the kernel of a launch (Note [lines of planes])."""
    given = dict(zip(NUMBERS, launch.numbers, strict=True))
    inner, both = given["inner"], (given["taps"], given["column_taps"])
    taps = both[0] if both in _WRITTEN_OUT else 0
    dtype = launch.pointers[0].dtype
    suffix, lanes = SUFFIXES[dtype], lanes_of(dtype)
    long = lanes * _MOST_VECTORS
    several = min(long, lanes << (-(-inner // lanes) - 1).bit_length())
    is_picked = vector_bytes() == 64 and dtype.itemsize == 4
    snippets = {
        "SUMS": _OF_PLACES if inner == 1 else _OF_CHANNELS,
        "SUM": _PICKED if is_picked else _GATHERED,
        "GATHERED": _GATHERED,
        "ADD_LINES": _added(_LINE, taps, "taps"),
        "ADD_PICKED": _added(
            _PLACE.replace("TAKEN", "picked_X(lines, line + begin + TAP, places)"), taps, "column_taps"
        ),
        "ADD_GATHERED": _added(
            _PLACE.replace("TAKEN", "taken_X(lines, line + begin + TAP, places, inside)"), taps, "column_taps"
        ),
        "ADD_CHANNELS": _added(_CHANNEL, taps, "column_taps"),
    }
    sizes: dict[str, int | str] = {
        "LINE": LINE, "ROOM": LINE + _SLACK, "MOST_LINES": _MOST_LINES, "PICKED_FROM": _PICKED_FROM,
        "LONG": long, "L": f"x{long}", "Tl": f"{suffix}x{long}",
        "SEVERAL": several, "Y": f"x{several}", "Ty": f"{suffix}x{several}",
    }  # fmt: skip
    return written(launch.name, _TEXT, dtype, NUMBERS, _POINTERS, "y", sizes, snippets)
