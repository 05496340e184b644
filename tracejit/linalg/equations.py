# SPDX-License-Identifier: BSD-3-Clause
"""Equations of matrices under SciPy's names: linear systems, those of Sylvester, Lyapunov and Riccati."""

from typing import Any

import numpy as np

from tracejit.array import as_array, dlarray
from tracejit.errors import DimsError
from tracejit.functions import linalg, linear, movement
from tracejit.functions.numpy_api import scipy_matrices
from tracejit.functions.refusals import refuse
from tracejit.linalg.numbers import adjoint, alike, half, hermitian, in_double, matrix, narrowed, routine
from tracejit.linalg.structured import circulant, toeplitz
from tracejit.util.arguments import flag, is_option
from tracejit.util.text import brief

_ASSUMED = (
    "gen", "general", "sym", "symmetric", "her", "hermitian", "pos", "positive definite", "diagonal", "tridiagonal",
    "banded", "upper triangular", "lower triangular",
)  # fmt: skip


def solve(a: Any, b: Any, lower: bool = False, assume_a: Any = None, transposed: bool = False) -> dlarray:
    """Return the solution X of the linear systems A X = B.

    Args:
        a: square matrices, (..., n, n), real or complex.
        b: a vector (n,), or right sides (..., n, k).
        lower: which half is read of matrices that are assumed symmetric.
        assume_a: what SciPy may assume of `a`: "gen", "sym", "her", "pos", "upper triangular", ... Of matrices that are
            symmetric or triangular one half is read; otherwise it changes nothing.
        transposed: solve A' X = B.

    Returns:
        dlarray as large as `b`, with the axes of both before the last two.

    Raises:
        DimsError: if the sizes do not fit.
        ArgumentError: if `assume_a` is none of SciPy's words.
        numpy.linalg.LinAlgError: if a matrix is singular.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.solve([[3.0, 1.0], [1.0, 2.0]], [9.0, 8.0]).round(12).tolist()
        [2.0, 3.0]
    """
    if assume_a is not None and not is_option(assume_a, _ASSUMED):
        refuse(
            "linalg.solve", f"assume_a must be one of {', '.join(_ASSUMED)}, or None, not {brief(assume_a)}"
        )
    lower = flag("linalg.solve", "lower", lower)
    x = matrix("solve", "a", a)
    if assume_a in ("sym", "symmetric"):
        kept = half(x, lower)
        x = kept + linalg.transposed(kept) - kept * np.eye(x.shape[-1], dtype=x.dtype)
    elif assume_a in ("her", "hermitian", "pos", "positive definite"):
        x = hermitian(x, lower)
    elif assume_a in ("upper triangular", "lower triangular"):
        trans = 1 if flag("linalg.solve", "transposed", transposed) else 0
        return linalg.solve_triangular(x, b, trans=trans, lower=assume_a == "lower triangular")
    if flag("linalg.solve", "transposed", transposed):
        x = linalg.transposed(x)
    return linalg.solve(x, b)


def solve_triangular(
    a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False
) -> dlarray:
    """Return the solution X of A X = B for triangular A.

    Args:
        a: triangular matrices, (..., n, n), real or complex; the other half is not read.
        b: a vector (n,), or right sides (..., n, k).
        trans: 0 or "N" for A X = B, 1 or "T" for A' X = B, 2 or "C" for the conjugate transpose.
        lower: `a` is lower triangular.
        unit_diagonal: the diagonal is taken as 1 and not read.

    Returns:
        dlarray as large as `b`, with the axes of both before the last two.

    Raises:
        DimsError: if the sizes do not fit.
        ArgumentError: if `trans` is none of those.
        numpy.linalg.LinAlgError: if the diagonal has a 0.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.solve_triangular([[2.0, 0.0], [1.0, 4.0]], [2.0, 9.0], lower=True).tolist()
        [1.0, 2.0]
    """
    return linalg.solve_triangular(narrowed(a), narrowed(b), trans, lower, unit_diagonal)


def solve_sylvester(a: Any, b: Any, q: Any) -> dlarray:
    """Return the solution X of A X + X B = Q.

    Args:
        a: square matrix, (m, m).
        b: square matrix, (n, n).
        q: matrix, (m, n).

    Returns:
        dlarray as large as `q`.

    Raises:
        DimsError: if the sizes do not fit.

    SciPy's own routine runs, in programs as a call of Python.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.solve_sylvester([[1.0]], [[2.0]], [[6.0]]).tolist()
        [[2.0]]
    """
    name = "solve_sylvester"
    x, y, z = alike(matrix(name, "a", a), matrix(name, "b", b), matrix(name, "q", q, square=False))
    if (
        x.shape[:-2] != z.shape[:-2]
        or y.shape[:-2] != z.shape[:-2]
        or z.shape[-2:] != (x.shape[-1], y.shape[-1])
    ):
        raise DimsError(
            f"linalg.{name}: a has shape {x.shape}, b {y.shape} and q {z.shape}, expected (m, m), (n, n) and (m, n)."
        )
    found: dlarray = routine(name, scipy_matrices.sylvester, x, y, z)
    return found


def _lyapunov(name: str, a: Any, q: Any) -> tuple[dlarray, dlarray]:
    x, y = alike(matrix(name, "a", a), matrix(name, "q", q))
    if x.shape != y.shape:
        raise DimsError(f"linalg.{name}: a has shape {x.shape} and q {y.shape}, expected the same.")
    return x, y


def solve_continuous_lyapunov(a: Any, q: Any) -> dlarray:
    """Return the solution X of A X + X A^H = Q.

    Args:
        a: square matrix, (n, n).
        q: square matrix, as large.

    Returns:
        dlarray as large as `q`.

    Raises:
        DimsError: if the sizes do not fit.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.solve_continuous_lyapunov([[1.0]], [[6.0]]).tolist()
        [[3.0]]
    """
    x, y = _lyapunov("solve_continuous_lyapunov", a, q)
    return solve_sylvester(x, adjoint(x), y)


def solve_discrete_lyapunov(a: Any, q: Any) -> dlarray:
    """Return the solution X of X = A X A^H + Q.

    Args:
        a: square matrix, (n, n).
        q: square matrix, as large.

    Returns:
        dlarray as large as `q`.

    Raises:
        DimsError: if the sizes do not fit.

    SciPy's own routine runs, in programs as a call of Python.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.solve_discrete_lyapunov([[0.5]], [[3.0]]).round(12).tolist()
        [[4.0]]
    """
    x, y = map(in_double, _lyapunov("solve_discrete_lyapunov", a, q))
    found: dlarray = routine("solve_discrete_lyapunov", scipy_matrices.discrete_lyapunov, x, y)
    return found


def _riccati(name: str, function: Any, given: tuple[Any, ...]) -> dlarray:
    a, b, q, r = alike(*(matrix(name, key, x, key != "b") for key, x in zip("abqr", given, strict=True)))
    m, n = b.shape[-2:]
    if a.shape[-1] != m or q.shape != a.shape or r.shape[-1] != n or b.shape[:-2] != a.shape[:-2]:
        raise DimsError(
            f"linalg.{name}: a has shape {a.shape}, b {b.shape}, q {q.shape} and r {r.shape}, expected (m, m), (m, n), "
            "(m, m) and (n, n)."
        )
    found: dlarray = routine(name, function, *map(in_double, (a, b, q, r)))
    return found


def solve_continuous_are(a: Any, b: Any, q: Any, r: Any) -> dlarray:
    """Return the stabilising solution X of A^H X + X A - X B R^-1 B^H X + Q = 0, a Riccati equation.

    Args:
        a: square matrix, (m, m).
        b: matrix, (m, n).
        q: Hermitian matrix, (m, m).
        r: Hermitian matrix, (n, n), not singular.

    Returns:
        dlarray (m, m).

    Raises:
        DimsError: if the sizes do not fit.
        numpy.linalg.LinAlgError: if there is no such solution.

    SciPy's own routine runs, in programs as a call of Python.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.solve_continuous_are([[0.0]], [[1.0]], [[4.0]], [[1.0]]).round(9).tolist()
        [[2.0]]
    """
    return _riccati("solve_continuous_are", scipy_matrices.continuous_riccati, (a, b, q, r))


def solve_discrete_are(a: Any, b: Any, q: Any, r: Any) -> dlarray:
    """Return the stabilising solution X of A^H X A - X - A^H X B (R + B^H X B)^-1 B^H X A + Q = 0.

    Args:
        a: square matrix, (m, m).
        b: matrix, (m, n).
        q: Hermitian matrix, (m, m).
        r: Hermitian matrix, (n, n).

    Returns:
        dlarray (m, m).

    Raises:
        DimsError: if the sizes do not fit.
        numpy.linalg.LinAlgError: if there is no such solution.

    SciPy's own routine runs, in programs as a call of Python.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.solve_discrete_are([[0.0]], [[1.0]], [[4.0]], [[1.0]]).round(9).tolist()
        [[4.0]]
    """
    return _riccati("solve_discrete_are", scipy_matrices.discrete_riccati, (a, b, q, r))


def _toeplitz(name: str, c_or_cr: Any) -> dlarray:
    if isinstance(c_or_cr, tuple):
        if len(c_or_cr) != 2:
            refuse(f"linalg.{name}", f"c_or_cr must be a vector or a pair of vectors, not {brief(c_or_cr)}")
        return toeplitz(*c_or_cr)
    return toeplitz(c_or_cr)


def solve_toeplitz(c_or_cr: Any, b: Any) -> dlarray:
    """Return the solution X of T X = B, where T is constant along its diagonals.

    Args:
        c_or_cr: the first column of T, or a tuple of its first column and its first row.
        b: a vector (n,), or right sides (n, k).

    Returns:
        dlarray as large as `b`. The system is solved as any other, by factors.

    Raises:
        DimsError: if the sizes do not fit.
        ArgumentError: for a tuple that is no pair.
        numpy.linalg.LinAlgError: if T is singular.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.solve_toeplitz([2.0, 1.0], [4.0, 5.0]).round(12).tolist()
        [1.0, 2.0]
    """
    right = movement.relabel(as_array(b, "linalg.solve_toeplitz", "b"), None)
    return linalg.solve(in_double(_toeplitz("solve_toeplitz", c_or_cr)), in_double(right))


def matmul_toeplitz(c_or_cr: Any, x: Any) -> dlarray:
    """Return the product of a matrix that is constant along its diagonals and a vector or a matrix.

    Args:
        c_or_cr: the first column of the matrix, or a tuple of its first column and its first row.
        x: a vector (n,), or a matrix (n, k).

    Returns:
        dlarray.

    Raises:
        DimsError: if the sizes do not fit.
        ArgumentError: for a tuple that is no pair.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.matmul_toeplitz([2.0, 1.0], [1.0, 2.0]).tolist()
        [4.0, 5.0]
    """
    right = movement.relabel(as_array(x, "linalg.matmul_toeplitz", "x"), None)
    return linear.matmul(in_double(_toeplitz("matmul_toeplitz", c_or_cr)), in_double(right))


def solve_circulant(c: Any, b: Any) -> dlarray:
    """Return the solution X of C X = B, where the columns of C are a vector, each turned by one place more.

    Args:
        c: the first column of C.
        b: a vector (n,), or right sides (n, k).

    Returns:
        dlarray as large as `b`.

    Raises:
        DimsError: if the sizes do not fit.
        numpy.linalg.LinAlgError: if C is singular.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.solve_circulant([2.0, 1.0], [4.0, 5.0]).round(12).tolist()
        [1.0, 2.0]
    """
    return linalg.solve(circulant(c), b)
