# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the table of messages (messages.py) of traces: why a function runs uncompiled."""

import collections
import functools
import itertools
import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from messages_shared import V, X

import tracejit as tj
from tracejit.errors import (
    ArgumentError,
    ChangedTraceWarning,
    NotAcceleratedWarning,
)

KEPT: list[Any] = []
WINDOW: collections.deque[Any] = collections.deque(maxlen=99)
TOTALLED: list[Any] = []


@functools.lru_cache
def kept() -> list[Any]:
    """Return a list that a cache keeps."""
    return []


def refused(function: Callable[[Any], object], **options: Any) -> None:
    """Call an accelerated function with different values until it is known to run uncompiled."""
    accelerated = tj.dlaccelerate(function, **options)
    for n in range(12):
        accelerated(V + n)


def roots_of(constants: list[float]) -> None:
    """Compute the roots of polynomials x^2 + c, which are real or complex."""

    @tj.dlaccelerate
    def roots(p: Any) -> Any:
        return np.roots(p)

    for constant in constants:
        roots(np.array([1.0, 0.0, constant]))


def in_turn(*functions: Callable[[Any], object]) -> Callable[[Any], object]:
    """Return a function that does in each call what the next of some functions does."""
    turns = itertools.cycle(functions)

    def call(x: Any) -> object:
        return next(turns)(x)

    return call


def reads_a_different_number() -> None:
    """Call a function that reads a number in a text with a different one in each call."""
    settings = {"rate": "0.0"}
    scale = tj.dlaccelerate(lambda x: x * float(settings["rate"]), audit=False)
    for n in range(30):
        settings["rate"] = str(n)
        scale(V)


def reads_a_large_array() -> Callable[[Any], object]:
    """Return a function with a number of a memory that is too large to be compared."""
    weights = bytearray((1 << 24) + 1)
    return lambda x: x * weights[0]


def changes_what_it_reads() -> Callable[[Any], object]:
    """Return a function that counts its calls."""
    calls: list[str] = []

    def count(x: Any) -> Any:
        calls.insert(0, "1")
        return x * sum(map(int, calls))

    return count


def changes_an_ndarray() -> Callable[[Any], object]:
    """Return a function that computes an ndarray of its last value, and of nothing that is traced."""
    mean = np.ones(3)

    def smoothed(x: Any) -> Any:
        nonlocal mean
        mean = 0.5 * np.frombuffer(mean) + 0.1
        return x.sum() * mean

    return smoothed


def reads_what_changes() -> Callable[[Any], object]:
    """Return a function with an attribute of a different value in each call."""

    class Settings:
        @property
        def rate(self) -> float:
            return next(rates)

    rates, settings = itertools.count(1.0), Settings()
    return lambda x: x * settings.rate


def in_a_thread(call: Callable[[], object]) -> object:
    """Return what a call gives in another thread."""
    results: list[object] = []
    thread = threading.Thread(target=lambda: results.append(call()))
    thread.start()
    thread.join()
    return results[0]


def caught(call: Callable[[], object]) -> object:
    """Return what a call gives, or None for an index out of range."""
    try:
        return call()
    except IndexError:
        return None


ROWS: tuple[tuple[Callable[[], object], type[Exception], str], ...] = (
    # traces/record
    (
        lambda: tj.dlaccelerate(lambda x: iter([x]))(X),
        ArgumentError,
        "<lambda>.<locals>.<lambda>: the result contains a list_iterator, which can be iterated over only "
        "once, so that a replay cannot return it; return a list.",
    ),
    # traces/refusals and record/recorder: the reasons to run uncompiled
    (
        lambda: refused(changes_what_it_reads()),
        NotAcceleratedWarning,
        "changes_what_it_reads.<locals>.count runs uncompiled for these arguments: it changes closure "
        "calls, which it also reads at <place>. A replay would not change it. Pass it as an argument "
        "and return its new value, or change it outside.",
    ),
    (
        lambda: refused(changes_an_ndarray()),
        NotAcceleratedWarning,
        "changes_an_ndarray.<locals>.smoothed runs uncompiled for these arguments: it changes closure "
        "mean, which it also reads at <place>. A replay would not read it again. Make it a dlarray before the first "
        "call (mean = tj.dlarray(mean)), so that its operations are recorded, or pass it as an argument and return "
        "its new value.",
    ),
    (
        lambda: refused(reads_what_changes()),
        NotAcceleratedWarning,
        "reads_what_changes.<locals>.<lambda> runs uncompiled for these arguments: two recordings differ: "
        "a constant of mul was 1.0, is 2.0 at <place>. Likely cause: a counter. Compute it outside and "
        "pass it as an argument, or use the random functions of tracejit with like=, which are recorded.",
    ),
    (
        lambda: refused(np.errstate(divide="raise")(lambda x: 1 / x)),
        NotAcceleratedWarning,
        '<lambda>.<locals>.<lambda> runs uncompiled for these arguments: it computes under np.errstate(divide="raise") '
        "at <place>. A replay raises no FloatingPointError. Check its results outside (np.isfinite), or raise there.",
    ),
    (
        lambda: refused(lambda x: (np.random.shuffle([1, 2]), x * 2)[1]),
        NotAcceleratedWarning,
        "<lambda>.<locals>.<lambda> runs uncompiled for these arguments: it draws from a "
        "numpy.random.mtrand.RandomState, which a replay would not do, although two recordings agreed at "
        "<place>. Draw outside and pass the numbers as an argument, or use the random functions of "
        "tracejit with like=, which are recorded.",
    ),
    (
        lambda: refused(lambda x: np.random.default_rng(1).poisson(x * x)),
        NotAcceleratedWarning,
        "<lambda>.<locals>.<lambda> runs uncompiled for these arguments: it draws with parameters that vary (poisson) "
        "where no replay could do that at <place>. Draw from a generator that is made outside of the function, and not "
        "in a step or a branch (dlscan, dlcond).",
    ),
    (
        lambda: refused(lambda x: np.random.choice(["a", "b", "c"], p=x / x.sum()) == "a"),
        NotAcceleratedWarning,
        "<lambda>.<locals>.<lambda> runs uncompiled for these arguments: it draws with parameters that vary (choice) "
        "where no replay could do that at <place>. Draw places, and take what lies there outside of the function.",
    ),
    (
        lambda: refused(lambda x: next(n for n in range(100) if x.sum() < n), max_variants=8),
        NotAcceleratedWarning,
        "<lambda>.<locals>.<lambda> runs uncompiled for these arguments: bool() on traced arrays had other "
        "outcomes in each of 9 recordings at <place>. Use where(condition, a, b) instead of if, dlwhile instead of "
        "while, & and | instead of and and or, and np.minimum, np.maximum and np.sort instead of min, max and sorted; "
        "or raise max_variants.",
    ),
    (
        lambda: refused(lambda x: (KEPT.insert(0, math.sin(x.sum())), x)[1]),
        NotAcceleratedWarning,
        "<lambda>.<locals>.<lambda> runs uncompiled for these arguments: a number that varies "
        "outlives the call in global KEPT at <place>. A replay repeats append() and extend() only. Return the number, "
        "and keep it outside.",
    ),
    (
        lambda: refused(lambda x: (WINDOW.append(math.sin(x.sum())), x * np.mean(WINDOW))[1]),
        NotAcceleratedWarning,
        "<lambda>.<locals>.<lambda> runs uncompiled for these arguments: a number that varies "
        "outlives the call in global WINDOW at <place>. The deque is read at <place>, which a replay follows once it "
        "has its 99 elements. Return the number, and keep it outside.",
    ),
    (
        lambda: refused(lambda x: (TOTALLED.append(math.sin(x.sum())), x * sum(TOTALLED))[1]),
        NotAcceleratedWarning,
        "<lambda>.<locals>.<lambda> runs uncompiled for these arguments: a number that varies "
        "outlives the call in global TOTALLED at <place>. The list is read at <place>, so that a replay could not add "
        "to it. Return the number, and keep it outside.",
    ),
    (
        lambda: refused(lambda x: (kept().append(math.sin(x.sum())), x)[1]),
        NotAcceleratedWarning,
        "<lambda>.<locals>.<lambda> runs uncompiled for these arguments: a number that varies "
        "outlives the call at <place>. Return it, and keep it outside.",
    ),
    (
        lambda: refused(lambda x: x * complex(x.sum()).real),
        NotAcceleratedWarning,
        "<lambda>.<locals>.<lambda> runs uncompiled for these arguments: complex() on a traced array gave a "
        "different number in each of 9 recordings at <place>. The number that it takes is a "
        "constant of the trace. Keep it an array (the functions of tracejit, NumPy and math, "
        "stop_gradient instead of extractdata), or return it and read it outside; or raise max_variants.",
    ),
    (
        lambda: refused(lambda x: x[0].item() and sum((x + np.zeros((300, 1))).ravel().tolist())),
        NotAcceleratedWarning,
        "<lambda>.<locals>.<lambda> runs uncompiled for these arguments: tolist() takes 900 values out of "
        "the trace at <place>. Up to 256 are compared at each call. Keep them arrays (the functions of "
        "tracejit and NumPy; stop_gradient cuts the derivative), or return them and read them outside.",
    ),
    (
        lambda: refused(lambda x: in_a_thread(lambda: x * 2)),
        NotAcceleratedWarning,
        "<lambda>.<locals>.<lambda> runs uncompiled for these arguments: mul uses an array of the trace "
        "in another thread at <place>. What a thread computes is not recorded; compute it in the thread "
        "of the function.",
    ),
    (
        lambda: refused(lambda x: caught(lambda: tj.take(x, [9], 0))),
        NotAcceleratedWarning,
        "<lambda>.<locals>.<lambda> runs uncompiled for these arguments: take met an index out of range "
        "at <place>. Check indices outside.",
    ),
    (
        lambda: refused(lambda x: x * tj.rng().seed),
        NotAcceleratedWarning,
        "<lambda>.<locals>.<lambda> runs uncompiled for these arguments: the state of a generator of "
        "random numbers is read, which a replay would not do, at <place>. Do it outside; for the same "
        "numbers at each call draw from a generator that is made inside: rand(size, "
        "generator=Generator(seed)).",
    ),
    (
        lambda: tj.dlaccelerate(lambda x: [x := x + 1 for _ in range(5000)][-1])(V),
        tj.RetraceWarning,
        "<lambda>.<locals>.<lambda> records 5000 operations, 5000 of them at <place>: each step of a loop is recorded "
        "by itself, which takes its time in each of the first calls. dlscan records one step for all, and its "
        "programs are short.",
    ),
    (
        lambda: refused(reads_a_large_array()),
        NotAcceleratedWarning,
        "reads_a_large_array.<locals>.<lambda> runs uncompiled for these arguments: it reads closure "
        "weights, which cannot be checked at each call at <place>. Make an array a dlarray where it is made "
        "(x = tj.dlarray(x)), so that its operations are recorded, or pass it as an argument.",
    ),
    (
        reads_a_different_number,
        NotAcceleratedWarning,
        "reads_a_different_number.<locals>.<lambda> runs uncompiled for these arguments: closure "
        "settings['rate'], which it reads, changes from call to call at <place>. Pass it as an argument;"
        " a number that is made a dlarray costs one trace for all its values.",
    ),
    # traces/confirm: how two recordings differ
    (
        lambda: refused(in_turn(lambda x: x + x, lambda x: x * x)),
        NotAcceleratedWarning,
        "in_turn.<locals>.call runs uncompiled for these arguments: two recordings differ: operation"
        " 1 was add, is mul at <place>. Likely cause: a random choice, a counter, or something that the "
        "function reads and changes. Compute it outside and pass it as an argument, or use the random "
        "functions of tracejit with like=, which are recorded.",
    ),
    (
        lambda: refused(in_turn(lambda x: x + 1, lambda x: (x + 1) * x)),
        NotAcceleratedWarning,
        "in_turn.<locals>.call runs uncompiled for these arguments: two recordings differ: only one "
        "of them recorded mul at <place>. Likely cause: a random choice, a counter, or something that "
        "the function reads and changes. Compute it outside and pass it as an argument, or use the "
        "random functions of tracejit with like=, which are recorded.",
    ),
    (
        lambda: refused(in_turn(lambda x: x.reshape(3, 1), lambda x: x.reshape(1, 3))),
        NotAcceleratedWarning,
        "in_turn.<locals>.call runs uncompiled for these arguments: two recordings differ: reshape "
        "was called with shape=(3, 1), then with shape=(1, 3) at <place>. Likely cause: a "
        "random choice, a counter, or something that the function reads and changes. Compute it outside "
        "and pass it as an argument, or use the random functions of tracejit with like=, which are "
        "recorded.",
    ),
    (
        lambda: roots_of([-1.0, 1.0] * 3),
        NotAcceleratedWarning,
        "roots_of.<locals>.roots runs uncompiled for these arguments: two recordings differ: the result of "
        "np.roots was 2 float64, is 2 complex128 at <place>. Likely cause: values decide its dtype or its "
        "size. Let its dtype and its size be the same for all values (with complex operands, results are "
        "complex), or call it outside.",
    ),
    (
        lambda: roots_of([-1.0, -1.0, -1.0, 1.0]),
        ChangedTraceWarning,
        "roots_of.<locals>.roots: a trace that was replayed is out of date: the result of np.roots was 2 "
        "float64, is 2 complex128 at <place>. It has been recorded again. Likely cause: values decide its "
        "dtype or its size. Let its dtype and its size be the same for all values (with complex operands, "
        "results are complex), or call it outside.",
    ),
    (
        lambda: refused(in_turn(lambda x: x - x.sum(), lambda x: x.sum() - x)),
        NotAcceleratedWarning,
        "in_turn.<locals>.call runs uncompiled for these arguments: two recordings differ: sub "
        "received a different operand at <place>. Likely cause: a random choice, a counter, or something"
        " that the function reads and changes. Compute it outside and pass it as an argument, or use the"
        " random functions of tracejit with like=, which are recorded.",
    ),
    (
        lambda: refused(in_turn(lambda x: x * np.ones(1), lambda x: x * np.ones(3))),
        NotAcceleratedWarning,
        "in_turn.<locals>.call runs uncompiled for these arguments: two recordings differ: a "
        "constant of mul was 1 float64, is 3 float64 at <place>. Likely cause: data of a different size "
        "that the function makes or reads. Compute it outside and pass it as an argument, or use the "
        "random functions of tracejit with like=, which are recorded.",
    ),
    (
        lambda: refused(in_turn(lambda x: (x[0] + 1, x)[1], lambda x: (x[0] + 1) and x)),
        NotAcceleratedWarning,
        "in_turn.<locals>.call runs uncompiled for these arguments: two recordings differ: only one "
        "of them took a value by bool() at <place>. Likely cause: a random choice, a counter, or something that the "
        "function reads and changes. Compute it outside and pass it as an argument, or use the random "
        "functions of tracejit with like=, which are recorded.",
    ),
    (
        lambda: refused(in_turn(lambda x: x, lambda x: [x, x])),
        NotAcceleratedWarning,
        "in_turn.<locals>.call runs uncompiled for these arguments: two recordings differ: the "
        "result is a single value in one and a list in the other. Likely cause: a random choice, a counter, or "
        "something that the function reads and changes. Compute it outside and pass it as an argument, "
        "or use the random functions of tracejit with like=, which are recorded.",
    ),
    (
        lambda: refused(in_turn(lambda x: {"a": x, "b": x}, lambda x: {"b": x, "a": x})),
        NotAcceleratedWarning,
        "in_turn.<locals>.call runs uncompiled for these arguments: two recordings differ: the keys "
        "of a dict of the result have a different order. Likely cause: a random choice, a counter, or "
        "something that the function reads and changes. Compute it outside and pass it as an argument, "
        "or use the random functions of tracejit with like=, which are recorded.",
    ),
    (
        lambda: refused(in_turn(lambda x: (x, 1), lambda x: (x, 2))),
        NotAcceleratedWarning,
        "in_turn.<locals>.call runs uncompiled for these arguments: two recordings differ: result[1]"
        " was 1, is 2. Likely cause: a counter. Compute it outside and pass it as an argument, or use "
        "the random functions of tracejit with like=, which are recorded.",
    ),
    (
        lambda: refused(in_turn(lambda x: (x, x * 2), lambda x: (x * 2, x))),
        NotAcceleratedWarning,
        "in_turn.<locals>.call runs uncompiled for these arguments: two recordings differ: result[0]"
        " is a different array. Likely cause: a random choice, a counter, or something that the function"
        " reads and changes. Compute it outside and pass it as an argument, or use the random functions "
        "of tracejit with like=, which are recorded.",
    ),
    (
        lambda: refused(in_turn(lambda x: (tj.dlarray(1.0), x), lambda x: (tj.dlarray(4.0), x))),
        NotAcceleratedWarning,
        "in_turn.<locals>.call runs uncompiled for these arguments: two recordings differ: "
        "result[0], a constant, was 1.0, is 4.0. Likely cause: random numbers that NumPy or Python drew,"
        " the time, or a file. Compute it outside and pass it as an argument, or use the random "
        "functions of tracejit with like=, which are recorded.",
    ),
    (
        lambda: refused(lambda x: (x, object())),
        NotAcceleratedWarning,
        "<lambda>.<locals>.<lambda> runs uncompiled for these arguments: two recordings differ: result[1] was "
        "<object object at <address>>, is <object object at <address>>. Likely cause: an object that is created in "
        "each call. Return its arrays and numbers, in a tuple, a list or a dict.",
    ),
)
