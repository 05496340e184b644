# SPDX-License-Identifier: BSD-3-Clause
"""Order along an axis: places that sort, places of extrema so far, places to insert at; and common divisors.

Arrays are seen as (outer, n, inner). NaN comes after all numbers, as in NumPy.
"""

from typing import Any


def order(outer: int, n: int, inner: int, x: Any, out: Any) -> None:
    """Write to out (2, outer, n, inner) the places that sort each row, equal elements in their order, and the ranks.

    Merge sort: the second half of out is where runs are merged to, until the ranks are written there.
    """
    half = outer * n * inner
    for row in range(outer):
        for column in range(inner):
            first = row * n * inner + column
            source, target = first, first + half
            for i in range(n):
                out[source + i * inner] = i
            width = 1
            while width < n:
                for begin in range(0, n, 2 * width):
                    left = begin
                    middle = min(begin + width, n)
                    right = middle
                    end = min(begin + 2 * width, n)
                    for k in range(begin, end):
                        from_right = left >= middle
                        if left < middle and right < end:
                            a = x[first + out[source + left * inner] * inner]
                            b = x[first + out[source + right * inner] * inner]
                            from_right = b < a or (a != a and b == b)  # noqa: PLR0124 (NaN)
                        if from_right:
                            out[target + k * inner] = out[source + right * inner]
                            right += 1
                        else:
                            out[target + k * inner] = out[source + left * inner]
                            left += 1
                source, target = target, source
                width *= 2
            if source != first:
                for i in range(n):
                    out[first + i * inner] = out[source + i * inner]
            for i in range(n):
                out[first + half + out[first + i * inner] * inner] = i


def searchsorted(n: int, m: int, right: int, x: Any, v: Any, out: Any) -> None:
    """Write to out (m) the number of elements of the sorted x (n) before each v: smaller, or equal too if `right`."""
    for j in range(m):
        value = v[j]
        low, high = 0, n
        while low < high:
            middle = (low + high) // 2
            element = x[middle]
            if right:
                before = not (value < element or (element != element and value == value))  # noqa: PLR0124 (NaN)
            else:
                before = element < value or (value != value and element == element)  # noqa: PLR0124 (NaN)
            if before:
                low = middle + 1
            else:
                high = middle
        out[j] = low


def place_of_maximum(outer: int, n: int, inner: int, x: Any, out: Any) -> None:
    """Write to out the place of the first maximum up to each place; a NaN counts as the maximum."""
    for row in range(outer):
        for column in range(inner):
            start = row * n * inner + column
            place = 0
            for i in range(n):
                best = x[start + place * inner]
                element = x[start + i * inner]
                if best == best and (element > best or element != element):  # noqa: PLR0124 (NaN)
                    place = i
                out[start + i * inner] = place


def place_of_minimum(outer: int, n: int, inner: int, x: Any, out: Any) -> None:
    """Write to out the place of the first minimum up to each place; a NaN counts as the minimum."""
    for row in range(outer):
        for column in range(inner):
            start = row * n * inner + column
            place = 0
            for i in range(n):
                best = x[start + place * inner]
                element = x[start + i * inner]
                if best == best and (element < best or element != element):  # noqa: PLR0124 (NaN)
                    place = i
                out[start + i * inner] = place


def gcd(n: int, x: Any, y: Any, out: Any) -> None:
    """Write to out (n) the greatest common divisors of integers >= 0, by Euclid's algorithm."""
    for i in range(n):
        a, b = x[i], y[i]
        while b != 0:
            a, b = b, a % b
        out[i] = a
