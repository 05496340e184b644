# SPDX-License-Identifier: BSD-3-Clause
"""Integers that vary and are as large as 64 bits hold, in arithmetic whose results they may not hold."""

import warnings

import numpy as np
import pytest

import tracejit as tj

BODIES = [
    "k * k * k",
    "k + k",
    "-k",
    "abs(k)",
    "k - 1",
    "k // -1",
    "k * k > 100",
    "k // 2",
    "k % 7",
    "k * 1.5",
    "k << 1",
]
LARGE = (1, 2, 3, 4, 5, -(2**63), 6, 2**63 - 1, 7, 1 - 2**63, 2**62, -(2**62), 2**31, -(2**31))


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("made", ["k", "int(k[0])"])
def test_arithmetic_is_that_of_python(body, made):
    plain = eval(f"lambda k: (lambda k: {body})({made})")
    accelerated = tj.dlaccelerate(plain)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tj.TraceJitWarning)
        for number in LARGE:
            given = number if made == "k" else np.array([number])
            assert accelerated(given) == plain(given)


def test_a_number_of_the_state_that_outgrows_64_bits_is_no_change_of_the_function():
    class Fibonacci:
        def __init__(self):
            self.a, self.b = 0, 1

        @tj.dlaccelerate
        def step(self):
            self.a, self.b = self.b, self.a + self.b
            return self.a

    numbers, a, b = Fibonacci(), 0, 1
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for _ in range(120):
            a, b = b, a + b
            assert numbers.step() == a
    assert {warning.category for warning in found} == {tj.NotAcceleratedWarning}
    assert numbers.step.stats.hits > 50 and numbers.step.stats.replaced == 0
