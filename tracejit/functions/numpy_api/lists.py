# SPDX-License-Identifier: BSD-3-Clause
"""Lists that hold traced arrays and numbers: one array, as np.array makes it, wherever an array is expected."""

import inspect
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

from tracejit.array import as_array, dlarray
from tracejit.aval import SUPPORTED_DTYPES
from tracejit.errors import DimsError
from tracejit.functions.formats import in_dtype
from tracejit.functions.joining import stack
from tracejit.functions.numpy_api.table import FUNCTIONS, late_implementations
from tracejit.ir import weak_array
from tracejit.record import conversion, patches, recorder
from tracejit.record.conversion import LISTS
from tracejit.record.number import Number

_NUMBERS = (int, float, complex, np.generic)


def as_private(made: Any) -> Any:
    """Return an array that NumPy has just made as a private one, if it is of a dtype that dlarrays have."""
    current = recorder.recorder()
    if current is None or type(made) is not np.ndarray or made.dtype not in SUPPORTED_DTYPES:
        return made
    # An array without axes, not a number: is_scalar in record/views.py.
    array = recorder.wrap(made if made.ndim else made[...])
    current.memories.private(array, is_ndarray=True)
    return array


def is_traced(x: Any) -> bool:
    """Return whether `x` is an array of ours, or stands for a number that varies."""
    return isinstance(x, dlarray) or recorder.is_number(x)


def holds_traced(x: Any) -> bool:
    """Return whether a nested list holds an array of ours, and nothing but numbers and arrays beside it."""
    parts = list(_parts(x))
    return any(map(is_traced, parts)) and all(is_traced(part) or _is_of_arrays(part) for part in parts)


def _is_of_arrays(x: Any) -> bool:
    """Return whether an array of a supported dtype can have an object among its elements."""
    if isinstance(x, np.generic):
        return x.dtype in SUPPORTED_DTYPES
    return abs(x) < 1 << 63 if type(x) is int else isinstance(x, (dlarray, np.ndarray, *_NUMBERS))


def without_numbers(x: Any) -> Any:
    """Return a nested list with the values of numbers that vary, for an array that has other objects in it."""
    if type(x) in LISTS:
        return type(x)([without_numbers(part) for part in x])
    return x.needed("np.array") if recorder.is_number(x) else x


def _parts(x: Any) -> Iterator[Any]:
    for part in x:
        if isinstance(part, LISTS):
            yield from _parts(part)
        else:
            yield part


def _constant(number: Any) -> Any:
    """Return a number as an array that is a constant of the trace; one that stands for a number that varies is none."""
    return as_array(number) if recorder.is_number(number) else as_private(np.asarray(number))


def stacked(data: Any, dtype: Any = None) -> Any:
    """Return a nested list of numbers and arrays as one array; Python's numbers have the dtype that np.array gives."""
    arrays: list[dlarray] = []
    places = _collect(data, arrays)
    wanted = np.result_type(*[array._data.dtype for array in arrays]) if dtype is None else np.dtype(dtype)
    return _joined(places, arrays, wanted)


def _collect(part: Any, arrays: list[dlarray]) -> Any:
    """Put the arrays and numbers of a nested list into `arrays`, and return their places there, nested alike."""
    if isinstance(part, LISTS):
        return [_collect(inner, arrays) for inner in part]
    arrays.append(_constant(part) if isinstance(part, _NUMBERS) else as_array(part, "np.array"))
    return len(arrays) - 1


def _joined(part: Any, arrays: list[dlarray], dtype: np.dtype) -> dlarray:
    if isinstance(part, int):
        return in_dtype(arrays[part], dtype)
    return stack([_joined(inner, arrays, dtype) for inner in part])


def holds_arrays(x: Any) -> bool:
    """Return whether a nested list holds an array of ours that is traced."""
    return any(isinstance(part, dlarray) and part._value is not None for part in _parts(x))


def of_objects(x: Any) -> np.ndarray:
    """Return a nested list as an array of objects, whose elements are traced: arrays, or the numbers of arrays.

    It has the sizes that NumPy finds: arrays of equal sizes are taken apart, others stay whole.
    """
    shape = np.array(_untraced(x), object).shape
    made = np.empty(shape, object)
    for place in np.ndindex(*shape):
        element = x
        for index in place:
            element = element[index]
        made[place] = element.item() if isinstance(element, dlarray) and not element._data.ndim else element
    return made


def _untraced(x: Any) -> Any:
    """Return a nested list with the elements of arrays, which are looked at for their sizes only."""
    if isinstance(x, LISTS):
        return [_untraced(part) for part in x]
    return x._data if isinstance(x, dlarray) else x


def as_array_of_list(x: Any) -> Any:
    """Return an argument of a function, as an array where it is a list that holds something traced."""
    if not isinstance(x, LISTS) or not any(map(_is_recorded, _parts(x))) or not holds_traced(x):
        return x
    return stacked(x)


def _is_recorded(x: Any) -> bool:
    return x._value is not None if isinstance(x, dlarray) else recorder.is_number(x)


def _operand(x: Any) -> Any:
    """Answer as_array for a list: None where it holds nothing traced."""
    try:
        joined = as_array_of_list(x)
    except (RecursionError, DimsError):  # for which as_array has a message
        return None
    return None if joined is x else joined


_OPTIONS = frozenset({
    "axes", "axis", "dims", "dtype", "destination", "indices_or_sections", "k", "kth", "newshape", "order", "out",
    "pad_width", "range", "repeats", "reps", "shape", "shift", "source",
})  # fmt: skip
"""Arguments that are lists by themselves, and not arrays."""
_OF_ARRAYS = frozenset({
    np.choose, np.column_stack, np.concatenate, np.dstack, np.histogramdd, np.hstack, np.lexsort, np.linalg.multi_dot,
    np.piecewise, np.ravel_multi_index, np.select, np.stack, np.vstack,
})  # fmt: skip
"""Functions whose lists are lists of arrays."""
_NESTED = frozenset({np.block, np.save, np.savetxt, np.savez, np.savez_compressed})
"""Functions that take lists apart by themselves, or refuse what is traced."""


def arguments(function: Callable[..., Any], args: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the arguments of a function of NumPy with arrays in place of the lists that hold traced ones."""
    if function in _NESTED:
        return args, options
    if function not in _UNASKED:
        args, options = _with_arrays(function, args, options)
    names = _names(function)

    def given(name: str, x: Any) -> Any:
        if type(x) is np.poly1d:
            return late_implementations().polynomials.as_polynomial(function, x)
        if name in _OPTIONS:
            return x
        if function not in _OF_ARRAYS and (function != np.histogram2d or name != "bins"):
            return as_array_of_list(x)
        if type(x) not in LISTS:
            return x
        parts = [part._array if _is_of_array(part) else as_array_of_list(part) for part in x]
        # NumPy asks the protocols of the parts of a tuple only in np.lexsort.
        return tuple(parts) if type(x) is tuple or function == np.lexsort else parts

    named = {name: given(name, x) for name, x in options.items()}
    return _with_asked(
        function, [given(names[i] if i < len(names) else "", x) for i, x in enumerate(args)], named
    )


_UNASKED: dict[Callable[..., Any], str] = {np.pad: "constant_values", np.roll: "shift"}
"""The arguments of functions that NumPy does not ask for a protocol, because they belong to the array before them."""


def _with_asked(
    function: Callable[..., Any], args: list[Any], options: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of a function with a dlarray in place of an ndarray, if others that are traced need it."""
    name = _UNASKED.get(function)
    if name is None:
        return args, options
    given = dict(zip(_names(function), args, strict=False)) | options
    first, other = next(iter(_names(function))), given.get(name)
    array = given.get(first)
    parts = [*_parts(other)] if isinstance(other, LISTS) else [other]
    if (
        not any(map(_is_recorded, parts))
        or type(array) is not np.ndarray
        or array.dtype not in SUPPORTED_DTYPES
    ):
        return args, options
    if function == np.pad and array.dtype.kind not in "fc" and not recorder.is_number(other):
        return args, options  # integers of a pair may not fit, which is an error of NumPy's
    if function == np.roll and any(getattr(part, "_kind", int) in _FLOATS for part in parts):
        return args, options  # which NumPy takes for integers
    asked = as_array(array)
    return ([asked, *args[1:]], options) if args else (args, {**options, first: asked})


def _with_arrays(
    function: Callable[..., Any], args: Any, options: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """Return the arguments of a function with arrays in place of numbers that are computed from arrays.

    Beside arrays these take their dtype, which an array would not; a dlarray among the arguments sees to that.
    """
    given = (*args, *options.values())
    numbers = [x for x in given if _is_of_array(x)]
    # A truth of NumPy's is that of a comparison, which is a guard: what it decides about is a number.
    if not numbers or any(type(x) in (dlarray, np.bool_) for x in given):
        return args, options
    dtypes = [x.dtype for x in given if isinstance(x, _ARRAYS)]
    if type(function) is np.ufunc or any(_takes(x, dtype) for x in numbers for dtype in dtypes):
        return args, options
    if function not in FUNCTIONS and function not in late_implementations().FUNCTIONS:
        return args, options
    named = {name: x._array if _is_of_array(x) else x for name, x in options.items()}
    return [x._array if _is_of_array(x) else x for x in args], named


def _is_of_array(x: Any) -> bool:
    """Return whether an argument is a number that NumPy's functions take for an array; integers may be sizes, too."""
    return recorder.is_number(x) and (x._sources is None or x._kind in _FLOATS)


_FLOATS = (float, np.float64)


_ARRAYS = (np.ndarray, np.generic)


def _takes(number: Any, dtype: np.dtype) -> bool:
    """Return whether a number gives another dtype beside an array than as one of its own: 1.0 does beside float32."""
    if number._kind not in _PYTHONS:
        return False
    beside = weak_array(number._kind(1), [dtype]).dtype
    return np.result_type(beside, dtype) != np.result_type(number._array._data.dtype, dtype)


_PYTHONS = (int, float, complex)


@cache
def _names(function: Callable[..., Any]) -> list[str]:
    """Return the names of the arguments of a function of NumPy by position; one in C may not tell them."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return []
    return [parameter.name for parameter in parameters if parameter.kind is not parameter.VAR_POSITIONAL]


def install() -> None:
    """Have lists that hold traced arrays taken for arrays."""
    conversion.register_lists(_operand)
    patches.take_lists(Number, arguments, _UNASKED)
