# SPDX-License-Identifier: BSD-3-Clause
"""Operands of functions that work by label, with their own labels or those of the argument data_format."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.aval import Halves, check_format, describe_shape, is_half, is_inexact
from tracejit.errors import DimsError, DTypeError
from tracejit.functions.movement import relabel
from tracejit.record import recorder
from tracejit.util.text import brief


def labelled(
    function: str, x: Any, data_format: str | None, argument: str = "x", option: str = "data_format"
) -> tuple[dlarray, bool]:
    """Return `x` with the labels of `data_format`, and whether it was formatted before.

    A function that was given `data_format` returns unformatted arrays, as it was given them. Errors name `argument` and
    `option`, which the array and its labels were given as.

    Raises:
        DimsError: if `x` is formatted and `data_format` is given as well, or it does not fit `x`.
        ArgumentError: if `x` is no array.
    """
    array = as_array(x, function, argument)
    if array._format is not None:
        if data_format is not None:
            raise DimsError(
                f"{function}: {option}={brief(data_format)} is given for {argument} of {describe(array)}, which has "
                f"labels of its own; leave {option} out, or remove the labels with stripdims({argument})."
            )
        return array, True
    if data_format is None:
        return array, False
    return relabel(array, check_format(function, data_format, array._data.ndim, option)), False


def need_labels(function: str, array: dlarray, why: str, remedy: str = "") -> str:
    """Return the format of `array`, or raise a DimsError that says `why` labels are needed.

    `remedy` is what a function accepts besides a format."""
    if array._format is None:
        raise DimsError(
            f"{function}: an array of {describe(array)} has no labels, but {why}; label it with "
            f'dlarray(x, format), or pass data_format (for example "CB"){remedy}.'
        )
    return array._format


def describe(array: Any) -> str:
    """Return ``size 2(B) x 3(C)``, for messages."""
    return f"size {describe_shape(array._data.shape, array._format)}" if array._data.shape else "size ()"


def describe_sizes(array: Any) -> str:
    """Return ``2(B) x 3(C)``, for messages."""
    return describe_shape(array._data.shape, array._format)


def floating(function: str, x: Any) -> dlarray:
    """Return `x` as an array, in float64 if it holds integers or bools."""
    array = as_array(x, function)
    if array._data.dtype.kind == "c":
        raise DTypeError(
            f"{function}: not defined for {array._data.dtype}; pass a real array, such as abs(x), x.real or x.imag."
        )
    return array if is_inexact(array._data.dtype) else in_dtype(array, np.dtype(np.float64))


def operand(function: str, argument: str, x: Any) -> Any:
    """Return an operand checked in the name of its argument; a number stays one, which takes the dtype of others."""
    if type(x) in (int, float):
        return x
    array = as_array(x, function, argument)
    return x if isinstance(x, (int, float, np.generic)) else array


def in_asked_dtype(array: dlarray, dtype: np.dtype) -> dlarray:
    """Return `array` in a dtype that the user asked for; imaginary parts may be lost, with NumPy's warning."""
    return array if array._data.dtype == dtype else apply("cast", array, dtype=dtype)


def in_dtype(array: dlarray, dtype: np.dtype, whose: str = "cast:") -> dlarray:
    """Return `array` in another dtype; no op is recorded where it has that dtype.

    `whose` begins the error: "cast:", or such as "lstm: weights of".

    Raises:
        DTypeError: if imaginary parts would be lost.
    """
    own = array._data.dtype
    if own == dtype:
        return array
    Halves.met = Halves.met or is_half(dtype)
    if own.kind == "c" and dtype.kind != "c":
        raise DTypeError(
            f"{whose} {own} numbers would lose their imaginary parts as {dtype}, in a function of real numbers; pass "
            "x.real, x.imag or abs(x)."
        )
    return apply("cast", array, dtype=dtype)


def dtypes_of(operands: Sequence[Any], function: str) -> list[Any]:
    """Return the dtypes of operands; for Python numbers, which take that of the others, their types."""
    dtypes: list[Any] = []
    for x in operands:
        if type(x) in (int, float, complex):
            dtypes.append(type(x))
        elif recorder.is_number(x):
            kind = x._kind  # a number of NumPy has a dtype of its own
            dtypes.append(kind if kind in (int, float, complex) else np.dtype(kind))
        else:
            dtypes.append(as_array(x, function).dtype)
    return dtypes
