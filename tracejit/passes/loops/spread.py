# SPDX-License-Identifier: BSD-3-Clause
"""spread: how the threads of a device share the work of a loop nest.

Note [spreading]
A device runs thousands of threads, in groups of 32 that take each step together. What a nest computes decides how they
share it:

- Elements that do not depend on each other are taken in turn, one by each thread, or four that lie side by side.
- Rows with a reduction are taken in turn by groups. The threads of a group take the elements of a row in turn, so that
  neighbours read neighbouring memory, and combine what each of them has folded. If rows are not too long, each thread
  keeps its elements in registers from one pass over the row to the next, and its sums from row to row.
- Rows that are too long for that, or for which a group has too few registers, are taken in turn by blocks. The threads
  of a block do the same, and combine the folds of their groups in shared memory. Such rows are kept in registers too
  where a multiprocessor has enough (Note [registers of rows] in kept_values.py), up to 8192 elements. For longer rows,
  each pass reads the row again.
- A sum over rows is kept by each group in memory of its own: thread j adds up the elements that are thread j's in
  each row. A sum over everything is kept by each thread in a register, and combined by its group at the end. One more
  launch combines the copies of groups, in an order that depends on sizes only, so a result is the same on every device.
  In that launch a block takes up to 32 neighbours of the result, and each of its threads some of the copies.
- Long rows without a reduction of each row are cut into pieces, which then count as rows in all of the above.
- If a sum over rows has too many elements for copies, a thread for each of its elements computes it, one row after the
  other. Then, too, neighbours read neighbouring memory.
- A nest that none of this fits runs on a single thread, which is slow but right.
"""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from tracejit.aval import Aval
from tracejit.ir import Node, Value
from tracejit.ops import OPS
from tracejit.ops.op import Fold
from tracejit.passes.loops import parts
from tracejit.passes.loops.kept_values import (
    GROUP,
    MOST_KEPT,
    WIDE,
    are_wide,
    keeps_by_group,
    lies_as_one_axis,
    piece_of,
    row_length,
    threads_that_keep,
)
from tracejit.passes.loops.launches import KernelLaunch, LoopLaunch
from tracejit.passes.loops.nest import (
    IN_PLACE,
    Access,
    Accumulate,
    Compute,
    Line,
    Load,
    Nest,
    RowFold,
    Store,
)
from tracejit.util.named_tuples import NamedTuple

BLOCK = 128  # threads of a block
MOST_BLOCKS = (
    2048  # more do not run at the same time on any device, so that groups have no more copies of a sum
)
MOST_TURNS = (
    1 << 20
)  # blocks that take turns: memory is busier than with threads that take several elements in turn
FEW = 8  # numbers that each thread may keep a copy of
MOST_COPIED = 1 << 22  # elements of all copies of one sum
ELEMENTS_OF_A_COPY = 16  # a thread folds at least so many into its copy
MOST_COPIES = 2048  # of a sum over rows: groups that keep a device busy if each takes wide pieces of rows
ENOUGH_BLOCKS = 512  # of sums: some for each multiprocessor
COLUMN_THREADS = 1024  # of a block that combines copies
LONG_ROW_BYTES = 2048  # of an element for each thread of a block whose passes read a row again
_AGAIN_WIDE, _AGAIN_NARROW = 8, 4  # elements of such a row that a thread has at a time, or more

ALONE, ELEMENTS, ROWS, BLOCKS, THREADS, COLUMNS = "alone", "elements", "rows", "blocks", "threads", "columns"
BY_GROUP, BY_THREAD, FOLDED = "group", "thread", "folded"


class Spread(NamedTuple):
    """A nest, and how threads share it (Note [spreading]).

    form        whether one thread runs it ALONE, or threads take ELEMENTS in turn, or groups ROWS, or BLOCKS rows, or
                THREADS rows, or blocks combine copies by COLUMNS
    blocks      how many blocks run it; one thread if it is ALONE
    copies      the writes of which each group or block that takes rows (BY_GROUP) or thread (BY_THREAD) has a copy, one
                after the other; FOLDED are numbers that threads keep in registers, and groups combine into their copies
                in the end
    kept        the writes that hold one row at a time, in registers; None if the elements of rows are not kept there
    pieces      how many pieces each row is cut into
    threads     of a block
    piece       how many elements a piece has, a power of two
    """

    nest: Nest
    form: str
    blocks: int = 1
    copies: Mapping[int, str] = MappingProxyType({})
    kept: frozenset[int] | None = None
    pieces: int = 1
    threads: int = BLOCK
    piece: int = MOST_KEPT

    @property
    def teams(self) -> int:
        """The number of blocks that take rows, or of groups; each row has a group for each of its pieces."""
        if self.form == BLOCKS:
            return self.blocks
        return self.blocks * self.threads // GROUP // self.pieces


class SpreadLaunch(NamedTuple):
    """The launch of a nest whose work threads share."""

    spread: Spread

    @property
    def reads(self) -> list[Value]:
        return [access.root for access in self.spread.nest.reads]

    @property
    def writes(self) -> list[Value]:
        return [access.root for access in self.spread.nest.writes]

    @property
    def touched(self) -> list[Value]:
        return [*self.reads, *self.writes]

    @property
    def nodes(self) -> list[Node]:
        return self.spread.nest.nodes


DeviceLaunch = SpreadLaunch | KernelLaunch | LoopLaunch


def spread(nest: Nest, is_scratch: set[Value]) -> list[Spread]:
    """Return the launches that compute a nest on a device.

    Args:
        nest: the nest.
        is_scratch: roots of memory that holds one row at a time.
    """
    sums_rows = any(isinstance(line, Accumulate) for line in nest.row[-1])
    if nest.split == 0 and len(nest.full) == 1 and nest.extents and not sums_rows:
        nest, tail = parts.without_tail(nest)
        return [
            *_spread(_as_sums(nest), is_scratch),
            *[launch for part in tail for launch in spread(part, set())],
        ]
    return _spread(nest, is_scratch)


def _as_sums(nest: Nest) -> Nest:
    """Return a nest of one row as one whose folds, which are all stored, accumulate in memory."""
    targets: dict[object, int] = {}
    for line in nest.row[-1]:
        if not isinstance(line, Store):
            return nest
        targets[line.value] = line.write
    folds = [line for line in nest.full[0] if isinstance(line, RowFold)]
    if nest.row[0] or {line.result for line in folds} != set(targets):
        return nest
    full: list[Line] = [
        Accumulate(targets[line.result], line.node, line.value) if isinstance(line, RowFold) else line
        for line in nest.full[0]
    ]
    return nest._replace(split=None, row=[[], []], full=[full])


def _spread(nest: Nest, is_scratch: set[Value]) -> list[Spread]:
    sums = {line.write: line for line in nest.lines if isinstance(line, Accumulate)}
    if nest.split is None and not sums:
        return [Spread(nest, ELEMENTS, _blocks_of_elements(math.prod(nest.extents)))]
    if not all(_can_be_copied(nest, line) for line in sums.values()):
        return [Spread(nest, ALONE)]
    if nest.split is None:
        if sum(nest.writes[k].root.aval.size for k in sums if not _is_one_number(nest, k)) <= FEW:
            return _elements_with_copies(nest, sums)
        by_thread = _by_threads(nest, sums)
        nest = _reduced_axes_first(nest, sums)
    else:
        by_thread = _by_threads(_without_rows(nest, is_scratch), sums) if sums else None
    launches = _rows(nest, sums, is_scratch)
    return launches if by_thread is None or _are_enough(launches[0], by_thread) else [by_thread]


def _are_enough(launch: Spread, by_thread: Spread) -> bool:
    """Return whether a launch on copies keeps a device as busy as one in which a thread computes each element."""
    if launch.form == ALONE:
        return False
    # The elements that a thread has on their way at once.
    width = 1 if launch.pieces == 1 else launch.piece // GROUP
    return launch.blocks * launch.threads // BLOCK * width >= min(by_thread.blocks, ENOUGH_BLOCKS)


def _without_rows(nest: Nest, is_scratch: set[Value]) -> Nest | None:
    """Return a nest that adds up what rows fold as one that adds up elements, None if it does anything else."""
    if any(nest.row[:-1]) or len(nest.full) != 1 or any(access.root in is_scratch for access in nest.writes):
        return None
    sums = {line.value: line for line in nest.row[-1] if isinstance(line, Accumulate)}
    folds = {line.result: line for line in nest.full[0] if isinstance(line, RowFold)}
    if len(sums) != len(nest.row[-1]) or {*sums} != {*folds}:
        return None
    if any(sums[value].node.op is not folds[value].node.op for value in sums):
        return None
    full: list[Line] = [
        sums[line.result]._replace(value=line.value) if isinstance(line, RowFold) else line
        for line in nest.full[0]
    ]
    return nest._replace(split=None, row=[[], []], full=[full])


def _by_threads(nest: Nest | None, sums: Mapping[int, Accumulate]) -> Spread | None:
    """Return the launch that computes each element of sums by one thread; None if they reduce different axes."""
    if nest is None:
        return None
    writes, extents = nest.writes, nest.extents
    axes = range(len(extents))
    kept = {tuple([a for a in axes if writes[k].strides[a] and extents[a] > 1]) for k in sums}
    if len(kept) > 1 or any(line.start is not None for line in sums.values()):
        return None
    (first,) = kept
    order = [*first, *[axis for axis in axes if axis not in first]]
    stores: list[Line] = []

    def folded(line: Line) -> Line:
        if not isinstance(line, Accumulate):
            return line
        total = Value(Aval((), None, writes[line.write].root.dtype), None)
        stores.append(Store(line.write, total))
        return RowFold(total, line.node, line.value)

    full = [[folded(line) for line in lines] for lines in nest.full]
    nest = _with_axes(nest, order, len(first))._replace(row=[[], stores], full=full)
    elements = math.prod(nest.extents[: len(first)])
    return Spread(nest, THREADS, min(-(-elements // BLOCK), MOST_TURNS))


def _can_be_copied(nest: Nest, line: Accumulate) -> bool:
    """Return whether copies of a sum can be combined into it, all of whose memory is accumulated."""
    access = nest.writes[line.write]
    node = line.node
    if line.start is not None and (line.start == IN_PLACE or len(node.inputs) != 2):
        return False
    if access.offset or not isinstance(node.op.emit, Fold):
        return False
    if line.start is not None and nest.reads[line.start].strides != access.strides:
        return False
    touched = math.prod([n for n, stride in zip(nest.extents, access.strides, strict=True) if stride])
    return touched == access.root.aval.size


def blocks_of(threads: int) -> int:
    """Return how many blocks run so many threads, at most MOST_BLOCKS: then threads take several turns."""
    return max(1, min(-(-threads // BLOCK), MOST_BLOCKS))


def _blocks_of_elements(elements: int) -> int:
    """Return how many blocks run so many elements: one for each thread, or WIDE if there are many."""
    if elements <= MOST_BLOCKS * BLOCK:
        return blocks_of(elements)
    return min(-(-elements // (WIDE * BLOCK)), MOST_TURNS)


def _elements_with_copies(nest: Nest, sums: Mapping[int, Accumulate]) -> list[Spread]:
    """Return the launches of a nest with few sums, with a copy of them for each thread."""
    blocks = blocks_of(-(-math.prod(nest.extents) // ELEMENTS_OF_A_COPY))
    copies = {k: FOLDED if _is_one_number(nest, k) else BY_THREAD for k in sums}
    return _with_copies(Spread(nest, ELEMENTS, blocks, copies), sums)


def _is_one_number(nest: Nest, write: int) -> bool:
    """Return whether all elements go into one element of a write."""
    return not any(
        stride for n, stride in zip(nest.extents, nest.writes[write].strides, strict=True) if n > 1
    )


def _reduced_axes_first(nest: Nest, sums: Mapping[int, Accumulate]) -> Nest:
    """Return a nest whose rows are the axes that its sums reduce, but one if they reduce all of them."""
    sizes = {k: nest.writes[k].root.aval.size for k in sums if not _is_one_number(nest, k)}
    large = [k for k, size in sizes.items() if size > FEW] or [*sizes]  # each thread has a copy of others
    reducing = {
        axis: [k for k in large if nest.writes[k].strides[axis] == 0]
        for axis, extent in enumerate(nest.extents)
        if extent > 1
    }
    reduced = [axis for axis, writes in reducing.items() if writes]
    if len(reduced) == len(reducing):
        # Threads of a group share one axis: each of them has a copy of what that reduces.
        reduced.remove(min(reversed(reduced), key=lambda axis: sum(sizes[k] for k in reducing[axis])))
    axes = [*reduced, *[axis for axis in range(len(nest.extents)) if axis not in reduced]]
    return _with_axes(nest, axes, len(reduced))


def _with_axes(nest: Nest, axes: Sequence[int], split: int) -> Nest:
    """Return a nest with its axes in another order; the first ones are rows."""

    def moved(access: Access) -> Access:
        return access._replace(strides=tuple([access.strides[axis] for axis in axes]))

    return nest._replace(
        extents=tuple([nest.extents[axis] for axis in axes]),
        split=split,
        reads=[*map(moved, nest.reads)],
        writes=[*map(moved, nest.writes)],
        row=[[], []],
    )


def _rows(nest: Nest, sums: Mapping[int, Accumulate], is_scratch: set[Value]) -> list[Spread]:
    """Return the launches of a nest whose rows groups take in turn."""
    split = nest.split or 0
    rows = math.prod(nest.extents[:split])
    inner = nest.extents[split:]
    of_rows = {line.write for lines in nest.row for line in lines if isinstance(line, Accumulate)}
    copies: dict[int, str] = {}
    for k in sums:
        strides = nest.writes[k].strides[split:]
        is_own = k in of_rows or all(stride for n, stride in zip(inner, strides, strict=True) if n > 1)
        copies[k] = FOLDED if _is_one_number(nest, k) else BY_GROUP if is_own else BY_THREAD
    scratch = {k for k, access in enumerate(nest.writes) if access.root in is_scratch}
    pieces = _pieces(nest, split)
    is_long = not pieces and math.prod(inner) > MOST_KEPT
    if is_long or (pieces == 1 and not keeps_by_group(nest, scratch, _row_sums(copies))):
        return _by_blocks(nest, sums, copies, scratch)
    piece = MOST_KEPT if pieces < 2 else piece_of(nest, scratch, _row_sums(copies))
    pieces = pieces and -(-math.prod(inner) // piece)
    if not pieces:
        copies |= dict.fromkeys(scratch, BY_GROUP)
    groups = rows
    for k, kind in copies.items():
        if kind == FOLDED:
            continue
        copy_size = max(1, nest.writes[k].root.aval.size) * (GROUP if kind == BY_THREAD else 1)
        groups = min(groups, MOST_COPIED // copy_size, max(1, MOST_COPIES // max(pieces, 1)))
    if groups < 1:
        return [Spread(nest, ALONE)]
    if not pieces:
        return _with_copies(Spread(nest, ROWS, _blocks_of_groups(groups, bool(copies)), copies), sums)
    blocks = _blocks_of_groups(groups * pieces, bool(copies))
    blocks = -(-blocks // pieces) * pieces  # groups of all pieces take the same rows
    return _with_copies(Spread(nest, ROWS, blocks, copies, frozenset(scratch), pieces, piece=piece), sums)


def _by_blocks(
    nest: Nest, sums: Mapping[int, Accumulate], copies: dict[int, str], scratch: set[int]
) -> list[Spread]:
    """Return the launches of a nest whose long rows blocks take in turn."""
    threads = threads_that_keep(nest, scratch, _row_sums(copies))
    are_kept = threads is not None
    if threads is None:
        copies |= dict.fromkeys(scratch, BY_GROUP)
        scratch = set()
        threads = _threads_that_read_again(nest)
    blocks = math.prod(nest.extents[: nest.split or 0])
    for k, kind in copies.items():
        if kind != FOLDED:
            copy_size = max(1, nest.writes[k].root.aval.size) * (threads if kind == BY_THREAD else 1)
            blocks = min(blocks, MOST_COPIED // copy_size)
    if blocks < 1:
        return [Spread(nest, ALONE)]
    blocks = min(blocks, max(1, MOST_BLOCKS * BLOCK // threads) if copies else MOST_TURNS)
    kept = frozenset(scratch) if are_kept else None
    return _with_copies(Spread(nest, BLOCKS, blocks, copies, kept, threads=threads), sums)


def _threads_that_read_again(nest: Nest) -> int:
    """Return the threads of a block whose passes read a row again: fewer of large elements, which take registers."""
    most = LONG_ROW_BYTES // max(4, *[access.dtype.itemsize for access in (*nest.reads, *nest.writes)])
    at_a_time = GROUP * (_AGAIN_WIDE if are_wide(nest) else _AGAIN_NARROW)
    return min(-(-row_length(nest) // at_a_time) * GROUP, most)


def _row_sums(copies: Mapping[int, str]) -> set[int]:
    """Return the writes that are sums over rows, with an element for each of the row's."""
    return {write for write, kind in copies.items() if kind != FOLDED}


def _blocks_of_groups(groups: int, has_copies: bool) -> int:
    """Return how many blocks run so many groups: one turn for each if there are no copies."""
    return blocks_of(groups * GROUP) if has_copies else max(1, min(-(-groups * GROUP // BLOCK), MOST_TURNS))


def _pieces(nest: Nest, split: int) -> int:
    """Return how many pieces of rows groups keep in registers; 0 if they do not."""
    lengths = nest.extents[split:]
    if not lengths or not lies_as_one_axis(nest, split):
        return 0
    pieces = -(-math.prod(lengths) // MOST_KEPT)
    has_rows = any(nest.row) or len(nest.full) != 1  # what is computed for each row needs all of it
    return 0 if pieces > 1 and has_rows else pieces


def _with_copies(spread: Spread, sums: Mapping[int, Accumulate]) -> list[Spread]:
    """Return the launch of a nest on copies of what it sums, and those that combine them."""
    nest, copies = spread.nest, spread.copies
    writes, combining = [*nest.writes], []
    lines = {id(line): line for line in sums.values()}
    groups = spread.blocks * spread.threads // GROUP
    counts = {BY_THREAD: groups * GROUP, BY_GROUP: spread.teams, FOLDED: groups}
    for k, kind in copies.items():
        access = writes[k]
        memory = Value(Aval((counts[kind], *access.root.shape), None, access.root.dtype), None)
        writes[k] = access._replace(root=memory)
        size = access.root.aval.size
        if k in sums and size:  # a launch of no blocks is an error
            start = None if sums[k].start is None else nest.reads[sums[k].start or 0]
            total = combination(sums[k].node, memory, access.root, start)
            combining.append(Spread(total, COLUMNS, -(-size // columns_of(size)), threads=COLUMN_THREADS))

    def without_start(line: Line) -> Line:
        if id(line) in lines and isinstance(line, Accumulate):
            return line._replace(start=None)
        return line

    nest = nest.map_lines(without_start)._replace(writes=writes)
    return [spread._replace(nest=nest), *combining]


def columns_of(size: int) -> int:
    """Return how many neighbours of a result of `size` elements a block combines: a power of two."""
    return min(GROUP, 1 << (max(size, 1) - 1).bit_length())


def combination(node: Node, memory: Value, root: Value, start: Access | None) -> Nest:
    """Return the nest that folds copies of a result, and the access that they are added to, into `root`.

    Args:
        node: the reduction.
        memory: the copies, one after the other.
        root: where the result goes.
        start: the access that it is added to; None if there is none.
    """
    count, size = memory.shape[0], root.aval.size
    element = Value(Aval((), None, root.dtype), None)
    fold = Node(OPS["sum"] if start is not None else node.op, (element,), {}, None)
    total = Value(Aval((), None, root.dtype), None)
    fold.makes((total,))
    reads = [Access(memory, 0, (1, size), root.dtype)]
    last: list[Line] = [Store(0, total)]
    if start is not None:
        reads.append(Access(start.root, start.offset, (1, 0), start.dtype))
        given, added, result = [
            Value(Aval((), None, kind), None) for kind in (start.dtype, root.dtype, root.dtype)
        ]
        conversion = Node(OPS["cast"], (given,), {"dtype": root.dtype}, None)
        conversion.makes((added,))
        addition = Node(OPS["add"], (total, added), {}, None)
        addition.makes((result,))
        last = [
            Load(1, 1), Compute(added, conversion, (1,)), Compute(result, addition, (total, added)), Store(0, result),
        ]  # fmt: skip
    write = Access(root, 0, (1, 0), root.dtype)
    full: list[Line] = [Load(0, 0), RowFold(total, fold, 0)]
    return Nest((size, count), 1, reads, [write], [[], last], [full], [node])
