# SPDX-License-Identifier: BSD-3-Clause
"""Emission of sorting, and of the places that sort, along the last axis, for CPUs that pack the lanes of a vector.

Note [sorting in vectors]
This is quicksort (C. A. R. Hoare, 1962) with partitions that have no branches. From each vector, the lanes below the
pivot are packed and stored in front, where everything has been read already. The others go to scratch memory, which is
copied behind them (as in M. Blacher, J. Giesen and L. Kuehne, Fast and robust vectorized in-place sorting of primitive
types, 2021). Few elements are sorted in registers. The pivot is the median of 16 elements at equal distances; the first
of them changes from one partition to the next. Where nothing is below the pivot, what equals it is in its place
already.

For the places that sort, the scratch memory is the second half of the result, where the ranks go at the end.

If elements are wanted at some places only, such as the middle, a part without a wanted place is left as it is. Then the
time grows only linearly with the number of elements (C. A. R. Hoare, Algorithm 65: Find, 1961).
"""

import numpy as np

from tracejit.codegen.names import SUFFIXES
from tracejit.codegen.target import vector_bytes
from tracejit.codegen.templates.tile_text import lanes_of, written
from tracejit.passes.loops.launches import KernelLaunch
from tracejit.program import Kernel

NUMBERS = ("outer", "n", "inner")
_WANTED_NUMBERS = (*NUMBERS, "least", "most")

_SHORT = 128  # elements of a row that are sorted in registers
_STACK = 64  # the smaller part comes first, so that at most log2 of the elements wait

_TEXT = """
from_of = scratch_i64(STACK)
to_of = scratch_i64(STACK)
sample = scratch_K(LANES)
turn = 0
half = HALF
end = half + outer * n
for row in range(outer):
    base = row * n
    last = base + n
    beside = half + base
    BEGIN
    waiting = 1
    from_of[0] = base
    to_of[0] = known
    while waiting > 0:
        waiting -= 1
        low = from_of[waiting]
        high = to_of[waiting]
        while high - low > SEVERAL WANTED:
            turn = (turn + 7919) % 65536
            apart = (high - low) // LANES
            v = gather_X(out, low + turn % apart, apart, LANES)
            inside = inside_X(LANES)
            store_X(sample, 0, in_order_X(KEYS))
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
                store_first_X(out, middle + at - beside, load_first_X(ASIDE, at, LANES), LANES)
                at += LANES
            rest = right - at
            store_first_X(out, middle + at - beside, load_first_X(ASIDE, at, rest), rest)
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
        LEAVES
    END
"""

_LEAVES = """
if count > LANES:
    v = load_first_Y(out, low, count)
    LEAF_OF_SEVERAL
else:
    v = load_first_X(out, low, count)
    LEAF
"""

# A part of more elements has no wanted place.
_WANTED_LEAVES = """
if count > LANES and count <= SEVERAL:
    v = load_first_Y(out, low, count)
    LEAF_OF_SEVERAL
if count <= LANES:
    v = load_first_X(out, low, count)
    LEAF
"""

_WANTED = "and low < base + most and high > base + least"

# Rows that fit the registers.
_SHORT_TEXT = """
inside = inside_Y(n)
for row in range(outer):
    base = row * n
    last = base + n
    v = load_first_Y(x, base, n)
    numbers = inside & (v == v)
    known = count_Y(numbers)
    store_first_Y(out, base, in_order_Y(where(numbers, v, T(HIGHEST))), known)
    at = base + known
    for i in range(base, last if known < n else base):
        if x[i] != x[i]:
            out[at] = x[i]
            at += 1
"""

# The places that sort rows which fit the registers: what is sorted are keys with the place in the lowest bits.
_SHORT_ORDER = """
half = outer * n
inside = inside_Y(n)
for row in range(outer):
    base = row * n
    beside = half + base
    keys = in_order_Y(where(inside, keys_Y(load_first_Y(x, base, n)), i64Y(HIGHEST)))
    store_first_Y(out, base, keys & MOST, n)
    TIES
    RANKS
"""

# Numbers of 64 bits whose keys differ in the place only.
_TIES = """
store_first_Y(out, beside, keys, n)
ties = 0
for i in range(1, n):
    ties += 1 if out[beside + i] ^ out[beside + i - 1] <= MOST else 0
for i in range(1, n if ties > 0 else 0):
    place = out[base + i]
    value = x[base + place]
    k = i
    while k > 0:
        before = x[base + out[base + k - 1]]
        if not (value < before or (before != before and value == value)):
            break
        out[base + k] = out[base + k - 1]
        k -= 1
    out[base + k] = place
"""

# Whole vectors are stored first: what they overwrite in front has been read, and what they overwrite in scratch memory
# is not in use, as long as they do not leave it.
_PARTITION = """
middle = low
right = beside
at = first
while at + LANES <= stop and right + LANES <= end:
    v = load_first_X(SOURCE, at, LANES)
    inside = inside_X(LANES)
    keys = KEYS
    below = keys FRONT pivot
    less = count_X(below)
    store_first_X(out, middle, packed_X(v, below), LANES)
    store_first_X(ASIDE, right, packed_X(v, keys BACK pivot), LANES)
    middle += less
    right += LANES - less
    at += LANES
while at < stop:
    count = min(LANES, stop - at)
    v = load_first_X(SOURCE, at, count)
    inside = inside_X(count)
    keys = KEYS
    below = (keys FRONT pivot) & inside
    less = count_X(below)
    store_first_X(out, middle, packed_X(v, below), less)
    store_first_X(ASIDE, right, packed_X(v, (keys BACK pivot) & inside), count - less)
    middle += less
    right += count - less
    at += count
"""

# NaN compares with nothing, and comes last.
_NUMBERS_FIRST = """
known = base
for at in range(base, last, LANES):
    count = min(LANES, last - at)
    v = load_first_X(x, at, count)
    numbers = (v == v) & inside_X(count)
    found = count_X(numbers)
    store_first_X(out, known, packed_X(v, numbers), found)
    known += found
at = known
for i in range(base, last if known < last else base):
    if x[i] != x[i]:
        out[at] = x[i]
        at += 1
"""

_COPY = """
known = last
for i in range(base, last):
    out[i] = x[i]
"""

_PLACES_OF_NUMBERS = """
known = base
for i in range(n):
    out[known if x[base + i] == x[base + i] else beside] = i
    known += 1 if x[base + i] == x[base + i] else 0
at = known
for i in range(n if known < last else 0):
    if x[base + i] != x[base + i]:
        out[at] = i
        at += 1
"""

_PLACES = """
known = last
for i in range(n):
    out[base + i] = i
"""

_RANKS = """
for i in range(n):
    out[beside + out[base + i]] = i
"""


def _leaf(name: str, shape: str, keys: str, highest: str) -> str:
    """Return the lines that sort what is in one vector, of some lanes; the lanes beyond the last come last."""
    ordered = f"in_order_{shape}(where(inside, v, T({highest})))"
    if name == "order":
        padded = f"where(inside, {keys}, K({highest})), where(inside, v, T({2**62}))"
        ordered = f"places_in_order_{shape}({padded})"
    return f"inside = inside_{shape}(count)\nstore_first_{shape}(out, low, {ordered}, count)"


def _short(launch: KernelLaunch, highest: str) -> Kernel:
    """Return the kernel for rows that fit the registers, given the highest number of the dtype."""
    dtype, n = launch.pointers[0].dtype, launch.numbers[1]
    lanes = next(count for count in (lanes_of(launch.pointers[-1].dtype), 16, 32, 64, _SHORT) if n <= count)
    sizes: dict[str, int | str] = {"Y": f"x{lanes}", "HIGHEST": highest}
    if launch.name == "partition":
        return written("partition_short", _SHORT_TEXT, dtype, _WANTED_NUMBERS, "x", "out aside", sizes)
    sizes = {"Y": f"x{lanes}", "i64Y": f"i64x{lanes}", "HIGHEST": 2**63 - 1, "MOST": lanes - 1}
    snippets = {"TIES": _TIES if dtype.itemsize == 8 else "", "RANKS": _RANKS}
    x = f"x:{SUFFIXES[dtype]}"
    return written("order_short", _SHORT_ORDER, launch.pointers[-1].dtype, NUMBERS, x, "out", sizes, snippets)


def kernel(launch: KernelLaunch) -> Kernel | None:
    """Return the kernel of a launch, None for a dtype or a CPU whose vectors are not packed."""
    name, dtype, inner = launch.name, launch.pointers[0].dtype, launch.numbers[2]
    if vector_bytes() < 64 or dtype.kind not in "fi" or dtype.itemsize < 4 or inner != 1:
        return None
    is_float, is_order = dtype.kind == "f", name == "order"
    lanes = lanes_of(launch.pointers[-1].dtype)
    several = 32 if is_order else _SHORT  # which fit the registers, with the places beside them
    highest = "1e999" if is_float else str(2 ** (8 * dtype.itemsize - 1) - 1)
    keys = "taken_{0}(x, base, v, inside)" if is_order else "v"
    begin = {(True, False): _NUMBERS_FIRST, (False, False): _COPY, (True, True): _PLACES_OF_NUMBERS,
             (False, True): _PLACES}[is_float, is_order]  # fmt: skip
    of_several = f"x{several}"
    snippets = {
        "BEGIN": begin,
        "END": _RANKS if is_order else "",
        "BELOW": _PARTITION.replace("FRONT", "<").replace("BACK", ">=").replace("SOURCE", "out"),
        "UP_TO": _PARTITION.replace("FRONT", "<=").replace("BACK", ">").replace("SOURCE", "ASIDE"),
        "LEAVES": _LEAVES if is_order else _WANTED_LEAVES,
        "LEAF_OF_SEVERAL": _leaf(name, of_several, keys.format(of_several), highest),
        "LEAF": _leaf(name, f"x{lanes}", keys.format(f"x{lanes}"), highest),
    }
    if launch.numbers[1] <= _SHORT and not (is_order and dtype == np.int64):
        return _short(launch, highest)
    snippets = {key: lines.replace("KEYS", keys.format("X")) for key, lines in snippets.items()}
    sizes: dict[str, int | str] = {
        "STACK": _STACK, "SEVERAL": several, "Y": of_several, "K": SUFFIXES[dtype],
        "HALF": "outer * n" if is_order else 0, "ASIDE": "out" if is_order else "aside",
    }  # fmt: skip
    text = _TEXT.replace("KEYS", keys.format("X")).replace(" WANTED", "" if is_order else f" {_WANTED}")
    numbers, results = (NUMBERS, "out") if is_order else (_WANTED_NUMBERS, "out aside")
    return written(
        name, text, launch.pointers[-1].dtype, numbers, f"x:{SUFFIXES[dtype]}", results, sizes, snippets
    )
