# SPDX-License-Identifier: BSD-3-Clause
"""Traps: functions that keep results of earlier calls."""

import functools

import numpy as np
import pytest
from worlds import follow, pick

import tracejit as tj
from tracejit import dlaccelerate

X = np.array([1.0, -2.0, 3.0])


@pytest.fixture(autouse=True)
def _seeded():
    with tj.rng(0):
        yield


class Point:
    __match_args__ = ("a", "b")

    def __init__(self, a, b):
        self.a, self.b = a, b


def rates(n):
    return pick(n, 1.0, 2.0, 5.0)


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

    @pytest.mark.slow
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
