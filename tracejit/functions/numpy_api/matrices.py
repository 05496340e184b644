# SPDX-License-Identifier: BSD-3-Clause
"""Products and parts of matrices under NumPy's names: kron, cross, vander, diagonals, covariance.

Labels: diagonals and products keep the labels of the axes that stay; kron, vander and covariances have none.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.array import as_array, dlarray
from tracejit.aval import FLOAT64, wanted_dtype
from tracejit.errors import ArgumentError, ArgumentValueError, DimsError
from tracejit.functions import elementwise, joining, linear, movement, reductions
from tracejit.functions.axes import normalize_axis
from tracejit.functions.diagonals import diagonal_view
from tracejit.functions.formats import describe_sizes, in_dtype
from tracejit.functions.numpy_api import masked
from tracejit.functions.numpy_api.flattening import flattened
from tracejit.functions.numpy_api.ufuncs import vecdot
from tracejit.functions.refusals import refuse
from tracejit.record import recorder
from tracejit.record.guards import Decides
from tracejit.util.arguments import check_room, check_sizes, integer, real
from tracejit.util.text import brief


def kron(a: Any, b: Any) -> dlarray:
    """Return the Kronecker product: all products of an element of one array and the other array."""
    x, y = (movement.relabel(as_array(part, "np.kron"), None) for part in (a, b))
    n = max(x.ndim, y.ndim)
    x = movement.reshape(x, (1,) * (n - x.ndim) + x.shape)
    y = movement.reshape(y, (1,) * (n - y.ndim) + y.shape)
    spread = movement.reshape(x, tuple(size for extent in x.shape for size in (extent, 1)))
    other = movement.reshape(y, tuple(size for extent in y.shape for size in (1, extent)))
    return movement.reshape(spread * other, tuple(p * q for p, q in zip(x.shape, y.shape, strict=True)))


def cross(a: Any, b: Any, axisa: Any = -1, axisb: Any = -1, axisc: Any = -1, axis: Any = None) -> dlarray:
    """Return the vector product of vectors of 3 elements, or of 2, whose third one is 0."""
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = as_array(a, "np.cross"), as_array(b, "np.cross")
    first, second = normalize_axis("np.cross", x, axisa), normalize_axis("np.cross", y, axisb)
    sizes = (x.shape[first], y.shape[second])
    if not set(sizes) <= {2, 3}:
        refuse("np.cross", f"vectors have {sizes[0]} and {sizes[1]} elements, expected 3, or 2", DimsError)
    dtype = np.result_type(x.dtype, y.dtype)
    p, q = (
        [part[(slice(None),) * at + (i,)] for i in range(n)]
        for part, at, n in ((in_dtype(x, dtype), first, sizes[0]), (in_dtype(y, dtype), second, sizes[1]))
    )
    last = p[0] * q[1] - p[1] * q[0]
    if sizes == (2, 2):
        return last  # type: ignore[no-any-return]
    if sizes == (3, 3):
        parts = [p[1] * q[2] - p[2] * q[1], p[2] * q[0] - p[0] * q[2], last]
    elif sizes[0] == 2:
        parts = [p[1] * q[2], -(p[0] * q[2]), last]
    else:
        parts = [-(p[2] * q[1]), p[2] * q[0], last]
    shape = np.broadcast_shapes(*(part.shape for part in parts))
    place = integer("np.cross", "axisc", axisc)
    result = joining.stack([movement.expanded(part, shape) for part in parts], axis=-1)
    return result if place == -1 else movement.moveaxis(result, -1, place)


def _cross_of_three(x1: Any, x2: Any, *, axis: Any = -1) -> dlarray:
    """Return the vector product of vectors of 3 elements along an axis."""
    x, y = as_array(x1, "np.linalg.cross"), as_array(x2, "np.linalg.cross")
    if {part.shape[normalize_axis("np.linalg.cross", part, axis)] for part in (x, y)} != {3}:
        refuse("np.linalg.cross", f"vectors along axis {axis} of {x.shape} and {y.shape} need 3 elements")
    return cross(x, y, axis=axis)


def vander(x: Any, N: Any = None, increasing: Any = False) -> dlarray:  # noqa: N803 (NumPy's name)
    """Return the powers of the elements of a vector as columns, the highest first unless `increasing`."""
    array = movement.relabel(as_array(x, "np.vander"), None)
    if array.ndim != 1:
        refuse("np.vander", f"x has {array.ndim} axes, expected 1", ArgumentValueError)
    count = array.size if N is None else integer("np.vander", "N", N)
    if count < 0:
        refuse("np.vander", f"N is {count}, expected a number that is not negative", ArgumentValueError)
    dtype = np.result_type(array.dtype, np.int64)
    check_room("np.vander", check_sizes("np.vander", "the result", (array.size, max(count, 0))), dtype)
    array = in_dtype(array, dtype)
    if count < 1:
        return movement.reshape(array[:0], (array.size, 0)) if array.size == 0 else array[:, None][:, :0]
    columns = [as_array(np.ones(array.size, dtype))]
    for _ in range(count - 1):
        columns.append(columns[-1] * array)
    return joining.stack(columns if increasing else columns[::-1], axis=1)


def diagonal(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> dlarray:
    """Return the elements whose places along two axes differ by an offset; they lie along the last axis."""
    array = as_array(a, "np.diagonal")
    first, second = (normalize_axis("np.diagonal", array, axis) for axis in (axis1, axis2))
    if first == second:
        refuse("np.diagonal", f"axis1 and axis2 are the same axis, {first}; name two", ArgumentValueError)
    format = array._format
    kept = [i for i in range(array.ndim) if i not in (first, second)]
    labels = None if format is None else "".join(format[i] for i in kept) + "U"
    found = diagonal_view(
        movement.relabel(array, None), first, second, integer("np.diagonal", "offset", offset)
    )
    return movement.relabel(found, labels)


def trace(
    a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None, out: Any = None
) -> dlarray:
    """Return the sums of diagonals."""
    return reductions.sum(diagonal(a, offset, axis1, axis2), -1, dtype=dtype)


def diagflat(v: Any, k: Any = 0) -> dlarray:
    """Return a matrix with all elements in C order on a diagonal."""
    return linear.diag(flattened("np.diagflat", v), k)


def _rows(name: str, x: Any, rowvar: Any, dtype: np.dtype, only: bool) -> dlarray:
    """Return variables as the rows of a matrix."""
    array = movement.relabel(as_array(x, name), None)
    if array.ndim > 2:
        refuse(name, f"an operand has {array.ndim} axes, expected at most 2", ArgumentValueError)
    matrix = in_dtype(movement.atleast_2d(array), dtype)
    turned = not rowvar and (array.ndim != 1 if only else matrix.shape[0] != 1)
    return movement.transpose(matrix) if turned else matrix


class _WeightsError(ArgumentError, RuntimeError):
    """Weights of wrong sizes: NumPy's error, and ours."""


def _weights(name: str, argument: str, weights: Any, count: int) -> dlarray:
    """Return a weight for each observation; those of frequency have to be whole numbers."""
    array = in_dtype(movement.relabel(as_array(weights, name, argument), None), FLOAT64)
    if array.shape != (count,):
        refuse(
            name,
            f"{argument} has size {array.shape}, expected ({count},), one for each observation",
            _WeightsError,
        )
    if argument == "fweights" and _is_true(masked.any(array != elementwise.round(array))):
        refuse(name, "fweights must be integers, as they count observations; aweights need not be")
    if _is_true(masked.any(array < 0)):
        refuse(name, f"{argument} must not be negative", ArgumentValueError)
    return array


def _is_true(array: dlarray) -> bool:
    return bool(recorder.need_value(array, "np.cov", Decides.TRUTH))


def _freedom(ddof: Any) -> Any:
    """Return how many degrees of freedom are lost: an integer, which may be a float as in NumPy."""
    given = real("np.cov", "ddof", ddof)
    if given % 1 != 0:  # true of NaN and infinity, too
        refuse("np.cov", f"ddof must be an integer, not {brief(ddof)}", ArgumentValueError)
    return given


def cov(
    m: Any,
    y: Any = None,
    rowvar: Any = True,
    bias: Any = False,
    ddof: Any = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> dlarray:
    """Return the covariances of variables, which are rows (or columns, if not `rowvar`)."""
    given = [as_array(x, "np.cov") for x in (m, y) if x is not None]
    wanted = (
        np.result_type(*(x.dtype for x in given), FLOAT64) if dtype is None else wanted_dtype("np.cov", dtype)
    )
    if wanted.kind not in "fc":
        refuse("np.cov", f"dtype is {wanted}, which holds no mean; pass a dtype of floating point")
    x = _rows("np.cov", m, rowvar, wanted, True)
    if not x.shape[0]:  # NumPy does not look at y then
        return as_array(np.zeros((0, 0)))
    if y is not None:
        x = joining.concatenate([x, _rows("np.cov", y, rowvar, wanted, False)], 0)
    n = x.shape[1]
    free = _freedom(ddof) if ddof is not None else (0 if bias else 1)
    of_frequency = None if fweights is None else _weights("np.cov", "fweights", fweights, n)
    of_importance = None if aweights is None else _weights("np.cov", "aweights", aweights, n)
    w: Any = of_frequency if of_importance is None else of_importance
    if of_frequency is not None and of_importance is not None:
        w = of_frequency * of_importance
    factor: Any
    if w is None:
        mean, factor = reductions.mean(x, 1, True), max(n - free, 0)
        deviations = x - mean
        products = linear.matmul(deviations, movement.transpose(linear.conjugated(deviations)))
    else:
        total = reductions.sum(w)
        mean = masked.average(x, 1, movement.broadcast_to(w, x.shape), keepdims=True)
        factor = total
        if free and of_importance is None:
            factor = total - free
        elif free:
            factor = total - free * reductions.sum(w * of_importance) / total
        factor = elementwise.maximum(factor, 0.0)
        deviations = x - mean
        products = linear.matmul(deviations, movement.transpose(linear.conjugated(deviations * w)))
    scale = 1 / factor if recorder.is_array(factor) else float(np.float64(1) / factor if factor else np.inf)
    return movement.squeeze(in_dtype(products * scale, wanted))


def corrcoef(x: Any, y: Any = None, rowvar: Any = True, *, dtype: Any = None) -> dlarray:
    """Return the correlation coefficients of variables, which are rows (or columns, if not `rowvar`)."""
    c = cov(x, y, rowvar, dtype=dtype)
    if not c.ndim:
        return c / c
    deviations = elementwise.sqrt(diagonal(c))
    return elementwise.clip(c / deviations[:, None] / deviations[None, :], -1, 1)


FULL_FORMS: dict[Callable[..., Any], Callable[..., Any]] = {np.trace: trace}


def _outer(x1: Any, x2: Any) -> dlarray:
    pair = as_array(x1, "np.linalg.outer", "x1"), as_array(x2, "np.linalg.outer", "x2")
    if any(part._data.ndim != 1 for part in pair):
        sizes = " and ".join(describe_sizes(part) for part in pair)
        raise DimsError(
            f"np.linalg.outer: x1 and x2 are {sizes}, expected two vectors; use np.outer, or ravel them."
        )
    return linear.outer(*pair)


FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.kron: kron,
    np.cross: cross,
    np.vander: vander,
    np.diagonal: diagonal,
    np.diagflat: diagflat,
    np.cov: cov,
    np.corrcoef: corrcoef,
    np.linalg.cross: _cross_of_three,
    np.linalg.vecdot: vecdot,
    np.linalg.outer: _outer,
}
