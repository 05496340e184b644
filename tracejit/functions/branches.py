# SPDX-License-Identifier: BSD-3-Clause
"""dlwhile and dlcond: loops that a value ends and branches that a value chooses, which a program keeps.

Outside an accelerated function they are plain Python.
"""

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from tracejit import tree
from tracejit.array import apply, as_array, dlarray
from tracejit.aval import Aval
from tracejit.errors import ArgumentError, DimsError, DTypeError, TraceError
from tracejit.functions.loop_bodies import (
    Step,
    assuming,
    decided,
    give_back_draws,
    take_branches,
    take_while,
    watched,
    why_not_kept,
)
from tracejit.functions.loop_carry import apart, array_of, next_carry, own, value_of
from tracejit.functions.loops import dlscan
from tracejit.functions.movement import reshaped
from tracejit.record import recorder as recorders
from tracejit.record.recorder import Recorder
from tracejit.util.arguments import callable_, integer


def dlwhile(
    cond: Callable[[Any], Any], fun: Callable[[Any], Any], carry: Any, *, max_steps: int | None = None
) -> Any:
    """Return the carry after as many steps of `fun` as `cond` asks for.

    The same as this loop:

        while cond(carry): carry = fun(carry)

    In an accelerated function it is recorded once and stays a loop, whatever the number of steps, which each call
    decides by itself. It has a gradient there if the number of steps has a bound: the adjoint keeps the carry of each
    step, and so has to know how many there can be.

    Args:
        cond: takes the carry and returns one number or bool.
        fun: takes the carry and returns the next one, in the same containers, sizes, formats and dtypes.
        carry: a dlarray, ndarray or number, or containers of them. A step gets arrays of its own.
        max_steps: the greatest number of steps, for loops that are differentiated in accelerated functions. Memory for
            so many is reserved, and a step that is not made takes about 0.1 us.

    Raises:
        ArgumentError: if containers of the carry change, if `cond` returns no single number, or if the loop has not
            ended after `max_steps`.
        DimsError: if the carry changes its size or format.
        DTypeError: if the carry changes its dtype.
        GradientError: from dlgradient, in an accelerated function, without `max_steps`.

    Examples:
        >>> import tracejit as tj
        >>> root = tj.dlwhile(lambda x: abs(x * x - 2) > 1e-12, lambda x: (x + 2 / x) / 2, 1.0)
        >>> round(root.item(), 12)
        1.414213562373
    """
    callable_("dlwhile", "cond", cond)
    callable_("dlwhile", "fun", fun)
    if max_steps is not None:
        max_steps = integer("dlwhile", "max_steps", max_steps)
        if max_steps < 1:
            raise ArgumentError(f"dlwhile: max_steps must be at least 1, not {max_steps}.")
    loop = _While(cond, fun, carry, max_steps)
    recorder = recorders.recorder()
    goes_on = loop.test()
    if recorder is not None and recorder.accelerating and _varies(goes_on):
        return loop.recorded(recorder, goes_on) if max_steps is None else loop.bounded(goes_on)
    return loop.finish(goes_on)


class _While:
    """A loop that a value ends, whose steps are being made."""

    def __init__(self, cond: Any, fun: Any, carry: Any, most: int | None) -> None:
        self.cond, self.fun, self.most = cond, fun, most
        leaves, self.treedef = tree.flatten(carry, function="dlwhile")
        self.carry = own([array_of("dlwhile", "carry", leaf) for leaf in leaves])

    @property
    def result(self) -> Any:
        """The carry in its containers."""
        return tree.unflatten(self.treedef, self.carry)

    def test(self) -> Any:
        """Return whether the loop goes on, a bool, or an array of one without axes."""
        return _truth("dlwhile: cond returned", self.cond(self.result))

    def call(self, carry: list[dlarray]) -> None:
        """Make a step, given a carry of its own."""
        returned = self.fun(tree.unflatten(self.treedef, carry))
        self.carry = next_carry("dlwhile", returned, self.treedef, self.carry)

    def finish(self, goes_on: Any) -> Any:
        """Make steps as long as the loop goes on, and return the carry."""
        steps = 0
        while bool(goes_on):
            if steps == self.most:
                self._refuse()
            self.call(own(self.carry))
            goes_on = self.test()
            steps += 1
        self.carry = own(self.carry)
        return self.result

    def _refuse(self) -> NoReturn:
        raise ArgumentError(
            f"dlwhile: the loop has not ended after max_steps={self.most} steps; raise max_steps, or change cond so "
            "that it becomes false."
        )

    def bounded(self, goes_on: dlarray) -> Any:
        """Record a loop with the largest possible number of steps; each step runs only if the loop goes on."""

        def step(state: Any, _: None) -> tuple[Any, None]:
            goes_on, carry = state

            def go() -> Any:
                self.carry = carry
                self.call(own(carry))
                return as_array(self.test(), "dlwhile", "cond"), self.carry

            return dlcond(goes_on, go, lambda: (goes_on, carry)), None

        (goes_on, self.carry), _ = dlscan(step, (goes_on, self.carry), length=self.most)
        if goes_on:  # a guard of the trace
            self._refuse()
        return self.result

    def recorded(self, recorder: Recorder, goes_on: dlarray) -> Any:
        """Record two steps, also those that would not be made, and return the results of the loop."""
        first = [value_of(goes_on), *map(value_of, self.carry)]
        tests, carries = [goes_on], [self.carry]
        steps: list[Step] = []
        guards = []
        while len(steps) < 2 and (not steps or steps[-1].hindrance is None):
            guards.append(len(recorder.guards))
            with watched(recorder) as (watch, made), assuming(recorder, not tests[-1]._data):
                carry = own(self.carry)
                watch.inputs = [value_of(tests[-1]), *map(value_of, carry)]
                watch.start = len(recorder.graph.nodes)
                self.call(carry)
                tests.append(as_array(self.test(), "dlwhile", "cond"))
                watch.outputs = [value_of(tests[-1]), *map(value_of, self.carry)]
            steps += made
            carries.append(self.carry)
        is_same = len(steps) == 2 and not any(step.draws for step in steps)
        if not is_same or why_not_kept(recorder, steps, len(first)) is not None:
            return self._made(recorder, steps, tests, carries, guards)
        formats = [array._format for array in self.carry]
        self.carry = []
        values = take_while(recorder, steps, first)[1:]
        pairs = zip(values, formats, strict=True)
        self.carry = [dlarray._wrap(value.data, format, value) for value, format in pairs]
        return self.result

    def _made(
        self, recorder: Recorder, steps: Sequence[Step], tests: list[dlarray], carries: list[list[dlarray]],
        guards: list[int],
    ) -> Any:  # fmt: skip
        """Go on step by step, after the recorded steps that are to be made."""
        added = 0
        for number, step in enumerate(steps):
            if not tests[number]._data:
                if any(later.writes for later in steps[number:]):
                    raise TraceError(
                        "dlwhile: fun writes into an array that was made outside it. It is recorded also where it is "
                        "not called, and the write cannot be undone. Return the array in the carry."
                    )
                for later in reversed(steps[number:]):
                    give_back_draws(recorder, later)
                del recorder.guards[guards[number] + added :]
            count = len(recorder.guards)
            if not decided(recorder, tests[number], step, guards[number] + added):
                self.carry = own(carries[number])
                return self.result
            added += len(recorder.guards) - count
        return self.finish(tests[len(steps)])


def dlcond(pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any) -> Any:
    """Return what `true_fun` gives of the operands where `pred` is true, otherwise what `false_fun` gives.

    The same as this branch:

        true_fun(*operands) if pred else false_fun(*operands)

    In an accelerated function both are recorded, and the program computes the one that each call chooses; also its
    adjoint. A Python branch makes a trace for each outcome.

    Args:
        pred: one number or bool.
        true_fun: takes the operands and returns an array, or containers of them.
        false_fun: takes the operands and returns the same containers, sizes, formats and dtypes.
        operands: anything; the functions may read more from around.

    Raises:
        ArgumentError: if the functions return different containers, or `pred` is no single number.
        DimsError: if they return arrays of different sizes or formats.
        DTypeError: if they return arrays of different dtypes.

    Examples:
        >>> import tracejit as tj
        >>> x = tj.dlarray([1.0, -4.0])
        >>> tj.dlcond(x.sum() > 0, tj.exp, lambda x: x * 2, x).tolist()
        [2.0, -8.0]
    """
    callable_("dlcond", "true_fun", true_fun)
    callable_("dlcond", "false_fun", false_fun)
    chosen = _truth("dlcond: pred is", pred)
    recorder = recorders.recorder()
    functions = (true_fun, false_fun)
    if recorder is None or not recorder.accelerating or not _varies(chosen):
        return apart("dlcond", functions[not bool(chosen)](*operands))
    taken = 0 if chosen._data else 1
    value = value_of(chosen)
    results: list[Any] = [None, None]
    steps: list[Any] = [None, None]
    before = len(recorder.guards)
    for number in (taken, 1 - taken):
        guards = len(recorder.guards)
        with assuming(recorder, number != taken):
            results[number], steps[number] = _branch(recorder, functions[number], operands)
        step = steps[number]
        if step.hindrance is None and not step.draws:
            continue
        if number != taken:
            give_back_draws(recorder, step)
            if step.writes:
                raise TraceError(
                    f"dlcond: {('true_fun', 'false_fun')[number]} writes into an array that was made outside it. It is "
                    "recorded also where it is not chosen, and the write cannot be undone. Return the array."
                )
            del recorder.guards[guards:]
        decided(recorder, chosen, steps[taken], before)  # each outcome has its trace
        leaves, treedef = results[taken]
        return tree.unflatten(treedef, own(leaves))
    _check_branches(results)
    leaves, treedef = results[taken]
    formats = [leaf._format for leaf in leaves]
    arrays = [
        dlarray._wrap(found.data, format, found)
        for found, format in zip(take_branches(recorder, steps, value), formats, strict=True)
    ]
    return tree.unflatten(treedef, arrays)


def _branch(
    recorder: Recorder, fun: Callable[..., Any], operands: Sequence[Any]
) -> tuple[tuple[list[dlarray], tree.TreeDef], Step]:
    """Return the results of a branch and what was recorded."""
    with watched(recorder) as (watch, steps):
        leaves, treedef = tree.flatten(fun(*operands), function="dlcond")
        arrays = [as_array(leaf, "dlcond", "result") for leaf in leaves]
        watch.outputs = [value_of(array) for array in arrays]
    return (arrays, treedef), steps[0]


def _check_branches(results: Sequence[tuple[list[dlarray], tree.TreeDef]]) -> None:
    """Check that both branches give arrays of the same kinds in the same containers."""
    (leaves, treedef), (others, other_treedef) = results
    if treedef != other_treedef:
        differ = tree.difference(treedef, other_treedef, "the result", "true_fun", "false_fun")
        raise ArgumentError(f"dlcond: {differ}; both return the same containers.")
    for path, one, other in zip(tree.paths(treedef, "the result"), leaves, others, strict=True):
        first, second = (Aval(x._data.shape, x._format, x._data.dtype) for x in (one, other))
        if first == second:
            continue
        text = f"dlcond: {path} is {first} from true_fun and {second} from false_fun; both give the same kind of array."
        if first.shape == second.shape and first.format == second.format:
            raise DTypeError(f"{text} Cast one of them (x.astype(np.{first.dtype})).")
        raise DimsError(f"{text} Reshape, broadcast or relabel one of them.")


def _varies(array: dlarray | bool) -> bool:
    """Return whether replays may find another value."""
    return type(array) is dlarray and not value_of(array).is_constant


def _truth(what: str, given: Any) -> Any:
    """Return a number as a bool without axes, one of Python's as it is."""
    if isinstance(given, (bool, int, float, np.generic)):
        return bool(given)
    array = as_array(given, what.partition(":")[0], "pred")
    if array.size != 1:
        raise ArgumentError(
            f"{what} {recorders.describe(array)}, expected one number or bool; reduce it (all, any)."
        )
    array = reshaped(array, (), None)
    if array.dtype != np.dtype(bool):
        array = apply("not_equal", array, 0)
    return array


__all__ = ["dlcond", "dlwhile"]
