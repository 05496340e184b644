# SPDX-License-Identifier: BSD-3-Clause
"""Every layer passes the checks of checklayer; options of some, and normalisation of inputs."""

from typing import Any

import numpy as np
import pytest
from network_layers import LAYERS, classes, names
from numpy.testing import assert_allclose, assert_array_equal

import tracejit as tj
from tracejit import nn

WITHOUT_BATCH = {"PositionEmbedding", "SinusoidalPositionEncoding"}  # their outputs have no observations


@pytest.mark.parametrize(("layer", "layouts"), LAYERS, ids=names(LAYERS))
def test_a_layer(layer: Any, layouts: tuple[nn.DataLayout, ...]) -> None:
    report = tj.checklayer(layer, *layouts)
    assert report.failed == (), report
    assert len(report.passed) >= 8


def test_every_layer_is_checked() -> None:
    left = {cls.__name__ for cls in classes() - {type(layer) for layer, _ in LAYERS}}
    assert left == WITHOUT_BATCH


OPTIONS_OF_A_BASE = {"BatchNormalization", "LayerNormalization"}  # whose name Python's error has


@pytest.mark.parametrize("name", [name for name in dir(nn) if isinstance(getattr(nn, name), type)])
def test_errors_for_arguments_name_the_class(name: str) -> None:
    kind = getattr(nn, name)
    if issubclass(kind, nn.Layer) and name not in OPTIONS_OF_A_BASE:
        with pytest.raises(TypeError, match=rf"^{kind.__name__}\.__init__\(\)"):
            kind(no_such_option=1)
        assert kind.__init__.__qualname__ == f"{kind.__name__}.__init__"


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
