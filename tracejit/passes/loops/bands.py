# SPDX-License-Identifier: BSD-3-Clause
"""bands: how a launch can be cut into bands of rows, and which memory each band then has to itself.

A launch that takes each row by itself can be cut anywhere between two rows. Whether bands of several launches can run
one after the other, each without looking at other bands, depends on how the launches walk through memory
(passes/sections.py).
"""

from collections.abc import Iterator
from typing import NamedTuple

from tracejit.ir import Value
from tracejit.passes.loops import products
from tracejit.passes.loops.launches import KernelLaunch, Single, product_launch
from tracejit.passes.loops.nest import Access, Nest
from tracejit.passes.loops.parts import Divisible
from tracejit.passes.loops.products import Product

MOST_BANDS = 8
BAND_ROWS = 16  # of a product, at least, where that leaves two bands
LEAST_ROWS = 8  # of any product: the rows of a tile

Inner = tuple[int, int]  # extent and stride of an axis within a row


class Walk(NamedTuple):
    """How rows lie in the memory of `root`: `stride` elements apart, all within `period` elements, which may repeat.

    The period is None if rows do not lie apart from each other.
    """

    root: Value
    stride: int
    period: int | None
    is_written: bool


class Rows(NamedTuple):
    """A launch as one that can be cut into bands of rows.

    extent      the number of rows
    least       how many a band needs, at least
    most        how many bands there may be
    walks       how rows lie in memory
    wholly      what each band reads beyond its own rows
    source      the nest or the product
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

    def goes_on(self, root: Value) -> bool:
        """Return whether all that is done with the sum `root` is to add to it."""
        source = self.source
        if isinstance(source, Product):
            return False
        starts = source.starts.values()
        return all(k in starts for k, access in enumerate(source.nest.reads) if access.root is root)


def rows_of_nest(found: Divisible) -> Rows:
    """Return a nest as rows of its first axis."""
    nest, extent = found.nest, found.extent
    walks: list[Walk] = []
    wholly: set[Value] = set()
    first = len(nest.reads)
    for k, access in enumerate((*nest.reads, *nest.writes)):
        if k >= first and k - first in found.shared:
            continue
        found_walk = walk_of(nest, access, k >= first)
        if found_walk is None:
            wholly.add(access.root)
        else:
            walks.append(found_walk)
    return Rows(extent, 1, found.most, tuple(walks), frozenset(wholly), found)


def walk_of(nest: Nest, access: Access, is_written: bool) -> Walk | None:
    """Return how the rows of a nest, along its first axis, walk through memory; None if they all touch the same."""
    strides, extents = access.strides, nest.extents
    if strides[0] == 0:
        return None
    return walk(access, extents[0], strides[0], is_written, *zip(extents[1:], strides[1:], strict=True))


def ways_of_product(product: Product, panels: bool, writers: int) -> Iterator[Rows]:
    """Give the ways to cut a product, the best one first.

    Args:
        product: the product.
        panels: whether it is multiplied by panels.
        writers: how many launches add to the same result.
    """
    count, m, n, k, x, y, out, _ = product
    if count > 1:
        sides = ((x, m, k), (y, k, n), (out, m, n))
        walks = [
            walk(s.access, count, s.batch, s is out, (rows, s.row), (columns, s.column))
            for s, rows, columns in sides
            if s.batch
        ]
        wholly = frozenset([s.access.root for s, _, _ in sides if not s.batch])
        yield Rows(count, 1, count, tuple(walks), wholly, product, "some")
        return
    if panels:
        is_far = k * n * product.itemsize >= products.PANELS_BYTES
        least = products.PANELS_PART_ROWS if is_far else products.TURNING_ROWS
    else:
        least = BAND_ROWS if m >= 2 * BAND_ROWS else LEAST_ROWS
        is_whole = out.row == n and out.access.offset == 0 and out.access.root.aval.size == m * n
        # If it is cut otherwise, bands read what other bands have written. What they sum is less.
        if is_whole and 2 * MOST_BANDS * m * n <= writers * k * (m + n):
            walks = [
                walk(x.access, k, x.column, False, (m, x.row)),
                walk(y.access, k, y.row, False, (n, y.column)),
            ]
            yield Rows(k, LEAST_ROWS, k // LEAST_ROWS, tuple(walks), frozenset(), product, "depth")
    walks = [
        walk(x.access, m, x.row, False, (k, x.column)),
        walk(out.access, m, out.row, True, (n, out.column)),
    ]
    yield Rows(m, least, m // least, tuple(walks), frozenset([y.access.root]), product, "rows")
    least = max(1, products.WIDE_BYTES // product.itemsize)
    walks = [
        walk(y.access, n, y.column, False, (k, y.row)),
        walk(out.access, n, out.column, True, (m, out.row)),
    ]
    yield Rows(n, least, n // least, tuple(walks), frozenset([x.access.root]), product, "columns")


def bands_of_product(launch: KernelLaunch, rows: Rows, ranges: list[tuple[int, int]]) -> list[Single]:
    """Return the launches of the bands of a product that is cut by its result or its batch."""
    product = rows.source
    assert isinstance(product, Product)
    if rows.cut != "rows":
        take = product.columns if rows.cut == "columns" else product.some
        pieces = [take(start, stop) if start < stop else product.rows(0, 0) for start, stop in ranges]
        return [product_launch(piece, launch.name, launch.node) for piece in pieces]
    # Most are cut so, and a long loop has thousands: only what differs is made anew.
    batch, _, *others = launch.numbers
    x, y, out = launch.pointers
    return [
        KernelLaunch(
            launch.name,
            (batch, stop - start, *others),
            (x.moved(start * product.x.row), y, out.moved(start * product.out.row)),
            1,
            launch.node,
        )
        for start, stop in map(_begun, ranges)
    ]


def sums_of_product(
    launch: KernelLaunch, product: Product, ranges: list[tuple[int, int]], memory: Value, add: bool
) -> list[Single]:
    """Return the launches of the bands of a product that is cut along its depth: each has its own part of `memory`."""
    _, m, n, _, *strides = launch.numbers
    x, y, _ = launch.pointers
    return [
        KernelLaunch(
            launch.name,
            (1, m, n, stop - start, *strides[:-3], n, 0, int(add)),
            (
                x.moved(start * product.x.column),
                y.moved(start * product.y.row),
                Access(memory, band * m * n, (), memory.dtype),
            ),
            1,
            launch.node,
        )
        for band, (start, stop) in enumerate(map(_begun, ranges))
    ]


def _begun(band: tuple[int, int]) -> tuple[int, int]:
    """Return a band; one without rows begins where there is memory."""
    return band if band[0] < band[1] else (0, 0)


def walk(access: Access, extent: int, stride: int, is_written: bool, *inner: Inner) -> Walk:
    """Return the walk of `extent` rows that each have `inner` axes."""
    period = stride * extent
    if stride > 0:
        reach = access.offset % period
        for count, step in inner:
            if count > 1 and step % period:
                reach += step * (count - 1) if step > 0 else stride
        if reach < stride:
            return Walk(access.root, stride, period, is_written)
    return Walk(access.root, stride, None, is_written)
