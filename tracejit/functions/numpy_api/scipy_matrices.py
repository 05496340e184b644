# SPDX-License-Identifier: BSD-3-Clause
"""Functions of matrices by SciPy's own routines, which programs call: logarithms, roots, equations, polar factors.

All take stacks of matrices along the axes before the last two. Their adjoints are in scipy_matrix_rules.py.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np


def _linalg() -> Any:
    import scipy.linalg

    return scipy.linalg


def _each(function: Callable[..., Any], *stacks: np.ndarray) -> np.ndarray:
    """Return a function of each matrix of some stacks."""
    lead = stacks[0].shape[:-2]
    with warnings.catch_warnings():  # about results that may be inaccurate
        warnings.simplefilter("ignore")
        found = [function(*[x[at] for x in stacks]) for at in np.ndindex(lead)]
    if not found:
        return np.empty(stacks[-1].shape, np.result_type(*stacks))
    return np.stack(found).reshape(*lead, *found[0].shape)


def _solved(function: Callable[..., Any], *stacks: np.ndarray) -> np.ndarray:
    """Return a solution for each matrix of some stacks, in their dtype."""
    return np.asarray(_each(function, *stacks), np.result_type(*stacks))


def _of_dtype(found: np.ndarray, x: np.ndarray, real: bool | None) -> np.ndarray:
    """Return a result in the precision of an operand; as real numbers if told so, or if there are no others."""
    kind = np.dtype(np.result_type(x.dtype, np.complex64))
    if real or (real is None and x.dtype.kind == "f" and found.dtype.kind == "f"):
        return np.asarray(found.real, np.zeros((), kind).real.dtype)
    return np.asarray(found, kind)


def logm(x: np.ndarray, real: bool | None = None) -> np.ndarray:
    """Return the principal logarithms of matrices."""
    return _of_dtype(_each(_linalg().logm, x), x, real)


def sqrtm(x: np.ndarray, real: bool | None = None) -> np.ndarray:
    """Return the principal square roots of matrices."""
    return _of_dtype(_each(_linalg().sqrtm, x), x, real)


def powers(x: np.ndarray, t: float, real: bool | None = None) -> np.ndarray:
    """Return matrices to a power that need not be whole."""
    return _of_dtype(_each(lambda a: _linalg().fractional_matrix_power(a, t), x), x, real)


def signm(x: np.ndarray, real: bool | None = None) -> np.ndarray:
    """Return the signs of matrices by Newton's iteration, scaled (N. Higham, Functions of Matrices, 2008, 5.5)."""

    def one(a: np.ndarray) -> np.ndarray:
        values = np.linalg.eigvals(a if np.isfinite(a).all() else np.eye(len(a)))
        if np.abs(values.real).min() <= 1e3 * np.finfo(values.dtype).eps * np.abs(values).max():
            return np.asarray(
                _linalg().signm(a)
            )  # there is no sign of what lies on the imaginary axis but SciPy's
        found = a.astype(np.result_type(a, np.float64))
        for _ in range(100):
            other = np.linalg.inv(found)
            size = np.abs(np.linalg.det(found)) ** (-1.0 / len(a))
            size = (
                size if np.isfinite(size) and np.linalg.norm(found @ found - np.eye(len(a))) > 1e-2 else 1.0
            )
            last, found = found, 0.5 * (found * size + other / size)
            if np.linalg.norm(found - last) <= 1e-15 * np.linalg.norm(found):
                break
        return found

    return _of_dtype(_each(one, x), x, real)


_FUNCTIONS: dict[str, Callable[..., np.ndarray]] = {
    "logm": logm,
    "sqrtm": sqrtm,
    "signm": signm,
    "powers": powers,
}


def frechet(a: np.ndarray, e: np.ndarray, name: str, real: bool, **options: Any) -> np.ndarray:
    """Return derivatives of a function f of matrices along others: the block at the upper right of f([[A, E], [0, A]]).

    They are linear in E, which gets the size of A first: that rounds least. (R. Mathias, A chain rule for matrix
    functions and applications, 1996; N. Higham, Functions of Matrices, 2008, 3.2.)
    """
    n = a.shape[-1]
    sizes = [np.abs(x).max(axis=(-2, -1), keepdims=True, initial=0.0) for x in (a, e)]
    with np.errstate(all="ignore"):
        factor = np.where((sizes[0] > 0) & (sizes[1] > 0), sizes[0] / sizes[1], 1.0).astype(sizes[0].dtype)
    whole = np.concatenate(
        [np.concatenate([a, e * factor], -1), np.concatenate([np.zeros_like(a), a], -1)], -2
    )
    return np.asarray(_FUNCTIONS[name](whole, real=real, **options)[..., :n, n:] / factor)


def sylvester(a: np.ndarray, b: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return the solutions X of A X + X B = Q."""
    return _solved(_linalg().solve_sylvester, a, b, q)


def discrete_lyapunov(a: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return the solutions X of X = A X A^H + Q."""
    return _solved(_linalg().solve_discrete_lyapunov, a, q)


def continuous_riccati(a: np.ndarray, b: np.ndarray, q: np.ndarray, r: np.ndarray) -> np.ndarray:
    """Return the solutions X of A^H X + X A - X B R^-1 B^H X + Q = 0."""
    return _solved(_linalg().solve_continuous_are, a, b, q, r)


def discrete_riccati(a: np.ndarray, b: np.ndarray, q: np.ndarray, r: np.ndarray) -> np.ndarray:
    """Return the solutions X of A^H X A - X - A^H X B (R + B^H X B)^-1 B^H X A + Q = 0."""
    return _solved(_linalg().solve_discrete_are, a, b, q, r)


def banded(ab: np.ndarray, b: np.ndarray, lower: int, upper: int, definite: bool = False) -> np.ndarray:
    """Return the solution of a system whose matrix has a few diagonals, the rows of `ab`.

    Raises:
        numpy.linalg.LinAlgError: if the matrix is to be positive definite and is not.
    """
    if definite:
        _linalg().cholesky_banded(ab[: upper + 1])
    return np.asarray(_linalg().solve_banded((lower, upper), ab, b))


def polar(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return U and P of U P, for matrices with at least as many rows as columns."""
    u, s, vh = np.linalg.svd(x, full_matrices=False)
    v = np.conj(np.swapaxes(vh, -1, -2))
    return u @ vh, (v * s[..., None, :]) @ vh


def schur(x: np.ndarray, output: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the Schur forms T and the vectors Z of Z T Z^H."""
    parts = [_linalg().schur(x[at], output=output) for at in np.ndindex(x.shape[:-2])]
    forms, vectors = (np.stack(part).reshape(x.shape) for part in zip(*parts, strict=True))
    return forms, vectors


def order_of(exchanges: np.ndarray) -> np.ndarray:
    """Return which row stands in each place, given the exchanges of rows that LAPACK reports."""
    order = np.empty(exchanges.shape, np.int64)
    for at in np.ndindex(exchanges.shape[:-1]):
        rows = np.arange(exchanges.shape[-1])
        for row, other in enumerate(exchanges[at]):
            rows[[row, other]] = rows[[other, row]]
        order[at] = rows
    return order


def exchanges(x: np.ndarray) -> np.ndarray:
    """Return the row that each row of square matrices is exchanged with in their factorisation."""
    if not x.size:
        return np.zeros(x.shape[:-1], np.int64)
    found = [_linalg().lu_factor(x[at], check_finite=False)[1] for at in np.ndindex(x.shape[:-2])]
    return np.stack(found).reshape(x.shape[:-1]).astype(np.int64)
