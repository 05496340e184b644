# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the table of messages (messages.py) of accelerated functions, their options and their arguments."""

import functools
import itertools
import queue
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from messages_shared import V, X

import tracejit as tj
from tracejit.errors import (
    ArgumentError,
    BoundsError,
    CacheError,
    ChangedTraceWarning,
    DTypeError,
    LostChangeWarning,
    NotAcceleratedWarning,
    OutputsDifferWarning,
    RetraceError,
    RetraceWarning,
)


def replay_out_of_range() -> None:
    """Replay an index that is out of range."""
    pick = tj.dlaccelerate(lambda x, i: tj.take(x, i, 0))
    for index in (0, 1, 2, 3):
        pick(V, np.array([index]))


def under_policy(policy: str, call: Callable[[], object]) -> object:
    """Return what a call gives under a policy."""
    tj.set_policy(policy)
    try:
        return call()
    finally:
        tj.set_policy("default")


def repeat(function: Callable[..., object], *args: Any) -> None:
    """Call a function as often as it takes to record and audit it."""
    for _ in range(4):
        function(*args)


@tj.dlaccelerate
def square(x: Any, y: Any = None) -> Any:
    return x * x


def counting() -> tj.AcceleratedFunction:
    """Return a function that multiplies by 1, 2, 3, ... in its calls."""
    calls = itertools.count(1)

    def scale(x: Any) -> Any:
        return x * np.array([next(calls)])

    return tj.dlaccelerate(scale)


def uncompiled_under_a_policy() -> None:
    """Call a function that runs uncompiled where that is an error."""
    function = counting()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        repeat(function, X)
    under_policy("error-on-retrace", lambda: function(X))


def printing() -> None:
    """Print what a replay does not print again."""

    def step(x: Any) -> Any:
        print("step")
        return x * 2

    repeat(tj.dlaccelerate(step), X)


def warning_of_its_own() -> None:
    """Give a warning at each call, which a replay does not give again."""

    def step(x: Any) -> Any:
        warnings.warn("large", stacklevel=1)
        return x * 2

    with warnings.catch_warnings():
        warnings.filterwarnings("always", "large")
        repeat(tj.dlaccelerate(step), X)


def constant_that_changes(**options: Any) -> None:
    """Replay a constant that changes after some calls."""
    phase = iter([1.0, 1.0, 5.0, 5.0, 5.0])

    def scale(x: Any) -> Any:
        return x * np.array([next(phase)])

    function = tj.dlaccelerate(scale, **options)
    for _ in range(8):
        function(V)


def number_that_is_needed() -> None:
    """Call a function with numbers that it needs themselves."""
    function = tj.dlaccelerate(lambda x, n: x * complex(n).real)
    for n in range(100):
        function(V, 1.0 + n / 10)


def complex_number_that_changes() -> None:
    """Call a function with complex numbers."""
    function = tj.dlaccelerate(lambda x, z: x * z)
    for n in range(10):
        function(V, complex(n, 1))


def turnover() -> None:
    """Call a function with more sizes than its cache keeps."""
    function = tj.dlaccelerate(lambda x: x.sum(), cache_size=4)
    for n in range(40):
        function(np.ones(1 + n))


async def coroutine() -> None: ...


def generator() -> Iterator[int]:
    yield 1


class Slotted:
    __slots__ = ()

    @tj.dlaccelerate
    def step(self, x: Any) -> Any:
        return x


ROWS: tuple[tuple[Callable[[], object], type[Exception], str], ...] = (
    # accelerate/bound
    (
        lambda: tj.dlaccelerate(np.sin).__self__,
        AttributeError,
        "the underlying function is no bound method",
    ),
    # program
    (
        replay_out_of_range,
        BoundsError,
        "an index is out of range in a replay of take at <place>; valid indices are -n to n - 1 for an axis of size "
        "n, and from 0 on for embed, ctc and classes. Call the accelerated function with enabled = False to see which.",
    ),
    # accelerate/checks
    (
        lambda: tj.dlaccelerate(staticmethod(abs)),
        ArgumentError,
        "dlaccelerate: expected a function, not a staticmethod; put @staticmethod above @dlaccelerate.",
    ),
    (
        lambda: tj.dlaccelerate(property(abs)),
        ArgumentError,
        "dlaccelerate: expected a function, not a property; put @property above @dlaccelerate.",
    ),
    (
        lambda: tj.dlaccelerate(functools.cached_property(abs)),
        ArgumentError,
        "dlaccelerate: expected a function, not a cached_property; put @cached_property above @dlaccelerate.",
    ),
    (
        lambda: tj.dlaccelerate(3),
        ArgumentError,
        "dlaccelerate: expected a function, not int.",
    ),
    (
        lambda: tj.dlaccelerate(coroutine),
        ArgumentError,
        "dlaccelerate: coroutine is async; accelerate the functions it awaits.",
    ),
    (
        lambda: tj.dlaccelerate(generator),
        ArgumentError,
        "dlaccelerate: generator is a generator; accelerate the function that makes one element.",
    ),
    # accelerate/dispatch
    (
        lambda: under_policy("error-on-retrace", lambda: square(X)),
        RetraceError,
        "square: miss. A new trace would be recorded for x: 2(B) x 3(C) float64, because there was none "
        'yet. set_policy("default") allows recordings.',
    ),
    (
        uncompiled_under_a_policy,
        RetraceError,
        "counting.<locals>.scale: not accelerated for x: 2(B) x 3(C) float64: two recordings differ: a "
        "constant of cast was 1, is 2 (1 of 1 elements differ): an array that is created in each call has "
        'different contents each time at <place>. The call ran uncompiled. set_policy("default") allows '
        "recordings.",
    ),
    # accelerate/reporter
    (
        lambda: under_policy("warn-on-retrace", lambda: square(X)),
        RetraceWarning,
        "square: miss. A new trace would be recorded for x: 2(B) x 3(C) float64, because there was none "
        'yet. set_policy("default") allows recordings.',
    ),
    (
        lambda: repeat(counting(), X),
        NotAcceleratedWarning,
        "counting.<locals>.scale runs uncompiled for these arguments: two recordings differ: a constant "
        "of cast was 1, is 2 (1 of 1 elements differ): an array that is created in each call has "
        "different contents each time at <place>. Likely cause: random numbers that NumPy or Python drew, "
        "the time, or a file. Compute it outside and pass it as an argument, or use the random functions "
        "of tracejit with like=, which are recorded.",
    ),
    (
        constant_that_changes,
        ChangedTraceWarning,
        "constant_that_changes.<locals>.scale: a trace that was replayed is out of date: a constant of "
        "mul was 1.0, is 5.0 (1 of 1 elements differ): an array that is created in each call has "
        "different contents each time at <place>. It has been recorded again; replays before this call "
        "may have used old values. Likely cause: random numbers that NumPy or Python drew, the time, or a "
        "file. Pass it as an argument.",
    ),
    (
        number_that_is_needed,
        RetraceWarning,
        "number_that_is_needed.<locals>.<lambda> is recorded again for each value of n, because complex() "
        "at <place> needs it as a Python number. Pass it as a dlarray, or use operators and "
        "functions of math, NumPy or tracejit, which take it as it is. If a trace for each value is intended, raise "
        "max_variants.",
    ),
    (
        complex_number_that_changes,
        RetraceWarning,
        "complex_number_that_changes.<locals>.<lambda> is recorded again for each value of z, because a complex "
        "number is a constant of the trace. Pass it as a dlarray (tj.dlarray(z)). If a trace for each value is "
        "intended, raise max_variants.",
    ),
    (
        turnover,
        RetraceWarning,
        "turnover.<locals>.<lambda> is recorded in most calls: traces for 20 different signatures were "
        "evicted, and 0 % of 24 calls were replayed. turnover.<locals>.<lambda>: miss. A new trace was "
        "recorded for x: 24 float64, because, compared with the nearest trace, x was 23 float64, is 24 "
        "float64. If so many are intended, raise cache_size (4).",
    ),
    (
        lambda: constant_that_changes(check_mode="sample", check_every=5, audit=False),
        OutputsDifferWarning,
        "Accelerated outputs differ from underlying function outputs. "
        "constant_that_changes.<locals>.scale: output[0] is 1.0, expected 5.0 (3 of 3 elements differ by "
        "more than 0.0001). Values that do not come from array arguments are constants of a trace "
        "(NumPy's random numbers, the time, a counter, a file); pass them as arguments.",
    ),
    (
        printing,
        LostChangeWarning,
        "printing.<locals>.step calls print() at <place>, which happens while it is recorded only: a replay does not "
        "repeat it. Return the value, and print it outside.",
    ),
    (
        warning_of_its_own,
        LostChangeWarning,
        "warning_of_its_own.<locals>.step gives a warning at <place>, which happens while it is recorded only: a "
        "replay does not repeat it. Return the value, and give it outside.",
    ),
    # accelerate/function
    (
        lambda: tj.dlaccelerate(tj.exp, size=3),
        ArgumentError,
        "dlaccelerate: unknown option 'size'; options are cache_size, check_every, check_mode, "
        "check_tolerance, confirm, audit, max_variants, enabled, precision, target, write_arguments.",
    ),
    (
        lambda: tj.dlaccelerate(CheckMode="tolerance"),
        ArgumentError,
        "dlaccelerate: unknown option 'CheckMode'; the option is check_mode.",
    ),
    (
        lambda: tj.dlaccelerate(tj.exp, static_argnums=0),
        ArgumentError,
        "dlaccelerate: unknown option 'static_argnums'; leave it out: every argument that is not an array is static.",
    ),
    (
        lambda: tj.dlaccelerate(tj.exp, X),  # type: ignore[call-overload]
        ArgumentError,
        "dlaccelerate: expected a function alone; call what it returns: dlaccelerate(f)(x).",
    ),
    (
        lambda: tj.clear_cache(abs),
        ArgumentError,
        "clear_cache: expected an accelerated function, not builtin_function_or_method.",
    ),
    (
        lambda: tj.dlaccelerate(square),
        ArgumentError,
        "dlaccelerate: the function is accelerated already; pass its attribute function to accelerate it with "
        "different options.",
    ),
    (
        lambda: tj.dlaccelerate(tj.exp).source(),
        CacheError,
        "exp: there is no emitted source; call the function first, with arguments for which it is "
        "accelerated (explain() tells).",
    ),
    (
        lambda: Slotted().step,
        ArgumentError,
        "Slotted.step: instances of Slotted have no __dict__ to keep the cache of an accelerated method in; remove "
        "__slots__ (slots=True of a dataclass), add '__dict__' to them, or accelerate a function that takes the "
        "arrays.",
    ),
    # accelerate/options
    (
        lambda: tj.dlaccelerate(tj.exp, enabled=1),
        ArgumentError,
        "enabled: expected True or False, not 1.",
    ),
    (
        lambda: tj.dlaccelerate(tj.exp, cache_size=0),
        ArgumentError,
        "cache_size: expected a positive integer, not 0.",
    ),
    (
        lambda: setattr(tj.dlaccelerate(tj.exp), "cachesize", 3),
        AttributeError,
        "an accelerated function has no attribute 'cachesize'; the option is cache_size.",
    ),
    (
        lambda: tj.dlaccelerate(tj.exp).CheckMode,  # type: ignore[attr-defined]
        AttributeError,
        "an accelerated function has no attribute 'CheckMode'; the option is check_mode.",
    ),
    (
        lambda: setattr(tj.dlaccelerate(tj.exp), "hit_rate", 1),
        AttributeError,
        "hit_rate: it can only be read; calls change it, and clear_cache() resets it.",
    ),
    (
        lambda: setattr(tj.dlaccelerate(tj.exp), "function", tj.log),
        AttributeError,
        "function: it can only be read; dlaccelerate(function) accelerates a different one.",
    ),
    (
        lambda: setattr(tj.dlaccelerate(tj.exp), "hitrate", 3),
        AttributeError,
        "an accelerated function has no attribute 'hitrate'; hit_rate is the name, and it can only be read.",
    ),
    (
        lambda: setattr(tj.dlaccelerate(tj.exp), "colour", 3),
        AttributeError,
        "an accelerated function has no attribute 'colour'; the options are audit, cache_size, "
        "check_every, check_mode, check_tolerance, confirm, enabled, max_variants, precision, target, "
        "write_arguments. To attach a value of your own, set it on the function before it is accelerated.",
    ),
    (
        lambda: tj.dlaccelerate(tj.exp, check_mode="always"),
        ArgumentError,
        "check_mode: expected one of ('none', 'tolerance', 'sample'), not 'always'.",
    ),
    (
        lambda: tj.dlaccelerate(tj.exp, check_tolerance=0),
        ArgumentError,
        "check_tolerance: expected a positive number, not 0.",
    ),
    # accelerate/policy
    (
        lambda: tj.set_policy("never"),
        ArgumentError,
        "set_policy: expected one of ('default', 'warn-on-retrace', 'error-on-retrace', 'uncompiled'), "
        "not 'never'.",
    ),
    # call/signature
    (
        lambda: square(X, queue.Queue()),
        ArgumentError,
        "square: y is a Queue, an object of a library, and changes in it would go unnoticed. Pass its arrays and "
        "numbers instead, in a dict, a named tuple or a dataclass.",
    ),
    (
        lambda: square(X, frozenset(map(float, range(20_001)))),
        ArgumentError,
        "square: y is a frozenset with more attributes and elements than can be compared at each call. Pass its "
        "arrays and numbers instead, in a dict, a named tuple or a dataclass.",
    ),
    (
        lambda: square(X, z=3),
        TypeError,
        "square() got an unexpected keyword argument 'z'",
    ),
    (
        lambda: square(X, [set()]),
        ArgumentError,
        "square: y[0] is a set, which is neither an array, a container nor hashable, so it cannot select a trace. "
        "Pass its arrays and numbers instead, or make its class a container (tj.tree.register).",
    ),
    (
        lambda: square(X, [np.array(["text"])]),
        DTypeError,
        "square: y[0]: data of type <U4 is not supported; use float64, float32, float16, bfloat16 (of ml_dtypes), "
        "complex128, complex64, bool or an integer type (for example data.astype(np.float32)).",
    ),
)
