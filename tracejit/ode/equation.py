# SPDX-License-Identifier: BSD-3-Clause
"""An equation that a solver solves: its right-hand side, and the accelerated functions that the solver calls."""

from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from tracejit.accelerate.function import dlaccelerate
from tracejit.array import dlarray
from tracejit.functions.joining import stack
from tracejit.functions.labels import stripdims
from tracejit.ode import steps
from tracejit.ode.steps import State, Tolerances

Arrays = tuple[np.ndarray, ...]


class Equation:
    """The equation dy/dt = slope(t, y, theta), for states and parameters that are tuples of arrays without labels.

    Args:
        what: the name of the solver, in errors.
        slope: returns the derivatives of the arrays of a state.
    """

    def __init__(self, what: str, slope: Callable[[Any, State, State], State]) -> None:
        self.what = what
        self.slope = slope
        self._functions: dict[Hashable, Any] = {}

    @cached_property
    def fast_slope(self) -> Any:
        """The right-hand side, accelerated."""
        return dlaccelerate(self.slope)

    def fast_start(self, tolerances: Tolerances) -> Any:
        """Return the function (t, sign, state, theta) -> (slopes, size of the first step)."""

        def start(t: Any, sign: Any, state: State, theta: State) -> Any:
            return steps.first_step(lambda t, y: self.slope(t, y, theta), t, sign, state, tolerances)

        return self._kept(("start", tolerances), start)

    def fast_step(self, tolerances: Tolerances, dense: bool) -> Any:
        """Return the function (t, h, state, slopes there, theta) -> (state, slopes there, error, dense) of a step.

        For each array of the state `dense` has the array and the seven slopes times h, if it is asked for.
        """

        def step(t: Any, h: Any, state: State, first: State, theta: State) -> Any:
            after, slopes, error = steps.dormand_prince(
                lambda t, y: self.slope(t, y, theta), t, h, state, first, tolerances
            )
            parts = [
                stack([y, *[h * slope[i] for slope in slopes]]) for i, y in enumerate(state if dense else ())
            ]
            return after, slopes[-1], error, tuple(parts)

        return self._kept((dense, tolerances), step)

    def _kept(self, key: Hashable, function: Callable[..., Any]) -> Any:
        if key not in self._functions:
            self._functions[key] = dlaccelerate(function)
        return self._functions[key]


def unlabelled(array: Any) -> Any:
    """Return an array without labels."""
    return stripdims(array) if isinstance(array, dlarray) and array.format else array


def plain(arrays: Sequence[Any]) -> Arrays:
    """Return the elements of arrays."""
    return tuple([array._data if isinstance(array, dlarray) else np.asarray(array) for array in arrays])
