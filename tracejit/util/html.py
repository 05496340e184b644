# SPDX-License-Identifier: BSD-3-Clause
"""HTML for notebooks: a title, facts and tables, short, in colours that are legible on light and dark backgrounds."""

from collections.abc import Sequence

import numpy as np

_EDGE = 4  # elements shown at each end of an axis that is too long
_LINE = "1px solid rgba(128, 128, 128, 0.35)"
_CELL = f"text-align: left; vertical-align: top; padding: 1px 8px; border-bottom: {_LINE}"
_NUMBER = "text-align: right; padding: 1px 8px; font-family: monospace"
_TABLE = "font-size: inherit; border-collapse: collapse"
_QUIET = "opacity: 0.75"


def block(title: str, note: str, *parts: str) -> str:
    """Return a title, its description, and further parts, which are HTML."""
    heading = f"<div><b>{_escaped(title)}</b> <span style='{_QUIET}'>{_escaped(note)}</span></div>"
    return f"<div style='font-size: 13px'>{heading}{''.join(parts)}</div>"


def table(header: Sequence[str], rows: Sequence[Sequence[object]], most: int, what: str) -> str:
    """Return a table of texts; beyond `most` rows, the first ones and the number of the others.

    >>> text = table(["op"], [["add"], ["mul"]], 1, "ops")
    >>> text.count("<tr>"), "and 1 more ops" in text
    (2, True)
    """
    head = "".join(f"<th style='{_CELL}'>{_escaped(name)}</th>" for name in header)
    lines = [
        "<tr>" + "".join(f"<td style='{_CELL}'>{_escaped(str(cell))}</td>" for cell in row) + "</tr>"
        for row in rows[:most]
    ]
    more = len(rows) - most
    rest = f"<div style='{_QUIET}'>and {more} more {_escaped(what)}</div>" if more > 0 else ""
    return (
        f"<table style='{_TABLE}'><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>{rest}"
    )


def values(data: np.ndarray) -> str:
    """Return the elements of an array as a table: the ends of long axes, the first matrix of more than two axes.

    >>> "4" in values(np.array([[1, 2], [3, 4]])), "..." in values(np.arange(100.0))
    (True, True)
    """
    if data.size == 0:
        return f"<div style='{_QUIET}'>no elements</div>"
    lead = data.ndim - 2
    note = ""
    if lead > 0:
        at = ", ".join(["0"] * lead + [":", ":"])
        note = f"<div style='{_QUIET}'>[{at}], the first of {int(np.prod(data.shape[:lead]))} matrices</div>"
    matrix = np.atleast_2d(data[(0,) * lead] if lead > 0 else data)
    rows, columns = (_ends(extent) for extent in matrix.shape)
    lines = []
    for i in rows:
        cells = [_element(matrix, i, j) for j in columns]
        lines.append("<tr>" + "".join(f"<td style='{_NUMBER}'>{cell}</td>" for cell in cells) + "</tr>")
    return f"{note}<table style='{_TABLE}'><tbody>{''.join(lines)}</tbody></table>"


def _escaped(text: str) -> str:
    import html  # which has all names of characters: a millisecond of every process

    return html.escape(text)


def _ends(extent: int) -> list[int | None]:
    """Return the places along an axis that are shown; None stands for those left out."""
    if extent <= 2 * _EDGE + 1:
        return list(range(extent))
    return [*range(_EDGE), None, *range(extent - _EDGE, extent)]


def _element(matrix: np.ndarray, i: int | None, j: int | None) -> str:
    if i is None or j is None:
        return "..."
    element = matrix[i, j].item()
    return f"{element:.5g}" if isinstance(element, float) else str(element)
