# SPDX-License-Identifier: BSD-3-Clause
"""Calls whose effects a replay does not repeat: printing, logging, writing to files, changing a list of the caller."""

import array
import io
import sys
import types
from collections import deque
from typing import Any

from tracejit import tree
from tracejit.ir import Where
from tracejit.util.named_tuples import NamedTuple

_PRINT = print
NAMES = frozenset({
    "print", "write", "writelines", "append", "appendleft", "extend", "extendleft", "insert", "setdefault", "update",
    "add", "discard", "remove", "clear",
})  # fmt: skip
"""The names of functions that are looked at."""
_KEEPERS = (list, dict, deque, set)
_MEMORIES = (bytearray, array.array)
_WRITERS = frozenset({"write", "writelines", "put"})  # which change something whatever they are given
_INSTEAD = {"append": "append it", "write": "write it", "writelines": "write them"}
_STREAMS = frozenset({"stdout", "stderr", "__stdout__", "__stderr__"})  # of sys
_MOST_ELEMENTS = 64  # at the ends of a container, where traced values are looked for


def is_log(code: types.CodeType) -> bool:
    """Return whether a code runs only when a line is logged, and not when it is left out for its level."""
    if code.co_name != "_log" or "logging" not in sys.modules:
        return False
    import logging

    return code is logging.Logger._log.__code__


def is_put(code: types.CodeType) -> bool:
    """Return whether a code puts something into a queue."""
    if code.co_name != "put" or "queue" not in sys.modules:
        return False
    import queue

    return code is queue.Queue.put.__code__


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
        if isinstance(owner, (*_KEEPERS, *_MEMORIES, io.IOBase)):
            self._kept.append((function.__name__, owner, where))

    def owners(self) -> set[int]:
        """Return the ids of the containers that methods were called of."""
        return {id(owner) for _, owner, _ in self._kept}

    def put(self, frame: types.FrameType, where: Where) -> None:
        """Note that something is put into a queue."""
        self._kept.append(("put", frame.f_locals.get("self"), where))

    def resized(self, container: Any, where: Where) -> None:
        """Note that a container got or lost elements, also where no call tells (``h += [loss]``)."""
        self._resized.append((container, where))

    def logged(self, frame: types.FrameType, where: Where) -> None:
        """Note that a line is logged."""
        name = getattr(frame.f_locals.get("self"), "name", "")
        if name != "tracejit":
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
            is_certain = name in _WRITERS or isinstance(owner, _MEMORIES) or _holds_traced(owner, is_traced)
            if is_certain or is_resized:
                what = f"calls {name}() of a {type(owner).__name__} that it did not make"
                instead = _INSTEAD.get(name, "keep it")
                self._once.append(SideEffect(what, instead, where, not is_certain))
                break
        called = {id(owner) for _, owner, _ in kept}
        for owner, where in resized:
            if id(owner) not in called:
                what = f"changes a {type(owner).__name__} that it did not make"
                self._once.append(SideEffect(what, "keep it", where, True))
        return min(self._once, key=lambda effect: effect.where or ("", 0), default=None)


def _holds_traced(container: Any, is_traced: Any) -> bool:
    """Return whether a container holds traced values near its ends."""
    values = [*container.values()] if isinstance(container, dict) else [*container]
    leaves, _ = tree.flatten([*values[:_MOST_ELEMENTS], *values[-_MOST_ELEMENTS:]])
    return any(map(is_traced, leaves))
