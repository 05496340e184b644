# SPDX-License-Identifier: BSD-3-Clause
"""Functions that the user has compiled with Numba, in recorded code.

They take ndarrays only. So with arrays of a recording among the arguments it is the Python function that runs, from
which Numba has compiled; what that computes is recorded. The names of such functions in the user's modules, and objects
that hold them, stand for replacements meanwhile, as those of functions of NumPy do (patches.py). Where Numba compiles
code meanwhile that reads such a name, it is told the type of the function itself.
"""

import sys
from collections.abc import Callable
from functools import update_wrapper
from typing import Any

import numpy as np

from tracejit.record import patches, recorder
from tracejit.record.current import thread


class NumbaFunction(patches.Patched):
    """The replacement of a function that Numba has compiled.

    Args:
        original: the function.
        in_python: what is called with arrays of a recording.
    """

    is_made_for_users = False

    def __init__(self, original: Any, in_python: Callable[..., Any]) -> None:
        update_wrapper(self, original)
        self.name = original.__name__
        self._original = original
        self._in_python = in_python

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if thread.recorder is not None and any(map(_is_recorded, (*args, *kwargs.values()))):
            return self._in_python(*args, **kwargs)
        return self._original(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    def __reduce__(self) -> Any:
        return (_itself, (self._original,))


def _itself(function: Any) -> Any:
    return function


def _is_recorded(x: Any) -> bool:
    """Return whether an argument is an array of a recording, a number that was taken out of one, or holds such."""
    if type(x) in (list, tuple):
        return any(map(_is_recorded, x))
    return recorder.is_array(x) or (recorder.is_number(x) and x._sources is None)


def install() -> None:
    """Have functions that Numba compiles replaced while something is recorded, once Numba is imported."""
    patches.when_imported("numba.core.registry", _install_dispatchers)
    patches.when_imported("numba.np.ufunc.dufunc", _install_ufuncs)


def _install_dispatchers() -> None:
    dispatcher = sys.modules["numba.core.registry"].CPUDispatcher
    patches.replace_objects(dispatcher, lambda function: NumbaFunction(function, function.py_func))
    typeof = sys.modules["numba.core.typing.typeof"].typeof_impl
    typeof.register(NumbaFunction)(lambda function, context: typeof(function._original, context))


def _install_ufuncs() -> None:
    patches.replace_objects(sys.modules["numba.np.ufunc.dufunc"].DUFunc, _of_ufunc)


def _of_ufunc(ufunc: Any) -> NumbaFunction:
    """Return what stands for a ufunc of @vectorize: np.vectorize of the Python function, which is recorded at once."""
    return NumbaFunction(ufunc, np.vectorize(ufunc._dispatcher.py_func))
