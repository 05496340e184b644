# SPDX-License-Identifier: BSD-3-Clause
"""Parts of arrays whose places are numbers that vary: x[i], x[i:i + 32], x[i, :, j], x[x[:, 0].argmax()].

A replay takes another part, of the same size. An integer becomes a take, and a slice with two bounds that vary does
too. The number of places in the slice is a guard; its beginning is computed as in NumPy, with bounds below 0 and beyond
the end. A slice with only one such bound has a different size for each value, so it needs the number.

NumPy gives a view for such a key. So the result is linked to the array like other views, by this key instead of an op:
a write into the result is a put at the same places.

A number that was computed from arrays (x.argmax()) is one of NumPy's scalars, for which NumPy gives a view too. For an
array without axes it gives a copy.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.array import apply, dlarray
from tracejit.aval import INT64
from tracejit.record import recorder, views
from tracejit.record.memory import is_private
from tracejit.util.devices import beside, on_host

_Take = tuple[int, dlarray]  # an axis, and an index array for it


def names_part(key: Any) -> bool:
    """Return whether a key is made of integers, slices, None and ..., and some of them are numbers that vary."""
    found = False
    for entry in key if isinstance(key, tuple) else (key,):
        if type(entry) is slice:
            found = found or _is_window(entry)
        elif recorder.is_number(entry):
            if not is_place(entry):
                return False
            found = True
        elif type(entry) is not int and entry is not None and entry is not Ellipsis:
            return False
    return found


def names_row(array: dlarray, key: Any) -> bool:
    """Return whether a key of an array holds numbers that were computed of arrays, and is the key of a view."""
    found, places, is_element = False, 0, True
    for entry in key if isinstance(key, tuple) else (key,):
        if type(entry) is dlarray and _is_computed(entry):
            found = True
        elif type(entry) is slice or entry is None or entry is Ellipsis:
            if type(entry) is slice and not all(
                type(bound) is int or bound is None for bound in (entry.start, entry.stop, entry.step)
            ):
                return False
            is_element = False
        elif type(entry) is not int:
            return False
        places += type(entry) is int or type(entry) is dlarray
    return found and not (is_element and places >= array._data.ndim)


def _is_computed(x: dlarray) -> bool:
    return not x._data.ndim and x._data.dtype.kind in "iu" and views.is_scalar(x)


def known(key: Any) -> Any:
    """Return a key with true integers in place of computed numbers if none of them is traced; None otherwise."""
    numbers = [entry for entry in _entries(key) if type(entry) is dlarray]
    is_open = recorder.thread.recorder is not None
    if any(
        recorder.is_open(number) if number._value is not None else is_open and not is_private(number)
        for number in numbers
    ):
        return None
    return _true_key(key)


class Part:
    """The part of an array that a key with numbers which vary names: a view that goes by no op.

    Args:
        key: the key.
        get, put: getitem and setitem for keys without such numbers.
    """

    name = "part"

    __slots__ = ("_get", "_key", "_put", "_true")

    def __init__(self, key: Any, get: Callable[[Any, Any], dlarray], put: Callable[..., dlarray]) -> None:
        self._key = key
        self._get = get
        self._put = put
        self._true = _true_key(key)

    def key(self, replaced: Callable[[Any], Any]) -> tuple[Any, ...]:
        """Return the key with something else in place of each number that varies."""
        return tuple([_replaced(entry, replaced) for entry in _entries(self._key)])

    def of(self, array: dlarray) -> dlarray:
        """Return the part of an array, by recorded operations."""
        takes, rest = _split(array, self._key)
        for axis, index in takes:
            array = apply("take", array, index, axis=axis)
        return self._get(array, rest)

    def numpy(self, data: np.ndarray) -> np.ndarray:
        """Return the part of an ndarray that has the sizes of this recording."""
        part: np.ndarray = data[self._true]
        return part

    def view(self, _: Any, array: dlarray, new: dlarray) -> dlarray:
        """Return an array with other elements in this part."""
        return setitem(array, self._key, new, self._put)

    def has(self, key: Any) -> bool:
        """Return whether a key is this one: Python assigns to it after ``x[key] += y``."""
        return _parts(key) == _parts(self._key)


def getitem(
    array: dlarray, key: Any, get: Callable[[Any, Any], dlarray], put: Callable[..., dlarray]
) -> dlarray:
    """Return ``array[key]``; `get` and `put` are getitem and setitem for keys without numbers that vary."""
    part = Part(key, get, put)
    value = part.of(array)
    shown = part.numpy(on_host(array._data))
    if not isinstance(shown, np.ndarray):  # a number, which shares no memory
        return value
    assert value._value is not None
    (data,) = beside((array._data,), (shown,))
    value._value.data = data  # it lies in memory as NumPy's view does
    result: dlarray = recorder.wrap(data, value._format, value._value)
    views.link(result, array, part)
    return result


def setitem(array: dlarray, key: Any, value: Any, put: Callable[..., dlarray]) -> dlarray:
    """Return a copy of an array in which ``array[key]`` is `value`; `put` is setitem for other keys."""
    takes, rest = _split(array, key)
    arrays = [array]
    for axis, index in takes:
        arrays.append(apply("take", arrays[-1], index, axis=axis))
    new = put(arrays.pop(), rest, value)
    for axis, index in reversed(takes):
        new = apply("put", arrays.pop(), index, new, axis=axis)
    return new


def is_place(x: Any) -> bool:
    """Return whether a number that varies can be an index."""
    return issubclass(x._kind, (int, np.integer)) and x._kind not in (np.uint64, bool)


def _is_window(key: slice) -> bool:
    bounds = (key.start, key.stop)
    step = key.step
    return (step is None or (type(step) is int and step > 0)) and all(
        recorder.is_number(bound) and is_place(bound) for bound in bounds
    )


def _entries(key: Any) -> Any:
    return key if isinstance(key, tuple) else (key,)


def _replaced(x: Any, replaced: Callable[[Any], Any]) -> Any:
    """Return an entry of a key with something else in place of each number that varies."""
    if type(x) is slice:
        return slice(_replaced(x.start, replaced), _replaced(x.stop, replaced), x.step)
    return replaced(x) if type(x) is dlarray or recorder.is_number(x) else x


def _true(x: Any) -> Any:
    if type(x) is slice:
        return slice(_true(x.start), _true(x.stop), x.step)
    if type(x) is dlarray:
        return int(on_host(x._data))
    return x._number if recorder.is_number(x) else x


def _true_key(key: Any) -> tuple[Any, ...]:
    """Return a key with the values that its numbers have in this recording."""
    return tuple(map(_true, _entries(key)))


def _parts(key: Any) -> list[Any]:
    """Return what identifies a key: a number that varies by the object, which must not be compared."""
    parts: list[Any] = []
    for entry in _entries(key):
        parts += (entry.start, entry.stop, entry.step) if type(entry) is slice else (entry,)
    return [(type(part), id(part) if _is_number(part) else part) for part in parts]


def _split(array: dlarray, key: Any) -> tuple[list[_Take], tuple[Any, ...]]:
    """Return the takes that a key stands for, each of the result of the one before, and the key for what they give."""
    entries = _entries(key)
    missing = array._data.ndim - sum(entry is not None and entry is not Ellipsis for entry in entries)
    if missing < 0:
        return [], _true_key(key)  # an error
    takes: list[_Take] = []
    rest: list[Any] = []
    axis = taken = 0  # the axis of the array, and the axes before it that are gone
    for entry in entries:
        if entry is Ellipsis:
            axis += missing
        elif _is_number(entry):
            takes.append((axis - taken, _of_int64(entry)))
            taken += 1
            axis += 1
            continue
        elif entry is not None:
            if type(entry) is slice and _is_window(entry):
                takes.append((axis - taken, _places(entry, array._data.shape[axis])))
                entry = slice(None)
            axis += 1
        rest.append(entry)
    return takes, tuple(rest)


def _is_number(x: Any) -> bool:
    return type(x) is dlarray or recorder.is_number(x)


def _of_int64(x: Any) -> dlarray:
    array: dlarray = x if type(x) is dlarray else x._array
    return array if array._data.dtype == INT64 else apply("cast", array, dtype=INT64)


def _places(key: slice, extent: int) -> dlarray:
    """Return the places of a slice of an axis; how many they are is a guard."""
    step = key.step or 1
    first, end = _bound(key.start, extent), _bound(key.stop, extent)
    length = apply("maximum", apply("sub", end, first), 0)
    if step > 1:
        length = apply("floordiv", apply("add", length, step - 1), step)
    count = int(recorder.need_value(length, "the size of a slice"))
    builder = recorder.thread.recorder.builder
    offsets = builder.constant(step * np.arange(count))
    # Even where the guard does not hold, the places must lie in the array.
    last = max(extent - step * (count - 1) - 1, 0)
    return apply("add", apply("minimum", first, last), recorder.wrap(offsets.data, None, offsets))


def _bound(x: Any, extent: int) -> dlarray:
    """Return a bound of a slice as a place from 0 to the end, as Python has it."""
    place = _of_int64(x)
    from_end = apply("maximum", apply("add", place, extent), 0)
    return apply("where", apply("less", place, 0), from_end, apply("minimum", place, extent))
