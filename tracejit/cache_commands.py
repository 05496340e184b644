# SPDX-License-Identifier: BSD-3-Clause
"""The commands `tracejit cache ...`: what they print, as text or as JSON."""

import argparse
import dataclasses
import json
import sys
import time
from collections.abc import Sequence
from typing import Any

from tracejit.cache import inspect
from tracejit.cache.store import root
from tracejit.errors import CacheError

SCHEMA = 1
DONE, FAILED = 0, 1
_KEY = 12  # characters of a key that are printed
_INPUTS = 4  # of a program that are printed


def add_commands(commands: Any) -> None:
    """Add `cache` and its commands to a parser."""
    cache = commands.add_parser(
        "cache",
        help="look into the compiled kernels on disk, check or remove them",
        description="Look into the compiled kernels on disk, check or remove them.",
    )
    verbs = cache.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, run, argument, help in (
        ("dir", _dir, None, "print the folder"),
        ("info", _info, None, "say what the folder holds and whether it is used"),
        ("list", _list, "PATTERN", "list programs, by a pattern of function names"),
        ("show", _show, "KEY", "show a program and the source of its kernels, by key or function name"),
        ("verify", _verify, None, "check every entry; exit with 1 if one is not as it should be"),
        ("remove", _remove, "PATTERN", "remove programs and the kernels that only they use"),
        ("purge", _purge, None, "remove everything"),
    ):
        verb = verbs.add_parser(name, help=help, description=f"{help[0].upper()}{help[1:]}.")
        if argument is not None:
            optional = {"nargs": "?", "default": "*"} if name == "list" else {}
            verb.add_argument("argument", metavar=argument, **optional)
        verb.add_argument("--json", action="store_true", help="print one JSON object")
        verb.set_defaults(run=run, command=f"cache {name}")


def run(arguments: argparse.Namespace) -> int:
    """Run a command and return its exit code."""
    try:
        result, text, code = arguments.run(*([arguments.argument] if "argument" in arguments else []))
    except CacheError as error:
        print(f"tracejit {arguments.command}: {error}", file=sys.stderr)
        return FAILED
    if arguments.json:
        print(json.dumps({"schema": SCHEMA, "command": arguments.command, "result": result}))
    elif text:
        print(text)
    return int(code)


def _dir() -> tuple[Any, str, int]:
    return {"folder": root()}, root(), DONE


def _info() -> tuple[Any, str, int]:
    found = inspect.info()
    reason = "TRACEJIT_CACHE=off" if found.setting == "off" else found.problem
    lines = [
        ("folder", found.folder),
        ("used", "yes" if reason is None else f"no: {reason}"),
        ("setting", found.setting),
        ("kernels", f"{found.kernels}, {_size(found.kernel_bytes)} of {_size(found.limit_bytes)}"),
        ("programs", str(found.programs)),
    ]
    return dataclasses.asdict(found), "\n".join(f"{name:<10}{value}" for name, value in lines), DONE


def _list(pattern: str) -> tuple[Any, str, int]:
    found = inspect.listing(pattern)
    header = (
        "key",
        "function",
        "where",
        "inputs",
        "rows",
        "kernels",
        "uses",
        "build ms",
        "compile ms",
        "last use",
    )
    rows = [
        (
            each.key[:_KEY], each.function, each.where, _inputs(each.inputs),
            str(each.rows), str(each.kernels), str(each.uses), _ms(each.build_ns), _ms(each.compile_ns),
            "" if each.last_use_s is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(each.last_use_s)),
        )
        for each in found
    ]  # fmt: skip
    return [dataclasses.asdict(each) for each in found], _table([header, *rows]), DONE if found else FAILED


def _show(key: str) -> tuple[Any, str, int]:
    found = inspect.show(key)
    program = found.program
    lines = [
        f"{found.key}",
        f"function  {program['function']}",
        *(f"input     {text}" for text in program["inputs"]),
        *(f"output    {text}" for text in program["outputs"]),
        f"arena     {_size(program['arena_bytes'])}",
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
        compiled = f"{len(entry.code)} bytes, compiled in {_ms(entry.compile_ns)} ms"
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
    return {"key": found.key, "program": program, "kernels": kernels}, "\n".join(lines), DONE


def _verify() -> tuple[Any, str, int]:
    found = inspect.verify()
    lines = [f"{name[:_KEY]}  {reason}" for name, reason in found.bad]
    lines.append(f"{found.good} entries are good, {len(found.bad)} are not")
    result = {"good": found.good, "bad": [{"key": name, "reason": reason} for name, reason in found.bad]}
    return result, "\n".join(lines), FAILED if found.bad else DONE


def _remove(pattern: str) -> tuple[Any, str, int]:
    found = inspect.remove(pattern)
    return dataclasses.asdict(found), _said(found), DONE if found.programs or found.kernels else FAILED


def _purge() -> tuple[Any, str, int]:
    found = inspect.purge()
    return dataclasses.asdict(found), _said(found), DONE


def _said(removed: inspect.Removed) -> str:
    return f"removed {removed.programs} programs and {removed.kernels} kernels, {_size(removed.bytes)}"


def _inputs(inputs: Sequence[str]) -> str:
    return ", ".join([*inputs[:_INPUTS], *(["..."] if len(inputs) > _INPUTS else [])])


def _size(count: float) -> str:
    units = ["bytes", "KiB", "MiB", "GiB"]
    while count >= 1024 and len(units) > 1:
        count /= 1024
        units.pop(0)
    return f"{count:.0f} bytes" if units[0] == "bytes" else f"{count:.1f} {units[0]}"


def _ms(nanoseconds: int | None) -> str:
    return "" if nanoseconds is None else f"{nanoseconds / 1e6:.1f}"


def _table(rows: Sequence[Sequence[str]]) -> str:
    if len(rows) == 1:
        return ""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
