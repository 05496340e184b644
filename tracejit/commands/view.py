# SPDX-License-Identifier: BSD-3-Clause
"""`tracejit view`: a page that shows programs of the cache."""

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tracejit.cache import inspect
from tracejit.commands.arguments import add_command
from tracejit.commands.output import CommandError, Result
from tracejit.errors import CacheError
from tracejit.util.text import count, printable

_MOST = 12  # programs on one page


def add(commands: Any) -> None:
    """Add the command to a parser."""
    view = add_command(
        commands,
        "view",
        _view,
        "write a page that shows a program in the cache, to be opened in a browser",
        description="Write a page that shows a program in the cache, or all programs of a function: the graph, your "
        "lines, the emitted source, and the memory plan. The page is one file; it loads nothing and sends nothing. "
        "accfun.view(), in the process that runs the function, shows times, guards and traces too.",
    )
    view.add_argument("key", metavar="KEY", help="a key, the beginning of one, or a function's name")
    view.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="the HTML file to write (tracejit-cache-FUNCTION.html in the current folder)",
    )
    view.add_argument("--file", metavar="PATTERN", help="functions of this file only, with * and ?")


def _view(arguments: argparse.Namespace) -> Result:
    # What makes a page takes longer to import than all other commands.
    from tracejit.view import page, stored

    found = inspect.listing(arguments.key, file=arguments.file)
    if not found:
        where = "" if arguments.file is None else f" in a file that matches {arguments.file!r}"
        raise CacheError(
            f"no program{where} has the key or the function {arguments.key!r}; `tracejit cache list` shows all"
        )
    functions = _functions(found)
    if len({each[0].file for each in functions.values()}) > 1:
        lines = [f"  {name}: {', '.join(each.key[:12] for each in of)}" for name, of in functions.items()]
        raise CacheError(
            "\n".join(
                [f"{arguments.key!r} is in several files; choose one with --file, or by its key:", *lines]
            )
        )
    shown = [inspect.show(each.key) for each in found[:_MOST]]
    made = stored.page(shown)
    out = arguments.out or Path(f"tracejit-cache-{page.file_name(made['title'])}.html")
    try:
        out.write_text(page.render(made), encoding="utf-8")
    except OSError as error:
        raise CommandError("OSError", f"cannot write to {out}: {error.strerror}") from error
    note = "; ".join(f"{name}, {count(len(of), 'program')}" for name, of in _functions(found[:_MOST]).items())
    if len(found) > _MOST:
        note += f"; {count(len(found) - _MOST, 'program')} more, used longer ago, left out"
    return Result({"file": out, "keys": [each.key for each in shown]}, str(out), note=note)


def _functions(found: Iterable[inspect.Listed]) -> dict[str, list[inspect.Listed]]:
    """Return programs by their functions, each with the place where it is defined."""
    by_name: dict[str, list[inspect.Listed]] = {}
    for each in found:
        where = "" if each.file is None else f" ({each.file}:{each.line})"
        by_name.setdefault(printable(f"{each.function}{where}"), []).append(each)
    return by_name
