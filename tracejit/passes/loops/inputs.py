# SPDX-License-Identifier: BSD-3-Clause
"""inputs: launches write the new contents of inputs into their memory.

Note [written inputs]
A function that writes into an argument (`p -= rate * g`) computes new contents for it. A loop over elements stores them
in the memory of the argument itself, if no old element is needed once it is overwritten: whoever reads old contents has
run before, or is the loop itself, which reads the element that it overwrites. Then nothing is allocated and nothing is
copied. All other contents have memory in the arena, and are copied into the argument when everything else has run.

The launches that write inputs, and those that depend on them, come last. So all others, which may read old contents,
have run. In a program with a guard, or with indices that are checked, these launches are its commits: they run only if
the results count. Without a condition they are scheduled together with the others: from here on, memory of an input is
one root, and its launches keep their order as those of any root do.

Kernels take memory that they write as disjoint from memory that they read (Note [aliasing] in
kernels/intrinsics/pointers.py). So a loop that reads and writes elements of an input does both through one pointer
(codegen/nest_memory.py).
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from tracejit.ir import Value
from tracejit.ops.op import Layout, contiguous
from tracejit.passes.loops.builder import LaunchBuilder
from tracejit.passes.loops.launches import NestLaunch, Single
from tracejit.passes.loops.nest import Access, Accumulate, Line, Load, Nest, Store, read_in_place
from tracejit.passes.loops.products import Matrices, Product


class Writes(NamedTuple):
    """The outputs of a graph that are new contents of inputs.

    targets     the number of the input, by the number of the output
    guarded     whether the last output says whether the others count
    """

    targets: Mapping[int, int] = MappingProxyType({})
    guarded: bool = False


NO_WRITES = Writes()


class Contents(NamedTuple):
    """New contents of an input.

    root        the memory that launches compute them in, contiguous
    target      the input
    layout      of the input
    """

    root: Value
    target: Value
    layout: Layout


def write_inputs(
    builder: LaunchBuilder, contents: Sequence[Contents], conditions: Sequence[Value]
) -> tuple[list[Single], list[Single]]:
    """Return the launches of a program that writes inputs, and its commits (Note [written inputs]).

    Args:
        builder: has the launches so far.
        contents: the new contents, which some of them compute.
        conditions: roots whose values say whether the results count.
    """
    in_order = _Order(builder.launches, contents, conditions)
    targets = {each.root: each.target for each in contents if in_order.is_in_place(each)}
    moved = {id(launch): _moved(launch, targets) for launch in builder.launches} if targets else {}
    first, last = (
        [moved.get(id(launch), launch) for launch in some if not _is_idle(launch, targets)]
        for some in (in_order.first, in_order.last)
    )
    if not conditions:
        first, last = first + last, []
    copies = LaunchBuilder(builder.fused)
    for root, target, layout in contents:
        if root not in targets:
            copies.copy((root, contiguous(layout.shape)), (target, layout))
    return first, last + copies.launches


class _Order:
    """The order of launches: first those that do not depend on one that may write an input, then the others."""

    def __init__(
        self, launches: Sequence[Single], contents: Sequence[Contents], conditions: Sequence[Value]
    ) -> None:
        candidates = {each.root for each in contents if each.layout == contiguous(each.layout.shape)}
        late = _depending(launches, candidates)
        self.is_late = late.isdisjoint(_writing(launches, conditions))
        if not self.is_late:  # the condition depends on new contents
            late = set()
        self.first = [launch for i, launch in enumerate(launches) if i not in late]
        self.last = [launch for i, launch in enumerate(launches) if i in late]
        self.candidates = candidates
        self.reading: dict[Value, list[Single]] = {}
        self.writing: dict[Value, list[Single]] = {}
        targets = {each.target for each in contents}
        # Old contents are read, new ones are written; what comes first reads before anything is written.
        for launch in self.last:
            for root in targets.intersection(launch.reads):
                self.reading.setdefault(root, []).append(launch)
            for root in candidates.intersection(launch.writes):
                self.writing.setdefault(root, []).append(launch)
        self.places = {id(launch): number for number, launch in enumerate(self.last)}

    def is_in_place(self, contents: Contents) -> bool:
        """Return whether all that compute new contents may do so in the memory of the input."""
        root, target, _ = contents
        if not self.is_late or root not in self.candidates or root.dtype != target.dtype:
            return False
        writers = [
            launch
            for launch in self.writing.get(root, ())
            if not _copies(launch, root, target)  # dropped
        ]
        if not all(isinstance(launch, NestLaunch) and _is_alone(launch.nest, root) for launch in writers):
            return False
        begin = min([self.places[id(launch)] for launch in writers], default=len(self.last))
        for launch in self.reading.get(target, ()):
            place = self.places[id(launch)]
            if place > begin:  # other writers may have written the same elements
                return False
            if place == begin and not (
                isinstance(launch, NestLaunch) and _reads_before(launch.nest, root, target)
            ):
                return False
        return True


def _depending(launches: Sequence[Single], roots: Iterable[Value]) -> set[int]:
    """Return the numbers of the launches that write these roots, and of all that have to come after one of them."""
    written, read = set(roots), set[Value]()
    late = set()
    for number, launch in enumerate(launches):
        reads, writes = launch.reads, launch.writes
        if not (written.isdisjoint(reads) and written.isdisjoint(writes) and read.isdisjoint(writes)):
            late.add(number)
            written.update(writes)
            read.update(reads)
    return late


def _writing(launches: Sequence[Single], roots: Sequence[Value]) -> set[int]:
    return {number for number, launch in enumerate(launches) if not set(roots).isdisjoint(launch.writes)}


def _copies(launch: Single, root: Value, target: Value) -> bool:
    """Return whether a launch only copies the old contents of an input to where its new contents will be."""
    if not isinstance(launch, NestLaunch) or launch.nest.nodes or len(launch.nest.reads) != 1:
        return False
    (read,), (write, *more) = launch.nest.reads, launch.nest.writes
    same = (read.offset, read.strides, read.dtype) == (write.offset, write.strides, write.dtype)
    return not more and same and read.root is target and write.root is root


def _is_idle(launch: Single, targets: Mapping[Value, Value]) -> bool:
    """Return whether a launch would copy an input to itself."""
    return any(_copies(launch, root, targets[root]) for root in launch.writes if root in targets)


def _is_alone(nest: Nest, root: Value) -> bool:
    """Return whether a nest stores what it writes into `root`, and accumulates nothing there."""
    writes = {k for k, access in enumerate(nest.writes) if access.root is root}
    return not any(isinstance(line, Accumulate) and line.write in writes for line in nest.lines)


def _reads_before(nest: Nest, root: Value, target: Value) -> bool:
    """Return whether each element of an input is read before the same iteration stores its new content in `root`."""
    writes = [k for k, access in enumerate(nest.writes) if access.root is root]
    reads = [k for k, access in enumerate(nest.reads) if access.root is target]
    if len(writes) != 1 or any(nest.reads[k]._replace(root=root) != nest.writes[writes[0]] for k in reads):
        return False
    if any(isinstance(line, Accumulate) and line.start in reads for line in nest.lines):
        return False
    groups = _groups(nest)
    stored = [
        number
        for number, (_, lines) in enumerate(groups)
        if any(isinstance(line, Store) and line.write == writes[0] for line in lines)
    ]
    loaded = [
        number
        for number, (_, lines) in enumerate(groups)
        if any(isinstance(line, Load) and line.read in reads for line in lines)
    ]
    if len(stored) != 1 or max(loaded, default=0) > stored[0]:
        return False
    # Each iteration has an element of its own: along all axes of the lines that store.
    depth = groups[stored[0]][0]
    strides = nest.writes[writes[0]].strides
    return all(
        (stride != 0 or extent == 1) if axis < depth else stride == 0
        for axis, (stride, extent) in enumerate(zip(strides, nest.extents, strict=True))
    )


def _groups(nest: Nest) -> list[tuple[int, list[Line]]]:
    """Return the groups of a nest's lines in the order in which they run, with the number of loops around each."""
    groups = []
    for number, lines in enumerate(nest.row):
        groups.append((nest.split or 0, lines))
        if number < len(nest.full):
            groups.append((len(nest.extents), nest.full[number]))
    return groups


def _moved(launch: Single, targets: Mapping[Value, Value]) -> Single:
    """Return a launch that finds the contents `targets` in the memory of their inputs."""
    if targets.keys().isdisjoint(launch.touched):
        return launch

    def moved(access: Access) -> Access:
        target = targets.get(access.root)
        return access if target is None else access._replace(root=target)

    if isinstance(launch, NestLaunch):
        nest = launch.nest
        reads, writes = list(map(moved, nest.reads)), list(map(moved, nest.writes))
        return NestLaunch(_loads_first(nest._replace(reads=reads, writes=writes)))
    whole = launch.whole
    if isinstance(whole, Product):
        x, y, out = (Matrices(moved(m.access), *m[1:]) for m in (whole.x, whole.y, whole.out))
        whole = whole._replace(x=x, y=y, out=out)
    return launch._replace(pointers=tuple(map(moved, launch.pointers)), whole=whole)


def _loads_first(nest: Nest) -> Nest:
    """Return a nest in which elements that are overwritten are loaded before any are stored."""
    old = read_in_place(nest)
    if not old:
        return nest

    def is_late(line: Line) -> bool:
        return not (isinstance(line, Load) and line.read in old)

    row, full = ([sorted(lines, key=is_late) for lines in groups] for groups in (nest.row, nest.full))
    return nest._replace(row=row, full=full)
