# SPDX-License-Identifier: BSD-3-Clause
"""The entry: a replay from the arguments of a call to its result, as a function that Python calls.

Note [patterns]
Flattening the arguments of a call in Python, and assembling the result, takes longer than a small program runs: 0.1 us
for each array. So both are done here, by tables that tracejit/call/tables.py writes for each trace. A pattern has an
entry for each container and leaf of the arguments. These are objects with numbers: the arguments themselves are object
0, and an entry for a container says which numbers its items get.

    IS_TUPLE object length first            a tuple; its items become objects first, first + 1, ...
    IS_LIST object length first             a list
    IS_DICT object length first keys...     a dict with these keys in this order
    IS_NODE object length first type fixed  a node (tree.py) of this class with this fixed part
    IS_ARRAY object input format kinds      a labelled array that no evaluation records; or an ndarray, if IS_PLAIN is
                                            among the kinds; not a number, if IS_NO_NUMBER is among them
    IS_SCALAR object input type             a float, or a number of NumPy, of this type that is an input of the program
    IS_INT object input number              an integer of 64 bits that is an input; its value is kept in the place of
                                            object `number`
    IS_SAME object address                  the same object
    IS_SAME_TEXT object address             a string of the same characters
    IS_SAME_FLOAT object bits               a float of these bits
    IS_SAME_INT object value                an integer

A recipe assembles the result from the leaves to the root: objects are put on a stack, and a container takes its items
from the top.

    PUT_RESULT number                       a result of the program
    PUT_OBJECT address                      a constant
    PUT_TUPLE length                        a tuple of the top `length` objects
    PUT_LIST length                         a list of them
    PUT_DICT length (key place)...          a dict of them; `place` is the place of a value among them, from 0 on
    PUT_NODE length maker                   what the function `maker` of Python returns for a tuple of them

No code of the user runs while arguments are compared: types are compared by address. Whatever departs from the pattern
is a miss, even if Python finds it equal; then the general way decides.
"""

from .executor import after, check_inputs, fits, launch
from .machine import Word, call, half_at
from .state import (
    API,
    ARRAY_BASE,
    ARRAY_DATA,
    ARRAY_TYPE,
    ARRAY_WEAK,
    BRIEF,
    CALL_OBJECT,
    CHECKS,
    DATA,
    DICT_KEY_WORDS,
    DICT_NEXT,
    DICT_SIZE,
    DICT_TYPE,
    DROP_REFERENCE,
    FAILED,
    FAULT,
    FLOAT_TYPE,
    FLOAT_VALUE,
    GUARDED,
    INPUT_COUNT,
    INT_TYPE,
    INT_VALUE,
    IS_ARRAY,
    IS_ARRAY_WORDS,
    IS_DICT,
    IS_DICT_WORDS,
    IS_INT,
    IS_INT_WORDS,
    IS_LIST,
    IS_NO_NUMBER,
    IS_NODE,
    IS_NODE_WORDS,
    IS_PLAIN,
    IS_SAME_FLOAT,
    IS_SAME_INT,
    IS_SAME_TEXT,
    IS_SAME_WORDS,
    IS_SCALAR,
    IS_SCALAR_WORDS,
    IS_SEQUENCE_WORDS,
    LABELLED_TYPE,
    LIST_ITEMS,
    LIST_TYPE,
    MISS,
    MISSED,
    NEW_DICT,
    NEW_LIST,
    NEW_TUPLE,
    NONE,
    OBJECT_REFERENCES,
    OBJECT_SIZE,
    OBJECT_TYPE,
    OBJECTS,
    OUTPUT_COUNT,
    PATTERN,
    PATTERN_END,
    PUT_DICT,
    PUT_DICT_ITEM_WORDS,
    PUT_LIST,
    PUT_NODE,
    PUT_NODE_WORDS,
    PUT_OBJECT,
    PUT_RESULT,
    PUT_TUPLE,
    PUT_WORDS,
    RECIPE,
    RECIPE_END,
    RESTORE_THREAD,
    RESULT_COUNT,
    RESULT_FORMATS,
    SAVE_THREAD,
    SCRATCH,
    SET_ITEM,
    SLOT_DATA,
    SLOT_FIXED,
    SLOT_FORMAT,
    SLOT_LEAVES,
    SLOT_VALUE,
    SLOT_WEAK,
    STATUS,
    TAKE_REFERENCE,
    TAKEN,
    TEXT_COMPARE,
    TEXT_TYPE,
    THREAD,
    TUPLE_HEAD,
    TUPLE_TYPE,
    TURN,
    WORD_BYTES,
)


def enter(_: Word, given: Word, count: Word) -> Word:
    """Run a program on the arguments of a call and on recycled results; the caller holds Python's lock (the GIL).

    The parameters are the arguments, a frame, and, if the trace reads more arrays than its arguments, a tuple of these.
    A frame is a list: an ndarray whose data is the state of the program, and then results of earlier calls: for each
    call the list of arrays that the program fills, and the list of the labelled arrays that hold the first of them.
    They are filled if only these lists refer to them and they are as they were made: those of the last call, or else in
    turn.

    Without a pattern the arguments are a tuple of the inputs. Without a recipe the result is the list of the labelled
    arrays. If a result is in use, nothing has run: the result is the frame, and the status in its state is the negative
    number of that result, counted from 1. If the program does not apply to the arguments, or a row has ended the run,
    the result is the object MISS.

    Returns an object, or 0 if Python has no memory for it, or a function that a row calls has failed; then an error is
    set.
    """
    frame = given[1]
    state = frame[LIST_ITEMS][0][ARRAY_DATA]
    return run_on(frame, state, flatten(state, given, count))


def run_on(frame: Word, state: Word, status: Word) -> Word:
    """Run a program on the inputs that were found, unless `status` is one of a miss; return what enter() returns."""
    items = frame[LIST_ITEMS]
    api = state[API]
    turn = state[TURN]
    objects = state[OBJECTS]
    held = 0
    if status == 0:
        status = check_inputs(state, objects)
    if status == 0:
        # Those of the last call, if nobody uses them, are still in the caches.
        last = turn - 1
        if last < 0:
            last = (frame[OBJECT_SIZE] - 3) >> 1
        if check_results(state, items[2 * last + 1], items[2 * last + 2]) == 0:
            turn = last
        else:
            status = check_results(state, items[2 * turn + 1], items[2 * turn + 2])
    results = items[2 * turn + 2]
    if status == 0:
        data = state[DATA]
        if state[FAULT] != 0:
            data[state[FAULT]][0] = 0
        if state[BRIEF] != 0:
            status = launch(state)
        else:
            # Other threads run meanwhile, and may drop the last reference to an input.
            held = state[TAKEN]
            for i in range(held):
                call(api[TAKE_REFERENCE], objects[i])
            state[THREAD] = call(api[SAVE_THREAD])
            status = launch(state)
            call(api[RESTORE_THREAD], state[THREAD])
        if status == 0 and state[GUARDED] != 0 and half_at(data[state[GUARDED]]) & 0xFF == 0:
            status = MISSED
        if status == 0 and state[FAULT] != 0 and data[state[FAULT]][0] != 0:
            status = MISSED  # the general way runs it again, and raises the error
    result = frame
    if status == 0:
        if turn == state[TURN]:
            state[TURN] = turn + 1
            if 2 * turn + 3 >= frame[OBJECT_SIZE]:
                state[TURN] = 0
        result = results
        if state[RECIPE] != 0:
            result = assemble(state, results[LIST_ITEMS])
        else:
            call(api[TAKE_REFERENCE], result)
    elif status == FAILED:
        result = 0
    else:
        state[STATUS] = status
        if status > 0:
            result = state[MISS]
        call(api[TAKE_REFERENCE], result)
    for i in range(held):
        call(api[DROP_REFERENCE], objects[i])
    return result


def flatten(state: Word, given: Word, count: Word) -> Word:
    """Find the inputs, whose addresses begin what `state[OBJECTS]` points to; return the status (see enter)."""
    inputs = state[OBJECTS]
    taken = 0
    if state[PATTERN] != 0:
        objects = inputs + WORD_BYTES * state[INPUT_COUNT]
        objects[0] = given[0]
        if not match(state, objects, state[PATTERN], state[PATTERN_END]):
            return MISSED
        taken = state[TAKEN]
    else:
        items = given[0] + state[TUPLE_HEAD]
        while taken < given[0][OBJECT_SIZE]:
            inputs[taken] = items[taken]
            taken += 1
    if count > 2:
        note_read(state, given[2], taken)
    return 0


def note_read(state: Word, read: Word, taken: Word) -> Word:
    """Note the arrays of the tuple `read` as the inputs from number `taken` on."""
    inputs = state[OBJECTS]
    items = read + state[TUPLE_HEAD]
    for i in range(read[OBJECT_SIZE]):
        inputs[taken + i] = items[i]
    return 0


def match(state: Word, objects: Word, at: Word, end: Word) -> Word:
    """Return whether objects match the entries of a pattern from `at` to `end`; note the inputs among them."""
    while at < end:
        kind = at[0]
        item = objects[at[1]]
        if kind == IS_ARRAY:
            at = match_array(state, at, item)
        elif kind <= IS_LIST:
            at = match_sequence(state, at, item, objects)
        elif kind == IS_DICT:
            at = match_dict(state, at, item, objects)
        elif kind == IS_NODE:
            at = match_node(state, at, item, objects)
        elif kind == IS_SCALAR:
            at = match_scalar(state, at, item)
        elif kind == IS_INT or kind == IS_SAME_INT:  # noqa: SIM109 (words have no `in`)
            at = match_int(state, at, item, objects)
        else:
            at = match_same(state, at, item)
        if at == 0:
            return 0
    return 1


# Each of these compares the object `item` with the entry at `at`. It returns the address of the next entry, or 0 for a
# miss.


def match_array(state: Word, at: Word, item: Word) -> Word:
    """Compare with IS_ARRAY, and note the array as an input."""
    api = state[API]
    array = item
    if item[OBJECT_TYPE] == state[LABELLED_TYPE]:
        if item[state[SLOT_VALUE]] != api[NONE] or not is_text(api, item[state[SLOT_FORMAT]], at[3]):
            return 0
        array = item[state[SLOT_DATA]]
        if array == 0:  # somebody deleted the attribute
            return 0
        if at[4] & IS_NO_NUMBER != 0 and array[ARRAY_BASE] == 0:
            return 0
    elif item[OBJECT_TYPE] != state[ARRAY_TYPE] or at[4] & IS_PLAIN == 0:
        return 0
    state[OBJECTS][at[2]] = array
    return at + WORD_BYTES * IS_ARRAY_WORDS


def match_sequence(state: Word, at: Word, item: Word, objects: Word) -> Word:
    """Compare with IS_TUPLE or IS_LIST, and note the items as objects."""
    api = state[API]
    wanted = api[TUPLE_TYPE]
    if at[0] == IS_LIST:
        wanted = api[LIST_TYPE]
    if item[OBJECT_TYPE] != wanted or item[OBJECT_SIZE] != at[2]:
        return 0
    items = item + state[TUPLE_HEAD]
    if at[0] == IS_LIST:
        items = item[LIST_ITEMS]
    for i in range(at[2]):
        objects[at[3] + i] = items[i]
    return at + WORD_BYTES * IS_SEQUENCE_WORDS


def match_dict(state: Word, at: Word, item: Word, objects: Word) -> Word:
    """Compare with IS_DICT, and note the values as objects."""
    api = state[API]
    length = at[2]
    if item[OBJECT_TYPE] != api[DICT_TYPE] or item[DICT_SIZE] != length:
        return 0
    place = state + WORD_BYTES * SCRATCH
    place[0] = 0
    for i in range(length):
        call(api[DICT_NEXT], item, place, place + 8, place + 16)
        if not is_text(api, place[1], at[IS_DICT_WORDS + i]):
            return 0
        objects[at[3] + i] = place[2]
    return at + WORD_BYTES * (IS_DICT_WORDS + DICT_KEY_WORDS * length)


def match_node(state: Word, at: Word, item: Word, objects: Word) -> Word:
    """Compare with IS_NODE, and note the children as objects."""
    if item[OBJECT_TYPE] != at[4] or item[state[SLOT_FIXED]] != at[5]:
        return 0
    children = item[state[SLOT_LEAVES]]
    # Somebody may have deleted the attribute.
    if children == 0 or children[OBJECT_TYPE] != state[API][TUPLE_TYPE] or children[OBJECT_SIZE] != at[2]:
        return 0
    items = children + state[TUPLE_HEAD]
    for i in range(at[2]):
        objects[at[3] + i] = items[i]
    return at + WORD_BYTES * IS_NODE_WORDS


def match_scalar(state: Word, at: Word, item: Word) -> Word:
    """Compare with IS_SCALAR, and note the number as an input."""
    if item[OBJECT_TYPE] != at[3]:
        return 0
    state[OBJECTS][at[2]] = item
    state[DATA][at[2]] = item + WORD_BYTES * FLOAT_VALUE
    return at + WORD_BYTES * IS_SCALAR_WORDS


def match_int(state: Word, at: Word, item: Word, objects: Word) -> Word:
    """Compare with IS_INT, and note the number as an input; or compare with IS_SAME_INT."""
    api = state[API]
    overflow = state + WORD_BYTES * SCRATCH
    overflow[0] = 0
    if item[OBJECT_TYPE] != api[INT_TYPE]:
        return 0
    value = call(api[INT_VALUE], item, overflow)
    if half_at(overflow) != 0:
        return 0
    if at[0] == IS_SAME_INT:
        if value != at[2]:
            return 0
        return at + WORD_BYTES * IS_SAME_WORDS
    # The number becomes an object of this call: its place has the value, and the data its address.
    state[OBJECTS][at[2]] = api[NONE]
    number = objects + WORD_BYTES * at[3]
    number[0] = value
    state[DATA][at[2]] = number
    return at + WORD_BYTES * IS_INT_WORDS


def match_same(state: Word, at: Word, item: Word) -> Word:
    """Compare with IS_SAME, IS_SAME_TEXT or IS_SAME_FLOAT."""
    api = state[API]
    if at[0] == IS_SAME_FLOAT:
        if item[OBJECT_TYPE] != api[FLOAT_TYPE] or item[FLOAT_VALUE] != at[2]:
            return 0
    elif at[0] == IS_SAME_TEXT:
        if not is_text(api, item, at[2]):
            return 0
    elif item != at[2]:
        return 0
    return at + WORD_BYTES * IS_SAME_WORDS


def is_text(api: Word, item: Word, text: Word) -> Word:
    """Return whether an object, or 0 for none, is `text`, or a string of its characters."""
    if item == text:
        return 1
    if item == 0 or item[OBJECT_TYPE] != api[TEXT_TYPE] or text[OBJECT_TYPE] != api[TEXT_TYPE]:
        return 0
    return call(api[TEXT_COMPARE], item, text) & 0xFFFFFFFF == 0


def check_results(state: Word, arrays: Word, results: Word) -> Word:
    """Note the data of recycled results; return 0, or the negative number of the first that may be in use."""
    api = state[API]
    data = state[DATA] + WORD_BYTES * state[INPUT_COUNT]
    array_items = arrays[LIST_ITEMS]
    result_items = results[LIST_ITEMS]
    check = state[CHECKS]
    for _ in range(state[INPUT_COUNT]):
        check = after(check)
    for i in range(state[OUTPUT_COUNT]):
        array = array_items[i]
        if i < state[RESULT_COUNT]:
            result = result_items[i]
            if result[OBJECT_TYPE] != state[LABELLED_TYPE]:
                return -1 - i
            if (
                half_at(result + WORD_BYTES * OBJECT_REFERENCES) != 1
                or half_at(array + WORD_BYTES * OBJECT_REFERENCES) != 2
                or result[state[SLOT_DATA]] != array
                or result[state[SLOT_FORMAT]] != state[RESULT_FORMATS][i]
                or result[state[SLOT_VALUE]] != api[NONE]
                or result[state[SLOT_WEAK]] != 0
                or array[ARRAY_WEAK] != 0
                or not fits(state, array, check)
            ):
                return -1 - i
            check = after(check)
        data[i] = array[ARRAY_DATA]
    return 0


def assemble(state: Word, results: Word) -> Word:
    """Return the object that the recipe builds from the results, or 0 if there is no memory for it."""
    api = state[API]
    stack = state[OBJECTS] + WORD_BYTES * state[INPUT_COUNT]
    top = 0
    at = state[RECIPE]
    end = state[RECIPE_END]
    while at < end:
        kind = at[0]
        if kind <= PUT_OBJECT:
            put = at[1]
            if kind == PUT_RESULT:
                put = results[put]
            call(api[TAKE_REFERENCE], put)
            stack[top] = put
            top += 1
            at += WORD_BYTES * PUT_WORDS
            continue
        length = at[1]
        if kind == PUT_TUPLE or kind == PUT_NODE:  # noqa: SIM109 (words have no `in`)
            container = call(api[NEW_TUPLE], length)
        elif kind == PUT_LIST:
            container = call(api[NEW_LIST], length)
        else:
            container = call(api[NEW_DICT])
        first = stack + WORD_BYTES * (top - length)
        if container != 0 and kind == PUT_DICT:
            for i in range(length):
                item = at + WORD_BYTES * (PUT_WORDS + PUT_DICT_ITEM_WORDS * i)
                value = first[item[1]]
                if container != 0 and call(api[SET_ITEM], container, item[0], value) & 0xFFFFFFFF != 0:
                    call(api[DROP_REFERENCE], container)
                    container = 0
        if container == 0:
            for i in range(top):
                call(api[DROP_REFERENCE], stack[i])
            return 0
        if kind == PUT_DICT:
            for i in range(length):
                call(api[DROP_REFERENCE], first[i])
            at += WORD_BYTES * PUT_DICT_ITEM_WORDS * length
        else:
            items = container + state[TUPLE_HEAD]
            if kind == PUT_LIST:
                items = container[LIST_ITEMS]
            for i in range(length):
                items[i] = first[i]
        top -= length
        if kind == PUT_NODE:
            children = container
            container = call(api[CALL_OBJECT], at[2], children)
            call(api[DROP_REFERENCE], children)
            if container == 0:
                for i in range(top):
                    call(api[DROP_REFERENCE], stack[i])
                return 0
            at += WORD_BYTES * (PUT_NODE_WORDS - PUT_WORDS)
        at += WORD_BYTES * PUT_WORDS
        stack[top] = container
        top += 1
    return stack[0]
