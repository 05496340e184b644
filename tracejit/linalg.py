# SPDX-License-Identifier: BSD-3-Clause
"""scipy.linalg on dlarrays, under SciPy's names: ``tj.linalg.expm(a)``, with derivatives of any order.

What NumPy has too (`qr`, `svd`, `eigh`, ...) is called by NumPy's name. Functions of scipy.linalg itself convert their
operands to ndarrays, and refuse traced arrays. Results have no labels.

Examples:
    >>> import numpy as np, tracejit as tj
    >>> turn = np.array([[0.0, -1.0], [1.0, 0.0]])
    >>> bool(np.allclose(tj.linalg.expm(turn * np.pi), -np.eye(2)))
    True
"""

import math
from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.errors import ArgumentError, DimsError
from tracejit.functions import elementwise, joining, linalg, linear, movement, reductions
from tracejit.functions.formats import in_dtype
from tracejit.functions.linalg import det, inv, matrices, require, solve, solve_triangular
from tracejit.functions.numpy_api import in_python
from tracejit.ops.linalg import lu_factors
from tracejit.record import recorder
from tracejit.util.arguments import flag
from tracejit.util.text import brief

__all__ = [
    "block_diag", "cho_factor", "cho_solve", "cholesky", "circulant", "det", "expm", "hankel", "inv", "lu", "solve",
    "solve_triangular", "sqrtm", "toeplitz",
]  # fmt: skip

_PADE = (
    64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0,
    10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0,
)  # fmt: skip
_RADIUS = 5.371920351148152  # up to which norm the approximant is right to 2**-53
_STEPS = 26  # of the iteration for a square root: enough where eigenvalues differ by a factor of 1e12


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
    return values[places - places.min(initial=0)]  # type: ignore[no-any-return]


def toeplitz(c: Any, r: Any = None) -> dlarray:
    """Return the matrix whose diagonals are constant.

    Args:
        c: the first column, a vector.
        r: the first row, of which the first element is not read; None for the conjugate of `c`.

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
        r: the last row, of which the first element is not read; None for zeros.

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


def cholesky(a: Any, lower: bool = False) -> dlarray:
    """Return a Cholesky factor, upper triangular unless `lower`, as ``scipy.linalg.cholesky``.

    Args:
        a: symmetric positive definite matrices, (..., n, n), of which the half that the factor fills is read.
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
    return linalg.cholesky(a, upper=not flag("linalg.cholesky", "lower", lower))


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
    x = matrices("linalg.lu", "a", a, square=False)
    order, low, up = in_python.call("linalg.lu", lu_factors, (x,), {})
    places = apply("order", order, axis=order.ndim - 1)[0]  # of each row, in the product
    if flag("linalg.lu", "permute_l", permute_l):
        spread = movement.broadcast_to(movement.expand_dims(places, -1), low.shape)
        return apply("take_along_axis", low, spread, axis=low.ndim - 2), up
    if flag("linalg.lu", "p_indices", p_indices):
        return places, low, up
    numbers = np.arange(x.shape[-2])
    return in_dtype(movement.expand_dims(places, -1) == numbers, x.dtype), low, up


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
    factor, lower = c_and_lower
    first = solve_triangular(factor, b, trans=0 if lower else 1, lower=lower)
    return solve_triangular(factor, first, trans=1 if lower else 0, lower=lower)


def expm(a: Any) -> dlarray:
    """Return the exponentials of matrices, the sum of A^k / k!.

    Args:
        a: square matrices, (..., n, n).

    Returns:
        dlarray as large as `a`.

    Raises:
        DimsError: if the matrices are not square.

    The matrix is halved until its norm is small, then a Pade approximant of degree 13 is squared as often (N. Higham,
    The scaling and squaring method for the matrix exponential revisited, 2005). How often is guarded in a trace.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.expm([[0.0, 1.0], [0.0, 0.0]]).round(12).tolist()
        [[1.0, 1.0], [0.0, 1.0]]
    """
    x = matrices("linalg.expm", "a", a)
    if not x.size:
        return x
    norms = reductions.max(reductions.sum(elementwise.abs(x), -2))
    ratio = elementwise.maximum(elementwise.stop_gradient(norms) / _RADIUS, 1.0)
    levels = elementwise.ceil(elementwise.log2(elementwise.where(elementwise.isfinite(ratio), ratio, 1.0)))
    halvings = int(recorder.need_value(levels, "linalg.expm"))
    x = x * 0.5**halvings
    one = as_array(np.eye(x.shape[-1], dtype=x.dtype))
    second = linear.matmul(x, x)
    fourth = linear.matmul(second, second)
    powers = (one, second, fourth, linear.matmul(second, fourth))
    odd, even = (
        linear.matmul(powers[3], _combined(powers[1:], _PADE[8 + first :: 2]))
        + _combined(powers, _PADE[first:8:2])
        for first in (1, 0)
    )
    odd = linear.matmul(x, odd)
    result = solve(even - odd, even + odd)
    for _ in range(halvings):
        result = linear.matmul(result, result)
    return result


def _combined(parts: tuple[dlarray, ...], factors: tuple[float, ...]) -> dlarray:
    terms = [part * factor for part, factor in zip(parts, factors, strict=True)]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def sqrtm(a: Any) -> dlarray:
    """Return the principal square roots of matrices, whose eigenvalues have positive real parts.

    Args:
        a: real square matrices, (..., n, n), without negative eigenvalues, and not singular.

    Returns:
        dlarray as large as `a`: X with X X = A.

    Raises:
        DimsError: if the matrices are not square.
        numpy.linalg.LinAlgError: if a matrix has no such root, or is singular.

    The iteration is that of Denman and Beavers in products, M' = (2 I + M + M^-1) / 4 and X' = X (I + M^-1) / 2 from
    M = X = A (S. Cheng, N. Higham, C. Kenney, A. Laub, Approximating the logarithm of a matrix, 2001). SciPy's result
    is complex where there are negative eigenvalues.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.sqrtm([[4.0, 0.0], [0.0, 9.0]]).round(12).tolist()
        [[2.0, 0.0], [0.0, 3.0]]
    """
    x = matrices("linalg.sqrtm", "a", a)
    if not x.size:
        return x
    # Near 1, so that few steps are enough.
    size = elementwise.stop_gradient(elementwise.sqrt(reductions.mean(x * x, (-2, -1), keepdims=True)))
    size = size * math.sqrt(x.shape[-1])
    one = as_array(np.eye(x.shape[-1], dtype=x.dtype))
    m = root = x / size
    for _ in range(_STEPS):
        other = inv(m)
        root = linear.matmul(root, one + other) * 0.5
        m = (one * 2.0 + m + other) * 0.25
    near = reductions.max(elementwise.abs(m - one)) < math.sqrt(np.finfo(x.dtype).eps)
    require(
        near, "linalg.sqrtm", "the matrix, or one of the matrices, has no root without negative real parts"
    )
    return root * elementwise.sqrt(size)
