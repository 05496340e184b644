# SPDX-License-Identifier: BSD-3-Clause
"""Python numbers as inputs of a trace: an argument that takes other values from call to call.

A Number stands for a Python number while a function is recorded. Arithmetic with it is recorded in the precision that
Python has (float64, int64), and where it meets an array it takes the array's dtype as a Python number does. The
outcome of a comparison is a guard. Anything that needs the number itself (an index, math.sqrt, a format) gets it; the
number is then *needed*, and its value selects the trace again (Note [numbers that vary]).
"""

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.ir import weak_array
from tracejit.record import recorder
from tracejit.record.guards import Decides

# Note [numbers that vary]
# Python's numbers and the graph's agree where nothing overflows and nothing is raised. Conditions for that are guards:
# a divisor is not 0, the base of a power is positive and the power finite, integers are so small that the result
# fits 64 bits. An operation without such conditions (int ** int, a complex result) needs the numbers.

_INT, _FLOAT = np.dtype(np.int64), np.dtype(np.float64)
_EXACT = 1 << 53  # integers below are exact in float64
_SUM, _PRODUCT = 1 << 62, 1 << 31  # operands below give results that fit
_PLAIN = (int, float, bool, np.float64)
_Operation = Callable[[Any, Any], Any]


class Number:
    """A number that is an input of a trace, or was computed from one.

    It says that it is an instance of the Python type that it stands for.
    """

    __slots__ = ("_array", "_bounds", "_kind", "_number", "_sources")

    def __init__(self, number: Any, array: Any, sources: frozenset[int]) -> None:
        self._number = number
        self._kind = type(number)
        self._array = array  # a traced scalar of float64 or int64
        self._sources = sources  # the arguments, by the number of their leaf, that it comes from
        self._bounds: set[int] = set()

    @property
    def __class__(self) -> Any:
        return self._kind

    @__class__.setter
    def __class__(self, kind: Any) -> None:
        raise TypeError("the class of a number cannot be set")

    def needed(self, what: str) -> Any:
        """Return the number itself, for `what`."""
        number = recorder.need_value(self._array, what)
        owner = self._array._value.owner
        for source in self._sources:
            owner.needed.setdefault(source, (what, recorder.user_location()))
        return self._kind(number.item())

    def weak(self, dtypes: list[np.dtype]) -> Any:
        """Return the array that stands for the number where it meets arrays of some dtypes."""
        if self._kind is np.float64:
            return self._array
        if self._kind is int and any(dtype.kind in "iu" and dtype != _INT for dtype in dtypes):
            # NumPy raises an error if it does not fit the type.
            return recorder.wrap(weak_array(self.needed("arithmetic with small integers"), dtypes))
        dtype = weak_array(self._kind(1), dtypes).dtype
        return (
            self._array
            if dtype == self._array._data.dtype
            else recorder.apply("cast", self._array, dtype=dtype)
        )

    def below(self, bound: int) -> bool:
        """Return whether the number's size is below a bound, which is then a guard."""
        if not self._number.__abs__() < bound:
            return False
        if not any(guarded <= bound for guarded in self._bounds):
            self._bounds.add(bound)
            _holds(
                recorder.apply("less", recorder.apply("abs", self._array), bound), "the size of an integer"
            )
        return True

    # What Python and NumPy ask of a number

    def __bool__(self) -> bool:
        return bool(recorder.need_value(self._array, "bool()", Decides.TRUTH))

    def __int__(self) -> int:
        if self._kind is int or not math.isfinite(self._number):
            return int(self.needed("int()"))
        return int(recorder.need_value(self._array, "int()", Decides.WHOLE))

    def __index__(self) -> int:
        if self._kind is not int:
            raise TypeError(f"'{self._kind.__name__}' object cannot be interpreted as an integer")
        return int(self.needed("index"))

    def __float__(self) -> float:
        return float(self.needed("float()"))

    def __complex__(self) -> complex:
        return complex(self.needed("complex()"))

    def __hash__(self) -> int:
        return hash(self.needed("hash()"))

    def __repr__(self) -> str:
        return repr(self.needed("repr()"))

    def __str__(self) -> str:
        return str(self.needed("str()"))

    def __format__(self, spec: str) -> str:
        return format(self.needed("format()"), spec)

    def __round__(self, *digits: Any) -> Any:
        return round(self.needed("round()"), *digits)

    def __trunc__(self) -> int:
        return int(self)

    def __divmod__(self, other: Any) -> Any:
        return (self // other, self % other)

    def __rdivmod__(self, other: Any) -> Any:
        return (other // self, other % self)

    def __getattr__(self, name: str) -> Any:
        if not hasattr(self._number, name):
            raise AttributeError(f"'{self._kind.__name__}' object has no attribute '{name}'")
        return getattr(self.needed(name), name)

    def __copy__(self) -> "Number":
        return self

    def __deepcopy__(self, memo: Any) -> "Number":
        return self

    def __reduce__(self) -> Any:
        return (self._kind, (self.needed("pickle"),))

    @property
    def dtype(self) -> np.dtype:
        """The dtype, which only NumPy scalars have."""
        if self._kind is not np.float64:
            raise AttributeError(f"'{self._kind.__name__}' object has no attribute 'dtype'")
        return _FLOAT

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.needed("conversion to an ndarray"), dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        op = _UFUNCS.get(ufunc)
        if op is not None and method == "__call__" and not options and self._kind is not int:
            return Number(ufunc(np.float64(self._number)), recorder.apply(op, self._array), self._sources)
        if any(recorder.is_array(x) for x in inputs):
            first = next(x for x in inputs if recorder.is_array(x))
            return first.__array_ufunc__(ufunc, method, *inputs, **options)
        plain = [x.needed(f"np.{ufunc.__name__}") if type(x) is Number else x for x in inputs]
        return getattr(ufunc, method)(*plain, **options)

    # Arithmetic

    def __pos__(self) -> "Number":
        return self

    def __neg__(self) -> Any:
        if self._kind is int and not self.below(_SUM):
            return -self.needed("- of a large integer")
        return Number(-self._number, recorder.apply("neg", self._array), self._sources)

    def __abs__(self) -> Any:
        if self._kind is int and not self.below(_SUM):
            return abs(self.needed("abs() of a large integer"))
        return Number(abs(self._number), recorder.apply("abs", self._array), self._sources)

    def __add__(self, other: Any) -> Any:
        return _computed("add", operator.add, self, other)

    def __radd__(self, other: Any) -> Any:
        return _computed("add", operator.add, other, self)

    def __sub__(self, other: Any) -> Any:
        return _computed("sub", operator.sub, self, other)

    def __rsub__(self, other: Any) -> Any:
        return _computed("sub", operator.sub, other, self)

    def __mul__(self, other: Any) -> Any:
        return _computed("mul", operator.mul, self, other)

    def __rmul__(self, other: Any) -> Any:
        return _computed("mul", operator.mul, other, self)

    def __truediv__(self, other: Any) -> Any:
        return _computed("div", operator.truediv, self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _computed("div", operator.truediv, other, self)

    def __floordiv__(self, other: Any) -> Any:
        return _computed("floordiv", operator.floordiv, self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _computed("floordiv", operator.floordiv, other, self)

    def __mod__(self, other: Any) -> Any:
        return _computed("mod", operator.mod, self, other)

    def __rmod__(self, other: Any) -> Any:
        return _computed("mod", operator.mod, other, self)

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        if modulus is not None:
            return pow(self.needed("pow()"), other, modulus)
        return _computed("pow", operator.pow, self, other)

    def __rpow__(self, other: Any) -> Any:
        return _computed("pow", operator.pow, other, self)

    def __and__(self, other: Any) -> Any:
        return self.needed("&") & other

    def __rand__(self, other: Any) -> Any:
        return other & self.needed("&")

    def __or__(self, other: Any) -> Any:
        return self.needed("|") | other

    def __ror__(self, other: Any) -> Any:
        return other | self.needed("|")

    def __xor__(self, other: Any) -> Any:
        return self.needed("^") ^ other

    def __rxor__(self, other: Any) -> Any:
        return other ^ self.needed("^")

    def __lshift__(self, other: Any) -> Any:
        return self.needed("<<") << other

    def __rlshift__(self, other: Any) -> Any:
        return other << self.needed("<<")

    def __rshift__(self, other: Any) -> Any:
        return self.needed(">>") >> other

    def __rrshift__(self, other: Any) -> Any:
        return other >> self.needed(">>")

    def __invert__(self) -> Any:
        return ~self.needed("~")

    # Comparisons

    def __eq__(self, other: Any) -> Any:
        return _compared("equal", operator.eq, self, other)

    def __ne__(self, other: Any) -> Any:
        return _compared("not_equal", operator.ne, self, other)

    def __lt__(self, other: Any) -> Any:
        return _compared("less", operator.lt, self, other)

    def __le__(self, other: Any) -> Any:
        return _compared("less_equal", operator.le, self, other)

    def __gt__(self, other: Any) -> Any:
        return _compared("greater", operator.gt, self, other)

    def __ge__(self, other: Any) -> Any:
        return _compared("greater_equal", operator.ge, self, other)


# Ufuncs that give a float64 for a Python float.
_UFUNCS: dict[Any, str] = {
    np.sqrt: "sqrt", np.exp: "exp", np.log: "log", np.expm1: "expm1", np.log1p: "log1p", np.sin: "sin",
    np.cos: "cos", np.tanh: "tanh", np.square: "square", np.absolute: "abs",
}  # fmt: skip


def _holds(condition: Any, what: str) -> bool:
    return bool(recorder.need_value(condition, what, Decides.TRUTH))


def _number(x: Any) -> Any:
    return x._number if type(x) is Number else x


def _needed(what: str, *numbers: Any) -> None:
    for x in numbers:
        if type(x) is Number:
            x.needed(what)


def _as(x: Any, dtype: np.dtype) -> Any:
    """Return an operand as a scalar array."""
    if type(x) is not Number:
        return np.asarray(x, dtype)
    return x._array if x._array._data.dtype == dtype else recorder.apply("cast", x._array, dtype=dtype)


def _below(x: Any, bound: int) -> bool:
    return x.below(bound) if type(x) is Number else abs(x) < bound


def _computed(name: str, operation: _Operation, x: Any, y: Any) -> Any:
    """Return an operation of two numbers, one of which is a Number."""
    for other in (x, y):
        if recorder.is_array(other):
            return NotImplemented
        if type(other) is not Number and type(other) not in _PLAIN:
            _needed(name, x, y)
            return operation(_number(x), _number(y))
    a, b = _number(x), _number(y)
    try:
        result = operation(a, b)
    except Exception:
        _needed(f"an error of {name}", x, y)
        raise
    if type(result) not in (int, float, np.float64) or not _agrees(name, x, y, type(result)):
        _needed(name, x, y)
        return result
    dtype = _INT if type(result) is int else _FLOAT
    array = recorder.apply(name, _as(x, dtype), _as(y, dtype))
    if (
        name == "pow"
        and type(result) is float
        and not _holds(recorder.apply("isfinite", array), "the size of a power")
    ):
        _needed(name, x, y)
        return result
    sources = frozenset().union(*(part._sources for part in (x, y) if type(part) is Number))
    return Number(result, array, sources)


def _agrees(name: str, x: Any, y: Any, kind: type) -> bool:
    """Return whether the graph computes what Python does, which may be a guard (Note [numbers that vary])."""
    if kind is np.float64:
        return True
    if name in ("div", "floordiv", "mod") and type(y) is Number and not _holds(_nonzero(y), "a division"):
        return False
    whole = all(issubclass(type(_number(part)), int) for part in (x, y))
    if not whole:
        if name != "pow":
            return True
        return _holds(recorder.apply("greater", x._array, 0), "a power") if type(x) is Number else x > 0
    if name == "pow":
        return False
    bound = {"mul": _PRODUCT, "div": _EXACT}.get(name, _SUM)
    return _below(x, bound) and _below(y, bound)


def _nonzero(x: Number) -> Any:
    return recorder.apply("not_equal", x._array, 0)


def _compared(name: str, operation: _Operation, x: Number, y: Any) -> Any:
    if type(y) is not Number and type(y) not in _PLAIN:
        if isinstance(y, (np.ndarray, np.generic)):
            return operation(x.needed("a comparison"), y)
        return NotImplemented
    result = operation(x._number, _number(y))
    kinds = {issubclass(type(_number(part)), int) for part in (x, y)}
    if kinds == {True, False} and not all(
        _below(part, _EXACT) for part in (x, y) if issubclass(type(_number(part)), int)
    ):
        _needed("a comparison", x, y)
        return result
    if kinds == {True} and type(y) is not Number and not _below(y, _SUM):
        _needed("a comparison", x, y)
        return result
    dtype = _INT if kinds == {True} else _FLOAT
    _holds(recorder.apply(name, _as(x, dtype), _as(y, dtype)), "a comparison")
    return result


recorder.register_number_class(Number)
