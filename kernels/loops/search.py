# SPDX-License-Identifier: BSD-3-Clause
"""Positions of the first extremum along an axis, for arrays seen as (outer, n, inner), and of true elements."""

from typing import Any


def first_place(outer: int, n: int, inner: int, x: Any, best: Any, out: Any) -> None:
    """Write to out (outer, inner) the first position along n where x is `best` (outer, inner), or NaN."""
    for row in range(outer):
        if inner != 1:
            # Backwards along memory, so that the first position is written last.
            for column in range(inner):
                out[row * inner + column] = 0
            for i in range(n - 1, -1, -1):
                start = (row * n + i) * inner
                for column in range(inner):
                    element = x[start + column]
                    hit = element == best[row * inner + column] or element != element  # noqa: PLR0124 (NaN)
                    out[row * inner + column] = i if hit else out[row * inner + column]
        else:
            wanted = best[row]
            start = row * n
            # Blocks are tested as a whole, because a search that ends at a hit takes elements one by one.
            begin = 0
            while begin + 512 <= n:
                found = False
                for i in range(begin, begin + 512):
                    element = x[start + i]
                    found |= element == wanted or element != element  # noqa: PLR0124 (NaN)
                if found:
                    break
                begin += 512
            while begin < n:
                end = min(begin + 64, n)
                place = n
                for i in range(begin, end):
                    element = x[start + i]
                    hit = element == wanted or element != element  # noqa: PLR0124 (NaN)
                    place = min(place, i if hit else n)
                if place < n:
                    break
                begin = end
            out[row] = place if begin < n else 0


def first_of_pieces(
    outer: int, pieces: int, largest: int, value: Any, place: Any, best: Any, out: Any
) -> None:
    """Write to best and out (outer) the extremum, or NaN, of those of the pieces of rows, and its first place."""
    for row in range(outer):
        found = value[row * pieces]
        first = place[row * pieces]
        for at in range(row * pieces + 1, (row + 1) * pieces):
            other = value[at]
            is_beyond = other > found if largest != 0 else other < found
            if found == found and (is_beyond or other != other):  # noqa: PLR0124 (NaN)
                found = other
                first = place[at]
        best[row] = found
        out[row] = first


def true_places(n: int, count: int, x: Any, out: Any) -> None:
    """Write to out (count) the positions of the first elements of x other than 0, and 0 after the last of them."""
    filled, begin = 0, 0
    while begin < n and filled < count:
        end = begin + 64
        found = 0
        if end <= n:
            for k in range(64):
                found += 1 if x[begin + k] != 0 else 0
        if 0 < found < count - filled:
            # Each place is written, and overwritten if its element is 0: a branch would often be mispredicted.
            for k in range(64):
                out[filled] = begin + k
                filled += 1 if x[begin + k] != 0 else 0
        elif found > 0 or end > n:  # the last ones, behind which is no memory
            for i in range(begin, min(end, n)):
                if x[i] != 0 and filled < count:
                    out[filled] = i
                    filled += 1
        begin = end
    for i in range(filled, count):
        out[i] = 0
