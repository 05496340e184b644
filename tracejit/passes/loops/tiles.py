# SPDX-License-Identifier: BSD-3-Clause
"""tiles: turns a loop over short rows into a loop over several rows at a time.

Note [tiles]
A bias is added to rows of 20: the loop over a row is too short for vectors, and the elements left over run one at a
time. But the rows lie one after the other, so 16 of them are a row of 320, if the bias is repeated 16 times in a row
too. That is the same nest with other extents and strides, so only the copy is compiled in addition. The memory that
rows accumulate in (the gradient of the bias) becomes 16 rows as well, which another nest adds up.

Times in us of tanh(x + bias), of its value and gradient, and of a sum over rows, row by row and in tiles; 20000
elements, float32, AVX-512:

    columns                2           4          10          20          32          50
    tanh(x + bias)    101 12.1     43 11.4      36 9.1      14 8.6     9.1 7.8      15 9.0
    with gradient     105 11.0    100  7.9      35 9.0      29 8.1      14 8.6      17 8.9
    sum over rows      23  1.2     14  1.5       6 1.2     3.4 1.2     2.3 1.4     2.2 1.4
"""

import math
from collections.abc import Iterable

from tracejit.aval import Aval
from tracejit.ir import Node, Value
from tracejit.ops.op import Layout, contiguous
from tracejit.passes import cost
from tracejit.passes.loops.launches import NestLaunch, Single
from tracejit.passes.loops.nest import Access, Accumulate, Line, Load, Nest, RowFold, Store, copy_nest
from tracejit.passes.loops.parts import combines, outer_joined

LEAST = 1024  # elements of all rows together, for which copies pay
_TILE = 512  # elements of a tile, at most
_SMALLEST = 96  # elements of a tile, at least


def in_tiles(launches: Iterable[Single]) -> list[Single]:
    """Return launches in which loops over short rows run over several rows at a time (Note [tiles])."""
    result: list[Single] = []
    for launch in launches:
        nests = tile(launch.nest) if isinstance(launch, NestLaunch) else None
        result += [launch] if nests is None else in_tiles(map(NestLaunch, nests))
    return result


def tile(nest: Nest) -> list[Nest] | None:
    """Return the nests that replace a nest over short rows (Note [tiles]), or None if its rows are not short."""
    short = _with_short_rows(nest)
    if short is None:
        return None
    nest, spread, accumulated = short
    rows, row = nest.extents
    together = _together(rows, row) if rows * row >= LEAST else None
    if together is None:
        return None
    size = together * row
    before, after = [], []
    reads, writes = [], []
    for access in nest.reads:
        if access in spread:
            before.append(_repeated(access, together, row))
            access = Access(before[-1].writes[0].root, 0, (0, 1), access.dtype)
        reads.append(_longer(access, size))
    for k, access in enumerate(nest.writes):
        if access in spread:
            memory = _memory(together, row, access)
            after.append(_added(accumulated[k], memory, access))
            access = Access(memory, 0, (0, 1), access.dtype)
        writes.append(_longer(access, size))
    tiled = nest._replace(extents=(rows // together, size), reads=reads, writes=writes)
    return [*before, tiled, *after]


def untiled(nest: Nest) -> list[Nest]:
    """Return the nests that a nest over short rows would need in addition if it had more rows, or other ones.

    They have the same kernels for any number of rows.
    """
    short = _with_short_rows(nest)
    if short is None:
        return []
    nest, spread, accumulated = short
    row = nest.extents[1]
    added = [_added(node, _memory(2, row, nest.writes[k]), nest.writes[k]) for k, node in accumulated.items()]
    return [*[_repeated(access, 2, row) for access in nest.reads if access in spread], *added]


def _with_short_rows(nest: Nest) -> tuple[Nest, set[Access], dict[int, Node]] | None:
    """Return a nest of two axes whose rows are short and lie one after the other; None if there is no such nest.

    The accesses follow that are the same for all rows, and the reductions of those writes, by write.
    """
    if nest.split not in (None, 0):
        return None
    if len(nest.extents) > 2:
        nest = outer_joined(nest, math.prod(nest.extents))
    if len(nest.extents) != 2 or nest.extents[1] >= cost.LONG_ROW:
        return None
    row = nest.extents[1]
    spread = {access for access in (*nest.reads, *nest.writes) if _repeats(access)}
    if not spread or any(
        access not in spread and not _follows(access, row) for access in (*nest.reads, *nest.writes)
    ):
        return None
    accumulated = {
        line.write: line.node for line in nest.lines if isinstance(line, Accumulate) and combines(line.node)
    }
    repeated = [k for k, access in enumerate(nest.writes) if _repeats(access)]
    if not accumulated.keys() >= {*repeated}:
        return None
    return nest, spread, {k: accumulated[k] for k in repeated}


def _memory(together: int, row: int, access: Access) -> Value:
    """Return memory for some rows of what an access repeats."""
    return Value(Aval((together, row), None, access.dtype), None)


def _repeated(access: Access, together: int, row: int) -> Nest:
    """Return the nest that copies a row as often as a tile has rows."""
    memory = _memory(together, row, access)
    layout = Layout(access.offset, memory.shape, access.strides)
    return copy_nest((access.root, layout), (memory, contiguous(memory.shape)))


def _repeats(access: Access) -> bool:
    """Return whether all rows are the same in memory."""
    return access.strides[0] == 0 and access.strides[1] != 0


def _follows(access: Access, row: int) -> bool:
    """Return whether rows lie one after the other, or all elements in one place."""
    return access.strides in ((row, 1), (0, 0))


def _longer(access: Access, size: int) -> Access:
    return access if access.strides[0] == 0 else access._replace(strides=(size, 1))


def _together(rows: int, row: int) -> int | None:
    """Return how many rows a tile has: all tiles have equal lengths, multiples of vectors if possible."""
    fit = [n for n in range(2, min(rows // 2, _TILE // row) + 1) if rows % n == 0 and n * row >= _SMALLEST]
    return max(
        fit,
        key=lambda n: (n * row % cost.UNROLLED == 0, n * row % (cost.UNROLLED // 4) == 0, n),
        default=None,
    )


def _added(node: Node, memory: Value, target: Access) -> Nest:
    """Return the nest that combines the rows of `memory` into the accumulation that they replace."""
    together, row = memory.shape
    read = Access(memory, 0, (1, row), memory.dtype)
    write = Access(target.root, target.offset, (target.strides[1], 0), target.dtype)
    out = node.output
    lines: list[Line] = [Load(0, 0), RowFold(out, node, 0)]
    return Nest((row, together), 1, [read], [write], [[], [Store(0, out)]], [lines], [node])
