# SPDX-License-Identifier: BSD-3-Clause
"""Powers and their derivatives of any order, at 0 and around: falling factorials, and differences of forward values."""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit import dlaccelerate

PLACES = np.array([-1.5, -1e-3, 0.0, 0.5, 2.0])
EXPONENTS = (0.0, 1.0, 2.0, 3.0, 4.0)
ORDER = 4


def derivatives(power: Callable[[Any], Any], x: np.ndarray, order: int = ORDER) -> list[np.ndarray]:
    """Return the derivatives of a function of each element, from the first to the last."""

    def step(x: Any) -> list[Any]:
        results, y = [], power(x)
        for _ in range(order):
            y = tj.dlgradient(tj.sum(y), x)
            results.append(y)
        return results

    return [np.asarray(result) for result in tj.dlfeval(step, x)]


def exact(p: float, x: np.ndarray, order: int) -> np.ndarray:
    """Return a derivative of x**p for a whole p: p (p - 1) ... x**(p - order), which is 0 from the order p + 1 on."""
    factor = prod(p - i for i in range(order))
    return np.zeros_like(x) if factor == 0 else factor * x ** (p - order)


@pytest.mark.sampled
@pytest.mark.parametrize("p", EXPONENTS)
@pytest.mark.parametrize(
    "form",
    [float, int, np.float64, np.float32, np.array, lambda p: np.full(5, p), tj.dlarray],
    ids=lambda form: form.__name__,
)
def test_whole_exponents(p: float, form: Callable[[float], Any]) -> None:
    for order, result in enumerate(derivatives(lambda x: x ** form(p), PLACES), 1):
        np.testing.assert_allclose(result, exact(p, PLACES, order), rtol=1e-6, atol=1e-12)


def test_exponents_side_by_side() -> None:
    x, p = np.zeros(5), np.array(EXPONENTS)
    results = derivatives(lambda x: x**p, x)
    for order, result in enumerate(results, 1):
        assert result.tolist() == [exact(q, np.zeros(1), order).item() for q in EXPONENTS]


def test_a_traced_exponent() -> None:
    def step(x: Any, p: Any) -> Any:
        slope = tj.dlgradient(tj.sum(x**p), x)
        return slope, tj.dlgradient(tj.sum(slope), x)

    first, second = tj.dlfeval(step, np.zeros(3), np.array([0.0, 1.0, 2.0]))
    assert (first.tolist(), second.tolist()) == ([0.0, 1.0, 0.0], [0.0, 0.0, 2.0])


@pytest.mark.parametrize("p", [*EXPONENTS, 0.5, -1.0, 2.5])
def test_differences_of_forward_values(p: float) -> None:
    x, step = np.array([0.3, 1.0, 2.2]), 1e-3
    results = derivatives(lambda x: x**p, x, 2)
    forward = [np.asarray(tj.power(x + i * step, p)) for i in (-1, 0, 1)]
    np.testing.assert_allclose(results[0], (forward[2] - forward[0]) / (2 * step), rtol=1e-4, atol=1e-4)
    second = (forward[2] - 2 * forward[1] + forward[0]) / step**2
    np.testing.assert_allclose(results[1], second, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.0])
def test_differences_around_zero(p: float) -> None:
    step = 1e-2
    forward = [tj.power(np.array(i * step), p).item() for i in (-1, 0, 1)]
    first, second = (np.asarray(d).item() for d in derivatives(lambda x: x**p, np.zeros(1), 2))
    assert abs(first - (forward[2] - forward[0]) / (2 * step)) < 2 * step
    assert abs(second - (forward[2] - 2 * forward[1] + forward[0]) / step**2) < 2 * step


def test_a_polynomial_written_with_powers_has_finite_derivatives_at_zero() -> None:
    k = [3.0, -2.0, 0.5, 1.0]
    results = derivatives(lambda x: sum(c * x**n for n, c in enumerate(k)), np.zeros(2), 4)
    assert [result.tolist() for result in results] == [[-2.0] * 2, [1.0] * 2, [6.0] * 2, [0.0] * 2]


def test_infinite_slopes_stay_infinite() -> None:
    results = derivatives(lambda x: x**0.5, np.zeros(1), 2)
    assert [result.item() for result in results] == [np.inf, -np.inf]


POWERS = [lambda p: p[0] ** p[1], lambda p: np.power(p[0], p[1]), lambda p: np.float_power(p[0], p[1])]


@pytest.mark.parametrize("power", POWERS, ids=["operator", "power", "float_power"])
@pytest.mark.parametrize("x", [1e-30, 0.3, 1.0, 2.0, 1e80])
def test_hessians_at_the_exponent_0(power: Callable[[Any], Any], x: float) -> None:
    """The slope p x**(p-1) was taken for a constant where p = 0: one of two equal derivatives was 0."""
    for p in (0.0, 1.0, 2.5):
        log_x, point = np.log(x), np.array([x, p])
        mixed = x ** (p - 1) * (1 + p * log_x)
        want = [[p * (p - 1) * x ** (p - 2), mixed], [mixed, x**p * log_x**2]]
        replayed = dlaccelerate(lambda point: tj.hessian(power, point))
        for run in (lambda point: tj.hessian(power, point), replayed, replayed):
            np.testing.assert_allclose(np.asarray(tj.extractdata(run(point))), want, rtol=1e-13)


def test_mixed_derivatives_at_the_exponent_0_of_other_dtypes() -> None:
    def mixed(x: Any, p: Any) -> Any:
        by_x, by_p = tj.dlgradient(tj.sum(np.real(x**p)), [x, p])
        return tj.dlgradient(tj.sum(np.real(by_x)), p), tj.dlgradient(tj.sum(np.real(by_p)), x)

    for x in (np.float32([1e-8, 0.5, 3.0]), np.array([1 + 2j, -0.3 - 0.1j, 2j])):
        for have in tj.dlfeval(mixed, x, np.zeros(3, x.dtype)):
            assert have.dtype == x.dtype
            np.testing.assert_allclose(tj.extractdata(have), np.conj(1 / x), rtol=1e-6)


def test_where_powers_have_no_derivative_by_the_exponent_0() -> None:
    """Derivatives by x are 0 all the same, at 0, at tiny, infinite and negative numbers, and beside NaN."""
    x = np.array([0.0, 5e-324, 1e-200, -2.0, np.inf, np.nan])
    with np.errstate(all="ignore"):
        for result in derivatives(lambda x: x ** tj.dlarray(np.zeros(6)), x):
            np.testing.assert_array_equal(result, np.zeros(6))
        for point in ([-2.0, 0.0], [np.inf, 0.0], [0.0, 0.0]):
            hessian = np.asarray(tj.extractdata(tj.hessian(POWERS[0], np.array(point))))
            assert hessian[0, 0] == 0.0


@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=lambda dtype: dtype.__name__)
def test_derivatives_of_cube_roots(dtype: Any) -> None:
    """The second one was NaN at 0 and at infinity: infinity times 0."""
    x = np.array([-np.inf, -8.0, -1e-6, -0.0, 0.0, 1e-6, 8.0, np.inf], dtype)
    with np.errstate(all="ignore"):
        root = np.cbrt(x.astype(float))
        want = [1 / (3 * root**2), -2 / (9 * root**5), 10 / (27 * root**8)]
        replayed = dlaccelerate(lambda x: tj.dlgradient(tj.dlgradient(np.cbrt(x).sum(), x).sum(), x))
        results = derivatives(np.cbrt, x, 3)
        second = [np.asarray(tj.extractdata(replayed(x))) for _ in range(3)]
        wanted = [part.astype(dtype) for part in [*want, want[1], want[1], want[1]]]
    for have, part in zip([*results, *second], wanted, strict=True):
        assert have.dtype == dtype
        np.testing.assert_allclose(have, part, rtol=1e-14 if dtype is np.float64 else 1e-5)
