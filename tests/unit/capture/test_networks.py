# SPDX-License-Identifier: BSD-3-Clause
"""Networks that a function captures: their arrays are inputs of the trace, and another network alike will do."""

from typing import Any

import numpy as np
from numpy.testing import assert_allclose

import tracejit as tj
from tracejit import nn

X = tj.dlarray(np.linspace(-1, 1, 20, dtype=np.float32).reshape(5, 4), "BC")


def made(seed: int, outputs: int = 3) -> Any:
    return tj.dlnetwork([nn.FeatureInput(4), nn.FullyConnected(outputs), nn.BatchNormalization()], seed=seed)


def uncompiled(net: Any) -> np.ndarray:
    return np.asarray(net.predict(X, acceleration="none"))


def test_a_variable_holds_another_network() -> None:
    net = made(0)
    fun = tj.dlaccelerate(lambda x: net.predict(x))
    for number in range(6):
        net = made(number)
        assert_allclose(fun(X), uncompiled(net), rtol=1e-5, atol=1e-6)
    assert fun.stats.traces == 2 and fun.stats.hits >= 3
    net = made(7, 2)  # of other sizes
    for _ in range(3):
        assert_allclose(fun(X), uncompiled(net), rtol=1e-5, atol=1e-6)
    net = made(8)
    hits = fun.stats.hits
    assert_allclose(fun(X), uncompiled(net), rtol=1e-5, atol=1e-6)
    assert fun.stats.hits == hits + 1
    assert "closure net[0] is 3x4 float32" in str(fun.explain())


def test_networks_and_tables_in_containers() -> None:
    nets, kept = [made(0), made(1)], {"table": made(2).learnables}
    fun = tj.dlaccelerate(lambda x: nets[0].with_learnables(kept["table"]).predict(x) + nets[1].predict(x))
    for number in range(8):
        nets[1], kept["table"] = made(number), made(number + 1).learnables
        expected = uncompiled(nets[0].with_learnables(kept["table"])) + uncompiled(nets[1])
        assert_allclose(fun(X), expected, rtol=1e-5, atol=1e-6)
    assert fun.stats.hits >= 5


def step(model: Any, x: Any) -> Any:
    y, state = model.net.forward(x)
    loss = ((y - 1) ** 2).mean()
    gradients = tj.dlgradient(loss, model.net.learnables)
    model.net, model.velocity = tj.sgdmupdate(model.net.with_state(state), gradients, model.velocity, 0.1)
    return loss


class Model:
    def __init__(self) -> None:
        self.net = made(0)
        self.velocity = tj.tree.map(tj.zeros_like, self.net.learnables)

    @tj.dlaccelerate
    def step(self, x: Any) -> Any:
        return step(self, x)


def test_an_attribute_is_trained() -> None:
    model, other = Model(), Model()
    for _ in range(8):
        assert_allclose(model.step(X), tj.dlfeval(step, other, X), rtol=1e-4)
    assert model.step.stats.hits >= 5
    for a, b in zip(model.net._leaves, other.net._leaves, strict=True):
        assert_allclose(a, b, rtol=1e-3, atol=1e-5)
    assert not np.allclose(model.net.state["batchnorm", "trained_mean"], 0)


WEIGHTS = np.eye(4, dtype=np.float32)


def of_results(x: Any, w: Any) -> Any:
    return tj.dlnetwork([nn.FeatureInput(4), nn.FullyConnected(4, weights=w * 2)])


def of_captured(x: Any, w: Any) -> Any:
    return tj.dlnetwork([nn.FeatureInput(4), nn.FullyConnected(4, weights=WEIGHTS)])


def of_edited(x: Any, w: Any) -> Any:
    net = tj.dlnetwork([nn.FeatureInput(4), nn.Relu()])
    return net.replace_layer("relu", nn.FullyConnected(4, weights=np.diag([1.0, 2, 3, 4]))).initialize()


def test_networks_that_the_function_makes() -> None:
    for make in (of_results, of_captured, of_edited):

        def slopes(x: Any, w: Any, make: Any = make) -> Any:
            y = make(x, w).predict(x)
            return y, tj.dlgradient((y**2).sum(), (x, w))

        fun, w = tj.dlaccelerate(slopes), tj.dlarray(np.eye(4, dtype=np.float32))
        for number in range(6):
            WEIGHTS[:] = np.eye(4) * (1 + number // 3)
            w = w * 1.5
            for found, wanted in zip(
                tj.tree.flatten(fun(X, w))[0], tj.tree.flatten(tj.dlfeval(slopes, X, w))[0], strict=True
            ):
                assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
        assert fun.stats.hits >= 3
