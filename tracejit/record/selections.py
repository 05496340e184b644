# SPDX-License-Identifier: BSD-3-Clause
"""Selections: what a traced mask selects from an array, as long as nobody asks for how many elements that are.

Note [selections]
NumPy's x[mask] has as many elements as the mask has true ones, which differs from call to call. A trace has sizes that
are fixed, so its size becomes a guard, and each size has a trace. But most of what programs do with a selection does
not need its size: functions of elements, sums, means, and the assignment to x[mask] again. So a selection is recorded
as the whole array and the mask. A function of its elements is one of all elements; a reduction takes a neutral element
where the mask is false; an assignment chooses between old and new elements (functions/selecting.py, selected_keys.py).

Such an array has an Unsettled in place of its data and a SelectionValue in place of its Value. Both know the dtype and
the number of axes. Whatever else is asked of one of them settles the selection: the elements are gathered, the size
becomes a guard, and the array is like any other. So no code can see a size without the guard, and code that knows
nothing of selections is right.

The elements that are not selected take part in the functions, where they could be outside of their domains: the
derivative of a square root at -1 is NaN, which times a cotangent of 0 is NaN, and would reach the array or a parameter.
So they are replaced first, by the first element that is selected: what the function makes of it is what it makes of
that one. A mask that selects nothing has none, and any element stands in its place, whose derivative must not reach a
parameter either: an array that is no selection, whose derivative is a sum over all elements. So whether the mask
selects any is a guard, and if it does not, the size is one, in three places: where an operation has a parameter, in all
that follows it but sums and differences, and where NumPy's result for no elements is another one (means, extrema).

A derivative may be taken by a selection. What was computed from the whole array does not depend on the gathered
elements, so it is made to (functions/selecting.py, by_elements()): the whole array is put together of them.
"""

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit.aval import Aval
from tracejit.ir import Node, Value
from tracejit.record.current import thread
from tracejit.util.named_tuples import NamedTuple

SIZE_OF_SELECTION, NUMBER_OF_PLACES = "the size of a selection by a mask", "the number of places of nonzero"
"""The numbers that a selection has a guard for once it is settled."""
_DEPTH = 12  # of the operations by which two masks are compared


class Selections:
    """The memory of whether there was a selection in this process: until then no op looks for any."""

    met = False


class SelectionMask:
    """A mask by which a recording selects.

    Args:
        array: the mask.
        first: the first place where it is true, among all of its elements in C order.

    Attributes:
        selects: whether it selects anything, which is a guard; None as long as nothing has asked.
    """

    __slots__ = ("array", "first", "selects")

    def __init__(self, array: Any, first: Any) -> None:
        self.array = array
        self.first = first
        self.selects: bool | None = None


class SelectionParts(NamedTuple):
    """The parts of a selection.

    whole       an array with all elements, those that are not selected replaced
    mask        the mask
    source      an array to gather the elements from
    data        that stand in place of the elements
    axis        of the mask, if the elements are the places where it is true along an axis
    recorder    of the recording
    ident       of its thread
    is_mixed    whether arrays were added that are no selections, whose derivatives those of all elements add up to
    """

    whole: Any
    mask: SelectionMask
    source: Any
    data: "Unsettled"
    recorder: Any
    ident: int
    axis: int | None = None
    is_mixed: bool = False


class Settled(NamedTuple):
    """A selection that was settled: its whole, its mask, and the nodes that gather its elements."""

    whole: Any
    mask: SelectionMask
    nodes: Sequence[Node]


class Unsettled:
    """The data of a selection; anything but its dtype and its number of axes settles it.

    Args:
        dtype, ndim: of the array.
    """

    def __init__(self, dtype: np.dtype, ndim: int) -> None:
        self.dtype = dtype
        self.ndim = ndim
        self.value: Any = None  # the SelectionValue
        self.arrays: list[weakref.ref[Any]] = []  # that have this in place of their data
        self.elements: np.ndarray | None = None

    def settled(self) -> np.ndarray:
        """Return the elements."""
        if self.elements is None:
            settle(self.value)
        assert self.elements is not None
        return self.elements

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and not name.startswith("__array_"):
            raise AttributeError(name)
        return getattr(self.settled(), name)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.settled(), dtype)

    def __getitem__(self, key: Any) -> Any:
        return self.settled()[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.settled()[key] = value

    def __len__(self) -> int:
        return len(self.settled())


class SelectionValue(Value):
    """The Value of a selection, which is a Value like others once something reads it.

    Until then its slot `data` holds the parts; the other slots are unset.
    """

    __slots__ = ()

    def __init__(self, selected: SelectionParts) -> None:
        self.data = selected

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        settle(self)
        return getattr(self, name)


_gather: Callable[[Any, Any], Any]
_places: Callable[[Any, str], Sequence[Any]]


def gather_with(gather: Callable[[Any, Any], Any], places: Callable[[Any, str], Sequence[Any]]) -> None:
    """Have functions gather the elements of an array that a mask selects, and the places of a mask along its axes."""
    global _gather, _places
    _gather, _places = gather, places


def of(array: Any) -> SelectionParts | None:
    """Return the parts of an array that is a selection of the recording of this thread, None for any other."""
    value = array._value
    if type(value) is not SelectionValue:
        return None
    parts: SelectionParts = value.data
    return parts if parts.recorder is thread.recorder else None


def new(
    wrap: Callable[..., Any],
    whole: Any,
    mask: SelectionMask,
    source: Any = None,
    axis: int | None = None,
    is_mixed: bool = False,
) -> Any:
    """Return an array that is a selection.

    Args:
        wrap: makes an array.
        whole: an array with all elements.
        mask: selects.
        source: what the elements are gathered from, if not from `whole`.
        axis: of the mask, if the elements are its places along it.
        is_mixed: whether arrays were added that are no selections.
    """
    Selections.met = True
    data = Unsettled(whole._data.dtype, whole._data.ndim - mask.array._data.ndim + 1)
    selected = SelectionParts(
        whole,
        mask,
        whole if source is None else source,
        data,
        thread.recorder,
        threading.get_ident(),
        axis,
        is_mixed,
    )
    data.value = SelectionValue(selected)
    array = wrap(data, None, data.value)
    data.arrays.append(weakref.ref(array))
    return array


def become(array: Any, other: Any) -> None:
    """Let an array that is a selection be another one from now on."""
    array._data, array._value = other._data, other._value
    array._data.arrays.append(weakref.ref(array))


def settle(selection: Any) -> None:
    """Gather the elements of a selection, in its recording."""
    whole, mask, source, data, recorder, ident, axis, _ = selection.data
    selection.__class__ = Value
    del selection.data
    is_open = not recorder.closed and ident == threading.get_ident()
    if is_open:
        begin = len(recorder.graph.nodes)
        around, thread.recorder = thread.recorder, recorder
        try:
            with recorder.attempts.lasting(mask.array):
                gathered = (
                    _gather(source, mask.array)
                    if axis is None
                    else _places(mask.array, NUMBER_OF_PLACES)[axis]
                )
        finally:
            thread.recorder = around
        recorder.settled[selection] = Settled(whole, mask, recorder.graph.nodes[begin:])
        made = gathered._value
        Value.__init__(selection, made.aval, made.owner, made.node, made.data)
        made.node.makes((selection,))
        data.elements = made.data
    else:
        data.elements = source._data[mask.array._data]
        aval = Aval(data.elements.shape, None, data.dtype)
        Value.__init__(selection, aval, recorder, None, data.elements)
    for reference in data.arrays:
        array = reference()
        if array is not None and array._data is data:
            array._data = data.elements


def same(x: Value, y: Value, depth: int = _DEPTH) -> bool:
    """Return whether two Values are made by the same operations of the same Values."""
    if x is y:
        return True
    if x.is_constant or y.is_constant:
        return (
            x.is_constant
            and y.is_constant
            and x.aval == y.aval
            and not x.ndim
            and x.data.tobytes() == y.data.tobytes()
        )
    if not depth or x.node is None or y.node is None or x.node.op is not y.node.op or x.aval != y.aval:
        return False
    if x.node.outputs.index(x) != y.node.outputs.index(y) or not _equal(x.node.params, y.node.params):
        return False
    pairs: Sequence[Any] = [*zip(x.node.inputs, y.node.inputs, strict=False)]
    return len(x.node.inputs) == len(y.node.inputs) and all(same(a, b, depth - 1) for a, b in pairs)


def _equal(first: dict[str, Any], second: dict[str, Any]) -> bool:
    try:
        return bool(first == second)
    except ValueError:  # arrays, which have no one answer
        return False
