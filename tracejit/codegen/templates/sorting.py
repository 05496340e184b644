# SPDX-License-Identifier: BSD-3-Clause
"""Emission of sorting along the last axis, for CPUs that pack the lanes of a vector.

Note [sorting in vectors]
Quicksort (C. A. R. Hoare, 1962) whose partitions have no branches: of each vector, the lanes below the pivot are packed
and stored in front, where everything has been read already, the others in scratch memory, which is copied behind them
(as in M. Blacher, J. Giesen and L. Kuehne, Fast and robust vectorized in-place sorting of primitive types, 2021). Up
to 16 elements are sorted in a vector. The pivot is the median of 16 elements at equal distances, the first of which
changes from one partition to the next. Where nothing is below the pivot, what equals it is in its place already.

The second half of the result, where the elements go in the opposite order in the end, is the scratch memory.
"""

from tracejit.codegen.target import vector_bytes
from tracejit.codegen.templates.tile_text import written
from tracejit.passes.loops.launches import KernelLaunch
from tracejit.program import Kernel

NUMBERS = ("outer", "n", "inner")

_STACK = 64  # the smaller part comes first, so that at most log2 of the elements wait

_TEXT = """
from_of = scratch_i64(STACK)
to_of = scratch_i64(STACK)
sample = scratch_T(16)
turn = 0
half = outer * n
for row in range(outer):
    base = row * n
    last = base + n
    beside = half + base
    NUMBERS_FIRST
    waiting = 1
    from_of[0] = base
    to_of[0] = stop
    while waiting > 0:
        waiting -= 1
        low = from_of[waiting]
        high = to_of[waiting]
        while high - low > 16:
            apart = (high - low) // 16
            turn = (turn + 7919) % 65536
            store_x16(sample, 0, in_order_x16(gather_x16(out, low + turn % apart, apart, 16)))
            pivot = sample[8]
            middle = low
            right = beside
            for at in range(low, high, LANES):
                count = min(LANES, high - at)
                v = load_first_X(out, at, count)
                inside = inside_X(count)
                below = (v < pivot) & inside
                less = count_X(below)
                store_first_X(out, middle, packed_X(v, below), less)
                store_first_X(out, right, packed_X(v, (v >= pivot) & inside), count - less)
                middle += less
                right += count - less
            if middle == low:
                right = beside
                for at in range(low, high, LANES):
                    count = min(LANES, high - at)
                    v = load_first_X(out, at, count)
                    inside = inside_X(count)
                    equal = (v <= pivot) & inside
                    same = count_X(equal)
                    store_first_X(out, middle, packed_X(v, equal), same)
                    store_first_X(out, right, packed_X(v, (v > pivot) & inside), count - same)
                    middle += same
                    right += count - same
                low = middle
            for at in range(beside, right, LANES):
                count = min(LANES, right - at)
                store_first_X(out, middle + at - beside, load_first_X(out, at, count), count)
            if low < middle:
                if middle - low < high - middle:
                    from_of[waiting] = middle
                    to_of[waiting] = high
                    high = middle
                else:
                    from_of[waiting] = low
                    to_of[waiting] = middle
                    low = middle
                waiting += 1
        count = high - low
        v = where(inside_x16(count), load_first_x16(out, low, count), T(HIGHEST))
        store_first_x16(out, low, in_order_x16(v), count)
    for i in range(n):
        out[beside + i] = out[last - 1 - i]
"""

# NaN compares with nothing, and comes last.
_NUMBERS_FIRST = """
stop = base
for at in range(base, last, LANES):
    count = min(LANES, last - at)
    v = load_first_X(x, at, count)
    numbers = (v == v) & inside_X(count)
    known = count_X(numbers)
    store_first_X(out, stop, packed_X(v, numbers), known)
    stop += known
at = stop
for i in range(base, last if stop < last else base):
    if x[i] != x[i]:
        out[at] = x[i]
        at += 1
"""

_COPY = """
stop = last
for i in range(base, last):
    out[i] = x[i]
"""


def kernel(launch: KernelLaunch) -> Kernel | None:
    """Return the kernel of a launch, None for a dtype or a CPU whose vectors are not packed."""
    dtype, (_, _, inner) = launch.pointers[-1].dtype, launch.numbers
    if vector_bytes() < 64 or dtype.kind not in "fi" or dtype.itemsize < 4 or inner != 1:
        return None
    is_float = dtype.kind == "f"
    highest = "1e999" if is_float else str(2 ** (8 * dtype.itemsize - 1) - 1)
    return written(
        "sort", _TEXT.replace("HIGHEST", highest), dtype, NUMBERS, "x", "out", {"STACK": _STACK},
        {"NUMBERS_FIRST": _NUMBERS_FIRST if is_float else _COPY},
    )  # fmt: skip
