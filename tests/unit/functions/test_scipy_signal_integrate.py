# SPDX-License-Identifier: BSD-3-Clause
"""tj.signal's filters and tj.integrate against SciPy, with derivatives of first and second order, in replays."""

from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.signal
from accelerated import dlaccelerate

import tracejit as tj

RNG = np.random.default_rng(0)
NAMES = ("X", "b", "a", "I", "K", "t", "sos")
VALUES = (
    RNG.normal(size=(3, 16)), RNG.normal(size=3), np.array([1.5, 0.3, -0.2, 0.1]), RNG.normal(size=(6, 7)),
    RNG.normal(size=(4, 3)), np.cumsum(RNG.uniform(0.1, 1, 16)),
    np.array([[1.0, 0.5, 0.2, 1.0, -0.3, 0.1], [0.3, 0.2, 0.1, 1, 0.2, 0.3]]),
)  # fmt: skip
CALLS = """
S.lfilter(b, a, X) | S.lfilter(b, a, X.T, axis=0) | S.lfilter(b, a[:1], X) | S.lfilter(b[:1], a, X[0])
S.sosfilt(sos, X) | S.detrend(X) | S.detrend(X.T, axis=0) | S.detrend(X, type="constant") | S.hilbert(X).imag
S.hilbert(X, N=15).imag | S.hilbert(X, N=20).imag | S.resample(X, 20, axis=1) | S.resample(X, 10, axis=1)
S.resample(X[:, :15], 8, axis=1) | S.resample(X, 9, axis=1) | S.resample(X, 32, axis=1) | S.resample(X, 5)
S.convolve2d(I, K) | S.convolve2d(I, K, "same", boundary="wrap") | S.convolve2d(I, K, "full", boundary="symm")
S.convolve2d(I, K, "full", fillvalue=2.0) | S.convolve2d(I, K, "valid") | S.correlate2d(I, K, "same")
S.correlate2d(I, K) | S.correlate2d(I, K, "same", boundary="symm")
S.correlate2d(I, K[:3, :2], "same", boundary="wrap")
N.trapezoid(X) | N.trapezoid(X, t) | N.trapezoid(X.T, t, axis=0) | N.simpson(X, x=t) | N.simpson(X[:, :15], x=t[:15])
N.simpson(X) | N.simpson(X[:, :15], dx=0.3) | N.simpson(X[:, :2]) | N.simpson(X[:, :4], x=t[:4])
N.cumulative_trapezoid(X, t) | N.cumulative_trapezoid(X.T, t, axis=0, initial=0) | N.romb(X[:, :9], dx=0.2)
N.romb(X[:, :9].T, axis=0) | N.romb(X[:, :2])
"""
ROWS = [row.strip() for row in CALLS.replace("|", "\n").splitlines() if row.strip()]


def computed(row: str, signal: Any, integrate: Any, values: Any) -> Any:
    return eval(row, {"S": signal, "N": integrate, **dict(zip(NAMES, values, strict=True))})


def ours(row: str, values: Any) -> Any:
    return computed(row, tj.signal, tj.integrate, values)


@pytest.mark.sampled
@pytest.mark.parametrize("row", ROWS)
def test_values_are_those_of_scipy(row: str) -> None:
    want = np.asarray(computed(row, scipy.signal, scipy.integrate, VALUES))
    step = dlaccelerate(lambda *values: ours(row, values))
    for have in (ours(row, tuple(map(tj.dlarray, VALUES))), *(step(*VALUES) for _ in range(3))):
        assert have.dtype == want.dtype
        np.testing.assert_allclose(tj.extractdata(have), want, rtol=1e-10, atol=1e-11)
    assert step.stats.hits > 0
    narrow = tuple(x.astype(np.float32) for x in VALUES)
    assert ours(row, narrow).dtype == np.asarray(computed(row, scipy.signal, scipy.integrate, narrow)).dtype


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS)
def test_derivatives(row: str) -> None:
    by = [RNG.normal(size=x.shape) for x in VALUES]
    by[-1][:, 3] = 0.0  # which is 1

    def loss(*values: Any) -> Any:
        y = ours(row, values)
        return (np.sin(y) * y).sum()

    def along(f: Any) -> Any:
        return lambda *values: sum(
            (g * d).sum() for g, d in zip(tj.dlgradient(f(*values), values), by, strict=True)
        )

    for f in (loss, along(loss)):
        near = [
            tj.dlfeval(f, *[x + k * 1e-4 * d for x, d in zip(VALUES, by, strict=True)]).item()
            for k in (-2, -1, 1, 2)
        ]
        want = (8 * (near[2] - near[1]) - near[3] + near[0]) / 12e-4
        assert abs(tj.dlfeval(along(f), *VALUES).item() - want) <= 2e-6 * max(1.0, abs(want))
