# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the table of messages (messages.py) of interpolation: a call, the error, its text."""

from collections.abc import Callable
from typing import Any

import numpy as np

import tracejit as tj
from tracejit.errors import ArgumentError, DimsError

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
        "RegularGridInterpolator: a point lies outside of the grid; pass bounds_error=False, and a fill_value.",
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
)
