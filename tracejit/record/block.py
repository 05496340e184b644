# SPDX-License-Identifier: BSD-3-Clause
"""The block in which a recorder records."""

import sys
from collections.abc import Callable
from typing import Any, Self

from tracejit.errors import TraceError
from tracejit.record import constructors, methods_in_c, patches
from tracejit.record.current import blockers, thread
from tracejit.record.state import State
from tracejit.util.quiet import settings, use_settings
from tracejit.util.uninterrupted import surely


class RecordingBlock:
    """A with-statement in which a recorder records; NumPy gives no warnings meanwhile.

    An exception of a signal handler may come in the middle of its start and of its end. So the start undoes itself, and
    unwind() repeats the end.

    Args:
        state: what the recording reads besides arguments.

    Attributes:
        names: the global names of the recorded function, if they are known.
        is_running: whether the block has begun and not ended.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.names: dict[str, Any] | None = None
        self.frame = 0  # the id of the frame of the block
        self._outer: Any = None
        self.is_running = False
        self._errors: Any = None  # NumPy's settings around the block
        self.endings: list[Callable[[], None]] = []  # of the blocks inside, which they may not have reached

    def __enter__(self) -> Self:
        self.frame = id(sys._getframe(1))
        self._outer = thread.recorder
        self._errors = settings()
        try:
            self.is_running = True
            thread.recorder = self
            blockers[id(self)] = None
            patches.begin(self, self.names)
            constructors.begin(self)
            methods_in_c.begin(self)
            use_settings(None)  # once for the recording: around each op it would take a microsecond
            self.state.open()
        except BaseException as error:
            self.__exit__(type(error), error)
            raise
        return self

    def __exit__(self, *exc: Any) -> None:
        try:
            use_settings(self._errors)
            if exc[0] is not None:
                self.state.abandon()
                _note_cause(exc[1])
            self.close()
        except BaseException:
            use_settings(self._errors)
            raise
        finally:
            surely(self._restore)

    def _restore(self) -> None:
        """Put everything back as it was before the block; may be called twice."""
        methods_in_c.end(self)
        constructors.end(self)
        patches.end(self)
        blockers.pop(id(self), None)
        if self.is_running:
            thread.recorder = self._outer
            self.is_running = False
        for end in self.endings:
            end()
        self._outer = None  # a kept graph must not keep that of the evaluation around it
        self.state.abandon()
        self.endings.clear()

    def close(self) -> None:
        """End the recording; may be called twice."""
        raise NotImplementedError


def unwind(outer: Any) -> None:
    """End the recordings inside that of `outer` which an exception of a signal handler kept from ending."""
    while thread.recorder is not None and thread.recorder is not outer:
        thread.recorder.state.abandon()
        thread.recorder.__exit__(None, None)


def _note_cause(error: BaseException) -> None:
    """Add our error as a note to one that NumPy raised from it, whose own text helps nobody."""
    cause = error.__cause__
    if isinstance(cause, TraceError) and str(cause) not in getattr(error, "__notes__", ()):
        error.add_note(str(cause))
