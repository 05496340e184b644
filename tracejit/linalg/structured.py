# SPDX-License-Identifier: BSD-3-Clause
"""Matrices that are made of vectors, or of other matrices."""

from typing import Any

import numpy as np

from tracejit.array import as_array, dlarray
from tracejit.errors import DimsError
from tracejit.functions import joining, linear, movement
from tracejit.functions.formats import in_dtype


def _vector(function: str, argument: str, x: Any) -> dlarray:
    array = movement.relabel(movement.atleast_1d(as_array(x, function, argument)), None)
    if array.ndim != 1:
        raise DimsError(f"{function}: {argument} has {array.ndim} axes, expected a vector.")
    return array


def block_diag(*arrs: Any) -> dlarray:
    """Return a matrix with matrices along its diagonal, and zeros beside them.

    Args:
        arrs: matrices; vectors are rows, numbers 1 x 1.

    Returns:
        dlarray, in the common dtype.

    Raises:
        DimsError: for an array of more than two axes.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.block_diag([[1.0, 2.0]], 3.0).tolist()
        [[1.0, 2.0, 0.0], [0.0, 0.0, 3.0]]
    """
    blocks = [movement.relabel(movement.atleast_2d(as_array(x, "linalg.block_diag")), None) for x in arrs]
    for number, block in enumerate(blocks):
        if block.ndim != 2:
            raise DimsError(f"linalg.block_diag: array {number} has {block.ndim} axes, expected at most 2.")
    if not blocks:
        return as_array(np.zeros((1, 0)))
    width, left, rows = sum(block.shape[1] for block in blocks), 0, []
    dtype = np.result_type(*(block.dtype for block in blocks))
    for block in blocks:
        sizes = (left, width - left - block.shape[1])
        zeros = [np.zeros((block.shape[0], size), dtype) for size in sizes]
        rows.append(joining.concatenate([zeros[0], in_dtype(block, dtype), zeros[1]], 1))
        left += block.shape[1]
    return joining.concatenate(rows, 0)


def _by_differences(values: dlarray, rows: int, columns: int, step: int) -> dlarray:
    """Return the matrix of the elements values[i + step * j], counted from the lowest of these places."""
    places = np.arange(rows)[:, None] + step * np.arange(columns)
    return values[places - np.min(places, initial=0)]  # type: ignore[no-any-return]


def toeplitz(c: Any, r: Any = None) -> dlarray:
    """Return the matrix whose diagonals are constant.

    Args:
        c: the first column, a vector.
        r: the first row, whose first element is not read; None for the conjugate of `c`.

    Returns:
        dlarray, as many rows as elements of `c`, as many columns as elements of `r`.

    Raises:
        DimsError: for operands that are no vectors.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.toeplitz([1, 2, 3], [1, 4]).tolist()
        [[1, 4], [2, 1], [3, 2]]
    """
    column = _vector("linalg.toeplitz", "c", c)
    row = linear.conjugated(column) if r is None else _vector("linalg.toeplitz", "r", r)
    return _by_differences(joining.concatenate([row[:0:-1], column], 0), len(column), len(row), -1)


def hankel(c: Any, r: Any = None) -> dlarray:
    """Return the matrix whose diagonals from the lower left to the upper right are constant.

    Args:
        c: the first column, a vector.
        r: the last row, whose first element is not read; None for zeros.

    Returns:
        dlarray, as many rows as elements of `c`, as many columns as elements of `r`.

    Raises:
        DimsError: for operands that are no vectors.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.hankel([1, 2, 3]).tolist()
        [[1, 2, 3], [2, 3, 0], [3, 0, 0]]
    """
    column = _vector("linalg.hankel", "c", c)
    row = as_array(np.zeros(len(column), column.dtype)) if r is None else _vector("linalg.hankel", "r", r)
    return _by_differences(joining.concatenate([column, row[1:]], 0), len(column), len(row), 1)


def circulant(c: Any) -> dlarray:
    """Return the square matrix whose columns are a vector, each turned by one place more.

    Args:
        c: the first column, a vector.

    Returns:
        dlarray.

    Raises:
        DimsError: for an operand that is no vector.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.circulant([1, 2, 3]).tolist()
        [[1, 3, 2], [2, 1, 3], [3, 2, 1]]
    """
    column = _vector("linalg.circulant", "c", c)
    return toeplitz(column, joining.concatenate([column[:1], column[:0:-1]], 0))


def companion(a: Any) -> dlarray:
    """Return the companion matrix of a polynomial, whose eigenvalues are the roots.

    Args:
        a: coefficients, that of the highest power first; at least 2, and the first one is not 0.

    Returns:
        dlarray of one row less than there are coefficients.

    Raises:
        DimsError: for an operand that is no vector of at least 2 elements.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.companion([1.0, -3.0, 2.0]).tolist()
        [[3.0, -2.0], [1.0, 0.0]]
    """
    column = _vector("linalg.companion", "a", a)
    n = len(column) - 1
    if n < 1:
        raise DimsError("linalg.companion: a has 1 element, expected at least 2 coefficients.")
    first = -column[1:] / (1.0 * column[:1])
    below = np.eye(n - 1, n, dtype=first.dtype)
    return joining.concatenate([movement.reshape(first, (1, n)), below], 0)


def khatri_rao(a: Any, b: Any) -> dlarray:
    """Return the Kronecker products of the columns of two matrices.

    Args:
        a: matrix, (m, k).
        b: matrix, (n, k).

    Returns:
        dlarray, (m n, k).

    Raises:
        DimsError: unless both are matrices with as many columns.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.khatri_rao([[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]).tolist()
        [[3.0, 8.0], [5.0, 12.0]]
    """
    x, y = (
        movement.relabel(as_array(z, "linalg.khatri_rao", name), None) for z, name in ((a, "a"), (b, "b"))
    )
    if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[1]:
        raise DimsError(
            f"linalg.khatri_rao: a has shape {x.shape} and b {y.shape}, expected matrices with as many columns."
        )
    product = movement.expand_dims(x, 1) * movement.expand_dims(y, 0)
    return movement.reshape(product, (x.shape[0] * y.shape[0], x.shape[1]))
