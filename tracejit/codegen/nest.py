# SPDX-License-Identifier: BSD-3-Clause
"""Emission of a Nest: the text of its kernel, and the arguments of the launch.

Extents, strides and numbers are arguments, so that one kernel serves all sizes. What is in the text is
which strides are 0 or, on the innermost axis, 1: that decides what LLVM can vectorise.

Note [short inner loops]
The innermost of three loops is too short for vectors if it has 2 to 8 elements. If its extent is in the text, LLVM
unrolls it, and if the strides of the loop around it are there too, where rows lie densely, it makes vectors of several
rows, with their elements in the right places. A kernel over (1250, 16, 4) that accumulates two times (16, 4) takes
24 us so, and 49 else; with the extent alone 65. Two loops are taken several rows at a time instead (passes/tiles.py).
"""

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tracejit.codegen import lanes
from tracejit.codegen.names import SUFFIXES, literal
from tracejit.codegen.target import vector_bytes
from tracejit.ir import Node
from tracejit.ops.op import Fold as FoldEmit
from tracejit.ops.op import Scalar
from tracejit.passes.loops.nest import (
    IN_PLACE,
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
SHORT = 8  # elements of an innermost loop whose extent is in the text
NAME = "KERNEL"  # stands for the kernel's name in the text that is hashed
_DIVIDED = ("f32", "f64")
_FUSED_BYTES = 32  # CPUs with vectors of so many bytes have fused multiply-adds
_FAST_FOLDS = {
    "sum": "sum",
    "sum_add": "sum",
    "max": "max",
    "min": "min",
}  # targets define them, free to reassociate


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


def _lanes_first(walk: Walk) -> Walk:
    """Return the loops in another order: that over the rows in lanes is the outermost."""
    assert walk.split is not None
    axis = lanes.lane_axis(walk.extents, walk.split)
    order = [axis, *(i for i in range(len(walk.extents)) if i != axis)]
    return Walk(tuple([walk.extents[i] for i in order]), walk.split, tuple([walk.groups[i] for i in order]))


Argument = int | Number | Access


class Emitted(NamedTuple):
    """A kernel, and the arguments of one launch: integers, numbers, and accesses whose memory has yet to be placed.

    `origins` says from which node a name of the text comes.
    """

    kernel: Kernel
    arguments: list[Argument]
    origins: dict[str, Node]


def emit_nest(nest: Nest) -> Emitted:
    """Return the kernel of a nest and the arguments to launch it with."""
    return Emitter(nest).run()


def named(text: str, stem: str) -> Kernel:
    """Return a kernel from text in which NAME stands for its name."""
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    name = f"{stem}_{digest}"
    return Kernel(name, text.replace(NAME, name))


def expression(node: Node, operands: list[str], width: str = "") -> str:
    """Return the expression of an elementwise node, of numbers or, with a `width` such as x16, of vectors."""
    emit = node.op.emit
    assert isinstance(emit, Scalar)
    source, result = node.inputs[0].dtype, node.output.dtype
    template = emit.for_bool if emit.for_bool is not None and source.kind == "b" else emit.template
    to_result = SUFFIXES[result] + width
    text = template.format(*operands, T=SUFFIXES[source], R=to_result)
    # Numba widens small integers to 64 bits; the result has to wrap as NumPy's does.
    return f"{to_result}({text})" if _wraps(result) and node.op.name != "cast" else text


def _wraps(dtype: np.dtype) -> bool:
    return dtype.kind in "iu" and dtype != np.int64


def combine(node: Node, accumulator: str, element: str, width: str = "") -> str:
    """Return the expression that folds an element into an accumulator, both numbers or vectors of a `width`."""
    emit = node.op.emit
    assert isinstance(emit, FoldEmit)
    source, result = node.inputs[0].dtype, node.output.dtype
    to_result = SUFFIXES[result] + width
    if source != result:
        element = f"{to_result}({element})"
    if result.kind == "f" and node.op.name in _FAST_FOLDS:
        return f"fold_{_FAST_FOLDS[node.op.name]}_{SUFFIXES[result]}({accumulator}, {element})"
    text = emit.combine.format(accumulator, element, T=SUFFIXES[source], R=SUFFIXES[result])
    return f"{to_result}({text})" if _wraps(result) else text


class Emitter:
    """Writes the kernel of a nest, whose loops run as `loops` says, or else as `walk` does."""

    def __init__(self, nest: Nest, loops: Walk | None = None) -> None:
        self.nest = nest
        self.walk = walk(nest) if loops is None else loops
        self.lanes = 0  # rows side by side; see Note [short rows]
        self.kept: set[int] = set()  # writes that are in scratch memory
        if lanes.suits(nest, self.walk.extents, self.walk.split):
            self.lanes = lanes.count()
            self.walk = _lanes_first(self.walk)
            self.kept = lanes.kept(nest)
        self.width = f"x{self.lanes}" if self.lanes else ""
        self.vectors: set[str] = set()  # names of values that differ between lanes
        self.scratch: dict[str, str] = {}  # by pointer: what of its memory is kept by columns
        extents = self.walk.extents
        # See Note [short inner loops].
        self.short = extents[-1] if not self.lanes and len(extents) > 2 and 1 < extents[-1] <= SHORT else 0
        self.read_strides = [self.walk.strides(a) for a in nest.reads]
        self.write_strides = [self.walk.strides(a) for a in nest.writes]
        self.lines: list[str] = []
        self.names: dict[Operand, str] = {}  # known in the whole row
        self.pass_names: dict[Operand, str] = {}  # known in the pass that is being emitted
        self.levels: dict[str, int] = {}  # in how many loops a value is computed
        self.divisors: set[str] = set()  # what is hoisted for them
        self.numbers: dict[tuple[bytes, np.dtype], str] = {}
        self.number_arguments: list[tuple[str, Number]] = []
        self.counter = 0
        self.origins: dict[str, Node] = {}

    def run(self) -> Emitted:
        body = self.body()
        header: list[str] = []
        arguments: list[Argument] = []

        def bind(name: str, argument: Argument, read: str = "args[{}]") -> None:
            header.append(f"{INDENT}{name} = {read.format(len(arguments))}")
            arguments.append(argument)

        last = len(self.walk.extents) - 1
        self.bind_sizes(bind)
        if self.short:
            header.append(f"{INDENT}n{last} = {self.short}")
        for name, mode, scope, access, strides in self.pointers():
            bind(name, access, f"{mode}_{SUFFIXES[access.dtype]}(args[{{}}]{scope})")
            for axis, stride in enumerate(strides):
                if stride == 0 or (stride == 1 and self.is_unit(axis)):
                    continue
                if self.short and axis == last - 1 and stride in (1, self.short):
                    header.append(f"{INDENT}{name}_{axis} = {stride}")
                else:
                    bind(f"{name}_{axis}", stride)
        for name, number in self.number_arguments:
            bind(name, number, f"number_{SUFFIXES[number.dtype]}(args[{{}}])")
        header += self.scratch_lines()
        text = "\n".join([f"def {NAME}(args):", *header, *body]) + "\n"
        return Emitted(named(text, self.stem()), arguments, self.origins)

    def bind_sizes(self, bind: Callable[..., None]) -> None:
        """Bind the extents that are arguments."""
        for i, extent in enumerate(self.walk.extents[: -1 if self.short else None]):
            bind(f"n{i}", extent)

    def pointers(self) -> list[tuple[str, str, str, Access, tuple[int, ...]]]:
        """Return, for each pointer: name, "read" or "write", the end of its text, access and strides."""
        return [
            *((f"p{k}", "read", "", a, self.read_strides[k]) for k, a in enumerate(self.nest.reads)),
            *(
                (f"o{k}", "write", f", {k}", a, self.write_strides[k])
                for k, a in enumerate(self.nest.writes)
                if k not in self.kept
            ),
        ]

    def stem(self) -> str:
        names = list(dict.fromkeys(node.op.name for node in self.nest.nodes))
        lines = [line for group in (*self.nest.row, *self.nest.full) for line in group]
        if len(names) == 1 and not any(isinstance(line, Compute) for line in lines):
            # What is summed up differs, of bands or of rows, for a sum or for a product; the text does not.
            folds = [line.node.op.name for line in lines if isinstance(line, Fold | Accumulate)]
            names = [name.removesuffix("_add") for name in folds[:1]]
        if not names:
            return "copy" if self.nest.reads else "fill"
        return "_".join(names[:2] + names[-1:] if len(names) > 3 else names)

    def index(self, name: str, strides: tuple[int, ...]) -> str:
        terms = []
        for axis, stride in enumerate(strides):
            if stride == 0:
                continue
            terms.append(f"i{axis}" if stride == 1 and self.is_unit(axis) else f"i{axis} * {name}_{axis}")
        return " + ".join(terms) or "0"

    def is_unit(self, axis: int) -> bool:
        """Return whether the text says of a stride along an axis that it is 1."""
        return axis == len(self.walk.extents) - 1 or (self.lanes > 0 and axis == 0)

    def scratch_lines(self) -> list[str]:
        """Return the lines that make the scratch memory of a row in lanes."""
        accesses = {f"p{k}": access for k, access in enumerate(self.nest.reads)}
        accesses |= {f"o{k}": access for k, access in enumerate(self.nest.writes)}
        names = {f"o{k}": f"o{k}" for k in sorted(self.kept)} | self.scratch
        count = lanes.SHORT * self.lanes
        return [
            f"{INDENT}{name} = scratch_{SUFFIXES[accesses[pointer].dtype]}({count})"
            for pointer, name in names.items()
        ]

    def slot(self) -> str:
        """Return where the lanes of the current element of a row are in scratch memory."""
        split = self.walk.split or 0
        text = f"i{split}"
        for axis in range(split + 1, len(self.walk.extents)):
            text = f"({text} * n{axis} + i{axis})"
        return f"{text} * {self.lanes}"

    def kept_of(self, pointer: str) -> str:
        """Return the scratch memory for what lies at a pointer."""
        return self.scratch.setdefault(pointer, f"s{len(self.scratch)}")

    def load(self, name: str, strides: tuple[int, ...]) -> str:
        """Return the expression of what lies at a pointer: of a number, or of lanes if they differ."""
        at = self.index(name, strides)
        if not self.lanes or strides[0] == 0:
            return f"{name}[{at}]"
        if strides[0] == 1:
            return f"load_first_{self.width}({name}, {at}, count)"
        return f"gather_{self.width}({name}, {at}, {name}_0, count)"

    def store(self, name: str, strides: tuple[int, ...], value: str) -> str:
        """Return the line that stores a number or lanes at a pointer."""
        at = self.index(name, strides)
        if not self.lanes or strides[0] == 0:
            return f"{name}[{at}] = {value}"
        if strides[0] == 1:
            return f"store_first_{self.width}({name}, {at}, {value}, count)"
        return f"scatter_{self.width}({name}, {at}, {name}_0, {value}, count)"

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
        starts: dict[str, tuple[str, np.dtype]] = {}
        for line in lines:
            if isinstance(line, Fold):
                name = self.names[line.result] = self.fresh()
                self.levels[name] = split
                self.origins[name] = line.node
                starts[name] = (self.init(line.node), line.node.output.dtype)
        inner: list[str] = []
        self.emit_lines(lines, depth, inner, hoisted)
        for name, (start, dtype) in starts.items():
            rows.append(f"{name} = {self.widened(start, dtype) if name in self.vectors else start}")
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
            if self.lanes and axis == 0:
                out.append(f"{INDENT * indent}for i0 in range(0, n0, {self.lanes}):")
                out.append(f"{INDENT * (indent + 1)}count = min({self.lanes}, n0 - i0)")
            else:
                out.append(f"{INDENT * indent}for i{axis} in range(n{axis}):")
            indent += 1
        out += [INDENT * indent + line for line in inner]

    def initialise(self, out: list[str]) -> None:
        """Append loops that give memory to accumulate into its start value."""
        for lines in (*self.nest.row, *self.nest.full):
            for line in lines:
                if isinstance(line, Accumulate) and line.start != IN_PLACE:
                    strides = self.write_strides[line.write]
                    indent = 1
                    for axis, stride in enumerate(strides):
                        if stride != 0:
                            out.append(f"{INDENT * indent}for i{axis} in range(n{axis}):")
                            indent += 1
                    target = f"o{line.write}[{self.index(f'o{line.write}', strides)}]"
                    start = self.init(line.node)
                    if line.start is not None:
                        start = (
                            f"p{line.start}[{self.index(f'p{line.start}', self.read_strides[line.start])}]"
                        )
                    out.append(f"{INDENT * indent}{target} = {start}")

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
                if line.result not in self.names and line.result not in self.pass_names:
                    self.emit_load(line, depth, out, hoisted)
            elif isinstance(line, Reload):
                name = names[line.result] = self.fresh()
                out.append(f"{name} = {self.reload(line.write)}")
                self.note(name, self.lanes > 0)
            elif isinstance(line, Compute):
                operands = [self.operand(part) for part in line.operands]
                shared = self.shared_divisor(line.node, operands, depth, hoisted)
                name = names[line.result] = self.fresh()
                self.levels[name] = depth
                self.origins[name] = line.node
                differs = any(part in self.vectors for part in operands)
                out.append(
                    f"{name} = {shared or expression(line.node, operands, self.width if differs else '')}"
                )
                self.note(name, differs)
            elif isinstance(line, Store):
                self.emit_store(line, out)
            elif isinstance(line, Fold):
                name, value = self.names[line.result], self.operand(line.value)
                differs = value in self.vectors
                out.append(f"{name} = {combine(line.node, name, value, self.width if differs else '')}")
                self.note(name, differs)
            else:
                self.emit_accumulate(line, out)

    def shared_divisor(
        self, node: Node, operands: list[str], depth: int, hoisted: dict[int, list[str]]
    ) -> str | None:
        """Return the expression of a division in the innermost loop whose divisor is the same in all of it.

        None if it is something else. What is computed once goes to `hoisted` (Note [shared divisors] in
        kernels/polynomials.py).
        """
        suffix = SUFFIXES[node.output.dtype]
        is_inner = depth == len(self.walk.extents) > 0 and not (self.lanes or self.short)
        if node.op.name != "div" or suffix not in _DIVIDED or not is_inner or vector_bytes() < _FUSED_BYTES:
            return None
        over, by = operands
        level = 0 if by in self.numbers.values() else self.levels.get(by, depth)
        if level >= depth:
            return None
        scale, scaled, inverse = (f"{by}_{part}" for part in ("scale", "scaled", "inverse"))
        if by not in self.divisors:
            self.divisors.add(by)
            hoisted.setdefault(level, []).extend((
                f"{scale} = divisor_scale_{suffix}({by})",
                f"{scaled} = {by} * {scale}",
                f"{inverse} = reciprocal_{suffix}({scaled})",
            ))  # fmt: skip
        return f"divided_{suffix}({over} * {scale}, {scaled}, {inverse})"

    def note(self, name: str, differs: bool) -> None:
        """Note whether a value differs between lanes."""
        if differs:
            self.vectors.add(name)

    def widened(self, value: str, dtype: np.dtype) -> str:
        """Return the text of a value as a vector."""
        return value if value in self.vectors else f"{SUFFIXES[dtype]}{self.width}({value})"

    def emit_load(self, line: Load, depth: int, out: list[str], hoisted: dict[int, list[str]]) -> None:
        strides = self.read_strides[line.read]
        split = len(self.walk.extents) if self.walk.split is None else self.walk.split
        pointer, level = f"p{line.read}", self.depth_of(strides)
        text = self.load(pointer, strides)
        differs = self.lanes > 0 and strides[0] != 0
        keeps = ""
        if differs and level > split:
            if not any(strides[1:split]) and split > 1:
                # The same for all further rows: it is gathered before their loops.
                if pointer not in self.scratch:
                    lines = [f"store_{self.width}({self.kept_of(pointer)}, {self.slot()}, {text})"]
                    self.loops(hoisted.setdefault(1, []), range(split, depth), 0, {}, lines)
                text, level = f"load_{self.width}({self.scratch[pointer]}, {self.slot()})", depth
            elif level == depth and pointer in self.scratch:
                text = f"load_{self.width}({self.scratch[pointer]}, {self.slot()})"
            elif level == depth and self.passes_with(line) > 1:
                keeps = self.kept_of(pointer)
        name = self.fresh()
        self.levels[name] = level
        (self.names if level <= split else self.pass_names)[line.result] = name
        self.note(name, differs)
        lines = out if level == depth else hoisted.setdefault(level, [])
        lines.append(f"{name} = {text}")
        if keeps:
            lines.append(f"store_{self.width}({keeps}, {self.slot()}, {name})")

    def passes_with(self, line: Load) -> int:
        """Return how many passes over a row load the same."""
        return sum(1 for lines in self.nest.full if line in lines)

    def reload(self, write: int) -> str:
        """Return the expression of what an earlier pass stored."""
        pointer = f"o{write}"
        if not self.lanes:
            return self.load(pointer, self.write_strides[write])
        memory = pointer if write in self.kept else self.kept_of(pointer)
        return f"load_{self.width}({memory}, {self.slot()})"

    def emit_store(self, line: Store, out: list[str]) -> None:
        pointer, value = f"o{line.write}", self.operand(line.value)
        if line.write not in self.kept:
            out.append(self.store(pointer, self.write_strides[line.write], value))
        if self.lanes and lanes.is_reloaded(self.nest, line.write):
            memory = pointer if line.write in self.kept else self.kept_of(pointer)
            out.append(f"store_{self.width}({memory}, {self.slot()}, {value})")

    def emit_accumulate(self, line: Accumulate, out: list[str]) -> None:
        pointer, strides, node = f"o{line.write}", self.write_strides[line.write], line.node
        self.origins[pointer] = node
        value, width = self.operand(line.value), ""
        if self.lanes:
            value = self.widened(value, node.output.dtype)
            if strides[0] == 0:
                value = f"total_{_FAST_FOLDS[node.op.name]}({value}, count)"
            else:
                width = self.width
        folded = combine(node, self.load(pointer, strides), value, width)
        out.append(self.store(pointer, strides, folded))
