# SPDX-License-Identifier: BSD-3-Clause
"""Emission of kernels that combine copies of a sum.

A block takes some neighbours of the result, and its threads share the copies. A thread takes four copies at a time, so
that four loads are on their way. The sums of the threads are combined in shared memory, in an order that depends on
sizes only.
"""

from tracejit.codegen.device.nest import DeviceEmitter, ThreadMemory
from tracejit.codegen.expressions import combine
from tracejit.codegen.loop_order import LoopOrder, joined
from tracejit.codegen.names import INDENT, SUFFIXES
from tracejit.codegen.nest import Binding, Emitted, Hoisted
from tracejit.passes.loops.nest import RowFold
from tracejit.passes.loops.spread import COLUMN_THREADS, Spread, columns_of

_AT_ONCE = 4  # copies that a thread takes
_REGISTERS = 64  # of a thread: a multiprocessor has no more for COLUMN_THREADS


def emit_columns(spread: Spread) -> Emitted:
    """Return the kernel that combines copies, and the arguments of its launch."""
    return _ColumnEmitter(spread, joined(spread.nest)).run()


class _ColumnMemory(ThreadMemory):
    """The memory of copies and of the result."""

    copy = "i1"

    def counter(self, axis: int) -> str:
        return self.copy if axis == 1 else super().counter(axis)


class _ColumnEmitter(DeviceEmitter):
    """Writes how a block combines the copies of some neighbours."""

    memory: _ColumnMemory

    def __init__(self, spread: Spread, order: LoopOrder) -> None:
        super().__init__(spread, order)
        self.memory = _ColumnMemory(spread, order)

    def header_sizes(self) -> list[Binding]:
        return [(f"n{axis}", extent, "index(args[{}])") for axis, extent in enumerate(self.order.extents)]

    def body(self) -> list[str]:
        nest, (fold,) = self.nest, [line for line in self.nest.full[0] if isinstance(line, RowFold)]
        node, columns = fold.node, columns_of(nest.extents[0])
        suffix, threads = SUFFIXES[node.output.dtype], COLUMN_THREADS // columns
        names = [f"part{number}" for number in range(_AT_ONCE)]
        lines = [
            f"registers({_REGISTERS})",
            "me = thread_of_block()",
            f"i0 = index(block() * {columns} + remainder(me, index({columns})))",
            "is_in = i0 < n0",
            "i0 = i0 if is_in else index(0)",
            *[f"{name} = {self.initial(node)}" for name in names],
            f"first = quotient(me, index({columns}))",
            "while first < n1:",
        ]
        for number in range(_AT_ONCE):
            self.memory.copy = f"copy{number}"
            place = f"index(first + {number * threads})"
            load = self.memory.load("p0", self.memory.read_strides[0])
            lines += [
                f"{INDENT}is_in{number} = {place} < n1",
                f"{INDENT}copy{number} = {place} if is_in{number} else index(0)",
                f"{INDENT}value{number} = {load}",
            ]
        for number, name in enumerate(names):
            total = combine(node, name, f"value{number}")
            lines.append(f"{INDENT}{name} = {total} if is_in{number} else {name}")
        lines.append(f"{INDENT}first = index(first + {_AT_ONCE * threads})")
        total = names[0]
        for name in names[1:]:
            lines.append(f"{total} = {combine(node, total, name)}")
        lines += [
            f"folded = shared_{suffix}(0, {COLUMN_THREADS})",
            f"folded[me] = {total}",
            "barrier()",
            f"step = index({COLUMN_THREADS // 2})",
            f"while step >= {columns}:",
            f"{INDENT}if me < step:",
            f"{INDENT * 2}folded[me] = {combine(node, 'folded[me]', 'folded[me + step]')}",
            f"{INDENT}barrier()",
            f"{INDENT}step = index(step >> 1)",
            f"if me < {columns} and is_in:",
        ]
        self.values.in_row[fold.result] = "total"
        self.values.origins["total"] = node
        last, hoisted = ["total = folded[me]"], Hoisted()
        self.emit_lines(nest.row[1], self.order.row_depth, last, hoisted)
        before = [line for level in sorted(hoisted) for line in hoisted[level]]
        lines += [INDENT + line for line in (*before, *last)]
        return [INDENT + line for line in lines]
