# SPDX-License-Identifier: BSD-3-Clause
"""The access paths of the functions that run, followed from their frames to the objects that they lead to."""

import builtins
import enum
import gc
import inspect
import random
import sys
import types
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tracejit.capture import bytecode
from tracejit.capture.asked import are_shown
from tracejit.capture.generators import LOOKING_AT_STATES, state_of
from tracejit.capture.library import GETTERS, WRITING
from tracejit.capture.named import ObservedClass, ObservedInstance, ObservedModule, ObservedSubarray
from tracejit.capture.objects import CHANGING, TOLD_BY_SHAPE, ObservedArray, ObservedContainer
from tracejit.capture.observed import Observed, Slot
from tracejit.capture.reads import (
    ASK,
    CHANGE,
    DELETE,
    LENGTH,
    MOVE,
    MOVERS,
    PROBE,
    READ,
    TAKE,
    TOUCH,
    UPDATE,
    WRITE,
    WRITERS,
    AccessPath,
    Comparison,
    Constant,
    SuperAttribute,
    Use,
)
from tracejit.capture.slots import (
    BUILTINS,
    SLOTS,
    AttributeSlot,
    DrawsSlot,
    GlobalSlot,
    LengthSlot,
    LibrarySlot,
    PresenceSlot,
    SuperSlot,
    TruthSlot,
)
from tracejit.capture.snapshot import Snapshot
from tracejit.capture.takers import takes_dlarrays
from tracejit.capture.values import MISSING, SEQUENCES, UNKNOWN, is_closed, static
from tracejit.record import monitor, patches
from tracejit.record.monitor import is_user_class
from tracejit.record.side_effects import MEMORIES

_FUNCTIONS = (types.FunctionType, staticmethod, classmethod)
_CALLS_OF_COLLECTOR = 4  # depth of calls from its callbacks that are still attributed to it
# Functions of Python that take the numbers out of an ndarray, and those of NumPy that leave them or give views of them.
_NUMBERS = frozenset({
    "float", "int", "bool", "complex", "abs", "sum", "max", "min", "round", "any", "all", "sorted", "str", "divmod",
    "pow",
})  # fmt: skip
_OF_SIZES = (len, np.shape, np.ndim, np.size)
_NO_NUMBERS = frozenset({
    "shape", "ndim", "size", "result_type", "zeros_like", "ones_like", "empty_like", "full_like", "asarray",
    "asanyarray", "ascontiguousarray", "reshape", "transpose", "squeeze", "expand_dims", "atleast_1d", "atleast_2d",
    "broadcast_to", "shares_memory", "may_share_memory", "isscalar", "iscomplexobj", "swapaxes", "moveaxis", "ravel",
})  # fmt: skip


class PathReader:
    """The reader of what the functions that run can read, which notes it in a snapshot.

    Long because all steps of a path share the frame that it begins in.

    Args:
        snapshot: the notes.
        started: is told what a function can read that begins to run, if nothing was noted of it before.
        given: is told the frame of each function that begins to run.
        of_length: is told the global names of code that asks for the length of a list, or whether it is that of an
            object whose class says it by a method; returns whether that is all.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        started: Callable[[Sequence[Observed]], None],
        given: Callable[[types.FrameType], None],
        of_length: Callable[[dict[str, Any], bool], bool],
    ) -> None:
        self._snapshot = snapshot
        self._tell = started
        self._tell_frame = given
        self._tell_length = of_length
        self._ignored: set[types.CodeType] = set()
        self._seen: set[Any] = set()
        self._scope: dict[str, Any] = {}
        self._variables: Mapping[str, Any] = {}  # of the frame

    def started(self, frame: types.FrameType) -> None:
        """Note what the function of a frame, which has just started, can read."""
        try:
            self._started(frame)
            self._tell_frame(frame)
        except Exception as error:
            self._snapshot.refuse(error)

    def used(self, value: Any) -> None:
        """Note a function or a class that the package's own code uses, such as those of a layer."""
        try:
            if isinstance(value, type):
                self._snapshot.watch_class(value)
            else:
                self._snapshot.add_argument(value)
        except Exception as error:
            self._snapshot.refuse(error)

    def _started(self, frame: types.FrameType) -> None:
        snapshot = self._snapshot
        code = frame.f_code
        if code in self._ignored:
            return
        if code is monitor.IMPORT_MODULE:
            self._snapshot.names_of_modules.add(frame.f_locals["name"])
            return
        if code not in snapshot.ran and _is_of_collector(frame):
            self._ignored.add(code)
            return
        reads = bytecode.reads_of(code)
        self._snapshot.where = (code.co_filename, code.co_firstlineno)
        known = len(snapshot.objects)
        if code not in snapshot.ran:
            snapshot.note_code(code)
        if not code.co_flags & inspect.CO_OPTIMIZED and isinstance(frame.f_locals, dict):
            snapshot.made.add(frame.f_locals)  # of a class: what it fills, and no copy
        scope = self._scope = frame.f_globals
        self._variables = {}
        if str(scope.get("__name__")).startswith("namedtuple_"):  # where namedtuple() makes its methods
            return
        key = (code, id(scope))
        is_new = key not in self._seen
        self._seen.add(key)
        variables: dict[str, Any] | None = None
        for use in reads.uses:
            self._snapshot.where = (code.co_filename, use.line)
            if use.path.scope == "local":
                if variables is None:
                    variables = _variables_of(frame)
                self._follow_variable(code, use, variables)
            elif is_new:
                self._follow_root(use, scope)
        if is_new and "len" in code.co_names:
            self._note_lengths(scope)
        for attribute in reads.supers:
            self._follow_super(code, attribute, frame)
        for comparison in reads.identities:
            self._note_identity(code, comparison, frame)
        self._variables, variables = (
            {},
            None,
        )  # references to what they hold are counted (record/references.py)
        self._tell([*snapshot.objects.values()][known:] if len(snapshot.objects) > known else ())
        if code.co_freevars:
            _ = frame.f_locals  # Python 3.11 puts what it was asked for last back into the cells

    def _note_lengths(self, scope: dict[str, Any]) -> None:
        """Note that code may ask for the length of an object that no path leads to, if there are such objects."""
        snapshot = self._snapshot
        if any(_has_length(observed.value) for observed in snapshot.objects.values()):
            snapshot.slot(snapshot.root(scope, "global"), GlobalSlot, "len")
            self._tell_length(scope, True)

    def _follow_variable(self, code: types.CodeType, use: Use, variables: dict[str, Any]) -> None:
        value = variables.get(use.path.name, MISSING)
        key = (code, use, id(value))
        if not is_closed(value) and key not in self._seen:
            self._seen.add(key)
            observed = self._snapshot.observe(value)  # which keeps it, so that no other object gets its id
            if isinstance(observed, ObservedArray) and use.path.name not in code.co_freevars:
                observed.is_variable = True
            self._variables = variables
            self._follow(use, value, use.path.steps)

    def _follow_super(self, code: types.CodeType, attribute: SuperAttribute, frame: types.FrameType) -> None:
        """Note an attribute of ``super()`` that a function reads."""
        variables = frame.f_locals
        after, owner = (
            (variables if path.scope == "local" else frame.f_globals).get(path.name)
            for path in (attribute.after, attribute.owner)
        )
        kind = owner if isinstance(owner, type) else type(owner)
        is_direct = not (attribute.after.steps or attribute.owner.steps)
        if is_direct and isinstance(after, type) and is_user_class(kind):
            self._snapshot.where = (code.co_filename, attribute.line)
            value = self._snapshot.read(self._snapshot.root_of(kind), SuperSlot, (after, attribute.name))
            if type(value) is not types.FunctionType and value is not UNKNOWN and value is not MISSING:
                self._snapshot.read_whole(value)

    def _note_identity(self, code: types.CodeType, comparison: Comparison, frame: types.FrameType) -> None:
        """Note that two objects, to which paths lead that were followed, are not the same."""
        first, second = (
            self._at(path, frame.f_locals if path.scope == "local" else frame.f_globals)
            for path in (comparison.first, comparison.second)
        )
        if not (first is second or is_closed(first) or is_closed(second)):
            self._snapshot.apart.append((first, second, (code.co_filename, comparison.line)))

    def _at(self, path: AccessPath, namespace: Mapping[str, Any]) -> Any:
        """Return the value to which a path leads along slots that were read, or MISSING."""
        value = namespace.get(path.name, MISSING)
        for kind, name in path.steps:
            slot = self._snapshot.observe(value).slots.get((SLOTS[kind], name))
            if slot is None:
                return MISSING
            value = slot.value
        return value

    def _follow_root(self, use: Use, scope: dict[str, Any]) -> None:
        path = use.path
        is_global = path.scope == "global"
        namespace: Any = scope if is_global else sys.modules
        self._snapshot.root(namespace, "global" if is_global else "")
        self._follow(use, namespace, ((path.scope, path.name), *path.steps))
        own = vars(builtins)
        if is_global and path.name not in scope and own.get(path.name) is not BUILTINS.get(path.name):
            self._snapshot.root(own, "builtins")
            self._follow(use, own, (("global", path.name), *path.steps))

    def _follow(self, use: Use, value: Any, steps: tuple[tuple[str, Any], ...]) -> None:
        for number, (kind, name) in enumerate(steps, 1):
            observed = self._snapshot.observe(value)
            slot_kind = SLOTS[kind]
            if kind == "attr" and isinstance(observed, ObservedModule) and observed.is_of_library:
                observed = self._snapshot.root(vars(observed.value), observed.value.__name__)
                slot_kind = LibrarySlot
            is_container = isinstance(observed, ObservedContainer)
            if isinstance(observed, ObservedArray):
                if use.how in (WRITE, UPDATE) and kind == "item":
                    observed.note_written(self._snapshot.where, self._place_of(use))
                if use.how != WRITE or kind != "item":
                    observed.follow(steps[number - 1 :], self._snapshot.where)
                return
            is_item = number == len(steps) and kind == "item" and use.how in (WRITE, UPDATE)
            if is_item and (type(observed.value) in MEMORIES or isinstance(observed, ObservedSubarray)):
                self._snapshot.change(observed.value)
            if number == len(steps) and self._ends(use, observed, slot_kind, name):
                return
            if kind == "item" and type(observed.value) is deque and observed.value.maxlen is not None:
                self._snapshot.move(observed.value)  # append() moves its elements
            if kind == "attr" and is_container and name not in WRITERS:
                self._snapshot.read_whole(observed.value)  # what a method of it returns
            owner, value = value, self._snapshot.read(observed, slot_kind, name)
            if value is UNKNOWN or value is MISSING:
                self._follow_unknown(use, self._snapshot.observe(owner), steps[number - 1 :])
                return
        if use.how == ASK:  # the calls say what they read
            is_shown = are_shown(use.callee, self._scope, self._snapshot.observe(value))
            use = use._replace(how=TOUCH if is_shown else READ)
        named = steps[-1][1] if steps else use.path.name
        if any(value is kind and named != kind.__name__ for kind in GETTERS):
            self._snapshot.read_dynamically()
        if (use.how in (LENGTH, TAKE) or use.is_tested) and self._takes(use, value):
            return
        if use.how in (READ, LENGTH, TAKE) and type(value) is np.ndarray and value.dtype != object:
            array = self._snapshot.observe(value)
            assert isinstance(array, ObservedArray)
            self._read_elements(use, array)
        elif use.how in (READ, LENGTH, TAKE):
            callee = use.callee if type(value) in CHANGING else None
            if callee is not None and _is_watched(callee, self._scope, self._variables):
                self._snapshot.observe(value)  # the code that gets it says what it does with it
            else:
                self._snapshot.read_whole(value)
            if use.operator or use.is_tested:
                self._snapshot.read_specials(type(value))
        elif use.how == CHANGE:
            self._snapshot.change(value, self._place_of(use))
        elif use.how == MOVE:
            self._snapshot.move(value)
        elif use.how == TOUCH and not is_closed(value):
            observed = self._snapshot.observe(value)
            observed.note_used(self._snapshot)
            if isinstance(observed, ObservedClass):
                self._snapshot.read_names(observed)  # of instances that a call of it makes
                self._snapshot.read_specials(value)
                if issubclass(value, enum.Enum):  # a call of it finds a member
                    self._snapshot.read_whole(value)

    def _takes(self, use: Use, value: Any) -> bool:
        """Note that a use reads the length of a list, or takes drawn elements of it; return whether that is all."""
        snapshot = self._snapshot
        if use.how == READ and type(value) in SEQUENCES:
            snapshot.read(snapshot.observe(value), TruthSlot, "")
            return True
        if use.how == READ:
            return False
        if use.how == TAKE:
            return type(value) in SEQUENCES and self._is_drawing(use.callee) and snapshot.take(value)
        is_container = type(value) in SEQUENCES
        if not (is_container or _has_length(value)):
            return False
        snapshot.slot(snapshot.root(self._scope, "global"), GlobalSlot, "len")  # what it meant so far
        if not self._tell_length(self._scope, not is_container):
            return False
        if is_container:
            snapshot.read(snapshot.observe(value), LengthSlot, "")
        else:
            snapshot.observe(value).note_used(snapshot)
            snapshot.read_specials(type(value))  # __len__ is code that is watched
        return True

    def _is_drawing(self, callee: AccessPath | None) -> bool:
        """Return whether a path leads to a method of one of Python's own generators of random numbers."""
        value = None if callee is None else _called(callee, self._scope, self._variables)
        owner = getattr(patches.original(value), "__self__", None)
        return type(owner) is random.Random

    def _ends(self, use: Use, observed: Observed, slot_kind: type[Slot], name: Any) -> bool:
        """Note a use of the last step of a path that does not read the value there; return whether it is one."""
        snapshot = self._snapshot
        if use.how == UPDATE:
            snapshot.update(observed, slot_kind, name, self._added(use), self._place_of(use))
        elif use.how == WRITE:
            is_method = slot_kind is AttributeSlot and name in WRITERS
            if not (is_method and isinstance(observed, ObservedContainer)):
                snapshot.assign(observed, slot_kind, name)
            elif name in MOVERS:
                snapshot.move(observed.value)
        elif use.how == DELETE:
            snapshot.delete(observed, slot_kind, name)
        elif use.how == PROBE and slot_kind is AttributeSlot:
            if snapshot.read(observed, PresenceSlot, name) is UNKNOWN:
                snapshot.read(observed, AttributeSlot, name)
        else:
            return False
        return True

    def _place_of(self, use: Use) -> Any:
        """Return the file and the span of the code that uses something, as user_place() does."""
        return self._snapshot.where[0], use.place

    def _added(self, use: Use) -> tuple[str, Any]:
        """Return the operator and the operand of an augmented assignment."""
        assert use.addition is not None
        written, operand = use.addition
        if type(operand) is Constant:
            return written, operand.value
        if type(operand) is not AccessPath or operand.scope == "module":
            return written, UNKNOWN
        value = self._at(operand, self._variables if operand.scope == "local" else self._scope)
        return written, UNKNOWN if value is MISSING else value

    def _follow_unknown(self, use: Use, owner: Observed, steps: tuple[tuple[str, Any], ...]) -> None:
        """Note what a path reads from an object whose next step cannot be looked at."""
        kind, name = steps[0]
        # An attribute of a method, or the method itself; of one that is called, its code tells.
        is_read = (
            kind == "attr" and (len(steps) > 1 or use.how == READ) and isinstance(owner, ObservedInstance)
        )
        if is_read and type(static(type(owner.value), name)) in _FUNCTIONS:
            self._follow(use, self._snapshot.root_of(type(owner.value)).value, steps)
        self._snapshot.add_names({str(name) for kind, name in steps[1:] if kind == "attr"})
        if kind != "attr" or name not in TOLD_BY_SHAPE:
            owner.is_loose = True  # by a method of it
        if isinstance(owner, ObservedModule):
            value = _in_modules(owner.value, steps)
            self._snapshot.generators.note(value, self._snapshot.where)
        if kind == "item":
            self._snapshot.read_whole(owner.value)
        elif name not in WRITING:
            owner.note_state(self._snapshot)
        if name in LOOKING_AT_STATES and state_of(owner.value) is not None:
            self._snapshot.read(owner, DrawsSlot, "")

    def _read_elements(self, use: Use, array: ObservedArray) -> None:
        """Note how an ndarray is read."""
        callee = None if use.callee is None else _called(use.callee, self._scope, self._variables)
        if any(callee is known for known in _OF_SIZES):
            return
        array.is_whole = True
        array.keep_content(self._snapshot.where)
        place = self._place_of(use)
        if use.operator or _is_of_numpy(use.callee, self._scope):
            array.computed.append(place)
        elif use.callee is None:
            array.selected.append((place, use.is_index))
        elif not _is_watched(use.callee, self._scope, self._variables):
            array.passed.append(place)
            array.is_given = array.is_given or not (callee is isinstance or takes_dlarrays(callee))


def _variables_of(frame: types.FrameType) -> dict[str, Any]:
    """Return the variables of a function, or those that the body of a class has of the functions around it."""
    free, around = frame.f_code.co_freevars, frame.f_back
    if frame.f_code.co_flags & inspect.CO_OPTIMIZED or not free or around is None:
        return frame.f_locals
    variables = around.f_locals
    return {name: variables[name] for name in free if name in variables}


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


def _is_watched(callee: AccessPath, scope: Mapping[str, Any], variables: Mapping[str, Any]) -> bool:
    """Return whether a path leads to a Python function, whose own uses say what becomes of its arguments."""
    value = _called(callee, scope, variables)
    if type(value) is types.MethodType:
        value = value.__func__
    return type(value) is types.FunctionType and not monitor.is_library(value.__code__.co_filename)


def _called(callee: AccessPath, scope: Mapping[str, Any], variables: Mapping[str, Any]) -> Any:
    """Return what a path to a function leads to, without running the user's code; None if it is not known."""
    value = _root_of(callee, scope, variables)
    owner = None
    for kind, name in callee.steps:
        if kind != "attr":
            return None
        owner, own = value, getattr(value, "__dict__", {})
        value = own[name] if name in own else static(type(value), name)
    if type(owner) is random.Random and isinstance(value, types.FunctionType):
        return types.MethodType(value, owner)
    return value


def _root_of(path: AccessPath, scope: Mapping[str, Any], variables: Mapping[str, Any]) -> Any:
    """Return what the first name of a path leads to: a global, a variable, a module that the function imports."""
    if path.scope == "local":
        return variables.get(path.name)
    if path.scope == "module":
        return sys.modules.get(path.name)
    return scope.get(path.name, getattr(builtins, path.name, None))


def _is_of_numpy(callee: AccessPath | None, scope: Mapping[str, Any]) -> bool:
    """Return whether an access path leads to a function that computes with the elements of an ndarray."""
    if callee is None:
        return False
    is_at = callee.steps[-1:] == (("attr", "at"),)
    value = _at_scope(callee._replace(steps=callee.steps[:-1]) if is_at else callee, scope)
    if isinstance(value, np.ufunc):
        return True
    module = getattr(value, "__module__", None) or ""
    name = getattr(value, "__name__", "")
    return (module == "builtins" and name in _NUMBERS) or (
        module.partition(".")[0] == "numpy" and name not in _NO_NUMBERS
    )


def _has_length(value: Any) -> bool:
    """Return whether the user's code says what the length of an object is."""
    kind = type(value)
    return is_user_class(kind) and type(static(kind, "__len__")) is types.FunctionType


def _at_scope(path: AccessPath, scope: Mapping[str, Any]) -> Any:
    """Return what a global name, one of Python's own, or an imported module, and names in modules lead to, or None."""
    value = _root_of(path, scope, {})
    for kind, name in path.steps:
        value = getattr(value, name, None) if kind == "attr" and type(value) is types.ModuleType else None
    return value


def _in_modules(value: Any, steps: Iterable[tuple[str, Any]]) -> Any:
    """Return what the names after a module lead to, within modules."""
    for kind, name in steps:
        if kind != "attr" or type(value) is not types.ModuleType:
            break
        value = vars(value).get(name)
    return value
