# SPDX-License-Identifier: BSD-3-Clause
"""Emission of a Nest: the text of its kernel, and the arguments of the launch.

Extents, strides and numbers are arguments, so that one kernel serves all sizes. What is in the text is
which strides are 0 or, on the innermost axis, 1: that decides what LLVM can vectorise.
"""

import hashlib
from typing import Any, NamedTuple

import numpy as np

from tracejit.codegen.names import SUFFIXES, literal
from tracejit.ir import Node
from tracejit.ops.op import Fold as FoldEmit
from tracejit.ops.op import Scalar
from tracejit.passes.lower import (
    Access,
    Accumulate,
    Compute,
    Fold,
    Line,
    Literal,
    Load,
    Nest,
    Operand,
    Reload,
    Store,
)
from tracejit.program import Kernel, Number

INDENT = "    "
NAME = "KERNEL"  # stands for the kernel's name in the text that is hashed
_FAST_FOLDS = frozenset({"sum", "max", "min"})  # float folds that targets define, free to reassociate


class Walk(NamedTuple):
    """How the loops of a nest run after neighbouring axes were joined: the same for all accesses."""

    extents: tuple[int, ...]
    split: int | None
    groups: tuple[tuple[int, ...], ...]  # for each loop, the domain axes it runs over, outermost first

    def strides(self, access: Access) -> tuple[int, ...]:
        return tuple([access.strides[group[-1]] for group in self.groups])


def walk(nest: Nest) -> Walk:
    """Return the loops of a nest: axes that lie in all memory as one axis are joined."""
    accesses = [*nest.reads, *nest.writes]
    extents = nest.extents
    order = list(range(len(extents)))
    if nest.split is None:
        order = _innermost_last(order, accesses)
    groups: list[list[int]] = []
    for position, axis in enumerate(order):
        if groups and position != nest.split:
            before = groups[-1][-1]
            if all(a.strides[before] == a.strides[axis] * extents[axis] for a in accesses):
                groups[-1].append(axis)
                continue
        groups.append([axis])
    split = None
    if nest.split is not None:
        split = sum(1 for group in groups if group[-1] < nest.split)
    sizes = tuple([int(np.prod([extents[a] for a in group], dtype=np.int64)) for group in groups])
    return Walk(sizes, split, tuple(tuple(group) for group in groups))


def _innermost_last(order: list[int], accesses: list[Access]) -> list[int]:
    """Return the axes with the one that most accesses walk with stride 1 last."""
    if len(order) < 2:
        return order
    units = [sum(1 for a in accesses if a.strides[axis] == 1) for axis in order]
    best = max(order, key=lambda axis: (units[axis], axis))
    return [axis for axis in order if axis != best] + [best]


class Emitted(NamedTuple):
    """A kernel, and the arguments of one launch: integers, numbers, and accesses whose memory has yet to be placed."""

    kernel: Kernel
    arguments: list[int | Number | Access]


def emit_nest(nest: Nest) -> Emitted:
    """Return the kernel of a nest and the arguments to launch it with."""
    return _Emitter(nest).run()


def named(text: str, stem: str) -> Kernel:
    """Return a kernel from text in which NAME stands for its name."""
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    name = f"{stem}_{digest}"
    return Kernel(name, text.replace(NAME, name))


def expression(node: Node, operands: list[str]) -> str:
    """Return the scalar expression of an elementwise node."""
    emit = node.op.emit
    assert isinstance(emit, Scalar)
    source, result = node.inputs[0].dtype, node.output.dtype
    template = emit.for_bool if emit.for_bool is not None and source.kind == "b" else emit.template
    text = template.format(*operands, T=SUFFIXES[source], R=SUFFIXES[result])
    # Numba widens small integers to 64 bits; the result has to wrap as NumPy's does.
    return f"{SUFFIXES[result]}({text})" if _wraps(result) and node.op.name != "cast" else text


def _wraps(dtype: np.dtype) -> bool:
    return dtype.kind in "iu" and dtype != np.int64


def combine(node: Node, accumulator: str, element: str) -> str:
    """Return the expression that folds an element into an accumulator."""
    emit = node.op.emit
    assert isinstance(emit, FoldEmit)
    source, result = node.inputs[0].dtype, node.output.dtype
    if source != result:
        element = f"{SUFFIXES[result]}({element})"
    if result.kind == "f" and node.op.name in _FAST_FOLDS:
        return f"fold_{node.op.name}_{SUFFIXES[result]}({accumulator}, {element})"
    text = emit.combine.format(accumulator, element, T=SUFFIXES[source], R=SUFFIXES[result])
    return f"{SUFFIXES[result]}({text})" if _wraps(result) else text


class _Emitter:
    def __init__(self, nest: Nest) -> None:
        self.nest = nest
        self.walk = walk(nest)
        self.read_strides = [self.walk.strides(a) for a in nest.reads]
        self.write_strides = [self.walk.strides(a) for a in nest.writes]
        self.lines: list[str] = []
        self.names: dict[Operand, str] = {}  # known in the whole row
        self.pass_names: dict[Operand, str] = {}  # known in the pass that is being emitted
        self.numbers: dict[tuple[bytes, np.dtype], str] = {}
        self.number_arguments: list[tuple[str, Number]] = []
        self.counter = 0

    def run(self) -> Emitted:
        body = self.body()
        header: list[str] = []
        arguments: list[int | Number | Access] = []

        def bind(name: str, argument: int | Number | Access, read: str = "args[{}]") -> None:
            header.append(f"{INDENT}{name} = {read.format(len(arguments))}")
            arguments.append(argument)

        depth = len(self.walk.extents)
        for i, extent in enumerate(self.walk.extents):
            bind(f"n{i}", extent)
        pointers = [
            *((f"p{k}", "read", "", a, self.read_strides[k]) for k, a in enumerate(self.nest.reads)),
            *((f"o{k}", "write", f", {k}", a, self.write_strides[k]) for k, a in enumerate(self.nest.writes)),
        ]
        for name, mode, scope, access, strides in pointers:
            bind(name, access, f"{mode}_{SUFFIXES[access.dtype]}(args[{{}}]{scope})")
            for axis, stride in enumerate(strides):
                if stride not in (0, 1) or (stride == 1 and axis != depth - 1):
                    bind(f"{name}_{axis}", stride)
        for name, number in self.number_arguments:
            bind(name, number, f"number_{SUFFIXES[number.dtype]}(args[{{}}])")
        text = "\n".join([f"def {NAME}(args):", *header, *body]) + "\n"
        return Emitted(named(text, self.stem()), arguments)

    def stem(self) -> str:
        names = list(dict.fromkeys(node.op.name for node in self.nest.nodes))
        if not names:
            return "copy" if self.nest.reads else "fill"
        return "_".join(names[:2] + names[-1:] if len(names) > 3 else names)

    def index(self, name: str, strides: tuple[int, ...]) -> str:
        terms = []
        last = len(strides) - 1
        for axis, stride in enumerate(strides):
            if stride == 0:
                continue
            terms.append(f"i{axis}" if stride == 1 and axis == last else f"i{axis} * {name}_{axis}")
        return " + ".join(terms) or "0"

    def fresh(self) -> str:
        name = f"v{self.counter}"
        self.counter += 1
        return name

    def depth_of(self, strides: tuple[int, ...]) -> int:
        """Return in how many loops an access must stand: the deepest axis along which it moves."""
        return max([axis + 1 for axis, stride in enumerate(strides) if stride != 0], default=0)

    def body(self) -> list[str]:
        out: list[str] = []
        self.initialise(out)
        depth = len(self.walk.extents)
        split = depth if self.walk.split is None else self.walk.split
        hoisted: dict[int, list[str]] = {}
        rows: list[str] = []
        for number, lines in enumerate(self.nest.row):
            self.emit_lines(lines, split, rows, hoisted)
            if number == len(self.nest.full):
                break
            self.emit_pass(self.nest.full[number], rows, hoisted)
        self.loops(out, range(split), 1, hoisted, rows)
        return out

    def emit_pass(self, lines: list[Line], rows: list[str], hoisted: dict[int, list[str]]) -> None:
        """Append to `rows` the loops of one pass over the axes after the split."""
        depth = len(self.walk.extents)
        split = depth if self.walk.split is None else self.walk.split
        for line in lines:
            if isinstance(line, Fold):
                self.names[line.result] = self.fresh()
                rows.append(f"{self.names[line.result]} = {self.init(line.node)}")
        inner: list[str] = []
        self.emit_lines(lines, depth, inner, hoisted)
        if split == depth or not inner:
            rows += inner
            return
        rows += hoisted.pop(split, [])
        within = {level: hoisted.pop(level) for level in range(split + 1, depth) if level in hoisted}
        self.loops(rows, range(split, depth), 0, within, inner)
        self.pass_names.clear()  # the next pass loads and computes anew

    def loops(
        self, out: list[str], axes: range, indent: int, hoisted: dict[int, list[str]], inner: list[str]
    ) -> None:
        """Append loops over `axes` around `inner`; hoisted[k] stands just outside of loop k."""
        for axis in axes:
            out += [INDENT * indent + line for line in hoisted.get(axis, ())]
            out.append(f"{INDENT * indent}for i{axis} in range(n{axis}):")
            indent += 1
        out += [INDENT * indent + line for line in inner]

    def initialise(self, out: list[str]) -> None:
        """Append loops that give memory to accumulate into its start value."""
        for lines in (*self.nest.row, *self.nest.full):
            for line in lines:
                if isinstance(line, Accumulate):
                    strides = self.write_strides[line.write]
                    indent = 1
                    for axis, stride in enumerate(strides):
                        if stride != 0:
                            out.append(f"{INDENT * indent}for i{axis} in range(n{axis}):")
                            indent += 1
                    target = f"o{line.write}[{self.index(f'o{line.write}', strides)}]"
                    out.append(f"{INDENT * indent}{target} = {self.init(line.node)}")

    def init(self, node: Node) -> str:
        emit = node.op.emit
        assert isinstance(emit, FoldEmit)
        dtype = node.output.dtype
        return self.number(emit.init(dtype), dtype)

    def number(self, value: Any, dtype: np.dtype) -> str:
        text = literal(value, dtype)
        if text is not None:
            return text
        data = np.asarray(value, dtype)
        key = (data.tobytes(), dtype)
        name = self.numbers.get(key)
        if name is None:
            name = self.numbers[key] = f"c{len(self.numbers)}"
            self.number_arguments.append((name, Number(data[()], dtype)))
        return name

    def operand(self, operand: Operand) -> str:
        if isinstance(operand, Literal):
            return self.number(operand.number, operand.dtype)
        name = self.pass_names.get(operand)
        return self.names[operand] if name is None else name

    def emit_lines(
        self, lines: list[Line], depth: int, out: list[str], hoisted: dict[int, list[str]]
    ) -> None:
        """Append the text of lines inside `depth` loops; loads that can stand further out go to `hoisted`."""
        split = len(self.walk.extents) if self.walk.split is None else self.walk.split
        names = self.names if depth <= split else self.pass_names
        for line in lines:
            if isinstance(line, Load):
                if line.result in self.names or line.result in self.pass_names:
                    continue
                strides = self.read_strides[line.read]
                level = self.depth_of(strides)
                scope = self.names if level <= split else self.pass_names
                name = scope[line.result] = self.fresh()
                text = f"{name} = p{line.read}[{self.index(f'p{line.read}', strides)}]"
                (out if level == depth else hoisted.setdefault(level, [])).append(text)
            elif isinstance(line, Reload):
                name = names[line.result] = self.fresh()
                out.append(f"{name} = {self.target(line.write)}")
            elif isinstance(line, Compute):
                operands = [self.operand(part) for part in line.operands]
                name = names[line.result] = self.fresh()
                out.append(f"{name} = {expression(line.node, operands)}")
            elif isinstance(line, Store):
                out.append(f"{self.target(line.write)} = {self.operand(line.value)}")
            elif isinstance(line, Fold):
                name = self.names[line.result]
                out.append(f"{name} = {combine(line.node, name, self.operand(line.value))}")
            else:
                target = self.target(line.write)
                out.append(f"{target} = {combine(line.node, target, self.operand(line.value))}")

    def target(self, write: int) -> str:
        return f"o{write}[{self.index(f'o{write}', self.write_strides[write])}]"
