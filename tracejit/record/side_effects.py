# SPDX-License-Identifier: BSD-3-Clause
"""Calls whose effects a replay does not repeat: printing, logging, writing to files, changing a list of the caller."""

import array
import io
import sys
import types
from collections import deque
from typing import Any

from tracejit import tree
from tracejit.errors import TraceJitError
from tracejit.ir import Where
from tracejit.util.named_tuples import NamedTuple

_PRINT = print
NAMES = frozenset({
    "print", "write", "writelines", "append", "appendleft", "extend", "extendleft", "insert", "setdefault", "update",
    "add", "discard", "remove", "clear",
})  # fmt: skip
"""The names of functions that are looked at."""
_KEEPERS = (list, dict, deque, set)
MEMORIES = frozenset({bytearray, array.array})
"""Builtin objects that hold numbers."""
_WRITERS = frozenset({"write", "writelines", "put"})  # which change something whatever they are given
_OF_LIBRARY = {"_log": ("logging", "Logger"), "put": ("queue", "Queue")}  # methods, with modules and classes
_INSTEAD = {"append": "append it", "write": "write it", "writelines": "write them"}
_STREAMS = frozenset({"stdout", "stderr", "__stdout__", "__stderr__"})  # of sys
_MOST_ELEMENTS = 64  # at the ends of a container, where traced values are looked for


def acts(code: types.CodeType) -> bool:
    """Return whether a code of Python's library logs a line, unless its level is left out, or fills a queue."""
    module, kind = _OF_LIBRARY.get(code.co_name, ("", ""))
    owner = getattr(sys.modules.get(module), kind, None)
    return owner is not None and getattr(owner, code.co_name).__code__ is code


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

    def resized(self, container: Any, where: Where) -> None:
        """Note that a container got or lost elements, also where no call tells (``h += [loss]``)."""
        self._resized.append((container, where))

    def acted(self, frame: types.FrameType, where: Where) -> None:
        """Note that a line is logged, or that something is put into a queue, in the frame of a code that acts()."""
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
