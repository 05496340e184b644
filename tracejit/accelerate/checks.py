# SPDX-License-Identifier: BSD-3-Clause
"""Checks: that a function can be accelerated, and that its replays agree with the underlying function (check_mode)."""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.array import dlarray
from tracejit.call.copies import copied, given
from tracejit.call.explain import container_names, leaf_names
from tracejit.call.signature import Call
from tracejit.capture.growth import elements_in
from tracejit.errors import ArgumentError
from tracejit.functions import rng
from tracejit.functions.evaluate import evaluate
from tracejit.record import recorder
from tracejit.record.argument_containers import containers_of, held_in
from tracejit.traces.compare import difference_of_leaves, first_difference
from tracejit.traces.stores import NO_STORES
from tracejit.traces.trace import Trace
from tracejit.util.devices import write as write_all
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.text import name_of


def check_function(function: Any) -> None:
    """Check that a function can be accelerated.

    Raises:
        ArgumentError: if it cannot.
    """
    if isinstance(function, (staticmethod, classmethod, property, functools.cached_property)):
        kind = type(function).__name__
        raise ArgumentError(
            f"dlaccelerate: expected a function, not a {kind}; put @{kind} above @dlaccelerate."
        )
    if not callable(function):
        raise ArgumentError(f"dlaccelerate: expected a function, not {type(function).__name__}.")
    for code in (function, type(function).__call__):
        if inspect.iscoroutinefunction(code) or inspect.isasyncgenfunction(code):
            raise ArgumentError(
                f"dlaccelerate: {name_of(function)} is async; accelerate the functions it awaits."
            )
        if inspect.isgeneratorfunction(code):
            raise ArgumentError(
                f"dlaccelerate: {name_of(function)} is a generator; accelerate the function that makes one element."
            )


def untraced(leaves: list[Any]) -> list[Any]:
    """Return leaves of arguments with arrays that are not on the tape of the evaluation around the call."""
    return [
        dlarray._wrap(leaf._data, leaf._format, None) if type(leaf) is dlarray else leaf for leaf in leaves
    ]


class Before(NamedTuple):
    """The state before a call: copies of the arguments, and of captured arrays with the arrays themselves.

    objects     to which the trace stores
    values      what it replaces
    containers  among the arguments, if it puts something into them
    """

    leaves: list[Any]
    captured: list[tuple[np.ndarray, np.ndarray]]
    objects: tuple[Any, ...] = ()
    values: tuple[Any, ...] = ()
    containers: Sequence[Any] = ()


def before(call: Call, trace: Trace, within: bool = False) -> Before | None:
    """Return copies of what a replay of a trace may write, or None if it cannot be checked.

    An array of the evaluation around the call that the function reads besides its arguments, or writes, has no value
    outside of that evaluation, so that the function cannot run beside it.

    Args:
        call: of the function.
        trace: that may be replayed.
        within: whether an evaluation goes on around the call, on whose tape captured arrays may be.
    """
    arguments = len(call.arrays)
    targets = [number - arguments for number in trace.effects.targets if number >= arguments]
    fetched: tuple[Any, ...] = ()
    if within or targets:
        fetched = trace.state.looked_at(within) or ()
    if within and (targets or any(type(part) is dlarray and part._value is not None for part in fetched)):
        return None
    read = [part._data if type(part) is dlarray else part for part in fetched]
    captured = [(read[number], read[number].copy()) for number in targets if read]
    located = None if trace.stores is None else trace.state.fetch_located(within)
    if trace.stores is None or located is None:
        return Before(copied(given(call)), captured)
    trace.state.rejected()
    values = tuple(trace.stores.values(located[1]))
    containers = trace.stores.containers(call) or ()
    return Before(copied(given(call)), captured, located[1], values, containers)


def difference_from_function(
    function: Callable[..., Any],
    call: Call,
    trace: Trace,
    result: Any,
    tolerance: float,
    were: Before,
    write: bool,
) -> str | None:
    """Run a function on copies of the arguments; return how a replay differs from it, or None.

    Args:
        function: the function.
        call: its arguments, after the replay.
        trace: the trace that was replayed.
        result: of the replay.
        tolerance: largest accepted difference of two numbers.
        were: what the call may write, before the replay.
        write: whether what the function writes into its arguments reaches them.
    """
    arguments = args, kwargs = tree.unflatten(call.treedef, were.leaves)
    copies = containers_of(call.treedef, arguments) if were.containers else ()
    written = [array.copy() for array, _ in were.captured]
    stores = trace.stores or NO_STORES
    stored = stores.values(were.objects)
    captured_arrays = [array for array, _ in were.captured]
    write_all(captured_arrays, [content for _, content in were.captured])
    stores.put_back(were.objects, were.values)
    try:
        with recorder.suspended(), rng.apart(trace.state.drawn()), trace.state.drawing_again():
            expected = evaluate(function, args, kwargs, write)
        captured = [array.copy() for array, _ in were.captured]
        assigned = stores.values(were.objects)
    finally:
        stores.put_back(were.objects, stored)
        write_all(captured_arrays, written)
    names = [f"argument {name}" for name in leaf_names(function, call.treedef.structure)]
    compared = [
        (name, leaf, copy)
        for name, leaf, copy in zip(names, untraced(given(call)), were.leaves, strict=True)
        if type(leaf) is dlarray or isinstance(leaf, np.ndarray)
    ]
    compared += [("a captured array", have, want) for have, want in zip(written, captured, strict=True)]
    differences = [difference_of_leaves(*leaves, tolerance) for leaves in compared]
    differences += [
        first_difference(elements_in(have), elements_in(want), tolerance, place)
        for have, want, place in zip(stored, assigned, stores.places, strict=True)
    ]
    if copies:
        places = container_names(function, call.treedef.structure)
        differences += [
            first_difference(held_in(have), held_in(want), tolerance, place)
            for have, want, place in zip(were.containers, copies, places, strict=True)
        ]
    return next(filter(None, [first_difference(result, expected, tolerance), *differences]), None)
