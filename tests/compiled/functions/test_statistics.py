# SPDX-License-Identifier: BSD-3-Clause
"""Programs of statistics and finance as the field writes them: prices with greeks, a mixture, a Gaussian process."""

from typing import Any

import numpy as np
import pytest
import scipy.special
import scipy.stats
from scipy.special import ndtr

import tracejit as tj


def call_price(spot: Any, strike: Any, rate: Any, volatility: Any, years: Any) -> Any:
    """Return the price of a call by Black and Scholes."""
    deviation = volatility * np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + volatility**2 / 2) * years) / deviation
    return spot * ndtr(d1) - strike * np.exp(-rate * years) * ndtr(d1 - deviation)


def replayed(step: Any, *arguments: Any) -> Any:
    """Return what a replay gives."""
    for _ in range(3):
        result = step(*arguments)
    assert step.stats.hits > 0, step.explain()
    return result


def test_prices_and_greeks() -> None:
    rng = np.random.default_rng(0)
    spot, strike = rng.uniform(80, 120, 50), rng.uniform(80, 120, 50)
    rate, volatility, years = np.array(0.03), rng.uniform(0.1, 0.5, 50), rng.uniform(0.2, 2, 50)

    @tj.dlaccelerate
    def greeks(spot: Any, strike: Any, rate: Any, volatility: Any, years: Any) -> Any:
        price = call_price(spot, strike, rate, volatility, years)
        delta, vega = tj.dlgradient(price.sum(), spot, volatility)
        return price, delta, vega, tj.dlgradient(delta.sum(), spot)

    found = replayed(greeks, spot, strike, rate, volatility, years)
    price, delta, vega, gamma = map(tj.extractdata, found)
    deviation = volatility * np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + volatility**2 / 2) * years) / deviation
    density = scipy.stats.norm.pdf(d1)
    np.testing.assert_allclose(price, call_price(spot, strike, rate, volatility, years), rtol=1e-12)
    np.testing.assert_allclose(delta, ndtr(d1), rtol=1e-10)
    np.testing.assert_allclose(vega, spot * density * np.sqrt(years), rtol=1e-9)
    np.testing.assert_allclose(gamma, density / (spot * deviation), rtol=1e-9)


def test_a_gaussian_mixture() -> None:
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.normal(-2, 0.5, 60), rng.normal(1, 1.0, 40)])
    start = (np.zeros(2), np.array([-1.0, 0.5]), np.zeros(2))

    def loss(logits: Any, means: Any, log_scales: Any, x: Any, stats: Any, special: Any) -> Any:
        densities = stats.norm.logpdf(x[:, None], means, np.exp(log_scales))
        return -special.logsumexp(densities + special.log_softmax(logits), axis=1).sum()

    @tj.dlaccelerate
    def step(logits: Any, means: Any, log_scales: Any, x: Any) -> Any:
        value = loss(logits, means, log_scales, x, tj.stats, tj.special)
        slopes = tj.dlgradient(value, (logits, means, log_scales))
        return value, tuple(
            p - 0.01 * slope for p, slope in zip((logits, means, log_scales), slopes, strict=True)
        )

    params: Any = start
    for _ in range(200):
        _, params = step(*params, x)
    assert step.stats.hits > 190
    plain = [tj.extractdata(p) for p in params]
    assert sorted(plain[1].round(0).tolist()) == [-2.0, 1.0]
    want = loss(*plain, x, scipy.stats, scipy.special)
    np.testing.assert_allclose(step(*params, x)[0].item(), want, rtol=1e-12)


def test_a_gaussian_process() -> None:
    rng = np.random.default_rng(2)
    x, noise = np.sort(rng.uniform(0, 5, 30)), 0.1
    y = np.sin(x) + noise * rng.normal(size=30)

    def evidence(log_length: Any, x: Any, y: Any) -> Any:
        apart = (x[:, None] - x) / np.exp(log_length)
        covariance = np.exp(-0.5 * apart**2) + noise**2 * np.eye(len(x))
        factor = np.linalg.cholesky(covariance)
        weights = np.linalg.solve(covariance, y)
        return -0.5 * (y @ weights) - np.log(np.diagonal(factor)).sum() - 0.5 * len(x) * np.log(2 * np.pi)

    @tj.dlaccelerate
    def step(log_length: Any, x: Any, y: Any) -> Any:
        value = evidence(log_length, x, y)
        return value, tj.dlgradient(value, log_length)

    value, slope = replayed(step, np.array(0.1), x, y)
    want = scipy.stats.multivariate_normal.logpdf(
        y, np.zeros(30), np.exp(-0.5 * ((x[:, None] - x) / np.exp(0.1)) ** 2) + noise**2 * np.eye(30)
    )
    assert value.item() == pytest.approx(want, rel=1e-9)
    h = 1e-5
    assert slope.item() == pytest.approx(
        (evidence(0.1 + h, x, y) - evidence(0.1 - h, x, y)) / (2 * h), rel=1e-5
    )


def test_distribution_functions_and_their_slopes_by_shapes() -> None:
    """Fractions are compiled as the reference computes them, at the middle and where probabilities underflow."""
    x = np.array([1e-200, 1e-3, 0.3, 2.0, 30.0, 900.0])

    def tails(x: Any, a: Any, b: Any) -> Any:
        total = tj.stats.gamma.logsf(x, a) + tj.stats.gamma.logcdf(x, b) + tj.stats.f.logcdf(x, a, b)
        total = total + tj.stats.t.cdf(x, a) + tj.stats.chi2.ppf(1 / (1 + x), b)
        return total, tj.dlgradient(total.sum(), (x, a, b))

    a, b = np.array(2.5), np.array(1.2)
    want = tj.dlfeval(tails, x, a, b)
    found = replayed(tj.dlaccelerate(tails), x, a, b)
    np.testing.assert_allclose(tj.extractdata(found[0]), tj.extractdata(want[0]), rtol=1e-13)
    for have, expected in zip(found[1], want[1], strict=True):
        np.testing.assert_allclose(tj.extractdata(have), tj.extractdata(expected), rtol=1e-11)
