# SPDX-License-Identifier: BSD-3-Clause
"""Checks of arguments that are not arrays: integers, sizes, numbers, flags and options of any class.

An argument may be an object of any class, whose methods may raise anything; what is raised here is an error of ours,
which names the function and the argument.
"""

import operator
import os
from collections.abc import Callable, Collection, Mapping, Set
from contextlib import suppress
from itertools import islice
from math import inf, prod
from typing import Any

import numpy as np

from tracejit.errors import ArgumentError, ArgumentValueError, DimsError, TraceError
from tracejit.util.text import brief

MOST_AXES = 64
"""The largest number of axes of an array of NumPy."""
_MOST_BYTES = 2**63 - 1
_NO_SIZES = (bool, str, bytes, bytearray, memoryview, Mapping, Set)
_SMALL = 2**20
_WORD = 2**63
_LARGEST = 2**1023


def integer(function: str, argument: str, value: Any) -> int:
    """Return an argument that is an integer of at most 64 bits.

    Raises:
        ArgumentError: if it is none.
    """
    number = value if type(value) is int else as_index(value)
    if number is None or not -_WORD <= number < _WORD:
        raise ArgumentError(
            f"{function}: {argument} must be an integer{'' if number is None else ' of at most 64 bits'}, not "
            f"{brief(value)}."
        )
    return number


def integers(function: str, argument: str, value: Any) -> tuple[int, ...]:
    """Return an argument that is an integer, or a tuple, list or vector of integers, as a tuple.

    Raises:
        ArgumentError: if it is none.
    """
    if type(value) is int:
        return (value,)
    value = as_numbers(value)
    listed = isinstance(value, (tuple, list)) or (isinstance(value, np.ndarray) and value.ndim == 1)
    numbers = [as_index(entry) for entry in value] if listed else [as_index(value)]
    if None in numbers:
        raise ArgumentError(
            f"{function}: {argument} must be an integer or a tuple of integers, not {brief(value)}."
        )
    return tuple(numbers)  # type: ignore[arg-type]


def as_numbers(value: Any) -> Any:
    """Return an array of integers as nested tuples of them; anything else, and a number, as it is.

    The elements of an array that is traced are guards.
    """
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if kind not in ("i", "u") or not value.ndim:
        return value
    return tuple([as_numbers(part) if part.ndim else operator.index(part) for part in value])


def as_index(value: Any) -> int | None:
    """Return an object that stands for an integer as one, None for any other object."""
    try:
        return operator.index(value)
    except TraceError:  # an integer, but of a trace that has ended
        raise
    except Exception:
        return None


def sizes(function: str, argument: str, value: Any) -> tuple[int, ...]:
    """Return an argument that gives the sizes of an array: an integer, or integers that can be iterated over.

    Raises:
        DimsError: if it holds no sizes, or those of an array that no memory could hold.
    """
    result: tuple[int | None, ...] = (None,)
    if not isinstance(value, _NO_SIZES):
        number = None if type(value) is tuple else as_index(value)
        try:
            result = tuple(map(as_index, islice(value, MOST_AXES + 1))) if number is None else (number,)
        except TraceError:
            raise
        except Exception:
            result = (None,)
    if None in result:
        raise DimsError(
            f"{function}: {argument} must be an integer or a tuple of integers, not {brief(value)}."
        )
    return check_sizes(function, argument, result)  # type: ignore[arg-type]


def check_sizes(function: str, argument: str, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return sizes that an array can have.

    Raises:
        DimsError: if one is negative, there are too many, or no memory could hold so many elements.
    """
    bytes_ = 8
    for size in sizes:
        if size < 0:
            raise DimsError(f"{function}: sizes must not be negative, found {brief(sizes)} as {argument}.")
        bytes_ *= size or 1
    if len(sizes) > MOST_AXES or bytes_ > _MOST_BYTES:
        raise DimsError(
            f"{function}: {argument} must be the sizes of at most {MOST_AXES} axes and fewer than 2**60 elements, not "
            f"{brief(sizes)}."
        )
    return sizes


def check_room(function: str, sizes: tuple[int, ...], dtype: np.dtype) -> None:
    """Raise an error for an array that has no room in memory, before its parts are made one after the other.

    Raises:
        DimsError: naming its sizes.
    """
    if prod(sizes) < _SMALL:
        return
    try:
        np.empty(sizes, dtype)
    except (MemoryError, ValueError, OverflowError) as error:
        raise no_room(function, sizes, dtype, error) from error


def no_room(function: str, sizes: tuple[int, ...], dtype: np.dtype, error: Exception) -> DimsError:
    """Return the error for an array that is too large for the memory, or for NumPy."""
    reason = str(error).rstrip(".") or type(error).__name__
    return DimsError(
        f"{function}: a result of the sizes {brief(sizes)} of {dtype} cannot be made: {reason}; use smaller arrays, or "
        "several calls for parts of them."
    )


def flag(function: str, argument: str, value: Any) -> bool:
    """Return an argument that is true or false: a bool, or an integer as NumPy takes it.

    Raises:
        ArgumentError: if it is neither.
    """
    if value is True or value is False:
        return value
    try:
        dtype = getattr(value, "dtype", None)
        if dtype is not None and dtype.kind == "b":  # an array of one element
            return bool(value)
        return operator.index(value) != 0
    except Exception:
        raise ArgumentError(f"{function}: {argument} must be True or False, not {brief(value)}.") from None


def is_real(value: Any) -> bool:
    """Return whether an argument is a real number of Python or NumPy, which counts a span of time among integers."""
    return isinstance(value, (int, float, np.integer, np.floating, np.bool_)) and not isinstance(
        value, np.timedelta64
    )


def real(function: str, argument: str, value: Any) -> Any:
    """Return an argument that is a real number, one of NumPy's own as Python's.

    Raises:
        ArgumentError: if it is none, or larger than any floating-point number.
    """
    # A number that is an input of a trace is not looked at: its value would be needed then.
    if is_real(value) and (type(value) is not int or abs(value) < _LARGEST):
        if not isinstance(value, np.generic):
            return value
        # np.float64, too, which is a float of Python: it would make arrays of float32 float64. Of a number that is an
        # input of a trace item() is one; its float() would be the value.
        is_item = isinstance(value, np.floating) and not isinstance(value, np.longdouble)
        return value.item() if is_item else value.__float__()
    raise ArgumentError(f"{function}: {argument} must be a real number, not {brief(value)}.")


def text(function: str, argument: str, value: Any) -> str:
    """Return an argument that is a string.

    Raises:
        ArgumentError: if it is none.
    """
    if not isinstance(value, str):
        raise ArgumentError(f"{function}: {argument} must be a string, not {brief(value)}.")
    return value


def path(function: str, argument: str, value: Any) -> str:
    """Return an argument that names a file or a folder as a string.

    Raises:
        ArgumentError: if it is no path.
    """
    try:
        name = os.fsdecode(value)
    except Exception:
        name = ""
    if not name or "\0" in name:
        raise ArgumentError(f"{function}: {argument} must be a path, not {brief(value)}.")
    return name


def number_of_things(function: str, argument: str, value: Any) -> int:
    """Return an argument that is a number of things, at least one.

    Raises:
        ArgumentError: if it is no integer.
        ArgumentValueError: if it is less than 1.
    """
    number = integer(function, argument, value)
    if number < 1:
        raise ArgumentValueError(f"{function}: {argument} must be at least 1, not {number}.")
    return number


def positive(function: str, argument: str, value: Any) -> float:
    """Return an argument that is a positive and finite number.

    Raises:
        ArgumentError: if it is no real number.
        ArgumentValueError: if it is 0, negative or not finite.
    """
    number = float(real(function, argument, value))
    if not 0.0 < number < inf:
        raise ArgumentValueError(f"{function}: {argument} must be positive and finite, not {brief(value)}.")
    return number


def callable_(function: str, argument: str, value: Any) -> Callable[..., Any]:
    """Return an argument that can be called.

    Raises:
        ArgumentError: if it cannot.
    """
    if not callable(value):
        raise ArgumentError(f"{function}: {argument} must be a function, not {brief(value)}.")
    return value  # type: ignore[no-any-return]


def listed(function: str, argument: str, value: Any) -> tuple[Any, ...]:
    """Return an argument that is a list or a tuple as a tuple.

    Raises:
        ArgumentError: if it is neither.
    """
    if not isinstance(value, (list, tuple)):
        raise ArgumentError(f"{function}: {argument} must be a list or a tuple, not {brief(value)}.")
    return tuple(value)


def named(function: str, argument: str, value: Any) -> dict[str, Any]:
    """Return an argument that is a mapping from strings as a dict.

    Raises:
        ArgumentError: if it is none.
    """
    names: dict[Any, Any] = {0: value}
    if isinstance(value, Mapping):
        with suppress(Exception):
            names = dict(value)
    if not all(isinstance(name, str) for name in names):
        raise ArgumentError(f"{function}: {argument} must be a dict from names, not {brief(value)}.")
    return names


def is_option(value: Any, options: Collection[str]) -> bool:
    """Return whether an argument is one of the options; unlike `in`, it asks no object whether it is equal."""
    return isinstance(value, str) and value in options
