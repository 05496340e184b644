# SPDX-License-Identifier: BSD-3-Clause
"""`tracejit cache show`: what a program is made of, and the source of its kernels."""

import argparse
from typing import Any

from tracejit.cache import inspect
from tracejit.cache.program_text import UNREADABLE, ProgramText
from tracejit.commands.arguments import add_command
from tracejit.commands.output import CommandError, Result
from tracejit.errors import CacheError, CodegenError
from tracejit.program import Kernel
from tracejit.store.entry import StoredKernel

_SECTIONS = (
    ("ops", "operations with their lines"),
    ("kernels", "launches with the operations fused into each, and why they are apart"),
    ("memory", "the memory plan"),
    ("source", "the emitted source of kernels, with the lines that it comes from"),
)
_COMPILED = (
    ("asm", "kernels in the language of the CPU, compiled again"),
    ("llvm", "kernels as LLVM optimised them, compiled again"),
)


def add(verbs: Any) -> None:
    """Add the command to a parser."""
    help = "show a program: operations, launches, memory, and the source of its kernels"
    verb = add_command(
        verbs, "show", _show, help,
        description="Show a program, by its key, the beginning of it, or the name of a function. Without an option: "
        "its operations, launches, memory plan and the source of its kernels.",
    )  # fmt: skip
    verb.add_argument("key", metavar="KEY")
    for name, what in (*_SECTIONS, *_COMPILED):
        verb.add_argument(f"--{name}", action="store_true", help=what)
    verb.add_argument(
        "--kernel", metavar="NAME", help="of the kernels only this one, or those whose names begin with it"
    )


def _show(arguments: argparse.Namespace) -> Result:
    found = inspect.show(arguments.key)
    try:
        text = ProgramText(found.key, found.program, found.kernels)
        wanted = _wanted(arguments)
        kernels = _kernels(found.program["kernels"], arguments.kernel)
        compiled = {
            kernel["name"]: _compiled(found.kernels[kernel["name"]], wanted)
            for kernel in kernels
            if kernel["name"] in found.kernels
        }
        lines = [] if arguments.kernel else [*text.head(), ""]
        for name, section in (("ops", text.operations), ("kernels", text.launches), ("memory", text.memory)):
            if name in wanted:
                lines += [*section(), ""]
        for kernel in kernels:
            if "source" in wanted or (kernel["name"] not in compiled and {"asm", "llvm"} & set(wanted)):
                lines += [*text.source(kernel), ""]
            for name, code in compiled.get(kernel["name"], {}).items():
                lines += [f"# {kernel['name']}: {name}", code.rstrip(), ""]
    except UNREADABLE as error:
        raise CacheError(
            f"the description of the program {found.key[:12]} is not what tracejit writes"
        ) from error
    data = {
        "key": found.key,
        "program": found.program,
        "kernels": {
            name: {
                "key": dict(entry.key.parts),
                "source": entry.source,
                "code_bytes": len(entry.code),
                "compile_ns": entry.compile_ns,
            } | compiled.get(name, {})
            for name, entry in found.kernels.items()
        },
    }  # fmt: skip
    return Result(data, "\n".join(lines[:-1]))


def _wanted(arguments: argparse.Namespace) -> list[str]:
    """Return the sections to show."""
    wanted = [name for name, _ in (*_SECTIONS, *_COMPILED) if getattr(arguments, name)]
    if wanted:
        return wanted
    return ["source"] if arguments.kernel else [name for name, _ in _SECTIONS]


def _kernels(kernels: list[Any], name: str | None) -> list[Any]:
    """Return the kernels of a name, of which the beginning is enough.

    Raises:
        CacheError: if there is none.
    """
    found = [kernel for kernel in kernels if kernel["name"] == name]
    found = found or [kernel for kernel in kernels if kernel["name"].startswith(name or "")]
    if not found:
        names = ", ".join(kernel["name"] for kernel in kernels)
        raise CacheError(f"the program has no kernel {name!r}; it has {names}")
    return found


def _compiled(entry: StoredKernel, wanted: list[str]) -> dict[str, str]:
    """Return a kernel in other languages, for which it is compiled again."""
    if not {"asm", "llvm"} & set(wanted):
        return {}
    from tracejit.compile.lower import lower

    try:
        lowered = lower(Kernel(entry.symbol, entry.source))
    except CodegenError as error:
        raise CommandError(
            "CodegenError", f"{entry.symbol} is not of this version of tracejit, which cannot compile it"
        ) from error
    texts = {"asm": lowered.assembly, "llvm": lowered.optimised}
    return {name: make() for name, make in texts.items() if name in wanted}
