# SPDX-License-Identifier: BSD-3-Clause
"""Integrals of samples under the names of scipy.integrate: ``tj.integrate.simpson(y, x)``.

Functions of scipy.integrate that take samples convert them to ndarrays, and refuse traced arrays. Its solvers call an
accelerated function like any other.

Examples:
    >>> import numpy as np, tracejit as tj
    >>> x = np.linspace(0, 1, 5)
    >>> round(tj.integrate.simpson(x**3, x).item(), 12)
    0.25
"""

from typing import Any

import numpy as np

from tracejit.array import as_array, dlarray
from tracejit.aval import FLOAT64
from tracejit.errors import ArgumentError, DimsError
from tracejit.functions import elementwise, joining, movement, reductions
from tracejit.functions.axes import normalize_axis
from tracejit.functions.formats import in_dtype
from tracejit.util.missing import refusal
from tracejit.util.versions import is_scipy

__all__ = ["cumulative_trapezoid", "romb", "simpson", "trapezoid"]


def _samples(name: str, y: Any, x: Any, dx: Any, axis: Any) -> tuple[dlarray, Any, int]:
    """Return samples along the last axis, the widths between them, and the number of the axis.

    Raises:
        DimsError: if places do not fit the samples.
    """
    values = movement.relabel(as_array(y, f"integrate.{name}", "y"), None)
    if values.dtype.kind not in "fc":
        values = in_dtype(values, np.dtype(np.float64))
    place = normalize_axis(f"integrate.{name}", values, axis)
    values = movement.moveaxis(values, place, -1)
    if x is None:
        return values, dx, place
    places = movement.relabel(as_array(x, f"integrate.{name}", "x"), None)
    if places.ndim > 1:
        places = movement.moveaxis(places, normalize_axis(f"integrate.{name}", places, axis), -1)
    if not places.ndim or places.shape[-1] != values.shape[-1]:
        raise DimsError(
            f"integrate.{name}: x has shape {places.shape}, expected as many places as the {values.shape[-1]} samples "
            "along the axis."
        )
    return values, places[..., 1:] - places[..., :-1], place


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> dlarray:
    """Return integrals of samples by lines between them.

    Args:
        y: samples: dlarray, ndarray or list.
        x: their places, a vector or as large as `y`; None for places `dx` apart.
        dx: the distance of the places.
        axis: the axis of the samples.

    Returns:
        dlarray without the axis, and without labels.

    Raises:
        DimsError: if `x` does not fit `y`.

    Examples:
        >>> import tracejit as tj
        >>> tj.integrate.trapezoid([1.0, 2.0, 4.0]).item()
        4.5
    """
    values, widths, _ = _samples("trapezoid", y, x, dx, axis)
    return reductions.sum((values[..., 1:] + values[..., :-1]) * widths, -1) * 0.5


def cumulative_trapezoid(
    y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1, initial: Any = None
) -> dlarray:
    """Return integrals of samples up to each one, by lines between them.

    Args:
        y, x, dx, axis: as in `trapezoid`.
        initial: 0 for a result that begins with 0, as large as `y`; None for one element less.

    Returns:
        dlarray without labels.

    Raises:
        DimsError: if `x` does not fit `y`.
        ArgumentError: for another `initial`.

    Examples:
        >>> import tracejit as tj
        >>> tj.integrate.cumulative_trapezoid([1.0, 2.0, 4.0], initial=0).tolist()
        [0.0, 1.5, 4.5]
    """
    if initial is not None and not (isinstance(initial, (int, float)) and initial == 0):
        raise ArgumentError(f"integrate.cumulative_trapezoid: initial must be None or 0, not {initial!r}.")
    values, widths, place = _samples("cumulative_trapezoid", y, x, dx, axis)
    total: Any = np.cumsum((values[..., 1:] + values[..., :-1]) * widths * 0.5, -1)
    if initial is not None:
        total = joining.concatenate([np.zeros((*total.shape[:-1], 1), total.dtype), total], -1)
    return movement.moveaxis(total, -1, place)


def simpson(y: Any, x: Any = None, *, dx: Any = 1.0, axis: Any = -1) -> dlarray:
    """Return integrals of samples by parabolas, as SciPy does for even numbers of samples too.

    Args:
        y, x, dx, axis: as in `trapezoid`.

    Returns:
        dlarray without the axis, and without labels.

    Raises:
        DimsError: if `x` does not fit `y`.

    The last interval of an even number of samples has the parabola of the last three (K. Cartwright, Simpson's rule
    cumulative integration with MS Excel and irregularly-spaced data, 2017).

    Examples:
        >>> import tracejit as tj
        >>> round(tj.integrate.simpson([0.0, 1.0, 4.0, 9.0]).item(), 9)
        9.0
    """
    values, widths, _ = _samples("simpson", y, x, dx, axis)
    n = values.shape[-1]
    if n < 3:
        return reductions.sum((values[..., 1:] + values[..., :-1]) * widths, -1) * 0.5
    if x is None:
        widths = as_array(np.ones(n - 1, np.zeros((), values.dtype).real.dtype)) * dx
    elif not is_scipy(1, 18):
        widths = in_dtype(widths, np.result_type(widths.dtype, FLOAT64))  # in which SciPy computes
    odd = n - 1 if n % 2 == 0 else n
    first, middle, last = (values[..., k : odd - 2 + k : 2] for k in range(3))
    before, behind = widths[..., 0 : odd - 2 : 2], widths[..., 1 : odd - 1 : 2]
    both = before + behind
    ratio = _quotient(before, behind)
    total = reductions.sum(
        both
        / 6.0
        * (
            first * (2.0 - _quotient(1.0, ratio))
            + middle * (both * _quotient(both, before * behind))
            + last * (2.0 - ratio)
        ),
        -1,
    )
    if odd == n:
        return total
    h0, h1 = widths[..., -2], widths[..., -1]
    a, b, c = (
        _quotient(2 * h1 * h1 + 3 * h0 * h1, 6 * (h1 + h0)),
        _quotient(h1 * h1 + 3.0 * h0 * h1, 6 * h0),
        _quotient(h1 * h1 * h1, 6 * h0 * (h0 + h1)),
    )
    if values.ndim == 1:  # SciPy adds a number of double precision to a number
        total = in_dtype(total, np.result_type(total.dtype, FLOAT64))
    rest: dlarray = total + a * values[..., -1] + b * values[..., -2] - c * values[..., -3]
    return rest


def _quotient(numbers: Any, widths: Any) -> Any:
    """Return quotients, 0 where the divisor is 0: of places that coincide, as SciPy does."""
    some = widths != 0
    return elementwise.where(some, numbers / elementwise.where(some, widths, 1.0), 0.0)


def romb(y: Any, dx: Any = 1.0, axis: Any = -1) -> dlarray:
    """Return integrals of 2^k + 1 samples by Romberg's method.

    Args:
        y, dx, axis: as in `trapezoid`.

    Returns:
        dlarray without the axis, and without labels.

    Raises:
        DimsError: for another number of samples.

    Examples:
        >>> import tracejit as tj
        >>> round(tj.integrate.romb([0.0, 1.0, 16.0, 81.0, 256.0]).item(), 9)
        204.8
    """
    values, _, _ = _samples("romb", y, None, dx, axis)
    values = in_dtype(values, np.result_type(values.dtype, FLOAT64))  # in which SciPy computes
    n = values.shape[-1] - 1
    if n < 1 or n & (n - 1):
        raise DimsError(f"integrate.romb: y has {n + 1} samples along the axis, expected 2^k + 1.")
    row: list[Any] = []
    step = n
    while step:
        width = dx * step
        line = (values[..., 0] + values[..., -1]) * 0.5 + reductions.sum(values[..., step:-1:step], -1)
        found = [line * width]
        for j, before in enumerate(row, 1):
            found.append(found[-1] + (found[-1] - before) / (4.0**j - 1.0))
        row, step = found, step // 2
    return row[-1]  # type: ignore[no-any-return]


__getattr__ = refusal("integrate", __all__)
