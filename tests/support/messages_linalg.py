# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the table of messages (messages.py) of linear algebra: a call, the error, its text."""

from collections.abc import Callable

import numpy as np

import tracejit as tj
from tracejit.errors import ArgumentError, ArgumentValueError, DimsError, DTypeError, MatrixError

ONE, ONES = tj.dlarray(np.eye(2)), tj.dlarray(np.ones((2, 2)))

HALF = tj.dlarray(np.eye(2, dtype=np.float16))

ROWS: tuple[tuple[Callable[[], object], type[Exception], str], ...] = (
    (
        lambda: np.linalg.inv(tj.dlarray(np.ones((2, 3)))),
        MatrixError,
        "inv: a has shape (2, 3), expected (..., n, n): square matrices along the last two axes.",
    ),
    (
        lambda: np.linalg.tensorsolve(ONE, np.ones(3)),
        MatrixError,
        "np.linalg.tensorsolve: a has size (2, 2) and b (3,), expected as many elements of x as of b.",
    ),
    (
        lambda: np.linalg.tensorinv(ONE, ind=0),
        ArgumentError,
        "np.linalg.tensorinv: ind is 0, expected a positive number of axes.",
    ),
    (
        lambda: tj.linalg.sqrtm(-ONE - np.array([[0.0, 1.0], [0.0, 1.0]])),
        np.linalg.LinAlgError,
        "linalg.sqrtm: the matrix, or one of the matrices, has no real root without negative real parts; a complex one "
        "is that of a.astype(complex).",
    ),
    (
        lambda: tj.linalg.cho_solve(None, ONE),
        ArgumentError,
        "linalg.cho_solve: c_and_lower must be the pair (factor, lower) that cho_factor returns, not None.",
    ),
    (
        lambda: tj.stats.gamma.pdf(np.ones(3), np.ones(2)),
        DimsError,
        "stats.gamma.pdf: sizes do not fit each other: x (3,), a (2,). From the last axis on they must be equal or 1; "
        "reshape.",
    ),
    (
        lambda: tj.special.zeta("q"),
        DTypeError,
        "special.zeta: data of type <U1 is not supported as x; use float64, float32, float16, bfloat16 (of "
        "ml_dtypes), complex128, complex64, bool or an integer type (for example data.astype(np.float32)).",
    ),
    (
        lambda: tj.linalg.toeplitz(ONE),
        DimsError,
        "linalg.toeplitz: c has 2 axes, expected a vector.",
    ),
    (
        lambda: tj.linalg.block_diag(ONE, np.ones((1, 2, 2))),
        DimsError,
        "linalg.block_diag: array 1 has 3 axes, expected at most 2.",
    ),
    (
        lambda: tj.inv(HALF),
        DTypeError,
        "inv: not supported for numbers of 16 bits, as in NumPy; cast a first (a.astype(np.float32)).",
    ),
    (
        lambda: np.linalg.inv(HALF),
        DTypeError,
        "np.linalg.inv: not supported for numbers of 16 bits; cast them first (x.astype(np.float32)).",
    ),
    (
        lambda: np.spacing(HALF),
        DTypeError,
        "spacing: not supported for numbers of 16 bits; cast them first (x.astype(np.float32)).",
    ),
    (
        lambda: tj.solve(ONE, np.ones(3)),
        DimsError,
        "solve: b has shape (3,) and a (2, 2), expected b of shape (2,) or (..., 2, k), with as many rows as a.",
    ),
    (
        lambda: tj.solve(np.ones((2, 2, 2)), np.ones((3, 2, 1))),
        DimsError,
        "solve: the axes before the last two of a (2, 2, 2) and b (3, 2, 1) do not align; aligned from the last, their "
        "sizes must be equal or 1.",
    ),
    (
        lambda: np.linalg.solve(ONES, np.ones(2)),
        np.linalg.LinAlgError,
        "solve: the matrix, or one of the matrices, is singular; use np.linalg.lstsq, or add a small multiple of "
        "np.eye(n).",
    ),
    (
        lambda: np.linalg.cholesky(-ONE),
        np.linalg.LinAlgError,
        "cholesky: the matrix, or one of the matrices, is not positive definite; add a small multiple of np.eye(n) to "
        "it.",
    ),
    (
        lambda: tj.solve_triangular(ONE, np.ones(2), trans=3),
        ArgumentError,
        "solve_triangular: trans must be 0, 1, 2, 'N', 'T' or 'C', not 3.",
    ),
    (
        lambda: tj.solve_triangular(ONES * 0, np.ones(2)),
        np.linalg.LinAlgError,
        "solve_triangular: a diagonal has a 0: the matrix is singular.",
    ),
    (
        lambda: np.linalg.multi_dot([ONE]),
        ArgumentValueError,
        "multi_dot: there are 1 arrays, expected 2 or more.",
    ),
    (
        lambda: np.linalg.multi_dot([ONE, np.ones(3)]),
        ArgumentValueError,
        "multi_dot: array 1 has shape (3, 1), which does not continue the product.",
    ),
    (
        lambda: np.linalg.lstsq(ONE, np.ones(3)),
        MatrixError,
        "lstsq: a has shape (2, 2) and b (3,), expected (m, n), and (m,) or (m, k) with as many rows.",
    ),
    (
        lambda: np.linalg.eigh(ONE, "X"),  # type: ignore[arg-type]
        ArgumentValueError,
        "eigh: UPLO must be 'L' or 'U', not 'X'.",
    ),
    (
        lambda: np.linalg.outer(ONE, [1.0]),
        DimsError,
        "np.linalg.outer: x1 and x2 are 2x2 and 1, expected two vectors; use np.outer, or ravel them.",
    ),
    (
        lambda: np.linalg.svd(ONE, hermitian=True),
        ArgumentError,
        "svd: hermitian=True is not supported; use np.linalg.eigh.",
    ),
    (
        lambda: np.vecdot(ONE, np.ones((2, 1))),
        DimsError,
        "np.vecdot: x1 (2x2) and x2 (2x1) need vectors of one length along axis, which are not broadcast; cut them, or "
        "use np.sum(x1 * x2, axis).",
    ),
    (
        lambda: tj.xp.linalg.qr(ONE, mode="r"),
        ArgumentError,
        "xp.linalg.qr: mode is 'r', expected 'reduced' or 'complete'.",
    ),
    (
        lambda: tj.xp.fft.fftfreq(4, dtype=np.int32),
        DTypeError,
        "xp.fft.fftfreq: dtype is int32, expected one of real floating-point numbers.",
    ),
    (
        lambda: np.linalg.cond(tj.dlarray(np.zeros((0, 0)))),
        MatrixError,
        "cond: the matrices are empty.",
    ),
    (
        lambda: np.linalg.eigvalsh(ONE * np.nan),
        np.linalg.LinAlgError,
        "eigvalsh: the matrix, or one of the matrices, has an element that is not finite.",
    ),
    (
        lambda: np.linalg.norm(tj.dlarray(np.ones(3)), "nuc"),
        ArgumentError,
        "norm: ord='nuc' does not apply to 1 axes.",
    ),
    (
        lambda: np.linalg.diagonal(tj.dlarray(np.ones(3))),
        MatrixError,
        "np.linalg.diagonal: x has 1 axes, expected 2 or more.",
    ),
)
