# SPDX-License-Identifier: BSD-3-Clause
"""Kernels for a device that are written as text, in which T stands for the suffix of a dtype, as in exp_T."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType

import numpy as np

from tracejit.codegen.names import INDENT, NAME, SUFFIXES, named
from tracejit.codegen.nest import Argument, Emitted
from tracejit.passes.loops.nest import Access
from tracejit.program import Kernel, ScalarArgument

_Names = tuple[str, ...]
_Pointers = tuple[tuple[str, str], ...]


def emitted(
    stem: str, text: str, dtype: np.dtype, numbers: Mapping[str, int], reads: Mapping[str, Access],
    writes: Mapping[str, Access], values: Mapping[str, ScalarArgument] = MappingProxyType({}),
) -> Emitted:  # fmt: skip
    """Return the kernel of a text, and the arguments of its launch.

    Args:
        stem: the beginning of its name.
        text: its lines, after those that read the arguments.
        dtype: that T stands for.
        numbers: integers by their names in the text, where they have 32 bits.
        reads: what is read, by its name in the text.
        writes: what is written, and may be read.
        values: numbers of dtypes by their names in the text.
    """
    kernel = _kernel(
        stem, text, SUFFIXES[dtype], tuple(numbers),
        *[tuple([(name, SUFFIXES[of.dtype]) for name, of in some.items()]) for some in (reads, writes, values)],
    )  # fmt: skip
    arguments: list[Argument] = [*numbers.values(), *reads.values(), *writes.values(), *values.values()]
    return Emitted(kernel, arguments, {})


@lru_cache(maxsize=64)  # a recurrent layer has a launch for each step
def _kernel(
    stem: str, text: str, suffix: str, numbers: _Names, reads: _Pointers, writes: _Pointers,
    values: _Pointers = (),
) -> Kernel:  # fmt: skip
    lines = [f"{name} = index(args[{i}])" for i, name in enumerate(numbers)]
    for name, own in reads:
        lines.append(f"{name} = read_{own}(args[{len(lines)}])")
    for scope, (name, own) in enumerate(writes):
        lines.append(f"{name} = write_{own}(args[{len(lines)}], {scope})")
    for name, own in values:
        lines.append(f"{name} = number_{own}(args[{len(lines)}])")
    lines += re.sub(r"(?<![A-Za-z0-9])T\b", suffix, text).strip("\n").splitlines()
    return named("\n".join([f"def {NAME}(args):", *indented(1, lines)]) + "\n", stem)


def indented(depth: int, lines: Iterable[str]) -> list[str]:
    """Return lines that stand deeper."""
    return [INDENT * depth + line for line in lines]


def taken_apart(number: str, axes: Iterable[tuple[str, str]]) -> list[str]:
    """Return the lines that turn one number into an index for each axis; the last index changes fastest.

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
