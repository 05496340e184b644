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
from math import prod as product
from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.aval import wanted_dtype
from tracejit.errors import ArgumentValueError
from tracejit.functions import elementwise, indexing, joining, movement, reductions
from tracejit.functions.axes import axis_of_a_number, normalize_axes, normalize_axis
from tracejit.functions.formats import dtypes_of, in_dtype
from tracejit.functions.numpy_api import masked
from tracejit.functions.numpy_api.ufuncs import weak
from tracejit.functions.refusals import refuse
from tracejit.record import recorder, views
from tracejit.util.arguments import flag, integer
from tracejit.util.text import brief

Apply = Callable[..., Any]
_CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")
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
_ANY_ORDER = (np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.logical_xor, np.fmax, np.fmin, np.gcd, np.hypot,
             np.logaddexp, np.logaddexp2)  # fmt: skip
"""Ufuncs without an op for a whole axis whose operands may come in any order, so that several axes can be reduced."""


def _name(ufunc: np.ufunc, method: str) -> str:
    return f"np.{ufunc.__name__}.{method}"


def _loop(
    ufunc: np.ufunc, method: str, dtype: np.dtype, wanted: np.dtype | None
) -> tuple[np.dtype, np.dtype]:
    """Return the dtypes of the results and of the elements in the loop in which NumPy combines elements of a dtype.

    Args:
        ufunc: what combines.
        method: its method.
        dtype: that of the elements.
        wanted: the one that dtype= asks for, or None.
    """
    name = _name(ufunc, method)
    signature = {} if wanted is None else {"signature": (wanted, None, None)}
    try:
        into, of, _ = ufunc.resolve_dtypes((None, dtype, None), reduction=True, casting="unsafe", **signature)
    except TypeError:
        asked = "" if wanted is None else f" with results of {wanted}"
        refuse(name, f"it is not defined for {dtype}{asked}; cast the operands first")
    if into != of and method != "reduce":
        refuse(
            name, f"it is not defined for {dtype}, because its results are {into}; cast the operands first"
        )
    return into, of


def dtype_for_out(ufunc: np.ufunc, array: Any, out: Any) -> np.dtype | None:
    """Return the dtype in which NumPy combines elements whose results go into `out`; None where that is the usual one.

    Sums of float32 that go into an array of float64 are added in float64.
    """
    own, wanted = as_array(array, _name(ufunc, "reduce")).dtype, getattr(out, "dtype", None)
    try:
        into, usual = (
            ufunc.resolve_dtypes((first, own, None), reduction=True, casting="unsafe")[0]
            for first in (wanted, None)
        )
    except (TypeError, AttributeError):
        return None
    return None if into == usual else into


def _cast(x: dlarray, dtype: np.dtype) -> dlarray:
    """Return elements in the dtype of a loop; complex numbers have a truth, and no real number."""
    return masked.truths(x, "where") if dtype.kind == "b" else in_dtype(x, dtype)


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
    name = _name(ufunc, "reduce")
    x = as_array(array, name)
    wanted = None if dtype is None else wanted_dtype(name, dtype)
    if ufunc in _WHOLE:
        return _reduced_whole(ufunc, apply_ufunc, x, axis, wanted, keepdims, initial, where)
    _check_steps(ufunc, "reduce", 0)
    into, of = _loop(ufunc, "reduce", x.dtype, wanted)
    is_number = not x._data.ndim
    x = _cast(axis_of_a_number(x, axis), of)
    x = x if where is True else _chosen(ufunc, name, x, where, initial)
    axes = normalize_axes(name, x, axis)
    if len(axes) > 1 and ufunc not in _ANY_ORDER:
        refuse(
            name,
            "its result depends on the order of the operands, so that one axis only may be reduced",
            ArgumentValueError,
        )
    kept = flag(name, "keepdims", keepdims) and not is_number
    count = product(x._data.shape[number] for number in axes)
    start = None
    if initial is not np._NoValue:
        start = None if initial is None else masked.start_of(name, initial, into)
    elif (
        count <= 1 and ufunc.identity is not None
    ):  # from which NumPy starts; among more elements it changes nothing
        start = as_array(np.asarray(ufunc.identity).astype(into))
    if not count:
        if start is None:
            refuse(
                name,
                "the axis is empty, and there is no number to start from; pass initial=",
                ArgumentValueError,
            )
        nothing = reductions.any(x, axis=axes, keepdims=kept)  # its size and format
        return movement.relabel(movement.broadcast_to(start, nothing.shape), nothing._format)
    return _combined(ufunc, apply_ufunc, x, axes, into, kept, start)


def _chosen(ufunc: np.ufunc, name: str, x: dlarray, where: Any, initial: Any) -> dlarray:
    """Return operands with a number in the places of those that are left out which changes no result."""
    neutral: Any = None if ufunc.identity is None else np.asarray(ufunc.identity).astype(x.dtype)
    if ufunc in (np.fmax, np.fmin) and initial is not np._NoValue and initial is not None:
        neutral = masked.start_of(name, initial, x.dtype)
    if neutral is None or ufunc not in _ANY_ORDER:
        refuse(
            name,
            "where= needs an operand that changes nothing, which there is not without initial=; use "
            "where(condition, x, y) to select",
            ArgumentValueError,
        )
    return elementwise.where(where, x, neutral)


def _combined(
    ufunc: np.ufunc,
    apply_ufunc: Apply,
    x: dlarray,
    axes: tuple[int, ...],
    into: np.dtype,
    keepdims: bool,
    start: dlarray | None,
) -> dlarray:
    """Return a ufunc applied along axes that have elements, from a number on that is taken first, and once."""
    is_first = len(axes) == 1 and start is not None
    for number in sorted(axes, reverse=True):
        label = x._format[number] if x._format else None
        _check_steps(ufunc, "reduce", x._data.shape[number])
        rows = _rows(x, number)
        steps = [start, *rows] if is_first else [in_dtype(views.copy(rows[0]), into), *rows[1:]]
        x = fold(lambda a, b: apply_ufunc(ufunc, a, b), steps)  # type: ignore[assignment]
        x = movement.expand_dims(x, number, label) if keepdims else x
    if start is None or is_first:
        return x if axes else in_dtype(views.copy(x), into)
    return apply_ufunc(ufunc, start, x)  # type: ignore[no-any-return]


def _reduced_whole(
    ufunc: np.ufunc,
    apply_ufunc: Apply,
    x: dlarray,
    axis: Any,
    wanted: np.dtype | None,
    keepdims: Any,
    initial: Any,
    where: Any,
) -> dlarray:
    """Return a reduction by the op that the ufunc has for a whole axis."""
    name = _name(ufunc, "reduce")
    if initial is None:
        if where is not True:
            refuse(name, "where= needs a number to start from; pass initial=, or leave it out")
        shape = x._data.shape
        if not product(
            shape[number] for number in normalize_axes(name, axis_of_a_number(x, axis), axis) if shape
        ):
            refuse(
                name,
                "the axis is empty, and there is no number to start from; pass initial=",
                ArgumentValueError,
            )
    is_given = initial is not np._NoValue and initial is not None
    options = {"axis": axis, "keepdims": keepdims, "where": where}
    if ufunc in (np.logical_and, np.logical_or):
        if wanted is not None:
            _loop(ufunc, "reduce", x.dtype, wanted)
        found: dlarray = _WHOLE[ufunc](x, **options)
        if is_given:
            found = apply_ufunc(ufunc, masked.start_of(name, initial, np.dtype(bool)), found)
        return found
    if wanted is not None and ufunc in (np.maximum, np.minimum):
        x = in_dtype(x, _loop(ufunc, "reduce", x.dtype, wanted)[1])
    elif wanted is not None:
        options["dtype"] = wanted
    return _WHOLE[ufunc](x, **options, **({"initial": initial} if is_given else {}))  # type: ignore[no-any-return]


def accumulate(ufunc: np.ufunc, apply_ufunc: Apply, array: Any, axis: Any = 0, dtype: Any = None) -> dlarray:
    """Return a ufunc applied to all elements up to each place of an axis."""
    name = _name(ufunc, "accumulate")
    x = as_array(array, name)
    axis = normalize_axis(name, x, axis)
    if ufunc == np.add:
        return reductions.cumsum(x, axis, dtype=dtype)
    wanted = None if dtype is None else wanted_dtype(name, dtype)
    if ufunc == np.multiply:
        x = x if wanted is None else in_dtype(x, wanted)
        found: dlarray = apply("cumprod", x, axis=axis)
        return found if wanted is None else in_dtype(found, wanted)
    _check_steps(ufunc, "accumulate", 0)
    x = _cast(x, _loop(ufunc, "accumulate", x.dtype, wanted)[1])
    if ufunc in (np.maximum, np.minimum) and x.dtype.kind != "c":
        found, _ = apply("cummax" if ufunc == np.maximum else "cummin", x, axis=axis)
        return found
    _check_steps(ufunc, "accumulate", x._data.shape[axis])
    if not x._data.shape[axis]:
        return views.copy(x)  # type: ignore[no-any-return]
    rows = _rows(x, axis)
    results = [rows[0]]
    for row in rows[1:]:
        results.append(apply_ufunc(ufunc, results[-1], row))
    return movement.relabel(joining.stack(results, axis=axis), x._format)


def outer(
    ufunc: np.ufunc,
    apply_ufunc: Apply,
    first: Any,
    second: Any,
    dtype: Any = None,
    casting: str = "same_kind",
) -> Any:
    """Return a ufunc of each pair of an element of one operand and one of the other."""
    name = _name(ufunc, "outer")
    x, y = as_array(first, name), as_array(second, name)
    formats = (x._format or "U" * x._data.ndim) + (y._format or "U" * y._data.ndim)
    twice = any(formats.count(label) > 1 for label in "CBT")
    format = None if twice or not (x._format or y._format) else formats
    left = movement.reshape(movement.relabel(x, None), (*x.shape, *(1,) * y._data.ndim))
    results = with_dtype(ufunc, apply_ufunc, (left, movement.relabel(y, None)), dtype, casting)
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
    wanted = None if dtype is None else wanted_dtype(name, dtype)
    _check_steps(ufunc, "reduceat", 0)
    x = _cast(x, _loop(ufunc, "reduceat", x.dtype, wanted)[1])
    parts = []
    for start, stop in pairwise([*places, count]):
        end = stop if stop > start else start + 1
        part = x[(slice(None),) * axis + (slice(start, end),)]
        parts.append(reduce(ufunc, apply_ufunc, part, axis, dtype, True, None))
    if not parts:
        return views.copy(x[(slice(None),) * axis + (slice(0, 0),)])  # type: ignore[no-any-return]
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


def _fits(kind: type, dtype: np.dtype) -> bool:
    """Return whether a number of Python takes a dtype whatever the rule for casts is."""
    return dtype.kind in {int: "iufc", float: "fc", complex: "c"}[kind]


def with_dtype(
    ufunc: np.ufunc, apply_ufunc: Apply, inputs: Sequence[Any], dtype: Any, casting: str = "same_kind"
) -> Any:
    """Return a ufunc computed in the loop whose result has a dtype, or in NumPy's choice if that is None.

    Operands are cast to the dtypes of that loop first, as far as `casting` allows.
    """
    name = f"np.{ufunc.__name__}"
    if casting not in _CASTINGS:
        refuse(name, f"casting must be one of {', '.join(map(repr, _CASTINGS))}, not {brief(casting)}")
    if dtype is None and casting == "same_kind":
        return apply_ufunc(ufunc, *inputs)
    wanted = None if dtype is None else wanted_dtype(name, dtype)
    signature: dict[str, Any] = (
        {} if wanted is None else {"signature": (*(None,) * ufunc.nin, *(wanted,) * ufunc.nout)}
    )
    dtypes = dtypes_of(inputs, name)
    gives = "takes" if wanted is None else f"gives {wanted} for"
    # The casts are checked below: resolve_dtypes of NumPy 2.4 can crash while it words the error for a Python number.
    try:
        loop = ufunc.resolve_dtypes((*dtypes, *(None,) * ufunc.nout), casting="unsafe", **signature)
    except TypeError as error:
        refuse(name, f"no loop {gives} these operands ({str(error).splitlines()[0]}); use x.astype(dtype)")
    for own, to in zip(dtypes, loop, strict=False):
        if not (_fits(own, to) if isinstance(own, type) else np.can_cast(own, to, casting)):  # type: ignore[arg-type]
            names = f"{getattr(own, '__name__', own)} to {to}"
            refuse(
                name,
                f"no loop {gives} these operands with casting={casting!r} ({names}); use x.astype(dtype)",
            )
    operands = [
        in_dtype(weak(x, own, name) if type(x) is int else as_array(x, name), own)
        for x, own in zip(inputs, loop, strict=False)
    ]
    results = apply_ufunc(ufunc, *operands)
    if wanted is None:
        return results
    if isinstance(results, tuple):
        return tuple(in_dtype(part, wanted) for part in results)
    return in_dtype(results, wanted)


_CORES = {"matmul": ((2, 2), 2), "vecdot": ((1, 1), 0), "matvec": ((2, 1), 1), "vecmat": ((1, 2), 1)}
"""The numbers of axes of the operands, and of the result, that a ufunc of vectors and matrices computes with."""


def along_axes(
    ufunc: np.ufunc, call: Callable[..., Any], inputs: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """Return a ufunc of vectors and matrices that lie along other axes than the last ones."""
    name = f"np.{ufunc.__name__}"
    if ufunc.__name__ not in _CORES:
        refuse(
            name, "axes=, axis= and keepdims= are not supported on dlarrays; move its axes before and after"
        )
    counts, of_result = _CORES[ufunc.__name__]
    rest = {key: value for key, value in options.items() if key not in ("axes", "axis", "keepdims")}
    axes, axis = options.get("axes"), options.get("axis")
    keepdims = flag(name, "keepdims", options.get("keepdims", False))
    if (axis is not None or keepdims) and ufunc.__name__ != "vecdot":
        refuse(name, "axis= and keepdims= are for vectors that share one axis; pass axes=")
    if axis is not None and axes is not None:
        refuse(name, "axis and axes mean the same; pass one of them")
    of_result += keepdims
    if axes is None:
        place = -1 if axis is None else integer(name, "axis", axis)
        axes = [place] * len(counts) + ([place] if keepdims else [])
    if not isinstance(axes, list):
        refuse(
            name, f"axes must be a list of an entry for each operand, and for the result, not {brief(axes)}"
        )
    if len(axes) == len(counts) and not of_result:
        axes = [*axes, ()]
    places = [(entry,) if not isinstance(entry, (tuple, list)) else tuple(entry) for entry in axes]
    if [len(entry) for entry in places] != [*counts, of_result]:
        refuse(
            name,
            f"axes is {brief(axes)}, expected {', '.join(map(str, counts))} axes of the operands and "
            f"{of_result} of the result",
            ArgumentValueError,
        )
    arrays = [as_array(x, name) for x in inputs]
    moved = [
        movement.moveaxis(x, entry, tuple(range(-count, 0)))
        for x, entry, count in zip(arrays, places, counts, strict=False)
    ]
    result = as_array(call(ufunc, "__call__", tuple(moved), rest))
    if keepdims:
        result = movement.expand_dims(result, -1)
    return movement.moveaxis(result, tuple(range(-of_result, 0)), places[-1]) if of_result else result
