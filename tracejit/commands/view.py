# SPDX-License-Identifier: BSD-3-Clause
"""`tracejit view`: a page that shows programs of the cache."""

import argparse
from pathlib import Path
from typing import Any

from tracejit.cache import inspect
from tracejit.commands.arguments import add_command
from tracejit.commands.output import CommandError, Result
from tracejit.errors import CacheError
from tracejit.words import count

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
        help="the HTML file to write (tracejit-FUNCTION.html in the current folder)",
    )


def _view(arguments: argparse.Namespace) -> Result:
    # What makes a page takes longer to import than all other commands.
    from tracejit.view import page, stored

    found = inspect.listing(arguments.key)
    if not found:
        raise CacheError(
            f"no program has the key or the function {arguments.key!r}; `tracejit cache list` shows all"
        )
    shown = [inspect.show(each.key) for each in found[:_MOST]]
    made = stored.page(shown)
    out = arguments.out or Path(f"tracejit-{page.file_name(made['title'])}.html")
    try:
        out.write_text(page.render(made), encoding="utf-8")
    except OSError as error:
        raise CommandError("OSError", f"cannot write to {out}: {error.strerror}") from error
    note = (
        f"{count(len(found) - _MOST, 'program')} more, used longer ago, left out"
        if len(found) > _MOST
        else ""
    )
    return Result({"file": out, "keys": [each.key for each in shown]}, str(out), note=note)
