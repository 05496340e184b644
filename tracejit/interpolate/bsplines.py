# SPDX-License-Identifier: BSD-3-Clause
"""Splines of any degree as sums of B-splines (C. de Boor, A practical guide to splines, 1978, chapters IX to XIII)."""

from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.errors import ArgumentError, DimsError
from tracejit.functions import elementwise, joining, movement, reductions
from tracejit.functions.elementwise import where
from tracejit.functions.formats import describe_sizes, floating
from tracejit.functions.linalg import solve
from tracejit.interpolate.piecewise import extrapolation, knots, moved, numbers, samples
from tracejit.record.demands import demand
from tracejit.util.arguments import integer, is_option
from tracejit.util.text import brief


class BSpline:
    """The spline of degree k that is the sum over j of c[j] times the B-spline of t[j], ..., t[j + k + 1].

    Args:
        t: knots, which do not decrease; at least 2 k + 2.
        c: coefficients, (n, ...) with n >= len(t) - k - 1; the first len(t) - k - 1 of them count.
        k: the degree, 0 or more.
        extrapolate: whether points outside of t[k] to t[n] get the polynomial of the nearest interval (True), NaN
            (False), or the value at their place in a period ("periodic").
        axis: the axis of `c` that goes with the B-splines.

    Raises:
        DimsError: if the sizes do not fit.
        ArgumentError: if `t` decreases, in replays as well.

    There are derivatives of any order by the points, the coefficients and the knots.

    Examples:
        >>> import tracejit as tj
        >>> tj.interpolate.BSpline([0.0, 0, 0, 1, 1, 1], [0.0, 0.0, 1.0], 2)([0.5, 1.0]).tolist()
        [0.25, 1.0]
    """

    def __init__(self, t: Any, c: Any, k: Any, extrapolate: Any = True, axis: Any = 0) -> None:
        self.k = integer("BSpline", "k", k)
        self.t = movement.relabel(floating("BSpline", as_array(t, "BSpline", "t")), None)
        whole = numbers("BSpline", c, "c")
        self.axis = integer("BSpline", "axis", axis)
        self.c = movement.moveaxis(movement.relabel(whole, None), self.axis, 0) if whole.ndim else whole
        n = self.t.size - self.k - 1
        if self.k < 0 or self.t.ndim != 1 or n < self.k + 1 or not self.c.ndim or self.c.shape[0] < n:
            raise DimsError(
                f"BSpline: t has size {describe_sizes(self.t)} and c {describe_sizes(whole)}, expected at least "
                f"{2 * self.k + 2} knots for the degree {self.k}, and as many coefficients as knots less {self.k + 1}."
            )

        def fail() -> None:
            raise ArgumentError("BSpline: t must not decrease; sort it first.")

        demand(reductions.all(self.t[1:] >= self.t[:-1]), "BSpline", fail)
        self.c = self.c[:n]
        self.extrapolate = extrapolation("BSpline", extrapolate)

    def __call__(self, x: Any, nu: Any = 0, extrapolate: Any = None) -> dlarray:
        """Return the values, or derivatives, at points.

        Args:
            x: points, of any size.
            nu: the order of the derivative.
            extrapolate: instead of that of the spline.

        Returns:
            dlarray without labels, in which the axes of `x` take the place of the axis of coefficients.

        Raises:
            ArgumentError: if `nu` is negative.
        """
        points = movement.relabel(floating("BSpline", as_array(x, "BSpline", "x")), None)
        way = self.extrapolate if extrapolate is None else extrapolation("BSpline", extrapolate)
        t, c, k = self._derived(integer("BSpline", "nu", nu))
        if way == "periodic":
            first = t[k]
            points = first + (points - first) % (t[c.shape[0]] - first)
        return moved(_values(t, c, k, points, way is not False), points.ndim, self.axis)

    def derivative(self, nu: Any = 1) -> "BSpline":
        """Return the derivative of order `nu` as a spline."""
        t, c, k = self._derived(integer("BSpline", "nu", nu))
        return BSpline(t, movement.moveaxis(c, 0, self.axis), k, self.extrapolate, self.axis)

    def _derived(self, nu: int) -> tuple[dlarray, dlarray, int]:
        """Return knots, coefficients and degree of a derivative."""
        if nu < 0:
            raise ArgumentError(f"BSpline: nu is {nu}, expected 0 or more.")
        t, c, k = self.t, self.c, self.k
        for _ in range(nu):
            if not k:
                return t, c * 0, 0
            n = c.shape[0]
            wide = movement.reshape(t[k + 1 : k + n] - t[1:n], (-1, *(1,) * (c.ndim - 1)))
            t, c, k = t[1:-1], k * _over(c[1:] - c[:-1], wide), k - 1
        return t, c, k


def _over(x: dlarray, wide: dlarray) -> dlarray:
    """Return x / wide, or 0 where knots are equal."""
    some = wide != 0
    return where(some, x / where(some, wide, 1), 0)


def _values(t: dlarray, c: dlarray, k: int, points: dlarray, beyond: bool) -> dlarray:
    """Return the values of a spline, the axes of points in front, by the recurrence of Cox and de Boor."""
    n = c.shape[0]
    after = apply("searchsorted", t[k : n + 1], points, right=True) + (k - 1)
    place = elementwise.clip(after, k, n - 1)
    beside = (1,) * (c.ndim - 1)

    def knot(number: int) -> dlarray:
        return movement.reshape(apply("take", t, place + number, axis=0), (*points.shape, *beside))

    at = movement.reshape(points, (*points.shape, *beside))
    basis: list[Any] = [where(elementwise.isnan(at), at, at.dtype.type(1))]
    for order in range(1, k + 1):
        before, basis = basis, [at * 0]
        for j in range(1, order + 1):
            low, high = knot(j - order), knot(j)
            share = _over(before[j - 1], high - low)
            basis[-1] = basis[-1] + share * (high - at)
            basis.append(share * (at - low))
    terms = [apply("take", c, place + (j - k), axis=0) * basis[j] for j in range(k + 1)]
    found = sum(terms[1:], terms[0])
    if not beyond:
        inside = movement.reshape((points >= t[k]) & (points <= t[n]), (*points.shape, *beside))
        found = where(inside, found, found.dtype.type(np.nan))
    return found  # type: ignore[no-any-return]


def make_interp_spline(
    x: Any, y: Any, k: Any = 3, t: Any = None, bc_type: Any = None, axis: Any = 0
) -> BSpline:
    """Return the spline of degree k through values, as ``scipy.interpolate.make_interp_spline``.

    Args:
        x: places, increasing.
        y: values, as many along `axis` as places.
        k: the degree: 1 makes lines, 2 parabolas, 3 is the usual.
        t: knots, as many as places and k + 1 more; None for SciPy's, the places (k odd) or the middles between them (k
            even) without the outermost.
        bc_type: None or "not-a-knot"; CubicSpline has other conditions at the ends.
        axis: the axis of `y` that goes with `x`.

    Returns:
        A BSpline. Its coefficients solve a system of as many equations as there are places.

    Raises:
        DimsError: if the sizes do not fit.
        ArgumentError: if `x` does not increase, in replays as well, or for another `bc_type`.

    Examples:
        >>> import tracejit as tj
        >>> tj.interpolate.make_interp_spline([0.0, 1, 2, 3], [0.0, 1, 4, 9], k=2)([0.5, 2.5]).round(9).tolist()
        [0.25, 6.25]
    """
    name = "make_interp_spline"
    degree = integer(name, "k", k)
    if bc_type is not None and not is_option(bc_type, ("not-a-knot",)):
        raise ArgumentError(
            f"{name}: bc_type must be None or 'not-a-knot', not {brief(bc_type)}; CubicSpline has other conditions."
        )
    places = knots(name, "x", x)
    values, number = samples(name, places, y, axis)
    if not 0 <= degree < places.size:
        raise DimsError(f"{name}: k is {degree}, expected 0 to {places.size - 1} for {places.size} places.")
    chosen = (
        _usual_knots(places, degree)
        if t is None
        else movement.relabel(floating(name, as_array(t, name, "t")), None)
    )
    if chosen.ndim != 1 or chosen.size != places.size + degree + 1:
        raise DimsError(
            f"{name}: t has size {describe_sizes(chosen)}, expected {places.size + degree + 1} knots for {places.size} "
            f"places and the degree {degree}."
        )
    if t is None and degree < 2:
        found = values
    else:
        basis = BSpline(chosen, np.eye(places.size, dtype=places.dtype), degree)(places)
        flat = solve(basis, movement.reshape(values, (values.shape[0], -1)))
        found = movement.reshape(flat, values.shape)
    return BSpline(chosen, movement.moveaxis(found, 0, number), degree, True, number)


def _usual_knots(x: dlarray, k: int) -> dlarray:
    if k == 0:
        return joining.concatenate([x, x[-1:]], 0)
    half = (k + 1) // 2
    inner = x if k % 2 else (x[1:] + x[:-1]) / 2
    half = half if k % 2 else k // 2
    if k == 1:
        return joining.concatenate([x[:1], x, x[-1:]], 0)
    return joining.concatenate([*[x[:1]] * (k + 1), inner[half : inner.size - half], *[x[-1:]] * (k + 1)], 0)
