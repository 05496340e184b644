# SPDX-License-Identifier: BSD-3-Clause
"""Functions of the C library as plain Python, for devices, which have no such library."""


def fmod(x: float, y: float) -> float:
    """Return the exact remainder of x / y, with the sign of x.

    y times powers of two is subtracted where it fits, the greatest first; each difference is exact.
    """
    left, size = abs(x), abs(y)
    if not (left < INFINITY and size > 0.0):  # NaN is neither
        return NAN
    if size == INFINITY:
        return x
    step = size
    while step <= left * 0.5:
        step *= 2.0
    while step >= size:
        if left >= step:
            left -= step
        step *= 0.5
    if x < 0.0:
        return -left
    return x if x == 0.0 else left


INFINITY = float("inf")
NAN = float("nan")
