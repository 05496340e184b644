# SPDX-License-Identifier: BSD-3-Clause
"""What a function reads around its arguments: each change is seen, and what does not change costs no trace.

Each trap is a function and changes between its calls that a frozen trace would not see.
"""

# ruff: noqa: PLW0108 - a lambda reads what it names

import collections
import dataclasses
import enum
import functools
import gc
import importlib
import itertools
import linecache
import queue
import sys
import threading
import types
import warnings
import weakref

import numpy as np
import pytest
from effort import sweep

import tracejit as tj
from tracejit import NotAcceleratedWarning, dlaccelerate, dlarray, dlfeval, dlgradient
from tracejit.capture import guards, snapshot

X = np.array([1.0, 2.0, 3.0])


def values(result):
    """Return a result as lists and numbers, with dtypes."""
    leaves, treedef = tj.tree.flatten(result)
    return [(np.asarray(leaf).dtype, np.asarray(leaf).tolist()) for leaf in leaves], treedef


def follow(function, *changes, args=(X,), traces=None):
    """Call an accelerated function and the plain one between changes; each state is replayed in the end."""
    accelerated = (
        function if isinstance(function, tj.AcceleratedFunction) else dlaccelerate(function, audit=False)
    )
    plain = accelerated.function
    for change in (lambda: None, *changes):
        change()
        for _ in range(4):
            before = accelerated.stats.hits
            result = values(accelerated(*args))
            expected = values(dlfeval(plain, *args))
            assert result[1] == expected[1]
            for (dtype, got), (wanted_dtype, wanted) in zip(result[0], expected[0], strict=True):
                assert dtype == wanted_dtype
                np.testing.assert_allclose(got, wanted, rtol=1e-6)
        assert accelerated.stats.hits == before + 1, accelerated.explain()
    if traces is not None:
        assert accelerated.stats.traces == traces, accelerated.explain()
    return accelerated


class Namespace:
    """Globals of a function that a test can change."""

    def __init__(self, source, **names):
        self.names = {"__name__": "a_module_of_a_test", "np": np, "tj": tj, **names}
        exec(compile(source, "<test>", "exec"), self.names)

    def __getitem__(self, name):
        return self.names[name]

    def set(self, **names):
        return lambda: self.names.update(names)


def setting(owner, name, value):
    return lambda: setattr(owner, name, value)


class TestGlobals:
    def test_a_number(self):
        module = Namespace("rate = 2.0\ndef f(x): return x * rate")
        follow(module["f"], module.set(rate=3.0), module.set(rate=4), module.set(rate=True), traces=8)

    @pytest.mark.parametrize("new", [0.0, -0.0, np.nan, np.inf, np.float32(2), np.float64(2), 2, True])
    def test_kinds_of_numbers(self, new):
        module = Namespace("rate = 2.0\ndef f(x): return 1 / (x * rate)")
        follow(module["f"], module.set(rate=new), module.set(rate=1.5))

    def test_zeros_of_two_signs(self):
        module = Namespace("rate = 0.0\ndef f(x): return 1 / (x * rate)")
        follow(module["f"], module.set(rate=-0.0), traces=4)

    def test_nan_is_equal_to_nan(self):
        module = Namespace("rate = 2.0\ndef f(x): return x * rate", rate=np.nan)
        follow(module["f"], module.set(rate=float("nan")), module.set(rate=float("nan")), traces=4)

    def test_an_array_in_place(self):
        weights = np.array([1.0, 2.0, 3.0])
        module = Namespace("def f(x): return x * w", w=weights)
        follow(module["f"], lambda: weights.__setitem__(0, 7.0), lambda: weights.fill(2.0), traces=2)

    def test_another_array_of_the_same_kind(self):
        module = Namespace("def f(x): return x * w", w=np.ones(3))
        follow(module["f"], module.set(w=np.array([4.0, 5.0, 6.0])), traces=2)

    @pytest.mark.parametrize(
        "new",
        [np.ones(3, np.float32), np.ones((2, 3)), np.ones(1), np.array(2.0), np.arange(3), dlarray(np.ones(3)),
         dlarray(np.ones(3), "C"), np.ones(6)[::2], np.ones(3)[::-1], np.ones(3, ">f8"), 2.0, np.float64(2)],
    )  # fmt: skip
    def test_an_array_of_another_kind(self, new):
        module = Namespace("def f(x): return x * w", w=np.array([1.0, 2.0, 3.0]))
        follow(module["f"], module.set(w=new), module.set(w=np.ones(3)))

    def test_a_name_that_is_deleted_and_comes_back(self):
        module = Namespace("rate = 2.0\ndef f(x): return x * rate")
        accelerated = follow(module["f"])
        del module.names["rate"]
        with pytest.raises(NameError, match="rate"):
            accelerated(X)
        module.names["rate"] = 2.0
        follow(accelerated, module.set(rate=5.0))

    def test_a_name_that_hides_one_of_python(self):
        module = Namespace("def f(x): return abs(x) * len('ab')")
        follow(module["f"], module.set(abs=lambda x: x * 2), module.set(len=lambda x: 7))

    def test_a_flag(self):
        module = Namespace("flag = False\ndef f(x):\n    if flag:\n        return x + 1\n    return x - 1")
        follow(module["f"], module.set(flag=True), module.set(flag=False), traces=4)

    def test_text_that_selects(self):
        module = Namespace("mode = 'sum'\ndef f(x): return getattr(x, mode)()")
        follow(module["f"], module.set(mode="max"), module.set(mode="mean"))

    def test_a_size(self):
        module = Namespace("n = 1\ndef f(x):\n    for _ in range(n):\n        x = x * 2\n    return x")
        follow(module["f"], module.set(n=3), module.set(n=2))

    def test_what_nothing_reads_costs_no_trace(self):
        module = Namespace("rate = 2.0\nother = 1\ndef f(x): return x * rate")
        follow(module["f"], module.set(other=2), module.set(new=3), traces=2)

    def test_a_dtype(self):
        module = Namespace("kind = np.float32\ndef f(x): return x.astype(kind)")
        follow(module["f"], module.set(kind=np.float64), module.set(kind=np.dtype("f4")))

    def test_a_member_of_an_enumeration(self):
        color = enum.Enum("color", ["RED", "BLUE"])
        module = Namespace("def f(x): return x * (2 if c is red else 3)", c=color.RED, red=color.RED)
        follow(module["f"], module.set(c=color.BLUE), module.set(c=color.RED))

    def test_an_array_that_only_numpy_reads(self):
        weights = np.ones(4)
        module = Namespace("def f(x): return x * float(np.sum(w))", w=weights)
        follow(module["f"], lambda: weights.fill(2.0), module.set(w=np.ones(4)))

    def test_an_array_that_decides(self):
        flags = np.array([True, False])
        module = Namespace("def f(x): return x * 2 if flags[0] else x", flags=flags)
        follow(module["f"], lambda: flags.__setitem__(0, False))

    def test_the_size_of_an_array(self):
        module = Namespace("def f(x): return x * w.shape[0] + w.ndim", w=np.ones(4))
        follow(module["f"], module.set(w=np.ones(5)), traces=4)
        module["w"][:] = 3.0
        follow(module["f"], lambda: module["w"].fill(4.0), traces=2)

    @pytest.mark.parametrize(
        "body",
        [
            "x = x * w\n    return x * float(np.sum(w))",
            "return x * float(np.sum(w)) + w",
            "return x * w + w[int(w.ndim)]",
            "return x * w + [w[i] for i in range(3)][1]",
            "return x * np.tanh(w) + (w * w) * x * w",
            "x = x * w\n    return x + w[0]",
            "x = x * w\n    return x + np.outer(w, w)[0]",
            "x = x * w\n    return x * sum(w * 2)",
            "x = x * w\n    return x * w.max()",
            "x = x * w\n    return x if abs(w[1]) > 4 else x + 1",
            "s = (np.tanh(w) ** 2).sum()\n    return x * w + s",
        ],
    )
    def test_an_array_that_the_trace_and_numpy_read(self, body):
        module = Namespace(f"def f(x):\n    {body}", w=np.ones(3))
        follow(module["f"], module.set(w=np.full(3, 5.0)), lambda: module["w"].fill(2.0), traces=6)

    @pytest.mark.parametrize(
        "index", ["[0, 1]", "[0][1]", "[w.ndim - 1][1]", "[w.ndim - 1, 1]", "[1:, w.ndim - 1].max()"]
    )
    def test_a_matrix_that_the_trace_and_numpy_read(self, index):
        module = Namespace(f"def f(x): return x @ w + w{index}", w=np.ones((3, 3)))
        follow(module["f"], module.set(w=np.full((3, 3), 5.0)), lambda: module["w"].fill(2.0))

    def test_rows_that_only_the_trace_reads(self):
        module = Namespace(
            "def f(x):\n    for i in range(2):\n        x = x * w[i]\n    return x", w=np.ones((3, 3))
        )
        follow(module["f"], module.set(w=np.full((3, 3), 5.0)), lambda: module["w"].fill(2.0), traces=2)

    def test_slices_that_only_the_trace_reads(self):
        module = Namespace("def f(x):\n    k = w.ndim\n    return x[:k] * w[:k]", w=np.ones(3))
        follow(module["f"], module.set(w=np.full(3, 5.0)), lambda: module["w"].fill(2.0), traces=2)

    def test_an_array_of_a_closure_that_the_trace_and_numpy_read(self):
        w = np.ones(3)

        def fun(x):
            y = x * w
            return y * float(np.sum(w))

        def change():
            nonlocal w
            w = np.full(3, 5.0)

        follow(fun, change, traces=4)

    @pytest.mark.parametrize(
        "body",
        [
            "return x * w + len(w) + w.ndim + np.size(w)",
            "return np.maximum(x, w) + tj.tanh(w) + tj.dlarray(w) + np.asarray(w) * x",
            "v = w\n    return helper(x, v) + helper(w, x) + x @ w.reshape(3, 1)",
            "return (\n        x\n        * w\n        + np.maximum(\n            x,\n            w,\n        )\n    )",
        ],
    )
    def test_an_array_that_only_the_trace_reads(self, body):
        module = Namespace(f"def helper(a, b): return a * b\ndef f(x):\n    {body}", w=np.ones(3))
        follow(module["f"], module.set(w=np.full(3, 5.0)), lambda: module["w"].fill(2.0), traces=2)

    def test_a_view_that_cannot_be_made_again(self):
        weights = np.arange(6.0)[::2]
        module = Namespace("def f(x): return x * w + x * w[::-1]", w=weights)
        follow(module["f"], lambda: weights.fill(2.0), module.set(w=np.ones(3)))

    def test_a_view_of_an_array(self):
        weights = np.arange(6.0).reshape(2, 3)
        module = Namespace("def f(x): return x * w[1] + w.T[0, 1] * 0 + w.reshape(3, 2)[:, 1]", w=weights)
        follow(module["f"], lambda: weights.fill(2.0), module.set(w=np.ones((2, 3))))

    def test_a_view_costs_no_trace(self):
        weights = np.arange(6.0).reshape(2, 3)
        module = Namespace("def f(x): return x @ w.T", w=weights)
        follow(module["f"], lambda: weights.fill(2.0), module.set(w=np.ones((2, 3))), traces=2)

    def test_values_of_a_dlarray_that_leave_it(self):
        weights = np.ones(3)
        module = Namespace("def f(x): return x * float(w[0]) + w", w=dlarray(weights))
        follow(module["f"], lambda: weights.__setitem__(0, 4.0))
        module = Namespace("def f(x): return x[mask]", mask=np.array([True, False, True]))
        follow(module["f"], lambda: module["mask"].__setitem__(1, True))

    def test_an_array_as_a_result(self):
        weights = np.ones(3)
        module = Namespace("def f(x): return x, w, d", w=weights, d=dlarray(np.ones(2), "C"))
        follow(module["f"], lambda: weights.fill(2.0), module.set(d=dlarray(np.zeros(2), "C")))

    def test_one_array_under_two_names(self):
        weights = np.ones(3)
        module = Namespace("def f(x): return x * a + b", a=weights, b=weights)
        follow(
            module["f"], lambda: weights.fill(3.0), module.set(a=np.zeros(3)), module.set(b=np.full(3, 9.0))
        )

    def test_an_array_of_another_library(self):
        torch = pytest.importorskip("torch")
        tensor = torch.ones(3, dtype=torch.float64)
        module = Namespace("def f(x): return x * t", t=tensor)
        follow(module["f"], lambda: tensor.fill_(5.0), traces=2)

    def test_too_large_for_numpy_alone(self):
        module = Namespace("def f(x): return x * float(np.sum(w))", w=np.ones(100_000))
        accelerated = dlaccelerate(module["f"])
        with pytest.warns(
            NotAcceleratedWarning, match="it reads global w, which cannot be checked at each call"
        ) as caught:
            assert accelerated(X).tolist() == (X * 1e5).tolist()
        assert len(caught) == 1 and caught[0].filename == "<test>" and caught[0].lineno == 1
        module["w"][0] = 2.0
        assert accelerated(X).tolist() == (X * 100_001).tolist()

    def test_a_large_array_that_is_recorded(self):
        weights = np.ones(100_000)
        module = Namespace("def f(x): return (x[0] * w).sum()", w=weights)
        follow(module["f"], lambda: weights.fill(2.0), traces=2)


class TestContainers:
    def test_an_item_of_a_dict(self):
        settings = {"rate": 2.0, "other": 1}
        module = Namespace("def f(x): return x * C['rate']", C=settings)
        follow(module["f"], lambda: settings.update(rate=3.0), traces=4)
        follow(module["f"], lambda: settings.update(other=3), lambda: settings.update(new=3), traces=2)

    def test_an_item_by_a_computed_key(self):
        settings = {"a": 2.0, "b": 1}
        module = Namespace("key = 'a'\ndef f(x): return x * C[key]", C=settings)
        follow(
            module["f"], lambda: settings.update(a=3.0), module.set(key="b"), lambda: settings.update(b=9.0)
        )

    def test_get_with_a_default(self):
        settings = {}
        module = Namespace("def f(x): return x * C.get('rate', 1.0)", C=settings)
        follow(module["f"], lambda: settings.update(rate=3.0), settings.clear)

    def test_a_key_that_is_missing(self):
        settings = {}
        module = Namespace(
            "def f(x):\n    try:\n        return x * C['k']\n    except KeyError:\n        return x",
            C=settings,
        )
        follow(module["f"], lambda: settings.update(k=3.0), settings.clear)

    def test_membership(self):
        names = set()
        module = Namespace("def f(x): return x * 2 if 'double' in names else x", names=names)
        follow(module["f"], lambda: names.add("double"), names.clear)

    def test_a_list_of_arrays(self):
        weights = [np.ones(3), np.full(3, 2.0)]
        module = Namespace("def f(x):\n    for w in ws:\n        x = x * w\n    return x", ws=weights)
        follow(
            module["f"],
            lambda: weights[0].fill(5.0),
            lambda: weights.__setitem__(1, np.full(3, 7.0)),
            traces=2,
        )
        follow(module["f"], lambda: weights.append(np.full(3, 4.0)), weights.pop, weights.reverse)

    def test_a_dict_of_arrays(self):
        weights = {"w": np.ones(3), "b": dlarray(np.zeros(3))}
        source = "def f(x):\n    for name, w in ws.items():\n        x = x * w + len(name)\n    return x"
        module = Namespace(source, ws=weights)
        follow(module["f"], lambda: weights.update(w=np.full(3, 3.0)), traces=2)
        follow(module["f"], lambda: weights.update(long=np.ones(3)), lambda: weights.pop("b"))

    def test_the_order_of_keys(self):
        weights = {"a": 1.0, "b": 2.0}
        module = Namespace(
            "def f(x):\n    for v in ws.values():\n        x = x / 2 + v\n    return x", ws=weights
        )
        follow(module["f"], lambda: weights.update(a=weights.pop("a")))

    def test_named_tuples_and_deques(self):
        pair = collections.namedtuple("pair", "w b")
        queue = collections.deque([1.0, 2.0])
        module = Namespace("def f(x): return x * p.w + p[1] + sum(q)", p=pair(np.ones(3), 2.0), q=queue)
        follow(module["f"], module.set(p=pair(np.ones(3), 3.0)), lambda: queue.append(5.0))

    def test_nested(self):
        tree = {"layers": [{"w": np.ones(3), "k": 1}, {"w": np.ones(3), "k": 2}]}
        source = (
            "def f(x):\n    for layer in t['layers']:\n        x = x * layer['w'] * layer['k']\n    return x"
        )
        module = Namespace(source, t=tree)
        follow(
            module["f"],
            lambda: tree["layers"][1].update(k=5),
            lambda: tree["layers"][0]["w"].fill(3.0),
            lambda: tree.update(layers=tree["layers"][:1]),
        )

    def test_many_numbers(self):
        table = list(map(float, range(1000)))
        module = Namespace("def f(x): return x * sum(table)", table=table)
        follow(module["f"], lambda: table.__setitem__(999, 0.5), traces=4)

    def test_a_container_of_itself(self):
        loop = [1.0]
        loop.append(loop)
        module = Namespace("def f(x): return x * loop[1][1][0]", loop=loop)
        follow(module["f"], lambda: loop.__setitem__(0, 4.0))

    def test_what_is_only_appended_to(self):
        history, seen, log = [], set(), {}
        source = "def f(x):\n    history.append(1)\n    seen.add(len(text))\n    log[text] = 1\n    return x"
        module = Namespace(source, history=history, seen=seen, log=log, text="a")
        accelerated = dlaccelerate(module["f"])
        for _ in range(5):
            history.append(2)
            seen.add(3)
            log["other"] = 4
            accelerated(X)
        assert accelerated.stats.traces == 2


class Layer:
    rate = 1.0

    def __init__(self, seed=0):
        self.w = dlarray(np.arange(3.0) + seed)
        self.k = 2.0
        self.count = 0
        self.history = []
        self.parts = {"b": np.ones(3)}

    def __call__(self, x):
        return x * self.w + self.k * self.rate

    def double(self, x):
        return self(x) * self.factor + self.parts["b"]

    @property
    def factor(self):
        return self.k + 1


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

    def test_a_counter_that_nothing_reads(self, layer):
        def f(x):
            layer.count += 1
            layer.history.append(1)
            return x * layer.k

        def other():
            layer.count += 10

        follow(f, other, layer.history.clear, traces=2)

    def test_a_counter_that_counts(self, layer):
        def f(x):
            layer.count += 1
            return x * layer.count

        accelerated = dlaccelerate(f, audit=False)
        with pytest.warns(
            NotAcceleratedWarning, match=r"it changes closure layer\.count, which it also reads"
        ) as caught:
            for n in range(1, 8):
                assert accelerated(X).tolist() == (n * X).tolist()
        assert len(caught) == 1 and caught[0].filename == __file__
        assert "return its new value" in str(caught[0].message)

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
        with pytest.warns(
            NotAcceleratedWarning, match=r"it changes closure layer\.mean, which it also reads"
        ):
            assert [accelerated(X).tolist() for _ in range(7)] == expected

    def test_an_array_that_the_function_writes_to(self, layer):
        layer.mean = np.zeros(3)

        def f(x):
            y = x - layer.mean
            layer.mean += 1
            return y

        accelerated = dlaccelerate(f, audit=False)
        with pytest.warns(
            NotAcceleratedWarning, match=r"it changes closure layer\.mean, which it also reads"
        ):
            assert [accelerated(X).tolist() for _ in range(7)] == [(X - n).tolist() for n in range(7)]

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
        with pytest.warns(
            NotAcceleratedWarning, match=r"closure layer\.k, which it reads, changes from call to call"
        ) as caught:
            for n in range(30):
                layer.k = float(n)
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
        assert accelerated.stats.traces == 60 and accelerated.stats.uncompiled == 0

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


class TestClosuresAndDefaults:
    def test_a_number(self):
        rate = 2.0

        def f(x):
            return x * rate

        def change():
            nonlocal rate
            rate = 5.0

        follow(f, change, traces=4)

    def test_an_array(self):
        w = np.ones(3)

        def change():
            nonlocal w
            w = np.full(3, 6.0)

        follow(lambda x: x * w, lambda: w.fill(4.0), change, traces=2)

    def test_nested_closures(self):
        rate = 2.0

        def outer(x):
            def middle():
                def inner():
                    return x * rate

                return inner()

            return middle()

        def change():
            nonlocal rate
            rate = 5.0

        follow(outer, change)

    def test_a_function_of_a_closure(self):
        def make(rate):
            def scale(x):
                return x * rate

            return scale

        scale = make(2.0)

        def change():
            nonlocal scale
            scale = make(7.0)

        follow(lambda x: scale(x), change)

    def test_a_cell_that_is_empty(self):
        def f(x):
            try:
                return x * rate
            except NameError:
                return x

        def change():
            nonlocal rate
            rate = 3.0

        rate = 1.0
        del rate
        follow(f, change)

    def test_defaults(self):
        def f(x, rate=2.0, *, w=np.ones(3)):  # noqa: B008
            return x * rate + w

        follow(
            f,
            setting(f, "__defaults__", (3.0,)),
            lambda: f.__kwdefaults__["w"].fill(5.0),
            setting(f, "__kwdefaults__", {"w": np.zeros(3)}),
        )

    def test_defaults_of_a_helper(self):
        def helper(x, rate=2.0):
            return x * rate

        follow(lambda x: helper(x), setting(helper, "__defaults__", (3.0,)))

    def test_a_default_that_is_a_container(self):
        settings = {"rate": 2.0}

        def f(x, given=settings):
            return x * given["rate"]

        follow(f, lambda: settings.update(rate=4.0))

    def test_a_partial(self):
        w = np.ones(3)
        fun = functools.partial(lambda w, x, k: x * w + k, w, k=2.0)
        follow(fun, lambda: w.fill(4.0))
        scale = functools.partial(np.multiply, 2.0)

        def change():
            nonlocal scale
            scale = functools.partial(np.multiply, 5.0)

        follow(lambda x: scale(x), change)

    def test_a_bound_method_as_a_value(self, layer):
        call = layer.__call__

        def change():
            nonlocal call
            call = layer.double

        follow(lambda x: call(x), setting(layer, "k", 5.0), change)


class TestFunctions:
    def test_a_global_function(self):
        module = Namespace("def g(x): return x + 1\ndef f(x): return g(x) * 2")
        follow(module["f"], module.set(g=lambda x: x - 1))

    def test_code_that_is_edited(self):
        module = Namespace("def g(x): return x + 1\ndef f(x): return g(x) * 2")
        follow(
            module["f"],
            setting(module["g"], "__code__", (lambda x: x * 9).__code__),
            setting(module["f"], "__code__", (lambda x: x / 2).__code__),
        )

    def test_a_function_of_a_module_that_is_patched(self, monkeypatch):
        helper = types.ModuleType("a_helper")
        exec("k = 2.0\ndef g(x): return x * k", helper.__dict__)
        module = Namespace("def f(x): return helper.g(x) + helper.k", helper=helper)
        follow(
            module["f"],
            lambda: monkeypatch.setattr(helper, "k", 5.0),
            lambda: monkeypatch.setattr(helper, "g", lambda x: x),
        )

    def test_a_module_that_is_edited_and_reloaded(self, tmp_path, monkeypatch):
        file = tmp_path / "helper_of_a_test.py"
        file.write_text("rate = 2.0\ndef scale(x):\n    return x * rate\n")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        helper = importlib.import_module("helper_of_a_test")
        imported = helper.scale

        def edit(text):
            def change():
                file.write_text(text)
                linecache.clearcache()
                importlib.reload(helper)

            return change

        try:
            follow(
                lambda x: helper.scale(x) + imported(x),
                edit("rate = 3.0\ndef scale(x):\n    return x * rate\n"),
                edit("rate = 3.0\ndef scale(x):\n    return x + rate  # edited\n"),
            )
        finally:
            sys.modules.pop("helper_of_a_test")

    def test_a_module_that_is_imported_inside(self, monkeypatch):
        helper = types.ModuleType("a_helper_of_a_test")
        helper.rate = 2.0
        monkeypatch.setitem(sys.modules, helper.__name__, helper)

        def f(x):
            import a_helper_of_a_test

            return x * a_helper_of_a_test.rate

        def g(x):
            from a_helper_of_a_test import rate

            return x * rate

        for fun in (f, g):
            helper.rate = 2.0
            follow(fun, lambda: monkeypatch.setattr(helper, "rate", 7.0))

    def test_functions_in_a_dict(self):
        table = {"act": lambda x: x + 1}
        follow(lambda x: table["act"](x), lambda: table.update(act=lambda x: x * 4))

    def test_a_function_that_is_passed(self):
        rate = 2.0

        def scale(x):
            return x * rate

        def change():
            nonlocal rate
            rate = 3.0

        follow(lambda x, act: act(x), change, args=(X, scale))

    def test_a_decorated_function(self):
        rate = 2.0

        def decorator(function):
            @functools.wraps(function)
            def wrapper(*args):
                return function(*args) * rate

            return wrapper

        k = 1.0

        @decorator
        def g(x):
            return x + k

        def change():
            nonlocal rate
            rate = 3.0

        def change_inner():
            nonlocal k
            k = 4.0

        follow(lambda x: g(x), change, change_inner)

    def test_recursion(self):
        depth = 3

        def power(x, n):
            return x if n == 0 else power(x, n - 1) * x

        def change():
            nonlocal depth
            depth = 5

        follow(lambda x: power(x, depth), change)

    def test_generators_and_comprehensions(self):
        k = 2.0

        def parts(x):
            for i in range(3):
                yield x * i * k

        def change():
            nonlocal k
            k = 3.0

        follow(lambda x: sum([part + k for part in parts(x)]), change)

    def test_an_accelerated_function_inside(self):
        k = 2.0

        @dlaccelerate(audit=False)
        def inner(x):
            return x * k

        def change():
            nonlocal k
            k = 5.0

        follow(lambda x: inner(x) + 1, change)
        follow(inner, change)

    def test_an_accelerated_method_inside(self):
        class Model:
            k = 2.0

            @dlaccelerate(audit=False)
            def step(self, x):
                return x * self.k

        model = Model()
        follow(
            lambda x: model.step(x),
            setting(model, "k", 3.0),
            setting(Model, "step", dlaccelerate(lambda s, x: x)),
        )

    def test_a_callable_object(self, layer):
        follow(dlaccelerate(layer, audit=False), setting(layer, "k", 5.0))

    def test_a_function_of_numpy_by_name(self):
        module = Namespace("def f(x): return act(x)", act=np.tanh)
        follow(module["f"], module.set(act=np.exp))

    def test_a_cached_function(self):
        @functools.lru_cache
        def grid(n):
            return np.linspace(0, 1, n)

        follow(lambda x: x + grid(3), lambda: grid(3).fill(7.0), traces=2)


class TestImports:
    """What an import runs is not what the function reads; what it reads of the module afterwards is."""

    def test_around_the_recording(self, tmp_path, monkeypatch):
        """A module that calls an accelerated function in its body: that function is watched."""
        monkeypatch.syspath_prepend(tmp_path)
        (tmp_path / "script_of_a_test.py").write_text(
            "import numpy as np, tracejit as tj\n"
            "rate = 2.0\n"
            "@tj.dlaccelerate(audit=False)\n"
            "def scaled(x):\n"
            "    import colorsys\n"
            "    return by_rate(x)\n"
            "def by_rate(x): return x * rate\n"
            "found = [scaled(np.ones(1)).item() for _ in range(4)]\n"
            "rate = 3.0\n"
            "found += [scaled(np.ones(1)).item() for _ in range(4)]\n"
        )
        monkeypatch.delitem(sys.modules, "colorsys", raising=False)
        script = importlib.import_module("script_of_a_test")
        monkeypatch.delitem(sys.modules, "script_of_a_test")
        assert script.found == [2.0] * 4 + [3.0] * 4
        assert script.scaled.stats.hits == 4


class TestRecording:
    def test_a_profile_function_stays(self):
        seen = []

        def profile(frame, event, arg):
            if event == "call" and frame.f_code.co_name == "f":
                seen.append(event)

        def f(x):
            return x * 2

        accelerated = dlaccelerate(f, audit=False)
        sys.setprofile(profile)
        try:
            accelerated(X)
            assert sys.getprofile() is profile
        finally:
            sys.setprofile(None)
        assert seen == ["call"]

    def test_beside_a_profiler(self):
        import cProfile

        accelerated = dlaccelerate(lambda x: x * 2)
        profiler = cProfile.Profile()
        profiler.enable()
        try:
            accelerated(X)
        finally:
            profiler.disable()
        assert profiler.getstats()
        assert sys.getprofile() is None

    def test_an_error_ends_the_watch(self):
        def fail(x):
            raise KeyError("no")

        for _ in range(2):
            with pytest.raises(KeyError):
                dlaccelerate(fail)(X)
        assert sys.getprofile() is None

    def test_the_watch_goes_on_after_an_error_that_is_caught(self):
        rate = 2.0

        def scaled(x):
            return x * rate

        def f(x):
            try:
                x = x + np.ones(7)
            except tj.DimsError:
                x = x + dlgradient((x * x).sum(), x)
            return scaled(x)

        def change():
            nonlocal rate
            rate = 3.0

        follow(f, change)

    def test_other_threads_are_not_watched(self):
        noise = 0.0
        running, stop = threading.Event(), threading.Event()

        def count():
            nonlocal noise
            while not stop.is_set():
                noise += 1
                read()
                running.set()

        def read():
            return noise

        thread = threading.Thread(target=count)
        thread.start()
        running.wait()
        try:
            accelerated = follow(lambda x: x * 2, traces=2)
        finally:
            stop.set()
            thread.join()
        assert accelerated.stats.traces == 2

    def test_threads_record_apart(self):
        class Model:
            def __init__(self, k):
                self.k = k

            def __call__(self, x):
                return x * self.k

        models = [Model(float(n)) for n in range(4)]
        accelerated = [dlaccelerate(model) for model in models]
        results = [[] for _ in models]

        def work(i):
            for n in range(20):
                models[i].k = float(i + n // 5)
                results[i].append(accelerated[i](X)[0].item())

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == [[float(i + n // 5) for n in range(20)] for i in range(4)]

    def test_functions_of_the_collector_are_not_of_the_call(self):
        times = []

        def callback(phase, info):
            times.append(len(times))

        def f(x):
            gc.collect()
            return x * 2

        gc.callbacks.append(callback)
        try:
            follow(f, traces=2)
        finally:
            gc.callbacks.remove(callback)

    def test_constants_that_are_made_inside_are_constants(self):
        accelerated = follow(lambda x: x + np.linspace(0, 1, 3), traces=2)
        assert not accelerated._cache.last_trace.state.names

    def test_a_buffer_that_is_filled_inside(self):
        def f(x):
            buffer = np.zeros(3)
            buffer[0] = 1
            y = x * buffer
            buffer[1] = 2
            return y + x * buffer

        follow(f, traces=2)

    def test_too_many_objects(self, monkeypatch):
        monkeypatch.setattr(snapshot, "_MOST_THINGS", 100)
        many = [[i] for i in range(200)]
        accelerated = dlaccelerate(lambda x: x * sum(part[0] for part in many))
        with pytest.warns(NotAcceleratedWarning, match="more objects than can be compared"):
            assert accelerated(X).tolist() == (X * 19900).tolist()


def mul(h, x):
    return h * x


MAKERS = {
    "np.zeros": lambda x: np.zeros(3),
    "np.linspace": lambda x: np.linspace(0, 1, 3),
    "np.tril": lambda x: np.tril(np.ones((3, 3))),
    "a view": lambda x: np.arange(6.0).reshape(2, 3)[1],
    "a view of a view": lambda x: np.arange(12.0).reshape(2, 6)[1:, ::2].T[:, 0],
    "np.array": lambda x: np.array([1.0, 2.0, 3.0]),
    "0-d": lambda x: np.array(2.0),
    "tj.zeros": lambda x: tj.zeros(3),
    "tj.zeros_like": lambda x: tj.zeros_like(x),
    "tj.arange": lambda x: tj.arange(3),
    "tj.dlarray": lambda x: dlarray(np.full(3, 2.0)),
    "a view in a dlarray": lambda x: dlarray(np.arange(6.0).reshape(2, 3)[0]),
}


class Cell:
    def __init__(self, h):
        self.h = h
        self.parts = [h, {"h": h}]

    def __call__(self, x):
        return self.h * x + self.parts[1]["h"]

    def step(self, h, x):
        self.h = h
        return self(x)


def through_generator(h, x):
    for _ in range(2):
        yield h * x


def in_place(h, x):
    y = h * x
    h[...] = 5.0
    return y + h * x


def deep(h, x, n=3):
    return deep(h, x, n - 1) if n else h * x


def nested(h, x):
    def inner(k):
        return h * x + k * x

    return inner(h)


def called(function, *args, **kwargs):
    return function(*args, **kwargs)


WAYS = {
    "a function": mul,
    "by keyword": lambda h, x: mul(x=x, h=h),
    "a lambda": lambda h, x: called(lambda k: k * x, h),
    "stars": lambda h, x: called(lambda *a, **k: mul(*a, **k), h, x=x),
    "a nested function": nested,
    "a recursive function": deep,
    "a new object": lambda h, x: Cell(h)(x),
    "a method": lambda h, x: Cell(np.ones(3)).step(h, x),
    "a generator": lambda h, x: sum(through_generator(h, x)),
    "a generator that stays open": lambda h, x: next(through_generator(h, x)),
    "a list": lambda h, x: called(lambda parts: sum(part * x for part in parts), [h, h]),
    "a dict": lambda h, x: called(lambda d: mul(d["h"], x), {"h": h}),
    "a partial": lambda h, x: functools.partial(mul, h)(x),
    "twice": lambda h, x: mul(h, x) + mul(h, x) + h,
    "mutated afterwards": lambda h, x: in_place(h, x) + h,
    "given back": lambda h, x: called(lambda k: k, h),
}


def queued(store, items):
    for item in items:
        store.put(item)
    return store


TAKEN = {
    "queue": (lambda arrays: queued(queue.Queue(), arrays), lambda store: store.get()),
    "simple queue": (lambda arrays: queued(queue.SimpleQueue(), arrays), lambda store: store.get()),
    "queue of tuples": (
        lambda arrays: queued(queue.PriorityQueue(), enumerate(arrays)), lambda store: store.get()[1]
    ),
    "queue of dicts": (
        lambda arrays: queued(queue.Queue(), [{"a": a} for a in arrays]), lambda store: store.get()["a"]
    ),
    "iterator": (lambda arrays: iter([*arrays]), next),
    "generator": (lambda arrays: (a for a in [*arrays]), next),
    "list": (lambda arrays: [*arrays], lambda store: store.pop(0)),
    "deque": (collections.deque, lambda store: store.popleft()),
    "dict": (lambda arrays: dict(enumerate(arrays)), lambda store: store.pop(next(iter(store)))),
}  # fmt: skip


class TestFreshArrays:
    """An array that is made while the function runs is a constant, whoever it is passed to."""

    @pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
    @pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
    def test_is_a_constant(self, make, way):
        accelerated = follow(lambda x: way(make(x), x), traces=2)
        assert not accelerated._cache.last_trace.state.names

    def test_of_random_numbers_is_refused(self):
        rng = np.random.default_rng(0)
        accelerated = dlaccelerate(lambda x: mul(rng.normal(size=3), x))
        accelerated(X)
        with pytest.warns(
            NotAcceleratedWarning,
            match=r"a constant of mul was .* \(3 of 3 elements differ\): an array that is made in each call has "
            r"different contents each time at .*test_state\.py:\d+\. Likely cause: random numbers",
        ):
            accelerated(X)
        assert len({tuple(accelerated(X).tolist()) for _ in range(5)}) == 5

    def test_that_changes_later_is_found_by_the_audit(self):
        times = iter(range(100))
        accelerated = dlaccelerate(lambda x: mul(np.full(3, float(next(times) > 3)), x))
        with pytest.warns(
            tj.ChangedTraceWarning, match="an array that is made in each call has different contents"
        ):
            for _ in range(16):
                next(times)
                accelerated(X)

    def test_kept_in_a_cache_by_the_first_call(self):
        cache = {}

        def grid(n):
            if n not in cache:
                cache[n] = np.linspace(0, 1, n)
            return cache[n]

        follow(lambda x: mul(grid(3), x), lambda: cache[3].fill(7.0), lambda: cache.update({3: np.ones(3)}))

    def test_kept_by_lru_cache(self):
        @functools.lru_cache
        def grid(n):
            return np.linspace(0, 1, n)

        follow(lambda x: mul(grid(3), x), lambda: grid(3).fill(7.0), traces=2)

    @pytest.mark.parametrize("view", [lambda a: a[0], lambda a: a.T[:, 0], lambda a: a.reshape(6)[:3]])
    def test_a_view_of_what_stays_is_no_constant(self, view):
        table = itertools.repeat(np.ones((2, 3)))
        accelerated = dlaccelerate(lambda x: mul(view(next(table)), x))
        accelerated(X)
        with pytest.warns(
            NotAcceleratedWarning,
            match="mul received an array that is a different one in each call at .*Likely cause: "
            "it is kept where no name leads to it, or is a view of an array that is",
        ):
            accelerated(X)
        next(table).fill(5.0)
        assert accelerated(X).tolist() == (5 * X).tolist()

    @pytest.mark.parametrize("view", [lambda a: a[0], lambda a: a.T[:, 0], lambda a: a.reshape(6)[:3]])
    def test_a_view_of_what_lru_cache_remembers(self, view):
        table = functools.lru_cache(lambda: np.ones((2, 3)))
        follow(lambda x: mul(view(table()), x), lambda: table().fill(5.0), traces=2)

    @pytest.mark.parametrize("read", [np.frombuffer, lambda b: np.array(np.frombuffer(b))])
    def test_the_memory_of_something_else_is_no_constant(self, read):
        buffer = bytearray(np.ones(3).tobytes())
        fives = np.full(3, 5.0).tobytes()
        follow(lambda x: mul(read(buffer), x), lambda: buffer.__setitem__(slice(None), fives))

    @pytest.mark.parametrize(("fill", "take"), TAKEN.values(), ids=TAKEN)
    def test_what_was_there_before_and_is_taken_away(self, fill, take):
        """The first arrays hold the same, as constants would; those that follow do not."""
        store = fill(np.full(3, float(max(0, n - 4))) for n in range(20))
        gc.collect()  # after which Python no longer tracks tuples and dicts of arrays
        accelerated = dlaccelerate(lambda x: mul(take(store), x), audit=False)
        with pytest.warns(NotAcceleratedWarning):
            got = [accelerated(np.ones(3)).tolist()[0] for _ in range(20)]
        assert got == [max(0.0, n - 4.0) for n in range(20)]

    def test_left_in_a_global_and_read_by_the_next_call(self):
        module = Namespace("""
last = np.zeros(3)
def helper(h, x): return h * x
def f(x):
    global last
    before = last
    last = np.full(3, before[0] + 1)
    return helper(last, x) + before
""")
        accelerated = dlaccelerate(module["f"])
        with pytest.warns(NotAcceleratedWarning, match="it changes global last, which it also reads"):
            assert [accelerated(np.ones(1)).tolist()[0] for _ in range(12)] == [
                2.0 * n + 1 for n in range(12)
            ]

    def test_left_in_a_global_that_another_function_reads(self):
        module = Namespace("""
last = None
def helper(h, x): return h * x
def f(x):
    global last
    last = np.full(3, 2.0)
    return helper(last, x)
def g(x): return last * x
""")
        f, g = dlaccelerate(module["f"]), dlaccelerate(module["g"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotAcceleratedWarning)
            for n in range(12):
                assert f(X).tolist() == (2 * X).tolist()
                module["last"][:] = n
                assert g(X).tolist() == (n * X).tolist()

    @pytest.mark.parametrize("fill", [
        "h[:] = w", "h[:2] = w[:2]", "h[...] = w.T", "h += w", "np.copyto(h, w)", "put(h, w)", "h = np.array([*w])",
        "h = np.array([a for a in w])", "a, b, c = w; h = np.array([a, b, c])", "h = box(w).w.copy()",
        "h[:] = (w, 1)[0]", "h = np.array(list(map(float, w)))", "h = (lambda: w)() * 1.0", "h[:] = kept[0]",
        "for k in kept: h += k", "h = w[:] * 1.0", "h = tj.dlarray(w) if False else np.add(w[:], 0)",
        "h = tj.dlarray(np.array(w[:]))", "h = tj.dlarray(w) * 1", "h = w.T * 1.0", "h = same(w) * 1.0",
        "rebind(put, h, w)", "h = partial(np.add, w)(0)", "h = Box.make(w)", "h = stars(*[w])", "h = default()",
        "h = np.stack([w])[0]",
        "h[1:] = same(w)[1:]", "h = tj.dlarray(w); h = h + 0", "h = w if False else w.reshape(3) + 0",
        "h = np.array([*zip(w, w)])[:, 0]", "h.flat = w", "h.put([0, 1, 2], w)", "h = np.where(h == 0, w, h)",
    ])  # fmt: skip
    def test_filled_from_state_that_the_trace_reads_too(self, fill):
        """What NumPy writes into a new array is compared, however it gets there."""
        module = Namespace(f"""
from functools import partial
w = np.ones(3)
kept = [w]
class box:
    def __init__(self, w): self.w = w
def put(h, w): h[:] = w
def same(w): return w
def rebind(f, h, w):
    if h.size: f = np.copyto
    f(h, w)
def stars(*args): return np.array(args[0])
def default(w=w): return w * 1.0
class Box:
    @staticmethod
    def make(w): return w.copy()
def helper(h, x, w): return h * x + w
def f(x):
    h = np.zeros(3)
    {fill}
    return helper(h, x, w)
""")
        follow(module["f"], lambda: module["w"].fill(5.0), lambda: module["w"].fill(2.0))

    def test_beside_weights_that_change(self):
        """What is only an operand of the trace, or of helpers that are watched, stays an input."""
        module = Namespace("""
w = np.ones((3, 3))
class Model:
    def __init__(self): self.w = np.ones((3, 3))
    def cell(self, h, x, w): return tj.tanh(h @ self.w + x @ w)
model = Model()
def cell(h, x, w): return h @ w + x
def f(x):
    h = tj.zeros(3)
    return cell(cell(h, x, w), x, model.w) + model.cell(h, x, w)
""")
        changes = [lambda n=n: module["w"].fill(n) for n in range(2, 6)]
        follow(module["f"], *changes, lambda: setattr(module["model"], "w", np.eye(3)), traces=2)

    def test_beside_a_large_array_that_is_sliced(self):
        w = np.ones(10_000)

        def f(x):
            h = np.zeros(3)
            h[:] = w[:3]
            return mul(h, x) + w.sum() * 0 + (x * w[:3])

        accelerated = dlaccelerate(f)
        with pytest.warns(NotAcceleratedWarning, match="cannot be checked at each call"):
            accelerated(X)
        w[:] = 2.0
        assert accelerated(X).tolist() == (4 * X).tolist()

    def test_many_programs(self):
        """Functions put together at random give what the plain function gives, whatever changes between calls."""
        rng = np.random.default_rng(0)
        makers, ways = [*MAKERS.values()], [*WAYS.values()]
        for _ in range(sweep(8, 60)):
            state = {"w": np.ones(3), "kept": [np.ones(3)]}
            chosen = [(makers[rng.integers(len(makers))], ways[rng.integers(len(ways))]) for _ in range(3)]
            hows = rng.integers(0, 4, 3)

            def f(x, state=state, chosen=chosen, hows=hows):
                for (make, way), how in zip(chosen, hows, strict=True):
                    h = make(x)
                    if how == 1 and type(h) is np.ndarray:
                        h[...] = state["w"][0] * 1.5
                    if how == 2 and type(h) is np.ndarray and h.shape == (3,):
                        h[:] = state["kept"][0]
                    x = way(h, x) + (mul(state["w"], x) if how == 3 else state["kept"][0])
                return x

            accelerated = dlaccelerate(f, audit=False)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NotAcceleratedWarning)
                for _ in range(14):
                    change = rng.integers(0, 8)
                    if change == 0:
                        state["w"][rng.integers(3)] = rng.normal()
                    elif change == 1:
                        state["kept"][0] = rng.normal(size=3)
                    elif change == 2:
                        state["kept"][0][1] += 1
                    got, wanted = np.asarray(accelerated(X)), np.asarray(dlfeval(f, X))
                    np.testing.assert_allclose(got, wanted, rtol=1e-12)


class TestGradients:
    def test_by_an_argument(self):
        w = np.array([1.0, 2.0, 3.0])

        def f(x):
            y = ((x * w) ** 2).sum()
            return y, dlgradient(y, x)

        follow(f, lambda: w.fill(3.0), traces=2)

    def test_inside_an_evaluation(self):
        w = dlarray(np.array([1.0, 2.0, 3.0]))
        accelerated = dlaccelerate(lambda x: (x * w) ** 2)

        def f(x):
            return dlgradient(accelerated(x).sum(), x)

        for factor in (1.0, 1.0, 1.0, 5.0, 5.0):
            w._data[...] = factor
            assert dlfeval(f, X).tolist() == (2 * X * factor**2).tolist()
        assert accelerated.stats.traces == 2

    def test_by_an_array_that_an_accelerated_function_captured(self):
        params = {}
        accelerated = dlaccelerate(lambda x: (x * params["w"]) ** 2)

        def f(w, x):
            params["w"] = w
            return dlgradient(accelerated(x).sum(), w, x)

        for n in range(5):
            w = np.arange(3.0) + n
            by_w, by_x = dlfeval(f, w, X)
            assert by_w.tolist() == (2 * w * X**2).tolist()
            assert by_x.tolist() == (2 * X * w**2).tolist()
        assert accelerated.stats.traces == 2

    def test_inside_by_an_array_that_it_captured(self):
        params = {}
        accelerated = dlaccelerate(lambda x: dlgradient(((x * params["w"]) ** 2).sum(), params["w"]))

        def f(w, x):
            params["w"] = w
            return dlgradient(accelerated(x).sum(), w)

        for n in range(4):
            w = np.arange(3.0) + n
            assert dlfeval(f, w, X).tolist() == (2 * X**2).tolist()

    def test_an_array_that_no_name_leads_to(self):
        accelerated = dlaccelerate(lambda x, take: x * take())

        def f(w, x):
            return dlgradient(accelerated(x, Taker(w)).sum(), w)

        class Taker:
            def __init__(self, w):
                self.w = w

            def __call__(self):
                return self.w

            def __hash__(self):
                return 0

            def __eq__(self, other):
                return True

        with pytest.warns(
            NotAcceleratedWarning, match="an array of the evaluation around it that no name leads to"
        ):
            assert dlfeval(f, np.ones(3), X).tolist() == X.tolist()


class TestExplain:
    def test_what_changed(self, layer):
        accelerated = follow(lambda x: x * layer.k)
        layer.k = 9.0
        accelerated(X)
        assert "because closure layer.k is no longer 2.0" in accelerated.explain()

    def test_guards_are_listed(self, layer):
        accelerated = follow(layer.__call__)
        (known,) = next(iter(accelerated._cache.variants.values())).traces
        assert known.state.names == ("self.w",)
        shown = [str(guard) for guard in known.state.guards()]
        assert "self.k is 2.0" in shown
        assert "self.w is 3 float64" in shown
        assert "self.rate is 1.0" in shown
        guard = next(guard for guard in known.state.guards() if guard.name == "self.k")
        assert guard.where == (__file__, Layer.__call__.__code__.co_firstlineno + 1)


def test_a_guard_compares_in_place():
    """The function that compares is what note [guards] shows."""
    module = Namespace("rate = 2.0\ndef f(x): return x * rate * w", w=dlarray(np.ones(3)))
    accelerated = follow(module["f"])
    (known,) = next(iter(accelerated._cache.variants.values())).traces
    source = known.state.source()
    assert source.startswith(
        "def fetch():\n    try:\n        v0 = g0.__code__\n        if v0 is not g2: return None\n"
    )
    assert "\n        v1 = g1['rate']\n        if v1 is not g3 and differs(v1, g3): return None\n" in source
    assert source.endswith("        return None\n    return (v2d, )\n")
    assert "def fetch():" in guards.__doc__


def test_no_warning_is_given_twice(layer):
    accelerated = dlaccelerate(lambda x: x * layer.k, audit=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in range(200):
            layer.k = float(n)
            accelerated(X)
    assert len(caught) == 1


TABLED = np.array([1.0, 2.0])


def test_explain_says_that_what_is_in_an_array_changed():
    @dlaccelerate
    def scaled(x):
        return x * float(TABLED.sum())

    for _ in range(3):
        scaled(dlarray(np.ones(2)))
    told = scaled.explain()
    assert "what is in global TABLED is as it was" in told
    TABLED[0] = 5.0
    assert scaled(dlarray(np.ones(2))).tolist() == [7.0, 7.0]
    assert "because what is in global TABLED is no longer as it was" in scaled.explain()
