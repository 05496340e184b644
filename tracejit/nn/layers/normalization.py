# SPDX-License-Identifier: BSD-3-Clause
"""Normalisation, by statistics of the batch, of layers, of groups of channels and of neighbouring channels; dropout."""

from typing import Any

import numpy as np

from tracejit.errors import DimsError
from tracejit.functions.creation import ones, zeros
from tracejit.functions.layers.normalization import (
    batchnorm,
    crosschannelnorm,
    groupnorm,
    instancenorm,
    layernorm,
    rmsnorm,
)
from tracejit.functions.random import dropout, rand
from tracejit.nn.fields import LearnableField, StateField
from tracejit.nn.initializers import check_initializer, initial
from tracejit.nn.layer import BuiltInLayer
from tracejit.nn.layers.options import channels_of, probability_of, set_factors
from tracejit.nn.layout import DataLayout
from tracejit.record import recorder as recorders


class NormalizationLayer(BuiltInLayer):
    """The base class of normalisations with an offset and a scale for each channel."""

    offset = LearnableField(l2_factor=0)
    scale = LearnableField(l2_factor=0)

    def __init__(
        self, *, epsilon: float = 1e-5, offset_initializer: Any = "zeros", scale_initializer: Any = "ones",
        offset: Any = None, scale: Any = None, learn_rate_factor: Any = None, l2_factor: Any = None, name: str = "",
    ) -> None:  # fmt: skip
        kind = type(self).__name__
        self.name = name
        self.epsilon = epsilon
        self.offset_initializer = check_initializer(kind, "offset_initializer", offset_initializer)
        self.scale_initializer = check_initializer(kind, "scale_initializer", scale_initializer)
        if offset is not None:
            self.offset = offset
        if scale is not None:
            self.scale = scale
        set_factors(self, learn_rate_factor, l2_factor)

    def initialize(self, layout: DataLayout) -> None:
        size = (channels_of(type(self).__name__, layout),)
        if self.offset is None:
            self.offset = initial("offset", self.offset_initializer, size, size[0], size[0])
        if self.scale is None:
            self.scale = initial("scale", self.scale_initializer, size, size[0], size[0])


class BatchNormalization(NormalizationLayer):
    """Normalisation by the mean and variance of each channel: of the batch in training, of the data so far after it.

    Args:
        epsilon: a number that is added to the variance.
        mean_decay, variance_decay: the weight of a batch in the statistics of the data so far.
        offset_initializer, scale_initializer: as in FullyConnected.
        offset, scale: (channels,); None to initialise them.
        learn_rate_factor, l2_factor: a number, or numbers by the names of the learnables.
        name: of the layer.

    Raises:
        ArgumentError: for an unknown initialiser or a negative factor.

    Examples:
        >>> import tracejit as tj
        >>> from tracejit import nn
        >>> net = tj.dlnetwork([nn.FeatureInput(2), nn.BatchNormalization()])
        >>> y, state = net.forward(tj.dlarray([[1.0, 2.0], [3.0, 6.0]], "BC"))
        >>> [round(x, 6) for x in state["batchnorm", "trained_mean"].tolist()]
        [0.2, 0.4]
    """

    trained_mean = StateField()
    trained_variance = StateField()
    default_name = "batchnorm"

    def __init__(self, *, mean_decay: float = 0.1, variance_decay: float = 0.1, **options: Any) -> None:
        super().__init__(**options)
        self.mean_decay = mean_decay
        self.variance_decay = variance_decay

    def initialize(self, layout: DataLayout) -> None:
        super().initialize(layout)
        channels = channels_of("BatchNormalization", layout)
        if self.trained_mean is None:
            self.trained_mean = zeros(channels, np.float32)
        if self.trained_variance is None:
            self.trained_variance = ones(channels, np.float32)

    def predict(self, x: Any) -> Any:
        return batchnorm(
            x, self.offset, self.scale, self.trained_mean, self.trained_variance, epsilon=self.epsilon
        )

    def forward(self, x: Any) -> Any:
        return batchnorm(
            x, self.offset, self.scale, self.trained_mean, self.trained_variance, epsilon=self.epsilon,
            mean_decay=self.mean_decay, variance_decay=self.variance_decay,
        )  # fmt: skip

    def reset_state(self) -> None:
        """Set the statistics to those of mean 0 and variance 1."""
        if self.trained_mean is not None:
            self.trained_mean = zeros(self.trained_mean.shape, self.trained_mean.dtype)
            self.trained_variance = ones(self.trained_variance.shape, self.trained_variance.dtype)


class LayerNormalization(NormalizationLayer):
    """Normalisation by the statistics of each observation.

    Args:
        operation_dimension: over which axes, as in tj.layernorm: "auto", "channel-only", "spatial-channel",
            "batch-excluded".
        epsilon, offset_initializer, scale_initializer, offset, scale, learn_rate_factor, l2_factor, name: as of
            BatchNormalization.

    Raises:
        ArgumentError: for an unknown initialiser or a negative factor.

    Examples:
        >>> import tracejit as tj
        >>> from tracejit import nn
        >>> net = tj.dlnetwork([nn.FeatureInput(2), nn.LayerNormalization(epsilon=0.0)])
        >>> net.predict(tj.dlarray([[1.0, 3.0]], "BC")).tolist()
        [[-1.0, 1.0]]
    """

    default_name = "layernorm"

    def __init__(self, *, operation_dimension: str = "auto", **options: Any) -> None:
        super().__init__(**options)
        self.operation_dimension = operation_dimension

    def predict(self, x: Any) -> Any:
        return layernorm(
            x, self.offset, self.scale, epsilon=self.epsilon, operation_dimension=self.operation_dimension
        )


class RMSNormalization(BuiltInLayer):
    """Division by the root mean square of the channels of each observation.

    Args:
        epsilon: a number that is added to the mean square.
        scale_initializer: as in FullyConnected.
        scale: (channels,); None to initialise it.
        learn_rate_factor, l2_factor: a number, or numbers by the names of the learnables.
        name: of the layer.

    Raises:
        ArgumentError: for an unknown initialiser or a negative factor.

    Examples:
        >>> import tracejit as tj
        >>> from tracejit import nn
        >>> net = tj.dlnetwork([nn.FeatureInput(2), nn.RMSNormalization(epsilon=0.0)])
        >>> net.predict(tj.dlarray([[5.0, 5.0]], "BC")).tolist()
        [[1.0, 1.0]]
    """

    scale = LearnableField(l2_factor=0)
    default_name = "rmsnorm"

    def __init__(
        self, *, epsilon: float = 1e-5, scale_initializer: Any = "ones", scale: Any = None,
        learn_rate_factor: Any = None, l2_factor: Any = None, name: str = "",
    ) -> None:  # fmt: skip
        self.name = name
        self.epsilon = epsilon
        self.scale_initializer = check_initializer("RMSNormalization", "scale_initializer", scale_initializer)
        if scale is not None:
            self.scale = scale
        set_factors(self, learn_rate_factor, l2_factor)

    def initialize(self, layout: DataLayout) -> None:
        size = (channels_of("RMSNormalization", layout),)
        if self.scale is None:
            self.scale = initial("scale", self.scale_initializer, size, size[0], size[0])

    def predict(self, x: Any) -> Any:
        return rmsnorm(x, self.scale, epsilon=self.epsilon)


class GroupNormalization(NormalizationLayer):
    """Normalisation by the statistics of groups of channels of each observation.

    Args:
        num_groups: number of groups; "all-channels" for one, "channel-wise" for one for each channel.
        epsilon, offset_initializer, scale_initializer, offset, scale, learn_rate_factor, l2_factor, name: as of
            BatchNormalization.

    Raises:
        ArgumentError: for an unknown initialiser or a negative factor.

    Examples:
        >>> import tracejit as tj
        >>> from tracejit import nn
        >>> net = tj.dlnetwork([nn.FeatureInput(4), nn.GroupNormalization(2, epsilon=0.0)])
        >>> net.predict(tj.dlarray([[1.0, 3.0, 2.0, 6.0]], "BC")).tolist()
        [[-1.0, 1.0, -1.0, 1.0]]
    """

    default_name = "groupnorm"

    def __init__(self, num_groups: Any, **options: Any) -> None:
        super().__init__(**options)
        self.num_groups = num_groups

    def predict(self, x: Any) -> Any:
        return groupnorm(x, self.num_groups, self.offset, self.scale, epsilon=self.epsilon)


class InstanceNormalization(NormalizationLayer):
    """Normalisation by the statistics of each channel of each observation.

    Args:
        epsilon, offset_initializer, scale_initializer, offset, scale, learn_rate_factor, l2_factor, name: as of
            BatchNormalization.

    Raises:
        ArgumentError: for an unknown initialiser or a negative factor.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> from tracejit import nn
        >>> net = tj.dlnetwork([nn.ImageInput((1, 2, 1)), nn.InstanceNormalization(epsilon=0.0)])
        >>> net.predict(tj.dlarray(np.array([[[[1.0], [3.0]]]]), "BSSC")).ravel().tolist()
        [-1.0, 1.0]
    """

    default_name = "instancenorm"

    def predict(self, x: Any) -> Any:
        return instancenorm(x, self.offset, self.scale, epsilon=self.epsilon)


class CrossChannelNormalization(BuiltInLayer):
    """Division of each element by a power of the sum of squares of neighbouring channels.

    Args:
        window_channel_size: number of channels of a window.
        alpha, beta, k: as in tj.crosschannelnorm.
        name: of the layer.

    Examples:
        >>> import tracejit as tj
        >>> from tracejit import nn
        >>> net = tj.dlnetwork([nn.ImageInput((1, 1, 2)), nn.CrossChannelNormalization(1, alpha=0.0, k=1.0)])
        >>> net.predict(tj.dlarray([[[[1.0, 3.0]]]], "BSSC")).ravel().tolist()
        [1.0, 3.0]
    """

    default_name = "crossnorm"

    def __init__(
        self,
        window_channel_size: Any,
        *,
        alpha: float = 1e-4,
        beta: float = 0.75,
        k: float = 2.0,
        name: str = "",
    ) -> None:
        self.name = name
        self.window_channel_size = window_channel_size
        self.alpha, self.beta, self.k = alpha, beta, k

    def predict(self, x: Any) -> Any:
        return crosschannelnorm(x, self.window_channel_size, alpha=self.alpha, beta=self.beta, k=self.k)


class Dropout(BuiltInLayer):
    """Zeros at random elements in training; the other elements are divided by the probability of being kept.

    Args:
        probability: of an element to be 0; at least 0 and less than 1.
        name: of the layer.

    Raises:
        DimsError: if the probability is not within these.

    Examples:
        >>> import tracejit as tj
        >>> from tracejit import nn
        >>> net = tj.dlnetwork([nn.FeatureInput(2), nn.Dropout(0.5)])
        >>> net.predict(tj.dlarray([[1.0, 3.0]], "BC")).tolist()
        [[1.0, 3.0]]
    """

    default_name = "dropout"

    def __init__(self, probability: float = 0.5, *, name: str = "") -> None:
        self.name = name
        self.probability = probability_of(type(self).__name__, "probability", probability)

    def predict(self, x: Any) -> Any:
        return x

    def forward(self, x: Any) -> Any:
        return dropout(x, self.probability)


class SpatialDropout(Dropout):
    """Zeros in random channels of observations in training; others are divided by the probability of being kept.

    Args:
        probability: of a channel to be 0; at least 0 and less than 1.
        name: of the layer.

    Raises:
        DimsError: if the probability is not within these.

    Examples:
        >>> from tracejit import nn
        >>> nn.SpatialDropout(0.25).probability
        0.25
    """

    default_name = "spatial-dropout"

    def forward(self, x: Any) -> Any:
        if not self.probability:
            return x
        if x.format is None:
            raise DimsError(
                f"SpatialDropout: the input of {recorders.describe(x)} has no labels, which tell the channels; "
                'pass dlarray(x, "BSSC"), with the label of each axis.'
            )
        sizes = [size if label in "CB" else 1 for size, label in zip(x.shape, x.format, strict=True)]
        kept = rand(sizes, like=x) >= self.probability
        return x * kept.astype(x.dtype) / (1 - self.probability)
