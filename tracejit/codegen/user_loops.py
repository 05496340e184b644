# SPDX-License-Identifier: BSD-3-Clause
"""Loops that a user has written, as the text of a kernel.

Note [user loops]
A kernel knows pointers, sizes and numbers, no arrays. So the user's function is translated statement by statement: an
element ``x[i, j]`` becomes ``x[i * n1 + j]``, a size ``x.shape[1]`` becomes ``n1``, ``math.exp`` becomes ``exp_f64``,
and names of the module that hold numbers become these numbers. Equal sizes have one name, so that a text fits all sizes
that are equal in the same places. An index is checked, and counts from the end if it is negative, as in NumPy; one out
of range is an error of the call. The check is left out where the bounds of the loops show that it holds. Bounds are
compared as sums of a size and a number (Bounds).
"""

import ast
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from tracejit.aval import Aval
from tracejit.codegen.names import INDENT, NAME, SUFFIXES
from tracejit.errors import ArgumentError
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.parsing import parsed_expression

FUNCTIONS = {
    name: name.replace("fabs", "abs")
    for name in (
        "exp", "expm1", "exp2", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "sin", "cos", "tan", "sinh", "cosh",
        "tanh", "erf", "floor", "ceil", "trunc", "fabs",
    )
}  # fmt: skip
_INVERSE = {f"{short}{name}": f"arc{name}" for short in ("a", "arc") for name in ("sin", "cos", "tan")}
_ARITHMETIC = (
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift,
    ast.RShift,
)  # fmt: skip
_COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
# Names that the text of a kernel has a meaning for.
_TAKEN = re.compile(
    r"(size|part)_\d+|fault|place|args|(at|user)_\w*|\w+_[fiub]\d+(x\d+)?|[fiub]\d+|checked_index|KERNEL"
)
_MOST_PRODUCTS = 4  # of a power


class Bounds(NamedTuple):
    """The bounds of an integer: it is at least `low`, and at most the size of a name, or 0 without one, plus `over`."""

    low: int | None = None
    size: str | None = ""
    over: int | None = None


class Source(NamedTuple):
    """A function of the user's.

    name        for messages
    tree        its definition
    names       what its global names and those of enclosing functions hold
    line        of its definition, with the file
    """

    name: str
    tree: ast.FunctionDef
    names: Mapping[str, Any]
    file: str
    line: int


def text(source: Source, inputs: Sequence[Aval], outputs: Sequence[Aval]) -> tuple[str, tuple[int, ...]]:
    """Return the text of a kernel for arrays of these sizes, in which NAME stands for its name, and its integers.

    The arguments of the kernel are the integers, which are sizes, the addresses of the inputs and of the outputs, and
    that of an integer that it sets where an index is out of range.

    Raises:
        ArgumentError: if the function has what cannot be translated.
    """
    return _Translator(source, inputs, outputs).run()


class _Expressions:
    """Translates expressions."""

    def __init__(self, source: Source, inputs: Sequence[Aval], outputs: Sequence[Aval]) -> None:
        self.source = source
        parameters = [parameter.arg for parameter in source.tree.args.args]
        self.arrays = dict(zip(parameters, (*inputs, *outputs), strict=True))
        self.outputs = parameters[len(inputs) :]
        sizes = sorted({size for aval in self.arrays.values() for size in aval.shape})
        self.sizes = {size: f"size_{i}" for i, size in enumerate(sizes)}
        floats = {aval.dtype for aval in self.arrays.values() if aval.dtype.kind == "f"}
        self.suffix = "f32" if floats == {np.dtype(np.float32)} else "f64"
        self.assigned = _assigned(source.tree)
        self.known: dict[str, Bounds] = {}  # of the variables of the loops around
        self.named_sizes: dict[str, str] = {}
        self.lines: list[str] = []

    def pointer(self, name: str) -> str:
        return _name_in_kernel(name) if self.arrays[name].shape or name in self.outputs else f"at_{name}"

    def size(self, size: int) -> str:
        return self.sizes[size]

    def refuse(self, node: ast.AST, what: str = "") -> NoReturn:
        """Raise the error for what a kernel cannot have."""
        line = self.source.line + getattr(node, "lineno", 1) - 1
        raise ArgumentError(
            f"{self.source.name}: a kernel cannot have {what or repr(ast.unparse(node))}, at "
            f"{self.source.file}:{line}. It has loops over ranges, conditions, numbers and elements of arrays, and "
            "functions of math; use DifferentiableFunction for other code."
        )

    def number(self, node: ast.expr) -> int | None:
        """Return an integer that is written as one."""
        try:
            value = ast.literal_eval(node)
        except ValueError:
            return None
        return value if type(value) is int else None

    def bounds(self, node: ast.expr) -> Bounds:
        """Return what is known of an integer."""
        number = self.number(node)
        if number is not None:
            return Bounds(number, None, number)
        if isinstance(node, ast.Name) and node.id in self.known:
            return self.known[node.id]
        size = self.one_size(node)
        if size is not None:
            return Bounds(0, size, 0)
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            left, by = self.bounds(node.left), self.number(node.right)
            if by is not None:
                by = by if isinstance(node.op, ast.Add) else -by
                low = None if left.low is None else left.low + by
                return Bounds(low, left.size, None if left.over is None else left.over + by)
        return Bounds()

    def one_size(self, node: ast.expr) -> str | None:
        """Return the name of a size that is written as x.shape[0], len(x), or x.size of a vector."""
        if isinstance(node, ast.Name):
            return self.named_sizes.get(node.id)
        if isinstance(node, ast.Subscript):
            sizes, at = self.sizes_of(node.value), self.number(node.slice)
            return sizes[at] if sizes and at is not None and -len(sizes) <= at < len(sizes) else None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len":
            (x,) = node.args if len(node.args) == 1 else (None,)
            sizes = self.sizes_of_array(x)
            return sizes[0] if sizes else None
        if isinstance(node, ast.Attribute) and node.attr == "size":
            sizes = self.sizes_of_array(node.value)
            return sizes[0] if sizes and len(sizes) == 1 else None
        return None

    def sizes_of(self, node: ast.expr) -> list[str] | None:
        """Return the names of the sizes of x.shape."""
        return (
            self.sizes_of_array(node.value)
            if isinstance(node, ast.Attribute) and node.attr == "shape"
            else None
        )

    def sizes_of_array(self, node: ast.expr | None) -> list[str] | None:
        if isinstance(node, ast.Name) and node.id in self.arrays:
            return [self.size(size) for size in self.arrays[node.id].shape]
        return None

    def element(self, node: ast.Subscript) -> tuple[str, str]:
        """Return the name of an array and the place of an element in it."""
        if not (isinstance(node.value, ast.Name) and node.value.id in self.arrays):
            self.refuse(node)
        name = node.value.id
        shape = self.arrays[name].shape
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if any(isinstance(part, (ast.Slice, ast.Starred)) for part in parts) or len(parts) != len(shape):
            self.refuse(node, f"{ast.unparse(node)!r}, which is no element of {name}, with {len(shape)} axes")
        place = ""
        for part, size in zip(parts, shape, strict=True):
            index = self.index(part, self.size(size))
            place = index if not place else f"({place}) * {self.size(size)} + {index}"
        return name, place or "0"

    def index(self, node: ast.expr, size: str) -> str:
        """Return an index within an axis, checked where it may be out of range."""
        value, bounds = self.value(node), self.bounds(node)
        if (
            bounds.low is not None
            and bounds.low >= 0
            and bounds.size == size
            and bounds.over is not None
            and bounds.over < 0
        ):
            return f"({value})" if isinstance(node, ast.BinOp) else value
        return f"checked_index({value}, {size}, fault)"

    def value(self, node: ast.expr) -> str:
        """Return the text of an expression."""
        method = getattr(self, f"of_{type(node).__name__.lower()}", None)
        if method is None:
            self.refuse(node)
        return str(method(node))

    def of_constant(self, node: ast.Constant) -> str:
        return self.literal(node, node.value)

    def literal(self, node: ast.AST, value: Any) -> str:
        if isinstance(value, np.generic):
            value = value.item()
        if type(value) is bool or type(value) is int:
            return repr(value)
        if type(value) is not float:
            self.refuse(node)
        shown = repr(value) if math.isfinite(value) else f"float({str(value)!r})"
        if not math.isfinite(value):
            self.refuse(node, "a number that is not finite")
        return f"{self.suffix}({shown})"

    def of_name(self, node: ast.Name) -> str:
        if node.id in self.arrays:
            if self.arrays[node.id].shape or node.id in self.outputs:
                self.refuse(node, f"the whole array {node.id!r}")
            return _name_in_kernel(node.id)
        if node.id in self.assigned:
            return _name_in_kernel(node.id)
        if node.id not in self.source.names:
            self.refuse(node)
        return self.literal(node, self.source.names[node.id])

    def of_attribute(self, node: ast.Attribute) -> str:
        size = self.one_size(node)
        if size is not None:
            return size
        sizes = self.sizes_of_array(node.value)
        if sizes is not None and node.attr == "size":
            return f"({' * '.join(sizes) or '1'})"
        if sizes is not None and node.attr == "ndim":
            return str(len(sizes))
        module = self.module(node.value)
        if module is not None:
            return self.literal(node, getattr(module, node.attr, None))
        self.refuse(node)

    def module(self, node: ast.expr) -> Any:
        value = self.source.names.get(node.id) if isinstance(node, ast.Name) else None
        return value if value is math or value is np else None

    def of_subscript(self, node: ast.Subscript) -> str:
        size = self.one_size(node)
        if size is not None:
            return size
        name, place = self.element(node)
        return f"{_name_in_kernel(name)}[{place}]"

    def of_binop(self, node: ast.BinOp) -> str:
        left = self.value(node.left)
        if isinstance(node.op, ast.Pow):
            return self.power(left, node.right)
        if not isinstance(node.op, _ARITHMETIC):
            self.refuse(node)
        operator = ast.unparse(ast.BinOp(ast.Name("x"), node.op, ast.Name("y")))[2:-2]
        return f"({left} {operator} {self.value(node.right)})"

    def power(self, base: str, exponent: ast.expr) -> str:
        number = self.number(exponent)
        if number is not None and 1 <= number <= _MOST_PRODUCTS:
            return "(" + " * ".join([base] * number) + ")"
        suffix = self.suffix
        return f"pow_{suffix}({suffix}({base}), {suffix}({self.value(exponent)}))"

    def of_unaryop(self, node: ast.UnaryOp) -> str:
        if isinstance(node.op, ast.Invert):
            self.refuse(node)
        operator = {ast.USub: "-", ast.UAdd: "+", ast.Not: "not "}[type(node.op)]
        return f"({operator}{self.value(node.operand)})"

    def of_compare(self, node: ast.Compare) -> str:
        if not all(isinstance(operator, _COMPARISONS) for operator in node.ops):
            self.refuse(node)
        values = [self.value(part) for part in (node.left, *node.comparators)]
        signs = [ast.unparse(ast.Compare(ast.Name("x"), [op], [ast.Name("y")]))[2:-2] for op in node.ops]
        pairs = [f"{a} {sign} {b}" for a, sign, b in zip(values, signs, values[1:], strict=False)]
        return f"({' and '.join(pairs)})"

    def of_boolop(self, node: ast.BoolOp) -> str:
        word = " and " if isinstance(node.op, ast.And) else " or "
        return f"({word.join(f'({self.value(part)} != 0)' for part in node.values)})"

    def of_ifexp(self, node: ast.IfExp) -> str:
        return f"({self.value(node.body)} if {self.value(node.test)} else {self.value(node.orelse)})"

    def of_call(self, node: ast.Call) -> str:
        size = self.one_size(node)
        if size is not None:
            return size
        if node.keywords:
            self.refuse(node)
        values = [self.value(argument) for argument in node.args]
        if isinstance(node.func, ast.Name) and node.func.id not in self.source.names:
            return self.builtin(node, node.func.id, values)
        function = node.func
        name = (
            function.attr
            if isinstance(function, ast.Attribute) and self.module(function.value) is not None
            else ""
        )
        name = _INVERSE.get(name, FUNCTIONS.get(name, ""))
        if not name or len(values) != 1:
            self.refuse(node)
        return f"{name}_{self.suffix}({self.suffix}({values[0]}))"

    def builtin(self, node: ast.Call, name: str, values: list[str]) -> str:
        if name == "abs" and len(values) == 1:
            return f"abs({values[0]})"
        if name in ("min", "max") and len(values) == 2:
            first, second = values
            sign = "<" if name == "min" else ">"
            return f"({second} if {second} {sign} {first} else {first})"
        if name in ("int", "float") and len(values) == 1:
            return f"{'i64' if name == 'int' else self.suffix}({values[0]})"
        self.refuse(node)


class _Translator(_Expressions):
    """Translates statements."""

    def run(self) -> tuple[str, tuple[int, ...]]:
        words = len(self.sizes)
        head = [f"{name} = args[{i}]" for i, name in enumerate(self.sizes.values())]
        for i, (name, aval) in enumerate(self.arrays.items()):
            is_read = name not in self.outputs
            suffix = SUFFIXES[aval.dtype]
            place = f"args[{words + i}]"
            scope = i - len(self.arrays) + len(self.outputs)
            pointer = f"read_{suffix}({place})" if is_read else f"write_{suffix}({place}, {scope})"
            head.append(f"{self.pointer(name)} = {pointer}")
            if not aval.shape and is_read:
                head.append(f"{_name_in_kernel(name)} = {self.pointer(name)}[0]")
        head.append(f"fault = write_i64(args[{words + len(self.arrays)}], {len(self.outputs)})")
        self.lines = [f"{INDENT}{line}" for line in head]
        for name in self.outputs:
            aval = self.arrays[name]
            count = " * ".join(self.size(size) for size in aval.shape) or "1"
            suffix = SUFFIXES[aval.dtype]
            self.add(f"for place in range({count}):", 1)
            self.add(f"{self.pointer(name)}[place] = {suffix}(0)", 2)
        body = self.source.tree.body
        if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            body = body[1:]  # a docstring
        self.block(body, 1)
        return f"def {NAME}(args):\n" + "".join(f"{line}\n" for line in self.lines), tuple(self.sizes)

    def add(self, line: str, depth: int) -> None:
        self.lines.append(INDENT * depth + line)

    def block(self, statements: Sequence[ast.stmt], depth: int) -> None:
        for statement in statements:
            method = getattr(self, f"_{type(statement).__name__.lower()}", None)
            if method is None:
                self.refuse(statement, f"a statement {type(statement).__name__.lower()!r}")
            method(statement, depth)
        if not statements:
            self.add("pass", depth)

    def _pass(self, node: ast.Pass, depth: int) -> None:
        self.add("pass", depth)

    def _break(self, node: ast.Break, depth: int) -> None:
        self.add("break", depth)

    def _continue(self, node: ast.Continue, depth: int) -> None:
        self.add("continue", depth)

    def _return(self, node: ast.Return, depth: int) -> None:
        if node.value is not None:
            self.refuse(node, "a result; it writes into its outputs")
        self.add("return", depth)

    def _assign(self, node: ast.Assign, depth: int) -> None:
        target, value = node.targets[0], node.value
        if len(node.targets) > 1:
            self.refuse(node)
        if isinstance(target, ast.Tuple):
            values = self.sizes_of(value) or [self.value(part) for part in getattr(value, "elts", [])]
            if len(values) != len(target.elts):
                self.refuse(node)
            for part, size in zip(target.elts, self.sizes_of(value) or (), strict=False):
                self.note_size(part, size)
            names = [f"part_{i}" for i in range(len(values))]
            self.add(f"{', '.join(names)} = {', '.join(values)}", depth)
            for part, name in zip(target.elts, names, strict=True):
                self.store(part, name, depth)
            return
        self.note_size(target, self.one_size(value))
        self.store(target, self.value(value), depth)

    def note_size(self, target: ast.expr, size: str | None) -> None:
        """Note that a name, which is assigned here only, is a size."""
        if isinstance(target, ast.Name) and size is not None and self.assigned.count(target.id) == 1:
            self.named_sizes[target.id] = size

    def _augassign(self, node: ast.AugAssign, depth: int) -> None:
        loaded = parsed_expression(ast.unparse(node.target))
        loaded = ast.copy_location(loaded, node.target)
        both = ast.copy_location(ast.BinOp(loaded, node.op, node.value), node)
        self.store(node.target, self.value(both), depth)

    def store(self, target: ast.expr, value: str, depth: int) -> None:
        if isinstance(target, ast.Name):
            if target.id in self.arrays:
                self.refuse(target, f"an assignment to the array {target.id!r}; write {target.id}[i] = ...")
            self.add(f"{_name_in_kernel(target.id)} = {value}", depth)
        elif isinstance(target, ast.Subscript):
            name, place = self.element(target)
            if name not in self.outputs:
                self.refuse(target, f"an assignment to the input {name!r}")
            self.add(
                f"{_name_in_kernel(name)}[{place}] = {SUFFIXES[self.arrays[name].dtype]}({value})", depth
            )
        else:
            self.refuse(target)

    def _if(self, node: ast.If, depth: int) -> None:
        self.add(f"if {self.value(node.test)}:", depth)
        self.block(node.body, depth + 1)
        if node.orelse:
            self.add("else:", depth)
            self.block(node.orelse, depth + 1)

    def _while(self, node: ast.While, depth: int) -> None:
        if node.orelse:
            self.refuse(node, "an else of a loop")
        self.add(f"while {self.value(node.test)}:", depth)
        self.block(node.body, depth + 1)

    def _for(self, node: ast.For, depth: int) -> None:
        call, target = node.iter, node.target
        if node.orelse or not (
            isinstance(target, ast.Name) and isinstance(call, ast.Call) and not call.keywords
            and isinstance(call.func, ast.Name) and call.func.id == "range"
        ):  # fmt: skip
            self.refuse(node, f"a loop over {ast.unparse(call)!r}")
        start, stop, step = {
            1: (ast.Constant(0), *call.args, ast.Constant(1)), 2: (*call.args, ast.Constant(1)), 3: tuple(call.args),
        }.get(len(call.args), (None, None, None))  # fmt: skip
        if start is None or stop is None or step is None:
            self.refuse(node, f"a loop over {ast.unparse(call)!r}")
        self.add(
            f"for {_name_in_kernel(target.id)} in range({', '.join(map(self.value, call.args))}):", depth
        )
        bounds = Bounds() if target.id in _assigned(node) else self.of_range(start, stop, step)
        around, self.known = self.known, {**self.known, target.id: bounds}
        self.block(node.body, depth + 1)
        self.known = around

    def of_range(self, start: ast.expr, stop: ast.expr, step: ast.expr) -> Bounds:
        """Return what is known of the variable of a loop over a range."""
        number = self.number(step)
        first, end = self.bounds(start), self.bounds(stop)
        if number is not None and number > 0:
            return Bounds(first.low, end.size, None if end.over is None else end.over - 1)
        if number is not None and number < 0:
            return Bounds(None if end.low is None else end.low + 1, first.size, first.over)
        return Bounds()


def _name_in_kernel(name: str) -> str:
    """Return the name in a kernel of a name of the user's."""
    return f"user_{name}" if _TAKEN.fullmatch(name) else name


def _assigned(tree: ast.FunctionDef | ast.For) -> list[str]:
    """Return the names that a function, or the body of a loop, assigns, once for each assignment."""
    nodes = [node for statement in tree.body for node in ast.walk(statement)]
    return [node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
