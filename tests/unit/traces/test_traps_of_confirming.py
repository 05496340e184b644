# SPDX-License-Identifier: BSD-3-Clause
"""Traps: what no trace sees, found by comparing recordings or by audits."""

import itertools
import random
import time
import warnings

import numpy as np
import pytest
from worlds import assert_warned, follow

import tracejit as tj
from tracejit import dlaccelerate

X = np.array([1.0, -2.0, 3.0])


RANDOM_NUMBERS = "two recordings differ: .*Likely cause: random numbers that NumPy or Python drew"


@pytest.fixture(autouse=True)
def _seeded():
    with tj.rng(0):
        yield


class TestWhatNoTraceSees:
    def test_numbers_of_numpy(self):
        def world(accelerate):
            @accelerate
            def fun(x):
                return x + np.random.normal(size=3)

            return lambda n: fun(X)

        follow(world)

    def test_a_generator_of_numpy(self):
        def world(accelerate):
            rng = np.random.default_rng(0)

            @accelerate
            def fun(x):
                return x * rng.random()

            return lambda n: fun(X)

        follow(world)

    def test_numbers_of_python(self):
        def world(accelerate):
            @accelerate
            def fun(x):
                return x + random.random()

            return lambda n: fun(X)

        follow(world)

    def test_a_shuffle_of_python(self):
        def world(accelerate):
            @accelerate
            def fun(x):
                order = [2, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0]
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
        with pytest.warns(tj.NotAcceleratedWarning, match="an object that is created in each call"):
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
        drawn = iter(np.random.random((9, 3)))
        noise = dlaccelerate(lambda x: x + next(drawn), check_mode="tolerance", confirm=0)
        first = noise(X).tolist()
        with pytest.warns(tj.OutputsDifferWarning, match="^Accelerated outputs differ from underlying f"):
            assert noise(X).tolist() == first

    def test_the_noise_of_the_reference_that_is_supported(self):
        noise = dlaccelerate(lambda x: x + tj.rand(3, like=x), check_mode="tolerance", confirm=0)
        assert len({str(noise(X).tolist()) for _ in range(10)}) == 10
        assert noise.stats.hits >= 8
