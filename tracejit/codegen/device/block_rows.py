# SPDX-License-Identifier: BSD-3-Clause
"""Emission of long rows, with a block of threads for each.

Note [rows by blocks]
A thread has 16, 8 or 4 elements of a row at a time: the first ones of all threads lie side by side, then the second
ones. What a block folds is combined in two stages. The threads of a group exchange their folds, and the first thread of
each group puts the result into memory that the block shares. From there each group takes the results of all groups, and
exchanges them again. So all threads have the same bits.

Rows that a block can hold are kept in registers, as a group keeps short rows (Note [rows in registers]). The text says
how many registers a thread may take, so that a block fits; the number differs for blocks of up to 256 and 512 threads.
For longer rows, each pass is a loop over pieces of the row. A block has as many threads as its launch says, so that one
kernel serves rows of all lengths.
"""

from tracejit.codegen.device.kept_rows import KeptRowEmitter
from tracejit.codegen.device.nest import DeviceEmitter
from tracejit.codegen.loop_order import joined
from tracejit.codegen.names import INDENT, SUFFIXES
from tracejit.codegen.nest import Emitted, Hoisted
from tracejit.passes.loops.kept_values import GROUP, REGISTERS
from tracejit.passes.loops.nest import Accumulate, Line, RowFold
from tracejit.passes.loops.spread import Spread

_MOST_GROUPS = 32  # of a block
_CHUNKS = 4  # elements, or vectors of up to 16 bytes, that a thread has at a time where rows are not kept
_VECTOR = 16  # bytes


def emit_block_rows(spread: Spread) -> Emitted:
    """Return the kernel of rows that blocks take in turn, and the arguments of its launch."""
    order = joined(spread.nest)
    if spread.kept is not None:
        return _KeptByBlock(spread, order).run()
    if order.depth - order.row_depth == 1:
        return _ByPieces(spread, order).run()
    return _ByElements(spread, order).run()


class _InBlocks(DeviceEmitter):
    """Combines what the threads of a block have folded."""

    stages = 0  # at which a block combines

    def body(self) -> list[str]:
        self.shared: list[str] = []  # the lines that name shared memory
        lines = super().body()
        most = next(most for most in REGISTERS if self.spread.threads <= most)
        limit = [f"registers({REGISTERS[most]})"] if most > min(REGISTERS) else []
        return [*[INDENT + line for line in (*limit, *self.shared)], *lines]

    def of_one(self) -> list[str]:
        lines = super().of_one()
        # For its next row a thread writes where others may still read of this one, if no other stage is between.
        return [*lines, "barrier()"] if self.stages == 1 else lines

    def folded_lanes(self, folds: list[RowFold]) -> list[str]:
        nodes = {self.values.in_row[line.result]: line.node for line in folds}
        self.stages += 1
        if not self.shared:
            self.shared = [
                f"group_of_block = quotient(thread_of_block(), index({GROUP}))",
                f"groups_of_block = quotient(threads_of_block(), index({GROUP}))",
                "is_of_group = lane() < groups_of_block",
                "other_group = lane() if is_of_group else index(0)",
            ]
        puts, takes = [], []
        for name, node in nodes.items():
            suffix, number = SUFFIXES[node.output.dtype], len(self.shared)
            memory = f"folded{number}"
            self.shared.append(f"{memory} = shared_{suffix}({number}, {_MOST_GROUPS})")
            puts.append(f"{INDENT}{memory}[group_of_block] = {name}")
            takes.append(f"{name} = {memory}[other_group] if is_of_group else {self.initial(node)}")
        exchanged = self.across_lanes(nodes)
        return [*exchanged, "if lane() == 0:", *puts, "barrier()", *takes, *exchanged]


class _ByElements(_InBlocks):
    """Writes passes over rows whose axes do not lie in memory as one."""


class _KeptByBlock(_InBlocks, KeptRowEmitter):
    """Writes rows that a block keeps in registers."""

    def chunk_count(self) -> int:
        own = -(-self.order.extents[-1] // self.spread.threads)
        return (1 << (own - 1).bit_length()) // self.width

    def place_of(self, chunk: int) -> str:
        return f"{chunk} * apart"

    def places(self) -> list[str]:
        return [*self.between(), *self.first(), *self.chunk_places()]

    def between(self) -> list[str]:
        """Return the line that says how many elements lie between two chunks of a thread."""
        return [f"apart = index(threads_of_block() * {self.width})"]

    def first(self) -> list[str]:
        """Return the line that says where a thread's first chunk begins."""
        return [f"column = index(thread_of_block() * {self.width})"]


class _ByPieces(_KeptByBlock):
    """Writes passes over rows that are too long for registers, piece by piece."""

    def chunk_count(self) -> int:
        accesses = (*self.nest.reads, *self.nest.writes)
        most = max(access.dtype.itemsize for access in accesses) * self.width
        return _CHUNKS // -(-most // _VECTOR)

    def places(self) -> list[str]:
        return self.between()

    def is_in_registers(self, line: Accumulate) -> bool:
        return DeviceEmitter.is_in_registers(self, line)

    def emit_pass(self, lines: list[Line], rows: list[str], hoisted: Hoisted) -> None:
        super().emit_pass(lines, rows, hoisted)
        self.of_chunk = [{} for _ in range(self.chunks)]  # the next pass loads and computes anew

    def in_pieces(self, inner: list[str]) -> list[str]:
        piece = [*self.chunk_places(), *inner, f"column = index(column + {self.chunks} * apart)"]
        return [
            *self.first(),
            f"while column < n{self.order.depth - 1}:",
            *[INDENT + line for line in piece],
        ]
