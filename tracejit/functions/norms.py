# SPDX-License-Identifier: BSD-3-Clause
"""The norms of vectors and matrices."""

import math
from typing import Any

from tracejit.array import apply, as_array, dlarray
from tracejit.aval import describe_shape
from tracejit.errors import ArgumentError, ArgumentValueError, DimsError
from tracejit.functions.axes import drop_axes, normalize_axes
from tracejit.functions.halves import in_single
from tracejit.functions.reductions import as_float, number_of, root, square_magnitude
from tracejit.functions.reductions import sum as total
from tracejit.util.arguments import flag, is_option, is_real
from tracejit.util.text import brief


@in_single
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> dlarray:
    """Return the norm of vectors or matrices, as ``numpy.linalg.norm``.

    Args:
        x: dlarray of any format, ndarray or number.
        ord: None or 2 for the root of the sum of squares, 1 for the sum of magnitudes (of a matrix the
            largest sum of a column), inf for the largest magnitude (of a matrix the largest sum of a row),
            "fro" for the root of the sum of squares of a matrix.
        axis: an axis for vectors; a pair of axes (rows, columns) for matrices, or a string of labels. None
            for all elements where `ord` is None, else the array must be a vector or a matrix.
        keepdims: keep the reduced axes with size 1.

    Returns:
        dlarray of floating-point dtype with the labels of the axes that stay.

    Raises:
        DimsError: an axis is out of range or named twice, a label is not in the format, or `ord` does not
            apply to that many axes.
        ArgumentError: `ord` is none of those, or it is 2 for matrices, which needs singular values.

    The derivative of the root of a sum of squares at 0 is taken as 0.

    Examples:
        >>> import tracejit as tj
        >>> float(tj.norm([3.0, 4.0]))
        5.0
    """
    array = as_float(as_array(x, "norm"))
    axes = normalize_axes("norm", array, axis)
    keepdims = flag("norm", "keepdims", keepdims)
    kind = _kind_of_norm(array, ord, axis, axes)
    if kind == "root":
        squares = square_magnitude(array)
        return root(total(squares, axes, keepdims))
    magnitudes = apply("abs", array)
    if kind == "sum":
        return total(magnitudes, axes, keepdims)
    if kind == "largest":
        return _largest(magnitudes, axes, keepdims)
    # A pair is (rows, columns) as given: "(1, 0)" means the transposed matrix.
    rows, columns = axes
    if isinstance(axis, (tuple, list)) and axis[0] % array._data.ndim == columns:
        rows, columns = columns, rows
    inner, outer = (rows, columns) if kind == "columns" else (columns, rows)
    sums = apply("sum", magnitudes, axes=(inner,), keepdims=True)
    result = _largest(sums, (outer,), True)
    return result if keepdims else drop_axes(result, axes)


def _largest(magnitudes: dlarray, axes: tuple[int, ...], keepdims: bool) -> dlarray:
    """Return the maximum of numbers >= 0, which is 0 where there are none."""
    if number_of(magnitudes, axes):
        return apply("max", magnitudes, axes=axes, keepdims=keepdims)
    return apply("sum", magnitudes, axes=axes, keepdims=keepdims)


def _kind_of_norm(array: Any, ord: Any, axis: Any, axes: tuple[int, ...]) -> str:
    """Return how a norm is computed: root, sum or largest of elements; largest sum of columns or rows."""
    if ord is None:
        return "root"
    if not (is_option(ord, ("fro",)) or (is_real(ord) and ord in (1, 2, math.inf))):
        raise ArgumentValueError(f"norm: ord must be None, 1, 2, inf or 'fro', not {brief(ord)}.")
    if len(axes) == 1 and ord != "fro":
        return {1: "sum", 2: "root"}.get(ord, "largest")
    if len(axes) != 2:
        raise DimsError(
            f"norm: ord={ord!r} applies to {'matrices' if ord == 'fro' else 'vectors and matrices'}, but "
            f"axis={brief(axis)} of an array of {describe_shape(array._data.shape, array._format)} names "
            f"{len(axes)} axes; give axis, or ord=None for the root of the sum of all squares."
        )
    if ord == 2:
        raise ArgumentError(
            "norm: ord=2 of a matrix is its largest singular value, which is not supported; use ord='fro' "
            "for the root of the sum of squares, or give one axis for the norms of vectors."
        )
    return {"fro": "root", 1: "columns"}.get(ord, "rows")
