# SPDX-License-Identifier: BSD-3-Clause
"""A step of training by "lbfgs": one iteration of lbfgsupdate, with all of the data.

Note [one draw]
Layers that draw random numbers, such as dropout, get the same ones in each evaluation of an iteration; otherwise its
line search would compare losses of different functions. The next iteration draws others, so that the loss and the
gradients at its start are computed again.
"""

import math
from typing import Any

import numpy as np

from tracejit.functions import reductions
from tracejit.functions.random import rng
from tracejit.nn.network import dlnetwork
from tracejit.optim.lbfgs import Curvature, LbfgsState, lbfgsstate, lbfgsupdate
from tracejit.training.checkpoint import Checkpoint, Saved
from tracejit.training.options import TrainingOptions
from tracejit.training.step import Function, TrainingStep, numbers_of


class LbfgsStep(TrainingStep):
    """An iteration of L-BFGS."""

    def __init__(self, loss: Function, options: TrainingOptions, inputs: int) -> None:
        super().__init__(loss, options, inputs)
        self._objective = self.compiled(self._objective_of)

    def begin(self, net: dlnetwork) -> LbfgsState:
        """Return the state before the first iteration."""
        return lbfgsstate(self.options.history_size, self.options.initial_inverse_hessian_factor)

    def train(
        self, net: dlnetwork, state: LbfgsState, batch: tuple[Any, ...], rate: float, iteration: int
    ) -> tuple[dlnetwork, LbfgsState, dict[str, float]]:
        """Return the network and the state after an iteration, and the row of the history."""
        start = after = rng()

        def objective(net: dlnetwork) -> Any:
            nonlocal after
            with rng(start):
                found = self._objective(net, batch)
                after = rng()
            return found

        options = self.options
        net, state = lbfgsupdate(
            net, objective, state, line_search_method=options.line_search_method,
            max_num_line_search_iterations=options.max_num_line_search_iterations,
            initial_step_size=options.initial_step_size,
        )  # fmt: skip
        values, layers = state.additional_loss_function_outputs
        if after != start:  # Note [one draw]
            rng(after)
            state = state.without_loss()._replace(gradients_norm=state.gradients_norm)
        row = {
            **numbers_of(values), "gradient_norm": state.gradients_norm, "step_norm": state.step_norm,
        }  # fmt: skip
        return net._with_state_for_others(layers), state, row

    def ended(self, net: dlnetwork, state: LbfgsState) -> str | None:
        """Return which of the tolerances was met, or that the line search failed."""
        if state.line_search_status == "failed":
            return "the line search found no smaller loss"
        size = math.sqrt(sum([float((np.asarray(row.value, float) ** 2).sum()) for row in net.learnables]))
        if state.gradients_norm <= self.options.gradient_tolerance * max(1.0, size):
            return "gradient_tolerance reached"
        if state.step_norm <= self.options.step_tolerance:
            return "step_tolerance reached"
        return None

    def saved(self, state: LbfgsState) -> Saved:
        """Return the history of the steps."""
        arrays = {
            "steps": [pair.step for pair in state.history],
            "changes": [pair.change for pair in state.history],
        }
        numbers = {"gradients_norm": state.gradients_norm, "step_norm": state.step_norm,
                   "line_search_status": state.line_search_status}  # fmt: skip
        return Saved({}, {name: np.array(vectors) for name, vectors in arrays.items()}, numbers)

    def restored(self, checkpoint: Checkpoint, net: dlnetwork) -> LbfgsState:
        """Return the state in a checkpoint; loss and gradients are computed again."""
        history = [
            Curvature.of(step, change)
            for step, change in zip(checkpoint.array("steps"), checkpoint.array("changes"), strict=True)
        ]
        return self.begin(net)._replace(history=tuple(history), **checkpoint.meta["solver_state"])

    def _objective_of(self, net: Any, batch: Any) -> Any:
        values, gradients, layers = self.differentiated(net, batch)
        return values["loss"] + self._penalty(net), gradients, values, layers

    def _penalty(self, net: Any) -> Any:
        rate = self.options.l2_regularization
        factors = net.l2_factors.to_dict()
        return sum([
            0.5 * rate * factors[row.layer][row.parameter] * reductions.sum(row.value * row.value)
            for row in (net.learnables if rate else ())
        ])  # fmt: skip
