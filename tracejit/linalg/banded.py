# SPDX-License-Identifier: BSD-3-Clause
"""Systems whose matrix has a few diagonals; each diagonal is a row of an array, as LAPACK stores it.

Row u + i - j, column j, holds the element i, j of a matrix with u diagonals above the main one.
"""

from typing import Any

import numpy as np

from tracejit.array import dlarray
from tracejit.errors import ArgumentError, DimsError
from tracejit.functions import joining, linear, movement
from tracejit.functions.linalg import as_given
from tracejit.functions.numpy_api import scipy_matrices
from tracejit.linalg.factors import cholesky
from tracejit.linalg.numbers import alike, hermitian, matrix, routine, rows_of
from tracejit.util.arguments import flag, integers
from tracejit.util.text import brief


def _diagonals(name: str, argument: str, ab: Any) -> dlarray:
    rows = matrix(name, argument, ab, square=False)
    if rows.ndim != 2:
        raise DimsError(f"linalg.{name}: {argument} has shape {rows.shape}, expected a matrix of diagonals.")
    return rows


def solve_banded(l_and_u: Any, ab: Any, b: Any) -> dlarray:
    """Return the solution X of A X = B for a matrix with a few diagonals.

    Args:
        l_and_u: how many diagonals lie below the main one, and how many above.
        ab: the diagonals as rows, (l + u + 1, n): the element i, j of the matrix is ab[u + i - j, j].
        b: a vector (n,), or right sides (n, k).

    Returns:
        dlarray as large as `b`.

    Raises:
        DimsError: if the sizes do not fit.
        numpy.linalg.LinAlgError: if the matrix is singular.

    SciPy's own routine runs, in programs as a call of Python; its derivatives are systems of this kind.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.solve_banded((0, 1), [[0.0, 1.0], [2.0, 4.0]], [4.0, 8.0]).tolist()
        [1.0, 2.0]
    """
    name = "solve_banded"
    rows = _diagonals(name, "ab", ab)
    counts = integers("linalg.solve_banded", "l_and_u", l_and_u)
    if len(counts) != 2 or min(counts) < 0 or sum(counts) + 1 != rows.shape[0]:
        raise DimsError(
            f"linalg.{name}: ab has {rows.shape[0]} rows and l_and_u is {brief(l_and_u)}, expected a pair of numbers "
            "of diagonals with l + u + 1 rows."
        )
    return _solved(name, rows, b, *counts)


def _solved(name: str, rows: dlarray, b: Any, lower: int, upper: int, **options: Any) -> dlarray:
    right, is_vector = rows_of(name, b, rows.shape[1])
    if right.ndim != 2:
        raise DimsError(f"linalg.{name}: b has shape {right.shape}, expected a vector or a matrix.")
    rows, right = alike(rows, right)
    found: dlarray = routine(name, scipy_matrices.banded, rows, right, lower=lower, upper=upper, **options)
    return as_given(found, is_vector)


def _shifted(row: dlarray, by: int) -> dlarray:
    """Return a row whose element j is element j + by of another one, or 0."""
    n = row.shape[-1]
    none = np.zeros(min(abs(by), n), row.dtype)
    if by >= 0:
        return joining.concatenate([row[by:], none], 0)
    return joining.concatenate([none, row[: max(n + by, 0)]], 0)


def _whole(rows: dlarray, lower: bool) -> dlarray:
    """Return all diagonals of a Hermitian matrix, given those of one half."""
    count = rows.shape[0] - 1
    if lower:
        above = [_shifted(linear.conjugated(rows[d]), -d) for d in range(count, 0, -1)]
        return joining.concatenate([movement.expand_dims(row, 0) for row in above] + [rows], 0)
    below = [_shifted(linear.conjugated(rows[count - d]), d) for d in range(1, count + 1)]
    return joining.concatenate([rows] + [movement.expand_dims(row, 0) for row in below], 0)


def solveh_banded(ab: Any, b: Any, lower: bool = False) -> dlarray:
    """Return the solution X of A X = B for a Hermitian positive definite matrix with a few diagonals.

    Args:
        ab: the diagonals of one half as rows, (u + 1, n): the element i, j of the matrix is ab[u + i - j, j], or
            ab[i - j, j] if `lower`.
        b: a vector (n,), or right sides (n, k).
        lower: `ab` holds the lower half.

    Returns:
        dlarray as large as `b`.

    Raises:
        DimsError: if the sizes do not fit.
        numpy.linalg.LinAlgError: if the matrix is not positive definite.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.solveh_banded([[0.0, 1.0], [2.0, 2.0]], [4.0, 5.0]).tolist()
        [1.0, 2.0]
    """
    rows = _diagonals("solveh_banded", "ab", ab)
    count = rows.shape[0] - 1
    whole = _whole(rows, flag("linalg.solveh_banded", "lower", lower))
    return _solved("solveh_banded", whole, b, count, count, definite=True)


def _places(count: int, n: int, lower: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the row and the column of each element of an array of diagonals, and whether the matrix has it."""
    columns = np.broadcast_to(np.arange(n), (count + 1, n))
    rows = columns + np.arange(count + 1)[:, None] - (0 if lower else count)
    inside = (rows >= 0) & (rows < n)
    return np.where(inside, rows, 0), columns, inside


def cholesky_banded(ab: Any, lower: bool = False) -> dlarray:
    """Return the Cholesky factor of a Hermitian positive definite matrix with a few diagonals, in the form of `ab`.

    Args:
        ab: the diagonals of one half as rows, as in `solveh_banded`.
        lower: `ab` and the factor hold the lower half.

    Returns:
        dlarray as large as `ab`, with zeros where the matrix has no element.

    Raises:
        DimsError: for an operand that is no matrix.
        numpy.linalg.LinAlgError: if the matrix is not positive definite.

    The matrix is factored as any other one.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.cholesky_banded([[0.0, 2.0], [4.0, 5.0]]).tolist()
        [[0.0, 1.0], [2.0, 2.0]]
    """
    lower = flag("linalg.cholesky_banded", "lower", lower)
    given = _diagonals("cholesky_banded", "ab", ab)
    count, n = given.shape[0] - 1, given.shape[1]
    rows, columns, inside = _places(count, n, lower)
    # Element r, c of the matrix is element u + r - c, c of the rows, or none.
    i, j = np.indices((n, n))
    place = i - j + (0 if lower else count)
    kept = (place >= 0) & (place <= count)
    dense = given[np.where(kept, place, 0), j] * kept.astype(given.dtype)
    factor = cholesky(hermitian(dense, lower), lower)
    found: dlarray = factor[rows, columns] * inside.astype(given.dtype)
    return found


def cho_solve_banded(cb_and_lower: tuple[Any, bool], b: Any) -> dlarray:
    """Return the solution X of A X = B by the Cholesky factor of A in the form of its diagonals.

    Args:
        cb_and_lower: the pair of what `cholesky_banded` returns, and its argument `lower`.
        b: a vector (n,), or right sides (n, k).

    Returns:
        dlarray as large as `b`.

    Raises:
        ArgumentError: if the first argument is no pair.
        DimsError: if the sizes do not fit.

    Examples:
        >>> import tracejit as tj
        >>> factor = tj.linalg.cholesky_banded([[0.0, 2.0], [4.0, 5.0]])
        >>> tj.linalg.cho_solve_banded((factor, False), [6.0, 7.0]).tolist()
        [1.0, 1.0]
    """
    if not isinstance(cb_and_lower, (tuple, list)) or len(cb_and_lower) != 2:
        raise ArgumentError(
            "linalg.cho_solve_banded: cb_and_lower must be the pair (factor, lower) of cholesky_banded, not "
            f"{brief(cb_and_lower)}."
        )
    name = "cho_solve_banded"
    rows, lower = (
        _diagonals(name, "cb", cb_and_lower[0]),
        flag("linalg.cho_solve_banded", "lower", cb_and_lower[1]),
    )
    count = rows.shape[0] - 1
    if lower:
        turned = [_shifted(linear.conjugated(rows[d]), -d) for d in range(count, -1, -1)]
        first, second = rows, joining.concatenate([movement.expand_dims(row, 0) for row in turned], 0)
    else:
        turned = [_shifted(linear.conjugated(rows[count - d]), d) for d in range(count + 1)]
        first, second = joining.concatenate([movement.expand_dims(row, 0) for row in turned], 0), rows
    return _solved(name, second, _solved(name, first, b, count, 0), 0, count)
