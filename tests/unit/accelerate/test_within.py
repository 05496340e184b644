# SPDX-License-Identifier: BSD-3-Clause
"""Accelerated functions within evaluations and within each other."""

import gc
import weakref

import numpy as np
import pytest
from accelerated import dlaccelerate, vector

import tracejit as tj
from tracejit import (
    dlarray,
    dlfeval,
    dlgradient,
)
from tracejit.record import recorder


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
