# SPDX-License-Identifier: BSD-3-Clause
"""Interpolation between neighbours: interp1d, in steps, lines or splines."""

from typing import Any

from tracejit.array import apply, as_array, dlarray
from tracejit.errors import ArgumentError, BoundsError
from tracejit.functions import elementwise, joining, movement, reductions
from tracejit.functions.elementwise import where
from tracejit.functions.formats import floating, in_dtype
from tracejit.interpolate.bsplines import make_interp_spline
from tracejit.interpolate.piecewise import PPoly, interval, knots, moved, samples
from tracejit.record.demands import demand
from tracejit.util.arguments import flag, is_option
from tracejit.util.text import brief

_DEGREES = {"zero": 0, "slinear": 1, "quadratic": 2, "cubic": 3}
_STEPS = ("nearest", "nearest-up", "previous", "next")


class interp1d:
    """A function through values at places, as ``scipy.interpolate.interp1d``.

    Args:
        x: places; they need not be in order unless `assume_sorted`.
        y: values, as many along `axis` as places.
        kind: "linear", "nearest" (halves down), "nearest-up", "previous", "next", "zero", "slinear", "quadratic",
            "cubic", or the degree of a spline.
        axis: the axis of `y` that goes with `x`.
        copy: ignored; arrays are never written.
        bounds_error: whether points outside raise an error; None for True unless `fill_value` is "extrapolate".
        fill_value: the value of points outside: a number, a pair for those below and above, or "extrapolate".
        assume_sorted: whether `x` increases already.

    Raises:
        DimsError: if the sizes do not fit.
        ArgumentError: for another kind, or if two places are equal, in replays as well.

    There are derivatives by the points, the values and the places; steps have the derivative 0 by points.

    Examples:
        >>> import tracejit as tj
        >>> tj.interpolate.interp1d([0.0, 1.0, 2.0], [0.0, 10.0, 0.0])([0.5, 1.75]).tolist()
        [5.0, 2.5]
    """

    def __init__(
        self, x: Any, y: Any, kind: Any = "linear", axis: Any = -1, copy: Any = True, bounds_error: Any = None,
        fill_value: Any = float("nan"), assume_sorted: Any = False,
    ) -> None:  # fmt: skip
        places = movement.relabel(floating("interp1d", as_array(x, "interp1d", "x")), None)
        given = as_array(y, "interp1d", "y")
        values, self.axis = samples("interp1d", places, given, axis)
        self._dtype = floating("interp1d", given).dtype
        if not flag("interp1d", "assume_sorted", assume_sorted):
            order = apply("order", elementwise.stop_gradient(places), axis=0)[0]
            places, values = (apply("take", part, order, axis=0) for part in (places, values))
        self.x, self.y, self.kind = knots("interp1d", "x", places), values, kind
        self.extrapolates = is_option(fill_value, ("extrapolate",))
        self.fill = fill_value
        self.bounds_error = (
            not self.extrapolates if bounds_error is None else flag("interp1d", "bounds_error", bounds_error)
        )
        degree: Any = 1 if is_option(kind, ("linear",)) else kind
        degree = _DEGREES[kind] if is_option(kind, tuple(_DEGREES)) else degree
        if isinstance(degree, bool) or not (isinstance(degree, int) or is_option(degree, _STEPS)):
            raise ArgumentError(
                f"interp1d: kind must be 'linear', {', '.join(map(repr, (*_STEPS, *_DEGREES)))} or a degree, not "
                f"{brief(kind)}."
            )
        self.degree = degree
        if degree == 1:
            rise = (values[1:] - values[:-1]) / movement.reshape(
                self.x[1:] - self.x[:-1], (-1, *(1,) * (values.ndim - 1))
            )
            self._inner: Any = PPoly(joining.stack([rise, values[:-1]], 0), self.x)
        elif isinstance(degree, int) and degree:
            self._inner = make_interp_spline(self.x, values, degree)

    def __call__(self, x: Any) -> dlarray:
        """Return the values at points.

        Args:
            x: points, of any size.

        Returns:
            dlarray without labels, in which the axes of `x` take the place of the axis of places.

        Raises:
            BoundsError: if a point is outside and `bounds_error` holds, in replays as well.
        """
        points = movement.relabel(floating("interp1d", as_array(x, "interp1d", "x")), None)
        below, above = points < self.x[0], points > self.x[-1]
        if self.bounds_error:

            def fail() -> None:
                raise BoundsError(
                    "interp1d: a point lies outside of the places x; pass fill_value='extrapolate', or "
                    "bounds_error=False with the value for it."
                )

            demand(reductions.all(elementwise.logical_not(below | above)), "interp1d", fail)
        found = self._inner(points) if type(self.degree) is int and self.degree else self._step(points)
        beside = (1,) * (self.y.ndim - 1)
        for outside, value in zip((below, above), self._fills(), strict=True):
            if value is not None:
                mask = movement.reshape(outside, (*points.shape, *beside))
                found = where(mask, as_array(value).astype(found.dtype), found)
        return moved(found, points.ndim, self.axis)

    def _fills(self) -> tuple[Any, Any]:
        """Return the values of points below and above, None where the function goes on."""
        if self.extrapolates:
            nan = float("nan")  # where there is no place before, or after
            return nan if self.degree == "previous" else None, nan if self.degree == "next" else None
        return self.fill if isinstance(self.fill, tuple) else (self.fill, self.fill)

    def _step(self, points: dlarray) -> dlarray:
        """Return the values at the places that points belong to."""
        n = self.x.size
        if self.degree in ("nearest", "nearest-up"):
            middles = (self.x[1:] + self.x[:-1]) / 2
            place = apply("searchsorted", middles, points, right=self.degree == "nearest-up")
        elif self.degree == "next":
            place = apply("searchsorted", self.x, points, right=False)
        elif self.degree == "previous":
            place = apply("searchsorted", self.x, points, right=True) - 1
        else:
            place = interval(self.x, points) + (points >= self.x[-1])
        found: dlarray = apply("take", self.y, elementwise.clip(place, 0, n - 1), axis=0)
        if self.degree != 0:
            return in_dtype(found, self._dtype)  # which NaN takes for a large number, as SciPy does
        return found + movement.reshape(points * 0, (*points.shape, *(1,) * (self.y.ndim - 1)))
