# SPDX-License-Identifier: BSD-3-Clause
"""The code that finds captured arrays again at each call and compares what else was read.

Note [guards]
When a recording ends, what was met (tracejit.heap) is walked from the roots along the cells that are read, and a
function is written that walks the same way at each call. It holds neither the arrays nor the objects on the way, only
their types, the atoms and the code of functions: another array of the same size, or another object of the same class,
is taken as it comes. For a method that computes x @ self.w * self.scale it is

    def fetch():
        try:
            v0 = g0.__self__
            if type(v0) is not g1: return None
            v1 = v0.w
            if type(v1) is not dlarray or v1._format != None or v1._value is not None: return None
            v1d = v1._data
            v2 = v0.scale
            if v2 is not g2 and differs(v2, g2): return None
            ...
        except (AttributeError, LookupError, TypeError, ValueError, NameError):
            return None
        return (v1d,)

An array that can be reached on two ways is one input, and the second way is compared with the first.

Note [fresh arrays]
An array on no way is taken by reference if somebody has it when the call is over, and is a constant of the trace if
nobody has: it was made in the call, and what it holds is compared when the trace is confirmed. What was met keeps
whatever it looked at, such as the arguments of a helper function; so all of it that no way leads to is let go before
references are counted. Of an array that was kept so, its memory must be gone with it too: a view may be
made in each call of an array that stays, or of the memory of something else than NumPy. And what NumPy can have
written into it must be known: ndarrays that are inputs of the trace are then compared as well, where they are read in a
way that is not followed (h[:] = w, or the arrays of a list).
"""

import re
import sys
import types
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from tracejit import signature, trace, words
from tracejit.array import dlarray
from tracejit.aval import Aval
from tracejit.heap import (
    MAPPINGS,
    MISSING,
    SETS,
    Cell,
    Heap,
    Thing,
    changed,
    data_of,
    differs,
    elements,
    is_atom,
    is_builtin,
    is_user_class,
    look,
    same_elements,
)
from tracejit.ir import Value, Where

UNNAMED = "that no name leads to"

_DEFAULTS = "defaults"
_SHOWN = 60  # characters of a value
_FAIL = "\0"  # stands for what is returned where a guard does not hold; no literal has it
_TRACED = re.compile(
    "\1(\\w+)\1"
)  # stands for whether a dlarray of that name is on a tape where it must not be
_ERRORS = "(AttributeError, LookupError, TypeError, ValueError, NameError)"


class Guard(NamedTuple):
    """Something a replay compares: how the user's code writes it, what it was, and where it is read."""

    name: str
    value: str
    where: Where
    is_told: bool  # in explain(); False for what is but the way to something

    def __str__(self) -> str:
        return f"{self.name} is {self.value}"

    def no_longer(self) -> str:
        """Return in words that it does not hold."""
        return f"{self.name or 'the function'} is no longer {self.value}"


class Met:
    """An array that entered a recording from outside, as it was then; `array` if it is on the tape around."""

    __slots__ = ("array", "copy", "data", "is_input", "name", "places", "value")

    def __init__(self, data: np.ndarray, value: Any, copy: np.ndarray, array: Any = None) -> None:
        self.array = array
        self.data = data
        self.value: Value = value
        self.copy = copy
        self.is_input = True
        self.places: set[Any] = set()  # of the expressions through which it entered
        self.name = ""

    def is_view_of(self, array: np.ndarray) -> bool:
        """Return whether the elements lie among those of another array of the same owner."""
        if self.data is array or not self.data.size or not array.size:
            return False
        bounds = np.lib.array_utils.byte_bounds
        (low, high), (first, last) = bounds(self.data), bounds(array)
        return first <= low and high <= last

    @property
    def is_same(self) -> bool:
        """Whether the array holds what it held when it entered."""
        return self.copy is self.data or self.copy.tobytes() == self.data.tobytes()


def _references(one: Met) -> int:
    return sys.getrefcount(one.data)


_ALONE = _references(Met(np.empty(0), None, np.empty(0)))  # to an array that nobody else has


def _references_to_owner(one: Met) -> int:
    return sys.getrefcount(one.data.base)


_ONE_VIEW = _references_to_owner(Met(np.empty(1)[:], None, np.empty(0)))  # to an array with one view


class Walk:
    """The way from the roots to everything that a recording read, as source.

    Args:
        heap: what was met.
        met: arrays that entered the recording, in order; those that are no inputs are marked.
        taken: contents of dlarrays whose values left them, by id of their data.
        results: ids of data that the function returned.

    Attributes:
        guards: what is compared.
        changed: what the function read and changed itself, in words, and where.
        unguarded: what cannot be compared, in words, and where it is read.
        names: what the source uses.
    """

    def __init__(
        self, heap: Heap, met: Sequence[Met], taken: Mapping[int, tuple[np.ndarray, bytes]], results: set[int]
    ) -> None:
        self._heap = heap
        self._met = met
        self._taken = taken
        self._results = results
        self.guards: list[Guard] = []
        self.changed: tuple[str, Where] | None = None
        self.unguarded: tuple[str, Where] | None = heap.unseen
        self.names: dict[str, Any] = {
            "dlarray": dlarray, "ndarray": np.ndarray, "differs": differs, "same": _same_atoms, "view": _view,
            "part_of": signature.array_part, "packed": signature.packed, "is_set": _is_set, "seen": _seen_by_numpy,
            "check_open": trace.check_open,
        }  # fmt: skip
        self._lines: list[tuple[int, str]] = []  # the number of the guard, and source
        self._checks: list[tuple[int, str]] = []  # what the executor would find out too
        self._inputs: dict[int, tuple[str, str]] = {}  # how to fetch an array, alone and within an evaluation
        self._constants = (f"g{i}" for i in count())
        self._constant_of: dict[int, str] = {}
        self._variables = (f"v{i}" for i in count())
        self._reached: dict[int, tuple[str, str]] = {}  # by id of a thing: its variable and its name in words
        self._loose: list[tuple[Thing, str, str]] = []  # what can have gone into a constant, unseen
        self._by_data: dict[int, list[Met]] = {}
        self._by_owner: dict[int, list[Met]] = {}
        self._by_value: dict[int, Met] = {}
        for one in met:
            if one.array is not None:
                self._by_value[id(one.array._value)] = one
                continue
            self._by_data.setdefault(id(one.data), []).append(one)
            if one.data.base is not None:
                self._by_owner.setdefault(id(_owner(one.data)), []).append(one)
        self._walk()

    @property
    def inputs(self) -> list[Met]:
        """The arrays that are fetched."""
        return [one for one in self._met if one.is_input]

    @property
    def arrays(self) -> list[str]:
        """The expressions for the arrays, after the lines()."""
        return [self._inputs[id(one)][0] for one in self.inputs]

    def lines(self, fail: str, checked: bool = False, within: bool = False) -> list[str]:
        """Return the source that leads to the arrays.

        Args:
            fail: the statement where a guard does not hold; "{}" in it becomes the number of the guard.
            checked: whether sizes, dtypes and layouts are compared too.
            within: whether dlarrays may be on the tape of an evaluation that goes on.
        """
        traced = "(V._value is not None and check_open(V))" if within else "V._value is not None"
        found = ["try:"]
        for number, text in [*self._lines, *(self._checks if checked else ())]:
            text = _TRACED.sub(lambda place: traced.replace("V", place[1]), text)
            text = text.replace(_FAIL, fail.format(number))
            found += [f"    {line}" for line in text.split("\n")]
        if len(found) == 1:
            found.append("    pass")
        return [*found, f"except {_ERRORS}:", f"    {fail.format(-1)}"]

    def source(self, checked: bool = False, within: bool = False) -> str:
        """Return the source of fetch(), which gives the arrays or None."""
        arrays = [self._inputs[id(one)][within] for one in self.inputs]
        body = [*self.lines("return None", checked, within), f"return ({''.join(f'{x}, ' for x in arrays)})"]
        return "def fetch():\n" + "".join(f"    {line}\n" for line in body)

    def failing(self) -> str:
        """Return the source of failed(), which gives the number of the first guard that does not hold, or -1."""
        lines = ["at = -1", "try:", "    pass"]
        for number, text in [*self._lines, *self._checks]:
            text = _TRACED.sub("(\\1._value is not None and \\1._value.owner.closed)", text)
            lines += [f"    at = {number}"]
            lines += [f"    {line}" for line in text.replace(_FAIL, "return at").split("\n")]
        body = [*lines, f"except {_ERRORS}:", "    return at", "return -1"]
        return "def fetch():\n" + "".join(f"    {line}\n" for line in body)

    def _walk(self) -> None:
        queue: deque[Thing] = deque()
        self._queue = queue
        for ident, kind in self._heap.roots.items():
            thing = self._heap.things[ident]
            self._reached[ident] = (self._constant(thing.value), _root_name(thing, kind))
            queue.append(thing)
        while queue:
            self._cells(queue.popleft())
        self._rest()

    def _constant(self, value: Any) -> str:
        name = self._constant_of.get(id(value))
        if name is None:
            name = self._constant_of[id(value)] = next(self._constants)
            self.names[name] = value
        return name

    def _guard(self, name: str, value: str, where: tuple[str, int], text: str, is_told: bool = False) -> int:
        """Append a guard, whose source is `text`; return its number."""
        self.guards.append(Guard(name, value, where if where[0] else None, is_told))
        self._lines.append((len(self.guards) - 1, text))
        return len(self.guards) - 1

    def _note_change(self, name: str, where: tuple[str, int]) -> None:
        if self.changed is None:
            self.changed = (name, where if where[0] else None)

    def _cells(self, thing: Thing) -> None:
        owner, name = self._reached[id(thing.value)]
        for cell in thing.cells.values():
            if cell.is_read:
                text = _cell_name(name, cell)
                if changed(thing, cell) and not _is_traced(look(thing, cell.kind, cell.name)):
                    self._note_change(text, cell.where)
                self._cell(owner, text, cell)
        if thing.held is not None:
            if not same_elements(thing.held, tuple(elements(thing.value))):
                self._note_change(name, thing.where)
            self._held(thing, owner, name)

    def _cell(self, owner: str, name: str, cell: Cell) -> None:
        where = cell.where
        is_missing = cell.value is MISSING
        if cell.kind == "own":
            shown = "of its class" if is_missing else "its own"
            text = f"if ({cell.name!r} in {owner}.__dict__) is {is_missing}: {_FAIL}"
            self._guard(name, shown, where, text)
        elif is_missing:
            shown = "Python's own" if cell.kind == "global" and is_builtin(cell.name) else "not there"
            self._guard(name, shown, where, f"if {self._presence(owner, cell)}: {_FAIL}")
        else:
            self._value(next(self._variables), self._expression(owner, cell), name, cell.value, where)

    def _key(self, key: Any) -> str:
        is_short = type(key) is int and key.bit_length() <= 64
        is_text = is_short or type(key) in (str, bool, bytes, type(None))
        return repr(key) if is_text else self._constant(key)

    def _expression(self, owner: str, cell: Cell) -> str:
        if cell.kind in ("global", "module", "item"):
            return f"{owner}[{self._key(cell.name)}]"
        if cell.kind == "closure":
            return f"{owner}.__closure__[{cell.name[0]}].cell_contents"
        return f"{owner}.{cell.name}"

    def _presence(self, owner: str, cell: Cell) -> str:
        if cell.kind == "closure":
            return f"is_set({owner}, {cell.name[0]})"
        if cell.kind == "attr":
            return f"hasattr({owner}, {cell.name!r})"
        return f"{self._key(cell.name)} in {owner}"

    def _value(self, variable: str, source: str, name: str, value: Any, where: tuple[str, int]) -> None:
        """Bind a variable to what a cell holds, and compare it with what it held."""
        bind = f"{variable} = {source}\n" if source != variable else ""
        if is_atom(value):
            known = self._constant(value)
            text = f"{bind}if {variable} is not {known} and differs({variable}, {known}): {_FAIL}"
            self._guard(name, _shown(value), where, text, True)
            return
        if type(value) in (tuple, frozenset) and all(is_atom(part) for part in value):
            known = self._constant(value)
            same = f"type({variable}) is {type(value).__name__} and same({variable}, {known})"
            text = f"{bind}if {variable} is not {known} and not ({same}): {_FAIL}"
            self._guard(name, _shown(value), where, text, not name.startswith(_DEFAULTS))
            return
        reached = self._reached.get(id(value))
        if reached is not None:
            first, shown = reached
            is_root = id(value) in self._heap.roots
            text = f"{bind}if {variable} is not {first}: {_FAIL}"
            self._guard(name, shown if is_root else f"the same as {shown}", where, text, not is_root)
            return
        self._reached[id(value)] = (variable, name)
        thing = self._heap.thing(value)
        if thing.kind == "array":
            self._array(variable, bind, name, thing, where)
        elif thing.kind == "foreign":
            self._foreign(variable, bind, name, value, where)
        else:
            self._object(variable, bind, name, thing, where)
            self._queue.append(thing)

    def _object(self, variable: str, bind: str, name: str, thing: Thing, where: tuple[str, int]) -> None:
        value = thing.value
        unwatched = thing.kind == "object" and not is_user_class(
            type(value)
        )  # what its code reads is not known
        if thing.kind == "opaque" and _is_memory(value):
            self._loose.append((thing, variable, name))
        if unwatched or thing.kind in ("opaque", "module", "accelerated"):
            shown, is_told = _shown(value), unwatched or thing.kind == "opaque"
            if type(value) is types.CodeType:
                shown, is_told = f"the code at {value.co_filename}:{value.co_firstlineno}", False
            text = f"{bind}if {variable} is not {self._constant(value)}: {_FAIL}"
            self._guard(name, shown, where, text, is_told)
        else:
            text = f"{bind}if type({variable}) is not {self._constant(type(value))}: {_FAIL}"
            self._guard(name, f"a {type(value).__name__}", where, text)

    def _array(self, variable: str, bind: str, name: str, thing: Thing, where: tuple[str, int]) -> None:
        value, array, data = thing.value, data_of(thing.value), variable
        text = f"{bind}if type({variable}) is not ndarray: {_FAIL}"
        inputs = self._by_data.get(id(array), [])
        if type(value) is dlarray:
            if value._value is not None:
                if id(value._value) not in self._by_value:
                    text = f"{bind}if type({variable}) is not dlarray or {variable}._value is None: {_FAIL}"
                    self._guard(name, "an array of a trace", where, text)
                    return
                inputs = [self._by_value[id(value._value)]]
            data = f"{variable}d"
            text = f"{bind}if type({variable}) is not dlarray or {variable}._format != {value._format!r}"
            text += f" or \1{variable}\1: {_FAIL}\n{data} = {variable}._data"
        number = self._guard(name, _described(value), where, text, True)
        if type(value) is dlarray and (value._value is not thing.tape or array is not thing.data):
            self._note_change(name, where)  # assigned to by index
        views = self._views_of(array)
        if any(not one.is_same for one in (*inputs, *views)) or len(inputs) > 1:
            self._note_change(name, where)
        known = self._constant(signature.array_part(array))
        self._checks.append((number, f"if part_of({data}) != {known}: {_FAIL}"))
        if views or not inputs:  # what is an input is checked by the executor
            text = f"if {data}.shape != {array.shape} or {data}.dtype != {self._constant(array.dtype)}"
            self._lines.append(
                (number, f"{text}{f' or not {data}.flags.c_contiguous' if views else ''}: {_FAIL}")
            )
        for one in inputs:
            self._take(one, name, data, variable if type(value) is dlarray else None)
        for one in views:
            offset = one.data.ctypes.data - array.ctypes.data
            view = self._constant((one.data.shape, one.data.dtype, offset, one.data.strides))
            self._take(one, f"a view of {name}", f"view({data}, *{view})")
        places = {place for one in inputs for place in one.places}
        leftover = any(
            one.is_view_of(array) for one in self._by_owner.get(id(_owner(array)), ()) if one not in views
        )
        is_computed_with = (
            thing.is_computed_with
            or (thing.is_indexed and not views)
            or leftover
            or any(place not in places for place in thing.computed)
        )
        is_input = bool(inputs or views) and not is_computed_with
        self._content(thing, data, name, is_input)
        if is_input and (thing.is_loose or any(place not in places for place in thing.passed)):
            self._loose.append((thing, data, name))

    def _views_of(self, array: np.ndarray) -> list[Met]:
        """Return the arrays that entered the recording as views of this one, and can be made of it again."""
        if not array.flags.c_contiguous:
            return []
        views = self._by_owner.get(id(_owner(array)), ())
        return [one for one in views if id(one) not in self._inputs and one.is_view_of(array)]

    def _content(self, thing: Thing, data: str, name: str, is_input: bool) -> None:
        """Compare the elements of an array that something else than the trace can read."""
        array = data_of(thing.value)
        taken = self._taken.get(id(array))
        content = taken[1] if taken else thing.content
        if content is None or (is_input and not taken):
            return
        if thing.is_large:
            self.unguarded = self.unguarded or (name, thing.where)
        elif array.tobytes() != content:
            self._note_change(name, thing.where)
        else:
            text = f"if {data}.tobytes() != {self._constant(content)}: {_FAIL}"
            self._guard(f"what is in {name}", "as it was", thing.where, text, True)

    def _foreign(self, variable: str, bind: str, name: str, value: Any, where: tuple[str, int]) -> None:
        """An array of another library, whose memory NumPy can look at."""
        try:
            array = _seen_by_numpy(value)
        except Exception:  # whatever that library raises: it cannot have been an operand
            text = f"{bind}if {variable} is not {self._constant(value)}: {_FAIL}"
            self._guard(name, f"a {type(value).__name__}", where, text)
            return
        self._loose.append((self._heap.thing(value), variable, name))
        data = f"{variable}d"
        kind = self._constant(type(value))
        text = f"{bind}if type({variable}) is not {kind}: {_FAIL}\n{data} = seen({variable})"
        number = self._guard(name, _described(array), where, text, True)
        self._checks.append(
            (number, f"if part_of({data}) != {self._constant(signature.array_part(array))}: {_FAIL}")
        )
        place = _place(array)
        for one in self._met:
            if _place(one.data) == place:
                if not one.is_same:
                    self._note_change(name, where)
                self._take(one, name, data)

    def _take(self, one: Met, name: str, source: str, within: str | None = None) -> None:
        """Fetch an array by an expression."""
        if id(one) not in self._inputs:
            one.name = name
            if signature.packed(one.data) is not one.data:
                source = f"packed({source})"
            self._inputs[id(one)] = (source, within or source)

    def _held(self, thing: Thing, owner: str, name: str) -> None:
        """Compare what a container holds."""
        value, held, where = thing.value, thing.held, thing.where
        assert held is not None
        if type(value) in SETS:
            text = f"if {owner} != {self._constant(frozenset(value))}: {_FAIL}"
            self._guard(name, _shown(value), where, text, True)
            return
        if all(is_atom(part) for part in held):
            self._guard(
                name, _shown(value), where, f"if not same({owner}, {self._constant(held)}): {_FAIL}", True
            )
            return
        parts, names = held, [f"{name}[{i}]" for i in range(len(held))]
        text = f"if len({owner}) != {len(held)}: {_FAIL}"
        source = owner
        if type(value) in MAPPINGS:
            keys, parts = held[::2], held[1::2]
            names = [f"{name}[{words.shown(key)}]" for key in keys]
            text = f"if [*{owner}] != {self._constant([*keys])}: {_FAIL}"
            source = f"{owner}.values()"
        variables = [next(self._variables) for _ in parts]
        self._guard(name, f"{len(parts)} elements", where, f"{text}\n{', '.join(variables)}, = {source}")
        for variable, part, text in zip(variables, parts, names, strict=True):
            self._value(variable, variable, text, part, where)

    def _is_held(self, one: Met) -> bool:
        """Return whether anything else has an array that no way leads to."""
        mine = len(self._by_data[id(one.data)]) - 1 + (id(one.data) in self._taken)
        return _references(one) > _ALONE + mine

    def _shares(self, one: Met) -> bool:
        """Return whether the memory of an array that nobody else has is not its own, or not only."""
        base = one.data.base
        if base is None:
            return not one.data.flags.owndata
        if type(base) is not np.ndarray or not base.flags.owndata:
            return True
        known = {id(met.data): met.data for met in self._met}
        known.update((ident, data) for ident, (data, _) in self._taken.items())
        views = sum(data.base is base for data in known.values())
        itself = len(self._by_data.get(id(base), ())) + (id(base) in self._taken)
        del known
        # One of the views is counted in _ONE_VIEW; the variable `base` makes up for it.
        return _references_to_owner(one) > _ONE_VIEW + views + itself

    def _rest(self) -> None:
        """Deal with the arrays that no way leads to (Note [fresh arrays])."""
        rest = [one for one in self._met if id(one) not in self._inputs]
        was_held = {id(one) for one in rest if one.array is None and self._is_held(one)}
        self._heap.keep_only(self._reached)
        fresh = False
        for one in rest:
            if id(one) in self._inputs:
                continue
            if one.array is not None:
                what = f"an array of the evaluation around it {UNNAMED}"
                self.unguarded = self.unguarded or (what, None)
                self._take(one, what, "None")
                continue
            is_held = id(one) in was_held and (self._is_held(one) or self._shares(one))
            is_kept = is_held and id(one.data) not in self._results
            one.is_input = is_kept and one.is_same and len(self._by_data[id(one.data)]) == 1
            if one.is_input:
                name = f"an array at {id(one.data):#x} {UNNAMED}"
                self._take(one, name, self._constant(one.data))
                self.guards.append(Guard(name, _described(one.data), None, True))
            fresh = fresh or (id(one) in was_held and not is_held)
        for thing, data, name in self._loose if fresh else ():
            if thing.kind == "array":
                self._content(thing, data, name, False)
            else:
                self.unguarded = self.unguarded or (name, thing.where)


def _root_name(thing: Thing, kind: str) -> str:
    if kind == "globals":
        return "global"
    return str(getattr(thing.value, "__name__", "an argument")) if kind in ("class", "argument") else ""


def _cell_name(owner: str, cell: Cell) -> str:
    if cell.kind in ("global", "module"):
        return f"{cell.kind} {cell.name}"
    if cell.kind == "closure":
        return f"closure {cell.name[1]}"
    if cell.kind == "item":
        return f"{owner}[{cell.name!r}]"
    if cell.name in ("__defaults__", "__kwdefaults__"):
        return f"{_DEFAULTS} of {owner}" if owner else _DEFAULTS
    if cell.name == "__self__":
        return "self"
    if cell.name in ("__code__", "__func__", "_function", "__wrapped__", "fget", "func"):
        return owner
    return f"{owner}.{cell.name}" if owner else str(cell.name)


def _shown(value: Any) -> str:
    text = words.shown(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def _described(array: Any) -> str:
    data = data_of(array)
    return str(Aval(data.shape, getattr(array, "_format", None), data.dtype))


def _is_traced(value: Any) -> bool:
    """Return whether a value is an array of a trace, which cannot be read once the trace has ended."""
    return type(value) is dlarray and value._value is not None


def _same_atoms(value: Any, held: Any) -> bool:
    return value == held if type(value) is frozenset else same_elements(tuple(held), tuple(elements(value)))


def _seen_by_numpy(value: Any) -> np.ndarray:
    return trace.as_array(value)._data  # type: ignore[no-any-return]


def _is_memory(value: Any) -> bool:
    """Return whether NumPy can look at the memory of something, which can change."""
    try:
        return not memoryview(value).readonly
    except TypeError:
        return False


def _place(array: np.ndarray) -> Any:
    return (array.ctypes.data, array.shape, array.strides, array.dtype)


def _owner(array: np.ndarray) -> np.ndarray:
    """Return the array whose memory an array is a view of."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


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
