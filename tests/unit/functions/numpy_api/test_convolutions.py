# SPDX-License-Identifier: BSD-3-Clause
"""np.convolve and np.correlate of vectors of many sizes: NumPy's numbers and dtypes, and derivatives."""

from typing import Any

import numpy as np
import pytest
from accelerated import dlaccelerate

from tracejit import dlarray
from tracejit.testing import check_gradients

SIZES = [(40, 30), (30, 40), (280, 6), (20, 20), (33, 5), (9, 90)]
DTYPES = ["float64", "float32", "float16", "int64", "int8", "uint8", "bool", "complex128", "complex64"]


def draw(n: int, dtype: str, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.random(n) > 0.8
    return (rng.integers(0, 5, n) * (1 + 2j if dtype.startswith("c") else 1)).astype(dtype)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize(("n", "m"), SIZES)
def test_numbers_of_numpy(n: int, m: int, mode: str) -> None:
    """The elements are whole numbers, so that sums have no rounding (but in 16 bits)."""

    def both(x: Any, y: Any) -> Any:
        return np.convolve(x, y, mode), np.correlate(x, y, mode)

    for dtype in DTYPES:
        x, y = draw(n, dtype, 0), draw(m, dtype, 1)
        if dtype == "float16":
            x, y = x.clip(0, 1), y.clip(0, 1)
        step = dlaccelerate(both)
        for found in (
            both(dlarray(x), dlarray(y)),
            step(dlarray(x), dlarray(y)),
            step(dlarray(x), dlarray(y)),
        ):
            for ours, theirs in zip(found, both(x, y), strict=True):
                assert ours.dtype == theirs.dtype, dtype
                np.testing.assert_array_equal(np.asarray(ours), theirs, err_msg=dtype)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize(("n", "m"), [(24, 7), (7, 24), (19, 18)])
def test_derivatives(n: int, m: int, mode: str) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=n), rng.normal(size=m)
    check_gradients(lambda x, y: np.convolve(x, y, mode), dlarray(x), dlarray(y))
    check_gradients(lambda x, y: np.correlate(x, y, mode) ** 2, dlarray(x), dlarray(y))


@pytest.mark.parametrize("mode", ["full", "same"])
def test_what_lies_beside_the_ends_is_no_factor(mode: str) -> None:
    """An infinity times a zero that stands for nothing would be NaN."""
    x, y = np.arange(1.0, 31.0), np.arange(1.0, 21.0)
    y[3] = np.inf
    step = dlaccelerate(lambda x, y: np.convolve(x, y, mode))
    for _ in range(3):
        np.testing.assert_array_equal(np.asarray(step(dlarray(x), dlarray(y))), np.convolve(x, y, mode))
