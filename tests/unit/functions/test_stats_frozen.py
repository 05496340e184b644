# SPDX-License-Identifier: BSD-3-Clause
"""Distributions with fixed parameters, and random numbers of distributions, with their derivatives."""

from typing import Any

import numpy as np
import pytest
import scipy.stats
from accelerated import dlaccelerate
from distributions import ALL, shapes_of

import tracejit as tj
from tracejit.stats import Distribution


def parameters(found: Distribution) -> tuple[float, ...]:
    return (*shapes_of(found), *((2.0,) if found.is_discrete else (0.3, 1.7)))


@pytest.mark.sampled
@pytest.mark.parametrize("found", ALL, ids=lambda found: found.name)
def test_methods_are_those_of_the_distribution(found: Distribution) -> None:
    given = parameters(found)
    frozen = found(*given)
    x = np.array([1.0, 3.0, 4.0])
    with np.errstate(all="ignore"):
        for name in ("pmf", "logpmf") if found.is_discrete else ("pdf", "logpdf"):
            np.testing.assert_array_equal(
                tj.extractdata(getattr(frozen, name)(x)), tj.extractdata(getattr(found, name)(x, *given))
            )
        for have, want in zip(frozen.interval(0.5), found.interval(0.5, *given), strict=True):
            np.testing.assert_array_equal(tj.extractdata(have), tj.extractdata(want))
        low, high = frozen.support()
        want = getattr(scipy.stats, found.name)(*given).support()
        np.testing.assert_allclose([low.item(), high.item()], want, rtol=1e-12)
        assert frozen.median().item() == found.median(*given).item()


NUMBER_BY_NUMBER = ("vonmises", "exponnorm")  # whose quantiles SciPy looks for one at a time


@pytest.mark.sampled
@pytest.mark.parametrize("found", ALL, ids=lambda found: found.name)
def test_random_numbers_have_the_distribution(found: Distribution) -> None:
    """That of many numbers differs from it by at most what one in 10^6 samples does."""
    given = parameters(found)
    with np.errstate(all="ignore"):
        size = 400 if found.name in NUMBER_BY_NUMBER else 1000
        drawn = tj.extractdata(found.rvs(*given, size=size, random_state=3))
        few = tj.extractdata(found.rvs(*given, size=50, random_state=3))
        again = tj.extractdata(found(*given).rvs(50, tj.Generator(3)))
    np.testing.assert_array_equal(few, again)
    theirs = getattr(scipy.stats, found.name)(*given)
    places, counts = np.unique(drawn, return_counts=True)
    distance = np.abs(np.cumsum(counts) / size - theirs.cdf(places)).max()
    assert distance < scipy.stats.kstwo.isf(1e-6, size)


@pytest.mark.parametrize(
    "name", ["norm", "gamma", "lognorm", "t", "beta", "uniform", "weibull_min", "invgauss"]
)
def test_random_numbers_have_derivatives_by_the_parameters(name: str) -> None:
    found = getattr(tj.stats, name)
    given = [np.array(value) for value in parameters(found)]
    last = len(given) - 2 if name in ("gamma", "t", "beta") else 0  # none by their parameters of shape

    def total(*moved: Any) -> Any:
        y = found.rvs(*given[:last], *moved, size=4, random_state=1)
        return (np.sin(y) * y).sum()

    tj.testing.check_gradients(total, *given[last:])


def test_a_frozen_distribution_outside_and_among_the_arguments_of_a_program() -> None:
    prior = tj.stats.gamma(2.0, scale=0.5)
    x = np.array([0.5, 1.5])
    captured = dlaccelerate(lambda x: prior.logpdf(x).sum())
    given = dlaccelerate(lambda d, x: tj.dlgradient(d.logpdf(x).sum(), d.args[1]))
    want = scipy.stats.gamma.logpdf(x, 2.0, scale=0.5).sum()
    for scale in (1.0, 1.0, 2.0, 3.0):
        assert abs(captured(x).item() - want) < 1e-12
        slope = given(tj.stats.norm(np.array(0.0), np.array(scale)), x).item()
        assert abs(slope - ((x**2).sum() / scale**3 - 2 / scale)) < 1e-12
    assert captured.stats.hits > 1 and given.stats.hits > 1


def test_sizes_seeds_and_dtypes() -> None:
    wide = np.array([[0.0], [10.0]])
    assert tj.stats.norm.rvs(wide).shape == (2, 1) and tj.stats.norm.rvs(wide, size=(4, 2, 3)).shape == (
        4,
        2,
        3,
    )
    assert tj.stats.norm.rvs().shape == () and tj.stats.norm(0, 1).rvs((2, 3)).shape == (2, 3)
    assert tj.stats.norm.rvs(np.ones(2, np.float32), size=2).dtype == np.float32
    with tj.rng(5):
        first = tj.stats.norm.rvs(size=3)
    with tj.rng(5):
        assert (tj.stats.norm.rvs(size=3) == first).all()
    step = dlaccelerate(lambda m: tj.stats.norm.rvs(m, size=3))
    assert len({step(np.array(0.0))[0].item() for _ in range(4)}) == 4 and step.stats.hits > 0


def test_vectors() -> None:
    mean, cov = np.array([1.0, 2.0]), np.array([[2.0, 0.5], [0.5, 1.0]])
    frozen = tj.stats.multivariate_normal(mean, cov)
    x = np.array([[0.3, 1.0], [2.0, -1.0]])
    np.testing.assert_allclose(
        tj.extractdata(frozen.logpdf(x)), scipy.stats.multivariate_normal(mean, cov).logpdf(x), rtol=1e-12
    )
    drawn = tj.extractdata(frozen.rvs((100, 200), 4))
    assert drawn.shape == (100, 200, 2)
    drawn = drawn.reshape(-1, 2)
    assert np.abs(np.cov(drawn.T) - cov).max() < 0.08 and np.abs(drawn.mean(0) - mean).max() < 0.05
    assert tj.stats.multivariate_normal(None, np.array([1.0, 4.0])).rvs(3).shape == (3, 2)
    root = np.linalg.cholesky(cov)
    tj.testing.check_gradients(
        lambda m, r: np.sin(tj.stats.multivariate_normal.rvs(m, r @ r.T, 3, 1)).sum(), mean, root
    )
    shares = np.array([0.2, 0.8])
    assert (
        tj.stats.dirichlet(np.ones(2)).pdf(shares).item() == tj.stats.dirichlet.pdf(shares, np.ones(2)).item()
    )
