# SPDX-License-Identifier: BSD-3-Clause
"""Programs with derivatives of second order and with batches, compiled: Newton, k-means, a Laplacian, dlmap."""

import numpy as np
import pytest
from scipy import optimize

import tracejit as tj
from tracejit import dlaccelerate, dlarray, dlfeval, dlgradient, dlmap

RNG = np.random.default_rng(0)


def replayed(fun, *args):
    """Return what a replay gives."""
    accelerated = dlaccelerate(fun)
    for _ in range(3):
        found = accelerated(*args)
    assert accelerated.stats.hits == 1
    return found


class TestNewton:
    X = RNG.standard_normal((60, 4))
    LABELS = (X @ np.array([1.0, -2.0, 0.5, 0.0]) + RNG.logistic(size=60) > 0) * 1.0

    def loss(self, w):
        z = self.X @ w
        return (np.logaddexp(0, z) - self.LABELS * z).mean() + 1e-2 * (w**2).sum()

    def test_logistic_regression_with_solve(self):
        @dlaccelerate
        def step(w):
            gradient = dlgradient(self.loss(w), w)
            return w - np.linalg.solve(tj.hessian(self.loss, w), gradient)

        w = dlarray(np.zeros(4))
        for _ in range(8):
            w = step(w)
        best = optimize.minimize(self.loss, np.zeros(4), method="BFGS", options={"gtol": 1e-9}).x
        np.testing.assert_allclose(w, best, rtol=1e-6, atol=1e-7)

    def test_products_with_the_hessian_by_conjugate_gradients(self):
        slope = dlaccelerate(lambda w: dlgradient(self.loss(w), w))
        product = dlaccelerate(lambda w, v: tj.hvp(self.loss, w, v))
        result = optimize.minimize(
            self.loss,
            np.zeros(4),
            jac=lambda w: np.asarray(slope(w)),
            hessp=lambda w, v: np.asarray(product(w, v)),
            method="Newton-CG",
        )
        exact = dlfeval(lambda w: tj.dlhessian(self.loss(w), w), result.x)
        for v in np.eye(4):
            np.testing.assert_allclose(product(result.x, v), exact._data @ v, rtol=1e-10, atol=1e-14)
        assert np.abs(np.asarray(slope(result.x))).max() < 1e-4


def test_k_means_by_the_diagonal_of_the_hessian():
    """Each point belongs to its nearest center, so that the Hessian by the centers is diagonal: H 1 is its diagonal."""
    points = np.concatenate([RNG.standard_normal((40, 2)) / 4 + c for c in ([0, 0], [3, 0], [0, 3])])

    def cost(centers):
        distances = ((points[:, None, :] - centers) ** 2).sum(axis=2)
        return np.min(distances, axis=1).sum()

    @dlaccelerate
    def step(centers):
        gradient = dlgradient(cost(centers), centers)
        diagonal = tj.dljvp(gradient, centers, tj.ones_like(centers))
        return centers - gradient / diagonal

    centers = dlarray(np.array([[0.5, 0.5], [2.0, 0.0], [0.0, 2.0]]))
    for _ in range(8):
        before, centers = centers, step(centers)
    nearest = np.argmin(((points[:, None] - before._data) ** 2).sum(-1), 1)
    means = np.stack([points[nearest == i].mean(0) for i in range(3)])
    np.testing.assert_allclose(centers, means, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_laplacian_and_its_gradient(dtype):
    a = RNG.standard_normal((6, 9)).astype(dtype) / 3
    c = RNG.standard_normal((9, 1)).astype(dtype) / 3
    x = RNG.standard_normal((6, 20)).astype(dtype)

    def loss(a, x):
        u = c.T @ tj.tanh(a.T @ x)
        lap = tj.dllaplacian(u, x, 0)
        return lap, dlgradient((lap**2).mean(), a)

    lap, gradient = replayed(loss, a, x)
    t = np.tanh(a.T.astype(float) @ x)
    exact = c.T @ (-2 * t * (1 - t**2) * (a.astype(float) ** 2).sum(0)[:, None])
    tolerance = 1e-12 if dtype == "float64" else 2e-5
    np.testing.assert_allclose(lap, exact, rtol=tolerance, atol=tolerance)
    uncompiled = dlfeval(loss, a.astype(float), x.astype(float))[1]
    np.testing.assert_allclose(gradient, uncompiled, rtol=10 * tolerance, atol=tolerance)


def test_jacobians_and_products():
    w = [RNG.standard_normal((7, 5)), RNG.standard_normal((4, 7))]

    def fun(x):
        return tj.sigmoid(w[1] @ tj.exp(-((w[0] @ x) ** 2)))

    x, v = RNG.standard_normal((2, 5))
    both = replayed(lambda x: (tj.jacobian(fun, x, mode="forward"), tj.jacobian(fun, x, mode="reverse")), x)
    np.testing.assert_allclose(both[0], both[1], rtol=1e-12, atol=1e-15)
    _, along = replayed(lambda x, v: tj.jvp(fun, (x,), (v,)), x, v)
    np.testing.assert_allclose(along, both[0]._data @ v, rtol=1e-12)


MAPPED = {
    "kernel": lambda x, y: tj.exp(-((x - y) ** 2).sum()),
    "products": lambda x, y: (tj.outer(x, y) @ np.ones((3, 2)), tj.solve(tj.outer(x, x) + np.eye(3), y)),
    "gradient": lambda x, y: dlgradient((tj.tanh(x * y) ** 2).sum(), x),
    "hessian": lambda x, y: tj.hessian(lambda x: (tj.sin(x) * y).prod(), x),
    "order": lambda x, y: (np.sort(x), x[tj.argmax(y)], tj.cumsum(y)),
    "places": lambda x, y: x[tj.floor(y).astype(np.int64) % 3],
}


@pytest.mark.parametrize("name", MAPPED)
def test_mapped_functions(name):
    x, y = RNG.uniform(0.5, 2.5, (2, 6, 3))
    fun = MAPPED[name]
    found = tj.tree.flatten(replayed(dlmap(fun, over=0), x, y))[0]
    each = [tj.tree.flatten(dlfeval(fun, *pair))[0] for pair in zip(x, y, strict=True)]
    for have, *want in zip(found, *each, strict=True):
        np.testing.assert_allclose(have, np.stack(want), rtol=1e-11, atol=1e-13)
