# SPDX-License-Identifier: BSD-3-Clause
"""Tiles of matrices in vector registers, for kernels in which LLVM must not be left to find them.

A matrix product keeps a tile of its result in registers over a whole loop; LLVM does not make that of scalar loops
(7 GFLOP/s where a tile runs at 160). A tile is a tuple of vectors, one for each of its rows. The functions are named by
dtype and lanes, such as ``load_f32x16``; a vector may be longer than a register of the CPU, and takes several then:

    rows_8(i, m)                                numbers of 8 rows from i on; beyond the last, m - 1, the last again
    load_f32x16(x, at), store_f32x16(out, at, vector)        a vector of neighbours
    load_first_f32x16(x, at, width)             of the first `width` lanes; the others are 0 and touch no memory
    zero_f32x16(rows)                           a tile of zeros
    add_outer_f32x16(tile, x, at, rows, stride, vector)      to each row r: x[at + rows[r] * stride] * vector
    load_tile_f32x16(x, at, rows, stride, first, last), store_tile_f32x16(out, at, rows, stride, tile, first, last)
                                                of the lanes from `first` to before `last`; the others are 0 and touch
                                                no memory; stores begin with the last row
    add_tiles_f32x16(tile, tile)
    transpose_f32x16(tile)                      of as many rows as lanes
    turn_f32x16(tile)                           of no more rows than lanes: as many rows as there are lanes, each begins
                                                with its column of the tile; what follows is anything
    add_dots_f32x16(tile, x, at_x, rows, x_stride, y, at_y, columns, y_stride, width)
                                                to the vector of each row r and column c, in this order, in the first
                                                `width` lanes: neighbours from x[at_x + rows[r] * x_stride] on times
                                                those from y[at_y + columns[c] * y_stride] on
    sum_lanes_f32x16(tile)                      of no more rows than lanes: one row, of the sums of the rows
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.typing import signature
from numba.extending import intrinsic, register_model

from .pointers import DTYPES, TypedPointer, annotate

_LANES = {"f32": (4, 8, 16, 32, 64), "f64": (2, 4, 8, 16, 32)}
_ROWS = tuple(range(1, 17))


class Vector(types.Type):  # type: ignore[misc]
    """Some numbers of a dtype."""

    def __init__(self, dtype: types.Type, lanes: int) -> None:
        self.dtype = dtype
        self.lanes = lanes
        super().__init__(f"Vector({dtype}, {lanes})")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Vector) -> None:
        super().__init__(
            manager, kind, ir.VectorType(manager.lookup(kind.dtype).get_value_type(), kind.lanes)
        )


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


class _Maker:
    """Makes the functions of vectors of one dtype and number of lanes."""

    def __init__(self, suffix: str, lanes: int) -> None:
        self.dtype = DTYPES[suffix]
        self.lanes = lanes
        self.vector = Vector(self.dtype, lanes)
        self.llvm = ir.VectorType(ir.FloatType() if suffix == "f32" else ir.DoubleType(), lanes)
        self.mangled = f"v{lanes}{suffix}"
        self.align = ir.Constant(ir.IntType(32), 4 if suffix == "f32" else 8)

    def functions(self) -> dict[str, Callable[..., Any]]:
        return {
            "load": self.load(), "store": self.store(), "load_first": self.load_first(),
            "load_tile": self.load_tile(), "store_tile": self.store_tile(), "add_tiles": self.add_tiles(),
            "zero": self.zero(), "add_outer": self.add_outer(), "transpose": self.transpose(),
            "turn": self.turn(), "add_dots": self.add_dots(), "sum_lanes": self.sum_lanes(),
        }  # fmt: skip

    def tile(self, rows: Any) -> Any:
        return types.UniTuple(self.vector, rows.count)

    def owns(self, pointer: Any) -> bool:
        return isinstance(pointer, TypedPointer) and pointer.dtype == self.dtype

    def splat(self, builder: Any, number: Any, kind: Any) -> Any:
        """Return a vector with a number in all lanes."""
        undefined = ir.Constant(kind, ir.Undefined)
        first = builder.insert_element(undefined, number, ir.IntType(32)(0))
        return builder.shuffle_vector(first, undefined, _from_lanes((0,) * self.lanes))

    def mask(self, builder: Any, last: Any, first: Any = None) -> Any:
        """Return the mask of the lanes from `first` (0) to before `last`."""
        word = ir.IntType(32)
        kind = ir.VectorType(word, self.lanes)
        lanes = kind(list(range(self.lanes)))
        mask = builder.icmp_signed("<", lanes, self.splat(builder, builder.trunc(last, word), kind))
        if first is not None:
            start = self.splat(builder, builder.trunc(first, word), kind)
            mask = builder.and_(mask, builder.icmp_signed(">=", lanes, start))
        return mask

    def address(self, builder: Any, pointer: Any, at: Any) -> Any:
        return builder.bitcast(builder.gep(pointer, [at]), self.llvm.as_pointer())

    def read(self, builder: Any, pointer: Any, at: Any, mask: Any, scope: int) -> Any:
        place = self.address(builder, pointer, at)
        if mask is None:
            loaded = builder.load(place, align=self.align.constant)
        else:
            kind = ir.FunctionType(self.llvm, [place.type, self.align.type, mask.type, self.llvm])
            name = f"llvm.masked.load.{self.mangled}.p0"
            function = cgutils.get_or_insert_function(builder.module, kind, name)
            loaded = builder.call(function, [place, self.align, mask, self.llvm(None)])
        annotate(builder.module, loaded, scope)
        return loaded

    def write(self, builder: Any, pointer: Any, at: Any, vector: Any, mask: Any, scope: int) -> None:
        place = self.address(builder, pointer, at)
        kind = ir.FunctionType(ir.VoidType(), [self.llvm, place.type, self.align.type, mask.type])
        name = f"llvm.masked.store.{self.mangled}.p0"
        function = cgutils.get_or_insert_function(builder.module, kind, name)
        annotate(builder.module, builder.call(function, [vector, place, self.align, mask]), scope)

    def load(self) -> Any:
        @intrinsic
        def load(typing_context: Any, pointer: Any, at: Any) -> Any:
            def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
                return self.read(builder, *args, None, pointer.scope)

            return (signature(self.vector, pointer, types.intp), codegen) if self.owns(pointer) else None

        return load

    def store(self) -> Any:
        @intrinsic
        def store(typing_context: Any, pointer: Any, at: Any, vector: Any) -> Any:
            def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
                stored = builder.store(args[2], self.address(builder, *args[:2]), align=self.align.constant)
                annotate(builder.module, stored, pointer.scope)
                return context.get_dummy_value()

            typed = signature(types.none, pointer, types.intp, self.vector)
            return (typed, codegen) if self.owns(pointer) else None

        return store

    def load_first(self) -> Any:
        @intrinsic
        def load_first(typing_context: Any, pointer: Any, at: Any, width: Any) -> Any:
            def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
                return self.read(builder, *args[:2], self.mask(builder, args[2]), pointer.scope)

            typed = signature(self.vector, pointer, types.intp, types.intp)
            return (typed, codegen) if self.owns(pointer) else None

        return load_first

    def zero(self) -> Any:
        @intrinsic
        def zero(typing_context: Any, rows: Any) -> Any:
            def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
                return context.make_tuple(builder, sig.return_type, [self.llvm(None)] * rows.count)

            return signature(self.tile(rows), rows), codegen

        return zero

    def load_tile(self) -> Any:
        @intrinsic
        def load_tile(
            typing_context: Any, pointer: Any, at: Any, rows: Any, stride: Any, first: Any, last: Any
        ) -> Any:
            def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
                mask = self.mask(builder, args[5], args[4])
                places = _places(builder, *args[1:4])
                vectors = [self.read(builder, args[0], place, mask, pointer.scope) for place in places]
                return context.make_tuple(builder, sig.return_type, vectors)

            typed = signature(self.tile(rows), pointer, types.intp, rows, *[types.intp] * 3)
            return (typed, codegen) if self.owns(pointer) else None

        return load_tile

    def store_tile(self) -> Any:
        @intrinsic
        def store_tile(
            typing_context: Any,
            pointer: Any,
            at: Any,
            rows: Any,
            stride: Any,
            tile: Any,
            first: Any,
            last: Any,
        ) -> Any:
            def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
                mask = self.mask(builder, args[6], args[5])
                vectors = cgutils.unpack_tuple(builder, args[4])
                for place, vector in reversed(list(zip(_places(builder, *args[1:4]), vectors, strict=True))):
                    self.write(builder, args[0], place, vector, mask, pointer.scope)
                return context.get_dummy_value()

            numbers = (types.intp, rows, types.intp, self.tile(rows), types.intp, types.intp)
            return (signature(types.none, pointer, *numbers), codegen) if self.owns(pointer) else None

        return store_tile

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
                kind = ir.FunctionType(self.llvm, [self.llvm] * 3)
                fma = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fmuladd.{self.mangled}")
                sums = []
                for place, before in zip(
                    _places(builder, at, rows, stride), cgutils.unpack_tuple(builder, tile), strict=True
                ):
                    number = builder.load(builder.gep(numbers, [place]))
                    annotate(builder.module, number, pointer.scope)
                    sums.append(builder.call(fma, [self.splat(builder, number, self.llvm), vector, before]))
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
                vectors = cgutils.unpack_tuple(builder, args[0])
                half = self.lanes // 2
                # Interleaving the first half of the rows with the second, log2(lanes) times.
                low, high = (
                    [i // 2 + start + self.lanes * (i % 2) for i in range(self.lanes)] for start in (0, half)
                )
                for _ in range(self.lanes.bit_length() - 1):
                    vectors = [
                        self.shuffle(builder, vectors[i // 2], vectors[i // 2 + half], high if i % 2 else low)
                        for i in range(self.lanes)
                    ]
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
                low, high = (
                    [i // 2 + start + self.lanes * (i % 2) for i in range(self.lanes)]
                    for start in (0, self.lanes // 2)
                )
                # As in transpose(), but of fewer vectors, so that each then holds several rows.
                for _ in range(count.bit_length() - 1):
                    vectors = [
                        self.shuffle(
                            builder, vectors[i // 2], vectors[i // 2 + count // 2], high if i % 2 else low
                        )
                        for i in range(count)
                    ]
                each = self.lanes // count
                rows = [
                    self.shuffle(builder, vectors[row // each], nothing, [
                        min(row % each * count + i, self.lanes - 1) for i in range(self.lanes)
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
                mask = self.mask(builder, args[9])
                left = [self.read(builder, args[1], at, mask, x.scope) for at in _places(builder, *args[2:5])]
                right = [
                    self.read(builder, args[5], at, mask, y.scope) for at in _places(builder, *args[6:9])
                ]
                pairs = [(a, b) for a in left for b in right]
                kind = ir.FunctionType(self.llvm, [self.llvm] * 3)
                fma = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fmuladd.{self.mangled}")
                sums = [
                    builder.call(fma, [*pair, before])
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
                # Each step adds the halves of what is left of each vector, and puts the sums of two into one.
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

    def shuffle(self, builder: Any, first: Any, second: Any, lanes: list[int]) -> Any:
        return builder.shuffle_vector(first, second, _from_lanes(tuple(lanes)))


class _FromLanes(ir.Constant):  # type: ignore[misc]
    """From which lanes those of a shuffled vector come, written once: a product of few columns has a hundred."""

    def __init__(self, lanes: tuple[int, ...]) -> None:
        super().__init__(ir.VectorType(ir.IntType(32), len(lanes)), None)
        self._text = f"<{', '.join(f'i32 {lane}' for lane in lanes)}>"

    def _get_reference(self) -> str:
        return self._text


_from_lanes = cache(_FromLanes)


def _power_of_two(count: int) -> int:
    """Return the least power of two that is no less than a number."""
    return 1 << (count - 1).bit_length()


def _keep_rolled(builder: Any) -> None:
    """Keep LLVM from unrolling the loop around: twice as many addresses no longer fit into registers."""
    nothing = builder.asm(ir.FunctionType(ir.VoidType(), []), "", "", [], True)
    set.add(nothing.attributes, "noduplicate")  # llvmlite knows fewer attributes than LLVM
    set.add(nothing.attributes, "nounwind")


def _places(builder: Any, at: Any, rows: Any, stride: Any) -> list[Any]:
    return [builder.add(at, builder.mul(row, stride)) for row in cgutils.unpack_tuple(builder, rows)]


FUNCTIONS: dict[str, Callable[..., Any]] = {f"rows_{count}": _rows(count) for count in _ROWS}
FUNCTIONS.update({
    f"{name}_{suffix}x{lanes}": function
    for suffix, widths in _LANES.items()
    for lanes in widths
    for name, function in _Maker(suffix, lanes).functions().items()
})  # fmt: skip
