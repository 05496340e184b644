# SPDX-License-Identifier: BSD-3-Clause
"""Streams, events and captures of the stand-in for NVIDIA's driver (fake_driver.py)."""

# ruff: noqa: N802 - the names are those of the driver

from collections.abc import Callable
from typing import Any


def number_of(value: Any) -> int:
    """Return the number of a handle or an integer."""
    value = getattr(value, "value", value)
    return 0 if value is None else int(value)


class Work:
    """Work on a stream."""

    def __init__(self, run: Callable[[], Any]) -> None:
        self.run = run
        self.is_done = False


class Child:
    """A captured graph: the names of what it runs, and that."""

    def __init__(self, works: list[tuple[str, Callable[[], Any]]]) -> None:
        self.works = works


class FakeStreams:
    """What is put on streams, and run when somebody waits for it.

    Attributes:
        objects: what was made, by its handle.
        queues: the work that waits on each stream.
        captured: the names of work, and that, of each stream that is captured.
        times: of events in graphs.
    """

    def __init__(self) -> None:
        self.objects: dict[int, Any] = {}
        self.queues: dict[int, list[Work]] = {}
        self.captured: dict[int, list[tuple[str, Callable[[], Any]]]] = {}
        self.times: dict[int, float] = {}
        self._last = 0x1000

    def new(self, out: Any, *what: Any) -> None:
        self._last += 16
        self.objects[self._last] = what
        out._obj.value = self._last

    def put(self, stream: Any, run: Callable[[], Any], name: str = "") -> None:
        if number_of(stream) in self.captured:
            self.captured[number_of(stream)].append((name, run))
            return
        self.queues.setdefault(number_of(stream), []).append(Work(run))

    def finish(self, stream: int, last: "Work | None" = None) -> None:
        """Run the work of a stream, up to some work."""
        queue = self.queues.setdefault(stream, [])
        while queue and (last is None or not last.is_done):
            work = queue.pop(0)
            work.run()
            work.is_done = True

    @property
    def waiting(self) -> int:
        """How much work has not run."""
        return sum(map(len, self.queues.values()))

    # Streams and events.

    def _cuCtxSynchronize(self) -> None:
        for stream in [*self.queues]:
            self.finish(stream)

    def _cuStreamSynchronize(self, stream: Any) -> None:
        self.finish(number_of(stream))

    def _cuStreamWaitEvent(self, stream: Any, event: Any, flags: int) -> None:
        kind, recorded = self.objects[number_of(event)]
        assert kind == "event"
        if recorded is not None:
            self.put(stream, lambda: self.finish(*recorded))

    def _cuEventCreate(self, out: Any, flags: int) -> None:
        self.new(out, "event", None)

    def _cuEventRecord(self, event: Any, stream: Any) -> None:
        assert self.objects[number_of(event)][0] == "event"
        queue = self.queues.get(number_of(stream))
        self.objects[number_of(event)] = "event", (number_of(stream), queue[-1]) if queue else None

    def _cuEventSynchronize(self, event: Any) -> None:
        _, recorded = self.objects[number_of(event)]
        if recorded is not None:
            self.finish(*recorded)

    def _cuEventElapsedTime(self, out: Any, first: Any, last: Any) -> None:
        times = [self.times.get(number_of(event)) for event in (first, last)]
        out._obj.value = 1.0 if None in times else times[1] - times[0]

    def _cuEventDestroy_v2(self, event: Any) -> None:
        del self.objects[number_of(event)]

    # Captures: what is put on the stream meanwhile becomes the launches of a graph.

    def _cuStreamCreate(self, out: Any, flags: int) -> None:
        assert flags == 1
        self.new(out, "stream")

    def _cuStreamDestroy_v2(self, stream: Any) -> None:
        self.captured.pop(number_of(stream), None)
        del self.objects[number_of(stream)]

    def _cuStreamBeginCapture_v2(self, stream: Any, mode: int) -> None:
        assert self.objects[number_of(stream)] == ("stream",) and mode == 2
        self.captured[number_of(stream)] = []

    def _cuStreamEndCapture(self, stream: Any, out: Any) -> None:
        works = self.captured.pop(number_of(stream))
        self.new(out, "graph", [(0, Child(works), [])])
