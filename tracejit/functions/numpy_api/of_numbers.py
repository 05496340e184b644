# SPDX-License-Identifier: BSD-3-Clause
"""Functions of Python's `math` in recorded code, where they are given elements of traced arrays.

Note [functions of numbers]
math.sin(x[0]) asks x[0] for its number, in float64 whatever the dtype of the array is, and gives a float of Python's.
So what is recorded here are operations in float64, and the result is a Number (record/number.py, Note [numbers of
arrays]): it takes the dtype of the arrays that it meets.

Where NumPy's functions give NaN or an infinity, those of math raise an error. So a guard says that the result is
finite, or for functions that are finite wherever their argument is, that the argument is: one guard for all of them,
also in a chain. Where the result was not finite in the recording, math itself has raised the error or let the value
pass. Then guards make sure that the arguments are such ones again.

Results are NumPy's, which may differ from those of math in the last bit.
"""

import math
import operator
from collections.abc import Callable, Collection, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np

from tracejit.array import dlarray
from tracejit.errors import TraceJitError
from tracejit.functions.elementwise import where
from tracejit.record import arithmetic, conversions, patches, recorder
from tracejit.record.guards import Decides
from tracejit.record.memory import is_private
from tracejit.record.number import Number
from tracejit.util.devices import on_host
from tracejit.util.named_tuples import NamedTuple

_FLOAT = np.dtype(np.float64)
_Compute = Callable[..., Any]
apply = recorder.apply
_PAIR = 2


class FunctionOfMath(NamedTuple):
    """The way in which a function of `math` is recorded.

    compute     takes its arguments, float64 arrays without axes or Python's numbers, and returns such an array
    by_argument whether the result is finite wherever the argument is
    is_total    whether it raises no error, whatever number it is given
    error       the class of all errors that it raises for finite arguments; None if there are several
    """

    compute: _Compute
    by_argument: bool = False
    is_total: bool = False
    error: type[Exception] | None = None


def _op(name: str) -> _Compute:
    return partial(apply, name)


def _power(x: Any, y: Any) -> Any:
    """Return a power; x**0.5 is a root in a program, and that of -0.0 is -0.0."""
    return apply("add", apply("pow", x, y), 0.0) if type(y) is float and y == _ROOT else apply("pow", x, y)


_ROOT = 0.5


def _fmod(x: Any, y: Any) -> Any:
    """Return the remainder with the sign of x; that of positive numbers is exact."""
    return apply("copysign", apply("mod", apply("abs", x), apply("abs", y)), x)


def _remainder(x: Any, y: Any) -> Any:
    """Return x less the multiple of y next to it, in steps that are exact."""
    size, divisor = apply("abs", x), apply("abs", y)
    rest = apply("mod", size, divisor)
    other = divisor - rest
    even = rest - 2.0 * apply("mod", 0.5 * (size - rest), divisor)
    nearest = where(rest < other, rest, where(rest > other, -other, even))
    return apply("copysign", 1.0, x) * nearest


def _hypot(*coordinates: Any) -> Any:
    return apply("abs", coordinates[0]) if len(coordinates) == 1 else reduce(_op("hypot"), coordinates)


FUNCTIONS: dict[str, FunctionOfMath] = {
    **{name: FunctionOfMath(_op(name), by_argument=True) for name in ("sin", "cos", "tan")},
    **{name: FunctionOfMath(_op(name), is_total=True) for name in ("tanh", "erf", "copysign", "cbrt")},
    **{
        name: FunctionOfMath(_op(name), error=OverflowError)
        for name in ("exp", "expm1", "exp2", "sinh", "cosh")
    },
    **{name: FunctionOfMath(_op(name), error=ValueError) for name in ("sqrt", "log2", "log10", "log1p")},
    **{
        f"a{name}": FunctionOfMath(_op(f"arc{name}"), error=ValueError)
        for name in ("sin", "cos", "cosh", "tanh")
    },
    **{f"a{name}": FunctionOfMath(_op(f"arc{name}"), is_total=True) for name in ("tan", "tan2", "sinh")},
    "fabs": FunctionOfMath(_op("abs"), is_total=True),
    "erfc": FunctionOfMath(_op("special.erfc"), is_total=True),
    "gamma": FunctionOfMath(_op("special.gamma")),
    "lgamma": FunctionOfMath(_op("special.gammaln")),
    "log": FunctionOfMath(_op("log"), error=ValueError),
    "pow": FunctionOfMath(_power),
    "hypot": FunctionOfMath(_hypot, is_total=True),
    "fmod": FunctionOfMath(_fmod, error=ValueError),
    "remainder": FunctionOfMath(_remainder, error=ValueError),
    "degrees": FunctionOfMath(lambda x: apply("mul", x, 180.0 / math.pi), is_total=True),
    "radians": FunctionOfMath(lambda x: apply("mul", x, math.pi / 180.0), is_total=True),
}
"""The functions whose results are floats, by name."""


class _Argument(NamedTuple):
    """An argument of a function.

    given       as it was given
    number      the number of Python's that it stands for
    array       of float64, without axes; None of an argument that is no traced one
    """

    given: Any
    number: Any
    array: Any


def _taken(args: Sequence[Any], options: Collection[str] = ()) -> list[_Argument] | None:
    """Return the arguments of a function; None if no array of this recording is among them, or something else is."""
    if options:  # which math refuses
        return None
    given = [_argument(x) for x in args]
    if all(x is None or x.array is None for x in given) or None in given:
        return None
    return given  # type: ignore[return-value]


def _argument(x: Any) -> _Argument | None:
    if type(x) in (float, int, bool):
        return _Argument(x, x, None)
    if recorder.is_number(x):
        return None if x.is_complex else _Argument(x, x._number, arithmetic.scalar(x, _FLOAT))
    if isinstance(x, np.generic) and x.dtype.kind in "biuf":
        return _Argument(x, x.item(), None)
    if type(x) is not dlarray or x._data.size != 1 or x._data.dtype.kind not in "biuf":
        return None
    if recorder.is_open(x) and x._value is not None and x._value.owner is not recorder.thread.recorder:
        return None
    array = x if x._data.dtype == _FLOAT else apply("cast", x, dtype=_FLOAT)
    array = apply("reshape", array, shape=()) if array._data.ndim else array
    if x._value is None and is_private(x):
        return _Argument(array, on_host(x._data).item(), None)
    array = array if array._format is None else recorder.wrap(array._data, None, array._value)
    return _Argument(x, on_host(x._data).item(), array)


def _operands(given: Sequence[_Argument]) -> list[Any]:
    return [_plain(x) if x.array is None else x.array for x in given]


def _plain(x: _Argument) -> Any:
    """Return an argument that is not traced, for an operation in float64."""
    return x.given if isinstance(x.given, (float, dlarray)) else float(x.number)


def _result(number: Any, array: Any, given: Sequence[_Argument]) -> Any:
    """Return a result as a Number: of arguments only if all that it is computed from are."""
    of_arguments = [x.given for x in given if recorder.is_number(x.given)]
    is_of_array = any(x.array is not None and not recorder.is_number(x.given) for x in given)
    return Number(number, array, None if is_of_array else arithmetic.sources_of(of_arguments))


def _answer(name: str, original: _Compute, *args: Any, **options: Any) -> Any:
    """Answer a function that gives a float."""
    given = _taken(args, options)
    if given is None:
        return NotImplemented
    function = FUNCTIONS[name]
    failed: Exception | None = None
    expected = math.nan
    try:
        expected = original(*[x.number for x in given])
    except (ValueError, OverflowError, ZeroDivisionError) as error:
        failed = error
    try:
        array = function.compute(*_operands(given))
    except (TraceJitError, OverflowError):  # SciPy is not there, or an integer is too large
        return NotImplemented
    number = float(on_host(array._data))
    current = recorder.thread.recorder
    if function.is_total or not current.has_values:
        return _result(number, array, given)
    is_usual = failed is None and math.isfinite(number) and math.isfinite(expected)
    if current.assumed and not is_usual:  # in a branch that this call does not take
        arithmetic.holds(apply("isfinite", array), f"math.{name}()")
        return _result(number, array, given)
    if is_usual:
        _note_finite(name, function, array, given)
        return _result(number, array, given)
    # The result is not finite. SciPy's gammaln(-inf) differs from lgamma(-inf) of math.
    is_same = math.isnan(number) if failed or math.isnan(expected) else number == expected
    is_exact = not (is_same or (failed is not None and math.isinf(number)))
    _note_arguments(name, function, array, given, failed is not None, is_exact)
    if failed is not None:
        raise failed from None
    return expected if is_exact else _result(number, array, given)


def _note_finite(name: str, function: FunctionOfMath, array: Any, given: Sequence[_Argument]) -> None:
    """Note as a guard that math raises no error, and that the result is finite."""
    current = recorder.thread.recorder
    watched = given[0].array if function.by_argument else array
    if arithmetic.is_for_this_call(watched):
        return
    # In a step of a loop, or a branch, guards may be dropped together with it.
    lasts = not (current.assumed or current.maps) and current.memories.begun is None
    if lasts and watched._value in current.finite:
        is_finite = True
    else:
        is_finite = arithmetic.is_finite(watched, f"math.{name}()", partial(_fail, function))
    if lasts and is_finite:
        current.finite.update((watched._value, array._value))


def _fail(function: FunctionOfMath) -> None:
    """Raise the error of a mapped function's observation, whose arguments are not known by themselves."""
    if function.error is OverflowError:
        raise OverflowError("math range error")
    raise ValueError("math domain error")


def _note_arguments(
    name: str, function: FunctionOfMath, array: Any, given: Sequence[_Argument], fails: bool, is_exact: bool
) -> None:
    """Note as guards that the arguments are such ones again for which a result is not finite.

    The first guard is that of all recordings: they may differ only after a guard by which they do.

    Args:
        name: of the function.
        function: how it is recorded.
        array: what is not finite.
        given: the arguments.
        fails: whether math raises an error.
        is_exact: whether the result is right for these arguments only.
    """
    what = f"math.{name}()"
    traced = [x for x in given if x.array is not None]
    if fails and recorder.thread.recorder.maps:
        return  # as a loop over the observations does
    arithmetic.holds(apply("isfinite", given[0].array if function.by_argument else array), what)
    for x in traced:
        arithmetic.holds(apply("isfinite", x.array), what)
    if all(math.isfinite(x.number) for x in given) and function.error is not None and not is_exact:
        return
    for x in sorted(traced, key=lambda x: math.isfinite(x.number)):
        if fails or is_exact or function.error is None or not math.isfinite(x.number):
            recorder.need_value(x.array, what)


def _logarithm(original: _Compute, *args: Any, **options: Any) -> Any:
    """Answer math.log, which divides the logarithms of a number and a base."""
    if len(args) != _PAIR:
        return _answer("log", original, *args, **options)
    if _taken(args, options) is None:
        return NotImplemented
    parts = [_answer("log", original, x) for x in args]
    first, second = [
        original(x) if part is NotImplemented else part for x, part in zip(args, parts, strict=True)
    ]
    return first / second


def _question(op: str, original: _Compute, *args: Any, **options: Any) -> Any:
    """Answer math.isnan and the like: the outcome is a guard."""
    given = _taken(args, options)
    if given is None or len(given) != 1:
        return NotImplemented
    return arithmetic.holds(apply(op, given[0].array), f"math.{op}()")


def _close(original: _Compute, *args: Any, rel_tol: Any = 1e-9, abs_tol: Any = 0.0, **options: Any) -> Any:
    """Answer math.isclose with tolerances that do not vary."""
    given = _taken(args, options)
    tolerances = (rel_tol, abs_tol)
    if given is None or len(given) != _PAIR or any(type(x) not in (float, int) or x < 0 for x in tolerances):
        return NotImplemented
    first, second = _operands(given)
    apart = apply("abs", apply("sub", second, first))
    near = apply("less_equal", apart, abs_tol)
    for x in (first, second):
        near = apply("logical_or", near, apply("less_equal", apart, apply("abs", apply("mul", x, rel_tol))))
    near = apply("logical_and", near, apply("isfinite", apart))
    return arithmetic.holds(apply("logical_or", apply("equal", first, second), near), "math.isclose()")


def _whole(op: str, original: _Compute, *args: Any, **options: Any) -> Any:
    """Answer math.floor and the like with an integer that varies, or have it be a guard."""
    given = _taken(args, options)
    if given is None or len(given) != 1:
        return NotImplemented
    x, kind = given[0].given, type(given[0].number)
    taken: tuple[type, ...] = (float, int, np.floating)
    if op == "trunc":  # which others of NumPy's numbers have not
        taken = (float, int) if recorder.is_number(x) else (float,)
    if not issubclass(kind, taken):
        return NotImplemented
    # As a float, which math makes of NumPy's integers.
    number = conversions.whole(x if recorder.is_number(x) else given[0].array, op)
    if number is not None:
        return number
    if kind is not float:
        return NotImplemented
    recorder.need_value(apply(op, given[0].array), f"math.{op}()", Decides.WHOLE)
    return original(given[0].number)


def _parts(original: _Compute, *args: Any, **options: Any) -> Any:
    """Answer math.modf: the fraction and the whole number, which both have the sign of the argument."""
    given = _taken(args, options)
    if given is None or len(given) != 1:
        return NotImplemented
    x = given[0].array
    _note_finite("modf", FUNCTIONS["sin"], x, given)
    if not math.isfinite(given[0].number):
        return NotImplemented
    whole = apply("copysign", apply("trunc", x), x)
    fraction = apply("copysign", apply("sub", x, whole), x)
    return tuple([_result(float(on_host(part._data)), part, given) for part in (fraction, whole)])


def _scaled(original: _Compute, *args: Any, **options: Any) -> Any:
    """Answer math.ldexp of a number that varies and an exponent that does not."""
    if len(args) != _PAIR:
        return NotImplemented
    exponent = (
        operator.index(args[1]) if recorder.is_number(args[1]) and isinstance(args[1], int) else args[1]
    )
    given = _taken(args[:1], options)
    if given is None or type(exponent) is not int or abs(exponent) > _LARGEST_EXPONENT:
        return original(args[0], exponent)
    array = apply("mul", given[0].array, 2.0**exponent)
    number = float(on_host(array._data))
    _note_finite("ldexp", FUNCTIONS["exp"], array, given)
    return _result(number, array, given) if math.isfinite(number) else original(args[0], exponent)


_LARGEST_EXPONENT = 1000


def _distance(original: _Compute, *args: Any, **options: Any) -> Any:
    """Answer math.dist of two points."""
    if len(args) != _PAIR:
        return NotImplemented
    points = [
        list(x) if type(x) in (list, tuple) or (type(x) is dlarray and x._data.ndim == 1) else None
        for x in args
    ]
    if None in points or len(points[0]) != len(points[1]) or not points[0]:  # type: ignore[arg-type]
        return NotImplemented
    given = _taken([*points[0], *points[1]], options)  # type: ignore[misc]
    if given is None:
        return NotImplemented
    count, operands = len(given) // 2, _operands(given)
    array = _hypot(*[apply("sub", x, y) for x, y in zip(operands[:count], operands[count:], strict=True)])
    return _result(float(on_host(array._data)), array, given)


def install() -> None:
    """Have functions of `math` answered while something is recorded."""
    for name in FUNCTIONS:
        patches.answer_numbers(math, name, partial(_answer, name))
    patches.answer_numbers(math, "log", _logarithm)
    for name in ("isnan", "isinf", "isfinite"):
        patches.answer_numbers(math, name, partial(_question, name))
    for name in ("floor", "ceil", "trunc"):
        patches.answer_numbers(math, name, partial(_whole, name))
    patches.answer_numbers(math, "isclose", _close)
    patches.answer_numbers(math, "modf", _parts)
    patches.answer_numbers(math, "ldexp", _scaled)
    patches.answer_numbers(math, "dist", _distance)
