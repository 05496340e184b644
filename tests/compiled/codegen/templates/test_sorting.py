# SPDX-License-Identifier: BSD-3-Clause
"""Sorting, compiled for this CPU, gives NumPy's order."""

import numpy as np
import pytest

import tracejit as tj


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "int16"])
def test_values_and_places(dtype: str) -> None:
    rng = np.random.default_rng(0)
    sort = tj.dlaccelerate(np.sort, audit=False)
    order = tj.dlaccelerate(lambda x: np.argsort(x, stable=True), audit=False)
    for size in (1, 8, 17, 64, 65, 1000, 10_007):
        x = rng.standard_normal(size) * 100
        special = rng.choice([np.nan, np.inf, -0.0, 0.0], size) if dtype[0] == "f" else np.zeros(size)
        for numbers in (x, np.round(x / 60), np.sort(x)[::-1], np.where(rng.random(size) < 0.5, x, special)):
            array = tj.dlarray(numbers.astype(dtype))
            for _ in range(3):
                values, places = sort(array), order(array)
            np.testing.assert_array_equal(np.asarray(values), np.sort(np.asarray(array)))
            np.testing.assert_array_equal(np.asarray(places), np.argsort(np.asarray(array), stable=True))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("size", [1, 2, 8, 9, 16, 31, 33, 64, 65, 100, 127, 128, 129])
def test_rows_in_registers(size: int, dtype: str) -> None:
    rng = np.random.default_rng(size)
    both = tj.dlaccelerate(lambda x: (np.sort(x, axis=1), np.argsort(x, axis=1, stable=True)), audit=False)
    x = rng.standard_normal((3, size)) * 100
    numbers = [x, np.round(x / 60), 1 + rng.integers(0, 40, x.shape) * 2.0**-52]  # the last have equal keys
    if dtype[0] == "f":
        numbers.append(rng.choice([np.nan, -np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0], x.shape))
    for given in numbers:
        array = given.astype(dtype)
        for _ in range(3):
            values, places = map(np.asarray, both(tj.dlarray(array)))
        np.testing.assert_array_equal(values, np.sort(array, axis=1))
        np.testing.assert_array_equal(places, np.argsort(array, axis=1, stable=True))
        assert np.signbit(values[values == 0]).sum() == np.signbit(array[array == 0]).sum()
