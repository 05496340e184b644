# SPDX-License-Identifier: BSD-3-Clause
"""multiplier: the choice of the kernel for a matrix product (m, k) (k, n) = x y.

Note [who multiplies]
GFLOP/s (benchmarks/bench_products.py) on one core with AVX-512, float32, y by rows (NN) and by columns (NT; the kernel
by tiles needs a turned copy, whose time is included):

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

Narrow results have kernels of their own, whose lanes are rows ("columns") or lie along k ("dots"), see
codegen/templates/gemm.py. To turn the result, or to add up lanes, takes as long as some steps along k, so k must not
be small.

What remains for BLAS is very large products, and few rows times a y by columns. BLAS would use a second core, but the
parts of our kernels do too, and OpenBLAS waits for its threads by spinning: beside one busy process OpenBLAS took
13,000 us for (256, 256) (256, 256), our kernel 260 us.
"""

from tracejit.passes.loops.products import ROWS, WIDE_BYTES, Product

BLAS_FROM = 1_000_000_000  # multiplications

# Panels: the size of y and the rows of x, at least.
PANELS_BYTES, PANELS_ROWS = 65536, 64
FAR_BYTES, FAR_ROWS = 1 << 20, 8  # y is so far away that panels pay for fewer rows
# The same if y lies by columns and would be transposed for this product alone: a y transposed by one CPU is far from
# another CPU. With y of PANELS_BYTES, TURNING_PANELS_ROWS are enough.
TURNING_BYTES, TURNING_ROWS = 8192, 32
TURNING_PANELS_ROWS = 4

# Narrow results: the bytes of a row, at most, and k.
NARROW_BYTES = 64
COLUMNS_BYTES = 56  # for "columns", if y lies by rows
COLUMNS_DEPTH = 8  # k, at least, for rows of up to half of NARROW_BYTES
COLUMNS_WIDE_DEPTH = 32  # k, at least, for longer rows
DOTS_BYTES = 32  # for "dots", if y lies by columns
DOTS_TURNING_BYTES = 24  # for "dots", if y lies by rows
DOTS_DEPTH = 16  # k, at least, for each column except the first
DOTS_DEEPEST = 1024  # k, at most, if y lies by rows

# Tiles: a right factor by columns that BLAS reads in place, rather than a turned copy.
TURNED_FROM = 1024  # elements of y
TURNED_ROWS = {4: 8, 8: 16}  # rows of x below which y is not turned, by bytes of an element


def kernel_for(product: Product, is_shared: bool) -> str:
    """Return the kernel for a product (Note [who multiplies]).

    It is "gemm" (BLAS), "product" (by tiles) or "panels", or for narrow results "columns" or "dots".

    Args:
        product: the matrices to multiply.
        is_shared: whether several products use y in this layout, so that it is turned once for all.
    """
    m, n, k, itemsize = product.m, product.n, product.k, product.itemsize
    if m * n * k >= BLAS_FROM:
        return "gemm"
    narrow = _narrow(product)
    if narrow is not None:
        return narrow
    turned = not product.by_rows
    y_bytes = k * n * itemsize
    if n * itemsize >= WIDE_BYTES and y_bytes >= (
        TURNING_BYTES if turned and not is_shared else PANELS_BYTES
    ):
        if turned and not is_shared:
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
    """Return the kernel for a result of few columns, or None if the kernel by tiles is as fast."""
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
