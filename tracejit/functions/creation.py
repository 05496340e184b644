# SPDX-License-Identifier: BSD-3-Clause
"""New arrays: zeros, ones, full, eye, arange and their ..._like forms."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray, wrap
from tracejit.aval import check_dtype, check_format, wanted_dtype
from tracejit.errors import ArgumentError, ArgumentValueError
from tracejit.record import recorder, views
from tracejit.util.arguments import check_room, check_sizes, integer, is_option
from tracejit.util.arguments import sizes as sizes_of
from tracejit.util.text import brief


def zeros(shape: Any, dtype: Any = None, format: str | None = None, *, like: Any = None) -> dlarray:
    """Return an array of zeros.

    Args:
        shape: number of elements, or tuple of sizes.
        dtype: float64, float32, complex128, complex64, bool or an integer type; without it that of `like`, or float64.
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
    return _constant("zeros", np.zeros, shape, dtype, format, like)


def ones(shape: Any, dtype: Any = None, format: str | None = None, *, like: Any = None) -> dlarray:
    """Return an array of ones.

    Args:
        shape: number of elements, or tuple of sizes.
        dtype: float64, float32, complex128, complex64, bool or an integer type; without it that of `like`, or float64.
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
    return _constant("ones", np.ones, shape, dtype, format, like)


def _constant(
    function: str, make: Callable[..., np.ndarray], shape: Any, dtype: Any, format: str | None, like: Any
) -> dlarray:
    """Return what NumPy's function of that name makes of sizes and a dtype, with a format."""
    sizes, wanted = sizes_of(function, "shape", shape), dtype_of(function, dtype, like)
    check_room(function, sizes, wanted)
    return with_format(function, make(sizes, wanted), format, like)


def full(
    shape: Any, fill_value: Any, dtype: Any = None, format: str | None = None, *, like: Any = None
) -> dlarray:
    """Return an array whose elements are all `fill_value`; the sum of ct for a traced `fill_value`.

    Args:
        shape: number of elements, or tuple of sizes.
        fill_value: number, or anything that broadcasts to `shape`; a traced dlarray stays on its trace.
        dtype: float64, float32, complex128, complex64, bool or an integer type; without it that of `like`, or of
            `fill_value`.
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
    return _full("full", shape, fill_value, dtype, format, like)


def _full(function: str, shape: Any, fill_value: Any, dtype: Any, format: str | None, like: Any) -> dlarray:
    """Return an array of one value, on behalf of a function."""
    sizes = sizes_of(function, "shape", shape)
    value = as_array(fill_value, function, "fill_value")
    wanted = value.dtype if dtype is None and like is None else dtype_of(function, dtype, like)
    check_room(function, sizes, wanted)
    if value.dtype != wanted:
        value = apply("cast", value, dtype=wanted)
    if value.shape != sizes:
        value = apply("broadcast_to", wrap(value._data, None, value._value), shape=sizes)
    value = as_array(value.copy())  # with elements of its own, which may be written
    array = with_format(function, value._data, format, like, value._value)
    if sizes or array._value is None:
        return array
    return views.alias(array, array._format)  # type: ignore[no-any-return]  # an array, not a number


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
        dtype: float64, float32, complex128, complex64, bool or an integer type; without it that of `like`, or float64.
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
    (rows,) = sizes_of("eye", "n", (n,))
    (columns,) = (rows,) if m is None else sizes_of("eye", "m", (m,))
    wanted = dtype_of("eye", dtype, like)
    check_room("eye", check_sizes("eye", "(n, m)", (rows, columns)), wanted)
    # Beyond the corners there is no diagonal, however far: NumPy takes no larger numbers.
    diagonal = max(-rows, min(integer("eye", "k", k), columns))
    return with_format("eye", np.eye(rows, columns, diagonal, wanted), format, like)


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
        if stop is None:
            raise TypeError("None is no number")
        data: np.ndarray = np.arange(start, stop, step, dtype=wanted)
    except Exception as error:
        raise ArgumentError(
            f"arange: cannot go from {brief(start)} to {brief(stop)} by {brief(step)}: {error}; give numbers, and a "
            "step that leads from start to stop."
        ) from error
    check_dtype("arange", data.dtype, "the result")
    return with_format("arange", data, format, like)


def zeros_like(x: Any, dtype: Any = None, shape: Any = None) -> dlarray:
    """Return zeros with the sizes, the format and the dtype of `x`.

    Args:
        x: dlarray or array-like.
        dtype: another dtype.
        shape: other sizes; the format is kept only where they are the same.

    Returns:
        dlarray; a constant for dlgradient.

    Raises:
        ArgumentError: if `x` is not an array, a number or a list of numbers, or `dtype` is not a dtype.
        DimsError: if `shape` is not made of sizes.

    Examples:
        >>> import tracejit as tj
        >>> tj.zeros_like(tj.dlarray([1.0, 2.0], "B"))
        2(B) dlarray float64
        [0. 0.]
    """
    return zeros_in_order(x, dtype, "K", shape)


def ones_like(x: Any, dtype: Any = None, shape: Any = None) -> dlarray:
    """Return ones with the sizes, the format and the dtype of `x`.

    Args:
        x: dlarray or array-like.
        dtype: another dtype.
        shape: other sizes; the format is kept only where they are the same.

    Returns:
        dlarray; a constant for dlgradient.

    Raises:
        ArgumentError: if `x` is not an array, a number or a list of numbers, or `dtype` is not a dtype.
        DimsError: if `shape` is not made of sizes.

    Examples:
        >>> import tracejit as tj
        >>> tj.ones_like(tj.dlarray([1.0, 2.0], "B"))
        2(B) dlarray float64
        [1. 1.]
    """
    return ones_in_order(x, dtype, "K", shape)


def zeros_in_order(x: Any, dtype: Any = None, order: Any = "K", shape: Any = None) -> dlarray:
    """Return zeros as ``numpy.zeros_like`` does: in a memory order, on which views depend."""
    return _like("zeros_like", np.zeros_like, as_array(x, "zeros_like"), dtype, order, shape)


def ones_in_order(x: Any, dtype: Any = None, order: Any = "K", shape: Any = None) -> dlarray:
    """Return ones as ``numpy.ones_like`` does."""
    return _like("ones_like", np.ones_like, as_array(x, "ones_like"), dtype, order, shape)


def _like(
    function: str, make: Callable[..., np.ndarray], like: dlarray, dtype: Any, order: Any, shape: Any
) -> dlarray:
    if not is_option(order, ("K", "A", "C", "F")):
        raise ArgumentValueError(f"{function}: order must be 'K', 'A', 'C' or 'F', not {brief(order)}.")

    def made(sizes: Any, wanted: np.dtype) -> np.ndarray:
        return make(like._data, wanted, order, shape=sizes)

    return _constant(function, made, like.shape if shape is None else shape, dtype, None, like)


def full_like(x: Any, fill_value: Any, dtype: Any = None, shape: Any = None) -> dlarray:
    """Return `fill_value` throughout, with the sizes, the format and the dtype of `x`.

    Args:
        x: dlarray or array-like.
        fill_value: as for full.
        dtype: another dtype.
        shape: other sizes; the format is kept only where they are the same.

    Returns:
        dlarray.

    Raises:
        ArgumentError: if `x` is not an array, a number or a list of numbers.
        DimsError: if `fill_value` does not broadcast to the sizes.

    Examples:
        >>> import tracejit as tj
        >>> tj.full_like(tj.dlarray([1.0, 2.0], "B"), 3)
        2(B) dlarray float64
        [3. 3.]
    """
    return full_in_order(x, fill_value, dtype, "K", shape)


def full_in_order(x: Any, fill_value: Any, dtype: Any = None, order: Any = "K", shape: Any = None) -> dlarray:
    """Return an array of one value as ``numpy.full_like`` does."""
    like = as_array(x, "full_like")
    array = _full("full_like", like.shape if shape is None else shape, fill_value, dtype, None, like)
    if like._data.flags.c_contiguous and is_option(order, ("K", "A", "C")):
        return array
    result = zeros_in_order(like, array.dtype, order, array.shape)
    if result._data.flags.c_contiguous:
        return array
    result[...] = array
    return result


def dtype_of(where: str, dtype: Any, like: Any) -> np.dtype:
    """Return the requested dtype; by default that of `like`, or float64."""
    if dtype is None:
        if like is None:
            return np.dtype(np.float64)
        return as_array(like, where, "like").dtype
    return wanted_dtype(where, dtype)


def with_format(where: str, data: np.ndarray, format: str | None, like: Any, value: Any = None) -> dlarray:
    """Return an array with a format, or with that of `like` if the sizes are the same."""
    if format is not None:
        format = check_format(where, format, data.ndim)
    elif recorder.is_array(like) and like._data.shape == data.shape:
        format = like._format
    if value is None:
        data = data if data.flags.writeable else data.copy()
        data = data if data.ndim else data[...]  # an array, not a number: is_scalar in record/views.py
    array = wrap(data, format, value)
    current = recorder.recorder()
    if value is None and current is not None:
        current.memories.private(array)
    return array
