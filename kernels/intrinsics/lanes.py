# SPDX-License-Identifier: BSD-3-Clause
"""Rows side by side: vectors whose lanes are neighbouring rows, for kernels whose rows are too short for a vector.

In emitted source, the values of such a kernel are vectors of, for example, 16 rows. Operators and functions work on
them lane by lane; a number among the operands stands for all lanes. Lanes beyond the last row are undefined. The
functions are named by the number of lanes:

    f32x16(v)                                the number or the vector v as a vector of a dtype
    gather_x16(x, at, stride, count)         x[at + lane * stride] for lanes below count
    scatter_x16(out, at, stride, v, count)   stores v in the same places of `out`
    load_first_x16(x, at, count), store_first_x16(out, at, v, count)
                                             lanes below count, adjacent in memory
    load_x16(x, at), store_x16(x, at, v)     all lanes, adjacent in scratch memory
    total_sum(v, count)                      the sum of the first `count` lanes; total_max, total_min
    fold_sum_f32(a, v)                       a + v, freely reassociated; fold_max_f32, fold_min_f32; also of numbers
    where(condition, v, w)                   v or w; also of numbers
    inside_x16(count)                        a condition: whether a lane is below count
    count_x16(condition)                     the lanes in which a condition holds
    packed_x16(v, condition)                 the lanes in which a condition holds, side by side; the rest is undefined
    in_order_x16(v)                          the lanes in ascending order, of numbers that are not NaN
    keys_x16(v)                              integers in the order of the numbers v, then of lanes, with these below
    taken_x16(x, at, places, condition)      x[at + place] for each place where a condition holds, else 0
    places_in_order_x16(v, places)           places in the order of the numbers v beside them, then in their own
"""

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typing import signature
from numba.core.typing.templates import AbstractTemplate, infer_global
from numba.extending import intrinsic, lower_builtin

from .networks import SortingNetwork, keys, steps
from .pointers import DTYPES
from .vectors import (
    Vector,
    address,
    call,
    lane_numbers,
    load_first_function,
    load_function,
    load_masked,
    mask,
    shuffle_mask,
    splat,
    store_function,
    store_masked,
    widened,
)

LANES = (4, 8, 16)
SEVERAL = (32, 64, 128)  # lanes of several vectors, which are sorted together
_SUFFIXES = {dtype: suffix for suffix, dtype in DTYPES.items()}
_WORD = ir.IntType(32)
_ALIGNMENT = 64  # of scratch memory, in bytes


def _is_float(dtype: Any) -> bool:
    return isinstance(dtype, types.Float)


def _is_signed(dtype: Any) -> bool:
    return isinstance(dtype, types.Integer) and dtype.signed


def _arithmetic(name: str) -> Callable[..., Any]:
    def emit(builder: Any, dtype: Any, x: Any, y: Any) -> Any:
        return getattr(builder, f"f{name}" if _is_float(dtype) else name)(x, y)

    return emit


def _comparison(symbol: str) -> Callable[..., Any]:
    def emit(builder: Any, dtype: Any, x: Any, y: Any) -> Any:
        if _is_float(dtype):
            return (builder.fcmp_unordered if symbol == "!=" else builder.fcmp_ordered)(symbol, x, y)
        return (builder.icmp_signed if _is_signed(dtype) else builder.icmp_unsigned)(symbol, x, y)

    return emit


def _bits(name: str) -> Callable[..., Any]:
    return lambda builder, dtype, x, y: getattr(builder, name)(x, y)


_ARITHMETIC = {
    operator.add: _arithmetic("add"), operator.sub: _arithmetic("sub"), operator.mul: _arithmetic("mul"),
    operator.truediv: _arithmetic("div"),
    operator.and_: _bits("and_"), operator.or_: _bits("or_"), operator.xor: _bits("xor"),
}  # fmt: skip
_COMPARISONS = {
    operator.eq: _comparison("=="), operator.ne: _comparison("!="), operator.lt: _comparison("<"),
    operator.le: _comparison("<="), operator.gt: _comparison(">"), operator.ge: _comparison(">="),
}  # fmt: skip


def _negated(builder: Any, dtype: Any, x: Any) -> Any:
    return builder.fneg(x) if _is_float(dtype) else builder.neg(x)


def _absolute(builder: Any, dtype: Any, x: Any) -> Any:
    if _is_float(dtype):
        return call(builder, f"llvm.fabs.v{x.type.count}{_SUFFIXES[dtype]}", x.type, [x])
    negative = builder.icmp_signed("<", x, x.type(None)) if _is_signed(dtype) else None
    return x if negative is None else builder.select(negative, builder.neg(x), x)


_UNARY = {operator.neg: _negated, abs: _absolute, operator.invert: lambda builder, dtype, x: builder.not_(x)}


def _vector_of(operands: Any) -> Vector | None:
    return next((kind for kind in operands if isinstance(kind, Vector)), None)


def _define_operators() -> None:
    for function, emit in (*_ARITHMETIC.items(), *_COMPARISONS.items()):
        _define_binary(function, emit, function in _COMPARISONS)
    for function, emit in _UNARY.items():
        _define_unary(function, emit)


def _define_binary(function: Any, emit: Callable[..., Any], compares: bool) -> None:
    @infer_global(function)
    class BinaryTyping(AbstractTemplate):  # type: ignore[misc]
        def generic(self, args: Any, kws: Any) -> Any:
            vector = _vector_of(args)
            if vector is None:
                return None
            return signature(Vector(types.boolean, vector.lanes) if compares else vector, *args)

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        vector = _vector_of(sig.args)
        assert vector is not None
        x, y = (widened(context, builder, *pair, vector) for pair in zip(args, sig.args, strict=True))
        return emit(builder, vector.dtype, x, y)

    for operands in ((Vector, Vector), (Vector, types.Any), (types.Any, Vector)):
        lower_builtin(function, *operands)(lower)


def _define_unary(function: Any, emit: Callable[..., Any]) -> None:
    @infer_global(function)
    class UnaryTyping(AbstractTemplate):  # type: ignore[misc]
        def generic(self, args: Any, kws: Any) -> Any:
            return signature(args[0], args[0]) if isinstance(args[0], Vector) else None

    @lower_builtin(function, Vector)  # type: ignore[untyped-decorator]
    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return emit(builder, sig.args[0].dtype, args[0])


_define_operators()


@intrinsic  # type: ignore[untyped-decorator]
def where(typing_context: Any, condition: Any, yes: Any, no: Any) -> Any:
    """Return one of two values without a branch."""
    vector = _vector_of((yes, no))
    if vector is None and isinstance(condition, Vector):
        vector = Vector(typing_context.unify_types(yes, no), condition.lanes)
    if vector is None:
        kind = typing_context.unify_types(yes, no)
        typed = signature(kind, types.boolean, kind, kind)
    else:
        typed = signature(vector, condition, yes, no)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        condition, *values = args
        if vector is not None:
            pairs = zip(values, sig.args[1:], strict=True)
            values = [widened(context, builder, *pair, vector) for pair in pairs]
        return builder.select(condition, *values)

    return typed, codegen


def _converted(builder: Any, value: Any, source: Any, target: Any) -> Any:
    """Return a vector converted to another dtype, except floats to integers."""
    kind = ir.VectorType(ir.FloatType() if target == types.float32 else ir.DoubleType(), value.type.count)
    if target == types.boolean:
        return _comparison("!=")(builder, source, value, value.type(None))
    if _is_float(target):
        if _is_float(source):
            wider = target == types.float64
            return builder.fpext(value, kind) if wider else builder.fptrunc(value, kind)
        return (builder.sitofp if _is_signed(source) else builder.uitofp)(value, kind)
    kind = ir.VectorType(ir.IntType(target.bitwidth), value.type.count)
    width = value.type.element.width
    if width == target.bitwidth:
        return value
    if width > target.bitwidth:
        return builder.trunc(value, kind)
    return (builder.sext if _is_signed(source) else builder.zext)(value, kind)


def _conversion(dtype: Any, lanes: int) -> Any:
    vector = Vector(dtype, lanes)

    @intrinsic
    def convert(typing_context: Any, value: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            if value == vector:
                return args[0]
            if isinstance(value, Vector):
                return _converted(builder, args[0], value.dtype, dtype)
            return widened(context, builder, args[0], value, vector)

        return signature(vector, value), codegen

    return convert


def _places(builder: Any, pointer: Any, at: Any, stride: Any, lanes: int) -> Any:
    """Return the addresses of the lanes; strides fit into 32 bits, by which the CPU gathers."""
    offsets = builder.mul(splat(builder, builder.trunc(stride, _WORD), lanes), lane_numbers(lanes))
    place = builder.gep(builder.gep(pointer, [at]), [offsets], source_etype=pointer.type.pointee)
    place.type = ir.VectorType(pointer.type, lanes)  # llvmlite does not know vectors of addresses
    return place


def _gather(lanes: int) -> Any:
    @intrinsic
    def gather(typing_context: Any, pointer: Any, at: Any, stride: Any, count: Any) -> Any:
        vector = Vector(pointer.dtype, lanes)

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            places = _places(builder, *args[:3], lanes)
            return load_masked(builder, vector, places, mask(builder, lanes, args[3]), pointer.scope)

        return signature(vector, pointer, types.intp, types.intp, types.intp), codegen

    return gather


def _scatter(lanes: int) -> Any:
    @intrinsic
    def scatter(typing_context: Any, pointer: Any, at: Any, stride: Any, value: Any, count: Any) -> Any:
        vector = Vector(pointer.dtype, lanes)

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            wide = widened(context, builder, args[3], value, vector)
            places = _places(builder, *args[:3], lanes)
            store_masked(builder, vector, wide, places, mask(builder, lanes, args[4]), pointer.scope)
            return context.get_dummy_value()

        return signature(types.none, pointer, types.intp, types.intp, value, types.intp), codegen

    return scatter


def _store_first(lanes: int) -> Any:
    @intrinsic
    def store_first(typing_context: Any, pointer: Any, at: Any, value: Any, count: Any) -> Any:
        vector = Vector(pointer.dtype, lanes)

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            wide = widened(context, builder, args[2], value, vector)
            place = address(builder, vector, *args[:2])
            store_masked(builder, vector, wide, place, mask(builder, lanes, args[3]), pointer.scope)
            return context.get_dummy_value()

        return signature(types.none, pointer, types.intp, value, types.intp), codegen

    return store_first


def _scratch_alignment(vector: Vector) -> int:
    """Return the alignment of all lanes in scratch memory, in bytes."""
    return min(_ALIGNMENT, vector.lanes * vector.alignment)


def _memory(lanes: int) -> dict[str, Any]:
    """Return the functions that access memory, for a number of lanes."""
    return {
        "gather": _gather(lanes), "scatter": _scatter(lanes),
        "load_first": load_first_function(lanes), "store_first": _store_first(lanes),
        "load": load_function(lanes, _scratch_alignment), "store": store_function(lanes, _scratch_alignment),
    }  # fmt: skip


def _inside(lanes: int) -> Any:
    @intrinsic
    def inside(typing_context: Any, count: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return mask(builder, lanes, args[0])

        return signature(Vector(types.boolean, lanes), types.intp), codegen

    return inside


def _count(lanes: int) -> Any:
    @intrinsic
    def count(typing_context: Any, condition: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            bits = builder.bitcast(args[0], ir.IntType(lanes))
            bits = builder.zext(bits, ir.IntType(64)) if lanes < 64 else bits
            found = call(builder, f"llvm.ctpop.i{bits.type.width}", bits.type, [bits])
            return builder.trunc(found, ir.IntType(64)) if lanes > 64 else found

        return signature(types.intp, condition), codegen

    return count


def _packed(lanes: int) -> Any:
    @intrinsic
    def packed(typing_context: Any, value: Any, condition: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            operands = [*args, ir.Constant(args[0].type, ir.Undefined)]
            return call(builder, f"llvm.experimental.vector.compress.{value.mangled}", args[0].type, operands)

        return signature(value, value, condition), codegen

    return packed


def _first_of_pairs(lanes: int, run: int, apart: int) -> Any:
    """Return the mask of the lanes that get the smaller number of a pair."""
    first = [(lane & apart == 0) == (lane & run == 0) for lane in range(lanes)]
    return ir.Constant(ir.VectorType(ir.IntType(1), lanes), first)


def _in_order(lanes: int) -> Any:
    @intrinsic
    def in_order(typing_context: Any, value: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return SortingNetwork(builder, args[0]).sorted()

        return signature(value, value), codegen

    return in_order


def _keys(lanes: int) -> Any:
    @intrinsic
    def keys_of(typing_context: Any, value: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return keys(builder, args[0])

        return signature(Vector(types.int64, lanes), value), codegen

    return keys_of


def _taken(lanes: int) -> Any:
    @intrinsic
    def taken(typing_context: Any, pointer: Any, at: Any, places: Any, condition: Any) -> Any:
        vector = Vector(pointer.dtype, lanes)

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            start = builder.gep(args[0], [args[1]])
            found = builder.gep(start, [args[2]], source_etype=start.type.pointee)
            found.type = ir.VectorType(start.type, lanes)
            return load_masked(builder, vector, found, args[3], pointer.scope)

        return signature(vector, pointer, types.intp, places, condition), codegen

    return taken


def _places_in_order(lanes: int) -> Any:
    @intrinsic
    def places_in_order(typing_context: Any, value: Any, places: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            less, equal = _comparison("<"), _comparison("==")
            vector, own = args
            for run, apart in steps(lanes):
                partners = shuffle_mask(tuple([lane ^ apart for lane in range(lanes)]))
                other = builder.shuffle_vector(vector, vector, partners)
                beside = builder.shuffle_vector(own, own, partners)
                before = builder.and_(
                    equal(builder, value.dtype, vector, other), builder.icmp_signed("<", own, beside)
                )
                before = builder.or_(less(builder, value.dtype, vector, other), before)
                stays = builder.xor(before, builder.not_(_first_of_pairs(lanes, run, apart)))
                vector = builder.select(stays, vector, other)
                own = builder.select(stays, own, beside)
            return own

        return signature(places, value, places), codegen

    return places_in_order


def _sorting(lanes: int) -> dict[str, Any]:
    """Return the functions that move numbers between lanes."""
    return {
        "inside": _inside(lanes), "count": _count(lanes), "packed": _packed(lanes), "in_order": _in_order(lanes),
        "keys": _keys(lanes), "taken": _taken(lanes), "places_in_order": _places_in_order(lanes),
    }  # fmt: skip


def _folded(dtype: Any, accumulator: Any) -> Any:
    """Return the type of a fold of numbers, or of vectors lane by lane."""
    kind = accumulator if isinstance(accumulator, Vector) else dtype
    return signature(kind, kind, kind)


def _sum(dtype: Any) -> Any:
    """Return an addition that LLVM may reassociate, so that a fold by it becomes a vector loop."""

    @intrinsic
    def fold(typing_context: Any, accumulator: Any, element: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return builder.fadd(*args, flags=("reassoc", "nsz"))

        return _folded(dtype, accumulator), codegen

    return fold


def _extremum(dtype: Any, name: str) -> Any:
    """Return the larger or smaller of two numbers, NaN if either is, in a form LLVM folds in vectors."""

    @intrinsic
    def fold(typing_context: Any, accumulator: Any, element: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            vector = f"v{accumulator.lanes}" if isinstance(accumulator, Vector) else ""
            return call(
                builder, f"llvm.{name}.{vector}{_SUFFIXES[dtype]}", args[0].type, args, fastmath=("nsz",)
            )

        return _folded(dtype, accumulator), codegen

    return fold


def _total(name: str, reduction: str, start: str, flags: tuple[str, ...]) -> Any:
    @intrinsic
    def total(typing_context: Any, value: Any, count: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            vector, count = args
            kind = vector.type.element
            lanes = vector.type.count
            inside = mask(builder, lanes, count)
            neutral = ir.Constant(kind, float(start))
            masked = builder.select(inside, vector, splat(builder, neutral, lanes))
            operands = [neutral, masked] if name == "sum" else [masked]
            function = f"llvm.vector.reduce.{reduction}.v{lanes}{_SUFFIXES[value.dtype]}"
            return call(builder, function, kind, operands, fastmath=flags)

        if not isinstance(value, Vector) or not _is_float(value.dtype):
            return None
        return signature(value.dtype, value, types.intp), codegen

    return total


FUNCTIONS: dict[str, Any] = {
    "where": where,
    "total_sum": _total("sum", "fadd", "-0.0", ("reassoc", "nsz")),
    "total_max": _total("max", "fmaximum", "-inf", ()),
    "total_min": _total("min", "fminimum", "inf", ()),
}
for _suffix in ("f32", "f64"):
    FUNCTIONS[f"fold_sum_{_suffix}"] = _sum(DTYPES[_suffix])
    FUNCTIONS[f"fold_max_{_suffix}"] = _extremum(DTYPES[_suffix], "maximum")
    FUNCTIONS[f"fold_min_{_suffix}"] = _extremum(DTYPES[_suffix], "minimum")
for _lanes in SEVERAL:
    FUNCTIONS.update({f"{name}_x{_lanes}": function for name, function in _sorting(_lanes).items()})
    FUNCTIONS.update(
        {f"load_first_x{_lanes}": load_first_function(_lanes), f"store_first_x{_lanes}": _store_first(_lanes)}
    )
for _lanes in LANES:
    FUNCTIONS.update({f"{name}_x{_lanes}": function for name, function in _memory(_lanes).items()})
    FUNCTIONS.update({f"{name}_x{_lanes}": function for name, function in _sorting(_lanes).items()})
for _lanes in (*LANES, *SEVERAL):
    for _suffix, _dtype in DTYPES.items():
        FUNCTIONS[f"{_suffix}x{_lanes}"] = _conversion(_dtype, _lanes)
