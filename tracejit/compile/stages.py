# SPDX-License-Identifier: BSD-3-Clause
"""Two stages for each of several kernels: the first runs in this thread, the second beside it in other threads."""

import gc
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from tracejit.util import frames
from tracejit.util.locks import new_lock
from tracejit.util.threads import OwnThread
from tracejit.util.uninterrupted import Stopping, warn_of_threads

_SWITCH_S = 2e-4
_Item = TypeVar("_Item")
_Between = TypeVar("_Between")
_Result = TypeVar("_Result")


def in_two_stages(
    items: Sequence[_Item],
    first: Callable[[_Item], _Between],
    second: Callable[[_Item, _Between], _Result],
    stopping: Stopping,
    threads: int = 1,
) -> Iterator[tuple[_Item, _Result]]:
    """Yield items and what the stages make of them, until all are done or work has to stop.

    Args:
        items: the first stage takes them in turn.
        first: needs Python's lock, as Numba does.
        second: works without that for the most part, as LLVM does.
        stopping: tells whether to stop.
        threads: how many second stages may run at the same time.
    """
    if len(items) > 1:
        try:
            yield from _in_threads(items, first, second, stopping, min(threads, len(items)))
            return
        except _NoThreadError as error:
            warn_of_threads(error.why)
    for item in items:
        if stopping():
            return
        yield item, second(item, first(item))


class _NoThreadError(Exception):
    """The system starts no new thread; `why` is its error."""

    def __init__(self, why: RuntimeError) -> None:
        super().__init__(str(why))
        self.why = why


def _in_threads(
    items: Sequence[_Item],
    first: Callable[[_Item], _Between],
    second: Callable[[_Item, _Between], _Result],
    stopping: Stopping,
    threads: int,
) -> Iterator[tuple[_Item, _Result]]:
    from queue import SimpleQueue

    between: SimpleQueue[tuple[_Item, _Between] | None] = SimpleQueue()
    done: list[tuple[_Item, _Result]] = []
    failures: list[Exception] = []

    caller = frames.user_location()

    def finish() -> None:
        with frames.called_from(caller):
            for item, made in iter(between.get, None):
                try:
                    done.append((item, second(item, made)))
                except Exception as failure:
                    failures.append(failure)

    started: list[OwnThread] = []
    try:
        for _ in range(threads):
            thread = OwnThread(target=finish, name="tracejit compiler")
            thread.start()
            started.append(thread)
    except RuntimeError as error:
        if not started:
            raise _NoThreadError(error) from error
    _switch.shorten()
    try:
        for item in items:
            if stopping() or failures:
                break
            between.put((item, first(item)))
        if not gc.isenabled():
            gc.collect(0)  # what Numba left, a third of a second for large kernels, while LLVM works
    finally:
        for _ in started:
            between.put(None)
        for thread in started:
            thread.join()
        _switch.restore()
    if failures:
        raise failures[0]
    yield from done


class _SwitchInterval:
    """Python's switch interval, short while LLVM compiles.

    A call of LLVM waits a switch interval for Python's lock: by default 5 ms, as long as a small kernel takes.
    """

    def __init__(self) -> None:
        self._lock = new_lock()
        self._before: list[float] = []  # one for each that compiles, for the CPU and for devices

    def shorten(self) -> None:
        """Set a short interval."""
        with self._lock:
            self._before.append(sys.getswitchinterval())
            sys.setswitchinterval(_SWITCH_S)

    def restore(self) -> None:
        """Set the former interval, when the last one that compiles has ended."""
        with self._lock:
            if len(self._before) == 1:
                sys.setswitchinterval(self._before[0])
            self._before = self._before[:-1]

    def restore_in_child(self) -> None:
        """Set the former interval in a child that was forked meanwhile."""
        self._before = self._before[:1]
        self.restore()


_switch = _SwitchInterval()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_switch.restore_in_child)
