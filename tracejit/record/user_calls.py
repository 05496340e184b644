# SPDX-License-Identifier: BSD-3-Clause
"""The calls of functions of NumPy that a user's code is at, and what becomes of their results.

Note [calls of users]
Code in C that calls np.asarray has no frame. So the caller's frame may be that of a user's code which called a function
of NumPy's generators, whose C code takes its arguments apart. Therefore the user's frame must be at a call whose callee
reads ``np.asarray``, an attribute of a name that holds NumPy, or ``asarray``, a name that was imported into a module of
users, or the function itself must be what is called, or what ``map`` calls. Calls in other forms get NumPy's own array,
as do those of installed packages whose results are not traced.
"""

import dis
import gc
import os
from functools import cached_property, lru_cache, partial
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from tracejit.record import monitor, stack
from tracejit.util.named_tuples import NamedTuple


class UserCall(NamedTuple):
    """A call ``np.function(...)`` or ``function(...)`` in a user's code.

    name          the first name that it reads
    of_module     whether this is the name of the module
    is_kept       whether the result is returned, or kept in a global name, an attribute or a container, at once; or
                  the code is that of an installed package
    is_returned   whether it is returned
    """

    name: str
    of_module: bool
    is_kept: bool
    is_returned: bool


def call_of_user(frame: Any, function: Any) -> UserCall | None:
    """Return the call that a user's code is at of a function's replacement, or None (Note [calls of users])."""
    if _is_of_library(frame.f_code.co_filename) or not _is_for_user(frame):
        return None
    if frame.f_code.co_name == "__array__":  # from which NumPy takes nothing but an ndarray
        return None
    name = function.name
    call = _call_at(frame.f_code, frame.f_lasti, name)
    if call is not None:
        for names in (frame.f_locals, frame.f_globals):
            if call.name in names:
                meaning = names[call.name]
                if type(meaning) is ModuleType and call.of_module:  # NumPy, or a module that has its function
                    meaning = vars(meaning).get(name)
                if _stands_for(meaning, name):
                    return call._replace(is_kept=_is_kept(call, frame))
                break
    return UserCall(name, False, True, False) if _is_handed_on(frame, function) else None


def _is_handed_on(frame: Any, function: Any) -> bool:
    """Return whether a frame calls a function as an object, or takes the elements of map(function, x)."""
    if not stack.is_readable():
        return False
    callees = [callee for callee in stack.callees(frame) if type(callee) in (type(function), partial)]
    if any(callee is function or getattr(callee, "func", None) is function for callee in callees):
        return True
    return any(mapped is function for mapped in stack.maps_of(frame))


def _stands_for(meaning: Any, name: str) -> bool:
    """Return whether a name means what stands for a function of NumPy in users' calls."""
    return getattr(type(meaning), "is_made_for_users", False) and meaning.name == name


@lru_cache(maxsize=4096)
def _is_of_library(file: str) -> bool:
    """Return whether code of a file is that of a library; numpy.polynomial, in Python, is recorded as a user's is."""
    return not file.startswith(_RECORDED) and is_file_of_library(file)


@lru_cache(maxsize=4096)
def is_file_of_library(file: str) -> bool:
    """Return whether a file is one of a library whose calls of NumPy get NumPy's own arrays."""
    return monitor.is_library(file) or _package_of(file) in _FOR_C


@lru_cache(maxsize=4096)
def _is_installed(file: str) -> bool:
    """Return whether a file is one of what is installed, which keeps tables of its own."""
    return not file.startswith(_RECORDED) and _package_of(file) is not None


def _package_of(file: str) -> str | None:
    """Return the installed package that a file is one of, or None."""
    folders = file.split(os.sep)
    places = [place for place, folder in enumerate(folders[:-1]) if folder in _PACKAGES]
    return folders[places[-1] + 1].removesuffix(".py") if places else None


NUMPY = os.path.dirname(os.path.abspath(np.__file__)) + os.sep
_RECORDED = os.path.join(NUMPY, "polynomial") + os.sep
OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def _is_for_user(frame: Any) -> bool:
    """Return whether code is a user's, or that of numpy.polynomial which a user's code has called.

    Libraries call it for tables of their own, also while they are imported.
    """
    while frame is not None and frame.f_code.co_filename.startswith((_RECORDED, OWN)):
        if frame.f_code.co_name == "<module>":
            return False
        frame = frame.f_back
    return frame is not None and not _is_of_library(frame.f_code.co_filename)


def _is_kept(call: UserCall, frame: Any) -> bool:
    """Return whether the result of a call is kept, or is made in a function whose results a cache keeps.

    A function that returns it to the user's code gives it to that; one that a library calls, to the library.
    """
    if _is_installed(frame.f_code.co_filename):
        return True
    around = frame.f_back
    if call.is_kept and (not call.is_returned or around is None or _is_of_library(around.f_code.co_filename)):
        return True
    while frame.f_back is not None:
        caller = frame.f_back.f_code
        if _is_of_library(caller.co_filename):
            return bool(caller is _PROPERTY)
        if _is_cached(frame):
            return True
        frame = frame.f_back
    return False


_CACHE = type(lru_cache(len))
_PROPERTY = cached_property.__get__.__code__


def _is_cached(frame: Any) -> bool:
    """Return whether functools.lru_cache keeps the results of the function of a frame, which does not tell."""
    name = frame.f_code.co_name
    known = [frame.f_back.f_locals.get(name), frame.f_globals.get(name)]
    owner = frame.f_globals.get(frame.f_code.co_qualname.rpartition(".")[0])
    if isinstance(owner, type):
        known.append(vars(owner).get(name))
    return any(type(thing) is _CACHE for thing in known) or _has_cache(frame.f_code)


@lru_cache(maxsize=1024)
def _has_cache(code: CodeType) -> bool:
    """Return whether the collector knows an lru_cache of a function with a code, under whatever name."""
    functions = [function for function in gc.get_referrers(code) if type(function) is FunctionType]
    return any(type(wrapper) is _CACHE for function in functions for wrapper in gc.get_referrers(function))


_PACKAGES = frozenset({"site-packages", "dist-packages"})
# Packages that hand most arrays to code in C, which takes no others than NumPy's.
_FOR_C = frozenset({
    "cupy", "cv2", "h5py", "jax", "jaxlib", "llvmlite", "matplotlib", "numba", "numpy", "pandas", "PIL", "pyarrow",
    "scipy", "tensorflow", "torch", "xarray",
})  # fmt: skip


@lru_cache(maxsize=1024)
def _call_at(code: CodeType, at: int, function: str) -> UserCall | None:
    """Return the call of a function at an instruction of a code, or None if it is none."""
    instructions = list(dis.get_instructions(code))
    number = next((i for i, instruction in enumerate(instructions) if instruction.offset == at), None)
    call = None if number is None else instructions[number].positions
    if number is None or call is None or call.lineno is None:
        return None
    # Python writes code twice that may be reached in two ways (of finally, of the condition of while); the copy that is
    # running is the last before the call. The names of keywords are a constant at the place of the call.
    loads = [
        instruction
        for instruction in instructions[:number]
        if instruction.opname.startswith("LOAD_")
        and instruction.opname != "LOAD_CONST"
        and _begin(instruction.positions) == _begin(call)
    ]
    of_module = bool(loads) and _is_attribute(loads[-1])
    callee = loads[-2:] if of_module else loads[-1:]
    if not callee or _is_attribute(callee[0]) or not isinstance(callee[0].argval, str):
        return None
    if of_module and callee[1].argval != function:
        return None
    follows = instructions[number + 1].opname
    return UserCall(callee[0].argval, of_module, follows in _KEEPS, follows == "RETURN_VALUE")


def _is_attribute(instruction: dis.Instruction) -> bool:
    return instruction.opname.endswith(("ATTR", "METHOD"))


_KEEPS = frozenset({"RETURN_VALUE", "STORE_GLOBAL", "STORE_ATTR", "STORE_SUBSCR"})


def _begin(positions: Any) -> Any:
    """Return the line and column at which an expression begins."""
    return None if positions is None else (positions.lineno, positions.col_offset)
