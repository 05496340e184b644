# SPDX-License-Identifier: BSD-3-Clause
"""`tracejit cache why`: the differences between two entries."""

import argparse
from typing import Any

from tracejit.commands.arguments import add_command
from tracejit.commands.output import Result

KEY = "the beginning of a key (4 digits or more), or the name of a function: its program that was used last"


def add(verbs: Any) -> None:
    """Add the command to a parser."""
    help = "show the differences between two programs or two kernels"
    verb = add_command(
        verbs, "why", _why, help,
        description="Show the differences between two programs or two kernels: why the first was not found. One alone "
        "is compared with the most similar entry, and with what this process looks for.",
    )  # fmt: skip
    verb.add_argument(
        "key",
        metavar="KEY1",
        help=KEY,
    )
    verb.add_argument("other", metavar="KEY2", nargs="?", help="the same")


def _why(arguments: argparse.Namespace) -> Result:
    from tracejit.cache import diff

    why = diff.why(arguments.key, arguments.other)
    return Result(why, str(why))
