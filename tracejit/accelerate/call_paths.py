# SPDX-License-Identifier: BSD-3-Clause
"""The call paths of an accelerated function, in the order in which a call tries them."""

import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from tracejit.call.path_text import GeneratedPath
from tracejit.call.served_counts import ServedCounts
from tracejit.traces.trace import Trace
from tracejit.traces.variants import NEVER, Variants
from tracejit.util.named_tuples import NamedTuple

_MOST_TRIED = 8  # paths of one trace, tried in turn before the key of a call is made
_MOST_SHARED = 32  # traces that one path serves


class Served(NamedTuple):
    """A trace that a call path serves.

    trace      the trace
    variants   those of its key
    generated  its own call path
    """

    trace: Trace
    variants: Variants
    generated: GeneratedPath


class CallPath:
    """A call path, of one trace or of several ones (Note [shared reads] in call/shared_reads.py).

    Args:
        run: returns the result for the arguments of a call, or MISS.
        served: the traces.
        counts: the counts of the calls that the traces have served, by a path of several ones.

    Attributes:
        is_shared: whether it is of several traces, and counts the calls that it serves.
        traces: the ids of the traces.
        hits: the calls that each trace has served, when they were counted last.
    """

    __slots__ = ("__weakref__", "_counts", "_shares", "hits", "is_shared", "run", "served", "traces")

    def __init__(
        self, run: Callable[[Any], Any], served: Sequence[Served], counts: ServedCounts | None = None
    ) -> None:
        self.run = run
        self.served = tuple(served)
        self.is_shared = counts is not None
        self.traces = frozenset(id(each.trace) for each in self.served)
        self.hits = [0] * len(self.served)
        self._counts = counts
        alike = Counter(id(each.variants) for each in self.served)
        self._shares = [alike[id(each.variants)] for each in self.served]  # traces of the same variants

    def take_hits(self) -> list[tuple[int, Served]]:
        """Return how many calls traces have served since the last time, if any; the latest one comes last."""
        counts = self._counts
        if counts is None:
            return []
        hits = counts.take()
        for number, more in enumerate(hits):
            self.hits[number] += more
        order = sorted(range(len(hits)), key=lambda number: number == counts.latest[0])
        return [(hits[number], self.served[number]) for number in order if hits[number]]

    def limit(self) -> None:
        """Have a path of several traces tell the calls that their variants have to know of.

        Calls of the same variants may take turns, so each trace gets its share.
        """
        if self._counts is not None:
            self._counts.limit(
                [
                    (min(served.variants.pause_at, NEVER) - served.variants.calls) // share
                    for served, share in zip(self.served, self._shares, strict=True)
                ]
            )

    def retire(self) -> None:
        """Have a path of several traces tell each call from now on."""
        if self._counts is not None:
            self._counts.limit([1] * len(self.served))

    @property
    def handles_errors(self) -> bool:
        """True if the function may handle an error that the program raises: the general way then raises it.

        A path of several traces leaves such a call to the general way itself.
        """
        trace = self.served[0].trace
        return not self.is_shared and trace.handles_errors and trace.may_raise

    def serves(self, trace: Trace) -> bool:
        """Return whether a trace is among those that it serves."""
        return id(trace) in self.traces

    def is_of(self, variants: Variants) -> bool:
        """Return whether a trace of some variants is among those that it serves."""
        return any(served.variants is variants for served in self.served)


def in_front(path: CallPath, paths: Sequence[CallPath]) -> tuple[CallPath, ...]:
    """Return paths with another one in front, without those that it serves the traces of."""
    others = [other for other in paths if not other.traces <= path.traces]
    return (path, *others[: _MOST_TRIED - 1])


def joined(paths: Sequence[CallPath], told: Callable[[CallPath, int], None]) -> CallPath | None:
    """Return one path for as many of the traces of some as can share one, or None if that is no more than one.

    Args:
        paths: the paths.
        told: is called with the new path and the number of a trace, after a call that the cache has to know of.
    """
    most = _most_taken(paths)
    texts = [served.generated.text for served in most if served.generated.text is not None]
    if len(texts) < 2:
        return None
    from tracejit.call.shared_reads import shared  # with ast, which few functions need

    made: list[weakref.ref[CallPath]] = []  # or it would live until the garbage collector finds it

    def told_of(number: int) -> None:
        path = made[0]()
        if path is not None:
            told(path, number)

    counts = ServedCounts(len(texts), told_of)
    run = shared(texts, counts)
    if run is None:
        return None
    path = CallPath(run, most, counts)
    made.append(weakref.ref(path))
    return path


def are_joined(path: CallPath, paths: Sequence[CallPath]) -> bool:
    """Return whether a path serves what joined() would join."""
    return path.traces == {id(served.trace) for served in _most_taken(paths)}


def _most_taken(paths: Sequence[CallPath]) -> list[Served]:
    """Return the traces of paths that can share one: those that draw less first, then those that served the most."""
    hits: dict[int, tuple[int, Served]] = {}
    for path in paths:
        for served, times in zip(path.served, path.hits, strict=True):
            if served.generated.text is not None:
                hits[id(served.trace)] = times, served
    most = [served for _, served in sorted(hits.values(), key=lambda pair: -pair[0])[:_MOST_SHARED]]
    return sorted(most, key=lambda served: served.trace.state.drawn_numbers)  # Note [shared draws]
