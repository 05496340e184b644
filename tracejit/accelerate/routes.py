# SPDX-License-Identifier: BSD-3-Clause
"""The choice among call paths: which ones the calls of an accelerated function try, and which one directly."""

import weakref

from tracejit.accelerate.aim import Aim
from tracejit.accelerate.call_paths import CallPath, Served, are_joined, in_front, joined
from tracejit.traces.variants import Variants
from tracejit.util.locks import new_lock

# Calls that a path served after the first one was tried in vain, before the order of the paths changes.
_STRAYS = 32
_NEARLY_ALL = 0.8  # of the calls; a path of one trace serves these faster than one of several traces


class Routes:
    """The call paths, in the order in which calls try them.

    All methods are called with the lock held.

    Attributes:
        lock: held while anything here changes.
        paths: call paths, latest first; set by route().
        aim: that of the first path.
        shared: the latest path of several traces, which comes back after an audit.
    """

    __slots__ = ("__weakref__", "_shared_ones", "_strays", "aim", "lock", "paths", "shared")

    def __init__(self) -> None:
        self.lock = new_lock()
        self.paths: tuple[CallPath, ...] = ()
        self.aim = Aim()
        self.shared: CallPath | None = None
        self._shared_ones: list[CallPath] = []  # of several traces, among the paths
        self._strays = 0

    def settle(self) -> None:
        """Count the calls that were served without the lock since the last time."""
        hits = self.aim.hits()
        if hits and self.aim.path is not None:
            self.aim.path.hits[0] += hits
            self._count(hits, self.aim.path.served[0])
        for path in self._shared_ones:
            self._take_hits(path)

    def _take_hits(self, path: CallPath) -> None:
        for hits, served in path.take_hits():
            self._count(hits, served)

    def _count(self, hits: int, served: Served) -> None:
        """Count calls that a trace has served."""
        raise NotImplementedError

    def route(self, paths: tuple[CallPath, ...]) -> None:
        """Try these call paths from now on, and the first of them directly."""
        self.settle()
        for path in self._shared_ones:
            if path not in paths:
                path.retire()
        self.paths = paths
        self._shared_ones = [path for path in paths if path.is_shared]
        if paths:
            self.aim.take(paths[0])
        else:
            self.aim.drop()
        for path in self._shared_ones:
            path.limit()

    def path_hit(self, path: CallPath) -> None:
        """Note a call that a call path served by way of Python; one of several traces has counted it itself."""
        if self.paths and path is not self.paths[0]:
            self._strays += 1
        if not path.is_shared:
            self.settle()
            self._count(1, path.served[0])
            path.hits[0] += 1
            self._go_on(path.served[0].variants)
        elif self._strays >= _STRAYS:
            self._reorder()

    def told(self, path: CallPath, number: int) -> None:
        """Go on after a call that a path of several traces served by one of them, which has reached its limit."""
        with self.lock:
            self.settle()
            self._take_hits(path)  # which a thread may be on that has been dropped
            self._go_on(path.served[number].variants)

    def _go_on(self, variants: Variants) -> None:
        """Say how the next calls are served, after a trace of some variants has served one."""
        if variants.calls >= variants.pause_at:
            self.pause(variants)
        elif self._strays >= _STRAYS:
            self._reorder()
        else:
            aimed = self.aim.path
            if aimed is not None and not aimed.is_shared and aimed.served[0].variants is variants:
                self.aim.take(aimed)
            for path in self._shared_ones:
                path.limit()

    def _reorder(self) -> None:
        """Put the path that serves nearly all calls in front; if there is none, have traces share a path."""
        self._strays = 0
        if not self.paths:
            return
        self.settle()
        most = max(self.paths, key=lambda path: sum(path.hits))
        hits = sum(sum(path.hits) for path in self.paths)
        # A shared path serves more traces at no cost, and traces that draw share their draws.
        is_faster = not (most.is_shared or most.served[0].trace.state.generator_draws)
        if is_faster and sum(most.hits) >= _NEARLY_ALL * hits:
            self.route(in_front(most, self.paths))
        else:
            self._join()
        for path in self.paths:  # later calls count more
            path.hits[:] = [each // 2 for each in path.hits]

    def _join(self) -> None:
        """Have traces that calls take by turns share a call path."""
        if self.shared is not None and are_joined(self.shared, self.paths):
            self.route(in_front(self.shared, self.paths))
            return
        told = weakref.WeakMethod(self.told)  # or the path would keep the cache, which keeps the path

        def told_of(path: CallPath, number: int) -> None:
            method = told()
            if method is not None:
                method(path, number)

        path = joined(self.paths, told_of)
        if path is not None:
            self.shared = path
            self.route(in_front(path, self.paths))

    def pause(self, variants: Variants) -> None:
        """Have the next call with a key go the general way, where audits and checks are made."""
        self.route(tuple([path for path in self.paths if not path.is_of(variants)]))

    def drop_paths(self, variants: Variants) -> None:
        """Drop the call paths of traces that are variants no longer."""

        def is_live(path: CallPath) -> bool:
            return all(
                served.variants is not variants or served.trace in variants.traces for served in path.served
            )

        if self.shared is not None and not is_live(self.shared):
            self.shared = None
        self.route(tuple(filter(is_live, self.paths)))
