# SPDX-License-Identifier: BSD-3-Clause
"""Traps: objects whose attributes change between calls."""

import gc
import weakref

import numpy as np
import pytest
from worlds import follow, pick

import tracejit as tj
from tracejit import dlaccelerate, dlarray

X = np.array([1.0, -2.0, 3.0])


@pytest.fixture(autouse=True)
def _seeded():
    with tj.rng(0):
        yield


class Layer:
    shared = 2.0

    def __init__(self, weights):
        self.weights = weights
        self.rate = 1.0

    @property
    def scale(self):
        return self.rate * 10

    def forward(self, x):
        return x * self.weights * self.shared + self.scale


class TestObjects:
    def follow(self, change, **options):
        def world(accelerate):
            kind = type("Fast", (Layer,), {"call": accelerate(lambda self, x: self.forward(x))})
            kind.call.__set_name__(kind, "call") if hasattr(kind.__dict__["call"], "__set_name__") else None
            layer = kind(np.ones(3))

            def call(n):
                change(layer, n)
                return layer.call(X)

            return call

        return follow(world, replays=False, **options)

    def test_attributes_of_self(self):
        self.follow(lambda layer, n: setattr(layer, "rate", pick(n, 1.0, 2.0)))

    def test_arrays_of_self(self):
        self.follow(lambda layer, n: layer.weights.__setitem__(slice(None), n))

    def test_arrays_of_self_that_are_replaced(self):
        self.follow(lambda layer, n: setattr(layer, "weights", pick(n, X, -X, dlarray(X))))

    def test_attributes_of_the_class(self):
        self.follow(lambda layer, n: setattr(type(layer), "shared", pick(n, 2.0, 5.0)))

    def test_an_attribute_that_hides_that_of_the_class(self):
        self.follow(
            lambda layer, n: (
                layer.__dict__.__setitem__("shared", 5.0)
                if pick(n, 0, 1)
                else layer.__dict__.pop("shared", 0)
            )
        )

    def test_a_property_that_is_replaced(self):
        new = property(lambda self: self.rate * 100)
        self.follow(lambda layer, n: setattr(type(layer), "scale", pick(n, Layer.scale, new)))

    def test_a_method_that_is_patched(self):
        other = lambda self, x: -x
        self.follow(lambda layer, n: setattr(type(layer), "forward", pick(n, Layer.forward, other)))

    def test_inheritance(self):
        def world(accelerate):
            class Base:
                factor = 2.0

                @accelerate
                def call(self, x):
                    return self.inner(x) * self.factor

                def inner(self, x):
                    return x

            class Child(Base):
                factor = 3.0

                def inner(self, x):
                    return super().inner(x) + 1

            objects = [Base(), Child()]
            return lambda n: objects[n % 2].call(X)

        follow(world, replays=False)

    def test_instances_are_apart_and_collected(self):
        class Model:
            def __init__(self, rate):
                self.rate = rate

            @dlaccelerate
            def call(self, x):
                return x * self.rate

        models = [Model(float(n)) for n in range(4)]
        for _ in range(4):
            assert [model.call(X)[0].item() for model in models] == [0.0, 1.0, 2.0, 3.0]
        assert [model.call.stats.hits for model in models] == [2] * 4
        gone = [weakref.ref(model) for model in models]
        del models
        gc.collect()
        assert [ref() for ref in gone] == [None] * 4

    def test_a_counter_of_self(self):
        def world(accelerate):
            class Model:
                count = 0

                @accelerate
                def call(self, x):
                    self.count += 1
                    return x * self.count  # here

            model = Model()
            return lambda n: (model.call(X), model.count)

        follow(world, replays=False)

    def test_a_running_mean_of_self(self):
        def world(accelerate):
            class Model:
                def __init__(self):
                    self.mean = np.zeros(3)

                @accelerate
                def call(self, x):
                    self.mean = 0.9 * self.mean + 0.1 * tj.extractdata(x)  # here
                    return x - self.mean

            model = Model()
            return lambda n: (model.call(X + n), np.array(model.mean))

        follow(world, warns="extractdata on a traced array gave a different number in each of 9 recordings")
