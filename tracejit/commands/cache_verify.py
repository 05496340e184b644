# SPDX-License-Identifier: BSD-3-Clause
"""`tracejit cache verify`: checks of every entry."""

import argparse
from typing import Any

from tracejit.cache import inspect
from tracejit.commands.arguments import add_command
from tracejit.commands.output import DONE, FAILED, Result


def add(verbs: Any) -> None:
    """Add the command to a parser."""
    add_command(
        verbs,
        "verify",
        _verify,
        "check the hash, the owner and the permissions of every kernel and program; exit with 1 if one is bad",
    )


def _verify(_: argparse.Namespace) -> Result:
    verified = inspect.verify()
    bad = [{"key": name, "reason": reason} for name, reason in verified.bad]
    return Result(
        {"good": verified.good, "kernels": verified.kernels, "programs": verified.programs, "bad": bad},
        str(verified),
        FAILED if bad else DONE,
    )
