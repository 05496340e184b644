# SPDX-License-Identifier: BSD-3-Clause
"""Kernels that read and write at computed indices along one axis.

An array is seen as (outer, n, inner), with the indexed axis in the middle. Negative indices count from the end. An
index outside the axis touches no memory and sets fault[0] to 1: a read gives NaN, or `lowest` for an integer dtype; a
write has no effect. `lowest` is 1 for a float dtype, whose missing value is NaN. Kernels that write at indices find the
other elements in the memory that they write.
"""

import math
from typing import Any


def take(outer: int, n: int, inner: int, m: int, lowest: int, x: Any, index: Any, y: Any, fault: Any) -> None:
    """y (outer, m, inner) = x at index (m)."""
    missing = math.nan if lowest == 1 else float(lowest)
    at = 0
    if inner == 1:
        # Without branches, so that elements are gathered in vectors; the value for a missing element, a float, is not
        # an operand beside them, because integers of 64 bits would become floats.
        for o in range(outer):
            wrong = 0
            for j in range(m if n > 0 else 0):
                k = index[j]
                k = k + n if k < 0 else k
                inside = 0 <= k < n
                wrong += 0 if inside else 1
                y[o * m + j] = x[o * n + (k if inside else 0)]
            if wrong > 0:
                fault[0] = 1
                for j in range(m):
                    if index[j] < -n or index[j] >= n:
                        y[o * m + j] = missing
    for o in range(outer if inner != 1 or n == 0 else 0):
        for j in range(m):
            k = index[j]
            if k < 0:
                k += n
            if 0 <= k < n:
                source = (o * n + k) * inner
                for i in range(inner):
                    y[at + i] = x[source + i]
            else:
                fault[0] = 1
                for i in range(inner):
                    y[at + i] = missing
            at += inner


def scatter_add(outer: int, n: int, inner: int, m: int, index: Any, v: Any, y: Any, fault: Any) -> None:
    """Each v (outer, m, inner) is added to y (outer, n, inner) at index (m)."""
    if inner == 1:
        for o in range(outer):
            for j in range(m):
                k = index[j]
                k = k + n if k < 0 else k
                if 0 <= k < n:
                    y[o * n + k] = y[o * n + k] + v[o * m + j]
                else:
                    fault[0] = 1
    at = 0
    for o in range(outer if inner != 1 else 0):
        for j in range(m):
            k = index[j]
            if k < 0:
                k += n
            if 0 <= k < n:
                place = (o * n + k) * inner
                for i in range(inner):
                    y[place + i] = y[place + i] + v[at + i]
            else:
                fault[0] = 1
            at += inner


def put(outer: int, n: int, inner: int, m: int, stride: int, index: Any, v: Any, y: Any, fault: Any) -> None:
    """The elements of y (outer, n, inner) at index (m) become v (outer, m, inner; one number if stride is 0)."""
    at = 0
    for o in range(outer):
        for j in range(m):
            k = index[j]
            if k < 0:
                k += n
            if 0 <= k < n:
                place = (o * n + k) * inner
                for i in range(inner):
                    y[place + i] = v[(at + i) * stride]
            else:
                fault[0] = 1
            at += inner


def check_places(n: int, count: int, index: Any, fault: Any) -> None:
    """fault = 1 if one of `count` indices of an axis of n elements is out of range."""
    wrong = 0
    for j in range(count):
        wrong += 0 if -n <= index[j] < n else 1
    if wrong > 0:
        fault[0] = 1


def take_along_axis(
    outer: int, n: int, inner: int, m: int, lowest: int, x: Any, index: Any, y: Any, fault: Any
) -> None:
    """y (outer, m, inner) = x at index (outer, m, inner)."""
    missing = math.nan if lowest == 1 else float(lowest)
    # The inner loop, whichever is longer, has no branches, so that elements are gathered in vectors.
    rows, columns = (1, m) if inner == 1 else (m, inner)
    wrong = 0
    for o in range(outer):
        for j in range(rows):
            at = (o * rows + j) * columns
            for i in range(columns):
                k = index[at + i]
                k = k + n if k < 0 else k
                inside = 0 <= k < n
                wrong += 0 if inside else 1
                if n > 0:
                    y[at + i] = x[(o * n + (k if inside else 0)) * inner + (i if inner > 1 else 0)]
    if wrong > 0:
        fault[0] = 1
        for at in range(outer * m * inner):
            if index[at] < -n or index[at] >= n:
                y[at] = missing


def add_along_axis(outer: int, n: int, inner: int, m: int, index: Any, v: Any, y: Any, fault: Any) -> None:
    """Each v is added to y (outer, n, inner) at its index (outer, m, inner)."""
    at = 0
    for o in range(outer):
        for _ in range(m):
            for i in range(inner):
                k = index[at]
                if k < 0:
                    k += n
                if 0 <= k < n:
                    place = (o * n + k) * inner + i
                    y[place] = y[place] + v[at]
                else:
                    fault[0] = 1
                at += 1


def maxunpool(
    first: int, last: int, n: int, inner: int, m: int, v: Any, index: Any, y: Any, fault: Any
) -> None:
    """y (outer, n, inner) = v (outer, m, inner) at index (outer, m, inner), 0 elsewhere; rows of outer."""
    for o in range(first, last):
        for i in range(o * n * inner, (o + 1) * n * inner):
            y[i] = 0
        at = o * m * inner
        for _ in range(m):
            for i in range(inner):
                k = index[at]
                if 0 <= k < n:
                    y[(o * n + k) * inner + i] = v[at]
                else:
                    fault[0] = 1
                at += 1
