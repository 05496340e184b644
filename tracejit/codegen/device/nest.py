# SPDX-License-Identifier: BSD-3-Clause
"""Emission of a nest whose work many threads share (Note [spreading] in passes/loops/spread.py)."""

import math
from collections.abc import Callable, Mapping

from tracejit.codegen.expressions import FAST_FOLDS, combine
from tracejit.codegen.loop_order import LoopOrder
from tracejit.codegen.names import INDENT, SUFFIXES
from tracejit.codegen.nest import Binding, Frame, Hoisted, NestEmitter, Values
from tracejit.codegen.nest_memory import NestMemory
from tracejit.ir import Node
from tracejit.passes.loops.kept_values import GROUP, WIDE
from tracejit.passes.loops.nest import IN_PLACE, Access, Accumulate, Line, Load, Nest, Reload, RowFold, Store
from tracejit.passes.loops.spread import (
    ALONE,
    BLOCKS,
    BY_GROUP,
    BY_THREAD,
    ELEMENTS,
    FOLDED,
    ROWS,
    THREADS,
    Spread,
)
from tracejit.passes.loops.vector_forms import has_vector_form
from tracejit.util.named_tuples import NamedTuple


class Team(NamedTuple):
    """Threads that take rows together: the functions that say who they are, and what waits for all of them."""

    number: str
    number_of_all: str
    member: str
    members: str
    wait: str


TEAMS = {
    False: Team("group()", "groups()", "lane()", f"{GROUP}", "together()"),
    True: Team("block()", "blocks()", "thread_of_block()", "threads_of_block()", "barrier()"),
}
"""Groups and blocks, by whether it is a block."""
_OF_VECTORS = "s"  # the name of a sum of vectors ends so
_LEAST_BYTES = 4  # of elements that are accessed side by side


class ThreadMemory(NestMemory):
    """The memory of a nest, some of it copied for each group or thread, or accessed by WIDE neighbours at once."""

    def __init__(self, spread: Spread, order: LoopOrder, is_wide: bool = False) -> None:
        super().__init__(spread.nest, order, {})
        self.copied = {f"o{write}" for write in spread.copies}
        self.width = f"x{WIDE}" if is_wide else ""

    def index(self, pointer: str, strides: tuple[int, ...]) -> str:
        text = super().index(pointer, strides)
        if pointer not in self.copied:
            return text
        return f"{pointer}_copy" if text == "0" else f"{pointer}_copy + {text}"

    def differs(self, strides: tuple[int, ...]) -> bool:
        return bool(self.width) and strides[-1] != 0

    def load(self, pointer: str, strides: tuple[int, ...]) -> str:
        if not self.differs(strides):
            return super().load(pointer, strides)
        pointer = self.in_place.get(pointer, pointer)
        return f"load_{self.width}({pointer}, {self.index(pointer, strides)})"

    def store(self, pointer: str, strides: tuple[int, ...], value: str) -> str:
        if not self.differs(strides):
            return super().store(pointer, strides, value)
        return f"store_{self.width}({pointer}, {self.index(pointer, strides)}, {value})"


def _is_wide(spread: Spread, order: LoopOrder) -> bool:
    """Return whether elements lie side by side in all memory, so that a thread can take WIDE of them at once."""
    nest = spread.nest
    if spread.form != ELEMENTS or {*spread.copies.values()} - {FOLDED} or not order.depth:
        return False
    if order.depth > 1 and order.extents[-1] % WIDE:
        return False
    return are_vectors(nest, order, has_vector_form)


def are_vectors(nest: Nest, order: LoopOrder, has_vector_form: Callable[[Line], bool]) -> bool:
    """Return whether WIDE neighbours of the innermost loop can be accessed and computed at once."""
    accesses = [*nest.reads, *nest.writes]
    if len({access.dtype for access in accesses}) > 1:
        return False  # a function of vectors takes vectors of one dtype
    lie = map(lies_in_vectors, accesses, map(order.strides, accesses))
    return all(map(has_vector_form, nest.lines)) and all(lie)


def lies_in_vectors(access: Access, strides: tuple[int, ...]) -> bool:
    """Return whether WIDE neighbours of the innermost loop lie side by side at an access, where vectors can begin."""
    *outer, inner = strides
    if inner == 0:
        return True
    is_aligned = not any(number % WIDE for number in (access.offset, *outer))
    return inner == 1 and is_aligned and access.dtype.itemsize >= _LEAST_BYTES


class ThreadLoop:
    """A loop in which threads take indices in turn; the indices of several axes are one number.

    Args:
        axes: that the number stands for, outermost first.
        name: of the number.
        first: the number that a thread begins with.
        step: what it adds each time.
        width: how many neighbours of the last axis one number stands for.
    """

    def __init__(self, axes: range, name: str, first: str, step: str, width: int = 1) -> None:
        self.axes, self.first, self.step, self.width = axes, first, step, width
        self.name = f"i{axes[0]}" if len(axes) == 1 else name

    @property
    def count(self) -> str:
        """The text of how many numbers there are."""
        return f"n{self.axes[0]}" if len(self.axes) == 1 else f"{self.name}s"

    def lines(self, body: list[str]) -> list[str]:
        if not self.axes:  # one element, or one row
            return [f"if {self.first} == 0:", *[INDENT + line for line in body]]
        inner = []
        rest = self.name
        for axis in reversed(self.axes[1:]):
            is_in_vectors = self.width > 1 and axis == self.axes[-1]
            n, place = (
                (f"n{axis}s", "index({} * " + f"{self.width})") if is_in_vectors else (f"n{axis}", "{}")
            )
            inner.append(f"i{axis} = {place.format(f'remainder({rest}, {n})')}")
            before, rest = rest, f"i{axis - 1}" if axis - 1 == self.axes[0] else f"{self.name}_{axis}"
            inner.append(f"{rest} = quotient({before}, {n})")
        lines = [f"{self.name} = {self.first}", f"while {self.name} < {self.count}:"]
        return lines + [
            INDENT + line for line in (*inner, *body, f"{self.name} = index({self.name} + {self.step})")
        ]


class DeviceEmitter(NestEmitter):
    """Writes what each thread does of a nest."""

    def __init__(self, spread: Spread, order: LoopOrder) -> None:
        super().__init__(spread.nest, order, Frame(order))
        self.spread = spread
        self.team = TEAMS[spread.form == BLOCKS]
        self.memory = ThreadMemory(spread, order)
        self.is_row_level = False
        self.has_loaded_of_rows = False  # since the threads of a team waited for each other
        self.totals: dict[str, Accumulate] = {}  # sums that threads keep in registers (FOLDED), by name
        self.is_wide = _is_wide(spread, order)
        split, depth = order.row_depth, order.depth
        self.rows, self.inner = range(split), range(split, depth)
        if spread.form == ELEMENTS:
            self.rows, self.inner = range(depth), range(0)

    def header_sizes(self) -> list[Binding]:
        sizes: list[Binding] = [
            (f"n{axis}", extent, "index(args[{}])") for axis, extent in enumerate(self.order.extents)
        ]
        for loop in (self.row_loop(), self.inner_loop()):
            if len(loop.axes) > 1 and self.spread.form != ALONE:
                count = math.prod([self.order.extents[axis] for axis in loop.axes]) // loop.width
                sizes.append((loop.count, count, "index(args[{}])"))
                if loop.width > 1:
                    last = loop.axes[-1]
                    sizes.append((f"n{last}s", self.order.extents[last] // loop.width, "index(args[{}])"))
        for write in self.spread.copies:
            size = math.prod(self.nest.writes[write].root.shape[1:])
            sizes.append((f"o{write}_size", size, "index(args[{}])"))
        return sizes

    def row_loop(self) -> ThreadLoop:
        if self.spread.form == ELEMENTS:
            if self.is_wide and len(self.rows) > 1:
                return ThreadLoop(self.rows, "element", "thread()", "threads()", WIDE)
            first = f"index(n0 - remainder(n0, {WIDE}) + thread())" if self.is_wide else "thread()"
            return ThreadLoop(self.rows, "element", first, "threads()")
        if self.spread.form == THREADS:
            return ThreadLoop(self.rows, "row", "thread()", "threads()")
        return ThreadLoop(self.rows, "row", self.team.number, self.team.number_of_all)

    def inner_loop(self) -> ThreadLoop:
        if self.spread.form == THREADS:
            return ThreadLoop(self.inner, "column", "index(0)", "1")
        return ThreadLoop(self.inner, "column", self.team.member, self.team.members)

    def body(self) -> list[str]:
        if self.spread.form == ALONE:
            lines = super().body()
            return [f"{INDENT}if thread() == 0:", *[INDENT + line for line in lines]]
        if self.is_wide and len(self.rows) > 1:
            self.memory = ThreadMemory(self.spread, self.order, is_wide=True)
        body = self.row_loop().lines(self.of_one())
        if self.is_wide and len(self.rows) == 1:
            body = self.wide() + body
        lines = [*self.copies(), *self.first_totals(), *body, *self.last_totals()]
        return [INDENT + line for line in lines]

    def wide(self) -> list[str]:
        """Return the loop in which a thread takes WIDE neighbours at once; a later loop takes those left over."""
        origins = self.values.origins
        narrow, self.memory, self.values = (
            self.memory,
            ThreadMemory(self.spread, self.order, is_wide=True),
            Values(),
        )
        self.divisors.clear()  # their reciprocals are computed in each of the two loops
        lines = self.of_one()
        origins |= self.values.origins
        self.memory, self.values = narrow, Values()
        self.values.origins |= origins
        return [
            f"i0 = index(thread() * {WIDE})",
            f"while i0 <= n0 - {WIDE}:",
            *[INDENT + line for line in lines],
            f"{INDENT}i0 = index(i0 + threads() * {WIDE})",
        ]

    def of_one(self) -> list[str]:
        """Return the lines for one element or one row."""
        hoisted: Hoisted = {}
        rows: list[str] = []
        for number, row in enumerate(self.nest.row):
            self.is_row_level = True
            self.emit_lines(row, self.order.row_depth, rows, hoisted)
            self.is_row_level = False
            if number < len(self.nest.full):
                self.emit_pass(self.nest.full[number], rows, hoisted)
        before = [line for level in sorted(hoisted) for line in hoisted[level]]
        return before + rows

    def copies(self) -> list[str]:
        """Return the lines that find the copies of this group or thread, and give sums their first values."""
        lines = []
        for write, kind in self.spread.copies.items():
            lines.append(f"o{write}_copy = {self.number_of_copy(kind)} * o{write}_size")
        in_memory = [
            line for line in self.nest.lines
            if isinstance(line, Accumulate) and line.start != IN_PLACE and not self.is_in_registers(line)
        ]  # fmt: skip
        for line in in_memory:
            lines += self.first_values(line)
        if any(self.spread.copies[line.write] == BY_GROUP for line in in_memory):
            lines.append(self.team.wait)
        return lines

    def number_of_copy(self, kind: str) -> str:
        """Return the expression of the number of a thread's copy."""
        return {BY_THREAD: "thread()", BY_GROUP: self.team.number, FOLDED: "group()"}[kind]

    def is_in_registers(self, line: Accumulate) -> bool:
        """Return whether threads keep a sum in registers."""
        return self.spread.copies[line.write] == FOLDED

    def first_totals(self) -> list[str]:
        """Return the lines that give sums in registers their first values; what adds to them was emitted before."""
        lines = []
        for name, line in self.totals.items():
            start, suffix = self.initial(line.node), SUFFIXES[line.node.output.dtype]
            lines.append(f"{name} = {f'{suffix}x{WIDE}({start})' if name.endswith(_OF_VECTORS) else start}")
        return lines

    def last_totals(self) -> list[str]:
        """Return the lines that combine sums in registers, of vectors and then of a group, and store them."""
        lines: list[str] = []
        numbers: dict[str, Accumulate] = {}
        for name, line in sorted(self.totals.items()):  # a number before the vectors of the same sum
            of_number = name.rstrip(_OF_VECTORS)
            if name != of_number:
                total = self.total(line.node, name)
                is_alone = of_number not in numbers
                lines.append(f"{of_number} = {total if is_alone else combine(line.node, of_number, total)}")
            numbers[of_number] = line
        if not numbers:
            return []
        lines += self.across_lanes({name: line.node for name, line in numbers.items()})
        lines.append("if lane() == 0:")
        for name, line in numbers.items():
            lines.append(INDENT + self.memory.store(f"o{line.write}", (0,) * self.order.depth, name))
        return lines

    def total(self, node: Node, vector: str) -> str:
        """Return the expression of what a vector folds to."""
        return f"total_{FAST_FOLDS[node.op.name]}({vector}, {WIDE})"

    def first_values(self, line: Accumulate) -> list[str]:
        """Return the lines that give the copy of a sum its first values."""
        is_of_team = self.spread.copies[line.write] == BY_GROUP
        return [
            f"at = {self.team.member}" if is_of_team else "at = index(0)",
            f"while at < o{line.write}_size:",
            f"{INDENT}o{line.write}[o{line.write}_copy + at] = {self.initial(line.node)}",
            f"{INDENT}at = index(at + {self.team.members if is_of_team else 1})",
        ]

    def emit_pass(self, lines: list[Line], rows: list[str], hoisted: Hoisted) -> None:
        if self.spread.form == ALONE:
            super().emit_pass(lines, rows, hoisted)
            return
        depth, split, values = self.order.depth, self.order.row_depth, self.values
        folds = self.folds_of(lines)
        inner: list[str] = []
        self.emit_lines(lines, depth, inner, hoisted)
        rows += [f"{values.in_row[line.result]} = {self.initial(line.node)}" for line in folds]
        # Values that change with only some loops of a row are loaded with each element.
        within = [line for level in range(split + 1, depth) for line in hoisted.pop(level, [])]
        if self.spread.form in (ROWS, BLOCKS, THREADS):
            rows += hoisted.pop(split, [])
        rows += self.inner_loop().lines(within + inner) if self.inner else within + inner
        if folds and self.inner and self.spread.form != THREADS:
            rows += self.folded_lanes(folds)
        values.in_pass.clear()  # the next pass loads and computes anew

    def folds_of(self, lines: list[Line]) -> list[RowFold]:
        """Return the reductions among the lines of a pass, each with the name of its new variable."""
        values, folds = self.values, [line for line in lines if isinstance(line, RowFold)]
        for line in folds:
            name = values.in_row[line.result] = values.fresh()
            values.levels[name] = self.order.row_depth
            values.origins[name] = line.node
        return folds

    def folded_lanes(self, folds: list[RowFold]) -> list[str]:
        """Return the lines that combine what the threads of a group have folded, in each of them."""
        return self.across_lanes({self.values.in_row[line.result]: line.node for line in folds})

    def across_lanes(self, folds: Mapping[str, Node]) -> list[str]:
        """Return the lines that combine variables of the threads of a group, given what folds them."""
        lines = [f"step = index({GROUP // 2})", "while step > 0:"]
        for name, node in folds.items():
            other = f"across_{SUFFIXES[node.output.dtype]}({name}, step)"
            lines.append(f"{INDENT}{name} = {combine(node, name, other)}")
        return [*lines, f"{INDENT}step = index(step >> 1)"]

    def emit_load(self, line: Load, depth: int, out: list[str], hoisted: Hoisted) -> None:
        super().emit_load(line, depth, out, hoisted)
        self.note_load(line)

    def note_load(self, line: Load) -> None:
        """Note whether all threads of a team load the same element, where one of them may store a result."""
        if not any(self.memory.read_strides[line.read][self.order.row_depth :]):
            self.has_loaded_of_rows = True

    def emit_store(self, line: Store, out: list[str]) -> None:
        if self.is_of_rows and self.has_loaded_of_rows:
            out.append(self.team.wait)
            self.has_loaded_of_rows = False
        super().emit_store(line, out)
        self.guard(out)
        if self.is_of_rows and any(
            isinstance(other, Reload) and other.write == line.write for other in self.nest.lines
        ):
            out.append(self.team.wait)

    def emit_accumulate(self, line: Accumulate, out: list[str]) -> None:
        if self.spread.copies.get(line.write) == FOLDED:
            self.emit_total(line, out)
        else:
            super().emit_accumulate(line, out)
        self.guard(out)

    def emit_total(self, line: Accumulate, out: list[str]) -> None:
        """Append the line that adds to a sum in a register."""
        width = "" if self.is_of_rows else self.memory.width
        node, value = line.node, self.operand(line.value)
        name = f"t{line.write}{_OF_VECTORS if width else ''}"
        self.totals[name] = line
        self.values.origins[f"o{line.write}"] = node
        if width:
            value = self.widened(value, node.inputs[0].dtype)
        out.append(f"{name} = {combine(node, name, value, width)}")

    @property
    def is_of_rows(self) -> bool:
        """True for lines that all threads of a team would do alike, once for each row."""
        takes_rows = self.spread.form in (ROWS, BLOCKS)
        return self.is_row_level and takes_rows and self.order.row_depth < self.order.depth

    def guard(self, out: list[str]) -> None:
        """Let one thread of a team do the last line, if all of them would do the same."""
        if self.is_of_rows:
            out[-1:] = [f"if {self.team.member} == 0:", INDENT + out[-1]]
