# SPDX-License-Identifier: BSD-3-Clause
"""The syntax trees of texts of Python.

Until Python 3.12 two threads that parse at the same time may get a SystemError, because they share a count of the depth
of a tree (CPython's issue 106905). So these try again.
"""

import ast
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")
_TRIES = 100


def parsed(text: str) -> ast.Module:
    """Return the tree of statements.

    Raises:
        SyntaxError: if the text is no Python.

    >>> len(parsed("x = 1").body)
    1
    """
    return _tried(lambda: ast.parse(text))


def parsed_expression(text: str) -> ast.expr:
    """Return the tree of an expression.

    Raises:
        SyntaxError: if the text is none.

    >>> ast.unparse(parsed_expression("x  +  1"))
    'x + 1'
    """
    return _tried(lambda: ast.parse(text, mode="eval").body)


def _tried(parse: Callable[[], _T]) -> _T:
    for _ in range(_TRIES - 1):
        try:
            return parse()
        except SystemError:
            pass
    return parse()
