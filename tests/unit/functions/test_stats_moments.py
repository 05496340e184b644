# SPDX-License-Identifier: BSD-3-Clause
"""Moments of tj.stats where differences cancel or numbers underflow, with mpmath's integrals beside."""

import math
from typing import Any

import numpy as np
import pytest
from accelerated import dlaccelerate
from mpmath import mp, mpf

import tracejit as tj

BOUNDS = [
    (8.0, 10.0), (7.0, 9.0), (20.0, 25.0), (30.0, math.inf), (38.0, 40.0), (1e3, math.inf), (1e10, 1e10 + 2**-17),
    (4.4, math.inf), (4.6, math.inf), (2.0, 30.0), (1.0, 1.001), (-0.001, 0.002), (0.0, 1e-8), (-1.0, 2.0),
    (0.0, math.inf), (-3.0, 20.0), (-math.inf, math.inf), (-9.0, 12.0),
]  # fmt: skip
"""Intervals, right ones, short ones and some around 0; the tests mirror them."""


def truncnorm(a: Any, b: Any) -> list[Any]:
    """Return the mean, the variance and the entropy of the normal distribution between two numbers of mpmath."""
    mode = min(max(a, mpf(0)), b)
    reach = 100 / max(abs(mode), mpf(10))
    low, high = max(a, mode - reach), min(b, mode + reach)
    ends = [low + (high - low) * k / 8 for k in range(9)]

    def integral(value: Any) -> Any:
        return mp.quad(lambda x: value(x) * mp.exp((mode - x) * (mode + x) / 2), ends)

    mass = integral(lambda x: 1)
    mean = integral(lambda x: x) / mass
    var = integral(lambda x: (x - mean) ** 2) / mass
    return [mean, var, mp.log(mass) + integral(lambda x: (x - mode) * (x + mode) / 2) / mass]


@pytest.mark.slow
@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_truncnorm(bounds: tuple[float, float]) -> None:
    """Far to the right differences of probabilities near 1 were wrong, and NaN from 38 on."""
    with mp.workdps(45):
        exact = [mpf(bound) for bound in bounds]
        want = truncnorm(*exact)
        step = mpf(10) ** -9 * (exact[1] - exact[0] if mp.isfinite(exact[1] - exact[0]) else 1)
        above, below = [], []
        for place in range(2):
            for side, found in ((step, above), (-step, below)):
                found.append(truncnorm(*[x + side * (k == place) for k, x in enumerate(exact)]))
        slopes = [
            [(p - q) / (2 * step) for p, q in zip(*both, strict=True)]
            for both in zip(above, below, strict=True)
        ]
    for at, name in enumerate(("mean", "var", "entropy")):

        def pair(a: Any, b: Any, name: str = name) -> Any:
            y = getattr(tj.stats.truncnorm, name)(a, b)
            return y, tj.dlgradient(y, [a, b])

        replayed = dlaccelerate(pair)
        by = [float(slope[at]) for slope in slopes]
        sign = -1.0 if name == "mean" else 1.0  # of the moment of the mirrored distribution
        for run in (lambda *given, pair=pair: tj.dlfeval(pair, *given), replayed, replayed):
            value, gradient = run(*map(np.array, bounds))
            mirrored, back = run(np.array(-bounds[1]), np.array(-bounds[0]))
            # A mean near 0 is a sum of parts on both sides.
            have = [value.item(), sign * mirrored.item()]
            np.testing.assert_allclose(have, [float(want[at])] * 2, rtol=1e-12, atol=1e-15, err_msg=name)
            np.testing.assert_allclose([x.item() for x in gradient], by, rtol=1e-9, atol=1e-13, err_msg=name)
            have = [-sign * x.item() for x in reversed(back)]
            np.testing.assert_allclose(have, by, rtol=1e-9, atol=1e-13, err_msg=name)


@pytest.mark.sampled
@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_truncnorm_of_float32(bounds: tuple[float, float]) -> None:
    a, b = (np.float32(bound) for bound in bounds)
    if a == b:
        return
    with mp.workdps(45):
        want = truncnorm(mpf(float(a)), mpf(float(b)))
    found: Any = tj.stats.truncnorm
    for value, exact in zip((found.mean(a, b), found.var(a, b), found.entropy(a, b)), want, strict=True):
        assert value.dtype == np.float32
        np.testing.assert_allclose(value.item(), float(exact), rtol=1e-5, atol=1e-6)


def test_of_float32_beside_numbers() -> None:
    """The logarithm of a scale that is a number made float64 of float32."""
    x = tj.dlarray(np.float32([0.5, 2.0]))
    assert tj.stats.norm.logpdf(x, 0.0, 2.0).dtype == np.float32
    assert tj.stats.norm.logpdf(x, x, 3).dtype == tj.stats.gamma.entropy(x, scale=2.0).dtype == np.float32
    for scale in (2, 2.0, np.array(2.0)):
        np.testing.assert_allclose(tj.stats.expon.entropy(0, scale).item(), 1.0 + math.log(2.0), rtol=1e-15)
        np.testing.assert_allclose(tj.stats.expon.logpdf(0.0, 0, scale).item(), -math.log(2.0), rtol=1e-15)
    assert math.isnan(tj.stats.expon.entropy(0, -1.0).item())
