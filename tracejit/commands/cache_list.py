# SPDX-License-Identifier: BSD-3-Clause
"""`tracejit cache list`: programs, a line for each."""

import argparse
from collections.abc import Sequence
from typing import Any

from tracejit.cache import inspect
from tracejit.cache.store import root
from tracejit.commands.arguments import add_command
from tracejit.commands.output import DONE, FAILED, Result, milliseconds, moment, table

KEY = 12  # characters of a key that are printed
_INPUTS = 4  # of a program that are printed
_HEADER = (
    "key", "function", "where", "inputs", "rows", "kernels", "uses", "build ms", "compile ms", "last use",
)  # fmt: skip


def add(verbs: Any) -> None:
    """Add the command to a parser."""
    verb = add_command(verbs, "list", _list, "list programs, by a pattern of function names")
    verb.add_argument("pattern", metavar="PATTERN", nargs="?")


def _list(arguments: argparse.Namespace) -> Result:
    pattern = arguments.pattern
    found = inspect.listing("*" if pattern is None else pattern)
    rows = [
        (
            each.key[:KEY], each.function, each.where, _inputs(each.inputs),
            str(each.rows), str(each.kernels), str(each.uses), milliseconds(each.build_ns),
            milliseconds(each.compile_ns), moment(each.last_use_s),
        )
        for each in found
    ]  # fmt: skip
    note = ""
    if not found:
        note = f"no programs in {root()}" + ("" if pattern is None else f" fit {pattern!r}")
    return Result(found, table(_HEADER, rows), DONE if found or pattern is None else FAILED, note)


def _inputs(inputs: Sequence[str]) -> str:
    return ", ".join([*inputs[:_INPUTS], *(["..."] if len(inputs) > _INPUTS else [])])
