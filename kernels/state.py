# SPDX-License-Identifier: BSD-3-Clause
"""Words that the executor, its threads and those who call them agree on; importing this imports no compiler."""

import os
import platform

HAS_THREADS = os.name == "posix"

# Bits of the control register of SSE: results that are denormal become 0 (bit 15), so do operands (bit 6).
FLUSH_TO_ZERO = 0x8040
HAS_CONTROL_REGISTER = platform.machine().lower() in ("x86_64", "amd64")

# Where CPython and NumPy keep what the executor reads, in bytes from the start of an object (64-bit builds).
TUPLE_ITEMS = LIST_ITEMS = 24  # a tuple's items are there, of a list's their address
OBJECT_REFERENCES, OBJECT_TYPE = 0, 8
ARRAY_DATA, ARRAY_NDIM, ARRAY_SHAPE, ARRAY_STRIDES, ARRAY_DTYPE, ARRAY_FLAGS, ARRAY_WEAK = (
    16,
    24,
    32,
    40,
    56,
    64,
    72,
)
CONTIGUOUS_AND_ALIGNED, WRITEABLE = 0x101, 0x400

# Words of the state.
(
    ARGUMENTS, ROWS, ROW_COUNT, PATCHES, PATCH_COUNT, CHECKS, CHECK_COUNT, ARRAY_TYPE, FLUSH, POOL, RUN_PARTS,
    RESULT_COUNT, RESULT_TYPE, RESULT_FORMATS, NONE, SLOT_DATA, SLOT_FORMAT, SLOT_VALUE, SLOT_WEAK,
) = range(19)  # fmt: skip
STATE_WORDS = 19
ROW_WORDS = 4

# Words of a pool; what changes often, and the lock and the condition of the system, have cache lines of their own.
(
    TICKET, DONE, OWNER, SLEEPERS, STOP, LAUNCH_ROWS, LAUNCH_ARGUMENTS, LAUNCH_CONTROL, RESUME_NS, ALONE_NS, MUTEX,
    CONDITION,
) = (0, 8, 16, 24, 32, 40, 41, 42, 43, 44, 48, 64)  # fmt: skip
POOL_WORDS = 80
