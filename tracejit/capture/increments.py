# SPDX-License-Identifier: BSD-3-Clause
"""The additions of a run to numbers that were there before it, such as the steps that an object counts.

Note [increments]
The code ``self.steps += 1`` reads a number only to put another one in its place. A trace that compared the number would
hold for one call. If all that a run does with it is to add, each replay can add as much. A sum of integers is exact, so
that the difference of the values after and before the run is what it added, however often. A sum of floating-point
numbers is rounded: there must be one addition, of a number that the code tells, whose result is the value after the
run. Every other operator counts as a read.
"""

import math
from typing import Any

from tracejit.capture.observed import Slot

_NUMBERS = (int, float)
_SIGNS = {"+=": 1, "-=": -1}


class Increment:
    """A number that a replay adds to the one at a place."""

    __slots__ = ("added",)

    def __init__(self, added: int | float) -> None:
        self.added = added

    def __repr__(self) -> str:
        return f"Increment({self.added!r})"


def increment_of(slot: Slot, value: Any) -> Increment | None:
    """Return what a run has added to the number in a slot, which holds `value` now; None if that is not certain."""
    before, kind = slot.value, type(value)
    if slot.is_assigned or type(before) is not kind or kind not in _NUMBERS:
        return None
    if not all(written in _SIGNS for written, _ in slot.additions):
        return None
    if kind is int:
        return Increment(value - before)
    if len(slot.additions) != 1:
        return None
    written, operand = slot.additions[0]
    if type(operand) not in _NUMBERS or before + _SIGNS[written] * operand != value:
        return None
    return Increment(_SIGNS[written] * operand)


def is_seen(before: Any, written: str, operand: Any) -> bool:
    """Return whether an addition to a number would have changed it, or is one that replays make again."""
    if written not in _SIGNS or type(before) not in _NUMBERS:
        return False
    if type(before) is int:
        return True
    is_known = math.isfinite(before) and type(operand) in _NUMBERS
    return is_known and before + _SIGNS[written] * operand != before
