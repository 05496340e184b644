# SPDX-License-Identifier: BSD-3-Clause
"""The layout of what the executor reads and writes: a program's state, its tables, Python's objects, a pool of threads.

All offsets and lengths count words of 64 bits. Importing this imports no compiler.
"""

import os
import platform

SYSTEM = os.name
HAS_THREADS = SYSTEM in ("posix", "nt")
WORD_BYTES = 8

# A register of the CPU controls arithmetic. These bits of it make denormal numbers 0: with SSE, bit 15 for results and
# bit 6 for operands; with NEON, bit 24 for both.
CPU = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
FLUSH_TO_ZERO = {"x86_64": 0x8040, "aarch64": 1 << 24}.get(CPU, 0)
HAS_CONTROL_REGISTER = FLUSH_TO_ZERO != 0

# Fields of the objects of CPython and NumPy.
OBJECT_BYTES = 16  # the head of an object, in builds of 64 bits with the GIL and no lists for debugging
OBJECT_REFERENCES, OBJECT_TYPE, OBJECT_SIZE = 0, 1, 2
LIST_ITEMS = 3  # the address of the items; those of a tuple follow its head of TUPLE_HEAD bytes
DICT_SIZE = FLOAT_VALUE = 2  # numbers of NumPy have their value where floats have it
ARRAY_DATA, ARRAY_NDIM, ARRAY_SHAPE, ARRAY_STRIDES, ARRAY_BASE, ARRAY_DTYPE, ARRAY_FLAGS, ARRAY_WEAK = range(
    2, 10
)
CONTIGUOUS, OWNED, ALIGNED, WRITEABLE = 0x1, 0x4, 0x100, 0x400

# Fields of the state of a program.
(
    ARGUMENTS, ROWS, ROW_COUNT, PATCHES, PATCH_COUNT, CHECKS, INPUT_COUNT, OUTPUT_COUNT, DATA, ARRAY_TYPE, FLUSH,
    POOL, RUN_PARTS, TUPLE_HEAD,
    RESULT_COUNT, RESULT_FORMATS, LABELLED_TYPE, SLOT_DATA, SLOT_FORMAT, SLOT_VALUE, SLOT_WEAK, GUARDED,
    PATTERN, PATTERN_END, TAKEN, RECIPE, RECIPE_END, OBJECTS, TURN, STATUS, API,
    COMMIT_COUNT, GUARD, FAULT, SPANS, WRITTEN, WRITTEN_COUNT, SEEN, THREAD, CONTROL, SLOT_FIXED, SLOT_LEAVES,
    DEVICE, GRAPHS, GRAPH_COUNT,
    GENERAL, HITS, HITS_LIMIT, BUSY, BLOCKERS, AGAIN, FETCH, DIRECT_PATTERN, DIRECT_END, DIRECT_COUNT, DIRECT_FIRST,
    BRIEF, RUN, MISS, SCRATCH,
) = range(60)  # fmt: skip
SCRATCH_WORDS = 3

# The word of an accelerated function that has a list, whose first item is a load: a list of a
# frame, and of what it needs (direct.called).
FUNCTION_AIM = 2
STATE_WORDS = SCRATCH + SCRATCH_WORDS

# A row of a program: the kernel, the place of its arguments in the table of arguments, and how many rows from this
# one on may run at the same time: ROW_PARTS parts of ROW_LENGTH rows. 1 part runs by itself. OF_PYTHON:
# the kernel is an object of Python, which is called with the address of its arguments and returns None, or something
# else to halt. OF_WORDS: it is a function of words, such as a loop, which gets that address and returns a status.
ROW_KERNEL, ROW_ARGUMENTS, ROW_PARTS, ROW_LENGTH = range(4)
ROW_WORDS = 4
OF_PYTHON, OF_WORDS = 0, -1

# The arguments of a loop (executor.loop): the most steps, the address of a byte that is not 0 while it goes on (or 0),
# its rows, its moves, and the state. A move adds MOVE_BYTES to argument MOVE_ARGUMENT after each step.
LOOP_COUNT, LOOP_CONDITION, LOOP_ROWS, LOOP_ROW_COUNT, LOOP_MOVES, LOOP_MOVE_COUNT, LOOP_STATE = range(7)
LOOP_WORDS = 7
MOVE_ARGUMENT, MOVE_BYTES = range(2)
MOVE_WORDS = 2

# A patch: data[PATCH_DATA] + PATCH_BYTES becomes argument PATCH_ARGUMENT; the data are those of inputs and outputs.
PATCH_ARGUMENT, PATCH_DATA, PATCH_BYTES = range(3)
PATCH_WORDS = 3

# A check of an array: its dtype (0: no array, its data is noted already), its number of axes, the flags that it needs,
# then the size of each axis and its stride in bytes, which counts where the array need not be contiguous.
CHECK_DTYPE, CHECK_AXES, CHECK_FLAGS, CHECK_SIZES = range(4)

# A span of an input: its first byte and the one after its last, counted from its first element; they are equal for what
# cannot share memory with an array that is written.
SPAN_LOW, SPAN_HIGH = range(2)
SPAN_WORDS = 2

# What the entry of a device knows of it: the driver's words, and the places, in words, of the attributes of an array
# there: its address, kind, owner, base, whether it can be written, and its weak references.
(
    DEVICE_DRIVER, DEVICE_DATA, DEVICE_KIND, DEVICE_OWNER, DEVICE_BASE, DEVICE_WRITEABLE, DEVICE_WEAK,
) = range(7)  # fmt: skip
DEVICE_WORDS = 7

# The words of a driver: whether launches have to go another way, how many are on their way, the context, and the
# functions that set it and that launch a graph, which go to the stream DEFAULT_STREAM.
IS_BUSY, LAUNCHING, DEVICE_CONTEXT, DEVICE_SET_CONTEXT, DEVICE_LAUNCH = range(5)
DRIVER_WORDS = 5
DEFAULT_STREAM = 0
WIDEST_ACCESS = 32  # bytes; the memory of inputs begins at multiples: four neighbours of float64
MOST_GRAPHS = 8  # of a program and one frame; an entry has the graph, and the addresses of inputs and outputs

# Python's functions, by their names in C, its types, None and True.
API_FUNCTIONS = (
    "Py_IncRef", "Py_DecRef", "PyEval_SaveThread", "PyEval_RestoreThread", "PyDict_Next", "PyUnicode_Compare",
    "PyLong_AsLongLongAndOverflow", "PyTuple_New", "PyList_New", "PyDict_New", "PyDict_SetItem", "PyLong_FromLongLong",
    "PyObject_CallOneArg", "PyObject_Call", "PyObject_CallNoArgs",
)  # fmt: skip
API_OBJECTS = (tuple, list, dict, float, int, str, None, True)
(
    TAKE_REFERENCE, DROP_REFERENCE, SAVE_THREAD, RESTORE_THREAD, DICT_NEXT, TEXT_COMPARE, INT_VALUE, NEW_TUPLE,
    NEW_LIST, NEW_DICT, SET_ITEM, NEW_INT, CALL_OBJECT, CALL_WITH, CALL_ALONE,
    TUPLE_TYPE, LIST_TYPE, DICT_TYPE, FLOAT_TYPE, INT_TYPE, TEXT_TYPE, NONE, TRUE,
) = range(23)  # fmt: skip

# Opcodes of patterns and recipes (Note [patterns] in entry.py).
(
    IS_TUPLE, IS_LIST, IS_DICT, IS_ARRAY, IS_SCALAR, IS_INT, IS_SAME, IS_SAME_TEXT, IS_SAME_FLOAT, IS_SAME_INT,
    IS_NODE,
) = range(11)  # fmt: skip
PUT_RESULT, PUT_OBJECT, PUT_TUPLE, PUT_LIST, PUT_DICT, PUT_NODE = range(6)

# What IS_ARRAY also takes: ndarrays; and what it does not: numbers, which are labelled arrays that own their memory.
IS_PLAIN, IS_NO_NUMBER = 1, 2

# The lengths of these entries in words, for those who write tables and those who read them.
IS_SEQUENCE_WORDS, IS_DICT_WORDS, DICT_KEY_WORDS, IS_NODE_WORDS = 4, 4, 1, 6
IS_ARRAY_WORDS, IS_SCALAR_WORDS, IS_INT_WORDS, IS_SAME_WORDS = 5, 4, 4, 3
PUT_WORDS, PUT_DICT_ITEM_WORDS, PUT_NODE_WORDS = 2, 2, 3

# Statuses: the arguments do not fit the pattern, or the guard does not hold; a function of Python that a row calls says
# that the program does not apply; or it has raised an error, which is set. On a device: no graph has the addresses; or
# the driver gave an error.
MISSED, HALTED, FAILED, UNPLACED, UNLAUNCHED = (
    1 << 62,
    (1 << 62) + 1,
    (1 << 62) + 2,
    (1 << 62) + 3,
    (1 << 62) + 4,
)

# Fields of a pool; those that change often, the lock and the condition have cache lines of their own.
(
    TICKET, DONE, OWNER, SLEEPERS, STOP, LAUNCH_ROWS, LAUNCH_ARGUMENTS, LAUNCH_CONTROL, RESUME_NS, ALONE_NS, MUTEX,
    CONDITION,
) = (0, 8, 16, 24, 32, 40, 41, 42, 43, 44, 48, 64)  # fmt: skip
POOL_WORDS = 80
