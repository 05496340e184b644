# SPDX-License-Identifier: BSD-3-Clause
"""Compiled entries as functions of Python."""

import ctypes
from collections.abc import Callable
from typing import Any

from tracejit.runtime import object_layout


class MethodDefinition(ctypes.Structure):
    """The description of a C function (PyMethodDef)."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_FASTCALL = 0x80  # the function takes an array of arguments and their number (METH_FASTCALL)


_new_function = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
    ("PyCFunction_NewEx", ctypes.pythonapi)
)


def python_function(address: int) -> Callable[..., Any]:
    """Return the compiled entry at an address as a function of Python."""
    object_layout.check_layout()
    method = MethodDefinition(b"enter", address, _FASTCALL, None)
    # The description is the function's self, so that it lives as long: a profiler may keep the function.
    return _new_function(ctypes.addressof(method), method, None)  # type: ignore[no-any-return]
