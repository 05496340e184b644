# SPDX-License-Identifier: BSD-3-Clause
"""How the operands of a matrix product lie in memory, and who multiplies them.

Note [who multiplies]
Least times in us (benchmarks/bench_products.py) on two cores with AVX-512, float32: our kernels on one core, OpenBLAS
on one, and on two where nothing else runs.

    (m, k) (k, n)             ours   BLAS on 1   BLAS on 2
    (32, 32) (32, 32)         0.40      0.42        0.44
    (64, 128) (128, 128)      14.1      18.7        23.7
    (128, 128) (128, 128)     27.7      33.6        33
    (160, 160) (160, 160)     52        61          55
    (256, 256) (256, 256)    192       229         134
    (128, 784) (784, 512)   1028       808         506

So BLAS takes over where its second core pays, at 4 million multiplications. It is a bet on idle cores: OpenBLAS waits
for its threads by spinning, and beside one busy process (256, 256) (256, 256) took it 13000 us, us 260.

A right factor that lies by columns is turned first. For few rows that costs more than the product itself, and BLAS,
which reads it as it lies, is faster: at (4, 128) (128, 128) 1.3 against 6.3; but at (16, 128) (128, 128) 7.9 against
7.1.
"""

from itertools import pairwise
from typing import NamedTuple

from tracejit.ops.op import Layout
from tracejit.passes.lower import Access

BLAS_FROM = 4_000_000  # multiplications
ROWS = 16  # of a result: what parts of a product are made of; a multiple of the rows of a tile
_PER_NS = 300  # multiplications of numbers of one byte; those of 4 bytes take 4 times as long
TURNED_FROM = 1024  # elements of a right factor by columns
TURNED_ROWS = {4: 8, 8: 16}  # that many are turned for no fewer rows than this, by bytes of an element


class Matrices(NamedTuple):
    """Matrices in memory: the first one, and the elements between rows, between columns, and between matrices."""

    access: Access
    row: int
    column: int
    batch: int

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


def nanoseconds(multiplications: int, itemsize: int) -> float:
    """Return about how long our kernels take for so many multiplications of numbers of `itemsize` bytes."""
    return multiplications * itemsize / _PER_NS


def by_blas(m: int, n: int, k: int, by_rows: bool, itemsize: int) -> bool:
    """Return whether BLAS multiplies (m, k) by (k, n), rather than a kernel of ours (Note [who multiplies]).

    Args:
        m: rows of the left factor and the result.
        n: columns of the right factor and the result.
        k: columns of the left factor, rows of the right one.
        by_rows: whether the right factor lies by rows.
        itemsize: bytes of an element.
    """
    if m * n * k >= BLAS_FROM:
        return True
    return not by_rows and k * n >= TURNED_FROM and m < TURNED_ROWS[itemsize]
