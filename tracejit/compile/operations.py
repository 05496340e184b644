# SPDX-License-Identifier: BSD-3-Clause
"""Typed values in LLVM IR, and functions of them by Numba's rules. Importing this module imports Numba."""

import ast
import operator
from collections.abc import Sequence
from typing import Any, NoReturn

from numba.core import errors, types
from numba.core.types.containers import BaseTuple
from numba.core.types.misc import maybe_literal, unliteral
from numba.cpython.builtins import do_minmax

from tracejit.util.named_tuples import NamedTuple

_EXTREMA = {min: operator.lt, max: operator.gt}


class UnsupportedError(Exception):
    """A function has syntax or types that are left to Numba's own compiler."""


def leave_to_numba(what: ast.AST | str, cause: Exception | None = None) -> NoReturn:
    """Leave a function to Numba's compiler.

    Args:
        what: the syntax, or a description, of what it has.
        cause: the error that says so.

    Raises:
        UnsupportedError: always.
    """
    raise UnsupportedError(what if isinstance(what, str) else ast.unparse(what)) from cause


class TypedValue(NamedTuple):
    """A value in LLVM IR, and its type by Numba's rules."""

    kind: Any
    value: Any


class Operations:
    """Writes operations at the place of a builder.

    Args:
        context: Numba's context of the target.
        builder: writes the LLVM IR of one function.
    """

    def __init__(self, context: Any, builder: Any) -> None:
        self.context = context
        self.builder = builder
        self._typing = context.typing_context

    def constant(self, value: Any) -> TypedValue:
        """Return a constant; the type of an integer is that of this integer alone."""
        kind = maybe_literal(value)
        plain = unliteral(kind)
        if kind is None:
            kind = plain = self._typing.resolve_value_type(value)
        return TypedValue(kind, self.context.get_constant_generic(self.builder, plain, value))

    def plain(self, value: TypedValue) -> TypedValue:
        """Return a value whose type does not know it."""
        return value._replace(kind=unliteral(value.kind))

    def cast(self, value: TypedValue, kind: Any) -> TypedValue:
        """Return a value as one of another type."""
        if value.kind == kind or kind == unliteral(value.kind):
            return TypedValue(kind, value.value)
        try:
            return TypedValue(kind, self.context.cast(self.builder, value.value, value.kind, kind))
        except errors.NumbaNotImplementedError as error:
            leave_to_numba(str(error), error)

    def common(self, *values: TypedValue) -> Any:
        """Return the type that holds all of some values."""
        kinds = [unliteral(value.kind) for value in values]
        kind = kinds[0] if len({*kinds}) == 1 else self._typing.unify_types(*kinds)
        if kind is None:
            leave_to_numba(f"no type holds all of {kinds}")
        return kind

    def apply(self, function: Any, values: Sequence[TypedValue]) -> TypedValue:
        """Return what a function gives for some values.

        Args:
            function: a function that Numba knows, as an operator or an intrinsic.
            values: its arguments.
        """
        if function in _EXTREMA:
            return self._extremum(_EXTREMA[function], values)
        of_function, signature = self._signature(function, tuple([value.kind for value in values]))
        call = self.context.get_function(of_function, signature)
        arguments = [self.cast(value, kind).value for value, kind in zip(values, signature.args, strict=True)]
        return TypedValue(signature.return_type, call(self.builder, arguments))

    def truth(self, value: TypedValue) -> Any:
        """Return the bit that says whether a value is true."""
        value = self.plain(value)
        return value.value if value.kind == types.boolean else self.apply(bool, [value]).value

    def parts(self, value: TypedValue) -> list[TypedValue]:
        """Return the elements of a tuple."""
        if not isinstance(value.kind, BaseTuple):
            leave_to_numba(f"{value.kind} is taken apart")
        return [
            TypedValue(kind, self.builder.extract_value(value.value, i))
            for i, kind in enumerate(value.kind.types)
        ]

    def _extremum(self, ahead: Any, values: Sequence[TypedValue]) -> TypedValue:
        """Return the first value that no other one is ahead of."""
        values = [self.plain(value) for value in values]
        kinds = [value.kind for value in values]
        if len(values) < 2 or not all(isinstance(kind, types.Integer | types.Float) for kind in kinds):
            leave_to_numba(f"the extremum of {kinds}")
        found = do_minmax(self.context, self.builder, kinds, [value.value for value in values], ahead)
        return TypedValue(self.common(*values), found)

    def _signature(self, function: Any, kinds: tuple[Any, ...]) -> tuple[Any, Any]:
        of_function = self._typing.resolve_value_type(function)
        signature = self._typing.resolve_function_type(of_function, kinds, {})
        if signature is None or len(signature.args) != len(kinds) or signature.recvr:
            leave_to_numba(f"{function} of {kinds}")
        return of_function, signature
