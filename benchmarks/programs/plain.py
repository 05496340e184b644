# SPDX-License-Identifier: BSD-3-Clause
"""The words of NumPy and SciPy, for values alone: what the others are compared with."""

from collections.abc import Callable
from typing import Any

import numpy
import scipy.interpolate
import scipy.linalg
import scipy.special


class Plain:
    """Loops of Python."""

    np = numpy
    special = scipy.special
    linalg = scipy.linalg

    def loop(self, step: Callable[[Any], Any], state: Any, count: int) -> Any:
        for _ in range(count):
            state = step(state)
        return state

    def scan(self, step: Callable[[Any, Any], Any], state: Any, xs: Any, reverse: bool = False) -> Any:
        given = []
        parts = list(zip(*xs, strict=True)) if isinstance(xs, tuple) else list(xs)
        for x in reversed(parts) if reverse else parts:
            state, y = step(state, x)
            given.append(y)
        given = given[::-1] if reverse else given
        if isinstance(given[0], tuple):
            return state, tuple(numpy.stack(column) for column in zip(*given, strict=True))
        return state, numpy.stack(given)

    def added(self, x: Any, place: Any, values: Any) -> Any:
        x = x.copy()
        x[place] += values
        return x

    def spline(self, knots: Any, heights: Any) -> Any:
        return scipy.interpolate.CubicSpline(knots, heights, bc_type="natural")

    def with_gradients(self, loss: Callable[..., Any]) -> Callable[..., Any]:
        raise NotImplementedError("NumPy has no gradients.")

    def along(self, fun: Callable[[Any], Any], x: Any, v: Any) -> Any:
        raise NotImplementedError("NumPy has no derivatives.")
