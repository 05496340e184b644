# SPDX-License-Identifier: BSD-3-Clause
"""What functions of layers read besides the arrays of their network is read again at each call."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tracejit as tj
from tracejit import nn

X = tj.dlarray(np.arange(1.0, 9.0, dtype=np.float32).reshape(2, 4), "BC")


class Settings:
    """What a function reads through a variable of the function around it: a number, an item, elements."""

    def __init__(self) -> None:
        factor, items, array = 2.0, {"factor": 1.0}, np.ones(4, np.float32)

        def scaled(x: Any) -> Any:
            return x * factor * items["factor"] * array

        def total() -> Any:
            return factor * items["factor"] * array

        def set_factor(value: float) -> None:
            nonlocal factor
            factor = value

        def set_item(value: float) -> None:
            items["factor"] = value

        def set_elements(value: float) -> None:
            array[:] = value

        def set_array(value: float) -> None:
            nonlocal array
            array = np.full(4, value, np.float32)

        self.scaled, self.total = scaled, total
        self.setters = (set_factor, set_item, set_elements, set_array)


def as_function(settings: Settings) -> Any:
    return tj.functionlayer(settings.scaled, formattable=True, acceleratable=True)


def as_method(settings: Settings) -> Any:
    class Scaled:
        def apply(self, x: Any) -> Any:
            return settings.scaled(x)

    return tj.functionlayer(Scaled().apply, formattable=True, acceleratable=True)


def as_partial(settings: Settings) -> Any:
    part = functools.partial(lambda unused, x: settings.scaled(x), 1)
    return tj.functionlayer(part, formattable=True, acceleratable=True)


def as_instance(settings: Settings) -> Any:
    class Scaled:
        def __call__(self, x: Any) -> Any:
            return settings.scaled(x)

    return tj.functionlayer(Scaled(), formattable=True, acceleratable=True)


def as_accelerated(settings: Settings) -> Any:
    return tj.functionlayer(tj.dlaccelerate(settings.scaled), formattable=True, acceleratable=True)


def as_custom_gradient(settings: Settings) -> Any:
    fun = tj.custom_gradient(lambda x: (settings.scaled(x), None))
    return tj.functionlayer(fun, formattable=True, acceleratable=True)


def as_map(settings: Settings) -> Any:
    fun = tj.dlmap(lambda x: settings.scaled(x), over="B")
    return tj.functionlayer(fun, formattable=True, acceleratable=True)


def as_layer(settings: Settings) -> Any:
    class Scaled(nn.Layer, nn.Formattable, nn.Acceleratable):
        def predict(self, x: Any) -> Any:
            return settings.scaled(x)

    return Scaled()


def as_attribute(settings: Settings) -> Any:
    class Scaled(nn.Layer, nn.Formattable, nn.Acceleratable):
        def __init__(self) -> None:
            self.function = settings.scaled

        def predict(self, x: Any) -> Any:
            return self.function(x)

    return Scaled()


def as_inner_network(settings: Settings) -> Any:
    return nn.Network(tj.dlnetwork([as_function(settings)], initialize=False))


def as_uncompiled(settings: Settings) -> Any:
    return tj.functionlayer(settings.scaled, formattable=True)


def as_normalization(settings: Settings) -> Any:
    return nn.FeatureInput(4, normalization=settings.scaled)


def predict(net: Any) -> Callable[[Any], Any]:
    return net.predict  # type: ignore[no-any-return]


def as_argument(net: Any) -> Callable[[Any], Any]:
    accelerated = tj.dlaccelerate(lambda net, x: net.predict(x))
    return lambda x: accelerated(net, x)


def as_captured(net: Any) -> Callable[[Any], Any]:
    return tj.dlaccelerate(lambda x: net.predict(x))


LAYERS = (
    as_function, as_method, as_partial, as_instance, as_accelerated, as_custom_gradient, as_map, as_layer, as_attribute,
    as_inner_network, as_uncompiled, as_normalization,
)  # fmt: skip


@pytest.mark.parametrize("run", [predict, as_argument, as_captured])
@pytest.mark.parametrize("make", LAYERS)
def test_variables_of_enclosing_functions(make: Any, run: Any) -> None:
    settings = Settings()
    layer = make(settings)
    net = tj.dlnetwork([layer] if isinstance(layer, nn.FeatureInput) else [nn.FeatureInput(4), layer])
    call = run(net)
    for _ in range(4):
        assert_allclose(call(X), np.asarray(X) * settings.total())
    for number, change in enumerate(settings.setters):
        change(3.0 + number)
        for _ in range(3):
            assert_allclose(call(X), np.asarray(X) * settings.total())


def test_a_method_that_is_exchanged() -> None:
    class Scaled(nn.Layer, nn.Formattable, nn.Acceleratable):
        def predict(self, x: Any) -> Any:
            return x * 2

    net = tj.dlnetwork([nn.FeatureInput(4), Scaled()])
    for _ in range(4):
        assert_allclose(net.predict(X), np.asarray(X) * 2)
    Scaled.predict = lambda self, x: x * 3  # type: ignore[method-assign, assignment, misc]
    assert_allclose(net.predict(X), np.asarray(X) * 3)


def test_what_stays_the_same_is_replayed() -> None:
    settings = Settings()
    net = tj.dlnetwork([nn.FeatureInput(4), as_function(settings)])
    accelerated = tj.dlaccelerate(lambda net, x: net.predict(x))
    for _ in range(6):
        accelerated(net, X)
    assert accelerated.stats.traces == 2 and accelerated.stats.hits == 4
