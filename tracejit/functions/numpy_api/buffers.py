# SPDX-License-Identifier: BSD-3-Clause
"""NumPy's functions that make arrays, in recorded code: the arrays can be filled with traced values.

np.zeros(3) and similar calls give arrays that are private to the recording (record/memory.py): as long as nothing
traced is written into them they are NumPy's own memory, written in place, and a constant of the trace.
np.array([x, -y]) of traced numbers is a stack.

An array that is stored at once (by lru_cache, in a global name) stays NumPy's: when the next recording begins it may
exist already, and would then be an array from outside. Grids (np.linspace) between constants stay NumPy's too, because
functions keep them in tables of their own more often than they fill them.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.array import as_array, dlarray
from tracejit.aval import SUPPORTED_DTYPES, wanted_dtype
from tracejit.errors import ArgumentValueError
from tracejit.functions import movement
from tracejit.functions.creation import full
from tracejit.functions.formats import in_dtype
from tracejit.functions.numpy_api import (
    asserting,
    by_value,
    classes,
    concatenators,
    lists,
    of_numbers,
    scipy_functions,
    scipy_objects,
    scipy_sparse,
    sparse_solvers,
    unasked,
)
from tracejit.functions.numpy_api.lists import (
    as_private,
    holds_traced,
    is_traced,
    stacked,
    without_numbers,
)
from tracejit.functions.numpy_api.seen import without_flat
from tracejit.functions.numpy_api.table import late_implementations
from tracejit.record import monitor, numba_functions, patches, recorder, views
from tracejit.record.conversion import LISTS
from tracejit.record.memory import is_contiguous

_Function = Callable[..., Any]


def _made(original: _Function, is_kept: bool, *args: Any, **kwargs: Any) -> Any:
    if args and type(args[0]) is list:  # what an array is to be like
        args = (lists.as_array_of_list(args[0]), *args[1:])
    made = monitor.watched(original, *args, **kwargs)
    return made if is_kept else as_private(made)


def _empty(original: _Function, is_kept: bool, *args: Any, **kwargs: Any) -> Any:
    if args and type(args[0]) is list:
        args = (lists.as_array_of_list(args[0]), *args[1:])
    made = monitor.watched(original, *args, **kwargs)
    if type(made) is np.ndarray and made.dtype in SUPPORTED_DTYPES:
        made[...] = 0  # what memory happens to hold would differ from one recording to the next
    return made if is_kept else as_private(made)


def _full(
    original: _Function,
    is_kept: bool,
    shape: Any,
    fill_value: Any,
    dtype: Any = None,
    *args: Any,
    **kwargs: Any,
) -> Any:
    fill_value = lists.as_array_of_list(fill_value)
    if not is_traced(fill_value):
        return _made(original, is_kept, shape, fill_value, dtype, *args, **kwargs)
    return views.copy(full(shape, fill_value, dtype))


def _array(original: _Function, is_kept: bool, /, object: Any, dtype: Any = None, **kwargs: Any) -> Any:
    """Answer np.array: a copy."""
    data = without_flat(object)
    if is_traced(data):
        return _as_asked(data, dtype, **{"copy": True, **kwargs})
    if isinstance(data, LISTS):
        if holds_traced(data) and _has_numbers(dtype):
            array = stacked(data, dtype)
            _check_depth(array, **kwargs)
            return _as_asked(array, None, **{**kwargs, "copy": None})
        if _is_of_objects(dtype) and lists.holds_arrays(data):
            return lists.of_objects(data)
        made = monitor.watched(original, without_numbers(data), dtype, **kwargs)
        return as_private(made) if made.dtype.kind == "f" and made.ndim and not is_kept else made
    made = monitor.watched(original, data, dtype, **kwargs)
    return as_private(made) if type(data) is float and not is_kept else made


def _check_depth(array: dlarray, ndmax: int | None = None, **kwargs: Any) -> None:
    """Raise NumPy's error for lists that are nested deeper than np.array is to take apart."""
    if ndmax is not None and array._data.ndim > ndmax:
        raise ArgumentValueError(
            f"np.array: lists are nested to {array._data.ndim} axes, expected at most {ndmax}, which is ndmax."
        )


def _has_numbers(dtype: Any) -> bool:
    """Return whether the elements of a dtype that is asked for, which may be none, are numbers."""
    try:
        return dtype is None or np.dtype(dtype).kind in "biufc" or np.dtype(dtype) in SUPPORTED_DTYPES
    except TypeError:
        return False


def _is_of_objects(dtype: Any) -> bool:
    return dtype is object or (isinstance(dtype, (str, np.dtype)) and dtype in ("O", "object"))


def _seen_as(
    original: _Function, is_kept: bool, /, a: Any, dtype: Any = None, order: Any = None, **kwargs: Any
) -> Any:
    """Answer np.asarray and similar functions: the array itself where it is one."""
    if original in _ORDERED:
        order, kwargs = _ORDERED[original], {**kwargs, "ndmin": 1}
    data = without_flat(a)
    if is_traced(data):
        return _as_asked(data, dtype, order=order, **kwargs)
    if isinstance(data, LISTS):
        if holds_traced(data) and _has_numbers(dtype):
            return _as_asked(stacked(data, dtype), None, order=order, **{**kwargs, "copy": None})
        data = without_numbers(data)
    return monitor.watched(
        original, data, dtype, **({} if original in _ORDERED else {"order": order, **kwargs})
    )


_ORDERED: dict[_Function, Any] = {np.ascontiguousarray: "C", np.asfortranarray: "F"}


def _arange(original: _Function, is_kept: bool, *args: Any, **kwargs: Any) -> Any:
    args, kwargs = lists.arguments(original, args, kwargs)
    answer = unasked.range_of(*args, **kwargs)
    return monitor.watched(original, *args, **kwargs) if answer is NotImplemented else answer


def _grid(original: _Function, is_kept: bool, *args: Any, **kwargs: Any) -> Any:
    """Answer np.linspace and similar functions: a grid between numbers that vary is traced."""
    args, kwargs = lists.arguments(original, args, kwargs)
    ends = (*args[:2], kwargs.get("start"), kwargs.get("stop"))
    if any(map(recorder.is_number, ends)):
        return late_implementations().FUNCTIONS[original](*args, **kwargs)
    return monitor.watched(original, *args, **kwargs)


_COPY_MODES: dict[Any, bool | None] = {
    np._CopyMode.ALWAYS: True, np._CopyMode.IF_NEEDED: None, np._CopyMode.NEVER: False,
}  # fmt: skip


def _as_asked(
    data: Any,
    dtype: Any,
    *,
    copy: bool | None = None,
    order: str | None = None,
    ndmin: int = 0,
    ndmax: int | None = None,
    subok: bool = False,
    like: Any = None,
    device: Any = None,
) -> Any:
    """Return an array or a number as NumPy's np.array does with these options."""
    copy = _COPY_MODES.get(copy, copy)
    given = as_array(data)
    if data is not given or views.is_scalar(data):  # of a number NumPy makes an array
        given = views.without_axes(given)
    array = given
    if dtype is not None:
        array = views.as_given(in_dtype(given, wanted_dtype("np.array", dtype)), given)
    if array._data.ndim < ndmin:
        array = movement.reshape(array, (1,) * (ndmin - array._data.ndim) + array._data.shape)
    is_copy = given._data.dtype != array._data.dtype or given is not data
    if (order == "C" and not is_contiguous(array)) or (copy and not is_copy and order != "F"):
        array, is_copy = views.copy(array, "C" if order == "C" else "K"), True
    elif order == "F" and ((copy and not is_copy) or not array._data.flags.f_contiguous):
        array, is_copy = views.copy(array.T, "C").T, True
    if copy is False and is_copy:
        raise ValueError("np.array: copy=False cannot be met, as a copy is needed; leave copy= out.")
    return array


def install() -> None:
    """Have NumPy's functions replaced while something is recorded."""
    for name in ("zeros", "ones", "eye", "identity", "zeros_like", "ones_like", "full_like"):
        patches.replace(name, _made)
    for name in ("empty", "empty_like"):
        patches.replace(name, _empty)
    patches.replace("arange", _arange)
    for name in ("linspace", "logspace", "geomspace"):
        patches.replace(name, _grid)
    for name in ("asarray", "asanyarray", "ascontiguousarray", "asfortranarray"):
        patches.replace(name, _seen_as)
    patches.replace("full", _full)
    patches.replace("array", _array)
    patches.replace_method(type(np.r_).__mro__[1], "__getitem__", concatenators.joined)
    patches.replace_method(np.vectorize, "__call__", concatenators.vectorized)
    by_value.install()
    classes.install()
    unasked.install()
    of_numbers.install()
    patches.when_imported("numpy.testing", asserting.install)
    numba_functions.install()
    scipy_functions.install()
    scipy_objects.install()
    scipy_sparse.install()
    sparse_solvers.install()
    lists.install()
