# SPDX-License-Identifier: BSD-3-Clause
"""`tracejit cache show`: a program, and the source of its kernels."""

import argparse
from typing import Any

from tracejit.cache import inspect
from tracejit.commands.arguments import add_command
from tracejit.commands.output import Result
from tracejit.words import milliseconds, size


def add(verbs: Any) -> None:
    """Add the command to a parser."""
    help = "show a program and the source of its kernels, by key or function name"
    add_command(verbs, "show", _show, help).add_argument("key", metavar="KEY")


def _show(arguments: argparse.Namespace) -> Result:
    found = inspect.show(arguments.key)
    program = found.program
    lines = [
        f"{found.key}",
        f"function  {program['function']}",
        *(f"input     {text}" for text in program["inputs"]),
        *(f"output    {text}" for text in program["outputs"]),
        f"arena     {size(program['arena_bytes'])}",
        "",
    ]
    for number, row in enumerate(program["rows"]):
        places = ", ".join(f"{file}:{line}" for file, line in row["where"])
        name = program["kernels"][row["kernel"]]["name"]
        lines.append(f"{number:>4}  {name}  {row['operations']}{f'  ({places})' if places else ''}")
    if program["row_count"] > len(program["rows"]):
        lines.append(f"      and {program['row_count'] - len(program['rows'])} more")
    for kernel in program["kernels"]:
        entry = found.kernels.get(kernel["name"])
        if entry is None:
            lines += ["", f"# {kernel['name']}: not on disk any more"]
            continue
        compiled = f"{len(entry.code)} bytes, compiled in {milliseconds(entry.compile_ns)} ms"
        lines += ["", f"# {kernel['name']}: {compiled}", entry.source.rstrip()]
    kernels = {
        name: {
            "key": dict(entry.key.parts),
            "source": entry.source,
            "code_bytes": len(entry.code),
            "compile_ns": entry.compile_ns,
        }
        for name, entry in found.kernels.items()
    }
    return Result({"key": found.key, "program": program, "kernels": kernels}, "\n".join(lines))
