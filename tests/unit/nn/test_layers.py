# SPDX-License-Identifier: BSD-3-Clause
"""Every layer passes the checks of checklayer; options of some, and normalisation of inputs."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import tracejit as tj
from tracejit import nn
from tracejit.nn.layer import BuiltInLayer

VECTOR = nn.DataLayout((None, 4), "BC")
STEPS = nn.DataLayout((None, None, 4), "BTC")
MASK = nn.DataLayout((None, None), "BT", np.int64)
LINE = nn.DataLayout((4, 6, None), "CSB")
IMAGE = nn.DataLayout((6, 6, 4, None), "SSCB")
BLOCK = nn.DataLayout((None, 2, 4, 4, 4), "BCSSS")
WORDS = nn.DataLayout((None, 5), "BT", np.int64)

CASES: list[tuple[Any, tuple[nn.DataLayout, ...]]] = [
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
    (tj.functionlayer(lambda x: x**2), (IMAGE,)),
]  # fmt: skip
WITHOUT_BATCH = {"PositionEmbedding", "SinusoidalPositionEncoding"}  # their outputs have no observations


@pytest.mark.parametrize(
    ("layer", "layouts"), CASES, ids=lambda part: repr(part)[:40] if hasattr(part, "predict") else ""
)
def test_a_layer(layer: Any, layouts: tuple[nn.DataLayout, ...]) -> None:
    report = tj.checklayer(layer, *layouts)
    assert report.failed == (), report
    assert len(report.passed) >= 8


def test_every_layer_is_checked() -> None:
    classes = {
        value for value in vars(nn).values() if isinstance(value, type) and issubclass(value, BuiltInLayer)
    }
    left = {cls.__name__ for cls in classes - {type(layer) for layer, _ in CASES}}
    assert left == WITHOUT_BATCH


def test_positions() -> None:
    x = tj.dlarray(np.zeros((2, 5, 6), np.float32), "BTC")
    net = tj.dlnetwork([nn.SequenceInput(6), nn.PositionEmbedding(6, 9)], seed=0)
    net = net.add_layers(nn.Addition(2)).connect_layers("sequenceinput", "addition/in1")
    net = net.connect_layers("posemb", "addition/in2").initialize()
    y = net.predict(x)
    assert y.format == "BTC"
    assert_array_equal(y[1], net.learnables["posemb", "weights"][:5])
    waves = np.asarray(nn.SinusoidalPositionEncoding(6).predict(x))
    assert_allclose(waves[3, 4:], [np.sin(3 / 10000 ** (4 / 6)), np.cos(3 / 10000 ** (4 / 6))], rtol=1e-6)


def test_inputs_are_normalised() -> None:
    x = np.random.default_rng(0).uniform(0, 255, (5, 3, 4, 2))
    mean, deviation = x.mean(axis=(0, 1, 2)), x.std(axis=(0, 1, 2))
    layer = nn.ImageInput((3, 4, 2), normalization="zscore", mean=mean, standard_deviation=deviation)
    net = tj.dlnetwork([layer])
    for order, format in (((0, 1, 2, 3), "BSSC"), ((0, 3, 1, 2), "BCSS")):
        y = net.predict(tj.dlarray(np.ascontiguousarray(x.transpose(order)), format))
        assert_allclose(y, ((x - mean) / deviation).transpose(order), rtol=1e-4, atol=1e-5)
    assert len(net.learnables) == 0 and len(net.state) == 0
    half = nn.FeatureInput(1, normalization=lambda x: x / 2)
    assert tj.dlnetwork([half]).predict(tj.dlarray([[3.0]], "BC")).tolist() == [[1.5]]


def test_state_of_a_recurrent_layer_goes_on() -> None:
    net = tj.dlnetwork([nn.SequenceInput(3), nn.GRU(4)], seed=0)
    x = np.random.default_rng(0).standard_normal((2, 6, 3)).astype(np.float32)
    whole = net.predict(tj.dlarray(x, "BTC"))
    first, state = net.predict(tj.dlarray(x[:, :4], "BTC"), return_state=True)
    second = net.with_state(state).predict(tj.dlarray(x[:, 4:], "BTC"))
    assert_allclose(np.concatenate([first, second], axis=1), whole, rtol=1e-5, atol=1e-6)
    assert_array_equal(net.with_state(state).reset_state().predict(tj.dlarray(x, "BTC")), whole)
