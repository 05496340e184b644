# SPDX-License-Identifier: BSD-3-Clause
"""Distributions of integers: formulas of their probabilities."""

import math
from typing import Any

from tracejit.array import as_array
from tracejit.errors import ArgumentError
from tracejit.functions import elementwise as e
from tracejit.functions import reductions
from tracejit.functions.elementwise import where
from tracejit.record import recorder
from tracejit.stats.continuous import beta, s
from tracejit.stats.distribution import Distribution
from tracejit.stats.saddle import log_binomial, log_poisson
from tracejit.stats.tails import log1mexp, log_betainc, log_gammainc, log_gammaincc


def _share(p: Any) -> tuple[Any, ...]:
    return (p >= 0, p <= 1)


def _binom_cdf(k: Any, n: Any, p: Any, upper: bool) -> Any:
    whole = k >= n
    few = where(whole, 0.0, k)
    found = (s.betainc if upper else s.betaincc)(few + 1.0, where(whole, 1.0, n - few), p)
    return where(whole, 0.0 if upper else 1.0, found)


def _binom_logarithm(k: Any, n: Any, p: Any, upper: bool) -> Any:
    whole = k >= n
    few = where(whole, 0.0, k)
    others = where(whole, 1.0, n - few)
    if upper:
        return where(whole, -math.inf, log_betainc(few + 1.0, others, p, 1.0 - p))
    return where(whole, 0.0, log_betainc(others, few + 1.0, 1.0 - p, p))


poisson = Distribution(
    name="poisson", shapes=("mu",), low=0.0, inner=1.0, is_discrete=True, valid=lambda m: (m >= 0,), formulas={
    "logpmf": log_poisson,
    "cdf": s.pdtr, "sf": s.pdtrc,
    "logcdf": lambda k, m: log_gammaincc(k + 1.0, m), "logsf": lambda k, m: log_gammainc(k + 1.0, m),
})  # fmt: skip
binom = Distribution(
    name="binom", shapes=("n", "p"), low=0.0, high=lambda n, p: n, inner=0.0, is_discrete=True,
    valid=lambda n, p: (n >= 0, *_share(p)), formulas={
    "logpmf": lambda k, n, p: log_binomial(k, n, p, 1.0 - p),
    "cdf": lambda k, n, p: _binom_cdf(k, n, p, False), "sf": lambda k, n, p: _binom_cdf(k, n, p, True),
    "logcdf": lambda k, n, p: _binom_logarithm(k, n, p, False),
    "logsf": lambda k, n, p: _binom_logarithm(k, n, p, True),
})  # fmt: skip
bernoulli = Distribution(
    name="bernoulli", shapes=("p",), low=0.0, high=1.0, inner=1.0, is_discrete=True, valid=_share, formulas={
    "logpmf": lambda k, p: s.xlogy(k, p) + s.xlog1py(1.0 - k, -p),
    "cdf": lambda k, p: where(k >= 1, 1.0, 1.0 - p) + 0.0 * k, "sf": lambda k, p: where(k >= 1, 0.0, p) + 0.0 * k,
})  # fmt: skip
nbinom = Distribution(
    name="nbinom", shapes=("n", "p"), low=0.0, inner=1.0, is_discrete=True,
    valid=lambda n, p: (n > 0, p > 0, p <= 1), formulas={
    "logpmf": lambda k, n, p: log_binomial(n + 0.0 * k, n + k, p, 1.0 - p) - e.log1p(k / n),
    "cdf": lambda k, n, p: s.betainc(n, k + 1.0, p), "sf": lambda k, n, p: s.betaincc(n, k + 1.0, p),
    "logcdf": lambda k, n, p: log_betainc(n, k + 1.0, p, 1.0 - p),
    "logsf": lambda k, n, p: log_betainc(k + 1.0, n, 1.0 - p, p),
})  # fmt: skip
geom = Distribution(
    name="geom", shapes=("p",), low=1.0, inner=1.0, is_discrete=True, valid=lambda p: (p > 0, p <= 1), formulas={
    "logpmf": lambda k, p: s.xlog1py(k - 1.0, -p) + e.log(p),
    "cdf": lambda k, p: -e.expm1(k * e.log1p(-p)), "sf": lambda k, p: e.exp(k * e.log1p(-p)),
    "logsf": lambda k, p: k * e.log1p(-p),
    "logcdf": lambda k, p: log1mexp(-k * e.log1p(-p), e.log(-k * e.log1p(-p))),
})  # fmt: skip


def _betabinom_logpmf(k: Any, n: Any, a: Any, b: Any) -> Any:
    # Both beta functions and the binomial coefficient are parts of densities at one place, where nothing cancels.
    x = (k + 0.5) / (n + 1.0)
    rest = (n - k + 0.5) / (n + 1.0)
    top = log_binomial(k, n, x, rest) + (a - 1.0) * e.log(x) + (b - 1.0) * e.log(rest)
    return top - beta.formulas["logpdf"](x, k + a, n - k + b) - s.betaln(a, b)


_MOST = 1000


def _betabinom_sum(k: Any, n: Any, a: Any, b: Any, upper: bool) -> Any:
    """Return the sum of the probabilities up to k, or of those above; their number is guarded."""
    largest = reductions.max(as_array(n)) if not isinstance(n, (int, float)) else as_array(float(n))
    count = int(recorder.need_value(e.stop_gradient(largest), "stats.betabinom.cdf")) + 1
    if count > _MOST:
        raise ArgumentError(
            f"stats.betabinom.cdf: n is {count - 1}, and as many probabilities would be added; expected up to {_MOST}."
        )
    total = (k + n + a + b) * 0.0
    for j in range(count):
        counted = (k < j) if upper else (k >= j)
        inside = counted & (n >= j)
        term = e.exp(_betabinom_logpmf(where(inside, float(j), 0.0), where(inside, n, 1.0), a, b))
        total = total + where(inside, term, 0.0)
    return total


betabinom = Distribution(
    name="betabinom", shapes=("n", "a", "b"), low=0.0, high=lambda n, a, b: n, inner=0.0, is_discrete=True,
    valid=lambda n, a, b: (n >= 0, a > 0, b > 0), formulas={
    "logpmf": _betabinom_logpmf,
    "cdf": lambda k, n, a, b: _betabinom_sum(k, n, a, b, False),
    "sf": lambda k, n, a, b: _betabinom_sum(k, n, a, b, True),
})  # fmt: skip
randint = Distribution(
    name="randint", shapes=("low", "high"), low=lambda a, b: a, high=lambda a, b: b - 1, inner=lambda a, b: a,
    is_discrete=True, valid=lambda a, b: (b > a,), formulas={
    "logpmf": lambda k, a, b: -e.log(b - a + k * 0.0),
    "cdf": lambda k, a, b: (k - a + 1.0) / (b - a), "sf": lambda k, a, b: (b - k - 1.0) / (b - a),
})  # fmt: skip
hypergeom = Distribution(
    name="hypergeom", shapes=("M", "n", "N"), is_discrete=True,
    low=lambda m, n, k: e.maximum(k - (m - n), 0.0), high=lambda m, n, k: e.minimum(n, k),
    inner=lambda m, n, k: e.maximum(k - (m - n), 0.0),
    valid=lambda m, n, k: (m > 0, n >= 0, k >= 0, n <= m, k <= m), formulas={
    "logpmf": lambda k, m, n, drawn: (
        log_binomial(k, n, drawn / m, 1.0 - drawn / m) + log_binomial(drawn - k, m - n, drawn / m, 1.0 - drawn / m)
        - log_binomial(drawn, m, drawn / m, 1.0 - drawn / m)),
})  # fmt: skip
logser = Distribution(
    name="logser", shapes=("p",), low=1.0, inner=1.0, is_discrete=True, valid=lambda p: (p > 0, p < 1), formulas={
    "logpmf": lambda k, p: k * e.log(p) - e.log(k) - e.log(-e.log1p(-p)),
})  # fmt: skip
zipf = Distribution(
    name="zipf", shapes=("a",), low=1.0, inner=1.0, is_discrete=True, valid=lambda a: (a > 1,), formulas={
    "logpmf": lambda k, a: -a * e.log(k) - e.log(s._riemann_zeta(a)),
})  # fmt: skip
