# SPDX-License-Identifier: BSD-3-Clause
"""The executor: checks the inputs of a program and launches its rows (int64 functions, machine.py)."""

from .machine import Word, call, call_kernel, half_at, read_control, set_control
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
    CHECK_AXES,
    CHECK_CONTIGUOUS,
    CHECK_DTYPE,
    CHECK_SIZES,
    CHECKS,
    CONTIGUOUS_AND_ALIGNED,
    DATA,
    FLUSH,
    FLUSH_TO_ZERO,
    INPUT_COUNT,
    OBJECT_TYPE,
    OUTPUT_COUNT,
    PATCH_ARGUMENT,
    PATCH_BYTES,
    PATCH_COUNT,
    PATCH_DATA,
    PATCH_WORDS,
    PATCHES,
    POOL,
    ROW_ARGUMENTS,
    ROW_COUNT,
    ROW_KERNEL,
    ROW_LENGTH,
    ROW_PARTS,
    ROW_WORDS,
    ROWS,
    RUN_PARTS,
    TUPLE_HEAD,
    WORD_BYTES,
)


def run(state: Word, inputs: Word, outputs: Word) -> Word:
    """Check the inputs, fill in the addresses of this call's arrays, and launch every row.

    `inputs` and `outputs` are the addresses of tuples of NumPy arrays, which the caller keeps alive. The state
    (state.py) has the addresses of tables and their lengths, the address of NumPy's array type, whether denormal
    numbers count as 0 while the program runs, and the addresses of a pool of threads, or 0, and of threads.run_parts.

    Returns 0, or the number of the first input, counted from 1, that fails its check; then nothing has run.
    """
    status = check_inputs(state, inputs + state[TUPLE_HEAD])
    if status == 0:
        data = state[DATA] + WORD_BYTES * state[INPUT_COUNT]
        items = outputs + state[TUPLE_HEAD]
        for i in range(state[OUTPUT_COUNT]):
            data[i] = items[i][ARRAY_DATA]
        launch(state)
    return status


def check_inputs(state: Word, items: Word) -> Word:
    """Check input arrays and note their data, given the address of their addresses; return the status (see run)."""
    check = state[CHECKS]
    for i in range(state[INPUT_COUNT]):
        if check[CHECK_DTYPE] != 0:
            array = items[i]
            if not fits(state, array, check, CONTIGUOUS_AND_ALIGNED):
                return i + 1
            state[DATA][i] = array[ARRAY_DATA]
        check = after(check)
    return 0


def after(check: Word) -> Word:
    """Return the address of the next check."""
    return check + WORD_BYTES * (CHECK_SIZES + 2 * check[CHECK_AXES])


def fits(state: Word, array: Word, check: Word, flags: Word) -> Word:
    """Return whether an object is an array that passes its check; one that has to be contiguous needs these flags."""
    axes = check[CHECK_AXES]
    if (
        array[OBJECT_TYPE] != state[ARRAY_TYPE]
        or array[ARRAY_DTYPE] != check[CHECK_DTYPE]
        or half_at(array + WORD_BYTES * ARRAY_NDIM) != axes
    ):
        return 0
    shape = array[ARRAY_SHAPE]
    for axis in range(axes):
        if shape[axis] != check[CHECK_SIZES + axis]:
            return 0
    array_flags = half_at(array + WORD_BYTES * ARRAY_FLAGS)
    if check[CHECK_CONTIGUOUS] != 0:
        return array_flags & flags == flags
    if array_flags & ALIGNED == 0:
        return 0
    strides = array[ARRAY_STRIDES]
    for axis in range(axes):
        if strides[axis] != check[CHECK_SIZES + axes + axis]:
            return 0
    return 1


def launch(state: Word) -> None:
    """Fill in the addresses of inputs and outputs, and launch every row."""
    arguments = state[ARGUMENTS]
    patch = state[PATCHES]
    data = state[DATA]
    for _ in range(state[PATCH_COUNT]):
        arguments[patch[PATCH_ARGUMENT]] = data[patch[PATCH_DATA]] + patch[PATCH_BYTES]
        patch += WORD_BYTES * PATCH_WORDS
    control = read_control()
    if state[FLUSH] != 0:
        set_control(control | FLUSH_TO_ZERO)
    i = 0
    while i < state[ROW_COUNT]:
        row = state[ROWS] + WORD_BYTES * ROW_WORDS * i
        if row[ROW_PARTS] == 1 or state[POOL] == 0:
            call_kernel(row[ROW_KERNEL], arguments + WORD_BYTES * row[ROW_ARGUMENTS])
            i += 1
        else:
            call(state[RUN_PARTS], state[POOL], row, arguments)
            i += row[ROW_PARTS] * row[ROW_LENGTH]
    if state[FLUSH] != 0:
        set_control(control)
