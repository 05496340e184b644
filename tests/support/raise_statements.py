# SPDX-License-Identifier: BSD-3-Clause
"""The raise statements of the package, to compare them with those that the rows of the table of messages reach."""

import ast
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from sources import parsed, statements

import tracejit as tj

PACKAGE = Path(tj.__file__).parent
FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if path.parent.name not in ("kernels", "examples")]


class Statement(NamedTuple):
    """A raise statement of the package: the function that it stands in, its lines, and what it raises."""

    function: str
    lines: range
    text: str

    def __str__(self) -> str:
        return f"{self.function}: {self.text}"


def raise_statements(path: Path) -> Iterator[Statement]:
    """Return the statements of a file that raise a new error."""
    module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)

    def visit(node: ast.AST, function: str) -> Iterator[Statement]:
        for child in statements(node):
            if isinstance(child, ast.Raise) and isinstance(child.exc, ast.Call):
                constants = [part.value for part in ast.walk(child.exc) if isinstance(part, ast.Constant)]
                text = max((part.strip() for part in constants if isinstance(part, str)), key=len, default="")
                lines = range(child.lineno, (child.end_lineno or child.lineno) + 1)
                yield Statement(f"{module}.{function}", lines, text[:40].strip())
            inside = isinstance(child, (ast.FunctionDef, ast.ClassDef))
            yield from visit(child, child.name if inside else function)

    yield from visit(parsed(path), "")


def not_reached(reached: Collection[tuple[Path, int]]) -> set[str]:
    """Return the statements, with their functions, of which no line was reached."""
    return {
        str(statement)
        for path in FILES
        for statement in raise_statements(path)
        if not any((path, line) in reached for line in statement.lines)
    }
