# SPDX-License-Identifier: BSD-3-Clause
"""np.r_, np.c_ and np.vectorize in code that is recorded, where they are given traced arrays.

They use no protocol that would find traced arrays. So their methods are replaced while something is recorded.
Labels: results have none.
"""

import re
from collections.abc import Callable, Sequence
from functools import wraps
from math import prod
from typing import Any

import numpy as np

from tracejit.array import as_array, dlarray
from tracejit.errors import ArgumentValueError, TraceJitError
from tracejit.functions import joining, movement
from tracejit.functions.formats import in_asked_dtype, in_dtype
from tracejit.functions.refusals import refuse
from tracejit.record import monitor, recorder
from tracejit.record.memory import is_private
from tracejit.util.text import brief

_WEAK: dict[type, Any] = {int: 0, float: 0.0, complex: 0j}  # whose dtype gives way to that of arrays


def joined(original: Callable[..., Any], self: Any, key: Any) -> Any:
    """Answer np.r_[key] and np.c_[key]."""
    entries = key if isinstance(key, tuple) else (key,)
    if not any(_is_traced(entry) or _holds_traced(entry) for entry in entries):
        return original(self, key)
    with monitor.paused():
        return _joined("np.c_" if self is np.c_ else "np.r_", self, entries)


def _joined(name: str, self: Any, entries: Sequence[Any]) -> dlarray:
    axis, ndmin, first = self.axis, self.ndmin, self.trans1d
    parts: list[Any] = []
    kinds: list[Any] = []
    for number, entry in enumerate(entries):
        if isinstance(entry, str):
            found = re.fullmatch(r"\s*(-?\d+)\s*(?:,\s*(\d+)\s*(?:,\s*(-?\d+)\s*)?)?", entry)
            if found is None or number:
                refuse(
                    name, f"the directive {brief(entry)} is not supported on dlarrays; integers come first"
                )
            axis = int(found[1])
            ndmin = ndmin if found[2] is None else int(found[2])
            first = first if found[3] is None else int(found[3])
            continue
        part = _range(entry) if isinstance(entry, slice) else _array(name, entry)
        weak = _WEAK.get(type(entry))
        if recorder.is_number(entry):
            weak = _WEAK[float if part.dtype.kind == "f" else int]
        kinds.append(part.dtype if weak is None else weak)
        parts.append(_with_axes(part, ndmin, first))
    dtype = np.result_type(*kinds)
    return joining.concatenate([in_dtype(part, dtype) for part in parts], axis)


def _range(places: slice) -> Any:
    """Return the numbers that a slice stands for; an imaginary step is how many there are."""
    start, step = places.start or 0, 1 if places.step is None else places.step
    if isinstance(step, (complex, np.complexfloating)):
        return as_array(np.linspace(start, places.stop, int(abs(complex(step)))))
    return as_array(np.arange(start, places.stop, step))


def _with_axes(x: dlarray, ndmin: int, first: int) -> dlarray:
    """Return an array with new axes of size 1, its own ones from place `first` on; -1 for the last places."""
    more = ndmin - x.ndim
    if more <= 0:
        return x
    before = more if first == -1 else first if first >= 0 else first + more + 1
    return movement.reshape(x, (*(1,) * before, *x.shape, *(1,) * (more - before)))


def _array(name: str, x: Any) -> dlarray:
    """Return an operand as an array without labels, also a list of traced numbers."""
    if _holds_traced(x):
        return joining.stack([_array(name, part) for part in x])
    return movement.relabel(as_array(x, name), None)


def _is_traced(x: Any) -> bool:
    return recorder.is_number(x) or (isinstance(x, dlarray) and not is_private(x))


def _holds_traced(x: Any) -> bool:
    return isinstance(x, (list, tuple)) and any(_is_traced(part) or _holds_traced(part) for part in x)


def vectorized(original: Callable[..., Any], self: Any, *args: Any, **kwargs: Any) -> Any:
    """Answer a call of a function that np.vectorize made: what it computes for one element is computed for all."""
    given: dict[Any, Any] = {**dict(enumerate(args)), **kwargs}
    if self.pyfunc is np._NoValue or not any(_is_traced(x) or _holds_traced(x) for x in given.values()):
        return original(self, *args, **kwargs)
    keys = [key for key in given if key not in self.excluded]
    if not keys:
        return self.pyfunc(*args, **kwargs)
    with monitor.paused():
        inputs, outputs = _core_axes(self.signature, len(keys))
        arrays = [_array("np.vectorize", given[key]) for key in keys]
        shape, arrays = _spread(arrays, inputs)

    @wraps(self.pyfunc)
    def of_one(*parts: Any) -> Any:
        every = {**given, **dict(zip(keys, parts, strict=True))}
        return self.pyfunc(*[every[i] for i in range(len(args))], **{name: every[name] for name in kwargs})

    results = _of_all(of_one, arrays, prod(shape), self.otypes)
    several = isinstance(results, tuple)
    if outputs is not None and outputs != (len(results) if several else 1):
        refuse(
            "np.vectorize",
            f"the function does not have as many results as its signature, {outputs}",
            ArgumentValueError,
        )
    found = []
    for number, result in enumerate(results if several else (results,)):
        array = movement.reshape(result, (*shape, *result.shape[1:]))
        wanted = array.dtype if self.otypes is None else np.dtype(self.otypes[number])
        found.append(in_asked_dtype(array, wanted))
    return tuple(found) if several else found[0]


def _of_all(function: Callable[..., Any], arrays: Sequence[dlarray], count: int, otypes: Any) -> Any:
    """Return what a function of elements gives for all of them, which lie along the first axis."""
    from tracejit.functions.mapping import dlmap  # late: few programs need it

    if not count:
        if otypes is None:
            refuse(
                "np.vectorize",
                "there are no elements, so that the dtype of the result is not known; pass otypes=",
            )
        empty = tuple([as_array(np.zeros(0, dtype)) for dtype in otypes])
        return empty if len(empty) > 1 else empty[0]
    if count == 1:  # whose value may decide what is done: it is guarded
        results = function(*[array[0] for array in arrays])
        several = results if isinstance(results, tuple) else (results,)
        alone = tuple([movement.expand_dims(as_array(result, "np.vectorize"), 0) for result in several])
        return alone if isinstance(results, tuple) else alone[0]
    try:
        return dlmap(function, over=(0,) * len(arrays))(*arrays)
    except TraceJitError as error:
        text = str(error)
        if not text.startswith("dlmap: "):
            raise
        if "needs the value of an array that differs between observations" in text and count <= _MOST_CALLS:
            return _of_each(function, arrays, count)
        raise type(error)(f"np.vectorize: {text.removeprefix('dlmap: ')}") from error


def _of_each(function: Callable[..., Any], arrays: Sequence[dlarray], count: int) -> Any:
    """Return what a function gives for all elements where its branches depend on them: one call for each."""
    results = [function(*[array[i] for array in arrays]) for i in range(count)]
    if not isinstance(results[0], tuple):
        return joining.stack([as_array(result, "np.vectorize") for result in results])
    parts = zip(*results, strict=True)
    return tuple([joining.stack([as_array(result, "np.vectorize") for result in part]) for part in parts])


_MOST_CALLS = 256


def _core_axes(signature: Any, count: int) -> tuple[list[int], int | None]:
    """Return how many axes of each operand belong to an element, and the number of results if it is known."""
    if signature is None:
        return [0] * count, None
    sides = [re.findall(r"\(([^)]*)\)", side) for side in signature.split("->")]
    axes = [len([name for name in text.split(",") if name.strip()]) for text in sides[0]]
    if len(axes) != count:
        refuse(
            "np.vectorize",
            f"there are {count} arguments, expected {len(axes)} by the signature {signature!r}",
            ArgumentValueError,
        )
    return axes, len(sides[1])


def _spread(arrays: Sequence[dlarray], axes: Sequence[int]) -> tuple[tuple[int, ...], list[dlarray]]:
    """Return the common shape beside the axes of elements, and arrays with its elements along the first axis."""
    short = [i for i, (x, n) in enumerate(zip(arrays, axes, strict=True)) if x.ndim < n]
    if short:
        refuse(
            "np.vectorize",
            f"argument {short[0]} has fewer axes than the signature gives an element",
            ArgumentValueError,
        )
    own = [x.shape[: x.ndim - n] for x, n in zip(arrays, axes, strict=True)]
    try:
        shape = np.broadcast_shapes(*own)
    except ValueError:
        refuse(
            "np.vectorize",
            f"the sizes {', '.join(map(str, own))} do not broadcast; they must be equal, or 1",
            ArgumentValueError,
        )
    found = []
    for x, n in zip(arrays, axes, strict=True):
        core = x.shape[x.ndim - n :]
        found.append(movement.reshape(movement.broadcast_to(x, (*shape, *core)), (prod(shape), *core)))
    return shape, found
