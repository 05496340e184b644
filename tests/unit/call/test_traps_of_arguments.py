# SPDX-License-Identifier: BSD-3-Clause
"""Traps: arguments in every form, and outputs that callers keep and change."""

import copy
import functools
import itertools
import queue

import numpy as np
import pytest
from worlds import follow, of, pick

import tracejit as tj
from tracejit import dlaccelerate, dlarray, dlgradient

X = np.array([1.0, -2.0, 3.0])


@pytest.fixture(autouse=True)
def _seeded():
    with tj.rng(0):
        yield


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

        def world(accelerate):
            accelerated = accelerate(fun)

            def call(n):
                given = X + n
                return accelerated(given), given

            return call

        follow(world)

    def test_a_dict_that_is_changed_inside(self):
        def world(accelerate):
            @accelerate
            def fun(d):
                d["a"] = d["a"] * 2
                return d["a"], d

            given = {"a": X}
            return lambda n: copy.deepcopy((fun(given), sorted(given), given["a"]))

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

    def test_an_object_of_a_library_is_refused(self):
        fun = dlaccelerate(lambda tasks, x: x * 2.0)
        with pytest.raises(tj.ArgumentError, match="tasks is a Queue, an object of a library"):
            fun(queue.Queue(), X)


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


def test_a_keyword_may_be_named_self() -> None:
    step = tj.dlaccelerate(lambda x, **options: x * options["self"])
    for n in range(4):
        assert step(np.ones(2), self=2.0 + n).tolist() == [2.0 + n] * 2
