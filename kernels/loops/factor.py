# SPDX-License-Identifier: BSD-3-Clause
"""Factors of matrices and what is solved with them: LU with row exchanges, Cholesky, triangular matrices.

`count` matrices lie one after the other, each row by row. Inner loops run along rows.
"""

import math
from typing import Any


def lu(count: int, n: int, x: Any, out: Any, places: Any) -> None:
    """Write to out the factors L (below the diagonal, which is 1) and U of each matrix with its rows exchanged.

    Step k exchanges row k with row places[k], the one with the largest magnitude in column k. Eight steps are made on
    their own columns first, and on those behind together, so that these are read and written once.
    """
    for matrix in range(count):
        at = matrix * n * n
        for i in range(at, at + n * n):
            out[i] = x[i]
        for first in range(0, n, 8):
            end = min(first + 8, n)
            for k in range(first, end):
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
                        for j in range(k + 1, end):
                            out[lower + j] -= factor * out[row + j]
            for i in range(first + 1, end):
                for k in range(first, i):
                    factor = out[at + i * n + k]
                    for j in range(end, n):
                        out[at + i * n + j] -= factor * out[at + k * n + j]
            row = at + first * n
            if end < n:
                for i in range(end, n):
                    lower = at + i * n
                    f0 = out[lower + first]
                    f1 = out[lower + first + 1]
                    f2 = out[lower + first + 2]
                    f3 = out[lower + first + 3]
                    f4 = out[lower + first + 4]
                    f5 = out[lower + first + 5]
                    f6 = out[lower + first + 6]
                    f7 = out[lower + first + 7]
                    for j in range(end, n):
                        rest = out[lower + j] - f0 * out[row + j] - f1 * out[row + n + j]
                        rest = rest - f2 * out[row + 2 * n + j] - f3 * out[row + 3 * n + j]
                        rest = rest - f4 * out[row + 4 * n + j] - f5 * out[row + 5 * n + j]
                        out[lower + j] = rest - f6 * out[row + 6 * n + j] - f7 * out[row + 7 * n + j]


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
        # Eight rows are subtracted together, from 64 columns at a time, which stay in the near cache.
        down = n if transposed else 1
        along = 1 if transposed else n
        for left in range(0, k, 64):
            right = min(left + 64, k)
            for turn in range(2 * n):
                i = turn if turn < n else 2 * n - 1 - turn
                begin = 0 if turn < n else i + 1
                end = i if turn < n else n
                row = at + i * along
                to = first + i * k
                for j in range(begin, end - 7, 8):
                    f0 = factors[row + j * down]
                    f1 = factors[row + (j + 1) * down]
                    f2 = factors[row + (j + 2) * down]
                    f3 = factors[row + (j + 3) * down]
                    f4 = factors[row + (j + 4) * down]
                    f5 = factors[row + (j + 5) * down]
                    f6 = factors[row + (j + 6) * down]
                    f7 = factors[row + (j + 7) * down]
                    of = first + j * k
                    for c in range(left, right):
                        rest = out[to + c] - f0 * out[of + c] - f1 * out[of + k + c]
                        rest = rest - f2 * out[of + 2 * k + c] - f3 * out[of + 3 * k + c]
                        rest = rest - f4 * out[of + 4 * k + c] - f5 * out[of + 5 * k + c]
                        out[to + c] = rest - f6 * out[of + 6 * k + c] - f7 * out[of + 7 * k + c]
                for j in range(end - (end - begin) % 8, end):
                    factor = factors[row + j * down]
                    for c in range(left, right):
                        out[to + c] -= factor * out[first + j * k + c]
                if (turn < n) == (transposed != 0):
                    pivot = factors[at + i * n + i]
                    for c in range(left, right):
                        out[to + c] = out[to + c] / pivot if pivot != 0.0 else math.nan
        for back in range(n):
            step = n - 1 - back
            other = places[matrix * n + step]
            if transposed and other != step:
                for c in range(k):
                    kept = out[first + step * k + c]
                    out[first + step * k + c] = out[first + other * k + c]
                    out[first + other * k + c] = kept


def lu_solve_vector(
    count: int, n: int, k: int, transposed: int, a: Any, factors: Any, places: Any, b: Any, out: Any
) -> None:
    """Do what lu_solve does for one right side of matrices that are not transposed.

    Sums have eight interleaved parts, because one sum would wait for each addition.
    """
    for matrix in range(count):
        at = matrix * n * n
        first = matrix * n
        for i in range(first, first + n):
            out[i] = b[i]
        for step in range(n):
            other = places[first + step]
            if other != step:
                kept = out[first + step]
                out[first + step] = out[first + other]
                out[first + other] = kept
        for turn in range(2 * n):
            i = turn if turn < n else 2 * n - 1 - turn
            begin = 0 if turn < n else i + 1
            end = i if turn < n else n
            row = at + i * n
            rest = out[first + i]
            whole = begin
            if end - begin >= 8:
                s0 = factors[row + begin] * out[first + begin]
                s1 = factors[row + begin + 1] * out[first + begin + 1]
                s2 = factors[row + begin + 2] * out[first + begin + 2]
                s3 = factors[row + begin + 3] * out[first + begin + 3]
                s4 = factors[row + begin + 4] * out[first + begin + 4]
                s5 = factors[row + begin + 5] * out[first + begin + 5]
                s6 = factors[row + begin + 6] * out[first + begin + 6]
                s7 = factors[row + begin + 7] * out[first + begin + 7]
                for j in range(begin + 8, end - 7, 8):
                    s0 += factors[row + j] * out[first + j]
                    s1 += factors[row + j + 1] * out[first + j + 1]
                    s2 += factors[row + j + 2] * out[first + j + 2]
                    s3 += factors[row + j + 3] * out[first + j + 3]
                    s4 += factors[row + j + 4] * out[first + j + 4]
                    s5 += factors[row + j + 5] * out[first + j + 5]
                    s6 += factors[row + j + 6] * out[first + j + 6]
                    s7 += factors[row + j + 7] * out[first + j + 7]
                rest -= ((s0 + s4) + (s1 + s5)) + ((s2 + s6) + (s3 + s7))
                whole = end - (end - begin) % 8
            for j in range(whole, end):
                rest -= factors[row + j] * out[first + j]
            if turn >= n:
                pivot = factors[row + i]
                rest = rest / pivot if pivot != 0.0 else math.nan
            out[first + i] = rest


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
    as rows, and transposed at the end; eight steps reach the rows behind theirs together.
    """
    for matrix in range(count):
        at = matrix * n * n
        for i in range(n):
            for j in range(i + 1):
                out[at + j * n + i] = x[at + i * n + j]
        is_positive = True
        for first in range(0, n, 8):
            end = min(first + 8, n)
            for k in range(first, end):
                row = at + k * n
                pivot = out[row + k]
                if not pivot > 0.0:
                    is_positive = False
                    break
                for i in range(k + 1, end):
                    factor = out[row + i] / pivot
                    for j in range(i, n):
                        out[at + i * n + j] -= factor * out[row + j]
            if not is_positive:
                break
            row = at + first * n
            if end < n:
                p0 = out[row + first]
                p1 = out[row + n + first + 1]
                p2 = out[row + 2 * n + first + 2]
                p3 = out[row + 3 * n + first + 3]
                p4 = out[row + 4 * n + first + 4]
                p5 = out[row + 5 * n + first + 5]
                p6 = out[row + 6 * n + first + 6]
                p7 = out[row + 7 * n + first + 7]
                for i in range(end, n):
                    f0 = out[row + i] / p0
                    f1 = out[row + n + i] / p1
                    f2 = out[row + 2 * n + i] / p2
                    f3 = out[row + 3 * n + i] / p3
                    f4 = out[row + 4 * n + i] / p4
                    f5 = out[row + 5 * n + i] / p5
                    f6 = out[row + 6 * n + i] / p6
                    f7 = out[row + 7 * n + i] / p7
                    lower = at + i * n
                    for j in range(i, n):
                        rest = out[lower + j] - f0 * out[row + j] - f1 * out[row + n + j]
                        rest = rest - f2 * out[row + 2 * n + j] - f3 * out[row + 3 * n + j]
                        rest = rest - f4 * out[row + 4 * n + j] - f5 * out[row + 5 * n + j]
                        out[lower + j] = rest - f6 * out[row + 6 * n + j] - f7 * out[row + 7 * n + j]
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
            begin = 0 if lower else i + 1
            end = i if lower else n
            row = at + i * n
            to = first + i * k
            for c in range(k):
                out[to + c] = b[to + c]
            for j in range(begin, end - 7, 8):
                f0 = a[row + j]
                f1 = a[row + j + 1]
                f2 = a[row + j + 2]
                f3 = a[row + j + 3]
                f4 = a[row + j + 4]
                f5 = a[row + j + 5]
                f6 = a[row + j + 6]
                f7 = a[row + j + 7]
                of = first + j * k
                for c in range(k):
                    rest = out[to + c] - f0 * out[of + c] - f1 * out[of + k + c]
                    rest = rest - f2 * out[of + 2 * k + c] - f3 * out[of + 3 * k + c]
                    rest = rest - f4 * out[of + 4 * k + c] - f5 * out[of + 5 * k + c]
                    out[to + c] = rest - f6 * out[of + 6 * k + c] - f7 * out[of + 7 * k + c]
            for j in range(end - (end - begin) % 8, end):
                factor = a[row + j]
                for c in range(k):
                    out[to + c] -= factor * out[first + j * k + c]
            for c in range(k):
                out[to + c] = math.nan if is_singular else out[to + c] / a[row + i]
