# SPDX-License-Identifier: BSD-3-Clause
"""Traced values that a function of another library turns into plain numbers, which have no derivative.

Note [plain numbers]
math.fsum(x), scipy.optimize.brentq(f, 0, 1) and statistics.NormalDist(x, 1) ask a traced array for its number by
float(), and what they compute from it is a plain number. It is right, and a guard watches it; a derivative through it
would lack a part without a word. So what asked is noted, and a derivative by an array on which such a number depends is
an error. Where the user's own code asks, by float(x), the number has its derivative (conversions.py); if it then goes
to C code that does not compute, such as a logger's or an ndarray's, nothing is noted. Where the source says that the
number is only compared, made a whole number or shown, as in `while math.sqrt(r @ r) > tolerance`, no derivative goes
through it.
"""

import cmath
import collections
import functools
import math
import types
from typing import TYPE_CHECKING, Any

import numpy as np

from tracejit.ir import Where
from tracejit.record.patches import original
from tracejit.record.places import user_location
from tracejit.util.frames import library_call, place_of, source_of, user_frame
from tracejit.util.named_tuples import NamedTuple

if TYPE_CHECKING:
    import ast

_WITHOUT_DERIVATIVE = ("ceil", "floor", "isclose", "isfinite", "isinf", "isnan", "trunc", "ulp")
_OF_MATH = frozenset(
    {
        function
        for name, function in [*vars(math).items(), *vars(cmath).items()]
        if isinstance(function, types.BuiltinFunctionType) and name not in _WITHOUT_DERIVATIVE
    }
)
_LIBRARIES = ("scipy", "statistics", "random", "fractions")
_OF_WHOLE_NUMBERS = frozenset({*_WITHOUT_DERIVATIVE, "int", "bool", "range", "print", "str", "repr"})
_OF_NUMBERS = frozenset({*[function.__name__ for function in _OF_MATH], "abs", "min", "max", "round"})
_OF_TEXTS = ("format", "debug", "info", "warning", "error")  # methods of texts and of loggers
_TupleField: Any = type(collections.namedtuple("_", "field").field)  # type: ignore[attr-defined]


class PlainNumber(NamedTuple):
    """A plain number that was made of a traced value.

    by        the function that asked for it, such as "math.exp", or the ndarray that it was written into
    where     the file and line of the user's code
    is_write  whether it was written into an ndarray
    """

    by: str
    where: Where
    is_write: bool = False


def note(array: Any) -> None:
    """Note who makes a plain number of a traced array."""
    asking = _asking() or _around(array._value.owner.calls)
    if asking is not None:
        array._value.owner.plain_numbers.setdefault(array._value, asking)


def computes(by: str) -> bool:
    """Return whether a function, by its name, computes with the numbers that it gets, and does not only take them."""
    return by.partition(".")[0] in (*_LIBRARIES, "math", "cmath")


def note_list(array: Any) -> None:
    """Note that the user's code makes a list of more elements than can have derivatives."""
    frame = user_frame()
    if frame is not None and not _decides(frame):
        note_use(array, "tolist")


def note_use(array: Any, what: str) -> None:
    """Note that `what`, such as a function of C, makes a plain number of a number that is computed from an array."""
    where = user_location()
    if where is not None and array._value is not None:
        array._value.owner.plain_numbers.setdefault(array._value, PlainNumber(what.removesuffix("()"), where))


def note_write(owner: Any, value: Any, data: np.ndarray, into: str) -> None:
    """Note that a traced value with these elements is written into an ndarray, where NumPy reads plain numbers."""
    if data.dtype.kind in "fc":
        owner.plain_numbers.setdefault(value, PlainNumber(into, user_location(), is_write=True))


def _asking() -> PlainNumber | None:
    """Return who asks for the number of an array: a function of a library, of `math` or `cmath`, or complex(x, y)."""
    called = library_call(_LIBRARIES)
    frame = user_frame() if called is None else called[1]
    if frame is None:
        return None
    expression, only_decides = _expression_of(frame.f_code, frame.f_lasti)
    where = frame.f_code.co_filename, frame.f_lineno
    if called is not None:
        return None if only_decides else PlainNumber(called[0], where)
    function = None if expression is None or only_decides else _of_math(expression, frame)
    if function is None:
        return None
    return PlainNumber(_name_of(function), where)


def _around(calls: Any) -> PlainNumber | None:
    """Return the function of a library that has called the code which asks, and computes with what that returns."""
    frame = user_frame()
    if frame is None or _decides(frame):
        return None
    while frame is not None and not calls.is_around(frame):
        name, around = library_call(_LIBRARIES, frame) or ("", None)
        if around is not None:
            where = around.f_code.co_filename, around.f_lineno
            return None if _decides(around) else PlainNumber(name, where)
        frame = frame.f_back
    return None


def _decides(frame: types.FrameType) -> bool:
    """Return whether the value of the expression that a frame is at only decides."""
    return _expression_of(frame.f_code, frame.f_lasti)[1]


def _name_of(function: Any) -> str:
    return function.__name__ if isinstance(function, type) else f"{function.__module__}.{function.__name__}"


def _of_math(expression: "ast.expr", frame: types.FrameType) -> Any:
    """Return the function of `math`, complex, or the float of a map, that an expression calls or passes on, or None."""
    import ast

    if isinstance(expression, ast.Call):
        called = _resolved(expression.func, frame)
        if called is float or called is complex:
            return called if called is complex else None
        if called is map and float in [_resolved(part, frame) for part in expression.args]:
            return float
        parts = [expression.func, *expression.args]  # the key of sorted() only decides
    else:
        parts = [*getattr(expression, "elts", ()), expression]
        if isinstance(
            _called_by(frame.f_locals.get(".0")), types.BuiltinFunctionType
        ):  # a comprehension over a map
            parts.append(ast.Name(".0"))
    for part in parts:
        part = part.value if isinstance(part, ast.Starred) else part
        if isinstance(part, ast.Call) and part is not expression and _resolved(part.func, frame) is map:
            found = _of_math(part, frame)
        else:
            found = _called_by(_resolved(part, frame))
        found = original(found)
        if found is float and part is not expression:
            return float
        if isinstance(found, types.BuiltinFunctionType) and found in _OF_MATH:
            return found
    return None


def _resolved(node: "ast.expr", frame: types.FrameType) -> Any:
    """Return what names, attributes and items stand for, without running code; None if that is not known."""
    import ast

    if isinstance(node, ast.Name):
        for names in (frame.f_locals, frame.f_globals, frame.f_builtins):
            if node.id in names:
                return names[node.id]
    elif isinstance(node, ast.Attribute):
        return _attribute(_resolved(node.value, frame), node.attr)
    elif isinstance(node, ast.Subscript):
        held, key = _resolved(node.value, frame), _constant(node.slice, frame)
        if type(held) is dict:
            return held.get(key)
        if type(held) in (list, tuple) and type(key) is int and -len(held) <= key < len(held):
            return held[key]
    elif isinstance(node, ast.Call) and len(node.args) == 2 and _resolved(node.func, frame) is getattr:
        return _attribute(_resolved(node.args[0], frame), _constant(node.args[1], frame))
    return None


def _constant(node: "ast.expr", frame: types.FrameType) -> Any:
    """Return the text or the number that an expression stands for, or None."""
    import ast

    value = node.value if isinstance(node, ast.Constant) else _resolved(node, frame)
    return value if type(value) in (str, int) else None


def _attribute(owner: Any, name: Any) -> Any:
    """Return an attribute of an object, or of its class."""
    import inspect

    if owner is None or not isinstance(name, str):
        return None
    found = inspect.getattr_static(owner, name, None)
    if isinstance(found, (types.MemberDescriptorType, _TupleField)):  # of __slots__, or of a named tuple
        return getattr(owner, name, None)
    return found


def _called_by(function: Any) -> Any:
    """Return the function that a function made of another one calls."""
    for _ in range(100):  # a chain without an end must not hang
        if isinstance(function, functools.partial):
            function = function.func
        elif isinstance(function, staticmethod):
            function = function.__func__
        elif isinstance(function, np.vectorize):
            function = function.pyfunc
        elif isinstance(function, map):
            function = function.__reduce__()[1][0]
        else:
            break
    return function


@functools.lru_cache(maxsize=1024)
def _expression_of(code: types.CodeType, at: int) -> "tuple[ast.expr | None, bool]":
    """Return the expression of an instruction, None if it is not known, and whether its value only decides."""
    import linecache

    from tracejit.util.parsing import parsed, parsed_expression  # with ast, as seldom as this is needed

    expression: ast.expr | None
    file, span = place_of(code, at)
    text = source_of(file, span)
    try:
        expression = parsed_expression(f"({text})")
    except SyntaxError:
        try:
            expression = getattr(parsed(text).body[0], "iter", None)  # Python 3.11 gives the whole of a loop
        except (SyntaxError, IndexError):
            expression = None
    return expression, span in _deciding("".join(linecache.getlines(file)))


def _is_text(node: Any) -> bool:
    return isinstance(getattr(node, "value", None), str)


@functools.lru_cache(maxsize=16)
def _deciding(source: str) -> frozenset[tuple[int | None, ...]]:
    """Return the spans of calls whose values are compared, made whole numbers or shown, and have no derivative."""
    import ast

    from tracejit.util.parsing import parsed

    try:
        tree = parsed(source)
    except SyntaxError:
        return frozenset()
    above = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    found = set()
    for call in above:
        node: ast.AST = call
        while isinstance(call, ast.Call) and (parent := above.get(node)) is not None:
            if isinstance(parent, (ast.Compare, ast.FormattedValue, ast.Expr)) or (
                node is getattr(parent, "test", None) or _is_text(getattr(parent, "left", None))
            ):
                found.add((call.lineno, call.end_lineno, call.col_offset, call.end_col_offset))
                break
            if isinstance(parent, ast.Call):
                called = ast.unparse(parent.func).rpartition(".")
                name = called[2] if called[0] in ("", "math", "np", "numpy") else ""
                if node is not parent.func and (name in _OF_WHOLE_NUMBERS or called[2] in _OF_TEXTS):
                    found.add((call.lineno, call.end_lineno, call.col_offset, call.end_col_offset))
                    break
                if name not in _OF_NUMBERS:
                    break
            elif not isinstance(parent, (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.IfExp, ast.Tuple)):
                break
            node = parent
    return frozenset(found)
