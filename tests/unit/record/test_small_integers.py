# SPDX-License-Identifier: BSD-3-Clause
"""Arrays of small integers that meet integers which vary: what fits is a guard, and comparisons take any integer."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj

ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda x, k: x + k,
    "reflected -": lambda x, k: k - x,
    "*": lambda x, k: x * k,
    "//": lambda x, k: x // (abs(k) + 1),
    "/": lambda x, k: x / (abs(k) + 1),
    "%": lambda x, k: x % (abs(k) + 1),
    "&": lambda x, k: x & k,
    "<<": lambda x, k: x << abs(k) % 4,
    "in place": lambda x, k: np.add(x, 0).__iadd__(k),
    "maximum": lambda x, k: np.maximum(x, k),
    "clip": lambda x, k: np.clip(x, 0, k),
    "where": lambda x, k: np.where(x > 3, x, abs(k) % 50),
    "as one of NumPy's": lambda x, k: x + x.dtype.type(k),
    "beside floats": lambda x, k: x + np.float32(1.5) * k,
}
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": lambda x, k: x == k,
    "!=": lambda x, k: x != k,
    "<": lambda x, k: x < k,
    "reflected <=": lambda x, k: k <= x,
    ">": lambda x, k: x > k,
    ">=": lambda x, k: (x >= k).sum(),
}
DTYPES = [np.uint8, np.int8, np.int16, np.uint16, np.int32, np.uint32, np.uint64]
FITTING = (3, 5, 7, 2, 11, 100, 0, 126)
OTHERS = (-1, -128, -129, 127, 128, 255, 256, 40000, -40000, 2**31, 2**32, 2**40, -(2**40))


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", tj.TraceJitWarning)
        try:
            result = np.asarray(function(*args))
        except OverflowError:
            return "error"
    return result.dtype, result.tolist()


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*ARITHMETIC, *COMPARISONS])
@pytest.mark.parametrize("made", ["k", "int(k[0])"])
def test_the_numbers_and_errors_are_those_of_numpy(dtype: Any, name: str, made: str) -> None:
    function = (ARITHMETIC | COMPARISONS)[name]
    plain = eval(f"lambda x, k: function(x, {made})", {"function": function, "int": int})
    accelerated = tj.dlaccelerate(plain)
    for call, number in enumerate((*FITTING, *OTHERS, *FITTING)):
        x = np.array([1, 2, 120, 7, 126], dtype) + dtype(call % 2)
        k = number if made == "k" else np.array([number])
        assert outcome(accelerated, x, k) == outcome(plain, x, k), number


@pytest.mark.parametrize("name", [*ARITHMETIC, *COMPARISONS])
@pytest.mark.parametrize("made", ["k", "int(k[0])"])
def test_numbers_that_fit_have_one_trace(name: str, made: str) -> None:
    function = (ARITHMETIC | COMPARISONS)[name]
    accelerated = tj.dlaccelerate(
        eval(f"lambda x, k: function(x, {made})", {"function": function, "int": int})
    )
    for number in range(1, 13):
        accelerated(np.arange(5, dtype=np.uint8), number if made == "k" else np.array([number]))
    assert accelerated.stats.hits >= 7


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons_with_numbers_out_of_range_have_one_trace(name: str) -> None:
    accelerated = tj.dlaccelerate(COMPARISONS[name])
    for number in range(300, 312):
        accelerated(np.arange(5, dtype=np.uint8), number)
    assert accelerated.stats.hits >= 7


def test_what_no_bound_limits_is_a_copy() -> None:
    def function(x: Any, k: Any) -> Any:
        y = np.clip(x, -1, k)
        y += 1
        return x + y

    accelerated, x = tj.dlaccelerate(function), np.arange(3, dtype=np.uint8)
    for number in (256, 300, 400, 500, 1, 600):
        assert accelerated(x, number).tolist() == function(x, number).tolist()
