# SPDX-License-Identifier: BSD-3-Clause
"""Monitoring: the Python functions that run in this thread while a block runs.

On Python 3.12 and later sys.monitoring reports them, and code of no interest costs once. On Python 3.11 a profile
function does, and makes a recording take about twice as long.

Code that an import runs (the body of a module, what that calls, the finders and loaders of sys.meta_path) does not
belong to the function: it runs in one recording only, and what the function reads of the module is observed anyway.
After the first import, the frames around each function that starts are searched for the import machinery.

Long because the reports of Python 3.11 and of later versions go to the same watchers.
"""

import importlib
import inspect
import os
import sys
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tracejit.record import stack
from tracejit.record.side_effects import NAMES, SideEffects, acts
from tracejit.util.frames import PACKAGE, absolute, user_frame
from tracejit.util.locks import new_lock
from tracejit.util.text import module_of

Started = Callable[[types.FrameType], None]
Called = Callable[[types.FrameType, int, Any], None]
Reached = Callable[[types.FrameType], None]
Used = Callable[[Any], None]
Asked = Callable[[types.FrameType, Any, Sequence[Any] | None], None]


_EXAMPLES = PACKAGE + "examples" + os.sep  # a user's code all the same
_SITE = os.path.dirname(os.path.dirname(os.path.abspath(np.__file__))) + os.sep
_LIBRARIES = (
    PACKAGE, "<frozen", "<tracejit", "<__array_function__",
    *[f"{_SITE}{name}{os.sep}" for name in ("numpy", "scipy", "numba", "llvmlite")],
)  # fmt: skip
_VERSIONED = f"python{sys.version_info[0]}.{sys.version_info[1]}"
_STANDARD = tuple(
    os.path.abspath(folder) + os.sep
    # Where modules are found, which some installations of macOS reach by another path, and where sysconfig, which
    # takes long to import, says that they are.
    for folder in (
        os.path.dirname(os.__file__),
        os.path.join(sys.base_prefix, "lib", _VERSIONED),
        os.path.join(sys.base_exec_prefix, sys.platlibdir, _VERSIONED),
    )
)
_IMPORTS = frozenset({"<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>"})
files: dict[str, bool] = {}
"""The files of code that was met, and whether they are those of libraries."""
_CREATED_BY_PYTHON = 1 << 9  # Py_TPFLAGS_HEAPTYPE: the class comes from a class statement
IMPORT_MODULE = importlib.import_module.__code__
"""The code of a function of Python's that is reported all the same: no byte code tells which module it returns."""
ASKING = frozenset({getattr, hasattr, setattr, delattr, vars, dir})
"""The functions that the user's code asks for attributes with, by their names."""
# Functions of Python's library that read all attributes of their first argument, and of what these lead to, and the
# names of their modules.
_READING_ALL = {
    "copy": ("copy",), "deepcopy": ("copy",), "replace": ("copy", "dataclasses"), "asdict": ("dataclasses",),
    "astuple": ("dataclasses",), "getmembers": ("inspect",), "getattr_static": ("inspect",), "signature": ("inspect",),
    "getfullargspec": ("inspect",), "pformat": ("pprint",), "pprint": ("pprint",),
}  # fmt: skip
_monitoring: Any = getattr(sys, "monitoring", None)
_OPTIMIZED = 1  # flag of the code of functions; modules and bodies of classes lack it
_MODULE = "<module>"  # name of the code of a module, and of exec()
# The kinds of functions of C; objects of other kinds may answer for their name in their own way.
_OF_C = (types.BuiltinFunctionType, types.MethodDescriptorType)


class _Watching(threading.local):
    started: Started | None = None
    used: Used | None = None
    asked: Asked | None = None
    called: Called | None = None
    reached: Reached | None = None
    import_around: types.FrameType | None = None  # the import that runs the block itself
    has_imported = False  # whether an import ran, or still runs, in the block
    effects: SideEffects | None = None
    profile: Any = None  # the profile function, on Python 3.11
    trace: Any = None  # the trace function (crossings.py), on Python 3.11


current = _Watching()


@contextmanager
def paused() -> Iterator[None]:
    """Run a block of the package's own code without reporting its calls."""
    profile, trace = pause()
    try:
        yield
    finally:
        go_on(profile, trace)


def pause() -> tuple[Any, Any]:
    """Report no calls from now on; return what go_on() takes to report them again."""
    profile = current.profile
    trace = None if current.trace is None else sys.gettrace()
    if profile is not None:
        sys.setprofile(None)
    if trace is not None:
        sys.settrace(None)
    return profile, trace


def go_on(profile: Any, trace: Any) -> None:
    """Report calls again after pause(), unless the block that reports them has ended since.

    A generator that an exception of a signal handler left behind may get here late.
    """
    if trace is not None and _is_current(trace):
        sys.settrace(trace)
    if profile is not None and profile is current.profile:
        sys.setprofile(profile)


def _is_current(trace: Any) -> bool:
    """Return whether a trace function is that of a block which goes on, or of another tool during such a block."""
    if current.trace is None:
        return False
    is_ours = getattr(trace, "__func__", None) is getattr(current.trace, "__func__", None)
    return trace == current.trace or not is_ours


@contextmanager
def resumed() -> Iterator[None]:
    """Run a block of the user's code inside paused(): its calls are reported."""
    is_paused = current.profile is not None and sys.getprofile() is None
    is_untraced = current.trace is not None and sys.gettrace() is None
    if is_paused:
        sys.setprofile(current.profile)
    if is_untraced:
        sys.settrace(current.trace)
    try:
        yield
    finally:
        if is_paused:
            sys.setprofile(None)
        if is_untraced:
            sys.settrace(None)


def watched(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call a function of NumPy for the user; a method of the user's that it calls (__array__) is reported."""
    with resumed():
        return function(*args, **kwargs)


@contextmanager
def unwatched() -> Iterator[None]:
    """Run a block of the user's code that does not belong to the recorded function: its calls are not reported."""
    kept = current.started, current.used, current.asked, current.called, current.reached, current.effects
    current.started = current.used = current.asked = current.called = current.reached = current.effects = None
    try:
        with paused():
            yield
    finally:
        if (
            current.started is None
        ):  # unless this generator ends late, as one that an interrupt has left behind
            (
                current.started, current.used, current.asked, current.called, current.reached,
                current.effects,
            ) = kept  # fmt: skip


def note_used(value: Any) -> None:
    """Note that the package's own code uses a function or a class of the user's, to which no name may lead."""
    if current.used is not None:
        current.used(value)


def is_library(file: str) -> bool:
    """Return whether code of a file is assumed to read nothing that changes: NumPy's, tracejit's, Python's own."""
    is_of_library = files.get(file)
    if is_of_library is None:
        path = absolute(file)
        standard = path.startswith(_STANDARD) and "-packages" + os.sep not in path
        is_of_library = standard or (path.startswith(_LIBRARIES) and not path.startswith(_EXAMPLES))
        files[file] = is_of_library
    return is_of_library


def is_library_module(module: types.ModuleType) -> bool:
    """Return whether a module belongs to NumPy, tracejit or Python itself."""
    file = vars(module).get("__file__")
    if file is None:  # written in C, or made by a program: __main__, a notebook
        return module.__name__ in sys.builtin_module_names
    return is_library(file)


def is_user_class(kind: type) -> bool:
    """Return whether a class is written in Python code that is watched."""
    name = module_of(kind)
    module = sys.modules.get(name) if name != "builtins" else None  # as exec() names those that it makes
    is_python = bool(kind.__flags__ & _CREATED_BY_PYTHON)
    return is_python and (module is None or not is_library_module(module))


_PASSING = frozenset({"abc", "typing", "functools"})
"""Modules of Python's own whose functions ask for the class of an object in the name of their caller."""


def is_asked_by_user(depth: int) -> bool:
    """Return whether the user's code asks for the class of an object, `depth` frames from here."""
    frame: types.FrameType | None = sys._getframe(depth)
    while frame is not None and frame.f_globals.get("__name__") in _PASSING:
        frame = frame.f_back
    return frame is not None and not is_library(frame.f_code.co_filename)


def is_printing() -> bool:
    """Return whether ``print``, or code that is no user's, asks for the text of an object."""
    frame = user_frame()
    if frame is None or not stack.is_readable():
        return True
    return is_library(frame.f_code.co_filename) or print in stack.callees(frame)


def dispatches(depth: int, kind: type, numpys: type) -> bool:
    """Return whether functools.singledispatch asks, `depth` frames from here, and knows a class but not NumPy's.

    It takes one class from an object, and would call the function for any object.

    Args:
        depth: the number of frames.
        kind: the class.
        numpys: the class of NumPy's that objects of `kind` are instances of, too.
    """
    frame = sys._getframe(depth)
    if frame.f_globals.get("__name__") != "functools":
        return False
    names = frame.f_locals
    dispatch = names.get("dispatch") or getattr(
        getattr(names.get("self"), "dispatcher", None), "dispatch", None
    )
    if dispatch is None:
        return False
    known = inspect.getclosurevars(dispatch).nonlocals.get("registry", {})
    return kind in known and dispatch(numpys) is known.get(object)


class Watch:
    """A block in which `started` is called with the frame of each function of the user's code that this thread starts.

    `used` is called with the functions and classes of the user's that the package's own code uses (note_used), and
    `asked` before the user's code asks for attributes by their names: with the frame that asks, the function, and what
    it gets, None if that is not known (capture/asked.py).

    An exception of a signal handler may come in the middle of its start and of its end. So the start undoes itself, and
    the end can be repeated.
    """

    def __init__(
        self,
        started: Started,
        effects: SideEffects | None = None,
        used: Used | None = None,
        asked: Asked | None = None,
    ) -> None:
        self._started = started
        self._effects = effects
        self._used = used
        self._asked = asked
        self._outer: tuple[Any, ...] | None = None
        self._monitored = False
        self._previous: Any = None  # profile function

    def __enter__(self) -> "Watch":
        self._outer = (
            current.started, current.used, current.import_around, current.has_imported, current.profile,
            current.effects, current.asked,
        )  # fmt: skip
        try:
            around = _import_around(sys._getframe())
            current.import_around, current.has_imported = around, False
            current.started, current.used, current.effects = self._started, self._used, self._effects
            current.asked = self._asked
            if _monitoring is not None and _monitor.claim():
                self._monitored = True
                _monitor.watch(self)
            else:
                self._profile()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        if self._outer is None:
            return
        (
            current.started, current.used, current.import_around, current.has_imported, current.profile,
            current.effects, current.asked,
        ) = self._outer  # fmt: skip
        if self._monitored:
            _monitor.leave(self)
        else:
            previous = self._previous
            if previous is None or callable(previous):
                sys.setprofile(previous)
            else:  # a cProfile.Profile, which only its own method sets
                sys.setprofile(None)
                previous.enable()
        self._outer = None

    def _profile(self) -> None:
        libraries = files
        self._previous = previous = sys.getprofile()
        forward: Any = previous if callable(previous) else None

        def profile(frame: types.FrameType, event: str, arg: Any) -> None:
            if event == "call":
                file = frame.f_code.co_filename
                is_of_library = libraries.get(file)
                if is_of_library is None:
                    is_of_library = is_library(file)
                if not is_of_library or frame.f_code is IMPORT_MODULE:
                    _start(frame)
                elif file in _IMPORTS:
                    current.has_imported = True
                elif acts(frame.f_code):
                    _acted(frame)
                elif reads_all(frame.f_code):
                    _read(frame)
            elif event == "c_call" and arg.__name__ in NAMES:
                _called(frame, arg)
            elif event == "c_call" and arg in ASKING:
                _asked(frame, arg, frame.f_lasti)
            if forward is not None:
                forward(frame, event, arg)

        current.profile = profile if forward is None else None
        sys.setprofile(profile)


def _import_around(frame: types.FrameType | None) -> types.FrameType | None:
    """Return the innermost frame of the import machinery around a frame, or None."""
    while frame is not None and frame.f_code.co_filename not in _IMPORTS:
        frame = frame.f_back
    return frame


def _start(frame: types.FrameType) -> None:
    started = current.started
    if started is not None and (frame.f_code.co_flags & _OPTIMIZED or frame.f_code.co_name != _MODULE):
        if current.has_imported and _import_around(frame) is not current.import_around:
            return
        current.started = None  # code that looks at a frame is not reported
        try:
            started(frame)
        finally:
            current.started = started


def _called(frame: types.FrameType, function: Any, argument: Any = None) -> None:
    """Note a call of the user's code to a function of C that may have an effect."""
    effects = current.effects
    if effects is None or current.started is None or is_library(frame.f_code.co_filename):
        return
    if not current.has_imported or _import_around(frame) is current.import_around:
        effects.called(frame, function, argument)


def reads_all(code: types.CodeType) -> bool:
    """Return whether a code of Python's library reads all attributes of its first argument."""
    for name in _READING_ALL.get(code.co_name, ()):
        function = getattr(sys.modules.get(name), code.co_name, None)
        if getattr(function, "__code__", None) is code:
            return True
    return False


def _is_asked(caller: types.FrameType) -> bool:
    """Return whether attributes that a frame is about to ask for are to be reported."""
    if current.asked is None or current.started is None:
        return False
    return not current.has_imported or _import_around(caller) is current.import_around


def _asked(frame: types.FrameType, function: Any, at: int) -> None:
    """Note that the user's code asks for attributes by their names, at the place of an instruction."""
    if is_library(frame.f_code.co_filename) or not _is_asked(frame) or current.asked is None:
        return
    is_known = stack.is_readable() and not stack.is_star(frame.f_code, at)
    taken = stack.reported(frame, at, function) if is_known else None
    current.asked(frame, function, None if taken is None else taken[1:])


def _read(frame: types.FrameType) -> None:
    """Note that a function of Python's library, whose frame begins to run, reads all attributes of its argument."""
    caller = frame.f_back
    if caller is None or current.asked is None or not frame.f_code.co_argcount or not _is_asked(caller):
        return
    if not is_library(caller.f_code.co_filename):
        current.asked(caller, None, [frame.f_locals.get(frame.f_code.co_varnames[0])])


def _acted(frame: types.FrameType) -> None:
    """Note that the user's code logs a line, or puts something into a queue."""
    caller = frame.f_back
    while caller is not None and is_library(caller.f_code.co_filename):
        caller = caller.f_back
    if current.effects is not None and caller is not None and current.started is not None:
        current.effects.acted(frame, (caller.f_code.co_filename, caller.f_lineno))


class CallWatch:
    """A block in which `called` is called before each call that the user's code makes in this thread (Python 3.12).

    It gets the frame, the place of the instruction, and what is called; of a call with a star, None. `reached` is
    called with the frame before each instruction of code that follow() was told of, and of code with such calls.
    """

    def __init__(self, called: Called, reached: Reached | None = None) -> None:
        self._called = called
        self._reached = reached
        self._outer: tuple[Called | None, Reached | None] | None = None

    def __enter__(self) -> "CallWatch":
        self._outer = (current.called, current.reached)
        try:
            if _monitor.claim():
                _monitor.watch(self)
                current.called, current.reached = self._called, self._reached
        except BaseException:
            self.__exit__()
            raise
        return self

    def join(self, frame: types.FrameType | None, around: types.FrameType) -> None:
        """Report the calls with a star, too, of frames that are running, from one up to that around them."""
        while frame is not None and frame is not around and _monitor.tool is not None:
            if not is_library(frame.f_code.co_filename):
                _monitor.step(frame.f_code)
            frame = frame.f_back

    def follow(self, frame: types.FrameType) -> bool:
        """Return whether the next instruction of a frame is reported, now that it has been asked for."""
        if _monitor.tool is None or self._reached is None or current.reached is not self._reached:
            return False
        _monitor.step(frame.f_code, needs_star=False)
        return True

    def __exit__(self, *exc: object) -> None:
        if self._outer is None:
            return
        current.called, current.reached = self._outer
        if _monitor.tool is not None:
            _monitor.leave(self)
        self._outer = None


class _Monitor:
    """The tool of sys.monitoring, on while any thread watches."""

    def __init__(self) -> None:
        self.lock = new_lock()
        self.blocks: set[Watch] = set()
        self.blocks_with_calls: set[CallWatch] = set()
        self.stepped: dict[int, types.CodeType] = {}  # codes whose instructions are all reported
        self.tool: int | None = None

    def claim(self) -> bool:
        """Return whether there is a tool; all but two are for others."""
        with self.lock:
            if self.tool is None:
                for tool in (4, 3):
                    if _monitoring.get_tool(tool) is None:
                        _monitoring.use_tool_id(tool, "tracejit")
                        _monitoring.register_callback(tool, _monitoring.events.PY_START, self.started)
                        _monitoring.register_callback(tool, _monitoring.events.CALL, self.called)
                        _monitoring.register_callback(tool, _monitoring.events.INSTRUCTION, self.reached)
                        self.tool = tool
                        break
            return self.tool is not None

    def started(self, code: types.CodeType, offset: int) -> Any:
        if code.co_filename in _IMPORTS:
            current.has_imported = True
            return None
        if acts(code):
            _acted(sys._getframe(1))
            return None
        if reads_all(code):
            _read(sys._getframe(1))
            return None
        if is_library(code.co_filename) and code is not IMPORT_MODULE:
            return _monitoring.DISABLE
        if current.called is not None:
            self.step(code)
        if current.started is not None:
            _start(sys._getframe(1))
        return None

    def step(self, code: types.CodeType, needs_star: bool = True) -> None:
        """Have each instruction of a code reported, if there are calls with stars in it or none are needed."""
        if id(code) not in self.stepped and (stack.has_star(code) or not needs_star):
            self.stepped[id(code)] = (
                code  # without the lock: a signal handler may start here while it is held
            )
            _monitoring.set_local_events(self.tool, code, _monitoring.events.INSTRUCTION)

    def called(self, code: types.CodeType, offset: int, function: Any, argument: Any) -> Any:
        if is_library(code.co_filename):
            return _monitoring.DISABLE
        if type(function) in _OF_C and function.__name__ in NAMES:
            _called(sys._getframe(1), function, argument)
        elif type(function) is types.BuiltinFunctionType and function in ASKING:
            _asked(sys._getframe(1), function, offset)
        if current.called is not None and not stack.is_star(code, offset):
            current.called(sys._getframe(1), offset, function)
        return None

    def reached(self, code: types.CodeType, offset: int) -> Any:
        """Report an instruction, and a call with a star (stack.py, Note [the depth of a stack])."""
        if current.reached is not None:
            current.reached(sys._getframe(1))
        if current.called is not None and stack.is_star(code, offset):
            current.called(sys._getframe(1), offset, None)

    def watch(self, block: "Watch | CallWatch") -> None:
        """Report while a block runs."""
        with self.lock:
            (self.blocks if isinstance(block, Watch) else self.blocks_with_calls).add(block)  # type: ignore[arg-type]
            self.set_events()

    def leave(self, block: "Watch | CallWatch") -> None:
        """Report no longer for a block."""
        with self.lock:
            (self.blocks if isinstance(block, Watch) else self.blocks_with_calls).discard(block)
            while self.stepped and not self.blocks_with_calls:
                _, code = self.stepped.popitem()
                _monitoring.set_local_events(self.tool, code, 0)
            self.set_events()

    def set_events(self) -> None:
        """Turn the events on or off."""
        kinds = _monitoring.events
        is_on = self.blocks or self.blocks_with_calls
        _monitoring.set_events(self.tool, kinds.PY_START | kinds.CALL if is_on else 0)


_monitor = _Monitor()
