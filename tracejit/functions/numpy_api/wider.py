# SPDX-License-Identifier: BSD-3-Clause
"""NumPy's further arguments of functions of the toolbox: order="F", more borders, einsum with lists, dtype= of joins.

Labels are those of the toolbox' function; order="F" leaves none unless the sizes stay.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.aval import wanted_dtype
from tracejit.functions import elementwise, linear, movement, reductions
from tracejit.functions.formats import in_dtype
from tracejit.functions.numpy_api import quantiles
from tracejit.functions.numpy_api.ranges import linspace
from tracejit.functions.refusals import refuse
from tracejit.util.arguments import integers, is_option
from tracejit.util.text import brief


def reshape(
    a: Any, shape: Any = None, order: Any = "C", *, newshape: Any = None, copy: Any = None
) -> dlarray:
    """Return the elements in another shape, in C order or column by column (order="F")."""
    array = as_array(a, "np.reshape")
    wanted = integers("np.reshape", "shape", newshape if shape is None else shape)
    if not is_option(order, ("C", "F")):
        refuse(
            "np.reshape",
            f"order must be 'C' or 'F', not {brief(order)}; how an array lies in memory is not recorded",
        )
    if order == "F":
        turned = movement.reshape(movement.transpose(movement.relabel(array, None)), wanted[::-1])
        result = movement.transpose(turned)
    else:
        result = movement.reshape(array, wanted)
    return result.copy() if copy else result


def ravel(a: Any, order: Any = "C") -> dlarray:
    """Return all elements as a vector, in C order or column by column (order="F")."""
    array = movement.relabel(as_array(a, "np.ravel"), None)
    if not is_option(order, ("C", "F")):
        refuse(
            "np.ravel",
            f"order must be 'C' or 'F', not {brief(order)}; how an array lies in memory is not recorded",
        )
    return movement.ravel(movement.transpose(array) if order == "F" else array)


def concatenate(
    arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind"
) -> dlarray:
    """Return arrays joined along an axis, in a dtype."""
    joined = movement.concatenate(arrays, axis)
    if dtype is None:
        return joined
    wanted = wanted_dtype("np.concatenate", dtype)
    if not np.can_cast(joined.dtype, wanted, casting):
        refuse(
            "np.concatenate",
            f"{joined.dtype} does not become {wanted} by casting={brief(casting)}; cast the arrays",
        )
    return in_dtype(joined, wanted)


def stack(
    arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind"
) -> dlarray:
    """Return arrays joined along a new axis, in a dtype."""
    return concatenate([movement.stack(arrays, axis)], 0, dtype=dtype, casting=casting)


def vstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> dlarray:
    """Return arrays joined along the first axis, vectors as rows, in a dtype."""
    return concatenate([movement.vstack(tup)], 0, dtype=dtype, casting=casting)


def hstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> dlarray:
    """Return arrays joined along the second axis, vectors along their own, in a dtype."""
    return concatenate([movement.hstack(tup)], 0, dtype=dtype, casting=casting)


def einsum(*operands: Any, out: Any = None, optimize: Any = True, **kwargs: Any) -> dlarray:
    """Return a sum of products by Einstein's convention, operands followed by lists of numbers of their axes."""
    dtype = kwargs.pop("dtype", None)
    if kwargs:
        refuse("np.einsum", f"{next(iter(kwargs))}= is not supported on dlarrays; cast the operands first")
    arrays: list[Any] = list(operands)
    if arrays and not isinstance(arrays[0], str):
        result = arrays.pop() if len(arrays) % 2 else None
        lists = [*arrays[1::2], *([] if result is None else [result])]
        arrays = [_subscripts(lists, result is not None), *arrays[::2]]
    if dtype is not None:
        wanted = wanted_dtype("np.einsum", dtype)
        arrays[1:] = [in_dtype(as_array(x, "np.einsum"), wanted) for x in arrays[1:]]
    return linear.einsum(*arrays, optimize=optimize)


def _subscripts(lists: list[Any], has_result: bool) -> str:
    """Return lists of numbers of axes, the last that of the result, as letters; Ellipsis as dots."""
    numbers = sorted({part for listed in lists for part in listed if part is not Ellipsis})
    if len(numbers) > 52:
        refuse("np.einsum", f"there are {len(numbers)} different axes, expected at most 52")
    letter = {number: chr(ord("A") + i if i < 26 else ord("a") + i - 26) for i, number in enumerate(numbers)}
    terms = ["".join("..." if part is Ellipsis else letter[part] for part in listed) for listed in lists]
    return ",".join(terms[:-1]) + "->" + terms[-1] if has_result else ",".join(terms)


def einsum_path(*operands: Any, optimize: Any = "greedy", einsum_call: Any = False) -> Any:
    """Return the order of products that np.einsum would take, which depends on sizes only."""
    stand_ins = [np.broadcast_to(0.0, x.shape) if isinstance(x, dlarray) else x for x in operands]
    return np.einsum_path(*stand_ins, optimize=optimize)


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
        )
    if mode == "empty" or (mode in ("reflect", "symmetric") and not odd):
        return movement.pad(x, pad_width, "constant" if mode == "empty" else mode)
    pairs = np.broadcast_to(np.asarray(pad_width), (x.ndim, 2)).tolist()
    options = kwargs.get("end_values", 0) if mode == "linear_ramp" else kwargs.get("stat_length")
    given = (
        [(None, None)] * x.ndim
        if options is None
        else np.broadcast_to(np.asarray(options), (x.ndim, 2)).tolist()
    )
    for axis, (before, after) in enumerate(pairs):
        if before or after:
            x = _bordered(x, axis, (before, after), mode, given[axis])
    return x


def _bordered(x: dlarray, axis: int, widths: tuple[int, int], mode: str, options: Any) -> dlarray:
    n = x.shape[axis]
    if not n:
        refuse(
            "np.pad", f"axis {axis} is empty, so that mode={brief(mode)} has no values; use mode='constant'"
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
    return movement.concatenate(parts, axis)


def _mirrored(x: dlarray, axis: int, width: int, side: int, mode: str) -> dlarray:
    n, skip = x.shape[axis], int(mode == "reflect")
    if width > n - skip:
        refuse(
            "np.pad", f"a border of {width} that is reflected with odd signs is wider than the axis of {n}"
        )
    places = np.arange(width)[::-1] + skip if side == 0 else n - 1 - skip - np.arange(width)
    return apply("take", x, as_array(places), axis=axis)


def packbits(a: Any, axis: Any = None, bitorder: Any = "big") -> dlarray:
    """Return eight truth values each as one number of 8 bits."""
    array = as_array(a, "np.packbits") != 0
    if axis is None:
        array, axis = movement.ravel(array), 0
    rows = movement.moveaxis(movement.relabel(array, None), axis, -1)
    missing = -rows.shape[-1] % 8
    rows = apply("pad", rows, widths=(*((0, 0),) * (rows.ndim - 1), (0, missing)), value=False)
    rows = movement.reshape(rows, (*rows.shape[:-1], -1, 8) if rows.size else (*rows.shape[:-1], 0, 8))
    weights = np.array([1 << i for i in range(8)][:: -1 if bitorder == "big" else 1])
    return movement.moveaxis(elementwise.cast(reductions.sum(rows * weights, -1), np.uint8), -1, axis)


def unpackbits(a: Any, axis: Any = None, count: Any = None, bitorder: Any = "big") -> dlarray:
    """Return the bits of numbers of 8 bits as numbers 0 and 1."""
    array = as_array(a, "np.unpackbits")
    if array.dtype != np.uint8:
        refuse("np.unpackbits", f"a has dtype {array.dtype}, expected uint8")
    if axis is None:
        array, axis = movement.ravel(array), 0
    rows = movement.moveaxis(movement.relabel(array, None), axis, -1)
    shifts = np.arange(8, dtype=np.uint8)[:: -1 if bitorder == "big" else 1]
    bits = apply("right_shift", movement.expand_dims(rows, -1), shifts) & np.uint8(1)
    bits = movement.reshape(bits, (*rows.shape[:-1], rows.shape[-1] * 8))
    if count is not None:
        n = bits.shape[-1]
        if count > n:
            bits = apply("pad", bits, widths=(*((0, 0),) * (bits.ndim - 1), (0, count - n)), value=0)
        else:
            bits = movement.sliced(bits, {bits.ndim - 1: slice(None, count)})
    return movement.moveaxis(bits, -1, axis)


WIDER: dict[Callable[..., Any], Callable[..., Any]] = {
    np.reshape: reshape,
    np.ravel: ravel,
    np.concatenate: concatenate,
    np.stack: stack,
    np.vstack: vstack,
    np.hstack: hstack,
}
FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.einsum_path: einsum_path,
    np.packbits: packbits,
    np.unpackbits: unpackbits,
    np.around: elementwise.round,
}
