# SPDX-License-Identifier: BSD-3-Clause
"""Tools of the kernels that are written as text: rows of a tile, lines that read the arguments, and indentation."""

from tracejit.codegen.names import INDENT, NAME, named
from tracejit.codegen.target import vector_bytes
from tracejit.program import Kernel

TILE_ROWS = {64: 8, 32: 6, 16: 6}  # by bytes of a vector: AVX-512 has 32 registers, the others have 16


def tile_rows() -> int:
    """Return how many rows the tiles of a product have."""
    return TILE_ROWS[vector_bytes()]


def header(names: tuple[str, ...], suffix: str, operands: tuple[str, ...]) -> list[str]:
    """Return the lines that read the arguments of a kernel: numbers, operands that it reads, and the result."""
    numbers = [f"{name} = args[{i}]" for i, name in enumerate(names)]
    pointers = [f"{name} = read_{suffix}(args[{len(names) + i}])" for i, name in enumerate(operands)]
    return [*numbers, *pointers, f"out = write_{suffix}(args[{len(names) + len(operands)}], 0)"]


def indent(depth: int, lines: list[str]) -> list[str]:
    """Return lines that stand deeper."""
    return [INDENT * depth + line for line in lines]


def kernel_of(lines: list[str], stem: str) -> Kernel:
    """Return the kernel of these lines."""
    return named("\n".join([f"def {NAME}(args):", *indent(1, lines)]) + "\n", stem)
