# SPDX-License-Identifier: BSD-3-Clause
"""Selection by conditions and places under NumPy's names: select, piecewise, choose, compress, extract, places.

The number of places where a condition holds is a size, which is guarded. Labels: where a condition chooses between
whole arrays, the result has the merged format; a list of places or of chosen elements has none.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.aval import INT64
from tracejit.errors import ArgumentValueError
from tracejit.functions import elementwise, indexing, joining, movement, selecting, taking
from tracejit.functions.axes import axis_of_a_number, normalize_axis
from tracejit.functions.elementwise import where
from tracejit.functions.formats import in_dtype
from tracejit.functions.numpy_api.flattening import flattened, line
from tracejit.functions.refusals import refuse
from tracejit.ops.op import Kind
from tracejit.record import recorder
from tracejit.util.arguments import is_option
from tracejit.util.text import brief


def _common(operands: Sequence[Any]) -> np.dtype:
    """Return the common dtype of arrays; Python numbers have the say that NumPy gives them."""
    kinds = [x if type(x) in (int, float, complex, bool) else as_array(x).dtype for x in operands]
    return np.result_type(*kinds)


def select(condlist: Any, choicelist: Any, default: Any = 0) -> dlarray:
    """Return for each element the choice of the first condition that holds, or the default."""
    if len(condlist) != len(choicelist) or not len(condlist):
        refuse(
            "np.select",
            f"there are {len(condlist)} conditions and {len(choicelist)} choices, expected as many of both, and one "
            "at least",
            ArgumentValueError,
        )
    dtype = _common([*choicelist, default])
    for number in [part for part in choicelist if type(part) is int]:
        if dtype.kind == "u" and not 0 <= number <= np.iinfo(dtype).max:  # signed ones keep the last bits
            refuse(
                "np.select",
                f"{brief(number)} does not fit {dtype}, the dtype of the choices; cast them first",
            )
    result = in_dtype(as_array(default, "np.select"), dtype)
    for condition, choice in zip(reversed(list(condlist)), reversed(list(choicelist)), strict=True):
        mask = as_array(condition, "np.select")
        if mask.dtype != bool:
            refuse("np.select", f"a condition has dtype {mask.dtype}, expected bool; compare it (x != 0)")
        result = where(mask, in_dtype(as_array(choice, "np.select"), dtype), result)
    return result


def _condition_list(x: dlarray, condlist: Any) -> list[dlarray]:
    first = condlist[0] if isinstance(condlist, (list, tuple)) and condlist else condlist
    if recorder.is_array(condlist) and condlist.ndim > x.ndim:
        listed = [condlist[i] for i in range(len(condlist))]
    elif not isinstance(condlist, (list, tuple)) or (
        not recorder.is_array(first) and not isinstance(first, (list, np.ndarray)) and x.ndim
    ):
        listed = [condlist]
    else:
        listed = list(condlist)
    masks = [as_array(condition, "np.piecewise") for condition in listed]
    return [mask if mask.dtype == bool else mask != 0 for mask in masks]


def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kwargs: Any) -> dlarray:
    """Return for each element the value of the function of the last condition that holds, 0 where none does.

    A function is applied to all elements, and what its condition does not choose is left out, where the operations that
    it consists of are elementwise; else to the elements that its condition chooses, as NumPy does.
    """
    array = as_array(x, "np.piecewise")
    if not array.ndim:
        conditions = [movement.reshape(mask, (1,)) for mask in _condition_list(array, condlist)]
        return movement.reshape(
            piecewise(movement.reshape(array, (1,)), conditions, funclist, *args, **kwargs), ()
        )
    masks = _condition_list(array, condlist)
    if not isinstance(funclist, (list, tuple)):
        refuse("np.piecewise", f"funclist must be a list of functions and numbers, not {brief(funclist)}")
    if len(funclist) == len(masks) + 1:
        none = ~masks[0]
        for mask in masks[1:]:
            none = none & ~mask
        masks.append(none)
    if len(funclist) != len(masks):
        refuse(
            "np.piecewise",
            f"there are {len(masks)} conditions and {len(funclist)} functions, expected as many",
            ArgumentValueError,
        )
    result: Any = movement.relabel(as_array(np.zeros(array.shape, array.dtype)), array._format)
    for mask, function in zip(masks, funclist, strict=True):
        chosen = movement.expanded(movement.relabel(mask, None), array.shape)
        if not callable(function):
            result = where(chosen, _number(function, array.dtype), result)
            continue
        whole = _of_all(array, partial(_called, function, args, kwargs))
        if whole is not None:
            result = where(chosen, in_dtype(whole, array.dtype), result)
            continue
        part = movement.relabel(array, None)[chosen]
        if part.size:
            values = in_dtype(as_array(function(part, *args, **kwargs), "np.piecewise"), array.dtype)
            places = taking.nonzero(movement.ravel(chosen))[0]
            flat = movement.relabel(movement.ravel(result), None)
            flat = indexing.setitem(flat, places, movement.relabel(values, None))
            result = movement.relabel(movement.reshape(flat, array.shape), array._format)
    return result  # type: ignore[no-any-return]


def _number(value: Any, dtype: np.dtype) -> Any:
    """Return a value that takes the place of a function, in a dtype that it fits."""
    if type(value) in (int, float):
        with suppress(OverflowError, ValueError):
            return dtype.type(int(value) if dtype.kind in "iu" else value)
        refuse("np.piecewise", f"{value} does not fit {dtype}; cast x first")
    return in_dtype(as_array(value, "np.piecewise"), dtype)


def _called(function: Callable[..., Any], args: Any, kwargs: Any, x: Any) -> Any:
    return function(x, *args, **kwargs)


def _of_all(array: dlarray, function: Callable[[Any], Any]) -> dlarray | None:
    """Return a function of a whole array if it consists of elementwise operations; it is known while it is recorded."""
    current = recorder.recorder()
    if current is None:
        return None
    before = len(current.graph.nodes)
    value = function(array)
    if not recorder.is_array(value) or value.shape not in ((), array.shape):
        return None
    nodes = current.graph.nodes[before:]
    return value if all(node.op.kind is Kind.ELEMENTWISE for node in nodes) else None


def choose(a: Any, choices: Any, out: Any = None, mode: Any = "raise") -> dlarray:
    """Return for each element the one of the choice whose number is there."""
    place = as_array(a, "np.choose")
    listed = [choices[i] for i in range(len(choices))]
    n = len(listed)
    if place.dtype.kind not in "iub" or not is_option(mode, ("raise", "wrap", "clip")) or not n:
        refuse(
            "np.choose",
            f"a is {recorder.describe(place)}, expected integers, choices has {n} entries, and mode is {brief(mode)}, "
            "expected 'raise', 'wrap' or 'clip'",
        )
    if place.dtype == bool:
        place = in_dtype(place, INT64)
    if mode == "wrap":
        place = place % n
    elif mode == "clip":
        place = elementwise.clip(place, 0, n - 1)
    dtype = _common(listed)
    stacked = [in_dtype(as_array(choice, "np.choose"), dtype) for choice in listed]
    if mode == "raise":
        # The op that takes from the numbers of the choices checks the range, in which it counts -1 from the end.
        place = movement.relabel(in_dtype(place, INT64), None)
        place = apply("take", as_array(np.arange(n)), where(place < 0, n, place), axis=0)
        if as_array(a)._format is not None:
            place = movement.relabel(place, as_array(a)._format)
    result = where(place == 0, stacked[0], stacked[-1])
    for number in range(1, n - 1):
        result = where(place == number, stacked[number], result)
    return result


def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> dlarray:
    """Return the parts of an array along an axis where a vector of bools is true."""
    array, number = line("np.compress", a, axis)
    mask = movement.relabel(as_array(condition, "np.compress"), None)
    if mask.ndim != 1:
        refuse("np.compress", f"condition has size {mask.shape}, expected a vector", ArgumentValueError)
    return _chosen(array, mask, number)


def extract(condition: Any, arr: Any) -> dlarray:
    """Return the elements of an array where a condition holds, in C order."""
    array = flattened("np.extract", arr)
    mask = flattened("np.extract", condition)
    return _chosen(array, mask, 0)


def _chosen(array: dlarray, mask: dlarray, axis: int) -> dlarray:
    """Return the parts of an array along an axis where a mask of one axis is true."""
    selection = selecting.select(array, mask != 0) if axis == 0 else None
    return apply("take", array, taking.nonzero(mask)[0], axis=axis) if selection is None else selection


def argwhere(a: Any) -> dlarray:
    """Return the places where an array is not 0 as rows."""
    array = movement.relabel(as_array(a, "np.argwhere"), None)
    if not array.ndim:
        return movement.reshape(taking.nonzero(movement.reshape(array, (1,)))[0], (-1, 1))[:, :0]  # type: ignore[no-any-return]
    return joining.stack(taking.nonzero(array), axis=1)


def flatnonzero(a: Any) -> dlarray:
    """Return the places, in C order, where an array is not 0."""
    return taking.nonzero(movement.ravel(as_array(a, "np.flatnonzero")))[0]


def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: Any = "raise") -> dlarray:
    """Return the elements at places along an axis; others are wrapped or clipped as `mode` says."""
    array = as_array(a, "np.take")
    if axis is None:
        array, axis = movement.relabel(movement.ravel(array), None), 0
    array = axis_of_a_number(array, axis)
    n = array.shape[normalize_axis("np.take", array, axis)]
    places = as_array(indices, "np.take", "indices")
    places = in_dtype(places, INT64) if places.dtype == bool else places
    if not is_option(mode, ("raise", "wrap", "clip")):
        refuse("np.take", f"mode must be 'raise', 'wrap' or 'clip', not {brief(mode)}", ArgumentValueError)
    if mode == "wrap":
        places = places % n
    elif mode == "clip":
        places = elementwise.clip(places, 0, n - 1)
    return taking.take(array, places, axis)


FULL_FORMS: dict[Callable[..., Any], Callable[..., Any]] = {np.take: take}
FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.select: select,
    np.piecewise: piecewise,
    np.choose: choose,
    np.compress: compress,
    np.extract: extract,
    np.argwhere: argwhere,
    np.flatnonzero: flatnonzero,
}
