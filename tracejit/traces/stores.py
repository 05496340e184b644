# SPDX-License-Identifier: BSD-3-Clause
"""The stores of a trace: the values that a replay puts into attributes, items and names of objects (Note [stores]).

It also puts contents into containers of the arguments (Note [containers of arguments]).
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.array import dlarray
from tracejit.call.path import Stored
from tracejit.call.signature import Call
from tracejit.capture.changes import Assignment
from tracejit.capture.places import OF_OBJECTS, look, present, put, put_attribute, reorder
from tracejit.capture.slots import AttributeSlot
from tracejit.capture.values import MISSING
from tracejit.ir import Where
from tracejit.ops import Op
from tracejit.record import recorder as recorders
from tracejit.record import views
from tracejit.traces.bases import shown
from tracejit.util.named_tuples import NamedTuple

# The kinds of leaves of a stored value: an output of the program, an argument, an object that the state locates, an
# array around an ndarray that it locates, a view that NumPy made of such an ndarray, an array that the function makes
# without the trace, a number that is added to what is there, a container among the arguments, or any other constant.
OUTPUT, ARGUMENT, CONTAINER, OBJECT, MEMORY, VIEW, ARRAY, INCREMENT, CONSTANT = (
    "output",
    "argument",
    "container",
    "object",
    "memory",
    "view",
    "array",
    "increment",
    "constant",
)


class StoredLeaf(NamedTuple):
    """A leaf of a stored value: what it is, and how it is found.

    kind        one of the constants above
    number      among those of its kind
    format      the labels of an array
    views       what makes a view of it: ops with their parameters, views that go by no op, such as diagonals, and,
                with no op, keys with outputs as indices
    value       of a constant, what is added, or which elements a view shows
    is_array    whether it has no axes and is an array all the same, which can be written
    """

    kind: str
    number: int = 0
    format: str | None = None
    views: tuple[tuple[Any, Any], ...] = ()
    value: Any = None
    is_array: bool = False


class ComputedIndex(NamedTuple):
    """An output in a key: the row x[x[:, 0].argmax()] is a view, by a number that the program computes."""

    number: int


class StoredValue(NamedTuple):
    """A value that is put into a place.

    change      its kind, name and place
    owner       the number of the object among those that the state locates
    treedef     of the value
    sources     of its leaves
    is_passed   whether the owner is a container among the arguments instead, and its number one of these
    """

    change: Assignment
    owner: int
    treedef: tree.TreeDef
    sources: tuple[StoredLeaf, ...]
    is_passed: bool = False


class Stores:
    """The stores of one recording.

    Attributes:
        outputs: arrays of the recording that are stored, and numbers.
        returns: whether there are outputs: then they are the second part of the result of the trace.
        objects: owners of places, and other objects, that a replay has to find.
        arrays: that the function made without the trace.
        stores: what is stored.
        impossible: a place that no replay can store to, in words, and where.
        orders: dicts that got or lost keys in the recording, and the keys that it left, in their order.
        impossible_view: a place whose array shows the memory of one that no replay can find, likewise.
        unmade: a place that got an object which no replay can make, likewise.
        shared: a container among the arguments that the function met by another name too, its kind, and whether it was
            changed as an argument, or by the other name.
    """

    def __init__(self) -> None:
        self.outputs: list[Any] = []
        self.returns = False
        self.objects: list[Any] = []
        self.arrays: list[Any] = []
        self.stores: list[StoredValue] = []
        self.impossible: tuple[str, Where] | None = None
        self.orders: list[tuple[dict[Any, Any], list[Any]]] = []
        self.impossible_view: tuple[str, Where] | None = None
        self.unmade: tuple[str, Where] | None = None
        self.shared: tuple[str, str, bool] | None = None

    @property
    def places(self) -> list[str]:
        """The places in objects, as the user's code writes them."""
        return [store.change.place for store in self.of_objects]

    @property
    def of_objects(self) -> list[StoredValue]:
        """The stores to objects that the state locates."""
        return [store for store in self.stores if not store.is_passed]

    @property
    def used(self) -> list[int]:
        """The numbers of the containers among the arguments that are changed, or put elsewhere."""
        owners = {store.owner for store in self.stores if store.is_passed}
        leaves = [leaf for store in self.stores for leaf in store.sources]
        return sorted(owners | {leaf.number for leaf in leaves if leaf.kind == CONTAINER})

    def containers(self, call: Call) -> Sequence[Any] | None:
        """Return the containers among the arguments, if some are used; None if one of these is there twice."""
        used = self.used
        if not used:
            return ()
        containers = call.containers
        idents = [*map(id, containers)]
        return containers if all(idents.count(idents[number]) == 1 for number in used) else None

    @property
    def constants(self) -> list[Any]:
        """The stored values that the trace does not compute."""
        values = [s.value for store in self.stores for s in store.sources if s.kind == CONSTANT]
        return [*self.arrays, *values]

    def emitted(
        self, objects: Sequence[str], places: Sequence[str], containers: Sequence[str]
    ) -> Stored | None:
        """Return the statements that store, for a call path, or None if it cannot take an argument that is stored.

        Args:
            objects: the variables of the objects.
            places: the expressions of the arguments.
            containers: the expressions of the containers among them.
        """
        names: dict[str, Any] = {"put": put, "present": present, "argument": _argument, "alias": views.alias}
        names |= {"put_attribute": put_attribute, "of_objects": OF_OBJECTS}
        used = self.used
        takes = bool(used)
        containers = containers if used else ()
        if not all(containers):
            return None
        given = f"({''.join(f'{variable}, ' for variable in objects)})"
        stored = "stored" if self.returns else "()"
        passed = [f"c{number}" for number, _ in enumerate(containers)]
        lines = [f"{variable} = {place}" for variable, place in zip(passed, containers, strict=True)]
        puts = []
        for number, store in enumerate(self.stores):
            taken = {leaf.number: places[leaf.number] for leaf in store.sources if leaf.kind == ARGUMENT}
            if not all(taken.values()):
                return None
            takes = takes or bool(taken)
            change = store.change
            first = store.sources[0] if store.treedef.structure == tree.LEAF else None
            holder = f"c{store.owner}" if store.is_passed else objects[store.owner]
            owner = f"{holder}, kind{number}, name{number}"
            is_attribute = change.kind is AttributeSlot
            here = f"getattr({holder}, name{number})" if is_attribute else f"present({owner})"
            names |= {f"kind{number}": change.kind, f"name{number}": change.name}
            if first is not None and first.kind == OUTPUT and not (first.views or first.is_array):
                value = f"stored[{first.number}]"
            elif first is not None and first.kind == CONTAINER:
                value = f"c{first.number}"
            elif first is not None and first.kind in (CONSTANT, INCREMENT):
                value = f"value{number}" if first.kind == CONSTANT else f"{here} + value{number}"
                names[f"value{number}"] = first.value
            elif first is not None and first.kind == ARGUMENT and not first.views:
                value = f"alias(argument({taken[first.number]}), {first.format!r})"
            else:
                arguments = ", ".join(f"{n}: argument({place})" for n, place in taken.items())
                value = f"value{number}({stored}, {given}, {{{arguments}}}, ({''.join(f'{c}, ' for c in passed)}))"
                names[f"value{number}"] = partial(self._stored_value, store)
            lines.append(f"s{number} = {value}")
            if change.is_moved:
                names["missing"] = MISSING
                puts.append(f"put({owner}, missing)")
            if is_attribute and not (first is not None and first.kind == CONSTANT and first.value is MISSING):
                setter = f"(of_objects if type({holder}).__setattr__ is of_objects else put_attribute)"
                puts.append(f"{setter}({holder}, name{number}, s{number})")
            else:
                puts.append(f"put({owner}, s{number})")
        return Stored([*lines, *puts], names, self.returns, takes, containers, used)

    def _stored_value(
        self,
        store: StoredValue,
        outputs: Sequence[Any],
        objects: Sequence[Any],
        arguments: Mapping[int, dlarray],
        containers: Sequence[Any],
    ) -> Any:
        """Return a value that is stored."""
        return self._values((store,), outputs, arguments, objects, containers)[0]

    def _values(
        self, stores: Sequence[StoredValue], outputs: Sequence[Any], arguments: Mapping[int, dlarray],
        objects: Sequence[Any], containers: Sequence[Any],
    ) -> list[Any]:  # fmt: skip
        arrays = [array.copy() for array in self.arrays]
        given = {OUTPUT: outputs, ARGUMENT: arguments, OBJECT: objects, ARRAY: arrays, CONTAINER: containers}
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
        """Return what is at the places in objects now."""
        return [look(objects[store.owner], store.change.kind, store.change.name) for store in self.of_objects]

    def put_back(self, objects: Sequence[Any], values: Sequence[Any]) -> None:
        """Put what values() returned at the places again."""
        for store, value in zip(self.of_objects, values, strict=True):
            _put(store, objects, value)

    def commit(
        self, outputs: Sequence[Any], call: Call, objects: Sequence[Any], containers: Sequence[Any]
    ) -> None:
        """Put the values where they belong.

        Args:
            outputs: arrays and numbers that the program or the recording computed.
            call: of the function.
            objects: those of now.
            containers: among the arguments.
        """
        is_taken = any(leaf.kind == ARGUMENT for store in self.stores for leaf in store.sources)
        arguments = _arguments(call) if is_taken else {}
        values = self._values(self.stores, outputs, arguments, objects, containers)
        for store, value in zip(self.stores, values, strict=True):
            _put(store, containers if store.is_passed else objects, value)

    def commit_recorded(self, outputs: Sequence[Any], containers: Sequence[Any], call: Call) -> None:
        """Put the values of the recording where they belong, and release the objects."""
        objects, self.objects = self.objects, []
        orders, self.orders = self.orders, []
        self.commit(outputs, call, objects, containers)
        for space, keys in orders:
            reorder(space, keys)

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
            source.number if source.kind in (OUTPUT, ARGUMENT, CONTAINER) else 0,
            source.format,
            views,
            content,
        )


def _put(store: StoredValue, objects: Sequence[Any], value: Any) -> None:
    owner, change = objects[store.owner], store.change
    if change.is_moved:
        put(owner, change.kind, change.name, MISSING)
    put(owner, change.kind, change.name, value)


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
    if source.is_array and views.is_scalar(value):
        value = views.without_axes(value)
    for op, params in source.views:
        if op is None:
            value = value[tuple([_index(entry, given[OUTPUT]) for entry in params])]
        elif isinstance(op, Op):
            value = recorders.apply_op(op, (value,), params)
        else:
            value = views.seen(value, op, None if value._value is None else op.of(value))
    return views.alias(value, source.format) if source.views and value._format != source.format else value


NO_STORES = Stores()
