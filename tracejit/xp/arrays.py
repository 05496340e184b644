# SPDX-License-Identifier: BSD-3-Clause
"""Operands and results of the functions of the standard: dlarrays, whatever NumPy's function returns."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.array import dlarray
from tracejit.errors import ArgumentError
from tracejit.record import recorder, views

ARRAYS = (dlarray, np.ndarray, np.generic)


def operand(x: Any) -> Any:
    """Return an operand that is an array as a dlarray; a Python number stays one."""
    return x if isinstance(x, dlarray) or not isinstance(x, ARRAYS) else dlarray(x)


def array(result: Any) -> Any:
    """Return a result as a dlarray, which can be written also without axes; parts of tuples and lists likewise."""
    if recorder.is_array(result):
        return views.without_axes(result) if views.is_scalar(result) else result
    if isinstance(result, tuple):
        parts = [array(part) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    if isinstance(result, list):
        return [array(part) for part in result]
    return dlarray(np.asarray(result))


def check_device(function: str, device: Any) -> None:
    """Check an argument `device`.

    Raises:
        ArgumentError: if it is not "cpu".
    """
    if device not in (None, "cpu"):
        raise ArgumentError(f"xp.{function}: device must be 'cpu' or None, not {device!r}.")


def unary(function: Callable[..., Any], name: str) -> Any:
    """Return a function of NumPy as one of the standard, of one array."""

    def applied(x: Any, /) -> Any:
        return array(function(operand(x)))

    return _named(applied, name)


def binary(function: Callable[..., Any], name: str) -> Any:
    """Return a NumPy function of two arrays as one of the standard; one of the arrays may be a number."""

    def applied(x1: Any, x2: Any, /) -> Any:
        return array(function(operand(x1), operand(x2)))

    return _named(applied, name)


def _named(function: Any, name: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__module__ = "tracejit.xp.elementwise"
    function.__doc__ = f"Apply ``{name}`` of the array API standard, element by element, as ``numpy.{name}``."
    return function


def beyond_standard(module: str, numpys: Any) -> Callable[[str], Any]:
    """Return the function by which a module has NumPy's functions that the standard lacks, in recorded code.

    That code has ndarrays by itself, whose module is NumPy.

    Args:
        module: its name.
        numpys: the module of NumPy with the functions.
    """

    def attribute(name: str) -> Any:
        if recorder.recorder() is None or name.startswith("__") or not hasattr(numpys, name):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return getattr(numpys, name)

    return attribute
