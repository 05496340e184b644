# SPDX-License-Identifier: BSD-3-Clause
"""Emission of a product with an epilogue: a loop that runs over its rows as they are computed.

See Note [epilogues] in passes/schedule/epilogues.py.
"""

from tracejit.codegen.loop_order import LoopOrder
from tracejit.codegen.names import INDENT, SUFFIXES
from tracejit.codegen.nest import Binding, Emitted, Frame, Hoisted, emit_in_frame
from tracejit.codegen.templates import gemm, kernel_text
from tracejit.passes.loops.launches import KernelLaunch
from tracejit.passes.schedule.epilogues import LONGEST_BYTES


def emit_product(launch: KernelLaunch) -> Emitted:
    """Return the kernel of a product with an epilogue, and the arguments to launch it with."""
    assert launch.epilogue is not None
    nest, product_read = launch.epilogue
    order = LoopOrder(nest.extents, None, ((0,), (1,)))
    return emit_in_frame(nest, order, _ProductFrame(launch, order, f"p{product_read}"))


class _ProductFrame(Frame):
    """Loops over the rows from i on, which the product has put into `block`."""

    prefix = "product_"

    def __init__(self, launch: KernelLaunch, order: LoopOrder, product_pointer: str) -> None:
        super().__init__(order)
        self.launch = launch
        self.computed = {product_pointer: "block[(i0 - i) * n1 + i1]"}
        self.dtype = launch.pointers[-1].dtype

    def sizes(self) -> list[Binding]:
        _, n0, n1, k, x_row, x_column, _, y_row, *_ = self.launch.numbers
        names = ("n0", "n1", "k", "x_row", "x_column", "y_row")
        numbers = zip(names, (n0, n1, k, x_row, x_column, y_row), strict=True)
        factors = zip(("x", "y"), self.launch.pointers, strict=False)
        return [
            *((name, number, "args[{}]") for name, number in numbers),
            *((name, access, f"read_{SUFFIXES[self.dtype]}(args[{{}}])") for name, access in factors),
        ]

    def scratch_lines(self) -> list[str]:
        columns = LONGEST_BYTES // self.dtype.itemsize
        return [f"{INDENT}block = scratch_{SUFFIXES[self.dtype]}({kernel_text.tile_rows() * columns})"]

    def loops(self, hoisted: Hoisted, rows: list[str]) -> list[str]:
        height = kernel_text.tile_rows()
        row = [*hoisted.get(1, ()), "for i1 in range(n1):", *[INDENT + line for line in rows]]
        block = [*gemm.rows_to_block(self.dtype), f"for i0 in range(i, min(i + {height}, n0)):"]
        block += [INDENT + line for line in row]
        lines = [*hoisted.get(0, ()), f"for i in range(0, n0, {height}):", *[INDENT + line for line in block]]
        return [INDENT + line for line in lines]
