# SPDX-License-Identifier: BSD-3-Clause
"""Quaternions of Euler and Tait-Bryan angles, and angles of quaternions."""

import math
from itertools import pairwise
from typing import Any

import numpy as np

from tracejit.array import dlarray
from tracejit.errors import ArgumentValueError
from tracejit.functions import elementwise
from tracejit.functions.creation import zeros_like
from tracejit.functions.elementwise import where
from tracejit.spatial import quaternions
from tracejit.util.text import brief

_NEAR = 1e-7  # radians, of the second angle from where the others are not unique


def axes_of(function: str, seq: Any, counts: tuple[int, ...] = (1, 2, 3)) -> list[int]:
    """Return the axes that letters name, checked.

    Raises:
        ArgumentValueError: if these are no axes, or two neighbours are the same.
    """
    valid = isinstance(seq, str) and len(seq) in counts and (set(seq) <= set("xyz") or set(seq) <= set("XYZ"))
    if not valid or any(one == next for one, next in pairwise(seq)):
        expected = "three letters" if counts == (3,) else "one to three letters"
        raise ArgumentValueError(
            f'{function}: seq={brief(seq)} must be {expected} of "xyz", which turn about fixed axes, or of "XYZ", '
            "which turn about axes of the body, and no two neighbours the same."
        )
    return ["xyz".index(letter) for letter in seq.lower()]


def of_angles(axes: list[int], angles: dlarray, is_fixed: bool) -> dlarray:
    """Return the quaternions of angles along the last axis, which turn about fixed axes or about those of the body."""
    found: dlarray | None = None
    for place, axis in enumerate(axes):
        half = angles[..., place] * 0.5
        parts: list[Any] = [zeros_like(half)] * 3
        parts[axis] = elementwise.sin(half)
        one = quaternions.stacked(*parts, elementwise.cos(half))
        if found is None:
            found = one
        else:
            found = quaternions.product(one, found) if is_fixed else quaternions.product(found, one)
    assert found is not None
    return found


def angles_of(q: dlarray, axes: list[int], is_fixed: bool) -> dlarray:
    """Return three angles along the last axis.

    By the formulas of E. Bernardes and S. Viollet, Quaternion to Euler angles conversion: a direct, general and
    computationally efficient method, PLOS ONE 17, 2022. Where the first and third axis are the same line, only the sum
    or the difference of their angles counts; the third is 0 then.
    """
    i, j, k = axes if is_fixed else axes[::-1]
    is_symmetric = i == k
    if is_symmetric:
        k = 3 - i - j
    sign = float((i - j) * (j - k) * (k - i) // 2)
    parts: Any = quaternions.parts_of(q)
    if is_symmetric:
        a, b, c, d = parts[3], parts[i], parts[j], parts[k] * sign
    else:
        a, b = parts[3] - parts[j], parts[i] + parts[k] * sign
        c, d = parts[j] + parts[3], parts[k] * sign - parts[i]
    second = 2 * elementwise.arctan2(_length(c, d), _length(a, b))
    is_zero, is_half_turn = elementwise.abs(second) <= _NEAR, elementwise.abs(second - math.pi) <= _NEAR
    is_single = is_zero | is_half_turn
    half_sum, half_difference = _angle(b, a), _angle(d, c)
    single = where(is_zero, 2 * half_sum, 2 * half_difference * (-1.0 if is_fixed else 1.0))
    # Of fixed axes the first angle is that of the difference; of those of the body it is the third in this order.
    difference, total = half_sum - half_difference, half_sum + half_difference
    first, third = (difference, total) if is_fixed else (total, difference)
    first, third = where(is_single, single, first), where(is_single, 0.0, third)
    if not is_symmetric:
        first, third = (first, third * sign) if is_fixed else (first * sign, third)
        second = second - math.pi / 2
    return quaternions.stacked(*map(_wrapped, (first, second, third)))


def _length(x: dlarray, y: dlarray) -> dlarray:
    """Return lengths of vectors in the plane, with the derivative 0 at 0."""
    square = x * x + y * y
    return where(square == 0, 0.0, elementwise.sqrt(where(square == 0, 1.0, square)))


def _angle(y: dlarray, x: dlarray) -> dlarray:
    """Return arctan2(y, x), with the derivative 0 where both are 0."""
    is_none = (x == 0) & (y == 0)
    return where(is_none, 0.0, elementwise.arctan2(y, where(is_none, 1.0, x)))


def _wrapped(angle: dlarray) -> dlarray:
    """Return an angle between -pi and pi, of one between -2 pi and 2 pi."""
    turn = 2 * np.pi
    return where(angle < -np.pi, angle + turn, where(angle > np.pi, angle - turn, angle))
