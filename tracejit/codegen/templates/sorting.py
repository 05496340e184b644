# SPDX-License-Identifier: BSD-3-Clause
"""Emission of sorting along the last axis, for CPUs that pack the lanes of a vector.

Note [sorting in vectors]
Quicksort (C. A. R. Hoare, 1962) whose partitions have no branches: of each vector, the lanes below the pivot are packed
and stored in front, where everything has been read already, the others in scratch memory, which is copied behind them
(as in M. Blacher, J. Giesen and L. Kuehne, Fast and robust vectorized in-place sorting of primitive types, 2021). Few
elements are sorted in registers. The pivot is the median of 16 elements at equal distances, the first of which
changes from one partition to the next. Where nothing is below the pivot, what equals it is in its place already.

The second half of the result, where the elements go in the opposite order in the end, is the scratch memory.
"""

from tracejit.codegen.target import vector_bytes
from tracejit.codegen.templates.tile_text import lanes_of, written
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
end = 2 * half
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
        while high - low > SEVERAL:
            turn = (turn + 7919) % 65536
            apart = (high - low) // LANES
            store_X(sample, 0, in_order_X(gather_X(out, low + turn % apart, apart, LANES)))
            pivot = sample[LANES // 2]
            first = low
            stop = high
            BELOW
            if middle == low:
                # All are in scratch memory, and less in their places: so this partition reads them there.
                first = beside
                stop = right
                UP_TO
                low = middle
            at = beside
            while at + LANES <= right:
                store_first_X(out, middle + at - beside, load_first_X(out, at, LANES), LANES)
                at += LANES
            rest = right - at
            store_first_X(out, middle + at - beside, load_first_X(out, at, rest), rest)
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
        if count > LANES:
            w = where(inside_xSEVERAL(count), load_first_xSEVERAL(out, low, count), T(HIGHEST))
            store_first_xSEVERAL(out, low, in_order_xSEVERAL(w), count)
        else:
            v = where(inside_X(count), load_first_X(out, low, count), T(HIGHEST))
            store_first_X(out, low, in_order_X(v), count)
    for i in range(n):
        out[beside + i] = out[last - 1 - i]
"""

# Whole vectors are stored first: what they overwrite in front has been read, and what they overwrite in scratch memory
# is not in use, as long as they do not leave it.
_PARTITION = """
middle = low
right = beside
at = first
while at + LANES <= stop and right + LANES <= end:
    v = load_first_X(out, at, LANES)
    below = v FRONT pivot
    less = count_X(below)
    store_first_X(out, middle, packed_X(v, below), LANES)
    store_first_X(out, right, packed_X(v, v BACK pivot), LANES)
    middle += less
    right += LANES - less
    at += LANES
while at < stop:
    count = min(LANES, stop - at)
    v = load_first_X(out, at, count)
    inside = inside_X(count)
    below = (v FRONT pivot) & inside
    less = count_X(below)
    store_first_X(out, middle, packed_X(v, below), less)
    store_first_X(out, right, packed_X(v, (v BACK pivot) & inside), count - less)
    middle += less
    right += count - less
    at += count
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
    several = "64"
    highest = "1e999" if is_float else str(2 ** (8 * dtype.itemsize - 1) - 1)
    text = _TEXT.replace("HIGHEST", highest).replace("SEVERAL", several)
    return written(
        "sort", text, dtype, NUMBERS, "x", "out", {"STACK": _STACK},
        {"NUMBERS_FIRST": _NUMBERS_FIRST if is_float else _COPY,
         "BELOW": _PARTITION.replace("FRONT", "<").replace("BACK", ">="),
         "UP_TO": _PARTITION.replace("FRONT", "<=").replace("BACK", ">")},
    )  # fmt: skip
