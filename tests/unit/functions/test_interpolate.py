# SPDX-License-Identifier: BSD-3-Clause
"""tj.interpolate against scipy.interpolate: values, derivatives, integrals, ends, dtypes, replays, gradients."""

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.interpolate
from accelerated import dlaccelerate

import tracejit as tj

RNG = np.random.default_rng(3)
AT = np.array([-0.7, 0.0, 0.3, 1.1, 2.0, 2.45, 3.9, 5.0, 6.5])


def knots(n: int) -> np.ndarray:
    return np.cumsum(RNG.uniform(0.3, 1.5, n)) - 0.5


def check(have: Any, want: Any, near: float = 1e-11) -> None:
    want = np.asarray(want)
    assert have.shape == want.shape
    scale = float(np.nanmax(np.abs(want), initial=1.0))
    np.testing.assert_allclose(tj.extractdata(have), want, rtol=near, atol=near * scale)


def cubic(name: str, package: Any, x: Any, y: Any, **options: Any) -> Any:
    if name == "CubicHermiteSpline":
        return package.CubicHermiteSpline(x, y, np.cos(y) * 2, **options)
    return getattr(package, name)(x, y, **options)


ENDS: list[Any] = [
    "not-a-knot", "natural", "clamped", "periodic", ("natural", "clamped"), ("not-a-knot", "natural"),
    ((1, 0.5), (2, -1.0)),
    ((2, 0.7), "not-a-knot"), ("clamped", "not-a-knot"),
]  # fmt: skip


@pytest.mark.sampled
@pytest.mark.parametrize("n", [2, 3, 4, 5, 9, 33])
@pytest.mark.parametrize("ends", ENDS, ids=str)
def test_splines(ends: Any, n: int) -> None:
    if ends == "periodic" and n == 2:
        pytest.skip("SciPy has no such spline")
    x, y = knots(n), RNG.normal(size=n)
    if ends == "periodic":
        y[-1] = y[0]
    theirs = scipy.interpolate.CubicSpline(x, y, bc_type=ends)
    ours = tj.interpolate.CubicSpline(x, y, bc_type=ends)
    check(ours.c, theirs.c[-ours.c.shape[0] :] if theirs.c.shape == ours.c.shape else ours.c)
    for nu in range(5):
        check(ours(AT, nu), theirs(AT, nu))
    step = dlaccelerate(lambda x, y, at: tj.interpolate.CubicSpline(x, y, bc_type=ends)(at))
    for _ in range(2):
        check(step(x, y, AT), theirs(AT))
    assert step.stats.hits == 1


@pytest.mark.parametrize("name", ["CubicSpline", "PchipInterpolator", "CubicHermiteSpline"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_axes_and_ways(name: str, axis: int) -> None:
    y = RNG.normal(size=(3, 4, 2)).swapaxes(0, axis) if axis else RNG.normal(size=(3, 4, 2))
    x, points = knots(y.shape[axis]), AT[:6].reshape(2, 3)
    theirs = cubic(name, scipy.interpolate, x, y, axis=axis)
    ours = cubic(name, tj.interpolate, x, y, axis=axis)
    check(ours(points), theirs(points))
    check(ours(1.3), theirs(1.3))
    check(ours(points, 2, extrapolate=False), theirs(points, 2, extrapolate=False))
    check(ours(points, extrapolate="periodic"), theirs(points, extrapolate="periodic"))
    check(ours.derivative()(points), theirs.derivative()(points))
    check(ours.antiderivative(2)(points), theirs.antiderivative(2)(points))
    for a, b, way in ((0.2, 1.7, None), (-3.0, 9.0, True), (1.0, 0.1, None), (-4.3, 7.7, "periodic")):
        check(ours.integrate(a, b, way), theirs.integrate(a, b, way))
    assert ours(points[:0]).shape == theirs(points[:0]).shape


def test_complex_values_narrow_numbers_and_nan() -> None:
    x, y = knots(6), RNG.normal(size=(6, 2)) @ [1, 1j]
    check(tj.interpolate.CubicSpline(x, y)(AT), scipy.interpolate.CubicSpline(x, y)(AT))
    narrow = tj.interpolate.CubicSpline(x.astype(np.float32), y.real.astype(np.float32))(
        AT.astype(np.float32)
    )
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(
        tj.extractdata(narrow), scipy.interpolate.CubicSpline(x, y.real)(AT), rtol=2e-3, atol=2e-3
    )
    assert np.isnan(tj.interpolate.CubicSpline([0, 1, 2], [1, 2, 4])([np.nan, 1.0])).tolist() == [True, False]
    assert np.isnan(tj.interpolate.PPoly([[1.0]], [0.0, 1.0])([np.nan])).all()


@pytest.mark.parametrize(
    "values",
    [
        [0, 1, 1, 3, 2, 2.5],
        [1, 2, 4, 8, 9, 30],
        [0, 0, 0, 0, 0, 0],
        [5, 1, 4, 1, 5, 1],
        [1, 2, -9, -8, -8, 0],
    ],
)
def test_monotone_interpolation(values: list[float]) -> None:
    x = knots(6)
    for n in (2, 3, 6):
        theirs = scipy.interpolate.PchipInterpolator(x[:n], values[:n])
        check(tj.interpolate.PchipInterpolator(x[:n], values[:n])(AT), theirs(AT))


@pytest.mark.slow
@pytest.mark.parametrize("ends", ["not-a-knot", "natural", "clamped", ((1, 0.5), (2, -1.0)), None], ids=str)
def test_derivatives(ends: Any) -> None:
    x, y = np.array([0.0, 0.7, 1.5, 2.9, 3.3]), np.array([0.3, 1.0, 1.8, 1.9, 4.0])
    at = np.array([-0.3, 0.2, 1.1, 2.0, 3.1, 4.0])

    def fit(x: Any, y: Any) -> Any:
        if ends is None:
            return tj.interpolate.PchipInterpolator(x, y)
        return tj.interpolate.CubicSpline(x, y, bc_type=ends)

    tj.testing.check_gradients(lambda x, y, at: fit(x, y)(at), x, y, at, order=2)
    tj.testing.check_gradients(
        lambda x, y, b: fit(x, y).integrate(0.1, b) + fit(x, y)(b, 1), x, y, np.array(2.2)
    )


@pytest.mark.slow
def test_derivatives_of_a_periodic_spline() -> None:
    x, y = np.array([0.0, 0.7, 1.5, 2.9, 3.3]), np.array([0.3, 1.0, 1.8, 1.9])

    def curve(x: Any, y: Any, at: Any) -> Any:
        return tj.interpolate.CubicSpline(x, np.concatenate([y, y[:1]]), bc_type="periodic")(at)

    tj.testing.check_gradients(curve, x, y, np.array([-0.3, 0.2, 4.1, 3.1]), order=2)


GRIDS = (np.array([0.0, 0.4, 1.5, 2.0]), np.array([-1.0, 0.0, 2.0]), np.array([0.0, 1.0]))


@pytest.mark.parametrize("method", ["linear", "nearest"])
@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("more", [(), (2,)], ids=str)
def test_grids(d: int, method: str, more: tuple[int, ...]) -> None:
    grid = GRIDS[:d]
    values = RNG.normal(size=(*[len(x) for x in grid], *more))
    xi = np.stack([RNG.uniform(x[0], x[-1], (5, 2)) for x in grid], -1)
    outside = np.stack([RNG.uniform(x[0] - 1, x[-1] + 1, 40) for x in grid], -1)
    theirs = scipy.interpolate.RegularGridInterpolator(grid, values, method)
    ours = tj.interpolate.RegularGridInterpolator(grid, values, method)
    check(ours(xi), theirs(xi))
    check(ours(xi, method="nearest"), theirs(xi, method="nearest"))
    parts = tuple(np.moveaxis(xi, -1, 0))
    check(ours(parts), theirs(parts if d > 1 else xi))
    nodes = np.stack([x[[0, -1, 1]] for x in grid], -1)
    check(ours(nodes), theirs(nodes))
    for fill in (np.nan, None, -5.0):
        options = {"method": method, "bounds_error": False, "fill_value": fill}
        check(
            tj.interpolate.interpn(grid, values, outside, **options),
            scipy.interpolate.RegularGridInterpolator(grid, values, **options)(outside),
        )
    step = dlaccelerate(lambda v, xi: tj.interpolate.interpn(grid, v, xi, method))
    for _ in range(2):
        check(step(values, xi), theirs(xi))
    assert step.stats.hits == 1
    with pytest.raises(tj.ArgumentError, match="lies outside of the grid"):
        step(values, xi + 9.0)
    if method == "linear":
        tj.testing.check_gradients(lambda v, xi: tj.interpolate.interpn(grid, v, xi), values, xi)


@pytest.mark.parametrize("method", ["linear", "nearest"])
@pytest.mark.parametrize("fill", [None, np.nan, 7.0])
def test_grids_whose_places_decrease_and_points_that_are_nan(method: str, fill: Any) -> None:
    grid = (np.array([3.0, 1.0, 0.0, -2.0]), np.array([-1.0, 0.5, 2.0]))
    values = RNG.normal(size=(4, 3, 2))
    first = [0.5, 2.0, -1.0, 3.0, -2.0, 9.0, np.nan, 0.2]
    xi = np.stack([first, [0.1, -0.25, 1.25, 2.0, 0.5, 0.0, 0.0, np.nan]], -1)
    options = {"method": method, "bounds_error": False, "fill_value": fill}
    want = scipy.interpolate.RegularGridInterpolator(grid, values, **options)(xi)
    step = dlaccelerate(lambda a, b, v, xi: tj.interpolate.interpn((a, b), v, xi, **options))
    for have in (
        tj.interpolate.interpn(grid, values, xi, **options),
        *[step(*grid, values, xi) for _ in range(3)],
    ):
        check(have, want)
    # The trace holds for places in either order.
    check(step(grid[0][::-1].copy(), grid[1], values[::-1].copy(), xi), want)
    with pytest.raises(tj.ArgumentError, match="or is NaN"):
        tj.interpolate.interpn(grid, values, xi[-1:], method)


def test_values_of_float32_at_places_of_float64() -> None:
    x, y = knots(9), RNG.normal(size=9).astype(np.float32)
    for name in ("CubicSpline", "PchipInterpolator", "Akima1DInterpolator"):
        theirs, ours = (getattr(package, name)(x, y) for package in (scipy.interpolate, tj.interpolate))
        check(ours(AT[1:4]), theirs(AT[1:4]), near=1e-13)


def test_constants_reach_to_infinity() -> None:
    at = np.array([-np.inf, 0.5, np.nan, np.inf])
    want = np.array([2.0, 2.0, np.nan, 3.0])
    check(tj.interpolate.PPoly([[2.0, 3.0]], [0.0, 1.0, 2.0])(at), want)
    check(tj.interpolate.BSpline([0.0, 1.0, 2.0], [2.0, 3.0], 0)(at), want)


def test_derivatives_by_the_places_of_a_grid() -> None:
    values, xi = RNG.normal(size=(4, 3)), np.array([[0.3, 0.5], [1.7, -0.2]])
    tj.testing.check_gradients(lambda a, b: tj.interpolate.interpn((a, b), values, xi), *GRIDS[:2])


def test_an_interpolator_made_outside_serves_inside() -> None:
    x, y = knots(7), RNG.normal(size=7)
    spline = tj.interpolate.CubicSpline(x, y)
    step = dlaccelerate(lambda at: (spline(at), tj.dlgradient(spline(at).sum(), at)))
    theirs = scipy.interpolate.CubicSpline(x, y)
    for _ in range(3):
        value, slope = step(AT)
        check(value, theirs(AT))
        check(slope, theirs(AT, 1))


def test_knots_that_do_not_increase_are_an_error_in_replays() -> None:
    step = dlaccelerate(lambda x, y: tj.interpolate.CubicSpline(x, y)(0.5))
    for _ in range(3):
        step(np.array([0.0, 1.0, 2.0]), np.ones(3))
    with warnings.catch_warnings(), pytest.raises(tj.ArgumentError, match="CubicSpline: x must increase"):
        step(np.array([0.0, 2.0, 1.0]), np.ones(3))


@pytest.mark.parametrize(
    "at",
    [[1.2, 2.3], np.array([1.2, 2.3]), (1.2, 2.3), [[1.2, 2.3]], np.array([[[1.0, 2.0], [2.0, 3.0]]]),
     (np.array([1.2]), 2.3), (np.array([1.0, 2.0]), np.array([2.3, 0.5]))],
)  # fmt: skip
@pytest.mark.parametrize("sizes", [(5, 6), (5, 6, 3)])
def test_the_sizes_of_points(at: Any, sizes: tuple[int, ...]) -> None:
    grid, values = (np.arange(5.0), np.arange(6.0)), RNG.normal(size=sizes)
    interpn = scipy.interpolate.interpn
    check(tj.interpolate.interpn(grid, values, at), interpn(grid, values, at))
    check(
        tj.interpolate.RegularGridInterpolator(grid, values)(at),
        scipy.interpolate.RegularGridInterpolator(grid, values)(at),
    )
    step = dlaccelerate(lambda v, at: interpn(grid, v, at))
    for _ in range(3):
        check(step(values, at), interpn(grid, values, at))
    line = tj.interpolate.RegularGridInterpolator(grid[:1], values)
    check(line([1.5]), scipy.interpolate.RegularGridInterpolator(grid[:1], values)([1.5]))
