# SPDX-License-Identifier: BSD-3-Clause
"""How the operands of a matrix product lie in memory, and who multiplies them."""

from itertools import pairwise
from typing import NamedTuple

from tracejit.ops.op import Layout
from tracejit.passes.lower import Access

BLAS_FROM = 4_000_000  # multiplications; see by_blas


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


def by_blas(m: int, n: int, k: int) -> bool:
    """Return whether BLAS multiplies (m, k) by (k, n), rather than a kernel of ours."""
    return m * n * k >= BLAS_FROM
