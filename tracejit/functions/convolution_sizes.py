# SPDX-License-Identifier: BSD-3-Clause
"""The numbers that a convolution takes for each spatial axis: strides, padding, cropping, dilation."""

from typing import Any

import numpy as np

from tracejit.errors import ArgumentError, DimsError
from tracejit.functions.convolution_operands import Filters, Images
from tracejit.functions.formats import describe
from tracejit.util.arguments import as_index, integer
from tracejit.util.text import brief

Sizes = tuple[int, ...]
Pairs = tuple[tuple[int, int], ...]

_LIMIT = 1 << 40  # of an argument: no array has room for more


def per_axis(function: str, argument: str, value: Any, count: int, least: int) -> Sizes:
    """Return an argument that is one integer for all spatial axes, or one for each."""
    numbers = _entries(value)
    found: list[int | None] = [as_index(value)] if numbers is None else [as_index(n) for n in numbers]
    if None in found or len(found) not in (1, count):
        raise ArgumentError(
            f"{function}: {argument} must be an integer or {_one_each(count)}, not {brief(value)}."
        )
    sizes = [within(function, argument, number, least) for number in found]
    return tuple(sizes * count if len(sizes) == 1 else sizes)


def pairs_of(function: str, argument: str, value: Any, count: int, options: str) -> Pairs:
    """Return an argument that is an integer, one for each spatial axis, or (before, after) for each.

    `options` says in a message which strings it may be; whoever calls has looked for them.
    """
    entries = _entries(value)
    if count == 1 and entries is not None and len(entries) == 2 and _entries(entries[0]) is None:
        entries = (entries,)  # (before, after) of the only axis
    if entries is None:
        entries = (value,) * count
    elif len(entries) == 1:
        entries = entries * count
    pairs = [_entries(entry) or (entry, entry) for entry in entries]
    numbers = [[as_index(number) for number in pair] for pair in pairs]
    if len(pairs) != count or any(len(pair) != 2 or None in pair for pair in numbers):
        raise ArgumentError(
            f"{function}: {argument} must be {options}an integer, {_one_each(count)} or a pair (before, after) for "
            f"each, not {brief(value)}."
        )
    return tuple([
        (within(function, argument, before, 0), within(function, argument, after, 0)) for before, after in numbers
    ])  # fmt: skip


def _one_each(count: int) -> str:
    return "one for the spatial axis" if count == 1 else f"one for each of the {count} spatial axes"


def _entries(value: Any) -> tuple[Any, ...] | None:
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


def spans_of(taps: Sizes, dilation: Sizes) -> Sizes:
    """Return the elements from the first to the last tap of a window."""
    return tuple([(k - 1) * d + 1 for k, d in zip(taps, dilation, strict=True)])


def padded(extents: Sizes, pairs: Pairs) -> Sizes:
    """Return sizes with what is added before and after."""
    return tuple([extent + before + after for extent, (before, after) in zip(extents, pairs, strict=True)])


def same_padding(extents: Sizes, spans: Sizes, strides: Sizes) -> Pairs:
    """Return the padding with which there is a window for each stride, the odd element after the array."""
    found = []
    for extent, span, stride in zip(extents, spans, strides, strict=True):
        total = max(0, (-(-extent // stride) - 1) * stride + span - extent)
        found.append((total // 2, total - total // 2))
    return tuple(found)


def windows_along(images: Images, filters: Filters, spans: Sizes, strides: Sizes, padding: Pairs) -> Sizes:
    """Return the number of windows along each axis.

    Raises:
        DimsError: along an axis no window fits into the padded input.
    """
    sizes = []
    for axis, (extent, span, stride, (before, after)) in enumerate(
        zip(images.extents, spans, strides, padding, strict=True)
    ):
        padded = extent + before + after
        size = (padded - span) // stride + 1
        if not filters.taps[axis] or padded < span:
            raise DimsError(
                f"dlconv: windows of {filters.taps[axis]} taps that span {span} elements do not fit into the axis "
                f"{images.name(axis)} of x ({describe(images.given)}) with padding ({before}, {after}), which makes "
                f"{padded}; the output size would be ({padded} - {span}) // {stride} + 1 = {size}. Use a larger "
                "padding, fewer taps or a smaller dilation_factor."
            )
        sizes.append(size)
    return tuple(sizes)


def same_cropping(spans: Sizes, strides: Sizes, added: Sizes) -> tuple[Pairs, Sizes]:
    """Return the cropping, and what is added after it, for results `strides` times as large, and `added` besides."""
    totals = [max(0, span - stride) for span, stride in zip(spans, strides, strict=True)]
    more = [n + max(0, stride - span) for span, stride, n in zip(spans, strides, added, strict=True)]
    return tuple([(total // 2, total - total // 2) for total in totals]), tuple(more)


def transposed_size(
    images: Images, filters: Filters, spans: Sizes, strides: Sizes, cropping: Pairs, added: Sizes
) -> Sizes:
    """Return the spatial sizes of a transposed convolution.

    Raises:
        DimsError: nothing is left along an axis.
    """
    found = []
    for axis, (extent, span, stride, (before, after), more) in enumerate(
        zip(images.extents, spans, strides, cropping, added, strict=True)
    ):
        whole = (extent - 1) * stride + span
        size = whole - before - after + more
        if not extent or not filters.taps[axis] or size < 1:
            raise DimsError(
                f"dltranspconv: windows of {filters.taps[axis]} taps that span {span} elements make {whole} of the "
                f"axis {images.name(axis)} of x ({describe(images.given)}), of which cropping ({before}, {after}) and "
                f"output_padding {more} leave {size}; the output size must be at least 1. Crop less."
            )
        found.append(size)
    return tuple(found)
