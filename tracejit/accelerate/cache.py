# SPDX-License-Identifier: BSD-3-Clause
"""The cache of an accelerated function: the variants of each key, the call paths, and the latest calls."""

from collections import Counter, deque
from collections.abc import Container, Sequence

from tracejit.accelerate.call_paths import CallPath, Served, in_front
from tracejit.accelerate.routes import Routes
from tracejit.call.dynamic import DynamicNumbers
from tracejit.call.signature import Call, Key, object_of
from tracejit.record.state import NO_EXCHANGE, CapturedPlace, Exchange
from tracejit.traces.report import Miss
from tracejit.traces.trace import Trace
from tracejit.traces.variants import Variants
from tracejit.util import logs

_EVICTED_KEPT = 1000  # hashes of evicted keys, for explain()
_MANY_OBJECTS = 10  # that were passed as one argument, which is worth a warning
_HISTORY = 50  # misses kept for view()
# Keys by whose recordings a place is tried. A number whose value selects a trace has a new key in each call, and each
# would find the same place.
_MOST_TRIES = 4


class TraceCache(Routes):
    """The traces of an accelerated function by key, and the outcomes of its calls.

    All methods are called with the lock held.

    Attributes:
        variants: by key, oldest key first.
        numbers: which number arguments vary.
        varying: the places of captured numbers that vary.
        tried: the places of ndarrays that vary and that are looked at in one recording before they are inputs.
        tries: how often they were.
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
        "_evicted", "calls", "cleared", "history", "keeps_all", "last_miss", "last_trace", "misses", "numbers",
        "takes_arrays", "takes_numbers", "tried", "tries", "variants", "varying",
    )  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.variants: dict[Key, Variants] = {}
        self.numbers = DynamicNumbers()
        self.varying: set[CapturedPlace] = set()
        self.tried: frozenset[CapturedPlace] = frozenset()
        self.tries: Counter[CapturedPlace] = Counter()
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

    def _count(self, hits: int, served: Served) -> None:
        self.calls += hits
        served.variants.calls += hits
        served.variants.used = self.calls
        self.last_trace = served.trace
        self.last_miss = None

    def clear(self) -> None:
        """Drop all traces and counts."""
        self.settle()
        self.cleared = self.cleared or self.calls > 0
        self.variants.clear()
        self.shared = None
        self.route(())
        self.calls = self.misses = 0
        self._evicted.clear()
        self.numbers.clear()
        self.tried = frozenset()
        self.tries.clear()
        self.varying.clear()
        self.takes_arrays = self.takes_numbers = True
        self.last_trace = self.last_miss = None
        self.history.clear()

    def rekeyed(self, call: Call) -> Call:
        """Return a call with the key under which its traces are kept: numbers that vary are inputs."""
        return self.numbers.rekeyed(call, self.variants)

    def vary(self, places: Sequence[CapturedPlace]) -> None:
        """Take captured numbers and ndarrays as inputs from now on."""
        new = [place for place in places if place not in self.varying and self.tries[place] < _MOST_TRIES]
        if not new or not self.takes_numbers or self.keeps_all:
            return
        self.tries.update(new)
        self.tried |= {place for place in new if place.is_of_array}
        self.varying.update(place for place in new if not place.is_of_array)
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
        self.shared = None
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

    def remember(self, trace: Trace, variants: Variants) -> None:
        """Try the call path of a trace first at the next call, if no audit or check is due then."""
        if variants.calls >= variants.pause_at or logs.each_call():  # Note [hits]
            return
        if not self._is_kept(trace, variants):
            return  # another thread has dropped it since it was found
        path = next((path for path in self.paths if path.serves(trace)), None)
        if path is None and self.shared is not None and self.shared.serves(trace):
            is_ready = all(
                self._is_kept(served.trace, served.variants)
                and served.variants.calls < served.variants.pause_at
                for served in self.shared.served
            )
            path = self.shared if is_ready else None
        if path is None:
            generated = trace.call_path()
            if generated is None:
                return
            path = CallPath(generated.run, [Served(trace, variants, generated)])
        self.route(in_front(path, self.paths))

    def _is_kept(self, trace: Trace, variants: Variants) -> bool:
        """Return whether a trace is still one of the variants of its key."""
        return self.variants.get(variants.key) is variants and trace in variants.traces

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
            if self.shared is not None and self.shared.is_of(oldest):
                self.shared = None
        return evicted
