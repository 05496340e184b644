# SPDX-License-Identifier: BSD-3-Clause
"""Rows of a table at given places, and the sums of rows that have the same place.

The adjoint of a look-up adds many rows to few. The places are sorted first, by counting. So each row of the result is
cleared and summed in one walk, in the order of the places; sums have the same order on any thread.
"""

import math
from typing import Any


def embed(first: int, last: int, n: int, inner: int, x: Any, index: Any, y: Any, fault: Any) -> None:
    """y (m, inner) = the rows of x (n, inner) at index (m)."""
    for j in range(first, last):
        k = index[j]
        if 0 <= k < n:
            for i in range(inner):
                y[j * inner + i] = x[k * inner + i]
        else:
            fault[0] = 1
            for i in range(inner):
                y[j * inner + i] = math.nan


def row_groups(m: int, n: int, index: Any, starts: Any, order: Any) -> None:
    """order (m) = the numbers of the entries of index (m) by their value; starts (n + 1) = where each value begins."""
    for k in range(n + 1):
        starts[k] = 0
    for j in range(m):
        k = index[j]
        if 0 <= k < n:
            starts[k + 1] = starts[k + 1] + 1
    for k in range(n):
        starts[k + 1] = starts[k + 1] + starts[k]
    for j in range(starts[n], m):
        order[j] = 0
    for j in range(m):
        k = index[j]
        if 0 <= k < n:
            order[starts[k]] = j
            starts[k] = starts[k] + 1
    # Each start has moved to where its value ends, which is where the next one begins.
    for k in range(n, 0, -1):
        starts[k] = starts[k - 1]
    starts[0] = 0


def sum_groups(
    first: int, last: int, inner: int, v: Any, index: Any, starts: Any, order: Any, y: Any
) -> None:
    """y (n, inner) = the sum of the rows of v (m, inner) of each group; rows of y."""
    for k in range(first, last):
        row = k * inner
        begin = starts[k]
        end = starts[k + 1]
        if begin == end:
            for i in range(inner):
                y[row + i] = 0
            continue
        source = order[begin] * inner
        for i in range(inner):
            y[row + i] = v[source + i]
        for at in range(begin + 1, end):
            source = order[at] * inner
            for i in range(inner):
                y[row + i] = y[row + i] + v[source + i]
