# SPDX-License-Identifier: BSD-3-Clause
"""Fits of science and engineering, written as for NumPy and SciPy: values by NumPy, gradients by differences."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.interpolate
import scipy.signal

import tracejit as tj

pytestmark = pytest.mark.slow
RNG = np.random.default_rng(16)


def rotated(angles: Any, points: Any) -> Any:
    """Return points turned by the vector of an axis, as long as the angle (the formula of Rodrigues)."""
    angle = np.sqrt((angles**2).sum(-1, keepdims=True) + 1e-12)
    axis = angles / angle
    c, s = np.cos(angle), np.sin(angle)
    along = (axis * points).sum(-1, keepdims=True)
    return points * c + np.cross(axis, points) * s + axis * along * (1 - c)


SEEN = RNG.integers(0, 4, 24), RNG.integers(0, 9, 24)
PIXELS = RNG.normal(size=(24, 2))


def bundle_adjustment(cameras: Any, points: Any) -> Any:
    """Return the squared errors of pixels: cameras are angles, a place, a focal length and two distortions."""
    camera, point = cameras[SEEN[0]], points[SEEN[1]]
    local = rotated(camera[:, :3], point) + camera[:, 3:6]
    flat = local[:, :2] / (local[:, 2:] + 6.0)
    radius = (flat**2).sum(1, keepdims=True)
    distorted = flat * (1 + camera[:, 7:8] * radius + camera[:, 8:9] * radius**2)
    return ((camera[:, 6:7] * distorted - PIXELS) ** 2).sum()


BONES = np.array([0, 0, 1, 2, 1, 4])  # the bone that each bone begins at
LENGTHS = np.array([0.0, 2.0, 1.0, 0.7, 1.1, 0.6])
TIPS = RNG.normal(size=(2, 3))


def hand(pose: Any) -> Any:
    """Return the squared distances of two fingertips to their targets."""
    turns, places = [np.eye(3)], [pose[0]]
    for bone in range(1, len(BONES)):
        before = BONES[bone]
        turn = turns[before] @ rotated(pose[bone], np.eye(3)).T
        turns.append(turn)
        places.append(places[before] + turn @ np.array([LENGTHS[bone], 0.0, 0.0]))
    return ((np.stack([places[3], places[5]]) - TIPS) ** 2).sum()


MEASURED = RNG.normal(size=12).cumsum()


def kalman_smoother(logs: Any) -> Any:
    """Return minus the logarithm of the likelihood of a moving particle, and the errors of its smoothed places."""
    f, h = np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[1.0, 0.0]])
    q = np.exp(logs[0]) * np.array([[0.01, 0.05], [0.05, 1.0]])
    r = np.exp(logs[1])
    x, p, loss, kept = np.zeros(2), np.eye(2), 0.0, []
    for z in MEASURED:
        before, spread = f @ x, f @ p @ f.T + q
        s = (h @ spread @ h.T)[0, 0] + r
        gain = (spread @ h.T)[:, 0] / s
        error = z - before[0]
        x = before + gain * error
        p = spread - np.outer(gain, h @ spread)
        loss = loss + 0.5 * (np.log(s) + error**2 / s)
        kept.append((x, p, before, spread))
    x, smoothed = kept[-1][0], [kept[-1][0][0]]
    for (own, p, _, _), (_, _, before, spread) in zip(kept[-2::-1], kept[:0:-1], strict=True):
        x = own + p @ f.T @ np.linalg.solve(spread, x - before)
        smoothed.append(x[0])
    return loss + ((np.stack(smoothed[::-1]) - MEASURED) ** 2).mean()


@pytest.mark.parametrize(
    ("loss", "x"),
    [
        (lambda x: bundle_adjustment(x[:36].reshape(4, 9), x[36:].reshape(9, 3)), RNG.normal(size=63) * 0.3),
        (lambda x: hand(x.reshape(6, 3)), RNG.normal(size=18) * 0.5),
        (kalman_smoother, np.array([0.3, -0.5])),
    ],
    ids=["bundle adjustment", "hand", "Kalman smoother"],
)
def test_a_program_of_numpy(loss: Callable[[Any], Any], x: np.ndarray) -> None:
    check(loss, loss, x)


KNOTS, TIMES = np.array([0.0, 0.7, 1.5, 2.9, 4.0]), np.linspace(0.05, 3.95, 40)
SAMPLES = np.sin(2 * TIMES) + 0.1 * RNG.normal(size=40)


def spline_fit(interpolate: Any) -> Callable[[Any], Any]:
    """Return the squared errors of a spline by its heights and inner knots, and what it costs to bend it."""

    def loss(x: Any) -> Any:
        inner = KNOTS[1:-1] + 0.1 * np.tanh(x[5:])
        curve = interpolate.CubicSpline(
            np.concatenate([KNOTS[:1], inner, KNOTS[-1:]]), x[:5], bc_type="natural"
        )
        return ((curve(TIMES) - SAMPLES) ** 2).sum() + 1e-3 * (curve(TIMES, 2) ** 2).sum()

    return loss


BLURRED = RNG.normal(size=60)


def deconvolution(signal: Any) -> Callable[[Any], Any]:
    """Return the squared errors of a blurred signal, by the signal and the blur."""

    def loss(x: Any) -> Any:
        found = signal.fftconvolve(x[:60], np.exp(x[60:]), mode="same")
        return ((found - BLURRED) ** 2).sum() + 0.1 * (np.diff(x[:60]) ** 2).sum()

    return loss


@pytest.mark.parametrize(
    ("loss", "scipys", "x"),
    [
        (spline_fit(tj.interpolate), spline_fit(scipy.interpolate), RNG.normal(size=8)),
        (deconvolution(tj.signal), deconvolution(scipy.signal), RNG.normal(size=69)),
    ],
    ids=["spline", "deconvolution"],
)
def test_a_program_of_scipy(loss: Callable[[Any], Any], scipys: Callable[[Any], Any], x: np.ndarray) -> None:
    check(loss, scipys, x)


def check(loss: Callable[[Any], Any], oracle: Callable[[Any], Any], x: np.ndarray) -> None:
    """Compare replays with NumPy and SciPy, gradients with differences, and descend along a gradient."""
    step = tj.dlaccelerate(lambda x: (loss(x), tj.dlgradient(loss(x), x)))
    for _ in range(4):
        value, gradient = step(x)
    assert step.stats.hits > 0
    np.testing.assert_allclose(float(value), oracle(x), rtol=1e-10)
    slope = tj.extractdata(gradient)
    for direction in RNG.normal(size=(2, x.size)):
        near = [oracle(x + k * 1e-5 * direction) for k in (-2, -1, 1, 2)]
        want = (8 * (near[2] - near[1]) - near[3] + near[0]) / 12e-5
        np.testing.assert_allclose(slope @ direction, want, rtol=1e-6)
    assert oracle(x - 1e-4 * slope / np.linalg.norm(slope)) < oracle(x)
