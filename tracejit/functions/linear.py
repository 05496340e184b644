# SPDX-License-Identifier: BSD-3-Clause
"""Matrix products and others that come down to them, such as dot and tensordot; diagonals and triangles."""

import math
import string
from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.aval import Aval
from tracejit.errors import ArgumentError, BoundsError, DimsError
from tracejit.functions import selecting
from tracejit.functions.axes import drop_axes, normalize_axis
from tracejit.functions.contraction import sum_of_products
from tracejit.functions.diagonals import diagonal_view
from tracejit.functions.formats import describe_sizes
from tracejit.functions.movement import relabel, reshaped
from tracejit.ops import OPS
from tracejit.record.selections import Selections
from tracejit.util.arguments import as_index, check_room, check_sizes, integer
from tracejit.util.text import brief


def matmul(x: Any, y: Any) -> dlarray:
    """Return the matrix product, as ``x @ y`` of NumPy.

    Args:
        x: dlarray, ndarray or list: matrices in the last two axes, the others are batch axes; or a vector,
            which is taken for one row.
        y: likewise; a vector is taken for one column.

    Returns:
        dlarray with batch axes broadcast, rows of `x` and columns of `y`; the axis that was added to a vector
        goes away again. Labels: rows from `x`, columns from `y`, batch axes from both by position. An
        operand without format gives U; without any format the result has none.

    Raises:
        DimsError: an operand is a scalar, the columns of `x` and the rows of `y` differ, or labels clash.

    Adjoint: ct y' and x' ct, summed over broadcast batch axes.

    >>> import numpy as np
    >>> import tracejit as tj
    >>> tj.dlarray(np.ones((2, 3)), "BC") @ np.ones((3, 1))
    2(B) x 1(U) dlarray float64
    [[3.]
     [3.]]
    """
    first, second = as_array(x, "matmul"), as_array(y, "matmul", "y")
    for name, array in (("x", first), ("y", second)):
        if array._data.ndim == 0:
            raise DimsError(f"matmul: {name} is a scalar, but a product of matrices needs axes; use x * y.")
    if Selections.met and (found := selecting.product(first, second)) is not None:
        return found
    vectors = (first._data.ndim == 1, second._data.ndim == 1)
    if not any(vectors):
        return _matmul(first, second)
    columns, rows = first._data.shape[-1], second._data.shape[0 if vectors[1] else -2]
    if columns != rows:
        raise DimsError(
            f"matmul: x ({describe_sizes(first)}) has {columns} {'elements' if vectors[0] else 'columns'}, but "
            f"y ({describe_sizes(second)}) has {rows} {'elements' if vectors[1] else 'rows'}; "
            "these must be equal."
        )
    if all(vectors):
        # A product and a sum fuse with what is around them; a matrix product of 1 x k and k x 1 does not.
        return sum_of_products("matmul", [first, second], ["a", "a"], "")
    if vectors[0]:
        row = reshaped(first, (1, columns), first._format and "U" + first._format)
        product = _matmul(row, second)
        return drop_axes(product, (product._data.ndim - 2,))
    column = reshaped(second, (rows, 1), second._format and second._format + "U")
    product = _matmul(first, column)
    return drop_axes(product, (product._data.ndim - 1,))


def _matmul(x: Any, y: Any) -> dlarray:
    """Return the product of operands with 2 or more axes each."""
    shape = x._data.shape
    if len(shape) == 2 or y._data.ndim != 2:
        return apply("matmul", x, y)
    # One product of all rows, and one in the adjoint of y instead of a batch of them that is summed.
    aval = OPS["matmul"].infer(
        Aval(shape, x._format, x._data.dtype), Aval(y._data.shape, y._format, y._data.dtype)
    )
    assert isinstance(aval, Aval)
    rows = reshaped(x, (math.prod(shape[:-1]), shape[-1]), None)
    return reshaped(apply("matmul", rows, relabel(y, None)), aval.shape, aval.format)


def dot(x: Any, y: Any) -> dlarray:
    """Return the dot product, as ``numpy.dot``: over the last axis of `x` and the second last of `y`.

    Args:
        x: dlarray, ndarray, list or number.
        y: likewise. If either is a scalar, the result is ``x * y``; a vector `y` gives its only axis.

    Returns:
        dlarray with the other axes of `x`, then those of `y`, and their labels.

    Raises:
        DimsError: the sizes of the two axes differ, or a label would repeat.

    >>> import tracejit as tj
    >>> float(tj.dot([1.0, 2.0], [3.0, 4.0]))
    11.0
    """
    first, second = as_array(x, "dot"), as_array(y, "dot", "y")
    if first._data.ndim == 0 or second._data.ndim == 0:
        return apply("mul", first, second)
    if Selections.met and (found := selecting.product(first, second)) is not None:
        return found
    other = max(second._data.ndim - 2, 0)
    return _contract("dot", first, second, (first._data.ndim - 1,), (other,))


def vdot(x: Any, y: Any) -> dlarray:
    """Return the sum of the products of all elements, as ``numpy.vdot``; those of `x` are conjugated.

    Args:
        x: dlarray, ndarray, list or number.
        y: likewise, with as many elements; both are read in C order, without regard to labels.

    Returns:
        scalar dlarray.

    Raises:
        DimsError: the numbers of elements differ.

    >>> import tracejit as tj
    >>> float(tj.vdot([[1.0], [2.0]], [[3.0, 4.0]]))
    11.0
    """
    first, second = (_flat(as_array(operand, "vdot", name)) for operand, name in ((x, "x"), (y, "y")))
    first = conjugated(first)
    return _contract("vdot", relabel(first, None), relabel(second, None), (0,), (0,))


def conjugated(array: dlarray) -> dlarray:
    """Return the conjugates of complex numbers; an array of real ones itself."""
    return apply("conj", array) if array._data.dtype.kind == "c" else array


def _flat(array: dlarray) -> dlarray:
    """Return `array` as a vector, which keeps its label if it is one already."""
    return array if array._data.ndim == 1 else apply("reshape", array, shape=(array._data.size,))


def inner(x: Any, y: Any) -> dlarray:
    """Return the product over the last axes of both operands, as ``numpy.inner``.

    Args:
        x: dlarray, ndarray, list or number.
        y: likewise; if either is a scalar, the result is ``x * y``.

    Returns:
        dlarray with the other axes of `x`, then those of `y`, and their labels.

    Raises:
        DimsError: the sizes of the last axes differ, or a label would repeat.

    >>> import tracejit as tj
    >>> tj.inner([[1.0, 2.0], [3.0, 4.0]], [1.0, 1.0])
    2 dlarray float64
    [3. 7.]
    """
    first, second = as_array(x, "inner"), as_array(y, "inner", "y")
    if first._data.ndim == 0 or second._data.ndim == 0:
        return apply("mul", first, second)
    return _contract("inner", first, second, (first._data.ndim - 1,), (second._data.ndim - 1,))


def outer(x: Any, y: Any) -> dlarray:
    """Return the products of every element of `x` with every element of `y`, as ``numpy.outer``.

    Args:
        x: dlarray, ndarray, list or number; more than one axis is read in C order.
        y: likewise.

    Returns:
        dlarray of one row for each element of `x`; vectors give their labels.

    Raises:
        DimsError: a label would repeat.

    >>> import tracejit as tj
    >>> tj.outer([1.0, 2.0], [3.0, 4.0])
    2x2 dlarray float64
    [[3. 4.]
     [6. 8.]]
    """
    first, second = (_flat(as_array(operand, "outer", name)) for operand, name in ((x, "x"), (y, "y")))
    return sum_of_products("outer", [first, second], ["a", "b"], "ab")


def tensordot(x: Any, y: Any, axes: Any = 2) -> dlarray:
    """Return the sum of products over pairs of axes, as ``numpy.tensordot``.

    Args:
        x: dlarray, ndarray or list.
        y: likewise.
        axes: a number n, for the last n axes of `x` with the first n of `y` in order; or a pair of axes or of
            sequences of axes, by number or label: those of `x` and those of `y`.

    Returns:
        dlarray with the other axes of `x`, then those of `y`, and their labels.

    Raises:
        DimsError: the sizes of a pair differ, an axis is out of range or named twice, or a label repeats.
        ArgumentError: `axes` is neither a number nor a pair.

    >>> import numpy as np
    >>> import tracejit as tj
    >>> tj.tensordot(np.ones((2, 3, 4)), np.ones((3, 4)))
    2 dlarray float64
    [12. 12.]
    """
    first, second = as_array(x, "tensordot"), as_array(y, "tensordot", "y")
    if isinstance(axes, (tuple, list)):
        if len(axes) != 2:
            raise ArgumentError(
                f"tensordot: axes must be a number or a pair (axes of x, axes of y), not {brief(axes)}."
            )
        of_x, of_y = _chosen(first, axes[0]), _chosen(second, axes[1])
    else:
        count = as_index(axes)
        if count is None:
            raise ArgumentError(
                f"tensordot: axes must be a number or a pair (axes of x, axes of y), not {brief(axes)}."
            )
        if not 0 <= count <= min(first._data.ndim, second._data.ndim):
            raise BoundsError(
                f"tensordot: axes={brief(count)}, but the operands of {describe_sizes(first)} and "
                f"{describe_sizes(second)} have {first._data.ndim} and {second._data.ndim} axes; give a number "
                "from 0 to the smaller."
            )
        of_x, of_y = tuple(range(first._data.ndim - count, first._data.ndim)), tuple(range(count))
    if len(of_x) != len(of_y) or len(set(of_x)) != len(of_x) or len(set(of_y)) != len(of_y):
        raise DimsError(
            f"tensordot: axes={brief(axes)} pairs the axes {of_x} of x with {of_y} of y; name the same "
            "number of each, none twice."
        )
    return _contract("tensordot", first, second, of_x, of_y)


def _chosen(array: Any, axes: Any) -> tuple[int, ...]:
    entries = axes if isinstance(axes, (tuple, list)) else (axes,)
    return tuple(normalize_axis("tensordot", array, entry) for entry in entries)


def _contract(function: str, x: Any, y: Any, of_x: tuple[int, ...], of_y: tuple[int, ...]) -> dlarray:
    """Return the sum of products over pairs of axes, with the other axes of x, then those of y."""
    for first, second in zip(of_x, of_y, strict=True):
        if x._data.shape[first] != y._data.shape[second]:
            raise DimsError(
                f"{function}: axis {first} of x ({describe_sizes(x)}) has size {x._data.shape[first]}, but axis "
                f"{second} of y ({describe_sizes(y)}), over which they are multiplied and summed, has size "
                f"{y._data.shape[second]}; these must be equal."
            )
    letters = string.ascii_letters[: x._data.ndim]
    others = iter(string.ascii_letters[x._data.ndim :])
    pairs = dict(zip(of_y, of_x, strict=True))
    right = "".join(letters[pairs[a]] if a in pairs else next(others) for a in range(y._data.ndim))
    result = "".join(letter for letter in letters if letter not in right)
    result += "".join(letter for letter in right if letter not in letters)
    return sum_of_products(function, [x, y], [letters, right], result)


def _matrix(function: str, x: Any) -> dlarray:
    array = as_array(x, function)
    if array._data.ndim < 2:
        raise DimsError(
            f"{function}: x of {describe_sizes(array)} has {array._data.ndim} axes, but a matrix has at least 2."
        )
    return array


def _triangle(shape: tuple[int, ...], k: int) -> np.ndarray:
    """Return where the lower triangle of a matrix of the last two sizes of `shape` is, up to its diagonal `k`."""
    rows, columns = shape[-2:]
    # Beyond the corners all or nothing is kept, however far: NumPy takes no larger numbers.
    triangle: np.ndarray = np.tri(rows, columns, max(-rows - 1, min(k, columns)), dtype=bool)
    return triangle


def _spread(x: Any, function: str) -> dlarray:
    """Return an array, a vector as many times as it has elements."""
    array = as_array(x, function)
    if array._data.ndim != 1:
        return array
    rows: dlarray = apply(
        "broadcast_to", dlarray._wrap(array._data, None, array._value), shape=(array._data.size,) * 2
    )
    return rows


def trace(x: Any, offset: int = 0) -> dlarray:
    """Return the sum along a diagonal of the first two axes, as ``numpy.trace``, by which it is called.

    Args:
        x: dlarray, ndarray or list with 2 or more axes.
        offset: which diagonal: 0 the main one, positive above it, negative below.

    Returns:
        dlarray with the other axes and their labels.

    Raises:
        DimsError: `x` has fewer than two axes.

    >>> import numpy as np
    >>> import tracejit as tj
    >>> float(np.trace(tj.dlarray([[1.0, 2.0], [3.0, 4.0]])))
    5.0
    """
    array = _matrix("trace", x)
    diagonal = diagonal_view(relabel(array, None), 0, 1, integer("trace", "offset", offset))
    total = apply("sum", diagonal, axes=(diagonal._data.ndim - 1,), keepdims=False)
    return relabel(total, array._format and array._format[2:])


def diag(x: Any, k: int = 0) -> dlarray:
    """Return the diagonal of a matrix, or the matrix that has a vector on its diagonal, as ``numpy.diag``.

    Args:
        x: dlarray, ndarray or list: a matrix or a vector.
        k: which diagonal: 0 the main one, positive above it, negative below.

    Returns:
        unformatted dlarray: of a matrix a vector, of a vector a matrix.

    Raises:
        DimsError: `x` has neither one nor two axes.

    >>> import tracejit as tj
    >>> tj.diag([[1.0, 2.0], [3.0, 4.0]])
    2 dlarray float64
    [1. 4.]
    """
    array = relabel(as_array(x, "diag"), None)
    k = integer("diag", "k", k)
    if array._data.ndim == 2:
        return diagonal_view(array, 0, 1, k)
    if array._data.ndim != 1:
        raise DimsError(f"diag: x of {describe_sizes(array)} must be a vector or a matrix.")
    # Padding moves a vector of n to the place where its diagonal meets the rows of an (n + |k|) square.
    extent = array._data.size + abs(k)
    check_room("diag", check_sizes("diag", "the result", (extent, extent)), array._data.dtype)
    before = (max(-k, 0), max(k, 0))
    placed = apply("pad", array, widths=(before,), value=0.0)
    column = reshaped(placed, (placed._data.size, 1), None)
    zero = np.zeros((), array._data.dtype)
    return apply("where", np.eye(placed._data.size, k=k, dtype=bool), column, zero)


def tril(x: Any, k: int = 0) -> dlarray:
    """Return the lower triangles of matrices in the last two axes, zeros above, as ``numpy.tril``.

    Args:
        x: dlarray, ndarray or list; a vector stands for all rows of a square matrix.
        k: the highest diagonal that is kept: 0 the main one, positive above it, negative below.

    Returns:
        dlarray of the sizes, format and dtype of `x`.

    Raises:
        DimsError: `x` has no axis.

    >>> import tracejit as tj
    >>> tj.tril([[1.0, 2.0], [3.0, 4.0]])
    2x2 dlarray float64
    [[1. 0.]
     [3. 4.]]
    """
    array = _matrix("tril", _spread(x, "tril"))
    mask = _triangle(array._data.shape, integer("tril", "k", k))
    return apply("where", mask, array, np.zeros((), array._data.dtype))


def triu(x: Any, k: int = 0) -> dlarray:
    """Return the upper triangles of matrices in the last two axes, zeros below, as ``numpy.triu``.

    Args:
        x: dlarray, ndarray or list; a vector stands for all rows of a square matrix.
        k: the lowest diagonal that is kept: 0 the main one, positive above it, negative below.

    Returns:
        dlarray of the sizes, format and dtype of `x`.

    Raises:
        DimsError: `x` has no axis.

    >>> import tracejit as tj
    >>> tj.triu([[1.0, 2.0], [3.0, 4.0]])
    2x2 dlarray float64
    [[1. 2.]
     [0. 4.]]
    """
    array = _matrix("triu", _spread(x, "triu"))
    mask = _triangle(array._data.shape, integer("triu", "k", k) - 1)
    return apply("where", mask, np.zeros((), array._data.dtype), array)
