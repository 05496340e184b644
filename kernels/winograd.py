# SPDX-License-Identifier: BSD-3-Clause
"""Winograd's method for windows of 3 by 3, four by four of them at a time: F(4x4, 3x3).

A tile of 4 results along an axis is the product of two polynomials, computed from their values at some points (S.
Winograd, Arithmetic complexity of computations, 1980; for convolutions A. Lavin and S. Gray, Fast algorithms for
convolutional neural networks, 2016). Six elements of the image and three taps each become six values, which are
multiplied, and six products become four results: 36 multiplications for 16 results of two axes, where windows take 144.

The points are 0, +-5/8, +-11/8 and infinity. With them the error is about twice that of sums in order, and half of that
with the usual points 0, +-1, +-2; all numbers of SEEN and SUMS are exact in float32.

SEEN        6 x 6: what an image becomes
FILTER      6 x 3: what a filter becomes
SUMS        4 x 6: the results of products
"""

_A, _B = 5 / 8, 11 / 8
_POINTS = (_A, -_A, _B, -_B)

Matrix = tuple[tuple[float, ...], ...]


def _filter_row(p: float, other: float) -> tuple[float, ...]:
    scale = 2 * p * p * (p * p - other * other)
    return (1 / scale, p / scale, p * p / scale)


def transposed(matrix: Matrix) -> Matrix:
    """Return the matrix with rows for columns."""
    return tuple(zip(*matrix, strict=True))


SEEN: Matrix = (
    (_A**2 * _B**2, 0.0, -(_A**2) - _B**2, 0.0, 1.0, 0.0),
    *[(0.0, -p * q**2, -(q**2), p, 1.0, 0.0) for p, q in zip(_POINTS, (_B, _B, _A, _A), strict=True)],
    (0.0, _A**2 * _B**2, 0.0, -(_A**2) - _B**2, 0.0, 1.0),
)
FILTER: Matrix = (
    (1 / (_A**2 * _B**2), 0.0, 0.0),
    *[_filter_row(p, q) for p, q in zip(_POINTS, (_B, _B, _A, _A), strict=True)],
    (0.0, 0.0, 1.0),
)
SUMS: Matrix = tuple((float(i == 0), *[p**i for p in _POINTS], float(i == 3)) for i in range(4))

TRANSFORMS: dict[str, Matrix] = {
    "winograd_seen": SEEN, "winograd_filter": FILTER, "winograd_sums": SUMS,
    "winograd_sums_adjoint": transposed(SUMS), "winograd_filter_adjoint": transposed(FILTER),
}  # fmt: skip
"""The matrices by the names of the functions that multiply a tile by them."""
