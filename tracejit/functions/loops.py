# SPDX-License-Identifier: BSD-3-Clause
"""Loops that stay loops in an accelerated function: dlscan and dlcheckpoint.

Outside an accelerated function they are plain Python.
"""

from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

from tracejit import tree
from tracejit.array import dlarray
from tracejit.errors import ArgumentError, DimsError
from tracejit.functions.joining import stack
from tracejit.functions.loop_bodies import Step, take_call, take_loop, watched, why_not_kept
from tracejit.functions.loop_carry import apart, array_of, check_same, next_carry, own, value_of
from tracejit.functions.movement import permuted, relabel, reshaped, sliced
from tracejit.ir import Value
from tracejit.record import recorder as recorders
from tracejit.record.recorder import Recorder
from tracejit.util.arguments import callable_, flag, integer
from tracejit.util.text import brief

P = ParamSpec("P")
R = TypeVar("R")

_LEAST = 3  # steps of a loop that is kept: two are recorded


def dlscan(
    fun: Callable[[Any, Any], tuple[Any, Any]],
    carry: Any,
    xs: Any = None,
    *,
    length: int | None = None,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """Run `fun` for each step along time, with what it carries from one step to the next; return the last carry and ys.

    The same as this loop, where x has a part of each array of xs, and the results are stacked at the end:

        for x in xs: carry, y = fun(carry, x); ys.append(y)

    In an accelerated function the loop stays a loop: two steps are recorded, whatever the length. Its gradient is a
    loop in the opposite order, which reads what the steps have saved (see dlcheckpoint).

    Args:
        fun: takes (carry, x) and returns (carry, y): the carry in the same containers, sizes, formats and dtypes, and a
            result or several, or None.
        carry: a dlarray, ndarray or number, or containers of them. A step gets arrays of its own.
        xs: an array or containers of them, all of one length: along T where an array has labels, otherwise along its
            first axis. A part has no such axis. None if there is only a length.
        length: the number of steps; by default that of xs.
        reverse: whether the last part comes first. Results stand where their parts stood.

    Returns:
        The carry after the last step; and results as `fun` gives them, stacked along a new axis: T, the last one, where
        they have labels, otherwise the first.

    Raises:
        ArgumentError: if `fun` does not return a pair, if containers of the carry change, or if there is no step.
        DimsError: if lengths differ, or the carry or a result changes its size or format, or an x has no axis.
        DTypeError: if the carry or a result changes its dtype.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> def step(total, x):
        ...     total = total + x
        ...     return total, total * 2
        >>> last, ys = tj.dlscan(step, 0.0, np.arange(4.0))
        >>> last.item(), ys.tolist()
        (6.0, [0.0, 2.0, 6.0, 12.0])
    """
    callable_("dlscan", "fun", fun)
    loop = _Scan(fun, carry, xs, length, reverse)
    recorder = recorders.recorder()
    if recorder is not None and recorder.accelerating and loop.length >= _LEAST:
        operands = loop.operands()
        steps = [loop.recorded(recorder), loop.recorded(recorder)]
        if why_not_kept(recorder, steps, len(loop.carry)) is None:
            return loop.kept(recorder, steps, operands)
    while loop.done < loop.length:
        loop.step()
    return loop.result()


class _Scan:
    """A scan whose steps are being made.

    Attributes:
        length: the number of steps.
        done: how many steps were made.
        carry: the arrays that go on to the next step.
    """

    def __init__(self, fun: Any, carry: Any, xs: Any, length: Any, reverse: bool) -> None:
        self.fun = getattr(fun, "checkpointed", fun)
        self.saves = self.fun is fun
        self.reverse = flag("dlscan", "reverse", reverse)
        leaves, self.treedef = tree.flatten(carry, function="dlscan")
        self.carry = [array_of("dlscan", "carry", leaf) for leaf in leaves]
        leaves, self.xs_treedef = tree.flatten(xs, function="dlscan")
        self.xs = [array_of("dlscan", "xs", leaf) for leaf in leaves]
        self.axes = [self._axis(number) for number in range(len(self.xs))]
        self.length = self._length(length)
        self.done = 0
        self.results: list[list[dlarray]] = []  # of each step
        self.results_treedef: Any = None

    def _name(self, number: int) -> str:
        return tree.paths(self.xs_treedef, "xs")[number]

    def _axis(self, number: int) -> int:
        """Return the axis along which an x is scanned."""
        x = self.xs[number]
        if not x.ndim:
            raise DimsError(
                f"dlscan: {self._name(number)} is {recorders.describe(x)}, expected an array with an axis of steps; "
                "a value that all steps read need not be passed: fun can use it as it is."
            )
        if x.format is None:
            return 0
        if "T" not in x.format:
            raise DimsError(
                f"dlscan: {self._name(number)} is {recorders.describe(x)}, without a label T; label the axis of the "
                "steps T, or take the labels off (stripdims) to scan along the first axis."
            )
        return x.format.index("T")

    def _length(self, length: Any) -> int:
        lengths = [x.shape[axis] for x, axis in zip(self.xs, self.axes, strict=True)]
        if length is None and not lengths:
            raise ArgumentError(
                "dlscan: neither xs nor length is given; pass length= for the number of steps."
            )
        count = lengths[0] if length is None else integer("dlscan", "length", length)
        for number, found in enumerate(lengths):
            if found != count:
                other = "length" if length is not None else self._name(0)
                raise DimsError(
                    f"dlscan: {self._name(number)} has {found} steps, {other} {count}; all must have the same."
                )
        if count < 1:
            raise ArgumentError(
                f"dlscan: there are {count} steps, expected at least 1; skip the loop in that case."
            )
        return count

    def parts(self) -> list[dlarray]:
        """Return the parts of the next step."""
        at = self.length - 1 - self.done if self.reverse else self.done
        parts = []
        for x, axis in zip(self.xs, self.axes, strict=True):
            part = sliced(x, {axis: slice(at, at + 1)})
            format = None if x.format is None else x.format[:axis] + x.format[axis + 1 :]
            parts.append(reshaped(part, x.shape[:axis] + x.shape[axis + 1 :], format))
        return parts

    def step(self) -> None:
        """Make the next step."""
        self.call(own(self.carry), self.parts())

    def call(self, carry: list[dlarray], parts: list[dlarray]) -> None:
        """Make the next step, given its carry and its parts."""
        returned = self.fun(tree.unflatten(self.treedef, carry), tree.unflatten(self.xs_treedef, parts))
        if type(returned) is not tuple or len(returned) != 2:
            raise ArgumentError(
                f"dlscan: fun returned {brief(returned)}, expected a pair (carry, y); return carry, None where a step "
                "has no result."
            )
        self.carry = next_carry("dlscan", returned[0], self.treedef, self.carry)
        self._keep(returned[1])
        self.done += 1

    def _keep(self, result: Any) -> None:
        leaves, treedef = tree.flatten(result, function="dlscan")
        arrays = [array_of("dlscan", "y", leaf) for leaf in leaves]
        if not self.results:
            self.results_treedef = treedef
            for number, array in enumerate(arrays):
                if array.format is not None and "T" in array.format:
                    raise DimsError(
                        f"dlscan: {tree.paths(treedef, 'y')[number]} is {recorders.describe(array)}; results get a new "
                        "axis T, so a step must not return one. Label its axis S or U."
                    )
        elif treedef != self.results_treedef:
            differ = tree.difference(self.results_treedef, treedef, "y", "the first step", "a later one")
            raise ArgumentError(f"dlscan: {differ}; each step returns a y of the same containers.")
        else:
            check_same("dlscan", "y", treedef, arrays, self.results[0])
        self.results.append(arrays)

    def recorded(self, recorder: Recorder) -> Step:
        """Make the next step, and return what was recorded."""
        with watched(recorder) as (watch, steps):
            carry, parts = own(self.carry), self.parts()
            watch.inputs = [recorder.value(array) for array in (*carry, *parts)]
            watch.start = len(recorder.graph.nodes)
            self.call(carry, parts)
            watch.outputs = [recorder.value(array) for array in (*self.carry, *self.results[-1])]
        return steps[0]

    def operands(self) -> tuple[list[Value], list[Value]]:
        """Return the Values of the first carry, and of xs with time as their first axis."""
        carry = [value_of(array) for array in self.carry]
        parts = [value_of(_time_first(x, axis)) for x, axis in zip(self.xs, self.axes, strict=True)]
        return carry, parts

    def kept(
        self, recorder: Recorder, steps: Sequence[Step], operands: tuple[list[Value], list[Value]]
    ) -> tuple[Any, Any]:
        """Return the results of a loop that is kept, given its recorded steps and its operands."""
        formats = [array._format for array in (*self.carry, *self.results[0])]
        params = {"length": self.length, "reverse": self.reverse, "save": self.saves}
        name, treedef = "dlscan", self.results_treedef
        count = len(self.carry)
        self.carry, self.results = [], []  # arrays that are no longer on the tape
        values = take_loop(recorder, name, steps, operands, params)
        arrays = [
            dlarray._wrap(value.data, format, value) for value, format in zip(values, formats, strict=True)
        ]
        results = [_along_time(array, array._format) for array in arrays[count:]]
        return tree.unflatten(self.treedef, arrays[:count]), tree.unflatten(treedef, results)

    def result(self) -> tuple[Any, Any]:
        """Return the results of a loop all of whose steps were made."""
        stacked = []
        steps = self.results[::-1] if self.reverse else self.results
        for arrays in zip(*steps, strict=True):
            format = arrays[0]._format
            if recorders.recorder() is None:
                whole = dlarray._wrap(np.stack([array._data for array in arrays]), None, None)
            else:
                whole = stack([relabel(array, None) for array in arrays])
            stacked.append(_along_time(whole, format))
        carry = tree.unflatten(self.treedef, own(self.carry))
        return carry, tree.unflatten(self.results_treedef, stacked)


def _time_first(x: dlarray, axis: int) -> dlarray:
    """Return an array without labels, and with an axis in front."""
    return permuted(relabel(x, None), (axis, *[i for i in range(x.ndim) if i != axis]))


def _along_time(stacked: dlarray, format: str | None) -> dlarray:
    """Return stacked results, along T where a step has labels."""
    if format is None:
        return relabel(stacked, None)
    plain = relabel(stacked, None)
    return relabel(permuted(plain, (*range(1, plain.ndim), 0)), format + "T")


class Checkpointed(Generic[P, R]):
    """A function whose adjoint computes its values again (dlcheckpoint)."""

    def __init__(self, fun: Callable[P, R]) -> None:
        self.checkpointed = fun
        update_wrapper(self, fun)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        recorder = recorders.recorder()
        if recorder is None or not recorder.accelerating:
            return apart("dlcheckpoint", self.checkpointed(*args, **kwargs))  # type: ignore[no-any-return]
        with watched(recorder) as (watch, steps):
            result = self.checkpointed(*args, **kwargs)
            leaves, treedef = tree.flatten(result, function="dlcheckpoint")
            numbers = [number for number, leaf in enumerate(leaves) if type(leaf) is dlarray]
            watch.outputs = [recorder.value(leaves[number]) for number in numbers]
        if steps[0].hindrance is not None or not numbers:
            return apart("dlcheckpoint", result)  # type: ignore[no-any-return]
        formats = [leaves[number]._format for number in numbers]
        for number, value, format in zip(
            numbers, take_call(recorder, "dlcheckpoint", steps[0]), formats, strict=True
        ):
            leaves[number] = dlarray._wrap(value.data, format, value)
        return tree.unflatten(treedef, leaves)  # type: ignore[no-any-return]


def dlcheckpoint(fun: Callable[P, R]) -> Callable[P, R]:
    """Return `fun` as a function whose gradient computes the values inside again instead of keeping them.

    It takes less memory, and the time of one more forward pass. In dlscan(dlcheckpoint(step), ...) only the carry of
    each step is kept. It matters in accelerated functions; elsewhere the function is `fun`.

    Args:
        fun: takes and returns arrays, or containers of them.

    Raises:
        ArgumentError: if `fun` is no function.

    Examples:
        >>> import tracejit as tj
        >>> @tj.dlaccelerate
        ... def slope(x):
        ...     y = tj.dlcheckpoint(lambda x: tj.exp(tj.sin(x)))(x)
        ...     return tj.dlgradient(y.sum(), x)
        >>> [slope(tj.dlarray([0.0])).tolist() for _ in range(3)]
        [[1.0], [1.0], [1.0]]
    """
    callable_("dlcheckpoint", "fun", fun)
    return Checkpointed(fun)


__all__ = ["dlcheckpoint", "dlscan"]
