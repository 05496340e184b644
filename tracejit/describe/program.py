# SPDX-License-Identifier: BSD-3-Clause
"""What a program is made of, for who looks: its operations, what became of each, and where everything lies.

Note [descriptions]
A program is built without all this: the passes note why they kept steps apart, the emitter which node a name comes
from, and nothing more. A description is made of what they leave, when somebody asks; a replay builds anew for that.
Operations are numbered as they stand in the simplified graph: that is what is computed. What simplification has removed
is in no row, and not here.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from tracejit.aval import dtype_name
from tracejit.codegen.emit import Origins
from tracejit.ir import Graph, Node, Value, Where
from tracejit.ops import Kind
from tracejit.ops.op import Pieces, Strided
from tracejit.passes.fusion.fuse import Fused, KernelStep, Loop, Step
from tracejit.passes.fusion.reasons import Apart
from tracejit.passes.loops.launches import Launch, Section, Single
from tracejit.passes.schedule.memory import Plan
from tracejit.program import Place, Program
from tracejit.util.annotate import comment, short_names

_ASSIGNED = re.compile(r"\s+(v\d+) = ")
_NAMES = re.compile(r"\b[vo]\d+\b")


class Stages(NamedTuple):
    """A program, and what it was made of: the simplified graph, its steps, their launches, and the names in kernels."""

    graph: Graph
    fused: Fused
    plan: Plan
    origins: Origins
    program: Program


class Result(NamedTuple):
    """What an operation makes: the name of the value, its shape and dtype."""

    value: str
    shape: tuple[int, ...]
    dtype: str


class Operation(NamedTuple):
    """An operation of a program.

    number      by which others name it
    name        of the op
    inputs      names of values (in0 is an input, c0 a constant, v7 what operation 7 makes), or numbers as they are
    params      of the op, as text
    outputs     what it makes
    where       the user's file and line
    rows        that compute it, several if it is computed again or in parts; none if it is but another view of memory
    """

    number: int
    name: str
    inputs: tuple[str, ...]
    params: dict[str, str]
    outputs: tuple[Result, ...]
    where: Where
    rows: tuple[int, ...]


class Launched(NamedTuple):
    """A row of the program: its number, the operations that it computes, and what it is for if it computes none."""

    number: int
    ops: tuple[int, ...]
    purpose: str


class Pair(NamedTuple):
    """Two rows, of which one reads the `value` that the other makes, and why they are not one."""

    made: int
    read: int
    value: str
    why: str


class Buffer(NamedTuple):
    """Memory: the place of its first byte (before that of an input, if it lies backwards), the value in it ("" if none
    of the graph's), the operation for which it is written first, None for inputs and constants, and the first and last
    row that touches it."""

    place: Place
    bytes: int
    value: str
    op: int | None
    first: int
    last: int


class Description(NamedTuple):
    """What a program is made of. `lines` says of each kernel, by the number of a line of its text from 1 on, which
    operation it comes from in the first row of that kernel; `left_out` how many there are of what is not here."""

    ops: list[Operation]
    rows: list[Launched]
    pairs: list[Pair]
    buffers: list[Buffer]
    lines: dict[str, dict[int, int]]
    left_out: dict[str, int]

    def comments(self) -> dict[str, dict[int, str]]:
        """Return, for each kernel, what to write beside its lines: the user's line, and the operation."""
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
    """Return what a program is made of.

    Args:
        stages: what it was made of.
        most: the most rows, operations and pairs to describe, from the first on; and the first row of each kernel. Of
            memory there is what these rows touch.
    """
    return _Describer(stages, most).run()


class _Launched(NamedTuple):
    """Launches that do the same, each on a part, their rows, and the step that they belong to (None: none)."""

    parts: list[Single]
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
        self.most = most
        self.numbers = {node: number for number, node in enumerate(self.graph.nodes)}
        self.roots = {value: f"in{i}" for i, value in enumerate(self.graph.inputs)}
        self.roots |= {value: _constant(value, i) for i, value in enumerate(self.graph.constants)}
        self.shown = self.rows_to_show()
        self.launched = self.with_steps(list(_launched(self.plan.launches, self.shown)))

    def with_steps(self, launched: list[_Launched]) -> list[_Launched]:
        """Return launches with their steps; a copy belongs to what it makes, or else to the first that reads it."""
        home, places = self.fused.home, self.plan.places
        read_by: dict[Value, Step | None] = {}
        found = []
        for each in reversed(launched):
            step: Step | None
            if each.nodes:
                step = home[each.nodes[0].output]
            else:
                root = each.writes[0]
                step = home.get(root)
                if step is None and places[root].kind == "arena":
                    step = read_by.get(root)
            read_by.update(dict.fromkeys(each.reads, step))
            found.append(each._replace(step=step))
        found.reverse()
        return found

    def run(self) -> Description:
        rows: list[Launched] = []
        of_op: dict[int, list[int]] = {}
        for each in self.launched:
            ops, purpose = self.ops_of(each), self.purpose(each)
            for number in each.rows:
                if number in self.shown:
                    rows.append(Launched(number, ops, purpose))
                    for op in ops:
                        of_op.setdefault(op, []).append(number)
        pairs, lives = self.pairs(), self.lives()
        first: dict[Value, _Launched] = {}
        for each in self.launched:
            for root in each.touched:
                first.setdefault(root, each)
        kernels = dict.fromkeys(self.program.rows[row.number].kernel.name for row in rows)
        lines = {name: self.lines(name) for name in kernels}
        most = self.most
        numbers = list(range(len(self.graph.nodes)))
        if most is not None:
            in_lines = sorted({op for found in lines.values() for op in found.values()})
            numbers = sorted({*self.with_views(sorted(of_op))[:most], *in_lines[:most]})
        described = Description(
            [self.operation(number, of_op.get(number, ())) for number in numbers],
            rows, pairs[:most],
            [self.buffer(root, each, *lives[root]) for root, each in first.items()],
            lines, {},
        )  # fmt: skip
        total = len(self.graph.nodes), len(self.program.rows), len(lives)
        found = len(described.ops), len(rows), len(described.buffers)
        left = {
            name: all_of - some
            for name, all_of, some in zip(("ops", "rows", "buffers"), total, found, strict=True)
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
        """Return the numbers of operations, and of the views that they read."""
        found = dict.fromkeys(numbers)
        waiting = list(numbers)
        while waiting:
            for value in self.graph.nodes[waiting.pop()].inputs:
                node = self.original(value).node
                number = self.number(node)
                if number is not None and number not in found and node and node.op.kind is Kind.MOVE:
                    found[number] = None
                    waiting.append(number)
        return sorted(found)

    def original(self, value: Value) -> Value:
        """Return the value of the graph that one of the passes' copies stands for."""
        while value in self.fused.copies:
            value = self.fused.copies[value]
        return value

    def number(self, node: Node | None) -> int | None:
        """Return the number of an operation."""
        if node is None or node in self.numbers:
            return None if node is None else self.numbers[node]
        return self.numbers.get(self.original(node.output).node)  # type: ignore[arg-type]

    def name(self, value: Value) -> str:
        """Return the name of a value, "" if it is none of the graph's."""
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
            tuple([Result(self.name(value), value.shape, dtype_name(value.dtype)) for value in node.outputs]),
            node.where,
            tuple(rows),
        )

    def ops_of(self, each: _Launched) -> tuple[int, ...]:
        """Return the operations that a launch computes."""
        nodes, step = each.nodes, each.step
        if not nodes and step is not None and not isinstance(step, Loop) and _is_copied(step.node):
            nodes = [step.node]
        together = [self.put_together(root) for root in each.writes]
        found = [self.number(node) for node in (*nodes, *together)]
        return tuple(sorted({number for number in found if number is not None}))

    def put_together(self, root: Value) -> Node | None:
        """Return the node that puts a root together, of pieces that several launches may write."""
        step = self.fused.home.get(root)
        return step.node if isinstance(step, KernelStep) and isinstance(step.node.op.emit, Pieces) else None

    def purpose(self, each: _Launched) -> str:
        """Return what a launch that computes no operation is for."""
        if each.step is None:
            is_result = self.plan.places[each.writes[0]].kind == "output"
            return "copies a result" if is_result else "lays out an operand of a later row"
        if each.nodes:
            return ""
        if isinstance(each.step, Loop):
            return "repeats short rows"
        return "" if _is_copied(each.step.node) else f"lays out an operand of {each.step.node.op.name}"

    def lines(self, kernel: str) -> dict[int, int]:
        """Return the operation that each line of a kernel comes from."""
        origins = self.origins.get(kernel)
        if not origins:
            return {}
        text = next(row.kernel.text for row in self.program.rows if row.kernel.name == kernel)
        found = {}
        for number, line in enumerate(text.splitlines(), 1):
            assigned = _ASSIGNED.match(line)
            names = [assigned[1]] if assigned else [] if "args[" in line else _NAMES.findall(line)
            origin = next((origins[name] for name in names if name in origins), None)
            op = self.number(origin)
            if op is not None:
                found[number] = op
        return found

    def lives(self) -> dict[Value, list[int]]:
        """Return the first and the last row that touch each root."""
        lives: dict[Value, list[int]] = {}
        row = 0
        for launch in self.plan.launches:
            # Nothing within a section is used again before its end.
            after = row + (sum(map(len, launch.tasks)) if isinstance(launch, Section) else 1)
            for root in launch.touched:
                if root in lives:
                    lives[root][1] = after - 1
                else:
                    lives[root] = [row, after - 1]
            row = after
        return lives

    def buffer(self, root: Value, each: _Launched, first: int, last: int) -> Buffer:
        place = self.plan.places[root]
        op = self.number(root.node)
        if op is None and place.kind in ("arena", "output"):
            ops = self.ops_of(each)
            if not ops and each.step is not None and not isinstance(each.step, Loop):
                ops = tuple(n for n in [self.number(each.step.node)] if n is not None)
            op = ops[-1] if ops else None
        low, high = self.span(root)
        place = place._replace(offset=place.offset + low)
        return Buffer(place, high - low, self.name(root), op, first, last)

    def span(self, root: Value) -> tuple[int, int]:
        """Return the bytes that a root takes, from its first element: an input may lie in any direction."""
        if root.aval.size == 0:
            return 0, 0
        _, layout = self.fused.view(root)
        reach = [stride * (extent - 1) for extent, stride in zip(layout.shape, layout.strides, strict=True)]
        low, high = sum(n for n in reach if n < 0), sum(n for n in reach if n > 0)
        return low * root.dtype.itemsize, (high + 1) * root.dtype.itemsize

    def pairs(self) -> list[Pair]:
        """Return the launches of which one reads what another one made."""
        made_by: dict[Value, _Launched] = {}
        found: dict[tuple[int, int], Pair] = {}
        for each in self.launched:
            for root in each.reads:
                maker = made_by.get(root)
                if maker is None or maker is each:
                    continue
                rows = maker.rows[0], each.rows[0]
                if rows not in found:
                    found[rows] = Pair(*rows, self.name(root), self.why(maker, each, root))
            made_by.update(dict.fromkeys(each.writes, each))
        return list(found.values())

    def why(self, maker: _Launched, reader: _Launched, root: Value) -> str:
        """Return why two launches are not one."""
        made, read = maker.step, reader.step
        if made is None or read is None:
            return Apart.OUTPUT.says()
        if made is read:
            return self.within(made, maker)
        for step, each in ((made, maker), (read, reader)):
            if not isinstance(step, Loop):
                return _of_call(step.node, each)
        node = self.put_together(root)
        if node is not None:
            return Apart.PIECES.says(op=node.op.name)
        assert isinstance(made, Loop) and isinstance(read, Loop)
        if made.whole is not None and made.whole is read.whole:
            return Apart.LONG.says(count=len(made.whole.nodes))
        reads = ((node, value) for node in read.nodes for value in node.inputs)
        found = next((each for each in reads if self.fused.view(each[1])[0] is root), None)
        if found is None:  # the parts of a sum, with which another loop goes on
            return Apart.PARTS.says()
        return self.of_loops(made, read, *found, root)

    def of_loops(self, made: Loop, read: Loop, node: Node, value: Value, root: Value) -> str:
        base = self.fused.source(value)[0]
        words: dict[str, object] = {
            "value": self.name(root), "reader": node.op.name, "op": base.node.op.name if base.node else "",
            "made_over": _extents(made), "read_over": _extents(read),
        }  # fmt: skip
        if root in made.accumulates:
            assert root.node is not None
            return Apart.FOLDED.says(op=root.node.op.name)
        if self.fused.home.get(base) is not made:
            return Apart.SLICE.says(**words)
        target, unsunk = self.fused.unsunk.get(made, (None, None))
        refused = self.fused.apart.get((self.original(node.output), base))
        is_target = target is not None and self.fused.home.get(target.nodes[0].output) is read
        reason: Apart
        if refused is not None and refused in (Apart.BROADCAST, Apart.START):
            reason = refused
        elif is_target and unsunk is not None:
            reason = unsunk
        else:
            reason = refused or (Apart.FIRST if unsunk is None else Apart.OTHER_READER)
        return reason.says(**words)

    def within(self, step: Step, maker: _Launched) -> str:
        """Return why one step is several launches."""
        if not isinstance(step, Loop):
            return Apart.OPERAND.says(op=step.node.op.name)
        return (Apart.PARTS if maker.nodes else Apart.TILES).says()


def _constant(value: Value, number: int) -> str:
    """Return how a constant is named: a number by itself."""
    data: np.ndarray = value.data
    return f"c{number}" if data.size != 1 else str(data.reshape(-1)[0])


def _launched(launches: Iterable[Launch], shown: set[int] | None = None) -> Iterator[_Launched]:
    """Return the launches with rows among `shown`; those that are cut alike, with the rows of all parts."""
    row = 0
    for launch in launches:
        tasks = launch.tasks if isinstance(launch, Section) else [[launch]]
        length = len(tasks[0])
        end = row + len(tasks) * length
        for i in range(length):
            rows = range(row + i, end, length)
            if shown is None or not shown.isdisjoint(rows):
                yield _Launched([task[i] for task in tasks], rows)
        row = end


def _read(launch: Single) -> list[Value]:
    """Return the memory that a launch reads; that of a sum that it adds to counts."""
    adds = any(node.op.name == "matmul_add" for node in launch.nodes)
    return launch.touched if adds else launch.reads


def _is_copied(node: Node) -> bool:
    """Return whether a node of its own is made by copies."""
    return isinstance(node.op.emit, Pieces | Strided)


def _of_call(node: Node, each: _Launched) -> str:
    """Return why a step of one node, which is launched, is apart from what it reads and from what reads it."""
    emit = node.op.emit
    if isinstance(emit, Strided):
        reason = Apart.COPY
    elif isinstance(emit, Pieces):
        reason = Apart.PIECES
    elif not each.nodes:
        reason = Apart.OPERAND
    else:
        reason = Apart.PRODUCT if node.op.kind is Kind.CONTRACT else Apart.KERNEL
    return reason.says(op=node.op.name)


def _extents(loop: Loop) -> str:
    return " x ".join(map(str, loop.domain)) or "one number"
