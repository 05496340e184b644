# SPDX-License-Identifier: BSD-3-Clause
"""`tracejit cache list`: the programs, one per line."""

import argparse
import re
import time
from typing import Any

from tracejit.cache import inspect
from tracejit.commands.arguments import add_command, positive
from tracejit.commands.output import DONE, FAILED, Result
from tracejit.store.kernels import root
from tracejit.util.text import printable

PATTERN = "the name of a function, with * and ?, or the beginning of a key (4 digits or more)"
_SECONDS = {"m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_AGE = re.compile(rf"(\d+)([{''.join(_SECONDS)}])")


def add(verbs: Any) -> None:
    """Add the command to a parser."""
    verb = add_command(verbs, "list", _list, "list programs, the last used first")
    verb.add_argument(
        "pattern",
        metavar="PATTERN",
        nargs="?",
        help=PATTERN,
    )
    verb.add_argument("--file", metavar="PATTERN", help="only functions of this file, with * and ?")
    verb.add_argument("--target", help="only programs for this target, such as cpu")
    verb.add_argument(
        "--since",
        type=_since,
        metavar="TIME",
        help="only programs used since then: 30m, 2h, 3d, 1w, or a date such as 2026-05-04",
    )
    verb.add_argument(
        "--sort",
        choices=tuple(inspect.COLUMNS),
        default="used",
        metavar="COLUMN",
        help=f"one of {', '.join(inspect.COLUMNS)} (%(default)s); the largest numbers and times first",
    )
    verb.add_argument("--reverse", action="store_true", help="reverse the order")
    verb.add_argument(
        "--names", action="store_true", help="print only the names of functions, without repetitions"
    )
    verb.add_argument("--limit", type=positive, metavar="N", help="print at most N programs")


def _list(arguments: argparse.Namespace) -> Result:
    pattern = arguments.pattern
    programs = inspect.listing(
        "*" if pattern is None else pattern,
        file=arguments.file,
        target=arguments.target,
        since_s=arguments.since,
        sort=arguments.sort,
        reverse=arguments.reverse,
        limit=arguments.limit,
    )
    filtered = any(option is not None for option in (arguments.file, arguments.target, arguments.since))
    chosen = filtered or pattern is not None
    note = "" if programs else f"no programs in {root()}{' match the options' if chosen else ''}"
    if not programs and pattern is not None and not filtered:
        note = no_match(pattern)
    code = DONE if programs or not chosen else FAILED
    if arguments.names:
        names = list(dict.fromkeys(program.function for program in programs))
        return Result(names, "\n".join(map(printable, names)), code, note)
    return Result(programs, str(programs) if programs else "", code, note)


def no_match(pattern: str) -> str:
    """Return the message for a pattern that matches nothing."""
    return f"no program in {root()} matches {pattern!r}; expected {PATTERN}; `tracejit cache list` shows all"


def _since(text: str) -> float:
    """Return a time in seconds since 1970."""
    age = _AGE.fullmatch(text)
    if age:
        return time.time() - float(age[1]) * _SECONDS[age[2]]
    import datetime

    try:
        return datetime.datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        raise argparse.ArgumentTypeError(
            f"expected a time such as 30m, 2h, 3d, 1w or 2026-05-04, not {text!r}"
        ) from None
