# SPDX-License-Identifier: BSD-3-Clause
"""Solutions as functions of the first state and the parameters, with their gradients.

Note [gradients of solutions]
By the steps: the steps that were taken are differentiated, one after the other from the last to the first. That is the
gradient of the computed result; the sizes of steps count as constants. Memory holds all steps.

By the adjoint equation, with the loss L, the cotangents a = dL/dy and the right-hand side f(t, y, theta),

    da/dt = -a df/dy,    dL/dtheta = integral of a df/dtheta from the first time to the last one

(L. S. Pontryagin and others; for networks R. T. Q. Chen and others, Neural ordinary differential equations, 2018).
Memory does not grow with the number of steps. The state is solved backwards beside the cotangents, from each state that
was returned. With the seminorm, the error of the gradients by parameters does not influence the size of steps (P.
Kidger and others, "Hey, that's not an ODE", 2021): they do not feed back into the equation.
"""

from collections import OrderedDict
from itertools import count
from typing import Any

import numpy as np

from tracejit.functions.differentiable import DifferentiableFunction
from tracejit.ode.equation import Arrays
from tracejit.ode.problem import Problem
from tracejit.ode.solve import Solution, TakenStep, weighted_cotangents
from tracejit.ode.steps import StepSizes, Tolerances

_MOST_KEPT = 4  # solutions whose steps are kept for backward, of each function
_MOST_UNDIFFERENTIATED = 4  # solutions in turn; the next one saves nothing for a gradient


class OdeSolution(DifferentiableFunction):
    """The states at given times, with time as the first axis, as a function of times, state and parameters.

    Args:
        problem: the right-hand side.
        tolerances: of steps.
        sizes: of steps.
    """

    memory = 0
    _once_only = (
        "dlode45: its solution has first derivatives in reverse mode only (dlgradient, vjp, jacobian with "
        "mode='reverse'), and no second derivatives; tj.dlrk4 and tj.dleuler have derivatives of any order."
    )

    def __init__(self, problem: Problem, tolerances: Tolerances, sizes: StepSizes) -> None:
        self.problem, self.tolerances, self.sizes = problem, tolerances, sizes
        self.count = len(problem.state.formats)
        super().__init__(
            self.count,
            save_inputs_for_backward=True,
            save_outputs_for_backward=True,
            num_memory_values=self.memory,
        )

    def solved(self, times: np.ndarray, arrays: Arrays, saves: bool = False) -> Solution:
        """Return the solution for the arrays of a state and of parameters."""
        state, theta = arrays[: self.count], arrays[self.count :]
        return self.problem.solved(times.tolist(), state, theta, self.tolerances, self.sizes, saves)

    def forward(self, times: np.ndarray, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the states at all times but the first."""
        return self.solved(times, arrays).states

    def backward(self, *arguments: Any) -> tuple[Any, ...]:
        """Return the gradients by times, which is none, the first state and the parameters."""
        count = self.count
        inputs = arguments[count + 1 : len(arguments) - count - self.memory]
        outputs = arguments[len(arguments) - count - self.memory :]
        return (None, *self.gradients(arguments[:count], inputs[0], inputs[1:], outputs))

    def gradients(self, cotangents: Arrays, times: np.ndarray, arrays: Arrays, outputs: Arrays) -> list[Any]:
        """Return the gradients by the arrays of the first state and of the parameters."""
        raise NotImplementedError


class DirectSolution(OdeSolution):
    """A solution whose steps are differentiated."""

    memory = 1

    def __init__(self, problem: Problem, tolerances: Tolerances, sizes: StepSizes) -> None:
        super().__init__(problem, tolerances, sizes)
        self.kept: OrderedDict[int, list[TakenStep]] = OrderedDict()
        self.numbers = count()  # of solutions
        self.undifferentiated = 0  # solutions since the last gradient

    def forward(self, times: np.ndarray, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the states at all times but the first, and the number of the solution."""
        # The steps are kept: an array of the caller's among them would be one that somebody holds.
        first = [part.copy() for part in arrays[: self.count]]
        saves = self.undifferentiated < _MOST_UNDIFFERENTIATED
        solution = self.solved(times, (*first, *arrays[self.count :]), saves)
        self.undifferentiated += 1
        key = next(self.numbers)
        self.kept[key] = solution.steps
        while len(self.kept) > _MOST_KEPT:
            self.kept.popitem(last=False)
        return (*solution.states, np.asarray(key))

    def gradients(self, cotangents: Arrays, times: np.ndarray, arrays: Arrays, outputs: Arrays) -> list[Any]:
        """Return the gradients by the arrays of the first state and of the parameters."""
        self.undifferentiated = 0
        key = outputs[-1].item()
        steps = self.kept.get(key) or self.solved(times, arrays).steps
        if key in self.kept:
            # A second gradient of a solution is rare, and the next solution fills the memory again.
            self.kept[key] = [step._replace(saved=()) for step in steps]
        count, problem, theta = self.count, self.problem, arrays[self.count :]
        # np.zeros_like takes three times as long.
        by_state = tuple([np.zeros(part.shape, part.dtype) for part in arrays[:count]])
        by_first, by_theta = by_state, tuple([np.zeros(part.shape, part.dtype) for part in theta])
        left = len(times) - 1
        for step in reversed(steps):
            some = tuple([cotangent[left - len(step.weights) : left] for cotangent in cotangents])
            left -= len(step.weights)
            by_state, by_first, by_theta = problem.step_gradients(
                step, theta, by_state, by_first, by_theta, weighted_cotangents(step, some)
            )
        return [
            *problem.slope_gradients(steps[0].time, arrays[:count], theta, by_first, (*by_state, *by_theta))
        ]


class AdjointSolution(OdeSolution):
    """A solution whose gradient is that of the adjoint equation."""

    seminorm = False

    def gradients(self, cotangents: Arrays, times: np.ndarray, arrays: Arrays, outputs: Arrays) -> list[Any]:
        """Return the gradients by the arrays of the first state and of the parameters."""
        count, theta = self.count, arrays[self.count :]
        a = [np.zeros_like(part) for part in arrays[:count]]
        by_theta = [np.zeros_like(part) for part in theta]
        tolerances = self.tolerances._replace(counted=2 * count if self.seminorm else None)
        for number in reversed(range(len(times) - 1)):
            a = [part + cotangent[number] for part, cotangent in zip(a, cotangents, strict=True)]
            state = (*[output[number] for output in outputs], *a, *by_theta)
            interval = (float(times[number + 1]), float(times[number]))
            solved = self.problem.solved_adjoint(interval, state, theta, tolerances).states
            a = [part[0] for part in solved[count : 2 * count]]
            by_theta = [part[0] for part in solved[2 * count :]]
        return [*a, *by_theta]


class SeminormSolution(AdjointSolution):
    """A solution whose gradient is that of the adjoint equation, with steps that look at the state alone."""

    seminorm = True
