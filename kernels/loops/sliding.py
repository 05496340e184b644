# SPDX-License-Identifier: BSD-3-Clause
"""Sums of products of a vector with all places of another one, as in a convolution."""

from typing import Any


def sliding_sums(start: int, stop: int, taps: int, n: int, before: int, x: Any, w: Any, out: Any) -> None:
    """Write to out[i], from `start` to before `stop`, the sum over t of x[i + t - before] w[t].

    x has n elements, and products beside them are left out. Blocks of results stay in the nearest cache, and eight
    products are added to each at once, where all results of a block have these. If there are few results, the products
    of each are added in eight parts instead.
    """
    if stop - start < 16:
        for i in range(start, stop):
            low, high = max(0, before - i), min(taps, n + before - i)
            at = i - before
            whole = low
            out[i] = 0
            if high - low >= 8:
                s0 = x[at + low] * w[low]
                s1 = x[at + low + 1] * w[low + 1]
                s2 = x[at + low + 2] * w[low + 2]
                s3 = x[at + low + 3] * w[low + 3]
                s4 = x[at + low + 4] * w[low + 4]
                s5 = x[at + low + 5] * w[low + 5]
                s6 = x[at + low + 6] * w[low + 6]
                s7 = x[at + low + 7] * w[low + 7]
                for t in range(low + 8, high - 7, 8):
                    s0 += x[at + t] * w[t]
                    s1 += x[at + t + 1] * w[t + 1]
                    s2 += x[at + t + 2] * w[t + 2]
                    s3 += x[at + t + 3] * w[t + 3]
                    s4 += x[at + t + 4] * w[t + 4]
                    s5 += x[at + t + 5] * w[t + 5]
                    s6 += x[at + t + 6] * w[t + 6]
                    s7 += x[at + t + 7] * w[t + 7]
                out[i] = ((s0 + s4) + (s1 + s5)) + ((s2 + s6) + (s3 + s7))
                whole = high - (high - low) % 8
            for t in range(whole, high):
                out[i] += x[at + t] * w[t]
    else:
        for first in range(start, stop, 256):
            last = min(first + 256, stop)
            for i in range(first, last):
                out[i] = 0
            # Taps from `some` on reach a result of the block, from `all_of` to before `end_of_all` all of them.
            some = max(0, before - last + 1)
            end = min(taps, n + before - first)
            all_of = min(max(some, before - first), end)
            end_of_all = max(all_of, min(end, n + before - last + 1))
            end_of_all -= (end_of_all - all_of) % 8
            for t in range(all_of, end_of_all, 8):
                f0 = w[t]
                f1 = w[t + 1]
                f2 = w[t + 2]
                f3 = w[t + 3]
                f4 = w[t + 4]
                f5 = w[t + 5]
                f6 = w[t + 6]
                f7 = w[t + 7]
                for i in range(first, last):
                    at = i + t - before
                    total = out[i] + x[at] * f0 + x[at + 1] * f1
                    total = total + x[at + 2] * f2 + x[at + 3] * f3
                    total = total + x[at + 4] * f4 + x[at + 5] * f5
                    out[i] = total + x[at + 6] * f6 + x[at + 7] * f7
            for turn in range(some, end - (end_of_all - all_of)):
                t = turn if turn < all_of else turn + end_of_all - all_of
                f0 = w[t]
                for i in range(max(first, before - t), min(last, n + before - t)):
                    out[i] += x[i + t - before] * f0
