# SPDX-License-Identifier: BSD-3-Clause
"""What a call found outside its arguments: the cells that the functions which ran can read, with what they held.

Each cell (capture/objects.py) is noted before the function that can read it starts, so what it held then is what a
later call has to find again, and a cell that holds something else at the end was changed by the call itself.
"""

import builtins
import collections
import dataclasses
import functools
import gc
import itertools
import operator
import os
import pickle
import random
import sys
import types
import weakref
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any

import numpy as np

from tracejit.array import dlarray
from tracejit.capture import bytecode
from tracejit.capture.bytecode import READ, WRITE, WRITERS, Use
from tracejit.capture.objects import (
    ATOMS,
    MISSING,
    PARTS,
    UNKNOWN,
    Cell,
    Thing,
    elements,
    is_atom,
    is_closed,
    is_library_module,
    is_user_class,
    kind_of,
    look,
    remembered,
    static,
    values_in,
)
from tracejit.record import monitor

_TOLD_BY_SHAPE = frozenset(
    {"shape", "ndim", "size", "dtype", "itemsize", "nbytes", "strides", "flags", "format"}
)
_VIEWS = frozenset({"T", "reshape", "transpose", "swapaxes", "squeeze", "view", "ravel"})
_CALLS_OF_COLLECTOR = 4  # how deep functions that it calls may call others
# Functions of Python that take the numbers out of an ndarray, and those of NumPy that leave them or give views of them.
_NUMBERS = frozenset({
    "float", "int", "bool", "complex", "abs", "sum", "max", "min", "round", "any", "all", "sorted", "str", "divmod",
    "pow",
})  # fmt: skip
_NO_NUMBERS = frozenset({
    "shape", "ndim", "size", "result_type", "zeros_like", "ones_like", "empty_like", "full_like", "asarray",
    "asanyarray", "ascontiguousarray", "reshape", "transpose", "squeeze", "expand_dims", "atleast_1d", "atleast_2d",
    "broadcast_to", "shares_memory", "may_share_memory", "isscalar", "iscomplexobj", "swapaxes", "moveaxis", "ravel",
})  # fmt: skip
_MOST_THINGS = 20_000
_MOST_INSIDE = 1_000  # objects that are looked at for arrays in something that is not watched
_NOT_INSIDE = (type, types.ModuleType, types.FunctionType, types.CodeType, types.FrameType)

# What holds the elements of classes of Python's, whose code is not watched.
_INNER: tuple[tuple[Any, str], ...] = (
    (collections.UserDict, "data"), (collections.UserList, "data"), (collections.ChainMap, "maps"),
    (type(os.environ), "_data"), (weakref.WeakValueDictionary, "data"), (weakref.WeakKeyDictionary, "data"),
)  # fmt: skip
_BASES = (dict, list, tuple, set, frozenset, str, bytes, float, int, complex)  # of classes of the user's
_GETTERS = (operator.attrgetter, operator.methodcaller)
_CACHED = type(functools.lru_cache(len))
_DISPATCHER: Any = getattr(functools.singledispatch(len), "__code__", None)


class Heap:
    """The things and cells that were met during one call of a function."""

    def __init__(self, function: Callable[..., Any], arguments: Iterable[Any] = ()) -> None:
        self.things: dict[int, Thing] = {}
        self.roots: dict[int, str] = {}  # by id of the thing: "function", "globals", "modules" or "class"
        self.unseen: tuple[str, tuple[str, int]] | None = None  # what cannot be noted, and where it is read
        self._ran: set[types.CodeType] = set()
        self._ignored: set[types.CodeType] = set()
        self._waiting: dict[types.CodeType, list[Callable[[], object]]] = {}
        self._names: set[str] = set()
        self._all_attributes = False
        self._random: list[
            tuple[Any, bytes, tuple[str, int]]
        ] = []  # generators, their states, where they are read
        self._caches: list[Thing] = []  # functions with a cache
        self._objects: list[Thing] = []  # read as a whole
        self._seen: set[Any] = set()
        self._where = ("", 0)
        self._scope: dict[str, Any] = {}
        self._variables: Mapping[str, Any] = {}  # of the frame
        self.function = self.thing(function)
        self.roots[id(function)] = "function"
        for argument in arguments:  # the key of a trace holds these; what they read is not in it
            if kind_of(argument) in ("function", "parts", "accelerated", "class", "module", "wrapper"):
                self.thing(argument)
                self.roots.setdefault(id(argument), "argument")

    def started(self, frame: types.FrameType) -> None:
        """Note what the function of a frame, which has just started, can read."""
        try:
            self._started(frame)
        except Exception as error:
            self._cannot(error)

    def _cannot(self, error: Exception) -> None:
        """Note that an object does not let itself be looked at."""
        what = f"what cannot be looked at ({type(error).__name__}: {error})"
        self.unseen = self.unseen or (what, self._where)

    def _started(self, frame: types.FrameType) -> None:
        code = frame.f_code
        if code in self._ignored or self._is_of_collector(frame):
            return
        found = bytecode.reads_of(code)
        file = code.co_filename
        self._where = (file, code.co_firstlineno)
        if code not in self._ran:
            self._ran.add(code)
            self._more_names(found)
            for action in self._waiting.pop(code, ()):
                action()
        scope = self._scope = frame.f_globals
        self._variables = {}
        if str(scope.get("__name__")).startswith("namedtuple_"):  # where namedtuple() makes its methods
            return
        key: Any = (code, id(scope))
        is_new = key not in self._seen
        self._seen.add(key)
        variables: dict[str, Any] | None = None
        for use in found.uses:
            path = use.path
            self._where = (file, use.line)
            if path.scope == "local":
                if variables is None:
                    variables = frame.f_locals
                value = variables.get(path.name, MISSING)
                if is_closed(value):
                    continue
                key = (code, use, id(value))
                if key not in self._seen:
                    self._seen.add(key)
                    self.thing(value)  # kept, so that no other object gets its id
                    self._variables = variables
                    self._follow(use, value, path.steps)
            elif is_new:
                if path.scope == "global":
                    self._root(scope, "globals")
                    self._follow(use, scope, (("global", path.name), *path.steps))
                else:
                    self._root(sys.modules, "modules")
                    self._follow(use, sys.modules, (("module", path.name), *path.steps))

    def keep_only(self, idents: Container[int]) -> None:
        """Let go of all things but those of the given ids, once nothing runs any more."""
        self.things = {ident: thing for ident, thing in self.things.items() if ident in idents}
        self._objects.clear()
        self._waiting.clear()

    @property
    def decides(self) -> bool:
        """Whether anything that ran takes decisions or whole numbers of values of which nothing is known."""
        return any(bytecode.reads_of(code).branches_on_untracked for code in self._ran)

    @property
    def takes(self) -> bool:
        """Whether anything that ran makes Python's numbers of values of which nothing is known."""
        return any(bytecode.reads_of(code).extracts_untracked for code in self._ran)

    def literals(self, arguments: Iterable[Any]) -> set[float]:
        """Return the floating point numbers that stand in the code that ran, and those that it read or was given."""
        found: list[Any] = [*arguments]
        for code in self._ran:
            found += code.co_consts
        for thing in self.things.values():
            found += [cell.value for cell in thing.cells.values()]
            found += thing.held or ()
        return {value for value in found if type(value) is float}

    def _is_of_collector(self, frame: types.FrameType) -> bool:
        """Return whether the garbage collector called a function, which it does between any two instructions."""
        if not gc.callbacks or frame.f_code in self._ran:
            return False
        codes = {getattr(callback, "__code__", None) for callback in gc.callbacks}
        around: types.FrameType | None = frame
        for _ in range(_CALLS_OF_COLLECTOR):
            if around is None:
                break
            if around.f_code in codes:
                self._ignored.add(frame.f_code)
                return True
            around = around.f_back
        return False

    def _root(self, value: Any, kind: str) -> Thing:
        thing = self.things.get(id(value))
        if thing is None:
            thing = self.things[id(value)] = Thing(value, kind if kind != "class" else "class")
        self.roots.setdefault(id(value), kind)
        return thing

    def _follow(self, use: Use, value: Any, steps: tuple[tuple[str, Any], ...]) -> None:
        for number, (kind, name) in enumerate(steps, 1):
            thing = self.thing(value)
            if thing.kind == "array":
                self._of_array(thing, steps[number - 1 :])
                return
            if number == len(steps) and use.how == WRITE:
                if not (kind == "attr" and name in WRITERS and thing.kind == "container"):
                    self._cell(thing, kind, name)
                return
            if kind == "attr" and thing.kind == "container" and name not in WRITERS:
                self.whole(thing.value)  # what a method of it tells
            value = self._read(thing, kind, name)
            if value is UNKNOWN or value is MISSING:
                self._add_names({str(name) for kind, name in steps[number:] if kind == "attr"})
                if kind != "attr" or name not in _TOLD_BY_SHAPE:
                    thing.is_loose = True  # by a method of it
                if thing.kind == "module":
                    found = _in_module(thing.value, steps[number - 1 :])
                    self._draws(found)
                    if found is os.getenv or found is os.environ:
                        self._reference(os.environ)
                if kind == "item":
                    self.whole(thing.value)
                return
        if use.how == READ and type(value) is np.ndarray and value.dtype != object:
            self._elements(use, self.thing(value))
        elif use.how == READ:
            self.whole(value)

    def _elements(self, use: Use, thing: Thing) -> None:
        """Note how an ndarray is read."""
        thing.is_whole = True
        self._content(thing)
        place = (self._where[0], use.place)
        if use.operator or self._is_of_numpy(use.callee):
            thing.computed.append(place)
        elif use.callee is None:
            thing.is_loose = True
        elif not self._is_watched(use.callee):
            thing.passed.append(place)
        if use.is_index and thing.value.ndim == 1:
            thing.is_computed_with = True
        elif use.is_index:
            thing.is_indexed = True

    def _is_watched(self, callee: bytecode.AccessPath) -> bool:
        """Return whether a path leads to a Python function, whose own uses say what becomes of its arguments."""
        if callee.scope == "global":
            value = self._scope.get(callee.name)
        else:
            value = self._variables.get(callee.name) if callee.scope == "local" else None
        for kind, name in callee.steps:
            if kind != "attr":
                return False
            own = getattr(value, "__dict__", {})
            value = own[name] if name in own else static(type(value), name)
        if type(value) is types.MethodType:
            value = value.__func__
        return type(value) is types.FunctionType and not monitor.is_library(value.__code__.co_filename)

    def _is_of_numpy(self, callee: bytecode.AccessPath | None) -> bool:
        """Return whether an access path leads to a function that computes with the elements of an ndarray."""
        if callee is None or callee.scope != "global":
            return False
        value = self._scope.get(callee.name, getattr(builtins, callee.name, None))
        for kind, name in callee.steps:
            value = getattr(value, name, None) if kind == "attr" and type(value) is types.ModuleType else None
        if isinstance(value, np.ufunc):
            return True
        module = getattr(value, "__module__", None) or ""
        name = getattr(value, "__name__", "")
        return (module == "builtins" and name in _NUMBERS) or (
            module.partition(".")[0] == "numpy" and name not in _NO_NUMBERS
        )

    def _of_array(self, thing: Thing, steps: tuple[tuple[str, Any], ...]) -> None:
        kind, name = steps[0]
        if kind == "attr" and name in _TOLD_BY_SHAPE:
            thing.meta = True
        elif type(thing.value) is np.ndarray:
            thing.is_loose = True
            self._content(thing)
            items = [at for of, at in itertools.takewhile(lambda step: step[0] == "item", steps)]
            places = sum(len(at) if type(at) is tuple else 1 for at in items)
            if (kind == "attr" and name not in _VIEWS) or (items and places >= thing.value.ndim):
                thing.is_computed_with = True

    def _content(self, thing: Thing) -> None:
        """Note that plain NumPy can read the elements of an array."""
        if thing.content is None:
            thing.where = self._where
            thing.content = b"" if thing.is_large else thing.value.tobytes()

    def thing(self, value: Any) -> Thing:
        """Return the thing of a value, new or known."""
        thing = self.things.get(id(value))
        if thing is not None:
            return thing
        thing = self.things[id(value)] = Thing(value, kind_of(value))
        thing.where = self._where
        if len(self.things) > _MOST_THINGS:
            self.unseen = self.unseen or ("more objects than can be compared at each call", self._where)
            return thing
        if thing.kind == "function":
            self._when(value.__code__, lambda: self._function_ran(thing))
            self._read(thing, "attr", "__code__")
            if monitor.is_library(value.__code__.co_filename) and hasattr(value, "__wrapped__"):
                self._read(thing, "attr", "__wrapped__")
            if value.__code__ is _DISPATCHER:
                self._hold(self.thing(self._read(thing, "registry", "")))
        elif thing.kind == "parts":
            for name in PARTS[type(value)]:
                part = self._read(thing, "attr", name)
                if kind_of(part) == "container":
                    self._hold(self.thing(part))
        elif thing.kind == "accelerated":
            self._read(thing, "attr", "_function")
        elif thing.kind == "wrapper":
            self._read(thing, "attr", "__wrapped__")
            self._remembered(thing)
        elif thing.kind == "holder":
            self.whole(self._read(thing, "held", ""))
        elif thing.kind == "class":
            self._class(value)
        elif thing.kind in ("object", "member"):
            self._class(type(value))
        elif type(value) in _GETTERS:
            names = [name for name in value.__reduce__()[1] if isinstance(name, str)]
            self._add_names({part for name in names for part in name.split(".")})
        if thing.kind == "object" and type(value).__base__ is not object:
            self._inner(thing)
        if thing.kind in ("opaque", "parts") or (thing.kind == "object" and not is_user_class(type(value))):
            self._draws(value)
        if thing.kind in ("opaque", "wrapper") or (thing.kind == "object" and not is_user_class(type(value))):
            thing.inside = _arrays_inside(value)
        return thing

    def _reference(self, value: Any) -> None:
        """Note something that is found again without a name."""
        self.thing(value)
        self.roots.setdefault(id(value), "argument")

    def _inner(self, thing: Thing) -> None:
        """Note what is in an object that code keeps there which is not watched."""
        for kind, name in _INNER:
            if issubclass(type(thing.value), kind):
                self.whole(self._read(thing, "attr", name))
                return
        base = next((base for base in _BASES if issubclass(type(thing.value), base)), None)
        if base is not None:
            self.whole(self._read(thing, "base", base))

    def _remembered(self, thing: Thing) -> None:
        """Note what a function with a cache remembers."""
        if type(thing.value) is not _CACHED:
            return
        own = thing.value.__dict__
        parts = gc.get_referents(thing.value)
        thing.memory = next((part for part in parts if type(part) is dict and part is not own), None)
        self._caches.append(thing)
        self._results(thing)

    def _results(self, thing: Thing) -> None:
        for _, _, result in remembered(thing):
            is_array = type(result) is np.ndarray
            if is_array or kind_of(result) != "container" or len(result) <= _MOST_INSIDE:  # no large table
                self.whole(result)

    def ended(self) -> None:
        """Note what cached functions remember since they were called."""
        try:
            for thing in self._caches:
                self._results(thing)
        except Exception as error:
            self._cannot(error)

    def _draws(self, value: Any) -> None:
        """Note the state of a generator of random numbers, or of the one that a method is of."""
        is_method = type(value) in (types.MethodType, types.BuiltinMethodType)
        for one in (value, value.__self__ if is_method else None):
            state = _random_state(one)
            if state is not None and all(one is not known for known, _, _ in self._random):
                self._random.append((one, state, self._where))

    def drew(self) -> tuple[str, tuple[str, int]] | None:
        """Return in words what random numbers were drawn from, if any were, and where it is read."""
        for one, state, where in self._random:
            if _random_state(one) != state:
                return f"a {type(one).__module__}.{type(one).__name__}", where
        return None

    def _when(self, code: types.CodeType, action: Callable[[], object]) -> None:
        if code in self._ran:
            action()
        else:
            self._waiting.setdefault(code, []).append(action)

    def _function_ran(self, thing: Thing) -> None:
        function = thing.value
        for name in ("__defaults__", "__kwdefaults__"):
            if getattr(function, name):  # what has no default was given by whoever called
                self._hold(self.thing(self._read(thing, "attr", name)))
        free = bytecode.reads_of(function.__code__).free
        for number, name in enumerate(function.__code__.co_freevars):
            if free.get(name, READ) == READ:
                self._read(thing, "closure", (number, name))
            else:
                self._cell(thing, "closure", (number, name))

    def _class(self, kind: type) -> None:
        """Watch for the methods of a class."""
        if id(kind) in self.roots or not is_user_class(kind):
            return
        thing = self._root(kind, "class")
        for base in kind.__mro__:
            if not is_user_class(base):
                continue
            for name, raw in vars(base).items():
                function = _function_in(raw)
                if function is not None:
                    self._when(function.__code__, functools.partial(self._method, thing, base, name))

    def _method(self, thing: Thing, base: type, name: str) -> None:
        self._read(thing, "attr", name)
        if base is not thing.value:  # what super() finds
            self._read(self._root(base, "class"), "attr", name)

    def _cell(self, thing: Thing, kind: str, name: Any) -> Cell | None:
        key = (kind, name)
        cell = thing.cells.get(key)
        if cell is None:
            value = look(thing, kind, name)
            if value is UNKNOWN:
                return None
            cell = thing.cells[key] = Cell(kind, name, value, self._where)
        return cell

    def _read(self, thing: Thing, kind: str, name: Any) -> Any:
        """Note that a cell is read, and return what it held when it was first met."""
        cell = self._cell(thing, kind, name)
        if cell is None:
            if kind == "attr" and thing.kind == "object":
                own = self._cell(thing, "own", name)  # a method of the class, unless the instance has its own
                if own is not None:
                    own.is_read = True
                raw = static(type(thing.value), name)
                raw = raw.dispatcher if type(raw) is functools.singledispatchmethod else raw
                is_own = is_user_class(type(raw)) and hasattr(type(raw), "__get__")  # a descriptor
                if is_own or type(raw) is _CACHED or getattr(raw, "__code__", None) is _DISPATCHER:
                    self._reference(raw)
            return UNKNOWN
        if not cell.is_read:
            cell.is_read = True
            cell.where = self._where
            if not is_closed(cell.value):
                self.thing(cell.value)
        return cell.value

    def _hold(self, thing: Thing) -> None:
        """Note what a container holds, and how many."""
        if thing.held is None:
            thing.held = tuple(elements(thing.value))
            for value in values_in(thing.value):
                if not is_atom(value):
                    self.thing(value)

    def whole(self, value: Any) -> None:
        """Note that everything in a value can be read."""
        if is_closed(value) or self.unseen is not None:
            return
        thing = self.thing(value)
        thing.is_loose = True
        if thing.is_whole:
            return
        thing.is_whole = True
        if thing.kind == "array":
            if type(value) is np.ndarray:
                self._content(thing)
        elif thing.kind == "foreign":
            thing.where = self._where
        elif thing.kind == "container":
            self._hold(thing)
            for part in values_in(value):
                self.whole(part)
        elif thing.kind in ("parts", "holder"):
            for cell in [*thing.cells.values()]:
                self.whole(cell.value)
        elif thing.kind in ("object", "member", "class", "module"):
            if thing.kind == "module" and is_library_module(value):
                return
            self._objects.append(thing)
            names = set(self._names)
            if dataclasses.is_dataclass(value) and thing.kind == "object":
                names.update(field.name for field in dataclasses.fields(value))
            if self._all_attributes and thing.kind == "object":
                names.update(getattr(value, "__dict__", ()))
            self._named(thing, names)

    def _named(self, thing: Thing, names: set[str]) -> None:
        """Read those attributes of an object that it has of the given names."""
        for name in sorted(names):
            found = look(thing, "attr", name)
            if found is UNKNOWN:
                self._read(thing, "attr", name)
            elif found is not MISSING:
                self.whole(self._read(thing, "attr", name))

    def _more_names(self, found: bytecode.Reads) -> None:
        names = set(found.names)
        if found.is_dynamic and not self._all_attributes:
            self._all_attributes = True
            for thing in [*self._objects]:
                if thing.kind == "object":
                    self._named(thing, set(getattr(thing.value, "__dict__", ())))
        self._add_names(names)

    def _add_names(self, names: set[str]) -> None:
        new = names - self._names
        if new:
            self._names |= new
            for thing in [*self._objects]:
                self._named(thing, new)


def _arrays_inside(value: Any) -> list[Any]:
    """Return the arrays that something holds which Python code does not look into: a queue, an iterator."""
    found: list[Any] = []
    waiting = collections.deque([value])
    seen = {id(value)}
    while waiting and len(seen) < _MOST_INSIDE:
        for part in gc.get_referents(waiting.popleft()):
            if isinstance(part, (np.ndarray, dlarray)):
                found.append(part)
            elif id(part) not in seen and type(part) not in ATOMS and not isinstance(part, _NOT_INSIDE):
                seen.add(id(part))
                waiting.append(part)
    return found


def _function_in(raw: Any) -> types.FunctionType | None:
    """Return the Python function behind an entry of a class, or None."""
    for name in ("__func__", "fget", "func", "_function", "__wrapped__"):
        if type(raw) is not types.FunctionType and hasattr(raw, name) and not isinstance(raw, type):
            raw = getattr(raw, name)
    return raw if type(raw) is types.FunctionType else None


def _random_state(value: Any) -> bytes | None:
    """Return the state of a generator of random numbers of NumPy's or Python's; None of anything else."""
    if type(value) is random.Random:
        return pickle.dumps(value.getstate())
    kinds = sys.modules.get("numpy.random")
    if kinds is None or not issubclass(type(value), (kinds.Generator, kinds.RandomState, kinds.BitGenerator)):
        return None
    if issubclass(type(value), kinds.RandomState):
        return pickle.dumps(value.get_state(legacy=False))
    return pickle.dumps(getattr(value, "bit_generator", value).state)


def _in_module(value: Any, steps: Iterable[tuple[str, Any]]) -> Any:
    """Return what the names after a module lead to, within modules."""
    for kind, name in steps:
        if kind != "attr" or type(value) is not types.ModuleType:
            break
        value = vars(value).get(name)
    return value
