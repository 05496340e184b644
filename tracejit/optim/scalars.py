# SPDX-License-Identifier: BSD-3-Clause
"""Options of updates that are numbers, or scalar arrays: rates, decay factors, thresholds."""

import math
from typing import Any

import numpy as np

from tracejit.array import apply, as_array
from tracejit.aval import FLOAT64
from tracejit.errors import ArgumentError, DimsError
from tracejit.functions.formats import describe, in_dtype
from tracejit.functions.movement import relabel, reshaped
from tracejit.record import recorder
from tracejit.util.arguments import is_real, real
from tracejit.util.text import brief


class Cast:
    """A number, or a float64 scalar array, in the dtypes of the parameters it meets."""

    def __init__(self, scalar: Any) -> None:
        self._scalar = scalar
        self._cast: dict[np.dtype, Any] = {}

    def __getitem__(self, dtype: np.dtype) -> Any:
        if type(self._scalar) is float:
            return self._scalar  # a Python number takes the dtype of the array it meets
        scalar = self._cast.get(dtype)
        if scalar is None:
            scalar = self._cast[dtype] = in_dtype(self._scalar, dtype)
        return scalar

    def times(self, factor: float, dtype: np.dtype) -> Any:
        """Return the number in a dtype, times a factor."""
        return self[dtype] if factor == 1 else self[dtype] * factor


def scalar(where: str, name: str, x: Any) -> Any:
    """Return an option as a Python float, or as a scalar array in float64 if it is an array."""
    if recorder.is_number(x):  # an argument that varies
        return in_dtype(as_array(x), FLOAT64)
    if is_real(x):
        return float(real(where, name, x))
    if not hasattr(type(x), "__dlpack__"):
        raise ArgumentError(f"{where}: {name} must be a number or a scalar array, not {brief(x)}.")
    array = as_array(x, where, name)
    if array._data.size != 1:
        raise DimsError(f"{where}: {name} is of {describe(array)}; expected a scalar.")
    return in_dtype(reshaped(relabel(array, None), (), None), FLOAT64)


def one_minus_power(base: Any, exponent: Any) -> Any:
    """Return 1 - base**exponent, in which nothing cancels for a base close to 1."""
    if type(base) is float:
        if not 0 <= base < 1:
            raise ArgumentError(
                f"adamupdate: decay factors must be at least 0 and less than 1, found {base!r}."
            )
        if base == 0:
            return 1.0
        base = math.log(base)
    else:
        base = apply("log", base)
    product = base * exponent
    return -math.expm1(product) if type(product) is float else -apply("expm1", product)


def square_root(x: Any) -> Any:
    return math.sqrt(x) if type(x) is float else apply("sqrt", x)
