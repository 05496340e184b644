# SPDX-License-Identifier: BSD-3-Clause
"""Distributions with elementary functions, and those derived from others: formulas of their standard forms."""

import math
from typing import Any

from tracejit.functions import elementwise as e
from tracejit.functions.elementwise import where
from tracejit.stats.continuous import beta, gamma, norm, s, weibull_min
from tracejit.stats.distribution import Distribution
from tracejit.stats.integrals import circle_mass
from tracejit.stats.tails import left_side, log1mexp, log_betainc, log_gammainc, log_gammaincc, log_of

_LOG_2 = math.log(2.0)

erlang = Distribution(name="erlang", shapes=("a",), low=0.0, formulas=gamma.formulas)
_WEIBULL = weibull_min.formulas
weibull_max = Distribution(name="weibull_max", shapes=("c",), high=0.0, inner=-0.5, formulas={
    "logpdf": lambda z, c: _WEIBULL["logpdf"](-z, c),
    "cdf": lambda z, c: _WEIBULL["sf"](-z, c), "sf": lambda z, c: _WEIBULL["cdf"](-z, c),
    "logcdf": lambda z, c: _WEIBULL["logsf"](-z, c), "logsf": lambda z, c: _WEIBULL["logcdf"](-z, c),
    "ppf": lambda q, c: -_WEIBULL["isf"](q, c), "isf": lambda q, c: -_WEIBULL["ppf"](q, c),
})  # fmt: skip
lomax = Distribution(name="lomax", shapes=("c",), low=0.0, formulas={
    "logpdf": lambda z, c: e.log(c) - (c + 1.0) * e.log1p(z),
    "cdf": lambda z, c: -e.expm1(-c * e.log1p(z)), "sf": lambda z, c: e.exp(-c * e.log1p(z)),
    "logsf": lambda z, c: -c * e.log1p(z), "logcdf": lambda z, c: log1mexp(c * e.log1p(z), e.log(c * e.log1p(z))),
    "ppf": lambda q, c: e.expm1(-e.log1p(-q) / c), "isf": lambda q, c: e.expm1(-e.log(q) / c),
})  # fmt: skip
maxwell = Distribution(name="maxwell", low=0.0, formulas={
    "logpdf": lambda z: 0.5 * math.log(2 / math.pi) + 2.0 * e.log(z) - z * z * 0.5,
    "cdf": lambda z: s.gammainc(z * 0.0 + 1.5, z * z * 0.5), "sf": lambda z: s.gammaincc(z * 0.0 + 1.5, z * z * 0.5),
    "logcdf": lambda z: log_gammainc(z * 0.0 + 1.5, z * z * 0.5, 2.0 * e.log(z) - _LOG_2),
    "logsf": lambda z: log_gammaincc(z * 0.0 + 1.5, z * z * 0.5),
    "ppf": lambda q: e.sqrt(2.0 * s.gammaincinv(q * 0.0 + 1.5, q)),
    "isf": lambda q: e.sqrt(2.0 * s.gammainccinv(q * 0.0 + 1.5, q)),
})  # fmt: skip
levy = Distribution(name="levy", low=0.0, is_open=True, formulas={
    "logpdf": lambda z: -0.5 * math.log(2 * math.pi) - 1.5 * e.log(z) - 0.5 / z,
    "cdf": lambda z: s.erfc(e.sqrt(0.5 / z)), "sf": lambda z: s.erf(e.sqrt(0.5 / z)),
    "ppf": lambda q: 1.0 / e.square(s.ndtri(q * 0.5)), "isf": lambda q: 0.5 / e.square(s.erfinv(q)),
})  # fmt: skip
arcsine = Distribution(name="arcsine", low=0.0, high=1.0, formulas={
    "logpdf": lambda z: -math.log(math.pi) - 0.5 * (e.log(z) + e.log1p(-z)),
    "cdf": lambda z: (2 / math.pi) * e.arcsin(e.sqrt(z)), "sf": lambda z: (2 / math.pi) * e.arcsin(e.sqrt(1.0 - z)),
    "ppf": lambda q: e.square(e.sin(q * (math.pi / 2))), "isf": lambda q: e.square(e.cos(q * (math.pi / 2))),
})  # fmt: skip
hypsecant = Distribution(name="hypsecant", formulas={
    "logpdf": lambda z: left_side(z) - e.log1p(e.exp(2.0 * left_side(z))) + math.log(2 / math.pi),
    "cdf": lambda z: (2 / math.pi) * e.arctan(e.exp(z)), "sf": lambda z: (2 / math.pi) * e.arctan(e.exp(-z)),
    "ppf": lambda q: e.log(e.tan(q * (math.pi / 2))), "isf": lambda q: -e.log(e.tan(q * (math.pi / 2))),
})  # fmt: skip
powerlaw = Distribution(name="powerlaw", shapes=("a",), low=0.0, high=1.0, formulas={
    "logpdf": lambda z, a: e.log(a) + s.xlogy(a - 1.0, z),
    "cdf": lambda z, a: z**a, "sf": lambda z, a: -e.expm1(a * e.log(z)), "logcdf": lambda z, a: a * e.log(z),
    "ppf": lambda q, a: q ** (1.0 / a), "isf": lambda q, a: e.exp(e.log1p(-q) / a),
})  # fmt: skip


def _triang_logpdf(z: Any, c: Any) -> Any:
    # At c = 0 there is one side only, and at c = 1 the other one.
    left = (z < c) | ((z == c) & (c > 0.0))
    up = where(left, z, 1.0) / where(left, c, 1.0)
    down = where(left, 1.0, 1.0 - z) / where(left, 1.0, 1.0 - c)
    return _LOG_2 + e.log(where(left, up, down))


def _triang_cdf(z: Any, c: Any) -> Any:
    left = (z < c) | ((z == c) & (c > 0.0))
    up = e.square(where(left, z, 0.0)) / where(left, c, 1.0)
    down = ((z - c) + z * (1.0 - z)) / where(left, 1.0, 1.0 - c)  # 1 - (1 - z)^2 / (1 - c)
    return where(left, up, down)


def _triang_logcdf(z: Any, c: Any) -> Any:
    left = (z < c) | ((z == c) & (c > 0.0))
    near = 2.0 * e.log(where(left, z, 1.0)) - e.log(where(left, c, 1.0))
    return where(left, near, log_of(where(left, 0.5, _triang_cdf(z, c)), _triang_cdf(1.0 - z, 1.0 - c)))


def _triang_quantile(near: Any, far: Any, c: Any) -> Any:
    """Return the quantile of the probability `near`, where near + far = 1."""
    left = near < c
    up = e.sqrt(where(left, c, 1.0)) * e.sqrt(where(left, near, 1.0))
    root = e.sqrt(where(left, 1.0, (1.0 - c) * far))
    return where(left, up, (c + near * (1.0 - c)) / (1.0 + root))  # 1 - root


triang = Distribution(
    name="triang", shapes=("c",), low=0.0, high=1.0, valid=lambda c: (c >= 0, c <= 1), formulas={
    "logpdf": _triang_logpdf, "cdf": _triang_cdf, "sf": lambda z, c: _triang_cdf(1.0 - z, 1.0 - c),
    "logcdf": _triang_logcdf,
    "ppf": lambda q, c: _triang_quantile(q, 1.0 - q, c), "isf": lambda q, c: _triang_quantile(1.0 - q, q, c),
})  # fmt: skip


def _gennorm_cdf(z: Any, b: Any) -> Any:
    side = left_side(z)
    power = (-where(z == 0, -1.0, side)) ** b
    # Near the centre by the integral of the density's first terms: 1 - |t|^b.
    is_near = (power < 1e-9) | (z == 0)
    small = where(is_near & (z != 0), power, 0.0)
    peak = 0.5 * b * e.exp(-s.gammaln(1.0 / b))
    near = 0.5 + where(is_near, side, 0.0) * peak * (1.0 - small / (b + 1.0))
    tail = where(is_near, near, 0.5 * s.gammaincc(1.0 / b, where(is_near, 1.0, power)))
    return where(z > 0, 1.0 - tail, tail)


def _gennorm_ppf(q: Any, b: Any) -> Any:
    upper = q > 0.5
    side = s.gammainccinv(1.0 / b, 2.0 * where(upper, 1.0 - q, q)) ** (1.0 / b)
    return where(upper, side, -side)


gennorm = Distribution(name="gennorm", shapes=("beta",), formulas={
    "logpdf": lambda z, b: e.log(0.5 * b) - s.gammaln(1.0 / b) - e.abs(z) ** b,
    "cdf": _gennorm_cdf, "sf": lambda z, b: _gennorm_cdf(-z, b),
    "ppf": _gennorm_ppf, "isf": lambda q, b: -_gennorm_ppf(q, b),
})  # fmt: skip
nakagami = Distribution(name="nakagami", shapes=("nu",), low=0.0, formulas={
    "logpdf": lambda z, n: _LOG_2 + s.xlogy(n, n) - s.gammaln(n) + s.xlogy(2.0 * n - 1.0, z) - n * z * z,
    "cdf": lambda z, n: s.gammainc(n, n * z * z), "sf": lambda z, n: s.gammaincc(n, n * z * z),
    "ppf": lambda q, n: e.sqrt(s.gammaincinv(n, q) / n), "isf": lambda q, n: e.sqrt(s.gammainccinv(n, q) / n),
})  # fmt: skip
fisk = Distribution(name="fisk", shapes=("c",), low=0.0, formulas={
    "logpdf": lambda z, c: e.log(c) + s.xlogy(c - 1.0, z) - 2.0 * e.log1p(z**c),
    "cdf": lambda z, c: 1.0 / (1.0 + z ** (-c)), "sf": lambda z, c: 1.0 / (1.0 + z**c),
    "logsf": lambda z, c: -e.log1p(z**c), "logcdf": lambda z, c: -e.log1p(z ** (-c)),
    "ppf": lambda q, c: (1.0 / q - 1.0) ** (-1.0 / c), "isf": lambda q, c: (1.0 / q - 1.0) ** (1.0 / c),
})  # fmt: skip
gompertz = Distribution(name="gompertz", shapes=("c",), low=0.0, formulas={
    "logpdf": lambda z, c: e.log(c) + z - c * e.expm1(z),
    "cdf": lambda z, c: -e.expm1(-c * e.expm1(z)), "sf": lambda z, c: e.exp(-c * e.expm1(z)),
    "logsf": lambda z, c: -c * e.expm1(z), "logcdf": lambda z, c: log1mexp(c * e.expm1(z), e.log(c * e.expm1(z))),
    "ppf": lambda q, c: e.log1p(-e.log1p(-q) / c), "isf": lambda q, c: e.log1p(-e.log(q) / c),
})  # fmt: skip


def _power_log(z: Any, c: Any) -> Any:
    """Return log(1 + c z) / c, z at c = 0, with derivatives of any order there."""
    x = c * where((c == 0) & e.isinf(z), 0.0, z)
    is_near = e.abs(x) < 0.25
    # log(1 + x) is 2 artanh(x / (2 + x)): near 0 by its series (DLMF 4.38.3, 4.6.4).
    near = where(is_near, x, 0.0)
    share = near / (2.0 + near)
    square = e.square(share)
    series: Any = 0.0
    for k in range(11, -1, -1):
        series = series * square + 1.0 / (2 * k + 1)
    series = 2.0 * where(is_near, z, 0.0) / (2.0 + near) * series
    far, rate = where(is_near, 1.0, x), where(is_near, 1.0, c)
    return where(is_near, series, e.log1p(far) / rate)


def _power_exp(y: Any, c: Any) -> Any:
    """Return (exp(c y) - 1) / c, y at c = 0, with derivatives of any order there."""
    return y * s.exprel(c * y)


def _pareto_end(c: Any) -> Any:
    return where(c < 0, -1.0 / where(c < 0, c, -1.0), math.inf)


def _genpareto_logpdf(z: Any, c: Any) -> Any:
    is_even = (c == -1) & (
        z == 1
    )  # at the end of the uniform distribution the logarithm is infinite, times 0
    return (c + 1.0) * -_power_log(where(is_even, 0.0, z), c)


genpareto = Distribution(
    name="genpareto", shapes=("c",), low=0.0, high=_pareto_end, valid=lambda c: (), inner=0.0, formulas={
    "logpdf": _genpareto_logpdf,
    "cdf": lambda z, c: -e.expm1(-_power_log(z, c)), "sf": lambda z, c: e.exp(-_power_log(z, c)),
    "logsf": lambda z, c: -_power_log(z, c), "logcdf": lambda z, c: log1mexp(_power_log(z, c), e.log(_power_log(z, c))),
    "ppf": lambda q, c: _power_exp(-e.log1p(-q), c), "isf": lambda q, c: _power_exp(-e.log(q), c),
})  # fmt: skip


def _genextreme_logpdf(z: Any, c: Any) -> Any:
    is_even = (c == 1) & (z == 1)  # the end of an exponential distribution
    found = _power_log(where(is_even, 0.0, -z), c)
    # Where exp is infinite, so is the other term, or it is of no weight.
    logarithm = -e.exp(found) + (1.0 - c) * where(found < 800.0, found, 0.0)
    return where(is_even, 0.0, logarithm)


genextreme = Distribution(
    name="genextreme", shapes=("c",), valid=lambda c: (), inner=0.0,
    low=lambda c: where(c < 0, 1.0 / where(c < 0, c, -1.0), -math.inf),
    high=lambda c: where(c > 0, 1.0 / where(c > 0, c, 1.0), math.inf), formulas={
    "logpdf": _genextreme_logpdf,
    "cdf": lambda z, c: e.exp(-e.exp(_power_log(-z, c))), "sf": lambda z, c: -e.expm1(-e.exp(_power_log(-z, c))),
    "logcdf": lambda z, c: -e.exp(_power_log(-z, c)),
    "logsf": lambda z, c: log1mexp(e.exp(_power_log(-z, c)), _power_log(-z, c)),
    "ppf": lambda q, c: -_power_exp(e.log(-e.log(q)), c), "isf": lambda q, c: -_power_exp(e.log(-e.log1p(-q)), c),
})  # fmt: skip
johnsonsu = Distribution(name="johnsonsu", shapes=("a", "b"), valid=lambda a, b: (b > 0,), formulas={
    "logpdf": lambda z, a, b: (
        norm.formulas["logpdf"](a + b * e.arcsinh(z)) + e.log(b) - 0.5 * e.log1p(z * z)),
    "cdf": lambda z, a, b: s.ndtr(a + b * e.arcsinh(z)), "sf": lambda z, a, b: s.ndtr(-a - b * e.arcsinh(z)),
    "logcdf": lambda z, a, b: s.log_ndtr(a + b * e.arcsinh(z)),
    "logsf": lambda z, a, b: s.log_ndtr(-a - b * e.arcsinh(z)),
    "ppf": lambda q, a, b: e.sinh((s.ndtri(q) - a) / b), "isf": lambda q, a, b: e.sinh((-s.ndtri(q) - a) / b),
})  # fmt: skip


def _exponnorm_log_part(z: Any, k: Any) -> Any:
    """Return the logarithm of exp(1 / (2 k^2) - z / k) ndtr(z - 1 / k), by erfcx where factors cancel."""
    rate = 1.0 / k
    is_left = z < rate
    left, right = where(is_left, z, 0.0), where(is_left, rate, z)
    near = e.log(0.5 * s.erfcx((rate - left) * math.sqrt(0.5))) - left * left * 0.5
    return where(is_left, near, rate * (0.5 * rate - right) + s.log_ndtr(right - rate))


def _exponnorm_cdf(z: Any, k: Any) -> Any:
    return s.ndtr(z) - e.exp(_exponnorm_log_part(z, k))


def _exponnorm_sf(z: Any, k: Any) -> Any:
    return s.ndtr(-z) + e.exp(_exponnorm_log_part(z, k))


def _exponnorm_start(q: Any, k: Any) -> tuple[Any, Any]:
    """Return the place with the probability q above it, by the exponential tail, or by the normal one before that."""
    rate = 1.0 / k
    far = rate * 0.5 - k * e.log(q)
    return q < 1e-12, where(far > rate, far, -s.ndtri(q))


exponnorm = Distribution(name="exponnorm", shapes=("K",), starts={"isf": _exponnorm_start}, formulas={
    "logpdf": lambda z, k: _exponnorm_log_part(z, k) - e.log(k), "cdf": _exponnorm_cdf, "sf": _exponnorm_sf,
})  # fmt: skip


def _gengamma_logpdf(z: Any, a: Any, c: Any) -> Any:
    none = (z == 0) & (c < 0)
    x = where(none, 1.0, z)
    return where(none, -math.inf, e.log(e.abs(c)) + s.xlogy(c * a - 1.0, x) - x**c - s.gammaln(a))


gengamma = Distribution(
    name="gengamma", shapes=("a", "c"), low=0.0, valid=lambda a, c: (a > 0, c != 0), formulas={
    "logpdf": _gengamma_logpdf,
    "cdf": lambda z, a, c: where(c > 0, s.gammainc(a, z**c), s.gammaincc(a, z**c)),
    "sf": lambda z, a, c: where(c > 0, s.gammaincc(a, z**c), s.gammainc(a, z**c)),
    "ppf": lambda q, a, c: where(c > 0, s.gammaincinv(a, q), s.gammainccinv(a, q)) ** (1.0 / c),
    "isf": lambda q, a, c: where(c > 0, s.gammainccinv(a, q), s.gammaincinv(a, q)) ** (1.0 / c),
})  # fmt: skip


def _odds(share: Any, rest: Any) -> Any:
    return share / rest


def _betaprime_shares(z: Any) -> tuple[Any, Any]:
    """Return z / (1 + z), the variable of a beta distribution, and 1 minus that."""
    return z / (1.0 + z), 1.0 / (1.0 + z)


def _betaprime_cdf(z: Any, a: Any, b: Any) -> Any:
    share, rest = _betaprime_shares(z)
    low = z < 1.0  # by the smaller one, which has more digits
    below = s.betainc(a, b, where(low, share, 0.5))
    return where(low, below, s.betaincc(b, a, where(low, 0.5, rest)))


def _betaprime_sf(z: Any, a: Any, b: Any) -> Any:
    share, rest = _betaprime_shares(z)
    low = z < 1.0
    above = s.betainc(b, a, where(low, 0.5, rest))
    return where(low, s.betaincc(a, b, where(low, share, 0.5)), above)


def _betaprime_logcdf(z: Any, a: Any, b: Any) -> Any:
    return log_betainc(a, b, *_betaprime_shares(z))


def _betaprime_logsf(z: Any, a: Any, b: Any) -> Any:
    return log_betainc(b, a, *reversed(_betaprime_shares(z)))


betaprime = Distribution(name="betaprime", shapes=("a", "b"), low=0.0, formulas={
    "logpdf": lambda z, a, b: s.xlogy(a - 1.0, z) - s.xlog1py(a + b, z) - s.betaln(a, b),
    "cdf": _betaprime_cdf, "sf": _betaprime_sf, "logcdf": _betaprime_logcdf, "logsf": _betaprime_logsf,
    "ppf": lambda q, a, b: _odds(beta.formulas["ppf"](q, a, b), beta.formulas["isf"](q, b, a)),
    "isf": lambda q, a, b: _odds(beta.formulas["isf"](q, a, b), beta.formulas["ppf"](q, b, a)),
})  # fmt: skip


wrapcauchy = Distribution(
    name="wrapcauchy", shapes=("c",), low=0.0, high=2 * math.pi, valid=lambda c: (c > 0, c < 1), formulas={
    "logpdf": lambda z, c: e.log1p(-c * c) - e.log(2 * math.pi * (1.0 + c * c - 2.0 * c * e.cos(z))),
    "cdf": lambda z, c: circle_mass(z, (1.0 + c) / (1.0 - c)),
    "sf": lambda z, c: circle_mass(2 * math.pi - z, (1.0 + c) / (1.0 - c)),
})  # fmt: skip
