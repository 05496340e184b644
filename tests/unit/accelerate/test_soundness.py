# SPDX-License-Identifier: BSD-3-Clause
"""An accelerated function gives what the plain one gives, or says why it runs uncompiled."""

import itertools
import math
import queue
import re
import threading
import time

import numpy as np
import pytest
from counted_runs import counts_runs
from uncompiled import assert_same, follow, plain, vector, warned

import tracejit as tj
from tracejit import (
    ChangedTraceWarning,
    NotAcceleratedWarning,
    OutputsDifferWarning,
    TraceError,
    dlaccelerate,
    dlarray,
    dlfeval,
    dlgradient,
)
from tracejit.record import guards

VECTORS = [
    vector(1, 2),
    vector(1, 2),
    vector(-3, 1),
    vector(-3, 1),
    vector(4, -1),
    vector(1, 2),
    vector(-3, 1),
]


class TestDecisions:
    @pytest.mark.sampled
    @pytest.mark.parametrize(
        "fun",
        [
            lambda x: x if x.sum() > 0 else -x,
            lambda x: x * 2 if (x > 0).all() and x[0] else -x,
            lambda x: not x[0],
            lambda x: sorted(x),
            lambda x: max(x[0], x[1]) * x,
            lambda x: x if x[0] in [x[1], dlarray(1.0)] else -x,
            lambda x: x if 4.0 in x else -x,
            lambda x: x * float(x[0]),
            lambda x: math.exp(x[0]) * x,
            lambda x: complex(x[0]),
            lambda x: [x * i for i in range(abs(int(x[0])))],
            lambda x: [x * i for i in range(x.astype(int)[1] + 2)],
            lambda x: x * [0, 1, 2][x.astype(int)[1]],
            lambda x: x[: x.astype(int)[1] + 2] * 2,
            lambda x: np.tile(x, abs(x.astype(int)[0])),
            lambda x: x * x[0].item(),
            lambda x: x * x.item(1),
            lambda x: x.reshape(2, 1).item(1) * x,
            lambda x: x.reshape(2, 1).item(1, 0) * x,
            lambda x: x * x.tolist()[0],
            lambda x: (f"{x[0]:.3f}", x * 2),
            lambda x: np.arange(9.0)[x.astype(int)] * x,
            lambda x: np.from_dlpack(x) * x,
            lambda x: x + np.arctan(tj.extractdata(x)),
            lambda x: tj.arange(x.astype(int)[1] + 3) * x[0],
            lambda x: x if np.allclose(x, [1.0, 2.0]) else -x,
            lambda x: x if np.array_equal(x, [1.0, 2.0]) else -x,
            lambda x: tj.onehotencode(x, 1),
        ],
    )
    def test_follow_the_values(self, fun):
        accelerated = follow(fun, VECTORS * 3)
        assert accelerated.stats.uncompiled == 0 and accelerated.stats.hits > 0
        within = lambda x: plain(dlfeval(lambda y: accelerated(y), x))
        for x in VECTORS:
            assert_same(within(x), dlfeval(fun, x))

    def test_a_branch_has_two_traces(self):
        fun = follow(lambda x: x * 2 if x.sum() > 0 else -x, VECTORS * 3)
        assert (fun.stats.traces, fun.stats.hits, fun.stats.programs, fun.occupancy) == (
            5,
            16,
            2,
            2.0,
        )  # one audit

    def test_while(self):
        def fun(x):
            while x[0] < 10:
                x = x * 2
            return x, dlgradient(x.sum(), x)

        accelerated = follow(fun, [vector(2.0**n) for n in (0, 1, 2, 0, 1, 2) * 3], audit=False)
        assert accelerated.stats.traces == 6 and accelerated.stats.hits == 12

    def test_of_what_is_computed_and_of_integers(self):
        follow(lambda x: x if dlgradient((x**2).sum(), x)[0] > 0 else -x, VECTORS * 2)
        follow(lambda x, n: x if n > 0 else -x, [(vector(1), np.array(n)) for n in (3, 3, -1, -1, 5, 3, -2)])

    @pytest.mark.parametrize(
        "values", [(0.0, -0.0), (math.nan, 1.0), (math.inf, -math.inf), (math.nan, -math.nan), (5e-324, 0.0)]
    )
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_numbers_of_every_kind(self, values, dtype):
        fun = lambda x: (x * 2, math.copysign(1.0, x[0]) if not math.isnan(x[0]) else "nan")
        accelerated = follow(fun, [np.array([v], dtype) for v in values * 6], audit=False)
        assert accelerated.stats.traces <= 4

    def test_what_is_taken_of_an_integer_part(self):
        fun = follow(
            lambda x: x * [5, 6, 7][int(x[0])],
            [vector(v) for v in (1.2, 1.7, 1.9, -0.5, 0.5, 0.9, 1.1)],
            audit=False,
        )
        assert fun.stats.traces == 4

    def test_several_outcomes_are_told_apart(self):
        def fun(x):
            y = x * 2 if x[0] > 0 else x * 3
            return y + 1 if x[1] > 0 else y - 1

        calls = [vector(*signs) for signs in itertools.product((1, -1), repeat=2)] * 4
        accelerated = follow(fun, calls, audit=False)
        assert accelerated.stats.programs == 4 and accelerated.stats.traces == 8

    def test_an_index_out_of_range_in_a_variant_that_does_not_apply(self):
        fun = lambda a, i: a[i] * 2 if (i < 2).all() else -a
        follow(
            fun, [(vector(1, 2), np.array([n])) for n in (0, 1, 5, 7, 0, 5, 100_000)], confirm=0, audit=False
        )

    def test_an_error_that_is_caught(self):
        def fun(a, i):
            try:
                return a[i] * 2
            except IndexError:
                return -a

        a = vector(1, 2)
        accelerated = dlaccelerate(fun)
        with pytest.warns(
            NotAcceleratedWarning, match="take met an index out of range at .*Check indices outside"
        ):
            assert accelerated(a, np.array([5])).tolist() == [-1.0, -2.0]
        for place in (1, 7, 0):
            assert_same(accelerated(a, np.array([place])), dlfeval(fun, a, np.array([place])))

    def test_nothing_is_recorded_of_an_array_that_does_not_belong_to_the_trace(self):
        flag = dlarray(1.0)
        fun = follow(lambda x: x * 2 if flag else x, VECTORS)
        assert fun.stats.programs == 1

    def test_many_values(self):
        fun = dlaccelerate(lambda x: x + tj.extractdata(x))
        text = r"extractdata takes 1000 values out of the trace at .*test_soundness.py:\d+\. Up to 256 are compared"
        with pytest.warns(NotAcceleratedWarning, match=text):
            fun(np.ones(1000))
        assert fun(np.full(1000, 3.0)).tolist() == [6.0] * 1000 and fun.stats.uncompiled == 1

    def test_refused_in_an_evaluation_too(self):
        class Held:
            array = staticmethod(np.array)  # which a recording does not exchange

        fun = dlaccelerate(lambda x: Held.array([x[0], 1.0]))
        with pytest.raises(TraceError, match="would silently drop its derivative"):
            fun(vector(1))
        assert fun.occupancy == 0.0


class TestSizes:
    @pytest.mark.parametrize(
        ("fun", "programs"),
        [
            (lambda x: x[x > 0] * 2, 2),
            (lambda x: x.reshape(3, 2)[x.reshape(3, 2) > 0], 2),
            (lambda x: x.reshape(3, 2)[x[::2] > 0, 1] + 1, 2),
            (lambda x: [places + 0 for places in np.nonzero(x.reshape(3, 2))], 2),
            (lambda x: x[np.nonzero(x > 1)[0]].sum(), 1),  # a sum is the same where nothing is selected
            (lambda x: (x[x > 0] ** 2).mean() if (x > 0).any() else x.sum(), 2),
            (lambda x: dlgradient((x[x > 0] ** 2).sum(), x), 1),
        ],
    )
    def test_of_a_selection(self, fun, programs):
        numbers = np.array([[1, -1, 2, -2, 3, -3], [-1, 1, -2, 2, 3, 0], [-1, -1, -1, -1, -1, 1], [0.0] * 6])
        calls = [numbers[i] for i in (0, 1, 0, 2, 2, 1, 0, 2, 3, 3, 3, 1)]
        accelerated = follow(fun, calls)
        assert accelerated.stats.uncompiled == 0 and accelerated.stats.programs >= programs

    def test_the_number_of_places_counts_and_not_where_they_are(self):
        calls = [np.roll(np.array([1.0, 2.0, -1.0, -2.0]), n) for n in range(4)]
        assert follow(lambda x: x[x > 0], calls).stats.traces == 2


class TestErrorsOfFloatingPoint:
    @pytest.mark.parametrize("setting", ["raise", "call"])
    @pytest.mark.parametrize("make", [np.array, lambda numbers: dlarray(np.array(numbers))])
    def test_raised_at_each_call(self, make, setting):
        told = []

        def fun(x):
            with np.errstate(divide=setting, call=lambda kind, flag: told.append(kind)):
                try:
                    return 1 / x
                except FloatingPointError as error:
                    return str(error)

        accelerated = dlaccelerate(fun)
        with pytest.warns(
            NotAcceleratedWarning, match=rf'computes under np.errstate\(divide="{setting}"\) at'
        ):
            accelerated(make([1.0, 2.0]))
        for numbers in ([1.0, 2.0], [0.0, 2.0], [0.0, 1.0], [4.0, 2.0]):
            found, expected = accelerated(make(numbers)), fun(np.array(numbers))
            assert found == expected if isinstance(expected, str) else found.tolist() == expected.tolist()
        assert accelerated.stats.programs == 0
        assert told == ([] if setting == "raise" else ["divide by zero"] * 4)

    def test_settings_that_raise_nothing_are_no_hindrance(self):
        def fun(x):
            with np.errstate(divide="ignore", over="raise"):
                pass
            with np.errstate(all="ignore"):
                return 1 / x

        assert follow(fun, VECTORS).stats.programs == 1

    def test_settings_are_what_they_were(self):
        with np.errstate(divide="raise", over="print"):
            before = np.geterr()
            assert dlaccelerate(lambda x: 1 / x)(vector(0, 1)).tolist() == [np.inf, 1.0]
            with pytest.raises(FloatingPointError):
                1 / vector(0, 1)
            with pytest.raises(TypeError):
                dlaccelerate(lambda x: len(3))(vector(0, 1))
            assert np.geterr() == before


class TestLimits:
    def test_a_number_behind_a_branch_is_blamed_and_not_the_branch(self):
        def fun(x):
            if x[0] > 0:
                return x * complex(x[1]).real  # here
            return x

        accelerated = dlaccelerate(fun, max_variants=8)
        with pytest.warns(NotAcceleratedWarning) as caught:
            for n in range(12):
                accelerated(vector(-1.0 if n in (0, 8) else 1.0, n))
        (warning,) = caught
        assert warning.lineno == fun.__code__.co_firstlineno + 2
        assert "complex() on a traced array gave 8 different numbers in 9 recordings at" in str(
            warning.message
        )

    def test_branches_that_vary_together_are_counted(self):
        def fun(x):
            for i in range(4):
                x = x + 1 if x[i] > 0 else x - 1
            return x

        accelerated = dlaccelerate(fun, max_variants=8)
        with pytest.warns(
            NotAcceleratedWarning, match=r"bool\(\) on traced arrays had other outcomes in each"
        ):
            for n in range(12):
                accelerated(vector(*[10.0 * (1 if n >> i & 1 else -1) for i in range(4)]))

    def test_too_many_ways_of_a_branch(self):
        def fun(x):
            while x[0] < 100:
                x = x * 2
            return x

        line = fun.__code__.co_firstlineno + 1
        accelerated = dlaccelerate(fun, max_variants=8)
        for n in range(8):
            accelerated(vector(2.0**n / 4))
        with pytest.warns(NotAcceleratedWarning) as caught:
            accelerated(vector(2.0**7 - 30))
        (warning,) = caught
        assert (warning.filename, warning.lineno) == (__file__, line)
        assert str(warning.message) == (
            f"{accelerated.__qualname__} runs uncompiled for these arguments: bool() on traced arrays had other "
            f"outcomes in each of 9 recordings at {__file__}:{line}. "
            "Use where(condition, a, b) instead of if, dlwhile instead of while, & and | instead of and and or, and "
            "np.minimum, np.maximum and np.sort instead of min, max and sorted; or raise max_variants."
        )
        for n in (1.0, 3.0, 200.0):
            assert_same(accelerated(vector(n)), dlfeval(fun, vector(n)))
        assert accelerated.stats.uncompiled == 3 and accelerated.stats.programs == 0
        assert (
            "not accelerated for x: 1 float64: bool() on traced arrays had other outcomes"
            in accelerated.explain()
        )

    def test_by_default_branches_may_lead_to_many_traces(self):
        def fun(x):
            for i in range(5):
                x = x * 2 if x[i] > 0 else x / 2
            return x

        accelerated = dlaccelerate(fun, audit=False)
        for n in range(32 * 4):
            x = np.array([1.0 if (n * 5) >> i & 1 else -1.0 for i in range(5)])
            assert accelerated(x).tolist() == fun(x).tolist()
        assert accelerated.stats.kept == 32 and accelerated.stats.hits == 64

    def test_loops_of_many_operations_may_not(self):
        def fun(x):
            while x.sum() < 100:
                for _ in range(600):
                    x = x + 0.0066
            return x

        accelerated = dlaccelerate(fun, audit=False)
        with pytest.warns(NotAcceleratedWarning, match=r"other outcomes in each of 9 recordings"):
            for n in range(20):
                accelerated(vector(100.0 - 4 * n))

    def test_too_many_by_default(self):
        accelerated = dlaccelerate(lambda x: next(n for n in range(100) if x.sum() < n), audit=False)
        with pytest.warns(NotAcceleratedWarning, match=r"other outcomes in each of 65 recordings"):
            for n in range(65):
                accelerated(vector(float(n)))

    def test_once_for_each_line(self):
        accelerated = dlaccelerate(lambda x: x * complex(x[0]).real, max_variants=2)
        caught = []
        for size, number in itertools.product((1, 2, 3), range(5)):
            caught += warned(accelerated, np.full(size, float(number)))[1]
        (warning,) = caught
        assert "complex() on a traced array gave a different number in each of 3 recordings" in str(
            warning.message
        )
        assert "Keep it an array (the functions of tracejit, NumPy and math" in str(warning.message)

    def test_max_variants(self):
        accelerated = dlaccelerate(lambda x: x * complex(x[0]).real, max_variants=20)
        for number in (*range(15), *range(15)):
            assert accelerated(vector(number)).item() == number**2
        assert accelerated.stats.traces == 30


class TestConfirmation:
    @counts_runs
    def test_both_calls_run_the_function_once(self):
        runs = queue.Queue()

        def fun(x):
            runs.put(1)
            return x * 2

        accelerated = dlaccelerate(fun)
        for n in range(5):
            assert accelerated(vector(n)).item() == 2.0 * n
            assert runs.qsize() == min(n + 1, 2)
        assert (accelerated.stats.traces, accelerated.stats.hits) == (2, 3)

    @pytest.mark.parametrize("confirm", [0, 1, 2, 3])
    def test_as_often_as_asked_for(self, confirm):
        accelerated = dlaccelerate(lambda x: x * 2, confirm=confirm)
        for n in range(6):
            accelerated(vector(n))
        assert accelerated.stats.traces == confirm + 1

    @pytest.mark.parametrize(
        ("read", "text"),
        [
            (lambda noise, _: next(noise), "random numbers that NumPy or Python drew, the time, or a file"),
            (
                lambda noise, _: np.array([next(noise), next(noise)]),
                r"\(2 of 2 elements differ\).*random numbers",
            ),
            (lambda *_: time.time(), "Likely cause: the time"),
            (lambda _, counter: np.array(next(counter)), "was 0, is 1 .*Likely cause: a counter"),
            (lambda _, counter: np.float64(next(counter)), "a constant of mul was 0.0, is 1.0"),
            (
                lambda _, counter: np.ones(1 + next(counter)),
                "was 1 float64, is 2 float64.*data of a different size",
            ),
        ],
    )
    def test_constants_that_change(self, read, text):
        noise, counter = iter(np.random.default_rng(0).normal(size=20).tolist()), itertools.count()

        def fun(x):
            y = x * 2
            return (y * read(noise, counter)).sum()

        accelerated = dlaccelerate(fun)
        accelerated(vector(1))
        with pytest.warns(NotAcceleratedWarning, match=text) as caught:
            accelerated(vector(1))
        line = fun.__code__.co_firstlineno + 2
        assert (caught[0].filename, caught[0].lineno) == (__file__, line)
        assert re.search("two recordings differ: a constant of (mul|cast) was ", str(caught[0].message))
        assert len({accelerated(vector(1)).item() for _ in range(4)}) == 4  # no warning again
        assert accelerated.stats.uncompiled == 4

    @pytest.mark.parametrize(
        ("results", "text"),
        [
            (lambda x, n: x * 2 if n % 2 else x + 2, "operation 1 was add, is mul at"),
            (lambda x, n: x if n % 2 else x + 2, "only one of them recorded add at"),
            (lambda x, n: x.sum(axis=n % 2), "sum was called with .*then with .*axes"),
            (lambda x, n: (x, n), r"result\[1\] was 0, is 1\. Likely cause: a counter"),
            (lambda x, n: {"a": x, "b": n * 1.0}, r"result\['b'\] was 0.0, is 1.0"),
            (lambda x, n: [x] * (n + 1), "the result has 1 elements in one and 2 in the other"),
            (
                lambda x, n: {"a": x, "b": x} if n % 2 else {"b": x, "a": x},
                "the keys of a dict of the result have",
            ),
            (lambda x, n: object(), "an object that is created in each call"),
            (lambda x, n: np.full(2, n), "result was array"),
            (
                lambda x, n: dlarray(np.full(2, n)),
                r"result, a constant, was 0, is 1 \(2 of 2 elements differ\)",
            ),
            (lambda x, n: x if n % 2 else x.T, "is recorded|only one of them recorded transpose"),
            (lambda x, n: dlarray(x, "CB" if n % 2 else "BC"), "result is a different array"),
            (
                lambda x, n: x * 2 if n % 2 and x[0, 0] > 0 else (x[0, 0] > 0) * 2,
                r"only one of them took a value by bool\(\)",
            ),
            (lambda x, n: (y := x * 2) @ (x if n % 2 else y), "matmul received a different operand"),
        ],
    )
    def test_other_differences(self, results, text):
        counter = itertools.count()
        accelerated = dlaccelerate(lambda x: results(x, next(counter)))
        x = dlarray(np.ones((2, 2)))
        accelerated(x)
        with pytest.warns(NotAcceleratedWarning, match=text):
            accelerated(x)
        assert accelerated.stats.traces == 2

    def test_equal_constants_are_no_difference(self):
        made = lambda: (
            math.nan,
            np.array([math.nan, -0.0]),
            2.5,
            "text",
            np.float32(2),
            len,
            {"k": (1, None)},
        )
        accelerated = dlaccelerate(lambda x: (x * made()[1], *made()))
        for _ in range(4):
            accelerated(vector(1, 2))
        assert (accelerated.stats.traces, accelerated.stats.hits) == (2, 2)

    def test_an_error_leaves_the_cache_as_it_was(self):
        fail = [False, True, False, True]
        accelerated = dlaccelerate(lambda x: x / 0 if fail[0] and 1 // 0 else x * 2)
        assert accelerated(vector(1)).item() == 2.0
        fail.pop(0)
        with pytest.raises(ZeroDivisionError):
            accelerated(vector(1))
        assert accelerated.stats.traces == 1 and accelerated.occupancy == 2.0
        fail.pop(0)
        for n in range(5):
            assert accelerated(vector(n)).item() == 2.0 * n
        assert accelerated.stats.traces == 2

    @counts_runs
    def test_within_an_evaluation(self):
        runs = queue.Queue()

        def fun(x):
            runs.put(1)
            return x**3, x.sum(), 7

        accelerated = dlaccelerate(fun)

        def outer(x):
            cube, total, seven = accelerated(x * 1)
            return dlgradient((cube * total).sum() * seven, x), dlgradient(dlgradient(cube.sum(), x).sum(), x)

        for n in range(5):
            x = vector(n, 1)
            found = [part.tolist() for part in dlfeval(outer, x)]
            total = n + 1.0
            assert found[0] == [7 * (3 * n**2 * total + n**3 + 1), 7 * (3 * total + n**3 + 1)]
            assert found[1] == [6.0 * n, 6.0]
            assert runs.qsize() == min(n + 1, 2)

    def test_noise_within_an_evaluation(self):
        noise = iter(np.random.default_rng(0).normal(size=20).tolist())
        accelerated = dlaccelerate(lambda x: x * next(noise))
        evaluated = lambda: dlfeval(lambda x: dlgradient(accelerated(x).sum(), x), vector(1)).item()
        values = {evaluated()}
        with pytest.warns(NotAcceleratedWarning, match="a constant of mul"):
            values.add(evaluated())
        values |= {evaluated() for _ in range(3)}
        assert len(values) == 5

    def test_noise_inside_another_accelerated_function(self):
        noise = iter(np.random.default_rng(0).normal(size=20).tolist())
        inner = dlaccelerate(lambda x: x * next(noise))
        outer = dlaccelerate(lambda x: inner(x) + 1)
        values = {outer(vector(1)).item()}
        with pytest.warns(NotAcceleratedWarning, match="a constant of mul"):
            values.add(outer(vector(1)).item())
        # Now the inner function is called by itself, and refused for a line of which all is said.
        values |= {outer(vector(1)).item() for _ in range(5)}
        assert inner.stats.refused == 1
        assert len(values) == 7

    def test_decisions_inside_another_accelerated_function(self):
        inner = dlaccelerate(lambda x: x * 2 if x.sum() > 0 else -x)
        fun = lambda x: inner(x) + inner(-x) * 3
        outer = dlaccelerate(fun)
        for x in VECTORS * 3:
            assert_same(outer(x), dlfeval(lambda x: fun(x), x))
        assert outer.stats.hits == 16

    def test_threads_that_record_at_once(self):
        barrier = threading.Barrier(16)

        def fun(x, first=barrier.wait):
            if not accelerated.occupancy:
                first()
            return x * 2 if x.sum() > 0 else -x

        accelerated = dlaccelerate(fun)
        results = []

        def work(n):
            for i in range(12):
                sign = 1.0 if (n + i) % 2 else -1.0
                results.append(accelerated(vector(sign)).item() == (2.0 if sign > 0 else 1.0))

        threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(results) and len(results) == 16 * 12 and accelerated.stats.uncompiled == 0

    def test_what_another_thread_computes(self):
        def fun(x):
            found = []
            thread = threading.Thread(target=lambda: found.append(x * 2))
            thread.start()
            thread.join()
            return x + found[0]

        accelerated = dlaccelerate(fun)
        with pytest.warns(NotAcceleratedWarning, match="mul uses an array of the trace in another thread"):
            accelerated(vector(1))
        assert [accelerated(vector(n)).item() for n in range(3)] == [0.0, 3.0, 6.0]


class TestAudits:
    @counts_runs
    def test_at_growing_intervals(self):
        runs = queue.Queue()
        accelerated = dlaccelerate(lambda x: runs.put(accelerated.stats.calls) or x * 2)
        for n in range(70):
            assert accelerated(vector(n)).item() == 2.0 * n
        assert [*runs.queue] == [1, 2, 8, 64]
        assert accelerated.stats.hits == 66

    @counts_runs
    def test_off(self):
        runs = queue.Queue()
        accelerated = dlaccelerate(lambda x: runs.put(1) or x * 2, audit=False)
        for n in range(70):
            accelerated(vector(n))
        assert runs.qsize() == 2

    def test_a_constant_that_changes_later(self):
        calls = itertools.count(1)
        phase = iter([1.0, 1.0, 5.0, 5.0, 5.0])

        def fun(x):
            return x * np.array([next(phase)])

        accelerated = dlaccelerate(fun)
        found = [accelerated(vector(next(calls))).item() for _ in range(7)]
        assert found == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
        with pytest.warns(
            ChangedTraceWarning, match=r"a constant of mul was 1.0, is 5.0 .*recorded again"
        ) as caught:
            assert accelerated(vector(8)).item() == 40.0
        assert (caught[0].filename, caught[0].lineno) == (__file__, fun.__code__.co_firstlineno + 1)
        assert "was replaced" in accelerated.explain()
        assert [accelerated(vector(n)).item() for n in range(5)] == [0.0, 5.0, 10.0, 15.0, 20.0]

    def test_a_constant_that_keeps_changing_later(self):
        phase = iter([1.0, 1.0, 5.0, 7.0, 9.0, 9.0])
        accelerated = dlaccelerate(lambda x: x * np.array([next(phase)]))
        for _ in range(7):
            accelerated(vector(1))
        with pytest.warns(ChangedTraceWarning):
            accelerated(vector(1))
        with pytest.warns(NotAcceleratedWarning):
            assert accelerated(vector(1)).item() == 7.0
        assert accelerated(vector(1)).item() == 9.0

    def test_an_error_in_an_audit(self):
        fail = []
        accelerated = dlaccelerate(lambda x: x * 2 if not fail else x[1 // 0])
        for _ in range(7):
            accelerated(vector(1))
        fail.append(1)
        with pytest.raises(ZeroDivisionError):
            accelerated(vector(1))
        with pytest.raises(ZeroDivisionError):
            accelerated(vector(1))
        fail.clear()
        assert [accelerated(vector(n)).item() for n in range(3)] == [0.0, 2.0, 4.0]
        assert accelerated.stats.traces == 3

    @counts_runs
    def test_within_an_evaluation(self):
        runs = queue.Queue()
        accelerated = dlaccelerate(lambda x: runs.put(1) or x**2)
        for n in range(10):
            assert dlfeval(lambda x: dlgradient(accelerated(x).sum(), x), vector(n)).item() == 2.0 * n
        assert runs.qsize() == 3


class TestChecks:
    @counts_runs
    def test_checked_every_few_replays(self):
        runs = queue.Queue()
        accelerated = dlaccelerate(
            lambda x: runs.put(1) or x * 2, check_mode="sample", check_every=10, audit=False
        )
        for n in range(1, 51):
            assert accelerated(vector(n)).item() == 2.0 * n
            assert runs.qsize() == min(n, 2) + n // 10
        assert accelerated.stats.traces == 2

    def test_a_sample_warns(self):
        phase = iter([1.0, 1.0, 3.0, 3.0])
        accelerated = dlaccelerate(
            lambda x: x * np.array(next(phase)), check_mode="sample", check_every=5, audit=False
        )
        for _ in range(4):
            accelerated(vector(1))
        with pytest.warns(OutputsDifferWarning, match=r"output\[0\] is 1.0, expected 3.0") as caught:
            assert accelerated(vector(1)).item() == 1.0
        assert caught[0].filename == __file__

    def test_the_example_of_the_reference(self):
        """Its noise without a seed, replayed at once: the same array twice, and a warning."""
        noise = iter(np.random.default_rng(0).normal(size=(9, 2)))
        noisy = dlaccelerate(lambda x: x + next(noise), check_mode="tolerance", confirm=0)
        first = noisy(vector(0, 0)).tolist()
        with pytest.warns(
            OutputsDifferWarning, match="^Accelerated outputs differ from underlying function outputs"
        ):
            assert noisy(vector(0, 0)).tolist() == first


def test_arrays_of_strings_and_messages_have_places():
    guard = guards.ValueGuard(None, guards.Decides.TRUTH, np.array(True), "bool()", ("file.py", 3), 0)
    assert str(guard) == "bool() at file.py:3 is True"
    several = guard._replace(outcome=np.ones(3), where=None)
    assert re.fullmatch(r"bool\(\) is 3 values", str(several))


def test_a_large_array_that_each_call_compares_has_a_warning():
    table = np.ones((2048, 100))

    @dlaccelerate
    def fun(w):
        rows = table[:32]
        return w - 2 / len(rows) * (rows @ w).sum()

    with pytest.warns(
        NotAcceleratedWarning, match=r"fun compares the 1 MiB of closure table at each call at .*, becaus"
    ):
        for _ in range(3):
            fun(np.ones(100))


def test_an_array_whose_selections_are_recorded_is_not_compared():
    table = np.arange(20000.0).reshape(200, 100)

    @dlaccelerate
    def fun(w, i):
        return w - 0.5 * table[i] + table[i : i + 2].sum()

    for i in range(8):
        table[i] += i
        np.testing.assert_array_equal(
            np.array(fun(np.ones(100), i)), 1 - 0.5 * table[i] + table[i : i + 2].sum()
        )
    assert fun.stats.hits == 4


def test_a_place_where_numpy_selects_too_is_compared():
    table = np.arange(200.0).reshape(20, 10)

    def row(k):
        return table[k]

    @dlaccelerate
    def fun(w, i):
        return (row(0) * 2.0) @ w + row(i) @ w

    for i in range(12):
        table[0] += i % 3
        found = np.array(fun(np.ones(10), i))
        np.testing.assert_array_equal(found, (table[0] * 2.0) @ np.ones(10) + table[i] @ np.ones(10))


def test_a_refusal_is_told_where_numbers_take_turns():
    noise = iter(np.random.default_rng(0).normal(size=20).tolist())
    noisy = dlaccelerate(lambda x, k: x + k * next(noise))
    with pytest.warns(NotAcceleratedWarning, match="runs uncompiled for these arguments"):
        for call in range(8):
            noisy(np.ones(2), call % 2)
    assert noisy.stats.uncompiled > 0
