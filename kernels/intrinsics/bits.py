# SPDX-License-Identifier: BSD-3-Clause
"""Functions of floats that look at their bits: signs, exponents, neighbours; and the length of a pair."""

from typing import Any

from llvmlite import ir

from .formats import format_of
from .terms import (
    INFINITY,
    NOT_A_NUMBER,
    Term,
    absolute,
    at_least,
    at_most,
    floor,
    select,
    sqrt,
    with_sign_of,
)


def signbit(x: Term) -> Term:
    return x.as_int() < 0


def copysign(x: Term, y: Term) -> Term:
    return with_sign_of(x, y)


def _exponent_field(size: Term) -> Term:
    """Return the exponent of a float >= 0 with its bias, as an integer."""
    return size.as_int() >> format_of(size).mantissa


def _of_small_integer(x: Term, raw: Term) -> Term:
    """Return an integer from 0 to 2**20 as a float of the kind of x."""
    form = format_of(x)
    return (raw | form.counter).as_float() - 2.0**form.mantissa


def _normal(x: Term) -> tuple[Term, Term]:
    """Return |x| times a power of two that makes it a normal number, and the exponent of that power."""
    form = format_of(x)
    size = absolute(x)
    tiny = size < form.smallest_normal
    power = form.mantissa + 1
    return select(tiny, size * 2.0**power, size), select(tiny, x.constant(power), x.constant(0.0))


def _has_exponent(size: Term) -> Term:
    """Return whether a number, from _normal, is neither 0 nor infinite nor NaN.

    The number itself would not do: a program may take subnormal numbers for 0, but LLVM's comparisons do not.
    """
    return (size > 0.0) & (size < INFINITY)


def frexp_fraction(x: Term) -> Term:
    form = format_of(x)
    size, _ = _normal(x)
    half = (form.bias - 1) << form.mantissa
    bits = (size.as_int() & ((1 << form.mantissa) - 1)) | half
    return select(_has_exponent(size), with_sign_of(bits.as_float(), x), with_sign_of(size, x))


def frexp_exponent(x: Term) -> Term:
    """Return the exponent as an integer of 32 bits."""
    form = format_of(x)
    size, power = _normal(x)
    exponent = _of_small_integer(x, _exponent_field(size)) - float(form.bias - 1) - power
    exponent = select(_has_exponent(size), exponent, x.constant(0.0))
    return x.like(x.builder.fptosi(exponent.value, x.of(ir.IntType(32))))


def _power_of_two(n: Term) -> Term:
    """Return 2**n, a normal number, for a whole number n."""
    form = format_of(n)
    raw = (n + float(form.bias) + 2.0**form.mantissa).as_int()  # the low bits hold n + bias
    return (raw << form.mantissa).as_float()


def ldexp(x: Term, n: Term) -> Term:
    """Return x * 2**n in steps that stay within the range of a factor."""
    form = format_of(x)
    most = 2.0 * form.bias + form.mantissa + 2.0
    n = at_least(at_most(n, most), -most)
    part = floor(n * 0.25)
    rest = n - part * 3.0
    factor = _power_of_two(part)
    return x * factor * factor * factor * _power_of_two(rest)


def nextafter(x: Term, y: Term) -> Term:
    form = format_of(x)
    bits = x.as_int()
    outward = (y > x) & (x > 0.0) | (y < x) & (x < 0.0)
    step = select(outward, bits + 1, bits - 1).as_float()
    smallest = with_sign_of(absolute((absolute(x * 0.0).as_int() | 1).as_float()), y)
    moved = select(absolute(x).as_int().equals(0), smallest, step)
    result = select(x.equals(y) & (absolute(x) >= form.smallest_normal), y, moved)
    result = select(x.equals(y), y, result)
    return select(x.is_nan() | y.is_nan(), x + y, result)


def spacing(x: Term) -> Term:
    size = absolute(x)
    gap = (size.as_int() + 1).as_float() - size
    gap = select(size > 0.0, with_sign_of(gap, x), gap)  # that of -0.0 is positive in NumPy
    return select(size < INFINITY, gap, x.constant(NOT_A_NUMBER))


def hypot(x: Term, y: Term) -> Term:
    """Return sqrt(x x + y y) without overflow of the squares."""
    a, b = absolute(x), absolute(y)
    larger, smaller = select(a > b, a, b), select(a > b, b, a)
    ratio = smaller / larger
    length = select(larger.equals(0.0), smaller, larger * sqrt(ratio * ratio + 1.0))
    infinite = a.equals(INFINITY) | b.equals(INFINITY)
    return select(infinite, x.constant(INFINITY), length)


def _whole(n: Term) -> Term:
    """Return a float that is a whole number from 0 to 2**16 - 1 as an integer."""
    return (n + 2.0 ** format_of(n).mantissa).as_int() & 0xFFFF


def half_value(n: Term) -> Term:
    """Return the float16 number of 1, 5 and 10 bits: exponents 0 and 31 are those of subnormal and infinite numbers."""
    form = format_of(n)
    size = _whole(n) & 0x7FFF
    rebiased = (form.bias - 15) << form.mantissa
    normal = (size << (form.mantissa - 10)) + rebiased
    subnormal = (n - select(n >= 32768.0, n.constant(32768.0), n.constant(0.0))) * 2.0**-24
    endless = (normal + rebiased).as_float()
    value = select(size < 0x0400, subnormal, select(size >= 0x7C00, endless, normal.as_float()))
    return select(n >= 32768.0, -value, value)


def half_bits(x: Term) -> Term:
    """Return the bits of the nearest float16 number, of two the even one; those of infinity from 65520 on."""
    form = format_of(x)
    shift = form.mantissa - 10
    size = absolute(x).as_int()
    odd = (size >> shift) & 1
    normal = (size - ((form.bias - 15) << form.mantissa) + odd + ((1 << (shift - 1)) - 1)) >> shift
    # The last bit of the sum is worth 2**-24, the smallest float16 number: the addition rounds.
    unit = 2.0 ** (form.mantissa - 24)
    subnormal = (absolute(x) + unit).as_int() - x.constant(unit).as_int()
    bits = select(size < ((form.bias - 14) << form.mantissa), subnormal, normal)
    bits = select(size >= ((form.bias + 16) << form.mantissa), bits.constant(0x7C00), bits)
    bits = select(x.is_nan(), bits.constant(0x7E00), bits)
    sign = select(x.as_int() < 0, bits.constant(0x8000), bits.constant(0))
    return _of_small_integer(x, bits + sign)


def half_round(x: Term) -> Term:
    """Return the nearest float16 number, of two the one with an even last bit, as a number of the kind of x."""
    form = format_of(x)
    shift = form.mantissa - 10
    size = absolute(x)
    raw = size.as_int()
    odd = (raw >> shift) & 1
    normal = (((raw + odd + ((1 << (shift - 1)) - 1)) >> shift) << shift).as_float()
    unit = 2.0 ** (form.mantissa - 24)  # as in half_bits
    value = select(size < 2.0**-14, (size + unit) - unit, normal)
    value = select(value > 65504.0, x.constant(INFINITY), value)
    return with_sign_of(select(x.is_nan(), size, value), x)


def brain_value(n: Term) -> Term:
    """Return the bfloat16 number, which has the upper half of the bits of float32."""
    return (_whole(n) << 16).as_float()


def brain_round(x: Term) -> Term:
    """Return the nearest bfloat16 number, of two the one with an even last bit, as float32."""
    raw = absolute(x).as_int()
    rounded = ((raw + ((raw >> 16) & 1) + 0x7FFF) >> 16) << 16
    return with_sign_of(select(x.is_nan(), x.constant(NOT_A_NUMBER), rounded.as_float()), x)


def brain_bits(x: Term) -> Term:
    return _of_small_integer(x, brain_round(x).as_int() >> 16)


# The same of float32 by instructions that x86-64-v3 and later have.


def _half_of(x: Term) -> Any:
    return x.builder.fptrunc(x.value, x.of(ir.HalfType()))


def _single_of(x: Term, half: Any) -> Term:
    return x.like(x.builder.fpext(half, x.of(ir.FloatType())))


def fast_half_value(n: Term) -> Term:
    bits = n.builder.trunc(_whole(n).value, n.of(ir.IntType(16)))
    return _single_of(n, n.builder.bitcast(bits, n.of(ir.HalfType())))


def fast_half_bits(x: Term) -> Term:
    bits = x.builder.bitcast(_half_of(x), x.of(ir.IntType(16)))
    return _of_small_integer(x, x.like(x.builder.zext(bits, x.of(ir.IntType(32)))))


def fast_half_round(x: Term) -> Term:
    return _single_of(x, _half_of(x))
