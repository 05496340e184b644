# SPDX-License-Identifier: BSD-3-Clause
"""The loop of a solver whose steps have the size that keeps their error within tolerances."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit.array import dlarray
from tracejit.ode import steps
from tracejit.ode.steps import State, Steps, Tolerances

Step = Callable[[Any, Any, State, State], tuple[State, tuple[State, ...], Any]]
Between = Callable[[State, Any, tuple[State, ...], Any], State]


def integrate(
    what: str,
    slope: Callable[[Any, State], State],
    step: Step,
    between: Between,
    times: Sequence[float],
    state: State,
    tolerances: Tolerances,
    sizes: Steps,
) -> list[State]:
    """Return the states at all times but the first one.

    Args:
        what: the name of the function in errors.
        slope: the right-hand side.
        step: a step of Dormand and Prince, steps.dormand_prince with the right-hand side.
        between: steps.between.
        times: increasing or decreasing; the state is that of the first one.
        state: the first state.
        tolerances: of a step.
        sizes: of steps.
    """
    dtype = state[0].dtype

    def number(value: float) -> np.ndarray:
        return np.asarray(value, dtype)

    time, end = times[0], times[-1]
    sign = 1.0 if end > time else -1.0
    first = slope(number(time), state)
    longest = abs(end - time) if sizes.longest is None else sizes.longest
    size = sizes.initial or _first_size(slope, number, time, sign, state, first, tolerances)
    size = min(size, longest)
    results: list[State] = []
    while True:
        left = abs(end - time)
        if size * (1 + 1e-9) >= left:
            size = left
        h = sign * size
        steps.check_size(what, time, h)
        after, slopes, error = step(number(time), number(h), state, first)
        tolerated = float(_data(error))
        if tolerated <= 1:
            reached = end if size == left else time + h
            while len(results) < len(times) - 1 and (times[len(results) + 1] - reached) * sign <= 0:
                part = (times[len(results) + 1] - time) / h
                at_end = times[len(results) + 1] == reached
                results.append(after if at_end else tuple(between(state, number(h), slopes, number(part))))
            if len(results) == len(times) - 1:
                return results
            time, state, first = reached, tuple(after), tuple(slopes[-1])
        size = min(steps.next_size(size, tolerated), longest)


def _first_size(
    slope: Callable[[Any, State], State],
    number: Callable[[float], np.ndarray],
    time: float,
    sign: float,
    state: State,
    first: State,
    tolerances: Tolerances,
) -> float:
    """Return the size of the first step."""
    y, f = tuple(map(_data, state)), tuple(map(_data, first))
    of_state, of_slope = steps.norm(y, y, tolerances), steps.norm(f, y, tolerances)
    trial = steps.first_trial(of_state, of_slope)
    moved = tuple([
        _like(a, part + number(sign * trial) * d) for a, part, d in zip(state, y, f, strict=True)
    ])  # fmt: skip
    second = tuple(map(_data, slope(number(time + sign * trial), moved)))
    change = steps.norm(tuple([b - a for a, b in zip(f, second, strict=True)]), y, tolerances)
    return steps.first_size((of_state, of_slope, change), trial)


def _data(array: Any) -> np.ndarray:
    """Return the elements of an array, without its derivative."""
    return array._data if isinstance(array, dlarray) else np.asarray(array)


def _like(array: Any, data: np.ndarray) -> Any:
    return dlarray(data, array.format) if isinstance(array, dlarray) and array.format else data
