# SPDX-License-Identifier: BSD-3-Clause
"""Checks: of the functions that can be accelerated, and of replays against the underlying function (check_mode)."""

import inspect
from collections.abc import Callable
from typing import Any

from tracejit import tree
from tracejit.array import dlarray
from tracejit.call.signature import Call
from tracejit.errors import ArgumentError
from tracejit.functions import rng
from tracejit.functions.evaluate import dlfeval
from tracejit.record import recorder
from tracejit.traces.compare import first_difference
from tracejit.traces.trace import Trace
from tracejit.util.text import name_of


def check_function(function: Any) -> None:
    """Check that a function can be accelerated.

    Raises:
        ArgumentError: if it cannot.
    """
    if isinstance(function, (staticmethod, classmethod)):
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


def difference_from_function(
    function: Callable[..., Any], call: Call, trace: Trace, result: Any, tolerance: float
) -> str | None:
    """Run a function and return how the result of a replay differs from its own, or None."""
    args, kwargs = tree.unflatten(call.treedef, untraced(call.leaves))
    with recorder.suspended(), rng.apart(trace.state.drawn()):
        expected = dlfeval(function, *args, **kwargs)
    return first_difference(result, expected, tolerance)
