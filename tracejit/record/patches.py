# SPDX-License-Identifier: BSD-3-Clause
"""Functions of NumPy that are replaced while something is recorded.

NumPy asks nobody when it makes an array of numbers (np.zeros(3)), so it cannot be told by its protocols that the array
will hold traced values. While a recording is open, in any thread, the names in NumPy's namespace stand for functions
that do what they do, except where the code of a user calls them in a thread that records.

Note [calls of users]
Code in C that calls np.asarray has no frame, so the frame of the caller may be that of a user who called a function of
NumPy's generators, whose code takes apart what it gets. So the user's frame must be at a call whose callee reads
``np.asarray``: an attribute of a name that holds NumPy. Calls in other forms get what NumPy makes.
"""

import dis
import os
import sys
import threading
from collections.abc import Callable
from functools import lru_cache, update_wrapper
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from tracejit.record import monitor
from tracejit.record.current import thread


class Patched:
    """A function of NumPy, or what is done instead in a user's code that is recorded.

    It equals NumPy's and has its hash, so that tables of functions (Numba's, tracejit's) find it.
    """

    def __init__(self, original: Callable[..., Any], instead: Callable[..., Any]) -> None:
        update_wrapper(self, original)
        self._original = original
        self._instead = instead

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if thread.recorder is None:
            return self._original(*args, **kwargs)
        call = _call_of_user(sys._getframe(1), self.__name__)  # type: ignore[attr-defined]
        if call is None:
            return self._original(*args, **kwargs)
        with monitor.paused():
            return self._instead(self._original, call.is_kept, *args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return other is self or other is self._original

    def __hash__(self) -> int:
        return hash(self._original)

    def __reduce__(self) -> Any:
        return (_of_numpy, (self.__name__,))  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return repr(self._original)


def _of_numpy(name: str) -> Any:
    return original(getattr(np, name))


class UserCall(NamedTuple):
    """A call ``module.function(...)`` in a user's code.

    module      the name before the dot
    is_kept     whether the result is returned, or kept in a global name, an attribute or a container, at once
    """

    module: str
    is_kept: bool


def _call_of_user(frame: Any, name: str) -> UserCall | None:
    """Return the call of a function of NumPy that a user's code is at, or None (Note [calls of users])."""
    code = frame.f_code
    if _PACKAGES.intersection(code.co_filename.split(os.sep)) or monitor.is_library(code.co_filename):
        return None
    call = _call_at(code, frame.f_lasti, name)
    if call is not None:
        for names in (frame.f_locals, frame.f_globals):
            if call.module in names:
                return call if names[call.module] is np else None
    return None


_PACKAGES = frozenset({"site-packages", "dist-packages"})


@lru_cache(maxsize=1024)
def _call_at(code: CodeType, at: int, function: str) -> UserCall | None:
    """Return the call of a function at an instruction of a code, or None if it is none."""
    instructions = list(dis.get_instructions(code))
    number = next((i for i, instruction in enumerate(instructions) if instruction.offset == at), None)
    call = None if number is None else instructions[number].positions
    if number is None or call is None or call.lineno is None:
        return None
    callee = [
        instruction
        for instruction in instructions[:number]
        if instruction.opname.startswith("LOAD_") and _begin(instruction.positions) == _begin(call)
    ]
    if (
        len(callee) != 2
        or callee[1].argval != function
        or "ATTR" not in callee[1].opname.replace("METHOD", "ATTR")
    ):
        return None
    return UserCall(str(callee[0].argval), instructions[number + 1].opname in _KEEPS)


_KEEPS = frozenset({"RETURN_VALUE", "STORE_GLOBAL", "STORE_ATTR", "STORE_SUBSCR"})


def _begin(positions: Any) -> Any:
    """Return the line and column at which an expression begins."""
    return None if positions is None else (positions.lineno, positions.col_offset)


_lock = threading.Lock()
_patched: dict[str, Patched] = {}
_open: set[int] = set()


def replace(name: str, instead: Callable[..., Any]) -> None:
    """Have a function of NumPy replaced while something is recorded.

    Args:
        name: of the function.
        instead: is called with NumPy's function, whether the result is kept (UserCall), and the arguments.
    """
    _patched[name] = Patched(getattr(np, name), instead)


def original(function: Any) -> Any:
    """Return the function of NumPy that stands outside of recordings where `function` does inside one."""
    return function._original if type(function) is Patched else function


def is_patched(function: Any) -> bool:
    """Return whether a function of NumPy is one that is replaced while something is recorded."""
    return (
        getattr(function, "__name__", None) in _patched
        and original(function) is _patched[function.__name__]._original
    )


def begin(recording: object) -> None:
    """Replace the functions while a recording is open."""
    with _lock:
        _open.add(id(recording))
        _set(lambda patched: patched)


def end(recording: object) -> None:
    """Restore the functions, if this was the last recording that was open; may be called twice."""
    with _lock:
        _open.discard(id(recording))
        if not _open:
            _set(lambda patched: patched._original)


def _set(chosen: Callable[[Patched], Any]) -> None:
    for name, patched in _patched.items():
        # What somebody else has put there stays.
        if getattr(np, name) == patched:
            setattr(np, name, chosen(patched))
