# SPDX-License-Identifier: BSD-3-Clause
"""A step of training by "sgdm", "adam" or "rmsprop": one accelerated function for loss, gradients and update."""

from typing import Any

from tracejit.array import dlarray
from tracejit.nn.network import dlnetwork
from tracejit.optim.clipping import clipgradients
from tracejit.optim.updates import adamupdate, dlupdate, rmspropupdate, sgdmupdate
from tracejit.training.checkpoint import Checkpoint, Saved
from tracejit.training.options import TrainingOptions
from tracejit.training.step import Function, TrainingStep, numbers_of

Moments = tuple[Any, ...]
"""The moving averages of a solver, tables like that of the learnables."""


class GradientStep(TrainingStep):
    """A step along the gradients, by the moving averages that a solver keeps."""

    def __init__(self, loss: Function, options: TrainingOptions, inputs: int) -> None:
        super().__init__(loss, options, inputs)
        self._train = self.compiled(self._trained)

    def begin(self, net: dlnetwork) -> Moments:
        """Return the moving averages before the first step."""
        zeros = dlupdate(lambda w: w * 0.0, net.learnables)
        return (zeros, zeros) if self.options.solver == "adam" else (zeros,)

    def train(
        self, net: dlnetwork, state: Moments, batch: tuple[Any, ...], rate: float, iteration: int
    ) -> tuple[dlnetwork, Moments, dict[str, float]]:
        """Return the network and the moving averages after a step, and its rate, loss and metrics."""
        net, state, values = self._train(net, state, batch, dlarray(float(rate)), dlarray(float(iteration)))
        return net, state, {"learn_rate": rate, **numbers_of(values)}

    def saved(self, state: Moments) -> Saved:
        """Return the tables of the moving averages."""
        return Saved({f"moments{k}": table for k, table in enumerate(state)})

    def restored(self, checkpoint: Checkpoint, net: dlnetwork) -> Moments:
        """Return the moving averages in a checkpoint."""
        return tuple([
            net.with_learnables(checkpoint.table(f"moments{k}", net.learnables)).learnables
            for k in range(len(self.begin(net)))
        ])  # fmt: skip

    def _trained(self, net: Any, moments: Any, batch: Any, rate: Any, iteration: Any) -> Any:
        values, gradients, state = self.differentiated(net, batch)
        options = self.options
        gradients = clipgradients(gradients, options.gradient_threshold, options.gradient_threshold_method)
        net = net._with_state_for_others(state)  # the next mini-batch has sequences of its own
        if options.solver == "adam":
            net, *moments = adamupdate(
                net, gradients, moments[0], moments[1], iteration, rate, options.gradient_decay_factor,
                options.squared_gradient_decay_factor, options.epsilon,
            )  # fmt: skip
        elif options.solver == "rmsprop":
            net, *moments = rmspropupdate(
                net, gradients, moments[0], rate, options.squared_gradient_decay_factor, options.epsilon
            )
        else:
            net, *moments = sgdmupdate(net, gradients, moments[0], rate, options.momentum)
        return net, tuple(moments), values
