# SPDX-License-Identifier: BSD-3-Clause
"""memory: gives every root that launches touch a place: among the inputs, outputs, constants, or in the arena.

Outputs are written straight into the arrays that the call returns. Roots that only launches see share one arena, in
which memory is reused as soon as its last reader has run.
"""

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence

import numpy as np

from tracejit.aval import Aval
from tracejit.ir import Node, Value
from tracejit.passes.loops.launches import Launch
from tracejit.passes.loops.select import Selection
from tracejit.program import ALIGNMENT, Place
from tracejit.util.named_tuples import NamedTuple


class Memory(NamedTuple):
    """The memory of a program.

    places          of every root that a launch touches
    constants       the arrays behind places of kind "constant"
    arena_bytes     the size of the arena
    """

    places: dict[Value, Place]
    constants: list[np.ndarray]
    arena_bytes: int


class Plan(NamedTuple):
    """Launches on memory.

    launches        in the order of execution
    places          of every root that a launch touches
    constants       the arrays behind places of kind "constant"
    arena_bytes     the size of the arena
    outputs         their shapes and dtypes
    checked         the nodes whose indices are checked while they run. If there are any, the program has one more
                    output, which says whether an index was out of range.
    written         the numbers of the inputs that launches write
    commits         the number of launches, at the end, that run only where the results count
    """

    launches: list[Launch]
    places: dict[Value, Place]
    constants: list[np.ndarray]
    arena_bytes: int
    outputs: list[Aval]
    checked: list[Node]
    written: tuple[int, ...] = ()
    commits: int = 0


def place(launches: list[Launch], commits: list[Launch], selection: Selection) -> Plan:
    """Return the plan of launches, which `selection` was scheduled into.

    Args:
        launches: the launches.
        commits: those that follow where the results count.
        selection: the selection, with the places of inputs and outputs.
    """
    launches = launches + commits
    memory = place_roots([launch.touched for launch in launches], selection.external)
    return Plan(
        launches, *memory, selection.outputs, selection.checked, selection.written, len(commits)
    )  # fmt: skip


def place_roots(touched: Sequence[list[Value]], external: Mapping[Value, Place]) -> Memory:
    """Return memory for roots.

    Args:
        touched: the roots that each launch touches, in the order of execution.
        external: the places of inputs and outputs.
    """
    places = dict(external)
    touched = [list(dict.fromkeys(roots)) for roots in touched]
    constants = _place_constants(touched, places)
    return Memory(places, constants, _place_arena(touched, places))


def _place_constants(touched: Sequence[list[Value]], places: dict[Value, Place]) -> list[np.ndarray]:
    """Place the constants among the roots that launches touch, and return their arrays."""
    constants: list[np.ndarray] = []
    for roots in touched:
        for root in roots:
            if root not in places and root.node is None and root.data is not None:
                places[root] = Place("constant", len(constants), 0)
                constants.append(np.ascontiguousarray(root.data))
    return constants


def _place_arena(touched: Sequence[list[Value]], places: dict[Value, Place]) -> int:
    """Place the roots that launches touch and that have no place yet in the arena; return its size in bytes."""
    last_use: dict[Value, int] = {}
    for number, roots in enumerate(touched):
        for root in roots:
            if root not in places:
                last_use[root] = number
    dying: list[list[Value]] = [[] for _ in touched]
    for root, number in last_use.items():
        dying[number].append(root)
    arena = ArenaAllocator()
    for roots, last in zip(touched, dying, strict=True):
        for root in roots:
            if root not in places:
                places[root] = Place("arena", 0, arena.take(_bytes(root)))
        for root in last:
            arena.give(places[root].offset, _bytes(root))
    return arena.size_bytes


class ArenaAllocator:
    """Hands out byte ranges, best fit first, and joins ranges that are given back."""

    def __init__(self) -> None:
        self.size_bytes = 0
        self._by_size: list[tuple[int, int]] = []  # (size, offset) of free ranges, sorted
        self._by_start: dict[int, int] = {}
        self._by_end: dict[int, int] = {}

    def take(self, size_bytes: int) -> int:
        """Return the offset of a range of at least `size_bytes`."""
        size = _rounded(size_bytes)
        at = bisect_left(self._by_size, (size, -1))
        if at < len(self._by_size):
            free_size, offset = self._by_size[at]
            self._remove(offset, free_size)
            if free_size > size:
                self._insert(offset + size, free_size - size)
            return offset
        offset = self.size_bytes
        self.size_bytes += size
        return offset

    def give(self, offset: int, size_bytes: int) -> None:
        """Take back a range handed out by take."""
        size = _rounded(size_bytes)
        before = self._by_end.get(offset)
        if before is not None:
            self._remove(before, offset - before)
            offset, size = before, size + offset - before
        after = self._by_start.get(offset + size)
        if after is not None:
            self._remove(offset + size, after)
            size += after
        self._insert(offset, size)

    def _insert(self, offset: int, size: int) -> None:
        insort(self._by_size, (size, offset))
        self._by_start[offset] = size
        self._by_end[offset + size] = offset

    def _remove(self, offset: int, size: int) -> None:
        del self._by_size[bisect_left(self._by_size, (size, offset))]
        del self._by_start[offset]
        del self._by_end[offset + size]


def _bytes(root: Value) -> int:
    return root.aval.size * root.aval.dtype.itemsize


def _rounded(size_bytes: int) -> int:
    return max(ALIGNMENT, -(-size_bytes // ALIGNMENT) * ALIGNMENT)
