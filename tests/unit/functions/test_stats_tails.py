# SPDX-License-Identifier: BSD-3-Clause
"""Distribution functions where numbers are easily lost: tails, ends of supports, infinities; with 60 digits beside."""

import math
from typing import Any

import effort
import numpy as np
import pytest
import scipy
import scipy.stats
from accelerated import dlaccelerate
from exact_distributions import EXACT, SHAPES, exact, exact_slope, places
from mpmath import mp

import tracejit as tj
from tracejit import dlarray
from tracejit.stats import Distribution

FOUND: list[Distribution] = [getattr(tj.stats, name) for name in EXACT]
METHODS = ("cdf", "sf", "logcdf", "logsf")
TINY = 1e-300
LESS = {"invgauss": 1e-11}
"""Relative errors of distributions whose tail is a difference."""
LESS_OF_QUANTILES = {"t": 1e-10} if tuple(map(int, scipy.__version__.split(".")[:2])) < (1, 17) else {}
"""Relative errors of probabilities of quantiles by stdtrit of earlier versions of SciPy."""
every_distribution = pytest.mark.parametrize("found", FOUND, ids=lambda found: found.name)


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):
        yield


def shapes_of(found: Distribution) -> tuple[float, ...]:
    return SHAPES.get(found.name, ())


def support(found: Distribution) -> tuple[float, float]:
    low, high = (bound(*shapes_of(found)) if callable(bound) else bound for bound in (found.low, found.high))
    return low, high


def inside(found: Distribution) -> np.ndarray:
    return places(*support(found), found.is_discrete)


@pytest.mark.slow
@every_distribution
def test_values_to_the_last_digits(found: Distribution) -> None:
    x = inside(found)
    for method in METHODS:
        have = tj.extractdata(getattr(found, method)(x, *shapes_of(found)))
        want = np.array([exact(found.name, method, float(at), shapes_of(found)) for at in x])
        rtol = LESS.get(found.name, 2e-13)
        np.testing.assert_allclose(have, want, rtol=rtol, atol=TINY, err_msg=method)


def test_what_was_lost() -> None:
    """Numbers that were wrong, or 0, or infinite."""
    for name, method, x in (
        ("gamma", "logcdf", 50.0), ("expon", "logcdf", 50.0), ("chi", "logcdf", 10.0), ("halfnorm", "logcdf", 12.0),
        ("halfcauchy", "logsf", 1e-20), ("beta", "logsf", 1e-20), ("gamma", "logsf", 1000.0), ("chi2", "logsf", 1e5),
        ("f", "logsf", 1e-20), ("gumbel_r", "logsf", 1000.0), ("t", "logcdf", 1e9), ("poisson", "logsf", 300.0),
    ):  # fmt: skip
        found = getattr(tj.stats, name)
        have = getattr(found, method)(x, *shapes_of(found)).item()
        want = exact(name, method, x, shapes_of(found))
        assert abs(have - want) <= 2e-13 * abs(want), (name, method, have, want)


FAR: dict[tuple[str, str, tuple[float, ...]], tuple[list[float], list[float]]] = {
    ("beta", "logcdf", (1e-3, 5.0)): ([1e-300, 1e-20], [-0.6886929059781514, -0.043969079939818606]),
    ("cauchy", "logpdf", ()): ([-1e300, 1e300, 3.0], [-1382.6957856822767, -1382.6957856822767, -3.447314978843446]),
    ("halfcauchy", "logpdf", ()): ([1e300], [-1382.0026385017168]),
    ("loguniform", "logpdf", (1e-300, 1e300)): ([1e-300, 1e-8], [683.5445657977496, 11.189718643488266]),
    ("loguniform", "cdf", (1e-300, 1e300)): ([1e-20, 1.0, 1e300], [0.4666666666666666, 0.5, 1.0]),
    ("loguniform", "sf", (1e-5, 1e5)): ([1e-5, 1.0, 1e5], [1.0, 0.5, 0.0]),
    ("skewnorm", "logpdf", (0.0,)): ([-math.inf, math.inf, 0.0], [-math.inf, -math.inf, -0.9189385332046728]),
    ("skewnorm", "pdf", (3.0,)): ([-math.inf, math.inf], [0.0, 0.0]),
    ("truncnorm", "sf", (0.0, math.inf)): ([1e300, math.inf], [0.0, 0.0]),
    ("truncnorm", "cdf", (-math.inf, math.inf)): ([-math.inf, -1e300, 0.0], [0.0, 0.0, 0.5]),
    ("truncnorm", "logcdf", (-math.inf, -30.0)): ([-math.inf, -1e300], [-math.inf, -math.inf]),
    ("poisson", "cdf", (0.0,)): ([math.nan, 1.0], [math.nan, 1.0]),
}  # fmt: skip
"""Places and results where squares, ratios or differences were infinite or NaN."""


@pytest.mark.parametrize(("name", "method", "shapes"), FAR)
def test_far_places(name: str, method: str, shapes: tuple[float, ...]) -> None:
    places, want = FAR[name, method, shapes]
    function = getattr(getattr(tj.stats, name), method)
    replayed = dlaccelerate(lambda x: function(x, *shapes))
    for run in (lambda x: function(x, *shapes), replayed, replayed):
        np.testing.assert_allclose(tj.extractdata(run(np.array(places))), want, rtol=1e-13, atol=0)


def log_t_tail(x: Any, n: float) -> Any:
    """Return the logarithm of `sf` of Student's distribution, by mpmath's integral of the density."""
    z, df = mp.mpf(x), mp.mpf(n)

    def log_density(t: Any) -> Any:
        return mp.log1p(t * t / df) * (df + 1) / -2

    decay = (df + z * z) / ((df + 1) * z)
    ends = [0, *(decay * 4**k for k in range(4)), decay * 1000]
    mass = mp.quad(lambda t: mp.exp(log_density(z + t) - log_density(z)), ends)
    factor = mp.loggamma((df + 1) / 2) - mp.loggamma(df / 2) - mp.log(df * mp.pi) / 2
    return factor + log_density(z) + mp.log(mass)


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("df", [700.0, 1e4, 1e6, 1e10, 1e20])
def test_tails_of_t_with_many_degrees_of_freedom(df: float) -> None:
    """From underflow on, n was dropped in n / (n + z^2): the logarithm was off, or even positive."""
    t: Any = tj.stats.t
    for x in (36.0, 40.0, 60.0, 1e3, 1e5):
        with mp.workdps(40):
            want = log_t_tail(x, df)
            step = mp.mpf(x) * mp.mpf(10) ** -12
            above, below = (log_t_tail(mp.mpf(x) + h, df) for h in (step, -step))
            slope = float((above - below) / (2 * step))
        for sign, function in ((1.0, t.logsf), (-1.0, t.logcdf)):

            def pair(z: Any, function: Any = function) -> Any:
                y = function(z, df)
                return y, tj.dlgradient(y, z)

            replayed = dlaccelerate(pair)
            for run in (lambda z, pair=pair: tj.dlfeval(pair, z), replayed, replayed):
                value, by_x = run(np.array(sign * x))
                assert abs(value.item() / float(want) - 1) < 1e-12, (x, sign)
                assert abs(by_x.item() / (sign * slope) - 1) < 1e-9, (x, sign)
        narrow = t.logsf(np.float32(x), np.float32(df))
        np.testing.assert_allclose(narrow.item(), float(want), rtol=1e-5)


def test_t_of_infinitely_many_degrees_is_normal() -> None:
    """All but cdf, sf and quantiles was NaN."""
    x = np.array([-math.inf, -1e200, -40.0, -1.0, 0.0, 2.0, 50.0, math.inf])
    t: Any = tj.stats.t
    for df in (math.inf, np.array(math.inf)):
        for method in ("logpdf", "pdf", "cdf", "sf", "logcdf", "logsf"):
            have = getattr(t, method)(x, df)
            want = getattr(tj.stats.norm, method)(x)
            np.testing.assert_allclose(tj.extractdata(have), tj.extractdata(want), rtol=1e-14)
        assert t.var(df).item() == 1.0 and t.entropy(df).item() == tj.stats.norm.entropy().item()
    theirs = scipy.stats.t.var([0.5, 1.0, 1.5, 2.0, 3.0, math.inf])
    have = t.var(np.array([0.5, 1.0, 1.5, 2.0, 3.0, math.inf]))
    np.testing.assert_array_equal(tj.extractdata(have), theirs)


@pytest.mark.sampled
@every_distribution
def test_infinities_and_ends(found: Distribution) -> None:
    """At both ends of a support, and beyond them, there are limits."""
    low, high = support(found)
    limits = {"cdf": (0.0, 1.0), "sf": (1.0, 0.0), "logcdf": (-math.inf, 0.0), "logsf": (0.0, -math.inf)}
    for method, (below, above) in limits.items():
        have = tj.extractdata(getattr(found, method)(np.array([-math.inf, math.inf]), *shapes_of(found)))
        np.testing.assert_array_equal(have, [below, above], err_msg=method)
        if not found.is_discrete:
            have = tj.extractdata(getattr(found, method)(np.array([low, high]), *shapes_of(found)))
            np.testing.assert_array_equal(have, [below, above], err_msg=f"{method} at the ends")
        assert np.isnan(getattr(found, method)(np.array(np.nan), *shapes_of(found)).item())
    density = found.logpmf if found.is_discrete else found.logpdf
    have = tj.extractdata(density(np.array([-math.inf, math.inf, np.nan]), *shapes_of(found)))
    np.testing.assert_array_equal(have, [-math.inf, -math.inf, np.nan])


@pytest.mark.sampled
@pytest.mark.parametrize("found", [f for f in FOUND if "ppf" in f.formulas], ids=lambda found: found.name)
def test_quantiles_are_places_of_their_probability(found: Distribution) -> None:
    for q in (1e-100, 1e-20, 1e-9, 0.2, 0.5, 0.8, 1 - 1e-9, 1 - 1e-12):
        for method, side, other in (("ppf", "cdf", "sf"), ("isf", "sf", "cdf")):
            x = getattr(found, method)(q, *shapes_of(found)).item()
            low, high = support(found)
            if x in (low, high):  # the nearest number of the support
                continue
            # As 1 - q is exact, the smaller side is compared; a place is right to a few units of its last digit.
            wanted, compared = (q, side) if q <= 0.5 else (1 - q, other)
            have = exact(found.name, compared, x, shapes_of(found))
            units = abs(x) * found.pdf(x, *shapes_of(found)).item() / wanted * 2e-15
            limit = (LESS_OF_QUANTILES.get(found.name, 2e-12) + units) * wanted
            assert abs(have - wanted) <= limit, (method, q, x, have)


def slopes(found: Distribution, method: str, x: float) -> list[float]:
    """Return the derivatives by the variable and the shapes."""
    arrays = [np.array(part, float) for part in (x, *shapes_of(found))]

    def gradients(*given: Any) -> Any:
        return tj.dlgradient(getattr(found, method)(*given), given)

    return [part.item() for part in tj.dlfeval(gradients, *arrays)]


WHOLE = {"binom": (1,)}
"""Shapes that are integers."""


@pytest.mark.slow
@every_distribution
def test_derivatives_by_the_variable_and_all_shapes(found: Distribution) -> None:
    low, high = support(found)
    x = [float(part) for part in inside(found) if 1e-30 < abs(part) < 1e3 and low < part < high]
    for at in effort.sample(x, found.name, share=3):
        for method in METHODS:
            have = slopes(found, method, at)
            for wrt, slope in enumerate(have):
                if (wrt == 0 and found.is_discrete) or wrt in WHOLE.get(found.name, ()):
                    continue
                if method.startswith("log") and abs(exact(found.name, method, at, shapes_of(found))) > 1e4:
                    continue  # differences of what is too small
                want = exact_slope(found.name, method, at, shapes_of(found), wrt)
                near = max(1e-9, 100 * LESS.get(found.name, 0)) * abs(want) + 1e-150
                if method in ("cdf", "sf"):  # which are rounded where they are near 1
                    near += 4e-16 * max(abs(at), 1.0 / abs(at))
                assert abs(slope - want) <= near, (method, at, wrt, slope, want)


@pytest.mark.slow
@every_distribution
def test_replays_and_float32(found: Distribution) -> None:
    x = inside(found)
    x = x[np.abs(x) < 1e6]
    shapes = [np.array(shape) for shape in shapes_of(found)]
    for method in ("logcdf", "logsf"):

        def pair(x: Any, *shapes: Any, method: str = method) -> Any:
            y = getattr(found, method)(x, *shapes)
            by = [p for p in shapes if found.name != "binom" or p is not shapes[0]]
            return y, tj.dlgradient(y[len(x) // 2], by) if by else ()

        want = tj.dlfeval(pair, x, *shapes)
        step = dlaccelerate(pair)
        for _ in range(3):
            have = step(x, *shapes)
        np.testing.assert_allclose(tj.extractdata(have[0]), tj.extractdata(want[0]), rtol=1e-12)
        for p, q in zip(have[1], want[1], strict=True):
            np.testing.assert_allclose(p.item(), q.item(), rtol=1e-11)
        narrow = np.float32(x)
        have = getattr(found, method)(dlarray(narrow), *[np.float32(shape) for shape in shapes])
        assert have.dtype == np.float32
        exactly = [
            exact(found.name, method, float(at), tuple(float(np.float32(shape)) for shape in shapes))
            for at in narrow
            if within(found, float(at))
        ]
        have = tj.extractdata(have)[[within(found, float(at)) for at in narrow]]
        rtol = 1e-4 if found.name in LESS else 2e-5
        rounded = np.array(exactly).astype(np.float32)
        np.testing.assert_allclose(have, rounded, rtol=rtol, atol=1e-37, err_msg=method)


def within(found: Distribution, x: float) -> bool:
    low, high = support(found)
    return float(np.float32(low)) < x < float(np.float32(high))
