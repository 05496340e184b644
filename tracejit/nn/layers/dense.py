# SPDX-License-Identifier: BSD-3-Clause
"""FullyConnected, and tables of vectors."""

import math
from typing import Any

import numpy as np

from tracejit.array import as_array
from tracejit.aval import is_half
from tracejit.errors import DimsError
from tracejit.functions.layers.dense import fullyconnect
from tracejit.functions.layers.embedding import embed
from tracejit.functions.movement import permuted, relabel
from tracejit.nn.fields import LearnableField
from tracejit.nn.initializers import check_initializer, initial
from tracejit.nn.layer import BuiltInLayer
from tracejit.nn.layers.options import number_of, set_factors
from tracejit.nn.layout import DataLayout


class FullyConnected(BuiltInLayer):
    """A weighted sum of all channels and spatial elements for each output.

    Args:
        output_size: number of outputs, which are the channels of the output.
        weights_initializer, bias_initializer: "glorot", "he", "orthogonal", "narrow-normal", "zeros", "ones", or a
            function of the size.
        weights: (outputs, inputs), where inputs are counted channel by channel, then along the spatial axes, whatever
            the order of the data; None to initialise them.
        bias: (outputs,); None to initialise it.
        learn_rate_factor, l2_factor: a number, or numbers by the names of the learnables.
        name: of the layer.

    Raises:
        DimsError: if `output_size` is not positive.
        ArgumentError: for an unknown initialiser or a negative factor.

    Examples:
        >>> import tracejit as tj
        >>> from tracejit import nn
        >>> net = tj.dlnetwork([nn.FeatureInput(4), nn.FullyConnected(3, weights_initializer="ones")])
        >>> net.predict(tj.dlarray([[1.0, 2.0, 3.0, 4.0]], "BC")).tolist()
        [[10.0, 10.0, 10.0]]
    """

    weights = LearnableField()
    bias = LearnableField(l2_factor=0)
    default_name = "fc"

    def __init__(
        self, output_size: Any, *, weights_initializer: Any = "glorot", bias_initializer: Any = "zeros",
        weights: Any = None, bias: Any = None, learn_rate_factor: Any = None, l2_factor: Any = None, name: str = "",
    ) -> None:  # fmt: skip
        self.name = name
        self.output_size = number_of("FullyConnected", "output_size", output_size)
        self.weights_initializer = check_initializer(
            "FullyConnected", "weights_initializer", weights_initializer
        )
        self.bias_initializer = check_initializer("FullyConnected", "bias_initializer", bias_initializer)
        if weights is not None:
            self.weights = weights
        if bias is not None:
            self.bias = bias
        set_factors(self, learn_rate_factor, l2_factor)

    def initialize(self, layout: DataLayout) -> None:
        sizes = [
            size for size, label in zip(layout.size, layout.format or "", strict=False) if label not in "BT"
        ]
        if not sizes or None in sizes:
            raise DimsError(
                f"FullyConnected: the input {layout!r} has no channels of a known size; label an axis C, and give "
                "the sizes "
                "of all axes but B and T."
            )
        inputs = math.prod([size for size in sizes if size is not None])
        if self.weights is None:
            size = (self.output_size, inputs)
            self.weights = initial("weights", self.weights_initializer, size, inputs, self.output_size)
        if self.bias is None:
            self.bias = initial("bias", self.bias_initializer, (self.output_size,), inputs, self.output_size)

    def predict(self, x: Any) -> Any:
        array, weights = as_array(x), as_array(self.weights)
        moved = channels_first(array)
        if moved is array:
            return fullyconnect(array, weights, self.bias)
        format, size = array._format or "", array._data.shape
        rows = math.prod([own for own, label in zip(size, format, strict=True) if label in "BT"])
        if rows < self.output_size or weights._data.shape != (
            self.output_size,
            math.prod(size) // max(rows, 1),
        ):
            return fullyconnect(moved, weights, self.bias)
        # There are fewer weights than elements of x, so that the weights are reordered instead.
        summed = [axis for axis, label in enumerate(format) if label not in "BT"]
        counted = _counted(format)
        split = weights.reshape((-1, *[size[axis] for axis in counted]))
        order = (0, *[1 + counted.index(axis) for axis in summed])
        return fullyconnect(array, permuted(split, order).reshape(weights._data.shape), self.bias)


def _counted(format: str) -> list[int]:
    """Return the axes that a dense layer sums over in the order in which weights count them: C before all S."""
    summed = [axis for axis, label in enumerate(format) if label not in "BT"]
    return sorted(summed, key=lambda axis: "UCS".index(format[axis]))


def channels_first(x: Any) -> Any:
    """Return an array with C before all S, in which these are counted alike in any order of the data; B and T stay."""
    array = as_array(x)
    format = array._format
    if format is None or "C" not in format or "S" not in format or format.index("C") < format.index("S"):
        return array
    counted = iter(_counted(format))
    order = tuple([next(counted) if label not in "BT" else axis for axis, label in enumerate(format)])
    return relabel(permuted(relabel(array, None), order), "".join(format[axis] for axis in order))


class Embedding(BuiltInLayer):
    """The vectors that integers name: a row of a table for each.

    Args:
        dimension: length of a vector.
        num_words: number of vectors.
        weights_initializer: as in FullyConnected.
        weights: (num_words, dimension); None to initialise them.
        learn_rate_factor, l2_factor: a number, or numbers by the names of the learnables.
        name: of the layer.

    Raises:
        DimsError: if a size is not positive.
        ArgumentError: for an unknown initialiser or a negative factor.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> from tracejit import nn
        >>> net = tj.dlnetwork([nn.SequenceInput(1), nn.Embedding(3, 10)])
        >>> net.predict(tj.dlarray(np.zeros((2, 1, 5), np.float32), "BCT")).shape
        (2, 3, 5)
    """

    weights = LearnableField()
    default_name = "embedding"

    def __init__(
        self, dimension: Any, num_words: Any, *, weights_initializer: Any = "narrow-normal", weights: Any = None,
        learn_rate_factor: Any = None, l2_factor: Any = None, name: str = "",
    ) -> None:  # fmt: skip
        self.name = name
        self.dimension = number_of("Embedding", "dimension", dimension)
        self.num_words = number_of("Embedding", "num_words", num_words)
        self.weights_initializer = check_initializer("Embedding", "weights_initializer", weights_initializer)
        if weights is not None:
            self.weights = weights
        set_factors(self, learn_rate_factor, l2_factor)

    def initialize(self, layout: DataLayout) -> None:
        if self.weights is None:
            size = (self.num_words, self.dimension)
            self.weights = initial("weights", self.weights_initializer, size, self.num_words, self.dimension)

    def predict(self, x: Any) -> Any:
        array = as_array(x)
        is_floating = array.dtype.kind == "f" or is_half(array.dtype)
        return embed(array.astype(np.int64) if is_floating else array, self.weights)
