# SPDX-License-Identifier: BSD-3-Clause
"""np.pad with borders that the toolbox's pad does not make: statistics, ramps, reflections with odd signs.

Labels stay with their axes.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.aval import describe_shape
from tracejit.errors import ArgumentValueError
from tracejit.functions import elementwise, joining, movement, padding, reductions
from tracejit.functions.creation import full
from tracejit.functions.formats import in_dtype
from tracejit.functions.numpy_api import quantiles
from tracejit.functions.numpy_api.ranges import linspace
from tracejit.functions.refusals import refuse
from tracejit.util.arguments import is_option
from tracejit.util.text import brief

_STATISTICS: dict[str, Callable[..., dlarray]] = {
    "maximum": reductions.max,
    "minimum": reductions.min,
    "mean": reductions.mean,
    "median": quantiles.median,
}


def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> dlarray:
    """Return an array with a border of statistics of its rows, of ramps, or reflected about its ends."""
    x = as_array(array, "np.pad")
    odd = is_option(mode, ("reflect", "symmetric")) and is_option(
        kwargs.pop("reflect_type", "even"), ("odd",)
    )
    known = {"linear_ramp": {"end_values"}, "empty": set(), **{name: {"stat_length"} for name in _STATISTICS}}
    known |= {"reflect": set(), "symmetric": set()}
    if not is_option(mode, known) or not kwargs.keys() <= known[mode]:
        refuse(
            "np.pad",
            f"mode={brief(mode)} with {', '.join(f'{k}=' for k in kwargs) or 'no options'} is not supported",
            ArgumentValueError,
        )
    if mode == "empty" or (mode in ("reflect", "symmetric") and not odd):
        return padding.pad(x, pad_width, "constant" if mode == "empty" else mode)
    widths, _ = padding.widths_of(x, pad_width)
    name = "end_values" if mode == "linear_ramp" else "stat_length"
    options = kwargs.get(name, 0 if mode == "linear_ramp" else None)
    given: Any = [(None, None)] * x.ndim
    if options is not None:
        pairs = padding.pairs_of(name, options, x.ndim)
        given = (_lengths(pairs, options, mode) if name == "stat_length" else pairs).tolist()
    for axis, (before, after) in enumerate(widths.tolist()):
        if before or after:
            x = _bordered(x, axis, (before, after), mode, given[axis])
    return x


def constant(array: Any, pad_width: Any, values: dlarray) -> dlarray:
    """Return an array with a border of traced values: one for each side of each axis, or what broadcasts to that."""
    x = as_array(array, "np.pad")
    pairs, _ = padding.widths_of(x, pad_width)
    if values.ndim > 2 or any(
        size not in (1, want) for size, want in zip(values.shape[::-1], (2, x.ndim), strict=False)
    ):
        refuse(
            "np.pad",
            f"constant_values of size {describe_shape(values.shape, values._format)} are not a number, a pair "
            f"(before, after) or one pair for each of the {x.ndim} axes of x",
        )
    values = movement.broadcast_to(movement.relabel(values, None), (x.ndim, 2))
    for axis, widths in enumerate(pairs.tolist()):
        sizes = [(*x.shape[:axis], width, *x.shape[axis + 1 :]) for width in widths]
        borders = [
            full(size, in_dtype(as_array(values[axis, side]), x.dtype)) for side, size in enumerate(sizes)
        ]
        before, after = [movement.relabel(border, x._format) for border in borders]
        x = joining.concatenate([before, x, after], axis)
    return x


def _lengths(pairs: np.ndarray, given: Any, mode: str) -> np.ndarray:
    """Return how many elements the statistics of each border are of, rounded as NumPy does."""
    lengths = np.rint(pairs.astype(np.float64))
    least = 1 if mode in ("maximum", "minimum") else 0
    if lengths.size and not (least <= lengths.min() and lengths.max() < 1 << 62):
        refuse(
            "np.pad",
            f"stat_length={brief(given)} must be made of integers >= {least} for mode={mode!r}",
            ArgumentValueError,
        )
    return lengths.astype(np.int64)


def _bordered(x: dlarray, axis: int, widths: tuple[int, int], mode: str, options: Any) -> dlarray:
    n = x.shape[axis]
    if not n:
        refuse(
            "np.pad",
            f"axis {axis} is empty, so that mode={brief(mode)} has no values; use mode='constant'",
            ArgumentValueError,
        )
    parts = [x]
    for side, (width, option) in enumerate(zip(widths, options, strict=True)):
        if not width:
            continue
        if mode in _STATISTICS:
            length = n if option is None else min(option, n)
            part = movement.sliced(x, {axis: slice(0, length) if side == 0 else slice(n - length, n)})
            value = _STATISTICS[mode](part, axis=axis, keepdims=True)
            value = in_dtype(elementwise.rint(value) if x.dtype.kind in "iu" else value, x.dtype)
            border = movement.broadcast_to(value, (*x.shape[:axis], width, *x.shape[axis + 1 :]))
        else:
            edge = movement.sliced(x, {axis: slice(0, 1) if side == 0 else slice(n - 1, n)})
            if mode == "linear_ramp":
                end = np.full((), option, x.dtype)
                border = linspace(end, movement.squeeze(edge, axis), width, False, dtype=x.dtype, axis=axis)
                border = movement.flip(border, axis) if side else border
            else:
                border = in_dtype(2 * edge - _mirrored(x, axis, width, side, mode), x.dtype)
        border = movement.relabel(border, x._format)
        parts.insert(0 if side == 0 else len(parts), border)
    return joining.concatenate(parts, axis)


def _mirrored(x: dlarray, axis: int, width: int, side: int, mode: str) -> dlarray:
    n, skip = x.shape[axis], int(mode == "reflect")
    if width > n - skip:
        refuse(
            "np.pad", f"a border of {width} that is reflected with odd signs is wider than the axis of {n}"
        )
    places = np.arange(width)[::-1] + skip if side == 0 else n - 1 - skip - np.arange(width)
    return apply("take", x, as_array(places), axis=axis)
