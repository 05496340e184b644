# SPDX-License-Identifier: BSD-3-Clause
"""`tracejit cache verify`: whether every entry is as it should be."""

import argparse
from typing import Any

from tracejit.cache import inspect
from tracejit.commands.arguments import add_command
from tracejit.commands.output import DONE, FAILED, Result


def add(verbs: Any) -> None:
    """Add the command to a parser."""
    add_command(verbs, "verify", _verify, "check every entry; exit with 1 if one is not as it should be")


def _verify(_: argparse.Namespace) -> Result:
    found = inspect.verify()
    result = {"good": found.good, "bad": [{"key": name, "reason": reason} for name, reason in found.bad]}
    return Result(result, str(found), FAILED if found.bad else DONE)
