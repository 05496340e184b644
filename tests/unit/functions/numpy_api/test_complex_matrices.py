# SPDX-License-Identifier: BSD-3-Clause
"""Factors, eigenvalues and determinants that NumPy computes: derivatives of both orders beside differences of NumPy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj

RNG = np.random.default_rng(4)


def real(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape)


def mixed(*shape: int) -> np.ndarray:
    return real(*shape) + 1j * real(*shape)


def adjoint(a: Any) -> Any:
    return a.conj().swapaxes(-1, -2)


CASES: dict[str, tuple[Callable[[Any], Any], np.ndarray]] = {
    "det": (np.linalg.det, mixed(2, 3, 3)),
    "det of one": (np.linalg.det, mixed(1, 1)),
    "slogdet": (np.linalg.slogdet, mixed(2, 3, 3)),
    "cholesky": (lambda a: np.linalg.cholesky(a @ adjoint(a) + np.eye(3)), mixed(2, 3, 3)),
    "cholesky, upper": (lambda a: np.linalg.cholesky(a @ adjoint(a) + np.eye(3), upper=True), mixed(3, 3)),
    "eig": (np.linalg.eig, mixed(2, 4, 4)),
    "eig of real matrices": (np.linalg.eig, np.array([[0.0, 2.0, 1.0], [-1.0, 0.5, 0.0], [0.3, 0.2, 1.5]])),
    "eig of a symmetric matrix": (
        np.linalg.eig,
        np.array([[2.0, 1.0, 0.3], [1.0, -1.0, 0.5], [0.3, 0.5, 0.4]]),
    ),
    "eigvals": (np.linalg.eigvals, mixed(2, 4, 4)),
    "eigvals of a real matrix": (np.linalg.eigvals, real(5, 5)),
    "eigh": (lambda a: np.linalg.eigh(a + adjoint(a)), mixed(2, 4, 4)),
    "eigh, upper": (lambda a: np.linalg.eigh(a + adjoint(a), "U"), mixed(3, 3)),
    "eigvalsh": (lambda a: np.linalg.eigvalsh(a + adjoint(a), UPLO="U"), mixed(2, 3, 3)),
    "qr": (np.linalg.qr, mixed(2, 4, 3)),
    "qr, wide": (np.linalg.qr, mixed(2, 4)),
    "qr, complete": (lambda a: np.linalg.qr(a, "complete"), mixed(2, 5, 2)),
    "qr of real matrices, complete": (lambda a: np.linalg.qr(a, mode="complete"), real(2, 5, 3)),
    "qr of a column, complete": (lambda a: np.linalg.qr(a, mode="complete"), real(4, 1)),
    "qr, r": (lambda a: np.linalg.qr(a, mode="r"), mixed(4, 3)),
    "qr of a real matrix, r": (lambda a: np.linalg.qr(a, mode="r"), real(3, 4)),
    "svd": (np.linalg.svd, mixed(2, 3, 3)),
    "svd, tall": (lambda a: np.linalg.svd(a, full_matrices=False), mixed(5, 3)),
    "svd, wide": (lambda a: np.linalg.svd(a, full_matrices=False), mixed(2, 3, 9)),
    "svd, values": (lambda a: np.linalg.svd(a, compute_uv=False), mixed(2, 3, 5)),
    "svdvals": (np.linalg.svdvals, mixed(5, 4)),
    "pinv, tall": (np.linalg.pinv, mixed(5, 3)),
    "pinv, wide": (np.linalg.pinv, mixed(2, 3, 4)),
    "norm, nuc": (lambda a: np.linalg.norm(a, "nuc"), mixed(3, 4)),
    "norm, 2": (lambda a: np.linalg.norm(a, 2, axis=(0, 2)), mixed(3, 2, 4)),
    "norm, -2": (lambda a: np.linalg.norm(a, -2), mixed(3, 4)),
    "cond": (np.linalg.cond, mixed(2, 3, 3)),
    "cond, fro": (lambda a: np.linalg.cond(a, "fro"), mixed(3, 3)),
    "matrix_power": (lambda a: np.linalg.matrix_power(a, -3), mixed(2, 2)),
}


def parts_of(result: Any) -> list[Any]:
    return list(result) if isinstance(result, tuple) else [result]


def loss_of(fun: Callable[[Any], Any], a: np.ndarray) -> Callable[[Any], Any]:
    """Return a real number that all elements of the results have a part in."""
    weights = [
        real(*np.shape(part)) + (1j * real(*np.shape(part)) if np.iscomplexobj(part) else 0)
        for part in parts_of(fun(a))
    ]
    return lambda a: sum(
        (part * weight).sum().real for part, weight in zip(parts_of(fun(a)), weights, strict=True)
    )


def differences(fun: Callable[[np.ndarray], Any], a: np.ndarray, along: np.ndarray) -> Any:
    h = 1e-4 * np.linalg.norm(a) / np.linalg.norm(along)
    near = {k: fun(a + k * h * along) for k in (-2, -1, 1, 2)}
    return (8 * (near[1] - near[-1]) - near[2] + near[-2]) / (12 * h)


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("name", CASES)
def test_derivatives(name: str) -> None:
    fun, a = CASES[name]
    loss, along = loss_of(fun, a), mixed(*a.shape) if np.iscomplexobj(a) else real(*a.shape)

    def sloped(a: Any) -> Any:
        value = loss(a)
        gradient = tj.dlgradient(value, a)
        return value, gradient, (gradient.conj() * along).sum().real

    def first(a: Any) -> Any:
        value, gradient, slope = sloped(a)
        return value, gradient, slope, tj.dlgradient(slope, a), tj.jvp(loss, (a,), (along,))[1]

    accelerated = tj.dlaccelerate(first)
    for _ in range(3):
        value, gradient, slope, curvature, tangent = accelerated(tj.dlarray(a))
    assert accelerated.stats.hits == 1 and gradient.dtype == a.dtype
    assert float(value) == pytest.approx(float(loss(a)), rel=1e-9, abs=1e-9)
    expected = differences(loss, a, along)
    assert float(slope) == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert float(tangent) == pytest.approx(float(slope), rel=1e-9, abs=1e-9)
    plain = lambda a: float(tj.dlfeval(lambda a: sloped(a)[2], tj.dlarray(a)).item())
    bent = (np.asarray(curvature).conj() * along).sum().real
    assert bent == pytest.approx(differences(plain, a, along), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("name", ["det", "eig", "eigvals", "qr", "svd, tall", "pinv, tall"])
def test_numbers_of_single_precision(name: str) -> None:
    fun, a = CASES[name]
    loss = loss_of(fun, a)
    slope = lambda a: tj.dlgradient(loss(a), a)
    found = tj.dlfeval(slope, tj.dlarray(a.astype(np.complex64)))
    want = np.asarray(tj.dlfeval(slope, tj.dlarray(a)))
    assert found.dtype == np.complex64
    np.testing.assert_allclose(found, want, rtol=2e-3, atol=2e-3 * np.abs(want).max())


@pytest.mark.parametrize("name", CASES)
def test_no_matrices(name: str) -> None:
    fun, a = CASES[name]
    if "norm" in name or name in ("cond", "cond, fro"):
        return  # there is no largest of no values
    none = np.zeros((0, *a.shape[-2:]), a.dtype)
    total = lambda a: sum((abs(part) ** 2).sum() for part in parts_of(fun(a)))
    assert tj.dlfeval(lambda a: tj.dlgradient(total(a), a), tj.dlarray(none)).shape == none.shape


def test_equal_eigenvalues() -> None:
    """Their sum has a derivative, although the vectors have none."""
    a = np.diag([2.0, 2.0, 1.0]) + 0j
    for fun in (np.linalg.eigh, np.linalg.eig):
        found = tj.dlfeval(lambda a: tj.dlgradient(fun(a)[0].sum().real, a), tj.dlarray(a))  # noqa: B023
        np.testing.assert_allclose(found, np.eye(3), atol=1e-12)
        vectors = tj.dlfeval(lambda a: tj.dlgradient(abs(fun(a)[1]).sum(), a), tj.dlarray(a))  # noqa: B023
        assert np.isfinite(np.asarray(vectors)).all()


def test_what_has_no_derivative() -> None:
    for fun in (
        lambda a: np.linalg.svd(a)[0],
        lambda a: np.linalg.qr(a, mode="raw")[0],
    ):
        with pytest.raises(tj.GradientError, match=r"np.linalg.(svd|qr): NumPy's own function runs here"):
            tj.dlfeval(lambda a: tj.dlgradient(abs(fun(a)).sum(), a), tj.dlarray(mixed(4, 3)))  # noqa: B023
