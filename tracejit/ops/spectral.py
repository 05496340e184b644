# SPDX-License-Identifier: BSD-3-Clause
"""Ops of eigenvalues and singular values.

Those with a loop of their own serve small matrices and GPUs: results are in no order and of any sign, and public
functions put them in order. Larger matrices are left to LAPACK, by the ufuncs of numpy.linalg, whose results are in
order: rotations of Jacobi take ten times as long for 32 columns, and a hundred times for 256.

The adjoint divides by the differences of values. Where two are equal, up to rounding, it takes 0 in place of the
quotient: that is the derivative of functions of the values, and of the spaces that vectors of equal values span. It
lacks a part for f(A) = V diag(f(w)) V', because its limit f'(w) does not follow from the cotangents of V and w.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tracejit.aval import Aval
from tracejit.ops import batch
from tracejit.ops.linalg import symmetric
from tracejit.ops.matrices import as_column, as_row, transposed
from tracejit.ops.matrix_ufuncs import matrix_call, matrix_ufunc
from tracejit.ops.op import KernelCall, Kind, Op, Sample


def _numpy_eigh(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    try:
        w, v = np.linalg.eigh(x)
        w = np.where(np.isfinite(x).all(axis=(-2, -1))[..., None], w, np.nan)
    except np.linalg.LinAlgError:
        w, v = np.full(x.shape[:-1], np.nan, x.dtype), np.zeros_like(x)
    return np.asarray(w, x.dtype), np.asarray(v, x.dtype), np.zeros_like(x)


def _numpy_columns(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    try:
        u, s, v = np.linalg.svd(x, full_matrices=False)
    except np.linalg.LinAlgError:
        n = x.shape[-1]
        u, s = np.zeros_like(x), np.full((*x.shape[:-2], n), np.nan, x.dtype)
        v = np.zeros((*x.shape[:-2], n, n), x.dtype)
    return u * s[..., None, :], s * s, np.swapaxes(v, -1, -2).copy()


def _numpy_svd(
    x: np.ndarray, columns: np.ndarray, sizes: np.ndarray, turns: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    largest = np.max(sizes, axis=-1, keepdims=True, initial=0.0)
    is_small = sizes <= (2e-6 if x.dtype == np.float32 else 4e-15) * largest
    u = np.where(is_small[..., None, :], 0, columns / np.where(is_small, 1, sizes)[..., None, :])
    for at in np.ndindex(x.shape[:-2]):
        one = u[at]
        for j in np.flatnonzero(is_small[at]):
            for axis in np.eye(len(one)):
                for _ in range(2):
                    axis = axis - one @ (one.T @ axis)
                if axis @ axis * len(one) >= 0.9:
                    one[:, j] = axis / np.sqrt(axis @ axis)
                    break
    return np.asarray(u, x.dtype), sizes.copy(), turns.copy()


def _constant(b: Any, like: Any, value: float) -> Any:
    return b.constant(like.dtype.type(value))


def _reciprocal(b: Any, x: Any, scale: Any) -> Any:
    """Return 1 / x, or 0 where x is 0 up to rounding of numbers of a scale."""
    eps = _constant(b, x, 16 * float(np.finfo(x.dtype).eps))
    differs = b.greater(b.abs(x), b.mul(scale, eps))
    one, zero = _constant(b, x, 1.0), _constant(b, x, 0.0)
    return b.where(differs, b.div(one, b.where(differs, x, one)), zero)


def _largest(b: Any, w: Any) -> Any:
    """Return the largest magnitude of each vector, as matrices of one element; it has no derivative."""
    return as_column(b, b.max(b.abs(w), axes=(w.ndim - 1,), keepdims=True))


def _eye(b: Any, w: Any) -> Any:
    return b.constant(np.eye(w.shape[-1], dtype=w.dtype))


def _vjp_eigh(b: Any, node: Any, ct: Any) -> Any:
    # V (diag(ct_w) + F (V' ct_V)) V' with F_ij = 1 / (w_j - w_i).
    w, v, *_ = node.outputs
    if not w.aval.size:
        return (None,)
    inner = None
    if ct[0] is not None:
        inner = b.mul(as_column(b, ct[0]), _eye(b, w))
    if ct[1] is not None:
        factors = _reciprocal(b, b.sub(as_row(b, w), as_column(b, w)), _largest(b, w))
        turns = b.mul(factors, b.matmul(transposed(b, v), ct[1]))
        inner = turns if inner is None else b.add(inner, turns)
    if inner is None:
        return (None,)
    return (symmetric(b, b.matmul(b.matmul(v, inner), transposed(b, v))),)


def _skew(b: Any, x: Any) -> Any:
    return b.sub(x, transposed(b, x))


def _vjp_eigvalsh(b: Any, node: Any, ct: Any) -> Any:
    # V diag(ct) V'.
    _, v = b.eigh_in_order(node.inputs[0])
    return (symmetric(b, b.matmul(b.mul(v, as_row(b, ct)), transposed(b, v))),)


def _vjp_svd(b: Any, node: Any, ct: Any) -> Any:
    u, s, v = node.outputs
    return (_svd_adjoint(b, u, s, v, ct), None, None, None)


def _vjp_svd_in_order(b: Any, node: Any, ct: Any) -> Any:
    u, s, v = node.outputs
    by_columns = None if ct[2] is None else transposed(b, ct[2])
    return (_svd_adjoint(b, u, s, transposed(b, v), (*ct[:2], by_columns)),)


def _vjp_svdvals(b: Any, node: Any, ct: Any) -> Any:
    # U diag(ct) V'.
    u, _, v = b.svd_in_order(node.inputs[0])
    return (b.matmul(b.mul(u, as_row(b, ct)), v),)


def _svd_adjoint(b: Any, u: Any, s: Any, v: Any, ct: Any) -> Any:
    # U [F (U' ct_U - ct_U' U) S + S F (V' ct_V - ct_V' V) + diag(ct_s)] V' + (1 - U U') ct_U S^-1 V',
    # F_ij = 1 / (s_j^2 - s_i^2).
    if not s.aval.size:
        return None
    row, column, scale = as_row(b, s), as_column(b, s), _largest(b, s)
    sums = _reciprocal(b, b.add(row, column), scale)
    factors = b.mul(sums, _reciprocal(b, b.sub(row, column), scale))
    parts = []
    if ct[1] is not None:
        parts.append(b.mul(as_column(b, ct[1]), _eye(b, s)))
    if ct[0] is not None:
        parts.append(b.mul(b.mul(factors, _skew(b, b.matmul(transposed(b, u), ct[0]))), row))
    if ct[2] is not None:
        parts.append(b.mul(column, b.mul(factors, _skew(b, b.matmul(transposed(b, v), ct[2])))))
    if not parts:
        return None
    inner = parts[0]
    for part in parts[1:]:
        inner = b.add(inner, part)
    total = b.matmul(u, inner)
    if ct[0] is not None and u.shape[-2] != u.shape[-1]:
        beside = b.sub(ct[0], b.matmul(u, b.matmul(transposed(b, u), ct[0])))
        total = b.add(total, b.mul(beside, _reciprocal(b, row, scale)))
    return b.matmul(total, transposed(b, v))


def _infer_columns(x: Aval) -> tuple[Aval, ...]:
    lead, n = x.shape[:-2], x.shape[-1]
    return (Aval(x.shape, None, x.dtype), Aval((*lead, n), None, x.dtype), Aval((*lead, n, n), None, x.dtype))


def _infer_svd(x: Aval, columns: Aval, sizes: Aval, turns: Aval) -> tuple[Aval, ...]:
    return _infer_columns(x)


def _numbers(x: Aval) -> tuple[int, int, int]:
    return (prod(x.shape[:-2]), x.shape[-2], x.shape[-1])


def _single(x: Aval) -> int:
    return int(x.dtype == np.float32)


def _by_lapack(name: str, x: np.ndarray) -> Any:
    """Return what a ufunc of numpy.linalg makes of matrices; NaN where it does not converge."""
    with np.errstate(all="ignore"):
        return matrix_ufunc(name)(x)


def _eigh_ns(sizes: Sequence[int]) -> float:
    """Return about how long a matrix takes, 0 if it is large: LAPACK has threads of its own then."""
    return 0.0 if max(sizes) > _ONE_THREAD else 1000.0 + 10.0 * prod(sizes) * max(sizes)


def _sizes(x: Aval) -> tuple[int, int, int]:
    m, n = x.shape[-2:]
    return (m, n, min(m, n))


def _infer_vectors(x: Aval) -> tuple[Aval, Aval, Aval]:
    lead, (m, n, k) = x.shape[:-2], _sizes(x)
    return (
        Aval((*lead, m, k), None, x.dtype),
        Aval((*lead, k), None, x.dtype),
        Aval((*lead, k, n), None, x.dtype),
    )


_ONE_THREAD = 64
_F8 = "float64"

OPS = (
    Op(name="eigh", doc="eigenvalues and vectors of symmetric matrices, whose lower half is read, and scratch memory; "
       "NaN where they are not finite; the symmetric V (diag(ct_w) + F (V' ct_V)) V', F_ij = 1 / (w_j - w_i)",
       kind=Kind.KERNEL, numpy=_numpy_eigh, vjp=_vjp_eigh, analytic=False, saved=1,
       infer=lambda x: (Aval(x.shape[:-1], None, x.dtype), Aval(x.shape, None, x.dtype), Aval(x.shape, None, x.dtype)),
       batch=batch.rows, emit=KernelCall("eigh", lambda out, x: (prod(x.shape[:-2]), x.shape[-1])),
       samples=(Sample(((0, 0),), dtypes=(_F8,)), Sample(((0, 2, 2),), dtypes=("float32",)))),
    Op(name="svd_columns", doc="the vectors of columns times the singular values of matrices with no more columns than "
       "rows, the squares of these values, and the vectors of rows; NaN where they are not finite; no derivative",
       kind=Kind.KERNEL, infer=_infer_columns, numpy=_numpy_columns, vjp=None, analytic=False, domain=(0.5, 2.0),
       batch=batch.rows, emit=KernelCall("svd_columns", lambda out, x: (*_numbers(x), _single(x))),
       samples=(Sample(((1, 0),), dtypes=(_F8,)), Sample(((0, 2, 1),), dtypes=("float32",)))),
    Op(name="svd", doc="singular vectors U, values S and vectors V, from those columns and their sizes; F_ij = 1 / "
       "(s_j^2 - s_i^2) in U [F (U' ct_U - ct_U' U) S + S F (V' ct_V - ct_V' V) + diag(ct_s)] V' + (1 - U U') ct_U "
       "S^-1 V'", kind=Kind.KERNEL, infer=_infer_svd, numpy=_numpy_svd, vjp=_vjp_svd, analytic=False,
       domain=(0.5, 2.0), batch=batch.rows,
       emit=KernelCall("svd", lambda out, x, columns, sizes, turns: (*_numbers(x), _single(x))),
       samples=(Sample(((3, 2), (3, 2), (2,), (2, 2)), dtypes=(_F8, _F8, _F8, _F8)),
                Sample(((2, 2, 1), (2, 2, 1), (2, 1), (2, 1, 1)), dtypes=(_F8, _F8, _F8, _F8)))),
    Op(name="eigh_in_order", doc="eigenvalues of symmetric matrices, whose lower half is read, in order, and vectors; "
       "NaN where they are not finite; the symmetric V (diag(ct_w) + F (V' ct_V)) V', F_ij = 1 / (w_j - w_i)",
       kind=Kind.KERNEL, numpy=lambda x: tuple(_by_lapack("eigh_lo", x)), vjp=_vjp_eigh, analytic=False,
       infer=lambda x: (Aval(x.shape[:-1], None, x.dtype), Aval(x.shape, None, x.dtype)),
       batch=batch.rows, emit=matrix_call("eigh_lo", lambda x: x.shape[-1:], _eigh_ns),
       samples=(Sample(((1, 1),), dtypes=(_F8,)), Sample(((3, 1, 1),), dtypes=("float32",)))),
    Op(name="eigvalsh_in_order", doc="eigenvalues of symmetric matrices, whose lower half is read, in order; NaN where "
       "they are not finite; the symmetric V diag(ct) V'",
       kind=Kind.KERNEL, numpy=lambda x: _by_lapack("eigvalsh_lo", x), vjp=_vjp_eigvalsh, analytic=False,
       infer=lambda x: Aval(x.shape[:-1], None, x.dtype),
       batch=batch.rows, emit=matrix_call("eigvalsh_lo", lambda x: x.shape[-1:], _eigh_ns),
       samples=(Sample(((1, 1),), dtypes=(_F8,)), Sample(((3, 1, 1),), dtypes=("float32",)))),
    Op(name="svd_in_order", doc="singular vectors U, values S, the largest first, and vectors V', of matrices with no "
       "more columns than rows; NaN where they are not finite; F_ij = 1 / (s_j^2 - s_i^2) in U [F (U' ct_U - ct_U' U) "
       "S + S F (V' ct_V - ct_V' V) + diag(ct_s)] V' + (1 - U U') ct_U S^-1 V'",
       kind=Kind.KERNEL, numpy=lambda x: tuple(_by_lapack("svd_s", x)), vjp=_vjp_svd_in_order, analytic=False,
       infer=_infer_vectors, domain=(0.5, 2.0),
       batch=batch.rows, emit=matrix_call("svd_s", _sizes, _eigh_ns),
       samples=(Sample(((1, 1),), dtypes=(_F8,)), Sample(((3, 2, 1),), dtypes=("float32",)))),
    Op(name="svdvals_in_order", doc="singular values of matrices with no more columns than rows, the largest first; "
       "NaN where they are not finite; U diag(ct) V'",
       kind=Kind.KERNEL, numpy=lambda x: _by_lapack("svd", x), vjp=_vjp_svdvals, analytic=False,
       infer=lambda x: _infer_vectors(x)[1], domain=(0.5, 2.0),
       batch=batch.rows, emit=matrix_call("svd", _sizes, _eigh_ns),
       samples=(Sample(((3, 2),), dtypes=(_F8,)), Sample(((2, 2, 2),), dtypes=("float32",)))),
)  # fmt: skip
