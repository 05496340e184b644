# SPDX-License-Identifier: BSD-3-Clause
"""Pooling: the largest element, the mean or the norm of windows over the spatial axes, and unpooling."""

import math
from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.aval import describe_shape
from tracejit.errors import ArgumentError, DimsError, DTypeError
from tracejit.functions.formats import describe, floating, labelled
from tracejit.functions.halves import in_single
from tracejit.functions.layers.resizing import resampled
from tracejit.functions.layers.spatial import (
    Pairs,
    brought_together,
    pairs_of,
    per_axis,
    put_back,
    same_padding,
    spatial_axes,
)
from tracejit.functions.movement import relabel, reshaped
from tracejit.ops.pooling import pooled_extent
from tracejit.ops.resampling import SumTables
from tracejit.util.arguments import flag, integers, is_option, real
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.text import brief


class _Pooling(NamedTuple):
    """Windows over the spatial axes of an array, which are next to each other.

    array       the array without labels
    order       the order of the axes that this took
    format      the labels of the result
    axis        the first of the axes
    """

    array: dlarray
    order: tuple[int, ...]
    format: str | None
    axis: int
    size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: Pairs

    @property
    def window(self) -> dict[str, Any]:
        """The parameters of the ops."""
        return {"axis": self.axis, "size": self.size, "stride": self.stride, "padding": self.padding}

    @property
    def axes(self) -> tuple[int, ...]:
        return tuple(range(self.axis, self.axis + len(self.size)))

    @property
    def is_global(self) -> bool:
        """True if one window is all of each axis."""
        extents = self.array._data.shape[self.axis : self.axis + len(self.size)]
        return extents == self.size and not any(map(any, self.padding))

    def result(self, array: dlarray) -> dlarray:
        """Return a result with the axes and the labels of the array that was given."""
        return relabel(put_back(array, self.order), self.format)


@in_single
def maxpool(
    x: Any,
    pool_size: Any,
    *,
    stride: Any = 1,
    padding: Any = 0,
    return_indices: bool = False,
    data_format: str | None = None,
) -> Any:
    """Return the largest element of each window over the spatial axes.

    Args:
        x: dlarray with labels S (one to three), or T if it has no S; or an unformatted array with `data_format`.
        pool_size: size of the window along each spatial axis: an integer for all, one for each, or "global" for a
            single window that is the whole axis.
        stride: distance of the windows, an integer or one for each axis.
        padding: elements that are added around, and are never the largest: an integer, one for each axis, a pair
            (before, after) for each axis, or "same" for an output of ceil(input / stride) elements.
        return_indices: also return the places of the largest elements, and the sizes of `x`, for maxunpool.
        data_format: labels of an unformatted `x`, such as "BCSS".

    Returns:
        dlarray of the dtype and format of `x`, with floor((input + padding - pool_size) / stride) + 1 elements along
        each spatial axis. With return_indices a tuple of it, an int64 array of the same sizes with the place of each
        largest element in its image (spatial axes in C order), and the sizes of `x`.

    Raises:
        DimsError: if there are no spatial axes, a number is out of range, or the windows do not fit.
        ArgumentError: for an invalid size, stride or padding.

    A NaN in a window is its largest element. The cotangent goes to the first of the largest elements, or the last NaN.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> x = tj.dlarray(np.arange(16.0).reshape(4, 4), "SS")
        >>> tj.maxpool(x, 2, stride=2)
        2(S) x 2(S) dlarray float64
        [[ 5.  7.]
         [13. 15.]]
    """
    wanted = flag("maxpool", "return_indices", return_indices)
    pooling = _pooling("maxpool", x, pool_size, stride, padding, data_format)
    values, places = apply("maxpool", pooling.array, **pooling.window)
    if not wanted:
        return pooling.result(values)
    indices = _image_places(pooling, places)
    return pooling.result(values), pooling.result(indices), as_array(x)._data.shape


@in_single
def avgpool(
    x: Any,
    pool_size: Any,
    *,
    stride: Any = 1,
    padding: Any = 0,
    padding_value: Any = 0,
    data_format: str | None = None,
) -> dlarray:
    """Return the mean of each window over the spatial axes.

    Args:
        x: dlarray with labels S (one to three), or T if it has no S; or an unformatted array with `data_format`.
        pool_size: size of the window along each spatial axis: an integer for all, one for each, or "global" for a
            single window that is the whole axis.
        stride: distance of the windows, an integer or one for each axis.
        padding: elements that are added around: an integer, one for each axis, a pair (before, after) for each axis,
            or "same" for an output of ceil(input / stride) elements.
        padding_value: 0 for padding that counts as zeros, "mean" for the mean of a window's own elements.
        data_format: labels of an unformatted `x`, such as "BCSS".

    Returns:
        dlarray of the format of `x`, with floor((input + padding - pool_size) / stride) + 1 elements along each
        spatial axis; integers give float64.

    Raises:
        DimsError: if there are no spatial axes, a number is out of range, or the windows do not fit.
        ArgumentError: for an invalid size, stride or padding.

    The cotangent of a window is shared equally among its elements.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> x = tj.dlarray(np.arange(16.0).reshape(4, 4), "SS")
        >>> tj.avgpool(x, 2, stride=2)
        2(S) x 2(S) dlarray float64
        [[ 2.5  4.5]
         [10.5 12.5]]
        >>> tj.avgpool(x, "global")
        1(S) x 1(S) dlarray float64
        [[7.5]]
    """
    if not is_option(padding_value, ("mean",)) and not (
        isinstance(padding_value, int) and padding_value == 0
    ):
        raise ArgumentError(f'avgpool: padding_value must be 0 or "mean", not {brief(padding_value)}.')
    pooling = _pooling("avgpool", x, pool_size, stride, padding, data_format, of_floats=True)
    return pooling.result(_mean(pooling, padding_value != "mean"))


@in_single
def lppool(
    x: Any,
    norm_type: float,
    pool_size: Any,
    *,
    stride: Any = 1,
    padding: Any = 0,
    data_format: str | None = None,
) -> dlarray:
    """Return the p-norm of each window over the spatial axes, (sum |x|**p)**(1/p).

    Args:
        x: dlarray with labels S (one to three), or T if it has no S; or an unformatted array with `data_format`.
        norm_type: the number p > 0.
        pool_size, stride, padding: as for avgpool.
        data_format: labels of an unformatted `x`, such as "BCSS".

    Returns:
        dlarray of the format of `x` and the sizes that avgpool gives; integers give float64.

    Raises:
        DimsError: if there are no spatial axes, a number is out of range, or the windows do not fit.
        ArgumentError: for an invalid size, stride, padding or norm.

    The derivative of a window of zeros is 0.

    Examples:
        >>> import tracejit as tj
        >>> tj.lppool(tj.dlarray([3.0, -4.0, 0.0], "S"), 2, 2)
        2(S) dlarray float64
        [5. 4.]
    """
    p = float(real("lppool", "norm_type", norm_type))
    if not 0 < p < math.inf:
        raise ArgumentError(f"lppool: norm_type must be a positive number, not {brief(norm_type)}.")
    pooling = _pooling("lppool", x, pool_size, stride, padding, data_format, of_floats=True)
    array = pooling.array
    powers = apply("square", array) if p == 2 else _power(apply("abs", array), p)
    sums = apply("mul", _mean(pooling._replace(array=powers), True), float(math.prod(pooling.size)))
    return pooling.result(_power(sums, 1 / p))


@in_single
def adaptiveavgpool(x: Any, output_size: Any, *, data_format: str | None = None) -> dlarray:
    """Return means over about equal parts of the spatial axes, as many as asked for.

    Args:
        x: dlarray with labels S (one to three), or T if it has no S; or an unformatted array with `data_format`.
        output_size: how many parts each spatial axis has: an integer for all, or one for each.
        data_format: labels of an unformatted `x`, such as "BCSS".

    Returns:
        dlarray of the format of `x`, with `output_size` elements along the spatial axes; integers give float64.

    Raises:
        DimsError: if there are no spatial axes, one is empty, or an output size is out of range.
        ArgumentError: for an output size that is no integer.

    Part i of m of an axis of n elements is from floor(i n / m) up to ceil((i + 1) n / m).

    Examples:
        >>> import tracejit as tj
        >>> tj.adaptiveavgpool(tj.dlarray([1.0, 2.0, 3.0, 4.0, 5.0], "S"), 2)
        2(S) dlarray float64
        [2. 4.]
    """
    array, formatted = labelled("adaptiveavgpool", x, data_format)
    axes = spatial_axes("adaptiveavgpool", array, "pools")
    _check_elements("adaptiveavgpool", array, axes)
    parts = per_axis("adaptiveavgpool", "output_size", output_size, len(axes), 1)
    format = array._format if formatted else None
    together, order = brought_together(relabel(floating("adaptiveavgpool", array), None), axes)
    axis = order.index(axes[0])
    extents = tuple([array._data.shape[place] for place in axes])
    if any(n % m for n, m in zip(extents, parts, strict=True)):
        sums = map(_means_of_parts, extents, parts)
        return relabel(put_back(resampled(together, enumerate(sums, axis)), order), format)
    size = tuple([n // m for n, m in zip(extents, parts, strict=True)])
    pooling = _Pooling(together, order, format, axis, size, size, ((0, 0),) * len(size))
    return pooling.result(_mean(pooling, True))


def maxunpool(y: Any, indices: Any, output_size: Any, *, data_format: str | None = None) -> dlarray:
    """Return zeros with the elements of `y` where maxpool found them.

    Args:
        y: dlarray with labels S (one to three), or T if it has no S; or an unformatted array with `data_format`.
        indices: places in the images of the result, integers of the sizes of `y`, as maxpool returns them.
        output_size: sizes of the result, all of them or those of the spatial axes.
        data_format: labels of an unformatted `y`, such as "BCSS".

    Returns:
        dlarray of the format and dtype of `y`.

    Raises:
        DimsError: if sizes do not fit, or there are no spatial axes.
        DTypeError: if `indices` are no integers.
        BoundsError: if an index is not in the image.

    If several elements have the same place, the last one counts, and the cotangent goes to it.

    Examples:
        >>> import tracejit as tj
        >>> x = tj.dlarray([[1.0, 5.0, 2.0, 3.0]], "BS")
        >>> y, indices, size = tj.maxpool(x, 2, stride=2, return_indices=True)
        >>> tj.maxunpool(y, indices, size)
        1(B) x 4(S) dlarray float64
        [[0. 5. 0. 3.]]
    """
    array, formatted = labelled("maxunpool", y, data_format, "y")
    axes = spatial_axes("maxunpool", array, "puts elements", "y")
    places = as_array(indices, "maxunpool", "indices")
    if places._data.dtype.kind not in "iu":
        raise DTypeError(
            f"maxunpool: indices have dtype {places._data.dtype}, expected integers, as maxpool returns."
        )
    shape = array._data.shape
    extents = _unpooled_extents(array, axes, output_size)
    if places._data.shape != shape or places._format not in (None, array._format):
        raise DimsError(
            f"maxunpool: indices are of {describe(places)} and y of {describe(array)}; there must be an index for each "
            "element."
        )
    together, order = brought_together(relabel(array, None), axes)
    at, _ = brought_together(relabel(places, None), axes)
    axis, count = order.index(axes[0]), len(axes)
    moved = together._data.shape
    flat = (*moved[:axis], math.prod(moved[axis : axis + count]), *moved[axis + count :])
    whole = apply(
        "maxunpool",
        reshaped(together, flat, None),
        reshaped(at, flat, None),
        axis=axis,
        extent=math.prod(extents),
    )
    result = reshaped(whole, (*moved[:axis], *extents, *moved[axis + count :]), None)
    return relabel(put_back(result, order), array._format if formatted else None)


def _unpooled_extents(array: dlarray, axes: tuple[int, ...], output_size: Any) -> tuple[int, ...]:
    """Return the sizes of the spatial axes of a result of maxunpool."""
    sizes = integers("maxunpool", "output_size", output_size)
    shape = array._data.shape
    if len(sizes) == len(shape):
        kept = all(sizes[axis] == extent for axis, extent in enumerate(shape) if axis not in axes)
        sizes = tuple([sizes[axis] for axis in axes]) if kept else ()
    if len(sizes) != len(axes) or min(sizes) < 1 or math.prod(sizes) >= 2**40:
        raise DimsError(
            f"maxunpool: output_size={brief(output_size)} does not fit y of {describe(array)}; give the sizes of its "
            f"{len(axes)} spatial axes, or all sizes with the others as they are."
        )
    return sizes


def _pooling(
    function: str,
    x: Any,
    pool_size: Any,
    stride: Any,
    padding: Any,
    data_format: str | None,
    of_floats: bool = False,
) -> _Pooling:
    """Return the windows that a user has asked for."""
    array, formatted = labelled(function, x, data_format)
    axes = spatial_axes(function, array, "pools")
    extents = tuple([array._data.shape[axis] for axis in axes])
    _check_elements(function, array, axes)
    if isinstance(pool_size, str):
        if pool_size != "global":
            raise ArgumentError(
                f'{function}: pool_size must be "global" or integers, not {brief(pool_size)}.'
            )
        size, steps, pads = extents, extents, ((0, 0),) * len(axes)
    else:
        size = per_axis(function, "pool_size", pool_size, len(axes), 1)
        steps = per_axis(function, "stride", stride, len(axes), 1)
        if is_option(padding, ("same",)):
            pads = same_padding(extents, size, steps)
        else:
            pads = pairs_of(function, "padding", padding, len(axes), '"same", ')
    results = tuple(map(pooled_extent, extents, size, steps, pads))
    if min(results) < 1 or any(k <= max(p) for k, p in zip(size, pads, strict=True)):
        labels = "".join([(array._format or "")[axis] for axis in axes])
        rule = (
            "the output would be " + describe_shape(results, labels) + "; windows must fit the padded input"
            if min(results) < 1
            else "the outermost windows would hold padding only; padding must be smaller than pool_size"
        )
        raise DimsError(
            f"{function}: windows of {describe_shape(size, labels)}, stride {describe_shape(steps, None)}, with "
            f"padding {brief(pads)}, on x of {describe(array)}: {rule}."
        )
    plain = relabel(floating(function, array) if of_floats else array, None)
    together, order = brought_together(plain, axes)
    format = array._format if formatted else None
    return _Pooling(together, order, format, order.index(axes[0]), size, steps, pads)


def _check_elements(function: str, array: dlarray, axes: tuple[int, ...]) -> None:
    for axis in axes:
        if array._data.shape[axis] == 0:
            raise DimsError(
                f"{function}: axis {axis} of x of {describe(array)} is empty; there is nothing to pool."
            )


def _mean(pooling: _Pooling, count_padding: bool) -> dlarray:
    if pooling.is_global:
        total = apply("sum", pooling.array, axes=pooling.axes, keepdims=True)
        return apply("mul", total, 1.0 / math.prod(pooling.size))
    return apply("avgpool", pooling.array, count_padding=count_padding, **pooling.window)


def _power(x: dlarray, p: float) -> dlarray:
    """Return x**p for x >= 0, with the derivative 0 at x = 0."""
    if p == 1:
        return x
    if p > 1:
        return apply("pow", x, p)
    zero = apply("equal", x, 0.0)  # NaN is not: it and its derivative stay NaN
    root = apply("sqrt" if p == 0.5 else "pow", apply("where", zero, 1.0, x), *(() if p == 0.5 else (p,)))
    return apply("where", zero, 0.0, root)


def _image_places(pooling: _Pooling, places: dlarray) -> dlarray:
    """Return the places in images of the places in windows."""
    shape, axis, size = pooling.array._data.shape, pooling.axis, pooling.size
    windows = places._data.shape
    left = apply("cast", places, dtype=np.dtype(np.int64))
    base = np.zeros((), np.int64)
    found: dlarray | None = None
    for i in reversed(range(len(size))):
        end = axis + len(size)
        step = math.prod(shape[axis + i + 1 : end])
        starts = np.arange(windows[axis + i]) * pooling.stride[i] - pooling.padding[i][0]
        base = base + (starts * step).reshape(-1, *(1,) * (len(shape) - axis - i - 1))
        tap = left if i == 0 else apply("mod", left, size[i])
        left = left if i == 0 else apply("floordiv", left, size[i])
        part = tap if step == 1 else apply("mul", tap, step)
        found = part if found is None else apply("add", found, part)
    assert found is not None
    return apply("add", found, base)


def _means_of_parts(extent: int, parts: int) -> SumTables:
    """Return the sums that are means of about equal parts of an axis."""
    firsts = np.arange(parts) * extent // parts
    counts = -(-(np.arange(parts) + 1) * extent // parts) - firsts
    taps = np.arange(np.max(counts))
    weights = np.where(taps < counts[:, None], 1.0 / counts[:, None], 0.0)
    return SumTables(firsts[:, None] + taps, weights)
