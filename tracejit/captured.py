# SPDX-License-Identifier: BSD-3-Clause
"""Captured state: the arrays that a recording read around its arguments, as inputs, and all else it read, as guards.

Note [guards]
When the recording ends, what was met (tracejit.heap) is walked from the roots along the cells that are read, and a
function is written that walks the same way at each call. It holds neither the arrays nor the objects on the way, only
their types, the atoms and the code of functions: another array of the same size, or another object of the same class,
is taken as it comes. For a method that computes x @ self.w * self.scale it is

    def fetch():
        try:
            v0 = function.__self__
            if type(v0) is not Layer:
                return None
            v1 = v0.w
            if type(v1) is not dlarray or v1._format != None or v1._value is not None:
                return None
            d1 = v1._data
            v2 = v0.scale
            if v2 is not k0 and differs(v2, k0):
                return None
            ...
        except ...:
            return None
        return (d1,)

An array that can be reached on two ways is one input, and the second way is compared with the first. An array on no way
is taken by reference if somebody else has it too, and is a constant if it was made in the call.
"""

import linecache
import re
import sys
import types
from collections import deque
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from tracejit import signature, trace, watch
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
from tracejit.ir import Builder, Value, Where
from tracejit.ops import Layout
from tracejit.state import State

_DEFAULTS = "defaults"
_TRACED = re.compile(r"TRACED<(\w+)>")


class Guard(NamedTuple):
    """Something a replay compares: how the user's code writes it, what it was, and where it is read."""

    name: str
    value: str
    where: Where
    is_told: bool = True  # in explain(); not what is but the way to something

    def __str__(self) -> str:
        return f"{self.name} is {self.value}"

    def no_longer(self) -> str:
        """Return in words that it does not hold."""
        if not self.name:
            return f"the function is no longer {self.value}"
        return f"{self.name} is no longer {self.value}"


class _Met:
    """An array that entered the recording from outside, as it was then; `array` if it is on the tape around."""

    __slots__ = ("array", "copy", "data", "is_input", "name", "value")

    value: Value

    def __init__(self, data: np.ndarray, value: Any, copy: np.ndarray, array: Any = None) -> None:
        self.array = array
        self.data = data
        self.value = value
        self.copy = copy
        self.is_input = True
        self.name = ""


def _references(one: _Met) -> int:
    return sys.getrefcount(one.data)


_ALONE = _references(_Met(np.empty(0), None, np.empty(0)))  # to an array that nobody else has


class CapturedState(State):
    """The captured arrays and the guards of one recording of a function.

    Attributes:
        changed: what the function read and changed itself, in words; such a recording must not be replayed.
        unguarded: what cannot be compared at each call, in words, and why; likewise.
    """

    def __init__(self, function: Callable[..., Any], arguments: Sequence[Any] = ()) -> None:
        self._function = function
        self._arguments = arguments
        self._heap: Heap | None = None
        self._watch: Any = None
        self._met: dict[int, _Met] = {}
        self._all_met: list[_Met] = []
        self._taken: dict[int, tuple[np.ndarray, bytes]] = {}
        self.of_outer: dict[Value, Any] = {}
        self._of_outer: dict[int, Value] = {}  # by id of the value there
        self._builder: Builder | None = None
        self._guards: list[Guard] = []
        self._failed: Callable[[], int] = lambda: -1
        self._checked: Callable[[], tuple[np.ndarray, ...] | None] = lambda: ()
        self._within: Callable[[], tuple[Any, ...] | None] = lambda: ()
        self.results: set[int] = (
            set()
        )  # ids of data that the function returned, which the recording holds too
        self.changed: tuple[str, Where] | None = None
        self.unguarded: tuple[str, Where] | None = None

    def open(self) -> None:
        """Begin to watch what runs in this thread."""
        self._heap = Heap(self._function, self._arguments)
        self._watch = watch.watching(self._heap.started)
        self._watch.__enter__()

    def value(self, builder: Builder, data: np.ndarray) -> Value | None:
        """Return the input that stands for an untraced array, which may turn out to be a constant."""
        self._builder = builder
        met = self._met.get(id(data))
        if met is None or met.copy.tobytes() != data.tobytes():
            copy = data.copy()  # the user may write to it while the recording goes on
            value = builder.input(Aval(data.shape, None, data.dtype), copy)
            met = self._met[id(data)] = _Met(data, value, copy)
            self._all_met.append(met)
        return met.value

    def outer(self, builder: Builder, array: Any) -> Value:
        """Return the input that stands for an array of the evaluation around the recording."""
        value: Value | None = self._of_outer.get(id(array._value))
        if value is None:
            self._builder = builder
            data = array._data
            value = builder.input(Aval(data.shape, None, data.dtype), data)
            self._of_outer[id(array._value)] = value
            self.of_outer[value] = array
            self._all_met.append(_Met(data, value, data, array))
        return value

    def taken(self, data: np.ndarray) -> None:
        """Note that the elements of an untraced dlarray left it: into Python, or an ndarray."""
        if id(data) not in self._taken:
            self._taken[id(data)] = (data, data.tobytes())

    def close(self) -> None:
        """Stop watching, and make of what was met inputs and guards."""
        heap, self._heap = self._heap, None
        if heap is None:
            return
        self._watch.__exit__(None, None, None)
        self._watch = None
        _Finish(self, heap, self._all_met).run()
        self._arguments = ()
        self._met.clear()
        self._of_outer.clear()
        self.of_outer = {}
        self._taken.clear()
        self._all_met.clear()
        self._builder = None

    def fetch_within(self) -> tuple[Any, ...] | None:
        """Return what fetch_checked() does, but dlarrays as they are, which may be on the tape around the call."""
        return self._within()

    def fetch_checked(self) -> tuple[np.ndarray, ...] | None:
        """Return what fetch() does, with sizes, dtypes and layouts compared too."""
        return self._checked()

    def applies(self) -> bool:
        """Return whether all guards hold; an array may be on the tape of the evaluation around a call."""
        return self._failed() < 0

    def guards(self) -> list[Guard]:
        """Return what is compared and fetched at each call."""
        return [guard for guard in self._guards if guard.is_told]

    def failed(self) -> Guard | None:
        """Return the first guard that does not hold now, or None if all do."""
        number = self._failed()
        return self._guards[number] if number >= 0 else None


class _Finish:
    """The end of a recording: paths to all that was met, and the functions that walk them."""

    def __init__(self, state: CapturedState, heap: Heap, met: list[_Met]) -> None:
        self.state = state
        self.heap = heap
        self.met = met
        self.by_data: dict[int, list[_Met]] = {}
        self.by_owner: dict[int, list[_Met]] = {}
        self.by_value: dict[int, _Met] = {}
        self.found: set[int] = set()  # ids of what can be fetched
        for one in met:
            if one.array is not None:
                self.by_value[id(one.array._value)] = one
                continue
            self.by_data.setdefault(id(one.data), []).append(one)
            if one.data.base is not None:
                self.by_owner.setdefault(id(_owner(one.data)), []).append(one)
        self.lines: list[tuple[int, str]] = []  # indentation, text; FAIL stands for what is returned then
        self.checks: list[tuple[int, str]] = []
        self.names: dict[str, Any] = {
            "dlarray": dlarray, "ndarray": np.ndarray, "differs": differs, "same": _same_atoms, "MISSING": MISSING,
            "key_of": signature.array_part, "packed": signature.packed, "is_set": _is_set, "view": _view,
            "seen": _seen_by_numpy,
            "check_open": trace.check_open,
        }  # fmt: skip
        self.constants = (f"k{i}" for i in count())
        self.by_id: dict[int, str] = {}
        self.variables = (f"v{i}" for i in count())
        self.reached: dict[int, tuple[str, str]] = {}  # by id of a thing: its variable and its name in words
        self.queue: deque[Thing] = deque()
        self.inputs: dict[int, tuple[str, str]] = {}  # how to fetch it, alone and within an evaluation

    def run(self) -> None:
        heap, state = self.heap, self.state
        if heap.overflow:
            state.unguarded = ("more objects than can be compared at each call", None)
        for ident, kind in heap.roots.items():
            thing = heap.things[ident]
            self.reached[ident] = (self.constant(thing.value), _root_name(thing, kind, heap.function))
            self.queue.append(thing)
        while self.queue:
            self.cells_of(self.queue.popleft())
        self.rest()
        for one in self.met:
            if not one.is_input:
                _make_constant(state._builder, one)
        used = [one for one in self.met if one.is_input]
        state.names = tuple(one.name for one in used)
        state.layouts = tuple(_layout(one.data) for one in used)
        state.fetches = bool(self.lines)
        if state.fetches:
            alone, within = (f"({''.join(f'{self.inputs[id(one)][i]}, ' for one in used)})" for i in (0, 1))
            lines = [*self.lines, *self.checks]
            state.fetch = self.compile(self.lines, "return None", "None", alone)  # type: ignore[method-assign]
            state._checked = self.compile(lines, "return None", "None", alone)
            state._within = self.compile(
                lines, "return None", "None", within, "(V._value is not None and check_open(V))"
            )
            state._failed = self.compile(
                lines, "return at", "at", "-1", "(V._value is not None and V._value.owner.closed)"
            )

    def compile(
        self,
        lines: Sequence[tuple[int, str]],
        fail: str,
        error: str,
        result: str,
        traced: str = "V._value is not None",
    ) -> Any:
        """Return the function of the lines, in which FAIL stands for `fail` and TRACED<v> for `traced` of v."""
        body = ["    try:"]
        for number, text in lines:
            if error == "at":
                body.append(f"        at = {number}")
            text = _TRACED.sub(lambda found: traced.replace("V", found[1]), text.replace("FAIL", fail))
            body += [f"        {part}" for part in text.split("\n")]
        if len(body) == 1:
            body.append("        pass")
        body += [
            "    except (AttributeError, LookupError, TypeError, ValueError, NameError):",
            f"        return {error}",
            f"    return {result}",
        ]
        text = "def fetch():\n" + "\n".join(body) + "\n"
        file = f"<tracejit guards {id(self.state):x} {error}>"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        names = dict(self.names)
        exec(compile(text, file, "exec"), names)
        return names["fetch"]

    def constant(self, value: Any) -> str:
        name = self.by_id.get(id(value))
        if name is None:
            name = self.by_id[id(value)] = next(self.constants)
            self.names[name] = value
        return name

    def guard(self, name: str, value: str, where: tuple[str, int], text: str, is_told: bool = False) -> None:
        self.state._guards.append(Guard(name, value, where if where[0] else None, is_told))
        self.lines.append((len(self.state._guards) - 1, text))

    def cells_of(self, thing: Thing) -> None:
        owner, name = self.reached[id(thing.value)]
        own: list[str] = []
        for cell in [*thing.cells.values()]:
            if not cell.is_read:
                continue
            text = _cell_name(name, cell)
            if changed(thing, cell) and not _is_trace(look(thing, cell.kind, cell.name)):
                self.note_change(text, cell.where)
            if cell.kind == "own":
                own.append(cell.name)
                self.guard(text, "of its class" if cell.value is MISSING else "its own", cell.where,
                           f"if ({cell.name!r} in {owner}.__dict__) is {cell.value is MISSING}: FAIL")  # fmt: skip
            else:
                self.cell(owner, text, cell)
        if thing.held is not None:
            if not same_elements(thing.held, tuple(elements(thing.value))):
                self.note_change(name, thing.where)
            self.held(thing, owner, name)

    def note_change(self, name: str, where: tuple[str, int]) -> None:
        if self.state.changed is None:
            self.state.changed = (name, where if where[0] else None)

    def cell(self, owner: str, name: str, cell: Cell) -> None:
        expression = self.expression(owner, cell)
        if cell.value is MISSING:
            shown = "Python's own" if cell.kind == "global" and is_builtin(cell.name) else "not there"
            self.guard(name, shown, cell.where, self.absence(owner, cell))
            return
        variable = next(self.variables)
        self.value(variable, expression, name, cell.value, cell.where)

    def expression(self, owner: str, cell: Cell) -> str:
        if cell.kind in ("global", "module", "item"):
            key = (
                repr(cell.name)
                if type(cell.name) in (str, int, bool, bytes, type(None))
                else self.constant(cell.name)
            )
            return f"{owner}[{key}]"
        if cell.kind == "closure":
            return f"{owner}.__closure__[{cell.name[0]}].cell_contents"
        return f"{owner}.{cell.name}"

    def absence(self, owner: str, cell: Cell) -> str:
        if cell.kind in ("global", "module", "item"):
            if cell.kind == "item" and type(cell.name) is int:
                return f"if len({owner}) > {cell.name}: FAIL"
            return f"if {cell.name!r} in {owner}: FAIL"
        if cell.kind == "closure":
            return f"if is_set({owner}, {cell.name[0]}): FAIL"
        return f"if hasattr({owner}, {cell.name!r}): FAIL"

    def value(self, variable: str, expression: str, name: str, value: Any, where: tuple[str, int]) -> None:
        """Emit what binds a variable to what a cell holds and compares it with what it held."""
        bind = f"{variable} = {expression}\n" if expression != variable else ""
        if is_atom(value):
            known = self.constant(value)
            self.guard(
                name,
                _shown(value),
                where,
                f"{bind}if {variable} is not {known} and differs({variable}, {known}): FAIL",
                True,
            )
            return
        if type(value) in (tuple, frozenset) and all(is_atom(part) for part in value):
            known = self.constant(value)
            same = f"type({variable}) is {type(value).__name__} and same({variable}, {known})"
            text = f"{bind}if {variable} is not {known} and not ({same}): FAIL"
            self.guard(name, _shown(value), where, text, not name.startswith(_DEFAULTS))
            return
        reached = self.reached.get(id(value))
        if reached is not None:
            first, first_name = reached
            if self.heap.things[id(value)].kind == "class" or first.startswith("k"):
                self.guard(name, first_name, where, f"{bind}if {variable} is not {first}: FAIL")
            else:
                self.guard(
                    name,
                    f"the same as {first_name}",
                    where,
                    f"{bind}if {variable} is not {first}: FAIL",
                    True,
                )
            return
        thing = self.heap.thing(value)
        self.reached[id(value)] = (variable, name)
        if type(value) is types.CodeType:
            place = f"the code at {value.co_filename}:{value.co_firstlineno}"
            self.guard(name, place, where, f"{bind}if {variable} is not {self.constant(value)}: FAIL")
            return
        kind = self.constant(type(value))
        if thing.kind == "array":
            self.array(variable, bind, name, thing, where)
            return
        if thing.kind == "foreign":
            self.foreign(variable, bind, name, value, where)
            return
        of_library = thing.kind == "object" and not is_user_class(type(value))  # its code is not watched
        if of_library or thing.kind in ("opaque", "module", "accelerated"):
            told = of_library or thing.kind == "opaque"
            self.guard(
                name, _shown(value), where, f"{bind}if {variable} is not {self.constant(value)}: FAIL", told
            )
        else:
            self.guard(
                name, f"a {type(value).__name__}", where, f"{bind}if type({variable}) is not {kind}: FAIL"
            )
        self.queue.append(thing)

    def array(self, variable: str, bind: str, name: str, thing: Thing, where: tuple[str, int]) -> None:
        value = thing.value
        text = bind
        data = variable
        if type(value) is dlarray:
            if value._value is not None and id(value._value) not in self.by_value:
                self.guard(name, "an array of a trace", where,
                           f"{bind}if type({variable}) is not dlarray or {variable}._value is None: FAIL")  # fmt: skip
                return
            text += f"if type({variable}) is not dlarray or {variable}._format != {value._format!r} or "
            text += f"TRACED<{variable}>: FAIL\n"
            data = f"{variable}d"
            text += f"{data} = {variable}._data"
        else:
            text += f"if type({variable}) is not ndarray: FAIL"
        self.guard(name, _described(value), where, text, True)
        number = len(self.state._guards) - 1
        array = data_of(value)
        records = self.by_data.get(id(array), [])
        if type(value) is dlarray and value._value is not None:
            records = [self.by_value[id(value._value)]]
        views = self.views_of(array)
        known = self.constant(signature.array_part(array))
        shape_check = (number, f"if key_of({data}) != {known}: FAIL")
        self.checks.append(shape_check)
        if views or (thing.meta and not records):
            self.lines.append(shape_check)
        for one in records:
            if len(records) > 1 or one.copy.tobytes() != array.tobytes():
                self.note_change(name, where)
            expression = data if signature.packed(array) is array else f"packed({data})"
            self.take(one, name, expression, variable if type(value) is dlarray else None)
        for one in views:
            offset = one.data.ctypes.data - array.ctypes.data
            view = self.constant((one.data.shape, one.data.dtype, offset, one.data.strides))
            if one.copy.tobytes() != one.data.tobytes():
                self.note_change(name, where)
            taken = f"view({data}, *{view})"
            self.take(
                one,
                f"a view of {name}",
                taken if signature.packed(one.data) is one.data else f"packed({taken})",
            )
        self.content(thing, data, name, number, bool(records or views))

    def foreign(self, variable: str, bind: str, name: str, value: Any, where: tuple[str, int]) -> None:
        """An array of another library, whose memory NumPy can look at."""
        try:
            array = _seen_by_numpy(value)
        except Exception:  # whatever that library raises: it cannot have been an operand
            self.guard(
                name, _shown(type(value)), where, f"{bind}if {variable} is not {self.constant(value)}: FAIL"
            )
            return
        data = f"{variable}d"
        text = (
            f"{bind}if type({variable}) is not {self.constant(type(value))}: FAIL\n{data} = seen({variable})"
        )
        self.guard(name, _described(array), where, text, True)
        number = len(self.state._guards) - 1
        self.checks.append(
            (number, f"if key_of({data}) != {self.constant(signature.array_part(array))}: FAIL")
        )
        place = _place(array)
        for one in self.met:
            if _place(one.data) == place:
                if one.copy.tobytes() != one.data.tobytes():
                    self.note_change(name, where)
                self.take(one, name, data)

    def take(self, one: _Met, name: str, expression: str, within: str | None = None) -> None:
        if id(one) not in self.found:
            self.found.add(id(one))
            one.name = name
            self.inputs[id(one)] = (expression, within or expression)

    def views_of(self, array: np.ndarray) -> list[_Met]:
        """Return the arrays that entered the recording as views of this one."""
        if not array.flags.c_contiguous:
            return []
        low = array.ctypes.data
        return [
            one
            for one in self.by_owner.get(id(_owner(array)), ())
            if one.data is not array and id(one) not in self.found and one.data.size
            and low <= np.lib.array_utils.byte_bounds(one.data)[0]
            and np.lib.array_utils.byte_bounds(one.data)[1] <= low + array.nbytes
        ]  # fmt: skip

    def content(self, thing: Thing, data: str, name: str, number: int, is_input: bool) -> None:
        """Compare the elements of an array that plain NumPy can read."""
        array = data_of(thing.value)
        taken = self.state._taken.get(id(array))
        content = taken[1] if taken else thing.content
        if content is None or (is_input and not taken and not thing.is_computed_with):
            return
        if thing.is_large:
            self.state.unguarded = (name, thing.where)
        elif array.tobytes() != content:
            self.note_change(name, thing.where)
        else:
            shape, dtype, held = array.shape, self.constant(array.dtype), self.constant(content)
            text = (
                f"if {data}.shape != {shape} or {data}.dtype != {dtype} or {data}.tobytes() != {held}: FAIL"
            )
            self.lines.append((number, text))

    def held(self, thing: Thing, owner: str, name: str) -> None:
        value, held = thing.value, thing.held
        assert held is not None
        where = thing.where
        kind = type(value)
        if kind in SETS:
            self.guard(
                name,
                f"{len(value)} elements",
                where,
                f"if {owner} != {self.constant(frozenset(value))}: FAIL",
                True,
            )
            return
        if all(is_atom(part) for part in held):
            self.guard(name, _shown(value), where, f"if not same({owner}, {self.constant(held)}): FAIL", True)
            return
        if kind in MAPPINGS:
            parts = held[1::2]
            keys = self.constant([*held[::2]])
            text = f"if [*{owner}] != {keys}: FAIL\n"
            source = f"{owner}.values()"
            names = [f"{name}[{key!r}]" for key in held[::2]]
        else:
            parts = held
            text = f"if len({owner}) != {len(parts)}: FAIL\n"
            source = owner
            names = [f"{name}[{i}]" for i in range(len(parts))]
        variables = [next(self.variables) for _ in parts]
        self.guard(name, f"{len(parts)} elements", where, f"{text}{', '.join(variables)}, = {source}")
        for variable, part, text in zip(variables, parts, names, strict=True):
            self.value(variable, variable, text, part, where)

    def rest(self) -> None:
        """Deal with the arrays that no way leads to."""
        for one in self.met:
            if id(one) in self.found:
                continue
            if one.array is not None:
                self.state.unguarded = ("an array of the evaluation around it that no name leads to", None)
                self.take(one, "", "None")
                continue
            one.is_input = False
            if len(self.by_data[id(one.data)]) > 1 or one.copy.tobytes() != one.data.tobytes():
                continue
            if _references(one) > _ALONE and id(one.data) not in self.state.results:
                one.is_input = True
                self.take(
                    one, f"an array at {id(one.data):#x} that no name leads to", self.constant(one.data)
                )
                self.state._guards.append(Guard(one.name, _described(one.data), None))


def _root_name(thing: Thing, kind: str, function: Thing) -> str:
    if kind == "globals":
        return "global"
    if kind == "class":
        return str(thing.value.__name__)
    if kind == "argument":
        return str(getattr(thing.value, "__name__", "an argument"))
    return ""


def _cell_name(owner: str, cell: Cell) -> str:
    if cell.kind == "global":
        return f"global {cell.name}"
    if cell.kind == "module":
        return f"module {cell.name}"
    if cell.kind == "closure":
        return f"closure {cell.name[1]}"
    if cell.name in ("__defaults__", "__kwdefaults__"):
        return f"{_DEFAULTS} of {owner}" if owner else _DEFAULTS
    if cell.name == "__self__":
        return "self"
    if cell.kind == "item":
        return f"{owner}[{cell.name!r}]"
    if cell.name in ("__code__", "__func__", "_function", "__wrapped__", "fget", "func"):
        return owner
    return f"{owner}.{cell.name}" if owner else str(cell.name)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _described(array: Any) -> str:
    data = data_of(array)
    return str(Aval(data.shape, getattr(array, "_format", None), data.dtype))


def _is_trace(value: Any) -> bool:
    """Return whether a value is an array of a trace, which cannot be read once the trace has ended."""
    return type(value) is dlarray and value._value is not None


def _same_atoms(value: Any, held: Any) -> bool:
    return value == held if type(value) is frozenset else same_elements(tuple(held), tuple(elements(value)))


def _seen_by_numpy(value: Any) -> np.ndarray:
    return trace.as_array(value)._data  # type: ignore[no-any-return]


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


def _layout(data: np.ndarray) -> Layout | None:
    part = signature.array_part(data)
    return None if part.strides is None else Layout(0, part.shape, part.strides)


def _make_constant(builder: Builder | None, one: _Met) -> None:
    assert builder is not None
    graph = builder.graph
    graph.inputs = [value for value in graph.inputs if value is not one.value]
    one.value.is_constant = True
    graph.constants.append(one.value)
