# SPDX-License-Identifier: BSD-3-Clause
"""Timeline: launches one after the other in a graph, each timed by an event before and after it."""

from collections.abc import Sequence
from ctypes import byref, c_float, c_void_p
from typing import Any

from tracejit.runtime.cuda.driver import Driver
from tracejit.runtime.cuda.launches import NodeParameters, new_node


class Timeline:
    """A graph of launches and events.

    Args:
        on: the device.
        launches: in order.
    """

    def __init__(self, on: Driver, launches: Sequence[NodeParameters]) -> None:
        self._on = on
        self._graph, self._executable = c_void_p(), c_void_p()
        self._events: list[c_void_p] = []
        self._last: c_void_p | None = None
        self._kept = launches
        on.call("cuGraphCreate", byref(self._graph), 0)
        self._add_event()
        self._add_event()  # nothing is between these two
        for parameters in launches:
            self._last = new_node(on, self._graph, parameters, self._before())
            self._add_event()
        on.call("cuGraphInstantiateWithFlags", byref(self._executable), self._graph, 0)

    def _before(self) -> Any:
        return (c_void_p * (self._last is not None))(*([] if self._last is None else [self._last.value]))

    def _add_event(self) -> None:
        event, node, before = c_void_p(), c_void_p(), self._before()
        self._on.call("cuEventCreate", byref(event), 0)
        self._events.append(event)
        self._on.call("cuGraphAddEventRecordNode", byref(node), self._graph, before, len(before), event)
        self._last = node

    def run(self) -> list[float]:
        """Run all launches, and return how many nanoseconds each took; the time between two events is subtracted."""
        on, took = self._on, c_float()
        on.replay(self._executable.value or 0)
        on.synchronize()
        times = []
        for first, last in zip(self._events[:-1], self._events[1:], strict=True):
            on.call("cuEventElapsedTime", byref(took), first, last)
            times.append(1e6 * took.value)
        empty, *of_launches = times
        return [max(ns - empty, 0.0) for ns in of_launches]

    def __del__(self) -> None:
        handles = [("cuGraphExecDestroy", self._executable), ("cuGraphDestroy", self._graph)]
        for name, handle in (*handles, *[("cuEventDestroy_v2", event) for event in self._events]):
            if handle.value:
                self._on.release(name, handle)
