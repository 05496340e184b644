# SPDX-License-Identifier: BSD-3-Clause
"""Attributes that a function reads: each change is seen, and what does not change costs no trace."""

import dataclasses
import functools
import gc
import types
import weakref

import numpy as np
import pytest
from counted_runs import counts_runs
from layers import Layer
from namespaces import Namespace, follow, setting

from tracejit import NotAcceleratedWarning, dlaccelerate, dlarray

X = np.array([1.0, 2.0, 3.0])


@pytest.fixture
def layer():
    return Layer()


class TestAttributes:
    def test_of_self(self, layer):
        follow(layer.double, setting(layer, "k", 5.0), setting(layer, "w", dlarray(np.ones(3))), traces=4)
        follow(
            layer.double,
            lambda: layer.parts.update(b=np.zeros(3)),
            lambda: layer.parts["b"].fill(8.0),
            traces=2,
        )

    def test_of_a_class(self, layer, monkeypatch):
        follow(layer.double, lambda: monkeypatch.setattr(Layer, "rate", 3.0), setting(layer, "rate", 5.0))

    def test_an_edited_method(self, layer, monkeypatch):
        new = lambda self, x: x + self.w
        follow(layer.double, lambda: monkeypatch.setattr(Layer, "__call__", new))

    def test_an_edited_property(self, layer, monkeypatch):
        new = property(lambda self: self.k * 10)
        follow(layer.double, lambda: monkeypatch.setattr(Layer, "factor", new))

    def test_a_method_of_an_instance(self):
        class Model:
            def forward(self, x):
                return x + 1

        model = Model()
        follow(
            lambda x: model.forward(x),
            setting(model, "forward", lambda x: x * 3),
            lambda: delattr(model, "forward"),
        )

    def test_a_method_of_a_subclass(self):
        class Base:
            def step(self, x):
                return x + 1

        class Derived(Base):
            pass

        model = Derived()
        follow(
            lambda x: model.step(x),
            setting(Derived, "step", lambda self, x: x * 5),
            setting(Base, "step", None),
        )

    def test_super(self):
        class Base:
            def step(self, x):
                return x + 1

        class Derived(Base):
            def step(self, x):
                return super().step(x) * 2

        model = Derived()
        follow(lambda x: model.step(x), setting(Base, "step", lambda self, x: x * 5))

    def test_methods_of_classes(self):
        class Model:
            scale = 2.0

            @classmethod
            def by_class(cls, x):
                return x * cls.scale

            @staticmethod
            def by_name(x):
                return x + 1

        follow(
            lambda x: Model.by_class(x) + Model.by_name(x),
            setting(Model, "scale", 3.0),
            setting(Model, "by_name", staticmethod(lambda x: x - 1)),
            setting(Model, "by_class", classmethod(lambda cls, x: x)),
        )

    def test_a_class_that_is_called(self):
        class Scale:
            def __init__(self, k):
                self.k = k

            def __call__(self, x):
                return x * self.k

        def init(self, k):
            self.k = 10 * k

        follow(
            lambda x: Scale(2)(x),
            setting(Scale, "__init__", init),
            setting(Scale, "__call__", lambda s, x: x),
        )

    def test_objects_in_a_list(self):
        layers = [Layer(0), Layer(1)]

        def f(x):
            for part in layers:
                x = part(x)
            return x

        follow(
            f,
            setting(layers[1], "k", 9.0),
            setting(layers[0], "w", dlarray(np.ones(3))),
            lambda: layers.append(Layer(2)),
            lambda: layers.__setitem__(0, Layer(5)),
        )

    def test_another_object_of_the_same_class_costs_no_trace(self):
        model = Layer(0)

        def f(x):
            return model(x)

        def other():
            nonlocal model
            model = Layer(7)

        follow(f, other, traces=2)

    def test_an_object_of_another_class(self):
        class Other(Layer):
            def __call__(self, x):
                return x - self.w

        model = Layer(0)

        def other():
            nonlocal model
            model = Other(7)

        follow(lambda x: model(x), other)

    def test_an_object_that_is_passed_on(self, layer):
        def helper(model, x):
            return x * model.k

        follow(lambda x: helper(layer, x), setting(layer, "k", 4.0))

    def test_attributes_in_a_loop(self):
        layers = (Layer(0), Layer(1))

        def f(x):
            for part in layers:
                x = x * part.w + part.k
            return x

        follow(f, setting(layers[1], "k", 4.0), setting(layers[0], "w", dlarray(np.full(3, 2.0))))

    def test_by_computed_names(self, layer):
        name = "k"

        def other():
            nonlocal name
            name = "z"

        layer.z = 7.0
        follow(lambda x: x * getattr(layer, name), setting(layer, "k", 4.0), other, setting(layer, "z", 1.0))

    def test_an_attribute_that_appears(self, layer):
        def f(x):
            return x * (layer.scale if hasattr(layer, "scale") else 1.0)

        follow(f, setting(layer, "scale", 3.0), lambda: delattr(layer, "scale"))

    def test_slots(self):
        class Slotted:
            __slots__ = ("k", "w")

        model = Slotted()
        model.k, model.w = 2.0, np.ones(3)
        follow(
            lambda x: x * model.w + model.k, setting(model, "k", 3.0), setting(model, "w", np.full(3, 4.0))
        )

    def test_a_dataclass(self):
        @dataclasses.dataclass
        class Config:
            rate: float
            w: np.ndarray
            inner: "Config | None" = None

        model = Config(2.0, np.ones(3), Config(1.0, np.zeros(3)))
        follow(
            lambda x: x * model.rate + model.w + model.inner.rate,
            setting(model, "rate", 3.0),
            setting(model.inner, "rate", 9.0),
            setting(model, "w", np.full(3, 5.0)),
        )

    def test_a_frozen_dataclass_that_is_replaced(self):
        @dataclasses.dataclass(frozen=True)
        class Config:
            rate: float
            depth: int = 1

        model = Config(2.0)

        def other():
            nonlocal model
            model = dataclasses.replace(model, depth=3)

        follow(lambda x: x * model.rate**model.depth, other)

    def test_a_namespace(self):
        options = types.SimpleNamespace(rate=2.0, sub=types.SimpleNamespace(k=1))
        follow(
            lambda x: x * options.rate + options.sub.k,
            setting(options, "rate", 3.0),
            setting(options.sub, "k", 5),
        )

    @pytest.mark.parametrize("uses", [1, 2, 3])
    @pytest.mark.parametrize("value", [2.0, np.array([2.0, 3.0])], ids=["number", "array"])
    def test_a_cached_property_of_objects_in_turn(self, value, uses):
        class Grid:
            @functools.cached_property
            def w(self):
                return value * 2

        current = []
        fun = dlaccelerate(lambda x: x * current[0].w)
        for n in range(12):
            if n % uses == 0:
                current[:] = [Grid()]
            assert np.array_equal(fun(np.ones(2)), np.ones(2) * (value * 2))
            assert "w" in vars(current[0])
        assert (fun.stats.replaced, fun.stats.uncompiled) == (0, 0)
        assert fun.stats.hits >= 8

    def test_a_cached_property(self):
        class Model:
            @functools.cached_property
            def grid(self):
                return np.linspace(0, 1, 3)

        model = Model()
        accelerated = dlaccelerate(lambda x: x + model.grid)
        for _ in range(5):
            assert accelerated(X).tolist() == [1.0, 2.5, 4.0]
        assert accelerated.stats.hits == 2 and accelerated.stats.uncompiled == 0
        model.grid[:] = 2.0
        assert accelerated(X).tolist() == (X + 2).tolist()

    def test_what_is_set_up_in_the_first_call(self):
        class Model:
            w = None

            def __call__(self, x):
                if self.w is None:
                    self.w = np.ones(3)
                return x * self.w

        model = Model()
        accelerated = dlaccelerate(lambda x: model(x))
        for _ in range(5):
            assert accelerated(X).tolist() == X.tolist()
        assert accelerated.stats.hits == 2
        model.w = np.full(3, 2.0)
        assert accelerated(X).tolist() == (2 * X).tolist()

    @counts_runs
    def test_a_counter_that_nothing_reads(self, layer):
        def f(x):
            layer.count += 1
            layer.history.append(1)
            return x * layer.k

        def other():
            layer.count += 10

        follow(f, other, layer.history.clear, traces=2)

    def test_a_size_that_is_kept_in_layers_and_read_again(self, layer):
        """It is a new tuple at each call, which equals the one of the call before."""
        model = types.SimpleNamespace(layers=[layer, Layer()])

        @dlaccelerate
        def f(x):
            for each in model.layers:
                each.sizes, x = x.shape, x.reshape(-1) * 2
            for each in reversed(model.layers):
                x = x.reshape(each.sizes)
            return x

        for n in (1, 2, 3, 4, 5, 6):
            x = np.full((2, 3), float(n))
            assert f(x).tolist() == (4 * x).tolist()
            assert [each.sizes for each in model.layers] == [(2, 3), (6,)]
        assert f.stats.hits >= 3
        assert f(np.ones((3, 1))).shape == (3, 1)
        assert [each.sizes for each in model.layers] == [(3, 1), (3,)]

    def test_random_numbers_that_are_kept_and_read(self, layer):
        def f(x, training=True):
            if training:
                layer.mask = np.random.rand(*x.shape) > 0.5
                return x * layer.mask
            return x

        accelerated = dlaccelerate(f, audit=False)
        masks = set()
        for _ in range(12):
            assert accelerated(X).tolist() == (X * layer.mask).tolist()
            masks.add(str(np.asarray(layer.mask)))
        assert len(masks) > 2
        assert accelerated.stats.hits >= 8

    def test_contents_that_numpy_computes_with_and_that_change(self, layer):
        layer.w = np.ones(3)
        for accelerated in (
            dlaccelerate(lambda x: x * float(np.linalg.norm(layer.w)), audit=False),
            dlaccelerate(lambda x: x * np.linalg.norm(layer.w), audit=False),
        ):
            for n in range(12):
                layer.w = np.full(3, float(n))
                assert accelerated(X).tolist() == (X * np.linalg.norm(layer.w)).tolist()
            assert (accelerated.stats.hits, accelerated.stats.uncompiled) == (6, 0)

    def test_a_counter_that_counts(self, layer):
        def f(x):
            layer.count += 1
            return x * layer.count

        accelerated = dlaccelerate(f, audit=False)
        for n in range(1, 8):
            assert accelerated(X).tolist() == (n * X).tolist()
        assert type(layer.count) is int
        assert (accelerated.stats.traces, accelerated.stats.hits) == (3, 4)

    def test_state_of_numpy_that_the_function_updates(self, layer):
        layer.mean = np.zeros(3)

        def f(x):
            y = x - layer.mean
            layer.mean = layer.mean * 0.5 + 1
            return y

        expected, mean = [], np.zeros(3)
        for _ in range(7):
            expected.append((X - mean).tolist())
            mean = mean * 0.5 + 1
        accelerated = dlaccelerate(f, audit=False)
        assert [accelerated(X).tolist() for _ in range(7)] == expected
        assert accelerated.stats.hits == 2

    def test_an_array_that_the_function_writes_to(self, layer):
        layer.mean = np.zeros(3)

        def f(x):
            y = x - layer.mean
            layer.mean += 1
            return y

        accelerated = dlaccelerate(f, audit=False)
        mean = layer.mean
        assert [accelerated(X).tolist() for _ in range(7)] == [(X - n).tolist() for n in range(7)]
        assert accelerated.stats.hits == 5 and layer.mean is mean and mean.tolist() == [7.0] * 3

    def test_an_array_that_the_function_writes_to_and_numpy_reads(self, layer):
        layer.mean = np.zeros(3)

        def update():
            layer.mean += 1

        def f(x):
            mean = layer.mean
            update()
            return x - np.sqrt(mean)

        accelerated = dlaccelerate(f, audit=False)
        found = [accelerated(X).tolist() for _ in range(7)]
        assert found == [(X - np.sqrt(np.full(3, n + 1.0))).tolist() for n in range(7)]
        assert accelerated.stats.hits == 3

    def test_a_traced_value_that_is_kept_on_self(self, layer):
        def f(x):
            layer.h = x * layer.k
            return layer.h.sum()

        follow(f, setting(layer, "k", 4.0), setting(layer, "h", None), traces=4)

    def test_numbers_that_are_drawn_and_kept(self, layer):
        def f(x):
            layer.noise = np.random.default_rng().random(3)
            return x + layer.noise

        accelerated = dlaccelerate(f, audit=False)
        with pytest.warns(NotAcceleratedWarning):
            results = {tuple(accelerated(X).tolist()) for _ in range(6)}
        assert len(results) == 6

    def test_what_changes_at_each_call(self, layer):
        accelerated = dlaccelerate(lambda x: x * layer.k, audit=False)
        for n in range(30):
            layer.k = float(n)
            assert accelerated(X).tolist() == (n * X).tolist()
        assert (accelerated.stats.traces, accelerated.stats.hits) == (5, 25)
        layer.k = 2  # an integer is promoted in another way
        for _ in range(3):
            assert accelerated(X).tolist() == (2 * X).tolist()
        assert accelerated.stats.traces == 7

    def test_a_text_that_changes_at_each_call(self, layer):
        accelerated = dlaccelerate(lambda x: x * float(layer.k), audit=False)
        with pytest.warns(
            NotAcceleratedWarning, match=r"closure layer\.k, which it reads, changes from call to call"
        ) as caught:
            for n in range(30):
                layer.k = str(n)
                assert accelerated(X).tolist() == (n * X).tolist()
        assert len(caught) == 1 and "pass it as an argument" in str(caught[0].message).lower()
        for _ in range(40):  # it has settled
            assert accelerated(X).tolist() == (29 * X).tolist()
        before = accelerated.stats.hits
        accelerated(X)
        assert accelerated.stats.hits == before + 1

    def test_what_changes_now_and_then(self, layer):
        accelerated = dlaccelerate(lambda x: x * layer.k, audit=False)
        for n in range(30):
            layer.k = float(n)
            for _ in range(4):
                assert accelerated(X).tolist() == (n * X).tolist()
        assert accelerated.stats.traces == 7 and accelerated.stats.uncompiled == 0

    def test_two_states_in_turn_have_a_trace_each(self, layer):
        accelerated = dlaccelerate(lambda x: x * layer.k, audit=False)
        for n in range(20):
            layer.k = float(n // 2 % 2)
            assert accelerated(X).tolist() == (layer.k * X).tolist()
        assert accelerated.stats.traces == 4

    def test_instances_have_traces_of_their_own(self):
        class Model:
            def __init__(self, k):
                self.k = k

            @dlaccelerate(audit=False)
            def step(self, x):
                return x * self.k

        first, second = Model(2.0), Model(3.0)
        for _ in range(2):
            follow(first.step, setting(first, "k", first.k + 5))
            follow(second.step)

    def test_no_reference_keeps_an_instance_alive(self):
        class Model:
            def __init__(self):
                self.w = dlarray(np.ones(3))
                self.me = self

            @dlaccelerate(audit=False)
            def step(self, x):
                return x * self.me.w

        model = Model()
        follow(model.step)
        died = weakref.ref(model), weakref.ref(model.w)
        del model
        gc.collect()
        assert [ref() for ref in died] == [None, None]

    def test_a_trace_keeps_no_model_of_a_global_name(self):
        module = Namespace("def f(x): return model(x)", model=Layer())
        accelerated = follow(module["f"])
        died = weakref.ref(module["model"]), weakref.ref(module["model"].w)
        module.names["model"] = None
        gc.collect()
        assert [ref() for ref in died] == [None, None]
        with pytest.raises(TypeError):
            accelerated(X)
