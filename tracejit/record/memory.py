# SPDX-License-Identifier: BSD-3-Clause
"""Arrays of a recording that share memory: the links from views to their arrays, and the writes.

Note [writes]
A graph has no memory, only values. So a write makes a new value of the array that owns the elements (the root), and
everything that shares them follows (PyTorch's compiler calls it functionalisation). An op whose result is a view links
its result to its operand. A write through a view climbs the links: of x[2].T[1] = v it records setslice, transpose and
setslice, each with a new value of the array below. All other views of the root get the new elements at once, as a view
of NumPy's, and a LateValue: the ops that derive it from the root are recorded when something asks for it
(record/views.py). So an array that is never written pays for a link, and reading it costs nothing.

An array that a recording makes without values of its trace (np.zeros) is private to it. As long as nothing traced is
written into it, it is NumPy's own memory, written in place, whose views are NumPy's views.
"""

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tracejit.errors import WriteError
from tracejit.ir import Value
from tracejit.ops import OPS
from tracejit.util.devices import OnDevice, computed, is_same_memory, is_view_of, may_share_memory
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.spans import Spans


def _references() -> int:
    return max([sys.getrefcount(view) for view in [object()]])


def _references_of_popped() -> int:
    views = [object()]
    view = views.pop()
    return sys.getrefcount(view)


_POPPED = _references_of_popped()
HELD = _references()
"""The references to a view that only a list of views holds, in a comprehension over that list."""


_FEW_VIEWS = 30


class Change(NamedTuple):
    """A write into an array from outside the evaluation.

    array       the array
    data        its own elements
    outer       the Value that stands for them in the evaluation around this one, or None
    input       the Value that stands for them in this evaluation
    result      an array with what they become
    """

    array: Any
    data: np.ndarray
    outer: Any
    input: Any
    result: Any = None


class BegunWrite(NamedTuple):
    """A write, as it begins.

    root          the array that owns the elements
    before        its Value
    was_private   whether it was private to the recording
    """

    root: Any
    before: Any
    was_private: bool


class Private:
    """The mark of private arrays of a recording."""

    __slots__ = ("memories",)

    def __init__(self, memories: "Memories") -> None:
        self.memories = memories


_place: Callable[[int], str] = "argument {}".format
MIXED_WRITES = (
    "an ndarray is written by traced values and by NumPy, or by parts that share memory",
    "keep the whole array, as one dlarray that is made before the first call, and take its parts inside the function; "
    "keep the fields of a structured array in arrays of their own",
)
"""The reason and the remedy where a recording cannot follow what an ndarray holds."""
_READ = "an array that {} reads besides its arguments"
_parts: list[Callable[[Any, np.ndarray, np.ndarray], Any]] = []


def show_parts_with(part: Callable[[Any, np.ndarray, np.ndarray], Any]) -> None:
    """Have a function find the view of an array that part() returns; called once."""
    _parts[:] = [part]


def part(root: Any, memory: Any, data: Any) -> Any:
    """Return what shows of an array what an ndarray shows of its memory: itself, or a view by slices and axes, or None.

    Args:
        root: the array.
        memory: what was its memory when it entered the evaluation.
        data: the ndarray, over the same memory.
    """
    if is_same_memory(memory, data):
        return root
    if isinstance(memory, OnDevice) or isinstance(data, OnDevice):
        return None
    return _parts[0](root, memory, data)


class Memories:
    """The memory of one recording.

    Attributes:
        views: the views and the private arrays of the recording, in order.
        sources: the inputs of the evaluation: the array inside, and the caller's elements.
        written: arrays from outside the evaluation that were written, by id.
        changed: all of these, and sources that were written, with the caller's elements, by where these lie.
        read: the elements of other arrays from outside, by id.
        place: names an input, by its number among the sources, for error messages.
        has_private: whether there are private arrays.
        of_numpy, of_tracejit: mark private arrays.
        writes_sources: whether writes into sources reach the caller's elements.
        met_numbers: whether an in-place operator met an input that is a number.
        most_views: the number of views at which a search for views that nobody has begins.
        begun: the writes so far of a step of a loop that is recorded.
        followers: other arrays over the memory of a written one, which follow it, with their elements.
        watched: the arrays around ndarrays that stand in their places, by the ids of these.
        stands_for: the ndarrays in whose places arrays stand, by the ids of these.
        meets: whether memory of these was met that they are a part of: its elements are the present ones.
        undo: what ndarrays held that were written at once: the array, a key, and the elements there.
        ndarrays: memory of ndarrays that traced values were written into, by id, and its first elements: ndarrays.py.
    """

    __slots__ = (
        "begun",
        "changed",
        "followers",
        "has_private",
        "meets",
        "met_numbers",
        "most_views",
        "ndarrays",
        "of_numpy",
        "of_tracejit",
        "place",
        "read",
        "sources",
        "stands_for",
        "undo",
        "views",
        "watched",
        "writes_sources",
        "written",
    )

    def __init__(self) -> None:
        self.views: list[Any] = []
        self.most_views = _FEW_VIEWS
        self.sources: list[tuple[Any, np.ndarray]] = []
        self.written: dict[int, Change] = {}
        self.place = _place
        self.has_private = self.met_numbers = self.meets = False
        self.writes_sources = True
        self.of_numpy, self.of_tracejit = Private(self), Private(self)
        self.changed = Spans()
        self.read: dict[int, np.ndarray] = {}
        self.begun: list[BegunWrite] | None = None
        self.ndarrays: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self.followers: list[tuple[Any, np.ndarray]] = []
        self.watched: dict[int, Any] = {}
        self.stands_for: dict[int, np.ndarray] = {}
        self.undo: list[tuple[np.ndarray, Any, np.ndarray]] = []

    def private(self, root: Any, is_ndarray: bool = False) -> None:
        """Make an untraced array private to the recording; `is_ndarray` if NumPy's own code would have an ndarray."""
        root._view = self.of_numpy if is_ndarray else self.of_tracejit
        self.has_private = True
        self.views.append(root)

    def link(self, view: Any, base: Any, op: Any, params: Any) -> None:
        """Note that an array is a view of another one: what `op` makes of it, or the same elements if that is None."""
        view._view = (base, op, params)
        self.views.append(view)

    def forget(self) -> None:
        """Release the views that nobody has."""
        self.views[:] = [view for view in self.views if sys.getrefcount(view) > HELD]
        self.most_views = 2 * len(self.views) + _FEW_VIEWS

    def forget_all(self) -> None:
        """Release the views that nobody has, and those that only they have."""
        count = len(self.views) + 1
        while len(self.views) < count:
            count = len(self.views)
            self.forget()

    def unlink(self, view: Any, array: Any) -> bool:
        """Undo the link of the newest view, which nobody has, and of the views between it and an array.

        Returns:
            False if there are newer views.
        """
        views = self.views
        if not views or views[-1] is not view:
            return False
        base = views.pop()._view[0]
        view._view = None
        if base is not array and views and views[-1] is base:
            views.pop()
        return True

    def shown(self, data: np.ndarray, name: str) -> Any:
        """Return the array that was written in the place of one from outside, or the part that it shows; or None.

        Raises:
            WriteError: if it shows elements of an array that was written in a way that no slices and axes do.
        """
        for root, memory in self.changed.near(data):
            found = part(root, memory, data)
            if found is not None:
                return found
            if id(memory) not in self.ndarrays:
                check_same(memory, data, _READ.format(name), name)
            self.meets = True
        return None

    def change(self, root: Any, name: str) -> None:
        """Note that an array from outside the evaluation will be written.

        Raises:
            WriteError: if others share its memory and show it in another way.
        """
        data = root._data
        for number, (_, other) in enumerate(self.sources):
            if may_share_memory(data, other):  # the states of generators are sources too, and have no place
                check_same(data, other, self.place(number), name)
        for view in [*self.views]:
            other = root_of(view)
            if other is not root and other._value is None and not is_private(other):
                self._follow(other, root, name)
        self.changed.add(data, (root, data))

    def _follow(self, other: Any, root: Any, name: str) -> None:
        """Let an array that shares the memory of a written one, and has views, show what is written."""
        if not may_share_memory(root._data, other._data):
            return
        found = part(root, root._data, other._data)
        if found is None:
            check_same(root._data, other._data, _READ.format(name), name)
        self.follow(other, found)

    def follow(self, other: Any, written: Any) -> None:
        """Let an array show what is written into another one over its memory, until the evaluation ends."""
        self.followers.append((other, other._data))
        self.link(other, written, None, {})

    def restore(self, alias: Callable[[Any], Any] = lambda array: None) -> list["Change"]:
        """Give arrays from outside the evaluation their own elements back.

        Args:
            alias: returns an array with the elements of another one.

        Returns:
            The changes, with their results.
        """
        changes = []
        for change in self.written.values():
            array = change.array
            if array._value is not change.input:
                changes.append(change._replace(result=alias(array)))
            array._data, array._value = change.data, change.outer
        for array, data in self.followers:
            array._data, array._value, array._view = data, None, None
        for data, before in reversed(self.ndarrays.values()):
            np.copyto(data, before)
        for data, key, elements in reversed(self.undo):
            data[key] = elements
        self.undo = []
        self.written, self.ndarrays, self.followers = {}, {}, []
        return changes

    def clear(self, is_alone: bool = True) -> None:
        """Undo changes that nobody asked for, release all links, and have arrays that are kept become untraced.

        Args:
            is_alone: whether there is no evaluation around the recording; in one, the arrays would become constants.
        """
        self.restore()
        if is_alone:
            for source, data in self.sources:
                source._data, source._value = data, None
        held = []
        # From the last one: a view that nobody has may alone keep others, which end with it.
        while self.views:
            view = self.views.pop()
            if sys.getrefcount(view) > _POPPED:
                held.append(view)
            else:
                view._view = None
        if is_alone:
            done: set[int] = set()
            for view in held:
                _end(view, done)
        for view in held:
            view._view = None
        self.place = _place  # which may hold the arguments
        self.sources, self.changed, self.read = [], Spans(), {}
        self.watched, self.stands_for = {}, {}


def _end(array: Any, done: set[int]) -> None:
    """Have an array become untraced: a view a view of NumPy's, and its root an array with these elements."""
    if id(array) in done:
        return
    done.add(id(array))
    if type(array._view) is tuple:
        base, op, params = array._view
        _end(base, done)
        array._data = base._data if op is None else computed(op, (base._data,), params)
    elif array._value is not None and array._value.is_constant:
        array._data = array._data.copy()  # a trace goes on with the constant
    array._value = None


def check_same(written: np.ndarray, other: np.ndarray, what: str, name: str) -> None:
    """Check that an array shares no memory with one that is written, or shows the same elements in the same way.

    Args:
        written: the array that is written.
        other: the other array.
        what: it is, for the error message.
        name: of the function that writes.

    Raises:
        WriteError: if it shares memory and shows it in another way.
    """
    if may_share_memory(written, other) and not is_same_memory(written, other):
        raise WriteError(
            f"write: {what} shares memory with an array that {name} writes, and shows it in another way, which a trace "
            "cannot follow. Pass a copy of one of them, or pass the array that both are views of and slice it inside."
        )


def is_view(result: Value, source: Value, array: Any, params: Mapping[str, Any]) -> bool:
    """Return whether what a reshape of an array gave shows its elements; on a device, whether it would in NumPy.

    There it has elements of its own, but a write into it reaches those of the array, in the trace as in replays.

    Args:
        result, source: of the result and of the array.
        array: the array.
        params: of the reshape.
    """
    if not isinstance(result.data, OnDevice):
        return is_view_of(result.data, source.data)
    like = _like(array)
    return is_view_of(OPS["reshape"].numpy(like, **params), like)


def is_contiguous(array: Any) -> bool:
    """Return whether the elements of an array lie in C order; on a device, whether they would in NumPy."""
    data = array._data
    is_seen = type(array._view) is tuple and isinstance(data, OnDevice)
    return bool((_like(array) if is_seen else data).flags.c_contiguous)


def _like(array: Any) -> np.ndarray:
    """Return an ndarray that lies in memory as NumPy's array would; its elements are not set."""
    if type(array._view) is not tuple:
        data = array._data
        return data.like() if isinstance(data, OnDevice) else data
    base, op, params = array._view
    return _like(base) if op is None else op.numpy(_like(base), **params)


def root_of(array: Any) -> Any:
    """Return the array that owns the elements of a view; an array that is none owns its own."""
    while type(array._view) is tuple:
        array = array._view[0]
    return array


def is_private(array: Any) -> bool:
    """Return whether an array is private to its recording."""
    return root_of(array)._view is not None


def is_ndarray(array: Any) -> bool:
    """Return whether NumPy's own code would have an ndarray: an array that NumPy made, or a part of one."""
    while type(array._view) is tuple:
        array, op, _ = array._view
        if op is None:  # dlarray(x)
            return False
    return array._view is not None and array._view is array._view.memories.of_numpy
