# SPDX-License-Identifier: BSD-3-Clause
"""Words that the executor, its threads and those who call them agree on; importing this imports no compiler."""

import os
import platform

HAS_THREADS = os.name == "posix"

# Bits of the control register of SSE: results that are denormal become 0 (bit 15), so do operands (bit 6).
FLUSH_TO_ZERO = 0x8040
HAS_CONTROL_REGISTER = platform.machine().lower() in ("x86_64", "amd64")

# Where CPython and NumPy keep what is read of an object, in words from its start. Every object begins with so many
# bytes in builds of 64 bits that have the GIL and do not list all objects for debugging.
OBJECT_BYTES = 16
OBJECT_REFERENCES, OBJECT_TYPE, OBJECT_SIZE = 0, 1, 2
LIST_ITEMS = 3  # the address of its items; those of a tuple follow its head, which has TUPLE_HEAD bytes
DICT_SIZE = FLOAT_VALUE = 2
ARRAY_DATA, ARRAY_NDIM, ARRAY_SHAPE, ARRAY_STRIDES, ARRAY_DTYPE, ARRAY_FLAGS, ARRAY_WEAK = 2, 3, 4, 5, 7, 8, 9
CONTIGUOUS_AND_ALIGNED, ALIGNED, OWNED_AND_WRITEABLE = 0x101, 0x100, 0x404

# Words of the state of a program.
(
    ARGUMENTS, ROWS, ROW_COUNT, PATCHES, PATCH_COUNT, CHECKS, INPUT_COUNT, OUTPUT_COUNT, DATA, ARRAY_TYPE, FLUSH,
    POOL, RUN_PARTS, TUPLE_HEAD,
    RESULT_COUNT, RESULT_FORMATS, LABELLED_TYPE, SLOT_DATA, SLOT_FORMAT, SLOT_VALUE, SLOT_WEAK, GUARDED,
    PATTERN, PATTERN_END, TAKEN, RECIPE, RECIPE_END, OBJECTS, TURN, STATUS, API, SCRATCH,
) = range(32)  # fmt: skip
STATE_WORDS = SCRATCH + 3
ROW_WORDS = 4

# Words of what Python gives: its functions, by their names in C, its types and None.
API_FUNCTIONS = (
    "Py_IncRef", "Py_DecRef", "PyEval_SaveThread", "PyEval_RestoreThread", "PyDict_Next", "PyUnicode_Compare",
    "PyLong_AsLongLongAndOverflow", "PyTuple_New", "PyList_New", "PyDict_New", "PyDict_SetItem",
)  # fmt: skip
API_OBJECTS = (tuple, list, dict, float, int, str, None)
(
    TAKE_REFERENCE, DROP_REFERENCE, SAVE_THREAD, RESTORE_THREAD, DICT_NEXT, TEXT_COMPARE, INT_VALUE, NEW_TUPLE,
    NEW_LIST, NEW_DICT, SET_ITEM,
    TUPLE_TYPE, LIST_TYPE, DICT_TYPE, FLOAT_TYPE, INT_TYPE, TEXT_TYPE, NONE,
) = range(18)  # fmt: skip

# What a pattern is made of, and a recipe (Note [patterns] in entry.py).
(
    IS_TUPLE, IS_LIST, IS_DICT, IS_ARRAY, IS_FLOAT, IS_INT, IS_SAME, IS_SAME_TEXT, IS_SAME_FLOAT, IS_SAME_INT,
) = range(10)  # fmt: skip
PUT_RESULT, PUT_OBJECT, PUT_TUPLE, PUT_LIST, PUT_DICT = range(5)
MISSED = 1 << 62  # a status: the arguments are of another kind, or the guard does not hold

# Words of a pool; what changes often, and the lock and the condition of the system, have cache lines of their own.
(
    TICKET, DONE, OWNER, SLEEPERS, STOP, LAUNCH_ROWS, LAUNCH_ARGUMENTS, LAUNCH_CONTROL, RESUME_NS, ALONE_NS, MUTEX,
    CONDITION,
) = (0, 8, 16, 24, 32, 40, 41, 42, 43, 44, 48, 64)  # fmt: skip
POOL_WORDS = 80
