# SPDX-License-Identifier: BSD-3-Clause
"""Distribution functions to 60 digits by mpmath, for the distributions of tj.stats in standard form."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from mpmath import mp, mpf

DIGITS = 60
SHAPES: dict[str, tuple[float, ...]] = {
    "t": (4.5,), "gamma": (2.1,), "invgamma": (2.3,), "beta": (2.2, 1.4), "lognorm": (0.7,), "chi2": (3.5,),
    "chi": (2.5,), "f": (5.5, 7.5), "weibull_min": (1.7,), "pareto": (2.5,), "invgauss": (0.8,), "skewnorm": (1.5,),
    "vonmises": (1.3,), "loguniform": (0.5, 4.0), "truncnorm": (-0.7, 1.6), "poisson": (2.7,), "binom": (7, 0.4),
    "bernoulli": (0.3,), "nbinom": (3.5, 0.4), "geom": (0.35,), "betabinom": (6, 1.5, 2.5),
}  # fmt: skip
Pair = tuple[Any, Any]


def _normal(z: Any) -> Pair:
    return mp.erfc(-z / mp.sqrt(2)) / 2, mp.erfc(z / mp.sqrt(2)) / 2


def _gamma(a: Any, x: Any) -> Pair:
    lower = mp.gammainc(a, 0, x, regularized=True) if x < a + 30 else None
    upper = mp.gammainc(a, x, mp.inf, regularized=True)
    return 1 - upper if lower is None else lower, upper


def _beta(a: Any, b: Any, x: Any, y: Any) -> Pair:
    return _lower_beta(a, b, x, y), _lower_beta(b, a, y, x)


def _lower_beta(a: Any, b: Any, x: Any, y: Any) -> Any:
    if x > 0.9:
        return 1 - _lower_beta(b, a, y, x)
    return x**a * y**b / (a * mp.beta(a, b)) * mp.hyp2f1(a + b, 1, a + 1, x)


def _turned(pair: Pair) -> Pair:
    return pair[1], pair[0]


def _t(z: Any, n: Any) -> Pair:
    outer = _lower_beta(n / 2, mpf(1) / 2, n / (n + z * z), z * z / (n + z * z)) / 2
    return (1 - outer, outer) if z > 0 else (outer, 1 - outer)


def _two_sided(z: Any, outer: Any) -> Pair:
    return (1 - outer, outer) if z > 0 else (outer, 1 - outer)


def _both(lower: Any) -> Pair:
    return lower, 1 - lower


def _gumbel(z: Any) -> Pair:
    power = mp.exp(min(z, 1000))
    return -mp.expm1(-power), mp.exp(-power)


def _invgauss(z: Any, m: Any) -> Pair:
    root = mp.sqrt(z)
    below, above = _normal((z / m - 1) / root)
    mirrored = mp.exp(2 / m) * _normal(-(z / m + 1) / root)[0]
    return below + mirrored, above - mirrored


def _truncnorm(z: Any, a: Any, b: Any) -> Pair:
    low, high, at = (_normal(p)[0] for p in (a, b, z))
    return (at - low) / (high - low), (high - at) / (high - low)


EXACT: dict[str, Callable[..., Pair]] = {
    "norm": _normal,
    "t": _t,
    "gamma": lambda z, a: _gamma(a, z),
    "invgamma": lambda z, a: _turned(_gamma(a, 1 / z)),
    "beta": lambda z, a, b: _beta(a, b, z, 1 - z),
    "expon": lambda z: (-mp.expm1(-z), mp.exp(-z)),
    "uniform": _both,
    "laplace": lambda z: _two_sided(z, mp.exp(-abs(z)) / 2),
    "cauchy": lambda z: (mp.atan2(1, -z) / mp.pi, mp.atan2(1, z) / mp.pi),
    "logistic": lambda z: (1 / (1 + mp.exp(-z)), 1 / (1 + mp.exp(z))),
    "lognorm": lambda z, s: _normal(mp.log(z) / s),
    "chi2": lambda z, n: _gamma(n / 2, z / 2),
    "chi": lambda z, n: _gamma(n / 2, z * z / 2),
    "f": lambda z, m, n: _beta(m / 2, n / 2, m * z / (m * z + n), n / (m * z + n)),
    "weibull_min": lambda z, c: (-mp.expm1(-(z**c)), mp.exp(-(z**c))),
    "pareto": lambda z, b: (-mp.expm1(-b * mp.log(z)), z**-b),
    "halfnorm": lambda z: (mp.erf(z / mp.sqrt(2)), mp.erfc(z / mp.sqrt(2))),
    "halfcauchy": lambda z: (mp.atan(z) * 2 / mp.pi, mp.atan2(1, z) * 2 / mp.pi),
    "rayleigh": lambda z: (-mp.expm1(-z * z / 2), mp.exp(-z * z / 2)),
    "gumbel_r": lambda z: _turned(_gumbel(-z)),
    "gumbel_l": _gumbel,
    "invgauss": _invgauss,
    "loguniform": lambda z, a, b: _both(mp.log(z / a) / mp.log(b / a)),
    "truncnorm": _truncnorm,
    "poisson": lambda k, m: _turned(_gamma(k + 1, m)),
    "binom": lambda k, n, p: _both(mp.mpf(1)) if k >= n else _turned(_beta(k + 1, n - k, p, 1 - p)),
    "bernoulli": lambda k, p: (mpf(1), mpf(0)) if k >= 1 else (1 - p, p),
    "nbinom": lambda k, n, p: _beta(n, k + 1, p, 1 - p),
    "geom": lambda k, p: (1 - (1 - p) ** k, (1 - p) ** k),
}
"""Functions of the variable and the shapes that return the probabilities up to it and above it."""


def _logarithm(part: Any, other: Any) -> Any:
    if part == 0:
        return -mp.inf
    return mp.log1p(-other) if other < 1e-20 else mp.log(part)


@cache
def _both_sides(name: str, x: float, shapes: tuple[float, ...]) -> Pair:
    """Return what all methods of a distribution have in common: its integrals take most of their time."""
    with mp.workdps(DIGITS):
        return EXACT[name](mpf(x), *map(mpf, shapes))


def _exact(name: str, method: str, x: float, shapes: tuple[float, ...]) -> Any:
    below, above = _both_sides(name, x, shapes)
    part, other = (below, above) if method in ("cdf", "logcdf") else (above, below)
    return _logarithm(part, other) if method.startswith("log") else part


def exact(name: str, method: str, x: float, shapes: tuple[float, ...]) -> float:
    """Return cdf, sf, logcdf or logsf of a distribution at a finite place within its support."""
    with mp.workdps(DIGITS):
        return float(_exact(name, method, x, shapes))


@cache
def _beside(name: str, x: float, shapes: tuple[float, ...], wrt: int) -> tuple[Any, Pair, Pair]:
    """Return a step, and both probabilities a step above and below the value of an operand, to 120 digits."""
    with mp.workdps(120):
        given = [mpf(x), *map(mpf, shapes)]
        step = abs(given[wrt]) * mpf(10) ** -25 if given[wrt] else mpf(10) ** -40
        above, below = (
            EXACT[name](*given[:wrt], moved, *given[wrt + 1 :])
            for moved in (given[wrt] + step, given[wrt] - step)
        )
        return step, above, below


def exact_slope(name: str, method: str, x: float, shapes: tuple[float, ...], wrt: int) -> float:
    """Return the derivative of `exact` by the variable (wrt = 0) or by a shape, by differences of 120 digits."""
    with mp.workdps(120):
        step, *values = _beside(name, x, shapes, wrt)
        smaller = int(values[0][0] > values[0][1])
        slope = (values[0][smaller] - values[1][smaller]) / (2 * step)
        place = int(method in ("sf", "logsf"))
        slope = slope if place == smaller else -slope
        return float(slope / values[0][place] if method.startswith("log") else slope)


SIZES = np.array(
    [1e-300, 1e-100, 1e-20, 1e-8, 1e-3, 0.1, 0.5, 0.9, 1.5, 2.5, 5, 10, 24, 50, 200, 1e3, 1e5, 1e9]
)
SHARES = np.array([1e-300, 1e-20, 1e-8, 1e-3, 0.1, 0.5, 0.9, 0.999, 1 - 1e-8, 1 - 2**-52])


def places(low: float, high: float, is_discrete: bool) -> np.ndarray:
    """Return places all over a support, and near its ends."""
    if is_discrete:
        if math.isfinite(high):
            return np.arange(low, high + 1)
        return low + np.array([0.0, 1, 2, 3, 5, 9, 20, 48, 120, 211, 400])
    if math.isfinite(high):
        return low + SHARES * (high - low)
    if math.isfinite(low):
        return low + SIZES
    return np.concatenate([-SIZES[::-1], [0.0], SIZES])
