# SPDX-License-Identifier: BSD-3-Clause
"""A program as data for who looks into the cache: its table, memory and source lines."""

import time
from typing import Any

from tracejit import config
from tracejit.backend.key import key_of
from tracejit.cache.programs import Programs
from tracejit.cache.store import root
from tracejit.program import Argument, Kernel, Number, Pointer, Program, Symbol

_MOST_ROWS = 1000  # of a long loop unrolled, the others repeat


def keep(program: Program, title: str, build_ns: int, compile_ns: int) -> None:
    """Write down in the cache that this process uses a program.

    Args:
        program: what was built.
        title: of what; a function's name.
        build_ns: time spent on building it.
        compile_ns: time spent on compiling its kernels, 0 if all were at hand.
    """
    settings = config.settings
    if settings.cache != "off":
        use = {"at": round(time.time(), 3), "build_ns": build_ns, "compile_ns": compile_ns}
        Programs(root(), settings.cache == "shared").keep(described(program, title), use)


def described(program: Program, title: str) -> dict[str, Any]:
    """Return a program as data that JSON can hold; the same program gives the same data in each process."""
    kernels = program.kernels
    numbers = {kernel: i for i, kernel in enumerate(kernels)}
    return {
        "function": title,
        "target": "cpu",
        "inputs": [str(aval) for aval in program.inputs],
        "outputs": [str(aval) for aval in program.outputs],
        "kernels": [{"name": kernel.name, "entry": _entry(kernel)} for kernel in kernels],
        "rows": [
            {
                "kernel": numbers[row.kernel],
                "arguments": [_argument(argument) for argument in row.arguments],
                "operations": row.note,
                "where": [list(where) for where in row.where if where],
                "part": [row.part, row.parts],
            }
            for row in program.rows[:_MOST_ROWS]
        ],
        "row_count": len(program.rows),
        "arena_bytes": program.arena_bytes,
        "constant_bytes": sum(constant.nbytes for constant in program.constants),
    }


def _entry(kernel: Kernel) -> str:
    """Return the name of a kernel's entry, "" if it has none."""
    key = key_of("kernel", kernel.text)
    return "" if key is None else key.name


def _argument(argument: Argument) -> Any:
    if isinstance(argument, Pointer):
        place = argument.place
        return [place.kind, place.number, place.offset + argument.offset_bytes, str(argument.dtype)]
    if isinstance(argument, Number):
        return [str(argument.dtype), repr(argument.value.item())]
    if isinstance(argument, Symbol):
        return ["symbol", argument.name]
    return argument
