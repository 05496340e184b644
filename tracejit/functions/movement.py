# SPDX-License-Identifier: BSD-3-Clause
"""Functions that rearrange elements, with NumPy's names and arguments; labels move with their axes.

An axis may be named by number or, in a formatted array, by label.
"""

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from tracejit.array import apply, as_array, dlarray
from tracejit.aval import axes_in, check_format, describe_shape
from tracejit.errors import AxisError, DimsError
from tracejit.functions.axes import normalize_axes, normalize_axis
from tracejit.record import views
from tracejit.record.memory import is_contiguous
from tracejit.util.arguments import MOST_AXES, as_numbers, check_sizes, integers
from tracejit.util.text import brief

apart: Callable[..., dlarray] = views.apart


def relabel(array: dlarray, format: str | None) -> dlarray:
    """Return `array` with another format; it shares its elements and stays the same variable on the trace."""
    return array if array._format == format else views.alias(array, format or None)


def reshaped(array: dlarray, shape: tuple[int, ...], format: str | None) -> dlarray:
    """Return `array` in another shape, labelled `format`; no op is recorded where the shape is the same."""
    if array._data.shape == shape:
        return relabel(array, format)
    array = apply("reshape", array, shape=shape)
    array._format = format or None  # nobody else has it
    return array


def permuted(array: dlarray, axes: tuple[int, ...]) -> dlarray:
    """Return `array` with its axes in another order; no op is recorded where the order is the same."""
    return array if axes == tuple(range(array._data.ndim)) else apply("transpose", array, axes=axes)


def in_order_of(wanted: str | None, x: Any) -> dlarray:
    """Return an array with its axes in the order of some labels, if these are its labels."""
    array = as_array(x)
    format = array._format
    if wanted is None or format is None or format == wanted or sorted(format) != sorted(wanted):
        return array
    left = list(enumerate(format))
    order = []
    for label in wanted:
        axis = next(axis for axis, own in left if own == label)
        left.remove((axis, label))
        order.append(axis)
    return relabel(permuted(relabel(array, None), tuple(order)), wanted)


def expanded(array: dlarray, shape: tuple[int, ...]) -> dlarray:
    """Return `array` broadcast to `shape`; no op is recorded where it has that shape."""
    return array if array._data.shape == shape else apply("broadcast_to", array, shape=shape)


def bounds(key: slice, extent: int) -> tuple[int, int, int]:
    """Return start, stop and step of a slice of an axis as the op takes them, the step 1 where it can be."""
    start, stop, step = key.indices(extent)
    if step == 1:
        return (start, stop, 1) if start < stop else (0, 0, 1)
    count = len(range(start, stop, step))
    if count < 2:
        return (start, start + 1, 1) if count else (0, 0, 1)
    return (start, stop, step)


def sliced(array: dlarray, keys: Mapping[int, slice]) -> dlarray:
    """Return `array` with slices taken of some axes; no op is recorded where they take everything."""
    shape = array._data.shape
    starts, stops, steps = [0] * len(shape), list(shape), [1] * len(shape)
    for axis, key in keys.items():
        starts[axis], stops[axis], steps[axis] = bounds(key, shape[axis])
    return slice_of(array, tuple(starts), tuple(stops), tuple(steps))


def slice_of(
    array: dlarray, starts: tuple[int, ...], stops: tuple[int, ...], steps: tuple[int, ...]
) -> dlarray:
    """Return the slice of `array`; no op is recorded for a slice that is the whole array."""
    if stops == array._data.shape and not any(starts) and all(step == 1 for step in steps):
        return array
    return apply("slice", array, starts=starts, stops=stops, steps=steps)


def reshape(x: Any, shape: Any) -> dlarray:
    """Return the elements of `x`, in C order, in another shape.

    Args:
        x: dlarray of any format, ndarray, number or list.
        shape: the new sizes; one of them may be -1, which is what remains.

    Returns:
        Unformatted dlarray of `shape`; dtype of `x`.

    Raises:
        DimsError: if `shape` holds more or fewer elements, or has two sizes of -1.
        ArgumentError: if `shape` is not made of integers.

    Adjoint: ct reshaped to the sizes of x.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> tj.reshape(tj.dlarray(np.zeros((4, 6)), "CB"), (3, -1)).shape
        (3, 8)
    """
    array = as_array(x, "reshape")
    sizes = integers("reshape", "shape", shape)
    if -1 in sizes:
        others = prod(size for size in sizes if size != -1)
        size = array._data.size
        if sizes.count(-1) > 1 or others <= 0 or size % others:
            raise DimsError(
                f"reshape: shape={brief(sizes)} does not fit the {size} elements of x "
                f"({describe_shape(array._data.shape, array._format)}); one size may be -1, and the "
                "others must divide the number of elements."
            )
        sizes = tuple(size // others if extent == -1 else extent for extent in sizes)
    return reshaped(array, sizes, None)


def ravel(x: Any) -> dlarray:
    """Return all elements of `x`, in C order, along one axis, unformatted: a view where they lie so in memory.

    Args:
        x: dlarray of any format, ndarray, number or list.

    Returns:
        unformatted dlarray with one axis.

    Raises:
        ArgumentError: if `x` is not an array, a number or a list of numbers.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> tj.ravel(np.zeros((2, 3))).shape
        (6,)
    """
    array = as_array(x, "ravel")
    result = reshaped(array, (array._data.size,), None)
    return result if is_contiguous(array) else apart(result, array, "C")


def flatten(x: Any) -> dlarray:
    """Return a copy of all elements of `x`, in C order, along one axis, unformatted.

    Args:
        x: dlarray of any format, ndarray, number or list.

    Returns:
        unformatted dlarray with one axis.

    Raises:
        ArgumentError: if `x` is not an array, a number or a list of numbers.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> tj.flatten(np.zeros((2, 3))).shape
        (6,)
    """
    array = as_array(x, "flatten")
    return apart(reshaped(array, (array._data.size,), None), array, "C")


def transpose(x: Any, axes: Any = None) -> dlarray:
    """Return `x` with its axes in another order; labels move with them. Also ``permute``, ``permute_dims``.

    Args:
        x: dlarray of any format, ndarray, number or list.
        axes: the axes of `x` in the new order, as numbers or as a string of labels; None reverses them.

    Returns:
        dlarray with permuted sizes and format; dtype of `x`.

    Raises:
        DimsError: if `axes` does not name each axis of `x` once.
        ArgumentError: if `axes` is neither labels nor integers.

    Adjoint: ct in the inverse order.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> x = tj.dlarray(np.zeros((28, 28, 3, 16)), "SSCB")
        >>> tj.transpose(x, "BCSS").shape
        (16, 3, 28, 28)
    """
    array = as_array(x, "transpose")
    ndim = array._data.ndim
    if axes is None:
        return permuted(array, tuple(range(ndim))[::-1])
    if isinstance(axes, str):
        format = array._format or ""
        order = axes_in(format, axes.upper())
        if array._format is None or sorted(axes.upper()) != sorted(format):
            raise DimsError(
                f"transpose: axes={brief(axes)} is not an order of the labels of x "
                f"({describe_shape(array._data.shape, array._format)}); name each of its labels once."
            )
        return permuted(array, order)  # type: ignore[arg-type]
    sizes = integers("transpose", "axes", axes)
    return permuted(array, tuple(axis + ndim if -ndim <= axis < 0 else axis for axis in sizes))


permute = permute_dims = transpose


def swapaxes(x: Any, axis1: Any, axis2: Any) -> dlarray:
    """Return `x` with two axes exchanged; labels move with them.

    Args:
        x: dlarray of any format, ndarray or list.
        axis1: an axis, by number or label.
        axis2: another one.

    Raises:
        DimsError: for an axis that `x` does not have.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> tj.swapaxes(np.zeros((2, 3, 4)), 0, -1).shape
        (4, 3, 2)
    """
    array = as_array(x, "swapaxes")
    first, second = normalize_axis("swapaxes", array, axis1), normalize_axis("swapaxes", array, axis2)
    axes = list(range(array._data.ndim))
    axes[first], axes[second] = second, first
    return permuted(array, tuple(axes))


def moveaxis(x: Any, source: Any, destination: Any) -> dlarray:
    """Return `x` with axes moved to other places, the others staying in order; labels move with them.

    Args:
        x: dlarray of any format, ndarray or list.
        source: the axis to move, by number or label, or a list of them.
        destination: the place, as a number, for each of `source`.

    Raises:
        DimsError: for an axis that `x` does not have, one that is named twice, or lists of other lengths.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> tj.moveaxis(tj.dlarray(np.zeros((28, 28, 3, 16)), "SSCB"), "B", 0).shape
        (16, 28, 28, 3)
    """
    array = as_array(x, "moveaxis")
    given = map(as_numbers, (source, destination))
    # A range may be longer than any memory has room for.
    listed = [
        list(part[: MOST_AXES + 1]) if isinstance(part, (tuple, list, range)) else [part] for part in given
    ]
    moved, places = ([normalize_axis("moveaxis", array, axis) for axis in part] for part in listed)
    if len(moved) != len(places) or len(set(moved)) != len(moved) or len(set(places)) != len(places):
        raise DimsError(
            f"moveaxis: source={brief(source)} and destination={brief(destination)} must name the same number of axes, "
            "each once."
        )
    axes = [axis for axis in range(array._data.ndim) if axis not in moved]
    for place, axis in sorted(zip(places, moved, strict=True)):
        axes.insert(place, axis)
    return permuted(array, tuple(axes))


def broadcast_to(x: Any, shape: Any) -> dlarray:
    """Return `x` repeated to `shape`: from the last axis, sizes are equal or 1 becomes any size.

    Args:
        x: dlarray of any format, ndarray, number or list.
        shape: the new sizes.

    Returns:
        dlarray of `shape`; new leading axes are labelled U if `x` is formatted.

    Raises:
        DimsError: if a size of `x` is neither equal nor 1.

    Adjoint: ct summed over the repeats.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> tj.broadcast_to(np.ones((3, 1)), (2, 3, 4)).shape
        (2, 3, 4)
    """
    array = as_array(x, "broadcast_to")
    sizes = check_sizes("broadcast_to", "shape", integers("broadcast_to", "shape", shape))
    return apply("broadcast_to", array, shape=sizes)  # read-only as NumPy's, also where nothing is repeated


def squeeze(x: Any, axis: Any = None) -> dlarray:
    """Return `x` without axes of size 1, and without their labels.

    Args:
        x: dlarray of any format, ndarray, number or list.
        axis: the axes to drop, by number or label; None drops all of size 1.

    Raises:
        DimsError: if a named axis is missing or its size is not 1.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> tj.dims(tj.squeeze(tj.dlarray(np.zeros((1, 5)), "CB"), "C"))
        'B'
    """
    array = as_array(x, "squeeze")
    shape, format = array._data.shape, array._format
    if axis is None:
        dropped = tuple(i for i, extent in enumerate(shape) if extent == 1)
    else:
        dropped = normalize_axes("squeeze", array, axis)
        for i in dropped:
            if shape[i] != 1:
                raise DimsError(
                    f"squeeze: axis {i} of x ({describe_shape(shape, format)}) has size {shape[i]}; only "
                    "axes of size 1 can be dropped. Use a reduction or an index instead."
                )
    kept = [i for i in range(len(shape)) if i not in dropped]
    labels = None if format is None else "".join(format[i] for i in kept)
    return reshaped(array, tuple(shape[i] for i in kept), labels)


def expand_dims(x: Any, axis: Any, label: str | None = None) -> dlarray:
    """Return `x` with new axes of size 1.

    Args:
        x: dlarray of any format, ndarray, number or list.
        axis: the places of the new axes in the result: a number or a tuple of numbers.
        label: labels of the new axes, one or one for each; U if `x` is formatted and none is given.

    Raises:
        DimsError: if a place is out of range or named twice, or the labels do not fit.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> tj.dims(tj.expand_dims(tj.dlarray(np.zeros((3, 5)), "CB"), 0, "T"))
        'TCB'
    """
    return with_axes("expand_dims", as_array(x, "expand_dims"), axis, label)


def with_axes(function: str, array: dlarray, axis: Any, label: str | None = None) -> dlarray:
    """Return `array` with new axes, on behalf of a function."""
    places = integers(function, "axis", axis)
    ndim = array._data.ndim + len(places)
    new = sorted(place % ndim for place in places if -ndim <= place < ndim)
    if len(set(new)) != len(places):
        raise AxisError(
            f"{function}: axis={brief(axis)} must name places of the result from {-ndim} to {ndim - 1}, "
            "each once."
        )
    labels = "U" if label is None else label
    if not isinstance(labels, str) or len(labels) not in (1, len(places)):
        raise DimsError(
            f"{function}: label={brief(label)} must be one label, or one for each of the {len(places)} new axes."
        )
    labels = labels * len(places) if len(labels) == 1 else labels
    sizes = list(array._data.shape)
    format = None
    if array._format is not None or label is not None:
        have = list(array._format or "U" * len(sizes))
        for place, new_label in zip(new, labels, strict=True):
            have.insert(place, new_label)
        format = check_format(function, "".join(have), ndim)
    for place in new:
        sizes.insert(place, 1)
    return reshaped(array, tuple(sizes), format)


def flip(x: Any, axis: Any = None) -> dlarray:
    """Return `x` with the elements along axes in reverse order.

    Args:
        x: dlarray of any format, ndarray, number or list.
        axis: the axes, by number or label; None reverses all.

    Returns:
        dlarray of the sizes, the format and the dtype of `x`.

    Raises:
        ArgumentError: if `x` is not an array, a number or a list of numbers.
        DimsError: for an axis that `x` does not have.

    Examples:
        >>> import tracejit as tj
        >>> tj.extractdata(tj.flip([1.0, 2.0, 3.0]))
        array([3., 2., 1.])
    """
    array = as_array(x, "flip")
    return sliced(array, dict.fromkeys(normalize_axes("flip", array, axis), slice(None, None, -1)))


def atleast_1d(x: Any) -> dlarray:
    """Return `x` with at least one axis.

    Args:
        x: dlarray of any format, ndarray, number or list.

    Returns:
        dlarray with its labels; a new axis is labelled U if `x` is formatted.

    Raises:
        ArgumentError: if `x` is not an array, a number or a list of numbers.

    Examples:
        >>> import tracejit as tj
        >>> tj.atleast_1d(3.0).shape
        (1,)
    """
    array = as_array(x, "atleast_1d")
    return array if array._data.ndim else with_axes("atleast_1d", array, 0)


def atleast_2d(x: Any) -> dlarray:
    """Return `x` with at least two axes; new ones come first.

    Args:
        x: dlarray of any format, ndarray, number or list.

    Returns:
        dlarray with its labels; new axes are labelled U if `x` is formatted.

    Raises:
        ArgumentError: if `x` is not an array, a number or a list of numbers.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> tj.atleast_2d(np.zeros(3)).shape
        (1, 3)
    """
    array = as_array(x, "atleast_2d")
    missing = 2 - array._data.ndim
    return array if missing <= 0 else with_axes("atleast_2d", array, tuple(range(missing)))


def atleast_3d(x: Any) -> dlarray:
    """Return `x` with at least three axes; (n) becomes (1, n, 1) and (m, n) becomes (m, n, 1).

    Args:
        x: dlarray of any format, ndarray, number or list.

    Returns:
        dlarray with its labels; new axes are labelled U if `x` is formatted.

    Raises:
        ArgumentError: if `x` is not an array, a number or a list of numbers.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> tj.atleast_3d(np.zeros(3)).shape
        (1, 3, 1)
    """
    array = as_array(x, "atleast_3d")
    new = {0: (0, 1, 2), 1: (0, 2), 2: (2,)}.get(array._data.ndim)
    return array if new is None else with_axes("atleast_3d", array, new)
