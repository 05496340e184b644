# SPDX-License-Identifier: BSD-3-Clause
"""Elementwise functions of the standard."""

from typing import Any

import numpy as np

from tracejit.array import apply
from tracejit.xp.arrays import array, binary, operand, unary

ONE = (
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bitwise_invert", "ceil", "conj", "cos", "cosh", "exp",
    "floor", "imag", "isfinite", "isinf", "isnan", "log", "log1p", "log2", "log10", "logical_not",
    "negative", "positive", "real", "reciprocal", "round", "sign", "signbit", "sin", "sinh", "square", "sqrt", "tan",
    "trunc",
)  # fmt: skip
TWO = (
    "add", "atan2", "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "copysign", "divide", "equal", "greater", "greater_equal", "hypot", "less", "less_equal",
    "logaddexp", "logical_and", "logical_or", "logical_xor", "maximum", "minimum", "multiply", "nextafter",
    "not_equal", "pow", "remainder", "subtract",
)  # fmt: skip

globals().update({name: unary(getattr(np, name), name) for name in ONE})
globals().update({name: binary(getattr(np, name), name) for name in TWO})


def expm1(x: Any, /) -> Any:
    """Return e**x - 1; of complex numbers with infinite or NaN real parts what the standard says, not NumPy."""
    x = operand(x)
    found = array(np.expm1(x))
    if found.dtype.kind != "c":
        return found
    # NumPy multiplies infinities by 0, and has -0 where the standard has 0.
    a, b = np.real(x), np.imag(x)
    real = np.real(found) + 0.0
    imag = np.imag(found)
    is_real, is_wild = b == 0, ~np.isfinite(b)
    zero, one = a.dtype.type(0), a.dtype.type(1)
    real = np.where(is_real & ~np.isfinite(a), np.expm1(a), real)
    imag = np.where(is_real & ~np.isfinite(a), b, imag)
    real = np.where(is_wild & (a == -np.inf), -one, np.where(is_wild & (a == np.inf), a, real))
    imag = np.where(is_wild & (a == -np.inf), zero, imag)
    return apply("complex_of", array(real), array(imag))  # a product with 1j would mix infinite parts


def tanh(x: Any, /) -> Any:
    """Return hyperbolic tangents; beside an infinite real part 0 has the sign of the imaginary part."""
    x = operand(x)
    found = array(np.tanh(x))
    if found.dtype.kind != "c":
        return found
    a, b = np.real(x), np.imag(x)
    imag = np.where(np.isinf(a) & np.isfinite(b), np.copysign(a.dtype.type(0), b), np.imag(found))
    return apply("complex_of", array(np.real(found)), array(imag))


def floor_divide(x1: Any, x2: Any, /) -> Any:
    """Return the largest whole numbers up to x1 / x2; of infinities x1 / x2, as the standard says, not NumPy."""
    x1, x2 = operand(x1), operand(x2)
    found = array(np.floor_divide(x1, x2))
    if found.dtype.kind != "f":
        return found
    return array(np.where(np.isinf(x1) | np.isinf(x2), np.true_divide(x1, x2), found))


def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """Return numbers within bounds, which are arrays or numbers; None for no bound."""
    x = operand(x)
    if min is None and max is None:
        return array(np.positive(x)) if x.dtype.kind != "b" else x
    return array(np.clip(x, operand(min), operand(max))).astype(x.dtype)
