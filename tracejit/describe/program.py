# SPDX-License-Identifier: BSD-3-Clause
"""Descriptions of programs, for inspection: operations, the rows that compute them, and the memory of their values.

Note [descriptions]
Building a program needs no description: the passes note why they kept steps apart, and the emitter notes the node that
a name comes from. A description is made of these notes on demand, for which a replay builds its program again.
Operations are numbered as in the simplified graph, which is the graph that is computed. An operation that was
simplified away has no row and no number.
"""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from tracejit.aval import dtype_name
from tracejit.describe.stages import AnyLaunch, Stages
from tracejit.ir import Node, Value, Where
from tracejit.ops import Kind
from tracejit.ops.op import Pieces, Strided
from tracejit.passes.fusion.fuse import KernelStep, Loop, Step
from tracejit.passes.fusion.reasons import Apart
from tracejit.passes.loops.launches import Section, Single
from tracejit.program import Place
from tracejit.util.annotate import comment, short_names
from tracejit.util.named_tuples import NamedTuple

if TYPE_CHECKING:
    from tracejit.passes.loops.spread import SpreadLaunch

_ASSIGNED = re.compile(r"\s+(v\d+) = ")
_NAMES = re.compile(r"\b[vo]\d+\b")


class ResultValue(NamedTuple):
    """A value that an operation computes: its name, shape and dtype."""

    value: str
    shape: tuple[int, ...]
    dtype: str


class Operation(NamedTuple):
    """An operation of a program.

    number      its position in the simplified graph
    name        of the op
    inputs      names of values (in0 is an input, c0 a constant, v7 the result of operation 7), or numbers
    params      of the op, as text
    outputs     the values that it computes
    where       the user's file and line
    rows        the rows that compute it: several if it is computed again or in parts, none if it is only a view
    """

    number: int
    name: str
    inputs: tuple[str, ...]
    params: dict[str, str]
    outputs: tuple[ResultValue, ...]
    where: Where
    rows: tuple[int, ...]


class DescribedRow(NamedTuple):
    """A row of the program: its number, the operations that it computes, and its purpose if it computes none."""

    number: int
    ops: tuple[int, ...]
    purpose: str


class Pair(NamedTuple):
    """A row that writes a value, a row that reads it, and the reason why they are not one."""

    made: int
    read: int
    value: str
    why: str


class Buffer(NamedTuple):
    """Memory that holds a value.

    place       of its first byte; an input with negative strides begins before its first element
    value       its name, "" if it is not a value of the graph
    op          the operation for which it is first written, None for inputs and constants
    first, last the first and the last row that touches it
    """

    place: Place
    bytes: int
    value: str
    op: int | None
    first: int
    last: int


class Description(NamedTuple):
    """The description of a program.

    lines       kernel -> line of its text, counted from 1 -> the operation that it comes from in the kernel's first row
    left_out    the numbers of ops, rows and buffers that are not described
    """

    ops: list[Operation]
    rows: list[DescribedRow]
    pairs: list[Pair]
    buffers: list[Buffer]
    lines: dict[str, dict[int, int]]
    left_out: dict[str, int]

    def comments(self) -> dict[str, dict[int, str]]:
        """Return comments for the lines of each kernel: the operation and the user's line."""
        ops = {op.number: op for op in self.ops}
        names = short_names(dict.fromkeys(op.where[0] for op in self.ops if op.where))
        return {
            kernel: {
                line: comment(ops[number].name, ops[number].where, names)
                for line, number in lines.items()
                if number in ops
            }
            for kernel, lines in self.lines.items()
        }


def describe(stages: Stages, most: int | None = None) -> Description:
    """Return the description of a program.

    Args:
        stages: the program and its stages.
        most: the greatest number of rows, operations and pairs to describe, or None. The first row of each kernel is
            always described, and the memory that described rows touch is too.
    """
    return _Describer(stages, most).run()


class _LaunchGroup(NamedTuple):
    """Launches that do the same work on different parts, their rows, and their step, if they have one."""

    parts: "list[Single | SpreadLaunch]"
    rows: range
    step: Step | None = None

    @property
    def nodes(self) -> list[Node]:
        return self.parts[0].nodes

    @property
    def touched(self) -> list[Value]:
        return [root for part in self.parts for root in part.touched]

    @property
    def writes(self) -> list[Value]:
        return [root for part in self.parts for root in part.writes]

    @property
    def reads(self) -> list[Value]:
        return [root for part in self.parts for root in _read(part)]


class _Describer:
    def __init__(self, stages: Stages, most: int | None) -> None:
        self.graph, self.fused, self.plan, self.origins, self.program = stages
        self.launches = stages.launches
        self.most = most
        self.numbers = {node: number for number, node in enumerate(self.graph.nodes)}
        self.roots = {value: f"in{i}" for i, value in enumerate(self.graph.inputs)}
        self.roots |= {value: _constant(value, i) for i, value in enumerate(self.graph.constants)}
        self.shown = self.rows_to_show()
        self.groups = self.with_steps(list(_launch_groups(self.launches, self.shown)))

    def with_steps(self, launched: list[_LaunchGroup]) -> list[_LaunchGroup]:
        """Return launches with their steps; a copy belongs to the step that it completes, or to its first reader."""
        home, places = self.fused.home, self.plan.places
        read_by: dict[Value, Step | None] = {}
        with_steps = []
        for group in reversed(launched):
            step: Step | None
            if group.nodes:
                step = home[group.nodes[0].output]
            else:
                root = group.writes[0]
                step = home.get(root)
                if step is None and places[root].kind == "arena":
                    step = read_by.get(root)
            read_by.update(dict.fromkeys(group.reads, step))
            with_steps.append(group._replace(step=step))
        with_steps.reverse()
        return with_steps

    def run(self) -> Description:
        rows: list[DescribedRow] = []
        of_op: dict[int, list[int]] = {}
        for group in self.groups:
            ops, purpose = self.ops_of(group), self.purpose(group)
            for number in group.rows:
                if number in self.shown:
                    rows.append(DescribedRow(number, ops, purpose))
                    for op in ops:
                        of_op.setdefault(op, []).append(number)
        pairs, lives = self.pairs(), self.lives()
        first: dict[Value, _LaunchGroup] = {}
        for group in self.groups:
            for root in group.touched:
                first.setdefault(root, group)
        kernels = dict.fromkeys(self.program.rows[row.number].kernel.name for row in rows)
        lines = {name: self.lines(name) for name in kernels}
        most = self.most
        numbers = list(range(len(self.graph.nodes)))
        if most is not None:
            in_lines = sorted({op for by_line in lines.values() for op in by_line.values()})
            numbers = sorted({*self.with_views(sorted(of_op))[:most], *in_lines[:most]})
        described = Description(
            [self.operation(number, of_op.get(number, ())) for number in numbers],
            rows, pairs[:most],
            [self.buffer(root, group, *lives[root]) for root, group in first.items()],
            lines, {},
        )  # fmt: skip
        total = len(self.graph.nodes), len(self.program.rows), len(lives)
        shown = len(described.ops), len(rows), len(described.buffers)
        left = {
            name: all_of - some
            for name, all_of, some in zip(("ops", "rows", "buffers"), total, shown, strict=True)
            if all_of > some
        }
        return described._replace(left_out=left)

    def rows_to_show(self) -> set[int]:
        rows = self.program.rows
        if self.most is None or len(rows) <= self.most:
            return set(range(len(rows)))
        first: dict[str, int] = {}
        for number, row in enumerate(rows):
            first.setdefault(row.kernel.name, number)
        return {*range(self.most), *first.values()}

    def with_views(self, numbers: list[int]) -> list[int]:
        """Return the numbers of operations and of the views that they read."""
        reached = set(numbers)
        waiting = list(numbers)
        while waiting:
            for value in self.graph.nodes[waiting.pop()].inputs:
                node = self.original(value).node
                number = self.number(node)
                if number is not None and number not in reached and node and node.op.kind is Kind.MOVE:
                    reached.add(number)
                    waiting.append(number)
        return sorted(reached)

    def original(self, value: Value) -> Value:
        """Return the value of the graph for which a copy, made by a pass, stands."""
        while value in self.fused.copies:
            value = self.fused.copies[value]
        return value

    def number(self, node: Node | None) -> int | None:
        """Return the number of an operation."""
        if node is None or node in self.numbers:
            return None if node is None else self.numbers[node]
        return self.numbers.get(self.original(node.output).node)  # type: ignore[arg-type]

    def name(self, value: Value) -> str:
        """Return the name of a value, "" if it is not a value of the graph."""
        value = self.original(value)
        if value.node is None:
            return self.roots.get(value, "")
        number, outputs = self.number(value.node), value.node.outputs
        if number is None:
            return ""
        return f"v{number}" if len(outputs) == 1 else f"v{number}.{outputs.index(value)}"

    def operation(self, number: int, rows: Iterable[int]) -> Operation:
        node = self.graph.nodes[number]
        return Operation(
            number,
            node.op.name,
            tuple([self.name(value) for value in node.inputs]),
            {name: str(value) for name, value in node.params.items()},
            tuple(
                [
                    ResultValue(self.name(value), value.shape, dtype_name(value.dtype))
                    for value in node.outputs
                ]
            ),
            node.where,
            tuple(rows),
        )

    def ops_of(self, group: _LaunchGroup) -> tuple[int, ...]:
        """Return the operations that a launch computes."""
        nodes, step = group.nodes, group.step
        if not nodes and step is not None and not isinstance(step, Loop) and _is_copied(step.node):
            nodes = [step.node]
        together = [self.put_together(root) for root in group.writes]
        numbers = {self.number(node) for node in (*nodes, *together)}
        return tuple(sorted(number for number in numbers if number is not None))

    def put_together(self, root: Value) -> Node | None:
        """Return the node that assembles a root from pieces, which several launches may write."""
        step = self.fused.home.get(root)
        return step.node if isinstance(step, KernelStep) and isinstance(step.node.op.emit, Pieces) else None

    def purpose(self, group: _LaunchGroup) -> str:
        """Return the purpose of a launch that computes no operation."""
        if group.step is None:
            is_result = self.plan.places[group.writes[0]].kind == "output"
            return "copies a result" if is_result else "lays out an operand of a later row"
        if group.nodes:
            return ""
        if isinstance(group.step, Loop):
            return "repeats short rows"
        return "" if _is_copied(group.step.node) else f"lays out an operand of {group.step.node.op.name}"

    def lines(self, kernel: str) -> dict[int, int]:
        """Return the operation that each line of a kernel comes from."""
        origins = self.origins.get(kernel)
        if not origins:
            return {}
        text = next(row.kernel.text for row in self.program.rows if row.kernel.name == kernel)
        operations = {}
        for number, line in enumerate(text.splitlines(), 1):
            assigned = _ASSIGNED.match(line)
            names = [assigned[1]] if assigned else [] if "args[" in line else _NAMES.findall(line)
            origin = next((origins[name] for name in names if name in origins), None)
            op = self.number(origin)
            if op is not None:
                operations[number] = op
        return operations

    def lives(self) -> dict[Value, list[int]]:
        """Return the first and the last row that touch each root."""
        lives: dict[Value, list[int]] = {}
        row = 0
        for launch, count in self.launches:
            # Memory of a section is not reused before the section ends.
            after = row + count
            for root in launch.touched:
                if root in lives:
                    lives[root][1] = after - 1
                else:
                    lives[root] = [row, after - 1]
            row = after
        return lives

    def buffer(self, root: Value, group: _LaunchGroup, first: int, last: int) -> Buffer:
        place = self.plan.places[root]
        op = self.number(root.node)
        if op is None and place.kind in ("arena", "output"):
            ops = self.ops_of(group)
            if not ops and group.step is not None and not isinstance(group.step, Loop):
                ops = tuple(n for n in [self.number(group.step.node)] if n is not None)
            op = ops[-1] if ops else None
        low, high = self.span(root)
        place = place._replace(offset=place.offset + low)
        return Buffer(place, high - low, self.name(root), op, first, last)

    def span(self, root: Value) -> tuple[int, int]:
        """Return the bytes that a root spans, relative to its first element. (Strides of inputs may be negative.)"""
        if root.aval.size == 0:
            return 0, 0
        _, layout = self.fused.view(root)
        reach = [stride * (extent - 1) for extent, stride in zip(layout.shape, layout.strides, strict=True)]
        low, high = sum(n for n in reach if n < 0), sum(n for n in reach if n > 0)
        return low * root.dtype.itemsize, (high + 1) * root.dtype.itemsize

    def pairs(self) -> list[Pair]:
        """Return the pairs of a launch that writes a value and a launch that reads it."""
        written_by: dict[Value, _LaunchGroup] = {}
        pairs: dict[tuple[int, int], Pair] = {}
        for group in self.groups:
            for root in group.reads:
                writer = written_by.get(root)
                if writer is None or writer is group:
                    continue
                rows = writer.rows[0], group.rows[0]
                if rows not in pairs:
                    pairs[rows] = Pair(*rows, self.name(root), self.why(writer, group, root))
            written_by.update(dict.fromkeys(group.writes, group))
        return list(pairs.values())

    def why(self, writer: _LaunchGroup, reader: _LaunchGroup, root: Value) -> str:
        """Return why two launches are not one."""
        writing, reading = writer.step, reader.step
        if writing is None or reading is None:
            return Apart.OUTPUT.says()
        if writing is reading:
            return self.within(writing, writer, root)
        for step, group in ((writing, writer), (reading, reader)):
            if not isinstance(step, Loop):
                return _reason_of_call(step.node, group)
        node = self.put_together(root)
        if node is not None:
            return Apart.PIECES.says(op=node.op.name)
        assert isinstance(writing, Loop) and isinstance(reading, Loop)
        if writing.whole is not None and writing.whole is reading.whole:
            return Apart.LONG.says(count=len(writing.whole.nodes))
        reads = ((node, value) for node in reading.nodes for value in node.inputs)
        read_of_root = next((pair for pair in reads if self.fused.view(pair[1])[0] is root), None)
        if read_of_root is None:  # the partial sums with which the next loop continues
            return Apart.PARTS.says()
        return self.of_loops(writing, reading, *read_of_root, root)

    def of_loops(self, writing: Loop, reading: Loop, node: Node, value: Value, root: Value) -> str:
        base = self.fused.source(value)[0]
        words: dict[str, object] = {
            "value": self.name(root), "reader": node.op.name, "op": base.node.op.name if base.node else "",
            "made_over": _extents(writing), "read_over": _extents(reading),
        }  # fmt: skip
        if root in writing.accumulates:
            assert root.node is not None
            return Apart.FOLDED.says(op=root.node.op.name)
        if self.fused.home.get(base) is not writing:
            return Apart.SLICE.says(**words)
        target, unsunk = self.fused.unsunk.get(writing, (None, None))
        refused = self.fused.apart.get((self.original(node.output), base))
        is_target = target is not None and self.fused.home.get(target.nodes[0].output) is reading
        reason: Apart
        if refused is not None and refused in (Apart.BROADCAST, Apart.START):
            reason = refused
        elif is_target and unsunk is not None:
            reason = unsunk
        else:
            reason = refused or (Apart.FIRST if unsunk is None else Apart.OTHER_READER)
        return reason.says(**words)

    def within(self, step: Step, writer: _LaunchGroup, root: Value) -> str:
        """Return why one step is several launches."""
        if not isinstance(step, Loop):
            return Apart.OPERAND.says(op=step.node.op.name)
        if not root.shape and writer.nodes:
            return Apart.WHOLE.says()
        return (Apart.PARTS if writer.nodes else Apart.TILES).says()


def _constant(value: Value, number: int) -> str:
    """Return how a constant is named: a number by itself."""
    data: np.ndarray = value.data
    return f"c{number}" if data.size != 1 else str(data.reshape(-1)[0])


def _launch_groups(
    launches: Iterable[tuple[AnyLaunch, int]], shown: set[int] | None = None
) -> Iterator[_LaunchGroup]:
    """Return the launches with rows among `shown`; launches that are cut into parts come with the rows of all parts."""
    row = 0
    for launch, count in launches:
        tasks = launch.tasks if isinstance(launch, Section) else [[launch]]
        length = len(tasks[0])
        end = row + count
        for i in range(length):
            rows = range(row + i, end, length)
            if shown is None or not shown.isdisjoint(rows):
                yield _LaunchGroup([task[i] for task in tasks], rows)
        row = end


def _read(launch: "Single | SpreadLaunch") -> list[Value]:
    """Return the memory that a launch reads, including a sum that it adds to."""
    adds = any(node.op.name == "matmul_add" for node in launch.nodes)
    return launch.touched if adds else launch.reads


def _is_copied(node: Node) -> bool:
    """Return whether a node that is a step by itself is computed by copies."""
    return isinstance(node.op.emit, Pieces | Strided)


def _reason_of_call(node: Node, group: _LaunchGroup) -> str:
    """Return why a step of one node is apart from the launches before and after it."""
    emit = node.op.emit
    if node.op.kind is Kind.LOOP:
        reason = Apart.STEPS
    elif isinstance(emit, Strided):
        reason = Apart.COPY
    elif isinstance(emit, Pieces):
        reason = Apart.PIECES
    elif not group.nodes:
        reason = Apart.OPERAND
    else:
        reason = Apart.PRODUCT if node.op.kind is Kind.CONTRACT else Apart.KERNEL
    return reason.says(op=node.op.name)


def _extents(loop: Loop) -> str:
    return " x ".join(map(str, loop.domain)) or "one number"
