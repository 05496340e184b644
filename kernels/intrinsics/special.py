# SPDX-License-Identifier: BSD-3-Clause
"""Functions of scipy.special as straight-line code that LLVM can vectorise.

All are computed in float64, those of float32 by shorter polynomials (special_tables.py). So their results are the
rounded results of float64, except for one number in a hundred. The numbers at the ends of domains are SciPy's.
"""

from collections.abc import Callable
from functools import wraps
from math import log as log_of
from math import pi

from . import special_tables as tables
from .circular import circular
from .exponential import exp, exp_of_sum, log, log1p
from .terms import (
    INFINITY,
    NOT_A_NUMBER,
    Term,
    absolute,
    at_least,
    at_most,
    polynomial,
    rint,
    select,
    sqrt,
    with_sign_of,
)

_ROOT_HALF = 0.7071067811865476
_ROOT_2 = 1.4142135623730951
_HALF_LOG_2PI = 0.9189385332046728
_NO_TAIL = 40.0  # from here on exp(-x**2 / 2) is 0
_LARGEST = 1.7976931348623157e308


def _in_float64(function: Callable[..., Term]) -> Callable[..., Term]:
    """Return a function of floats of any width, given one of the width of the result and of float64 terms."""

    @wraps(function)
    def of_any(*operands: Term) -> Term:
        bits = operands[0].bits
        return function(bits, *[x.to_float(64) for x in operands]).to_float(bits)

    return of_any


# Note [squares in exponents]
# The error of x**2 is that of exp(-x**2) times x**2. So x is split into u, whose square is exact, and the rest:
# x**2 = u**2 + (x - u) (x + u).


def _exp_of_square(x: Term, factor: float) -> Term:
    """Return exp(-factor * x**2), factor a power of two, for x up to _NO_TAIL (Note [squares in exponents])."""
    upper = (x.as_int() & -(1 << 32)).as_float()
    return exp_of_sum(upper * upper * -factor, (x - upper) * (x + upper) * -factor)


def _scaled_erfc(bits: int, x: Term) -> Term:
    """Return exp(x**2) erfc(x) for x >= 0."""
    # For infinity the quotients would be NaN.
    x = at_most(x, _LARGEST)
    return polynomial((x - 3.75) / (x + 3.75), tables.ERFCX[bits]) / (1.0 + 2.0 * x)


def erfcx(bits: int, x: Term) -> Term:
    size = at_most(absolute(x), 30.0)
    near = select(x.equals(INFINITY), 0.0, _scaled_erfc(bits, absolute(x)))
    return select(x < 0.0, 2.0 / _exp_of_square(size, 1.0) - near, near)


def erfc(bits: int, x: Term) -> Term:
    size = at_most(absolute(x), _NO_TAIL)
    tail = _scaled_erfc(bits, size) * _exp_of_square(size, 1.0)
    return select(x < 0.0, 2.0 - tail, tail)


def _normal_tail(bits: int, size: Term) -> Term:
    """Return the probability that a normal number is larger than size >= 0."""
    size = at_most(size, _NO_TAIL)
    return 0.5 * _scaled_erfc(bits, size * _ROOT_HALF) * _exp_of_square(size, 0.5)


def ndtr(bits: int, x: Term) -> Term:
    tail = _normal_tail(bits, absolute(x))
    return select(x > 0.0, 1.0 - tail, tail)


def log_ndtr(bits: int, x: Term) -> Term:
    size = absolute(x)
    below = log(0.5 * _scaled_erfc(bits, size * _ROOT_HALF)) - 0.5 * x * x
    return select(x < 0.0, below, log1p(-_normal_tail(bits, size)))


def _quantile(bits: int, x: Term, w: Term) -> Term:
    """Return erfinv(x), given w = -log(1 - x**2)."""
    s = sqrt(at_most(w, 784.0))
    if bits == 32:
        far = polynomial(1.2123952178658384 - 6.053263709176391 / (s + 0.5), tables.ERFINV_FAR[32])
    else:
        middle = polynomial(3.192620342610885 - 17.760224775148167 / (s + 2.0), tables.ERFINV_MIDDLE[64])
        far = polynomial(2.287671232876712 - 46.35616438356164 / (s + 8.0), tables.ERFINV_FAR[64])
        far = select(s < 6.1, middle, far)
    near = polynomial(w * 0.4 - 1.0, tables.ERFINV_NEAR[bits])
    return x * select(w < 5.0, near, s * far) + 0.0  # SciPy has no negative zeros


def erfinv(bits: int, x: Term) -> Term:
    size = absolute(x)
    result = _quantile(bits, x, -log((1.0 - size) * (1.0 + size)))
    return select(size.equals(1.0), with_sign_of(x.constant(INFINITY), x), result)


def ndtri(bits: int, p: Term) -> Term:
    result = _quantile(bits, p + p - 1.0, -log(4.0 * p * (1.0 - p))) * _ROOT_2
    return select(p.equals(0.0), -INFINITY, select(p.equals(1.0), p.constant(INFINITY), result))


def entr(bits: int, x: Term) -> Term:
    result = select(x < 0.0, -INFINITY, -x * log(x))
    return select(x.equals(0.0), 0.0, result)


def logit(bits: int, x: Term) -> Term:
    far = log(x / (1.0 - x))
    if bits == 32:  # near 1/2 the quotient is exact enough
        return far
    off = x + x - 1.0
    return select(absolute(off) < 0.5, log1p(off) - log1p(-off), far)


def xlogy(bits: int, x: Term, y: Term) -> Term:
    return select(x.equals(0.0) & y.equals(y), 0.0, x * log(y))


def xlog1py(bits: int, x: Term, y: Term) -> Term:
    return select(x.equals(0.0) & y.equals(y), 0.0, x * log1p(y))


def _half_turns(x: Term) -> tuple[Term, Term]:
    """Return x - n and the nearest integer n."""
    n = rint(x)
    return x - n, n


# Note [gamma by steps]
# log(gamma(x)) and its derivative are computed between two numbers by a polynomial that has their root as a factor, and
# from a larger number on by an asymptotic series. What lies between is reached by steps of 1, whose factors are
# multiplied: then one logarithm, or one division, is enough for all of them.


def _log_gamma(bits: int, a: Term) -> Term:
    """Return log(gamma(a)) for a >= 0 (Note [gamma by steps])."""
    # Below 1/2: gamma(a) = gamma(a + 2) / (a (a + 1)); up to 3/2: gamma(a + 1) / a.
    v = select(a < 0.5, a, select(a < 1.5, a - 1.0, a - 2.0))
    factor = a.constant(1.0)
    for _ in range(11):  # down to 5/2
        above = v > 0.5
        v = select(above, v - 1.0, v)
        factor = select(above, factor * (v + 2.0), factor)
    is_far, is_low = a >= 13.0, a < 1.5
    below = select(a < 0.5, a * (a + 1.0), a)
    logarithm = log(select(is_far, a, select(is_low, below, factor)))
    v = select(is_far, 0.0, v)
    near = v * polynomial(v + v, tables.LGAMMA[bits]) + select(is_low, -logarithm, logarithm)
    inverse = 1.0 / a
    series = inverse * polynomial(inverse * inverse, tables.STIRLING[bits])
    far = (a - 0.5) * (logarithm - 1.0) + ((_HALF_LOG_2PI - 0.5) + series)
    return select(is_far, far, near)


def gammaln(bits: int, x: Term) -> Term:
    a = absolute(x)
    result = _log_gamma(bits, a)
    # gamma(-a) gamma(a) = -pi / (a sin(pi a)); it is a pole where the sine is 0.
    r, _ = _half_turns(a)
    sine = absolute(circular(r * pi, 0))
    reflected = log_of(pi) - (log(a * sine) + result)
    reflected = select(sine.equals(0.0), INFINITY, reflected)
    result = select((x < 0.0) & (a > 1e-20), reflected, result)
    return select(x.equals(-INFINITY), x, result)


_ROOT = (1.4616321449683622, 9.549995429965697e-17)
"""The positive root of the digamma function, in two parts."""


def _digamma(bits: int, a: Term) -> Term:
    """Return the derivative of log(gamma(a)) for a > 0 (Note [gamma by steps])."""
    is_low, is_far = a < 1.0, a >= 10.0
    u = select(is_low, a + 1.0, a)
    # The sum of 1 / (u - 1), 1 / (u - 2), ..., as a quotient.
    top, bottom = select(is_low, a.constant(-1.0), a.constant(0.0)), select(is_low, a, 1.0)
    for _ in range(8):  # down to 2
        above = u >= 2.0
        u = select(above, u - 1.0, u)
        top = select(above, top * u + bottom, top)
        bottom = select(above, bottom * u, bottom)
    high, low = _ROOT
    u = select(is_far, 1.0, u)
    near = ((u - high) - low) * polynomial(u + u - 3.0, tables.PSI[bits]) + top / bottom
    inverse = 1.0 / a
    square = inverse * inverse
    far = log(a) - (0.5 * inverse + square * polynomial(square, tables.PSI_FAR[bits]))
    return select(is_far, far, near)


def psi(bits: int, x: Term) -> Term:
    a = absolute(x)
    result = _digamma(bits, a)
    # psi(-a) = psi(a) + 1 / a + pi / tan(pi a)
    r, _ = _half_turns(a)
    turned = r * pi
    reflected = result + 1.0 / a + pi * circular(turned, 1) / circular(turned, 0)
    reflected = select(r.equals(0.0), NOT_A_NUMBER, reflected)
    result = select(x < 0.0, reflected, result)
    return select(x.equals(0.0), with_sign_of(x.constant(INFINITY), -x), result)


def _scaled_bessel(bits: int, a: Term, near: tables.Table, far: tables.Table) -> tuple[Term, Term]:
    """Return polynomials of a >= 0: that up to 8, and that beyond over the root of a."""
    below = polynomial(at_most(a, 8.0) * 0.25 - 1.0, near[bits])
    return below, polynomial(16.0 / at_least(a, 8.0) - 1.0, far[bits]) / sqrt(a)


def _i0(bits: int, a: Term) -> Term:
    near, far = _scaled_bessel(bits, a, tables.I0_NEAR, tables.I0_FAR)
    return select(a <= 8.0, near, far)


def _i1(bits: int, a: Term) -> Term:
    near, far = _scaled_bessel(bits, a, tables.I1_NEAR, tables.I1_FAR)
    return select(a <= 8.0, a * near, far)


def i0e(bits: int, x: Term) -> Term:
    return _i0(bits, absolute(x))


def i0(bits: int, x: Term) -> Term:
    a = absolute(x)
    return _i0(bits, a) * exp(a)


def i1e(bits: int, x: Term) -> Term:
    result = _i1(bits, absolute(x))
    return select(x < 0.0, -result, result)


def i1(bits: int, x: Term) -> Term:
    a = absolute(x)
    result = _i1(bits, a) * exp(a)
    return select(x < 0.0, -result, result)


UNARY: dict[str, Callable[..., Term]] = {
    f"special_{function.__name__}": _in_float64(function)
    for function in (
        entr, erfc, erfcx, erfinv, gammaln, i0, i0e, i1, i1e, log_ndtr, logit, ndtr, ndtri, psi
    )
}  # fmt: skip
BINARY: dict[str, Callable[..., Term]] = {
    f"special_{function.__name__}": _in_float64(function) for function in (xlog1py, xlogy)
}
