# SPDX-License-Identifier: BSD-3-Clause
"""Continuous distributions: formulas of their standard forms."""

import math
from typing import Any

from tracejit.functions import elementwise as e
from tracejit.functions.elementwise import where
from tracejit.functions.numpy_api.ufuncs import logaddexp
from tracejit.functions.special_ufuncs import call
from tracejit.stats.distribution import Distribution, Formula
from tracejit.stats.integrals import scaled_i0, skewnorm_cdf, vonmises_cdf, vonmises_sf
from tracejit.stats.saddle import log_binomial, log_poisson
from tracejit.stats.tails import (
    is_lost,
    left_side,
    log1mexp,
    log1p_square,
    log_betainc,
    log_gammainc,
    log_gammaincc,
    log_of,
    log_t_tail,
)

_LOG_ROOT_2PI = math.log(2 * math.pi) / 2
_LOG_2 = math.log(2.0)
_ROOT_HALF = math.sqrt(0.5)


class _Special:
    """SciPy's special functions as attributes."""

    def __getattr__(self, name: str) -> Formula:
        return lambda *operands: call(name, operands)


s: Any = _Special()


def _log(x: Any) -> Any:
    return math.log(x) if isinstance(x, (int, float)) and x > 0 else e.log(x)


def _normal(z: Any) -> Any:
    return z * z * -0.5 - _LOG_ROOT_2PI


norm = Distribution(name="norm", formulas={
    "logpdf": _normal,
    "cdf": s.ndtr, "sf": lambda z: s.ndtr(-z),
    "logcdf": s.log_ndtr, "logsf": lambda z: s.log_ndtr(-z),
    "ppf": s.ndtri, "isf": lambda q: -s.ndtri(q),
})  # fmt: skip


def _finite_df(n: Any) -> tuple[Any, Any]:
    """Return where the degrees of freedom are infinite, and a finite number of them."""
    is_normal = n == math.inf
    return is_normal, where(is_normal, 1.0, n)


def _t_logpdf(z: Any, n: Any) -> Any:
    is_normal, n = _finite_df(n)
    found = log1p_square(z / e.sqrt(n)) * ((n + 1) * -0.5) - s.betaln(n * 0.5, n * 0.0 + 0.5) - _log(n) * 0.5
    return where(is_normal, _normal(z), found)


def _t_logcdf(z: Any, n: Any) -> Any:
    below, above = s.stdtr(n, z), s.stdtr(n, -z)
    lost = is_lost(below) & (z > -math.inf)
    is_normal, n = _finite_df(n)
    found = log_t_tail(where(lost, -z, 50.0) / e.sqrt(n), n)
    tail = where(is_normal, s.log_ndtr(z), found)
    return where(lost, tail, log_of(where(lost, 0.25, below), where(lost, 0.75, above)))


t = Distribution(name="t", shapes=("df",), formulas={
    "logpdf": _t_logpdf,
    "cdf": lambda z, n: s.stdtr(n, z), "sf": lambda z, n: s.stdtr(n, -z),
    "logcdf": _t_logcdf, "logsf": lambda z, n: _t_logcdf(-z, n),
    "ppf": lambda q, n: s.stdtrit(n, q), "isf": lambda q, n: -s.stdtrit(n, q),
})  # fmt: skip


def _gamma_logpdf(z: Any, a: Any) -> Any:
    large = (a > 20.0) & (z > 0.0)
    far = log_poisson(where(large, a, 30.0) - 1.0, where(large, z, 30.0))
    a, z = where(large, 1.0, a), where(large, 1.0, z)
    return where(large, far, s.xlogy(a - 1.0, z) - z - s.gammaln(a))


gamma = Distribution(name="gamma", shapes=("a",), low=0.0, formulas={
    "logpdf": _gamma_logpdf,
    "cdf": lambda z, a: s.gammainc(a, z), "sf": lambda z, a: s.gammaincc(a, z),
    "logcdf": lambda z, a: log_gammainc(a, z), "logsf": lambda z, a: log_gammaincc(a, z),
    "ppf": lambda q, a: s.gammaincinv(a, q), "isf": lambda q, a: s.gammainccinv(a, q),
})  # fmt: skip
invgamma = Distribution(name="invgamma", shapes=("a",), low=0.0, is_open=True, formulas={
    "logpdf": lambda z, a: -(a + 1) * e.log(z) - s.gammaln(a) - 1.0 / z,
    "cdf": lambda z, a: s.gammaincc(a, 1.0 / z), "sf": lambda z, a: s.gammainc(a, 1.0 / z),
    "logcdf": lambda z, a: log_gammaincc(a, 1.0 / z), "logsf": lambda z, a: log_gammainc(a, 1.0 / z),
    "ppf": lambda q, a: 1.0 / s.gammainccinv(a, q), "isf": lambda q, a: 1.0 / s.gammaincinv(a, q),
})  # fmt: skip


def _beta_logpdf(z: Any, a: Any, b: Any) -> Any:
    # With two large parameters by a binomial probability: x^(a-1) (1-x)^(b-1) / B(a, b).
    large = (a > 20.0) & (b > 20.0) & (z > 0.0) & (z < 1.0)
    p, q, x = where(large, a, 30.0), where(large, b, 30.0), where(large, z, 0.5)
    far = log_binomial(p - 1.0, p + q - 2.0, x, 1.0 - x) + e.log(p + q - 1.0)
    a, b, z = where(large, 1.0, a), where(large, 1.0, b), where(large, 0.5, z)
    return where(large, far, s.xlog1py(b - 1.0, -z) + s.xlogy(a - 1.0, z) - s.betaln(a, b))


beta = Distribution(name="beta", shapes=("a", "b"), low=0.0, high=1.0, formulas={
    "logpdf": _beta_logpdf,
    "cdf": lambda z, a, b: s.betainc(a, b, z), "sf": lambda z, a, b: s.betaincc(a, b, z),
    "logcdf": lambda z, a, b: log_betainc(a, b, z, 1.0 - z), "logsf": lambda z, a, b: log_betainc(b, a, 1.0 - z, z),
    "ppf": lambda q, a, b: s.betaincinv(a, b, q), "isf": lambda q, a, b: s.betainccinv(a, b, q),
})  # fmt: skip
expon = Distribution(name="expon", low=0.0, formulas={
    "logpdf": lambda z: -z, "cdf": lambda z: -e.expm1(-z), "sf": lambda z: e.exp(-z), "logsf": lambda z: -z,
    "logcdf": lambda z: log1mexp(z, e.log(z)),
    "ppf": lambda q: -e.log1p(-q), "isf": lambda q: -e.log(q),
})  # fmt: skip
uniform = Distribution(name="uniform", low=0.0, high=1.0, formulas={
    "logpdf": lambda z: z * 0.0, "cdf": lambda z: z, "sf": lambda z: 1.0 - z,
    "ppf": lambda q: q, "isf": lambda q: 1.0 - q,
})  # fmt: skip


def _laplace(z: Any) -> Any:
    near = e.exp(left_side(z)) * 0.5
    return where(z > 0, 1.0 - near, near)


def _laplace_logcdf(z: Any) -> Any:
    side = left_side(z)
    return where(z > 0, e.log1p(e.exp(side) * -0.5), side - _LOG_2)


def _laplace_ppf(q: Any) -> Any:
    upper = q > 0.5
    side = e.log(2.0 * where(upper, 1.0 - q, q))
    return where(upper, -side, side)


laplace = Distribution(name="laplace", formulas={
    "logpdf": lambda z: -e.abs(z) - _LOG_2, "cdf": _laplace, "sf": lambda z: _laplace(-z),
    "logcdf": _laplace_logcdf, "logsf": lambda z: _laplace_logcdf(-z),
    "ppf": _laplace_ppf, "isf": lambda q: -_laplace_ppf(q),
})  # fmt: skip


def _half_cauchy_quantile(near: Any, far: Any) -> Any:
    """Return tan(pi near / 2), where near + far = 1, exact for both small and large results."""
    is_near = near < 0.5
    small, large = where(is_near, near, 0.5), where(is_near, 0.5, far)
    return where(is_near, e.tan(small * (math.pi / 2)), 1.0 / e.tan(large * (math.pi / 2)))


def _cauchy_ppf(q: Any) -> Any:
    upper = q > 0.5
    side = where(upper, 1.0 - q, q) * 2.0
    found = _half_cauchy_quantile(1.0 - side, side)
    return where(upper, found, -found)


cauchy = Distribution(name="cauchy", formulas={
    "logpdf": lambda z: -log1p_square(z) - math.log(math.pi),
    "cdf": lambda z: e.arctan2(1.0, -z) / math.pi, "sf": lambda z: e.arctan2(1.0, z) / math.pi,
    "ppf": _cauchy_ppf, "isf": lambda q: -_cauchy_ppf(q),
})  # fmt: skip
logistic = Distribution(name="logistic", formulas={
    "logpdf": lambda z: left_side(z) - 2.0 * e.log1p(e.exp(left_side(z))),
    "cdf": s.expit, "sf": lambda z: s.expit(-z),
    "logcdf": s.log_expit, "logsf": lambda z: s.log_expit(-z),
    "ppf": s.logit, "isf": lambda q: -s.logit(q),
})  # fmt: skip
lognorm = Distribution(name="lognorm", shapes=("s",), low=0.0, is_open=True, formulas={
    "logpdf": lambda z, w: e.square(e.log(z) / w) * -0.5 - e.log(z) - _log(w) - _LOG_ROOT_2PI,
    "cdf": lambda z, w: s.ndtr(e.log(z) / w), "sf": lambda z, w: s.ndtr(-e.log(z) / w),
    "logcdf": lambda z, w: s.log_ndtr(e.log(z) / w), "logsf": lambda z, w: s.log_ndtr(-e.log(z) / w),
    "ppf": lambda q, w: e.exp(w * s.ndtri(q)), "isf": lambda q, w: e.exp(-w * s.ndtri(q)),
})  # fmt: skip
chi2 = Distribution(name="chi2", shapes=("df",), low=0.0, formulas={
    "logpdf": lambda z, n: _gamma_logpdf(z * 0.5, n * 0.5) - _LOG_2,
    "cdf": lambda z, n: s.chdtr(n, z), "sf": lambda z, n: s.chdtrc(n, z),
    "logcdf": lambda z, n: log_gammainc(n * 0.5, z * 0.5), "logsf": lambda z, n: log_gammaincc(n * 0.5, z * 0.5),
    "ppf": lambda q, n: 2.0 * s.gammaincinv(n * 0.5, q), "isf": lambda q, n: s.chdtri(n, q),
})  # fmt: skip
chi = Distribution(name="chi", shapes=("df",), low=0.0, formulas={
    "logpdf": lambda z, n: s.xlogy(n - 1.0, z) - z * z * 0.5 - s.gammaln(n * 0.5) - (n * 0.5 - 1.0) * _LOG_2,
    "cdf": lambda z, n: s.gammainc(n * 0.5, z * z * 0.5), "sf": lambda z, n: s.gammaincc(n * 0.5, z * z * 0.5),
    "logcdf": lambda z, n: log_gammainc(n * 0.5, z * z * 0.5, 2.0 * e.log(z) - _LOG_2),
    "logsf": lambda z, n: log_gammaincc(n * 0.5, z * z * 0.5),
    "ppf": lambda q, n: e.sqrt(2.0 * s.gammaincinv(n * 0.5, q)),
    "isf": lambda q, n: e.sqrt(2.0 * s.gammainccinv(n * 0.5, q)),
})  # fmt: skip


def _f_logpdf(z: Any, m: Any, n: Any) -> Any:
    sizes = _log(m) * (m * 0.5) + _log(n) * (n * 0.5)
    return s.xlogy(m * 0.5 - 1.0, z) - (m + n) * 0.5 * e.log(n + m * z) + sizes - s.betaln(m * 0.5, n * 0.5)


def _f_shares(z: Any, m: Any, n: Any) -> tuple[Any, Any]:
    total = m * z + n
    is_infinite = e.isinf(total)
    safe = where(is_infinite, 1.0, total)
    return where(is_infinite, 1.0, m * where(is_infinite, 1.0, z) / safe), where(is_infinite, 0.0, n / safe)


def _f_logcdf(z: Any, m: Any, n: Any) -> Any:
    part, rest = _f_shares(z, m, n)
    return log_betainc(m * 0.5, n * 0.5, part, rest)


def _f_logsf(z: Any, m: Any, n: Any) -> Any:
    part, rest = _f_shares(z, m, n)
    return log_betainc(n * 0.5, m * 0.5, rest, part)


def _f_quantile(q: Any, m: Any, n: Any) -> Any:
    """Return the place with the probability q below it: of seven digits by fdtri of SciPy before 1.17."""
    return n * s.betaincinv(m * 0.5, n * 0.5, q) / (m * s.betainccinv(n * 0.5, m * 0.5, q))


f = Distribution(name="f", shapes=("dfn", "dfd"), low=0.0, formulas={
    "logpdf": _f_logpdf, "logcdf": _f_logcdf, "logsf": _f_logsf,
    "cdf": lambda z, m, n: s.fdtr(m, n, z), "sf": lambda z, m, n: s.fdtrc(m, n, z),
    "ppf": _f_quantile, "isf": lambda q, m, n: 1.0 / _f_quantile(q, n, m),
})  # fmt: skip
weibull_min = Distribution(name="weibull_min", shapes=("c",), low=0.0, formulas={
    "logpdf": lambda z, c: s.xlogy(c - 1.0, z) - z**c + _log(c),
    "cdf": lambda z, c: -e.expm1(-(z**c)), "sf": lambda z, c: e.exp(-(z**c)), "logsf": lambda z, c: -(z**c),
    "logcdf": lambda z, c: log1mexp(z**c, c * e.log(z)),
    "ppf": lambda q, c: (-e.log1p(-q)) ** (1.0 / c), "isf": lambda q, c: (-e.log(q)) ** (1.0 / c),
})  # fmt: skip
pareto = Distribution(name="pareto", shapes=("b",), low=1.0, inner=2.0, formulas={
    "logpdf": lambda z, b: _log(b) - (b + 1.0) * e.log(z),
    "cdf": lambda z, b: -e.expm1(-b * e.log(z)), "sf": lambda z, b: e.exp(-b * e.log(z)),
    "logsf": lambda z, b: -b * e.log(z), "logcdf": lambda z, b: log1mexp(b * e.log(z), e.log(b * e.log(z))),
    "ppf": lambda q, b: e.exp(-e.log1p(-q) / b), "isf": lambda q, b: e.exp(-e.log(q) / b),
})  # fmt: skip


def _halfnorm_logsf(z: Any) -> Any:
    is_near = z < 1.0
    return where(is_near, e.log1p(-s.erf(where(is_near, z, 0.0) * _ROOT_HALF)), s.log_ndtr(-z) + _LOG_2)


def _halfnorm_quantile(near: Any, far: Any) -> Any:
    """Return the quantile of the probability `near`, where near + far = 1."""
    is_near = near < 0.5
    return where(
        is_near, s.erfinv(where(is_near, near, 0.5)) / _ROOT_HALF, -s.ndtri(where(is_near, 0.5, far) * 0.5)
    )


halfnorm = Distribution(name="halfnorm", low=0.0, formulas={
    "logpdf": lambda z: _normal(z) + _LOG_2, "cdf": lambda z: s.erf(z * _ROOT_HALF), "sf": lambda z: 2.0 * s.ndtr(-z),
    "logsf": _halfnorm_logsf,
    "ppf": lambda q: _halfnorm_quantile(q, 1.0 - q), "isf": lambda q: _halfnorm_quantile(1.0 - q, q),
})  # fmt: skip
halfcauchy = Distribution(name="halfcauchy", low=0.0, formulas={
    "logpdf": lambda z: math.log(2 / math.pi) - log1p_square(z), "cdf": lambda z: e.arctan(z) * (2 / math.pi),
    "sf": lambda z: e.arctan2(1.0, z) * (2 / math.pi), "ppf": lambda q: _half_cauchy_quantile(q, 1.0 - q),
    "isf": lambda q: _half_cauchy_quantile(1.0 - q, q),
})  # fmt: skip
rayleigh = Distribution(name="rayleigh", low=0.0, formulas={
    "logpdf": lambda z: e.log(z) - z * z * 0.5, "cdf": lambda z: -e.expm1(z * z * -0.5),
    "sf": lambda z: e.exp(z * z * -0.5), "logsf": lambda z: z * z * -0.5,
    "logcdf": lambda z: log1mexp(z * z * 0.5, 2.0 * e.log(z) - _LOG_2),
    "ppf": lambda q: e.sqrt(-2.0 * e.log1p(-q)), "isf": lambda q: e.sqrt(-2.0 * e.log(q)),
})  # fmt: skip


def _gumbel(z: Any) -> Any:
    return where(z < 800.0, z, 0.0) - e.exp(z)  # exp(800) is infinite


gumbel_r = Distribution(name="gumbel_r", formulas={
    "logpdf": lambda z: _gumbel(-z), "cdf": lambda z: e.exp(-e.exp(-z)), "logcdf": lambda z: -e.exp(-z),
    "sf": lambda z: -e.expm1(-e.exp(-z)), "logsf": lambda z: log1mexp(e.exp(-z), -z),
    "ppf": lambda q: -e.log(-e.log(q)), "isf": lambda q: -e.log(-e.log1p(-q)),
})  # fmt: skip
gumbel_l = Distribution(name="gumbel_l", formulas={
    "logpdf": _gumbel, "cdf": lambda z: -e.expm1(-e.exp(z)), "sf": lambda z: e.exp(-e.exp(z)),
    "logsf": lambda z: -e.exp(z), "logcdf": lambda z: log1mexp(e.exp(z), z),
    "ppf": lambda q: e.log(-e.log1p(-q)), "isf": lambda q: e.log(-e.log(q)),
})  # fmt: skip


def _complement(logarithm: Any, other: Any) -> Any:
    """Return the logarithm of a probability; near 1 it is computed from that of the other one."""
    is_small = logarithm < -_LOG_2
    return where(is_small, logarithm, e.log1p(-e.exp(where(is_small, -1.0, other))))


def _invgauss_terms(z: Any, m: Any, sign: float) -> tuple[Any, Any]:
    """Return the logarithms of two terms: the distribution function is their sum, sf their difference."""
    root = e.sqrt(z)
    return s.log_ndtr((root / m - 1.0 / root) * sign), 2.0 / m + s.log_ndtr(-(root / m + 1.0 / root))


def _invgauss_cdf(z: Any, m: Any) -> Any:
    first, second = _invgauss_terms(z, m, 1.0)
    return e.exp(first) + e.exp(second)


def _far_mills_difference(x: Any, y: Any, apart: Any) -> Any:
    """Return the difference of sf / pdf of the normal distribution at x and y = x + apart, where both exceed 140."""
    p, q = 1.0 / x, 1.0 / y
    squares = p * p + p * q + q * q
    fourth = e.square(p * p) + p * q * (p * p + p * q + q * q) + e.square(q * q)
    return apart * p * q * (1.0 - squares + 3.0 * fourth)


def _invgauss_logsf(z: Any, m: Any) -> Any:
    # Far from the mean both terms are nearly equal: sf / pdf of the normal distribution is 1/x - 1/x^3 + 3/x^5 - ...
    root = e.sqrt(z)
    is_far, is_infinite = root / m - 1.0 / root > 140.0, e.isinf(z)
    safe = where(is_infinite | ~is_far, e.square(m * 150.0 + 1.0), z)
    apart = e.sqrt(safe)
    left = apart / m - 1.0 / apart
    difference = _far_mills_difference(left, apart / m + 1.0 / apart, 2.0 / apart)
    far = left * left * -0.5 - _LOG_ROOT_2PI + e.log(difference)
    first, second = _invgauss_terms(where(is_far, m, z), m, -1.0)
    near = first + e.log1p(-e.exp(second - first))
    return where(is_infinite, -math.inf, where(is_far, far, near))


def _invgauss_logcdf(z: Any, m: Any) -> Any:
    below = logaddexp(*_invgauss_terms(z, m, 1.0))
    return _complement(below, _invgauss_logsf(z, m))


def _invgauss_starts(q: Any, m: Any) -> tuple[Any, Any]:
    """Return the places on both sides where the exponential factor of the density is q."""
    middle = m - m * m * e.log(q)
    larger = middle + e.sqrt(e.square(middle) - m * m)
    return m * m / larger, larger


invgauss = Distribution(name="invgauss", shapes=("mu",), low=0.0, is_open=True, formulas={
    "logpdf": lambda z, m: -_LOG_ROOT_2PI - 1.5 * e.log(z) - e.square(e.sqrt(z) / m - 1.0 / e.sqrt(z)) * 0.5,
    "cdf": _invgauss_cdf, "sf": lambda z, m: e.exp(_invgauss_logsf(z, m)),
    "logcdf": _invgauss_logcdf, "logsf": _invgauss_logsf,
}, starts={
    "ppf": lambda q, m: (q < 1e-16, _invgauss_starts(q, m)[0]),
    "isf": lambda q, m: (q < 1e-16, _invgauss_starts(q, m)[1]),
})  # fmt: skip


def _skewnorm_logpdf(z: Any, a: Any) -> Any:
    # The product of 0 and infinity would be NaN.
    finite = where(e.isinf(z), e.sign(z) * 1e30, z)
    return _normal(z) + _LOG_2 + s.log_ndtr(a * finite)


def _mirrored(start: tuple[Any, Any]) -> tuple[Any, Any]:
    """Return where there is a start for a quantile, and the start on the other side of 0."""
    has_place, place = start
    return has_place, -place


def _skewnorm_start(q: Any, a: Any) -> tuple[Any, Any]:
    """Return a quantile in the tail that the skewness shortens: ndtr(-x) <= exp(-x^2 / 2) / 2 is a bound of it."""
    root = e.sqrt(1.0 + a * a)
    is_short = (a > 0.0) & (q * root < 1e-8)
    return is_short, s.ndtri(where(is_short, q * root, 0.5)) / root


skewnorm = Distribution(name="skewnorm", shapes=("a",), valid=lambda a: (), formulas={
    "logpdf": _skewnorm_logpdf, "cdf": skewnorm_cdf, "sf": lambda z, a: skewnorm_cdf(-z, -a),
}, starts={"ppf": _skewnorm_start, "isf": lambda q, a: _mirrored(_skewnorm_start(q, -a))})  # fmt: skip


def _vonmises_start(q: Any, k: Any) -> tuple[Any, Any]:
    """Return a quantile next to -pi, where the density is nearly constant, by that."""
    apart = q * e.exp(2.0 * k) * scaled_i0(k) * (2.0 * math.pi)
    is_near = apart * e.maximum(k, 1.0) < 1e-3
    return is_near, where(is_near, apart, 0.0) - math.pi


vonmises = Distribution(
    name="vonmises", shapes=("kappa",), valid=lambda k: (k >= 0,),
    starts={"ppf": _vonmises_start, "isf": lambda q, k: _mirrored(_vonmises_start(q, k))}, formulas={
    "logpdf": lambda z, k: k * s.cosm1(z) - math.log(2 * math.pi) - e.log(scaled_i0(k)),
    "cdf": vonmises_cdf, "sf": vonmises_sf,
})  # fmt: skip


def _log_ratio(z: Any, a: Any) -> Any:
    """Return log(z / a), exact where z is close to a."""
    is_near = (z < a * 2.0) & (a < z * 2.0)
    return where(is_near, e.log1p((where(is_near, z, a) - a) / a), _log(z) - _log(a))


loguniform = Distribution(
    name="loguniform", shapes=("a", "b"), low=lambda a, b: a, high=lambda a, b: b, inner=lambda a, b: (a + b) * 0.5,
    valid=lambda a, b: (a > 0, b > a), formulas={
    "logpdf": lambda z, a, b: -e.log(z) - e.log(_log_ratio(b, a)),
    "cdf": lambda z, a, b: _log_ratio(z, a) / _log_ratio(b, a),
    "sf": lambda z, a, b: -_log_ratio(z, b) / _log_ratio(b, a),
    "ppf": lambda q, a, b: e.exp(_log(a) + q * (_log(b) - _log(a))),
    "isf": lambda q, a, b: e.exp(_log(b) - q * (_log(b) - _log(a))),
})  # fmt: skip


def _log_mass(a: Any, b: Any) -> Any:
    """Return the logarithm of the normal probability between a and b, without cancellation far from 0 or nearby."""
    right = a > 0
    above, below = where(right, -a, b), where(right, -b, a)
    width, middle = above - below, (above + below) * 0.5
    is_short = width * e.maximum(e.abs(middle), 1.0) < 0.01
    width, middle = where(is_short, width, 0.005), where(is_short, middle, 0.0)
    # The first terms of the series of the integral over a short interval around its middle.
    h, x = e.square(width), e.square(middle)
    series = e.log1p(h * ((x - 1.0) / 24.0 + h * (x * x - 6.0 * x + 3.0) / 1920.0))
    larger = s.log_ndtr(where(is_short, 1.0, above))
    # Both logarithms may be -inf, whose difference is NaN.
    is_nothing = larger == -math.inf
    share = where(is_nothing, -1.0, s.log_ndtr(where(is_short, 0.0, below)) - where(is_nothing, 0.0, larger))
    plain = larger + e.log(-e.expm1(share))
    return where(is_short, _normal(middle) + e.log(width) + series, plain)


def _truncated_ppf(q: Any, a: Any, b: Any) -> Any:
    mass, left = _log_mass(a, b), a < 0
    from_left = s.ndtri_exp(logaddexp(s.log_ndtr(a), e.log(q) + mass))
    from_right = -s.ndtri_exp(logaddexp(s.log_ndtr(-b), e.log1p(-q) + mass))
    return e.minimum(e.maximum(where(left, from_left, from_right), a), b)


def _inner(a: Any, b: Any) -> Any:
    """Return a place between two bounds, which may be infinite."""
    a, b = (where(e.isinf(x), 0.0, x) + where(e.isinf(x), e.sign(x) * 9.0, 0.0) for x in (a, b))
    return (a + b) * 0.5


def _truncnorm_logcdf(z: Any, a: Any, b: Any) -> Any:
    whole = _log_mass(a, b)
    return _complement(_log_mass(a, z) - whole, _log_mass(z, b) - whole)


def _truncnorm_logsf(z: Any, a: Any, b: Any) -> Any:
    whole = _log_mass(a, b)
    return _complement(_log_mass(z, b) - whole, _log_mass(a, z) - whole)


truncnorm = Distribution(
    name="truncnorm", shapes=("a", "b"), low=lambda a, b: a, high=lambda a, b: b, inner=_inner,
    valid=lambda a, b: (a < b,), formulas={
    "logpdf": lambda z, a, b: _normal(z) - _log_mass(a, b),
    "logcdf": _truncnorm_logcdf, "logsf": _truncnorm_logsf,
    "cdf": lambda z, a, b: e.exp(_log_mass(a, z) - _log_mass(a, b)),
    "sf": lambda z, a, b: e.exp(_log_mass(z, b) - _log_mass(a, b)),
    "ppf": _truncated_ppf, "isf": lambda q, a, b: -_truncated_ppf(q, -b, -a),
})  # fmt: skip
