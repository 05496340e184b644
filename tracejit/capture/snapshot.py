# SPDX-License-Identifier: BSD-3-Clause
"""The objects that a call reads besides its arguments, with what they held before the call could change them.

Each slot is noted before the function that can read it starts. Its value then is what a later call must find again,
and a slot that holds something else at the end was changed by the call itself.
"""

import builtins
import functools
import gc
import os
import sys
import types
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any

import numpy as np

from tracejit.capture import bytecode
from tracejit.capture.bytecode import READ, WRITE, WRITERS, Use
from tracejit.capture.generators import Generators
from tracejit.capture.objects import (
    TOLD_BY_SHAPE,
    ObservedArray,
    ObservedClass,
    ObservedContainer,
    ObservedInstance,
    ObservedModule,
    ObservedNames,
    ObservedNamespace,
    ObservedWrapper,
    kind_of,
)
from tracejit.capture.observed import Observed, Slot
from tracejit.capture.slots import SLOTS, AttributeSlot
from tracejit.capture.values import MISSING, UNKNOWN, is_closed, is_user_class, static
from tracejit.record import monitor

_CALLS_OF_COLLECTOR = 4  # depth of calls from its callbacks that are still attributed to it
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
_MOST_OBJECTS = 20_000


class Snapshot:
    """The objects that were observed during one call of a function.

    Attributes:
        objects: by id.
        roots: ids of the objects that a replay starts from, with their names in words.
        unseen: what cannot be noted, in words, and where it is read.
        where: the file and line that is looked at.
        caches: functions with a cache.
        generators: of random numbers.
    """

    def __init__(self, function: Callable[..., Any], arguments: Iterable[Any] = ()) -> None:
        self.objects: dict[int, Observed] = {}
        self.roots: dict[int, str] = {}
        self.unseen: tuple[str, tuple[str, int]] | None = None
        self.where = ("", 0)
        self.caches: list[ObservedWrapper] = []
        self.generators = Generators()
        self._ran: set[types.CodeType] = set()
        self._ignored: set[types.CodeType] = set()
        self._waiting: dict[types.CodeType, list[Callable[[], object]]] = {}
        self._names: set[str] = set()
        self._is_dynamic = False  # whether code that ran reads attributes by computed names
        self._read_by_names: list[ObservedNames] = []
        self._seen: set[Any] = set()
        self._scope: dict[str, Any] = {}
        self._variables: Mapping[str, Any] = {}  # of the frame
        self.observe(function)
        self.roots[id(function)] = ""
        for argument in arguments:  # the key of a trace describes these, but not what they read
            if kind_of(argument).is_code:
                self.add_root(argument)

    def started(self, frame: types.FrameType) -> None:
        """Note what the function of a frame, which has just started, can read."""
        try:
            self._started(frame)
        except Exception as error:
            self._refuse(error)

    def ended(self) -> None:
        """Note what cached functions remember since they were called."""
        try:
            for cached in self.caches:
                cached.note_results(self)
        except Exception as error:
            self._refuse(error)

    def _refuse(self, error: Exception) -> None:
        """Note that looking at an object raised an error."""
        what = f"what cannot be looked at ({type(error).__name__}: {error})"
        self.unseen = self.unseen or (what, self.where)

    def _started(self, frame: types.FrameType) -> None:
        code = frame.f_code
        if code in self._ignored:
            return
        if code not in self._ran and _is_of_collector(frame):
            self._ignored.add(code)
            return
        reads = bytecode.reads_of(code)
        self.where = (code.co_filename, code.co_firstlineno)
        if code not in self._ran:
            self._ran.add(code)
            self._add_names_of(reads)
            for action in self._waiting.pop(code, ()):
                action()
        scope = self._scope = frame.f_globals
        self._variables = {}
        if str(scope.get("__name__")).startswith("namedtuple_"):  # where namedtuple() makes its methods
            return
        key = (code, id(scope))
        is_new = key not in self._seen
        self._seen.add(key)
        variables: dict[str, Any] | None = None
        for use in reads.uses:
            self.where = (code.co_filename, use.line)
            if use.path.scope == "local":
                if variables is None:
                    variables = frame.f_locals
                self._follow_variable(code, use, variables)
            elif is_new:
                self._follow_root(use, scope)

    def _follow_variable(self, code: types.CodeType, use: Use, variables: dict[str, Any]) -> None:
        value = variables.get(use.path.name, MISSING)
        key = (code, use, id(value))
        if not is_closed(value) and key not in self._seen:
            self._seen.add(key)
            self.observe(value)  # which keeps it, so that no other object gets its id
            self._variables = variables
            self._follow(use, value, use.path.steps)

    def _follow_root(self, use: Use, scope: dict[str, Any]) -> None:
        path = use.path
        is_global = path.scope == "global"
        namespace: Any = scope if is_global else sys.modules
        self._root(namespace, "global" if is_global else "")
        self._follow(use, namespace, ((path.scope, path.name), *path.steps))

    def keep_only(self, idents: Container[int]) -> None:
        """Release all objects but those of the given ids, once nothing runs any more."""
        self.objects = {ident: observed for ident, observed in self.objects.items() if ident in idents}
        self._read_by_names.clear()
        self._waiting.clear()

    @property
    def branches_on_untracked(self) -> bool:
        """True if any code that ran branches on, or truncates, a value that is not tracked."""
        return any(bytecode.reads_of(code).branches_on_untracked for code in self._ran)

    @property
    def extracts_untracked(self) -> bool:
        """True if any code that ran makes a Python number of a value that is not tracked."""
        return any(bytecode.reads_of(code).extracts_untracked for code in self._ran)

    def literals(self, arguments: Iterable[Any]) -> set[float]:
        """Return the floating point numbers in the code that ran, in what it read and in its arguments."""
        values: list[Any] = [*arguments]
        for code in self._ran:
            values += code.co_consts
        for observed in self.objects.values():
            values += [slot.value for slot in observed.slots.values()]
            values += observed.held or ()
        return {value for value in values if type(value) is float}

    # Objects and their slots

    def observe(self, value: Any) -> Observed:
        """Return what is observed of a value, which begins with this call if nothing is."""
        observed = self.objects.get(id(value))
        if observed is not None:
            return observed
        observed = self.objects[id(value)] = kind_of(value)(value, self.where)
        if len(self.objects) > _MOST_OBJECTS:
            self.unseen = self.unseen or ("more objects than can be compared at each call", self.where)
        else:
            observed.note(self)
        return observed

    def add_root(self, value: Any) -> None:
        """Observe an object that a replay finds again without a name."""
        self.observe(value)
        self.roots.setdefault(id(value), str(getattr(value, "__name__", "an argument")))

    def _root(self, value: Any, name: str) -> Observed:
        observed = self.objects.get(id(value))
        if observed is None:
            kind = ObservedClass if isinstance(value, type) else ObservedNamespace
            observed = self.objects[id(value)] = kind(value)
        self.roots.setdefault(id(value), name)
        return observed

    def slot(self, owner: Observed, kind: type[Slot], name: Any) -> Slot | None:
        """Return a slot, or None if the user's code would have to run to look at it."""
        slot = owner.slots.get((kind, name))
        if slot is None:
            value = kind.look(owner, name)
            if value is UNKNOWN:
                return None
            slot = owner.slots[kind, name] = kind(name, value, self.where)
        return slot

    def read(self, owner: Observed, kind: type[Slot], name: Any) -> Any:
        """Note that a slot is read, and return what it held when it was first observed."""
        slot = self.slot(owner, kind, name)
        if slot is None:
            if kind is AttributeSlot and isinstance(owner, ObservedInstance):
                owner.note_computed(self, name)
            return UNKNOWN
        if not slot.is_read:
            slot.is_read = True
            slot.where = self.where
            if not is_closed(slot.value):
                self.observe(slot.value)
        return slot.value

    def hold(self, container: Any) -> None:
        """Note which elements a container has."""
        self.observe(container).hold(self)

    def read_whole(self, value: Any) -> None:
        """Note that everything in a value can be read."""
        if is_closed(value) or self.unseen is not None:
            return
        observed = self.observe(value)
        observed.is_loose = True
        if not observed.is_whole:
            observed.is_whole = True
            observed.note_contents(self)

    def read_names(self, owner: ObservedNames) -> None:
        """Read the attributes of an object whose names the code that runs has."""
        self._read_by_names.append(owner)
        self._read_named(owner, {*self._names, *owner.own_names(self._is_dynamic)})

    def _read_named(self, owner: Observed, names: Iterable[str]) -> None:
        """Read those attributes of an object that it has of the given names."""
        for name in sorted(names):
            value = owner.attribute(name)
            if value is UNKNOWN:
                self.read(owner, AttributeSlot, name)
            elif value is not MISSING:
                self.read_whole(self.read(owner, AttributeSlot, name))

    def _add_names_of(self, reads: bytecode.Reads) -> None:
        if reads.is_dynamic and not self._is_dynamic:
            self._is_dynamic = True
            for owner in [*self._read_by_names]:
                self._read_named(owner, owner.own_names(True))
        self.add_names(set(reads.names))

    def add_names(self, names: set[str]) -> None:
        """Note that code which runs reads attributes of these names of untracked values."""
        new = names - self._names
        if new:
            self._names |= new
            for owner in [*self._read_by_names]:
                self._read_named(owner, new)

    # Access paths

    def _follow(self, use: Use, value: Any, steps: tuple[tuple[str, Any], ...]) -> None:
        for number, (kind, name) in enumerate(steps, 1):
            observed = self.observe(value)
            is_container = isinstance(observed, ObservedContainer)
            if isinstance(observed, ObservedArray):
                observed.follow(steps[number - 1 :], self.where)
                return
            if number == len(steps) and use.how == WRITE:
                if not (kind == "attr" and name in WRITERS and is_container):
                    self.slot(observed, SLOTS[kind], name)
                return
            if kind == "attr" and is_container and name not in WRITERS:
                self.read_whole(observed.value)  # what a method of it returns
            value = self.read(observed, SLOTS[kind], name)
            if value is UNKNOWN or value is MISSING:
                self._follow_unknown(observed, steps[number - 1 :])
                return
        if use.how == READ and type(value) is np.ndarray and value.dtype != object:
            array = self.observe(value)
            assert isinstance(array, ObservedArray)
            self._read_elements(use, array)
        elif use.how == READ:
            self.read_whole(value)

    def _follow_unknown(self, owner: Observed, steps: tuple[tuple[str, Any], ...]) -> None:
        """Note what a path reads from an object whose next step cannot be looked at."""
        kind, name = steps[0]
        self.add_names({str(name) for kind, name in steps[1:] if kind == "attr"})
        if kind != "attr" or name not in TOLD_BY_SHAPE:
            owner.is_loose = True  # by a method of it
        if isinstance(owner, ObservedModule):
            value = _in_modules(owner.value, steps)
            self.generators.note(value, self.where)
            if value is os.getenv or value is os.environ:
                self.add_root(os.environ)
        if kind == "item":
            self.read_whole(owner.value)

    def _read_elements(self, use: Use, array: ObservedArray) -> None:
        """Note how an ndarray is read."""
        array.is_whole = True
        array.keep_content(self.where)
        place = (self.where[0], use.place)
        if use.operator or _is_of_numpy(use.callee, self._scope):
            array.computed.append(place)
        elif use.callee is None:
            array.is_loose = True
        elif not _is_watched(use.callee, self._scope, self._variables):
            array.passed.append(place)
        if use.is_index and array.value.ndim == 1:
            array.is_computed_with = True
        elif use.is_index:
            array.is_indexed = True

    # Code that may run later

    def when_run(self, code: types.CodeType, action: Callable[[], object]) -> None:
        """Act when code has run, which may be now."""
        if code in self._ran:
            action()
        else:
            self._waiting.setdefault(code, []).append(action)

    def watch_class(self, kind: type) -> None:
        """Note the methods of a class that run."""
        if id(kind) in self.roots or not is_user_class(kind):
            return
        observed = self._root(kind, kind.__name__)
        for base in kind.__mro__:
            if not is_user_class(base):
                continue
            for name, raw in vars(base).items():
                function = _function_in(raw)
                if function is not None:
                    action = functools.partial(self._method_ran, observed, base, name)
                    self.when_run(function.__code__, action)

    def _method_ran(self, observed: Observed, base: type, name: str) -> None:
        self.read(observed, AttributeSlot, name)
        if base is not observed.value:  # where super() finds it
            self.read(self._root(base, base.__name__), AttributeSlot, name)


def _is_of_collector(frame: types.FrameType) -> bool:
    """Return whether the garbage collector called a function, which it does between any two instructions."""
    codes = {getattr(callback, "__code__", None) for callback in gc.callbacks}
    caller: types.FrameType | None = frame
    for _ in range(_CALLS_OF_COLLECTOR if codes else 0):
        if caller is None:
            return False
        if caller.f_code in codes:
            return True
        caller = caller.f_back
    return False


def _is_watched(callee: bytecode.AccessPath, scope: Mapping[str, Any], variables: Mapping[str, Any]) -> bool:
    """Return whether a path leads to a Python function, whose own uses say what becomes of its arguments."""
    if callee.scope == "global":
        value = scope.get(callee.name)
    else:
        value = variables.get(callee.name) if callee.scope == "local" else None
    for kind, name in callee.steps:
        if kind != "attr":
            return False
        own = getattr(value, "__dict__", {})
        value = own[name] if name in own else static(type(value), name)
    if type(value) is types.MethodType:
        value = value.__func__
    return type(value) is types.FunctionType and not monitor.is_library(value.__code__.co_filename)


def _is_of_numpy(callee: bytecode.AccessPath | None, scope: Mapping[str, Any]) -> bool:
    """Return whether an access path leads to a function that computes with the elements of an ndarray."""
    if callee is None or callee.scope != "global":
        return False
    value = scope.get(callee.name, getattr(builtins, callee.name, None))
    for kind, name in callee.steps:
        value = getattr(value, name, None) if kind == "attr" and type(value) is types.ModuleType else None
    if isinstance(value, np.ufunc):
        return True
    module = getattr(value, "__module__", None) or ""
    name = getattr(value, "__name__", "")
    return (module == "builtins" and name in _NUMBERS) or (
        module.partition(".")[0] == "numpy" and name not in _NO_NUMBERS
    )


def _function_in(raw: Any) -> types.FunctionType | None:
    """Return the Python function behind an entry of a class, or None."""
    for name in ("__func__", "fget", "func", "_function", "__wrapped__"):
        if type(raw) is not types.FunctionType and hasattr(raw, name) and not isinstance(raw, type):
            raw = getattr(raw, name)
    return raw if type(raw) is types.FunctionType else None


def _in_modules(value: Any, steps: Iterable[tuple[str, Any]]) -> Any:
    """Return what the names after a module lead to, within modules."""
    for kind, name in steps:
        if kind != "attr" or type(value) is not types.ModuleType:
            break
        value = vars(value).get(name)
    return value
