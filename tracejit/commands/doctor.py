# SPDX-License-Identifier: BSD-3-Clause
"""`tracejit doctor`: what tracejit runs on, whether it works here, and what slows it down."""

import argparse
from typing import Any

from tracejit.commands.arguments import add_command
from tracejit.commands.output import DONE, FAILED, Result


def add(commands: Any) -> None:
    """Add the command to a parser."""
    add_command(
        commands,
        "doctor",
        _doctor,
        "say whether tracejit works here, and what slows it down",
        description="Say what tracejit runs on, try whether it works here, and name what slows it down: what was "
        "found, what it costs, what to do. Exits with 1 if something is broken.",
    )


def _doctor(_: argparse.Namespace) -> Result:
    # This compiles.
    from tracejit.doctor import examine

    report = examine()
    return Result(report, str(report), FAILED if report.broken else DONE)
