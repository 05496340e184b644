# SPDX-License-Identifier: BSD-3-Clause
"""The cache of an accelerated function: the variants of each key, the call paths, and the latest calls."""

import weakref
from collections import deque
from collections.abc import Container, Sequence

from tracejit.accelerate.aim import Aim
from tracejit.accelerate.call_paths import CallPath, Served, in_front, joined
from tracejit.call.dynamic import DynamicNumbers
from tracejit.call.signature import Call, Key, object_of
from tracejit.record.state import NO_EXCHANGE, CapturedPlace, Exchange
from tracejit.traces.report import Miss
from tracejit.traces.trace import Trace
from tracejit.traces.variants import Variants
from tracejit.util import logs
from tracejit.util.locks import new_lock

# Calls that a path served after the first one was tried in vain, before the order of the paths changes.
_STRAYS = 32
_NEARLY_ALL = 0.8  # of the calls; a path of one trace serves these faster than one of several traces
_EVICTED_KEPT = 1000  # hashes of evicted keys, for explain()
_MANY_OBJECTS = 10  # that were passed as one argument, which is worth a warning
_HISTORY = 50  # misses kept for view()


class TraceCache:
    """The traces of an accelerated function by key, and the outcomes of its calls.

    All methods are called with the lock held.

    Attributes:
        lock: held while anything here changes.
        variants: by key, oldest key first.
        paths: call paths, latest first; set by route().
        aim: that of the first path.
        numbers: which number arguments vary.
        varying: the places of captured numbers that vary.
        tried: the places of ndarrays that vary and that are looked at in one recording before they are inputs.
        keeps_all: whether captured numbers and ndarrays are never exchanged.
        takes_arrays: whether captured ndarrays are exchanged; False once the function took ndarrays only.
        takes_numbers: whether these are inputs of traces; False once the function has kept one, in a table of its own.
        calls, misses: numbers of calls since the cache was cleared.
        last_trace: the trace that was used last.
        last_miss: the last call, if it was a miss.
        history: misses, by the number of the call.
        cleared: whether there were calls before the cache was cleared.
    """

    __slots__ = (
        "__weakref__", "_evicted", "_shared", "_strays",
        "aim", "calls", "cleared", "history", "keeps_all", "last_miss", "last_trace", "lock", "misses",
        "numbers", "paths", "takes_arrays", "takes_numbers", "tried", "variants", "varying",
    )  # fmt: skip

    def __init__(self) -> None:
        self.lock = new_lock()
        self.variants: dict[Key, Variants] = {}
        self.paths: tuple[CallPath, ...] = ()
        self._shared: CallPath | None = None  # the latest path of several traces
        self._strays = 0
        self.aim = Aim()
        self.numbers = DynamicNumbers()
        self.varying: set[CapturedPlace] = set()
        self.tried: frozenset[CapturedPlace] = frozenset()
        self.keeps_all = False
        self.takes_numbers = self.takes_arrays = True
        self.calls = self.misses = 0
        self.last_trace: Trace | None = None
        self.last_miss: Miss | None = None
        self.history: deque[tuple[int, Miss]] = deque(maxlen=_HISTORY)
        self.cleared = False
        self._evicted: dict[int, None] = {}

    @property
    def hits(self) -> int:
        """Calls that were served by a trace."""
        return self.calls - self.misses

    @property
    def hit_rate(self) -> float:
        """Percentage of calls that were served by a trace."""
        return 100.0 * self.hits / self.calls if self.calls else 0.0

    def settle(self) -> None:
        """Count the calls that were served without the lock since the last time."""
        hits = self.aim.hits()
        if hits and self.aim.path is not None:
            self.aim.path.hits[0] += hits
            self._count(hits, self.aim.path.served[0])
        for path in self.paths:
            self._take_hits(path)

    def _take_hits(self, path: CallPath) -> None:
        for hits, served in path.take_hits():
            self._count(hits, served)

    def _count(self, hits: int, served: Served) -> None:
        self.calls += hits
        served.variants.calls += hits
        served.variants.used = self.calls
        self.last_trace = served.trace
        self.last_miss = None

    def route(self, paths: tuple[CallPath, ...]) -> None:
        """Try these call paths from now on, and the first of them directly."""
        self.settle()
        for path in self.paths:
            if path not in paths:
                path.retire()
        self.paths = paths
        if not paths:
            self.aim.drop()
        self._limit()

    def _limit(self) -> None:
        """Say how many calls may be served without the lock from now on."""
        if self.paths:
            self.aim.take(self.paths[0])
        for path in self.paths:
            path.limit()

    def path_hit(self, path: CallPath) -> None:
        """Count a call that a call path served."""
        self.settle()
        if not path.is_shared:
            self._count(1, path.served[0])
            path.hits[0] += 1
        if self.paths and path is not self.paths[0]:
            self._strays += 1
        self._go_on(path.served)

    def told(self, path: CallPath, number: int) -> None:
        """Go on after a call that a path of several traces served by one of them, which has reached its limit."""
        with self.lock:
            self.settle()
            self._take_hits(path)  # which a thread may be on that has been dropped
            self._go_on(path.served[number : number + 1])

    def _go_on(self, served: Sequence[Served]) -> None:
        """Say how the next calls are served, after traces have served some."""
        due = [each.variants for each in served if each.variants.calls >= each.variants.pause_at]
        for variants in due:
            self.pause(variants)
        if not due and self._strays >= _STRAYS:
            self._reorder()
        elif not due:
            self._limit()

    def _reorder(self) -> None:
        """Put the path that serves nearly all calls in front; if there is none, have traces share a path."""
        self._strays = 0
        most = max(self.paths, key=lambda path: sum(path.hits))
        hits = sum(sum(path.hits) for path in self.paths)
        if sum(most.hits) >= _NEARLY_ALL * hits:
            self.route(in_front(most, self.paths))
        else:
            self._join()
        for path in self.paths:  # later calls count more
            path.hits[:] = [each // 2 for each in path.hits]

    def _join(self) -> None:
        """Have traces that calls take by turns share a call path."""
        told = weakref.WeakMethod(self.told)  # or the path would keep the cache, which keeps the path

        def told_of(path: CallPath, number: int) -> None:
            method = told()
            if method is not None:
                method(path, number)

        path = joined(self.paths, told_of)
        if path is not None:
            self._shared = path
            self.route(in_front(path, self.paths))

    def clear(self) -> None:
        """Drop all traces and counts."""
        self.settle()
        self.cleared = self.cleared or self.calls > 0
        self.variants.clear()
        self._shared = None
        self.route(())
        self.calls = self.misses = 0
        self._evicted.clear()
        self.numbers.clear()
        self.tried = frozenset()
        self.varying.clear()
        self.takes_arrays = self.takes_numbers = True
        self.last_trace = self.last_miss = None
        self.history.clear()

    def rekeyed(self, call: Call) -> Call:
        """Return a call with the key under which its traces are kept: numbers that vary are inputs."""
        return self.numbers.rekeyed(call, self.variants)

    def vary(self, places: Sequence[CapturedPlace]) -> None:
        """Take captured numbers and ndarrays as inputs from now on."""
        if not self.takes_numbers or self.keeps_all:
            return
        self.tried |= {place for place in places if place.is_of_array}
        self.varying.update(place for place in places if not place.is_of_array)
        self._forget()

    def settle_tried(self, given: Container[CapturedPlace]) -> None:
        """Take the ndarrays that were tried as inputs from now on, except at places that functions got."""
        if self.tried:
            self.varying.update(place for place in self.tried if place not in given)
            self.tried = frozenset()
            self._forget()

    def _forget(self) -> None:
        """Drop all traces."""
        for variants in self.variants.values():
            variants.forget()
        self._shared = None
        self.route(())

    @property
    def exchange(self) -> Exchange:
        """The values that stand in places while the function is recorded."""
        if self.keeps_all:
            return NO_EXCHANGE
        return Exchange(self.varying, self.tried, self.takes_arrays, self.takes_arrays)

    def keep_arrays(self) -> None:
        """Leave captured ndarrays, and numbers, where they are from now on, because the function takes no others."""
        self.takes_arrays = False
        self.keep_numbers()
        self._forget()

    def keep_numbers(self) -> bool:
        """Take captured numbers as constants from now on; return whether some were inputs."""
        were_inputs = bool(self.varying)
        self.takes_numbers = False
        self.tried = frozenset()
        self.varying.clear()
        return were_inputs

    def changing_object(self, key: Key) -> tuple[int, type, int] | None:
        """Return an argument that is a new object in nearly every call: its number, its class, how many there were."""
        for place, part in enumerate(key.parts):
            if object_of(part) is not None:
                others = [
                    object_of(other.parts[place]) for other in self.variants if len(other.parts) > place
                ]
                count = len({id(other) for other in others if other is not None})
                if count >= _MANY_OBJECTS and self.hits < count:
                    return place, type(object_of(part)), count
        return None

    def count_call(self, key: Key) -> Variants | None:
        """Count a call, and return the variants of its key if there are any."""
        self.calls += 1
        variants = self.variants.get(key)
        if variants is not None:
            variants.calls += 1
            variants.used = self.calls
        return variants

    def count_hit(self, trace: Trace, variants: Variants) -> None:
        """Note that a call was served by a trace."""
        variants.used = self.calls
        self.last_trace = trace
        self.last_miss = None
        if variants.calls >= variants.pause_at:
            self.pause(variants)

    def count_miss(self, key: Key) -> Miss:
        """Note a call that has to be recorded."""
        self.misses += 1
        miss = self.last_miss = Miss(key, list(self.variants), hash(key) in self._evicted)
        self.history.append((self.calls, miss))
        return miss

    def count_uncompiled(self, key: Key) -> Miss:
        """Note a call that runs uncompiled."""
        self.misses += 1
        miss = self.last_miss = Miss(key, [], False, "refused")
        return miss

    def of_recording(self, key: Key) -> Variants:
        """Return the variants of a key that was recorded, new ones if there were none."""
        variants = self.variants.get(key)
        if variants is None:
            variants = self.variants[key] = Variants(key)
            variants.calls = 1
        variants.used = self.calls
        return variants

    def pause(self, variants: Variants) -> None:
        """Have the next call with a key go the general way, where audits and checks are made."""
        self.route(tuple([path for path in self.paths if not path.is_of(variants)]))

    def remember(self, trace: Trace, variants: Variants) -> None:
        """Try the call path of a trace first at the next call, if no audit or check is due then."""
        if variants.calls >= variants.pause_at or logs.each_call():  # Note [hits]
            return
        if not self._is_kept(trace, variants):
            return  # another thread has dropped it since it was found
        path = next((path for path in self.paths if path.serves(trace)), None)
        if path is None and self._shared is not None and self._shared.serves(trace):
            is_ready = all(
                self._is_kept(served.trace, served.variants)
                and served.variants.calls < served.variants.pause_at
                for served in self._shared.served
            )
            path = self._shared if is_ready else None
        if path is None:
            generated = trace.call_path()
            if generated is None:
                return
            path = CallPath(generated.run, [Served(trace, variants, generated)])
        self.route(in_front(path, self.paths))

    def _is_kept(self, trace: Trace, variants: Variants) -> bool:
        """Return whether a trace is still one of the variants of its key."""
        return self.variants.get(variants.key) is variants and trace in variants.traces

    def drop_paths(self, variants: Variants) -> None:
        """Drop the call paths of traces that are variants no longer."""

        def is_live(path: CallPath) -> bool:
            return all(
                served.variants is not variants or served.trace in variants.traces for served in path.served
            )

        if self._shared is not None and not is_live(self._shared):
            self._shared = None
        self.route(tuple(filter(is_live, self.paths)))

    def evict(self, size: int) -> Sequence[Key]:
        """Drop the least recently used keys until no more than `size` are left, and return them."""
        self.settle()
        evicted = []
        while len(self.variants) > size:
            oldest = min(self.variants.values(), key=lambda variants: variants.used)
            del self.variants[oldest.key]
            evicted.append(oldest.key)
            self._evicted[hash(oldest.key)] = None
            if len(self._evicted) > _EVICTED_KEPT:
                del self._evicted[next(iter(self._evicted))]
            self.pause(oldest)
            if self._shared is not None and self._shared.is_of(oldest):
                self._shared = None
        return evicted
