# SPDX-License-Identifier: BSD-3-Clause
"""Traps: random numbers that tracejit, NumPy or Python draws."""

import random

import numpy as np
import pytest
from worlds import follow, of, pick

import tracejit as tj
from tracejit import dlgradient

RATE = 2.0


X = np.array([1.0, -2.0, 3.0])


@pytest.fixture(autouse=True)
def _seeded():
    with tj.rng(0):
        yield


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


class TestDraws:
    """Two recordings may draw the same, or come to the same by what they draw: a replay would draw nothing."""

    DREW = "it draws from a .*, which a replay would not do, although two recordings agreed"

    @pytest.mark.parametrize(
        ("fun", "seed"),
        [
            (lambda x: x * np.random.rand(3), np.random.seed),
            (lambda x: x * random.random(), random.seed),
        ],
    )
    def test_seeded_before_each_call(self, fun, seed):
        def world(accelerate):
            fast = accelerate(fun)

            def call(n):
                seed(n // 3)
                return fast(X)

            return call

        follow(world, audit=False)

    def test_a_generator_that_is_set_back(self):
        def world(accelerate):
            rng = np.random.default_rng(0)
            states = [np.random.default_rng(n).bit_generator.state for n in range(3)]
            fun = accelerate(lambda x: x * rng.normal(size=3))

            def call(n):
                rng.bit_generator.state = pick(n, *states)
                return fun(X)

            return call

        follow(world, audit=False)

    def test_a_way_that_is_taken_mostly(self):
        def world(accelerate):
            random.seed(4)
            fun = accelerate(lambda x: x * 2 if random.random() < 0.9 else x)
            return lambda n: (fun(X), random.random())

        follow(world, audit=False, calls=60)

    def test_a_list_that_is_shuffled(self):
        def world(accelerate):
            @accelerate
            def fun(x):
                random.shuffle(["a", "b", "c"])  # here
                return x * 2

            return lambda n: fun(X)

        follow(world, audit=False, warns=self.DREW)

    def test_a_seed_inside(self):
        """Is set in each call, and so is what was drawn."""

        def world(accelerate):
            @accelerate
            def fun(x):
                np.random.seed(RATE > 0)
                return x * np.random.rand(3) * np.random.default_rng(5).random()

            return lambda n: (fun(X), np.random.rand() if n % 3 else None)

        follow(world, audit=False)
