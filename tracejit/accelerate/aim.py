# SPDX-License-Identifier: BSD-3-Clause
"""The call path that compiled code takes directly for a function, if one is set.

Note [direct calls] in kernels/executor/direct.py gives the reason.
"""

from collections.abc import Callable
from typing import Any

from tracejit.accelerate.call_paths import CallPath
from tracejit.call.recycle import Frame
from tracejit.call.result import MISS
from tracejit.errors import CodegenError
from tracejit.kernels.executor import state as words
from tracejit.record.current import blockers
from tracejit.traces.trace import Direct
from tracejit.traces.variants import NEVER
from tracejit.util.locks import new_lock

Load = list[Any]
"""A frame, and all that a call on it needs; or a list of a state, and the call path that it names."""

_NOWHERE: Load = []  # of a function without an aim; it has a frame once calls are direct
_served: list[type] = []  # the class whose calls can be direct, until they are
_installing = new_lock()


class Aim:
    """The call path that the calls of a function take directly; it is used with the lock of the cache held.

    Attributes:
        target: the function's list for the compiled code; its first item is a load.
        path: the call path, or None.
    """

    __slots__ = ("_frames", "_hits", "path", "target")

    def __init__(self) -> None:
        self.target: list[Load] = [_NOWHERE]
        self.path: CallPath | None = None
        self._frames: list[Frame] = []
        self._hits = 0  # calls that were direct, when they were counted last

    def take(self, path: CallPath) -> None:
        """Have calls take a path directly, until the variants of its trace pause.

        A path whose function may handle an error is taken by way of Python, which sees the error.
        """
        if self.path is not path:
            self.drop()
            served = path.served[0]
            if path.handles_errors or not (served.trace.has_entry and _are_direct()):
                return
            direct = None if path.is_shared else served.trace.direct
            self.target[0] = self._of_path(path) if direct is None else self._of_program(direct)
            self._hits = int(self.target[0][0][0][words.HITS])
            self.path = path
        variants = path.served[0].variants
        # A path of several traces says itself when calls have to be told. Compiled code alone changes the count, so
        # that none is lost which it changes meanwhile.
        left = NEVER if path.is_shared else min(variants.pause_at - 1, NEVER) - variants.calls
        self.target[0][0][0][words.HITS_LIMIT] = self._hits + max(0, left)

    @staticmethod
    def _of_path(path: CallPath) -> Load:
        """Return the load of a call path, a function of Python."""
        state = _NOWHERE[0][0].copy()
        state[words.RUN], state[words.MISS] = id(path.run), id(MISS)
        return [[state], path.run]

    def _of_program(self, direct: Direct) -> Load:
        """Return the load of a program that needs no code of Python but fetch()."""
        recycler, fetch = direct
        frame = recycler.take()
        again = recycler.again  # which holds the tables of the program
        state, nowhere = frame[0], _NOWHERE[0][0]
        state[words.GENERAL] = nowhere[words.GENERAL]
        state[words.BLOCKERS] = nowhere[words.BLOCKERS]
        state[words.AGAIN] = id(again)
        state[words.FETCH] = 0 if fetch is None else id(fetch)
        self._frames = recycler.frames
        return [frame, again, fetch]

    def drop(self) -> None:
        """Stop running calls directly."""
        self.path = None  # first: a signal handler may raise an error below
        load = self.target[0]
        if load is not _NOWHERE:
            self.target[0] = _NOWHERE
            frame: Frame = load[0]
            frame[0][words.HITS_LIMIT] = 0
            if not frame[0][words.BUSY]:
                self._frames.append(frame)
            self._frames = []

    def hits(self) -> int:
        """Return the number of calls since the last time that nothing else has counted."""
        if self.path is None or self.path.is_shared:
            return 0
        before, self._hits = self._hits, int(self.target[0][0][0][words.HITS])
        return self._hits - before


def serve(kind: type) -> None:
    """Have calls of instances of a class be direct, once a program is compiled; each has a target where it belongs."""
    _served.append(kind)


def _are_direct() -> bool:
    """Return whether calls can be direct in this process; prepare for them if possible."""
    if _served:
        from tracejit.runtime import direct

        with _installing:
            for kind in _served:
                general: Callable[..., Any] = kind.__call__
                # Before other threads call the compiled code.
                _NOWHERE[:] = [[direct.new_state(general, blockers)]]
                try:
                    is_installed = direct.install(kind)
                except CodegenError:  # such as in a forked child, which cannot compile
                    is_installed = False
                if not is_installed:
                    return False
            _served.clear()
    return True
