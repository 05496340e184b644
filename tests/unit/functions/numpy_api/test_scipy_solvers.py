# SPDX-License-Identifier: BSD-3-Clause
"""Solvers of SciPy that call functions of the user's, which read traced values: they compute, without a derivative."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import integrate, optimize

import tracejit as tj

T = np.linspace(0.0, 1.0, 4)
SOLVERS: dict[str, Callable[[Any], Any]] = {
    "minimize": lambda a: optimize.minimize(lambda z: ((z - a) ** 2).sum(), np.zeros(2)).x,
    **{
        f"minimize by {method}": lambda a, method=method: optimize.minimize(
            lambda z: ((z - a) ** 2).sum(), np.zeros(2), method=method
        ).x
        for method in ("SLSQP", "L-BFGS-B", "Nelder-Mead", "Powell", "CG", "TNC", "COBYLA", "trust-constr")
    },
    "minimize from": lambda a: optimize.minimize(lambda z: ((z - 1.0) ** 2).sum(), a, method="SLSQP").x,
    "minimize with constraints": lambda a: optimize.minimize(
        lambda z: (z**2).sum(), a, method="SLSQP", constraints={"type": "ineq", "fun": lambda z: z[0] - a[0]}
    ).x,
    "minimize with a gradient": lambda a: optimize.minimize(
        lambda z: ((z - a) ** 2).sum(), np.zeros(2), jac=lambda z: 2 * (z - a), method="L-BFGS-B"
    ).x,
    "minimize with a gradient and constraints": lambda a: optimize.minimize(
        lambda z: (z**2).sum(), a, method="slsqp", jac=lambda z: 2 * z,
        constraints={"type": "ineq", "fun": lambda z: z - a, "jac": lambda z: np.eye(2) * (a[0] / a[0])},
    ).x,
    "minimize with both": lambda a: optimize.minimize(
        lambda z: (((z - a) ** 2).sum(), 2 * (z - a)), np.zeros(2), jac=True, bounds=[(0, 9), (0, 9)]
    ).x,
    "least_squares with a Jacobian": lambda a: optimize.least_squares(
        lambda z: z**2 - a, np.ones(2), lambda z: np.diag(2 * z) * (a[0] / a[0])
    ).x,
    "minimize with arguments": lambda a: optimize.minimize(
        lambda z, b: ((z - b) ** 2).sum(), np.zeros(2), args=(a,), method="L-BFGS-B"
    ).x,
    "minimize_scalar": lambda a: optimize.minimize_scalar(lambda z: (z - a[0]) ** 2).x,
    "least_squares": lambda a: optimize.least_squares(lambda z: z**2 - a, np.ones(2)).x,
    "leastsq": lambda a: optimize.leastsq(lambda z: z**2 - a, np.ones(2))[0],
    "curve_fit": lambda a: optimize.curve_fit(lambda x, p: p * x, np.arange(2.0), a)[0],
    "fsolve": lambda a: optimize.fsolve(lambda z: z**2 - a, np.ones(2)),
    "root": lambda a: optimize.root(lambda z: z**2 - a, np.ones(2)).x,
    "root by lm": lambda a: optimize.root(lambda z: z**2 - a, np.ones(2), method="lm").x,
    "fixed_point": lambda a: optimize.fixed_point(lambda z: np.sqrt(a + 0 * z), np.ones(2)),
    "brentq": lambda a: optimize.brentq(lambda z: z**3 - a[0], 0, 9),
    "newton": lambda a: optimize.newton(lambda z: z**3 - a[0], 1.0),
    "newton of vectors": lambda a: optimize.newton(lambda z: z**3 - a, np.ones(2)),
    "linprog": lambda a: optimize.linprog(a, A_ub=[[-1, -1]], b_ub=[-1]).x,
    "nnls": lambda a: optimize.nnls(np.eye(2), a)[0],
    "linear_sum_assignment": lambda a: np.array(optimize.linear_sum_assignment(np.stack([a, a[::-1]]))),
    "solve_ivp": lambda a: integrate.solve_ivp(lambda t, y: -a * y, (0, 1), [1.0, 2.0]).y[:, -1],
    "solve_ivp from": lambda a: integrate.solve_ivp(lambda t, y: -y, (0, 1), a, method="Radau").y[:, -1],
    "odeint": lambda a: integrate.odeint(lambda y, t: -a * y, [1.0, 2.0], T),
    "quad": lambda a: integrate.quad(lambda z: z * a[0], 0, 1)[0],
    "quad_vec": lambda a: integrate.quad_vec(lambda z: z * a, 0, 1)[0],
    "dblquad": lambda a: integrate.dblquad(lambda y, x: x * y * a[0], 0, 1, 0, 1)[0],
    "solve_bvp": lambda a: integrate.solve_bvp(
        lambda t, y: np.stack([y[1], -a[0] * y[0]]), lambda u, v: np.array([u[0], v[0] - a[1]]), T, np.zeros((2, 4))
    ).sol(0.5),
}  # fmt: skip
A = np.array([2.0, 3.0])
pytestmark = pytest.mark.filterwarnings(
    "ignore::tracejit.NotAcceleratedWarning", "ignore::tracejit.RetraceWarning"
)


@pytest.mark.sampled
@pytest.mark.parametrize("name", SOLVERS)
def test_solvers_compute(name: str) -> None:
    solve = SOLVERS[name]
    accelerated = tj.dlaccelerate(lambda a: solve(a * 1.0))
    for n in range(3):
        for run in (solve, lambda a: tj.dlfeval(solve, a), accelerated):
            found = run(A + 0.1 * n)
            np.testing.assert_allclose(
                np.asarray(found), np.asarray(solve(A + 0.1 * n)), rtol=1e-6, atol=1e-7
            )


@pytest.mark.parametrize(
    "name", ["minimize by SLSQP", "fsolve", "solve_ivp", "odeint", "curve_fit", "least_squares"]
)
def test_state_is_read_by_solvers(name: str) -> None:
    class Plain:
        def __init__(self) -> None:
            self.a = A.copy()

        def step(self) -> Any:
            found = SOLVERS[name](self.a)
            self.a = 0.9 * self.a + 0.1
            return found

    class Fast(Plain):
        step = tj.dlaccelerate(Plain.step)

    plain, fast = Plain(), Fast()
    for _ in range(5):
        np.testing.assert_allclose(np.asarray(fast.step()), plain.step(), rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(np.asarray(fast.a), plain.a, rtol=1e-12)


@pytest.mark.sampled
@pytest.mark.parametrize("name", SOLVERS)
def test_derivatives_are_not_dropped(name: str) -> None:
    def slope(a: Any) -> Any:
        found = SOLVERS[name](a)
        return tj.dlgradient((a * np.sum(np.asarray(found))).sum(), a)

    if name == "linear_sum_assignment":  # places, which have no derivative
        assert tj.dlfeval(slope, A).shape == A.shape
        return
    try:
        found = tj.dlfeval(slope, A)
    except tj.GradientError:
        return
    step = 1e-4 * np.eye(2)
    expected = [(total(name, A + h) - total(name, A - h)) / 2e-4 for h in step]
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-3)


def total(name: str, a: np.ndarray) -> float:
    return float((a * np.sum(SOLVERS[name](a))).sum())
