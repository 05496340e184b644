# SPDX-License-Identifier: BSD-3-Clause
"""tj.stats against scipy.stats: all methods in and outside of the support, parameters that are none, derivatives."""

from typing import Any

import numpy as np
import pytest
import scipy
import scipy.stats
from accelerated import dlaccelerate
from distributions import ALL, shapes_of

import tracejit as tj
from tracejit import dlarray
from tracejit.stats import Distribution

X = np.array([-8.0, -1.3, -0.2, 0.0, 0.3, 0.7, 1.0, 1.9, 3.0, 4.0, 9.0, np.nan])
# Before 1.15 SciPy finds quantiles of very small probabilities, Cauchy's and F's, to 8 digits.
SMALL = 1e-9 if np.lib.NumpyVersion(scipy.__version__) >= "1.15.0" else 1e-3
Q = np.array([-0.1, 0.0, SMALL, 0.2, 0.5, 0.8, 1.0, 1.2, np.nan])
METHODS = ("logpdf", "pdf", "cdf", "sf", "logcdf", "logsf", "ppf", "isf")


def methods(found: Distribution) -> list[str]:
    names = ["logpmf", "pmf"] if found.is_discrete else ["logpdf", "pdf"]
    others = {"cdf": "cdf", "sf": "sf", "logcdf": "cdf", "logsf": "sf", "ppf": "ppf", "isf": "isf"}
    have = set(found.formulas) | (
        {"ppf", "isf"} if {"cdf"} & set(found.formulas) or found.is_discrete else set()
    )
    return names + [name for name, plain in others.items() if {name, plain} & have]


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):
        yield


def points(found: Distribution, method: str) -> np.ndarray:
    return Q if method in ("ppf", "isf") else np.round(X) if found.is_discrete else X


@pytest.mark.sampled
@pytest.mark.parametrize("found", ALL, ids=lambda found: found.name)
def test_numbers_are_those_of_scipy(found: Distribution) -> None:
    theirs = getattr(scipy.stats, found.name)
    for loc, scale in ((0, 1), (0.3, 1.7)):
        rest = (np.round(loc),) if found.is_discrete else (loc, scale)
        for method in methods(found):
            x = points(found, method)
            want = getattr(theirs, method)(x, *shapes_of(found), *rest)
            have = tj.extractdata(getattr(found, method)(dlarray(x), *shapes_of(found), *rest))
            if method.startswith("log"):  # where SciPy takes the logarithm of a number that underflowed
                want = np.where(np.isneginf(want) & (have < -708), have, want)
            if method == "isf" and found.name in (
                "f",
                "betaprime",
                "exponnorm",
            ):  # SciPy takes the quantile of 1 - q
                back, x = theirs.sf(have, *shapes_of(found), *rest)[2:6], x[2:6]
                np.testing.assert_allclose(back, x, rtol=1e-11)
                continue
            # SciPy's skewnorm has ten digits in its tail; test_stats_tails.py has mpmath's numbers.
            digits = 1e-9 if found.name == "skewnorm" else 2e-12
            np.testing.assert_allclose(have, want, rtol=digits, atol=1e-13, err_msg=f"{method} {loc}")


@pytest.mark.sampled
@pytest.mark.parametrize("found", ALL, ids=lambda found: found.name)
def test_parameters_that_are_none(found: Distribution) -> None:
    theirs = getattr(scipy.stats, found.name)
    for place in range(len(found.shapes) + (not found.is_discrete)):
        given: list[Any] = [*shapes_of(found), *(() if found.is_discrete else (0.0, 1.0))]
        at = place if place < len(found.shapes) else -1
        given[at] = -1.0
        for method in methods(found)[:4]:
            x = points(found, method)
            want = getattr(theirs, method)(x, *given)
            for parameters in (given, [np.array(value) for value in given]):
                have = tj.extractdata(getattr(found, method)(x, *parameters))
                np.testing.assert_array_equal(np.isnan(have), np.isnan(want), err_msg=f"{method} {given}")


def gradients(
    found: Distribution, method: str, x: np.ndarray, given: list[float], wrt: int
) -> tuple[float, float]:
    """Return the derivative of the sum of a method by an operand, by dlgradient and by differences."""
    operands = [x, *map(np.array, given)]

    def values(moved: Any) -> Any:
        return getattr(found, method)(*operands[:wrt], moved, *operands[wrt + 1 :])

    slope = tj.dlfeval(lambda z: tj.dlgradient(values(z).sum(), z).sum(), operands[wrt])
    moved = [np.broadcast_to(operands[wrt] + h, x.shape) for h in (2e-4, 1e-4, -1e-4, -2e-4)]
    near = tj.extractdata(values(dlarray(np.stack(moved)))).sum(1)
    return slope.item(), (8 * (near[1] - near[2]) - near[0] + near[3]) / 12e-4


STEPS = {"binom": 1, "betabinom": 1, "randint": 2, "hypergeom": 3}  # parameters that are whole numbers
WITHOUT = {  # derivatives of distribution functions for which there is no formula, by parameter
    "t": (1,), "gamma": (1,), "invgamma": (1,), "beta": (1, 2), "chi2": (1,), "chi": (1,), "f": (1, 2), "nbinom": (1,),
    "binom": (1,), "vonmises": (),
}  # fmt: skip


@pytest.mark.sampled
@pytest.mark.parametrize("found", ALL, ids=lambda found: found.name)
def test_derivatives_by_the_variable_and_all_parameters(found: Distribution) -> None:
    given = [*shapes_of(found), *(() if found.is_discrete else (0.2, 1.3))]
    inside = np.array([1.0, 2.0, 4.0]) if found.is_discrete else np.array([0.45, 0.7, 0.9]) * 1.3 + 0.2
    if found.name in ("pareto", "loguniform"):
        inside = inside + 2
    if found.name == "weibull_max":
        inside = -inside
    if found.name == "bernoulli":
        inside = np.array([0.0, 1.0])
    for method in methods(found)[1:]:
        if method in ("ppf", "isf") or (found.name == "bernoulli" and method.startswith("log")):
            continue
        for wrt in range(len(given) + 1):
            if (wrt == 0 and found.is_discrete) or (
                method not in ("pdf", "pmf") and wrt in WITHOUT.get(found.name, ())
            ):
                continue
            if found.name in ("binom", "betabinom", "randint", "hypergeom") and 1 <= wrt <= STEPS[found.name]:
                continue
            have, want = gradients(found, method, inside, given, wrt)
            assert abs(have - want) <= 2e-7 * max(1.0, abs(want)), (method, wrt, have, want)


@pytest.mark.slow
def test_derivatives_outside_of_the_support_are_0() -> None:
    for found in ALL:
        if found.low == 0.0 and not found.is_discrete:
            for method in ("logpdf", "cdf", "sf"):
                assert gradients(found, method, np.array([-1.0]), [*shapes_of(found), 0.0, 1.0], 0)[0] == 0.0


@pytest.mark.slow
def test_replays_labels_and_dtypes() -> None:
    x = dlarray(np.abs(np.random.default_rng(0).normal(size=(2, 3))) + 0.1, "CB")
    for found in ALL:
        x = tj.dlarray(np.ones((2, 3)), "CB") if found.is_discrete else x
        method = "logpmf" if found.is_discrete else "logpdf"
        step = dlaccelerate(lambda x, p, found=found, method=method: getattr(found, method)(x, *p))
        want = getattr(found, method)(x, *shapes_of(found))
        for _ in range(3):
            have = step(x, tuple(map(np.array, shapes_of(found))))
        np.testing.assert_allclose(tj.extractdata(have), tj.extractdata(want), rtol=1e-13)
        assert have.format == "CB" and step.hit_rate > 0
        narrow = getattr(found, method)(tj.cast(x, np.float32), *shapes_of(found))
        assert narrow.dtype == np.float32, found.name
        np.testing.assert_allclose(tj.extractdata(narrow), tj.extractdata(want), rtol=1e-4)
        assert found.ppf(np.array([0.0, 0.5, 1.0], np.float32), *shapes_of(found)).dtype == np.float32, (
            found.name
        )


def test_vectors() -> None:
    rng = np.random.default_rng(1)
    root = rng.normal(size=(3, 3)) + 2 * np.eye(3)
    x, mean, cov = rng.normal(size=(5, 3)), rng.normal(size=3), root @ root.T
    normal = scipy.stats.multivariate_normal
    for arguments in ((mean, cov), (None, cov), (mean, np.diag(cov)), (mean, 2.5)):
        want = normal.logpdf(x, *arguments)
        for have in (
            tj.stats.multivariate_normal.logpdf(x, *arguments),
            tj.stats.multivariate_normal.logpdf(dlarray(x), *arguments),
        ):
            np.testing.assert_allclose(tj.extractdata(have), want, rtol=1e-12)
    np.testing.assert_allclose(
        tj.extractdata(tj.stats.multivariate_normal.pdf(x[0], mean, cov)),
        normal.pdf(x[0], mean, cov),
        rtol=1e-12,
    )
    shares, alpha = rng.dirichlet(np.ones(4), 5).T, rng.uniform(0.5, 3, 4)
    for given in (shares, shares[:, 0], shares[:-1]):
        np.testing.assert_allclose(
            tj.extractdata(tj.stats.dirichlet.logpdf(given, alpha)),
            scipy.stats.dirichlet.logpdf(given, alpha),
            rtol=1e-11,
        )
    tj.testing.check_gradients(
        lambda m, c: tj.stats.multivariate_normal.logpdf(x, m, c @ c.T).sum(), mean, root
    )
    tj.testing.check_gradients(lambda a: tj.stats.dirichlet.logpdf(shares, a).sum(), alpha)
