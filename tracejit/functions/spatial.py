# SPDX-License-Identifier: BSD-3-Clause
"""Arguments of functions that move a window over spatial axes: which axes, and sizes, strides and padding for each."""

from typing import Any

from tracejit.array import dlarray
from tracejit.errors import ArgumentError, DimsError
from tracejit.functions.formats import describe, need_labels
from tracejit.functions.movement import permuted
from tracejit.util.arguments import integers
from tracejit.util.text import brief

Padding = tuple[tuple[int, int], ...]

MOST_AXES = 3


def spatial_axes(function: str, array: dlarray, what: str) -> tuple[int, ...]:
    """Return the axes labelled S, or if there is none the one labelled T.

    Args:
        function: name of the function on whose behalf errors are raised.
        array: the array whose axes are meant.
        what: what the function does along them, such as "pools".

    Raises:
        DimsError: `array` has no labels, neither S nor T, or more than three S.
    """
    format = need_labels(function, array, f"{function} {what} along spatial axes (S), or time (T)")
    axes = tuple([axis for axis, label in enumerate(format) if label == "S"])
    axes = axes or tuple([axis for axis, label in enumerate(format) if label == "T"])
    if not axes:
        raise DimsError(
            f"{function}: x of {describe(array)} has neither spatial axes (S) nor time (T), along which {function} "
            f"{what}; label them."
        )
    if len(axes) > MOST_AXES:
        raise DimsError(
            f"{function}: x of {describe(array)} has {len(axes)} spatial axes; {function} {what} along at most "
            f"{MOST_AXES}."
        )
    return axes


def brought_together(array: dlarray, axes: tuple[int, ...]) -> tuple[dlarray, tuple[int, ...]]:
    """Return `array` with `axes` next to each other, and the order of its axes that this took.

    They come where the last of them was; nothing moves where they are next to each other already.
    """
    before = [axis for axis in range(axes[-1]) if axis not in axes]
    order = (*before, *axes, *range(axes[-1] + 1, array._data.ndim))
    return permuted(array, order), order


def put_back(array: dlarray, order: tuple[int, ...]) -> dlarray:
    """Return an array whose axes brought_together() has put in `order` with its axes as they were."""
    return permuted(array, tuple([order.index(axis) for axis in range(len(order))]))


def each(function: str, argument: str, value: Any, count: int, least: int = 1) -> tuple[int, ...]:
    """Return an argument that is one integer for all axes, or one for each, as a tuple.

    Raises:
        ArgumentError: if it is neither, or smaller than `least`.
    """
    numbers = integers(function, argument, value)
    if len(numbers) == 1:
        numbers *= count
    if len(numbers) != count or min(numbers) < least or max(numbers) >= 2**31:
        raise ArgumentError(
            f"{function}: {argument} must be an integer from {least} on, or {count} of them, one for each of the "
            f"{count} axes, not {brief(value)}."
        )
    return numbers


def padding_of(
    function: str,
    value: Any,
    extents: tuple[int, ...],
    size: tuple[int, ...],
    stride: tuple[int, ...],
    argument: str = "padding",
) -> Padding:
    """Return the padding before and after each axis.

    Args:
        function: name of the function on whose behalf errors are raised.
        value: an integer for all sides, one for each axis, a pair (before, after) for each axis, or "same": as much
            as makes the output the size of the input over the stride, rounded up, the odd one at the end.
        extents: sizes of the axes.
        size: elements that a window spans along each axis.
        stride: of the windows.
        argument: the name of the argument.

    Raises:
        ArgumentError: if it is none of these.
    """
    if isinstance(value, str):
        if value != "same":
            raise ArgumentError(
                f'{function}: padding must be "same", integers, or pairs (before, after), not {brief(value)}.'
            )
        totals = [max((-(-n // s) - 1) * s + k - n, 0) for n, k, s in zip(extents, size, stride, strict=True)]
        return tuple([(total // 2, total - total // 2) for total in totals])
    count = len(extents)
    if isinstance(value, (tuple, list)) and any(isinstance(entry, (tuple, list)) for entry in value):
        pairs = tuple([integers(function, argument, entry) for entry in value])
        if len(pairs) == count and all(
            len(pair) == 2 and min(pair) >= 0 and max(pair) < 2**31 for pair in pairs
        ):
            return tuple([(first, last) for first, last in pairs])
        raise ArgumentError(
            f"{function}: {argument} must have a pair (before, after) of integers from 0 on for each of the {count} "
            f"axes, not {brief(value)}."
        )
    return tuple([(number, number) for number in each(function, argument, value, count, 0)])
