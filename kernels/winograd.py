# SPDX-License-Identifier: BSD-3-Clause
"""Winograd's method for windows of 3 by 3, four by four of them at a time, F(4x4, 3x3), and for other windows.

A tile of 4 results along an axis is the product of two polynomials, computed from their values at some points (S.
Winograd, Arithmetic complexity of computations, 1980; for convolutions A. Lavin and S. Gray, Fast algorithms for
convolutional neural networks, 2016). Six elements of the image and three taps each become six values, which are
multiplied, and six products become four results: 36 multiplications for 16 results of two axes, where windows take 144.
Six points also do for two results of windows of 5: 36 multiplications for 4 results, where windows take 100. Along one
axis alone there are 6 multiplications for 4 results instead of 12, or for 2 instead of 10.

The points are 0, +-5/8, +-11/8 and infinity. With them the error is about twice that of sums in order, and half of that
with the usual points 0, +-1, +-2; all numbers of SEEN and of sums are exact in float32.

SEEN            6 x 6: what an image becomes
filter_of       6 x taps: what a filter becomes
sums_of         results x 6: the results of products
"""

from math import prod

TAPS = (3, 5)
"""The windows that there are matrices for."""

_A, _B = 5 / 8, 11 / 8
_POINTS = (_A, -_A, _B, -_B)

Matrix = tuple[tuple[float, ...], ...]


def _scale(p: float) -> float:
    return prod([p - other for other in (0.0, *_POINTS) if other != p])


def transposed(matrix: Matrix) -> Matrix:
    """Return the matrix with rows for columns."""
    return tuple(zip(*matrix, strict=True))


SEEN: Matrix = (
    (_A**2 * _B**2, 0.0, -(_A**2) - _B**2, 0.0, 1.0, 0.0),
    *[(0.0, -p * q**2, -(q**2), p, 1.0, 0.0) for p, q in zip(_POINTS, (_B, _B, _A, _A), strict=True)],
    (0.0, _A**2 * _B**2, 0.0, -(_A**2) - _B**2, 0.0, 1.0),
)


def filter_of(taps: int) -> Matrix:
    """Return what the taps of a filter are multiplied by."""
    finite = [tuple([p**k / _scale(p) for k in range(taps)]) for p in (0.0, *_POINTS)]
    return (*finite, tuple([float(k == taps - 1) for k in range(taps)]))


def sums_of(taps: int) -> Matrix:
    """Return what products are multiplied by."""
    last = len(_POINTS) + 1 - taps + 1
    return tuple([(*[p**i for p in (0.0, *_POINTS)], float(i == last)) for i in range(last + 1)])


TRANSFORMS: dict[str, Matrix] = {"winograd_seen": SEEN, "winograd_seen_adjoint": transposed(SEEN)}
"""The matrices by the names of the functions that multiply a tile by them."""
for _taps in TAPS:
    TRANSFORMS[f"winograd_filter_{_taps}"] = filter_of(_taps)
    TRANSFORMS[f"winograd_sums_{_taps}"] = sums_of(_taps)
    TRANSFORMS[f"winograd_filter_adjoint_{_taps}"] = transposed(filter_of(_taps))
    TRANSFORMS[f"winograd_sums_adjoint_{_taps}"] = transposed(sums_of(_taps))
