# SPDX-License-Identifier: BSD-3-Clause
"""Functions that rearrange elements, with NumPy's names and arguments; labels move with their axes.

An axis may be named by number or, in a formatted array, by label.
"""

import operator
from collections.abc import Callable, Mapping, Set
from itertools import islice, pairwise
from math import prod
from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.aval import axes_in, check_format, describe_shape
from tracejit.errors import ArgumentError, DimsError, TraceError
from tracejit.functions.axes import normalize_axes, normalize_axis
from tracejit.record import recorder, views
from tracejit.record.conversion import ndarray_of
from tracejit.util.arguments import check_room, check_sizes, integer, integers, is_option
from tracejit.util.text import brief

apart: Callable[..., dlarray] = views.apart
_MOST_PARTS = 1 << 20  # arrays to join or to split into; an iterator may have no end
_PAD_MODES = ("constant", "edge", "reflect", "symmetric", "wrap")


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
        DimsError: if `shape` holds another number of elements, or has two sizes of -1.
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

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> tj.ravel(np.zeros((2, 3))).shape
        (6,)
    """
    array = as_array(x, "ravel")
    result = reshaped(array, (array._data.size,), None)
    return result if array._data.flags.c_contiguous else apart(result, array)


def flatten(x: Any) -> dlarray:
    """Return a copy of all elements of `x`, in C order, along one axis, unformatted.

    Args:
        x: dlarray of any format, ndarray, number or list.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> tj.flatten(np.zeros((2, 3))).shape
        (6,)
    """
    array = as_array(x, "flatten")
    return apart(reshaped(array, (array._data.size,), None), array)


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
    listed = [list(part) if isinstance(part, (tuple, list)) else [part] for part in (source, destination)]
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
    return expanded(array, sizes)


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
    return _with_axes("expand_dims", as_array(x, "expand_dims"), axis, label)


def _with_axes(function: str, array: dlarray, axis: Any, label: str | None = None) -> dlarray:
    """Return `array` with new axes, on behalf of a function."""
    places = integers(function, "axis", axis)
    ndim = array._data.ndim + len(places)
    new = sorted(place % ndim for place in places if -ndim <= place < ndim)
    if len(set(new)) != len(places):
        raise DimsError(
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


def _listed(function: str, arrays: Any) -> list[dlarray]:
    parts = arrays
    if not isinstance(arrays, (list, tuple)):
        try:
            parts = [] if isinstance(arrays, (Mapping, Set)) else list(islice(arrays, _MOST_PARTS + 1))
        except TraceError:
            raise
        except Exception:
            parts = []
    if not 0 < len(parts) <= _MOST_PARTS:
        raise ArgumentError(
            f"{function}: arrays must be a list or tuple of at least one array, not {brief(arrays)}."
        )
    return [as_array(array, function, f"arrays[{number}]") for number, array in enumerate(parts)]


def concatenate(arrays: Any, axis: Any = 0) -> dlarray:
    """Return arrays joined along an axis that they have.

    Args:
        arrays: list or tuple of dlarrays, ndarrays or lists; formatted ones must have the same format.
        axis: the axis, by number or label; None joins all elements along one axis.

    Returns:
        dlarray of their common dtype, formatted if one of them is.

    Raises:
        DimsError: if formats or the sizes of other axes differ, or there is no such axis.
        ArgumentError: if there is no array.

    Adjoint: the parts of ct.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> tj.concatenate([np.zeros((2, 3)), np.zeros((4, 3))]).shape
        (6, 3)
    """
    parts = _listed("concatenate", arrays)
    if axis is None:
        parts, axis = [ravel(part) for part in parts], 0
    if len(parts) == 1:
        normalize_axis("concatenate", parts[0], axis)
        return parts[0].copy()
    leader = next((part for part in parts if part._format is not None), parts[0])
    return apply("concatenate", *parts, axis=normalize_axis("concatenate", leader, axis))


def stack(arrays: Any, axis: int = 0) -> dlarray:
    """Return arrays of the same size joined along a new axis, labelled U if they are formatted.

    Args:
        arrays: list or tuple of dlarrays, ndarrays, numbers or lists; formatted ones must have one format.
        axis: the place of the new axis in the result.

    Returns:
        dlarray of their common dtype.

    Raises:
        DimsError: if sizes or formats differ, or the place is out of range.
        ArgumentError: if there is no array.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> tj.stack([np.zeros(3), np.ones(3)], axis=1).shape
        (3, 2)
    """
    parts = _listed("stack", arrays)
    for part in parts:
        if part._data.shape != parts[0]._data.shape:
            raise DimsError(
                f"stack: arrays of sizes {describe_shape(parts[0]._data.shape, parts[0]._format)} and "
                f"{describe_shape(part._data.shape, part._format)} are given; all must have the same sizes."
            )
    place = integer("stack", "axis", axis)
    expanded_parts = [_with_axes("stack", part, place) for part in parts]
    return concatenate(expanded_parts, place)


def vstack(arrays: Any) -> dlarray:
    """Return arrays joined along the first of at least two axes.

    Args:
        arrays: list or tuple of dlarrays, ndarrays, numbers or lists; 1-D arrays are rows.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> tj.vstack([np.zeros(3), np.ones((2, 3))]).shape
        (3, 3)
    """
    return concatenate([atleast_2d(part) for part in _listed("vstack", arrays)], 0)


def hstack(arrays: Any) -> dlarray:
    """Return arrays joined along the second axis, 1-D arrays along the first.

    Args:
        arrays: list or tuple of dlarrays, ndarrays, numbers or lists.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> tj.hstack([np.zeros((2, 3)), np.ones((2, 1))]).shape
        (2, 4)
    """
    parts = [atleast_1d(part) for part in _listed("hstack", arrays)]
    return concatenate(parts, 0 if parts[0]._data.ndim == 1 else 1)


def split(x: Any, indices_or_sections: Any, axis: Any = 0) -> list[dlarray]:
    """Return the parts of `x` along an axis: equal parts, or those between the given places.

    Args:
        x: dlarray of any format, ndarray or list.
        indices_or_sections: the number of equal parts, or the sorted places at which to cut.
        axis: the axis, by number or label.

    Returns:
        List of dlarrays of the format and dtype of `x`.

    Raises:
        DimsError: if the axis does not divide into equal parts.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> [part.shape for part in tj.split(np.zeros(6), [1, 4])]
        [(1,), (3,), (2,)]
    """
    array = as_array(x, "split")
    axis = normalize_axis("split", array, axis)
    extent = array._data.shape[axis]
    places = integers("split", "indices_or_sections", indices_or_sections)
    if not _is_listed(indices_or_sections):
        (sections,) = places
        if sections < 1 or extent % sections:
            raise DimsError(
                f"split: axis {axis} of x ({describe_shape(array._data.shape, array._format)}) does not "
                f"divide into {brief(sections)} equal parts; use array_split, or give the places to cut at."
            )
    return _cut("split", array, indices_or_sections, axis)


def array_split(x: Any, indices_or_sections: Any, axis: Any = 0) -> list[dlarray]:
    """Return the parts of `x` along an axis as split does; the first parts are longer by 1 where needed.

    Args:
        x: dlarray of any format, ndarray or list.
        indices_or_sections: the number of parts, or the sorted places at which to cut.
        axis: the axis, by number or label.

    Raises:
        DimsError: if the number of parts is not positive.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> [part.shape for part in tj.array_split(np.zeros(5), 2)]
        [(3,), (2,)]
    """
    array = as_array(x, "array_split")
    return _cut("array_split", array, indices_or_sections, normalize_axis("array_split", array, axis))


def _is_listed(value: Any) -> bool:
    """Return whether integers() takes a value for several integers."""
    return isinstance(value, (tuple, list)) or (isinstance(value, np.ndarray) and value.ndim == 1)


def _cut(function: str, array: Any, indices_or_sections: Any, axis: int) -> list[dlarray]:
    extent = array._data.shape[axis]
    places = integers(function, "indices_or_sections", indices_or_sections)
    if not _is_listed(indices_or_sections):
        (sections,) = places
        if sections < 1:
            raise DimsError(f"{function}: the number of parts must be at least 1, not {brief(sections)}.")
        if sections > max(extent, _MOST_PARTS):
            raise DimsError(
                f"{function}: the number of parts must be at most {max(extent, _MOST_PARTS)} for {extent} elements "
                f"along axis {axis}, not {brief(sections)}."
            )
        extent_of_part, longer = divmod(extent, sections)
        places = tuple(part * extent_of_part + min(part, longer) for part in range(1, sections))
    edges = (0, *places, extent)
    return [sliced(array, {axis: slice(start, stop)}) for start, stop in pairwise(edges)]


def flip(x: Any, axis: Any = None) -> dlarray:
    """Return `x` with the elements along axes in reverse order.

    Args:
        x: dlarray of any format, ndarray, number or list.
        axis: the axes, by number or label; None reverses all.

    Examples:
        >>> import tracejit as tj
        >>> tj.extractdata(tj.flip([1.0, 2.0, 3.0]))
        array([3., 2., 1.])
    """
    array = as_array(x, "flip")
    return sliced(array, dict.fromkeys(normalize_axes("flip", array, axis), slice(None, None, -1)))


def roll(x: Any, shift: Any, axis: Any = None) -> dlarray:
    """Return `x` with the elements moved along axes; what leaves at the end enters at the beginning.

    Args:
        x: dlarray of any format, ndarray, number or list.
        shift: by how many places, or a tuple with one number for each axis.
        axis: the axis by number or label, or a tuple of them; None moves along all elements in C order.

    Raises:
        DimsError: if `shift` and `axis` have different lengths.

    Examples:
        >>> import tracejit as tj
        >>> tj.extractdata(tj.roll([1.0, 2.0, 3.0], 1))
        array([3., 1., 2.])
    """
    array = as_array(x, "roll")
    shifts = integers("roll", "shift", shift)
    if axis is None:
        flat = _rolled(ravel(array), sum(shifts), 0)
        return apart(reshaped(flat, array._data.shape, array._format), array)
    if isinstance(axis, (tuple, list)):
        axes = tuple(normalize_axis("roll", array, each) for each in axis)
    else:
        axes = normalize_axes("roll", array, axis)
    if len(shifts) != len(axes) and 1 not in (len(shifts), len(axes)):
        raise DimsError(
            f"roll: shift={brief(shift)} and axis={brief(axis)} have different lengths; give one shift, or "
            "one for each axis."
        )
    result = array
    for number in range(max(len(shifts), len(axes)) if shifts and axes else 0):
        result = _rolled(result, shifts[number % len(shifts)], axes[number % len(axes)])
    return apart(result, array)


def _rolled(array: dlarray, shift: int, axis: int) -> dlarray:
    extent = array._data.shape[axis]
    shift = shift % extent if extent else 0
    if not shift:
        return array
    cut = extent - shift
    parts = sliced(array, {axis: slice(cut, None)}), sliced(array, {axis: slice(0, cut)})
    return apply("concatenate", *parts, axis=axis)


def pad(x: Any, pad_width: Any, mode: str = "constant", constant_values: Any = 0) -> dlarray:
    """Return `x` with a border around it.

    Args:
        x: dlarray of any format, ndarray, number or list.
        pad_width: how much before and after each axis: one number, one pair (before, after), a pair for each
            axis, or a dict from axes (by number or label) to numbers or pairs.
        mode: "constant"; or values of x, as in NumPy: "edge", "reflect", "symmetric", "wrap".
        constant_values: the value of a constant border, in the forms of `pad_width` but dict.

    Returns:
        dlarray of the format and dtype of `x`.

    Raises:
        DimsError: if `pad_width` does not fit the axes or is negative, or `mode` needs values of an empty axis.
        ArgumentError: for another mode, or if the widths or values are no numbers.

    Adjoint: the interior of ct; of the other modes, every use of an element adds to its ct.

    Examples:
        >>> import tracejit as tj
        >>> tj.extractdata(tj.pad([1.0, 2.0], (1, 2)))
        array([0., 1., 2., 0., 0.])
    """
    array = as_array(x, "pad")
    if not is_option(mode, _PAD_MODES):
        raise ArgumentError(f"pad: mode={brief(mode)} is not supported; use one of {', '.join(_PAD_MODES)}.")
    shape, format = array._data.shape, array._format
    if isinstance(pad_width, Mapping):
        pairs: Any = [(0, 0)] * len(shape)
        for name, pair in pad_width.items():
            for axis in normalize_axes("pad", array, name):
                pairs[axis] = _pairs("pad_width", pair, 1)[0]
        pad_width = np.reshape(pairs, (len(shape), 2)) if shape else 0
    widths = _pairs("pad_width", pad_width, len(shape))
    if widths.size and (widths.dtype.kind not in "iu" or widths.min() < 0):
        raise DimsError(
            f"pad: pad_width={brief(pad_width)} for x of {describe_shape(shape, format)} must be made of "
            "integers >= 0."
        )
    grown = tuple(map(sum, zip(shape, *widths.T.tolist(), strict=True))) if shape else ()
    check_sizes("pad", "pad_width", grown)
    if mode == "constant":
        with np.errstate(all="ignore"):
            values = _pairs("constant_values", constant_values, len(shape)).astype(array._data.dtype)
        return apart(_constant_border(array, widths, values), array)
    check_room("pad", grown, array._data.dtype)
    for axis, (before, after) in enumerate(widths.tolist()):
        if before or after:
            if not shape[axis]:
                raise DimsError(
                    f"pad: axis {axis} of x ({describe_shape(shape, format)}) is empty, so mode={mode!r} has "
                    'no value to repeat; use mode="constant".'
                )
            places: Any = np.pad(np.arange(shape[axis]), (before, after), mode)  # type: ignore[call-overload]
            array = apply("take", array, places, axis=axis)
    return array.copy() if not widths.any() else array


def _pairs(argument: str, value: Any, ndim: int) -> np.ndarray:
    """Return a (before, after) pair for each of `ndim` axes from the forms that NumPy's pad takes."""
    try:
        if recorder.is_array(value):
            raise ValueError
        pairs = ndarray_of(value)
        if pairs.dtype.kind not in "biuf":
            raise ValueError
        return np.broadcast_to(pairs, (ndim, 2)) if ndim else np.zeros((0, 2), np.int64)
    except Exception:
        raise ArgumentError(
            f"pad: {argument} must be a number, a pair (before, after) or one pair for each of the {ndim} "
            f"axes of x, not {brief(value)}."
        ) from None


def _constant_border(array: dlarray, widths: np.ndarray, values: np.ndarray) -> dlarray:
    if not widths.any():
        return array
    pairs = tuple((before, after) for before, after in widths.tolist())
    first = values.flat[0]
    if (values == first).all():
        return apply("pad", array, widths=pairs, value=first.item())
    for axis in range(len(pairs)):
        for side in (0, 1):
            part = [(0, 0)] * len(pairs)
            part[axis] = (pairs[axis][0], 0) if side == 0 else (0, pairs[axis][1])
            if any(part[axis]):
                array = apply("pad", array, widths=tuple(part), value=values[axis, side].item())
    return array


def repeat(x: Any, repeats: Any, axis: Any = None) -> dlarray:
    """Return `x` with each element repeated along an axis.

    Args:
        x: dlarray of any format, ndarray, number or list.
        repeats: how often: a number, or one for each place of the axis.
        axis: the axis, by number or label; None repeats the elements in C order along one axis.

    Returns:
        dlarray of the format and dtype of `x` (unformatted for axis=None).

    Raises:
        DimsError: if `repeats` is negative or does not fit the axis.

    Adjoint: ct summed over the repeats.

    Examples:
        >>> import tracejit as tj
        >>> tj.extractdata(tj.repeat([1.0, 2.0], 2))
        array([1., 1., 2., 2.])
    """
    array = as_array(x, "repeat")
    if axis is None:
        array, axis = ravel(array), 0
    axis = normalize_axis("repeat", array, axis)
    shape, format = array._data.shape, array._format
    counts = integers("repeat", "repeats", repeats)
    if len(counts) not in (1, shape[axis]) or min(counts, default=0) < 0:
        raise DimsError(
            f"repeat: repeats={brief(repeats)} must be one number >= 0, or one for each of the {shape[axis]} "
            f"places of axis {axis} of x ({describe_shape(shape, format)})."
        )
    if len(counts) != 1:
        grown = (*shape[:axis], sum(counts), *shape[axis + 1 :])
        check_room("repeat", check_sizes("repeat", "repeats", grown), array._data.dtype)
        places = np.repeat(np.arange(shape[axis]), counts)
        return apply("take", array, places, axis=axis)
    before, after = shape[: axis + 1], shape[axis + 1 :]
    copies = expanded(reshaped(array, (*before, 1, *after), None), (*before, counts[0], *after))
    return apart(reshaped(copies, (*shape[:axis], shape[axis] * counts[0], *after), format), array, "C")


def tile(x: Any, reps: Any) -> dlarray:
    """Return `x` repeated as a whole along each axis.

    Args:
        x: dlarray of any format, ndarray, number or list.
        reps: how often along each axis, aligned from the last; missing axes of `x` are added in front
            (labelled U if it is formatted).

    Raises:
        DimsError: if a number is negative.

    Adjoint: ct summed over the repeats.

    Examples:
        >>> import tracejit as tj
        >>> tj.extractdata(tj.tile([1.0, 2.0], 2))
        array([1., 2., 1., 2.])
    """
    array = as_array(x, "tile")
    counts = integers("tile", "reps", reps)
    if min(counts, default=0) < 0:
        raise DimsError(f"tile: reps={brief(reps)} must be made of integers >= 0.")
    shape, format = array._data.shape, array._format
    ndim = max(len(counts), len(shape))
    extra = ndim - len(shape)
    counts = (1,) * (ndim - len(counts)) + counts
    sizes = (1,) * extra + shape
    labels = None if format is None else "U" * extra + format
    if all(count == 1 for count in counts):
        return apart(reshaped(array, sizes, labels), array)
    total = check_sizes("tile", "reps", tuple(map(operator.mul, counts, sizes)))
    # Only axes that are repeated need one more, so that arrays of many axes stay within NumPy's limit.
    pairs = [(count, size) if count != 1 else (size,) for count, size in zip(counts, sizes, strict=True)]
    single = tuple(extent for pair in pairs for extent in (pair if len(pair) == 1 else (1, pair[1])))
    copies = expanded(reshaped(array, single, None), tuple(extent for pair in pairs for extent in pair))
    return apart(reshaped(copies, total, labels), array)


def atleast_1d(x: Any) -> dlarray:
    """Return `x` with at least one axis.

    Args:
        x: dlarray of any format, ndarray, number or list.

    Examples:
        >>> import tracejit as tj
        >>> tj.atleast_1d(3.0).shape
        (1,)
    """
    array = as_array(x, "atleast_1d")
    return array if array._data.ndim else _with_axes("atleast_1d", array, 0)


def atleast_2d(x: Any) -> dlarray:
    """Return `x` with at least two axes; new ones come first.

    Args:
        x: dlarray of any format, ndarray, number or list.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> tj.atleast_2d(np.zeros(3)).shape
        (1, 3)
    """
    array = as_array(x, "atleast_2d")
    missing = 2 - array._data.ndim
    return array if missing <= 0 else _with_axes("atleast_2d", array, tuple(range(missing)))


def atleast_3d(x: Any) -> dlarray:
    """Return `x` with at least three axes; (n) becomes (1, n, 1) and (m, n) becomes (m, n, 1).

    Args:
        x: dlarray of any format, ndarray, number or list.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> tj.atleast_3d(np.zeros(3)).shape
        (1, 3, 1)
    """
    array = as_array(x, "atleast_3d")
    new = {0: (0, 1, 2), 1: (0, 2), 2: (2,)}.get(array._data.ndim)
    return array if new is None else _with_axes("atleast_3d", array, new)
