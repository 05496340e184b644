# SPDX-License-Identifier: BSD-3-Clause
"""The command `tracejit`.

Exit codes: 0 done, 1 failed, 2 wrong usage. Results go to standard output, everything else to standard error.
"""

import argparse
import gc
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from tracejit.commands import cache, completion, demo, doctor, output, view
from tracejit.commands.arguments import Parser, UsageError, is_json

COMMANDS = (cache, view, doctor, completion, demo)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with `argv` (by default the arguments of the process) and return its exit code."""
    if argv is None:
        argv = sys.argv[1:]
        # The process is the command's. What was imported stays until it ends, and looking through it then takes 15 ms.
        gc.freeze()
    try:
        return _run(argv)
    except OSError as error:  # what a command finds wrong it tells itself
        output.say(f"tracejit: standard output cannot be written ({error.strerror or error})", sys.stderr)
    except KeyboardInterrupt:
        output.say("tracejit: interrupted", sys.stderr)
    return output.FAILED


def _run(argv: Sequence[str]) -> int:
    try:
        arguments = parser().parse_args(argv)
    except UsageError as error:
        output.say(error.parser.format_usage().removesuffix("\n"), sys.stderr)
        output.say(f"{error.parser.prog}: error: {error}", sys.stderr)
        if any(is_json(each) for each in argv):
            output.fail(error.command, True, "UsageError", str(error))
        sys.exit(output.USAGE)
    return output.run(arguments)


class _Version(argparse.Action):
    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, **options)

    def __call__(self, *_: Any) -> NoReturn:
        # To import this takes 15 ms, which other commands need not wait for.
        from importlib.metadata import version

        output.say(f"tracejit {version('tracejit')}", sys.stdout)
        sys.exit(output.DONE)


def parser() -> Parser:
    """Return the parser of all commands."""
    made = Parser(
        prog="tracejit",
        description="Record a NumPy training step once, differentiate it, and replay it as compiled code.",
    )
    made.add_argument("--version", action=_Version, help="show the version and exit")
    commands = made.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for each in COMMANDS:
        each.add(commands)
    made.set_defaults(parser=made)
    return made


if __name__ == "__main__":
    sys.exit(main())
