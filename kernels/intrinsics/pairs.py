# SPDX-License-Identifier: BSD-3-Clause
"""Vectors of elements that lie one or two apart and may be outside of a line; named by the number of lanes:

load_between_x16(x, at, first, last, rest)  x[at + lane] for lanes from `first` to before `last`; the others are the
                                            number `rest` and touch no memory; no lane has to be inside
store_between_x16(out, at, v, first, last)  stores these lanes
even_x16(v, w), odd_x16(v, w)               the lanes 0, 2, 4, ... or 1, 3, 5, ... of v and then of w
zipped_low_x16(v, w), zipped_high_x16(v, w) the first or second half of the lanes of v and w in turn
picked_x16(x, at, places)                   x[at + place] of float32, for places, of int32, below 32; all of these 32
                                            are in memory, and the CPU has AVX-512
"""

from typing import Any

from numba.core import types
from numba.core.typing import signature
from numba.extending import intrinsic

from .pointers import annotate
from .vectors import Vector, address, call, load_masked, mask, shuffle_mask, store_masked, widened

_LANES = (4, 8, 16)


def _load_between(lanes: int) -> Any:
    @intrinsic
    def load_between(typing_context: Any, pointer: Any, at: Any, first: Any, last: Any, rest: Any) -> Any:
        vector = Vector(pointer.dtype, lanes)

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            inside = mask(builder, lanes, args[3], args[2])
            others = widened(context, builder, args[4], rest, vector)
            place = address(builder, vector, *args[:2])
            return load_masked(builder, vector, place, inside, pointer.scope, others)

        return signature(vector, pointer, types.intp, types.intp, types.intp, rest), codegen

    return load_between


def _store_between(lanes: int) -> Any:
    @intrinsic
    def store_between(typing_context: Any, pointer: Any, at: Any, value: Any, first: Any, last: Any) -> Any:
        vector = Vector(pointer.dtype, lanes)

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            wide = widened(context, builder, args[2], value, vector)
            inside = mask(builder, lanes, args[4], args[3])
            store_masked(builder, vector, wide, address(builder, vector, *args[:2]), inside, pointer.scope)
            return context.get_dummy_value()

        return signature(types.none, pointer, types.intp, value, types.intp, types.intp), codegen

    return store_between


def _shuffled(places: list[int]) -> Any:
    """Return the function that takes these lanes of two vectors side by side."""

    @intrinsic
    def shuffled(typing_context: Any, first: Any, second: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return builder.shuffle_vector(*args, shuffle_mask(tuple(places)))

        return (signature(first, first, second), codegen) if first == second else None

    return shuffled


@intrinsic  # type: ignore[untyped-decorator]
def _fma(typing_context: Any, first: Any, second: Any, total: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return call(builder, f"llvm.fmuladd.{total.mangled}", total.llvm, list(args))

    return (signature(total, first, second, total), codegen) if first == second == total else None


@intrinsic  # type: ignore[untyped-decorator]
def _picked(typing_context: Any, pointer: Any, at: Any, places: Any) -> Any:
    vector = Vector(types.float32, 16)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        start, at, places = args
        halves = [
            builder.load(
                address(builder, vector, start, builder.add(at, at.type(half))), align=vector.alignment
            )
            for half in (0, vector.lanes)
        ]
        for half in halves:
            annotate(builder.module, half, pointer.scope)
        return call(builder, "llvm.x86.avx512.vpermi2var.ps.512", vector.llvm, [halves[0], places, halves[1]])

    fits = pointer.dtype == vector.dtype and places == Vector(types.int32, 16)
    return (signature(vector, pointer, types.intp, places), codegen) if fits else None


def _functions(lanes: int) -> dict[str, Any]:
    zipped = [lane // 2 + lanes * (lane % 2) for lane in range(2 * lanes)]
    return {
        "load_between": _load_between(lanes), "store_between": _store_between(lanes),
        "even": _shuffled(list(range(0, 2 * lanes, 2))), "odd": _shuffled(list(range(1, 2 * lanes, 2))),
        "fma": _fma,
        "zipped_low": _shuffled(zipped[:lanes]), "zipped_high": _shuffled(zipped[lanes:]),
    }  # fmt: skip


FUNCTIONS: dict[str, Any] = {
    f"{name}_x{lanes}": function for lanes in _LANES for name, function in _functions(lanes).items()
} | {"picked_x16": _picked}
