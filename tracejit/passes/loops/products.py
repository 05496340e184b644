# SPDX-License-Identifier: BSD-3-Clause
"""How the operands of a matrix product lie in memory, and who multiplies them.

Note [who multiplies]
GFLOP/s (benchmarks/bench_products.py) on one core with AVX-512, float32, y by rows (NN) and by columns (NT; the first
of our kernels needs a turned copy, whose making counts):

    (m, k) (k, n)           NN: tiles  panels  BLAS     NT: tiles  panels  BLAS
    (64, 64) (64, 64)             159     155   157           138     145    95
    (64, 128) (128, 128)          148     152   109           108     149   105
    (128, 128) (128, 128)         151     160   125           126     161   122
    (32, 256) (256, 256)          171     137    87            88     131    82
    (8, 512) (512, 512)           109      84    31            30      71    33
    (16, 2048) (2048, 2048)        40      74    26            11      64    44
    (128, 784) (784, 512)          88     149   127            82     153   132
    (1024, 512) (512, 512)        192     162   164           181     165   175
    (2048, 2048) (2048, 2048)      48     135   153            48     131   162
    (100000, 64) (64, 10)          49      34                  49      34

Narrow results have kernels of their own, in which lanes are rows ("columns") or lie along k ("dots"), see
codegen/gemm.py. To turn the result, or to add up lanes, takes as long as some steps along k, so k must not be small.

So BLAS is left what is very large, and few rows with a y by columns. It would use a second core, but so do the parts of
ours, and OpenBLAS waits for its threads by spinning: beside one busy process (256, 256) (256, 256) took it 13000 us,
us 260.
"""

from itertools import pairwise
from typing import NamedTuple

from tracejit.ops.op import Layout
from tracejit.passes import cost
from tracejit.passes.loops import parts
from tracejit.passes.loops.nest import Access

BLAS_FROM = 1_000_000_000  # multiplications
PANELS_BYTES = 65536  # of y, at least
PANELS_ROWS = 64  # of x, at least
FAR_BYTES = 1 << 20  # of y, from which on panels pay for fewer rows
FAR_ROWS = 8
TURNING_PANELS_ROWS = 4  # of x, at least, if y lies by columns and would be turned for this product alone
# The same where y stays near: what one CPU has turned is far from another.
TURNING_BYTES, TURNING_ROWS = 8192, 32
PANELS_PART_ROWS = 64  # at least, of a part
WIDE_BYTES = 128  # of a row: as wide as a tile
NARROW_BYTES = 64  # of a row of a narrow result, at most
COLUMNS_BYTES = 56  # the same for tiles of columns, if y lies by rows
COLUMNS_DEPTH, COLUMNS_WIDE_DEPTH = (
    8,
    32,
)  # k, at least, for rows of up to half of NARROW_BYTES, and for longer ones
DOTS_BYTES, DOTS_TURNING_BYTES = (
    32,
    24,
)  # of a row, at most, where lanes lie along k: if y lies by columns, and if not
DOTS_DEPTH = 16  # k, at least, for each column but the first
DOTS_DEEPEST = 1024  # k, at most, if y does not lie by columns
ROWS = 16  # of a result: what parts of a product are made of; a multiple of the rows of a tile
TURNED_FROM = 1024  # elements of a right factor by columns
TURNED_ROWS = {4: 8, 8: 16}  # that many are turned for no fewer rows than this, by bytes of an element


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
        """Return (transposed, leading stride) of matrices that BLAS can read, else None."""
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

    def some(self, start: int, stop: int) -> "Product":
        """Return the products number `start` to before `stop`."""
        x, y, out = (side.moved(start * side.batch) for side in (self.x, self.y, self.out))
        return self._replace(batch=stop - start, x=x, y=y, out=out)

    def rows(self, start: int, stop: int) -> "Product":
        """Return what makes the rows `start` to before `stop` of the results."""
        x, out = self.x.moved(start * self.x.row), self.out.moved(start * self.out.row)
        return Product(self.batch, stop - start, self.n, self.k, x, self.y, out, self.add)

    def columns(self, start: int, stop: int) -> "Product":
        """Return what makes the columns `start` to before `stop` of the results."""
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
        """Whether y lies by rows."""
        return self.y.column == 1 or self.n == 1 or self.k == 0


def multiplier(product: Product, shared: bool) -> str:
    """Return who multiplies: "gemm" (BLAS), or a kernel of ours (Note [who multiplies]).

    These are "product", "panels", and for narrow results "columns" and "dots".

    Args:
        product: what to multiply.
        shared: whether several products use y as it lies here, so that it is turned once for all.
    """
    m, n, k, itemsize = product.m, product.n, product.k, product.itemsize
    if m * n * k >= BLAS_FROM:
        return "gemm"
    narrow = _narrow(product)
    if narrow is not None:
        return narrow
    turned = not product.by_rows
    y_bytes = k * n * itemsize
    if n * itemsize >= WIDE_BYTES and y_bytes >= (TURNING_BYTES if turned and not shared else PANELS_BYTES):
        if turned and not shared:
            least = TURNING_PANELS_ROWS if y_bytes >= PANELS_BYTES else TURNING_ROWS
        elif y_bytes >= FAR_BYTES:
            least = FAR_ROWS
        else:
            least = PANELS_ROWS * (2 if product.x.row == 1 else 1)  # a block of x has to pay too
        if m >= least:
            return "panels"
    if turned and k * n >= TURNED_FROM and m < TURNED_ROWS[itemsize]:
        return "gemm"
    return "product"


def _narrow(product: Product) -> str | None:
    """Return the kernel that multiplies for a result of few columns, or None if that of all others is as fast."""
    _, m, n, k, x, y, out, _ = product
    width = n * product.itemsize
    if width > NARROW_BYTES or k < COLUMNS_DEPTH:
        return None
    if x.row == 1 and m > 1:
        is_short, lanes = 2 * width <= NARROW_BYTES, NARROW_BYTES // product.itemsize
        if not product.by_rows:
            fits = is_short or 2 * k >= COLUMNS_WIDE_DEPTH
        elif is_short:
            fits = 2 * m > lanes
        else:
            idle = -m % lanes  # of a vector of rows
            fits = width <= COLUMNS_BYTES and 2 * idle <= m and k >= COLUMNS_WIDE_DEPTH
        return "columns" if fits else None
    if (
        x.column == 1
        and out.row == n
        and k >= DOTS_DEPTH * (n - 1)
        and (4 * width <= NARROW_BYTES or m >= ROWS)
    ):
        if y.row == 1 and width <= DOTS_BYTES:
            return "dots"
        if y.column == 1 and width <= DOTS_TURNING_BYTES and k <= DOTS_DEEPEST:
            return "dots"
    return None


def parts_of(product: Product, panels: bool) -> list[Product]:
    """Return the parts of a product of ours, several if it takes long: some products, or some of the rows or columns.

    Every part copies its panels by itself, so it has many rows or many columns.
    """
    batch, m, n, itemsize = product.batch, product.m, product.n, product.itemsize
    take, extent, unit, most = product.rows, m, ROWS, m // (2 * ROWS)
    if batch > 1:
        take, extent, unit, most = product.some, batch, 1, batch // 2
    elif panels:
        unit_bytes = WIDE_BYTES * (
            4 if product.x.row == 1 else 1
        )  # blocks of x are copied once for each part
        most = m // PANELS_PART_ROWS
        if n * itemsize // unit_bytes > most:
            take, extent, unit, most = product.columns, n, unit_bytes // itemsize, n * itemsize // unit_bytes
    number = cost.count_of_parts(product.ns, most)
    return [take(start, stop) for start, stop in parts.bounds(extent, number, unit)]
