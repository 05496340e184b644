# SPDX-License-Identifier: BSD-3-Clause
"""Operands that functions of matrices share: real or complex matrices, vectors beside them."""

from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.aval import COMPLEX128, FLOAT32, FLOAT64
from tracejit.errors import DimsError
from tracejit.functions import elementwise, linear, movement
from tracejit.functions.formats import in_dtype
from tracejit.functions.linalg import of_any_numbers
from tracejit.functions.numpy_api import in_python


def matrix(function: str, argument: str, x: Any, square: bool = True, narrow: bool = False) -> dlarray:
    """Return matrices without labels, of real or complex floating-point numbers.

    Args:
        function, argument: the names for errors.
        x: the operand.
        square: whether the matrices are to be square.
        narrow: whether small integers are float32, as in SciPy's functions that hand them to LAPACK.

    Raises:
        DimsError: if an operand has fewer than two axes, or its matrices are to be square and are not.
    """
    return of_any_numbers(f"linalg.{function}", argument, narrowed(x) if narrow else x, square)


def narrowed(x: Any) -> Any:
    """Return an operand, one of bools or of integers of at most 16 bits in float32, which holds them all."""
    array = as_array(x)
    is_small = array.dtype.kind in "biu" and array.dtype.itemsize <= 2
    return in_dtype(array, FLOAT32) if is_small else x


def in_double(x: dlarray) -> dlarray:
    """Return numbers in double precision, in which some of SciPy's functions compute whatever they get."""
    return in_dtype(x, COMPLEX128 if is_complex(x) else FLOAT64)


def alike(*arrays: dlarray) -> list[dlarray]:
    """Return arrays in their common dtype."""
    dtype = np.result_type(*(x.dtype for x in arrays))
    return [in_dtype(x, dtype) for x in arrays]


def is_complex(x: dlarray) -> bool:
    """Return whether numbers are complex."""
    return bool(x.dtype.kind == "c")


def adjoint(x: dlarray) -> dlarray:
    """Return conjugate transposes."""
    return movement.swapaxes(linear.conjugated(x), -1, -2)


def rows_of(function: str, b: Any, n: int) -> tuple[dlarray, bool]:
    """Return right sides as matrices of n rows, and whether they were a vector.

    Raises:
        DimsError: if they have another number of rows.
    """
    array = movement.relabel(as_array(b, f"linalg.{function}", "b"), None)
    if array.dtype.kind not in "fc":
        array = in_dtype(array, np.dtype(np.float64))
    is_vector = array.ndim == 1
    if not array.ndim or array.shape[0 if is_vector else -2] != n:
        raise DimsError(
            f"linalg.{function}: b has shape {array.shape}, expected ({n},) or (..., {n}, k), with as many rows as "
            "there are equations."
        )
    return (movement.expand_dims(array, -1) if is_vector else array), is_vector


def half(x: dlarray, lower: bool) -> dlarray:
    """Return matrices with zeros in the other half."""
    ones = np.ones(x.shape[-2:], bool)
    return elementwise.where(np.tril(ones) if lower else np.triu(ones), x, 0)


def hermitian(x: dlarray, lower: bool) -> dlarray:
    """Return the Hermitian matrices that have the given half."""
    kept = half(x, lower)
    strict = elementwise.where(np.eye(x.shape[-1], dtype=bool), 0, kept)
    whole = kept + adjoint(strict)
    if not is_complex(whole):
        return whole
    return elementwise.where(np.eye(x.shape[-1], dtype=bool), apply("real", whole), whole)


def routine(name: str, function: Any, *arrays: dlarray, **options: Any) -> Any:
    """Return the result of one of SciPy's routines, in programs by a call of Python."""
    return in_python.call(f"linalg.{name}", function, arrays, options)
