# SPDX-License-Identifier: BSD-3-Clause
"""Means, variances and entropies of the standard forms of distributions, by formulas of their parameters."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from tracejit.array import as_array
from tracejit.functions import elementwise as e
from tracejit.functions.elementwise import where
from tracejit.functions.special_ufuncs import call
from tracejit.stats.integrals import scaled_i0, truncnorm_entropy, truncnorm_mean, truncnorm_var, vonmises_var

Formula = Callable[..., Any]
_EULER = 0.5772156649015329
_LOG_2PI = math.log(2 * math.pi)


def _gamma(x: Any) -> Any:
    return call("gamma", (x,))


def _log_gamma(x: Any) -> Any:
    return call("gammaln", (x,))


def _psi(x: Any) -> Any:
    return call("psi", (x,))


def _only(holds: Any, value: Any, otherwise: float = math.inf) -> Any:
    """Return a moment where it exists."""
    return where(holds, value, otherwise)


def _number(value: float) -> Formula:
    return lambda *shapes: as_array(value)


def _beta_entropy(a: Any, b: Any) -> Any:
    whole = a + b
    return call("betaln", (a, b)) - (a - 1) * _psi(a) - (b - 1) * _psi(b) + (whole - 2) * _psi(whole)


def _chi_mean(n: Any) -> Any:
    return math.sqrt(2.0) * e.exp(_log_gamma(n * 0.5 + 0.5) - _log_gamma(n * 0.5))


def _gamma_entropy(a: Any) -> Any:
    return a + _log_gamma(a) + (1.0 - a) * _psi(a)


def _f_var(m: Any, n: Any) -> Any:
    safe = where(n > 4, n, 5.0)
    found = 2 * safe * safe * (m + safe - 2) / (m * e.square(safe - 2) * (safe - 4))
    return where(n > 4, found, where(n > 2, math.inf, math.nan))


def _f_entropy(m: Any, n: Any) -> Any:
    p, q = m * 0.5, n * 0.5
    beta = call("betaln", (p, q))
    return e.log(n / m) + beta + (1 - p) * _psi(p) - (1 + q) * _psi(q) + (p + q) * _psi(p + q)


def _t_var(n: Any) -> Any:
    safe = where(n > 2, n, 3.0)
    found = 1.0 + 2.0 / (safe - 2)  # also of infinitely many degrees of freedom
    return where(n > 2, found, where(n > 1, math.inf, math.nan))


def _t_entropy(n: Any) -> Any:
    is_normal = e.isinf(n)
    n = where(is_normal, 1.0, n)
    half = (n + 1) * 0.5
    found = half * (_psi(half) - _psi(n * 0.5)) + 0.5 * e.log(n) + call("betaln", (n * 0.5, as_array(0.5)))
    return where(is_normal, (_LOG_2PI + 1) / 2, found)


def _weibull(c: Any, k: float) -> Any:
    return _gamma(1.0 + k / c)


def _pareto_var(b: Any) -> Any:
    safe = where(b > 2, b, 3.0)
    return _only(b > 2, safe / (e.square(safe - 1) * (safe - 2)))


def _skew(a: Any) -> Any:
    return a / e.sqrt(1 + a * a) * math.sqrt(2 / math.pi)


def _loguniform_var(a: Any, b: Any) -> Any:
    t = e.log(b / a)
    return (b - a) * (t * (b + a) - 2 * (b - a)) / (2 * t * t)


def _shared(p: Any) -> Any:
    return call("entr", (p,)) + call("entr", (1.0 - p,))


def _betabinom_var(n: Any, a: Any, b: Any) -> Any:
    whole = a + b
    return n * a * b * (whole + n) / (e.square(whole) * (whole + 1))


def _vonmises_entropy(k: Any) -> Any:
    ratio = call("i1e", (k,)) / call("i0e", (k,))
    return _LOG_2PI + e.log(scaled_i0(k)) + k * (1.0 - ratio)


def _row(mean: Formula, var: Formula, entropy: Formula | None = None) -> dict[str, Formula]:
    row = {"mean": mean, "var": var}
    return row if entropy is None else {**row, "entropy": entropy}


MOMENTS: Mapping[str, Mapping[str, Formula]] = {
    "norm": _row(_number(0.0), _number(1.0), _number((_LOG_2PI + 1) / 2)),
    "t": _row(lambda n: where(n > 1, 0.0, math.inf), _t_var, _t_entropy),
    "gamma": _row(lambda a: a, lambda a: a, _gamma_entropy),
    "erlang": _row(lambda a: a, lambda a: a, _gamma_entropy),
    "invgamma": _row(
        lambda a: _only(a > 1, 1 / where(a > 1, a - 1, 1.0)),
        lambda a: _only(a > 2, 1 / (e.square(where(a > 2, a, 3.0) - 1) * (where(a > 2, a, 3.0) - 2))),
        lambda a: a - (a + 1.0) * _psi(a) + _log_gamma(a),
    ),
    "beta": _row(lambda a, b: a / (a + b), lambda a, b: a * b / (e.square(a + b) * (a + b + 1)), _beta_entropy),
    "expon": _row(_number(1.0), _number(1.0), _number(1.0)),
    "uniform": _row(_number(0.5), _number(1 / 12), _number(0.0)),
    "laplace": _row(_number(0.0), _number(2.0), _number(math.log(2.0) + 1)),
    "cauchy": _row(_number(math.nan), _number(math.nan), _number(math.log(4 * math.pi))),
    "logistic": _row(_number(0.0), _number(math.pi**2 / 3), _number(2.0)),
    "lognorm": _row(
        lambda w: e.exp(w * w * 0.5), lambda w: e.exp(w * w) * e.expm1(w * w),
        lambda w: 0.5 * (1 + _LOG_2PI) + e.log(w),
    ),
    "chi2": _row(
        lambda n: n, lambda n: 2 * n,
        lambda n: n * 0.5 + math.log(2.0) + _log_gamma(n * 0.5) + (1 - n * 0.5) * _psi(n * 0.5),
    ),
    "chi": _row(
        _chi_mean, lambda n: n - e.square(_chi_mean(n)),
        lambda n: _log_gamma(n * 0.5) + 0.5 * (n - math.log(2.0) - (n - 1) * _psi(n * 0.5)),
    ),
    "f": _row(lambda m, n: _only(n > 2, n / where(n > 2, n - 2, 1.0)), _f_var, _f_entropy),
    "weibull_min": _row(
        lambda c: _weibull(c, 1.0), lambda c: _weibull(c, 2.0) - e.square(_weibull(c, 1.0)),
        lambda c: -_EULER / c - e.log(c) + _EULER + 1,
    ),
    "weibull_max": _row(
        lambda c: -_weibull(c, 1.0), lambda c: _weibull(c, 2.0) - e.square(_weibull(c, 1.0)),
        lambda c: -_EULER / c - e.log(c) + _EULER + 1,
    ),
    "pareto": _row(
        lambda b: _only(b > 1, b / where(b > 1, b - 1, 1.0)), _pareto_var, lambda b: 1 + 1 / b - e.log(b)
    ),
    "lomax": _row(
        lambda b: _only(b > 1, 1 / where(b > 1, b - 1, 1.0)), _pareto_var, lambda b: 1 + 1 / b - e.log(b)
    ),
    "halfnorm": _row(
        _number(math.sqrt(2 / math.pi)), _number(1 - 2 / math.pi), _number(0.5 * math.log(math.pi / 2) + 0.5)
    ),
    "halfcauchy": _row(_number(math.inf), _number(math.inf), _number(math.log(2 * math.pi))),
    "rayleigh": _row(
        _number(math.sqrt(math.pi / 2)), _number(2 - math.pi / 2), _number(_EULER / 2 + 1 - 0.5 * math.log(2.0))
    ),
    "maxwell": _row(
        _number(2 * math.sqrt(2 / math.pi)), _number(3 - 8 / math.pi), _number(_EULER + 0.5 * _LOG_2PI - 0.5)
    ),
    "gumbel_r": _row(_number(_EULER), _number(math.pi**2 / 6), _number(_EULER + 1)),
    "gumbel_l": _row(_number(-_EULER), _number(math.pi**2 / 6), _number(_EULER + 1)),
    "arcsine": _row(_number(0.5), _number(0.125), _number(math.log(math.pi / 4))),
    "hypsecant": _row(_number(0.0), _number(math.pi**2 / 4), _number(_LOG_2PI)),
    "levy": _row(
        _number(math.inf), _number(math.inf), _number((1 + 3 * _EULER + math.log(16 * math.pi)) / 2)
    ),
    "invgauss": _row(lambda m: m, lambda m: m * m * m),
    "skewnorm": _row(_skew, lambda a: 1 - e.square(_skew(a))),
    "vonmises": _row(
        lambda k: k * 0.0, vonmises_var, _vonmises_entropy
    ),
    "loguniform": _row(
        lambda a, b: (b - a) / e.log(b / a), _loguniform_var,
        lambda a, b: 0.5 * (e.log(a) + e.log(b)) + e.log(e.log(b / a)),
    ),
    "truncnorm": _row(truncnorm_mean, truncnorm_var, truncnorm_entropy),
    "gennorm": _row(
        lambda b: b * 0.0, lambda b: e.exp(_log_gamma(3 / b) - _log_gamma(1 / b)),
        lambda b: 1 / b - e.log(0.5 * b) + _log_gamma(1 / b),
    ),
    "powerlaw": _row(lambda a: a / (a + 1), lambda a: a / ((a + 2) * e.square(a + 1)), lambda a: 1 - 1 / a - e.log(a)),
    "triang": _row(lambda c: (c + 1) / 3, lambda c: (1 - c + c * c) / 18, lambda c: 0.5 - math.log(2.0) + c * 0.0),
    "nakagami": _row(
        lambda n: e.exp(_log_gamma(n + 0.5) - _log_gamma(n)) / e.sqrt(n),
        lambda n: 1 - e.exp(2 * (_log_gamma(n + 0.5) - _log_gamma(n))) / n,
    ),
    "poisson": _row(lambda m: m, lambda m: m),
    "binom": _row(lambda n, p: n * p, lambda n, p: n * p * (1 - p)),
    "bernoulli": _row(lambda p: p, lambda p: p * (1 - p), _shared),
    "nbinom": _row(lambda n, p: n * (1 - p) / p, lambda n, p: n * (1 - p) / (p * p)),
    "geom": _row(lambda p: 1 / p, lambda p: (1 - p) / (p * p), lambda p: -e.log(p) - e.log1p(-p) * (1 - p) / p),
    "betabinom": _row(lambda n, a, b: n * a / (a + b), _betabinom_var),
    "randint": _row(
        lambda a, b: (a + b - 1) * 0.5, lambda a, b: (b - a - 1) * (b - a + 1) / 12, lambda a, b: e.log(b - a)
    ),
    "hypergeom": _row(
        lambda m, n, k: n * k / m, lambda m, n, k: k * n * (m - n) * (m - k) / (m * m * (m - 1))
    ),
}  # fmt: skip
