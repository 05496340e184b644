# SPDX-License-Identifier: BSD-3-Clause
"""Functions of Hermitian matrices by their eigenvalues, with derivatives that hold where eigenvalues are equal.

Note [derivatives of a function of a Hermitian matrix]
With constant eigenvectors V of A, V^H A V = D + N, where D is diagonal; N is 0 but has a derivative. Then f(A) is
V (f(D) + f[d_i, d_j] N_ij + f[d_i, d_k, d_j] N_ik N_kj + ...) V^H, in which f[...] are divided differences (Daleckii
and Krein, 1951). No eigenvector is differentiated, so nothing is divided by the distance of eigenvalues that are
equal. The first two terms are computed directly; f may depend on other variables too. The third one takes n^3 numbers,
so it is computed for second derivatives only, as the derivative of a term that is 0.

Where points are close, quotients would lose digits: divided differences are integrals of a derivative of f there, by
the rule of Gauss (the formula of Hermite and Genocchi).
"""

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.errors import DimsError
from tracejit.functions import elementwise, linalg, linear, movement, reductions
from tracejit.functions.custom_gradient import custom_gradient
from tracejit.functions.formats import in_dtype
from tracejit.functions.transforms import jvp
from tracejit.linalg.numbers import adjoint, hermitian, is_complex, matrix
from tracejit.util.arguments import callable_, flag

_LINALG: Any = np.linalg
_CLOSE = 1e-3  # up to which part of the largest eigenvalue points may be close
_ROUNDINGS = 64
_RULE = (
    (0.5 - 0.15**0.5, 5 / 18),
    (0.5, 4 / 9),
    (0.5 + 0.15**0.5, 5 / 18),
)  # of Gauss, exact to the fifth power
_Function = Callable[[Any], Any]


def funmh(A: Any, func: _Function, *, lower: bool = True) -> dlarray:  # noqa: N803 (SciPy's name)
    """Return functions of symmetric or Hermitian matrices, V diag(func(w)) V^H with eigenvalues w and vectors V.

    Derivatives of first and second order hold where eigenvalues are equal or close too, unlike those of the product
    put together from `eigh`. Third derivatives are NaN.

    Args:
        A: Hermitian matrices, (..., n, n).
        func: function of a dlarray of real numbers, element by element: ``np.log``, ``lambda w: np.exp(-1j * w)``.
        lower: which half of the matrices is read.

    Returns:
        dlarray as large as `A`, complex where `A` or the function's results are.

    Raises:
        DimsError: if the matrices are not square, or `func` returns other sizes than it is given.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> slope = tj.dlfeval(lambda a: tj.dlgradient(tj.linalg.funmh(a, np.exp).sum(), a), np.zeros((2, 2)))
        >>> slope.round(12).tolist()
        [[1.0, 0.0], [2.0, 1.0]]
    """
    x = matrix("funmh", "A", A)
    whole = hermitian(x, flag("linalg.funmh", "lower", lower))
    callable_("linalg.funmh", "func", func)
    if not whole.size:
        return whole
    w, v = _LINALG.eigh(elementwise.stop_gradient(whole))
    turned = linear.matmul(linear.matmul(adjoint(v), whole), v)
    moved = turned - elementwise.stop_gradient(turned)
    diagonal = linalg.diagonals(moved)
    d = w + (apply("real", diagonal) if is_complex(moved) else diagonal)
    is_diagonal = np.eye(w.shape[-1], dtype=bool)
    off = elementwise.where(is_diagonal, 0.0, moved)
    values = elementwise.where(is_diagonal, movement.expand_dims(_values(func, d), -1), 0.0)
    slopes = _differences(func, d, 1)
    first = elementwise.where(elementwise.isfinite(slopes), slopes, 0.0) * off
    inner = values + first + _second(off, d, _OfNumbers(func)) * (values * 0.0 + 1.0)
    return linear.matmul(linear.matmul(v, inner), adjoint(v))


class _OfNumbers:
    """A function of numbers whose text equals that of any other; its operations are recorded where it is called.

    So a function that is made anew in each call does not make two recordings differ.
    """

    def __init__(self, func: _Function) -> None:
        self.func = func

    def __repr__(self) -> str:
        return "a function of numbers"


@custom_gradient
def _second(off: dlarray, d: dlarray, func: _OfNumbers) -> Any:
    """Return the term of second order, which is 0, as is its derivative."""
    return off * 0.0, (off, d, func)


@_second.backward
def _(residuals: Any, ct: dlarray) -> Any:
    off, d, func = residuals
    return adjoint(_second_slope(off, adjoint(ct), d, func)), None, None


@custom_gradient
def _second_slope(off: dlarray, m: dlarray, d: dlarray, func: _OfNumbers) -> Any:
    """Return the derivative of the term of second order, which is 0, along a matrix."""
    return off * 0.0, (off, m, d, func)


@_second_slope.backward
def _(residuals: Any, ct: dlarray) -> Any:
    off, m, d, func = residuals
    m, g = (x + 0.0 * adjoint(ct) for x in (m, adjoint(ct)))
    return adjoint(_along(m, g, d, func)), adjoint(_along(off, g, d, func)), None, None


@custom_gradient
def _along(e: dlarray, m: dlarray, d: dlarray, func: _OfNumbers) -> Any:
    """Return the second derivative along two matrices."""
    shares = _differences(func.func, d, 2)
    return reduce(
        elementwise.add,
        [
            reductions.sum(shares * movement.expand_dims(x, -1) * movement.expand_dims(y, -3), -2)
            for x, y in ((e, m), (m, e))
        ],
    ), (e, m, d, func)


@_along.backward
def _(residuals: Any, ct: dlarray) -> Any:
    e, m, d, func = residuals
    g = adjoint(ct)
    return adjoint(_along(m, g, d, func)), adjoint(_along(e, g, d, func)), d * np.nan, None


def _differences(func: _Function, d: dlarray, order: int) -> dlarray:
    """Return the divided differences of all pairs or triples of eigenvalues."""
    n, axes = d.shape[-1], range(order + 1)
    points = [movement.reshape(d, (*d.shape[:-1], *[n if k == place else 1 for k in axes])) for place in axes]
    largest = elementwise.stop_gradient(reductions.max(elementwise.abs(d), -1))
    return _divided(func, points, movement.reshape(largest, (*largest.shape, *(1 for _ in axes))))


def _values(func: _Function, x: dlarray) -> dlarray:
    found = as_array(func(x), "linalg.funmh", "func")
    if found.shape != x.shape:
        raise DimsError(
            f"linalg.funmh: func returns an array of shape {found.shape} for one of {x.shape}, expected the same."
        )
    return found if found.dtype.kind in "fc" else in_dtype(found, x.dtype)


def _slope(func: _Function) -> _Function:
    """Return the derivative of a function of numbers, element by element."""
    return lambda x: jvp(func, (x,), (x * 0.0 + 1.0,))[1]


def _divided(func: _Function, points: list[dlarray], scale: dlarray) -> dlarray:
    """Return divided differences of the first or second order at points that broadcast."""
    order = len(points) - 1
    low, high = (reduce(pick, points) for pick in (elementwise.minimum, elementwise.maximum))
    if order == 1:
        first, second = _values(func, low), _values(func, high)
    else:
        a, b, c = points
        middle = elementwise.maximum(
            elementwise.minimum(a, b), elementwise.minimum(elementwise.maximum(a, b), c)
        )
        first, second = (_divided(func, ends, scale) for ends in ([low, middle], [middle, high]))
    gap, change = high - low, second - first
    slope = _slope(func)
    if order == 1:
        terms = [slope(low + gap * t) * share for t, share in _RULE]
    else:
        slope = _slope(slope)
        terms = [
            slope(low + (middle - low) * t + (high - middle) * (t * u)) * (t * share * other)
            for t, share in _RULE
            for u, other in _RULE
        ]
    integral = reduce(elementwise.add, terms)
    # The integral is taken where it differs from the quotient by no more than the quotient's rounding error.
    largest = elementwise.maximum(elementwise.abs(first), elementwise.abs(second))
    rounding = largest * (_ROUNDINGS * float(np.finfo(gap.dtype).eps))
    is_close = (gap <= scale * _CLOSE) & (elementwise.abs(integral * gap - change) <= rounding)
    return elementwise.where(is_close, integral, change / elementwise.where(is_close, 1.0, gap))
