# SPDX-License-Identifier: BSD-3-Clause
"""The layer whose output is the solution of a differential equation."""

from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit import nn

X = tj.dlarray(np.random.default_rng(0).standard_normal((16, 2)).astype("float32"), "BC")


def network(mode: str, tspan: Any = (0, 1)) -> Any:
    slope = tj.dlnetwork([nn.FullyConnected(8), nn.Tanh(), nn.FullyConnected(2)], initialize=False)
    return tj.dlnetwork([nn.FeatureInput(2), nn.NeuralODE(slope, tspan, gradient_mode=mode)], seed=0)


def step(net: Any, x: Any) -> Any:
    y, _ = net.forward(x)
    loss = (y**2).mean()
    return loss, tj.dlgradient(loss, net)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["direct", "adjoint", "adjoint-seminorm"])
def test_it_is_the_solution_of_the_network(mode: str) -> None:
    net = network(mode, (0, 0.5, 1))
    weights = dict(zip(net.learnables.parameter, map(np.asarray, net.learnables.value), strict=True))

    def slope(t: Any, y: Any) -> Any:
        hidden = np.tanh(y @ weights["fc/weights"].T + weights["fc/bias"])
        return hidden @ weights["fc_1/weights"].T + weights["fc_1/bias"]

    want = tj.dlode45(slope, (0, 0.5, 1), np.asarray(X))
    found = net.predict(X)
    assert sorted(found.format) == ["B", "C", "T"]
    order = [found.format.index(label) for label in "TBC"]
    np.testing.assert_allclose(np.transpose(np.asarray(found), order), want, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["direct", "adjoint"])
def test_it_is_trained_in_an_accelerated_step(mode: str) -> None:
    net, accelerated = network(mode), tj.dlaccelerate(step)
    want = tj.dlfeval(step, net, X)
    for _ in range(3):
        loss, gradient = accelerated(net, X)
    np.testing.assert_allclose(loss, want[0], rtol=1e-5)
    for one, two in zip(tj.tree.flatten(gradient)[0], tj.tree.flatten(want[1])[0], strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-6)
    assert accelerated.stats.hits == 1


@pytest.mark.slow
def test_modes_agree() -> None:
    direct, adjoint = (tj.dlfeval(step, network(mode), X)[1] for mode in ("direct", "adjoint"))
    for one, two in zip(tj.tree.flatten(direct)[0], tj.tree.flatten(adjoint)[0], strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-2, atol=1e-3)
