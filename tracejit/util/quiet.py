# SPDX-License-Identifier: BSD-3-Clause
"""Calls during which NumPy gives no warnings of floating point, but still the exceptions that a user wants instead."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

try:  # what np.errstate does, in a sixth of its time
    from numpy._core.umath import _extobj_contextvar, _make_extobj

    _SETTINGS: Any = _make_extobj(all="ignore")
    _usual: Any = _extobj_contextvar.get()
except (ImportError, TypeError):  # another version of NumPy
    _SETTINGS = _usual = None


def settings() -> Any:
    """Return NumPy's settings for errors of floating point, for use_settings()."""
    return np.geterr() if _SETTINGS is None else _extobj_contextvar.get()


def use_settings(settings: Any) -> None:
    """Have NumPy treat errors of floating point as settings() said; with None, ignore them."""
    if _SETTINGS is None:
        np.seterr(**(settings or {"all": "ignore"}))
    else:
        _extobj_contextvar.set(_SETTINGS if settings is None else settings)


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


def raising() -> dict[Any, Any]:
    """Return the errors of floating point that a user wants as exceptions or calls, each with its setting."""
    if _SETTINGS is not None:
        settings = _extobj_contextvar.get()
        if settings is _SETTINGS or settings is _usual:  # what np.geterr says would take a microsecond
            return {}
    return {error: setting for error, setting in np.geterr().items() if setting in ("raise", "call")}


def call_as_wanted(function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    """Return the result of a function; NumPy gives no warnings meanwhile, but exceptions that a user wants."""
    wanted = raising()
    if not wanted:
        return call_quietly(function, arguments)
    with np.errstate(**(dict.fromkeys(np.geterr(), "ignore") | wanted)):
        return function(*arguments)
