# SPDX-License-Identifier: BSD-3-Clause
"""Splines of any degree, Akima's, and interp1d, against scipy.interpolate: values, derivatives, ends, gradients."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.interpolate

import tracejit as tj

RNG = np.random.default_rng(5)
AT = np.array([[-0.7, 0.0, 0.3, 1.1], [2.0, 2.45, np.nan, 6.5]])


def places(n: int) -> np.ndarray:
    return np.cumsum(RNG.uniform(0.3, 1.0, n)) - 0.5


def check(have: Any, want: Any, near: float = 1e-10) -> None:
    want = np.asarray(want)
    assert have.shape == want.shape
    scale = float(np.nanmax(np.abs(want), initial=1.0)) if want.size else 1.0
    np.testing.assert_allclose(tj.extractdata(have), want, rtol=near, atol=near * scale)


def check_slopes(fun: Callable[..., Any], scipys: Callable[..., Any], *operands: np.ndarray) -> None:
    """Compare gradients by all operands with differences of SciPy's function, and replays with the first call."""
    weights = RNG.normal(size=np.shape(scipys(*operands)))
    loss = lambda *operands: (fun(*operands) * weights).sum()
    step = tj.dlaccelerate(lambda *operands: (loss(*operands), tj.dlgradient(loss(*operands), operands)))
    for _ in range(3):
        value, slopes = step(*operands)
    assert step.stats.hits == 1
    assert float(value) == pytest.approx((scipys(*operands) * weights).sum(), rel=1e-9)
    for number, slope in enumerate(slopes):
        along, h = RNG.normal(size=operands[number].shape), 1e-5

        def at(h: float) -> float:
            moved = [x + h * along if i == number else x for i, x in enumerate(operands)]  # noqa: B023
            return float((scipys(*moved) * weights).sum())

        want = (8 * (at(h) - at(-h)) - at(2 * h) + at(-2 * h)) / (12 * h)
        assert (np.asarray(slope) * along).sum() == pytest.approx(want, rel=1e-5, abs=1e-6)


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("k", range(6))
@pytest.mark.parametrize("n", [6, 7, 12])
def test_splines_through_values(n: int, k: int) -> None:
    x, y = places(n), RNG.normal(size=(2, n, 3))
    theirs = scipy.interpolate.make_interp_spline(x, y, k, axis=1)
    ours = tj.interpolate.make_interp_spline(x, y, k, axis=1)
    check(ours.t, theirs.t)
    check(ours.c, np.moveaxis(theirs.c, theirs.axis, 0) if ours.c.shape[0] != theirs.c.shape[0] else theirs.c)
    for points in (AT, 1.0, x, np.zeros(0)):
        for nu in range(k + 2):
            check(ours(points, nu), theirs(points, nu))
        check(ours(points, extrapolate=False), theirs(points, extrapolate=False))
    check(ours.derivative()(AT), theirs(AT, 1) if not k else theirs.derivative()(AT))
    if k in (1, 2, 3, 5):
        inner = np.linspace(x[0] + 0.05, x[-1] - 0.05, 9)
        check_slopes(
            lambda x, y, at: tj.interpolate.make_interp_spline(x, y, k)(at),
            lambda x, y, at: scipy.interpolate.make_interp_spline(x, y, k)(at), x, y[0, :, 0], inner,
        )  # fmt: skip


def test_a_spline_of_knots_and_coefficients() -> None:
    t, c = np.array([0.0, 0, 0, 0.5, 1, 1, 2, 3, 3, 3]), RNG.normal(size=(9, 2))
    for k, way in ((2, True), (2, False), (2, "periodic"), (1, True), (3, True)):
        theirs = scipy.interpolate.BSpline(t, c, k, extrapolate=way)
        ours = tj.interpolate.BSpline(t, c, k, extrapolate=way)
        for nu in (0, 1, 2):
            check(ours(AT, nu), theirs(AT, nu))
    at = np.array([0.1, 0.7, 1.3, 2.9])
    made = lambda package: lambda c, at: package.BSpline(t, c, 2)(at)
    check_slopes(made(tj.interpolate), made(scipy.interpolate), c[:7], at)
    x, y = np.array([0.0, 1, 2, 3, 4]), RNG.normal(size=5)
    own = np.array([0.0, 0, 0, 0, 2, 4, 4, 4, 4])
    want = scipy.interpolate.make_interp_spline(x, y, t=own)
    check(tj.interpolate.make_interp_spline(x, y, t=own)(AT), want(AT))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["akima", "makima"])
@pytest.mark.parametrize("n", [2, 3, 5, 9])
def test_akima(n: int, method: Any) -> None:
    x, y = places(n), RNG.normal(size=(n, 2))
    y[n // 2 :, 1] = y[n // 2, 1]  # equal values, where weights are 0
    for way in (None, True, False):
        theirs = scipy.interpolate.Akima1DInterpolator(x, y, method=method, extrapolate=way)
        ours = tj.interpolate.Akima1DInterpolator(x, y, method=method, extrapolate=way)
        for nu in (0, 1, 2):
            check(ours(AT, nu), theirs(AT, nu))
    if n > 2:
        at = np.linspace(x[0] + 0.05, x[-1] - 0.05, 7)
        check_slopes(
            lambda x, y, at: tj.interpolate.Akima1DInterpolator(x, y, method=method)(at),
            lambda x, y, at: scipy.interpolate.Akima1DInterpolator(x, y, method=method)(at), x, y[:, 0], at,
        )  # fmt: skip


KINDS = ["linear", "nearest", "nearest-up", "previous", "next", "zero", "slinear", "quadratic", "cubic", 4]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_interp1d(kind: Any) -> None:
    x, y = places(8), RNG.normal(size=(2, 8))
    order = RNG.permutation(8)
    inside = np.array([[x[0], x[3], (x[4] + x[5]) / 2], [x[-1], x[2] + 0.01, x[0] + 0.02]])
    options: list[dict[str, Any]] = [{}, {"bounds_error": False}]
    options += [{"bounds_error": False, "fill_value": fill} for fill in (3.5, (-1.0, 1.0))]
    options += [{"fill_value": "extrapolate"}] if kind != "zero" else []
    for some in options:
        theirs = scipy.interpolate.interp1d(x[order], y[:, order], kind, **some)
        ours = tj.interpolate.interp1d(x[order], y[:, order], kind, **some)
        check(ours(inside), theirs(inside))
        if some:
            check(ours(AT), theirs(AT))
    theirs = scipy.interpolate.interp1d(x, y.T, kind, axis=0, assume_sorted=True)
    check(tj.interpolate.interp1d(x, y.T, kind, axis=0, assume_sorted=True)(inside), theirs(inside))
    with pytest.raises(ValueError, match="interp1d: a point lies outside of the places x"):
        tj.interpolate.interp1d(x, y, kind)(x[-1] + 1)
    at = np.linspace(x[0] + 0.03, x[-1] - 0.04, 5)
    check_slopes(
        lambda y, at: tj.interpolate.interp1d(x, y, kind)(at),
        lambda y, at: scipy.interpolate.interp1d(x, y, kind)(at), y, at,
    )  # fmt: skip
