# SPDX-License-Identifier: BSD-3-Clause
"""The arena: values in use at the same time never share memory."""

import random

import numpy as np
from effort import sweep
from graphs import random_case
from hypothesis import given
from hypothesis import strategies as st
from small_graphs import fuzz, graph_of, normal, plan_of

from tracejit.ir import Builder, Value
from tracejit.passes.schedule.memory import ArenaAllocator
from tracejit.pipeline import build
from tracejit.program import ALIGNMENT


def test_living_values_do_not_share_memory() -> None:
    # Every byte of the arena belongs to at most one value from its first to its last launch.
    for seed in range(sweep(8, 30, sample=3)):
        maker = random_case(random.Random(seed), 30, ("float64", "float32"))
        assert maker is not None
        planned = plan_of(maker.graph)
        life: dict[Value, list[int]] = {}
        for number, launch in enumerate(planned.launches):
            for root in launch.touched:
                if planned.places[root].kind == "arena":
                    life.setdefault(root, [number, number])[1] = number
        owners = np.full((len(planned.launches), planned.arena_bytes), -1)
        for number, (root, (first, last)) in enumerate(life.items()):
            offset = planned.places[root].offset
            assert offset % ALIGNMENT == 0
            block = owners[first : last + 1, offset : offset + root.aval.size * root.dtype.itemsize]
            assert block.shape[1] == root.aval.size * root.dtype.itemsize
            assert (block == -1).all()
            block[...] = number


def test_memory_of_dead_values_is_used_again() -> None:
    def chain(b: Builder, x: Value) -> Value:
        for _ in range(20):
            x = b.matmul(x, x)
        return x

    program = build(graph_of(chain, normal(8, 8)))
    assert program.arena_bytes == 2 * 8 * 8 * 8


@fuzz
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 500)), max_size=60))
def test_arena_hands_out_disjoint_ranges(requests: list[tuple[bool, int]]) -> None:
    arena = ArenaAllocator()
    live: list[tuple[int, int]] = []
    for give, number in requests:
        if give and live:
            arena.give(*live.pop(number % len(live)))
            continue
        offset = arena.take(number)
        assert offset % ALIGNMENT == 0
        assert offset + number <= arena.size_bytes
        assert all(offset + max(number, 1) <= o or o + max(n, 1) <= offset for o, n in live)
        live.append((offset, number))
    peak = arena.size_bytes
    for piece in live:
        arena.give(*piece)
    if peak:
        assert arena.take(peak) == 0  # all free ranges have been joined
        assert arena.size_bytes == peak
