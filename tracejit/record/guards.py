# SPDX-License-Identifier: BSD-3-Clause
"""Guards: the outcomes of decisions that values of traced arrays made while a function was recorded.

A trace with a branch, a loop or a number taken out of an array is right only where the same decisions are made again.
So a recording notes each such outcome, and its graph gets one more output: whether all of them hold. It is computed
with the results, and checked before anything becomes visible.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Any

import numpy as np

from tracejit.ir import Builder, Value, Where
from tracejit.util.named_tuples import NamedTuple

MOST_VALUES = 256  # the most that a guard compares; an array of more whose values are needed is refused


class Decides(Enum):
    """The part of a value that steered Python code."""

    TRUTH = "truth"  # whether it is true
    WHOLE = "whole"  # its integer part
    VALUE = "value"  # all of it


class ValueGuard(NamedTuple):
    """An outcome that a trace depends on."""

    value: Value
    decides: Decides
    outcome: np.ndarray
    what: str  # "bool()", "float()", ...
    where: Where
    at: int  # nodes recorded before it

    def __str__(self) -> str:
        place = f" at {self.where[0]}:{self.where[1]}" if self.where else ""
        shown = self.outcome.item() if self.outcome.size == 1 else f"{self.outcome.size} values"
        return f"{self.what}{place} is {shown}"


class GuardFailed(Exception):  # noqa: N818 - no error: another trace is tried
    """A trace does not apply to a call: one of its guards does not hold."""


def outcome(decides: Decides, data: np.ndarray) -> np.ndarray:
    """Return what a value of `data` decides."""
    if decides is Decides.TRUTH:
        return np.asarray(data.astype(bool))
    with np.errstate(all="ignore"):
        # + 0.0: there is one integer 0.
        return np.array(np.trunc(data) + data.dtype.type(0) if decides is Decides.WHOLE else data)


def same(first: np.ndarray, second: np.ndarray) -> bool:
    """Return whether two arrays are equal to the bit; all NaNs are equal."""
    if first.dtype != second.dtype or first.shape != second.shape:
        return False
    if first.tobytes() == second.tobytes():
        return True
    if first.dtype.kind == "c":
        return same(first.real, second.real) and same(first.imag, second.imag)
    if first.dtype.kind != "f":
        return False
    equal = (first == second) & (np.signbit(first) == np.signbit(second))
    return bool(np.all(equal | (np.isnan(first) & np.isnan(second))))


def conjunction(b: Builder, guards: Sequence[ValueGuard]) -> Value | None:
    """Append to a graph the bool scalar "all guards hold", and return it; None if there are none."""
    total: Value | None = None
    for guard in guards:
        b.location = guard.where
        holds = _holds(b, guard)
        total = holds if total is None else b.logical_and(total, holds)
    return total


def _holds(b: Any, guard: ValueGuard) -> Value:
    value = guard.value
    if guard.decides is Decides.TRUTH:
        if value.ndim:
            value = b.reshape(value, shape=())
        if value.dtype.kind != "b":
            value = b.not_equal(value, 0)
        return value if guard.outcome else b.logical_not(value)
    if guard.decides is Decides.WHOLE:
        value = b.trunc(value)
    expected = guard.outcome
    equal: Value = b.equal(value, b.constant(expected))
    if expected.dtype.kind == "f":
        zero = expected == 0
        if (
            zero.any() and guard.decides is Decides.VALUE
        ):  # equal does not tell 0.0 from -0.0, but division does
            infinite = b.constant(np.copysign(np.asarray(np.inf, expected.dtype), expected))
            signed = b.equal(b.reciprocal(value), infinite)
            equal = b.logical_and(equal, b.logical_or(b.constant(~zero), signed))
        nan = np.isnan(expected)
        if nan.any():
            equal = b.logical_or(equal, b.logical_and(b.constant(nan), b.isnan(value)))
    if value.ndim:
        equal = b.all(equal, axes=tuple(range(value.ndim)), keepdims=False)
    return equal
