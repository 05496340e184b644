# SPDX-License-Identifier: BSD-3-Clause
"""The syntax trees of source files, parsed and walked once for all tests."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_HOLD_STATEMENTS = (ast.stmt, ast.ExceptHandler, ast.match_case)


@cache
def parsed(path: Path) -> ast.Module:
    """Return the tree of a file."""
    return ast.parse(path.read_text())


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Return the statements that a statement, or a clause of one, directly holds, and such clauses."""
    for value in vars(node).values():
        if type(value) is list:
            yield from [child for child in value if isinstance(child, _HOLD_STATEMENTS)]


@cache
def with_bodies(path: Path) -> list[ast.AST]:
    """Return the module of a file and all statements in it that hold statements."""
    found: list[ast.AST] = [parsed(path)]
    for node in found:  # which grows
        found += [child for child in statements(node) if hasattr(child, "body") or hasattr(child, "cases")]
    return found
