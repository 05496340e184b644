# SPDX-License-Identifier: BSD-3-Clause
"""Order along an axis: places that sort, places to insert at; and common divisors.

Arrays are seen as (outer, n, inner). NaN comes after all numbers, as in NumPy.
"""

from typing import Any


def order(outer: int, n: int, inner: int, x: Any, out: Any) -> None:
    """Write to out (2, outer, n, inner) the places that sort each row, equal elements in their order, and the ranks.

    Runs of 16 are sorted by insertion and then merged. The second half of out is where runs are merged to, until the
    ranks are written there.
    """
    half = outer * n * inner
    for row in range(outer):
        for column in range(inner):
            first = row * n * inner + column
            for begin in range(0, n, 16):
                for i in range(begin, min(begin + 16, n)):
                    value = x[first + i * inner]
                    k = i
                    while k > begin:
                        place = out[first + (k - 1) * inner]
                        before = x[first + place * inner]
                        if not (value < before or (before != before and value == value)):  # noqa: PLR0124 (NaN)
                            break
                        out[first + k * inner] = place
                        k -= 1
                    out[first + k * inner] = i
            source, target = first, first + half
            width = 16
            while width < n:
                for begin in range(0, n, 2 * width):
                    left, k = begin, begin
                    middle = min(begin + width, n)
                    right = middle
                    end = min(begin + 2 * width, n)
                    while left < middle and right < end:
                        p = out[source + left * inner]
                        q = out[source + right * inner]
                        a = x[first + p * inner]
                        b = x[first + q * inner]
                        if b < a or (a != a and b == b):  # noqa: PLR0124 (NaN)
                            out[target + k * inner] = q
                            right += 1
                        else:
                            out[target + k * inner] = p
                            left += 1
                        k += 1
                    for i in range(left, middle):
                        out[target + (k + i - left) * inner] = out[source + i * inner]
                    k += middle - left
                    for i in range(right, end):
                        out[target + (k + i - right) * inner] = out[source + i * inner]
                source, target = target, source
                width *= 2
            if source != first:
                for i in range(n):
                    out[first + i * inner] = out[source + i * inner]
            for i in range(n):
                out[first + half + out[first + i * inner] * inner] = i


def partition(outer: int, n: int, inner: int, least: int, most: int, x: Any, out: Any, aside: Any) -> None:
    """Write to out (outer, n, inner) the elements of each row in order, also those that are not wanted.

    Runs of 16 are sorted by insertion; of two runs the first is then copied aside, and both are merged.
    """
    for row in range(outer):
        for column in range(inner):
            first = row * n * inner + column
            for begin in range(0, n, 16):
                for i in range(begin, min(begin + 16, n)):
                    value = x[first + i * inner]
                    k = i
                    while k > begin:
                        before = out[first + (k - 1) * inner]
                        if not (value < before or (before != before and value == value)):  # noqa: PLR0124 (NaN)
                            break
                        out[first + k * inner] = before
                        k -= 1
                    out[first + k * inner] = value
            width = 16
            while width < n:
                for begin in range(0, n - width, 2 * width):
                    for i in range(width):
                        aside[i] = out[first + (begin + i) * inner]
                    left, k, right = 0, begin, begin + width
                    end = min(begin + 2 * width, n)
                    while left < width and right < end:
                        a = aside[left]
                        b = out[first + right * inner]
                        if b < a or (a != a and b == b):  # noqa: PLR0124 (NaN)
                            out[first + k * inner] = b
                            right += 1
                        else:
                            out[first + k * inner] = a
                            left += 1
                        k += 1
                    for i in range(left, width):
                        out[first + (k + i - left) * inner] = aside[i]
                width *= 2


def searchsorted(n: int, m: int, right: int, x: Any, v: Any, out: Any) -> None:
    """Write to out (m) the number of elements of the sorted x (n) before each v: smaller, or equal too if `right`.

    Many searches take their steps together: so there are no branches, and the loop over them becomes one of vectors.
    Where all of them lie between the first and the last, as sorted ones do, they search between the places of these.
    """
    for begin in range(0, m, 256):
        end = min(begin + 256, m)
        # All elements of a short x are counted, which gathers nothing.
        start, left = 0, n if n > 24 else 0
        if left > 0:
            low, high = v[begin], v[end - 1]
            if low > high:
                low, high = high, low
            between = 0
            for j in range(begin, end):
                value = v[j]
                between += 1 if low <= value <= high else 0
            if between == end - begin:
                left = 0
                for side in range(2):
                    value = low if side == 0 else high
                    place, rest = start, n - start
                    while rest > 0:
                        half = (rest + 1) // 2
                        element = x[place + half - 1]
                        before = element <= value if right else element == element and not element >= value  # noqa: PLR0124 (NaN)
                        place += half if before else 0
                        rest -= half
                    if side == 0:
                        start = place
                    else:
                        left = place - start
        for j in range(begin, end):
            out[j] = start
        for i in range(n if n <= 24 else 0):
            element = x[i]
            if right:
                for j in range(begin, end):
                    value = v[j]
                    out[j] += 1 if element <= value else 0
            else:
                for j in range(begin, end):
                    value = v[j]
                    before = element == element and not element >= value  # noqa: PLR0124 (NaN)
                    out[j] += 1 if before else 0
        # The answer is among the `left` places behind out[j], or out[j] itself.
        while left > 0:
            half = (left + 1) // 2
            if right:
                for j in range(begin, end):
                    value, element = v[j], x[out[j] + half - 1]
                    out[j] += half if element <= value else 0
            else:
                for j in range(begin, end):
                    value, element = v[j], x[out[j] + half - 1]
                    before = element == element and not element >= value  # noqa: PLR0124 (NaN)
                    out[j] += half if before else 0
            left -= half
        if right:
            for j in range(begin, end):
                out[j] = n if v[j] != v[j] else out[j]


def gcd(n: int, x: Any, y: Any, out: Any) -> None:
    """Write to out (n) the greatest common divisors of integers >= 0, by Euclid's algorithm."""
    for i in range(n):
        a, b = x[i], y[i]
        while b != 0:
            a, b = b, a % b
        out[i] = a
