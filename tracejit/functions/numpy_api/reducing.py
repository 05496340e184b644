# SPDX-License-Identifier: BSD-3-Clause
"""The methods of dlarray that reduce or accumulate, with the arguments of those of ndarray.

With the usual arguments, the toolbox's functions compute the result. With dtype=, out=, initial= or where=, NumPy's
function of that name is called, as in ``np.sum(x, where=mask)``.
"""

from typing import Any

import numpy as np

from tracejit.array import dlarray
from tracejit.functions import linear, reductions

_numpy: Any = np  # whose functions answer for dlarrays


def answer(name: str, *args: Any, **options: Any) -> Any:
    """Return what a function of NumPy gives for an array and the options that are not None."""
    given = {key: value for key, value in options.items() if value is not None}
    return getattr(_numpy, name)(*args, **given)


def _reduced(
    name: str, array: dlarray, options: dict[str, Any], dtype: Any = None, out: Any = None, **usual: Any
) -> dlarray:
    """Return the result of the toolbox's function, or of NumPy's if that one does not take the arguments."""
    if dtype is None and out is None and not options:
        reduced: dlarray = getattr(reductions, name)(array, **usual)
    else:
        reduced = answer(name, array, dtype=dtype, out=out, **usual, **options)
    return reduced


def sum(
    self: dlarray,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    **options: Any,
) -> dlarray:
    """Return the sum over `axis`; see np.sum."""
    return _reduced("sum", self, options, dtype, out, axis=axis, keepdims=keepdims)


def prod(
    self: dlarray,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    **options: Any,
) -> dlarray:
    """Return the product over `axis`; see np.prod."""
    return _reduced("prod", self, options, dtype, out, axis=axis, keepdims=keepdims)


def mean(
    self: dlarray,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    **options: Any,
) -> dlarray:
    """Return the mean over `axis`; see np.mean."""
    return _reduced("mean", self, options, dtype, out, axis=axis, keepdims=keepdims)


def var(
    self: dlarray,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    **options: Any,
) -> dlarray:
    """Return the variance over `axis`; see np.var."""
    return _reduced("var", self, options, dtype, out, axis=axis, ddof=ddof, keepdims=keepdims)


def std(
    self: dlarray,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    **options: Any,
) -> dlarray:
    """Return the standard deviation over `axis`; see np.std."""
    return _reduced("std", self, options, dtype, out, axis=axis, ddof=ddof, keepdims=keepdims)


def max(self: dlarray, axis: Any = None, out: Any = None, keepdims: bool = False, **options: Any) -> dlarray:
    """Return the largest element over `axis`; see np.max."""
    return _reduced("max", self, options, out=out, axis=axis, keepdims=keepdims)


def min(self: dlarray, axis: Any = None, out: Any = None, keepdims: bool = False, **options: Any) -> dlarray:
    """Return the smallest element over `axis`; see np.min."""
    return _reduced("min", self, options, out=out, axis=axis, keepdims=keepdims)


def any(self: dlarray, axis: Any = None, out: Any = None, keepdims: bool = False, **options: Any) -> dlarray:
    """Return whether any element over `axis` is true; see np.any."""
    if out is None and not options:
        return reductions.any(self, axis=axis, keepdims=keepdims)
    result: dlarray = answer("any", self, axis=axis, out=out, keepdims=keepdims, **options)
    return result


def all(self: dlarray, axis: Any = None, out: Any = None, keepdims: bool = False, **options: Any) -> dlarray:
    """Return whether all elements over `axis` are true; see np.all."""
    if out is None and not options:
        return reductions.all(self, axis=axis, keepdims=keepdims)
    result: dlarray = answer("all", self, axis=axis, out=out, keepdims=keepdims, **options)
    return result


def argmax(self: dlarray, axis: Any = None, out: Any = None, keepdims: bool = False) -> dlarray:
    """Return the index of the largest element along `axis`; see np.argmax."""
    if out is None:
        return reductions.argmax(self, axis=axis, keepdims=keepdims)
    result: dlarray = answer("argmax", self, axis=axis, out=out, keepdims=keepdims)
    return result


def argmin(self: dlarray, axis: Any = None, out: Any = None, keepdims: bool = False) -> dlarray:
    """Return the index of the smallest element along `axis`; see np.argmin."""
    if out is None:
        return reductions.argmin(self, axis=axis, keepdims=keepdims)
    result: dlarray = answer("argmin", self, axis=axis, out=out, keepdims=keepdims)
    return result


def cumsum(self: dlarray, axis: Any = None, dtype: Any = None, out: Any = None) -> dlarray:
    """Return the running sums along `axis`; see np.cumsum."""
    if dtype is None and out is None:
        return reductions.cumsum(self, axis=axis)
    result: dlarray = answer("cumsum", self, axis=axis, dtype=dtype, out=out)
    return result


def cumprod(self: dlarray, axis: Any = None, dtype: Any = None, out: Any = None) -> dlarray:
    """Return the running products along `axis`; see np.cumprod."""
    result: dlarray = answer("cumprod", self, axis=axis, dtype=dtype, out=out)
    return result


def trace(
    self: dlarray, offset: int = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None, out: Any = None
) -> dlarray:
    """Return the sum along a diagonal of two axes, the first two by default; see np.trace."""
    if axis1 == 0 and axis2 == 1 and dtype is None and out is None:
        return linear.trace(self, offset)
    result: dlarray = answer("trace", self, offset, axis1, axis2, dtype=dtype, out=out)
    return result


def dot(self: dlarray, other: Any, out: Any = None) -> dlarray:
    """Return the dot product with `other`; see dot."""
    if out is None:
        return linear.dot(self, other)
    result: dlarray = answer("dot", self, other, out=out)
    return result
