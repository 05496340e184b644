# SPDX-License-Identifier: BSD-3-Clause
"""An equation that a solver solves: its right-hand side, and the accelerated functions that the solver calls."""

from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from tracejit.accelerate.function import dlaccelerate, with_constants
from tracejit.array import dlarray
from tracejit.functions.joining import stack
from tracejit.functions.labels import stripdims
from tracejit.functions.saved_values import with_saved
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

    def fast_step(self, tolerances: Tolerances, dense: bool, saves: bool) -> Any:
        """Return the function of a step.

        It is (t, h, state, slopes there, theta) -> (state, slopes there, error, dense, saved).
        For each array of the state `dense` has the array and the seven slopes times h, if it is asked for; `saved` has
        what the gradient of the step reads, if `saves` asks for it.
        """

        def step(t: Any, h: Any, state: State, first: State, theta: State) -> Any:
            compute = self.step_outputs(t, h, state, first, theta)
            outputs, saved = with_saved(compute, (*state, *first, *theta)) if saves else (compute(), ())
            after, slopes = parted(outputs, len(state))
            slopes = (first, *slopes)
            error = steps.error_of(h, state, after, slopes, tolerances)
            parts = [
                stack([y, *[h * slope[i] for slope in slopes]]) for i, y in enumerate(state if dense else ())
            ]
            return after, slopes[-1], error, tuple(parts), saved

        # The gradients of a step read what it saves, so both must have recorded the same operations.
        return self._kept((dense, saves, tolerances), step, with_constants if saves else dlaccelerate)

    def step_outputs(
        self, t: Any, h: Any, state: State, first: State, theta: State
    ) -> Callable[[], tuple[Any, ...]]:
        """Return the function that computes the state after a step and the six slopes behind the first, in a row."""

        def compute() -> tuple[Any, ...]:
            after, slopes = steps.stages(lambda t, y: self.slope(t, y, theta), t, h, state, first)
            return (*after, *[part for slope in slopes[1:] for part in slope])

        return compute

    def _kept(
        self, key: Hashable, function: Callable[..., Any], accelerate: Callable[..., Any] = dlaccelerate
    ) -> Any:
        if key not in self._functions:
            self._functions[key] = accelerate(function)
        return self._functions[key]


def parted(arrays: Sequence[Any], count: int) -> tuple[State, tuple[State, ...]]:
    """Return the first state of a row of states with `count` arrays each, and the others."""
    states = [tuple(arrays[start : start + count]) for start in range(0, len(arrays), count)]
    return states[0], tuple(states[1:])


def unlabelled(array: Any) -> Any:
    """Return an array without labels."""
    return stripdims(array) if isinstance(array, dlarray) and array.format else array


def plain(arrays: Sequence[Any]) -> Arrays:
    """Return the elements of arrays."""
    return tuple([array._data if isinstance(array, dlarray) else np.asarray(array) for array in arrays])
