# SPDX-License-Identifier: BSD-3-Clause
"""A description of a program as JSON data, kept in the cache for inspection.

Note [inventory]
The description is JSON, and the same in each process. The first call in a process pays for it, so it is bounded: of a
long unrolled loop it holds the first rows, and the first row of each kernel; ``left_out`` counts the rest.

    function, defined, signature    the accelerated function: its name, [file, line], and [name, text] of each argument
    target                          of its kernels: "cpu", or a device such as "cuda 9.0"
    inputs, outputs                 of the program, in words
    written                         the numbers of the inputs that it writes, if there are any
    ops         number, name, inputs, params, outputs ([value, shape, dtype]), where ([file, line]), rows
    kernels     name, entry (the key of the entry on disk), lines ([line of the source, number of an op])
    rows        number, kernel (a number), arguments, operations (in words), ops (numbers), purpose, where, and
                part: its number, the number of parts, and the row's place in the part; and threads of a device
                and what they wait for (in words)
    pairs       made, read (numbers of rows), value, why: a row writes a value, a row reads it, why they are not one
    memory      kind, number, offset, bytes, value, op (that writes it), first, last (rows)
    row_count, arena_bytes, constant_bytes, left_out
"""

import re
import time
from typing import Any, Protocol

from tracejit import config
from tracejit.aval import dtype_name
from tracejit.compile.capability import Capability
from tracejit.compile.key import key_of
from tracejit.describe.program import Buffer, Description, Operation, describe
from tracejit.describe.stages import Stages
from tracejit.ir import Where
from tracejit.program import Argument, Kernel, Pointer, Program, ScalarArgument, Symbol
from tracejit.store.kernels import root
from tracejit.store.programs import Programs

_MOST = 200  # rows, operations, pairs and buffers
_LONGEST = 200  # characters of an argument or parameter


class Called(Protocol):
    """The call that a program was built for."""

    @property
    def defined(self) -> Where:
        """The file and line of the function's definition."""

    @property
    def signature(self) -> list[tuple[str, str]]:
        """The arguments: name and description of each."""


class Inventory:
    """The description of a program for the cache.

    Args:
        stages: the program and its stages.
        title: the name of the function.
        called: the call that the program was built for.
        capability: of the device that the program is for, None for the CPU.
    """

    def __init__(
        self, stages: Stages, title: str, called: Called | None = None, capability: Capability | None = None
    ) -> None:
        self._data = described(stages.program, describe(stages, _MOST), title, called, capability)

    def keep(self, build_ns: int, compile_ns: int) -> None:
        """Keep the description, and note that this process uses the program.

        Args:
            build_ns: time spent on building it.
            compile_ns: time spent on compiling its kernels, 0 if all were loaded.
        """
        use = {"at": round(time.time(), 3), "build_ns": build_ns, "compile_ns": compile_ns}
        Programs(root(), config.settings.cache == "shared").keep(self._data, use)


def described(
    program: Program,
    description: Description,
    title: str,
    called: Called | None = None,
    capability: Capability | None = None,
) -> dict[str, Any]:
    """Return the description of a program as JSON data (Note [inventory])."""
    kernels = program.kernels
    numbers = {kernel: i for i, kernel in enumerate(kernels)}
    places, threads = program.places, program.threads
    return {
        "function": title,
        "defined": None if called is None or called.defined is None else list(called.defined),
        "signature": [] if called is None else [[name, _text(text)] for name, text in called.signature],
        "target": "cpu" if capability is None else str(capability),
        "inputs": [str(aval) for aval in program.inputs],
        "outputs": [str(aval) for aval in program.outputs],
        **({"written": list(program.written)} if program.written else {}),
        "ops": list(map(_operation, description.ops)),
        "kernels": [
            {
                "name": kernel.name,
                "entry": _entry(kernel, capability),
                "lines": [list(pair) for pair in description.lines.get(kernel.name, {}).items()],
            }
            for kernel in kernels
        ],
        "rows": [
            {
                "number": described_row.number,
                "kernel": numbers[row.kernel],
                "arguments": list(map(_argument, row.arguments)),
                "operations": row.note,
                "ops": list(described_row.ops),
                "purpose": described_row.purpose,
                "where": [list(where) for where in row.where if where],
                "part": [row.part, row.parts, places[described_row.number]],
                **({"threads": threads[described_row.number]} if row.grid else {}),
            }
            for described_row, row in [(row, program.rows[row.number]) for row in description.rows]
        ],
        "pairs": [pair._asdict() for pair in description.pairs],
        "memory": list(map(_buffer, description.buffers)),
        "row_count": len(program.rows),
        "arena_bytes": program.arena_bytes,
        "constant_bytes": sum(constant.nbytes for constant in program.constants),
        "left_out": description.left_out,
    }


def _operation(op: Operation) -> dict[str, Any]:
    return {
        "number": op.number,
        "name": op.name,
        "inputs": list(op.inputs),
        "params": {name: _text(text) for name, text in op.params.items()},
        "outputs": [[output.value, list(output.shape), output.dtype] for output in op.outputs],
        "where": None if op.where is None else list(op.where),
        "rows": list(op.rows),
    }


def _buffer(buffer: Buffer) -> dict[str, Any]:
    return {
        **buffer.place._asdict(), "bytes": buffer.bytes, "value": buffer.value, "op": buffer.op,
        "first": buffer.first, "last": buffer.last,
    }  # fmt: skip


def _text(text: str) -> str:
    """Return the text of a value without memory addresses, which differ between processes."""
    text = re.sub(r" at 0x[0-9a-fA-F]+", "", text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _entry(kernel: Kernel, capability: Capability | None) -> str:
    """Return the name of a kernel's cache entry, "" if it has none."""
    if capability is not None:
        from tracejit.compile.device_code import device_key

        key = device_key(kernel, capability)
    else:
        key = None if kernel.host is not None else key_of("kernel", kernel.text)
    return "" if key is None else key.name


def _argument(argument: Argument) -> Any:
    if isinstance(argument, Pointer):
        place = argument.place
        return [place.kind, place.number, place.offset + argument.offset_bytes, dtype_name(argument.dtype)]
    if isinstance(argument, ScalarArgument):
        return [dtype_name(argument.dtype), repr(argument.value.item())]
    if isinstance(argument, Symbol):
        return ["symbol", argument.name]
    return argument
