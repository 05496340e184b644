# SPDX-License-Identifier: BSD-3-Clause
"""Texts of Python are parsed in spite of what CPython does when several threads parse."""

import ast
from typing import Any

import pytest

from tracejit.util.parsing import parsed, parsed_expression


def test_a_system_error_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    original, tries = ast.parse, []

    def parse(*args: Any, **options: Any) -> Any:
        tries.append(args)
        if len(tries) < 4:
            raise SystemError("AST constructor recursion depth mismatch (before=18, after=14)")
        return original(*args, **options)

    monkeypatch.setattr(ast, "parse", parse)
    assert ast.unparse(parsed_expression("x  +  1")) == "x + 1"
    assert len(tries) == 4


def test_other_errors_are_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SyntaxError):
        parsed("x +")

    def parse(*args: Any, **options: Any) -> Any:
        raise SystemError("always")

    monkeypatch.setattr(ast, "parse", parse)
    with pytest.raises(SystemError, match="always"):
        parsed("x")
