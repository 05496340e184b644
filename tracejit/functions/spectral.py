# SPDX-License-Identifier: BSD-3-Clause
"""Eigenvalues of symmetric matrices, singular values, and what they give: ranks, pseudo-inverses, least squares.

Labels: results have none. The sign of a vector is chosen so that its first element that is not much smaller than the
largest is positive, uncompiled and in replays.
"""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.aval import COMPLEX64, FLOAT64
from tracejit.errors import ArgumentValueError, MatrixError
from tracejit.functions import elementwise, joining, linear, movement, norms, reductions
from tracejit.functions.axes import normalize_axes
from tracejit.functions.formats import in_dtype
from tracejit.functions.linalg import (
    cholesky,
    diagonals,
    inv,
    matrices,
    of_any_numbers,
    require,
    solve,
    solve_triangular,
    transposed,
)
from tracejit.functions.refusals import refuse
from tracejit.record import recorder
from tracejit.record.guards import Decides
from tracejit.util.arguments import flag, is_option, is_real
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.text import brief

# Most columns of a matrix whose values rotations compute; beyond that LAPACK does (ops/spectral.py).
_FEW = 3
_FEW_OF_VALUES = 2  # where no vectors are wanted
_NO_VALUES = "the matrix, or one of the matrices, has an element that is not finite"


class EighResult(NamedTuple):
    """Eigenvalues, in order, and the eigenvectors as columns."""

    eigenvalues: dlarray
    eigenvectors: dlarray


class SVDResult(NamedTuple):
    """Singular vectors as columns, singular values, the largest first, and vectors as rows: the matrix is U S Vh."""

    U: dlarray
    S: dlarray
    Vh: dlarray


def _columns(x: dlarray, places: dlarray) -> dlarray:
    """Return the columns of matrices at places."""
    spread = movement.expanded(movement.expand_dims(places, -2), x.shape)
    return apply("take_along_axis", x, spread, axis=x.ndim - 1)


def _order(w: dlarray, descending: bool) -> dlarray:
    keys = apply("stop_gradient", w)
    return apply("order", -keys if descending else keys, axis=w.ndim - 1)[0]  # type: ignore[no-any-return]


def _signs(v: dlarray) -> dlarray:
    """Return the signs of the first large element of each column, as rows."""
    fixed = apply("stop_gradient", v)
    if not v.size:
        return movement.reshape(fixed, (*v.shape[:-2], 1, v.shape[-1])) if v.shape[-2] else fixed
    sizes = elementwise.abs(fixed)
    large = sizes >= 0.6 * reductions.max(sizes, axis=-2, keepdims=True)
    first = reductions.argmax(large, axis=-2, keepdims=True)
    negative = apply("take_along_axis", fixed, first, axis=v.ndim - 2) < 0
    return elementwise.where(negative, v.dtype.type(-1), v.dtype.type(1))


def _by_lapack(function: str, op: str, values: int, x: dlarray) -> tuple[dlarray, ...]:
    """Return the results of an op that LAPACK computes, in float64 as NumPy does; `values` is the number of the values.

    Raises:
        numpy.linalg.LinAlgError: if they are not finite.
    """
    found = apply(op, in_dtype(x, np.dtype(np.float64)))
    results = found if isinstance(found, tuple) else (found,)
    require(elementwise.isfinite(results[values]), function, _NO_VALUES)
    return tuple([in_dtype(result, x.dtype) for result in results])


def _eigh(function: str, a: Any, lower: Any, vectors: bool) -> tuple[dlarray, dlarray]:
    """Return eigenvalues in order, and if they are wanted the vectors."""
    x = matrices(function, "a", a)
    if not is_option(lower, ("L", "l", "U", "u")):
        refuse(function, f"UPLO must be 'L' or 'U', not {brief(lower)}", ArgumentValueError)
    x = transposed(x) if lower in ("U", "u") else x
    if x.shape[-1] > (_FEW if vectors else _FEW_OF_VALUES):
        found = _by_lapack(function, "eigh_in_order" if vectors else "eigvalsh_in_order", 0, x)
        return found[0], found[-1]
    w, v, _ = apply("eigh", x)
    require(elementwise.isfinite(w), function, _NO_VALUES)
    if not x.size:
        return w, v
    places = _order(w, False)
    return apply("take_along_axis", w, places, axis=w.ndim - 1), _columns(v, places)


def eigh(a: Any, UPLO: Any = "L") -> EighResult:  # noqa: N803 (NumPy's name)
    """Return the eigenvalues and eigenvectors of symmetric matrices."""
    w, v = _eigh("eigh", a, UPLO, True)
    return EighResult(w, v * _signs(v) if v.size else v)


def eigvalsh(a: Any, UPLO: Any = "L") -> dlarray:  # noqa: N803 (NumPy's name)
    """Return the eigenvalues of symmetric matrices, in order."""
    return _eigh("eigvalsh", a, UPLO, False)[0]


def _scaled(x: dlarray) -> tuple[dlarray, dlarray]:
    """Return matrices over scales, and the scales: 1, or the largest element where products would leave the range.

    The rotations multiply squares of lengths of columns: fourth powers, whose last digits count as well.
    """
    largest = reductions.max(elementwise.abs(apply("stop_gradient", x)), (-2, -1), keepdims=True)
    limits = np.finfo(x.dtype)
    high = float(limits.max) ** 0.25 / x.shape[-2]
    low = float(limits.tiny) ** 0.25 / float(limits.eps)
    usual = ((largest >= low) & (largest <= high)) | (largest == 0) | ~elementwise.isfinite(largest)
    scale = elementwise.where(usual, x.dtype.type(1), largest)
    return x / scale, scale


def _svd(function: str, x: dlarray) -> tuple[dlarray, dlarray, dlarray]:
    """Return U, S and V of matrices with no more columns than rows, the largest value first."""
    if not x.size:
        return _svd_of_usual(function, x)
    if x.shape[-1] > _FEW:
        u, s, v = _by_lapack(function, "svd_in_order", 1, x)
        return u, s, transposed(v)
    scaled, scale = _scaled(x)
    u, s, v = _svd_of_usual(function, scaled)
    return u, s * movement.squeeze(scale, -1), v


def _svd_of_usual(function: str, x: dlarray) -> tuple[dlarray, dlarray, dlarray]:
    """Return U, S and V of matrices whose elements have fourth powers within the range."""
    columns, squares, turns = apply("svd_columns", x)
    require(elementwise.isfinite(squares), function, _NO_VALUES)
    u, s, v = apply("svd", x, columns, elementwise.sqrt(squares), turns)
    if not s.size:
        return u, s, v
    places = _order(s, True)
    s = apply("take_along_axis", s, places, axis=s.ndim - 1)
    return _columns(u, places), s, _columns(v, places)


def _factors(function: str, a: Any) -> tuple[dlarray, dlarray, dlarray]:
    """Return U, S and V of matrices."""
    x = matrices(function, "a", a, square=False)
    if x.shape[-2] >= x.shape[-1]:
        return _svd(function, x)
    v, s, u = _svd(function, transposed(x))
    return u, s, v


def _values(function: str, x: dlarray) -> dlarray:
    """Return singular values, the largest first; those of complex matrices are NumPy's own."""
    if x.dtype.kind == "c":
        values: Any = np.linalg.svd(x, compute_uv=False)
        return values  # type: ignore[no-any-return]
    array = matrices(function, "a", x, square=False)
    if min(array.shape[-2:]) <= _FEW:
        return _factors(function, array)[1]
    tall = array if array.shape[-2] >= array.shape[-1] else transposed(array)
    return _by_lapack(function, "svdvals_in_order", 0, tall)[0]


def svd(a: Any, full_matrices: Any = True, compute_uv: Any = True, hermitian: Any = False) -> Any:
    """Return the singular value decomposition U S Vh of matrices, or the values alone if not `compute_uv`."""
    if flag("svd", "hermitian", hermitian):
        refuse("svd", "hermitian=True is not supported; use np.linalg.eigh")
    if not flag("svd", "compute_uv", compute_uv):
        return _values("svd", matrices("svd", "a", a, square=False))
    u, s, v = _factors("svd", a)
    full = flag("svd", "full_matrices", full_matrices)
    signs = _signs(v) if v.size and u.size else None
    if signs is not None:
        u, v = u * signs, v * signs
    return SVDResult(_completed(u), s, transposed(_completed(v))) if full else SVDResult(u, s, transposed(v))


def _completed(u: dlarray) -> dlarray:
    """Return orthonormal columns, followed by others that make a basis of them.

    The others span the null space of U', so that they are eigenvectors of 1 - U U', of the eigenvalue 1. As this value
    occurs several times, the derivative is that of W (W' W)^(-1/2) by a Cholesky factor, W = (1 - U U') C with the
    vectors C found as constants. They are turned within their space by nothing, which a loss that depends on the
    space alone does not see.
    """
    m, n = u.shape[-2:]
    if m == n:
        return u
    if not n:
        return as_array(np.broadcast_to(np.eye(m, dtype=u.dtype), (*u.shape[:-2], m, m)).copy())
    known = apply("stop_gradient", u)
    found = eigh(as_array(np.eye(m, dtype=u.dtype)) - linear.matmul(known, transposed(known))).eigenvectors
    found = apply("stop_gradient", found[..., :, n:])
    beside = found - linear.matmul(u, linear.matmul(transposed(u), found))
    factor = cholesky(linear.matmul(transposed(beside), beside))
    return joining.concatenate([u, transposed(solve_triangular(factor, transposed(beside), lower=True))], -1)


def svdvals(x: Any) -> dlarray:
    """Return the singular values of matrices, the largest first."""
    return _values("svdvals", matrices("svdvals", "x", x, square=False))


def _cut(function: str, s: dlarray, given: Any, share: float) -> dlarray:
    """Return which singular values are not 0 up to rounding: a share of the largest, or one for each matrix."""
    part = share if given is None else given
    if recorder.is_array(part) or np.ndim(part):
        part = movement.expand_dims(as_array(part, function, "rtol"), -1)
    else:
        part = float(part)
    return s > part * reductions.max(s, axis=-1, keepdims=True)


def pinv(a: Any, rcond: Any = None, hermitian: Any = False, *, rtol: Any = None) -> dlarray:
    """Return the pseudo-inverses of matrices; singular values below rcond times the largest count as 0."""
    del hermitian  # a hint, which changes numbers only by rounding
    if rcond is not None and rtol is not None:
        refuse("pinv", "rcond and rtol mean the same; pass one of them", ArgumentValueError)
    u, s, v = _factors("pinv", a)
    if not s.size:
        return transposed(matrices("pinv", "a", a, square=False))
    share = 1e-15 if rtol is None else rtol
    return _pseudo_inverse(matrices("pinv", "a", a, square=False), u, s, v, _cut("pinv", s, rcond, share))


def _pseudo_inverse(x: dlarray, u: dlarray, s: dlarray, v: dlarray, kept: dlarray) -> dlarray:
    """Return pseudo-inverses of matrices by their factors, which are taken as constants.

    V S^-1 U' has no derivative by its factors where singular values are equal, as those of the identity are. With U, S
    and V as constants, X has the orthonormal columns C = X V S^-1 and rows R = S^-1 U' X as long as its rank stays, and
    is C (S^-1 U' X V S^-1)^-1 R. So its pseudo-inverse is R' (R R')^-1 (S^-1 U' X V S^-1) (C' C)^-1 C', whose inverses
    are those of the identity, without loss of digits.
    """
    u, s, v = (elementwise.stop_gradient(part) for part in (u, s, v))
    scale = elementwise.where(kept, 1 / elementwise.where(kept, s, 1), s.dtype.type(0))
    left, right = (part * movement.expand_dims(scale, -2) for part in (u, v))
    unit = as_array(np.eye(s.shape[-1], dtype=s.dtype))
    others = unit * movement.expand_dims(in_dtype(~kept, s.dtype), -2)  # so that they can be inverted
    columns, rows = linear.matmul(x, right), linear.matmul(transposed(left), x)
    core = linear.matmul(transposed(left), columns)
    inner = solve(linear.matmul(transposed(columns), columns) + others, transposed(columns))
    outer = solve(linear.matmul(rows, transposed(rows)) + others, rows)
    return linear.matmul(transposed(outer), linear.matmul(core, inner))


def matrix_rank(A: Any, tol: Any = None, hermitian: Any = False, *, rtol: Any = None) -> dlarray:  # noqa: N803
    """Return the number of singular values over a tolerance."""
    del hermitian
    if tol is not None and rtol is not None:
        refuse("matrix_rank", "tol and rtol are two bounds; pass one of them", ArgumentValueError)
    array = as_array(A, "matrix_rank")
    if array.ndim < 2:
        return reductions.any(array != 0).astype(np.int64)
    s = _values("matrix_rank", matrices("matrix_rank", "A", A, square=False))
    if not s.size:
        return reductions.sum(s > 0, -1)
    if tol is not None:
        bound = as_array(tol, "matrix_rank", "tol")
        return reductions.sum(s > (bound[..., None] if bound.ndim else bound), -1)
    share = max(array.shape[-2:]) * float(np.finfo(s.dtype).eps)
    return reductions.sum(_cut("matrix_rank", s, rtol, share), -1)


def cond(x: Any, p: Any = None) -> dlarray:
    """Return the condition numbers of matrices: the largest over the smallest singular value, or by another norm."""
    if p is None or p in (2, -2):
        s = _values("cond", of_any_numbers("cond", "x", x, square=False))
        if not s.shape[-1]:
            refuse("cond", "the matrices are empty", MatrixError)
        ratio = s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
        return elementwise.where(s[..., 0] == 0, np.inf, ratio)  # of zeros only
    array = of_any_numbers("cond", "x", x)
    axes = (array.ndim - 2, array.ndim - 1)
    size = norms.norm if p == "fro" or (is_real(p) and p in (1, np.inf)) else norm
    if p == "nuc":  # NumPy's raises an error for an inverse that there is not
        return size(array, p, axes) * size(inv(array), p, axes)
    one = np.eye(array.shape[-1], dtype=array.dtype)
    is_singular = _is_singular(array)
    inverse = inv(elementwise.where(is_singular[..., None, None], one, array))
    ratio = size(array, p, axes) * size(inverse, p, axes)
    is_nan = elementwise.isnan(ratio) & ~reductions.any(elementwise.isnan(array), axes)
    return elementwise.where(is_singular | is_nan, np.inf, ratio)


def _is_singular(x: dlarray) -> dlarray:
    """Return whether matrices have a factor that has no inverse."""
    if x.dtype.kind == "c":  # as linalg.inv() factors them
        real, imag = apply("real", x), apply("imag", x)
        x = joining.concatenate(
            [joining.concatenate([real, -imag], -1), joining.concatenate([imag, real], -1)], -2
        )
    return reductions.any(diagonals(apply("lu", elementwise.stop_gradient(x))[0]) == 0, -1)


def lstsq(a: Any, b: Any, rcond: Any = None) -> tuple[dlarray, dlarray, np.int32, dlarray]:
    """Return the x that minimises |a x - b|, the sums of squares left, the rank, and the singular values of a."""
    x = of_any_numbers("lstsq", "a", a, square=False)
    y = movement.relabel(as_array(b, "lstsq", "b"), None)
    if x.ndim != 2 or y.ndim not in (1, 2) or y.shape[0] != x.shape[0]:
        raise MatrixError(
            f"lstsq: a has shape {x.shape} and b {y.shape}, expected (m, n), and (m,) or (m, k) with as many rows."
        )
    y = y if y.dtype.kind in "fc" else in_dtype(y, FLOAT64)
    dtype = np.result_type(x.dtype, y.dtype)
    wide = np.result_type(dtype, FLOAT64)  # NumPy's LAPACK computes in double precision
    parts = _least_squares(in_dtype(x, wide), in_dtype(y, wide), rcond)
    real = dtype if dtype.kind == "f" else np.dtype(np.float32 if dtype == COMPLEX64 else FLOAT64)
    kinds = (dtype, real, real)
    found, left, s = (in_dtype(part, kind) for part, kind in zip(parts[:3], kinds, strict=True))
    return found, left, np.int32(parts[3]), s


def _least_squares(x: dlarray, y: dlarray, rcond: Any) -> tuple[dlarray, dlarray, dlarray, int]:
    """Return the solution, the sums of squares left, the singular values and the rank, in double precision."""
    if not x.size:
        left = reductions.sum(elementwise.square(elementwise.abs(y)), 0)
        left = movement.reshape(left, (1,)) if y.ndim == 1 else left
        none = as_array(np.zeros(0))
        found = as_array(np.zeros((x.shape[1], *y.shape[1:]), y.dtype))
        return found, none if x.shape[1] or not x.shape[0] else left, none, 0
    share = float(np.finfo(x.dtype).eps) * max(x.shape)
    share = share if rcond is None or rcond == -1 else rcond
    if x.dtype.kind == "c":
        s = _values("lstsq", x)
        kept = _cut("lstsq", s, share, share)
        inverse: Any = np.linalg.pinv(x, share)
    else:
        u, s, v = _factors("lstsq", x)
        kept = _cut("lstsq", s, share, share)
        inverse = _pseudo_inverse(x, u, s, v, kept)
    rank = int(recorder.need_value(reductions.sum(kept), "lstsq", Decides.VALUE))
    found = linear.matmul(inverse, y)
    left = as_array(np.zeros(0, s.dtype))
    if rank == x.shape[1] and x.shape[0] > rank:
        left = reductions.sum(elementwise.square(elementwise.abs(linear.matmul(x, found) - y)), 0)
        left = movement.reshape(left, (1,)) if y.ndim == 1 else left
    return found, left, s, rank


def norm(x: Any, ord: Any, axis: Any = None, keepdims: Any = False) -> dlarray:
    """Return norms of the orders that the toolbox's own function does not have, as ``numpy.linalg.norm``."""
    array = movement.relabel(as_array(x, "norm"), None)
    axes = normalize_axes("norm", array, axis)
    if array.dtype.kind == "c" and (len(axes) == 1 or (is_real(ord) and ord in (-1, -np.inf))):
        array = elementwise.abs(array)  # these norms are of the magnitudes
    array = array if array.dtype.kind in "fc" else in_dtype(array, np.dtype(np.float64))
    if len(axes) == 1 and is_real(ord):
        return _of_vectors(array, ord, axes[0], flag("norm", "keepdims", keepdims))
    if len(axes) != 2 or not (is_option(ord, ("nuc",)) or (is_real(ord) and ord in (2, -1, -2, -np.inf))):
        refuse("norm", f"ord={brief(ord)} does not apply to {len(axes)} axes")
    rows, columns = axes
    if isinstance(axis, (tuple, list)) and axis[0] % array.ndim == columns:
        rows, columns = columns, rows
    matrix = movement.moveaxis(array, (rows, columns), (-2, -1))
    if not is_option(ord, ("nuc",)) and ord in (-1, -np.inf):
        found = reductions.min(reductions.sum(elementwise.abs(matrix), -2 if ord == -1 else -1), -1)
    else:
        s = _values("norm", matrix)
        found = reductions.sum(s, -1) if is_option(ord, ("nuc",)) else s[..., 0 if ord == 2 else -1]
    if flag("norm", "keepdims", keepdims):
        found = movement.reshape(found, tuple(1 if i in axes else n for i, n in enumerate(array.shape)))
    return found


def _of_vectors(x: dlarray, ord: Any, axis: int, keepdims: bool) -> dlarray:
    if ord == 0:
        return reductions.sum(in_dtype(x != 0, x.dtype), axis, keepdims=keepdims)
    sizes = elementwise.abs(x)
    if ord == -np.inf:
        return reductions.min(sizes, axis, keepdims)
    total = reductions.sum(sizes ** float(ord), axis, keepdims=keepdims)
    is_zero = total == 0  # where the derivative is taken as 0
    return elementwise.where(is_zero, total, elementwise.where(is_zero, 1, total) ** (1 / float(ord)))


def _vector_norm(x: Any, *, axis: Any = None, keepdims: Any = False, ord: Any = 2) -> Any:
    """Return norms of vectors, whose elements lie along one axis, several, or all."""
    array = as_array(x, "vector_norm")
    if axis is not None and not isinstance(axis, tuple):
        return np.linalg.norm(array, ord, axis, keepdims)
    axes = tuple(range(array.ndim)) if axis is None else normalize_axes("vector_norm", array, axis)
    rest = [i for i in range(array.ndim) if i not in axes]
    turned = movement.transpose(movement.relabel(array, None), [*rest, *axes])
    rows = movement.reshape(turned, (*[array.shape[i] for i in rest], prod(array.shape[i] for i in axes)))
    found: Any = np.linalg.norm(rows, ord, -1)
    return movement.expand_dims(found, axes) if flag("vector_norm", "keepdims", keepdims) else found


def _matrix_norm(x: Any, *, keepdims: Any = False, ord: Any = "fro") -> Any:
    """Return norms of matrices."""
    return np.linalg.norm(as_array(x, "matrix_norm"), ord, (-2, -1), keepdims)


FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.linalg.eigh: eigh,
    np.linalg.eigvalsh: eigvalsh,
    np.linalg.svd: svd,
    np.linalg.pinv: pinv,
    np.linalg.matrix_rank: matrix_rank,
    np.linalg.cond: cond,
    np.linalg.lstsq: lstsq,
    np.linalg.svdvals: svdvals,
    np.linalg.vector_norm: _vector_norm,
    np.linalg.matrix_norm: _matrix_norm,
}
