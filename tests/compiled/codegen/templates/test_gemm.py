# SPDX-License-Identifier: BSD-3-Clause
"""Products, compiled for this CPU, whose last tiles are narrower or higher than the others, and rows times columns."""

import numpy as np
import pytest

import tracejit as tj


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("m", "k", "n"), [(100, 7, 100), (10, 100, 68), (30, 5, 36), (9, 3, 84), (1, 10, 50), (100, 200, 100)]
)
def test_sizes_beside_tiles(m: int, k: int, n: int, dtype: str) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((k, n)).astype(dtype)
    turned = [np.ascontiguousarray(part.T) for part in (x, y)]
    multiply = tj.dlaccelerate(lambda x, y, a, b: (x @ y, a.T @ y, x @ b.T), audit=False)
    for _ in range(3):
        found = multiply(*map(tj.dlarray, (x, y, *turned)))
    expected = x.astype(float) @ y
    for product in found:
        np.testing.assert_allclose(np.asarray(product), expected, atol=k * 8 * float(np.finfo(dtype).eps))
