# SPDX-License-Identifier: BSD-3-Clause
"""Images and blocks: depthtospace, spacetodepth, crop."""

from typing import Any

from tracejit.array import dlarray
from tracejit.errors import ArgumentError, DimsError
from tracejit.functions.formats import describe, labelled, need_labels
from tracejit.functions.layers.spatial import pairs_of, per_axis, spatial_axes
from tracejit.functions.movement import apart, permuted, relabel, reshaped, sliced
from tracejit.util.arguments import is_option
from tracejit.util.text import brief


def depthtospace(x: Any, block_size: Any, *, mode: str = "dcr", data_format: str | None = None) -> dlarray:
    """Return channels rearranged into blocks of images, which become larger.

    Args:
        x: dlarray with labels C and S (one to three), or an unformatted array with `data_format`.
        block_size: sizes of the blocks, an integer for all spatial axes or one for each.
        mode: the order of the channels: "dcr" for depth, column, row (those of the first element of all blocks come
            first), "crd" for column, row, depth (those of each result channel are neighbours, as in PyTorch).
        data_format: labels of an unformatted `x`, such as "BCSS".

    Returns:
        dlarray of the format of `x`, with `block_size` times as many elements along the spatial axes, and as many times
        fewer channels.

    Raises:
        DimsError: if labels are missing, a block size is out of range, or the channels do not make blocks.
        ArgumentError: for an invalid block size or mode.

    Examples:
        >>> import tracejit as tj
        >>> tj.depthtospace(tj.dlarray([[1, 2], [3, 4]], "CS"), 2).tolist()
        [[1, 3, 2, 4]]
    """
    array, formatted, axes, channel = _blocks_of("depthtospace", x, mode, data_format)
    sizes = per_axis("depthtospace", "block_size", block_size, len(axes), 1)
    shape, count = array._data.shape, 1
    for size in sizes:
        count *= size
    if shape[channel] % count:
        raise DimsError(
            f"depthtospace: x of {describe(array)} has {shape[channel]} channels, which do not make blocks of "
            f"{brief(sizes)}; their number must be a multiple of {count}."
        )
    # The channels as the axes of a block and what is left of them; each block axis goes behind its spatial axis.
    rest = (shape[channel] // count,)
    parts = (*sizes, *rest) if mode == "dcr" else (*rest, *sizes)
    split = reshaped(relabel(array, None), (*shape[:channel], *parts, *shape[channel + 1 :]), None)
    left = channel + (len(axes) if mode == "dcr" else 0)
    first = channel + (0 if mode == "dcr" else 1)
    order: list[int] = []
    result: list[int] = []
    for axis, extent in enumerate(shape):
        moved = axis + (len(axes) if axis > channel else 0)
        if axis == channel:
            order.append(left)
            result.append(rest[0])
        elif axis in axes:
            number = axes.index(axis)
            order += [moved, first + number]
            result.append(extent * sizes[number])
        else:
            order.append(moved)
            result.append(extent)
    y = reshaped(permuted(split, tuple(order)), tuple(result), None)
    return relabel(apart(y, array), array._format if formatted else None)


def spacetodepth(x: Any, block_size: Any, *, mode: str = "dcr", data_format: str | None = None) -> dlarray:
    """Return blocks of images rearranged into channels: what depthtospace undoes.

    Args:
        x: dlarray with labels C and S (one to three), or an unformatted array with `data_format`.
        block_size: sizes of the blocks, an integer for all spatial axes or one for each.
        mode: the order of the channels of the result, as for depthtospace.
        data_format: labels of an unformatted `x`, such as "BCSS".

    Returns:
        dlarray of the format of `x`, with `block_size` times fewer elements along the spatial axes, and as many times
        as many channels.

    Raises:
        DimsError: if labels are missing, a block size is out of range, or the spatial axes do not make blocks.
        ArgumentError: for an invalid block size or mode.

    Examples:
        >>> import tracejit as tj
        >>> tj.spacetodepth(tj.dlarray([[1, 3, 2, 4]], "CS"), 2).tolist()
        [[1, 2], [3, 4]]
    """
    array, formatted, axes, channel = _blocks_of("spacetodepth", x, mode, data_format)
    sizes = per_axis("spacetodepth", "block_size", block_size, len(axes), 1)
    shape = array._data.shape
    if any(shape[axis] % size for axis, size in zip(axes, sizes, strict=True)):
        raise DimsError(
            f"spacetodepth: x of {describe(array)} does not divide into blocks of {brief(sizes)}; the sizes of its "
            "spatial axes must be multiples of those of a block."
        )
    split: list[int] = []
    places: dict[int, int] = {}  # where each axis begins among those of `split`
    for axis, extent in enumerate(shape):
        places[axis] = len(split)
        size = sizes[axes.index(axis)] if axis in axes else 0
        split += [extent // size, size] if size else [extent]
    inner = [places[axis] + 1 for axis in axes]
    order: list[int] = []
    result: list[int] = []
    for axis in range(len(shape)):
        if axis == channel:
            order += [*inner, places[axis]] if mode == "dcr" else [places[axis], *inner]
            extent = shape[channel]
            for size in sizes:
                extent *= size
            result.append(extent)
        else:
            order.append(places[axis])
            result.append(split[places[axis]])
    y = permuted(reshaped(relabel(array, None), tuple(split), None), tuple(order))
    y = apart(reshaped(y, tuple(result), None), array)  # a view where the order of elements stays
    return relabel(y, array._format if formatted else None)


def crop(x: Any, cropping: Any, *, data_format: str | None = None) -> dlarray:
    """Return `x` without the elements at the edges of its spatial axes.

    Args:
        x: dlarray with labels S (one to three), or T if it has no S; or an unformatted array with `data_format`.
        cropping: elements that are removed: an integer for all sides, one for each axis, or a pair (before, after) for
            each axis.
        data_format: labels of an unformatted `x`, such as "BCSS".

    Returns:
        dlarray of the format of `x`, which shares its elements, as a slice does.

    Raises:
        DimsError: if there are no spatial axes, or a cropping is negative or removes more elements than there are.
        ArgumentError: for an invalid cropping.

    Examples:
        >>> import tracejit as tj
        >>> tj.crop(tj.dlarray([1, 2, 3, 4, 5], "S"), ((1, 2),)).tolist()
        [2, 3]
    """
    array, formatted = labelled("crop", x, data_format)
    axes = spatial_axes("crop", array, "crops")
    extents = tuple([array._data.shape[axis] for axis in axes])
    pairs = pairs_of("crop", "cropping", cropping, len(axes))
    if any(sum(pair) > extent for pair, extent in zip(pairs, extents, strict=True)):
        raise DimsError(
            f"crop: cropping {brief(pairs)} removes more elements than x of {describe(array)} has along its spatial "
            "axes."
        )
    keys = {
        axis: slice(before, extent - after)
        for axis, extent, (before, after) in zip(axes, extents, pairs, strict=True)
        if before or after
    }
    return relabel(sliced(array, keys), array._format if formatted else None)


def _blocks_of(
    function: str, x: Any, mode: Any, data_format: str | None
) -> tuple[dlarray, bool, tuple[int, ...], int]:
    """Return the array with its labels, whether it had them, its spatial axes and that of its channels."""
    if not is_option(mode, ("dcr", "crd")):
        raise ArgumentError(f'{function}: mode must be "dcr" or "crd", not {brief(mode)}.')
    array, formatted = labelled(function, x, data_format)
    format = need_labels(function, array, f"{function} needs channels (C) and spatial axes (S)")
    axes = spatial_axes(function, array, "moves elements")
    if "C" not in format:
        raise DimsError(f"{function}: x of {describe(array)} has no channels (C); label them.")
    return array, formatted, axes, format.index("C")
