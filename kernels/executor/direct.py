# SPDX-License-Identifier: BSD-3-Clause
"""Direct calls: the functions that Python runs when an accelerated function is called (int64 functions, machine.py).

Note [direct calls]
Python's code around the entry (the `__call__` of an accelerated function, and the call path of a trace) takes longer
than the entry and a small program. So the class of accelerated functions gets called() as its `__call__`. A function
aims at its first call path. Where the trace of that needs nothing from Python but fetch(), called() runs its program by
a frame; otherwise it calls the call path (RUN), as for a trace that stores, or a path of several traces. The state of
the frame says how many calls may be served before Python has to see one, for an audit; whether a call is using the
frame; and where to find the dict whose size says whether anything in this process, such as a recording, blocks direct
calls. In all these cases, and for a miss, called() calls the former `__call__`.

Other threads, finalisers and signal handlers may run during a call: whenever Python runs, or its lock is let go. They
may drop the trace. So a call holds its load: a list of the frame and everything else that the program needs.
"""

from .entry import match, note_read, run_on
from .machine import Word, call
from .state import (
    AGAIN,
    API,
    ARRAY_DATA,
    BLOCKERS,
    BUSY,
    CALL_ALONE,
    CALL_OBJECT,
    CALL_WITH,
    DICT_SIZE,
    DIRECT_COUNT,
    DIRECT_END,
    DIRECT_FIRST,
    DIRECT_PATTERN,
    DROP_REFERENCE,
    FETCH,
    FUNCTION_AIM,
    GENERAL,
    HITS,
    HITS_LIMIT,
    INPUT_COUNT,
    LIST_ITEMS,
    MISS,
    MISSED,
    NEW_DICT,
    NEW_TUPLE,
    NONE,
    OBJECT_SIZE,
    OBJECTS,
    RUN,
    TAKE_REFERENCE,
    TAKEN,
    TUPLE_HEAD,
    WORD_BYTES,
)


def called(function: Word, given: Word, named: Word) -> Word:
    """Call an accelerated function with a tuple of arguments, and a dict of named ones or 0 (Note [direct calls]).

    Returns an object, or 0 if an error is set.
    """
    aim = function[FUNCTION_AIM]
    if aim == 0:  # somebody made a function without initialising it
        return 0
    load = aim[LIST_ITEMS][0]
    frame = load[LIST_ITEMS][0]
    state = frame[LIST_ITEMS][0][ARRAY_DATA]
    api = state[API]
    is_free = state[HITS] < state[HITS_LIMIT] and state[BUSY] == 0 and state[BLOCKERS][DICT_SIZE] == 0
    if not is_free or (named != 0 and named[DICT_SIZE] != 0):
        return call_generally(state, function, given, named)
    if state[RUN] == 0 and given[OBJECT_SIZE] != state[DIRECT_COUNT]:
        return call_generally(state, function, given, named)
    call(api[TAKE_REFERENCE], load)
    state[HITS] += 1  # before other threads may come to the limit
    result = 0
    if state[RUN] != 0:
        result = run_path(state, given)
    else:
        state[BUSY] = 1
        result = replay(state, frame, given)
        state[BUSY] = 0
    if result == 0 or result == state[MISS]:
        state[HITS] -= 1
    if result == state[MISS]:
        call(api[DROP_REFERENCE], result)
        result = call_generally(state, function, given, named)
    call(api[DROP_REFERENCE], load)
    return result


def run_path(state: Word, given: Word) -> Word:
    """Call a call path, a function of Python, on a tuple of arguments and no named ones; return what it returns."""
    api = state[API]
    whole = call(api[NEW_TUPLE], 2)
    if whole == 0:
        return 0
    items = whole + state[TUPLE_HEAD]
    call(api[TAKE_REFERENCE], given)
    items[0] = given
    items[1] = call(api[NEW_DICT])
    result = 0
    if items[1] != 0:
        result = call(api[CALL_OBJECT], state[RUN], whole)
    call(api[DROP_REFERENCE], whole)
    return result


def replay(state: Word, frame: Word, given: Word) -> Word:
    """Run a program on the arguments of a call; return what enter() returns."""
    api = state[API]
    read = 0
    if state[FETCH] != 0:
        read = call(api[CALL_ALONE], state[FETCH])
        if read == 0:
            return 0
    status = MISSED
    if read != api[NONE]:
        status = 0
        objects = state[OBJECTS] + WORD_BYTES * state[INPUT_COUNT]
        items = given + state[TUPLE_HEAD]
        for i in range(state[DIRECT_COUNT]):
            objects[state[DIRECT_FIRST] + i] = items[i]
        if not match(state, objects, state[DIRECT_PATTERN], state[DIRECT_END]):
            status = MISSED
        elif read != 0:
            note_read(state, read, state[TAKEN])
    result = run_on(frame, state, status)
    if result == frame:  # results are in use
        result = run_again(state, frame, given, read)
    if read != 0:
        call(api[DROP_REFERENCE], read)
    return result


def run_again(state: Word, frame: Word, given: Word, read: Word) -> Word:
    """Have Python replace the results that are in use, and run the program; return what enter() returns."""
    api = state[API]
    whole = call(api[NEW_TUPLE], 2)
    named = call(api[NEW_DICT])
    count = 2
    if read != 0:
        count = 3
    arguments = call(api[NEW_TUPLE], count)
    result = 0
    if whole == 0 or named == 0 or arguments == 0:
        call(api[DROP_REFERENCE], whole)  # which does nothing for 0
        call(api[DROP_REFERENCE], named)
    else:
        call(api[TAKE_REFERENCE], given)
        call(api[TAKE_REFERENCE], frame)
        items = whole + state[TUPLE_HEAD]
        items[0] = given
        items[1] = named
        items = arguments + state[TUPLE_HEAD]
        items[0] = frame
        items[1] = whole
        if read != 0:
            call(api[TAKE_REFERENCE], read)
            items[2] = read
        again = state[AGAIN]
        call(api[TAKE_REFERENCE], again)
        result = call(api[CALL_WITH], again, arguments, 0)
        call(api[DROP_REFERENCE], again)
    call(api[DROP_REFERENCE], arguments)
    call(api[DROP_REFERENCE], frame)  # that which run_on() took to return it
    return result


def call_generally(state: Word, function: Word, given: Word, named: Word) -> Word:
    """Call the function of Python that takes the general way, with the accelerated function before its arguments."""
    api = state[API]
    tuple_head = state[TUPLE_HEAD]
    general = state[GENERAL]
    count = given[OBJECT_SIZE]
    arguments = call(api[NEW_TUPLE], count + 1)
    if arguments == 0:
        return 0
    items = given + tuple_head
    places = arguments + tuple_head
    call(api[TAKE_REFERENCE], function)
    places[0] = function
    for i in range(count):
        call(api[TAKE_REFERENCE], items[i])
        places[i + 1] = items[i]
    result = call(api[CALL_WITH], general, arguments, named)
    call(api[DROP_REFERENCE], arguments)
    return result
