# SPDX-License-Identifier: BSD-3-Clause
"""Elementwise functions: NumPy's names on dlarrays, labels aligned, recorded where a trace is open.

Nearly all of them are one op each, so they are made from the records of ops. The docstring is the record's line of
documentation, with the formula and the adjoint.
"""

import math
from collections.abc import Callable
from typing import Any, TypeVar, overload

import numpy as np

from tracejit.array import apply, as_array, dlarray, signed
from tracejit.aval import BOOL, wanted_dtype
from tracejit.errors import ArgumentError, ArgumentValueError
from tracejit.functions.formats import operand
from tracejit.functions.halves import rounded_to_loop
from tracejit.functions.taking import nonzero
from tracejit.ops import OPS
from tracejit.record import integer_powers, recorder, views
from tracejit.util.arguments import integer

copy: Callable[..., dlarray] = views.copy
Unary = Callable[[Any], dlarray]
Binary = Callable[[Any, Any], dlarray]
_Function = TypeVar("_Function", bound=Callable[..., Any])

_MOST_DECIMALS = 308
_NOT_GIVEN: Any = object()

_ONE = """Return {doc}.

    After the semicolon stands the cotangent of `x`, where ct is the cotangent of the result y.

    Args:
        x: dlarray of any format, ndarray or number.

    Returns:
        dlarray of the sizes and the format of `x`; dtype as NumPy's ``np.{numpy}``.

    Raises:
        ArgumentError: if `x` is not an array, a number or a list of numbers.
        DTypeError: for a dtype that arrays cannot have, or that the function is not defined for.

    Examples:
        >>> import tracejit as tj
        >>> tj.{numpy}({call})
        {result}
    """

_TWO = """Return {doc}.

    After the semicolon stand the cotangents of `x` and `y`, where ct is the cotangent of the result.

    Args:
        x: dlarray of any format, ndarray or number.
        y: likewise. Formatted operands are aligned by label, others by position from the last axis.

    Returns:
        dlarray of the broadcast sizes and the combined format; dtype as NumPy's ``np.{numpy}``.

    Raises:
        ArgumentError: if an operand is not an array, a number or a list of numbers.
        DTypeError: for a dtype that arrays cannot have, or that the function is not defined for.
        DimsError: where the sizes of an axis are neither equal nor 1.

    Examples:
        >>> import tracejit as tj
        >>> tj.{numpy}({call})
        {result}
    """

_EXAMPLES = {  # name: arguments of a call, and the result as it is shown, in two lines
    "add": ("[1.0, -7.0], 2.0", "2 dlarray float64", "[ 3. -5.]"),
    "subtract": ("[1.0, -7.0], 2.0", "2 dlarray float64", "[-1. -9.]"),
    "multiply": ("[1.0, -7.0], 2.0", "2 dlarray float64", "[  2. -14.]"),
    "divide": ("[1.0, -7.0], 2.0", "2 dlarray float64", "[ 0.5 -3.5]"),
    "floor_divide": ("[1.0, -7.0], 2.0", "2 dlarray float64", "[ 0. -4.]"),
    "remainder": ("[1.0, -7.0], 2.0", "2 dlarray float64", "[1. 1.]"),
    "maximum": ("[1.0, -7.0], 2.0", "2 dlarray float64", "[2. 2.]"),
    "minimum": ("[1.0, -7.0], 2.0", "2 dlarray float64", "[ 1. -7.]"),
    "arctan2": ("[1.0, 1.0], [0.0, -1.0]", "2 dlarray float64", "[1.57079633 2.35619449]"),
    "negative": ("[2.0, -0.5]", "2 dlarray float64", "[-2.   0.5]"),
    "square": ("[2.0, -0.5]", "2 dlarray float64", "[4.   0.25]"),
    "reciprocal": ("[2.0, -0.5]", "2 dlarray float64", "[ 0.5 -2. ]"),
    "abs": ("[2.0, -0.5]", "2 dlarray float64", "[2.  0.5]"),
    "sign": ("[2.0, -0.5]", "2 dlarray float64", "[ 1. -1.]"),
    "floor": ("[1.5, -1.5, 2.5]", "3 dlarray float64", "[ 1. -2.  2.]"),
    "ceil": ("[1.5, -1.5, 2.5]", "3 dlarray float64", "[ 2. -1.  3.]"),
    "trunc": ("[1.5, -1.5, 2.5]", "3 dlarray float64", "[ 1. -1.  2.]"),
    "rint": ("[1.5, -1.5, 2.5]", "3 dlarray float64", "[ 2. -2.  2.]"),
    "exp": ("[0.0, 1.0]", "2 dlarray float64", "[1.         2.71828183]"),
    "expm1": ("[0.0, 1.0]", "2 dlarray float64", "[0.         1.71828183]"),
    "exp2": ("[0.0, 1.0]", "2 dlarray float64", "[1. 2.]"),
    "log": ("[1.0, 10.0]", "2 dlarray float64", "[0.         2.30258509]"),
    "log2": ("[1.0, 8.0]", "2 dlarray float64", "[0. 3.]"),
    "log10": ("[1.0, 1000.0]", "2 dlarray float64", "[0. 3.]"),
    "log1p": ("[0.0, 1.0]", "2 dlarray float64", "[0.         0.69314718]"),
    "sqrt": ("[4.0, 2.0]", "2 dlarray float64", "[2.         1.41421356]"),
    "cbrt": ("[8.0, -27.0]", "2 dlarray float64", "[ 2. -3.]"),
    "sin": ("[0.0, 1.0]", "2 dlarray float64", "[0.         0.84147098]"),
    "cos": ("[0.0, 1.0]", "2 dlarray float64", "[1.         0.54030231]"),
    "tan": ("[0.0, 1.0]", "2 dlarray float64", "[0.         1.55740772]"),
    "arcsin": ("[0.0, 0.5]", "2 dlarray float64", "[0.         0.52359878]"),
    "arccos": ("[0.0, 0.5]", "2 dlarray float64", "[1.57079633 1.04719755]"),
    "arctan": ("[0.0, 1.0]", "2 dlarray float64", "[0.         0.78539816]"),
    "sinh": ("[0.0, 1.0]", "2 dlarray float64", "[0.         1.17520119]"),
    "cosh": ("[0.0, 1.0]", "2 dlarray float64", "[1.         1.54308063]"),
    "tanh": ("[0.0, 1.0]", "2 dlarray float64", "[0.         0.76159416]"),
    "arcsinh": ("[0.0, 1.0]", "2 dlarray float64", "[0.         0.88137359]"),
    "arccosh": ("[1.0, 2.0]", "2 dlarray float64", "[0.        1.3169579]"),
    "arctanh": ("[0.0, 0.5]", "2 dlarray float64", "[0.         0.54930614]"),
    "erf": ("[0.0, 1.0]", "2 dlarray float64", "[0.         0.84270079]"),
    "equal": ("[1.0, 2.0, 3.0], 2.0", "3 dlarray bool", "[False  True False]"),
    "not_equal": ("[1.0, 2.0, 3.0], 2.0", "3 dlarray bool", "[ True False  True]"),
    "less": ("[1.0, 2.0, 3.0], 2.0", "3 dlarray bool", "[ True False False]"),
    "less_equal": ("[1.0, 2.0, 3.0], 2.0", "3 dlarray bool", "[ True  True False]"),
    "greater": ("[1.0, 2.0, 3.0], 2.0", "3 dlarray bool", "[False False  True]"),
    "greater_equal": ("[1.0, 2.0, 3.0], 2.0", "3 dlarray bool", "[False  True  True]"),
    "logical_and": ("[True, True, False], [True, False, False]", "3 dlarray bool", "[ True False False]"),
    "logical_or": ("[True, True, False], [True, False, False]", "3 dlarray bool", "[ True  True False]"),
    "logical_xor": ("[True, True, False], [True, False, False]", "3 dlarray bool", "[False  True False]"),
    "logical_not": ("[True, False]", "2 dlarray bool", "[False  True]"),
    "bitwise_and": ("[5, 6], 3", "2 dlarray int64", "[1 2]"),
    "bitwise_or": ("[5, 6], 3", "2 dlarray int64", "[7 7]"),
    "bitwise_xor": ("[5, 6], 3", "2 dlarray int64", "[6 5]"),
    "invert": ("[0, 5]", "2 dlarray int64", "[-1 -6]"),
    "isnan": ("[1.0, float('inf'), float('nan')]", "3 dlarray bool", "[False False  True]"),
    "isinf": ("[1.0, float('inf'), float('nan')]", "3 dlarray bool", "[False  True False]"),
    "isfinite": ("[1.0, float('inf'), float('nan')]", "3 dlarray bool", "[ True False False]"),
}


def _named(function: _Function, name: str, op: str, text: str) -> _Function:
    function.__name__ = function.__qualname__ = name
    call, *result = _EXAMPLES[name]
    function.__doc__ = text.format(doc=OPS[op].doc, numpy=name, call=call, result="\n        ".join(result))
    return function


def _unary(name: str, op: str | None = None) -> Unary:
    """Return the public function of an op of one operand; `op` where its name is not NumPy's."""
    op = op or name

    def function(x: Any) -> dlarray:
        return apply(op, x)

    return _named(function, name, op, _ONE)


def _binary(name: str, op: str | None = None) -> Binary:
    """Return the public function of an op of two operands; `op` where its name is not NumPy's."""
    op = op or name

    def function(x: Any, y: Any) -> dlarray:
        return apply(op, x, y)

    return _named(function, name, op, _TWO)


add = _binary("add")
subtract = _binary("subtract", "sub")
multiply = _binary("multiply", "mul")
divide = _binary("divide", "div")
floor_divide = _binary("floor_divide", "floordiv")
remainder = _binary("remainder", "mod")
maximum = _binary("maximum")
minimum = _binary("minimum")
arctan2 = _binary("arctan2")

negative = _unary("negative", "neg")
square = _unary("square")
reciprocal = _unary("reciprocal")
abs = _unary("abs")
sign = _unary("sign")
floor = _unary("floor")
ceil = _unary("ceil")
trunc = _unary("trunc")
rint = _unary("rint")

exp = _unary("exp")
expm1 = _unary("expm1")
exp2 = _unary("exp2")
log = _unary("log")
log2 = _unary("log2")
log10 = _unary("log10")
log1p = _unary("log1p")
sqrt = _unary("sqrt")
cbrt = _unary("cbrt")
sin = _unary("sin")
cos = _unary("cos")
tan = _unary("tan")
arcsin = _unary("arcsin")
arccos = _unary("arccos")
arctan = _unary("arctan")
sinh = _unary("sinh")
cosh = _unary("cosh")
tanh = _unary("tanh")
arcsinh = _unary("arcsinh")
arccosh = _unary("arccosh")
arctanh = _unary("arctanh")
erf = _unary("erf")

equal = _binary("equal")
not_equal = _binary("not_equal")
less = _binary("less")
less_equal = _binary("less_equal")
greater = _binary("greater")
greater_equal = _binary("greater_equal")
logical_and = _binary("logical_and")
logical_or = _binary("logical_or")
logical_xor = _binary("logical_xor")
logical_not = _unary("logical_not")
bitwise_and = _binary("bitwise_and")
bitwise_or = _binary("bitwise_or")
bitwise_xor = _binary("bitwise_xor")
invert = _unary("invert")
isnan = _unary("isnan")
isinf = _unary("isinf")
isfinite = _unary("isfinite")


def positive(x: Any) -> dlarray:
    """Return a copy of x, as a dlarray; ct.

    Args:
        x: dlarray of any format, ndarray or number; not of bools.

    Returns:
        dlarray of the sizes, the format and the dtype of `x`.

    Raises:
        ArgumentError: if `x` is not an array, a number or a list of numbers.
        DTypeError: for bools.

    Examples:
        >>> import tracejit as tj
        >>> tj.positive([1.0, -2.0])
        2 dlarray float64
        [ 1. -2.]
    """
    return copy(signed(as_array(x, "positive"), "positive"))


def power(x: Any, y: Any) -> dlarray:
    """Return x ** y; ct y x**(y-1) (0 where y = 0), ct x**y log x (0 where x = 0 < y).

    Args:
        x: dlarray of any format, ndarray or number.
        y: likewise. Formatted operands are aligned by label, others by position from the last axis.

    Returns:
        dlarray of the broadcast sizes and the combined format; dtype as NumPy's ``np.power``.

    Raises:
        DimsError: where the sizes of an axis are neither equal nor 1.

    Examples:
        >>> import tracejit as tj
        >>> tj.power([1.0, 2.0, 3.0], 2)
        3 dlarray float64
        [1. 4. 9.]
    """
    if type(y) in (int, float) and y == 2 and recorder.is_array(x) and x._data.dtype.kind in "fc":
        return apply("square", x)
    return apply("pow", x, y)


@overload
def where(condition: Any, x: Any, y: Any) -> dlarray: ...
@overload
def where(condition: Any) -> tuple[dlarray, ...]: ...
def where(condition: Any, x: Any = _NOT_GIVEN, y: Any = _NOT_GIVEN) -> dlarray | tuple[dlarray, ...]:
    """Return x where the condition holds and y elsewhere; ct masked by the condition.

    The way to write a decision on array values so that it is part of the trace. The cotangent is
    selected, never multiplied, so an infinite derivative in the branch that is not taken does no harm.

    Args:
        condition: bool (or number: not 0) dlarray, ndarray or bool.
        x: dlarray, ndarray or number; without `x` and `y` the places are returned where the condition holds.
        y: likewise. Formatted operands are aligned by label, others by position from the last axis.

    Returns:
        dlarray of the broadcast sizes and the combined format, in the common dtype of `x` and `y`; or, of the condition
        alone, what nonzero returns.

    Raises:
        DimsError: where the sizes of an axis are neither equal nor 1.
        ArgumentError: if one of `x` and `y` is missing.

    Examples:
        >>> import tracejit as tj
        >>> x = tj.dlarray([-1.0, 2.0])
        >>> tj.where(x > 0, x, 0.1 * x)
        2 dlarray float64
        [-0.1  2. ]
    """
    condition = as_array(condition, "where", "condition")
    if x is _NOT_GIVEN or y is _NOT_GIVEN:
        if x is not y:
            raise ArgumentValueError(
                "where: one of x and y is missing; pass both, or neither for the places where the condition holds."
            )
        return nonzero(condition)
    if condition.dtype != bool:
        # As bool it takes no part in the promotion of Python numbers among x and y.
        condition = apply("cast", condition, dtype=BOOL)
    return apply("where", condition, _wrapped(x, y), _wrapped(y, x))


def _wrapped(x: Any, other: Any) -> Any:
    """Return a Python integer that does not fit the integers it meets with its last bits, as np.where does."""
    dtype = getattr(other, "dtype", None)
    if type(x) is not int or not isinstance(dtype, np.dtype) or dtype.kind not in "iu":
        return x
    limits = np.iinfo(dtype)
    if limits.min <= x <= limits.max or not -(2**63) <= x < 2**63:
        return x
    return np.int64(x).astype(dtype)


def clip(x: Any, min: Any = None, max: Any = None) -> dlarray:
    """Return minimum(maximum(x, min), max); ct where x lies between, half of it at a bound.

    Args:
        x: dlarray of any format, ndarray or number.
        min: lower bound: dlarray, ndarray, number, or None for no bound.
        max: upper bound, likewise.

    Returns:
        dlarray of the broadcast sizes and the combined format.

    Raises:
        DimsError: where sizes do not align.

    Examples:
        >>> import tracejit as tj
        >>> tj.clip([-2.0, 0.5, 2.0], -1, 1)
        3 dlarray float64
        [-1.   0.5  1. ]
    """
    given = result = as_array(x, "clip")
    if min is not None and not _is_no_bound(result, min, -1):
        result = apply("maximum", result, operand("clip", "min", min))
    if max is not None and not _is_no_bound(result, max, 1):
        result = apply("minimum", result, operand("clip", "max", max))
    return copy(result) if result is given else result


def _is_no_bound(x: dlarray, bound: Any, sign: int) -> bool:
    """Return whether a bound is an integer which the array's integers cannot be beyond, as NumPy asks it.

    Args:
        x: the array.
        bound: lower if `sign` is -1, upper if it is 1; of a number that varies the answer is a guard.
    """
    is_varying = recorder.is_number(bound) and isinstance(bound, int)
    if x.dtype.kind not in "iu" or not (is_varying or type(bound) is int):
        return False
    limits = np.iinfo(x.dtype)
    if is_varying and x.dtype.itemsize == 8 and (sign > 0 or limits.min):
        return False  # it is one of these itself
    return bool(bound >= limits.max if sign > 0 else bound <= limits.min)


def round(x: Any, decimals: int = 0) -> dlarray:
    """Return x rounded to `decimals` decimal places, halves to even; no derivative.

    Args:
        x: dlarray of any format, ndarray or number.
        decimals: number of places after the decimal point; negative for places before it.

    Returns:
        dlarray of the sizes, the format and the dtype of `x`.

    Raises:
        ArgumentError: if `decimals` is not an integer.

    Examples:
        >>> import tracejit as tj
        >>> tj.round([1.234, 2.5], 1)
        2 dlarray float64
        [1.2 2.5]
    """
    decimals = integer("round", "decimals", decimals)
    if not -_MOST_DECIMALS <= decimals <= _MOST_DECIMALS:
        raise ArgumentError(
            f"round: decimals must be from {-_MOST_DECIMALS} to {_MOST_DECIMALS}, not {decimals}: numbers have no more."
        )
    array = as_array(x, "round")
    if decimals == 0:
        return (
            copy(array)
            if array.dtype.kind in "iu"
            else rounded_to_loop(np.rint, (array,), apply("rint", array))
        )
    signed(array, "round")
    if array.dtype.kind == "c":
        return apply("complex_of", *[round(apply(part, array), decimals) for part in ("real", "imag")])
    if array.dtype.kind != "f":
        if decimals > 0:
            return copy(array)
        return cast(round(cast(array, np.float64), decimals), array.dtype)
    scale = 10.0 ** math.fabs(decimals)
    if decimals > 0:
        return apply("div", apply("rint", apply("mul", array, scale)), scale)
    return apply("mul", apply("rint", apply("div", array, scale)), scale)


def cast(x: Any, dtype: Any) -> dlarray:
    """Return x in another dtype; ct in the dtype of x (none through integers and bools).

    Args:
        x: dlarray of any format, ndarray or number.
        dtype: float64, float32, complex128, complex64, bool or an integer type, in any spelling that NumPy takes.

    Returns:
        dlarray of the sizes and the format of `x`; a copy if it has the dtype already.

    Raises:
        DTypeError: for any other dtype.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> tj.cast([1.7, -1.7], np.int64)
        2 dlarray int64
        [ 1 -1]
    """
    wanted = wanted_dtype("cast", dtype)
    array = as_array(x, "cast")
    return copy(array) if array.dtype == wanted else apply("cast", array, dtype=wanted)


def stop_gradient(x: Any) -> dlarray:
    """Return x as a constant for dlgradient; no derivative.

    Unlike extractdata it leaves `x` on the trace, so that it is right under acceleration.

    Args:
        x: dlarray of any format, ndarray or number.

    Returns:
        dlarray of the sizes, the format and the dtype of `x`.

    Raises:
        ArgumentError: if `x` is not an array, a number or a list of numbers.

    Examples:
        >>> import tracejit as tj
        >>> tj.dlfeval(lambda x: tj.dlgradient(x * tj.stop_gradient(x), x), tj.dlarray(3.0))
        scalar dlarray float64
        3.0
    """
    return apply("stop_gradient", x)


recorder.check_powers_with(integer_powers.check)
