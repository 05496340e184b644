# SPDX-License-Identifier: BSD-3-Clause
"""Traps: global names and closures that change between calls."""

import importlib
import sys
import types

import numpy as np
import pytest
from worlds import follow, pick

import tracejit as tj
from tracejit import dlarray, dlgradient

RATE = 2.0


WEIGHTS = np.ones(3)


TABLE = {"a": 1.0, "b": 10.0}


GONE = 3.0


X = np.array([1.0, -2.0, 3.0])


def helper(x):
    return x + 1


@pytest.fixture(autouse=True)
def _seeded():
    with tj.rng(0):
        yield


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

    def test_an_array_that_numpy_computes_with(self):
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
                return x * sum(seen)

            return lambda n: fun(X)

        follow(world, warns="it changes closure seen, which it also reads")

    def test_a_list_that_the_function_appends_to_and_whose_length_it_reads(self):
        def world(accelerate):
            seen = []

            @accelerate
            def fun(x):
                seen.append(1)
                return x * len(seen)

            return lambda n: fun(X)

        follow(world)

    def test_a_variable_that_the_function_counts_up(self):
        def world(accelerate):
            count = 0

            @accelerate  # here
            def fun(x):
                nonlocal count
                count += 1
                return x * count

            return lambda n: (fun(X), count)

        follow(world)

    def test_lambdas_of_one_line_are_told_apart(self):
        def world(accelerate):
            funs = [accelerate(lambda x, k=k: x * k) for k in (2.0, 3.0, 4.0)]
            return lambda n: funs[n % 3](X)

        follow(world)
