# SPDX-License-Identifier: BSD-3-Clause
"""Work that no exception of a signal handler ends halfway.

Note [interrupts]
Python runs signal handlers in the main thread, between any two of its instructions. The handler of Ctrl-C raises
KeyboardInterrupt there, and handlers of a user raise other exceptions, such as a TimeoutError. The modules of Numba and
LLVM do not survive such an exception in the middle of their import, and their locks and tables do not survive one in
the middle of a compilation. So all of that runs in a thread of its own, where no handler runs. The main thread waits,
keeps an exception that a handler raises meanwhile, and raises it when the work is done. Long work asks now and then
whether it should stop.

Elsewhere an exception of a handler passes through like one of the user's function. Where errors are caught so that a
call goes on, is_of_handler() tells them apart.
"""

import _thread
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from tracejit.errors import CodegenError, TraceJitWarning
from tracejit.util import frames

_T = TypeVar("_T")
Stopping = Callable[[], bool]
"""Tells work that an exception waits for its end."""
_ENDING = ("can't create new thread at interpreter shutdown",)
# A signal that comes just before a wait begins is handled when the wait ends.
_LONGEST_WAIT_S = 0.05
_NO_THREAD = (("can't start new thread",), _ENDING)  # what the errors of Python say


class _Work(Generic[_T]):
    """A function that runs in a thread of its own, and the main thread's wait for it.

    refused     the error of a system that starts no new thread
    """

    def __init__(self, function: Callable[[Stopping], _T]) -> None:
        self._function = function
        self._outcome: list[tuple[bool, Any]] = []
        self._ended = _thread.allocate_lock()
        self._ended.acquire()
        self._interrupt: BaseException | None = None
        self._caller = frames.user_location()
        self._forked = False
        self.refused: RuntimeError | None = None

    def _run(self) -> None:
        with frames.called_from(self._caller):
            try:
                self._outcome.append((True, self._function(self._stopping)))
            except BaseException as error:
                self._outcome.append((False, error))
            finally:
                self._ended.release()

    def _stopping(self) -> bool:
        return self._interrupt is not None

    def wait(self, notice: Callable[[], None] | None, after_s: float) -> None:
        """Start the thread and wait for its end; if the system starts none, set `refused`."""
        deadline = time.monotonic() + after_s
        started = False
        while True:
            # A handler may raise after any call here; the next pass of the loop goes on where the last one was.
            try:
                while not (self._outcome or self._forked):
                    if not started:
                        started = True
                        _thread.start_new_thread(self._run, ())
                    left = max(0.0, deadline - time.monotonic()) if notice is not None else _LONGEST_WAIT_S
                    self._ended.acquire(timeout=min(left, _LONGEST_WAIT_S))
                    if notice is not None and not self._outcome and time.monotonic() >= deadline:
                        pending, notice = notice, None
                        pending()
                return
            except BaseException as error:
                # No call is made here, so that no second handler runs.
                if type(error) is RuntimeError and error.args in _NO_THREAD:
                    self.refused = error
                    return
                self._interrupt = error

    def result(self) -> _T:
        """Return the result of the function, or raise its error or that of a handler."""
        if self._interrupt is not None:
            raise self._interrupt
        if self._forked:
            raise CodegenError(
                "a signal handler forked this process while it was compiling; the child cannot go on with "
                "that. End it, or call exec in it."
            )
        is_result, outcome = self._outcome[0]
        if is_result:
            return outcome  # type: ignore[no-any-return]
        try:
            raise outcome
        finally:
            del outcome  # which holds this frame

    def abandon(self) -> None:
        """End the wait in a forked child, which does not have the thread."""
        self._forked = not self._outcome
        if self._ended.locked():
            self._ended.release()


_works: set[_Work[Any]] = set()
_warned = False


def uninterrupted(
    function: Callable[[Stopping], _T], notice: Callable[[], None] | None = None, after_s: float = 0.0
) -> _T:
    """Return the result of a function, which no exception of a signal handler ends halfway (Note [interrupts]).

    Args:
        function: takes a function that tells whether to stop, as an exception waits; its result is then dropped.
        notice: is called if the function takes longer than `after_s` seconds, in the main thread only.
        after_s: see `notice`.
    """
    if not _has_handlers():
        return function(_never)
    work = _Work(function)
    _works.add(work)
    try:
        work.wait(notice, after_s)
    finally:
        _works.discard(work)
    if work.refused is None:
        return work.result()
    warn_of_threads(work.refused)
    return function(_never)


def surely(action: Callable[..., object], *args: object) -> None:
    """Do something that may be done twice, and do it again if an exception of a signal handler comes meanwhile.

    Unlike uninterrupted() this takes no time; a second exception ends it.
    """
    try:
        action(*args)
    except BaseException:
        action(*args)
        raise


def _has_handlers() -> bool:
    """Return whether signal handlers run in this thread, and another one can be started."""
    return threading.get_ident() == threading.main_thread().ident and not sys.is_finalizing()


def _never() -> bool:
    return False


def warn_of_threads(error: RuntimeError) -> None:
    """Warn, once in a process, that no thread can be started.

    Raises:
        RuntimeError: the error itself, if it says something else.
    """
    global _warned
    if error.args not in _NO_THREAD:
        raise error
    if _warned or error.args == _ENDING:
        return
    _warned = True
    file, line = frames.user_location() or ("<unknown>", 0)
    warnings.warn_explicit(
        "the system starts no new thread for this process, so tracejit compiles and runs on one thread, and Ctrl-C "
        "while it compiles may leave Numba unusable. Raise the limit on processes (ulimit -u, or that of the "
        "container).",
        TraceJitWarning, file, line,
    )  # fmt: skip


def is_of_handler(error: BaseException) -> bool:
    """Return whether a signal handler raised an error, wherever it came through."""
    import signal  # whose classes take as long to make as a small part of this package does

    codes = {_code(signal.getsignal(number)) for number in signal.valid_signals()} - {None}
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code in codes:
            return True
        traceback = traceback.tb_next
    return False


def _code(handler: Any) -> Any:
    """Return the code of a handler, None for one that is no function of Python."""
    while hasattr(handler, "func"):  # of functools.partial
        handler = handler.func
    if callable(handler) and not hasattr(handler, "__code__"):
        handler = type(handler).__call__
    return getattr(handler, "__code__", None)


def _in_child() -> None:
    for work in list(_works):
        work.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
