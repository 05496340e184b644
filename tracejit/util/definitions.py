# SPDX-License-Identifier: BSD-3-Clause
"""The text of a function against its code: Python finds the text by a line of a file, which may have changed."""

import ast
import types
from typing import Any, TypeVar

_Statement = TypeVar("_Statement", bound=ast.stmt)


def defines(definition: ast.FunctionDef, function: Any) -> bool:
    """Return whether a definition, whatever decorates it, is that of a function.

    Args:
        definition: from the text that Python finds for the function.
        function: a Python function. Where functions inside it stand in the file does not count.
    """
    code = function.__code__
    plain = ast.copy_location(
        ast.FunctionDef(definition.name, definition.args, definition.body, [], None), definition
    )
    outside = [
        _located(ast.Assign([ast.Name(name, ast.Store())], ast.Constant(None))) for name in code.co_freevars
    ]
    no_arguments = ast.arguments([], [], None, [], [], None, [])
    around = _located(ast.FunctionDef("around", no_arguments, [*outside, ast.Pass()], [], None))
    around.body[-1] = plain
    own = function.__globals__
    modules = [name for name in code.co_names if isinstance(own.get(name), types.ModuleType)]
    # Python 3.11 calls math.sqrt in a different way if the text imports math.
    for imported in (modules, []):
        imports = [_located(ast.Import([ast.alias(name)])) for name in imported]
        module = ast.Module([*imports, around if code.co_freevars else plain], [])
        codes = [compile(module, "", "exec", dont_inherit=True)]
        for found in codes:
            codes += [constant for constant in found.co_consts if isinstance(constant, types.CodeType)]
            if found.co_name == code.co_name and _meaning(found) == _meaning(code):
                return True
    return False


def _located(statement: _Statement) -> _Statement:
    """Return a statement that is in no text as one that Python compiles; the definition has its places already."""
    statement.lineno, statement.col_offset = 1, 0
    return ast.fix_missing_locations(statement)


def _meaning(code: types.CodeType) -> tuple[Any, ...]:
    """Return the attributes of code that define what it does."""
    constants = [constant for constant in code.co_consts if not isinstance(constant, types.CodeType)]
    return code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars
