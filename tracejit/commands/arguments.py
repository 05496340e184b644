# SPDX-License-Identifier: BSD-3-Clause
"""What the parsers of all commands have in common: --json at each level, and errors that can be told as JSON."""

import argparse
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from tracejit.commands.output import Result, say


class UsageError(Exception):
    """Arguments that no command takes."""

    def __init__(self, parser: argparse.ArgumentParser, message: str) -> None:
        super().__init__(message)
        self.parser = parser

    @property
    def command(self) -> str:
        """The command whose arguments they are; "" if there is none."""
        return command_of(self.parser)


class Parser(argparse.ArgumentParser):
    """A parser of a command line that takes --json."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # Without a default, so that a parser of a command does not undo what the one above it has found.
        self.add_argument(
            "--json", action="store_true", default=argparse.SUPPRESS, help="print one JSON object"
        )

    def error(self, message: str) -> NoReturn:
        """Raise a UsageError."""
        raise UsageError(self, message)

    def _print_message(self, message: str, file: Any = None) -> None:
        say(message.removesuffix("\n"), file or sys.stderr)


def is_json(argument: str) -> bool:
    """Return whether an argument is --json, or a beginning of it, as parsers take it."""
    return len(argument) > len("--") and "--json".startswith(argument)


def command_of(parser: argparse.ArgumentParser) -> str:
    """Return the name of the command that a parser is for, without the program's."""
    return parser.prog.partition(" ")[2]


def add_command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], Result], help: str, **options: Any
) -> Parser:
    """Add a command to the subparsers `commands` and return its parser; `help` is its description too."""
    parser: Parser = commands.add_parser(
        name, **{"help": help, "description": f"{help[0].upper()}{help[1:]}."} | options
    )
    parser.set_defaults(run=run, command=command_of(parser))
    return parser


def positive(text: str) -> int:
    """Return a positive integer, the type of an argument.

    Raises:
        ArgumentTypeError: if the text is something else.
    """
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a positive integer, not {text!r}")
    return number
