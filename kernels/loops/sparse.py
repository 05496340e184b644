# SPDX-License-Identifier: BSD-3-Clause
"""Products of a sparse matrix in rows: the elements of row i are those from starts[i] to starts[i + 1], at `places`.

Elements are added in the order in which the matrix has them. A row or an element outside of the matrix touches no
memory, has no effect, and sets fault[0] to 1.
"""

from typing import Any


def sparse_product(
    first: int, last: int, count: int, n: int, inner: int,
    starts: Any, places: Any, data: Any, x: Any, y: Any, fault: Any,
) -> None:  # fmt: skip
    """y (m, inner) = a matrix (m, n) of `count` elements times x (n, inner); rows of y.

    Rows and columns are checked first, in vectors. Then the sum of a row has no branches but those of its length; rows
    are short, and LLVM would write a loop for long ones.
    """
    wrong = 0
    for i in range(first, last):
        wrong += 1 if starts[i] < 0 or starts[i + 1] > count or starts[i + 1] < starts[i] else 0
    if wrong == 0:
        for j in range(starts[first], starts[last]):
            wrong += 1 if places[j] < 0 or places[j] >= n else 0
    if inner == 1 and wrong == 0:
        for i in range(first, last):
            j = starts[i] + 0
            end = starts[i + 1] + 0
            total = 0.0
            while j + 4 <= end:
                total += data[j] * x[places[j]]
                total += data[j + 1] * x[places[j + 1]]
                total += data[j + 2] * x[places[j + 2]]
                total += data[j + 3] * x[places[j + 3]]
                j += 4
            if j < end:
                total += data[j] * x[places[j]]
            if j + 1 < end:
                total += data[j + 1] * x[places[j + 1]]
            if j + 2 < end:
                total += data[j + 2] * x[places[j + 2]]
            y[i] = total
    for i in range(first, last if inner != 1 or wrong != 0 else first):
        begin = starts[i]
        end = starts[i + 1]
        if begin < 0 or end > count:
            fault[0] = 1
            end = begin
        row = i * inner
        for c in range(inner):
            y[row + c] = 0
        for j in range(begin, end):
            k = places[j]
            if 0 <= k < n:
                source = k * inner
                for c in range(inner):
                    y[row + c] = y[row + c] + data[j] * x[source + c]
            else:
                fault[0] = 1


def sparse_transposed(
    m: int, count: int, n: int, inner: int, starts: Any, places: Any, data: Any, x: Any, y: Any, fault: Any
) -> None:
    """y (n, inner) = the transpose of a matrix (m, n) times x (m, inner)."""
    for k in range(n * inner):
        y[k] = 0
    for i in range(m):
        begin = starts[i]
        end = starts[i + 1]
        if begin < 0 or end > count:
            fault[0] = 1
            end = begin
        source = i * inner
        for j in range(begin, end):
            k = places[j]
            if 0 <= k < n:
                row = k * inner
                for c in range(inner):
                    y[row + c] = y[row + c] + data[j] * x[source + c]
            else:
                fault[0] = 1


def sparse_elements(
    m: int, count: int, n: int, inner: int, starts: Any, places: Any, u: Any, x: Any, y: Any, fault: Any
) -> None:
    """y (count) = the product u (m, inner) x^T, with x (n, inner), at the elements of a matrix (m, n)."""
    for j in range(count):
        y[j] = 0
    for i in range(m):
        begin = starts[i]
        end = starts[i + 1]
        if begin < 0 or end > count:
            fault[0] = 1
            end = begin
        row = i * inner
        for j in range(begin, end):
            k = places[j]
            if 0 <= k < n:
                source = k * inner
                total = 0.0
                for c in range(inner):
                    total += u[row + c] * x[source + c]
                y[j] = y[j] + total
            else:
                fault[0] = 1
