# SPDX-License-Identifier: BSD-3-Clause
"""Emission of matrix products for a device: each block computes a tile of the result.

Note [tiles of a block]
The threads of a block copy a tile of x and one of y to memory that they share, multiply them, and go on along the inner
axis. While they multiply, the next tiles are on their way to registers; from there they go to a second piece of the
shared memory. So threads wait for each other only once for each pair of tiles. A thread computes 4 or 8 rows by 8 or 16
columns of the result, in vectors of 4 neighbours.

- HUGE tiles have 128 x 256 elements of the result, 256 threads, and 8 of the inner axis at a time; for float32 only.
- LARGE tiles have 128 x 128 elements, 256 threads, and 16 of the inner axis at a time.
- MEDIUM tiles have 64 x 64 elements and 128 threads.
- SMALL tiles have 32 x 32 elements, for results that would have few larger tiles. The inner axis is shared too, among
  the 8 groups of a block, whose sums are added up at the end, in order.

Tiles of x lie transposed, so that the operands of a step are neighbours. Rows are padded by 4, because shared memory
has 32 banks. Elements beyond the inner axis are zeros; elements beyond the result are computed and not stored. How
threads share the copying follows from the axis along which an operand lies: neighbouring threads copy neighbouring
elements, four at a time where all begin at multiples of four.
"""

from tracejit.codegen.names import INDENT, NAME, SUFFIXES, named
from tracejit.codegen.nest import Argument, Emitted
from tracejit.passes.loops.kept_values import GROUP
from tracejit.passes.loops.products import Matrices, Product
from tracejit.program import Grid
from tracejit.util.named_tuples import NamedTuple

PAD = 4  # elements of padding behind a row of a tile
_VECTOR = 4  # neighbours in a vector
_ACROSS = 16  # columns of threads in a group; with 8, products of 4096 x 4096 took 4 % longer
_UNROLLED = 8  # steps along the inner axis
PROCESSORS = 132  # of a large device


class Tile(NamedTuple):
    """A tile of the result.

    name        of the kernel
    rows, columns
                elements of the result
    own, over   rows and columns of the result for a thread, multiples of 4
    inner       elements of the inner axis at a time
    parts       groups of threads that share the inner axis
    speed       of a device that has as many tiles at a time as multiprocessors, in TFLOP/s, as an H100 computes float32
    """

    name: str
    rows: int
    columns: int
    own: int
    over: int
    inner: int
    parts: int
    speed: float

    @property
    def workers(self) -> int:
        """The threads that compute all elements of the tile once."""
        return self.rows * self.columns // (self.own * self.over)

    @property
    def threads(self) -> int:
        return self.workers * self.parts

    @property
    def rows_apart(self) -> int:
        """The rows from the first 4 of a thread to its next ones."""
        return self.rows * _VECTOR // self.own

    @property
    def columns_apart(self) -> int:
        """The columns from one vector of a thread to its next one."""
        return self.columns * _VECTOR // self.over

    @property
    def vectors(self) -> int:
        """The vectors of the result for a thread."""
        return self.own * self.over // _VECTOR


HUGE = Tile("product_huge", 128, 256, 8, 16, 8, 1, 47.0)
LARGE = Tile("product_large", 128, 128, 8, 8, 16, 1, 40.0)
MEDIUM = Tile("product_medium", 64, 64, 4, 8, 16, 1, 27.0)
SMALL = Tile("product_small", 32, 32, 4, 8, 32, 8, 14.0)


class _Copied(NamedTuple):
    """The way in which threads copy an operand.

    name        of its pointer, "x" or "y"
    first       the name of the first row of the result, or its first column, in a tile
    extent      the name of how many there are
    size        rows or columns of a tile
    along       whether neighbours in memory are neighbours on the inner axis
    width       neighbours that are copied at once
    """

    name: str
    first: str
    extent: str
    size: int
    along: bool
    width: int

    def copies(self, tile: Tile) -> range:
        """Return the numbers of what a thread copies at a time."""
        return range(self.size * tile.inner // tile.threads // self.width)

    @property
    def stride(self) -> int:
        """The elements between rows of a tile in shared memory."""
        return self.size + PAD


def emit_tiles(product: Product) -> tuple[Emitted, Grid]:
    """Return the kernel of a product by tiles, its arguments, and its threads."""
    batch, m, n, k, x, y, out, add = product
    tile = suitable(product)
    if out.access.dtype.itemsize > 4 and tile is not MEDIUM:
        # Tiles of float64 would be larger than the memory that the threads of a block share.
        tile = tile._replace(inner=tile.inner // 2)
    rows, columns = -(-m // tile.rows), -(-n // tile.columns)
    left = _operand(tile, "x", "first_row", "m", tile.rows, x, (x.column, x.row), (k, m))
    right = _operand(tile, "y", "first_column", "n", tile.columns, y, (y.row, y.column), (k, n))
    is_wide = not any(number % _VECTOR for number in (n, out.row, out.batch, out.access.offset))
    text = _text(tile, SUFFIXES[out.access.dtype], bool(add), is_wide, left, right)
    itemsize = out.access.dtype.itemsize
    arguments: list[Argument] = [
        m, n, k, rows, columns,
        x.access, x.batch * itemsize, x.row, x.column,
        y.access, y.batch * itemsize, y.column, y.row,
        out.access, out.batch * itemsize, out.row,
    ]  # fmt: skip
    return Emitted(named(text, tile.name), arguments, {}), Grid(batch * rows * columns, tile.threads)


def suitable(product: Product) -> Tile:
    """Return the tile that takes the least time, given how often tiles take turns, and how full they are.

    In float64 the 128 sums of a thread of a HUGE tile would fill 256 registers, but a thread has 255.
    """
    batch, m, n = product[:3]
    fitting = (
        (SMALL, MEDIUM, LARGE, HUGE) if product.out.access.dtype.itemsize <= 4 else (SMALL, MEDIUM, LARGE)
    )

    def time(tile: Tile) -> float:
        count = batch * -(-m // tile.rows) * -(-n // tile.columns)
        return -(-count // PROCESSORS) * tile.rows * tile.columns / tile.speed

    return min(fitting, key=time)


def _operand(
    tile: Tile, name: str, first: str, extent: str, size: int, matrices: Matrices, strides: tuple[int, int],
    extents: tuple[int, int],
) -> _Copied:  # fmt: skip
    """Return how an operand is copied, given its strides and extents along the inner axis and the other one."""
    (inner, outer), (k, count) = strides, extents
    along = inner == 1 or (outer != 1 and inner < outer)
    near, far, length = (inner, outer, k) if along else (outer, inner, count)
    starts = (matrices.access.offset, matrices.batch, far, length, size * tile.inner // tile.threads)
    is_wide = near == 1 and not any(number % _VECTOR for number in starts)
    return _Copied(name, first, extent, size, along, _VECTOR if is_wide else 1)


def _text(tile: Tile, suffix: str, adds: bool, is_wide: bool, x: _Copied, y: _Copied) -> str:
    lines = [
        "m = index(args[0])", "n = index(args[1])", "k = index(args[2])",
        "rows = index(args[3])", "columns = index(args[4])",
        "number = quotient(block(), rows * columns)",
        "tile = remainder(block(), rows * columns)",
        f"first_row = index(quotient(tile, columns) * {tile.rows})",
        f"first_column = index(remainder(tile, columns) * {tile.columns})",
        f"x = read_{suffix}(args[5] + number * args[6])",
        "x_outer = index(args[7])", "x_inner = index(args[8])",
        f"y = read_{suffix}(args[9] + number * args[10])",
        "y_outer = index(args[11])", "y_inner = index(args[12])",
        f"out = write_{suffix}(args[13] + number * args[14], 0)",
        "out_row = index(args[15])",
        f"xs = shared_{suffix}(0, {2 * tile.inner * x.stride})",
        f"ys = shared_{suffix}(1, {2 * tile.inner * y.stride})",
        "me = thread_of_block()",
        *_copied_places(tile, x),
        *_copied_places(tile, y),
        *computed_places(tile),
        f"sums = tile_{suffix}({tile.vectors})",
        "at = index(0)",
        "piece = index(0)",
        *_loads(tile, (x, y)),
        *_stores(tile, (x, y), suffix),
        "while at < k:",
        f"{INDENT}at = index(at + {tile.inner})",
        *[INDENT + line for line in _loads(tile, (x, y))],
        *[INDENT + line for line in _multiplied(tile, x, y)],
        f"{INDENT}piece = index({tile.inner} - piece)",
        *[INDENT + line for line in _stores(tile, (x, y), suffix)],
        *(_added_parts(tile, suffix) if tile.parts > 1 else []),
        *_results(tile, adds, is_wide),
    ]  # fmt: skip
    return "\n".join([f"def {NAME}(args):", *[INDENT + line for line in lines]]) + "\n"


def _copied_places(tile: Tile, operand: _Copied) -> list[str]:
    """Return the lines that say which elements of an operand this thread copies, and to where."""
    name, first, extent, size, along, width = operand
    lines = []
    for j in operand.copies(tile):
        number = f"index(me + {j * tile.threads})"
        length = (tile.inner if along else size) // width
        near, far = f"remainder({number}, index({length}))", f"quotient({number}, index({length}))"
        near = f"index({near} * {width})" if width > 1 else near
        last = f"{extent} - {1 if along else width}"
        lines += [
            f"{name}{j}_outer = {far if along else near}",
            f"{name}{j}_inner = {near if along else far}",
            f"{name}{j}_to = index({name}{j}_inner * {operand.stride} + {name}{j}_outer)",
            f"{name}{j}_from = index(index(min({first} + {name}{j}_outer, {last})) * {name}_outer)",
        ]
    return lines


def computed_places(tile: Tile) -> list[str]:
    """Return the lines that say which elements of the result this thread computes.

    A group has up to _ACROSS columns of threads, whose operands are read from shared memory at once.
    """
    across = tile.columns // tile.over
    side = min(across, _ACROSS)
    lines = [f"worker = remainder(me, index({tile.workers}))"] if tile.parts > 1 else ["worker = me"]
    lines += [
        f"in_group = remainder(worker, index({GROUP}))",
        f"of_groups = quotient(worker, index({GROUP}))",
        f"down = quotient(of_groups, index({across // side})) * {GROUP // side} + quotient(in_group, index({side}))",
        f"own_row = index(down * {_VECTOR})",
        f"over = remainder(of_groups, index({across // side})) * {side} + remainder(in_group, index({side}))",
        f"own_column = index(over * {_VECTOR})",
    ]
    if tile.parts > 1:
        lines.append(f"part = quotient(me, index({tile.workers}))")
    return lines


def _loads(tile: Tile, operands: tuple[_Copied, ...]) -> list[str]:
    """Return the lines that load the elements of the tiles that begin at `at`; beyond the end, the last ones again."""
    lines = []
    for operand in operands:
        name, *_, along, width = operand
        last = f"k - {width if along else 1}"
        for j in operand.copies(tile):
            place = f"{name}{j}_from + index(min(at + {name}{j}_inner, {last})) * {name}_inner"
            lines.append(f"{name}{j} = " + (f"load_x4({name}, {place})" if width > 1 else f"{name}[{place}]"))
    return lines


def _stores(tile: Tile, operands: tuple[_Copied, ...], suffix: str) -> list[str]:
    """Return the lines that put the loaded elements into a piece of shared memory, zeros beyond the end."""
    lines = []
    for operand in operands:
        name, *_, along, width = operand
        for j in operand.copies(tile):
            inside, place = f"at + {name}{j}_inner < k", f"piece * {operand.stride} + {name}{j}_to"
            zeros = f"{suffix}x4({suffix}(0))" if width > 1 else f"{suffix}(0)"
            value = f"{name}{j} if {inside} else {zeros}"
            if width == 1:
                lines.append(f"{name}s[{place}] = {value}")
            elif not along:
                lines.append(f"store_x4({name}s, {place}, {value})")
            else:
                lines.append(f"{name}{j} = {value}")
                lines += [
                    f"{name}s[{place} + {lane * operand.stride}] = item_{suffix}({name}{j}, {lane})"
                    for lane in range(width)
                ]
    return [*lines, "barrier()"]


def _multiplied(tile: Tile, x: _Copied, y: _Copied) -> list[str]:
    """Return the lines that multiply the tiles in shared memory."""
    steps = tile.inner // tile.parts
    unrolled = min(steps, _UNROLLED)
    left = f"xs, index(piece + inner) * {x.stride} + own_row, {x.stride}, {tile.rows_apart}"
    right = f"ys, index(piece + inner) * {y.stride} + own_column, {y.stride}, {tile.columns_apart}"
    added = f"sums = add_products(sums, {tile.own}, {unrolled}, {left}, {right})"
    if steps == unrolled:
        return [f"inner = index({f'part * {steps}' if tile.parts > 1 else 0})", added]
    return [
        "inner = index(0)",
        f"while inner < {steps}:",
        INDENT + added,
        f"{INDENT}inner = index(inner + {unrolled})",
    ]


def _added_parts(tile: Tile, suffix: str) -> list[str]:
    """Return the lines that add up what the parts of the inner axis gave, in the threads of the first part.

    All parts but the first put their sums side by side for the threads that take them.
    """
    size, others = tile.workers * _VECTOR, tile.parts - 1
    lines = [f"others = shared_{suffix}(2, {size * others * 2})"]
    for first in range(0, tile.vectors, 2):  # two vectors at a time, so that little memory is enough
        lines += [
            "if part > 0:",
            f"{INDENT}at_others = index((part - 1) * {2 * size} + worker * {_VECTOR})",
            f"{INDENT}store_apart(others, at_others, {size}, sums, {first}, 2)",
            "barrier()",
            "if part == 0:",
            f"{INDENT}sums = add_apart(sums, {first}, 2, others, index(worker * {_VECTOR}), {size}, {others})",
            "barrier()",
        ]
    return lines


def _results(tile: Tile, adds: bool, is_wide: bool) -> list[str]:
    """Return the lines that store the elements of this thread that are in the result."""
    rows = f"{tile.own}, index(first_row + own_row), m, {tile.rows_apart}"
    columns = f"index(first_column + own_column), n, {tile.columns_apart}"
    store = f"{'add' if adds else 'store'}_inside(out, out_row, sums, {rows}, {columns}, {_VECTOR if is_wide else 1})"
    return [store] if tile.parts == 1 else ["if part == 0:", INDENT + store]


assert SMALL.workers == GROUP
