# SPDX-License-Identifier: BSD-3-Clause
"""The walk from the roots of a snapshot to everything that a recording read, as guards and their lines."""

import types
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from operator import is_
from typing import Any, NamedTuple

import numpy as np

from tracejit.array import dlarray
from tracejit.aval import Aval
from tracejit.call import signature
from tracejit.capture import provenance
from tracejit.capture.arrays import Inputs, SeenArray
from tracejit.capture.guards import SMALL_BYTES, UNNAMED, ContentGuard, GuardTest, NameGuard
from tracejit.capture.objects import ForeignArray, Observed, ObservedArray, ObservedMember, ObservedWrapper
from tracejit.capture.slots import DEFAULTS, Slot
from tracejit.capture.snapshot import Snapshot
from tracejit.capture.values import (
    MAPPINGS,
    MISSING,
    SETS,
    data_of,
    differs,
    elements,
    held_by,
    is_atom,
    plain,
    same_elements,
)
from tracejit.ir import Where
from tracejit.record import recorder
from tracejit.util import text

_MOST_LOOSE_BYTES = 1 << 24  # of a loose array that can be compared
_NO_MEMORY = frozenset({types.CodeType, types.BuiltinFunctionType, type, np.ufunc})
_SHOWN = 60  # characters of a value


class _Site(NamedTuple):
    """A variable of the generated function, what binds it, what the user calls it and where it is read."""

    variable: str
    before: str
    name: str
    where: tuple[str, int]


class _LooseArray(NamedTuple):
    """An array whose contents are read in ways that are not followed (Note [loose arrays])."""

    array: np.ndarray
    data: str
    name: str
    where: tuple[str, int]
    is_buffer: bool  # memory that is no array, whose numbers are not told from Python's own


class GuardWriter:
    """The guards of a recording.

    Args:
        snapshot: what was observed.
        seen: arrays that entered the recording, in order; those that are no inputs are marked.
        computed: returns the constants of the trace and the results that do not stand in the user's code.
        taken: contents of dlarrays whose values were read outside the trace, by id of their data.
        results: ids of data that the function returned.

    Attributes:
        guards: what is compared.
        lines: the tests of the guards.
        checks: the tests of sizes, dtypes and layouts, which an executor makes too.
        changed: what the function read and changed itself, in words, and where.
        unguarded: what cannot be compared, in words, and where it is read.
        contents: the guards of loose arrays, by their numbers.
        names: what the lines refer to.
    """

    def __init__(
        self, snapshot: Snapshot, seen: Sequence[SeenArray], computed: Callable[[], list[np.ndarray]],
        taken: Mapping[int, tuple[np.ndarray, bytes]], results: set[int],
    ) -> None:  # fmt: skip
        self._snapshot = snapshot
        self._seen = seen
        self._computed = computed
        self._taken = taken
        self._results = results
        self._inputs = Inputs(seen, taken)
        self.guards: list[NameGuard] = []
        self.lines: list[GuardTest] = []
        self.checks: list[GuardTest] = []
        self.changed: tuple[str, Where] | None = None
        self.unguarded: tuple[str, Where] | None = snapshot.unseen
        self.contents: dict[int, ContentGuard] = {}
        self.names: dict[str, Any] = {
            "dlarray": dlarray, "ndarray": np.ndarray, "differs": differs, "same": _same_atoms, "view": _view,
            "part_of": signature.array_part, "packed": signature.packed, "is_set": _is_set, "seen": _seen_by_numpy,
            "check_open": recorder.check_open, "memory": _memory,
            "held_by": held_by, "plain": plain, "remembers": _remembers,
        }  # fmt: skip
        self._constants = (f"g{i}" for i in count())
        self._constant_names: dict[int, str] = {}
        self._variables = (f"v{i}" for i in count())
        self._reached: dict[
            int, tuple[str, str]
        ] = {}  # by id of an object: its variable and its name in words
        self._queue: deque[Observed] = deque()
        self._loose: list[_LooseArray] = []
        for ident, name in snapshot.roots.items():
            observed = snapshot.objects[ident]
            self._reached[ident] = (self._constant(observed.value), name)
            self._queue.append(observed)
        while self._queue:
            self._slots(self._queue.popleft())
        self._fresh_arrays()
        self._compare_loose()

    @property
    def inputs(self) -> list[SeenArray]:
        """The arrays that are fetched."""
        return [entry for entry in self._seen if entry.is_input]

    def arrays(self, within: bool = False) -> list[str]:
        """Return the expressions for the inputs, after the lines: see Inputs.expressions."""
        return self._inputs.expressions(within)

    # Names, guards and lines

    def _constant(self, value: Any) -> str:
        name = self._constant_names.get(id(value))
        if name is None:
            name = self._constant_names[id(value)] = next(self._constants)
            self.names[name] = value
        return name

    def _literal(self, value: Any) -> str:
        """Return the text of a short literal, or the name of a constant."""
        is_short = type(value) is int and value.bit_length() <= 64
        return (
            repr(value)
            if is_short or type(value) in (str, bool, bytes, type(None))
            else self._constant(value)
        )

    def _guard(
        self, site: _Site, value: str, condition: str, *, is_told: bool = False, after: str = "", dlarray: str = ""
    ) -> int:  # fmt: skip
        """Append a guard that fails under a condition; return its number."""
        number = len(self.guards)
        self.guards.append(NameGuard(site.name, value, site.where if site.where[0] else None, is_told))
        self.lines.append(GuardTest(number, condition, site.before, after, dlarray))
        return number

    def _note_change(self, name: str, where: tuple[str, int]) -> None:
        if self.changed is None:
            self.changed = (name, where if where[0] else None)

    # Objects

    def _slots(self, observed: Observed) -> None:
        owner, name = self._reached[id(observed.value)]
        for slot in observed.slots.values():
            if slot.is_read:
                path = slot.path(name)
                if slot.has_changed(observed) and not _is_traced(slot.look(observed, slot.name)):
                    self._note_change(path, slot.where)
                self._slot(owner, path, slot)
        if isinstance(observed, ObservedWrapper) and observed.memory is not None:
            self._remembered(observed, name)
        if observed.held is not None:
            if not same_elements(observed.held, tuple(elements(observed.value))):
                self._note_change(name, observed.where)
            self._held(observed, observed.held, _Site(owner, "", name, observed.where))

    def _slot(self, owner: str, name: str, slot: Slot) -> None:
        absence = slot.absence(owner, self._literal)
        if absence is not None:
            self._guard(_Site("", "", name, slot.where), *absence)
        else:
            variable = next(self._variables)
            binding = f"{variable} = {slot.expression(owner, self._literal)}"
            self._value(_Site(variable, binding, name, slot.where), slot.value)

    def _value(self, site: _Site, value: Any) -> None:
        """Compare what a slot holds with what it held."""
        variable = site.variable
        if is_atom(value):
            expected = self._constant(value)
            condition = f"{variable} is not {expected} and differs({variable}, {expected})"
            self._guard(site, _shown(value), condition, is_told=True)
            member = self._snapshot.objects.get(id(value))
            if isinstance(member, ObservedMember) and id(value) not in self._reached:
                self._reached[id(value)] = (expected, site.name)
                self._queue.append(member)
            return
        if type(value) in (tuple, frozenset) and all(is_atom(part) for part in value):
            expected = self._constant(value)
            same = f"type({variable}) is {type(value).__name__} and same({variable}, {expected})"
            condition = f"{variable} is not {expected} and not ({same})"
            self._guard(site, _shown(value), condition, is_told=not site.name.startswith(DEFAULTS))
            return
        reached = self._reached.get(id(value))
        if reached is not None:
            first, name = reached
            is_root = id(value) in self._snapshot.roots
            shown = name if is_root else f"the same as {name}"
            self._guard(site, shown, f"{variable} is not {first}", is_told=not is_root)
            return
        self._reached[id(value)] = (variable, site.name)
        observed = self._snapshot.objects[id(value)]
        if isinstance(observed, ObservedArray):
            self._array(site, observed)
        elif isinstance(observed, ForeignArray):
            self._foreign(site, value)
        else:
            self._object(site, observed)
            self._queue.append(observed)

    def _object(self, site: _Site, observed: Observed) -> None:
        value = observed.value
        if observed.is_fixed:
            shown, is_told = _shown(value), observed.is_told
            if type(value) is types.CodeType:
                shown, is_told = f"the code at {value.co_filename}:{value.co_firstlineno}", False
            self._guard(site, shown, f"{site.variable} is not {self._constant(value)}", is_told=is_told)
            if observed.is_whole and type(value) is types.GeneratorType:
                self._note_change(site.name, site.where)  # by what is taken out of it
        else:
            condition = f"type({site.variable}) is not {self._constant(type(value))}"
            self._guard(site, f"a {type(value).__name__}", condition)
        if observed.is_loose and observed.may_share_memory and type(value) not in _NO_MEMORY:
            self._buffer(site, value)

    def _remembered(self, observed: ObservedWrapper, name: str) -> None:
        """Compare what a function with a cache remembers, and what is read of it."""
        remembered = observed.remembered() if observed.memory else []
        keys, entries, results = zip(*remembered, strict=True) if remembered else ((), (), ())
        arguments = ", ".join(map(self._constant, (observed, observed.memory, keys, entries, results)))
        site = _Site("", "", f"what {name} remembers", observed.where)
        self._guard(site, text.count(len(results), "result"), f"not remembers({arguments})", is_told=True)
        for result in results:
            if not is_atom(result):
                variable = next(self._variables)
                self._value(
                    site._replace(variable=variable, before=f"{variable} = {self._constant(result)}"), result
                )

    def _held(self, observed: Observed, held: tuple[Any, ...], site: _Site) -> None:
        """Compare what a container holds."""
        value, owner = observed.value, site.variable
        if type(value) in SETS:
            condition = f"{owner} != {self._constant(frozenset(value))}"
            self._guard(site, _shown(value), condition, is_told=True)
            return
        if all(is_atom(part) for part in held):
            self._guard(site, _shown(value), f"not same({owner}, {self._constant(held)})", is_told=True)
            return
        parts, names = held, [f"{site.name}[{i}]" for i in range(len(held))]
        condition = f"len({owner}) != {len(held)}"
        source = owner
        if type(value) is np.ndarray:
            condition = f"{owner}.shape != {value.shape} or {owner}.dtype != object"
            source = f"{owner}.flat"
        if type(value) in MAPPINGS:
            keys, parts = held[::2], held[1::2]
            names = [f"{site.name}[{text.shown(key)}]" for key in keys]
            condition = f"[*{owner}] != {self._constant([*keys])}"
            source = f"{owner}.values()"
        variables = [next(self._variables) for _ in parts]
        self._guard(site, f"{len(parts)} elements", condition, after=f"{', '.join(variables)}, = {source}")
        for variable, part, name in zip(variables, parts, names, strict=True):
            self._value(_Site(variable, "", name, site.where), part)

    # Arrays

    def _array(self, site: _Site, observed: ObservedArray) -> None:
        value, array, name, variable = observed.value, data_of(observed.value), site.name, site.variable
        is_dlarray = type(value) is dlarray
        data = f"{variable}d" if is_dlarray else variable
        inputs = self._inputs.by_data.get(id(array), [])
        if is_dlarray and value._value is not None:
            if id(value._value) not in self._inputs.by_value:
                condition = f"type({variable}) is not dlarray or {variable}._value is None"
                self._guard(site, "an array of a trace", condition)
                return
            inputs = [self._inputs.by_value[id(value._value)]]
        number = self._array_type(site, value, data)
        views = self._inputs.views_of(array)
        if is_dlarray and (value._value is not observed.tape or array is not observed.data):
            self._note_change(name, site.where)  # assigned to by index
        if any(not entry.is_same for entry in (*inputs, *views)) or len(inputs) > 1:
            self._note_change(name, site.where)
        expected = self._constant(signature.array_part(array))
        self.checks.append(GuardTest(number, f"part_of({data}) != {expected}"))
        if views or not inputs:  # an executor checks what is an input
            condition = f"{data}.shape != {array.shape} or {data}.dtype != {self._constant(array.dtype)}"
            condition += f" or not {data}.flags.c_contiguous" if views else ""
            self.lines.append(GuardTest(number, condition))
        for entry in inputs:
            self._inputs.fetch(entry, name, data, variable if is_dlarray else None)
        for entry in views:
            self._fetch_view(entry, name, array, data)
        self._contents(site, observed, data, inputs, views)

    def _array_type(self, site: _Site, value: Any, data: str) -> int:
        """Compare the class and the labels of an array; return the number of the guard."""
        variable, shown = site.variable, _described(value)
        if type(value) is not dlarray:
            return self._guard(site, shown, f"type({variable}) is not ndarray", is_told=True)
        condition = f"type({variable}) is not dlarray or {variable}._format != {value._format!r}"
        after = f"{data} = {variable}._data"
        return self._guard(site, shown, condition, is_told=True, after=after, dlarray=variable)

    def _contents(
        self, site: _Site, observed: ObservedArray, data: str, inputs: Sequence[SeenArray], views: Sequence[SeenArray]
    ) -> None:  # fmt: skip
        """Compare the elements of an array that something else than the trace can read."""
        array, name = data_of(observed.value), site.name
        places = {place for entry in inputs for place in entry.places}
        is_computed_with = (
            observed.is_computed_with
            or (observed.is_indexed and not views)
            or self._inputs.has_other_view(array, views)
            or any(place not in places for place in observed.computed)
        )
        is_input = bool(inputs or views) and not is_computed_with
        taken = self._taken.get(id(array))
        content = taken[1] if taken else observed.content
        if content is not None and (taken or not is_input):
            if observed.is_large:
                self.unguarded = self.unguarded or (name, observed.where)
            elif array.tobytes() != content:
                self._note_change(name, observed.where)
            else:
                contents = _Site(data, "", f"what is in {name}", observed.where)
                condition = f"{data}.tobytes() != {self._constant(content)}"
                self._guard(contents, "as it was", condition, is_told=True)
        is_loose = observed.is_loose or any(place not in places for place in observed.passed)
        if type(observed.value) is np.ndarray and is_input and is_loose:
            self._loose.append(_LooseArray(array, data, name, observed.where, False))

    def _buffer(self, site: _Site, value: Any) -> None:
        """Memory that NumPy can look at and others can write to: views of it are made again, and it is loose."""
        array = _memory(value)
        if array is None:
            return
        for entry in self._inputs.of_memory(array):
            if not entry.is_same:
                self._note_change(site.name, site.where)
            self._fetch_view(entry, site.name, array, site.variable)
        data = f"{site.variable}m"
        buffer = site._replace(before=f"{data} = memory({site.variable})")
        self._guard(buffer, f"{array.size} bytes", f"{data}.size != {array.size}")
        self._loose.append(_LooseArray(array, data, site.name, site.where, True))

    def _foreign(self, site: _Site, value: Any) -> None:
        """An array of another library, whose memory NumPy can look at."""
        variable, name = site.variable, site.name
        try:
            array = _seen_by_numpy(value)
        except Exception:  # whatever that library raises: it cannot have been an operand
            self._guard(site, f"a {type(value).__name__}", f"{variable} is not {self._constant(value)}")
            return
        data = f"{variable}d"
        self._loose.append(_LooseArray(array, data, name, site.where, False))
        condition = f"type({variable}) is not {self._constant(type(value))}"
        after = f"{data} = seen({variable})"
        number = self._guard(site, _described(array), condition, is_told=True, after=after)
        expected = self._constant(signature.array_part(array))
        self.checks.append(GuardTest(number, f"part_of({data}) != {expected}"))
        for entry in self._seen:
            if _memory_of(entry.data) == _memory_of(array):
                if not entry.is_same:
                    self._note_change(name, site.where)
                self._inputs.fetch(entry, name, data)

    def _fetch_view(self, entry: SeenArray, name: str, array: np.ndarray, source: str) -> None:
        """Fetch a view of an array by an expression for that."""
        offset = entry.data.ctypes.data - array.ctypes.data
        view = self._constant((entry.data.shape, entry.data.dtype, offset, entry.data.strides))
        self._inputs.fetch(entry, f"a view of {name}", f"view({source}, *{view})")

    def _fresh_arrays(self) -> None:
        """Decide on the arrays that no path leads to (Note [fresh arrays])."""
        inputs = self._inputs
        rest = [entry for entry in self._seen if not inputs.is_fetched(entry)]
        was_held = {id(entry) for entry in rest if entry.array is None and inputs.is_held(entry)}
        self._snapshot.keep_only(self._reached)
        for entry in rest:
            if entry.array is not None:
                name = f"an array of the evaluation around it {UNNAMED}"
                self.unguarded = self.unguarded or (name, None)
                inputs.fetch(entry, name, "None")
                continue
            is_held = id(entry) in was_held and (inputs.is_held(entry) or inputs.shares_memory(entry))
            is_kept = is_held and id(entry.data) not in self._results
            entry.is_input = is_kept and entry.is_same and len(inputs.by_data[id(entry.data)]) == 1
            if entry.is_input:
                name = f"an array at {id(entry.data):#x} {UNNAMED}"
                inputs.fetch(entry, name, self._constant(entry.data))
                self.guards.append(NameGuard(name, _described(entry.data), None, True))

    def _compare_loose(self) -> None:
        """Compare the contents of loose arrays (Note [loose arrays])."""
        if not self._loose:
            return
        branches = self._snapshot.branches_on_untracked
        copies = [entry.copy for entry in self._seen if not entry.is_input]
        constants = [*self._computed(), *copies]
        for array, data, name, where, is_buffer in self._loose:
            if is_buffer:
                pass
            elif array.nbytes <= SMALL_BYTES:
                if not (constants or branches or self._snapshot.extracts_untracked):
                    continue
            elif not provenance.can_be(array, constants):
                continue
            if array.nbytes > _MOST_LOOSE_BYTES:
                self.unguarded = self.unguarded or (name, where)
                continue
            guard = ContentGuard(array, branches)
            known = self._constant(guard)
            condition = (
                f"{data}.tobytes() != {known}.content" if guard.content else f"{known}.differs({data})"
            )
            number = self._guard(
                _Site(data, "", f"what is in {name}", where), "as it was", condition, is_told=True
            )
            self.lines[-1] = self.lines[-1]._replace(content=known, data=data)
            self.contents[number] = guard


# What the lines refer to


def _shown(value: Any) -> str:
    shown = text.shown(value)
    return shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 3]}..."


def _described(array: Any) -> str:
    data = data_of(array)
    return str(Aval(data.shape, getattr(array, "_format", None), data.dtype))


def _is_traced(value: Any) -> bool:
    """Return whether a value is an array of a trace, which cannot be read once the trace has ended."""
    return type(value) is dlarray and value._value is not None


def _same_atoms(value: Any, held: Any) -> bool:
    return value == held if type(value) is frozenset else same_elements(tuple(held), tuple(elements(value)))


def _seen_by_numpy(value: Any) -> np.ndarray:
    return recorder.as_array(value)._data  # type: ignore[no-any-return]


def _memory(value: Any) -> Any:
    """Return memory as an ndarray, if NumPy can look at it and it can change; or None."""
    try:
        array = np.frombuffer(value, np.uint8)
        return array if array.flags.writeable else None
    except (TypeError, ValueError, BufferError):
        return None


def _remembers(
    cached: ObservedWrapper, memory: dict[Any, Any], keys: Sequence[Any], entries: Sequence[Any], results: Sequence[Any]
) -> bool:  # fmt: skip
    """Return whether a function with a cache still remembers the results of some calls."""
    if not all(map(is_, map(memory.get, keys), entries)):
        return False
    most = cached.value.cache_parameters()["maxsize"]
    if most is None or len(memory) < most:
        return True
    # A full cache uses the links of its list again.
    now = {id(key): result for key, _, result in cached.remembered()}
    return all(now.get(id(key), MISSING) is result for key, result in zip(keys, results, strict=True))


def _memory_of(array: np.ndarray) -> Any:
    return (array.ctypes.data, array.shape, array.strides, array.dtype)


def _view(
    array: np.ndarray, shape: tuple[int, ...], dtype: np.dtype, offset: int, strides: tuple[int, ...]
) -> np.ndarray:
    return np.ndarray(shape, dtype, array, offset, strides)


def _is_set(function: Any, number: int) -> bool:
    try:
        function.__closure__[number].cell_contents  # noqa: B018 - raises where nothing is in it
    except ValueError:
        return False
    return True
