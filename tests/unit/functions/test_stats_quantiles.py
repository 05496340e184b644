# SPDX-License-Identifier: BSD-3-Clause
"""Quantiles of tiny probabilities of distributions without a formula for them, against mpmath's probabilities there."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from accelerated import dlaccelerate
from mpmath import mp, mpf

import tracejit as tj


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):
        yield


def integral(density: Callable[[Any], Any], start: Any, decay: Any, end: Any) -> Any:
    """Return the integral of a density that decays over a length; mpmath ends where what it adds is small beside 1."""
    peak = density(start)
    places = [start + decay * 4**k for k in range(4)] + [start + decay * 150]
    return peak * mp.quad(lambda t: density(t) / peak, [start, *[min(place, end) for place in places]])


def skewnorm(x: Any, a: Any) -> Any:
    steep = 1 + max(a, 0) ** 2
    decay = min(1 / (steep * abs(x)), 1 / mp.sqrt(steep))
    return integral(lambda t: 2 * mp.npdf(t) * mp.ncdf(-a * t), -x, decay, mp.inf)


def exponnorm(x: Any, k: Any) -> Any:
    """Return the probability above x."""
    return mp.ncdf(-x) + mp.exp(1 / (2 * k * k) - x / k) * mp.ncdf(x - 1 / k)


def vonmises(x: Any, k: Any) -> Any:
    whole = 2 * mp.pi * mp.besseli(0, k) * mp.exp(-k)
    decay = 1 / max(k * mp.sin(abs(x)), mp.sqrt(k), 1)
    return integral(lambda t: mp.exp(k * (mp.cos(t) - 1)), -x, decay, mp.pi) / whole


def invgauss(x: Any, m: Any) -> Any:
    root = mp.sqrt(x)
    return mp.ncdf((x / m - 1) / root) + mp.exp(2 / m) * mp.ncdf(-(x / m + 1) / root)


def invgauss_above(x: Any, m: Any) -> Any:
    root = mp.sqrt(x)
    return mp.ncdf((1 - x / m) / root) - mp.exp(2 / m) * mp.ncdf(-(x / m + 1) / root)


CASES: list[tuple[str, str, Callable[[Any, Any], Any], tuple[float, ...]]] = [
    ("skewnorm", "ppf", skewnorm, (-10.0, 0.0, 0.5, 2.0, 100.0)),
    ("skewnorm", "isf", lambda x, a: skewnorm(-x, -a), (-10.0, 2.0)),
    ("exponnorm", "isf", exponnorm, (0.01, 0.1, 1.5, 100.0)),
    ("vonmises", "ppf", vonmises, (0.0, 0.1, 2.0, 10.0, 500.0)),
    ("vonmises", "isf", lambda x, k: vonmises(-x, k), (0.1, 10.0, 500.0)),
    ("invgauss", "ppf", invgauss, (0.05, 0.8, 5.0)),
    ("invgauss", "isf", invgauss_above, (0.05, 0.8, 5.0)),
]
Q = np.array([1e-285, 1e-100, 1e-30, 1e-20, 1e-17, 1e-16, 1e-15, 1e-12, 1e-5])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "method", "probability", "shapes"), CASES, ids=[f"{name} {method}" for name, method, *_ in CASES]
)
def test_tiny_probabilities(
    name: str, method: str, probability: Callable[[Any, Any], Any], shapes: tuple[float, ...]
) -> None:
    """Newton's steps from a quantile of SciPy's that is far off ran away, even out of the support."""
    found = getattr(tj.stats, name)
    sign = 1.0 if method == "ppf" else -1.0
    for shape in shapes:

        def pair(q: Any, shape: float = shape) -> Any:
            x = getattr(found, method)(q, shape)
            return x, tj.dlgradient(x.sum(), q)

        replayed = dlaccelerate(pair)
        for run in (lambda q, pair=pair: tj.dlfeval(pair, q), replayed, replayed):
            x, by_q = (np.array(tj.extractdata(part)) for part in run(Q))
            density = np.array(tj.extractdata(found.pdf(x, shape)))
            np.testing.assert_allclose(by_q, sign / density, rtol=1e-7, err_msg=str(shape))
        for at, q, slope in zip(x, Q, density, strict=True):
            if name == "vonmises":
                assert abs(at) <= math.pi
            with mp.workdps(340 if name.startswith("inv") else 25):
                have = probability(mpf(float(at)), mpf(shape))
            # A place is right to a few units of its last digit. The tail of invgauss is a difference.
            near = ((1e-9 if name == "invgauss" else 1e-11) + 1e-15 * abs(at) * slope / q) * q
            assert abs(have - mpf(float(q))) <= near, (shape, q, at, float(have / mpf(float(q)) - 1))


def test_what_ran_away() -> None:
    assert abs(tj.stats.skewnorm.ppf(1e-20, 2.0).item() + 3.98988) < 1e-5
    assert abs(tj.stats.exponnorm.isf(1e-20, 1.5).item() - 1.5 * (20 * math.log(10) + 1 / 4.5)) < 1e-12
    assert 0.4 < tj.stats.vonmises.isf(1e-20, 500.0).item() < 0.45
