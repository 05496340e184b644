# SPDX-License-Identifier: BSD-3-Clause
"""Attention, positions of steps, and choice of a step."""

from typing import Any

import numpy as np

from tracejit.array import as_array, dlarray
from tracejit.errors import ArgumentError, DimsError
from tracejit.functions.layers.attention import attention
from tracejit.functions.layers.convolution import dlconv
from tracejit.functions.layers.dense import fullyconnect
from tracejit.functions.layers.embedding import embed
from tracejit.functions.movement import permuted, relabel, reshaped
from tracejit.functions.reductions import mean
from tracejit.nn.fields import LearnableField
from tracejit.nn.initializers import check_initializer, initial
from tracejit.nn.layer import BuiltInLayer
from tracejit.nn.layers.options import channels_of, number_of, probability_of, set_factors, sizes_of
from tracejit.nn.layout import DataLayout
from tracejit.record import recorder as recorders
from tracejit.util.arguments import flag, is_option
from tracejit.util.text import brief


class Attention(BuiltInLayer):
    """For each query, the sum of the values weighted by the likeness of their keys, head by head.

    Args:
        num_heads: number of heads.
        scale: factor of the likeness; "auto" for 1 / sqrt(channels of a head).
        attention_mask: "none" or "causal".
        dropout_probability: of a weight to be 0 in training.
        has_padding_mask_input: whether there is a fourth input, mask: (batch, keys), 0 for keys that do not count.
        name: of the layer, whose inputs are query, key and value.

    Raises:
        DimsError: if the number of heads is not positive, or the probability not below 1.

    Examples:
        >>> from tracejit import nn
        >>> nn.Attention(4).input_names
        ('query', 'key', 'value')
    """

    default_name = "attention"

    def __init__(
        self, num_heads: Any, *, scale: Any = "auto", attention_mask: str = "none", dropout_probability: float = 0.0,
        has_padding_mask_input: bool = False, name: str = "",
    ) -> None:  # fmt: skip
        self.name = name
        self.num_heads = number_of("Attention", "num_heads", num_heads)
        self.scale = scale
        self.attention_mask = attention_mask
        self.dropout_probability = probability_of("Attention", "dropout_probability", dropout_probability)
        has_mask = flag("Attention", "has_padding_mask_input", has_padding_mask_input)
        self.input_names = ("query", "key", "value", *(["mask"] if has_mask else []))

    def predict(self, *inputs: Any) -> Any:
        return self._attended(inputs, 0.0)

    def forward(self, *inputs: Any) -> Any:
        return self._attended(inputs, self.dropout_probability)

    def _attended(self, inputs: Any, dropout_probability: float) -> Any:
        q, k, v, *mask = inputs
        return attention(
            q, k, v, self.num_heads, scale=self.scale, attention_mask=self.attention_mask,
            padding_mask=mask[0] if mask else None, dropout_probability=dropout_probability,
        )  # fmt: skip


class SelfAttention(BuiltInLayer):
    """Attention of each step to all steps of its own sequence, over learned queries, keys and values.

    Args:
        num_heads: number of heads.
        num_key_channels: channels of the queries and of the keys, those of all heads together.
        num_value_channels: channels of the values; by default those of the keys.
        output_size: channels of the output; by default those of the input.
        attention_mask: "none" or "causal".
        dropout_probability: of a weight to be 0 in training.
        has_padding_mask_input: whether there is a second input, mask: (batch, steps), 0 for steps that do not count.
        weights_initializer, bias_initializer: as in FullyConnected.
        learn_rate_factor, l2_factor: a number, or numbers by the names of the learnables.
        name: of the layer.

    Raises:
        DimsError: if a size is not positive.
        ArgumentError: for an unknown initialiser or a negative factor.

    A. Vaswani et al., "Attention is all you need", 2017.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> from tracejit import nn
        >>> net = tj.dlnetwork([nn.SequenceInput(6), nn.SelfAttention(2, 8)])
        >>> net.predict(tj.dlarray(np.ones((2, 7, 6), np.float32), "BTC")).shape
        (2, 7, 6)
    """

    query_weights = LearnableField()
    key_weights = LearnableField()
    value_weights = LearnableField()
    output_weights = LearnableField()
    query_bias = LearnableField(l2_factor=0)
    key_bias = LearnableField(l2_factor=0)
    value_bias = LearnableField(l2_factor=0)
    output_bias = LearnableField(l2_factor=0)
    default_name = "selfattention"

    def __init__(
        self, num_heads: Any, num_key_channels: Any, *, num_value_channels: Any = None, output_size: Any = None,
        attention_mask: str = "none", dropout_probability: float = 0.0, has_padding_mask_input: bool = False,
        weights_initializer: Any = "glorot", bias_initializer: Any = "zeros", learn_rate_factor: Any = None,
        l2_factor: Any = None, name: str = "",
    ) -> None:  # fmt: skip
        kind = type(self).__name__
        self.name = name
        self.num_heads = number_of(kind, "num_heads", num_heads)
        self.num_key_channels = number_of(kind, "num_key_channels", num_key_channels)
        if num_value_channels is None:
            num_value_channels = num_key_channels
        self.num_value_channels = number_of(kind, "num_value_channels", num_value_channels)
        self.output_size = None if output_size is None else number_of(kind, "output_size", output_size)
        self.attention_mask = attention_mask
        self.dropout_probability = probability_of(kind, "dropout_probability", dropout_probability)
        has_mask = flag(kind, "has_padding_mask_input", has_padding_mask_input)
        self.input_names = ("in", "mask") if has_mask else ("in",)
        self.weights_initializer = check_initializer(kind, "weights_initializer", weights_initializer)
        self.bias_initializer = check_initializer(kind, "bias_initializer", bias_initializer)
        set_factors(self, learn_rate_factor, l2_factor)

    def initialize(self, layout: DataLayout, *mask: DataLayout) -> None:
        channels = channels_of("SelfAttention", layout)
        keys, values = self.num_key_channels, self.num_value_channels
        sizes = {
            "query": (keys, channels), "key": (keys, channels), "value": (values, channels),
            "output": (self.output_size or channels, values),
        }  # fmt: skip
        for name, (outputs, inputs) in sizes.items():
            if getattr(self, f"{name}_weights") is None:
                weights = initial(
                    f"{name}_weights", self.weights_initializer, (outputs, inputs), inputs, outputs
                )
                setattr(self, f"{name}_weights", weights)
            if getattr(self, f"{name}_bias") is None:
                bias = initial(f"{name}_bias", self.bias_initializer, (outputs,), inputs, outputs)
                setattr(self, f"{name}_bias", bias)

    def predict(self, *inputs: Any) -> Any:
        return self._attended(inputs, 0.0)

    def forward(self, *inputs: Any) -> Any:
        return self._attended(inputs, self.dropout_probability)

    def _attended(self, inputs: Any, dropout_probability: float) -> Any:
        x, *mask = inputs
        y = attention(
            fullyconnect(x, self.query_weights, self.query_bias), fullyconnect(x, self.key_weights, self.key_bias),
            fullyconnect(x, self.value_weights, self.value_bias), self.num_heads,
            attention_mask=self.attention_mask, padding_mask=mask[0] if mask else None,
            dropout_probability=dropout_probability,
        )  # fmt: skip
        return fullyconnect(y, self.output_weights, self.output_bias)


class PositionEmbedding(BuiltInLayer):
    """A learned vector for each position of a sequence, whatever stands there.

    Args:
        output_size: length of a vector.
        max_position: number of positions, the greatest length of a sequence.
        weights_initializer: as in FullyConnected.
        weights: (max_position, output_size); None to initialise them.
        learn_rate_factor, l2_factor: a number, or numbers by the names of the learnables.
        name: of the layer.

    Raises:
        DimsError: if a size is not positive.
        ArgumentError: for an unknown initialiser or a negative factor.

    The output has the labels T (or S) and C, and is added to sequences of any number of observations.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> from tracejit import nn
        >>> net = tj.dlnetwork([nn.SequenceInput(6), nn.PositionEmbedding(6, 100)])
        >>> net.predict(tj.dlarray(np.ones((2, 7, 6), np.float32), "BTC")).shape
        (7, 6)
    """

    weights = LearnableField()
    default_name = "posemb"

    def __init__(
        self, output_size: Any, max_position: Any, *, weights_initializer: Any = "narrow-normal", weights: Any = None,
        learn_rate_factor: Any = None, l2_factor: Any = None, name: str = "",
    ) -> None:  # fmt: skip
        self.name = name
        self.output_size = number_of("PositionEmbedding", "output_size", output_size)
        self.max_position = number_of("PositionEmbedding", "max_position", max_position)
        self.weights_initializer = check_initializer(
            "PositionEmbedding", "weights_initializer", weights_initializer
        )
        if weights is not None:
            self.weights = weights
        set_factors(self, learn_rate_factor, l2_factor)

    def initialize(self, layout: DataLayout) -> None:
        if self.weights is None:
            size = (self.max_position, self.output_size)
            self.weights = initial("weights", self.weights_initializer, size, *size)

    def predict(self, x: Any) -> Any:
        label, length = _steps("PositionEmbedding", x)
        if length > self.max_position:
            raise DimsError(
                f"PositionEmbedding: the input of {recorders.describe(as_array(x))} has {length} positions, but "
                f"max_position is {self.max_position}; make it as large as the longest sequence."
            )
        return embed(dlarray(np.arange(length), label), self.weights)


class SinusoidalPositionEncoding(BuiltInLayer):
    """Sines and cosines of each position of a sequence, of frequencies from 1 down to 1 / 10000.

        y[p, 2 i] = sin(p / 10000**(2 i / n)),  y[p, 2 i + 1] = cos(p / 10000**(2 i / n))

    Args:
        output_size: number of channels n, which is even.
        name: of the layer.

    Raises:
        DimsError: if the size is not positive.

    A. Vaswani et al., "Attention is all you need", 2017. The output has the labels T (or S) and C.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> from tracejit import nn
        >>> x = tj.dlarray(np.ones((1, 3, 2)), "BTC")
        >>> nn.SinusoidalPositionEncoding(2).predict(x)[0].tolist()
        [0.0, 1.0]
    """

    default_name = "sinposenc"

    def __init__(self, output_size: Any, *, name: str = "") -> None:
        self.name = name
        self.output_size = number_of("SinusoidalPositionEncoding", "output_size", output_size)

    def predict(self, x: Any) -> Any:
        label, length = _steps("SinusoidalPositionEncoding", x)
        even = 2 * (np.arange(self.output_size) // 2)
        angles = np.arange(length)[:, None] / 10000 ** (even / self.output_size)
        waves = np.where(np.arange(self.output_size) % 2, np.cos(angles), np.sin(angles))
        dtype = x.dtype if x.dtype.kind == "f" else np.float32
        return dlarray(waves.astype(dtype), label + "C")


def _steps(layer: str, x: Any) -> tuple[str, int]:
    """Return the label and the length of the axis along which positions are counted."""
    array = as_array(x)
    format = array._format or ""
    label = "T" if "T" in format else "S"
    if format.count(label) != 1:
        raise DimsError(
            f"{layer}: the input of {recorders.describe(array)} has no axis T, and not one axis S; label the axis of "
            "its "
            "positions."
        )
    return label, int(array._data.shape[format.index(label)])


class Indexing1d(BuiltInLayer):
    """One step of each sequence, or the mean of its steps.

    Args:
        which: "first", "last" or "mean".
        name: of the layer.

    Raises:
        ArgumentError: if `which` is none of these.

    Examples:
        >>> import tracejit as tj
        >>> from tracejit import nn
        >>> nn.Indexing1d("last").predict(tj.dlarray([[[1.0], [2.0]]], "BTC")).tolist()
        [[2.0]]
    """

    default_name = "indexing1d"

    def __init__(self, which: str = "first", *, name: str = "") -> None:
        if not is_option(which, ("first", "last", "mean")):
            raise ArgumentError(f'Indexing1d: which must be "first", "last" or "mean", not {brief(which)}.')
        self.name = name
        self.which = which

    def predict(self, x: Any) -> Any:
        array = as_array(x)
        label, length = _steps("Indexing1d", array)
        format = array._format or ""
        axis = format.index(label)
        rest = format[:axis] + format[axis + 1 :]
        plain = relabel(array, None)
        if self.which == "mean":
            return relabel(mean(plain, axis=axis), rest)
        step = 0 if self.which == "first" else length - 1
        return relabel(plain[(slice(None),) * axis + (step,)], rest)


class PatchEmbedding(BuiltInLayer):
    """A vector for each patch of an image: a weighted sum of its elements.

    Args:
        patch_size: height and width of a patch, or one number for both; patches do not overlap.
        output_size: length of a vector.
        weights_initializer, bias_initializer: as in FullyConnected.
        learn_rate_factor, l2_factor: a number, or numbers by the names of the learnables.
        name: of the layer.

    Raises:
        DimsError: if a size is not positive.
        ArgumentError: for an unknown initialiser or a negative factor.

    The output is labelled B, S and C: patches row by row.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> from tracejit import nn
        >>> net = tj.dlnetwork([nn.ImageInput((8, 8, 3)), nn.PatchEmbedding(4, 5)])
        >>> net.predict(tj.dlarray(np.ones((2, 8, 8, 3), np.float32), "BSSC")).shape
        (2, 4, 5)
    """

    weights = LearnableField()
    bias = LearnableField(l2_factor=0)
    default_name = "patchemb"

    def __init__(
        self, patch_size: Any, output_size: Any, *, weights_initializer: Any = "glorot",
        bias_initializer: Any = "zeros", learn_rate_factor: Any = None, l2_factor: Any = None, name: str = "",
    ) -> None:  # fmt: skip
        self.name = name
        self.patch_size = sizes_of("PatchEmbedding", "patch_size", patch_size, 2)
        self.output_size = number_of("PatchEmbedding", "output_size", output_size)
        self.weights_initializer = check_initializer(
            "PatchEmbedding", "weights_initializer", weights_initializer
        )
        self.bias_initializer = check_initializer("PatchEmbedding", "bias_initializer", bias_initializer)
        set_factors(self, learn_rate_factor, l2_factor)

    def initialize(self, layout: DataLayout) -> None:
        channels = channels_of("PatchEmbedding", layout)
        inputs = channels * self.patch_size[0] * self.patch_size[1]
        if self.weights is None:
            size = (self.output_size, channels, *self.patch_size)
            weights = initial("weights", self.weights_initializer, size, inputs, self.output_size)
            self.weights = dlarray(weights._data, "UCSS")
        if self.bias is None:
            self.bias = initial("bias", self.bias_initializer, (self.output_size,), inputs, self.output_size)

    def predict(self, x: Any) -> Any:
        weights: dlarray = as_array(self.weights)
        filters = relabel(weights, weights._format or "UCSS")
        y = dlconv(x, filters, self.bias, stride=self.patch_size)
        format = y._format or ""
        order = sorted(range(len(format)), key=lambda axis: "BTUSC".index(format[axis]))
        moved = permuted(relabel(y, None), tuple(order))
        *lead, height, width, channels = moved._data.shape
        labels = "".join(label for label in "BTU" for own in format if own == label)
        return relabel(reshaped(moved, (*lead, height * width, channels), None), labels + "SC")
