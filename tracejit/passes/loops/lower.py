# SPDX-License-Identifier: BSD-3-Clause
"""lower: turns a fused Loop into a Nest, in which each value has a level of the loops and a pass over the row.

Note [passes]
Full-level values that depend on a row-level reduction can be computed only after that reduction has
seen the whole row: they belong to the next pass over the row. A value of an earlier pass that a later one needs is
computed again when that is cheap, and stored and loaded again when it is not (the exp of a softmax). Unless the value
is needed outside of the loop, its memory holds one row, which all rows use, so that it stays in the CPU's nearest
cache. The decision is made for all operations and loads together that would be repeated: otherwise the gradient of a
layer normalisation, where two passes need 20 of them, takes twice as long.
"""

from collections.abc import Iterable

from tracejit.aval import Aval
from tracejit.ir import Node, Value
from tracejit.ops.op import contiguous
from tracejit.passes import cost
from tracejit.passes.fusion.fuse import Fused, Loop
from tracejit.passes.loops.nest import (
    Access,
    Accumulate,
    Compute,
    Line,
    Literal,
    Load,
    Nest,
    Operand,
    Reload,
    RowFold,
    Store,
)


def lower(loop: Loop, fused: Fused, stored: Iterable[Value]) -> Nest:
    """Return the nest of a loop whose values `stored` are needed outside of it."""
    return _Lowering(loop, fused, list(stored)).run()


class _Lowering:
    def __init__(self, loop: Loop, fused: Fused, stored: list[Value]) -> None:
        self.loop = loop
        self.fused = fused
        self.rank = len(loop.domain)
        self.is_row: dict[Value, bool] = {}
        # The pass in which a full value is computed, or before which a row value is complete.
        self.ready: dict[Value, int] = {}
        self.reads: list[Access] = []
        self.read_numbers: dict[Access, int] = {}
        self.writes: list[Access] = []
        self.write_numbers: dict[Value, int] = {}
        for value in stored:
            self.write(value)

    def run(self) -> Nest:
        loop = self.loop
        passes = self.assign_passes()
        row: list[list[Line]] = [[] for _ in range(passes + 1)]
        full: list[list[Line]] = [[] for _ in range(passes)]
        reductions: list[list[Node]] = [[] for _ in range(passes)]
        for node in loop.nodes:
            out = node.output
            if out in loop.reduced_from:
                if self.is_of_rows(node):
                    continue  # an accumulation of a row value
                value = self.register(node.inputs[0])
                reductions[0 if value is None else self.ready[value]].append(node)
        for number in range(passes):
            self.fill_pass(number, full, reductions[number])
        for number in range(passes + 1):
            self.fill_row(number, row[number], full)
        return Nest(loop.domain, loop.split, self.reads, self.writes, row, full, loop.nodes)

    def register(self, value: Value) -> Value | None:
        """Return the value of this loop that `value` rearranges, or None if `value` is read from memory."""
        base = self.fused.sources[value][0]
        return base if base in self.loop.maps and base not in self.loop.accumulates else None

    def is_of_rows(self, node: Node) -> bool:
        """Return whether a reduction is over values of which each row has one, here or in memory (chop cuts loops)."""
        value = self.register(node.inputs[0])
        if value is not None:
            return self.is_row[value]
        axes = {d for d in self.loop.reduced_from[node.output] if d >= 0}
        split = self.loop.split
        return split is not None and split < self.rank and axes == set(range(split))

    def assign_passes(self) -> int:
        loop, split = self.loop, self.loop.split
        last = 0
        for node in loop.nodes:
            out = node.output
            ready = 0
            for value in node.inputs:
                base = self.register(value)
                if base is not None:
                    ready = max(ready, self.ready[base])
            if out in loop.reduced_from:
                row = self.is_of_rows(node)
                last = max(last, ready if not row else 0)
                self.is_row[out] = True
                self.ready[out] = ready if row else ready + 1
            else:
                self.is_row[out] = False
                if split is not None:
                    used = len([d for d in loop.maps[out] if d >= 0])
                    self.is_row[out] = used == split and used < self.rank
                self.ready[out] = ready
                if not self.is_row[out]:
                    last = max(last, ready)
        return last + 1

    def access(self, value: Value, axes: tuple[int, ...]) -> Access:
        """Return the access to memory of `value`, whose own axes lie at `axes` of the domain."""
        root, layout = self.fused.views[value]
        strides = [0] * self.rank
        for own, stride in zip(axes, layout.strides, strict=True):
            if own >= 0:
                strides[own] = stride
        return Access(root, layout.offset, tuple(strides), value.dtype)

    def read(self, access: Access) -> int:
        number = self.read_numbers.get(access)
        if number is None:
            number = self.read_numbers[access] = len(self.reads)
            self.reads.append(access)
        return number

    def write(self, value: Value) -> int:
        number = self.write_numbers.get(value)
        if number is None:
            number = self.write_numbers[value] = len(self.writes)
            strides = [0] * self.rank
            for own, stride in zip(self.loop.maps[value], contiguous(value.shape).strides, strict=True):
                if own >= 0:
                    strides[own] = stride
            self.writes.append(Access(value, 0, tuple(strides), value.dtype))
        return number

    def keep_in_row(self, value: Value) -> int:
        """Return the number of a write to memory of one row, which the next row overwrites."""
        split = self.loop.split or 0
        axes = sorted(d for d in self.loop.maps[value] if d >= split)
        shape = tuple([self.loop.domain[d] for d in axes])
        strides = [0] * self.rank
        for d, stride in zip(axes, contiguous(shape).strides, strict=True):
            strides[d] = stride
        number = self.write_numbers[value] = len(self.writes)
        self.writes.append(
            Access(Value(Aval(shape, None, value.dtype), None), 0, tuple(strides), value.dtype)
        )
        return number

    def operand(self, node: Node, position: int) -> Operand:
        """Return the operand of a node: a value of this loop, the number of a read, or a literal."""
        source = self.source(node, position)
        return self.read(source) if isinstance(source, Access) else source

    def source(self, node: Node, position: int) -> Value | Access | Literal:
        """Return where an operand of a node comes from: a value of this loop, memory, or a literal."""
        value = node.inputs[position]
        loop, source = self.loop, self.fused.sources[value][0]
        if source in loop.maps and source not in loop.accumulates:
            return source
        if source.node is None and source.data is not None and source.data.size == 1:
            return Literal(source.data.reshape(())[()], source.dtype)
        axes = loop.reduced_from.get(node.output)
        if axes is None:
            axes = loop.maps[node.output]
            axes = axes[len(axes) - value.ndim :]
        axes = tuple([-1 if extent == 1 else d for d, extent in zip(axes, value.shape, strict=True)])
        return self.access(value, axes)

    def start(self, node: Node) -> int | None:
        """Return the number of the read that a reduction adds to, or None."""
        if len(node.inputs) == 1:
            return None
        total, own = node.inputs[1], self.loop.maps[node.output]
        axes = tuple([-1 if extent == 1 else d for d, extent in zip(own, total.shape, strict=True)])
        return self.read(self.access(total, axes))

    def fill_pass(self, number: int, full: list[list[Line]], reductions: list[Node]) -> None:
        defined: set[Operand] = set()
        lines = full[number]
        for node in self.loop.nodes:
            out = node.output
            if out in self.loop.reduced_from or self.is_row[out] or self.ready[out] != number:
                continue
            if out in self.write_numbers:
                self.need(out, number, full, defined)
                lines.append(Store(self.write_numbers[out], out))
        for node in reductions:
            value = self.operand(node, 0)
            self.need(value, number, full, defined)
            if self.partial(node):
                lines.append(RowFold(node.output, node, value))
            else:
                lines.append(Accumulate(self.write(node.output), node, value, self.start(node)))

    def need(self, operand: Operand, number: int, full: list[list[Line]], defined: set[Operand]) -> None:
        """Append the lines that define an operand to a pass, unless it is among those `defined` there."""
        if isinstance(operand, Literal) or operand in defined:
            return
        defined.add(operand)
        lines = full[number]
        if isinstance(operand, int):
            lines.append(Load(operand, operand))
            return
        value: Value = operand
        if self.is_row[value]:
            return
        assert value.node is not None
        if self.ready[value] < number and self.keep(value, number, full, defined):
            lines.append(Reload(value, self.write_numbers[value]))
            return
        operands = tuple([self.operand(value.node, i) for i in range(len(value.node.inputs))])
        for part in operands:
            self.need(part, number, full, defined)
        lines.append(Compute(value, value.node, operands))

    def partial(self, node: Node) -> bool:
        """Return whether a reduction folds in a register over all axes after the split."""
        split = self.loop.split
        if split is None:
            return False
        kept = {d for d in self.loop.maps[node.output] if d >= 0}
        axes = {d for d in self.loop.reduced_from[node.output] if d >= 0}
        return all(d in axes and d not in kept for d in range(split, self.rank))

    def keep(self, value: Value, number: int, full: list[list[Line]], defined: set[Operand]) -> bool:
        """Return whether a value of an earlier pass is in memory; store it there if it is dear."""
        if value in self.write_numbers:
            return True
        if not self.is_dear(value, number, defined):
            return False
        # A line may compute it in the pass where it becomes ready.
        lines = full[self.ready[value]]
        for i, line in enumerate(lines):
            if isinstance(line, Compute) and line.result is value:
                lines.insert(i + 1, Store(self.keep_in_row(value), value))
                return True
        return False

    def is_dear(self, value: Value, number: int, defined: set[Operand]) -> bool:
        """Return whether it takes longer to compute a value again than to store and load it."""
        seen: set[Value | Access] = set()
        waiting, total = [value], 0
        while waiting:
            node = waiting.pop().node
            assert node is not None
            own = cost.op_cost(node)
            if own is None or own > cost.CHEAP or total + own > cost.CHEAP_TOGETHER:
                return True
            total += own
            for position in range(len(node.inputs)):
                source = self.source(node, position)
                if isinstance(source, Literal) or source in seen:
                    continue
                seen.add(source)
                if isinstance(source, Access):
                    total += self.read_numbers.get(source) not in defined
                elif source in self.write_numbers and self.ready[source] < number:
                    total += 1
                elif not self.is_row[source] and source not in defined:
                    waiting.append(source)
        return total > cost.CHEAP_TOGETHER

    def fill_row(self, number: int, lines: list[Line], full: list[list[Line]]) -> None:
        """Add the row-level lines that become possible before pass `number`."""
        if number > 0:
            for line in full[number - 1]:
                if isinstance(line, RowFold):
                    out = line.result
                    if out in self.loop.accumulates:
                        lines.append(Accumulate(self.write(out), line.node, out, self.start(line.node)))
                    elif out in self.write_numbers:
                        lines.append(Store(self.write_numbers[out], out))
        if self.loop.split is None:
            return
        for node in self.loop.nodes:
            out = node.output
            if not self.is_row[out] or self.ready[out] != number:
                continue
            if out in self.loop.reduced_from:
                if self.is_of_rows(node):
                    operand = self.operand(node, 0)
                    lines += [Load(operand, operand)] if isinstance(operand, int) else []
                    lines.append(Accumulate(self.write(out), node, operand, self.start(node)))
                continue
            operands = tuple([self.operand(node, i) for i in range(len(node.inputs))])
            lines += [Load(part, part) for part in operands if isinstance(part, int)]
            lines.append(Compute(out, node, operands))
            if out in self.write_numbers:
                lines.append(Store(self.write_numbers[out], out))
