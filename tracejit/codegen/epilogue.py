# SPDX-License-Identifier: BSD-3-Clause
"""Emission of products that a loop goes on with, some rows at a time (passes/epilogues.py)."""

from collections.abc import Callable

from tracejit.codegen import gemm
from tracejit.codegen.names import SUFFIXES
from tracejit.codegen.nest import INDENT, Emitted, Emitter, Walk
from tracejit.passes.loops.launches import Epilogue, KernelLaunch
from tracejit.passes.loops.nest import Access
from tracejit.passes.schedule.epilogues import LONGEST_BYTES


def emit_product(launch: KernelLaunch) -> Emitted:
    """Return the kernel of a product with an epilogue, and the arguments to launch it with."""
    assert launch.epilogue is not None
    return _Emitter(launch, launch.epilogue).run()


class _Emitter(Emitter):
    """Writes the loops of a nest over some rows from i on, which the product has put into `block`."""

    def __init__(self, launch: KernelLaunch, epilogue: Epilogue) -> None:
        super().__init__(epilogue.nest, Walk(epilogue.nest.extents, None, ((0,), (1,))))
        self.launch = launch
        self.made = f"p{epilogue.made}"
        self.dtype = launch.pointers[-1].dtype

    def bind_sizes(self, bind: Callable[..., None]) -> None:
        _, n0, n1, k, x_row, x_column, _, y_row, *_ = self.launch.numbers
        names = ("n0", "n1", "k", "x_row", "x_column", "y_row")
        for name, number in zip(names, (n0, n1, k, x_row, x_column, y_row), strict=True):
            bind(name, number)
        for name, access in zip(("x", "y"), self.launch.pointers, strict=False):
            bind(name, access, f"read_{SUFFIXES[self.dtype]}(args[{{}}])")

    def pointers(self) -> list[tuple[str, str, str, Access, tuple[int, ...]]]:
        return [pointer for pointer in super().pointers() if pointer[0] != self.made]

    def stem(self) -> str:
        return f"product_{super().stem()}"

    def scratch_lines(self) -> list[str]:
        columns = LONGEST_BYTES // self.dtype.itemsize
        return [f"{INDENT}block = scratch_{SUFFIXES[self.dtype]}({gemm.tile_rows() * columns})"]

    def load(self, name: str, strides: tuple[int, ...]) -> str:
        return "block[(i0 - i) * n1 + i1]" if name == self.made else super().load(name, strides)

    def loops(
        self, out: list[str], axes: range, indent: int, hoisted: dict[int, list[str]], inner: list[str]
    ) -> None:
        height = gemm.tile_rows()
        rows = [*hoisted.get(1, ()), "for i1 in range(n1):", *[INDENT + line for line in inner]]
        block = [*gemm.rows_to_block(self.dtype), f"for i0 in range(i, min(i + {height}, n0)):"]
        block += [INDENT + line for line in rows]
        lines = [*hoisted.get(0, ()), f"for i in range(0, n0, {height}):", *[INDENT + line for line in block]]
        out += [INDENT * indent + line for line in lines]
