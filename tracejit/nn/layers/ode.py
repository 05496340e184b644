# SPDX-License-Identifier: BSD-3-Clause
"""The layer whose output is the solution of a differential equation."""

from typing import Any

from tracejit.errors import ArgumentError
from tracejit.nn.layers.combining import Network
from tracejit.ode.dlode45 import dlode45, mode_of, positive, times_of


class NeuralODE(Network):
    """The solution of dy/dt = network(y) at given times, from the input of the layer as the state at the first one.

    Args:
        network: a dlnetwork without state, whose output has the size and the labels of its input.
        tspan: two or more times. With two the output is the state at the second one; with more it has the states at
            all but the first, along T.
        gradient_mode: as in dlode45.
        relative_tolerance: as in dlode45.
        absolute_tolerance: as in dlode45.
        name: of the layer.

    Raises:
        ArgumentError: if `network` is none, or has state, which an equation cannot update; for times, modes and
            tolerances that dlode45 does not take.

    Formula:
        y(t_1) = y(t_0) + integral of network(y(t)); R. T. Q. Chen and others, 2018.

    Examples:
        >>> import tracejit as tj
        >>> from tracejit import nn
        >>> slope = tj.dlnetwork([nn.FullyConnected(2), nn.Tanh()], initialize=False)
        >>> net = tj.dlnetwork([nn.FeatureInput(2), nn.NeuralODE(slope, [0, 0.5, 1])])
        >>> net.predict(tj.ones((3, 2), "float32", format="BC")).shape
        (3, 2, 2)
    """

    default_name = "neuralode"

    def __init__(
        self, network: Any, tspan: Any, *, gradient_mode: str = "direct", relative_tolerance: float = 1e-3,
        absolute_tolerance: float = 1e-6, name: str = "",
    ) -> None:  # fmt: skip
        super().__init__(network, name=name)
        if self.num_inputs != 1 or self.num_outputs != 1:
            raise ArgumentError(
                "NeuralODE: network must have one input and one output; this one has "
                f"{self.num_inputs} and {self.num_outputs}."
            )
        self.tspan = tuple(times_of("NeuralODE", tspan))
        self.gradient_mode = mode_of("NeuralODE", gradient_mode)
        self.relative_tolerance = positive("NeuralODE", "relative_tolerance", relative_tolerance)
        self.absolute_tolerance = positive("NeuralODE", "absolute_tolerance", absolute_tolerance)

    def initialize(self, *layouts: Any) -> None:
        super().initialize(*layouts)
        if len(self.network.state):
            raise ArgumentError(
                "NeuralODE: the network has state, which an equation cannot update; use layers without state."
            )

    def predict(self, *inputs: Any) -> Any:
        (x,) = inputs
        return dlode45(
            self.network, self.tspan, x, gradient_mode=self.gradient_mode,
            relative_tolerance=self.relative_tolerance, absolute_tolerance=self.absolute_tolerance,
        )  # fmt: skip

    def forward(self, *inputs: Any) -> Any:
        return self.predict(*inputs)
