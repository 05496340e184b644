# SPDX-License-Identifier: BSD-3-Clause
"""NumPy's classes in code that is recorded, where they are given traced arrays: np.float32(x), np.nditer(x).

Labels: results have none, except numbers of another type, which keep those of the array.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tracejit.array import as_array, dlarray
from tracejit.aval import INT64, NUMPY_NUMBERS, SUPPORTED_DTYPES
from tracejit.functions import elementwise, movement
from tracejit.functions.numpy_api.lists import as_array_of_list, as_private, is_traced
from tracejit.functions.numpy_api.seen import FlatIterator, without_flat
from tracejit.functions.refusals import refuse
from tracejit.record import constructors, conversions, patches, recorder, views
from tracejit.record.memory import is_private
from tracejit.record.number import Number
from tracejit.util.text import brief


def _scalar_of(kind: type) -> Callable[..., Any]:
    """Return what answers calls of a class of NumPy's numbers, such as np.float32."""
    dtype = np.dtype(kind)

    def answer(make: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if len(args) != 1 or kwargs or type(args[0]) in _PLAIN:
            return make(*args, **kwargs)
        x = as_array_of_list(without_flat(args[0]))
        if recorder.is_number(x):
            return _number_as(x, dtype, make)
        if type(x) is not dlarray:
            return make(*args)
        if x._value is None and is_private(x):
            return as_private(make(x._data))
        result = views.number(elementwise.cast(x, dtype))
        return views.apart(result, x) if result._data.ndim else result

    return answer


_PLAIN = frozenset({float, int, bool, str, *(dtype.type for dtype in SUPPORTED_DTYPES)})


def _number_as(number: Any, dtype: np.dtype, make: Callable[..., Any]) -> Any:
    """Return a number that varies as one of a type of NumPy's, if the cast changes no more than its precision.

    np.int64 of a float is its whole part, as int() gives it.
    """
    have = np.dtype(number._kind)
    if have.kind == "f" and dtype == INT64:
        whole = conversions.whole(number, "trunc")
        if whole is not None:
            return Number(make(whole._number), whole._array, whole._sources)
    is_wider = dtype.kind == "f" or (dtype.kind == have.kind == "i" and np.can_cast(have, dtype))
    if number._kind is int and dtype.kind in "iu" and not is_wider:
        is_wider = number.fits(dtype)  # or NumPy raises an error
    if dtype.type not in NUMPY_NUMBERS or have.kind not in "fi" or not is_wider:
        return make(number.needed(f"np.{dtype.name}"))
    array = number._array
    if array._data.dtype != dtype:
        array = recorder.apply("cast", array, dtype=dtype)
    return Number(make(number._number), array, number._sources)


class TracedIterator:
    """The elements of traced arrays, as arrays without axes, in the order of memory: what np.nditer gives."""

    def __init__(self, operands: tuple[dlarray, ...], shape: tuple[int, ...], order: np.ndarray) -> None:
        self.operands = operands
        self.shape = shape
        self.itersize = int(order.size)
        self.ndim = len(shape)
        self.nop = len(operands)
        self._order = order
        self._place = 0

    def __enter__(self) -> "TracedIterator":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Do nothing: elements are written when they are written."""

    @property
    def finished(self) -> bool:
        """True where there are no more elements."""
        return self._place >= self.itersize

    @property
    def index(self) -> int:
        """The number of the element in C order."""
        return int(self._order[self._place])

    @property
    def iterindex(self) -> int:
        """The number of elements that have been passed."""
        return self._place

    @property
    def multi_index(self) -> tuple[int, ...]:
        """The place of the element, one index for each axis."""
        return tuple(map(int, np.unravel_index(self.index, self.shape)))

    @property
    def value(self) -> Any:
        """The element, or those of all operands."""
        place = self.multi_index if self.itersize else ()
        parts = tuple([operand[(*place, ...)] for operand in self.operands])
        return parts[0] if len(parts) == 1 else parts

    def __getitem__(self, number: Any) -> Any:
        value = self.value
        return (value if isinstance(value, tuple) else (value,))[number]

    def __setitem__(self, number: int, value: Any) -> None:
        self.operands[number][(*self.multi_index, ...)] = value

    def __len__(self) -> int:
        return self.itersize

    def reset(self) -> None:
        """Begin with the first element again."""
        self._place = 0

    def iternext(self) -> bool:
        """Go to the next element; return whether there is one."""
        self._place += 1
        return not self.finished

    def __iter__(self) -> Iterator[Any]:
        while not self.finished:
            yield self.value
            self._place += 1

    def __next__(self) -> Any:
        if self.finished:
            raise StopIteration
        value = self.value
        self._place += 1
        return value


def _iterator(
    make: Callable[..., Any], op: Any, flags: Any = None, op_flags: Any = None, *args: Any, **kwargs: Any
) -> Any:
    """Answer np.nditer."""
    operands = tuple(op) if isinstance(op, (tuple, list)) else (op,)
    if not any(map(is_traced, operands)):
        given = {key: x for key, x in (("flags", flags), ("op_flags", op_flags)) if x is not None}
        if args:
            return make(op, flags or (), op_flags or (), *args, **kwargs)
        return make(op, **given, **kwargs)
    name = "np.nditer"
    other = [flag for flag in flags or () if flag not in ("multi_index", "c_index", "refs_ok", "zerosize_ok")]
    order = kwargs.pop("order", "K")
    if other or args or any(x is not None for x in kwargs.values()) or order not in ("K", "C", "A"):
        what = brief(other[0]) if other else next((f"{key}=" for key in kwargs), "a further argument")
        refuse(name, f"{what} is not supported on traced arrays; leave it out, or compute with whole arrays")
    arrays = [as_array(x, name, "op") for x in operands]
    shape = np.broadcast_shapes(*[array._data.shape for array in arrays])
    arrays = [
        array if array._data.shape == shape else movement.broadcast_to(array, shape) for array in arrays
    ]
    order = _in_memory(arrays[0]._data) if order != "C" else np.arange(arrays[0].size)
    return TracedIterator(tuple(arrays), shape, order)


class TracedBroadcast:
    """The operands of np.broadcast: their common size, and tuples of their elements."""

    def __init__(self, operands: list[dlarray]) -> None:
        self.shape = np.broadcast_shapes(*[operand._data.shape for operand in operands])
        self.nd = self.ndim = len(self.shape)
        self.numiter = len(operands)
        self.size = int(np.prod(self.shape, dtype=int))
        self.index = 0
        self._operands = operands

    @property
    def iters(self) -> tuple[Any, ...]:
        """One iterator over the elements of each operand, as often as they are repeated."""
        whole = [movement.broadcast_to(operand, self.shape) for operand in self._operands]
        return tuple([FlatIterator(operand) for operand in whole])

    def reset(self) -> None:
        """Begin with the first elements again."""
        self.index = 0

    def __iter__(self) -> "TracedBroadcast":
        return self

    def __next__(self) -> tuple[Any, ...]:
        if self.index >= self.size:
            raise StopIteration
        found = tuple([iterator[self.index] for iterator in self.iters])
        self.index += 1
        return found


def _broadcast(make: Callable[..., Any], *operands: Any) -> Any:
    """Answer np.broadcast."""
    operands = tuple([as_array_of_list(operand) for operand in operands])
    if not any(map(is_traced, operands)):
        return make(*operands)
    return TracedBroadcast([as_array(operand, "np.broadcast") for operand in operands])


def _in_memory(data: np.ndarray) -> np.ndarray:
    """Return the numbers of elements in C order, in the order that the elements have in memory."""
    steps = [abs(step) for step in data.strides]
    axes = sorted(range(data.ndim), key=lambda axis: -steps[axis])
    return np.arange(data.size).reshape(data.shape).transpose(axes).ravel()


def _enumerated(original: Callable[..., Any], self: Any, arr: Any) -> None:
    """Answer the making of np.ndenumerate(arr), which iterates over arr.flat."""
    if isinstance(arr, (list, tuple)):
        arr = as_array_of_list(arr)
    if isinstance(arr, dlarray):
        self.iter = FlatIterator(arr)
        return
    original(self, arr)


def install() -> None:
    """Have NumPy's classes answered while something is recorded."""
    for dtype in SUPPORTED_DTYPES:
        if type(dtype).__module__.startswith("numpy"):  # bfloat16 is no number of NumPy's
            constructors.replace(dtype.type, _scalar_of(dtype.type))
    constructors.replace(np.nditer, _iterator)
    constructors.replace(np.broadcast, _broadcast)
    patches.replace_method(np.ndenumerate, "__init__", _enumerated)
