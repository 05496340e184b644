# SPDX-License-Identifier: BSD-3-Clause
"""NumPy's functions that write into arrays: out=, ufunc.at, copyto, put, place, putmask and the like."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.array import BUFFERS, as_array, dlarray
from tracejit.aval import INT64, UINT64
from tracejit.errors import ArgumentError, ArgumentValueError, DTypeError
from tracejit.functions import elementwise, indexing, movement, parts, reductions
from tracejit.functions.axes import normalize_axis
from tracejit.functions.formats import in_dtype
from tracejit.record import made_arrays, memory, ndarrays, patches, recorder, views
from tracejit.util.frames import written_in_place


def into(out: Any, result: Any, what: str, broadcasts: bool = True) -> Any:
    """Write a result into the array, or the tuple of one array, that was given as out=, and return the array.

    Args:
        out: the array.
        result: what is written.
        what: the function, for messages.
        broadcasts: whether the array may have more elements than the result.

    Raises:
        DimsError, DTypeError, WriteError: if it does not fit, or the array is read-only.
        ArgumentError: if a traced result is to go into an ndarray.
    """
    if isinstance(out, tuple) and len(out) == 1:
        (out,) = out
    if isinstance(out, dlarray):
        return views.assign(out, _broadcast(result, out) if broadcasts else result, what)
    if not isinstance(out, np.ndarray):
        raise ArgumentError(f"{what}: out must be an array, not {type(out).__name__}.")
    if result._value is not None:
        made = made_arrays.replaced_in_place(out) if ndarrays.is_to_replace(out, result) else None
        if made is not None:
            return views.assign(made, _broadcast(result, made) if broadcasts else result, what)
        if out.shape == result._data.shape and ndarrays.write_at_once(
            out, ..., views.fitted(recorder.wrap(out), result, what)
        ):
            return out
        through = ndarrays.target(out, result)
        if through is not None:
            views.assign(through, _broadcast(result, through) if broadcasts else result, what)
            return out
        target = written_in_place()
        place = f"{what}: out" if target is None else f"write: {target}"
        raise ArgumentError(f"{place} is an ndarray, and the result is traced. {BUFFERS}")
    target = recorder.wrap(out)
    fitting = _broadcast(result, target) if broadcasts else result
    np.copyto(out, views.fitted(target, fitting, what)._data)
    return out


def _broadcast(result: dlarray, out: dlarray) -> dlarray:
    """Return a result in the size of the array that it goes into; NumPy broadcasts it where it has fewer axes."""
    shape, wanted = result._data.shape, out._data.shape
    if shape == wanted or len(shape) > len(wanted):
        return result
    fits = all(have in (1, want) for have, want in zip(shape[::-1], wanted[::-1], strict=False))
    return movement.expanded(movement.relabel(result, None), wanted) if fits else result


def _destination(what: str, name: str, array: Any, values: tuple[Any, ...]) -> dlarray:
    """Return the array that a function writes into: of an ndarray, one through which the recording writes it."""
    if isinstance(array, dlarray):
        return array
    if isinstance(array, np.ndarray) and not any(
        isinstance(value, dlarray) and value._value is not None for value in values
    ):
        return as_array(array, what)
    if isinstance(array, np.ndarray):
        through: dlarray | None = ndarrays.target(array, *values)
        if through is not None:
            return through
        raise ArgumentError(f"{what}: {name} is an ndarray, and what is written is traced. {BUFFERS}")
    raise ArgumentError(f"{what}: {name} must be an array, not {type(array).__name__}.")


def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """Write `src`, broadcast, into `dst`; where a mask is false `dst` keeps its elements."""
    target = _destination("np.copyto", "dst", dst, (src, where))
    given = views.entered(src) if isinstance(src, dlarray) else as_array(src, "np.copyto")
    if casting not in ("same_kind", "unsafe"):
        raise ArgumentError(
            f"np.copyto: casting must be 'same_kind' or 'unsafe' for dlarrays, not {casting!r}."
        )
    if casting == "unsafe":
        given = elementwise.cast(given, target.dtype)
    elif recorder.is_number(src):
        given = src.weak([target.dtype])
    elif isinstance(src, (int, float)) and not isinstance(src, bool):
        given = as_array(np.asarray(src, np.result_type(target.dtype, src)))
    if np.can_cast(given.dtype, target.dtype, "same_kind"):  # before it meets the elements that stay
        given = in_dtype(given, target.dtype)
    if where is not True:
        given = elementwise.where(where, given, target)
    views.assign(target, _broadcast(given, target), "np.copyto")


def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """Write `val`, repeated where it is shorter, into the elements of `a` whose indices are equal."""
    target = _destination("np.fill_diagonal", "a", a, (val,))
    shape = target.shape
    if len(shape) < 2 or (len(shape) > 2 and len(set(shape)) != 1):
        raise ArgumentValueError(
            f"np.fill_diagonal: a has size {shape}, expected a matrix, or more axes of one size; use a[i, i] = val."
        )
    step = shape[1] + 1 if len(shape) == 2 else 1 + sum(np.cumprod(shape[:0:-1]).tolist())
    end = shape[1] * shape[1] if len(shape) == 2 and not wrap else target.size
    places = np.arange(target.size)[:end:step]
    key = np.unravel_index(places, shape)
    if views.is_in_memory(target):  # lists are constants
        key = tuple(part.tolist() for part in key)
    target[key] = _cycled(val, places.size)


def _cycled(values: Any, count: int) -> Any:
    """Return `count` of the elements of `values`, from the start again where it has fewer."""
    array = as_array(values)
    if array._data.ndim == 0:
        return values
    flat = movement.ravel(array)
    return flat if flat.size == count else flat[np.arange(count) % max(flat.size, 1)]


def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    """Write `values` at places that are given for each element, along an axis."""
    target = _destination("np.put_along_axis", "arr", arr, (indices, values))
    index = as_array(indices, "np.put_along_axis")
    if axis is None:
        if index._data.ndim != 1:
            raise ArgumentValueError(
                f"np.put_along_axis: indices have {index._data.ndim} axes, expected 1 with axis=None; ravel them."
            )
        put(target, index, values)
        return
    number = normalize_axis("np.put_along_axis", target, axis)
    if index._data.ndim != target._data.ndim:
        raise ArgumentError(
            f"np.put_along_axis: indices have {index._data.ndim} axes, but arr has {target._data.ndim}; give one index "
            "for each element, with as many axes as arr."
        )
    grid: list[Any] = [
        np.arange(extent).reshape((-1,) + (1,) * (target._data.ndim - i - 1))
        for i, extent in enumerate(target._data.shape)
    ]
    grid[number] = index
    target[tuple(grid)] = values


def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """Write `v`, repeated where it is shorter, at places among the elements of `a` in C order."""
    target = _destination("np.put", "a", a, (ind, v))
    places: Any = movement.ravel(as_array(ind, "np.put"))
    size = target.size
    if mode == "wrap":
        places = places % size
    elif mode == "clip":
        places = elementwise.clip(places, 0, size - 1)
    elif mode != "raise":
        raise ArgumentError(f"np.put: mode must be 'raise', 'wrap' or 'clip', not {mode!r}.")
    if not as_array(v).size:
        return  # as in NumPy
    flat = movement.ravel(target.copy())
    flat[places] = _cycled(v, places.size)
    views.assign(target, movement.reshape(flat, target.shape), "np.put")


def putmask(a: Any, mask: Any, values: Any) -> None:
    """Write into the elements of `a` where a mask is true those of `values` at the same places, repeated."""
    target = _destination("np.putmask", "a", a, (mask, values))
    _check_held("np.putmask", "values", values, target)
    if not as_array(values).size:
        return  # as in NumPy
    given = movement.reshape(as_array(_cycled(values, target.size)), -1)
    given = movement.expanded(given, (target.size,))
    _select(target, mask, movement.reshape(given, target.shape), "np.putmask")


def _check_held(what: str, name: str, values: Any, target: dlarray) -> None:
    """Raise an error for an array that the target cannot hold in full; NumPy casts lists and numbers."""
    is_array = isinstance(values, np.ndarray) or (isinstance(values, dlarray) and not views.is_scalar(values))
    if type(values) is complex and target.dtype.kind not in "cb":
        raise DTypeError(f"{what}: {name} is complex, and {target.dtype} numbers are real; pass {name}.real.")
    if is_array and not np.can_cast(values.dtype, target.dtype, "safe"):
        raise DTypeError(
            f"{what}: {name} are {values.dtype}, which {target.dtype} numbers cannot hold in full; cast them first "
            f"({name}.astype(np.{target.dtype}))."
        )


def place(arr: Any, mask: Any, vals: Any) -> None:
    """Write into the elements of `arr` where a mask is true those of `vals` in turn, repeated."""
    target = _destination("np.place", "arr", arr, (mask, vals))
    _check_held("np.place", "vals", vals, target)
    given = movement.ravel(as_array(vals, "np.place"))
    if not given.size:
        raise ArgumentValueError("np.place: vals is empty; pass at least one value.")
    chosen = movement.ravel(as_array(mask, "np.place")) != 0
    turn = reductions.cumsum(elementwise.cast(chosen, INT64)) - 1
    taken = given[elementwise.maximum(turn, 0) % given.size]
    _select(target, mask, movement.reshape(taken, target.shape), "np.place")


def _select(target: dlarray, mask: Any, values: dlarray, what: str) -> None:
    given = elementwise.cast(values, target.dtype)
    chosen = movement.reshape(as_array(mask, what), target.shape) != 0
    views.assign(target, elementwise.where(chosen, given, movement.relabel(target, None)), what)


def is_rounded_between(array: Any, key: Any, value: Any = None) -> bool:
    """Return whether NumPy adds at places in another dtype than that of the array, into which it casts each sum.

    So 1.5 that is added to an integer three times adds 3, and not 4; and True, to which -1 and 1 are added, is True.
    """
    own = getattr(array, "dtype", np.dtype(object))
    if own.kind not in "iub":
        return False
    given = as_array(value)
    if own.kind == "b":
        return given.dtype != bool and (given._value is not None or bool(np.any(given._data < 0)))
    if given.dtype.kind == "i":
        return own == UINT64 and recorder.is_array(value)  # whose sums NumPy computes in float64
    if given.dtype.kind != "f":
        return False
    return given._value is not None or bool(np.any(given._data != np.trunc(given._data)))


def at(ufunc: np.ufunc, name: str, array: Any, key: Any, value: Any = None) -> None:
    """Answer np.add.at and np.subtract.at: add at places of an array, at repeated ones as often as they occur."""
    target = _destination(f"{name}.at", "a", array, (key, value))
    if ufunc == np.add and target.dtype == bool:  # whose sum is their or
        counts = elementwise.cast(target, np.int64)
        given = elementwise.cast(elementwise.cast(as_array(value, f"{name}.at"), np.bool_), np.int64)
        views.store(target, elementwise.not_equal(indexing.setitem(counts, key, given, add=True), 0))
        return
    if ufunc == np.subtract:
        given = as_array(value, f"{name}.at")
        if given.dtype.kind in "bu":  # which have no negative numbers
            given = elementwise.cast(given, np.result_type(target.dtype, given.dtype))
        value = elementwise.negative(given)
    views.store(target, indexing.setitem(target, key, value, add=True))


def replace(name: str, array: Any, result: dlarray, others: tuple[Any, ...]) -> None:
    """Write all elements of a result into an array that a function was to change, with `others` besides."""
    views.store(_destination(name, "a", array, others), result)


WRITERS: dict[Callable[..., Any], Callable[..., None]] = {
    np.copyto: copyto,
    np.fill_diagonal: fill_diagonal,
    np.put_along_axis: put_along_axis,
    np.put: put,
    np.putmask: putmask,
    np.place: place,
}


def _with_outputs(
    function: Callable[..., Any], args: Any, options: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """Return the arguments of a function with the array that takes the place of an ndarray which it writes."""
    name = _WRITTEN.get(function, "out")
    by_place = name != "out" and bool(args)
    array = args[0] if by_place else options.get(name)
    if type(array) is tuple and len(array) == 1:
        (array,) = array
    others = args[1:] if by_place else args
    if type(array) is not np.ndarray or not _are_written(array, (*others, *options.values())):
        return args, options
    through = made_arrays.replaced_in_operation(array, 3 if options else 2)
    if through is None and name != "out":
        through = ndarrays.target(array, *others, *options.values())
    if through is None:
        return args, options
    args = tuple([through if part is array else part for part in args])
    return args, {key: _exchanged(part, array, through) for key, part in options.items()}


def _exchanged(part: Any, array: np.ndarray, through: dlarray) -> Any:
    """Return an argument with an array in place of an ndarray."""
    if part is array:
        return through
    return (through,) if type(part) is tuple and len(part) == 1 and part[0] is array else part


def _are_written(array: np.ndarray, values: tuple[Any, ...]) -> bool:
    """Return whether values that are to be written into an ndarray are traced."""
    parts = [part for value in values for part in (value if type(value) in (list, tuple) else (value,))]
    others = [part for part in parts if part is not array]
    traced = [part for part in others if recorder.is_number(part) or recorder.is_array(part)]
    return bool(traced) and ndarrays.is_to_replace(array, *traced)


def _output_of_at(array: Any, key: Any, values: Any) -> Any:
    """Return what ``ufunc.at`` writes: what takes the place of an ndarray, or the array."""
    if type(array) is np.ndarray and _are_written(array, (key, *values)):
        through = made_arrays.replaced_in_operation(array, 0)
        return array if through is None else through
    return array


_WRITTEN: dict[Any, str] = {
    np.copyto: "dst", np.fill_diagonal: "a", np.put: "a", np.put_along_axis: "arr", np.putmask: "a", np.place: "arr",
}  # fmt: skip
patches.take_outputs(_WRITTEN, _with_outputs, _output_of_at)
memory.show_parts_with(parts.part)
