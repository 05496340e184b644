# SPDX-License-Identifier: BSD-3-Clause
"""bands: the ways to cut a launch into bands of rows, and the memory of each band.

A launch that takes each row by itself can be cut anywhere between two rows. Whether bands of several launches can run
one after the other, each without looking at other bands, depends on how their rows lie in memory
(passes/schedule/sections.py).
"""

from collections.abc import Iterator

from tracejit.ir import Value
from tracejit.ops.op import RangeCut
from tracejit.passes import cost
from tracejit.passes.loops import multiplier, products
from tracejit.passes.loops.launches import Blocks, KernelLaunch, Single, product_launch
from tracejit.passes.loops.nest import Access, Nest
from tracejit.passes.loops.parts import Divisible, share
from tracejit.passes.loops.products import Product
from tracejit.passes.loops.spans import RowSpan, row_span
from tracejit.util.named_tuples import NamedTuple

MOST_BANDS = 8
BAND_ROWS = 16  # of a product, at least, where that leaves two bands
LEAST_ROWS = 8  # of any product: the rows of a tile
LONGEST_NS = 40 * cost.PART_NS  # of a launch that is cut by images: longer ones take more parts than bands


class ByImages(NamedTuple):
    """A kernel whose first two integers are the units of work that it does; each image has as many."""

    units: int


class RowCut(NamedTuple):
    """A way to cut a launch into bands of rows.

    extent          the number of rows
    least           how many rows a band needs, at least
    most            how many bands there may be
    spans           how rows lie in memory
    wholly_read     the roots that each band reads beyond its own rows
    source          the nest, the product, or a kernel whose rows are images
    axis            of a product, what its rows are: "rows" or "columns" of the result, the products of a "batch", or
                    the "depth" along which it sums
    """

    extent: int
    least: int
    most: int
    spans: tuple[RowSpan, ...]
    wholly_read: frozenset[Value]
    source: Divisible | Product | ByImages
    axis: str = "rows"

    def only_adds_to(self, root: Value) -> bool:
        """Return whether the launch reads the sum `root` only to add to it."""
        source = self.source
        if not isinstance(source, Divisible):
            return False
        starts = source.starts.values()
        return all(k in starts for k, access in enumerate(source.nest.reads) if access.root is root)


def rows_of_nest(source: Divisible) -> RowCut:
    """Return the cut of a nest along its first axis."""
    nest = source.nest
    spans: list[RowSpan] = []
    wholly_read: set[Value] = set()
    first = len(nest.reads)
    for k, access in enumerate((*nest.reads, *nest.writes)):
        if k >= first and k - first in source.shared:
            continue
        span = span_of(nest, access, k >= first)
        if span is None:
            wholly_read.add(access.root)
        else:
            spans.append(span)
    return RowCut(source.extent, 1, source.most, tuple(spans), frozenset(wholly_read), source)


def span_of(nest: Nest, access: Access, is_written: bool) -> RowSpan | None:
    """Return the span of a nest's rows, along its first axis; None if they all touch the same memory."""
    strides, extents = access.strides, nest.extents
    if strides[0] == 0:
        return None
    return row_span(access, extents[0], strides[0], is_written, *zip(extents[1:], strides[1:], strict=True))


def cuts_of_product(product: Product, kernel: str, writers: int) -> Iterator[RowCut]:
    """Give the ways to cut a product, the best one first.

    Args:
        product: the product.
        kernel: the kernel that multiplies.
        writers: how many launches add to the same result.
    """
    _, m, n, k, x, y, out, _ = product
    if product.batch > 1:
        yield _cut_of_batch(product)
        return
    if kernel == "panels":
        is_far = k * n * product.itemsize >= multiplier.PANELS_BYTES
        least = products.PANELS_PART_ROWS if is_far else multiplier.TURNING_ROWS
    else:
        least = BAND_ROWS if m >= 2 * BAND_ROWS else LEAST_ROWS
        if kernel == "columns" and m >= 2 * products.WIDE_BYTES // product.itemsize:
            least = products.WIDE_BYTES // product.itemsize  # the lanes of a tile
        is_whole = out.row == n and out.access.offset == 0 and out.access.root.aval.size == m * n
        # Cut in any other way, bands read what other bands have written, which is more than they sum here.
        if is_whole and 2 * MOST_BANDS * m * n <= writers * k * (m + n):
            spans = (
                row_span(x.access, k, x.column, False, (m, x.row)),
                row_span(y.access, k, y.row, False, (n, y.column)),
            )
            yield RowCut(k, LEAST_ROWS, k // LEAST_ROWS, spans, frozenset(), product, "depth")
    spans = (
        row_span(x.access, m, x.row, False, (k, x.column)),
        row_span(out.access, m, out.row, True, (n, out.column)),
    )
    yield RowCut(m, least, m // least, spans, frozenset([y.access.root]), product, "rows")
    # Tiles of few rows are twice as wide.
    least = max(1, (2 if m <= LEAST_ROWS // 2 else 1) * products.WIDE_BYTES // product.itemsize)
    spans = (
        row_span(y.access, n, y.column, False, (k, y.row)),
        row_span(out.access, n, out.column, True, (m, out.row)),
    )
    yield RowCut(n, least, n // least, spans, frozenset([x.access.root]), product, "columns")


def _cut_of_batch(product: Product) -> RowCut:
    count, m, n, k, x, y, out, _ = product
    sides = ((x, m, k), (y, k, n), (out, m, n))
    spans = [
        row_span(side.access, count, side.batch, side is out, (rows, side.row), (columns, side.column))
        for side, rows, columns in sides
        if side.batch
    ]
    wholly_read = frozenset([side.access.root for side, _, _ in sides if not side.batch])
    return RowCut(count, 1, count, tuple(spans), wholly_read, product, "batch")


def cuts_by_images(launch: KernelLaunch) -> tuple[float, list[RowCut]]:
    """Return about how long a kernel takes, and the ways to cut it by the images of a batch: one, or none."""
    cut = launch.whole
    if isinstance(cut, Blocks):
        ns, units, images, spans = cut.ns, cut.total, cut.images, cut.spans
        if launch.epilogue is not None:
            ns += launch.epilogue.nest.ns
            (written,) = launch.epilogue.nest.writes
            (count, stride), *inner = cut.result
            together = count // images
            span = row_span(written, images, together * stride, True, (together, stride), *inner)
            spans = (*spans[:-1], span)
    elif isinstance(cut, RangeCut) and cut.images is not None:
        assert launch.node is not None
        ns, units, images = cut.ns(launch.numbers), cut.rows(launch.numbers), cut.images(launch.node)
        first_written = len(launch.pointers) - launch.written
        spans = tuple([
            row_span(access, images, access.root.aval.size // max(1, images), k >= first_written)
            for k, access in enumerate(launch.pointers)
        ])  # fmt: skip
    else:
        return 0.0, []
    if images < 2 or units % images or not spans or ns > LONGEST_NS:
        return ns, []
    spanned = {span.root for span in spans}
    wholly_read = frozenset([root for root in launch.reads if root not in spanned])
    return ns, [RowCut(images, 1, images, spans, wholly_read, ByImages(units // images))]


def bands_of_images(launch: KernelLaunch, source: ByImages, ranges: list[tuple[int, int]]) -> list[Single]:
    """Return the launches of the bands of a kernel that is cut by images."""
    numbers = launch.numbers[2:]
    return [
        launch._replace(numbers=(start * source.units, stop * source.units, *numbers))
        for start, stop in ranges
    ]


def bands_of_product(launch: KernelLaunch, cut: RowCut, ranges: list[tuple[int, int]]) -> list[Single]:
    """Return the launches of the bands of a product that is cut by its result or its batch."""
    product = cut.source
    assert isinstance(product, Product)
    if cut.axis != "rows":
        take = product.columns if cut.axis == "columns" else product.slice
        pieces = [take(start, stop) if start < stop else product.rows(0, 0) for start, stop in ranges]
        return [product_launch(piece, launch.name, launch.node, product) for piece in pieces]
    # Most products are cut this way, and a long loop has thousands of bands: only what differs is computed.
    batch, _, *others = launch.numbers
    x, y, out = launch.pointers
    return [
        KernelLaunch(
            launch.name,
            (batch, stop - start, *others),
            (x.moved(start * product.x.row), y, out.moved(start * product.out.row)),
            1,
            launch.node,
            whole=product,
        )
        for start, stop in map(_start_in_memory, ranges)
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
                Access(memory, band * share(memory), (), memory.dtype),
            ),
            1,
            launch.node,
            whole=product,
        )
        for band, (start, stop) in enumerate(map(_start_in_memory, ranges))
    ]


def _start_in_memory(band: tuple[int, int]) -> tuple[int, int]:
    """Return a band. If it has no rows, it begins at the first row, where there is memory."""
    return band if band[0] < band[1] else (0, 0)
