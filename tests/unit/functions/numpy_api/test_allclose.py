# SPDX-License-Identifier: BSD-3-Clause
"""np.allclose of integers and truth values in accelerated functions: a guard, as NumPy decides."""

import numpy as np
import pytest

import tracejit as tj


@pytest.mark.parametrize("dtype", ["?", "u1", "i1", "i8", "f4", "f8", "c16"])
def test_as_numpy_decides(dtype: str) -> None:
    """Differences are those of floating point, which do not wrap around: 127 and -128 are 255 apart."""
    step = tj.dlaccelerate(lambda x, y: np.allclose(x, y, atol=2.0))
    high = 1 if dtype == "?" else 127
    low = {"i1": -128, "i8": -128}.get(dtype, 0)
    for x, y in ((high, high), (high, low), (low, low), (high, high), (low, high)):
        x, y = np.full(3, x, dtype), np.full(3, y, dtype)
        assert step(x, y) == np.allclose(x, y, atol=2.0)


def test_nan_and_infinities() -> None:
    step = tj.dlaccelerate(lambda x, y: (np.allclose(x, y), np.allclose(x, y, equal_nan=True)))
    x, y = np.array([np.inf, 1.0]), np.array([np.nan, 1.0])
    for a, b in ((x, x), (x, -x), (y, y), (x, y), (x, x), (y, y)):
        assert step(a, b) == (np.allclose(a, b), np.allclose(a, b, equal_nan=True))
