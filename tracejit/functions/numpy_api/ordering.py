# SPDX-License-Identifier: BSD-3-Clause
"""Sorting and searching: sort, argsort, partition, lexsort, searchsorted, digitize, sets; and order statistics.

A cotangent goes back to where each element came from. Places have no derivative, and those of equal elements are in
order (NumPy's kind="stable"), whatever `kind` says. Where the size of a result is the number of different values
(unique, the set functions), that number is guarded.

Labels: sorting keeps the format; unique and the set functions give vectors without labels.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.aval import COMPLEX64, COMPLEX128, INT64
from tracejit.errors import ArgumentValueError
from tracejit.functions import elementwise, joining, movement, reductions, taking
from tracejit.functions.axes import axis_of_a_number, normalize_axis
from tracejit.functions.elementwise import where
from tracejit.functions.formats import in_dtype
from tracejit.functions.numpy_api.flattening import flattened, line
from tracejit.functions.refusals import refuse
from tracejit.record import recorder
from tracejit.record.guards import Decides
from tracejit.util.arguments import is_option
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.text import brief

_MOST_BITS = 16  # of a dtype whose values are counted


def places_in_order(array: dlarray, axis: int, descending: bool = False) -> dlarray:
    """Return the places that sort an array along an axis."""
    if descending:
        last = array.shape[axis] - 1
        return last - movement.flip(places_in_order(movement.flip(array, axis), axis), axis)
    if array.dtype.kind in "iub" and array.dtype.itemsize <= 4 and array.size:
        return movement.relabel(_places_of_narrow(array, axis), array._format)
    return movement.relabel(apply("order", array, axis=axis)[0], array._format)


def _places_of_narrow(array: dlarray, axis: int) -> dlarray:
    """Return the places that sort narrow integers: each is the last bits of a wider integer, and these are sorted."""
    n = array.shape[axis]
    shift = (n - 1).bit_length()
    dtype = np.dtype(np.int32 if 8 * array.dtype.itemsize + shift < 32 else np.int64)
    places = np.arange(n, dtype=dtype).reshape([n if i == axis else 1 for i in range(array.ndim)])
    keys = in_dtype(movement.relabel(array, None), dtype) * dtype.type(1 << shift) + as_array(places)
    return in_dtype(in_order(keys, axis) & dtype.type((1 << shift) - 1), INT64)


def in_order(array: dlarray, axis: int, descending: bool = False) -> dlarray:
    """Return an array sorted along an axis."""
    return movement.relabel(apply("sort", array, axis=axis)[int(descending)], array._format)


def _check_kind(name: str, kind: Any, stable: Any) -> None:
    """Refuse a kind of sort that NumPy does not know; of those that it knows all are stable here."""
    if kind is not None and stable is not None:
        refuse(name, "kind and stable say the same; pass one of them", ArgumentValueError)
    if not (kind is None or (isinstance(kind, str) and kind.lower()[:1] in ("q", "h", "m", "s"))):
        refuse(
            name,
            f"kind must be 'quicksort', 'heapsort', 'mergesort' or 'stable', not {brief(kind)}",
            ArgumentValueError,
        )


def sort(
    a: Any,
    axis: Any = -1,
    kind: Any = None,
    order: Any = None,
    *,
    stable: Any = None,
    descending: Any = False,
) -> dlarray:
    """Return an array sorted along an axis.

    Equal elements show their order where they are zeros of both signs, or complex numbers with such parts.
    """
    _check_kind("np.sort", kind, stable)
    array, number = line("np.sort", a, axis)
    is_stable = stable or (kind is not None and kind.lower()[:1] in ("m", "s"))
    if is_stable and array.dtype.kind in "fc":
        return taking.take_along_axis(array, places_in_order(array, number, bool(descending)), number)
    return in_order(array, number, bool(descending))


def argsort(
    a: Any,
    axis: Any = -1,
    kind: Any = None,
    order: Any = None,
    *,
    stable: Any = None,
    descending: Any = False,
) -> dlarray:
    """Return the places that sort an array along an axis, equal elements in their order."""
    _check_kind("np.argsort", kind, stable)
    array, number = line("np.argsort", axis_of_a_number(as_array(a, "np.argsort"), axis), axis)
    return places_in_order(array, number, bool(descending))


def partition(a: Any, kth: Any, axis: Any = -1, kind: Any = None, order: Any = None) -> dlarray:
    """Return an array sorted along an axis, which is partitioned at every place."""
    array, number = line("np.partition", a, axis)
    _check_kth("np.partition", kth, array.shape[number])
    return in_order(array, number)


def argpartition(a: Any, kth: Any, axis: Any = -1, kind: Any = None, order: Any = None) -> dlarray:
    """Return the places that sort an array along an axis, which partition it at every place."""
    array, number = line("np.argpartition", a, axis)
    _check_kth("np.argpartition", kth, array.shape[number])
    return places_in_order(array, number)


def _check_kth(name: str, kth: Any, n: int) -> None:
    for place in np.atleast_1d(np.asarray(kth)).tolist() if n else ():
        if type(place) is not int or not -n <= place < n:
            refuse(name, f"kth is {brief(place)}, expected integers from {-n} to {n - 1}", ArgumentValueError)


def lexsort(keys: Any, axis: Any = -1) -> dlarray:
    """Return the places that sort by the last key first, then by the one before it, and so on."""
    listed = [as_array(key, "np.lexsort") for key in keys]
    if not listed:
        refuse("np.lexsort", "keys is empty; pass at least one array")
    number = normalize_axis("np.lexsort", listed[0], axis)
    places: Any = None
    for key in listed:
        key = movement.relabel(key, None)
        if places is None:
            places = places_in_order(key, number)
            continue
        order = places_in_order(apply("take_along_axis", key, places, axis=number), number)
        places = apply("take_along_axis", places, order, axis=number)
    return places  # type: ignore[no-any-return]


def searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> dlarray:
    """Return where elements would have to be inserted into a sorted vector."""
    array = movement.relabel(as_array(a, "np.searchsorted"), None)
    if array.ndim != 1 or not is_option(side, ("left", "right")):
        refuse(
            "np.searchsorted",
            f"a has {array.ndim} axes, expected 1, and side is {brief(side)}, 'left' or 'right'",
            ArgumentValueError,
        )
    if sorter is not None:
        places = as_array(sorter, "np.searchsorted", "sorter")
        if places.shape != array.shape:
            refuse(
                "np.searchsorted",
                f"sorter has {places.size} elements, expected one for each of the {array.size} of a",
                ArgumentValueError,
            )
        outside = reductions.any((places < 0) | (places >= max(array.size, 1)))
        if bool(recorder.need_value(outside, "np.searchsorted", Decides.TRUTH)):
            refuse(
                "np.searchsorted", f"sorter must hold places from 0 to {array.size - 1}", ArgumentValueError
            )
        array = taking.take(array, sorter)
    return apply("searchsorted", array, v, right=side == "right")


def digitize(x: Any, bins: Any, right: Any = False) -> dlarray:
    """Return the number of the bin of each element, for bins that increase or decrease."""
    edges = movement.relabel(as_array(bins, "np.digitize"), None)
    if edges.ndim != 1:
        refuse("np.digitize", f"bins have {edges.ndim} axes, expected 1", ArgumentValueError)
    side = "left" if right else "right"
    if edges.size < 2:
        return searchsorted(edges, x, side)
    check_monotonic("np.digitize", "bins", bins, True)
    rises = edges[0] <= edges[-1]
    found = searchsorted(where(rises, edges, movement.flip(edges)), x, side)
    return where(rises, found, edges.size - found)


def check_monotonic(name: str, argument: str, edges: Any, may_fall: bool) -> None:
    """Refuse a vector whose elements do not increase (or decrease); that those of a dlarray do is guarded."""
    if recorder.is_array(edges):
        edges = movement.relabel(edges, None)
        rises: Any = reductions.all(edges[:-1] <= edges[1:])
        holds = rises | reductions.all(edges[:-1] >= edges[1:]) if may_fall else rises
        holds = recorder.need_value(holds, name, Decides.TRUTH)
    else:
        numbers = as_array(edges, name, argument)._data
        early, late = numbers[:-1], numbers[1:]
        holds = np.all(early <= late) or (may_fall and np.all(early >= late))
    if not bool(holds):
        refuse(
            name,
            f"{argument} must increase{' or decrease' if may_fall else ''} from one element to the next",
            ArgumentValueError,
        )


# Sets


class UniqueAll(NamedTuple):
    """The values that occur, where each is first, which of them each element is, and how often each occurs."""

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCounts(NamedTuple):
    """The values that occur, and how often each does."""

    values: Any
    counts: Any


class UniqueInverse(NamedTuple):
    """The values that occur, and which of them each element is."""

    values: Any
    inverse_indices: Any


def _distinct(array: dlarray, equal_nan: bool) -> UniqueAll:
    """Return what is known about the elements of a vector, or the rows of a matrix, in order."""
    n = array.shape[0]
    if array.ndim == 1:
        places = places_in_order(array, 0)
    else:  # the first column counts most, and lexsort's last key does
        columns = [array[:, i] for i in reversed(range(array.shape[1]))]
        places = lexsort(columns) if columns else as_array(np.arange(n))
    ordered = apply("take", array, places, axis=0)
    first, starts, counts = _groups(ordered, equal_nan)
    number = reductions.cumsum(first) - 1
    inverse = apply("put", as_array(np.zeros(n, np.int64)), places, number, axis=0)
    values = apply("take", ordered, starts, axis=0)
    return UniqueAll(values, apply("take", places, starts, axis=0), inverse, counts)


def _groups(ordered: dlarray, equal_nan: bool) -> tuple[dlarray, dlarray, dlarray]:
    """Return which elements (or rows) in order differ from those before, where they stand, and how many equal each."""
    n = ordered.shape[0]
    late, early = ordered[1:], ordered[:-1]
    differs = late != early
    if ordered.ndim > 1:
        differs = reductions.any(differs, 1)
    elif equal_nan and ordered.dtype.kind in "fc":
        differs = differs & ~(elementwise.isnan(late) & elementwise.isnan(early))
    first = joining.concatenate([as_array(np.ones(min(n, 1), bool)), differs])
    starts = taking.nonzero(first)[0]
    ends = joining.concatenate([starts[1:], as_array(np.array([n] * min(starts.size, 1), np.int64))])
    return first, starts, ends - starts


def _values_and_counts(array: dlarray, equal_nan: bool) -> tuple[dlarray, dlarray]:
    """Return the values of a vector in order, and how often each occurs, which needs no places."""
    if is_narrow(array):
        every, counts = occurrences(array)
        at = taking.nonzero(counts != 0)[0]
        return in_dtype(at - every, array.dtype), apply("take", counts, at, axis=0)
    ordered = in_order(array, 0)
    _, starts, counts = _groups(ordered, equal_nan)
    return apply("take", ordered, starts, axis=0), counts


def is_narrow(array: dlarray) -> bool:
    """Return whether counting all values of a dtype takes less time than putting elements in order."""
    bits = 8 * array.dtype.itemsize
    return array.dtype.kind in "iub" and bits <= _MOST_BITS and array.size >= 1 << (bits - 1)


def occurrences(array: dlarray) -> tuple[int, dlarray]:
    """Return how often each value of a narrow dtype occurs, from the lowest on, and the place of 0."""
    zero = 1 << (8 * array.dtype.itemsize - 1) if array.dtype.kind == "i" else 0
    size = 2 if array.dtype.kind == "b" else 1 << (8 * array.dtype.itemsize)
    places = in_dtype(movement.ravel(array), INT64) + zero
    ones = movement.broadcast_to(as_array(np.ones((), np.int64)), places.shape)
    return zero, apply("scatter_add", as_array(np.zeros(size, np.int64)), places, ones, axis=0)


def unique(
    ar: Any,
    return_index: Any = False,
    return_inverse: Any = False,
    return_counts: Any = False,
    axis: Any = None,
    *,
    equal_nan: Any = True,
    sorted: Any = True,
) -> Any:
    """Return the values that occur, in order, and what else is asked for."""
    array = movement.relabel(as_array(ar, "np.unique"), None)
    if axis is not None:
        axis = normalize_axis("np.unique", array, axis)
    if (axis is None or array.ndim == 1) and not (return_index or return_inverse):
        values, counts = _values_and_counts(movement.ravel(array), bool(equal_nan))
        return (values, counts) if return_counts else values
    if axis is None or array.ndim == 1:
        found = _distinct(movement.ravel(array), bool(equal_nan))
        values, inverse = found.values, movement.reshape(found.inverse_indices, array.shape)
    else:
        moved = movement.moveaxis(array, axis, 0)
        count = int(np.prod(moved.shape[1:], dtype=np.int64))
        found = _distinct(movement.reshape(moved, (moved.shape[0], count)), bool(equal_nan))
        values = movement.reshape(found.values, (found.values.shape[0], *moved.shape[1:]))
        values, inverse = movement.moveaxis(values, 0, axis), found.inverse_indices
    wanted = zip(
        (True, return_index, return_inverse, return_counts),
        (values, found.indices, inverse, found.counts),
        strict=True,
    )
    results = tuple(part for is_wanted, part in wanted if is_wanted)
    return results[0] if len(results) == 1 else results


def unique_all(x: Any) -> UniqueAll:
    """Return the values that occur, their first places, the inverse and the counts; each NaN is a value."""
    return UniqueAll(*unique(x, True, True, True, equal_nan=False))


def unique_counts(x: Any) -> UniqueCounts:
    """Return the values that occur and their counts; each NaN is a value."""
    return UniqueCounts(*unique(x, return_counts=True, equal_nan=False))


def unique_inverse(x: Any) -> UniqueInverse:
    """Return the values that occur and which of them each element is; each NaN is a value."""
    return UniqueInverse(*unique(x, return_inverse=True, equal_nan=False))


def unique_values(x: Any) -> dlarray:
    """Return the values that occur; each NaN is a value."""
    return unique(x, equal_nan=False)  # type: ignore[no-any-return]


def _flat_pair(name: str, ar1: Any, ar2: Any) -> tuple[dlarray, dlarray]:
    first, second = (flattened(name, x) for x in (ar1, ar2))
    return first, second


def isin(
    element: Any, test_elements: Any, assume_unique: Any = False, invert: Any = False, *, kind: Any = None
) -> dlarray:
    """Return for each element whether it is among others."""
    if kind is not None and not is_option(kind, ("sort", "table")):
        refuse("np.isin", f"kind must be None, 'sort' or 'table', not {brief(kind)}", ArgumentValueError)
    array = as_array(element, "np.isin")
    others = flattened("np.isin", test_elements)
    dtype = np.result_type(array.dtype, others.dtype)
    values = in_dtype(array, dtype)
    if not others.size:
        found = elementwise.not_equal(values, values) & False
    elif dtype.kind == "c":  # in whose order no place can be searched
        found = reductions.any(values[..., None] == in_dtype(others, dtype), -1)
    elif array.dtype == others.dtype and is_narrow(array):
        zero, counts = occurrences(others)
        found = apply("take", counts != 0, in_dtype(movement.relabel(values, None), INT64) + zero, axis=0)
    else:
        ordered = in_order(in_dtype(others, dtype), 0)
        at = apply("searchsorted", ordered, movement.relabel(values, None), right=False)
        found = apply("take", ordered, elementwise.minimum(at, others.size - 1), axis=0) == values
    return elementwise.logical_not(found) if invert else found


def intersect1d(ar1: Any, ar2: Any, assume_unique: Any = False, return_indices: Any = False) -> Any:
    """Return the values that occur in both arrays, in order, and their first places if `return_indices`."""
    first, second = _flat_pair("np.intersect1d", ar1, ar2)
    values, at = unique(first, return_index=True)
    common = isin(values, second)
    kept = taking.nonzero(common)[0]
    dtype = np.result_type(first.dtype, second.dtype)
    result = in_dtype(apply("take", values, kept, axis=0), dtype)
    if not return_indices:
        return result
    others, places = unique(second, return_index=True)
    if dtype.kind == "c":
        where_ = reductions.argmax(result[:, None] == in_dtype(others, dtype), 1)
    else:
        where_ = apply("searchsorted", in_dtype(others, dtype), result, right=False)
    return result, apply("take", at, kept, axis=0), apply("take", places, where_, axis=0)


def union1d(ar1: Any, ar2: Any) -> dlarray:
    """Return the values that occur in either array, in order."""
    return unique(joining.concatenate(_flat_pair("np.union1d", ar1, ar2)))  # type: ignore[no-any-return]


def setdiff1d(ar1: Any, ar2: Any, assume_unique: Any = False) -> dlarray:
    """Return the values of the first array that are not in the second, in order."""
    first, second = _flat_pair("np.setdiff1d", ar1, ar2)
    values = first if assume_unique else unique(first)
    return values[isin(values, second, invert=True)]  # type: ignore[no-any-return]


def setxor1d(ar1: Any, ar2: Any, assume_unique: Any = False) -> dlarray:
    """Return the values that occur in one of two arrays only, in order."""
    first, second = _flat_pair("np.setxor1d", ar1, ar2)
    if not assume_unique:
        first, second = unique(first), unique(second)
    parts = [first[isin(first, second, invert=True)], second[isin(second, first, invert=True)]]
    return in_order(joining.concatenate(parts), 0)


def sort_complex(a: Any) -> dlarray:
    """Return the elements in order along the last axis as complex numbers: by real parts, then by imaginary ones."""
    ordered = sort(a)
    if ordered.dtype.kind == "c":
        return ordered
    return in_dtype(
        ordered, COMPLEX64 if ordered.dtype.kind in "iu" and ordered.dtype.itemsize < 4 else COMPLEX128
    )


FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.sort: sort,
    np.sort_complex: sort_complex,
    np.argsort: argsort,
    np.partition: partition,
    np.argpartition: argpartition,
    np.lexsort: lexsort,
    np.searchsorted: searchsorted,
    np.digitize: digitize,
    np.unique: unique,
    np.unique_all: unique_all,
    np.unique_counts: unique_counts,
    np.unique_inverse: unique_inverse,
    np.unique_values: unique_values,
    np.isin: isin,
    np.intersect1d: intersect1d,
    np.union1d: union1d,
    np.setdiff1d: setdiff1d,
    np.setxor1d: setxor1d,
}
