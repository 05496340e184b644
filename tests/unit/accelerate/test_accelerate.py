# SPDX-License-Identifier: BSD-3-Clause
"""dlaccelerate: replays equal the uncompiled function, whatever is passed, kept, changed or raised."""

import math
import re

import either_backend
import numpy as np
import pytest
from accelerated import dlaccelerate, in_threads, vector
from models import Model

import tracejit as tj
from tracejit import (
    ArgumentError,
    CacheError,
    clear_cache,
    dlarray,
    dlfeval,
    dlgradient,
)
from tracejit.runtime import python


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
        assert "function: models.Model.scaled\n" in repr(Model(1.0).scaled)

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
            ("precision", "high", r"precision: expected one of \('default', 'highest'\), not 'high'"),
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

    def test_clear_cache_refuses_other_values(self):
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
    def test_an_argument_is_written_through(self, numbers):
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
            assert fun(np.array(numbers)).tolist() == [100, numbers[1]]


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
                assert out._data.flags.forc and out._data.flags.writeable
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

    def test_contiguous_in_the_order_of_the_arguments(self):
        self.check(lambda x: (x * 2, x.T + 1), dlarray(np.asfortranarray(np.arange(6.0).reshape(2, 3))))

    def test_parameters_that_go_round_a_training_loop_have_one_trace(self):
        step = dlaccelerate(lambda x: x * 2)
        x = dlarray(np.asfortranarray(np.ones((2, 3))))
        for _ in range(4):
            x = step(x)
            assert x._data.flags.f_contiguous
        assert step.occupancy == 2.0  # one of 50 keys

    def test_ndarrays_made_inside(self):
        accelerated = dlaccelerate(lambda x: (x, np.array([1.0, 2.0])))
        for _ in range(3):
            out = accelerated(vector(1))[1]
            assert type(out) is np.ndarray and out.tolist() == [1.0, 2.0]
            out[...] = 7


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


# Random programs: each step makes a new value of the common shape from two earlier ones.


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
