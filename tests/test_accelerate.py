# SPDX-License-Identifier: BSD-3-Clause
"""dlaccelerate: replays equal the uncompiled function, whatever is passed, kept, changed or raised."""

import copy
import functools
import gc
import pickle
import weakref

import numpy as np
import pytest

from tracejit import ArgumentError, config, dlaccelerate, dlarray, dlfeval, dlgradient


@pytest.fixture(autouse=True)
def python_backend(monkeypatch):
    """Nothing compiles, except in the class that asks for it."""
    monkeypatch.setattr(config.settings, "backend", "python")
    monkeypatch.setattr(config.settings, "verify", True)


def vector(*numbers):
    return dlarray(np.array(numbers, float))


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

    def test_a_scalar_array_written_before_the_program_is_built(self):
        factor = np.array(2.0)
        accelerated = dlaccelerate(lambda x: x * factor)
        accelerated(vector(1))
        factor[...] = 5.0
        assert accelerated(vector(1)).tolist() == [2.0]


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
