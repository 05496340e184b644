# SPDX-License-Identifier: BSD-3-Clause
"""NumPy's functions that use no protocol of arrays, when recorded code gives them traced arrays.

Labels: those of the toolbox's function that replaces it.
"""

import importlib
from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np

from tracejit.array import as_array, dlarray
from tracejit.functions import elementwise, reductions
from tracejit.functions.numpy_api import seen
from tracejit.functions.numpy_api.lists import as_array_of_list, holds_traced, is_traced, stacked
from tracejit.functions.refusals import refuse
from tracejit.record import monitor, patches, recorder, views
from tracejit.record.guards import Decides
from tracejit.record.memory import is_contiguous

_Function = Callable[..., Any]


def _as_strided(original: _Function, x: Any, *args: Any, **kwargs: Any) -> Any:
    return seen.as_strided(x, *args, **kwargs) if isinstance(x, dlarray) else NotImplemented


def _finite(original: _Function, is_kept: bool, a: Any, dtype: Any = None, order: Any = None) -> Any:
    """Answer np.asarray_chkfinite: that all elements are finite is a guard."""
    a = as_array_of_list(a)
    if not isinstance(a, dlarray):
        return monitor.watched(original, a, dtype, order)
    array = as_array(a if dtype is None else elementwise.cast(a, dtype))
    fine = reductions.all(elementwise.isfinite(array))
    if not bool(recorder.need_value(fine, "np.asarray_chkfinite", Decides.TRUTH)):
        raise ValueError("array must not contain infs or NaNs")
    return array


def _required(
    original: _Function, is_kept: bool, a: Any, dtype: Any = None, requirements: Any = None, **kwargs: Any
) -> Any:
    """Answer np.require."""
    a = as_array_of_list(a)
    if not isinstance(a, dlarray):
        return monitor.watched(original, a, dtype, requirements, **kwargs)
    letters = {name[0].upper() for name in requirements or ()}
    array = as_array(a if dtype is None else elementwise.cast(a, dtype))
    if views.is_scalar(array):
        return views.without_axes(array)
    if "F" in letters:
        return array if array._data.flags.f_contiguous else array.copy("F")
    return array if not letters & {"C", "O"} or is_contiguous(array) else array.copy()


def range_of(*args: Any, **kwargs: Any) -> Any:
    """Answer np.arange of traced bounds: how many numbers there are is a guard. NotImplemented for others."""
    given = dict(zip(("start", "stop", "step", "dtype"), args, strict=False)) | kwargs
    if not any(isinstance(x, dlarray) for x in given.values()):
        return NotImplemented
    if "stop" not in given or given["stop"] is None:
        given["stop"], given["start"] = given.pop("start"), 0
    start, stop, step = (given.get(name, usual) for name, usual in (("start", 0), ("stop", 0), ("step", 1)))
    first, step = as_array(0 if start is None else start), as_array(1 if step is None else step)
    length = elementwise.ceil((stop - first) / step)
    count = max(int(recorder.need_value(length, "np.arange", Decides.WHOLE)), 0)
    result = first + np.arange(count) * step
    dtype = given.get("dtype")
    if dtype is None:
        dtype = np.result_type(*[x.dtype if isinstance(x, dlarray) else x for x in (first, stop, step)])
    return elementwise.cast(result, dtype)


def _is_scalar(original: _Function, element: Any) -> Any:
    """Answer np.isscalar: what NumPy's code would have a number for is one."""
    return views.is_scalar(element) if isinstance(element, dlarray) else NotImplemented


def _coefficients(original: _Function, *given: Any) -> Any:
    """Answer np.atleast_1d where the coefficients of a polynomial are a list that holds traced numbers."""
    arrays = [*map(as_array_of_list, given)]
    return original(*arrays) if any(map(is_traced, arrays)) else NotImplemented


def _from_iterable(
    original: _Function, is_kept: bool, iter: Any, dtype: Any, count: int = -1, **kwargs: Any
) -> Any:
    """Answer np.fromiter."""
    parts = list(iter) if count < 0 else list(islice(iter, count))
    if len(parts) < count or not parts or not holds_traced(parts):
        return monitor.watched(original, parts, dtype, count, **kwargs)
    return stacked(parts, dtype)


def _as_matrix(original: _Function, data: Any, *args: Any, **kwargs: Any) -> Any:
    """Refuse np.asmatrix and np.bmat of a traced array, whose memory they would not show."""
    if is_traced(data) or (isinstance(data, (list, tuple)) and holds_traced(data)):
        instead = "use the array itself" if original.__name__ == "asmatrix" else "join blocks with np.block"
        refuse(
            f"np.{original.__name__}", f"not supported on dlarrays; {instead}, and @ for products of matrices"
        )
    return NotImplemented


def _masked(original: _Function, *args: Any, **kwargs: Any) -> Any:
    """Refuse traced arrays in functions of np.ma."""
    if any(
        is_traced(x) or (isinstance(x, (list, tuple)) and holds_traced(x)) for x in (*args, *kwargs.values())
    ):
        refuse(
            f"np.ma.{original.__name__}",
            "masked arrays are not recorded; compute with np.where(mask, 0, x), with where= (x.sum(where=~mask)), or "
            "with functions that leave NaN out (np.nanmean)",
        )
    return NotImplemented


def install() -> None:
    """Have these functions answered while something is recorded."""
    patches.answer(np.lib.stride_tricks, "as_strided", _as_strided)
    patches.replace("asarray_chkfinite", _finite)
    patches.replace("require", _required)
    patches.answer(np, "isscalar", _is_scalar)
    polynomials = importlib.import_module("numpy.lib._polynomial_impl")  # np.poly1d asks by the names there
    patches.answer(polynomials, "isscalar", _is_scalar, is_alias=True)
    patches.answer(polynomials, "atleast_1d", _coefficients, is_alias=True)
    patches.answer(np, "asmatrix", _as_matrix)
    patches.answer(np, "bmat", _as_matrix)
    patches.replace("fromiter", _from_iterable)
    for name in ("array", "asarray", "masked_where", "masked_invalid", "masked_equal", "masked_greater",
                 "masked_less", "masked_inside", "masked_outside", "median", "average", "mean", "sum"):  # fmt: skip
        patches.answer(np.ma, name, _masked)
