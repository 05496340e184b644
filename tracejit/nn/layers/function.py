# SPDX-License-Identifier: BSD-3-Clause
"""A function as a layer."""

from collections.abc import Callable, Sequence
from typing import Any

from tracejit.nn.layer import Layer, names_of, numbered
from tracejit.nn.layers.options import MOST_PORTS, number_of
from tracejit.util.arguments import callable_, flag, text


class FunctionLayer(Layer):
    """A function of arrays as a layer: what functionlayer() returns."""

    default_name = "layer"

    def __init__(
        self, function: Any, formattable: bool, acceleratable: bool, inputs: tuple[str, ...], outputs: tuple[str, ...],
        description: str, name: str,
    ) -> None:  # fmt: skip
        self.name = name
        self.function = function
        self.formattable, self.acceleratable = formattable, acceleratable
        self.input_names, self.output_names = inputs, outputs
        self.description = description

    def predict(self, *inputs: Any) -> Any:
        return self.function(*inputs)


def functionlayer(
    fun: Callable[..., Any],
    *,
    formattable: bool = False,
    acceleratable: bool = False,
    num_inputs: int = 1,
    num_outputs: int = 1,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    description: str = "",
    name: str = "",
) -> FunctionLayer:
    """Return a layer that applies a function.

    Args:
        fun: function of one array for each input; returns an array, or a tuple of one for each output.
        formattable: whether it takes labelled arrays. Otherwise it gets them without labels, the axes in the order
            S, C, B, T, U, and the labels are put back on results, which must have as many axes.
        acceleratable: whether it can be replayed with its neighbours in the network.
        num_inputs: number of inputs.
        num_outputs: number of outputs.
        input_names: names of the inputs; by default in, or in1, in2, ...
        output_names: names of the outputs; by default out, or out1, out2, ...
        description: a line about the layer.
        name: of the layer.

    Raises:
        ArgumentError: if `fun` is no function, or names are none or occur twice.
        DimsError: if a number is not positive.

    Examples:
        >>> import tracejit as tj
        >>> from tracejit import nn
        >>> square = tj.functionlayer(lambda x: x**2, acceleratable=True)
        >>> net = tj.dlnetwork([nn.FeatureInput(2), square])
        >>> net.predict(tj.dlarray([[1.0, 3.0]], "BC")).tolist()
        [[1.0, 9.0]]
    """
    inputs = numbered("in", number_of("functionlayer", "num_inputs", num_inputs, most=MOST_PORTS))
    outputs = numbered("out", number_of("functionlayer", "num_outputs", num_outputs, most=MOST_PORTS))
    if input_names is not None:
        inputs = names_of("functionlayer", "input_names", input_names)
    if output_names is not None:
        outputs = names_of("functionlayer", "output_names", output_names)
    return FunctionLayer(
        callable_("functionlayer", "fun", fun), flag("functionlayer", "formattable", formattable),
        flag("functionlayer", "acceleratable", acceleratable), inputs, outputs,
        text("functionlayer", "description", description), text("functionlayer", "name", name),
    )  # fmt: skip
