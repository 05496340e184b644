# SPDX-License-Identifier: BSD-3-Clause
"""Functions of np.emath, whose results are complex where a real operand lies outside of the real function's domain.

Whether any operand does is a guard. Labels: elementwise functions keep the format.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.array import as_array, dlarray
from tracejit.aval import COMPLEX64, COMPLEX128
from tracejit.functions import elementwise, reductions
from tracejit.functions.formats import in_dtype
from tracejit.record import recorder
from tracejit.record.guards import Decides

_Function = Callable[..., Any]


def _is_negative(x: dlarray) -> dlarray:
    return elementwise.less(x, 0)


def _is_large(x: dlarray) -> dlarray:
    return elementwise.greater(elementwise.abs(x), 1)


def _widened(name: str, x: Any, lies_outside: Callable[[dlarray], dlarray]) -> dlarray:
    """Return an operand, as complex numbers if an element lies outside of the domain of real ones."""
    array = as_array(x, name)
    if array.dtype.kind == "c":
        return array
    outside = reductions.any(lies_outside(array))
    if not bool(recorder.need_value(outside, name, Decides.TRUTH)):
        return array
    is_single = array.dtype in (np.float32, np.int8, np.uint8, np.int16, np.uint16)
    return in_dtype(array, COMPLEX64 if is_single else COMPLEX128)


def _of_domain(name: str, function: np.ufunc, lies_outside: Callable[[dlarray], dlarray]) -> _Function:
    """Return a function of np.emath: a ufunc, of complex numbers where that is necessary."""

    def answer(x: Any) -> dlarray:
        return function(_widened(name, x, lies_outside))  # type: ignore[no-any-return]

    return answer


def logn(n: Any, x: Any) -> dlarray:
    """Return the logarithm of x with base n."""
    above, below = (_widened("np.emath.logn", part, _is_negative) for part in (x, n))
    log: Any = np.log
    return log(above) / log(below)  # type: ignore[no-any-return]


def power(x: Any, p: Any) -> dlarray:
    """Return x to the power p; integers to a negative power are floats."""
    name = "np.emath.power"
    base, exponent = _widened(name, x, _is_negative), as_array(p, name)
    if exponent.dtype.kind == "i":
        some = reductions.any(elementwise.less(exponent, 0))
        if bool(recorder.need_value(some, name, Decides.TRUTH)):
            exponent = in_dtype(exponent, np.dtype(np.float64))
    return elementwise.power(base, exponent)


FUNCTIONS: dict[_Function, _Function] = {
    np.emath.sqrt: _of_domain("np.emath.sqrt", np.sqrt, _is_negative),
    np.emath.log: _of_domain("np.emath.log", np.log, _is_negative),
    np.emath.log2: _of_domain("np.emath.log2", np.log2, _is_negative),
    np.emath.log10: _of_domain("np.emath.log10", np.log10, _is_negative),
    np.emath.arccos: _of_domain("np.emath.arccos", np.arccos, _is_large),
    np.emath.arcsin: _of_domain("np.emath.arcsin", np.arcsin, _is_large),
    np.emath.arctanh: _of_domain("np.emath.arctanh", np.arctanh, _is_large),
    np.emath.logn: logn,
    np.emath.power: power,
}
