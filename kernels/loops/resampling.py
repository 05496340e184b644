# SPDX-License-Identifier: BSD-3-Clause
"""Weighted sums of neighbouring elements along one axis or two: resizing, and means of unequal parts.

An array is seen as (outer, n, inner), the result as (outer, m, inner). Each of the m places sums `taps` neighbours from
its start on, with weights of its own. The adjoint is such a sum too, with the tables transposed, by the same kernel.
A neighbour whose weight is 0 takes no part: it is there because other places sum more, and 0 times infinity is NaN.
"""

from typing import Any


def resample(
    first: int, last: int, n: int, inner: int, m: int, taps: int,
    x: Any, starts: Any, weights: Any, back_starts: Any, back_weights: Any, y: Any,
) -> None:  # fmt: skip
    """y = weighted sums of x; rows of (outer, m)."""
    for row in range(first, last):
        j = row % m
        source = (row // m * n + starts[j]) * inner
        out = row * inner
        if taps == 2 and weights[2 * j] != 0 and weights[2 * j + 1] != 0:
            one = weights[2 * j]
            two = weights[2 * j + 1]
            for i in range(inner):
                y[out + i] = one * x[source + i] + two * x[source + inner + i]
            continue
        begun = 0
        while begun < taps and weights[j * taps + begun] == 0:
            begun += 1
        if begun == taps:
            for i in range(inner):
                y[out + i] = 0
            continue
        one = weights[taps * j + begun]
        for i in range(inner):
            y[out + i] = one * x[source + begun * inner + i]
        for tap in range(begun + 1, taps):
            weight = weights[j * taps + tap]
            if weight != 0:
                for i in range(inner):
                    y[out + i] = y[out + i] + weight * x[source + tap * inner + i]


def resample_last(
    first: int, last: int, n: int, inner: int, m: int, taps: int,
    x: Any, starts: Any, weights: Any, back_starts: Any, back_weights: Any, y: Any,
) -> None:  # fmt: skip
    """resample() along the last axis, where `inner` is 1; rows of outer.

    To look at each weight would take as long as the sums. A weight of 0 matters only where the sum is NaN.
    """
    for row in range(first, last):
        unknown = 0
        if taps == 1:
            for j in range(m):
                total = weights[j] * x[row * n + starts[j]]
                y[row * m + j] = total
                unknown += 1 if total != total else 0  # noqa: PLR0124 (NaN)
        elif taps == 2:
            for j in range(m):
                source = row * n + starts[j]
                total = weights[2 * j] * x[source] + weights[2 * j + 1] * x[source + 1]
                y[row * m + j] = total
                unknown += 1 if total != total else 0  # noqa: PLR0124 (NaN)
        elif taps == 4:
            for j in range(m):
                source = row * n + starts[j]
                left = weights[4 * j] * x[source] + weights[4 * j + 1] * x[source + 1]
                right = weights[4 * j + 2] * x[source + 2] + weights[4 * j + 3] * x[source + 3]
                total = left + right
                y[row * m + j] = total
                unknown += 1 if total != total else 0  # noqa: PLR0124 (NaN)
        else:
            for j in range(m):
                y[row * m + j] = 0
                source = row * n + starts[j]
                for tap in range(taps):
                    y[row * m + j] = y[row * m + j] + weights[j * taps + tap] * x[source + tap]
                unknown += 1 if y[row * m + j] != y[row * m + j] else 0
        if unknown > 0:
            for j in range(m):
                if y[row * m + j] != y[row * m + j]:
                    y[row * m + j] = 0
                    source = row * n + starts[j]
                    for tap in range(taps):
                        if weights[j * taps + tap] != 0:
                            y[row * m + j] = y[row * m + j] + weights[j * taps + tap] * x[source + tap]


def resample_planes(
    first: int, last: int, n: int, w: int, inner: int, m: int, columns: int, taps: int, column_taps: int,
    x: Any, starts: Any, weights: Any, column_starts: Any, column_weights: Any,
    back_starts: Any, back_weights: Any, back_column_starts: Any, back_column_weights: Any, y: Any,
) -> None:  # fmt: skip
    """resample() along (n, w) of (outer, n, w, inner), with weights as (taps, places); rows of (outer, m)."""
    for row in range(first, last):
        j = row % m
        top = row // m * n + starts[j]
        for column in range(columns):
            out = (row * columns + column) * inner
            for i in range(inner):
                y[out + i] = 0
            for tap in range(taps):
                for column_tap in range(column_taps):
                    one = weights[tap * m + j]
                    other = column_weights[column_tap * columns + column]
                    if one != 0 and other != 0:
                        source = ((top + tap) * w + column_starts[column] + column_tap) * inner
                        for i in range(inner):
                            y[out + i] = y[out + i] + one * other * x[source + i]
