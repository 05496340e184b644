# SPDX-License-Identifier: BSD-3-Clause
"""Factors of matrices of many sizes, compiled: eight steps at once, and what is left."""

from typing import Any

import numpy as np
import pytest

import tracejit as tj


def everything(a: Any) -> Any:
    both = a @ np.swapaxes(a, -1, -2) + np.eye(a.shape[-1], dtype=a.dtype)
    return (
        np.linalg.inv(both), np.linalg.cholesky(both), *np.linalg.slogdet(both),
        np.linalg.solve(both, a), np.linalg.solve(both, a[..., :1]),
    )  # fmt: skip


@pytest.mark.parametrize("n", [3, 8, 13, 64, 100])
def test_factors(n: int) -> None:
    a = np.random.default_rng(n).normal(size=(2, n, n)) / np.sqrt(n)
    step = tj.dlaccelerate(everything)
    for _ in range(4):
        found = step(tj.dlarray(a))
    for ours, theirs in zip(found, everything(a), strict=True):
        np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-9, atol=1e-10)
