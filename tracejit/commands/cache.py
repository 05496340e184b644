# SPDX-License-Identifier: BSD-3-Clause
"""`tracejit cache ...`: the disk cache, listed, checked and emptied."""

import argparse
from typing import Any

from tracejit.cache import inspect
from tracejit.commands import cache_archive, cache_list, cache_show, cache_verify, cache_why
from tracejit.commands.arguments import add_command
from tracejit.commands.output import FAILED, Result
from tracejit.store.kernels import root


def add(commands: Any) -> None:
    """Add `cache` and its commands to a parser."""
    help = "list, check or remove the compiled kernels on disk"
    cache = commands.add_parser("cache", help=help, description=f"{help[0].upper()}{help[1:]}.")
    verbs = cache.add_subparsers(title="commands", required=True, metavar="COMMAND")
    add_command(verbs, "dir", _dir, "print the path of the folder")
    add_command(verbs, "info", _info, "print the size of the folder, and whether it is used")
    cache_list.add(verbs)
    cache_show.add(verbs)
    cache_why.add(verbs)
    cache_verify.add(verbs)
    remove = add_command(verbs, "remove", _remove, "remove programs and the kernels that only they use")
    remove.add_argument("pattern", metavar="PATTERN", help=cache_list.PATTERN)
    add_command(verbs, "purge", _purge, "remove everything")
    cache_archive.add(verbs)


def _dir(_: argparse.Namespace) -> Result:
    return Result({"folder": root()}, root())


def _info(_: argparse.Namespace) -> Result:
    info = inspect.info()
    return Result(info, str(info))


def _remove(arguments: argparse.Namespace) -> Result:
    removed = inspect.remove(arguments.pattern)
    if removed.programs or removed.kernels:
        return Result(removed, str(removed))
    return Result(removed, str(removed), FAILED, cache_list.no_match(arguments.pattern))


def _purge(_: argparse.Namespace) -> Result:
    removed = inspect.purge()
    return Result(removed, str(removed))
