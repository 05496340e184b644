# SPDX-License-Identifier: BSD-3-Clause
"""The frame of the user's code that called this package."""

import dis
import itertools
import os
import sys
from typing import Any

import numpy as np

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_NUMPY = os.path.dirname(os.path.abspath(np.__file__)) + os.sep  # which calls us
_EXAMPLES = PACKAGE + "examples" + os.sep  # where a wheel puts them: a user's code all the same
_is_internal: dict[str, bool] = {}  # by file name


def user_frame() -> Any:
    """Return the innermost frame outside this package and NumPy, or None."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        internal = _is_internal.get(file)
        if internal is None:
            path = os.path.abspath(file)
            internal = path.startswith((PACKAGE, _NUMPY)) and not path.startswith(_EXAMPLES)
            _is_internal[file] = internal
        if not internal:
            return frame
        frame = frame.f_back
    return None


def user_place() -> Any:
    """Return the file, and the span in it of the expression that the user's code is at."""
    frame = user_frame()
    if frame is None:
        return None
    code = frame.f_code
    return code.co_filename, next(itertools.islice(code.co_positions(), frame.f_lasti // 2, None), None)


def is_storing() -> bool:
    """Return whether the user's code is at an assignment ``container[key] = value``."""
    frame = user_frame()
    return frame is not None and frame.f_code.co_code[frame.f_lasti] == dis.opmap["STORE_SUBSCR"]
