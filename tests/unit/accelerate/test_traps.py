# SPDX-License-Identifier: BSD-3-Clause
"""The list of promises: what trips up systems that record and replay, one test each.

A world is made twice, for the accelerated function and for the plain one, from the same seeds. Each is called some
dozen times while things around it change, and the results are equal, call by call; or the one warning is given
that is documented, at the line that is marked. Throughout, no argument changes, nor a result that was given earlier.
"""

import asyncio
import copy
import gc
import itertools
import pickle
import queue
import threading
import warnings
import weakref

import numpy as np
import pytest
from counted_runs import counts_runs
from worlds import assert_warned, follow, pick

import tracejit as tj
from tracejit import dlaccelerate, dlfeval, dlgradient

RATE = 2.0
X = np.array([1.0, -2.0, 3.0])
RANDOM_NUMBERS = "two recordings differ: .*Likely cause: random numbers that NumPy or Python drew"


@pytest.fixture(autouse=True)
def _seeded():
    with tj.rng(0):
        yield


class TestErrors:
    def failing_at(self, *places, **options):
        """Return a function that fails in its n-th runs, and where these are counted."""
        runs = itertools.count(1)  # not what a function is seen to read
        made = queue.Queue()

        def fun(x):
            count(next(runs))
            return x * 2

        def count(n):
            made.put(n)
            if n in places:
                raise ValueError(f"run {n}")

        return dlaccelerate(fun, **options), made

    @counts_runs
    def test_in_the_first_call(self):
        fun, runs = self.failing_at(1)
        with pytest.raises(ValueError, match="run 1"):
            fun(X)
        assert (fun.occupancy, fun.stats.traces) == (0.0, 0)
        assert [fun(X * n)[0].item() for n in range(4)] == [0.0, 2.0, 4.0, 6.0] and runs.qsize() == 3

    @counts_runs
    def test_in_the_confirmation(self):
        fun, runs = self.failing_at(2)
        fun(X)
        with pytest.raises(ValueError, match="run 2"):
            fun(X)
        assert [fun(X * n)[0].item() for n in range(4)] == [0.0, 2.0, 4.0, 6.0] and runs.qsize() == 3

    @counts_runs
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

    @counts_runs
    def test_in_a_function_that_is_recorded_inside(self):
        inner, _ = self.failing_at(2)
        outer = dlaccelerate(lambda x: inner(x) + 1)
        assert outer(X)[0].item() == 3.0
        with pytest.raises(ValueError, match="run 2"):
            outer(X)
        assert [outer(X * n)[0].item() for n in range(4)] == [1.0, 3.0, 5.0, 7.0]

    @pytest.mark.filterwarnings("ignore:.* while it is recorded only")
    def test_an_array_that_is_kept(self):
        kept = []
        fun = dlaccelerate(lambda x: kept.append(x * 2) or x + 1)
        fun(X)
        assert (kept[0] + 1).tolist() == (X * 2 + 1).tolist()


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
            drawn = iter(np.random.random(20).tolist())
            fun = dlaccelerate(lambda x: x + next(drawn))  # here
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
