# SPDX-License-Identifier: BSD-3-Clause
"""dlaccelerate: replays equal the uncompiled function, whatever is passed, kept, changed or raised."""

# ruff: noqa: PLW0108 - a lambda has the line that messages name, and dlfeval(fun) evaluates fun by itself

import collections
import concurrent.futures
import copy
import dataclasses
import functools
import gc
import math
import pickle
import re
import threading
import types
import warnings
import weakref

import either_backend
import numpy as np
import pytest
from effort import sweep
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import tracejit as tj
from tracejit import (
    ArgumentError,
    CacheError,
    DimsError,
    GradientError,
    OutputsDifferWarning,
    TraceError,
    clear_cache,
    dlarray,
    dlfeval,
    dlgradient,
    tree,
)
from tracejit.record import recorder
from tracejit.runtime import python


def dlaccelerate(function=None, **options):
    """Accelerate as MATLAB does: traces are replayed at once, without audits (test_soundness.py has the rest)."""
    return tj.dlaccelerate(function, **{"confirm": 0, "audit": False, **options})


def hidden(value):
    """Return something with a value that no guard sees: of a future, whose code is not watched."""
    future = concurrent.futures.Future()
    future.set_result(value)
    return types.SimpleNamespace(get=future.result, set=lambda new: setattr(future, "_result", new))


def vector(*numbers):
    return dlarray(np.array(numbers, float))


class TestNumbersOfTheReference:
    def test_occupancy_and_clear_cache(self):
        accelerated = dlaccelerate(lambda x: x * 2)
        assert (accelerated.occupancy, accelerated.cache_size) == (0.0, 50)
        accelerated(vector(1))
        assert accelerated.occupancy == 2.0
        clear_cache(accelerated)
        assert (accelerated.occupancy, accelerated.hit_rate) == (0.0, 0.0)
        for n in range(1, 6):
            accelerated(vector(*range(n)))
        assert accelerated.occupancy == 10.0
        accelerated.cache_size = 10
        assert accelerated.occupancy == 50.0

    def test_hit_rate(self):
        accelerated = dlaccelerate(lambda x: x * 2)
        assert accelerated.hit_rate == 0.0
        for expected in (0.0, 50.0, 200 / 3, 75.0):
            accelerated(vector(1))
            assert accelerated.hit_rate == pytest.approx(expected)
        accelerated(vector(1, 2))
        assert accelerated.hit_rate == 60.0
        assert (accelerated.stats.calls, accelerated.stats.hits, accelerated.stats.traces) == (5, 3, 2)
        accelerated.clear_cache()
        accelerated(vector(1))
        assert accelerated.hit_rate == 0.0 and accelerated.stats.traces == 1

    def test_the_least_recently_used_trace_goes_first(self):
        accelerated = dlaccelerate(lambda x, k: x * len(k), cache_size=3)

        def hits(k):
            before = accelerated.stats.hits
            assert accelerated(vector(1), "a" * k).item() == k
            return accelerated.stats.hits > before

        assert [hits(k) for k in (1, 2, 3)] == [False] * 3
        assert hits(1) and not hits(4)  # 2 went
        assert hits(3) and hits(1) and hits(4)
        assert accelerated.occupancy == 100.0
        accelerated.cache_size = 1
        assert accelerated.occupancy == 100.0
        assert hits(4) and not hits(1) and not hits(3) and accelerated.stats.traces == 6

    def test_repr_lists_the_properties(self):
        accelerated = dlaccelerate(np.square)
        accelerated(vector(1))
        accelerated(vector(1))
        assert re.fullmatch(
            r"AcceleratedFunction with properties:\n\n"
            r" +function: .*square\n +enabled: True\n +cache_size: 50\n +hit_rate: 50\n +occupancy: 2\n"
            r" +check_mode: 'none'\n +check_tolerance: 0.0001",
            repr(accelerated),
        )
        assert f"function: {__name__}.Model.scaled\n" in repr(Model(1.0).scaled)

    def test_not_enabled(self):
        runs = []

        @dlaccelerate(enabled=False)
        def fun(x):
            runs.append(float(x[0]))  # allowed, as nothing is kept
            return dlgradient((x**2).sum(), x)

        for _ in range(3):
            assert fun(vector(2)).item() == 4.0
        assert runs == [2.0] * 3 and fun.occupancy == fun.hit_rate == 0.0
        assert dlfeval(lambda x: dlgradient(fun(x).sum(), x), vector(2)).item() == 2.0

    @pytest.mark.parametrize(
        ("name", "value", "text"),
        [
            ("cache_size", 0, "cache_size: expected a positive integer, not 0"),
            ("cache_size", True, "cache_size: expected a positive integer, not True"),
            ("cache_size", 2.0, "cache_size: expected a positive integer, not 2.0"),
            (
                "check_mode",
                "always",
                r"check_mode: expected one of \('none', 'tolerance', 'sample'\), not 'always'",
            ),
            ("check_every", 0, "check_every: expected a positive integer, not 0"),
            ("confirm", -1, "confirm: expected an integer of at least 0, not -1"),
            ("max_variants", 0.5, "max_variants: expected a positive integer, not 0.5"),
            ("audit", None, "audit: expected True or False, not None"),
            ("check_tolerance", 0, "check_tolerance: expected a positive number, not 0"),
            ("check_tolerance", float("nan"), "check_tolerance: expected a positive number, not nan"),
            ("check_tolerance", "1", "check_tolerance: expected a positive number, not '1'"),
            ("enabled", 1, "enabled: expected True or False, not 1"),
        ],
    )
    def test_values_that_are_not_valid(self, name, value, text):
        with pytest.raises(ArgumentError, match=text):
            dlaccelerate(np.square, **{name: value})
        with pytest.raises(ArgumentError, match=text):
            setattr(dlaccelerate(np.square), name, value)

    @pytest.mark.parametrize(
        ("name", "value"), [("hit_rate", 1), ("occupancy", 1), ("function", len), ("stats", 1)]
    )
    def test_read_only(self, name, value):
        with pytest.raises(AttributeError):
            setattr(dlaccelerate(np.square), name, value)

    def test_clear_cache_of_something_else(self):
        with pytest.raises(
            ArgumentError, match="clear_cache: expected an accelerated function, not function"
        ):
            clear_cache(lambda x: x)


class TestConstants:
    """Arrays that the function did not get as arguments: a trace holds what they were when it was recorded."""

    def test_a_buffer_written_between_uses(self):
        def fun(x):
            mask, y = np.zeros(3), x * 0.0
            for i in range(3):
                mask[i] = 1.0
                y = y + x * mask
            return y, dlgradient(y.sum(), x)

        accelerated = dlaccelerate(fun)
        for run in (lambda x: dlfeval(fun, x), accelerated, accelerated):
            y, grad = run(vector(1, 10, 100))
            assert y.tolist() == [3.0, 20.0, 100.0] and grad.tolist() == [3.0, 2.0, 1.0]

    def test_a_scalar_array_written_before_the_gradient(self):
        def fun(x, scale):
            factor = np.array(2.0)
            y = (x * factor).sum()
            factor[...] = 5.0
            return dlgradient(y, x)

        assert dlfeval(fun, vector(1), 0).tolist() == [2.0]
        accelerated = dlaccelerate(fun)
        assert [accelerated(vector(1), 0).tolist() for _ in range(2)] == [[2.0], [2.0]]

    def test_a_scalar_array_of_another_dtype_is_an_input(self):
        fun = lambda x, scale: dlgradient((x * scale).sum(), x, scale)
        accelerated = dlaccelerate(fun)
        for number in (2.0, 5.0):
            args = (vector(1, 2), dlarray(np.float32(number)))
            for run in (accelerated, lambda *args: dlfeval(fun, *args)):
                by_x, by_scale = run(*args)
                assert by_x.tolist() == [number, number] and by_scale.item() == 3.0
        assert accelerated.stats.hits == 1

    def test_a_scalar_array_written_between_calls(self):
        factor = np.array(2.0)
        accelerated = dlaccelerate(lambda x: x * factor)
        accelerated(vector(1))
        for number in (5.0, 6.0, 7.0):
            factor[...] = number
            assert accelerated(vector(1)).tolist() == [number]
        assert accelerated.stats.traces == 1


class TestTracedThrough:
    """An accelerated function called while another one is recorded becomes part of that trace."""

    def test_arguments_are_variables_of_their_own(self):
        inner = dlaccelerate(lambda a, b: dlgradient((a * b).sum(), a))
        outer = dlaccelerate(lambda x: inner(x, x))
        for fun in (outer, outer, lambda x: inner(x, x), lambda x: dlfeval(outer.function, x)):
            assert fun(vector(3)).tolist() == [3.0]
        assert inner.stats.calls == 2  # directly, and inside dlfeval; not while outer was recorded

    def test_ndarrays_are_dlarrays_inside(self):
        inner = dlaccelerate(lambda a: dlgradient((a**2).sum(), a))
        outer = dlaccelerate(lambda x: x * inner(np.array([3.0])))
        assert [outer(vector(2)).tolist() for _ in range(2)] == [[12.0], [12.0]]

    @pytest.mark.parametrize("numbers", [[3.0, 4.0], [3, 4]])
    def test_index_assignment_stays_inside(self, numbers):
        @dlaccelerate
        def inner(a):
            a[0] = 100
            return a

        def outer(x):
            y = x * 1
            inner(y)
            return y

        accelerated = dlaccelerate(outer)
        for fun in (lambda x: dlfeval(outer, x), accelerated, accelerated):
            assert fun(np.array(numbers)).tolist() == numbers


class TestOutputsAreFresh:
    def check(self, fun, *args):
        """Call twice, writing into what came out each time, and compare with a call of another instance."""
        expected = [out._data.copy() for out in dlaccelerate(fun)(*args)]
        given = [x._data.copy() for x in args]
        accelerated = dlaccelerate(fun)
        seen = [x._data for x in args]
        for _ in range(3):
            for out, want in zip(accelerated(*args), expected, strict=True):
                np.testing.assert_array_equal(out._data, want)
                assert out._data.flags.c_contiguous and out._data.flags.writeable
                assert not any(np.shares_memory(out._data, other) for other in seen)
                seen.append(out._data)
                out._data[...] = 7
        for x, want in zip(args, given, strict=True):
            np.testing.assert_array_equal(x._data, want)

    def test_inputs_returned(self):
        self.check(
            lambda x, y: (x, y, x, y.T, x[1:], x.reshape(3, 1)), vector(1, 2, 3), dlarray(np.eye(2, 3))
        )

    def test_one_array_twice(self):
        def fun(x):
            y = x * 2
            return y, y, y.T, y.copy()

        self.check(fun, dlarray(np.arange(6.0).reshape(2, 3)))

    def test_constants(self):
        kept, data = vector(1, 2), np.array([3, 4])
        self.check(lambda x: (kept, dlarray(data), kept, dlarray(2.0), kept[:1]), vector(1))
        assert kept.tolist() == [1, 2] and data.tolist() == [3, 4]

    def test_gradients_that_are_constant(self):
        self.check(lambda x, y: dlgradient(y.sum(), [x, y]), vector(1, 2), vector(3, 4))

    def test_contiguous_in_c_order(self):
        # Otherwise parameters that go round a training loop would need a trace for each order.
        self.check(lambda x: (x * 2, x.T + 1), dlarray(np.asfortranarray(np.arange(6.0).reshape(2, 3))))
        step = dlaccelerate(lambda x: x * 2)
        x = dlarray(np.asfortranarray(np.ones((2, 3))))
        for _ in range(4):
            x = step(x)
        assert step.occupancy == 4.0

    def test_ndarrays_made_inside(self):
        accelerated = dlaccelerate(lambda x: (x, np.array([1.0, 2.0])))
        for _ in range(3):
            out = accelerated(vector(1))[1]
            assert type(out) is np.ndarray and out.tolist() == [1.0, 2.0]
            out[...] = 7


class Model:
    factor = 3.0

    def __init__(self, factor):
        self.factor = factor

    @dlaccelerate
    def scaled(self, x):
        return x * self.factor

    @classmethod
    @dlaccelerate
    def of_class(cls, x):
        return x * cls.factor

    @staticmethod
    @dlaccelerate
    def static(x):
        return x * 2

    def __call__(self, x):
        return x + self.factor


@dlaccelerate
def doubled(x):
    return x * 2


class TestKindsOfFunctions:
    def test_decorator_with_arguments(self):
        @dlaccelerate(cache_size=7, check_mode="tolerance", check_tolerance=0.5, enabled=False)
        def fun(x):
            "Says what it does."
            return x

        assert (fun.cache_size, fun.check_mode, fun.check_tolerance, fun.enabled) == (
            7,
            "tolerance",
            0.5,
            False,
        )
        assert (
            fun.__name__ == "fun" and fun.__doc__ == "Says what it does." and fun.__wrapped__ is fun.function
        )

    @pytest.mark.parametrize(
        "fun",
        [
            lambda x: x * 2,
            functools.partial(lambda k, x: x * k, 2),
            Model(1.0),
            Model(2.0).__call__,
            np.square,
        ],
    )
    def test_callables(self, fun):
        accelerated = dlaccelerate(fun)
        expected = dlfeval(fun, vector(1, 2)).tolist()
        for run in (accelerated, accelerated, functools.partial(dlfeval, accelerated)):
            assert run(vector(1, 2)).tolist() == expected
        assert accelerated.hit_rate == pytest.approx(200 / 3) and accelerated.function is fun

    @pytest.mark.parametrize(
        ("function", "text"),
        [
            (doubled, "the function is accelerated already"),
            (3, "expected a function, not int"),
            (staticmethod(len), "not a staticmethod; put @staticmethod above @dlaccelerate"),
            (classmethod(len), "not a classmethod; put @classmethod above @dlaccelerate"),
        ],
    )
    def test_no_functions(self, function, text):
        with pytest.raises(ArgumentError, match=f"dlaccelerate: .*{text}"):
            dlaccelerate(function)

    def test_async_and_generators(self):
        async def coroutine(x):
            return x

        async def stream(x):
            yield x

        def generator(x):
            yield x

        class Caller:
            async def __call__(self, x):
                return x

        for function in (coroutine, stream, functools.partial(coroutine), Caller()):
            with pytest.raises(ArgumentError, match="is async; accelerate the functions it awaits"):
                dlaccelerate(function)
        for function in (generator, functools.partial(generator, 1)):
            with pytest.raises(
                ArgumentError, match="is a generator; accelerate the function that makes one element"
            ):
                dlaccelerate(function)

    def test_unknown_option(self):
        with pytest.raises(
            ArgumentError, match="dlaccelerate: unknown option 'size'; options are cache_size"
        ):
            dlaccelerate(size=3)


class TestMethods:
    def test_a_cache_for_each_instance(self):
        a, b = Model(2.0), Model(5.0)
        for _ in range(2):
            assert a.scaled(vector(1)).item() == 2.0 and b.scaled(vector(1)).item() == 5.0
        assert a.scaled is a.scaled and a.scaled is not b.scaled
        assert a.scaled.hit_rate == 50.0 and Model.scaled.hit_rate == 0.0

    def test_collected_with_the_instance(self):
        model = Model(2.0)
        model.scaled(vector(1))
        gone = weakref.ref(model)
        del model
        gc.collect()
        assert gone() is None

    def test_of_a_class_and_static(self):
        for _ in range(2):
            assert Model.of_class(vector(1)).item() == Model(1.0).of_class(vector(1)).item() == 3.0
            assert Model.static(vector(1)).item() == Model(1.0).static(vector(1)).item() == 2.0

    def test_overridden_and_of_one_name(self):
        class Derived(Model):
            first = dlaccelerate(lambda self, x: x + 1)
            second = dlaccelerate(lambda self, x: x + 2)

            @dlaccelerate
            def scaled(self, x):
                return super().scaled(x) + 1

        model = Derived(2.0)
        for _ in range(3):
            assert model.scaled(vector(1)).item() == 3.0
            assert model.first(vector(1)).item() == 2.0 and model.second(vector(1)).item() == 3.0
        assert model.first.stats.traces == model.second.stats.traces == model.scaled.stats.traces == 1

    def test_slots(self):
        class Slotted:
            __slots__ = ()

            @dlaccelerate
            def fun(self, x):
                return x

        with pytest.raises(ArgumentError, match="instances of Slotted have no __dict__ to keep the cache"):
            Slotted().fun(vector(1))

    @pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
    def test_copies_have_caches_of_their_own(self, duplicate):
        first = Model(2.0)
        first.scaled.cache_size = 9
        first.scaled(vector(1))
        second = duplicate(first)
        second.factor = 5.0
        for _ in range(2):
            assert second.scaled(vector(1)).item() == 5.0 and first.scaled(vector(1)).item() == 2.0
        assert second.scaled.stats.traces == 1
        third = pickle.loads(pickle.dumps(first.scaled))
        assert third.cache_size == 9 and third.occupancy == 0.0 and third(vector(1)).item() == 2.0
        assert third.function.__self__.scaled is third


def test_functions_are_pickled_by_name():
    assert pickle.loads(pickle.dumps(doubled)) is doubled


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_keep_settings_but_no_traces(duplicate):
    accelerated = dlaccelerate(np.square, cache_size=9, check_tolerance=0.5)
    accelerated(vector(2))
    again = duplicate(accelerated)
    assert (again.cache_size, again.check_tolerance, again.occupancy) == (9, 0.5, 0.0)
    assert again(vector(3)).item() == 9.0 and accelerated.stats.calls == 1


def explained(fun, *calls):
    """Return what explain() says after the last of some calls."""
    for arguments in calls:
        fun(*arguments)
    return fun.explain()


class TestExplain:
    def fun(self, **options):
        def step(x, k=1.0, *rest, **more):
            return 0

        step.__qualname__ = "step"
        return dlaccelerate(step, **options)

    def test_before_and_after_clearing(self):
        fun = self.fun()
        assert fun.explain() == "step has not been called yet."
        fun(vector(1))
        fun.clear_cache()
        assert fun.explain() == "step has not been called since its cache was cleared."

    def test_first_call(self):
        assert explained(self.fun(), (dlarray(np.zeros((2, 3), np.float32), "CB"), "text", vector(1))) == (
            "step: miss. A new trace was recorded for x: 2(C) x 3(B) float32, k: 'text', argument 3: 1 float64, "
            "because there was none yet."
        )

    def test_hit(self):
        assert explained(self.fun(), (vector(1), 0.5), (vector(1), 0.5)) == (
            "step: hit. The call was replayed from the trace for x: 1 float64, k: 0.5."
        )

    @pytest.mark.parametrize(
        ("before", "after", "text"),
        [
            ((vector(1),), (vector(1, 2),), "x was 1 float64, is 2 float64."),
            ((vector(1),), (dlarray([1]),), "x was 1 float64, is 1 int64."),
            ((vector(1),), (dlarray([1.0], "C"),), r"x was 1 float64, is 1\(C\) float64."),
            ((vector(1, 2),), (vector(1, 2, 3)[::2],), r"x was 2 float64, is 2 float64 with strides \(2,\)."),
            (({"a": vector(1)},), ({"a": vector(1, 2)},), r"x\['a'\] was 1 float64, is 2 float64."),
            (({"it was": vector(1)},), ({"it was": vector(1, 2)},), r"x\['it was'\] was 1 float64, is 2 float64."),
            ((vector(1), "mean"), (vector(1), "sum"), "k was 'mean', is 'sum'.$"),
            ((vector(1), 0.5), (vector(1), 0.25), "k was 0.5, is 0.25. A number that takes a third value"),
            ((vector(1), np.float32(1)), (vector(1), 2), r"k was np.float32\(1.0\), is 2. A number of NumPy's"),
            ((vector(1), True), (vector(1), False), "k was True, is False.$"),
            ((vector(1), 0.5), (vector(1, 2), 0.25), "x was 1 float64, is 2 float64; k was 0.5, is 0.25.$"),
            ((vector(1), 1, 2), (vector(1), 1, 3), "argument 3 was 2, is 3."),
        ],
    )  # fmt: skip
    def test_misses(self, before, after, text):
        assert re.search(
            rf"step: miss. .*, because, compared with the trace that is nearest, {text}",
            explained(self.fun(), before, after),
        )

    def test_a_keyword(self):
        fun = self.fun()
        fun(vector(1), scale=1)
        fun(vector(1), scale=2)
        assert "scale was 1, is 2" in fun.explain()

    def test_the_nearest_trace(self):
        text = explained(self.fun(), (vector(1, 2), "b"), (vector(1), "a"), (vector(1, 2), "a"))
        assert text.endswith("nearest, x was 1 float64, is 2 float64.")  # the later one of two

    @pytest.mark.parametrize(
        ("before", "after", "text"),
        [
            (([vector(1)],), ([vector(1)] * 2,), r"\[0\]\[0\] has 1 elements in one and 2 in the other"),
            (({"a": vector(1)},), ({"b": vector(1)},), r"has the keys \['a'\] in one and \['b'\] in the other"),
            ((vector(1),), ((vector(1),),), "is a leaf in one and a tuple in the other"),
        ],
    )  # fmt: skip
    def test_containers(self, before, after, text):
        assert re.search(f"because the containers are others: .*{text}", explained(self.fun(), before, after))

    def test_evicted(self):
        fun = self.fun(cache_size=1)
        assert (
            "because the trace that there was had been evicted: more than cache_size (1) are in use"
            in explained(fun, (vector(1),), (vector(1, 2),), (vector(1),))
        )
        fun.clear_cache()
        assert explained(fun, (vector(1, 2),)).endswith("because there was none yet.")

    def test_after_an_error(self):
        fun = dlaccelerate(lambda x: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            fun(vector(1))
        assert "miss. The function raised an error for x: 1 float64, and no trace was kept." in fun.explain()

    def test_many_arguments(self):
        fun = dlaccelerate(lambda *arrays: arrays[0])
        assert "argument 11: 1 float64, and 9 more, because" in explained(fun, [vector(1)] * 20)

    def test_of_many_arguments_those_first_that_differ_among_keys(self):
        fun = dlaccelerate(lambda *arrays: arrays[0])
        other = [vector(1)] * 19 + [vector(1, 2)]
        last = explained(fun, [vector(1)] * 20, other, other)
        assert "the trace for argument 20: 2 float64, argument 1: 1 float64, " in last
        assert last.endswith(", argument 10: 1 float64, and 9 more.")
        arguments = [key.arguments.partition(", ")[0] for key in fun.explain().keys]
        assert arguments == ["argument 20: 1 float64", "argument 20: 2 float64"]

    def test_no_arguments(self):
        assert explained(dlaccelerate(lambda: 3), (), ()).endswith("from the trace for no arguments.")

    def test_keeps_no_array_alive(self):
        fun = self.fun()
        for _ in range(2):
            data = np.ones(3)
            gone = weakref.ref(data)
            fun(data)
            del data
            gc.collect()
            assert gone() is None


@pytest.mark.parametrize(
    ("args", "kwargs", "text"),
    [
        ((1.0,), {"optt": 1}, "step() got an unexpected keyword argument 'optt'"),
        ((), {"opt": 1}, "step() missing a required argument: 'x'"),
        ((1.0,), {"x": 1}, "step() got multiple values for argument 'x'"),
    ],
)
def test_arguments_that_the_function_does_not_take(args, kwargs, text):
    def step(x, opt=1):
        return x * opt

    step.__qualname__ = "step"
    with pytest.raises(TypeError) as caught:
        dlaccelerate(step)(*args, **kwargs)
    assert str(caught.value) == text


class TestSource:
    def test_before_the_first_call(self):
        fun = dlaccelerate(lambda x: x * 2)
        with pytest.raises(CacheError, match="there is no emitted source; call the function first"):
            fun.source()

    def test_is_a_module_that_runs(self):
        fun = dlaccelerate(lambda x: np.tanh(x * 2))
        fun(vector(0.5))
        names = dict(python.namespace())
        exec(fun.source(), names)
        x, y = np.array([0.5]), np.zeros(1)
        places = {"input[0]": x, "output[0]": y}
        names["forward"](lambda name, offset, dtype: python.CheckedPointer(places[name], offset // 8))
        assert y.tolist() == fun(x).tolist() == [np.tanh(1.0)]

    def test_of_the_trace_used_last(self):
        fun = dlaccelerate(lambda x: x * 2)
        fun(vector(1))
        fun(vector(1, 2))
        assert "input[0]: 2 float64" in fun.source()
        fun(vector(1))
        assert "input[0]: 1 float64" in fun.source()

    def test_of_forward_and_adjoint(self):
        fun = dlaccelerate(np.sin)
        for _ in range(2):
            dlfeval(lambda x: dlgradient(fun(x).sum(), x), vector(1))
        source = fun.source()
        assert (
            source.count("def forward(") == source.count("def adjoint(") == 1 and '"""sin, adjoint' in source
        )
        compile(source, "source", "exec")


class TestCheckMode:
    def warned(self, fun, *arguments):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = fun(*arguments)
        assert all(w.category is OutputsDifferWarning and w.filename == __file__ for w in caught)
        messages = [str(w.message) for w in caught]
        assert all(
            m.startswith("Accelerated outputs differ from underlying function outputs") for m in messages
        )
        return result, messages

    def test_what_no_guard_sees(self):
        factor = hidden(2.0)
        fun = dlaccelerate(lambda x: {"y": x * factor.get()}, check_mode="tolerance")
        assert self.warned(fun, vector(1, 0))[1] == self.warned(fun, vector(1, 0))[1] == []
        factor.set(5.0)
        result, messages = self.warned(fun, vector(1, 0))
        assert result["y"].tolist() == [2.0, 0.0] and len(messages) == 1
        assert (
            "output['y'][0] is 2.0, expected 5.0 (1 of 2 elements differ by more than 0.0001)" in messages[0]
        )
        fun.check_mode = "none"
        assert self.warned(fun, vector(1, 0))[1] == []

    def test_noise(self):
        rng = np.random.default_rng(0)
        fun = dlaccelerate(lambda x: x + rng.normal(size=3), check_mode="tolerance")
        first = fun(vector(0, 0, 0)).tolist()
        for _ in range(2):
            result, messages = self.warned(fun, vector(0, 0, 0))
            assert result.tolist() == first and len(messages) == 1

    def test_inside_dlfeval(self):
        factor = hidden(2.0)
        fun = dlaccelerate(lambda x: x * factor.get(), check_mode="tolerance")
        grad = lambda x: dlfeval(lambda x: dlgradient(fun(x).sum(), x), x)
        assert self.warned(grad, vector(1))[1] == self.warned(grad, vector(1))[1] == []
        factor.set(5.0)
        result, messages = self.warned(grad, vector(1))
        assert result.item() == 2.0 and len(messages) == 1

    @pytest.mark.parametrize(
        ("before", "after", "text"),
        [
            (float("nan"), float("nan"), None),
            (1.0, float("nan"), "is 1.0, expected nan"),
            (1.0, float("inf"), "is 1.0, expected inf"),
            (float("inf"), float("-inf"), "is inf, expected -inf"),
            (float("inf"), float("inf"), None),
            (1.0, 1.0 + 5e-5, None),
            (1e6, 1e6 + 50, None),
            (1e6, 1e6 + 200, "is 1000000.0, expected 1000200.0"),
            (3, 4, "is 3, expected 4"),
            (0.0, -0.0, None),
            (True, False, "is True, expected False"),
            (np.float32(1), np.float32(2), "is 1.0, expected 2.0"),
        ],
    )
    def test_arrays_and_numbers(self, before, after, text):
        value = hidden(before)
        functions = [
            lambda x: value.get(),
            lambda x: x * 0 + value.get(),
            lambda x: np.array([value.get(), value.get()]),
            lambda x: [{"k": value.get()}],
        ]
        accelerated = [dlaccelerate(fun, check_mode="tolerance") for fun in functions]
        for fun in accelerated:
            fun(vector(0))
        value.set(after)
        for fun in accelerated:
            messages = self.warned(fun, vector(0))[1]
            assert len(messages) == (text is not None)
        assert text is None or f"output[0]['k'] {text}" in messages[0]

    @pytest.mark.parametrize(
        ("before", "after", "text"),
        [
            ("a", "b", "output is 'a', expected 'b'"),
            ("a", "a", None),
            (None, None, None),
            (None, 1, "output is None in one and a leaf in the other"),
            ([1], [1, 2], "output has 1 elements in one and 2 in the other"),
            (vector(1), vector(1, 2), "output is 1 float64, expected 2 float64"),
            (vector(1), dlarray([1.0], "C"), r"output is 1 float64, expected 1(C) float64"),
            (vector(1), np.array([1.0]), "output is 1 dlarray float64\n[1.], expected array([1.])"),
            (np.array([1.0]), np.array([1.0, 2.0]), "output is array([1.]), expected array([1., 2.])"),
        ],
    )
    def test_kinds_of_outputs(self, before, after, text):
        value = hidden(before)
        fun = dlaccelerate(lambda x: value.get(), check_mode="tolerance")
        fun(vector(0))
        value.set(after)
        messages = self.warned(fun, vector(0))[1]
        assert len(messages) == (text is not None)
        assert text is None or text in messages[0]


# Random programs: each step makes a new value of the common shape from two earlier ones.


def assigned(a, b):
    a[0] = b[-1]
    a[:, -1] += 1.5
    a[::-1, 0] = a[:, 0] * 0.5
    return a


def slope(a, b):
    return dlgradient((np.tanh(a) * b).mean(), a)


@dlaccelerate
def accelerated_slope(a, b):
    return dlgradient((np.sin(a) * b).sum(), b)


def curvature(a, b):
    first = dlgradient((tj.sigmoid(a) * b**2).sum(), a, b, enable_higher_derivatives=True)
    return dlgradient((first[0] * first[1]).sum(), a)


STEPS = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b * 0.5,
    "rsub": lambda a, b: 1.0 - a,
    "div": lambda a, b: a / (1 + b**2),
    "max": np.maximum,
    "where": lambda a, b: np.where(a > b, a, b),
    "tanh": lambda a, b: np.tanh(a),
    "exp": lambda a, b: np.exp(-(a**2)) + b,
    "rows": lambda a, b: a.sum(axis=0, keepdims=True) * 0.1 + b,
    "columns": lambda a, b: b - a.max(axis=1, keepdims=True),
    "mean": lambda a, b: a.mean() * b,
    "product": lambda a, b: a @ (a.T @ b) * 0.05,
    "turned": lambda a, b: (a.T[::-1]).T * b,
    "flipped": lambda a, b: a[::-1] + b[:1],
    "picked": lambda a, b: a[:, [0, -1, 0]].sum(axis=1, keepdims=True) + b,
    "joined": lambda a, b: np.concatenate([a, b])[a.shape[0] // 2 :][: a.shape[0]],
    "padded": lambda a, b: np.pad(a, ((1, 0), (0, 1)))[:-1, 1:] + b,
    "assigned": lambda a, b: assigned(a * 1, b),
    "assigned in place": assigned,
    "softmax": lambda a, b: tj.softmax(a, axis=1) - b,
    "loss": lambda a, b: tj.huber(a, tj.stop_gradient(b), data_format="BC") * b,
    "slope": slope,
    "curvature": curvature,
    "through": accelerated_slope,
    "evaluated": lambda a, b: dlfeval(slope, a, b),
    "constant": lambda a, b: a * np.arange(1.0, a.shape[1] + 1) + np.eye(*a.shape, dtype=a.dtype),
    "cast": lambda a, b: a.astype(np.float32).astype(a.dtype) * (b.shape[0] > 1),
    "flat": lambda a, b: (a.reshape(-1) + b.ravel()[::-1]).reshape(a.shape),
}


@st.composite
def programs(draw):
    names = draw(st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=6))
    places = [draw(st.tuples(st.integers(0, i + 1), st.integers(0, i + 1))) for i in range(len(names))]

    def program(params, x):
        values = [params["w"], x]
        for name, (i, j) in zip(names, places, strict=True):
            values.append(STEPS[name](values[i], values[j]))
        total = (values[-1] ** 2).sum() * 0.1
        return {
            "values": values[-3:],
            "total": total,
            "grads": dlgradient(total, params),
            "x": x,
            "names": names,
        }

    program.__qualname__ = " ".join(f"{name}{place}" for name, place in zip(names, places, strict=True))
    note(program.__qualname__)
    return program


@st.composite
def arguments(draw, shape, dtype):
    """Return arrays of one shape that lie in memory in some way."""

    def array():
        numbers = draw(
            st.lists(st.integers(-8, 8), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1])
        )
        data = np.array(numbers, dtype).reshape(shape) / 4
        how = draw(st.sampled_from("CCFSR"))
        if how == "F":
            return np.asfortranarray(data)
        if how == "S":
            wide = np.full((shape[0] * 2, shape[1] * 3), np.nan, dtype)
            wide[::2, ::3] = data
            return wide[::2, ::3]
        return data[::-1].copy()[::-1] if how == "R" else data

    return {"w": array()}, array()


def numbers_of(result):
    """Return all arrays in a result, as ndarrays, and the rest of it."""
    leaves, treedef = tree.flatten(result)
    arrays = [leaf._data for leaf in leaves if isinstance(leaf, dlarray)]
    return arrays, [leaf for leaf in leaves if not isinstance(leaf, dlarray)], treedef


def assert_equal(result, expected, dtype):
    (have, others, treedef), (want, other_wants, want_treedef) = numbers_of(result), numbers_of(expected)
    assert treedef == want_treedef and others == other_wants
    scale = max([1.0, *[np.abs(a).max() for a in want if a.size]])
    for a, b in zip(have, want, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=0, atol=scale * (1e-4 if dtype == np.float32 else 1e-6))


class TestRandomPrograms:
    @settings(
        max_examples=sweep(6, 40), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
    )
    @given(programs(), st.sampled_from([np.float64, np.float64, np.float32]), st.data())
    def test_replays_equal_the_function(self, program, dtype, data):
        accelerated = dlaccelerate(program)
        for shape in data.draw(st.lists(st.sampled_from([(1, 1), (2, 3), (3, 2)]), min_size=1, max_size=2)):
            for _ in range(2):
                params, x = data.draw(arguments(shape, dtype))
                before = [params["w"].copy(), x.copy()]
                expected = dlfeval(program, params, x)
                assert_equal(accelerated(params, x), expected, dtype)
                assert_equal(accelerated(params, x), expected, dtype)
                result = accelerated(params, x)  # by the generated call path
                assert_equal(result, expected, dtype)
                for array, copied in zip((params["w"], x), before, strict=True):
                    np.testing.assert_array_equal(array, copied)
                outs = numbers_of(result)[0]
                for i, out in enumerate(outs):
                    assert not any(np.shares_memory(out, other) for other in (params["w"], x, *outs[:i]))

    @settings(
        max_examples=sweep(5, 20), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
    )
    @given(programs(), st.data())
    def test_gradients_through_a_call(self, program, data):
        """The call is one op of the evaluation around it; its first and second derivatives are the function's."""
        accelerated = dlaccelerate(program)
        chosen = data.draw(st.sets(st.integers(0, 2), min_size=1))
        order = data.draw(st.integers(1, 2))

        def outer(fun):
            def evaluated(params, x):
                out = fun({"w": params["w"] * 1.5}, np.tanh(x))
                parts = [*out["values"], out["grads"]["w"], out["total"]]
                y = sum([(np.sin(parts[i]) * (i + 1)).sum() for i in sorted(chosen) if i < len(parts)])
                grads = dlgradient(y, params, x)
                if order == 2:
                    grads = (grads, dlgradient((grads[0]["w"] * grads[1]).sum(), params, x))
                return y, grads, out["x"]

            return evaluated

        for _ in range(2):
            params, x = data.draw(arguments((2, 2), np.float64))
            expected = dlfeval(outer(program), params, x)
            assert_equal(dlfeval(outer(accelerated), params, x), expected, np.float64)


def escaping(kept):
    def fun(x):
        kept.append(x * 2)
        kept.append(x)
        return x + 1

    return fun


class TestValuesThatSteerPython:
    def test_sizes_and_arrays_outside_the_trace_are_fine(self):
        flag = dlarray(1.0)

        def fun(x):
            y = sum([part * len(x) for part in x]) if flag and x.ndim == 2 and x.shape[1] else x
            first, *_ = x
            return [y, first, x * x.size, x is None, repr(x)[-6:]]

        accelerated = dlaccelerate(fun)
        for shape in ((2, 3), (3,)):
            for _ in range(3):
                expected = dlfeval(fun, np.ones(shape))
                found = accelerated(np.ones(shape))
                assert [r.tolist() for r in found[:3]] == [r.tolist() for r in expected[:3]]
                assert found[3:] == [False, "traced"]

    def test_masks_that_keep_the_size(self):
        def fun(x):
            x[x > 1] = 0.0
            return np.where(x < 0, -x, x), x

        accelerated = dlaccelerate(fun)
        for numbers in ((1, 2, -3), (5, -6, 7), (-1, -1, -1)):
            expected = dlfeval(fun, vector(*numbers))
            assert [r.tolist() for r in accelerated(vector(*numbers))] == [r.tolist() for r in expected]

    def test_functions_of_numpy_that_are_not_supported(self):
        for fun in (np.sort, np.unique, np.fft.fft, np.add.accumulate):
            with pytest.raises(ArgumentError, match=r"np\..*: not supported on dlarrays"):
                dlaccelerate(fun)(vector(1, 2))


class TestErrors:
    def test_leave_the_cache_as_it_was(self):
        fail = True

        @dlaccelerate
        def fun(x):
            if fail:
                raise KeyError("no")
            return x * 2

        for _ in range(2):
            with pytest.raises(KeyError, match="no"):
                fun(vector(1))
            assert fun.occupancy == 0.0 and fun.stats.traces == 0 and recorder.recorder() is None
        fail = False
        for _ in range(3):
            assert fun(vector(1)).item() == 2.0 and fun.occupancy == 2.0
        fail = True
        for x in (vector(1), vector(1, 2)):
            with pytest.raises(KeyError):
                fun(x)
        fail = False
        hits = fun.stats.hits
        assert fun(vector(1)).item() == 2.0 and fun.occupancy == 2.0 and fun.stats.hits == hits + 1

    def test_inside_dlfeval_leave_it_open(self):
        @dlaccelerate
        def fun(x):
            raise KeyError("no")

        def outer(x):
            with pytest.raises(KeyError):
                fun(x)
            return dlgradient((x * x).sum(), x)

        assert dlfeval(outer, vector(3)).item() == 6.0

    def test_of_an_op_name_the_sizes(self):
        with pytest.raises(DimsError, match="add: operands of sizes 2 and 3 do not align"):
            dlaccelerate(lambda x, y: x + y)(vector(1, 2), vector(1, 2, 3))

    def test_dlgradient_of_a_constant(self):
        w = vector(1)
        with pytest.raises(GradientError, match="y is an untraced scalar dlarray float64"):
            dlaccelerate(lambda x: dlgradient(dlarray(1.0), x))(vector(1))
        with pytest.raises(GradientError, match="x is an untraced 1 dlarray float64"):
            dlaccelerate(lambda x: dlgradient((x * w).sum(), w))(vector(1))

    def test_iterators_as_results(self):
        for fun in (
            lambda x: (a for a in x),
            lambda x: [map(abs, x)],
            lambda x: {"k": zip(x, x, strict=True)},
        ):
            with pytest.raises(
                ArgumentError, match=r"the result contains a .* can be iterated over only once"
            ):
                dlaccelerate(fun)(vector(1, 2))

    def test_escaped_arrays(self):
        kept = []
        fun = dlaccelerate(escaping(kept))
        place = f"{re.escape(__file__)}:{escaping.__code__.co_firstlineno + 2}"
        for run in (fun, lambda x: dlfeval(lambda x: fun(x), x)):
            fun.clear_cache()
            kept.clear()
            run(vector(1))
            made, argument = kept
            uses = [
                lambda x: x + 1, lambda x: x[0], lambda x: x.sum(), lambda x: float(x[0]), lambda x: x.tolist(), fun,
                dlaccelerate(lambda x: 1), lambda x: dlaccelerate(lambda y: x * y)(vector(1)),
                lambda x: dlaccelerate(lambda y: x)(vector(1)), lambda x: dlfeval(lambda y: y, x), tj.extractdata,
            ]  # fmt: skip
            for use in uses:
                with pytest.raises(TraceError, match=rf"made at {place} while escaping.*is used after"):
                    use(made)
                with pytest.raises(TraceError, match=r"passed as an argument while escaping.* is used after"):
                    use(argument)
            assert "of a trace that has ended" in repr(made)
            fun(vector(1))
            fun(vector(1))
            assert len(kept) == 2  # a replay makes none
            for _ in range(2):  # also where a call path exists
                with pytest.raises(TraceError, match="is used after that evaluation ended"):
                    fun(argument)

    def test_a_traced_array_of_the_evaluation_around(self):
        def outer(x):
            return dlaccelerate(lambda y: y * x)(vector(2))

        assert dlfeval(outer, vector(1)).item() == 2.0
        assert dlaccelerate(outer)(vector(3)).item() == 6.0  # traced through: one trace


class TestWithin:
    """Called inside somebody else's dlfeval."""

    def test_some_outputs_used(self):
        fun = dlaccelerate(lambda x, n: {"a": x * n, "n": n + 1, "big": x > 0, "b": [x**2, "text", None]})

        def outer(x, n):
            out = fun(x, n)
            assert out["n"].dtype.kind == "i" and out["b"][1:] == ["text", None]
            return dlgradient(out["b"][0].sum(), x), dlgradient((out["a"] * out["n"]).sum(), x), out["big"]

        for _ in range(3):
            first, second, big = dlfeval(outer, vector(3), np.array([2]))
            assert first.tolist() == [6.0] and second.tolist() == [6.0] and big.tolist() == [True]
        assert fun.hit_rate == pytest.approx(200 / 3) and fun.occupancy == 2.0

    def test_without_floats(self):
        fun = dlaccelerate(lambda n: (n * 2, n > 1))
        double, large = dlfeval(lambda n: fun(n), np.array([1, 2]))
        assert double.tolist() == [2, 4] and large.tolist() == [False, True]

    def test_no_arrays_at_all(self):
        fun = dlaccelerate(lambda k: {"k": k})
        assert dlfeval(lambda x: fun(3), vector(1)) == fun(3) == {"k": 3}

    def test_untraced_arguments(self):
        fun = dlaccelerate(lambda x, w: (x * w).sum())

        def outer(w):
            return dlgradient(fun(np.array([1.0, 2.0]), w) * fun(vector(1, 1), w), w)

        assert dlfeval(outer, vector(3, 4)).tolist() == [18.0, 25.0]

    def test_an_argument_and_result_at_once(self):
        fun = dlaccelerate(lambda x: (x, x * 2))
        assert dlfeval(lambda x: dlgradient(sum(fun(x)).sum(), x), vector(1)).item() == 3.0

    def test_the_same_array_twice(self):
        fun = dlaccelerate(lambda a, b: dlgradient((a**2 * b).sum(), a))  # 2 a b
        assert fun(vector(3), vector(3)).item() == 18.0
        for _ in range(2):
            assert dlfeval(lambda x: dlgradient(fun(x, x).sum(), x), vector(3)).item() == 12.0

    def test_formats(self):
        fun = dlaccelerate(lambda x: (x.T, tj.stripdims(x), x.sum(axis=0)))
        x = dlarray(np.arange(6.0).reshape(2, 3), "CB")
        for run in (fun, fun, fun, lambda x: dlfeval(lambda x: fun(x), x)):
            assert [out.format for out in run(x)] == ["BC", None, "B"]
        assert dlfeval(lambda x: dlgradient(fun(x)[0].sum(), x), x).format == "CB"

    @pytest.mark.parametrize("order", [1, 2, 3, 4])
    def test_higher_derivatives(self, order):
        fun = dlaccelerate(lambda x: dlgradient(np.exp(2 * x).sum(), x))
        stopped = dlaccelerate(lambda x: x * tj.stop_gradient(x**2))

        def outer(x):
            y, flat = fun(x), stopped(x)
            for _ in range(order):
                y, flat = dlgradient(y.sum(), x), dlgradient(flat.sum(), x)
            return y, flat

        y, flat = dlfeval(outer, vector(0.5))
        assert y.item() == pytest.approx(2 ** (order + 1) * np.exp(1.0))
        assert flat.item() == (0.25 if order == 1 else 0.0)

    def test_zero_and_missing_gradients(self):
        fun = dlaccelerate(lambda x, y: x * 2)
        grads = dlfeval(lambda x, y: dlgradient(fun(x, y).sum(), x, y), vector(1), vector(1))
        assert [g.tolist() for g in grads] == [[2.0], [0.0]]
        flat = dlaccelerate(np.sign)
        assert dlfeval(lambda x: dlgradient(flat(x).sum(), x), vector(3)).tolist() == [0.0]

    def test_float32_stays(self):
        fun = dlaccelerate(lambda x: (x * 2).astype(np.float64))
        grad = dlfeval(lambda x: dlgradient(fun(x).sum(), x), dlarray(np.ones(2, np.float32)))
        assert grad.dtype == np.float32 and grad.tolist() == [2.0, 2.0]

    def test_strided_arguments(self):
        fun = dlaccelerate(lambda x: x * 2)
        x = np.arange(12.0).reshape(3, 4)[::-1, ::2]
        for _ in range(2):
            grad = dlfeval(lambda x: dlgradient((fun(x.T).T * fun(x)).sum(), x), x)
            assert grad.tolist() == (8 * x).tolist()

    def test_recursion(self):
        @dlaccelerate
        def power(x, n):
            return x * power(x, n - 1) if n else x * 0 + 1

        assert [power(vector(2), 5).item() for _ in range(2)] == [32.0, 32.0] and power.occupancy == 2.0
        assert dlfeval(lambda x: dlgradient(power(x, 3).sum(), x), vector(2)).item() == 12.0

    def test_dlfeval_inside(self):
        fun = dlaccelerate(lambda x: dlfeval(lambda a: dlgradient((a**3).sum(), a), x * 1))
        assert [fun(vector(2)).item() for _ in range(3)] == [12.0] * 3
        assert dlfeval(lambda x: dlgradient(fun(x).sum(), x), vector(2)).item() == 12.0

    def test_a_call_inside_a_call_inside_dlfeval(self):
        inner = dlaccelerate(lambda x: x**2)
        outer = dlaccelerate(lambda x: inner(x) * 3)
        for _ in range(2):
            assert dlfeval(lambda x: dlgradient(outer(x).sum(), x), vector(2)).item() == 12.0
        assert inner.stats.calls == 0

    def test_direct_and_within_share_a_trace(self):
        fun = dlaccelerate(lambda x: x**2)
        fun(vector(2))
        dlfeval(lambda x: dlgradient(fun(x).sum(), x), vector(2))
        assert fun(vector(3)).item() == 9.0 and fun.occupancy == 2.0 and fun.stats.hits == 2

    def test_as_what_dlfeval_evaluates(self):
        fun = dlaccelerate(lambda x, k=1: {"g": dlgradient((x**2).sum(), x), "k": k})
        for _ in range(2):
            assert dlfeval(fun, vector(3), k=2)["g"].item() == 6.0
        assert fun.hit_rate == 50.0

    def test_a_kept_trace_keeps_no_evaluation(self):
        fun = dlaccelerate(lambda x: x * 2)
        recorders = []

        def outer(x):
            recorders.append(weakref.ref(recorder.recorder()))
            return fun(x) * np.ones(5)

        dlfeval(outer, vector(1))
        gc.collect()
        assert fun.occupancy == 2.0 and recorders[0]() is None


@dataclasses.dataclass
class State:
    w: object
    name: str = "state"


Pair = collections.namedtuple("Pair", "a b")


class TestContainers:
    def test_a_function_that_runs_over_a_dict_sees_its_order(self):
        either_backend.check_order_of_dicts()

    @pytest.mark.parametrize(
        "make",
        [
            lambda x: x, lambda x: [x], lambda x: (x,), lambda x: {"a": x}, lambda x: Pair(x, [x, None]),
            lambda x: State(x), lambda x: {"b": [x, {"c": (x, 1.5, "s")}], "a": None}, lambda x: [[], {}, (), x],
            lambda x: collections.OrderedDict(z=x, a=x), lambda x: {3: x, "a": x, None: x}, lambda x: [x] * 30,
            lambda x: {"it's": x, 'a "b"': 0.0, "\n": -0.0, "nan": math.nan}, lambda x: {True: x, 1.5: x},
        ],
    )  # fmt: skip
    def test_in_and_out(self, make):
        accelerated = dlaccelerate(lambda given_: tree.map(lambda leaf: leaf * 2, given_))
        double = lambda leaf: leaf._data * 2 if isinstance(leaf, dlarray) else leaf * 2
        for n in range(4):
            given_ = make(vector(n, 1))
            result = accelerated(given_)
            expected = tree.map(double, given_)
            assert repr(tree.map(lambda r: getattr(r, "_data", r), result)) == repr(expected)
        assert accelerated.hit_rate == 75.0

    @pytest.mark.parametrize(
        "constant",
        [
            None,
            3,
            2.5,
            True,
            "text",
            np.float32(2),
            [],
            {},
            (1, [2]),
            {"b": 1, "a": None},
            len,
            np.dtype("f4"),
            slice(1),
        ],
    )
    def test_constants_as_results(self, constant):
        accelerated = dlaccelerate(lambda x: constant)
        for _ in range(4):
            result = accelerated(vector(1))
            assert result == constant and type(result) is type(constant)
        assert dlfeval(lambda x: accelerated(x), vector(1)) == constant

    def test_values_as_arguments(self):
        accelerated = dlaccelerate(lambda x, k: k)
        values = [0, 1, True, 1.0, 0.0, -0.0, math.nan, math.inf, "1", b"1", 1j, np.float32(1), np.int64(1), None, len,
                  np.dtype("f4"), (), frozenset([1])]  # fmt: skip
        for _ in range(4):
            for value in values:
                assert repr(accelerated(vector(1), value)) == repr(value)
        # The third float of a kind becomes an input, and so do those that follow.
        assert accelerated.stats.traces < len(values)

    def test_other_arguments_than_a_call_path_expects(self):
        either_backend.check_other_arguments()

    def test_containers_are_new_each_time(self):
        accelerated = dlaccelerate(lambda x, p: {"list": [x], "p": p})
        given_ = {"k": vector(1)}
        for _ in range(4):
            result = accelerated(vector(1), given_)
            assert len(result["list"]) == 1 and list(result["p"]) == ["k"] and result["p"] is not given_
            result["list"].append(1)
            result["p"]["other"] = 1
        assert list(given_) == ["k"]

    def test_arguments_changed_inside_stay(self):
        def fun(params, x):
            params["w"] = params["w"] * 2
            params["new"] = x
            x += 1
            return params, x

        params, x = {"w": vector(1)}, np.ones(1)
        accelerated = dlaccelerate(fun)
        for _ in range(4):
            result, plus = accelerated(params, x)
            assert [result["w"].item(), plus.item(), result["new"].item()] == [2.0, 2.0, 1.0]
            assert list(params) == ["w"] and params["w"].item() == x.item() == 1.0


class TestThreads:
    @pytest.mark.filterwarnings("ignore:.* is recorded in most calls")
    def test_many_at_once(self):
        fun = dlaccelerate(lambda x, k: (x * k, dlgradient((x**2).sum() * k, x)), cache_size=3)
        run_in_threads(fun)
        assert fun.stats.calls == 8 * 12 and fun.occupancy <= 100.0

    def test_that_record_apart(self):
        fun = dlaccelerate(lambda x: dlgradient(np.sin(x).sum(), x))
        results = {}

        def work(n):
            results[n] = dlfeval(lambda x: dlgradient(fun(x).sum() * n, x), vector(*[0.5] * n)).tolist()

        in_threads(work, 4)
        assert results == {n: pytest.approx([-n * math.sin(0.5)] * n) for n in range(1, 5)}


def in_threads(work, count):
    failed = []

    def run(n):
        try:
            work(n)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(1, count + 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def run_in_threads(fun):
    def work(n):
        for i in range(12):
            size = (n + i) % 4 + 1
            x = np.full(size, float(n))
            y, grad = fun(dlarray(x), 2.0)
            assert y.tolist() == [2.0 * n] * size and grad.tolist() == [4.0 * n] * size

    in_threads(work, 8)


class TestIndices:
    def test_a_place_out_of_range_is_an_error_in_a_replay_too(self):
        either_backend.check_places_out_of_range()

    def test_a_write_out_of_range_is_an_error_too(self):
        def written(a, i, v):
            a[i] = v
            return a

        put = dlaccelerate(written)
        a = vector(1.0, 2.0)
        for _ in range(2):
            assert put(a, np.array([1]), vector(9.0)).tolist() == [1.0, 9.0]
        with pytest.raises(tj.BoundsError, match=r"out of range in a replay of put"):
            put(a, np.array([100_000]), vector(9.0))

    def test_inside_an_evaluation(self):
        taken = dlaccelerate(lambda a, i: (a[i] ** 2).sum())
        value = dlfeval(lambda a, i: dlgradient(taken(a, i), a), vector(1.0, 2.0), np.array([1, 1]))
        assert value.tolist() == [0.0, 8.0]
        with pytest.raises(tj.BoundsError):
            dlfeval(lambda a, i: dlgradient(taken(a, i), a), vector(1.0, 2.0), np.array([1, 2]))


class TestUnknownAttributes:
    """A misspelt option is an error that names the right one; everything that decorators set still works."""

    @pytest.mark.parametrize(
        ("name", "meant"),
        [
            ("CheckMode", "check_mode"), ("CacheSize", "cache_size"), ("Enabled", "enabled"),
            ("CheckTolerance", "check_tolerance"), ("cachesize", "cache_size"), ("cache_sise", "cache_size"),
            ("max_variant", "max_variants"), ("enable", "enabled"), ("checkevery", "check_every"),
            ("confirms", "confirm"), ("audits", "audit"),
        ],
    )  # fmt: skip
    def test_a_misspelt_option(self, name, meant):
        accelerated = dlaccelerate(np.square)
        with pytest.raises(AttributeError) as error:
            setattr(accelerated, name, 3)
        assert str(error.value) == (
            f"an accelerated function has no attribute {name!r}; the option is {meant}."
        )
        assert not hasattr(accelerated, name)

    @pytest.mark.parametrize(
        ("name", "meant"), [("HitRate", "hit_rate"), ("Occupancy", "occupancy"), ("Function", "function")]
    )
    def test_a_misspelt_property_that_can_only_be_read(self, name, meant):
        with pytest.raises(AttributeError) as error:
            setattr(dlaccelerate(np.square), name, 3)
        assert str(error.value) == (
            f"an accelerated function has no attribute {name!r}; {meant} is the name, and it can only be read."
        )

    @pytest.mark.parametrize("name", ["note", "_note", "x", "calls_made"])
    def test_an_attribute_like_no_option(self, name):
        with pytest.raises(AttributeError) as error:
            setattr(dlaccelerate(np.square), name, 3)
        assert str(error.value) == (
            f"an accelerated function has no attribute {name!r}; the options are audit, cache_size, check_every, "
            "check_mode, check_tolerance, confirm, enabled, max_variants. To attach a value of your own, set it on the "
            "function before it is accelerated."
        )

    def test_attributes_of_the_function_are_copied_and_can_be_set(self):
        def fun(x):
            """A function."""
            return x * 2

        fun.note = "mine"
        accelerated = dlaccelerate(fun)
        assert accelerated.note == "mine" and accelerated.__wrapped__ is fun
        accelerated.note = "changed"
        accelerated.__doc__ = "Another text."
        assert (accelerated.note, fun.note, accelerated.__doc__) == ("changed", "mine", "Another text.")
        del accelerated.note
        assert not hasattr(accelerated, "note")

    def test_a_decorator_around_it_has_its_own_attributes(self):
        accelerated = dlaccelerate(lambda x: x * 2)

        @functools.wraps(accelerated)
        def outer(x):
            return accelerated(x)

        outer.note = 1
        assert outer.__wrapped__ is accelerated and outer(vector(2)).tolist() == [4.0]
        assert not hasattr(accelerated, "note")

    def test_an_accelerated_object_keeps_its_attributes_apart(self):
        class Scaled:
            def __init__(self):
                self.factor, self._cache = 2.0, "mine"

            def __call__(self, x):
                return x * self.factor

        scaled = Scaled()
        accelerated = dlaccelerate(scaled)
        assert [accelerated(vector(3)).tolist() for _ in range(3)] == [[6.0]] * 3
        assert accelerated.factor == 2.0 and scaled._cache == "mine" and accelerated.hit_rate > 60.0
