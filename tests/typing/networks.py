# SPDX-License-Identifier: BSD-3-Clause
"""Networks, layers of one's own and functions with a backward of their own, as a type checker sees them.

Lines with "type: ignore" are mistakes that a type checker has to find: an ignore without an error is an error.
"""

from typing import Any, assert_type

import numpy as np

import tracejit as tj
from tracejit import dlarray, dlnetwork, nn


class Scale(nn.Layer, nn.Formattable, nn.Acceleratable):
    """A layer with a factor that is learned, and a count of calls."""

    factor = nn.Learnable()
    count = nn.State()

    def __init__(self, start: float = 1.0, *, name: str = "") -> None:
        super().__init__(name=name)
        self.start = start

    def initialize(self, layout: nn.DataLayout) -> None:
        """Set the factor."""
        channels = layout.size_of("C")
        assert_type(channels, int | None)
        self.factor = tj.dlarray(np.full(channels or 1, self.start, np.float32), "C")
        self.count = tj.dlarray(np.float32(0))

    def predict(self, x: Any) -> Any:
        """Return the product."""
        return x * self.factor


class Cube(tj.DifferentiableFunction):
    """The third power, in NumPy."""

    def __init__(self) -> None:
        super().__init__(1, save_inputs_for_backward=True)

    def forward(self, x: np.ndarray) -> np.ndarray:
        """Return the power."""
        return x**3

    def backward(self, dy: np.ndarray, compute_gradients: Any, x: np.ndarray) -> Any:
        """Return the gradient."""
        return 3 * x**2 * dy


@tj.dlaccelerate
def model_loss(
    net: dlnetwork, x: dlarray, targets: dlarray
) -> tuple[dlarray, nn.LearnablesTable, nn.StateTable]:
    """Return the loss, its gradients, and the state of the network."""
    y, state = net.forward(x)
    loss = tj.crossentropy(y, targets)
    return loss, tj.dlgradient(loss, net.learnables), state


def networks(x: dlarray) -> None:
    """Check what networks have and return."""
    net = dlnetwork([nn.FeatureInput(4), nn.FullyConnected(3), Scale(2.0), nn.Softmax()], seed=0)
    assert_type(net, dlnetwork)
    assert_type(net.learnables, nn.LearnablesTable)
    assert_type(net.state, nn.StateTable)
    assert_type(net.connections, list[tuple[str, str]])
    assert_type(net.input_names, tuple[str, ...])
    assert_type(net.initialized, bool)
    assert_type(net.layers, list[nn.Layer])
    assert_type(net.layer("fc"), nn.Layer)
    assert_type(net.initialize(x, seed=1), dlnetwork)
    assert_type(net.with_state(net.state), dlnetwork)
    assert_type(net.with_learnables(net.learnables), dlnetwork)
    assert_type(net.reset_state(), dlnetwork)
    assert_type(net.add_layers([nn.Relu(), nn.Addition(2)]), dlnetwork)
    assert_type(net.connect_layers("a", "b/in1").disconnect_layers("a", "b/in1"), dlnetwork)
    assert_type(net.replace_layer("a", nn.Tanh()).remove_layers("b"), dlnetwork)
    assert_type(net.freeze("fc").with_learn_rate_factor("fc", "bias", 2), dlnetwork)
    assert_type(model_loss(net, x, x), tuple[dlarray, nn.LearnablesTable, nn.StateTable])
    report = tj.checklayer(Scale(), nn.DataLayout((None, 4), "BC"))
    assert_type(bool(report), bool)
    assert_type([check.reason for check in report.failed], list[str])
    assert_type(tj.functionlayer(lambda x: 2 * x, name="twice").name, str)
    queue = tj.minibatchqueue(x, [1, 2], mini_batch_size=8, mini_batch_format=("BC", None))
    assert_type(queue.partition(2, 0), tj.minibatchqueue)
    assert_type((queue.hasdata(), len(queue)), tuple[bool, int])
    assert_type(queue.shuffle(), None)
    trained, info = tj.trainnet(
        queue, net, "mse", tj.trainingoptions("adam", max_epochs=3, metrics={"top": max})
    )
    assert_type(trained, dlnetwork)
    assert_type(info.stop_reason, str)
    _, state = tj.lbfgsupdate(net, lambda net: model_loss(net, x, x), tj.lbfgsstate(5))
    assert_type((state.loss, state.line_search_status), tuple[float | None, str])
    y: dlarray = Cube()(x)
    print(y)


def mistakes(net: dlnetwork, x: dlarray) -> None:
    """Make each mistake that the types are there for."""
    dlnetwork([nn.FullyConnected()])  # type: ignore[call-arg]
    dlnetwork(3)  # type: ignore[arg-type]
    dlnetwork([nn.Relu(), "softmax"])  # type: ignore[list-item]
    nn.FullyConnected(3, weight_initializer="he")  # type: ignore[call-arg]
    nn.Relu("relu")  # type: ignore[call-arg]
    nn.DataLayout("BC", (None, 4))  # type: ignore[arg-type]
    net.state = net.reset_state().state  # type: ignore[assignment]
    net.learnables = net.learnables  # type: ignore[assignment]
    net.forward(x, acceleration=False)  # type: ignore[arg-type]
    net.connect_layers("a")  # type: ignore[call-arg]
    net.replace_layer("a", 3)  # type: ignore[arg-type]
    net.layer(0)  # type: ignore[arg-type]
    model_loss(net, x)  # type: ignore[call-arg]
    model_loss(net.learnables, x, x)  # type: ignore[arg-type]
    tj.minibatchqueue(x, minibatch_size=3)  # type: ignore[call-arg]
    tj.trainnet(x, x)  # type: ignore[arg-type]
    tj.trainingoptions("adam", epochs=3)  # type: ignore[call-arg]
    tj.checklayer("relu", nn.DataLayout((None, 4), "BC"))  # type: ignore[arg-type]
