# SPDX-License-Identifier: BSD-3-Clause
"""The launches of a program as a graph, as data: nodes, what each needs to be done before, and their arguments."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tracejit.errors import CodegenError
from tracejit.program import Argument, BlasProduct, Grid, Kernel, Place, Pointer, Program, Row, ScalarArgument


class Patch(NamedTuple):
    """A word that is an address: the slot, what lies there, and how many bytes into it.

    In loops that the host runs it moves on by `steps[d]` bytes after each turn of the d-th of them, outermost first.
    """

    slot: int
    kind: str  # "input", "output", "constant" or "arena"
    number: int
    offset: int
    steps: tuple[int, ...] = ()


class GraphNode(NamedTuple):
    """A launch: its kernel and threads, the words of its argument, and those of them that are addresses.

    With `product`, NVIDIA's library computes that instead, from the same addresses.
    """

    kernel: Kernel
    grid: Grid
    words: tuple[int, ...]
    patches: tuple[Patch, ...]
    product: BlasProduct | None = None


class GraphPlan(NamedTuple):
    """Launches, and for each the numbers of those that have to be done before."""

    nodes: tuple[GraphNode, ...]
    dependencies: tuple[tuple[int, ...], ...]


def rows_in_turn(program: Program) -> GraphPlan:
    """Return the launches of all rows, one after the other."""
    nodes = tuple(map(node_of, program.rows))
    return GraphPlan(nodes, tuple([(number - 1,) if number else () for number in range(len(nodes))]))


def node_of(row: Row, at: Sequence["Turn"] = ()) -> GraphNode:
    """Return the launch of a row, in given turns of the loops around.

    Raises:
        CodegenError: if the row cannot run on a device.
    """
    if row.grid is None or row.kernel.host is not None:
        raise CodegenError(f"{row.kernel.name}: a kernel of the CPU cannot run on a device.")
    words: list[int] = []
    patches: list[Patch] = []
    for slot, argument in enumerate(row.arguments):
        words.append(_word(argument))
        if isinstance(argument, Pointer):
            patches.append(patch_of(argument, slot, at))
    return GraphNode(row.kernel, row.grid, tuple(words), tuple(patches), row.product)


class Turn(NamedTuple):
    """A turn of a loop: the step with which it begins, and how many steps later the next one does.

    The second is 0 for a loop that is not run by the host.
    """

    step: int
    stride: int


def patch_of(pointer: Pointer, slot: int, at: Sequence[Turn]) -> Patch:
    """Return an address in given turns of the loops around."""
    place: Place = pointer.place
    moves = list(zip(pointer.steps, at, strict=False))
    offset = place.offset + pointer.offset_bytes + sum(move * turn.step for move, turn in moves)
    steps = [move * turn.stride for move, turn in moves if turn.stride]
    return Patch(slot, place.kind, place.number, offset, tuple(steps) if any(steps) else ())


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
