# SPDX-License-Identifier: BSD-3-Clause
"""Edges of functions of NumPy and SciPy: places that coincide, large triangular matrices, equal singular values."""

from typing import Any

import numpy as np
import pytest
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.signal
import scipy.special
from accelerated import dlaccelerate

import tracejit as tj

TRIANGULAR = {
    "of two rows": np.array([[1.0, 1e6], [0.0, -1.0]]),
    "far above its diagonal": np.array([[1.0, 1e12], [0.0, -1.0]]),
    "of blocks": np.block(
        [[0.3 * np.eye(2) + np.eye(2, k=1), 1e7 * np.ones((2, 2))], [np.zeros((2, 2)), -np.eye(2)]]
    ),
}


@pytest.mark.parametrize("name", TRIANGULAR)
def test_exponentials_of_matrices_of_small_powers(name: str) -> None:
    """Halved as often as their norms say, they had lost most digits of the elements on the diagonal."""
    a = TRIANGULAR[name]
    step = dlaccelerate(tj.linalg.expm)
    for _ in range(3):
        found = np.asarray(step(a))
        np.testing.assert_allclose(found, scipy.linalg.expm(a), rtol=1e-14, atol=1e-30)
    assert step.stats.hits == 2


def test_an_exponential_in_a_batch_is_not_that_of_its_largest() -> None:
    batch = np.stack([1e5 * np.array([[-1.0, 1.0], [1.0, -1.0]]), np.array([[0.1, 0.2], [0.3, 0.4]])])
    found = np.asarray(tj.dlfeval(tj.linalg.expm, batch))
    np.testing.assert_allclose(found[1], scipy.linalg.expm(batch[1]), rtol=1e-15)
    np.testing.assert_allclose(found[0], 0.5, rtol=1e-9)


def test_the_exponential_of_a_large_triangular_matrix_has_its_derivative() -> None:
    def slope(a: Any) -> Any:
        return tj.dlgradient((tj.linalg.expm(a) * np.array([[1.0, 2.0], [3.0, 4.0]])).sum(), a)

    a, e = np.array([[1.0, 300.0], [0.0, -1.0]]), np.zeros((2, 2))
    e[0, 0] = 1.0
    along = scipy.linalg.expm_frechet(a, e, compute_expm=False)
    want = (along * np.array([[1.0, 2.0], [3.0, 4.0]])).sum()
    assert np.isclose(np.asarray(tj.dlfeval(slope, a))[0, 0], want, rtol=1e-12)


def test_derivatives_along_large_matrices_keep_their_digits() -> None:
    a, e = np.array([[0.3, 0.2], [-0.1, 0.4]]), 1e8 * np.array([[1.0, 2.0], [3.0, -1.0]])
    found = tj.dlfeval(lambda a, e: tj.linalg.expm_frechet(a, e), a, e)
    for have, want in zip(found, scipy.linalg.expm_frechet(a, e), strict=True):
        np.testing.assert_allclose(np.asarray(have), want, rtol=1e-13)


@pytest.mark.parametrize("n", [3, 4, 5])
def test_simpson_of_places_that_coincide(n: int) -> None:
    for x in (np.full(n, 3.0), np.r_[0.0, 0.0, np.arange(n - 2.0)], np.r_[np.arange(n - 1.0), n - 2.0]):
        y = np.arange(1.0, n + 1) ** 2
        step = dlaccelerate(lambda y, x: tj.integrate.simpson(y, x=x))
        for _ in range(3):
            assert np.isclose(step(y, x).item(), scipy.integrate.simpson(y, x=x), rtol=1e-14)
        assert np.isfinite(
            tj.dlfeval(lambda y, x: tj.dlgradient(tj.integrate.simpson(y, x=x), x), y, x)
        ).all()


def test_nothing_is_chosen_of_nothing_in_one_way() -> None:
    n = np.arange(4.0)
    found = tj.dlfeval(lambda n: tj.special.comb(n, 0, repetition=True), n)
    assert found.tolist() == [1.0, 1.0, 1.0, 1.0]
    assert tj.dlfeval(lambda n: tj.special.comb(n, 2, repetition=True), n).tolist() == [0.0, 1.0, 3.0, 6.0]


ORTHONORMAL = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 3)))[0]
OF_EQUAL_VALUES = {
    "identity": np.eye(3),
    "tall": ORTHONORMAL,
    "wide": ORTHONORMAL.T,
    "of rank 2": np.diag([2.0, 2.0, 0.0]),
}


@pytest.mark.parametrize("name", OF_EQUAL_VALUES)
@pytest.mark.parametrize("function", ["pinv", "lstsq"])
def test_derivatives_by_a_matrix_of_equal_singular_values(function: str, name: str) -> None:
    """The derivatives of singular vectors lack the pairs of equal values; the formula of Golub and Pereyra does not."""
    a = OF_EQUAL_VALUES[name]
    rng = np.random.default_rng(1)
    weights = rng.normal(size=a.T.shape if function == "pinv" else a.shape[1:])
    y = rng.normal(size=len(a))
    p = np.linalg.pinv(a)

    def slope(a: Any, y: Any) -> Any:
        found = np.linalg.pinv(a) if function == "pinv" else np.linalg.lstsq(a, y, rcond=1e-12)[0]
        return tj.dlgradient((found * weights).sum(), a)

    g = (weights if function == "pinv" else np.outer(weights, y)).T  # by the pseudo-inverse, transposed
    left, right = np.eye(len(a)) - a @ p, np.eye(a.shape[1]) - p @ a
    want = -(p.T @ g.T @ p.T) + left @ g @ p @ p.T + p.T @ p @ g @ right
    step = dlaccelerate(slope)
    for run in (lambda a, y: tj.dlfeval(slope, a, y), step, step, step):
        np.testing.assert_allclose(np.asarray(run(a, y)), want, rtol=1e-12, atol=1e-13)
    assert step.stats.hits == 2


def test_second_derivatives_by_a_matrix_of_equal_singular_values() -> None:
    weights = np.arange(15.0).reshape(3, 5)
    hessian = np.asarray(tj.hessian(lambda a: (np.linalg.pinv(a) * weights).sum(), ORTHONORMAL)).reshape(
        15, 15
    )

    def slope(a: np.ndarray) -> np.ndarray:
        found = tj.dlfeval(lambda a: tj.dlgradient((np.linalg.pinv(a) * weights).sum(), a), a)
        return np.asarray(found).ravel()

    step = 1e-5 * np.arange(15.0).reshape(5, 3)
    along = (slope(ORTHONORMAL + step) - slope(ORTHONORMAL - step)) / 2e-5
    np.testing.assert_allclose(hessian @ step.ravel() / 1e-5, along, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("name", ["welch", "csd", "coherence"])
def test_spectra_of_integers_are_replayed(name: str) -> None:
    """SciPy's code asks for the integers, so that it is called as a whole; objects that it makes are new ones then."""
    function = getattr(scipy.signal, name)

    def spectrum(x: Any) -> Any:
        return function(x, nperseg=8)[1] if name == "welch" else function(x, x[::-1], nperseg=8)[1]

    step = tj.dlaccelerate(spectrum)
    for k in range(4):
        x = (np.arange(16) * (k + 1)) ** 2 % 17
        np.testing.assert_allclose(np.asarray(step(x)), spectrum(x), rtol=1e-10, atol=1e-10)
    assert (step.stats.hits, step.stats.uncompiled) == (2, 0)


@pytest.mark.parametrize("name", ["dct", "idst", "dctn"])
def test_cosine_transforms_of_16_bits_are_in_single_precision(name: str) -> None:
    x = np.arange(6).reshape(2, 3).astype(np.float16)
    found, want = tj.dlfeval(getattr(tj.fft, name), x), getattr(scipy.fft, name)(x)
    assert found.dtype == want.dtype == np.float32
    np.testing.assert_allclose(np.asarray(found), want, rtol=1e-6, atol=1e-6)


@pytest.mark.filterwarnings("ignore:.*lagrange:DeprecationWarning")  # by SciPy 1.18
def test_the_polynomial_through_points_has_derivatives() -> None:
    """Its code divides polynomials of lists by numbers."""

    def at(x: Any, y: Any) -> Any:
        value = scipy.interpolate.lagrange(x, y)(0.3)
        return value, tj.dlgradient(value, (x, y))

    x, y = np.arange(3.0), np.array([1.0, 2.0, 4.0])
    step = dlaccelerate(at)
    for _ in range(3):
        value, (by_x, by_y) = step(x, y)
        assert np.isclose(value.item(), scipy.interpolate.lagrange(x, y)(0.3))
        np.testing.assert_allclose(
            np.asarray(by_y), [scipy.interpolate.lagrange(x, e)(0.3) for e in np.eye(3)]
        )
        slope = scipy.interpolate.lagrange(x, y).deriv()(x)  # a place that moves takes its value along
        np.testing.assert_allclose(np.asarray(by_x), -slope * np.asarray(by_y))
    assert step.stats.hits == 2


@pytest.mark.parametrize("values", [[2.0, -1.0, 0.0], [0.0, 0.0, 3.0], [1.0, -2.0, 4.0]], ids=str)
def test_signs_of_matrices_with_values_on_the_imaginary_axis_are_those_of_scipy(values: list[float]) -> None:
    v = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, 1.0]])
    a = v @ np.diag(values) @ np.linalg.inv(v)
    np.testing.assert_allclose(np.asarray(tj.linalg.signm(a)), scipy.linalg.signm(a), atol=1e-9)
    turning = np.zeros((5, 5))
    turning[:3, :3], turning[3:, 3:] = a, [[0.0, 1.0], [-1.0, 0.0]]
    np.testing.assert_allclose(np.asarray(tj.linalg.signm(turning)), scipy.linalg.signm(turning), atol=1e-9)


def test_signs_of_matrices_without_numbers_are_nan() -> None:
    assert np.isnan(np.asarray(tj.linalg.signm([[np.nan, 0.0], [0.0, 1.0]]))).any()


@pytest.mark.parametrize(("name", "edge"), [("boxcox", 0.0), ("boxcox1p", -1.0)])
@pytest.mark.parametrize("p", [0.5, 2.0])
def test_power_transforms_have_derivatives_by_the_power_at_the_edge(name: str, edge: float, p: float) -> None:
    function = getattr(scipy.special, name)
    slope = tj.dlfeval(lambda p: tj.dlgradient(function(edge, p), p), tj.dlarray(p))
    assert np.isclose(slope.item(), 1 / p**2)
