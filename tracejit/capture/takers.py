# SPDX-License-Identifier: BSD-3-Clause
"""The functions that do with dlarrays what they do with ndarrays, so that one can stand for the other."""

import builtins
import functools
import types
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tracejit.array import dlarray
from tracejit.record import monitor
from tracejit.util.frames import PACKAGE
from tracejit.util.text import module_of

# By identity: an object that is called can have no hash, and its == is code of the user's.
_OF_ANYTHING = frozenset(map(id, (
    abs, all, any, enumerate, filter, iter, len, map, max, min, next, reversed, sorted, sum, zip, range, slice, bool,
    complex, dict, float, int, list, round, tuple, divmod, pow, callable, setattr, super,
)))  # fmt: skip
_OF_ATTRIBUTES = frozenset(map(id, (builtins.getattr, builtins.hasattr)))
# Of NumPy: what tells memory, texts, or makes arrays of buffers.
_OTHERS = frozenset({
    "shares_memory", "may_share_memory", "array2string", "array_repr", "array_str", "frombuffer", "fromiter",
    "byte_bounds", "save", "savez", "savez_compressed", "savetxt",
})  # fmt: skip
_CLASSES = (np.ndarray, np.generic, int, float, complex, bool, str, bytes, list, tuple, dict, set, type(None))
_CONTAINERS = (list, tuple, dict)


@functools.cache
def lacking() -> frozenset[str]:
    """Return the attributes that ndarrays have and dlarrays lack, which get theirs when all modules are imported."""
    return frozenset(name for name in dir(np.ndarray) if not hasattr(dlarray, name))


def takes_dlarrays(function: Any, arguments: Sequence[Any] = ()) -> bool:
    """Return whether a function does with dlarrays among its arguments what it does with ndarrays, as far as is known.

    Args:
        function: the function, or a class.
        arguments: what it is called with, for functions of Python that ask for attributes and classes.
    """
    kind = type(function)
    if module_of(kind).partition(".")[0] == "tracejit":  # what stands for a function of NumPy, for instance
        return True
    if kind is types.FunctionType:
        file = function.__code__.co_filename
        return not monitor.is_library(file) or file.startswith((PACKAGE, "<__array_function__", "<tracejit"))
    if kind is types.MethodType:
        return takes_dlarrays(function.__func__, arguments)
    if kind is functools.partial:
        return takes_dlarrays(function.func, (*function.args, *arguments))
    if isinstance(function, np.ufunc):
        return True
    if isinstance(function, type):
        return id(function) in _OF_ANYTHING or monitor.is_user_class(function)
    if function is isinstance:
        return len(arguments) > 1 and _tells_arrays_alike(arguments[1])
    if id(function) in _OF_ATTRIBUTES:
        return len(arguments) > 1 and arguments[1] not in lacking()
    owner, name = getattr(function, "__objclass__", None), str(getattr(function, "__name__", ""))
    if isinstance(function, (types.BuiltinFunctionType, types.MethodWrapperType)):
        own = function.__self__
        owner = None if isinstance(own, types.ModuleType) else type(own)
    if owner is np.ndarray:
        return name not in lacking()
    if owner is not None:
        return owner in _CONTAINERS
    if str(getattr(function, "__module__", "")).partition(".")[0] == "numpy":
        return (kind is type(np.sum) and name not in _OTHERS) or _is_answered(kind)
    return id(function) in _OF_ANYTHING or _is_answered(kind)


def _is_answered(kind: type) -> bool:
    """Return whether code that takes dlarrays runs when an object of a class is called: a spline of SciPy's.

    The methods of such classes are exchanged while something is recorded.
    """
    call = next((vars(base)["__call__"] for base in kind.__mro__ if "__call__" in vars(base)), None)
    return type(call) is types.FunctionType and takes_dlarrays(call)


def _tells_arrays_alike(kind: Any) -> bool:
    """Return whether ``isinstance`` does not tell a dlarray from an ndarray, given a class or a tuple of them."""
    if isinstance(kind, tuple):
        return all(map(_tells_arrays_alike, kind))
    return isinstance(kind, type) and (kind in _CLASSES or monitor.is_user_class(kind))


def arrays_in(arguments: Iterable[Any]) -> list[np.ndarray]:
    """Return the ndarrays among arguments, and those in lists, tuples and dicts among them."""
    found = []
    for argument in arguments:
        kind = type(argument)
        parts = argument.values() if kind is dict else argument if kind in (list, tuple) else (argument,)
        found += [part for part in parts if type(part) is np.ndarray]
    return found
