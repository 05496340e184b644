# SPDX-License-Identifier: BSD-3-Clause
"""Emission of the largest or smallest elements along an axis, and of their first places.

Note [extrema in vectors]
LLVM makes a loop of an extremum one of vectors, but takes what is left after whole vectors one by one. An element may
count twice, so here the last vectors begin further in front instead, and the loop ends where they begin. There are four
accumulators, because an extremum that a NaN stays in takes some instructions, one after the other.
"""

from tracejit.codegen.loop_order import joined
from tracejit.codegen.names import SUFFIXES
from tracejit.codegen.target import vector_bytes
from tracejit.codegen.templates.tile_text import lanes_of, written
from tracejit.passes.loops.launches import KernelLaunch
from tracejit.passes.loops.nest import Accumulate, Load, Nest, RowFold, Store
from tracejit.program import Kernel

_TOGETHER = 4  # accumulators
_SHORT = 64  # elements: shorter rows run in lanes (codegen/lanes.py)
_WIDEST = 64  # columns, at most, so that neighbours are still in the nearest cache when they are read
_NUMBERS = ("outer", "n", "inner", "apart", "step", "beside")

# A comparison does for numbers; where some element was NaN the row is folded again.
_ROWS = """
for row in range(outer):
    start = row * apart
    last = start + n - TOGETHER * LANES
    a = load_first_X(x, last, LANES)
    b = load_first_X(x, last + LANES, LANES)
    c = load_first_X(x, last + 2 * LANES, LANES)
    d = load_first_X(x, last + 3 * LANES, LANES)
    unordered = (a != a) | (b != b) | (c != c) | (d != d)
    for at in range(start, last, TOGETHER * LANES):
        e = load_first_X(x, at, LANES)
        f = load_first_X(x, at + LANES, LANES)
        g = load_first_X(x, at + 2 * LANES, LANES)
        h = load_first_X(x, at + 3 * LANES, LANES)
        unordered = unordered | (e != e) | (f != f) | (g != g) | (h != h)
        a = where(a BEYOND e, a, e)
        b = where(b BEYOND f, b, f)
        c = where(c BEYOND g, c, g)
        d = where(d BEYOND h, d, h)
    a = where(a BEYOND b, a, b)
    c = where(c BEYOND d, c, d)
    best = total_EXTREMUM(where(a BEYOND c, a, c), LANES)
    if count_X(unordered) > 0:
        for at in range(start, start + n):
            best = fold_EXTREMUM_T(best, x[at])
    out[row * beside] = best
"""

_COLUMNS = """
for row in range(outer):
    for column in range(0, inner, LANES):
        count = min(LANES, inner - column)
        start = row * apart + column
        last = start + (n - TOGETHER) * step
        a = load_first_X(x, last, count)
        b = load_first_X(x, last + step, count)
        c = load_first_X(x, last + 2 * step, count)
        d = load_first_X(x, last + 3 * step, count)
        for i in range(0, n - TOGETHER, TOGETHER):
            at = start + i * step
            a = fold_EXTREMUM_T(a, load_first_X(x, at, count))
            b = fold_EXTREMUM_T(b, load_first_X(x, at + step, count))
            c = fold_EXTREMUM_T(c, load_first_X(x, at + 2 * step, count))
            d = fold_EXTREMUM_T(d, load_first_X(x, at + 3 * step, count))
        a = fold_EXTREMUM_T(fold_EXTREMUM_T(a, b), fold_EXTREMUM_T(c, d))
        store_first_X(out, row * beside + column, a, count)
"""

# From the last place to the first, so that the first one stays.
_FIRST_PLACES = """
for row in range(outer):
    for column in range(0, inner, LANES):
        count = min(LANES, inner - column)
        start = row * n * inner + column
        wanted = load_first_X(best, row * inner + column, count)
        place = i64X(0)
        for k in range(n):
            v = load_first_X(x, start + (n - 1 - k) * inner, count)
            place = where((v == wanted) | (v != v), i64X(n - 1 - k), place)
        store_first_X(out, row * inner + column, place, count)
"""


def extremum(nest: Nest) -> KernelLaunch | None:
    """Return the launch that finds the extrema that a nest folds to, None if another kernel is to do it."""
    if len(nest.nodes) != 1 or nest.nodes[0].op.name not in ("max", "min") or len(nest.reads) != 1:
        return None
    (node,), order, source = nest.nodes, joined(nest), nest.reads[0]
    if source.dtype.kind != "f" or source.dtype.itemsize < 4 or len(nest.full) != 1:
        return None
    lines, target = nest.full[0], nest.writes[0]
    strides, beside = order.strides(source), order.strides(target)
    kinds = [type(line) for line in (*nest.row[0], *lines, *nest.row[-1])]
    if kinds == [Load, RowFold, Store] and order.depth - 1 == order.split <= 1 and strides[-1] == 1:
        if order.extents[-1] < _SHORT:
            return None
        outer, apart, away = (order.extents[0], strides[0], beside[0]) if order.split else (1, 0, 0)
        numbers = (outer, order.extents[-1], 1, apart, 1, away)
    elif kinds[:2] == [Load, Accumulate] and lines[1].start is None and order.depth in (2, 3):
        outer, apart, away = (order.extents[0], strides[0], beside[0]) if order.depth == 3 else (1, 0, 0)
        n, inner = order.extents[-2:]
        if (
            beside[-2:] != (0, 1)
            or strides[-1] != 1
            or inner > _WIDEST
            or n < _TOGETHER
            or (order.depth == 3 and not away)
        ):
            return None
        numbers = (outer, n, inner, apart, strides[-2], away)
    else:
        return None
    return KernelLaunch(f"extremum_{node.op.name}", numbers, (source, target), 1, node)


def kernel(launch: KernelLaunch) -> Kernel | None:
    """Return the kernel of a launch, None for places along memory and on CPUs whose vectors are short."""
    dtype, inner = launch.pointers[0].dtype, launch.numbers[2]
    if launch.name == "first_place":
        if inner == 1 or inner > _WIDEST or vector_bytes() < 32 or dtype.kind != "f" or dtype.itemsize < 4:
            return None
        lanes = lanes_of(dtype)
        pointers = f"x:{SUFFIXES[dtype]} best:{SUFFIXES[dtype]}"
        return written(
            launch.name,
            _FIRST_PLACES,
            dtype,
            ("outer", "n", "inner"),
            "x best",
            "out:i64",
            {"i64X": f"i64x{lanes}"},
        )
    name = launch.name.rpartition("_")[2]
    text = (
        (_ROWS if inner == 1 else _COLUMNS)
        .replace("EXTREMUM", name)
        .replace("BEYOND", {"max": ">", "min": "<"}[name])
    )
    return written(launch.name, text, dtype, _NUMBERS, "x", "out", {"TOGETHER": _TOGETHER})
