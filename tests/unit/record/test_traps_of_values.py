# SPDX-License-Identifier: BSD-3-Clause
"""Traps: values that decide what a function does, and sizes that depend on them."""

import numpy as np
import pytest
from worlds import follow, of, pick

import tracejit as tj
from tracejit import dlgradient

X = np.array([1.0, -2.0, 3.0])


@pytest.fixture(autouse=True)
def _seeded():
    with tj.rng(0):
        yield


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

    @pytest.mark.slow
    def test_more_ways_than_variants(self):
        def world(accelerate):
            @accelerate
            def fun(x):
                while x[0] < 100:  # here
                    x = x * 2
                return x

            return lambda n: fun(np.array([2.0 ** (n % 70 - 63)]))

        follow(
            world,
            warns=r"bool\(\) on traced arrays had other outcomes.*Use where\(condition, a, b\)",
            calls=80,
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
