# SPDX-License-Identifier: BSD-3-Clause
"""Calls around which NumPy's warnings of floating point are off."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

try:  # what np.errstate does, in a sixth of its time
    from numpy._core.umath import _extobj_contextvar, _make_extobj

    _SETTINGS: Any = _make_extobj(all="ignore")
except (ImportError, TypeError):  # another version of NumPy
    _SETTINGS = None


def call_quietly(function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    """Return the result of a function; NumPy gives no warnings meanwhile."""
    if _SETTINGS is None:
        with np.errstate(all="ignore"):
            return function(*arguments)
    token = _extobj_contextvar.set(_SETTINGS)
    try:
        return function(*arguments)
    finally:
        _extobj_contextvar.reset(token)
