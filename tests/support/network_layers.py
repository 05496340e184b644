# SPDX-License-Identifier: BSD-3-Clause
"""Every layer of tracejit.nn with legal layouts of its inputs."""

from typing import Any

import numpy as np

import tracejit as tj
from tracejit import nn
from tracejit.nn.layer import BuiltInLayer


def squares(x: Any) -> Any:
    """Return the squares: a function of a module, so that the layer can be pickled."""
    return x**2


VECTOR = nn.DataLayout((None, 4), "BC")
STEPS = nn.DataLayout((None, None, 4), "BTC")
MASK = nn.DataLayout((None, None), "BT", np.int64)
LINE = nn.DataLayout((4, 6, None), "CSB")
IMAGE = nn.DataLayout((6, 6, 4, None), "SSCB")
BLOCK = nn.DataLayout((None, 2, 4, 4, 4), "BCSSS")
WORDS = nn.DataLayout((None, 5), "BT", np.int64)

LAYERS: list[tuple[Any, tuple[nn.DataLayout, ...]]] = [
    (nn.FeatureInput(4, normalization="zscore", mean=np.arange(4.0), standard_deviation=2), (VECTOR,)),
    (nn.ImageInput((6, 6, 4), normalization="rescale-symmetric", min=-1, max=3), (IMAGE,)),
    (nn.Image3dInput((4, 4, 4, 2)), (BLOCK,)),
    (nn.SequenceInput(4, min_length=3, normalization="zerocenter", mean=1), (STEPS,)),
    (nn.Input((None, 4), "BC"), (VECTOR,)),
    (nn.Convolution1d(3, 2, padding="causal"), (STEPS,)),
    (nn.Convolution2d((2, 3), 3, stride=2, padding=1, dilation_factor=1), (IMAGE,)),
    (nn.Convolution3d(2, 3), (BLOCK,)),
    (nn.GroupedConvolution2d(3, 2, 2), (IMAGE,)),
    (nn.GroupedConvolution2d(3, 1, "channel-wise", padding="same"), (IMAGE,)),
    (nn.TransposedConv1d(2, 3, stride=2), (LINE,)),
    (nn.TransposedConv2d(3, 2, stride=2, cropping="same"), (IMAGE,)),
    (nn.TransposedConv3d(2, 2), (BLOCK,)),
    (nn.FullyConnected(3), (IMAGE,)),
    (nn.FullyConnected(3, weights_initializer="orthogonal"), (STEPS,)),
    (nn.Embedding(3, 7), (WORDS,)),
    *[
        (layer, (VECTOR,))
        for layer in (
            nn.Relu(), nn.Tanh(), nn.Sigmoid(), nn.Softplus(), nn.Softmax(), nn.LogSoftmax(), nn.Swish(), nn.Gelu(),
            nn.Gelu(approximation="tanh"), nn.LeakyRelu(0.1), nn.ClippedRelu(1.0), nn.Elu(0.5), nn.Prelu(),
            nn.Identity(), nn.Dropout(0.5),
        )
    ],
    (nn.SpatialDropout(0.5), (IMAGE,)),
    (nn.BatchNormalization(), (IMAGE,)),
    (nn.LayerNormalization(), (STEPS,)),
    (nn.RMSNormalization(), (STEPS,)),
    (nn.GroupNormalization(2), (IMAGE,)),
    (nn.InstanceNormalization(), (IMAGE,)),
    (nn.CrossChannelNormalization(3), (IMAGE,)),
    (nn.MaxPooling1d(2), (STEPS,)),
    (nn.MaxPooling2d(2, stride=2), (IMAGE,)),
    (nn.MaxPooling3d(2), (BLOCK,)),
    (nn.AveragePooling1d(2), (LINE,)),
    (nn.AveragePooling2d(3, stride=2, padding=1, padding_value="mean"), (IMAGE,)),
    (nn.AveragePooling3d(2), (BLOCK,)),
    (nn.GlobalMaxPooling1d(), (LINE,)),
    (nn.GlobalMaxPooling2d(), (IMAGE,)),
    (nn.GlobalMaxPooling3d(), (BLOCK,)),
    (nn.GlobalAveragePooling1d(), (STEPS,)),
    (nn.GlobalAveragePooling2d(), (IMAGE,)),
    (nn.GlobalAveragePooling3d(), (BLOCK,)),
    (nn.AdaptiveAveragePooling2d(2), (IMAGE,)),
    (nn.MaxPoolingWithIndices2d(2, stride=2), (IMAGE,)),
    (nn.MaxUnpooling2d(8), (IMAGE, nn.DataLayout((6, 6, 4, None), "SSCB", np.int64))),
    (nn.LSTM(3, output_mode="last"), (STEPS,)),
    (nn.LSTM(3, has_mask_input=True), (STEPS, MASK)),
    (nn.BiLSTM(3), (STEPS,)),
    (nn.GRU(3, reset_gate_mode="recurrent-bias-after-multiplication"), (STEPS,)),
    (nn.Attention(2), (STEPS, STEPS, STEPS)),
    (nn.SelfAttention(2, 4, num_value_channels=6, output_size=3, attention_mask="causal"), (STEPS,)),
    (nn.Indexing1d("last"), (STEPS,)),
    (nn.Indexing1d("mean"), (LINE,)),
    (nn.PatchEmbedding(3, 5), (IMAGE,)),
    (nn.Addition(2), (VECTOR, VECTOR)),
    (nn.Multiplication(3), (VECTOR, VECTOR, VECTOR)),
    (nn.Concatenation("T", 2), (STEPS, STEPS)),
    (nn.DepthConcatenation(2), (IMAGE, IMAGE)),
    (nn.Flatten(), (IMAGE,)),
    (nn.Permute("BCSS"), (IMAGE,)),
    (nn.Reshape((2, -1), "SC"), (IMAGE,)),
    (nn.Crop2d(1), (IMAGE,)),
    (nn.Resize2d(scale=2, method="linear"), (IMAGE,)),
    (nn.Resize3d(output_size=(3, 3, 3)), (BLOCK,)),
    (nn.DepthToSpace2d(2), (IMAGE,)),
    (nn.SpaceToDepth(2), (IMAGE,)),
    (nn.Network(tj.dlnetwork([nn.FullyConnected(3), nn.Tanh()], initialize=False)), (VECTOR,)),
    (tj.functionlayer(squares, acceleratable=True), (IMAGE,)),
]  # fmt: skip


def classes() -> set[type]:
    """Return the classes of layers of tracejit.nn."""
    return {
        value for value in vars(nn).values() if isinstance(value, type) and issubclass(value, BuiltInLayer)
    }


def names(cases: list[tuple[Any, ...]]) -> list[str]:
    """Return the names of cases of layers, in tests."""
    return [repr(case[0])[:40] for case in cases]
