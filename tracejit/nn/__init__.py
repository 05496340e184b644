# SPDX-License-Identifier: BSD-3-Clause
"""Networks of layers: dlnetwork, the layers, base classes for layers of one's own.

In: layers, their connections, data or layouts. Out: a network, a container whose arrays are the leaves of one
tuple; its forward and predict run its layers in accelerated functions. May import functions/, accelerate/ and
all above; imported when tracejit.nn or dlnetwork is first asked for.
"""

import typing

from tracejit.nn.check_layer import checklayer
from tracejit.nn.fields import LearnableField as Learnable
from tracejit.nn.fields import StateField as State
from tracejit.nn.layer import Acceleratable, Formattable, Layer
from tracejit.nn.layers.activations import (
    ClippedRelu,
    Elu,
    Gelu,
    LeakyRelu,
    LogSoftmax,
    Prelu,
    Relu,
    Sigmoid,
    Softmax,
    Softplus,
    Swish,
    Tanh,
)
from tracejit.nn.layers.attention import (
    Attention,
    Indexing1d,
    PatchEmbedding,
    PositionEmbedding,
    SelfAttention,
    SinusoidalPositionEncoding,
)
from tracejit.nn.layers.combining import (
    Addition,
    Concatenation,
    Crop2d,
    DepthConcatenation,
    DepthToSpace2d,
    Flatten,
    Identity,
    Multiplication,
    Network,
    Permute,
    Reshape,
    Resize2d,
    Resize3d,
    SpaceToDepth,
)
from tracejit.nn.layers.convolution import (
    Convolution1d,
    Convolution2d,
    Convolution3d,
    GroupedConvolution2d,
    TransposedConv1d,
    TransposedConv2d,
    TransposedConv3d,
)
from tracejit.nn.layers.dense import Embedding, FullyConnected
from tracejit.nn.layers.function import functionlayer
from tracejit.nn.layers.inputs import AnyInput as Input
from tracejit.nn.layers.inputs import FeatureInput, Image3dInput, ImageInput, SequenceInput
from tracejit.nn.layers.normalization import (
    BatchNormalization,
    CrossChannelNormalization,
    Dropout,
    GroupNormalization,
    InstanceNormalization,
    LayerNormalization,
    RMSNormalization,
    SpatialDropout,
)
from tracejit.nn.layers.ode import NeuralODE
from tracejit.nn.layers.pooling import (
    AdaptiveAveragePooling2d,
    AveragePooling1d,
    AveragePooling2d,
    AveragePooling3d,
    GlobalAveragePooling1d,
    GlobalAveragePooling2d,
    GlobalAveragePooling3d,
    GlobalMaxPooling1d,
    GlobalMaxPooling2d,
    GlobalMaxPooling3d,
    MaxPooling1d,
    MaxPooling2d,
    MaxPooling3d,
    MaxPoolingWithIndices2d,
    MaxUnpooling2d,
)
from tracejit.nn.layers.recurrent import GRU, LSTM, BiLSTM
from tracejit.nn.layout import DataLayout
from tracejit.nn.network import dlnetwork
from tracejit.nn.tables import LearnablesTable, StateTable

__all__ = [
    "GRU",
    "LSTM",
    "Acceleratable",
    "AdaptiveAveragePooling2d",
    "Addition",
    "Attention",
    "AveragePooling1d",
    "AveragePooling2d",
    "AveragePooling3d",
    "BatchNormalization",
    "BiLSTM",
    "ClippedRelu",
    "Concatenation",
    "Convolution1d",
    "Convolution2d",
    "Convolution3d",
    "Crop2d",
    "CrossChannelNormalization",
    "DataLayout",
    "DepthConcatenation",
    "DepthToSpace2d",
    "Dropout",
    "Elu",
    "Embedding",
    "FeatureInput",
    "Flatten",
    "Formattable",
    "FullyConnected",
    "Gelu",
    "GlobalAveragePooling1d",
    "GlobalAveragePooling2d",
    "GlobalAveragePooling3d",
    "GlobalMaxPooling1d",
    "GlobalMaxPooling2d",
    "GlobalMaxPooling3d",
    "GroupNormalization",
    "GroupedConvolution2d",
    "Identity",
    "Image3dInput",
    "ImageInput",
    "Indexing1d",
    "Input",
    "InstanceNormalization",
    "Layer",
    "LayerNormalization",
    "LeakyRelu",
    "Learnable",
    "LearnablesTable",
    "LogSoftmax",
    "MaxPooling1d",
    "MaxPooling2d",
    "MaxPooling3d",
    "MaxPoolingWithIndices2d",
    "MaxUnpooling2d",
    "Multiplication",
    "Network",
    "NeuralODE",
    "PatchEmbedding",
    "Permute",
    "PositionEmbedding",
    "Prelu",
    "RMSNormalization",
    "Relu",
    "Reshape",
    "Resize2d",
    "Resize3d",
    "SelfAttention",
    "SequenceInput",
    "Sigmoid",
    "SinusoidalPositionEncoding",
    "Softmax",
    "Softplus",
    "SpaceToDepth",
    "SpatialDropout",
    "State",
    "StateTable",
    "Swish",
    "Tanh",
    "TransposedConv1d",
    "TransposedConv2d",
    "TransposedConv3d",
    "checklayer",
    "dlnetwork",
    "functionlayer",
]


def __getattr__(name: str) -> typing.NoReturn:
    """Raise the error for a name that there is not, which says what has it.

    Raises:
        AttributeError: always.
    """
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tracejit.util.missing import unknown_layer

    raise unknown_layer(name, __all__)
