# SPDX-License-Identifier: BSD-3-Clause
"""Networks in compiled programs: values, counts of traces and kernels, and errors of exports."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tracejit as tj
from tracejit import nn


def network() -> tj.dlnetwork:
    layers = [
        nn.ImageInput((6, 6, 1)), nn.Convolution2d(3, 4, padding="same"), nn.BatchNormalization(), nn.Relu(),
        nn.MaxPooling2d(2, stride=2), nn.FullyConnected(3),
    ]  # fmt: skip
    return tj.dlnetwork(layers, seed=0)


def images(count: int) -> tj.dlarray:
    return tj.dlarray(
        np.random.default_rng(count).standard_normal((count, 1, 6, 6)).astype(np.float32), "BCSS"
    )


def model_loss(net: Any, x: Any, targets: Any) -> Any:
    y, state = net.forward(x)
    loss = tj.crossentropy(y, targets, from_logits=True)
    return loss, tj.dlgradient(loss, net.learnables), state


def targets(count: int) -> tj.dlarray:
    return tj.dlarray(tj.onehotencode(np.arange(count) % 3, 1, 3), "BC")


def test_a_training_loop_agrees_with_the_uncompiled_one() -> None:
    def step(net: Any, velocity: Any, x: Any, t: Any) -> Any:
        loss, gradients, state = model_loss(net, x, t)
        return loss, *tj.sgdmupdate(net.with_state(state), gradients, velocity, 0.05)

    compiled = tj.dlaccelerate(step)
    first: Any = (network(), tj.tree.map(tj.zeros_like, network().learnables))
    second = first
    for _ in range(6):
        for count in (8, 5):  # a full mini-batch, and the last one
            loss, *first = compiled(*first, images(count), targets(count))
            wanted, *second = tj.dlfeval(step, *second, images(count), targets(count))
            assert_allclose(loss, wanted, rtol=1e-4)
    assert type(first[0]) is tj.dlnetwork and first[0]._fixed is network()._fixed
    for a, b in zip(first[0]._leaves, second[0]._leaves, strict=True):
        assert_allclose(a, b, rtol=1e-3, atol=1e-5)
    assert compiled.stats.keys == 2 and compiled.hit_rate >= 50


def test_forward_and_predict_are_replayed_by_themselves() -> None:
    net, x = network(), images(8)
    for function in (net.predict, lambda x, **options: net.forward(x, **options)[0]):
        wanted = function(x, acceleration="none")
        for _ in range(6):
            assert_allclose(function(x), wanted, rtol=1e-4, atol=1e-5)
    (kept,) = [compute for (name, _), [(_, compute)] in net._fixed.functions.items() if name == "predict"]
    assert kept.hit_rate >= 50
    trained = net.with_state(net.forward(x)[1])
    before = kept.stats.hits
    trained.predict(x)  # another network with the same layers: the same trace
    assert kept.stats.hits == before + 1


def test_a_network_is_no_argument_of_an_exported_function(tmp_path: Any) -> None:
    scores = tj.dlaccelerate(lambda net, x: net.predict(x))
    for _ in range(3):
        scores(network(), images(4))
    with pytest.raises(
        tj.ExportError, match=r"a network of 6 layers, .* whose layers are not written; pass its arrays in"
    ):
        tj.export(scores, tmp_path / "scores")
