# SPDX-License-Identifier: BSD-3-Clause
"""Emission of rows whose elements a group of threads keeps in registers.

Note [rows in registers]
A row of 1024 elements has 32 for each thread of a group. They are loaded once, as up to eight vectors of four
neighbours, and passes over the row follow each other without loops: later passes use what earlier ones have loaded or
computed. So the text fixes the number of vectors, a power of two. Where a row does not fill them, a thread loads its
own first elements again, which are neither folded nor stored. Sums over rows are kept in registers from row to row, and
stored at the end.

A result may lie in the memory of what a row is computed from. So no thread loads what another one stores: nothing
orders the two. If a row, or a piece of it, may have no elements at all for some threads, these load nothing; where no
thread waits for another one in a row, they leave out the rows.

On an H100, 65536 rows of 1024 float32, softmax moved 1220 GB/s with a loop for each pass; the same GPU copied memory at
2954 GB/s.
"""

import numpy as np

from tracejit.codegen.device.nest import DeviceEmitter, ThreadLoop, ThreadMemory, are_vectors
from tracejit.codegen.expressions import FAST_FOLDS, combine
from tracejit.codegen.loop_order import LoopOrder, joined
from tracejit.codegen.names import INDENT
from tracejit.codegen.nest import Binding, Emitted, Hoisted
from tracejit.ir import Node
from tracejit.passes.loops.kept_values import GROUP, WIDE
from tracejit.passes.loops.nest import (
    Accumulate,
    Compute,
    Line,
    Load,
    Operand,
    Reload,
    RowFold,
    Store,
)
from tracejit.passes.loops.spread import BY_GROUP, FOLDED, Spread
from tracejit.passes.loops.vector_forms import has_vector_form


def emit_kept_rows(spread: Spread) -> Emitted:
    """Return the kernel of rows that are kept in registers, and the arguments of its launch."""
    return KeptRowEmitter(spread, joined(spread.nest)).run()


def _is_wide(spread: Spread, order: LoopOrder) -> bool:
    """Return whether the rows are whole vectors of WIDE neighbours in all memory."""
    return order.extents[-1] % WIDE == 0 and are_vectors(spread.nest, order, _has_vector_form)


def _has_vector_form(line: Line) -> bool:
    if isinstance(line, RowFold):
        return line.node.op.name in FAST_FOLDS and line.node.output.dtype.kind == "f"
    return has_vector_form(line)


class KeptMemory(ThreadMemory):
    """The memory of rows in chunks, one element or vector for each thread of a group."""

    def __init__(self, spread: Spread, order: LoopOrder, is_wide: bool) -> None:
        super().__init__(spread, order, is_wide)
        self.kept = set(spread.kept or ())
        self.chunk = 0

    def counter(self, axis: int) -> str:
        return f"at{self.chunk}" if axis == self.order.depth - 1 else super().counter(axis)

    def scratch_lines(self) -> list[str]:
        return []


class KeptRowEmitter(DeviceEmitter):
    """Writes the passes over a row chunk by chunk (Note [rows in registers])."""

    memory: KeptMemory

    def __init__(self, spread: Spread, order: LoopOrder) -> None:
        super().__init__(spread, order)
        is_wide = _is_wide(spread, order)
        self.width = WIDE if is_wide else 1
        self.memory = KeptMemory(spread, order, is_wide)
        self.chunks = self.chunk_count()
        self.of_chunk: list[dict[Operand, str]] = [{} for _ in range(self.chunks)]
        self.stored: list[dict[int, str]] = [{} for _ in range(self.chunks)]
        self.stored_of_row: dict[int, str] = {}
        self.of_columns: dict[
            str, tuple[Accumulate, int]
        ] = {}  # sums over rows in registers, with their chunk

    def chunk_count(self) -> int:
        """Return how many elements or vectors a thread has at a time."""
        n, step = min(self.order.extents[-1], self.spread.piece), GROUP * self.width
        return 1 << (-(-n // step) - 1).bit_length()

    def header_sizes(self) -> list[Binding]:
        kept = {f"o{write}_size" for write in self.memory.kept}
        sizes = [binding for binding in super().header_sizes() if binding[0] not in kept]
        pieces = self.spread.pieces
        return [*sizes, ("pieces", pieces, "index(args[{}])")] if pieces > 1 else sizes

    def row_loop(self) -> ThreadLoop:
        if self.spread.pieces == 1:
            return super().row_loop()
        return ThreadLoop(self.rows, "row", "quotient(group(), pieces)", "quotient(groups(), pieces)")

    def body(self) -> list[str]:
        rows = self.row_loop().lines(self.of_one())
        if self.may_be_without_elements() and not self.folds_rows():
            rows = self.inside(0, rows)
        lines = [*self.places(), *self.copies(), *self.first_totals(), *rows, *self.last_totals()]
        return [INDENT + line for line in lines]

    def places(self) -> list[str]:
        """Return the lines that say where the chunks of this thread lie, and whether they are in the row."""
        times = f" * {WIDE}" if self.width > 1 else ""
        lines = [f"column = index({self.team.member}{times})"]
        if self.spread.pieces > 1:
            lines.append(f"column = index(column + remainder(group(), pieces) * {self.spread.piece})")
        return lines + self.chunk_places()

    def chunk_places(self) -> list[str]:
        """Return the lines that say where the chunks from `column` on lie, and whether they are in the row."""
        n, lines = f"n{self.order.depth - 1}", []
        for chunk in range(self.chunks):
            place, instead = f"index(column + {self.place_of(chunk)})", "at0" if chunk else "index(0)"
            lines += [f"is_in{chunk} = {place} < {n}", f"at{chunk} = {place} if is_in{chunk} else {instead}"]
        return lines

    def may_be_without_elements(self) -> bool:
        """Return whether a row may have no elements for some threads: more than one chunk is more than half full."""
        return self.chunks == 1 or self.spread.pieces > 1

    def folds_rows(self) -> bool:
        """Return whether threads combine what they have folded of a row, and so wait for each other."""
        return any(isinstance(line, RowFold) for lines in self.nest.full for line in lines)

    def loaded(self, text: str, strides: tuple[int, ...], dtype: np.dtype) -> str:
        """Return an expression that loads, where a thread has no elements as one that does not."""
        if not (strides[-1] and self.may_be_without_elements() and self.folds_rows()):
            return text
        zero = self.numbers.text(0, dtype)
        return f"{text} if is_in{self.memory.chunk} else {self.as_vector(zero, dtype)}"

    def place_of(self, chunk: int) -> str:
        """Return how far behind a thread's first element a chunk begins."""
        return f"{chunk * GROUP * self.width}"

    def number_of_copy(self, kind: str) -> str:
        is_of_pieces = kind == BY_GROUP and self.spread.pieces > 1
        return "quotient(group(), pieces)" if is_of_pieces else super().number_of_copy(kind)

    def is_in_registers(self, line: Accumulate) -> bool:
        """Return whether a sum is one number, or over rows and the same for all rows of a group."""
        strides = self.memory.write_strides[line.write][: self.order.row_depth]
        of_elements = line in [part for full in self.nest.full for part in full]
        return super().is_in_registers(line) or (of_elements and not any(strides))

    def first_totals(self) -> list[str]:
        lines = super().first_totals()
        for name, (line, _) in self.of_columns.items():
            start, dtype = self.initial(line.node), line.node.output.dtype
            lines.append(f"{name} = {self.as_vector(start, dtype) if name in self.values.vectors else start}")
        return lines

    def last_totals(self) -> list[str]:
        lines = []
        for name, (line, chunk) in self.of_columns.items():
            self.memory.chunk = chunk
            strides = self.memory.write_strides[line.write]
            text = self.memory.store(f"o{line.write}", strides, name)
            lines += self.inside(chunk, [text]) if strides[-1] else [text]
        return [*lines, *super().last_totals()]

    def inside(self, chunk: int, lines: list[str]) -> list[str]:
        """Return lines that are left out where a chunk is not in the row."""
        return [f"if is_in{chunk}:", *[INDENT + line for line in lines]]

    def as_vector(self, value: str, dtype: np.dtype) -> str:
        return self.widened(value, dtype) if self.width > 1 else value

    def emit_pass(self, lines: list[Line], rows: list[str], hoisted: Hoisted) -> None:
        split, values = self.order.row_depth, self.values
        folds = self.folds_of(lines)
        for line in folds:
            name, start = values.in_row[line.result], self.initial(line.node)
            rows.append(f"{name} = {self.as_vector(start, line.node.output.dtype)}")
            if self.width > 1:
                values.vectors.add(name)
        inner: list[str] = []
        for chunk in range(self.chunks):
            self.memory.chunk, values.in_pass = chunk, self.of_chunk[chunk]
            self.emit_lines(lines, self.order.depth, inner, hoisted)
        values.in_pass = {}
        rows += [*hoisted.pop(split, []), *self.in_pieces(inner)]
        for line in folds:
            name = values.in_row[line.result]
            if self.width > 1:
                rows.append(f"{name} = {self.total(line.node, name)}")
                values.vectors.discard(name)
        if folds:
            rows += self.folded_lanes(folds)

    def in_pieces(self, inner: list[str]) -> list[str]:
        """Return the lines of one pass, which are those of its chunks."""
        return inner

    def emit_lines(self, lines: list[Line], depth: int, out: list[str], hoisted: Hoisted) -> None:
        for line in lines:
            if isinstance(line, Compute | Reload) and line.result in self.values:
                continue  # an earlier pass has computed it
            super().emit_lines([line], depth, out, hoisted)

    def emit_load(self, line: Load, depth: int, out: list[str], hoisted: Hoisted) -> None:
        strides = self.memory.read_strides[line.read]
        level = max([axis + 1 for axis, stride in enumerate(strides) if stride], default=0)
        name = self.define(line.result, level <= self.order.row_depth, self.memory.differs(strides))
        self.values.levels[name] = level
        lines = out if level == depth else hoisted.setdefault(level, [])
        text = self.memory.load(f"p{line.read}", strides)
        lines.append(f"{name} = {self.loaded(text, strides, self.nest.reads[line.read].dtype)}")
        self.note_load(line)

    def emit_reload(self, line: Reload, depth: int, out: list[str]) -> None:
        kept = self.stored_of_row if self.is_row_level else self.stored[self.memory.chunk]
        name = kept.get(line.write) or self.stored_of_row.get(line.write)
        if name is None:
            super().emit_reload(line, depth, out)
            return
        (self.values.in_row if self.is_row_level else self.values.in_pass)[line.result] = name

    def emit_store(self, line: Store, out: list[str]) -> None:
        memory, value = self.memory, self.operand(line.value)
        if line.write in memory.kept:
            (self.stored_of_row if self.is_row_level else self.stored[memory.chunk])[line.write] = value
        elif self.is_row_level:
            super().emit_store(line, out)
        else:
            strides = memory.write_strides[line.write]
            out += self.inside(memory.chunk, [memory.store(f"o{line.write}", strides, value)])

    def emit_fold(self, line: RowFold, out: list[str]) -> None:
        name, value = self.values.in_row[line.result], self.operand(line.value)
        if self.width > 1:
            value = self.widened(value, line.node.inputs[0].dtype)
        self.folded(line.node, name, value, out)

    def folded(self, node: Node, name: str, value: str, out: list[str]) -> None:
        """Append the line that folds a value of this chunk into a register."""
        text = combine(node, name, value, self.memory.width if name in self.values.vectors else "")
        out.append(f"{name} = {text} if is_in{self.memory.chunk} else {name}")

    def emit_accumulate(self, line: Accumulate, out: list[str]) -> None:
        if self.is_row_level:
            super().emit_accumulate(line, out)
            return
        memory, node, value = self.memory, line.node, self.operand(line.value)
        strides = memory.write_strides[line.write]
        self.values.origins[f"o{line.write}"] = node
        is_one_number = not strides[-1]
        if self.width > 1:
            value = self.widened(value, node.inputs[0].dtype)
            value = self.total(node, value) if is_one_number else value
        if self.spread.copies.get(line.write) == FOLDED:
            self.totals[f"t{line.write}"] = line
            self.folded(node, f"t{line.write}", value, out)
            return
        if self.is_in_registers(line):
            chunk = 0 if is_one_number else memory.chunk
            name = f"t{line.write}_{chunk}"
            if name not in self.of_columns:
                self.of_columns[name] = line, chunk
                if self.width > 1 and not is_one_number:
                    self.values.vectors.add(name)
            self.folded(node, name, value, out)
            return
        before = memory.load(f"o{line.write}", strides)
        text = memory.store(
            f"o{line.write}", strides, combine(node, before, value, self.width_for(memory.differs(strides)))
        )
        out += self.inside(memory.chunk, [text])
