# SPDX-License-Identifier: BSD-3-Clause
"""Solvers of sparse systems with traced arrays: SciPy's numbers, and the derivatives of dense matrices."""

import warnings

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse.linalg as solvers
from scipy import sparse

import tracejit as tj
from tracejit.functions.numpy_api import sparse_solvers
from tracejit.record import patches

N = 6
A = sparse.diags([-1.0, 3.5, -1.5], [-1, 0, 1], shape=(N, N)).tocsc()
S = (A + A.T).tocsc()
LOW = sparse.tril(A).tocsr()
UP = LOW.T.tocsr()
TALL = sparse.csr_array(np.vstack([A.toarray(), np.eye(2, N)]))
DAMPED = TALL.T.toarray() @ TALL.toarray() + 0.09 * np.eye(N)
PRECONDITIONER = solvers.aslinearoperator(solvers.spilu(S).solve(np.eye(N)))
LU, SOLVE, OPERATOR = solvers.splu(A), solvers.factorized(A), solvers.aslinearoperator(A)
TIGHT = {"rtol": 1e-13}
LEAST = {"atol": 1e-15, "btol": 1e-15, "conlim": 0}
ITERATIVE = ("bicg", "bicgstab", "cgs", "gcrotmk", "gmres", "lgmres", "qmr", "tfqmr")
INVERSE = np.linalg.inv(A.toarray())
OF_SYMMETRIC = np.linalg.inv(S.toarray())
MAPS = {
    "splu": (lambda b: LU.solve(b), INVERSE),
    "splu, T": (lambda b: LU.solve(b, "T"), INVERSE.T),
    "splu, H": (lambda b: LU.solve(b, trans="H"), INVERSE.T),
    "factorized": (lambda b: SOLVE(b), INVERSE),
    "spsolve": (lambda b: solvers.spsolve(A, b), INVERSE),
    "spsolve_triangular": (
        lambda b: solvers.spsolve_triangular(LOW, b),
        np.linalg.inv(LOW.toarray()),
    ),
    "spsolve_triangular, upper": (
        lambda b: solvers.spsolve_triangular(UP, b, lower=False),
        np.linalg.inv(LOW.toarray().T),
    ),
    "cg": (lambda b: solvers.cg(S, b, **TIGHT)[0], OF_SYMMETRIC),
    "cg with a start": (lambda b: solvers.cg(S, b, np.ones(N), **TIGHT)[0], OF_SYMMETRIC),
    "cg with a preconditioner": (lambda b: solvers.cg(S, b, M=PRECONDITIONER, **TIGHT)[0], OF_SYMMETRIC),
    "gmres with a preconditioner": (lambda b: solvers.gmres(S, b, M=PRECONDITIONER, **TIGHT)[0], OF_SYMMETRIC),
    "minres": (lambda b: solvers.minres(S, b, **TIGHT)[0], OF_SYMMETRIC),
    **{
        name: (lambda b, name=name: getattr(solvers, name)(A, b, **TIGHT)[0], INVERSE)
        for name in ITERATIVE
    },
    "lsqr": (
        lambda b: solvers.lsqr(TALL, np.concatenate([b, b[:2]]), **LEAST)[0],
        np.linalg.pinv(TALL.toarray()) @ np.eye(N + 2, N) + np.linalg.pinv(TALL.toarray()) @ np.eye(N + 2, N, -N),
    ),
    "lsmr, damped": (
        lambda b: solvers.lsmr(TALL, np.concatenate([b, b[:2]]), damp=0.3, **LEAST)[0],
        np.linalg.solve(DAMPED, TALL.T.toarray()) @ (np.eye(N + 2, N) + np.eye(N + 2, N, -N)),
    ),
    "expm_multiply": (lambda b: solvers.expm_multiply(A, b), scipy.linalg.expm(A.toarray())),
    "operator @ b": (lambda b: OPERATOR @ b, A.toarray()),
    "operator.matvec": (lambda b: OPERATOR.matvec(b), A.toarray()),
    "operator.rmatvec": (lambda b: OPERATOR.rmatvec(b), A.toarray().T),
}  # fmt: skip
OF_COLUMNS = (
    "splu",
    "splu, T",
    "factorized",
    "spsolve",
    "spsolve_triangular",
    "expm_multiply",
    "operator @ b",
)


@pytest.mark.parametrize("name", MAPS)
def test_solutions_and_their_derivatives(name, rng):
    run, matrix = MAPS[name]
    step = tj.dlaccelerate(lambda b: run(b))

    @tj.dlaccelerate
    def slopes(b, v):
        def cubes(b):
            return (run(b) ** 3).sum()

        return tj.dlgradient(cubes(b), b), tj.hvp(cubes, b, v), tj.jvp(run, (b,), (v,))[1]

    for _ in range(4):
        b, v = rng.normal(size=(2, N))
        x = matrix @ b
        np.testing.assert_allclose(step(b), x, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(tj.dlfeval(run, b), x, rtol=1e-7, atol=1e-9)
        gradient, second, along = slopes(b, v)
        np.testing.assert_allclose(gradient, matrix.T @ (3 * x**2), rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(second, matrix.T @ (6 * x * (matrix @ v)), rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(along, matrix @ v, rtol=1e-6, atol=1e-8)
    # An operator keeps its adjoint once it has one, which is a change of what it holds.
    least = 1 if "operator" in name or "preconditioner" in name else 2
    assert min(step.stats.hits, slopes.stats.hits) >= least


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("name", OF_COLUMNS)
def test_several_right_hand_sides(name, count, rng):
    run, matrix = MAPS[name]
    step = tj.dlaccelerate(lambda b: (run(b), tj.dlgradient((run(b) ** 3).sum(), b)))
    for _ in range(3):
        b = rng.normal(size=(N, count))
        found, gradient = step(b)
        assert found.shape == run(b).shape
        np.testing.assert_allclose(found, (matrix @ b).reshape(found.shape), rtol=1e-9)
        np.testing.assert_allclose(gradient, matrix.T @ (3 * (matrix @ b) ** 2), rtol=1e-9)


@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize(
    "name", ["splu", "splu, T", "splu, H", "spsolve", "gmres", "cg", "operator", "rmatvec"]
)
def test_complex_matrices(name, is_complex, rng):
    general = A + 1j * sparse.diags([0.5, 1.0], [1, -2], shape=(N, N))
    general = general.tocsc()
    hermitian = (general @ general.conj().T).tocsc()
    factors, operator = solvers.splu(general), solvers.aslinearoperator(general)
    dense = general.toarray()
    run, matrix = {
        "splu": (lambda b: factors.solve(b), np.linalg.inv(dense)),
        "splu, T": (lambda b: factors.solve(b, "T"), np.linalg.inv(dense.T)),
        "splu, H": (lambda b: factors.solve(b, "H"), np.linalg.inv(dense.conj().T)),
        "spsolve": (lambda b: solvers.spsolve(general, b), np.linalg.inv(dense)),
        "gmres": (lambda b: solvers.gmres(general, b, **TIGHT)[0], np.linalg.inv(dense)),
        "cg": (lambda b: solvers.cg(hermitian, b, **TIGHT)[0], np.linalg.inv(hermitian.toarray())),
        "operator": (lambda b: operator @ b, dense),
        "rmatvec": (lambda b: operator.rmatvec(b), dense.conj().T),
    }[name]
    weights = np.arange(1.0, N + 1)
    step = tj.dlaccelerate(lambda b: tj.dlgradient((weights * np.abs(run(b)) ** 2).sum(), b))
    for _ in range(3):
        b = rng.normal(size=N) + (1j * rng.normal(size=N) if is_complex else 0)
        expected = 2 * matrix.conj().T @ (weights * (matrix @ b))
        np.testing.assert_allclose(step(b), expected if is_complex else expected.real, rtol=1e-8, atol=1e-9)


class TestWhatHoldsASolver:
    def test_places_of_objects(self, rng):
        class Heat:
            def __init__(self):
                self.lu, self.solve, self.parts = solvers.splu(A), solvers.factorized(A), {"lu": [LU.solve]}

            @tj.dlaccelerate
            def step(self, u):
                return self.solve(self.lu.solve(self.parts["lu"][0](u)))

        heat = Heat()
        for n in range(8):
            if n == 4:
                heat.lu, heat.solve = solvers.splu(S), solvers.factorized(2 * A)
            u = rng.normal(size=N)
            expected = solvers.spsolve(A, u)
            expected = solvers.spsolve(2 * A if n > 3 else A, solvers.spsolve(S if n > 3 else A, expected))
            np.testing.assert_allclose(heat.step(u), expected, rtol=1e-9)
        assert heat.step.stats.hits == 3 and heat.step.stats.audited == 1 and heat.step.stats.uncompiled == 0

    def test_methods_are_put_back(self):
        kind = type(LU)
        original = vars(kind)["solve"]

        def during(b):
            assert vars(kind)["solve"] is not original
            return LU.solve(b)

        tj.dlfeval(during, np.ones(N))
        assert vars(kind)["solve"] is original
        assert SOLVE(np.ones(N)).shape == (N,) and type(SOLVE).__name__ == "builtin_function_or_method"

    def test_few_solvers_are_kept(self):
        names = {"np": np}
        exec("def step(b): return solve(b)", names)
        held = len(patches._patched)
        for n in range(2 * sparse_solvers._MOST):
            names["solve"] = solvers.factorized(A * (n + 1.0))
            np.testing.assert_allclose(
                tj.dlfeval(names["step"], np.ones(N)), solvers.spsolve(A, np.ones(N)) / (n + 1)
            )
            assert type(names["solve"]) is type(SOLVE)
        assert len(patches._patched) - held <= sparse_solvers._MOST
        assert len(sparse_solvers._systems) <= sparse_solvers._MOST

    def test_other_functions_in_c_stay(self):
        names = {"step": lambda b, size=len: b * size(b), "size": len}
        assert tj.dlfeval(names["step"], np.ones(3)).tolist() == [3.0] * 3
        assert not patches.is_patched(len)


class TestErrors:
    @pytest.mark.parametrize(
        ("run", "error", "text"),
        [
            (
                lambda b: SOLVE([b, b]),
                tj.DTypeError,
                "scipy.sparse.linalg.SuperLU.solve: rhs must be an array whose dtype can be cast to float64, that of "
                "the factors, not list; solve for real and imaginary parts, or factor a matrix of its dtype.",
            ),
            (lambda b: solvers.cg(A, b, bad=3), TypeError, "cg() got an unexpected keyword argument 'bad'"),
        ],
    )
    def test_a_message(self, run, error, text):
        with pytest.raises(error) as caught:
            tj.dlfeval(run, np.arange(float(N)))
        assert str(caught.value) == text

    def test_results_that_are_not_the_solution_have_no_derivative(self):
        def slope(b):
            return tj.dlgradient(solvers.lsqr(A, b)[3], b)

        with pytest.raises(
            tj.GradientError, match=r"scipy\.sparse\.linalg\.lsqr: SciPy's own function runs here"
        ):
            tj.dlfeval(slope, np.arange(float(N)))

    def test_a_range_of_times_has_no_derivative(self):
        def run(b):
            return solvers.expm_multiply(A, b, start=0.0, stop=1.0, num=3)

        np.testing.assert_allclose(tj.dlfeval(run, np.ones(N)), run(np.ones(N)))
        with pytest.raises(tj.GradientError), warnings.catch_warnings():
            tj.dlfeval(lambda b: tj.dlgradient(run(b).sum(), b), np.ones(N))
