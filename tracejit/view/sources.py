# SPDX-License-Identifier: BSD-3-Clause
"""The parts of the user's files that a page shows."""

import linecache

from tracejit.ir import Where
from tracejit.view.data import PageFile, Place

_AROUND = 15  # lines shown before and after a line that an op comes from
_SUFFIXES = (".py", ".pyw")


class Sources:
    """The files of a page, numbered in the order of first use.

    Args:
        trusted: whether file names come from code that this process runs. Otherwise they come from the cache, and only
            Python files are read: a page must not show any file that somebody has named there.
    """

    def __init__(self, trusted: bool = True) -> None:
        self._trusted = trusted
        self._numbers: dict[str, int] = {}
        self._lines: dict[str, set[int]] = {}

    def place(self, where: Where) -> Place:
        """Return the number of a file and the line."""
        if where is None:
            return None
        file, line = where
        self._lines.setdefault(file, set()).add(line)
        return self._numbers.setdefault(file, len(self._numbers)), line

    def files(self) -> list[PageFile]:
        """Return the files, with the lines whose places were asked for and the lines around them."""
        return [self._file(name, lines) for name, lines in self._lines.items()]

    def _file(self, name: str, lines: set[int]) -> PageFile:
        if not self._trusted and not name.endswith(_SUFFIXES):
            return {"name": name, "chunks": [], "missing": "not shown: not the name of a Python file"}
        linecache.checkcache(name)
        text = linecache.getlines(name)
        if not text:
            return {"name": name, "chunks": [], "missing": "the file cannot be read here"}
        chunks: list[tuple[int, list[str]]] = []
        shown = 0  # the last line in a chunk so far
        for line in sorted(lines):
            first, last = max(line - _AROUND, shown + 1, 1), min(line + _AROUND, len(text))
            if first > last:
                continue
            part = [line_text.rstrip("\r\n") for line_text in text[first - 1 : last]]
            if chunks and first == shown + 1:
                chunks[-1][1].extend(part)
            else:
                chunks.append((first, part))
            shown = last
        missing = "" if chunks else "the file is shorter now"
        return {"name": name, "chunks": chunks, "missing": missing}
