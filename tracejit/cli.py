# SPDX-License-Identifier: BSD-3-Clause
"""The command `tracejit`.

Exit codes: 0 done, 1 failed, 2 wrong usage. Results go to standard output, everything else to standard error.
"""

import argparse
import importlib.metadata
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

from tracejit import cache_commands

DONE, FAILED = 0, 1  # argparse exits with 2 for wrong usage
DEMO_MODULES = ("matplotlib", "sklearn", "tqdm")  # of the extra "demo"
DEMO_INSTALL = 'pip install "tracejit[demo]"'


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with `argv` (by default the arguments of the process) and return its exit code."""
    arguments = _parser().parse_args(argv)
    if "run" in arguments:
        return cache_commands.run(arguments)
    return _demo(arguments.epochs, arguments.out)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tracejit",
        description="Record a NumPy training step once, differentiate it, and replay it as compiled code.",
    )
    parser.add_argument(
        "--version", action="version", version=f"tracejit {importlib.metadata.version('tracejit')}"
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    cache_commands.add_commands(commands)
    demo = commands.add_parser(
        "demo",
        help="train a network on handwritten digits and compare compiled with uncompiled steps",
        description="Train a network on handwritten digits by an accelerated step, and print what a step "
        "takes uncompiled and accelerated, and the accuracy. Writes the loss curve and the emitted source.",
        epilog=f"The demo needs an extra: {DEMO_INSTALL}",
    )
    demo.add_argument(
        "--epochs",
        type=_positive,
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
    return parser


def _positive(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a positive integer, not {text!r}")
    return number


def _demo(epochs: int, out: Path) -> int:
    if any(importlib.util.find_spec(module) is None for module in DEMO_MODULES):
        print(DEMO_INSTALL, file=sys.stderr)
        return FAILED
    # What the example imports takes longer than all other commands.
    from tracejit.examples import digits

    try:
        report = digits.run(epochs, out)
    except OSError as error:
        print(f"tracejit demo: cannot write to {out}: {error.strerror}", file=sys.stderr)
        return FAILED
    print(report)
    if not report.agrees:
        print("tracejit demo: accelerated and uncompiled steps gave different losses", file=sys.stderr)
        return FAILED
    return DONE


if __name__ == "__main__":
    sys.exit(main())
