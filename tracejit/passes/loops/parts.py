# SPDX-License-Identifier: BSD-3-Clause
"""parts: cuts a launch that takes long into several on parts of its rows, which threads may run at the same time.

Note [parts]
A kernel is a function of sizes and addresses, so a part of a launch is a launch of the same kernel with fewer rows
and addresses further on: nothing is compiled for it. The number of parts depends on sizes only, never on the machine or
its threads, because a sum of partial sums is rounded differently from one sum; so a result is the same on one thread
and on many. Every part that accumulates does so in memory of its own, and one more launch combines these sums; each
part also has its own memory for one row at a time, where a nest needs such memory.

How long a launch takes is estimated from its loads, its stores and the costs of its ops (passes/cost.py).
"""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType

import numpy as np

from tracejit.aval import Aval
from tracejit.ir import Node, Value
from tracejit.ops import OPS
from tracejit.ops.op import Fold
from tracejit.passes import cost
from tracejit.passes.loops.nest import (
    IN_PLACE,
    Access,
    Accumulate,
    Compute,
    Line,
    Load,
    Nest,
    Operand,
    RowFold,
    Store,
    compact,
    map_line,
)
from tracejit.util.named_tuples import NamedTuple

_LARGEST_KNOWN, _GAP = 2, 16  # elements: the largest stride in the text of a kernel, and one that is not
_LINE = 64  # elements: parts of a single loop begin at multiples of this
_NEAR_COLUMNS = 2048  # elements, at least, of a part of some columns of all rows
_MOST_SUMMED = (
    256  # rows of such a part, at most: more rows are summed in parts, whose sums have smaller errors
)


class NestParts(NamedTuple):
    """The parts of a nest, and the nests that combine what they accumulated."""

    nests: list[Nest]
    combining: list[Nest]


class PartialSum(NamedTuple):
    """A sum that parts accumulate, each in memory of its own, and the access that it is added to at the end."""

    memory: Value
    start: Access | None


def bounds(extent: int, count: int, unit: int = 1) -> list[tuple[int, int]]:
    """Return (start, stop) of `count` about equal parts of an extent, beginning at multiples of `unit`."""
    units = -(-extent // unit)
    edges = [min(extent, units * part // count * unit) for part in range(count + 1)]
    return list(pairwise(edges))


class Divisible(NamedTuple):
    """A nest that can be cut along its first axis.

    nest            the nest
    shared          the writes that all rows have in common: sums, and memory that holds one row
    sums            the reductions of those writes that parts accumulate in memory of their own, by write
    starts          the reads that these sums are added to, by write
    """

    nest: Nest
    shared: list[int]
    sums: dict[int, Node]
    starts: dict[int, int]

    @property
    def extent(self) -> int:
        """The number of rows."""
        return self.nest.extents[0]

    @property
    def most(self) -> int:
        """The greatest number of parts that each have enough to accumulate."""
        sizes = sum([self.nest.writes[k].root.aval.size for k in self.sums])
        if not sizes:
            return self.extent
        return min(self.extent, math.prod(self.nest.extents) // (cost.LEAST_FOLDED * sizes))

    def pieces(
        self, ranges: Sequence[tuple[int, int]], begun: Mapping[Value, PartialSum] = MappingProxyType({})
    ) -> NestParts:
        """Return the parts for these ranges of rows, and the nests that follow when all parts are done.

        Args:
            ranges: start and stop of the rows of each part.
            begun: sums that the same parts have begun. If the nest adds to one, its parts go on with it.
        """
        nest, starts, count = self.nest, self.starts, len(ranges)
        memory: dict[int, Value] = {}  # by write: where the parts accumulate
        starting: dict[int, Value] = {}  # by read: the sums that parts go on with
        combining = []
        for k, node in self.sums.items():
            root = nest.writes[k].root
            memory[k] = memory_of_parts(root, count)
            start = None
            if k in starts:
                start = nest.reads[starts[k]]
                partial = begun.get(start.root)
                if partial is None:
                    # The same kernel for parts that begin and for parts that go on.
                    starting[starts[k]] = _zeros(start.root, count)
                else:
                    starting[starts[k]] = partial.memory
                    start = partial.start
            total = combine(node, memory[k], root, start)
            # The nest that adds up the sums of bands stands for the product, which is in the graph.
            combining.append(total if node in nest.nodes else total._replace(nodes=nest.nodes))
        nests = []
        for number, (start_row, stop_row) in enumerate(ranges):
            first_row = start_row if start_row < stop_row else 0  # behind the last row there may be no memory
            reads = [access.moved(first_row * access.strides[0]) for access in nest.reads]
            writes = [access.moved(first_row * access.strides[0]) for access in nest.writes]
            for k, root in starting.items():
                reads[k] = _of_part(nest.reads[k], root, number)
            for k in self.shared:
                access = nest.writes[k]
                writes[k] = (
                    _of_part(access, memory[k], number)
                    if k in memory
                    else access._replace(root=Value(access.root.aval, None))
                )
            extents = (stop_row - start_row, *nest.extents[1:])
            nests.append(Nest(extents, nest.split, reads, writes, nest.row, nest.full, nest.nodes))
        return NestParts(nests, combining)

    @property
    def combining(self) -> list[Nest]:
        """The nests that would follow two parts: those that follow any number have the same kernels."""
        roots = {k: self.nest.writes[k].root for k in self.sums}
        starts = {k: self.nest.reads[read] for k, read in self.starts.items()}
        return [
            combine(node, memory_of_parts(roots[k], 2), roots[k], starts.get(k))
            for k, node in self.sums.items()
        ]


def memory_of_parts(root: Value, count: int) -> Value:
    """Return memory in which `count` parts accumulate what belongs into `root`.

    Those of one or two numbers have a gap between them: the text of a kernel says of distances of 1 and 2 which they
    are, and so the kernel that folds them is that of any other memory.
    """
    return Value(Aval(_shape_of_parts(root, count), None, root.dtype), None)


def _shape_of_parts(root: Value, count: int) -> tuple[int, ...]:
    return (count, *root.shape) if root.aval.size > _LARGEST_KNOWN else (count, _GAP)


def share(memory: Value) -> int:
    """Return how many elements of memory of parts each part has."""
    return memory.aval.size // memory.shape[0]


def _of_part(access: Access, memory: Value, number: int) -> Access:
    """Return the access of part `number` to memory in which all parts accumulate, one after the other."""
    return access._replace(root=memory, offset=number * share(memory) + access.offset)


def divisible(nest: Nest, is_scratch: set[Value], wanted: int) -> Divisible | None:
    """Return a nest as one that can be cut into up to `wanted` parts, or None if it can only run as a whole.

    Args:
        nest: the nest.
        is_scratch: roots of memory that holds one row at a time.
        wanted: a sufficient number of rows; outer axes are joined until there are that many.
    """
    if IN_PLACE in _starts(nest).values():
        return None  # each part would begin with the contents of the memory
    if nest.split == 0 and (_folds_in_last_row(nest) or without_tail(nest)[1]):
        return None  # later passes, or the last lines, wait for folds over all elements
    nest = outer_joined(nest, wanted)
    if not nest.extents:
        return None
    shared = [k for k, access in enumerate(nest.writes) if access.strides[0] == 0]
    accumulated = _accumulations(nest) if shared else {}
    # What is stored behind a fold over all elements is no memory of one row, also where it is not in the graph.
    at_end = {line.write for line in nest.row[-1] if isinstance(line, Store)} if nest.split == 0 else set()
    if any(k not in accumulated and (k in at_end or nest.writes[k].root not in is_scratch) for k in shared):
        return None
    sums = {k: accumulated[k] for k in shared if k in accumulated}
    starts = {k: start for k, start in _starts(nest).items() if k in sums} if sums else {}
    return Divisible(nest, shared, sums, starts)


def tail_apart(nest: Nest) -> list[Nest]:
    """Return a nest, or two: its folds over all elements, and the lines that compute with them.

    Parts cannot compute with a fold that others have a share of. Two nests also are the same kernels whether there are
    parts or not; the second launch takes 10 ns.
    """
    if nest.split != 0 or not nest.extents or _folds_in_last_row(nest):
        return [nest]
    body, tail = without_tail(nest)
    return [body, *tail]


def _folds_in_last_row(nest: Nest) -> bool:
    """Return whether a nest goes through elements again, or accumulates, when it has folded all of them."""
    return len(nest.full) > 1 or any(isinstance(line, Accumulate) for line in nest.row[-1])


def _starts(nest: Nest) -> dict[int, int]:
    """Return, by write, the read that its sum is added to, or IN_PLACE."""
    return {
        line.write: line.start
        for line in nest.lines
        if isinstance(line, Accumulate) and line.start is not None
    }


def split_nest(nest: Nest, is_scratch: set[Value]) -> NestParts | None:
    """Return the parts of a nest, or None if it is to run as a whole.

    Args:
        nest: the nest.
        is_scratch: roots of memory that holds one row at a time.
    """
    ns = nest.ns
    if ns < cost.LEAST_SPLIT_NS:
        return None
    columns = _by_columns(nest)
    if columns is not None:
        return columns
    source = divisible(nest, is_scratch, cost.count_of_parts(ns, cost.MOST_PARTS))
    if source is None:
        return None
    extent = source.extent
    unit = _LINE if len(source.nest.extents) == 1 and extent >= _LINE * cost.MOST_PARTS else 1
    count = cost.count_of_parts(ns, source.most)
    return None if count < 2 else source.pieces(bounds(extent, count, unit))


def _by_columns(nest: Nest) -> NestParts | None:
    """Return the parts of a nest that folds long rows into one, cut along the rows; None for other nests.

    Parts of some columns each need no memory of their own, and what they accumulate stays in the nearest cache. Us of
    10 rows of 100,000 elements of float32, on one thread, cut along the rows, and along the columns:

        sum  76 53    max  122 77    prod  119 70    sum of every second element  156 130
    """
    if nest.split is not None or len(nest.extents) != 2 or nest.extents[0] < 2:
        return None
    rows, columns = nest.extents
    count = min(cost.MOST_PARTS, columns // _NEAR_COLUMNS)
    if count < 2 or any(access.strides != (0, 1) for access in nest.writes):
        return None
    if not all(isinstance(line, Load | Compute | Accumulate) for line in nest.lines):
        return None
    folds = [line.node for line in nest.lines if isinstance(line, Accumulate)]
    if rows > _MOST_SUMMED and any(fold.op.name in ("sum", "sum_add") for fold in folds):
        return None
    nests = []
    for start, stop in bounds(columns, count, _LINE):
        reads = [access.moved(start * access.strides[1]) for access in nest.reads]
        writes = [access.moved(start) for access in nest.writes]
        nests.append(nest._replace(extents=(rows, stop - start), reads=reads, writes=writes))
    return NestParts(nests, [])


def outer_joined(nest: Nest, wanted: int) -> Nest:
    """Return the nest with its outermost axes joined, where memory allows, until there are enough rows."""
    while nest.extents and nest.extents[0] < wanted:
        if len(nest.extents) < 2 or nest.split == 1:
            break
        inner = nest.extents[1]
        accesses = [*nest.reads, *nest.writes]
        if nest.extents[0] > 1 and any(a.strides[0] != a.strides[1] * inner for a in accesses):
            break
        if all(isinstance(line, Load | Accumulate) for line in nest.lines):
            break  # a sum over one row: the sum over more, which cannot be joined, is to be the same kernel
        nest = nest._replace(
            extents=(nest.extents[0] * inner, *nest.extents[2:]),
            split=nest.split - 1 if nest.split else nest.split,
            reads=[a._replace(strides=a.strides[1:]) for a in nest.reads],
            writes=[a._replace(strides=a.strides[1:]) for a in nest.writes],
        )
    return nest


def _accumulations(nest: Nest) -> dict[int, Node]:
    """Return, for each write that parts can accumulate in, the reduction that combines what they accumulated."""
    reductions = {
        line.write: line.node for line in nest.lines if isinstance(line, Accumulate) and _is_alike(nest, line)
    }
    if nest.split == 0:
        folds = {line.result: line.node for line in nest.lines if isinstance(line, RowFold)}
        reductions |= {line.write: folds[line.value] for line in nest.row[-1] if isinstance(line, Store)}
    return {
        write: _combining(node)
        for write, node in reductions.items()
        if isinstance(node.op.emit, Fold) and (len(node.inputs) == 1 or _folds_alike(node))
    }


def without_tail(nest: Nest) -> tuple[Nest, list[Nest]]:
    """Return a nest of one row that only stores its folds at the end, and one that does the rest of the row's lines."""
    first, last = nest.row
    folds = {line.result: line for line in nest.full[0] if isinstance(line, RowFold)}
    stores = {line.value: line for line in last if isinstance(line, Store) and line.value in folds}
    if all(line in stores.values() for line in last) and len(stores) == len(folds):
        return nest, []
    reads, writes = list(nest.reads), list(nest.writes)
    loads: dict[Operand, int] = {}  # by fold: the read of what the body has stored
    ends: list[Line] = []
    for value, fold in folds.items():
        store = stores.get(value)
        if store is None:
            store = Store(len(writes), value)
            root = Value(Aval((), None, fold.node.output.dtype), None)
            writes.append(Access(root, 0, (0,) * len(nest.extents), root.dtype))
        ends.append(store)
        loads[value] = len(reads)
        reads.append(writes[store.write])
    rest: list[Line] = [Load(number, number) for number in loads.values()]
    rest += [
        map_line(line, lambda part: loads.get(part, part))
        for line in (*first, *last)
        if isinstance(line, Compute | Load) or (isinstance(line, Store) and line not in ends)
    ]
    body = compact(nest._replace(reads=reads, writes=writes, row=[first, ends]))
    tail = Nest(
        (),
        None,
        [a._replace(strides=()) for a in reads],
        [a._replace(strides=()) for a in writes],
        [[]],
        [rest],
        [],
    )
    nodes = [line.node for line in rest if isinstance(line, Compute)]
    return body, [compact(tail)._replace(nodes=nodes)]


def combines(node: Node) -> bool:
    """Return whether results of a reduction are combined as its elements are."""
    # A reduction that adds to an array would begin with that array each time.
    return len(node.inputs) == 1 and isinstance(node.op.emit, Fold) and _folds_alike(node)


def _is_alike(nest: Nest, line: Accumulate) -> bool:
    """Return whether the array that is added to lies as the result does, which `combine` assumes."""
    return line.start is None or nest.reads[line.start].strides == nest.writes[line.write].strides


def _combining(node: Node) -> Node:
    """Return the reduction of results of a reduction: of 64 bits where that of integers, or of bools, is."""
    if _folds_alike(node):
        return node
    result = Value(Aval((), None, node.output.dtype), None)
    combining = Node(node.op, (result,), node.params, None)
    combining.makes((result,))
    return combining


def _folds_alike(node: Node) -> bool:
    return node.inputs[0].dtype == node.output.dtype


def _zeros(like: Value, count: int) -> Value:
    """Return a constant of zeros that `count` parts can go on with as if it were their sums so far."""
    shape = _shape_of_parts(like, count)
    return Value(Aval(shape, None, like.dtype), None, data=np.zeros(shape, like.dtype))


def sum_of_parts(memory: Value, root: Value, node: Node) -> Nest:
    """Return the nest that adds up the sums of all parts in `root`; it stands for `node`."""
    element = Value(Aval((), None, root.dtype), None)
    adding = Node(OPS["sum"], (element,), {}, None)
    adding.makes((element,))
    return combine(adding, memory, root, None)._replace(nodes=[node])


def combine(node: Node, memory: Value, root: Value, start: Access | None) -> Nest:
    """Return the nest that folds the accumulations of all parts, and the access that they are added to, into `root`.

    Args:
        node: the reduction.
        memory: the accumulations of the parts, one after the other.
        root: where the result goes.
        start: the access that it is added to, in other memory or in `root`; None if there is none.
    """
    count, size = memory.shape[0], root.aval.size
    reads = [Access(memory, 0, (share(memory), 1), root.dtype)]
    number = None
    if start is None:
        out = node.output
        extents = (size, count)
        write = Access(root, 0, (1, 0), root.dtype)
        reads = [Access(memory, 0, (1, share(memory)), root.dtype)]
        return Nest(
            extents, 1, reads, [write], [[], [Store(0, out)]], [[Load(0, 0), RowFold(out, node, 0)]], [node]
        )
    if start.root is root:
        number = IN_PLACE
    else:
        number = len(reads)
        reads.append(Access(start.root, start.offset, (0, 1), root.dtype))
    write = Access(root, 0, (0, 1), root.dtype)
    lines: list[Line] = [Load(0, 0), Accumulate(0, node, 0, number)]
    nest = Nest((count, size), None, reads, [write], [[]], [lines], [node])
    if size == 1:
        return nest._replace(
            extents=(count,),
            reads=[
                read._replace(strides=read.strides[:1] if i == 0 else (0,)) for i, read in enumerate(reads)
            ],
            writes=[write._replace(strides=(0,))],
        )
    return nest
