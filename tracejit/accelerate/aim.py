# SPDX-License-Identifier: BSD-3-Clause
"""The aim of an accelerated function: the frame on which compiled code runs its calls, if there is one.

Note [direct calls] in kernels/executor/direct.py says what for.
"""

from collections.abc import Callable
from typing import Any

from tracejit.errors import CodegenError
from tracejit.kernels.executor import state as words
from tracejit.record.current import blockers
from tracejit.traces.trace import Trace
from tracejit.traces.variants import NEVER, Variants

_NOWHERE: list[Any] = []  # the frame of a function without an aim; it has a state once calls are direct
_served: list[type] = []  # the class whose calls can be direct


class Aim:
    """The trace whose program the calls of a function run directly; it is used with the lock of the cache held.

    Attributes:
        target: what the function has for the compiled code: a list, the first item of which is a frame.
        trace: the trace, or None.
        variants: those that it belongs to.
    """

    __slots__ = ("_again", "_fetch", "_frames", "_left", "target", "trace", "variants")

    def __init__(self) -> None:
        self.target: list[list[Any]] = [_NOWHERE]
        self.trace: Trace | None = None
        self.variants: Variants | None = None
        self._frames: list[list[Any]] = []
        self._again: Any = None
        self._fetch: Any = None
        self._left = 0  # calls that may be direct, when they were counted last

    def take(self, trace: Trace, variants: Variants) -> None:
        """Run calls that fit a trace, until its variants pause; or none, if the trace needs Python."""
        if self.trace is not trace:
            self.drop()
            if trace.direct is None or not _are_direct():
                return
            recycler, fetch = trace.direct
            frame = recycler.frames.pop() if recycler.frames else recycler.new_frame()
            state = frame[0]
            self._again, self._fetch, self._frames = recycler.again, fetch, recycler.frames
            state[words.GENERAL] = _NOWHERE[0][words.GENERAL]
            state[words.BLOCKERS] = _NOWHERE[0][words.BLOCKERS]
            state[words.AGAIN] = id(self._again)
            state[words.FETCH] = 0 if fetch is None else id(fetch)
            self.trace, self.variants = trace, variants
            self.target[0] = frame
        self._left = max(0, min(variants.pause_at - 1, NEVER) - variants.calls)
        self.target[0][0][words.HITS_LEFT] = self._left

    def drop(self) -> None:
        """Run no calls any more."""
        frame = self.target[0]
        if frame is not _NOWHERE:
            self.target[0] = _NOWHERE
            frame[0][words.HITS_LEFT] = 0
            if not frame[0][words.BUSY]:
                self._frames.append(frame)
            self.trace = self.variants = self._again = self._fetch = None
            self._frames, self._left = [], 0

    def hits(self) -> int:
        """Return the number of calls that were run since it was asked last."""
        before = self._left
        if self.trace is not None:
            self._left = int(self.target[0][0][words.HITS_LEFT])
        return before - self._left


def serve(kind: type) -> None:
    """Have calls of instances of a class be direct, once a program is compiled; each has a target where it belongs."""
    _served.append(kind)


def _are_direct() -> bool:
    """Return whether calls can be direct in this process; see to it if not."""
    if not _NOWHERE:
        from tracejit.runtime import direct

        (kind,) = _served
        general: Callable[..., Any] = kind.__call__
        _NOWHERE.append(direct.new_state(general, blockers))  # before other threads call the compiled code
        try:
            is_installed = direct.install(kind)
        except CodegenError:  # such as in a forked child, which cannot compile
            is_installed = False
        if not is_installed:
            _NOWHERE.clear()
    return bool(_NOWHERE)
