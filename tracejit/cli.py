# SPDX-License-Identifier: BSD-3-Clause
"""The command `tracejit`.

Exit codes: 0 done, 1 failed, 2 wrong usage. Results go to standard output, everything else to standard error.
"""

import importlib.metadata
import sys
from collections.abc import Sequence

from tracejit.commands import cache, demo, output
from tracejit.commands.arguments import Parser, UsageError

COMMANDS = (cache, demo)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with `argv` (by default the arguments of the process) and return its exit code."""
    given = sys.argv[1:] if argv is None else argv
    try:
        arguments = parser().parse_args(given)
    except UsageError as error:
        error.parser.print_usage(sys.stderr)
        output.say(f"{error.parser.prog}: error: {error}", sys.stderr)
        if "--json" in given:
            output.fail(error.command, True, "UsageError", str(error))
        sys.exit(output.USAGE)
    return output.run(arguments)


def parser() -> Parser:
    """Return the parser of all commands."""
    made = Parser(
        prog="tracejit",
        description="Record a NumPy training step once, differentiate it, and replay it as compiled code.",
    )
    made.add_argument(
        "--version", action="version", version=f"tracejit {importlib.metadata.version('tracejit')}"
    )
    commands = made.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for each in COMMANDS:
        each.add(commands)
    return made


if __name__ == "__main__":
    sys.exit(main())
