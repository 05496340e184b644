# SPDX-License-Identifier: BSD-3-Clause
"""The code that finds captured arrays again at each call and compares what else was read.

Note [guards]
When a recording ends, what was met (capture/snapshot.py) is walked from the roots along the cells that are read, and a
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
made in each call of an array that stays, or of the memory of something else than NumPy.

Note [loose arrays]
What NumPy computes is a constant of the trace, and what it is computed of must be known. Where a name leads to an
ndarray, byte code tells whether anything but operations of the trace reads it; then its contents are compared. An
ndarray is loose if it is read in a way that is not followed: h[:] = w, the arrays of a list, unpacking, an alias. It
is an input of the trace, and some constant may hold what was in it. So its contents are compared too, if there are
constants at all, until they have changed and a recording gave the same operations and constants all the same: then
nothing was made of them, and they are let go (State.loosen). In training that is the second recording. Of arrays that
are not small a comparison at each call would cost something, and there are enough elements to tell by: they are
compared where a constant can have been made of them (tracejit.capture.provenance).
"""

import re
import sys
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
from tracejit.capture.objects import (
    MAPPINGS,
    MISSING,
    SETS,
    Cell,
    Thing,
    changed,
    data_of,
    differs,
    elements,
    held_by,
    is_atom,
    is_builtin,
    is_user_class,
    look,
    plain,
    remembered,
    same_elements,
)
from tracejit.capture.snapshot import Heap
from tracejit.ir import Value, Where
from tracejit.record import recorder
from tracejit.util import text as words

UNNAMED = "that no name leads to"

_SMALL = 1 << 12  # bytes of a loose array that is compared whatever the constants are
_MOST_LOOSE = 1 << 24  # bytes of one that can be compared
_TIMES = 8  # that changes from which one cannot tell made no difference: then it is taken for granted
_NO_MEMORY = frozenset({types.CodeType, types.BuiltinFunctionType, type, np.ufunc})
_DEFAULTS = "defaults"
_SHOWN = 60  # characters of a value
_FAIL = "\0"  # stands for what is returned where a guard does not hold; no literal has it
_TRACED = re.compile(
    "\1(\\w+)\1"
)  # stands for whether a dlarray of that name is on a tape where it must not be
_LOOSE = re.compile("\2(.+)\2(.+)\2(.+)\2")  # stands for whether a Loose, the array and how it differs
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


class Loose:
    """What was in a loose array, and whether that still matters (Note [loose arrays]).

    Attributes:
        content: of a small one.
        is_compared: in replays.
        is_asked: where the guard that does not hold is looked for.
    """

    __slots__ = ("_decides", "_has_moved", "_known", "_now", "_times", "content", "is_asked", "is_compared")

    def __init__(self, array: np.ndarray, decides: bool) -> None:
        self._decides = decides
        self._known = self._now = array.copy()
        self._has_moved = np.zeros(array.shape, bool)
        self._times = 0
        self.content = array.tobytes() if array.nbytes <= _SMALL else None
        self.is_compared = self.is_asked = True

    def differs(self, array: np.ndarray) -> bool:
        """Return whether an array holds other bytes than the one that was met."""
        known = self._known
        if self.content is not None or not (array.flags.c_contiguous and known.flags.c_contiguous):
            return array.tobytes() != known.tobytes()
        kind = np.uint64 if array.nbytes % 8 == 0 else np.uint8
        return not bool((array.reshape(-1).view(kind) == known.reshape(-1).view(kind)).all())

    def has_changed(self, array: np.ndarray) -> bool:
        """Return what differs() does, and keep what is there now."""
        if not self.differs(array):
            return False
        self._now = array.copy()
        return True

    @property
    def before(self) -> bytes:
        """What was there."""
        return self._known.tobytes()

    @property
    def after(self) -> bytes:
        """What was there when has_changed() was asked last."""
        return self._now.tobytes()

    def is_unused(self, moved: bool) -> None:
        """Note that what was there when has_changed() was asked last made no difference.

        One cannot tell by a few elements, nor where values decide: what is there now is compared from here on.

        Args:
            moved: whether arrays have but changed places, of which one cannot tell either.
        """
        self._times += 1
        self._has_moved |= self._known != self._now
        have_most = int(self._has_moved.sum()) >= 0.9 * self._has_moved.size
        is_compared = self._times < _TIMES and (self._decides or moved or not have_most)
        self.is_compared = self.is_asked = is_compared
        self._known = self._now
        if self.content is not None:
            self.content = self._now.tobytes()


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
        computed: gives the numbers that are constants of the trace and do not stand in the user's code, and results.
        taken: contents of dlarrays whose values left them, by id of their data.
        results: ids of data that the function returned.

    Attributes:
        guards: what is compared.
        changed: what the function read and changed itself, in words, and where.
        unguarded: what cannot be compared, in words, and where it is read.
        loose: the loose arrays that are compared, by the number of their guards.
        names: what the source uses.
    """

    def __init__(
        self, heap: Heap, met: Sequence[Met], computed: Callable[[], list[np.ndarray]],
        taken: Mapping[int, tuple[np.ndarray, bytes]], results: set[int],
    ) -> None:  # fmt: skip
        self._heap = heap
        self._met = met
        self._computed = computed
        self._taken = taken
        self._results = results
        self.loose: dict[int, Loose] = {}
        self.guards: list[Guard] = []
        self.changed: tuple[str, Where] | None = None
        self.unguarded: tuple[str, Where] | None = heap.unseen
        self.names: dict[str, Any] = {
            "dlarray": dlarray, "ndarray": np.ndarray, "differs": differs, "same": _same_atoms, "view": _view,
            "part_of": signature.array_part, "packed": signature.packed, "is_set": _is_set, "seen": _seen_by_numpy,
            "check_open": recorder.check_open, "memory": _memory,
            "held_by": held_by, "plain": plain, "remembers": _remembers,
        }  # fmt: skip
        self._lines: list[tuple[int, str]] = []  # the number of the guard, and source
        self._checks: list[tuple[int, str]] = []  # what the executor would find out too
        self._inputs: dict[int, tuple[str, str]] = {}  # how to fetch an array, alone and within an evaluation
        self._constants = (f"g{i}" for i in count())
        self._constant_of: dict[int, str] = {}
        self._variables = (f"v{i}" for i in count())
        self._reached: dict[int, tuple[str, str]] = {}  # by id of a thing: its variable and its name in words
        self._loose: list[tuple[np.ndarray, str, str, tuple[str, int]]] = []  # Note [loose arrays]
        self._memory: set[str] = set()  # variables of what is loose and no array
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
            if "\2" in text:
                text = _LOOSE.sub("\\1.is_compared and \\3", text)
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
            if "\2" in text:
                text = _LOOSE.sub("\\1.is_asked and \\1.has_changed(\\2)", text)
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
        if thing.memory is not None:
            self._remembered(thing, name)
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
        elif is_missing and cell.kind != "held":
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
        if cell.kind == "held":
            return f"held_by({owner})"
        if cell.kind == "base":
            return f"plain({owner}, {self._constant(cell.name)})"
        if cell.kind == "registry":
            return f"tuple({owner}.registry.values())"
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
            thing = self._heap.things.get(id(value))
            if thing is not None and thing.kind == "member" and id(value) not in self._reached:
                self._reached[id(value)] = (known, name)
                self._queue.append(thing)
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
        is_one = unwatched or thing.memory is not None  # and no other will do
        if is_one or thing.kind in ("opaque", "module", "accelerated", "holder"):
            shown, is_told = _shown(value), unwatched or thing.kind == "opaque"
            if type(value) is types.CodeType:
                shown, is_told = f"the code at {value.co_filename}:{value.co_firstlineno}", False
            text = f"{bind}if {variable} is not {self._constant(value)}: {_FAIL}"
            self._guard(name, shown, where, text, is_told)
            if thing.is_whole and type(value) is types.GeneratorType:
                self._note_change(name, where)  # by what is taken out of it
        else:
            text = f"{bind}if type({variable}) is not {self._constant(type(value))}: {_FAIL}"
            self._guard(name, f"a {type(value).__name__}", where, text)
        if thing.is_loose and thing.kind in ("opaque", "object") and type(value) not in _NO_MEMORY:
            self._buffer(variable, name, thing, where)

    def _remembered(self, thing: Thing, name: str) -> None:
        """Compare what a function with a cache remembers, and what is read of it."""
        keys, entries, results = zip(*remembered(thing), strict=True) if thing.memory else ((), (), ())
        known = ", ".join(map(self._constant, (thing, thing.memory, keys, entries, results)))
        text = f"if not remembers({known}): {_FAIL}"
        self._guard(f"what {name} remembers", words.count(len(results), "result"), thing.where, text, True)
        shown = f"what {name} remembers"
        for result in results:
            if not is_atom(result):
                self._value(next(self._variables), self._constant(result), shown, result, thing.where)

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
            self._take_view(one, name, array, data)
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
        is_loose = thing.is_loose or any(place not in places for place in thing.passed)
        if type(value) is np.ndarray and is_input and is_loose:
            self._loose.append((array, data, name, thing.where))

    def _buffer(self, variable: str, name: str, thing: Thing, where: tuple[str, int]) -> None:
        """Memory that NumPy can look at and others can write to: views of it are made again, and it is loose."""
        value = thing.value
        base = type(value).__base__  # that of a class written in Python has no memory
        array = None if base is object and thing.kind == "object" else _memory(value)
        if array is None:
            return
        for one in self._met:
            if array.flags.c_contiguous and id(one) not in self._inputs and one.is_view_of(array):
                if not one.is_same:
                    self._note_change(name, where)
                self._take_view(one, name, array, variable)
        data = f"{variable}m"
        text = f"{data} = memory({variable})\nif {data}.size != {array.size}: {_FAIL}"
        self._guard(name, f"{array.size} bytes", where, text)
        self._memory.add(data)
        self._loose.append((array, data, name, where))

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
        data = f"{variable}d"
        self._loose.append((array, data, name, where))
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

    def _take_view(self, one: Met, name: str, array: np.ndarray, source: str) -> None:
        """Fetch a view of an array by an expression for that."""
        offset = one.data.ctypes.data - array.ctypes.data
        view = self._constant((one.data.shape, one.data.dtype, offset, one.data.strides))
        self._take(one, f"a view of {name}", f"view({source}, *{view})")

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
        if type(value) is np.ndarray:
            text = f"if {owner}.shape != {value.shape} or {owner}.dtype != object: {_FAIL}"
            source = f"{owner}.flat"
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
        for one in rest:
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
        self._compare_loose()

    def _compare_loose(self) -> None:
        """Compare what is in loose arrays (Note [loose arrays])."""
        if not self._loose:
            return
        made = [*self._computed(), *(one.copy for one in self._met if not one.is_input)]
        for array, data, name, where in self._loose:
            if data in self._memory:  # whose numbers are not told from Python's own
                pass
            elif array.nbytes <= _SMALL:
                if not (made or self._heap.decides or self._heap.takes):
                    continue
            elif not provenance.can_be(array, made):
                continue
            if array.nbytes > _MOST_LOOSE:
                self.unguarded = self.unguarded or (name, where)
                continue
            loose = Loose(array, self._heap.decides)
            known = self._constant(loose)
            differs = f"{data}.tobytes() != {known}.content" if loose.content else f"{known}.differs({data})"
            text = f"if \2{known}\2{data}\2{differs}\2: {_FAIL}"
            self.loose[self._guard(f"what is in {name}", "as it was", where, text, True)] = loose


def _root_name(thing: Thing, kind: str) -> str:
    if kind == "globals":
        return "global"
    return str(getattr(thing.value, "__name__", "an argument")) if kind in ("class", "argument") else ""


def _cell_name(owner: str, cell: Cell) -> str:
    if cell.kind in ("global", "module"):
        return f"{cell.kind} {cell.name}"
    if cell.kind == "closure":
        return f"closure {cell.name[1]}"
    if cell.kind in ("held", "registry", "base"):
        return f"what {owner} holds"
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
    return recorder.as_array(value)._data  # type: ignore[no-any-return]


def _memory(value: Any) -> Any:
    """Return the memory of something as an ndarray, if NumPy can look at it and it can change; or None."""
    try:
        array = np.frombuffer(value, np.uint8)
        return array if array.flags.writeable else None
    except (TypeError, ValueError, BufferError):
        return None


def _remembers(
    thing: Thing, memory: dict[Any, Any], keys: Sequence[Any], entries: Sequence[Any], results: Sequence[Any]
) -> bool:
    """Return whether a function with a cache still remembers the results of some calls."""
    if not all(map(is_, map(memory.get, keys), entries)):
        return False
    most = thing.value.cache_parameters()["maxsize"]
    if most is None or len(memory) < most:
        return True
    now = {id(key): result for key, _, result in remembered(thing)}  # a full cache uses its links again
    return all(now.get(id(key), MISSING) is result for key, result in zip(keys, results, strict=True))


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
