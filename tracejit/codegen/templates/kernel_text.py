# SPDX-License-Identifier: BSD-3-Clause
"""Tools of the kernels that are written as text: rows of a tile, lines that read the arguments, and indentation."""

from tracejit.codegen.names import INDENT, NAME, named
from tracejit.codegen.target import vector_bytes
from tracejit.program import Kernel
from tracejit.util.named_tuples import NamedTuple

TILE_ROWS = {64: 8, 32: 6, 16: 6}  # by bytes of a vector: AVX-512 has 32 registers, the others have 16


def tile_rows() -> int:
    """Return how many rows the tiles of a product have."""
    return TILE_ROWS[vector_bytes()]


class Finish(NamedTuple):
    """The lines by which a kernel computes what it stores from the vectors of a tile.

    stem        the beginning of the kernel's name
    pointers    the names of operands
    constants   the lines that read constants, with the number of the first argument left open
    outer       lines before those of all rows
    row         the lines of a row, which begin with `channel`, the number of its filter if it has one, and name the
                tile's vector ROW; the last line is the new vector
    """

    stem: str
    pointers: tuple[str, ...]
    constants: tuple[str, ...]
    outer: tuple[str, ...]
    row: tuple[str, ...]

    def lines(self, height: int) -> list[str]:
        """Return all lines, which replace the vectors of a tile."""
        return [*self.outer, *self.rows(height)]

    def rows(self, height: int) -> list[str]:
        """Return the lines of all rows."""
        rows = [line.replace("ROW", str(row)) for row in range(height) for line in self.row]
        vectors = ", ".join([f"done{row}" for row in range(height)])
        return [*rows, f"tile = ({vectors},)"]


def header(
    names: tuple[str, ...], suffix: str, operands: tuple[str, ...], finish: Finish | None = None
) -> list[str]:
    """Return the lines that read the arguments of a kernel: numbers, operands that it reads, and the result."""
    constants: list[str] = []
    if finish is not None:
        operands += finish.pointers
        first = len(names) + len(operands) + 1
        constants = [line.format(first + i) for i, line in enumerate(finish.constants)]
    numbers = [f"{name} = args[{i}]" for i, name in enumerate(names)]
    pointers = [f"{name} = read_{suffix}(args[{len(names) + i}])" for i, name in enumerate(operands)]
    return [*numbers, *pointers, f"out = write_{suffix}(args[{len(names) + len(operands)}], 0)", *constants]


def indent(depth: int, lines: list[str]) -> list[str]:
    """Return lines that stand deeper."""
    return [INDENT * depth + line for line in lines]


def kernel_of(lines: list[str], stem: str) -> Kernel:
    """Return the kernel of these lines."""
    return named("\n".join([f"def {NAME}(args):", *indent(1, lines)]) + "\n", stem)
