# SPDX-License-Identifier: BSD-3-Clause
"""The launches of a program as a graph, as data: nodes, what each needs to be done before, and their arguments."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tracejit.errors import CodegenError
from tracejit.program import Argument, Grid, Kernel, Place, Pointer, Program, Row, ScalarArgument


class Patch(NamedTuple):
    """A word that is an address: the slot, what lies there, and how many bytes into it."""

    slot: int
    kind: str  # "input", "output", "constant" or "arena"
    number: int
    offset: int


class GraphNode(NamedTuple):
    """A launch: its kernel and threads, the words of its argument, and those of them that are addresses."""

    kernel: Kernel
    grid: Grid
    words: tuple[int, ...]
    patches: tuple[Patch, ...]


class GraphPlan(NamedTuple):
    """Launches, and for each the numbers of those that have to be done before."""

    nodes: tuple[GraphNode, ...]
    dependencies: tuple[tuple[int, ...], ...]


def plans(program: Program) -> tuple[GraphPlan, GraphPlan]:
    """Return the graph of a program, and that of what it writes where its results count.

    Raises:
        CodegenError: if some of its rows cannot run on a device.
    """
    if program.loops:
        raise CodegenError("a loop of the CPU cannot run on a device.")
    last = len(program.rows) - program.commits
    return _plan(program.rows[:last]), _plan(program.rows[last:])


def rows_in_turn(program: Program) -> GraphPlan:
    """Return the launches of all rows, one after the other."""
    nodes = tuple(map(_node, program.rows))
    return GraphPlan(nodes, tuple([(number - 1,) if number else () for number in range(len(nodes))]))


def _plan(rows: Sequence[Row]) -> GraphPlan:
    return GraphPlan(tuple(map(_node, rows)), tuple([row.needs for row in rows]))


def _node(row: Row) -> GraphNode:
    if row.grid is None or row.kernel.host is not None:
        raise CodegenError(f"{row.kernel.name}: a kernel of the CPU cannot run on a device.")
    words: list[int] = []
    patches: list[Patch] = []
    for slot, argument in enumerate(row.arguments):
        words.append(_word(argument))
        if isinstance(argument, Pointer):
            place: Place = argument.place
            patches.append(Patch(slot, place.kind, place.number, place.offset + argument.offset_bytes))
    return GraphNode(row.kernel, row.grid, tuple(words), tuple(patches))


def _word(argument: Argument) -> int:
    """Return the word of an argument; of an address 0."""
    if isinstance(argument, Pointer):
        return 0
    if isinstance(argument, ScalarArgument):
        raw = np.asarray(argument.value, argument.dtype).tobytes()
        return int.from_bytes(raw.ljust(8, b"\0"), "little", signed=True)
    if not isinstance(argument, int):
        raise CodegenError(f"{argument.name}: a routine of the CPU cannot run on a device.")
    return argument
