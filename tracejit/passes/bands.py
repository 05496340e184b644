# SPDX-License-Identifier: BSD-3-Clause
"""bands: launches that work on the same rows are cut alike, so that threads go through many of them without waiting.

Note [bands]
A step works on a batch, and most of what it launches takes each row by itself: a layer forward, its activation, the loss
of a row, the adjoint by the inputs. If all these are cut at the same rows, one thread can take the first rows through
all of them while another takes the others: they share nothing that is written, and each finds in its cache what it wrote
itself. Such a run of launches is a Section. What sums over rows (the gradients of weights and biases) waits until the
section is done; those launches form the next one, cut by rows of their results.

A launch can join a section if all that it reads or writes of what the section writes lies, for each band of rows, in the
part of memory that belongs to that band: it walks the memory with the same period and the same boundaries. A launch
that cannot join is put off until after the section, with all that depends on it, or goes before the section if it
depends on nothing in it.

A sum over rows is accumulated by each band in memory of its own, and combined afterwards; a sum that is added to such a
sum, as in a loop over time, goes on in the same memory, and only the last one is combined.

The bands depend on sizes alone, as all parts do (Note [parts]).
"""

import math
from collections import Counter, deque
from collections.abc import Container, Iterable, Sequence
from itertools import pairwise, zip_longest
from typing import NamedTuple

from tracejit.aval import Aval
from tracejit.ir import Node, Value
from tracejit.ops import OPS
from tracejit.ops.op import Cut
from tracejit.passes import parts, products
from tracejit.passes.launches import KernelLaunch, Launch, NestLaunch, Section, Single, product_launch
from tracejit.passes.lower import Access, Nest
from tracejit.passes.parts import Divisible, Running
from tracejit.passes.products import Matrices, Product

LEAST_NS = 40_000.0  # a section that takes less is not worth a second thread
BAND_ROWS = 16  # of a product, at least, where that leaves two bands
LEAST_ROWS = 8  # of any product: the rows of a tile
MOST_BANDS = 8
MOST_BYTES = (
    2 << 20
)  # that a section writes into the arena: more would not stay in a near cache, nor be used again
_WINDOW = 64  # launches that are put off, at most, beside four for each one that joins
_TINY_NS = 100.0  # what takes less, such as a copy of a bias, runs before the section if it can
_SMALL_NS = 1000.0  # what takes less may as well run before the section


class Walk(NamedTuple):
    """How a launch goes through the memory of `root`: rows `stride` elements apart, and within a row (extent, stride)."""

    root: Value
    offset: int
    stride: int
    inner: tuple[tuple[int, int], ...]
    is_written: bool

    def period(self, extent: int) -> int | None:
        """Return the elements that all rows together cover, or None if rows do not lie apart."""
        if self.stride <= 0:
            return None
        period = self.stride * extent
        reach = self.offset % period
        for count, stride in self.inner:
            if stride % period and count > 1:
                if stride < 0:
                    return None
                reach += stride * (count - 1)
        return period if reach < self.stride else None


class Rows(NamedTuple):
    """A launch as one that can be cut into bands of rows.

    extent      the number of rows
    least       how many a band needs, at least
    most        how many bands there may be
    walks       how it goes through memory
    wholly      what each band reads beyond its own rows
    source      the nest or product
    cut         what of a product the rows are: "rows" or "columns" of the result, "some" of a batch, or the "depth"
                along which it sums
    """

    extent: int
    least: int
    most: int
    walks: tuple[Walk, ...]
    wholly: frozenset[Value]
    source: Divisible | Product
    cut: str = "rows"


class Facts(NamedTuple):
    """What is known of a launch."""

    ns: float
    reads: frozenset[Value]
    writes: frozenset[Value]
    ways: tuple[Rows, ...]  # to cut it


def schedule(launches: Sequence[Single], placed: Container[Value]) -> list[Launch]:
    """Return launches in an order and in parts that several threads can run.

    Args:
        launches: in the order of the program.
        placed: roots that are inputs or outputs, which are not only memory in between.
    """
    return _Scheduler(launches, placed).run()


class _Scheduler:
    def __init__(self, launches: Sequence[Single], placed: Container[Value]) -> None:
        self.left = deque(launches)
        self.placed = placed
        self.done: list[Launch] = []
        self.facts: dict[int, tuple[Single, Facts]] = {}
        self.combining: set[int] = set()  # launches that combine sums of bands; they are as short as can be
        self.readers: Counter[Value] = Counter(root for launch in launches for root in set(launch.reads))
        self.writers: Counter[Value] = Counter(root for launch in launches for root in launch.writes)
        self.made: dict[Value, tuple[int, ...]] = {}  # what sections before wrote: where bands met
        self.expected_ns = 0.0  # of the launches that the last section put off

    def run(self) -> list[Launch]:
        while self.left:
            found = self.section()
            if found is None:
                continue
            self.done += [part for launch in found.before for part in self.alone(launch)]
            self.done.append(Section(found.tasks()))
            rest = found.rest()
            self.made.update(found.keys)
            self.expected_ns = sum(self.known(launch).ns for launch in rest)
            self.left.extendleft(reversed(rest))
        return self.done

    def section(self) -> "_Forming | None":
        """Take a section from the launches that are left, or else some of them as they are."""
        bands: int = MOST_BANDS
        granules: int | None = None
        while True:
            window: list[Single] = []
            found = _Forming(self, bands, granules)
            while self.left and not found.is_full:
                window.append(self.left.popleft())
                found.offer(window[-1])
            if found.better is None:
                break
            bands, granules = found.better
            self.left.extendleft(reversed(window))
        if found.ns >= LEAST_NS and len(found.items) > 1:
            return found
        taken = max(1, len(window) // 2) if self.left and found.items else len(window)
        self.left.extendleft(reversed(window[taken:]))
        for launch in window[:taken]:
            self.done += self.alone(launch)
        return None

    def alone(self, launch: Single) -> list[Launch]:
        """Return a launch by itself, in parts if it takes long."""
        if isinstance(launch, NestLaunch):
            split = parts.split_nest(launch.nest, self.scratch(launch.nest))
            if split is None:
                return [launch]
            return [
                Section([[NestLaunch(part)] for part in split.nests]),
                *(NestLaunch(combining) for combining in split.combining),
            ]
        cut: list[Single] = [launch]
        if isinstance(launch.whole, Product):
            pieces = products.parts_of(launch.whole, launch.name == "panels")
            cut = [product_launch(piece, launch.name, launch.node) for piece in pieces]
        elif launch.whole is not None:
            cut = _cut(launch, launch.whole)
        return [launch] if len(cut) == 1 else [Section([[part] for part in cut])]

    def scratch(self, nest: Nest) -> set[Value]:
        """Return the roots of memory that holds one row at a time."""
        return {a.root for a in nest.writes if a.root.node is None and a.root not in self.placed}

    def known(self, launch: Single) -> Facts:
        found = self.facts.get(id(launch))
        if found is None:
            found = self.facts[id(launch)] = (launch, self.examine(launch))
        return found[1]

    def examine(self, launch: Single) -> Facts:
        reads, writes = frozenset(launch.reads), frozenset(launch.writes)
        if isinstance(launch, NestLaunch):
            divisible = parts.divisible(launch.nest, self.scratch(launch.nest), MOST_BANDS)
            ns = parts.estimate(launch.nest)
            if divisible is None or divisible.extent < 2 or id(launch) in self.combining:
                return Facts(ns, reads, writes, ())
            return Facts(ns, reads, writes, (_rows_of_nest(divisible),))
        if isinstance(launch.whole, Product):
            product = launch.whole
            ways = _ways_of_product(product, launch.name == "panels", self.writers[product.out.access.root])
            return Facts(products.estimate(product), reads, writes, ways)
        return Facts(0.0, reads, writes, ())


class _Item(NamedTuple):
    """A launch in bands."""

    tasks: list[Single]


class _Forming:
    """A section that is being put together, of at most `most` bands that begin at multiples of `1 / granules`."""

    def __init__(self, scheduler: _Scheduler, most: int, granules: int | None) -> None:
        self.scheduler = scheduler
        self.most = most
        self.granules = granules
        self.count = 0
        self.edges: list[int] = []  # of the bands, in granules
        self.better: tuple[int, int | None] | None = (
            None  # most and granules that would suit one that could not join
        )
        self.before: list[Single] = []
        self.items: list[_Item] = []
        self.ns = 0.0
        self.after: list[tuple[Single, Value | None]] = []  # with the sum that a launch is there to combine
        self.keys: dict[Value, tuple[int, ...]] = {}  # of what the section writes: where bands meet
        self.read: dict[
            Value, tuple[int, ...] | None
        ] = {}  # and of what it reads; None: each band may read it all
        self.later_reads: set[Value] = set()
        self.later_writes: set[Value] = set()
        self.running: dict[Value, Running] = {}
        self.continued: Counter[Value] = Counter()
        self.sums: dict[Value, tuple[Value, Product, Node | None]] = {}  # products: the memory of all bands
        self.loads: list[float] = []  # of each band, ns
        self.bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether nothing more is to join."""
        return (
            self.better is not None
            or self.bytes > MOST_BYTES
            or len(self.after) > _WINDOW + 4 * len(self.items)
        )

    def offer(self, launch: Single) -> None:
        """Take a launch in, or put it before or after the section."""
        facts = self.scheduler.known(launch)
        is_tiny = isinstance(launch, NestLaunch) and facts.ns < _TINY_NS
        if is_tiny and self.may_precede(facts):
            self.before.append(launch)
            return
        if any(self.join(launch, facts, rows) for rows in facts.ways):
            return
        is_small = not facts.ways or facts.ns < _SMALL_NS
        if (is_small or not self.items) and self.may_precede(facts):
            self.before.append(launch)
        else:
            self.put_off(launch, facts.reads, facts.writes, None)

    def may_precede(self, facts: Facts) -> bool:
        """Return whether a launch depends on nothing that is in the section or put off."""
        return (
            facts.reads.isdisjoint(self.keys)
            and facts.reads.isdisjoint(self.later_writes)
            and facts.writes.isdisjoint(self.keys)
            and facts.writes.isdisjoint(self.read)
            and facts.writes.isdisjoint(self.later_writes)
            and facts.writes.isdisjoint(self.later_reads)
        )

    def put_off(
        self, launch: Single, reads: Iterable[Value], writes: Iterable[Value], of: Value | None
    ) -> None:
        self.after.append((launch, of))
        self.later_reads.update(reads)
        self.later_writes.update(writes)

    def join(self, launch: Single, facts: Facts, rows: Rows) -> bool:
        """Take a launch in if it can join; return whether it did."""
        going_on = {root for root in facts.reads if root in self.running and _goes_on(rows, root)}
        summed = facts.writes & self.sums.keys() if rows.cut == "depth" else frozenset()
        if (
            not (facts.reads - going_on).isdisjoint(self.later_writes)
            or not (facts.writes - summed).isdisjoint(self.later_writes)
            or not facts.writes.isdisjoint(self.later_reads)
        ):
            return False
        if rows.cut == "depth" and not (
            facts.writes.isdisjoint(self.keys) and facts.writes.isdisjoint(self.read)
        ):
            return False
        if not self.count and not self.begin(rows):
            return False
        bounds = self.bounds(rows, facts.ns)
        if bounds is None:
            return False
        keys: dict[Value, tuple[int, ...] | None] = {}
        written: set[Value] = set()
        for walk in rows.walks:
            period = walk.period(rows.extent)
            key = None if period is None else (period, *[walk.stride * bound for bound in bounds])
            keys[walk.root] = key if keys.get(walk.root, key) == key else None
            if walk.is_written:
                written.add(walk.root)
        keys.update((root, None) for root in rows.wholly if root not in going_on)
        for root, key in keys.items():
            if root in self.keys and (key is None or self.keys[root] != key):
                return False
            if root in written and (key is None or self.read.get(root, key) != key):
                return False
        for root, key in keys.items():
            if root in written and key is not None:
                if root not in self.keys and root not in self.scheduler.placed:
                    self.bytes += root.aval.size * root.dtype.itemsize
                self.keys[root] = key
            else:
                self.read[root] = key if self.read.get(root, key) == key else None
        self.take(launch, rows, bounds, facts.ns)
        return True

    def begin(self, rows: Rows) -> bool:
        """Choose the bands by the first launch; return whether it has rows enough."""
        granules = self.granules or rows.extent
        count = self.most
        least = max(rows.least, BAND_ROWS if isinstance(rows.source, Product) and rows.least > 1 else 1)
        while count > 1 and (granules < count or rows.extent < count * least or rows.most < count):
            count //= 2
        if count < 2:
            return False
        self.count = count
        self.granules = granules
        self.edges = [granules * band // count for band in range(count + 1)]
        self.loads = [0.0] * count
        return True

    def bounds(self, rows: Rows, ns: float) -> list[int] | None:
        """Return the rows where the bands of a launch begin, and the end, or None if it cannot be cut so."""
        assert self.granules is not None
        related = [walk for walk in rows.walks if walk.root in self.keys]
        fit = min(rows.most, rows.extent // rows.least)
        scaled = [rows.extent * edge for edge in self.edges]
        is_even = all(edge % self.granules == 0 for edge in scaled)
        if not related and ns * self.count <= self.scheduler.expected_ns and self.is_scattered(rows, scaled):
            band = self.loads.index(min(self.loads))
            return [0] * (band + 1) + [rows.extent] * (self.count - band)
        if not related:
            if is_even and fit >= self.count:
                return [edge // self.granules for edge in scaled]
            pieces = min(1 << fit.bit_length() - 1, self.count) if fit > 1 else 0
            # Some bands do nothing.
            return (
                [rows.extent * (band * pieces // self.count) // pieces for band in range(self.count + 1)]
                if pieces
                else None
            )
        if any(walk.period(rows.extent) != self.keys[walk.root][0] for walk in related):
            return None
        own = [edge / related[0].stride for edge in self.keys[related[0].root][1:]]
        bounds = [int(edge) for edge in own]
        fewest = min((after - before for before, after in pairwise(bounds) if after > before), default=0)
        if bounds == own and fewest >= rows.least and self.count <= rows.most:
            return bounds
        if rows.wholly.isdisjoint(self.keys) and fit > 1:
            # With fewer bands, or bands that begin elsewhere, it could.
            common = math.gcd(self.granules, rows.extent)
            most = min(1 << fit.bit_length() - 1, self.most)
            if (most, common) != (self.most, self.granules) and common >= most:
                self.better = (most, common)
        return None

    def is_scattered(self, rows: Rows, scaled: list[int]) -> bool:
        """Return whether bands of a product would each read what several bands of sections before have made."""
        assert self.granules is not None
        if not isinstance(rows.source, Product):
            return False
        made = self.scheduler.made
        if not rows.wholly.isdisjoint(made):
            return True
        for walk in rows.walks:
            key = (walk.period(rows.extent), *[walk.stride * edge // self.granules for edge in scaled])
            if made.get(walk.root, key) != key:
                return True
        return False

    def take(self, launch: Single, rows: Rows, bounds: Sequence[int], ns: float) -> None:
        """Cut a launch into bands."""
        self.ns += ns
        ranges = list(pairwise(bounds))
        for band, (start, stop) in enumerate(ranges):
            self.loads[band] += ns * (stop - start) / rows.extent
        source = rows.source
        if rows.cut == "depth":
            assert isinstance(source, Product)
            self.items.append(_Item(self.sum(source, launch, ranges)))
            return
        if isinstance(source, Product):
            assert isinstance(launch, KernelLaunch)
            take = {"rows": source.rows, "columns": source.columns, "some": source.some}[rows.cut]
            pieces = [source.rows(0, 0) if start == stop else take(start, stop) for start, stop in ranges]
            self.items.append(_Item([product_launch(piece, launch.name, launch.node) for piece in pieces]))
            return
        split = source.pieces(ranges, self.running)
        self.items.append(_Item([NestLaunch(nest) for nest in split.nests]))
        for k, start in source.starts.items():
            root = source.nest.reads[start].root
            if k in source.accumulated and root in self.running:
                self.continued[root] += 1
        sums = [source.nest.writes[k].root for k in source.sums]
        for nest, root in zip_longest(split.combining, sums):
            if root is not None:
                memory, *start_read = nest.reads
                self.running[root] = Running(memory.root, start_read[0] if start_read else None)
            combining = NestLaunch(nest)
            self.scheduler.combining.add(id(combining))
            self.put_off(combining, combining.reads, combining.writes, root)

    def sum(self, product: Product, launch: Single, ranges: Sequence[tuple[int, int]]) -> list[Single]:
        """Return the launches of the bands of a product that sums over their rows, in memory of each."""
        assert isinstance(launch, KernelLaunch)
        root = product.out.access.root
        add = root in self.sums
        if not add:
            memory = Value(Aval((self.count, product.m, product.n), None, root.dtype), None)
            self.sums[root] = memory, product, launch.node
            self.later_writes.add(root)
        memory = self.sums[root][0]
        tasks: list[Single] = []
        for band, (start, stop) in enumerate(ranges):
            access = Access(memory, band * product.m * product.n, (), root.dtype)
            out = Matrices(access, product.n, 1, 0)
            part = product.depth(start, stop)._replace(out=out, add=int(add))
            tasks.append(product_launch(part, launch.name, launch.node))
        return tasks

    def tasks(self) -> list[list[Single]]:
        """Return the launches of each band."""
        return [[item.tasks[band] for item in self.items] for band in range(self.count)]

    def rest(self) -> list[Single]:
        """Return the launches that come after the section."""
        scheduler = self.scheduler
        totals: list[Single] = [NestLaunch(_total(*each)) for each in self.sums.values()]
        scheduler.combining.update(map(id, totals))
        return totals + [
            launch
            for launch, root in self.after
            if root not in self.continued
            or root in scheduler.placed
            or scheduler.readers[root] > self.continued[root]
        ]


def _goes_on(rows: Rows, root: Value) -> bool:
    """Return whether a launch does nothing with a sum but add to it."""
    source = rows.source
    if isinstance(source, Product):
        return False
    starts = {start for k, start in source.starts.items() if k in source.sums}
    return all(k in starts for k, access in enumerate(source.nest.reads) if access.root is root)


def _rows_of_nest(found: Divisible) -> Rows:
    nest = found.nest
    walks, wholly = [], set()
    for k, access in enumerate((*nest.reads, *nest.writes)):
        is_written = k >= len(nest.reads)
        if is_written and k - len(nest.reads) in found.shared:
            continue
        if access.strides[0] == 0:
            wholly.add(access.root)
            continue
        inner = tuple(zip(nest.extents[1:], access.strides[1:], strict=True))
        walks.append(Walk(access.root, access.offset, access.strides[0], inner, is_written))
    return Rows(found.extent, 1, found.most, tuple(walks), frozenset(wholly), found)


def _total(memory: Value, product: Product, node: Node | None) -> Nest:
    """Return the nest that adds up what bands have summed."""
    out = product.out.access
    element = Value(Aval((), None, out.dtype), None)
    adding = Node(OPS["sum"], (element,), {}, None if node is None else node.where)
    adding.outputs = (element,)
    nest = parts.combine(adding, memory, out.root, out if product.add else None)
    return nest._replace(nodes=[] if node is None else [node])


def _ways_of_product(product: Product, panels: bool, writers: int) -> tuple[Rows, ...]:
    """Return how a product can be cut, best first."""
    count, m, n, k, x, y, out, _ = product

    def walk(side: Matrices, stride: int, *inner: tuple[int, int]) -> Walk:
        return Walk(side.access.root, side.access.offset, stride, inner, side is out)

    if count > 1:
        sides = [(x, m, k), (y, k, n), (out, m, n)]
        walks = [walk(side, side.batch, (rows, side.row), (columns, side.column)) for side, rows, columns in sides
                 if side.batch]  # fmt: skip
        wholly = frozenset(side.access.root for side, _, _ in sides if not side.batch)
        return (Rows(count, 1, count, tuple(walks), wholly, product, "some"),)
    if panels:
        far = k * n * product.itemsize >= products.PANELS_BYTES
        least = products.PANELS_PART_ROWS if far else products.TURNING_ROWS
    else:
        least = BAND_ROWS if m >= 2 * BAND_ROWS else LEAST_ROWS
    walks = [walk(x, x.row, (k, x.column)), walk(out, out.row, (n, out.column))]
    by_rows = Rows(m, least, m // least, tuple(walks), frozenset([y.access.root]), product)
    least = max(1, products.WIDE_BYTES // product.itemsize)
    walks = [walk(y, y.column, (k, y.row)), walk(out, out.column, (m, out.row))]
    by_columns = Rows(n, least, n // least, tuple(walks), frozenset([x.access.root]), product, "columns")
    if panels or out.row != n or out.access.offset or out.access.root.aval.size != m * n:
        return by_rows, by_columns
    walks = [walk(x, x.column, (m, x.row)), walk(y, y.row, (n, y.column))]
    depth = Rows(k, LEAST_ROWS, k // LEAST_ROWS, tuple(walks), frozenset(), product, "depth")
    # Instead of what bands sum, they would have to read what others have written.
    return (
        (depth, by_rows, by_columns)
        if 2 * MOST_BANDS * m * n <= writers * k * (m + n)
        else (by_rows, by_columns)
    )


def _cut(launch: KernelLaunch, cut: Cut) -> list[Single]:
    """Return a launch in parts of its output, one if it does not take long."""
    *read, out = launch.pointers
    size = out.root.aval.size
    count = parts.count_of(cut.ns * size, size // cut.unit)
    return [
        launch._replace(
            numbers=tuple(cut.numbers(launch.numbers, start, stop)),
            pointers=(*read, out._replace(offset=out.offset + start)),
        )
        for start, stop in parts.bounds(size, count, cut.unit)
    ]
