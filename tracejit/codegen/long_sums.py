# SPDX-License-Identifier: BSD-3-Clause
"""Emission of sums over several loops, or over many elements of float32, whose totals are of float64.

Note [long sums]
The innermost loop of a sum runs in vectors, each lane of which adds few of its elements. If it is short, as over rows
of three elements, one number would take all elements one after the other, and a sum of n elements would have an error
of about n roundings; NumPy's has log2(n). A million numbers of float32 lost 12 of 24 bits that way, and 2 * 10^7 ones
were 16,777,216. So the sum of the innermost loop begins anew each time, and a total of float64 takes it. That makes the
loops faster, because such sums do not wait for each other. Us on one thread, with AVX-512, of ((x - c) ** 2).sum():

    rows x columns    333,337 x 3    200,003 x 5    15,873 x 63    10,001 x 100    64 x 784
    one number            818            818            139            210           4.84
    a total               502            420             88            106           4.86

Where the text says that rows of up to 8 elements lie one after the other (Note [short inner loops] in nest.py), LLVM
makes vectors of several rows, if it has vectors for all of the functions. A total that takes the sum of each row would
prevent that, which took 1.4 times as long. There both loops are innermost; if they have more than 4096 rows, the text
has a further loop, which takes about 2048 elements at a time. Each lane adds a few hundred of them: LLVM has no more
lanes there than one vector has, or three. Where most of the elements are one number, their roundings all go the same
way: 90 % of 450,003 x 3 elements at 0.1 * c had an error of 5e-6 with 4096 rows at a time, 3e-7 with 512, which took
1.02 times as long (AVX2).

Note [long rows]
The innermost loop runs in up to 64 lanes, so a sum of 10^7 elements of float32 adds 150,000 to each: errors were 2e-5
for x.var(), where NumPy's are 1e-7. So a loop over many elements takes 4096 at a time, too. A sum of everything always
does, so that one kernel serves all sizes; rows do if they have more than 65,536 elements. Time stays as it was, except
with functions such as exp: the outer loop holds their constants in registers too, where they do not fit, so that each
vector loads them. exp took 1.12 times as long, log 1.17 times. Sums of everything with such a function take blocks only
where they have more than a million elements, up to which errors are 1e-6.
"""

from tracejit.codegen.names import INDENT, SUFFIXES
from tracejit.codegen.nest import Hoisted, NestEmitter, loop_lines
from tracejit.ir import Node
from tracejit.passes.cost import is_dear
from tracejit.passes.loops.nest import Line, RowFold

_ROWS = 4096  # 1024 at a time take 1.06 to 1.09 times as long
_DENSE = 2048  # elements of short rows that lie one after the other (Note [long sums])
_LONG = 1 << 16  # elements of a row, from where on it has another text
_LONG_DEAR = 1 << 20  # the same of a sum of everything with a dear function (Note [long rows])


class LongSumsEmitter(NestEmitter):
    """The writer of the kernel of a nest whose passes sum over several loops (Note [long sums])."""

    def start_line(self, name: str, node: Node, start: str) -> str:
        return f"{name}_total = f64(0)" if self.is_long(node) else super().start_line(name, node, start)

    def pass_loops(self, lines: list[Line], within: Hoisted, inner: list[str]) -> list[str]:
        order, axis = self.order, self.part_axis
        sums = {
            self.values.in_row[line.result]: line.node
            for line in lines
            if isinstance(line, RowFold) and self.is_long(line.node)
        }
        if not sums:
            return super().pass_loops(lines, within, inner)
        self.values.origins.update({f"{name}_total": node for name, node in sums.items()})
        starts = [f"{name} = {self.initial(node)}" for name, node in sums.items()]
        ends = [f"{name}_total = fold_sum_f64({name}_total, f64({name}))" for name in sums]
        if self.takes_blocks():
            rows = loop_lines(order, range(axis + 1, order.depth), 1, within, inner)
            count = self.block()
            at_a_time = f"for i{axis} in range(next{axis}, min(next{axis} + {count}, n{axis})):"
            block = [INDENT + line for line in (*starts, at_a_time, *rows, *ends)]
            part = [*within.get(axis, []), f"for next{axis} in range(0, n{axis}, {count}):", *block]
        else:
            part = [*starts, *loop_lines(order, range(axis, order.depth), 0, within, inner), *ends]
        return [
            *loop_lines(order, range(order.row_depth, axis), 0, within, part),
            *[f"{name} = {SUFFIXES[node.output.dtype]}({name}_total)" for name, node in sums.items()],
        ]

    def is_long(self, node: Node) -> bool:
        """Return whether a fold is a sum of several parts."""
        order, dtype = self.order, node.output.dtype
        if node.op.name != "sum" or dtype.kind != "f" or order.lanes:
            return False
        return self.part_axis > order.row_depth or (
            self.takes_blocks() and (self.part_axis < order.depth - 1 or dtype.itemsize == 4)
        )

    def takes_blocks(self) -> bool:
        """Return whether the loops that sum up a part take many rows, or many elements, some at a time."""
        order, axis = self.order, self.part_axis
        if axis < order.depth - 1:
            return order.extents[axis] > self.block()
        if order.depth > 1:
            return order.extents[axis] > _LONG
        return order.extents[axis] > _LONG_DEAR or not any(map(is_dear, self.nest.nodes))

    def block(self) -> int:
        """Return how many rows, or elements, the loops that sum up a part take at a time: a power of two."""
        if self.part_axis == self.order.depth - 1:
            return _ROWS
        return 1 << (_DENSE // self.order.short).bit_length() - 1

    @property
    def part_axis(self) -> int:
        """The outermost of the loops that sum up a part."""
        order, memory = self.order, self.memory
        last = order.depth - 1
        strides = (*memory.read_strides, *memory.write_strides)
        is_dense = order.short and all(along[last - 1] in (0, 1, order.short) for along in strides)
        return last - 1 if is_dense else last
