# SPDX-License-Identifier: BSD-3-Clause
"""Indexing with NumPy's keys, assignment in place, and assignment as a function that returns a new array.

The steps on the way to the elements are those of index_keys.py, Note [what a key becomes].
"""

import math
from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.aval import INT64, SUPPORTED_DTYPES, describe_shape
from tracejit.errors import (
    ArgumentError,
    ArgumentValueError,
    DimsError,
    DTypeError,
    RangeError,
)
from tracejit.functions import windows
from tracejit.functions.index_keys import (
    ParsedKey,
    only_mask,
    parse_key,
    parsed_basic_key,
    parsed_key,
    varies,
)
from tracejit.functions.movement import expanded, permuted, relabel, reshaped, slice_of
from tracejit.ops.movement import index_of
from tracejit.record import made_arrays, ndarrays, recorder, views
from tracejit.record.conversion import too_large
from tracejit.record.references import UNKNOWN
from tracejit.util.devices import is_same_memory
from tracejit.util.text import brief


def getitem(x: Any, key: Any) -> dlarray:
    """Return ``x[key]``.

    Args:
        x: dlarray of any format, ndarray or list.
        key: what NumPy takes: integers, slices, Ellipsis, None, integer arrays and boolean masks (arrays,
            dlarrays or lists), or a tuple of them. Integer dlarrays may be traced.

    Returns:
        dlarray of the dtype of `x`. An integer drops its axis with its label; slices, a mask of one axis
        and a single 1-D index array keep the label; new axes are labelled U.

    Raises:
        BoundsError: (an IndexError) for a place that `x` does not have, or too many indices.
        DimsError: if index arrays do not broadcast together.
        ArgumentError: for a key that NumPy does not have.

    Adjoint: ct set into zeros; of repeated places, added up.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> x = tj.dlarray(np.arange(12.0).reshape(3, 4), "CB")
        >>> x[1].shape, x[:, [0, 0]].shape, x[x > 9].shape
        ((4,), (3, 2), (2,))
    """
    array = as_array(x, "getitem")
    parsed = parsed_basic_key("getitem", array, key)
    if parsed is None:
        if varies(key):
            return windows.getitem(array, key, getitem, setitem)
        if windows.names_row(array, key):
            known = windows.known(key)
            return (
                getitem(array, known) if known is not None else windows.getitem(array, key, getitem, setitem)
            )
        parsed = parse_key("getitem", array._data.shape, array._format, key)
    region = slice_of(array, parsed.starts, parsed.stops, parsed.steps)
    if parsed.order is not None:
        region = apply("take", _merged(region, parsed), parsed.index, axis=parsed.front)
    result = reshaped(region, parsed.result, parsed.result_format)
    if result._data.ndim:
        return result
    if parsed.selects_element:
        return views.element(result, array)  # type: ignore[no-any-return]
    return views.without_axes(result) if views.is_scalar(result) else result


def setitem_of_ndarray(array: np.ndarray, key: Any, value: Any, references: int) -> bool:
    """Write into an ndarray by the recording, if it can; return whether it did.

    Args:
        array: the ndarray.
        key, value: where and what to write.
        references: to the ndarray, besides those of the assignment.
    """
    if array.dtype not in SUPPORTED_DTYPES:
        return array.dtype.names is not None and _set_fields(array, key, value)
    part = value if type(value) is np.ndarray else None
    if part is not None and np.may_share_memory(array, part) and _is_part(array, key, part):
        return True  # as a[i] += x puts back the view that it has written
    is_to_replace = ndarrays.is_to_replace(array, value, *(key if type(key) is tuple else (key,)))
    made = made_arrays.replaced(array, references) if is_to_replace else None
    if made is not None:
        made[key] = value
        return True
    is_plain = recorder.is_array(value) and value._value is not None and not _has_recorded(key)
    if is_plain and ndarrays.write_at_once(array, key, value):
        return True
    through = ndarrays.target(array, value)
    if through is None:
        return False
    through[key] = value
    return True


def _set_fields(array: np.ndarray, key: Any, value: Any) -> bool:
    """Write into a structured array by the recording, if it can: a field, or a tuple with one value for each field.

    As in NumPy, the fields of a row are written in turn, so that a view among the values shows what is there by then.
    """
    names = array.dtype.names or ()
    if type(key) is str:
        return key in names and setitem_of_ndarray(array[key], ..., value, UNKNOWN)
    is_row = type(key) is int or recorder.is_number(key)
    if not is_row or array.ndim != 1 or type(value) is not tuple or len(value) != len(names):
        return False
    for name, part in zip(names, value, strict=True):
        if not setitem_of_ndarray(array[name], key, part, UNKNOWN):
            array[name][key] = part
    return True


def _has_recorded(key: Any) -> bool:
    """Return whether a key has arrays or numbers of a recording."""
    return any(
        recorder.is_array(part) or recorder.is_number(part)
        for entry in (key if type(key) is tuple else (key,))
        for part in ((entry.start, entry.stop, entry.step) if type(entry) is slice else (entry,))
    )


def _is_part(array: np.ndarray, key: Any, part: np.ndarray) -> bool:
    """Return whether an ndarray is what a key selects of another one, without a copy."""
    return is_same_memory(np.asarray(array).view()[key], part)


def written_otherwise(way: str, array: np.ndarray, arguments: Any, references: int) -> bool:
    """Write traced values into an ndarray by the recording, by ``array.flat[key] = value`` or by a method.

    Args:
        way: "flat", or the name of the method.
        array: the ndarray.
        arguments: the key and the value, or what the method is called with.
        references: to the ndarray, besides those of the operation.

    Returns:
        False if the recording cannot.
    """
    if array.dtype not in SUPPORTED_DTYPES:
        return False
    is_to_replace = ndarrays.is_to_replace(array, *arguments)
    through = made_arrays.replaced(array, references) if is_to_replace else None
    if through is None:
        through = ndarrays.target(array, *arguments)
    if through is None:
        return False
    if way == "flat":
        through.flat[arguments[0]] = arguments[1]
    else:
        getattr(through, way)(*arguments)
    return True


def read_otherwise(method: str, array: np.ndarray, args: Any, options: Any) -> Any:
    """Return the result of a method of an ndarray with traced arguments."""
    if array.dtype not in SUPPORTED_DTYPES:
        return NotImplemented
    return getattr(as_array(array, method), method)(*args, **options)


def setitem(x: Any, key: Any, value: Any, *, add: bool = False) -> dlarray:
    """Return a copy of `x` in which ``x[key]`` is `value`; `x` itself does not change.

    Args:
        x: dlarray of any format, ndarray or list.
        key: as in getitem. Where the key is one mask and the value fits every place, nothing depends on the
            number of places, and the mask may be traced.
        value: dlarray, ndarray, number or list that broadcasts to ``x[key]``; it is cast to the dtype of `x`.
            Its labels, if it and `x` have any, must be those of ``x[key]``.
        add: adds the value to what is there, to a place that occurs twice twice, instead of replacing it.

    Returns:
        dlarray of the sizes, format and dtype of `x`.

    Raises:
        BoundsError, ArgumentError: as getitem.
        DimsError: if `value` does not broadcast to ``x[key]`` or has other labels.
        RangeError: if an integer `value` does not fit the dtype of `x`.

    Adjoint: for x, ct with the places zeroed; for the value, ct at the places, 0 for what was overwritten.

    Examples:
        >>> import tracejit as tj
        >>> x = tj.dlarray([1.0, 2.0, 3.0])
        >>> x[1:] = 0
        >>> tj.extractdata(x)
        array([1., 0., 0.])
    """
    array = as_array(x, "setitem")
    if varies(key):
        return windows.setitem(array, key, value, setitem)
    given = as_value(array, value)
    mask = only_mask(key)
    if mask is not None:
        rest = array._data.shape[mask._data.ndim :]
        if given._data.size == 1 and given._data.ndim > len(rest):
            given = reshaped(given, (), None)
        if given._data.ndim <= len(rest) and array._data.shape[: mask._data.ndim] == mask._data.shape:
            mask = reshaped(mask, (*mask._data.shape, *(1,) * len(rest)), None)
            given = _fitted(array, given, rest, None)
            if add:
                given = apply("add", relabel(array, None), given)
            chosen = apply("where", mask, given, relabel(array, None))
            return relabel(chosen, array._format)
    parsed = parsed_key("setitem", array, key)
    given = _fitted(array, given, parsed.result, parsed.result_format)
    steps = {"starts": parsed.starts, "stops": parsed.stops, "steps": parsed.steps}
    whole = tuple(map(len, map(range, parsed.starts, parsed.stops, parsed.steps)))
    if parsed.order is not None:
        if given._data.ndim:
            given = reshaped(given, parsed.taken_shape, None)
        region = _merged(slice_of(array, **steps), parsed)
        if add:
            given = expanded(given, parsed.taken_shape)
        region = apply("scatter_add" if add else "put", region, parsed.index, given, axis=parsed.front)
        region = reshaped(region, tuple(parsed.sliced_shape[axis] for axis in parsed.order), None)
        given = permuted(region, tuple(parsed.order.index(axis) for axis in range(len(parsed.order))))
        if parsed.sliced_shape == array._data.shape and all(step == 1 for step in parsed.steps):
            return relabel(given, array._format)
    if given._data.ndim:
        given = reshaped(given, whole, None)
    if add and parsed.order is None:
        given = apply("add", relabel(slice_of(array, **steps), None), given)
    return apply("setslice", array, given, **steps)


def assign(array: dlarray, key: Any, value: Any) -> None:
    """Write a value into the elements of an array that a key names, as ``array[key] = value`` does.

    Args:
        array: the array to write.
        key, value: as in setitem.

    Raises:
        BoundsError, ArgumentError, DimsError: as setitem.
        ArgumentError: also for a number, which NumPy calls a scalar.
        WriteError: if the array is read-only.
    """
    if views.is_scalar(array):
        raise ArgumentError(
            f"setitem: x is a number that an operation returned ({recorder.describe(array)}), which cannot be written, "
            "like NumPy's scalars; assign a new one (x = 0.0)."
        )
    if not views.is_in_memory(array) or not views.is_constant(value):
        if not _is_own_part(array, key, value):
            views.store(array, setitem(array, key, value))
        return
    views.check_writeable(array)
    is_plain = only_mask(key) is None and not varies(key)
    parsed = parsed_key("setitem", array, key) if is_plain else None
    if parsed is None or parsed.order is not None:
        if recorder.recorder() is not None:  # a constant stays one
            key = tuple(map(_as_constant, key)) if isinstance(key, tuple) else _as_constant(key)
            value = as_value(array, value) if type(value) in (int, float, bool) else value
        views.store(array, setitem(array, key, value))
        return
    given = _fitted(array, as_value(array, value), parsed.result, parsed.result_format)
    if given._value is not None:
        views.store(array, setitem(array, key, value))
        return
    whole = tuple(map(len, map(range, parsed.starts, parsed.stops, parsed.steps)))
    data = given._data.reshape(whole) if given._data.ndim else given._data
    array._data[index_of(parsed.starts, parsed.stops, parsed.steps)] = data


def _as_constant(x: Any) -> Any:
    """Return an untraced number, or integers in a list or a range, as an array that is private to a recording."""
    if isinstance(x, list) and x and all(type(part) in (int, bool) for part in x):
        x = as_array(np.asarray(x))
    elif isinstance(x, range) and len(x):
        x = as_array(np.asarray(x, INT64))
    elif type(x) is not dlarray or x._value is not None or x._data.ndim or x._view is not None:
        return x
    current = recorder.recorder()
    if current is not None:
        current.memories.private(x, is_ndarray=True)
    return x


def _is_own_part(array: dlarray, key: Any, value: Any) -> bool:
    """Return whether a value is the very part of the array that a key names: Python assigns it after x[key] += y."""
    if type(value) is not dlarray or type(value._view) is not tuple:
        return False
    base, op, _ = value._view
    if type(op) is windows.Part:
        return base is array and op.has(key)
    steps = []
    while value is not array:
        if type(value._view) is not tuple:
            return False
        value, op, params = value._view
        if op is not None:
            steps.append((op.name, params))
    entries = key if isinstance(key, tuple) else (key,)
    if not all(type(entry) in (int, slice) or entry is None or entry is Ellipsis for entry in entries):
        return False
    parsed = parsed_key("setitem", array, key)
    expected: list[tuple[str, Any]] = [
        ("reshape", {"shape": parsed.result}),
        ("slice", {"starts": parsed.starts, "stops": parsed.stops, "steps": parsed.steps}),
    ]
    lengths = tuple(map(len, map(range, parsed.starts, parsed.stops, parsed.steps)))
    if parsed.result == lengths:
        del expected[0]
    if lengths == array._data.shape and all(step == 1 for step in parsed.steps):
        del expected[-1]
    return steps == expected


def _merged(region: dlarray, parsed: ParsedKey) -> dlarray:
    """Return a slice of x with the axes that are indexed by arrays next to each other and merged into one."""
    assert parsed.order is not None
    region = permuted(reshaped(region, parsed.sliced_shape, None), parsed.order)
    return reshaped(region, parsed.merged_shape, None)


def as_value(array: dlarray, value: Any, function: str = "setitem", argument: str = "value") -> dlarray:
    """Return a value to assign in the dtype of `array`."""
    dtype = array._data.dtype
    if recorder.is_number(value) and value.is_complex and dtype.kind != "c":
        value = value.needed("an assignment")
    if recorder.is_number(value) and value.fits(dtype):
        value = value._array
    elif isinstance(value, (int, float)):
        if isinstance(value, int) and dtype.kind in "iu":
            info = np.iinfo(dtype)
            if not info.min <= value <= info.max:
                raise RangeError(
                    f"{function}: the {argument} {brief(value)} does not fit x of type {dtype} "
                    f"({info.min} to {info.max}); cast x first."
                )
        if dtype.kind in "iu" and type(value) is not int:
            _check_integral(value, dtype, function, argument)
        try:
            with np.errstate(all="ignore"):
                constant: dlarray = _as_constant(as_array(np.asarray(value).astype(dtype)))
            return constant
        except OverflowError:
            raise too_large(value, function, argument) from None
    elif type(value) is complex and dtype.kind in "iuf":
        raise DTypeError(
            f"{function}: the {argument} {value} is complex, and x is {dtype}; cast x first "
            f"(x.astype(np.complex128)), or set {argument}.real."
        )
    given = as_array(value, function, argument)
    return given if given._data.dtype == dtype else apply("cast", given, dtype=dtype)


def _check_integral(value: Any, dtype: np.dtype, function: str, argument: str) -> None:
    """Check that a number has an integer part that an array of integers can hold; NumPy casts its own numbers.

    Raises:
        ArgumentValueError: for NaN.
        RangeError: for infinity and for numbers that are too large.
    """
    if isinstance(value, np.floating) and dtype.kind == "u":
        return
    info = np.iinfo(dtype)
    if math.isnan(value):
        raise ArgumentValueError(
            f"{function}: the {argument} nan does not fit x of type {dtype}, which has no NaN; cast x first "
            "(x.astype(np.float64))."
        )
    if not info.min - 1 < value < info.max + 1:
        raise RangeError(
            f"{function}: the {argument} {brief(value)} does not fit x of type {dtype} "
            f"({info.min} to {info.max}); cast x first."
        )


def _fitted(array: dlarray, given: dlarray, shape: tuple[int, ...], format: str | None) -> dlarray:
    """Return a value broadcast to the `shape` of what is assigned (or a scalar), without labels."""
    have, labels = given._data.shape, given._format
    if (
        format
        and labels
        and any(
            "U" not in pair and pair[0] != pair[1]
            for pair in zip(reversed(format), reversed(labels), strict=False)
        )
    ):
        raise DimsError(
            f"setitem: the value is {describe_shape(have, labels)}, but the assigned part of x is "
            f"{describe_shape(shape, format)}; labels must agree. Permute the value, or use stripdims."
        )
    if not have:
        return relabel(given, None)
    extra = len(have) - len(shape)
    if extra > 0 and have[:extra] == (1,) * extra:
        have = have[extra:]
    aligned = shape[len(shape) - len(have) :]
    if len(have) > len(shape) or any(a not in (1, b) for a, b in zip(have, aligned, strict=True)):
        raise DimsError(
            f"setitem: a value of size {describe_shape(given._data.shape, labels)} does not broadcast to "
            f"the {describe_shape(shape, format)} places of x "
            f"({describe_shape(array._data.shape, array._format)}) that are assigned; aligned from the "
            "last axis, each size must be 1 or equal."
        )
    return expanded(reshaped(given, have, None), shape)
