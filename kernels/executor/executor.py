# SPDX-License-Identifier: BSD-3-Clause
"""The executor: checks the inputs of a program and launches its rows (int64 functions, machine.py)."""

from .machine import Word, call, call_kernel, half_at, read_control, set_control
from .state import (
    API,
    ARGUMENTS,
    ARRAY_DATA,
    ARRAY_DTYPE,
    ARRAY_FLAGS,
    ARRAY_NDIM,
    ARRAY_SHAPE,
    ARRAY_STRIDES,
    ARRAY_TYPE,
    CALL_OBJECT,
    CHECK_AXES,
    CHECK_DTYPE,
    CHECK_FLAGS,
    CHECK_SIZES,
    CHECKS,
    COMMIT_COUNT,
    CONTIGUOUS,
    CONTROL,
    DATA,
    DROP_REFERENCE,
    FAILED,
    FAULT,
    FLUSH,
    FLUSH_TO_ZERO,
    GUARD,
    HALTED,
    INPUT_COUNT,
    LOOP_CONDITION,
    LOOP_COUNT,
    LOOP_MOVE_COUNT,
    LOOP_MOVES,
    LOOP_ROW_COUNT,
    LOOP_ROWS,
    LOOP_STATE,
    MISSED,
    MOVE_ARGUMENT,
    MOVE_BYTES,
    MOVE_WORDS,
    NEW_INT,
    NONE,
    OBJECT_TYPE,
    OF_PYTHON,
    OF_WORDS,
    OUTPUT_COUNT,
    PATCH_ARGUMENT,
    PATCH_BYTES,
    PATCH_COUNT,
    PATCH_DATA,
    PATCH_WORDS,
    PATCHES,
    POOL,
    RESTORE_THREAD,
    ROW_ARGUMENTS,
    ROW_COUNT,
    ROW_KERNEL,
    ROW_LENGTH,
    ROW_PARTS,
    ROW_WORDS,
    ROWS,
    RUN_PARTS,
    SAVE_THREAD,
    SEEN,
    SPAN_HIGH,
    SPAN_LOW,
    SPAN_WORDS,
    SPANS,
    THREAD,
    TUPLE_HEAD,
    WORD_BYTES,
    WRITTEN,
    WRITTEN_COUNT,
)


def run(state: Word, inputs: Word, outputs: Word) -> Word:
    """Check the inputs, fill in the addresses of this call's arrays, and launch every row.

    `inputs` and `outputs` are the addresses of tuples of NumPy arrays, which the caller keeps alive. The state
    (state.py) has the addresses of tables and their lengths, the address of NumPy's array type, whether denormal
    numbers count as 0 while the program runs, and the addresses of a pool of threads, or 0, and of threads.run_parts.

    Returns 0, or the number of the first input, counted from 1, that fails its check, or MISSED if inputs share memory
    that the program writes; then nothing has run. Or HALTED or FAILED, if a row has ended the run (call_python).
    """
    status = check_inputs(state, inputs + state[TUPLE_HEAD])
    if status == 0:
        data = state[DATA] + WORD_BYTES * state[INPUT_COUNT]
        items = outputs + state[TUPLE_HEAD]
        for i in range(state[OUTPUT_COUNT]):
            data[i] = items[i][ARRAY_DATA]
        status = launch(state)
    return status


def run_with_python(state: Word, inputs: Word, outputs: Word) -> Word:
    """Do the same as run() for a program with rows that call Python; the caller holds Python's lock."""
    api = state[API]
    state[THREAD] = call(api[SAVE_THREAD])
    status = run(state, inputs, outputs)
    call(api[RESTORE_THREAD], state[THREAD])
    return status


def check_inputs(state: Word, items: Word) -> Word:
    """Check input arrays and note their data, given the address of their addresses; return the status (see run)."""
    check = state[CHECKS]
    for i in range(state[INPUT_COUNT]):
        if check[CHECK_DTYPE] != 0:
            array = items[i]
            if not fits(state, array, check):
                return i + 1
            state[DATA][i] = array[ARRAY_DATA]
        check = after(check)
    if state[WRITTEN_COUNT] != 0 and not check_apart(state):
        return MISSED
    return 0


def check_apart(state: Word) -> Word:
    """Return whether the inputs that the program writes share no memory with others.

    In a loop most inputs are where they were in the last call of this state: only those that moved are compared.
    """
    data = state[DATA]
    seen = state[SEEN]
    count = state[INPUT_COUNT]
    for i in range(count):
        if data[i] != seen[i]:
            for k in range(state[WRITTEN_COUNT]):
                written = state[WRITTEN][k]
                others = count if written == i else 1
                for j in range(others):
                    other = j if written == i else i
                    if other != written and overlap(state, other, written):
                        for known in range(count):
                            seen[known] = 0
                        return 0
    for i in range(count):
        seen[i] = data[i]
    return 1


def overlap(state: Word, first: Word, second: Word) -> Word:
    """Return whether two inputs, given by number, may share memory."""
    one = state[SPANS] + WORD_BYTES * SPAN_WORDS * first
    other = state[SPANS] + WORD_BYTES * SPAN_WORDS * second
    if one[SPAN_LOW] == one[SPAN_HIGH] or other[SPAN_LOW] == other[SPAN_HIGH]:
        return 0
    start = state[DATA][first]
    begin = state[DATA][second]
    return (
        start + one[SPAN_LOW] < begin + other[SPAN_HIGH] and begin + other[SPAN_LOW] < start + one[SPAN_HIGH]
    )


def after(check: Word) -> Word:
    """Return the address of the next check."""
    return check + WORD_BYTES * (CHECK_SIZES + 2 * check[CHECK_AXES])


def fits(state: Word, array: Word, check: Word) -> Word:
    """Return whether an object is an array that passes its check."""
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
    flags = check[CHECK_FLAGS]
    if half_at(array + WORD_BYTES * ARRAY_FLAGS) & flags != flags:
        return 0
    if flags & CONTIGUOUS != 0:
        return 1
    strides = array[ARRAY_STRIDES]
    for axis in range(axes):
        if strides[axis] != check[CHECK_SIZES + axes + axis]:
            return 0
    return 1


def launch(state: Word) -> Word:
    """Fill in the addresses of inputs and outputs, and launch every row, the commits only if the results count.

    Returns 0, or the status with which a row has ended the run.
    """
    arguments = state[ARGUMENTS]
    patch = state[PATCHES]
    data = state[DATA]
    for _ in range(state[PATCH_COUNT]):
        arguments[patch[PATCH_ARGUMENT]] = data[patch[PATCH_DATA]] + patch[PATCH_BYTES]
        patch += WORD_BYTES * PATCH_WORDS
    control = read_control()
    state[CONTROL] = control
    if state[FLUSH] != 0:
        set_control(control | FLUSH_TO_ZERO)
    status = launch_rows(state, state[ROWS], state[ROW_COUNT])
    if status == 0 and state[COMMIT_COUNT] != 0:
        holds = 1
        if state[GUARD] != 0:
            holds = half_at(data[state[GUARD]]) & 0xFF
        if state[FAULT] != 0:
            holds = holds and data[state[FAULT]][0] == 0
        if holds != 0:
            commits = state[ROWS] + WORD_BYTES * ROW_WORDS * state[ROW_COUNT]
            status = launch_rows(state, commits, state[COMMIT_COUNT])
    if state[FLUSH] != 0:
        set_control(control)
    return status


def launch_rows(state: Word, rows: Word, count: Word) -> Word:
    """Launch `count` rows, beginning with the one at `rows`; return 0, or the status with which one ends the run."""
    arguments = state[ARGUMENTS]
    row = rows
    end = rows + WORD_BYTES * ROW_WORDS * count
    while row < end:
        parts = row[ROW_PARTS]
        if parts == 1 or (parts > 0 and state[POOL] == 0):
            call_kernel(row[ROW_KERNEL], arguments + WORD_BYTES * row[ROW_ARGUMENTS])
            row += WORD_BYTES * ROW_WORDS
        elif parts > 0:
            call(state[RUN_PARTS], state[POOL], row, arguments)
            row += WORD_BYTES * ROW_WORDS * (parts * row[ROW_LENGTH])
        else:
            at = arguments + WORD_BYTES * row[ROW_ARGUMENTS]
            status = 0
            if parts == OF_PYTHON:
                status = call_python(state, row[ROW_KERNEL], at)
            if parts == OF_WORDS:
                status = call(row[ROW_KERNEL], at)
            if status != 0:
                return status
            row += WORD_BYTES * ROW_WORDS
    return 0


def loop(args: Word) -> Word:
    """Run the rows of a loop, which stands for them in the table of rows (state.py has its arguments).

    Rows take their addresses from the arguments of the program, which move on after each step, and back at the end: so
    they are right for the next call, and for loops inside loops. Returns 0, or the status with which a row ends all.
    """
    state = args[LOOP_STATE]
    arguments = state[ARGUMENTS]
    steps = 0
    status = 0
    while status == 0 and steps < args[LOOP_COUNT]:
        if args[LOOP_CONDITION] != 0 and half_at(args[LOOP_CONDITION]) & 0xFF == 0:
            break
        status = launch_rows(state, args[LOOP_ROWS], args[LOOP_ROW_COUNT])
        steps += 1
        move = args[LOOP_MOVES]
        for _ in range(args[LOOP_MOVE_COUNT]):
            arguments[move[MOVE_ARGUMENT]] += move[MOVE_BYTES]
            move += WORD_BYTES * MOVE_WORDS
    move = args[LOOP_MOVES]
    for _ in range(args[LOOP_MOVE_COUNT]):
        arguments[move[MOVE_ARGUMENT]] -= steps * move[MOVE_BYTES]
        move += WORD_BYTES * MOVE_WORDS
    return status


def call_python(state: Word, function: Word, arguments: Word) -> Word:
    """Call an object of Python with the address of arguments, in the thread that runs the program.

    Meanwhile arithmetic is as it was before the run. An error stays set, and whoever has started the run raises it.
    Returns 0, HALTED or FAILED.
    """
    api = state[API]
    control = read_control()
    set_control(state[CONTROL])
    call(api[RESTORE_THREAD], state[THREAD])
    status = FAILED
    number = call(api[NEW_INT], arguments)
    if number != 0:
        result = call(api[CALL_OBJECT], function, number)
        if result != 0:
            status = HALTED
            if result == api[NONE]:
                status = 0
            call(api[DROP_REFERENCE], result)
        call(api[DROP_REFERENCE], number)
    state[THREAD] = call(api[SAVE_THREAD])
    set_control(control)
    return status
