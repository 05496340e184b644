# SPDX-License-Identifier: BSD-3-Clause
"""dlode45, and solvers with steps of a fixed size."""

import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable
from itertools import pairwise
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.array import as_array, dlarray
from tracejit.aval import FLOAT32, FLOAT64, is_half
from tracejit.errors import ArgumentError, DimsError, DTypeError
from tracejit.functions.joining import stack
from tracejit.functions.loops import dlscan
from tracejit.functions.movement import moveaxis
from tracejit.ode import steps
from tracejit.ode.adjoint import AdjointSolution, DirectSolution, OdeSolution, SeminormSolution
from tracejit.ode.equation import unlabelled
from tracejit.ode.problem import MOST_KEPT, Containers, Problem, problem_of
from tracejit.ode.steps import State, StepSizes, Tolerances
from tracejit.record import recorder
from tracejit.util.arguments import callable_, integer, is_option, real
from tracejit.util.text import brief

_MODES = {"direct": DirectSolution, "adjoint": AdjointSolution, "adjoint-seminorm": SeminormSolution}


def dlode45(
    fun: Any, tspan: Any, y0: Any, theta: Any = None, *, data_format: str | None = None, gradient_mode: str = "direct",
    initial_step_size: float | None = None, max_step_size: float | None = None,
    relative_tolerance: float = 1e-3, absolute_tolerance: float = 1e-6,
) -> Any:  # fmt: skip
    """Return the solution of dy/dt = fun(t, y, theta), by Dormand and Prince's method of orders 5 and 4.

    The size of steps keeps their error below the tolerances. States between steps are interpolated, of order 4.

    Args:
        fun: the right-hand side, ``fun(t, y, theta)``, or ``fun(t, y)`` without theta. t is a number as an array, y
            is as y0; the derivative is returned in the same containers and sizes. Or a dlnetwork, which is then also
            the parameters.
        tspan: two or more times, increasing or decreasing. y0 is the state at the first one.
        y0: the first state: an array, or a container of arrays, of float64 or of float32.
        theta: the parameters: an array, or a container of arrays. The solution has gradients by theta and y0.
        data_format: the format of y0 if it is one array without labels.
        gradient_mode: "direct" differentiates the steps that were taken, which are kept; "adjoint" solves another
            equation backwards, with memory that does not grow with the number of steps; "adjoint-seminorm" does so
            with larger steps. The first is faster unless there are many steps.
        initial_step_size: size of the first step; chosen if None.
        max_step_size: greatest size of a step; that of tspan if None.
        relative_tolerance: error of a step in units of the state.
        absolute_tolerance: error of a step beside that.

    Returns:
        The state at the last time, as y0. With three or more times the states at all times but the first: an axis more,
        which is the first one, or the last one, labelled T, of arrays that have labels.

    Raises:
        ArgumentError: for times that do not increase or decrease, tolerances or sizes that are not positive, or if
            steps become too small.
        DimsError: if the derivative has another size than the state.
        DTypeError: if the state is not of float64, or of float32, or theta has numbers of 16 bits.
        GradientError: from a second derivative.

    Formula:
        y(t + h) = y(t) + h sum b_i k_i,  k_i = f(t + c_i h, y(t) + h sum a_ij k_j); J. R. Dormand, P. J. Prince, 1980.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> fun = lambda t, y, theta: -theta * y
        >>> y = tj.dlode45(fun, [0, 0.5, 1], tj.dlarray([1.0]), tj.dlarray(2.0), relative_tolerance=1e-8)
        >>> np.round(y, 6).tolist()
        [[0.367879], [0.135335]]
        >>> end = lambda theta: tj.dlode45(fun, [0, 1], tj.dlarray([1.0]), theta, gradient_mode="adjoint").sum()
        >>> slope = tj.dlfeval(lambda theta: tj.dlgradient(end(theta), theta), tj.dlarray(2.0))
        >>> round(slope.item(), 3)
        -0.135
    """
    what = "dlode45"
    mode = mode_of(what, gradient_mode)
    times = times_of(what, tspan)
    fun, theta = _right_hand_side(what, fun, theta)
    state, parameters = _containers(what, y0, theta, data_format)
    tolerances = Tolerances(
        positive(what, "relative_tolerance", relative_tolerance),
        positive(what, "absolute_tolerance", absolute_tolerance),
    )
    sizes = StepSizes(
        None if initial_step_size is None else positive(what, "initial_step_size", initial_step_size),
        None if max_step_size is None else positive(what, "max_step_size", max_step_size),
    )
    problem = problem_of(what, fun, state, parameters)
    arrays = [*state.arrays, *([] if parameters is None else parameters.arrays)]
    halves = sorted({str(array.dtype) for array in arrays if is_half(array.dtype)})
    if halves:
        raise DTypeError(f"{what}: theta must hold float64 or float32, not {', '.join(halves)}; use astype.")
    solution = _solution(_MODES[mode], problem, tolerances, sizes)
    outputs = solution(np.asarray(times), *map(unlabelled, arrays))
    stacked = list(outputs) if len(state.arrays) > 1 else [outputs]
    return _result(state, stacked, len(times) > 2)


def dlrk4(
    fun: Any, tspan: Any, y0: Any, theta: Any = None, *, num_steps: int, data_format: str | None = None
) -> Any:
    """Return the solution of dy/dt = fun(t, y, theta) by the classical Runge-Kutta method, in steps of a fixed size.

    The steps are one loop of an accelerated function (dlscan), which can be differentiated.

    Args:
        fun: the right-hand side, as for dlode45.
        tspan: two or more times. y0 is the state at the first one.
        y0: the first state: an array, or a container of arrays.
        theta: the parameters: an array, or a container of arrays.
        num_steps: number of steps between two times.
        data_format: the format of y0 if it is one array without labels.

    Returns:
        As dlode45.

    Raises:
        ArgumentError: for times that do not increase or decrease, or a number of steps below 1.
        DimsError: if the derivative has another size than the state.

    Formula:
        y(t + h) = y(t) + h (k_1 + 2 k_2 + 2 k_3 + k_4) / 6; W. Kutta, 1901.

    Examples:
        >>> import tracejit as tj
        >>> y = tj.dlrk4(lambda t, y: -y, [0, 1], tj.dlarray([1.0]), num_steps=20)
        >>> round(y.item(), 5)
        0.36788
    """
    return _fixed("dlrk4", fun, tspan, y0, theta, num_steps, data_format, _RK4)


def dleuler(
    fun: Any, tspan: Any, y0: Any, theta: Any = None, *, num_steps: int, data_format: str | None = None
) -> Any:
    """Return the solution of dy/dt = fun(t, y, theta) by Euler's method, in steps of a fixed size.

    Args:
        fun: the right-hand side, as for dlode45.
        tspan: two or more times. y0 is the state at the first one.
        y0: the first state: an array, or a container of arrays.
        theta: the parameters: an array, or a container of arrays.
        num_steps: number of steps between two times.
        data_format: the format of y0 if it is one array without labels.

    Returns:
        As dlode45.

    Raises:
        ArgumentError: for times that do not increase or decrease, or a number of steps below 1.
        DimsError: if the derivative has another size than the state.

    Formula:
        y(t + h) = y(t) + h f(t, y, theta); L. Euler, 1768.

    Examples:
        >>> import tracejit as tj
        >>> y = tj.dleuler(lambda t, y: -y, [0, 1], tj.dlarray([1.0]), num_steps=1000)
        >>> round(y.item(), 3)
        0.368
    """
    return _fixed("dleuler", fun, tspan, y0, theta, num_steps, data_format, _EULER)


_MOST_AXES = 64  # of an ndarray
_MOST_STEPS = 2**31  # between two times: their numbers are indices of 32 bits

# By stage: the part of the step that has passed, and how the slope before takes part in the state; then the weights.
_EULER = (((0.0, 0.0),), (1.0,))
_RK4 = (((0.0, 0.0), (0.5, 0.5), (0.5, 0.5), (1.0, 1.0)), (1 / 6, 1 / 3, 1 / 3, 1 / 6))


def _fixed(
    what: str, fun: Any, tspan: Any, y0: Any, theta: Any, num_steps: Any, data_format: str | None, method: Any
) -> Any:
    times = times_of(what, tspan)
    steps_between = integer(what, "num_steps", num_steps)
    if not 1 <= steps_between < _MOST_STEPS:
        raise ArgumentError(
            f"{what}: num_steps must be at least 1 and less than 2**31, not {brief(num_steps)}."
        )
    fun, theta = _right_hand_side(what, fun, theta)
    state, parameters = _containers(what, y0, theta, data_format)
    problem = Problem(what, fun, state, parameters)
    given = () if parameters is None else tuple(parameters.arrays)
    stages, weights = method

    def step(y: State, at: Any) -> tuple[State, None]:
        t, h = at
        slopes: list[State] = []
        for part, weight in stages:
            moved = steps.moved(y, h, slopes[-1:], (weight,)) if weight else y
            slopes.append(problem.slope(t + part * h, moved, given))
        return steps.moved(y, h, slopes, weights), None

    y, results = tuple(state.arrays), []
    dtype = y[0].dtype
    for start, stop in pairwise(times):
        h = (stop - start) / steps_between
        begins = np.asarray(start + h * np.arange(steps_between), dtype)
        y, _ = dlscan(step, y, (begins, np.full(steps_between, h, dtype)))
        results.append(y)
    stacked = [_stacked(parts) for parts in zip(*results, strict=True)]
    return _result(state, stacked, len(times) > 2)


_solutions: "OrderedDict[Hashable, OdeSolution]" = OrderedDict()


def _solution(
    kind: type[OdeSolution], problem: Problem, tolerances: Tolerances, sizes: StepSizes
) -> OdeSolution:
    key = (kind, id(problem), tolerances, sizes)
    found = _solutions.get(key)
    if found is None:
        found = _solutions[key] = kind(problem, tolerances, sizes)  # which keeps the id of the problem
        while len(_solutions) > MOST_KEPT:
            _solutions.popitem(last=False)
    _solutions.move_to_end(key)
    return found


def _right_hand_side(what: str, fun: Any, theta: Any) -> tuple[Callable[..., Any], Any]:
    """Return a right-hand side and its parameters: those of a network are the network itself."""
    if theta is None and isinstance(fun, tree.TreeNode):
        return _of_network, fun
    return callable_(what, "fun", fun), theta


def _of_network(t: Any, y: Any, network: Any) -> Any:
    return network.predict(y)


def mode_of(what: str, value: Any) -> str:
    """Return an argument `gradient_mode`.

    Raises:
        ArgumentError: if it is none of the three.
    """
    if not is_option(value, _MODES):
        raise ArgumentError(
            f"{what}: gradient_mode must be 'direct', 'adjoint' or 'adjoint-seminorm', not {brief(value)}."
        )
    return value  # type: ignore[no-any-return]


def times_of(what: str, tspan: Any) -> list[float]:
    """Return an argument `tspan`.

    Raises:
        ArgumentError: unless it has two or more times that increase or decrease.
    """
    given = as_array(tspan, what, "tspan")
    times = recorder.need_value(given, f"{what}: tspan")
    changes = (
        np.diff(times.astype(np.float64)) if times.ndim == 1 and times.dtype.kind in "iuf" else np.zeros(0)
    )
    if changes.size == 0 or not np.isfinite(times).all() or not ((changes > 0).all() or (changes < 0).all()):
        raise ArgumentError(
            f"{what}: tspan must be two or more times that increase or decrease, not {brief(tspan)}."
        )
    return [float(time) for time in times]


def positive(what: str, argument: str, value: Any) -> float:
    """Return an argument that is a positive number.

    Raises:
        ArgumentError: if it is none, or infinite.
    """
    number = real(what, argument, value)
    if not 0 < number <= sys.float_info.max:
        raise ArgumentError(f"{what}: {argument} must be a positive number, not {brief(value)}.")
    return float(number)


def _containers(
    what: str, y0: Any, theta: Any, data_format: str | None
) -> tuple[Containers, Containers | None]:
    if data_format is not None:
        y0 = dlarray(y0, data_format)
    state = Containers(what, "y0", y0)
    dtypes = {array.dtype for array in state.arrays}
    if not dtypes:
        raise DTypeError(
            f"{what}: y0 holds no array; pass the first state, as an array or a container of arrays."
        )
    if len(dtypes) > 1 or next(iter(dtypes)) not in (FLOAT32, FLOAT64):
        names = ", ".join(sorted(str(dtype) for dtype in dtypes))
        raise DTypeError(
            f"{what}: y0 must hold arrays of float64, or arrays of float32, not of {names}; use astype."
        )
    if max(array.ndim for array in state.arrays) >= _MOST_AXES:
        raise DimsError(
            f"{what}: y0 has {_MOST_AXES} axes, and the states at several times have one more; reshape y0."
        )
    return state, None if theta is None else Containers(what, "theta", theta)


def _stacked(parts: Any) -> Any:
    return stack([unlabelled(part) for part in parts])


def _result(state: Containers, stacked: list[Any], has_time: bool) -> Any:
    """Return the states in their containers, with an axis for time if there are several."""
    leaves = []
    for array, form in zip(stacked, state.formats, strict=True):
        if not has_time:
            leaves.append(dlarray(array[0], form) if form else array[0])
        elif form is None:
            leaves.append(array)
        elif "T" in form:
            raise DimsError(
                f"dlode45: y0 is labelled {form!r}, and the states at several times need the label T; relabel y0."
            )
        else:
            leaves.append(dlarray(moveaxis(array, 0, -1), form + "T"))
    return tree.unflatten(state.treedef, leaves)
