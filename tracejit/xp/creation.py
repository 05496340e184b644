# SPDX-License-Identifier: BSD-3-Clause
"""Functions of the standard that make arrays, and those about dtypes."""

from typing import Any

import numpy as np

from tracejit.array import dlarray
from tracejit.aval import wanted_dtype
from tracejit.record import recorder
from tracejit.util.named_tuples import NamedTuple
from tracejit.xp.arrays import array, check_device, operand


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Any:
    """Return an array of numbers, nested lists, or an array; `copy` says whether memory must or may not be copied."""
    check_device("asarray", device)
    if recorder.is_array(obj):
        if dtype is not None and np.dtype(dtype) != obj.dtype:
            if copy is False:
                raise ValueError(
                    "xp.asarray: copy=False cannot be met, because the dtype is a different one; leave copy out."
                )
            return array(obj.astype(dtype))
        return array(obj.copy()) if copy else obj
    if isinstance(obj, (list, tuple)):
        obj = _plain(obj)
    made = np.asarray(obj, dtype=dtype, copy=copy)
    wanted_dtype("xp.asarray", made.dtype)
    return dlarray(made)


def _plain(obj: Any) -> Any:
    """Return nested lists with numbers in place of arrays of one element."""
    if isinstance(obj, (list, tuple)):
        return [_plain(part) for part in obj]
    return recorder.need_value(obj, "xp.asarray") if recorder.is_array(obj) else obj


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
    """Return an array of anything with ``__dlpack__``, without a copy if possible."""
    check_device("from_dlpack", device)
    return dlarray(np.from_dlpack(x, copy=copy))


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Any:
    """Return evenly spaced numbers from `start`, or 0, up to `stop`, which is left out."""
    check_device("arange", device)
    bounds = (0, start) if stop is None else (start, stop)
    made: Any = np.arange  # whose types do not know what the standard takes
    return dlarray(made(*bounds, step, dtype=dtype))


def linspace(
    start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: bool = True
) -> Any:
    """Return `num` evenly spaced numbers from `start` to `stop`."""
    check_device("linspace", device)
    return array(np.linspace(start, stop, num, dtype=dtype, endpoint=endpoint))


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None
) -> Any:
    """Return a matrix with ones on a diagonal."""
    check_device("eye", device)
    return dlarray(np.eye(n_rows, n_cols, k=k, dtype=float if dtype is None else dtype))


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """Return an array of zeros."""
    check_device("zeros", device)
    return dlarray(np.zeros(shape, float if dtype is None else dtype))


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """Return an array of ones."""
    check_device("ones", device)
    return dlarray(np.ones(shape, float if dtype is None else dtype))


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """Return an array of zeros, because a program does not read former contents of memory."""
    check_device("empty", device)
    return zeros(shape, dtype=dtype)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """Return an array of one number."""
    check_device("full", device)
    return dlarray(np.full(shape, fill_value, dtype))


def zeros_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """Return zeros of the size and the format of an array."""
    check_device("zeros_like", device)
    return array(np.zeros_like(operand(x), dtype=dtype))


def ones_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """Return ones of the size and the format of an array."""
    check_device("ones_like", device)
    return array(np.ones_like(operand(x), dtype=dtype))


def empty_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """Return zeros of the size and the format of an array."""
    check_device("empty_like", device)
    return array(np.zeros_like(operand(x), dtype=dtype))


def full_like(x: Any, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """Return one number in the size and the format of an array."""
    check_device("full_like", device)
    return array(np.full_like(operand(x), fill_value, dtype=dtype))


def meshgrid(*arrays: Any, indexing: str = "xy") -> Any:
    """Return grids of coordinates from vectors, in a tuple."""
    grids: Any = np.meshgrid(*map(operand, arrays), indexing=indexing)  # type: ignore[call-overload]
    return tuple([array(grid) for grid in grids])


def tril(x: Any, /, *, k: int = 0) -> Any:
    """Return matrices with zeros above a diagonal."""
    return array(np.tril(operand(x), k))


def triu(x: Any, /, *, k: int = 0) -> Any:
    """Return matrices with zeros below a diagonal."""
    return array(np.triu(operand(x), k))


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """Return an array in another dtype; with `copy` false, the array itself if it has that."""
    check_device("astype", device)
    x = operand(x)
    return x if not copy and x.dtype == np.dtype(dtype) else array(np.astype(x, np.dtype(dtype)))


class FloatLimits(NamedTuple):
    """The limits of a floating-point dtype, as Python numbers."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype


def can_cast(from_: Any, to: Any, /) -> bool:
    """Return whether a dtype, or that of an array, may be cast to another one by the rules of promotion."""
    return bool(np.can_cast(from_.dtype if recorder.is_array(from_) else from_, to))


def finfo(type: Any, /) -> Any:
    """Return the limits of a floating-point dtype."""
    info = np.finfo(type.dtype if recorder.is_array(type) else type)
    eps, high, low, normal = map(float, (info.eps, info.max, info.min, info.smallest_normal))
    return FloatLimits(int(info.bits), eps, high, low, normal, np.dtype(info.dtype))


def iinfo(type: Any, /) -> Any:
    """Return the limits of an integer dtype."""
    return np.iinfo(type.dtype if recorder.is_array(type) else type)


def isdtype(dtype: Any, kind: Any) -> bool:
    """Return whether a dtype is of a kind, such as "real floating"."""
    return bool(np.isdtype(dtype, kind))


def result_type(*arrays_and_dtypes: Any) -> Any:
    """Return the dtype that operands promote to."""
    return np.result_type(*[x.dtype if recorder.is_array(x) else x for x in arrays_and_dtypes])
