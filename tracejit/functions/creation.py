# SPDX-License-Identifier: BSD-3-Clause
"""New arrays: zeros, ones, full, eye, arange and their ..._like forms."""

from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray, wrap
from tracejit.aval import check_dtype, check_format
from tracejit.errors import ArgumentError, DimsError
from tracejit.record import recorder


def zeros(shape: Any, dtype: Any = None, format: str | None = None, *, like: Any = None) -> dlarray:
    """Return an array of zeros.

    Args:
        shape: number of elements, or tuple of sizes.
        dtype: float64, float32, bool or an integer type; without it that of `like`, or float64.
        format: one label for each axis; without it that of `like` if the shapes are the same.
        like: dlarray to take dtype and format from.

    Returns:
        dlarray; a constant for dlgradient.

    Raises:
        DimsError: if `shape` holds no sizes or `format` does not fit it.
        DTypeError: for any other dtype.

    Examples:
        >>> import tracejit as tj
        >>> tj.zeros((2, 3), format="BC")
        2(B) x 3(C) dlarray float64
        [[0. 0. 0.]
         [0. 0. 0.]]
    """
    return with_format(
        "zeros", np.zeros(sizes_of("zeros", shape), dtype_of("zeros", dtype, like)), format, like
    )


def ones(shape: Any, dtype: Any = None, format: str | None = None, *, like: Any = None) -> dlarray:
    """Return an array of ones.

    Args:
        shape: number of elements, or tuple of sizes.
        dtype: float64, float32, bool or an integer type; without it that of `like`, or float64.
        format: one label for each axis; without it that of `like` if the shapes are the same.
        like: dlarray to take dtype and format from.

    Returns:
        dlarray; a constant for dlgradient.

    Raises:
        DimsError: if `shape` holds no sizes or `format` does not fit it.
        DTypeError: for any other dtype.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> tj.ones(3, np.float32)
        3 dlarray float32
        [1. 1. 1.]
    """
    return with_format("ones", np.ones(sizes_of("ones", shape), dtype_of("ones", dtype, like)), format, like)


def full(
    shape: Any, fill_value: Any, dtype: Any = None, format: str | None = None, *, like: Any = None
) -> dlarray:
    """Return an array whose elements are all `fill_value`; the sum of ct for a traced `fill_value`.

    Args:
        shape: number of elements, or tuple of sizes.
        fill_value: number, or anything that broadcasts to `shape`; a traced dlarray stays on its trace.
        dtype: float64, float32, bool or an integer type; without it that of `like`, or of `fill_value`.
        format: one label for each axis; without it that of `like` if the shapes are the same.
        like: dlarray to take dtype and format from.

    Returns:
        dlarray.

    Raises:
        DimsError: if `shape` holds no sizes, or `fill_value` or `format` does not fit it.
        DTypeError: for any other dtype.

    Examples:
        >>> import tracejit as tj
        >>> tj.full((2, 2), 7.0)
        2x2 dlarray float64
        [[7. 7.]
         [7. 7.]]
    """
    sizes = sizes_of("full", shape)
    value = as_array(fill_value, "full")
    wanted = value.dtype if dtype is None and like is None else dtype_of("full", dtype, like)
    if value.dtype != wanted:
        value = apply("cast", value, dtype=wanted)
    if value.shape != sizes:
        value = apply("broadcast_to", wrap(value._data, None, value._value), shape=sizes)
    value = value.copy()  # with elements of its own, which may be written
    return with_format("full", value._data, format, like, value._value)


def eye(
    n: int,
    m: int | None = None,
    k: int = 0,
    dtype: Any = None,
    format: str | None = None,
    *,
    like: Any = None,
) -> dlarray:
    """Return a matrix with ones on a diagonal and zeros elsewhere.

    Args:
        n: number of rows.
        m: number of columns; `n` by default.
        k: the diagonal: 0 the main one, above it positive, below it negative.
        dtype: float64, float32, bool or an integer type; without it that of `like`, or float64.
        format: two labels; without it that of `like` if the shapes are the same.
        like: dlarray to take dtype and format from.

    Returns:
        dlarray (n, m); a constant for dlgradient.

    Raises:
        DimsError: if a size is not one or `format` does not fit.
        DTypeError: for any other dtype.

    Examples:
        >>> import tracejit as tj
        >>> tj.eye(2)
        2x2 dlarray float64
        [[1. 0.]
         [0. 1.]]
    """
    rows, columns = sizes_of("eye", (n, n if m is None else m))
    return with_format("eye", np.eye(rows, columns, k, dtype_of("eye", dtype, like)), format, like)


def arange(
    start: Any,
    stop: Any = None,
    step: Any = 1,
    dtype: Any = None,
    format: str | None = None,
    *,
    like: Any = None,
) -> dlarray:
    """Return the numbers from `start` up to but not including `stop`, `step` apart.

    Args:
        start: first number; with it alone, the numbers run from 0 to `start`.
        stop: end of the interval.
        step: distance of neighbours.
        dtype: float64, float32 or an integer type; without it that of `like`, or as NumPy's.
        format: one label; without it that of `like` if the shapes are the same.
        like: dlarray to take dtype and format from.

    Returns:
        dlarray with one axis; a constant for dlgradient.

    Raises:
        ArgumentError: if NumPy cannot make such a range.
        DTypeError: for any other dtype.

    Examples:
        >>> import tracejit as tj
        >>> tj.arange(1, 7, 2)
        3 dlarray int64
        [1 3 5]
    """
    if stop is None:
        start, stop = 0, start
    wanted = None if dtype is None and like is None else dtype_of("arange", dtype, like)
    for name, number in (("start", start), ("stop", stop), ("step", step)):
        if recorder.is_array(number) and number._value is not None:
            recorder.need_value(number, f"arange, whose length {name} decides,")
    try:
        data: np.ndarray = np.arange(start, stop, step, dtype=wanted)
    except (TypeError, ValueError, ZeroDivisionError) as error:
        raise ArgumentError(
            f"arange: cannot go from {start!r} to {stop!r} by {step!r}: {error}; give numbers, "
            "and a step that is not 0."
        ) from error
    check_dtype("arange", data.dtype)
    return with_format("arange", data, format, like)


def zeros_like(x: Any, dtype: Any = None, shape: Any = None) -> dlarray:
    """Return zeros with the sizes, the format and the dtype of `x`.

    Args:
        x: dlarray or array-like.
        dtype: another dtype.
        shape: other sizes; the format is kept only where they are the same.

    Returns:
        dlarray; a constant for dlgradient.

    Examples:
        >>> import tracejit as tj
        >>> tj.zeros_like(tj.dlarray([1.0, 2.0], "B"))
        2(B) dlarray float64
        [0. 0.]
    """
    like = as_array(x, "zeros_like")
    return zeros(like.shape if shape is None else shape, dtype, like=like)


def ones_like(x: Any, dtype: Any = None, shape: Any = None) -> dlarray:
    """Return ones with the sizes, the format and the dtype of `x`.

    Args:
        x: dlarray or array-like.
        dtype: another dtype.
        shape: other sizes; the format is kept only where they are the same.

    Returns:
        dlarray; a constant for dlgradient.

    Examples:
        >>> import tracejit as tj
        >>> tj.ones_like(tj.dlarray([1.0, 2.0], "B"))
        2(B) dlarray float64
        [1. 1.]
    """
    like = as_array(x, "ones_like")
    return ones(like.shape if shape is None else shape, dtype, like=like)


def full_like(x: Any, fill_value: Any, dtype: Any = None, shape: Any = None) -> dlarray:
    """Return `fill_value` throughout, with the sizes, the format and the dtype of `x`.

    Args:
        x: dlarray or array-like.
        fill_value: as for full.
        dtype: another dtype.
        shape: other sizes; the format is kept only where they are the same.

    Returns:
        dlarray.

    Examples:
        >>> import tracejit as tj
        >>> tj.full_like(tj.dlarray([1.0, 2.0], "B"), 3)
        2(B) dlarray float64
        [3. 3.]
    """
    like = as_array(x, "full_like")
    return full(like.shape if shape is None else shape, fill_value, dtype, like=like)


def sizes_of(where: str, shape: Any, name: str = "shape") -> tuple[int, ...]:
    """Return the sizes that an integer or a tuple of integers gives, which errors call `name`."""
    sizes = (shape,) if isinstance(shape, (int, np.integer)) else shape
    try:
        result = tuple(int(size.__index__()) for size in sizes)
    except (TypeError, AttributeError):
        raise DimsError(
            f"{where}: {name} must be an integer or a tuple of integers, not {shape!r}."
        ) from None
    if any(size < 0 for size in result):
        raise DimsError(f"{where}: sizes must not be negative, found {shape!r}.")
    return result


def dtype_of(where: str, dtype: Any, like: Any) -> np.dtype:
    """Return the requested dtype; by default that of `like`, or float64."""
    if dtype is None:
        if like is None:
            return np.dtype(np.float64)
        return as_array(like, where).dtype
    try:
        wanted = np.dtype(dtype)
    except TypeError:
        raise ArgumentError(
            f"{where}: dtype must be a NumPy dtype such as np.float32, not {dtype!r}."
        ) from None
    return check_dtype(where, wanted)


def with_format(where: str, data: np.ndarray, format: str | None, like: Any, value: Any = None) -> dlarray:
    """Return an array with a format, or with that of `like` if the sizes are the same."""
    if format is not None:
        format = check_format(where, format, data.ndim)
    elif recorder.is_array(like) and like._data.shape == data.shape:
        format = like._format
    return wrap(data, format, value)
