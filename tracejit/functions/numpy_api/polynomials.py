# SPDX-License-Identifier: BSD-3-Clause
"""Polynomials as vectors of coefficients, the highest power first: np.polyval, np.polyfit and the like.

Labels: coefficients have none; polyval keeps the format of the places. An np.poly1d among the arguments of a function
makes its results such ones, as in NumPy.
"""

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.aval import FLOAT64, is_half
from tracejit.errors import ArgumentValueError
from tracejit.functions import elementwise, joining, linear, movement, reductions
from tracejit.functions.formats import in_dtype
from tracejit.functions.numpy_api import differences, matrices
from tracejit.functions.refusals import refuse
from tracejit.record import recorder
from tracejit.record.guards import Decides
from tracejit.util.arguments import integer

_numpy: Any = np  # whose functions answer for dlarrays


class Polynomial(np.poly1d):
    """A polynomial with traced coefficients, which NumPy's functions ask who answers for it."""

    def __array_function__(self, function: Any, types: Any, args: Any, options: dict[str, Any]) -> Any:
        """Return the result of a function of polynomials."""
        return FUNCTIONS[function](*args, **options)


def as_polynomial(function: Callable[..., Any], p: np.poly1d) -> Any:
    """Return an argument of a function of NumPy: its coefficients, unless the function tells polynomials apart."""
    if not isinstance(p.coeffs, dlarray):
        return p
    return Polynomial(p) if function in FUNCTIONS else p.coeffs


def _kept(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose results are polynomials if an argument is one, as those of NumPy's function are."""

    @wraps(function)
    def answer(*args: Any, **options: Any) -> Any:
        if not any(isinstance(given, np.poly1d) for given in (*args, *options.values())):
            return function(*args, **options)
        named = {name: _plain(given) for name, given in options.items()}
        result = function(*map(_plain, args), **named)
        return tuple(map(np.poly1d, result)) if isinstance(result, tuple) else np.poly1d(result)

    return answer


def _plain(p: Any) -> Any:
    return p.coeffs if isinstance(p, np.poly1d) else p


def _coefficients(name: str, p: Any) -> dlarray:
    array = movement.relabel(movement.atleast_1d(as_array(p, name)), None)
    if array.ndim != 1:
        refuse(name, f"a polynomial has {array.ndim} axes, expected 1; pass a vector of coefficients")
    return array


def polyval(p: Any, x: Any) -> Any:
    """Return the values of a polynomial at places, by Horner's rule."""
    coefficients = movement.relabel(as_array(_plain(p), "np.polyval"), None)
    if isinstance(x, np.poly1d):
        return _composed(coefficients, x)
    places = as_array(x, "np.polyval")
    value: Any = elementwise.where(True, places.dtype.type(0), elementwise.stop_gradient(places))
    for i in range(len(coefficients)):
        value = value * places + coefficients[i]
    return value


def _composed(coefficients: dlarray, inner: np.poly1d) -> Any:
    """Return the polynomial that has a polynomial in the place of its variable."""
    value: Any = 0
    for i in range(len(coefficients)):
        value = value * inner + coefficients[i]
    return value


def _longer(p: dlarray, count: int) -> dlarray:
    return apply("pad", p, widths=((count - p.size, 0),), value=0)


def _added(name: str, operation: Callable[[Any, Any], dlarray]) -> Callable[..., dlarray]:
    def function(a1: Any, a2: Any) -> dlarray:
        p, q = _coefficients(name, a1), _coefficients(name, a2)
        n = max(p.size, q.size)
        return operation(_longer(p, n), _longer(q, n))

    return function


def polymul(a1: Any, a2: Any) -> dlarray:
    """Return the product of two polynomials, without the zeros that they begin with."""
    p, q = (_leading("np.polymul", part) for part in (a1, a2))
    return differences.convolve(p, q)


def _leading(name: str, p: Any) -> dlarray:
    """Return a polynomial from its first coefficient that is not 0 on; which that is is guarded."""
    array = _coefficients(name, p)
    if not array.size:
        return as_array(np.zeros(1, array.dtype))
    some = array != 0
    first = int(recorder.need_value(reductions.argmax(some), name))
    if not first and not bool(recorder.need_value(reductions.any(some), name, Decides.TRUTH)):
        return array[-1:]  # type: ignore[no-any-return]
    return array[first:]  # type: ignore[no-any-return]


def polydiv(u: Any, v: Any) -> tuple[dlarray, dlarray]:
    """Return quotient and remainder of two polynomials, the remainder without the zeros that it begins with."""
    p, q = (_coefficients("np.polydiv", part) for part in (u, v))
    p, q = p + 0.0, q + 0.0
    dtype = np.result_type(p.dtype, q.dtype)
    p, q = in_dtype(p, dtype), in_dtype(q, dtype)
    m, n = p.size - 1, q.size - 1
    scale = 1.0 / q[0]
    parts, rest = [], p
    for k in range(m - n + 1):
        factor = scale * rest[k]
        parts.append(factor)
        rest = rest - apply("pad", factor * q, widths=((k, m - n - k),), value=0.0)
    quotient = joining.stack(parts) if parts else as_array(np.zeros(1, dtype))
    while rest.size > 1:
        small = elementwise.abs(rest[0]) <= 1e-8
        if not bool(recorder.need_value(small, "np.polydiv", Decides.TRUTH)):
            break
        rest = rest[1:]
    return quotient, rest


def polyder(p: Any, m: Any = 1) -> dlarray:
    """Return the m-th derivative of a polynomial."""
    array = movement.relabel(as_array(p, "np.polyder"), None)
    order = integer("np.polyder", "m", m)
    if order < 0:
        refuse("np.polyder", f"m is {order}, expected a number that is not negative", ArgumentValueError)
    for _ in range(min(order, array.size + 1)):
        array = array[:-1] * np.arange(max(array.size - 1, 0), 0, -1)
    return array


def polyint(p: Any, m: Any = 1, k: Any = None) -> dlarray:
    """Return the m-th integral of a polynomial with the constants `k`."""
    array = movement.relabel(as_array(p, "np.polyint"), None)
    order = integer("np.polyint", "m", m)
    constants = _coefficients("np.polyint", np.zeros(max(order, 1)) if k is None else k)
    if order < 0 or (constants.size < order and constants.size != 1):
        refuse(
            "np.polyint",
            f"m is {order} and k has {constants.size} elements, expected one or m",
            ArgumentValueError,
        )
    for i in range(order):
        end = constants[:1] if constants.size == 1 else constants[i : i + 1]
        array = joining.concatenate([array / np.arange(array.size, 0, -1), end])
    return array


def poly(seq_of_zeros: Any) -> Any:
    """Return the polynomial with these zeros, or the eigenvalues of a matrix; its highest coefficient is 1."""
    zeros = movement.relabel(movement.atleast_1d(as_array(seq_of_zeros, "np.poly")), None)
    if zeros.ndim == 2 and zeros.shape[0] == zeros.shape[1] > 0:
        zeros = as_array(_numpy.linalg.eigvals(zeros))
    elif zeros.ndim != 1:
        refuse(
            "np.poly",
            f"seq_of_zeros has shape {zeros.shape}, expected a vector, or a square matrix that is not empty",
            ArgumentValueError,
        )
    if not zeros.size:
        return 1.0
    zeros = in_dtype(zeros, FLOAT64 if zeros.dtype.kind not in "fc" or is_half(zeros.dtype) else zeros.dtype)
    product = as_array(np.ones(1, zeros.dtype))
    for i in range(zeros.size):
        tail = apply("pad", zeros[i] * product, widths=((1, 0),), value=0.0)
        product = apply("pad", product, widths=((0, 1),), value=0.0) - tail
    return apply("real", product) if zeros.dtype.kind == "c" and _are_conjugates(zeros) else product


def _are_conjugates(zeros: dlarray) -> bool:
    """Return whether the zeros are those of a polynomial with real coefficients, which is guarded."""
    same = reductions.all(_numpy.sort(zeros) == _numpy.sort(linear.conjugated(zeros)))
    return bool(recorder.need_value(elementwise.stop_gradient(same), "np.poly", Decides.TRUTH))


def _least_squares(a: dlarray, b: dlarray) -> tuple[dlarray, dlarray] | None:
    """Return the least-squares solution x of a x = b and the inverse of the triangular factor of a.

    None if the places do not determine a polynomial of the degree, or hold NaN, which is guarded.

    Householder's reflections (G. H. Golub, C. F. Van Loan, Matrix Computations, 5.2), one for each column; for a matrix
    of few columns.
    """
    count = a.shape[1]
    both = joining.concatenate([a, b], 1)
    for j in range(count):
        column = both[j:, j]
        norm = elementwise.sqrt(reductions.sum(elementwise.square(column)))
        sign = elementwise.where(column[0] < 0, -1.0, 1.0)
        v = joining.concatenate([movement.reshape(column[0] + sign * norm, (1,)), column[1:]])
        v = v / elementwise.sqrt(reductions.sum(elementwise.square(v)))
        lower = both[j:]
        lower = lower - 2.0 * v[:, None] * reductions.sum(v[:, None] * lower, 0)
        both = joining.concatenate([both[:j], lower], 0) if j else lower
    diagonal = elementwise.abs(matrices.diagonal(both[:count, :count]))
    least = reductions.min(diagonal) > reductions.max(diagonal) * float(a.shape[0] * np.finfo(a.dtype).eps)
    if not bool(recorder.need_value(least, "np.polyfit", Decides.TRUTH)):
        return None
    rows: list[Any] = []
    right = joining.concatenate([both[:count, count:], as_array(np.eye(count, dtype=both.dtype))], 1)
    for i in reversed(range(count)):
        row = right[i]
        for number, known in enumerate(reversed(rows)):
            row = row - both[i, i + 1 + number] * known
        rows.append(row / both[i, i])
    solved = joining.stack(rows[::-1])
    return solved[:, : b.shape[1]], solved[:, b.shape[1] :]


def _warn_of_rank(needs_inverse: bool) -> None:
    """Warn as NumPy does where places are too few, or equal; their covariance is an error."""
    if needs_inverse:
        raise np.linalg.LinAlgError("Singular matrix")
    file, line = recorder.user_location() or ("<unknown>", 1)
    warnings.warn_explicit("Polyfit may be poorly conditioned", np.exceptions.RankWarning, file, line)


def polyfit(
    x: Any, y: Any, deg: Any, rcond: Any = None, full: Any = False, w: Any = None, cov: Any = False
) -> Any:
    """Return the polynomial of a degree that is nearest to points in the sense of least squares."""
    name = "np.polyfit"
    places = movement.relabel(as_array(x, name), None) + 0.0
    values = movement.relabel(as_array(y, name), None) + 0.0
    order = integer(name, "deg", deg) + 1
    if order < 1:
        refuse(name, f"deg is {order - 1}, expected a number that is not negative", ArgumentValueError)
    fits = places.ndim == 1 and values.ndim in (1, 2) and values.shape[0] == places.size >= order
    if not fits:
        refuse(
            name,
            f"x and y have sizes {places.shape} and {values.shape} for degree {order - 1}, expected as many places as "
            "values, and more than the degree",
        )
    lhs = matrices.vander(places, order)
    rhs = values if values.ndim == 2 else values[:, None]
    if w is not None:
        weights = movement.reshape(as_array(w, name, "w") + 0.0, (-1, 1))
        lhs, rhs = lhs * weights, rhs * weights
    is_complex = "c" in places.dtype.kind + values.dtype.kind
    scale = elementwise.sqrt(reductions.sum(reductions.square_magnitude(lhs), 0))
    inverse: Any = None
    found = None if is_complex or full or rcond is not None else _least_squares(lhs / scale, rhs)
    if found is not None:
        solution, inverse = found
    else:
        if not is_complex and not full and rcond is None:
            _warn_of_rank(bool(cov))
        rcond = places.size * np.finfo(places.dtype).eps if rcond is None else rcond
        solution, residuals, rank, sizes = _numpy.linalg.lstsq(lhs / scale, rhs, rcond)
        if full:
            c = solution / scale[:, None]
            return c if values.ndim == 2 else c[:, 0], residuals, rank, sizes, rcond
        inverse = _numpy.linalg.pinv(lhs / scale) if cov else None
    c = solution / scale[:, None]
    c = c if values.ndim == 2 else c[:, 0]
    if not cov:
        return c
    base = linear.matmul(inverse, movement.transpose(inverse)) / (scale[:, None] * scale)
    if cov != "unscaled":
        rest = rhs - linear.matmul(lhs, solution / scale[:, None])
        factor = reductions.sum(elementwise.square(rest), 0) / (places.size - order)
        base = base[:, :, None] * factor if values.ndim == 2 else base * factor
    elif values.ndim == 2:
        base = base[:, :, None]
    return c, base


FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.polyval: polyval,
    np.polyadd: _kept(_added("np.polyadd", elementwise.add)),
    np.polysub: _kept(_added("np.polysub", elementwise.subtract)),
    np.polymul: _kept(polymul),
    np.polydiv: _kept(polydiv),
    np.polyder: _kept(polyder),
    np.polyint: _kept(polyint),
    np.poly: poly,
    np.polyfit: polyfit,
}
