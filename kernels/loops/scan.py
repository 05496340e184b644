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


def cummax(outer: int, n: int, inner: int, wanted: int, x: Any, out: Any, places: Any) -> None:
    """Write to out the maximum up to each position along n; a NaN counts as the maximum.

    If `wanted`, the place of the first such element is written to places.
    """
    fours = outer // 4 * 4 if inner == 1 and n > 0 else 0
    # Each comparison waits for the one before, so that four rows take turns.
    for row in range(0, fours, 4):
        a0, a1, a2, a3 = row * n, (row + 1) * n, (row + 2) * n, (row + 3) * n
        b0, b1, b2, b3 = x[a0], x[a1], x[a2], x[a3]
        for i in range(n):
            v0, v1, v2, v3 = x[a0 + i], x[a1 + i], x[a2 + i], x[a3 + i]
            b0 = b0 if (b0 >= v0) | (b0 != b0) else v0  # noqa: PLR0124 (NaN)
            b1 = b1 if (b1 >= v1) | (b1 != b1) else v1  # noqa: PLR0124
            b2 = b2 if (b2 >= v2) | (b2 != b2) else v2  # noqa: PLR0124
            b3 = b3 if (b3 >= v3) | (b3 != b3) else v3  # noqa: PLR0124
            out[a0 + i] = b0
            out[a1 + i] = b1
            out[a2 + i] = b2
            out[a3 + i] = b3
    for row in range(fours, outer):
        for i in range(n):
            start = (row * n + i) * inner
            for column in range(inner):
                v = x[start + column]
                b = out[start - inner + column] if i else v
                out[start + column] = b if (b >= v) | (b != b) else v  # noqa: PLR0124
    for row in range(outer if wanted else 0):
        for i in range(n):
            start = (row * n + i) * inner
            for column in range(inner):
                v = out[start + column]
                b = out[start - inner + column] if i else v
                is_same = (v == b) | (b != b)  # noqa: PLR0124
                places[start + column] = 0 if i == 0 else places[start - inner + column] if is_same else i


def cummin(outer: int, n: int, inner: int, wanted: int, x: Any, out: Any, places: Any) -> None:
    """Write to out the minimum up to each position along n; a NaN counts as the minimum.

    If `wanted`, the place of the first such element is written to places.
    """
    fours = outer // 4 * 4 if inner == 1 and n > 0 else 0
    # Each comparison waits for the one before, so that four rows take turns.
    for row in range(0, fours, 4):
        a0, a1, a2, a3 = row * n, (row + 1) * n, (row + 2) * n, (row + 3) * n
        b0, b1, b2, b3 = x[a0], x[a1], x[a2], x[a3]
        for i in range(n):
            v0, v1, v2, v3 = x[a0 + i], x[a1 + i], x[a2 + i], x[a3 + i]
            b0 = b0 if (b0 <= v0) | (b0 != b0) else v0  # noqa: PLR0124 (NaN)
            b1 = b1 if (b1 <= v1) | (b1 != b1) else v1  # noqa: PLR0124
            b2 = b2 if (b2 <= v2) | (b2 != b2) else v2  # noqa: PLR0124
            b3 = b3 if (b3 <= v3) | (b3 != b3) else v3  # noqa: PLR0124
            out[a0 + i] = b0
            out[a1 + i] = b1
            out[a2 + i] = b2
            out[a3 + i] = b3
    for row in range(fours, outer):
        for i in range(n):
            start = (row * n + i) * inner
            for column in range(inner):
                v = x[start + column]
                b = out[start - inner + column] if i else v
                out[start + column] = b if (b <= v) | (b != b) else v  # noqa: PLR0124
    for row in range(outer if wanted else 0):
        for i in range(n):
            start = (row * n + i) * inner
            for column in range(inner):
                v = out[start + column]
                b = out[start - inner + column] if i else v
                is_same = (v == b) | (b != b)  # noqa: PLR0124
                places[start + column] = 0 if i == 0 else places[start - inner + column] if is_same else i
