# SPDX-License-Identifier: BSD-3-Clause
"""np.convolve compiled: blocks of results, ends, and few results of many products."""

import numpy as np
import pytest

import tracejit as tj


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize(("n", "m"), [(40, 30), (700, 9), (2000, 290), (1000, 1000), (300, 299), (65, 5)])
def test_sums_of_products(n: int, m: int, mode: str) -> None:
    rng = np.random.default_rng(0)
    for dtype in (np.float64, np.float32, np.int64, np.int8):
        x, y = rng.integers(-9, 9, n).astype(dtype), rng.integers(-9, 9, m).astype(dtype)
        step = tj.dlaccelerate(lambda x, y: np.convolve(x, y, mode))
        for _ in range(4):
            found = step(tj.dlarray(x), tj.dlarray(y))
        np.testing.assert_array_equal(np.asarray(found), np.convolve(x, y, mode))
