# SPDX-License-Identifier: BSD-3-Clause
"""Sources that may come from anywhere: one plain function definition, or an error before anything of it runs."""

import ast
from pathlib import Path

import pytest

from tracejit.compile.definition import check_definition
from tracejit.errors import CodegenError
from tracejit.program import Kernel

GOLDEN = Path(__file__).parents[2] / "support" / "golden"
KERNELS = [
    (definition.name, ast.unparse(definition))
    for path in sorted(GOLDEN.rglob("*.py"))
    for definition in ast.parse(path.read_text()).body
    if isinstance(definition, ast.FunctionDef) and definition.name not in ("forward", "adjoint")
]


def test_kernels_that_are_emitted():
    assert len(KERNELS) > 10
    for name, text in KERNELS:
        check_definition(Kernel(name, text))


@pytest.mark.whole("messages")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("def k(args:", "is not Python"),
        ("def k(args):\n    pass\0", "is not Python"),
        ("", "is not the definition of this one function"),
        ("def other(args):\n    pass", "is not the definition of this one function"),
        ("k = open('file', 'w')", "is not the definition of this one function"),
        ("import os\ndef k(args):\n    pass", "is not the definition of this one function"),
        ("def k(args):\n    pass\nk(0)", "is not the definition of this one function"),
        ("async def k(args):\n    pass", "is not the definition of this one function"),
        ("@print\ndef k(args):\n    pass", "a decorator"),
        ("def k(args=print(1)):\n    pass", "more than names as parameters"),
        ("def k(args: print(1)):\n    pass", "more than names as parameters"),
        ("def k(args) -> print(1):\n    pass", "a decorator"),
        ("def k(*args):\n    pass", "more than names as parameters"),
        ("def k(args, *, b=print(1)):\n    pass", "more than names as parameters"),
        ("def k(args):\n    import os", "'import os', which no kernel has"),
        ("def k(args):\n    args.x", "'args.x', which no kernel has"),
        ("def k(args):\n    (lambda: 0)()", "which no kernel has"),
        ("def k(args):\n    args[0](1)", "which no kernel has"),
        ("def k(args):\n    f(x=1)", "which no kernel has"),
        ("def k(args):\n    def f():\n        pass", "which no kernel has"),
        ("def k(args):\n    [x for x in args]", "which no kernel has"),
        ("def k(args):\n    f'{args}'", "which no kernel has"),
        ("def k(args):\n    with args:\n        pass", "which no kernel has"),
        ("def k(args):\n    global x", "which no kernel has"),
        ("def k(args):\n    yield 1", "which no kernel has"),
        ("def k(args):\n    x: print(1) = 2", "which no kernel has"),
        ("def k(args):\n    return " + "(" * 500 + ")" * 500, ""),
    ],
)
def test_anything_else(text, reason):
    with pytest.raises(CodegenError, match=f"^k: its source .*{reason}"):
        check_definition(Kernel("k", text))
