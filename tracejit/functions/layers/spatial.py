# SPDX-License-Identifier: BSD-3-Clause
"""Arguments of functions that move a window over spatial axes: the axes, and sizes, strides and padding for each."""

from typing import Any

import numpy as np

from tracejit.array import dlarray
from tracejit.errors import ArgumentError, DimsError
from tracejit.functions.formats import describe, need_labels
from tracejit.functions.movement import permuted
from tracejit.util.arguments import as_index, integer
from tracejit.util.text import brief

Sizes = tuple[int, ...]
Pairs = tuple[tuple[int, int], ...]

MOST_AXES = 3  # of the kernels: images, and volumes
_LIMIT = 1 << 40  # of an argument: no array has room for more


def spatial_axes(function: str, array: dlarray, what: str, argument: str = "x") -> tuple[int, ...]:
    """Return the axes labelled S, or if there is none the one labelled T.

    Args:
        function: name of the function on whose behalf errors are raised.
        array: the array whose axes are meant.
        what: what the function does along them, such as "pools".
        argument: what errors call the array.

    Raises:
        DimsError: `array` has no labels, neither S nor T, or more than three S.
    """
    format = need_labels(function, array, f"{function} {what} along spatial axes (S), or time (T)")
    axes = tuple([axis for axis, label in enumerate(format) if label == "S"])
    axes = axes or tuple([axis for axis, label in enumerate(format) if label == "T"])
    if not axes:
        raise DimsError(
            f"{function}: {argument} of {describe(array)} has neither spatial axes (S) nor time (T), along which "
            f"{function} {what}; label them."
        )
    if len(axes) > MOST_AXES:
        raise DimsError(
            f"{function}: {argument} of {describe(array)} has {len(axes)} spatial axes; {function} {what} along at "
            f"most {MOST_AXES}."
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


def per_axis(function: str, argument: str, value: Any, count: int, least: int) -> Sizes:
    """Return an argument that is one integer for all spatial axes, or one for each.

    Args:
        function: name of the function on whose behalf errors are raised.
        argument: the name of the argument.
        value: what was given.
        count: the number of spatial axes.
        least: the smallest integer that it may be.

    Raises:
        ArgumentError: it is neither.
        DimsError: an integer is smaller than `least`, or larger than any array.
    """
    numbers = entries_of(value)
    found: list[int | None] = [as_index(value)] if numbers is None else [as_index(n) for n in numbers]
    if None in found or len(found) not in (1, count):
        raise ArgumentError(
            f"{function}: {argument} must be an integer or {_one_each(count)}, not {brief(value)}."
        )
    sizes = [within(function, argument, number, least) for number in found]
    return tuple(sizes * count if len(sizes) == 1 else sizes)


def pairs_of(function: str, argument: str, value: Any, count: int, options: str = "") -> Pairs:
    """Return an argument that is an integer, one for each spatial axis, or (before, after) for each.

    Args:
        function: name of the function on whose behalf errors are raised.
        argument: the name of the argument.
        value: what was given; no string that is an option.
        count: the number of spatial axes.
        options: the strings that it may be, for the message.

    Raises:
        ArgumentError: it is none of these.
        DimsError: an integer is negative, or larger than any array.
    """
    entries = entries_of(value)
    if count == 1 and entries is not None and len(entries) == 2 and entries_of(entries[0]) is None:
        entries = (entries,)  # (before, after) of the only axis
    if entries is None:
        entries = (value,) * count
    elif len(entries) == 1:
        entries = entries * count
    pairs = [entries_of(entry) or (entry, entry) for entry in entries]
    numbers = [[as_index(number) for number in pair] for pair in pairs]
    if len(pairs) != count or any(len(pair) != 2 or None in pair for pair in numbers):
        raise ArgumentError(
            f"{function}: {argument} must be {options}an integer, {_one_each(count)} or a pair (before, after) for "
            f"each, not {brief(value)}."
        )
    return tuple([
        (within(function, argument, before, 0), within(function, argument, after, 0)) for before, after in numbers
    ])  # fmt: skip


def same_padding(extents: Sizes, spans: Sizes, strides: Sizes) -> Pairs:
    """Return the padding with which there is a window for each stride, the odd element after the array."""
    found = []
    for extent, span, stride in zip(extents, spans, strides, strict=True):
        total = max(0, (-(-extent // stride) - 1) * stride + span - extent)
        found.append((total // 2, total - total // 2))
    return tuple(found)


def _one_each(count: int) -> str:
    return "one for the spatial axis" if count == 1 else f"one for each of the {count} spatial axes"


def entries_of(value: Any) -> tuple[Any, ...] | None:
    """Return the entries of a tuple, list or NumPy array; None for anything else."""
    if isinstance(value, np.ndarray) and value.ndim:
        return tuple(value)
    return tuple(value) if isinstance(value, (tuple, list)) else None


def within(function: str, argument: str, number: Any, least: int) -> int:
    """Return an argument that is an integer, not below `least`."""
    number = integer(function, argument, number)
    if not least <= number < _LIMIT:
        raise DimsError(
            f"{function}: {argument} must be at least {least} and below 2**40, not {brief(number)}."
        )
    return int(number)
