# SPDX-License-Identifier: BSD-3-Clause
"""Kernels written as text with names in capitals, which stand for a dtype and the vectors of the CPU.

T           the suffix of the dtype, as in exp_T
V, W        a vector, and the two vectors that a tile is wide, as in load_V
X           the lanes of a vector in the names of kernels/intrinsics/lanes.py, as in store_first_X
LANES, WIDE, HIGH       the lanes of a vector, the columns of a tile and its rows, as in rows_HIGH
"""

import re
from collections.abc import Mapping

import numpy as np

from tracejit.codegen.names import INDENT, NAME, SUFFIXES, named
from tracejit.codegen.target import vector_bytes
from tracejit.codegen.templates.kernel_text import Finish, tile_rows
from tracejit.program import Kernel

_FEWEST_LANES = 4  # for which kernels/intrinsics/lanes.py has functions


def lanes_of(dtype: np.dtype) -> int:
    """Return the lanes of the vectors in kernels of this dtype."""
    return max(_FEWEST_LANES, vector_bytes() // dtype.itemsize)


def wide_of(dtype: np.dtype) -> int:
    """Return the columns of a tile."""
    return max(_FEWEST_LANES, 2 * vector_bytes() // dtype.itemsize)


def written(
    stem: str, text: str, dtype: np.dtype, numbers: tuple[str, ...], pointers: str, results: str,
    sizes: Mapping[str, int | str], snippets: Mapping[str, str] | None = None, finish: Finish | None = None,
) -> Kernel:  # fmt: skip
    """Return the kernel of a text.

    Args:
        stem: the beginning of its name.
        text: its lines, after those that read the arguments.
        dtype: of the pointers.
        numbers: names of the integers.
        pointers: names of what is read, followed by a suffix where the dtype differs, as in ``labels:i64``.
        results: names of what is written, likewise.
        sizes: more names in capitals, which stand for numbers, or for names of lanes as X does.
        snippets: lines that stand for a line of the text that is only their name.
        finish: what has further operands after those of `pointers`, and constants after the results.
    """
    for name, lines in (snippets or {}).items():
        for indent in set(re.findall(rf"^( *){name}$", text, re.MULTILINE)):
            text = text.replace(f"\n{indent}{name}\n", f"\n{_indented(indent, lines)}\n")
    suffix, lanes, wide = SUFFIXES[dtype], lanes_of(dtype), wide_of(dtype)
    names = {
        "T": suffix, "V": f"{suffix}x{lanes}", "W": f"{suffix}x{wide}", "X": f"x{lanes}",
        "LANES": str(lanes), "WIDE": str(wide), "HIGH": str(tile_rows()),
        **{name: str(size) for name, size in sizes.items()},
    }  # fmt: skip
    body = re.sub(rf"(?<![A-Za-z0-9])({'|'.join(names)})\b", lambda found: names[found[1]], text)
    header = [f"{name} = args[{i}]" for i, name in enumerate(numbers)]
    if finish is not None:
        pointers = " ".join([pointers, *finish.pointers])
    for kind, operands in (("read", pointers), ("write", results)):
        for scope, operand in enumerate(operands.split()):
            name, _, own = operand.partition(":")
            place = f"args[{len(header)}]" + (f", {scope}" if kind == "write" else "")
            header.append(f"{name} = {kind}_{own or suffix}({place})")
    for line in () if finish is None else finish.constants:
        header.append(line.format(len(header)))
    return named(
        f"def {NAME}(args):\n" + _indented(INDENT, "\n".join([*header, body.strip("\n")])) + "\n", stem
    )


def _indented(indent: str, lines: str) -> str:
    return "\n".join(indent + line for line in lines.strip("\n").splitlines())
