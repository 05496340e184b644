# SPDX-License-Identifier: BSD-3-Clause
"""Emission of the largest or smallest elements along an axis, and of their first places.

Note [extrema in vectors]
LLVM turns the loop of an extremum into one of vectors, but takes the elements after the last whole vector one by one.
An element may count twice, so here the last vectors begin earlier instead, and the loop ends where they begin. There
are four accumulators, because an extremum that keeps a NaN takes several dependent instructions.
"""

from tracejit.codegen.loop_order import joined
from tracejit.codegen.target import vector_bytes
from tracejit.codegen.templates.tile_text import lanes_of, written
from tracejit.passes.loops.launches import KernelLaunch
from tracejit.passes.loops.nest import Accumulate, Load, Nest, RowFold, Store
from tracejit.program import Kernel

_TOGETHER = 4  # accumulators
_SHORT = 64  # elements: shorter rows run in lanes (codegen/lanes.py)
_WIDEST = 64  # columns, at most, so that neighbours are still in the nearest cache when they are read
_LEAST_BYTES = 4  # of an element that vectors are made of
_PLACES_BYTES = 32  # of a vector, at least, for places of 64 bits
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
    (node,), (source,), target = nest.nodes, nest.reads, nest.writes[0]
    if source.dtype.kind != "f" or source.dtype.itemsize < _LEAST_BYTES:
        return None
    numbers = _of_rows(nest) or _of_columns(nest)
    if numbers is None:
        return None
    return KernelLaunch(f"extremum_{node.op.name}", numbers, (source, target), 1, node)


def _of_rows(nest: Nest) -> tuple[int, ...] | None:
    """Return the numbers of the kernel if a nest folds rows whose elements lie side by side."""
    order = joined(nest)
    strides, beside = (order.strides(access) for access in (nest.reads[0], nest.writes[0]))
    kinds = [[type(line) for line in lines] for lines in (*nest.row, *nest.full)]
    if kinds != [[], [Store], [Load, RowFold]] or order.split != order.depth - 1 or order.depth > 2:
        return None
    n = order.extents[-1]
    if n < _SHORT or strides[-1] != 1:
        return None
    return (order.extents[0], n, 1, strides[0], 1, beside[0]) if order.split else (1, n, 1, 0, 1, 0)


def _of_columns(nest: Nest) -> tuple[int, ...] | None:
    """Return the numbers of the kernel if a nest folds a few columns, whose neighbours lie side by side."""
    order = joined(nest)
    strides, beside = (order.strides(access) for access in (nest.reads[0], nest.writes[0]))
    lines = nest.full[0]
    if len(lines) != 2 or not isinstance(lines[1], Accumulate) or order.depth not in (2, 3):
        return None
    n, inner = order.extents[-2:]
    is_alone = not any(nest.row) and lines[1].start is None and inner <= _WIDEST and n >= _TOGETHER
    if not is_alone or strides[-1] != 1 or beside[-2:] != (0, 1) or 0 in beside[:-2]:
        return None
    if order.depth == 2:
        return (1, n, inner, 0, strides[0], 0)
    return (order.extents[0], n, inner, strides[0], strides[1], beside[0])


def kernel(launch: KernelLaunch) -> Kernel | None:
    """Return the kernel of a launch; None for first places along memory, and on CPUs whose vectors are short."""
    dtype, inner = launch.pointers[0].dtype, launch.numbers[2]
    if launch.name == "first_place":
        is_narrow = dtype.kind == "f" and dtype.itemsize >= _LEAST_BYTES and 1 < inner <= _WIDEST
        if not is_narrow or vector_bytes() < _PLACES_BYTES:
            return None
        sizes: dict[str, int | str] = {"i64X": f"i64x{lanes_of(dtype)}"}
        return written(launch.name, _FIRST_PLACES, dtype, _NUMBERS[:3], "x best", "out:i64", sizes)
    name = launch.name.rpartition("_")[2]
    text = (_ROWS if inner == 1 else _COLUMNS).replace("EXTREMUM", name)
    text = text.replace("BEYOND", {"max": ">", "min": "<"}[name])
    return written(launch.name, text, dtype, _NUMBERS, "x", "out", {"TOGETHER": _TOGETHER})
