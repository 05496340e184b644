# SPDX-License-Identifier: BSD-3-Clause
"""tj.stats at special points: derivatives at centres and where parameters make a formula another one."""

from typing import Any

import numpy as np
import pytest
import scipy.special
import scipy.stats
from accelerated import dlaccelerate
from distributions import ALL, shapes_of
from mpmath import mp, mpf

import tracejit as tj
from tracejit.stats import Distribution


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):
        yield


def both(function: Any, *operands: Any) -> list[list[np.ndarray]]:
    """Return values and derivatives by all operands, uncompiled and of a replay."""

    def slopes(*given: Any) -> Any:
        y = function(*given)
        return y, *tj.dlgradient(y.sum(), given)

    arrays = [np.array(x, float) for x in operands]
    replayed = dlaccelerate(slopes)
    runs = [tj.dlfeval(slopes, *arrays), replayed(*arrays), replayed(*arrays)]
    return [[np.array(tj.extractdata(x)) for x in run] for run in runs]


LINES = [found for found in ALL if found.low == -np.inf and found.high == np.inf and not found.is_discrete]
CENTRES = [(found, shapes_of(found)) for found in LINES] + [
    (tj.stats.gennorm, (b,)) for b in (0.5, 1.0, 1.3, 2.0, 5.0)
]


@pytest.mark.sampled
@pytest.mark.parametrize(("found", "shapes"), CENTRES, ids=lambda x: getattr(x, "name", str(x)))
def test_slopes_at_the_centre_are_densities(found: Distribution, shapes: tuple[float, ...]) -> None:
    """Probabilities of abs(x) on both sides of 0 had the derivative 0 or NaN there."""
    x = np.array([-1e-300, -1e-12, 0.0, 1e-12, 1e-300])
    density = np.array(tj.extractdata(found.pdf(x, *shapes)))
    for method, sign in (("cdf", 1.0), ("sf", -1.0)):
        plain, logarithm = (getattr(found, prefix + method) for prefix in ("", "log"))
        values = np.array(tj.extractdata(plain(x, *shapes)))
        for _, by_x in both(lambda x, plain=plain: plain(x, *shapes), x):
            np.testing.assert_allclose(by_x, sign * density, rtol=1e-11)
        for _, by_x in both(lambda x, logarithm=logarithm: logarithm(x, *shapes), x):
            np.testing.assert_allclose(by_x, sign * density / values, rtol=1e-11)


@pytest.mark.sampled
@pytest.mark.parametrize("found", LINES, ids=lambda found: found.name)
def test_second_slopes_at_the_centre(found: Distribution) -> None:
    """Those of densities of abs(x) that are smooth were 0."""
    if found.name in ("laplace", "gennorm", "genextreme"):  # which are not smooth there
        return

    def slope(x: Any) -> Any:
        return tj.dlgradient(found.logpdf(x, *shapes_of(found)).sum(), x)

    def second(x: Any) -> Any:
        return tj.dlgradient(slope(x).sum(), x)

    step = 1e-4
    near = tj.extractdata(tj.dlfeval(slope, np.array([-step, step])))
    have = tj.dlfeval(second, np.array(0.0)).item()
    np.testing.assert_allclose(have, (near[1] - near[0]) / (2 * step), rtol=1e-6, atol=1e-9)


def test_the_power_of_gennorm_near_the_centre() -> None:
    """Values and derivatives of cdf are continuous where another formula begins, and right by the shape."""
    for b in (0.4, 1.0, 1.7, 3.0):
        x = np.array([-1.0, 1.0]) * np.array([[1e-10], [0.9e-9], [1e-9], [1.1e-9], [1e-8]]) ** (1 / b)
        for y, by_x, by_b in both(tj.stats.gennorm.cdf, x, np.full(x.shape, b)):
            peak = tj.stats.gennorm.pdf(0.0, b).item()
            terms = sum((-1) ** k * np.abs(x) ** (b * k) / (b * k + 1) / [1, 1, 2, 6][k] for k in range(4))
            np.testing.assert_allclose(y, 0.5 + peak * x * terms, rtol=1e-13)
            np.testing.assert_allclose(by_x, tj.extractdata(tj.stats.gennorm.pdf(x, b)), rtol=1e-11)
            step = 1e-6
            near = [np.array(tj.extractdata(tj.stats.gennorm.pdf(0.0, b + h))) for h in (step, -step)]
            np.testing.assert_allclose(by_b, (near[0] - near[1]) / (2 * step) * x, rtol=1e-4, atol=1e-20)


def log_power(z: Any, c: Any) -> Any:
    return mp.log1p(c * z) / c if c else z


def power_exp(y: Any, c: Any) -> Any:
    return mp.expm1(c * y) / c if c else y


OF_POWERS = {
    ("genpareto", "logpdf"): lambda z, c: -(c + 1) * log_power(z, c),
    ("genpareto", "cdf"): lambda z, c: -mp.expm1(-log_power(z, c)),
    ("genpareto", "logsf"): lambda z, c: -log_power(z, c),
    ("genpareto", "ppf"): lambda q, c: power_exp(-mp.log1p(-q), c),
    ("genpareto", "isf"): lambda q, c: power_exp(-mp.log(q), c),
    ("genextreme", "logpdf"): lambda z, c: -mp.exp(log_power(-z, c)) + (1 - c) * log_power(-z, c),
    ("genextreme", "cdf"): lambda z, c: mp.exp(-mp.exp(log_power(-z, c))),
    ("genextreme", "sf"): lambda z, c: -mp.expm1(-mp.exp(log_power(-z, c))),
    ("genextreme", "ppf"): lambda q, c: -power_exp(mp.log(-mp.log(q)), c),
    ("genextreme", "isf"): lambda q, c: -power_exp(mp.log(-mp.log1p(-q)), c),
}
"""Formulas that have another form where the shape is 0."""


@pytest.mark.sampled
@pytest.mark.parametrize(("name", "method"), OF_POWERS, ids=str)
def test_derivatives_by_a_shape_around_0(name: str, method: str) -> None:
    """At 0 the first one was 0 or that of another term; near 0 the second one had no digits left."""
    formula = OF_POWERS[name, method]
    function = getattr(getattr(tj.stats, name), method)
    sign = 1.0 if name == "genpareto" else -1.0
    near = [10.0**k for k in (-300, -16, -10, -6, -3)]
    shapes = [0.0, *near, *[-c for c in near], 0.05, -0.1, 0.2, -0.3, 0.5, 2.0]
    at = (0.01, 0.7, 0.999) if method in ("ppf", "isf") else (0.3, 1.5, 2.3)
    grid = [(x, c) for x in at for c in shapes if method in ("ppf", "isf") or 1 + sign * c * x > 0]
    x, c = np.array(grid).T

    def derivatives(c: Any) -> Any:
        y = function(x, c)
        first = tj.dlgradient(y.sum(), c)
        return y, first, tj.dlgradient(first.sum(), c)

    replayed = dlaccelerate(derivatives)
    with mp.workdps(60):
        want = np.array([
            [float(mp.diff(lambda c, p=p: formula(p, c), mpf(shape), order, h=mpf(10) ** -12)) for order in range(3)]
            for p, shape in ((mpf(p), shape) for p, shape in grid)
        ])  # fmt: skip
    for run in (lambda c: tj.dlfeval(derivatives, c), replayed, replayed):
        for order, have in enumerate(run(c)):
            np.testing.assert_allclose(
                tj.extractdata(have), want[:, order], rtol=2e-12, atol=1e-15, err_msg=str(order)
            )


def test_ends_of_distributions_of_powers() -> None:
    """The density of genextreme at -inf was NaN."""
    for c in (-0.5, 0.0, 0.5, 1.0, 1.5):
        found: Any = tj.stats.genextreme
        end = 1.0 / c if c else np.inf
        x = np.array([-np.inf, end, np.inf])
        peak = 0.0 if c < 1 else 1.0 if c == 1 else np.inf
        want = [0.0, peak if c > 0 else 0.0, 0.0]
        np.testing.assert_array_equal(tj.extractdata(found.pdf(x, c)), want, err_msg=str(c))
        np.testing.assert_array_equal(tj.extractdata(found.cdf(x[::2], c)), [0.0, 1.0])
        np.testing.assert_array_equal(tj.extractdata(found.sf(x[::2], c)), [1.0, 0.0])
    assert tj.stats.genpareto.logpdf(1.0, -1.0).item() == 0.0
    assert tj.stats.genpareto.pdf(np.inf, 0.0).item() == tj.stats.genpareto.pdf(np.inf, 0.5).item() == 0.0


@pytest.mark.parametrize(
    ("name", "shapes"),
    [("vonmises", (0.0,)), ("vonmises", (2.0,)), ("exponnorm", (1.5,)), ("exponnorm", (0.01,)), ("exponnorm", (100.0,)),
     ("skewnorm", (0.0,)), ("skewnorm", (3.0,)), ("skewnorm", (-3.0,))],
)  # fmt: skip
def test_infinities(name: str, shapes: tuple[float, ...]) -> None:
    """Probabilities at infinity were NaN, and everything for kappa = 0."""
    found, theirs = getattr(tj.stats, name), getattr(scipy.stats, name)
    x = np.array([-np.inf, -3.0, -1e-3, 0.0, 2.0, np.inf])
    for method in ("cdf", "sf", "logcdf", "logsf", "pdf", "logpdf"):
        function = getattr(found, method)
        want = getattr(theirs, method)(x, *shapes)
        if name == "exponnorm" and method.endswith("pdf"):  # NaN of SciPy's
            want[0] = want[-1]
        replayed = dlaccelerate(lambda x, function=function: function(x, *shapes))
        for run in (lambda x, function=function: function(x, *shapes), replayed, replayed):
            # SciPy's numbers have nine digits here.
            np.testing.assert_allclose(tj.extractdata(run(x)), want, rtol=1e-8, atol=1e-16, err_msg=method)


def test_vonmises_around_kappa_0() -> None:
    """Values, and derivatives from above, of the uniform distribution on a circle."""
    found: Any = tj.stats.vonmises
    for what in ("mean", "var", "entropy"):
        have = getattr(found, what)(0.0).item()
        np.testing.assert_allclose(have, getattr(scipy.stats.vonmises, what)(0.0), rtol=1e-14, atol=0)
    np.testing.assert_allclose(
        tj.extractdata(found.ppf(np.array([0.1, 0.5, 0.9]), 0.0)) / np.pi, [-0.8, 0.0, 0.8], atol=1e-15
    )
    assert np.isnan(found.pdf(0.3, -1.0).item())
    x = np.array([-2.0, -0.4, 0.0, 1.1, 3.0])
    first = {
        "logpdf": np.cos(x), "cdf": np.sin(x) / (2 * np.pi), "sf": -np.sin(x) / (2 * np.pi),
    }  # fmt: skip
    for method, want in first.items():
        for _, by_kappa in both(lambda k, method=method: getattr(found, method)(x, k), np.zeros(5)):
            np.testing.assert_allclose(by_kappa, want, rtol=1e-13, atol=1e-15)
    for method, slope in (("var", -2.0), ("entropy", 0.0)):
        for _, by_kappa in both(getattr(found, method), np.array(0.0)):
            np.testing.assert_allclose(by_kappa, slope, rtol=1e-13, atol=1e-15)
    for kappa in (1.0 - 1e-12, 1.0, 1.0 + 1e-12):  # where another formula begins
        for y, by_x, by_kappa in both(found.logpdf, x, np.full(5, kappa)):
            np.testing.assert_allclose(y, scipy.stats.vonmises.logpdf(x, kappa), rtol=1e-13)
            np.testing.assert_allclose(by_x, -kappa * np.sin(x), rtol=1e-13)
            ratio = scipy.special.i1(kappa) / scipy.special.i0(kappa)
            np.testing.assert_allclose(by_kappa, np.cos(x) - ratio, rtol=1e-12)


def test_the_left_tail_of_exponnorm() -> None:
    """The logarithm of its density was a difference of large numbers."""
    for k in (0.01, 0.1, 1.5, 100.0):
        for x in (-1e150, -36.0, -6.0, 1 / k - 1e-9, 1 / k, 1 / k + 1e-9, 30.0):
            with mp.workdps(60):
                rate = 1 / mpf(k)
                want = (
                    rate * (rate / 2 - mpf(x)) + mp.log(mp.ncdf(x - rate) * rate)
                    if abs(x) < 1e3
                    else -(mpf(x) ** 2) / 2
                )
            have = tj.stats.exponnorm.logpdf(x, k).item()
            np.testing.assert_allclose(have, float(want), rtol=1e-13, err_msg=str((k, x)))


def beta_integral(a: Any, b: Any, x: Any, rest: Any) -> Any:
    if x > 0.9:
        return 1 - beta_integral(b, a, rest, x)
    return x**a * rest**b / (a * mp.beta(a, b)) * mp.hyp2f1(a + b, 1, a + 1, x)


def sides(below: Any, above: Any) -> list[float]:
    """Return cdf, sf, logcdf and logsf of both probabilities."""
    pairs = [(below, above), (above, below)]
    return [float(x) for x in (below, above, *[mp.log(p) if p < 0.5 else mp.log1p(-q) for p, q in pairs])]


@pytest.mark.parametrize("shapes", [(2.0, 3.0), (0.3, 5.0), (20.0, 0.4), (50.0, 60.0)])
def test_ends_of_betaprime(shapes: tuple[float, float]) -> None:
    """Small probabilities were those of 1 - 1 / (1 + z), with as many digits as that; below 1e-16 they were 0."""
    z = np.array([1e-300, 1e-100, 1e-16, 1e-12, 1e-3, 0.9999, 1.0, 1.5, 1e3, 1e12, 1e100, 1e300])
    with mp.workdps(60):
        a, b = map(mpf, shapes)
        want = []
        for x in map(mpf, map(float, z)):
            share, rest = x / (1 + x), 1 / (1 + x)
            want.append(sides(beta_integral(a, b, share, rest), beta_integral(b, a, rest, share)))
    for at, method in enumerate(("cdf", "sf", "logcdf", "logsf")):
        function = getattr(tj.stats.betaprime, method)
        exact = np.array(want)[:, at]
        for y, by_z in both(lambda z, function=function: function(z, *shapes), z):
            np.testing.assert_allclose(y, exact, rtol=1e-12, atol=1e-307, err_msg=method)
            if not method.startswith("log"):
                density = np.array(tj.extractdata(tj.stats.betaprime.pdf(z, *shapes)))
                np.testing.assert_allclose(
                    by_z, density if method == "cdf" else -density, rtol=1e-11, atol=1e-300
                )


@pytest.mark.parametrize("c", [0.0, 1e-10, 0.3, 1.0 - 1e-10, 1.0])
def test_ends_of_triang(c: float) -> None:
    """Small probabilities of the side that falls, and their quantiles, were differences of numbers near 1."""
    z = np.array([1e-200, 1e-16, 1e-12, 1e-3, 0.3, 0.7, 1.0 - 1e-12])
    q = np.array([1e-300, 1e-20, 1e-12, 0.3, 0.9, 1.0 - 1e-12])
    with mp.workdps(700):
        peak, want, quantiles = mpf(c), [], []
        for x in map(mpf, map(float, z)):
            below = x * x / peak if x < peak else 1 - (1 - x) ** 2 / (1 - peak)
            want.append(sides(below, 1 - below))
        for p in map(mpf, map(float, q)):
            pair = [mp.sqrt(peak * x) if x < peak else 1 - mp.sqrt((1 - peak) * (1 - x)) for x in (p, 1 - p)]
            quantiles.append([float(x) for x in pair])
    for at, method in enumerate(("cdf", "sf", "logcdf", "logsf")):
        have = tj.extractdata(getattr(tj.stats.triang, method)(z, c))
        np.testing.assert_allclose(have, np.array(want)[:, at], rtol=1e-13, atol=1e-307, err_msg=method)
    for at, method in enumerate(("ppf", "isf")):
        have = tj.extractdata(getattr(tj.stats.triang, method)(q, c))
        np.testing.assert_allclose(have, np.array(quantiles)[:, at], rtol=1e-13, err_msg=method)
