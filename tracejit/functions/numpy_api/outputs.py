# SPDX-License-Identifier: BSD-3-Clause
"""Results of NumPy's functions that go into an array, which is given as out=, with the casts that they make."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.array import as_array, dlarray
from tracejit.errors import ArgumentValueError, DTypeError
from tracejit.functions import elementwise
from tracejit.functions.numpy_api import writes

_EXACT = frozenset({np.dot, np.linalg.multi_dot})
_BUFFERED = frozenset({np.take, np.compress})
"""Functions that fill a buffer in the dtype of the array, and copy it into what is given as out=."""
_GIVES_PLACES = frozenset({np.argmax, np.argmin, np.nanargmax, np.nanargmin})
_BROADCASTS = frozenset({
    np.percentile, np.quantile, np.nanpercentile, np.nanquantile, np.nanmedian, np.clip, np.outer, np.fix,
    np.isposinf, np.isneginf,
})  # fmt: skip
"""Functions that write a result into a larger array as ufuncs do; others want an array of its size."""


def fitting(result: dlarray, out: Any, casting: str, name: str) -> dlarray:
    """Return a result as a rule of casting lets it go into an array; "same_kind" is the rule of all writes."""
    if casting == "unsafe":
        return result if result.dtype == out.dtype else elementwise.cast(result, out.dtype)
    _check_fit(casting == "same_kind" or np.can_cast(result.dtype, out.dtype, casting), result, out, name)  # type: ignore[arg-type]
    return result


def _check_fit(fits: bool, result: dlarray, out: Any, name: str) -> None:
    if not fits:
        raise DTypeError(
            f"{name}: the result is {result.dtype}, but out is {out.dtype}; pass an array of {result.dtype}."
        )


def put(function: Callable[..., Any], name: str, out: Any, result: Any, casting: str | None = None) -> Any:
    """Write the result of a function of NumPy into the array that was given as out=, and return the array.

    Args:
        function: NumPy's function.
        name: its name.
        out: the array.
        result: what is written.
        casting: the rule that the function was given, if it was given one.

    Raises:
        ArgumentValueError, DTypeError: if the function does not write such a result into such an array.
    """
    is_array = isinstance(out, (dlarray, np.ndarray))
    if function in _GIVES_PLACES and is_array and not np.can_cast(out.dtype, np.intp, "safe"):
        raise DTypeError(
            f"{name}: the result is {np.dtype(np.intp)}, but out is {out.dtype}; pass an array of integers."
        )
    result = as_array(result)
    if is_array:
        usual = "safe" if function == np.einsum else "same_kind"
        result = fitting(_in_dtype_of(function, out, result, name), out, casting or usual, name)
    return writes.into(out, result, name, broadcasts=function in _BROADCASTS)


def _in_dtype_of(function: Callable[..., Any], out: Any, result: dlarray, name: str) -> dlarray:
    """Return a result as the function writes it into an array; where others cast within a kind, some do not."""
    if function in _EXACT and (out.dtype, out.shape) != (result.dtype, result.shape):
        raise ArgumentValueError(
            f"{name}: the result is {result.dtype} of size {result.shape}, but out is {out.dtype} of size {out.shape}; "
            "pass an array of the same dtype and size."
        )
    if function not in _BUFFERED:
        return result
    _check_fit(np.can_cast(out.dtype, result.dtype, "safe"), result, out, name)
    return elementwise.cast(result, out.dtype)
