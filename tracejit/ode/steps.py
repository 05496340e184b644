# SPDX-License-Identifier: BSD-3-Clause
"""Steps of solvers on states that are tuples of arrays, and the choice of their size."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit.errors import ArgumentError
from tracejit.functions.elementwise import maximum, where
from tracejit.functions.labels import stripdims
from tracejit.ode.tableau import BETWEEN, ERROR, NODES, STAGES
from tracejit.util.named_tuples import NamedTuple

State = tuple[Any, ...]
Slope = Callable[[Any, State], State]
"""The right-hand side: of a time and a state, the derivative of each array of the state."""

# As E. Hairer, S. P. Norsett and G. Wanner, Solving Ordinary Differential Equations I, 1993, recommend.
_SAFETY, _LEAST, _MOST = 0.9, 0.2, 5.0
_ORDER = 5


class Tolerances(NamedTuple):
    """The greatest error of a step: relative to an element, and absolute; and of how many arrays of a state."""

    relative: float
    absolute: float
    counted: int | None = None


class StepSizes(NamedTuple):
    """The size of the first step and the greatest one, None to choose it."""

    initial: float | None = None
    longest: float | None = None


def weighted(parts: Sequence[tuple[float, Any]]) -> Any:
    """Return a sum of arrays with weights, without those whose weight is 0."""
    total = None
    for weight, part in parts:
        if weight:
            term = part * weight
            total = term if total is None else total + term
    return total


def moved(state: State, h: Any, slopes: Sequence[State], weights: Sequence[float]) -> State:
    """Return a state moved by h times a weighted sum of slopes."""
    return tuple([
        y + h * weighted([(weight, slope[i]) for weight, slope in zip(weights, slopes, strict=False)])
        for i, y in enumerate(state)
    ])  # fmt: skip


def stages(slope: Slope, t: Any, h: Any, state: State, first: State) -> tuple[State, tuple[State, ...]]:
    """Return the state after a step, and the seven slopes."""
    slopes = [first]
    after = state
    for node, weights in zip(NODES[1:], STAGES, strict=True):
        after = moved(state, h, slopes, weights)
        slopes.append(slope(t + node * h, after))
    return after, tuple(slopes)


def dormand_prince(
    slope: Slope, t: Any, h: Any, state: State, first: State, tolerances: Tolerances
) -> tuple[State, tuple[State, ...], Any]:
    """Return the state after a step, the seven slopes, and the error in units of the tolerance.

    Args:
        slope: the right-hand side.
        t: the time.
        h: the size of the step.
        state: the state at t.
        first: the slope there.
        tolerances: that the error is divided by.
    """
    after, slopes = stages(slope, t, h, state, first)
    return after, slopes, error_of(h, state, after, slopes, tolerances)


def error_of(h: Any, state: State, after: State, slopes: Sequence[State], tolerances: Tolerances) -> Any:
    """Return the error of a step in units of the tolerance.

    Args:
        h: the size of the step.
        state: the state before it.
        after: the state after it.
        slopes: the seven slopes.
        tolerances: that the error is divided by.
    """
    error = []
    for i, (y, new) in enumerate(zip(state, after, strict=True)):
        if tolerances.counted is not None and i >= tolerances.counted:
            break
        scale = tolerances.absolute + tolerances.relative * maximum(abs(y), abs(new))
        off = h * weighted([(weight, slope[i]) for weight, slope in zip(ERROR, slopes, strict=True)])
        error.append(stripdims((off / scale) ** 2))
    size = sum(part.size for part in error)
    total = sum((part.sum() for part in error[1:]), error[0].sum())
    return (total / max(size, 1)) ** 0.5  # a state may have no elements


def weights_of(parts: Sequence[float], dtype: np.dtype) -> np.ndarray:
    """Return how the state and h times the slopes of a step take part in the states at parts of it, by part."""
    powers = np.array([(1.0, s, s * s, s**3, s**4) for s in parts]).reshape(-1, 5)
    weights: np.ndarray = np.dot(powers, _OF_POWERS).astype(dtype, copy=False)
    return weights


_OF_POWERS = np.zeros((5, 8))
_OF_POWERS[0, 0] = 1.0  # the state itself
_OF_POWERS[1:, 1:] = np.array(BETWEEN).T
AT_THE_END = _OF_POWERS.sum(axis=0)


def next_size(h: float, error: float) -> float:
    """Return the size of the next step, after one of size h whose error was `error` tolerances."""
    if error == 0:
        return h * _MOST
    if not math.isfinite(error):
        return h * _LEAST
    factor: float = _SAFETY * error ** (-1 / _ORDER)
    return h * min(_MOST, max(_LEAST, factor))


def first_step(slope: Slope, t: Any, sign: Any, state: State, tolerances: Tolerances) -> tuple[State, Any]:
    """Return the slopes at the first state, and the size of the first step.

    The size is that of Hairer, Norsett and Wanner, section II.4.

    Args:
        slope: the right-hand side.
        t: the first time.
        sign: 1 if times increase, otherwise -1.
        state: the first state.
        tolerances: of steps.
    """
    first = slope(t, state)
    of_state, of_slope = (norm(arrays, state, tolerances) for arrays in (state, first))
    trial = where((of_state < 1e-5) | (of_slope < 1e-5), 1e-6, 0.01 * of_state / of_slope)
    h = sign * trial.astype(state[0].dtype)
    second = slope(t + h, tuple([y + h * d for y, d in zip(state, first, strict=True)]))
    change = norm(tuple([b - a for a, b in zip(first, second, strict=True)]), state, tolerances) / trial
    # Comparisons, because those of Python's min() and max() keep the first number beside NaN.
    largest = where(change > of_slope, change, of_slope)
    least = where(trial * 1e-3 > 1e-6, trial * 1e-3, 1e-6)
    size = where(largest <= 1e-15, least, (0.01 / largest) ** (1 / _ORDER))
    return first, where(size < 100 * trial, size, 100 * trial)


def norm(arrays: State, state: State, tolerances: Tolerances) -> Any:
    """Return the root mean square of arrays in tolerances at a state, in double precision."""
    total: Any = 0.0
    count = 0
    for x, y in list(zip(arrays, state, strict=True))[: tolerances.counted]:
        scale = tolerances.absolute + tolerances.relative * abs(y)
        total = total + ((x / scale) ** 2).sum().astype(np.float64)
        count += x.size
    return (total / max(count, 1)) ** 0.5


def check_size(what: str, t: float, h: float) -> None:
    """Check that a step still changes the time.

    Raises:
        ArgumentError: if it does not: the solution cannot be followed.
    """
    if not abs(h) > 16 * np.finfo(np.float64).eps * max(abs(t), 1e-300) or not math.isfinite(h):
        raise ArgumentError(
            f"{what}: the step at time {t:.6g} became {abs(h):.3g}, too small to change the time; the "
            "solution grows without bound there, or jumps. Raise relative_tolerance, end tspan earlier, or check the "
            "right-hand side."
        )
