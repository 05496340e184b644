# SPDX-License-Identifier: BSD-3-Clause
"""NumPy's further arguments of functions of the toolbox: order="F", einsum with lists, dtype= of joins.

Labels are those of the toolbox's function; order="F" leaves none unless the sizes stay.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.array import as_array, dlarray
from tracejit.aval import wanted_dtype
from tracejit.errors import ArgumentValueError
from tracejit.functions import contraction, elementwise, joining, movement
from tracejit.functions.formats import in_dtype
from tracejit.functions.refusals import refuse
from tracejit.util.arguments import integers, is_option
from tracejit.util.text import brief


def reshape(
    a: Any, shape: Any = None, order: Any = "C", *, newshape: Any = None, copy: Any = None
) -> dlarray:
    """Return the elements in another shape, in C order or column by column (order="F")."""
    array = as_array(a, "np.reshape")
    wanted = integers("np.reshape", "shape", newshape if shape is None else shape)
    if _order("np.reshape", order, ("C", "F", "A"), array) == "F":
        turned = movement.reshape(movement.transpose(movement.relabel(array, None)), wanted[::-1])
        result = movement.transpose(turned)
    else:
        result = movement.reshape(array, wanted)
    if copy is False and not np.may_share_memory(result._data, array._data):
        refuse(
            "np.reshape",
            "copy=False cannot be met, as elements move in memory; leave copy= out",
            ArgumentValueError,
        )
    return result.copy() if copy else result


def _order(name: str, order: Any, known: tuple[str, ...], array: dlarray) -> Any:
    """Return an order that is asked for, as C or F where it depends on how the array lies in memory."""
    if not is_option(order, known):
        names = ", ".join(map(repr, known[:-1]))
        refuse(name, f"order must be {names} or {known[-1]!r}, not {brief(order)}", ArgumentValueError)
    if order != "A":
        return order
    flags = array._data.flags
    return "F" if flags.f_contiguous and not flags.c_contiguous else "C"


def ravel(a: Any, order: Any = "C") -> dlarray:
    """Return all elements as a vector: in C order, by columns ("F"), or as the array lies in memory ("A", "K").

    "A" takes columns where the array lies by columns, and "K" takes the axes in the order that they have there.
    """
    array = movement.relabel(as_array(a, "np.ravel"), None)
    wanted = _order("np.ravel", order, ("C", "F", "A", "K"), array)
    if wanted == "F":
        array = movement.transpose(array)
    elif wanted == "K":
        steps = [abs(step) for step in array._data.strides]
        array = movement.permuted(array, tuple(sorted(range(len(steps)), key=lambda axis: -steps[axis])))
    return movement.ravel(array)


def concatenate(
    arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind"
) -> dlarray:
    """Return arrays joined along an axis, in a dtype."""
    joined = joining.concatenate(arrays, axis)
    if dtype is None:
        return joined
    wanted = wanted_dtype("np.concatenate", dtype)
    if not np.can_cast(joined.dtype, wanted, casting):
        refuse(
            "np.concatenate",
            f"{joined.dtype} does not become {wanted} by casting={brief(casting)}; cast the arrays",
        )
    return in_dtype(joined, wanted)


def stack(
    arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind"
) -> dlarray:
    """Return arrays joined along a new axis, in a dtype."""
    return concatenate([joining.stack(arrays, axis)], 0, dtype=dtype, casting=casting)


def vstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> dlarray:
    """Return arrays joined along the first axis, vectors as rows, in a dtype."""
    return concatenate([joining.vstack(tup)], 0, dtype=dtype, casting=casting)


def hstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> dlarray:
    """Return arrays joined along the second axis, vectors along their own, in a dtype."""
    return concatenate([joining.hstack(tup)], 0, dtype=dtype, casting=casting)


def einsum(*operands: Any, out: Any = None, optimize: Any = True, **kwargs: Any) -> dlarray:
    """Return a sum of products by Einstein's convention, operands followed by lists of numbers of their axes."""
    dtype = kwargs.pop("dtype", None)
    if dtype is None and is_option(kwargs.get("casting"), ("safe", "same_kind", "unsafe")):
        del kwargs["casting"]  # which casts nothing
    if kwargs:
        refuse("np.einsum", f"{next(iter(kwargs))}= is not supported on dlarrays; cast the operands first")
    arrays: list[Any] = list(operands)
    if arrays and not isinstance(arrays[0], str):
        result = arrays.pop() if len(arrays) % 2 else None
        lists = [*arrays[1::2], *([] if result is None else [result])]
        arrays = [_subscripts(lists, result is not None), *arrays[::2]]
    if dtype is not None:
        wanted = wanted_dtype("np.einsum", dtype)
        arrays[1:] = [in_dtype(as_array(x, "np.einsum"), wanted) for x in arrays[1:]]
    return contraction.einsum(*arrays, optimize=optimize)


def _subscripts(lists: list[Any], has_result: bool) -> str:
    """Return lists of numbers of axes, the last that of the result, as letters; Ellipsis as dots."""
    numbers = sorted({part for listed in lists for part in listed if part is not Ellipsis})
    if len(numbers) > 52:
        refuse("np.einsum", f"there are {len(numbers)} different axes, expected at most 52")
    letter = {number: chr(ord("A") + i if i < 26 else ord("a") + i - 26) for i, number in enumerate(numbers)}
    terms = ["".join("..." if part is Ellipsis else letter[part] for part in listed) for listed in lists]
    return ",".join(terms[:-1]) + "->" + terms[-1] if has_result else ",".join(terms)


def einsum_path(*operands: Any, optimize: Any = "greedy", einsum_call: Any = False) -> Any:
    """Return the order of products that np.einsum would take, which depends on sizes only."""
    stand_ins = [np.broadcast_to(0.0, x.shape) if isinstance(x, dlarray) else x for x in operands]
    return np.einsum_path(*stand_ins, optimize=optimize)


def common_type(*arrays: Any) -> Any:
    """Return the type of floating point that holds the numbers of all arrays, which depends on dtypes only."""
    return np.common_type(*[np.empty(0, x.dtype) if isinstance(x, dlarray) else x for x in arrays])


FULL_FORMS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.reshape: reshape,
    np.ravel: ravel,
    np.concatenate: concatenate,
    np.stack: stack,
    np.vstack: vstack,
    np.hstack: hstack,
}
FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.einsum_path: einsum_path,
    np.common_type: common_type,
    np.around: elementwise.round,
}
