# SPDX-License-Identifier: BSD-3-Clause
"""The rows of a loop on a device: those of its body, on memory of the program around.

Note [loops on a device]
The body of a loop is built as any program for a device. Its rows become rows of the program around it. Their addresses
move on between steps, and the runtime repeats the rows in a graph (runtime/cuda/steps.py). A launch cannot be left out
of a graph by a value. So the kernels of a branch, and of a loop that a value ends, read a bool first, and do nothing
where it is false. The body of a loop writes its condition while other launches of the step still run. So kernels read a
copy of the condition, the flag, which is made before the first step and at the end of each.

Steps follow each other: the launches that begin a step wait for those that end the step before.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from tracejit.codegen.device.work import ALONE_GRID
from tracejit.codegen.emit import moved
from tracejit.codegen.names import INDENT, NAME, named
from tracejit.passes.loops.launches import LoopLaunch
from tracejit.passes.loops.nest import Access
from tracejit.program import Kernel, Pointer, Row, RowLoop
from tracejit.util.named_tuples import NamedTuple

_BOOL = np.dtype(bool)


class LoopRows(NamedTuple):
    """The rows of a loop, whose needs are numbers among them, and the loops, whose rows are numbers among them."""

    rows: list[Row]
    loops: list[RowLoop]


def rows_of_loop(launch: LoopLaunch, pointer_of: Callable[[Access], Pointer]) -> LoopRows:
    """Return the rows of a loop.

    Args:
        launch: the loop; where a value ends it, its scratch memory has room for the flag behind that of the body.
        pointer_of: returns the address of memory in the program around.
    """
    body = launch.body

    def outside(pointer: Pointer) -> Pointer:
        access, step_bytes = launch.memory(pointer.place)
        return moved(pointer_of(access), step_bytes, pointer)

    rows = [
        row._replace(
            arguments=tuple([outside(a) if isinstance(a, Pointer) else a for a in row.arguments]),
            where=row.where or launch.where,
            product=None,  # a library neither looks at a bool nor moves on
        )
        for row in _in_one_order(body.rows, body.commits)
    ]
    loops = [
        loop._replace(condition=None if loop.condition is None else outside(loop.condition))
        for loop in body.loops
    ]
    if launch.condition is None:
        return LoopRows(rows, [RowLoop(0, len(rows), launch.most), *loops])
    condition = pointer_of(launch.condition)
    if launch.node.op.name == "cond":
        rows = [_if_holds(row, condition) for row in rows]
        return LoopRows(rows, [RowLoop(0, len(rows), launch.most, condition), *loops])
    scratch = pointer_of(Access(launch.scratch, 0, (), _BOOL))
    flag = scratch._replace(offset_bytes=scratch.offset_bytes + body.arena_bytes)
    last = Row(_copy(), (condition, flag), "while", launch.where, grid=ALONE_GRID, needs=_ends(rows))
    first = last._replace(needs=())
    steps = [*[_if_holds(row, flag) for row in rows], last]
    shifted = [row._replace(needs=tuple([number + 1 for number in row.needs])) for row in steps]
    around = RowLoop(1, 1 + len(shifted), launch.most, flag)
    inner = [loop._replace(first=loop.first + 1, end=loop.end + 1) for loop in loops]
    return LoopRows(
        [first, *[row if row.needs else row._replace(needs=(0,)) for row in shifted]], [around, *inner]
    )


def _in_one_order(rows: Sequence[Row], commits: int) -> list[Row]:
    """Return rows whose last ones, which run only where results count, need all others, as in a loop's body."""
    at = len(rows) - commits
    ends = _ends(rows[:at])
    return [
        *rows[:at],
        *[
            row._replace(needs=tuple([number + at for number in row.needs]) or ends)
            for row in rows[at:]
        ],
    ]  # fmt: skip


def _ends(rows: Sequence[Row]) -> tuple[int, ...]:
    """Return the numbers of the rows that no other one needs."""
    needed = {number for row in rows for number in row.needs}
    return tuple([number for number in range(len(rows)) if number not in needed])


def placed(rows: Sequence[Row], first: int, needs: Sequence[int]) -> list[Row]:
    """Return rows of a loop as rows from number `first` on; those that begin it need others."""
    return [
        row._replace(needs=tuple([number + first for number in row.needs]) or tuple(needs)) for row in rows
    ]


def ends(rows: Sequence[Row], first: int) -> tuple[int, ...]:
    """Return the numbers of the rows that end a loop, whose rows begin at number `first`."""
    return tuple([number + first for number in _ends(rows)])


def _if_holds(row: Row, condition: Pointer) -> Row:
    """Return a row whose kernel does nothing where a bool is false."""
    return row._replace(kernel=_guarded(row.kernel), arguments=(*row.arguments, condition))


@lru_cache(maxsize=256)
def _guarded(kernel: Kernel) -> Kernel:
    """Return a kernel with one more argument, the address of a bool; where that is false it does nothing."""
    head, _, body = kernel.text.partition("\n")
    number = kernel.words
    lines = [
        head.replace(kernel.name, NAME), f"{INDENT}holds{number} = read_b1(args[{number}])",
        f"{INDENT}if not holds{number}[0]:", f"{INDENT * 2}return",
    ]  # fmt: skip
    return named("\n".join([*lines, body]), kernel.name.rpartition("_")[0])


@lru_cache(maxsize=1)
def _copy() -> Kernel:
    """Return the kernel that copies a bool."""
    lines = [
        "p0 = read_b1(args[0])",
        "o0 = write_b1(args[1], 0)",
        "if thread() == 0:",
        f"{INDENT}o0[0] = p0[0]",
    ]
    return named("\n".join([f"def {NAME}(args):", *[INDENT + line for line in lines]]) + "\n", "flag")
