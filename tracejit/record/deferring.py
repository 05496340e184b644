# SPDX-License-Identifier: BSD-3-Clause
"""The operands that answer an operator themselves, as NumPy's arrays let them.

An ndarray leaves ``x * other`` to the other operand if its class says so: ``__array_ufunc__ = None``, or no such
attribute and a higher ``__array_priority__``. A class with a method ``__array_ufunc__`` gets the call of the ufunc.
Arrays of other libraries (``__dlpack__``) are operands like any.
"""

import operator
from typing import Any

import numpy as np

from tracejit.record import views
from tracejit.util.text import module_of

_ABSENT = object()
_PRIORITY_OF_ARRAYS, _PRIORITY_OF_NUMBERS = 0.0, -1_000_000.0  # of ndarrays and NumPy's numbers
_SPARSE = "scipy.sparse"
_MULTIPLY = np.multiply  # not what takes its place while something is recorded
_OF_SPARSE = frozenset({np.matmul, _MULTIPLY})

PLAIN: set[type] = {
    int, float, bool, complex, type(None), np.ndarray, np.float64, np.float32, np.int64, np.bool_, np.complex128,
}  # fmt: skip
"""Types that answer nothing; those of tracejit are added."""
_SEQUENCES: set[type] = {list, tuple, str, bytes, bytearray}  # that a number repeats


def _is_operand(kind: type) -> bool:
    """Return whether objects of a class are taken as they are, or refused."""
    return (
        kind in PLAIN
        or kind in _SEQUENCES
        or issubclass(kind, (np.ndarray, np.generic, type))
        or hasattr(kind, "__dlpack__")
        or module_of(kind).partition(".")[0] == "tracejit"
    )


def has_override(value: Any) -> bool:
    """Return whether a value has a method __array_ufunc__ of its own."""
    kind = type(value)
    return not _is_operand(kind) and getattr(kind, "__array_ufunc__", None) is not None


def answer(
    ufunc: np.ufunc, array: Any, other: Any, is_reflected: bool = False, is_in_place: bool = False
) -> Any:
    """Return what an operator of an array gives with another operand that answers it itself; None if it does not.

    Args:
        ufunc: of NumPy, which stands for the operator.
        array: the dlarray.
        other: the other operand.
        is_reflected: whether it stands on the left, and has given NotImplemented.
        is_in_place: whether the result is assigned to the array.
    """
    kind = type(other)
    if kind in _SEQUENCES and ufunc is _MULTIPLY and _repeats(array):
        return other * operator.index(array)
    if _is_operand(kind):
        return None
    override = getattr(kind, "__array_ufunc__", _ABSENT)
    is_number = views.is_scalar(array)
    is_in_place = is_in_place and not is_number  # += of a number makes a new one
    if override is not None and override is not _ABSENT:
        options = {"out": (array,)} if is_in_place else {}
        return ufunc(*(other, array) if is_reflected else (array, other), **options)
    if is_reflected:
        return None
    if override is None:
        return None if is_in_place else NotImplemented
    if module_of(kind).startswith(_SPARSE) and ufunc not in _OF_SPARSE:
        return None  # it adds ndarrays alone
    priority = getattr(other, "__array_priority__", _PRIORITY_OF_NUMBERS)
    defers = priority > (_PRIORITY_OF_NUMBERS if is_number else _PRIORITY_OF_ARRAYS)
    return NotImplemented if defers else None


def _repeats(array: Any) -> bool:
    """Return whether Python repeats a sequence by an array, ``[0] * (x > 0).sum()``: by an integer that is computed."""
    value = array._value
    return (
        value is not None
        and value.node is not None
        and array._data.dtype.kind in "iu"
        and views.is_scalar(array)
    )


def answers_number(array: Any, other: Any) -> bool:
    """Return whether an operand that is no array answers an operator with a number, as it does with NumPy's."""
    kind = type(other)
    is_object = not _is_operand(kind) and module_of(kind) != "builtins" and not hasattr(kind, "__array__")
    return is_object and views.is_scalar(array)
