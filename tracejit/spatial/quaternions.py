# SPDX-License-Identifier: BSD-3-Clause
"""Formulas of unit quaternions (x, y, z, w), which lie along the last axis of arrays.

Note [small angles]
A rotation vector is the axis times the angle, whose square root has no derivative where the angle is 0. So near 0 the
factors between vectors and quaternions are the first terms of their series in the square of the length, which has
derivatives of any order.
"""

from typing import Any

import numpy as np

from tracejit.array import as_array, dlarray
from tracejit.functions import elementwise, joining, linalg, reductions, spectral
from tracejit.functions.elementwise import where

_SMALL = 1e-6  # squares of angles, below which four terms of a series have all digits


def stacked(*parts: Any) -> dlarray:
    """Return parts beside one another, along a new last axis."""
    return joining.stack(parts, -1)


def parts_of(q: dlarray) -> list[Any]:
    return [q[..., place] for place in range(q.shape[-1])]


def squares(x: dlarray) -> dlarray:
    """Return the squares of lengths of vectors, with an axis of one element."""
    return reductions.sum(x * x, axis=-1, keepdims=True)


def normalized(q: dlarray) -> dlarray:
    """Return quaternions divided by their lengths."""
    return q / elementwise.sqrt(squares(q))


def product(p: dlarray, q: dlarray) -> dlarray:
    """Return the quaternions of the rotations by q, and then by p."""
    (a, b, c, d), (x, y, z, w) = parts_of(p), parts_of(q)
    return stacked(
        d * x + w * a + b * z - c * y,
        d * y + w * b + c * x - a * z,
        d * z + w * c + a * y - b * x,
        d * w - a * x - b * y - c * z,
    )


def inverse(q: dlarray) -> dlarray:
    return q * np.array([-1.0, -1.0, -1.0, 1.0])


def canonical(q: dlarray) -> dlarray:
    """Return the one of q and -q whose last part that is not 0, of w, x, y, z in this order, is positive."""
    x, y, z, w = parts_of(q)
    below = z < 0
    for part in (y, x, w):
        below = (part < 0) | ((part == 0) & below)
    return where(below[..., None], -q, q)


def of_vector(v: dlarray) -> dlarray:
    """Return the quaternions of rotation vectors (Note [small angles])."""
    square = squares(v)
    is_small = square < _SMALL
    angle = elementwise.sqrt(where(is_small, 1.0, square))
    s = square * 0.25  # the square of half the angle
    near = 0.5 * (1 + s * (-1 / 6 + s * (1 / 120 - s / 5040)))
    scale = where(is_small, near, elementwise.sin(angle * 0.5) / angle)
    near = 1 + s * (-1 / 2 + s * (1 / 24 - s / 720))
    w = where(is_small, near, elementwise.cos(angle * 0.5))
    return joining.concatenate([v * scale, w], -1)


def vector_of(q: dlarray) -> dlarray:
    """Return the rotation vectors of quaternions, of angles up to pi (Note [small angles])."""
    q = canonical(q)
    axis, w = q[..., :3], q[..., 3:]
    square = squares(axis)
    is_small = square < _SMALL
    length = elementwise.sqrt(where(is_small, 1.0, square))
    near = 2 * (1 + square * (1 / 6 + square * (3 / 40 + square * (15 / 336))))  # 2 arcsin(s) / s
    found: dlarray = axis * where(is_small, near, 2 * elementwise.arctan2(length, w) / length)
    return found


def angle_of(q: dlarray) -> dlarray:
    """Return the angles of quaternions, from 0 to pi, with the derivative 0 at 0."""
    square = squares(q[..., :3])[..., 0]
    is_zero = square == 0
    length = elementwise.sqrt(where(is_zero, 1.0, square))
    return where(is_zero, 0.0, 2 * elementwise.arctan2(length, elementwise.abs(q[..., 3])))


def of_parameters(m: dlarray) -> dlarray:
    """Return the quaternions of modified Rodrigues parameters, the axis times the tangent of a quarter of the angle."""
    square = squares(m)
    return joining.concatenate([2 * m, 1 - square], -1) / (1 + square)


def parameters_of(q: dlarray) -> dlarray:
    """Return the modified Rodrigues parameters of quaternions."""
    q = where(q[..., 3:] < 0, -q, q)
    found: dlarray = q[..., :3] / (1 + q[..., 3:])
    return found


def matrix_of(q: dlarray) -> dlarray:
    """Return the matrices of quaternions."""
    x, y, z, w = parts_of(q)
    rows = (
        (x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)),
        (2 * (x * y + z * w), -x * x + y * y - z * z + w * w, 2 * (y * z - x * w)),
        (2 * (x * z - y * w), 2 * (y * z + x * w), -x * x - y * y + z * z + w * w),
    )
    return joining.stack([stacked(*row) for row in rows], -2)


def of_matrix(m: dlarray) -> dlarray:
    """Return the quaternions of orthogonal matrices.

    Of four formulas, which divide by four times a part of the quaternion, that of the largest part is taken (S. W.
    Shepperd, Quaternion from rotation matrix, Journal of Guidance and Control 1, 1978).
    """
    diagonal = [m[..., i, i] for i in range(3)]
    trace = diagonal[0] + diagonal[1] + diagonal[2]
    found = [stacked(*_of_largest(m, i, trace)) for i in range(3)]
    found.append(stacked(
        m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1], 1 + trace
    ))  # fmt: skip
    chosen, largest = found[0], diagonal[0]
    for candidate, size in zip(found[1:], (*diagonal[1:], trace), strict=True):
        is_larger = size > largest
        chosen = where(is_larger[..., None], candidate, chosen)
        largest = where(is_larger, size, largest)
    return normalized(chosen)


def _of_largest(m: dlarray, i: int, trace: dlarray) -> list[Any]:
    """Return quaternions, times a number, whose part i is the largest."""
    j, k = (i + 1) % 3, (i + 2) % 3
    parts: list[Any] = [None] * 4
    parts[i] = 1 - trace + 2 * m[..., i, i]
    parts[j] = m[..., j, i] + m[..., i, j]
    parts[k] = m[..., k, i] + m[..., i, k]
    parts[3] = m[..., k, j] - m[..., j, k]
    return parts


def nearest(m: dlarray) -> dlarray:
    """Return the orthogonal matrices that are nearest to some."""
    u, _, v = spectral.svd(m)
    found: dlarray = u @ v
    return found


def mean(q: dlarray, weights: Any) -> dlarray:
    """Return the mean of quaternions: the eigenvector of the largest eigenvalue of the sum of weights times q q'.

    It minimises the weighted sum of squared Frobenius norms of differences of matrices (F. L. Markley and others,
    Averaging quaternions, Journal of Guidance, Control, and Dynamics 30, 2007).
    """
    weighted = q if weights is None else q * as_array(weights)[..., None]
    _, vectors = spectral.eigh(weighted.T @ q)
    found: dlarray = vectors[:, -1]
    return found


def aligned(x: dlarray, y: dlarray, weights: Any) -> tuple[dlarray, dlarray]:
    """Return the matrix that takes vectors y nearest to x, and the root of the weighted sum of squared distances.

    The formula is that of W. Kabsch, A solution for the best rotation to relate two sets of vectors, Acta
    Crystallographica A32, 1976.
    """
    w = None if weights is None else weights[:, None]
    u, s, v = spectral.svd((x if w is None else x * w).T @ y)
    is_mirror = linalg.det(u) * linalg.det(v) < 0
    last = where(is_mirror, -1.0, 1.0) * np.array([0.0, 0.0, 1.0]) + np.array([1.0, 1.0, 0.0])
    squares = x * x + y * y
    whole = reductions.sum(squares if w is None else squares * w)
    distance = elementwise.maximum(whole - 2 * reductions.sum(s * last), 0.0)
    return (u * last) @ v, elementwise.sqrt(distance)
