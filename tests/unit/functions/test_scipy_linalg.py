# SPDX-License-Identifier: BSD-3-Clause
"""tj.linalg against scipy.linalg, with derivatives of first and second order, in replays and in float32."""

from typing import Any

import numpy as np
import pytest
import scipy.linalg
from accelerated import dlaccelerate

import tracejit as tj

RNG = np.random.default_rng(4)
A = RNG.normal(size=(3, 3))
P = A @ A.T + 3 * np.eye(3)
V = np.array([0.7, -1.3, 2.1])
CALLS = """
expm(a) | expm(a * 20) | expm(a * 1e-9) | expm(p) | sqrtm(p) | sqrtm(p + a) | sqrtm(p * 1e6) | block_diag(a, v, p[:2])
block_diag(v, v[0]) | toeplitz(v) | toeplitz(v, v[:2]) | toeplitz(v[:1], v) | hankel(v) | hankel(v, v[:2] * 3)
hankel(v, a[0]) | circulant(v) | cholesky(p) | cholesky(p, lower=True) | cho_solve(m.cho_factor(p), v)
cho_solve(m.cho_factor(p, lower=True), a) | solve_triangular(p, v) | solve_triangular(p, a, lower=True, trans=1)
solve(p, a) | inv(p) | det(a) | lu(a, permute_l=True)[0] | lu(a)[0] | lu(a)[1] | lu(a)[2] | lu(a[:2])[1] | lu(a[:2])[2]
lu(a[:, :2])[1] | lu(a[:, :2], p_indices=True)[2] | lu(p, p_indices=True)[1]
"""
ROWS = [row.strip() for row in CALLS.replace("|", "\n").splitlines() if row.strip()]


def computed(row: str, package: Any, a: Any, p: Any, v: Any) -> Any:
    return eval(f"m.{row}", {"m": package, "a": a, "p": p, "v": v})


@pytest.mark.parametrize("row", ROWS)
def test_values_are_those_of_scipy(row: str) -> None:
    want = computed(row, scipy.linalg, A, P, V)
    near = 1e-12 * max(1.0, float(np.max(np.abs(want))))
    have = computed(row, tj.linalg, *map(tj.dlarray, (A, P, V)))
    np.testing.assert_allclose(tj.extractdata(have), want, rtol=1e-10, atol=near)
    assert have.format is None
    step = dlaccelerate(lambda a, p, v: computed(row, tj.linalg, a, p, v))
    for _ in range(3):
        np.testing.assert_allclose(tj.extractdata(step(A, P, V)), want, rtol=1e-10, atol=near)
    assert step.stats.hits > 0
    narrow = computed(row, tj.linalg, *[np.float32(x) for x in (A, P, V)])
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(
        tj.extractdata(narrow), want, rtol=2e-3, atol=2e-3 * max(1.0, np.abs(want).max())
    )


@pytest.mark.slow
@pytest.mark.parametrize("row", [row for row in ROWS if "* 20" not in row and "1e6" not in row])
def test_derivatives(row: str) -> None:
    def loss(a: Any, v: Any) -> Any:
        y = computed(row, tj.linalg, a, a @ a.T + 3 * np.eye(3), v)
        return (np.sin(y) * y).sum()

    tj.testing.check_gradients(loss, A * 0.5, V)
    by = (V[:, None] * np.ones(3), V)

    def slope(a: Any, v: Any) -> Any:
        return sum((g * d).sum() for g, d in zip(tj.dlgradient(loss(a, v), (a, v)), by, strict=True))

    have = tj.dlfeval(lambda a, v: tj.dlgradient(slope(a, v), (a, v)), A * 0.5, V)
    near = [tj.dlfeval(slope, A * 0.5 + k * by[0], V + k * by[1]).item() for k in (-2e-4, -1e-4, 1e-4, 2e-4)]
    want = (8 * (near[2] - near[1]) - near[3] + near[0]) / 12e-4
    found = sum((tj.extractdata(g) * d).sum() for g, d in zip(have, by, strict=True))
    assert abs(found - want) <= 1e-6 * max(1.0, abs(want))


def test_many_matrices_and_none() -> None:
    many = np.stack([A, 9 * A, 0 * A])
    want = np.stack([scipy.linalg.expm(x) for x in many])
    np.testing.assert_allclose(
        tj.extractdata(tj.linalg.expm(many)), want, rtol=1e-10, atol=1e-10 * want.max()
    )
    roots = tj.extractdata(tj.linalg.sqrtm(np.stack([P, 5 * P])))
    np.testing.assert_allclose(roots @ roots, np.stack([P, 5 * P]), rtol=1e-12)
    assert tj.linalg.expm(np.zeros((0, 0))).shape == tj.linalg.sqrtm(np.zeros((0, 0))).shape == (0, 0)
    assert tj.linalg.block_diag().shape == (1, 0)
    for name in tj.linalg.__all__:
        assert getattr(tj.linalg, name).__doc__


def test_factors_of_many_matrices_and_none() -> None:
    many = RNG.normal(size=(2, 3, 4, 4))
    for x in (many, many[..., :2], many[..., :2, :], many[:0], many[..., :0], many.astype(np.float32), A * 0):
        p, low, up = map(tj.extractdata, tj.linalg.lu(x))
        assert p.shape[-1] == low.shape[-2] == x.shape[-2] and low.dtype == up.dtype == x.dtype
        np.testing.assert_allclose(p @ low @ up, x, rtol=1e-5, atol=1e-6 if x.dtype == np.float32 else 1e-14)
        rows, low, up = map(tj.extractdata, tj.linalg.lu(x, p_indices=True))
        spread = np.take_along_axis(low, np.broadcast_to(rows[..., None], low.shape), -2)
        np.testing.assert_allclose(spread @ up, x, rtol=1e-5, atol=1e-6 if x.dtype == np.float32 else 1e-14)


def test_a_matrix_of_another_size_is_squared_more_often() -> None:
    """How often is guarded: the replay of a small matrix does not serve a large one."""
    step = dlaccelerate(tj.linalg.expm)
    for factor in (0.1, 0.1, 0.1, 30.0, 30.0, 0.1):
        want = scipy.linalg.expm(A * factor)
        np.testing.assert_allclose(
            tj.extractdata(step(A * factor)), want, rtol=1e-9, atol=1e-9 * np.abs(want).max()
        )


@pytest.mark.slow
def test_no_root() -> None:
    for matrix in (np.diag([1.0, -1.0]), np.array([[-1.0, 1.0], [0.0, -3.0]])):
        with pytest.raises(np.linalg.LinAlgError):
            tj.linalg.sqrtm(matrix)
