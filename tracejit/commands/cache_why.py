# SPDX-License-Identifier: BSD-3-Clause
"""`tracejit cache why`: in what two entries differ."""

import argparse
from typing import Any

from tracejit.commands.arguments import add_command
from tracejit.commands.output import Result


def add(verbs: Any) -> None:
    """Add the command to a parser."""
    help = "say in what two programs or two kernels differ, and so why there are two"
    verb = add_command(
        verbs, "why", _why, help,
        description="Say in what two programs or two kernels differ, and so why there are two. One alone is compared "
        "with the entry that is most like it, and with what this process would look for.",
    )  # fmt: skip
    verb.add_argument(
        "key",
        metavar="KEY1",
        help="the beginning of a key; or the name of a function, of whose programs the one used last is meant",
    )
    verb.add_argument("other", metavar="KEY2", nargs="?", help="the same")


def _why(arguments: argparse.Namespace) -> Result:
    from tracejit.cache import compared

    found = compared.why(arguments.key, arguments.other)
    return Result(found, str(found))
