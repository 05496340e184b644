# SPDX-License-Identifier: BSD-3-Clause
"""Mean and variance over axes of an array, for normalisation.

Note [sums in float64]
Statistics over many elements are sums of x - k and (x - k)**2 in float64, k being an element of x: nothing cancels,
however large the mean is beside the deviation, and both sums take one pass. Rows of memory (layer normalisation with
the channels last) are in a near cache when their mean is known: there the deviations are summed in a second pass.
The mean that float32 holds may be off by much of a small deviation, so what it leaves out is subtracted too.
"""

import math
from collections.abc import Callable

from tracejit.array import apply, dlarray
from tracejit.aval import FLOAT64
from tracejit.functions.formats import in_dtype
from tracejit.functions.movement import reshaped, sliced
from tracejit.util.named_tuples import NamedTuple

_ROW = 65536  # elements of a row that stays in the second cache


class Statistics(NamedTuple):
    """Mean and variance, broadcast with the array; `rest` is what `mean` has too much, None for 0."""

    mean: dlarray
    rest: dlarray | None
    variance: dlarray


def statistics_of(array: dlarray, axes: tuple[int, ...], many: bool = False, groups: int = 0) -> Statistics:
    """Return mean and variance over axes (Note [sums in float64]).

    Args:
        array: floating-point array.
        axes: to sum over.
        many: float64 for rows, too.
        groups: into how many parts the last axis is divided, which have statistics of their own; 0 for none.
    """
    shape, dtype = array._data.shape, array._data.dtype
    is_row = axes == tuple(range(len(shape) - len(axes), len(shape)))
    if not array._data.size or (is_row and not many and math.prod(shape[axes[0] :]) <= _ROW):
        mean = mean_over(array, axes)
        moved = apply("sub", array, mean)
        rest = apply("stop_gradient", apply("neg", mean_over(moved, axes)))
        return Statistics(
            mean, rest, apply("sub", mean_over(apply("square", moved), axes), apply("square", rest))
        )

    def mean_of(x: dlarray) -> dlarray:
        means = mean_over(x, axes)
        return _of_groups(means, groups, lambda parts, last: mean_over(parts, (last,))) if groups else means

    first = apply("stop_gradient", sliced(array, {axis: slice(0, 1) for axis in axes}))
    if groups:
        first = _of_groups(first, groups, lambda parts, last: sliced(parts, {last: slice(0, 1)}))
    k = in_dtype(first, FLOAT64)
    moved = apply("sub", in_dtype(array, FLOAT64), k)
    shift = mean_of(moved)
    variance = apply("sub", mean_of(apply("square", moved)), apply("square", shift))
    variance = in_dtype(apply("where", apply("less", variance, 0.0), 0.0, variance), dtype)
    mean = apply("add", k, shift)
    if dtype == FLOAT64:
        return Statistics(mean, None, variance)
    near = in_dtype(mean, dtype)
    rest = apply("stop_gradient", apply("sub", in_dtype(near, FLOAT64), mean))
    return Statistics(near, in_dtype(rest, dtype), variance)


def _of_groups(x: dlarray, groups: int, one: Callable[[dlarray, int], dlarray]) -> dlarray:
    """Return `one` number for each part of the last axis, repeated along that part."""
    shape = x._data.shape
    split = (*shape[:-1], groups, shape[-1] // groups)
    found = one(reshaped(x, split, None), len(shape))
    return reshaped(apply("broadcast_to", found, shape=split), shape, None)


def mean_over(array: dlarray, axes: tuple[int, ...]) -> dlarray:
    """Return the mean over axes, which stay with size 1."""
    count = math.prod([array._data.shape[axis] for axis in axes])
    return apply("mul", apply("sum", array, axes=axes, keepdims=True), 1.0 / count if count else math.nan)
