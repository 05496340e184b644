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
    ARRAY_WEAK,
    CHECK_COUNT,
    CHECKS,
    CONTIGUOUS_AND_ALIGNED,
    FLUSH,
    FLUSH_TO_ZERO,
    LIST_ITEMS,
    NONE,
    OBJECT_REFERENCES,
    OBJECT_TYPE,
    PATCH_COUNT,
    PATCHES,
    POOL,
    RESULT_COUNT,
    RESULT_FORMATS,
    RESULT_TYPE,
    ROW_COUNT,
    ROW_WORDS,
    ROWS,
    RUN_PARTS,
    SLOT_DATA,
    SLOT_FORMAT,
    SLOT_VALUE,
    SLOT_WEAK,
    TUPLE_ITEMS,
    WRITEABLE,
)

SIGNATURE = types.intp(types.CPointer(types.intp), types.intp, types.intp, types.intp)
"""run(state, inputs, outputs, results) -> status"""


def run(state: Any, inputs: int, outputs: int, results: int) -> int:
    """Check the inputs, fill in the addresses of this call's arrays, and launch every row.

    `inputs` and `outputs` are the addresses of tuples of NumPy arrays, which the caller keeps alive. The state
    is a list of words: the addresses of four tables and their lengths, the address of NumPy's array type, whether
    denormal numbers count as 0 while the program runs, and the addresses of a pool of threads, or 0, and of
    threads.run_parts. A check describes an
    input: (address of the dtype, axes, whether it has to be contiguous, sizes..., strides in bytes...). A patch is
    (place among the arguments, 0 for an input and 1 for an output, its number, bytes to add). A row is
    (kernel address, place of its arguments, parts, rows of each part): 1 part, or as many from this row on that may
    run at the same time.

    If `results` is not 0, outputs and results are the addresses of lists: of arrays that a call filled before, and
    of the labelled arrays that hold the first of them. They are filled anew if nobody but these lists has them, and if
    they are as they were made. The checks of inputs go on with checks of outputs, and the state says how labelled
    arrays are laid out.

    Returns 0, or the number of the first input, counted from 1, that is not as its check says, or the negative number
    of the first output that cannot be filled anew; nothing has run then.
    """
    checks = pointer(state[CHECKS])
    count = state[CHECK_COUNT]
    output_items = outputs + TUPLE_ITEMS
    reused = 0
    if results != 0:
        output_items = word_at(outputs + LIST_ITEMS)
        result_items = word_at(results + LIST_ITEMS)
        reused = state[RESULT_COUNT]
        for i in range(reused):
            result = word_at(result_items + 8 * i)
            if word_at(result + OBJECT_TYPE) != state[RESULT_TYPE]:
                return -1 - i
            array = word_at(output_items + 8 * i)
            if (
                half_at(result + OBJECT_REFERENCES) != 1
                or half_at(array + OBJECT_REFERENCES) != 2
                or word_at(result + state[SLOT_DATA]) != array
                or word_at(result + state[SLOT_FORMAT]) != pointer(state[RESULT_FORMATS])[i]
                or word_at(result + state[SLOT_VALUE]) != state[NONE]
                or word_at(result + state[SLOT_WEAK]) != 0
                or word_at(array + ARRAY_WEAK) != 0
            ):
                return -1 - i
    at = 0
    for i in range(count + reused):
        if i < count:
            status, wanted = i + 1, CONTIGUOUS_AND_ALIGNED
            array = word_at(inputs + TUPLE_ITEMS + 8 * i)
        else:
            status, wanted = count - i - 1, CONTIGUOUS_AND_ALIGNED | WRITEABLE
            array = word_at(output_items + 8 * (i - count))
        ndim = checks[at + 1]
        if (
            word_at(array + OBJECT_TYPE) != state[ARRAY_TYPE]
            or word_at(array + ARRAY_DTYPE) != checks[at]
            or half_at(array + ARRAY_NDIM) != ndim
        ):
            return status
        shape = word_at(array + ARRAY_SHAPE)
        for axis in range(ndim):
            if word_at(shape + 8 * axis) != checks[at + 3 + axis]:
                return status
        if checks[at + 2] != 0:
            if half_at(array + ARRAY_FLAGS) & wanted != wanted:
                return status
        else:
            strides = word_at(array + ARRAY_STRIDES)
            for axis in range(ndim):
                if word_at(strides + 8 * axis) != checks[at + 3 + ndim + axis]:
                    return status
        at += 3 + 2 * ndim
    arguments = pointer(state[ARGUMENTS])
    patches = pointer(state[PATCHES])
    for i in range(state[PATCH_COUNT]):
        items = output_items if patches[4 * i + 1] != 0 else inputs + TUPLE_ITEMS
        array = word_at(items + 8 * patches[4 * i + 2])
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
            i += row[2] * row[3]
    if state[FLUSH] != 0:
        set_control(control)
    return 0
