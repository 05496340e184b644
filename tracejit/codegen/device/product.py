# SPDX-License-Identifier: BSD-3-Clause
"""Emission of matrix products for a device: by tiles, or by single elements where tiles would be mostly empty."""

from collections.abc import Sequence

from tracejit.codegen.device.product_tiles import emit_tiles
from tracejit.codegen.names import NAME, SUFFIXES, named
from tracejit.codegen.nest import Argument, Emitted
from tracejit.passes.loops.launches import KernelLaunch
from tracejit.passes.loops.nest import Access
from tracejit.passes.loops.products import Matrices, Product
from tracejit.passes.loops.spread import BLOCK, blocks_of
from tracejit.program import BlasProduct, Grid, ProductOperand

_LEAST_INNER, _LEAST_OUTER = 8, 8  # shorter axes fill no tiles

_TEXT = f"""def {NAME}(args):
    n = index(args[0])
    m = index(args[1])
    k = index(args[2])
    elements = index(args[3])
    x = read_SUFFIX(args[4])
    x_row = index(args[5])
    x_column = index(args[6])
    x_batch = args[7]
    y = read_SUFFIX(args[8])
    y_row = index(args[9])
    y_column = index(args[10])
    y_batch = args[11]
    out = write_SUFFIX(args[12], 0)
    out_row = index(args[13])
    out_batch = args[14]
    element = thread()
    while element < elements:
        column = remainder(element, n)
        row = remainder(quotient(element, n), m)
        number = quotient(quotient(element, n), m)
        at_x = number * x_batch + row * x_row
        at_y = number * y_batch + column * y_column
        at = number * out_batch + row * out_row + column
        total = START
        inner = index(0)
        while inner < k:
            total = fma_SUFFIX(x[at_x + inner * x_column], y[at_y + inner * y_row], total)
            inner = index(inner + 1)
        out[at] = total
        element = index(element + threads())
"""


def emit_product(launch: KernelLaunch) -> tuple[Emitted, Grid]:
    """Return the kernel of a matrix product, its arguments, and its threads."""
    product = launch.whole
    assert isinstance(product, Product)
    batch, m, n, k, x, y, out, add = product
    if k >= _LEAST_INNER and max(m, n) >= _LEAST_OUTER:
        return emit_tiles(product)
    suffix = SUFFIXES[out.access.dtype]
    text = _TEXT.replace("SUFFIX", suffix).replace("START", "out[at]" if add else f"{suffix}(0)")
    elements = batch * m * n
    arguments: list[Argument] = [
        n, m, k, elements,
        x.access, x.row, x.column, x.batch,
        y.access, y.row, y.column, y.batch,
        out.access, out.row, out.batch,
    ]  # fmt: skip
    return Emitted(named(text, "product"), arguments, {}), Grid(blocks_of(elements), BLOCK)


_BLAS_DTYPES = ("float32", "float64")
_MOST_EXTENT = (1 << 31) - 1  # of an axis


def blas_product(product: Product, arguments: Sequence[Argument]) -> BlasProduct | None:
    """Return what BLAS would compute of a product, given the arguments of its kernel; None if it cannot read it."""
    batch, m, n, k, x, y, out, add = product
    dtype = out.access.dtype
    extents = (batch, m, n, k)
    if str(dtype) not in _BLAS_DTYPES or {x.access.dtype, y.access.dtype} != {dtype}:
        return None
    if min(extents) < 1 or max(extents) > _MOST_EXTENT:
        return None
    slots = [number for number, argument in enumerate(arguments) if isinstance(argument, Access)]
    operands = [
        _blas_operand(slot, *which)
        for slot, which in zip(slots, ((x, m, k), (y, k, n), (out, m, n)), strict=True)
    ]
    left, right, result = operands
    if left is None or right is None or result is None or result.transposed:
        return None
    return BlasProduct(str(dtype), *extents, left, right, result, bool(add))


def _blas_operand(slot: int, matrices: Matrices, rows: int, columns: int) -> ProductOperand | None:
    leading = matrices.leading(rows, columns)
    if leading is None or matrices.batch < 0:
        return None
    return ProductOperand(slot, bool(leading[0]), leading[1], matrices.batch)
