# SPDX-License-Identifier: BSD-3-Clause
"""`tracejit cache show`: the operations, launches, memory plan and kernels of a program."""

import argparse
from typing import Any

from tracejit.cache import inspect
from tracejit.cache.program_text import UNREADABLE, ProgramText
from tracejit.commands import cache_why
from tracejit.commands.arguments import add_command
from tracejit.commands.output import CommandError, Result
from tracejit.errors import CacheError, CodegenError
from tracejit.program import Kernel
from tracejit.store.entry import StoredKernel
from tracejit.util.text import count

_MOST_OTHERS = 5  # keys of other programs that are named
_SECTIONS = (
    ("ops", "operations with their lines"),
    ("kernels", "launches with the operations fused into each, and why they are separate"),
    ("memory", "the memory plan"),
    ("source", "the emitted source of kernels, with your lines"),
)
_COMPILED = (
    ("asm", "the assembly of kernels, compiled again"),
    ("llvm", "the optimised LLVM IR of kernels, compiled again"),
)


def add(verbs: Any) -> None:
    """Add the command to a parser."""
    help = "show a program: operations, launches, memory, and the source of its kernels"
    verb = add_command(
        verbs, "show", _show, help,
        description="Show a program by its key or the name of its function. Without an option: "
        "its operations, launches, memory plan and the source of its kernels.",
    )  # fmt: skip
    verb.add_argument("key", metavar="KEY", help=cache_why.KEY)
    for name, what in (*_SECTIONS, *_COMPILED):
        verb.add_argument(f"--{name}", action="store_true", help=what)
    verb.add_argument(
        "--kernel", metavar="NAME", help="only this kernel, or the kernels whose names begin with NAME"
    )


def _show(arguments: argparse.Namespace) -> Result:
    shown = inspect.show(arguments.key)
    try:
        text = ProgramText(shown.key, shown.program, shown.kernels)
        wanted = _sections(arguments)
        kernels = _kernels(shown.program["kernels"], arguments.kernel)
        compiled = {
            kernel["name"]: _compiled(shown.kernels[kernel["name"]], wanted)
            for kernel in kernels
            if kernel["name"] in shown.kernels
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
        raise CacheError(f"the description of the program {shown.key[:12]} is damaged") from error
    data = {
        "key": shown.key,
        "program": shown.program,
        "kernels": {
            name: {
                "key": dict(entry.key.parts),
                "source": entry.source,
                "code_bytes": len(entry.code),
                "compile_ns": entry.compile_ns,
            } | compiled.get(name, {})
            for name, entry in shown.kernels.items()
        },
    }  # fmt: skip
    return Result(data, "\n".join(lines[:-1]), note=_others(shown))


def _others(shown: inspect.Shown) -> str:
    """Return which programs the function has besides the one that is shown; "" if none."""
    if not shown.others:
        return ""
    keys = ", ".join(key[: inspect.SHOWN] for key in shown.others[:_MOST_OTHERS])
    more = ", ..." if len(shown.others) > _MOST_OTHERS else ""
    return (
        f"{shown.key[: inspect.SHOWN]} was used last; the function has {count(len(shown.others), 'more program')}: "
        f"{keys}{more}"
    )


def _sections(arguments: argparse.Namespace) -> list[str]:
    """Return the sections to show."""
    wanted = [name for name, _ in (*_SECTIONS, *_COMPILED) if getattr(arguments, name)]
    if wanted:
        return wanted
    return ["source"] if arguments.kernel else [name for name, _ in _SECTIONS]


def _kernels(kernels: list[Any], name: str | None) -> list[Any]:
    """Return the kernel of a name, or those whose names begin with it; all if it is None.

    Raises:
        CacheError: if none matches.
    """
    matching = [kernel for kernel in kernels if kernel["name"] == name]
    matching = matching or [kernel for kernel in kernels if kernel["name"].startswith(name or "")]
    if not matching:
        names = ", ".join(kernel["name"] for kernel in kernels)
        raise CacheError(f"the program has no kernel {name!r}; it has {names}")
    return matching


def _compiled(entry: StoredKernel, wanted: list[str]) -> dict[str, str]:
    """Compile a kernel again; return its assembly or its LLVM IR."""
    if not {"asm", "llvm"} & set(wanted):
        return {}
    from tracejit.compile.definition import check_definition
    from tracejit.compile.lower import lower

    kernel = Kernel(entry.symbol, entry.source)
    try:
        check_definition(kernel)  # before anything of it runs
    except CodegenError as error:
        raise CommandError("CodegenError", f"{error}; it is not compiled, as that could run it") from error
    try:
        lowered = lower(kernel)
    except CodegenError as error:
        raise CommandError(
            "CodegenError", f"{entry.symbol} cannot be compiled: a different version of tracejit emitted it"
        ) from error
    texts = {"asm": lowered.assembly, "llvm": lowered.optimised}
    return {name: make() for name, make in texts.items() if name in wanted}
