# SPDX-License-Identifier: BSD-3-Clause
"""`tracejit doctor`: checks that tracejit works on this machine, and finds what slows it down."""

import argparse
import sys
from typing import Any

from tracejit.commands.arguments import add_command
from tracejit.commands.output import DONE, FAILED, Result, say


def add(commands: Any) -> None:
    """Add the command to a parser."""
    parser = add_command(
        commands,
        "doctor",
        _doctor,
        "check whether tracejit works on this machine, and what slows it down",
        description="Show what tracejit runs on, run a small training step, and list problems and slowdowns, each with "
        "its cost and its remedy. Exits with 1 if something is broken.",
    )
    parser.add_argument(
        "--cuda", action="store_true", help="check and measure the GPU, for a report in an issue"
    )


def _doctor(arguments: argparse.Namespace) -> Result:
    # Imports the compiler.
    from tracejit.doctor import examine

    if arguments.cuda:
        from tracejit.doctor.cuda import examine_cuda

        # As text each line is printed at once, since a fault of the GPU may end the process.
        checked = (
            examine_cuda() if "json" in arguments else examine_cuda(tell=lambda line: say(line, sys.stdout))
        )
        return Result(checked.data, f"\n{checked.summary}", FAILED if checked.broken else DONE)
    report = examine()
    return Result(report, str(report), FAILED if report.broken else DONE)
