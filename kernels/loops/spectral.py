# SPDX-License-Identifier: BSD-3-Clause
"""Eigenvalues and singular values of matrices, by Jacobi rotations.

`count` matrices lie one after the other, each row by row. Roots are taken by Newton's method from above.
"""

import math
from typing import Any


def eigh(count: int, n: int, x: Any, w: Any, v: Any, work: Any) -> None:
    """Write to w the eigenvalues of symmetric matrices, whose lower half is read, and to the columns of v the vectors.

    They are in no order; work is scratch. NaN where an element is not finite.
    """
    for matrix in range(count):
        at = matrix * n * n
        largest = 0.0
        total = 0.0
        for i in range(n):
            for j in range(i + 1):
                value = x[at + i * n + j]
                work[at + i * n + j] = value
                work[at + j * n + i] = value
                v[at + i * n + j] = 1.0 if i == j else 0.0
                v[at + j * n + i] = 1.0 if i == j else 0.0
                total += value - value
                largest = max(largest, float(abs(value)))
        turned = 1 if total == 0.0 else 0
        for _sweep in range(60):
            if turned == 0:
                break
            turned = 0
            for p in range(n):
                for q in range(p + 1, n):
                    beside = float(work[at + p * n + q])
                    if abs(beside) > 1e-18 * largest:
                        turned = 1
                        ratio = (float(work[at + q * n + q]) - float(work[at + p * n + p])) / (2.0 * beside)
                        size = abs(ratio)
                        t = 0.5 / size if size > 1e9 else 0.0
                        if size <= 1e9:
                            root = 1.0 + size
                            for _step in range(6):
                                root = 0.5 * (root + (1.0 + size * size) / root)
                            t = 1.0 / (size + root)
                        root = 1.0 + t
                        for _step in range(6):
                            root = 0.5 * (root + (1.0 + t * t) / root)
                        t = -t if ratio < 0.0 else t
                        c = 1.0 / root
                        s = t * c
                        for i in range(n):
                            left = work[at + i * n + p]
                            right = work[at + i * n + q]
                            work[at + i * n + p] = c * left - s * right
                            work[at + i * n + q] = s * left + c * right
                            left = v[at + i * n + p]
                            right = v[at + i * n + q]
                            v[at + i * n + p] = c * left - s * right
                            v[at + i * n + q] = s * left + c * right
                        for i in range(n):
                            left = work[at + p * n + i]
                            right = work[at + q * n + i]
                            work[at + p * n + i] = c * left - s * right
                            work[at + q * n + i] = s * left + c * right
                        work[at + p * n + q] = 0.0
                        work[at + q * n + p] = 0.0
        for i in range(n):
            w[matrix * n + i] = work[at + i * n + i] if total == 0.0 else math.nan


def svd_columns(count: int, m: int, n: int, single: int, x: Any, u: Any, s: Any, v: Any) -> None:
    """Write to s the squares of singular values, m >= n, to u the vectors times the values, to v the vectors of rows.

    They are in no order. The columns of u are turned until they are orthogonal. NaN where an element is not finite.
    """
    small = 1e-14 if single else 1e-31
    for matrix in range(count):
        at = matrix * m * n
        side = matrix * n * n
        wrong = 0.0
        total = 0.0
        for i in range(m * n):
            u[at + i] = x[at + i]
            wrong += x[at + i] - x[at + i]
            total += float(x[at + i]) * x[at + i]
        for i in range(n * n):
            v[side + i] = 1.0 if i % (n + 1) == 0 else 0.0
        turned = 1 if wrong == 0.0 else 0
        for _sweep in range(60):
            if turned == 0:
                break
            turned = 0
            for p in range(n):
                for q in range(p + 1, n):
                    a = 0.0
                    b = 0.0
                    g = 0.0
                    for i in range(m):
                        left = float(u[at + i * n + p])
                        right = float(u[at + i * n + q])
                        a += left * left
                        b += right * right
                        g += left * right
                    if g * g > small * a * b and min(a, b) > small * total:
                        turned = 1
                        ratio = (b - a) / (2.0 * g)
                        size = abs(ratio)
                        t = 0.5 / size if size > 1e9 else 0.0
                        if size <= 1e9:
                            root = 1.0 + size
                            for _step in range(6):
                                root = 0.5 * (root + (1.0 + size * size) / root)
                            t = 1.0 / (size + root)
                        root = 1.0 + t
                        for _step in range(6):
                            root = 0.5 * (root + (1.0 + t * t) / root)
                        t = -t if ratio < 0.0 else t
                        cosine = 1.0 / root
                        sine = t * cosine
                        for i in range(m):
                            left = u[at + i * n + p]
                            right = u[at + i * n + q]
                            u[at + i * n + p] = cosine * left - sine * right
                            u[at + i * n + q] = sine * left + cosine * right
                        for i in range(n):
                            left = v[side + i * n + p]
                            right = v[side + i * n + q]
                            v[side + i * n + p] = cosine * left - sine * right
                            v[side + i * n + q] = sine * left + cosine * right
        for j in range(n):
            a = 0.0
            for i in range(m):
                a += float(u[at + i * n + j]) * u[at + i * n + j]
            s[matrix * n + j] = a if wrong == 0.0 else math.nan


def svd(
    count: int,
    m: int,
    n: int,
    single: int,
    x: Any,
    columns: Any,
    sizes: Any,
    turns: Any,
    u: Any,
    s: Any,
    v: Any,
) -> None:
    """Write to u the columns over their sizes, to s the sizes, to v the turns.

    The column of a size that is 0, up to rounding, is made of an axis: what all columns before and all large ones leave
    of it.
    """
    small = 2e-6 if single else 4e-15  # 16 units of rounding
    for matrix in range(count):
        at = matrix * m * n
        for i in range(n * n):
            v[matrix * n * n + i] = turns[matrix * n * n + i]
        largest = 0.0
        for j in range(n):
            s[matrix * n + j] = sizes[matrix * n + j]
            largest = max(largest, float(sizes[matrix * n + j]))
        for j in range(n):
            size = float(sizes[matrix * n + j])
            is_small = size <= small * largest
            for i in range(m):
                u[at + i * n + j] = 0.0 if is_small else columns[at + i * n + j] / size
        for j in range(n):
            left = 0.0 if float(sizes[matrix * n + j]) <= small * largest else 1.0
            for axis in range(m):
                if left * m >= 0.9:
                    break
                for i in range(m):
                    u[at + i * n + j] = 1.0 if i == axis else 0.0
                for _twice in range(2):
                    for k in range(n):
                        along = 0.0
                        if k != j:
                            for i in range(m):
                                along += float(u[at + i * n + k]) * u[at + i * n + j]
                            for i in range(m):
                                u[at + i * n + j] -= along * u[at + i * n + k]
                left = 0.0
                for i in range(m):
                    left += float(u[at + i * n + j]) * u[at + i * n + j]
                root = 1.0
                for _step in range(60):
                    root = 0.5 * (root + left / root)
                for i in range(m):
                    u[at + i * n + j] /= root if left * m >= 0.9 else 1.0
