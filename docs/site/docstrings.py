# SPDX-License-Identifier: BSD-3-Clause
"""Docstrings as reStructuredText: they are plain text, in which ``*`` is a product and ``|x|`` a magnitude.

Sections ("Args:", "Raises:") stay for napoleon, which knows them. Elsewhere every mark of reStructuredText is escaped,
words in backticks are code, and a paragraph whose lines are aligned, such as a table of formulas, is kept as it is.
"""

import re
from collections.abc import Iterator

SECTIONS = ("Args:", "Arguments:", "Attributes:", "Examples:", "Example:", "Raises:", "Returns:", "Yields:")
CODE = re.compile(r"(``.+?``|`[^`]+`)")
MARKS = re.compile(r"([*|\\]|_(?=\W|$)|`)")


def converted(lines: list[str]) -> list[str]:
    """Return the lines of a docstring as lines of reStructuredText.

    >>> converted(["Return a*b of `x`.", "", "y  = a", "zz = b"])
    ['Return a\\\\*b of ``x``.', '', '::', '', '    y  = a', '    zz = b', '']
    """
    found: list[str] = []
    in_section = False
    for paragraph in paragraphs(lines):
        if paragraph[0].strip():
            in_section = paragraph[0] in SECTIONS or (in_section and paragraph[0].startswith(" "))
        if is_example(paragraph):
            found += paragraph
        elif not in_section and is_laid_out(paragraph):
            found += ["::", "", *(f"    {line}" for line in paragraph), ""]
        else:
            found += [escaped(line) for line in paragraph]
    return found


def paragraphs(lines: list[str]) -> Iterator[list[str]]:
    """Yield the lines that stand together, and the empty ones between them; a section's title stands alone."""
    together: list[str] = []
    for line in lines:
        title = line.strip() in SECTIONS
        if together and (title or bool(line.strip()) != bool(together[0].strip())):
            yield together
            together = []
        together.append(line)
        if title:
            yield together
            together = []
    if together:
        yield together


def is_example(paragraph: list[str]) -> bool:
    return any(line.lstrip().startswith((">>>", "...")) for line in paragraph)


def is_laid_out(paragraph: list[str]) -> bool:
    """Return whether the lines of a paragraph are laid out by hand: indented, or with columns.

    >>> is_laid_out(["y  = a", "zz = b"]), is_laid_out(["    a tree"]), is_laid_out(["a sentence", "goes on"])
    (True, True, False)
    """
    columns = len(paragraph) > 1 and any(re.search(r"\S {2,}\S", line) for line in paragraph)
    return columns or any(line.startswith(" ") for line in paragraph)


def escaped(line: str) -> str:
    """Return a line in which nothing but code has a meaning.

    >>> escaped("x_ and ``y*`` and `z` and |w|")
    'x\\\\_ and ``y*`` and ``z`` and \\\\|w\\\\|'
    """
    parts = CODE.split(line)
    return "".join(
        f"``{part.strip('`')}``" if i % 2 else MARKS.sub(r"\\\1", part) for i, part in enumerate(parts)
    )
