# SPDX-License-Identifier: BSD-3-Clause
"""The entry of programs on a device: a replay from the arguments of a call to its result, as one function.

It is like that of the CPU (entry.py), with two differences. Data are addresses on the device, which arrays there keep
as integers of Python. And instead of rows it launches the graph for these addresses (Note [graphs] in
runtime/cuda/replays.py). The driver's functions are called by their addresses.
"""

from .entry import assemble, flatten, is_text
from .machine import Word, call, half_at
from .state import (
    API,
    ARRAY_DATA,
    ARRAY_TYPE,
    CHECKS,
    DATA,
    DEFAULT_STREAM,
    DEVICE,
    DEVICE_BASE,
    DEVICE_CONTEXT,
    DEVICE_DATA,
    DEVICE_DRIVER,
    DEVICE_KIND,
    DEVICE_LAUNCH,
    DEVICE_OWNER,
    DEVICE_SET_CONTEXT,
    DEVICE_WEAK,
    DEVICE_WRITEABLE,
    DROP_REFERENCE,
    FAULT,
    GRAPH_COUNT,
    GRAPHS,
    INPUT_COUNT,
    INT_TYPE,
    INT_VALUE,
    IS_BUSY,
    LABELLED_TYPE,
    LAUNCHING,
    LIST_ITEMS,
    MISSED,
    NONE,
    OBJECT_REFERENCES,
    OBJECT_SIZE,
    OBJECT_TYPE,
    OBJECTS,
    OUTPUT_COUNT,
    RECIPE,
    RESTORE_THREAD,
    RESULT_FORMATS,
    SAVE_THREAD,
    SCRATCH,
    SLOT_DATA,
    SLOT_FORMAT,
    SLOT_VALUE,
    SLOT_WEAK,
    STATUS,
    TAKE_REFERENCE,
    THREAD,
    TRUE,
    TURN,
    UNLAUNCHED,
    UNPLACED,
    WIDEST_ACCESS,
    WORD_BYTES,
)


def enter_on_device(_: Word, given: Word, count: Word) -> Word:
    """Launch a program on the arguments of a call and on recycled results; the caller holds Python's lock (the GIL).

    The parameters, the frame and the result are those of entry.enter, without arrays that are read besides the
    arguments. Two further statuses say why nothing has run: UNPLACED, that no graph has the addresses, which the state
    has then, and UNLAUNCHED, that the driver gave an error, which is the state's FAULT.
    """
    frame = given[1]
    items = frame[LIST_ITEMS]
    state = items[0][ARRAY_DATA]
    api = state[API]
    turn = state[TURN]
    results = items[2 * turn + 2]
    objects = state[OBJECTS]
    driver = state[DEVICE][DEVICE_DRIVER]
    graph = 0
    status = MISSED
    if driver[IS_BUSY] == 0:
        status = flatten(state, given, count)
    if status == 0:
        status = check_inputs_on_device(state, objects)
    if status == 0:
        status = check_results_on_device(state, items[2 * turn + 1], results)
    if status == 0:
        graph = graph_of(state)
        if graph == 0:
            status = UNPLACED
    if status == 0:
        # Other threads run meanwhile, and may drop the last reference to an input.
        held = state[INPUT_COUNT]
        for i in range(held):
            call(api[TAKE_REFERENCE], objects[i])
        driver[LAUNCHING] = driver[LAUNCHING] + 1
        state[THREAD] = call(api[SAVE_THREAD])
        failed = call(driver[DEVICE_SET_CONTEXT], driver[DEVICE_CONTEXT]) & 0xFFFFFFFF
        if failed == 0:
            failed = call(driver[DEVICE_LAUNCH], graph, DEFAULT_STREAM) & 0xFFFFFFFF
        call(api[RESTORE_THREAD], state[THREAD])
        driver[LAUNCHING] = driver[LAUNCHING] - 1
        for i in range(held):
            call(api[DROP_REFERENCE], objects[i])
        if failed != 0:
            state[FAULT] = failed
            status = UNLAUNCHED
    result = frame
    if status == 0:
        state[TURN] = turn + 1
        if 2 * turn + 3 >= frame[OBJECT_SIZE]:
            state[TURN] = 0
        result = results
        if state[RECIPE] != 0:
            result = assemble(state, results[LIST_ITEMS])
        else:
            call(api[TAKE_REFERENCE], result)
    else:
        state[STATUS] = status
        call(api[TAKE_REFERENCE], result)
    return result


def check_inputs_on_device(state: Word, objects: Word) -> Word:
    """Check inputs and note their addresses; return 0, or MISSED where one does not fit."""
    for i in range(state[INPUT_COUNT]):
        array = objects[i]
        if array[OBJECT_TYPE] != state[ARRAY_TYPE] or array[state[DEVICE][DEVICE_KIND]] != state[CHECKS][i]:
            return MISSED
        if not note_address(state, array, i):
            return MISSED
    return 0


def check_results_on_device(state: Word, arrays: Word, results: Word) -> Word:
    """Note the addresses of recycled results; return 0, or the negative number of the first that may be in use."""
    api = state[API]
    device = state[DEVICE]
    first = state[INPUT_COUNT]
    for i in range(state[OUTPUT_COUNT]):
        array = arrays[LIST_ITEMS][i]
        result = results[LIST_ITEMS][i]
        if result[OBJECT_TYPE] != state[LABELLED_TYPE]:
            return -1 - i
        if (
            half_at(result + WORD_BYTES * OBJECT_REFERENCES) != 1
            or half_at(array + WORD_BYTES * OBJECT_REFERENCES) != 2
            or result[state[SLOT_DATA]] != array
            or not is_text(api, result[state[SLOT_FORMAT]], state[RESULT_FORMATS][i])
            or result[state[SLOT_VALUE]] != api[NONE]
            or result[state[SLOT_WEAK]] != 0
            or array[device[DEVICE_WEAK]] != 0
            or array[device[DEVICE_KIND]] != state[CHECKS][first + i]
            or array[device[DEVICE_OWNER]] != api[NONE]
            or array[device[DEVICE_BASE]] != api[NONE]
            or array[device[DEVICE_WRITEABLE]] != api[TRUE]
            or not note_address(state, array, first + i)
        ):
            return -1 - i
    return 0


def note_address(state: Word, array: Word, number: Word) -> Word:
    """Note where the elements of an array lie; return whether wide accesses can begin there."""
    api = state[API]
    held = array[state[DEVICE][DEVICE_DATA]]
    if held == 0 or held[OBJECT_TYPE] != api[INT_TYPE]:
        return 0
    address = call(api[INT_VALUE], held, state + WORD_BYTES * SCRATCH)
    state[DATA][number] = address
    return address & (WIDEST_ACCESS - 1) == 0


def graph_of(state: Word) -> Word:
    """Return the executable graph that has the addresses of this call, 0 if there is none."""
    data = state[DATA]
    length = state[INPUT_COUNT] + state[OUTPUT_COUNT]
    entry = state[GRAPHS]
    for _ in range(state[GRAPH_COUNT]):
        same = 0
        while same < length and entry[1 + same] == data[same]:
            same += 1
        if same == length:
            return entry[0]
        entry += WORD_BYTES * (1 + length)
    return 0
