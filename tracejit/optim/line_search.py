# SPDX-License-Identifier: BSD-3-Clause
"""Line searches: how far to go along a direction in which a loss decreases.

Note [conditions]
A step is long enough, and not too long, if for the slope m < 0 of the loss along the direction at its start

    loss(t) <= loss(0) + 1e-4 t m                the loss decreases enough
    slope(t) >= 0.9 m                            weak condition of Wolfe
    abs(slope(t)) <= 0.9 abs(m)                  strong condition of Wolfe

"backtracking" asks for the first condition alone. A step whose loss or slope is no finite number is too long.
(J. Nocedal and S. Wright, Numerical optimization, 2006, algorithms 3.1, 3.5 and 3.6; A. Lewis and M. Overton, Nonsmooth
optimization via quasi-Newton methods, Mathematical Programming, 2013, algorithm 2.6.)
"""

import math
from collections.abc import Callable
from typing import Any

from tracejit.util.named_tuples import NamedTuple

_DECREASE = 1e-4
_CURVATURE = 0.9
_MARGIN = 0.1  # of an interval, which a new step keeps from its ends


class Point(NamedTuple):
    """A place on the line.

    length  of the step from the start, in units of the direction
    loss    there
    slope   derivative of the loss by the length
    found   what else was computed there
    """

    length: float
    loss: float
    slope: float
    found: Any


def search(method: str, at: Callable[[float], Point], start: Point, most: int) -> Point | None:
    """Return a place that a line search accepts, or None if it finds no smaller loss.

    Args:
        method: "weak-wolfe", "strong-wolfe" or "backtracking".
        at: computes the place after a step of some length.
        start: the place of length 0, with a negative slope.
        most: number of places that may be computed. If no place meets the conditions by then, the one with the smallest
            loss of those where it decreases enough is taken.
    """
    return METHODS[method](at, start, most)


def _decreases(point: Point, start: Point) -> bool:
    return (
        math.isfinite(point.slope)
        and -math.inf < point.loss <= start.loss + _DECREASE * point.length * start.slope
    )


def _better(best: Point | None, point: Point) -> Point:
    return point if best is None or point.loss < best.loss else best


def _backtracking(at: Callable[[float], Point], start: Point, most: int) -> Point | None:
    length = 1.0
    for _ in range(most):
        point = at(length)
        if _decreases(point, start):
            return point
        length *= 0.5
    return None


def _weak_wolfe(at: Callable[[float], Point], start: Point, most: int) -> Point | None:
    short, long, length = 0.0, math.inf, 1.0
    best = None
    for _ in range(most):
        point = at(length)
        if not _decreases(point, start):
            long = length
        elif point.slope >= _CURVATURE * start.slope:
            return point
        else:
            best = _better(best, point)
            short = length
        length = 2.0 * short if long == math.inf else 0.5 * (short + long)
    return best


def _strong_wolfe(at: Callable[[float], Point], start: Point, most: int) -> Point | None:
    before, length = start, 1.0
    for left in reversed(range(most)):
        point = at(length)
        if not _decreases(point, start) or (before is not start and point.loss >= before.loss):
            return _between(at, start, before, point, left)
        if abs(point.slope) <= -_CURVATURE * start.slope:
            return point
        if point.slope >= 0.0:
            return _between(at, start, point, before, left)
        before, length = point, 2.0 * length
    return None if before is start else before


def _between(at: Callable[[float], Point], start: Point, low: Point, high: Point, most: int) -> Point | None:
    """Return a place between two, of which `low` has the smaller loss."""
    for _ in range(most):
        if 0.5 * (low.length + high.length) in (low.length, high.length):  # a corner of the loss lies between
            break
        point = at(_minimum_of_cubic(low, high))
        if not _decreases(point, start) or point.loss >= low.loss:
            high = point
            continue
        if abs(point.slope) <= -_CURVATURE * start.slope:
            return point
        if point.slope * (high.length - low.length) >= 0.0:
            high = low
        low = point
    return None if low is start else low


def _minimum_of_cubic(a: Point, b: Point) -> float:
    """Return the minimum of the cubic polynomial with the losses and slopes of two places, within their interval."""
    width = b.length - a.length
    middle = a.length + 0.5 * width
    first = a.slope + b.slope - 3.0 * (b.loss - a.loss) / width
    square = first * first - a.slope * b.slope
    if not 0.0 <= square < math.inf:
        return middle
    second = math.copysign(math.sqrt(square), width)
    divisor = b.slope - a.slope + 2.0 * second
    if divisor == 0.0:
        return middle
    share = 1.0 - (b.slope + second - first) / divisor
    return a.length + width * min(max(share, _MARGIN), 1.0 - _MARGIN) if math.isfinite(share) else middle


METHODS = {"weak-wolfe": _weak_wolfe, "strong-wolfe": _strong_wolfe, "backtracking": _backtracking}
"""The line searches by name."""
