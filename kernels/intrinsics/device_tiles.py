# SPDX-License-Identifier: BSD-3-Clause
"""Tiles of matrices in the registers of a device's thread, for matrix products.

A tile has vectors of 4 neighbouring columns: those of its first row, then those of the next one. Its rows and vectors
lie apart in the whole result: 4 rows are neighbours, the next 4 lie `rows_apart` behind them; vectors lie
`columns_apart` behind each other. Each function takes one line of a kernel instead of a line for each vector, because a
line takes Numba a third of a millisecond. Numbers marked with * are written in the text.

tile_f32(count*)                zeros, in `count` vectors
add_products(tile, rows*, steps*, x, at_x, x_stride*, rows_apart*, y, at_y, y_stride*, columns_apart*)
                                plus the products of `steps` columns of x, x_stride apart, with rows of y
store_apart(out, at, apart*, tile, first*, count*)
                                stores vectors of the tile from `first` on at places that lie `apart`
add_apart(tile, first*, count*, x, at, apart*, times*)
                                adds to these vectors what `times` calls of store_apart stored, one behind the other
store_inside(out, out_stride, tile, rows*, row, m, rows_apart*, column, n, columns_apart*, lanes*)
                                stores what lies in rows before m and columns before n: `lanes` at a time, 4 or 1
add_inside(...)                 adds it to what is there
store_placed(out, out_stride, tile, rows*, row, m, rows_apart*, places, at, places_apart*)
                                stores what lies in rows before m at out_stride times the row, and the place of its
                                column, 4 of them from `at` on, others behind; without columns whose place is negative
store_placed_plus(..., x, at_x) adds x[at_x + row] to it
"""

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing import signature
from numba.extending import intrinsic

from .pointers import annotate
from .vectors import Vector, address, call, splat

_FOUR = 4
_I32 = ir.IntType(32)


def _load(builder: ir.IRBuilder, vector: Vector, x: Any, pointer: ir.Value, at: ir.Value) -> ir.Value:
    loaded = builder.load(address(builder, vector, pointer, at), align=_FOUR * vector.alignment)
    annotate(builder.module, loaded, x.scope)
    return loaded


def _store(
    builder: ir.IRBuilder, vector: Vector, out: Any, pointer: ir.Value, at: ir.Value, v: ir.Value
) -> None:
    stored = builder.store(v, address(builder, vector, pointer, at), align=_FOUR * vector.alignment)
    annotate(builder.module, stored, out.scope)


def _numbers(*literals: Any) -> tuple[int, ...] | None:
    """Return the numbers that are written in the text, None if one is not."""
    if all(isinstance(literal, types.IntegerLiteral) for literal in literals):
        return tuple([literal.literal_value for literal in literals])
    return None


def _tile(dtype: types.Type) -> Any:
    @intrinsic(prefer_literal=True)
    def tile(typing_context: Any, count: Any) -> Any:
        vector = Vector(dtype, _FOUR)

        def code(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
            return ir.Constant(context.get_value_type(sig.return_type), None)

        return signature(types.UniTuple(vector, count.literal_value), count), code

    return tile


@intrinsic(prefer_literal=True)
def _add_products(
    typing_context: Any, tile: Any, rows: Any, steps: Any, x: Any, at_x: Any, x_stride: Any, rows_apart: Any, y: Any,
    at_y: Any, y_stride: Any, columns_apart: Any,
) -> Any:  # fmt: skip
    numbers = _numbers(rows, steps, x_stride, rows_apart, y_stride, columns_apart)
    if numbers is None:
        return None
    height, count, x_step, x_apart, y_step, y_apart = numbers
    vector = tile.dtype

    def code(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        sums = cgutils.unpack_tuple(builder, args[0])
        (from_x, first_x), (from_y, first_y) = args[3:5], args[7:9]
        word = first_x.type
        for step in range(count):

            def vectors(kind: Any, pointer: Any, first: Any, places: Sequence[int]) -> list[Any]:
                return [_load(builder, vector, kind, pointer, builder.add(first, word(at))) for at in places]

            left = vectors(x, from_x, first_x, [step * x_step + i * x_apart for i in range(height // _FOUR)])
            right = vectors(
                y, from_y, first_y, [step * y_step + j * y_apart for j in range(len(sums) // height)]
            )
            for i in range(height):
                number = builder.extract_element(left[i // _FOUR], _I32(i % _FOUR))
                factor = splat(builder, number, _FOUR)
                for j, other in enumerate(right):
                    at = i * len(right) + j
                    sums[at] = call(
                        builder, f"llvm.fma.{vector.mangled}", vector.llvm, [factor, other, sums[at]]
                    )
        return context.make_tuple(builder, sig.return_type, sums)

    arguments = (
        tile,
        rows,
        steps,
        x,
        types.intp,
        x_stride,
        rows_apart,
        y,
        types.intp,
        y_stride,
        columns_apart,
    )
    return signature(tile, *arguments), code


@intrinsic(prefer_literal=True)
def _store_apart(
    typing_context: Any, out: Any, at: Any, apart: Any, tile: Any, first: Any, count: Any
) -> Any:
    numbers = _numbers(apart, first, count)
    if numbers is None:
        return None

    def code(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        step, start, length = numbers
        for k, v in enumerate(cgutils.unpack_tuple(builder, args[3])[start : start + length]):
            place = builder.add(args[1], args[1].type(k * step))
            _store(builder, tile.dtype, out, args[0], place, v)
        return context.get_dummy_value()

    return signature(types.none, out, types.intp, apart, tile, first, count), code


@intrinsic(prefer_literal=True)
def _add_apart(
    typing_context: Any, tile: Any, first: Any, count: Any, x: Any, at: Any, apart: Any, times: Any
) -> Any:
    numbers = _numbers(first, count, apart, times)
    if numbers is None:
        return None

    def code(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        start, length, step, repeats = numbers
        sums = cgutils.unpack_tuple(builder, args[0])
        for k in range(length):
            for other in range(repeats):
                place = builder.add(args[4], args[4].type((other * length + k) * step))
                there = _load(builder, tile.dtype, x, args[3], place)
                sums[start + k] = builder.fadd(sums[start + k], there)
        return context.make_tuple(builder, sig.return_type, sums)

    return signature(tile, tile, first, count, x, types.intp, apart, times), code


def _inside(adds: bool) -> Callable[..., Any]:
    @intrinsic(prefer_literal=True)
    def inside(
        typing_context: Any, out: Any, out_stride: Any, tile: Any, rows: Any, row: Any, m: Any, rows_apart: Any,
        column: Any, n: Any, columns_apart: Any, lanes: Any,
    ) -> Any:  # fmt: skip
        numbers = _numbers(rows, rows_apart, columns_apart, lanes)
        if numbers is None:
            return None

        def code(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
            height, far_row, far_column, width = numbers
            pointer, stride, tuple_of_vectors, _, row, m, _, column, n, *_ = args
            vectors = cgutils.unpack_tuple(builder, tuple_of_vectors)
            across = len(vectors) // height
            for i in range(height):
                down = builder.add(row, row.type(i // _FOUR * far_row + i % _FOUR))
                with builder.if_then(builder.icmp_signed("<", down, m)):
                    start = builder.mul(builder.sext(down, stride.type), stride)
                    for j, lane in [(j, lane) for j in range(across) for lane in range(0, _FOUR, width)]:
                        over = builder.add(column, column.type(j * far_column + lane))
                        with builder.if_then(builder.icmp_signed("<", over, n)):
                            value = vectors[i * across + j]
                            place = builder.add(start, builder.sext(over, stride.type))
                            put(builder, pointer, place, value, lane, width)
            return context.get_dummy_value()

        def put(
            builder: ir.IRBuilder, pointer: ir.Value, place: ir.Value, value: ir.Value, lane: int, width: int
        ) -> None:
            if width == _FOUR:
                there = _load(builder, tile.dtype, out, pointer, place) if adds else None
                value = value if there is None else builder.fadd(there, value)
                _store(builder, tile.dtype, out, pointer, place, value)
                return
            number, at = builder.extract_element(value, _I32(lane)), builder.gep(pointer, [place])
            if adds:
                loaded = builder.load(at)
                annotate(builder.module, loaded, out.scope)
                number = builder.fadd(loaded, number)
            annotate(builder.module, builder.store(number, at), out.scope)

        index = types.int32
        kinds = (out, types.intp, tile, rows, index, index, rows_apart, index, index, columns_apart, lanes)
        return signature(types.none, *kinds), code

    return inside


def _written_in_places(
    out: Any, tile: Any, rows: Any, m: Any, rows_apart: Any, places: Any, apart: Any, x: Any | None
) -> Any:
    """Return the signature and the code of store_placed, or of store_placed_plus of a pointer x."""
    numbers = _numbers(rows, rows_apart, apart)
    if numbers is None:
        return None
    height, far_row, far_place = numbers

    def code(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        pointer, stride, tuple_of_vectors, _, row, m, _, table, at, _, *further = args
        vectors = cgutils.unpack_tuple(builder, tuple_of_vectors)
        across = len(vectors) // height
        columns = []
        for j in range(across):
            place = builder.add(at, at.type(j * far_place))
            four = _load(builder, Vector(types.int32, _FOUR), places, table, place)
            columns += [builder.extract_element(four, _I32(lane)) for lane in range(_FOUR)]
        are_in = [builder.icmp_signed(">=", column, column.type(0)) for column in columns]
        for i in range(height):
            down = builder.add(row, row.type(i // _FOUR * far_row + i % _FOUR))
            with builder.if_then(builder.icmp_signed("<", down, m)):
                wide = builder.sext(down, stride.type)
                start, added = builder.mul(wide, stride), None
                if x is not None:
                    added = builder.load(builder.gep(further[0], [builder.add(further[1], wide)]))
                    annotate(builder.module, added, x.scope)
                for k, (column, is_in) in enumerate(zip(columns, are_in, strict=True)):
                    with builder.if_then(is_in):
                        number = builder.extract_element(vectors[i * across + k // _FOUR], _I32(k % _FOUR))
                        number = number if added is None else builder.fadd(added, number)
                        there = builder.gep(pointer, [builder.add(start, builder.sext(column, stride.type))])
                        annotate(builder.module, builder.store(number, there), out.scope)
        return context.get_dummy_value()

    index = types.int32
    kinds = (out, types.intp, tile, rows, index, index, rows_apart, places, types.intp, apart)
    return signature(types.none, *kinds, *([] if x is None else [x, types.intp])), code


@intrinsic(prefer_literal=True)
def _store_placed(
    typing_context: Any, out: Any, out_stride: Any, tile: Any, rows: Any, row: Any, m: Any, rows_apart: Any,
    places: Any, at: Any, apart: Any,
) -> Any:  # fmt: skip
    return _written_in_places(out, tile, rows, m, rows_apart, places, apart, None)


@intrinsic(prefer_literal=True)
def _store_placed_plus(
    typing_context: Any, out: Any, out_stride: Any, tile: Any, rows: Any, row: Any, m: Any, rows_apart: Any,
    places: Any, at: Any, apart: Any, x: Any, at_x: Any,
) -> Any:  # fmt: skip
    return _written_in_places(out, tile, rows, m, rows_apart, places, apart, x)


FUNCTIONS: dict[str, Any] = {
    "tile_f32": _tile(types.float32), "tile_f64": _tile(types.float64), "add_products": _add_products,
    "store_apart": _store_apart, "add_apart": _add_apart,
    "store_inside": _inside(False), "add_inside": _inside(True),
    "store_placed": _store_placed, "store_placed_plus": _store_placed_plus,
}  # fmt: skip
