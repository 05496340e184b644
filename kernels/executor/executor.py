# SPDX-License-Identifier: BSD-3-Clause
"""The executor: walks the table of a program. These are functions of words (machine.py)."""

from .machine import Words, call, call_kernel, half_at, read_control, set_control
from .state import (
    ALIGNED,
    ARGUMENTS,
    ARRAY_DATA,
    ARRAY_DTYPE,
    ARRAY_FLAGS,
    ARRAY_NDIM,
    ARRAY_SHAPE,
    ARRAY_STRIDES,
    ARRAY_TYPE,
    CHECKS,
    CONTIGUOUS_AND_ALIGNED,
    DATA,
    FLUSH,
    FLUSH_TO_ZERO,
    INPUT_COUNT,
    OBJECT_TYPE,
    OUTPUT_COUNT,
    PATCH_COUNT,
    PATCHES,
    POOL,
    ROW_COUNT,
    ROW_WORDS,
    ROWS,
    RUN_PARTS,
    TUPLE_HEAD,
)


def run(state: Words, inputs: Words, outputs: Words) -> Words:
    """Check the inputs, fill in the addresses of this call's arrays, and launch every row.

    `inputs` and `outputs` are the addresses of tuples of NumPy arrays, which the caller keeps alive. The state
    is a list of words (state.py): the addresses of tables and their lengths, the address of NumPy's array type,
    whether denormal numbers count as 0 while the program runs, and the addresses of a pool of threads, or 0, and of
    threads.run_parts.

    Returns 0, or the number of the first input, counted from 1, that is not as its check says; nothing has run then.
    """
    status = check_inputs(state, inputs + state[TUPLE_HEAD])
    if status == 0:
        data = state[DATA] + 8 * state[INPUT_COUNT]
        items = outputs + state[TUPLE_HEAD]
        for i in range(state[OUTPUT_COUNT]):
            data[i] = items[i][ARRAY_DATA]
        launch(state)
    return status


def check_inputs(state: Words, items: Words) -> Words:
    """Note the data of input arrays, given the address of their addresses; return the status (see run).

    The checks are one after the other. A number, whose data is known already, has 0 instead of a dtype.
    """
    check = state[CHECKS]
    for i in range(state[INPUT_COUNT]):
        if check[0] != 0:
            array = items[i]
            if not fits(state, array, check, CONTIGUOUS_AND_ALIGNED):
                return i + 1
            state[DATA][i] = array[ARRAY_DATA]
        check = after(check)
    return 0


def after(check: Words) -> Words:
    """Return the address of the next check."""
    return check + 8 * (3 + 2 * check[1])


def fits(state: Words, array: Words, check: Words, flags: Words) -> Words:
    """Return whether an object is an array as its check says; one that has to be contiguous has these flags too.

    A check is (address of the dtype, axes, whether it has to be contiguous, sizes..., strides in bytes...).
    """
    axes = check[1]
    if (
        array[OBJECT_TYPE] != state[ARRAY_TYPE]
        or array[ARRAY_DTYPE] != check[0]
        or half_at(array + 8 * ARRAY_NDIM) != axes
    ):
        return 0
    shape = array[ARRAY_SHAPE]
    for axis in range(axes):
        if shape[axis] != check[3 + axis]:
            return 0
    found = half_at(array + 8 * ARRAY_FLAGS)
    if check[2] != 0:
        return found & flags == flags
    if found & ALIGNED == 0:
        return 0
    strides = array[ARRAY_STRIDES]
    for axis in range(axes):
        if strides[axis] != check[3 + axes + axis]:
            return 0
    return 1


def launch(state: Words) -> None:
    """Fill in addresses and launch every row.

    A patch is (place among the arguments, number among the data of inputs and outputs, bytes to add). A row is
    (kernel address, place of its arguments, parts, rows of each part): 1 part, or as many from this row on that may
    run at the same time.
    """
    arguments = state[ARGUMENTS]
    patches = state[PATCHES]
    data = state[DATA]
    for i in range(state[PATCH_COUNT]):
        arguments[patches[3 * i]] = data[patches[3 * i + 1]] + patches[3 * i + 2]
    control = read_control()
    if state[FLUSH] != 0:
        set_control(control | FLUSH_TO_ZERO)
    i = 0
    while i < state[ROW_COUNT]:
        row = state[ROWS] + 8 * ROW_WORDS * i
        if row[2] == 1 or state[POOL] == 0:
            call_kernel(row[0], arguments + 8 * row[1])
            i += 1
        else:
            call(state[RUN_PARTS], state[POOL], row, arguments)
            i += row[2] * row[3]
    if state[FLUSH] != 0:
        set_control(control)
