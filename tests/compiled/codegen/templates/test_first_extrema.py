# SPDX-License-Identifier: BSD-3-Clause
"""Extrema and their first places, compiled for this CPU, are NumPy's, with NaN, in steps and in pieces."""

import numpy as np
import pytest

import tracejit as tj


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("step", [1, 2, -1, -2])
@pytest.mark.parametrize("shape", [(3, 64), (2, 131), (2, 4100), (1, 900_001)])
def test_first_extrema(shape: tuple[int, int], step: int, dtype: str) -> None:
    rng = np.random.default_rng(0)
    rows, columns = shape
    x = np.zeros((rows, abs(step) * columns), dtype)[:, ::step][:, :columns]
    function = tj.dlaccelerate(lambda x: (np.argmax(x, axis=1), np.argmin(x, axis=1)), audit=False)
    for numbers in (rng.standard_normal(shape), rng.integers(0, 3, shape), np.full(shape, np.inf)):
        for nans in (0, 0, 0, 1, 3):
            x[...] = numbers
            x[rng.integers(0, rows, nans), rng.integers(0, columns, nans)] = np.nan
            largest, smallest = function(tj.dlarray(x))
            np.testing.assert_array_equal(np.asarray(largest), np.argmax(x, axis=1))
            np.testing.assert_array_equal(np.asarray(smallest), np.argmin(x, axis=1))


def test_nothing_is_read_behind_the_last_element() -> None:
    """Every second element of memory that ends with the last of them, beside memory that is larger than all."""
    memory = np.full(2 * 80, 9, np.float32)
    x = memory[20 : 20 + 2 * 65 - 1 : 2]
    x[...] = np.arange(65, 0, -1) % 7
    function = tj.dlaccelerate(lambda x: (np.argmax(x), np.max(x)), audit=False)
    for _ in range(4):
        place, most = function(tj.dlarray(x))
    assert (int(place), float(most)) == (int(np.argmax(x)), 6.0)
