# SPDX-License-Identifier: BSD-3-Clause
"""kept_values: whether the threads of a device have registers for a row, from one pass over it to the next.

Note [registers of rows]
What a thread needs is estimated from the nest. The numbers come from what NVIDIA's compilers report for 250 kernels of
normalisations, softmax and losses, with 8 to 32 elements for each thread:

- Values that are kept between two passes take a register for each element, or two.
- Sums over rows take two: the sum, and what is added to it.
- Sizes, addresses and temporary values take 64, and 6 for each operand from the fifth on. Where elements are loaded one
  by one, places and conditions take 32 more.

An estimate that is too small costs a kernel that stores registers in memory; one that is too large, a pass that reads
the row again. A row for which a group has too few registers is taken by a block, whose threads have fewer elements.
"""

import math
from collections.abc import Container

from tracejit.passes.loops.nest import Accumulate, Compute, Load, Nest, Operand, Reload, Store

GROUP = 32  # threads that take each step together
WIDE = 4  # neighbours that a thread takes at once
MOST_KEPT = 1024  # elements of a row, or a piece of it, that a group keeps in registers
_LEAST_PIECE = 128  # elements of the smallest piece
# Elements of a row that a thread of a block may keep, in vectors and one by one.
_KEPT_WIDE, _KEPT_NARROW = (16, 8), (8, 4)
REGISTERS = {256: 255, 512: 128}  # of a thread, by the most threads of a block: a multiprocessor has 65536
# Of a thread of a group, which exchanges by calls (Note [calls of a GPU] in compile/device_arithmetic.py).
_GROUP_REGISTERS = 192
_PLACES_OF_GROUP = 3  # registers of a group for each element that is loaded alone
SPARE = 64  # registers for all but the elements that are kept
_PLACES = 32  # registers more where elements are loaded one by one
_OPERAND, _FEW_OPERANDS = 6, 4  # registers for each operand beyond a few
_WORD = 4  # bytes of a register


def threads_that_keep(nest: Nest, scratch: Container[int], sums: Container[int]) -> int | None:
    """Return the threads of a block that keeps a row in registers; None if it has too few (Note [registers of rows]).

    Args:
        nest: whose rows a block takes.
        scratch: the writes that are not stored, because later passes reload them from registers.
        sums: the writes that are sums over rows, with an element for each of the row's.
    """
    if not lies_as_one_axis(nest, nest.split or 0):
        return None
    for own in _KEPT_WIDE if are_wide(nest) else _KEPT_NARROW:
        threads = -(-row_length(nest) // (own * GROUP)) * GROUP
        most = next((count for most, count in REGISTERS.items() if threads <= most), 0)
        if _registers(nest, scratch, sums, own) <= most:
            return threads
    return None


def keeps_by_group(nest: Nest, scratch: Container[int], sums: Container[int]) -> bool:
    """Return whether the threads of a group have registers for a row of up to MOST_KEPT elements."""
    return _registers_of_group(nest, scratch, sums, MOST_KEPT) <= _GROUP_REGISTERS


def piece_of(nest: Nest, scratch: Container[int], sums: Container[int]) -> int:
    """Return how many elements of a long row a group keeps, a power of two."""
    piece, most = MOST_KEPT, max(REGISTERS.values())
    while piece > _LEAST_PIECE and _registers_of_group(nest, scratch, sums, piece) > most:
        piece //= 2
    return piece


def _registers_of_group(nest: Nest, scratch: Container[int], sums: Container[int], elements: int) -> int:
    own = 1 << (-(-min(row_length(nest), elements) // GROUP) - 1).bit_length()
    places = 0 if are_wide(nest) else _PLACES_OF_GROUP * own
    return _registers(nest, scratch, sums, own) + places


def _registers(nest: Nest, scratch: Container[int], sums: Container[int], own: int) -> int:
    """Return about how many registers a thread takes that keeps `own` elements of a row."""
    adding = [line.write for lines in nest.full for line in lines if isinstance(line, Accumulate)]
    words = kept_words(nest, nest.split or 0, scratch)
    words += sum(_words(nest.writes[write].dtype.itemsize) for write in adding if write in sums)
    stored = [write for write in range(len(nest.writes)) if write not in scratch]
    operands = max(0, len(nest.reads) + len(stored) - _FEW_OPERANDS)
    return words * own + SPARE + (0 if are_wide(nest) else _PLACES) + operands * _OPERAND


def _words(itemsize: int) -> int:
    return max(1, itemsize // _WORD)


def are_wide(nest: Nest) -> bool:
    """Return whether vectors may hold the elements of a row: there are whole ones, and one dtype."""
    dtypes = {access.dtype for access in (*nest.reads, *nest.writes)}
    return row_length(nest) % WIDE == 0 and len(dtypes) == 1


def row_length(nest: Nest) -> int:
    """Return how many elements a row has."""
    return math.prod(nest.extents[nest.split or 0 :])


def lies_as_one_axis(nest: Nest, split: int) -> bool:
    """Return whether the elements of a row lie in all memory as those of one axis do."""
    return all(
        access.strides[axis] == access.strides[axis + 1] * nest.extents[axis + 1]
        for access in (*nest.reads, *nest.writes)
        for axis in range(split, len(nest.extents) - 1)
    )


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
