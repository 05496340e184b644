# SPDX-License-Identifier: BSD-3-Clause
"""sections: cuts launches over the same rows alike, so that a thread runs many of them without waiting.

Note [sections]
A step works on a batch, and most of its launches take each row by itself: a layer forward, its activation, the loss of
a row, the adjoint by the inputs. If all these are cut at the same rows, one thread can take the first rows through all
of them while another thread takes the other rows: the two share no memory that is written, and each finds its own
results in its cache. Such a run of launches is a section, and a thread's share of it is a band. Sums over rows (the
gradients of weights and biases) wait until the section is done; their launches form the next section.

Images count as rows too: a convolution or a pooling can compute some images of a batch by themselves, if images lie one
after the other. Convolutions that take long have parts of their own, which balance better and may be more than bands.

A launch can join a section if, in the memory that the section writes, each band of the launch touches only the part
that belongs to that band: its rows have the same period in memory, and bands meet in the same places. A launch that
cannot join is deferred until after the section, with all launches that depend on it, or runs before the section if it
depends on nothing in it.

A sum over rows is accumulated by each band in memory of its own, and combined afterwards; a sum that is added to such a
sum, as in a loop over time, goes on in the same memory, and only the last one is combined. The same holds for products
whose results are small compared with their factors, or are added to many times. Other products that sum over rows run
as a whole in one of the bands: if they were cut, each band would read what all others have written, which comes from
the caches of other CPUs.

Bands depend on sizes only, as all parts do (Note [parts]). On one thread they cost time: there are more launches, and
each reads the weights again.
"""

from collections import Counter, deque
from collections.abc import Container, Hashable, Sequence

from tracejit.ir import Value
from tracejit.ops.op import Cut, RangeCut
from tracejit.passes import cost
from tracejit.passes.loops import bands, parts, products
from tracejit.passes.loops.bands import cuts_by_images, cuts_of_product, rows_of_nest
from tracejit.passes.loops.launches import (
    Blocks,
    KernelLaunch,
    Launch,
    LoopLaunch,
    NestLaunch,
    Section,
    Single,
    product_launch,
)
from tracejit.passes.loops.nest import Accumulate, Nest, RowFold, read_in_place
from tracejit.passes.loops.products import Product
from tracejit.passes.loops.tiles import untiled
from tracejit.passes.schedule.section_builder import BandGrid, Candidate, SectionBuilder, Surroundings
from tracejit.util.named_tuples import NamedTuple

_STEPS = 8  # tries to begin a section with the launches of a window, at most


class Schedule(NamedTuple):
    """Launches in an order and in parts that several threads can run.

    launches    in order
    elsewhere   nests that other sizes of the same arrays would launch in addition, by what their kernels depend on
    """

    launches: list[Launch]
    elsewhere: dict[Hashable, Nest]


def schedule(launches: Sequence[Single], external: Container[Value]) -> Schedule:
    """Return the schedule of launches.

    Args:
        launches: in the order of the program.
        external: roots that are inputs or outputs of the program.
    """
    scheduler = _Scheduler(launches, external)
    return Schedule(scheduler.run(), scheduler.elsewhere)


class _Scheduler:
    def __init__(self, launches: Sequence[Single], external: Container[Value]) -> None:
        self.external = external
        self.elsewhere: dict[Hashable, Nest] = {}
        launches = [part for launch in launches for part in _apart(launch)]
        self.writers = Counter([root for launch in launches for root in launch.writes])
        self.waiting = deque(map(self.candidate, launches))
        readers = Counter([root for candidate in self.waiting for root in candidate.reads])
        self.surroundings = Surroundings(external, readers)
        self.scheduled: list[Launch] = []

    def run(self) -> list[Launch]:
        while self.waiting:
            builder = self.next_section()
            if builder is None:
                continue
            for candidate in builder.before:
                self.scheduled += self.alone(candidate.launch)
            self.scheduled.append(builder.section())
            remaining = builder.remaining()
            self.surroundings.earlier.update(builder.memory.written)
            self.surroundings.deferred_ns = sum([candidate.ns for candidate in remaining])
            self.waiting.extendleft(reversed(remaining))
        return self.scheduled

    def next_section(self) -> SectionBuilder | None:
        """Return a section of the next launches, or None if some of them are scheduled as they are."""
        grid = BandGrid(bands.MOST_BANDS)
        while True:
            window: list[Candidate] = []
            builder = SectionBuilder(self.surroundings, grid)
            while self.waiting and not builder.is_full:
                window.append(self.waiting.popleft())
                builder.add(window[-1])
            if builder.better_grid is None:
                break
            grid = builder.better_grid
            self.waiting.extendleft(reversed(window))
        if builder.is_worth_it:
            return builder
        count = len(window)
        if builder.launches and (self.waiting or _ns(window) >= cost.LEAST_SECTION_NS):
            # What follows the first launch that was deferred may still begin a section.
            count = max(1, builder.in_order, len(window) // _STEPS)
        self.waiting.extendleft(reversed(window[count:]))
        for candidate in window[:count]:
            self.scheduled += self.alone(candidate.launch)
        return None

    def candidate(self, launch: Single) -> Candidate:
        """Return a launch with the ways to cut it into bands."""
        if isinstance(launch, NestLaunch):
            divisible = parts.divisible(launch.nest, self.scratch(launch.nest), bands.MOST_BANDS)
            is_one = divisible is None or divisible.extent < 2
            self.note(([] if divisible is None else divisible.combining) + untiled(launch.nest))
            return Candidate(
                launch, launch.nest.ns, [] if is_one or divisible is None else [rows_of_nest(divisible)]
            )
        if isinstance(launch, LoopLaunch):
            return Candidate(launch)
        product = launch.whole
        if not isinstance(product, Product):
            return Candidate(launch, *cuts_by_images(launch))
        root = product.out.access.root
        writers = self.writers[root]
        if launch.node is not None:
            self.note([parts.sum_of_parts(parts.memory_of_parts(root, 2), root, launch.node)])
        return Candidate(launch, product.ns, cuts_of_product(product, launch.name, writers))

    def note(self, nests: Sequence[Nest]) -> None:
        """Note nests that other sizes launch."""
        for nest in nests:
            self.elsewhere.setdefault(_likeness(nest), nest)

    def scratch(self, nest: Nest) -> set[Value]:
        """Return the roots of memory that holds one row at a time."""
        return {a.root for a in nest.writes if a.root.node is None and a.root not in self.external}

    def alone(self, launch: Single) -> list[Launch]:
        """Return a launch by itself, in parts if it takes long."""
        if isinstance(launch, NestLaunch):
            split = parts.split_nest(launch.nest, self.scratch(launch.nest))
            if split is None:
                return [launch]
            return [Section([[NestLaunch(nest)] for nest in split.nests]), *map(NestLaunch, split.combining)]
        pieces: list[Single] = [launch]
        if isinstance(launch, LoopLaunch):
            return [launch]
        if isinstance(launch.whole, Product):
            parts_of = products.parts_of(launch.whole, launch.name)
            pieces = [product_launch(part, launch.name, launch.node, launch.whole) for part in parts_of]
        elif isinstance(launch.whole, Blocks):
            pieces = _parts_of_blocks(launch, launch.whole)
        elif launch.whole is not None:
            pieces = _parts_of_kernel(launch, launch.whole)
        return [launch] if len(pieces) == 1 else [Section([[piece] for piece in pieces])]


def _likeness(nest: Nest) -> Hashable:
    """Return what the kernel of a nest that adds up parts, or that copies rows, depends on."""
    folds = [line.node.op.name for line in nest.lines if isinstance(line, Accumulate | RowFold)]
    accesses = [
        (access.dtype, tuple([min(stride, 3) for stride in access.strides]))
        for access in (*nest.reads, *nest.writes)
    ]
    return *folds, *accesses, *read_in_place(nest).items()


def _apart(launch: Single) -> list[Single]:
    """Return the launches that a launch is cut into before its parts."""
    if not isinstance(launch, NestLaunch):
        return [launch]
    return [NestLaunch(nest) for nest in parts.tail_apart(launch.nest)]


def _ns(window: Sequence[Candidate]) -> float:
    return sum([candidate.ns for candidate in window])


def _parts_of_blocks(launch: KernelLaunch, blocks: Blocks) -> list[Single]:
    """Return a launch in parts of its blocks."""
    if blocks.parts == 1:
        return [launch]
    *pointers, out = launch.pointers
    return [
        launch._replace(
            numbers=(start, stop, *launch.numbers[2:]), pointers=(*pointers, out.moved(part * blocks.step))
        )
        for part, (start, stop) in enumerate(parts.bounds(blocks.total, blocks.parts, blocks.unit))
    ]


def _parts_of_kernel(launch: KernelLaunch, cut: Cut | RangeCut) -> list[Single]:
    """Return a launch in parts of its output, or of its rows, one if it does not take long."""
    if isinstance(cut, RangeCut):
        rows = cut.rows(launch.numbers)
        count = cost.count_of_parts(cut.ns(launch.numbers), rows)
        return [
            launch._replace(numbers=(start, stop, *launch.numbers[2:]))
            for start, stop in parts.bounds(rows, count)
        ]
    *read, out = launch.pointers
    size = out.root.aval.size
    count = cost.count_of_parts(cut.ns * size, size // cut.unit)
    return [
        launch._replace(
            numbers=tuple(cut.numbers(launch.numbers, start, stop)),
            pointers=(*read, out.moved(start)),
        )
        for start, stop in parts.bounds(size, count, cut.unit)
    ]
