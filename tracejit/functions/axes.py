# SPDX-License-Identifier: BSD-3-Clause
"""Axes as the user names them, by number or by label, made into sorted non-negative numbers."""

import operator
from collections import Counter
from typing import Any

from tracejit.array import apply, dlarray
from tracejit.aval import LABELS, describe_shape
from tracejit.errors import ArgumentError, AxisError, DimsError, TraceError
from tracejit.ops.reduce import reduced_format, reduced_shape
from tracejit.util.text import brief

_UFUNCS = frozenset(
    f"{prefix}{name}"
    for name in ("sum", "prod", "max", "min", "any", "all", "count_nonzero", "ptp")
    for prefix in ("", "np.", "np.nan")
) | {"np.nanstd", "np.nanvar", "squeeze"}
"""Reductions by ufuncs and functions made of them, for which a number has an axis 0, as in NumPy."""


def normalize_axes(function: str, array: Any, axis: Any) -> tuple[int, ...]:
    """Return the axes that `axis` names, sorted and non-negative.

    Args:
        function: name of the function on whose behalf errors are raised.
        array: the array whose axes are meant.
        axis: None (all axes), an integer, a tuple or list of integers, or a string of labels, which names
            every axis that carries one of them ("S" and "SS" both name all spatial axes).

    Raises:
        AxisError: an axis is out of range.
        DimsError: an axis is named twice, or a label is not in the format.
        ArgumentError: `axis` is of the wrong kind.
    """
    ndim = array._data.ndim
    if axis is None:
        return tuple(range(ndim))
    if type(axis) is int:
        if not ndim and axis in (0, -1) and function in _UFUNCS:
            return ()
        return (_in_range(function, array, axis),)
    if isinstance(axis, str):
        return _labelled(function, array, axis)
    if not isinstance(axis, (tuple, list)):
        return (_in_range(function, array, _integer(function, axis)),)
    axes = sorted(_in_range(function, array, _integer(function, entry)) for entry in axis)
    if len(set(axes)) != len(axes):
        twice = [number for number, count in Counter(axes).items() if count > 1]
        raise DimsError(
            f"{function}: axis={brief(axis)} names axis {twice[0]} twice in an array of "
            f"{describe_shape(array._data.shape, array._format)}; name each axis once."
        )
    return tuple(axes)


def axes_as_given(function: str, array: Any, axis: Any) -> tuple[int, ...]:
    """Return the axes that `axis` names as `normalize_axes` does, but in the order in which they are given.

    Needed where something else is given for each axis: weights, spacings.
    """
    axes = normalize_axes(function, array, axis)
    if not isinstance(axis, (tuple, list)):
        return axes
    return tuple([_in_range(function, array, _integer(function, entry)) for entry in axis])


def axis_of_a_number(array: dlarray, axis: Any) -> dlarray:
    """Return an array, a number as a vector of one element where its axis 0 is meant, as in NumPy."""
    if array._data.ndim or type(axis) is not int or axis not in (0, -1):
        return array
    vector: dlarray = apply("reshape", array, shape=(1,))
    return vector


def normalize_axis(function: str, array: Any, axis: Any) -> int:
    """Return the one axis that `axis`, an integer or a label, names as a non-negative number.

    Raises:
        AxisError: the axis is out of range.
        DimsError: the label is missing or on more than one axis.
        ArgumentError: `axis` is of the wrong kind.
    """
    if isinstance(axis, str):
        axes = _labelled(function, array, axis)
        if len(axes) != 1:
            raise DimsError(
                f"{function}: axis={brief(axis)} names {len(axes)} axes of an array of "
                f"{describe_shape(array._data.shape, array._format)}, but one is needed; give its number."
            )
        return axes[0]
    return _in_range(function, array, _integer(function, axis))


def _integer(function: str, axis: Any) -> int:
    # True would pass for axis 1; it is nearly always a misplaced keepdims.
    if not isinstance(axis, bool):
        try:
            return operator.index(axis)
        except TraceError:
            raise
        except Exception:
            pass
    raise ArgumentError(
        f"{function}: axis must be an integer, a tuple of integers, a string of labels or None, "
        f"not {brief(axis)}."
    )


def _in_range(function: str, array: Any, axis: int) -> int:
    ndim = array._data.ndim
    if not -ndim <= axis < ndim:
        legal = f"axes are {-ndim} to {ndim - 1}" if ndim else "a scalar has no axes"
        raise AxisError(
            f"{function}: axis {brief(axis)} is out of range for an array of "
            f"{describe_shape(array._data.shape, array._format)}; {legal}."
        )
    return axis if axis >= 0 else axis + ndim


def _labelled(function: str, array: Any, labels: str) -> tuple[int, ...]:
    format = array._format
    wanted = labels.upper()
    if not wanted or any(label not in LABELS for label in wanted):
        raise DimsError(
            f"{function}: axis={brief(labels)} is not a string of labels; labels are "
            "S (spatial), C (channel), B (batch), T (time) and U (unspecified)."
        )
    shape = array._data.shape
    if format is None:
        raise DimsError(
            f"{function}: axis={labels!r} names axes by label, but the array of "
            f"{describe_shape(shape, None)} is unformatted; give numbers, or label it with "
            "dlarray(x, format)."
        )
    for label in wanted:
        if label not in format:
            raise DimsError(
                f"{function}: axis={labels!r} names the label {label}, but the array is of "
                f"{describe_shape(shape, format)}; name labels of its format {format!r}."
            )
    return tuple(axis for axis, label in enumerate(format) if label in wanted)


def drop_axes(array: dlarray, axes: tuple[int, ...]) -> dlarray:
    """Return `array` without `axes`, which have size 1, and without their labels."""
    if not axes:
        return array
    shape = reduced_shape(array._data.shape, axes, False)
    flat = apply("reshape", array, shape=shape)
    flat._format = reduced_format(array._format, axes, False)  # nobody else has it
    return flat
