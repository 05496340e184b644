# SPDX-License-Identifier: BSD-3-Clause
"""Drawings of networks: layers in rows from top to bottom, as Graphviz text and as SVG."""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from tracejit.util.files import write_text
from tracejit.util.named_tuples import NamedTuple

_WIDTH, _HEIGHT, _GAP, _MARGIN = 190, 40, 26, 12
_LETTER = 6.2  # width of a letter, in the units of the drawing


class Drawing(NamedTuple):
    """A drawing of a network.

    dot     Graphviz text
    svg     SVG
    """

    dot: str
    svg: str

    def save(self, path: Any) -> Path:
        """Write the drawing to a file, and return its path.

        Args:
            path: of the file: .dot or .gv for Graphviz text, any other for SVG.

        Raises:
            OSError: if the file cannot be written.
        """
        file = Path(path)
        write_text(file, self.dot if file.suffix in (".dot", ".gv") else self.svg)
        return file

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return self.dot


class _Box(NamedTuple):
    name: str
    lines: tuple[str, ...]
    x: float
    y: float


def drawing(network: Any) -> Drawing:
    """Return the drawing of a network."""
    structure = network._fixed
    content = structure.content
    texts = {}
    for number, placed in enumerate(content.layers):
        sizes = () if content.layouts is None else tuple(map(repr, content.layouts[number]))
        texts[placed.name] = (placed.name, placed.kind.__name__, *sizes)
    edges = [(source[0], target[0]) for source, target in content.connections]
    return Drawing(_dot(texts, edges), _svg(texts, edges))


def _dot(texts: dict[str, tuple[str, ...]], edges: Sequence[tuple[str, str]]) -> str:
    def quoted(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") + '"'

    lines = ["digraph network {", "  node [shape=box];"]
    for name, words in texts.items():
        label = "\\n".join(quoted(word)[1:-1] for word in words)
        lines.append(f'  {quoted(name)} [label="{label}"];')
    lines += [f"  {quoted(source)} -> {quoted(target)};" for source, target in edges]
    return "\n".join([*lines, "}"])


def placed_boxes(texts: dict[str, tuple[str, ...]], edges: Sequence[tuple[str, str]]) -> list[_Box]:
    """Return a box for each layer: one row below all that it takes, beside the layers of the same row.

    Rows are ordered by the mean place of what their layers take, so that few lines cross.
    """
    before: dict[str, list[str]] = {name: [] for name in texts}
    for source, target in edges:
        before[target].append(source)
    row_of: dict[str, int] = {}
    for name in texts:  # in the order in which they run
        row_of[name] = 1 + max((row_of[source] for source in before[name]), default=-1)
    rows: dict[int, list[str]] = {}
    for name, row in row_of.items():
        rows.setdefault(row, []).append(name)
    width = max(_WIDTH, *[_LETTER * len(word) + 16 for words in texts.values() for word in words], 0)
    place: dict[str, float] = {}
    boxes = []
    for row in sorted(rows):
        names = sorted(
            rows[row],
            key=lambda name: sum(place[source] for source in before[name]) / max(len(before[name]), 1),
        )
        for column, name in enumerate(names):
            place[name] = (column - (len(names) - 1) / 2) * (width + _GAP)
            boxes.append(_Box(name, texts[name], place[name], row * (_HEIGHT + 14 + _GAP)))
    return boxes


def _svg(texts: dict[str, tuple[str, ...]], edges: Sequence[tuple[str, str]]) -> str:
    boxes = {box.name: box for box in placed_boxes(texts, edges)}
    longest = max([len(word) for words in texts.values() for word in words], default=0)
    width, height = max(_WIDTH, _LETTER * longest + 16), _HEIGHT + 14
    left = min([box.x for box in boxes.values()], default=0) - width / 2 - _MARGIN
    right = max([box.x for box in boxes.values()], default=0) + width / 2 + _MARGIN
    bottom = max([box.y for box in boxes.values()], default=0) + height + _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{left:g} {-_MARGIN} {right - left:g} {bottom + _MARGIN:g}" '
        f'width="{right - left:g}" height="{bottom + _MARGIN:g}" font-family="sans-serif" font-size="11">',
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#777"/></marker></defs>',
    ]
    for source, target in edges:
        a, b = boxes[source], boxes[target]
        x1, y1, x2, y2 = a.x, a.y + height, b.x, b.y
        bend = 0 if y2 - y1 <= _GAP else width * 0.7  # past the layers between
        middle = f"C{x1 + bend:g} {y1 + _GAP:g} {x2 + bend:g} {y2 - _GAP:g}"
        parts.append(
            f'<path d="M{x1:g} {y1:g}{middle} {x2:g} {y2:g}" fill="none" stroke="#777" marker-end="url(#arrow)"/>'
        )
    for box in boxes.values():
        parts.append(
            f'<rect x="{box.x - width / 2:g}" y="{box.y:g}" width="{width:g}" height="{height}" rx="4" fill="#f4f6fa" '
            'stroke="#456"/>'
        )
        for number, line in enumerate(box.lines[:3]):
            weight = ' font-weight="bold"' if number == 0 else ""
            parts.append(
                f'<text x="{box.x:g}" y="{box.y + 15 + 15 * number:g}" text-anchor="middle" fill="#123"{weight}>'
                f"{escape(line)}</text>"
            )
    return "".join([*parts, "</svg>"])
