# SPDX-License-Identifier: BSD-3-Clause
"""Mean and variance over axes of an array, for normalisation.

Note [sums of deviations]
Statistics over many elements are computed from sums of x - k and (x - k)**2, where k is the mean of a few elements of
x. So little cancels, however large the mean is compared with the deviation, and both sums take one pass. Numbers of
float32 are summed in float32 over images with the channels first, or over their rows; these sums are added in float64.
If images or rows are long, all are summed in float64. Rows of memory (layer normalisation with the channels last) are
in a near cache when their mean is known: there the deviations are summed in a second pass. The rounding error of a mean
in float32 may be large compared with a small deviation, so the rest of the mean is subtracted too.

Note [rows in two passes]
Rows of groups with the channels first leave the nearest cache. With a number k near the mean, a normalised row is (x -
k) f + h, where f and h follow from the sums of x - k and (x - k)**2. From the row, a gradient needs only the sums of ct
and ct (x - k). So one pass takes all sums before the mean is known, and another writes the result and the gradient; by
way of the mean there would be four passes. The variance loses precision by the factor by which (k - mean)**2 exceeds
it. k is the middle one of three elements, so it is far from the mean only if two of these are. For rows that stay in
the nearest cache, four passes are better: they read memory once, but two passes, which are loops of their own, read it
more than once.
"""

import math
from collections.abc import Callable

from tracejit.array import apply, dlarray
from tracejit.aval import FLOAT64
from tracejit.functions.formats import in_dtype
from tracejit.functions.movement import reshaped, sliced
from tracejit.util.named_tuples import NamedTuple

_ROW = 65536  # elements of a row that stays in the second cache
_NEAR_ROW = 2048  # of one that stays, with its cotangent, in the nearest cache
_SHORT_LINE = 64  # side by side, with a scale of their own: a loop over them takes more than the work in it
_NEIGHBOURS = 4096  # that are summed in float32, as parts that vectors add
_APART = 256  # elements that are summed in float32 one after the other
_FEW = 32  # elements whose mean is subtracted from all


class Statistics(NamedTuple):
    """Mean and variance, broadcast with the array; `rest` is what `mean` has too much, None for 0."""

    mean: dlarray
    rest: dlarray | None
    variance: dlarray


def statistics_of(array: dlarray, axes: tuple[int, ...], groups: int = 0) -> Statistics:
    """Return mean and variance over axes of an array that is not empty (Note [sums of deviations]).

    Args:
        array: floating-point array.
        axes: to sum over.
        groups: into how many parts the last axis is divided, which have statistics of their own; 0 for none.
    """
    shape, dtype = array._data.shape, array._data.dtype
    if not axes:  # each element is a mean of its own
        return Statistics(array, None, apply("square", apply("sub", array, array)))
    near = _near(shape, axes) if dtype != FLOAT64 else ()

    def mean_of(x: dlarray) -> dlarray:
        sums = in_dtype(apply("sum", x, axes=near, keepdims=True), FLOAT64) if near else x
        means = apply("mul", apply("sum", sums, axes=axes, keepdims=True), 1.0 / count)
        return _of_groups(means, groups, lambda parts, last: mean_over(parts, (last,))) if groups else means

    count = math.prod([shape[axis] for axis in axes])
    few = sliced(array, {axis: slice(0, 1 if axis < max(axes) else _FEW) for axis in axes})
    k = mean_over(few, (max(axes),))
    if groups:
        k = _of_groups(k, groups, lambda parts, last: mean_over(parts, (last,)))
    k = apply("stop_gradient", k)
    if not near:
        k = in_dtype(k, FLOAT64)
        array = in_dtype(array, FLOAT64)
    moved = apply("sub", array, k)
    shift = mean_of(moved)
    variance = apply("sub", mean_of(apply("square", moved)), apply("square", shift))
    variance = in_dtype(_not_negative(variance), dtype)
    mean = apply("add", in_dtype(k, FLOAT64), shift)
    if dtype == FLOAT64:
        return Statistics(mean, None, variance)
    rounded = in_dtype(mean, dtype)
    rest = apply("stop_gradient", apply("sub", in_dtype(rounded, FLOAT64), mean))
    return Statistics(rounded, in_dtype(rest, dtype), variance)


class Moved(NamedTuple):
    """Rows less numbers near their means, the means that are left, and the variances (Note [moved rows])."""

    rows: dlarray
    mean: dlarray
    variance: dlarray


def rows_by_mean(array: dlarray, axes: tuple[int, ...]) -> Moved | None:
    """Return rows of memory, along axes, less the mean of each; None if they are too long, or no rows."""
    shape = array._data.shape
    if array._data.size and (not _are_rows(shape, axes) or math.prod(shape[axes[0] :]) > _ROW):
        return None
    return _moved(array, apply("stop_gradient", mean_over(array, axes)), axes)


def rows_by_middle(array: dlarray, axes: tuple[int, ...]) -> Moved | None:
    """Return rows of memory, along axes, less the middle one of three elements of each; None if the mean is better."""
    shape = array._data.shape
    if 0 in shape or not _are_rows(shape, axes):
        return None
    count, line = math.prod(shape[axes[0] :]), math.prod(shape[axes[0] + 1 :])
    if not (_NEAR_ROW < count <= _ROW or (line <= _SHORT_LINE <= count)):
        return None

    def element(numerator: int) -> dlarray:
        starts = {axis: shape[axis] * numerator // 6 for axis in axes}
        return sliced(array, {axis: slice(start, start + 1) for axis, start in starts.items()})

    x, y, z = element(1), element(3), element(5)
    low, high = apply("minimum", x, y), apply("maximum", x, y)
    k = apply("stop_gradient", apply("maximum", low, apply("minimum", high, z)))
    return _moved(array, k, axes)


def _are_rows(shape: tuple[int, ...], axes: tuple[int, ...]) -> bool:
    return axes == tuple(range(len(shape) - len(axes), len(shape)))


def _moved(array: dlarray, k: dlarray, axes: tuple[int, ...]) -> Moved:
    rows = apply("sub", array, k)
    mean = mean_over(rows, axes)
    variance = apply("sub", mean_over(apply("square", rows), axes), apply("square", mean))
    # Also where k is the mean: the rounding error of that of a constant row may be large beside epsilon.
    return Moved(rows, mean, _not_negative(variance))


def _not_negative(variance: dlarray) -> dlarray:
    """Return a variance with 0 where rounding has made it negative."""
    return apply("where", apply("less", variance, 0.0), 0.0, variance)


def _near(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the axes that are summed in float32, () for none: neighbours in memory, or some that lie apart."""
    if axes[-1] < len(shape) - 1:
        return axes[-1:] if shape[axes[-1]] <= _APART else ()
    found: tuple[int, ...] = ()
    for axis in reversed(range(len(shape))):
        if axis not in axes or math.prod(shape[axis:]) > _NEIGHBOURS:
            break
        found = (axis, *found)
    return found


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
