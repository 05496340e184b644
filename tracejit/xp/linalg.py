# SPDX-License-Identifier: BSD-3-Clause
"""The linear algebra extension of the standard."""

from typing import Any

import numpy as np

from tracejit.errors import ArgumentError
from tracejit.functions import linear
from tracejit.util.named_tuples import NamedTuple
from tracejit.xp.arrays import array, beyond_standard, operand
from tracejit.xp.functions import matmul, matrix_transpose, tensordot, vecdot

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matmul", "matrix_norm",
    "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals",
    "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip


class Eig(NamedTuple):
    eigenvalues: Any
    eigenvectors: Any


class Eigh(NamedTuple):
    eigenvalues: Any
    eigenvectors: Any


class Qr(NamedTuple):
    Q: Any
    R: Any


class Slogdet(NamedTuple):
    sign: Any
    logabsdet: Any


class Svd(NamedTuple):
    U: Any
    S: Any
    Vh: Any


def cholesky(x: Any, /, *, upper: bool = False) -> Any:
    """Return the Cholesky factor of positive definite matrices."""
    return array(np.linalg.cholesky(operand(x), upper=upper))


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Return cross products of vectors of three components."""
    return array(np.cross(operand(x1), operand(x2), axis=axis))


def det(x: Any, /) -> Any:
    """Return determinants."""
    return array(np.linalg.det(operand(x)))


def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """Return diagonals of matrices."""
    return array(np.diagonal(operand(x), offset, -2, -1))


def eig(x: Any, /) -> Any:
    """Return eigenvalues and eigenvectors of matrices, which are complex."""
    return Eig(*map(_complex, np.linalg.eig(operand(x))))


def eigvals(x: Any, /) -> Any:
    """Return eigenvalues of matrices, which are complex."""
    return _complex(np.linalg.eigvals(operand(x)))


def _complex(result: Any) -> Any:
    """Return a result as complex numbers: NumPy gives real ones where all imaginary parts are 0."""
    found = array(result)
    return found if found.dtype.kind == "c" else found.astype(np.result_type(found.dtype, np.complex64))


def eigh(x: Any, /) -> Any:
    """Return eigenvalues and eigenvectors of symmetric matrices."""
    return Eigh(*map(array, np.linalg.eigh(operand(x))))


def eigvalsh(x: Any, /) -> Any:
    """Return eigenvalues of symmetric matrices."""
    return array(np.linalg.eigvalsh(operand(x)))


def inv(x: Any, /) -> Any:
    """Return inverses of matrices."""
    return array(np.linalg.inv(operand(x)))


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """Return norms of matrices."""
    return array(np.linalg.norm(operand(x), ord, (-2, -1), keepdims))


def matrix_power(x: Any, n: int, /) -> Any:
    """Return powers of matrices."""
    return array(np.linalg.matrix_power(operand(x), n))


def matrix_rank(x: Any, /, *, rtol: Any = None) -> Any:
    """Return ranks of matrices."""
    return array(np.linalg.matrix_rank(operand(x), rtol=rtol))


def outer(x1: Any, x2: Any, /) -> Any:
    """Return the products of all pairs of elements of two vectors."""
    return array(linear.outer(operand(x1), operand(x2)))


def pinv(x: Any, /, *, rtol: Any = None) -> Any:
    """Return pseudo-inverses of matrices."""
    return array(np.linalg.pinv(operand(x), rtol=rtol))


def qr(x: Any, /, *, mode: str = "reduced") -> Any:
    """Return factors with orthonormal columns and upper triangles; `mode` is "reduced" or "complete"."""
    if mode not in ("reduced", "complete"):
        raise ArgumentError(f"xp.linalg.qr: mode is {mode!r}, expected 'reduced' or 'complete'.")
    factors: Any = np.linalg.qr  # whose types want the mode by name
    return Qr(*map(array, factors(operand(x), mode)))


def slogdet(x: Any, /) -> Any:
    """Return signs and logarithms of magnitudes of determinants."""
    return Slogdet(*map(array, np.linalg.slogdet(operand(x))))


def solve(x1: Any, x2: Any, /) -> Any:
    """Return solutions of linear systems."""
    return array(np.linalg.solve(operand(x1), operand(x2)))


def svd(x: Any, /, *, full_matrices: bool = True) -> Any:
    """Return singular value decompositions."""
    return Svd(*map(array, np.linalg.svd(operand(x), full_matrices=full_matrices)))


def svdvals(x: Any, /) -> Any:
    """Return singular values."""
    return array(np.linalg.svdvals(operand(x)))


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """Return sums of diagonals."""
    found = diagonal(x, offset=offset)
    return array(np.sum(found, axis=-1, dtype=dtype))


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """Return norms of vectors along axes."""
    return array(np.linalg.vector_norm(operand(x), axis=axis, keepdims=keepdims, ord=ord))


__getattr__ = beyond_standard(__name__, np.linalg)
