# SPDX-License-Identifier: BSD-3-Clause
"""The form of a kernel's source: one plain function definition. Executing the definition runs none of its code."""

import ast

from tracejit.errors import CodegenError
from tracejit.program import Kernel
from tracejit.util.parsing import parsed

_ALLOWED = (
    ast.Assign, ast.AugAssign, ast.For, ast.While, ast.If, ast.Expr, ast.Break, ast.Continue, ast.Pass, ast.Return,
    ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Call, ast.IfExp, ast.Subscript, ast.Slice, ast.Tuple,
    ast.Name, ast.Constant, ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
)  # fmt: skip


def check_definition(kernel: Kernel) -> None:
    """Check that the source of a kernel, which may come from anywhere, is one plain function definition.

    The function may have parameters, assignments, loops, branches, arithmetic, and calls of names. Decorators, default
    values and annotations would run where the function is defined; imports, attributes and inner functions are in no
    kernel.

    Raises:
        CodegenError: if the source has anything else.
    """
    try:
        statements = parsed(kernel.text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise CodegenError(f"{kernel.name}: its source is not Python") from error
    definition = statements[0] if len(statements) == 1 else None
    if not isinstance(definition, ast.FunctionDef) or definition.name != kernel.name:
        raise CodegenError(f"{kernel.name}: its source is not the definition of this one function")
    given = definition.args
    plain = ast.arguments([], [ast.arg(part.arg) for part in given.args], None, [], [], None, [])
    if definition.decorator_list or definition.returns or ast.dump(given) != ast.dump(plain):
        raise CodegenError(f"{kernel.name}: its source has more than names as parameters, or a decorator")
    for statement in definition.body:
        for node in ast.walk(statement):
            if not isinstance(node, _ALLOWED) or (
                isinstance(node, ast.Call) and not isinstance(node.func, ast.Name)
            ):
                raise CodegenError(
                    f"{kernel.name}: its source has {ast.unparse(node)!r:.80}, which no kernel has"
                )
