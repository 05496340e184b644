# SPDX-License-Identifier: BSD-3-Clause
"""Extrema in vectors, compiled for this CPU, are NumPy's, with NaN."""

import numpy as np
import pytest

import tracejit as tj

FUNCTIONS = (np.max, np.min, np.argmax, np.argmin)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("shape", "axis"), [((3, 100), 1), ((64,), 0), ((2, 101, 10), 1), ((50, 17), 0)])
def test_extrema(shape: tuple[int, ...], axis: int, dtype: str) -> None:
    rng = np.random.default_rng(0)
    function = tj.dlaccelerate(lambda x: tuple([find(x, axis=axis) for find in FUNCTIONS]), audit=False)
    for numbers in (rng.standard_normal(shape), rng.integers(0, 3, shape)):
        for nans in (0, 0, 0, 1, 3):
            x = numbers.astype(dtype)
            x.flat[rng.integers(0, x.size, nans)] = np.nan
            for found, find in zip(function(tj.dlarray(x)), FUNCTIONS, strict=True):
                np.testing.assert_array_equal(np.asarray(found), find(x, axis=axis))
