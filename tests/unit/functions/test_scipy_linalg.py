# SPDX-License-Identifier: BSD-3-Clause
"""tj.linalg against scipy.linalg, with derivatives of first and second order, in replays and in float32."""

import warnings
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
lu(a[:, :2])[1] | lu(a[:, :2], p_indices=True)[2] | lu(p, p_indices=True)[1] | lu_factor(a)[0]
lu_solve(m.lu_factor(a), v) | lu_solve(m.lu_factor(a), p, trans=1) | lu_solve(m.lu_factor(a), v, trans=2)
solve(a, v, transposed=True) | solve(p, v, assume_a="pos") | solve(a, v, lower=True, assume_a="sym")
cosm(a) | sinm(a) | tanm(a) | coshm(a) | sinhm(a) | tanhm(a) | expm_frechet(a, p)[1] | logm(p) | logm(p @ p + a)
signm(a) | fractional_matrix_power(p, 0.3) | fractional_matrix_power(p, -1.5) | companion(v) | khatri_rao(a, p)
polar(a)[0] | polar(a)[1] | polar(a, side="left")[1] | polar(a[:2])[0] | polar(a[:2])[1] | polar(a[:, :2])[0]
polar(a[:, :2], side="left")[1] | solve_sylvester(p, p, a) | solve_sylvester(p[:2, :2], p, a[:2])
solve_continuous_lyapunov(p, a) | solve_discrete_lyapunov(a * 0.1, p) | solve_continuous_are(a, a[:, :2], p, p[:2, :2])
solve_discrete_are(a, a[:, :2], p, p[:2, :2]) | solve_banded((1, 1), p, v) | solve_banded((0, 2), p / 9 + D, a)
solve_banded((2, 0), p / 9 + D[::-1], v) | solveh_banded(p[:2] / 50 + U, v)
solveh_banded(p[:2] / 50 + L, a, lower=True)
cholesky_banded(p[:2] / 50 + L, lower=True) * M[::-1, ::-1] | cholesky_banded(p[:2] / 50 + U) * M
cho_solve_banded((m.cholesky_banded(p[:2] / 50 + L, lower=True), True), v)
cho_solve_banded((m.cholesky_banded(p[:2] / 50 + U), False), v)
solve_toeplitz(v * v + 3, v) | solve_toeplitz((v, v[::-1] + 5), a)
matmul_toeplitz((v, a[0]), p) | solve_circulant(v, a)
abs(m.eigvals(p)) | eigvalsh(p) | eigvalsh(p, p + m.toeplitz(v * v)) | eigh(p, 2 * p, eigvals_only=True)
eigvalsh(p, subset_by_index=(1, 2)) | eigvalsh(p, subset_by_value=(-1e9, 1e9)) | svdvals(a) | pinv(a[:2]) | pinvh(p)
lstsq(a[:, :2], v)[0] | norm(a) | abs(m.qr(a)[1]) | abs(m.qr(a[:, :2], mode="economic")[1])
m.orth(a[:, :2]) @ m.orth(a[:, :2]).T | m.null_space(a[:2]) @ m.null_space(a[:2]).T
"""
ROWS = [row.strip() for row in CALLS.replace("|", "\n").splitlines() if row.strip()]


BANDS = {  # diagonals of positive definite matrices, and which elements of theirs are read
    "L": np.array([[9.0], [0.1]], np.float32), "U": np.array([[0.1], [9.0]], np.float32),
    "D": np.array([[0.0], [0.0], [9.0]], np.float32), "M": np.array([[0, 1, 1], [1, 1, 1]], np.float32),
}  # fmt: skip


def computed(row: str, package: Any, a: Any, p: Any, v: Any) -> Any:
    text = row if row.startswith(("m.", "abs(")) else f"m.{row}"
    return eval(text, {"m": package, "a": a, "p": p, "v": v, **BANDS})


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
    singles = [np.float32(x) for x in (A, P, V)]
    narrow = computed(row, tj.linalg, *singles)
    with warnings.catch_warnings():  # about digits
        warnings.simplefilter("ignore")
        assert narrow.dtype == computed(row, scipy.linalg, *singles).dtype
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


C = A * 0.4 + np.eye(3) + 0.3j * RNG.normal(size=(3, 3))
H = C @ C.conj().T + 2 * np.eye(3)
OF_COMPLEX = """
expm(a) | cosm(a) | sinm(a) | tanhm(a) | logm(a) | sqrtm(p) | signm(a) | fractional_matrix_power(p, 0.3) | cholesky(p)
cholesky(p, lower=True) | cho_solve(m.cho_factor(p), v) | solve_triangular(a, v) | solve_triangular(a, v, trans="C")
solve_triangular(a, p, trans=1, lower=True) | lu(a)[1] | lu(a)[2]
lu_solve(m.lu_factor(a), v, trans=2) | det(a) | inv(a) | solve(a, v)
solve(p, v, assume_a="pos") | solve(a, v, lower=True, assume_a="her") | polar(a)[0] | polar(a)[1]
solve_sylvester(p, p, a) | solve_discrete_lyapunov(a * 0.1, p) | solve_continuous_are(a, a[:, :2], p, p[:2, :2])
solve_discrete_are(a, a[:, :2], p, p[:2, :2]) | solve_banded((1, 1), p, v)
solveh_banded(abs(p[:2]) / 50 + L * (1 + 0j), v, lower=True)
solve_toeplitz(v, v) | eigvals(p) | eigvalsh(p, p + p) | pinvh(p) | expm_frechet(a, p)[1]
"""


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize(
    "row", [row.strip() for row in OF_COMPLEX.replace("|", "\n").splitlines() if row.strip()]
)
def test_complex_matrices(row: str) -> None:
    """Values, gradients and second derivatives along a direction, uncompiled and in replays."""
    h, v = H, V + 0.5j
    want = computed(row, scipy.linalg, C, h, v)
    step = dlaccelerate(lambda a, p, v: computed(row, tj.linalg, a, p, v))
    for have in (computed(row, tj.linalg, *map(tj.dlarray, (C, h, v))), *(step(C, h, v) for _ in range(3))):
        np.testing.assert_allclose(tj.extractdata(have), want, rtol=1e-9, atol=1e-10 * np.abs(want).max())
    narrow = [x.astype(np.complex64) for x in (C, h, v)]
    with warnings.catch_warnings():  # about digits
        warnings.simplefilter("ignore")
        assert computed(row, tj.linalg, *narrow).dtype == computed(row, scipy.linalg, *narrow).dtype
    by = RNG.normal(size=C.shape) + 1j * RNG.normal(size=C.shape)

    def loss(a: Any) -> Any:
        y = computed(row, tj.linalg, a, a @ a.conj().T + h, v)
        return (np.sin(y.real) + (y.imag * y.real if y.dtype.kind == "c" else 0.0)).sum()

    def slope(a: Any) -> Any:
        return (tj.dlgradient(loss(a), a).conj() * by).sum().real

    for f, found in ((loss, slope), (slope, lambda a: (tj.dlgradient(slope(a), a).conj() * by).sum().real)):
        near = [tj.dlfeval(f, C + k * 1e-4 * by).item() for k in (-2, -1, 1, 2)]
        exact = (8 * (near[2] - near[1]) - near[3] + near[0]) / 12e-4
        assert abs(tj.dlfeval(found, C).item() - exact) <= 1e-5 * max(1.0, abs(exact)), row


def test_results_that_values_make_complex() -> None:
    turned = np.diag([-4.0, 9.0])
    np.testing.assert_allclose(tj.extractdata(tj.linalg.logm(turned)), scipy.linalg.logm(turned), atol=1e-14)
    np.testing.assert_allclose(
        tj.extractdata(tj.linalg.sqrtm(turned.astype(complex))), np.diag([2j, 3]), atol=1e-14
    )
    step = dlaccelerate(tj.linalg.logm)
    for _ in range(3):
        assert step(-turned @ turned * 0 + np.eye(2)).dtype == np.float64


def test_schur_forms() -> None:
    for output in ("real", "complex"):
        t, z = (tj.extractdata(x) for x in tj.linalg.schur(A, output=output))
        np.testing.assert_allclose(z @ t @ z.conj().T, A, atol=1e-13)
    with pytest.raises(tj.GradientError):
        tj.dlfeval(lambda a: tj.dlgradient(tj.linalg.schur(a)[0].sum(), a), A)


def test_generalised_eigenvectors() -> None:
    w, v = (tj.extractdata(x) for x in tj.linalg.eigh(A + A.T, P))
    np.testing.assert_allclose((A + A.T) @ v, P @ v * w, atol=1e-12)
    np.testing.assert_allclose(v.T @ P @ v, np.eye(3), atol=1e-12)
