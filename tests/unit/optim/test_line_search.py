# SPDX-License-Identifier: BSD-3-Clause
"""Line searches: the conditions that a step meets, and losses that are infinite, not convex, or do not decrease."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracejit.optim.line_search import METHODS, Point, search

LINES = {  # losses with slopes by the length of a step
    "parabola": lambda t: ((t - 3.0) ** 2, 2.0 * (t - 3.0)),
    "short": lambda t: ((1e3 * t - 1.0) ** 2, 2e3 * (1e3 * t - 1.0)),
    "long": lambda t: ((1e-3 * t - 1.0) ** 2, 2e-3 * (1e-3 * t - 1.0)),
    "waves": lambda t: (math.cos(3.0 * t + 0.3), -3.0 * math.sin(3.0 * t + 0.3)),
    "corner": lambda t: (abs(t - 0.3), math.copysign(1.0, t - 0.3)),
    "wall": lambda t: (-t if t < 0.2 else math.inf, -1.0),
    "hole": lambda t: (math.nan if t > 0.1 else (t - 0.05) ** 2, 2.0 * (t - 0.05)),
    "quartic": lambda t: (t**4 - 2.0 * t**2 - t, 4.0 * t**3 - 4.0 * t - 1.0),
}


def along(line, method, most=60):
    """Return the start, what a search along a line finds, and the lengths that it tried."""
    tried = []

    def at(length):
        tried.append(length)
        return Point(length, *line(length), None)

    start = Point(0.0, *line(0.0), None)
    return start, search(method, at, start, most), tried


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", LINES)
def test_a_place_that_is_found_meets_the_conditions(name, method) -> None:
    start, point, tried = along(LINES[name], method)
    assert point is not None
    assert point.loss <= start.loss + 1e-4 * point.length * start.slope
    assert point.length in tried and (point.loss, point.slope) == LINES[name](point.length)
    if method == "weak-wolfe" and name != "wall":  # before a wall the slope is the first one
        assert point.slope >= 0.9 * start.slope
    if method == "strong-wolfe" and name not in ("wall", "corner"):
        assert abs(point.slope) <= 0.9 * abs(start.slope)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-2, 2), min_size=3, max_size=6), st.floats(0.01, 50), st.sampled_from([*METHODS]))
def test_polynomials_that_grow_in_the_end(coefficients, scale, method) -> None:
    loss = np.polynomial.Polynomial([*coefficients, *[0.0] * (len(coefficients) % 2 == 0), 1.0])
    slope = loss.deriv()
    if loss.degree() % 2 or abs(slope(0.0)) < 1e-3:
        return
    sign = -scale * math.copysign(1.0, slope(0.0))  # so that the loss decreases at first

    def line(t):
        return float(loss(sign * t)), float(sign * slope(sign * t))

    start, point, _ = along(line, method)
    assert point is not None
    assert point.loss <= start.loss + 1e-4 * point.length * start.slope
    if method == "weak-wolfe":
        assert point.slope >= 0.9 * start.slope
    if method == "strong-wolfe":
        assert abs(point.slope) <= 0.9 * abs(start.slope)


@pytest.mark.parametrize("method", METHODS)
def test_a_loss_that_does_not_decrease_gives_nothing(method) -> None:
    _, point, tried = along(lambda t: (t, -1.0), method, most=7)
    assert point is None and len(tried) == 7


@pytest.mark.parametrize("method", ["weak-wolfe", "strong-wolfe"])
def test_of_places_without_curvature_the_best_is_taken(method) -> None:
    _, point, tried = along(lambda t: (-t, -1.0), method, most=4)
    assert tried == [1.0, 2.0, 4.0, 8.0]
    assert point is not None and point.length == 8.0


def test_a_parabola_takes_one_cubic_step() -> None:
    _, point, tried = along(lambda t: ((4.0 * t - 1.0) ** 2, 8.0 * (4.0 * t - 1.0)), "strong-wolfe")
    assert tried == [1.0, pytest.approx(0.25)] and point is not None
