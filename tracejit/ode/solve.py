# SPDX-License-Identifier: BSD-3-Clause
"""The loop of a solver that chooses the size of steps so that their error stays within tolerances."""

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.ode import steps
from tracejit.ode.equation import Arrays, Equation, plain
from tracejit.ode.steps import StepSizes, Tolerances
from tracejit.util.named_tuples import NamedTuple

MOST_SAVED = 1 << 26  # bytes of values that the steps of a solution save


class TakenStep(NamedTuple):
    """A step that was taken.

    time, size      where it starts, and its size
    state, first    the state and the slopes there
    weights         the weights_of() the times within
    saved           what its gradient reads of it; nothing if it computes the step again
    """

    time: np.ndarray
    size: np.ndarray
    state: Arrays
    first: Arrays
    weights: np.ndarray
    saved: tuple[Any, ...]


class Solution(NamedTuple):
    """The states at all times but the first, by array with the time as the first axis, and the steps between."""

    states: Arrays
    steps: list[TakenStep]


def integrate(
    equation: Equation,
    times: Sequence[float],
    state: Arrays,
    theta: Arrays,
    tolerances: Tolerances,
    sizes: StepSizes,
    saves: bool = False,
) -> Solution:
    """Return the solution of a differential equation.

    Args:
        equation: the equation.
        times: increasing or decreasing; the state is that of the first one.
        state: the first state.
        theta: the parameters.
        tolerances: of a step.
        sizes: of steps.
        saves: whether steps save what their gradients read.
    """
    dtype = state[0].dtype
    time, end = times[0], times[-1]
    sign = 1.0 if end > time else -1.0
    wanted = [sign * each for each in times[1:]]
    longest = abs(end - time) if sizes.longest is None else sizes.longest
    first, size = _started(equation, time, sign, state, theta, tolerances, sizes.initial)
    size = min(size, longest)
    results = [np.empty((len(wanted), *part.shape), part.dtype) for part in state]
    taken: list[TakenStep] = []
    done = 0
    dense = len(wanted) > 1
    step = equation.fast_step(tolerances, dense, saves)
    room = MOST_SAVED
    while done < len(wanted):
        left = abs(end - time)
        if size * (1 + 1e-9) >= left:
            size = left
        h = sign * size
        steps.check_size(equation.what, time, h)
        at, by = np.asarray(time, dtype), np.asarray(h, dtype)
        after, last, error, between, saved = step(at, by, state, first, theta)
        tolerated = float(error._data)
        if tolerated <= 1:
            after = plain(after)
            reached = end if size == left else time + h
            inside = bisect_right(wanted, sign * reached) - done
            weights = steps.weights_of(
                [(sign * each - time) / h for each in wanted[done : done + inside]], dtype
            )
            if inside:
                is_met = wanted[done + inside - 1] == sign * reached
                if is_met:
                    weights[-1] = steps.AT_THE_END
                _fill([result[done : done + inside] for result in results], weights, between, after, is_met)
            taken.append(TakenStep(at, by, state, first, weights, saved))
            if saved:
                room -= sum([part._data.nbytes for part in saved])
                if room < 0:
                    step = equation.fast_step(tolerances, dense, False)
            done += inside
            time, state, first = reached, after, plain(last)
        size = min(steps.next_size(size, tolerated), longest)
    return Solution(tuple(results), taken)


def _started(
    equation: Equation, time: float, sign: float, state: Arrays, theta: Arrays, tolerances: Tolerances,
    initial: float | None,
) -> tuple[Arrays, float]:  # fmt: skip
    """Return the slopes at the first state, and the size of the first step."""
    dtype = state[0].dtype
    at = np.asarray(time, dtype)
    if initial is not None:
        return plain(equation.fast_slope(at, state, theta)), initial
    first, size = equation.fast_start(tolerances)(at, np.asarray(sign, dtype), state, theta)
    return plain(first), float(size._data)


def _fill(
    results: Sequence[np.ndarray], weights: np.ndarray, dense: Sequence[Any], after: Arrays, is_met: bool
) -> None:
    """Set the states at parts of a step.

    Args:
        results: by array of the state, to be filled, with the parts as the first axis.
        weights: of the parts.
        dense: what the weights are for, by array.
        after: the state at the end.
        is_met: whether the last part is the end.
    """
    if len(weights) > is_met:
        for result, stacked in zip(results, plain(dense), strict=True):
            np.dot(weights, _rows(stacked), _rows(result))
    if is_met:
        for result, new in zip(results, after, strict=True):
            result[-1] = new


def weighted_cotangents(step: TakenStep, cotangents: Arrays) -> Arrays:
    """Return the cotangents by the state and by h times the slopes of a step, stacked, from those at its parts."""
    weights = step.weights.T
    return tuple([np.dot(weights, _rows(ct)).reshape(len(weights), *ct.shape[1:]) for ct in cotangents])


def _rows(array: np.ndarray) -> np.ndarray:
    """Return an array as a matrix with its first axis as rows; there may be none."""
    return array.reshape(len(array), math.prod(array.shape[1:]))
