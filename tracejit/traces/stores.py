# SPDX-License-Identifier: BSD-3-Clause
"""The stores of a trace: the values that a replay puts into attributes, items and names of objects (Note [stores])."""

import collections
import sys
import threading
import types
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.array import dlarray
from tracejit.call.path import Stored
from tracejit.call.signature import Call
from tracejit.capture.changes import Assignment, look, present, put
from tracejit.capture.increments import Increment
from tracejit.capture.state import CapturedState
from tracejit.capture.values import MAPPINGS, arrays_inside, is_atom, is_user_class
from tracejit.errors import TraceJitError
from tracejit.ir import Where
from tracejit.ops import Op
from tracejit.record import recorder as recorders
from tracejit.record import views
from tracejit.record.memory import root_of
from tracejit.record.number import Number
from tracejit.traces.bases import Bases, part_of, shown
from tracejit.util.named_tuples import NamedTuple

# The kinds of leaves of a stored value: an output of the program, an argument, an object that the state locates, an
# array around an ndarray that it locates, a view that NumPy made of such an ndarray, an array that the function makes
# without the trace, a number that is added to what is there, or any other constant.
OUTPUT, ARGUMENT, OBJECT, MEMORY, VIEW, ARRAY, INCREMENT, CONSTANT = (
    "output",
    "argument",
    "object",
    "memory",
    "view",
    "array",
    "increment",
    "constant",
)
_NAMESPACES = (types.FunctionType, types.ModuleType, types.SimpleNamespace, partial, threading.local)
_CONSTANTS = (type, types.BuiltinFunctionType, types.ModuleType, np.ufunc)


class StoredLeaf(NamedTuple):
    """A leaf of a stored value: what it is, and how it is found.

    kind        one of the constants above
    number      among those of its kind
    format      the labels of an array
    views       what makes a view of it: ops with their parameters, views that go by no op, such as diagonals, and,
                with no op, keys with outputs as indices
    value       of a constant, what is added, or which elements a view shows
    """

    kind: str
    number: int = 0
    format: str | None = None
    views: tuple[tuple[Any, Any], ...] = ()
    value: Any = None


class ComputedIndex(NamedTuple):
    """An output in a key: the row x[x[:, 0].argmax()] is a view, by a number that the program computes."""

    number: int


class StoredValue(NamedTuple):
    """A value that is put into a place.

    change      its kind, name and place
    owner       the number of the object among those that the state locates
    treedef     of the value
    sources     of its leaves
    """

    change: Assignment
    owner: int
    treedef: tree.TreeDef
    sources: tuple[StoredLeaf, ...]


class Stores:
    """The stores of one recording.

    Attributes:
        outputs: arrays of the recording that are stored, and numbers.
        returns: whether there are outputs: then they are the second part of the result of the trace.
        objects: owners of places, and other objects, that a replay has to find.
        arrays: that the function made without the trace.
        stores: what is stored.
        impossible: a place that no replay can store to, in words, and where.
        impossible_view: a place whose array shows the memory of one that no replay can find, likewise.
    """

    def __init__(self) -> None:
        self.outputs: list[Any] = []
        self.returns = False
        self.objects: list[Any] = []
        self.arrays: list[Any] = []
        self.stores: list[StoredValue] = []
        self.impossible: tuple[str, Where] | None = None
        self.impossible_view: tuple[str, Where] | None = None

    @property
    def places(self) -> list[str]:
        """The places, as the user's code writes them."""
        return [store.change.place for store in self.stores]

    @property
    def constants(self) -> list[Any]:
        """The stored values that the trace does not compute."""
        values = [s.value for store in self.stores for s in store.sources if s.kind == CONSTANT]
        return [*self.arrays, *values]

    def emitted(self, objects: Sequence[str], places: Sequence[str]) -> Stored | None:
        """Return the statements that store, for a call path, or None if it cannot take an argument that is stored.

        Args:
            objects: the variables of the objects.
            places: the expressions of the arguments.
        """
        names: dict[str, Any] = {"put": put, "present": present, "argument": _argument, "alias": views.alias}
        takes = False
        given = f"({', '.join(objects)},)"
        stored = "stored" if self.returns else "()"
        lines, puts = [], []
        for number, store in enumerate(self.stores):
            taken = {leaf.number: places[leaf.number] for leaf in store.sources if leaf.kind == ARGUMENT}
            if not all(taken.values()):
                return None
            takes = takes or bool(taken)
            change = store.change
            first = store.sources[0] if store.treedef.structure == tree.LEAF else None
            owner = f"{objects[store.owner]}, kind{number}, name{number}"
            names |= {f"kind{number}": change.kind, f"name{number}": change.name}
            if first is not None and first.kind == OUTPUT and not first.views:
                value = f"stored[{first.number}]"
            elif first is not None and first.kind in (CONSTANT, INCREMENT):
                value = f"value{number}" if first.kind == CONSTANT else f"present({owner}) + value{number}"
                names[f"value{number}"] = first.value
            elif first is not None and first.kind == ARGUMENT and not first.views:
                value = f"alias(argument({taken[first.number]}), {first.format!r})"
            else:
                arguments = ", ".join(f"{n}: argument({place})" for n, place in taken.items())
                value = f"value{number}({stored}, {given}, {{{arguments}}})"
                names[f"value{number}"] = partial(self._stored_value, store)
            lines.append(f"s{number} = {value}")
            puts.append(f"put({owner}, s{number})")
        return Stored([*lines, *puts], names, self.returns, takes)

    def _stored_value(
        self,
        store: StoredValue,
        outputs: Sequence[Any],
        objects: Sequence[Any],
        arguments: Mapping[int, dlarray],
    ) -> Any:
        """Return a value that is stored."""
        return self._values((store,), outputs, arguments, objects)[0]

    def _values(
        self, stores: Sequence[StoredValue], outputs: Sequence[Any], arguments: Mapping[int, dlarray],
        objects: Sequence[Any],
    ) -> list[Any]:  # fmt: skip
        arrays = [array.copy() for array in self.arrays]
        given = {OUTPUT: outputs, ARGUMENT: arguments, OBJECT: objects, ARRAY: arrays}
        values = []
        for store in stores:
            first = store.sources[0] if store.sources else None
            if first is not None and first.kind == INCREMENT:
                values.append(
                    present(objects[store.owner], store.change.kind, store.change.name) + first.value
                )
            else:
                leaves = [_value(source, given) for source in store.sources]
                values.append(tree.unflatten(store.treedef, leaves))
        return values

    def values(self, objects: Sequence[Any]) -> list[Any]:
        """Return what is at the places now."""
        return [look(objects[store.owner], store.change.kind, store.change.name) for store in self.stores]

    def put_back(self, objects: Sequence[Any], values: Sequence[Any]) -> None:
        """Put what values() returned at the places again."""
        for store, value in zip(self.stores, values, strict=True):
            put(objects[store.owner], store.change.kind, store.change.name, value)

    def commit(self, outputs: Sequence[Any], call: Call, objects: Sequence[Any]) -> None:
        """Put the values where they belong.

        Args:
            outputs: arrays and numbers that the program or the recording computed.
            call: of the function.
            objects: those of now.
        """
        is_taken = any(leaf.kind == ARGUMENT for store in self.stores for leaf in store.sources)
        arguments = _arguments(call) if is_taken else {}
        self.put_back(objects, self._values(self.stores, outputs, arguments, objects))

    def commit_recorded(self, outputs: Sequence[Any], call: Call) -> None:
        """Put the values of the recording where they belong, and release the objects."""
        objects, self.objects = self.objects, []
        self.commit(outputs, call, objects)

    def difference(self, other: "Stores") -> str | None:
        """Return how the stores of another recording differ, in words, or None."""
        mine, theirs = self._comparable(), other._comparable()
        for place in [*mine, *theirs]:
            if place in mine and place not in theirs and self._is_reference(place):
                continue  # it is there already
            if place not in mine or place not in theirs:
                return f"only one of them assigned {place}"
            if mine[place] != theirs[place]:
                return f"{place} was assigned in a different way"
        return None

    def _is_reference(self, place: str) -> bool:
        """Return whether objects that the state locates are stored as they are."""
        return all(
            leaf.kind in (OBJECT, CONSTANT) and not leaf.views
            for store in self.stores
            for leaf in store.sources
            if store.change.place == place
        )

    def _comparable(self) -> dict[str, Any]:
        return {
            store.change.place: (
                store.treedef.structure,
                str(store.treedef.orders),
                [self._shown(source) for source in store.sources],
            )
            for store in self.stores
        }

    def _shown(self, source: StoredLeaf) -> Any:
        """Return a source as something that can be compared with that of another recording."""
        views = tuple([(_told(op), str(params)) for op, params in source.views])
        content: Any = repr(source.value)
        if source.kind == ARRAY:
            array = self.arrays[source.number]
            content = (array.shape, str(array.dtype), np.asarray(array).tobytes())
        return (
            source.kind,
            source.number if source.kind in (OUTPUT, ARGUMENT) else 0,
            source.format,
            views,
            content,
        )


def _arguments(call: Call) -> dict[int, dlarray]:
    """Return the arrays of the arguments of a call, around the caller's memory unless that is in foreign byte order."""
    arrays: list[Any] = list(call.arrays)
    for number, memory in enumerate(call.memory):
        array = arrays[number]
        if array._data is not memory and memory.dtype.isnative:
            arrays[number] = dlarray._wrap(memory, array._format, array._value)
    return dict(enumerate(arrays))


def _argument(leaf: Any) -> dlarray:
    """Return the array of a leaf of the arguments that a call path has checked; without axes it is no number."""
    return leaf if type(leaf) is dlarray else dlarray._wrap(leaf if leaf.ndim else leaf[...], None, None)


def _told(op: Any) -> Any:
    """Return what makes a view as something that can be compared with that of another recording."""
    if op is None or isinstance(op, Op):
        return op and op.name
    parts = [getattr(op, name) for name in type(op).__slots__]
    told = [x.tolist() if isinstance(x, np.ndarray) else repr(x) for x in parts if not callable(x)]
    return (op.name, str(told))


def _index(entry: Any, outputs: Sequence[Any]) -> Any:
    """Return an entry of a key with the numbers that the program computed."""
    if type(entry) is slice:
        return slice(_index(entry.start, outputs), _index(entry.stop, outputs), entry.step)
    if type(entry) is not ComputedIndex:
        return entry
    number = outputs[entry.number]
    return number if type(number) is dlarray and number._value is not None else int(number)


def _value(source: StoredLeaf, given: dict[str, Any]) -> Any:
    """Return a leaf of a stored value."""
    if source.kind == CONSTANT:
        return source.value
    if source.kind == ARGUMENT:
        value = given[ARGUMENT][source.number]
        value = views.alias(value, source.format if not source.views else value._format)
    elif source.kind == VIEW:
        return shown(given[OBJECT][source.number], source.value)
    elif source.kind == MEMORY:
        value = dlarray._wrap(given[OBJECT][source.number], source.format, None)
    else:
        value = given[source.kind][source.number]
    for op, params in source.views:
        if op is None:
            value = value[tuple([_index(entry, given[OUTPUT]) for entry in params])]
        elif isinstance(op, Op):
            value = recorders.apply_op(op, (value,), params)
        else:
            value = views.seen(value, op, None if value._value is None else op.of(value))
    return views.alias(value, source.format) if source.views and value._format != source.format else value


class Collector:
    """The search for what a function that has ended has stored.

    Args:
        recorder: of the function.
        reads: its state.
        arguments: the number of arrays among the arguments.
    """

    def __init__(self, recorder: recorders.Recorder, reads: CapturedState, arguments: int) -> None:
        self._recorder = recorder
        self._changes, self._reachable = reads.changes()
        sources = recorder.memories.sources[:arguments]
        self._arguments = {id(array): number for number, (array, _) in enumerate(sources)}
        self._numbers: dict[tuple[str, int], int] = {}
        self._leaves_of_root: dict[int, set[int]] = {}
        self._bases = Bases(reads, self._changes) if self._changes else None
        self.stores = Stores()

    def collect(self) -> Stores:
        """Undo what can be stored again, and return it."""
        kept = []
        for change in self._changes:
            try:
                leaves, treedef = tree.flatten(change.after, is_leaf=lambda part: id(part) in self._reachable)
            except TraceJitError:  # a container that holds itself
                continue
            if all(map(self._is_storable, leaves)):
                # An array, a number or a text that the function makes is a constant, unless it reads what was there:
                # then it would be a different one after each call.
                is_made = not change.is_read and _is_of_user(change.owner)
                if is_made or any(map(self._is_array_of_trace, leaves)):
                    kept.append((change, leaves, treedef))
            elif any(self._is_traced(leaf) or self._holds_traced(leaf) for leaf in leaves):
                self.stores.impossible = self.stores.impossible or (change.place, change.where)
            elif _is_of_user(change.owner) and any(self._is_lost_view(leaf) for leaf in leaves):
                self.stores.impossible_view = self.stores.impossible_view or (change.place, change.where)
        for _, leaves, _ in kept:
            for leaf in leaves:
                if type(leaf) is dlarray:
                    self._leaves_of_root.setdefault(id(root_of(leaf)), set()).add(id(leaf))
        for change, leaves, treedef in kept:
            owner = self._number(OBJECT, change.owner, self.stores.objects)
            sources = tuple(map(self._source, leaves))
            kept_place = change._replace(owner=None, before=None, after=None)
            self.stores.stores.append(StoredValue(kept_place, owner, treedef, sources))
        self.stores.returns = bool(self.stores.outputs)
        for change, _, _ in reversed(kept):
            change.undo()
        return self.stores

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

    def _is_known(self, array: dlarray) -> bool:
        root = root_of(array)
        is_given = (
            id(root) in self._arguments or id(root) in self._reachable or id(root._data) in self._reachable
        )
        return is_given or self._is_traced(array)

    def _is_storable(self, leaf: Any) -> bool:
        if (
            isinstance(leaf, (*_CONSTANTS, Increment))
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
        return type(leaf) is np.ndarray and leaf.dtype != object and not self._is_storable(leaf)

    def _source(self, leaf: Any) -> StoredLeaf:
        """Return where a leaf comes from."""
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
        root, format = root_of(leaf), leaf._format
        if id(root) in self._arguments:
            return StoredLeaf(ARGUMENT, self._arguments[id(root)], format, self._views(leaf))
        if id(leaf) in self._reachable:
            return StoredLeaf(OBJECT, self._number(OBJECT, leaf, self.stores.objects), format)
        if id(root) in self._reachable and not self._is_traced(root):
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


def _is_of_user(owner: Any) -> bool:
    """Return whether an object is one that only the user's code assigns to."""
    kind = owner if isinstance(owner, type) else type(owner)
    return (
        kind in MAPPINGS
        or kind in (list, collections.deque)
        or is_user_class(kind)
        or isinstance(owner, (*_NAMESPACES, getattr(sys.modules.get("argparse"), "Namespace", type(None))))
    )


def _is_whole(data: np.ndarray) -> bool:
    """Return whether an array is no part of another one."""
    base = data.base
    return base is None or (type(base) is np.ndarray and base.base is None and base.size == data.size == 1)


NO_STORES = Stores()
