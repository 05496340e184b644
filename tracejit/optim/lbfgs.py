# SPDX-License-Identifier: BSD-3-Clause
"""L-BFGS: parameters after one iteration, from the values and gradients that a loss function returns.

Note [vectors]
The parameters of an iteration are one vector of float64, also those of float32. A factor of the learning rate scales
its parameter: the unknown is the parameter over the factor's root, so that a first step along the gradient is as long
as that of other solvers, and curvature is learnt in these units. Parameters whose factor is 0 are left out.

Note [the step from the loss that is known]
A state holds the loss and the gradients of the parameters that were returned with it. If the next call gets these
parameters, to the last bit, they are not computed again; otherwise they are.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.array import as_array, dlarray
from tracejit.errors import ArgumentError, TraceError
from tracejit.functions.formats import describe
from tracejit.optim.line_search import METHODS, Point, search
from tracejit.optim.parameters import arrays_like, arrays_of, factors_of
from tracejit.record import recorder
from tracejit.traces.devices import gpu
from tracejit.util import devices
from tracejit.util.arguments import callable_, is_option, number_of_things, positive
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.text import brief, count, one_of

_FUNCTION = "lbfgsupdate"
_EPSILON = 2.0**-52
Vector = np.ndarray[Any, np.dtype[np.float64]]


class Curvature(NamedTuple):
    """A step, and how the gradients changed in it.

    step    difference of parameters
    change  difference of gradients
    slope   their inner product
    """

    step: Vector
    change: Vector
    slope: float

    @classmethod
    def of(cls, step: Vector, change: Vector) -> "Curvature":
        """Return the curvature of a step."""
        return cls(step, change, float(step @ change))


class LbfgsState(NamedTuple):
    """The state of L-BFGS after an iteration; lbfgsstate() makes that before the first one.

    history_size                      the largest number of earlier steps that are kept
    initial_inverse_hessian_factor    what the first gradients are multiplied by to give a step
    loss                              of the parameters that were returned with the state, None before the first call
    gradients                         of these parameters, a container like them
    additional_loss_function_outputs  what the loss function returned after them
    gradients_norm                    Euclidean norm of the gradients
    step_norm                         Euclidean norm of the last step
    line_search_status                "completed", "failed" where no step made the loss smaller, "" at the beginning
    history                           the last steps, the oldest first
    vectors                           the parameters and gradients as vectors (Note [vectors])
    """

    history_size: int
    initial_inverse_hessian_factor: float
    loss: float | None = None
    gradients: Any = None
    additional_loss_function_outputs: tuple[Any, ...] = ()
    gradients_norm: float = math.nan
    step_norm: float = math.nan
    line_search_status: str = ""
    history: tuple[Curvature, ...] = ()
    vectors: tuple[Vector, Vector] | None = None

    def without_loss(self) -> "LbfgsState":
        """Return the state without its loss and gradients, which the next call of lbfgsupdate computes again.

        That is needed where the loss function itself has changed, as with other data.
        """
        return self._replace(
            loss=None, gradients=None, additional_loss_function_outputs=(), vectors=None,
            gradients_norm=math.nan,
        )  # fmt: skip

    def __repr__(self) -> str:
        steps = f"{len(self.history)} of {count(self.history_size, 'step')}"
        return (
            f"LbfgsState(loss={self.loss}, gradients_norm={self.gradients_norm:.6g}, step_norm={self.step_norm:.6g}, "
            f"line_search_status={self.line_search_status!r}, {steps})"
        )


def lbfgsstate(history_size: int = 10, initial_inverse_hessian_factor: float = 1.0) -> LbfgsState:
    """Return the state of L-BFGS before the first iteration.

    Args:
        history_size: number of earlier steps that an iteration learns curvature from; 3 to 20 are usual.
        initial_inverse_hessian_factor: the first direction is the negative gradient times this number.

    Raises:
        ArgumentError: if an argument is no number.
        ArgumentValueError: if `history_size` is less than 1, or the factor is not positive and finite.

    Examples:
        >>> import tracejit as tj
        >>> tj.lbfgsstate(history_size=3)
        LbfgsState(loss=None, gradients_norm=nan, step_norm=nan, line_search_status='', 0 of 3 steps)
    """
    return LbfgsState(
        number_of_things("lbfgsstate", "history_size", history_size),
        positive("lbfgsstate", "initial_inverse_hessian_factor", initial_inverse_hessian_factor),
    )


def lbfgsupdate(
    params: Any,
    loss_fcn: Callable[[Any], Any],
    solver_state: LbfgsState | None = None,
    *,
    line_search_method: str = "weak-wolfe",
    max_num_line_search_iterations: int = 20,
    initial_step_size: float | str | None = None,
) -> tuple[Any, LbfgsState]:
    """Return parameters after one iteration of L-BFGS, and its state.

    The direction is the negative gradient times an approximation of the inverse Hessian, which is built of the last
    steps and the changes of the gradients in them; a line search finds how far to go. (D. Liu and J. Nocedal, On the
    limited memory BFGS method for large scale optimization, Mathematical Programming, 1989.) It is meant for a loss of
    all data, with the same data in each call. It runs between calls of `loss_fcn`, so it is that function which is
    accelerated, not the one that calls lbfgsupdate.

    Args:
        params: floating-point dlarray, container of such arrays, or network.
        loss_fcn: function of `params` that returns a loss and its gradients, as dlgradient returns them for `params`;
            what else it returns is kept in the state.
        solver_state: the state that the last call returned, or that of lbfgsstate(); None to begin.
        line_search_method: "weak-wolfe" or "strong-wolfe", by the condition on the slope at the end of a step; or
            "backtracking", which has none, and learns no curvature where the loss is not convex along its steps.
        max_num_line_search_iterations: number of calls of `loss_fcn` in a line search.
        initial_step_size: largest element of the first step, in place of what the factor of lbfgsstate() gives; "auto"
            is half the largest parameter plus 0.1.

    Returns:
        params, solver_state: a container like `params`, with its formats and dtypes; and an LbfgsState. Where no step
        makes the loss smaller, and where it is infinite or NaN, `solver_state.line_search_status` is "failed" and the
        parameters are as they were.

    Raises:
        ArgumentError: if an argument is not valid, or `loss_fcn` does not return a number and gradients like `params`.
        DimsError: if sizes or labels of an array and its gradient differ.
        DTypeError: if a parameter is not of floating point.
        TraceError: if it is called in a recorded function.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> @tj.dlaccelerate
        ... def rosenbrock(x):
        ...     y = 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2
        ...     return y, tj.dlgradient(y, x)
        >>> x, state = tj.dlarray([-1.0, 2.0]), tj.lbfgsstate()
        >>> while state.line_search_status != "failed" and not state.gradients_norm < 1e-9:
        ...     x, state = tj.lbfgsupdate(x, rosenbrock, state)
        >>> x.round(6).tolist(), len(state.history) <= 10
        ([1.0, 1.0], True)
    """
    state = lbfgsstate() if solver_state is None else solver_state
    if not isinstance(state, LbfgsState):
        raise ArgumentError(
            f"{_FUNCTION}: solver_state must be what lbfgsstate() or the last call returned, not {brief(state)}."
        )
    if not is_option(line_search_method, METHODS):
        raise ArgumentError(
            f"{_FUNCTION}: line_search_method must be {one_of(METHODS)}, not {brief(line_search_method)}."
        )
    most = number_of_things(_FUNCTION, "max_num_line_search_iterations", max_num_line_search_iterations)
    size = step_size(_FUNCTION, initial_step_size)
    if recorder.recorder() is not None:
        raise TraceError(
            f"{_FUNCTION}: it calls loss_fcn as often as the losses demand, so it cannot be recorded; call it outside "
            "of dlaccelerate and dlfeval, and accelerate loss_fcn."
        )
    problem = _Problem(params, callable_(_FUNCTION, "loss_fcn", loss_fcn))
    here = problem.start(state)
    found, history = None, state.history
    square = float(here.slopes @ here.slopes)
    if square == 0.0:  # a minimum
        return params, problem.state(state, here, "completed")
    if math.isfinite(square) and math.isfinite(here.loss):
        found, history = _along_directions(problem, here, state, size, line_search_method, most)
    if found is None:
        return params, problem.state(state, here, "failed")
    step = found.place - here.place
    last = Curvature.of(step, found.slopes - here.slopes)
    if last.slope > _EPSILON * float(last.change @ last.change):  # else the Hessian would not be positive
        history = (*history, last)[-state.history_size :]
    state = problem.state(state._replace(history=history), found, "completed", step)
    return problem.put_back(found.params), state


def step_size(function: str, value: Any) -> float | str | None:
    """Return an argument that is the size of a first step."""
    if value is None or is_option(value, ("auto",)):
        return value  # type: ignore[no-any-return]
    if isinstance(value, str):
        raise ArgumentError(
            f'{function}: initial_step_size must be a number, "auto" or None, not {brief(value)}.'
        )
    return positive(function, "initial_step_size", value)


class _Evaluation(NamedTuple):
    """Parameters, and what the loss function returns for them.

    params      the parameters, without nodes
    place       the same as a vector
    loss        their loss
    slopes      the gradients as a vector
    gradients   the gradients in containers
    more        what else was returned
    """

    params: Any
    place: Vector
    loss: float
    slopes: Vector
    gradients: Any
    more: tuple[Any, ...]


def _along_directions(
    problem: "_Problem", here: _Evaluation, state: LbfgsState, size: Any, method: str, most: int
) -> tuple[_Evaluation | None, tuple[Curvature, ...]]:
    """Return what a line search finds, and the history that its direction is of: all, or none where that finds none."""
    factor = state.initial_inverse_hessian_factor
    if size is not None and state.step_norm != state.step_norm:  # the first iteration
        largest = 0.5 * float(np.abs(here.place).max()) + 0.1 if size == "auto" else size
        factor = largest / float(np.abs(here.slopes).max())
    for history in dict.fromkeys([len(state.history), 0]):
        pairs = state.history[:history]
        direction = -_inverse_hessian_times(pairs, factor, here.slopes)
        slope = float(direction @ here.slopes)
        if not -math.inf < slope < 0.0:
            continue

        def at(length: float, direction: Vector = direction) -> Point:
            there = problem.at(here.place + length * direction)
            return Point(length, there.loss, float(direction @ there.slopes), there)

        point = search(method, at, Point(0.0, here.loss, slope, here), most)
        if point is not None:
            return point.found, pairs
    return None, state.history


def _inverse_hessian_times(history: tuple[Curvature, ...], factor: float, slopes: Vector) -> Vector:
    """Return the approximate inverse Hessian times gradients, by two loops over the history."""
    result = slopes.copy()
    shares = []
    for step, change, slope in reversed(history):
        share = float(step @ result) / slope
        result -= share * change
        shares.append(share)
    if history:
        result *= history[-1].slope / float(history[-1].change @ history[-1].change)
    else:
        result *= factor
    for (step, change, slope), share in zip(history, reversed(shares), strict=True):
        result += (share - float(change @ result) / slope) * step
    return result


class _Problem:
    """Parameters as vectors, and the loss of vectors (Note [vectors]).

    Args:
        params: containers of arrays, or a network.
        loss_fcn: function of such containers.
    """

    def __init__(self, params: Any, loss_fcn: Callable[[Any], Any]) -> None:
        self._loss_fcn = loss_fcn
        roots = [math.sqrt(factor) for factor in factors_of(_FUNCTION, params)]
        self._params, self.put_back = tree.parameters(params, _FUNCTION)
        self._treedef, self._arrays = arrays_of(_FUNCTION, self._params)
        self._varies = [number for number, root in enumerate(roots) if root]
        sizes = [self._arrays[number].size for number in self._varies]
        self._ends = np.cumsum(sizes).tolist()
        self._roots: Vector | float = 1.0
        if any(root != 1.0 for root in roots):
            self._roots = np.repeat([roots[number] for number in self._varies], sizes)

    def start(self, state: LbfgsState) -> _Evaluation:
        """Return the loss and gradients of the parameters (Note [the step from the loss that is known])."""
        place = self._vector(self._arrays) / self._roots
        if state.history and state.history[0].step.shape != place.shape:
            raise ArgumentError(
                f"{_FUNCTION}: solver_state is of {count(state.history[0].step.size, 'number')}, but params have "
                f"{place.size}; begin with lbfgsstate()."
            )
        if state.loss is None or state.vectors is None or not np.array_equal(state.vectors[0], place):
            return self.evaluate(self._arrays)
        return _Evaluation(
            self._params, place, state.loss, state.vectors[1], state.gradients,
            state.additional_loss_function_outputs,
        )  # fmt: skip

    def at(self, place: Vector) -> _Evaluation:
        """Return the loss and gradients of the parameters that are nearest to a vector in their dtypes."""
        arrays = list(self._arrays)
        numbers = place * self._roots
        start = 0
        for number, end in zip(self._varies, self._ends, strict=True):
            like = arrays[number]
            data = numbers[start:end].reshape(like.shape).astype(like.dtype)
            array: dlarray = dlarray._wrap(data, like.format, None)
            arrays[number] = gpu(array) if isinstance(like._data, devices.OnDevice) else array
            start = end
        return self.evaluate(arrays)

    def evaluate(self, arrays: list[dlarray]) -> _Evaluation:
        """Return the loss and gradients of parameters."""
        params = tree.unflatten(self._treedef, arrays)
        result = self._loss_fcn(self.put_back(params))
        if not isinstance(result, (tuple, list)) or len(result) < 2:
            raise ArgumentError(
                f"{_FUNCTION}: loss_fcn must return a loss and its gradients, as in `return loss, dlgradient(loss, "
                f"params)`, not {brief(result)}."
            )
        loss, gradients, *more = result
        slopes = arrays_like(_FUNCTION, self._treedef, self._params, self._arrays, gradients, "gradients")
        return _Evaluation(
            params, self._vector(arrays) / self._roots, _number(loss), self._vector(slopes) * self._roots,
            gradients, tuple(more),
        )  # fmt: skip

    def state(
        self, before: LbfgsState, at: _Evaluation, status: str, step: Vector | None = None
    ) -> LbfgsState:
        """Return the state with what was found at the parameters that are returned, after a step or without one."""
        return before._replace(
            loss=at.loss, gradients=at.gradients, additional_loss_function_outputs=at.more,
            gradients_norm=_norm(at.slopes / self._roots),
            step_norm=0.0 if step is None else _norm(step * self._roots),
            line_search_status=status, vectors=(at.place, at.slopes),
        )  # fmt: skip

    def _vector(self, arrays: list[dlarray]) -> Vector:
        """Return those arrays that vary as a vector."""
        vector = np.empty(self._ends[-1] if self._ends else 0)
        start = 0
        for number, end in zip(self._varies, self._ends, strict=True):
            data = devices.on_host(arrays[number]._data)
            vector[start:end].reshape(data.shape)[...] = data
            start = end
        return vector


def _norm(vector: Vector) -> float:
    return float(np.linalg.norm(vector))


def _number(loss: Any) -> float:
    array = as_array(loss, _FUNCTION, "loss")
    if array.size != 1 or array.dtype.kind == "c":
        raise ArgumentError(
            f"{_FUNCTION}: loss_fcn must return one real number as its loss, not {array.dtype} of {describe(array)}; "
            "reduce it, as mean() does."
        )
    return float(array.item())
