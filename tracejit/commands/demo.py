# SPDX-License-Identifier: BSD-3-Clause
"""`tracejit demo`: runs an example, and prints what acceleration gains."""

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
        description="Train a network on handwritten digits with an accelerated step, and print the time of a step, "
        "uncompiled and accelerated, and the accuracy. Writes the loss curve and the emitted source.",
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
        help="folder for the loss curve and the emitted source (%(default)s)",
    )


def _demo(arguments: argparse.Namespace) -> Result:
    missing = [module for module in MODULES if importlib.util.find_spec(module) is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise CommandError("MissingPackage", f"{', '.join(missing)} {verb} not installed; run: {INSTALL}")
    # The example imports scikit-learn and Matplotlib, which takes longer than any other command runs.
    from tracejit.examples.digits import run

    out = arguments.out
    try:
        report = run(arguments.epochs, out)
    except OSError as error:
        raise CommandError("OSError", f"cannot write to {out}: {error.strerror}") from error
    difference = "" if report.agrees else "accelerated and uncompiled steps gave different losses"
    return Result(report, str(report), FAILED if difference else DONE, difference)
