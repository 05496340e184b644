# SPDX-License-Identifier: BSD-3-Clause
"""The guards of arrays: types, layouts, and contents where code outside the trace reads them."""

import gc
import weakref
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from tracejit.array import dlarray
from tracejit.aval import Aval
from tracejit.call import signature
from tracejit.capture.arrays import Inputs, SeenArray
from tracejit.capture.captured_places import places_of_arrays
from tracejit.capture.differentiated import Differentiated
from tracejit.capture.guards import CONTENTS_OF, UNNAMED, ContentGuard, GuardList, GuardTest, NameGuard, Site
from tracejit.capture.objects import ObservedArray
from tracejit.capture.snapshot import Snapshot
from tracejit.capture.values import data_of
from tracejit.ir import Where
from tracejit.record import recorder
from tracejit.record.state import CapturedPlace
from tracejit.util.devices import address
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.uninterrupted import is_of_handler

_MANY_BYTES = 1 << 20  # take 0.05 ms and more to compare, which is worth a warning
_MOST_LOOSE_BYTES = 1 << 28  # of a loose array that can be compared
_MOST_BUFFER_BYTES = 1 << 24  # of other memory that can be


class _LooseArray(NamedTuple):
    """An array whose contents are read in ways that are not followed (Note [loose arrays])."""

    array: np.ndarray
    data: str
    name: str
    where: tuple[str, int]
    is_buffer: bool = False  # memory that is no array, whose numbers are not told from Python's own
    is_written: bool = False  # by code outside the trace, where its elements are not yet what it writes
    is_changed: bool = False  # by the trace


class TraceWrites:
    """The writes of a trace into ndarrays that it captures.

    Attributes:
        memory: the ndarrays.
        places: in the user's code, as user_place() gives them.
        through: ndarrays of which the recording has views, beside these.
        made: ids of ndarrays that are written and that no path leads to.
    """

    __slots__ = ("made", "memory", "places", "through")

    def __init__(self) -> None:
        self.memory: list[np.ndarray] = []
        self.places: set[Any] = set()
        self.through: list[np.ndarray] = []
        self.made: set[int] = set()

    def note(self, array: np.ndarray, is_known: bool, place: Any) -> None:
        """Note a write into an ndarray, to which a path leads if it is known."""
        self.places.add(place)
        if not is_known:  # a reference to it would count as one that the function keeps
            self.made.add(id(array))
        elif all(array is not other for other in self.memory):
            self.memory.append(array)

    def change(self, array: np.ndarray) -> bool:
        """Return whether elements of an array are written."""
        return any(np.may_share_memory(array, memory) for memory in self.memory)


class ArrayGuards:
    """The guards of the arrays among what was observed.

    Args:
        guards: to which they are added.
        snapshot: what was observed.
        seen: arrays that entered the recording, in order; those that are no inputs are marked.
        has_computed: returns whether a constant of the trace, or a result, does not stand in the user's code.
        taken: contents of dlarrays whose values were read outside the trace, by id of their data.
        results: ids of data that the function returned.
        selected: places where plain NumPy selected elements of ndarrays.
        writes: of the trace.
        given: the owners of the ndarrays that the function returned, as constants.

    Attributes:
        inputs: the expressions that fetch the arrays.
        compared: a large array that is compared at each call, its MiB, and where it is read.
    """

    def __init__(
        self, guards: GuardList, snapshot: Snapshot, seen: Sequence[SeenArray],
        has_computed: Callable[[], bool], taken: Mapping[int, tuple[np.ndarray, bytes]], results: set[int],
        selected: Collection[Any], writes: TraceWrites, given: Sequence[weakref.ref[np.ndarray]],
    ) -> None:  # fmt: skip
        self._guards = guards
        self._snapshot = snapshot
        self._seen = seen
        self._has_computed = has_computed
        self._taken = taken
        self._results = results
        self._selected = set(selected)
        self._writes = writes
        self._given = given
        self._loose: list[_LooseArray] = []
        self._ndarrays: list[tuple[np.ndarray, Site]] = []  # with their variables
        self._parts: list[
            tuple[np.ndarray, Site]
        ] = []  # dlarrays that are no inputs, which may be parts of these
        # By the ids of inputs: these, and the first variables of their elements, with names in words.
        self._fetched: dict[int, tuple[SeenArray, Site]] = {}
        self.compared: tuple[str, int, Where] | None = None
        self.inputs = Inputs(seen, taken)

    @cached_property
    def _places(self) -> dict[int, list[CapturedPlace]]:
        """The places that hold ndarrays, by the ids of these, as long as all that was observed is there."""
        return places_of_arrays(self._snapshot)

    def array(self, site: Site, observed: ObservedArray) -> None:
        value, array, name, variable = observed.value, data_of(observed.value), site.name, site.variable
        is_dlarray = type(value) is dlarray
        data = f"{variable}d" if is_dlarray else variable
        inputs = self.inputs.by_data.get(id(array), [])
        if is_dlarray and value._value is not None:
            if id(value._value) not in self.inputs.by_value:
                condition = f"type({variable}) is not dlarray or {variable}._value is None"
                self._guards.add(site, "an array of a trace", condition)
                return
            inputs = [self.inputs.by_value[id(value._value)]]
        number = self._array_type(site, value, data)
        if type(value) is np.ndarray:
            self._ndarrays.append((value, site))
            self._how_it_is_kept(site._replace(before=""), value, observed.names)
        views = self.inputs.views_of(array)
        if is_dlarray and (value._value is not observed.tape or array is not observed.data):
            self._guards.note_change(name, site.where, value)  # assigned to by index
        if any(not entry.is_same for entry in (*inputs, *views)) or len(inputs) > 1:
            self._guards.note_change(name, site.where, value)
        expected = self._guards.constant(signature.array_part(array))
        self._guards.checks.append(GuardTest(number, self._another_part(data, array, expected)))
        if views or not inputs:  # an executor checks what is an input
            condition = (
                f"{data}.shape != {array.shape} or {data}.dtype != {self._guards.constant(array.dtype)}"
            )
            if not views:  # one of it may be stored, which a replay makes by the strides
                condition += f" or part_of({data}) != {expected}"
            elif array.flags.c_contiguous:  # views of it that are inputs have constant places in it
                condition += f" or not {data}.flags.c_contiguous"
            else:
                condition += f" or {data}.strides != {array.strides}"
            self._guards.tests.append(GuardTest(number, condition))
        if is_dlarray and not inputs and not views:
            self._parts.append((array, site._replace(variable=data)))
        for entry in inputs:
            first = self._fetched.setdefault(id(entry), (entry, site._replace(variable=data)))[1]
            if first.variable != data:  # a dlarray around the memory of another
                shown = f"an array over the memory of {first.name or 'the function'}"
                self._guards.add(site._replace(before=""), shown, f"{data} is not {first.variable}")
            self._fetch(number, entry, name, data, variable if is_dlarray else None)
        for entry in views:
            self._fetch_view(number, entry, name, array, data)
        self._contents(site, observed, data, inputs, views)

    def _array_type(self, site: Site, value: Any, data: str) -> int:
        """Compare the class and the labels of an array; return the number of the guard."""
        variable, shown = site.variable, described(value)
        if type(value) is not dlarray:
            return self._guards.add(site, shown, f"type({variable}) is not ndarray", is_told=True)
        condition = f"type({variable}) is not dlarray or {signature.other_format(variable, value._format)}"
        after = f"{data} = {variable}._data"
        return self._guards.add(site, shown, condition, is_told=True, after=after, dlarray=variable)

    def _how_it_is_kept(self, site: Site, array: np.ndarray, names: Container[str]) -> None:
        """Compare what attributes of an ndarray tell of its memory, beside sizes and strides, where they are read."""
        variable = site.variable
        if "flags" in names:
            self._guards.add(site, "with the same flags", f"{variable}.flags.num != {array.flags.num}")
        if "base" in names:
            is_part = array.base is not None
            shown = "a part of another array" if is_part else "no part of another array"
            self._guards.add(site, shown, f"({variable}.base is not None) is not {is_part}")

    def _contents(
        self, site: Site, observed: ObservedArray, data: str, inputs: Sequence[SeenArray], views: Sequence[SeenArray]
    ) -> None:  # fmt: skip
        """Compare the elements of an array that code outside the trace can read."""
        array, name = data_of(observed.value), site.name
        places = {place for entry in inputs for place in entry.places}
        # What plain NumPy selects may be a number, or an array that it computes with.
        by_numpy = [is_index for place, is_index in observed.selected if place not in places - self._selected]
        is_computed_with = (
            observed.is_computed_with
            or (any(by_numpy) and (not views or array.ndim == 1))
            or self.inputs.has_other_view(array, views)
            or any(place not in places for place in observed.computed)
        )
        is_computed_with = is_computed_with and not observed.is_exchanged  # all of it is recorded
        is_input = bool(inputs or views or observed.is_exchanged) and not is_computed_with
        is_changed = self._writes.change(array)
        is_written = not observed.is_exchanged and any(
            place not in self._writes.places for place in observed.written
        )
        is_written_only = is_written and not (inputs or views or observed.is_whole or is_computed_with)
        taken = self._taken.get(id(array))
        content = taken[1] if taken else observed.content
        # A view of an input can be written by a name that no path leads to.
        has_changed = (is_input or is_written) and observed.has_changed
        if has_changed or (is_written and is_changed):
            self._guards.note_change(name, observed.where, observed.value)
        if content is not None and (taken or not is_input) and not is_written_only:
            is_large = observed.is_large and not taken
            if array.nbytes > _MOST_LOOSE_BYTES:
                self._guards.refuse(name, observed.where)
            elif is_changed or (observed.has_changed if is_large else array.tobytes() != content):
                self._guards.note_change(name, observed.where, observed.value)
            else:
                contents = Site(data, "", f"{CONTENTS_OF}{name}", observed.where)
                condition = f"{data}.tobytes() != {self._guards.constant(content)}"
                if is_large:
                    condition = (
                        f"{self._guards.constant(ContentGuard(array, branches=False))}.differs({data})"
                    )
                    self._note_cost(array, name, observed.where)
                at = self._places.get(id(observed.value), ())
                self._guards.add(contents, "as it was", condition, is_told=True, places=at)
        is_loose = (
            observed.is_loose
            or bool(by_numpy)
            or any(place not in places for place in observed.passed)
            or any(_may_show(given(), array) for given in self._given)
        )
        if type(observed.value) is np.ndarray and is_input and is_loose and not observed.is_exchanged:
            self._loose.append(_LooseArray(array, data, name, observed.where, is_changed=is_changed))
        if is_written and not has_changed:
            self._loose.append(_LooseArray(array, data, name, observed.where, is_written=True))

    def buffer(self, site: Site, value: Any) -> None:
        """Memory that NumPy can look at and others can write to: views of it are made again, and it is loose."""
        array = memory_of(value)
        if array is None:
            return
        data = f"{site.variable}m"
        buffer = site._replace(before=f"{data} = memory({site.variable})")
        number = self._guards.add(buffer, f"{array.size} bytes", f"{data}.size != {array.size}")
        for entry in self.inputs.of_memory(array):
            if not entry.is_same:
                self._guards.note_change(site.name, site.where)
            self._fetch_view(number, entry, site.name, array, site.variable)
        self._loose.append(_LooseArray(array, data, site.name, site.where, is_buffer=True))

    def _another_part(self, data: str, array: np.ndarray, expected: str) -> str:
        """Return the condition under which an array has another size, dtype or layout than one whose part is given."""
        condition = f"part_of({data}) != {expected}"
        if type(array) is not np.ndarray or not signature.is_contiguous(array):
            return condition
        # Faster, and true of most arrays that have the same.
        plain = signature.CONTIGUOUS_AND_ALIGNED
        dtype = self._guards.constant(array.dtype)
        return (
            f"(type({data}) is not ndarray or {data}.shape != {array.shape} or {data}.dtype is not {dtype} "
            f"or {data}.flags.num & {plain} != {plain}) and {condition}"
        )

    def foreign(self, site: Site, value: Any) -> None:
        """An array of another library, whose memory NumPy can look at."""
        variable, name = site.variable, site.name
        try:
            array = seen_by_numpy(value)
        except Exception as error:  # whatever that library raises: it cannot have been an operand
            if is_of_handler(error):
                raise
            self._guards.add(
                site, f"a {type(value).__name__}", f"{variable} is not {self._guards.constant(value)}"
            )
            return
        data = f"{variable}d"
        self._loose.append(_LooseArray(array, data, name, site.where))
        condition = f"type({variable}) is not {self._guards.constant(type(value))}"
        after = f"{data} = seen({variable})"
        number = self._guards.add(site, described(array), condition, is_told=True, after=after)
        expected = self._guards.constant(signature.array_part(array))
        self._guards.checks.append(GuardTest(number, f"part_of({data}) != {expected}"))
        for entry in self._seen:
            if _location(entry.data) == _location(array):
                if not entry.is_same:
                    self._guards.note_change(name, site.where, value)
                self._fetch(number, entry, name, data)

    def _fetch(
        self, number: int, entry: SeenArray, name: str, source: str, within: str | None = None, is_view: bool = False
    ) -> None:  # fmt: skip
        """Fetch an array by an expression. What a program takes as it is, and not packed, has to be as it was."""
        if signature.is_packed(entry.data):
            self._guards.checks.append(GuardTest(number, f"not is_packed({source})"))
        elif is_view:
            expected = self._guards.constant(signature.array_part(entry.data))
            self._guards.checks.append(GuardTest(number, f"part_of({source}) != {expected}"))
        self.inputs.fetch(entry, name, source, within, is_view)

    def _fetch_view(self, number: int, entry: SeenArray, name: str, array: np.ndarray, source: str) -> None:
        """Fetch a view of an array by an expression for that."""
        offset = entry.data.ctypes.data - np.lib.array_utils.byte_bounds(array)[0]
        view = self._guards.constant((entry.data.shape, entry.data.dtype, offset, entry.data.strides))
        self._fetch(number, entry, f"a view of {name}", f"view({source}, *{view})", is_view=True)

    def fresh(self, reached: Container[int]) -> None:
        """Decide on the arrays that no path leads to (Note [fresh arrays])."""
        inputs = self.inputs
        unfetched = [entry for entry in self._seen if not inputs.is_fetched(entry)]
        rest = [entry for entry in unfetched if not entry.is_number]
        for entry in unfetched:
            entry.is_input = not entry.is_number  # those are of objects that the call makes
        was_held = {id(entry) for entry in rest if entry.array is None and inputs.is_held(entry)}
        self._snapshot.keep_only(reached)
        if any(id(entry) in was_held and self._is_held(entry) for entry in rest):
            gc.collect()  # objects that refer to each other, or an exception and its frame, hold what nobody has
        for entry in rest:
            if entry.array is not None:
                name = f"an array of the evaluation around it {UNNAMED}"
                self._guards.refuse(name, None)
                inputs.fetch(entry, name, "None")
                continue
            is_held = id(entry) in was_held and self._is_held(entry)
            is_kept = (
                is_held and id(entry.data) not in self._results and id(entry.data) not in self._writes.made
            )
            entry.is_input = is_kept and entry.is_same and len(inputs.by_data[id(entry.data)]) == 1
            if entry.is_input:
                name = f"an array at {id(entry.data):#x} {UNNAMED}"
                inputs.fetch(entry, name, self._guards.constant(entry.data))
                self._guards.guards.append(NameGuard(name, described(entry.data), None, True))

    def _is_held(self, entry: SeenArray) -> bool:
        return self.inputs.is_held(entry) or self.inputs.shares_memory(entry)

    def differentiated(self, derivatives: Differentiated) -> None:
        """Compare that arrays by which derivatives are taken are still arrays of their own."""
        derivatives.compare(self._fetched.values(), self._guards)

    def related(self) -> None:
        """Compare where arrays lie that share memory with one that the trace writes, which takes them for its parts."""
        for array, site in self._parts:
            for entry, whole in self._fetched.values():
                if np.may_share_memory(array, entry.data):
                    apart = distance(array, entry.data)
                    shown = f"an array at its place in {whole.name or 'an array of the function'}"
                    condition = f"apart({site.variable}, {whole.variable}) != {apart}"
                    self._guards.add(site._replace(before=""), shown, condition, is_told=True)
        through = {id(holder) for holder in self._writes.through}
        holders = [(other, others) for other, others in self._ndarrays if id(other) in through]
        for array, site in self._ndarrays if holders else ():
            for other, others in holders:
                if other is not array and np.may_share_memory(array, other):
                    condition = f"apart({site.variable}, {others.variable}) != {distance(array, other)}"
                    self._guards.add(site._replace(before=""), f"in the memory of {others.name}", condition)

    def loose(self) -> None:
        """Compare the contents of loose arrays (Note [loose arrays])."""
        if not self._loose:
            return
        places = places_of_arrays(self._snapshot)  # of what was reached
        branches = self._snapshot.branches_on_untracked
        has_constants = not all(entry.is_input for entry in self._seen) or self._has_computed()
        is_read = has_constants or branches or self._snapshot.extracts_untracked
        for array, data, name, where, is_buffer, is_written, is_changed in self._loose:
            if not (is_read or is_buffer or is_written):
                continue
            if is_changed:  # what NumPy read may be what the trace wrote
                self._guards.note_change(name, where, array)
                continue
            if array.nbytes > (_MOST_BUFFER_BYTES if is_buffer else _MOST_LOOSE_BYTES):
                self._guards.refuse(name, where)
                continue
            site = Site(data, "", f"{CONTENTS_OF}{name}", where)
            at = places.get(id(array), ())
            self._guards.add_content(site, ContentGuard(array, branches, is_written), at)
            self._note_cost(array, name, where)

    def _note_cost(self, array: np.ndarray, name: str, where: Where) -> None:
        if array.nbytes >= _MANY_BYTES:
            self.compared = (name, array.nbytes >> 20, where)


def _may_show(owner: np.ndarray | None, array: np.ndarray) -> bool:
    return owner is not None and np.may_share_memory(owner, array)


def described(array: Any) -> str:
    """Return sizes, labels and dtype of an array in words."""
    data = data_of(array)
    return str(Aval(data.shape, getattr(array, "_format", None), data.dtype))


def distance(array: np.ndarray, other: np.ndarray) -> int:
    """Return how many bytes the first element of an array lies behind that of another one."""
    return address(array) - address(other)


def seen_by_numpy(value: Any) -> np.ndarray:
    """Return an array of another library as an ndarray over the same memory."""
    return recorder.as_array(value)._data  # type: ignore[no-any-return]


def memory_of(value: Any) -> Any:
    """Return memory as an ndarray, if NumPy can look at it and it can change; or None."""
    try:
        array = np.frombuffer(value, np.uint8)
        return array if array.flags.writeable else None
    except (TypeError, ValueError, BufferError):
        return None


def _location(array: np.ndarray) -> Any:
    return (array.ctypes.data, array.shape, array.strides, array.dtype)
