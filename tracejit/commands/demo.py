# SPDX-License-Identifier: BSD-3-Clause
"""`tracejit demo`: an example runs, and says what it gained."""

import argparse
import importlib.util
from pathlib import Path
from typing import Any

from tracejit.commands.arguments import add_command, positive
from tracejit.commands.output import DONE, FAILED, CommandError, Result

MODULES = ("matplotlib", "sklearn", "tqdm")  # of the extra "demo"
INSTALL = 'pip install "tracejit[demo]"'


def add(commands: Any) -> None:
    """Add the command to a parser."""
    demo = add_command(
        commands,
        "demo",
        _demo,
        "train a network on handwritten digits and compare compiled with uncompiled steps",
        description="Train a network on handwritten digits by an accelerated step, and print what a step "
        "takes uncompiled and accelerated, and the accuracy. Writes the loss curve and the emitted source.",
        epilog=f"The demo needs an extra: {INSTALL}",
    )
    demo.add_argument(
        "--epochs",
        type=positive,
        default=40,
        metavar="N",
        help="passes over the training images (%(default)s)",
    )
    demo.add_argument(
        "--out",
        type=Path,
        default=Path("tracejit-demo"),
        metavar="DIR",
        help="folder for the files that are written (%(default)s)",
    )


def _demo(arguments: argparse.Namespace) -> Result:
    if any(importlib.util.find_spec(module) is None for module in MODULES):
        raise CommandError("MissingPackage", INSTALL, named=False)
    # What the example imports takes longer than all other commands.
    from tracejit.examples.digits import run

    out = arguments.out
    try:
        report = run(arguments.epochs, out)
    except OSError as error:
        raise CommandError("OSError", f"cannot write to {out}: {error.strerror}") from error
    differ = "" if report.agrees else "accelerated and uncompiled steps gave different losses"
    return Result(report, str(report), FAILED if differ else DONE, differ)
