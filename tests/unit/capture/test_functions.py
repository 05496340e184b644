# SPDX-License-Identifier: BSD-3-Clause
"""Functions, closures and modules that a function uses: each change is seen; what stays costs no trace."""

import functools
import importlib
import linecache
import sys
import types

import numpy as np
import pytest
from layers import Layer
from namespaces import Namespace, follow, setting

from tracejit import dlaccelerate

X = np.array([1.0, 2.0, 3.0])


@pytest.fixture
def layer():
    return Layer()


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
