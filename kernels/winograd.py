# SPDX-License-Identifier: BSD-3-Clause
"""Winograd's method for windows of 3 by 3, in tiles of four by four windows, F(4x4, 3x3), and for other windows.

A tile of 4 results along an axis is the product of two polynomials, computed from their values at some points (S.
Winograd, Arithmetic complexity of computations, 1980; for convolutions A. Lavin and S. Gray, Fast algorithms for
convolutional neural networks, 2016). Six elements of the image and three taps each become six values, which are
multiplied, and six products become four results: 36 multiplications for 16 results of two axes, where windows take 144.
Six points also do for two results of windows of 5, and eight for four: 48 multiplications for 8 results, where windows
take 200. Along one axis alone there are 6 multiplications for 4 results instead of 12, or 8 instead of 20.

The points are 0, +-5/8, +-11/8 and infinity. With them the error is about twice that of sums in order, and half of that
with the usual points 0, +-1, +-2. All numbers in the matrices of images and of sums are exact in float32. Windows of 2
have the five points +-3/8, +-5/4 and infinity: 25 multiplications for 16 results of two axes, where windows take 64. If
the last tap of a filter is 0, the value at infinity is 0, and nothing is multiplied there: 20 multiplications if that
is so along one axis, 16 along both. Windows of 5 have eight points along the last axis, 0, +-1/2, +-1, +-2 and
infinity. The error of eight points is twice that of six. Along two axes it would be too large, and in the gradient by
filters too, which has six points along both.

points_of       the number of values of a tile along an axis
seen_of         points x points: what an image becomes
filter_of       points x taps: what a filter becomes
sums_of         results x points: the results of products
"""

from math import prod

TAPS = (2, 3, 5)
"""The windows that there are matrices for."""

Points = tuple[float, ...]
Matrix = tuple[tuple[float, ...], ...]

_FOUR: Points = (3 / 8, -3 / 8, 5 / 4, -5 / 4)
_FIVE: Points = (0.0, 5 / 8, -5 / 8, 11 / 8, -11 / 8)
_SEVEN: Points = (0.0, 1 / 2, -1 / 2, 1.0, -1.0, 2.0, -2.0)
_FINITE = {len(points) + 1: points for points in (_FOUR, _FIVE, _SEVEN)}
"""The points but infinity, by their number with it: pairs p and -p, after 0 if their number is odd."""
_POINTS = {2: (5, 5), 3: (6, 6), 5: (6, 8)}


def points_of(taps: int, is_last: bool = True) -> int:
    """Return how many values a tile has along the last axis or the one before, and how many elements it sees."""
    return _POINTS[taps][is_last]


def _others(points: Points, p: float) -> Points:
    return tuple([other for other in points if other != p])


def _polynomial(roots: Points) -> list[float]:
    """Return the coefficients of the polynomial with these roots, the constant first."""
    numbers = [1.0]
    for root in roots:
        numbers = [a - root * b for a, b in zip([0.0, *numbers], [*numbers, 0.0], strict=True)]
    return numbers


def _sign(points: Points, p: float) -> float:
    """Return by what both factors at a point are multiplied, so that rows of a pair have the same even columns."""
    return -1.0 if p < 0 and len(points) % 2 == 0 else 1.0


def transposed(matrix: Matrix) -> Matrix:
    """Return the matrix with rows for columns."""
    return tuple(zip(*matrix, strict=True))


def seen_of(count: int) -> Matrix:
    """Return what elements of an image are multiplied by, for a number of points."""
    points = _FINITE[count]
    rows = [[_sign(points, p) * a for a in _polynomial(_others(points, p))] + [0.0] for p in points]
    return tuple(map(tuple, [*rows, _polynomial(points)]))


def filter_of(taps: int, count: int) -> Matrix:
    """Return what the taps of a filter are multiplied by, for a number of points."""
    points = _FINITE[count]
    scales = [_sign(points, p) * prod([p - other for other in _others(points, p)]) for p in points]
    finite = [tuple([p**k / scale for k in range(taps)]) for p, scale in zip(points, scales, strict=True)]
    return (*finite, tuple([float(k == taps - 1) for k in range(taps)]))


def sums_of(taps: int, count: int) -> Matrix:
    """Return what products are multiplied by, for a number of points."""
    points = _FINITE[count]
    last = len(points) + 1 - taps
    return tuple([(*[p**i for p in points], float(i == last)) for i in range(last + 1)])


TRANSFORMS: dict[str, Matrix] = {}
"""The matrices by the names of the functions that multiply a tile by them."""
for _taps, _count in sorted({(taps, count) for taps, counts in _POINTS.items() for count in counts}):
    for _name, _matrix in (
        (f"seen{{}}_{_count}", seen_of(_count)),
        (f"filter{{}}_{_taps}_{_count}", filter_of(_taps, _count)),
        (f"sums{{}}_{_taps}_{_count}", sums_of(_taps, _count)),
    ):
        TRANSFORMS[f"winograd_{_name.format('')}"] = _matrix
        TRANSFORMS[f"winograd_{_name.format('_adjoint')}"] = transposed(_matrix)
