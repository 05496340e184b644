# SPDX-License-Identifier: BSD-3-Clause
"""Matrix products."""

from typing import Any


def matmul(batch: int, m: int, k: int, n: int, x: Any, y: Any, out: Any) -> None:
    """Write to out (batch, m, n) the products of x (batch, m, k) and y (batch, k, n)."""
    for index in range(batch):
        for row in range(m):
            start = (index * m + row) * n
            for column in range(n):
                out[start + column] = 0
            # The middle loop runs over k, so that the inner one reads y and writes out along rows.
            for inner in range(k):
                factor = x[(index * m + row) * k + inner]
                below = (index * k + inner) * n
                for column in range(n):
                    out[start + column] += factor * y[below + column]


def matmul_add(batch: int, m: int, k: int, n: int, x: Any, y: Any, z: Any, out: Any) -> None:
    """Write to out (batch, m, n) the products of x (batch, m, k) and y (batch, k, n) plus z (batch, m, n)."""
    for index in range(batch):
        for row in range(m):
            start = (index * m + row) * n
            for column in range(n):
                out[start + column] = z[start + column]
            for inner in range(k):
                factor = x[(index * m + row) * k + inner]
                below = (index * k + inner) * n
                for column in range(n):
                    out[start + column] += factor * y[below + column]


def gemm(
    routine: Any,
    batch: int,
    m: int,
    n: int,
    k: int,
    x_transposed: int,
    x_leading: int,
    x_batch: int,
    y_transposed: int,
    y_leading: int,
    y_batch: int,
    add: int,
    x: Any,
    y: Any,
    out: Any,
) -> None:
    """Write to out (batch, m, n) the products of strided matrices, or add them to it if `add`.

    It replaces BLAS, and ignores `routine`.

    A matrix lies by rows, `leading` elements apart, or by columns if it is transposed; matrices of a batch are
    `x_batch` and `y_batch` elements apart.
    """
    x_row, x_column = (1, x_leading) if x_transposed else (x_leading, 1)
    y_row, y_column = (1, y_leading) if y_transposed else (y_leading, 1)
    for index in range(batch):
        for row in range(m):
            for column in range(n):
                total = 0.0
                for inner in range(k):
                    total += (
                        x[index * x_batch + row * x_row + inner * x_column]
                        * y[index * y_batch + inner * y_row + column * y_column]
                    )
                at = (index * m + row) * n + column
                out[at] = out[at] + total if add else total
