# SPDX-License-Identifier: BSD-3-Clause
"""The place in the user's code that called this package."""

import dis
import functools
import itertools
import os
import sys
import threading
import types
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_NUMPY = os.path.dirname(os.path.abspath(np.__file__)) + os.sep  # which calls us
_EXAMPLES = PACKAGE + "examples" + os.sep  # where a wheel puts them: a user's code all the same
_is_internal: dict[str, bool] = {}  # by file name


def user_frame() -> Any:
    """Return the innermost frame outside this package and NumPy, or None."""
    return _outside(sys._getframe(2))


def _outside(frame: Any) -> Any:
    """Return the innermost frame from `frame` on that is outside this package and NumPy, or None."""
    while frame is not None and is_internal(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def is_internal(file: str) -> bool:
    """Return whether a file is one of this package or of NumPy."""
    internal = _is_internal.get(file)
    if internal is None:
        path = absolute(file)
        internal = path.startswith((PACKAGE, _NUMPY)) and not path.startswith(_EXAMPLES)
        _is_internal[file] = internal
    return internal


def absolute(file: str) -> str:
    """Return the absolute path of a file of source, as far as it has one.

    Source without a file has a name such as ``<stdin>``, and the current folder may have been removed.
    """
    if file.startswith("<"):
        return file
    try:
        return os.path.abspath(file)
    except FileNotFoundError:
        return file


SOLVERS = ("scipy.optimize.", "scipy.integrate.")
"""Packages whose functions call those of the user, and read the results: most have no counterpart, and take numbers."""


def called_by(packages: tuple[str, ...]) -> bool:
    """Return whether the function that calls this one is called by a module, by the beginnings of names."""
    return str(sys._getframe(2).f_globals.get("__name__")).startswith(packages)


def scipy_call() -> tuple[str, tuple[str, int]] | None:
    """Return the name of the function of SciPy that called this package, and the user's file and line, or None."""
    found = library_call(("scipy",))
    return None if found is None else (found[0], (found[1].f_code.co_filename, found[1].f_lineno))


def library_call(libraries: Collection[str], frame: Any = None) -> tuple[str, Any] | None:
    """Return the name of the function of a library that called this package, and the user's frame, or None.

    Args:
        libraries: names of packages, or of modules that are not part of one.
        frame: of the library; None for the innermost one outside this package and NumPy.
    """
    name = package = ""
    frame = user_frame() if frame is None else frame
    while frame is not None and _top(str(frame.f_globals.get("__name__", ""))) in libraries:
        # A decorator of SciPy's holds the function that it decorates.
        held = [value for value in frame.f_locals.values() if isinstance(value, types.FunctionType)]
        places = [(f.__module__, f.__qualname__) for f in held]
        for module, function in (*places, (frame.f_globals["__name__"], frame.f_code.co_qualname)):
            public = _public(str(module))
            if _top(public) not in libraries:
                continue
            package = public
            # random.uniform is a method of a class, and a closure's name begins with the function around it
            for part in (function.rpartition(".")[2], function.partition(".")[0]):
                if not part.startswith("__") and hasattr(sys.modules.get(public), part):
                    name = f"{public}.{part}"
                    break
        frame = _outside(frame.f_back)
    if not package or frame is None:
        return None
    return name or f"a function of {package}", frame


def _top(module: str) -> str:
    """Return the package of a module: ``scipy`` of ``scipy.linalg``."""
    return module.partition(".")[0]


def _public(module: str) -> str:
    """Return the public part of the name of a module: ``scipy.linalg`` of ``scipy.linalg._basic``."""
    return ".".join(itertools.takewhile(lambda part: not part.startswith("_"), module.split(".")))


def user_place() -> Any:
    """Return the file, and the span in it of the expression that the user's code is at."""
    frame = user_frame()
    if frame is None:
        return None
    return place_of(frame.f_code, frame.f_lasti)


def place_of(code: types.CodeType, at: int) -> Any:
    """Return the file, and the span in it of the expression of an instruction."""
    return code.co_filename, next(itertools.islice(code.co_positions(), at // 2, None), None)


def source_of(file: str, span: tuple[int | None, ...] | None) -> str:
    """Return the text of a span of a file, or nothing where either is unknown."""
    import linecache

    if span is None or None in span:
        return ""
    first, last, start, stop = (number or 0 for number in span)
    lines = [line.encode() for line in linecache.getlines(file)[first - 1 : last]]
    if not lines:
        return ""
    lines[-1] = lines[-1][:stop]
    lines[0] = lines[0][start:]
    return b"".join(lines).decode(errors="replace")


def in_place_frame() -> types.FrameType | None:
    """Return the frame of the user's code, if it is at a statement like ``u += x``."""
    frame: types.FrameType | None = user_frame()
    return None if frame is None or _in_place_at(frame) is None else frame


def _in_place_at(frame: types.FrameType) -> str | None:
    """Return the operator of the statement like ``u += x`` that a frame is at; None if it is at another instruction."""
    code, at = frame.f_code.co_code, frame.f_lasti
    if code[at] != dis.opmap["BINARY_OP"]:
        return None
    symbol = str(dis._nb_ops[code[at + 1]][1])  # type: ignore[attr-defined]
    return symbol if symbol.endswith("=") else None


def written_in_place() -> str | None:
    """Return the left side of the statement that the user's code is at, if it is one like ``u += x``; else None."""
    frame = user_frame()
    symbol = None if frame is None else _in_place_at(frame)
    if frame is None or symbol is None:
        return None
    text = source_of(*place_of(frame.f_code, frame.f_lasti))
    target, found, _ = text.partition(symbol)
    return " ".join(target.split()) if found else None


def is_storing() -> bool:
    """Return whether the user's code is at an assignment ``container[key] = value``."""
    frame = user_frame()
    return frame is not None and frame.f_code.co_code[frame.f_lasti] == dis.opmap["STORE_SUBSCR"]


def called_method() -> str | None:
    """Return the name of the method that the user's code calls, as in ``w.dot(x)``; None of any other instruction."""
    frame = user_frame()
    if frame is None or not dis.opname[frame.f_code.co_code[frame.f_lasti]].startswith(("CALL", "PRECALL")):
        return None
    places = [*frame.f_code.co_positions()]
    line, _, column, _ = places[frame.f_lasti // 2]
    # The method, and what it is a method of, begin where the call does; of w.dot(x).max(), the last name is the one.
    names = [
        instruction.argval
        for instruction in dis.get_instructions(frame.f_code)
        if instruction.opname in ("LOAD_METHOD", "LOAD_ATTR") and instruction.offset < frame.f_lasti
        if (places[instruction.offset // 2][0], places[instruction.offset // 2][2]) == (line, column)
    ]
    return names[-1] if names and column is not None else None


class _Caller(threading.local):
    """The file and line for which this thread works, if it is not the user's thread."""

    place: tuple[str, int] | None = None


_caller = _Caller()


@contextmanager
def called_from(place: tuple[str, int] | None) -> Iterator[None]:
    """Let a file and line count as the user's place in this thread while the block runs."""
    around, _caller.place = _caller.place, place
    try:
        yield
    finally:
        _caller.place = around


def line_of(frame: types.FrameType) -> int:
    """Return the line that a frame is at, or that of its function where an instruction has none."""
    return frame.f_lineno or frame.f_code.co_firstlineno  # type: ignore[unused-ignore]


def user_location() -> tuple[str, int] | None:
    """Return the file and line in the user's code, also in a thread that works for another one."""
    if _caller.place is not None:
        return _caller.place
    frame = user_frame()
    return None if frame is None else (frame.f_code.co_filename, line_of(frame))


def global_names(function: Any) -> dict[str, Any] | None:
    """Return the global names that a function reads, or None if they are not known."""
    for _ in range(100):  # a chain without an end must not hang
        inner = getattr(function, "__wrapped__", None) or getattr(function, "__func__", None)
        if inner is None and isinstance(function, functools.partial):
            inner = function.func
        if inner is None:
            break
        function = inner
    if not hasattr(function, "__globals__"):
        function = type(function).__call__
    names: dict[str, Any] | None = getattr(function, "__globals__", None)
    return names
