# SPDX-License-Identifier: BSD-3-Clause
"""Positions of the first extremum along an axis, for arrays seen as (outer, n, inner), and of true elements.

A NaN counts as the extremum, as in NumPy: the search of a row ends at the first NaN (best != best).
"""

from typing import Any


def argmax(outer: int, n: int, inner: int, x: Any, out: Any) -> None:
    """Write to out (outer, inner) the position along n of the first maximum."""
    for row in range(outer):
        for column in range(inner):
            start = row * n * inner + column
            best = x[start]
            place = 0
            for i in range(1, n):
                if best != best:  # noqa: PLR0124 (NaN)
                    break
                element = x[start + i * inner]
                if element > best or element != element:  # noqa: PLR0124 (NaN)
                    best = element
                    place = i
            out[row * inner + column] = place


def argmin(outer: int, n: int, inner: int, x: Any, out: Any) -> None:
    """Write to out (outer, inner) the position along n of the first minimum."""
    for row in range(outer):
        for column in range(inner):
            start = row * n * inner + column
            best = x[start]
            place = 0
            for i in range(1, n):
                if best != best:  # noqa: PLR0124 (NaN)
                    break
                element = x[start + i * inner]
                if element < best or element != element:  # noqa: PLR0124 (NaN)
                    best = element
                    place = i
            out[row * inner + column] = place


def true_places(n: int, count: int, x: Any, out: Any) -> None:
    """Write to out (count) the positions of the first elements of x other than 0, and 0 after the last of them."""
    filled = 0
    for i in range(n):
        if x[i] != 0 and filled < count:
            out[filled] = i
            filled += 1
    for i in range(filled, count):
        out[i] = 0
