# SPDX-License-Identifier: BSD-3-Clause
"""The data of array-likes, which a user may pass to a function in place of an array, as an ndarray.

An array-like may be an object of any class: its methods may raise anything, and a list may hold itself.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit.aval import Aval, check_dtype
from tracejit.errors import ArgumentError, DimsError, RangeError
from tracejit.ir import asarray
from tracejit.ops import Op
from tracejit.record import monitor
from tracejit.record.ended import is_open
from tracejit.util.arguments import MOST_AXES, no_room
from tracejit.util.compositions import OF_SPARSE
from tracejit.util.devices import registered
from tracejit.util.text import brief, module_of
from tracejit.util.uninterrupted import is_of_handler

_LARGE = 1 << 50  # elements, more than any memory has
LISTS = (list, tuple, deque)
"""Containers of which NumPy makes arrays by their elements."""
_NUMBERS = (np.generic, bool, int, float, complex)


class _Lists:
    """The function that joins lists which hold traced arrays, registered here because it composes operations."""

    joined: Callable[[Any], Any] | None = None


_RULES = (
    "__array_ufunc__", "__array_function__", "__add__", "__radd__", "__sub__", "__mul__", "__rmul__",
    "__truediv__", "__pow__", "__matmul__", "__neg__", "__eq__",
)  # fmt: skip
"""Methods that a class derived from ndarray has of its own if it computes in another way."""


def register_lists(joined: Callable[[Any], Any]) -> None:
    """Let lists that hold traced arrays be joined by a function that returns None for other lists."""
    _Lists.joined = staticmethod(joined)


def joined(x: Any) -> Any:
    """Return an array-like as a traced array where it is a list that holds traced ones; None otherwise."""
    return _Lists.joined(x) if isinstance(x, LISTS) and _Lists.joined is not None else None


def data_of(x: Any, function: str, argument: str, array_class: type) -> np.ndarray:
    """Return the data of an array-like in a dtype that arrays have.

    Args:
        x: the array-like, which is no array of ours.
        function: name of the function on whose behalf errors are raised.
        argument: name of its argument.
        array_class: of arrays, which a list must not hold while they are traced.

    Raises:
        ArgumentError: if it is none.
        DTypeError: if its dtype is not supported.
    """
    if not isinstance(x, np.ndarray):
        if _lies_on_device(x):
            return registered.adopt(x, function, argument)  # type: ignore[no-any-return]
        x = _array_of(x, function, argument, array_class)
    if type(x) is not np.ndarray and _has_rules(type(x)):
        rules, remedy = f"rules of its own ({_operator(type(x))})", ""
        if isinstance(x, np.ma.MaskedArray):
            rules, remedy = "a mask", f", or {argument}.filled(value)"
        elif isinstance(x, np.matrix):
            rules = "products by * and two axes always"
        raise ArgumentError(
            f"{function}: a {type(x).__name__} has {rules}, which would be lost; pass np.asarray({argument}){remedy}."
        )
    native = check_dtype(function, x.dtype, argument)
    return asarray(x, dtype=native)


def _has_rules(kind: type) -> bool:
    """Return whether a class derived from ndarray computes in another way: masks, units, products by *."""
    return _operator(kind) is not None


def _operator(kind: type) -> str | None:
    """Return a method by which a class derived from ndarray computes in another way."""
    own = [name for name in _RULES if getattr(kind, name) is not getattr(np.ndarray, name)]
    return own[0] if own else None


def _lies_on_device(x: Any) -> bool:
    """Return whether an object is an array on a GPU; one that says so of its class only is an array of the host."""
    if not hasattr(type(x), "__cuda_array_interface__"):
        return False
    try:
        return hasattr(x, "__cuda_array_interface__")
    except Exception as error:  # such as that of PyTorch for a tensor that requires a gradient
        if is_of_handler(error):
            raise
        return False


def _as_numpy_does(x: Any) -> np.ndarray:
    """Return an object as an ndarray; a method __array__ of the user's is reported."""
    is_answered = type(x) not in LISTS and hasattr(type(x), "__array__")
    return monitor.watched(asarray, x) if is_answered else asarray(x)


def _array_of(x: Any, function: str, argument: str, array_class: type) -> np.ndarray:
    """Return what NumPy makes of an object that is no ndarray."""
    listed = isinstance(x, LISTS)
    if listed:
        _check_list(x, function, argument, array_class)
    try:
        tensor = not listed and not isinstance(x, (*_NUMBERS, type)) and hasattr(x, "__dlpack__")
        data: np.ndarray = np.from_dlpack(x) if tensor else _as_numpy_does(x)
    except Exception as error:
        if is_of_handler(error):
            raise
        remedy = "give rows of equal length" if listed else "pass a NumPy array"
        raise ArgumentError(
            f"{function}: cannot make an array of {type(x).__name__}: {_reason(error)}; {remedy} as {argument}."
        ) from error
    if data.dtype == object:
        if isinstance(x, int):
            raise too_large(x, function, argument)
        if module_of(type(x)).startswith("scipy.sparse."):
            raise ArgumentError(
                f"{function}: {argument} is a {type(x).__name__} of SciPy, not an array; {OF_SPARSE}."
            )
        raise ArgumentError(
            f"{function}: expected an array, a number or a (nested) list of numbers as {argument}, not {brief(x)}."
        )
    return data


COMPARISONS = frozenset(
    {
        "equal",
        "not_equal",
        "less",
        "less_equal",
        "greater",
        "greater_equal",
        "logical_and",
        "logical_or",
        "logical_xor",
    }
)
_WIDER = frozenset({"where"})  # which gives int64, where NumPy keeps the last bits


_OPERANDS = {"where": ("condition", "x", "y")}


def names_of(op: Op, number: int) -> tuple[str, str]:
    """Return the name of the function of an op, and that of one of its operands, for messages."""
    named = _OPERANDS.get(op.name, "xyz")
    return op.title, named[number] if number < len(named) else f"operand {number}"


def out_of_range(
    op: Op, number: int, dtypes: Sequence[np.dtype], place: tuple[int, int], names: tuple[str, str]
) -> np.ndarray:
    """Return the substitute for an integer that does not fit the arrays it meets, as in NumPy.

    Comparisons take any integer, and functions whose results are of floating point convert it to these.

    Args:
        op: the op.
        number: the integer.
        dtypes: of the arrays.
        place: the number of the operand, and how many there are.
        names: of the function and the argument, for messages.

    Raises:
        RangeError: if NumPy raises an error.
    """
    common = np.result_type(*dtypes) if dtypes else np.dtype(np.int64)
    common = np.dtype(np.int64) if common.kind == "b" else common
    if op.name in (*COMPARISONS, *_WIDER) and common.kind in "iu":
        if -(2**63) <= number < 2**64:
            return asarray(number)
        if op.name in COMPARISONS:
            return asarray(np.inf if number > 0 else -np.inf)
    if common.kind in "iu" and op.promote is not None:
        common = op.promote(*[common] * place[1])[place[0]]
    if common.kind in "fc":
        try:
            return asarray(number, common)
        except OverflowError:
            pass
    if not -(2**63) <= number < 2**64:
        raise too_large(number, *names)
    limits = np.iinfo(common)
    raise RangeError(
        f"{names[0]}: {names[1]}={number} does not fit {common} ({limits.min} to {limits.max}); cast the array first "
        "(x.astype(np.int64))."
    )


def too_large(x: Any, function: str, argument: str) -> RangeError:
    """Return the error for an integer of more bits than elements have."""
    return RangeError(
        f"{function}: {argument}={brief(x)} does not fit 64 bits; pass a float, or an integer from -2**63 to 2**64 - 1."
    )


def impossible(function: str, avals: Any, error: Exception) -> DimsError:
    """Return the error for results that NumPy does not make: they are too large, or values do not allow them."""
    aval = avals if type(avals) is Aval else avals[0]
    if isinstance(error, MemoryError) or aval.ndim > MOST_AXES or aval.size >= _LARGE:
        return no_room(function, aval.shape, aval.dtype, error)
    return DimsError(
        f"{function}: {_reason(error)}; cast the operands first (x.astype(np.float64)), or change their values."
    )


def _reason(error: Exception) -> str:
    """Return the first line of an error's text, without the stop at its end; its class where it has none."""
    text = str(error).partition("\n")[0].rstrip(".")
    return text or type(error).__name__


def ndarray_of(x: Any) -> np.ndarray:
    """Return what NumPy makes of an object, for arguments that are no operands; what is raised may be anything."""
    check_nesting(x)
    return asarray(x)


def _check_list(x: Any, function: str, argument: str, array_class: type) -> None:
    """Raise an ArgumentError for a list that is no array, or that holds traced ones."""
    try:
        arrays = check_nesting(x, array_class)
    except RecursionError:
        raise ArgumentError(
            f"{function}: {argument} is a {type(x).__name__} that holds itself, or is nested deeper than the "
            f"{MOST_AXES} axes of an array; pass a list of numbers, or of such lists."
        ) from None
    if arrays and any(map(is_open, arrays)):
        raise ArgumentError(
            f"{function}: a {type(x).__name__} that holds traced dlarrays would lose their trace; join them with stack "
            "or concatenate."
        )


def check_nesting(x: Any, wanted: type | None = None, around: tuple[int, ...] = ()) -> list[Any]:
    """Return the instances of a class in a (nested) list.

    Raises:
        RecursionError: if the list holds itself, or is nested deeper than an array. NumPy takes longer than anybody
            waits to see that where it holds itself twice.
    """
    if not isinstance(x, LISTS):
        return []
    if id(x) in around or len(around) > MOST_AXES:
        raise RecursionError("the list holds itself, or is nested too deeply")
    instances = []
    for part in x:
        if isinstance(part, LISTS):
            instances += check_nesting(part, wanted, (*around, id(x)))
        elif type(part) is wanted:
            instances.append(part)
    return instances
