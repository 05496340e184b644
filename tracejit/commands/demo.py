# SPDX-License-Identifier: BSD-3-Clause
"""`tracejit demo`: runs an example, and prints what acceleration gains."""

import argparse
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracejit.commands.arguments import add_command, positive
from tracejit.commands.output import DONE, FAILED, CommandError, Result

MODULES = ("matplotlib", "sklearn", "tqdm")  # of the extra "demo"
SHARE = 0.375  # of the epochs that the network with convolutions takes
INSTALL = 'pip install "tracejit[demo]"'


@dataclass(frozen=True)
class DemoReport:
    """The reports of both networks."""

    dense: Any
    convolution: Any

    def __str__(self) -> str:
        table, files = str(self.dense).split("\n\n")
        return f"{table}\n\n{self.convolution}\n\n{files}"


def add(commands: Any) -> None:
    """Add the command to a parser."""
    demo = add_command(
        commands,
        "demo",
        _demo,
        "train a network on handwritten digits and compare compiled with uncompiled steps",
        description="Train a dense network on handwritten digits with an accelerated step, and print the time of a "
        "step, uncompiled and accelerated, and the accuracy. Then train one with convolutions. Writes the loss curve "
        "and the emitted source of the dense network.",
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
    from tracejit.examples.digits_convolution import run as run_with_convolutions

    out = arguments.out
    try:
        dense = run(arguments.epochs, out)
    except OSError as error:
        raise CommandError("OSError", f"cannot write to {out}: {error.strerror}") from error
    report = DemoReport(dense, run_with_convolutions(max(1, round(arguments.epochs * SHARE))))
    difference = "" if dense.agrees else "accelerated and uncompiled steps gave different losses"
    return Result(report, str(report), FAILED if difference else DONE, difference)
