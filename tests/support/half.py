# SPDX-License-Identifier: BSD-3-Clause
"""A kernel that halves a number, for tests of the store."""

import ctypes

import numpy as np

from tracejit.codegen.names import NAME, named
from tracejit.compile import key
from tracejit.program import Kernel
from tracejit.store.entry import KernelKey


def half(comment: str = "") -> Kernel:
    return named(
        f"def {NAME}(args):\n    x = read_f32(args[0])\n    o = write_f32(args[1], 0)\n"
        f"    o[0] = f32(0.5) * x[0]  # {comment}\n",
        "half",
    )


def key_of_half() -> KernelKey:
    found = key.key_of("kernel", half().text)
    assert found is not None
    return found


def run_half(address: int) -> float:
    x, o = np.array([3.0], np.float32), np.zeros(1, np.float32)
    arguments = np.array([x.ctypes.data, o.ctypes.data], np.intp)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)(arguments.ctypes.data)
    return float(o[0])
