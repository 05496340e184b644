# SPDX-License-Identifier: BSD-3-Clause
"""Circular functions of terms and their inverses."""

from .exponential import nearest
from .formats import format_of
from .terms import INFINITY, Term, absolute, polynomial, select, sqrt, with_sign_of

_TWO_OVER_PI = 0.6366197723675814
_TAN_EIGHTH_PI = 0.41421356237309503

# In three parts of 33, 33 and 53 bits: n times the first two is exact for |n| < 2**20.
_HALF_PI_PARTS = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21)
_REDUCIBLE = {32: 1.0e5, 64: 1.0e6}


def _quarter_turns(x: Term) -> tuple[Term, Term]:
    """Return r and raw bits of n with x = r + n pi/2 and r in [-pi/4, pi/4], for x that is not huge."""
    turns, raw = nearest(x * _TWO_OVER_PI)
    n, r = turns.to_float(64), x.to_float(64)
    # A float32 leaves room in a float64 for a shorter sum.
    first, second, third = _HALF_PI_PARTS
    r = r - n * first
    if x.bits == 32:
        r = r - n * (second + third)
    else:
        rounded = r - n * second
        lost = (r - rounded) - n * second
        r = rounded - (n * third - lost)
    return r.to_float(x.bits), raw


def _sine_and_cosine(r: Term) -> tuple[Term, Term]:
    form = format_of(r)
    z = r * r
    half = z * 0.5
    rounded = 1.0 - half
    lost = (1.0 - rounded) - half
    sine = with_sign_of(r + r * (z * polynomial(z, form.sin)), r)
    return sine, rounded + (z * z * polynomial(z, form.cos) + lost)


def _unless_huge(name: str, x: Term, result: Term) -> Term:
    """Return the result, or that of the C library for arguments that need hundreds of digits of pi."""
    return result.unless(absolute(x) > _REDUCIBLE[x.bits], name, x)


def circular(x: Term, quarter: int) -> Term:
    r, raw = _quarter_turns(x)
    sine, cosine = _sine_and_cosine(r)
    raw = raw + quarter
    result = select((raw & 1).differs(0), cosine, sine)
    return (result.as_int() ^ ((raw & 2) << (x.bits - 2))).as_float()


def sin(x: Term) -> Term:
    return _unless_huge("sin", x, circular(x, 0))


def cos(x: Term) -> Term:
    return _unless_huge("cos", x, circular(x, 1))


def tan(x: Term) -> Term:
    r, raw = _quarter_turns(x)
    sine, cosine = _sine_and_cosine(r)
    odd = (raw & 1).differs(0)
    return _unless_huge("tan", x, select(odd, cosine, sine) / select(odd, -sine, cosine))


def _angle(small: Term, large: Term) -> Term:
    """Return arctan(small / large) for 0 <= small <= large with one division."""
    form = format_of(small)
    wide = small > large * _TAN_EIGHTH_PI
    t = select(wide, small - large, small) / select(wide, small + large, large)
    z = t * t
    high, low = form.half_pi
    correction = t * (z * polynomial(z, form.arctan)) + select(wide, t.constant(low / 2.0), 0.0)
    return select(wide, t.constant(high / 2.0), 0.0) + (t + correction)


def _from(constant: tuple[float, float], x: Term) -> Term:
    """Return the constant minus x."""
    return constant[0] - (x - constant[1])


def arctan(x: Term) -> Term:
    size = absolute(x)
    steep = size > 1.0
    angle = _angle(select(steep, 1.0, size), select(steep, size, 1.0))
    return with_sign_of(select(steep, _from(format_of(x).half_pi, angle), angle), x)


def arctan2(y: Term, x: Term) -> Term:
    form = format_of(x)
    rise, run = absolute(y), absolute(x)
    steep = rise > run
    small, large = select(steep, run, rise), select(steep, rise, run)
    huge = large > form.angle_high
    scale = select(huge, x.constant(1.0 / form.angle_high), 1.0)
    small, large = small * scale, large * scale
    # Two infinities count as equal numbers, and 0 / 0 as 0.
    infinite = small.equals(INFINITY)
    small, large = select(infinite, 1.0, small), select(infinite | large.equals(0.0), 1.0, large)
    angle = _angle(small, large)
    angle = select(steep, _from(form.half_pi, angle), angle)
    pi = (2.0 * form.half_pi[0], 2.0 * form.half_pi[1])
    negative = with_sign_of(x.constant(1.0), x) < 0.0
    angle = select(negative, _from(pi, angle), angle)
    return select(x.is_nan() | y.is_nan(), x + y, with_sign_of(angle, y))


def _arcsine_parts(x: Term) -> tuple[Term, Term, Term]:
    """Return whether |x| > 1/2, t and arcsin(t) - t, where t = |x|, or t = sqrt((1 - |x|) / 2) if |x| > 1/2."""
    size = absolute(x)
    large = size > 0.5
    z = select(large, 0.5 - size * 0.5, size * size)
    t = select(large, sqrt(z), size)
    return large, t, t * (z * polynomial(z, format_of(x).arcsin))


def arcsin(x: Term) -> Term:
    large, t, rest = _arcsine_parts(x)
    high, low = format_of(x).half_pi
    return with_sign_of(select(large, high - (2.0 * t + (2.0 * rest - low)), t + rest), x)


def arccos(x: Term) -> Term:
    large, t, rest = _arcsine_parts(x)
    high, low = format_of(x).half_pi
    near_one = 2.0 * (t + rest)
    near_minus_one = 2.0 * high - (2.0 * t + (2.0 * rest - 2.0 * low))
    negative = x < 0.0
    beside_zero = select(negative, high + (t + (rest + low)), high - (t + (rest - low)))
    return select(large, select(negative, near_minus_one, near_one), beside_zero)
