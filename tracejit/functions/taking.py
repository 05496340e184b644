# SPDX-License-Identifier: BSD-3-Clause
"""Elements taken from places along an axis, values added at places, and the places of nonzero elements."""

from contextlib import suppress
from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.errors import DimsError
from tracejit.functions import selecting
from tracejit.functions.axes import axis_of_a_number, normalize_axis
from tracejit.functions.index_keys import index_array, true_places
from tracejit.functions.indexing import as_value
from tracejit.functions.movement import expanded, ravel, relabel
from tracejit.record.selections import NUMBER_OF_PLACES


def take(x: Any, indices: Any, axis: Any = None) -> dlarray:
    """Return the elements of `x` at integer places along an axis.

    Args:
        x: dlarray of any format, ndarray or list.
        indices: integers of any sizes (dlarray, traced or not, ndarray, list); negative: from the end.
        axis: the axis, by number or label; None takes from all elements in C order.

    Returns:
        dlarray with the sizes of `indices` in place of the axis; 1-D indices keep its label, others give U.

    Raises:
        BoundsError: (an IndexError) for a place out of range.
        DTypeError: if `indices` are not integers.
        DimsError: if there is no such axis.

    Adjoint: ct added to zeros at the places.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> tj.take(np.arange(12.0).reshape(3, 4), [0, 0, 2], axis=0).shape
        (3, 4)
    """
    array = as_array(x, "take")
    index = relabel(index_array("take", indices), None)
    if axis is None:
        array, axis = ravel(array), 0
    array = axis_of_a_number(array, axis)
    return apply("take", array, index, axis=normalize_axis("take", array, axis))


def take_along_axis(x: Any, indices: Any, axis: Any = -1) -> dlarray:
    """Return, for each of `indices`, the element of `x` at that place along an axis.

    Args:
        x: dlarray of any format, ndarray or list.
        indices: integers with as many axes as `x`; other axes broadcast (``argmax(x, axis, keepdims=True)``).
        axis: the axis, by number or label; None takes from all elements in C order at 1-D indices.

    Returns:
        dlarray of the format and dtype of `x`.

    Raises:
        BoundsError: (an IndexError) for a place out of range.
        DTypeError: if `indices` are not integers.
        DimsError: if the sizes do not broadcast or there is no such axis.

    Adjoint: ct added to zeros at the places.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> tj.extractdata(tj.take_along_axis(np.array([[1.0, 2.0], [3.0, 4.0]]), [[1], [0]], 1))
        array([[2.],
               [3.]])
    """
    array = as_array(x, "take_along_axis")
    index = relabel(index_array("take_along_axis", indices), None)
    if axis is None:
        array, axis = ravel(array), 0
    axis = normalize_axis("take_along_axis", array, axis)
    have, wanted = array._data.shape, index._data.shape
    if len(have) == len(wanted):
        pairs = [(a, b) if i != axis else (1, 1) for i, (a, b) in enumerate(zip(have, wanted, strict=True))]
        if all(a == b or 1 in (a, b) for a, b in pairs):
            common = [b if a == 1 else a for a, b in pairs]
            array = expanded(array, (*common[:axis], have[axis], *common[axis + 1 :]))
            index = expanded(index, (*common[:axis], wanted[axis], *common[axis + 1 :]))
    return apply("take_along_axis", array, index, axis=axis)


def scatter_add(x: Any, indices: Any, values: Any, axis: Any = 0) -> dlarray:
    """Return `x` with `values` added at the given places along an axis; values at equal places add up.

    Args:
        x: dlarray of any format, ndarray or list.
        indices: integers of any size, from -n to n - 1 for an axis of size n.
        values: what is added, of the size of ``take(x, indices, axis)`` or one that broadcasts to it.
        axis: the axis, by number or label.

    Returns:
        dlarray of the size, format and dtype of `x`; `x` itself is not changed.

    Raises:
        BoundsError: (an IndexError) for a place out of range.
        DTypeError: if `indices` are not integers, or `x` is bool.
        DimsError: if `values` do not broadcast or there is no such axis.

    Adjoint: ct for `x`, take(ct, indices) for `values`.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> tj.scatter_add(np.zeros(4), [0, 2, 2], [1.0, 10.0, 100.0]).tolist()
        [1.0, 0.0, 110.0, 0.0]
    """
    array = as_array(x, "scatter_add")
    index = relabel(index_array("scatter_add", indices), None)
    axis = normalize_axis("scatter_add", array, axis)
    have = array._data.shape
    shape = have[:axis] + index._data.shape + have[axis + 1 :]
    given = relabel(as_value(array, values, "scatter_add", "values"), None)
    if given._data.shape != shape:
        with suppress(DimsError):  # the op names the sizes
            given = expanded(given, shape)
    return apply("scatter_add", array, index, given, axis=axis)


def nonzero(x: Any) -> tuple[dlarray, ...]:
    """Return the places where `x` is not zero: one array of int64 for each axis.

    Args:
        x: dlarray of any format, ndarray or list. The number of places is a size, which a recorded function may depend
            on: where it does, a different number is recorded again.

    Returns:
        Tuple of unformatted 1-D dlarrays, a constant for dlgradient.

    Raises:
        ArgumentError: if `x` is not an array, a number or a list of numbers.
        DimsError: if `x` is a scalar.

    Examples:
        >>> import tracejit as tj
        >>> [tj.extractdata(places) for places in tj.nonzero([0.0, 3.0, 4.0])]
        [array([1, 2])]
    """
    array = as_array(x, "nonzero")
    if not array._data.ndim:
        raise DimsError("nonzero: x is a scalar, which has no places; pass atleast_1d(x), or use x != 0.")
    mask = array if array._data.dtype == bool else apply("not_equal", array, np.zeros((), array._data.dtype))
    found = selecting.places(mask)
    return tuple(true_places(array, NUMBER_OF_PLACES)) if found is None else found
