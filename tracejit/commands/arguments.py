# SPDX-License-Identifier: BSD-3-Clause
"""Parsers of commands: --json at each level, and wrong usage as an exception that can be printed as JSON."""

import argparse
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from tracejit.commands.output import Result, say


class UsageError(Exception):
    """Wrong usage: arguments that no command takes."""

    def __init__(self, parser: argparse.ArgumentParser, message: str) -> None:
        super().__init__(message)
        self.parser = parser

    @property
    def command(self) -> str:
        """The command that was given; "" if there is none."""
        return command_of(self.parser)


class Parser(argparse.ArgumentParser):
    """An argument parser with the option --json."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # No default: the parser of a subcommand must not overwrite the value that the parser above it has set.
        self.add_argument(
            "--json", action="store_true", default=argparse.SUPPRESS, help="print one JSON object"
        )

    def error(self, message: str) -> NoReturn:
        """Raise a UsageError."""
        raise UsageError(self, message)

    def _print_message(self, message: str, file: Any = None) -> None:
        say(message.removesuffix("\n"), file or sys.stderr)


def is_json(argument: str) -> bool:
    """Return whether an argument is --json or an abbreviation of it that argparse accepts."""
    return len(argument) > len("--") and "--json".startswith(argument)


def command_of(parser: argparse.ArgumentParser) -> str:
    """Return the command of a parser, without the name of the program."""
    return parser.prog.partition(" ")[2]


def add_command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], Result], help: str, **options: Any
) -> Parser:
    """Add a command to the subparsers `commands` and return its parser; `help` is also its default description."""
    parser: Parser = commands.add_parser(
        name, **{"help": help, "description": f"{help[0].upper()}{help[1:]}."} | options
    )
    parser.set_defaults(run=run, command=command_of(parser))
    return parser


def positive(text: str) -> int:
    """Return a positive integer. (To be used as the type of an argument.)

    Raises:
        ArgumentTypeError: for any other text.
    """
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a positive integer, not {text!r}")
    return number
