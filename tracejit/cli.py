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
        # Modules stay alive until the process ends; collecting them at exit would take 15 ms.
        gc.freeze()
    try:
        return _run(argv)
    except OSError as error:  # raised by print; errors of a command are caught in output.run
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
        if any(is_json(argument) for argument in argv):
            output.fail(error.command, True, "UsageError", str(error))
        sys.exit(output.USAGE)
    return output.run(arguments)


class _Version(argparse.Action):
    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, **options)

    def __call__(self, *_: Any) -> NoReturn:
        # This import takes 15 ms, which only --version has to wait for.
        from importlib.metadata import version

        output.say(f"tracejit {version('tracejit')}", sys.stdout)
        sys.exit(output.DONE)


def parser() -> Parser:
    """Return the parser of all commands."""
    parser = Parser(
        prog="tracejit",
        description="Record a NumPy training step once, differentiate it, and replay it as compiled code.",
    )
    parser.add_argument("--version", action=_Version, help="show the version and exit")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add(commands)
    parser.set_defaults(parser=parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
