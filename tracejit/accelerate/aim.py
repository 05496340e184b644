# SPDX-License-Identifier: BSD-3-Clause
"""The aim of an accelerated function: the frame on which compiled code runs its calls, if it has one.

Note [direct calls] in kernels/executor/direct.py gives the reason.
"""

from collections.abc import Callable
from typing import Any

from tracejit.call.recycle import Frame
from tracejit.errors import CodegenError
from tracejit.kernels.executor import state as words
from tracejit.record.current import blockers
from tracejit.traces.trace import Trace
from tracejit.traces.variants import NEVER, Variants
from tracejit.util.locks import new_lock

Load = list[Any]
"""A frame, and all that a call on it needs."""

_NOWHERE: Load = []  # of a function without an aim; it has a frame once calls are direct
_served: list[type] = []  # the class whose calls can be direct, until they are
_installing = new_lock()


class Aim:
    """The trace whose program the calls of a function run directly; it is used with the lock of the cache held.

    Attributes:
        target: the function's list for the compiled code; its first item is a load.
        trace: the trace, or None.
        variants: those of its key.
    """

    __slots__ = ("_frames", "_left", "target", "trace", "variants")

    def __init__(self) -> None:
        self.target: list[Load] = [_NOWHERE]
        self.trace: Trace | None = None
        self.variants: Variants | None = None
        self._frames: list[Frame] = []
        self._left = 0  # calls that may be direct, when they were counted last

    def take(self, trace: Trace, variants: Variants) -> None:
        """Run calls that fit a trace directly, until its variants pause; run none if the trace needs Python."""
        if self.trace is not trace:
            self.drop()
            if trace.direct is None or not _are_direct():
                return
            recycler, fetch = trace.direct
            frame = recycler.take()
            again = recycler.again  # which holds the tables of the program
            state, nowhere = frame[0], _NOWHERE[0][0]
            state[words.GENERAL] = nowhere[words.GENERAL]
            state[words.BLOCKERS] = nowhere[words.BLOCKERS]
            state[words.AGAIN] = id(again)
            state[words.FETCH] = 0 if fetch is None else id(fetch)
            self._frames = recycler.frames
            self.target[0] = [frame, again, fetch]
            self.trace, self.variants = trace, variants
        self._left = max(0, min(variants.pause_at - 1, NEVER) - variants.calls)
        self.target[0][0][0][words.HITS_LEFT] = self._left

    def drop(self) -> None:
        """Stop running calls directly."""
        self.trace = self.variants = None  # first: a signal handler may raise an error below
        load = self.target[0]
        if load is not _NOWHERE:
            self.target[0] = _NOWHERE
            frame: Frame = load[0]
            frame[0][words.HITS_LEFT] = 0
            if not frame[0][words.BUSY]:
                self._frames.append(frame)
            self._frames, self._left = [], 0

    def hits(self) -> int:
        """Return the number of calls that were run since the last time."""
        before = self._left
        if self.trace is not None:
            self._left = int(self.target[0][0][0][words.HITS_LEFT])
        return before - self._left


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
