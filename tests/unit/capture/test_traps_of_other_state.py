# SPDX-License-Identifier: BSD-3-Clause
"""Traps: state that is neither a plain name nor an attribute."""

import collections
import contextlib
import contextvars
import ctypes
import enum
import functools
import operator
import os
import types
import warnings
import weakref

import numpy as np
import pytest
from worlds import assert_warned, follow, pick

import tracejit as tj
from tracejit import dlaccelerate

X = np.array([1.0, -2.0, 3.0])


@pytest.fixture(autouse=True)
def _seeded():
    with tj.rng(0):
        yield


class Mode(enum.Enum):
    A = "a"
    B = "b"

    def __init__(self, text):
        self.scales = [1.0]


class Point:
    __match_args__ = ("a", "b")

    def __init__(self, a, b):
        self.a, self.b = a, b


class Stored:
    """A descriptor that keeps values by instance."""

    def __init__(self):
        self.values = weakref.WeakKeyDictionary()

    def __get__(self, owner, kind):
        return self.values[owner]

    def __set__(self, owner, value):
        self.values[owner] = value


def rates(n):
    return pick(n, 1.0, 2.0, 5.0)


def rows(n):
    return pick(n, [1, 2, 3.5], [2, 4, 3.5], [5, 10, 8])


class TestStateOfOtherKinds:
    """Values that Python code reads through objects whose own code is not watched, or not written in Python."""

    def follow(self, make, **options):
        """Follow a function of x, and a change before each call, that `make` gives."""

        def world(accelerate):
            plain, change = make()
            fun = accelerate(plain)

            def call(n):
                change(n)
                return fun(X)

            return call

        return follow(world, audit=False, **options)

    def test_context_variables(self):
        def make():
            rate = contextvars.ContextVar("rate", default=1.0)
            weights = contextvars.ContextVar("weights")

            def change(n):
                rate.set(rates(n))
                weights.set({"w": np.array(rows(n))})

            return lambda x: x * rate.get() + weights.get()["w"], change

        self.follow(make)

    def test_a_context_variable_that_is_not_set(self):
        def make():
            rate = contextvars.ContextVar("rate")
            tokens = []

            def fun(x):
                try:
                    return x * rate.get()
                except LookupError:
                    return -x

            def change(n):
                if n % 6 == 0:
                    tokens.append(rate.set(3.0))
                elif n % 6 == 3:
                    rate.reset(tokens.pop())

            return fun, change

        self.follow(make)

    def test_weak_references(self):
        def make():
            point, other = Point(1.0, 2.0), Point(1.0, 2.0)
            ref, table = weakref.ref(point), weakref.WeakValueDictionary(other=other)

            def change(n):
                point.a, other.b = rates(n), rates(n // 2)

            return lambda x: x * ref().a + table["other"].b, change

        self.follow(make, calls=40)

    @pytest.mark.parametrize(
        ("base", "given", "read"),
        [
            (float, rates, lambda own, x: x * own),
            (str, lambda n: pick(n, "a", "b"), lambda own, x: x * {"a": 1.0, "b": 2.0}[own]),
            (tuple, lambda n: (1.0, rates(n)), lambda own, x: x * own[1] + sum(own)),
            (list, lambda n: [1.0, rates(n)], lambda own, x: x * own[1] + sum(own)),
            (set, lambda n: [rates(n)], lambda own, x: x * max(own)),
            (dict, lambda n: {"rate": rates(n)}, lambda own, x: x * own["rate"]),
            (collections.deque, lambda n: [rates(n), 2.0], lambda own, x: x * own[0] + sum(own)),
            (collections.deque, lambda n: [1.0] * (2 + n // 4 % 3), lambda own, x: x * len(own)),
            (list, lambda n: [1.0] * (2 + n // 4 % 3), lambda own, x: x * (1.0 if len(own) < 3 else 2.0)),
            (dict, lambda n: {"w": np.array(rows(n))}, lambda own, x: x * own["w"] + own["w"].max()),
        ],
    )
    def test_classes_derived_from_those_of_python(self, base, given, read):
        def make():
            kind = type(f"Own{base.__name__}", (base,), {})
            state = types.SimpleNamespace()
            return lambda x: read(state.own, x), lambda n: setattr(state, "own", kind(given(n)))

        self.follow(make)

    def test_a_dict_whose_keys_are_attributes(self):
        class Settings(dict):
            def __getattr__(self, name):
                return self[name]  # raises KeyError, which hasattr() does not expect

        def make():
            settings = Settings(rate=1.0, w=np.ones(3))

            def change(n):
                settings["rate"] = rates(n)
                settings["w"][:] = rows(n // 2)

            return lambda x: x * settings.rate + settings.w * settings["w"].max(), change

        self.follow(make, calls=40)

    @pytest.mark.parametrize(
        "kind",
        [collections.UserDict, dict, types.MappingProxyType, lambda d: collections.ChainMap({}, d)],
        ids=["UserDict", "dict", "MappingProxyType", "ChainMap"],
    )
    def test_mappings(self, kind):
        def make():
            own = {"rate": 1.0}
            table = kind(own)

            def change(n):
                (table.data if kind is collections.UserDict else own)["rate"] = rates(n)

            return lambda x: x * table["rate"], change

        self.follow(make)

    def test_a_view_of_a_dict(self):
        def make():
            table = {"a": 1.0, "b": 2.0}
            values = table.values()
            return lambda x: x * sum(values), lambda n: table.update(a=rates(n))

        self.follow(make)

    def test_environment_variables(self, monkeypatch):
        def make():
            def fun(x):
                return x * float(os.environ["RATE_OF_A_TEST"]) + float(os.getenv("RATE_OF_A_TEST", "0"))

            return fun, lambda n: monkeypatch.setenv("RATE_OF_A_TEST", str(rates(n)))

        self.follow(make)

    def test_a_descriptor_that_keeps_values(self):
        def make():
            kind = type("Kind", (), {"rate": Stored()})
            model = kind()
            return lambda x: x * model.rate, lambda n: setattr(model, "rate", rates(n))

        self.follow(make)

    def test_getters(self):
        def make():
            model = types.SimpleNamespace(inner=Point(1.0, 2.0))
            get = operator.attrgetter("inner.a")
            return lambda x: x * get(model), lambda n: setattr(model.inner, "a", rates(n))

        self.follow(make)

    def test_attributes_of_an_enumeration(self):
        def make():
            state = types.SimpleNamespace(mode=Mode.A)

            def change(n):
                state.mode = pick(n, Mode.A, Mode.B)
                Mode.A.scales[0] = rates(n // 2)

            return lambda x: x * state.mode.scales[0] + Mode.A.scales[0], change

        self.follow(make, calls=40)

    def test_match_by_position(self):
        def make():
            point = Point(1.0, 2.0)

            def fun(x):
                match point:
                    case Point(1.0, b):
                        return x * b
                    case Point(a, _):
                        return x + a

            def change(n):
                point.a, point.b = rates(n), rates(n // 2)

            return fun, change

        self.follow(make, calls=40)

    def test_single_dispatch(self):
        def make():
            scales = [1.0]

            @functools.singledispatch
            def scale(kind):
                return 1.0

            @scale.register
            def _(kind: int):
                return scales[0]

            def change(n):
                scales[0] = rates(n)
                if n == 12:
                    scale.register(bool, lambda kind: 7.0)

            return lambda x: x * scale(3) + scale(True), change

        self.follow(make)

    def test_single_dispatch_of_methods(self):
        def make():
            scales = [1.0]

            class Model:
                @functools.singledispatchmethod
                def scale(self, kind):
                    return 1.0

                @scale.register
                def _(self, kind: int):
                    return scales[0]

            model = Model()
            return lambda x: x * model.scale(3), lambda n: scales.__setitem__(0, rates(n))

        self.follow(make)

    def test_a_context_manager(self):
        def make():
            scales = [1.0]

            @contextlib.contextmanager
            def scaling():
                yield scales[0]

            def fun(x):
                with scaling() as scale:
                    return x * scale

            return fun, lambda n: scales.__setitem__(0, rates(n))

        self.follow(make)

    @pytest.mark.parametrize("source", ["globals()['K']", "eval('K')", "eval('K + 0')"])
    def test_globals_by_text(self, source):
        def make():
            names = {"K": 1.0}
            exec(f"def fun(x): return x * {source}", names)
            return names["fun"], lambda n: names.update(K=rates(n))

        self.follow(make)

    def test_elements_of_object_arrays(self):
        def make():
            parts = np.empty((2,), object)
            parts[0], parts[1] = np.ones(3), {"rate": 1.0}

            def fun(x):
                for part in parts[:1]:
                    x = x * part + part.sum()
                return x * parts[1]["rate"] + parts[0].max()

            def change(n):
                parts[0][:] = rows(n)
                parts[1]["rate"] = rates(n // 2)
                if n % 7 == 0:
                    parts[0] = np.array(rows(n))

            return fun, change

        self.follow(make, calls=40)

    @pytest.mark.parametrize(
        "read",
        [
            lambda b, x: x * np.frombuffer(b),
            lambda b, x: x * np.frombuffer(b).sum(),
            lambda b, x: x * np.frombuffer(b)[1:2] + np.frombuffer(b).max(),
            lambda b, x: x * b[7],
            lambda b, x: x * memoryview(b).cast("d")[1],
        ],
        ids=["array", "sum", "view", "byte", "memoryview"],
    )
    def test_bytes(self, read):
        def make():
            memory = bytearray(np.ones(3).tobytes())

            def change(n):
                memory[:] = np.array(rows(n), float).tobytes()

            return lambda x: read(memory, x), change

        self.follow(make)

    def test_bytes_can_grow(self):
        """No view of them is kept, which would forbid it."""
        memory = bytearray(np.ones(3).tobytes())
        fun = dlaccelerate(lambda x: x * np.frombuffer(memory, count=3))
        for _ in range(4):
            fun(X)
        memory.extend(bytes(8))
        assert fun(X).tolist() == X.tolist()

    def test_memory_of_c(self):
        def make():
            class Rates(ctypes.Structure):
                _fields_ = (("rate", ctypes.c_double),)

            one, many = Rates(1.0), (ctypes.c_double * 3)(1, 2, 3)

            def change(n):
                one.rate = rates(n)
                many[:] = rows(n // 2)

            return lambda x: x * one.rate + many[1] + np.ctypeslib.as_array(many), change

        self.follow(make, calls=40)

    def test_memory_whose_size_alone_is_read(self, tmp_path):
        values = np.memmap(tmp_path / "values", np.uint8, "w+", shape=(1 << 25,))
        fun = dlaccelerate(lambda x: x * values.shape[0])
        for n in range(5):
            values[n] = n
            assert fun(X).tolist() == (X * 2.0**25).tolist()
        assert fun.stats.uncompiled == 0

    def test_memory_that_is_too_large_to_compare(self, tmp_path):
        values = np.memmap(tmp_path / "values", np.uint8, "w+", shape=(1 << 25,))
        fun = dlaccelerate(lambda x: x * values.max())  # here
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for n in range(5):
                values[n] = n
                assert fun(X).tolist() == (X * n).tolist()
        assert_warned(caught, "it reads closure values, which cannot be checked at each call")

    def test_a_file_in_memory(self, tmp_path):
        def make():
            values = np.memmap(tmp_path / "values", float, "w+", shape=(3,))
            return lambda x: x * values + values.max(), lambda n: values.__setitem__(slice(None), rows(n))

        self.follow(make)
