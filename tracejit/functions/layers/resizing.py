# SPDX-License-Identifier: BSD-3-Clause
"""dlresize: images in new sizes, by the nearest element, or by linear or cubic interpolation."""

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from tracejit.array import apply, dlarray
from tracejit.aval import describe_shape
from tracejit.errors import ArgumentError, DimsError
from tracejit.functions.formats import describe, floating, labelled
from tracejit.functions.halves import in_single
from tracejit.functions.layers.spatial import entries_of, per_axis, spatial_axes
from tracejit.functions.movement import apart, relabel
from tracejit.ops.resampling import SumTables, fits_planes, tables, transposed
from tracejit.util.arguments import check_room, is_option, real
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.text import brief

_METHODS = ("nearest", "linear", "cubic")
_TRANSFORMS = ("half-pixel", "asymmetric", "align-corners")
_ROUNDINGS = ("round", "floor", "onnx-10")
_CUBIC = -0.75  # the slope of the cubic at distance 1, as in PyTorch and ONNX


@in_single
def dlresize(
    x: Any,
    *,
    scale: Any = None,
    output_size: Any = None,
    method: str = "nearest",
    geometric_transform_mode: str = "half-pixel",
    nearest_rounding_mode: str = "round",
    data_format: str | None = None,
) -> dlarray:
    """Return `x` with other sizes along its spatial axes, its elements interpolated.

    Args:
        x: dlarray with labels S (one to three), or T if it has no S; or an unformatted array with `data_format`.
        scale: how many times as large the result is, a positive number for all spatial axes or one for each; its size
            is floor(scale size).
        output_size: the size of the result instead, an integer for all spatial axes or one for each; None in place of
            one keeps the proportions to the others.
        method: "nearest", "linear" between two neighbours along each axis, or "cubic" between four (Keys, a = -0.75).
        geometric_transform_mode: the place in `x`, from 0 to n - 1, of element j of the m of an axis of the result:
            "half-pixel" for (j + 1/2) n / m - 1/2, "asymmetric" for j n / m, "align-corners" for j (n - 1) / (m - 1).
        nearest_rounding_mode: what "nearest" does with a place between elements: "round" (halves up), "floor", or
            "onnx-10" for "floor" where the axis grows and up to the next where it shrinks.
        data_format: labels of an unformatted `x`, such as "BCSS".

    Returns:
        dlarray of the format of `x`; integers give float64. Places beyond the edges take the outermost elements.

    Raises:
        DimsError: if there are no spatial axes, one is empty, or the result would be.
        ArgumentError: if not one of `scale` and `output_size` is given, or for an unknown option.

    The cotangent of an element is the sum of ct over the places it takes part in, with the same weights.

    Examples:
        >>> import tracejit as tj
        >>> x = tj.dlarray([1.0, 3.0], "S")
        >>> tj.dlresize(x, scale=2).tolist(), tj.dlresize(x, scale=2, method="linear").tolist()
        ([1.0, 1.0, 3.0, 3.0], [1.0, 1.5, 2.5, 3.0])
    """
    for argument, value, options in (
        ("method", method, _METHODS),
        ("geometric_transform_mode", geometric_transform_mode, _TRANSFORMS),
        ("nearest_rounding_mode", nearest_rounding_mode, _ROUNDINGS),
    ):
        if not is_option(value, options):
            raise ArgumentError(
                f"dlresize: {argument} must be one of {', '.join(options)}, not {brief(value)}."
            )
    array, formatted = labelled("dlresize", x, data_format)
    axes = spatial_axes("dlresize", array, "resizes")
    extents = tuple([array._data.shape[axis] for axis in axes])
    sizes = _sizes(array, extents, axes, scale, output_size)
    result = floating("dlresize", relabel(array, None))
    shape = list(array._data.shape)
    for axis, size in zip(axes, sizes, strict=True):
        shape[axis] = size
    check_room("dlresize", tuple(shape), result._data.dtype)
    # Axes that shrink come first, so that the others have less to do. Of those that grow, the last axis comes last: its
    # elements take longest, because they lie side by side.
    turns = []
    for axis, n, m in sorted(zip(axes, extents, sizes, strict=True), key=_turn):
        places = _places(n, m, geometric_transform_mode)
        turns.append((axis, SumTables(*_weighed(places, method, nearest_rounding_mode, n, m))))
    return relabel(apart(resampled(result, turns), array), array._format if formatted else None)


class _Both(NamedTuple):
    """An axis of an array, and the tables of its weighted sums and of their adjoint."""

    axis: int
    forward: SumTables
    back: SumTables


def resampled(array: dlarray, turns: Iterable[tuple[int, SumTables]]) -> dlarray:
    """Return weighted sums along axes of an array, one after the other, each over the places of its table."""
    shape, dtype = array._data.shape, array._data.dtype
    left = []
    for axis, sums in turns:
        forward = tables(sums.starts, sums.weights, shape[axis])
        if not _takes_each(forward, shape[axis]):
            back = transposed(forward, shape[axis])
            both = [SumTables(t.starts, t.weights.astype(dtype)) for t in (forward, back)]
            left.append(_Both(axis, *both))
    while left:
        first, *left = left
        beside = next((other for other in left if abs(other.axis - first.axis) == 1), None)
        if beside is not None:
            rows, columns = sorted((first, beside))
            if fits_planes(array._data.shape, rows.axis, len(columns.forward.starts)):
                array = apply("resample_planes", array, *_by_taps(rows, columns), axis=rows.axis)
                left.remove(beside)
                continue
        array = apply("resample", array, *first.forward, *first.back, axis=first.axis)
    return array


def _takes_each(sums: SumTables, extent: int) -> bool:
    """Return whether the sums are the elements themselves."""
    starts, weights = sums
    return weights.shape == (extent, 1) and bool((starts == np.arange(extent)).all() and (weights == 1).all())


def _by_taps(rows: _Both, columns: _Both) -> Iterator[np.ndarray]:
    """Give the tables of two axes, and those of their adjoint, with weights as (taps, places)."""
    for starts, weights in (rows.forward, columns.forward, rows.back, columns.back):
        yield starts
        yield np.ascontiguousarray(weights.T)


def _turn(resizing: tuple[int, int, int]) -> tuple[bool, int]:
    axis, n, m = resizing
    return m > n, -axis if m > n else axis


def _sizes(
    array: dlarray, extents: tuple[int, ...], axes: tuple[int, ...], scale: Any, output_size: Any
) -> tuple[int, ...]:
    """Return the sizes of the spatial axes of the result."""
    if (scale is None) == (output_size is None):
        raise ArgumentError("dlresize: give one of scale and output_size.")
    count = len(axes)
    if scale is not None:
        factors = [
            float(real("dlresize", "scale", factor)) for factor in entries_of(scale) or (scale,) * count
        ]
        if len(factors) != count or not all(0 < factor < 2**31 for factor in factors):
            raise ArgumentError(
                f"dlresize: scale must be a positive number, or {count} of them, one for each of the {count} axes, not "
                f"{brief(scale)}."
            )
        sizes = tuple([math.floor(f * n) for f, n in zip(factors, extents, strict=True)])
    elif isinstance(output_size, (tuple, list)) and any(entry is None for entry in output_size[:count]):
        known = [axis for axis, size in enumerate(output_size) if size is not None]
        if not known or len(output_size) != count:
            raise ArgumentError(
                f"dlresize: output_size must have an entry for each of the {count} axes, and an integer for at least "
                f"one, not {brief(output_size)}."
            )
        given = per_axis(
            "dlresize", "output_size", tuple([output_size[axis] for axis in known]), len(known), 1
        )
        ratio = given[0] / max(extents[known[0]], 1)
        sizes = tuple([
            given[known.index(axis)] if axis in known else max(1, round(ratio * n)) for axis, n in enumerate(extents)
        ])  # fmt: skip
    else:
        sizes = per_axis("dlresize", "output_size", output_size, count, 1)
    if 0 in extents or 0 in sizes:
        labels = "".join([(array._format or "")[axis] for axis in axes])
        raise DimsError(
            f"dlresize: x of {describe(array)} would become {describe_shape(sizes, labels)} along its spatial axes; "
            "neither may be empty."
        )
    return sizes


def _places(n: int, m: int, transform: str) -> np.ndarray:
    """Return the places in an axis of n elements of the m elements of the result."""
    j = np.arange(m)
    if transform == "half-pixel":
        return ((2 * j + 1) * n - m) / (2 * m)
    if transform == "asymmetric":
        return j * n / m
    return j * (n - 1) / max(m - 1, 1)


def _weighed(places: np.ndarray, method: str, rounding: str, n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the elements that each place of the result sums, and their weights."""
    if method == "nearest":
        if rounding == "round":
            nearest = np.floor(places + 0.5)
        else:
            nearest = np.ceil(places) if rounding == "onnx-10" and m < n else np.floor(places)
        return nearest.astype(np.int64)[:, None], np.ones((m, 1))
    below = np.floor(places)
    share = places - below
    if method == "linear":
        return (below[:, None] + np.arange(2)).astype(np.int64), np.stack([1 - share, share], 1)
    distances = np.abs(share[:, None] - np.arange(-1, 3))
    near = ((_CUBIC + 2) * distances - (_CUBIC + 3)) * distances**2 + 1
    far = ((distances - 5) * distances + 8) * distances * _CUBIC - 4 * _CUBIC
    return (below[:, None] + np.arange(-1, 3)).astype(np.int64), np.where(distances <= 1, near, far)
