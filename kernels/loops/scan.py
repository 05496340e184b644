# SPDX-License-Identifier: BSD-3-Clause
"""Running sums, products and recurrences along an axis, for arrays seen as (outer, n, inner)."""

from typing import Any


def cumsum(outer: int, n: int, inner: int, reverse: int, x: Any, out: Any) -> None:
    """Write to out, for each position along n, the sum of x up to it, or from it on if `reverse`."""
    if inner == 1 and n > 0:
        # The sum stays in a register; out would be loaded right after it is stored.
        for row in range(outer):
            place = row * n + (n - 1 if reverse else 0)
            step = -1 if reverse else 1
            total = x[place]
            out[place] = total
            for _ in range(1, n):
                place += step
                total = total + x[place]
                out[place] = total
    for row in range(outer if inner != 1 else 0):
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
    if inner == 1 and n > 0:
        for row in range(outer):
            total = x[row * n]
            out[row * n] = total
            for i in range(row * n + 1, (row + 1) * n):
                total = total * x[i]
                out[i] = total
    for row in range(outer if inner != 1 else 0):
        for i in range(n):
            start = (row * n + i) * inner
            for column in range(inner):
                if i == 0:
                    out[start + column] = x[start + column]
                else:
                    out[start + column] = out[start - inner + column] * x[start + column]


def recurrence(outer: int, n: int, inner: int, reverse: int, a: Any, b: Any, out: Any) -> None:
    """Write to out y_i = b_i + a_i y_(i-1) along n, or from its end y_i = b_i + a_i y_(i+1) if `reverse`."""
    if inner == 1 and n > 0:
        for row in range(outer):
            place = row * n + (n - 1 if reverse else 0)
            step = -1 if reverse else 1
            total = b[place]
            out[place] = total
            for _ in range(1, n):
                place += step
                total = b[place] + a[place] * total
                out[place] = total
    for row in range(outer if inner != 1 else 0):
        for i in range(n):
            place = n - 1 - i if reverse else i
            start = (row * n + place) * inner
            before = start + inner if reverse else start - inner
            for column in range(inner):
                if i == 0:
                    out[start + column] = b[start + column]
                else:
                    out[start + column] = b[start + column] + a[start + column] * out[before + column]
