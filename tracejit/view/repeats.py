# SPDX-License-Identifier: BSD-3-Clause
"""Repeated runs of launches: the layers of a network, the steps of an unrolled loop."""

from collections.abc import Hashable, Sequence

_LONGEST = 256  # launches in a run
_LEAST = 3  # repetitions: fewer are not worth folding


def repeats(items: Sequence[Hashable]) -> list[tuple[int, int, int]]:
    """Return repeated runs: the first item, the length of the run, and the number of repetitions.

    Runs do not overlap. At each place, the run that covers the most items is taken; of these, the shortest.

    >>> repeats("abababc" "xxxx")
    [(0, 2, 3), (7, 1, 4)]
    """
    numbers: dict[Hashable, int] = {}
    ids = [numbers.setdefault(item, len(numbers)) for item in items]
    later = _next_places(ids)
    runs = []
    at = 0
    while at < len(ids):
        best = (0, 0, 0)
        # A repetition begins with the same item.
        other = later[at]
        while other is not None and other - at <= _LONGEST:
            period = other - at
            times = _times(ids, at, period)
            if times >= _LEAST and period * times > best[1] * best[2]:
                best = (at, period, times)
                if at + period * times == len(ids):
                    break
            other = later[other]
        if best[2]:
            runs.append(best)
            at += best[1] * best[2]
        else:
            at += 1
    return runs


def _next_places(ids: list[int]) -> list[int | None]:
    """Return, for each place, the next place with the same item."""
    later: list[int | None] = [None] * len(ids)
    latest: dict[int, int] = {}
    for i in range(len(ids) - 1, -1, -1):
        later[i] = latest.get(ids[i])
        latest[ids[i]] = i
    return later


def _times(ids: list[int], at: int, period: int) -> int:
    """Return how many times the run of `period` items at a place repeats."""
    end = at + period
    while end < len(ids) and ids[end] == ids[end - period]:
        end += 1
    return (end - at) // period
