# SPDX-License-Identifier: BSD-3-Clause
"""Ops of linear algebra: factors of matrices, and solutions of linear systems by them.

The last two axes are rows and columns, those before count matrices. If its factors do not exist, an op gives NaN, or an
exact 0 on the diagonal of U; public functions check for that and raise the error. Adjoints are made of these ops, so
that derivatives of any order exist. (M. Giles, Collected matrix derivative results for forward and reverse mode, 2008.)
"""

from collections.abc import Callable
from functools import cache
from math import prod
from typing import Any

import numpy as np

from tracejit.aval import INT64, Aval
from tracejit.ops import batch
from tracejit.ops.floats import common_float
from tracejit.ops.matrices import transposed
from tracejit.ops.op import KernelCall, Kind, Op, Sample


def _count(x: Aval) -> int:
    return prod(x.shape[:-2])


@cache
def _lapack(name: str, dtype: np.dtype) -> Callable[..., Any]:
    """Return a routine of LAPACK, from SciPy, which is imported when the first one is needed."""
    from scipy.linalg.lapack import get_lapack_funcs

    return get_lapack_funcs((name,), dtype=dtype)[0]  # type: ignore[no-any-return]


def lower_half(b: Any, x: Any, diagonal: float = 1.0) -> Any:
    """Return matrices with 0 above the diagonal and the diagonal multiplied by a number."""
    n = x.shape[-1]
    return b.mul(x, b.constant(np.tri(n, k=-1, dtype=x.dtype) + diagonal * np.eye(n, dtype=x.dtype)))


def symmetric(b: Any, x: Any) -> Any:
    """Return the mean of matrices and their transposes."""
    return b.mul(b.add(x, transposed(b, x)), b.constant(x.dtype.type(0.5)))


def _numpy_lu(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    factors, places = np.array(x, order="C"), np.zeros(x.shape[:-1], np.int64)
    if x.size:
        routine = _lapack("getrf", x.dtype)
        for at in np.ndindex(x.shape[:-2]):
            factors[at], places[at], _ = routine(x[at])
    return factors, places


def lu_factors(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return which row of a matrix, of any size, stands in the place of each row, and the factors L and U of these."""
    m, n = x.shape[-2:]
    k = min(m, n)
    packed, order = np.array(x, order="C"), np.empty(x.shape[:-1], np.int64)
    routine = _lapack("getrf", x.dtype) if k else None
    for at in np.ndindex(x.shape[:-2]):
        rows = np.arange(m)
        if routine is not None:
            packed[at], exchanges, _ = routine(x[at])
            for row, other in enumerate(exchanges):
                rows[[row, other]] = rows[[other, row]]
        order[at] = rows
    return order, np.tril(packed[..., :k], -1) + np.eye(m, k, dtype=x.dtype), np.triu(packed[..., :k, :])


def _numpy_lu_solve(
    a: np.ndarray, factors: np.ndarray, places: np.ndarray, y: np.ndarray, *, transposed: bool
) -> np.ndarray:
    out = np.array(y, order="C")
    if y.size:
        routine = _lapack("getrs", y.dtype)
        for at in np.ndindex(y.shape[:-2]):
            out[at] = routine(factors[at], places[at], y[at], trans=int(transposed))[0]
            if not np.diagonal(factors[at]).all():
                out[at] = np.nan
    return out


def _vjp_lu_solve(b: Any, node: Any, ct: Any) -> Any:
    a, factors, places, _ = node.inputs
    turned = not node.params["transposed"]
    towards = b.lu_solve(a, factors, places, ct, transposed=turned)
    pair = (towards, node.output) if turned else (node.output, towards)
    return (lambda: b.neg(b.matmul(pair[0], transposed(b, pair[1]))), None, None, towards)


def _numpy_logdet(
    a: np.ndarray, factors: np.ndarray, places: np.ndarray, logarithms: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    pivots = np.diagonal(factors, axis1=-2, axis2=-1)
    exchanges = np.sum(places != np.arange(places.shape[-1]), axis=-1)
    sign = np.where(exchanges % 2, -1.0, 1.0) * np.prod(np.sign(pivots), axis=-1)
    size = np.where(sign == 0, -np.inf, np.sum(logarithms, axis=-1))
    return np.asarray(sign, a.dtype), np.asarray(size, a.dtype)


def _vjp_logdet(b: Any, node: Any, ct: Any) -> Any:
    a, factors, places, _ = node.inputs
    if ct[1] is None:
        return (None, None, None, None)
    one = b.constant(np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape).copy())
    inverse = b.lu_solve(a, factors, places, one, transposed=True)
    return (b.mul(b.reshape(ct[1], shape=(*ct[1].shape, 1, 1)), inverse), None, None, None)


def _infer_logdet(a: Aval, factors: Aval, places: Aval, logarithms: Aval) -> tuple[Aval, Aval]:
    return (Aval(a.shape[:-2], None, a.dtype), Aval(a.shape[:-2], None, a.dtype))


def _numpy_columns(x: np.ndarray) -> np.ndarray:
    out = np.array(x, order="C")
    if x.size:
        routine = _lapack("potrf", out.dtype)
        for at in np.ndindex(x.shape[:-2]):
            factor, info = routine(x[at], lower=1, clean=1)
            pivots = np.diagonal(factor)
            # LAPACK on some CPUs lets NaN pass.
            out[at] = np.nan if info or not (pivots > 0).all() else factor * pivots
    return out


def _numpy_cholesky(x: np.ndarray, columns: np.ndarray, roots: np.ndarray) -> np.ndarray:
    factor: np.ndarray = columns / roots[..., None, :]
    return factor


def _vjp_cholesky(b: Any, node: Any, ct: Any) -> Any:
    # L^-T P L^-1 with P the lower half of L' ct, its diagonal halved; symmetric, as the matrix is.
    turned = transposed(b, node.output)
    half = lower_half(b, b.matmul(turned, ct), 0.5)
    left = b.solve_triangular(turned, half, lower=False)
    both = b.solve_triangular(turned, transposed(b, left), lower=False)
    return (symmetric(b, both), None, None)


def _numpy_triangular(a: np.ndarray, y: np.ndarray, *, lower: bool) -> np.ndarray:
    out = np.array(y, common_float(a.dtype, y.dtype), order="C")
    if y.size:
        routine = _lapack("trtrs", out.dtype)
        for at in np.ndindex(y.shape[:-2]):
            solution, info = routine(a[at], y[at], lower=int(lower))
            out[at] = np.nan if info else solution
    return out


def _vjp_triangular(b: Any, node: Any, ct: Any) -> Any:
    a, lower = node.inputs[0], node.params["lower"]
    towards = b.solve_triangular(transposed(b, a), ct, lower=not lower)

    def by_matrix() -> Any:
        if lower:
            return b.neg(lower_half(b, b.matmul(towards, transposed(b, node.output))))
        return b.neg(transposed(b, lower_half(b, b.matmul(node.output, transposed(b, towards)))))

    return (by_matrix, towards)


_F8, _I8 = "float64", "int64"

OPS = (
    Op(name="lu", doc="the factors L (unit, below the diagonal) and U of a matrix with its rows exchanged, and the row "
       "that each step exchanged with; no derivative: what is computed from them has that of the matrix",
       kind=Kind.KERNEL, infer=lambda x: (Aval(x.shape, None, x.dtype), Aval(x.shape[:-1], None, INT64)),
       numpy=_numpy_lu, vjp=None, analytic=False, batch=batch.rows,
       emit=KernelCall("lu", lambda out, x: (_count(x), x.shape[-1])),
       samples=(Sample(((3, 3),), dtypes=(_F8,)), Sample(((2, 4, 4),), dtypes=("float32",)),
                Sample(((0, 0),), dtypes=(_F8,)))),
    Op(name="lu_solve", doc="X of A X = B, or of A' X = B, by the factors of A; C = A'^-1 ct for B and -C X' for A",
       kind=Kind.KERNEL, infer=lambda a, factors, places, y, *, transposed: Aval(y.shape, None, y.dtype),
       numpy=_numpy_lu_solve, vjp=_vjp_lu_solve, analytic=False,
       batch=batch.rows, emit=KernelCall(
           "lu_solve", lambda out, a, factors, places, y, *, transposed: (
               _count(y), y.shape[-2], y.shape[-1], int(transposed)),
           variant=lambda out, a, factors, places, y, *, transposed: (
               "lu_solve_vector" if y.shape[-1] == 1 and not transposed else "lu_solve")),
       samples=(Sample(((3, 3), (3, 3), (3,), (3, 2)), {"transposed": False}, 0.5, 2.0, (_F8, _F8, _I8, _F8), 3),
                Sample(((2, 3, 3), (2, 3, 3), (2, 3), (2, 3, 1)), {"transposed": True}, 0.5, 2.0,
                       (_F8, _F8, _I8, _F8), 3))),
    Op(name="lu_logdet", doc="sign and logarithm of the magnitude of the determinant of A, by its factors and the "
       "logarithms of the pivots' magnitudes; ct A'^-1", kind=Kind.KERNEL, infer=_infer_logdet, numpy=_numpy_logdet,
       vjp=_vjp_logdet, analytic=False,
       batch=batch.rows,
       emit=KernelCall("lu_logdet", lambda out, a, factors, places, logarithms: (_count(a), a.shape[-1])),
       samples=(Sample(((3, 3), (3, 3), (3,), (3,)), {}, None, None, (_F8, _F8, _I8, _F8), 3),
                Sample(((2, 2, 2), (2, 2, 2), (2, 2), (2, 2)), {}, None, None, (_F8, _F8, _I8, _F8), 2))),
    Op(name="cholesky_columns", doc="the columns of the factor L of a positive definite matrix, each times its element "
       "on the diagonal; the lower half is read; NaN where there is no factor; no derivative",
       kind=Kind.KERNEL, infer=lambda x: Aval(x.shape, None, x.dtype), numpy=_numpy_columns, vjp=None, analytic=False,
       domain=(2.0, 2.5), batch=batch.rows,
       emit=KernelCall("cholesky_columns", lambda out, x: (_count(x), x.shape[-1])),
       samples=(Sample(((1, 1),), dtypes=(_F8,)), Sample(((3, 1, 1),), dtypes=("float32",)),
                Sample(((2, 2),), dtypes=(_F8,)))),
    Op(name="cholesky", doc="the factor L of a matrix, from those columns and the roots of their elements on the "
       "diagonal; the symmetric part of L'^-1 P L^-1, P the lower half of L' ct with half its diagonal",
       kind=Kind.KERNEL, infer=lambda x, columns, roots: Aval(x.shape, None, x.dtype), numpy=_numpy_cholesky,
       vjp=_vjp_cholesky, analytic=False, domain=(0.5, 2.0),
       batch=batch.rows, emit=KernelCall("cholesky", lambda out, x, columns, roots: (_count(x), x.shape[-1])),
       samples=(Sample(((2, 2), (2, 2), (2,)), dtypes=(_F8, _F8, _F8)),
                Sample(((2, 3, 3), (2, 3, 3), (2, 3)), dtypes=(_F8, _F8, _F8)))),
    Op(name="solve_triangular", doc="X of A X = B for triangular A, whose other half is not read; C = A'^-1 ct for B, "
       "and that half of -C X' for A", kind=Kind.KERNEL,
       infer=lambda a, y, *, lower: Aval(y.shape, None, common_float(a.dtype, y.dtype)),
       promote=lambda a, y: (common_float(a, y), common_float(a, y)),
       numpy=_numpy_triangular, vjp=_vjp_triangular, analytic=False, domain=(0.5, 2.0),
       batch=batch.rows, emit=KernelCall("solve_triangular", lambda out, a, y, *, lower: (
           _count(y), y.shape[-2], y.shape[-1], int(lower))),
       samples=(Sample(((3, 3), (3, 2)), {"lower": True}), Sample(((2, 3, 3), (2, 3, 1)), {"lower": False}))),
)  # fmt: skip
