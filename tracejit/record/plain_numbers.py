# SPDX-License-Identifier: BSD-3-Clause
"""Traced values that a function of another library turns into plain numbers, which have no derivative.

Note [plain numbers]
math.exp(x) and scipy.optimize.brentq(f, 0, 1) ask a traced array for its number by float(), and what they compute from
it is a plain number. It is right, and a guard watches it; a derivative through it would lack a part without a word. So
what asked is noted, and a derivative by an array on which such a number depends is an error. Where the user's own code
asks, by float(x), the number is a constant on purpose.
"""

import cmath
import math
import types
from functools import lru_cache
from typing import Any

from tracejit.ir import Where
from tracejit.util.frames import place_of, scipy_call, user_frame
from tracejit.util.named_tuples import NamedTuple

_WITHOUT_DERIVATIVE = ("ceil", "floor", "isclose", "isfinite", "isinf", "isnan", "trunc", "ulp")
_OF_MATH = frozenset(
    {
        function
        for name, function in [*vars(math).items(), *vars(cmath).items()]
        if isinstance(function, types.BuiltinFunctionType) and name not in _WITHOUT_DERIVATIVE
    }
)


class PlainNumber(NamedTuple):
    """A plain number that was made of a traced value.

    by      the function that asked for it, such as "math.exp"
    where   the file and line of the user's code
    """

    by: str
    where: Where


def note(array: Any) -> None:
    """Note who makes a plain number of a traced array."""
    asking = _asking()
    if asking is not None:
        array._value.owner.plain_numbers.setdefault(array._value, asking)


def _asking() -> PlainNumber | None:
    """Return who asks for the number of an array, if that is a function of SciPy, or of `math` or `cmath`."""
    scipy = scipy_call()
    if scipy is not None:
        return PlainNumber(*scipy)
    frame = user_frame()
    if frame is None:
        return None
    first, *others = _names_of_call(frame.f_code, frame.f_lasti)
    function = {**frame.f_globals, **frame.f_locals}.get(first)
    for name in others:
        function = getattr(function, "__dict__", {}).get(name)
    if isinstance(function, types.BuiltinFunctionType) and function in _OF_MATH:
        return PlainNumber(
            f"{function.__module__}.{function.__name__}", (frame.f_code.co_filename, frame.f_lineno)
        )
    return None


@lru_cache(maxsize=1024)
def _names_of_call(code: types.CodeType, at: int) -> tuple[str, ...]:
    """Return the name, and those of attributes, by which an instruction calls a function; "" if they are not known."""
    import ast  # as seldom as this is needed

    try:
        expression = ast.parse(f"({_source_of(*place_of(code, at))})", mode="eval").body
    except SyntaxError:
        return ("",)
    names: list[str] = []
    function = expression.func if isinstance(expression, ast.Call) else expression
    while isinstance(function, ast.Attribute):
        names.append(function.attr)
        function = function.value
    if not isinstance(expression, ast.Call) or not isinstance(function, ast.Name):
        return ("",)
    return (function.id, *reversed(names))


def _source_of(file: str, span: tuple[int | None, ...] | None) -> str:
    """Return the text of a span of a file, or nothing where either is unknown."""
    import linecache

    if span is None or None in span:
        return ""
    first, last, start, stop = (number or 0 for number in span)
    lines = [line.encode() for line in linecache.getlines(file)[first - 1 : last]]
    if not lines:
        return ""
    lines[-1] = lines[-1][:stop]
    lines[0] = lines[0][start:]
    return b"".join(lines).decode(errors="replace")
