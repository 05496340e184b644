# SPDX-License-Identifier: BSD-3-Clause
"""Factors of matrices and what is solved with them: LU with row exchanges, Cholesky, triangular matrices.

`count` matrices lie one after the other, each row by row. Inner loops run along rows.
"""

import math
from typing import Any


def lu(count: int, n: int, x: Any, out: Any, places: Any) -> None:
    """Write to out the factors L (below the diagonal, which is 1) and U of each matrix with its rows exchanged.

    Step k exchanges row k with row places[k], the one with the largest magnitude in column k.
    """
    for matrix in range(count):
        at = matrix * n * n
        for i in range(at, at + n * n):
            out[i] = x[i]
        for k in range(n):
            row = at + k * n
            best = k
            largest = abs(out[row + k])
            for i in range(k + 1, n):
                size = abs(out[at + i * n + k])
                if size > largest:
                    best = i
                    largest = size
            places[matrix * n + k] = best
            if best != k:
                other = at + best * n
                for j in range(n):
                    kept = out[row + j]
                    out[row + j] = out[other + j]
                    out[other + j] = kept
            pivot = out[row + k]
            if pivot != 0.0:
                for i in range(k + 1, n):
                    lower = at + i * n
                    factor = out[lower + k] / pivot
                    out[lower + k] = factor
                    for j in range(k + 1, n):
                        out[lower + j] -= factor * out[row + j]


def lu_solve(
    count: int, n: int, k: int, transposed: int, a: Any, factors: Any, places: Any, b: Any, out: Any
) -> None:
    """Write to out (count, n, k) the solutions X of A X = B, or A' X = B if `transposed`, from the factors of A."""
    for matrix in range(count):
        at = matrix * n * n
        first = matrix * n * k
        for i in range(first, first + n * k):
            out[i] = b[i]
        for step in range(n):
            other = places[matrix * n + step]
            if not transposed and other != step:
                for c in range(k):
                    kept = out[first + step * k + c]
                    out[first + step * k + c] = out[first + other * k + c]
                    out[first + other * k + c] = kept
        for i in range(n):
            for j in range(i):
                factor = factors[at + j * n + i] if transposed else factors[at + i * n + j]
                for c in range(k):
                    out[first + i * k + c] -= factor * out[first + j * k + c]
            if transposed:
                pivot = factors[at + i * n + i]
                for c in range(k):
                    out[first + i * k + c] = out[first + i * k + c] / pivot if pivot != 0.0 else math.nan
        for back in range(n):
            i = n - 1 - back
            for j in range(i + 1, n):
                factor = factors[at + j * n + i] if transposed else factors[at + i * n + j]
                for c in range(k):
                    out[first + i * k + c] -= factor * out[first + j * k + c]
            if not transposed:
                pivot = factors[at + i * n + i]
                for c in range(k):
                    out[first + i * k + c] = out[first + i * k + c] / pivot if pivot != 0.0 else math.nan
        for back in range(n):
            step = n - 1 - back
            other = places[matrix * n + step]
            if transposed and other != step:
                for c in range(k):
                    kept = out[first + step * k + c]
                    out[first + step * k + c] = out[first + other * k + c]
                    out[first + other * k + c] = kept


def lu_logdet(
    count: int, n: int, a: Any, factors: Any, places: Any, logarithms: Any, sign: Any, size: Any
) -> None:
    """Write the signs of determinants and the logarithms of their magnitudes, by factors and those of pivots."""
    for matrix in range(count):
        side = 1.0
        total = 0.0
        for i in range(n):
            pivot = factors[matrix * n * n + i * n + i]
            if places[matrix * n + i] != i:
                side = -side
            if pivot < 0.0:
                side = -side
            if pivot == 0.0:
                side = 0.0
            if pivot != pivot:  # noqa: PLR0124 (NaN)
                side = math.nan
            total += logarithms[matrix * n + i]
        sign[matrix] = side
        size[matrix] = total if side != 0.0 else -math.inf


def cholesky_columns(count: int, n: int, x: Any, out: Any) -> None:
    """Write to out the columns of the factor L of each matrix L L', each times its element on the diagonal.

    The lower half of a matrix is read; NaN where it is not positive definite. The columns are built in the upper half,
    as rows, and transposed at the end.
    """
    for matrix in range(count):
        at = matrix * n * n
        for i in range(n):
            for j in range(i + 1):
                out[at + j * n + i] = x[at + i * n + j]
        is_positive = True
        for k in range(n):
            row = at + k * n
            pivot = out[row + k]
            if not pivot > 0.0:
                is_positive = False
                break
            for i in range(k + 1, n):
                factor = out[row + i] / pivot
                for j in range(i, n):
                    out[at + i * n + j] -= factor * out[row + j]
        for i in range(n):
            for j in range(i + 1):
                out[at + i * n + j] = out[at + j * n + i] if is_positive else math.nan
                if i != j:
                    out[at + j * n + i] = 0.0 if is_positive else math.nan


def cholesky(count: int, n: int, x: Any, columns: Any, roots: Any, out: Any) -> None:
    """Write to out the factors: each column over its root."""
    for matrix in range(count):
        for i in range(n):
            row = (matrix * n + i) * n
            for j in range(n):
                out[row + j] = columns[row + j] / roots[matrix * n + j]


def solve_triangular(count: int, n: int, k: int, lower: int, a: Any, b: Any, out: Any) -> None:
    """Write to out (count, n, k) the solutions X of A X = B for triangular A, whose other half is not read.

    All of X is NaN where the diagonal has a 0.
    """
    for matrix in range(count):
        at = matrix * n * n
        first = matrix * n * k
        is_singular = False
        for i in range(n):
            is_singular = is_singular or a[at + i * n + i] == 0.0
        for step in range(n):
            i = step if lower else n - 1 - step
            row = first + i * k
            for c in range(k):
                out[row + c] = b[row + c]
            for before in range(step):
                j = before if lower else n - 1 - before
                factor = a[at + i * n + j]
                for c in range(k):
                    out[row + c] -= factor * out[first + j * k + c]
            for c in range(k):
                out[row + c] = math.nan if is_singular else out[row + c] / a[at + i * n + i]
