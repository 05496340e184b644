# SPDX-License-Identifier: BSD-3-Clause
"""Continuous distributions: formulas of their standard forms."""

import math
from typing import Any

from tracejit.functions import elementwise as e
from tracejit.functions.elementwise import where
from tracejit.functions.numpy_api.ufuncs import logaddexp
from tracejit.functions.special_ufuncs import call
from tracejit.stats.distribution import Distribution, Formula

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
t = Distribution(name="t", shapes=("df",), formulas={
    "logpdf": lambda z, n: e.log1p(z * z / n) * ((n + 1) * -0.5) - s.betaln(n * 0.5, n * 0.0 + 0.5) - _log(n) * 0.5,
    "cdf": lambda z, n: s.stdtr(n, z), "sf": lambda z, n: s.stdtr(n, -z),
    "ppf": lambda q, n: s.stdtrit(n, q), "isf": lambda q, n: -s.stdtrit(n, q),
})  # fmt: skip
gamma = Distribution(name="gamma", shapes=("a",), low=0.0, formulas={
    "logpdf": lambda z, a: s.xlogy(a - 1.0, z) - z - s.gammaln(a),
    "cdf": lambda z, a: s.gammainc(a, z), "sf": lambda z, a: s.gammaincc(a, z),
    "ppf": lambda q, a: s.gammaincinv(a, q), "isf": lambda q, a: s.gammainccinv(a, q),
})  # fmt: skip
invgamma = Distribution(name="invgamma", shapes=("a",), low=0.0, is_open=True, formulas={
    "logpdf": lambda z, a: -(a + 1) * e.log(z) - s.gammaln(a) - 1.0 / z,
    "cdf": lambda z, a: s.gammaincc(a, 1.0 / z), "sf": lambda z, a: s.gammainc(a, 1.0 / z),
    "ppf": lambda q, a: 1.0 / s.gammainccinv(a, q), "isf": lambda q, a: 1.0 / s.gammaincinv(a, q),
})  # fmt: skip
beta = Distribution(name="beta", shapes=("a", "b"), low=0.0, high=1.0, formulas={
    "logpdf": lambda z, a, b: s.xlog1py(b - 1.0, -z) + s.xlogy(a - 1.0, z) - s.betaln(a, b),
    "cdf": lambda z, a, b: s.betainc(a, b, z), "sf": lambda z, a, b: s.betaincc(a, b, z),
    "ppf": lambda q, a, b: s.betaincinv(a, b, q), "isf": lambda q, a, b: s.betainccinv(a, b, q),
})  # fmt: skip
expon = Distribution(name="expon", low=0.0, formulas={
    "logpdf": lambda z: -z, "cdf": lambda z: -e.expm1(-z), "sf": lambda z: e.exp(-z), "logsf": lambda z: -z,
    "ppf": lambda q: -e.log1p(-q), "isf": lambda q: -e.log(q),
})  # fmt: skip
uniform = Distribution(name="uniform", low=0.0, high=1.0, formulas={
    "logpdf": lambda z: z * 0.0, "cdf": lambda z: z, "sf": lambda z: 1.0 - z,
    "ppf": lambda q: q, "isf": lambda q: 1.0 - q,
})  # fmt: skip


def _laplace(z: Any) -> Any:
    near = e.exp(-e.abs(z)) * 0.5
    return where(z > 0, 1.0 - near, near)


def _laplace_ppf(q: Any) -> Any:
    upper = q > 0.5
    side = e.log(2.0 * where(upper, 1.0 - q, q))
    return where(upper, -side, side)


laplace = Distribution(name="laplace", formulas={
    "logpdf": lambda z: -e.abs(z) - _LOG_2, "cdf": _laplace, "sf": lambda z: _laplace(-z),
    "ppf": _laplace_ppf, "isf": lambda q: -_laplace_ppf(q),
})  # fmt: skip


def _cauchy_ppf(q: Any) -> Any:
    middle = e.abs(q - 0.5) < 0.25
    near = e.tan(math.pi * (where(middle, q, 0.5) - 0.5))
    return where(middle, near, -1.0 / e.tan(math.pi * where(middle, 0.25, q)))


cauchy = Distribution(name="cauchy", formulas={
    "logpdf": lambda z: -e.log1p(z * z) - math.log(math.pi),
    "cdf": lambda z: e.arctan2(1.0, -z) / math.pi, "sf": lambda z: e.arctan2(1.0, z) / math.pi,
    "ppf": _cauchy_ppf, "isf": lambda q: -_cauchy_ppf(q),
})  # fmt: skip
logistic = Distribution(name="logistic", formulas={
    "logpdf": lambda z: -e.abs(z) - 2.0 * e.log1p(e.exp(-e.abs(z))),
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
    "logpdf": lambda z, n: s.xlogy(n * 0.5 - 1.0, z) - z * 0.5 - s.gammaln(n * 0.5) - n * (0.5 * _LOG_2),
    "cdf": lambda z, n: s.chdtr(n, z), "sf": lambda z, n: s.chdtrc(n, z),
    "ppf": lambda q, n: 2.0 * s.gammaincinv(n * 0.5, q), "isf": lambda q, n: s.chdtri(n, q),
})  # fmt: skip
chi = Distribution(name="chi", shapes=("df",), low=0.0, formulas={
    "logpdf": lambda z, n: s.xlogy(n - 1.0, z) - z * z * 0.5 - s.gammaln(n * 0.5) - (n * 0.5 - 1.0) * _LOG_2,
    "cdf": lambda z, n: s.gammainc(n * 0.5, z * z * 0.5), "sf": lambda z, n: s.gammaincc(n * 0.5, z * z * 0.5),
    "ppf": lambda q, n: e.sqrt(2.0 * s.gammaincinv(n * 0.5, q)),
    "isf": lambda q, n: e.sqrt(2.0 * s.gammainccinv(n * 0.5, q)),
})  # fmt: skip


def _f_logpdf(z: Any, m: Any, n: Any) -> Any:
    sizes = _log(m) * (m * 0.5) + _log(n) * (n * 0.5)
    return s.xlogy(m * 0.5 - 1.0, z) - (m + n) * 0.5 * e.log(n + m * z) + sizes - s.betaln(m * 0.5, n * 0.5)


f = Distribution(name="f", shapes=("dfn", "dfd"), low=0.0, formulas={
    "logpdf": _f_logpdf, "cdf": lambda z, m, n: s.fdtr(m, n, z), "sf": lambda z, m, n: s.fdtrc(m, n, z),
    "ppf": lambda q, m, n: s.fdtri(m, n, q),
    "isf": lambda q, m, n: 1.0 / s.fdtri(n, m, q),
})  # fmt: skip
weibull_min = Distribution(name="weibull_min", shapes=("c",), low=0.0, formulas={
    "logpdf": lambda z, c: s.xlogy(c - 1.0, z) - z**c + _log(c),
    "cdf": lambda z, c: -e.expm1(-(z**c)), "sf": lambda z, c: e.exp(-(z**c)), "logsf": lambda z, c: -(z**c),
    "ppf": lambda q, c: (-e.log1p(-q)) ** (1.0 / c), "isf": lambda q, c: (-e.log(q)) ** (1.0 / c),
})  # fmt: skip
pareto = Distribution(name="pareto", shapes=("b",), low=1.0, inner=2.0, formulas={
    "logpdf": lambda z, b: _log(b) - (b + 1.0) * e.log(z),
    "cdf": lambda z, b: -e.expm1(-b * e.log(z)), "sf": lambda z, b: e.exp(-b * e.log(z)),
    "logsf": lambda z, b: -b * e.log(z),
    "ppf": lambda q, b: e.exp(-e.log1p(-q) / b), "isf": lambda q, b: e.exp(-e.log(q) / b),
})  # fmt: skip
halfnorm = Distribution(name="halfnorm", low=0.0, formulas={
    "logpdf": lambda z: _normal(z) + _LOG_2, "cdf": lambda z: s.erf(z * _ROOT_HALF), "sf": lambda z: 2.0 * s.ndtr(-z),
    "logsf": lambda z: s.log_ndtr(-z) + _LOG_2,
    "ppf": lambda q: s.ndtri((1.0 + q) * 0.5), "isf": lambda q: -s.ndtri(q * 0.5),
})  # fmt: skip
halfcauchy = Distribution(name="halfcauchy", low=0.0, formulas={
    "logpdf": lambda z: math.log(2 / math.pi) - e.log1p(z * z), "cdf": lambda z: e.arctan(z) * (2 / math.pi),
    "sf": lambda z: e.arctan2(1.0, z) * (2 / math.pi), "ppf": lambda q: e.tan(q * (math.pi / 2)),
    "isf": lambda q: 1.0 / e.tan(q * (math.pi / 2)),
})  # fmt: skip
rayleigh = Distribution(name="rayleigh", low=0.0, formulas={
    "logpdf": lambda z: e.log(z) - z * z * 0.5, "cdf": lambda z: -e.expm1(z * z * -0.5),
    "sf": lambda z: e.exp(z * z * -0.5), "logsf": lambda z: z * z * -0.5,
    "ppf": lambda q: e.sqrt(-2.0 * e.log1p(-q)), "isf": lambda q: e.sqrt(-2.0 * e.log(q)),
})  # fmt: skip
gumbel_r = Distribution(name="gumbel_r", formulas={
    "logpdf": lambda z: -z - e.exp(-z), "cdf": lambda z: e.exp(-e.exp(-z)), "logcdf": lambda z: -e.exp(-z),
    "sf": lambda z: -e.expm1(-e.exp(-z)), "ppf": lambda q: -e.log(-e.log(q)), "isf": lambda q: -e.log(-e.log1p(-q)),
})  # fmt: skip
gumbel_l = Distribution(name="gumbel_l", formulas={
    "logpdf": lambda z: z - e.exp(z), "cdf": lambda z: -e.expm1(-e.exp(z)), "sf": lambda z: e.exp(-e.exp(z)),
    "logsf": lambda z: -e.exp(z), "ppf": lambda q: e.log(-e.log1p(-q)), "isf": lambda q: e.log(-e.log(q)),
})  # fmt: skip


def _invgauss_cdf(z: Any, m: Any, sign: float) -> Any:
    root = e.sqrt(z)
    mirrored = e.exp(2.0 / m + s.log_ndtr(-(z / m + 1.0) / root))
    return s.ndtr((z / m - 1.0) / root * sign) + mirrored * sign


invgauss = Distribution(name="invgauss", shapes=("mu",), low=0.0, is_open=True, formulas={
    "logpdf": lambda z, m: -_LOG_ROOT_2PI - 1.5 * e.log(z) - e.square((z - m) / m) / (2.0 * z),
    "cdf": lambda z, m: _invgauss_cdf(z, m, 1.0), "sf": lambda z, m: _invgauss_cdf(z, m, -1.0),
})  # fmt: skip
skewnorm = Distribution(name="skewnorm", shapes=("a",), valid=lambda a: (), formulas={
    "logpdf": lambda z, a: _normal(z) + _LOG_2 + s.log_ndtr(a * z),
})  # fmt: skip
vonmises = Distribution(name="vonmises", shapes=("kappa",), formulas={
    "logpdf": lambda z, k: k * s.cosm1(z) - math.log(2 * math.pi) - e.log(s.i0e(k)),
})  # fmt: skip
loguniform = Distribution(
    name="loguniform", shapes=("a", "b"), low=lambda a, b: a, high=lambda a, b: b, inner=lambda a, b: (a + b) * 0.5,
    valid=lambda a, b: (a > 0, b > a), formulas={
    "logpdf": lambda z, a, b: -e.log(z) - e.log(_log(b) - _log(a)),
    "cdf": lambda z, a, b: (e.log(z) - _log(a)) / (_log(b) - _log(a)),
    "sf": lambda z, a, b: (_log(b) - e.log(z)) / (_log(b) - _log(a)),
    "ppf": lambda q, a, b: e.exp(_log(a) + q * (_log(b) - _log(a))),
    "isf": lambda q, a, b: e.exp(_log(b) - q * (_log(b) - _log(a))),
})  # fmt: skip


def _log_mass(a: Any, b: Any) -> Any:
    """Return the logarithm of the normal probability between a and b, without cancellation far from 0."""
    right = a > 0
    above, below = where(right, -a, b), where(right, -b, a)
    larger = s.log_ndtr(above)
    return larger + e.log(-e.expm1(s.log_ndtr(below) - larger))


def _truncated_ppf(q: Any, a: Any, b: Any) -> Any:
    mass, left = _log_mass(a, b), a < 0
    from_left = s.ndtri_exp(logaddexp(s.log_ndtr(a), e.log(q) + mass))
    from_right = -s.ndtri_exp(logaddexp(s.log_ndtr(-b), e.log1p(-q) + mass))
    return where(left, from_left, from_right)


def _inner(a: Any, b: Any) -> Any:
    """Return a place between two bounds, of which one or both may be infinite."""
    a, b = (where(e.isinf(x), 0.0, x) + where(e.isinf(x), e.sign(x) * 9.0, 0.0) for x in (a, b))
    return (a + b) * 0.5


truncnorm = Distribution(
    name="truncnorm", shapes=("a", "b"), low=lambda a, b: a, high=lambda a, b: b, inner=_inner,
    valid=lambda a, b: (a < b,), formulas={
    "logpdf": lambda z, a, b: _normal(z) - _log_mass(a, b),
    "logcdf": lambda z, a, b: _log_mass(a, z) - _log_mass(a, b),
    "logsf": lambda z, a, b: _log_mass(z, b) - _log_mass(a, b),
    "cdf": lambda z, a, b: e.exp(_log_mass(a, z) - _log_mass(a, b)),
    "sf": lambda z, a, b: e.exp(_log_mass(z, b) - _log_mass(a, b)),
    "ppf": _truncated_ppf, "isf": lambda q, a, b: -_truncated_ppf(q, -b, -a),
})  # fmt: skip
