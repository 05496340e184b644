# SPDX-License-Identifier: BSD-3-Clause
"""Interpolation under the names of scipy.interpolate: ``tj.interpolate.CubicSpline(x, y)(points)``.

In: knots and values, dlarrays, ndarrays or lists. Out: functions of points, whose results have derivatives of any order
by the points, the values and the knots. Piecewise linear functions of one variable are `np.interp`. The classes of
scipy.interpolate itself convert their operands to ndarrays, and refuse traced arrays.
May import: functions/.
"""

from tracejit.interpolate.bsplines import BSpline, make_interp_spline
from tracejit.interpolate.grids import RegularGridInterpolator, interpn
from tracejit.interpolate.lines import interp1d
from tracejit.interpolate.piecewise import PPoly
from tracejit.interpolate.splines import (
    Akima1DInterpolator,
    CubicHermiteSpline,
    CubicSpline,
    PchipInterpolator,
)
from tracejit.util.missing import refusal

__all__ = [
    "Akima1DInterpolator",
    "BSpline",
    "CubicHermiteSpline",
    "CubicSpline",
    "PPoly",
    "PchipInterpolator",
    "RegularGridInterpolator",
    "interp1d",
    "interpn",
    "make_interp_spline",
]

__getattr__ = refusal("interpolate", __all__)
