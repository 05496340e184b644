# SPDX-License-Identifier: BSD-3-Clause
"""The vector type of emitted kernels, and the LLVM instructions that tiles and lanes have in common."""

from collections.abc import Callable
from functools import cache
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.typing import signature
from numba.extending import intrinsic, register_model

from .pointers import annotate

_WORD = ir.IntType(32)


class Vector(types.Type):  # type: ignore[misc]
    """Several numbers of one dtype.

    llvm        the type in LLVM
    mangled     the type in the names of LLVM's intrinsics, such as v16f32
    alignment   of one number in memory, in bytes; there are no vectors of booleans in memory
    """

    def __init__(self, dtype: types.Type, lanes: int) -> None:
        self.dtype = dtype
        self.lanes = lanes
        super().__init__(f"Vector({dtype}, {lanes})")

    @property
    def llvm(self) -> ir.VectorType:
        if isinstance(self.dtype, types.Float):
            return ir.VectorType(ir.FloatType() if self.dtype.bitwidth == 32 else ir.DoubleType(), self.lanes)
        return ir.VectorType(ir.IntType(getattr(self.dtype, "bitwidth", 1)), self.lanes)

    @property
    def mangled(self) -> str:
        kind = "f" if isinstance(self.dtype, types.Float) else "i"
        return f"v{self.lanes}{kind}{self.dtype.bitwidth}"

    @property
    def alignment(self) -> int:
        return self.dtype.bitwidth // 8  # type: ignore[no-any-return]


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Vector) -> None:
        super().__init__(manager, kind, kind.llvm)


class _ShuffleMask(ir.Constant):  # type: ignore[misc]
    """The source lanes of a shuffled vector. Its text is written once: a product of few columns has a hundred."""

    def __init__(self, lanes: tuple[int, ...]) -> None:
        super().__init__(ir.VectorType(_WORD, len(lanes)), None)
        self._text = f"<{', '.join(f'i32 {lane}' for lane in lanes)}>"

    def _get_reference(self) -> str:
        return self._text


shuffle_mask = cache(_ShuffleMask)


def splat(builder: Any, number: Any, lanes: int) -> Any:
    """Return a vector with a number in all lanes."""
    undefined = ir.Constant(ir.VectorType(number.type, lanes), ir.Undefined)
    first = builder.insert_element(undefined, number, _WORD(0))
    return builder.shuffle_vector(first, undefined, shuffle_mask((0,) * lanes))


def lane_numbers(lanes: int) -> Any:
    """Return the vector 0, 1, 2, ..."""
    return ir.VectorType(_WORD, lanes)(list(range(lanes)))


def mask(builder: Any, lanes: int, last: Any, first: Any = None) -> Any:
    """Return the mask of the lanes from `first` (by default 0) to before `last`."""
    numbers = lane_numbers(lanes)
    inside = builder.icmp_signed("<", numbers, splat(builder, builder.trunc(last, _WORD), lanes))
    if first is not None:
        start = splat(builder, builder.trunc(first, _WORD), lanes)
        inside = builder.and_(inside, builder.icmp_signed(">=", numbers, start))
    return inside


def call(builder: Any, name: str, result: Any, args: list[Any], **options: Any) -> Any:
    """Call an intrinsic of LLVM."""
    kind = ir.FunctionType(result, [arg.type for arg in args])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), args, **options)


def address(builder: Any, vector: Vector, pointer: Any, at: Any) -> Any:
    """Return a pointer to the vector that begins with element `at`."""
    return builder.bitcast(builder.gep(pointer, [at]), vector.llvm.as_pointer())


def load_masked(builder: Any, vector: Vector, place: Any, mask: Any, scope: int, rest: Any = None) -> Any:
    """Load the lanes of a mask; the others are those of `rest`, or 0. `place` is an address, or a vector of them."""
    operation, places = _variant(place, vector, "load", "gather")
    args = [place, _WORD(vector.alignment), mask, vector.llvm(None) if rest is None else rest]
    loaded = call(builder, f"llvm.masked.{operation}.{vector.mangled}.{places}", vector.llvm, args)
    annotate(builder.module, loaded, scope)
    return loaded


def store_masked(builder: Any, vector: Vector, value: Any, place: Any, mask: Any, scope: int) -> None:
    """Store the lanes of a mask. `place` is an address, or a vector of them."""
    operation, places = _variant(place, vector, "store", "scatter")
    args = [value, place, _WORD(vector.alignment), mask]
    stored = call(builder, f"llvm.masked.{operation}.{vector.mangled}.{places}", ir.VoidType(), args)
    annotate(builder.module, stored, scope)


def _variant(place: Any, vector: Vector, contiguous: str, scattered: str) -> tuple[str, str]:
    """Return the operation for an address or for a vector of addresses, and how LLVM's names spell its type."""
    if isinstance(place.type, ir.VectorType):
        return scattered, f"v{vector.lanes}p0"
    return contiguous, "p0"


def widened(context: Any, builder: Any, value: Any, kind: Any, vector: Vector) -> Any:
    """Return an operand as a vector: a number is converted and repeated in all lanes."""
    if isinstance(kind, Vector):
        return value
    return splat(builder, context.cast(builder, value, kind, vector.dtype), vector.lanes)


def load_function(lanes: int, alignment: Callable[[Vector], int], dtype: Any = None) -> Any:
    """Return the function that loads all lanes from pointers of a dtype, by default of any."""

    @intrinsic
    def load(typing_context: Any, pointer: Any, at: Any) -> Any:
        vector = Vector(pointer.dtype, lanes)

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            loaded = builder.load(address(builder, vector, *args), align=alignment(vector))
            annotate(builder.module, loaded, pointer.scope)
            return loaded

        return (signature(vector, pointer, types.intp), codegen) if dtype in (None, pointer.dtype) else None

    return load


def store_function(lanes: int, alignment: Callable[[Vector], int], dtype: Any = None) -> Any:
    """Return the function that stores a number or a vector in all lanes."""

    @intrinsic
    def store(typing_context: Any, pointer: Any, at: Any, value: Any) -> Any:
        vector = Vector(pointer.dtype, lanes)

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            wide = widened(context, builder, args[2], value, vector)
            stored = builder.store(wide, address(builder, vector, *args[:2]), align=alignment(vector))
            annotate(builder.module, stored, pointer.scope)
            return context.get_dummy_value()

        typed = signature(types.none, pointer, types.intp, value)
        return (typed, codegen) if dtype in (None, pointer.dtype) else None

    return store


def load_first_function(lanes: int, dtype: Any = None) -> Any:
    """Return the function that loads the first `count` lanes; the others are 0 and touch no memory."""

    @intrinsic
    def load_first(typing_context: Any, pointer: Any, at: Any, count: Any) -> Any:
        vector = Vector(pointer.dtype, lanes)

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            inside = mask(builder, lanes, args[2])
            place = address(builder, vector, *args[:2])
            return load_masked(builder, vector, place, inside, pointer.scope)

        typed = signature(vector, pointer, types.intp, types.intp)
        return (typed, codegen) if dtype in (None, pointer.dtype) else None

    return load_first
