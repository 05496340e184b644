# SPDX-License-Identifier: BSD-3-Clause
"""Tiles of matrices in vector registers, for matrix products.

A matrix product keeps a tile of its result in registers over a whole loop; LLVM does not do that with scalar loops
(7 GFLOP/s, a tile 160 GFLOP/s). A tile is a tuple of vectors, one for each row. The functions are named by dtype and
lanes, such as ``load_f32x16``; a vector longer than a register of the CPU takes several registers:

    rows_8(i, m)                                the numbers of 8 rows from i on, at most m - 1
    listed_8(table, i, m)                       the numbers at these places of a table of int64
    load_f32x16(x, at), store_f32x16(out, at, vector)        a vector of adjacent elements
    load_first_f32x16(x, at, width)             of the first `width` lanes; the others are 0 and touch no memory
    zero_f32x16(rows)                           a tile of zeros
    filled_f32x16(rows, vector)                 a tile whose rows are all the same
    add_outer_f32x16(tile, x, at, rows, stride, vector)      to each row r: x[at + rows[r] * stride] * vector
    load_tile_f32x16(x, at, rows, stride, first, last), store_tile_f32x16(out, at, rows, stride, tile, first, last)
                                                of the lanes from `first` to before `last`; the others are 0 and touch
                                                no memory; stores begin with the last row
    load_where_f32x16(x, at, rows, stride, table, i, first, last, width)
    store_where_f32x16(out, at, rows, stride, tile, table, i, first, last, width)
                                                of those of the first `width` lanes for which the numbers of a table of
                                                int32, from its place i on, are from `first` to before `last`
    add_tiles_f32x16(tile, tile)
    transpose_f32x16(tile)                      of as many rows as lanes
    turn_f32x16(tile)                           of no more rows than lanes: as many rows as there are lanes, each begins
                                                with its column of the tile; the rest is undefined
    add_dots_f32x16(tile, x, at_x, rows, x_stride, y, at_y, columns, y_stride, width)
                                                to the vector of each row r and column c, in this order, in the first
                                                `width` lanes: elements from x[at_x + rows[r] * x_stride] on times
                                                elements from y[at_y + columns[c] * y_stride] on
    sum_lanes_f32x16(tile)                      of no more rows than lanes: one row, of the sums of the rows
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing import signature
from numba.extending import intrinsic

from .pointers import DTYPES, TypedPointer, annotate
from .vectors import (
    Vector,
    address,
    call,
    load_first_function,
    load_function,
    load_masked,
    mask,
    shuffle_mask,
    splat,
    store_function,
    store_masked,
)

_LANES = {"f32": (4, 8, 16, 32, 64), "f64": (2, 4, 8, 16, 32)}
_ROWS = tuple(range(1, 17))
_WORD = ir.IntType(32)


def _is_table(pointer: Any, dtype: Any) -> bool:
    return isinstance(pointer, TypedPointer) and pointer.dtype == dtype


def _rows(count: int) -> Any:
    @intrinsic
    def rows(typing_context: Any, first: Any, height: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            word = args[0].type
            last = builder.sub(args[1], word(1))
            numbers = [builder.add(args[0], word(row)) for row in range(count)]
            clamped = [builder.select(builder.icmp_signed("<", row, last), row, last) for row in numbers]
            return context.make_tuple(builder, sig.return_type, clamped)

        return signature(types.UniTuple(types.intp, count), types.intp, types.intp), codegen

    return rows


def _listed(count: int) -> Any:
    @intrinsic
    def listed(typing_context: Any, table: Any, first: Any, height: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            word = args[1].type
            last = builder.sub(args[2], word(1))
            found = []
            for row in range(count):
                number = builder.add(args[1], word(row))
                number = builder.select(builder.icmp_signed("<", number, last), number, last)
                found.append(builder.load(builder.gep(args[0], [number])))
                annotate(builder.module, found[-1], table.scope)
            return context.make_tuple(builder, sig.return_type, found)

        typed = signature(types.UniTuple(types.intp, count), table, types.intp, types.intp)
        is_table = isinstance(table, TypedPointer) and table.dtype == types.int64
        return (typed, codegen) if is_table else None

    return listed


class _TileFunctions:
    """The functions of tiles of one dtype and number of lanes; each method makes one."""

    def __init__(self, suffix: str, lanes: int) -> None:
        self.dtype = DTYPES[suffix]
        self.lanes = lanes
        self.vector = Vector(self.dtype, lanes)
        self.llvm = self.vector.llvm

    def table(self) -> dict[str, Callable[..., Any]]:
        return {
            "load": load_function(self.lanes, lambda vector: vector.alignment, self.dtype),
            "store": store_function(self.lanes, lambda vector: vector.alignment, self.dtype),
            "load_first": load_first_function(self.lanes, self.dtype),
            "load_tile": self.load_tile(), "store_tile": self.store_tile(), "load_where": self.load_where(),
            "store_where": self.store_where(), "add_tiles": self.add_tiles(),
            "zero": self.zero(), "filled": self.filled(), "add_outer": self.add_outer(), "transpose": self.transpose(),
            "turn": self.turn(), "add_dots": self.add_dots(), "sum_lanes": self.sum_lanes(),
        }  # fmt: skip

    def tile(self, rows: Any) -> Any:
        return types.UniTuple(self.vector, rows.count)

    def owns(self, pointer: Any) -> bool:
        return isinstance(pointer, TypedPointer) and pointer.dtype == self.dtype

    def load_masked(self, builder: Any, pointer: Any, at: Any, mask: Any, scope: int) -> Any:
        return load_masked(builder, self.vector, address(builder, self.vector, pointer, at), mask, scope)

    def fma(self, builder: Any, x: Any, y: Any, z: Any) -> Any:
        return call(builder, f"llvm.fmuladd.{self.vector.mangled}", self.llvm, [x, y, z])

    def shuffle(self, builder: Any, first: Any, second: Any, lanes: list[int]) -> Any:
        return builder.shuffle_vector(first, second, shuffle_mask(tuple(lanes)))

    def interleave(self, builder: Any, vectors: list[Any]) -> list[Any]:
        """Interleave the first half of the vectors with the second, log2(count) times."""
        count = len(vectors)
        low, high = (
            [i // 2 + start + self.lanes * (i % 2) for i in range(self.lanes)]
            for start in (0, self.lanes // 2)
        )
        for _ in range(count.bit_length() - 1):
            vectors = [
                self.shuffle(builder, vectors[i // 2], vectors[i // 2 + count // 2], high if i % 2 else low)
                for i in range(count)
            ]
        return vectors

    def zero(self) -> Any:
        @intrinsic
        def zero(typing_context: Any, rows: Any) -> Any:
            def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
                return context.make_tuple(builder, sig.return_type, [self.llvm(None)] * rows.count)

            return signature(self.tile(rows), rows), codegen

        return zero

    def filled(self) -> Any:
        @intrinsic
        def filled(typing_context: Any, rows: Any, vector: Any) -> Any:
            def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
                return context.make_tuple(builder, sig.return_type, [args[1]] * rows.count)

            return signature(self.tile(rows), rows, self.vector), codegen

        return filled

    def load_tile(self) -> Any:
        @intrinsic
        def load_tile(
            typing_context: Any, pointer: Any, at: Any, rows: Any, stride: Any, first: Any, last: Any
        ) -> Any:
            def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
                inside = mask(builder, self.lanes, args[5], args[4])
                places = _places(builder, *args[1:4])
                vectors = [self.load_masked(builder, args[0], at, inside, pointer.scope) for at in places]
                return context.make_tuple(builder, sig.return_type, vectors)

            typed = signature(self.tile(rows), pointer, types.intp, rows, *[types.intp] * 3)
            return (typed, codegen) if self.owns(pointer) else None

        return load_tile

    def store_tile(self) -> Any:
        @intrinsic
        def store_tile(
            typing_context: Any, pointer: Any, at: Any, rows: Any, stride: Any, tile: Any, first: Any, last: Any
        ) -> Any:  # fmt: skip
            def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
                inside = mask(builder, self.lanes, args[6], args[5])
                vectors = cgutils.unpack_tuple(builder, args[4])
                for row, value in reversed(list(zip(_places(builder, *args[1:4]), vectors, strict=True))):
                    place = address(builder, self.vector, args[0], row)
                    store_masked(builder, self.vector, value, place, inside, pointer.scope)
                return context.get_dummy_value()

            numbers = (types.intp, rows, types.intp, self.tile(rows), types.intp, types.intp)
            return (signature(types.none, pointer, *numbers), codegen) if self.owns(pointer) else None

        return store_tile

    def listed_inside(self, builder: Any, table: Any, args: Any, scope: int) -> Any:
        """Return the mask of the lanes below a width whose numbers in a table are from one to before another one."""
        at, *numbers = args
        first, last, _ = (builder.trunc(number, _WORD) for number in numbers)
        listed = Vector(types.int32, self.lanes)
        found = builder.load(address(builder, listed, table, at), align=4)
        annotate(builder.module, found, scope)
        # Unsigned, numbers before `first` are beyond any limit.
        beyond = builder.sub(found, splat(builder, first, self.lanes))
        limit = splat(builder, builder.sub(last, first), self.lanes)
        inside = builder.icmp_unsigned("<", beyond, limit)
        return builder.and_(inside, mask(builder, self.lanes, numbers[-1]))

    def load_where(self) -> Any:
        @intrinsic
        def load_where(
            typing_context: Any, pointer: Any, at: Any, rows: Any, stride: Any, table: Any, place: Any, first: Any,
            last: Any, width: Any,
        ) -> Any:  # fmt: skip
            def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
                inside = self.listed_inside(builder, args[4], args[5:], table.scope)
                places = _places(builder, *args[1:4])
                vectors = [self.load_masked(builder, args[0], at, inside, pointer.scope) for at in places]
                return context.make_tuple(builder, sig.return_type, vectors)

            numbers = [types.intp] * 4
            typed = signature(self.tile(rows), pointer, types.intp, rows, types.intp, table, *numbers)
            return (typed, codegen) if self.owns(pointer) and _is_table(table, types.int32) else None

        return load_where

    def store_where(self) -> Any:
        @intrinsic
        def store_where(
            typing_context: Any, pointer: Any, at: Any, rows: Any, stride: Any, tile: Any, table: Any, place: Any,
            first: Any, last: Any, width: Any,
        ) -> Any:  # fmt: skip
            def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
                inside = self.listed_inside(builder, args[5], args[6:], table.scope)
                vectors = cgutils.unpack_tuple(builder, args[4])
                for row, value in reversed(list(zip(_places(builder, *args[1:4]), vectors, strict=True))):
                    at = address(builder, self.vector, args[0], row)
                    store_masked(builder, self.vector, value, at, inside, pointer.scope)
                return context.get_dummy_value()

            numbers = [types.intp] * 4
            given = (types.intp, rows, types.intp, self.tile(rows), table, *numbers)
            is_typed = self.owns(pointer) and _is_table(table, types.int32)
            return (signature(types.none, pointer, *given), codegen) if is_typed else None

        return store_where

    def add_tiles(self) -> Any:
        @intrinsic
        def add_tiles(typing_context: Any, tile: Any, other: Any) -> Any:
            def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
                pairs = zip(*[cgutils.unpack_tuple(builder, arg) for arg in args], strict=True)
                return context.make_tuple(builder, sig.return_type, [builder.fadd(*pair) for pair in pairs])

            return (signature(tile, tile, tile), codegen) if tile == other else None

        return add_tiles

    def add_outer(self) -> Any:
        @intrinsic
        def add_outer(
            typing_context: Any, tile: Any, pointer: Any, at: Any, rows: Any, stride: Any, vector: Any
        ) -> Any:
            def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
                tile, numbers, at, rows, stride, vector = args
                sums = []
                for place, before in zip(
                    _places(builder, at, rows, stride), cgutils.unpack_tuple(builder, tile), strict=True
                ):
                    number = builder.load(builder.gep(numbers, [place]))
                    annotate(builder.module, number, pointer.scope)
                    sums.append(self.fma(builder, splat(builder, number, self.lanes), vector, before))
                _keep_rolled(builder)
                return context.make_tuple(builder, sig.return_type, sums)

            whole = self.tile(rows)
            typed = signature(whole, whole, pointer, types.intp, rows, types.intp, self.vector)
            return (typed, codegen) if self.owns(pointer) else None

        return add_outer

    def transpose(self) -> Any:
        @intrinsic
        def transpose(typing_context: Any, tile: Any) -> Any:
            def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
                vectors = self.interleave(builder, cgutils.unpack_tuple(builder, args[0]))
                return context.make_tuple(builder, sig.return_type, vectors)

            return (signature(tile, tile), codegen) if tile.count == self.lanes else None

        return transpose

    def turn(self) -> Any:
        @intrinsic
        def turn(typing_context: Any, tile: Any) -> Any:
            def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
                vectors = cgutils.unpack_tuple(builder, args[0])
                count = _power_of_two(len(vectors))
                nothing = ir.Constant(self.llvm, ir.Undefined)
                vectors += [nothing] * (count - len(vectors))
                # As in transpose(), but of fewer vectors, so that each then holds several rows.
                vectors = self.interleave(builder, vectors)
                rows_in_each = self.lanes // count
                rows = [
                    self.shuffle(builder, vectors[row // rows_in_each], nothing, [
                        min(row % rows_in_each * count + i, self.lanes - 1) for i in range(self.lanes)
                    ])
                    for row in range(self.lanes)
                ]  # fmt: skip
                return context.make_tuple(builder, sig.return_type, rows)

            fits = tile.count <= self.lanes
            return (signature(types.UniTuple(self.vector, self.lanes), tile), codegen) if fits else None

        return turn

    def add_dots(self) -> Any:
        @intrinsic
        def add_dots(
            typing_context: Any, tile: Any, x: Any, at_x: Any, rows: Any, x_stride: Any, y: Any, at_y: Any,
            columns: Any, y_stride: Any, width: Any,
        ) -> Any:  # fmt: skip
            def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
                inside = mask(builder, self.lanes, args[9])
                left, right = (
                    [
                        self.load_masked(builder, pointer, at, inside, scope)
                        for at in _places(builder, *places)
                    ]
                    for pointer, places, scope in (
                        (args[1], args[2:5], x.scope),
                        (args[5], args[6:9], y.scope),
                    )
                )
                pairs = [(a, b) for a in left for b in right]
                sums = [
                    self.fma(builder, *pair, before)
                    for pair, before in zip(pairs, cgutils.unpack_tuple(builder, args[0]), strict=True)
                ]
                _keep_rolled(builder)
                return context.make_tuple(builder, sig.return_type, sums)

            numbers = (types.intp, rows, types.intp), (types.intp, columns, types.intp, types.intp)
            typed = signature(tile, tile, x, *numbers[0], y, *numbers[1])
            return (typed, codegen) if self.owns(x) and self.owns(y) else None

        return add_dots

    def sum_lanes(self) -> Any:
        @intrinsic
        def sum_lanes(typing_context: Any, tile: Any) -> Any:
            def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
                vectors = cgutils.unpack_tuple(builder, args[0])
                lanes = self.lanes
                vectors += [self.llvm(None)] * (_power_of_two(len(vectors)) - len(vectors))
                # Each step adds the halves of each vector's rest, and packs the sums of two vectors into one.
                width = lanes
                while width > 1:
                    width //= 2
                    half = len(vectors) // 2
                    firsts, seconds = vectors[:half], vectors[half:]
                    if not half:
                        firsts, seconds = vectors, vectors
                    low = [
                        i // (2 * width) * 2 * width + i % width + i // width % 2 * lanes
                        for i in range(lanes)
                    ]
                    vectors = [
                        builder.fadd(
                            self.shuffle(builder, a, b, low),
                            self.shuffle(builder, a, b, [i + width for i in low]),
                        )
                        for a, b in zip(firsts, seconds, strict=True)
                    ]
                step = lanes // _power_of_two(tile.count)
                whole = self.shuffle(
                    builder, vectors[0], vectors[0], [i * step % lanes for i in range(lanes)]
                )
                return context.make_tuple(builder, sig.return_type, [whole])

            fits = tile.count <= self.lanes
            return (signature(types.UniTuple(self.vector, 1), tile), codegen) if fits else None

        return sum_lanes


def _power_of_two(count: int) -> int:
    """Return the least power of two that is at least a number."""
    return 1 << (count - 1).bit_length()


def _keep_rolled(builder: Any) -> None:
    """Keep LLVM from unrolling the enclosing loop: twice as many addresses no longer fit into registers."""
    nothing = builder.asm(ir.FunctionType(ir.VoidType(), []), "", "", [], True)
    set.add(nothing.attributes, "noduplicate")  # llvmlite knows fewer attributes than LLVM
    set.add(nothing.attributes, "nounwind")


def _places(builder: Any, at: Any, rows: Any, stride: Any) -> list[Any]:
    return [builder.add(at, builder.mul(row, stride)) for row in cgutils.unpack_tuple(builder, rows)]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{f"rows_{count}": _rows(count) for count in _ROWS},
    **{f"listed_{count}": _listed(count) for count in _ROWS},
}
FUNCTIONS.update({
    f"{name}_{suffix}x{lanes}": function
    for suffix, widths in _LANES.items()
    for lanes in widths
    for name, function in _TileFunctions(suffix, lanes).table().items()
})  # fmt: skip
