# SPDX-License-Identifier: BSD-3-Clause
"""Probabilities of binomial and Poisson distributions without cancellation, however large their numbers are.

Logarithms of factorials are large and nearly cancel. Here each is split into Stirling's formula, whose terms are
combined by hand, and a small rest. (C. Loader, Fast and accurate computation of binomial probabilities, 2000.)
"""

import math
from typing import Any

from tracejit.functions import elementwise as e
from tracejit.functions.elementwise import where
from tracejit.functions.special_ufuncs import call

_HALF_LOG_2PI = math.log(2 * math.pi) / 2
_BERNOULLI = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)


def stirling_rest(n: Any) -> Any:
    """Return log(n!) - ((n + 1/2) log n - n + log(2 pi) / 2) for n > 0, by its series (DLMF 5.11.1) from 10 on."""
    is_large = n > 10.0
    inverse = 1.0 / where(is_large, n, 20.0)
    square = inverse * inverse
    series: Any = 0.0
    for factor in reversed(_BERNOULLI):
        series = series * square + factor
    few = where(is_large, 1.0, n)
    near = call("gammaln", (few + 1.0,)) - (few + 0.5) * e.log(few) + few - _HALF_LOG_2PI
    return where(is_large, series * inverse, near)


def deviance(x: Any, m: Any) -> Any:
    """Return x log(x / m) + m - x for positive x and m, which is of second order in x - m."""
    apart, total = x - m, x + m
    is_near = e.abs(apart) < 0.1 * total
    v = where(is_near, apart, 0.0) / where(is_near, total, 1.0)
    square = v * v
    series: Any = 0.0
    for k in range(10, 0, -1):
        series = (series + 1.0 / (2 * k + 1)) * square
    near = where(is_near, apart, 0.0) * v + 2.0 * where(is_near, x, 0.0) * v * series
    far_x, far_m = where(is_near, 1.0, x), where(is_near, 2.0, m)
    return where(is_near, near, far_x * (e.log(far_x) - e.log(far_m)) + far_m - far_x)


def log_poisson(k: Any, m: Any) -> Any:
    """Return the logarithm of m^k exp(-m) / gamma(k + 1), for k >= 0 and m >= 0."""
    plain = (k <= 0) | (m <= 0)
    count, mean = where(plain, 1.0, k), where(plain, 1.0, m)
    found = -stirling_rest(count) - deviance(count, mean) - _HALF_LOG_2PI - 0.5 * e.log(count)
    return where(plain, call("xlogy", (k, where(plain, m, 1.0))) - m, found)


def log_binomial(k: Any, n: Any, p: Any, q: Any) -> Any:
    """Return the logarithm of the probability of k successes of n, numbers that need not be whole, with 0 <= k <= n.

    Args:
        k: successes.
        n: trials.
        p: the probability of one.
        q: 1 - p.
    """
    rest = n - k
    ends = (k <= 0) | (rest <= 0) | (p <= 0) | (q <= 0)
    x, y = where(ends, 1.0, k), where(ends, 1.0, rest)
    share, other = where(ends, 0.5, p), where(ends, 0.5, q)
    whole = x + y
    small = stirling_rest(whole) - stirling_rest(x) - stirling_rest(y)
    found = (
        small
        - deviance(x, whole * share)
        - deviance(y, whole * other)
        + 0.5 * (e.log(whole) - e.log(x) - e.log(y))
        - _HALF_LOG_2PI
    )
    at_end = call("xlogy", (where(ends, k, 0.0), where(ends, p, 0.5))) + call(
        "xlog1py", (where(ends, rest, 0.0), -where(ends, p, 0.5))
    )
    return where(ends, at_end, found)
