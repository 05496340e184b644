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
