# SPDX-License-Identifier: BSD-3-Clause
"""Emission of a Nest: the text of its kernel, and the arguments of the launch.

Extents, strides and numbers are arguments, so that one kernel serves all sizes. The text says only which strides are 0
or, on the innermost axis, 1, -1, 2 or -2: that decides what LLVM can vectorise.

Note [short inner loops]
The innermost of three loops is too short for vectors if it has 2 to 8 elements. If its extent is in the text, LLVM
unrolls it, and if the strides of the loop around it are there too, where rows lie densely, it makes vectors of several
rows, with their elements in the right places. A kernel over (1250, 16, 4) that accumulates two times (16, 4) takes
24 us this way, 49 us otherwise, and 65 us with the extent alone. Two loops run over several rows at a time instead
(passes/loops/tiles.py), unless each element that the outer one reads is stored several times: to repeat 10,000 elements
twice takes 1.2 us with the extent in the text, 10 us without.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from tracejit.codegen import lanes
from tracejit.codegen.expressions import FAST_FOLDS, combine, expression
from tracejit.codegen.loop_order import LoopOrder
from tracejit.codegen.names import INDENT, NAME, SUFFIXES, literal, named
from tracejit.codegen.nest_memory import NestMemory
from tracejit.codegen.target import vector_bytes
from tracejit.ir import Node
from tracejit.ops.op import Fold
from tracejit.passes.loops.nest import (
    IN_PLACE,
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
from tracejit.program import Kernel, ScalarArgument
from tracejit.util.named_tuples import NamedTuple

_DIVIDED = ("f32", "f64")
_FUSED_BYTES = 32  # CPUs with vectors of at least this size have fused multiply-adds

Argument = int | ScalarArgument | Access
Binding = tuple[str, Argument, str]  # a name, its argument, and the template of the line that binds it
Hoisted = dict[int, list[str]]  # lines by the number of the loop that they stand before


class Emitted(NamedTuple):
    """A kernel, and the arguments of one launch: integers, numbers, and accesses whose memory has yet to be placed.

    `origins` maps names in the text to the nodes that they come from.
    """

    kernel: Kernel
    arguments: list[Argument]
    origins: dict[str, Node]


class Frame:
    """The part of a kernel around the lines of a nest: here, one loop for each loop of its order.

    prefix      of the kernel's name
    computed    expressions of reads that are not in memory, by pointer
    """

    prefix = ""
    computed: Mapping[str, str] = MappingProxyType({})

    def __init__(self, order: LoopOrder) -> None:
        self.order = order

    def sizes(self) -> list[Binding]:
        """Return the sizes that are arguments."""
        extents = self.order.extents[: -1 if self.order.short else None]
        return [(f"n{axis}", extent, "args[{}]") for axis, extent in enumerate(extents)]

    def scratch_lines(self) -> list[str]:
        """Return the lines that allocate memory."""
        return []

    def loops(self, hoisted: Hoisted, rows: list[str]) -> list[str]:
        """Return the loops around the lines of rows."""
        return loop_lines(self.order, range(self.order.row_depth), 1, hoisted, rows)


def emit_in_frame(nest: Nest, order: LoopOrder, frame: Frame) -> Emitted:
    """Return the kernel of a nest whose loops `frame` writes, and its arguments."""
    return NestEmitter(nest, order, frame).run()


def loop_lines(
    order: LoopOrder, axes: range, indent: int, hoisted: Mapping[int, list[str]], inner: list[str]
) -> list[str]:
    """Return loops over `axes` around `inner`; hoisted[k] stands just outside of loop k."""
    lines: list[str] = []
    for axis in axes:
        lines += [INDENT * indent + line for line in hoisted.get(axis, ())]
        if order.lanes and axis == 0:
            lines.append(f"{INDENT * indent}for i0 in range(0, n0, {order.lanes}):")
            lines.append(f"{INDENT * (indent + 1)}count = min({order.lanes}, n0 - i0)")
        else:
            lines.append(f"{INDENT * indent}for i{axis} in range(n{axis}):")
        indent += 1
    return lines + [INDENT * indent + line for line in inner]


class Values:
    """The names of values in the text.

    in_row      names that are defined in the whole row, by operand
    in_pass     names that are defined in the pass that is being emitted
    levels      in how many loops a name is defined
    vectors     names whose values differ between lanes
    origins     the nodes that names come from
    """

    def __init__(self) -> None:
        self.in_row: dict[Operand, str] = {}
        self.in_pass: dict[Operand, str] = {}
        self.levels: dict[str, int] = {}
        self.vectors: set[str] = set()
        self.origins: dict[str, Node] = {}
        self._count = 0

    def fresh(self) -> str:
        name = f"v{self._count}"
        self._count += 1
        return name

    def __contains__(self, operand: Operand) -> bool:
        return operand in self.in_row or operand in self.in_pass

    def __getitem__(self, operand: Operand) -> str:
        name = self.in_pass.get(operand)
        return self.in_row[operand] if name is None else name


class _Numbers:
    """The numbers in the text: literals, or arguments of the kernel."""

    def __init__(self) -> None:
        self.arguments: list[tuple[str, ScalarArgument]] = []
        self._names: dict[tuple[bytes, np.dtype], str] = {}

    def text(self, value: Any, dtype: np.dtype) -> str:
        """Return a number as a literal, or the name of its argument."""
        text = literal(value, dtype)
        if text is not None:
            return text
        data = np.asarray(value, dtype)
        key = (data.tobytes(), dtype)
        name = self._names.get(key)
        if name is None:
            name = self._names[key] = f"c{len(self._names)}"
            self.arguments.append((name, ScalarArgument(data[()], dtype)))
        return name

    def __contains__(self, name: str) -> bool:
        return name in self._names.values()


class NestEmitter:
    """The writer of the kernel of a nest: lines of its rows and passes, inside the loops of a frame."""

    def __init__(self, nest: Nest, order: LoopOrder, frame: Frame) -> None:
        self.nest = nest
        self.order = order
        self.frame = frame
        self.memory = NestMemory(nest, order, frame.computed)
        self.values = Values()
        self.numbers = _Numbers()
        self.divisors: set[str] = set()  # names whose reciprocals are hoisted

    def run(self) -> Emitted:
        body = self.body()
        header: list[str] = []
        arguments: list[Argument] = []

        def bind(name: str, argument: Argument, template: str = "args[{}]") -> None:
            header.append(f"{INDENT}{name} = {template.format(len(arguments))}")
            arguments.append(argument)

        short, last = self.order.short, self.order.depth - 1
        for name, argument, template in self.header_sizes():
            bind(name, argument, template)
        if short:
            header.append(f"{INDENT}n{last} = {short}")
        for name, template, access, strides in self.memory.pointers():
            bind(name, access, template)
            for axis, stride in enumerate(strides):
                if stride == 0 or self.memory.known_stride(name, axis, stride):
                    continue
                if short and axis == last - 1 and stride in (1, short):
                    header.append(f"{INDENT}{name}_{axis} = {stride}")
                else:
                    bind(f"{name}_{axis}", stride)
        for name, number in self.numbers.arguments:
            bind(name, number, f"number_{SUFFIXES[number.dtype]}(args[{{}}])")
        header += self.frame.scratch_lines()
        header += self.memory.scratch_lines()
        text = "\n".join([f"def {NAME}(args):", *header, *body]) + "\n"
        return Emitted(named(text, self.frame.prefix + stem(self.nest)), arguments, self.values.origins)

    def header_sizes(self) -> list[Binding]:
        """Return the sizes that are arguments."""
        return self.frame.sizes()

    def body(self) -> list[str]:
        """Return the lines of the kernel behind its header."""
        start = self.start_lines()
        hoisted: Hoisted = {}
        rows: list[str] = []
        for number, lines in enumerate(self.nest.row):
            self.emit_lines(lines, self.order.row_depth, rows, hoisted)
            if number < len(self.nest.full):
                self.emit_pass(self.nest.full[number], rows, hoisted)
        return start + self.frame.loops(hoisted, rows)

    def start_lines(self) -> list[str]:
        """Return loops that give memory to accumulate into its start value."""
        lines: list[str] = []
        memory = self.memory
        for line in self.nest.lines:
            if not isinstance(line, Accumulate) or line.start == IN_PLACE:
                continue
            strides = memory.write_strides[line.write]
            indent = 1
            for axis, stride in enumerate(strides):
                if stride != 0:
                    lines.append(f"{INDENT * indent}for i{axis} in range(n{axis}):")
                    indent += 1
            target = "{}[{}]".format(*memory.at(f"o{line.write}", strides))
            start = self.initial(line.node)
            if line.start is not None:
                start = "{}[{}]".format(*memory.at(f"p{line.start}", memory.read_strides[line.start]))
            lines.append(f"{INDENT * indent}{target} = {start}")
        return lines

    def emit_pass(self, lines: list[Line], rows: list[str], hoisted: Hoisted) -> None:
        """Append to `rows` the loops of one pass over the axes after the split."""
        depth, split, values = self.order.depth, self.order.row_depth, self.values
        starts: dict[str, tuple[Node, str]] = {}
        for line in lines:
            if isinstance(line, RowFold):
                name = values.in_row[line.result] = values.fresh()
                values.levels[name] = split
                values.origins[name] = line.node
                starts[name] = line.node, self.initial(line.node)
        inner: list[str] = []
        self.emit_lines(lines, depth, inner, hoisted)
        for name, (node, start) in starts.items():
            rows.append(self.start_line(name, node, start))
        if split == depth or not inner:
            rows += inner
            return
        rows += hoisted.pop(split, [])
        within = {level: hoisted.pop(level) for level in range(split + 1, depth) if level in hoisted}
        rows += self.pass_loops(lines, within, inner)
        values.in_pass.clear()  # the next pass loads and computes anew

    def start_line(self, name: str, node: Node, start: str) -> str:
        """Return the line before the loops of a pass that gives a fold its initial number."""
        differs = name in self.values.vectors
        return f"{name} = {self.widened(start, node.output.dtype) if differs else start}"

    def pass_loops(self, lines: list[Line], within: Hoisted, inner: list[str]) -> list[str]:
        """Return the loops of one pass around the text of its lines; within[k] stands just outside of loop k."""
        return loop_lines(self.order, range(self.order.row_depth, self.order.depth), 0, within, inner)

    def initial(self, node: Node) -> str:
        """Return the text of the number that a fold starts with."""
        emit = node.op.emit
        assert isinstance(emit, Fold)
        dtype = node.output.dtype
        return self.numbers.text(emit.init(dtype), dtype)

    def operand(self, operand: Operand) -> str:
        if isinstance(operand, Literal):
            return self.numbers.text(operand.number, operand.dtype)
        return self.values[operand]

    def width_for(self, differs: bool) -> str:
        """Return the width of an op's result: that of lanes if they differ, "" for a number."""
        return self.memory.width if differs else ""

    def widened(self, value: str, dtype: np.dtype) -> str:
        """Return the text of a value as a vector."""
        return value if value in self.values.vectors else f"{SUFFIXES[dtype]}{self.memory.width}({value})"

    def emit_lines(self, lines: list[Line], depth: int, out: list[str], hoisted: Hoisted) -> None:
        """Append the text of lines inside `depth` loops; loads that can stand further out go to `hoisted`."""
        for line in lines:
            if isinstance(line, Load):
                if line.result not in self.values:
                    self.emit_load(line, depth, out, hoisted)
            elif isinstance(line, Reload):
                self.emit_reload(line, depth, out)
            elif isinstance(line, Compute):
                self.emit_compute(line, depth, out, hoisted)
            elif isinstance(line, Store):
                self.emit_store(line, out)
            elif isinstance(line, RowFold):
                self.emit_fold(line, out)
            else:
                self.emit_accumulate(line, out)

    def define(self, result: Operand, in_row: bool, differs: bool) -> str:
        """Return a new name for a result."""
        values = self.values
        name = values.fresh()
        (values.in_row if in_row else values.in_pass)[result] = name
        if differs:
            values.vectors.add(name)
        return name

    def emit_load(self, line: Load, depth: int, out: list[str], hoisted: Hoisted) -> None:
        memory, split = self.memory, self.order.row_depth
        strides = memory.read_strides[line.read]
        pointer = f"p{line.read}"
        # The deepest loop along which the element moves.
        level = max([axis + 1 for axis, stride in enumerate(strides) if stride != 0], default=0)
        text = memory.load(pointer, strides)
        differs = memory.differs(strides)
        scratch = ""
        if differs and level > split:
            if not any(strides[1:split]) and split > 1:
                # The same for all further rows: it is gathered before their loops.
                if pointer not in memory.scratch:
                    gather = [memory.store_scratch(memory.scratch_of(pointer), text)]
                    before = hoisted.setdefault(1, [])
                    before += loop_lines(self.order, range(split, depth), 0, {}, gather)
                text, level = memory.load_scratch(memory.scratch[pointer]), depth
            elif level == depth and pointer in memory.scratch:
                text = memory.load_scratch(memory.scratch[pointer])
            elif level == depth and sum(1 for lines in self.nest.full if line in lines) > 1:
                scratch = memory.scratch_of(pointer)  # for later passes
        name = self.define(line.result, level <= split, differs)
        self.values.levels[name] = level
        lines = out if level == depth else hoisted.setdefault(level, [])
        lines.append(f"{name} = {text}")
        if scratch:
            lines.append(memory.store_scratch(scratch, name))

    def emit_reload(self, line: Reload, depth: int, out: list[str]) -> None:
        memory = self.memory
        if self.order.lanes:
            text = memory.load_scratch(memory.scratch_of_write(line.write))
        else:
            text = memory.load(f"o{line.write}", memory.write_strides[line.write])
        name = self.define(line.result, depth <= self.order.row_depth, self.order.lanes > 0)
        out.append(f"{name} = {text}")

    def emit_compute(self, line: Compute, depth: int, out: list[str], hoisted: Hoisted) -> None:
        operands = [self.operand(part) for part in line.operands]
        differs = any(part in self.values.vectors for part in operands)
        text = self.shared_division(line.node, operands, depth, hoisted)
        if text is None:
            text = expression(line.node, operands, self.width_for(differs))
        name = self.define(line.result, depth <= self.order.row_depth, differs)
        self.values.levels[name] = depth
        self.values.origins[name] = line.node
        out.append(f"{name} = {text}")

    def shared_division(self, node: Node, operands: list[str], depth: int, hoisted: Hoisted) -> str | None:
        """Return the expression of a division in the innermost loop whose divisor is the same in all of it.

        None for any other node. What is computed once goes to `hoisted` (Note [shared divisors] in
        kernels/intrinsics/polynomials.py).
        """
        suffix = SUFFIXES[node.output.dtype]
        is_inner = depth == self.order.depth > 0 and not (self.order.lanes or self.order.short)
        if node.op.name != "div" or suffix not in _DIVIDED or not is_inner or vector_bytes() < _FUSED_BYTES:
            return None
        dividend, divisor = operands
        level = 0 if divisor in self.numbers else self.values.levels.get(divisor, depth)
        if level >= depth:
            return None
        scale, scaled, inverse = (f"{divisor}_{part}" for part in ("scale", "scaled", "inverse"))
        if divisor not in self.divisors:
            self.divisors.add(divisor)
            hoisted.setdefault(level, []).extend((
                f"{scale} = divisor_scale_{suffix}({divisor})",
                f"{scaled} = {divisor} * {scale}",
                f"{inverse} = reciprocal_{suffix}({scaled})",
            ))  # fmt: skip
        return f"divided_{suffix}({dividend} * {scale}, {scaled}, {inverse})"

    def emit_store(self, line: Store, out: list[str]) -> None:
        memory, value = self.memory, self.operand(line.value)
        if line.write not in memory.kept:
            out.append(memory.store(f"o{line.write}", memory.write_strides[line.write], value))
        if self.order.lanes and lanes.is_reloaded(self.nest, line.write):
            out.append(memory.store_scratch(memory.scratch_of_write(line.write), value))

    def emit_fold(self, line: RowFold, out: list[str]) -> None:
        name, value = self.values.in_row[line.result], self.operand(line.value)
        differs = value in self.values.vectors
        out.append(f"{name} = {combine(line.node, name, value, self.width_for(differs))}")
        if differs:
            self.values.vectors.add(name)

    def emit_accumulate(self, line: Accumulate, out: list[str]) -> None:
        memory, node, pointer = self.memory, line.node, f"o{line.write}"
        strides = memory.write_strides[line.write]
        self.values.origins[pointer] = node
        value = self.operand(line.value)
        if self.order.lanes:
            value = self.widened(value, node.output.dtype)
            if not memory.differs(strides):
                value = f"total_{FAST_FOLDS[node.op.name]}({value}, count)"
        total = combine(node, memory.load(pointer, strides), value, self.width_for(memory.differs(strides)))
        out.append(memory.store(pointer, strides, total))


def stem(nest: Nest) -> str:
    """Return the beginning of the kernel's name: the names of up to three ops."""
    names = list(dict.fromkeys(node.op.name.replace(".", "_") for node in nest.nodes))
    if len(names) == 1 and not any(isinstance(line, Compute) for line in nest.lines):
        # The sums of bands or of rows may stand for a sum or for a product; the text is the same.
        folds = [line.node.op.name for line in nest.lines if isinstance(line, RowFold | Accumulate)]
        names = [name.removesuffix("_add") for name in folds[:1]]
    if not names:
        return "copy" if nest.reads else "fill"
    return "_".join(names[:2] + names[-1:] if len(names) > 3 else names)
