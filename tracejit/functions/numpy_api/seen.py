# SPDX-License-Identifier: BSD-3-Clause
"""Other views of an array's elements: windows, strides, other dtypes, and the iterator x.flat.

They are views, as in NumPy. Views of the bits in another dtype are computed by NumPy, also within programs.

Labels: results have none.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.aval import describe_shape, wanted_dtype
from tracejit.errors import WriteError
from tracejit.functions import indexing, movement
from tracejit.functions.refusals import refuse
from tracejit.record import recorder, views
from tracejit.record.memory import is_private
from tracejit.util.arguments import flag, integers
from tracejit.util.text import brief


class Places:
    """A view that shows elements at places of an array, in the shape of the places.

    Args:
        name: of the function that gives it.
        places: numbers of elements in C order.
        see: gives NumPy's view of an ndarray.
        is_writeable: whether it can be written.
    """

    name = "places"

    __slots__ = ("_is_writeable", "_name", "_places", "_see")

    def __init__(
        self, name: str, places: np.ndarray, see: Callable[[np.ndarray], np.ndarray], is_writeable: bool
    ) -> None:
        self._name = name
        self._places = places
        self._see = see
        self._is_writeable = is_writeable

    def of(self, array: dlarray) -> dlarray:
        """Return the elements at the places, by recorded operations."""
        flat = movement.ravel(movement.relabel(array, None))
        return movement.reshape(
            apply("take", flat, as_array(self._places.ravel()), axis=0), self._places.shape
        )

    def numpy(self, data: np.ndarray) -> np.ndarray:
        """Return NumPy's view of an ndarray."""
        return self._see(data)

    def view(self, _: Any, array: dlarray, new: dlarray) -> dlarray:
        """Return an array with other elements at the places."""
        if not self._is_writeable:
            raise WriteError(
                f"write: what {self._name} gives is read-only, as in NumPy; write to a copy (x.copy()), or pass "
                "writeable=True."
            )
        if np.unique(self._places).size < self._places.size:
            raise WriteError(
                f"write: what {self._name} gave shows elements in several places, and a trace does not know which of "
                "them is written; write into the array that it was made of."
            )
        flat = movement.ravel(movement.relabel(array, None))
        flat = indexing.setitem(flat, self._places.ravel(), movement.ravel(new))
        return movement.relabel(movement.reshape(flat, array._data.shape), array._format)


class OfComplex:
    """The view of complex numbers as real ones, both parts side by side, or of such real numbers as complex ones."""

    name = "parts"

    __slots__ = ("_dtype",)

    def __init__(self, dtype: np.dtype) -> None:
        self._dtype = dtype

    def of(self, array: dlarray) -> dlarray:
        """Return the numbers in the other dtype, by recorded operations."""
        array = movement.relabel(array, None)
        *before, last = array._data.shape
        if self._dtype.kind == "f":
            return movement.reshape(apply("pairs", array), (*before, 2 * last))
        pairs = movement.reshape(array, (*before, last // 2, 2))
        return apply("complex_of", pairs[..., 0], pairs[..., 1])

    def numpy(self, data: np.ndarray) -> np.ndarray:
        """Return NumPy's view of an ndarray."""
        return data.view(self._dtype)

    def view(self, _: Any, array: dlarray, new: dlarray) -> dlarray:
        """Return an array with other elements: the new ones in the dtype of the array."""
        return movement.relabel(OfComplex(array._data.dtype).of(new), array._format)


def _view(array: dlarray, part: Any) -> dlarray:
    """Return a view of an array that goes by no op."""
    is_traced = recorder.recorder() is not None and not is_private(array)
    result: dlarray = views.seen(array, part, part.of(array) if is_traced else None)
    return result


def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: Any = False, writeable: Any = False
) -> dlarray:
    """Return all windows of a shape along axes, which come last."""
    name = "np.lib.stride_tricks.sliding_window_view"
    array = as_array(x, name)

    def see(data: np.ndarray) -> np.ndarray:
        return np.lib.stride_tricks.sliding_window_view(data, window_shape, axis, writeable=is_writeable)

    is_writeable = flag(name, "writeable", writeable)
    places = see(np.arange(array.size).reshape(array.shape)).copy()
    return _view(array, Places(name, places, see, is_writeable))


def as_strided(
    x: Any, shape: Any = None, strides: Any = None, subok: Any = False, writeable: Any = True
) -> dlarray:
    """Return a view of an array with a shape and strides in bytes, which must stay within its elements."""
    name = "np.lib.stride_tricks.as_strided"
    array = as_array(x, name)
    data = array._data
    sizes = data.shape if shape is None else integers(name, "shape", shape)
    steps = data.strides if strides is None else integers(name, "strides", strides)
    if len(sizes) != len(steps) or min(sizes, default=0) < 0:
        refuse(
            name, f"shape is {brief(sizes)} and strides {brief(steps)}, expected one of both for each axis"
        )
    if any(step % data.itemsize for step in steps):
        refuse(
            name,
            f"strides are {brief(steps)}, expected multiples of {data.itemsize}, the bytes of an element",
        )
    is_writeable = flag(name, "writeable", writeable)

    def see(data: np.ndarray) -> np.ndarray:
        return np.lib.stride_tricks.as_strided(
            data, sizes, steps, writeable=is_writeable and data.flags.writeable
        )

    places = _places_of_strides(data, sizes, steps)
    if places is None:
        refuse(
            name,
            f"shape {brief(sizes)} with strides {brief(steps)} leaves the elements of x "
            f"({describe_shape(data.shape, None)}); pass the array that x is a view of",
        )
    return _view(array, Places(name, places, see, is_writeable))


def _places_of_strides(data: np.ndarray, shape: Sequence[int], strides: Sequence[int]) -> np.ndarray | None:
    """Return the numbers in C order of the elements that strides from the first one lead to; None if some lead away."""

    def offsets(shape: Sequence[int], strides: Sequence[int]) -> np.ndarray:
        total = np.zeros(tuple(shape), np.int64)
        for axis, (size, step) in enumerate(zip(shape, strides, strict=True)):
            total += (np.arange(size) * step).reshape((-1,) + (1,) * (len(shape) - axis - 1))
        return total

    own, wanted = offsets(data.shape, data.strides).ravel(), offsets(shape, strides)
    order = np.argsort(own, kind="stable")
    if not wanted.size:
        return wanted
    if not own.size:
        return None
    found = np.minimum(np.searchsorted(own[order], wanted), own.size - 1)
    places = order[found]
    return places if np.array_equal(own[places], wanted) else None


def _bits(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return np.array(x.view(dtype), order="C")


_NAME = "np.ndarray.view"


def view(self: dlarray, dtype: Any = None, type: Any = None) -> dlarray:
    """Return a view of the array, or its memory seen as numbers of another dtype; see np.ndarray.view."""
    name = "view"
    if isinstance(dtype, _Class) and issubclass(dtype, np.ndarray):
        dtype, type = None, dtype
    if type is not None and type is not np.ndarray:
        refuse(
            name,
            f"type is {brief(type)}, expected np.ndarray; dlarrays have no subclasses (x.reshape(shape) changes sizes)",
        )
    wanted = self.dtype if dtype is None else wanted_dtype(name, dtype)
    if wanted == self.dtype:
        result: dlarray = self[...]
        return result
    have = self.dtype
    if wanted.itemsize != have.itemsize and (not self.ndim or self._data.strides[-1] != have.itemsize):
        refuse(
            name, f"{have} seen as {wanted} needs a last axis whose elements are neighbours; pass x.copy()"
        )
    if wanted.itemsize > have.itemsize and self.shape[-1] * have.itemsize % wanted.itemsize:
        refuse(name, f"the last axis has {self.shape[-1]} elements of {have}, which {wanted} does not divide")
    if {wanted.kind, have.kind} == {"f", "c"} and max(wanted.itemsize, have.itemsize) == 2 * min(
        wanted.itemsize, have.itemsize
    ):
        return _view(self, OfComplex(wanted))
    return _view(self, _Bits(wanted))


_Class = type


class _Bits:
    """The bits of numbers as other numbers, which NumPy computes."""

    name = "bits"

    __slots__ = ("_dtype",)

    def __init__(self, dtype: np.dtype) -> None:
        self._dtype = dtype

    def of(self, array: dlarray) -> dlarray:
        """Return the bits of an array, by a call of NumPy."""
        return _by_numpy(movement.relabel(array, None), self._dtype)

    def numpy(self, data: np.ndarray) -> np.ndarray:
        """Return NumPy's view of an ndarray."""
        return data.view(self._dtype)

    def view(self, _: Any, array: dlarray, new: dlarray) -> dlarray:
        """Return an array with other bits, which are those of the new elements."""
        return movement.relabel(_by_numpy(new, array.dtype), array._format)


def _by_numpy(array: dlarray, dtype: np.dtype) -> dlarray:
    from tracejit.functions.numpy_api import in_python  # late: it imports the ops of SciPy's functions

    seen: dlarray = in_python.call(_NAME, _bits, (array, dtype), {})
    return seen


class Flags:
    """The flags of an ndarray, which say how its elements lie in memory; they cannot be set."""

    __slots__ = ("_of",)

    def __init__(self, data: np.ndarray) -> None:
        object.__setattr__(self, "_of", data.flags)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._of, name)

    def __getitem__(self, name: str) -> Any:
        return self._of[name]

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(
            f"flags.{name} of a dlarray cannot be set; set it on an ndarray and make a dlarray of it, tj.dlarray(data)."
        )

    def __setitem__(self, name: str, value: Any) -> None:
        setattr(self, name, value)

    def __repr__(self) -> str:
        return repr(self._of)


def flags(self: dlarray) -> Any:
    """The flags, which say how the elements lie in memory; see np.ndarray.flags."""
    return Flags(self._data)


def set_shape(self: dlarray, shape: Any) -> None:
    """Give an array another shape in place, as ``x.shape = (2, 3)`` does; what is a view of it stays as it is."""
    sizes = integers("shape", "shape", shape)
    current = recorder.recorder()
    if current is not None:
        memories = current.memories
        if any(source is self for source, _ in memories.sources) or id(self) in memories.written:
            raise AttributeError(
                "shape of a dlarray that is an argument cannot be set; write y = x.reshape(shape), which is a view."
            )
    base: dlarray = recorder.wrap(self._data, self._format, self._value)
    base._view = self._view
    seen = movement.reshape(base, sizes)
    if self.size and not np.may_share_memory(seen._data, base._data):
        raise AttributeError(
            f"shape {brief(sizes)} would move elements of {recorder.describe(self)} in memory; write x = "
            "x.reshape(shape)."
        )
    if current is not None:
        for view in current.memories.views:
            if _is_tuple(view._view) and view._view[0] is self:
                view._view = (base, *view._view[1:])
        current.memories.views[:] = [base if view is self else view for view in current.memories.views]
    self._data, self._format, self._value = seen._data, seen._format, seen._value
    self._view = None
    if current is not None:
        views.link(self, base, Reshaped(sizes))


class Reshaped:
    """The view of an array in another shape, which the array itself has become."""

    name = "reshape"

    __slots__ = ("_sizes",)

    def __init__(self, sizes: tuple[int, ...]) -> None:
        self._sizes = sizes

    def of(self, array: dlarray) -> dlarray:
        """Return the array in the shape, by a recorded operation."""
        return movement.reshape(movement.relabel(array, None), self._sizes)

    def numpy(self, data: np.ndarray) -> np.ndarray:
        """Return NumPy's view of an ndarray."""
        return data.reshape(self._sizes)

    def view(self, _: Any, array: dlarray, new: dlarray) -> dlarray:
        """Return an array with other elements."""
        return movement.reshape(new, array._data.shape)


def _is_tuple(x: Any) -> bool:
    return isinstance(x, tuple)


class FlatIterator:
    """The elements of an array in C order: x.flat, which is read, indexed, written and iterated over."""

    __hash__ = None  # type: ignore[assignment]  # == compares elements

    def __init__(self, base: dlarray) -> None:
        self.base = base
        self.index = 0

    @property
    def coords(self) -> tuple[int, ...]:
        """The place of the next element, one index for each axis."""
        places: list[int] = []
        rest = self.index
        for size in self.base.shape[:0:-1]:
            rest, place = divmod(rest, max(size, 1))
            places.append(place)
        return (rest, *places[::-1]) if self.base.ndim else ()

    def __len__(self) -> int:
        return self.base.size

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self.index >= self.base.size:
            raise StopIteration
        self.index += 1
        return self[self.index - 1]

    def copy(self) -> dlarray:
        """Return the elements as a vector of their own."""
        return movement.flatten(movement.relabel(self.base, None))

    def __getitem__(self, key: Any) -> Any:
        self.index = 0 if not isinstance(key, int) else self.index
        flat = movement.ravel(movement.relabel(self.base, None))
        result = flat[key]
        return result.copy() if isinstance(result, dlarray) and result.ndim else result

    def __setitem__(self, key: Any, value: Any) -> None:
        flat = self.copy()
        target = as_array(flat[key])
        given = movement.ravel(as_array(value, "flat", "value"))
        if given.size > 1 and target.size:
            given = given[np.arange(target.size) % given.size]
            given = movement.reshape(given, target.shape)
        elif not given.size:
            return
        else:
            given = value if not isinstance(value, (list, tuple)) else given
            given = movement.reshape(given, ()) if isinstance(given, dlarray) else given
        flat[key] = given
        shaped = movement.reshape(flat, self.base.shape)
        if views.is_scalar(self.base):
            raise WriteError("write: a number has no elements to write; assign it to a name.")
        views.assign(self.base, movement.relabel(shaped, self.base.format), "flat")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.copy(), dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        return getattr(ufunc, method)(*[without_flat(x) for x in inputs], **options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        given = {key: without_flat(x) for key, x in options.items()}
        return function(*[without_flat(x) for x in args], **given)


def _comparison(name: str) -> Callable[[FlatIterator, Any], Any]:
    def method(self: FlatIterator, other: Any) -> Any:
        return getattr(self.copy(), name)(without_flat(other))

    return method


for _name in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"):
    setattr(FlatIterator, _name, _comparison(_name))


def without_flat(x: Any) -> Any:
    """Return an argument with vectors in place of the iterators x.flat in it."""
    if type(x) in (list, tuple):
        return type(x)([without_flat(part) for part in x])
    return x.copy() if type(x) is FlatIterator else x


def flat(self: dlarray) -> Any:
    """The elements in C order, to be read, indexed, written and iterated over; see np.ndarray.flat."""
    return FlatIterator(self)


def set_flat(self: dlarray, value: Any) -> None:
    """Write all elements in C order, values from the start again where there are fewer."""
    FlatIterator(self)[:] = value


FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.lib.stride_tricks.sliding_window_view: sliding_window_view,
}
