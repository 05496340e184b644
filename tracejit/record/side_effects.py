# SPDX-License-Identifier: BSD-3-Clause
"""Calls whose effects a replay does not repeat: printing, logging, keeping traced values in a list of the caller."""

import sys
import types
from collections import deque
from typing import Any

from tracejit import tree
from tracejit.ir import Where
from tracejit.util.named_tuples import NamedTuple

_PRINT = print
NAMES = frozenset({"print", "append", "appendleft", "extend", "insert", "setdefault", "update"})
"""The names of functions that are looked at."""
_KEEPERS = (list, dict, deque)
_MOST_ELEMENTS = 64  # at the ends of a container, where traced values are looked for


def is_log(code: types.CodeType) -> bool:
    """Return whether a code runs only when a line is logged, and not when it is left out for its level."""
    if code.co_name != "_log" or "logging" not in sys.modules:
        return False
    import logging

    return code is logging.Logger._log.__code__


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

    def called(self, frame: types.FrameType, function: Any, argument: Any = None) -> None:
        """Note a call of a function of C that has one of NAMES; its first argument may be what it is a method of."""
        where = frame.f_code.co_filename, frame.f_lineno
        if function is _PRINT:
            if not any(type(c) is tuple and "file" in c for c in frame.f_code.co_consts):  # keywords of calls
                self._once.append(SideEffect("calls print()", "print it", where))
            return
        owner = getattr(function, "__self__", None)
        owner = argument if owner is None else owner
        if isinstance(owner, _KEEPERS):
            self._kept.append((function.__name__, owner, where))

    def resized(self, container: Any, where: Where) -> None:
        """Note that a container got traced values and another length, also where no call tells (``h += [loss]``)."""
        if all(container is not other for _, other, _ in self._kept):
            self._resized.append((container, where))

    def logged(self, frame: types.FrameType, where: Where) -> None:
        """Note that a line is logged."""
        name = getattr(frame.f_locals.get("self"), "name", "")
        if name != "tracejit":
            self._once.append(SideEffect("writes to the log", "log it", where))

    def first(self, outside: Any, is_traced: Any) -> SideEffect | None:
        """Return the first effect that a user will miss, and release the containers that were noted.

        One that the function made and nobody has any more must not keep its arrays: the recorder counts who has them.

        Args:
            outside: tells by the id of an object whether it was there before the function ran, and not only passed to
                a helper of it.
            is_traced: tells whether an object is a traced value.
        """
        kept, self._kept = self._kept, []
        for name, owner, where in kept:
            if not outside(id(owner)):
                continue
            values = [*owner.values()] if isinstance(owner, dict) else [*owner]
            leaves, _ = tree.flatten([*values[:_MOST_ELEMENTS], *values[-_MOST_ELEMENTS:]])
            if any(map(is_traced, leaves)):
                kind = type(owner).__name__
                instead = "append it" if name == "append" else "keep it"
                self._once.append(
                    SideEffect(f"calls {name}() of a {kind} that it did not make", instead, where)
                )
                break
        resized, self._resized = self._resized, []
        for owner, where in resized:
            kind = type(owner).__name__
            self._once.append(
                SideEffect(f"changes the length of a {kind} that it did not make", "keep it", where, True)
            )
        return min(self._once, key=lambda effect: effect.where or ("", 0), default=None)
