# SPDX-License-Identifier: BSD-3-Clause
"""Matrix products as data: how their operands lie in memory, and how they are cut into parts."""

from itertools import pairwise

from tracejit.ops.op import Layout
from tracejit.passes import cost
from tracejit.passes.loops import parts
from tracejit.passes.loops.nest import Access
from tracejit.util.named_tuples import NamedTuple

ROWS = 16  # of a result: a part of a product has a multiple of these; a multiple of the rows of a tile
PANELS_PART_ROWS = 64  # of a part that is multiplied by panels, at least
WIDE_BYTES = 128  # of a row of the result: the width of a tile


class Matrices(NamedTuple):
    """Matrices in memory: the first one, and the elements between rows, between columns, and between matrices."""

    access: Access
    row: int
    column: int
    batch: int

    def moved(self, elements: int) -> "Matrices":
        """Return matrices that begin `elements` further on."""
        if elements == 0:
            return self
        return Matrices(self.access.moved(elements), self.row, self.column, self.batch)

    @property
    def turned(self) -> "Matrices":
        """The transposed matrices."""
        return Matrices(self.access, self.column, self.row, self.batch)

    def leading(self, rows: int, columns: int) -> tuple[int, int] | None:
        """Return (transposed, leading stride) of matrices if BLAS can read them, otherwise None."""
        if (self.column == 1 or columns == 1) and (self.row >= columns or rows == 1):
            return 0, self.row if rows > 1 else columns
        if (self.row == 1 or rows == 1) and (self.column >= rows or columns == 1):
            return 1, self.column if columns > 1 else rows
        return None


def strides(layout: Layout, batch: tuple[int, ...]) -> tuple[int, int, int] | None:
    """Return the strides of the matrices of a layout, broadcast to batch axes, or None if their distances differ."""
    row, column = layout.strides[-2:]
    if len(layout.shape) == 2:
        return row, column, 0
    extra = len(batch) - (len(layout.shape) - 2)
    own = (0,) * extra + tuple(
        0 if extent == 1 else stride
        for extent, stride in zip(layout.shape[:-2], layout.strides[:-2], strict=True)
    )
    walk = [(extent, stride) for extent, stride in zip(batch, own, strict=True) if extent != 1]
    for (_, outer), (extent, inner) in pairwise(walk):
        if outer != inner * extent:
            return None
    return row, column, walk[-1][1] if walk else 0


class Product(NamedTuple):
    """A batch of products of matrices, out (m, n) = x (m, k) y (k, n), or added to what is in out."""

    batch: int
    m: int
    n: int
    k: int
    x: Matrices
    y: Matrices
    out: Matrices
    add: int

    def slice(self, start: int, stop: int) -> "Product":
        """Return the products of the batch from number `start` to before `stop`."""
        x, y, out = (side.moved(start * side.batch) for side in (self.x, self.y, self.out))
        return self._replace(batch=stop - start, x=x, y=y, out=out)

    def rows(self, start: int, stop: int) -> "Product":
        """Return the product for the rows `start` to before `stop` of the results."""
        x, out = self.x.moved(start * self.x.row), self.out.moved(start * self.out.row)
        return Product(self.batch, stop - start, self.n, self.k, x, self.y, out, self.add)

    def columns(self, start: int, stop: int) -> "Product":
        """Return the product for the columns `start` to before `stop` of the results."""
        y, out = (side.moved(start * side.column) for side in (self.y, self.out))
        return self._replace(n=stop - start, y=y, out=out)

    @property
    def itemsize(self) -> int:
        return self.out.access.dtype.itemsize

    @property
    def ns(self) -> float:
        """About how many nanoseconds the products take."""
        return cost.product_ns(self.batch * self.m * self.n * self.k, self.itemsize)

    @property
    def by_rows(self) -> bool:
        """True if y lies by rows."""
        return self.y.column == 1 or self.n == 1 or self.k == 0


def parts_of(product: Product, kernel: str) -> list[Product]:
    """Return a product in parts, one if it does not take long: ranges of its batch, or of its rows or columns.

    Args:
        product: the product.
        kernel: the kernel that multiplies. If it does so by panels, every part copies these itself, so it has many
            rows or many columns.
    """
    batch, m, n, itemsize = product.batch, product.m, product.n, product.itemsize
    take, extent, unit, most = product.rows, m, ROWS, m // (2 * ROWS)
    if batch > 1:
        take, extent, unit, most = product.slice, batch, 1, batch // 2
    elif kernel == "panels":
        # Blocks of x are copied once for each part.
        unit_bytes = WIDE_BYTES * (4 if product.x.row == 1 else 1)
        most = m // PANELS_PART_ROWS
        if n * itemsize // unit_bytes > most:
            take, extent, unit, most = product.columns, n, unit_bytes // itemsize, n * itemsize // unit_bytes
    number = cost.count_of_parts(product.ns, most)
    return [take(start, stop) for start, stop in parts.bounds(extent, number, unit)]
