# SPDX-License-Identifier: BSD-3-Clause
"""Arithmetic and comparisons of numbers that are inputs of a trace.

Note [numbers that vary]
Python's numbers and the graph's agree where nothing overflows and nothing is raised. Conditions for that are guards: a
divisor is not 0, a shift is not negative, the base of a power is positive or its exponent is whole, a power is finite,
integers are so small that the result fits 64 bits. An operation without such conditions (a power of two integers that
both vary, one that is complex) needs the numbers. NumPy's numbers are promoted, overflow and divide by zero as its
arrays do. The graph does the same, so they need no guards.
Complex numbers are computed from numbers that vary (1j * k), and never vary themselves.
"""

import errno
import operator
import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tracejit.aval import NUMBERS, NUMPY_SCALARS, SUPPORTED_DTYPES
from tracejit.ir import weak_array
from tracejit.record import monitor, recorder
from tracejit.record.demands import demand
from tracejit.record.guards import Decides
from tracejit.util.devices import on_host
from tracejit.util.uninterrupted import is_of_handler

INT, FLOAT, COMPLEX, BOOL = map(np.dtype, (np.int64, np.float64, np.complex128, np.bool_))
_UINT64 = np.dtype(np.uint64)
_DTYPES = {bool: BOOL, int: INT, float: FLOAT, complex: COMPLEX}
EXACT = 1 << 53  # integers below are exact in float64
SUM, PRODUCT = 1 << 62, 1 << 31  # operands below give results that fit
_PLAIN = NUMBERS | NUMPY_SCALARS | {bool, complex}
_COMPLEX_KINDS = (complex, np.complexfloating)
_SAME_FOR_ALL_NUMBERS = (str, bytes, type(None), type, list, tuple, dict, set)
_Operation = Callable[[Any, Any], Any]

is_number = recorder.is_number


def holds(condition: Any, what: str) -> bool:
    """Return whether a traced condition is true, which is then a guard."""
    return bool(recorder.need_value(condition, what, Decides.TRUTH))


def number_of(x: Any) -> Any:
    """Return the number that an operand stands for, or the operand."""
    return x._number if is_number(x) else x


def needed(what: str, *numbers: Any, drops: bool = True) -> None:
    """Note that `what` needs the values of those of some operands that vary; it `drops` their derivatives."""
    for x in numbers:
        if is_number(x):
            x.needed(what, drops)


def sources_of(numbers: Sequence[Any]) -> frozenset[int] | None:
    """Return the arguments that the result of an operation on numbers comes from; None if any comes from an array."""
    sources = [x._sources for x in numbers]
    return None if None in sources else frozenset().union(*sources)


def scalar(x: Any, dtype: np.dtype) -> Any:
    """Return an operand as a scalar array."""
    if not is_number(x):
        return np.asarray(x, dtype)
    return x._array if x._array._data.dtype == dtype else recorder.apply("cast", x._array, dtype=dtype)


def _below(x: Any, bound: int) -> bool:
    return bool(x.below(bound) if is_number(x) else abs(x) < bound)


def _result_number(result: Any, array: Any, *operands: Any) -> Any:
    """Return the number that an operation of numbers gave."""
    numbers = [x for x in operands if is_number(x)]
    return type(numbers[0])(result, array, sources_of(numbers))


def computed(name: str, operation: _Operation, x: Any, y: Any) -> Any:
    """Return the result of an operation on two numbers; at least one of them varies."""
    for other in (x, y):
        if recorder.is_array(other) or isinstance(other, np.ndarray):
            return NotImplemented
        if not is_number(other) and type(other) not in _PLAIN:
            needed(name, x, y)
            return operation(number_of(x), number_of(y))
    if monitor.current.trace is None:
        return _computed(name, operation, x, y)
    profile, trace = monitor.pause()  # which would be told of each call
    try:
        return _computed(name, operation, x, y)
    finally:
        monitor.go_on(profile, trace)


def _computed(name: str, operation: _Operation, x: Any, y: Any) -> Any:
    a, b = number_of(x), number_of(y)
    if recorder.thread.recorder is None:  # another thread has got it, where nothing is recorded
        needed(name, x, y)
        return operation(a, b)
    try:
        result = operation(a, b)
    except Exception:
        if {type(a), type(b)} <= {int, float, bool} and _agrees(name, operation, x, y) and name == "pow":
            is_finite(recorder.apply(name, scalar(x, FLOAT), scalar(y, FLOAT)), _SIZE, _refuse_power)
        needed(f"an error of {name}", x, y, drops=False)
        raise
    kind = type(result)
    # 1j * np.float64(2) is a number of Python's.
    if kind is not complex and (type(a) in NUMPY_SCALARS or type(b) in NUMPY_SCALARS):
        array = (
            recorder.apply(name, x, y) if kind in NUMPY_SCALARS and _has_rule(name, x, y, result) else None
        )
        if array is None or array._data.dtype != result.dtype:
            needed(name, x, y)
            return result
        return _result_number(result, array, x, y)
    if kind not in _DTYPES or not _agrees(name, operation, x, y):
        needed(name, x, y)
        return result
    if kind is complex and name == "pow":  # of a negative number
        needed(name, x, y)
        return result
    dtype = _DTYPES[kind]
    array = recorder.apply(name, scalar(x, dtype), scalar(y, dtype))
    is_power = name == "pow" and kind is float
    if is_power and not is_finite(array, _SIZE, _refuse_power):
        needed(name, x, y)
        return result
    return _result_number(result, array, x, y)


_SIZE = "the size of a power"


def is_finite(array: Any, what: str, fail: Callable[[], None]) -> bool:
    """Return whether an array without axes is finite, which is then a guard.

    In a mapped function it has to be for all observations: `fail` raises the error if it is not.
    """
    if is_for_this_call(array):
        return bool(np.isfinite(on_host(array._data)))
    return _is_met(recorder.apply("isfinite", array), what, fail)


def _is_met(condition: Any, what: str, fail: Callable[[], None]) -> bool:
    """Return whether a condition holds without which Python raises an error, as is_finite() does."""
    current = recorder.thread.recorder
    if current is None or not current.maps:
        return holds(condition, what)
    demand(condition, what, fail)
    return True


def is_for_this_call(array: Any) -> bool:
    """Return whether what an array decides needs no guard: no replay follows, and it is no array of observations."""
    current = recorder.thread.recorder
    return not recorder.steers(array) and (current is None or not current.maps)


def _refuse_power() -> None:
    raise OverflowError(errno.ERANGE, os.strerror(errno.ERANGE))


def _agrees(name: str, operation: _Operation, x: Any, y: Any) -> bool:
    """Return whether the graph computes what Python does, which may be a guard (Note [numbers that vary]).

    Recordings may differ only after a guard by which they do: so it is also asked where Python raises an error.
    """
    if name in ("div", "floordiv", "mod") and is_number(y):
        by_zero = partial(operation, 1, y._kind(0))
        if is_for_this_call(y._array):
            return bool(y._number != 0)
        if not _is_met(recorder.apply("not_equal", y._array, 0), "a division", by_zero):
            return False
    whole = all(issubclass(type(number_of(part)), int) for part in (x, y))
    if not whole:
        if name != "pow":
            return True
        if any(isinstance(number_of(part), complex) for part in (x, y)):
            return False
        if not is_number(x):
            return bool(x > 0)
        if not is_number(y) and float(y).is_integer():  # as in x**2, also of a negative number
            by_zero = partial(operation, 0.0, y)
            return bool(y >= 0 or _is_met(recorder.apply("not_equal", x._array, 0), "a power", by_zero))
        return holds(recorder.apply("greater", x._array, 0), "a power")
    if name == "pow":
        return _is_followed_power(x, y)
    if name in ("left_shift", "right_shift"):
        return _is_followed_shift(name, x, y)
    if name == "mul":
        return _is_followed_product(x, y)
    bound = EXACT if name == "div" else SUM
    return _below(x, bound) and _below(y, bound)


def _is_followed_product(x: Any, y: Any) -> bool:
    """Return whether the product of two integers fits 64 bits, for all that the guards admit."""
    if _below(x, PRODUCT) and _below(y, PRODUCT):
        return True
    varying, fixed = (x, y) if is_number(x) else (y, x)
    return not is_number(fixed) and bool(fixed == 0 or varying.below(SUM // abs(fixed)))


def _is_followed_power(x: Any, y: Any) -> bool:
    """Return whether the graph computes a power of two integers as Python does, for all that the guards admit.

    It is an integer that has to fit 64 bits, as n**2 does for small n, or a float where the exponent is below 0.
    """
    if is_number(x) and is_number(y):
        return False
    if y < 0:
        if not is_number(x):
            return bool(0 < abs(x) < EXACT)
        by_zero: Callable[[], None] = partial(operator.pow, 0, y)
        return _is_met(recorder.apply("not_equal", x._array, 0), "a power", by_zero)
    if is_number(x):
        return bool(x.below(SUM if y < 2 else 1 << _SUM_BITS // y))
    base = abs(x)
    return bool(base < 2 or y.below(_SUM_BITS // (base - 1).bit_length() + 1))


_SUM_BITS = SUM.bit_length() - 1


def _is_followed_shift(name: str, x: Any, y: Any) -> bool:
    """Return whether the graph shifts an integer as Python does, for all that the guards admit."""
    if is_number(y):
        negative: Callable[[], None] = partial(operator.lshift, 1, -1)
        is_valid = _is_met(recorder.apply("greater_equal", y._array, 0), "a shift", negative)
    else:
        is_valid = y >= 0
    if not is_valid:
        return False
    if name == "right_shift":
        return _below(x, SUM) and _below(y, SUM)
    if not is_number(y):
        return bool(y < _SUM_BITS and x.below(SUM >> y))
    bits = _SUM_BITS // 2 if is_number(x) else x.bit_length()
    return bool(bits < _SUM_BITS and _below(x, 1 << bits) and y.below(_SUM_BITS - bits))


def _has_rule(name: str, x: Any, y: Any, result: Any) -> bool:
    """Return whether NumPy's operation of two numbers raises no error whatever their values are.

    It does for a negative power of integers, and for a Python integer that does not fit a type of few bits.
    """
    if name == "pow" and result.dtype.kind in "iu" and (is_number(y) or y < 0):
        return False
    varying = [x._kind for x in (x, y) if is_number(x)]
    return int not in varying or result.dtype.kind in "fc" or result.dtype == INT


def compared(name: str, operation: _Operation, x: Any, y: Any) -> Any:
    """Return a comparison of a number that varies with something; its outcome is a guard."""
    a, b = x._number, number_of(y)
    if not is_number(y) and type(y) not in _PLAIN:
        if recorder.is_array(y) or isinstance(y, np.ndarray):
            return NotImplemented
        if not isinstance(y, _SAME_FOR_ALL_NUMBERS):
            needed("a comparison", x, drops=False)
        return operation(a, b)
    result = operation(a, b)
    if is_for_this_call(x._array):
        return result
    if isinstance(a, _COMPLEX_KINDS) or isinstance(b, _COMPLEX_KINDS):
        needed("a comparison", x, y, drops=False)
        return result
    if type(a) in NUMPY_SCALARS or type(b) in NUMPY_SCALARS:
        if _is_by_dtype(x, y):
            holds(recorder.apply(name, x, y), "a comparison")
        else:
            needed("a comparison", x, y, drops=False)
        return result
    kinds = {issubclass(type(part), int) for part in (a, b)}
    if kinds == {True, False} and not all(
        _below(part, EXACT) for part in (x, y) if issubclass(type(number_of(part)), int)
    ):
        needed("a comparison", x, y, drops=False)
        return result
    if kinds == {True} and not is_number(y) and not _below(y, SUM):
        needed("a comparison", x, y, drops=False)
        return result
    dtype = INT if kinds == {True} else FLOAT
    holds(recorder.apply(name, scalar(x, dtype), scalar(y, dtype)), "a comparison")
    return result


def _is_by_dtype(x: Any, y: Any) -> bool:
    """Return whether NumPy compares two numbers after it has promoted them, and not by their exact values."""
    dtypes = []
    for part, other in ((x, y), (y, x)):
        number, beside = number_of(part), number_of(other)
        if type(number) in NUMPY_SCALARS:
            dtypes.append(number.dtype)
        elif type(number) is int and beside.dtype.kind in "iu":
            if is_number(part) and beside.dtype != INT:
                return False
            info = np.iinfo(beside.dtype)
            if not info.min <= number <= info.max:
                return False
    return {dtype.kind for dtype in dtypes} != {"i", "u"}


def by_ufunc(ufunc: np.ufunc, inputs: Any) -> Any:
    """Return the result of a ufunc on numbers that may vary, or None if it needs their values."""
    numbers = [number_of(x) for x in inputs]
    if any(type(number) not in _PLAIN for number in numbers):
        return None
    operands = list(inputs)
    is_weak = not any(type(number) in NUMPY_SCALARS for number in numbers)
    for i, (x, number) in enumerate(zip(inputs, numbers, strict=True)):
        if is_number(x) and (is_weak or type(number) in NUMPY_SCALARS):
            operands[i] = x._array
        elif type(x) in NUMPY_SCALARS:
            operands[i] = recorder.as_array(x)
    first = next((x for x in operands if recorder.is_array(x)), None)
    if first is None:
        return None
    result = ufunc(*numbers)
    if not isinstance(result, np.generic) or not all(_fits(x, y) for x in inputs for y in numbers):
        return None
    try:
        array = first.__array_ufunc__(ufunc, "__call__", *operands)
    except Exception as error:  # one that arrays have not: NumPy computes it with the numbers
        if is_of_handler(error):
            raise
        return None
    array = array._array if is_number(array) else array
    if not recorder.is_array(array) or array._data.dtype != result.dtype or array._data.ndim:
        return None
    if type(result) is np.bool_:
        holds(array, f"np.{ufunc.__name__}")
        return result
    if ufunc == np.power and result.dtype.kind in "iu" and is_number(inputs[1]):
        return None
    return _result_number(result, array, *inputs) if type(result) in NUMPY_SCALARS else None


def by_ufunc_of_arrays(ufunc: np.ufunc, inputs: Any) -> Any:
    """Return a ufunc of varying numbers and ndarrays as a traced array, or None if it needs the numbers' values."""
    current = recorder.thread.recorder
    if current is None or not all(
        is_number(x) or type(x) in _PLAIN or type(x) in NUMPY_SCALARS or _can_be_traced(x) for x in inputs
    ):
        return None
    name = f"np.{ufunc.__name__}"
    operands = [recorder.as_array(x, name) if type(x) is np.ndarray else x for x in inputs]
    first = next((x for x in operands if recorder.is_array(x)), None)
    if first is None:
        return None
    try:
        return first.__array_ufunc__(ufunc, "__call__", *operands)
    except (
        Exception
    ) as error:  # one that arrays have not, or an error of NumPy's: NumPy computes it with the numbers
        if is_of_handler(error):
            raise
        return None


def _can_be_traced(x: Any) -> bool:
    return type(x) is np.ndarray and x.ndim > 0 and x.dtype in SUPPORTED_DTYPES


def _fits(x: Any, beside: Any) -> bool:
    """Return whether an operand fits the type of another whatever its value is."""
    if not is_number(x) or x._kind is not int or type(beside) not in NUMPY_SCALARS:
        return True
    return bool(beside.dtype.kind in "fc" or beside.dtype == INT)


def weak(x: Any, dtypes: list[np.dtype], is_compared: bool = False) -> Any:
    """Return the array that stands for a number where it meets arrays of some dtypes.

    An integer has to fit the integers that it meets, or NumPy raises an error; that it does is a guard. A comparison
    takes any integer.
    """
    if x._kind in NUMPY_SCALARS:
        return x._array
    dtype = weak_array(x._kind(1), dtypes).dtype
    if x._kind is int and dtype.kind in "iu" and dtype != INT and not x.fits(dtype):
        if is_compared and dtype != _UINT64:  # which no other integers are compared with
            return x._array
        return recorder.wrap(weak_array(x.needed("arithmetic with small integers"), dtypes))
    return x._array if dtype == x._array._data.dtype else recorder.apply("cast", x._array, dtype=dtype)
