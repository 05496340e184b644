# SPDX-License-Identifier: BSD-3-Clause
"""The loop of a solver whose steps have the size that keeps their error within tolerances."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit.ode import steps
from tracejit.ode.steps import StepSizes, Tolerances
from tracejit.util.named_tuples import NamedTuple

Arrays = tuple[np.ndarray, ...]
SlopeOf = Callable[[np.ndarray, Arrays], Arrays]
StepOf = Callable[[np.ndarray, np.ndarray, Arrays, Arrays], tuple[Arrays, tuple[Arrays, ...], Any]]


class TakenStep(NamedTuple):
    """A step that was taken: its time and size, the state there, the seven slopes, and the times within it."""

    time: np.ndarray
    size: np.ndarray
    state: Arrays
    slopes: tuple[Arrays, ...]
    parts: np.ndarray


class Solution(NamedTuple):
    """The states at all times but the first, by array with the time as the first axis, and the steps between."""

    states: Arrays
    steps: list[TakenStep]


def integrate(
    what: str,
    slope: SlopeOf,
    step: StepOf,
    times: Sequence[float],
    state: Arrays,
    tolerances: Tolerances,
    sizes: StepSizes,
) -> Solution:
    """Return the solution of a differential equation.

    Args:
        what: the name of the function in errors.
        slope: the right-hand side.
        step: a step of Dormand and Prince, steps.dormand_prince with the right-hand side.
        times: increasing or decreasing; the state is that of the first one.
        state: the first state.
        tolerances: of a step.
        sizes: of steps.
    """
    dtype = state[0].dtype
    time, end = times[0], times[-1]
    sign = 1.0 if end > time else -1.0
    wanted = np.array(times[1:])
    first = slope(np.asarray(time, dtype), state)
    longest = abs(end - time) if sizes.longest is None else sizes.longest
    size = sizes.initial or _first_size(slope, time, sign, state, first, tolerances)
    size = min(size, longest)
    results = [np.empty((len(wanted), *part.shape), part.dtype) for part in state]
    taken: list[TakenStep] = []
    done = 0
    while done < len(wanted):
        left = abs(end - time)
        if size * (1 + 1e-9) >= left:
            size = left
        h = sign * size
        steps.check_size(what, time, h)
        at, by = np.asarray(time, dtype), np.asarray(h, dtype)
        after, slopes, error = step(at, by, state, first)
        tolerated = float(error)
        if tolerated <= 1:
            reached = end if size == left else time + h
            inside = int(np.count_nonzero((wanted[done:] - reached) * sign <= 0))
            parts = (wanted[done : done + inside] - time) / h
            for result, values in zip(results, _between(state, by, slopes, parts), strict=True):
                result[done : done + inside] = values
            if inside and wanted[done + inside - 1] == reached:
                for result, new in zip(results, after, strict=True):
                    result[done + inside - 1] = new
                parts[-1] = 1.0
            taken.append(TakenStep(at, by, state, slopes, parts))
            done += inside
            time, state, first = reached, after, slopes[-1]
        size = min(steps.next_size(size, tolerated), longest)
    return Solution(tuple(results), taken)


def _between(state: Arrays, h: np.ndarray, slopes: tuple[Arrays, ...], parts: np.ndarray) -> Arrays:
    """Return the states at parts of a step, each with the parts as the first axis."""
    if not parts.size:
        return tuple([np.empty((0, *y.shape), y.dtype) for y in state])
    weights = steps.parts_of_slopes(parts).astype(h.dtype)
    return tuple([
        y + h * np.tensordot(weights, np.stack([slope[i] for slope in slopes]), 1) for i, y in enumerate(state)
    ])  # fmt: skip


def cotangents_between(step: TakenStep, cotangents: Arrays) -> tuple[Arrays, tuple[Arrays, ...]]:
    """Return the cotangents by the state and the slopes of a step, from those by the states at its parts."""
    weights = (steps.parts_of_slopes(step.parts) * float(step.size)).astype(step.size.dtype)
    by_slopes = [np.tensordot(weights.T, cotangent, 1) for cotangent in cotangents]
    return (
        tuple([cotangent.sum(axis=0) for cotangent in cotangents]),
        tuple([tuple([by[number] for by in by_slopes]) for number in range(len(step.slopes))]),
    )


def _first_size(
    slope: SlopeOf, time: float, sign: float, state: Arrays, first: Arrays, tolerances: Tolerances
) -> float:
    """Return the size of the first step."""
    dtype = state[0].dtype
    of_state, of_slope = (steps.norm(arrays, state, tolerances) for arrays in (state, first))
    trial = steps.first_trial(of_state, of_slope)
    moved = tuple([y + np.asarray(sign * trial, dtype) * d for y, d in zip(state, first, strict=True)])
    second = slope(np.asarray(time + sign * trial, dtype), moved)
    change = steps.norm(tuple([b - a for a, b in zip(first, second, strict=True)]), state, tolerances)
    return steps.first_size((of_state, of_slope, change), trial)
