# SPDX-License-Identifier: BSD-3-Clause
"""Factors take eight steps at once: matrices of fewer rows, of some eights, and of rows beside these."""

from typing import Any

import numpy as np
import pytest
from accelerated import dlaccelerate

import tracejit as tj
from tracejit import dlarray


@pytest.mark.parametrize("n", [7, 8, 9, 16, 17, 25])
def test_numbers_of_numpy(n: int) -> None:
    def everything(a: Any, y: Any) -> Any:
        both = a @ a.T + np.eye(n)
        return (
            np.linalg.solve(a, y), np.linalg.solve(a, y[:, 0]), np.linalg.solve(a.T, y[:, 0]), np.linalg.inv(a),
            np.linalg.det(a), np.linalg.cholesky(both), np.linalg.solve(a, both),
        )  # fmt: skip

    rng = np.random.default_rng(n)
    a, y = rng.normal(size=(n, n)), rng.normal(size=(n, 3))
    step = dlaccelerate(everything)
    for found in (step(dlarray(a), dlarray(y)), step(dlarray(a), dlarray(y))):
        for ours, theirs in zip(found, everything(a, y), strict=True):
            np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n", [9, 17])
def test_triangular_matrices(n: int) -> None:
    rng = np.random.default_rng(n)
    a, y = np.tril(rng.normal(size=(n, n))) + 3 * np.eye(n), rng.normal(size=(n, 2))
    step = dlaccelerate(
        lambda a, y: (tj.solve_triangular(a, y, lower=True), tj.solve_triangular(a.T, y[:, 0], lower=False))
    )
    for _ in range(2):
        lower, upper = (np.asarray(part) for part in step(dlarray(a), dlarray(y)))
        np.testing.assert_allclose(a @ lower, y, atol=1e-10)
        np.testing.assert_allclose(a.T @ upper, y[:, 0], atol=1e-10)


@pytest.mark.parametrize("place", [3, 8, 11])
def test_a_step_that_fails(place: int) -> None:
    """Of a singular matrix the determinant is 0, and an indefinite one has no factor."""
    a = np.random.default_rng(0).normal(size=(12, 12))
    b = a @ a.T + np.eye(12)
    b[place, place] = -1.0
    a[:, place] = 0.0
    step = dlaccelerate(np.linalg.det)
    for _ in range(2):
        assert float(step(dlarray(a))) == 0.0
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        dlaccelerate(np.linalg.cholesky)(dlarray(b))
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        dlaccelerate(np.linalg.inv)(dlarray(a))


def test_an_infinite_right_side() -> None:
    """Sums in parts begin with products, not with zeros, which would make NaN of infinities."""
    a, y = np.eye(20), np.ones(20)
    y[19] = np.inf
    step = dlaccelerate(np.linalg.solve)
    for _ in range(2):
        assert np.asarray(step(dlarray(a), dlarray(y)))[19] == np.inf
