# SPDX-License-Identifier: BSD-3-Clause
"""The list of promises: what trips up systems that record and replay, one test each.

A world is made twice, for the accelerated function and for the plain one, from the same seeds. Each is called some
dozen times while things around it change, and the results are equal, call by call; or the one warning is given
that is documented, at the line that is marked. Throughout, no argument changes, nor a result that was given earlier.
"""

import asyncio
import collections
import contextlib
import contextvars
import copy
import ctypes
import enum
import functools
import gc
import importlib
import itertools
import linecache
import operator
import os
import pickle
import random
import re
import sys
import threading
import time
import types
import warnings
import weakref

import numpy as np
import pytest

import tracejit as tj
from tracejit import dlaccelerate, dlarray, dlfeval, dlgradient

RATE = 2.0
WEIGHTS = np.ones(3)
TABLE = {"a": 1.0, "b": 10.0}
GONE = 3.0
X = np.array([1.0, -2.0, 3.0])
RANDOM_NUMBERS = "two recordings differ: .*Likely cause: random numbers that NumPy or Python drew"


def helper(x):
    return x + 1


@pytest.fixture(autouse=True)
def _seeded():
    with tj.rng(0):
        yield


def pick(n, *values):
    """Return the value of call `n`: three calls each, in turn, so that each is recorded, confirmed and replayed."""
    return values[n // 3 % len(values)]


def frozen(result):
    leaves, treedef = tj.tree.flatten(result)
    kinds = [type(leaf) for leaf in leaves]
    return [np.array(leaf) if isinstance(leaf, np.ndarray | dlarray) else leaf for leaf in leaves], (
        kinds,
        treedef,
    )


def assert_same(found, expected):
    assert found[1] == expected[1]
    for have, want in zip(found[0], expected[0], strict=True):
        if not isinstance(want, np.ndarray):
            assert repr(have) == repr(want)
            continue
        assert (have.dtype, have.shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(have, want, rtol=1e-6 if want.dtype == np.float32 else 1e-12)
        np.testing.assert_array_equal(np.signbit(have)[have == 0], np.signbit(want)[want == 0])


def follow(world, *, calls=24, warns=None, replays=True, **options):
    """Compare an accelerated world with a plain one; return the functions that were accelerated."""
    worlds = []
    for enabled in (True, False):
        np.random.seed(1)
        random.seed(1)
        tj.rng(1)
        made = []

        def accelerate(function, made=made, enabled=enabled):
            made.append(dlaccelerate(function, enabled=enabled, **options))
            return made[-1]

        call = world(accelerate)
        results, copies = [], []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for n in range(calls):
                results.append(call(n))
                copies.append(frozen(results[-1]))
        for result, as_given in zip(results, copies, strict=True):
            assert_same(frozen(result), as_given)
        worlds.append((copies, caught, made))
    (found, caught, made), (expected, nothing, _) = worlds
    assert not nothing
    for have, want in zip(found, expected, strict=True):
        assert_same(have, want)
    if warns is None:
        assert [str(warning.message) for warning in caught] == []
        assert sum(each.stats.uncompiled for each in made) == 0
        assert not replays or sum(each.stats.hits for each in made) > 0
    else:
        assert_warned(caught, warns)
    return made


def assert_warned(caught, text):
    """Check that one warning was given, which names the marked line of this file."""
    (warning,) = caught
    assert re.search(text, str(warning.message)), str(warning.message)
    assert warning.filename == __file__
    assert "# here" in linecache.getline(__file__, warning.lineno)
    assert f"{__file__}:{warning.lineno}" in str(warning.message)


def of(fun, *arguments):
    """Return a world in which a function gets arguments in turn, three calls each."""

    def world(accelerate):
        accelerated = accelerate(fun)

        def call(n):
            given = pick(n, *arguments)
            given = given if type(given) is tuple else (given,)
            before = [np.array(a) for a in given if isinstance(a, np.ndarray)]
            result = accelerated(*given)
            for was, now in zip(before, [a for a in given if isinstance(a, np.ndarray)], strict=True):
                np.testing.assert_array_equal(was, now)
            return result

        return call

    return world


class TestValuesThatDecide:
    def test_a_branch(self):
        follow(of(lambda x: x * 2 if x.sum() > 0 else -x, X, -X, 3 * X))

    def test_a_branch_inside_a_branch(self):
        def fun(x):
            if x[0] > 0:
                return x * 2 if x[1] > 0 else x * 3
            return x * 4

        follow(of(fun, X, -X, abs(X)))

    def test_a_loop_until_a_value(self):
        def fun(x):
            while abs(x).sum() < 50:
                x = x * 2
            return x

        follow(of(fun, X, X / 4, X * 8))

    def test_a_loop_as_often_as_a_value_says(self):
        follow(of(lambda x: sum((x * i for i in range(int(x[0]))), x), X, X + 2, X))

    def test_a_conditional_expression_and_short_circuits(self):
        follow(of(lambda x: x * ((x[0] > 0 and x[1] > 0) or 1), X, abs(X), -X))

    def test_the_larger_of_two(self):
        follow(of(lambda x: max(x[0], x[1]) * x, X, -X))

    def test_a_value_in_a_dict(self):
        follow(of(lambda x: x * {1: 2.0, -1: 5.0}[int(x[0])], X, -X))

    def test_a_value_in_a_text(self):
        follow(of(lambda x: (x * 2, f"{x[0]:.1f}"), X, -X))

    def test_float_and_math(self):
        follow(of(lambda x: x * np.exp(float(x[0])), X, -X))

    def test_int_as_an_index(self):
        follow(of(lambda x: x[int(abs(x[0]))] * x, X, 2 * X))

    def test_extractdata(self):
        follow(of(lambda x: x + np.arctan(tj.extractdata(x)), X, -X))

    def test_a_check_that_raises(self):
        def fun(x):
            if not x[0] > 0:
                raise ValueError("not positive")
            return x * 2

        def world(accelerate):
            accelerated = accelerate(fun)

            def call(n):
                try:
                    return accelerated(pick(n, X, -X))
                except ValueError as error:
                    return str(error)

            return call

        follow(world)

    def test_nan_decides_too(self):
        follow(of(lambda x: x * 2 if x[0] > 0 else x * 3, X, np.array([np.nan, 1.0, 1.0]), X))

    def test_the_sign_of_zero(self):
        follow(of(lambda x: (x * 3, 1 / np.float64(float(x[0]) or 1)), np.array([0.0]), np.array([-0.0])))

    def test_gradients_of_the_way_taken(self):
        fun = lambda x: dlgradient((x**2 if x.sum() > 0 else x**3).sum(), x)
        follow(of(fun, X, -X))

    def test_more_ways_than_variants(self):
        def world(accelerate):
            @accelerate
            def fun(x):
                while x[0] < 100:  # here
                    x = x * 2
                return x

            return lambda n: fun(np.array([2.0 ** (n % 12 - 6)]))

        follow(
            world,
            warns=r"bool\(\) on a traced array had a different outcome.*Use where\(condition, a, b\)",
            calls=30,
        )


class TestSizesThatDependOnData:
    def test_a_selection(self):
        follow(of(lambda x: x[x > 0] * 2, X, -X, abs(X)))

    def test_the_size_of_a_selection(self):
        follow(of(lambda x: x[x > 0].sum() / len(x[x > 0]), X, -X, abs(X)))

    def test_the_mean_of_a_selection(self):
        follow(of(lambda x: (x[x > 0].mean(), x[x > 0].shape[0]), X, -X, abs(X)))

    def test_nonzero(self):
        follow(of(lambda x: tj.nonzero(x)[0] + 0, X, np.array([0.0, 1, 0]), np.zeros(3)))

    def test_another_number_of_arguments_elements(self):
        follow(of(lambda x: x / x.size, X, np.ones(5), np.ones((2, 2)), X))

    def test_no_elements(self):
        follow(of(lambda x: (x * 2, x.sum()), np.ones(0), X, np.ones((0, 3))))


class TestWhatNoTraceSees:
    def test_numbers_of_numpy(self):
        def world(accelerate):
            @accelerate
            def fun(x):
                return x + np.random.normal(size=3)  # here

            return lambda n: fun(X)

        follow(world, warns=RANDOM_NUMBERS)

    def test_a_generator_of_numpy(self):
        def world(accelerate):
            rng = np.random.default_rng(0)

            @accelerate
            def fun(x):
                return x * rng.random()  # here

            return lambda n: fun(X)

        follow(world, warns=RANDOM_NUMBERS)

    def test_numbers_of_python(self):
        def world(accelerate):
            @accelerate
            def fun(x):
                return x + random.random()  # here

            return lambda n: fun(X)

        follow(world, warns=RANDOM_NUMBERS)

    def test_a_shuffle_of_python(self):
        def world(accelerate):
            @accelerate
            def fun(x):
                order = [2.0, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0]
                random.shuffle(order)
                return x * order[0] * 1.5  # here

            return lambda n: fun(X)

        follow(world, warns="two recordings differ: a constant of mul was")

    def test_the_time(self):
        fun = dlaccelerate(lambda x: x * 0 + time.perf_counter_ns())  # here
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            times = [fun(np.zeros(1)).item() for _ in range(5)]
        assert times == sorted(set(times))
        assert_warned(caught, "two recordings differ: a constant of add was .*Likely cause: .*the time")

    def test_a_counter(self):
        def world(accelerate):
            counter = itertools.count()

            @accelerate
            def fun(x):
                return x * np.float64(next(counter))  # here

            return lambda n: fun(X)

        follow(world, warns="two recordings differ: .*Likely cause: a counter")

    def test_an_id_that_is_made_anew(self):
        fun = dlaccelerate(lambda x: (x * 2, object()))
        fun(X)
        with pytest.warns(tj.NotAcceleratedWarning, match="an object that is made anew in each call"):
            fun(X)
        assert len({fun(X)[1] for _ in range(3)}) == 3

    def test_a_file(self, tmp_path):
        path = tmp_path / "rate"

        def world(accelerate):
            @accelerate
            def fun(x):
                return x * float(path.read_text())  # here

            def call(n):
                path.write_text(str(float(n)))
                return fun(X)

            return call

        follow(world, warns="two recordings differ: a constant of mul was 0.0, is 1.0")

    def test_a_file_that_changes_later(self, tmp_path):
        """Seen by the audit of the 8th call, and not before."""
        path = tmp_path / "rate"

        def world(accelerate):
            @accelerate
            def fun(x):
                return x * float(path.read_text())  # here

            def call(n):
                path.write_text("2.0" if n < 7 else "5.0")
                return fun(X)

            return call

        follow(world, warns="a constant of mul was 2.0, is 5.0 .*recorded again")

    def test_the_noise_of_the_reference_that_is_not_supported(self):
        """Replayed at once and compared: the same array twice, and a warning."""
        noise = dlaccelerate(lambda x: x + np.random.random(3), check_mode="tolerance", confirm=0)
        first = noise(X).tolist()
        with pytest.warns(tj.OutputsDifferWarning, match="^Accelerated outputs differ from underlying f"):
            assert noise(X).tolist() == first

    def test_the_noise_of_the_reference_that_is_supported(self):
        noise = dlaccelerate(lambda x: x + tj.rand(3, like=x), check_mode="tolerance", confirm=0)
        assert len({str(noise(X).tolist()) for _ in range(10)}) == 10
        assert noise.stats.hits >= 8


class TestRandomNumbers:
    def test_each_call_draws(self):
        follow(of(lambda x: x + tj.rand(3) * tj.randi(5, 3), X, -X), check_mode="tolerance")

    def test_dropout(self):
        follow(of(lambda x: (y := tj.dropout(x, 0.5), dlgradient(y.sum(), x)), X, np.ones(30)))

    def test_dropout_by_a_flag(self):
        fun = lambda x, training: tj.dropout(x, 0.5) if training else x * 1
        follow(of(fun, (X, True), (X, False)))

    def test_a_branch_on_a_random_number(self):
        follow(of(lambda x: x * tj.rand() if tj.rand() > 0.5 else -x, X), calls=40)

    def test_an_array_that_is_read_on_one_way_only(self):
        def world(accelerate):
            weights = np.full(3, 2.0)

            @accelerate
            def fun(x):
                x = x * tj.randi(3, 3)
                if x[0] > 0:
                    x = x * weights
                return tj.dropout(x, 0.5)

            return lambda n: fun(X)

        follow(world, calls=40)

    def test_the_state_is_restored(self):
        def world(accelerate):
            fun = accelerate(lambda x: x * tj.rand(3))

            def call(n):
                if n % 4 == 0:
                    tj.rng(n // 12)
                return fun(X), tj.rng().position

            return call

        follow(world)

    def test_the_state_after_an_audit_and_a_check(self):
        def world(accelerate):
            fun = accelerate(lambda x: x * tj.rand(3))
            return lambda n: (fun(X), tj.rng().position, tj.rng().seed)

        follow(world, check_mode="sample", check_every=3, calls=70)

    def test_a_generator_of_its_own(self):
        def world(accelerate):
            generator = tj.Generator(5)
            fun = accelerate(lambda x: x * tj.rand(3, generator=generator))

            def call(n):
                if n == 10:
                    tj.rng(7)
                return fun(X), tj.rand(2)

            return call

        follow(world)


class TestGlobals:
    def test_a_number(self):
        def world(accelerate):
            fun = accelerate(lambda x: x * RATE)

            def call(n):
                global RATE
                RATE = pick(n, 2.0, 3.0)
                return fun(X)

            return call

        follow(world)

    def test_the_type_of_a_number(self):
        def world(accelerate):
            fun = accelerate(lambda x: x * RATE)

            def call(n):
                global RATE
                RATE = pick(n, 1, True, 1.0, np.float64(1))
                return fun(np.arange(3))

            return call

        follow(world)

    def test_a_string_and_none(self):
        def world(accelerate):
            fun = accelerate(lambda x: x if RATE is None else x.sum() if RATE == "sum" else x.mean())

            def call(n):
                global RATE
                RATE = pick(n, "sum", "mean", None)
                return fun(X)

            return call

        follow(world)

    def test_an_array_in_place(self):
        def world(accelerate):
            fun = accelerate(lambda x: x * WEIGHTS)

            def call(n):
                WEIGHTS[:] = n
                return fun(X)

            return call

        (fun,) = follow(world, audit=False)
        assert fun.stats.traces == 2

    def test_an_array_of_another_kind(self):
        def world(accelerate):
            fun = accelerate(lambda x: x * WEIGHTS)

            def call(n):
                global WEIGHTS
                WEIGHTS = pick(n, np.ones(3), np.ones((2, 3)), np.ones(3, np.float32), 2.0, dlarray(X))
                return fun(X)

            try:
                return call
            finally:
                call(0)

        follow(world)

    def test_an_array_of_which_numpy_computes(self):
        def world(accelerate):
            fun = accelerate(lambda x: x * float(np.sum(WEIGHTS)) + WEIGHTS)

            def call(n):
                global WEIGHTS
                WEIGHTS = np.full(3, pick(n, 1.0, 2.0))
                return fun(X)

            return call

        follow(world)

    def test_a_name_that_is_deleted(self):
        def fun(x):
            try:
                return x * GONE
            except NameError:
                return -x

        def world(accelerate):
            accelerated = accelerate(fun)

            def call(n):
                global GONE
                GONE = 3.0
                if pick(n, False, True):
                    del GONE
                return accelerated(X)

            return call

        follow(world)

    def test_a_dict_and_its_order(self):
        def world(accelerate):
            fun = accelerate(lambda x: [x * TABLE[key] for key in TABLE])

            def call(n):
                TABLE.clear()
                TABLE.update(pick(n, {"a": 1.0, "b": 9.0}, {"b": 9.0, "a": 1.0}, {"a": 5.0}))
                return fun(X)

            return call

        follow(world)

    def test_a_function(self):
        def world(accelerate):
            fun = accelerate(lambda x: helper(x) * 2)

            def call(n):
                global helper
                helper = pick(n, lambda x: x + 1, lambda x: x * 7)
                return fun(X)

            return call

        follow(world)

    def test_a_function_of_a_module_that_is_patched(self, monkeypatch):
        module = types.ModuleType("patched")
        monkeypatch.setitem(sys.modules, "patched", module)

        def world(accelerate):
            @accelerate
            def fun(x):
                import patched

                return patched.scale(x)

            def call(n):
                module.scale = pick(n, lambda x: x * 2, lambda x: x - 5)
                return fun(X)

            return call

        follow(world)

    def test_code_that_is_replaced(self):
        def world(accelerate):
            def inner(x):
                return x * 2

            codes = [inner.__code__, (lambda x: x - 5).__code__]
            fun = accelerate(lambda x: inner(x) + 1)

            def call(n):
                inner.__code__ = pick(n, *codes)
                return fun(X)

            return call

        follow(world)

    def test_a_module_that_is_edited_and_reloaded(self, tmp_path, monkeypatch):
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        (tmp_path / "edited_trap.py").write_text("def scale(x):\n    return x * 2\n")
        module = importlib.import_module("edited_trap")

        def world(accelerate):
            fun = accelerate(lambda x: module.scale(x) + 1)

            def call(n):
                if n % 6 == 0:
                    factor = 2 + n
                    (tmp_path / "edited_trap.py").write_text(f"def scale(x):\n    return x * {factor}\n")
                    importlib.invalidate_caches()
                    importlib.reload(module)
                return fun(X)

            return call

        follow(world)


class TestClosures:
    def test_a_number(self):
        def world(accelerate):
            rate = 2.0
            fun = accelerate(lambda x: x * rate)

            def call(n):
                nonlocal rate
                rate = pick(n, 2.0, 3.0)
                return fun(X)

            return call

        follow(world)

    def test_an_array_in_place_and_another(self):
        def world(accelerate):
            weights = np.ones(3)
            fun = accelerate(lambda x: dlgradient((x * weights).sum(), x))

            def call(n):
                nonlocal weights
                weights[:] = n
                if n % 5 == 0:
                    weights = np.full(3, 1.0 + n)
                return fun(X)

            return call

        follow(world)

    def test_a_closure_inside_a_closure(self):
        def world(accelerate):
            rate = 2.0

            def outer(x):
                def middle(y):
                    def inner(z):
                        return z * rate

                    return inner(y) + 1

                return middle(x)

            fun = accelerate(outer)

            def call(n):
                nonlocal rate
                rate = pick(n, 2.0, 3.0)
                return fun(X)

            return call

        follow(world)

    def test_a_list_that_grows(self):
        def world(accelerate):
            parts = [X]
            fun = accelerate(lambda x: sum((x * part for part in parts), x))

            def call(n):
                if n % 6 == 5:
                    parts.append(X + n)
                return fun(X)

            return call

        follow(world)

    def test_a_list_that_the_function_changes_and_reads(self):
        def world(accelerate):
            seen = []

            @accelerate  # here
            def fun(x):
                seen.append(1)
                return x * len(seen)

            return lambda n: fun(X)

        follow(world, warns="it changes closure seen, which it also reads")

    def test_a_variable_that_the_function_counts_up(self):
        def world(accelerate):
            count = 0

            @accelerate  # here
            def fun(x):
                nonlocal count
                count += 1
                return x * count

            return lambda n: (fun(X), count)

        follow(world, warns="it changes closure count, which it also reads")

    def test_lambdas_of_one_line_are_told_apart(self):
        def world(accelerate):
            funs = [accelerate(lambda x, k=k: x * k) for k in (2.0, 3.0, 4.0)]
            return lambda n: funs[n % 3](X)

        follow(world)


class TestArguments:
    def test_defaults_and_keywords(self):
        def world(accelerate):
            @accelerate
            def fun(x, rate=2.0, *, shift=1.0):
                return x * rate + shift

            return lambda n: pick(
                n,
                lambda: fun(X),
                lambda: fun(X, shift=3.0),
                lambda: fun(shift=1.0, x=X),
                lambda: fun(X, 2.0),
                lambda: fun(X, rate=5.0),
            )()

        (fun,) = follow(world, calls=30, audit=False)
        assert fun.stats.traces == 10  # left out, 3.0, given by its name, 2.0, 5.0

    def test_defaults_that_are_replaced(self):
        def world(accelerate):
            def plain(x, rate=2.0):
                return x * rate

            fun = accelerate(plain)

            def call(n):
                plain.__defaults__ = (pick(n, 2.0, 3.0),)
                return fun(X)

            return call

        follow(world)

    def test_a_default_that_is_changed(self):
        def world(accelerate):
            def plain(x, scales=[1.0]):  # noqa: B006
                return x * scales[0]

            fun = accelerate(plain)

            def call(n):
                plain.__defaults__[0][0] = pick(n, 2.0, 3.0)
                return fun(X)

            return call

        follow(world)

    def test_partial(self):
        def world(accelerate):
            weights = np.ones(3)
            fun = accelerate(functools.partial(lambda w, x, k: x * w * k, weights, k=2.0))

            def call(n):
                weights[:] = n
                return fun(X)

            return call

        follow(world)

    def test_values_select_and_numbers_become_inputs(self):
        fun = lambda x, rate: x * rate
        made = follow(of(fun, *[(X, n / 4) for n in range(12)]), calls=36, audit=False)
        assert made[0].stats.uncompiled == 0

    def test_changing_numbers_do_not_promote_float32(self):
        x = X.astype(np.float32)
        follow(
            of(lambda x, rate: (x * rate, x + 2 * rate), *[(x, n / 4) for n in range(12)]),
            calls=36,
            audit=False,
        )

    def test_integers_and_floats_are_not_one_number(self):
        follow(of(lambda x, n: x * n, *[(np.arange(3), n) for n in (1, 1.0, True, 2, 2.0, 3, 3.0, 4, 4.0)]))

    def test_a_changing_number_that_decides(self):
        fun = lambda x, rate: x * rate if rate > 2 else x - rate
        follow(of(fun, *[(X, float(n)) for n in range(6)]), calls=36)

    def test_nan_and_negative_zero_as_numbers(self):
        fun = lambda x, rate: (x * rate, 1 / (x * rate + 0.0))
        with np.errstate(all="ignore"):
            follow(of(fun, (X, float("nan")), (X, 0.0), (X, -0.0), (X, float("nan")), (X, float("inf"))))

    def test_the_order_of_a_dict(self):
        fun = lambda d: [value * n for n, value in enumerate(d.values())]
        follow(of(fun, {"a": X, "b": -X}, {"b": -X, "a": X}))

    def test_formats_and_dtypes(self):
        square = np.arange(4.0).reshape(2, 2)
        fun = lambda x: (x * 2, getattr(x, "format", None))
        follow(of(fun, *[dlarray(square, f) for f in ("CB", "SC", "SS", None)], square.astype(np.float32)))

    def test_one_buffer_twice(self):
        fun = lambda a, b: (a * b, dlgradient((a * b).sum(), a))
        follow(of(fun, (X, X), (X, X.copy()), (X, X[::-1])))

    def test_overlapping_views(self):
        long = np.arange(9.0)
        follow(of(lambda a, b: (a + b, b * 2), (long[:5], long[2:7]), (long[4:], long[:5]), (long[:5],) * 2))

    @pytest.mark.parametrize(
        "made",
        [
            lambda x: x[::-1, ::-1],
            lambda x: np.broadcast_to(x[0], x.shape),
            np.asfortranarray,
            lambda x: x.T.copy().T,
            lambda x: np.repeat(x, 2, axis=1)[:, ::2],
            lambda x: x.astype(">f8"),
            lambda x: np.frombuffer(b"1" + x.tobytes(), np.uint8)[1:].view(float).reshape(x.shape),
        ],
        ids=["negative", "zero", "fortran", "transposed", "strided", "big-endian", "unaligned"],
    )
    def test_layouts(self, made):
        x = np.arange(12.0).reshape(3, 4)
        fun = lambda x: (x * 2, x.sum(axis=0), x @ x.T, dlgradient((x**2).sum(), x))
        follow(of(fun, x, made(x), made(-x), x + 1))

    def test_an_argument_that_is_written_to_inside(self):
        def fun(x):
            x[0] = 7.0
            return x * 2

        follow(of(fun, X, -X))

    def test_a_dict_that_is_changed_inside(self):
        def world(accelerate):
            @accelerate
            def fun(d):
                d["a"] = d["a"] * 2
                return d["a"], d

            given = {"a": X}
            return lambda n: (fun(given), sorted(given), given["a"])

        follow(world)

    def test_an_argument_that_is_written_to_outside(self):
        def world(accelerate):
            x = X.copy()
            fun = accelerate(lambda x: (x, x * 2, [x]))

            def call(n):
                x[:] = n
                result = fun(x)
                return result if fun.enabled else copy.deepcopy(result)  # the plain function returns x itself

            return call

        follow(world)

    def test_an_object_is_refused(self):
        class Model:
            rate = 2.0

        fun = dlaccelerate(lambda model, x: x * model.rate)
        with pytest.raises(tj.ArgumentError, match="Model"):
            fun(Model(), X)


class TestOutputs:
    def test_of_several_calls_are_several_arrays(self):
        fun = dlaccelerate(lambda x: (x * 2, x, np.ones(3), dlarray(np.ones(3))))
        kept = []
        for n in range(12):
            kept.append(fun(X + n))
            arrays = [np.asarray(part) for result in kept for part in result]
            assert not any(np.shares_memory(a, b) for a, b in itertools.combinations(arrays, 2))

    def test_a_result_that_is_written_to(self):
        fun = dlaccelerate(lambda x: (x * 2, np.full(3, 5.0), x))
        for n in range(12):
            for part in fun(X + n):
                np.asarray(tj.extractdata(part) if isinstance(part, dlarray) else part)
            results = fun(X + n)
            assert np.asarray(results[1]).tolist() == [5.0] * 3
            for part in results:
                data = tj.extractdata(part) if isinstance(part, dlarray) else part
                if data.flags.writeable:
                    data[:] = 99.0
            assert X.tolist() == [1.0, -2.0, 3.0]

    def test_a_view_of_a_dropped_result_stays(self):
        fun = dlaccelerate(lambda x: x * 2)
        views = [tj.extractdata(fun(X * n))[1:] for n in range(12)]
        assert [view.tolist() for view in views] == [[-4.0 * n, 6.0 * n] for n in range(12)]

    def test_a_result_that_comes_back_as_argument(self):
        def world(accelerate):
            fun = accelerate(lambda w, x: w - 0.1 * dlgradient(((w * x) ** 2).sum(), w))
            w = dlarray(X)

            def call(n):
                nonlocal w
                w = fun(w, X)
                return w

            return call

        follow(world)

    def test_containers_are_made_anew(self):
        def world(accelerate):
            fun = accelerate(lambda x: {"a": [x * 2], "n": (1, None)})

            def call(n):
                result = fun(X)
                copied = copy.deepcopy(result)
                result["a"].append(n)
                return copied

            return call

        follow(world)


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

        follow(world, warns=r"it changes self\.count, which it also reads.*Pass it as an argument")

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
            return lambda n: (model.call(X + n), model.mean)

        follow(world, warns="it changes self.mean, which it also reads")


class TestErrors:
    def failing_at(self, *places, **options):
        """Return a function that fails in its n-th runs, and where these are counted."""
        runs = itertools.count(1)  # not what a function is seen to read
        made = []

        def fun(x):
            count(next(runs))
            return x * 2

        def count(n):
            made.append(n)
            if n in places:
                raise ValueError(f"run {n}")

        return dlaccelerate(fun, **options), made

    def test_in_the_first_call(self):
        fun, runs = self.failing_at(1)
        with pytest.raises(ValueError, match="run 1"):
            fun(X)
        assert (fun.occupancy, fun.stats.traces) == (0.0, 0)
        assert [fun(X * n)[0].item() for n in range(4)] == [0.0, 2.0, 4.0, 6.0] and len(runs) == 3

    def test_in_the_confirmation(self):
        fun, runs = self.failing_at(2)
        fun(X)
        with pytest.raises(ValueError, match="run 2"):
            fun(X)
        assert [fun(X * n)[0].item() for n in range(4)] == [0.0, 2.0, 4.0, 6.0] and len(runs) == 3

    def test_in_an_audit(self):
        fun, _ = self.failing_at(3)
        for n in range(7):
            assert fun(X * n)[0].item() == 2.0 * n
        with pytest.raises(ValueError, match="run 3"):
            fun(X)
        for n in range(20):
            assert fun(X * n)[0].item() == 2.0 * n

    def test_in_a_replay(self):
        fun = dlaccelerate(lambda a, i: a[i] * 2)
        for n in range(3):
            assert fun(X, np.array([n])).item() == X[n] * 2
        with pytest.raises(IndexError, match=r"out of (range|bounds)"):
            fun(X, np.array([3]))
        assert fun(X, np.array([1])).item() == -4.0

    def test_in_a_function_that_is_recorded_inside(self):
        inner, _ = self.failing_at(2)
        outer = dlaccelerate(lambda x: inner(x) + 1)
        assert outer(X)[0].item() == 3.0
        with pytest.raises(ValueError, match="run 2"):
            outer(X)
        assert [outer(X * n)[0].item() for n in range(4)] == [1.0, 3.0, 5.0, 7.0]

    def test_an_array_that_is_kept(self):
        kept = []
        fun = dlaccelerate(lambda x: kept.append(x * 2) or x + 1)
        fun(X)
        with pytest.raises(tj.TraceError, match="is used after that evaluation ended"):
            kept[0] + 1


class TestCalls:
    def test_a_function_that_calls_itself(self):
        def world(accelerate):
            @accelerate
            def power(x, n):
                return x if n == 0 else power(x, n - 1) * x

            return lambda n: power(X, n % 4)

        follow(world)

    def test_a_function_that_is_called_again_by_what_it_calls(self):
        """From another thread, so that the inner call records by itself while the outer one does."""

        def fun(x, again):
            if again:
                thread = threading.Thread(target=lambda: fast(np.ones(7), False))
                thread.start()
                thread.join()
            return x * 2

        fast = dlaccelerate(fun)
        for n in range(6):
            assert fast(X * n, True)[0].item() == 2.0 * n

    def test_accelerated_functions_inside_each_other(self):
        def world(accelerate):
            inner = accelerate(lambda x: x * RATE if x.sum() > 0 else -x)
            outer = accelerate(lambda x: inner(x) + inner(-x) * 3)

            def call(n):
                global RATE
                RATE = pick(n, 2.0, 2.0, 4.0)
                return pick(n, outer, inner)(pick(n, X, X, -X))

            return call

        follow(world, calls=48)

    def test_an_evaluation_around(self):
        def world(accelerate):
            fun = accelerate(lambda x: (x**3).sum() if x.sum() > 0 else (x**2).sum())

            def slope(x):
                y = fun(x)
                return y, dlgradient(y, x)

            return lambda n: dlfeval(slope, pick(n, X, -X))

        follow(world)

    def test_evaluated_by_itself(self):
        def world(accelerate):
            fun = accelerate(lambda x: dlgradient((x**3).sum(), x))
            return lambda n: dlfeval(fun, X * n)

        follow(world)

    def test_generators_are_refused(self):
        def generate(x):
            yield x

        with pytest.raises(tj.ArgumentError, match="is a generator; accelerate the function that makes one"):
            dlaccelerate(generate)

    def test_async_is_refused(self):
        async def fun(x):
            await asyncio.sleep(0)
            return x

        with pytest.raises(tj.ArgumentError, match="is async; accelerate the functions it awaits"):
            dlaccelerate(fun)

    def test_threads_at_once(self):
        weights = np.ones(3)
        fun = dlaccelerate(lambda x: x * weights if x.sum() > 0 else -x)
        wrong = []

        def work(sign):
            for n in range(1, 40):
                x = X * (sign * n)
                expected = x if sign > 0 else -x
                if fun(x).tolist() != expected.tolist():
                    wrong.append(n)

        threads = [threading.Thread(target=work, args=(sign,)) for sign in (1, -1) * 4]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong and fun.stats.uncompiled == 0

    def test_pickled_by_name_without_traces(self):
        for n in range(4):
            pickled(X * n)
        assert pickle.loads(pickle.dumps(pickled)) is pickled

    def test_copied_without_traces(self):
        fun = dlaccelerate(lambda x: x * 2)
        for n in range(4):
            fun(X * n)
        other = copy.deepcopy(fun)
        assert (other.occupancy, other.stats.calls) == (0.0, 0)
        assert other(X).tolist() == fun(X).tolist() and fun.stats.calls == 5

    def test_programs_are_freed(self):
        fun = dlaccelerate(lambda x: x * 2)
        for _ in range(4):
            fun(X)
        (trace,) = [known for entry in fun._cache.variants.values() for known in entry.traces]
        gone = weakref.ref(trace)
        del trace, fun
        gc.collect()
        assert gone() is None

    def test_no_warning_twice(self):
        """One cause, many keys: the same line reads another number in each call."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fun = dlaccelerate(lambda x: x + random.random())  # here
            for size in (1, 2, 3, 1, 2, 3, 1, 2, 3):
                fun(np.ones(size))
        assert_warned(caught, RANDOM_NUMBERS)

    def test_a_loop_that_must_not_record_says_so(self):
        def world(accelerate):
            fun = accelerate(lambda x: x * RATE)
            for _ in range(3):
                fun(X)

            def call(n):
                with tj.set_policy("error-on-retrace"):
                    return fun(X * n)

            return call

        follow(world)


@dlaccelerate
def pickled(x):
    return x * 2


BODIES = [
    "h = np.zeros(3); h[:] = G; return h * x + G",
    "h = np.zeros((2, 3)); h[0] = G; return h * x + G",
    "h = np.zeros((2, 3))\nfor i in range(2): h[i] = G\nreturn h * x + G",
    "h = np.zeros((2, 3)); v = h[1]; v[:] = G; return h * x + G",
    "h = np.zeros(3); h.put([0, 1, 2], G); return h * x + G",
    "h = np.zeros(3); h.__setitem__(slice(None), G); return h * x + G",
    "h = np.zeros(3); operator.setitem(h, slice(None), G); return h * x + G",
    "h = np.zeros(3); np.copyto(h, G); return h * x + G",
    "k = G; h = np.empty(3); np.multiply(k, 2, h); return h * x + G",
    "h = np.concatenate([G, G]); return h[:3] * x + G",
    "h = np.stack((G, G)); return h * x + G",
    "h = np.array([G, G]); return h * x + G",
    "h = np.array([*G]); return h * x + G",
    "h = np.array([g * 2 for g in G]); return h * x + G",
    "h = np.array(list(map(float, G))); return h * x + G",
    "h = np.frombuffer(bytes(G)); return h * x + G",
    "h = np.array(list(itertools.chain(G, G)))[:3]; return h * x + G",
    "r = np.zeros(3, [('a', float)]); r['a'] = G; return r['a'] * x + G",
    "o = np.empty(2, object); o[:] = [G, G]; return np.add(o[0], o[1]) * x + G",
    "h = functools.reduce(operator.add, [G, G]); return h * x + G",
    "h = np.zeros(3)\nfor k in [G]: h += k\nreturn h * x + G",
    "for k in [G]: x = x * k / np.linalg.norm(k)\nreturn x",
    "for k in (G,): x = x * k / k.sum()\nreturn x",
    "for k in (G,): x = x * k * float(k[0])\nreturn x",
    "for k in (G,): x = x * k * float(k[0]) * 1.0\nreturn x",
    "for k in (G,): x = x * k * k[0].item() * 1.0\nreturn x",
    "for k in (G,): x = x * k * k.tolist()[0] * 1.0\nreturn x",
    "for k in (G,): x = x * k / max(k)\nreturn x",
    "for k in (G,): x = x * k * (k > 3)\nreturn x",
    "for k in (G,): x = x * k if k[0] > 1.5 else x - k\nreturn x",
    "for k in (G,): x = x * k if np.any(k > 3) else x - k\nreturn x",
    "for k in (G,):\n    for _ in range(int(k[0])): x = x * k\nreturn x",
    "for k in (G,): x = x * k\nreturn x, k.sum()",
    "for k in (G,): x = x * k\nreturn x, f'{k[1]:.1f}'",
    "for i, g in enumerate(G): x = x + i * g\nreturn x + G",
    "for a, b in zip(G, G): x = x + a * b\nreturn x + G",
    "a, b, c = G; return a * x + G",
    "t = tuple(G); return x * t[0] + G",
    "k = G if x.size else x; return x * np.sum(k) + k",
    "d = {'w': G}; return x * np.sum(d['w']) + d['w']",
    "d = [G]; return x * d[0].sum() + d[0]",
    "d = {i: g for i, g in enumerate(G)}; return x * d[0] + G",
    "k = G; s = k.sum(); del k; return x * s + G",
    "m = memoryview(G); return x * m[0] + G",
    "h = np.asarray(G); return x * h + h.sum()",
    "h = G[:2]; return x * h.sum() + G",
    "h = G.reshape(3, 1); return x * h.sum() + G",
    "return x * next(iter(G)) + G",
    "return x * sum(k.sum() for k in [G]) + G",
    "return x * functools.partial(np.sum, G)() + G",
    "return x * G[[0, 1, 2]] + G",
    "return x * (k := G).sum() + k",
]


class TestArraysThatNumPyReads:
    """What NumPy makes of a captured array that the trace reads too, however it gets there."""

    @pytest.mark.parametrize("body", BODIES)
    def test_changed_in_place(self, body):
        def world(accelerate):
            names = {"np": np, "G": np.ones(3), "itertools": itertools, "operator": operator}
            names["functools"] = functools
            lines = "\n".join(f"    {line}" for line in body.split("\n"))
            exec(compile(f"def fun(x):\n{lines}", "<trap>", "exec"), names)
            fun = accelerate(names["fun"])

            def call(n):
                names["G"][:] = pick(n, [1, 2, 3.5], [2, 4, 3.5], [5, 10, 8])
                return fun(X)

            return call

        follow(world, audit=False)

    def test_arrays_that_change_places(self):
        """A sum over both is what it was, and shows nothing."""

        def world(accelerate):
            weights = [np.ones(3), np.ones(3)]
            fun = accelerate(lambda x: sum(x * w for w in weights) + sum(float(w.sum()) for w in weights))

            def call(n):
                weights[n % 2][:] = pick(n, [1, 2, 3.5], [2, 4, 3.5], [5, 10, 8])
                return fun(X)

            return call

        follow(world, audit=False, replays=False)

    @pytest.mark.parametrize(
        "body",
        [
            "for w in weights: x = x @ w / np.linalg.norm(w)\nreturn x",
            "return (x @ np.concatenate(weights, axis=1))[:50] + x @ weights[1]",
            "for w in weights: x = x @ (w * (abs(w) > 0.5)) + x @ w\nreturn x",
            "for w in weights: x = x @ w + x @ w.astype(np.float32)\nreturn x",
            "for w in weights: x = x @ w * w[3, 4]\nreturn x",
        ],
    )
    def test_large_ones(self, body):
        def world(accelerate):
            rng = np.random.default_rng(0)
            names = {"np": np, "weights": [rng.normal(size=(50, 50)) for _ in range(2)]}
            lines = "\n".join(f"    {line}" for line in body.split("\n"))
            exec(compile(f"def fun(x):\n{lines}", "<trap>", "exec"), names)
            fun = accelerate(names["fun"])
            states, x = rng.normal(size=(3, 50, 50)), rng.normal(size=50)

            def call(n):
                names["weights"][1][:] = pick(n, *states)
                return fun(x)

            return call

        follow(world, audit=False)

    def test_weights_in_training_are_let_go(self):
        """A constant is made beside them, and they change at each call: the second recording tells them apart."""

        def world(accelerate):
            weights = [np.ones((3, 3)), np.zeros(3), np.ones((3, 3))]

            @accelerate
            def fun(x):
                mask = np.tril(np.ones((3, 3)))
                for w in weights:
                    x = x * mask[2] @ w if w.ndim == 2 else x + w
                return x

            def call(n):
                for w in weights:
                    w += 0.1 + n
                return fun(X)

            return call

        (fun,) = follow(world, audit=False)
        assert (fun.stats.traces, fun.stats.uncompiled) == (2, 0)

    def test_an_element_that_stays_while_others_change(self):
        """Two of three elements make no difference; the third does."""

        def world(accelerate):
            weights = [np.ones(3), np.ones(3)]
            inner = accelerate(lambda x: sum(x * w * float(w[0]) for w in weights).sum())

            def slope(x):
                y = inner(x)
                return y, dlgradient(y, x)

            def call(n):
                weights[n % 2][:] = pick(n, [1, 2, 3.5], [2, 4, 3.5], [5, 10, 8])
                return dlfeval(slope, dlarray(X)), inner(X)

            return call

        follow(world, audit=False, replays=False)

    def test_indices(self):
        def world(accelerate):
            places = [np.array([0, 1, 2])]

            @accelerate
            def fun(x):
                for place in places:
                    x = x[place] + x[place[0]]
                return x

            def call(n):
                places[0][:] = pick(n, [0, 1, 2], [2, 1, 0], [1, 1, 1])
                return fun(X)

            return call

        follow(world, audit=False)

    def test_embeddings_of_which_some_rows_change(self):
        def world(accelerate):
            tables = [np.ones((4, 3)), np.ones((4, 3))]
            fun = accelerate(lambda x: sum(x * table[1] for table in tables) * np.float64(3.0))

            def call(n):
                tables[n % 2][n % 4] += 1.0
                return fun(X)

            return call

        (fun,) = follow(world, audit=False, calls=40)
        assert fun.stats.uncompiled == 0 and fun.stats.hits > 20


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
            (dict, lambda n: {"w": np.array(rows(n))}, lambda own, x: x * own["w"] + own["w"].max()),
        ],
    )
    def test_classes_derived_from_those_of_python(self, base, given, read):
        def make():
            kind = type(f"Own{base.__name__}", (base,), {})
            state = types.SimpleNamespace()
            return lambda x: read(state.own, x), lambda n: setattr(state, "own", kind(given(n)))

        self.follow(make)

    def test_a_dict_of_which_keys_are_attributes(self):
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

    def test_memory_of_which_only_the_size_is_read(self, tmp_path):
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


class TestCaches:
    """What functools.lru_cache remembers."""

    @pytest.mark.parametrize("cache", [functools.cache, functools.lru_cache, functools.lru_cache(maxsize=2)])
    def test_that_is_cleared(self, cache):
        def world(accelerate):
            scales = [1.0]

            @cache
            def scale(n):
                return scales[0] * n

            fun = accelerate(lambda x: x * scale(2))

            def call(n):
                scales[0] = pick(n, 1.0, 2.0, 5.0)
                if n % 6 == 0:
                    scale.cache_clear()
                if n % 12 == 0:
                    scale(2)
                return fun(X)

            return call

        follow(world, audit=False)

    def test_that_is_full(self):
        def world(accelerate):
            scales = [1.0]

            @functools.lru_cache(maxsize=2)
            def scale(n):
                return scales[0] * n

            scale(1)
            fun = accelerate(lambda x: x * scale(1))

            def call(n):
                scales[0] = pick(n, 1.0, 2.0, 5.0)
                if n % 3 == 0:
                    scale(5), scale(6), scale(1)
                return fun(X)

            return call

        follow(world, audit=False)

    @pytest.mark.parametrize(
        "body",
        [
            "x * made(3)",
            "x * made(3).sum()",
            "x * made(3).sum() + made(3)",
            "x * made(3).copy()",
            "x * made(3)[::2].max()",
        ],
    )
    def test_of_arrays_that_are_written_to(self, body):
        def world(accelerate):
            made = functools.lru_cache(np.ones)
            fun = accelerate(eval(f"lambda x: {body}", {"made": made}))

            def call(n):
                made(3)[:] = pick(n, [1, 2, 3.5], [2, 4, 3.5], [5, 10, 8])
                return fun(X)

            return call

        follow(world, audit=False)

    def test_of_objects_that_change(self):
        def world(accelerate):
            parts = functools.cache(lambda: ([1.0], {"b": 2.0}, Point(3.0, 4.0)))
            fun = accelerate(lambda x: x * parts()[0][0] + parts()[1]["b"] * parts()[2].a)

            def call(n):
                parts()[0][0], parts()[1]["b"], parts()[2].a = rates(n), rates(n // 2), rates(n // 3)
                return fun(X)

            return call

        follow(world, audit=False, calls=30, replays=False)

    def test_of_a_large_table(self):
        """Its elements are not compared; that it is remembered is."""
        table = functools.cache(lambda: {str(n): float(n) for n in range(2000)})
        fun = dlaccelerate(lambda x: x * table()["7"])
        for _ in range(4):
            assert fun(X).tolist() == (X * 7).tolist()
        assert len(fun._cache.last_trace.state.guards()) < 10
        table.cache_clear()
        fun(X)
        assert (fun.stats.traces, fun.stats.uncompiled) == (3, 0)

    def test_of_a_method(self):
        def world(accelerate):
            class Model:
                rate = 1.0

                @functools.lru_cache  # noqa: B019
                def scale(self):
                    return self.rate

            model = Model()
            model.scale()
            fun = accelerate(lambda x: x * model.scale())

            def call(n):
                model.rate = pick(n, 1.0, 2.0, 5.0)
                if n % 6 == 0:
                    Model.scale.cache_clear()
                return fun(X)

            return call

        follow(world, audit=False)


class TestDraws:
    """Two recordings may draw the same, or come to the same by what they draw: a replay would draw nothing."""

    DREW = "it draws from a .*, which a replay would not do, although two recordings agreed"

    @pytest.mark.parametrize(
        ("fun", "seed"),
        [
            (lambda x: x * np.random.rand(3), np.random.seed),  # here
            (lambda x: x * random.random(), random.seed),  # here
        ],
    )
    def test_seeded_before_each_call(self, fun, seed):
        def world(accelerate):
            fast = accelerate(fun)

            def call(n):
                seed(n // 3)
                return fast(X)

            return call

        follow(world, audit=False, warns=self.DREW)

    def test_a_generator_that_is_set_back(self):
        def world(accelerate):
            rng = np.random.default_rng(0)
            states = [np.random.default_rng(n).bit_generator.state for n in range(3)]
            fun = accelerate(lambda x: x * rng.normal(size=3))  # here

            def call(n):
                rng.bit_generator.state = pick(n, *states)
                return fun(X)

            return call

        follow(world, audit=False, warns=self.DREW)

    def test_a_way_that_is_taken_mostly(self):
        def world(accelerate):
            random.seed(4)
            fun = accelerate(lambda x: x * 2 if random.random() < 0.9 else x)  # here
            return lambda n: fun(X)

        follow(world, audit=False, warns=self.DREW, calls=60)

    def test_a_seed_inside(self):
        """Is drawn from anew in each call, and so is what was drawn: a constant."""

        def world(accelerate):
            @accelerate
            def fun(x):
                np.random.seed(RATE > 0)
                return x * np.random.rand(3) * np.random.default_rng(5).random()

            return lambda n: fun(X)

        follow(world, audit=False)
