# SPDX-License-Identifier: BSD-3-Clause
"""Formulas of derivatives as Python expressions: each operation appends an op to the graph."""

from collections.abc import Callable
from typing import Any

_PLAIN = frozenset({
    "abs", "cos", "cosh", "equal", "exp", "floor", "less_equal", "log", "log1p", "logical_and", "logical_or", "maximum",
    "minimum", "pow", "sign", "sin", "sinh", "sqrt", "square", "where",
})  # fmt: skip


class Expression:
    """A value in a graph, with arithmetic.

    b       builder of the graph
    value   Value of the graph
    """

    __slots__ = ("b", "value")
    __array_ufunc__ = None

    def __init__(self, b: Any, value: Any) -> None:
        self.b = b
        self.value = value

    def _apply(self, name: str, *operands: Any) -> "Expression":
        return Expression(self.b, getattr(self.b, name)(*map(_plain, operands)))

    def __add__(self, other: Any) -> "Expression":
        return self._apply("add", self, other)

    def __radd__(self, other: Any) -> "Expression":
        return self._apply("add", other, self)

    def __sub__(self, other: Any) -> "Expression":
        return self._apply("sub", self, other)

    def __rsub__(self, other: Any) -> "Expression":
        return self._apply("sub", other, self)

    def __mul__(self, other: Any) -> "Expression":
        return self._apply("mul", self, other)

    def __rmul__(self, other: Any) -> "Expression":
        return self._apply("mul", other, self)

    def __truediv__(self, other: Any) -> "Expression":
        return self._apply("div", self, other)

    def __rtruediv__(self, other: Any) -> "Expression":
        return self._apply("div", other, self)

    def __neg__(self) -> "Expression":
        return self._apply("neg", self)

    def __pow__(self, other: Any) -> "Expression":
        return self._apply("square", self) if other == 2 else self._apply("pow", self, other)


def _plain(x: Any) -> Any:
    return x.value if type(x) is Expression else x


class Functions:
    """The functions that a formula may call: ``f.exp(x)``, and ``f.gamma(x)`` for SciPy's.

    Args:
        b: builder of the graph.
        prefix: of the names of ops for functions that are not elementary.
    """

    def __init__(self, b: Any, prefix: str) -> None:
        self._b = b
        self._prefix = prefix

    def __getattr__(self, name: str) -> Callable[..., Any]:
        append = getattr(self._b, name if name in _PLAIN else self._prefix + name)

        def apply(*operands: Any) -> Any:
            values = append(*map(_plain, operands))
            if isinstance(values, tuple):
                return tuple([Expression(self._b, value) for value in values])
            return Expression(self._b, values)

        return apply
