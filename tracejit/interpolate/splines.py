# SPDX-License-Identifier: BSD-3-Clause
"""Cubic splines: piecewise cubic polynomials through values, with slopes that are given or chosen.

Note [slopes of a spline]. The slopes s of a cubic spline solve a system of three diagonals (C. de Boor, A practical
guide to splines, 1978, chapter IV). The condition at an end gives its slope by that of its neighbour, s_0 = e + f s_1.
With this the first slope is eliminated, which leaves a system whose diagonal dominates, for all conditions. So it can
be solved without exchanges of rows: by cyclic reduction, in which each step combines every row with those 1, 2, 4, ...
rows away, all at once.
"""

from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.errors import ArgumentError, DimsError
from tracejit.functions import elementwise, joining, movement, reductions
from tracejit.functions.elementwise import where
from tracejit.functions.formats import describe_sizes
from tracejit.interpolate.piecewise import PPoly, knots, numbers, part_of, samples
from tracejit.record.demands import demand
from tracejit.util.arguments import is_option
from tracejit.util.text import brief

_ENDS = ("not-a-knot", "clamped", "natural", "periodic")


class CubicHermiteSpline(PPoly):
    """The piecewise cubic polynomial with given values and slopes, as ``scipy.interpolate.CubicHermiteSpline``.

    Args:
        x: knots, increasing.
        y: values, as many along `axis` as knots.
        dydx: slopes, of the size of `y`.
        axis: the axis of `y` that goes with `x`.
        extrapolate: as in `PPoly`; None for True.

    Raises:
        DimsError: if the sizes do not fit.
        ArgumentError: if `x` does not increase, in replays as well.

    Examples:
        >>> import tracejit as tj
        >>> tj.interpolate.CubicHermiteSpline([0.0, 2.0], [0.0, 4.0], [0.0, 4.0])([0.5, 1.0]).tolist()
        [0.25, 1.0]
    """

    def __init__(self, x: Any, y: Any, dydx: Any, axis: Any = 0, extrapolate: Any = None) -> None:
        name = "CubicHermiteSpline"
        places = knots(name, "x", x)
        values, number = samples(name, places, y, axis)
        slopes, _ = samples(name, places, dydx, axis, "dydx")
        if values.shape != slopes.shape:
            raise DimsError(
                f"{name}: dydx has size {slopes.shape} and y {values.shape}, expected equal sizes."
            )
        super().__init__(_cubic(places, values, slopes), places, extrapolate is None or extrapolate, number)


class PchipInterpolator(PPoly):
    """The piecewise cubic polynomial that rises and falls where values do, as ``scipy.interpolate.PchipInterpolator``.

    Args:
        x: knots, increasing.
        y: real values, as many along `axis` as knots.
        axis: the axis of `y` that goes with `x`.
        extrapolate: as in `PPoly`; None for True.

    Raises:
        DimsError: if the sizes do not fit.
        ArgumentError: if `x` does not increase, in replays as well, or `y` is complex.

    A slope is the weighted harmonic mean of those of both intervals, or 0 where their signs differ (F. Fritsch and J.
    Butland, A method for constructing local monotone piecewise cubic interpolants, 1984). Where a slope changes from
    one formula to the other, the derivative by values is that of one side.

    Examples:
        >>> import tracejit as tj
        >>> tj.interpolate.PchipInterpolator([0, 1, 2, 3], [0.0, 0.0, 1.0, 1.0])([0.5, 1.5, 2.5]).tolist()
        [0.0, 0.5, 1.0]
    """

    def __init__(self, x: Any, y: Any, axis: Any = 0, extrapolate: Any = None) -> None:
        name = "PchipInterpolator"
        places = knots(name, "x", x)
        values, number = samples(name, places, y, axis)
        if values.dtype.kind == "c":
            raise ArgumentError(
                f"{name}: y has dtype {values.dtype}, expected real values; pass y.real and y.imag."
            )
        slopes = _monotone(_beside(places, values), values)
        super().__init__(_cubic(places, values, slopes), places, extrapolate is None or extrapolate, number)


class Akima1DInterpolator(PPoly):
    """The piecewise cubic polynomial of H. Akima (1970), which outliers disturb little, as SciPy's.

    Args:
        x: knots, increasing.
        y: real values, as many along `axis` as knots.
        axis: the axis of `y` that goes with `x`.
        method: "akima", or "makima", whose slopes stay near 0 where values are equal.
        extrapolate: as in `PPoly`; None for False: points outside get NaN.

    Raises:
        DimsError: if the sizes do not fit.
        ArgumentError: if `x` does not increase, in replays as well, for another method, or if `y` is complex.

    A slope is the mean of those of both intervals, weighted by how much the slopes beyond change. Where a slope changes
    from one formula to the other, the derivative by values is that of one side.

    Examples:
        >>> import tracejit as tj
        >>> tj.interpolate.Akima1DInterpolator([0, 1, 2, 3, 4], [0.0, 0.0, 1.0, 1.0, 1.0])([0.5, 1.5]).tolist()
        [-0.125, 0.5625]
    """

    def __init__(
        self, x: Any, y: Any, axis: Any = 0, *, method: Any = "akima", extrapolate: Any = None
    ) -> None:
        name = "Akima1DInterpolator"
        if not is_option(method, ("akima", "makima")):
            raise ArgumentError(f"{name}: method must be 'akima' or 'makima', not {brief(method)}.")
        places = knots(name, "x", x)
        values, number = samples(name, places, y, axis)
        if values.dtype.kind == "c":
            raise ArgumentError(
                f"{name}: y has dtype {values.dtype}, expected real values; pass y.real and y.imag."
            )
        slopes = _akima(_beside(places, values), values, method == "makima")
        way = False if extrapolate is None else extrapolate
        super().__init__(_cubic(places, values, slopes), places, way, number)


class CubicSpline(PPoly):
    """The piecewise cubic polynomial with two continuous derivatives, as ``scipy.interpolate.CubicSpline``.

    Args:
        x: knots, increasing.
        y: values, as many along `axis` as knots.
        axis: the axis of `y` that goes with `x`.
        bc_type: the conditions at the ends: "not-a-knot" (the first two intervals have one polynomial, and the last
            two), "natural" (second derivatives are 0), "clamped" (first derivatives are 0), "periodic"; or a pair with
            one for each end, where (1, slope) and (2, curvature) give a derivative of the size of `y` without its axis.
        extrapolate: as in `PPoly`; None for True, and "periodic" for a periodic spline.

    Raises:
        DimsError: if the sizes do not fit.
        ArgumentError: if `x` does not increase, in replays as well, for another condition, or if the first and the last
            value of a periodic spline differ.

    There are derivatives by the points, the values, the knots, and the derivatives at the ends.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> spline = tj.interpolate.CubicSpline([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 8.0, 27.0])
        >>> spline([0.5, 2.5]).tolist(), spline(1.0, 1).item()
        ([0.125, 15.625], 3.0)
    """

    def __init__(
        self, x: Any, y: Any, axis: Any = 0, bc_type: Any = "not-a-knot", extrapolate: Any = None
    ) -> None:
        places = knots("CubicSpline", "x", x)
        values, number = samples("CubicSpline", places, y, axis)
        first, last = _conditions(bc_type, values)
        widths = _beside(places, values)
        is_periodic = first == "periodic"
        slopes = _periodic(widths, values) if is_periodic else _with_ends(widths, values, first, last)
        if extrapolate is None:
            extrapolate = "periodic" if is_periodic else True
        super().__init__(_cubic(places, values, slopes), places, extrapolate, number)


def _beside(x: dlarray, y: dlarray) -> dlarray:
    """Return the widths of intervals, with axes for those of values."""
    return movement.reshape(x[1:] - x[:-1], (-1, *(1,) * (y.ndim - 1)))


def _cubic(x: dlarray, y: dlarray, s: dlarray) -> dlarray:
    """Return the coefficients of the polynomials with values y and slopes s at the knots x."""
    h = _beside(x, y)
    rise = (y[1:] - y[:-1]) / h
    bend = (s[:-1] + s[1:] - 2 * rise) / h
    return joining.stack([bend / h, (rise - s[:-1]) / h - bend, s[:-1], y[:-1] + bend * 0], 0)


def _monotone(h: dlarray, y: dlarray) -> dlarray:
    """Return the slopes of a PchipInterpolator."""
    rise = (y[1:] - y[:-1]) / h
    if y.shape[0] == 2:
        return joining.concatenate([rise, rise], 0)
    left, right = rise[:-1], rise[1:]
    first, second = 2 * h[1:] + h[:-1], h[1:] + 2 * h[:-1]
    same = left * right > 0
    one = rise.dtype.type(1)
    mean = (first + second) / (first / where(same, left, one) + second / where(same, right, one))
    inner = where(same, mean, one * 0)
    ends = [
        _slope_at_end(h[:1], h[1:2], rise[:1], rise[1:2]),
        _slope_at_end(h[-1:], h[-2:-1], rise[-1:], rise[-2:-1]),
    ]
    return joining.concatenate([ends[0], inner, ends[1]], 0)


def _akima(h: dlarray, y: dlarray, modified: bool) -> dlarray:
    """Return the slopes of an Akima1DInterpolator."""
    rise = (y[1:] - y[:-1]) / h
    if y.shape[0] == 2:
        return joining.concatenate([rise, rise], 0)
    before, after = 2 * rise[:1] - rise[1:2], 2 * rise[-1:] - rise[-2:-1]
    m = joining.concatenate([2 * before - rise[:1], before, rise, after, 2 * after - rise[-1:]], 0)
    change = elementwise.abs(m[1:] - m[:-1])
    weight = change + elementwise.abs(m[1:] + m[:-1]) / 2 if modified else change
    left, right = weight[2:], weight[:-2]
    total = left + right
    limit = 1e-9 * elementwise.stop_gradient(reductions.max(total))
    some = total > limit
    mean = (left * m[1:-2] + right * m[2:-1]) / where(some, total, 1)
    return where(some, mean, (m[3:] + m[:-3]) / 2)


def _slope_at_end(h0: dlarray, h1: dlarray, rise0: dlarray, rise1: dlarray) -> dlarray:
    """Return the slope at an end: of a parabola, unless that would not follow the values."""
    slope = ((2 * h0 + h1) * rise0 - h0 * rise1) / (h0 + h1)
    zero = slope.dtype.type(0)
    steep = (elementwise.sign(rise0) != elementwise.sign(rise1)) & (
        elementwise.abs(slope) > 3 * elementwise.abs(rise0)
    )
    limited = where(steep, 3 * rise0, slope)
    return where(elementwise.sign(slope) != elementwise.sign(rise0), zero, limited)


_End = Any  # "not-a-knot", "periodic", or the order of a derivative and its value


def _conditions(bc_type: Any, y: dlarray) -> tuple[_End, _End]:
    """Return the conditions at both ends."""
    pair = (bc_type, bc_type) if isinstance(bc_type, str) else bc_type
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise ArgumentError(
            f"CubicSpline: bc_type must be one of {', '.join(_ENDS)}, or a pair of conditions, not {brief(bc_type)}."
        )
    found = [_condition(given, y) for given in pair]
    if (found[0] == "periodic") != (found[1] == "periodic"):
        raise ArgumentError('CubicSpline: bc_type is "periodic" at one end alone; both ends are, or none.')
    if found[0] == "periodic":

        def fail() -> None:
            raise ArgumentError(
                "CubicSpline: the first and the last value of a periodic spline must be equal."
            )

        near = elementwise.abs(y[0] - y[-1]) <= 1e-15 + 1e-15 * elementwise.abs(y[-1])
        demand(reductions.all(near), "CubicSpline", fail)
    return found[0], found[1]


def _condition(given: Any, y: dlarray) -> _End:
    if is_option(given, ("not-a-knot", "periodic")):
        return given
    if is_option(given, ("clamped", "natural")):
        return (1 if given == "clamped" else 2, as_array(np.zeros((1, *y.shape[1:]), y.dtype)))
    is_pair = (
        isinstance(given, (tuple, list)) and len(given) == 2 and type(given[0]) is int and given[0] in (1, 2)
    )
    if not is_pair:
        raise ArgumentError(
            f"CubicSpline: a condition must be one of {', '.join(_ENDS)}, (1, slope) or (2, curvature), not "
            f"{brief(given)}."
        )
    value = movement.relabel(numbers("CubicSpline", given[1], "bc_type"), None)
    if value.shape != y.shape[1:]:
        raise DimsError(
            f"CubicSpline: a derivative in bc_type has size {describe_sizes(value)}, expected {y.shape[1:]}, that of a "
            "value."
        )
    return given[0], movement.expand_dims(value, 0)


def _with_ends(h: dlarray, y: dlarray, first: _End, last: _End) -> dlarray:
    """Return the slopes of a spline with a condition at each end: Note [slopes of a spline]."""
    rise = (y[1:] - y[:-1]) / h
    n = y.shape[0]
    if n == 2:  # a line, where nothing else is known
        first, last = ((1, rise) if end == "not-a-knot" else end for end in (first, last))
    if n == 3 and first == "not-a-knot" and last == "not-a-knot":  # a parabola
        bend = (rise[1:] - rise[:1]) / (h[:1] + h[1:])
        return joining.concatenate(
            [rise[:1] - bend * h[:1], rise[:1] + bend * h[:1], rise[1:] + bend * h[1:]], 0
        )
    e, f = _end(first, h, rise)
    g, k = _end(last, movement.flip(h, 0), movement.flip(rise, 0), -1)
    if n == 2:  # s_0 = e + f s_1, s_1 = g + k s_0
        start = (e + f * g) / (1 - f * k)
        return joining.concatenate([start, g + k * start], 0)
    below, diagonal, above = h[1:], 2 * (h[:-1] + h[1:]), h[:-1]
    right = 3 * (h[1:] * rise[:-1] + h[:-1] * rise[1:])
    edge, other = _only(n - 2, 0, y), _only(n - 2, n - 3, y)
    diagonal = diagonal + edge * below * f + other * above * k
    right = right - edge * below * e - other * above * g
    inner = _tridiagonal(below * (1 - edge), diagonal, above * (1 - other), right)
    return joining.concatenate([e + f * inner[:1], inner, g + k * inner[-1:]], 0)


def _only(n: int, place: int, y: dlarray) -> np.ndarray:
    """Return a vector of n zeros with a 1 at one place, with an axis of size 1 for each further axis of values."""
    places: np.ndarray = np.arange(n).reshape(-1, *(1,) * (y.ndim - 1))
    chosen: np.ndarray = (places == place).astype(part_of(y))
    return chosen


def _end(condition: _End, h: dlarray, rise: dlarray, sign: int = 1) -> tuple[Any, Any]:
    """Return e and f in s_0 = e + f s_1, for an end, counted from it; the sign is that of the direction."""
    if condition == "not-a-knot":
        both = h[:1] + h[1:2]
        e = ((h[:1] + 2 * both) * h[1:2] * rise[:1] + h[:1] ** 2 * rise[1:2]) / (both * h[1:2])
        return e, -both / h[1:2]
    order, value = condition
    if order == 1:
        return value + 0 * rise[:1], 0 * h[:1]
    return 1.5 * rise[:1] - sign * 0.25 * value * h[:1], 0 * h[:1] - 0.5


def _shifted(x: dlarray, step: int, fill: float) -> tuple[dlarray, dlarray]:
    """Return the rows `step` places before and after each row; beyond the ends they are `fill`."""
    n = x.shape[0]
    none = tuple([(0, 0)] * (x.ndim - 1))
    before = apply("pad", x[: n - step], widths=((step, 0), *none), value=fill)
    after = apply("pad", x[step:], widths=((0, step), *none), value=fill)
    return before, after


def _tridiagonal(below: Any, diagonal: Any, above: Any, right: dlarray) -> dlarray:
    """Return the solution of systems of three diagonals; the middle one dominates."""
    n, step = right.shape[0], 1
    while step < n:
        (b0, b1), (d0, d1), (a0, a1), (r0, r1) = (
            _shifted(x, step, fill) for x, fill in ((below, 0), (diagonal, 1), (above, 0), (right, 0))
        )
        up, down = -below / d0, -above / d1
        below, diagonal, above, right = (
            up * b0, diagonal + up * a0 + down * b1, down * a1, right + up * r0 + down * r1,
        )  # fmt: skip
        step *= 2
    return right / diagonal  # type: ignore[no-any-return]


def _periodic(h: dlarray, y: dlarray) -> dlarray:
    """Return the slopes of a periodic spline.

    Its system has two more elements, in its corners: a matrix of rank one beside one of three diagonals (the formula of
    J. Sherman and W. Morrison, 1950).
    """
    rise = (y[1:] - y[:-1]) / h
    n = y.shape[0] - 1
    if n == 1:
        return joining.concatenate([0 * rise, 0 * rise], 0)
    if n == 2:
        slope = reductions.sum(rise / h, 0, keepdims=True) / reductions.sum(1 / h, 0, keepdims=True)
        return joining.concatenate([slope] * 3, 0)
    width, rising = (joining.concatenate([part[-1:], part[:-1]], 0) for part in (h, rise))
    below, diagonal, above = h, 2 * (width + h), width
    right = 3 * (h * rising + width * rise)
    edge, other = _only(n, 0, y), _only(n, n - 1, y)
    left_corner, right_corner, first = below[:1], above[-1:], diagonal[:1]
    diagonal = diagonal + edge * first + other * left_corner * right_corner / first
    column = other * right_corner - edge * first
    below, above = below * (1 - edge), above * (1 - other)
    found, turn = (_tridiagonal(below, diagonal, above, side) for side in (right, column))

    def product(x: dlarray) -> dlarray:
        return x[:1] - left_corner / first * x[-1:]  # type: ignore[no-any-return]

    slopes = found - turn * (product(found) / (1 + product(turn)))
    return joining.concatenate([slopes, slopes[:1]], 0)
