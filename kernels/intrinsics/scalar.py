# SPDX-License-Identifier: BSD-3-Clause
"""The functions that emitted kernels call by name, such as ``exp_f32``, ``floordiv_i64``, ``sign_u8``.

Each is an intrinsic of Numba: its code is appended to the kernel that calls it. That takes about 1 ms per call,
where a compiled helper takes 30 ms; it defines no symbol on which two kernels could disagree; and LLVM sees a loop body
without calls. Operands are first converted to the dtype in the name, because Numba widens small integers to 64 bits.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.typing import signature
from numba.extending import intrinsic

from . import polynomials, special
from .vectors import Vector, widened

_FLOATS = {"f32": types.float32, "f64": types.float64}
_SIGNED = {"i8": types.int8, "i16": types.int16, "i32": types.int32, "i64": types.int64}
_UNSIGNED = {"u8": types.uint8, "u16": types.uint16, "u32": types.uint32, "u64": types.uint64}

_Emitter = Callable[[ir.IRBuilder, list[ir.Value], bool], ir.Value]


# Note [integers divided as floats]
# A CPU divides integers one by one, in 10 to 20 cycles each, but floats in vectors, and where a loop divides by the
# same number its reciprocal r is computed once. The product x r, rounded to an integer q, is so near to the quotient of
# integers of up to 32 bits that the remainder x - q y lies between -y and y; if its sign is not that of y, the quotient
# rounded down is one less. A quotient of 64 bits differs from x r by up to 2**11, so the remainder is divided likewise,
# and the quotients are added.

_NEAREST = 1.5 * 2.0**52  # a float that large has no places behind the point


def _division(builder: ir.IRBuilder, values: list[ir.Value], signed: bool) -> tuple[ir.Value, ir.Value]:
    """Return quotient (rounded down) and remainder; both 0 for the divisor 0, as in NumPy."""
    x, y = values
    narrow = x.type
    zero, one = ir.Constant(narrow, 0), ir.Constant(narrow, 1)
    by_zero = builder.icmp_unsigned("==", y, zero)
    if narrow.width == 64 and not signed:
        divisor = builder.select(by_zero, one, y)
        quotient, remainder = builder.udiv(x, divisor), builder.urem(x, divisor)
        return builder.select(by_zero, zero, quotient), builder.select(by_zero, zero, remainder)
    x, y = (_extended(builder, value, signed) for value in values)
    quotient, remainder = _rounded_down(builder, x, y)
    if x.type != narrow:
        quotient, remainder = builder.trunc(quotient, narrow), builder.trunc(remainder, narrow)
    return builder.select(by_zero, zero, quotient), builder.select(by_zero, zero, remainder)


def _extended(builder: ir.IRBuilder, value: ir.Value, signed: bool) -> ir.Value:
    """Return an integer in 32 bits or more, with a sign."""
    width = value.type.width
    if signed:
        return value if width >= 32 else builder.sext(value, ir.IntType(32))
    return builder.zext(value, ir.IntType(32 if width < 32 else 64))


def _rounded_down(builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Return quotient and remainder for y != 0 (Note [integers divided as floats])."""
    kind, double = x.type, ir.DoubleType()
    zero, one, nearest = ir.Constant(kind, 0), ir.Constant(kind, 1), ir.Constant(double, _NEAREST)
    # The smallest integer has no negative, so the quotient by -1 is one that wraps.
    by_minus_one = builder.icmp_signed("==", y, ir.Constant(kind, -1))
    divisor = builder.select(by_minus_one, one, y)
    inverse = builder.fdiv(ir.Constant(double, 1.0), builder.sitofp(divisor, double))
    quotient, remainder = zero, x
    if kind.width == 64:
        near = builder.fmul(builder.sitofp(x, double), inverse)
        most = ir.Constant(double, 2.0**63 - 1024.0)
        near = builder.select(builder.fcmp_ordered("<", near, most), near, most)
        quotient = builder.fptosi(near, kind)
        remainder = builder.sub(x, builder.mul(quotient, divisor))
    near = builder.fmul(builder.sitofp(remainder, double), inverse)
    step = builder.fptosi(builder.fsub(builder.fadd(near, nearest), nearest), kind)
    quotient = builder.add(quotient, step)
    remainder = builder.sub(remainder, builder.mul(step, divisor))
    other_sign = builder.icmp_signed("<", builder.xor(remainder, divisor), zero)
    round_down = builder.and_(builder.icmp_signed("!=", remainder, zero), other_sign)
    quotient = builder.select(round_down, builder.sub(quotient, one), quotient)
    remainder = builder.select(round_down, builder.add(remainder, divisor), remainder)
    return builder.select(by_minus_one, builder.neg(x), quotient), remainder


def _floordiv(builder: ir.IRBuilder, values: list[ir.Value], signed: bool) -> ir.Value:
    return _division(builder, values, signed)[0]


def _mod(builder: ir.IRBuilder, values: list[ir.Value], signed: bool) -> ir.Value:
    return _division(builder, values, signed)[1]


def _pow(builder: ir.IRBuilder, values: list[ir.Value], signed: bool) -> ir.Value:
    """Return x**y modulo 2**bits by repeated squaring.

    NumPy raises for a negative exponent, which a kernel cannot; here the result is 1 / x**-y towards 0.
    """
    base, exponent = values
    kind = base.type
    zero, one = ir.Constant(kind, 0), ir.Constant(kind, 1)
    before = builder.block
    loop, done = builder.append_basic_block("pow.loop"), builder.append_basic_block("pow.done")
    builder.branch(loop)
    builder.position_at_end(loop)
    result, square, left = (builder.phi(kind) for _ in range(3))
    odd = builder.icmp_unsigned("!=", builder.and_(left, one), zero)
    next_result = builder.select(odd, builder.mul(result, square), result)
    next_square, next_left = builder.mul(square, square), builder.lshr(left, one)
    for phi, first, following in (
        (result, one, next_result), (square, base, next_square), (left, exponent, next_left)
    ):  # fmt: skip
        phi.add_incoming(first, before)
        phi.add_incoming(following, loop)
    builder.cbranch(builder.icmp_unsigned("!=", next_left, zero), loop, done)
    builder.position_at_end(done)
    if not signed:
        return next_result
    # The bits of a negative exponent, read as an unsigned number, are odd exactly when the exponent is.
    unit = builder.icmp_unsigned("<=", builder.add(base, one), ir.Constant(kind, 2))
    truncated = builder.select(unit, next_result, zero)
    return builder.select(builder.icmp_signed("<", exponent, zero), truncated, next_result)


def _shifted_out(builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Return what to shift and by how much, for a shift that gives 0 where y is not one of the places of x.

    x is made 0, not the result: for a choice between a shift and 0 LLVM 22 has one instruction of a GPU, which reads
    the lower 32 bits of y only, so that 1 << 2**32 would be 1.
    """
    inside = builder.icmp_unsigned("<", y, ir.Constant(y.type, y.type.width))
    places = ir.Constant(y.type, y.type.width - 1)
    return builder.select(inside, x, ir.Constant(x.type, 0)), builder.and_(y, places)


def _left_shift(builder: ir.IRBuilder, values: list[ir.Value], signed: bool) -> ir.Value:
    """Return x << y, 0 where y is not one of the places of x."""
    return builder.shl(*_shifted_out(builder, *values))


def _right_shift(builder: ir.IRBuilder, values: list[ir.Value], signed: bool) -> ir.Value:
    """Return x >> y, 0 where y is not one of the places of x, or -1 for a negative x."""
    x, y = values
    if not signed:
        return builder.lshr(*_shifted_out(builder, x, y))
    last = ir.Constant(y.type, y.type.width - 1)
    return builder.ashr(x, builder.select(builder.icmp_unsigned("<=", y, last), y, last))


def _reciprocal(builder: ir.IRBuilder, values: list[ir.Value], signed: bool) -> ir.Value:
    """Return 1 / x rounded towards 0.

    For x = 0 it is NumPy's on one number: infinity converted to the dtype, which each kind of CPU does in its own way.
    """
    (x,) = values
    kind = x.type
    zero, one = ir.Constant(kind, 0), ir.Constant(kind, 1)
    unit = builder.icmp_unsigned("==", x, one)
    if signed:
        unit = builder.or_(unit, builder.icmp_signed("==", x, ir.Constant(kind, -1)))
    of_zero = ir.Constant(kind, _reciprocal_of_zero(f"{'i' if signed else 'u'}{kind.width // 8}"))
    by_zero = builder.icmp_unsigned("==", x, zero)
    return builder.select(unit, x, builder.select(by_zero, of_zero, zero))


@cache
def _reciprocal_of_zero(dtype: str) -> int:
    with np.errstate(all="ignore"):
        return int(np.reciprocal(np.zeros(1, dtype))[0])


def _sign(builder: ir.IRBuilder, values: list[ir.Value], signed: bool) -> ir.Value:
    (x,) = values
    zero = ir.Constant(x.type, 0)
    positive = builder.zext(builder.icmp_unsigned("!=", x, zero), x.type)
    if not signed:
        return positive
    return builder.select(builder.icmp_signed("<", x, zero), ir.Constant(x.type, -1), positive)


def _identity(builder: ir.IRBuilder, values: list[ir.Value], signed: bool) -> ir.Value:
    return values[0]


def _constant(truth: bool) -> _Emitter:
    return lambda builder, values, signed: ir.Constant(ir.IntType(1), int(truth))


_INTEGER_UNARY: dict[str, _Emitter] = {"reciprocal": _reciprocal, "sign": _sign}
_INTEGER_BINARY: dict[str, _Emitter] = {
    "floordiv": _floordiv, "mod": _mod, "pow": _pow, "left_shift": _left_shift, "right_shift": _right_shift,
}  # fmt: skip
_ROUNDING: dict[str, _Emitter] = dict.fromkeys(("floor", "ceil", "trunc", "rint"), _identity)
_PREDICATES: dict[str, _Emitter] = {"isinf": _constant(False), "isfinite": _constant(True)}


def _intrinsic(name: str, arity: int, dtype: Any, result: Any, emit: Callable[..., ir.Value]) -> Any:
    """Return a function that kernels can call on operands of a dtype."""
    typed = result(*(dtype,) * arity)

    def code(context: Any, builder: ir.IRBuilder, _signature: Any, values: list[ir.Value]) -> ir.Value:
        return emit(builder, values)

    def by_lanes(*operands: Any) -> Any:
        """Return signature and code for operands that include vectors."""
        vector = Vector(dtype, next(kind.lanes for kind in operands if isinstance(kind, Vector)))

        def wide(context: Any, builder: ir.IRBuilder, sig: Any, values: list[ir.Value]) -> ir.Value:
            pairs = zip(values, operands, strict=True)
            return emit(builder, [widened(context, builder, *pair, vector) for pair in pairs])

        return signature(Vector(result, vector.lanes), *operands), wide

    def unary(typing_context: Any, x: Any) -> Any:
        return by_lanes(x) if isinstance(x, Vector) else (typed, code)

    def binary(typing_context: Any, x: Any, y: Any) -> Any:
        return by_lanes(x, y) if isinstance(x, Vector) or isinstance(y, Vector) else (typed, code)

    def ternary(typing_context: Any, x: Any, y: Any, z: Any) -> Any:
        return by_lanes(x, y, z) if any(isinstance(kind, Vector) for kind in (x, y, z)) else (typed, code)

    function = {1: unary, 2: binary, 3: ternary}[arity]
    function.__name__ = function.__qualname__ = name
    return intrinsic(function)


def _functions() -> dict[str, Any]:
    table = {}
    for suffix, dtype in _FLOATS.items():
        families = [
            (1, {**polynomials.UNARY, **special.UNARY}), (2, {**polynomials.BINARY, **special.BINARY}),
            *polynomials.SHARED.items(),
        ]  # fmt: skip
        for arity, family in families:
            for name in family:
                result = types.boolean if name in polynomials.PREDICATES else dtype
                if name in polynomials.OF_32_BITS:
                    result = types.int32

                def emit(builder: ir.IRBuilder, values: list[ir.Value], name: str = name) -> ir.Value:
                    return polynomials.emit(name, builder, values)

                table[f"{name}_{suffix}"] = _intrinsic(f"{name}_{suffix}", arity, dtype, result, emit)
    for suffix, dtype in {**_SIGNED, **_UNSIGNED, "b1": types.boolean}.items():
        of_integers = [(1, _ROUNDING), (1, _PREDICATES)]
        if suffix != "b1":
            of_integers += [(1, _INTEGER_UNARY), (2, _INTEGER_BINARY)]
        for arity, members in of_integers:
            for name, emitter in members.items():
                result = types.boolean if name in _PREDICATES else dtype

                def emit_integer(
                    builder: ir.IRBuilder,
                    values: list[ir.Value],
                    emitter: _Emitter = emitter,
                    signed: bool = suffix in _SIGNED,
                ) -> ir.Value:
                    return emitter(builder, values, signed)

                table[f"{name}_{suffix}"] = _intrinsic(f"{name}_{suffix}", arity, dtype, result, emit_integer)
    return table


FUNCTIONS: dict[str, Any] = _functions()
