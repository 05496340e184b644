# SPDX-License-Identifier: BSD-3-Clause
"""Writes expressions and conditions in LLVM IR. Importing this module imports Numba."""

import ast
import builtins
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from numba.core import cgutils, types
from numba.core.types.containers import BaseTuple

from tracejit.compile.operations import Operations, TypedValue, leave_to_numba

BINARY: dict[Any, Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.LShift: operator.lshift,
    ast.RShift: operator.rshift, ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip
_UNARY: dict[Any, Callable[..., Any]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert, ast.Not: operator.not_,
}  # fmt: skip
_MISSING = object()


class MemoryNeededError(Exception):
    """A variable needs memory: it is used outside the block in which it is assigned."""


class LocalVariables:
    """The variables of a function: values of a block, or memory.

    Args:
        operations: writes operations.
        names: the names of the variables.
        in_memory: those that have memory.
    """

    def __init__(self, operations: Operations, names: frozenset[str], in_memory: frozenset[str]) -> None:
        self.names = names
        self._do = operations
        self._in_memory = in_memory
        self._scopes: list[dict[str, TypedValue]] = [{}]
        self._places: dict[str, TypedValue] = {}

    def begin_block(self) -> None:
        """Begin a block, inside the one that was begun before."""
        self._scopes.append({})

    def end_block(self) -> None:
        """End the block that was begun last, and what its variables are."""
        self._scopes.pop()

    def store(self, name: str, value: TypedValue) -> None:
        """Assign a value to a variable."""
        if name not in self._in_memory:
            self._scopes[-1][name] = value
            return
        value = self._do.plain(value)
        builder = self._do.builder
        place = self._places.get(name)
        if place is None:
            kind = self._do.context.get_value_type(value.kind)
            place = self._places[name] = TypedValue(value.kind, cgutils.alloca_once(builder, kind, name=name))
        if value.kind != place.kind:
            leave_to_numba(f"{name} is {place.kind} and {value.kind}")
        builder.store(value.value, place.value)

    def load(self, name: str) -> TypedValue:
        """Return the value of a variable.

        Raises:
            MemoryNeededError: if it is a value of a block that has ended.
        """
        for scope in reversed(self._scopes):
            if name in scope:
                found: TypedValue = scope[name]
                return found
        place = self._places.get(name)
        if place is not None:
            return TypedValue(place.kind, self._do.builder.load(place.value))
        if name in self._in_memory:
            leave_to_numba(f"{name} is used above its first assignment")
        raise MemoryNeededError(name)


class Expressions:
    """Writes expressions at the place of a builder.

    Args:
        operations: writes operations.
        variables: the variables of the function.
        names: what the names mean that are no variables.
    """

    def __init__(self, operations: Operations, variables: LocalVariables, names: Mapping[str, Any]) -> None:
        self._do = operations
        self._builder = operations.builder
        self._variables = variables
        self._names = names

    def new_block(self, name: str) -> Any:
        """Return a new block of the function."""
        return self._builder.append_basic_block(name)

    def go(self, block: Any) -> None:
        """Go on in a block, unless this one has ended."""
        if not self._builder.block.is_terminated:
            self._builder.branch(block)

    def branch(self, test: ast.expr, then: Any, otherwise: Any) -> None:
        """Go on in one of two blocks, by a condition whose parts are computed as far as needed."""
        if isinstance(test, ast.Compare) and len(test.ops) > 1:
            test = _pairs(test)
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            self.branch(test.operand, otherwise, then)
        elif isinstance(test, ast.BoolOp):
            for part in test.values[:-1]:
                following = self.new_block("next")
                is_and = isinstance(test.op, ast.And)
                self.branch(part, *((following, otherwise) if is_and else (then, following)))
                self._builder.position_at_end(following)
            self.branch(test.values[-1], then, otherwise)
        else:
            self._builder.cbranch(self._do.truth(self.value(test)), then, otherwise)

    def value(self, node: ast.expr) -> TypedValue:
        """Return the value of an expression."""
        compute = getattr(self, f"_of_{type(node).__name__.lower()}", None)
        if compute is None:
            leave_to_numba(node)
        value: TypedValue = compute(node)
        return value

    def _of_constant(self, node: ast.Constant) -> TypedValue:
        if not isinstance(node.value, int | float):
            leave_to_numba(node)
        return self._do.constant(node.value)

    def _of_name(self, node: ast.Name) -> TypedValue:
        if node.id in self._variables.names:
            return self._variables.load(node.id)
        value = self.meaning(node)
        if not isinstance(value, int | float):
            leave_to_numba(node.id)
        return self._do.constant(value)

    def meaning(self, node: ast.Name) -> Any:
        """Return what a name means that the function does not assign."""
        if node.id in self._variables.names:
            leave_to_numba(node.id)
        found = self._names.get(node.id, getattr(builtins, node.id, _MISSING))
        if found is _MISSING:
            leave_to_numba(node.id)
        return found

    def _of_attribute(self, node: ast.Attribute) -> TypedValue:
        if not isinstance(node.value, ast.Name) or self.meaning(node.value) is not math:
            leave_to_numba(node)
        value = getattr(math, node.attr, None)
        if not isinstance(value, float):
            leave_to_numba(node)
        return self._do.constant(value)

    def _of_binop(self, node: ast.BinOp) -> TypedValue:
        return self._operation(node, node.op, [node.left, node.right])

    def _of_unaryop(self, node: ast.UnaryOp) -> TypedValue:
        return self._operation(node, node.op, [node.operand])

    def _operation(self, node: ast.expr, op: Any, operands: Sequence[ast.expr]) -> TypedValue:
        function = _function(op, len(operands))
        try:
            values = [_number(operand) for operand in operands]
            if None not in values:
                return self._do.constant(function(*values))
        except (ArithmeticError, TypeError, ValueError) as error:
            leave_to_numba(node, error)
        return self._do.apply(function, [self.value(operand) for operand in operands])

    def _of_compare(self, node: ast.Compare) -> TypedValue:
        if len(node.ops) > 1:
            return self.value(_pairs(node))
        return self._operation(node, node.ops[0], [node.left, node.comparators[0]])

    def _of_subscript(self, node: ast.Subscript) -> TypedValue:
        held, index = self.value(node.value), self.value(node.slice)
        if isinstance(held.kind, BaseTuple) and isinstance(index.kind, types.IntegerLiteral):
            return self._do.parts(held)[index.kind.literal_value]
        return self._do.apply(operator.getitem, [held, index])

    def _of_tuple(self, node: ast.Tuple) -> TypedValue:
        values = [self._do.plain(self.value(element)) for element in node.elts]
        kind = BaseTuple.from_types([value.kind for value in values])
        made = self._do.context.make_tuple(self._builder, kind, [value.value for value in values])
        return TypedValue(kind, made)

    def _of_call(self, node: ast.Call) -> TypedValue:
        if node.keywords or not isinstance(node.func, ast.Name):
            leave_to_numba(node)
        function = self.meaning(node.func)
        return self._do.apply(function, [self.value(argument) for argument in node.args])

    def _of_ifexp(self, node: ast.IfExp) -> TypedValue:
        then, otherwise = self.new_block("then"), self.new_block("else")
        self.branch(node.test, then, otherwise)
        return self._merged([(then, node.body), (otherwise, node.orelse)])

    def _of_boolop(self, node: ast.BoolOp) -> TypedValue:
        """Return a truth: `and` and `or` of other values are left to Numba."""
        then, otherwise = self.new_block("then"), self.new_block("else")
        *first, last = node.values
        is_and = isinstance(node.op, ast.And)
        self.branch(
            first[0] if len(first) == 1 else ast.BoolOp(node.op, first),
            *((then, otherwise) if is_and else (otherwise, then)),
        )
        value = self._merged([(then, last), (otherwise, ast.Constant(not is_and))])
        if value.kind != types.boolean:
            leave_to_numba(node)
        return value

    def _merged(self, choices: Sequence[tuple[Any, ast.expr]]) -> TypedValue:
        """Return the value of the block from which the program comes."""
        computed = []
        for block, expression in choices:
            self._builder.position_at_end(block)
            computed.append((self._do.plain(self.value(expression)), self._builder.block))
        kind = self._do.common(*[value for value, _ in computed])
        after = self.new_block("after")
        incoming = []
        for value, block in computed:
            self._builder.position_at_end(block)
            incoming.append((self._do.cast(value, kind).value, self._builder.block))
            self._builder.branch(after)
        self._builder.position_at_end(after)
        merged = self._builder.phi(incoming[0][0].type)
        for value, block in incoming:
            merged.add_incoming(value, block)
        return TypedValue(kind, merged)


def _pairs(node: ast.Compare) -> ast.BoolOp:
    """Return a chain of comparisons, `a < b < c`, as `a < b and b < c`."""
    values = [node.left, *node.comparators]
    if any(isinstance(part, ast.Call) for value in values[1:-1] for part in ast.walk(value)):
        leave_to_numba(node)
    return ast.BoolOp(
        ast.And(),
        [ast.Compare(values[i], [op], [values[i + 1]]) for i, op in enumerate(node.ops)],
    )


def _number(node: ast.expr) -> Any:
    """Return the value of an expression of constants, None for others."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp):
        operands = [_number(node.operand)]
    elif isinstance(node, ast.BinOp):
        operands = [_number(node.left), _number(node.right)]
    else:
        return None
    return None if None in operands else _function(node.op, len(operands))(*operands)


def _function(op: ast.AST, operands: int) -> Callable[..., Any]:
    """Return the operator that a syntax stands for."""
    table: dict[Any, Callable[..., Any]] = BINARY if operands == 2 else _UNARY
    found = table.get(type(op))
    if found is None:
        leave_to_numba(type(op).__name__)
    return found
