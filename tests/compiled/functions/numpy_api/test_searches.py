# SPDX-License-Identifier: BSD-3-Clause
"""Searches by compiled code: in sorted arrays, for extrema, and for the extrema so far."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tracejit as tj

NUMBERS = st.one_of(st.integers(-3, 3).map(float), st.sampled_from([np.nan, np.inf, -np.inf, -0.0, 0.5]))


def computed(function: Callable[..., Any], *arrays: np.ndarray) -> np.ndarray:
    """Return the result of compiled code."""
    accelerated = tj.dlaccelerate(function, confirm=0, audit=False)
    given = [tj.dlarray(array) for array in arrays]
    return [np.array(accelerated(*given)) for _ in range(2)][1]


@given(st.integers(0, 60), st.lists(NUMBERS, max_size=40), st.integers(0, 2**32), st.sampled_from("df"))
def test_searchsorted(size: int, wanted: list[float], seed: int, dtype: str) -> None:
    rng = np.random.default_rng(seed)
    x = np.sort(rng.choice([-np.inf, -2.0, -1.0, 0.0, 1.0, 2.0, np.inf, np.nan], size)).astype(dtype)
    v = np.array(wanted, dtype)
    for side in ("left", "right"):
        found = computed(lambda x, v, side=side: np.searchsorted(x, v, side), x, v)
        np.testing.assert_array_equal(found, np.searchsorted(x, v, side))


@pytest.mark.parametrize("size", [1, 23, 24, 25, 26, 255, 256, 257, 1000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.uint8])
def test_searchsorted_in_tables_of_any_size(size: int, dtype: type) -> None:
    rng = np.random.default_rng(size)
    x, v = np.sort(rng.integers(0, 200, size)).astype(dtype), rng.integers(0, 220, 700).astype(dtype)
    for side in ("left", "right"):
        for wanted in (v, np.sort(v), np.sort(v)[::-1].copy(), np.full_like(v, v[0])):
            found = computed(lambda x, v, side=side: np.searchsorted(x, v, side), x, wanted)
            np.testing.assert_array_equal(found, np.searchsorted(x, wanted, side))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_searchsorted_of_nan_among_sorted_numbers(dtype: type) -> None:
    x = np.sort(np.random.default_rng(0).uniform(0, 1, 400)).astype(dtype)
    x[-3:] = np.nan
    v = np.linspace(-0.1, 1.1, 600).astype(dtype)
    v[[0, 255, 256, 300, 599]] = np.nan  # at the ends of blocks, and within
    for side in ("left", "right"):
        found = computed(lambda x, v, side=side: np.searchsorted(x, v, side), x, v)
        np.testing.assert_array_equal(found, np.searchsorted(x, v, side))


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("bins", [[1.0], [0.0, 1.0, 1.0, 4.0], [4.0, 1.0, 1.0, 0.0], [2.0, 2.0]])
def test_digitize(bins: list[float], right: bool) -> None:
    x, edges = np.array([-1.0, 0.0, 0.5, 1.0, 2.0, 3.9, 4.0, 5.0]), np.array(bins)
    found = computed(lambda x, edges: np.digitize(x, edges, right), x, edges)
    np.testing.assert_array_equal(found, np.digitize(x, edges, right))


@pytest.mark.parametrize("dtypes", [("f", "f"), ("f", "d"), ("d", "f")])
def test_interp_of_narrow_numbers(dtypes: tuple[str, str]) -> None:
    rng = np.random.default_rng(1)
    x, xp, fp = rng.uniform(-1, 2, 300), np.sort(rng.uniform(0, 1, 50)), rng.uniform(-1, 1, 50)
    x[:3], xp[10] = (np.nan, np.inf, -np.inf), xp[11]
    x, xp = x.astype(dtypes[0]), xp.astype(dtypes[1])
    x[3:53] = xp
    np.testing.assert_allclose(computed(np.interp, x, xp, fp), np.interp(x, xp, fp), rtol=1e-13)


@given(st.integers(1, 1500), st.lists(st.tuples(st.integers(0, 1499), NUMBERS), max_size=6))
def test_places_of_extrema(size: int, some: list[tuple[int, float]]) -> None:
    x = np.linspace(-1, 1, size) * np.where(np.arange(size) % 2, 1.0, -1.0)
    for place, number in some:
        x[place % size] = number
    for function in (np.argmax, np.argmin):
        assert computed(function, x) == function(x)


@pytest.mark.parametrize("columns", [2, 8, 9, 10, 16, 31, 63, 64, 65, 100])
def test_extrema_of_rows(columns: int) -> None:
    rng = np.random.default_rng(columns)
    x = rng.choice([-1.0, -0.0, 0.0, 1.0, np.inf, -np.inf], (37, columns)).astype(np.float32)
    x[3, columns - 1] = x[5, 0] = np.nan
    x[7] = -np.inf
    for function in (np.max, np.min, np.argmax, np.argmin):
        found = computed(lambda x, function=function: function(x, axis=1), x)
        np.testing.assert_array_equal(found, function(x, axis=1))


@given(st.lists(NUMBERS, min_size=1, max_size=24), st.sampled_from([np.maximum, np.minimum]))
def test_extrema_so_far(numbers: list[float], ufunc: np.ufunc) -> None:
    x = np.array([numbers, numbers[::-1], [1.0] * len(numbers)])
    for axis in (0, 1):
        found = computed(lambda x, axis=axis: ufunc.accumulate(x, axis=axis), x)
        np.testing.assert_array_equal(found, ufunc.accumulate(x, axis=axis))


@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 0.98, 1.0])
@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 128, 191, 500])
def test_places_of_masks_of_any_density(size: int, share: float) -> None:
    rng = np.random.default_rng(size)
    for ends in (0, 1):  # the last element, behind whose place is no memory, is none or one of those
        mask = rng.uniform(0, 1, size) < share
        mask[-1:] = ends
        np.testing.assert_array_equal(computed(np.flatnonzero, mask), np.flatnonzero(mask))
        numbers = np.where(mask, np.nan, 0.0)
        np.testing.assert_array_equal(computed(np.flatnonzero, numbers), np.flatnonzero(numbers))
