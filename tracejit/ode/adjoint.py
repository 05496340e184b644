# SPDX-License-Identifier: BSD-3-Clause
"""The gradient of a solution by another equation, solved backwards.

With the loss L, the cotangents a = dL/dy and the right-hand side f(t, y, theta),

    da/dt = -a df/dy,    dL/dtheta = integral of a df/dtheta from the first time to the last one

(L. S. Pontryagin and others; for networks R. T. Q. Chen and others, Neural ordinary differential equations, 2018).
The memory does not grow with the number of steps. The state is solved backwards beside the cotangents, from each state
that was returned. With the seminorm the error of the gradients by parameters does not choose the size of steps (P.
Kidger and others, "Hey, that's not an ODE", 2021): they do not feed back into the equation.
"""

from typing import Any

import numpy as np

from tracejit.functions.differentiable import DifferentiableFunction
from tracejit.ode.problem import Problem, plain
from tracejit.ode.steps import Steps, Tolerances


class OdeSolution(DifferentiableFunction):
    """The states at given times, of which each first axis is the time, as a function of times, state and parameters.

    Args:
        problem: the right-hand side.
        tolerances: of steps.
        sizes: of steps.
        seminorm: whether gradients by parameters are left out where the size of a step is chosen.
    """

    def __init__(self, problem: Problem, tolerances: Tolerances, sizes: Steps, seminorm: bool) -> None:
        self.problem, self.tolerances, self.sizes, self.seminorm = problem, tolerances, sizes, seminorm
        self.count = len(problem.state.formats)
        super().__init__(self.count, save_inputs_for_backward=True, save_outputs_for_backward=True)

    def forward(self, times: np.ndarray, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the states at all times but the first."""
        state, theta = arrays[: self.count], arrays[self.count :]
        solved = self.problem.solved(
            times.tolist(), self.labelled(state), tuple(theta), self.tolerances, self.sizes
        )
        return tuple([np.stack(plain(parts)) for parts in zip(*solved, strict=True)])

    def backward(self, *arguments: Any) -> tuple[Any, ...]:
        """Return the gradients by times (none), the first state and the parameters."""
        count, total = self.count, 1 + self.count + self.parameters(len(arguments))
        cotangents = arguments[:count]
        inputs = arguments[count + 1 : count + 1 + total]
        outputs = arguments[count + 1 + total :]
        times, theta = inputs[0].tolist(), tuple(inputs[1 + count :])
        a = [np.zeros_like(part) for part in inputs[1 : 1 + count]]
        gradients = [np.zeros_like(part) for part in theta]
        tolerances = self.tolerances._replace(counted=2 * count if self.seminorm else None)
        for number in reversed(range(len(times) - 1)):
            a = [part + cotangent[number] for part, cotangent in zip(a, cotangents, strict=True)]
            state = (*[output[number] for output in outputs], *a, *gradients)
            interval = (times[number + 1], times[number])
            solved = plain(self.problem.solved_adjoint(interval, state, theta, tolerances))
            a, gradients = solved[count : 2 * count], solved[2 * count :]
        return (None, *a, *gradients)

    def parameters(self, arguments: int) -> int:
        """Return the number of parameters from the number of arguments of backward."""
        return arguments - 3 * self.count - 2

    def labelled(self, state: tuple[np.ndarray, ...]) -> tuple[Any, ...]:
        """Return the arrays of a state as they are; the right-hand side gets them with their formats."""
        return tuple(state)
