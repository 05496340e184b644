# SPDX-License-Identifier: BSD-3-Clause
"""Emission of attention: kernels that never hold all scores.

Note [attention]
A block of queries meets the keys block by block, so memory is linear in the length (T. Dao, D. Fu, S. Ermon, A. Rudra,
C. Re, "FlashAttention", 2022). Scores are transposed, S' = K Q': lanes are queries, so that maxima and sums over keys
go from vector to vector, without sums across lanes. Only the block of queries is transposed. Operands that a product
reads as vectors are copied to memory without gaps, which caches hold better; keys and values of scores are read number
by number, in place. Where heads fill four vectors, sums over keys and over queries have tiles of as many columns. For
the adjoint only lse is kept, the logarithm of the sum of exp(score) over the keys: one number for each query and head.
It gives the weights again: exp(score - lse).

A row without keys (all masked, or none there) has weights of 0 and an lse of infinity, so that the formula holds: exp
of minus infinity is exactly 0. Its result is 0 by a choice, because 0 times a value that is NaN would not be. Weights
of masked scores are exactly 0 too. With tiny numbers instead, products would be denormal, which took five times as
long. Blocks of keys beyond the diagonal of a causal mask are left out.

Queries beyond the last repeat it, so that no load leaves the memory; they are not stored.
"""

from functools import cache

import numpy as np

from tracejit.codegen.names import SUFFIXES
from tracejit.codegen.target import vector_bytes
from tracejit.codegen.templates.kernel_text import tile_rows
from tracejit.codegen.templates.tile_text import lanes_of, wide_of, written
from tracejit.ops.attention import blocks_of, room_of
from tracejit.passes.loops.launches import KernelLaunch
from tracejit.program import Kernel

FORWARD_NUMBERS = (
    "first", "last", "heads", "group", "queries", "keys", "width", "value_width", "causal", "masked", "mask_batch",
    "mask_head", "mask_query",
)  # fmt: skip
BACKWARD_NUMBERS = ("first", "last", "batch", "bands", *FORWARD_NUMBERS[2:])

_VECTORS, _LOW, _BROAD_BYTES = 4, 4, 64  # of broad tiles: columns and rows, and the CPU's vectors

_TURN_QUERIES = """
for c in range(0, wide, LANES):
    for p in range(0, width, LANES):
        square = load_tile_V(q, at_q + p, rows_LANES(c, count), heads * width, 0, min(LANES, width - p))
        store_tile_V(turned, p * QUERIES + c, rows_LANES(0, LANES), QUERIES, transpose_V(square), 0, LANES)
for p in range(width):
    for c in range(0, wide, LANES):
        store_V(turned, p * QUERIES + c, load_V(turned, p * QUERIES + c) * factor)
"""

_TURN_MASK = """
if masked:
    at_m = at_batch * mask_batch + head * mask_head + start * mask_query + at
    for c in range(0, wide, LANES):
        for p in range(0, few, LANES):
            square = load_tile_V(mask, at_m + p, rows_LANES(c, count), mask_query, 0, min(LANES, few - p))
            store_tile_V(scores, p * QUERIES + c, rows_LANES(0, LANES), QUERIES, transpose_V(square), 0, LANES)
"""

_SCORES = """
for i in range(0, few, HIGH):
    rows = rows_HIGH(i, few)
    for j in range(0, wide, WIDE):
        tile = zero_W(rows)
        if masked:
            tile = load_tile_W(scores, j, rows, QUERIES, 0, WIDE)
        for p in range(width):
            tile = add_outer_W(tile, k, at_k * width + p, rows, key_heads * width, load_W(turned, p * QUERIES + j))
        store_tile_W(scores, j, rows, QUERIES, tile, 0, WIDE)
if causal:
    for r in range(max(0, start - at + 1), few):
        for j in range(0, wide, LANES):
            seen = load_V(number, j) >= T(at + r - start)
            store_V(scores, r * QUERIES + j, where(seen, load_V(scores, r * QUERIES + j), lowest))
"""

_FORWARD = """
turned = scratch_T(TURNED)
near = scratch_T(NEAR)
scores = scratch_T(SCORES)
sums = scratch_T(TURNED)
top = scratch_T(QUERIES)
total = scratch_T(QUERIES)
factors = scratch_T(QUERIES)
number = scratch_T(QUERIES)
for i in range(QUERIES):
    number[i] = T(i)
zero = V(T(0.0))
lowest = V(T(-1e999))
factor = scale[0]
blocks = (queries + QUERIES - 1) // QUERIES
key_heads = heads // group
value_wide = (value_width + WIDE - 1) // WIDE * WIDE
value_whole = value_width // LANES * LANES
for unit in range(first, last):
    at_head = unit // blocks
    start = (unit - at_head * blocks) * QUERIES
    at_batch = at_head // heads
    head = at_head - at_batch * heads
    count = min(QUERIES, queries - start)
    wide = (count + WIDE - 1) // WIDE * WIDE
    at_q = ((at_batch * queries + start) * heads + head) * width
    TURN_QUERIES
    for j in range(0, wide, LANES):
        store_V(top, j, lowest)
        store_V(total, j, zero)
    for i in range(count):
        for p in range(0, value_wide, LANES):
            store_V(sums, i * ROOM + p, zero)
    stop = keys
    if causal:
        stop = min(keys, start + count)
    for at in range(0, stop, KEYS):
        few = min(KEYS, stop - at)
        at_k = (at_batch * keys + at) * key_heads + head // group
        TURN_MASK
        SCORE_TILES
        for j in range(0, wide, WIDE):
            before = load_W(top, j)
            largest = before
            for r in range(few):
                largest = fold_max_T(largest, load_W(scores, r * QUERIES + j))
            shift = where(largest == T(-1e999), T(0.0), largest)
            shrunk = exp_T(before - shift)
            added = load_W(total, j) * shrunk
            for r in range(few):
                power = exp_T(load_W(scores, r * QUERIES + j) - shift)
                store_W(scores, r * QUERIES + j, power)
                added = added + power
            store_W(top, j, largest)
            store_W(total, j, added)
            store_W(factors, j, shrunk)
        for r in range(few):
            place = (at_k + r * key_heads) * value_width
            for p in range(0, value_whole, LANES):
                store_V(near, r * ROOM + p, load_V(v, place + p))
            for p in range(value_whole, value_wide, LANES):
                store_V(near, r * ROOM + p, load_first_V(v, place + p, max(0, value_width - p)))
        for i in range(count):
            if factors[i] != T(1.0):
                for p in range(0, value_wide, LANES):
                    store_V(sums, i * ROOM + p, load_V(sums, i * ROOM + p) * factors[i])
        for i in range(0, count, LOW):
            rows = rows_LOW(i, count)
            seen = few
            if causal:
                seen = min(few, start + i + LOW - at)
            for j in range(0, value_width, BROAD):
                tile = load_tile_B(sums, j, rows, ROOM, 0, BROAD)
                for p in range(seen):
                    tile = add_outer_B(tile, scores, p * QUERIES, rows, 1, load_B(near, p * ROOM + j))
                store_tile_B(sums, j, rows, ROOM, tile, 0, BROAD)
    for j in range(0, wide, LANES):
        added = load_V(total, j)
        store_V(factors, j, where(added == zero, zero, V(T(1.0)) / added))
        store_V(top, j, where(added == zero, -lowest, load_V(top, j) + log_T(added)))
    for i in range(count):
        place = (at_batch * queries + start + i) * heads + head
        lse[place] = top[i]
        for p in range(0, value_width, LANES):
            part = load_V(sums, i * ROOM + p) * factors[i]
            part = where(V(factors[i]) == zero, zero, part)
            store_first_X(out, place * value_width + p, part, min(LANES, value_width - p))
"""

_BACKWARD = """
turned = scratch_T(TURNED)
turned_ct = scratch_T(TURNED)
near_q = scratch_T(TURNED)
near_ct = scratch_T(TURNED)
sums = scratch_T(TURNED)
near = scratch_T(NEAR)
scores = scratch_T(SCORES)
slopes = scratch_T(SCORES)
shift = scratch_T(QUERIES)
less = scratch_T(QUERIES)
number = scratch_T(QUERIES)
for i in range(QUERIES):
    number[i] = T(i)
zero = V(T(0.0))
lowest = V(T(-1e999))
factor = scale[0]
blocks = (queries + QUERIES - 1) // QUERIES
key_heads = heads // group
key_wide = (width + WIDE - 1) // WIDE * WIDE
value_wide = (value_width + WIDE - 1) // WIDE * WIDE
whole = width // LANES * LANES
for unit in range(first, last):
    pair = unit // bands
    band = unit - pair * bands
    at_batch = pair // key_heads
    key_head = pair - at_batch * key_heads
    at_dk = (band * batch + at_batch) * keys * key_heads + key_head
    for r in range(keys):
        for p in range(0, width, LANES):
            store_first_X(dk, (at_dk + r * key_heads) * width + p, zero, min(LANES, width - p))
        for p in range(0, value_width, LANES):
            store_first_X(dv, (at_dk + r * key_heads) * value_width + p, zero, min(LANES, value_width - p))
    for block in range(group * (blocks * band // bands), group * (blocks * (band + 1) // bands)):
        head = key_head * group + block % group
        start = block // group * QUERIES
        count = min(QUERIES, queries - start)
        wide = (count + WIDE - 1) // WIDE * WIDE
        at_query = (at_batch * queries + start) * heads + head
        at_q = at_query * width
        TURN_QUERIES
        for c in range(0, wide, LANES):
            for p in range(0, value_width, LANES):
                edge = min(LANES, value_width - p)
                square = load_tile_V(ct, at_query * value_width + p, rows_LANES(c, count), heads * value_width, 0, edge)
                store_tile_V(turned_ct, p * QUERIES + c, rows_LANES(0, LANES), QUERIES, transpose_V(square), 0, LANES)
        for i in range(wide):
            shift[i] = T(1e999)
            less[i] = T(0.0)
        for i in range(count):
            place = at_query + i * heads
            shift[i] = lse[place]
            less[i] = delta[place]
            for p in range(0, key_wide, LANES):
                part = load_first_V(q, place * width + p, max(0, min(LANES, width - p)))
                store_V(near_q, i * ROOM + p, part * factor)
                store_V(sums, i * ROOM + p, zero)
            for p in range(0, value_wide, LANES):
                part = load_first_V(ct, place * value_width + p, max(0, min(LANES, value_width - p)))
                store_V(near_ct, i * ROOM + p, part)
        stop = keys
        if causal:
            stop = min(keys, start + count)
        for at in range(0, stop, KEYS):
            few = min(KEYS, stop - at)
            at_k = (at_batch * keys + at) * key_heads + key_head
            for r in range(few):
                place = (at_k + r * key_heads) * width
                for p in range(0, whole, LANES):
                    store_V(near, r * ROOM + p, load_V(k, place + p))
                for p in range(whole, key_wide, LANES):
                    store_V(near, r * ROOM + p, load_first_V(k, place + p, max(0, width - p)))
            TURN_MASK
            SCORE_TILES
            at_v = at_k * value_width
            row_v = key_heads * value_width
            for i in range(0, few, HIGH):
                rows = rows_HIGH(i, few)
                for j in range(0, wide, WIDE):
                    tile = zero_W(rows)
                    for p in range(value_width):
                        tile = add_outer_W(tile, v, at_v + p, rows, row_v, load_W(turned_ct, p * QUERIES + j))
                    store_tile_W(slopes, j, rows, QUERIES, tile, 0, WIDE)
            for r in range(few):
                for j in range(0, wide, WIDE):
                    power = exp_T(load_W(scores, r * QUERIES + j) - load_W(shift, j))
                    slope = load_W(slopes, r * QUERIES + j) - load_W(less, j)
                    store_W(scores, r * QUERIES + j, power)
                    store_W(slopes, r * QUERIES + j, power * slope)
            at_dk = ((band * batch + at_batch) * keys + at) * key_heads + key_head
            for i in range(0, few, LOW):
                rows = rows_LOW(i, few)
                unseen = 0
                if causal:
                    unseen = max(0, at + i - start)
                for j in range(0, value_width, BROAD):
                    edge = min(BROAD, value_width - j)
                    place = at_dk * value_width + j
                    tile = load_tile_B(dv, place, rows, key_heads * value_width, 0, edge)
                    for p in range(unseen, count):
                        tile = add_outer_B(tile, scores, p, rows, QUERIES, load_B(near_ct, p * ROOM + j))
                    store_tile_B(dv, place, rows, key_heads * value_width, tile, 0, edge)
                for j in range(0, width, BROAD):
                    edge = min(BROAD, width - j)
                    place = at_dk * width + j
                    tile = load_tile_B(dk, place, rows, key_heads * width, 0, edge)
                    for p in range(unseen, count):
                        tile = add_outer_B(tile, slopes, p, rows, QUERIES, load_B(near_q, p * ROOM + j))
                    store_tile_B(dk, place, rows, key_heads * width, tile, 0, edge)
            for i in range(0, count, LOW):
                rows = rows_LOW(i, count)
                seen = few
                if causal:
                    seen = min(few, start + i + LOW - at)
                for j in range(0, width, BROAD):
                    tile = load_tile_B(sums, j, rows, ROOM, 0, BROAD)
                    for p in range(seen):
                        tile = add_outer_B(tile, slopes, p * QUERIES, rows, 1, load_B(near, p * ROOM + j))
                    store_tile_B(sums, j, rows, ROOM, tile, 0, BROAD)
        for i in range(count):
            place = at_query + i * heads
            for p in range(0, width, LANES):
                part = load_V(sums, i * ROOM + p) * factor
                store_first_X(dq, place * width + p, part, min(LANES, width - p))
"""

_SNIPPETS = {"TURN_QUERIES": _TURN_QUERIES, "TURN_MASK": _TURN_MASK, "SCORE_TILES": _SCORES}


def kernel(launch: KernelLaunch) -> Kernel:
    """Return a kernel of attention (Note [attention]); the names of its operands stand below."""
    names = FORWARD_NUMBERS if launch.name == "attention_forward" else BACKWARD_NUMBERS
    numbers = dict(zip(names, launch.numbers, strict=True))
    widths, dtype = (numbers["width"], numbers["value_width"]), launch.pointers[-1].dtype
    broad = _VECTORS * lanes_of(dtype)
    is_broad = vector_bytes() >= _BROAD_BYTES and not any(width % broad for width in widths)
    return _written(launch.name, dtype, room_of(max(widths)), broad if is_broad else 0, vector_bytes())


@cache
def _written(name: str, dtype: np.dtype, room: int, broad: int, _vector_bytes: int) -> Kernel:
    queries, keys = blocks_of(room, dtype.itemsize)
    columns, rows = (broad, _LOW) if broad else (wide_of(dtype), tile_rows())
    sizes: dict[str, int | str] = {
        "QUERIES": queries, "KEYS": keys, "ROOM": room, "TURNED": room * queries, "NEAR": room * keys,
        "SCORES": queries * keys, "B": f"{SUFFIXES[dtype]}x{columns}", "BROAD": columns, "LOW": rows,
    }  # fmt: skip
    if name == "attention_forward":
        return written(
            name, _FORWARD, dtype, FORWARD_NUMBERS, "q k v mask scale", "out lse", sizes, _SNIPPETS
        )
    return written(
        name,
        _BACKWARD,
        dtype,
        BACKWARD_NUMBERS,
        "q k v mask scale lse delta ct",
        "dq dk dv",
        sizes,
        _SNIPPETS,
    )
