# SPDX-License-Identifier: BSD-3-Clause
"""Mathematical functions of floats as straight-line code that LLVM can vectorise.

They are functions of terms (terms.py), so a body reads like the formula. This file has the tables of functions that
emitted source calls by name, and the functions that belong to no family.
"""

from collections.abc import Callable
from typing import Any

from . import special
from .bits import (
    brain_bits,
    brain_round,
    brain_value,
    copysign,
    fast_half_bits,
    fast_half_round,
    fast_half_value,
    frexp_exponent,
    frexp_fraction,
    half_bits,
    half_round,
    half_value,
    hypot,
    ldexp,
    nextafter,
    signbit,
    spacing,
)
from .circular import arccos, arcsin, arctan, arctan2, cos, sin, tan
from .exponential import (
    arccosh,
    arcsinh,
    arctanh,
    cosh,
    exp,
    exp2,
    exp_reduced,
    expm1,
    log,
    log1p,
    log2,
    log10,
    pow,
    power_of_two,
    sinh,
    split_exponent,
    tanh,
)  # fmt: skip
from .formats import format_of
from .terms import (
    INFINITY,
    Term,
    absolute,
    at_most,
    ceil,
    floor,
    polynomial,
    rint,
    select,
    sqrt,
    trunc,
    with_sign_of,
)


def sign(x: Term) -> Term:
    return select(x > 0.0, 1.0, select(x < 0.0, -1.0, select(x.is_nan(), x, 0.0)))


def reciprocal(x: Term) -> Term:
    return 1.0 / x


def isinf(x: Term) -> Term:
    return absolute(x).equals(INFINITY)


def isfinite(x: Term) -> Term:
    return absolute(x) < INFINITY


def erf(x: Term) -> Term:
    form = format_of(x)
    size = absolute(x)
    near = size + size * polynomial(size * size, form.erf)
    r, raw = split_exponent(polynomial(at_most(size, form.erf_high), form.log_erfc), form.bias)
    far = 1.0 - exp_reduced(r) * power_of_two(raw)
    return with_sign_of(select(size < 1.0, near, far), x)


def cbrt(x: Term) -> Term:
    form = format_of(x)
    size = absolute(x)
    subnormal = size < form.smallest_normal
    number = select(subnormal, size * form.cbrt_scale**3, size)
    # A third of the bits, read as an integer, is nearly the logarithm of the root; 0.033 centres the error.
    bits = number.as_int()
    fraction = ((bits & ((1 << form.mantissa) - 1)) | (form.bias << form.mantissa)).as_float()
    exponent = ((bits >> form.mantissa) | form.counter).as_float() - (2.0**form.mantissa + 1.0)
    kept = form.mantissa - (12 if x.bits == 32 else 20)
    third = (exponent + fraction) * (1.0 / 3.0) + (form.bias * 2.0 / 3.0 - 0.033)
    root = ((third + 1.5 * 2.0**kept).as_int() << kept).as_float()
    # Better by a polynomial; then with half the bits, whose square is exact, by a step of third order.
    root = root * polynomial(root * root * (root / number) - 1.0, form.cbrt)
    root = (root.as_int() & -(1 << (form.mantissa // 2 + 1))).as_float()
    ratio = number / (root * root)
    root = root + root * ((ratio - root) / (root + root + ratio))
    root = select(subnormal, root * (1.0 / form.cbrt_scale), root)
    # Of `number`, not of `size`: a program may take subnormal numbers for 0, but LLVM's comparisons do not.
    return with_sign_of(select((number > 0.0) & (number < INFINITY), root, number), x)


# A quotient of two float32 below 2**29 is an integer, or at least 2**-24 away from the next one: the mantissa of y is
# less than 2**24. float64 has bits for that: the quotient is cut to the right integer, whose product with y has 53 bits
# and is exact. So is the difference from x, and it is a float32. It is NaN if x or y is no number, if x is infinite or
# y is 0, and if y is infinite.
_EXACT_QUOTIENT = 2.0**29


def _fmod(x: Term, y: Term) -> Term:
    """Return the remainder of the quotient rounded towards 0, as fmod of the C library does: exact, with x's sign."""
    if x.bits == 64:
        return x.libm("fmod", y)
    size, divisor = absolute(x).to_float(64), absolute(y).to_float(64)
    quotient = size / divisor
    remainder = size - quotient.intrinsic("trunc") * divisor
    # A program may take subnormal numbers for 0, and would round these to 0; the C library does not.
    subnormal = (remainder > 0.0) & (remainder < format_of(x).smallest_normal)
    rare = (quotient >= _EXACT_QUOTIENT) | remainder.is_nan() | subnormal
    return with_sign_of(remainder.to_float(32), x).unless(rare, "fmod", x, y)


def _floored(x: Term, y: Term) -> tuple[Term, Term]:
    """Return the quotient rounded down and the remainder with the sign of y, for y != 0."""
    remainder = _fmod(x, y)
    quotient = (x - remainder) / y
    other_sign = remainder.differs(0.0) & ((remainder < 0.0) ^ (y < 0.0))
    # fmod is exact; the quotient is not, and is rounded to the nearest integer.
    quotient = select(other_sign, quotient - 1.0, quotient)
    remainder = select(other_sign, remainder + y, remainder)
    whole = floor(quotient)
    whole = select(quotient - whole > 0.5, whole + 1.0, whole)
    whole = select(quotient.equals(0.0), with_sign_of(x.constant(0.0), x / y), whole)
    return whole, select(remainder.equals(0.0), with_sign_of(remainder, y), remainder)


def mod(x: Term, y: Term) -> Term:
    return _floored(x, y)[1]


def floordiv(x: Term, y: Term) -> Term:
    return select(y.equals(0.0), x / y, _floored(x, y)[0])


# Note [shared divisors]
# A vector division takes as long as 10 multiplications. Where a whole loop divides by the same number, the reciprocal r
# of the divisor d is computed once, and each quotient by
#
#     q = x r,  q + (x - q d) r
#
# The remainder x - q d is exact in a fused multiply-add, so that this is the quotient as a division rounds it,
# except for divisors whose bits are all ones, where it may be the next number (P. W. Markstein, Computation of
# elementary functions on the IBM RISC System/6000 processor, IBM Journal of Research and Development 34, 1990).
# The correction is left out where it gives 0 or NaN: so signed zeros, infinities and NaN are those of the
# division. Both x and d are first multiplied by a power of two; otherwise r would be infinite or 0 for a
# divisor near the ends of the range.


def divisor_scale(d: Term) -> Term:
    """Return the factor for a divisor and its dividends."""
    far = 2.0 ** (64 if d.bits == 32 else 512)
    size = absolute(d)
    return select(size > far, 1.0 / far, select(size < 1.0 / far, d.constant(far), d.constant(1.0)))


def divided(x: Term, d: Term, r: Term) -> Term:
    """Return x / d, given r = 1 / d (Note [shared divisors])."""
    q = x * r
    corrected = (-q).intrinsic("fma", d, x).intrinsic("fma", r, q)
    return select((corrected < 0.0) | (corrected > 0.0), corrected, q)


UNARY: dict[str, Callable[..., Term]] = {
    function.__name__: function
    for function in (
        arccos, arccosh, arcsin, arcsinh, arctan, arctanh, brain_bits, brain_round, brain_value, cbrt, ceil,
        cos, cosh, erf, exp, exp2, expm1, fast_half_bits, fast_half_round, fast_half_value, floor,
        frexp_exponent, frexp_fraction, half_bits, half_round, half_value, isfinite, isinf, log, log10, log1p,
        log2, reciprocal, rint, sign, signbit, sin, sinh, spacing, sqrt, tan, tanh, trunc,
    )
}  # fmt: skip
BINARY: dict[str, Callable[..., Term]] = {
    function.__name__: function
    for function in (arctan2, copysign, floordiv, hypot, ldexp, mod, nextafter, pow)
}
SHARED: dict[int, dict[str, Callable[..., Term]]] = {
    1: {"divisor_scale": divisor_scale},
    3: {"divided": divided},
}
"""The functions of Note [shared divisors], by the number of operands."""
PREDICATES = frozenset({"isinf", "isfinite", "signbit"})
OF_32_BITS = frozenset({"frexp_exponent"})
"""The functions whose results are integers of 32 bits."""


def emit(name: str, builder: Any, values: Any) -> Any:
    """Append a function of floats to the code of a kernel; return the LLVM value of its result."""
    terms = [Term(builder, value) for value in values]
    for functions in (UNARY, BINARY, *SHARED.values(), special.UNARY, special.BINARY):
        if name in functions:
            return functions[name](*terms).value
    raise KeyError(name)
