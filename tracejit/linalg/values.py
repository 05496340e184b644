# SPDX-License-Identifier: BSD-3-Clause
"""Eigenvalues, singular values, and what follows from them, with the arguments of SciPy's functions.

Vectors have the sign, or the phase, that NumPy's functions on dlarrays give them.
"""

from typing import Any

import numpy as np

from tracejit.array import as_array, dlarray
from tracejit.aval import FLOAT64, complex_dtype
from tracejit.errors import DimsError
from tracejit.functions import movement, reductions
from tracejit.functions.formats import in_dtype
from tracejit.functions.linalg import solve_triangular
from tracejit.functions.refusals import refuse
from tracejit.linalg.factors import cholesky
from tracejit.linalg.numbers import adjoint, alike, hermitian, matrix, narrowed
from tracejit.record import recorder
from tracejit.util.arguments import flag, integer, is_real
from tracejit.util.text import brief
from tracejit.util.versions import is_scipy

_LINALG: Any = np.linalg  # whose functions return dlarrays of dlarrays


def _complex(x: dlarray) -> dlarray:
    return in_dtype(x, complex_dtype(x.dtype)) if x.dtype.kind == "f" else x


def eig(a: Any) -> tuple[dlarray, dlarray]:
    """Return eigenvalues, which are complex, and right eigenvectors, of norm 1.

    Args:
        a: square matrices, (..., n, n).

    Returns:
        dlarrays w (..., n) and V (..., n, n), whose columns are the vectors.

    Raises:
        DimsError: if the matrices are not square.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.eig([[2.0, 0.0], [0.0, 3.0]])[0].tolist()
        [(2+0j), (3+0j)]
    """
    w, v = _LINALG.eig(matrix("eig", "a", a))
    return _complex(w), v


def eigvals(a: Any) -> dlarray:
    """Return eigenvalues, which are complex.

    Args:
        a: square matrices, (..., n, n).

    Returns:
        dlarray (..., n).

    Raises:
        DimsError: if the matrices are not square.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.eigvals([[0.0, 1.0], [-1.0, 0.0]]).tolist()
        [1j, -1j]
    """
    return _complex(_LINALG.eigvals(matrix("eigvals", "a", a)))


def _chosen(name: str, w: dlarray, by_index: Any, by_value: Any) -> slice | None:
    """Return the places of the wanted eigenvalues, None for all. If values decide their number, it is guarded."""
    if by_index is not None and by_value is not None:
        refuse(f"linalg.{name}", "subset_by_index and subset_by_value are given both, expected one of them")
    given = by_index if by_index is not None else by_value
    if given is None:
        return None
    if not isinstance(given, (tuple, list, np.ndarray)) or len(given) != 2:
        refuse(f"linalg.{name}", f"a subset must be a pair (first, last), not {brief(given)}")
    if by_index is not None:
        first, last = (integer(f"linalg.{name}", "subset_by_index", x) for x in by_index)
        if not 0 <= first <= last < w.shape[-1]:
            refuse(
                f"linalg.{name}",
                f"subset_by_index is ({first}, {last}), expected 0 <= first <= last < {w.shape[-1]}",
            )
        return slice(first, last + 1)
    if w.ndim != 1:
        refuse(f"linalg.{name}", "subset_by_value is for one matrix")
    counts = [
        int(recorder.need_value(reductions.sum(in_dtype(w <= end, np.dtype(np.int64))), f"linalg.{name}"))
        for end in given
    ]
    return slice(*counts)


def eigh(
    a: Any,
    b: Any = None,
    *,
    lower: bool = True,
    eigvals_only: bool = False,
    subset_by_index: Any = None,
    subset_by_value: Any = None,
) -> Any:
    """Return eigenvalues, which increase, and eigenvectors of symmetric or Hermitian matrices.

    Args:
        a: Hermitian matrices, (..., n, n).
        b: positive definite matrices for the generalised problem A v = w B v, whose vectors have v^H B v = 1.
        lower: which half of the matrices is read.
        eigvals_only: return the eigenvalues alone.
        subset_by_index: a pair, the numbers of the first and of the last eigenvalue.
        subset_by_value: a pair (low, high) for the eigenvalues that are larger than `low` and at most `high`.

    Returns:
        dlarrays w (..., n) and V (..., n, n), or w.

    Raises:
        DimsError: if the matrices are not square, or `b` has another size.
        ArgumentError: if the subset is not a valid range.
        numpy.linalg.LinAlgError: if `b` is not positive definite.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.eigh([[2.0, 0.0], [0.0, 3.0]], [[1.0, 0.0], [0.0, 2.0]], eigvals_only=True).round(12).tolist()
        [1.5, 2.0]
    """
    return _hermitian("eigh", a, b, lower, eigvals_only, subset_by_index, subset_by_value)


def _hermitian(name: str, a: Any, b: Any, lower: Any, only: Any, by_index: Any, by_value: Any) -> Any:
    lower, only = flag(f"linalg.{name}", "lower", lower), flag(f"linalg.{name}", "eigvals_only", only)
    x = matrix(name, "a", a, narrow=True)
    factor = None
    if b is not None:
        other = matrix(name, "b", b, narrow=True)
        if other.shape[-1] != x.shape[-1]:
            raise DimsError(
                f"linalg.{name}: a has shape {x.shape} and b {other.shape}, expected matrices of one size."
            )
        factor = cholesky(hermitian(other, lower), lower=True)
        first = solve_triangular(factor, hermitian(x, lower), lower=True)
        x = adjoint(solve_triangular(factor, adjoint(first), lower=True))
        lower = True
    half = "L" if lower else "U"
    if only:
        w = _LINALG.eigvalsh(x, half)
        kept = _chosen(name, w, by_index, by_value)
        return w if kept is None else w[..., kept]
    w, v = _LINALG.eigh(x, half)
    kept = _chosen(name, w, by_index, by_value)
    if factor is not None:
        v = solve_triangular(factor, v, trans="C", lower=True)
    return (w, v) if kept is None else (w[..., kept], v[..., kept])


def eigvalsh(
    a: Any, b: Any = None, *, lower: bool = True, subset_by_index: Any = None, subset_by_value: Any = None
) -> dlarray:
    """Return the eigenvalues of symmetric or Hermitian matrices, which increase.

    Args:
        a: Hermitian matrices, (..., n, n).
        b, lower, subset_by_index, subset_by_value: as in `eigh`.

    Returns:
        dlarray (..., n).

    Raises:
        DimsError: if the matrices are not square, or `b` has another size.
        ArgumentError: if the subset is not a valid range.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.eigvalsh([[2.0, 0.0], [0.0, 3.0]], subset_by_index=(1, 1)).tolist()
        [3.0]
    """
    found: dlarray = _hermitian("eigvalsh", a, b, lower, True, subset_by_index, subset_by_value)
    return found


def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """Return the singular value decomposition U diag(s) V^H.

    Args:
        a: matrices, (..., m, n).
        full_matrices: return U (..., m, m) and V^H (..., n, n), not just the min(m, n) first columns and rows.
        compute_uv: False for the singular values alone.

    Returns:
        dlarrays U, s and V^H, or s.

    Raises:
        DimsError: for an operand with fewer than two axes.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.svd([[3.0, 0.0], [0.0, 4.0]], compute_uv=False).tolist()
        [4.0, 3.0]
    """
    x = matrix("svd", "a", a, square=False, narrow=True)
    if not flag("linalg.svd", "compute_uv", compute_uv):
        return _LINALG.svdvals(x)
    return tuple(_LINALG.svd(x, flag("linalg.svd", "full_matrices", full_matrices)))


def svdvals(a: Any) -> dlarray:
    """Return singular values, which decrease.

    Args:
        a: matrices, (..., m, n).

    Returns:
        dlarray (..., min(m, n)).

    Raises:
        DimsError: for an operand with fewer than two axes.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.svdvals([[3.0, 0.0], [0.0, 4.0]]).tolist()
        [4.0, 3.0]
    """
    found: dlarray = svd(a, compute_uv=False)
    return found


def _small(x: dlarray, factor: Any) -> float:
    """Return the part of the largest singular value up to which others count as 0."""
    return max(x.shape[-2:]) * float(np.finfo(x.dtype).eps) if factor is None else float(factor)


def pinv(a: Any, *, rtol: Any = None) -> dlarray:
    """Return pseudo-inverses.

    Args:
        a: matrices, (..., m, n).
        rtol: singular values up to this part of the largest one are as 0; None for max(m, n) times the rounding error.

    Returns:
        dlarray (..., n, m).

    Raises:
        DimsError: for an operand with fewer than two axes.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.pinv([[2.0], [0.0]]).tolist()
        [[0.5, 0.0]]
    """
    x = matrix("pinv", "a", a, square=False, narrow=True)
    found: dlarray = _LINALG.pinv(x, _small(x, rtol))
    return found


def pinvh(a: Any, *, rtol: Any = None, lower: bool = True) -> dlarray:
    """Return pseudo-inverses of symmetric or Hermitian matrices.

    Args:
        a: Hermitian matrices, (..., n, n).
        rtol: as in `pinv`.
        lower: which half is read.

    Returns:
        dlarray as large as `a`.

    Raises:
        DimsError: if the matrices are not square.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.pinvh([[2.0, 0.0], [0.0, 0.0]]).tolist()
        [[0.5, 0.0], [0.0, 0.0]]
    """
    return pinv(
        hermitian(matrix("pinvh", "a", a, narrow=True), flag("linalg.pinvh", "lower", lower)), rtol=rtol
    )


def lstsq(a: Any, b: Any, cond: Any = None) -> tuple[dlarray, dlarray, int, dlarray]:
    """Return the solution of least squares of A X = B.

    Args:
        a: matrix, (m, n).
        b: a vector (m,), or right sides (m, k).
        cond: singular values up to this part of the largest one are as 0; None for the rounding error.

    Returns:
        The solution, the sums of squares that are left, which are dlarrays, the rank of `a`, and the dlarray of its
        singular values. The sums are empty unless m > n is the rank. With SciPy 1.18 and later they have the dtype of
        the solution, and are NaN if m > n but the rank is less.

    Raises:
        DimsError: if the sizes do not fit.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.lstsq([[1.0], [1.0]], [1.0, 3.0])[0].round(12).tolist()
        [2.0]
    """
    is_new = is_scipy(1, 18)
    x, y = as_array(a, "linalg.lstsq", "a"), movement.relabel(as_array(b, "linalg.lstsq", "b"), None)
    if is_new and x.dtype.kind in "biu" and y.dtype.kind in "biu":
        x = in_dtype(x, FLOAT64)
    x, y = matrix("lstsq", "a", x, square=False, narrow=True), as_array(narrowed(y))
    x, y = alike(x, y if y.dtype.kind in "fc" else in_dtype(y, FLOAT64))
    small = float(np.finfo(x.dtype).eps) if cond is None else float(cond)
    found, left, rank, s = _LINALG.lstsq(x, y, small)
    if not left.size:
        is_nan = is_new and rank < x.shape[1] < x.shape[0]
        left = as_array(np.full(y.shape[1:], np.nan, x.dtype) if is_nan else np.zeros(0, x.dtype))
    elif is_new and x.size:
        left = in_dtype(left, x.dtype)
    return found, movement.reshape(left, ()) if left.size and y.ndim == 1 else left, int(rank), s


def norm(a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> dlarray:
    """Return norms of vectors or matrices, as ``np.linalg.norm``.

    Args:
        a: dlarray, ndarray or list.
        ord: the norm, as in NumPy's function.
        axis: an axis for vectors, two for matrices, None for the whole array.
        keepdims: keep the reduced axes with size 1.

    Returns:
        dlarray of real numbers.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.norm([3.0, 4.0]).item()
        5.0
    """
    x = as_array(a, "linalg.norm", "a")
    found: dlarray = _LINALG.norm(x, ord, axis, keepdims)
    # LAPACK's routine for these two gives SciPy a number of Python.
    is_routine = is_real(ord) and ord in (1, np.inf) and x.ndim == 2 and x.dtype.kind in "fc"
    return in_dtype(found, FLOAT64) if is_routine and axis is None and not keepdims else found


def _rank(name: str, s: dlarray, x: dlarray, rcond: Any) -> int:
    if s.ndim != 1:
        raise DimsError(f"linalg.{name}: A has shape {x.shape}, expected a matrix.")
    largest = reductions.max(s) if s.size else as_array(0.0)
    count = reductions.sum(in_dtype(s > largest * _small(x, rcond), np.dtype(np.int64)))
    return int(recorder.need_value(count, f"linalg.{name}"))


def orth(A: Any, rcond: Any = None) -> dlarray:  # noqa: N803 (SciPy's name)
    """Return an orthonormal basis of the columns of a matrix.

    Args:
        A: matrix, (m, n).
        rcond: singular values up to this part of the largest one are as 0; None for max(m, n) times the rounding error.

    Returns:
        dlarray (m, rank). The rank is guarded in a trace.

    Raises:
        DimsError: for an operand that is no matrix.

    Examples:
        >>> import tracejit as tj
        >>> abs(tj.linalg.orth([[3.0, 6.0], [4.0, 8.0]])).round(12).tolist()
        [[0.6], [0.8]]
    """
    x = matrix("orth", "A", A, square=False)
    u, s, _ = svd(x, full_matrices=False)
    rank = _rank("orth", s, x, rcond)
    return movement.sliced(u, {1: slice(0, rank)})


def null_space(A: Any, rcond: Any = None) -> dlarray:  # noqa: N803 (SciPy's name)
    """Return an orthonormal basis of the vectors that a matrix makes 0.

    Args:
        A: matrix, (m, n).
        rcond: as in `orth`.

    Returns:
        dlarray (n, n - rank). The rank is guarded in a trace.

    Raises:
        DimsError: for an operand that is no matrix.

    Examples:
        >>> import tracejit as tj
        >>> abs(tj.linalg.null_space([[3.0, 4.0]])).round(12).tolist()
        [[0.8], [0.6]]
    """
    x = matrix("null_space", "A", A, square=False)
    _, s, vh = svd(x, full_matrices=True)
    rank = _rank("null_space", s, x, rcond)
    return adjoint(movement.sliced(vh, {0: slice(rank, x.shape[1])}))
