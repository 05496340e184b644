# SPDX-License-Identifier: BSD-3-Clause
"""Emission of loops that sum the rows of a matrix: columns side by side, with their sums in registers.

Note [sums of rows]
A sum for each column would go through memory: for each element of each row, the sum so far would be loaded and stored.
So where a nest has such sums the lanes of vectors are neighbouring columns, and the inner loop runs over rows. Values
that differ between columns only, such as a scale, are loaded before that loop. After some rows the sums are added to
memory, and the next columns of these rows follow. Columns that do not fill several vectors are the first lanes of a
single one.

Memory is then not walked through in order, which matters most where much is stored: with one sum and two results of 4
MB it took a third longer. So a nest needs more sums than stored results. Least times in us through memory and in
registers, with AVX-512, of rows that are summed, and of x + b with the sums of its rows and of their squares:

    rows x columns      13 x 10      64 x 100     64 x 512     1000 x 70    4096 x 256    3200 x 512
    sum                 0.13 0.10    0.8  0.4     2.2  1.7     5.9  3.3     57   59       70   78
    x + b, two sums     0.12 0.13    1.0  0.8     5.2  4.8     13.9 7.6     150  118      294  279
"""

from collections.abc import Mapping

from tracejit.codegen.early_ends import EarlyEndEmitter, ends_early
from tracejit.codegen.expressions import combine
from tracejit.codegen.long_sums import LongSumsEmitter
from tracejit.codegen.loop_order import LoopOrder, loop_order
from tracejit.codegen.names import INDENT, SUFFIXES
from tracejit.codegen.nest import Emitted, Frame, Hoisted, NestEmitter
from tracejit.codegen.nest_memory import NestMemory
from tracejit.codegen.streams import StreamFrame, is_stream
from tracejit.codegen.target import vector_bytes
from tracejit.passes.loops.nest import Accumulate, Nest, Reload, Store
from tracejit.passes.loops.vector_forms import has_vector_form

_SUMS = ("sum", "sum_add")  # extrema gain nothing
_VECTORS = 4  # of columns side by side
_FEWEST_LANES = 4  # for which kernels/intrinsics/lanes.py has functions
_ROWS = 16  # whose sums stay in registers


def emit_nest(nest: Nest) -> Emitted:
    """Return the kernel of a nest and the arguments to launch it with."""
    order = loop_order(nest)
    if sums_rows(nest, order):
        order = _columns_first(nest, order)
        return RowSumsEmitter(nest, order, Frame(order)).run()
    if ends_early(nest, order):
        return EarlyEndEmitter(nest, order, Frame(order)).run()
    frame = StreamFrame(order) if is_stream(nest, order) else Frame(order)
    return LongSumsEmitter(nest, order, frame).run()


def sums_rows(nest: Nest, order: LoopOrder) -> bool:
    """Return whether a nest sums rows of a matrix, and can do so in vectors (Note [sums of rows])."""
    if nest.split is not None or order.depth < 2 or order.lanes or order.short:
        return False
    if any(isinstance(line, Reload) or not has_vector_form(line) for line in nest.lines):
        return False
    for access in (*nest.reads, *nest.writes):
        along = order.strides(access)[-1]
        if along not in (0, 1) or (along and access.dtype.itemsize < 4):
            return False
    accumulated = [line for line in nest.lines if isinstance(line, Accumulate)]
    if any(line.node.op.name not in _SUMS for line in accumulated):
        return False
    sums = [order.strides(nest.writes[line.write]) for line in accumulated]
    stores = sum(1 for line in nest.lines if isinstance(line, Store))
    return all(along[-1] for along in sums) and sum(1 for along in sums if not along[-2]) > stores


def _columns_first(nest: Nest, order: LoopOrder) -> LoopOrder:
    """Return the loops with that over columns, which are in lanes, as the first."""
    axes = (order.depth - 1, *range(order.depth - 1))
    extents = tuple([order.extents[axis] for axis in axes])
    itemsize = max([access.dtype.itemsize for access in (*nest.reads, *nest.writes)])
    count = max(_FEWEST_LANES, vector_bytes() // itemsize)
    return LoopOrder(extents, None, tuple([order.groups[axis] for axis in axes]), count)


class _ColumnsMemory(NestMemory):
    """Memory of columns side by side; `is_whole` if there are as many as lanes, which then need no mask."""

    def __init__(self, nest: Nest, order: LoopOrder, computed: Mapping[str, str], is_whole: bool) -> None:
        super().__init__(nest, order, computed)
        self.is_whole = is_whole

    def function(self, name: str, pointer: str) -> str | None:
        """Return the name of a function of whole vectors at a pointer, None if there is none."""
        accesses = self.nest.reads if pointer[0] == "p" else self.nest.writes
        dtype = accesses[int(pointer[1:])].dtype
        return f"{name}_{SUFFIXES[dtype]}{self.width}" if self.is_whole and dtype.kind == "f" else None

    def load(self, pointer: str, strides: tuple[int, ...]) -> str:
        pointer = self.in_place.get(pointer, pointer)
        function = self.function("load", pointer)
        if function is None or not self.differs(strides):
            return super().load(pointer, strides)
        return f"{function}({pointer}, {self.index(pointer, strides)})"

    def store(self, pointer: str, strides: tuple[int, ...], value: str) -> str:
        function = self.function("store", pointer)
        if function is None or not self.differs(strides):
            return super().store(pointer, strides, value)
        return f"{function}({pointer}, {self.index(pointer, strides)}, {value})"


class RowSumsEmitter(NestEmitter):
    """The writer of the kernel of a nest that sums rows (Note [sums of rows])."""

    def __init__(self, nest: Nest, order: LoopOrder, frame: Frame) -> None:
        super().__init__(nest, order, frame)
        self.sums: dict[str, Accumulate] = {}  # in registers, by name

    def body(self) -> list[str]:
        lines = self.start_lines()
        last, lanes = self.order.depth - 1, self.order.lanes
        wide = _VECTORS * lanes
        whole = self.columns(wide, True)
        if any("count)" in line for line in whole):  # integers have no functions of whole vectors
            whole.insert(0, f"count = {wide}")
        loops = [
            f"for row in range(0, n{last}, {_ROWS}):",
            f"{INDENT}for i0 in range(0, n0 - {wide - 1}, {wide}):",
            *[INDENT * 2 + line for line in whole],
            f"{INDENT}for i0 in range(n0 - n0 % {wide}, n0, {lanes}):",
            f"{INDENT * 2}count = min({lanes}, n0 - i0)",
            *[INDENT * 2 + line for line in self.columns(lanes, False)],
        ]
        for axis in reversed(range(1, last)):
            loops = [f"for i{axis} in range(n{axis}):", *[INDENT + line for line in loops]]
        return lines + [INDENT + line for line in loops]

    def columns(self, lanes: int, is_whole: bool) -> list[str]:
        """Return the lines for as many columns as `lanes`, or for some of them."""
        self.memory = _ColumnsMemory(
            self.nest, self.order._replace(lanes=lanes), self.frame.computed, is_whole
        )
        self.values.in_row.clear()
        self.sums.clear()
        last = self.order.depth - 1
        hoisted: Hoisted = {}
        inner: list[str] = []
        for lines in (*self.nest.row, *self.nest.full):
            self.emit_lines(lines, self.order.depth, inner, hoisted)
        before = [line for level in sorted(hoisted) for line in hoisted[level]]
        after = []
        for name, line in self.sums.items():
            before.append(f"{name} = {self.widened(self.initial(line.node), line.node.output.dtype)}")
            after.append(self.added(line, name))
        rows = f"for i{last} in range(row, min(row + {_ROWS}, n{last})):"
        return [*before, rows, *[INDENT + line for line in inner], *after]

    def emit_accumulate(self, line: Accumulate, out: list[str]) -> None:
        if self.memory.write_strides[line.write][-1]:
            super().emit_accumulate(line, out)
            return
        name = self.values.fresh()
        self.sums[name] = line
        self.values.origins[name] = line.node
        value = self.widened(self.operand(line.value), line.node.output.dtype)
        out.append(f"{name} = {combine(line.node, name, value, self.memory.width)}")

    def added(self, line: Accumulate, name: str) -> str:
        """Return the line that adds a sum in a register to memory."""
        pointer, strides = f"o{line.write}", self.memory.write_strides[line.write]
        total = combine(line.node, self.memory.load(pointer, strides), name, self.memory.width)
        return self.memory.store(pointer, strides, total)
