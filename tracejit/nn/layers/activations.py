# SPDX-License-Identifier: BSD-3-Clause
"""Activations, element by element and over channels."""

from collections.abc import Callable
from typing import Any, ClassVar

from tracejit.functions.elementwise import tanh
from tracejit.functions.layers.activation_variants import clippedrelu, elu, prelu, swish
from tracejit.functions.layers.activations import (
    gelu,
    leakyrelu,
    logsoftmax,
    relu,
    sigmoid,
    softmax,
    softplus,
)
from tracejit.nn.fields import LearnableField
from tracejit.nn.initializers import check_initializer, initial
from tracejit.nn.layer import BuiltInLayer
from tracejit.nn.layers.options import channels_of, set_factors
from tracejit.nn.layout import DataLayout


class _Function(BuiltInLayer):
    """A layer that is a function without options."""

    _function: ClassVar[Callable[..., Any]]

    def predict(self, x: Any) -> Any:
        return type(self)._function(x)


class Relu(_Function):
    """max(x, 0).

    Args:
        name: of the layer.

    Examples:
        >>> import tracejit as tj
        >>> from tracejit import nn
        >>> nn.Relu().predict(tj.dlarray([-1.0, 2.0])).tolist()
        [0.0, 2.0]
    """

    default_name = "relu"
    _function = staticmethod(relu)


class Tanh(_Function):
    """The hyperbolic tangent.

    Args:
        name: of the layer.

    Examples:
        >>> import tracejit as tj
        >>> from tracejit import nn
        >>> nn.Tanh().predict(tj.dlarray([0.0])).tolist()
        [0.0]
    """

    default_name = "tanh"
    _function = staticmethod(tanh)


class Sigmoid(_Function):
    """1 / (1 + exp(-x)).

    Args:
        name: of the layer.

    Examples:
        >>> import tracejit as tj
        >>> from tracejit import nn
        >>> nn.Sigmoid().predict(tj.dlarray([0.0])).tolist()
        [0.5]
    """

    default_name = "sigmoid"
    _function = staticmethod(sigmoid)


class Softplus(_Function):
    """log(1 + exp(x)).

    Args:
        name: of the layer.

    Examples:
        >>> import tracejit as tj
        >>> from tracejit import nn
        >>> round(nn.Softplus().predict(tj.dlarray([0.0])).item(), 4)
        0.6931
    """

    default_name = "softplus"
    _function = staticmethod(softplus)


class Softmax(_Function):
    """exp(x) over the sum of exp(x) of all channels.

    Args:
        name: of the layer.

    Examples:
        >>> import tracejit as tj
        >>> from tracejit import nn
        >>> nn.Softmax().predict(tj.dlarray([[1.0, 1.0]], "BC")).tolist()
        [[0.5, 0.5]]
    """

    default_name = "softmax"
    _function = staticmethod(softmax)


class LogSoftmax(_Function):
    """The logarithm of the softmax over channels.

    Args:
        name: of the layer.

    Examples:
        >>> import tracejit as tj
        >>> from tracejit import nn
        >>> nn.LogSoftmax().predict(tj.dlarray([[0.0]], "BC")).tolist()
        [[0.0]]
    """

    default_name = "logsoftmax"
    _function = staticmethod(logsoftmax)


class Swish(_Function):
    """x times sigmoid(x).

    Args:
        name: of the layer.

    Examples:
        >>> import tracejit as tj
        >>> from tracejit import nn
        >>> nn.Swish().predict(tj.dlarray([0.0])).tolist()
        [0.0]
    """

    default_name = "swish"
    _function = staticmethod(swish)


class Gelu(BuiltInLayer):
    """x times the probability that a normal variable is below x.

    Args:
        approximation: "none" or "tanh".
        name: of the layer.

    Examples:
        >>> import tracejit as tj
        >>> from tracejit import nn
        >>> nn.Gelu().predict(tj.dlarray([0.0])).tolist()
        [0.0]
    """

    default_name = "gelu"

    def __init__(self, *, approximation: str = "none", name: str = "") -> None:
        self.name = name
        self.approximation = approximation

    def predict(self, x: Any) -> Any:
        return gelu(x, approximation=self.approximation)


class LeakyRelu(BuiltInLayer):
    """x where it is positive, scale x elsewhere.

    Args:
        scale: slope for negative x.
        name: of the layer.

    Examples:
        >>> import tracejit as tj
        >>> from tracejit import nn
        >>> nn.LeakyRelu(0.5).predict(tj.dlarray([-1.0, 2.0])).tolist()
        [-0.5, 2.0]
    """

    default_name = "leakyrelu"

    def __init__(self, scale: float = 0.01, *, name: str = "") -> None:
        self.name = name
        self.scale = scale

    def predict(self, x: Any) -> Any:
        return leakyrelu(x, self.scale)


class ClippedRelu(BuiltInLayer):
    """x, at least 0 and at most a ceiling.

    Args:
        ceiling: largest result.
        name: of the layer.

    Examples:
        >>> import tracejit as tj
        >>> from tracejit import nn
        >>> nn.ClippedRelu(1.0).predict(tj.dlarray([-1.0, 2.0])).tolist()
        [0.0, 1.0]
    """

    default_name = "clippedrelu"

    def __init__(self, ceiling: float, *, name: str = "") -> None:
        self.name = name
        self.ceiling = ceiling

    def predict(self, x: Any) -> Any:
        return clippedrelu(x, self.ceiling)


class Elu(BuiltInLayer):
    """x where it is positive, alpha (exp(x) - 1) elsewhere.

    Args:
        alpha: the limit for very negative x is -alpha.
        name: of the layer.

    Examples:
        >>> import tracejit as tj
        >>> from tracejit import nn
        >>> nn.Elu().predict(tj.dlarray([0.0, 2.0])).tolist()
        [0.0, 2.0]
    """

    default_name = "elu"

    def __init__(self, alpha: float = 1.0, *, name: str = "") -> None:
        self.name = name
        self.alpha = alpha

    def predict(self, x: Any) -> Any:
        return elu(x, self.alpha)


class Prelu(BuiltInLayer):
    """x where it is positive, alpha x elsewhere, with an alpha for each channel that is learned.

    Args:
        alpha_initializer: as in FullyConnected; 0.25 by default.
        alpha: (channels,); None to initialise it.
        learn_rate_factor, l2_factor: a number, or numbers by the names of the learnables.
        name: of the layer.

    Raises:
        ArgumentError: for an unknown initialiser or a negative factor.

    Examples:
        >>> import tracejit as tj
        >>> from tracejit import nn
        >>> net = tj.dlnetwork([nn.FeatureInput(2), nn.Prelu()])
        >>> net.predict(tj.dlarray([[-1.0, 2.0]], "BC")).tolist()
        [[-0.25, 2.0]]
    """

    alpha = LearnableField()
    default_name = "prelu"

    def __init__(
        self, *, alpha_initializer: Any = None, alpha: Any = None, learn_rate_factor: Any = None,
        l2_factor: Any = None, name: str = "",
    ) -> None:  # fmt: skip
        self.name = name
        if alpha_initializer is not None:
            self.alpha_initializer = check_initializer("Prelu", "alpha_initializer", alpha_initializer)
        if alpha is not None:
            self.alpha = alpha
        set_factors(self, learn_rate_factor, l2_factor)

    def initialize(self, layout: DataLayout) -> None:
        size = (channels_of("Prelu", layout),)
        if self.alpha is None:
            given = getattr(self, "alpha_initializer", None)
            self.alpha = (
                0.25 * initial("alpha", "ones", size)
                if given is None
                else initial("alpha", given, size, size[0], size[0])
            )

    def predict(self, x: Any) -> Any:
        return prelu(x, self.alpha)
