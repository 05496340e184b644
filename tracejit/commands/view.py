# SPDX-License-Identifier: BSD-3-Clause
"""`tracejit view`: writes a page that shows programs of the cache."""

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tracejit.cache import inspect
from tracejit.commands import cache_list
from tracejit.commands.arguments import add_command
from tracejit.commands.output import CommandError, Result
from tracejit.errors import CacheError
from tracejit.util.files import write_text
from tracejit.util.text import count, printable

_MOST = 12  # programs on one page


def add(commands: Any) -> None:
    """Add the command to a parser."""
    view = add_command(
        commands,
        "view",
        _view,
        "write a page for the browser that shows a program in the cache",
        description="Write a page that shows a program in the cache, or all programs of a function: the graph, your "
        "lines, the emitted source, and the memory plan. The page is one file, and makes no requests. accfun.view(), "
        "in the process that runs the function, also shows times, guards and traces.",
    )
    view.add_argument("key", metavar="KEY", help=cache_list.PATTERN)
    view.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="the HTML file to write (tracejit-cache-FUNCTION.html in the current folder)",
    )
    view.add_argument("--file", metavar="PATTERN", help="only functions of this file; may hold * and ?")


def _view(arguments: argparse.Namespace) -> Result:
    # Importing the inspector takes longer than any other command runs.
    from tracejit.view import page, stored

    programs = inspect.listing(arguments.key, file=arguments.file)
    if not programs:
        where = "" if arguments.file is None else f" in a file that matches {arguments.file!r}"
        raise CacheError(
            f"no program{where} has the key or the function {arguments.key!r}; `tracejit cache list` shows all"
        )
    functions = _functions(programs)
    if len({entries[0].file for entries in functions.values()}) > 1:
        lines = [
            f"  {name}: {', '.join(entry.key[:12] for entry in entries)}"
            for name, entries in functions.items()
        ]
        raise CacheError(
            "\n".join(
                [f"{arguments.key!r} is in several files; choose one with --file, or give a key:", *lines]
            )
        )
    shown = [inspect.show(entry.key) for entry in programs[:_MOST]]
    data = stored.page(shown)
    out = arguments.out or Path(f"tracejit-cache-{page.file_name(data['title'])}.html")
    try:
        write_text(out, page.render(data))
    except OSError as error:
        raise CommandError("OSError", f"cannot write to {out}: {error.strerror}") from error
    note = "; ".join(
        f"{name}, {count(len(entries), 'program')}" for name, entries in _functions(programs[:_MOST]).items()
    )
    if len(programs) > _MOST:
        note += f"; {count(len(programs) - _MOST, 'older program')} left out"
    return Result({"file": out, "keys": [program.key for program in shown]}, str(out), note=note)


def _functions(programs: Iterable[inspect.Listed]) -> dict[str, list[inspect.Listed]]:
    """Return programs by function, whose names have the place of the definition."""
    by_name: dict[str, list[inspect.Listed]] = {}
    for program in programs:
        where = "" if program.file is None else f" ({program.file}:{program.line})"
        by_name.setdefault(printable(f"{program.function}{where}"), []).append(program)
    return by_name
