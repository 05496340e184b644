# SPDX-License-Identifier: BSD-3-Clause
"""Functions of several ops on 16-bit numbers, which are computed in float32 from end to end.

An op of 16-bit numbers rounds its result (Note [numbers of 16 bits] in ops/halves.py). A mean computed as a sum divided
by a count would overflow at a sum of 65520, where NumPy's does not. A softmax would round at each step.
"""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np

from tracejit.array import apply, dlarray
from tracejit.aval import FLOAT16, FLOAT32, Halves, is_half
from tracejit.errors import DTypeError
from tracejit.functions.formats import dtypes_of, in_dtype
from tracejit.record.halves import NO_OPS, result_dtype

_Of = ParamSpec("_Of")
_Result = TypeVar("_Result")


def in_single(function: Callable[_Of, _Result]) -> Callable[_Of, _Result]:
    """Return a function that widens its operands of 16 bits to float32 and rounds its results once.

    Results have 16 bits if all floating-point operands have, in the same format; otherwise they are as those of
    float32.
    """

    @wraps(function)
    def widened(*args: _Of.args, **options: _Of.kwargs) -> _Result:
        if not Halves.met:
            return function(*args, **options)
        arrays = [x for x in (*args, *options.values()) if isinstance(x, (dlarray, np.ndarray))]
        if not any(is_half(x.dtype) for x in arrays):
            return function(*args, **options)
        wide: Any = [_wide(x) for x in args]
        named: Any = {name: _wide(x) for name, x in options.items()}
        result = function(*wide, **named)
        dtype = result_dtype([x.dtype for x in arrays], count_integers=False)
        return result if dtype is None else cast(_Result, _rounded(result, dtype))

    return widened


def _wide(x: Any) -> Any:
    is_array = isinstance(x, (dlarray, np.ndarray))
    return apply("cast", x, dtype=FLOAT32) if is_array and is_half(x.dtype) else x


def _rounded(result: Any, dtype: np.dtype) -> Any:
    """Return results with the arrays of float32 among them in 16 bits."""
    if isinstance(result, dlarray):
        return apply("cast", result, dtype=dtype) if result.dtype == FLOAT32 else result
    if isinstance(result, tuple):
        parts = [_rounded(part, dtype) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    return result


def rounded_to_loop(ufunc: np.ufunc, operands: Sequence[Any], result: Any) -> Any:
    """Return the result of bools and integers of 8 bits in float16, if that is the dtype of NumPy's loop for them.

    It was computed in float32, as in NumPy's loop: `np.sqrt` of int8 has 11 bits, and `np.exp(12)` of it is infinite.

    Raises:
        DTypeError: for `np.nextafter` and `np.spacing`.
    """
    first = result[0] if type(result) is tuple else result
    if type(first) is not dlarray or first._data.dtype != FLOAT32:
        return result
    if not any(getattr(getattr(x, "dtype", None), "itemsize", 0) == 1 for x in operands):
        return result
    dtypes = dtypes_of(operands, ufunc.__name__)
    try:
        loop = ufunc.resolve_dtypes((*dtypes, *(None,) * ufunc.nout))[ufunc.nin :]
    except TypeError:
        return result
    if loop[0] != FLOAT16:
        return result
    if ufunc.__name__ in NO_OPS:
        raise DTypeError(
            f"np.{ufunc.__name__}: NumPy computes it in float16 for operands of 8 bits, which is not supported; cast "
            "them first (x.astype(np.float32))."
        )
    if type(result) is not tuple:
        return in_dtype(result, FLOAT16)
    return tuple([in_dtype(part, dtype) for part, dtype in zip(result, loop, strict=True)])
