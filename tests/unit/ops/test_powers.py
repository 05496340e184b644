# SPDX-License-Identifier: BSD-3-Clause
"""Powers and their derivatives of any order, at 0 and around: falling factorials, and differences of forward values."""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import pytest

import tracejit as tj

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
