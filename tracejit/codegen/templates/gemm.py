# SPDX-License-Identifier: BSD-3-Clause
"""Emission of matrix products: kernels that keep a tile of the result in vector registers.

Note [register tile]
With 512-bit vectors a tile is 8 rows by 2 vectors. Each step along k then takes 2 loads of y and 8 numbers of x for 16
multiplications of vectors, which keep the CPU busy. x is read number by number, so it may have any strides; y and the
result lie by rows. Nothing is packed. The kernel for float32 is, without its arguments,

    for b in range(batch):
        for i in range(0, m, 8):
            rows = rows_8(i, m)
            for j_next in range(0, n, 32):
                j = min(j_next, n - 32)
                tile = zero_f32x32(rows)
                at_x = b * x_batch
                at_y = b * y_batch + j
                for p in range(k):
                    tile = add_outer_f32x32(tile, x, at_x, rows, x_row, load_f32x32(y, at_y))
                    at_x += x_column
                    at_y += y_row
                at = b * out_batch + j
                if add:
                    tile = add_tiles_f32x32(tile, load_tile_f32x32(out, at, rows, out_row, j_next - j, 32))
                store_tile_f32x32(out, at, rows, out_row, tile, j_next - j, 32)

Rows and columns beyond the last whole tile are computed twice: the last tile of rows repeats the last row, and
stores it several times; the last tile of columns begins early, and stores only the new columns. If n is less than two
vectors, a tile of one or two vectors stands for all columns, and only their lanes are loaded and stored. That is a
kernel of its own, because such a load takes the time of a multiplication. For few rows, where a tile of 8 would compute
the last row again and again, there is a kernel with tiles of 4 rows by 4 vectors.

Note [last columns]
A tile takes its time however many of its columns are new. Where at most a quarter or a half of its columns are left, a
narrower tile takes them: (100, 100) (100, 100) took 23.8 us with four whole tiles for a row, and takes 19.9 us this
way. The tile is chosen while the kernel runs, so that all sizes still share it.

Note [panels]
Where y does not stay in the nearest cache, each tile of rows would read it from a farther one, with strides at which a
cache holds few lines. So for larger matrices another kernel copies a panel of y, as wide as a tile and some hundred
rows deep, into memory without gaps, and multiplies it by all rows of x. If y lies by columns, its panel is transposed
on the way. An x that lies by columns is copied in blocks, for the same reason; one that lies by rows is read in place.
The sums along k are then added up panel by panel, in the result.

Note [narrow results]
A result of 10 columns leaves 6 of 16 lanes unused; fewer columns leave more. If x lies by columns, as in the
gradient of a weight, its rows may as well be the lanes: a tile is then 32 rows, each of its vectors 16 rows of one
column, and y is read number by number. The tile is transposed only when it is stored. If x lies by rows, and there are
very few columns, the lanes are neighbours along k: each vector sums up one number of the result, and its lanes are
added at the end. This needs y by columns; otherwise y is first transposed into scratch memory. GFLOP/s on one core with
AVX-512, float32, by the kernel with tiles and by these:

    (m, k) (k, n)          x by rows: tiles  dots    x by columns: tiles  columns
    (128, 128) (128, 1)                  11    42                     10       30
    (32, 32) (32, 2)                     20    46                     21       55
    (128, 128) (128, 2)                  22    71                     19       54
    (128, 128) (128, 4)                  45   103                     40      100
    (128, 128) (128, 6)                  67    95                     57      122
    (64, 64) (64, 10)                   106    64                    109      159
    (128, 128) (128, 10)                110    79                     97      172
    (512, 128) (128, 10)                110    81                     87      177
    (128, 128) (128, 14)                153    83                    129      158

With 10 columns and x by rows, tiles are bound by loads, 9 or 10 for 8 multiplications, at 110 GFLOP/s. Other ways were
tried, with these GFLOP/s: squares of x transposed in registers (99) or through memory (88), taller tiles (107), rows of
y copied to where no vector crosses a cache line (122 at best, 107 where k is 512).
"""

from collections.abc import Sequence
from functools import cache

import numpy as np

from tracejit.codegen.names import SUFFIXES
from tracejit.codegen.target import vector_bytes
from tracejit.codegen.templates.kernel_text import TILE_ROWS, header, indent, kernel_of, tile_rows
from tracejit.passes.loops.multiplier import DOTS_DEEPEST
from tracejit.program import Kernel

_FEWEST_LANES = 4  # of a tile
_PANEL_BYTES = 1024  # of a column of a panel
_BLOCK_TILES = 32  # tiles of rows in a block of x, which are multiplied by a panel one after the other
_TILE_VECTORS = {64: 24, 32: 12, 16: 12}  # vectors of a tile of columns, at most, by bytes of a vector

PRODUCT_ARGUMENTS = (
    "batch", "m", "n", "k", "x_row", "x_column", "x_batch", "y_row", "y_batch", "out_row", "out_batch", "add",
)  # fmt: skip
PANELS_ARGUMENTS = (
    "batch", "m", "n", "k", "x_row", "x_column", "x_batch", "y_row", "y_column", "y_batch", "out_row", "out_batch",
    "add",
)  # fmt: skip
TRANSPOSE_ARGUMENTS = ("batch", "m", "n", "x_row", "x_batch")


def product(dtype: np.dtype, m: int, n: int) -> Kernel:
    """Return the kernel that multiplies matrices of a dtype: out[b] (m, n) = x[b] (m, k) y[b] (k, n).

    If `add` is not 0, products are added to what is in out. Its arguments are PRODUCT_ARGUMENTS, then pointers to x, y
    and out. The strides count elements; columns of y are neighbours, and columns of out are too. There are four
    kernels: for n of at most one vector, less than two, and more; and for m of at most half a tile.
    """
    width = vector_bytes()
    height, lanes = TILE_ROWS[width], width // dtype.itemsize
    if m <= height // 2 and n >= 4 * lanes:
        return _product(SUFFIXES[dtype], height // 2, 4 * lanes, True)
    return _product(SUFFIXES[dtype], height, lanes if n <= lanes else 2 * lanes, n >= 2 * lanes)


def rows_to_block(dtype: np.dtype) -> list[str]:
    """Return lines that write the rows of one tile of a product x y (n0, n1) to `block`, from row i on.

    They take n0, n1, k, x, x_row, x_column, y and y_row from the text. There are at least two vectors of columns.
    """
    width = 2 * vector_bytes() // dtype.itemsize
    kind = f"{SUFFIXES[dtype]}x{width}"
    return [
        f"rows = rows_{tile_rows()}(i, n0)",
        f"places = rows_{tile_rows()}(0, n0 - i)",
        f"for j_next in range(0, n1, {width}):",
        f"    j = min(j_next, n1 - {width})",
        f"    tile = zero_{kind}(rows)",
        "    at_x = 0",
        "    at_y = j",
        "    for p in range(k):",
        f"        tile = add_outer_{kind}(tile, x, at_x, rows, x_row, load_{kind}(y, at_y))",
        "        at_x += x_column",
        "        at_y += y_row",
        f"    store_tile_{kind}(block, j, places, n1, tile, j_next - j, {width})",
    ]


def panels(dtype: np.dtype) -> Kernel:
    """Return the kernel that multiplies matrices as `product` does, by panels (Note [panels]).

    Its arguments are PANELS_ARGUMENTS, then pointers to x, y and out. One of the strides of x is 1, and one of those of
    y; columns of out are neighbours, and there are at least two vectors of them.
    """
    height, lanes = TILE_ROWS[vector_bytes()], vector_bytes() // dtype.itemsize
    return _panels(SUFFIXES[dtype], height, lanes, _PANEL_BYTES // dtype.itemsize, _BLOCK_TILES * height)


def columns(dtype: np.dtype, m: int, n: int, near: bool) -> Kernel:
    """Return the kernel that multiplies as `product` does, with a vector for each column (Note [narrow results]).

    Its arguments are PANELS_ARGUMENTS, then pointers to x, y and out. Rows of x are neighbours, and columns of out; so
    are columns of y if they are `near`.
    """
    lanes, most = vector_bytes() // dtype.itemsize, _TILE_VECTORS[vector_bytes()]
    width = -(-n // -(-n // min(most, lanes)))
    is_pair = 2 * width <= most and -(-m // lanes) not in (1, 3)
    return _columns(SUFFIXES[dtype], width, lanes, 2 if is_pair else 1, near)


def dots(dtype: np.dtype, n: int) -> Kernel:
    """Return the kernel that multiplies as `product` does, with lanes along k (Note [narrow results]).

    Its arguments are PANELS_ARGUMENTS, then pointers to x, y and out. Columns of x are neighbours. Rows of y are too,
    or its columns if k is at most DOTS_DEEPEST. Columns of out are neighbours, and its rows lie without gaps.
    """
    return _dots(SUFFIXES[dtype], n, max(vector_bytes() // dtype.itemsize, 1 << (n - 1).bit_length()))


def transpose(dtype: np.dtype) -> Kernel:
    """Return the kernel that transposes matrices of a dtype: out[b] (n, m) = x[b] (m, n) transposed.

    Its arguments are TRANSPOSE_ARGUMENTS, then pointers to x and out. Columns of x are neighbours, and out is
    contiguous.
    """
    return _transpose(SUFFIXES[dtype], vector_bytes() // dtype.itemsize)


@cache
def _product(suffix: str, height: int, lanes: int, whole: bool) -> Kernel:
    """Return the kernel whose tiles are `height` rows by `lanes` columns, all of them in use if `whole`."""
    if not whole:
        tile = _tile(suffix, lanes, "load_first", ", n", "", "0, n")
    else:
        widths = (*_last_widths(lanes), lanes) if lanes == 2 * _lanes(suffix) else (lanes,)
        tiles_by_width = [
            [f"j = min(j_next, n - {part})", *_tile(suffix, part, "load", "", " + j", f"j_next - j, {part}")]
            for part in widths
        ]
        tile = [f"for j_next in range(0, n, {lanes}):", *indent(1, _by_width(widths, tiles_by_width))]
    tiles = [f"for i in range(0, m, {height}):", f"    rows = rows_{height}(i, m)", *indent(1, tile)]
    return kernel_of(
        [*header(PRODUCT_ARGUMENTS, suffix, ("x", "y")), "for b in range(batch):", *indent(1, tiles)],
        "product",
    )


def _last_widths(lanes: int) -> tuple[int, ...]:
    """Return how many columns narrower tiles have, which take the last columns (Note [last columns])."""
    return tuple([part for part in (lanes // 4, lanes // 2) if part >= _FEWEST_LANES])


def _by_width(widths: Sequence[int], lines: Sequence[list[str]]) -> list[str]:
    """Return lines that choose the narrowest tile that has room for the columns that are left."""
    chosen: list[str] = []
    for number, (part, tile) in enumerate(zip(widths, lines, strict=True)):
        if part == widths[-1]:
            chosen += ["else:", *indent(1, tile)] if number else tile
        else:
            chosen += [f"{'elif' if number else 'if'} n - j_next <= {part}:", *indent(1, tile)]
    return chosen


def _lanes(suffix: str) -> int:
    """Return the numbers of a vector."""
    return vector_bytes() * 8 // int(suffix[1:])


def _tile(suffix: str, lanes: int, load: str, width: str, start: str, used: str) -> list[str]:
    """Return the lines of a tile of `lanes` columns."""
    kind = f"{suffix}x{lanes}"
    place = "out, at, rows, out_row"
    return [
        f"tile = zero_{kind}(rows)",
        "at_x = b * x_batch",
        f"at_y = b * y_batch{start}",
        "for p in range(k):",
        f"    tile = add_outer_{kind}(tile, x, at_x, rows, x_row, {load}_{kind}(y, at_y{width}))",
        "    at_x += x_column",
        "    at_y += y_row",
        f"at = b * out_batch{start}",
        "if add:",
        f"    tile = add_tiles_{kind}(tile, load_tile_{kind}({place}, {used}))",
        f"store_tile_{kind}({place}, tile, {used})",
    ]


@cache
def _panels(suffix: str, height: int, lanes: int, deep: int, rows: int) -> Kernel:
    """Return the kernel whose panels are `deep` rows of two vectors of `lanes`, and whose blocks of x `rows` rows."""
    width = 2 * lanes
    gap = rows + lanes  # so that neighbours along k are not a power of two apart, which caches dislike
    depth = [
        f"depth = min({deep}, k - q)",
        "left = x",
        "row = x_row",
        "column = x_column",
        "start = b * x_batch + first * x_row + q * x_column",
        "if x_row == 1:",
        "    for p in range(depth):",
        "        for i in range(height):",
        f"            block[p * {gap} + i] = x[start + p * x_column + i]",
        "    left = block",
        f"    column = {gap}",
        "    start = 0",
        f"for j_next in range(0, n, {width}):",
        *indent(1, _panel_columns(suffix, height, lanes)),
    ]
    lines = [
        *header(PANELS_ARGUMENTS, suffix, ("x", "y")),
        f"panel = scratch_{suffix}({deep * width})",
        f"block = scratch_{suffix}({deep * gap})",
        "for b in range(batch):",
        f"    for first in range(0, m, {rows}):",
        f"        height = min({rows}, m - first)",
        f"        for q in range(0, k, {deep}):",
        *indent(3, depth),
    ]
    return kernel_of(lines, "panels")


def _panel_columns(suffix: str, height: int, lanes: int) -> list[str]:
    """Return the lines that copy a panel of y from column j on, and multiply it by all rows of a block of x."""
    one, kind = f"{suffix}x{lanes}", f"{suffix}x{2 * lanes}"
    width = 2 * lanes
    turn = [
        f"for p in range(0, depth, {lanes}):",
        f"    few = min({lanes}, depth - p)",
        f"    for c in range(0, {width}, {lanes}):",
        f"        square = load_tile_{one}(y, at_y + p, rows_{lanes}(c, {width}), y_column, 0, few)",
        f"        store_tile_{one}(panel, p * {width} + c, rows_{lanes}(0, {lanes}), {width}, transpose_{one}(square), "
        f"0, {lanes})",
    ]
    widths = (*_last_widths(width), width)
    tiles = [_panel_tile(suffix, height, part, width) for part in widths]
    return [
        f"j = min(j_next, n - {width})",
        "at_y = b * y_batch + q * y_row + j * y_column",
        "if y_column == 1:",
        "    for p in range(depth):",
        f"        store_{kind}(panel, p * {width}, load_{kind}(y, at_y))",
        "        at_y += y_row",
        "else:",
        *indent(1, turn),
        *_by_width(widths, tiles),
    ]


def _panel_tile(suffix: str, height: int, lanes: int, width: int) -> list[str]:
    """Return the lines that multiply all rows of a block of x by the last `lanes` columns of a panel of some width."""
    kind, skipped = f"{suffix}x{lanes}", width - lanes
    behind = f" + {skipped}" if skipped else ""
    used = f"j_next - j{f' - {skipped}' if skipped else ''}, {lanes}"
    tile = [
        f"rows = rows_{height}(i, height)",
        f"tile = zero_{kind}(rows)",
        "at_x = start",
        "for p in range(depth):",
        f"    tile = add_outer_{kind}(tile, left, at_x, rows, row, load_{kind}(panel, p * {width}{behind}))",
        "    at_x += column",
        f"at = b * out_batch + first * out_row + j{behind}",
        "if add + q:",
        f"    tile = add_tiles_{kind}(tile, load_tile_{kind}(out, at, rows, out_row, {used}))",
        f"store_tile_{kind}(out, at, rows, out_row, tile, {used})",
    ]
    return [f"for i in range(0, height, {height}):", *indent(1, tile)]


@cache
def _columns(suffix: str, width: int, lanes: int, vectors: int, near: bool) -> Kernel:
    """Return the kernel whose tiles are `vectors` times `lanes` rows by `width` columns."""
    kind = f"{suffix}x{lanes}"
    tiles = [f"tile{t}" for t in range(vectors)]
    starts = [f" + {t * lanes}" if t else "" for t in range(vectors)]
    apart = "1" if near else "y_column"
    lines = [
        f"c = min(c_next, n - {width})",
        f"columns = rows_{width}(0, {width})",
        *[f"{tile} = zero_{kind}(columns)" for tile in tiles],
        "at_x = b * x_batch + i",
        f"at_y = b * y_batch + c * {apart}",
        "for p in range(k):",
        *[
            f"    {tile} = add_outer_{kind}({tile}, y, at_y, columns, {apart}, "
            f"load_first_{kind}(x, at_x{start}, height{t}))"
            for t, (tile, start) in enumerate(zip(tiles, starts, strict=True))
        ],
        "    at_x += x_column",
        "    at_y += y_row",
        "at = b * out_batch + c",
    ]
    used = f"c_next - c, {width}"
    for tile, start in zip(tiles, starts, strict=True):
        store = [
            f"rows = rows_{lanes}(i{start}, m)",
            f"turned = turn_{kind}({tile})",
            "if add:",
            f"    turned = add_tiles_{kind}(turned, load_tile_{kind}(out, at, rows, out_row, {used}))",
            f"store_tile_{kind}(out, at, rows, out_row, turned, {used})",
        ]
        lines += [f"if i{start} < m:", *indent(1, store)] if start else store
    return kernel_of(
        [
            *header(PANELS_ARGUMENTS, suffix, ("x", "y")),
            "for b in range(batch):",
            f"    for i in range(0, m, {vectors * lanes}):",
            *[f"        height{t} = max(0, min({lanes}, m - i - {t * lanes}))" for t in range(vectors)],
            f"        for c_next in range(0, n, {width}):",
            *indent(3, lines),
        ],
        "columns",
    )


@cache
def _dots(suffix: str, width: int, lanes: int) -> Kernel:
    """Return the kernel whose tiles have `width` columns."""
    kind = f"{suffix}x{lanes}"
    height = lanes // width
    gap = DOTS_DEEPEST + lanes  # so that columns are not a power of two apart
    turn = [
        f"square = load_tile_{kind}(y, start + p * y_row, rows_{lanes}(0, k - p), y_row, 0, {width})",
        f"store_tile_{kind}(turned, p, rows_{lanes}(0, {width}), {gap}, transpose_{kind}(square), 0, {lanes})",
    ]
    tile = [
        f"rows = rows_{height}(i, m)",
        f"tile = zero_{kind}(rows_{height * width}(0, {height * width}))",
        "at_x = b * x_batch",
        f"for p in range(0, k, {lanes}):",
        f"    tile = add_dots_{kind}(tile, x, at_x + p, rows, x_row, right, start + p, columns, column, "
        f"min({lanes}, k - p))",
        f"sums = sum_lanes_{kind}(tile)",
        "at = b * out_batch + i * out_row",
        f"few = min({height}, m - i) * {width}",
        "if add:",
        f"    sums = add_tiles_{kind}(sums, load_tile_{kind}(out, at, rows_1(0, 1), 0, 0, few))",
        f"store_tile_{kind}(out, at, rows_1(0, 1), 0, sums, 0, few)",
    ]
    return kernel_of(
        [
            *header(PANELS_ARGUMENTS, suffix, ("x", "y")),
            f"turned = scratch_{suffix}({gap * width})",
            f"columns = rows_{width}(0, {width})",
            "for b in range(batch):",
            "    right = y",
            "    column = y_column",
            "    start = b * y_batch",
            "    if y_row != 1:",
            f"        for p in range(0, k, {lanes}):",
            *indent(3, turn),
            "        right = turned",
            f"        column = {gap}",
            "        start = 0",
            f"    for i in range(0, m, {height}):",
            *indent(2, tile),
        ],
        "dots",
    )


@cache
def _transpose(suffix: str, lanes: int) -> Kernel:
    kind = f"{suffix}x{lanes}"
    # Columns beyond the last repeat its place. store_tile begins with them, so that the true last column stays.
    lines = [
        *header(TRANSPOSE_ARGUMENTS, suffix, ("x",)),
        "for b in range(batch):",
        f"    for j in range(0, n, {lanes}):",
        f"        columns = rows_{lanes}(j, n)",
        f"        width = min({lanes}, n - j)",
        f"        for i in range(0, m, {lanes}):",
        f"            rows = rows_{lanes}(i, m)",
        f"            height = min({lanes}, m - i)",
        f"            tile = load_tile_{kind}(x, b * x_batch + j, rows, x_row, 0, width)",
        f"            store_tile_{kind}(out, b * m * n + i, columns, m, transpose_{kind}(tile), 0, height)",
    ]
    return kernel_of(lines, "transpose")
