# SPDX-License-Identifier: BSD-3-Clause
"""Exponentials, logarithms, powers and hyperbolic functions of terms."""

from .formats import F32, F64, format_of
from .terms import (
    INFINITY,
    NOT_A_NUMBER,
    Term,
    absolute,
    at_least,
    at_most,
    polynomial,
    select,
    sqrt,
    trunc,
    with_sign_of,
)

_LOG2_E = 1.4426950408889634
_LOG10_E = 0.4342944819032518

# log2 of a float32 to 2**-45 and 2**r to 2**-29, so that x**y is right to float32 for every y.
_LOG2_OF_F32 = (
    2.8853900817778495, 0.9617966941143484, 0.5770779420722443, 0.4122092820591592, 0.3199044723170384,
    0.2829177857076467,
)  # fmt: skip
_EXP2_TO_F32 = (
    1.000000000558863, 0.6931472057722493, 0.2402264685113115, 0.05550328705586042, 0.009618493075800955,
    0.0013399959017780074, 0.0001534477300619212,
)  # fmt: skip

# For x**y of float64: 2 / (3 log 2) in two parts, and (3 arctanh(s) / s - 3 - z) / z**2, z = s**2, to 2**-50.
_TWO_THIRDS_LOG2_E = (0.9617962837219238, 4.102040517767816e-07)
_POW_REST = (
    0.6000000000000004, 0.42857142857007, 0.3333333340693966, 0.27272712329864446, 0.23078364964909523,
    0.19928849925602274, 0.19371438774976288,
)  # fmt: skip

# Note [powers of two]
# Adding the shifter to a number below 2**(mantissa - 1) leaves the nearest integer n in the low bits of the
# sum. With the bias of the exponent added to the shifter beforehand, the bits of 2**n are those bits shifted
# to the left; the shift drops the rest of the shifter. So floats become integers without a conversion: AVX2
# has none for 64 bits.


def nearest(x: Term, offset: float = 0.0) -> tuple[Term, Term]:
    """Return the nearest integer n as a float, and bits whose low part is n + offset."""
    shifter = format_of(x).shifter + offset
    shifted = x + shifter
    return shifted - shifter, shifted.as_int()


def power_of_two(raw: Term) -> Term:
    """Return 2**n, a normal number, from the bits of n + bias as in Note [powers of two]."""
    return (raw << (F32 if raw.bits == 32 else F64).mantissa).as_float()


def _times_power_of_two(x: Term, raw: Term) -> Term:
    """Return x * 2**n from the bits of n + 2 bias, in two steps, because 2**n itself may not be a normal number."""
    half = raw >> 1
    return x * power_of_two(half) * power_of_two(raw - half)


def split_exponent(x: Term, offset: int) -> tuple[Term, Term]:
    """Return r and bits of n + offset, where x = r + n log 2."""
    high, low = format_of(x).log_2
    n, raw = nearest(x * _LOG2_E, offset)
    return x - n * high - n * low, raw


def exp_reduced(r: Term) -> Term:
    return polynomial(r, (1.0, 1.0, *format_of(r).exp))


def _expm1_reduced(r: Term) -> Term:
    return r + r * r * polynomial(r, format_of(r).exp)


def exp(x: Term) -> Term:
    form = format_of(x)
    r, raw = split_exponent(at_least(at_most(x, form.exp_high), form.exp_low), 2 * form.bias)
    return _times_power_of_two(exp_reduced(r), raw)


def exp_of_sum(x: Term, small: Term) -> Term:
    """Return exp(x + small), for a small number below 1/500."""
    form = format_of(x)
    r, raw = split_exponent(at_least(at_most(x, form.exp_high), form.exp_low), 2 * form.bias)
    return _times_power_of_two(exp_reduced(r + small), raw)


def exp2(x: Term) -> Term:
    form = format_of(x)
    x = at_least(at_most(x, form.bias + 1.0), -1.0 - form.bias - form.mantissa)
    n, raw = nearest(x, 2 * form.bias)
    return _times_power_of_two(exp_reduced((x - n) * sum(form.log_2)), raw)


def _quarter_expm1(x: Term) -> Term:
    """Return (e**x - 1) / 4: a quarter does not overflow where the final result is finite."""
    r, raw = split_exponent(x, format_of(x).bias - 2)
    scale = power_of_two(raw)
    return scale * _expm1_reduced(r) + (scale - 0.25)


def _or_itself_if_tiny(x: Term, result: Term) -> Term:
    """Return x where a quarter of it would be subnormal, otherwise the result."""
    return select(absolute(x) < format_of(x).smallest_normal * 4.0, x, result)


def expm1(x: Term) -> Term:
    form = format_of(x)
    quarter = _quarter_expm1(at_least(at_most(x, form.sinh_high), form.expm1_low))
    return with_sign_of(_or_itself_if_tiny(x, quarter * 4.0), x)


def tanh(x: Term) -> Term:
    form = format_of(x)
    quarter = _quarter_expm1(at_most(absolute(x), form.tanh_high) * 2.0)
    return with_sign_of(_or_itself_if_tiny(x, quarter.over(quarter + 0.5)), x)


def sinh(x: Term) -> Term:
    form = format_of(x)
    quarter = _quarter_expm1(at_most(absolute(x), form.sinh_high))
    return with_sign_of(_or_itself_if_tiny(x, quarter * 2.0 + quarter / (quarter * 2.0 + 0.5)), x)


def cosh(x: Term) -> Term:
    form = format_of(x)
    r, raw = split_exponent(at_most(absolute(x), form.sinh_high), form.bias - 2)
    quarter = power_of_two(raw) * exp_reduced(r)
    return quarter * 2.0 + 0.125 / quarter


def _split_logarithm(x: Term) -> tuple[Term, Term]:
    """Return m - 1 and n with x = m * 2**n and m between the square roots of 1/2 and 2, for normal x > 0."""
    form = format_of(x)
    shifted = x.as_int() - form.sqrt_half
    exponent = (shifted + (form.bias << form.mantissa)) >> form.mantissa
    n = (exponent | form.counter).as_float() - (2.0**form.mantissa + form.bias)
    return ((shifted & ((1 << form.mantissa) - 1)) + form.sqrt_half).as_float() - 1.0, n


def _split_any_logarithm(x: Term) -> tuple[Term, Term]:
    """Return the result of _split_logarithm, for subnormal x too."""
    form = format_of(x)
    subnormal = x < form.smallest_normal
    fraction, n = _split_logarithm(select(subnormal, x * 2.0**form.mantissa, x))
    return fraction, select(subnormal, n - float(form.mantissa), n)


def _logarithm_of_mantissa(f: Term, addend: Term | float = 0.0) -> Term:
    """Return log(1 + f) + addend, where the addend is small."""
    s = f.over(f + 2.0)
    z = s * s
    half_square = f * f * 0.5
    # log(1 + f) = 2 s + s z P(z), rewritten around f, which is exact.
    return f - (half_square - (s * (half_square + z * polynomial(z, format_of(f).log)) + addend))


def _logarithm_or_limit(result: Term, x: Term) -> Term:
    """Return the result where it is defined, otherwise infinity or NaN, as for log(x)."""
    return select(
        x > 0.0,
        select(x < INFINITY, result, INFINITY),
        select(x.equals(0.0), -INFINITY, x.constant(NOT_A_NUMBER)),
    )


def log(x: Term) -> Term:
    high, low = format_of(x).log_2
    f, n = _split_any_logarithm(x)
    return _logarithm_or_limit(n * high + _logarithm_of_mantissa(f, n * low), x)


def log2(x: Term) -> Term:
    f, n = _split_any_logarithm(x)
    return _logarithm_or_limit(n + _logarithm_of_mantissa(f) * _LOG2_E, x)


def log10(x: Term) -> Term:
    high, low = format_of(x).log10_2
    f, n = _split_any_logarithm(x)
    return _logarithm_or_limit(n * high + (n * low + _logarithm_of_mantissa(f) * _LOG10_E), x)


def log1p(x: Term) -> Term:
    high, low = format_of(x).log_2
    total = x + 1.0
    f, n = _split_logarithm(total)
    # The rounding error of 1 + x is added to the logarithm to first order.
    lost = select(n > 0.0, 1.0 - (total - x), x - (total - 1.0)) / total
    near_one = n.equals(0.0)
    f, lost = select(near_one, x, f), select(near_one, 0.0, lost)
    return with_sign_of(_logarithm_or_limit(n * high + _logarithm_of_mantissa(f, n * low + lost), total), x)


def arcsinh(x: Term) -> Term:
    form = format_of(x)
    size = absolute(x)
    large = size > form.square_high
    square = size * size
    inner = select(large, size - 1.0, size + square / (sqrt(square + 1.0) + 1.0))
    return with_sign_of(log1p(inner) + select(large, size.constant(sum(form.log_2)), 0.0), x)


def arccosh(x: Term) -> Term:
    form = format_of(x)
    large = x > form.square_high
    over = x - 1.0
    inner = select(large, over, over + sqrt(over * over + over * 2.0))
    result = log1p(inner) + select(large, x.constant(sum(form.log_2)), 0.0)
    return select(x >= 1.0, result, NOT_A_NUMBER)


def arctanh(x: Term) -> Term:
    size = absolute(x)
    return with_sign_of(log1p(size * 2.0 / (1.0 - size)) * 0.5, x)


def _pow_f32(size: Term, y: Term) -> Term:
    """Return size**y of float32 by way of float64."""
    size, y = size.to_float(64), y.to_float(64)
    f, exponent = _split_logarithm(size)
    s = f.over(f + 2.0)
    logarithm = exponent + s * polynomial(s * s, _LOG2_OF_F32)
    logarithm = select(size.equals(0.0), -INFINITY, select(size < INFINITY, logarithm, size))
    power = at_least(at_most(y * logarithm, 130.0), -160.0)
    n, raw = nearest(power, F64.bias)
    return (polynomial(power - n, _EXP2_TO_F32) * power_of_two(raw)).to_float(32)


def _upper(x: Term) -> Term:
    """Return a float64 without the lower half of its bits: products of two such numbers are exact."""
    return (x.as_int() & -(1 << 32)).as_float()


def _log2_in_two_parts(x: Term) -> tuple[Term, Term]:
    """Return log2(x) of a finite float64 x > 0 to about 2**-62, as the sum of a short and a small number."""
    f, exponent = _split_any_logarithm(x)
    total = f + 2.0
    inverse = 1.0 / total
    s = f * inverse
    # s = upper + lower, where total = total_upper + total_lower exactly.
    upper, total_upper = _upper(s), _upper(total)
    lower = inverse * ((f - upper * total_upper) - upper * (f - (total_upper - 2.0)))
    # log(1 + f) = 2/3 s (3 + s**2 + rest)
    z = s * s
    square = upper * upper
    rest = z * z * polynomial(z, _POW_REST) + lower * (upper + s)
    factor_upper = _upper(3.0 + square + rest)
    factor_lower = rest - ((factor_upper - 3.0) - square)
    product = upper * factor_upper
    correction = lower * factor_upper + factor_lower * s
    product_upper = _upper(product + correction)
    product_lower = correction - (product_upper - product)
    high, low = _TWO_THIRDS_LOG2_E
    scaled = product_upper * high
    scaled_lower = product_upper * low + product_lower * (high + low)
    result = _upper(scaled + scaled_lower + exponent)
    return result, scaled_lower - ((result - exponent) - scaled)


def _pow_f64(size: Term, y: Term) -> Term:
    """Return size**y of float64."""
    log_upper, log_lower = _log2_in_two_parts(size)
    # Beyond 2**64 every power except that of 1 is 0 or infinite.
    factor = at_least(at_most(y, 2.0**64), -(2.0**64))
    factor_upper = _upper(factor)
    # Subnormal numbers that a program takes for 0 are 0 as products only: LLVM's comparisons see their bits.
    regular = (size * 2.0**F64.mantissa > 0.0) & (size < INFINITY)
    high = select(regular, factor_upper * log_upper, y * select(size < 1.0, -INFINITY, size))
    low = (factor - factor_upper) * log_upper + factor * log_lower
    low = select(regular & (absolute(high) < 1100.0), low, 0.0)
    high = at_least(at_most(high, 1100.0), -1100.0)
    n, raw = nearest(high, 2 * F64.bias)
    return _times_power_of_two(exp_reduced(((high - n) + low) * sum(F64.log_2)), raw)


def pow(x: Term, y: Term) -> Term:
    size = absolute(x)
    result = (_pow_f32 if x.bits == 32 else _pow_f64)(size, y)
    whole = trunc(y).equals(y)
    odd = whole & trunc(y * 0.5).differs(y * 0.5)
    result = select(odd, with_sign_of(result, x), result)
    result = select((x < 0.0) & (x > -INFINITY) & trunc(y).differs(y), NOT_A_NUMBER, result)
    minus_one_to_inf = x.equals(-1.0) & absolute(y).equals(INFINITY)
    return select(y.equals(0.0) | x.equals(1.0) | minus_one_to_inf, 1.0, result)
