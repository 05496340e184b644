# SPDX-License-Identifier: BSD-3-Clause
"""The user's lines beside those of a kernel, added when it is shown, because one text serves several programs."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from tracejit.util.text import printable

_WIDEST = 60  # the longest line, in characters, whose comment stands in the column of the others


def annotated(source: str, comments: Mapping[int, str]) -> str:
    """Return a source with comments at the ends of lines.

    Args:
        source: of a kernel.
        comments: by the number of the line, counted from 1.

    >>> print(annotated("def f():\\n    a = 1\\n    return a", {2: "train.py:7"}))
    def f():
        a = 1  # train.py:7
        return a
    """
    lines = source.splitlines()
    noted = [len(lines[number - 1]) for number in comments if 0 < number <= len(lines)]
    column = max([length for length in noted if length <= _WIDEST], default=0)
    return "\n".join(
        f"{line:<{column}}  # {comments[number]}" if number in comments else line
        for number, line in enumerate(lines, 1)
    )


def comment(name: str, where: Sequence[Any] | None, names: Mapping[str, str]) -> str:
    """Return the comment beside a line of an operation.

    Args:
        name: of the operation.
        where: the user's file and line, if there is one.
        names: of files, by the names they have there.

    >>> comment("tanh", ("/a/train.py", 7), {"/a/train.py": "train.py"})
    'train.py:7 tanh'
    """
    return name if where is None else f"{printable(names[where[0]])}:{where[1]} {name}"


def short_names(files: Iterable[str]) -> dict[str, str]:
    """Return files by the shortest ends of their names that differ.

    >>> short_names(["/a/train.py", "/a/b/net.py", "/a/c/net.py"])
    {'/a/train.py': 'train.py', '/a/b/net.py': 'b/net.py', '/a/c/net.py': 'c/net.py'}
    """
    parts = {file: PurePath(file).parts or (file,) for file in files}
    counts = dict.fromkeys(parts, 1)
    while True:
        names = {file: "/".join(parts[file][-counts[file] :]) for file in parts}
        shared = {name for name in names.values() if list(names.values()).count(name) > 1}
        longer = [file for file in parts if names[file] in shared and counts[file] < len(parts[file])]
        if not longer:
            return names
        for file in longer:
            counts[file] += 1
