# SPDX-License-Identifier: BSD-3-Clause
"""Runs of launches that repeat: the layers of a network, the steps of a loop that was unrolled."""

from collections.abc import Hashable, Sequence

_LONGEST = 256  # launches that repeat together
_LEAST = 3  # times, else there is little to fold


def repeats(items: Sequence[Hashable]) -> list[tuple[int, int, int]]:
    """Return runs that repeat: the first item, how many repeat together, and how many times.

    Runs do not overlap. From each place on the run is taken that covers the most, and of those the shortest.

    >>> repeats("abababc" "xxxx")
    [(0, 2, 3), (7, 1, 4)]
    """
    numbers: dict[Hashable, int] = {}
    ids = [numbers.setdefault(item, len(numbers)) for item in items]
    later = _next_places(ids)
    found = []
    at = 0
    while at < len(ids):
        best = (0, 0, 0)
        # What repeats begins again with the same item.
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
            found.append(best)
            at += best[1] * best[2]
        else:
            at += 1
    return found


def _next_places(ids: list[int]) -> list[int | None]:
    """Return for each place the next one with the same item."""
    later: list[int | None] = [None] * len(ids)
    latest: dict[int, int] = {}
    for i in range(len(ids) - 1, -1, -1):
        later[i] = latest.get(ids[i])
        latest[ids[i]] = i
    return later


def _times(ids: list[int], at: int, period: int) -> int:
    """Return how often the `period` items from a place on stand one after the other."""
    end = at + period
    while end < len(ids) and ids[end] == ids[end - period]:
        end += 1
    return (end - at) // period
