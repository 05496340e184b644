# SPDX-License-Identifier: BSD-3-Clause
"""Accelerated functions as Python objects: kinds of functions, methods, pickling, copies, attributes."""

import copy
import functools
import gc
import inspect
import pickle
import weakref

import numpy as np
import pytest
from accelerated import dlaccelerate, vector
from models import Model

import tracejit as tj
from tracejit import (
    ArgumentError,
    dlfeval,
)


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
    def test_functions_of_one_name_are_methods_of_their_own(self):
        """In silence, an instance kept the first method of a name: after a reload, and of two classes above it."""

        def version(k):
            class Net:
                @tj.dlaccelerate
                def step(self, x):
                    return x * k

            return Net

        x = np.ones(1)
        kind, other = version(1.0), version(2.0)
        net = kind()
        assert [net.step(x).item() for _ in range(4)] == [1.0] * 4
        kind.step = other.step
        assert [net.step(x).item() for _ in range(4)] == [2.0] * 4
        net.__class__ = version(3.0)
        assert [net.step(x).item() for _ in range(4)] == [3.0] * 4
        first, second = version(4.0), version(5.0)
        both = type("Both", (first, second), {})()
        for _ in range(4):
            assert (first.step(both, x).item(), second.step(both, x).item()) == (4.0, 5.0)
        assert first.step.__get__(both) is first.step.__get__(both)
        assert both.step.stats.hits == 2

    def test_a_class_of_the_name_of_the_class_above(self):
        class Layer:
            @tj.dlaccelerate
            def step(self, x):
                return x * 2

        above = Layer

        class Layer(above):
            @tj.dlaccelerate
            def step(self, x):
                return super().step(x) + 1

        layer = Layer()
        assert [layer.step(np.ones(1)).item() for _ in range(4)] == [3.0] * 4

    def test_an_instance_keeps_few_methods_of_a_name(self):
        class Net:
            pass

        net = Net()
        for k in range(20):
            Net.step = tj.dlaccelerate(lambda self, x, k=k: x * k)
            assert net.step(np.ones(1)).item() == k
        assert len(vars(net)) == 8

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

    def test_called_by_the_class_a_property_and_other_decorators(self):
        def passed_on(function):
            @functools.wraps(function)
            def outer(*args, **kwargs):
                return function(*args, **kwargs)

            return outer

        class Base:
            def __init__(self, factor):
                self.factor = factor

            @dlaccelerate
            def scaled(self, x):
                return x * self.factor

            @passed_on
            @dlaccelerate
            def shifted(self, x, by=0.0):
                return x + by * self.factor

            @property
            @dlaccelerate
            def twice(self):
                return np.full(2, 2.0) * self.factor

        class Derived(Base):
            @passed_on
            @dlaccelerate
            def shifted(self, x, by=0.0):
                return super().shifted(x, by=by) + Base.scaled(self, x)

        one, other = Base(np.array(2.0)), Derived(np.array(3.0))
        for n in range(4):
            x = vector(n)
            assert Base.scaled(one, x).item() == 2.0 * n
            assert Base.scaled(other, x=x).item() == 3.0 * n
            assert one.shifted(x, by=1.0).item() == n + 2.0
            assert other.shifted(x, by=1.0).item() == n + 3.0 + 3.0 * n
            assert one.twice.tolist() == [4.0, 4.0] and other.twice.tolist() == [6.0, 6.0]
            one.factor = one.factor + 0.0
        assert one.scaled.stats.calls == 4 and one.scaled.stats.hits == 2
        assert Base.scaled.stats.calls == 0

    def test_another_object_in_place_of_self(self):
        class Other:
            factor = 3.0

        for _ in range(4):
            assert Model.scaled(Other(), vector(1)).tolist() == [3.0]

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

    def test_the_parts_of_a_method(self):
        class Plain:
            def run(self, x):
                return x

        model, other = Model(2.0), dlaccelerate(Plain().run)
        assert model.scaled.__self__ is model and model.scaled.__func__ is Model.scaled
        assert other.__self__ is other.function.__self__ and other.__func__ is Plain.run
        for function in (Model.scaled, doubled, dlaccelerate(np.square)):
            assert not hasattr(function, "__self__") and not hasattr(function, "__func__")
        for duplicate in (copy.copy(model.scaled), copy.deepcopy(model).scaled):
            assert duplicate.__self__.factor == 2.0 and callable(duplicate.__func__)
        assert "cache_size" in inspect.signature(tj.AcceleratedFunction).parameters
        assert str(inspect.signature(model.scaled)) == "(x)"

    def test_weak_references_to_methods(self):
        model = Model(2.0)
        reference = weakref.WeakMethod(model.scaled)
        assert reference() is model.scaled and reference()(vector(1)).item() == 2.0
        outer = dlaccelerate(Model(3.0).scaled.function)
        assert weakref.WeakMethod(outer)()(vector(1)).item() == 3.0
        with pytest.raises(TypeError):
            weakref.WeakMethod(Model.scaled)
        del model
        gc.collect()
        assert reference() is None


def test_functions_are_pickled_by_name():
    assert pickle.loads(pickle.dumps(doubled)) is doubled


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_keep_settings_but_no_traces(duplicate):
    accelerated = dlaccelerate(np.square, cache_size=9, check_tolerance=0.5)
    accelerated(vector(2))
    again = duplicate(accelerated)
    assert (again.cache_size, again.check_tolerance, again.occupancy) == (9, 0.5, 0.0)
    assert again(vector(3)).item() == 9.0 and accelerated.stats.calls == 1


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
        text = f"an accelerated function has no attribute {name!r}; the option is {meant}."
        assert str(error.value) == text
        assert not hasattr(accelerated, name)
        with pytest.raises(ArgumentError) as unknown:
            dlaccelerate(np.square, **{name: 3})
        assert str(unknown.value) == f"dlaccelerate: unknown option {name!r}; the option is {meant}."

    @pytest.mark.parametrize(
        ("name", "meant"),
        [
            ("CheckMode", "check_mode"), ("checkMode", "check_mode"), ("cachesize", "cache_size"),
            ("Enabled", "enabled"),
        ],
    )  # fmt: skip
    def test_an_option_that_is_read_in_another_spelling(self, name, meant):
        accelerated = dlaccelerate(np.square)
        with pytest.raises(AttributeError) as error:
            getattr(accelerated, name)
        assert (
            str(error.value) == f"an accelerated function has no attribute {name!r}; the option is {meant}."
        )
        assert name not in dir(accelerated) and meant in dir(accelerated)
        with pytest.raises(AttributeError, match="hit_rate is the name, and it can only be read"):
            accelerated.HitRate  # noqa: B018 - raises

    @pytest.mark.parametrize(
        ("name", "meant"), [("HitRate", "hit_rate"), ("Occupancy", "occupancy"), ("Function", "function")]
    )
    def test_a_misspelt_property_that_can_only_be_read(self, name, meant):
        with pytest.raises(AttributeError) as error:
            setattr(dlaccelerate(np.square), name, 3)
        assert str(error.value) == (
            f"an accelerated function has no attribute {name!r}; {meant} is the name, and it can only be read."
        )

    @pytest.mark.parametrize("name", ["note", "_note", "x", "calls_made", "mro"])
    def test_an_attribute_like_no_option(self, name):
        with pytest.raises(AttributeError) as error:
            setattr(dlaccelerate(np.square), name, 3)
        assert str(error.value) == (
            f"an accelerated function has no attribute {name!r}; the options are audit, cache_size, check_every, "
            "check_mode, check_tolerance, confirm, enabled, max_variants, precision, target, write_arguments. To "
            "attach a value of your own, set it on the function before it is accelerated."
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


@pytest.mark.whole("each attribute")
@pytest.mark.parametrize("name", [name for name in dir(tj.dlaccelerate(abs)) if not name.startswith("__")])
def test_attributes_of_a_function_hide_nothing(name):
    def double(x):
        return x * 2

    vars(double).update({name: "mine", "rate": 3.0})
    accelerated = tj.dlaccelerate(double)
    for _ in range(3):
        assert accelerated(np.ones(2)).tolist() == [2.0, 2.0]
    accelerated.confirm = 2
    assert accelerated.rate == 3.0 and "replayed" in str(accelerated.explain())
    assert getattr(accelerated, name) != "mine"
