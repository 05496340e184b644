# SPDX-License-Identifier: BSD-3-Clause
"""kept_values: the registers of a thread that keeps elements of a row from one pass over it to the next.

Note [registers of rows]
What a thread needs is estimated from the nest. The numbers come from what NVIDIA's compilers report for 250 kernels of
normalisations, softmax and losses, of 32, 8 and 16 elements for each thread:

- Values that are kept between two passes take a register for each element, or two.
- Sums over rows take two: the sum, and what is added to it.
- Sizes, addresses and temporary values take 64, and 6 for each operand from the fifth on. Where elements are loaded one
  by one, places and conditions take 32 more.

An estimate that is too small costs a kernel that stores registers in memory; one that is too large, a pass that reads
the row again.
"""

from collections.abc import Container

from tracejit.passes.loops.nest import Accumulate, Compute, Load, Nest, Operand, Reload, Store

_WORD = 4  # bytes of a register
SPARE = 64  # registers for all but the elements that are kept
_PLACES = 32  # registers more where elements are loaded one by one
_OPERAND, _FEW_OPERANDS = 6, 4  # registers for each operand beyond a few


def registers(
    nest: Nest, split: int, scratch: Container[int], sums: Container[int], own: int, is_wide: bool
) -> int:
    """Return about how many registers a thread takes that keeps its elements of a row (Note [registers of rows]).

    Args:
        nest: whose passes load and compute nothing again.
        split: the number of axes that run over rows.
        scratch: the writes that are not stored, because later passes reload them from registers.
        sums: the writes that are sums over rows, with an element for each of the row's.
        own: how many elements a thread has.
        is_wide: whether it loads several at once.
    """
    adding = [line.write for lines in nest.full for line in lines if isinstance(line, Accumulate)]
    words = kept_words(nest, split, scratch)
    words += sum(_words(nest.writes[write].dtype.itemsize) for write in adding if write in sums)
    stored = [write for write in range(len(nest.writes)) if write not in scratch]
    operands = max(0, len(nest.reads) + len(stored) - _FEW_OPERANDS)
    return words * own + SPARE + (0 if is_wide else _PLACES) + operands * _OPERAND


def _words(itemsize: int) -> int:
    return max(1, itemsize // _WORD)


def kept_words(nest: Nest, split: int, scratch: Container[int]) -> int:
    """Return the most registers that hold one element of a row between two of its passes.

    Args:
        nest: whose passes load and compute nothing again.
        split: the number of axes that run over rows.
        scratch: the writes that are not stored, because later passes reload them from registers.
    """
    first: dict[Operand, int] = {}
    last: dict[Operand, int] = {}
    words: dict[Operand, int] = {}
    stored: dict[int, Operand] = {}
    of_all_rows = 0

    def used(operand: Operand, number: int, itemsize: int) -> None:
        first.setdefault(operand, number)
        last[operand] = number
        words[operand] = _words(itemsize)

    for number, lines in enumerate(nest.full):
        for line in lines:
            if isinstance(line, Load):
                access = nest.reads[line.read]
                if any(access.strides[split:]):
                    used(line.result, number, access.dtype.itemsize)
            elif isinstance(line, Compute):
                used(line.result, number, line.result.dtype.itemsize)
            elif isinstance(line, Store) and line.write in scratch:
                stored[line.write] = line.value
                used(line.value, number, nest.writes[line.write].dtype.itemsize)
            elif isinstance(line, Reload):
                size = nest.writes[line.write].dtype.itemsize
                used(stored.get(line.write, line.result), number, size)
            elif isinstance(line, Accumulate):
                of_all_rows += _words(nest.writes[line.write].dtype.itemsize)
    between = [
        sum(words[operand] for operand in first if first[operand] <= number < last[operand])
        for number in range(len(nest.full))
    ]
    return of_all_rows + max(between, default=0)
