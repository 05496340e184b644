# SPDX-License-Identifier: BSD-3-Clause
"""The user's files, as far as lines of them are shown."""

import linecache

from tracejit.ir import Where
from tracejit.view.data import File, Place

_AROUND = 15  # lines shown before and after one that is meant
_SUFFIXES = (".py", ".pyw")


class Sources:
    """The files of a page, numbered as they are met.

    Args:
        trusted: names come from code that this process runs. Else they come from a file, and only names of Python
            files are followed: a page must not hold whatever file somebody has named there.
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

    def files(self) -> list[File]:
        """Return the files with the lines that were asked for, and those around them."""
        return [self._file(name, lines) for name, lines in self._lines.items()]

    def _file(self, name: str, lines: set[int]) -> File:
        if not self._trusted and not name.endswith(_SUFFIXES):
            return {"name": name, "chunks": [], "missing": "not shown: not the name of a Python file"}
        linecache.checkcache(name)
        text = linecache.getlines(name)
        if not text:
            return {"name": name, "chunks": [], "missing": "the file cannot be read here"}
        chunks: list[tuple[int, list[str]]] = []
        shown = 0  # the last line that is shown already
        for line in sorted(lines):
            first, last = max(line - _AROUND, shown + 1, 1), min(line + _AROUND, len(text))
            if first > last:
                continue
            part = [each.rstrip("\r\n") for each in text[first - 1 : last]]
            if chunks and first == shown + 1:
                chunks[-1][1].extend(part)
            else:
                chunks.append((first, part))
            shown = last
        missing = "" if chunks else "the file is shorter now"
        return {"name": name, "chunks": chunks, "missing": missing}
