# SPDX-License-Identifier: BSD-3-Clause
"""Functions of words to LLVM's source (Note [functions of words] in kernels/machine.py)."""

import ast
import inspect
import textwrap
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FunctionType
from typing import Any

from llvmlite import ir

from tracejit.backend import objects
from tracejit.backend.lowered import Lowered
from tracejit.errors import CodegenError
from tracejit.kernels import entry, executor, threads
from tracejit.kernels.machine import WORD, Primitive, address

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "run": executor.run, "enter": entry.enter, "run_parts": threads.run_parts, "work": threads.work,
}  # fmt: skip
"""The executor, its entry for Python, and the functions of its threads."""

_OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: ir.IRBuilder.add, ast.Sub: ir.IRBuilder.sub, ast.Mult: ir.IRBuilder.mul, ast.BitAnd: ir.IRBuilder.and_,
    ast.BitOr: ir.IRBuilder.or_, ast.BitXor: ir.IRBuilder.xor, ast.LShift: ir.IRBuilder.shl,
    ast.RShift: ir.IRBuilder.ashr,
}  # fmt: skip
_COMPARISONS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_CODE = ("co_code", "co_consts", "co_names", "co_varnames")  # what a function does
_CHOSEN = {"min": "<", "max": ">"}


def lower_function(name: str) -> Lowered:
    """Return one of FUNCTIONS as LLVM's source."""
    return lower(FUNCTIONS[name], f"tracejit_{name}")


def lower(function: Callable[..., Any], symbol: str) -> Lowered:
    """Return a function of words as LLVM's source: the C function `symbol`, which takes and gives words.

    Args:
        function: in Python; its parameters become those of the C function.
        symbol: the name of the C function.

    Raises:
        CodegenError: if the function is no function of words, or its source is not installed, or is another.
    """
    module = ir.Module(symbol)
    module.triple = objects.host()[0]
    module.data_layout = str(objects.host_machine().target_data)
    _Module(module).define(function, symbol)
    declares = [each.name for each in module.functions if each.is_declaration]
    declares = [name for name in declares if not name.startswith("llvm.")]
    return Lowered(symbol, (str(module),), frozenset(declares), is_kernel=False)


class _Module:
    """The functions of one module of LLVM: one that can be called, and those that it calls."""

    def __init__(self, module: ir.Module) -> None:
        self._module = module
        self._known: dict[Any, Any] = {}

    def define(self, function: Any, symbol: str | None = None) -> Any:
        """Return LLVM's function for one in Python; without a symbol it can be called in this module only."""
        if function not in self._known:
            try:
                source = inspect.getsource(function)
            except OSError as error:
                where = f"{function.__module__}.{function.__name__}"
                raise CodegenError(
                    f"the source of {where} is not installed, and it is compiled from that. Install tracejit with its "
                    "source files (*.py), or set TRACEJIT_BACKEND=python."
                ) from error
            text = textwrap.dedent(source)
            _check_unchanged(function, text)
            tree: Any = ast.parse(text).body[0]
            names = [argument.arg for argument in tree.args.args]
            made = ir.Function(
                self._module, ir.FunctionType(WORD, [WORD] * len(names)), symbol or function.__name__
            )
            made.attributes.add("nounwind")
            if symbol is None:
                made.linkage = "internal"
            self._known[function] = made
            _Body(self, function, made).run(names, tree.body)
        return self._known[function]


class _Body:
    """The statements of one function."""

    def __init__(self, module: _Module, function: Any, made: Any) -> None:
        self._module = module
        self._globals = function.__globals__
        self._name = function.__name__
        self._start = ir.IRBuilder(made.append_basic_block())  # where variables are made
        self.b = ir.IRBuilder(made.append_basic_block())
        self._made = made
        self._variables: dict[str, Any] = {}
        self._loops: list[tuple[Any, Any]] = []  # where `continue` and `break` go

    def run(self, names: Sequence[str], body: Sequence[ast.stmt]) -> None:
        entered = self.b.block
        for name, argument in zip(names, self._made.args, strict=True):
            self._set(name, argument)
        self._statements(body)
        if not self.b.block.is_terminated:
            self.b.ret(WORD(0))
        self._start.position_at_end(self._start.block)  # primitives have made variables there too
        self._start.branch(entered)

    def _refuse(self, node: ast.AST) -> CodegenError:
        return CodegenError(f"{self._name} is no function of words: {ast.unparse(node)}")

    def _set(self, name: str, value: Any) -> None:
        if name not in self._variables:
            self._variables[name] = self._start.alloca(WORD, name=name)
        self.b.store(value, self._variables[name])

    def _statements(self, body: Sequence[ast.stmt]) -> None:
        for node in body:
            if self.b.block.is_terminated:
                return
            found = getattr(self, f"_{type(node).__name__.lower()}", None)
            if found is None:
                raise self._refuse(node)
            found(node)

    def _expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # a docstring
            self._called(node.value)

    def _return(self, node: ast.Return) -> None:
        self.b.ret(WORD(0) if node.value is None else self._value(node.value))

    def _assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                values = [self._value(each) for each in node.value.elts]
                for each, value in zip(target.elts, values, strict=True):
                    self._store(each, value)
            else:
                self._store(target, self._value(node.value))

    def _augassign(self, node: ast.AugAssign) -> None:
        as_value = ast.BinOp(left=_loaded(node.target), op=node.op, right=node.value)
        self._store(node.target, self._value(as_value))

    def _store(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self._set(target.id, value)
        elif isinstance(target, ast.Subscript):
            self.b.store(value, self._place(target))
        else:
            raise self._refuse(target)

    def _if(self, node: ast.If) -> None:
        then, after = (self._made.append_basic_block() for _ in range(2))
        otherwise = self._made.append_basic_block() if node.orelse else after
        self.b.cbranch(self._truth(node.test), then, otherwise)
        for block, body in ((then, node.body), (otherwise, node.orelse)):
            if block is not after:
                self.b.position_at_end(block)
                self._statements(body)
                self._go(after)
        self.b.position_at_end(after)

    def _go(self, block: Any) -> None:
        if not self.b.block.is_terminated:
            self.b.branch(block)

    def _while(self, node: ast.While) -> None:
        test, body, after = (self._made.append_basic_block() for _ in range(3))
        self.b.branch(test)
        self.b.position_at_end(test)
        self.b.cbranch(self._truth(node.test), body, after)
        self._loop(body, node.body, test, after)
        self._go(test)
        self.b.position_at_end(after)

    def _for(self, node: ast.For) -> None:
        call = node.iter
        ranged = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "range"
        if not (ranged and isinstance(call, ast.Call) and isinstance(node.target, ast.Name)):
            raise self._refuse(node)
        bounds = [self._value(each) for each in call.args]
        start, end = bounds if len(bounds) == 2 else (WORD(0), *bounds)
        # The counter is not the variable, which the body may change.
        counter = self._start.alloca(WORD)
        self.b.store(start, counter)
        test, body, step, after = (self._made.append_basic_block() for _ in range(4))
        self.b.branch(test)
        self.b.position_at_end(test)
        self.b.cbranch(self.b.icmp_signed("<", self.b.load(counter), end), body, after)
        self.b.position_at_end(body)
        self._set(node.target.id, self.b.load(counter))
        self._loop(body, node.body, step, after)
        self._go(step)
        self.b.position_at_end(step)
        self.b.store(self.b.add(self.b.load(counter), WORD(1)), counter)
        self.b.branch(test)
        self.b.position_at_end(after)

    def _loop(self, block: Any, body: Sequence[ast.stmt], again: Any, after: Any) -> None:
        self.b.position_at_end(block)
        self._loops.append((again, after))
        self._statements(body)
        self._loops.pop()

    def _continue(self, node: ast.Continue) -> None:
        self.b.branch(self._loops[-1][0])

    def _break(self, node: ast.Break) -> None:
        self.b.branch(self._loops[-1][1])

    def _place(self, node: ast.Subscript) -> Any:
        return address(self.b, self._value(node.value), self._value(node.slice))

    def _truth(self, node: ast.expr) -> Any:
        """Return a condition as a bit."""
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARISONS:
            left, right = self._value(node.left), self._value(node.comparators[0])
            return self.b.icmp_signed(_COMPARISONS[type(node.ops[0])], left, right)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self.b.not_(self._truth(node.operand))
        if isinstance(node, ast.BoolOp):
            # What decides is in the last block that ran; those after it are jumped over.
            after = self._made.append_basic_block()
            ways = []
            for part in node.values:
                truth = self._truth(part)
                ways.append((truth, self.b.block))
                if part is not node.values[-1]:
                    following = self._made.append_basic_block()
                    is_and = isinstance(node.op, ast.And)
                    self.b.cbranch(truth, *((following, after) if is_and else (after, following)))
                    self.b.position_at_end(following)
            self.b.branch(after)
            self.b.position_at_end(after)
            found = self.b.phi(ir.IntType(1))
            for truth, block in ways:
                found.add_incoming(truth, block)
            return found
        return self.b.icmp_signed("!=", self._value(node), WORD(0))

    def _value(self, node: ast.expr) -> Any:
        """Return an expression as a word."""
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return WORD(int(node.value))
        if isinstance(node, ast.Name):
            if node.id in self._variables:
                return self.b.load(self._variables[node.id])
            found = self._globals.get(node.id)
            if isinstance(found, int):
                return WORD(int(found))
        elif isinstance(node, ast.Subscript):
            return self.b.load(self._place(node))
        elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            left, right = self._value(node.left), self._value(node.right)
            return _OPERATORS[type(node.op)](self.b, left, right)
        elif isinstance(node, ast.IfExp):
            # Both are computed; that is quicker than to jump.
            truth, one, other = (
                self._truth(node.test),
                self._value(node.body),
                self._value(node.orelse),
            )
            return self.b.select(truth, one, other)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return self.b.neg(self._value(node.operand))
        elif isinstance(node, (ast.Compare, ast.BoolOp, ast.UnaryOp)):
            return self.b.zext(self._truth(node), WORD)
        elif isinstance(node, ast.Call):
            value = self._called(node)
            if value is not None:
                return value
        raise self._refuse(node)

    def _called(self, node: ast.expr) -> Any:
        """Emit a call; return its value, if it has one."""
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords):
            raise self._refuse(node)
        words = [self._value(each) for each in node.args]
        name = node.func.id
        found = self._globals.get(name)
        if isinstance(found, Primitive):
            return found.emit(self.b, *words)
        if isinstance(found, FunctionType):
            return self.b.call(self._module.define(found), words)
        if name in _CHOSEN and len(words) == 2:
            return self.b.select(self.b.icmp_signed(_CHOSEN[name], *words), *words)
        raise self._refuse(node)


def _check_unchanged(function: Any, text: str) -> None:
    """Check that the text is that of the function: the file may be another one since it was imported."""
    known, found = function.__code__, None
    with suppress(SyntaxError):
        parts = compile(text, known.co_filename, "exec", dont_inherit=True).co_consts
        found = next((part for part in parts if getattr(part, "co_name", None) == known.co_name), None)
    if found is None or any(getattr(found, name) != getattr(known, name) for name in _CODE):
        raise CodegenError(
            f"the source of {function.__module__}.{function.__name__} changed since it was imported. Start the process "
            "anew."
        )


def _loaded(target: ast.expr) -> ast.expr:
    """Return what is assigned to as what is read."""
    return ast.parse(ast.unparse(target), mode="eval").body
