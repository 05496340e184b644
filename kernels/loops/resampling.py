# SPDX-License-Identifier: BSD-3-Clause
"""Weighted sums of neighbouring elements along one axis or two: resizing, and means of unequal parts.

An array is seen as (outer, n, inner), the result as (outer, m, inner). Each of the m places sums `taps` neighbours from
its start on, with weights of its own. The adjoint is such a sum too, with the tables transposed, by the same kernel.
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
        if taps == 2:
            one = weights[2 * j]
            two = weights[2 * j + 1]
            for i in range(inner):
                y[out + i] = one * x[source + i] + two * x[source + inner + i]
            continue
        if taps == 0:
            for i in range(inner):
                y[out + i] = 0
            continue
        one = weights[taps * j]
        for i in range(inner):
            y[out + i] = one * x[source + i]
        for tap in range(1, taps):
            weight = weights[j * taps + tap]
            for i in range(inner):
                y[out + i] = y[out + i] + weight * x[source + tap * inner + i]


def resample_last(
    first: int, last: int, n: int, inner: int, m: int, taps: int,
    x: Any, starts: Any, weights: Any, back_starts: Any, back_weights: Any, y: Any,
) -> None:  # fmt: skip
    """resample() along the last axis, where `inner` is 1; rows of outer."""
    for row in range(first, last):
        if taps == 1:
            for j in range(m):
                y[row * m + j] = weights[j] * x[row * n + starts[j]]
        elif taps == 2:
            for j in range(m):
                source = row * n + starts[j]
                y[row * m + j] = weights[2 * j] * x[source] + weights[2 * j + 1] * x[source + 1]
        elif taps == 4:
            for j in range(m):
                source = row * n + starts[j]
                left = weights[4 * j] * x[source] + weights[4 * j + 1] * x[source + 1]
                right = weights[4 * j + 2] * x[source + 2] + weights[4 * j + 3] * x[source + 3]
                y[row * m + j] = left + right
        else:
            for j in range(m):
                y[row * m + j] = 0
                source = row * n + starts[j]
                for tap in range(taps):
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
                    weight = weights[tap * m + j] * column_weights[column_tap * columns + column]
                    source = ((top + tap) * w + column_starts[column] + column_tap) * inner
                    for i in range(inner):
                        y[out + i] = y[out + i] + weight * x[source + i]
