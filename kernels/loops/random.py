# SPDX-License-Identifier: BSD-3-Clause
"""Random numbers by Philox 4x32-10, and permutations by random numbers.

J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
A block of four words of 32 bits is a function of a key and a counter of 128 bits, here (position, stream). So a number
depends only on its position, and blocks can be computed in any order.

The rounds are written twice: a function for them would be compiled on its own for each kernel that calls it. Integers
have 64 bits, which hold the products; the masks remove their sign.
"""

from typing import Any


def uniform32(n: int, offset: int, stream: int, state: Any, y: Any) -> None:
    """Write n numbers in [0, 1) to y, each from the top 24 bits of a word; state is (key, position)."""
    mask = 0xFFFFFFFF
    key = state[0]
    start = state[1] + offset
    for block in range((n + 3) // 4):
        at = start + block
        c0 = at & mask
        c1 = (at >> 32) & mask
        c2 = stream & mask
        c3 = (stream >> 32) & mask
        k0 = key & mask
        k1 = (key >> 32) & mask
        for _ in range(10):
            p0 = c0 * 0xD2511F53
            p1 = c2 * 0xCD9E8D57
            c0 = ((p1 >> 32) & mask) ^ c1 ^ k0
            c1 = p1 & mask
            c2 = ((p0 >> 32) & mask) ^ c3 ^ k1
            c3 = p0 & mask
            k0 = (k0 + 0x9E3779B9) & mask
            k1 = (k1 + 0xBB67AE85) & mask
        i = 4 * block
        y[i] = (c0 >> 8) * 2.0**-24
        if i + 1 < n:
            y[i + 1] = (c1 >> 8) * 2.0**-24
        if i + 2 < n:
            y[i + 2] = (c2 >> 8) * 2.0**-24
        if i + 3 < n:
            y[i + 3] = (c3 >> 8) * 2.0**-24


def uniform64(n: int, offset: int, stream: int, state: Any, y: Any) -> None:
    """Write n numbers in [0, 1) to y, each from the top 53 bits of two words; state is (key, position)."""
    mask = 0xFFFFFFFF
    key = state[0]
    start = state[1] + offset
    for block in range((n + 1) // 2):
        at = start + block
        c0 = at & mask
        c1 = (at >> 32) & mask
        c2 = stream & mask
        c3 = (stream >> 32) & mask
        k0 = key & mask
        k1 = (key >> 32) & mask
        for _ in range(10):
            p0 = c0 * 0xD2511F53
            p1 = c2 * 0xCD9E8D57
            c0 = ((p1 >> 32) & mask) ^ c1 ^ k0
            c1 = p1 & mask
            c2 = ((p0 >> 32) & mask) ^ c3 ^ k1
            c3 = p0 & mask
            k0 = (k0 + 0x9E3779B9) & mask
            k1 = (k1 + 0xBB67AE85) & mask
        i = 2 * block
        y[i] = ((c1 << 21) | (c0 >> 11)) * 2.0**-53
        if i + 1 < n:
            y[i + 1] = ((c3 << 21) | (c2 >> 11)) * 2.0**-53


def permutation(n: int, u: Any, y: Any) -> None:
    """Write 0 to n - 1 to y, shuffled by n numbers in [0, 1) as by Fisher and Yates."""
    for i in range(n):
        j = int(u[i] * (i + 1))
        if j < i:
            y[i] = y[j]
        y[j] = i
