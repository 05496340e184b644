# SPDX-License-Identifier: BSD-3-Clause
"""The commands as data, read from their parsers: what may follow what."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

NAMES, FILES, NOTHING = "names", "files", "nothing"
_FILES = ("FILE", "FOLDER", "DIR")
_NAMED = ("KEY", "PATTERN", "FUNCTION")  # positional arguments that name programs

Value = tuple[str, ...] | str
"""What an argument may be: one of some words, NAMES of functions in the cache, FILES, or NOTHING that is known."""


class Option(NamedTuple):
    """An option: the ways to write it, what it does, and what follows it (None: nothing does)."""

    names: tuple[str, ...]
    help: str
    value: Value | None


class Command(NamedTuple):
    """A command: its words, as "tracejit cache list"; commands below it and what they do; options; arguments."""

    path: str
    commands: dict[str, str]
    options: list[Option]
    value: Value


def commands_of(parser: argparse.ArgumentParser) -> Iterator[Command]:
    """Give the command of a parser and all below it."""
    below: dict[str, argparse.ArgumentParser] = {}
    commands: dict[str, str] = {}
    options: list[Option] = []
    value: Value = NOTHING
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            below = dict(action.choices)
            commands = {each.dest: each.help or "" for each in action._choices_actions}
        elif action.option_strings:
            help = parser._get_formatter()._expand_help(action) if action.help else ""
            options.append(
                Option(tuple(action.option_strings), help, None if action.nargs == 0 else _value(action))
            )
        else:
            value = _value(action)
    yield Command(parser.prog, commands, options, value)
    for each in below.values():
        yield from commands_of(each)


def _value(action: argparse.Action) -> Value:
    if action.choices is not None:
        return tuple(map(str, action.choices))
    if action.type is Path or action.metavar in _FILES:
        return FILES
    named = not action.option_strings and any(name in str(action.metavar) for name in _NAMED)
    return NAMES if named else NOTHING
