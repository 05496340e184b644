# SPDX-License-Identifier: BSD-3-Clause
"""Convolutions and their gradients for a device, as products of matrices whose tiles a block keeps in shared memory.

Note [convolutions by tiles]
A convolution is a product of filters with windows: its rows are the filters of a group, its columns the positions of
windows in all images, and its inner axis the channels and taps. The gradient by the input is the same product, of each
phase (Note [elements of a convolution] in convolution.py). In the gradient by weights, columns are channels and taps,
and the inner axis the positions. The matrix of windows is never stored. The place of an element is the place of its
column plus that of its inner index. The same holds for its place along each axis of the image, which says whether it
lies in the image.

So a block makes tables in shared memory: one of its rows and columns, once, and one of the inner indices, with each
tile. A thread that copies an element reads both places, adds them, and loads. Whether neighbours copy neighbours of the
inner axis (`along`) follows from how operands lie in memory. All else is as in Note [tiles of a block] in
product_tiles.py. Places have 32 bits.

The choice of the kernel was not measured on a GPU; it rests on the fact that results with few filters or few terms fill
no tiles.
"""

from collections.abc import Mapping
from functools import cache
from math import prod

from tracejit.codegen.device.product_tiles import PAD, PROCESSORS, Tile, computed_places
from tracejit.codegen.device.text import emitted, indented, taken_apart
from tracejit.codegen.nest import Emitted
from tracejit.passes.loops.convolution_parts import BLOCK_TILES, block_tile
from tracejit.passes.loops.nest import Access
from tracejit.program import Grid

# The speeds are those of products whose threads have as many sums for each operand, not measured.
TILES = (
    Tile("convolution", *BLOCK_TILES[0], 8, 8, 8, 1, 32.0),
    Tile("convolution", *BLOCK_TILES[1], 8, 4, 16, 1, 26.0),
    Tile("convolution", *BLOCK_TILES[2], 4, 4, 16, 1, 18.0),
)
_REGISTERS = 168  # of a thread, so that three blocks run on a processor side by side
_AXES = range(3)
_NEVER = -(1 << 30)  # an element that is in no image


def tile_for(rows: int, columns: int, others: int) -> Tile:
    """Return the tile that takes the least time, given how often tiles take turns, and how full they are.

    Args:
        rows: of the product.
        columns: of the product.
        others: how many such products there are.
    """

    def time(tile: Tile) -> float:
        count = others * -(-rows // tile.rows) * -(-columns // tile.columns)
        return -(-count // PROCESSORS) * tile.rows * tile.columns / tile.speed

    return min(TILES, key=time)


def emit_element_tiles(
    numbers: Mapping[str, int], stem: str, reads: Mapping[str, Access], out: Access, channels_along: bool,
    checked: tuple[int, ...], images_last: bool,
) -> tuple[Emitted, Grid]:  # fmt: skip
    """Return the kernel of a convolution, or of its gradient by the input, and its threads.

    Args:
        numbers: of the kernel by elements.
        stem: the beginning of its name.
        reads: the operands.
        out: the result.
        channels_along: whether channels are neighbours in memory.
        checked: the axes along which windows may begin before an image or end behind it.
        images_last: whether images are neighbours in memory in the result.
    """
    n = {name: number for name, number in numbers.items() if name not in ("elements", "places", "owns")}
    others = n["teams"] * prod(n[f"phases{a}"] for a in _AXES)
    tile = tile_for(n["own_count"], n["positions"], others)
    n["rows"], n["columns"] = -(-n["own_count"] // tile.rows), -(-n["positions"] // tile.columns)
    text = _elements_text(tile, channels_along, "bias" in reads, checked, images_last)
    grid = Grid(others * n["rows"] * n["columns"], tile.threads)
    return emitted(stem, text, out.dtype, n, reads, {"out": out}), grid


@cache
def _elements_text(
    tile: Tile, channels_along: bool, is_biased: bool, checked: tuple[int, ...], images_last: bool
) -> str:
    windows = [(f"at{a}", f"count{a}") for a in _AXES]
    order = [*windows, ("image", "batch")] if images_last else [("image", "batch"), *windows]
    axes = [("team", "teams"), *[(f"phase{a}", f"phases{a}") for a in _AXES]]
    start = ["number = block()", *taken_apart("number", [*axes, ("row", "rows"), ("column", "columns")])]
    for a in _AXES:
        start += [
            f"first{a} = index(0)",
            f"while first{a} < taps{a} and remainder(index(phase{a} + raised{a} - first{a} * dilation{a}), "
            f"apart{a}) != 0:",
            f"    first{a} = index(first{a} + 1)",
            f"shift{a} = index(quotient(index(phase{a} + raised{a} - first{a} * dilation{a}), apart{a}) - lifted{a})",
            f"left{a} = index(max(taps{a} - first{a}, 0))",
            f"own_taps{a} = quotient(index(left{a} + every{a} - 1), every{a})",
            f"turns{a} = index(max(own_taps{a}, 1))",
        ]
    start += ["inner_count = index(inner * own_taps0 * own_taps1 * own_taps2)"]
    column = [
        "position = index(min(number, positions - 1))",
        *taken_apart("position", order),
        "place = image * x_image + team * inner * x_inner",
        "at_out = image * out_image + team * own_count * out_own",
        "kept = number < positions",
    ]
    for a in _AXES:
        column += [
            f"begin{a} = index(at{a} * step{a} + shift{a})",
            f"place = place + begin{a} * x{a}",
            f"at{a} = index(at{a} * apart{a} + phase{a})",
            f"kept = kept & (at{a} < size{a})",
            f"at_out = at_out + at{a} * out{a}",
        ]
    row = [
        "own = index(min(number, own_count - 1))",
        "row_place = team * w_group + own * w_own",
    ]
    counts = [(f"tap{a}", f"turns{a}") for a in _AXES]
    counts = [*counts, ("c", "inner")] if channels_along else [("c", "inner"), *counts]
    inner = [
        *taken_apart("k", counts),
        *[f"moved{a} = index(tap{a} * move{a})" for a in _AXES],
        "inner_place = c * x_inner" + "".join(f" + moved{a} * x{a}" for a in _AXES),
        "row_inner = c * w_inner" + "".join(f" + index(first{a} + tap{a} * every{a}) * w{a}" for a in _AXES),
    ]
    result = f"out, out_own, sums, {tile.own}, index(first_row + own_row), own_count, {tile.rows_apart}"
    last = "bias, team * own_count" if is_biased else ""
    return _text(tile, start, column, row, inner, result, last, checked, (channels_along, True))


def emit_weight_tiles(
    numbers: Mapping[str, int], x: Access, y: Access, out: Access, along: tuple[bool, bool],
    checked: tuple[int, ...], images_last: bool,
) -> tuple[Emitted, Grid]:  # fmt: skip
    """Return the kernel of a gradient by weights, and its threads.

    Args:
        numbers: of the kernel, with `parts`.
        x: the input of the convolution.
        y: the cotangent.
        out: the results of all parts.
        along: whether positions are neighbours in memory in x, and in y.
        checked: the axes along which windows may begin before an image or end behind it.
        images_last: whether images are neighbours in memory.
    """
    taps = numbers["k0"] * numbers["k1"] * numbers["k2"]
    n = dict(numbers)
    n["column_count"] = n["channels"] * taps
    wanted = block_tile(n["filters"], n["column_count"])
    tile = next(tile for tile in TILES if (tile.rows, tile.columns) == wanted)
    n["rows"], n["columns"] = -(-n["filters"] // tile.rows), -(-n["column_count"] // tile.columns)
    text = _weights_text(tile, along, checked, images_last)
    grid = Grid(n["parts"] * n["groups"] * n["rows"] * n["columns"], tile.threads)
    return emitted("convolution_weights", text, out.dtype, n, {"x": x, "w": y}, {"out": out}), grid


@cache
def _weights_text(tile: Tile, along: tuple[bool, bool], checked: tuple[int, ...], images_last: bool) -> str:
    axes = [("part", "parts"), ("team", "groups"), ("row", "rows"), ("column", "columns")]
    start = [
        "number = block()",
        *taken_apart("number", axes),
        "first_k = index(part * length)",
        "inner_count = index(max(min(positions - first_k, length), 0))",
    ]
    counts = [("c", "channels"), *[(f"tap{a}", f"k{a}") for a in _AXES]]
    column = [
        "own = index(min(number, column_count - 1))",
        *taken_apart("own", counts),
        *[f"begin{a} = index(tap{a} * d{a} - p{a})" for a in _AXES],
        "place = (team * channels + c) * xc" + "".join(f" + begin{a} * x{a}" for a in _AXES),
        "at_out = part * size + team * filters * wu + c * wc" + "".join(f" + tap{a} * w{a}" for a in _AXES),
        "kept = number < column_count",
    ]
    row = ["row_place = (team * filters + index(min(number, filters - 1))) * yu"]
    windows = [(f"at{a}", f"o{a}") for a in _AXES]
    order = [*windows, ("image", "batch")] if images_last else [("image", "batch"), *windows]
    inner = [
        "position = index(first_k + k)",
        *taken_apart("position", order),
        *[f"moved{a} = index(at{a} * s{a})" for a in _AXES],
        "inner_place = image * xb" + "".join(f" + moved{a} * x{a}" for a in _AXES),
        "row_inner = image * yb" + "".join(f" + at{a} * y{a}" for a in _AXES),
    ]
    result = f"out, wu, sums, {tile.own}, index(first_row + own_row), filters, {tile.rows_apart}"
    return _text(tile, start, column, row, inner, result, "", checked, along)


def _text(
    tile: Tile, start: list[str], column: list[str], row: list[str], inner: list[str], result: str, bias: str,
    checked: tuple[int, ...], along: tuple[bool, bool],
) -> str:  # fmt: skip
    """Return a kernel's text.

    Args:
        tile: of the product.
        start: lines that say which tile this block computes, its `row` and `column`, and `inner_count`.
        column: lines that say where column `number` lies: `place`, `begin0` and so on, `at_out`, `kept`.
        row: lines that say where row `number` lies: `row_place`.
        inner: lines that say where inner index `k` lies: `inner_place`, `moved0` and so on, `row_inner`.
        result: the first arguments of the function that stores the result.
        bias: its last ones, of the bias; "" if there is none.
        checked: the axes along which elements may lie outside of an image.
        along: whether neighbouring threads copy neighbours of the inner axis, of columns and of rows.
    """
    width, height, size = tile.columns + PAD, tile.rows + PAD, tile.inner

    lines = [
        f"registers({_REGISTERS})",
        *start,
        "me = thread_of_block()",
        f"first_row = index(row * {tile.rows})",
        f"first_column = index(column * {tile.columns})",
        f"xs = shared_T(0, {2 * size * width})",
        f"ws = shared_T(1, {2 * size * height})",
        f"of_columns = shared_i32(2, {tile.columns * 4})",
        f"of_results = shared_i32(3, {tile.columns})",
        f"of_inner = shared_i32(4, {2 * size * 4})",
        f"of_row_inner = shared_i32(5, {2 * size})",
        f"of_rows = shared_i32(6, {tile.rows})",
        f"if me < {tile.columns}:",
        "    number = index(first_column + me)",
        *indented(1, column),
        "    of_columns[me * 4] = index(place)",
        *[f"    of_columns[me * 4 + {a + 1}] = begin{a}" for a in _AXES],
        "    of_results[me] = index(at_out) if kept else index(-1)",
        f"if me < {tile.rows}:",
        "    number = index(first_row + me)",
        *indented(1, row),
        "    of_rows[me] = index(row_place)",
        "at = index(0)",
        "piece = index(0)",
        *_table(tile, "piece", inner, checked),
        "barrier()",
        *computed_places(tile),
        f"sums = tile_T({tile.vectors})",
        *_loads(tile, along, checked),
        "while at < inner_count:",
        *indented(1, _stores(tile, along)),
        f"    at = index(at + {size})",
        *indented(1, _table(tile, f"{size} - piece", inner, checked)),
        "    barrier()",
        "    now = index(piece)",
        f"    piece = index({size} - piece)",
        *indented(1, _loads(tile, along, checked)),
        *indented(1, _multiplied(tile, width, height)),
        f"store_placed{'_plus' if bias else ''}({result}, of_results, own_column, {tile.columns_apart}"
        f"{bias and f', {bias}'})",
    ]
    return "\n".join(lines)


def _table(tile: Tile, piece: str, inner: list[str], checked: tuple[int, ...]) -> list[str]:
    """Return the lines that say where the inner indices from `at` on lie, in one of the two pieces of the table."""
    return [
        f"if me < {tile.inner}:",
        "    k = index(min(at + me, max(inner_count - 1, 0)))",
        "    is_there = at + me < inner_count",
        *indented(1, inner),
        f"    entry = index({piece} + me)",
        "    of_inner[entry * 4] = index(inner_place)",
        *[
            f"    of_inner[entry * 4 + {a + 1}] = moved{a}"
            + (f" if is_there else index({_NEVER})" if a == checked[-1] else "")
            for a in _AXES
        ],
        "    of_row_inner[entry] = index(row_inner) if is_there else index(-1)",
    ]


def _copies(tile: Tile, count: int) -> range:
    return range(count * tile.inner // tile.threads)


def _place(tile: Tile, count: int, along: bool, j: int) -> tuple[str, str]:
    """Return the inner index, in the tile, and the row or column of what a thread copies as number j."""
    number = f"index(me + {j * tile.threads})"
    near = f"remainder({number}, index({tile.inner if along else count}))"
    far = f"quotient({number}, index({tile.inner if along else count}))"
    return (near, far) if along else (far, near)


def _loads(tile: Tile, along: tuple[bool, bool], checked: tuple[int, ...]) -> list[str]:
    """Return the lines that load the elements of the tiles whose table is that of `piece`."""
    lines = []
    for j in _copies(tile, tile.columns):
        k, column = _place(tile, tile.columns, along[0], j)
        lines += [
            f"from_k, moved_0, moved_1, moved_2 = four(of_inner, index(piece + {k}) * 4)",
            f"from_column, begin_0, begin_1, begin_2 = four(of_columns, {column} * 4)",
        ]
        inside = []
        for a in checked:
            lines.append(f"element_{a} = index(begin_{a} + moved_{a})")
            inside.append(f"(element_{a} >= 0) & (element_{a} < extent{a})")
        lines.append(f"x_{j} = x[from_column + from_k] if {' & '.join(inside)} else T(0)")
    for j in _copies(tile, tile.rows):
        k, row = _place(tile, tile.rows, along[1], j)
        lines += [
            f"from_k = of_row_inner[piece + {k}]",
            f"w_{j} = w[of_rows[{row}] + from_k] if from_k >= 0 else T(0)",
        ]
    return lines


def _stores(tile: Tile, along: tuple[bool, bool]) -> list[str]:
    """Return the lines that put the loaded elements into shared memory."""
    lines = []
    for name, count, is_along in (("x", tile.columns, along[0]), ("w", tile.rows, along[1])):
        for j in _copies(tile, count):
            k, other = _place(tile, count, is_along, j)
            lines.append(f"{name}s[index(piece + {k}) * {count + PAD} + {other}] = {name}_{j}")
    return lines


def _multiplied(tile: Tile, width: int, height: int) -> list[str]:
    unrolled = min(tile.inner, 8)
    left = f"ws, index(now + step) * {height} + own_row, {height}, {tile.rows_apart}"
    right = f"xs, index(now + step) * {width} + own_column, {width}, {tile.columns_apart}"
    return [
        "step = index(0)",
        f"while step < {tile.inner}:",
        f"    sums = add_products(sums, {tile.own}, {unrolled}, {left}, {right})",
        f"    step = index(step + {unrolled})",
    ]
