# SPDX-License-Identifier: BSD-3-Clause
"""Programs with linear systems and factors, compiled: a Gaussian process, and Newton's method."""

from typing import Any

import numpy as np
import pytest

import tracejit as tj

RNG = np.random.default_rng(0)
X = np.sort(RNG.uniform(-2, 2, 20))
Y = np.sin(2 * X) + 0.1 * RNG.normal(size=20)


def negative_log_likelihood(parameters: Any) -> Any:
    """Return that of a Gaussian process with a squared exponential kernel; parameters are logarithms."""
    length, scale, noise = (np.exp(parameters[i]) for i in range(3))
    distances = (X[:, None] - X[None, :]) ** 2
    covariance = scale * np.exp(-distances / (2 * length**2)) + noise * np.eye(len(X))
    factor = np.linalg.cholesky(covariance)
    weights = np.linalg.solve(covariance, Y)
    return 0.5 * (Y @ weights) + np.sum(np.log(np.diagonal(factor))) + 0.5 * len(X) * np.log(2 * np.pi)


def test_a_gaussian_process() -> None:
    def loss(parameters: Any) -> Any:
        value = negative_log_likelihood(parameters)
        return value, tj.dlgradient(value, parameters)

    step = tj.dlaccelerate(loss)
    for start in ([0.0, 0.0, -2.0], [0.3, 0.1, -1.5], [-0.2, 0.4, -1.0], [0.1, -0.3, -2.5]):
        at = np.array(start)
        value, gradient = step(tj.dlarray(at))
        assert value.item() == pytest.approx(negative_log_likelihood(at), rel=1e-10)
        for i in range(3):
            by = 1e-5 * np.eye(3)[i]
            slope = (negative_log_likelihood(at + by) - negative_log_likelihood(at - by)) / 2e-5
            assert gradient[i].item() == pytest.approx(slope, rel=1e-6)
    assert step.stats.hits == 2


def test_logistic_regression_by_newtons_method() -> None:
    features = np.column_stack([np.ones(60), RNG.normal(size=(60, 2))])
    labels = (RNG.uniform(size=60) < 1 / (1 + np.exp(-features @ [0.3, 1.0, -1.5]))).astype(float)

    @tj.dlaccelerate
    def newton(weights: Any) -> Any:
        chances = 1 / (1 + np.exp(-(features @ weights)))
        gradient = features.T @ (chances - labels)
        hessian = features.T @ (features * (chances * (1 - chances))[:, None])
        return weights - np.linalg.solve(hessian, gradient), np.max(np.abs(gradient))

    weights = tj.dlarray(np.zeros(3))
    for _ in range(9):
        weights, largest = newton(weights)
    assert largest.item() < 1e-10
    assert newton.stats.hits >= 6


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_factors_of_larger_matrices(dtype: Any) -> None:
    @tj.dlaccelerate
    def step(a: Any, b: Any) -> Any:
        positive = a @ a.T + np.eye(40, dtype=dtype)
        factor = np.linalg.cholesky(positive)
        return (
            np.linalg.solve(a, b),
            np.linalg.slogdet(a),
            factor,
            tj.solve_triangular(factor, b, lower=True),
            tj.solve_triangular(factor, b, trans=1, lower=True),
            np.linalg.inv(positive),
        )

    for seed in range(3):
        rng = np.random.default_rng(seed)
        a, b = rng.normal(size=(40, 40)).astype(dtype), rng.normal(size=(40, 3)).astype(dtype)
        found = step(tj.dlarray(a), tj.dlarray(b))
        positive = a @ a.T + np.eye(40, dtype=dtype)
        factor = np.linalg.cholesky(positive)
        expected = (
            np.linalg.solve(a, b), tuple(np.linalg.slogdet(a)), factor, np.linalg.solve(factor, b),
            np.linalg.solve(factor.T, b), np.linalg.inv(positive),
        )  # fmt: skip
        for have, want in zip(found, expected, strict=True):
            for one, other in zip(have, want, strict=True) if isinstance(want, tuple) else [(have, want)]:
                assert one.dtype == dtype
                tolerance = 1e-9 if dtype is np.float64 else 2e-2
                np.testing.assert_allclose(np.asarray(one), other, rtol=tolerance, atol=tolerance)
    with pytest.raises(np.linalg.LinAlgError):
        step(tj.dlarray(np.ones((40, 40), dtype)), tj.dlarray(b))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_values_and_vectors_of_larger_matrices(dtype: Any) -> None:
    @tj.dlaccelerate
    def step(a: Any) -> Any:
        w, v = np.linalg.eigh(a + a.T)
        u, s, vh = np.linalg.svd(a)
        return w, v, u, s, vh, np.linalg.pinv(a[:, :20]), np.linalg.svd(a[:7], compute_uv=False)

    tolerance = 1e-10 if dtype is np.float64 else 5e-4
    for seed in range(3):
        a = np.random.default_rng(seed).normal(size=(30, 30)).astype(dtype)
        w, v, u, s, vh, inverse, values = (np.asarray(part) for part in step(tj.dlarray(a)))
        close = lambda have, want: np.testing.assert_allclose(have, want, atol=tolerance * 10, rtol=tolerance)
        close(w, np.linalg.eigvalsh(a + a.T))
        close((v * w) @ v.T, a + a.T)
        close(u * s @ vh, a)
        close(s, np.linalg.svd(a, compute_uv=False))
        close(inverse, np.linalg.pinv(a[:, :20]))
        close(values, np.linalg.svd(a[:7], compute_uv=False))
        assert w.dtype == v.dtype == u.dtype == s.dtype == inverse.dtype == dtype
    assert step.stats.hits == 1
    flat = np.ones((30, 30), dtype)
    u = np.asarray(step(tj.dlarray(flat))[2])
    np.testing.assert_allclose(u.T @ u, np.eye(30), atol=tolerance)
