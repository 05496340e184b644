# SPDX-License-Identifier: BSD-3-Clause
"""Classes as numbers or names, and as vectors with a one in the place of the class."""

from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.aval import LABELS, describe_shape, wanted_dtype
from tracejit.errors import ArgumentError, DimsError
from tracejit.functions.axes import normalize_axis
from tracejit.functions.formats import describe
from tracejit.functions.movement import relabel, reshaped
from tracejit.record import recorder
from tracejit.record.conversion import ndarray_of
from tracejit.util.arguments import check_room, sizes
from tracejit.util.text import brief


def onehotencode(labels: Any, axis: Any, class_names: Any = None, *, dtype: Any = np.float32) -> dlarray:
    """Return vectors of zeros with a one in the place of the class, along a new axis.

    Args:
        labels: classes: dlarray, ndarray or list of numbers, or ndarray or list of strings.
        axis: place of the new axis in the result, as for NumPy's expand_dims; in a formatted result
            it is labelled C (U if there is a C already). Or a label: then the axis is the one of size 1 that
            has this label already, or a new last one.
        class_names: the classes in the order of the vectors: a sequence of distinct numbers or strings, or
            the number n of the classes 0 to n-1. None for the sorted values that occur in `labels`.
        dtype: of the result.

    Returns:
        dlarray with the axes of `labels` and the new one.

    Raises:
        ArgumentError: if `class_names` are empty or repeat, or a label is none of them. That is not seen
            while a trace is recorded: such a label then gives zeros.
        DimsError: if the axis is out of range, or the size of the labelled one is not 1.

    Examples:
        >>> import tracejit as tj
        >>> tj.onehotencode(["cat", "dog", "cat"], 1, ["cat", "dog"])
        3x2 dlarray float32
        [[1. 0.]
         [0. 1.]
         [1. 0.]]
        >>> tj.onehotencode(tj.dlarray([2, 0], "B"), "C", 3)
        2(B) x 3(C) dlarray float32
        [[0. 0. 1.]
         [1. 0. 0.]]
    """
    wanted = wanted_dtype("onehotencode", dtype)
    values = None if recorder.is_array(labels) else _names_in(labels)
    if values is not None:
        names = _classes("onehotencode", np.unique(values) if class_names is None else class_names)
        array, classes = as_array(_numbered(values, names)), np.arange(len(names))
    else:
        array = as_array(labels, "onehotencode", "labels")
        if class_names is None:
            class_names = np.unique(recorder.need_value(array, "onehotencode without class_names"))
        classes = _classes("onehotencode", class_names)
        if classes.dtype.kind in "US":
            raise ArgumentError(
                f"onehotencode: labels are numbers ({array._data.dtype}), but class_names are strings; give "
                "the classes as numbers."
            )
        if not recorder.is_open(array):
            unknown = array._data[~np.isin(array._data, classes)]
            if unknown.size:
                raise ArgumentError(_unknown_label(unknown[0], classes))
    shape, format, place = _with_axis(array, axis)
    column = reshaped(relabel(array, None), shape, None)
    along = tuple(len(classes) if at == place else 1 for at in range(len(shape)))
    return relabel(apply("cast", apply("equal", column, classes.reshape(along)), dtype=wanted), format)


def onehotdecode(y: Any, class_names: Any, axis: Any = "C") -> Any:
    """Return the class of each vector along an axis: that of its largest element, the first of equal ones.

    Args:
        y: dlarray, ndarray or list of one-hot vectors, probabilities or scores.
        class_names: the classes in the order of the vectors: a sequence of numbers or strings, or the
            number n of the classes 0 to n-1.
        axis: the axis of the vectors, by number or label.

    Returns:
        For classes that are numbers, a dlarray of them without the axis; no derivative. For strings an
        ndarray, which ends a trace.

    Raises:
        DimsError: if the axis is not found, or its size is not the number of classes.
        ArgumentError: if `class_names` are empty or repeat.

    Examples:
        >>> import tracejit as tj
        >>> tj.onehotdecode([[0.1, 0.9], [0.7, 0.3]], ["cat", "dog"], axis=1).tolist()
        ['dog', 'cat']
        >>> tj.onehotdecode(tj.dlarray([[0.1, 0.9]], "BC"), [10, 20])
        1(B) dlarray int64
        [20]
    """
    array = as_array(y, "onehotdecode", "y")
    place = normalize_axis("onehotdecode", array, axis)
    classes = _classes("onehotdecode", class_names)
    shape = array._data.shape
    if shape[place] != len(classes):
        raise DimsError(
            f"onehotdecode: y ({describe_shape(shape, array._format)}) has size {shape[place]} along "
            f"axis={brief(axis)}, but there are {len(classes)} classes; these must be equal."
        )
    numbers = apply("argmax", array, axis=place, keepdims=False)
    if classes.dtype.kind in "US":
        return classes[recorder.need_value(numbers, "onehotdecode to strings")]
    if isinstance(class_names, (int, np.integer)):
        return numbers
    flat = reshaped(relabel(numbers, None), (numbers._data.size,), None)
    taken = apply("take", classes, flat, axis=0)
    return reshaped(taken, numbers._data.shape, numbers._format)


def _names_in(labels: Any) -> np.ndarray | None:
    """Return labels that are strings as an array, None for any others."""
    try:
        values = ndarray_of(labels)
    except Exception:  # as_array raises an error of ours
        return None
    return values if values.dtype.kind in "US" else None


def _classes(function: str, class_names: Any) -> np.ndarray:
    """Return the classes as a vector of distinct numbers or strings."""
    if isinstance(class_names, (int, np.integer)) and not isinstance(class_names, bool):
        (number,) = sizes(function, "class_names", (class_names,))
        check_room(function, (number,), np.dtype(np.int64))
        classes: np.ndarray = np.arange(number)
    else:
        if recorder.is_array(class_names):
            class_names = recorder.need_value(class_names, f"class_names of {function}")
        try:
            classes = ndarray_of(class_names)
        except Exception:
            classes = np.empty(())
    if classes.ndim != 1 or not classes.size or classes.dtype.kind not in "USbiuf":
        raise ArgumentError(
            f"{function}: class_names must be a number of classes or a sequence of numbers or strings, "
            f"not {brief(class_names)}."
        )
    distinct, counts = np.unique(classes, return_counts=True)
    if len(distinct) != len(classes):
        raise ArgumentError(
            f"{function}: class_names contains {distinct[counts > 1][0].item()!r} more than once; name each class "
            "once."
        )
    return classes


def _numbered(values: np.ndarray, names: np.ndarray) -> np.ndarray:
    """Return for each string its place among the classes."""
    if values.size and values.dtype.kind != names.dtype.kind:  # bytes, or numbers, beside strings
        raise ArgumentError(_unknown_label(values.flat[0], names))
    order = np.argsort(names)
    places = np.minimum(np.searchsorted(names, values, sorter=order), len(names) - 1)
    numbers = order[places]
    unknown = values[names[numbers] != values]
    if unknown.size:
        raise ArgumentError(_unknown_label(unknown[0], names))
    return np.asarray(numbers, np.int64)


def _unknown_label(label: Any, classes: np.ndarray) -> str:
    return (
        f"onehotencode: labels contains {label.item()!r}, which is not one of the {len(classes)} classes "
        f"{classes.tolist()!r:.200}; add it to class_names."
    )


def _with_axis(array: Any, axis: Any) -> tuple[tuple[int, ...], str | None, int]:
    """Return the sizes and labels of `array` with a class axis of size 1, and the place of that axis."""
    shape, format = array._data.shape, array._format
    if isinstance(axis, str):
        label = axis.upper()
        if len(label) != 1 or label not in LABELS:
            raise DimsError(
                f"onehotencode: axis={brief(axis)} is not a label; expected a number or one of {', '.join(LABELS)}."
            )
        if format is not None and label in format:
            place = format.index(label)
            if shape[place] != 1:
                raise DimsError(
                    f"onehotencode: labels of {describe(array)} have an axis {label} of size {shape[place]}; "
                    "it must be of size 1 to hold the classes. Give the place of a new axis as a number."
                )
            return shape, format, place
        place = len(shape)
        format = label if not shape else format and format + label
        return (*shape, 1), format, place
    place = normalize_axis("onehotencode", reshaped(relabel(array, None), (*shape, 1), None), axis)
    if format is not None:
        format = format[:place] + ("U" if "C" in format else "C") + format[place:]
    return (*shape[:place], 1, *shape[place:]), format, place
