# SPDX-License-Identifier: BSD-3-Clause
"""Kernels for a device that are written as text, in which T stands for the suffix of a dtype, as in exp_T."""

import re
from collections.abc import Iterable, Mapping

import numpy as np

from tracejit.codegen.names import INDENT, NAME, SUFFIXES, named
from tracejit.codegen.nest import Argument, Emitted
from tracejit.passes.loops.nest import Access


def emitted(
    stem: str, text: str, dtype: np.dtype, numbers: Mapping[str, int], reads: Mapping[str, Access],
    writes: Mapping[str, Access],
) -> Emitted:  # fmt: skip
    """Return the kernel of a text, and the arguments of its launch.

    Args:
        stem: the beginning of its name.
        text: its lines, after those that read the arguments.
        dtype: that T stands for.
        numbers: integers by their names in the text, where they have 32 bits.
        reads: what is read, by its name in the text.
        writes: what is written, and may be read.
    """
    arguments: list[Argument] = [*numbers.values(), *reads.values(), *writes.values()]
    lines = [f"{name} = index(args[{i}])" for i, name in enumerate(numbers)]
    for name, access in reads.items():
        lines.append(f"{name} = read_{SUFFIXES[access.dtype]}(args[{len(lines)}])")
    for scope, (name, access) in enumerate(writes.items()):
        lines.append(f"{name} = write_{SUFFIXES[access.dtype]}(args[{len(lines)}], {scope})")
    lines += re.sub(r"(?<![A-Za-z0-9])T\b", SUFFIXES[dtype], text).strip("\n").splitlines()
    body = indented(1, lines)
    return Emitted(named("\n".join([f"def {NAME}(args):", *body]) + "\n", stem), arguments, {})


def indented(depth: int, lines: Iterable[str]) -> list[str]:
    """Return lines that stand deeper."""
    return [INDENT * depth + line for line in lines]


def taken_apart(number: str, axes: Iterable[tuple[str, str]]) -> list[str]:
    """Return the lines that make one number an index of each axis, of which the last changes fastest.

    Args:
        number: its name.
        axes: the names of the indices, and of how many there are.
    """
    (outermost, _), *inner = axes
    lines, rest = [], number
    for name, count in reversed(inner):
        lines += [f"{name} = remainder({rest}, {count})", f"rest = quotient({rest}, {count})"]
        rest = "rest"
    return [*lines, f"{outermost} = {rest}"]


def sum_over_lanes(names: Iterable[str], across: str, lanes: int = 32) -> list[str]:
    """Return the lines that give each thread the sum of what `lanes` neighbours have, which is a power of two.

    Args:
        names: of the variables that are summed up.
        across: the function that exchanges them.
        lanes: how many neighbours there are.
    """
    lines = [f"step = index({lanes // 2})", "while step > 0:"]
    lines += [f"{INDENT}{name} = {name} + {across}({name}, step)" for name in names]
    return [*lines, f"{INDENT}step = index(step >> 1)"]
