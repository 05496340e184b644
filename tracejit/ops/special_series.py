# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives of special functions that have to be written as series, everywhere or near a point.

At a point where a quotient is 0 / 0, a different formula is needed for higher derivatives. Arguments are those of the
rules in special_rules.py, which collects these rules too.
"""

from collections.abc import Callable
from math import factorial, log, pi, sqrt
from typing import Any

_ROOT_PI = sqrt(pi)
_TERMS = 12  # of the sum, from where on it is an integral and corrections
_BERNOULLI = (
    1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330,
)  # fmt: skip


def zeta_by_s(f: Any, s: Any, q: Any) -> Any:
    """Return the derivative of Hurwitz' zeta function by s > -2: Euler's and Maclaurin's formula (DLMF 25.11.5)."""
    total = 0.0 * q
    for k in range(_TERMS):
        total = total - f.log(q + k) * f.pow(q + k, -s)
    x = q + _TERMS
    log_x, power = f.log(x), f.pow(x, -s)
    total = total - power * x * (log_x / (s - 1.0) + 1.0 / f.square(s - 1.0)) - 0.5 * log_x * power
    rising, slope, factor = s, 1.0, 0.5  # s (s + 1) ..., its derivative, 1 / (2 j)!
    power = power / x
    for j, number in enumerate(_BERNOULLI, 1):
        total = total + number * factor * power * (slope - rising * log_x)
        for i in (2 * j - 1, 2 * j):
            rising, slope = rising * (s + i), slope * (s + i) + rising
        factor, power = factor / ((2 * j + 1) * (2 * j + 2)), power / (x * x)
    return total


def riemann_zeta_slope(f: Any, s: Any) -> Any:
    """Return the derivative of Riemann's zeta function, left of -2 by its reflection (DLMF 25.4.1)."""
    is_left = f.less_equal(s, -2.0)
    right = f.where(is_left, 1.0 - s, s)
    slope = zeta_by_s(f, right, 1.0 + 0.0 * right)
    t = f.where(is_left, s, -3.0)
    value = f._riemann_zeta(1.0 - t)
    size = f.pow(2.0 * pi, t) / pi * f.gamma(1.0 - t) * value
    turns = log(2.0 * pi) - f.psi(1.0 - t) - f.where(is_left, slope, 0.0) / value
    half = t - 4.0 * f.floor(t * 0.25 + 0.5)  # within a period
    sine, cosine = f.sin(half * (pi / 2.0)), f.cos(half * (pi / 2.0))
    return f.where(is_left, size * (turns * sine + (pi / 2.0) * cosine), slope)


def log_quotient(f: Any, x: Any) -> Any:
    """Return log(x) / (x - 1), near 1 by a function that has all derivatives there (DLMF 15.4.1)."""
    is_near = f.less_equal(f.abs(x - 1.0), 0.1)
    far = f.where(is_near, 2.0, x)
    return f.where(is_near, f.hyp2f1(1.0, 1.0, 2.0, 1.0 - f.where(is_near, x, 1.0)), f.log(far) / (far - 1.0))


def sine_quotient(f: Any, x: Any, sign: float) -> Any:
    """Return sin(x) / x, or of sign 1 sinh(x) / x, likewise (DLMF 10.16.1)."""
    is_near = f.less_equal(f.abs(x), 0.5)
    far = f.where(is_near, 1.0, x)
    plain = (f.sinh(far) if sign > 0 else f.sin(far)) / far
    return f.where(is_near, f.hyp0f1(1.5, f.square(f.where(is_near, x, 0.0)) * (0.25 * sign)), plain)


def noncentral_density(f: Any, x: Any, n: Any, c: Any) -> Any:
    """Return the density of the noncentral chi-squared distribution, near 0 by a function with all derivatives."""
    is_near = f.less_equal(x * c, 1.0)
    u, v = f.where(is_near, 2.0, x), f.where(is_near, 2.0, c)
    far = f.exp(f.square(f.sqrt(u) - f.sqrt(v)) * -0.5) * f.pow(u / v, n * 0.25 - 0.5)
    far = far * f.ive(n * 0.5 - 1.0, f.sqrt(u * v)) * 0.5
    u, v, order = f.where(is_near, x, 1.0), f.where(is_near, c, 1.0), n * 0.5 - 1.0
    none = f.equal(order, 0.0)  # whose power has derivatives at 0
    power = f.where(none, 1.0, f.pow(u * 0.5, f.where(none, 1.0, order)))
    near = f.exp((u + v) * -0.5) * power * f.hyp0f1(n * 0.5, u * v * 0.25) * f.rgamma(n * 0.5) * 0.5
    return f.where(is_near, near, far)


def kelvin(f: Any, x: Any, plain: Callable[..., Any], first: int) -> Any:
    """Return the second derivative of bei (first = 2) or ber (4), near 0 of its series (DLMF 10.65.1)."""
    is_near = f.less_equal(f.abs(x), 1.0)
    square = f.square(f.where(is_near, x, 0.0))
    step, series = -square * square, 0.0 * square
    for degree in range(first + 20, first - 1, -4):
        size = degree * (degree - 1) / (2.0**degree * factorial(degree // 2) ** 2)
        series = series * step + size
    start = series if first == 2 else -square * series
    return f.where(is_near, start, plain(f.where(is_near, 2.0, x)))


def struve(f: Any, v: Any, x: Any) -> Any:
    """Return (x / 2)^v / (sqrt(pi) gamma(v + 3/2)); the derivatives contain half of it (DLMF 11.4)."""
    none = f.equal(v, 0.0)  # whose power has derivatives at 0
    return f.where(none, 1.0, f.pow(x * 0.5, f.where(none, 1.0, v))) * f.rgamma(v + 1.5) / _ROOT_PI


def struve_by_x(f: Any, v: Any, x: Any, y: Any, upper: Any, sign: float) -> Any:
    """Return v H / x + (x / 2)^v / (sqrt(pi) gamma(v + 3/2)) and the next order (DLMF 11.4.29, 11.4.31)."""
    none = f.equal(v, 0.0)
    at_0 = f.equal(x, 0.0)
    whole = f.where(none, 0.0, v * y / f.where(at_0, 1.0, x))
    # At 0 the quotient is that of the first term of the series, (x / 2)^(v + 1) / (gamma(3/2) gamma(v + 3/2)).
    first = v * f.pow(x * 0.5, v) * f.rgamma(v + 1.5) / _ROOT_PI
    return f.where(at_0, f.where(none, 0.0, first), whole) + struve(f, v, x) + sign * upper
