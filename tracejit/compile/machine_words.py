# SPDX-License-Identifier: BSD-3-Clause
"""Lowers int64 functions to LLVM IR (Note [int64 functions] in kernels/executor/machine.py)."""

import ast
import inspect
import textwrap
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from types import FunctionType
from typing import Any

from tracejit.compile import objects
from tracejit.compile.llvm import OF_WORDS, LlvmFunction
from tracejit.errors import CodegenError
from tracejit.kernels.executor import device_entry, direct, entry, executor, threads
from tracejit.kernels.executor.machine import Primitive, Text
from tracejit.util.definitions import defines
from tracejit.util.parsing import parsed, parsed_expression

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "run": executor.run, "run_with_python": executor.run_with_python, "enter": entry.enter, "called": direct.called,
    "loop": executor.loop, "run_parts": threads.run_parts, "work": threads.work,
    "enter_on_device": device_entry.enter_on_device,
}  # fmt: skip
"""The executor, its entry for Python, the loops in programs, the functions of its threads, and the entry of devices."""

_OPERATORS = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
    ast.LShift: "shl", ast.RShift: "ashr",
}  # fmt: skip
_COMPARISONS = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "slt", ast.LtE: "sle", ast.Gt: "sgt", ast.GtE: "sge",
}  # fmt: skip
_SELECTIONS = {"min": "slt", "max": "sgt"}


def lower_function(name: str) -> LlvmFunction:
    """Return one of FUNCTIONS as LLVM IR."""
    return lower(FUNCTIONS[name], f"tracejit_{name}")


def lower(function: Callable[..., Any], symbol: str) -> LlvmFunction:
    """Return an int64 function as LLVM IR: the C function `symbol`, whose parameters and result are words.

    Args:
        function: the Python function; its parameters become those of the C function.
        symbol: the name of the C function.

    Raises:
        CodegenError: if the function uses more than the int64 subset, or its source is missing or has changed.
    """
    module = _ModuleWriter()
    module.define(function, symbol)
    head = [
        f'target triple = "{objects.host()[0]}"',
        f'target datalayout = "{objects.data_layout()}"',
    ]
    text = "\n".join([*head, *module.declared.values(), *module.texts]) + "\n"
    declares = frozenset(name for name in module.declared if not name.startswith("llvm."))
    return LlvmFunction(symbol, (text,), declares, OF_WORDS)


class _ModuleWriter:
    """The writer of one LLVM module: an exported function and the internal functions that it calls."""

    def __init__(self) -> None:
        self.declared: dict[str, str] = {}
        self.texts: list[str] = []
        self._names: dict[Any, str] = {}

    def define(self, function: Any, symbol: str | None = None) -> str:
        """Define a Python function, once; return its LLVM name. Without a symbol it is internal to the module."""
        if function not in self._names:
            tree = _definition(function)
            name = self._names[function] = f"@{symbol or function.__name__}"
            names = [argument.arg for argument in tree.args.args]
            linkage = "internal " if symbol is None else ""
            parameters = ", ".join(f"i64 %a{i}" for i in range(len(names)))
            lines = _FunctionWriter(self, function).run(names, tree.body)
            self.texts += [f"define {linkage}i64 {name}({parameters}) nounwind {{", *lines, "}"]
        return self._names[function]


class _FunctionWriter:
    """The writer of the statements of one function."""

    def __init__(self, module: _ModuleWriter, function: Any) -> None:
        self._module = module
        self._globals = function.__globals__
        self._name = function.__name__
        self._text = Text(module.declared)
        self._block = ""  # the block under construction; "" after its end
        self._blocks = 0
        self._variables: dict[str, str] = {}
        self._loops: list[tuple[str, str]] = []  # the targets of `continue` and `break`

    def run(self, names: Sequence[str], body: Sequence[ast.stmt]) -> list[str]:
        """Return the lines of the function."""
        first = self._new_block()
        self._begin(first)
        for i, name in enumerate(names):
            self._set(name, f"%a{i}")
        self._statements(body)
        self._end("ret i64 0")
        return ["start:", *self._text.start, f"  br label %{first}", *self._text.lines]

    def _new(self, instruction: str) -> str:
        """Append an instruction; return the name of its value."""
        return str(self._text.value(instruction))

    def _refuse(self, node: ast.AST) -> CodegenError:
        return CodegenError(f"{self._name} is not an int64 function: it has {ast.unparse(node)!r}")

    def _new_block(self) -> str:
        self._blocks += 1
        return f"b{self._blocks}"

    def _begin(self, block: str) -> None:
        self._text.lines.append(f"{block}:")
        self._block = block

    def _end(self, instruction: str) -> None:
        """End the block, unless it has ended."""
        if self._block:
            self._text.do(instruction)
            self._block = ""

    def _go(self, block: str) -> None:
        self._end(f"br label %{block}")

    def _branch(self, truth: str, then: str, otherwise: str) -> None:
        self._end(f"br i1 {truth}, label %{then}, label %{otherwise}")

    def _set(self, name: str, value: str) -> None:
        if name not in self._variables:
            self._variables[name] = self._text.memory("i64")
        self._text.do(f"store i64 {value}, ptr {self._variables[name]}")

    def _statements(self, body: Sequence[ast.stmt]) -> None:
        for node in body:
            if not self._block:
                return
            write = getattr(self, f"_{type(node).__name__.lower()}", None)
            if write is None:
                raise self._refuse(node)
            write(node)

    def _expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # a docstring
            self._call_value(node.value)

    def _return(self, node: ast.Return) -> None:
        self._end(f"ret i64 {'0' if node.value is None else self._value(node.value)}")

    def _assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                values = [self._value(element) for element in node.value.elts]
                for element, value in zip(target.elts, values, strict=True):
                    self._store(element, value)
            else:
                self._store(target, self._value(node.value))

    def _augassign(self, node: ast.AugAssign) -> None:
        as_value = ast.BinOp(left=_loaded(node.target), op=node.op, right=node.value)
        self._store(node.target, self._value(as_value))

    def _store(self, target: ast.expr, value: str) -> None:
        if isinstance(target, ast.Name):
            self._set(target.id, value)
        elif isinstance(target, ast.Subscript):
            self._text.do(f"store i64 {value}, ptr {self._place(target)}")
        else:
            raise self._refuse(target)

    def _if(self, node: ast.If) -> None:
        then, after = self._new_block(), self._new_block()
        otherwise = self._new_block() if node.orelse else after
        self._branch(self._truth(node.test), then, otherwise)
        for block, body in ((then, node.body), (otherwise, node.orelse)):
            if block != after:
                self._begin(block)
                self._statements(body)
                self._go(after)
        self._begin(after)

    def _while(self, node: ast.While) -> None:
        test, body, after = (self._new_block() for _ in range(3))
        self._go(test)
        self._begin(test)
        self._branch(self._truth(node.test), body, after)
        self._loop(body, node.body, test, after)
        self._go(test)
        self._begin(after)

    def _for(self, node: ast.For) -> None:
        call = node.iter
        ranged = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "range"
        if not (ranged and isinstance(call, ast.Call) and isinstance(node.target, ast.Name)):
            raise self._refuse(node)
        bounds = [self._value(bound) for bound in call.args]
        start, end = bounds if len(bounds) == 2 else ("0", *bounds)
        # The counter is not the variable: the body may assign to the variable.
        counter = self._text.memory("i64")
        self._text.do(f"store i64 {start}, ptr {counter}")
        test, body, step, after = (self._new_block() for _ in range(4))
        self._go(test)
        self._begin(test)
        now = self._new(f"load i64, ptr {counter}")
        self._branch(self._new(f"icmp slt i64 {now}, {end}"), body, after)
        self._loop(body, node.body, step, after, (node.target.id, now))
        self._go(step)
        self._begin(step)
        following = self._new(f"add i64 {self._new(f'load i64, ptr {counter}')}, 1")
        self._text.do(f"store i64 {following}, ptr {counter}")
        self._go(test)
        self._begin(after)

    def _loop(
        self, block: str, body: Sequence[ast.stmt], again: str, after: str, variable: tuple[str, str] | None = None
    ) -> None:  # fmt: skip
        """Write the body of a loop; its variable has a name and a value."""
        self._begin(block)
        if variable is not None:
            self._set(*variable)
        self._loops.append((again, after))
        self._statements(body)
        self._loops.pop()

    def _continue(self, node: ast.Continue) -> None:
        self._go(self._loops[-1][0])

    def _break(self, node: ast.Break) -> None:
        self._go(self._loops[-1][1])

    def _place(self, node: ast.Subscript) -> str:
        return str(self._text.place(self._value(node.value), self._value(node.slice)))

    def _truth(self, node: ast.expr) -> str:
        """Return a condition as a bit."""
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARISONS:
            left, right = self._value(node.left), self._value(node.comparators[0])
            return self._new(f"icmp {_COMPARISONS[type(node.ops[0])]} i64 {left}, {right}")
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self._new(f"xor i1 {self._truth(node.operand)}, true")
        if isinstance(node, ast.BoolOp):
            # The block that decides jumps over those after it; the phi takes its value.
            after = self._new_block()
            incoming = []
            for part in node.values:
                truth = self._truth(part)
                incoming.append(f"[ {truth}, %{self._block} ]")
                if part is not node.values[-1]:
                    following = self._new_block()
                    is_and = isinstance(node.op, ast.And)
                    self._branch(truth, *((following, after) if is_and else (after, following)))
                    self._begin(following)
            self._go(after)
            self._begin(after)
            return self._new(f"phi i1 {', '.join(incoming)}")
        return self._new(f"icmp ne i64 {self._value(node)}, 0")

    def _value(self, node: ast.expr) -> str:
        """Return an expression as a word."""
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return str(int(node.value))
        if isinstance(node, ast.Name):
            if node.id in self._variables:
                return self._new(f"load i64, ptr {self._variables[node.id]}")
            constant = self._globals.get(node.id)
            if isinstance(constant, int):
                return str(int(constant))
        elif isinstance(node, ast.Subscript):
            return self._new(f"load i64, ptr {self._place(node)}")
        elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            left, right = self._value(node.left), self._value(node.right)
            return self._new(f"{_OPERATORS[type(node.op)]} i64 {left}, {right}")
        elif isinstance(node, ast.IfExp):
            # Both are computed: that is faster than a branch.
            return self._select(self._truth(node.test), self._value(node.body), self._value(node.orelse))
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return self._new(f"sub i64 0, {self._value(node.operand)}")
        elif isinstance(node, (ast.Compare, ast.BoolOp, ast.UnaryOp)):
            return self._new(f"zext i1 {self._truth(node)} to i64")
        elif isinstance(node, ast.Call):
            value = self._call_value(node)
            if value is not None:
                return str(value)
        raise self._refuse(node)

    def _select(self, truth: str, one: str, other: str) -> str:
        return self._new(f"select i1 {truth}, i64 {one}, i64 {other}")

    def _call_value(self, node: ast.expr) -> Any:
        """Write a call; return its value, or None."""
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords):
            raise self._refuse(node)
        words = [self._value(argument) for argument in node.args]
        name = node.func.id
        callee = self._globals.get(name)
        if isinstance(callee, Primitive):
            return callee.emit(self._text, *words)
        if isinstance(callee, FunctionType):
            arguments = ", ".join(f"i64 {word}" for word in words)
            return self._new(f"call i64 {self._module.define(callee)}({arguments})")
        if name in _SELECTIONS and len(words) == 2:
            truth = self._new(f"icmp {_SELECTIONS[name]} i64 {words[0]}, {words[1]}")
            return self._select(truth, words[0], words[1])
        raise self._refuse(node)


@cache  # several modules have the same functions
def _definition(function: Any) -> ast.FunctionDef:
    """Return the definition of a function, from its file."""
    try:
        source = inspect.getsource(function)
    except OSError as error:
        where = f"{function.__module__}.{function.__name__}"
        raise CodegenError(
            f"{where} cannot be compiled: its source file is not installed. Install tracejit with its source "
            "files (*.py), or set TRACEJIT_BACKEND=python."
        ) from error
    return _checked(function, textwrap.dedent(source))


def _checked(function: Any, text: str) -> ast.FunctionDef:
    """Return the definition in a text; check that it is that of the function."""
    found: ast.stmt | None = None
    with suppress(SyntaxError):
        found = next(iter(parsed(text).body), None)
    if isinstance(found, ast.FunctionDef) and defines(found, function):
        return found
    raise CodegenError(
        f"{function.__module__}.{function.__name__} cannot be compiled: its source file changed since it was "
        "imported. Restart the process."
    )


def _loaded(target: ast.expr) -> ast.expr:
    """Return the target of an assignment as an expression that reads it."""
    return parsed_expression(ast.unparse(target))
