# SPDX-License-Identifier: BSD-3-Clause
"""kept_values: the amount of data that a thread keeps for each element from one pass over a row to the next."""

from collections.abc import Container

from tracejit.passes.loops.nest import Accumulate, Compute, Load, Nest, Operand, Reload, Store

_WORD = 4  # bytes of a register


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
        words[operand] = max(1, itemsize // _WORD)

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
                of_all_rows += max(1, nest.writes[line.write].dtype.itemsize // _WORD)
    between = [
        sum(words[operand] for operand in first if first[operand] <= number < last[operand])
        for number in range(len(nest.full))
    ]
    return of_all_rows + max(between, default=0)
