# SPDX-License-Identifier: BSD-3-Clause
"""Elementwise functions of the standard."""

from typing import Any

import numpy as np

from tracejit.xp.arrays import array, binary, operand, unary

ONE = (
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bitwise_invert", "ceil", "conj", "cos", "cosh", "exp",
    "expm1", "floor", "imag", "isfinite", "isinf", "isnan", "log", "log1p", "log2", "log10", "logical_not",
    "negative", "positive", "real", "reciprocal", "round", "sign", "signbit", "sin", "sinh", "square", "sqrt", "tan",
    "tanh", "trunc",
)  # fmt: skip
TWO = (
    "add", "atan2", "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "copysign", "divide", "equal", "floor_divide", "greater", "greater_equal", "hypot", "less", "less_equal",
    "logaddexp", "logical_and", "logical_or", "logical_xor", "maximum", "minimum", "multiply", "nextafter",
    "not_equal", "pow", "remainder", "subtract",
)  # fmt: skip

globals().update({name: unary(getattr(np, name), name) for name in ONE})
globals().update({name: binary(getattr(np, name), name) for name in TWO})


def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """Return numbers within bounds, which are arrays or numbers; None for no bound."""
    x = operand(x)
    if min is None and max is None:
        return array(np.positive(x)) if x.dtype.kind != "b" else x
    return array(np.clip(x, operand(min), operand(max))).astype(x.dtype)
