# SPDX-License-Identifier: BSD-3-Clause
"""Compiled kernels of integers whose sums, differences and products leave their bits: they wrap around, as NumPy's."""

import numpy as np
import pytest

import tracejit as tj

EXPRESSIONS = [
    "np.abs(a * a)", "np.maximum(a * a, 0)", "np.clip(a * a, 0, None)", "(a + b) < a",
    "(a > 0) & (b > 0) & (a + b < 0)", "np.where(a + 7 < a, 0, 1)", "(a * a) < 0", "((a * a) < 0).any()",
    "np.diff(a) < 0", "np.sign(a - b)", "np.where(a - b > 0, a, b)", "(a**2) >> 3", "(a * a) >> 5",
    "a * 4 == 0", "np.abs(a**3)", "-a < 0", "abs(-a)", "a.sum() < a[0]", "np.cumsum(a) < 0", "np.prod(a) < 0",
    "np.maximum(a - b, b - a)", "(a << 1) // 2 == a", "a * b // b", "np.dot(a, b) < 0", "np.minimum(a + a, a)",
    "(a + 1) > a", "np.abs(a - b) + np.abs(a + b)", "a * a % 7",
]  # fmt: skip


def extremes(dtype, seed):
    info = np.iinfo(dtype)
    near = [
        info.min,
        info.min + 1,
        info.max,
        info.max - 1,
        info.max // 2 + 1,
        0,
        1,
        5,
        int(info.max**0.5) + 1,
    ]
    drawn = np.random.default_rng(seed).integers(info.min, info.max, 40, dtype, endpoint=True)
    return np.concatenate([np.array(near, dtype), drawn])


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_integers_wrap_around(text):
    plain = eval(f"lambda a, b: {text}", {"np": np})
    accelerated = tj.dlaccelerate(plain)
    for dtype in (np.int64, np.int32, np.int16, np.int8, np.uint64, np.uint32, np.uint8):
        for seed in range(3):
            a, b = extremes(dtype, seed), extremes(dtype, seed + 9)[::-1].copy()
            b[b == 0] = 3
            with np.errstate(all="ignore"):
                expected = plain(a, b)
            found = np.asarray(accelerated(a, b))
            assert found.dtype == expected.dtype and found.tolist() == expected.tolist()
    assert accelerated.stats.hits == 7
