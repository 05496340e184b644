# SPDX-License-Identifier: BSD-3-Clause
"""Writes into arrays: in NumPy's memory outside a trace, as new values inside one (Note [writes] in memory.py)."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from tracejit.aval import Aval, describe_shape
from tracejit.errors import DimsError, DTypeError, WriteError
from tracejit.ir import Node, Value
from tracejit.ops import OPS, Op
from tracejit.record import recorder, selections
from tracejit.record.ended import Ended, check_open, is_open
from tracejit.record.memory import MIXED_WRITES, BegunWrite, Change, is_ndarray, is_private, root_of
from tracejit.record.plain_numbers import note_write
from tracejit.record.selections import SelectionValue
from tracejit.util.devices import OnDevice, computed, is_same_memory, may_share_memory, write


def link(array: Any, source: Any, part: Any = None) -> None:
    """Note that an array that was made around the elements of another one, or of a part of it, shares them."""
    current = recorder.thread.recorder
    if current is not None:
        current.memories.link(array, source, part, {})


def seen(array: Any, part: Any, found: Any) -> Any:
    """Return what a part shows of an array as a view that goes by no op; `found` is a copy of it that was recorded."""
    data = computed(part, (array._data,), {})
    value = None if found is None else found._value
    if value is not None:
        value.data = data  # it lies in memory as NumPy's view does
    result = recorder.wrap(data, None, value)
    link(result, array, part)
    return result


def alias(array: Any, format: str | None) -> Any:
    """Return an array with the elements of another one, which they share, and other labels."""
    check_open(array)
    result = recorder.wrap(array._data, format, array._value)
    link(result, array)
    return result


def is_scalar(array: Any) -> bool:
    """Return whether an array is what NumPy calls a scalar: a number that an operation gives, which is never written.

    ``total = loss; total += 1`` leaves a number `loss` as it was. An array without axes is written: an argument, or a
    view such as x[0, ...]. Outside a trace its data are a view; inside one it is one itself.
    """
    if array._data.ndim or type(array._view) is tuple:
        return False
    if array._value is None:
        return array._data.base is None
    return id(array) not in array._value.owner.memories.written


def holder(array: Any) -> Any:
    """Return what a view of an array shares its elements with: of a number, which no write changes, another array."""
    if array._value is None or not is_scalar(array):
        return array
    return recorder.wrap(array._data, array._format, array._value)


def copy(array: Any, order: Literal["C", "K"] = "K") -> Any:
    """Return an array with elements of its own, which lie in C order in memory or as those of the array do ("K")."""
    current = recorder.thread.recorder
    if current is not None:
        recorder.refresh(array, current)
    value = array._value
    part = None if value is None else selections.of(array)
    if part is not None:  # whose copy is a variable of its own
        whole = recorder.apply("cast", part.whole, dtype=part.whole._data.dtype)
        return selections.new(recorder.wrap, whole, part.mask, None, part.axis, part.is_mixed)
    if value is None or not is_open(array):
        if current is None or is_private(array):
            data = array._data.copy(order)
            is_plain = data.ndim or is_scalar(array)  # an array without axes is a view, a number is none
            result = recorder.wrap(data if is_plain else data[...], array._format, None)
            if current is not None:
                current.memories.private(result, is_ndarray(array))
            return result
        value = current.value(array)
    # It is a variable of its own, by which a gradient is none by the array, with memory of its own: an argument and a
    # captured array are written after the recording, and so may an array be that was returned or kept.
    data = array._data
    if current is value.owner:
        is_broadcast = 0 in data.strides  # elements in one place
        is_other_order = order == "C" and not data.flags.c_contiguous
        is_kept = isinstance(data, OnDevice) or not (is_broadcast or is_other_order)
        data = _empty(data) if is_kept else np.empty_like(data, order=order)
        value = _laid_out(value, data, current)
    result = recorder.wrap(data, array._format, value)
    return result if array._data.ndim or is_scalar(array) else alias(result, array._format)


def entered(array: Any) -> Any:
    """Return an array as one of the evaluation, where a replay can find it changed: that of a captured array."""
    current = recorder.thread.recorder
    if current is None or array._value is not None or is_private(array):
        return array
    return recorder.wrap(array._data, array._format, current.value(array))


def without_axes(number: Any) -> Any:
    """Return an array without axes that holds a number, as NumPy's scalar[...] does."""
    if number._value is None:
        array = recorder.wrap(number._data.copy()[...])
        if recorder.thread.recorder is not None:
            recorder.thread.recorder.memories.private(array, is_ndarray(number))
        return array
    return alias(holder(number), None)


def as_given(result: Any, operand: Any) -> Any:
    """Return a result without axes as the operand is, which NumPy converts: an array of an array, a number of one."""
    if result._data.ndim or is_scalar(operand):
        return result
    return without_axes(result) if is_scalar(result) else result


def number(array: Any) -> Any:
    """Return an array without axes as a number: what it holds, apart from what it is a view of."""
    return array if array._data.ndim or is_scalar(array) else element(array, array)


def element(view: Any, array: Any) -> Any:
    """Return the element of an array that an index of integers selects, as a number: no view of the array."""
    current = recorder.thread.recorder
    value = view._value
    if value is None and current is not None and not is_private(view):
        value = current.value(view)
    if value is not None:
        if current is not None and view is not array and current.memories.unlink(view, array):
            return view
        return recorder.wrap(view._data, None, value)
    number = recorder.wrap(view._data.copy())
    if current is not None:
        current.memories.private(number, is_ndarray(view))
    return number


def apart(result: Any, operand: Any, order: Literal["C", "K"] = "K") -> Any:
    """Return what a function that never gives views made of an operand, with elements of its own.

    Where such a function has nothing to do, as np.roll(x, 0), its result may be the operand or a view of it.
    """
    shares = (
        may_share_memory(result._data, operand._data)
        or root_of(result) is root_of(operand)  # a captured array, of whose elements the recording has copies
        or not result._data.size  # which may be read-only
    )
    return copy(result, order) if shares else result


def assign(array: Any, result: Any, what: str) -> Any:
    """Write the result of an operation into an array, as NumPy's in-place operators do, and return the array.

    A number is not written: the result takes its place.

    Args:
        array: the array to write.
        result: an array that has its sizes.
        what: the operator or function, for error messages.

    Raises:
        DimsError: if the sizes differ.
        DTypeError: if the result cannot be cast to the dtype of the array: floating point to integers, numbers to bool.
        WriteError: if the array is read-only.
    """
    if is_scalar(array):
        value = array._value
        if value is not None and value.node is None:
            value.owner.memories.met_numbers = True
        return result
    if type(array._value) is SelectionValue and _is_alike(array, result):
        selections.become(array, result)
        return array
    store(array, fitted(array, result, what))
    return array


def _is_alike(first: Any, second: Any) -> bool:
    """Return whether two selections have the same size and dtype."""
    mine, other = selections.of(first), selections.of(second)
    if mine is None or other is None:
        return False
    is_like = first._data.dtype == second._data.dtype and first._data.ndim == second._data.ndim
    return is_like and mine.mask is other.mask and mine.whole._data.shape == other.whole._data.shape


def fitted(array: Any, result: Any, what: str) -> Any:
    """Return a result in the dtype of the array that it is written into; the errors are those of assign()."""
    if result._data.shape != array._data.shape:
        raise DimsError(
            f"{what}: the result has size {describe_shape(result._data.shape, result._format)}, but the array that is "
            f"written has {describe_shape(array._data.shape, array._format)}; an array keeps its size. Assign the "
            "result to a new name (y = x + z)."
        )
    dtype = array._data.dtype
    if result._data.dtype != dtype:
        if not np.can_cast(result._data.dtype, dtype, "same_kind"):
            raise DTypeError(
                f"{what}: the result is {result._data.dtype}, but the array that is written is {dtype}; an array keeps "
                f"its dtype. Cast the array first (x = x.astype(np.{result._data.dtype})), or assign the result to a "
                "new name (y = x / z)."
            )
        result = recorder.apply("cast", result, dtype=dtype)
    return result


def is_in_memory(array: Any) -> bool:
    """Return whether an array is written in NumPy's memory: no trace sees it."""
    if array._value is not None and is_open(array):
        return False
    current = recorder.thread.recorder
    if current is None:
        return True
    mark = root_of(array)._view
    return mark is not None and mark.memories is current.memories


def is_constant(value: Any) -> bool:
    """Return whether a value to write is no array that a replay could find changed."""
    if recorder.is_array(value):
        return is_in_memory(value)
    return recorder.thread.recorder is None or not isinstance(value, np.ndarray)


def check_writeable(array: Any) -> None:
    """Check that NumPy lets the memory of an array be written.

    Raises:
        WriteError: if it is read-only.
    """
    if isinstance(array._data, OnDevice) and recorder.thread.recorder is None:
        raise WriteError(
            f"write: {recorder.describe(array)} lies on {array._data.device}, where views are copies; write in a "
            "function that dlaccelerate or dlfeval runs, or compute a new array (x = x + y, where)."
        )
    if not array._data.flags.writeable:
        raise WriteError(
            f"write: {recorder.describe(array)} is read-only, like the ndarray that it was made of; write to a copy "
            "(x.copy())."
        )


_writes_by_numpy: list[Callable[[Any, Any], bool]] = []


def write_parts_with(is_by_numpy: Callable[[Any, Any], bool]) -> None:
    """Have a function tell whether NumPy writes a view itself, because it shows a part of an ndarray; called once."""
    _writes_by_numpy[:] = [is_by_numpy]


def store(array: Any, new: Any) -> None:
    """Replace the elements of an array, and of all that share them, by those of one of the same size and dtype."""
    if (
        type(array._view) is tuple
        and recorder.thread.recorder is not None
        and _writes_by_numpy[0](array, new)
    ):
        check_writeable(array)
        np.copyto(array._data, np.asarray(new))
        return
    if is_in_memory(array) and (new._value is None or new._value.is_constant):
        check_writeable(array)
        np.copyto(array._data, new._data)
        return
    current = recorder.thread.recorder
    if current is not None:
        _write(array, new, current)
        return
    for traced in (array, new):
        if is_open(traced):
            traced._value.owner.refuse(
                "an array of the trace is written in another thread",
                recorder.user_location(),
                "what a thread computes is not recorded; compute it in the thread of the function",
            )
    array._data, array._value = new._data, new._value


def _write(array: Any, new: Any, current: Any) -> None:
    path = [array]
    while type(path[-1]._view) is tuple:
        path.append(path[-1]._view[0])
    memories = current.memories
    root = path[-1]
    if memories.changed and root._value is None and root._view is None:
        written = memories.shown(root._data, current.name)
        if written is not None and written is not root:  # another array over memory that was written
            memories.follow(root, written)
            _write(array, new, current)
            return
    if memories.begun is not None:
        memories.begun.append(BegunWrite(root, root._value, root._view is not None))
    if current.maps:
        current.maps[-1].check_write(root)
    _begin(root, current)
    values = [current.value(new)]
    for child in path[:-1]:
        base, op, params = child._view
        if op is not None:
            new = recorder.wrap(values[-1].data, None, values[-1])
            new = op.view(recorder.apply, base, new, **params)
            values.append(current.value(new))
        else:
            values.append(values[-1])
    was_private, root._view = root._view is not None, None  # a private array is private no longer
    data = root._data
    _set(root, values.pop(), data, current)
    for child in reversed(path[:-1]):
        base, op, params = child._view
        data = base._data if op is None else computed(op, (base._data,), params)
        _set(child, values.pop(), data, current)
    _renew(memories, root, set(map(id, path)))
    change = memories.written.get(id(root))
    if change is not None and _is_seen(change.data, current):
        _show(change, root, current)
    if was_private and not root._data.ndim:  # still an array, not a number
        memories.link(root, recorder.wrap(root._data, root._format, root._value), None, {})


def _is_seen(data: Any, current: Any) -> bool:
    """Return whether plain NumPy may read the memory of a captured array before the recording has ended."""
    if isinstance(data, OnDevice):
        return False
    is_known = id(data) in current.memories.ndarrays or id(data) in current.ndarrays
    return is_known or not current.accelerating or current.state.holder(data) is not None


def _show(change: Change, root: Any, current: Any) -> None:
    """Show plain NumPy the elements that an ndarray has got (Note [writes into ndarrays] in ndarrays.py)."""
    data = change.data
    current.memories.ndarrays.setdefault(id(data), (data, data.copy()))
    np.copyto(data, root._data)
    current.state.writes(data)
    for other, memory in current.memories.changed.near(data):
        if other is not root:
            _take_over(current, other, memory)
    name = current.through.get(id(data))
    if name is not None:
        note_write(current, root._value, root._data, name)


def watch(array: Any, current: Any) -> None:
    """Begin to follow the memory of an ndarray, through an array around it that the recording may write."""
    root = root_of(array)
    _begin(root, current)
    data = root._data
    current.memories.ndarrays.setdefault(id(data), (data, data.copy()))
    root._data = _empty(data)  # what the recording knows, beside what is there
    np.copyto(root._data, data)


def _refresh(current: Any, data: Any) -> None:
    """Take over what plain NumPy has written into memory that the recording writes and `data` shows a part of."""
    memories = current.memories
    for root, memory in memories.changed.near(data):
        if id(memory) in memories.ndarrays and not _are_equal(memory, root._data):
            _take_over(current, root, memory)


def _are_equal(x: np.ndarray, y: np.ndarray) -> bool:
    """Return whether arrays of one size and dtype have the same bytes."""
    if x.flags.c_contiguous and y.flags.c_contiguous and x.size:
        return x.data.cast("B") == y.data.cast("B")
    return x.tobytes() == y.tobytes()


def _take_over(current: Any, root: Any, memory: np.ndarray) -> None:
    """Let a written array have the elements that plain NumPy has put into its memory, as constants."""
    current.refuse(MIXED_WRITES[0], recorder.user_location(), MIXED_WRITES[1])
    elements = _empty(memory)
    np.copyto(elements, memory)
    root._data, root._value = elements, current.builder.constant(elements)
    _renew(current.memories, root, {id(root)})


recorder.refresh_with(_refresh)


def _set(array: Any, value: Value, like: np.ndarray, current: Any) -> None:
    """Let an array have a Value whose elements lie in memory as those of `like` do (on a device, views are copies)."""
    if isinstance(value.data, OnDevice):
        is_elsewhere = not isinstance(like, OnDevice)  # an array stays where it is
    else:
        is_elsewhere = value.data.strides != like.strides
    if is_elsewhere:
        value = _laid_out(value, _empty(like), current)
    array._data, array._value = value.data, value


def _laid_out(value: Value, memory: np.ndarray, current: Any) -> Value:
    """Return a Value with the elements of another one in new memory: what is a view of it depends on their order."""
    write([memory], [value.data])
    value = _same(value, current)
    value.data = memory
    return value


def _same(value: Value, current: Any) -> Value:
    """Return another Value with the elements of a Value."""
    data = value.data
    current.builder.location = recorder.user_location()
    value = current.builder.append(OPS["cast"], [value], {"dtype": value.dtype}, value.aval)
    value.data = data
    return value


def _empty(like: Any) -> Any:
    """Return new memory with the strides of an array."""
    if isinstance(like, OnDevice):
        return like.copy()
    low, high = np.lib.array_utils.byte_bounds(like)
    offset = like.__array_interface__["data"][0] - low
    return np.ndarray(like.shape, like.dtype, bytearray(high - low), offset, like.strides)


def _begin(root: Any, current: Any) -> None:
    """Prepare the first write into an array."""
    value = root._value
    if value is not None and value.owner is not current:
        current.memories.written[id(root)] = Change(root, root._data, value, current.value(root))
        return
    memories = current.memories
    if value is not None and not any(root is source for source, _ in memories.sources):
        return  # made by the recording; a copy of an input has its Value, too
    if value is not None and value.node is not None:
        return
    if root._view is not None or (value is not None and not memories.writes_sources):  # private, or a copy
        return
    check_writeable(root)
    if value is None:
        root._value = entered = current.value(root)
        memories.written[id(root)] = Change(root, root._data, None, entered)
    memories.change(root, current.name)
    for other, data in memories.sources:
        if other is not root and is_same_memory(data, root._data) and other._value.node is None:
            current.memories.link(other, root, None, {})  # its own views follow


class LateValue(Value):
    """The Value of a view whose root was written: it is recorded, and a Value like others, once something reads it.

    Until then its slot `data` holds the array that it is derived from, the op and its parameters, and the elements;
    the other slots are unset.
    """

    __slots__ = ()

    def __init__(self, base: Any, op: Op, params: Any, data: np.ndarray) -> None:
        self.data = (base, op, params, data)

    def __getattr__(self, name: str) -> Any:
        base, op, params, data = self.data
        value = base._value
        owner = Ended if value is None else value.owner  # records that first
        self.__class__ = Value  # type: ignore[assignment]
        aval = Aval(data.shape, None, data.dtype)
        current = recorder.recorder()
        if current is None or owner is not current:  # its trace has ended, or is recorded by another thread
            Value.__init__(self, aval, owner, None, data)
        else:
            if type(op) is Op:
                node = Node(op, (value,), params, recorder.user_location())
                recorder.thread.recorder.graph.nodes.append(node)
            else:  # a part that numbers which vary name
                node = op.of(base)._value.node
            Value.__init__(self, aval, owner, node, data)
            node.makes((self,))
        return getattr(self, name)


def _renew(memories: Any, root: Any, renewed: set[int]) -> None:
    """Give the views of a root that was written its new elements, except views that are `renewed` already."""
    memories.forget()
    for view in memories.views:
        if root_of(view) is root:
            _renew_view(view, renewed)


def _renew_view(view: Any, renewed: set[int]) -> None:
    """Give a view its new elements, after those that it is a view of."""
    if id(view) in renewed:
        return
    renewed.add(id(view))
    base, op, params = view._view
    _renew_view(base, renewed)
    if op is None:
        view._data, view._value = base._data, base._value
    else:
        view._data = computed(op, (base._data,), params)
        view._value = LateValue(base, op, params, view._data)
