# SPDX-License-Identifier: BSD-3-Clause
"""Solvers of SciPy that call accelerated functions outside of recordings: results are ndarrays of NumPy's numbers."""

from typing import Any

import numpy as np
import pytest
from scipy import integrate, optimize

import tracejit as tj

START = np.full(3, 0.9)


def loss_of(w: Any) -> Any:
    return ((w - 1.0) ** 2).sum() + (w[0] * w[1] - 2) ** 2


def slope_of(w: np.ndarray) -> np.ndarray:
    """Return the gradient of the loss, by hand."""
    slope = 2 * (w - 1.0)
    slope[:2] += 2 * (w[0] * w[1] - 2) * w[1::-1]
    return slope


def plain(w: np.ndarray) -> tuple[float, np.ndarray]:
    return float(loss_of(w)), slope_of(w)


def both(w: Any) -> Any:
    loss = loss_of(w)
    return loss, tj.dlgradient(loss, w)


def slope(w: Any) -> Any:
    return tj.dlgradient(loss_of(w), w)


def curvature(w: Any) -> Any:
    return tj.hessian(loss_of, w)


WITH_SLOPES = ("CG", "BFGS", "L-BFGS-B", "TNC", "SLSQP", "trust-constr")
BOUNDED = ("L-BFGS-B", "TNC", "SLSQP", "trust-constr")


def minimised(fun: Any, method: str, **options: Any) -> Any:
    found = optimize.minimize(fun, START, method=method, **options)
    assert type(found.x) is np.ndarray
    assert not isinstance(found.get("jac"), tj.dlarray)
    return found.x


@pytest.mark.parametrize(
    "accelerate",
    [tj.dlaccelerate, lambda f: lambda w: tj.dlfeval(f, tj.dlarray(w))],
    ids=["accelerated", "evaluated"],
)
@pytest.mark.parametrize("form", ["jac=True", "jac=slope"])
@pytest.mark.parametrize("method", WITH_SLOPES)
def test_minimize(method: str, form: str, accelerate: Any) -> None:
    fun, jac = (both, True) if form == "jac=True" else (loss_of, accelerate(slope))
    want = minimised(plain, method, jac=True)
    np.testing.assert_allclose(minimised(accelerate(fun), method, jac=jac), want, rtol=1e-7)


@pytest.mark.parametrize("method", BOUNDED)
def test_bounds(method: str) -> None:
    want = minimised(plain, method, jac=True, bounds=[(0, 0.95)] * 3)
    np.testing.assert_allclose(
        minimised(tj.dlaccelerate(both), method, jac=True, bounds=[(0, 0.95)] * 3), want, rtol=1e-6
    )


@pytest.mark.parametrize(
    "method", ["Newton-CG", "trust-ncg", "trust-krylov", "trust-exact", "dogleg", "trust-constr"]
)
def test_hessians(method: str) -> None:
    found = minimised(tj.dlaccelerate(both), method, jac=True, hess=tj.dlaccelerate(curvature))
    np.testing.assert_allclose(slope_of(found), 0, atol=1e-3)


def constraint(w: Any) -> Any:
    return np.stack([1.2 - w[0], 1.1 - w[1] * w[2]])


@pytest.mark.filterwarnings("ignore:delta_grad == 0.0:UserWarning")  # of a linear constraint
@pytest.mark.parametrize("kind", ["dict", "two dicts", "NonlinearConstraint"])
@pytest.mark.parametrize("method", ["SLSQP", "trust-constr"])
def test_constraints(method: str, kind: str) -> None:
    def constraints(fun: Any, jac: Any) -> Any:
        if kind == "NonlinearConstraint":
            return optimize.NonlinearConstraint(fun, 0, np.inf, jac=jac)
        one = {"type": "ineq", "fun": fun, "jac": jac}
        return (
            one
            if kind == "dict"
            else [one, {"type": "eq", "fun": lambda w: fun(w)[0] - 0.1, "jac": lambda w: jac(w)[0]}]
        )

    def by_hand(w: np.ndarray) -> np.ndarray:
        return np.array([[-1.0, 0.0, 0.0], [0.0, -w[2], -w[1]]])

    jacobian = tj.dlaccelerate(lambda w: tj.jacobian(constraint, w))
    want = minimised(plain, method, jac=True, constraints=constraints(constraint, by_hand))
    found = minimised(
        tj.dlaccelerate(both),
        method,
        jac=True,
        constraints=constraints(tj.dlaccelerate(constraint), jacobian),
    )
    np.testing.assert_allclose(found, want, rtol=1e-6)


@pytest.mark.parametrize("method", ["trf", "dogbox", "lm"])
def test_least_squares(method: str) -> None:
    t = np.linspace(0, 1, 9)

    def residual(p: Any) -> Any:
        return p[0] * np.exp(-p[1] * t) - 2 * np.exp(-3 * t)

    jacobian = tj.dlaccelerate(lambda p: tj.jacobian(residual, p))
    found = optimize.least_squares(tj.dlaccelerate(residual), [1.0, 1.0], jac=jacobian, method=method)
    np.testing.assert_allclose(found.x, [2.0, 3.0], rtol=1e-6)
    assert type(found.x) is type(found.jac) is np.ndarray


@pytest.mark.parametrize("method", ["hybr", "lm"])
def test_roots(method: str) -> None:
    def system(x: Any) -> Any:
        return np.stack([x[0] - x[1] ** 2, x[1] - 2.0])

    jacobian = tj.dlaccelerate(lambda x: tj.jacobian(system, x))
    found = optimize.root(tj.dlaccelerate(system), np.ones(2), jac=jacobian, method=method)
    np.testing.assert_allclose(found.x, [4.0, 2.0])


@pytest.mark.parametrize("method", ["RK45", "LSODA", "BDF", "Radau"])
def test_differential_equations(method: str) -> None:
    def swing(t: Any, y: Any) -> Any:
        return np.stack([y[1], -np.sin(y[0])])

    jacobian = tj.dlaccelerate(lambda t, y: tj.jacobian(lambda y: swing(t, y), y))
    options = {} if method == "RK45" else {"jac": jacobian}
    found = integrate.solve_ivp(
        tj.dlaccelerate(swing), (0, 1), [1.0, 0.0], method=method, rtol=1e-8, atol=1e-8, **options
    )
    want = integrate.solve_ivp(swing, (0, 1), [1.0, 0.0], method="DOP853", rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found.y[:, -1], want.y[:, -1], rtol=1e-5)


def test_other_code_of_scipy_still_gets_dlarrays() -> None:
    x = tj.dlarray([3.0, 4.0])
    assert type(np.atleast_1d(x)) is tj.dlarray
