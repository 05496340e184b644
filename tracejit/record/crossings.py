# SPDX-License-Identifier: BSD-3-Clause
"""Calls by which a number that varies leaves the user's code; the called function gets a true number.

Note [crossings]
A Number has the methods of a number, and most code uses nothing else. Some code asks for the type: type(n),
json.dumps(n), Decimal(n), math.ldexp(1.0, n). So while a function with such arguments is recorded, each call that its
code makes is looked at before it happens; where a number is computed from an array (number.py, Note [numbers of
arrays]), from that time on. The user's own code gets Numbers, because its calls are looked at too.
tracejit, NumPy and those functions of Python that use only the methods also get Numbers. All other functions get true
numbers: the Numbers that can be reached from their arguments first become true numbers (Note [true numbers]), and are
needed.

The arguments of a call lie on the stack of the frame, which is read from its memory. A trace function sees each
instruction of Python 3.11; later versions report calls (sys.monitoring). Where neither is possible, nothing is looked
at, and a call that insists on a type raises its TypeError.
"""

import bisect
import builtins
import functools
import gc
import heapq
import itertools
import math
import operator
import os
import sys
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable
from typing import Any

import numpy as np

from tracejit.record import conversions, monitor, recorder, stack
from tracejit.util.frames import PACKAGE
from tracejit.util.text import module_of
from tracejit.util.uninterrupted import is_of_handler, surely

_MOST_OBJECTS = 10_000  # that are searched for numbers at a call
_WITH_LARGE_OBJECTS = frozenset({
    "asyncio", "concurrent", "email", "http", "importlib", "io", "logging", "multiprocessing", "pathlib", "selectors",
    "socket", "sqlite3", "ssl", "subprocess", "tempfile", "threading", "tracejit", "unittest", "urllib", "xml",
})  # fmt: skip
# Modules of Python's whose functions treat numbers by their methods, pass them on, or only keep them.
_MODULES_BY_METHODS = frozenset({
    "abc", "bisect", "collections", "contextlib", "copy", "dataclasses", "functools", "heapq", "logging", "types",
    "typing", "warnings",
})  # fmt: skip
_STRICT = ("type", "compile", "open", "super", "memoryview", "__build_class__", "input", "breakpoint")
_NAMED = {name: thing for name, thing in vars(builtins).items() if name not in _STRICT}
_KEEPING = (functools.partial, functools.reduce, defaultdict, OrderedDict, types.SimpleNamespace)
# Functions and classes of C that treat numbers by their methods, or only keep them.
_BY_METHODS: frozenset[int] = frozenset(
    id(thing)
    for module in (_NAMED, vars(math), vars(operator), vars(itertools), vars(heapq), vars(bisect))
    for name, thing in module.items()
    if callable(thing) and name != "ldexp" and getattr(thing, "__module__", None) != "_frozen_importlib"
) | {
    *map(id, (*_KEEPING, object.__setattr__, object.__getattribute__))
}  # which frozen dataclasses are set by
_CONTAINERS = (list, tuple, dict, set, frozenset, str, deque, defaultdict, OrderedDict, types.GeneratorType)
_METHODS_BY_METHODS = (*_CONTAINERS, np.ufunc)  # classes whose methods do so
_BOUND_IN_C = (types.BuiltinFunctionType, types.MethodWrapperType)
_GETTERS = (
    operator.attrgetter,
    operator.itemgetter,
)  # classes of objects that ask for attributes and items only
_KEEPERS = frozenset(
    {object, tuple, list, dict, set, frozenset, BaseException, Exception}
)  # make objects of anything
_CLOSED = (str, bytes, complex, type, types.ModuleType, types.CodeType, np.ndarray, np.generic)
_INSISTING = frozenset(
    {"__complex__", "__float__", "__hash__", "__index__", "__int__"}
)  # methods of the user's
_LIBRARIES = monitor.files
_NUMPY = os.path.dirname(os.path.abspath(np.__file__)) + os.sep


def takes_numbers(function: Any) -> bool:
    """Return whether a function treats numbers by their methods, or is code whose own calls are looked at."""
    kind = type(function)
    if kind is types.FunctionType:
        file = function.__code__.co_filename
        if str(function.__globals__.get("__name__")).partition(".")[0] in _MODULES_BY_METHODS:
            called = [*getattr(function, "registry", {}).values(), getattr(function, "__wrapped__", None)]
            return all(takes_numbers(other) for other in called if other is not None)
        return _is_by_methods(file)
    if kind is types.MethodType:
        return takes_numbers(function.__func__)
    if function is type:
        return False
    if id(function) in _BY_METHODS or kind is np.ufunc:
        return True
    if kind in _GETTERS:
        return True
    if kind is functools.partial:
        return takes_numbers(function.func)
    if issubclass(kind, type):
        return _makes_of_numbers(function)
    if kind is types.MethodDescriptorType:
        return function.__objclass__ in _METHODS_BY_METHODS
    if kind in _BOUND_IN_C:
        owner = function.__self__
        if type(owner) in _METHODS_BY_METHODS:
            return True
        return str(function.__module__).partition(".")[0] == "numpy" and "random" not in str(
            function.__module__
        )
    if module_of(kind).partition(".")[0] in ("numpy", "tracejit"):
        return "random" not in module_of(kind)
    _, call = _defining(kind, "__call__")
    return type(call) is types.FunctionType and takes_numbers(call)


def _is_by_methods(file: str) -> bool:
    """Return whether code of a file is the user's, tracejit's or NumPy's, which get Numbers."""
    ours = (PACKAGE, _NUMPY, "<__array_function__", "<tracejit")
    return not monitor.is_library(file) or file.startswith(ours)


def _makes_of_numbers(kind: type) -> bool:
    """Return whether a class makes objects of numbers by their methods, or by code whose own calls are looked at."""
    module = module_of(kind)
    if module.partition(".")[0] in ("numpy", "tracejit"):
        return "random" not in module
    makers = [_defining(type(kind), "__call__"), _defining(kind, "__new__"), _defining(kind, "__init__")]
    if type(kind) is type:
        makers = makers[1:]
    for owner, maker in makers:
        if isinstance(maker, staticmethod):
            maker = maker.__func__
        is_kept = owner in _KEEPERS or owner is type or issubclass(owner, BaseException)
        if not (takes_numbers(maker) if type(maker) is types.FunctionType else is_kept):
            return False
    return True


def _defining(kind: type, name: str) -> tuple[type, Any]:
    """Return the class that defines an attribute of a class, and the attribute."""
    return next((base, vars(base)[name]) for base in kind.__mro__ if name in vars(base))


def cross(owner: Any, function: Any, arguments: list[Any]) -> None:
    """Turn into true numbers the Numbers passed to a function that may ask for their type.

    Args:
        owner: the recorder.
        function: what is called.
        arguments: what it is called with; a tuple or a dict of arguments counts as one.
    """
    if owner.state.looks_at_calls:
        owner.state.called(function, arguments)
        if not owner.varying:
            return
    try:
        if _is_safe(function, arguments):
            return
        name = getattr(function, "__qualname__", None) or type(function).__name__
        module = getattr(function, "__module__", None)
        by = name if module in (None, "builtins") else f"{module}.{name}"
        numbers = _reached(owner, [function, *arguments])
    except Exception as error:  # objects may be odd in any way; the user's code goes on
        if is_of_handler(error):
            raise
        name, by, numbers = "a call", "a call", list(owner.varying)
    for number in numbers:
        if recorder.is_number(number):  # not yet with another one
            number.become_true(f"{name}()", by)


def _is_safe(function: Any, arguments: list[Any]) -> bool:
    """Return whether a call needs no true numbers."""
    if function is type and len(arguments) == 1:  # which looks at nothing that an object holds
        return not recorder.is_number(arguments[0])
    if not takes_numbers(function):
        return False
    if function is pow and len(arguments) > 2:  # only the first argument of three is asked
        return False
    return type(function) in (types.FunctionType, types.MethodType) or all(map(_may_be_passed, arguments))


def _may_be_passed(argument: Any) -> bool:
    """Return whether what a function of C may call treats numbers by their methods."""
    if type(argument) in (tuple, dict):
        parts: Iterable[Any] = argument.values() if type(argument) is dict else argument
        return all(map(_may_be_passed, parts))
    return recorder.is_number(argument) or not callable(argument) or takes_numbers(argument)


def _reached(owner: Any, roots: list[Any]) -> list[Any]:
    """Return the Numbers of a recording that can be reached from some objects."""
    reached: dict[int, Any] = {}
    seen: set[int] = set()
    pending = list(roots)
    while pending:
        thing = pending.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if recorder.is_number(thing):
            reached[id(thing)] = thing
        elif type(thing) is types.FunctionType:
            pending += [*(thing.__closure__ or ()), thing.__defaults__, thing.__kwdefaults__]
        elif type(thing) is dict:  # the collector need not see the attributes of an object in its __dict__
            pending += [*thing, *thing.values()]
        elif not issubclass(type(thing), _CLOSED) and not _is_large(type(thing)):
            if len(seen) > _MOST_OBJECTS:
                return list(owner.varying)
            pending += gc.get_referents(thing)
    return list(reached.values())


def _is_large(kind: type) -> bool:
    """Return whether objects of a class, such as a logger, hold much and have received true numbers only."""
    return module_of(kind).partition(".")[0] in _WITH_LARGE_OBJECTS


class Calls:
    """A block in which the calls that the user's code makes in this thread are looked at, as soon as there are Numbers.

    Args:
        owner: the recorder.
    """

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        self._watch: _Steps | monitor.CallWatch | None = None
        self._around: Any = None  # the frame of the block

    def __enter__(self) -> "Calls":
        self._around = sys._getframe(1)
        self.owner.endings.append(self.end)
        self.owner.calls = self
        if _looks(self.owner):
            self.begin()
        return self

    def __exit__(self, *exc: object) -> None:
        surely(self.end)

    def end(self) -> None:
        """Look at no more calls; may be called twice."""
        if self._watch is not None:
            self._watch.__exit__()
        conversions.end(self.owner)
        self._around = None
        self.owner.calls = recorder.NO_CALLS

    def begin(self) -> None:
        """Look at calls from now on, also at those that functions make which are running."""
        if self._watch is None and stack.is_readable():
            if sys.version_info < (3, 12):
                self._watch = _Steps(self.owner)
            else:
                self._watch = monitor.CallWatch(
                    functools.partial(_called, self.owner),
                    functools.partial(conversions.give_back, self.owner),
                )
            self._watch.__enter__()
        if self._watch is not None:
            self._watch.join(sys._getframe(1), self._around)

    def is_for_user(self, frame: types.FrameType) -> bool:
        """Return whether what a frame is given stays in the user's code, as far as is known.

        A library that has called it, and Python where it calls a special method such as __float__, insist on the type
        of what it returns.
        """
        at: types.FrameType | None = frame
        while at is not None and at is not self._around:
            if at.f_code.co_name in _INSISTING or not _takes_results(at):
                return False
            at = at.f_back
        return True

    def is_around(self, frame: types.FrameType) -> bool:
        """Return whether a frame is that of the block, which the recorded code runs in."""
        return frame is self._around

    def follows(self, frame: types.FrameType) -> bool:
        """Return whether the next instruction of a frame of the user's code is seen."""
        self.begin()
        return self._watch is not None and not _is_not_of_user(frame) and self._watch.follow(frame)


class _Steps:
    """A block in which each instruction of the user's code is seen, in Python 3.11."""

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        self._outer: tuple[Any, Any] | None = None
        self._kept: Any = None  # the trace function
        self._code: types.CodeType | None = None  # the latest, and its instructions
        self._instructions = b""

    def __enter__(self) -> "_Steps":
        self._outer = sys.gettrace(), monitor.current.trace
        try:
            # Kept, because Python frees it if an exception of a signal handler ends its call, and may be about to call
            # it again: the collector can run in between.
            self._kept = monitor.current.trace = self.called
            sys.settrace(self._kept)
        except BaseException:  # of a signal handler
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        if self._outer is not None:
            trace, monitor.current.trace = self._outer
            if sys.gettrace() in (None, self.called):  # the user's code may start a debugger
                sys.settrace(trace)
        self._outer = self._kept = None

    def called(self, frame: types.FrameType, event: str, _: Any) -> Any:
        """Begin with a frame."""
        is_library = _LIBRARIES.get(frame.f_code.co_filename)
        if is_library or (is_library is None and monitor.is_library(frame.f_code.co_filename)):
            return None
        if not _looks(self.owner) or _is_not_of_user(frame):
            return None
        frame.f_trace_lines = False
        frame.f_trace_opcodes = True
        return self.step

    def join(self, frame: types.FrameType | None, around: types.FrameType) -> None:
        """Look at the next instructions of frames that are running, from one up to that around them."""
        while frame is not None and frame is not around:
            if not _LIBRARIES.get(frame.f_code.co_filename):
                if frame.f_trace_opcodes and frame.f_trace == self.step:
                    return
                step = self.called(frame, "call", None)
                if step is not None:
                    frame.f_trace = step
            frame = frame.f_back

    def follow(self, frame: types.FrameType) -> bool:
        """Return whether the next instruction of a running frame is seen."""
        return sys.gettrace() == self.called and frame.f_trace == self.step and frame.f_trace_opcodes

    def step(self, frame: types.FrameType, event: str, _: Any) -> Any:
        """Look at the next instruction of a frame."""
        if self.owner.lent is not None and event == "opcode":
            conversions.give_back(self.owner, frame)
        code = frame.f_code
        if code is not self._code:  # which takes longer to look up than the rest
            self._code, self._instructions = code, stack.code_of(code)
        if event == "opcode" and self._instructions[frame.f_lasti] in stack.CALLS:
            if not _looks(self.owner):
                frame.f_trace_opcodes = False
                return None
            function, *arguments = stack.noted(frame)
            cross(self.owner, function, arguments)
        return self.step


def _takes_results(frame: types.FrameType) -> bool:
    """Return whether the code of a frame treats numbers that functions return by their methods, or is watched."""
    module = str(frame.f_globals.get("__name__")).partition(".")[0]
    return module in _MODULES_BY_METHODS or _is_by_methods(frame.f_code.co_filename)


def _is_not_of_user(frame: types.FrameType) -> bool:
    """Return whether a frame runs a library's code, or what namedtuple() and dataclass() have made for one."""
    name = str(frame.f_globals.get("__name__"))
    return monitor.is_library(frame.f_code.co_filename) or name.startswith(("namedtuple_", "tracejit."))


def _called(owner: Any, frame: types.FrameType, at: int, function: Any) -> None:
    """Look at a call that Python 3.12 or later reports: of a function, or with a star, of any."""
    if not _looks(owner) or stack.code_of(frame.f_code)[at] not in stack.CALLS or _is_not_of_user(frame):
        return
    reported = stack.reported(frame, at, function)
    if reported is None and owner.state.looks_at_calls:
        owner.state.called(function, None)
    # Where nobody knows which numbers are passed, all may be.
    function, *arguments = reported or [function, *owner.varying]
    cross(owner, function, arguments)


def _looks(owner: Any) -> bool:
    """Return whether calls of a recording are looked at: for numbers, or for ndarrays that functions get."""
    return bool(owner.varying) or owner.state.looks_at_calls
