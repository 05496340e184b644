# SPDX-License-Identifier: BSD-3-Clause
"""NumPy's functions that have kernels of their own, or chains of them, compiled: numbers and gradients."""

from typing import Any

import numpy as np
import pytest

import tracejit as tj


def of_order(x: Any, n: Any) -> Any:
    """Return what is found by sorting and searching; some of it depends on places that are guarded by their number."""
    values, places, counts = np.unique(n, return_inverse=True, return_counts=True)
    return (
        np.sort(x, axis=0), np.argsort(x, axis=1, kind="stable"), np.searchsorted(np.sort(n), n[::2], side="right"),
        values, places, counts, np.maximum.accumulate(x, axis=0), np.minimum.accumulate(x, axis=1),
        np.cumprod(x, axis=1), np.bincount(abs(n)),
    )  # fmt: skip


@pytest.mark.parametrize("dtype", ["float64", "int16", "bool"])
def test_order(dtype: str) -> None:
    rng = np.random.default_rng(0)
    step = tj.dlaccelerate(of_order, confirm=0, audit=False)
    n = rng.integers(-5, 9, 40)
    for _ in range(3):
        x, n = (2 * rng.normal(size=(30, 7))).astype(dtype), rng.permutation(n)
        for have, want in zip(step(x, n), of_order(x, n), strict=True):
            np.testing.assert_allclose(tj.extractdata(have), want, rtol=1e-14, strict=True)
    assert step.hit_rate > 50


def of_bits(x: Any, y: Any, n: Any, u: Any) -> Any:
    return (
        np.hypot(x, y), np.copysign(x, y), np.nextafter(x, y), np.spacing(x), np.signbit(y), *np.frexp(x), *np.modf(x),
        np.ldexp(x, n), np.fmod(x, y), np.left_shift(n, 3), np.right_shift(n, 1), np.gcd(n, 12),
        np.bitwise_count(u), np.logaddexp(x, y), np.heaviside(x, y), np.deg2rad(x),
    )  # fmt: skip


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_bits(dtype: str) -> None:
    rng = np.random.default_rng(1)
    step = tj.dlaccelerate(of_bits, confirm=0, audit=False)
    for _ in range(2):
        x, y = (rng.normal(size=(2, 50)) * 10.0 ** rng.integers(-20, 20, (2, 50))).astype(dtype)
        n, u = rng.integers(-9, 9, 50), rng.integers(0, 2**63, 50).astype(np.uint64)
        for have, want in zip(step(x, y, n, u), of_bits(x, y, n, u), strict=True):
            eps = np.finfo(want.dtype).eps if want.dtype.kind == "f" else 0
            found = tj.extractdata(have)
            np.testing.assert_allclose(found, want, rtol=8 * eps, atol=8 * eps, strict=True)
    assert step.hit_rate == 50


def loss_of(x: Any, y: Any) -> Any:
    middle = np.median(x) + np.percentile(y, 30) + np.cumprod(1 + 0.1 * y)[-1]
    curve = np.interp(x, np.sort(y), np.cumsum(np.abs(y)))
    return np.trapezoid(np.gradient(curve) ** 2) + middle + np.convolve(x, y[:20], "same").mean()


def test_gradients() -> None:
    rng = np.random.default_rng(2)

    def step(x: Any, y: Any) -> Any:
        loss = loss_of(x, y)
        return loss, tj.dlgradient(loss, [x, y])

    accelerated = tj.dlaccelerate(step, confirm=0, audit=False)
    for _ in range(3):
        x, y = rng.normal(size=(2, 60))
        loss, slopes = accelerated(x, y)
        by = rng.normal(size=(2, 60))
        differences = (loss_of(*((x, y) + 1e-6 * by)) - loss_of(*((x, y) - 1e-6 * by))) / 2e-6
        assert abs(loss.item() - loss_of(x, y)) < 1e-12 * abs(loss.item())
        found = sum((tj.extractdata(slope) * part).sum() for slope, part in zip(slopes, by, strict=True))
        assert abs(found - differences) < 1e-6 * max(1.0, abs(differences))
    assert accelerated.hit_rate > 50
