# SPDX-License-Identifier: BSD-3-Clause
"""Functions of the standard that move, search, sort and reduce."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.record import recorder
from tracejit.xp.arrays import ARRAYS, array, operand


def broadcast_arrays(*arrays: Any) -> Any:
    """Return arrays broadcast to one size, in a tuple."""
    return tuple([array(part) for part in np.broadcast_arrays(*map(operand, arrays))])


def broadcast_to(x: Any, /, shape: Any) -> Any:
    """Return an array broadcast to a size."""
    return array(np.broadcast_to(operand(x), shape))


def broadcast_shapes(*shapes: Any) -> Any:
    """Return the size that sizes broadcast to."""
    return np.broadcast_shapes(*shapes)


def concat(arrays: Any, /, *, axis: int | None = 0) -> Any:
    """Join arrays along an axis."""
    return array(np.concatenate([operand(part) for part in arrays], axis=axis))


def expand_dims(x: Any, /, axis: Any) -> Any:
    """Add an axis of size 1."""
    return array(np.expand_dims(operand(x), axis))


def flip(x: Any, /, *, axis: Any = None) -> Any:
    """Reverse elements along axes."""
    return array(np.flip(operand(x), axis))


def moveaxis(x: Any, source: Any, destination: Any, /) -> Any:
    """Move axes to other places."""
    return array(np.moveaxis(operand(x), source, destination))


def permute_dims(x: Any, /, axes: Any) -> Any:
    """Permute axes."""
    return array(np.permute_dims(operand(x), axes))


def repeat(x: Any, repeats: Any, /, *, axis: int | None = None) -> Any:
    """Repeat each element, as often as a number says, or a vector of numbers, which are guards."""
    if isinstance(repeats, ARRAYS):
        counts = recorder.need_value(operand(repeats), "xp.repeat")
        repeats = tuple(counts.tolist()) if counts.ndim else int(counts)
    return array(np.repeat(operand(x), repeats, axis=axis))


def reshape(x: Any, /, shape: Any, *, copy: bool | None = None) -> Any:
    """Return the elements in another size; a view where that is possible, unless `copy`."""
    found = array(np.reshape(operand(x), shape))
    return array(found.copy()) if copy else found


def roll(x: Any, /, shift: Any, *, axis: Any = None) -> Any:
    """Move elements along axes, those at the end to the start."""
    return array(np.roll(operand(x), shift, axis))


def squeeze(x: Any, /, axis: Any) -> Any:
    """Remove axes of size 1."""
    return array(np.squeeze(operand(x), axis))


def stack(arrays: Any, /, *, axis: int = 0) -> Any:
    """Join arrays along a new axis."""
    return array(np.stack([operand(part) for part in arrays], axis=axis))


def tile(x: Any, repetitions: Any, /) -> Any:
    """Repeat an array along its axes."""
    return array(np.tile(operand(x), repetitions))


def unstack(x: Any, /, *, axis: int = 0) -> Any:
    """Return the parts of an array along an axis."""
    return tuple(array(part) for part in np.unstack(operand(x), axis=axis))


def matmul(x1: Any, x2: Any, /) -> Any:
    """Return products of matrices."""
    return array(np.matmul(operand(x1), operand(x2)))


def matrix_transpose(x: Any, /) -> Any:
    """Exchange the last two axes."""
    return array(np.matrix_transpose(operand(x)))


def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Any:
    """Return sums of products over axes."""
    return array(np.tensordot(operand(x1), operand(x2), axes=axes))


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Return scalar products of vectors."""
    product: Any = np.vecdot  # whose types lack the axis
    return array(product(operand(x1), operand(x2), axis=axis))


def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Any:
    """Return elements at places along an axis."""
    return array(np.take(operand(x), operand(indices), axis=axis))


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Any:
    """Return elements at places of their own along an axis."""
    return array(np.take_along_axis(operand(x), operand(indices), axis=axis))


def _reduced(function: Callable[..., Any], x: Any, **options: Any) -> Any:
    """Return what a function of NumPy makes of an array.

    Its overloads take keepdims=True and keepdims=False apart, and none takes a bool.
    """
    return array(function(operand(x), **options))


def argmax(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """Return places of largest elements."""
    return _reduced(np.argmax, x, axis=axis, keepdims=keepdims)


def argmin(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """Return places of smallest elements."""
    return _reduced(np.argmin, x, axis=axis, keepdims=keepdims)


def count_nonzero(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Return the numbers of elements that are not 0."""
    return _reduced(np.count_nonzero, x, axis=axis, keepdims=keepdims)


def nonzero(x: Any, /) -> Any:
    """Return the places of elements that are not 0, by axis."""
    return tuple(array(part) for part in np.nonzero(operand(x)))


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Any:
    """Return where numbers belong in a sorted vector."""
    if sorter is not None:
        x1 = take(x1, sorter)
    return array(np.searchsorted(operand(x1), operand(x2), side=side))  # type: ignore[call-overload]


def where(condition: Any, x1: Any, x2: Any, /) -> Any:
    """Return elements of the first array where a condition holds, otherwise of the second."""
    return array(np.where(operand(condition), operand(x1), operand(x2)))


def unique_all(x: Any, /) -> Any:
    """Return distinct values, their first places, the inverse, and counts."""
    return array(np.unique_all(operand(x)))


def unique_counts(x: Any, /) -> Any:
    """Return distinct values and counts."""
    return array(np.unique_counts(operand(x)))


def unique_inverse(x: Any, /) -> Any:
    """Return distinct values and, for each element, the place of its value."""
    return array(np.unique_inverse(operand(x)))


def unique_values(x: Any, /) -> Any:
    """Return distinct values."""
    return array(np.unique_values(operand(x)))


def argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """Return the places of the elements in order; equal ones keep their order."""
    x = operand(x)
    if not descending:
        return array(np.argsort(x, axis=axis, stable=True))
    size = x.shape[axis]
    backwards = np.argsort(np.flip(x, axis), axis=axis, stable=True)
    return array(np.flip(size - 1 - backwards, axis))


def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """Return the elements in order; zeros of both signs are equal, and come in any order."""
    found = np.sort(operand(x), axis=axis)
    return array(np.flip(found, axis) if descending else found)


def cumulative_sum(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Any:
    """Return running sums."""
    return array(np.cumulative_sum(operand(x), axis=axis, dtype=dtype, include_initial=include_initial))


def cumulative_prod(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Any:
    """Return running products."""
    return array(np.cumulative_prod(operand(x), axis=axis, dtype=dtype, include_initial=include_initial))


def max(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Return the largest element along axes."""
    return _reduced(np.max, x, axis=axis, keepdims=keepdims)


def min(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Return the smallest element along axes."""
    return _reduced(np.min, x, axis=axis, keepdims=keepdims)


def mean(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Return the mean along axes."""
    return _reduced(np.mean, x, axis=axis, keepdims=keepdims)


def std(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """Return the standard deviation along axes."""
    return _reduced(np.std, x, axis=axis, correction=correction, keepdims=keepdims)


def var(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """Return the variance along axes."""
    return _reduced(np.var, x, axis=axis, correction=correction, keepdims=keepdims)


def sum(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Return the sum along axes."""
    return _reduced(np.sum, x, axis=axis, dtype=dtype, keepdims=keepdims)


def prod(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Return the product along axes."""
    return _reduced(np.prod, x, axis=axis, dtype=dtype, keepdims=keepdims)


def all(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Return whether all elements along axes are true."""
    return _reduced(np.all, x, axis=axis, keepdims=keepdims)


def any(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Return whether some element along axes is true."""
    return _reduced(np.any, x, axis=axis, keepdims=keepdims)


def diff(x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Any:
    """Return differences of neighbours."""
    ends = {
        name: operand(part) for name, part in (("prepend", prepend), ("append", append)) if part is not None
    }
    return array(np.diff(operand(x), n=n, axis=axis, **ends))


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Any:
    """Return whether elements occur in another array."""
    return array(np.isin(operand(x1), operand(x2), invert=invert))
