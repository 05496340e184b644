# SPDX-License-Identifier: BSD-3-Clause
"""Distributions of random numbers, against SciPy."""

import numpy as np
import pytest
from scipy import stats

import tracejit as tj


@pytest.fixture(autouse=True)
def _seeded():
    with tj.rng(0):
        yield


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_uniform_numbers(dtype):
    x = tj.extractdata(tj.rand(200_000, dtype=dtype))
    assert x.dtype == dtype and x.min() >= 0 and x.max() < 1
    assert stats.kstest(x, "uniform").pvalue > 0.01
    assert abs(x.mean() - 1 / 2) < 4 * np.sqrt(1 / 12 / x.size)
    # Neighbours, the four words of a block, and neighbouring blocks are uncorrelated.
    for lag in range(1, 9):
        assert abs(np.corrcoef(x[:-lag], x[lag:])[0, 1]) < 4 / np.sqrt(x.size)
    bits = 24 if dtype == "float32" else 53
    np.testing.assert_array_equal(x * 2.0**bits, np.floor(x * 2.0**bits))
    last = (x * 2.0**bits).astype(np.int64) & 1
    assert abs(last.mean() - 0.5) < 4 * np.sqrt(0.25 / x.size)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normal_numbers(dtype):
    x = tj.extractdata(tj.randn(200_000, dtype=dtype))
    assert x.dtype == dtype and np.isfinite(x).all()
    assert stats.kstest(x, "norm").pvalue > 0.01
    assert abs(x.mean()) < 4 / np.sqrt(x.size)
    assert abs(x.var() - 1) < 4 * np.sqrt(2 / x.size)
    assert abs(stats.kurtosis(x.astype(np.float64))) < 4 * np.sqrt(24 / x.size)
    # In the tails, too.
    assert stats.binomtest(int((np.abs(x) > 3).sum()), x.size, 2 * stats.norm.sf(3)).pvalue > 0.01
    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 4 / np.sqrt(x.size)


@pytest.mark.parametrize(
    ("limits", "low", "high"), [(10, 0, 10), ((-3, 4), -3, 4), ([5, 6], 5, 6), (np.int64(2), 0, 2)]
)
def test_integers(limits, low, high):
    x = tj.extractdata(tj.randi(limits, 100_000))
    assert x.dtype == np.int64
    counts = np.bincount(x - low, minlength=high - low)
    assert counts.size == high - low
    assert high - low == 1 or stats.chisquare(counts).pvalue > 0.01


def test_integers_of_the_widest_range():
    x = tj.extractdata(tj.randi((-(2**52), 2**52), 10_000))
    assert stats.kstest(x / 2.0**52, stats.uniform(-1, 2).cdf).pvalue > 0.01
    assert x.min() >= -(2**52) and x.max() < 2**52
    # The largest uniform number stays below the limit whatever it is multiplied by.
    for width in (3, 10, 2**24 + 1, 2**31 - 1, 2**53 - 1, 2**53):
        assert int((1 - 2.0**-53) * float(width)) == width - 1


def in_new_state(draw, seed=0):
    with tj.rng(seed):
        return draw()


def test_permutations():
    counts = {}
    for _ in range(2400):
        order = tuple(tj.randperm(4).tolist())
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 24 and all(sorted(order) == [0, 1, 2, 3] for order in counts)
    assert stats.chisquare(list(counts.values())).pvalue > 0.01
    assert sorted(tj.randperm(1000).tolist()) == list(range(1000))
    assert tj.randperm(0).shape == (0,) and tj.randperm(5, 0).shape == (0,)
    np.testing.assert_array_equal(
        in_new_state(lambda: tj.randperm(9, 4)), in_new_state(lambda: tj.randperm(9))[:4]
    )
