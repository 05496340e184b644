# SPDX-License-Identifier: BSD-3-Clause
"""Factors of matrices under SciPy's names, and solutions by them."""

from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.aval import INT32, INT64
from tracejit.errors import ArgumentError
from tracejit.functions import linalg, linear, movement
from tracejit.functions.formats import in_dtype
from tracejit.functions.numpy_api import in_python, scipy_matrices
from tracejit.functions.refusals import refuse
from tracejit.linalg.numbers import (
    adjoint,
    hermitian,
    in_double,
    is_complex,
    matrix,
    narrowed,
    routine,
    rows_of,
)
from tracejit.ops.linalg import lu_factors
from tracejit.util.arguments import flag, is_option
from tracejit.util.text import brief


def det(a: Any) -> dlarray:
    """Return the determinants of matrices.

    Args:
        a: square matrices, (..., n, n), real or complex.

    Returns:
        dlarray.

    Raises:
        DimsError: if the matrices are not square.

    Examples:
        >>> import tracejit as tj
        >>> round(tj.linalg.det([[1.0, 2.0], [3.0, 4.0]]).item(), 12)
        -2.0
    """
    x = matrix("det", "a", a, narrow=True)
    found: dlarray = (
        in_python.call("np.linalg.det", np.linalg.det, (x,), {}) if is_complex(x) else linalg.det(x)
    )
    return in_double(found)


def inv(a: Any) -> dlarray:
    """Return the inverses of matrices.

    Args:
        a: square matrices, (..., n, n), real or complex.

    Returns:
        dlarray as large as `a`.

    Raises:
        DimsError: if the matrices are not square.
        numpy.linalg.LinAlgError: if a matrix is singular.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.inv([[2.0, 0.0], [0.0, 4.0]]).tolist()
        [[0.5, 0.0], [0.0, 0.25]]
    """
    return linalg.inv(matrix("inv", "a", a, narrow=True))


def cholesky(a: Any, lower: bool = False) -> dlarray:
    """Return a Cholesky factor, upper triangular unless `lower`, as ``scipy.linalg.cholesky``.

    Args:
        a: symmetric or Hermitian positive definite matrices, (..., n, n); the half that the factor fills is
            read.
        lower: return L of L L' instead of R of R' R.

    Returns:
        dlarray as large as `a`.

    Raises:
        DimsError: if the matrices are not square.
        numpy.linalg.LinAlgError: if a matrix is not positive definite.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.cholesky([[4.0, 2.0], [2.0, 5.0]]).tolist()
        [[2.0, 1.0], [0.0, 2.0]]
    """
    lower = flag("linalg.cholesky", "lower", lower)
    x = matrix("cholesky", "a", a, narrow=True)
    if not is_complex(x):
        return linalg.cholesky(x, upper=not lower)
    found: dlarray = in_python.call("np.linalg.cholesky", np.linalg.cholesky, (hermitian(x, lower),), {})
    return found if lower else adjoint(found)


def cho_factor(a: Any, lower: bool = False) -> tuple[dlarray, bool]:
    """Return a Cholesky factor and whether it is lower, for `cho_solve`.

    Args:
        a: symmetric positive definite matrices, (..., n, n).
        lower: which factor.

    Returns:
        The factor, with zeros in its other half (where SciPy leaves what was there), and `lower`.

    Raises:
        DimsError: if the matrices are not square.
        numpy.linalg.LinAlgError: if a matrix is not positive definite.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.cho_factor([[4.0]])[0].tolist()
        [[2.0]]
    """
    return cholesky(a, lower), lower


def lu(a: Any, permute_l: bool = False, p_indices: bool = False) -> tuple[Any, ...]:
    """Return the factors of matrices P L U: exchanges of rows, a lower factor with ones on its diagonal, an upper one.

    Args:
        a: matrices, (..., m, n).
        permute_l: return P L and U.
        p_indices: return the numbers p of rows in place of P, so that ``a`` is ``L[p] @ U``.

    Returns:
        dlarrays P (..., m, m), or p (..., m), L (..., m, k) and U (..., k, n), k the smaller one of m and n. Exchanges
        are constants for derivatives, which are those of a matrix whose first k rows, in their new order, and columns
        have an inverse.

    Raises:
        DimsError: for an operand with fewer than two axes.

    LAPACK's own routine runs, in programs as a call of Python.

    Examples:
        >>> import tracejit as tj
        >>> p, low, up = tj.linalg.lu([[1.0, 2.0], [4.0, 4.0]])
        >>> p.tolist(), low.tolist(), up.tolist()
        ([[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.25, 1.0]], [[4.0, 4.0], [0.0, 1.0]])
    """
    x = matrix("lu", "a", a, square=False, narrow=True)
    order, low, up = in_python.call("linalg.lu", lu_factors, (x,), {})
    places = apply("order", order, axis=order.ndim - 1)[0]  # of each row, in the product
    if flag("linalg.lu", "permute_l", permute_l):
        spread = movement.broadcast_to(movement.expand_dims(places, -1), low.shape)
        return apply("take_along_axis", low, spread, axis=low.ndim - 2), up
    if flag("linalg.lu", "p_indices", p_indices):
        return in_dtype(places, INT32), low, up
    numbers = np.arange(x.shape[-2])
    return in_dtype(movement.expand_dims(places, -1) == numbers, low.real.dtype), low, up


def cho_solve(c_and_lower: tuple[Any, bool], b: Any) -> dlarray:
    """Return the solution X of A X = B by the Cholesky factor of A.

    Args:
        c_and_lower: what `cho_factor` returns.
        b: a vector (n,), or right sides (..., n, k).

    Returns:
        dlarray as large as `b`.

    Raises:
        ArgumentError: if the first argument is no pair.
        DimsError: if the sizes do not fit.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.cho_solve(tj.linalg.cho_factor([[4.0, 2.0], [2.0, 5.0]]), [6.0, 7.0]).tolist()
        [1.0, 1.0]
    """
    if not isinstance(c_and_lower, (tuple, list)) or len(c_and_lower) != 2:
        raise ArgumentError(
            f"linalg.cho_solve: c_and_lower must be the pair (factor, lower) that cho_factor returns, not "
            f"{brief(c_and_lower)}."
        )
    (factor, lower), b = c_and_lower, narrowed(b)
    factor = narrowed(factor)
    first = linalg.solve_triangular(factor, b, trans=0 if lower else 2, lower=lower)
    return linalg.solve_triangular(factor, first, trans=2 if lower else 0, lower=lower)


def lu_factor(a: Any) -> tuple[dlarray, dlarray]:
    """Return the factors L and U of square matrices in one array, and exchanges of rows, for `lu_solve`.

    Args:
        a: square matrices, (..., n, n).

    Returns:
        dlarrays (..., n, n), L below the diagonal without its ones, and (..., n), the row that row i is exchanged with.

    Raises:
        DimsError: if the matrices are not square.

    Examples:
        >>> import tracejit as tj
        >>> both, exchanges = tj.linalg.lu_factor([[1.0, 2.0], [4.0, 4.0]])
        >>> both.tolist(), exchanges.tolist()
        ([[4.0, 4.0], [0.25, 1.0]], [1, 1])
    """
    x = matrix("lu_factor", "a", a, narrow=True)
    _, low, up = in_python.call("linalg.lu", lu_factors, (x,), {})
    exchanges = routine("lu_factor", scipy_matrices.exchanges, x)
    return low - np.eye(x.shape[-1], dtype=x.dtype) + up, in_dtype(exchanges, INT32)


def lu_solve(lu_and_piv: tuple[Any, Any], b: Any, trans: Any = 0) -> dlarray:
    """Return the solution X of A X = B by the factors of A.

    Args:
        lu_and_piv: what `lu_factor` returns.
        b: a vector (n,), or right sides (..., n, k).
        trans: 0 for A X = B, 1 for A' X = B, 2 for the conjugate transpose.

    Returns:
        dlarray as large as `b`.

    Raises:
        ArgumentError: if the first argument is no pair, or `trans` none of those.
        DimsError: if the sizes do not fit.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.lu_solve(tj.linalg.lu_factor([[4.0, 2.0], [2.0, 5.0]]), [6.0, 7.0]).tolist()
        [1.0, 1.0]
    """
    if not isinstance(lu_and_piv, (tuple, list)) or len(lu_and_piv) != 2:
        raise ArgumentError(
            f"linalg.lu_solve: lu_and_piv must be the pair (lu, piv) that lu_factor returns, not {brief(lu_and_piv)}."
        )
    if not (type(trans) is int and trans in (0, 1, 2)):
        refuse("linalg.lu_solve", f"trans must be 0, 1 or 2, not {brief(trans)}")
    both = matrix("lu_solve", "lu", lu_and_piv[0], narrow=True)
    exchanges = in_dtype(as_array(lu_and_piv[1], "linalg.lu_solve", "piv"), INT64)
    order = routine("lu_solve", scipy_matrices.order_of, exchanges)
    right, is_vector = rows_of("lu_solve", narrowed(b), both.shape[-1])

    def moved(x: dlarray, places: dlarray) -> dlarray:
        spread = movement.broadcast_to(movement.expand_dims(places, -1), (*places.shape, x.shape[-1]))
        return apply("take_along_axis", movement.broadcast_to(x, spread.shape), spread, axis=x.ndim - 2)

    if trans == 0:
        first = linalg.solve_triangular(both, moved(right, order), lower=True, unit_diagonal=True)
        return linalg.as_given(linalg.solve_triangular(both, first), is_vector)
    first = linalg.solve_triangular(both, right, trans=trans)
    second = linalg.solve_triangular(both, first, trans=trans, lower=True, unit_diagonal=True)
    return linalg.as_given(moved(second, apply("order", order, axis=order.ndim - 1)[0]), is_vector)


def qr(a: Any, mode: str = "full") -> tuple[dlarray, ...]:
    """Return an orthogonal factor Q and an upper triangular factor R of matrices Q R.

    Args:
        a: matrices, (..., m, n).
        mode: "full" for Q (..., m, m) and R (..., m, n), "economic" for the first min(m, n) columns and rows, "r" for
            the full R alone, in a tuple.

    Returns:
        dlarrays Q and R.

    Raises:
        ArgumentError: for another mode.
        DimsError: for an operand with fewer than two axes.

    Examples:
        >>> import tracejit as tj
        >>> [x.shape for x in tj.linalg.qr([[3.0], [4.0]], mode="economic")]
        [(2, 1), (1, 1)]
    """
    if not is_option(mode, ("full", "economic", "r")):
        refuse("linalg.qr", f"mode must be 'full', 'economic' or 'r', not {brief(mode)}")
    x = matrix("qr", "a", a, square=False, narrow=True)
    factored: Any = np.linalg.qr  # which returns dlarrays of dlarrays
    q, r = factored(x, mode="reduced" if mode == "economic" else "complete")
    return (r,) if mode == "r" else (q, r)


def polar(a: Any, side: str = "right") -> tuple[dlarray, dlarray]:
    """Return the polar factors of matrices: U with orthonormal columns, or rows, and P positive semidefinite.

    Args:
        a: matrices, (..., m, n).
        side: "right" for U P, "left" for P U.

    Returns:
        dlarrays U, as large as `a`, and P.

    Raises:
        ArgumentError: for another side.
        DimsError: for an operand with fewer than two axes.

    The derivative is that of a matrix of full rank.

    Examples:
        >>> import tracejit as tj
        >>> [x.round(9).tolist() for x in tj.linalg.polar([[0.0, 2.0], [2.0, 0.0]])]
        [[[0.0, 1.0], [1.0, 0.0]], [[2.0, 0.0], [0.0, 2.0]]]
    """
    if not is_option(side, ("right", "left")):
        refuse("linalg.polar", f"side must be 'right' or 'left', not {brief(side)}")
    x = matrix("polar", "a", a, square=False, narrow=True)
    is_wide = x.shape[-1] > x.shape[-2]
    u, p = routine("polar", scipy_matrices.polar, adjoint(x) if is_wide else x)
    if is_wide:
        u = adjoint(u)  # A^H = V P, so A = P V^H
    if (side == "left") is is_wide:
        return u, p
    turned = adjoint(u)
    product = (
        linear.matmul(linear.matmul(u, p), turned)
        if not is_wide
        else linear.matmul(linear.matmul(turned, p), u)
    )
    return u, product


def schur(a: Any, output: str = "real") -> tuple[dlarray, dlarray]:
    """Return the Schur form T and the vectors Z of matrices Z T Z^H.

    Args:
        a: square matrices, (..., n, n).
        output: "real" for blocks of 2 x 2 on the diagonal of T where eigenvalues are complex, "complex" for a
            triangular T.

    Returns:
        dlarrays T and Z, without derivatives.

    Raises:
        ArgumentError: for another output.
        DimsError: if the matrices are not square.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.schur([[1.0, 2.0], [0.0, 3.0]])[0].tolist()
        [[1.0, 2.0], [0.0, 3.0]]
    """
    if not is_option(output, ("real", "complex")):
        refuse("linalg.schur", f"output must be 'real' or 'complex', not {brief(output)}")
    t, z = routine("schur", scipy_matrices.schur, matrix("schur", "a", a), output=output)
    return t, z
