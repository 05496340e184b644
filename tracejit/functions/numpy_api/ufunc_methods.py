# SPDX-License-Identifier: BSD-3-Clause
"""Methods of ufuncs on dlarrays: reduce, accumulate, outer, reduceat, at; and the options dtype= and where=.

If a ufunc has an op for a whole axis, that op is used (np.add.accumulate is a running sum). Any other ufunc is applied
to one element of the axis after the other, as in NumPy, which records as many operations as the axis has elements.

Labels: a reduced axis takes its label with it; accumulate keeps the format; the axes of both operands of outer keep
their labels unless a label would occur twice.
"""

from collections.abc import Callable, Sequence
from functools import reduce as fold
from itertools import pairwise
from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.aval import supported, wanted_dtype
from tracejit.functions import indexing, joining, movement, reductions
from tracejit.functions.axes import axis_of_a_number, normalize_axes, normalize_axis
from tracejit.functions.formats import in_dtype
from tracejit.functions.numpy_api import masked
from tracejit.functions.refusals import refuse
from tracejit.record import recorder, views
from tracejit.util.arguments import flag

Apply = Callable[..., Any]
MOST_STEPS = 10_000
"""The most elements of an axis that a ufunc without an op for a whole axis is applied to."""

_WHOLE: dict[np.ufunc, Callable[..., Any]] = {
    np.add: masked.sum,
    np.multiply: masked.prod,
    np.maximum: masked.amax,
    np.minimum: masked.amin,
    np.logical_and: masked.all,
    np.logical_or: masked.any,
}
_COMMUTE = (np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.logical_xor)


def _name(ufunc: np.ufunc, method: str) -> str:
    return f"np.{ufunc.__name__}.{method}"


def _loop_dtype(ufunc: np.ufunc, dtype: np.dtype) -> np.dtype:
    """Return the dtype of the loop that combines elements of a dtype with each other."""
    try:
        loop = ufunc.resolve_dtypes((dtype, dtype, None))
    except TypeError:
        refuse(f"np.{ufunc.__name__}", f"it is not defined for {dtype}; cast the operands first")
    found = loop[-1] if loop[-1] != np.bool_ else loop[0]
    return found


def _rows(array: dlarray, axis: int) -> list[dlarray]:
    """Return the parts of an array along an axis, without that axis."""
    return [array[(slice(None),) * axis + (i,)] for i in range(array._data.shape[axis])]


def _check_steps(ufunc: np.ufunc, method: str, count: int) -> None:
    if ufunc.nin != 2 or ufunc.nout != 1:
        refuse(_name(ufunc, method), "it is defined for ufuncs of two operands and one result only")
    if count > MOST_STEPS:
        refuse(
            _name(ufunc, method),
            f"the axis has {count} elements, and one operation would be recorded for each; the limit is {MOST_STEPS}. "
            "Compose it of functions such as np.cumsum",
        )


def reduce(
    ufunc: np.ufunc,
    apply_ufunc: Apply,
    array: Any,
    axis: Any = 0,
    dtype: Any = None,
    keepdims: Any = False,
    initial: Any = np._NoValue,
    where: Any = True,
) -> dlarray:
    """Return a ufunc applied along axes."""
    x = as_array(array, _name(ufunc, "reduce"))
    if ufunc in _WHOLE:
        options = {} if dtype is None else {"dtype": dtype}
        if ufunc in (np.logical_and, np.logical_or):
            options, initial = {}, np._NoValue
        if initial is not np._NoValue and initial is not None:
            options["initial"] = initial
        return _WHOLE[ufunc](x, axis=axis, keepdims=keepdims, where=where, **options)  # type: ignore[no-any-return]
    name = _name(ufunc, "reduce")
    if where is not True:
        refuse(name, "where= is not supported on dlarrays; use where(condition, x, y) to select")
    is_number = not x._data.ndim
    x = axis_of_a_number(x, axis)
    axes = normalize_axes(name, x, axis)
    if dtype is not None:
        x = in_dtype(x, wanted_dtype(name, dtype))
    if len(axes) > 1 and ufunc not in _COMMUTE:
        refuse(name, "its result depends on the order of the operands, so that one axis only may be reduced")
    for number in sorted(axes, reverse=True):
        kept = flag(name, "keepdims", keepdims) and not is_number
        x = _reduced_axis(ufunc, apply_ufunc, x, number, kept, initial)
    return x


def _reduced_axis(
    ufunc: np.ufunc, apply_ufunc: Apply, x: dlarray, axis: int, keepdims: bool, initial: Any
) -> dlarray:
    count = x._data.shape[axis]
    _check_steps(ufunc, "reduce", count)
    rows: list[Any] = _rows(x, axis)
    if initial is not np._NoValue and initial is not None:
        rows.insert(0, initial)
    elif not rows:
        if ufunc.identity is None:
            refuse(_name(ufunc, "reduce"), "the axis is empty, and the ufunc has no identity; pass initial=")
        shape = (*x._data.shape[:axis], *x._data.shape[axis + 1 :])
        dtype = np.dtype(bool) if ufunc == np.logical_xor else _loop_dtype(ufunc, x.dtype)
        result: dlarray = as_array(np.full(shape, _identity(ufunc, dtype)))
        return movement.expand_dims(result, axis) if keepdims else result
    if len(rows) == 1 and ufunc.identity is not None:  # from which NumPy starts
        rows.insert(0, _identity(ufunc, _loop_dtype(ufunc, x.dtype)))
    elif len(rows) == 1:
        rows[0] = views.copy(rows[0])
    result = fold(lambda a, b: apply_ufunc(ufunc, a, b), rows)
    return movement.expand_dims(result, axis, x._format[axis] if x._format else None) if keepdims else result


def _identity(ufunc: np.ufunc, dtype: np.dtype) -> Any:
    """Return the number from which NumPy starts, of unsigned integers for bitwise_and that of the same bits as -1."""
    return np.asarray(ufunc.identity).astype(dtype)[()]


def accumulate(ufunc: np.ufunc, apply_ufunc: Apply, array: Any, axis: Any = 0, dtype: Any = None) -> dlarray:
    """Return a ufunc applied to all elements up to each place of an axis."""
    name = _name(ufunc, "accumulate")
    x = as_array(array, name)
    axis = normalize_axis(name, x, axis)
    if ufunc == np.add:
        return reductions.cumsum(x, axis, dtype=dtype)
    if dtype is not None:
        x = in_dtype(x, wanted_dtype(name, dtype))
    if ufunc == np.multiply:
        return in_dtype(
            apply("cumprod", x, axis=axis), x.dtype if dtype else apply("cumprod", x, axis=axis).dtype
        )
    if ufunc in (np.maximum, np.minimum) and x.dtype.kind != "c":
        found, _ = apply("cummax" if ufunc == np.maximum else "cummin", x, axis=axis)
        return found
    count = x._data.shape[axis]
    _check_steps(ufunc, "accumulate", count)
    if not count:
        return in_dtype(views.copy(x), _loop_dtype(ufunc, x.dtype))
    rows = _rows(in_dtype(x, _loop_dtype(ufunc, x.dtype)), axis)
    results = [rows[0]]
    for row in rows[1:]:
        results.append(apply_ufunc(ufunc, results[-1], row))
    return movement.relabel(joining.stack(results, axis=axis), x._format)


def outer(ufunc: np.ufunc, apply_ufunc: Apply, first: Any, second: Any) -> Any:
    """Return a ufunc of each pair of an element of one operand and one of the other."""
    name = _name(ufunc, "outer")
    x, y = as_array(first, name), as_array(second, name)
    formats = (x._format or "U" * x._data.ndim) + (y._format or "U" * y._data.ndim)
    twice = any(formats.count(label) > 1 for label in "CBT")
    format = None if twice or not (x._format or y._format) else formats
    left = movement.reshape(movement.relabel(x, None), (*x.shape, *(1,) * y._data.ndim))
    results = apply_ufunc(ufunc, left, movement.relabel(y, None))
    if isinstance(results, tuple):
        return tuple(movement.relabel(part, format) for part in results)
    return movement.relabel(results, format)


def reduceat(
    ufunc: np.ufunc, apply_ufunc: Apply, array: Any, indices: Any, axis: Any = 0, dtype: Any = None
) -> dlarray:
    """Return a ufunc applied to slices of an axis, which begin at `indices` and end at the next of them."""
    name = _name(ufunc, "reduceat")
    x = as_array(array, name)
    axis = normalize_axis(name, x, axis)
    places = indices
    if recorder.is_array(indices):
        places = recorder.need_value(indices, name)
    places = np.asarray(places).tolist()
    count = x._data.shape[axis]
    if not all(type(place) is int and 0 <= place < count for place in places):
        refuse(name, f"indices must be a vector of integers from 0 to {count - 1}")
    parts = []
    for start, stop in pairwise([*places, count]):
        end = stop if stop > start else start + 1
        part = x[(slice(None),) * axis + (slice(start, end),)]
        parts.append(reduce(ufunc, apply_ufunc, part, axis, dtype, True))
    return joining.concatenate(parts, axis)


def at(ufunc: np.ufunc, apply_ufunc: Apply, array: Any, key: Any, *values: Any) -> dlarray:
    """Return an array in which a ufunc was applied at places, repeated ones as often as they occur, one by one."""
    name = _name(ufunc, "at")
    x = as_array(array, name)
    if ufunc.nout != 1 or ufunc.nin != 1 + len(values):
        refuse(name, f"the ufunc takes {ufunc.nin} operands; pass {ufunc.nin - 1} besides a and indices")
    grid = np.arange(x.size).reshape(x.shape)
    if any(recorder.is_array(part) for part in (key if isinstance(key, tuple) else (key,))):
        key = _constant_key(name, key)
    places = np.asarray(grid[key])
    count = places.size
    _check_steps_of_at(name, count)
    flat = movement.relabel(movement.ravel(x), None)
    given = [movement.ravel(movement.broadcast_to(as_array(v, name), places.shape)) for v in values]
    if len(set(places.ravel().tolist())) == count:
        taken = apply_ufunc(ufunc, flat[places.ravel()], *given)
        flat = indexing.setitem(flat, places.ravel(), in_dtype(taken, x.dtype))
    else:
        for number, place in enumerate(places.ravel().tolist()):
            part = apply_ufunc(ufunc, flat[place], *(v[number] for v in given))
            flat = indexing.setitem(flat, place, in_dtype(part, x.dtype))
    return movement.relabel(movement.reshape(flat, x.shape), x._format)


def _check_steps_of_at(name: str, count: int) -> None:
    if count > MOST_STEPS:
        refuse(name, f"{count} places are more than {MOST_STEPS}, the most that are recorded one by one")


def _constant_key(name: str, key: Any) -> Any:
    parts = key if isinstance(key, tuple) else (key,)
    found = tuple(recorder.need_value(part, name) if recorder.is_array(part) else part for part in parts)
    return found if isinstance(key, tuple) else found[0]


def with_dtype(ufunc: np.ufunc, apply_ufunc: Apply, inputs: Sequence[Any], dtype: Any) -> Any:
    """Return a ufunc computed in the loop whose result has a dtype."""
    name = f"np.{ufunc.__name__}"
    wanted = wanted_dtype(name, dtype)
    operands = [as_array(x, name) for x in inputs]
    try:
        loop = ufunc.resolve_dtypes(
            (*(x.dtype for x in operands), *(None,) * ufunc.nout),
            signature=(*(None,) * ufunc.nin, *(wanted,) * ufunc.nout),
            casting="same_kind",
        )
    except TypeError as error:
        refuse(
            name,
            f"no loop gives {wanted} for these operands ({str(error).splitlines()[0]}); use x.astype(dtype)",
        )
    results = apply_ufunc(ufunc, *(in_dtype(x, supported(d)) for x, d in zip(operands, loop, strict=False)))
    if isinstance(results, tuple):
        return tuple(in_dtype(part, wanted) for part in results)
    return in_dtype(results, wanted)
