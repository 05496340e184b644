# SPDX-License-Identifier: BSD-3-Clause
"""The executor: walks the table of a program. Compiled once for a process."""

from typing import Any

from numba.core import types

from .machine import (
    advance,
    call,
    call_parts,
    half_at,
    pointer,
    read_control,
    set_control,
    word_at,
)
from .state import (
    ARGUMENTS,
    ARRAY_DATA,
    ARRAY_DTYPE,
    ARRAY_FLAGS,
    ARRAY_NDIM,
    ARRAY_SHAPE,
    ARRAY_STRIDES,
    ARRAY_TYPE,
    CHECK_COUNT,
    CHECKS,
    CONTIGUOUS_AND_ALIGNED,
    FLUSH,
    FLUSH_TO_ZERO,
    OBJECT_TYPE,
    PATCH_COUNT,
    PATCHES,
    POOL,
    ROW_COUNT,
    ROW_WORDS,
    ROWS,
    RUN_PARTS,
    TUPLE_ITEMS,
)

SIGNATURE = types.intp(types.CPointer(types.intp), types.intp, types.intp)
"""run(state, inputs, outputs) -> status"""


def run(state: Any, inputs: int, outputs: int) -> int:
    """Check the inputs, fill in the addresses of this call's arrays, and launch every row.

    `inputs` and `outputs` are the addresses of tuples of NumPy arrays, which the caller keeps alive. The state
    is a list of words: the addresses of four tables and their lengths, the address of NumPy's array type, whether
    denormal numbers count as 0 while the program runs, and the addresses of a pool of threads, or 0, and of
    threads.run_parts. A check describes an
    input: (address of the dtype, axes, whether it has to be contiguous, sizes..., strides in bytes...). A patch is
    (place among the arguments, 0 for an input and 1 for an output, its number, bytes to add). A row is
    (kernel address, place of its arguments, how many rows from this one on may run at the same time).

    Returns 0, or the number of the first input, counted from 1, that is not as its check says; nothing has run then.
    """
    checks = pointer(state[CHECKS])
    at = 0
    for i in range(state[CHECK_COUNT]):
        array = word_at(inputs + TUPLE_ITEMS + 8 * i)
        ndim = checks[at + 1]
        if (
            word_at(array + OBJECT_TYPE) != state[ARRAY_TYPE]
            or word_at(array + ARRAY_DTYPE) != checks[at]
            or half_at(array + ARRAY_NDIM) != ndim
        ):
            return i + 1
        shape = word_at(array + ARRAY_SHAPE)
        for axis in range(ndim):
            if word_at(shape + 8 * axis) != checks[at + 3 + axis]:
                return i + 1
        if checks[at + 2] != 0:
            if half_at(array + ARRAY_FLAGS) & CONTIGUOUS_AND_ALIGNED != CONTIGUOUS_AND_ALIGNED:
                return i + 1
        else:
            strides = word_at(array + ARRAY_STRIDES)
            for axis in range(ndim):
                if word_at(strides + 8 * axis) != checks[at + 3 + ndim + axis]:
                    return i + 1
        at += 3 + 2 * ndim
    arguments = pointer(state[ARGUMENTS])
    patches = pointer(state[PATCHES])
    for i in range(state[PATCH_COUNT]):
        arrays = outputs if patches[4 * i + 1] != 0 else inputs
        array = word_at(arrays + TUPLE_ITEMS + 8 * patches[4 * i + 2])
        arguments[patches[4 * i]] = word_at(array + ARRAY_DATA) + patches[4 * i + 3]
    rows = pointer(state[ROWS])
    control = read_control(0)
    if state[FLUSH] != 0:
        set_control(control | FLUSH_TO_ZERO)
    i = 0
    while i < state[ROW_COUNT]:
        row = advance(rows, ROW_WORDS * i)
        if row[2] == 1 or state[POOL] == 0:
            call(row[0], advance(arguments, row[1]))
            i += 1
        else:
            call_parts(state[RUN_PARTS], pointer(state[POOL]), row, arguments)
            i += row[2]
    if state[FLUSH] != 0:
        set_control(control)
    return 0
