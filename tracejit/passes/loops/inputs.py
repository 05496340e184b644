# SPDX-License-Identifier: BSD-3-Clause
"""inputs: has launches write the new contents of inputs into the memory of the inputs.

Note [written inputs]
A function that writes into an argument (`p -= rate * g`) computes new contents for it. A loop over elements stores them
in the memory of the argument itself, if no old element is needed once it is overwritten: every reader of old contents
has run before, or is the loop itself, which reads the element that it overwrites. Then nothing is allocated and nothing
is copied. So are elements at computed places (Note [writes at places] in places.py). New contents that are also a
result are stored twice, by the same loop. All other contents have memory in the arena, and are copied into the argument
when everything else has run.

Where old contents are read later, the launches that write inputs come last, with all launches that depend on them. In a
program with a guard, or with checked indices, they always come last: they are its commits, which run only if the
results count. A call of Python, which may fail, is such a condition too. Without a condition they are scheduled
together with the others. From here on, memory of an input is one root, and its launches keep their order as those of
any root do.

Kernels take memory that they write as disjoint from memory that they read (Note [aliasing] in
kernels/intrinsics/pointers.py). So a loop that reads and writes elements of an input does both through one pointer
(codegen/nest_memory.py).
"""

from collections.abc import Collection, Container, Iterable, Mapping, Sequence

from tracejit.ir import Value
from tracejit.ops.op import Layout, contiguous
from tracejit.passes.loops.builder import LaunchBuilder
from tracejit.passes.loops.launches import LoopLaunch, NestLaunch, Single, copied
from tracejit.passes.loops.nest import (
    MOST_WRITES,
    Access,
    Accumulate,
    Line,
    Load,
    Nest,
    Store,
    read_in_place,
    storing_also,
)
from tracejit.passes.loops.places import check_first, versions_of, writes_at_places
from tracejit.passes.loops.products import Matrices, Product
from tracejit.util.named_tuples import NamedTuple


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
    builder: LaunchBuilder,
    contents: Sequence[Contents],
    conditions: Sequence[Value],
    external: Collection[Value],
) -> tuple[list[Single], list[Single]]:
    """Return the launches of a program that writes inputs, and its commits (Note [written inputs]).

    Args:
        builder: has the launches so far.
        contents: the new contents, which some of them compute.
        conditions: roots whose values say whether the results count.
        external: roots that are inputs or outputs of the program.
    """
    order = _order_of(builder.launches, contents, conditions, external)
    at_places = not builder.for_device and any(map(writes_at_places, builder.launches))
    if at_places and len(order.in_place) < len(contents):
        checked = check_first(builder.launches, [content.root for content in contents])
        other = _order_of(checked, contents, conditions, external)
        if len(other.in_place) > len(order.in_place):
            order = other
    launches = (*order.first, *order.last)
    moved = {id(launch): _moved(launch, order.in_place) for launch in launches} if order.in_place else {}
    first, last = (
        [moved.get(id(launch), launch) for launch in some if not _is_idle(launch, order.in_place)]
        for some in (order.first, order.last)
    )
    if not conditions:
        first, last = first + last, []
    copies = LaunchBuilder(builder.fused)
    for root, target, layout in contents:
        if root not in order.in_place:
            copies.copy_whole((root, contiguous(layout.shape)), (target, layout))
    return first, last + copies.launches


class _Order(NamedTuple):
    """An order of launches.

    first       those that come first
    last        those that come last
    in_place    the contents that may be computed in the memory of their inputs, with these
    """

    first: Sequence[Single]
    last: Sequence[Single]
    in_place: dict[Value, Value]


def _order_of(
    launches: Sequence[Single],
    contents: Sequence[Contents],
    conditions: Sequence[Value],
    external: Collection[Value],
) -> _Order:
    """Return an order in which contents can be computed in place."""
    dense = [
        content
        for content in contents
        if content.layout == contiguous(content.layout.shape) and content.root.dtype == content.target.dtype
    ]
    if conditions:
        deciding = _writing(launches, conditions)
        if not deciding.isdisjoint(_depending(launches, {content.root for content in dense})):
            # What a condition depends on is no content yet.
            dense = [
                content for content in dense if deciding.isdisjoint(_depending(launches, {content.root}))
            ]
        late = {content.root for content in dense}
        earlier = versions_of(launches, late) - set(external)
        if deciding.isdisjoint(_depending(launches, earlier)):
            late |= earlier
        return _ordered(launches, dense, external, late, is_late=True)
    # A loop that follows what it reads finds that in the caches: launches are moved only where that helps.
    order = _ordered(launches, dense, external, set())
    waiting = {content.root for content in dense if content.root not in order.in_place}
    if waiting:
        other = _ordered(launches, dense, external, waiting)
        if len(other.in_place) > len(order.in_place):
            return other
    return order


def _ordered(
    launches: Sequence[Single],
    contents: Sequence[Contents],
    external: Collection[Value],
    late_roots: set[Value],
    is_late: bool = False,
) -> _Order:
    """Return the order in which launches come last that write one of these roots, or depend on one that does.

    `is_late` says whether only those may write inputs.
    """
    late = _depending(launches, late_roots)
    first = [launch for i, launch in enumerate(launches) if i not in late]
    last = [launch for i, launch in enumerate(launches) if i in late]
    uses = _Uses((*first, *last), len(first) if is_late else 0)
    taken = {content.root for content in contents}
    in_place: dict[Value, Value] = {}
    for root, target, _ in contents:
        versions = uses.versions(root, taken, external)
        while versions and not uses.are_in_place(versions, target):
            versions.pop()
        in_place.update(dict.fromkeys(versions, target))
        taken.update(versions)
    return _Order(first, last, in_place)


class _Uses:
    """The launches that read and write each root, with their places in an order.

    Args:
        launches: in that order.
        start: the place of the first launch that may write an input.
    """

    def __init__(self, launches: Sequence[Single], start: int) -> None:
        self.start = start
        self.reading: dict[Value, list[tuple[int, Single]]] = {}
        self.writing: dict[Value, list[tuple[int, Single]]] = {}
        for place, launch in enumerate(launches):
            for uses, roots in ((self.reading, launch.reads), (self.writing, launch.writes)):
                for root in dict.fromkeys(roots):
                    uses.setdefault(root, []).append((place, launch))

    def versions(self, root: Value, taken: Container[Value], external: Container[Value]) -> list[Value]:
        """Return new contents, and before them what they are a copy of, as far as all may share memory, latest first.

        A loop that writes one row after the other makes such copies; in one place they need not be copied.
        """
        versions = [root]
        while True:
            writers = self.writing.get(versions[-1], ())
            if len(writers) < 2:
                return versions
            (_, copying), (place, launch), *_ = writers
            source = copied(copying)
            if source is None or source in taken or source in external or source not in self.writing:
                return versions
            readers = [use for use in self.reading[source] if use[1] is not copying]
            if (
                source.dtype != root.dtype
                or self.writing[source][0][0] < self.start
                or self.writing[source][-1][0] >= place
                or not self._is_stored(versions[-1])
                or not all(_is_before(*use, place, launch, versions[-1], source) for use in readers)
            ):
                return versions
            versions.append(source)

    def are_in_place(self, versions: Sequence[Value], target: Value) -> bool:
        """Return whether versions, latest first, may be computed in the memory of an input that others read."""
        root = versions[-1]
        writers = [use for use in self.writing.get(root, ()) if not _copies(use[1], root, target)]
        if not writers:  # the first version is the old contents
            if len(versions) == 1:
                return True
            root = versions[-2]
            writers = self.writing[root][1:]
        place, first = writers[0]
        return self._is_stored(root) and all(
            # Later writers may overwrite what an earlier one has written.
            _is_before(*use, place, first, root, target)
            for use in self.reading.get(target, ())
            if use[0] >= place or not _copies(use[1], root, target)
        )

    def _is_stored(self, root: Value) -> bool:
        return all(
            (isinstance(launch, NestLaunch) and _is_alone(launch.nest, root)) or writes_at_places(launch)
            for _, launch in self.writing[root]
        )


def _is_before(place: int, launch: Single, begin: int, writer: Single, root: Value, old: Value) -> bool:
    """Return whether a launch reads old contents before another writes new ones, or both are the same and it does."""
    if place == begin:
        return isinstance(writer, NestLaunch) and _reads_before(writer.nest, root, old)
    return place < begin


def store_twice(builder: LaunchBuilder, root: Value, copy: Value) -> bool:
    """Have the loops that store `root` store a copy of it too; return whether they do."""
    writers = [number for number, launch in enumerate(builder.launches) if root in launch.writes]
    doubled = []
    for number in writers:
        launch = builder.launches[number]
        if not isinstance(launch, NestLaunch) or not _is_alone(launch.nest, root):
            return False
        nest = launch.nest
        writes = list(nest.writes)
        further = {}
        for k, access in enumerate(nest.writes):
            if access.root is root:
                further[k] = [len(writes)]
                writes.append(access._replace(root=copy))
        if len(writes) > MOST_WRITES:
            return False
        doubled.append(NestLaunch(storing_also(nest._replace(writes=writes), further)))
    for number, launch in zip(writers, doubled, strict=True):
        builder.launches[number] = launch
    return bool(writers)


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
    return root in launch.writes and copied(launch) is target


def _is_idle(launch: Single, targets: Mapping[Value, Value]) -> bool:
    """Return whether a launch would copy an input to itself."""
    source = copied(launch)
    if source is None:
        return False
    (root,) = launch.writes
    return root in targets and targets.get(source, source) is targets[root]


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
    if isinstance(launch, LoopLaunch):
        return launch.with_memory(moved)
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
