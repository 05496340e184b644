# SPDX-License-Identifier: BSD-3-Clause
"""Running sums, products and recurrences along an axis, for arrays seen as (outer, n, inner)."""

from typing import Any


def cumsum(outer: int, n: int, inner: int, reverse: int, x: Any, out: Any) -> None:
    """Write to out, for each position along n, the sum of x up to it, or from it on if `reverse`."""
    for row in range(outer):
        for i in range(n):
            place = n - 1 - i if reverse else i
            start = (row * n + place) * inner
            # Adjacent elements along n are `inner` apart, so that the inner loop runs along memory.
            before = start + inner if reverse else start - inner
            for column in range(inner):
                if i == 0:
                    out[start + column] = x[start + column]
                else:
                    out[start + column] = out[before + column] + x[start + column]


def cumprod(outer: int, n: int, inner: int, x: Any, out: Any) -> None:
    """Write to out, for each position along n, the product of x up to it."""
    for row in range(outer):
        for i in range(n):
            start = (row * n + i) * inner
            for column in range(inner):
                if i == 0:
                    out[start + column] = x[start + column]
                else:
                    out[start + column] = out[start - inner + column] * x[start + column]


def recurrence(outer: int, n: int, inner: int, reverse: int, a: Any, b: Any, out: Any) -> None:
    """Write to out y_i = b_i + a_i y_(i-1) along n, or from its end y_i = b_i + a_i y_(i+1) if `reverse`."""
    for row in range(outer):
        for i in range(n):
            place = n - 1 - i if reverse else i
            start = (row * n + place) * inner
            before = start + inner if reverse else start - inner
            for column in range(inner):
                if i == 0:
                    out[start + column] = b[start + column]
                else:
                    out[start + column] = b[start + column] + a[start + column] * out[before + column]
