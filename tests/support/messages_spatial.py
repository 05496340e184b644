# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the table of messages (messages.py) of rotations and sparse solvers: a call, the error, its text."""

from collections.abc import Callable

import numpy as np
from scipy import sparse
from scipy.sparse import linalg as solvers

import tracejit as tj
from tracejit.errors import (
    ArgumentError,
    ArgumentValueError,
    DimsError,
    DTypeError,
    GradientError,
    TraceJitWarning,
)
from tracejit.spatial.transform import Rotation, Slerp

N = 6
MATRIX = sparse.diags([-1.0, 3.5, -1.5], [-1, 0, 1], shape=(N, N)).tocsc()
FACTORS = solvers.splu(MATRIX)
V = np.arange(float(N))


def evaluated(function: Callable[[tj.dlarray], object]) -> Callable[[], object]:
    """Return a call that evaluates a function of a vector."""
    return lambda: tj.dlfeval(function, V)


ROWS: tuple[tuple[Callable[[], object], type[Exception], str], ...] = (
    (
        lambda: Rotation([0.0, 0, 0, 0]),
        DimsError,
        "Rotation: a quaternion is 0, which is no rotation; the one by no angle is (0, 0, 0, 1).",
    ),
    (
        lambda: Rotation([1.0, 2.0]),
        DimsError,
        "Rotation: quat has size 2, expected (..., 4).",
    ),
    (
        lambda: Rotation.from_rotvec(1.0),
        DimsError,
        "Rotation.from_rotvec: rotvec has size scalar, expected (..., 3).",
    ),
    (
        lambda: Rotation.from_matrix(np.ones((2, 3))),
        DimsError,
        "Rotation.from_matrix: matrix has size 2x3, expected (..., 3, 3).",
    ),
    (
        lambda: Rotation.from_matrix(np.diag([1.0, 1.0, -1.0])),
        DimsError,
        "Rotation.from_matrix: a determinant is not positive, so that the matrix is no rotation but a reflection; "
        "change the sign of one of its columns.",
    ),
    (
        lambda: Rotation.from_euler("xXy", [1, 2, 3]),
        ArgumentValueError,
        "Rotation.from_euler: seq='xXy' must be one to three letters of \"xyz\", which turn about fixed axes, or of "
        '"XYZ", which turn about axes of the body, and no two neighbours the same.',
    ),
    (
        lambda: Rotation.identity().as_euler("xy"),
        ArgumentValueError,
        'Rotation.as_euler: seq=\'xy\' must be three letters of "xyz", which turn about fixed axes, or of "XYZ", which '
        "turn about axes of the body, and no two neighbours the same.",
    ),
    (
        lambda: Rotation.from_euler("xyz", [1, 2]),
        DimsError,
        "Rotation.from_euler: angles has size 2, expected a last axis of 3 for seq='xyz'.",
    ),
    (
        lambda: Rotation.identity(2).apply(np.ones((3, 3))),
        DimsError,
        "Rotation.apply: 2 rotations do not broadcast with vectors of size 3x3, whose last axis is that of the parts.",
    ),
    (
        lambda: Rotation.identity(2) * Rotation.identity(3),
        DimsError,
        "Rotation: 2 rotations do not broadcast with the second one of size 3x4, whose last axis is that of the parts.",
    ),
    (
        lambda: len(Rotation.identity()),
        ArgumentError,
        "Rotation: a single rotation has no len().",
    ),
    (
        lambda: Rotation.identity()[0],
        ArgumentError,
        "Rotation: a single rotation is not subscriptable.",
    ),
    (
        lambda: Rotation.identity(2, shape=2),
        ArgumentError,
        "Rotation.identity: num and shape are two ways to say the same; give one.",
    ),
    (
        lambda: pow(Rotation.identity(), 2, 3),
        ArgumentError,
        "Rotation: pow() of three arguments is not defined; leave the third one out.",
    ),
    (
        lambda: Rotation.identity().mean(),
        DimsError,
        "Rotation.mean: there are single rotations, expected an array with one axis.",
    ),
    (
        lambda: Rotation.identity(2).mean([1.0]),
        DimsError,
        "Rotation.mean: weights has size 1, expected 2.",
    ),
    (
        lambda: Rotation.identity(2).mean([1.0, -1.0]),
        ArgumentValueError,
        "Rotation: weights must not be negative; pass np.abs(weights), or leave rotations out.",
    ),
    (
        lambda: Rotation.align_vectors(np.ones(3), np.ones(3)),
        DimsError,
        "Rotation.align_vectors: a has size 3 and b 3, expected (N, 3) both, with N of 2 or more.",
    ),
    (
        lambda: Rotation.concatenate([3]),
        ArgumentError,
        "Rotation.concatenate: 3 is no Rotation; make one with Rotation.from_quat, or another.",
    ),
    (
        lambda: Slerp([0, 1, 2], Rotation.identity(2)),
        DimsError,
        "Slerp: there are 3 times and 2 rotations, expected as many, along one axis, and two at least.",
    ),
    (
        lambda: Slerp([1, 0], Rotation.identity(2)),
        ArgumentValueError,
        "Slerp: times must increase strictly; sort them, with the rotations.",
    ),
    (
        lambda: Slerp([0, 1], Rotation.identity(2))(2.0),
        ArgumentValueError,
        "Slerp: a time lies outside of those of the rotations; use np.clip(t, first, last).",
    ),
    (
        lambda: Slerp([0, 1], Rotation.identity(2))(np.ones((2, 2))),
        DimsError,
        "Slerp: times has size 2x2, expected a number or one axis.",
    ),
    (
        evaluated(lambda b: FACTORS.solve(b * 1j)),
        DTypeError,
        "scipy.sparse.linalg.SuperLU.solve: rhs must be an array whose dtype can be cast to float64, that of the "
        "factors, not complex128; solve for real and imaginary parts, or factor a matrix of its dtype.",
    ),
    (
        evaluated(lambda b: FACTORS.solve(b, "X")),
        ArgumentValueError,
        'scipy.sparse.linalg.SuperLU.solve: trans must be "N", "T" or "H", not \'X\'.',
    ),
    (
        evaluated(
            lambda b: tj.dlgradient(solvers.gmres(solvers.LinearOperator((N, N), MATRIX.dot), b)[0].sum(), b)
        ),
        GradientError,
        "scipy.sparse.linalg.gmres: the derivative needs the transposed linear operator, which has no rmatvec; give "
        "LinearOperator(shape, matvec, rmatvec=f) with f(x) = A^H x.",
    ),
    (
        evaluated(lambda b: tj.dlgradient((solvers.LinearOperator((N, N), MATRIX.dot) @ b).sum(), b)),
        GradientError,
        "scipy.sparse.linalg.LinearOperator: the derivative needs the transposed linear operator, which has no "
        "rmatvec; give LinearOperator(shape, matvec, rmatvec=f) with f(x) = A^H x.",
    ),
    (
        evaluated(lambda b: tj.dlgradient(solvers.cg(MATRIX + MATRIX.T, b, maxiter=1)[0].sum(), b)),
        TraceJitWarning,
        "scipy.sparse.linalg.cg: the system of the derivative was not solved (info=1), so that gradients are not "
        "exact; allow more iterations (maxiter=) or a larger error (rtol=).",
    ),
)
