# SPDX-License-Identifier: BSD-3-Clause
"""Arrays whose elements take turns, compiled."""

import numpy as np
import pytest

import tracejit as tj


@pytest.mark.parametrize(
    "dtype", [np.float32, np.float64, np.uint8, np.int16, np.bool_, np.float16, np.complex64]
)
@pytest.mark.parametrize("shape", [(1,), (7,), (33, 3), (200, 100)])
def test_stacks(dtype: type, shape: tuple[int, ...]) -> None:
    x, y, z = ((np.random.default_rng(seed).random(shape) * 9).astype(dtype) for seed in range(3))
    step = tj.dlaccelerate(
        lambda x, y, z: (
            np.stack([x, y], axis=-1),
            np.stack([x, y, z], axis=-1),
            np.stack([x, y, z, x], axis=-1),
        )
    )
    for _ in range(4):
        found = step(tj.dlarray(x), tj.dlarray(y), tj.dlarray(z))
    for ours, arrays in zip(found, ([x, y], [x, y, z], [x, y, z, x]), strict=True):
        np.testing.assert_array_equal(np.asarray(ours), np.stack(arrays, axis=-1))
