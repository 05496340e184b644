# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the table of messages (messages.py) of interpolation: a call, the error, its text."""

from collections.abc import Callable
from typing import Any

import numpy as np

import tracejit as tj
from tracejit.errors import ArgumentError, BoundsError, DimsError

X, Y = np.arange(4.0), np.ones(4)


def spline(**options: Any) -> object:
    return tj.interpolate.CubicSpline(X, Y, **options)


ROWS: tuple[tuple[Callable[[], object], type[Exception], str], ...] = (
    (
        lambda: tj.interpolate.PPoly(np.ones((2, 2)), X),
        DimsError,
        "PPoly: c has size 2x2 and x 4, expected one row of coefficients or more, and a column for each interval.",
    ),
    (
        lambda: tj.interpolate.PPoly(np.ones((2, 3)), X)(0.5, -1),
        ArgumentError,
        "PPoly: nu is -1, expected 0 or more; antiderivative() integrates.",
    ),
    (
        lambda: tj.interpolate.PPoly(np.ones((2, 3)), X).integrate(0.0, X),
        DimsError,
        "PPoly: a bound of integrate() has size 4, expected a number.",
    ),
    (
        lambda: tj.interpolate.CubicSpline([1.0], [1.0]),
        DimsError,
        "CubicSpline: x has size 1, expected a vector of 2 numbers or more.",
    ),
    (
        lambda: tj.interpolate.CubicSpline(X[::-1], Y),
        ArgumentError,
        "CubicSpline: x must increase from each number to the next; sort it first.",
    ),
    (
        lambda: tj.interpolate.CubicSpline(X, Y[1:]),
        DimsError,
        "CubicSpline: y has size 3, expected 4 values along axis 0, as many as x.",
    ),
    (
        lambda: tj.interpolate.CubicHermiteSpline(X, Y, np.ones((4, 2))),
        DimsError,
        "CubicHermiteSpline: dydx has size (4, 2) and y (4,), expected equal sizes.",
    ),
    (
        lambda: tj.interpolate.PchipInterpolator(X, 1j * Y),
        ArgumentError,
        "PchipInterpolator: y has dtype complex128, expected real values; pass y.real and y.imag.",
    ),
    (
        lambda: spline(bc_type=1),
        ArgumentError,
        "CubicSpline: bc_type must be one of not-a-knot, clamped, natural, periodic, or a pair of conditions, not 1.",
    ),
    (
        lambda: spline(bc_type=("natural", "periodic")),
        ArgumentError,
        'CubicSpline: bc_type is "periodic" at one end alone; both ends are, or none.',
    ),
    (
        lambda: tj.interpolate.CubicSpline(X, X, bc_type="periodic"),
        ArgumentError,
        "CubicSpline: the first and the last value of a periodic spline must be equal.",
    ),
    (
        lambda: spline(bc_type="free"),
        ArgumentError,
        "CubicSpline: a condition must be one of not-a-knot, clamped, natural, periodic, (1, slope) or (2, curvature), "
        "not 'free'.",
    ),
    (
        lambda: spline(bc_type=((1, Y), "natural")),
        DimsError,
        "CubicSpline: a derivative in bc_type has size 4, expected (), that of a value.",
    ),
    (
        lambda: tj.interpolate.RegularGridInterpolator(X, Y),
        ArgumentError,
        "RegularGridInterpolator: points must be a tuple of vectors, one for each axis, not array([0., 1., 2., 3.]).",
    ),
    (
        lambda: tj.interpolate.RegularGridInterpolator((X, X), np.ones((4, 3))),
        DimsError,
        "RegularGridInterpolator: values have size 4x3, expected (4, 4) first, the sizes of points.",
    ),
    (
        lambda: tj.interpolate.interpn((X,), Y, [[5.0]]),
        ArgumentError,
        "RegularGridInterpolator: a point lies outside of the grid, or is NaN; pass bounds_error=False, and a "
        "fill_value.",
    ),
    (
        lambda: tj.interpolate.interpn((X, X), np.ones((4, 4)), X),
        DimsError,
        "RegularGridInterpolator: points have 4 coordinates, expected 2, one for each axis of the grid.",
    ),
    (
        lambda: tj.interpolate.interpn((X,), Y, X, "cubic"),
        ArgumentError,
        "RegularGridInterpolator: method must be 'linear' or 'nearest', not 'cubic'.",
    ),
    (
        lambda: tj.interpolate.BSpline([0, 1, 0, 1], [1.0, 2.0], 1),
        ArgumentError,
        "BSpline: t must not decrease; sort it first.",
    ),
    (
        lambda: tj.interpolate.BSpline([0, 1], [1.0], 1),
        DimsError,
        "BSpline: t has size 2 and c 1, expected at least 4 knots for the degree 1, and as many coefficients as knots "
        "less 2.",
    ),
    (
        lambda: tj.interpolate.BSpline([0, 0, 1, 1], [1.0, 2.0], 1)(0.5, -1),
        ArgumentError,
        "BSpline: nu is -1, expected 0 or more.",
    ),
    (
        lambda: tj.interpolate.make_interp_spline(X, Y, 4),
        DimsError,
        "make_interp_spline: k is 4, expected 0 to 3 for 4 places.",
    ),
    (
        lambda: tj.interpolate.make_interp_spline(X, Y, 1, t=X),
        DimsError,
        "make_interp_spline: t has size 4, expected 6 knots for 4 places and the degree 1.",
    ),
    (
        lambda: tj.interpolate.make_interp_spline(X, Y, bc_type="odd"),
        ArgumentError,
        "make_interp_spline: bc_type must be None or 'not-a-knot', not 'odd'; CubicSpline has other conditions.",
    ),
    (
        lambda: tj.interpolate.interp1d(X, Y, "cubist"),
        ArgumentError,
        "interp1d: kind must be 'linear', 'nearest', 'nearest-up', 'previous', 'next', 'zero', 'slinear', 'quadratic', "
        "'cubic' or a degree, not 'cubist'.",
    ),
    (
        lambda: tj.interpolate.interp1d(X, Y)(5.0),
        BoundsError,
        "interp1d: a point lies outside of the places x; pass fill_value='extrapolate', or bounds_error=False with the "
        "value for it.",
    ),
    (
        lambda: tj.interpolate.Akima1DInterpolator(X, Y * 1j),
        ArgumentError,
        "Akima1DInterpolator: y has dtype complex128, expected real values; pass y.real and y.imag.",
    ),
    (
        lambda: tj.interpolate.Akima1DInterpolator(X, Y, method="a"),
        ArgumentError,
        "Akima1DInterpolator: method must be 'akima' or 'makima', not 'a'.",
    ),
)
