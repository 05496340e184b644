# SPDX-License-Identifier: BSD-3-Clause
"""Distributions of integers: formulas of their probabilities."""

import math
from typing import Any

from tracejit.functions import elementwise as e
from tracejit.functions.elementwise import where
from tracejit.stats.continuous import s
from tracejit.stats.distribution import Distribution
from tracejit.stats.saddle import log_binomial, log_poisson
from tracejit.stats.tails import log1mexp, log_betainc, log_gammainc, log_gammaincc


def _share(p: Any) -> tuple[Any, ...]:
    return (p >= 0, p <= 1)


def _choices(n: Any, k: Any) -> Any:
    """Return the logarithm of the binomial coefficient."""
    return s.gammaln(n + 1.0) - s.gammaln(k + 1.0) - s.gammaln(n - k + 1.0)


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
betabinom = Distribution(
    name="betabinom", shapes=("n", "a", "b"), low=0.0, high=lambda n, a, b: n, inner=0.0, is_discrete=True,
    valid=lambda n, a, b: (n >= 0, a > 0, b > 0), formulas={
    "logpmf": lambda k, n, a, b: _choices(n, k) + s.betaln(k + a, n - k + b) - s.betaln(a, b),
})  # fmt: skip
