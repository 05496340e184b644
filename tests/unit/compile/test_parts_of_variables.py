# SPDX-License-Identifier: BSD-3-Clause
"""Parts of variables have names of their own, and functions mean what they meant."""

import ast
import random
from collections.abc import Callable

import pytest

from tracejit.compile.variables import parted


def function_of(text: str) -> ast.FunctionDef:
    (definition,) = ast.parse(text).body
    assert isinstance(definition, ast.FunctionDef)
    return definition


def written(text: str) -> str:
    """Return the source of a function whose variables are parted."""
    return ast.unparse(parted(function_of(text)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 1\nuse(x)\nx = 2\nuse(x)", "x = 1\nuse(x)\nx_1 = 2\nuse(x_1)"),
        # The next loop begins with a value of its own.
        (
            "for i in n:\n    x = 1\n    x += 1\nfor i in n:\n    x = i\n    use(x)",
            "for i in n:\n    x = 1\n    x += 1\nfor i in n:\n    x_1 = i\n    use(x_1)",
        ),
        # A value that goes on is that of both.
        ("x = 1\nuse(x)\nx = x + 1\nuse(x)", None),
        ("x = 1\nif n:\n    x = 2\nuse(x)", None),
        ("for i in n:\n    x = 1\nuse(x)\nx = 2\nuse(x)", None),
        ("for i in n:\n    use(x)\n    x = 1\n    use(x)\n    x = 2", None),
        ("while x:\n    x = 1\n    use(x)\n    x = 2", None),
        # The argument of a function is a value, too; and a name that is taken is not used.
        ("n = 2\nuse(n)\nn = 3", "n = 2\nuse(n)\nn_1 = 3"),
        ("use(n)\nn = 2\nn = 3", None),
        ("x_1 = 1\nx = 1\nuse(x, x_1)\nx = 2", "x_1 = 1\nx = 1\nuse(x, x_1)\nx_1_ = 2"),
        ("x, y = (1, 2)\nuse(x)\nx = 3\ny = 4", "x, y = (1, 2)\nuse(x)\nx_1 = 3\ny_1 = 4"),
        ("a[x] = x = 1\nx = 2\nx = 3", None),
        # Inner names may mean something else.
        ("x = 1\nx = 2\ny = lambda x: x", None),
    ],
)  # fmt: skip
def test_parts(text: str, expected: str | None) -> None:
    def indented(body: str) -> str:
        return "def f(n):\n" + "\n".join(f"    {line}" for line in body.split("\n"))

    assert written(indented(text)) == indented(text if expected is None else expected)


class Programs:
    """Random functions of the kind that kernels are."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def function(self) -> str:
        return "def f(a, b):\n" + self.block(1, 6) + "    return (a, b, out)\n"

    def value(self) -> str:
        left, right = self.random.choice("abxyz"), self.random.choice("abxyz123")
        return f"{left} {self.random.choice('+-*')} {right}" if self.random.random() < 0.5 else right

    def block(self, depth: int, most: int) -> str:
        return "".join(self.statement(depth) for _ in range(self.random.randint(1, most)))

    def statement(self, depth: int) -> str:
        indent = "    " * depth
        kind = self.random.choice(
            ["set"] * 5 + ["use"] * 3 + ["add", "two"] + ["for", "if", "while"] * (depth < 4)
        )
        name, inner = self.random.choice("xyz"), depth + 1
        if kind == "set":
            return f"{indent}{name} = {self.value()}\n"
        if kind == "two":
            return f"{indent}x, y = {self.value()}, {self.value()}\n"
        if kind == "add":
            return f"{indent}{name} += {self.value()}\n"
        if kind == "use":
            return f"{indent}out.append({name})\n"
        if kind == "for":
            ends = self.random.choice(["", "", f"{indent}    if {name} % 2:\n{indent}        continue\n"])
            return f"{indent}for {name} in range({self.random.randint(0, 3)}):\n{ends}{self.block(inner, 4)}"
        if kind == "while":
            count = f"w{depth}{self.random.randint(0, 10**6)}"
            return f"{indent}{count} = 2\n{indent}while {count} > 0:\n{indent}    {count} -= 1\n{self.block(inner, 3)}"
        other = f"{indent}else:\n{self.block(inner, 2)}" if self.random.random() < 0.5 else ""
        return f"{indent}if ({self.value()}) % 2:\n{self.block(inner, 3)}{other}"


def result_of(function: Callable[..., object], out: list[int]) -> object:
    try:
        return function(3, 4)
    except NameError:
        return [*out, "a variable without a value"]


def defined(text: str) -> Callable[[], object]:
    def result() -> object:
        out: list[int] = []
        names: dict[str, object] = {"out": out}
        exec(text, names)
        return result_of(names["f"], out)  # type: ignore[arg-type]

    return result


def test_results_are_the_same() -> None:
    changed = 0
    for seed in range(400):
        text = Programs(seed).function()
        new = written(text)
        changed += new != ast.unparse(ast.parse(text))
        assert defined(new)() == defined(text)(), text
    assert changed > 40
