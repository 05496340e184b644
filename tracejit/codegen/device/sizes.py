# SPDX-License-Identifier: BSD-3-Clause
"""Kernels for more elements than indices of 32 bits can count.

A GPU divides and multiplies integers of 64 bits several times slower than those of 32, so kernels compute indices in 32
bits. Threads that take elements in turn add up to 2**29 to an index before they see that it is too large, so that is
right for up to 2**30 elements, which lie no further apart than that. Other launches have the same text with functions
for 64 bits, and so a kernel of their own.
"""

import re
from collections.abc import Sequence

from tracejit.codegen.names import NAME, named
from tracejit.codegen.nest import Argument, Emitted
from tracejit.errors import CodegenError
from tracejit.passes.loops.few_arguments import MOST_WORDS
from tracejit.passes.loops.nest import Access, Nest
from tracejit.passes.loops.products import Product

MOST_ELEMENTS = 1 << 30  # that are counted in 32 bits
_IN_32_BITS = re.compile(r"\b(index|quotient|remainder)\(")


def is_too_large(arguments: list[Argument], whole: object = None) -> bool:
    """Return whether indices of a launch may not fit into 32 bits.

    Args:
        arguments: of its kernel.
        whole: the matrix product or nest that it is, if it is one: what it reads may lie in memory that is larger.
    """
    sizes = [a.root.aval.size if isinstance(a, Access) else a for a in arguments]
    if isinstance(whole, Nest):
        sizes += [_reach(access, whole.extents) for access in (*whole.reads, *whole.writes)]
    if isinstance(whole, Product):
        _, m, n, k, x, y, out, _ = whole
        sizes += [m * abs(x.row), k * abs(x.column), k * abs(y.row), n * abs(y.column), m * abs(out.row)]
    return any(isinstance(size, int) and abs(size) > MOST_ELEMENTS for size in sizes)


def _reach(access: Access, extents: Sequence[int]) -> int:
    """Return how many elements lie between the first and the last one of a walk through memory."""
    return sum([max(0, n - 1) * abs(stride) for n, stride in zip(extents, access.strides, strict=True)])


def in_64_bits(emitted: Emitted) -> Emitted:
    """Return a kernel that computes indices in 64 bits."""
    kernel = emitted.kernel
    text = _IN_32_BITS.sub(r"\g<1>64(", kernel.text.replace(kernel.name, NAME))
    return emitted._replace(kernel=named(text, kernel.name.rpartition("_")[0]))


def refuse_if_too_large(name: str, arguments: list[Argument]) -> None:
    """Raise an error for a kernel whose indices have 32 bits, if its launch is too large for that.

    Raises:
        CodegenError: if it is.
    """
    if is_too_large(arguments):
        raise CodegenError(f"{name}: a GPU's kernel takes arrays of up to {MOST_ELEMENTS} elements.")


def refuse_if_too_many(name: str, arguments: Sequence[object]) -> None:
    """Raise an error for a launch whose arguments are more than a kernel takes, and which cannot be cut.

    Raises:
        CodegenError: if they are.
    """
    if len(arguments) > MOST_WORDS:
        raise CodegenError(
            f"{name}: a GPU's kernel takes {MOST_WORDS} arguments; this one has {len(arguments)}."
        )
