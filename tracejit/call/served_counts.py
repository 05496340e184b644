# SPDX-License-Identifier: BSD-3-Clause
"""The counts of the calls that a call path of several traces serves."""

from collections.abc import Callable, Sequence
from itertools import count


class ServedCounts:
    """The counts of the calls that several traces have served, which threads take without a lock.

    Args:
        number: of traces.
        told: is called with the number of a trace after a call that reaches its limit.

    Attributes:
        counts: by the number of a trace.
        limits: of the counts.
        latest: a list of the number of the trace that has served the latest call.
    """

    def __init__(self, number: int, told: Callable[[int], None]) -> None:
        self.counts = [count() for _ in range(number)]
        self.limits = [0] * number
        self.latest = [0]
        self.told = told
        self._taken = [0] * number

    def take(self) -> list[int]:
        """Return the calls since the last time."""
        hits = [next(counted) - taken for counted, taken in zip(self.counts, self._taken, strict=True)]
        self._taken = [taken + more + 1 for taken, more in zip(self._taken, hits, strict=True)]
        return hits

    def limit(self, calls: Sequence[int]) -> None:
        """Set the limits, given the number of calls, from 1 on, until the one that is told."""
        self.limits[:] = [taken + max(each, 1) - 1 for taken, each in zip(self._taken, calls, strict=True)]
