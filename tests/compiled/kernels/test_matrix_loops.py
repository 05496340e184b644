# SPDX-License-Identifier: BSD-3-Clause
"""Eigenvalues and singular values of more than three columns are those of NumPy's LAPACK, called by programs."""

from typing import Any

import numpy as np
import pytest

import tracejit as tj


def everything(a: Any) -> Any:
    # A matrix with several eigenvalues of 0 has no vectors of its own for them.
    turned = np.swapaxes(a, -1, -2)
    both = a @ turned if a.shape[-2] <= a.shape[-1] else turned @ a
    return (
        *np.linalg.eigh(both), np.linalg.eigvalsh(both), *np.linalg.svd(a, full_matrices=False),
        np.linalg.svd(a, compute_uv=False),
    )  # fmt: skip


@pytest.mark.parametrize("shape", [(5, 5), (3, 4, 6), (2, 3, 7, 4), (130, 4, 4), (70, 66), (0, 5, 5)])
def test_values_and_vectors(shape: tuple[int, ...]) -> None:
    a = np.random.default_rng(0).normal(size=shape)
    step = tj.dlaccelerate(everything)
    for _ in range(4):
        found = step(tj.dlarray(a))
    for ours, theirs in zip(found, everything(a), strict=True):
        np.testing.assert_allclose(np.abs(np.asarray(ours)), np.abs(theirs), rtol=1e-6, atol=1e-8)


def test_a_matrix_that_is_not_finite() -> None:
    step = tj.dlaccelerate(np.linalg.eigvalsh)
    a = np.eye(6)
    for _ in range(4):
        np.testing.assert_array_equal(np.asarray(step(tj.dlarray(a))), np.ones(6))
    with pytest.raises(np.linalg.LinAlgError, match="not finite"):
        step(tj.dlarray(np.full((6, 6), np.nan)))
