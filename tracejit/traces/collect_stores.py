# SPDX-License-Identifier: BSD-3-Clause
"""The stores of a recording: what the function put into attributes, items and names, and where each part comes from."""

import types
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.array import dlarray
from tracejit.capture.changes import Assignment
from tracejit.capture.growth import ElementsSlot
from tracejit.capture.increments import Increment
from tracejit.capture.observed import Slot
from tracejit.capture.places import reorder
from tracejit.capture.slots import AttributeSlot, ItemSlot
from tracejit.capture.state import CapturedState
from tracejit.capture.undone import is_of_user
from tracejit.capture.values import MAPPINGS, MISSING, arrays_inside, is_atom, is_container
from tracejit.errors import TraceJitError
from tracejit.record import recorder as recorders
from tracejit.record import views
from tracejit.record.argument_containers import GONE, KEPT, ContainerCopies
from tracejit.record.memory import is_private, root_of
from tracejit.record.ndarrays import holder_of
from tracejit.record.number import Number
from tracejit.traces.bases import Bases, part_of
from tracejit.traces.stores import (
    ARGUMENT,
    ARRAY,
    CONSTANT,
    CONTAINER,
    INCREMENT,
    MEMORY,
    OBJECT,
    OUTPUT,
    VIEW,
    ComputedIndex,
    StoredLeaf,
    StoredValue,
    Stores,
)  # fmt: skip
from tracejit.util.text import module_of, shown

_OF_MANY_VALUES = (np.ndarray, np.number, dlarray, Increment)
_CONSTANTS = (type, types.BuiltinFunctionType, types.ModuleType, np.ufunc)


class Collector:
    """The search for what a function that has ended has stored.

    Args:
        recorder: of the function.
        reads: its state.
        arguments: the number of arrays among the arguments.
        copies: of the containers in the arguments; None if what is put into them stays there.
        names: returns the names of these containers.

    Attributes:
        undoes_all: whether all changes of places are undone where the function has raised an error.
    """

    def __init__(
        self, recorder: recorders.Recorder, reads: CapturedState, arguments: int,
        copies: ContainerCopies | None = None, names: Callable[[], Sequence[str]] = list,
    ) -> None:  # fmt: skip
        self._recorder = recorder
        self._reads = reads
        self._copies = copies
        self._names = names
        self._changes, self._reachable, self._orders = reads.changes()
        sources = recorder.memories.sources[:arguments]
        self._arguments = {id(array): number for number, (array, _) in enumerate(sources)}
        self._numbers: dict[tuple[str, int], int] = {}
        self._leaves_of_root: dict[int, set[int]] = {}
        self._bases = Bases(reads, self._changes) if self._changes else None
        self.stores = Stores()
        self.undoes_all = False

    @property
    def assigned(self) -> list[Any]:
        """The values that the function has put into objects around it."""
        return [change.after for change in self._changes]

    def collect(self) -> Stores:
        """Undo what can be stored again, and return it."""
        kept: list[Any] = []
        for change in self._changes:
            try:
                leaves, treedef = tree.flatten(change.after, is_leaf=self._is_leaf)
            except TraceJitError:  # a container that holds itself
                continue
            if all(map(self._is_storable, leaves)):
                # An array or a number that the function makes is a constant, unless it reads what was there: then it
                # would be a different one after each call. Of a text, a truth or an object each has a trace.
                is_steady = not change.is_read or all(map(self._has_trace_of_its_own, leaves))
                is_made = change.after is MISSING or (is_steady and is_of_user(change.owner))
                if is_made or any(map(self._is_array_of_trace, leaves)):
                    kept.append((change, leaves, treedef))
            elif any(self._is_traced(leaf) or self._holds_traced(leaf) for leaf in leaves):
                self.stores.impossible = self.stores.impossible or (change.place, change.where)
            elif is_of_user(change.owner) and any(self._is_lost_view(leaf) for leaf in leaves):
                self.stores.impossible_view = self.stores.impossible_view or (change.place, change.where)
            elif is_of_user(change.owner) and not change.is_read and not all(map(_is_of_tracejit, leaves)):
                self.stores.unmade = self.stores.unmade or (change.place, change.where)
        self._note_shared()
        passed = self._passed()
        for leaves in [*[leaves for _, leaves, _ in kept], *[leaves for _, _, leaves, _ in passed]]:
            for leaf in leaves:
                if type(leaf) is dlarray:
                    self._leaves_of_root.setdefault(id(root_of(leaf)), set()).add(id(leaf))
        for change, leaves, treedef in kept:
            owner = self._number(OBJECT, change.owner, self.stores.objects)
            sources = tuple(map(self._found, leaves))
            kept_place = change._replace(owner=None, before=None, after=None)
            self.stores.stores.append(StoredValue(kept_place, owner, treedef, sources))
        for number, change, leaves, treedef in passed:
            sources = tuple(map(self._found, leaves))
            self.stores.stores.append(StoredValue(change, number, treedef, sources, is_passed=True))
        undone = {id(change) for change, _, _ in kept}
        self.undoes_all = all(id(change) in undone or is_of_user(change.owner) for change in self._changes)
        self.stores.returns = bool(self.stores.outputs)
        self.stores.orders = [(space, [*space]) for space, _ in self._orders]
        for change, _, _ in reversed(kept):
            change.undo()
        for space, keys in self._orders:
            reorder(space, keys)
        return self.stores

    def _note_shared(self) -> None:
        """Note containers of the arguments that the function met by another name too, where it changes one of both."""
        copies = self._copies
        if copies is None:
            return
        changed = {change.number for change in copies.changes()}
        owners = {id(change.owner) for change in self._changes}
        for number, original in enumerate(copies.originals):
            if self._reads.has_noted(original) and (number in changed or id(original) in owners):
                kind = type(original).__name__
                self.stores.shared = (self._names()[number], kind, number in changed)

    def _is_leaf(self, part: Any) -> bool:
        return id(part) in self._reachable or self._number_of_copy(part) is not None

    def _number_of_copy(self, part: Any) -> int | None:
        return None if self._copies is None else self._copies.number_of(part)

    @staticmethod
    def _step(container: Any, name: Any) -> tuple[type[Slot], str]:
        """Return the kind of the slot of a part of a container, and how Python writes it."""
        is_item = type(container) in MAPPINGS or isinstance(container, (list, dict, deque))
        return (ItemSlot, f"[{shown(name)}]") if is_item else (AttributeSlot, f".{name}")

    def _passed(self) -> list[tuple[int, Assignment, list[Any], tree.TreeDef]]:
        """Return what the function has put into containers of the arguments, with the leaves."""
        found: list[tuple[int, Assignment, list[Any], tree.TreeDef]] = []
        copies = self._copies
        if copies is None:
            return found
        for number, name, value, is_whole in copies.changes():
            kind, step = self._step(copies.originals[number], name)
            place = self._names()[number] + ("" if is_whole else step)
            change = Assignment(
                None, ElementsSlot if is_whole else kind, name, place, ("", 0), None, None, is_read=False
            )
            try:
                leaves, treedef = tree.flatten(MISSING if value is GONE else value, is_leaf=self._is_leaf)
            except TraceJitError:  # it holds itself
                self.stores.impossible = self.stores.impossible or (place, None)
                continue
            found.append((number, change, leaves, treedef))  # in any case, for the call that is recorded
            if all(map(self._is_storable, leaves)):
                continue
            if any(self._is_traced(leaf) or self._holds_traced(leaf) for leaf in leaves):
                self.stores.impossible = self.stores.impossible or (place, None)
            else:
                self.stores.unmade = self.stores.unmade or (place, None)
        return found

    def _is_traced(self, leaf: Any) -> bool:
        if type(leaf) is Number:
            return True
        return type(leaf) is dlarray and leaf._value is not None and leaf._value.owner is self._recorder

    def _holds_traced(self, leaf: Any) -> bool:
        """Return whether an object that cannot be stored holds an array of the trace."""
        if is_atom(leaf) or isinstance(leaf, _CONSTANTS) or id(leaf) in self._reachable:
            return False
        return any(map(self._is_traced, arrays_inside(leaf)))

    def _is_array_of_trace(self, leaf: Any) -> bool:
        """Return whether a leaf is an array or a number that the trace computes, or that is given to it."""
        if type(leaf) is np.ndarray:
            return id(leaf) in self._reachable or self._base_of(leaf) is not None
        return type(leaf) is Number or (type(leaf) is dlarray and self._is_known(leaf))

    def _has_trace_of_its_own(self, leaf: Any) -> bool:
        """Return whether the guard of a place can tell a leaf from others, and few are to be expected there."""
        if type(leaf) is dlarray and leaf._value is None and is_private(leaf):
            return True  # made anew, as self.w = np.zeros(4) does; what was there is an input
        if type(leaf) in (int, float, complex, Number) or isinstance(leaf, _OF_MANY_VALUES):
            return False
        if type(leaf) is tuple:
            return all(map(self._has_trace_of_its_own, leaf))
        if is_container(leaf):
            return False
        return is_atom(leaf) or isinstance(leaf, _CONSTANTS) or id(leaf) in self._reachable

    def _is_known(self, array: dlarray) -> bool:
        root = root_of(array)
        is_given = (
            id(root) in self._arguments or id(root) in self._reachable or id(root._data) in self._reachable
        )
        return is_given or self._is_traced(array)

    def _is_storable(self, leaf: Any) -> bool:
        if (
            isinstance(leaf, (*_CONSTANTS, Increment))
            or leaf is KEPT
            or self._number_of_copy(leaf) is not None
            or type(leaf) is Number
            or is_atom(leaf)
            or id(leaf) in self._reachable
        ):
            return True
        if type(leaf) is dlarray:
            return self._is_known(leaf) or _is_whole(root_of(leaf)._data)
        if type(leaf) is types.FunctionType:
            return leaf.__closure__ is None
        if type(leaf) is not np.ndarray or leaf.dtype == object:
            return False
        return _is_whole(leaf) or self._base_of(leaf) is not None or self._is_made(leaf)

    def _base_of(self, leaf: np.ndarray) -> np.ndarray | None:
        return None if self._bases is None or _is_whole(leaf) else self._bases.of(leaf)

    def _is_made(self, leaf: np.ndarray) -> bool:
        """Return whether the function made the memory of a view, and nothing but views in places refers to it."""
        return self._bases is not None and self._bases.is_made(leaf)

    def _is_lost_view(self, leaf: Any) -> bool:
        is_array = type(leaf) is dlarray or (type(leaf) is np.ndarray and leaf.dtype != object)
        return is_array and not self._is_storable(leaf)

    def _found(self, leaf: Any) -> StoredLeaf:
        """Return where a leaf comes from, and whether it is an array without axes."""
        is_array = type(leaf) is dlarray and not leaf._data.ndim and not views.is_scalar(leaf)
        source = self._source(leaf)
        return source._replace(is_array=is_array and source.kind in (OUTPUT, ARRAY))

    def _source(self, leaf: Any) -> StoredLeaf:
        """Return where a leaf comes from."""
        passed = self._number_of_copy(leaf)
        if passed is not None:
            return StoredLeaf(CONTAINER, passed)
        if type(leaf) is Number:
            return StoredLeaf(OUTPUT, self._number(OUTPUT, leaf, self.stores.outputs))
        if type(leaf) is not dlarray:
            if id(leaf) in self._reachable and not is_atom(leaf):
                return StoredLeaf(OBJECT, self._number(OBJECT, leaf, self.stores.objects))
            if type(leaf) is np.ndarray:
                base = self._base_of(leaf)
                if base is not None:
                    number = self._number(OBJECT, base, self.stores.objects)
                    return StoredLeaf(VIEW, number, value=part_of(base, leaf))
                return StoredLeaf(ARRAY, self._number(ARRAY, leaf, self.stores.arrays))
            if type(leaf) is Increment:
                return StoredLeaf(INCREMENT, value=leaf.added)
            return StoredLeaf(CONSTANT, value=leaf)
        ndarray = self._recorder.memories.stands_for.get(id(leaf))
        if ndarray is not None and id(ndarray) in self._reachable:
            return StoredLeaf(OBJECT, self._number(OBJECT, ndarray, self.stores.objects))
        root, format = root_of(leaf), leaf._format
        holder = holder_of(leaf, self._recorder)
        if holder is not None and id(holder) in self._reachable:  # an ndarray, which stays what it is
            number = self._number(OBJECT, holder, self.stores.objects)
            steps = self._views(leaf)
            return StoredLeaf(MEMORY, number, format, steps) if steps else StoredLeaf(OBJECT, number)
        if id(root) in self._arguments:
            return StoredLeaf(ARGUMENT, self._arguments[id(root)], format, self._views(leaf))
        if id(leaf) in self._reachable:
            return StoredLeaf(OBJECT, self._number(OBJECT, leaf, self.stores.objects), format)
        is_captured = not self._is_traced(root) or id(root) in self._recorder.memories.written
        if id(root) in self._reachable and is_captured:
            return StoredLeaf(
                OBJECT, self._number(OBJECT, root, self.stores.objects), format, self._views(leaf)
            )
        if not self._is_traced(root):
            if self._is_traced(leaf):
                return StoredLeaf(OUTPUT, self._number(OUTPUT, leaf, self.stores.outputs), format)
            if id(root._data) in self._reachable:
                return StoredLeaf(
                    MEMORY, self._number(OBJECT, root._data, self.stores.objects), format, self._views(leaf)
                )
            return StoredLeaf(ARRAY, self._number(ARRAY, root, self.stores.arrays), format, self._views(leaf))
        if len(self._leaves_of_root[id(root)]) > 1:  # views of one array stay views of one
            return StoredLeaf(
                OUTPUT, self._number(OUTPUT, root, self.stores.outputs), format, self._views(leaf)
            )
        return StoredLeaf(OUTPUT, self._number(OUTPUT, leaf, self.stores.outputs), format)

    def _views(self, leaf: Any) -> tuple[tuple[Any, Any], ...]:
        """Return what makes a view of its root."""
        steps: list[tuple[Any, Any]] = []
        while type(leaf._view) is tuple:
            leaf, op, params = leaf._view
            if hasattr(op, "key"):  # a part, by numbers that vary
                steps.append((None, op.key(self._computed_index)))
            elif op is not None:
                steps.append((op, params))
        return tuple(reversed(steps))

    def _computed_index(self, number: Any) -> ComputedIndex:
        return ComputedIndex(self._number(OUTPUT, number, self.stores.outputs))

    def _number(self, kind: str, value: Any, values: list[Any]) -> int:
        """Return the number of a value among those of a kind."""
        if (kind, id(value)) not in self._numbers:
            self._numbers[kind, id(value)] = len(values)
            values.append(value)
        return self._numbers[kind, id(value)]


def _is_of_tracejit(leaf: Any) -> bool:
    """Return whether an object is one that this package keeps for itself in an object of a user's class."""
    return module_of(type(leaf)).partition(".")[0] == "tracejit"


def _is_whole(data: np.ndarray) -> bool:
    """Return whether an array is no part of another one."""
    base = data.base
    return base is None or (type(base) is np.ndarray and base.base is None and base.size == data.size == 1)
