# SPDX-License-Identifier: BSD-3-Clause
"""Matrix products and what is made of them: dot, tensordot, einsum; diagonals and triangles."""

import math
import string
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.aval import Aval, describe_shape
from tracejit.errors import ArgumentError, DimsError
from tracejit.functions.axes import drop_axes, normalize_axis
from tracejit.functions.movement import relabel
from tracejit.ops import OPS
from tracejit.ops.linear import check_unique, join_labels
from tracejit.util.arguments import as_index, check_room, check_sizes, integer, is_option
from tracejit.util.text import brief


def _describe(array: Any) -> str:
    return describe_shape(array._data.shape, array._format)


def _reshape(array: dlarray, shape: tuple[int, ...]) -> dlarray:
    return array if array._data.shape == shape else apply("reshape", array, shape=shape)


def _transpose(array: dlarray, axes: tuple[int, ...]) -> dlarray:
    return array if axes == tuple(range(len(axes))) else apply("transpose", array, axes=axes)


def _cast(array: dlarray, dtype: np.dtype) -> dlarray:
    return array if array._data.dtype == dtype else apply("cast", array, dtype=dtype)


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
    vectors = (first._data.ndim == 1, second._data.ndim == 1)
    if not any(vectors):
        return _matmul(first, second)
    columns, rows = first._data.shape[-1], second._data.shape[0 if vectors[1] else -2]
    if columns != rows:
        raise DimsError(
            f"matmul: x ({_describe(first)}) has {columns} {'elements' if vectors[0] else 'columns'}, but "
            f"y ({_describe(second)}) has {rows} {'elements' if vectors[1] else 'rows'}; "
            "these must be equal."
        )
    if all(vectors):
        # A product and a sum fuse with what is around them; a matrix product of 1 x k and k x 1 does not.
        return _einsum("matmul", [first, second], ["a", "a"], "")
    if vectors[0]:
        row = _reshape(first, (1, columns))
        product = _matmul(relabel(row, first._format and "U" + first._format), second)
        return drop_axes(product, (product._data.ndim - 2,))
    column = _reshape(second, (rows, 1))
    product = _matmul(first, relabel(column, second._format and second._format + "U"))
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
    rows = _reshape(relabel(x, None), (math.prod(shape[:-1]), shape[-1]))
    return relabel(_reshape(apply("matmul", rows, relabel(y, None)), aval.shape), aval.format)


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
    return _einsum("outer", [first, second], ["a", "b"], "ab")


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
            raise DimsError(
                f"tensordot: axes={brief(count)}, but the operands of {_describe(first)} and {_describe(second)} "
                f"have {first._data.ndim} and {second._data.ndim} axes; give a number from 0 to the smaller."
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
                f"{function}: axis {first} of x ({_describe(x)}) has size {x._data.shape[first]}, but axis "
                f"{second} of y ({_describe(y)}), over which they are multiplied and summed, has size "
                f"{y._data.shape[second]}; these must be equal."
            )
    letters = string.ascii_letters[: x._data.ndim]
    others = iter(string.ascii_letters[x._data.ndim :])
    pairs = dict(zip(of_y, of_x, strict=True))
    right = "".join(letters[pairs[a]] if a in pairs else next(others) for a in range(y._data.ndim))
    result = "".join(letter for letter in letters if letter not in right)
    result += "".join(letter for letter in right if letter not in letters)
    return _einsum(function, [x, y], [letters, right], result)


def einsum(subscripts: str, *operands: Any, optimize: Any = True) -> dlarray:
    """Return a sum of products by Einstein's convention, as ``numpy.einsum``.

    Args:
        subscripts: one letter for each axis of each operand, operands separated by commas, then "->" and
            the letters of the result: "bij,bjk->bik". Letters that are not in the result are summed over. A
            letter that an operand has twice means its diagonal. "..." stands for further axes, which
            broadcast.
            Without "->" the result has "..." and the letters that occur once, in alphabetical order.
        operands: dlarrays, ndarrays or lists, one for each comma-separated term.
        optimize: accepted for compatibility; the order is always optimized.

    Returns:
        dlarray; the label of each axis is that of the axes with its letter, U where they have none.

    Raises:
        ArgumentError: `subscripts` is malformed or does not have a term for each operand.
        DimsError: letters and axes do not fit, or labels clash.

    It is computed as matrix products where two operands share letters that are summed over; three and more
    operands are taken in the order that ``numpy.einsum_path`` finds.

    >>> import numpy as np
    >>> import tracejit as tj
    >>> tj.einsum("ij,kj->ki", np.ones((2, 3)), np.ones((1, 3)))
    1x2 dlarray float64
    [[3. 3.]]
    """
    if not isinstance(subscripts, str):
        raise ArgumentError(
            "einsum: subscripts come first, as a string such as 'ij,jk->ik', not "
            f"{type(subscripts).__name__}; write lists of axis numbers as letters."
        )
    if not isinstance(optimize, (bool, list, tuple)) and not is_option(optimize, ("greedy", "optimal")):
        raise ArgumentError(
            "einsum: optimize must be True, False, 'greedy', 'optimal' or a path of numpy.einsum_path, not "
            f"{brief(optimize)}."
        )
    arrays = [as_array(operand, "einsum", f"operands[{number}]") for number, operand in enumerate(operands)]
    terms, result = _parse(subscripts, arrays)
    return _einsum("einsum", arrays, terms, result)


def _parse(subscripts: str, arrays: Sequence[Any]) -> tuple[list[str], str]:
    """Return the letters of each operand and of the result, with letters in the place of "..."."""
    text = subscripts.replace(" ", "")
    left, arrow, result = text.partition("->")
    terms = left.split(",")
    for term in (*terms, result):
        rest = term.replace("...", "", 1)
        if not (rest.isascii() and (rest.isalpha() or not rest)):
            raise ArgumentError(
                f"einsum: {term!r} in subscripts {subscripts!r} is not made of letters with at most one "
                "'...'."
            )
    if len(terms) != len(arrays):
        raise ArgumentError(
            f"einsum: subscripts {subscripts!r} have {len(terms)} terms for {len(arrays)} operands; separate "
            "one term for each operand by commas."
        )
    unused = [letter for letter in string.ascii_letters if letter not in text]
    widest = 0
    for number, (term, array) in enumerate(zip(terms, arrays, strict=True)):
        named = len(term.replace("...", "", 1))
        extra = array._data.ndim - named
        if extra < 0 or (extra and "..." not in term):
            raise DimsError(
                f"einsum: the term {term!r} names {named} axes, but operand {number} is of "
                f"{_describe(array)}, with {array._data.ndim} axes; write one letter for each axis, or "
                "'...' for further ones."
            )
        if "..." in term:
            widest = max(widest, extra)
    if widest > len(unused):
        raise ArgumentError(
            f"einsum: subscripts {subscripts!r} and its '...' need more letters than there are."
        )
    ellipsis = "".join(unused[:widest])
    expanded = []
    for term, array in zip(terms, arrays, strict=True):
        extra = array._data.ndim - len(term.replace("...", "", 1))
        expanded.append(term.replace("...", ellipsis[widest - extra :]))
    if not arrow:
        named_once = sorted(letter for letter in set(left) if letter.isalpha() and left.count(letter) == 1)
        return expanded, ellipsis + "".join(named_once)
    if widest and "..." not in result:
        raise ArgumentError(
            f"einsum: '...' stands for {widest} axes in the operands of {subscripts!r}, but the result has "
            "none; add '...' to the result, or name the axes to sum over them."
        )
    for letter in result.replace("...", ""):
        if result.count(letter) > 1 or letter not in left:
            problem = "occurs twice in the result" if letter in left else "is in no operand"
            raise ArgumentError(f"einsum: the letter {letter!r} of subscripts {subscripts!r} {problem}.")
    return expanded, result.replace("...", ellipsis)


class _Term(NamedTuple):
    """An unformatted array and a letter for each of its axes."""

    array: dlarray
    letters: str

    def size(self, letter: str) -> int:
        return self.array.shape[self.letters.index(letter)]


def _einsum(function: str, arrays: Sequence[Any], letters: Sequence[str], result: str) -> dlarray:
    """Return the sum of products of arrays over the letters that are not in `result`."""
    sizes = _sizes(function, arrays, letters)
    format = _result_format(function, arrays, letters, result)
    dtype = np.result_type(*[array._data.dtype for array in arrays])
    terms = []
    for array, names in zip(arrays, letters, strict=True):
        term = _diagonals(_Term(_cast(relabel(array, None), dtype), names))
        # An axis of size 1 that meets a larger one is left out: the product broadcasts it.
        kept = "".join(n for n in term.letters if term.size(n) == sizes[n])
        terms.append(_Term(_reshape(term.array, tuple(sizes[n] for n in kept)), kept))
    for places in _path(terms, result):
        chosen = [terms[place] for place in places]
        terms = [term for place, term in enumerate(terms) if place not in places]
        product = chosen[0]
        for number, other in enumerate(chosen[1:], start=2):
            needed = set(result).union(*[t.letters for t in terms], *[t.letters for t in chosen[number:]])
            product = _product(product, other, needed)
        terms.append(product)
    final = _sum_out(terms[0], set(result))
    array = _transpose(final.array, tuple(final.letters.index(n) for n in result))
    return relabel(array, format)


def _sizes(function: str, arrays: Sequence[Any], letters: Sequence[str]) -> dict[str, int]:
    """Return the size of each letter, or raise a DimsError where axes of one letter do not fit."""
    sizes: dict[str, int] = {}
    for array, names in zip(arrays, letters, strict=True):
        own: dict[str, int] = {}
        for name, extent in zip(names, array._data.shape, strict=True):
            have = sizes.get(name, 1)
            if own.setdefault(name, extent) != extent or (extent != have and 1 not in (extent, have)):
                raise DimsError(
                    f"{function}: axes of sizes {own[name] if own[name] != extent else have} and {extent} "
                    f"have the letter {name!r} in operands of {' and '.join(map(_describe, arrays))} with "
                    f"the letters {','.join(letters)}; axes of one letter must be equal in size."
                )
            sizes[name] = extent if have == 1 else have
    return sizes


def _result_format(function: str, arrays: Sequence[Any], letters: Sequence[str], result: str) -> str | None:
    if all(array._format is None for array in arrays):
        return None
    text = " and ".join(map(_describe, arrays))
    labels = dict.fromkeys(result, "U")
    for array, names in zip(arrays, letters, strict=True):
        for name, label in zip(names, array._format or "", strict=False):
            if name in labels:
                labels[name] = join_labels(function, labels[name], label, text)
    return check_unique(function, "".join(labels[name] for name in result), text) or None


def _path(terms: Sequence[_Term], result: str) -> Iterable[tuple[int, ...]]:
    """Return which terms to multiply, step by step; a product goes to the end of the list."""
    if len(terms) < 3:
        return [tuple(range(len(terms)))]
    subscripts = f"{','.join(term.letters for term in terms)}->{result}"
    shapes = [np.broadcast_to(np.float64(0), term.array._data.shape) for term in terms]
    path: list[tuple[int, ...]] = np.einsum_path(subscripts, *shapes, optimize="greedy")[0][1:]
    return path


def _diagonals(term: _Term) -> _Term:
    """Return a term in which every letter occurs once, by taking diagonals."""
    array, names = term
    for name in dict.fromkeys(names):
        while names.count(name) > 1:
            first = names.index(name)
            second = names.index(name, first + 1)
            array = diagonal_view(array, first, second, 0)
            names = names[:first] + names[first + 1 : second] + names[second + 1 :] + name
    return _Term(array, names)


def diagonal_view(array: dlarray, first: int, second: int, offset: int) -> dlarray:
    """Return the diagonal of two axes as the last axis of an unformatted array, as a strided view."""
    shape = array._data.shape
    others = tuple(axis for axis in range(len(shape)) if axis not in (first, second))
    rows, columns = shape[first], shape[second]
    length = max(min(rows - max(-offset, 0), columns - max(offset, 0)), 0)
    lead = tuple(shape[axis] for axis in others)
    flat = _reshape(_transpose(array, (*others, first, second)), (*lead, rows * columns))
    start = offset if offset > 0 else -offset * columns
    step = columns + 1
    if length == 0:
        start = 0
    return apply(
        "slice",
        flat,
        starts=(0,) * len(lead) + (start,),
        stops=(*lead, start + (length - 1) * step + 1 if length else 0),
        steps=(1,) * len(lead) + (step,),
    )


def _sum_out(term: _Term, needed: set[str]) -> _Term:
    """Return a term summed over the letters that are not in `needed`."""
    axes = tuple(axis for axis, name in enumerate(term.letters) if name not in needed)
    if not axes:
        return term
    total = apply("sum", term.array, axes=axes, keepdims=False)
    return _Term(
        _cast(total, term.array._data.dtype), "".join(name for name in term.letters if name in needed)
    )


def _product(x: _Term, y: _Term, needed: set[str]) -> _Term:
    """Return the product of two terms, summed over the letters that are not in `needed`."""
    x = _sum_out(x, needed | set(y.letters))
    y = _sum_out(y, needed | set(x.letters))
    summed = "".join(n for n in x.letters if n in y.letters and n not in needed)
    batch = "".join(n for n in x.letters if n in y.letters and n in needed)
    rows = "".join(n for n in x.letters if n not in y.letters)
    columns = "".join(n for n in y.letters if n not in x.letters)
    if not summed or not (rows or columns):
        # No matrix product is in it, and elementwise code fuses with what is around.
        letters = x.letters + columns
        return _sum_out(_Term(apply("mul", _spread(x, letters), _spread(y, letters)), letters), needed)
    lead = tuple(x.size(n) for n in batch)
    outer_sizes = tuple(x.size(n) for n in rows), tuple(y.size(n) for n in columns)
    inner_size = math.prod(x.size(n) for n in summed)
    first = _reshape(_ordered(x, batch + rows + summed), (*lead, math.prod(outer_sizes[0]), inner_size))
    second = _reshape(_ordered(y, batch + summed + columns), (*lead, inner_size, math.prod(outer_sizes[1])))
    product = _reshape(apply("matmul", first, second), (*lead, *outer_sizes[0], *outer_sizes[1]))
    return _Term(product, batch + rows + columns)


def _ordered(term: _Term, letters: str) -> dlarray:
    return _transpose(term.array, tuple(term.letters.index(name) for name in letters))


def _spread(term: _Term, letters: str) -> dlarray:
    """Return a term's array with an axis for each of `letters`, of size 1 where the term lacks it."""
    array = _ordered(term, "".join(name for name in letters if name in term.letters))
    return _reshape(array, tuple(term.size(name) if name in term.letters else 1 for name in letters))


def _matrix(function: str, x: Any) -> dlarray:
    array = as_array(x, function)
    if array._data.ndim < 2:
        raise DimsError(
            f"{function}: x of {_describe(array)} has {array._data.ndim} axes, but a matrix has at least 2."
        )
    return array


def _triangle(shape: tuple[int, ...], k: int) -> np.ndarray:
    """Return where the lower triangle of a matrix of the last two sizes of `shape` is, up to its diagonal `k`."""
    rows, columns = shape[-2:]
    # Beyond the corners all or nothing is kept, however far: NumPy takes no larger numbers.
    triangle: np.ndarray = np.tri(rows, columns, max(-rows - 1, min(k, columns)), dtype=bool)
    return triangle


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
        raise DimsError(f"diag: x of {_describe(array)} must be a vector or a matrix.")
    # Padding moves a vector of n to the place where its diagonal meets the rows of an (n + |k|) square.
    extent = array._data.size + abs(k)
    check_room("diag", check_sizes("diag", "the result", (extent, extent)), array._data.dtype)
    before = (max(-k, 0), max(k, 0))
    placed = apply("pad", array, widths=(before,), value=0.0)
    column = _reshape(placed, (placed._data.size, 1))
    zero = np.zeros((), array._data.dtype)
    return apply("where", np.eye(placed._data.size, k=k, dtype=bool), column, zero)


def tril(x: Any, k: int = 0) -> dlarray:
    """Return the lower triangles of matrices in the last two axes, zeros above, as ``numpy.tril``.

    Args:
        x: dlarray, ndarray or list with 2 or more axes.
        k: the highest diagonal that is kept: 0 the main one, positive above it, negative below.

    Returns:
        dlarray of the sizes, format and dtype of `x`.

    Raises:
        DimsError: `x` has fewer than two axes.

    >>> import tracejit as tj
    >>> tj.tril([[1.0, 2.0], [3.0, 4.0]])
    2x2 dlarray float64
    [[1. 0.]
     [3. 4.]]
    """
    array = _matrix("tril", x)
    mask = _triangle(array._data.shape, integer("tril", "k", k))
    return apply("where", mask, array, np.zeros((), array._data.dtype))


def triu(x: Any, k: int = 0) -> dlarray:
    """Return the upper triangles of matrices in the last two axes, zeros below, as ``numpy.triu``.

    Args:
        x: dlarray, ndarray or list with 2 or more axes.
        k: the lowest diagonal that is kept: 0 the main one, positive above it, negative below.

    Returns:
        dlarray of the sizes, format and dtype of `x`.

    Raises:
        DimsError: `x` has fewer than two axes.

    >>> import tracejit as tj
    >>> tj.triu([[1.0, 2.0], [3.0, 4.0]])
    2x2 dlarray float64
    [[1. 2.]
     [0. 4.]]
    """
    array = _matrix("triu", x)
    mask = _triangle(array._data.shape, integer("triu", "k", k) - 1)
    return apply("where", mask, np.zeros((), array._data.dtype), array)
