# SPDX-License-Identifier: BSD-3-Clause
"""sections: launches that work on the same rows are cut alike, so that a thread goes through many without waiting.

Note [sections]
A step works on a batch, and most of what it launches takes each row by itself: a layer forward, its activation, the
loss of a row, the adjoint by the inputs. If all these are cut at the same rows, one thread can take the first rows
through all of them while another takes the others: they share nothing that is written, and each finds in its cache
what it wrote itself. Such a run of launches is a section, a thread's share of it a band. What sums over rows
(the gradients of weights and biases) waits until the section is done; those launches form the next one.

A launch can join a section if all that it reads or writes of what the section writes lies, for each band, in the memory
that belongs to that band: if it walks the memory with the same period, and bands meet in the same places. A launch that
cannot join is put off until after the section, with all that depends on it, or runs before it if it depends on nothing
in it.

A sum over rows is accumulated by each band in memory of its own, and combined afterwards; one that is added to such a
sum, as in a loop over time, goes on in the same memory, and only the last one is combined. So are products whose
results are small beside their factors, or are added to many times. Other products that sum over rows run as a whole
in one band or the other: if they were cut, each band would read what all others have written, and that comes from
the caches of other CPUs.

The bands depend on sizes alone, as all parts do (Note [parts]). On one thread they cost: there are more launches, and
each reads the weights again.
"""

import math
from collections import Counter, deque
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise, zip_longest
from typing import NamedTuple

from tracejit.aval import Aval
from tracejit.ir import Node, Value
from tracejit.ops import OPS
from tracejit.ops.op import Cut
from tracejit.passes import cost
from tracejit.passes.loops import bands, parts, products
from tracejit.passes.loops.bands import Rows, bands_of_product, rows_of_nest, sums_of_product, ways_of_product
from tracejit.passes.loops.launches import KernelLaunch, Launch, NestLaunch, Section, Single, product_launch
from tracejit.passes.loops.nest import Nest
from tracejit.passes.loops.parts import Running
from tracejit.passes.loops.products import Product

MOST_BYTES = 1 << 21  # that a section writes into the arena: more would leave the near cache
_WINDOW = 64  # launches that are put off, at most, beside four for each one that joins
_TINY_NS = 100.0  # what takes less, such as a copy of a bias, runs before the section if it can
_SMALL_NS = 1000.0  # what takes less, and cannot join, may as well run before the section

Key = tuple[int, ...]  # of memory: its period, and the elements where bands meet
Bounds = tuple[int, ...]  # the rows where the bands of a launch begin, and the end of the last one


def schedule(launches: Sequence[Single], placed: Container[Value]) -> list[Launch]:
    """Return launches in an order and in parts that several threads can run.

    Args:
        launches: in the order of the program.
        placed: roots that are inputs or outputs, which are not only memory in between.
    """
    return _Scheduler(launches, placed).run()


class _Facts:
    """What is known of a launch: about how long it takes, what it reads and writes, and ways to cut it."""

    __slots__ = ("_known", "_others", "launch", "ns", "reads", "writes")

    def __init__(self, launch: Single, ns: float = 0.0, ways: Iterable[Rows] = ()) -> None:
        self.launch = launch
        self.ns = ns
        self.reads = frozenset(launch.reads)
        self.writes = frozenset(launch.writes)
        self._known: list[Rows] = []
        self._others = iter(ways)

    def ways(self) -> Iterator[Rows]:
        """Give the ways to cut the launch, which are looked for as they are wanted."""
        yield from self._known
        for rows in self._others:
            self._known.append(rows)
            yield rows


class _Scheduler:
    def __init__(self, launches: Sequence[Single], placed: Container[Value]) -> None:
        self.placed = placed
        self.writers = Counter([root for launch in launches for root in launch.writes])
        self.left = deque(map(self.examine, launches))
        self.readers = Counter([root for facts in self.left for root in facts.reads])
        self.done: list[Launch] = []
        self.made: dict[Value, Key] = {}  # what sections before wrote
        self.expected_ns = 0.0  # of the launches that the last section put off

    def run(self) -> list[Launch]:
        while self.left:
            found = self.section()
            if found is None:
                continue
            for facts in found.before:
                self.done += self.alone(facts.launch)
            self.done.append(found.section())
            after = found.rest()
            self.made.update(found.keys)
            self.expected_ns = sum([facts.ns for facts in after])
            self.left.extendleft(reversed(after))
        return self.done

    def section(self) -> "_Forming | None":
        """Take a section from the launches that are left, or else some of them as they are."""
        wish = _Wish(bands.MOST_BANDS, None)
        while True:
            window: list[_Facts] = []
            found = _Forming(self, wish)
            while self.left and not found.is_full:
                window.append(self.left.popleft())
                found.offer(window[-1])
            if found.wish is None:
                break
            wish = found.wish
            self.left.extendleft(reversed(window))
        if found.ns >= cost.LEAST_SECTION_NS and len(found.items) > 1:
            return found
        taken = max(1, len(window) // 2) if self.left and found.items else len(window)
        self.left.extendleft(reversed(window[taken:]))
        for facts in window[:taken]:
            self.done += self.alone(facts.launch)
        return None

    def examine(self, launch: Single) -> _Facts:
        if isinstance(launch, NestLaunch):
            divisible = parts.divisible(launch.nest, self.scratch(launch.nest), bands.MOST_BANDS)
            is_one = divisible is None or divisible.extent < 2
            ways = [] if is_one or divisible is None else [rows_of_nest(divisible)]
            return _Facts(launch, launch.nest.ns, ways)
        product = launch.whole
        if not isinstance(product, Product):
            return _Facts(launch)
        panels = launch.name == "panels"
        writers = self.writers[product.out.access.root]
        return _Facts(launch, product.ns, ways_of_product(product, panels, writers))

    @staticmethod
    def whole(nest: Nest) -> _Facts:
        """Return what is known of the launch of a nest that is as short as can be."""
        return _Facts(NestLaunch(nest), nest.ns)

    def scratch(self, nest: Nest) -> set[Value]:
        """Return the roots of memory that holds one row at a time."""
        return {a.root for a in nest.writes if a.root.node is None and a.root not in self.placed}

    def alone(self, launch: Single) -> list[Launch]:
        """Return a launch by itself, in parts if it takes long."""
        if isinstance(launch, NestLaunch):
            split = parts.split_nest(launch.nest, self.scratch(launch.nest))
            if split is None:
                return [launch]
            return [Section([[NestLaunch(nest)] for nest in split.nests]), *map(NestLaunch, split.combining)]
        pieces: list[Single] = [launch]
        if isinstance(launch.whole, Product):
            some = products.parts_of(launch.whole, launch.name == "panels")
            pieces = [product_launch(piece, launch.name, launch.node) for piece in some]
        elif launch.whole is not None:
            pieces = _cut(launch, launch.whole)
        return [launch] if len(pieces) == 1 else [Section([[piece] for piece in pieces])]


class _Wish(NamedTuple):
    """How a section should be cut: into at most `most` bands, that begin at multiples of one of `granules` parts."""

    most: int
    granules: int | None


class _Forming:
    """A section that is being put together."""

    def __init__(self, scheduler: _Scheduler, plan: _Wish) -> None:
        self.scheduler = scheduler
        self.most = plan.most
        self.granules = plan.granules or 0
        self.edges: list[int] = []  # of the bands, in granules
        self.wish: _Wish | None = None  # what would suit a launch that cannot join
        self.ns = 0.0
        self.loads: list[float] = []  # of each band, ns
        self.bytes = 0
        self.before: list[_Facts] = []
        self.items: list[list[Single]] = []  # each launch in bands
        self.after: list[tuple[_Facts, Value | None]] = []  # with the sum that a launch is there to combine
        self.keys: dict[Value, Key] = {}  # of what the section writes
        self.read: dict[Value, Key | None] = {}  # of what else it reads; None: a band may read all of it
        self.later_reads: set[Value] = set()
        self.later_writes: set[Value] = set()
        self.running: dict[Value, Running] = {}  # sums over rows
        self.continued: Counter[Value] = Counter()
        # Of products: the memory of all bands, and the first product.
        self.sums: dict[Value, tuple[Value, KernelLaunch]] = {}

    @property
    def count(self) -> int:
        """The number of bands, 0 before the first launch has joined."""
        return len(self.loads)

    @property
    def is_full(self) -> bool:
        """Whether nothing more is to join."""
        return (
            self.wish is not None
            or self.bytes > MOST_BYTES
            or len(self.after) > _WINDOW + 4 * len(self.items)
        )

    def section(self) -> Section:
        return Section([[item[band] for item in self.items] for band in range(self.count)])

    def rest(self) -> list[_Facts]:
        """Return the launches that come after the section."""
        scheduler = self.scheduler
        found = [scheduler.whole(_total(*each)) for each in self.sums.values()]
        for facts, root in self.after:
            # A sum that was only added to is in the sum that came of it.
            if root in self.continued and root not in scheduler.placed:
                assert root is not None
                if scheduler.readers[root] == self.continued[root]:
                    continue
            found.append(facts)
        return found

    def offer(self, facts: _Facts) -> None:
        """Take a launch in, or put it before or after the section."""
        is_tiny = facts.ns < _TINY_NS and isinstance(facts.launch, NestLaunch)
        if is_tiny and self.may_precede(facts):
            self.before.append(facts)
            return
        can_be_cut = False
        for rows in facts.ways():
            can_be_cut = True
            if self.join(facts, rows):
                return
        if (not can_be_cut or facts.ns < _SMALL_NS or not self.items) and self.may_precede(facts):
            self.before.append(facts)
        else:
            self.put_off(facts, None)

    def may_precede(self, facts: _Facts) -> bool:
        """Return whether a launch depends on nothing that is in the section or put off."""
        reads, writes = facts.reads, facts.writes
        return (
            self.keys.keys().isdisjoint(reads)
            and reads.isdisjoint(self.later_writes)
            and self.keys.keys().isdisjoint(writes)
            and self.read.keys().isdisjoint(writes)
            and writes.isdisjoint(self.later_writes)
            and writes.isdisjoint(self.later_reads)
        )

    def put_off(self, facts: _Facts, combines: Value | None) -> None:
        self.after.append((facts, combines))
        self.later_reads |= facts.reads
        self.later_writes |= facts.writes

    def join(self, facts: _Facts, rows: Rows) -> bool:
        """Take a launch in if it can join; return whether it did."""
        running = self.running
        going_on: Container[Value] = ()
        if not running.keys().isdisjoint(facts.reads):
            going_on = {root for root in facts.reads if root in running and rows.goes_on(root)}
        if not self.may_be_now(facts, rows, going_on):
            return False
        if not self.count and not self.begin(rows):
            return False
        bounds = self.bounds(facts, rows)
        if bounds is None:
            return False
        keys: dict[Value, Key | None] = {}
        written: set[Value] = set()
        for root, stride, period, is_written in rows.walks:
            key = None if period is None else _key(period, stride, bounds)
            keys[root] = key if keys.get(root, key) == key else None
            if is_written:
                written.add(root)
        for root in rows.wholly:
            if root not in going_on:
                keys[root] = None
        for root, key in keys.items():
            if self.keys.get(root, key) != key:
                return False
            if root in written and (key is None or self.read.get(root, key) != key):
                return False
        for root, key in keys.items():
            if key is not None and root in written:
                if root not in self.keys and root not in self.scheduler.placed:
                    self.bytes += root.aval.size * root.dtype.itemsize
                self.keys[root] = key
            else:
                self.read[root] = key if self.read.get(root, key) == key else None
        self.take(facts, rows, bounds)
        return True

    def may_be_now(self, facts: _Facts, rows: Rows, going_on: Container[Value]) -> bool:
        """Return whether a launch depends on nothing that is put off, but for sums that it goes on with."""
        later = self.later_writes
        if not later.isdisjoint(facts.reads):
            for root in facts.reads:
                if root in later and root not in going_on:
                    return False
        if not facts.writes.isdisjoint(self.later_reads):
            return False
        if rows.cut != "depth":
            return facts.writes.isdisjoint(later)
        (root,) = facts.writes
        return root in self.sums or not (root in later or root in self.keys or root in self.read)

    def begin(self, rows: Rows) -> bool:
        """Choose the bands by the first launch; return whether it has rows enough."""
        granules = self.granules or rows.extent
        count = self.most
        while count > 1 and (granules < count or rows.extent < count * rows.least or rows.most < count):
            count //= 2
        if count < 2:
            return False
        self.granules = granules
        self.edges = [granules * band // count for band in range(count + 1)]
        self.loads = [0.0] * count
        return True

    def bounds(self, facts: _Facts, rows: Rows) -> Bounds | None:
        """Return the rows where the bands of a launch begin, and the end, or None if it cannot be cut so."""
        for walk in rows.walks:
            key = self.keys.get(walk.root)
            if key is not None:
                return self.bounds_by(key, walk.stride, rows)
        count, extent, granules = self.count, rows.extent, self.granules
        fit = min(rows.most, extent // rows.least)
        scaled = [extent * edge for edge in self.edges]
        if facts.ns * count <= self.scheduler.expected_ns and self.is_scattered(rows, scaled):
            band = self.loads.index(min(self.loads))
            return (0,) * (band + 1) + (extent,) * (count - band)
        if fit >= count and all(edge % granules == 0 for edge in scaled):
            return tuple([edge // granules for edge in scaled])
        if fit < 2:
            return None
        pieces = min(1 << fit.bit_length() - 1, count)
        # If these are fewer than bands, some bands do nothing.
        return tuple([extent * (band * pieces // count) // pieces for band in range(count + 1)])

    def bounds_by(self, key: Key, stride: int, rows: Rows) -> Bounds | None:
        """Return the rows where bands meet in memory, or None if there are none or too few."""
        for walk in rows.walks:
            known = self.keys.get(walk.root)
            if known is not None and known[0] != walk.period:
                return None
        bounds, fewest = _bounds_at(key, stride)
        if bounds is not None and fewest >= rows.least and self.count <= rows.most:
            return bounds
        fit = min(rows.most, rows.extent // rows.least)
        if fit > 1 and self.keys.keys().isdisjoint(rows.wholly):
            # With fewer bands, or bands that begin elsewhere, it could join.
            most, granules = min(1 << fit.bit_length() - 1, self.most), math.gcd(self.granules, rows.extent)
            if (most, granules) != (self.most, self.granules) and granules >= most:
                self.wish = _Wish(most, granules)
        return None

    def is_scattered(self, rows: Rows, scaled: list[int]) -> bool:
        """Return whether bands of a product would each read what several bands of sections before have made."""
        made = self.scheduler.made
        if not isinstance(rows.source, Product):
            return False
        if not made.keys().isdisjoint(rows.wholly):
            return True
        for root, stride, period, _ in rows.walks:
            key = (period, *[stride * edge // self.granules for edge in scaled])
            if made.get(root, key) != key:
                return True
        return False

    def take(self, facts: _Facts, rows: Rows, bounds: Bounds) -> None:
        """Cut a launch into bands."""
        launch, source = facts.launch, rows.source
        ranges = list(pairwise(bounds))
        self.ns += facts.ns
        ns, extent, loads = facts.ns, rows.extent, self.loads
        for band, (start, stop) in enumerate(ranges):
            loads[band] += ns * (stop - start) / extent
        if isinstance(source, Product):
            assert isinstance(launch, KernelLaunch)
            if rows.cut == "depth":
                self.items.append(self.sum(launch, source, ranges))
            else:
                self.items.append(bands_of_product(launch, rows, ranges))
            return
        split = source.pieces(ranges, self.running)
        self.items.append([NestLaunch(nest) for nest in split.nests])
        sums = source.sums
        for k, start in source.starts.items() if sums else ():
            root = source.nest.reads[start].root
            if k in sums and root in self.running:
                self.continued[root] += 1
        roots = [source.nest.writes[k].root for k in sums]
        for nest, combined in zip_longest(split.combining, roots):
            if combined is not None:
                memory, *start_read = nest.reads
                self.running[combined] = Running(memory.root, start_read[0] if start_read else None)
            self.put_off(self.scheduler.whole(nest), combined)

    def sum(self, launch: KernelLaunch, product: Product, ranges: list[tuple[int, int]]) -> list[Single]:
        """Return the launches of the bands of a product that sums over their rows, in memory of each."""
        root = product.out.access.root
        add = root in self.sums
        if not add:
            memory = Value(Aval((self.count, product.m, product.n), None, root.dtype), None)
            self.sums[root] = memory, launch
            self.later_writes.add(root)
        return sums_of_product(launch, product, ranges, self.sums[root][0], add)


# The steps of a loop all meet the same few keys and bounds.
@lru_cache(maxsize=4096)
def _key(period: int, stride: int, bounds: Bounds) -> Key:
    """Return what memory is known by whose bands have these rows, `stride` elements apart."""
    return (period, *[stride * bound for bound in bounds])


@lru_cache(maxsize=4096)
def _bounds_at(key: Key, stride: int) -> tuple[Bounds | None, int]:
    """Return the rows where bands meet in memory, None if that is within rows, and how many the smallest band has."""
    found = [divmod(edge, stride) for edge in key[1:]]
    if any(rest for _, rest in found):
        return None, 0
    bounds = tuple([row for row, _ in found])
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


def _cut(launch: KernelLaunch, cut: Cut) -> list[Single]:
    """Return a launch in parts of its output, one if it does not take long."""
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
