# SPDX-License-Identifier: BSD-3-Clause
"""Piecewise polynomials: their values, derivatives and integrals."""

from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.errors import ArgumentError, DimsError
from tracejit.functions import elementwise, joining, movement, reductions
from tracejit.functions.axes import normalize_axis
from tracejit.functions.elementwise import where
from tracejit.functions.formats import describe_sizes, floating, in_dtype
from tracejit.record.demands import demand
from tracejit.util.arguments import flag, integer, is_option


class PPoly:
    """A piecewise polynomial: the sum over j of c[j, i] (x - x[i])^(k - j) in the interval from x[i] to x[i + 1].

    Args:
        c: coefficients, (k + 1, intervals, ...), those of the highest power first.
        x: the ends of the intervals, increasing.
        extrapolate: whether points outside of the intervals get the polynomial of the nearest one (True), NaN (False),
            or the value at their place in a period, the range of `x` ("periodic").
        axis: the axis of results that the axes of points replace.

    Raises:
        DimsError: if the sizes do not fit.
        ArgumentError: if `x` does not increase, in replays as well.

    There are derivatives of any order by the points, the coefficients and `x`.

    Examples:
        >>> import tracejit as tj
        >>> ramp = tj.interpolate.PPoly([[1.0, 0.0], [0.0, 1.0]], [0.0, 1.0, 2.0])
        >>> ramp([0.5, 1.5]).tolist(), ramp.integrate(0.0, 2.0).item()
        ([0.5, 1.0], 1.5)
    """

    def __init__(self, c: Any, x: Any, extrapolate: Any = True, axis: Any = 0) -> None:
        name = type(self).__name__
        self.c = movement.relabel(numbers(name, c, "c"), None)
        self.x = knots(name, "x", x)
        if self.c.ndim < 2 or not self.c.shape[0] or self.c.shape[1] != self.x.size - 1:
            raise DimsError(
                f"{name}: c has size {describe_sizes(self.c)} and x {describe_sizes(self.x)}, expected one row of "
                "coefficients or more, and a column for each interval."
            )
        self.extrapolate = extrapolation(name, extrapolate)
        self.axis = integer(name, "axis", axis)

    def __call__(self, x: Any, nu: Any = 0, extrapolate: Any = None) -> dlarray:
        """Return the values, or derivatives, at points.

        Args:
            x: points, of any size.
            nu: the order of the derivative.
            extrapolate: instead of that of the polynomial.

        Returns:
            dlarray without labels, in which the axes of `x` take the place of the axis of interpolation.

        Raises:
            ArgumentError: if `nu` is negative, or `extrapolate` none of the ways.
        """
        name = type(self).__name__
        points = movement.relabel(floating(name, x), None)
        way = self.extrapolate if extrapolate is None else extrapolation(name, extrapolate)
        found = _values(self._derived(integer(name, "nu", nu)), self.x, points, way)
        return moved(found, points.ndim, self.axis)

    def _derived(self, nu: int) -> dlarray:
        """Return the coefficients of a derivative."""
        if nu < 0:
            raise ArgumentError(
                f"{type(self).__name__}: nu is {nu}, expected 0 or more; antiderivative() integrates."
            )
        c = self.c
        for _ in range(nu):
            k = c.shape[0] - 1
            if not k:
                return c * 0
            c = c[:-1] * np.arange(k, 0, -1, dtype=part_of(c)).reshape(-1, *(1,) * (c.ndim - 1))
        return c

    def derivative(self, nu: Any = 1) -> "PPoly":
        """Return the derivative of order `nu` as a piecewise polynomial."""
        derived = self._derived(integer(type(self).__name__, "nu", nu))
        return PPoly(derived, self.x, self.extrapolate, self.axis)

    def antiderivative(self, nu: Any = 1) -> "PPoly":
        """Return the integral from the first of `x` on, `nu` times, as a piecewise polynomial."""
        order = integer(type(self).__name__, "nu", nu)
        if order < 0:
            return self.derivative(-order)
        c = self.c
        for _ in range(order):
            c = _integrated(c, self.x)
        way = False if self.extrapolate == "periodic" and order else self.extrapolate
        return PPoly(c, self.x, way, self.axis)

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> dlarray:
        """Return the integral from `a` to `b`, numbers.

        Args:
            a: the lower bound, a number, by which one can differentiate.
            b: the upper bound.
            extrapolate: instead of that of the polynomial.

        Returns:
            dlarray without the axis of interpolation.

        Raises:
            DimsError: if a bound is no number.
        """
        name = type(self).__name__
        bounds = [movement.relabel(floating(name, bound), None) for bound in (a, b)]
        for bound in bounds:
            if bound.ndim:
                raise DimsError(
                    f"{name}: a bound of integrate() has size {describe_sizes(bound)}, expected a number."
                )
        way = self.extrapolate if extrapolate is None else extrapolation(name, extrapolate)
        whole = _integrated(self.c, self.x)
        if way != "periodic":
            low, high = (_values(whole, self.x, bound, way) for bound in bounds)
            return high - low
        first, last = self.x[:1], self.x[-1:]
        period = (last - first)[0]
        total = _values(whole, self.x, self.x[-1], True)
        parts = []
        for bound in bounds:
            turns = elementwise.floor((bound - self.x[0]) / period)
            turns = elementwise.stop_gradient(turns)
            parts.append(_values(whole, self.x, bound - turns * period, True) + turns * total)
        return parts[1] - parts[0]


def moved(result: dlarray, count: int, axis: int) -> dlarray:
    """Return a result with the first axes, those of points, where the axis of interpolation was."""
    axis %= result.ndim - count + 1
    order = (*range(count, count + axis), *range(count), *range(count + axis, result.ndim))
    return movement.transpose(result, order) if axis and count else result


def part_of(x: dlarray) -> np.dtype:
    """Return the dtype of the real part of an array."""
    return np.dtype(x.dtype.char.lower()) if x.dtype.kind == "c" else x.dtype


def numbers(function: str, x: Any, argument: str) -> dlarray:
    """Return an array of real or complex floating-point numbers."""
    array = as_array(x, function, argument)
    return array if array.dtype.kind in "fc" else in_dtype(array, np.dtype(np.float64))


def knots(function: str, argument: str, x: Any) -> dlarray:
    """Return a vector of at least 2 numbers that increase.

    Raises:
        DimsError: if it is none.
        ArgumentError: if the numbers do not increase, now or in a replay.
    """
    array = movement.relabel(floating(function, as_array(x, function, argument)), None)
    if array.ndim != 1 or array.size < 2:
        raise DimsError(
            f"{function}: {argument} has size {describe_sizes(array)}, expected a vector of 2 numbers or more."
        )

    def fail() -> None:
        raise ArgumentError(
            f"{function}: {argument} must increase from each number to the next; sort it first."
        )

    demand(reductions.all(array[1:] > array[:-1]), function, fail)
    return array


def samples(function: str, x: dlarray, y: Any, axis: Any, argument: str = "y") -> tuple[dlarray, int]:
    """Return values with the axis of interpolation in front, and the number of that axis.

    Raises:
        DimsError: if there are not as many as knots.
    """
    array = numbers(function, y, argument)
    number = normalize_axis(function, array, axis) if array.ndim else 0
    # Differences of float32 values at float64 places are those of float64, as SciPy's.
    array = in_dtype(movement.relabel(array, None), np.result_type(array.dtype, x.dtype))
    if not array.ndim or array.shape[number] != x.size:
        raise DimsError(
            f"{function}: {argument} has size {describe_sizes(array)}, expected {x.size} values along axis {number}, "
            "as many as x."
        )
    return movement.moveaxis(array, number, 0), number


def extrapolation(function: str, given: Any) -> Any:
    """Return the way of extrapolation: "periodic", or a bool."""
    return given if is_option(given, ("periodic",)) else flag(function, "extrapolate", given)


def interval(x: dlarray, points: dlarray) -> dlarray:
    """Return the number of the interval of each point: the nearest one for points outside."""
    after = apply("searchsorted", x, points, right=True)
    return elementwise.clip(after - 1, 0, x.size - 2)


def _values(c: dlarray, x: dlarray, points: dlarray, extrapolate: Any) -> dlarray:
    """Return the values of a piecewise polynomial, the axes of points in front."""
    if extrapolate == "periodic":
        period = x[-1] - x[0]
        points = x[0] + (points - x[0]) % period
    place = interval(x, points)
    beside = (1,) * (c.ndim - 2)
    at = movement.reshape(points - apply("take", x, place, axis=0), (*points.shape, *beside))
    total: Any = None
    for row in range(c.shape[0]):
        part = apply("take", c[row], place, axis=0)
        total = part if total is None else total * at + part
    if c.shape[0] == 1:
        total = where(elementwise.isnan(at), at, total)
    if extrapolate is False:
        inside = movement.reshape((points >= x[0]) & (points <= x[-1]), (*points.shape, *beside))
        total = where(inside, total, total.dtype.type(np.nan))
    return total  # type: ignore[no-any-return]


def _integrated(c: dlarray, x: dlarray) -> dlarray:
    """Return the coefficients of the integral from the first knot on."""
    k = c.shape[0]
    beside = (1,) * (c.ndim - 2)
    rows = c / np.arange(k, 0, -1, dtype=part_of(c)).reshape(-1, 1, *beside)
    width = movement.reshape(x[1:] - x[:-1], (-1, *beside))
    ends: Any = 0.0
    for row in range(k):
        ends = (ends + rows[row]) * width
    first = ends[:1] * 0
    before = joining.concatenate([first, reductions.cumsum(ends[:-1], 0)], 0)
    return joining.concatenate([rows, movement.expand_dims(before, 0)], 0)
