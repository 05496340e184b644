# SPDX-License-Identifier: BSD-3-Clause
"""Operators of bits on integers that vary: replays give what Python does, and where it raises an error they do."""

import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numbers_in_turn import X, follow

import tracejit as tj

OPERATORS = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]
EDGES = [
    1,
    2,
    3,
    0,
    -1,
    31,
    32,
    61,
    62,
    63,
    64,
    70,
    -64,
    2**31,
    -(2**31),
    2**62,
    -(2**62),
    2**63 - 1,
    -(2**63),
    2**64,
]
SMALL = [n for n in EDGES if abs(n) <= 70]  # of shifts: Python makes room for all the bits


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("fixed", [0, 5, -6, 70, 2**40, -(2**63), 2**64 + 3, True])
def test_with_a_number_that_stays(op, fixed):
    is_shift = op in (operator.lshift, operator.rshift)
    if not is_shift or abs(fixed) <= 70:
        follow(lambda x, k: op(k, fixed), EDGES, X)
    follow(lambda x, k: op(fixed, k), SMALL if is_shift else EDGES, X)


@pytest.mark.parametrize("op", OPERATORS)
def test_of_two_that_vary(op):
    second = SMALL if op in (operator.lshift, operator.rshift) else EDGES
    pairs = [(first, second[(7 * n + 3) % len(second)]) for n, first in enumerate(EDGES)]
    follow(lambda x, j, k: op(j, k), pairs, X)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int32, np.int64, np.uint64])
def test_with_numbers_of_numpy(kind):
    numbers = [kind(n) for n in (1, 2, 3, 100, 0, 7, 31, 64, 127)]
    for op in OPERATORS:
        follow(lambda x, k, op=op: (op(k, kind(5)), op(k, 5), op(5, k), op(kind(5), k), ~k), numbers, X)


def test_of_truth_values():
    """What numpy.bool and a comparison give is no number that varies."""
    follow(
        lambda x, k: ((k > 3) & (k < 7), (k > 3) | True, (k > 3) ^ k, k & True, True | k, ~k), range(12), X
    )


@given(st.lists(st.integers(-(2**64), 2**64), min_size=6, max_size=12), st.integers(-(2**63), 2**63))
def test_any(numbers, fixed):
    follow(lambda x, k: (k & fixed, k | fixed, fixed ^ k, ~k, k >> 3, k << 1, k * fixed), numbers, X)


def test_a_generator_of_numbers_in_the_state_replays():
    """A linear congruential generator, and one that shifts."""

    class Numbers:
        def __init__(self):
            self.linear, self.shifted = 12345, 2463534242

        def draw(self, x):
            self.linear = (self.linear * 1664525 + 1013904223) & 0xFFFFFFFF
            n = self.shifted
            n ^= (n << 13) & 0xFFFFFFFF
            n ^= n >> 17
            self.shifted = (n ^ (n << 5)) & 0xFFFFFFFF
            return x * (self.linear / 2**32) + (self.shifted >> 8 & 1)

    plain, accelerated = Numbers(), Numbers()
    draw = tj.dlaccelerate(accelerated.draw)
    for _ in range(30):
        np.testing.assert_allclose(draw(np.ones(2)), plain.draw(np.ones(2)), rtol=1e-15)
        assert (plain.linear, plain.shifted) == (accelerated.linear, accelerated.shifted)
    assert draw.stats.hits >= 20


def test_an_index_by_bits_of_a_counter_replays():
    table = np.arange(16.0) ** 2
    for read in (lambda x, k: x * table[(k ^ k >> 1) & 15], lambda x, k: x[k & 1] + (k >> 2)):
        assert follow(read, range(20), np.array([1.5, 2.5])).stats.hits >= 10
