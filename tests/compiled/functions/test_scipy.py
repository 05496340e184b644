# SPDX-License-Identifier: BSD-3-Clause
"""Solvers of SciPy with accelerated functions: as they are, and through numpy_function where SciPy wants ndarrays."""

import numpy as np
import pytest
from scipy import integrate, optimize

import tracejit as tj

A = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]])
B = np.array([1.0, -1.0, 2.0])
START = np.array([-1.2, 1.0, 0.5])


@pytest.fixture(autouse=True)
def _python(python_backend):
    """Nothing compiles."""


@tj.dlaccelerate
def rosenbrock(x):
    y = 100 * ((x[1:] - x[:-1] ** 2) ** 2).sum() + ((1 - x[:-1]) ** 2).sum()
    return y, tj.dlgradient(y, x)


@tj.dlaccelerate
def value(x):
    return 100 * ((x[1:] - x[:-1] ** 2) ** 2).sum() + ((1 - x[:-1]) ** 2).sum()


@tj.dlaccelerate
def residuals(x):
    return A @ x - B


@tj.dlaccelerate
def jacobian(x):
    return A + 0 * x[0]


@pytest.mark.parametrize("method", ["BFGS", "L-BFGS-B", "CG", "SLSQP", "Newton-CG", "trust-constr"])
def test_minimize_with_gradients(method):
    expected = optimize.minimize(optimize.rosen, START, jac=optimize.rosen_der, method=method).x
    found = optimize.minimize(tj.numpy_function(rosenbrock), START, jac=True, method=method)
    np.testing.assert_allclose(found.x, expected, atol=1e-3)
    slope = tj.numpy_function(lambda x: rosenbrock(x)[1])
    found = optimize.minimize(tj.numpy_function(value), START, jac=slope, method=method)
    np.testing.assert_allclose(found.x, expected, atol=1e-3)


@pytest.mark.parametrize("method", ["Nelder-Mead", "Powell", "BFGS"])
def test_minimize_without_gradients_takes_a_function_as_it_is(method):
    assert optimize.minimize(value, START, method=method).fun < 1.0


@pytest.mark.parametrize("method", ["trf", "dogbox", "lm"])
def test_least_squares(method):
    expected = np.linalg.lstsq(A, B, rcond=None)[0]
    adapted = tj.numpy_function(jacobian)
    both = tj.numpy_function(residuals)
    for fun, jac in ((residuals, "2-point"), (both, adapted), (residuals, jacobian)):
        found = optimize.least_squares(fun, np.zeros(2), jac=jac, method=method)
        np.testing.assert_allclose(found.x, expected, rtol=1e-6)


def test_roots():
    fun = tj.dlaccelerate(lambda x: x**3 - np.array([1.0, 8.0]))
    for solve in (fun, tj.numpy_function(fun)):
        np.testing.assert_allclose(optimize.root(solve, np.full(2, 0.5)).x, [1.0, 2.0])
        np.testing.assert_allclose(optimize.fsolve(solve, np.full(2, 0.5)), [1.0, 2.0])
    square = tj.dlaccelerate(lambda x: x * x - 2)
    for solve in (square, tj.numpy_function(square)):
        assert optimize.brentq(solve, 0, 2) == pytest.approx(2**0.5)
        assert optimize.newton(solve, 1.0) == pytest.approx(2**0.5)


@pytest.mark.parametrize("method", ["RK45", "DOP853", "Radau", "LSODA"])
def test_solve_ivp(method):
    fun = tj.dlaccelerate(lambda t, y: np.stack([y[1], -y[0]]))
    for right in (fun, tj.numpy_function(fun)):
        found = integrate.solve_ivp(right, (0, 1), [1.0, 0.0], method=method, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(found.y[:, -1], [np.cos(1), -np.sin(1)], atol=1e-6)


def test_quad_and_curve_fit():
    bell = tj.dlaccelerate(lambda x: np.exp(-x * x))
    for fun in (bell, tj.numpy_function(bell)):
        assert integrate.quad(fun, 0, 1)[0] == pytest.approx(0.7468241328124271)
    model = tj.dlaccelerate(lambda x, a, b: a * np.exp(-b * x))
    x = np.linspace(0, 1, 9)
    np.testing.assert_allclose(optimize.curve_fit(model, x, 2 * np.exp(-3 * x), [1.0, 1.0])[0], [2.0, 3.0])


def test_parameters_in_containers():
    start = {"a": np.zeros(2, np.float32), "b": np.array(0.0)}

    @tj.dlaccelerate
    def loss(params):
        y = ((params["a"] - 3.0) ** 2).sum() + (params["b"] + 1.0) ** 2
        return y, tj.dlgradient(y, params)

    fun = tj.numpy_function(loss, like=start)
    found = fun.unflatten(optimize.minimize(fun, fun.flatten(start), jac=True).x)
    assert found["a"].dtype == np.float32
    np.testing.assert_allclose(found["a"], 3.0, rtol=1e-4)
    assert found["b"].item() == pytest.approx(-1.0)


@pytest.mark.parametrize("method", ["BFGS", "CG", "Newton-CG", "trust-constr"])
def test_solvers_that_compute_with_dlarrays(method):
    found = optimize.minimize(rosenbrock, START, jac=True, method=method)
    np.testing.assert_allclose(np.asarray(found.x), 1.0, rtol=1e-3)


@pytest.mark.parametrize("method", ["L-BFGS-B", "SLSQP"])
def test_solvers_in_c_take_functions_as_they_are(method):
    found = optimize.minimize(rosenbrock, START, jac=True, method=method)
    np.testing.assert_allclose(found.x, 1.0, rtol=1e-3)
    found = optimize.minimize(tj.numpy_function(rosenbrock), START, jac=True, method=method)
    np.testing.assert_allclose(found.x, 1.0, rtol=1e-3)
