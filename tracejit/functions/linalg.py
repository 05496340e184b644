# SPDX-License-Identifier: BSD-3-Clause
"""Linear systems, inverses, determinants and factors of matrices, which are the last two axes of an array.

Labels: results have none.
"""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.aval import COMPLEX64, COMPLEX128, FLOAT64, is_half
from tracejit.errors import ArgumentValueError, DimsError, DTypeError, MatrixError
from tracejit.functions import elementwise, joining, linear, movement, reductions
from tracejit.functions.diagonals import diagonal_view
from tracejit.functions.expansions import expanded, multiplied, splits
from tracejit.functions.formats import in_dtype
from tracejit.functions.refusals import refuse
from tracejit.record import recorder
from tracejit.record.demands import demand
from tracejit.util.arguments import flag, integer, is_option
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.text import brief


class SlogdetResult(NamedTuple):
    """The sign of a determinant and the logarithm of its magnitude."""

    sign: dlarray
    logabsdet: dlarray


def _float(*arrays: dlarray) -> np.dtype:
    """Return the dtype of a result: float32 if all operands are, else float64."""
    return np.result_type(*(x.dtype if x.dtype.kind == "f" else FLOAT64 for x in arrays))


def matrices(function: str, argument: str, x: Any, square: bool = True) -> dlarray:
    """Return an operand without labels, of floating point, with two axes or more.

    Raises:
        MatrixError: if it has fewer axes, or its matrices are to be square and are not.
    """
    array = movement.relabel(as_array(x, function, argument), None)
    if array.ndim < 2 or (square and array.shape[-1] != array.shape[-2]):
        raise MatrixError(
            f"{function}: {argument} has shape {array.shape}, expected (..., {'n, n' if square else 'm, n'}): "
            f"{'square matrices' if square else 'matrices'} along the last two axes."
        )
    if is_half(array.dtype):
        raise DTypeError(
            f"{function}: not supported for numbers of 16 bits, as in NumPy; cast {argument} first "
            f"({argument}.astype(np.float32))."
        )
    return in_dtype(array, _float(array))


def require(holds: dlarray, function: str, what: str) -> None:
    """Raise NumPy's error unless a condition holds everywhere; in a trace that is guarded.

    Raises:
        numpy.linalg.LinAlgError: if it does not hold.
    """

    def fail() -> None:
        raise np.linalg.LinAlgError(f"{function}: {what}.")

    demand(reductions.all(holds), function, fail)


def transposed(x: dlarray) -> dlarray:
    """Return matrices with their rows and columns exchanged."""
    return movement.swapaxes(x, -1, -2)


def diagonals(x: dlarray) -> dlarray:
    """Return the diagonals of matrices."""
    return diagonal_view(x, x.ndim - 2, x.ndim - 1, 0)


def _factored(function: str, x: dlarray) -> tuple[dlarray, dlarray]:
    factors, places = apply("lu", x)
    what = "the matrix, or one of the matrices, is singular; use np.linalg.lstsq, or add a small multiple of np.eye(n)"
    require(elementwise.not_equal(diagonals(factors), 0), function, what)
    return factors, places


def _system(function: str, a: Any, b: Any) -> tuple[dlarray, dlarray, bool]:
    """Return matrices and right sides that agree in dtype, rows and batch axes; and whether b was a vector."""
    x, y = matrices(function, "a", a), movement.relabel(as_array(b, function, "b"), None)
    is_vector = _is_vector(function, x, y)
    if is_vector:
        y = movement.expand_dims(y, -1)
    dtype = _float(as_array(a), y)
    try:
        lead = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    except ValueError:
        raise DimsError(
            f"{function}: the axes before the last two of a {x.shape} and b {y.shape} do not align; aligned from the "
            "last, their sizes must be equal or 1."
        ) from None
    x = movement.expanded(in_dtype(x, dtype), (*lead, *x.shape[-2:]))
    y = movement.expanded(in_dtype(y, dtype), (*lead, *y.shape[-2:]))
    return x, y, is_vector


def _is_vector(function: str, x: dlarray, y: dlarray) -> bool:
    """Return whether the right sides of matrices are a vector.

    Raises:
        DimsError: if they and the matrices differ in the number of rows.
    """
    is_vector = y.ndim == 1
    if not y.ndim or y.shape[0 if is_vector else -2] != x.shape[-1]:
        raise DimsError(
            f"{function}: b has shape {y.shape} and a {x.shape}, expected b of shape ({x.shape[-1]},) or (..., "
            f"{x.shape[-1]}, k), with as many rows as a."
        )
    return is_vector


def _is_complex(x: Any) -> bool:
    return getattr(x, "dtype", np.dtype(bool)) in (COMPLEX64, COMPLEX128)


def of_any_numbers(function: str, argument: str, x: Any, square: bool = True) -> dlarray:
    """Return an operand as matrices() does, but complex numbers as they are."""
    if not _is_complex(x):
        return matrices(function, argument, x, square)
    array = movement.relabel(as_array(x, function, argument), None)
    matrices(function, argument, apply("real", array), square)
    return array


def _solved_by_parts(a: Any, b: Any, function: str = "solve") -> dlarray:
    """Return the solution of complex systems: that of real ones of twice the size, [[Re, -Im], [Im, Re]]."""
    given = [movement.relabel(as_array(x, function, name), None) for x, name in ((a, "a"), (b, "b"))]
    dtype = np.result_type(*(x.dtype for x in given), COMPLEX64)
    left, right = (in_dtype(x, dtype) for x in given)
    real, imag = (matrices(function, "a", apply(part, left)) for part in ("real", "imag"))
    is_vector = _is_vector(function, real, right)
    sides = [
        apply(part, movement.expand_dims(right, -1) if is_vector else right) for part in ("real", "imag")
    ]
    rows = [joining.concatenate([real, -imag], -1), joining.concatenate([imag, real], -1)]
    found = solve(joining.concatenate(rows, -2), joining.concatenate(sides, -2))
    n = real.shape[-1]
    halves = [movement.sliced(found, {found.ndim - 2: slice(*ends)}) for ends in ((0, n), (n, 2 * n))]
    return as_given(apply("complex_of", *halves), is_vector)


def as_given(x: dlarray, is_vector: bool) -> dlarray:
    """Return a solution as a vector, if the right sides were one."""
    return movement.reshape(x, x.shape[:-1]) if is_vector else x


def solve(a: Any, b: Any) -> dlarray:
    """Return the solution X of the linear systems A X = B.

    Args:
        a: square matrices, (..., n, n).
        b: a vector (n,), or right sides (..., n, k). Axes before the last two are broadcast with those of `a`.

    Returns:
        dlarray without labels, as large as `b` with the axes of both before the last two; float32 if both are.

    Raises:
        DimsError: if the sizes do not fit.
        numpy.linalg.LinAlgError: if a matrix is singular.

    A is factored as P A = L U once, also for derivatives: with C = A'^-1 ct they are C for `b` and -C X' for `a`.

    >>> import tracejit as tj
    >>> tj.solve([[3.0, 1.0], [1.0, 2.0]], [9.0, 8.0]).tolist()
    [2.0, 3.0]
    """
    if _is_complex(a) or _is_complex(b):
        return _solved_by_parts(a, b)
    x, y, is_vector = _system("solve", a, b)
    factors, places = _factored("solve", x)
    return as_given(apply("lu_solve", x, factors, places, y, transposed=False), is_vector)


def inv(a: Any) -> dlarray:
    """Return the inverses of matrices.

    Args:
        a: square matrices, (..., n, n).

    Returns:
        dlarray without labels, as large as `a`. `solve(a, b)` is faster than ``inv(a) @ b``, and rounds less.

    Raises:
        DimsError: if the matrices are not square.
        numpy.linalg.LinAlgError: if a matrix is singular.

    >>> import tracejit as tj
    >>> tj.inv([[2.0, 0.0], [0.0, 4.0]]).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    if _is_complex(a):
        array = of_any_numbers("inv", "a", a)
        return _solved_by_parts(
            array, np.broadcast_to(np.eye(array.shape[-1], dtype=array.dtype), array.shape)
        )
    x = matrices("inv", "a", a)
    factors, places = _factored("inv", x)
    one = movement.expanded(as_array(np.eye(x.shape[-1], dtype=x.dtype)), x.shape)
    return apply("lu_solve", x, factors, places, one, transposed=False)


def slogdet(a: Any) -> SlogdetResult:
    """Return the signs of determinants and the logarithms of their magnitudes, which neither overflow nor underflow.

    Args:
        a: square matrices, (..., n, n).

    Returns:
        A named tuple (sign, logabsdet) of dlarrays without labels; (0, -inf) for a singular matrix, where the
        derivative is NaN.

    Raises:
        DimsError: if the matrices are not square.

    >>> import tracejit as tj
    >>> sign, size = tj.slogdet([[0.0, 2.0], [1.0, 0.0]])
    >>> float(sign), round(float(size), 4)
    (-1.0, 0.6931)
    """
    return SlogdetResult(*_signs_and_sizes(matrices("slogdet", "a", a)))


def _signs_and_sizes(x: dlarray) -> tuple[dlarray, dlarray]:
    factors, places = apply("lu", x)
    sizes = elementwise.log(elementwise.abs(diagonals(factors)))
    sign, size = apply("lu_logdet", x, factors, places, sizes)
    return sign, size


def det(a: Any) -> dlarray:
    """Return the determinants of matrices.

    Args:
        a: square matrices, (..., n, n).

    Returns:
        dlarray without labels. Derivatives of a singular matrix, or of one that is nearly so, are those of the
        determinant of what is left beside its larger singular values; how many there are is guarded in a trace. In
        a mapped function they are NaN where a matrix is singular.

    Raises:
        DimsError: if the matrices are not square.

    >>> import tracejit as tj
    >>> round(float(tj.det([[1.0, 2.0], [3.0, 4.0]])), 4)
    -2.0
    """
    x = matrices("det", "a", a)
    factors, places = apply("lu", x)
    sizes = elementwise.abs(diagonals(factors))
    current = recorder.thread.recorder
    if x.size and not (current is not None and current.maps):
        largest = reductions.max(sizes, -1, keepdims=True)
        is_small = elementwise.isfinite(largest) & (sizes <= largest * float(np.finfo(x.dtype).eps) ** 0.6)
        if recorder.need_value(elementwise.stop_gradient(reductions.any(is_small)), "det"):
            found = _det_of_singular(x)
            sign, size = apply(
                "lu_logdet", elementwise.stop_gradient(x), factors, places, elementwise.log(sizes)
            )
            value = elementwise.stop_gradient(sign * elementwise.exp(size))
            return value + (found - elementwise.stop_gradient(found))
    sign, size = apply("lu_logdet", x, factors, places, elementwise.log(sizes))
    return sign * elementwise.exp(size)


def _det_of_singular(x: dlarray) -> dlarray:
    """Return the determinants of matrices when at least one is singular.

    With constants U and V from the singular value decomposition, U' A V is a regular block beside a small one, whose
    Schur complement has a determinant without a division. That is a function with derivatives of any order.
    """
    outer, n = x.shape[:-2], x.shape[-1]
    x = movement.reshape(x, (-1, n, n))  # NumPy's SVD takes fewer axes than arrays have
    u, s, vh = (as_array(part) for part in np.linalg.svd(elementwise.stop_gradient(x)))
    turned = linear.matmul(linear.matmul(transposed(u), x), transposed(vh))
    limit = reductions.max(s, -1, keepdims=True) * float(np.finfo(x.dtype).eps) ** 0.6
    counts = reductions.sum(in_dtype(s > limit, np.dtype(np.int64)), -1)
    rank = int(recorder.need_value(elementwise.stop_gradient(reductions.min(counts)), "det"))

    def block(rows: slice, columns: slice) -> dlarray:
        return movement.sliced(turned, {x.ndim - 2: rows, x.ndim - 1: columns})

    first, rest = slice(0, rank), slice(rank, n)
    small = block(rest, rest)
    whole = elementwise.stop_gradient(_sign(u) * _sign(vh))
    if rank:
        small = small - linear.matmul(block(rest, first), solve(block(first, first), block(first, rest)))
        sign, size = _signs_and_sizes(block(first, first))
        whole = whole * sign * elementwise.exp(size)
    return movement.reshape(whole * expanded(small), outer)


def _sign(x: dlarray) -> dlarray:
    return _signs_and_sizes(x)[0]


def cholesky(a: Any, upper: bool = False) -> dlarray:
    """Return the Cholesky factors L of symmetric positive definite matrices L L'.

    Args:
        a: symmetric matrices, (..., n, n); only the lower half is read, or the upper half if `upper`.
        upper: return L' instead.

    Returns:
        dlarray without labels, as large as `a`, with zeros above the diagonal, or below it if `upper`.

    Raises:
        DimsError: if the matrices are not square.
        numpy.linalg.LinAlgError: if a matrix is not positive definite.

    The derivative by `a` is symmetric, as `a` is: half of it belongs to the half that is not read.

    >>> import tracejit as tj
    >>> tj.cholesky([[4.0, 2.0], [2.0, 5.0]]).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    x = matrices("cholesky", "a", a)
    upper = flag("cholesky", "upper", upper)
    x = transposed(x) if upper else x
    columns = apply("cholesky_columns", x)
    pivots = diagonals(columns)
    what = "the matrix, or one of the matrices, is not positive definite; add a small multiple of np.eye(n) to it"
    require(elementwise.greater(pivots, 0), "cholesky", what)
    factor = apply("cholesky", x, columns, elementwise.sqrt(pivots))
    return transposed(factor) if upper else factor


def solve_triangular(
    a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False
) -> dlarray:
    """Return the solution X of A X = B for triangular A, as ``scipy.linalg.solve_triangular``.

    Args:
        a: triangular matrices, (..., n, n), real or complex; the other half is not read.
        b: a vector (n,), or right sides (..., n, k). Axes before the last two are broadcast with those of `a`.
        trans: 0 or "N" for A X = B, 1 or "T" for A' X = B, 2 or "C" for the conjugate transpose.
        lower: `a` is lower triangular.
        unit_diagonal: the diagonal is taken as 1 and not read.

    Returns:
        dlarray without labels, as large as `b` with the axes of both before the last two.

    Raises:
        DimsError: if the sizes do not fit.
        ArgumentError: if `trans` is none of those.
        numpy.linalg.LinAlgError: if the diagonal has a 0.

    >>> import tracejit as tj
    >>> tj.solve_triangular([[2.0, 0.0], [1.0, 4.0]], [2.0, 9.0], lower=True).tolist()
    [1.0, 2.0]
    """
    if not is_option(trans, ("N", "T", "C")) and not (type(trans) is int and trans in (0, 1, 2)):
        refuse("solve_triangular", f"trans must be 0, 1, 2, 'N', 'T' or 'C', not {brief(trans)}")
    lower, unit = (
        flag("solve_triangular", name, x) for name, x in (("lower", lower), ("unit_diagonal", unit_diagonal))
    )
    if _is_complex(a) or _is_complex(b):
        return _triangular_of_complex(a, b, trans, lower, unit)
    x, y, is_vector = _system("solve_triangular", a, b)
    x = _checked_triangle(x, unit)
    if trans not in (0, "N"):
        x, lower = transposed(x), not lower
    return as_given(apply("solve_triangular", x, y, lower=lower), is_vector)


def _checked_triangle(x: dlarray, unit: bool) -> dlarray:
    if unit:
        x = elementwise.where(np.eye(x.shape[-1], dtype=bool), 1, x)
    nonzero = elementwise.not_equal(diagonals(x), 0)
    require(nonzero, "solve_triangular", "a diagonal has a 0: the matrix is singular")
    return x


def _triangular_of_complex(a: Any, b: Any, trans: Any, lower: bool, unit: bool) -> dlarray:
    x = _checked_triangle(of_any_numbers("solve_triangular", "a", a), unit)
    ones = np.ones(x.shape[-2:], bool)
    x = elementwise.where(np.tril(ones) if lower else np.triu(ones), x, 0)
    if trans not in (0, "N"):
        x = transposed(x if trans in (1, "T") else linear.conjugated(x))
    return _solved_by_parts(x, b, "solve_triangular")


def matrix_power(a: Any, n: Any) -> dlarray:
    """Return matrices to a whole power, by squares; of the inverses if it is negative."""
    array = movement.relabel(as_array(a, "matrix_power", "a"), None)
    power = integer("matrix_power", "n", n)
    if power < 0 or array.ndim < 2 or array.shape[-1] != array.shape[-2]:
        array = of_any_numbers("matrix_power", "a", array)
    if power == 0:
        return movement.expanded(as_array(np.eye(array.shape[-1], dtype=array.dtype)), array.shape)
    square = inv(array) if power < 0 else array
    result, power = None, abs(power)
    while power:
        if power % 2:
            result = square if result is None else linear.matmul(result, square)
        power //= 2
        square = linear.matmul(square, square) if power else square
    return result  # type: ignore[return-value]


def multi_dot(arrays: Any) -> dlarray:
    """Return the product of several matrices, multiplied in the order that takes the fewest multiplications."""
    given = [movement.relabel(as_array(x, "multi_dot"), None) for x in arrays]
    if len(given) < 2:
        refuse("multi_dot", f"there are {len(given)} arrays, expected 2 or more", ArgumentValueError)
    ends = (given[0].ndim == 1, given[-1].ndim == 1)
    if ends[0]:
        given[0] = movement.expand_dims(given[0], 0)
    if ends[1]:
        given[-1] = movement.expand_dims(given[-1], 1)
    for number, x in enumerate(given):
        if x.ndim != 2:
            refuse("multi_dot", f"array {number} has shape {x.shape}, expected a matrix", MatrixError)
        if number and given[number - 1].shape[1] != x.shape[0]:
            refuse(
                "multi_dot",
                f"array {number} has shape {x.shape}, which does not continue the product",
                ArgumentValueError,
            )
    result = multiplied(given, splits([given[0].shape[0], *(x.shape[1] for x in given)]), 0, len(given) - 1)
    if ends[0]:
        result = movement.reshape(result, result.shape[1:])
    return movement.reshape(result, result.shape[:-1]) if ends[1] else result


def tensorsolve(a: Any, b: Any, axes: Any = None) -> dlarray:
    """Return x of tensordot(a, x, x.ndim) = b: all axes of `a` behind those of `b` are summed over.

    Args:
        a: array whose axes are those of `b`, then those of `x`, of as many elements.
        b: array.
        axes: axes of `a` that are moved to the end first; None for none.
    """
    x, y = (
        movement.relabel(as_array(part, "np.linalg.tensorsolve", name), None)
        for part, name in ((a, "a"), (b, "b"))
    )
    if axes is not None:
        moved = [axis % x.ndim for axis in axes]
        x = movement.transpose(x, [*[i for i in range(x.ndim) if i not in moved], *moved])
    sizes = x.shape[y.ndim :]
    if prod(sizes) != y.size or x.size != y.size**2:
        reason = f"a has size {x.shape} and b {y.shape}, expected as many elements of x as of b"
        refuse("np.linalg.tensorsolve", reason, MatrixError)
    return movement.reshape(solve(movement.reshape(x, (y.size, y.size)), movement.reshape(y, (-1,))), sizes)


def tensorinv(a: Any, ind: Any = 2) -> dlarray:
    """Return the inverse of tensordot with `a`, whose first `ind` axes have as many elements as the rest."""
    x = movement.relabel(as_array(a, "np.linalg.tensorinv", "a"), None)
    count = integer("np.linalg.tensorinv", "ind", ind)
    if count <= 0:
        refuse("np.linalg.tensorinv", f"ind is {count}, expected a positive number of axes")
    first, rest = x.shape[:count], x.shape[count:]
    return movement.reshape(inv(movement.reshape(x, (prod(rest), -1))), (*rest, *first))


def _trace(x: Any, offset: Any = 0) -> dlarray:
    """Return the sums of a diagonal of matrices."""
    return reductions.sum(_diagonal(x, offset), -1)


def _diagonal(x: Any, offset: Any = 0) -> dlarray:
    """Return a diagonal of matrices."""
    array = movement.relabel(as_array(x, "np.linalg.diagonal"), None)
    if array.ndim < 2:
        refuse("np.linalg.diagonal", f"x has {array.ndim} axes, expected 2 or more", MatrixError)
    place = integer("np.linalg.diagonal", "offset", offset)
    return diagonal_view(array, array.ndim - 2, array.ndim - 1, place)


FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.linalg.solve: solve,
    np.linalg.inv: inv,
    np.linalg.slogdet: slogdet,
    np.linalg.det: det,
    np.linalg.cholesky: cholesky,
    np.linalg.matrix_power: matrix_power,
    np.linalg.multi_dot: multi_dot,
    np.linalg.tensorsolve: tensorsolve,
    np.linalg.tensorinv: tensorinv,
    np.linalg.diagonal: _diagonal,
    np.linalg.trace: _trace,
    np.linalg.matmul: linear.matmul,
    np.linalg.tensordot: linear.tensordot,
    np.linalg.matrix_transpose: transposed,
}
