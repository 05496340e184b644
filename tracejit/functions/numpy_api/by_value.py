# SPDX-License-Identifier: BSD-3-Clause
"""Answers for recorded code that need the values of traced arrays, which are guards then.

Functions of Python's `statistics`, and attributes of numbers such as x[0].is_integer().
"""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.array import as_array, dlarray
from tracejit.functions import elementwise
from tracejit.functions.numpy_api.lists import holds_traced, is_traced
from tracejit.record import patches, recorder, views
from tracejit.record.conversion import LISTS
from tracejit.record.derived import is_derived, settle
from tracejit.record.plain_numbers import note_use

# Those that take the ratio of integers which each number is; the others compute with what they get.
_STATISTICS = ("harmonic_mean", "mean", "pstdev", "pvariance", "stdev", "variance")


def _values(x: Any, what: str) -> Any:
    """Return what NumPy has in the place of a traced array or number, which is a guard."""
    if recorder.is_number(x):
        return x.needed(what)
    if x._value is not None and x._data.dtype.kind in "fc":
        note_use(x, what)
    data = recorder.need_value(x, what)
    return data[()] if views.is_scalar(x) else data


def _of_statistics(name: str) -> Callable[..., Any]:
    def answer(original: Callable[..., Any], *args: Any, **options: Any) -> Any:
        args = tuple([[*part] if hasattr(type(part), "__next__") else part for part in args])
        if not any(map(_is_of_traced, (*args, *options.values()))):
            return original(*args, **options)
        given = {key: _plain(part, f"statistics.{name}") for key, part in options.items()}
        return original(*[_plain(part, f"statistics.{name}") for part in args], **given)

    return answer


def _is_of_traced(x: Any) -> bool:
    return is_traced(x) or (isinstance(x, LISTS) and holds_traced(x))


def _plain(x: Any, what: str) -> Any:
    """Return an argument with numbers in the place of what is traced; an array as a list of NumPy's numbers."""
    if isinstance(x, LISTS):
        return [_plain(part, what) for part in x]
    if not is_traced(x):
        return x
    values = _values(x, what)
    return [*values] if isinstance(values, np.ndarray) else values


class OfNumber:
    """An attribute that NumPy's numbers have and its arrays have not, such as is_integer()."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        name = self._name
        if instance is None or not views.is_scalar(instance) or not hasattr(instance._data[()], name):
            raise AttributeError(f"'dlarray' object has no attribute {name!r}")
        if is_derived(instance):
            settle(instance, name)
            return getattr(instance._data[()], name)
        if name == "is_integer":
            return lambda: _is_integer(instance)
        return getattr(_values(instance, f"{name}()"), name)


def _is_integer(x: dlarray) -> bool:
    if x._data.dtype.kind != "f":
        return True
    wide = as_array(x)
    return bool(elementwise.logical_and(wide == elementwise.trunc(wide), elementwise.isfinite(wide)))


def install() -> None:
    """Give dlarray the attributes of numbers, and have `statistics` answered while something is recorded."""
    for name in ("as_integer_ratio", "bit_count", "denominator", "hex", "is_integer", "numerator"):
        setattr(dlarray, name, OfNumber(name))
    patches.when_imported("statistics", _install_statistics)


def _install_statistics() -> None:
    module = sys.modules["statistics"]
    for name in _STATISTICS:
        patches.answer_user(module, name, _of_statistics(name))
