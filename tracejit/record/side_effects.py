# SPDX-License-Identifier: BSD-3-Clause
"""Calls whose effects a replay does not repeat: printing, logging, warnings, writing files, changing the user's list.

A warning of the function's counts where Python shows it, as its filters say, and the function does not catch it itself.
One that Python notes as shown is shown once by the plain function, too: another recording lacks it.
"""

import array
import io
import sys
import types
import warnings
from collections import deque
from typing import Any

from tracejit import tree
from tracejit.errors import TraceJitError
from tracejit.ir import Where
from tracejit.util.named_tuples import NamedTuple

_PRINT = print
NAMES = frozenset({
    "print", "write", "writelines", "append", "appendleft", "extend", "extendleft", "insert", "setdefault", "update",
    "add", "discard", "remove", "clear", "warn", "warn_explicit",
})  # fmt: skip
"""The names of functions that are looked at."""
_KEEPERS = (list, dict, deque, set)
MEMORIES = frozenset({bytearray, array.array})
"""Builtin objects that hold numbers."""
_WRITERS = frozenset({"write", "writelines", "put"})  # which change something whatever they are given
_OF_LIBRARY = {
    "_log": ("logging", "Logger"), "put": ("queue", "Queue"), "_showwarnmsg": ("warnings", ""),
}  # fmt: skip
"""Methods, with modules and classes, and functions of modules."""
_INSTEAD = {"append": "append it", "write": "write it", "writelines": "write them"}
_STREAMS = frozenset({"stdout", "stderr", "__stdout__", "__stderr__"})  # of sys
_MOST_ELEMENTS = 64  # at the ends of a container, where traced values are looked for


def acts(code: types.CodeType) -> bool:
    """Return whether a code of Python's library logs a line that is not left out, fills a queue or shows a warning."""
    name, kind = _OF_LIBRARY.get(code.co_name, ("", ""))
    module = sys.modules.get(name)
    function = getattr(getattr(module, kind, None) if kind else module, code.co_name, None)
    return getattr(function, "__code__", None) is code


def _shown_by() -> tuple[Any, Any]:
    """Return what shows a warning: catch_warnings(record=True) puts something else there."""
    return warnings.showwarning, getattr(warnings, "_showwarnmsg_impl", None)


def _is_noted(caller: types.FrameType, message: Any) -> bool:
    """Return whether Python has noted that a warning was shown, which it then does not show again at its line."""
    frame: types.FrameType | None = caller
    while frame is not None and (frame.f_code.co_filename, frame.f_lineno) != (
        message.filename,
        message.lineno,
    ):
        frame = frame.f_back
    noted = (caller if frame is None else frame).f_globals.get("__warningregistry__", ())
    text, kind = str(message.message), message.category
    return (text, kind, message.lineno) in noted or (text, kind) in getattr(warnings, "onceregistry", ())


class SideEffect(NamedTuple):
    """An effect in words, what to do instead, and its place.

    may_end     whether another recording may lack it, as ``kept[:] = [loss]`` changes the length of a list once
    """

    what: str
    instead: str
    where: Where
    may_end: bool = False


class SideEffects:
    """The effects of one recording."""

    def __init__(self) -> None:
        self._once: list[SideEffect] = []
        self._kept: list[tuple[str, Any, Where]] = []
        self._resized: list[tuple[Any, Where]] = []
        self._printed: list[SideEffect] = []  # into a file
        self._warns: tuple[int, int] | None = (
            None  # the id of the frame that calls warnings.warn(), and its line
        )
        self._shown_by = _shown_by()

    def called(self, frame: types.FrameType, function: Any, argument: Any = None) -> None:
        """Note a call of a function of C that has one of NAMES; its first argument may be what it is a method of."""
        where = frame.f_code.co_filename, frame.f_lineno
        if function is _PRINT:
            effect = SideEffect("calls print()", "print it", where)
            has_file = any(
                type(c) is tuple and "file" in c for c in frame.f_code.co_consts
            )  # keywords of calls
            is_of_process = not has_file or not _STREAMS.isdisjoint(frame.f_code.co_names)
            (self._once if is_of_process else self._printed).append(effect)
            return
        if function in (warnings.warn, warnings.warn_explicit):
            self._warns = id(frame), frame.f_lineno
            return
        owner = getattr(function, "__self__", None)
        owner = argument if owner is None else owner
        if isinstance(owner, (*_KEEPERS, *MEMORIES, io.IOBase)):
            self._kept.append((function.__name__, owner, where))

    def methods(self) -> dict[int, list[str]]:
        """Return the names of the methods that were called of containers, for each call, by the ids of these."""
        called: dict[int, list[str]] = {}
        for name, owner, _ in self._kept:
            called.setdefault(id(owner), []).append(name)
        return called

    def put_at(self, container: Any) -> Where:
        """Return where a method of a container was called first that changes it; None if none was."""
        return next((where for _, owner, where in self._kept if owner is container), None)

    def resized(self, container: Any, where: Where) -> None:
        """Note that a container got or lost elements, also where no call tells (``h += [loss]``)."""
        self._resized.append((container, where))

    def acted(self, frame: types.FrameType, where: Where) -> None:
        """Note that a line is logged, put into a queue or shown as a warning, in the frame of a code that acts()."""
        if frame.f_code.co_name == "_showwarnmsg":
            caller = frame.f_back
            assert caller is not None
            if self._warns == (id(caller), caller.f_lineno) and self._shown_by == _shown_by():
                is_noted = _is_noted(caller, frame.f_locals["msg"])
                self._once.append(SideEffect("gives a warning", "give it", where, is_noted))
            return
        owner = frame.f_locals.get("self")
        if frame.f_code.co_name == "put":
            self._kept.append(("put", owner, where))
        elif getattr(owner, "name", "") != "tracejit":
            self._once.append(SideEffect("writes to the log", "log it", where))

    def first(self, outside: Any, is_traced: Any, has_files: bool = False) -> SideEffect | None:
        """Return the first effect that a user will miss, and release the containers that were noted.

        One that the function made and nobody has any more must not keep its arrays: the recorder counts who has them.

        Args:
            outside: tells by the id of an object whether it was there before the function ran, and not only passed to
                a helper of it.
            is_traced: tells whether an object is a traced value.
            has_files: whether files were there that the function can write to.
        """
        self._once += self._printed if has_files else ()
        kept, self._kept = self._kept, []
        resized, self._resized = self._resized, []
        for name, owner, where in kept:
            if not outside(id(owner)) and owner not in (sys.stdout, sys.stderr):
                continue
            is_resized = any(owner is other for other, _ in resized)
            is_certain = (
                name in _WRITERS or isinstance(owner, tuple(MEMORIES)) or _holds_traced(owner, is_traced)
            )
            if is_certain or is_resized:
                what = f"calls {name}() of a {type(owner).__name__} that it did not make"
                instead = _INSTEAD.get(name, "keep it")
                self._once.append(SideEffect(what, instead, where, not is_certain))
                break
        called = {id(owner) for _, owner, _ in kept}
        for owner, where in resized:
            if id(owner) not in called:
                what = f"changes a {type(owner).__name__} that it did not make"
                known = where if where and where[0] else None  # nothing told of an argument before the call
                self._once.append(SideEffect(what, "keep it", known, True))
        return min(self._once, key=lambda effect: effect.where or ("", 0), default=None)


def _holds_traced(container: Any, is_traced: Any) -> bool:
    """Return whether a container holds traced values near its ends."""
    values = [*container.values()] if isinstance(container, dict) else [*container]
    try:
        leaves, _ = tree.flatten([*values[:_MOST_ELEMENTS], *values[-_MOST_ELEMENTS:]])
    except TraceJitError:  # it holds itself
        return False
    return any(map(is_traced, leaves))
