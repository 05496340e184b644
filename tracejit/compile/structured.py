# SPDX-License-Identifier: BSD-3-Clause
"""Lowers functions of assignments, loops and branches to LLVM IR. Importing this module imports Numba.

Note [one walk]
Numba lowers bytecode: it finds the loops in it, the reach of each variable and, by fixed points, types that hold all
that a variable is given. In an emitted kernel all that is plain from the text. Its loops are loops, and a variable that
is used has been assigned in the lines above. So one walk over the syntax tree finds the type of each value and writes
its LLVM IR, in a quarter of the time. The rules for operators, conversions and functions are Numba's own.

A variable that is assigned once, in the block in which it is used, is a value; others have memory, which LLVM turns
into values. A variable has one type, that of its first assignment. Functions with other syntax, and with variables of
several types, are left to Numba's compiler.

Note [hidden counters]
Before it writes code, LLVM rewrites the addresses of a loop as sums of numbers that grow with its counter ("loop
strength reduction"). In kernels of Winograd's method that takes a quarter of LLVM's time: a turn of their loops reads
and writes dozens of vectors at distances that are not constant. So the variable of such a loop passes through an
assembly statement of no instructions, through which LLVM does not see. It leaves the addresses as they are then, and
kernels become up to 6 % faster. Those whose products have tiles of a single vector became 8 % slower, and so they keep
their counters.
"""

import ast
import operator
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from llvmlite import ir
from numba.core import funcdesc, types
from numba.core.imputils import call_getiter, call_iternext
from numba.core.types.misc import unliteral

from tracejit.compile.expressions import BINARY, Expressions, LocalVariables, MemoryNeededError
from tracejit.compile.operations import Operations, TypedValue, leave_to_numba


class _Loop:
    """The blocks to which `continue` and `break` go."""

    def __init__(self, again: Any, after: Any) -> None:
        self.again = again
        self.after = after


class FunctionWriter:
    """The writer of the LLVM IR of one function, in one walk (Note [one walk]).

    Args:
        operations: writes operations; its builder stands in the first block of the body, and the function has another
            block before that.
        definition: the definition of the function.
        names: what the names mean that the function does not assign.
        in_memory: variables that have memory.
        hidden: the loops whose counters LLVM is not to see (Note [hidden counters]).
    """

    def __init__(
        self, operations: Operations, definition: ast.FunctionDef, names: Mapping[str, Any],
        in_memory: frozenset[str], hidden: Collection[ast.AST],
    ) -> None:  # fmt: skip
        arguments = [argument.arg for argument in definition.args.args]
        stored = [
            node.id
            for node in ast.walk(definition)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        ]
        times = Counter([*arguments, *stored])
        again = frozenset([name for name, number in times.items() if number > 1])
        self._do = operations
        self._builder = operations.builder
        self._arguments = arguments
        self._body = definition.body
        self._variables = LocalVariables(operations, frozenset(times), again | in_memory)
        self._expressions = Expressions(operations, self._variables, names)
        self._loops: list[_Loop] = []
        self._hidden = hidden
        self._result: Any = None
        self.results: list[TypedValue] = []

    def write(self, arguments: Sequence[TypedValue], result: Any) -> None:
        """Write the body of the function.

        Args:
            arguments: its arguments.
            result: the type of its results; None if it is not known yet, then they are kept in `results` only.
        """
        self._result = result
        for name, value in zip(self._arguments, arguments, strict=True):
            self._variables.store(name, value)
        self._statements(self._body)
        if not self._builder.block.is_terminated:
            self._give(TypedValue(types.none, self._do.context.get_dummy_value()))

    def _block(self, body: Sequence[ast.stmt]) -> None:
        self._variables.begin_block()
        self._statements(body)
        self._variables.end_block()

    def _statements(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            if self._builder.block.is_terminated:
                return
            write = getattr(self, f"_do_{type(statement).__name__.lower()}", None)
            if write is None:
                leave_to_numba(statement)
            write(statement)

    def _do_expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # a docstring
            self._expressions.value(node.value)

    def _do_pass(self, node: ast.Pass) -> None:
        """Write nothing."""

    def _do_assign(self, node: ast.Assign) -> None:
        if len(node.targets) > 1 or not isinstance(node.targets[0], ast.Tuple):
            value = self._expressions.value(node.value)
            for target in node.targets:
                self._store(target, value)
            return
        targets = node.targets[0].elts
        if isinstance(node.value, ast.Tuple):
            values = [self._expressions.value(element) for element in node.value.elts]
        else:
            values = self._do.parts(self._expressions.value(node.value))
        if len(values) != len(targets):
            leave_to_numba(node)
        for target, value in zip(targets, values, strict=True):
            self._store(target, value)

    def _do_augassign(self, node: ast.AugAssign) -> None:
        function = BINARY.get(type(node.op))
        if function is None:
            leave_to_numba(node)
        if isinstance(node.target, ast.Subscript):
            place = [self._expressions.value(node.target.value), self._expressions.value(node.target.slice)]
            before = self._do.apply(operator.getitem, place)
            after = self._do.apply(function, [before, self._expressions.value(node.value)])
            self._do.apply(operator.setitem, [*place, after])
        elif isinstance(node.target, ast.Name):
            before = self._variables.load(node.target.id)
            self._store(node.target, self._do.apply(function, [before, self._expressions.value(node.value)]))
        else:
            leave_to_numba(node)

    def _store(self, target: ast.expr, value: TypedValue) -> None:
        if isinstance(target, ast.Name):
            self._variables.store(target.id, value)
        elif isinstance(target, ast.Subscript):
            place = [self._expressions.value(target.value), self._expressions.value(target.slice)]
            self._do.apply(operator.setitem, [*place, value])
        else:
            leave_to_numba(target)

    def _do_return(self, node: ast.Return) -> None:
        nothing = TypedValue(types.none, self._do.context.get_dummy_value())
        self._give(nothing if node.value is None else self._expressions.value(node.value))

    def _give(self, value: TypedValue) -> None:
        value = self._do.plain(value)
        self.results.append(value)
        if self._result is None:
            self._builder.unreachable()
            return
        value = self._do.cast(value, self._result)
        self._do.context.call_conv.return_value(self._builder, value.value)

    def _do_if(self, node: ast.If) -> None:
        then, after = self._expressions.new_block("then"), self._expressions.new_block("after")
        otherwise = self._expressions.new_block("else") if node.orelse else after
        self._expressions.branch(node.test, then, otherwise)
        for block, body in ((then, node.body), (otherwise, node.orelse)):
            if block is not after:
                self._builder.position_at_end(block)
                self._block(body)
                self._expressions.go(after)
        self._builder.position_at_end(after)

    def _do_while(self, node: ast.While) -> None:
        if node.orelse:
            leave_to_numba(node)
        test, body, after = (self._expressions.new_block(name) for name in ("test", "body", "after"))
        self._expressions.go(test)
        self._builder.position_at_end(test)
        self._expressions.branch(node.test, body, after)
        self._builder.position_at_end(body)
        self._loop(node.body, _Loop(test, after))

    def _do_for(self, node: ast.For) -> None:
        call = node.iter
        if not (
            isinstance(node.target, ast.Name)
            and isinstance(call, ast.Call)
            and isinstance(call.func, ast.Name)
            and self._expressions.meaning(call.func) is range
            and not (call.keywords or node.orelse)
        ):
            leave_to_numba(node)
        bounds = [self._expressions.value(bound) for bound in call.args]
        test, body, again, after = (
            self._expressions.new_block(name) for name in ("test", "body", "again", "after")
        )
        now = (self._count if _is_plain(bounds) else self._iterate)(bounds, test, body, again, after)
        self._builder.position_at_end(body)
        self._variables.begin_block()
        self._store(node.target, self._unseen(now) if node in self._hidden else now)
        self._loop(node.body, _Loop(again, after))
        self._variables.end_block()

    def _count(
        self, bounds: Sequence[TypedValue], test: Any, body: Any, again: Any, after: Any
    ) -> TypedValue:
        """Write the head of a loop over a range of int64 with a constant step; return its variable."""
        values = [bound.value for bound in bounds]
        start = values[0] if len(values) > 1 else ir.Constant(values[0].type, 0)
        step = values[2] if len(values) > 2 else ir.Constant(start.type, 1)
        stop = values[len(values) > 1]
        build, before = self._builder, self._builder.block
        build.branch(test)
        build.position_at_end(test)
        counter = build.phi(start.type)
        counter.add_incoming(start, before)
        if isinstance(stop, ir.instructions.SelectInstr) and step.constant == 1:
            goes_on = self._counted_down(start, stop, before, again)
        else:
            goes_on = build.icmp_signed("<" if step.constant > 0 else ">", counter, stop)
        build.cbranch(goes_on, body, after)
        build.position_at_end(again)
        counter.add_incoming(build.add(counter, step, flags=["nsw"]), again)
        build.branch(test)
        return TypedValue(types.intp, counter)

    def _unseen(self, number: TypedValue) -> TypedValue:
        """Return an integer as one whose origin LLVM does not see (Note [hidden counters])."""
        kind = number.value.type
        nothing = ir.InlineAsm(ir.FunctionType(kind, [kind]), "", "=r,0")
        return TypedValue(number.kind, self._builder.call(nothing, [number.value]))

    def _counted_down(self, start: Any, stop: Any, before: Any, again: Any) -> Any:
        """Return whether turns are left, for a range that ends at a minimum, `min(16, n - i)`.

        They are counted down, as Numba does. If LLVM saw the end of such a range, it would see how short it is, and
        write masks and branches for its turns where whole vectors are faster.
        """
        build, zero = self._builder, ir.Constant(start.type, 0)
        with build.goto_block(before):
            difference = build.sub(stop, start)
            turns = build.select(build.icmp_signed(">", difference, zero), difference, zero)
        left = build.phi(start.type)
        left.add_incoming(turns, before)
        with build.goto_block(again):
            left.add_incoming(build.sub(left, ir.Constant(start.type, 1), flags=["nsw"]), again)
        return build.icmp_signed(">", left, zero)

    def _iterate(
        self, bounds: Sequence[TypedValue], test: Any, body: Any, again: Any, after: Any
    ) -> TypedValue:
        """Write the head of a loop over any other range as Numba does; return its variable."""
        ranged = self._do.apply(range, bounds)
        context, kind = self._do.context, ranged.kind.iterator_type
        iterator = call_getiter(context, self._builder, ranged.kind, ranged.value)
        self._expressions.go(test)
        self._builder.position_at_end(again)
        self._builder.branch(test)
        self._builder.position_at_end(test)
        following = call_iternext(context, self._builder, kind, iterator)
        self._builder.cbranch(following.is_valid(), body, after)
        self._builder.position_at_end(body)
        return TypedValue(kind.yield_type, following.yielded_value())

    def _loop(self, body: Sequence[ast.stmt], loop: _Loop) -> None:
        self._loops.append(loop)
        self._block(body)
        self._loops.pop()
        self._expressions.go(loop.again)
        self._builder.position_at_end(loop.after)

    def _do_continue(self, node: ast.Continue) -> None:
        self._expressions.go(self._loops[-1].again)

    def _do_break(self, node: ast.Break) -> None:
        self._expressions.go(self._loops[-1].after)


def _is_plain(bounds: Sequence[TypedValue]) -> bool:
    """Return whether a range is one of int64, with a constant step."""
    return all(unliteral(bound.kind) == types.intp for bound in bounds) and (
        len(bounds) < 3
        or (isinstance(bounds[2].kind, types.IntegerLiteral) and bounds[2].kind.literal_value != 0)
    )


def write_function(
    context: Any, definition: ast.FunctionDef | None, names: Mapping[str, Any], arguments: tuple[Any, ...],
    result: Any, hidden: Collection[ast.AST] = (),
) -> tuple[Any, Any]:  # fmt: skip
    """Return a function as a library of Numba's, and its description by Numba.

    Args:
        context: Numba's context of the target.
        definition: the definition of the function; None if it is not known.
        names: what the names mean that it does not assign.
        arguments: the types of its arguments.
        result: the type of its result; None if it follows from what it returns.
        hidden: the loops whose counters LLVM is not to see (Note [hidden counters]).

    Raises:
        UnsupportedError: if the function is left to Numba's compiler.
    """
    if definition is None or not _has_plain_arguments(definition, len(arguments)):
        leave_to_numba("no definition with plain arguments")
    if result is None:
        result = _result(context, definition, names, arguments)
    return _written(context, definition, names, arguments, result, hidden=hidden)[:2]


def _has_plain_arguments(definition: ast.FunctionDef, count: int) -> bool:
    own = definition.args
    others = (own.posonlyargs, own.vararg, own.kwonlyargs, own.kwarg, own.defaults)
    return len(own.args) == count and not any(others)


def _result(
    context: Any, definition: ast.FunctionDef, names: Mapping[str, Any], arguments: tuple[Any, ...]
) -> Any:
    """Return the type of what a function returns."""
    if not any(isinstance(node, ast.Return) and node.value is not None for node in ast.walk(definition)):
        return types.none
    *_, operations, results = _written(context, definition, names, arguments, None)
    return operations.common(*results)


def _written(
    context: Any, definition: ast.FunctionDef, names: Mapping[str, Any], arguments: tuple[Any, ...], result: Any,
    in_memory: frozenset[str] = frozenset(), hidden: Collection[ast.AST] = (),
) -> tuple[Any, Any, Operations, list[Any]]:  # fmt: skip
    name = definition.name
    described = funcdesc.PythonFunctionDescriptor(
        native=True, modname=str(names.get("__name__")), qualname=name, unique_name=name, doc="", typemap={},
        restype=types.none if result is None else result, calltypes={}, kws=(),
        args=[argument.arg for argument in definition.args.args], argtypes=arguments, mangler=context.mangler,
    )  # fmt: skip
    library = context.codegen().create_library(name)
    module = library.create_ir_module(name)
    function = context.declare_function(module, described)
    entry = function.append_basic_block("entry")
    builder = ir.IRBuilder(entry)
    values = context.call_conv.decode_arguments(builder, arguments, function)
    body = function.append_basic_block("start")
    builder.position_at_end(body)
    operations = Operations(context, builder)
    writer = FunctionWriter(operations, definition, names, in_memory, hidden)
    try:
        with context.push_code_library(library):
            writer.write([TypedValue(*pair) for pair in zip(arguments, values, strict=True)], result)
    except MemoryNeededError as found:
        return _written(context, definition, names, arguments, result, in_memory | {str(found)}, hidden)
    builder.position_at_end(entry)
    builder.branch(body)
    library.add_ir_module(module)
    return library, described, operations, writer.results
