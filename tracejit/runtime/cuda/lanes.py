# SPDX-License-Identifier: BSD-3-Clause
"""Lanes: the streams that threads put their work on, and the memory that is free behind that work.

Note [streams]
Each thread (and each asyncio task) has a lane, whose stream its work is put on. By default that is one lane for all,
with the stream that CuPy and PyTorch use by default too, so that their work and that of tracejit is in order. A block
`with stream(s)` is a lane of its own. Its stream first waits for the work on the outer lane's stream. At its end the
outer lane's stream waits for it, and what belongs to the lane passes to the outer lane.

An array belongs to the lane that used it last. Another lane that uses it waits for that one first, which takes three
calls of the driver. Memory that is freed is given out again in the lane that its array belonged to, so what is put on
that lane's stream later runs later. An array is handed over and used under one lock (Lanes.order), so that no thread
comes in between. Nothing waits for the device itself unless a value is read.
"""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from tracejit.errors import DeviceError
from tracejit.kernels.executor import state
from tracejit.util.locks import new_lock

_LONGEST_LAUNCH_S = 1.0  # in a forked child the thread that launches does not exist


class Lane:
    """A stream of one thread or task, while it is used.

    Attributes:
        lanes: of the same device.
        handle: of the stream.
        kept: addresses of memory that is free, by the bytes there.
    """

    __slots__ = ("_outer", "handle", "kept", "lanes")

    def __init__(self, lanes: "Lanes", handle: int) -> None:
        self.lanes, self.handle = lanes, handle
        self.kept: dict[int, list[int]] = {}
        self._outer: Lane | None = None

    def end(self, outer: "Lane") -> None:
        """Let what belongs to this lane belong to another one, whose stream waits for this one's."""
        self._outer = outer
        self._hand_on()

    def _hand_on(self) -> None:
        """Let another lane have the memory that this one has kept, if it has ended."""
        if self._outer is not None:
            for size in list(self.kept):
                self.now().keep(size, *self.kept.pop(size, ()))

    def now(self) -> "Lane":
        """Return the lane that now owns what belonged to this one."""
        lane = self
        while lane._outer is not None:
            lane = lane._outer
        return lane

    def keep(self, size: int, *addresses: int) -> None:
        """Keep free memory of a size."""
        kept = self.kept.get(size)
        if kept is None:
            kept = self.kept.setdefault(size, [])
        kept += addresses
        self._hand_on()  # it may have ended meanwhile


_current: ContextVar[Lane | None] = ContextVar("tracejit_lane", default=None)


class Lanes:
    """The lanes of a device.

    Attributes:
        order: a lock that is held while arrays are handed over to a lane and used there.
    """

    def __init__(self, driver: Any) -> None:
        self.order = new_lock()
        self._driver = driver
        self._of_all = Lane(self, state.DEFAULT_STREAM)
        self._others: set[Lane] = set()

    @property
    def own(self) -> Lane:
        """The lane of this thread or task."""
        if not self._others:
            return self._of_all
        lane = _current.get()
        return self._of_all if lane is None or lane.lanes is not self else lane.now()

    def every(self) -> list[Lane]:
        """Return all lanes."""
        return [self._of_all, *self._others]

    @contextmanager
    def using(self, stream: int) -> Iterator[None]:
        """Put work of this thread or task on another stream while the block runs."""
        on, words = self._driver, self._driver.words
        lane, before, was_current = Lane(self, stream), self.own, _current.get()
        with self.order:
            self._others.add(lane)
            words[state.IS_BUSY] += 1  # compiled entries, which know one stream, leave launches to Python
        deadline = time.monotonic() + _LONGEST_LAUNCH_S
        while words[state.LAUNCHING] and time.monotonic() < deadline:
            time.sleep(0)
        try:
            on.wait(before.handle, on=stream)
            _current.set(lane)
            yield
        finally:
            _current.set(was_current)
            try:
                with self.order:
                    on.wait(stream, on=before.now().handle)
            except DeviceError:  # work on the outer lane must not begin before that of this one is done
                on.call("cuStreamSynchronize", stream)
            finally:
                lane.end(before.now())
                with self.order:
                    self._others.discard(lane)
                    words[state.IS_BUSY] -= 1

    def take_over(self, arrays: Iterable[Any]) -> None:
        """Let arrays, or pieces of memory, belong to the lane of this thread; `order` is held while it uses them."""
        lane, waited = self.own, set()
        for array in arrays:
            last = array.belongs[0]
            if last is lane:
                continue
            handle = last.now().handle
            if handle != lane.handle and handle not in waited:
                self._driver.wait(handle, on=lane.handle)
                waited.add(handle)
            array.belongs[0] = lane
