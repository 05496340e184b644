# SPDX-License-Identifier: BSD-3-Clause
"""Calls of instances of a class that go to compiled code (Note [direct calls] in kernels/executor/direct.py)."""

import ctypes
from typing import Any

import numpy as np

from tracejit.compile.registry import registry
from tracejit.kernels.executor import state as words
from tracejit.runtime import object_layout
from tracejit.runtime.c_function import MethodDefinition

_SIGNATURE = (
    "__call__($self, /, *args, **kwargs)\n--\n\n"  # which inspect.signature finds before the docstring
)
_WITH_NAMES = 0x1 | 0x2  # METH_VARARGS | METH_KEYWORDS: the function takes a tuple of arguments and a dict


def new_state(general: Any, blockers: dict[Any, None]) -> np.ndarray:
    """Return the state of no program, with which calls go the general way.

    Args:
        general: the function of Python that takes the general way, with the object that is called before its arguments.
        blockers: as long as something is in here, calls go the general way.
    """
    object_layout.check_layout()
    api = object_layout.api()
    object_layout.keep_for_ever((general, blockers))
    state = np.zeros(words.STATE_WORDS, np.intp)
    state[words.API] = api.ctypes.data
    state[words.TUPLE_HEAD] = tuple.__basicsize__
    state[words.GENERAL] = id(general)
    state[words.BLOCKERS] = id(blockers)
    return state


def install(kind: type) -> bool:
    """Make calls of the instances of a class direct; return False if their aim does not lie where it should."""
    probe: Any = object.__new__(kind)
    aim: list[Any] = []
    object.__setattr__(probe, "_aim", aim)
    if object_layout.word(id(probe), words.FUNCTION_AIM) != id(aim):
        return False
    text = f"{_SIGNATURE}{kind.__call__.__doc__ or ''}"
    method = MethodDefinition(b"__call__", registry.function("called"), _WITH_NAMES, text.encode())
    new_method = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.c_void_p)(
        ("PyDescr_NewMethod", ctypes.pythonapi)
    )
    object_layout.keep_for_ever(method)
    kind.__call__ = new_method(kind, ctypes.addressof(method))  # type: ignore[method-assign]
    return True
