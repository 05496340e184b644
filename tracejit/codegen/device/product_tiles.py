# SPDX-License-Identifier: BSD-3-Clause
"""Emission of matrix products for a device: each block computes a tile of the result.

Note [tiles of a block]
The threads of a block copy a tile of x and one of y to memory that they share, multiply them, and go on along the inner
axis. While they multiply, the next tiles are on their way to registers. A thread computes 4 rows by 8 columns of the
result, as two vectors of 4 neighbours for each row.

- LARGE tiles have 64 x 64 elements of the result, 128 threads, and 16 of the inner axis at a time.
- SMALL tiles have 32 x 32 elements, for results of which there would be few large tiles: many blocks run at the same
  time, and the inner axis too is shared among the 8 groups of a block, whose sums are added up in the end, in order.

Tiles lie transposed for x, so that the operands of a step are neighbours; rows are padded by 4, since memory that is
shared has 32 banks. Elements beyond the inner axis are zeros, elements beyond the result are computed and not stored.
Which threads copy which elements follows from the axis along which an operand lies: neighbours copy neighbours.
"""

from tracejit.codegen.names import INDENT, NAME, SUFFIXES, named
from tracejit.codegen.nest import Argument, Emitted
from tracejit.passes.loops.products import Product
from tracejit.passes.loops.spread import GROUP
from tracejit.program import Grid
from tracejit.util.named_tuples import NamedTuple

_PAD = 4  # elements behind a row of a tile
_ROWS, _COLUMNS, _VECTOR = 4, 8, 4  # of the result, for a thread
_MANY = 132  # large tiles keep a large device busy


class _Tile(NamedTuple):
    """A tile of the result.

    name        of the kernel
    size        rows, and columns
    inner       elements of the inner axis at a time
    parts       groups of threads that share the inner axis
    """

    name: str
    size: int
    inner: int
    parts: int

    @property
    def workers(self) -> int:
        """The threads that compute all elements of the tile once."""
        return self.size * self.size // (_ROWS * _COLUMNS)

    @property
    def threads(self) -> int:
        return self.workers * self.parts

    @property
    def copied(self) -> int:
        """The elements of each operand that a thread copies at a time."""
        return self.size * self.inner // self.threads

    @property
    def stride(self) -> int:
        return self.size + _PAD


LARGE = _Tile("product_large", 64, 16, 1)
SMALL = _Tile("product_small", 32, 32, 8)


def emit_tiles(product: Product) -> tuple[Emitted, Grid]:
    """Return the kernel of a product by tiles, its arguments, and its threads."""
    batch, m, n, k, x, y, out, add = product
    tile = LARGE if batch * _tiles(LARGE, m) * _tiles(LARGE, n) >= _MANY else SMALL
    rows, columns = _tiles(tile, m), _tiles(tile, n)
    text = _text(
        tile,
        SUFFIXES[out.access.dtype],
        bool(add),
        _is_along_inner(x.column, x.row),
        _is_along_inner(y.row, y.column),
    )
    itemsize = out.access.dtype.itemsize
    arguments: list[Argument] = [
        m, n, k, rows, columns,
        x.access, x.batch * itemsize, x.row, x.column,
        y.access, y.batch * itemsize, y.column, y.row,
        out.access, out.batch * itemsize, out.row,
    ]  # fmt: skip
    return Emitted(named(text, tile.name), arguments, {}), Grid(batch * rows * columns, tile.threads)


def _tiles(tile: _Tile, n: int) -> int:
    return -(-n // tile.size)


def _is_along_inner(inner: int, outer: int) -> bool:
    """Return whether neighbours in memory are neighbours on the inner axis, given the strides of both axes."""
    return inner == 1 or (outer != 1 and inner < outer)


def _text(tile: _Tile, suffix: str, adds: bool, x_along: bool, y_along: bool) -> str:
    lines = [
        "m = index(args[0])", "n = index(args[1])", "k = index(args[2])",
        "rows = index(args[3])", "columns = index(args[4])",
        "number = quotient(block(), rows * columns)",
        "tile = remainder(block(), rows * columns)",
        f"first_row = index(quotient(tile, columns) * {tile.size})",
        f"first_column = index(remainder(tile, columns) * {tile.size})",
        f"x = read_{suffix}(args[5] + number * args[6])",
        "x_outer = index(args[7])", "x_inner = index(args[8])",
        f"y = read_{suffix}(args[9] + number * args[10])",
        "y_outer = index(args[11])", "y_inner = index(args[12])",
        f"out = write_{suffix}(args[13] + number * args[14], 0)",
        "out_row = index(args[15])",
        f"xs = shared_{suffix}(0, {tile.inner * tile.stride})",
        f"ys = shared_{suffix}(1, {tile.inner * tile.stride})",
        "me = thread_of_block()",
        *_copied_places(tile, "x", "first_row", "m", x_along),
        *_copied_places(tile, "y", "first_column", "n", y_along),
        *_computed_places(tile),
        *[f"sum{i}_{j} = {suffix}x4({suffix}(0))" for i in range(_ROWS) for j in range(_COLUMNS // _VECTOR)],
        *_loads(tile, "index(0)"),
        "at = index(0)",
        "while at < k:",
        *[INDENT + line for line in _stores(tile, suffix)],
        f"{INDENT}at = index(at + {tile.inner})",
        *[INDENT + line for line in _loads(tile, "at")],
        *[INDENT + line for line in _multiplied(tile, suffix)],
        f"{INDENT}barrier()",
        *(_added_parts(tile, suffix) if tile.parts > 1 else []),
        *_results(tile, suffix, adds),
    ]  # fmt: skip
    return "\n".join([f"def {NAME}(args):", *[INDENT + line for line in lines]]) + "\n"


def _copied_places(tile: _Tile, name: str, first: str, extent: str, is_along: bool) -> list[str]:
    """Return the lines that say which elements of an operand this thread copies, and to where."""
    lines = []
    for j in range(tile.copied):
        element = f"index(me + {j * tile.threads})"
        outer, inner = ("quotient", "remainder") if is_along else ("remainder", "quotient")
        length = tile.inner if is_along else tile.size
        lines += [
            f"{name}{j}_outer = {outer}({element}, index({length}))",
            f"{name}{j}_inner = {inner}({element}, index({length}))",
            f"{name}{j}_to = index({name}{j}_inner * {tile.stride} + {name}{j}_outer)",
            f"{name}{j}_from = index(index(min({first} + {name}{j}_outer, {extent} - 1)) * {name}_outer)",
        ]
    return lines


def _computed_places(tile: _Tile) -> list[str]:
    """Return the lines that say which elements of the result this thread computes."""
    across = tile.size // _COLUMNS
    lines = [f"worker = remainder(me, index({tile.workers}))"] if tile.parts > 1 else ["worker = me"]
    lines += [
        f"own_row = index(quotient(worker, index({across})) * {_ROWS})",
        f"own_column = index(remainder(worker, index({across})) * {_VECTOR})",
    ]
    if tile.parts > 1:
        lines.append(f"part = quotient(me, index({tile.workers}))")
    return lines


def _loads(tile: _Tile, at: str) -> list[str]:
    """Return the lines that load the elements of the tiles that begin at `at`; beyond the end, the last one again."""
    return [
        f"{name}{j} = {name}[{name}{j}_from + index(min({at} + {name}{j}_inner, k - 1)) * {name}_inner]"
        for name in "xy"
        for j in range(tile.copied)
    ]


def _stores(tile: _Tile, suffix: str) -> list[str]:
    """Return the lines that put the loaded elements into shared memory, zeros beyond the end."""
    lines = [
        f"{name}s[{name}{j}_to] = {name}{j} if at + {name}{j}_inner < k else {suffix}(0)"
        for name in "xy"
        for j in range(tile.copied)
    ]
    return [*lines, "barrier()"]


def _multiplied(tile: _Tile, suffix: str) -> list[str]:
    """Return the lines that multiply the tiles in shared memory."""
    halves = range(_COLUMNS // _VECTOR)
    steps = tile.inner // tile.parts
    unrolled = min(steps, 4)
    body: list[str] = []
    for step in range(unrolled):
        body += [
            f"left = load_x4(xs, index(inner + {step}) * {tile.stride} + own_row)",
            *[
                f"right{j} = load_x4(ys, index(inner + {step}) * {tile.stride} + own_column + {j * tile.size // 2})"
                for j in halves
            ],
            *[
                f"sum{i}_{j} = fma_{suffix}(item_{suffix}(left, {i}), right{j}, sum{i}_{j})"
                for i in range(_ROWS)
                for j in halves
            ],
        ]
    if steps == unrolled:
        return [f"inner = index(part * {steps})", *body]
    return [
        "inner = index(0)",
        f"while inner < {steps}:",
        *[INDENT + line for line in body],
        f"{INDENT}inner = index(inner + {unrolled})",
    ]


def _added_parts(tile: _Tile, suffix: str) -> list[str]:
    """Return the lines that add up what the parts of the inner axis gave, in the threads of the first part.

    All parts but the first put their sums side by side for the threads that take them.
    """
    vectors = [f"sum{i}_{j}" for i in range(_ROWS) for j in range(_COLUMNS // _VECTOR)]
    size = tile.workers * _VECTOR
    lines = [f"sums = shared_{suffix}(2, {size * (tile.parts - 1) * 2})"]
    for first in range(0, len(vectors), 2):  # two vectors at a time, so that little memory is enough
        pair = vectors[first : first + 2]
        lines += [
            "if part > 0:",
            *[
                f"{INDENT}store_x4(sums, index((part - 1) * {2 * size} + {number * size} + worker * {_VECTOR}), {name})"
                for number, name in enumerate(pair)
            ],
            "barrier()",
            "if part == 0:",
            *[
                f"{INDENT}{name} = {name} + load_x4(sums, index({(2 * other + number) * size} + worker * {_VECTOR}))"
                for number, name in enumerate(pair)
                for other in range(tile.parts - 1)
            ],
            "barrier()",
        ]
    return lines


def _results(tile: _Tile, suffix: str, adds: bool) -> list[str]:
    """Return the lines that store the elements of this thread that are in the result."""
    lines = ["row = index(first_row + own_row)", "column = index(first_column + own_column)"]
    stores = []
    for i in range(_ROWS):
        stores.append(f"if row + {i} < m:")
        for j in range(_COLUMNS // _VECTOR):
            for lane in range(_VECTOR):
                offset = j * tile.size // 2 + lane
                place = f"out[index(row + {i}) * out_row + column + {offset}]"
                value = f"item_{suffix}(sum{i}_{j}, {lane})"
                stores += [
                    f"{INDENT}if column + {offset} < n:",
                    f"{INDENT * 2}{place} = {f'{place} + {value}' if adds else value}",
                ]
    return [*lines, *(stores if tile.parts == 1 else ["if part == 0:", *[INDENT + line for line in stores]])]


assert SMALL.workers == GROUP
