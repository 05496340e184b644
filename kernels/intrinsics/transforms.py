# SPDX-License-Identifier: BSD-3-Clause
"""Products of the matrices of Winograd's method (kernels/winograd.py) and tiles, whose rows are vectors.

    winograd_seen_6_f32x16(tile)            6 rows for 6; winograd_seen_adjoint_6 by the transposed matrix
    winograd_filter_3_6_f32x16(tile)        6 rows for 3, which are taps; winograd_sums_3_6 4 rows for 6
    winograd_sums_adjoint_3_6_f32x16(tile)  by the transposed matrix, 6 rows for 4; winograd_filter_adjoint_3_6 3 for 6

For 2 taps there are 5 rows instead of 6, for 5 taps also 8. Points come in pairs p and -p, so that two rows of
such a matrix have the same even columns, and odd columns that differ in sign; or two columns the same even rows. What
both have in common is computed once.
"""

from typing import Any

from numba.core import cgutils, types
from numba.core.typing import signature
from numba.extending import intrinsic

from ..winograd import TRANSFORMS, Matrix
from .vectors import Vector, call

_LANES = (4, 8, 16)
_PAIRS = {5: ((0, 1), (2, 3)), 6: ((1, 2), (3, 4)), 8: ((1, 2), (3, 4), (5, 6))}
"""The places of the points p and -p, by the number of points; infinity is the last, 0 the first of 6 and 8."""

Terms = list[tuple[float, Any]]


class _LinearCombinations:
    """Sums of vectors times numbers."""

    def __init__(self, builder: Any, vector: Vector) -> None:
        self.builder = builder
        self.vector = vector

    def _splat(self, number: float) -> Any:
        return self.vector.llvm([number] * self.vector.lanes)

    def add(self, terms: Terms, start: Any = None) -> Any:
        """Return the sum of the terms whose factor is not 0, after `start`."""
        terms = [(factor, value) for factor, value in terms if factor]
        total = start
        for factor, value in sorted(terms, key=lambda term: term[0] != 1):
            if total is None:
                total = value if factor == 1 else self.builder.fmul(value, self._splat(factor))
            elif factor == 1:
                total = self.builder.fadd(total, value)
            else:
                args = [value, self._splat(factor), total]
                total = call(self.builder, f"llvm.fmuladd.{self.vector.mangled}", self.vector.llvm, args)
        return total


def _has_pairs(matrix: Matrix) -> bool:
    """Return whether rows of a pair differ only in signs; otherwise columns do."""
    sizes = [[abs(number) for number in row] for row in matrix]
    return len(sizes) in _PAIRS and all(sizes[i] == sizes[j] for i, j in _PAIRS[len(sizes)])


def _by_rows(sums: _LinearCombinations, matrix: Matrix, rows: list[Any]) -> list[Any]:
    found = _PAIRS[len(matrix)]
    *first_result, last_result = (
        sums.add(list(zip(numbers, rows, strict=True))) for numbers in (*matrix[: found[0][0]], matrix[-1])
    )
    pairs = []
    for first, _ in found:
        terms = list(zip(matrix[first], rows, strict=True))
        even = sums.add(terms[::2])
        scale = next(factor for factor, _ in reversed(terms[1::2]) if factor)
        odd = sums.add([(factor / scale, value) for factor, value in terms[1::2]])
        pairs += [sums.add([(scale, odd)], even), sums.add([(-scale, odd)], even)]
    return [*first_result, *pairs, last_result]


def _by_columns(sums: _LinearCombinations, matrix: Matrix, rows: list[Any]) -> list[Any]:
    builder = sums.builder
    found = _PAIRS[len(rows)]
    single = (*range(found[0][0]), -1)
    together = [
        (builder.fadd(rows[first], rows[second]), builder.fsub(rows[first], rows[second]))
        for first, second in found
    ]
    results = []
    for row, numbers in enumerate(matrix):
        terms = [(numbers[i], rows[i]) for i in single]
        terms += [(numbers[first], pair[row % 2]) for (first, _), pair in zip(found, together, strict=True)]
        results.append(sums.add(terms))
    return results


def _transform(matrix: Matrix, lanes: int) -> Any:
    vector = Vector(types.float32, lanes)
    kind = types.UniTuple(vector, len(matrix[0]))

    @intrinsic
    def transform(typing_context: Any, tile: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            multiply = _by_rows if _has_pairs(matrix) else _by_columns
            rows = multiply(
                _LinearCombinations(builder, vector), matrix, cgutils.unpack_tuple(builder, args[0])
            )
            return context.make_tuple(builder, sig.return_type, rows)

        return (signature(types.UniTuple(vector, len(matrix)), tile), codegen) if tile == kind else None

    return transform


FUNCTIONS: dict[str, Any] = {
    f"{name}_f32x{lanes}": _transform(matrix, lanes)
    for name, matrix in TRANSFORMS.items()
    for lanes in _LANES
}
