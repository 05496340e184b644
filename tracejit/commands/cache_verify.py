# SPDX-License-Identifier: BSD-3-Clause
"""`tracejit cache verify`: whether every entry is as it should be."""

import argparse
from typing import Any

from tracejit.cache import inspect
from tracejit.commands.arguments import add_command
from tracejit.commands.output import DONE, FAILED, Result


def add(verbs: Any) -> None:
    """Add the command to a parser."""
    verb = add_command(
        verbs, "verify", _verify, "check every entry; exit with 1 if one is not as it should be"
    )
    verb.add_argument(
        "--rebuild",
        action="store_true",
        help="compile each source again too, and compare what stored and rebuilt code do with random numbers",
    )


def _verify(arguments: argparse.Namespace) -> Result:
    found = inspect.verify(arguments.rebuild)
    result = {"good": found.good, "bad": _reasons(found.bad)}
    if found.rebuilt is not None:
        result |= {
            "by_results": found.rebuilt.by_results,
            "by_code": found.rebuilt.by_code,
            "runs": found.rebuilt.runs,
            "left_out": _reasons(found.rebuilt.left_out),
        }
    return Result(result, str(found), FAILED if found.bad else DONE)


def _reasons(entries: list[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"key": name, "reason": reason} for name, reason in entries]
