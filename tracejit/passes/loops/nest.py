# SPDX-License-Identifier: BSD-3-Clause
"""The loop IR: a Nest of loops, the lines in it, and its accesses to memory."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tracejit.aval import part_dtype
from tracejit.ir import Node, Value
from tracejit.ops.op import Layout
from tracejit.passes import cost
from tracejit.util.named_tuples import NamedTuple


class Access(NamedTuple):
    """A strided walk through the memory of `root` along the axes of a nest; strides in elements."""

    root: Value
    offset: int
    strides: tuple[int, ...]
    dtype: np.dtype

    def moved(self, elements: int) -> "Access":
        """Return the access that begins `elements` further on."""
        # A new tuple takes a third of the time of _replace, and there are many bands.
        return Access(self.root, self.offset + elements, self.strides, self.dtype) if elements else self


def is_of_part(access: Access) -> bool:
    """Return whether an access walks through the parts of complex numbers."""
    return access.root.dtype.kind == "c"


class Literal(NamedTuple):
    """A constant number as an operand."""

    number: Any
    dtype: np.dtype


MOST_WRITES = 128  # that a kernel can tell apart (Note [aliasing] in kernels/intrinsics/pointers.py)
IN_PLACE = -1  # the start of an accumulation that adds to the contents of the memory
Operand = Any  # a Value, the number of a read (an int), or a Literal


def _same(number: int) -> int:
    return number


class Load(NamedTuple):
    """result <- reads[read]"""

    result: int
    read: int


class Reload(NamedTuple):
    """result <- writes[write], which an earlier pass stored"""

    result: Value
    write: int


class Compute(NamedTuple):
    """result <- op of operands"""

    result: Value
    node: Node
    operands: tuple[Operand, ...]


class Store(NamedTuple):
    """writes[write] <- value"""

    write: int
    value: Operand


class RowFold(NamedTuple):
    """result <- result combined with value; result starts anew for each row"""

    result: Value
    node: Node
    value: Operand


class Accumulate(NamedTuple):
    """writes[write] <- writes[write] combined with value.

    The memory starts with reads[start], with the fold's initial number if start is None, or with its own contents if
    start is IN_PLACE.
    """

    write: int
    node: Node
    value: Operand
    start: int | None = None

    @property
    def start_read(self) -> int | None:
        """The number of the read that the memory starts with, if there is one."""
        return None if self.start == IN_PLACE else self.start


Line = Load | Reload | Compute | Store | RowFold | Accumulate


class Nest(NamedTuple):
    """A loop nest.

    extents     of its axes
    split       the number of axes that run over rows; None if there are no rows, but only full[0]
    reads       the accesses to memory that lines load, by number
    writes      the accesses to memory that lines store, by number
    row         the lines of each row: row[p] runs before the loops of full[p], the last ones after all loops
    full        the lines of each pass over the elements of a row
    nodes       the nodes that the nest computes
    """

    extents: tuple[int, ...]
    split: int | None
    reads: list[Access]
    writes: list[Access]
    row: list[list[Line]]
    full: list[list[Line]]
    nodes: list[Node]

    @property
    def ns(self) -> float:
        """About how many nanoseconds the nest takes."""
        elements = math.prod(self.extents)
        rows = 0 if self.split is None else math.prod(self.extents[: self.split])
        per_element = sum([sum(map(_line_ns, lines)) for lines in self.full])
        per_row = sum([sum(map(_line_ns, lines)) for lines in self.row])
        return per_element * elements + per_row * rows

    @property
    def lines(self) -> list[Line]:
        """All lines, those of rows first."""
        return [line for group in (*self.row, *self.full) for line in group]

    def map_lines(self, function: Callable[[Line], Line]) -> "Nest":
        """Return the nest with a function applied to each line."""
        row, full = ([list(map(function, lines)) for lines in groups] for groups in (self.row, self.full))
        return self._replace(row=row, full=full)


def storing_also(nest: Nest, further: Mapping[int, Sequence[int]]) -> Nest:
    """Return a nest that stores values by further writes too, whose numbers are given by that of a write."""

    def stored(lines: list[Line]) -> list[Line]:
        result: list[Line] = []
        for line in lines:
            result.append(line)
            if isinstance(line, Store):
                result += [Store(number, line.value) for number in further.get(line.write, ())]
        return result

    return nest._replace(row=list(map(stored, nest.row)), full=list(map(stored, nest.full)))


def read_in_place(nest: Nest) -> dict[int, int]:
    """Return the reads of memory that the nest also writes, and the writes: each iteration reads what it overwrites."""
    writes = {access: k for k, access in enumerate(nest.writes)}
    return {k: writes[access] for k, access in enumerate(nest.reads) if access in writes}


def _line_ns(line: Line) -> float:
    if isinstance(line, Compute):
        op_cost = cost.op_cost(line.node)
        return cost.NS_PER_COST * (1 if op_cost is None else op_cost)
    if isinstance(line, RowFold):
        return cost.NS_PER_COST
    return cost.NS_PER_TOUCH * (2 if isinstance(line, Accumulate) else 1)


def map_line(
    line: Line,
    operand: Callable[[Operand], Operand],
    read: Callable[[int], int] = _same,
    write: Callable[[int], int] = _same,
) -> Line:
    """Return a line with functions applied to its operands and results, and to the numbers of its reads and writes.

    Literals stay, and so does the start of an accumulation that is None or IN_PLACE.
    """

    def renamed(part: Operand) -> Operand:
        return part if isinstance(part, Literal) else operand(part)

    match line:
        case Load(result, number):
            return Load(renamed(result), read(number))
        case Reload(result, number):
            return Reload(renamed(result), write(number))
        case Compute(result, node, operands):
            return Compute(renamed(result), node, tuple([renamed(part) for part in operands]))
        case Store(number, value):
            return Store(write(number), renamed(value))
        case RowFold(result, node, value):
            return RowFold(renamed(result), node, renamed(value))
        case Accumulate(number, node, value, start):
            start = start if line.start_read is None else read(line.start_read)
            return Accumulate(write(number), node, renamed(value), start)


def compact(nest: Nest) -> Nest:
    """Return a nest without the reads and writes that no line mentions."""
    reads: set[int] = set()
    writes: set[int] = set()
    for line in nest.lines:
        if isinstance(line, Load):
            reads.add(line.read)
        if isinstance(line, Accumulate) and line.start_read is not None:
            reads.add(line.start_read)
        if isinstance(line, Store | Reload | Accumulate):
            writes.add(line.write)
    read_number: dict[Operand, int] = {number: i for i, number in enumerate(sorted(reads))}
    write_number = {number: i for i, number in enumerate(sorted(writes))}

    def renumbered(line: Line) -> Line:
        # An operand that is a number is what the read of this number loads.
        return map_line(
            line, lambda part: read_number.get(part, part), read_number.__getitem__, write_number.__getitem__
        )

    return nest.map_lines(renumbered)._replace(
        reads=[nest.reads[number] for number in read_number],
        writes=[nest.writes[number] for number in write_number],
    )


def copy_nest(source: tuple[Value, Layout] | Literal, target: tuple[Value, Layout]) -> Nest:
    """Return a nest that writes a layout of one array, or a number, to a layout of another of equal shape.

    Layouts in complex memory are those of parts.
    """
    root, layout = target
    axes = [axis for axis, extent in enumerate(layout.shape) if extent != 1]
    extents = tuple([layout.shape[a] for a in axes])
    write = Access(root, layout.offset, tuple([layout.strides[a] for a in axes]), part_dtype(root.dtype))
    if isinstance(source, Literal):
        return Nest(extents, None, [], [write], [[]], [[Store(0, source)]], [])
    base, seen = source
    read = Access(base, seen.offset, tuple([seen.strides[a] for a in axes]), part_dtype(base.dtype))
    return Nest(extents, None, [read], [write], [[]], [[Load(0, 0), Store(0, 0)]], [])
