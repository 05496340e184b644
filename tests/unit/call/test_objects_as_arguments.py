# SPDX-License-Identifier: BSD-3-Clause
"""Objects of users' classes as arguments: known by identity, and what the function reads of them is captured state."""

import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj


class Network:
    """Two layers."""

    def __init__(self, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.weights = [rng.normal(size=(4, 3)), rng.normal(size=(3, 2))]
        self.biases = [np.zeros(3), np.zeros(2)]
        self.scale, self.steps, self.last = 1.0, 0, None

    def __call__(self, x: Any) -> Any:
        for w, b in zip(self.weights, self.biases, strict=True):
            x = np.tanh(x @ w + b)
        return x * self.scale

    @property
    def parameters(self) -> list[Any]:
        return [*self.weights, *self.biases]


class Momentum:
    def __init__(self, parameters: list[Any], rate: float) -> None:
        self.parameters, self.rate = parameters, rate
        self.momenta = [np.zeros_like(p) for p in parameters]

    def step(self, gradients: list[Any]) -> None:
        for p, g, m in zip(self.parameters, gradients, self.momenta, strict=True):
            m *= 0.9
            m += g
            p -= self.rate * m


def trained(net: Network, optimizer: Momentum, x: Any, y: Any) -> Any:
    """Backpropagation by hand, as a user of NumPy writes it."""
    hidden = np.tanh(x @ net.weights[0] + net.biases[0])
    out = hidden @ net.weights[1] + net.biases[1]
    d = 2 * (out - y) / y.size
    before = (d @ net.weights[1].T) * (1 - hidden**2)
    optimizer.step([x.T @ before, hidden.T @ d, before.sum(axis=0), d.sum(axis=0)])
    net.steps += 1
    net.last = out * net.scale
    net.scale *= 0.99
    return ((out - y) ** 2).mean()


def followed(wrapped: Callable[[Any], Any]) -> tuple[list[Any], Any, Any]:
    """Train two networks by turns, change them outside, and put another one in the place of one."""
    step, forward, found = wrapped(trained), wrapped(lambda net, x: net(x).sum()), []
    nets = [Network(0), Network(1)]
    optimizers = [Momentum(net.parameters, 0.1) for net in nets]
    for n in range(30):
        rng = np.random.default_rng(n)
        x, y, turn = rng.random((5, 4)), rng.random((5, 2)), n // 6 % 2
        found += [float(forward(nets[turn], x)), float(step(nets[turn], optimizers[turn], x, y))]
        found += [np.asarray(nets[turn].last).sum(), nets[turn].scale, nets[turn].steps]
        if n == 10:
            nets[0].scale = 2.0
            nets[1].weights[0] = optimizers[1].parameters[0] = nets[1].weights[0] * 2
        if n == 17:
            nets[1] = Network(5)
            optimizers[1] = Momentum(nets[1].parameters, 0.05)
        found += [array.sum() for net in nets for array in net.parameters]
    return found, step, forward


@pytest.mark.parametrize("checks", ["none", "tolerance"])
def test_a_network_and_an_optimizer(checks: str) -> None:
    expected, _, _ = followed(lambda fun: fun)
    found, step, forward = followed(lambda fun: tj.dlaccelerate(fun, check_mode=checks))
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    assert step.stats.hits >= 8 and forward.stats.hits >= 12
    assert not step.stats.uncompiled and not forward.stats.uncompiled


def test_objects_in_containers() -> None:
    def step(models: dict[str, list[Network]], x: Any) -> Any:
        return sum(model(x).sum() for group in models.values() for model in group)

    accelerated = tj.dlaccelerate(step)
    models = {"a": [Network(0), Network(1)], "b": [Network(2)]}
    for n in range(9):
        x = np.random.default_rng(n).random((2, 4))
        models["a"][1].biases[0][:] = n
        if n == 6:
            models["b"][0] = Network(7)
        assert float(accelerated(models, x)) == pytest.approx(float(step(models, x)), rel=1e-12)
    assert accelerated.stats.hits >= 3


def test_gradients() -> None:
    def gradient(net: Network, x: Any) -> Any:
        return tj.dlgradient((net(x) ** 2).sum(), x)

    accelerated, net, x = tj.dlaccelerate(gradient), Network(), tj.dlarray(np.ones((2, 4)))
    for n in range(6):
        net.weights[1] = np.full((3, 2), 0.1 * n)
        np.testing.assert_allclose(
            np.asarray(accelerated(net, x)), np.asarray(tj.dlfeval(gradient, net, x)), rtol=1e-12
        )
    assert accelerated.stats.hits >= 3


def test_a_new_object_in_each_call_is_told() -> None:
    accelerated = tj.dlaccelerate(lambda net, x: net(x))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for n in range(20):
            accelerated(Network(n), np.ones((1, 4)))
    assert [str(each.message) for each in told if each.category is tj.RetraceWarning] == [
        "test_a_new_object_in_each_call_is_told.<locals>.<lambda> is recorded again for each Network that is passed as "
        "net: there were 10 of them, and each object has traces of its own. Pass the same object again and set its "
        "attributes, or pass its arrays and numbers in a dict, a named tuple or a dataclass."
    ]


def test_an_object_that_is_returned_is_not_that_of_the_recording() -> None:
    def moved(net: Network, x: Any) -> Network:
        other = Network()
        other.biases = [x * 2, x.sum()]
        return other

    accelerated, net = tj.dlaccelerate(moved), Network()
    with pytest.warns(tj.NotAcceleratedWarning, match="an object that is created in each call"):
        found = [accelerated(net, np.full(2, float(n))) for n in range(6)]
    assert len({*map(id, found)}) == 6
    assert [float(other.biases[1]) for other in found] == [2.0 * n for n in range(6)]


def test_messages_name_the_argument() -> None:
    def step(net: Network, x: Any) -> Any:
        total = np.frombuffer(net.biases[0]).sum()
        net.biases[0] += x
        return total

    accelerated, net = tj.dlaccelerate(step), Network()
    with pytest.warns(tj.NotAcceleratedWarning, match=r"it changes net\.biases\[0\], which it also reads"):
        assert [float(accelerated(net, np.ones(3))) for _ in range(5)] == [0.0, 3.0, 6.0, 9.0, 12.0]
    accelerated = tj.dlaccelerate(lambda net, x: net.scale * x)
    accelerated(net, np.ones(2))
    net.scale = 3.0
    accelerated(net, np.ones(2))
    assert "net.scale is no longer 1.0" in accelerated.explain()


def test_threads_with_objects_of_their_own() -> None:
    def step(net: Network, x: Any) -> Any:
        for b in net.biases:
            b += x[0]
        net.steps += 1
        return net.biases[0].sum() + net.steps

    accelerated, failed = tj.dlaccelerate(step), []

    def run(net: Network) -> None:
        failed.extend(n for n in range(1, 25) if float(accelerated(net, np.ones(1))) != 4.0 * n)

    threads = [threading.Thread(target=run, args=(Network(n),)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_after_an_error_the_object_is_as_before() -> None:
    def step(net: Network, x: Any) -> Any:
        net.biases[0] += x
        net.last = x
        if net.steps == 1:
            raise ValueError("wrong")
        return net.biases[0].sum()

    accelerated, net = tj.dlaccelerate(step), Network()
    for _ in range(4):
        accelerated(net, np.ones(3))
    net.steps, before, bias = 1, net.last, net.biases[0]
    with pytest.raises(ValueError, match="wrong"):
        accelerated(net, np.full(3, 5.0))
    assert net.last is before and net.biases[0] is bias and bias.tolist() == [4.0] * 3
