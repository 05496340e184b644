# SPDX-License-Identifier: BSD-3-Clause
"""Determinants and products of matrices as sums and products of parts, in an efficient order."""

from itertools import combinations
from math import prod
from typing import Any

from tracejit.array import dlarray
from tracejit.functions import linear

_MOST = 8  # rows of a small block: derivatives of the determinant of a larger one are 0 up to this order


def expanded(x: dlarray) -> dlarray:
    """Return determinants as sums of products, row by row: the minor of each set of columns is needed once."""
    n = x.shape[-1]
    if n > _MOST:
        return prod(x[..., i, i] for i in range(_MOST)) * 0  # type: ignore[no-any-return]
    minors: dict[frozenset[int], Any] = {frozenset(): 1.0}
    for row in range(n):
        found: dict[frozenset[int], Any] = {}
        for columns in map(frozenset, combinations(range(n), row + 1)):
            terms = [
                x[..., row, column]
                * minors[columns - {column}]
                * (-1.0) ** (sum(c > column for c in columns))
                for column in sorted(columns)
            ]
            found[columns] = sum(terms[1:], terms[0])
        minors = found
    return minors[frozenset(range(n))]  # type: ignore[no-any-return]


def splits(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Return after which matrix to split each product of matrices of some sizes."""
    cost: dict[tuple[int, int], int] = {(i, i): 0 for i in range(len(sizes) - 1)}
    split = {}
    for length in range(1, len(sizes) - 1):
        for i in range(len(sizes) - 1 - length):
            j = i + length
            choices = [
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            ]
            cost[i, j], split[i, j] = min(choices)
    return split


def multiplied(given: list[dlarray], split: dict[tuple[int, int], int], i: int, j: int) -> dlarray:
    """Return the product of matrices i to j, split as given."""
    if i == j:
        return given[i]
    k = split[i, j]
    return linear.matmul(multiplied(given, split, i, k), multiplied(given, split, k + 1, j))
