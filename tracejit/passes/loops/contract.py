# SPDX-License-Identifier: BSD-3-Clause
"""contract: turns a matrix product into a launch of a suitable kernel (Note [who multiplies] in multiplier.py)."""

import math

import numpy as np

from tracejit.aval import Aval
from tracejit.ir import Node, Value
from tracejit.ops import OPS
from tracejit.ops.op import KernelCall, contiguous
from tracejit.passes.loops import multiplier
from tracejit.passes.loops.builder import LaunchBuilder
from tracejit.passes.loops.launches import KernelLaunch, product_launch
from tracejit.passes.loops.nest import IN_PLACE, Access, Accumulate, Compute, Line, Load, Nest
from tracejit.passes.loops.pieces import Destination, result_in_place
from tracejit.passes.loops.products import Matrices, Product

_SHORT = 8  # elements of a row whose number would be in the text of a loop


def contract(builder: LaunchBuilder, node: Node, is_shared: bool, destination: Destination | None) -> bool:
    """Launch a matrix product; return whether it writes to `destination`.

    Args:
        builder: takes the launch, and copies of factors that the kernel cannot read.
        node: the matrix product.
        is_shared: whether several products read the right factor.
        destination: where the result may be written instead of to memory of its own.
    """
    out = node.output
    if out.dtype.kind != "f":
        _contract_integers(builder, node)
        return False
    if out.aval.size == 0:
        return False
    product = _product_of(builder, node)
    kernel = "product" if builder.for_device else multiplier.kernel_for(product, is_shared)
    placed = None if destination is None else result_in_place(product, destination, kernel)
    if placed is not None:
        product = product._replace(out=placed)
    if not builder.for_device and _sums_rows(product, kernel):
        builder.add_nest(_row_sums(product, node))
    elif builder.for_device:  # whose kernels read matrices in any order
        builder.add(product_launch(product, "columns", node))
    elif kernel == "gemm":
        _launch_blas(builder, node, product)
    else:
        builder.add(product_launch(_readable(builder, product, kernel), kernel, node))
    return placed is not None


def _contract_integers(builder: LaunchBuilder, node: Node) -> None:
    """Launch the hand-written kernel, which takes contiguous operands of equal batch axes."""
    x, y, *added = node.inputs
    out, emit = node.output, node.op.emit
    assert isinstance(emit, KernelCall)
    operands = [*(builder.broadcast(v, out.shape[:-2]) for v in (x, y)), *added]
    numbers = emit.numbers(out.aval, *[v.aval for v in operands])
    pointers = (*map(builder.contiguous, operands), Access(out, 0, (), out.dtype))
    builder.add(KernelLaunch(emit.name, tuple(numbers), pointers, 1, node))


def _product_of(builder: LaunchBuilder, node: Node) -> Product:
    """Return the product of a node, with as few matrices as possible, and a result that has many columns."""
    x, y, *added = node.inputs
    out = node.output
    target = Access(builder.fused.view(out)[0], 0, (), out.dtype)
    if added and target.root is out:
        builder.copy(builder.fused.view(added[0]), (out, contiguous(out.shape)))
    batch = out.shape[:-2]
    count = math.prod(batch)
    (m, n), k = out.shape[-2:], x.shape[-1]
    left, right = builder.matrices(x, batch), builder.matrices(y, batch)
    if m == 1:
        left = left._replace(row=left.batch)
    if right.batch == 0 and left.batch == m * left.row:
        count, m = 1, count * m  # all the rows are those of one matrix
    own = Matrices(target, n, 1, m * n)
    if n == 1 and left.row == 1:
        # A tile of out' = y' x' has many columns, that of out = x y one.
        own = own._replace(row=m)
        return Product(count, n, m, k, right.turned, left.turned, own, len(added))
    if m == 1 and right.row == 1 and right.column != 1:
        # A row times a factor by columns, with neighbours along each column, is that factor's rows times a column.
        own = own._replace(row=1, column=n)
        return Product(count, n, 1, k, right.turned, left.turned, own, len(added))
    return Product(count, m, n, k, left, right, own, len(added))


def _sums_rows(product: Product, kernel: str) -> bool:
    """Return whether a product is that of one row, by a kernel whose tiles would hold it several times."""
    y, out = product.y, product.out
    is_one = product.batch == product.m == 1 < product.k and product.n > _SHORT
    return is_one and kernel in ("product", "panels", "columns") and y.column == out.column == 1


def _row_sums(product: Product, node: Node) -> Nest:
    """Return the nest that adds up the rows of a matrix, each times a number, which are its product with one row.

    It goes through the matrix once, row by row. Us of (r,) (r, c) in float32 by tiles and by sums, on one thread:

        r x c    10 x 10    100 x 100    1000 x 10    100000 x 10    1000 x 1000    10 x 100000
        tiles       0.42          1.3          2.6            218             82             90
        sums        0.29          1.0          1.2             83             56             55
    """
    dtype = node.output.dtype
    element = Value(Aval((), None, dtype), None)
    multiply = Node(OPS["mul"], (element, element), {}, None)
    term = Value(Aval((), None, dtype), None)
    multiply.makes((term,))
    adding = Node(OPS["sum"], (element,), {}, None)
    adding.makes((element,))
    x, y, out = product.x, product.y, product.out
    reads = [x.access._replace(strides=(x.column, 0)), y.access._replace(strides=(y.row, 1))]
    write = out.access._replace(strides=(0, 1))
    lines: list[Line] = [
        Load(0, 0), Load(1, 1), Compute(term, multiply, (0, 1)),
        Accumulate(0, adding, term, IN_PLACE if product.add else None),
    ]  # fmt: skip
    return Nest((product.k, product.n), None, reads, [write], [[]], [lines], [node])


def _readable(builder: LaunchBuilder, product: Product, kernel: str) -> Product:
    """Return a product with factors that the kernel can read, copied where it cannot."""
    if kernel in ("columns", "dots"):  # which are chosen only for factors that they can read
        return product
    panels = kernel == "panels"
    count, m, n, k, x, y, _, _ = product
    if panels and x.row != 1 and x.column != 1:
        x = builder.by_rows(x, count, m, k)
    if not product.by_rows and not (panels and y.row == 1):
        y = builder.by_rows(y, count, k, n)
    return product if x is product.x and y is product.y else product._replace(x=x, y=y)


def _launch_blas(builder: LaunchBuilder, node: Node, product: Product) -> None:
    """Launch a product by BLAS, which takes transposes and batch strides as numbers."""
    count, m, n, k, *factors, out, add = product
    numbers = [count, m, n, k]
    pointers = []
    for matrices, rows, columns in zip(factors, (m, k), (k, n), strict=True):
        flags = matrices.leading(rows, columns)
        if flags is None:
            matrices = builder.by_rows(matrices, count, rows, columns)
            flags = (0, columns)
        numbers += (*flags, matrices.batch)
        pointers.append(matrices.access)
    numbers.append(add)
    pointers.append(out.access)
    symbol = "sgemm" if node.output.dtype == np.float32 else "dgemm"
    builder.add(KernelLaunch("gemm", tuple(numbers), tuple(pointers), 1, node, symbol))
