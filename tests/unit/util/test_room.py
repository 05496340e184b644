# SPDX-License-Identifier: BSD-3-Clause
"""The room that kernels need on stacks."""

import sys
import threading

import pytest

from tracejit.program import Kernel
from tracejit.util.room import NoRoomError, check_stack

KIB = 1 << 10


def test_scratch_memory_of_a_kernel() -> None:
    text = "def f(args):\n    a = scratch_f32(100)\n    b = scratch_i64(3)\n    c = scratch_u8(5)\n"
    assert Kernel("f", text).scratch_bytes == 429
    assert Kernel("f", "def f(args):\n    pass\n").scratch_bytes == 0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="sizes of stacks of Linux")
def test_room_on_stacks() -> None:
    usual = threading.stack_size(256 * KIB)
    try:
        check_stack([])
        check_stack([128 * KIB, 64 * KIB])
        with pytest.raises(NoRoomError) as error:
            check_stack([64 * KIB, 1024 * KIB])
    finally:
        threading.stack_size(usual)
    assert str(error.value) == (
        "its kernels cannot run: they need 1152 KiB of stack, and a stack in this process may have 256 KiB. Raise the "
        "limit (ulimit -s, threading.stack_size)."
    )
