# SPDX-License-Identifier: BSD-3-Clause
"""SectionBuilder: takes launches one by one, and cuts those that can run in bands alike (Note [sections])."""

import math
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from functools import lru_cache
from itertools import pairwise, zip_longest

from tracejit.aval import Aval
from tracejit.ir import Node, Value
from tracejit.ops import OPS
from tracejit.passes import cost
from tracejit.passes.loops import parts
from tracejit.passes.loops.bands import ByImages, RowCut, bands_of_images, bands_of_product, sums_of_product
from tracejit.passes.loops.launches import Blocks, KernelLaunch, NestLaunch, Section, Single
from tracejit.passes.loops.nest import Nest
from tracejit.passes.loops.parts import Divisible, PartialSum
from tracejit.passes.loops.products import Product
from tracejit.util.named_tuples import NamedTuple

_WINDOW = 64  # deferred launches, at most, in addition to four for each launch that joins

Partition = tuple[int, ...]  # how bands share memory: its period, and the elements where bands meet
Bounds = tuple[int, ...]  # the rows where the bands of a launch begin, and the end of the last one


class Candidate:
    """A launch that may join a section: about how long it takes, its reads and writes, and ways to cut it."""

    __slots__ = ("_cuts", "_more_cuts", "launch", "ns", "reads", "writes")

    def __init__(self, launch: Single, ns: float = 0.0, cuts: Iterable[RowCut] = ()) -> None:
        self.launch = launch
        self.ns = ns
        self.reads = frozenset(launch.reads)
        self.writes = frozenset(launch.writes)
        self._cuts: list[RowCut] = []
        self._more_cuts = iter(cuts)

    @classmethod
    def of_nest(cls, nest: Nest) -> "Candidate":
        """Return the launch of a nest that can only run as a whole."""
        return cls(NestLaunch(nest), nest.ns)

    def cuts(self) -> Iterator[RowCut]:
        """Give the ways to cut the launch, the best first; each is computed when it is asked for."""
        yield from self._cuts
        for cut in self._more_cuts:
            self._cuts.append(cut)
            yield cut


class Surroundings:
    """The launches around a section.

    external        roots that are inputs or outputs of the program
    readers         how many launches read a root
    earlier         the partitions of what earlier sections wrote
    deferred_ns     about how long the launches take that the last section deferred
    """

    def __init__(self, external: Container[Value], readers: Counter[Value]) -> None:
        self.external = external
        self.readers = readers
        self.earlier: dict[Value, Partition] = {}
        self.deferred_ns = 0.0


class BandGrid(NamedTuple):
    """The cut of a section: into at most `most` bands, whose edges are multiples of one of `granules` equal parts.

    The first launch that joins decides granules of 0.
    """

    most: int
    granules: int = 0


class _Footprint:
    """The memory that a launch touches: for each root its partition, or None if bands may touch all of it."""

    def __init__(self, cut: RowCut, bounds: Bounds, continued: Container[Value]) -> None:
        self.partitions: dict[Value, Partition | None] = {}
        self.written: set[Value] = set()
        partitions = self.partitions
        for root, stride, period, is_written in cut.spans:
            partition = None if period is None else _partition(period, stride, bounds)
            partitions[root] = partition if partitions.get(root, partition) == partition else None
            if is_written:
                self.written.add(root)
        for root in cut.wholly_read:
            if root not in continued:
                partitions[root] = None


class _SectionMemory:
    """The memory that a section touches.

    written         the partitions of what it writes
    read            those of what else it reads; None where a band may read all of it
    arena_bytes     the size of what it writes into the arena
    """

    def __init__(self) -> None:
        self.written: dict[Value, Partition] = {}
        self.read: dict[Value, Partition | None] = {}
        self.arena_bytes = 0

    def admits(self, footprint: _Footprint) -> bool:
        """Return whether each band of a launch keeps to memory that no other band of the section writes."""
        for root, partition in footprint.partitions.items():
            if self.written.get(root, partition) != partition:
                return False
            if root in footprint.written and (
                partition is None or self.read.get(root, partition) != partition
            ):
                return False
        return True

    def add(self, footprint: _Footprint, external: Container[Value]) -> None:
        for root, partition in footprint.partitions.items():
            if partition is not None and root in footprint.written:
                if root not in self.written and root not in external:
                    self.arena_bytes += root.aval.size * root.dtype.itemsize
                self.written[root] = partition
            else:
                self.read[root] = partition if self.read.get(root, partition) == partition else None


class _Deferred:
    """The launches that come after a section; some combine a sum of the section's bands."""

    def __init__(self) -> None:
        self.launches: list[tuple[Candidate, Value | None]] = []
        self.reads: set[Value] = set()
        self.writes: set[Value] = set()

    def add(self, candidate: Candidate, combines: Value | None = None) -> None:
        self.launches.append((candidate, combines))
        self.reads |= candidate.reads
        self.writes |= candidate.writes


class _Sums:
    """Sums over rows, which bands accumulate in memory of their own.

    of_nests        what the bands of nests have accumulated, by the root of the sum
    of_products     the same of products: the memory of all bands, and the first product
    continued       how many launches went on with a sum
    """

    def __init__(self) -> None:
        self.of_nests: dict[Value, PartialSum] = {}
        self.of_products: dict[Value, tuple[Value, KernelLaunch]] = {}
        self.continued: Counter[Value] = Counter()

    def continued_by(self, candidate: Candidate, cut: RowCut) -> Container[Value]:
        """Return the sums of nests that a launch goes on with."""
        if self.of_nests.keys().isdisjoint(candidate.reads):
            return ()
        return {root for root in candidate.reads if root in self.of_nests and cut.only_adds_to(root)}


class SectionBuilder:
    """Cuts launches into the bands of one section, and keeps those that have to run before or after it."""

    def __init__(self, surroundings: Surroundings, grid: BandGrid) -> None:
        self.surroundings = surroundings
        self.grid = grid
        self.better_grid: BandGrid | None = (
            None  # one that a launch could join which cannot join this section
        )
        self.edges: list[int] = []  # of the bands, in granules
        self.ns = 0.0
        self.band_ns: list[float] = []
        self.in_order = 0  # launches before the first that was deferred
        self.before: list[Candidate] = []
        self.launches: list[list[Single]] = []  # each in bands
        self.memory = _SectionMemory()
        self.deferred = _Deferred()
        self.sums = _Sums()
        self.is_of_images = (
            False  # a product of few rows after convolutions is not worth fewer bands of these
        )

    @property
    def count(self) -> int:
        """The number of bands, 0 before the first launch has joined."""
        return len(self.band_ns)

    @property
    def is_full(self) -> bool:
        """True if no further launch should join."""
        return (
            self.better_grid is not None
            or self.memory.arena_bytes > cost.MOST_SECTION_BYTES
            or len(self.deferred.launches) > _WINDOW + 4 * len(self.launches)
        )

    @property
    def is_worth_it(self) -> bool:
        """True if the section takes long enough to be shared among threads."""
        return self.ns >= cost.LEAST_SECTION_NS and len(self.launches) > 1

    def section(self) -> Section:
        return Section([[bands[band] for bands in self.launches] for band in range(self.count)])

    def remaining(self) -> list[Candidate]:
        """Return the launches that come after the section."""
        readers, external = self.surroundings.readers, self.surroundings.external
        candidates = [Candidate.of_nest(_total(*pair)) for pair in self.sums.of_products.values()]
        for candidate, combines in self.deferred.launches:
            # A sum that was only added to is part of the sum that came of it.
            if (
                combines is None
                or combines in external
                or self.sums.continued.get(combines) != readers[combines]
            ):
                candidates.append(candidate)
        return candidates

    def add(self, candidate: Candidate) -> None:
        """Add a launch to the section if it can join, otherwise before or after it."""
        self._place(candidate)
        if not self.deferred.launches:
            self.in_order += 1

    def _place(self, candidate: Candidate) -> None:
        is_tiny = candidate.ns < cost.TINY_NS and isinstance(candidate.launch, NestLaunch)
        if is_tiny and self._may_precede(candidate):
            self.before.append(candidate)
            return
        can_be_cut = False
        for cut in candidate.cuts():
            can_be_cut = True
            if self._join(candidate, cut):
                return
        is_small = not can_be_cut or candidate.ns < cost.SMALL_NS or not self.launches
        if is_small and self._may_precede(candidate):
            self.before.append(candidate)
        else:
            self.deferred.add(candidate)

    def _may_precede(self, candidate: Candidate) -> bool:
        """Return whether a launch depends on nothing that is in the section or deferred."""
        reads, writes = candidate.reads, candidate.writes
        written, read = self.memory.written.keys(), self.memory.read.keys()
        return (
            written.isdisjoint(reads)
            and reads.isdisjoint(self.deferred.writes)
            and written.isdisjoint(writes)
            and read.isdisjoint(writes)
            and writes.isdisjoint(self.deferred.writes)
            and writes.isdisjoint(self.deferred.reads)
        )

    def _join(self, candidate: Candidate, cut: RowCut) -> bool:
        """Add a launch to the section, cut into bands, if it can join; return whether it did."""
        continued = self.sums.continued_by(candidate, cut)
        if not self._is_ready(candidate, cut, continued):
            return False
        if not self.count and not self._choose_bands(cut):
            return False
        bounds = self._bounds(candidate, cut)
        if bounds is None:
            return False
        footprint = _Footprint(cut, bounds, continued)
        if not self.memory.admits(footprint):
            return False
        self.memory.add(footprint, self.surroundings.external)
        self._append(candidate, cut, bounds)
        return True

    def _is_ready(self, candidate: Candidate, cut: RowCut, continued: Container[Value]) -> bool:
        """Return whether a launch depends on nothing that is deferred, apart from sums that it goes on with."""
        deferred = self.deferred
        if not deferred.writes.isdisjoint(candidate.reads):
            for root in candidate.reads:
                if root in deferred.writes and root not in continued:
                    return False
        if not candidate.writes.isdisjoint(deferred.reads):
            return False
        if cut.axis != "depth":
            return candidate.writes.isdisjoint(deferred.writes)
        (root,) = candidate.writes
        memory = self.memory
        return root in self.sums.of_products or not (
            root in deferred.writes or root in memory.written or root in memory.read
        )

    def _choose_bands(self, cut: RowCut) -> bool:
        """Choose the bands by the first launch; return whether it has enough rows."""
        granules = self.grid.granules or cut.extent
        count = self.grid.most
        while count > 1 and (granules < count or cut.extent < count * cut.least or cut.most < count):
            count //= 2
        if count < 2:
            return False
        self.grid = BandGrid(self.grid.most, granules)
        self.edges = [granules * band // count for band in range(count + 1)]
        self.band_ns = [0.0] * count
        return True

    def _bounds(self, candidate: Candidate, cut: RowCut) -> Bounds | None:
        """Return the rows where the bands of a launch begin, and the end, or None if it cannot join."""
        for span in cut.spans:
            partition = self.memory.written.get(span.root)
            if partition is not None:
                return self._bounds_in_memory(partition, span.stride, cut)
        count, extent, granules = self.count, cut.extent, self.grid.granules
        scaled = [extent * edge for edge in self.edges]
        if candidate.ns * count <= self.surroundings.deferred_ns and self._crosses_bands(cut, scaled):
            band = self.band_ns.index(min(self.band_ns))
            return (0,) * (band + 1) + (extent,) * (count - band)
        fit = min(cut.most, extent // cut.least)
        if fit >= count and all(edge % granules == 0 for edge in scaled):
            return tuple([edge // granules for edge in scaled])
        if fit < 2:
            return None
        pieces = min(1 << fit.bit_length() - 1, count)
        # If these are fewer than bands, some bands do nothing.
        return tuple([extent * (band * pieces // count) // pieces for band in range(count + 1)])

    def _bounds_in_memory(self, partition: Partition, stride: int, cut: RowCut) -> Bounds | None:
        """Return the rows where bands meet in memory; None if bands meet within rows, or have too few."""
        for span in cut.spans:
            other = self.memory.written.get(span.root)
            if other is not None and other[0] != span.period:
                return None
        bounds, fewest = _bounds_at(partition, stride)
        if bounds is not None and fewest >= cut.least and self.count <= cut.most:
            return bounds
        fit = min(cut.most, cut.extent // cut.least)
        is_worth_it = not (self.is_of_images and isinstance(cut.source, Product))
        if fit > 1 and is_worth_it and self.memory.written.keys().isdisjoint(cut.wholly_read):
            # With fewer bands, or bands that begin elsewhere, it could join.
            most = min(1 << fit.bit_length() - 1, self.grid.most)
            grid = BandGrid(most, math.gcd(self.grid.granules, cut.extent))
            if grid != self.grid and grid.granules >= most:
                self.better_grid = grid
        return None

    def _crosses_bands(self, cut: RowCut, scaled: list[int]) -> bool:
        """Return whether bands of a product would each read what several bands of earlier sections wrote."""
        earlier = self.surroundings.earlier
        if not isinstance(cut.source, Product):
            return False
        if not earlier.keys().isdisjoint(cut.wholly_read):
            return True
        for root, stride, period, _ in cut.spans:
            partition = (period, *[stride * edge // self.grid.granules for edge in scaled])
            if earlier.get(root, partition) != partition:
                return True
        return False

    def _append(self, candidate: Candidate, cut: RowCut, bounds: Bounds) -> None:
        """Append a launch in bands."""
        launch, source = candidate.launch, cut.source
        ranges = list(pairwise(bounds))
        ns, extent = candidate.ns, cut.extent
        self.ns += ns
        for band, (start, stop) in enumerate(ranges):
            self.band_ns[band] += ns * (stop - start) / extent
        if isinstance(source, Divisible):
            self.launches.append(self._bands_of_nest(source, ranges))
            return
        assert isinstance(launch, KernelLaunch)
        if isinstance(source, ByImages):
            self.is_of_images = self.is_of_images or isinstance(launch.whole, Blocks)
            self.launches.append(bands_of_images(launch, source, ranges))
        elif cut.axis == "depth":
            self.launches.append(self._sums_of_product(launch, source, ranges))
        else:
            self.launches.append(bands_of_product(launch, cut, ranges))

    def _bands_of_nest(self, source: Divisible, ranges: list[tuple[int, int]]) -> list[Single]:
        """Return the launches of the bands of a nest, and defer those that combine its sums."""
        partial = self.sums.of_nests
        split = source.pieces(ranges, partial)
        for k, start in source.starts.items():
            root = source.nest.reads[start].root
            if k in source.sums and root in partial:
                self.sums.continued[root] += 1
        roots = [source.nest.writes[k].root for k in source.sums]
        for nest, root in zip_longest(split.combining, roots):
            if root is not None:
                memory, *start_read = nest.reads
                partial[root] = PartialSum(memory.root, start_read[0] if start_read else None)
            self.deferred.add(Candidate.of_nest(nest), root)
        return [NestLaunch(nest) for nest in split.nests]

    def _sums_of_product(
        self, launch: KernelLaunch, product: Product, ranges: list[tuple[int, int]]
    ) -> list[Single]:
        """Return the launches of the bands of a product that sums over their rows, in memory of each."""
        root = product.out.access.root
        sums = self.sums.of_products
        adds = root in sums
        if not adds:
            memory = parts.memory_of_parts(root, self.count)
            sums[root] = memory, launch
            self.deferred.writes.add(root)
        return sums_of_product(launch, product, ranges, sums[root][0], adds)


# The steps of a loop all meet the same few partitions and bounds.
@lru_cache(maxsize=4096)
def _partition(period: int, stride: int, bounds: Bounds) -> Partition:
    """Return the partition of memory whose bands have these rows, `stride` elements apart."""
    return (period, *[stride * bound for bound in bounds])


@lru_cache(maxsize=4096)
def _bounds_at(partition: Partition, stride: int) -> tuple[Bounds | None, int]:
    """Return the rows where bands meet in memory, None if that is within rows, and the rows of the smallest band."""
    rows = [divmod(edge, stride) for edge in partition[1:]]
    if any(rest for _, rest in rows):
        return None, 0
    bounds = tuple([row for row, _ in rows])
    return bounds, min([stop - start for start, stop in pairwise(bounds) if stop > start], default=0)


def _total(memory: Value, launch: KernelLaunch) -> Nest:
    """Return the nest that adds up what bands have summed, and adds it to the result if the first product did."""
    product = launch.whole
    assert isinstance(product, Product)
    out = product.out.access
    element = Value(Aval((), None, out.dtype), None)
    adding = Node(OPS["sum"], (element,), {}, None)
    adding.makes((element,))
    nest = parts.combine(adding, memory, out.root, out if product.add else None)
    return nest._replace(nodes=launch.nodes)
